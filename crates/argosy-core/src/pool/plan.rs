//! What is missing from a pool, who has to go, and what to do about those who are sick.

mod cost;
mod planner;
mod stand;

pub(super) use cost::Cost;
pub(super) use planner::{Blocked, Sick, Summary};
pub(super) use stand::Standing;

use super::outcome::Outcome;
use super::{PoolBook, PoolSpec};
use crate::gate::Held;
use crate::incarnation::Forecast;
use crate::instance::{Instance, InstanceId, Purpose, Reason};
use crate::inventory::{Frozen, Paused};
use crate::machine::{Abilities, Notice, Offer, Order};
use crate::node::{Node, NodeId};
use crate::protect::Protection;
use crate::resource::Resource;
use jiff::{SignedDuration, Timestamp};
use planner::Planner;
use std::collections::{BTreeMap, HashSet};

/// A pool as it is: all that a plan is made from.
#[derive(Clone)]
pub struct Picture<'a> {
    /// The node pool.
    pub resource: &'a Resource,
    /// Its spec, read.
    pub spec: &'a PoolSpec,
    /// Its name, as nodes carry it.
    pub pool_name: &'a str,
    /// Every record of a machine that was bought for it, those that are over too.
    pub members: Vec<Member<'a>>,
    /// What is remembered of it.
    pub book: &'a PoolBook,
    /// The providers there are, by name.
    pub providers: &'a BTreeMap<String, ProviderFacts<'a>>,
    /// The serial numbers (or UUIDs) of GPUs that are known to be bad.
    pub bad_hardware: &'a HashSet<String>,
    /// Why nothing is done by ourselves now: a pause, an open breaker.
    pub stopped: Option<&'a str>,
    /// Why nothing more is begun by ourselves here now: a half-open breaker let pass as much as it may. What was
    /// begun goes on.
    pub spent: Option<&'a str>,
    /// That it is in recovery: then the plan says what it would do, and does nothing.
    pub recovery: Option<Recovering<'a>>,
    /// Whether the adapters that come before have done their part for this generation.
    pub its_turn: bool,
    /// How long a node must be lost before it is acted on.
    pub act_after: SignedDuration,
    /// How long a machine may be without a node, and a node without its first checks.
    pub register_within: SignedDuration,
    /// How long a node's work has to end when it leaves.
    pub drain_for: SignedDuration,
    /// How far the time that everything is counted by is ahead of the clock that people write windows by.
    pub ahead: SignedDuration,
}

/// A pool in recovery, as its plan has to know it.
#[derive(Clone, Copy, Debug)]
pub struct Recovering<'a> {
    /// Why nothing is done: `Recovery::sentence`.
    pub why: &'a str,
    /// Why silence is held against no node now, if it is not: who is silent may be about to connect.
    pub excuse: Option<&'a str>,
}

/// One machine of a pool.
#[derive(Clone, Copy, Debug)]
pub struct Member<'a> {
    /// Its record.
    pub instance: &'a Instance,
    /// Its node, if one registered.
    pub node: Option<&'a Node>,
    /// Whether the node was heard since we began to listen: what its document says of its health may be from
    /// before an outage of ours otherwise.
    pub heard: bool,
    /// How much of its GPUs is used, from 0 to 1; `None` if nobody knows.
    pub utilization: Option<f32>,
    /// How long it has been unreachable by our monotonic clock, or without a node although one had registered,
    /// if it is and nothing excuses it.
    pub lost_for: Option<SignedDuration>,
    /// What its provider intends to do with it.
    pub notice: Option<&'a Notice>,
    /// Whether a command to cordon, drain, release or test it is on its way.
    pub commanded: bool,
    /// When its agent last reported its checks, as far as we listened.
    pub reported_at: Option<Timestamp>,
    /// Why it is left alone now, although the rest of its pool is not: the breaker of its zone.
    pub stopped: Option<&'a str>,
    /// What protects it: the label of its node, its pool or its cluster.
    pub protected: Option<Protection>,
}

impl<'a> Picture<'a> {
    /// Why nothing is begun by ourselves in the pool, or with one of its machines.
    pub(super) fn holds(&self, member: Option<&Member<'a>>) -> Option<&'a str> {
        self.stopped.or(self.spent).or_else(|| member?.stopped)
    }
}

/// What is known of a provider.
#[derive(Clone, Copy, Debug)]
pub struct ProviderFacts<'a> {
    /// What kind it is: `aws`, `gcp`, `lambda`. Its name is whatever the configuration calls it.
    pub kind: &'a str,
    /// Its name as people write it: `GCP`.
    pub display: &'a str,
    /// What it can do.
    pub abilities: Abilities,
    /// What it sells; empty if it does not say.
    pub offers: &'a [Offer],
    /// Why nothing is bought there now.
    pub paused: Option<&'a Paused>,
    /// Why its listings cannot be believed now.
    pub frozen: Option<&'a Frozen>,
    /// Whether its listing was compared with our records since we began to lead.
    pub compared: bool,
    /// Where to buy if nobody says.
    pub default_region: &'a str,
    /// What to buy if nobody says.
    pub default_type: &'a str,
}

/// What to do now.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// What to buy.
    pub buy: Vec<Buy>,
    /// What else to do, in order.
    pub steps: Vec<Step>,
    /// The book as it should be kept, together with the records of what is bought; `None`: as it is.
    pub book: Option<PoolBook>,
    /// What the adapter reports.
    pub outcome: Outcome,
    /// When to look again although nothing changed.
    pub next: Option<Timestamp>,
    /// What it would do if it were not in recovery; then there is nothing to buy and no step. `None` for a pool
    /// that is not.
    pub forecast: Option<Forecast>,
}

/// One machine to buy.
#[derive(Clone, Debug, PartialEq)]
pub struct Buy {
    /// Which of the pool's nodes it is to be, from 1.
    pub number: u32,
    /// What exactly.
    pub order: Order,
    /// Whose place it is to take.
    pub replaces: Option<InstanceId>,
    /// What for.
    pub purpose: Purpose,
    /// Why.
    pub why: String,
}

impl Step {
    /// The record that it changes, if it changes one.
    fn record(&self) -> Option<&InstanceId> {
        match self {
            Step::Depart { instance, .. }
            | Step::Block { instance, .. }
            | Step::Stay { instance }
            | Step::Leave { instance, .. }
            | Step::Diagnose { instance, .. }
            | Step::Reboot { instance, .. } => Some(instance),
            Step::Cordon { .. }
            | Step::Drain { .. }
            | Step::Uncordon { .. }
            | Step::Condemn { .. } => None,
        }
    }
}

/// One thing to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Write down that it is to go, and until when its work may last: `gate::permit`, then
    /// `Instance::departing`. The commands to its node follow.
    Depart {
        /// Which.
        instance: InstanceId,
        /// Why.
        reason: Reason,
        /// When it goes although work may be left.
        deadline: Timestamp,
    },
    /// Write down what keeps a machine that is to go, or that nothing does any more: `Instance::blocked`.
    Block {
        /// Which.
        instance: InstanceId,
        /// What keeps it.
        held: Option<Held>,
    },
    /// It is wanted after all: `Instance::staying`.
    Stay {
        /// Which.
        instance: InstanceId,
    },
    /// Return the machine: `gate::permit`, `Instance::leaving`, then `gate::release`.
    Leave {
        /// Which.
        instance: InstanceId,
        /// Why.
        reason: Reason,
    },
    /// No new work for it, by `BY` and not automatic: it is the pool's to undo.
    Cordon {
        /// Which node.
        node: NodeId,
        /// Why.
        reason: String,
    },
    /// And what runs on it is to end.
    Drain {
        /// Which node.
        node: NodeId,
        /// Why.
        reason: String,
        /// Whether it is for its health: then the hold is automatic, and whoever puts recovered nodes back may
        /// undo it. Otherwise it is not automatic.
        automatic: bool,
        /// Who does it: `BY`; or, where a person has cordoned it, we in their stead: then it stays theirs, and
        /// nobody puts it back into service for them.
        by: String,
        /// How long it may take; `None`: as the settings of the pool's nodes say.
        drain_for: Option<SignedDuration>,
    },
    /// Put it back into service: it is wanted after all.
    Uncordon {
        /// Which node.
        node: NodeId,
        /// Why.
        reason: String,
    },
    /// Test its GPUs: `Instance::tried`, then RUN_DIAGNOSTIC.
    Diagnose {
        /// Which.
        instance: InstanceId,
        /// Its node.
        node: NodeId,
        /// For what.
        because: String,
    },
    /// Boot it again: `Instance::tried`, then `Provider::reboot`.
    Reboot {
        /// Which.
        instance: InstanceId,
        /// Its node.
        node: NodeId,
        /// For what.
        because: String,
    },
    /// Remember that these GPUs are bad, wherever they turn up again.
    Condemn {
        /// Their serial numbers.
        serials: Vec<String>,
        /// Why.
        because: String,
        /// Where they were.
        node: NodeId,
    },
}

/// Makes the plan. Takes time in proportion to the pool.
///
/// Guarantees, however often it is asked and carried out: no number is bought twice; no more machines than the
/// target and `maxUnavailable` are held; no node in service is disturbed below `minAvailable`; a node that can
/// still work is let go only after its replacement is ready, and what runs on it has ended or had its time.
pub fn plan(picture: &Picture<'_>, now: Timestamp) -> Plan {
    let mut plan = Planner::new(picture, now).plan();
    // What an autoscaler left behind must not come back with the next one; on the way down from its size the pool
    // remembers that, and goes in steps.
    let book = plan.book.as_ref().unwrap_or(picture.book);
    let left = book.target.is_some() || book.scaled.is_some() || book.advice.is_some();
    if picture.spec.autoscaling.is_none() && left && plan.forecast.is_none() {
        let live = picture.members.iter().filter(|member| !member.instance.state.is_over()).count();
        let above = |_: &u32| usize::try_from(picture.spec.nodes).is_ok_and(|nodes| nodes < live);
        let target = book.target.filter(|left| picture.spec.nodes < *left).filter(above);
        let after = PoolBook { target, scaled: None, advice: None, ..book.clone() };
        if after != *book {
            plan.book = Some(after);
        }
    }
    plan
}

#[cfg(test)]
mod tests;
