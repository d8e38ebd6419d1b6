//! `argosy demo`: makes something go wrong in a fleet that `argosy up` runs.

use super::cloud;
use super::up::fault::{self, Fault};
use super::up::stage::{Deed, PREFIX, Wish};
use crate::failure::{Exit, Failure};
use crate::output::{Format, Paint, clean, document, print};
use crate::session::Session;
use argosy_agent::gpu::fake::injection::KINDS;
use clap::{Args, Subcommand};
use reqwest::Method;
use serde_json::{Value, json};

/// Make something go wrong in a fleet that `argosy up` runs.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  argosy demo faults
  argosy demo inject xid-79                          on some node, and it says which
  argosy demo inject atlas.h100-1k2m3n4p nvlink-down
  argosy demo inject xid:79 gpu:3                    in the words of argosy-agent inject")]
pub(crate) struct Verb {
    #[command(subcommand)]
    verb: Verbs,
}

#[derive(Subcommand, Debug)]
enum Verbs {
    /// List what can go wrong, and what Argosy does about it.
    #[command(after_help = "Examples:\n  argosy demo faults\n  argosy demo faults -o json")]
    Faults,
    /// Make something go wrong now, and say where to watch it.
    ///
    /// Without a node, one is chosen that is in service and well.
    #[command(
        after_help = "Examples:\n  argosy demo inject xid-79\n  argosy demo inject NODE silent\n  argosy demo inject NODE xid:48 gpu:5\n  argosy demo inject heal -o json"
    )]
    Inject {
        /// A node, if it is to be that one; then the fault: see `argosy demo faults`.
        #[arg(required = true, value_name = "[NODE] FAULT")]
        words: Vec<String>,
    },
}

/// `argosy demo`
pub(super) async fn run(session: &Session, verb: Verb) -> Result<Exit, Failure> {
    match verb.verb {
        Verbs::Faults => faults(session),
        Verbs::Inject { words } => inject(session, words).await,
    }
}

/// Needs no server: what can go wrong is part of the program.
fn faults(session: &Session) -> Result<Exit, Failure> {
    let item =
        |fault: &Fault| json!({ "name": fault.name, "says": fault.says, "then": fault.then });
    match session.format {
        Format::Table | Format::Wide => print(&Fault::table()),
        Format::Name => fault::FAULTS.iter().for_each(|fault| print(&format!("{}\n", fault.name))),
        Format::Json | Format::Yaml => {
            let all = json!({ "items": fault::FAULTS.iter().map(item).collect::<Vec<_>>() });
            print(&document(&all, session.format == Format::Yaml));
        }
    }
    Ok(Exit::Ok)
}

async fn inject(session: &Session, words: Vec<String>) -> Result<Exit, Failure> {
    let wish = wish(words)?;
    let body = serde_json::to_value(&wish).unwrap_or_default();
    let path = format!("{PREFIX}/inject");
    let answer = session.client.send(Method::POST, &path, Some(&body)).await;
    let done = answer.map_err(|error| {
        let fix = "`argosy up` runs a demonstration; on a server with --simulated-cloud, `argosy cloud inject` \
                   does the same";
        cloud::failure(session, error, fix)
    })?;
    match session.format {
        Format::Json | Format::Yaml => {
            print(&document(&done, session.format == Format::Yaml));
        }
        Format::Name => print(&format!("node/{}\n", clean(text(&done, "node")))),
        Format::Table | Format::Wide => {
            let deed: Deed = serde_json::from_value(done).map_err(|error| {
                Failure::failed("the server's answer makes no sense").why(error)
            })?;
            print(&story(session, &deed));
        }
    }
    Ok(Exit::Ok)
}

fn text<'a>(value: &'a Value, member: &str) -> &'a str {
    value.get(member).and_then(Value::as_str).unwrap_or_default()
}

fn story(session: &Session, deed: &Deed) -> String {
    let node = clean(&deed.node);
    format!(
        "{} on {} ({})
Then: {}

Watch it:
  argosy why node/{node}
  argosy node history {node}
  {}
",
        session.screen.paint(&clean(&deed.says), Paint::Bad),
        session.screen.paint(&node, Paint::Plain),
        clean(&deed.what),
        clean(&deed.then),
        clean(&deed.page),
    )
}

/// The node, if the first word is one, and the fault.
fn wish(words: Vec<String>) -> Result<Wish, Failure> {
    let is_fault = |word: &str| {
        let kind = word.split(':').next().unwrap_or_default();
        fault::named(word).is_some() || KINDS.contains(&kind)
    };
    match words.as_slice() {
        [first, ..] if is_fault(first) => Ok(Wish { node: None, fault: words.join(" ") }),
        [node, rest @ ..] if rest.first().is_some_and(|word| is_fault(word)) => {
            let node = node.strip_prefix("node/").unwrap_or(node);
            Ok(Wish { node: Some(node.to_owned()), fault: rest.join(" ") })
        }
        [_, unknown, ..] | [unknown] => {
            Err(Failure::usage(format!("nothing that can go wrong is called `{}`", clean(unknown)))
                .fix("`argosy demo faults` lists what is"))
        }
        [] => Err(Failure::usage("which fault?").fix("`argosy demo faults` lists what there is")),
    }
}

#[cfg(test)]
mod tests;
