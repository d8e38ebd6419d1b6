//! The audit log, the service itself, and what can be asked of it, as they stand on the wire.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// Audit records, newest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AuditList {
    /// `AuditList`.
    #[schema(pattern = "^AuditList$")]
    pub kind: String,
    /// The records.
    pub items: Vec<AuditEntry>,
    /// Send it as `before` to go on; absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, minimum = 0)]
    pub next: Option<u64>,
}

/// One mutation: who, what, to which, before and after.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AuditEntry {
    /// 1, 2, 3, … without holes.
    #[schema(minimum = 1)]
    pub sequence: u64,
    /// The commit that wrote it.
    #[schema(minimum = 0)]
    pub revision: u64,
    /// When.
    #[schema(format = "date-time")]
    pub at: String,
    /// Who.
    pub actor: String,
    /// How we know: `none`, `token`, `jwt`, `system`.
    pub via: String,
    /// Whose resource it is.
    pub tenant: String,
    /// `create`, `patch`, `delete`, `report`, `force-delete`, `finalize`, …
    pub action: String,
    /// What kind of thing.
    pub kind: String,
    /// Which.
    pub id: String,
    /// What it is called.
    pub name: String,
    /// SHA-256 of the stored document before; absent at creation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub before: Option<String>,
    /// SHA-256 of the stored document after; absent when the record was removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub after: Option<String>,
    /// Why, where somebody said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub reason: Option<String>,
    /// The request it came with.
    pub request_id: String,
    /// The hash of the entry before.
    pub previous: String,
    /// The hash of this one.
    pub hash: String,
}

/// Events that were given up, newest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DeadLetterList {
    /// `DeadLetterList`.
    #[schema(pattern = "^DeadLetterList$")]
    pub kind: String,
    /// The events.
    pub items: Vec<DeadLetter>,
    /// Send it as `before` to go on; absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, minimum = 0)]
    pub next: Option<u64>,
}

/// An event that an adapter refused, or that could not be delivered to it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DeadLetter {
    /// 1, 2, 3, … without holes.
    #[schema(minimum = 1)]
    pub sequence: u64,
    /// Whom it was for.
    pub adapter: String,
    /// Why it was given up.
    pub cause: String,
    /// The CloudEvent.
    #[schema(value_type = Object)]
    pub event: serde_json::Value,
}

/// What a check of the audit log's hash chain found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AuditVerification {
    /// How many entries were checked.
    #[schema(minimum = 0)]
    pub entries: u64,
    /// The first sequence number, if there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, minimum = 0)]
    pub first: Option<u64>,
    /// The last sequence number, if there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, minimum = 0)]
    pub last: Option<u64>,
    /// The first entry that does not fit; absent if all do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub broken: Option<AuditBreak>,
}

/// Where the chain breaks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AuditBreak {
    /// The entry.
    #[schema(minimum = 0)]
    pub sequence: u64,
    /// What is wrong with it.
    pub problem: String,
}

/// What can be asked for: providers, their regions and machine types, and the limits of a pool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Catalog {
    /// By the name that stands in `spec.provider`.
    pub providers: BTreeMap<String, CatalogProvider>,
    /// The most nodes of one pool.
    #[schema(minimum = 0)]
    pub nodes_max: u32,
}

/// What one provider offers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CatalogProvider {
    /// The name as people write it.
    pub display: String,
    /// Its regions.
    pub regions: Vec<String>,
    /// Its machine types.
    pub machine_types: BTreeMap<String, CatalogMachine>,
}

/// One machine type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CatalogMachine {
    /// Virtual CPUs.
    #[schema(minimum = 0)]
    pub cpus: u32,
    /// GPUs.
    #[serde(default)]
    #[schema(minimum = 0)]
    pub gpus: u32,
}

/// The service itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ServiceInfo {
    /// `hyperfleet`.
    pub id: String,
    /// `API`.
    pub kind: String,
    /// Its path.
    pub href: String,
    /// The version of the server.
    pub version: String,
    /// When the server was built, if the build said so.
    pub build_time: String,
}
