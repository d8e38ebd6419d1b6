//! The board of signs of life: in memory, one place a node, touched by every heartbeat.
//!
//! What a newcomer gets wrong: nothing here is stored. After a restart the board is empty, and the
//! amnesty in `core::liveness` makes that harmless.

use argosy_core::node::NodeId;
use jiff::Timestamp;
use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;
use tokio::sync::Notify;

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
    /// When it last asked for commands.
    pub polled_at: Option<Timestamp>,
    /// Whether it holds a stream open.
    pub attached: bool,
    /// Its latest measurements.
    pub sample: Option<Sample>,
}

/// One moment, on both clocks.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// For people.
    pub wall: Timestamp,
    /// For decisions.
    pub monotonic: Duration,
}

/// How many parts the board has: heartbeats of different nodes seldom wait for each other.
const SHARDS: usize = 64;

/// How many points of history a node keeps: an hour at one each 30 s.
const HISTORY_MAX: usize = 120;

/// One part of the board.
type Shard = RwLock<HashMap<NodeId, Arc<Pulse>>>;

/// The board. Cheap to clone.
#[derive(Clone)]
pub struct PulseBoard {
    shards: Arc<[Shard]>,
}

impl Default for PulseBoard {
    fn default() -> Self {
        Self { shards: (0..SHARDS).map(|_| RwLock::default()).collect() }
    }
}

/// One node's place on the board.
#[derive(Default)]
pub struct Pulse {
    /// Milliseconds on the monotonic clock, and one; 0 for never.
    heard_ms: AtomicU64,
    /// Microseconds of wall time; 0 for never.
    heard_us: AtomicI64,
    reported_us: AtomicI64,
    polled_us: AtomicI64,
    /// How many streams it holds open: while it reconnects, there may be two.
    streams: AtomicU32,
    latest: Mutex<Latest>,
    wake: Notify,
}

#[derive(Default)]
struct Latest {
    sample: Option<Sample>,
    history: VecDeque<HistoryPoint>,
}

/// One moment of a node's recent past, small enough to keep many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistoryPoint {
    /// Seconds on the monotonic clock.
    pub at_s: u32,
    /// The mean of its GPUs, in percent.
    pub gpu_percent: u8,
    /// In percent.
    pub cpu_percent: u8,
    /// In percent.
    pub memory_percent: u8,
    /// The hottest of its GPUs, in degrees Celsius.
    pub temperature: u8,
}

impl PulseBoard {
    /// The place of a node that was heard or admitted.
    pub fn find(&self, node: &str) -> Option<Arc<Pulse>> {
        let shard = self.shard(node)?.read().unwrap_or_else(PoisonError::into_inner);
        shard.get(node).cloned()
    }

    /// The place of a node, made if there is none. Only for nodes that exist.
    pub fn admit(&self, node: &NodeId) -> Arc<Pulse> {
        if let Some(found) = self.find(node.as_str()) {
            return found;
        }
        let Some(shard) = self.shard(node.as_str()) else { return Arc::default() };
        let mut shard = shard.write().unwrap_or_else(PoisonError::into_inner);
        shard.entry(node.clone()).or_default().clone()
    }

    /// Forgets a node.
    pub fn remove(&self, node: &str) {
        if let Some(shard) = self.shard(node) {
            shard.write().unwrap_or_else(PoisonError::into_inner).remove(node);
        }
    }

    /// What is known of a node; nothing if it was not heard yet.
    pub fn live(&self, node: &str) -> Live {
        self.find(node).map_or_else(Live::default, |pulse| pulse.live())
    }

    fn shard(&self, node: &str) -> Option<&Shard> {
        let mut hasher = DefaultHasher::new();
        node.hash(&mut hasher);
        let place = usize::try_from(hasher.finish() % SHARDS as u64).unwrap_or(0);
        self.shards.get(place)
    }
}

impl Pulse {
    /// The node was heard.
    pub fn touch(&self, at: Moment) {
        let ms = u64::try_from(at.monotonic.as_millis()).unwrap_or(u64::MAX - 1);
        self.heard_ms.fetch_max(ms + 1, Ordering::Relaxed);
        self.heard_us.store(at.wall.as_microsecond(), Ordering::Relaxed);
    }

    /// The node reported its health: it was heard, too.
    pub fn reported(&self, at: Moment) {
        self.touch(at);
        self.reported_us.store(at.wall.as_microsecond(), Ordering::Relaxed);
    }

    /// The node asked for commands: it was heard, too.
    pub fn polled(&self, at: Moment) {
        self.touch(at);
        self.polled_us.store(at.wall.as_microsecond(), Ordering::Relaxed);
    }

    /// Keeps measurements.
    pub fn measured(&self, at: Moment, sample: Sample) {
        let point = HistoryPoint::of(&sample, at.monotonic);
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        if latest.history.len() == HISTORY_MAX {
            latest.history.pop_front();
        }
        latest.history.push_back(point);
        latest.sample = Some(sample);
    }

    /// How long ago it was heard; `None` if never.
    pub fn quiet_for(&self, monotonic: Duration) -> Option<Duration> {
        let heard = self.heard_ms.load(Ordering::Relaxed).checked_sub(1)?;
        Some(monotonic.saturating_sub(Duration::from_millis(heard)))
    }

    /// The node opened a stream; it holds it open until what is returned is dropped.
    pub fn attach(self: &Arc<Self>) -> Attached {
        self.streams.fetch_add(1, Ordering::Relaxed);
        Attached(self.clone())
    }

    /// Whether it holds a stream open.
    pub fn attached(&self) -> bool {
        0 < self.streams.load(Ordering::Relaxed)
    }

    /// Tells streams that there may be something new for the node.
    pub fn wake(&self) {
        self.wake.notify_waiters();
        // For a stream that is busy and not waiting just now.
        self.wake.notify_one();
    }

    /// Waits until there may be something new for the node.
    pub async fn woken(&self) {
        self.wake.notified().await;
    }

    /// What is known.
    pub fn live(&self) -> Live {
        let time = |us: &AtomicI64| match us.load(Ordering::Relaxed) {
            0 => None,
            us => Timestamp::from_microsecond(us).ok(),
        };
        Live {
            heard_at: time(&self.heard_us),
            reported_at: time(&self.reported_us),
            polled_at: time(&self.polled_us),
            attached: self.attached(),
            sample: self.latest.lock().unwrap_or_else(PoisonError::into_inner).sample.clone(),
        }
    }

    /// Its recent past, oldest first.
    pub fn history(&self) -> Vec<HistoryPoint> {
        let latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        latest.history.iter().copied().collect()
    }
}

impl HistoryPoint {
    fn of(sample: &Sample, monotonic: Duration) -> Self {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "clamped to what fits"
        )]
        let percent = |value: f32| value.clamp(0.0, 100.0) as u8;
        let count = u16::try_from(sample.gpus.len().max(1)).unwrap_or(u16::MAX);
        let sum: f32 = sample.gpus.iter().map(|gpu| gpu.utilization).sum();
        let hottest = sample.gpus.iter().map(|gpu| gpu.temperature).max().unwrap_or(0);
        Self {
            at_s: u32::try_from(monotonic.as_secs()).unwrap_or(u32::MAX),
            gpu_percent: percent(sum / f32::from(count)),
            cpu_percent: percent(sample.cpu_percent),
            memory_percent: percent(sample.memory_percent),
            temperature: u8::try_from(hottest.clamp(0, 255)).unwrap_or(u8::MAX),
        }
    }
}

/// A stream that a node holds open.
pub struct Attached(Arc<Pulse>);

impl Attached {
    /// The node's place on the board.
    pub fn pulse(&self) -> &Pulse {
        &self.0
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        self.0.streams.fetch_sub(1, Ordering::Relaxed);
    }
}
