//! How fast we may ask: a token bucket for each kind of call, as EC2 itself keeps them.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// How many calls at once, and how many a second after that.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// How many at once.
    pub burst: u32,
    /// How many a second in the long run.
    pub per_s: f64,
}

/// How fast an account may be asked. The default is what EC2 and Route 53 give to every account; whoever
/// had them raised can say so.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    /// RunInstances.
    pub launches: Rate,
    /// Everything else that changes something.
    pub changes: Rate,
    /// Everything that only looks.
    pub reads: Rate,
    /// Route 53, which counts all calls together.
    pub dns: Rate,
}

impl Default for Rates {
    fn default() -> Self {
        Self {
            launches: Rate { burst: 5, per_s: 2.0 },
            changes: Rate { burst: 50, per_s: 5.0 },
            reads: Rate { burst: 100, per_s: 20.0 },
            dns: Rate { burst: 5, per_s: 5.0 },
        }
    }
}

/// How long a call may wait for its turn. Whoever would wait longer is told so, and comes back.
pub(super) const WAIT_MAX: Duration = Duration::from_secs(30);

/// One bucket.
#[derive(Debug)]
pub(super) struct Bucket {
    rate: Rate,
    level: Mutex<Level>,
}

#[derive(Clone, Copy, Debug)]
struct Level {
    /// Below zero if some wait for their turn.
    tokens: f64,
    at: Duration,
}

impl Bucket {
    pub(super) fn new(rate: Rate) -> Self {
        let level = Level { tokens: rate.burst.into(), at: Duration::ZERO };
        Self { rate, level: Mutex::new(level) }
    }

    /// Takes a turn; it begins after the time given. `Err` with how long it would be, if that is too long:
    /// then no turn was taken.
    pub(super) fn take(&self, now: Duration) -> Result<Duration, Duration> {
        let mut level = self.level.lock().unwrap_or_else(PoisonError::into_inner);
        *level = self.filled(*level, now);
        let missing = (1.0 - level.tokens).max(0.0);
        let wait = Duration::try_from_secs_f64(missing / self.rate.per_s.max(0.01))
            .unwrap_or(Duration::MAX);
        if WAIT_MAX < wait {
            return Err(wait);
        }
        level.tokens -= 1.0;
        Ok(wait)
    }

    /// The other side says that it is too fast: what was saved up is gone, and the next turn begins no sooner
    /// than it wants.
    pub(super) fn slow_down(&self, now: Duration, retry_after: Duration) {
        let mut level = self.level.lock().unwrap_or_else(PoisonError::into_inner);
        *level = self.filled(*level, now);
        let owed = (retry_after.as_secs_f64() * self.rate.per_s - 1.0).max(0.0);
        level.tokens = level.tokens.min(-owed);
    }

    fn filled(&self, level: Level, now: Duration) -> Level {
        let passed = now.saturating_sub(level.at).as_secs_f64();
        let tokens = (level.tokens + passed * self.rate.per_s).min(self.rate.burst.into());
        Level { tokens, at: now.max(level.at) }
    }
}

#[cfg(test)]
mod tests;
