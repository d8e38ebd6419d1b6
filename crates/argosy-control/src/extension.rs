//! What whoever embeds the control plane can add to it: eyes, ears and an opinion, each a small trait.
//!
//! All of it is also to be had without a line of code: the same things are events that can be watched over
//! REST, and metrics can come from a URL.

use argosy_core::autoscale::{Advice, MetricsFrom, PoolView, RawMetrics};
use argosy_core::id::ResourceId;
use argosy_core::instance::Instance;
use argosy_core::node::Node;
use async_trait::async_trait;
use jiff::Timestamp;
use std::sync::Arc;

/// Is told what happens to nodes and machines, after it is stored. It must not block: what takes long belongs
/// into a task of its own.
pub trait Observer: Send + Sync + 'static {
    /// A node turned unhealthy, or was lost.
    fn node_unhealthy(&self, node: &Node) {
        let _ = node;
    }

    /// A machine's node never registered; the machine is being returned.
    fn instance_stale(&self, instance: &Instance) {
        let _ = instance;
    }

    /// A machine could not be bought.
    fn instance_failed(&self, instance: &Instance) {
        let _ = instance;
    }
}

/// Which pool is measured, and by what.
#[derive(Clone, Debug)]
pub struct Measuring {
    /// The node pool.
    pub pool: ResourceId,
    /// Its name, as nodes carry it.
    pub name: String,
    /// Whose it is.
    pub tenant: String,
    /// Where its spec says that the numbers come from.
    pub from: MetricsFrom,
}

/// Measures pools by something else than heartbeats.
#[async_trait]
pub trait MetricsSource: Send + Sync + 'static {
    /// Whether it wants to be asked about pools whose spec asks for heartbeats only.
    fn always(&self) -> bool {
        false
    }

    /// What is known of a pool now. `beats` is what its nodes say. What cannot be true is found out later;
    /// what is not known is left out. It is dropped, and counts as an error, when it takes longer than twenty
    /// seconds.
    ///
    /// # Errors
    /// Why nobody knows: then the size stays.
    async fn measure(&self, of: &Measuring, beats: &RawMetrics) -> Result<RawMetrics, String>;
}

/// An opinion of one's own on how large a pool should be. The pool's bounds hold all the same.
pub trait Autoscaler: Send + Sync + 'static {
    /// The size, and why; `None` leaves it to the pool's own policy.
    fn recommend(&self, pool: &PoolView<'_>, now: Timestamp) -> Option<Advice>;
}

/// Nobody looks.
struct Nobody;

impl Observer for Nobody {}

/// What is added to the control plane.
#[derive(Clone)]
pub struct Extensions {
    /// Who is told what happens.
    pub observer: Arc<dyn Observer>,
    /// What measures pools whose spec asks for more than heartbeats.
    pub metrics: Option<Arc<dyn MetricsSource>>,
    /// Who is asked before a pool's own policy.
    pub autoscaler: Option<Arc<dyn Autoscaler>>,
}

impl Default for Extensions {
    fn default() -> Self {
        Self { observer: Arc::new(Nobody), metrics: None, autoscaler: None }
    }
}
