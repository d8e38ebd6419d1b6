//! A node pool as a fleet of machines: what was asked for, what is missing, and what to do next.
//!
//! Level-triggered: `plan` looks at what is, each time anew, and says what to do. What it needs to remember
//! between two looks is in the pool's book and in the records of its machines, never in the planner.
//!
//! What a newcomer gets wrong: a sick node counts until its replacement is ready. A pool that heals has more
//! machines than nodes for a while, and never fewer than it had.

mod book;
mod choice;
mod cure;
mod name;
mod outcome;
mod plan;
mod spec;

pub use book::{bought, failed, registered, resumed};
pub use choice::Place;
pub use name::pool_name;
pub use outcome::Outcome;
pub use plan::{Buy, Member, Picture, Plan, ProviderFacts, Recovering, Step, plan};
pub use spec::{
    Capacity, PROVIDERS_MAX, PoolSpec, ProviderChoice, REGIONS_MAX, Remedy, Replacement, Strategy,
    TYPES_MAX, Unavailable, ZONES_MAX, keeping_size, meanings,
};

use crate::autoscale::Advice;
use crate::id::ResourceId;
use crate::instance::{InstanceId, Purpose};
use crate::machine::Trouble;
use crate::resource::Spec;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What is remembered of a pool beside its wish: how large it is to be now, and where buying does not work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PoolBook {
    /// The node pool.
    pub pool: ResourceId,
    /// How many nodes an autoscaler wants; `None`: as many as the spec says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<u32>,
    /// When the size was last changed by an autoscaler, and whether it grew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scaled: Option<(Timestamp, bool)>,
    /// What the autoscaler last said, and when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advice: Option<(Timestamp, Advice)>,
    /// What was decided lately and why, the newest last; at most `DECISIONS_MAX`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decisions: Vec<Decision>,
    /// How many machines in a row never registered.
    #[serde(default)]
    pub stale_in_a_row: u32,
    /// When the youngest order was placed whose machine registered: what was ordered earlier and never did
    /// was its own fault, and not the pool's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proven_at: Option<Timestamp>,
    /// Why nothing is bought for the pool until somebody says so, or its spec changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<BuyingPaused>,
    /// Where buying failed lately, by place (`provider/region/zone/type/spot`); at most `PLACES_MAX`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub places: BTreeMap<String, Backoff>,
    /// How many machines were ordered so far: round robin goes by it.
    #[serde(default)]
    pub ordered: u64,
    /// Machines that came to nothing since one for the same seat, or a later one of the same kind, served for an
    /// hour; by the time when that was clear, at most `VAIN_MAX`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub vain: Vec<Vain>,
    /// Why no more nodes are replaced by what the spec asks for, until a person says so or it asks for something
    /// else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub update_failed: Option<UpdateFailed>,
    /// What was ordered until then does not count as in vain: a person, another spec or machines that serve said
    /// so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resumed_at: Option<Timestamp>,
    /// The last spec with which every node was in service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub good: Option<GoodSpec>,
    /// How many seconds the last machines took from their order to the registration of their node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot_s: Option<u32>,
}

/// A machine that was bought and did no work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Vain {
    /// When that was clear.
    pub at: Timestamp,
    /// Which of the pool's nodes it was.
    pub number: u32,
    /// Which machine.
    pub instance: InstanceId,
    /// What it was: type, provider, region and image.
    pub kind: String,
    /// What it was bought for.
    pub purpose: Purpose,
    /// What became of it.
    pub fate: Fate,
    /// What is wrong with it.
    pub because: String,
    /// What it cost until then, in US dollars; `None` if its price is not known.
    pub cost: Option<f64>,
}

/// What became of a machine that did no work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// Its provider was asked again and again, and made nothing.
    NotMade,
    /// Its node never registered.
    NeverRegistered,
    /// It came with a GPU that is known to be bad.
    BadHardware,
    /// Its node was sick within its first hour.
    Sick,
    /// It was gone within minutes: its provider took it back, or ended it.
    TakenBack,
}

/// An update that was stopped because nodes of the new kind turned sick.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpdateFailed {
    /// Since when.
    pub since: Timestamp,
    /// What the new machines were made from: see `PoolSpec::made_from`.
    pub made_from: String,
    /// One of those that turned sick.
    pub instance: InstanceId,
    /// What is wrong with it.
    pub because: String,
}

/// A spec with which every node was in service.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GoodSpec {
    /// Which version of it.
    pub generation: u32,
    /// The spec as it was written.
    pub spec: Spec,
}

/// How many machines that came to nothing are remembered.
pub const VAIN_MAX: usize = 32;

/// The reason of a pool that buys nothing more because what it bought did no work.
pub const IN_VAIN: &str = "ReplacementsInVain";

/// What is held against a place, and the reason of its pool, where all machines together would cost too much.
pub const COST_GUARD: &str = "CostGuard";
/// The same where there is a limit, and nobody knows what a machine costs.
pub const PRICE_UNKNOWN: &str = "PriceUnknown";
/// What is held against a place whose machines are gone within minutes.
const TAKEN_BACK: &str = "TAKEN_BACK";
/// What is held against a place where purchases have no answer and come to nothing.
const NOT_MADE: &str = "NO_ANSWER";

/// How many decisions are remembered: a day of a lively pool.
pub const DECISIONS_MAX: usize = 64;
/// How many places are remembered.
pub const PLACES_MAX: usize = 64;

/// What was decided about a pool's size, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// When.
    pub at: Timestamp,
    /// How many nodes it was to have.
    pub from: u32,
    /// How many it is to have.
    pub to: u32,
    /// Why.
    pub reason: String,
}

/// Why nothing is bought for a pool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BuyingPaused {
    /// Since when.
    pub since: Timestamp,
    /// What the machines were made from: see `PoolSpec::made_from`. A spec that asks for others lifts it.
    #[serde(default)]
    pub made_from: String,
    /// One word: `RegistrationUnhealthy`.
    pub reason: String,
    /// A sentence with the way out.
    pub message: String,
}

/// A place where buying failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Backoff {
    /// How often in a row.
    pub failures: u32,
    /// When it is tried again.
    pub until: Timestamp,
    /// What the provider said.
    pub trouble: Trouble,
    /// Which of the pool's nodes it was, from 1; 0 if none in particular.
    pub number: u32,
    /// Whether machines were made there and came to nothing: then one more that is made there proves nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub made: bool,
}

/// Who gives commands to a pool's nodes. A hold by this name that is not automatic is the pool's own: it wants
/// the node gone, or did. A person's hold is never touched, and one for the node's health is the remedy's.
pub const BY: &str = "argosy";

/// Whether somebody of this name could be taken for the pool: `BY` itself, or `BY for ada`, which is what it
/// does in a person's stead. Nobody may sign in as one.
pub fn is_reserved(subject: &str) -> bool {
    let subject = subject.trim().to_lowercase();
    subject.strip_prefix(BY).is_some_and(|rest| rest.is_empty() || rest.starts_with(" for "))
}

#[cfg(test)]
mod fixture;
