//! The only place that asks what time it is.
//!
//! Three readings. `monotonic` measures. `now` is the time that everything is decided and written down by: it begins
//! as the machine's and goes on by the monotonic clock, so that no setting of a clock makes a deadline pass, stops a
//! timer or makes the fleet look silent. `wall` is the machine's clock as it is, for what people and others wrote by
//! theirs: windows, schedules, the expiry of credentials.

use jiff::{SignedDuration, Timestamp};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// Where both clocks of the machine were when they were first asked.
#[expect(clippy::disallowed_methods, reason = "the clock is where time comes from")]
static ORIGIN: LazyLock<(Instant, Timestamp)> =
    LazyLock::new(|| (Instant::now(), Timestamp::now()));

static STEADY: Mutex<Steady> =
    Mutex::new(Steady { at: Duration::ZERO, shift: SignedDuration::ZERO });

/// `now` catches up with a machine's clock that was set by one part in so many of what passes: fast enough that an
/// hour is caught up with within a day, and slow enough that no span is wrong by more than that.
const CATCH_UP: i32 = 20;

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

/// How far `now` is from a clock that goes on evenly since the beginning.
#[derive(Debug, Default)]
struct Steady {
    /// When that was last worked out.
    at: Duration,
    shift: SignedDuration,
}

impl Steady {
    /// Where it is after `passed`, if the machine's clock was set by `target` since the beginning.
    fn go_on(&mut self, passed: Duration, target: SignedDuration) -> SignedDuration {
        let by = signed(passed.saturating_sub(self.at));
        let most = by / CATCH_UP;
        let behind = target.saturating_sub(self.shift);
        self.shift = self.shift.saturating_add(behind.clamp(-most, most));
        self.at = self.at.max(passed);
        self.shift
    }
}

fn signed(time: Duration) -> SignedDuration {
    SignedDuration::try_from(time).unwrap_or(SignedDuration::MAX)
}

/// What is done to a simulated clock.
#[derive(Debug, Default)]
pub struct Dial {
    /// By how many microseconds it coasted since the beginning.
    coasted_us: AtomicI64,
    /// By how many it was set.
    set_us: AtomicI64,
    steady: Mutex<Steady>,
    /// Who waits for which time, and how many do.
    sleepers: Mutex<BTreeMap<Timestamp, u32>>,
    coasted: Notify,
}

impl Dial {
    fn sleepers(&self) -> MutexGuard<'_, BTreeMap<Timestamp, u32>> {
        // Nothing under the lock can leave it half changed.
        self.sleepers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self) -> SignedDuration {
        SignedDuration::from_micros(self.set_us.load(Ordering::Relaxed))
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

/// Every store keeps microseconds.
fn cut(time: Timestamp) -> Timestamp {
    Timestamp::from_microsecond(time.as_microsecond()).unwrap_or(time)
}

impl Clock {
    /// A clock that starts at `epoch` and moves with tokio's timer.
    pub fn simulated(epoch: Timestamp) -> Self {
        #[expect(clippy::disallowed_methods, reason = "the clock is where time comes from")]
        let origin = tokio::time::Instant::now();
        // One a simulation, for as long as its clock is handed around: that is to the end.
        Self::Simulated { epoch, origin, dial: Box::leak(Box::default()) }
    }

    /// The time that is decided and written by, cut to microseconds. It never goes back while the process runs, and
    /// follows a machine's clock that was set by a twentieth of what passes.
    pub fn now(&self) -> Timestamp {
        let (base, passed, target) = self.reading();
        let shift = self.steady().go_on(passed, target);
        cut(base.saturating_add(signed(passed).saturating_add(shift)).unwrap_or(Timestamp::MAX))
    }

    /// What the machine's clock shows, cut to microseconds: for what people wrote by theirs. It may be set at any
    /// moment; nothing is measured by it.
    pub fn wall(&self) -> Timestamp {
        let (base, passed, target) = self.reading();
        cut(base.saturating_add(signed(passed).saturating_add(target)).unwrap_or(Timestamp::MAX))
    }

    /// Where the clock began, how much has passed since, and by how much the machine's clock was set meanwhile.
    fn reading(&self) -> (Timestamp, Duration, SignedDuration) {
        match self {
            Clock::System => {
                let (origin, began) = *ORIGIN;
                let passed = origin.elapsed();
                #[expect(clippy::disallowed_methods, reason = "the clock is where time comes from")]
                let wall = Timestamp::now().duration_since(began);
                (began, passed, wall.saturating_sub(signed(passed)))
            }
            Clock::Simulated { epoch, origin, dial } => {
                let coasted_us = dial.coasted_us.load(Ordering::Relaxed);
                let coasted = Duration::from_micros(u64::try_from(coasted_us).unwrap_or(0));
                (*epoch, origin.elapsed().saturating_add(coasted), dial.set())
            }
        }
    }

    fn steady(&self) -> MutexGuard<'static, Steady> {
        let steady = match self {
            Clock::System => &STEADY,
            Clock::Simulated { dial, .. } => &dial.steady,
        };
        steady.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How far `now` is ahead of the machine's clock, in whole seconds: nobody writes a window more exactly.
    pub fn ahead(&self) -> SignedDuration {
        SignedDuration::from_secs(self.now().duration_since(self.wall()).as_secs())
    }

    /// Sets `now` to what the machine's clock shows. Only where nothing waits or is measured by it: `now` may go back.
    pub(crate) fn settle(&self) {
        let (_, passed, target) = self.reading();
        *self.steady() = Steady { at: passed, shift: target };
    }

    /// How long ago some fixed moment was. It never goes back and knows nothing of wall clocks, so
    /// that nobody's setting of a clock can make the fleet look silent.
    pub fn monotonic(&self) -> Duration {
        match self {
            Clock::System => ORIGIN.0.elapsed(),
            Clock::Simulated { origin, .. } => origin.elapsed(),
        }
    }

    /// Sets a simulated machine's clock forward or back, as people and time servers do. `monotonic` does not
    /// notice, `now` follows slowly. The machine's clock is not ours to set.
    pub fn set_by(&self, time: SignedDuration) {
        if let Clock::Simulated { dial, .. } = self {
            turn(&dial.set_us, time);
        }
    }

    /// Moves a simulated clock on over a time in which nothing happens, without playing it. The monotonic
    /// clock stands still meanwhile, so that nothing that is measured or renewed all the time notices; who
    /// waits for a time of day is woken when it has come.
    pub fn coast(&self, time: SignedDuration) {
        if let Clock::Simulated { dial, .. } = self {
            turn(&dial.coasted_us, time.max(SignedDuration::ZERO));
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

    /// Waits for as long as it is until a time. By the monotonic clock: while `now` catches up with a machine's clock
    /// that was set, that may end a twentieth of the wait before the time or after it.
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

fn turn(dial: &AtomicI64, by: SignedDuration) {
    let by_us = i64::try_from(by.as_micros()).unwrap_or(i64::MAX);
    dial.fetch_add(by_us, Ordering::Relaxed);
}

#[cfg(test)]
mod tests;
