//! The board of signs of life: in memory, one place a node, touched by every heartbeat.
//!
//! What a newcomer gets wrong: nothing here is stored. After a restart the board is empty, and the
//! amnesty in `core::liveness` makes that harmless.

use argosy_core::node::NodeId;
use jiff::Timestamp;
use std::sync::Arc;
use std::time::Duration;

/// Measurements of one heartbeat. Not finite or out of range: not there.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample {
    /// In percent.
    pub cpu_percent: f32,
    /// In percent.
    pub memory_percent: f32,
    /// By GPU.
    pub gpus: Vec<GpuSample>,
    /// Jobs that wait for this node's pool, if it knows.
    pub pending_jobs: Option<u32>,
    /// How long the queue is, if it knows.
    pub queue_depth: Option<u32>,
}

/// Measurements of one GPU.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct GpuSample {
    /// Its place.
    pub index: u16,
    /// In degrees Celsius.
    pub temperature: i16,
    /// In watts.
    pub power: u16,
    /// In percent.
    pub utilization: f32,
    /// In bytes.
    pub memory_used: u64,
}

/// How a node talks to us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Via {
    /// It calls.
    Call,
    /// It keeps a stream open.
    Stream,
}

/// What is known of a node beyond its document.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Live {
    /// When it was last heard.
    pub heard_at: Option<Timestamp>,
    /// When it last reported its health.
    pub reported_at: Option<Timestamp>,
    /// When it last asked for commands, or held a stream open for them.
    pub polled_at: Option<Timestamp>,
    /// Whether it holds a stream open.
    pub attached: bool,
    /// Its latest measurements.
    pub sample: Option<Sample>,
}

/// The board. Cheap to clone.
#[derive(Clone, Default)]
pub struct PulseBoard {
    inner: Arc<Inner>,
}

#[derive(Default)]
struct Inner {}

impl PulseBoard {
    /// What is known of a node; nothing if it was not heard yet.
    pub fn live(&self, node: &str) -> Live {
        let _ = (node, &self.inner);
        todo!()
    }

    /// How long ago a node was heard, by the monotonic clock.
    pub fn quiet_for(&self, node: &NodeId, monotonic: Duration) -> Option<Duration> {
        let _ = (node, monotonic);
        todo!()
    }
}
