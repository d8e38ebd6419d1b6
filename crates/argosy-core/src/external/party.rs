//! What is stored about those outside who act on a node: the agent, and each workload system.

use crate::id::CommandId;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The key of the node's own agent among the parties. No workload system has it: their keys have an address.
pub const AGENT: &str = "agent";

/// What those outside were told about a node, and what they were last seen to hold. Documents of earlier
/// builds had one word for all systems: who is not found here is told anew.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct External {
    /// By name and address of the workload system; `AGENT` for the node's own agent.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parties: BTreeMap<String, Party>,
    /// What was left when the last drain ended at its deadline; `None` if nothing was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<LeftOver>,
}

impl External {
    /// What is known of one.
    pub fn party(&self, key: &str) -> Option<&Party> {
        self.parties.get(key)
    }
}

/// One of those outside.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Party {
    /// What it last heard and answered; `None` before that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told: Option<Wish>,
    /// When.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub told_at: Option<Timestamp>,
    /// What it is being told, written down before it is: until it is known to have heard, it may have
    /// heard either.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub telling: Option<Wish>,
    /// What it called the machine when it was told.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Names that the machine had before, under which it is still kept from work there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub former: Vec<String>,
    /// What it was seen to hold since it was told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<Seen>,
    /// What it last said about the work on the node, while it is drained.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<Work>,
    /// How often calling it failed since.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub failures: u32,
    /// Not before then, unless something else is wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_at: Option<Timestamp>,
    /// How the last call failed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub failure: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl Party {
    /// Whether it was seen to hold something else than it was told.
    pub(super) fn differs(&self) -> bool {
        let told = self.told.as_ref();
        self.seen.as_ref().zip(told).is_some_and(|(seen, told)| seen.differs(told.state))
    }
}

/// What one is to hold about a node. Any difference is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wish {
    /// Whether it may be given work.
    pub state: Told,
    /// Why not, for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Until when what runs has time to end, for a drain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Timestamp>,
    /// Whether what is left at the deadline is ended, for a drain.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub force: bool,
    /// Which drain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<CommandId>,
}

impl Wish {
    /// A state, and nothing else.
    pub const fn of(state: Told) -> Self {
        Self { state, reason: String::new(), deadline: None, force: false, command: None }
    }
}

/// What a workload system can be told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Told {
    /// Use it.
    #[default]
    Uncordon,
    /// No new work.
    Cordon,
    /// Move what runs.
    Drain,
}

impl Told {
    /// The word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Told::Uncordon => "uncordon",
            Told::Cordon => "cordon",
            Told::Drain => "drain",
        }
    }
}

/// What a workload system was seen to hold about a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// Since when.
    pub at: Timestamp,
    /// Whether the node gets work there.
    pub out: Out,
    /// The system's own words: its state, and the reason that is given there.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

/// Whether a node gets work at a workload system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Out {
    /// It does.
    InUse,
    /// It does not, because we said so.
    ByUs,
    /// It does not, because of somebody else or of its state there.
    ByOthers,
}

impl Seen {
    /// Whether it is to be told again: it holds something else than it was told.
    pub(super) fn differs(&self, told: Told) -> bool {
        match (told, self.out) {
            (Told::Uncordon, Out::ByUs) | (Told::Cordon | Told::Drain, Out::InUse) => true,
            (Told::Uncordon, Out::InUse | Out::ByOthers)
            | (Told::Cordon | Told::Drain, Out::ByUs | Out::ByOthers) => false,
        }
    }

    /// Whether the node gets no work there although it could: somebody else's decision, which is shown and
    /// never overwritten.
    pub(super) fn blocks(&self, told: Told) -> bool {
        told == Told::Uncordon && self.out == Out::ByOthers
    }

    /// What is seen, and what it should be, as one sentence.
    pub(super) fn words(&self, told: Told) -> String {
        let note = if self.note.is_empty() { String::new() } else { format!(" ({})", self.note) };
        match (told, self.out) {
            (Told::Uncordon, Out::ByUs) => {
                format!("the node is still kept from work there{note}")
            }
            (Told::Uncordon, Out::ByOthers) => {
                format!("the node gets no work there, not because of argosy{note}")
            }
            (Told::Cordon | Told::Drain, Out::InUse) => {
                format!("the node gets work there again, not because of argosy{note}")
            }
            (Told::Uncordon, Out::InUse) => format!("the node gets work there{note}"),
            (Told::Cordon | Told::Drain, Out::ByUs | Out::ByOthers) => {
                format!("the node gets no work there{note}")
            }
        }
    }
}

/// What somebody said about the work on a node that is drained.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Work {
    /// Of which drain.
    pub of: CommandId,
    /// When it was said first.
    pub at: Timestamp,
    /// Whether nothing is left.
    pub over: bool,
    /// Whether work was ended by force.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub forced: bool,
    /// Whether it is the last word: it does not look any more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub last: bool,
    /// What is left, by name; one line.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

impl Work {
    /// Whether another word says nothing new.
    pub(crate) fn says_the_same(&self, other: &Work) -> bool {
        (self.over, self.last, &self.message) == (other.over, other.last, &other.message)
    }
}

/// What was left when a drain ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOver {
    /// Which drain.
    pub of: CommandId,
    /// What, by name, as far as anybody said.
    pub what: String,
}
