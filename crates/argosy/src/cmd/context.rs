//! `argosy context`: the servers this person works with.

use crate::context::{Connection, Context, Contexts, Token, address, path};
use crate::failure::{Exit, Failure};
use crate::output::{Format, Grid, Paint, Screen, document, note, print};
use crate::session::confirm;
use clap::{Args, Subcommand};
use serde_json::json;
use std::path::PathBuf;

/// Choose which server commands talk to.
#[derive(Args, Debug)]
#[command(after_help = "\
Contexts are kept in ~/.config/argosy/config.yaml (or ARGOSY_CLIENT_CONFIG), readable by you only.

Examples:
  argosy context set prod --server https://fleet.example --token-file ~/.argosy-token
  argosy context use prod
  argosy context list")]
pub(crate) struct Verb {
    #[command(subcommand)]
    verb: Verbs,
}

#[derive(Subcommand, Debug)]
enum Verbs {
    /// List the contexts.
    #[command(after_help = "Examples:\n  argosy context list")]
    List,
    /// Use a context from now on.
    #[command(after_help = "Examples:\n  argosy context use prod")]
    Use {
        /// Its name.
        name: String,
    },
    Set(Set),
    /// Show the server that commands talk to, and how.
    #[command(after_help = "Examples:\n  argosy context show\n  argosy context show prod")]
    Show {
        /// Its name; the current one if left out.
        name: Option<String>,
    },
    /// Remove a context.
    #[command(after_help = "Examples:\n  argosy context remove old --yes")]
    Remove {
        /// Its name.
        name: String,
        /// Do not ask.
        #[arg(short, long)]
        yes: bool,
    },
}

/// Add a context, or change one.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  argosy context set local --server http://127.0.0.1:8080
  argosy context set prod --server https://fleet.example --token-env PROD_TOKEN --output wide")]
struct Set {
    /// Its name.
    name: String,
    /// The server's address; required for a new context.
    #[arg(long, value_name = "URL")]
    server: Option<String>,
    /// The environment variable that holds the token.
    #[arg(long, value_name = "NAME", group = "token")]
    token_env: Option<String>,
    /// The file that holds the token.
    #[arg(long, value_name = "FILE", group = "token")]
    token_file: Option<PathBuf>,
    /// Read the token from standard input and keep it in the contexts' file.
    #[arg(long, group = "token")]
    token_stdin: bool,
    /// How results are printed when -o is not given.
    #[arg(short, long, value_enum, value_name = "FORMAT")]
    output: Option<Format>,
}

/// `argosy context`
pub(super) fn run(verb: Verb, screen: Screen) -> Result<Exit, Failure> {
    let file = path()?;
    let mut contexts = Contexts::load(&file)?;
    match verb.verb {
        Verbs::List => list(&contexts, &screen),
        Verbs::Use { name } => {
            contexts.get(&name)?;
            note(&format!("using {name}"));
            contexts.current = Some(name);
            contexts.save(&file)?;
        }
        Verbs::Set(set) => {
            let name = set.name.clone();
            let context = set.context(contexts.contexts.get(&name))?;
            contexts.contexts.insert(name.clone(), context);
            // The first context is the one people mean.
            contexts.current.get_or_insert(name);
            contexts.save(&file)?;
        }
        Verbs::Show { name } => show(&contexts, name)?,
        Verbs::Remove { name, yes } => {
            contexts.get(&name)?;
            confirm(&screen, &format!("Remove the context `{name}`?"), yes)?;
            contexts.contexts.remove(&name);
            if contexts.current.as_ref() == Some(&name) {
                contexts.current = None;
            }
            contexts.save(&file)?;
        }
    }
    Ok(Exit::Ok)
}

impl Set {
    /// The context with the changes, from what it was.
    fn context(self, old: Option<&Context>) -> Result<Context, Failure> {
        let server = match (&self.server, old) {
            (Some(server), _) => address(server)?,
            (None, Some(old)) => old.server.clone(),
            (None, None) => {
                return Err(Failure::usage(format!(
                    "a new context `{}` needs a server",
                    self.name
                ))
                .fix("add --server URL"));
            }
        };
        let token = match (self.token_env, self.token_file, self.token_stdin) {
            (Some(name), _, _) => Some(Token::Env(name)),
            (None, Some(file), _) => Some(Token::File(std::path::absolute(&file).unwrap_or(file))),
            (None, None, true) => {
                let mut text = String::new();
                std::io::stdin()
                    .read_line(&mut text)
                    .map_err(|error| Failure::usage("cannot read the token").why(error))?;
                Some(Token::Value(text.trim().to_owned()))
            }
            // A token is for the server it was given for.
            (None, None, false) => {
                old.filter(|old| old.server == server).and_then(|old| old.token.clone())
            }
        };
        Ok(Context { server, token, output: self.output.or(old.and_then(|old| old.output)) })
    }
}

fn list(contexts: &Contexts, screen: &Screen) {
    let mut grid = Grid::new(&["CURRENT", "NAME", "SERVER", "TOKEN"]);
    for (name, context) in &contexts.contexts {
        let current = if contexts.current.as_ref() == Some(name) { "*" } else { "" };
        grid.row([
            (current.to_owned(), Paint::Good),
            (name.clone(), Paint::Plain),
            (context.server.clone(), Paint::Plain),
            (token(context.token.as_ref()), Paint::Plain),
        ]);
    }
    print(&grid.render(screen, true));
}

fn show(contexts: &Contexts, name: Option<String>) -> Result<(), Failure> {
    let connection = Connection { context: name.clone(), ..Connection::default() };
    let name = name.or_else(|| contexts.current.clone());
    let value = match name.as_deref() {
        Some(name) => {
            let context = contexts.get(name)?;
            json!({
                "context": name,
                "server": context.server,
                "token": token(context.token.as_ref()),
                "output": context.output,
            })
        }
        None => json!({ "server": contexts.target(&connection, None)?.server }),
    };
    print(&document(&value, true));
    Ok(())
}

/// Where the token is; never the token.
fn token(token: Option<&Token>) -> String {
    match token {
        None => "none".to_owned(),
        Some(Token::Value(_)) => "in the contexts' file".to_owned(),
        Some(Token::Env(name)) => format!("environment variable {name}"),
        Some(Token::File(file)) => format!("file {}", file.display()),
    }
}
