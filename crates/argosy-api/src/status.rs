//! What adapters say about a resource, in the three shapes that clients know, in one object.

use crate::resource::Tri;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// What the adapters say about one resource. `items`, `statuses` and `adapterStatuses` tell the same
/// three ways; `?view=` leaves only one of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StatusList {
    /// `AdapterStatusList`.
    #[schema(pattern = "^AdapterStatusList$")]
    pub kind: String,
    /// Which page of `items`, counted from 1.
    #[schema(minimum = 1)]
    pub page: usize,
    /// How many items this page has.
    #[schema(minimum = 0)]
    pub size: usize,
    /// How many adapters have reported.
    #[schema(minimum = 0)]
    pub total: usize,
    /// The latest report of each adapter that has reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub items: Option<Vec<AdapterStatus>>,
    /// The cluster's id.
    pub cluster_id: String,
    /// The node pool's id, for a node pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub nodepool_id: Option<String>,
    /// One line for each adapter, also for those that have not reported yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub statuses: Option<Vec<StatusLine>>,
    /// The id of this object.
    pub id: String,
    /// `clusterStatus` or `nodePoolStatus`.
    #[serde(rename = "type")]
    #[schema(pattern = "^(clusterStatus|nodePoolStatus)$")]
    pub type_: String,
    /// The path of this object.
    pub href: String,
    /// The cluster's id.
    #[serde(rename = "clusterId")]
    pub cluster_id_camel: String,
    /// The node pool's id, for a node pool.
    #[serde(rename = "nodepoolId", default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub nodepool_id_camel: Option<String>,
    /// The latest report of each adapter that has reported, in camelCase.
    #[serde(rename = "adapterStatuses", default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub adapter_statuses: Option<Vec<AdapterStatusCamel>>,
    /// When any adapter last reported; before the first report, when the resource was created.
    #[serde(rename = "lastUpdated")]
    #[schema(format = "date-time")]
    pub last_updated: String,
}

/// The latest report of one adapter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AdapterStatus {
    /// Who reports.
    pub adapter: String,
    /// The generation it acted on.
    #[schema(minimum = 1)]
    pub observed_generation: u32,
    /// What it says.
    pub conditions: Vec<AdapterCondition>,
    /// Facts about the run.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[schema(value_type = Object)]
    pub metadata: Map<String, Value>,
    /// Results.
    #[schema(value_type = Object)]
    pub data: Map<String, Value>,
    /// The time of its first report about the resource.
    #[schema(format = "date-time")]
    pub created_time: String,
    /// The time of this report.
    #[schema(format = "date-time")]
    pub last_report_time: String,
}

/// One condition of a report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AdapterCondition {
    /// `Available`, `Applied`, `Health`, `Finalized`, or the adapter's own.
    #[serde(rename = "type")]
    pub kind: String,
    /// Whether it holds.
    pub status: Tri,
    /// One word.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// A sentence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// When `status` last changed.
    #[schema(format = "date-time")]
    pub last_transition_time: String,
}

/// One adapter's line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct StatusLine {
    /// The same for an adapter's whole work on one generation.
    #[schema(format = "uuid")]
    pub id: String,
    /// The cluster's id.
    pub cluster_id: String,
    /// The node pool's id, for a node pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub nodepool_id: Option<String>,
    /// Who.
    pub adapter_name: String,
    /// What it is doing about the current generation.
    pub phase: AdapterPhase,
    /// Why, in a sentence.
    pub message: String,
    /// When that began.
    #[schema(format = "date-time")]
    pub last_transition_time: String,
    /// When its work on the current generation began.
    #[schema(format = "date-time")]
    pub created_at: String,
}

/// What an adapter is doing about the current generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
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

/// The latest report of one adapter, in camelCase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AdapterStatusCamel {
    /// Who reports.
    pub adapter: String,
    /// The generation it acted on.
    #[schema(minimum = 1)]
    pub observed_generation: u32,
    /// What it says.
    pub conditions: Vec<AdapterConditionCamel>,
    /// Results.
    #[schema(value_type = Object)]
    pub data: Map<String, Value>,
    /// Facts about the run.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[schema(value_type = Object)]
    pub metadata: Map<String, Value>,
    /// The time of this report.
    #[schema(format = "date-time")]
    pub last_updated: String,
}

/// One condition of a report, in camelCase.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AdapterConditionCamel {
    /// `Available`, `Applied`, `Health`, `Finalized`, or the adapter's own.
    #[serde(rename = "type")]
    pub kind: String,
    /// Whether it holds.
    pub status: Tri,
    /// One word.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// A sentence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// When `status` last changed.
    #[schema(format = "date-time")]
    pub last_transition_time: String,
}

/// A report of an adapter. The camelCase spellings of its members are understood too.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StatusReport {
    /// Who reports.
    #[schema(pattern = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", min_length = 1, max_length = 63)]
    pub adapter: String,
    /// The generation it acted on.
    #[schema(minimum = 1)]
    pub observed_generation: u32,
    /// When it looked; our own time if it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = "date-time")]
    pub observed_time: Option<String>,
    /// `Available`, `Applied` and `Health` are required; each type at most once.
    pub conditions: Vec<ReportCondition>,
    /// Results.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[schema(value_type = Object)]
    pub data: Map<String, Value>,
    /// Facts about the run: `job_name`, `duration`, …
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[schema(value_type = Object)]
    pub metadata: Map<String, Value>,
}

/// One condition of a report as it is sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReportCondition {
    /// `Available`, `Applied`, `Health`, `Finalized`, or the adapter's own.
    #[serde(rename = "type")]
    #[schema(min_length = 1)]
    pub kind: String,
    /// Whether it holds.
    pub status: Tri,
    /// One word.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// A sentence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// Earlier reports about a resource, newest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StatusHistory {
    /// `AdapterStatusHistory`.
    #[schema(pattern = "^AdapterStatusHistory$")]
    pub kind: String,
    /// The reports.
    pub items: Vec<HistoryEntry>,
    /// Send it as `before` to go on; absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, minimum = 0)]
    pub next: Option<u64>,
}

/// One report as history keeps it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct HistoryEntry {
    /// Its place among all reports.
    #[schema(minimum = 0)]
    pub sequence: u64,
    /// When we got it.
    #[schema(format = "date-time")]
    pub at: String,
    /// The resource's generation at that time.
    #[schema(minimum = 1)]
    pub generation: u32,
    /// Why it changed nothing, if it did not: `FutureGeneration`, `OlderGeneration` or `OlderTime`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub discarded: Option<String>,
    /// The report.
    pub report: AdapterStatus,
}
