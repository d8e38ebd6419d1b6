//! Whether this process' time can be gone by: a process whose clock is off by more than a second leads nothing.
//!
//! Looked at whenever a lease is asked for, which each process does all the time, and nowhere else: without a lease no
//! loop decides anything. What a newcomer gets wrong: with a store that no other process can use there is nothing to
//! compare with, and the only process leads whatever its clock shows.

use crate::loops::LEASE;
use crate::loops::liveness::signed;
use crate::office::Office;
use argosy_store::engine::Lease;
use argosy_store::view::View;
use jiff::{SignedDuration, Timestamp};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tracing::{info, warn};

/// How far the time may be off from that of the store. More than any two machines with a time server differ by; less
/// than anything that is decided by time takes.
pub(crate) const OFF_MAX: SignedDuration = SignedDuration::from_secs(1);

/// With one process: a machine whose clock is so much further than the time that was counted was asleep, or its clock
/// was wrong before. Catching up would take a day, so everything begins anew, as after a restart.
const ASLEEP: SignedDuration = SignedDuration::from_hours(1);

/// For how long an answer holds: each process has a handful of leases to renew every three seconds.
const ASKED_EVERY: Duration = Duration::from_secs(2);

/// What was found when the clocks were last compared.
#[derive(Debug, Default)]
pub(crate) struct TimeCheck(Mutex<State>);

#[derive(Clone, Copy, Debug, Default)]
struct State {
    /// When, on the monotonic clock; `None` before the first time.
    at: Option<Duration>,
    /// Since when it is off by too much, on the monotonic clock.
    wrong_since: Option<Duration>,
}

impl State {
    fn agrees(&self) -> bool {
        self.at.is_some() && self.wrong_since.is_none()
    }
}

impl TimeCheck {
    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing under the lock can leave it half changed.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it was found to be off by too much.
    pub(crate) fn is_off(&self) -> bool {
        self.state().wrong_since.is_some()
    }
}

impl Office {
    /// Takes or renews a lease; `None` if somebody else has it, or our clock is off: then nobody may go by it.
    pub(crate) async fn lease(
        &self,
        name: &str,
        holder: &str,
    ) -> Result<Option<Lease>, argosy_store::Error> {
        if !self.compare_clocks().await? {
            return Ok(None);
        }
        self.store.lease(name, holder, LEASE).await
    }

    /// Whether a process that may not lead may say that the time of something is over: its clock is right, and somebody
    /// has led all the time.
    pub(crate) fn may_judge(&self, view: &View, now: Timestamp) -> bool {
        let away = view.attendance().and_then(|attended| attended.value.away(now));
        !self.time.is_off() && away.is_none()
    }

    /// The time by the clock that all processes share: what others judge is stamped with it, and a process whose clock
    /// is off answers requests all the same.
    pub(crate) fn shared(&self, now: Timestamp) -> Timestamp {
        match self.time.is_off() {
            true => now.checked_sub(self.stats.clock_off.get()).unwrap_or(now),
            false => now,
        }
    }

    /// Compares our time with that of the store, unless that was done a moment ago. Whether it can be gone by.
    async fn compare_clocks(&self) -> Result<bool, argosy_store::Error> {
        let asked_at = self.clock.monotonic();
        let known = *self.time.state();
        if known.at.is_some_and(|at| asked_at.saturating_sub(at) < ASKED_EVERY) {
            return Ok(known.agrees());
        }
        let before = (self.clock.now(), self.clock.wall());
        let shared = self.store.time().await?;
        let now = self.clock.monotonic();
        let took = signed(now.saturating_sub(asked_at));
        let (off, wall_off) = match shared {
            Some(time) => (apart(before.0, time, took), apart(before.1, time, took)),
            None => {
                let behind = before.0.duration_since(before.1);
                let asleep = if behind < -ASLEEP { behind } else { SignedDuration::ZERO };
                (asleep, SignedDuration::ZERO)
            }
        };
        Ok(self.compared(now, off, wall_off))
    }

    /// Takes in how far our time, and our machine's clock, are off.
    fn compared(&self, now: Duration, off: SignedDuration, wall_off: SignedDuration) -> bool {
        let mut state = self.time.state();
        let before = *state;
        // A machine whose clock is off takes our time along, sooner or later.
        let off = if off.abs() < wall_off.abs() { wall_off } else { off };
        let wrong_since = (OFF_MAX < off.abs()).then(|| before.wrong_since.unwrap_or(now));
        *state = State { at: Some(now), wrong_since };
        self.stats.clock_off.set(off);
        match (before.wrong_since, wrong_since) {
            (None, Some(_)) => warn!(
                off_s = off.as_secs_f64(),
                allowed_s = OFF_MAX.as_secs_f64(),
                "the clock of this process is off: it leads nothing until that is right"
            ),
            (Some(_), None) => info!("the clock of this process is right again"),
            // By now every loop has noticed that it leads nothing, and nothing is measured by our time.
            (Some(since), Some(_))
                if LEASE <= signed(now.saturating_sub(since)) && wall_off.abs() <= OFF_MAX =>
            {
                self.clock.settle();
                *state = State { at: None, ..*state };
            }
            (None, None) | (Some(_), Some(_)) => {}
        }
        state.agrees()
    }
}

/// How far a time is ahead of another that was asked for right after, and took so long to be told.
fn apart(ours: Timestamp, theirs: Timestamp, took: SignedDuration) -> SignedDuration {
    let ahead = ours.duration_since(theirs);
    // What they said was true at some moment of the asking.
    let least = ahead.saturating_add(took);
    if SignedDuration::ZERO < ahead {
        ahead
    } else if least < SignedDuration::ZERO {
        least
    } else {
        SignedDuration::ZERO
    }
}

#[cfg(test)]
mod tests;
