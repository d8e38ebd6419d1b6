//! The only place of the agent that asks what time it is.

use jiff::{SignedDuration, Timestamp};

/// Somebody who knows the time.
pub trait Clock: Send + Sync {
    /// The time.
    fn now(&self) -> Timestamp;
}

/// The machine's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct System;

impl Clock for System {
    #[expect(clippy::disallowed_methods, reason = "the clock is where time comes from")]
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

/// A clock that starts at some time and moves with tokio's timer, which tests pause.
#[derive(Clone, Copy, Debug)]
pub struct Simulated {
    epoch: Timestamp,
    origin: tokio::time::Instant,
}

impl Simulated {
    /// A clock that shows `epoch` now.
    pub fn new(epoch: Timestamp) -> Self {
        #[expect(clippy::disallowed_methods, reason = "the clock is where time comes from")]
        let origin = tokio::time::Instant::now();
        Self { epoch, origin }
    }
}

impl Clock for Simulated {
    fn now(&self) -> Timestamp {
        let passed = SignedDuration::try_from(self.origin.elapsed()).unwrap_or(SignedDuration::MAX);
        self.epoch.saturating_add(passed).unwrap_or(Timestamp::MAX)
    }
}
