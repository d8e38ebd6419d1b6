//! `argosy config`: the server's configuration, checked and explained without starting it.

use super::server;
use crate::config::{docs, load, navarch, navarch_of, read};
use crate::failure::{Exit, Failure};
use crate::output::{Format, Grid, Paint, Screen, document, note, print};
use clap::{ArgMatches, Args, Subcommand};
use serde_json::{Map, Value, json};
use std::path::PathBuf;

/// Check and print the configuration of `argosy server`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  argosy config check argosy.yaml
  argosy config print --config argosy.yaml
  argosy config print --defaults
  argosy config convert navarch.yaml > argosy.yaml")]
pub(crate) struct Verb {
    #[command(subcommand)]
    verb: Verbs,
}

#[derive(Subcommand, Debug)]
enum Verbs {
    /// Check a configuration file as `argosy server` would.
    #[command(after_help = "\
Exit code 64 if something is wrong; the error names the key, the line, and the nearest key.

Examples:
  argosy config check argosy.yaml")]
    Check {
        /// The file.
        #[arg(required_unless_present = "config")]
        file: Option<PathBuf>,
        /// The file, as `argosy server` takes it.
        #[arg(long, env = "ARGOSY_CONFIG", hide_env_values = true, value_name = "FILE")]
        config: Option<PathBuf>,
    },
    Print(Print),
    /// Print a configuration file of Navarch as one of ours.
    ///
    /// Everything that upstream ignores without a word, or that means something else here, is a comment in it.
    #[command(after_help = "\
`argosy server --config FILE` takes a file of Navarch as it is, too.

Examples:
  argosy config convert navarch.yaml > argosy.yaml
  argosy config check argosy.yaml")]
    Convert {
        /// The file.
        file: PathBuf,
    },
    /// Print the reference of all keys, as Markdown.
    #[command(after_help = "Examples:\n  argosy config docs > config.md")]
    Docs,
}

/// Print the configuration that holds, and where each value comes from.
#[derive(Args, Debug)]
#[command(after_help = "\
Takes the flags of `argosy server` and reads its environment variables.

Examples:
  argosy config print --config argosy.yaml
  argosy config print --listen 127.0.0.1:9000 -o json
  argosy config print --defaults > argosy.yaml")]
struct Print {
    #[command(flatten)]
    server: server::Args,
    /// Only the defaults, as a file to start from.
    #[arg(long)]
    defaults: bool,
    /// How it is printed.
    #[arg(short, long, value_enum, default_value = "table", value_name = "FORMAT")]
    output: Format,
}

/// `argosy config`
pub(super) fn run(
    verb: &Verb,
    screen: Screen,
    matches: Option<&ArgMatches>,
) -> Result<Exit, Failure> {
    match &verb.verb {
        Verbs::Check { file, config } => {
            let file = file.as_ref().or(config.as_ref());
            load(file.map(PathBuf::as_path), Vec::new())?;
            note(&format!(
                "{} is fine",
                file.map_or_else(String::new, |f| f.display().to_string())
            ));
        }
        Verbs::Print(args) if args.defaults => {
            let defaults = serde_json::to_value(crate::config::Config::default());
            print(&document(
                &without_nulls(defaults.unwrap_or_default()),
                args.output != Format::Json,
            ));
        }
        Verbs::Print(args) => {
            let matches = matches.and_then(|matches| matches.subcommand_matches("print"));
            let effective = load(args.server.config.as_deref(), args.server.overrides(matches))?;
            let lines = effective.lines();
            match args.output {
                Format::Json | Format::Yaml => {
                    let value = json!({ "values": lines });
                    print(&document(&value, args.output == Format::Yaml));
                }
                Format::Table | Format::Wide | Format::Name => {
                    let mut grid = Grid::new(&["KEY", "VALUE", "FROM"]);
                    for line in lines {
                        let value = match &line.value {
                            Value::String(text) => text.clone(),
                            Value::Null => String::new(),
                            other @ (Value::Bool(_)
                            | Value::Number(_)
                            | Value::Array(_)
                            | Value::Object(_)) => other.to_string(),
                        };
                        let paint =
                            if line.origin == "default" { Paint::Dim } else { Paint::Plain };
                        grid.row([
                            (line.key, Paint::Plain),
                            (value, Paint::Plain),
                            (line.origin, paint),
                        ]);
                    }
                    print(&grid.render(&screen, true));
                }
            }
        }
        Verbs::Convert { file } => {
            let Some(converted) = navarch_of(&read(file)?, file)? else {
                return Err(Failure::usage(format!("{} is no file of Navarch", file.display()))
                    .why("its sections are server, providers, pools and defaults")
                    .fix("`argosy config check` checks a file of ours"));
            };
            print(&navarch::yaml(&converted));
        }
        Verbs::Docs => print(&docs(server::FLAGS)),
    }
    Ok(Exit::Ok)
}

/// A file to start from says nothing about what is not set.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let members = members.into_iter().map(|(key, value)| (key, without_nulls(value)));
            let kept = members.filter(|(_, value)| match value {
                Value::Null => false,
                Value::Object(inner) => !inner.is_empty(),
                Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => true,
            });
            Value::Object(kept.collect::<Map<_, _>>())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(without_nulls).collect()),
        other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => other,
    }
}
