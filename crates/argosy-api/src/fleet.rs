//! The fleet as a whole, small enough to draw: every GPU with what it last measured, and who looks at it.
//!
//! Names are short where there is one for each GPU: a fleet of eighty thousand is sent to whoever opens the
//! page, and again each second as far as it changed.

use crate::node::{HealthStatus, Liveness, NodeStatus};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// Who asks, what they may do, and of whom.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Me {
    /// `Me`.
    #[schema(pattern = "^Me$")]
    pub kind: String,
    /// The name that is written down in stamps and audit records.
    pub subject: String,
    /// How the server knows: `none`, `token`, `jwt`.
    pub via: String,
    /// Whose resources exist for the caller.
    pub tenant: String,
    /// The teams it belongs to.
    pub teams: Vec<String>,
    /// `Node`, `Adapter`, `Viewer`, `Operator` or `Admin`.
    pub role: String,
    /// What it may do beside reading.
    pub may: Permissions,
    /// The server.
    pub server: ServerFacts,
}

/// What a caller may do beside reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Permissions {
    /// Create, change, delete; pause; tell nodes what to do.
    pub write: bool,
    /// Remove records although their cleanup is not confirmed.
    pub force: bool,
    /// Read the audit log, use the simulated cloud's console.
    pub administer: bool,
}

/// What a page needs to know of the server before anything else.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ServerFacts {
    /// Its version.
    pub version: String,
    /// When it was built, if the build said so.
    pub build_time: String,
    /// Whether callers have to sign in.
    pub authentication: bool,
    /// Whether it is a demonstration: nothing here is real.
    pub demo: bool,
}

/// A node with all its GPUs, as small as it can be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct NodeGpus {
    /// The node.
    pub id: String,
    /// The node pool it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub pool: Option<String>,
    /// The cluster of that pool, as the pool's name says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub cluster: Option<String>,
    /// `gcp`, `aws`, …
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub provider: String,
    /// The region.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub region: String,
    /// The zone.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub zone: String,
    /// The rack: its label `rack`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub rack: Option<String>,
    /// The machine type.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub machine_type: String,
    /// What its GPUs are, by the first of them.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub model: String,
    /// What people filter by.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// The one word.
    pub status: NodeStatus,
    /// Whether it is well.
    pub health: HealthStatus,
    /// Whether it is heard.
    pub liveness: Liveness,
    /// The commit that last wrote the node.
    #[schema(minimum = 0)]
    pub revision: u64,
    /// How many GPUs it registered.
    #[schema(minimum = 0)]
    pub gpus: usize,
    /// The places of GPUs that something is badly wrong with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bad: Vec<i32>,
    /// The places of GPUs with a warning.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warn: Vec<i32>,
    /// The memory of its first GPU, in bytes.
    pub memory_total: i64,
    /// What it last measured; nothing if not since the server started.
    #[serde(flatten)]
    pub measured: Option<GpuMeasures>,
}

/// What the GPUs of a node last measured, by place; `null` for one that was not measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct GpuMeasures {
    /// When, in milliseconds since 1970.
    pub at: i64,
    /// Degrees Celsius.
    pub t: Vec<Option<i16>>,
    /// Watts.
    pub w: Vec<Option<u16>>,
    /// Utilization in percent.
    pub u: Vec<Option<u8>>,
    /// Memory in use, in percent.
    pub m: Vec<Option<u8>>,
    /// Memory errors that were corrected, since the driver was loaded.
    pub ce: Vec<Option<u32>>,
    /// Memory errors that were not.
    pub ue: Vec<Option<u32>>,
}

/// What the GPUs of a node measured since it was last told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct NodeSamples {
    /// The node.
    pub id: String,
    /// What it measured.
    #[serde(flatten)]
    pub measured: GpuMeasures,
}

/// Every node with its GPUs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct FleetGpuList {
    /// `FleetGpuList`.
    #[schema(pattern = "^FleetGpuList$")]
    pub kind: String,
    /// Always 1.
    #[schema(minimum = 1)]
    pub page: usize,
    /// How many nodes there are.
    #[schema(minimum = 0)]
    pub size: usize,
    /// The same.
    #[schema(minimum = 0)]
    pub total: usize,
    /// The revision it was read at.
    #[schema(minimum = 0)]
    pub revision: u64,
    /// The nodes, by id.
    pub items: Vec<NodeGpus>,
}

/// What one event of the fleet's stream carries.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "type")]
pub enum FleetEvent {
    /// A part of all there is; what was known before the first part is to be forgotten.
    #[serde(rename = "SNAPSHOT")]
    Snapshot {
        /// When, in milliseconds since 1970.
        at: i64,
        /// The revision it was read at.
        #[schema(minimum = 0)]
        revision: u64,
        /// The nodes.
        nodes: Vec<NodeGpus>,
        /// Whether another part follows.
        more: bool,
    },
    /// What changed since the last event; perhaps nothing.
    #[serde(rename = "SAMPLES")]
    Samples {
        /// When, in milliseconds since 1970.
        at: i64,
        /// The revision it was read at.
        #[schema(minimum = 0)]
        revision: u64,
        /// Nodes that are new or changed, whole.
        nodes: Vec<NodeGpus>,
        /// What other nodes measured.
        samples: Vec<NodeSamples>,
        /// Nodes that are gone, or do not match any more.
        gone: Vec<String>,
    },
    /// The server stops; come back.
    #[serde(rename = "BYE")]
    Bye {},
}
