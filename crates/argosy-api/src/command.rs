//! Commands to nodes as they stand on the wire.

use crate::error::Problem;
use crate::safety::BudgetImpact;
use crate::word::words;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use utoipa::ToSchema;

words! {
    /// What a node can be told.
    CommandType {
        /// Take no new work.
        Cordon = "CORDON",
        /// End what runs.
        Drain = "DRAIN",
        /// Run a diagnostic.
        RunDiagnostic = "RUN_DIAGNOSTIC",
        /// Stop.
        Terminate = "TERMINATE",
        /// Take work again.
        Uncordon = "UNCORDON",
    }
}

words! {
    /// How far a command is.
    CommandState {
        /// The node has not fetched it.
        Pending = "pending",
        /// The node has it.
        Acknowledged = "acknowledged",
        /// It was done.
        Completed = "completed",
        /// It was not done.
        Failed = "failed",
        /// The node did not fetch it in time.
        Expired = "expired",
        /// It was taken back.
        Cancelled = "cancelled",
    }
}

words! {
    /// How a command ended, more exactly than its state says.
    CommandOutcome {
        /// It was done.
        Completed = "Completed",
        /// A drain: everything that ran has ended by itself.
        Drained = "Drained",
        /// A drain: what ran was ended at the deadline.
        Forced = "Forced",
        /// A drain: something still ran at the deadline.
        TimedOut = "TimedOut",
        /// The node could not do it.
        Failed = "Failed",
        /// The node did not fetch it in time.
        Expired = "Expired",
        /// It was taken back.
        Cancelled = "Cancelled",
    }
}

impl CommandState {
    /// Whether it has ended.
    pub const fn is_done(self) -> bool {
        match self {
            CommandState::Pending | CommandState::Acknowledged => false,
            CommandState::Completed
            | CommandState::Failed
            | CommandState::Expired
            | CommandState::Cancelled => true,
        }
    }
}

/// A command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Command {
    /// Which.
    #[schema(format = "uuid")]
    pub id: String,
    /// `Command`.
    #[schema(pattern = "^Command$")]
    pub kind: String,
    /// Its path.
    pub href: String,
    /// For whom.
    pub node_id: String,
    /// What to do.
    #[serde(rename = "type")]
    pub type_: CommandType,
    /// How.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, String>,
    /// How far it is.
    pub state: CommandState,
    /// How it ended; absent until it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub outcome: Option<CommandOutcome>,
    /// How far the node is with it, in percent, if it says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, minimum = 0, maximum = 100)]
    pub progress: Option<u8>,
    /// What was said about its end.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// What came of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Value, nullable = false)]
    pub result: Option<Value>,
    /// Who asked.
    pub by: String,
    /// Whether the server asked by itself.
    pub automatic: bool,
    /// Why.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// When it was issued.
    #[schema(format = "date-time")]
    pub issued_at: String,
    /// Undelivered until then, it expires.
    #[schema(format = "date-time")]
    pub expires_at: String,
    /// When it must be done, for a drain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = "date-time")]
    pub deadline: Option<String>,
    /// When the node took it; absent until it has, and after the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = "date-time")]
    pub acknowledged_at: Option<String>,
    /// When it ended; absent until it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = "date-time")]
    pub ended_at: Option<String>,
    /// The commit that last wrote it; its ETag is this number in quotes.
    #[schema(minimum = 0)]
    pub revision: u64,
    /// What it would do to each disruption budget that its node is in; only in the answer to a dry run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub budgets: Vec<BudgetImpact>,
    /// What was done although it exceeds a disruption budget; only in the answer to the request that issues it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// One page of commands, the newest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CommandList {
    /// `CommandList`.
    #[schema(pattern = "^CommandList$")]
    pub kind: String,
    /// Which page, counted from 1.
    #[schema(minimum = 1)]
    pub page: usize,
    /// How many items this page has.
    #[schema(minimum = 0)]
    pub size: usize,
    /// How many items match in all.
    #[schema(minimum = 0)]
    pub total: usize,
    /// The revision the list was read at: watch from here to miss nothing.
    #[schema(minimum = 0)]
    pub revision: u64,
    /// The commands.
    pub items: Vec<Command>,
}

/// Tells a node to do something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CommandCreate {
    /// What.
    #[serde(rename = "type")]
    pub type_: CommandType,
    /// How: `force` of a drain, `tests` of a diagnostic, …; at most 16.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, String>,
    /// Why; it is kept with the command and in the audit log.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schema(max_length = 1024)]
    pub reason: String,
    /// How long a drain may take, in seconds; the pool's setting if it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, minimum = 1, maximum = 604_800)]
    pub drain_for_seconds: Option<u32>,
    /// Whether it may take more nodes out of service than a disruption budget allows; needs the role admin and a
    /// reason.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub over_budget: bool,
}

impl CommandCreate {
    /// A command without parameters.
    pub fn new(type_: CommandType, reason: impl Into<String>) -> Self {
        let (parameters, reason) = (BTreeMap::new(), reason.into());
        Self { type_, parameters, reason, drain_for_seconds: None, over_budget: false }
    }
}

/// Tells several nodes the same. Together they fit the disruption budgets, or none of them is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CommandBatchCreate {
    /// Which nodes, each once; at most 500.
    #[schema(min_items = 1, max_items = 500)]
    pub nodes: Vec<String>,
    /// What.
    #[serde(rename = "type")]
    pub type_: CommandType,
    /// How, as for one node.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, String>,
    /// Why; it is kept with the commands and in the audit log.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schema(max_length = 1024)]
    pub reason: String,
    /// How long a drain may take, in seconds; the pool's setting if it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, minimum = 1, maximum = 604_800)]
    pub drain_for_seconds: Option<u32>,
    /// Whether it may take more nodes out of service than a disruption budget allows; needs the role admin and a
    /// reason.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub over_budget: bool,
}

impl CommandBatchCreate {
    /// The same command for some nodes.
    pub fn new(nodes: Vec<String>, command: CommandCreate) -> Self {
        let CommandCreate { type_, parameters, reason, drain_for_seconds, over_budget } = command;
        Self { nodes, type_, parameters, reason, drain_for_seconds, over_budget }
    }
}

/// What came of telling several nodes the same.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CommandBatch {
    /// `CommandBatch`.
    #[schema(pattern = "^CommandBatch$")]
    pub kind: String,
    /// The commands, in the order of the nodes in the request.
    pub commands: Vec<Command>,
    /// Nodes that cannot be told, and why; they keep no other node from it.
    pub refused: Vec<CommandRefusal>,
    /// What the request does to each disruption budget that its nodes are in.
    pub budgets: Vec<BudgetImpact>,
    /// What was done although it exceeds a disruption budget.
    pub warnings: Vec<String>,
}

/// A node that cannot be told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CommandRefusal {
    /// Which.
    pub node_id: String,
    /// Why: the answer that a request for this node alone would have had.
    pub problem: Problem,
}
