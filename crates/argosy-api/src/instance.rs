//! Machines as they stand on the wire: what is bought, what is found that nobody knows, and where from.

use crate::word::words;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use utoipa::ToSchema;

words! {
    /// What an instance is doing.
    InstanceState {
        /// It was decided on; whether it exists is not known yet.
        Provisioning = "Provisioning",
        /// It exists, and its node has not registered.
        AwaitingNode = "AwaitingNode",
        /// Its node has registered.
        Running = "Running",
        /// It is to go, and is not known to be gone.
        Terminating = "Terminating",
        /// It is gone for certain.
        Terminated = "Terminated",
        /// It came to nothing, and is gone for certain if it ever was.
        Failed = "Failed",
    }
}

words! {
    /// What can be tried with a sick node, in order.
    Cure {
        /// Test its GPUs: what passes is well.
        Diagnose = "diagnose",
        /// Boot it again.
        Reboot = "reboot",
        /// Put another in its place.
        Replace = "replace",
    }
}

/// A machine that is bought, from the decision to the proof that it is gone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Instance {
    /// What it is called: also the machine's name at the provider, and the id of its node.
    #[schema(pattern = "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$")]
    pub id: String,
    /// `Instance`.
    #[schema(pattern = "^Instance$")]
    pub kind: String,
    /// Its path.
    pub href: String,
    /// Whose.
    pub tenant: String,
    /// What it is doing.
    pub state: InstanceState,
    /// Since when.
    #[schema(format = "date-time")]
    pub since: String,
    /// One word for why it is as it is; absent if all goes as it should.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// A sentence about its state.
    pub status_message: String,
    /// The node pool it was bought for, by the name that nodes carry.
    pub pool: String,
    /// The node pool's uid.
    #[schema(format = "uuid")]
    pub pool_id: String,
    /// Which of the pool's nodes it is, from 1; a replacement takes the number of what it replaces.
    #[schema(minimum = 0)]
    pub number: u32,
    /// Its node, once one registered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub node_id: Option<String>,
    /// The provider, by the name in the server's configuration.
    pub provider: String,
    /// The region.
    pub region: String,
    /// The zone; absent if any would do.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub zone: String,
    /// The machine type.
    pub machine_type: String,
    /// Whether the provider may take it back at any time.
    pub spot: bool,
    /// The image; absent for the provider's default.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub image: String,
    /// What the provider calls it, once it is known to exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub machine_id: Option<String>,
    /// What it costs an hour, in US dollars; absent if it is over, or nobody knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, minimum = 0)]
    pub cost_per_hour: Option<f64>,
    /// When it was decided on.
    #[schema(format = "date-time")]
    pub ordered_at: String,
    /// Why it was bought.
    pub why: String,
    /// Whose place it is to take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub replaces: Option<String>,
    /// Which takes its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub replaced_by: Option<String>,
    /// That it is to go once its node is drained; absent if it stays, or goes already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub departure: Option<Departure>,
    /// That it is to go and stays for now, and what keeps it: it still costs; absent if nothing keeps it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub blocked: Option<BlockedTermination>,
    /// How often the provider was asked to do what the state says.
    #[schema(minimum = 0)]
    pub calls: u32,
    /// When the provider is asked again, after it did not do it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = "date-time")]
    pub retry_at: Option<String>,
    /// Whether returning it takes so long that people were told: it still costs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub overdue: bool,
    /// What was tried to make its node well, the oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tried: Vec<Tried>,
    /// The end of what it wrote on its console, if its node never registered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub console: Option<String>,
    /// The commit that last wrote it; its ETag is this number in quotes.
    #[schema(minimum = 0)]
    pub revision: u64,
}

/// That an instance is to go: its node is drained first, until the deadline at the latest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Departure {
    /// One word: `ScaleDown`, `PoolDeleted`, `Replaced`.
    pub reason: String,
    /// A sentence.
    pub message: String,
    /// Since when.
    #[schema(format = "date-time")]
    pub since: String,
    /// When it is terminated although work may be left.
    #[schema(format = "date-time")]
    pub deadline: String,
}

/// That an instance is to go and stays for now: it keeps its node, its seat and its cost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BlockedTermination {
    /// One word for what keeps it: `Protected`, `Paused`, `ProviderSuspended`.
    pub guard: String,
    /// A sentence.
    pub message: String,
    /// Since when.
    #[schema(format = "date-time")]
    pub since: String,
}

/// One attempt to make a node well.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Tried {
    /// What.
    pub cure: Cure,
    /// When.
    #[schema(format = "date-time")]
    pub at: String,
    /// For what.
    pub because: String,
    /// What came of it; absent while it is not known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub outcome: String,
}

/// One page of instances.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct InstanceList {
    /// `InstanceList`.
    #[schema(pattern = "^InstanceList$")]
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
    /// What all that match cost an hour, in US dollars, as far as it is known.
    #[serde(default)]
    #[schema(minimum = 0)]
    pub cost_per_hour: f64,
    /// How many of them have no known price: what they cost together is more than `cost_per_hour` then.
    #[serde(default)]
    #[schema(minimum = 0)]
    pub unpriced: u32,
    /// The instances.
    pub items: Vec<Instance>,
}

/// Why, and whether it is really meant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct InstanceTerminate {
    /// Why; it is kept in the audit log.
    #[schema(min_length = 1, max_length = 1024)]
    pub reason: String,
    /// Needed for what is protected by the label `argosy.dev/protected`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub force: bool,
    /// Whether more nodes may be out of service than a disruption budget allows; needs the role admin.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub over_budget: bool,
}

/// Why a node pool goes on that stopped because of what became of its machines, and with which spec.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PoolResume {
    /// Why; it is kept in the audit log.
    #[schema(min_length = 1, max_length = 1024)]
    pub reason: String,
    /// Whether the pool goes back to the last spec with which all of its nodes were in service.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rollback: bool,
}

/// A machine that nobody has a record of is to be one of a pool's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct InstanceAdopt {
    /// The provider, by the name in the server's configuration.
    #[schema(min_length = 1)]
    pub provider: String,
    /// What the provider calls the machine.
    #[schema(min_length = 1)]
    pub machine_id: String,
    /// The node pool's name, or its uid.
    #[schema(min_length = 1)]
    pub nodepool: String,
    /// The cluster of that name, where several have such a pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, min_length = 1)]
    pub cluster: Option<String>,
    /// Why; it is kept in the audit log.
    #[schema(min_length = 1, max_length = 1024)]
    pub reason: String,
}

/// A machine that carries this control plane's tags and that no record knows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Orphan {
    /// The provider, by the name in the server's configuration.
    pub provider: String,
    /// What the provider calls it.
    pub machine_id: String,
    /// What it was named.
    pub name: String,
    /// The region.
    pub region: String,
    /// The zone.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub zone: String,
    /// The machine type.
    pub machine_type: String,
    /// What it costs an hour, in US dollars; absent if nobody knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, minimum = 0)]
    pub cost_per_hour: Option<f64>,
    /// When a listing first showed it.
    #[schema(format = "date-time")]
    pub first_seen: String,
    /// The node pool it was bought for, as its tag says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = "uuid")]
    pub pool_id: Option<String>,
    /// The record it was bought for, as its tag says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub instance_id: Option<String>,
    /// Who wants it gone; absent if nobody does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub reap: Option<Reap>,
    /// The commit that last wrote it.
    #[schema(minimum = 0)]
    pub revision: u64,
}

/// Who wants a machine gone that nobody has a record of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Reap {
    /// Who.
    pub by: String,
    /// Why.
    pub reason: String,
    /// When.
    #[schema(format = "date-time")]
    pub at: String,
}

/// Every machine that carries this control plane's tags and that no record knows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct OrphanList {
    /// `OrphanList`.
    #[schema(pattern = "^OrphanList$")]
    pub kind: String,
    /// What they cost an hour, in US dollars, as far as it is known.
    #[schema(minimum = 0)]
    pub cost_per_hour: f64,
    /// How many of them have no known price: what they cost together is more than `cost_per_hour` then.
    #[serde(default)]
    #[schema(minimum = 0)]
    pub unpriced: u32,
    /// The machines.
    pub items: Vec<Orphan>,
}

/// A provider of machines.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Provider {
    /// Its name in the server's configuration.
    pub name: String,
    /// False if the configuration no longer names it, while machines of it may exist.
    pub configured: bool,
    /// Why nothing is bought there now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub paused: Option<ProviderPaused>,
    /// Why its listings are not believed now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub frozen: Option<ProviderFrozen>,
    /// How many instances are in which state.
    pub instances: BTreeMap<String, u32>,
    /// How many machines of it no record knows.
    #[schema(minimum = 0)]
    pub orphans: u32,
    /// What the instances and orphans cost an hour, in US dollars, as far as it is known.
    #[schema(minimum = 0)]
    pub cost_per_hour: f64,
    /// How many of them have no known price: what they cost together is more than `cost_per_hour` then.
    #[serde(default)]
    #[schema(minimum = 0)]
    pub unpriced: u32,
    /// When it was last listed whole; absent if not by this process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = "date-time")]
    pub listed_at: Option<String>,
}

/// Why nothing is bought at a provider now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProviderPaused {
    /// Since when.
    #[schema(format = "date-time")]
    pub since: String,
    /// What the provider says.
    pub message: String,
    /// When it is tried again.
    #[schema(format = "date-time")]
    pub retry_at: String,
    /// How often it was tried.
    #[schema(minimum = 0)]
    pub failures: u32,
}

/// A listing that cannot be true.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ProviderFrozen {
    /// Since when.
    #[schema(format = "date-time")]
    pub since: String,
    /// How many machines it should have shown.
    #[schema(minimum = 0)]
    pub expected: u32,
    /// How many it showed.
    #[schema(minimum = 0)]
    pub found: u32,
    /// A sentence with the way out.
    pub message: String,
}

/// Every provider.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ProviderList {
    /// `ProviderList`.
    #[schema(pattern = "^ProviderList$")]
    pub kind: String,
    /// The providers, by name.
    pub items: Vec<Provider>,
}

/// Why a node pool is as it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PoolExplanation {
    /// `PoolExplanation`.
    #[schema(pattern = "^PoolExplanation$")]
    pub kind: String,
    /// The node pool's name.
    pub name: String,
    /// Its uid.
    #[schema(format = "uuid")]
    pub pool_id: String,
    /// When all of this was so.
    #[schema(format = "date-time")]
    pub at: String,
    /// In one sentence.
    pub summary: String,
    /// How many nodes its spec asks for.
    #[schema(minimum = 0)]
    pub asked: u32,
    /// How many nodes an autoscaler wants; absent if none decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, minimum = 0)]
    pub target: Option<u32>,
    /// How many of its instances are in which state.
    pub instances: BTreeMap<String, u32>,
    /// How many machines carry the pool's tag and are known to no record.
    #[serde(default)]
    #[schema(minimum = 0)]
    pub orphans: u32,
    /// What its instances and orphans cost an hour, in US dollars, as far as it is known.
    #[schema(minimum = 0)]
    pub cost_per_hour: f64,
    /// How many of them have no known price: what they cost together is more than `cost_per_hour` then.
    #[serde(default)]
    #[schema(minimum = 0)]
    pub unpriced: u32,
    /// What the pool's own adapter last said of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub report: Option<PoolReport>,
    /// Why nothing is bought for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub paused: Option<BuyingPaused>,
    /// How many machines in a row never registered.
    #[schema(minimum = 0)]
    pub stale_in_a_row: u32,
    /// Where buying failed lately, and is tried again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<PlaceBackoff>,
    /// Why its update was stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub update_failed: Option<UpdateFailed>,
    /// Machines that were bought lately and did no work, the newest last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub in_vain: Vec<InVain>,
    /// What the autoscaler says now; absent if there is none, or it was not asked by this process yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub advice: Option<SizeAdvice>,
    /// What was decided about its size lately and why, the newest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decisions: Vec<SizeDecision>,
    /// Its instances, by number, those that are over at the end.
    pub members: Vec<Instance>,
}

/// What the pool's own adapter last said of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PoolReport {
    /// Whether it is as it was asked for: `True`, `False` or `Unknown`.
    pub available: String,
    /// One word.
    pub reason: String,
    /// A sentence.
    pub message: String,
    /// What a person can do, if anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub guidance: Option<String>,
}

/// Why nothing is bought for a pool until somebody says so, or its spec changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BuyingPaused {
    /// Since when.
    #[schema(format = "date-time")]
    pub since: String,
    /// One word.
    pub reason: String,
    /// A sentence with the way out.
    pub message: String,
}

/// An update that was stopped because nodes of the new kind turned sick.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UpdateFailed {
    /// Since when.
    #[schema(format = "date-time")]
    pub since: String,
    /// One of those that turned sick.
    pub instance_id: String,
    /// What is wrong with it.
    pub message: String,
    /// The generation of the spec that a rollback puts back; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, minimum = 1)]
    pub rollback_generation: Option<u32>,
}

/// A machine that was bought and did no work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct InVain {
    /// When that was clear.
    #[schema(format = "date-time")]
    pub at: String,
    /// Which instance.
    pub instance_id: String,
    /// Which of the pool's nodes it was to be.
    #[schema(minimum = 1)]
    pub number: u32,
    /// What became of it: `NotMade`, `NeverRegistered`, `BadHardware`, `Sick` or `TakenBack`.
    pub fate: String,
    /// What is wrong with it.
    pub message: String,
    /// What it cost until then, in US dollars; absent if its price is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, minimum = 0)]
    pub cost: Option<f64>,
}

/// A place where buying failed lately.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PlaceBackoff {
    /// Provider, region, zone, machine type, and whether spot.
    pub place: String,
    /// How often in a row.
    #[schema(minimum = 0)]
    pub failures: u32,
    /// When it is tried again.
    #[schema(format = "date-time")]
    pub until: String,
    /// What the provider said.
    pub message: String,
}

/// What was decided about a pool's size, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SizeDecision {
    /// When.
    #[schema(format = "date-time")]
    pub at: String,
    /// How many nodes it was to have.
    #[schema(minimum = 0)]
    pub from: u32,
    /// How many it is to have.
    #[schema(minimum = 0)]
    pub to: u32,
    /// Why.
    pub reason: String,
}

/// What an autoscaler says of a pool's size.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SizeAdvice {
    /// The size it is held to now.
    #[schema(minimum = 0)]
    pub from: u32,
    /// The size it should be held to.
    #[schema(minimum = 0)]
    pub target: u32,
    /// What the policy wants, before cooldowns and bounds.
    #[schema(minimum = 0)]
    pub wanted: u32,
    /// Which kind of policy: `reactive`, `queue`, `scheduled`, `predictive`, `composite`.
    pub policy: String,
    /// All of it in one sentence, with what holds it back.
    pub sentence: String,
    /// What the policies inside of it say.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<PartAdvice>,
    /// When time alone may change the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = "date-time")]
    pub next: Option<String>,
}

/// What one policy inside of another says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PartAdvice {
    /// Where it stands: `policies[1].fallback`.
    pub at: String,
    /// Which kind of policy.
    pub policy: String,
    /// What it wants; absent if it has no opinion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, minimum = 0)]
    pub target: Option<u32>,
    /// Why.
    pub reason: String,
}

/// What was measured of a pool at one time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PoolSample {
    /// When.
    #[schema(format = "date-time")]
    pub at: String,
    /// On how many nodes, those that were ready.
    #[schema(minimum = 0)]
    pub nodes: u32,
    /// Mean utilization of their GPUs, 0 to 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub utilization: Option<f64>,
    /// Jobs that wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub pending_jobs: Option<f64>,
    /// Jobs that wait or run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub queue_depth: Option<f64>,
}

/// What was measured of a pool lately, oldest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PoolHistory {
    /// `PoolHistory`.
    #[schema(pattern = "^PoolHistory$")]
    pub kind: String,
    /// The node pool's uid.
    #[schema(format = "uuid")]
    pub pool_id: String,
    /// The samples.
    pub items: Vec<PoolSample>,
}

/// What would an autoscaler have done?
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SimulateRequest {
    /// As it would stand in `spec.autoscaling`; without it, what stands there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Object, nullable = false)]
    pub autoscaling: Option<Value>,
    /// What was measured; without it, what this server measured of the pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub history: Option<Vec<PoolSample>>,
    /// The smallest size; without it, the pool's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, minimum = 0)]
    pub min: Option<u32>,
    /// The largest size; without it, the pool's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, minimum = 0)]
    pub max: Option<u32>,
    /// How many nodes the pool begins with; without it, as many as the first sample was measured on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, minimum = 0)]
    pub nodes: Option<u32>,
    /// How long a machine takes until its node is ready, in seconds; 300 without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, minimum = 0, maximum = 86400)]
    pub boot_s: Option<u32>,
}

/// What an autoscaler would have done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Simulation {
    /// `Simulation`.
    #[schema(pattern = "^Simulation$")]
    pub kind: String,
    /// The node pool's uid.
    #[schema(format = "uuid")]
    pub pool_id: String,
    /// How many samples it went by.
    #[schema(minimum = 0)]
    pub samples: usize,
    /// Measurements that cannot be true, and were not used: a sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<String>,
    /// What it comes to.
    pub summary: SimulationSummary,
    /// The same, for a pool that always has as many nodes as its spec says.
    pub fixed: SimulationSummary,
    /// The two compared, in one sentence.
    pub comparison: String,
    /// Each change of size, and the first and the last look; at most 1000.
    pub steps: Vec<SimulationStep>,
}

/// What a simulation comes to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SimulationSummary {
    /// Hours of nodes paid for.
    pub node_hours: f64,
    /// How often the size changed.
    #[schema(minimum = 0)]
    pub changes: usize,
    /// For how long there were fewer nodes than were needed, in minutes.
    pub minutes_below_need: f64,
    /// The most nodes at once.
    #[schema(minimum = 0)]
    pub nodes_max: u32,
}

/// One look of a simulated autoscaler.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SimulationStep {
    /// When.
    #[schema(format = "date-time")]
    pub at: String,
    /// The size the pool was held to.
    #[schema(minimum = 0)]
    pub wanted: u32,
    /// The size it is held to from then on.
    #[schema(minimum = 0)]
    pub target: u32,
    /// How many nodes were ready.
    #[schema(minimum = 0)]
    pub ready: u32,
    /// How many were needed, as far as it can be told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, minimum = 0)]
    pub need: Option<u32>,
    /// Why.
    pub reason: String,
}
