//! `argosy audit`: who did what, and whether anybody changed the record of it.

use crate::failure::{Exit, Failure};
use crate::output::{Format, Grid, Paint, document, note, print};
use crate::session::Session;
use crate::view::{age_of, to_value};
use argosy_api::audit::AuditEntry;
use clap::{Args, Subcommand};
use serde_json::json;

/// Read and verify the audit log.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  argosy audit list --limit 20
  argosy audit list -o json
  argosy audit verify")]
pub(crate) struct Verb {
    #[command(subcommand)]
    verb: Verbs,
}

#[derive(Subcommand, Debug)]
enum Verbs {
    List(List),
    /// Check the hash chain of the whole log.
    #[command(after_help = "\
Exit code 0: nobody changed it; 1: somebody did, and where.

Examples:
  argosy audit verify
  argosy audit verify -o json")]
    Verify,
}

/// List what was done, newest first.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  argosy audit list
  argosy audit list --limit 500 --before 1200 -o wide")]
struct List {
    /// How many records.
    #[arg(long, default_value_t = 50, value_name = "COUNT")]
    limit: usize,
    /// Only records before this sequence number.
    #[arg(long, value_name = "SEQUENCE")]
    before: Option<u64>,
}

/// The most records the API gives at once.
const PAGE: usize = 100;

/// `argosy audit`
pub(super) async fn run(session: &Session, verb: Verb) -> Result<Exit, Failure> {
    match verb.verb {
        Verbs::List(args) => list(session, &args).await,
        Verbs::Verify => verify(session).await,
    }
}

async fn list(session: &Session, args: &List) -> Result<Exit, Failure> {
    let mut entries: Vec<AuditEntry> = Vec::new();
    let mut before = args.before;
    while entries.len() < args.limit {
        let limit = (args.limit - entries.len()).min(PAGE).to_string();
        let place = before.map(|before| before.to_string());
        let mut query = vec![("limit", limit.as_str())];
        query.extend(place.as_deref().map(|place| ("before", place)));
        let page = session.client.audit(&query).await.map_err(|error| session.failure(error))?;
        entries.extend(page.items);
        match page.next {
            Some(next) => before = Some(next),
            None => break,
        }
    }
    show(session, &entries);
    Ok(Exit::Ok)
}

fn show(session: &Session, entries: &[AuditEntry]) {
    let wide = session.format == Format::Wide;
    match session.format {
        Format::Json | Format::Yaml => {
            let value = json!({ "kind": "AuditList", "items": to_value(&entries) });
            print(&document(&value, session.format == Format::Yaml));
        }
        Format::Name => {
            print(
                &entries
                    .iter()
                    .map(|entry| format!("audit/{}\n", entry.sequence))
                    .collect::<String>(),
            );
        }
        Format::Table | Format::Wide => {
            let now = session.clock.now();
            let narrow = ["SEQ", "AGE", "ACTOR", "ACTION", "KIND", "NAME", "REASON"];
            let more = ["VIA", "TENANT", "ID", "REQUEST", "HASH"];
            let headers: Vec<&'static str> = match wide {
                true => narrow.into_iter().chain(more).collect(),
                false => narrow.to_vec(),
            };
            let mut grid = Grid::new(&headers);
            for entry in entries {
                let mut cells = vec![
                    entry.sequence.to_string(),
                    age_of(&entry.at, now),
                    entry.actor.clone(),
                    entry.action.clone(),
                    entry.kind.clone(),
                    entry.name.clone(),
                    entry.reason.clone().unwrap_or_default(),
                ];
                if wide {
                    cells.extend([
                        entry.via.clone(),
                        entry.tenant.clone(),
                        entry.id.clone(),
                        entry.request_id.clone(),
                        entry.hash.clone(),
                    ]);
                }
                grid.row(cells.into_iter().map(|cell| (cell, Paint::Plain)));
            }
            print(&grid.render(&session.screen, session.headers));
        }
    }
}

async fn verify(session: &Session) -> Result<Exit, Failure> {
    let found = session.client.verify_audit().await.map_err(|error| session.failure(error))?;
    if matches!(session.format, Format::Json | Format::Yaml) {
        print(&document(&to_value(&found), session.format == Format::Yaml));
    }
    match found.broken {
        None => {
            note(&format!("{} records checked: nobody changed them", found.entries));
            Ok(Exit::Ok)
        }
        Some(broken) => Err(Failure::failed(format!(
            "the audit log was changed: record {} does not fit",
            broken.sequence
        ))
        .why(crate::output::clean(&broken.problem))
        .fix("compare it with a backup: `argosy restore` into an empty directory, then read both")),
    }
}
