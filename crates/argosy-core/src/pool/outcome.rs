//! What the adapter `machines` reports of a pool: in words that say what is, what is being done, and what
//! somebody should do.

use serde_json::{Map, Value};

/// What the adapter `machines` reports.
///
/// Every `data` has `nodesWanted`, `nodesReady` and `cost_per_hour` (`null` if nobody knows a price).
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// It is not the adapter's turn: nothing is reported.
    Waiting,
    /// Every node is ready. Available, Applied and Health are True.
    Ready {
        /// `AllNodesReady`.
        reason: String,
        /// `5 of 5 nodes ready`.
        message: String,
        /// With `machines`, the instances' ids.
        data: Map<String, Value>,
    },
    /// It is on its way. Available is False, Applied and Health are True.
    Progress {
        /// `ProvisioningInProgress`.
        reason: String,
        /// Whom is waited for.
        message: String,
        /// See `Outcome`.
        data: Map<String, Value>,
    },
    /// Something keeps it from what was asked for. Available is False.
    Failed {
        /// One word: `QuotaExceeded`.
        reason: String,
        /// Which node of how many, and why.
        message: String,
        /// Whether anything that was asked for exists: Applied.
        applied: bool,
        /// Whether nothing is wrong with what exists: Health.
        healthy: bool,
        /// With `guidance`, what to do.
        data: Map<String, Value>,
    },
    /// The pool is being deleted, and machines are left. Available is False, Applied and Health are True.
    Removing {
        /// `CleanupInProgress`.
        reason: String,
        /// Which machines are left.
        message: String,
        /// See `Outcome`.
        data: Map<String, Value>,
    },
    /// The pool is being deleted, and every machine is known to be gone. Finalized is True.
    Removed {
        /// `NodesRemoved`.
        reason: String,
        /// `All nodes removed`.
        message: String,
        /// See `Outcome`.
        data: Map<String, Value>,
    },
}
