//! The only place that asks what time it is.

use jiff::{SignedDuration, Timestamp};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

#[expect(clippy::disallowed_methods, reason = "the clock is where time comes from")]
static ORIGIN: LazyLock<Instant> = LazyLock::new(Instant::now);

/// The time: the machine's, or one that follows tokio's (paused) timer.
#[derive(Clone, Copy, Debug)]
pub enum Clock {
    /// The machine's.
    System,
    /// `epoch` plus what tokio's timer says has passed since `origin`.
    Simulated {
        /// What time it was at `origin`.
        epoch: Timestamp,
        /// Where tokio's timer was.
        origin: tokio::time::Instant,
        /// By how many seconds somebody has set the clock since.
        set_by_s: &'static AtomicI64,
    },
}

impl Clock {
    /// A clock that starts at `epoch` and moves with tokio's timer.
    pub fn simulated(epoch: Timestamp) -> Self {
        #[expect(clippy::disallowed_methods, reason = "the clock is where time comes from")]
        let origin = tokio::time::Instant::now();
        // One number a simulation, for as long as its clock is handed around: that is to the end.
        Self::Simulated { epoch, origin, set_by_s: Box::leak(Box::default()) }
    }

    /// The time, cut to microseconds: every store keeps that much.
    pub fn now(&self) -> Timestamp {
        let now = match self {
            #[expect(clippy::disallowed_methods, reason = "the clock is where time comes from")]
            Clock::System => Timestamp::now(),
            Clock::Simulated { epoch, origin, set_by_s } => {
                let passed =
                    SignedDuration::try_from(origin.elapsed()).unwrap_or(SignedDuration::MAX);
                let set_by = SignedDuration::from_secs(set_by_s.load(Ordering::Relaxed));
                epoch.saturating_add(passed.saturating_add(set_by)).unwrap_or(Timestamp::MAX)
            }
        };
        Timestamp::from_microsecond(now.as_microsecond()).unwrap_or(now)
    }

    /// How long ago some fixed moment was. It never goes back and knows nothing of wall clocks, so
    /// that nobody's setting of a clock can make the fleet look silent.
    pub fn monotonic(&self) -> Duration {
        match self {
            Clock::System => ORIGIN.elapsed(),
            Clock::Simulated { origin, .. } => origin.elapsed(),
        }
    }

    /// Sets a simulated clock forward or back, as people and time servers do. The monotonic clock does
    /// not notice, and nobody who waits does. The machine's clock is not ours to set.
    pub fn set_by(&self, time: SignedDuration) {
        if let Clock::Simulated { set_by_s, .. } = self {
            set_by_s.fetch_add(time.as_secs(), Ordering::Relaxed);
        }
    }

    /// Waits until a time.
    pub async fn sleep_until(&self, time: Timestamp) {
        let wait = time.duration_since(self.now());
        tokio::time::sleep(Duration::try_from(wait).unwrap_or(Duration::ZERO)).await;
    }
}
