//! What whoever embeds the control plane can add to it: eyes, ears and an opinion, each a small trait.
//!
//! All of it is also to be had without a line of code: the same things are events that can be watched over
//! REST, and metrics can come from a URL.

use argosy_core::instance::Instance;
use argosy_core::node::Node;
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

/// Nobody looks.
struct Nobody;

impl Observer for Nobody {}

/// What is added to the control plane.
#[derive(Clone)]
pub struct Extensions {
    /// Who is told what happens.
    pub observer: Arc<dyn Observer>,
}

impl Default for Extensions {
    fn default() -> Self {
        Self { observer: Arc::new(Nobody) }
    }
}
