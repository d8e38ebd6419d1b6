//! A node's past as lines, the latest last: what happened on it, or everything that was written down.

use super::args::{Events, History, Timeline};
use super::plain_id;
use crate::failure::{Exit, Failure};
use crate::output::{Format, Grid, Paint, clean, document, line, note, print};
use crate::session::Session;
use crate::view::{Times, to_value};
use argosy_api::client::ClientError;
use argosy_api::node::{Ledger, LedgerEntry, NodeEvent, Verdict};
use jiff::Timestamp;
use serde_json::{Value, json};
use std::time::Duration;

/// The most lines the API gives at once.
const PAGE: usize = 1000;

/// How many lines are shown if nobody says.
const LIMIT: usize = 50;

/// How often somebody who follows asks again. A second more is not noticed, and a client a second is no
/// load.
const POLL: Duration = Duration::from_secs(2);

/// Which lines.
#[derive(Clone, Copy)]
enum Which {
    Events,
    All,
}

/// `argosy node events`
pub(super) async fn events(session: &Session, args: &Events) -> Result<Exit, Failure> {
    let entries = read(session, &args.timeline, Which::Events).await?;
    if !args.follow {
        show(session, &entries, Which::Events, session.headers);
        return Ok(Exit::Ok);
    }
    follow(session, &args.timeline, entries).await
}

/// `argosy node history`
pub(super) async fn history(session: &Session, args: &History) -> Result<Exit, Failure> {
    let entries = read(session, &args.timeline, Which::All).await?;
    show(session, &entries, Which::All, session.headers);
    Ok(Exit::Ok)
}

async fn page(
    session: &Session,
    node: &str,
    which: Which,
    before: Option<u64>,
    limit: usize,
) -> Result<Ledger, ClientError> {
    let limit = limit.min(PAGE).to_string();
    let before = before.map(|before| before.to_string());
    let mut query = vec![("limit", limit.as_str())];
    query.extend(before.as_deref().map(|before| ("before", before)));
    match which {
        Which::Events => session.client.node_events(node, &query).await,
        Which::All => session.client.node_history(node, &query).await,
    }
}

/// The latest lines that are young enough, the latest last.
async fn read(
    session: &Session,
    args: &Timeline,
    which: Which,
) -> Result<Vec<LedgerEntry>, Failure> {
    let node = plain_id(&args.node);
    let oldest = args.since.map(|since| session.clock.now() - since.signed());
    let limit = args.limit.unwrap_or(if oldest.is_some() { PAGE } else { LIMIT });
    let mut entries: Vec<LedgerEntry> = Vec::new();
    let mut before = None;
    while entries.len() < limit {
        let read = page(session, node, which, before, limit - entries.len()).await;
        let read = match read {
            Ok(read) => read,
            Err(error) => return Err(session.missing_node(error, node).await),
        };
        let count = read.items.len();
        let found: Vec<LedgerEntry> =
            read.items.into_iter().take_while(|entry| young(entry, oldest)).collect();
        let rest_is_old = found.len() < count;
        entries.extend(found);
        match read.next {
            Some(next) if !rest_is_old => before = Some(next),
            Some(_) | None => break,
        }
    }
    entries.reverse();
    Ok(entries)
}

fn young(entry: &LedgerEntry, oldest: Option<Timestamp>) -> bool {
    match (oldest, entry.at.parse::<Timestamp>()) {
        (Some(oldest), Ok(at)) => oldest <= at,
        (None, _) | (Some(_), Err(_)) => true,
    }
}

/// Shows what is there, and then what comes. A server that is away is waited for.
async fn follow(
    session: &Session,
    args: &Timeline,
    entries: Vec<LedgerEntry>,
) -> Result<Exit, Failure> {
    let node = plain_id(&args.node);
    let mut last = entries.last().map_or(0, |entry| entry.sequence);
    stream(session, &entries, session.headers);
    let mut away = false;
    loop {
        tokio::time::sleep(POLL).await;
        match newer(session, node, last).await {
            Ok(new) => {
                if std::mem::take(&mut away) {
                    note("the server is back");
                }
                last = new.last().map_or(last, |entry| entry.sequence);
                stream(session, &new, false);
            }
            Err(error) if error.status().is_none_or(|status| 500 <= status) => {
                if !std::mem::replace(&mut away, true) {
                    note("the server does not answer; waiting for it");
                }
            }
            Err(error) => return Err(session.missing_node(error, node).await),
        }
    }
}

/// The events after a place in the ledger, the latest last.
async fn newer(session: &Session, node: &str, last: u64) -> Result<Vec<LedgerEntry>, ClientError> {
    let (mut new, mut before) = (Vec::new(), None);
    loop {
        let read = page(session, node, Which::Events, before, LIMIT).await?;
        let whole = read.items.iter().all(|entry| last < entry.sequence);
        new.extend(read.items.into_iter().filter(|entry| last < entry.sequence));
        match read.next {
            Some(next) if whole => before = Some(next),
            Some(_) | None => break,
        }
    }
    new.reverse();
    Ok(new)
}

/// Lines of something that does not end: JSON is one line each.
fn stream(session: &Session, entries: &[LedgerEntry], headers: bool) {
    match session.format {
        Format::Json | Format::Yaml => {
            print(&entries.iter().map(|entry| line(&to_value(entry))).collect::<String>());
        }
        Format::Name | Format::Table | Format::Wide => {
            if headers || !entries.is_empty() {
                show(session, entries, Which::Events, headers);
            }
        }
    }
}

fn show(session: &Session, entries: &[LedgerEntry], which: Which, headers: bool) {
    match session.format {
        Format::Json | Format::Yaml => {
            let kind = match which {
                Which::Events => "NodeEventList",
                Which::All => "NodeHistory",
            };
            let value = json!({ "kind": kind, "items": to_value(&entries) });
            print(&document(&value, session.format == Format::Yaml));
        }
        Format::Name => {
            let line =
                |entry: &LedgerEntry| format!("{}/{}\n", clean(&entry.node_id), entry.sequence);
            print(&entries.iter().map(line).collect::<String>());
        }
        Format::Table | Format::Wide => {
            let grid = match which {
                Which::Events => event_lines(entries, Times::of(session)),
                Which::All => history_lines(entries, Times::of(session)),
            };
            print(&grid.wrapping().render(&session.screen, headers));
        }
    }
}

fn event_lines(entries: &[LedgerEntry], times: Times) -> Grid {
    let headers = &["AGE", "REV", "EVENT", "GPU", "VERDICT", "RULE", "MESSAGE"];
    let mut grid = Grid::new(headers);
    let plain = |text: String| (text, Paint::Plain);
    for entry in entries {
        let event = entry.event.as_ref();
        let verdict = entry.verdict.as_ref().map(verdict_word).unwrap_or_default();
        grid.row([
            plain(times.age(&entry.at)),
            plain(entry.revision.to_string()),
            plain(event.map(event_word).unwrap_or_default()),
            plain(event.map(gpu_word).unwrap_or_default()),
            (verdict.to_owned(), Paint::of_state(verdict)),
            plain(entry.verdict.as_ref().map(rule_word).unwrap_or_default()),
            plain(event_text(entry)),
        ]);
    }
    grid
}

fn history_lines(entries: &[LedgerEntry], times: Times) -> Grid {
    let mut grid = Grid::new(&["AGE", "REV", "SEQ", "WHAT", "MESSAGE"]);
    for entry in entries {
        let text = if entry.event.is_some() { event_text(entry) } else { entry.message.clone() };
        grid.row([
            (times.age(&entry.at), Paint::Plain),
            (entry.revision.to_string(), Paint::Plain),
            (entry.sequence.to_string(), Paint::Plain),
            (entry.kind.clone(), Paint::Plain),
            (text, Paint::Plain),
        ]);
    }
    grid
}

/// `xid 79 x3`.
fn event_word(event: &NodeEvent) -> String {
    let mut word = event.event_type.clone();
    let code = ["xid_code", "sxid_code"].iter().find_map(|name| event.metrics.get(*name));
    match code {
        Some(Value::String(code)) => word.push_str(&format!(" {code}")),
        Some(Value::Number(code)) => word.push_str(&format!(" {code}")),
        Some(Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_)) | None => {}
    }
    if 1 < event.count {
        word.push_str(&format!(" x{}", event.count));
    }
    word
}

/// The place of the GPU, or its UUID; nothing if it is about the whole node.
fn gpu_word(event: &NodeEvent) -> String {
    if 0 <= event.gpu_index { event.gpu_index.to_string() } else { event.gpu_uuid.clone() }
}

fn verdict_word(verdict: &Verdict) -> &'static str {
    verdict.severity.map_or("rule failed", |severity| severity.as_str())
}

/// `fatal-xid (default v3)`.
fn rule_word(verdict: &Verdict) -> String {
    let Verdict { policy, policy_version, rule, .. } = verdict;
    let rule = if rule.is_empty() { "none" } else { rule };
    format!("{rule} ({policy} v{policy_version})")
}

/// What the node said, with the kernel's line if that says more; of a rule that failed, what went wrong.
fn event_text(entry: &LedgerEntry) -> String {
    let mut parts: Vec<&str> = Vec::new();
    if let Some(event) = &entry.event {
        parts.extend([event.message.as_str(), event.raw.as_str()]);
    }
    if let Some(verdict) = &entry.verdict {
        parts.push(&verdict.message);
        parts.push(verdict.error.as_deref().unwrap_or_default());
    }
    let mut said: Vec<&str> = Vec::new();
    for part in parts.into_iter().map(str::trim).filter(|part| !part.is_empty()) {
        if !said.iter().any(|known| known.contains(part)) {
            said.push(part);
        }
    }
    if said.is_empty() { entry.message.clone() } else { said.join("; ") }
}

#[cfg(test)]
mod tests;
