//! The only place of the agent that asks what time it is.

use jiff::{SignedDuration, Timestamp};
use std::sync::LazyLock;
use std::time::Instant;

/// Somebody who knows the time.
pub trait Clock: Send + Sync {
    /// The time, as people and time servers set it. For what is told and compared with other machines.
    fn now(&self) -> Timestamp;

    /// A time that is never set: it shows what `now` showed when the program began, and moves with the monotonic
    /// clock. For how long things last; a step of the clock ends none of them and makes none of them longer.
    fn steady(&self) -> Timestamp {
        self.now()
    }
}

/// The machine's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct System;

impl Clock for System {
    #[expect(clippy::disallowed_methods, reason = "the clock is where time comes from")]
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn steady(&self) -> Timestamp {
        #[expect(clippy::disallowed_methods, reason = "the clock is where time comes from")]
        static ORIGIN: LazyLock<(Timestamp, Instant)> =
            LazyLock::new(|| (Timestamp::now(), Instant::now()));
        let (began, origin) = *ORIGIN;
        let passed = SignedDuration::try_from(origin.elapsed()).unwrap_or(SignedDuration::MAX);
        began.saturating_add(passed).unwrap_or(Timestamp::MAX)
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
