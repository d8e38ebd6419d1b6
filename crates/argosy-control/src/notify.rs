//! The port to adapters outside: one event, delivered once or more.

use async_trait::async_trait;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// A CloudEvent 1.0 that says "look again": no content, so nothing in it can be out of date.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CloudEvent {
    /// Always `1.0`.
    pub specversion: String,
    /// The same for each redelivery of the same event: receivers drop duplicates by it.
    pub id: String,
    /// `argosy`.
    pub source: String,
    /// `com.redhat.hyperfleet.cluster.reconcile`, as existing adapters expect.
    #[serde(rename = "type")]
    pub kind: String,
    /// The resource's path in the API.
    pub subject: String,
    /// When it was made.
    pub time: Timestamp,
    /// Always `application/json`.
    pub datacontenttype: String,
    /// Which resource.
    pub data: EventData,
}

/// What an event is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventData {
    /// The resource's id.
    pub id: String,
    /// `Cluster` or `NodePool`.
    pub kind: String,
    /// The resource's path in the API.
    pub href: String,
    /// Its generation when the event was made.
    pub generation: u32,
    /// The cluster, for a node pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner_references: Option<OwnerData>,
}

/// The owner of the resource an event is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnerData {
    /// The cluster's id.
    pub id: String,
    /// `Cluster`.
    pub kind: String,
    /// The cluster's path in the API.
    pub href: String,
}

/// Why an event was not delivered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// Try again later.
    #[error("{0}")]
    Later(String),
    /// Trying again cannot help: the receiver refused it, or the address is not allowed.
    #[error("{0}")]
    Refused(String),
}

/// Delivers events.
#[async_trait]
pub trait Notifier: Send + Sync + 'static {
    /// Delivers one event to the adapter's address.
    async fn send(&self, adapter: &str, url: &str, event: &CloudEvent) -> Result<(), SendError>;
}
