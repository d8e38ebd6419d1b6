//! Commands to nodes: delivered at least once, effective at most once, ended exactly once.
//!
//! What a newcomer gets wrong: a command changes the node's duty when it is issued (an operator's) or
//! fetched (our own cordon), not when it is done. Its state tells how far the *node* is.

use crate::id::CommandId;
use crate::node::settings::PoolSettings;
use crate::node::{Node, NodeId, NodeStatus};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

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

/// How many commands may wait for one node.
///
/// A node polls every ten seconds and runs one command at a time, so a longer queue means that
/// nobody is listening: refusing the next command tells the operator now, not in an hour.
pub const PENDING_MAX: usize = 32;
/// How many parameters a command may have, and how long each may be, in bytes.
pub const PARAMETERS_MAX: usize = 16;
/// See `PARAMETERS_MAX`.
pub const PARAMETER_LEN_MAX: usize = 1024;
/// The longest result a node may send back, as JSON text, in bytes.
pub const RESULT_LEN_MAX: usize = 64 * 1024;

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

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Outcome {
    /// It was done; of a drain, everything that ran has ended.
    Completed,
    /// A drain: everything that ran has ended by itself.
    Drained,
    /// A drain: what ran was ended at the deadline.
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

/// What follows from an order: the node, the command, and commands that it ends.
#[derive(Clone, Debug, PartialEq)]
pub struct Issued {
    /// The node; the same as before if its duty does not change yet.
    pub node: Node,
    /// The new command.
    pub command: Command,
    /// Commands of the node that are cancelled by it.
    pub cancelled: Vec<Command>,
}

/// Why an order is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The node is not in a state for it.
    #[error("{0}")]
    Precondition(String),
    /// Too many commands wait already.
    #[error("{0}")]
    TooMany(String),
    /// A parameter is wrong.
    #[error("{0}")]
    Invalid(String),
}

/// Decides on an order. `waiting` are the node's commands that have not ended.
///
/// # Errors
/// Why it cannot be given; says the node's status.
pub fn issue(
    node: &Node,
    waiting: &[&Command],
    order: Order,
    id: CommandId,
    settings: &PoolSettings,
    now: Timestamp,
) -> Result<Issued, Refused> {
    let _ = (node, waiting, order, id, settings, now);
    todo!()
}

/// What follows from the node having fetched a command: it is acknowledged, and our own cordon takes
/// effect. `None` if the node had it already.
pub fn delivered(node: &Node, command: &Command, now: Timestamp) -> Option<(Node, Command)> {
    let _ = (node, command, now);
    todo!()
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

/// Takes in what a node says about a command; `None` if that is no news (a repeat: I5).
pub fn acknowledged(
    node: &Node,
    command: &Command,
    ack: Ack,
    now: Timestamp,
) -> Option<(Node, Command)> {
    let _ = (node, command, ack, now);
    todo!()
}

/// What time does to a command: undelivered too long, it expires; a drain past its deadline ends.
/// `None` if it is not time yet.
pub fn elapsed(
    node: &Node,
    command: &Command,
    settings: &PoolSettings,
    now: Timestamp,
) -> Option<(Node, Command)> {
    let _ = (node, command, settings, now);
    todo!()
}

/// The commands a node should have now, oldest first, one at a time: the oldest that has not ended.
/// An agent that keeps a journal may be told again and again.
pub fn due<'a>(waiting: &[&'a Command]) -> Option<&'a Command> {
    waiting.iter().min_by_key(|command| (command.issued_at, command.id)).copied()
}

/// The sentence for an uncordon of a node that is not cordoned.
pub fn not_cordoned(node: &NodeId, status: NodeStatus) -> String {
    format!("node {node} is not cordoned (current status: NODE_STATUS_{})", status.as_str())
}
