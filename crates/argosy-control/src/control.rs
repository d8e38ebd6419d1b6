//! Every service, built once.

use crate::adapter::Adapters;
use crate::audit::Audit;
use crate::clock::Clock;
use crate::ids::Ids;
use crate::resource::Resources;
use crate::stats::Stats;
use argosy_core::access::Authorization;
use argosy_core::adapter::{AdapterGraph, TimeWindow};
use argosy_core::catalog::Catalog;
use argosy_core::sentinel::Rules;
use jiff::SignedDuration;
use std::sync::Arc;

/// What the services and loops go by.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The adapters of each kind.
    pub adapters: AdapterGraph,
    /// When adapters are run again.
    pub rules: Rules,
    /// How far a reporter's clock may be off.
    pub window: TimeWindow,
    /// What can be asked for.
    pub catalog: Catalog,
    /// Whether teams matter.
    pub authorization: Authorization,
    /// How long a tombstone is kept.
    pub tombstones_kept: SignedDuration,
    /// How long an idempotency key is remembered.
    pub idempotency_kept: SignedDuration,
    /// How long audit records are kept.
    pub audit_kept: SignedDuration,
    /// How long status history is kept.
    pub history_kept: SignedDuration,
}

/// The services.
#[derive(Clone)]
pub struct Control {
    /// Clusters and node pools.
    pub resources: Resources,
    /// Reports of adapters.
    pub adapters: Adapters,
    /// The audit log.
    pub audit: Audit,
    /// What was done so far.
    pub stats: Arc<Stats>,
    /// The time.
    pub clock: Clock,
    /// New ids.
    pub ids: Ids,
    /// What everything goes by.
    pub settings: Arc<Settings>,
}

impl Control {
    /// The loops have made their first round, and each ran when it last should have.
    ///
    /// # Errors
    /// Says which loop is late.
    pub fn ready(&self) -> Result<(), String> {
        todo!()
    }

    /// How many resources there are, by kind and phase.
    pub fn census(&self) -> Vec<(argosy_core::resource::Kind, argosy_core::status::Phase, usize)> {
        todo!()
    }
}
