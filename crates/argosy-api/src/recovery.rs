//! Recovery, as it stands on the wire: what waits for a confirmation after the store lost history.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Which stretch of its history the store is in, and which node pools are in recovery.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RecoveryList {
    /// `RecoveryList`.
    #[schema(pattern = "^RecoveryList$")]
    pub kind: String,
    /// The store's incarnation.
    pub incarnation: Incarnation,
    /// The pools in recovery.
    pub items: Vec<Recovery>,
}

/// A stretch of history in which no commit was lost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Incarnation {
    /// How often history was lost or replaced before it.
    #[schema(minimum = 0)]
    pub number: u32,
    /// Since when; absent for the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(format = "date-time", nullable = false)]
    pub since: Option<String>,
    /// Why it began; absent for the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub cause: Option<String>,
}

/// A node pool in recovery: none of its machines is terminated or drained, and none is bought.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Recovery {
    /// The pool, by the name that nodes carry; also its name in paths.
    pub pool: String,
    /// The id of the node pool.
    #[schema(format = "uuid")]
    pub pool_id: String,
    /// Since when.
    #[schema(format = "date-time")]
    pub since: String,
    /// Why.
    pub cause: String,
    /// What has to be seen before it is known what would be done; absent once it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub waits_for: Option<String>,
    /// How many machines would be terminated.
    #[schema(minimum = 0)]
    pub terminate: u32,
    /// How many of them would be drained first.
    #[schema(minimum = 0)]
    pub drain: u32,
    /// How many machines would be bought.
    #[schema(minimum = 0)]
    pub buy: u32,
    /// Each of them with its reason; the first two hundred.
    pub steps: Vec<RecoveryStep>,
    /// The commit that last wrote it.
    #[schema(minimum = 0)]
    pub revision: u64,
}

/// One thing that a pool in recovery would do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RecoveryStep {
    /// `terminate`, `drain and terminate` or `buy`.
    pub action: String,
    /// The instance; for a purchase its machine type and provider.
    pub target: String,
    /// Why.
    pub reason: String,
}
