//! How a drain ends: by what everybody who knows of the work on the node has said.
//!
//! What a newcomer gets wrong: that nothing uses a GPU at one moment does not mean that the work has ended. It
//! may be loading, or between two steps. Where workload systems are configured, they decide; the agent can only
//! object.

use super::{Ack, Command, CommandKind, Moved, Outcome, cut, end};
use crate::breaker::later;
use crate::external::{AGENT, LeftOver, Work, systems_of};
use crate::node::{Liveness, Node};
use jiff::{SignedDuration, Timestamp};

/// How long after the deadline of a drain it is waited for what everybody says is left. Longer would keep a node
/// that is to be repaired for an answer that does not come.
const LAST_WORD: SignedDuration = SignedDuration::from_secs(60);

/// The same while what is left is being ended by force. Work that has more time to end itself than this counts
/// as left.
const FORCED_FOR: SignedDuration = SignedDuration::from_mins(5);

/// How often an agent's word on what still runs is taken at most.
const WORD_EVERY: SignedDuration = SignedDuration::from_secs(5);

/// How a drain ended, and what was left.
struct End {
    outcome: Outcome,
    message: String,
    left: Option<String>,
}

/// A drain that is over by what was said about it; `None` while it goes on, or if the command is no open drain.
/// `systems` are the keys of the workload systems that are configured.
pub fn concluded(
    node: &Node,
    command: &Command,
    systems: &[String],
    now: Timestamp,
) -> Option<Moved> {
    if command.kind != CommandKind::Drain || command.state.is_done() {
        return None;
    }
    let End { outcome, message, left } = verdict(node, command, systems, now)?;
    let mut moved = end(node, command, outcome, message, None, now);
    let of = command.id;
    moved.node.external.left = left.map(|what| LeftOver { of, what: cut(&what) });
    Some(moved)
}

/// How a drain ends that goes by its deadline and what was said until now.
fn verdict(node: &Node, command: &Command, systems: &[String], now: Timestamp) -> Option<End> {
    let deadline = command.deadline?;
    let due = deadline <= now;
    let word = |key: &str| {
        let work = node.external.party(key).and_then(|party| party.work.as_ref());
        work.filter(|work| work.of == command.id)
    };
    // What a node said before it fell silent is no evidence any more.
    let agent = word(AGENT).filter(|_| node.liveness == Liveness::Fresh);
    let busy = agent.filter(|work| !work.over);
    let asked = systems_of(node, systems);
    if asked.is_empty() {
        let fetched = command.state != super::CommandState::Pending;
        // It is ending what is left, and says so when it has.
        let forcing = command.forces() && fetched && node.liveness == Liveness::Fresh;
        if !due || forcing && now < later(deadline, LAST_WORD) {
            return None;
        }
        let left = match busy {
            Some(work) => format!("at the deadline, work was left: {}", work.message),
            None => "the deadline passed before everything had ended".to_owned(),
        };
        return Some(timed_out(left));
    }
    let words: Vec<(&str, Option<&Work>)> = asked.iter().map(|key| (*key, word(key))).collect();
    let open: Vec<&(&str, Option<&Work>)> =
        words.iter().filter(|(_, work)| work.is_none_or(|work| !work.over)).collect();
    let forced = words.iter().filter_map(|(_, work)| *work).chain(agent).any(|work| work.forced);
    if open.is_empty() && busy.is_none() {
        let named: Vec<&str> = asked.iter().map(|key| name(key)).collect();
        let says = if named.len() == 1 { "says" } else { "say" };
        let message = format!("{} {says} that no work is left", named.join(", "));
        let (outcome, message) = match (forced, due) {
            (true, _) => (Outcome::Forced, format!("{message}; some was ended by force")),
            (false, false) => (Outcome::Drained, message),
            (false, true) => (Outcome::TimedOut, format!("{message}, but only after the deadline")),
        };
        return Some(End { outcome, message, left: None });
    }
    if !due {
        return None;
    }
    let unheard = open.iter().any(|(_, work)| work.is_none_or(|work| work.at < deadline));
    let forcing = forced || command.forces();
    let patience = if forcing { FORCED_FOR } else { LAST_WORD };
    if (unheard || forcing) && now < later(deadline, patience) {
        return None;
    }
    let mut left: Vec<String> = Vec::new();
    for (key, work) in open {
        let said = work.map(|work| work.message.as_str()).filter(|said| !said.is_empty());
        let said = said.unwrap_or(match work {
            Some(_) => "work is left",
            None => "it has not said what is left",
        });
        left.push(format!("{}: {said}", name(key)));
    }
    left.extend(busy.map(|work| format!("{AGENT}: {}", work.message)));
    Some(timed_out(format!("at the deadline, work was left: {}", left.join("; "))))
}

fn timed_out(message: String) -> End {
    End { outcome: Outcome::TimedOut, left: Some(message.clone()), message }
}

/// The name of a system, without its address.
fn name(key: &str) -> &str {
    key.split(' ').next().unwrap_or_default()
}

/// The node with its agent's word on a drain; `None` if it is no news. `ack.outcome` is its last word.
pub(super) fn agent_said(
    node: &Node,
    command: &Command,
    ack: &Ack,
    now: Timestamp,
) -> Option<Node> {
    let known = node.external.party(AGENT).and_then(|party| party.work.as_ref());
    let known = known.filter(|work| work.of == command.id);
    if ack.outcome.is_none() && ack.message.is_empty() || known.is_some_and(|work| work.last) {
        return None;
    }
    let (over, forced) = match ack.outcome {
        None | Some(Outcome::TimedOut) => (false, false),
        Some(Outcome::Forced) => (true, true),
        // One that cannot look has nothing to object.
        Some(
            Outcome::Completed
            | Outcome::Drained
            | Outcome::Failed
            | Outcome::Expired
            | Outcome::Cancelled,
        ) => (true, false),
    };
    let (of, last, message) = (command.id, ack.outcome.is_some(), cut(&ack.message));
    let work = Work { of, at: now, over, forced, last, message };
    let soon = known.is_some_and(|known| now < later(known.at, WORD_EVERY)) && !last;
    if soon || known.is_some_and(|known| known.says_the_same(&work)) {
        return None;
    }
    let mut after = node.clone();
    after.external.parties.entry(AGENT.to_owned()).or_default().work = Some(work);
    Some(after)
}

/// Whether the node's agent has said its last word on a drain: it can do what is next.
pub(super) fn agent_is_done(node: &Node, command: &Command) -> bool {
    let work = node.external.party(AGENT).and_then(|party| party.work.as_ref());
    work.is_some_and(|work| work.of == command.id && work.last)
}

impl Command {
    /// Whether what is left at its deadline is to be ended.
    pub fn forces(&self) -> bool {
        self.parameters.get("force").is_some_and(|force| force == "true")
    }
}

#[cfg(test)]
mod tests;
