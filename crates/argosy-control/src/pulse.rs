//! The board of signs of life: in memory, one place a node, touched by every heartbeat.
//!
//! What a newcomer gets wrong: nothing here is stored. After a restart the board is empty, and the
//! amnesty in `core::liveness` makes that harmless.

mod history;

mod quota;

mod sample;

pub use history::{GpuMoment, GpuTrack, HistoryPoint};
pub(crate) use quota::{Allowance, Spend};
pub use sample::{GpuSample, Sample};

use argosy_core::node::NodeId;
use history::History;
use jiff::{SignedDuration, Timestamp};
use quota::Quota;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{
    AtomicBool, AtomicI8, AtomicI64, AtomicU32, AtomicU64, AtomicUsize, Ordering,
};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::time::Duration;
use tokio::sync::Notify;

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
    /// When they came.
    pub measured_at: Option<Timestamp>,
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

/// How often measurements of one node are kept: more often and nobody could look at them.
const SAMPLE_EVERY: Duration = Duration::from_secs(1);

/// How many heartbeats in a row must agree before a node's clock is said to be off, or right again: one
/// that was held up on its way looks like a clock that is behind.
const CLOCK_BEATS: i8 = 3;

/// One part of the board.
type Shard = RwLock<HashMap<NodeId, Arc<Pulse>>>;

/// The board. Cheap to clone.
#[derive(Clone)]
pub struct PulseBoard {
    shards: Arc<[Shard]>,
    load: Arc<Load>,
}

impl Default for PulseBoard {
    fn default() -> Self {
        let shards = (0..SHARDS).map(|_| RwLock::default()).collect();
        Self { shards, load: Arc::default() }
    }
}

/// What the board knows of the whole fleet.
#[derive(Default)]
struct Load {
    /// The second that is being counted.
    second: AtomicU64,
    /// The heartbeats in it.
    beats: AtomicU64,
    /// How many nodes there are.
    fleet: AtomicUsize,
}

/// What a heartbeat is answered from, without the node's document.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    /// Whose node it is.
    pub(crate) tenant: Arc<str>,
    /// How often it is to say that it is there, by calls and on a stream.
    pub(crate) heartbeat_s: u32,
    pub(crate) stream_heartbeat_s: u32,
    /// Stands for the rest of its configuration.
    pub(crate) config: u64,
}

/// One node's place on the board.
#[derive(Default)]
pub struct Pulse {
    /// Whose node it is: that never changes while the node is on the board.
    tenant: OnceLock<Arc<str>>,
    heartbeat_s: AtomicU32,
    stream_heartbeat_s: AtomicU32,
    config: AtomicU64,
    /// Milliseconds on the monotonic clock, and one; 0 for never.
    heard_ms: AtomicU64,
    /// Microseconds of wall time; 0 for never.
    heard_us: AtomicI64,
    reported_us: AtomicI64,
    /// As `heard_ms`: when a complete health report last came.
    proved_ms: AtomicU64,
    polled_us: AtomicI64,
    /// How many streams it holds open: while it reconnects, there may be two.
    streams: AtomicU32,
    /// As `heard_ms`: when measurements were last kept.
    sampled_ms: AtomicU64,
    /// As `heard_ms`: when another machine last came with this node's id.
    conflict_ms: AtomicU64,
    /// How many heartbeats in a row had a clock that is off; below 0, one that is right.
    clock_beats: AtomicI8,
    /// Whether the node carries the flag for it, or soon will.
    skewed: AtomicBool,
    /// By how many milliseconds its clock was ahead of ours when it was last heard.
    clock_off_ms: AtomicI64,
    /// Whether it has commands that have not ended.
    commands_wait: AtomicBool,
    /// The number of the newest health report that was taken in, stored or not.
    report_sequence: AtomicU64,
    quota: Mutex<Quota>,
    /// Whether it was last heard on a stream.
    on_stream: AtomicBool,
    latest: Mutex<Latest>,
    wake: Notify,
}

#[derive(Default)]
struct Latest {
    sample: Option<Sample>,
    measured_at: Option<Timestamp>,
    history: History,
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

    /// Forgets the nodes that are not kept.
    pub(crate) fn retain(&self, keep: impl Fn(&NodeId) -> bool) {
        for shard in self.shards.iter() {
            shard.write().unwrap_or_else(PoisonError::into_inner).retain(|node, _| keep(node));
        }
    }

    /// Counts a heartbeat; how many there were in this second, it included.
    pub(crate) fn count_beat(&self, at: Moment) -> u64 {
        let second = at.monotonic.as_secs();
        // Two that meet here may count each other away: it is a measure, not an account.
        if self.load.second.load(Ordering::Relaxed) != second {
            self.load.second.store(second, Ordering::Relaxed);
            self.load.beats.store(0, Ordering::Relaxed);
        }
        self.load.beats.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// How many nodes there are, as far as the board was told.
    pub(crate) fn fleet(&self) -> usize {
        self.load.fleet.load(Ordering::Relaxed)
    }

    /// Tells the board how many nodes there are.
    pub(crate) fn set_fleet(&self, nodes: usize) {
        self.load.fleet.store(nodes, Ordering::Relaxed);
    }

    /// What is known of a node; nothing if it was not heard yet.
    pub fn live(&self, node: &str) -> Live {
        self.find(node).map_or_else(Live::default, |pulse| pulse.live())
    }

    /// The nodes that were heard within a time before a moment, how long before it, and whether on a
    /// stream.
    pub(crate) fn heard_within(
        &self,
        time: Duration,
        monotonic: Duration,
    ) -> Vec<(NodeId, Duration, bool)> {
        let mut all = Vec::new();
        for shard in self.shards.iter() {
            let shard = shard.read().unwrap_or_else(PoisonError::into_inner);
            let heard = shard.iter().filter_map(|(node, pulse)| {
                let ago = pulse.quiet_for(monotonic).filter(|ago| *ago <= time)?;
                Some((node.clone(), ago, pulse.on_stream()))
            });
            all.extend(heard);
        }
        // Told in one order, whatever the map's.
        all.sort_unstable();
        all
    }

    /// The nodes of which a complete health report came within a time before a moment, and how long before it.
    pub(crate) fn proved_within(
        &self,
        time: Duration,
        monotonic: Duration,
    ) -> Vec<(NodeId, Duration)> {
        let mut all = Vec::new();
        for shard in self.shards.iter() {
            let shard = shard.read().unwrap_or_else(PoisonError::into_inner);
            let proved = shard.iter().filter_map(|(node, pulse)| {
                let ago = pulse.proved_for(monotonic).filter(|ago| *ago <= time)?;
                Some((node.clone(), ago))
            });
            all.extend(proved);
        }
        all.sort_unstable();
        all
    }

    fn shard(&self, node: &str) -> Option<&Shard> {
        let mut hasher = DefaultHasher::new();
        node.hash(&mut hasher);
        let place = usize::try_from(hasher.finish() % SHARDS as u64).unwrap_or(0);
        self.shards.get(place)
    }
}

/// A moment as the board keeps it: milliseconds, and one.
fn stamp(monotonic: Duration) -> u64 {
    u64::try_from(monotonic.as_millis()).unwrap_or(u64::MAX - 1) + 1
}

/// How long ago such a moment was; `None` for never.
fn since(stamp: &AtomicU64, monotonic: Duration) -> Option<Duration> {
    let then = stamp.load(Ordering::Relaxed).checked_sub(1)?;
    Some(monotonic.saturating_sub(Duration::from_millis(then)))
}

impl Pulse {
    /// What a heartbeat is answered from; `None` until somebody has looked at the node's document.
    pub(crate) fn known(&self) -> Option<Known> {
        Some(Known {
            tenant: self.tenant.get()?.clone(),
            heartbeat_s: self.heartbeat_s.load(Ordering::Relaxed),
            stream_heartbeat_s: self.stream_heartbeat_s.load(Ordering::Relaxed),
            config: self.config.load(Ordering::Relaxed),
        })
    }

    /// Remembers what a heartbeat is answered from.
    pub(crate) fn know(&self, known: Known) {
        self.heartbeat_s.store(known.heartbeat_s, Ordering::Relaxed);
        self.stream_heartbeat_s.store(known.stream_heartbeat_s, Ordering::Relaxed);
        self.config.store(known.config, Ordering::Relaxed);
        self.tenant.get_or_init(|| known.tenant);
    }

    /// The node was heard.
    pub fn touch(&self, at: Moment) {
        self.heard_ms.fetch_max(stamp(at.monotonic), Ordering::Relaxed);
        self.heard_us.store(at.wall.as_microsecond(), Ordering::Relaxed);
        if !self.attached() {
            self.on_stream.store(false, Ordering::Relaxed);
        }
    }

    /// Another process heard the node.
    pub(crate) fn heard_elsewhere(&self, at: Moment, on_stream: bool) {
        let heard = stamp(at.monotonic);
        if self.heard_ms.fetch_max(heard, Ordering::Relaxed) < heard {
            self.heard_us.fetch_max(at.wall.as_microsecond(), Ordering::Relaxed);
            self.on_stream.store(on_stream, Ordering::Relaxed);
        }
    }

    /// Whether it was last heard on a stream. It may have broken since: that is when it matters.
    pub fn on_stream(&self) -> bool {
        self.on_stream.load(Ordering::Relaxed)
    }

    /// Whether measurements may be kept now. Says yes once for each time they may.
    pub(crate) fn may_measure(&self, at: Moment) -> bool {
        let kept = self.sampled_ms.load(Ordering::Relaxed);
        if since(&self.sampled_ms, at.monotonic).is_some_and(|passed| passed < SAMPLE_EVERY) {
            return false;
        }
        let now = stamp(at.monotonic);
        let order = Ordering::Relaxed;
        self.sampled_ms.compare_exchange(kept, now, order, order).is_ok()
    }

    /// Takes note of by how much the node's clock is off this time, and whether that is too much. `Some` if
    /// that makes it worth a change of the node's flag, which `set_skewed` must confirm.
    pub(crate) fn clock_was(&self, by: SignedDuration, off: bool) -> Option<bool> {
        let off_ms = i64::try_from(by.as_millis()).unwrap_or(0);
        self.clock_off_ms.store(off_ms, Ordering::Relaxed);
        let beats = self.clock_beats.load(Ordering::Relaxed);
        let beats = if off { beats.max(0) + 1 } else { beats.min(0) - 1 };
        let beats = beats.clamp(-CLOCK_BEATS, CLOCK_BEATS);
        self.clock_beats.store(beats, Ordering::Relaxed);
        let flagged = self.skewed.load(Ordering::Relaxed);
        match beats {
            CLOCK_BEATS if !flagged => Some(true),
            beats if beats == -CLOCK_BEATS && flagged => Some(false),
            _ => None,
        }
    }

    /// By how much the node's clock is ahead of ours: zero unless several heartbeats in a row said that it is
    /// off, so that one which was under way for long changes nothing.
    pub fn clock_off(&self) -> SignedDuration {
        let off_ms = self.clock_off_ms.load(Ordering::Relaxed);
        let skewed = self.skewed.load(Ordering::Relaxed);
        if skewed { SignedDuration::from_millis(off_ms) } else { SignedDuration::ZERO }
    }

    /// Says whether the node is flagged for its clock.
    pub(crate) fn set_skewed(&self, skewed: bool) {
        self.skewed.store(skewed, Ordering::Relaxed);
    }

    /// Whether the node has commands that have not ended.
    pub(crate) fn commands_wait(&self) -> bool {
        self.commands_wait.load(Ordering::Relaxed)
    }

    /// Says whether it has.
    pub(crate) fn set_commands_wait(&self, wait: bool) {
        self.commands_wait.store(wait, Ordering::Relaxed);
    }

    /// The number of the newest report that was taken in since we began to listen.
    pub fn report_sequence(&self) -> u64 {
        self.report_sequence.load(Ordering::Relaxed)
    }

    /// A report was taken in.
    pub(crate) fn set_report_sequence(&self, sequence: u64) {
        self.report_sequence.fetch_max(sequence, Ordering::Relaxed);
    }

    /// Another machine came with this node's id.
    pub(crate) fn contested(&self, at: Moment) {
        self.conflict_ms.fetch_max(stamp(at.monotonic), Ordering::Relaxed);
    }

    /// How long ago that last happened; `None` if never.
    pub(crate) fn contested_for(&self, monotonic: Duration) -> Option<Duration> {
        since(&self.conflict_ms, monotonic)
    }

    /// Takes events from the node's quota.
    pub(crate) fn spend(&self, events: usize, allowance: Allowance, at: Moment) -> Spend {
        let mut quota = self.quota.lock().unwrap_or_else(PoisonError::into_inner);
        quota.spend(events, allowance, at.monotonic)
    }

    /// The node reported its health: it was heard, too.
    pub fn reported(&self, at: Moment) {
        self.touch(at);
        self.reported_us.store(at.wall.as_microsecond(), Ordering::Relaxed);
    }

    /// It was a complete report.
    pub fn proved(&self, monotonic: Duration) {
        self.proved_ms.fetch_max(stamp(monotonic), Ordering::Relaxed);
    }

    /// How long ago its last complete report came; `None` if none did since we began to listen.
    pub(crate) fn proved_for(&self, monotonic: Duration) -> Option<Duration> {
        since(&self.proved_ms, monotonic)
    }

    /// The node asked for commands: it was heard, too.
    pub fn polled(&self, at: Moment) {
        self.touch(at);
        self.polled_us.store(at.wall.as_microsecond(), Ordering::Relaxed);
    }

    /// Keeps measurements.
    pub fn measured(&self, at: Moment, sample: Sample) {
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        latest.history.push(&sample, at.monotonic);
        (latest.sample, latest.measured_at) = (Some(sample), Some(at.wall));
    }

    /// How long ago it was heard; `None` if never.
    pub fn quiet_for(&self, monotonic: Duration) -> Option<Duration> {
        since(&self.heard_ms, monotonic)
    }

    /// The node opened a stream; it holds it open until what is returned is dropped.
    pub fn attach(self: &Arc<Self>) -> Attached {
        self.streams.fetch_add(1, Ordering::Relaxed);
        self.on_stream.store(true, Ordering::Relaxed);
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
        let latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        Live {
            heard_at: time(&self.heard_us),
            reported_at: time(&self.reported_us),
            polled_at: time(&self.polled_us),
            attached: self.attached(),
            sample: latest.sample.clone(),
            measured_at: latest.measured_at,
        }
    }

    /// Looks at its latest measurements.
    pub(crate) fn with_sample<R>(&self, look: impl FnOnce(&Sample) -> R) -> Option<R> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner).sample.as_ref().map(look)
    }

    /// Its recent past, oldest first.
    pub fn history(&self) -> Vec<HistoryPoint> {
        let latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        latest.history.points()
    }

    /// Its recent past, oldest first, and the same of each of its GPUs.
    pub fn gpu_history(&self) -> (Vec<HistoryPoint>, Vec<GpuTrack>) {
        let latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        (latest.history.points(), latest.history.tracks())
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

#[cfg(test)]
mod tests;
