//! What a node was told to be and is not, because it did not fetch it or could not do it, is told again.
//!
//! What a newcomer gets wrong: a command is a way to tell, never the record of what is true. That one expired or
//! failed changes nothing about what the node is to be.

use super::{Command, CommandKind, CommandState, Issued, Outcome, cut, flag_entry};
use crate::backoff::delay;
use crate::breaker::later;
use crate::external::{AGENT, Party, Told, Wish};
use crate::id::CommandId;
use crate::ledger::Entry;
use crate::node::settings::PoolSettings;
use crate::node::{Duty, Flag, FlagNote, Liveness, Node};
use jiff::{SignedDuration, Timestamp};
use std::collections::BTreeMap;

/// When it is told again at first, after it failed: what the machine's hook calls may be away for a moment.
const AGAIN_FIRST: SignedDuration = SignedDuration::from_secs(30);
/// And at the latest: a hook that fails for good costs a command each time.
const AGAIN_MAX: SignedDuration = SignedDuration::from_mins(10);

/// What tells a machine to be as its duty wants; none while a drain does.
const fn kind_of(duty: &Duty) -> Option<CommandKind> {
    match duty {
        Duty::Active => Some(CommandKind::Uncordon),
        Duty::Cordoned(_) | Duty::Draining { done: true, .. } => Some(CommandKind::Cordon),
        Duty::Draining { done: false, .. } => None,
        Duty::Terminated(_) => Some(CommandKind::Terminate),
    }
}

/// Notes whether the node's machine is as it was told, after a command has ended. `was` is the command before that.
pub(super) fn noted(
    node: &mut Node,
    was: &Command,
    command: &Command,
    outcome: Outcome,
    entries: &mut Vec<Entry>,
    now: Timestamp,
) {
    let (told, leaves) = match command.kind {
        CommandKind::RunDiagnostic => return,
        CommandKind::Uncordon => (Told::Uncordon, CommandKind::Uncordon),
        CommandKind::Terminate => (Told::Cordon, CommandKind::Terminate),
        // One that was drained is out of service.
        CommandKind::Cordon | CommandKind::Drain => (Told::Cordon, CommandKind::Cordon),
    };
    let missed = match outcome {
        // Whatever took it back says what is to be.
        Outcome::Cancelled => return,
        Outcome::Expired => true,
        // A drain that fails leaves its machine out of service.
        Outcome::Failed => was.kind != CommandKind::Drain,
        Outcome::Completed | Outcome::Drained | Outcome::Forced | Outcome::TimedOut => {
            was.state == CommandState::Pending && was.kind == CommandKind::Drain
        }
    };
    if !missed {
        if let Some(party) = node.external.parties.get_mut(AGENT) {
            (party.telling, party.retry_at, party.failures) = (None, None, 0);
            party.failure.clear();
        }
        if let Some(lowered) = node.flags.remove(&Flag::CommandFailed) {
            entries.push(flag_entry(node, Flag::CommandFailed, false, lowered.message, now));
        }
        return;
    }
    if kind_of(&node.duty) != Some(leaves) {
        return;
    }
    let id = node.id.clone();
    let party: &mut Party = node.external.parties.entry(AGENT.to_owned()).or_default();
    party.telling = Some(Wish::of(told));
    party.failures = party.failures.saturating_add(1);
    party.retry_at = Some(later(now, delay(id.as_str(), party.failures, AGAIN_FIRST, AGAIN_MAX)));
    if outcome != Outcome::Failed {
        return;
    }
    let message = cut(&format!("{} failed: {}", command.kind.as_str(), command.message()));
    party.failure.clone_from(&message);
    let known = node.flags.get(&Flag::CommandFailed).map(|known| known.since);
    if known.is_none() {
        entries.push(flag_entry(node, Flag::CommandFailed, true, message.clone(), now));
    }
    node.flags.insert(Flag::CommandFailed, FlagNote { since: known.unwrap_or(now), message });
}

/// Whether a node is to be told again what it is to be, as far as the node alone says so.
pub fn is_due_again(node: &Node, now: Timestamp) -> bool {
    let party = node.external.party(AGENT).filter(|party| party.telling.is_some());
    let due = party.is_some_and(|party| party.retry_at.is_none_or(|at| at <= now));
    due && node.liveness == Liveness::Fresh
}

/// Tells a node again what it is to be. `None` if it need not be told, or something that takes it out of service or
/// puts it back waits for it already.
pub fn again(
    node: &Node,
    waiting: &[&Command],
    id: CommandId,
    settings: &PoolSettings,
    now: Timestamp,
) -> Option<Issued> {
    let free = waiting.iter().all(|open| open.kind == CommandKind::RunDiagnostic);
    let kind = kind_of(&node.duty).filter(|_| free && is_due_again(node, now))?;
    let hold = node.duty.hold();
    let command = Command {
        id,
        node: node.id.clone(),
        tenant: node.tenant.clone(),
        kind,
        parameters: BTreeMap::new(),
        by: hold.map_or_else(|| crate::pool::BY.to_owned(), |hold| hold.by.clone()),
        // It is nobody's new decision, and no reason to take the node's cordon back.
        automatic: false,
        reason: hold.map_or_else(|| "told again".to_owned(), |hold| hold.reason.clone()),
        issued_at: now,
        expires_at: later(now, settings.command_life),
        deadline: None,
        state: CommandState::Pending,
    };
    let entries = vec![command.noted(now)];
    Some(Issued { node: node.clone(), command, cancelled: Vec::new(), entries })
}

#[cfg(test)]
mod tests;
