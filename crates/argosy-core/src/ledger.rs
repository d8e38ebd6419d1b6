//! What is written down about a node, so that every action can be explained: one stream, one subject a
//! node, in order. `why` reads it.

use crate::command::{CommandKind, Outcome};
use crate::health::{Event, HealthState, Severity};
use crate::id::CommandId;
use crate::node::{Liveness, NodeId, NodeStatus};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// One line of a node's ledger. The store adds sequence and revision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// When, by our clock.
    pub at: Timestamp,
    /// About whom.
    pub node: NodeId,
    /// What.
    #[serde(flatten)]
    pub what: What,
}

/// What happened, or was decided.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum What {
    /// It registered, for the first time or with something new to say.
    Registered {
        /// What is new: `first registration`, `rebooted`, `driver 550.1 -> 560.2`.
        message: String,
    },
    /// It was refused.
    RegistrationRefused {
        /// Why.
        message: String,
    },
    /// Something happened on it, and what the policy made of it.
    Event {
        /// What.
        event: Box<Event>,
        /// The verdict.
        verdict: VerdictNote,
        /// The finding it became part of, if any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        finding: Option<String>,
    },
    /// A check changed its word.
    Check {
        /// Which.
        name: String,
        /// From.
        from: HealthState,
        /// To.
        to: HealthState,
        /// What the node says.
        message: String,
    },
    /// A finding ended.
    Cleared {
        /// Which.
        finding: String,
        /// Why.
        reason: String,
    },
    /// Its health changed.
    Health {
        /// From.
        from: HealthState,
        /// To.
        to: HealthState,
        /// The rule or check that decided.
        reason: String,
        /// The findings it rests on.
        findings: Vec<String>,
    },
    /// It went silent, or was heard again.
    Liveness {
        /// From.
        from: Liveness,
        /// To.
        to: Liveness,
        /// How long it was silent, and what we concluded.
        reason: String,
    },
    /// The word people see changed.
    Status {
        /// From.
        from: NodeStatusWord,
        /// To.
        to: NodeStatusWord,
        /// Why.
        reason: String,
    },
    /// We decided to act, or not to.
    Decision {
        /// `cordon`, `uncordon`, `drain`.
        action: String,
        /// Whether it was done; else the guard that held it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        held_by: Option<String>,
        /// Why.
        reason: String,
        /// The state of the budgets.
        budget: String,
    },
    /// A command moved.
    Command {
        /// Which.
        id: CommandId,
        /// What.
        kind: CommandKind,
        /// `pending`, `acknowledged`, `completed`, …
        state: String,
        /// How it ended.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        outcome: Option<Outcome>,
        /// Who asked.
        by: String,
        /// Why, or what the node says.
        message: String,
    },
    /// The workload system was told, or could not be.
    External {
        /// Which system.
        system: String,
        /// What: `cordon`, `uncordon`, `drain`, `drained`.
        what: String,
        /// Whether it worked.
        ok: bool,
        /// What it said.
        message: String,
    },
    /// A flag was raised or lowered.
    Flag {
        /// Which.
        flag: String,
        /// Whether it was raised.
        raised: bool,
        /// What it says.
        message: String,
    },
}

impl What {
    /// The word for it, as it is stored and searched for.
    pub const fn kind(&self) -> &'static str {
        match self {
            What::Registered { .. } => "registered",
            What::RegistrationRefused { .. } => "registration_refused",
            What::Event { .. } => "event",
            What::Check { .. } => "check",
            What::Cleared { .. } => "cleared",
            What::Health { .. } => "health",
            What::Liveness { .. } => "liveness",
            What::Status { .. } => "status",
            What::Decision { .. } => "decision",
            What::Command { .. } => "command",
            What::External { .. } => "external",
            What::Flag { .. } => "flag",
        }
    }
}

/// A verdict, as it is written down.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerdictNote {
    /// The policy.
    pub policy: String,
    /// Its version.
    pub policy_version: u32,
    /// The rule that decided; empty if none matched.
    pub rule: String,
    /// How bad.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub severity: Option<Severity>,
    /// What went wrong with the rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What spoke for and against.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<String>,
}

/// A status as it is written down: the word, so that the ledger can be read without us.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NodeStatusWord(pub String);

impl From<NodeStatus> for NodeStatusWord {
    fn from(status: NodeStatus) -> Self {
        Self(status.as_str().to_owned())
    }
}
