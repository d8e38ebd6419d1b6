//! The chain from event to action: why a node is as it is.

use crate::command::Command;
use crate::ledger::Entry;
use crate::node::Node;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// One line of the ledger, with its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Noted {
    /// Its place in the stream.
    pub sequence: u64,
    /// The commit that wrote it.
    pub revision: u64,
    /// What it says.
    pub entry: Entry,
}

/// Why a node is as it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Why {
    /// One sentence: `gpu-17 is CORDONED because rule fatal-xid found Xid 79 on GPU 3`.
    pub summary: String,
    /// The steps from cause to effect, oldest first.
    pub steps: Vec<Step>,
    /// What a person can do now.
    pub next: Vec<String>,
}

/// One step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// When.
    pub at: Timestamp,
    /// The commit.
    pub revision: u64,
    /// `event`, `verdict`, `finding`, `health`, `liveness`, `decision`, `command`, `result`, `external`,
    /// `status`.
    pub kind: String,
    /// A sentence.
    pub message: String,
    /// What it rests on: the kernel line, the rule and policy version, the budget.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<String>,
}

/// Tells the story. `ledger` is newest first, as far back as it is kept.
pub fn why(node: &Node, ledger: &[Noted], commands: &[&Command], now: Timestamp) -> Why {
    let _ = (node, ledger, commands, now);
    todo!()
}
