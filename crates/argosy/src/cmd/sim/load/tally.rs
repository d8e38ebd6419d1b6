//! What is counted while nodes live. Shared by all of them.

use argosy_agent::swarm::Histogram;
use argosy_control::clock::Clock;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How many kinds of errors are told apart: codes are few, but a server can make some up.
const KINDS_MAX: usize = 32;
/// How long the example of an error may be.
const EXAMPLE_LEN_MAX: usize = 200;
/// Under which name errors of other kinds are counted.
const OTHER: &str = "other";
/// Errors that say that somebody is there and does not want us.
const REFUSALS: [&str; 3] = ["refused", "unauthenticated", "permission_denied"];

/// What is timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Turn {
    /// A stream was asked for, and something was told on it.
    Hello,
    /// A registration, and its answer.
    Registration,
    /// A heartbeat, and its answer; streams answer none.
    Heartbeat,
    /// A health report, and its answer.
    Report,
    /// Asking for commands, and the answer.
    Poll,
}

impl Turn {
    pub(super) const ALL: [Self; 5] =
        [Self::Hello, Self::Registration, Self::Heartbeat, Self::Report, Self::Poll];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Hello => "hello",
            Self::Registration => "registration",
            Self::Heartbeat => "heartbeat",
            Self::Report => "report",
            Self::Poll => "poll",
        }
    }

    /// From where to where.
    pub(super) const fn measured(self) -> &'static str {
        match self {
            Self::Hello => "stream asked for → first word on it, connecting included",
            Self::Registration => "registration sent → answered, committed",
            Self::Heartbeat => "heartbeat sent → answered",
            Self::Report => "health report sent → answered, judged and committed",
            Self::Poll => "commands asked for → answered",
        }
    }
}

/// The counts. Cheap to clone.
#[derive(Clone)]
pub(super) struct Tally {
    clock: Clock,
    counts: Arc<Mutex<Counts>>,
}

/// What was counted.
#[derive(Clone, Debug, Default)]
pub(super) struct Counts {
    /// Nodes whose registration was answered.
    pub(super) registered: u64,
    /// Nodes that have a stream now, or whose last call was answered.
    pub(super) connected: u64,
    pub(super) heartbeats: u64,
    pub(super) sent: u64,
    pub(super) received: u64,
    pub(super) commands: u64,
    pub(super) faults: u64,
    /// How often a node that had lost the server found it again.
    pub(super) reconnects: u64,
    /// By kind: how many, and the first one's sentence.
    pub(super) kinds: BTreeMap<String, (u64, String)>,
    pub(super) times: BTreeMap<Turn, Histogram>,
    /// When all nodes had started, with the heartbeats and messages until then.
    pub(super) steady: Option<(Duration, u64, u64)>,
    /// When it was read.
    pub(super) at: Duration,
    began: Duration,
}

impl Counts {
    pub(super) fn errors(&self) -> u64 {
        self.kinds.values().map(|(count, _)| count).sum()
    }

    /// Heartbeats and messages a second since all nodes had started, or since the start if they have not.
    pub(super) fn rates(&self) -> (f64, f64) {
        let (since, beats, messages) = self.steady.unwrap_or((self.began, 0, 0));
        let passed = self.at.saturating_sub(since).as_secs_f64();
        let rate = |now: u64, then: u64| match passed {
            0.0 => 0.0,
            passed => now.saturating_sub(then) as f64 / passed,
        };
        (rate(self.heartbeats, beats), rate(self.sent + self.received, messages))
    }
}

impl Tally {
    pub(super) fn new(clock: Clock) -> Self {
        let counts = Counts { began: clock.monotonic(), ..Counts::default() };
        Self { clock, counts: Arc::new(Mutex::new(counts)) }
    }

    /// The time that turns are measured by.
    pub(super) fn now(&self) -> Duration {
        self.clock.monotonic()
    }

    pub(super) fn counts(&self) -> MutexGuard<'_, Counts> {
        // Nothing under the lock can leave it half changed.
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn read(&self) -> Counts {
        let mut counts = self.counts().clone();
        counts.at = self.now();
        counts
    }

    pub(super) fn time(&self, turn: Turn, since: Duration) {
        let took = self.now().saturating_sub(since);
        self.counts().times.entry(turn).or_default().add(took);
    }

    pub(super) fn error(&self, kind: &str, sentence: &str) {
        let mut counts = self.counts();
        let full = KINDS_MAX <= counts.kinds.len() && !counts.kinds.contains_key(kind);
        let kind = if full { OTHER } else { kind };
        let (count, _) = counts
            .kinds
            .entry(kind.to_owned())
            .or_insert_with(|| (0, sentence.chars().take(EXAMPLE_LEN_MAX).collect()));
        *count += 1;
    }

    /// All nodes have started.
    pub(super) fn steady(&self) {
        let now = self.now();
        let mut counts = self.counts();
        if counts.steady.is_none() {
            counts.steady = Some((now, counts.heartbeats, counts.sent + counts.received));
        }
    }

    /// Why, if no node was let in and one was refused.
    pub(super) fn refused_by_all(&self) -> Option<String> {
        let counts = self.counts();
        let refused = REFUSALS.iter().find_map(|kind| counts.kinds.get(*kind));
        refused.filter(|_| counts.registered == 0).map(|(_, sentence)| sentence.clone())
    }
}
