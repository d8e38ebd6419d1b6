//! How many calls an account may make: a token bucket, and the waits that a provider asks for.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Hands out turns. Whoever takes one has it, however long they wait.
#[derive(Debug)]
pub(crate) struct Bucket {
    per_s: f64,
    burst: f64,
    level: Mutex<Level>,
}

#[derive(Debug)]
struct Level {
    /// Turns that are left; below zero, so many wait.
    turns: f64,
    /// When that was.
    at: Duration,
    /// Nobody goes before.
    held_until: Duration,
}

impl Bucket {
    /// `burst` turns at once, and `per_s` a second for ever.
    pub(crate) fn new(per_s: f64, burst: u32) -> Self {
        let burst = f64::from(burst.max(1));
        let level = Level { turns: burst, at: Duration::ZERO, held_until: Duration::ZERO };
        Self { per_s: per_s.max(f64::MIN_POSITIVE), burst, level: Mutex::new(level) }
    }

    /// Takes a turn: how long to wait for it. `now` is of a clock that never goes back.
    ///
    /// # Errors
    /// How long it would be, if that is longer than `wait_max`; no turn was taken then.
    pub(crate) fn take(&self, now: Duration, wait_max: Duration) -> Result<Duration, Duration> {
        let mut level = self.level.lock().unwrap_or_else(PoisonError::into_inner);
        let passed = now.saturating_sub(level.at).as_secs_f64();
        level.turns = (level.turns + passed * self.per_s).min(self.burst);
        level.at = level.at.max(now);
        let short = (1.0 - level.turns).max(0.0) / self.per_s;
        let queue = Duration::try_from_secs_f64(short).unwrap_or(Duration::MAX);
        let wait = queue.saturating_add(level.held_until.saturating_sub(now));
        if wait_max < wait {
            return Err(wait);
        }
        level.turns -= 1.0;
        Ok(wait)
    }

    /// The other side says that it is too fast: nobody goes for a while, and what was saved up is gone.
    pub(crate) fn hold(&self, now: Duration, wait: Duration) {
        let mut level = self.level.lock().unwrap_or_else(PoisonError::into_inner);
        let until = now.saturating_add(wait);
        level.held_until = level.held_until.max(until);
        level.turns = level.turns.min(0.0);
        level.at = level.at.max(until);
    }
}

#[cfg(test)]
mod tests;
