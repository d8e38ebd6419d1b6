//! The chain from event to action: why a node is as it is.
//!
//! What a newcomer gets wrong: this is not the ledger. The ledger has everything in the order it
//! happened; the chain has what led to the present, and leaves out the rest.

mod chain;
mod sentence;

pub(crate) use sentence::says;

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
    /// The steps from cause to effect, oldest first; at most `STEPS_MAX`.
    pub steps: Vec<Step>,
    /// What a person can do now; nothing, if nothing is wrong.
    pub next: Vec<String>,
}

/// One step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// When.
    pub at: Timestamp,
    /// The commit; 0 if the ledger does not reach back to it.
    pub revision: u64,
    /// `event`, `check`, `verdict`, `finding`, `health`, `liveness`, `decision`, `command`, `result`,
    /// `external`, `status`, `registration`, `flag`; `omitted` stands for steps that were left out.
    pub kind: String,
    /// A sentence.
    pub message: String,
    /// What it rests on: the kernel line, the rule and policy version, the budget.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<String>,
}

/// How many steps a story may have: beyond a few screens nobody reads, so what is in the middle goes.
pub const STEPS_MAX: usize = 64;

/// How much of a node's ledger the story needs. A flood of events older than this hides the first one
/// of them, and nothing else.
pub const LEDGER_MAX: usize = 1000;

/// Tells the story. `ledger` is newest first, as far back as it is kept.
pub fn why(node: &Node, ledger: &[Noted], commands: &[&Command], now: Timestamp) -> Why {
    Why {
        summary: sentence::summary(node, commands, now),
        steps: chain::steps(node, ledger, commands),
        next: sentence::next(node),
    }
}

#[cfg(test)]
mod tests;
