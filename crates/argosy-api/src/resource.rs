//! Clusters and node pools as they stand on the wire.
//!
//! One shape serves every known client: members with different names never conflict, so all of them
//! are emitted. A member that is absent has a meaning (`deleted_time`): it is never `null`.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// A cluster or a node pool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Resource {
    /// What paths accept. A node pool's is its name, in the profile `upstream` its `uid`.
    pub id: String,
    /// The id that is never reused.
    #[schema(format = "uuid")]
    pub uid: String,
    /// What it is.
    pub kind: Kind,
    /// Unique among the living of its kind, and of its cluster.
    #[schema(pattern = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", max_length = 63)]
    pub name: String,
    /// Its path.
    pub href: String,
    /// What was asked for.
    #[schema(value_type = Object)]
    pub spec: Map<String, Value>,
    /// What people filter by; `team` also decides who may touch it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Whose it is.
    #[serde(default)]
    pub tenancy: BTreeMap<String, String>,
    /// 1 at creation, one more at each effective change and at deletion.
    #[schema(minimum = 1)]
    pub generation: u32,
    /// The commit that last wrote it; its ETag is this number in quotes.
    #[schema(minimum = 0)]
    pub revision: u64,
    /// What the adapters make of it.
    pub status: ResourceStatus,
    /// Its cluster, for a node pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub cluster_id: Option<String>,
    /// Its cluster, for a node pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub owner_references: Option<OwnerReference>,
    /// When it was created.
    #[schema(format = "date-time")]
    pub created_at: String,
    /// When anything about it last changed, its status included.
    #[schema(format = "date-time")]
    pub updated_at: String,
    /// When it was created.
    #[schema(format = "date-time")]
    pub created_time: String,
    /// When spec or labels last changed, or it was deleted. Status reports do not move it.
    #[schema(format = "date-time")]
    pub updated_time: String,
    /// Who created it.
    pub created_by: String,
    /// Who last changed spec or labels.
    pub updated_by: String,
    /// When its deletion was asked for; absent until then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = "date-time")]
    pub deleted_time: Option<String>,
    /// Who asked for its deletion; absent until then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub deleted_by: Option<String>,
}

/// What a resource is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub enum Kind {
    /// A cluster.
    Cluster,
    /// A node pool, owned by a cluster.
    NodePool,
}

/// What the adapters make of a resource.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ResourceStatus {
    /// `Pending`, `Not Ready`, `Ready` or `Terminating`; in the profile `mvp` only `Not Ready` and
    /// `Ready`.
    #[schema(pattern = "^(Pending|Not Ready|Ready|Terminating)$")]
    pub phase: String,
    /// When the phase or any adapter's condition last changed.
    #[serde(rename = "lastTransitionTime")]
    #[schema(format = "date-time")]
    pub last_transition_time: String,
    /// The phase in detail.
    pub conditions: Vec<Condition>,
}

/// One condition of a resource.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Condition {
    /// `Reconciled`, `LastKnownReconciled`, `DnsSuccessful`, `Healthy`, …
    #[serde(rename = "type")]
    pub kind: String,
    /// Whether it holds.
    pub status: Tri,
    /// One word.
    pub reason: String,
    /// A sentence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The generation it speaks of.
    #[schema(minimum = 1)]
    pub observed_generation: u32,
    /// When it was first there.
    #[schema(format = "date-time")]
    pub created_time: String,
    /// The oldest report it rests on.
    #[schema(format = "date-time")]
    pub last_updated_time: String,
    /// When `status` last changed.
    #[schema(format = "date-time")]
    pub last_transition_time: String,
}

/// Whether a condition holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub enum Tri {
    /// It holds.
    True,
    /// It does not hold.
    False,
    /// Nobody knows.
    Unknown,
}

/// Who owns a resource.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OwnerReference {
    /// Its id.
    pub id: String,
    /// What it is.
    pub kind: Kind,
    /// Its path.
    pub href: String,
}

/// One page of a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ResourceList {
    /// `ClusterList` or `NodePoolList`.
    #[schema(pattern = "^(ClusterList|NodePoolList)$")]
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
    #[serde(default)]
    #[schema(minimum = 0)]
    pub revision: u64,
    /// The resources.
    pub items: Vec<Resource>,
}

/// Asks for a new cluster or node pool. Other members (`id`, `href`, `status`, …) are ignored.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ResourceCreate {
    /// May be left out; if it is there it must fit the path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub kind: Option<String>,
    /// Lower-case letters, digits and hyphens; it starts and ends with a letter or digit.
    #[schema(pattern = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", min_length = 1, max_length = 63)]
    pub name: String,
    /// What is asked for. `provider`, `region`, `machineType` and `nodeCount` are checked against the
    /// catalog where they are given; anything else is kept for the adapters.
    #[schema(value_type = Object)]
    pub spec: Map<String, Value>,
    /// At most 64.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

/// Changes spec, labels or both; at least one is there, and nothing else.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ResourcePatch {
    /// RFC 7396: members that are not mentioned stay, `null` removes. With `?strategy=replace`, and
    /// in the profile `upstream`, the whole spec.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Object, nullable = false)]
    pub spec: Option<Map<String, Value>>,
    /// The same for labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Object, nullable = false)]
    pub labels: Option<Map<String, Value>>,
}

/// Removes a record although its cleanup is not confirmed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ForceDelete {
    /// Why; it is kept in the audit log.
    #[schema(min_length = 1, max_length = 1024)]
    pub reason: String,
}

/// One event of a watch: the `data:` of a server-sent event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct WatchEvent {
    /// What happened; also the event's name.
    #[serde(rename = "type")]
    pub kind: WatchKind,
    /// Watch again from here to miss nothing; also the event's id.
    #[schema(minimum = 0)]
    pub revision: u64,
    /// The resource (for `DELETED`, as it last was, or only its `uid`), or the problem of an
    /// `ERROR`; absent in a `BOOKMARK`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Object, nullable = false)]
    pub object: Option<Value>,
}

/// What a watch tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum WatchKind {
    /// It is new to this watch.
    Added,
    /// It changed.
    Modified,
    /// It is gone, or no longer matches.
    Deleted,
    /// Nothing to show; everything up to `revision` was seen.
    Bookmark,
    /// The watch ends; list again.
    Error,
}

impl WatchKind {
    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            WatchKind::Added => "ADDED",
            WatchKind::Modified => "MODIFIED",
            WatchKind::Deleted => "DELETED",
            WatchKind::Bookmark => "BOOKMARK",
            WatchKind::Error => "ERROR",
        }
    }
}
