//! From reports to conditions, and from conditions to the one word people see.
//!
//! Neither function reads a clock: the same reports give the same answer in any order.

use crate::adapter::{AdapterSpec, Tri};
use crate::resource::{Generation, Resource};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// One condition of a resource.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Condition {
    /// `Reconciled`, `LastKnownReconciled`, `DnsSuccessful`, `Healthy`, `Stalled`, …
    #[serde(rename = "type")]
    pub kind: String,
    /// True or False.
    pub status: Tri,
    /// One word.
    pub reason: String,
    /// A sentence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The generation it speaks of.
    pub observed_generation: Generation,
    /// When it was first there.
    pub created_time: Timestamp,
    /// The oldest report it rests on.
    pub last_updated_time: Timestamp,
    /// When `status` last changed.
    pub last_transition_time: Timestamp,
}

/// The word people see.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// Created; no required adapter has said anything yet.
    Pending,
    /// Some required adapter is not done with this generation.
    NotReady,
    /// All required adapters are done with this generation.
    Ready,
    /// Being deleted.
    Terminating,
}

impl Phase {
    /// Every phase, in the order in which error sentences list them.
    pub const ALL: [Phase; 4] = [Phase::NotReady, Phase::Ready, Phase::Pending, Phase::Terminating];

    /// The word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Phase::Pending => "Pending",
            Phase::NotReady => "Not Ready",
            Phase::Ready => "Ready",
            Phase::Terminating => "Terminating",
        }
    }
}

/// The phase of a resource: Terminating if it is being deleted; else Ready if `Reconciled`; else
/// Pending if no required adapter reported yet and it is still at generation 1; else Not Ready.
pub fn phase(of: &Resource) -> Phase {
    let _ = of;
    todo!()
}

/// When anything people would call a status change last happened: the later of the phase change and
/// the newest transition of a reported condition.
pub fn last_transition(of: &Resource) -> Timestamp {
    let _ = of;
    todo!()
}

/// The conditions of `of`, from its reports and its previous conditions.
pub fn aggregate(of: &Resource, adapters: &[AdapterSpec], children: bool) -> Vec<Condition> {
    let _ = (of, adapters, children);
    todo!()
}

/// What one adapter is doing about the current generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdapterPhase {
    /// Not started.
    Pending,
    /// At work.
    Running,
    /// Done.
    Complete,
    /// Stopped by an error; it will be tried again.
    Failed,
}

/// One adapter's line in a list of statuses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdapterLine {
    /// What it is doing.
    pub phase: AdapterPhase,
    /// Why, in a sentence.
    pub message: String,
    /// When that began.
    pub since: Timestamp,
    /// When the adapter first reported at this generation, or when the generation began.
    pub created_at: Timestamp,
}

/// The line of one adapter; for an adapter that has not reported, what it waits for.
pub fn adapter_line(
    of: &Resource,
    adapter: &crate::adapter::AdapterName,
    adapters: &[AdapterSpec],
    children: bool,
) -> AdapterLine {
    let _ = (of, adapter, adapters, children);
    todo!()
}
