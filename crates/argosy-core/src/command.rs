//! Commands to nodes: delivered at least once, effective at most once, ended exactly once.
//!
//! What a newcomer gets wrong: a command changes the node's duty when it is issued (an operator's) or
//! fetched (our own cordon), not when it is done. Its state tells how far the *node* is.

mod again;
mod drain;
mod parameters;

pub use again::{again, is_due_again};
pub use drain::concluded;

use crate::breaker::later;
use crate::external::{LeftOver, systems_of};
use crate::field::FieldError;
use crate::health::{Absolution, Ends, absolve};
use crate::id::CommandId;
use crate::ledger::{Entry, What};
use crate::node::settings::PoolSettings;
use crate::node::{Duty, Flag, FlagNote, Hold, Liveness, Node, NodeId, NodeStatus};
use jiff::{SignedDuration, Timestamp};
use parameters::Checked;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fmt::Write;

/// A command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Command {
    /// Which.
    pub id: CommandId,
    /// For whom.
    pub node: NodeId,
    /// Whose node.
    pub tenant: String,
    /// What to do.
    pub kind: CommandKind,
    /// How; at most `PARAMETERS_MAX`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, String>,
    /// Who asked.
    pub by: String,
    /// Whether we asked by ourselves.
    pub automatic: bool,
    /// Why.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// When it was issued.
    pub issued_at: Timestamp,
    /// Undelivered until then, it expires.
    pub expires_at: Timestamp,
    /// When it must be done, for a drain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Timestamp>,
    /// How far it is.
    pub state: CommandState,
}

/// How many diagnostics may wait for one node; what it is to be always fits beside them.
///
/// A node polls every ten seconds and runs one command at a time, so a longer queue means that
/// nobody is listening: refusing the next command tells the operator now, not in an hour.
pub const PENDING_MAX: usize = 32;
/// How many parameters a command may have, and how long each may be, in bytes.
pub const PARAMETERS_MAX: usize = 16;
/// See `PARAMETERS_MAX`.
pub const PARAMETER_LEN_MAX: usize = 1024;
/// The longest result a node may send back, as JSON text, in bytes. Of a longer one only its length is
/// kept: refusing it would leave the command open for ever.
pub const RESULT_LEN_MAX: usize = 64 * 1024;
/// The longest reason, and the longest message of a node, in bytes.
pub const REASON_LEN_MAX: usize = 1024;
/// How many commands that have ended are kept for one node, whatever their age: a week of one each
/// hour and a half. The ledger has the rest.
pub const ENDED_KEPT: usize = 100;

/// What a node can be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum CommandKind {
    /// Take no new work.
    Cordon,
    /// End what runs.
    Drain,
    /// Run a diagnostic.
    RunDiagnostic,
    /// Stop.
    Terminate,
    /// Take work again.
    Uncordon,
}

impl CommandKind {
    /// All, in the order of their numbers on the wire, which begin at 1.
    pub const ALL: [CommandKind; 5] = [
        CommandKind::Cordon,
        CommandKind::Drain,
        CommandKind::RunDiagnostic,
        CommandKind::Terminate,
        CommandKind::Uncordon,
    ];

    /// The word.
    pub const fn as_str(self) -> &'static str {
        match self {
            CommandKind::Cordon => "CORDON",
            CommandKind::Drain => "DRAIN",
            CommandKind::RunDiagnostic => "RUN_DIAGNOSTIC",
            CommandKind::Terminate => "TERMINATE",
            CommandKind::Uncordon => "UNCORDON",
        }
    }
}

/// How far a command is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "lowercase")]
pub enum CommandState {
    /// The node has not fetched it.
    Pending,
    /// The node has it.
    Acknowledged {
        /// Since when.
        at: Timestamp,
        /// How far it is, in percent, if it says.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        progress: Option<u8>,
    },
    /// It has ended.
    Done {
        /// When.
        at: Timestamp,
        /// How.
        outcome: Outcome,
        /// What was said about it.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        message: String,
        /// What came of it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result: Option<Value>,
    },
}

/// How long a node that could not do what it was told is left alone before it is told the same again by
/// ourselves.
const RETRY_AFTER: SignedDuration = SignedDuration::from_secs(60);

impl Command {
    /// Until when nothing like it is sent by ourselves: the node just said that it cannot.
    pub fn failed_until(&self) -> Option<Timestamp> {
        match &self.state {
            CommandState::Done { at, outcome: Outcome::Failed, .. } => {
                Some(later(*at, RETRY_AFTER))
            }
            CommandState::Done { .. }
            | CommandState::Pending
            | CommandState::Acknowledged { .. } => None,
        }
    }
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Outcome {
    /// It was done; of a drain, everything that ran has ended.
    Completed,
    /// A drain: everything that ran has ended by itself before the deadline, as every workload system says; where
    /// there is none, as the node says.
    Drained,
    /// A drain: what was left at the deadline was ended by force, and nothing is left.
    Forced,
    /// A drain: something still ran at the deadline.
    TimedOut,
    /// The node could not do it.
    Failed,
    /// The node did not fetch it in time.
    Expired,
    /// It was taken back.
    Cancelled,
}

impl CommandState {
    /// `pending`, `acknowledged`, `completed`, `failed`, `expired` or `cancelled`.
    pub const fn word(&self) -> &'static str {
        match self {
            CommandState::Pending => "pending",
            CommandState::Acknowledged { .. } => "acknowledged",
            CommandState::Done { outcome, .. } => match outcome {
                Outcome::Completed | Outcome::Drained | Outcome::Forced => "completed",
                Outcome::TimedOut | Outcome::Failed => "failed",
                Outcome::Expired => "expired",
                Outcome::Cancelled => "cancelled",
            },
        }
    }

    /// Whether it has ended.
    pub const fn is_done(&self) -> bool {
        matches!(self, CommandState::Done { .. })
    }
}

/// What somebody wants a node to do.
#[derive(Clone, Debug, PartialEq)]
pub struct Order {
    /// What.
    pub kind: CommandKind,
    /// How.
    pub parameters: BTreeMap<String, String>,
    /// Why.
    pub reason: String,
    /// Who.
    pub by: String,
    /// Whether nobody asked: then it takes effect when the node fetches it.
    pub automatic: bool,
    /// How long a drain may take.
    pub drain_for: Option<SignedDuration>,
}

impl Order {
    /// What makes two orders for one node the same request: SHA-256 in hex of all that was asked for.
    pub fn digest(&self, node: &NodeId) -> String {
        let Order { kind, parameters, reason, by, automatic, drain_for } = self;
        let drain_s = drain_for.map(|time| time.as_secs());
        let asked = json!([node, kind, parameters, reason, by, automatic, drain_s]);
        Sha256::digest(asked.to_string()).iter().fold(String::new(), |mut hex, byte| {
            write!(hex, "{byte:02x}").expect("writing to a string cannot fail");
            hex
        })
    }
}

/// What follows from an order: the node, the command, and commands that it ends.
#[derive(Clone, Debug, PartialEq)]
pub struct Issued {
    /// The node; the same as before if its duty does not change yet.
    pub node: Node,
    /// The new command.
    pub command: Command,
    /// Commands of the node that are cancelled by it.
    pub cancelled: Vec<Command>,
    /// For the ledger.
    pub entries: Vec<Entry>,
}

/// What follows from something that happened to a command.
#[derive(Clone, Debug, PartialEq)]
pub struct Moved {
    /// The node; the same as before if it does not matter to it.
    pub node: Node,
    /// The command.
    pub command: Command,
    /// For the ledger.
    pub entries: Vec<Entry>,
}

/// Why an order is refused.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Refused {
    /// The node is not in a state for it.
    #[error("{0}")]
    Precondition(String),
    /// Too many commands wait already.
    #[error("{0}")]
    TooMany(String),
    /// A parameter or the reason is wrong.
    #[error("{}", .0.first().map_or("the command is not valid", |error| error.message.as_str()))]
    Invalid(Vec<FieldError>),
}

/// Decides on an order. `waiting` are the node's commands that have not ended.
///
/// Whatever contradicts the order is cancelled by it: a cordon or an uncordon takes a drain back, a
/// termination takes everything back. An operator's order also replaces our own of the same kind; ours
/// never touches what an operator decided.
///
/// # Errors
/// Why it cannot be given; says the node's status, or the id of the command that does the same.
pub fn issue(
    node: &Node,
    waiting: &[&Command],
    order: Order,
    id: CommandId,
    settings: &PoolSettings,
    now: Timestamp,
) -> Result<Issued, Refused> {
    let Checked { order, drain_for } = parameters::check(order, settings)?;
    allowed(node, waiting, &order)?;
    let Order { kind, parameters, reason, by, automatic, drain_for: _ } = order;
    let later = |time: SignedDuration| now.saturating_add(time).unwrap_or(Timestamp::MAX);
    let command = Command {
        id,
        node: node.id.clone(),
        tenant: node.tenant.clone(),
        kind,
        parameters,
        by: by.clone(),
        automatic,
        reason: reason.clone(),
        issued_at: now,
        expires_at: later(settings.command_life),
        deadline: drain_for.map(later),
        state: CommandState::Pending,
    };
    let overruled: Vec<&&Command> =
        waiting.iter().filter(|open| overrules(kind, open.kind)).collect();
    // What takes a node out of service or puts it back always has a place: it overrules what waits of its kind.
    let room = PENDING_MAX.saturating_sub(waiting.len().saturating_sub(overruled.len()));
    if kind == CommandKind::RunDiagnostic && room == 0 {
        return Err(Refused::TooMany(format!(
            "{} commands wait for node {} already, and at most {PENDING_MAX} may; it may not be \
             fetching them",
            waiting.len(),
            node.id
        )));
    }
    let mut entries = Vec::new();
    let why = sentence(kind, &by, &reason);
    let cancelled: Vec<Command> = overruled
        .into_iter()
        .map(|open| open.ended(Outcome::Cancelled, format!("overruled by {why}"), None, now))
        .collect();
    entries.extend(cancelled.iter().map(|open| open.noted(now)));
    entries.push(command.noted(now));
    let mut after = node.clone();
    if kind == CommandKind::Uncordon && !automatic {
        let absolution = Absolution::Operator(by.clone());
        after = absolved(after, &absolution, &mut entries, now);
    }
    let hold = Hold { by, automatic, reason, at: now };
    let duty = match (kind, command.deadline) {
        // Our own drain is to stop: the node stays out of service, for the reason it has.
        (CommandKind::Cordon, _) if automatic => match &node.duty {
            Duty::Draining { hold, done: false, .. } => Some(Duty::Cordoned(hold.clone())),
            Duty::Active
            | Duty::Cordoned(_)
            | Duty::Draining { done: true, .. }
            | Duty::Terminated(_) => None,
        },
        (CommandKind::Cordon, _) => Some(Duty::Cordoned(hold)),
        (CommandKind::Drain, Some(deadline)) => {
            Some(Duty::Draining { hold, command: id, deadline, done: false })
        }
        (CommandKind::Uncordon, _) => Some(Duty::Active),
        (CommandKind::Terminate, _) => Some(Duty::Terminated(hold)),
        (CommandKind::RunDiagnostic | CommandKind::Drain, _) => None,
    };
    if let Some(duty) = duty {
        set_duty(&mut after, duty, &why, &mut entries, now);
    }
    Ok(Issued { node: after, command, cancelled, entries })
}

/// Whether the node, and what it was told before, allow an order.
fn allowed(node: &Node, waiting: &[&Command], order: &Order) -> Result<(), Refused> {
    let Order { kind, automatic, .. } = order;
    let refuse = |why: String| Err(Refused::Precondition(why));
    let (id, status) = (&node.id, node.status().as_str());
    if let Duty::Terminated(hold) = &node.duty {
        return refuse(format!(
            "node {id} was terminated by {} and takes no commands (current status: {status}); forget \
             it to let a new machine register under its id",
            hold.by
        ));
    }
    if let Some(hold) = node.duty.hold().filter(|hold| *automatic && !hold.automatic)
        && *kind != CommandKind::RunDiagnostic
    {
        return refuse(format!(
            "node {id} is held by {} and is theirs to release (current status: {status})",
            hold.by
        ));
    }
    // What stands is not asked for again. An operator's order replaces ours, which a recovery would
    // otherwise undo.
    let stands = |open: &&&Command| open.kind == *kind && (*automatic || !open.automatic);
    let same = match (kind, &node.duty) {
        (CommandKind::RunDiagnostic, _) => {
            waiting.iter().find(|open| open.kind == *kind && open.parameters == order.parameters)
        }
        (CommandKind::Drain, _) => waiting.iter().find(stands),
        (CommandKind::Cordon, Duty::Cordoned(_)) => waiting.iter().find(stands),
        (CommandKind::Cordon, Duty::Draining { done: false, .. }) => None,
        (CommandKind::Cordon, _) if *automatic => waiting.iter().find(stands),
        (CommandKind::Cordon | CommandKind::Uncordon | CommandKind::Terminate, _) => None,
    };
    if let Some(same) = same {
        return refuse(format!(
            "{} {} was issued to node {id} by {} and has not ended (current status: {status})",
            kind.as_str(),
            same.id,
            same.by
        ));
    }
    match (kind, &node.duty) {
        (CommandKind::Uncordon, Duty::Active) => refuse(not_cordoned(id, node.status())),
        (CommandKind::Cordon, Duty::Cordoned(_) | Duty::Draining { done: true, .. })
            if *automatic =>
        {
            refuse(format!("node {id} is out of service already (current status: {status})"))
        }
        // A machine is ended by a person, or by whoever owns its instance; never by its health.
        (CommandKind::Terminate, _) if *automatic => {
            refuse(format!("node {id} is not terminated by ourselves"))
        }
        _ => Ok(()),
    }
}

/// Whether an order ends an open command of the other kind: both cannot be done, or the second makes
/// the first pointless.
const fn overrules(order: CommandKind, open: CommandKind) -> bool {
    match order {
        CommandKind::Terminate => true,
        CommandKind::Cordon | CommandKind::Uncordon => {
            matches!(open, CommandKind::Cordon | CommandKind::Uncordon | CommandKind::Drain)
        }
        // A cordon before a drain is its first half.
        CommandKind::Drain => matches!(open, CommandKind::Uncordon | CommandKind::Drain),
        CommandKind::RunDiagnostic => false,
    }
}

/// What follows from the node having fetched a command: it is acknowledged, and our own cordon takes
/// effect. `None` if the node had it already.
pub fn delivered(node: &Node, command: &Command, now: Timestamp) -> Option<Moved> {
    if command.state != CommandState::Pending {
        return None;
    }
    let state = CommandState::Acknowledged { at: now, progress: None };
    let command = Command { state, ..command.clone() };
    let mut entries = vec![command.noted(now)];
    let node = in_effect(node, &command, &mut entries, now);
    Some(Moved { node, command, entries })
}

/// Our own cordon holds although the node has not fetched it; `None` if there is nothing to enforce.
pub fn enforced(node: &Node, command: &Command, now: Timestamp) -> Option<Moved> {
    let mut entries = Vec::new();
    let after = in_effect(node, command, &mut entries, now);
    (after.duty != node.duty).then(|| Moved { node: after, command: command.clone(), entries })
}

/// The node, once our own cordon has reached it.
fn in_effect(node: &Node, command: &Command, entries: &mut Vec<Entry>, now: Timestamp) -> Node {
    let mut after = node.clone();
    let ours = command.kind == CommandKind::Cordon && command.automatic;
    if ours && !command.state.is_done() && node.duty == Duty::Active {
        let Command { by, reason, .. } = command;
        let hold = Hold { by: by.clone(), automatic: true, reason: reason.clone(), at: now };
        let why = sentence(command.kind, by, reason);
        set_duty(&mut after, Duty::Cordoned(hold), &why, entries, now);
    }
    after
}

/// What follows from a node having asked for its commands; `None` if we knew that it does.
pub fn fetched(node: &Node, now: Timestamp) -> Option<(Node, Vec<Entry>)> {
    let mut after = node.clone();
    let lowered = after.flags.remove(&Flag::CommandChannelDown)?;
    let flag = Flag::CommandChannelDown;
    let entry = flag_entry(&after, flag, false, lowered.message, now);
    Some((after, vec![entry]))
}

/// What a node says about a command.
#[derive(Clone, Debug, PartialEq)]
pub struct Ack {
    /// How far it is: `None` means that it has the command and works on it.
    pub outcome: Option<Outcome>,
    /// In percent.
    pub progress: Option<u8>,
    /// A sentence.
    pub message: String,
    /// What came of it.
    pub result: Option<Value>,
}

/// Takes in what a node says about a command; `None` if that is no news (a repeat: I5). Where workload systems are
/// configured, which `systems` are, what it says of a drain is one voice among theirs.
pub fn acknowledged(
    node: &Node,
    command: &Command,
    ack: Ack,
    systems: &[String],
    now: Timestamp,
) -> Option<Moved> {
    if command.state.is_done() {
        return None;
    }
    if command.kind == CommandKind::Drain
        && (ack.outcome.is_none() || !systems_of(node, systems).is_empty())
    {
        return drain_acknowledged(node, command, &ack, systems, now);
    }
    let Ack { outcome, progress, message, result } = ack;
    let first = delivered(node, command, now);
    let news = first.is_some();
    let at_hand = Moved { node: node.clone(), command: command.clone(), entries: Vec::new() };
    let Moved { node, mut command, mut entries } = first.unwrap_or(at_hand);
    let Some(outcome) = outcome else {
        let further = advance(&mut command, progress);
        return (news || further).then_some(Moved { node, command, entries });
    };
    let passed = result.as_ref().and_then(|result| result.get("passed")) == Some(&json!(true));
    let (outcome, message) = settled(&command, outcome, cut(&message), now);
    let result = result.map(bounded);
    let mut node = node;
    if command.kind == CommandKind::RunDiagnostic && outcome == Outcome::Completed && passed {
        let absolution = Absolution::Diagnostic(command.id);
        node = absolved(node, &absolution, &mut entries, now);
    }
    let ended = end(&node, &command, outcome, message, result, now);
    entries.extend(ended.entries);
    Some(Moved { entries, ..ended })
}

/// Notes how far a command is that its node works on; whether that is further than before.
fn advance(command: &mut Command, progress: Option<u8>) -> bool {
    let CommandState::Acknowledged { progress: known, .. } = &mut command.state else {
        return false;
    };
    let progress = progress.map(|percent| percent.min(100)).max(*known);
    let further = *known < progress;
    *known = progress;
    further
}

/// Takes in what a node says about a drain whose end is not the node's alone to say, or that goes on.
fn drain_acknowledged(
    node: &Node,
    command: &Command,
    ack: &Ack,
    systems: &[String],
    now: Timestamp,
) -> Option<Moved> {
    let first = delivered(node, command, now);
    let mut news = first.is_some();
    let at_hand = Moved { node: node.clone(), command: command.clone(), entries: Vec::new() };
    let Moved { mut node, mut command, mut entries } = first.unwrap_or(at_hand);
    news |= advance(&mut command, ack.progress);
    if let Some(after) = drain::agent_said(&node, &command, ack, now) {
        (node, news) = (after, true);
    }
    match concluded(&node, &command, systems, now) {
        Some(ended) if !systems_of(&node, systems).is_empty() => {
            entries.extend(ended.entries);
            Some(Moved { entries, ..ended })
        }
        Some(_) | None => news.then_some(Moved { node, command, entries }),
    }
}

/// The outcome a node claims, as it is written down: only a drain is drained, only we take a command
/// back, and after its deadline a drain is never drained, whatever the reason that we hear so late.
fn settled(
    command: &Command,
    claimed: Outcome,
    message: String,
    now: Timestamp,
) -> (Outcome, String) {
    if command.kind != CommandKind::Drain {
        let outcome = match claimed {
            Outcome::Completed | Outcome::Drained | Outcome::Forced => Outcome::Completed,
            Outcome::Expired => Outcome::Expired,
            Outcome::TimedOut | Outcome::Failed | Outcome::Cancelled => Outcome::Failed,
        };
        return (outcome, message);
    }
    let late = command.deadline.is_some_and(|deadline| deadline < now);
    match claimed {
        Outcome::Completed | Outcome::Drained if late => {
            let said = if message.is_empty() { "drained" } else { &message };
            (Outcome::TimedOut, format!("{said}; said after the deadline"))
        }
        Outcome::Completed | Outcome::Drained => (Outcome::Drained, message),
        Outcome::Cancelled => (Outcome::Failed, message),
        Outcome::Forced | Outcome::TimedOut | Outcome::Failed | Outcome::Expired => {
            (claimed, message)
        }
    }
}

/// What time does to a command: undelivered too long, it expires; a drain past its deadline ends; one
/// that a node fetched and never mentioned again is given up; our own cordon of a node that recovered
/// before it fetched it is taken back. `None` if it is not time yet.
///
/// `waiting` are the node's commands that have not ended; `systems` the keys of the workload systems that are
/// configured.
pub fn elapsed(
    node: &Node,
    command: &Command,
    waiting: &[&Command],
    settings: &PoolSettings,
    systems: &[String],
    now: Timestamp,
) -> Option<Moved> {
    let drain = command.kind == CommandKind::Drain;
    let overdue = command.deadline.is_some_and(|deadline| deadline <= now);
    match &command.state {
        CommandState::Done { .. } => None,
        CommandState::Pending if moot(node, command) => {
            let message = "the node was well again before it fetched it".to_owned();
            Some(end(node, command, Outcome::Cancelled, message, None, now))
        }
        // A workload system works on it, whether or not the node does.
        CommandState::Pending if drain && told_to_drain(node, command) => {
            concluded(node, command, systems, now)
        }
        CommandState::Pending if overdue || command.expires_at <= now => {
            Some(expired(node, command, waiting, now))
        }
        CommandState::Pending => None,
        CommandState::Acknowledged { .. } if drain => concluded(node, command, systems, now),
        CommandState::Acknowledged { at, .. } => {
            let patience = command.takes().checked_add(settings.command_life)?;
            if now.duration_since(*at) < patience {
                return None;
            }
            // Who was told to stop and says nothing more did as it was told.
            let (outcome, message) = if command.kind == CommandKind::Terminate {
                (Outcome::Completed, "the node fetched it, and nothing was heard of it since")
            } else {
                (Outcome::Failed, "the node fetched it and never said what came of it")
            };
            Some(end(node, command, outcome, message.to_owned(), None, now))
        }
    }
}

/// What becomes of an open command whose node was forgotten; `None` if it has ended.
pub fn orphaned(command: &Command, now: Timestamp) -> Option<(Command, Entry)> {
    if command.state.is_done() {
        return None;
    }
    let message = "the node was forgotten".to_owned();
    let command = command.ended(Outcome::Cancelled, message, None, now);
    let entry = command.noted(now);
    Some((command, entry))
}

/// What becomes of our own command that may not be carried out any more; `None` if the node has it
/// already: then it is too late.
pub fn withdrawn(node: &Node, command: &Command, why: &str, now: Timestamp) -> Option<Moved> {
    let ours = command.automatic && command.state == CommandState::Pending;
    ours.then(|| end(node, command, Outcome::Cancelled, why.to_owned(), None, now))
}

/// Our own cordon, not fetched yet, of a node that nothing speaks against any more: it would act on
/// what was, not on what is.
fn moot(node: &Node, command: &Command) -> bool {
    let ours = command.kind == CommandKind::Cordon && command.automatic;
    ours && node.duty == Duty::Active && !node.is_bad()
}

fn told_to_drain(node: &Node, command: &Command) -> bool {
    let mut told = node.external.parties.values().filter_map(|party| party.told.as_ref());
    told.any(|told| told.command == Some(command.id))
}

fn expired(node: &Node, command: &Command, waiting: &[&Command], now: Timestamp) -> Moved {
    let in_hand = |open: &&&Command| open.state != CommandState::Pending;
    let ahead = waiting.iter().find(|open| open.age() < command.age() && in_hand(open));
    let life_s = now.duration_since(command.issued_at).as_secs();
    let message = match ahead {
        Some(open) => {
            format!("it waited {life_s} s behind {} {}", open.kind.as_str(), open.id)
        }
        None => format!("the node did not fetch it for {life_s} s"),
    };
    let mut moved = end(node, command, Outcome::Expired, message, None, now);
    let deaf = node.liveness == Liveness::Fresh && ahead.is_none();
    if deaf && !node.flags.contains_key(&Flag::CommandChannelDown) {
        let message = format!(
            "the node is heard, but did not fetch {} {} for {life_s} s",
            command.kind.as_str(),
            command.id
        );
        let flag = Flag::CommandChannelDown;
        moved.entries.push(flag_entry(node, flag, true, message.clone(), now));
        let note = FlagNote { since: now, message };
        moved.node.flags.insert(Flag::CommandChannelDown, note);
    }
    moved
}

/// Ends a command, and the drain of its node with it.
fn end(
    node: &Node,
    command: &Command,
    outcome: Outcome,
    message: String,
    result: Option<Value>,
    now: Timestamp,
) -> Moved {
    let was = command;
    let command = command.ended(outcome, message, result, now);
    let mut entries = vec![command.noted(now)];
    let mut node = node.clone();
    if let Duty::Draining { hold, command: of, deadline, done: false } = &node.duty
        && *of == command.id
    {
        let duty = match outcome {
            // It is as empty as it will get.
            Outcome::Completed | Outcome::Drained | Outcome::Forced | Outcome::TimedOut => {
                let (hold, deadline) = (hold.clone(), *deadline);
                Duty::Draining { hold, command: command.id, deadline, done: true }
            }
            // Nobody ends what runs on it, but it still takes no new work.
            Outcome::Failed | Outcome::Expired | Outcome::Cancelled => Duty::Cordoned(hold.clone()),
        };
        let what = command.message().to_owned();
        let left = (outcome == Outcome::TimedOut).then(|| LeftOver { of: command.id, what });
        node.external.left = left;
        let why = format!("its drain ended: {outcome:?}");
        set_duty(&mut node, duty, &why, &mut entries, now);
    }
    again::noted(&mut node, was, &command, outcome, &mut entries, now);
    Moved { node, command, entries }
}

impl Command {
    /// The command, ended.
    fn ended(
        &self,
        outcome: Outcome,
        message: String,
        result: Option<Value>,
        at: Timestamp,
    ) -> Self {
        Self { state: CommandState::Done { at, outcome, message, result }, ..self.clone() }
    }

    /// The line of the ledger that says how far it is.
    fn noted(&self, at: Timestamp) -> Entry {
        let (outcome, message) = match &self.state {
            CommandState::Pending | CommandState::Acknowledged { .. } => (None, &self.reason),
            CommandState::Done { outcome, message, .. } => (Some(*outcome), message),
        };
        let what = What::Command {
            id: self.id,
            kind: self.kind,
            state: self.state.word().to_owned(),
            outcome,
            by: self.by.clone(),
            message: message.clone(),
        };
        Entry { at, node: self.node.clone(), what }
    }

    /// What was said about how it ended.
    fn message(&self) -> &str {
        match &self.state {
            CommandState::Done { message, .. } => message,
            CommandState::Pending | CommandState::Acknowledged { .. } => "",
        }
    }

    /// What commands of a node are ordered by.
    fn age(&self) -> (Timestamp, CommandId) {
        (self.issued_at, self.id)
    }

    /// How long it may take by itself, once the node has it.
    fn takes(&self) -> SignedDuration {
        let seconds = self.parameters.get("seconds").and_then(|seconds| seconds.parse().ok());
        SignedDuration::from_secs(seconds.unwrap_or(0))
    }
}

/// Changes the duty, and says so if the word that people see changes with it.
fn set_duty(node: &mut Node, duty: Duty, why: &str, entries: &mut Vec<Entry>, at: Timestamp) {
    let from = node.status();
    node.duty = duty;
    let to = node.status();
    if from != to {
        let what = What::Status { from: from.into(), to: to.into(), reason: why.to_owned() };
        entries.push(Entry { at, node: node.id.clone(), what });
    }
}

/// The node without the findings of events, if it has any.
fn absolved(node: Node, why: &Absolution, entries: &mut Vec<Entry>, now: Timestamp) -> Node {
    if node.findings.iter().all(|finding| finding.ends == Ends::WhenCheckPasses) {
        return node;
    }
    let taken = absolve(&node, why, now);
    entries.extend(taken.entries);
    taken.node.unwrap_or(node)
}

fn flag_entry(node: &Node, flag: Flag, raised: bool, message: String, at: Timestamp) -> Entry {
    let flag = flag.as_str().to_owned();
    Entry { at, node: node.id.clone(), what: What::Flag { flag, raised, message } }
}

fn sentence(kind: CommandKind, by: &str, reason: &str) -> String {
    let colon = if reason.is_empty() { "" } else { ": " };
    format!("{} by {by}{colon}{reason}", kind.as_str())
}

/// Text from outside, cut to what is kept.
pub(crate) fn cut(text: &str) -> String {
    let end = text.floor_char_boundary(REASON_LEN_MAX);
    text.get(..end).unwrap_or_default().to_owned()
}

/// A result that is small enough to keep.
fn bounded(result: Value) -> Value {
    let len = result.to_string().len();
    if len <= RESULT_LEN_MAX { result } else { json!({"dropped": true, "length": len}) }
}

/// The commands a node should have now, one at a time: the oldest that has not ended, diagnostics last, but for a
/// drain on which it has said its last word. An agent that keeps a journal may be told again and again.
pub fn due<'a>(node: &Node, waiting: &[&'a Command]) -> Option<&'a Command> {
    let open = waiting.iter().filter(|command| !drain::agent_is_done(node, command));
    let rank = |command: &Command| (command.kind == CommandKind::RunDiagnostic, command.age());
    open.min_by_key(|command| rank(command)).copied()
}

/// The sentence for an uncordon of a node that is not cordoned.
pub fn not_cordoned(node: &NodeId, status: NodeStatus) -> String {
    format!("node {node} is not cordoned (current status: NODE_STATUS_{})", status.as_str())
}

#[cfg(test)]
mod tests;
