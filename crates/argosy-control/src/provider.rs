//! The port to a cloud: what the built-in adapters ask of it.
//!
//! Every method is idempotent: asked again for the same resource it finds what is there and makes the
//! rest. It may take long and may be dropped at any await.

use argosy_core::resource::Resource;
use async_trait::async_trait;
use serde_json::{Map, Value};
use std::sync::Arc;

/// What a built-in adapter keeps at the provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// The DNS records of a cluster.
    Dns,
    /// The network and control plane of a cluster.
    Infrastructure,
    /// The machines of a node pool.
    Machines,
}

/// For whom something is asked.
#[derive(Clone, Debug)]
pub struct Ask {
    /// The cluster or the node pool.
    pub resource: Arc<Resource>,
    /// The cluster itself, or the cluster of the node pool.
    pub cluster: Arc<Resource>,
}

/// Work that is done.
#[derive(Clone, Debug, PartialEq)]
pub struct Done {
    /// One word: `AllRecordsCreated`.
    pub reason: String,
    /// A sentence: `All DNS records created and verified`.
    pub message: String,
    /// What came of it, for `data`.
    pub data: Map<String, Value>,
    /// Set when the work is done but a check of it fails: available, and not healthy.
    pub unhealthy: Option<Cause>,
}

/// A reason and a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// One word.
    pub reason: String,
    /// A sentence.
    pub message: String,
}

/// Work that could not be done. It will be tried again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Why: `QuotaExceeded`, with the numbers.
    pub cause: Cause,
    /// Whether anything was created all the same.
    pub applied: bool,
    /// False if the failure was not foreseen: the adapter itself is then not healthy.
    pub healthy: bool,
    /// More about it, for `data`: `guidance` says what a person can do.
    pub data: Map<String, Value>,
}

/// A cloud.
#[async_trait]
pub trait Provider: Send + Sync + 'static {
    /// Checks, without changing anything, that what is asked for can be made.
    async fn preflight(&self, ask: &Ask) -> Result<Done, Refusal>;

    /// Makes a part as it is asked for, and checks it.
    async fn ensure(&self, part: Part, ask: &Ask) -> Result<Done, Refusal>;

    /// Removes a part. Done means confirmed gone; what never existed is gone.
    async fn remove(&self, part: Part, ask: &Ask) -> Result<Done, Refusal>;
}
