//! The only place that asks what time it is.

use jiff::{SignedDuration, Timestamp};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

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
        /// What was done to the clock since.
        dial: &'static Dial,
    },
}

/// What is done to a simulated clock.
#[derive(Debug, Default)]
pub struct Dial {
    /// By how many microseconds it was set or coasted since the beginning.
    ahead_us: AtomicI64,
    /// Who waits for which time, and how many do.
    sleepers: Mutex<BTreeMap<Timestamp, u32>>,
    coasted: Notify,
}

impl Dial {
    fn sleepers(&self) -> MutexGuard<'_, BTreeMap<Timestamp, u32>> {
        // Nothing under the lock can leave it half changed.
        self.sleepers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn turn(&self, by: SignedDuration) {
        let by_us = i64::try_from(by.as_micros()).unwrap_or(i64::MAX);
        self.ahead_us.fetch_add(by_us, Ordering::Relaxed);
    }
}

/// Somebody who waits, for as long as it is kept.
struct Sleeper {
    dial: &'static Dial,
    time: Timestamp,
}

impl Sleeper {
    fn new(dial: &'static Dial, time: Timestamp) -> Self {
        *dial.sleepers().entry(time).or_default() += 1;
        Self { dial, time }
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let mut sleepers = self.dial.sleepers();
        if let Some(count) = sleepers.get_mut(&self.time) {
            *count -= 1;
            if *count == 0 {
                sleepers.remove(&self.time);
            }
        }
    }
}

impl Clock {
    /// A clock that starts at `epoch` and moves with tokio's timer.
    pub fn simulated(epoch: Timestamp) -> Self {
        #[expect(clippy::disallowed_methods, reason = "the clock is where time comes from")]
        let origin = tokio::time::Instant::now();
        // One a simulation, for as long as its clock is handed around: that is to the end.
        Self::Simulated { epoch, origin, dial: Box::leak(Box::default()) }
    }

    /// The time, cut to microseconds: every store keeps that much.
    pub fn now(&self) -> Timestamp {
        let now = match self {
            #[expect(clippy::disallowed_methods, reason = "the clock is where time comes from")]
            Clock::System => Timestamp::now(),
            Clock::Simulated { epoch, origin, dial } => {
                let passed =
                    SignedDuration::try_from(origin.elapsed()).unwrap_or(SignedDuration::MAX);
                let ahead = SignedDuration::from_micros(dial.ahead_us.load(Ordering::Relaxed));
                epoch.saturating_add(passed.saturating_add(ahead)).unwrap_or(Timestamp::MAX)
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
        if let Clock::Simulated { dial, .. } = self {
            dial.turn(time);
        }
    }

    /// Moves a simulated clock on over a time in which nothing happens, without playing it. The monotonic
    /// clock stands still meanwhile, so that nothing that is measured or renewed all the time notices; who
    /// waits for a time of day is woken when it has come.
    pub fn coast(&self, time: SignedDuration) {
        if let Clock::Simulated { dial, .. } = self {
            dial.turn(time);
            dial.coasted.notify_waiters();
        }
    }

    /// The first time that anybody waits for on a simulated clock.
    pub fn next_sleeper(&self) -> Option<Timestamp> {
        match self {
            Clock::System => None,
            Clock::Simulated { dial, .. } => dial.sleepers().keys().next().copied(),
        }
    }

    /// Waits until a time.
    pub async fn sleep_until(&self, time: Timestamp) {
        let wait = || {
            let wait = time.duration_since(self.now());
            Duration::try_from(wait).unwrap_or(Duration::ZERO)
        };
        let Clock::Simulated { dial, .. } = self else {
            return tokio::time::sleep(wait()).await;
        };
        let _sleeper = Sleeper::new(dial, time);
        loop {
            // Before the time is asked, so that no coasting falls between the two.
            let coasted = dial.coasted.notified();
            tokio::select! {
                biased;
                () = tokio::time::sleep(wait()) => return,
                () = coasted => {}
            }
        }
    }
}

#[cfg(test)]
mod tests;
