//! Nodes as they stand on the wire: what they are, what is known and was decided about them, and why.
//!
//! What is stored (labels, health, duty, findings) has the node's `revision`. What is only in memory
//! (`last_heartbeat`, `metrics`, what GPUs measure) moves without it, and no watch tells of it.

use crate::command::{CommandOutcome, CommandState, CommandType};
use crate::word::words;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use utoipa::ToSchema;

words! {
    /// The one word people see, derived from liveness, health and duty.
    NodeStatus {
        /// Nothing is known yet.
        Unknown = "UNKNOWN",
        /// In service.
        Active = "ACTIVE",
        /// Gets no new work.
        Cordoned = "CORDONED",
        /// What runs is to end.
        Draining = "DRAINING",
        /// In service, and should not be.
        Unhealthy = "UNHEALTHY",
        /// Gone.
        Terminated = "TERMINATED",
    }
}

words! {
    /// Whether a node, or one of its checks, is well.
    HealthStatus {
        /// Nobody can say: no report yet, or a rule that failed.
        Unknown = "UNKNOWN",
        /// It is.
        Healthy = "HEALTHY",
        /// It works, with a warning.
        Degraded = "DEGRADED",
        /// It is not.
        Unhealthy = "UNHEALTHY",
    }
}

words! {
    /// Whether a node is heard, by the server's clock alone.
    Liveness {
        /// It is.
        Fresh = "Fresh",
        /// It should have been by now.
        Suspect = "Suspect",
        /// It is taken for lost.
        Unreachable = "Unreachable",
    }
}

words! {
    /// Whether a node may be given work.
    DutyState {
        /// It may.
        Active = "Active",
        /// No new work.
        Cordoned = "Cordoned",
        /// No new work, and what runs is to end.
        Draining = "Draining",
        /// It is, or will be, gone.
        Terminated = "Terminated",
    }
}

words! {
    /// How bad something is.
    Severity {
        /// Not at all.
        Healthy = "healthy",
        /// A warning.
        Degraded = "degraded",
        /// Take the node out of service.
        Unhealthy = "unhealthy",
    }
}

/// A machine whose agent registered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Node {
    /// What it registered as.
    #[schema(pattern = "^[A-Za-z0-9]([A-Za-z0-9._:-]*[A-Za-z0-9])?$", max_length = 128)]
    pub id: String,
    /// `Node`.
    #[schema(pattern = "^Node$")]
    pub kind: String,
    /// Its path.
    pub href: String,
    /// Whose.
    pub tenant: String,
    /// The node pool it belongs to, fixed at its first registration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub pool: Option<String>,
    /// `gcp`, `aws`, …
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub provider: String,
    /// The region.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub region: String,
    /// The zone.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub zone: String,
    /// The machine type.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub instance_type: String,
    /// The one word.
    pub status: NodeStatus,
    /// Whether it is well: `health.status` again, where clients of the older API look for it.
    pub health_status: HealthStatus,
    /// Whether it is well, since when, and why we say so.
    pub health: NodeHealth,
    /// Whether it is heard.
    pub liveness: Liveness,
    /// Since when.
    #[schema(format = "date-time")]
    pub liveness_since: String,
    /// Whether it may be given work.
    pub duty: Duty,
    /// Things to know about it that are neither health nor duty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flags: Vec<NodeFlag>,
    /// Its host name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub hostname: String,
    /// Its address inside.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub internal_ip: String,
    /// Its address outside.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub external_ip: String,
    /// Its kernel.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub kernel_version: String,
    /// Changes at each boot.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub boot_id: String,
    /// The hardware's or the cloud's own identity.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub machine_id: String,
    /// The agent and its version.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub agent: String,
    /// Its GPUs, as it last registered them, with what they last measured.
    pub gpus: Vec<Gpu>,
    /// What it last measured; absent until it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub metrics: Option<NodeMetrics>,
    /// What people filter by.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// When it first registered.
    #[schema(format = "date-time")]
    pub registered_at: String,
    /// When it last came into service: registered, or rebooted. It warms up for a while after that.
    #[schema(format = "date-time")]
    pub joined_at: String,
    /// When it was last heard; absent if not since this server started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = "date-time")]
    pub last_heartbeat: Option<String>,
    /// When it last reported its health; absent if not since this server started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = "date-time")]
    pub last_report: Option<String>,
    /// When it last asked for commands; absent if not since this server started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = "date-time")]
    pub last_poll: Option<String>,
    /// Whether it holds a stream open.
    pub attached: bool,
    /// The latest results of its health checks, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<HealthCheck>,
    /// What is wrong with it now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Finding>,
    /// How often it recovered and fell ill again; absent if never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub flaps: Option<Flaps>,
    /// An automatic action that is due and not taken, and why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub held: Option<HeldAction>,
    /// What the workload system was told about it.
    pub external: ExternalState,
    /// The commit that last wrote it; its ETag is this number in quotes.
    #[schema(minimum = 0)]
    pub revision: u64,
}

/// Whether a node is well, since when, and why we say so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NodeHealth {
    /// The word.
    pub status: HealthStatus,
    /// Since when it is that word.
    #[schema(format = "date-time")]
    pub since: String,
    /// One word: the rule or check that decided; `PolicyError`; `NoReport`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// A sentence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// Whether a node may be given work; who took it out of service, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Duty {
    /// The word.
    pub state: DutyState,
    /// Who took it out of service; absent while it is in service, as is what follows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub by: Option<String>,
    /// Whether the server did it by itself: then it undoes it when the node recovers.
    #[serde(default)]
    pub automatic: bool,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub reason: Option<String>,
    /// Since when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = "date-time")]
    pub since: Option<String>,
    /// When the drain ends, whatever still runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = "date-time")]
    pub deadline: Option<String>,
    /// The drain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = "uuid")]
    pub command_id: Option<String>,
    /// Whether the drain has ended.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub drained: bool,
}

/// Something to know about a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NodeFlag {
    /// `ClockSkewed`, `IdentityConflict`, `CommandChannelDown`, `CommandFailed`, `Noisy`,
    /// `ExternalFailed`, `ExternalDiffers`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Since when.
    #[schema(format = "date-time")]
    pub since: String,
    /// A sentence.
    pub message: String,
}

/// One GPU, with what it last measured. A device that failed to answer may have nothing but its place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Gpu {
    /// Its place in the node.
    pub index: i32,
    /// The driver's name for it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub uuid: String,
    /// The model.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Its address on the bus.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub pci_bus_id: String,
    /// Its memory, in bytes.
    #[serde(default)]
    pub memory_total: i64,
    /// The driver.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub driver_version: String,
    /// CUDA.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cuda_version: String,
    /// The board's serial number: follows the hardware from node to node.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub serial: String,
    /// In degrees Celsius; absent until it was measured, as is what follows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub temperature: Option<i16>,
    /// In watts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, minimum = 0)]
    pub power: Option<u16>,
    /// In percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub utilization: Option<f32>,
    /// In bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, minimum = 0)]
    pub memory_used: Option<u64>,
    /// Memory errors that were corrected since the driver was loaded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, minimum = 0)]
    pub ecc_corrected: Option<u32>,
    /// Memory errors that were not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, minimum = 0)]
    pub ecc_uncorrected: Option<u32>,
}

/// What a node last measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct NodeMetrics {
    /// In percent.
    pub cpu_percent: f32,
    /// In percent.
    pub memory_percent: f32,
    /// Jobs that wait for its pool, if it knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, minimum = 0)]
    pub pending_jobs: Option<u32>,
    /// How long the queue is, if it knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, minimum = 0)]
    pub queue_depth: Option<u32>,
}

/// The latest word of one health check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HealthCheck {
    /// Which check.
    pub name: String,
    /// Its word.
    pub status: HealthStatus,
    /// What the node says about it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Since when it says so.
    #[schema(format = "date-time")]
    pub since: String,
    /// More about it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub details: BTreeMap<String, String>,
}

/// One thing that is wrong with a node now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Finding {
    /// With which node.
    pub node_id: String,
    /// The node's pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub pool: Option<String>,
    /// What makes it the same finding when it is seen again: `check/nvml`, `xid/79/GPU-1b2c…`.
    pub key: String,
    /// How bad; absent if the rule that should say failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub severity: Option<Severity>,
    /// The rule, or the check, that says so.
    pub rule: String,
    /// The policy it is a rule of; absent for a check.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub policy: Option<String>,
    /// The policy's version then; absent for a check.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, minimum = 0)]
    pub policy_version: Option<u32>,
    /// A sentence.
    pub message: String,
    /// The kernel line or measurement it rests on.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub evidence: String,
    /// The GPU's UUID; absent if it is about the whole node.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub gpu: String,
    /// When it was first seen.
    #[schema(format = "date-time")]
    pub first_seen: String,
    /// When it was last seen.
    #[schema(format = "date-time")]
    pub last_seen: String,
    /// How often.
    #[schema(minimum = 0)]
    pub count: u32,
    /// What ends it.
    pub ends: FindingEnd,
    /// When it ends by itself unless it is seen again; absent if something else ends it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = "date-time")]
    pub ends_at: Option<String>,
}

words! {
    /// What ends a finding. An operator's uncordon ends every finding of an event.
    FindingEnd {
        /// The check passes.
        WhenCheckPasses = "WhenCheckPasses",
        /// Nothing like it happens for a while.
        AtTime = "AtTime",
        /// The node boots again, a diagnostic passes, or an operator says so.
        AtReboot = "AtReboot",
    }
}

/// How often a node recovered and fell ill again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Flaps {
    /// How many times lately.
    #[schema(minimum = 0)]
    pub count: u32,
    /// When it last recovered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = "date-time")]
    pub recovered_at: Option<String>,
    /// It must have been well until then before it is put back into service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = "date-time")]
    pub hold_until: Option<String>,
}

/// An automatic action that is due and not taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HeldAction {
    /// What would have been done: `cordon`.
    pub action: String,
    /// Which guard held it: `budget`, `rate`, `breaker`, `pause`, `amnesty`, `isolation`.
    pub guard: String,
    /// A sentence with the numbers.
    pub reason: String,
    /// Since when.
    #[schema(format = "date-time")]
    pub since: String,
}

/// What the workload systems were told about a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ExternalState {
    /// What all of them heard: `Uncordon`, `Cordon` or `Drain`.
    pub told: String,
    /// How often telling one of them failed since.
    #[schema(minimum = 0)]
    pub failures: u32,
    /// When it is tried again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = "date-time")]
    pub retry_at: Option<String>,
    /// Each of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub systems: Vec<ExternalSystem>,
    /// What was left when the last drain ended at its deadline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub work_left: Option<String>,
}

/// What one workload system was told about a node, and what it was seen to hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ExternalSystem {
    /// Its name and address: `slurm scontrol`.
    pub system: String,
    /// What it last heard: `Uncordon`, `Cordon` or `Drain`; left out before that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub told: Option<String>,
    /// When it heard that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = "date-time")]
    pub told_at: Option<String>,
    /// What it calls the node.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub node_name: String,
    /// What it was seen to hold since: `InUse`, `ByUs` (the node gets no work because of argosy) or `ByOthers`
    /// (because of somebody else, or of its state there); left out if nobody looked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub seen: Option<String>,
    /// Since when that is seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = "date-time")]
    pub seen_since: Option<String>,
    /// The system's own state of the node, and the reason that is given there.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub seen_note: String,
    /// What it says is left of the work, during a drain.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub work: String,
    /// How often calling it failed since.
    #[schema(minimum = 0)]
    pub failures: u32,
    /// How the last call failed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub failure: String,
    /// When it is called again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = "date-time")]
    pub retry_at: Option<String>,
}

/// One page of nodes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct NodeList {
    /// `NodeList`.
    #[schema(pattern = "^NodeList$")]
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
    /// The nodes.
    pub items: Vec<Node>,
}

/// One page of what is wrong with nodes now, the worst first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FindingList {
    /// `FindingList`.
    #[schema(pattern = "^FindingList$")]
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
    /// The revision the list was read at.
    #[schema(minimum = 0)]
    pub revision: u64,
    /// The findings.
    pub items: Vec<Finding>,
}

/// The kinds of line that ledgers have.
pub const LINE_TYPES: &[&str] = &[
    "registered",
    "registration_refused",
    "event",
    "check",
    "cleared",
    "health",
    "liveness",
    "status",
    "decision",
    "command",
    "external",
    "flag",
];

/// The kinds of event there are.
pub const EVENT_TYPES: &[&str] = &[
    "unknown",
    "xid",
    "thermal",
    "power",
    "memory",
    "nvlink",
    "pcie",
    "driver_error",
    "ecc_sbe",
    "ecc_dbe",
    "sxid",
    "host",
];

/// The parts of a GPU an event can be about.
pub const SYSTEMS: &[&str] = &[
    "DCGM_HEALTH_WATCH_UNKNOWN",
    "DCGM_HEALTH_WATCH_PCIE",
    "DCGM_HEALTH_WATCH_NVLINK",
    "DCGM_HEALTH_WATCH_PMU",
    "DCGM_HEALTH_WATCH_MCU",
    "DCGM_HEALTH_WATCH_MEM",
    "DCGM_HEALTH_WATCH_SM",
    "DCGM_HEALTH_WATCH_INFOROM",
    "DCGM_HEALTH_WATCH_THERMAL",
    "DCGM_HEALTH_WATCH_POWER",
    "DCGM_HEALTH_WATCH_DRIVER",
    "DCGM_HEALTH_WATCH_NVSWITCH",
];

/// Something that happened on a node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct NodeEvent {
    /// When, by the node's clock. For people; nothing is decided by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = "date-time")]
    pub node_time: Option<String>,
    /// One of `EVENT_TYPES`.
    pub event_type: String,
    /// Which part of the GPU: one of `SYSTEMS`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub system: String,
    /// The GPU's place; -1 for the whole node.
    pub gpu_index: i32,
    /// The GPU's UUID.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub gpu_uuid: String,
    /// The GPU's serial number.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub gpu_serial: String,
    /// Measurements: `xid_code`, `temperature`, … Each is a boolean, a number or a text.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(value_type = Object)]
    pub metrics: BTreeMap<String, Value>,
    /// What the node says.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The line of the kernel log, as it was.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub raw: String,
    /// What the driver itself recommends, by NVML's number; absent if it was not asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, minimum = 0)]
    pub recovery_action: Option<u32>,
    /// How many times it happened, if the node aggregated a flood.
    #[serde(default = "one")]
    #[schema(minimum = 1)]
    pub count: u32,
}

const fn one() -> u32 {
    1
}

/// What a policy said of an event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Verdict {
    /// The policy.
    pub policy: String,
    /// Its version.
    #[schema(minimum = 0)]
    pub policy_version: u32,
    /// The rule that decided, or failed; empty if none matched.
    pub rule: String,
    /// How bad; absent if a rule failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub severity: Option<Severity>,
    /// What went wrong with the rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub error: Option<String>,
    /// What the rule says about it, for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// How long a finding of it lasts without a repeat, in seconds; absent: until the node boots
    /// again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, minimum = 0)]
    pub lasts_seconds: Option<u64>,
    /// What spoke for and against: the driver's word, the catalogue's row, and where they disagree.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<String>,
}

/// What was written down about a node, newest first: of `…/events` only what happened on it, of
/// `…/history` everything.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Ledger {
    /// `NodeEventList`, `NodeHistory` or `EventList`.
    #[schema(pattern = "^(NodeEventList|NodeHistory|EventList)$")]
    pub kind: String,
    /// The lines.
    pub items: Vec<LedgerEntry>,
    /// Send it as `before` to go on; absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, minimum = 0)]
    pub next: Option<u64>,
}

/// One line of a node's ledger: something that happened, or was decided. Members that do not apply are
/// absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LedgerEntry {
    /// Its place in the ledger.
    #[schema(minimum = 0)]
    pub sequence: u64,
    /// The commit that wrote it.
    #[schema(minimum = 0)]
    pub revision: u64,
    /// When, by the server's clock.
    #[schema(format = "date-time")]
    pub at: String,
    /// About whom.
    pub node_id: String,
    /// `registered`, `registration_refused`, `event`, `check`, `cleared`, `health`, `liveness`,
    /// `status`, `decision`, `command`, `external` or `flag`.
    #[serde(rename = "type")]
    pub kind: String,
    /// A sentence.
    pub message: String,
    /// What happened on the node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub event: Option<NodeEvent>,
    /// What the policy made of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub verdict: Option<Verdict>,
    /// The finding it became part of, or that ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub finding: Option<String>,
    /// The findings it rests on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<String>,
    /// The check, the flag or the workload system it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub subject: Option<String>,
    /// From which word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub from: Option<String>,
    /// To which word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub to: Option<String>,
    /// What was decided, or told to the workload system: `cordon`, `uncordon`, `drain`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub action: Option<String>,
    /// The guard that held the action; absent if it was taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub held_by: Option<String>,
    /// The state of the budgets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub budget: Option<String>,
    /// The command that moved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub command: Option<CommandStep>,
    /// Whether it worked, or the flag was raised.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub ok: Option<bool>,
}

/// One step of a command, as the ledger has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CommandStep {
    /// Which.
    #[schema(format = "uuid")]
    pub id: String,
    /// What.
    #[serde(rename = "type")]
    pub kind: CommandType,
    /// How far it was then.
    pub state: CommandState,
    /// How it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub outcome: Option<CommandOutcome>,
    /// Who asked.
    pub by: String,
}

/// Why a node is as it is: the chain from event to action.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Why {
    /// `Why`.
    #[schema(pattern = "^Why$")]
    pub kind: String,
    /// Which node.
    pub node_id: String,
    /// Its word.
    pub status: NodeStatus,
    /// One sentence.
    pub summary: String,
    /// The steps from cause to effect, oldest first.
    pub steps: Vec<WhyStep>,
    /// What a person can do now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub next: Vec<String>,
}

/// One step of the chain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WhyStep {
    /// When.
    #[schema(format = "date-time")]
    pub at: String,
    /// The commit.
    #[schema(minimum = 0)]
    pub revision: u64,
    /// `event`, `verdict`, `finding`, `health`, `liveness`, `decision`, `command`, `result`,
    /// `external`, `status`.
    #[serde(rename = "type")]
    pub kind: String,
    /// A sentence.
    pub message: String,
    /// What it rests on: the kernel line, the rule and policy version, the budget.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<String>,
}

/// A node's recent measurements, oldest first. They are in memory only, and begin with the server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MetricsHistory {
    /// `MetricsHistory`.
    #[schema(pattern = "^MetricsHistory$")]
    pub kind: String,
    /// Which node.
    pub node_id: String,
    /// The points.
    pub items: Vec<MetricsPoint>,
    /// The same by GPU.
    #[serde(default)]
    pub gpus: Vec<GpuHistory>,
}

/// What one GPU measured lately: each list is as long as `items`, for the same moments, with `null` where it
/// was not measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GpuHistory {
    /// Its place in the node.
    #[schema(minimum = 0)]
    pub index: usize,
    /// In degrees Celsius.
    pub temperature: Vec<Option<u8>>,
    /// In watts.
    pub power: Vec<Option<u16>>,
    /// In percent.
    pub utilization: Vec<Option<u8>>,
    /// Memory in use, in percent.
    pub memory_percent: Vec<Option<u8>>,
    /// Memory errors that were corrected since the driver was loaded.
    pub ecc_corrected: Vec<Option<u32>>,
    /// Memory errors that were not.
    pub ecc_uncorrected: Vec<Option<u32>>,
}

/// One moment of a node's recent past.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MetricsPoint {
    /// When.
    #[schema(format = "date-time")]
    pub at: String,
    /// The mean of its GPUs, in percent.
    #[schema(minimum = 0, maximum = 100)]
    pub gpu_percent: u8,
    /// In percent.
    #[schema(minimum = 0, maximum = 100)]
    pub cpu_percent: u8,
    /// In percent.
    #[schema(minimum = 0, maximum = 100)]
    pub memory_percent: u8,
    /// The hottest of its GPUs, in degrees Celsius.
    #[schema(minimum = 0, maximum = 255)]
    pub temperature: u8,
}
