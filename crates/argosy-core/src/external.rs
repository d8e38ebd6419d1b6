//! What the workload system must be told about a node, and what follows from its answer.
//!
//! Level-triggered: what it was told is compared with what the node's duty wants, each time anew. What a
//! newcomer gets wrong: a call that failed may have been heard all the same, so what is being told is
//! written down before it is, and until an answer came the system counts as told neither.

use crate::backoff::delay;
use crate::command::cut;
use crate::ledger::{Entry, What};
use crate::node::{Duty, Flag, FlagNote, Node, Told};
use jiff::{SignedDuration, Timestamp};

/// When to tell it again after a failure: soon, because a node that should take no work takes it.
const RETRY_FIRST: SignedDuration = SignedDuration::from_secs(2);

/// And at the latest. A system that is away for an hour must not be called by ten thousand nodes each
/// second when it comes back.
const RETRY_MAX: SignedDuration = SignedDuration::from_mins(5);

/// What a workload system can be called for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// To tell it this.
    Tell(Told),
    /// To ask it how far the drain is.
    AskDrained,
}

impl Call {
    /// The word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Call::Tell(told) => told.as_str(),
            Call::AskDrained => "drain-status",
        }
    }

    /// One word for its failure.
    const fn failure(self) -> &'static str {
        match self {
            Call::Tell(Told::Uncordon) => "ExternalUncordonFailed",
            Call::Tell(Told::Cordon) => "ExternalCordonFailed",
            Call::Tell(Told::Drain) => "ExternalDrainFailed",
            Call::AskDrained => "ExternalDrainStatusFailed",
        }
    }
}

/// What to do about a node now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Call the system.
    Call(Call),
    /// Nothing before then: it failed a moment ago.
    Wait(Timestamp),
    /// Nothing.
    Nothing,
}

/// What to do about a node now.
pub fn next(node: &Node, now: Timestamp) -> Next {
    let call = match (wanted(node), &node.duty) {
        (Some(told), _) => Call::Tell(told),
        (None, Duty::Draining { done: false, .. }) => Call::AskDrained,
        (None, _) => return Next::Nothing,
    };
    match node.external.retry_at {
        Some(at) if now < at => Next::Wait(at),
        Some(_) | None => Next::Call(call),
    }
}

/// What the system must still be told; `None` if it knows.
fn wanted(node: &Node) -> Option<Told> {
    let external = &node.external;
    let wanted = match node.duty {
        Duty::Active => Told::Uncordon,
        Duty::Cordoned(_) => Told::Cordon,
        Duty::Draining { .. } => Told::Drain,
        // It takes no work any more; whether what ran was asked to leave does not matter now.
        Duty::Terminated(_) if external.told == Told::Drain => Told::Drain,
        Duty::Terminated(_) => Told::Cordon,
    };
    (external.told != wanted || external.telling.is_some()).then_some(wanted)
}

/// The node before it is told something; `None` if that is written down already.
pub fn telling(node: &Node, told: Told) -> Option<Node> {
    if node.external.telling == Some(told) {
        return None;
    }
    let mut after = node.clone();
    after.external.telling = Some(told);
    Some(after)
}

/// The node after the system heard what it was told.
pub fn heard(node: &Node, system: &str, told: Told, now: Timestamp) -> (Node, Vec<Entry>) {
    let mut after = node.clone();
    after.external.told = told;
    after.external.telling = None;
    let mut entries = vec![said(node, system, told.as_str(), Ok(String::new()), now)];
    entries.extend(recovered(&mut after, now));
    (after, entries)
}

/// The node after the system answered a question; `None` if nothing had been wrong.
pub fn answered(node: &Node, now: Timestamp) -> Option<(Node, Vec<Entry>)> {
    let mut after = node.clone();
    let entries = Vec::from_iter(recovered(&mut after, now));
    (after != *node).then_some((after, entries))
}

/// The line that says that the system has seen the end of a drain.
pub fn drained(node: &Node, system: &str, now: Timestamp) -> Entry {
    said(node, system, "drained", Ok("no work is left".to_owned()), now)
}

/// The node after a system could not be reached, or refused. Its duty stays what it is: a decision is
/// not taken back because somebody could not be told of it (L6).
pub fn failed(
    node: &Node,
    system: &str,
    call: Call,
    message: &str,
    now: Timestamp,
) -> (Node, Vec<Entry>) {
    let mut after = node.clone();
    let failures = node.external.failures.saturating_add(1);
    after.external.failures = failures;
    let wait = delay(node.id.as_str(), failures, RETRY_FIRST, RETRY_MAX);
    after.external.retry_at = Some(now.saturating_add(wait).unwrap_or(Timestamp::MAX));
    let message = cut(&message.replace(char::is_control, " "));
    let note = format!("{}: {system}: {message}", call.failure());
    let known = node.flags.get(&Flag::ExternalFailed);
    let mut entries = Vec::new();
    // Said once, and again when it is another failure: a system that is away for a day is one story.
    if known.is_none_or(|known| known.message != note) {
        entries.push(said(node, system, call.as_str(), Err(note.clone()), now));
        let since = known.map_or(now, |known| known.since);
        let message = note.clone();
        after.flags.insert(Flag::ExternalFailed, FlagNote { since, message });
    }
    if known.is_none() {
        entries.push(flag(node, true, note, now));
    }
    (after, entries)
}

/// What fails no more.
fn recovered(node: &mut Node, now: Timestamp) -> Option<Entry> {
    node.external.failures = 0;
    node.external.retry_at = None;
    let lowered = node.flags.remove(&Flag::ExternalFailed)?;
    Some(flag(node, false, lowered.message, now))
}

fn said(
    node: &Node,
    system: &str,
    what: &str,
    outcome: Result<String, String>,
    at: Timestamp,
) -> Entry {
    let ok = outcome.is_ok();
    let message = outcome.unwrap_or_else(|failure| failure);
    let (system, what) = (system.to_owned(), what.to_owned());
    let what = What::External { system, what, ok, message };
    Entry { at, node: node.id.clone(), what }
}

fn flag(node: &Node, raised: bool, message: String, at: Timestamp) -> Entry {
    let flag = Flag::ExternalFailed.as_str().to_owned();
    Entry { at, node: node.id.clone(), what: What::Flag { flag, raised, message } }
}

#[cfg(test)]
mod tests;
