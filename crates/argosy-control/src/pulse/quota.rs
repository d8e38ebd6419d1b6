//! How many events one node may send: a bucket that fills up by itself.

use std::time::Duration;

/// The bucket of one node.
#[derive(Debug, Default)]
pub(crate) struct Quota {
    /// What is left, and since when; `None` while nothing was ever spent.
    spent: Option<(f64, Duration)>,
}

/// What may be sent for long, and at once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Allowance {
    pub(crate) per_second: u32,
    pub(crate) burst: u32,
}

/// What becomes of a number of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Spend {
    /// All of them are allowed. `calm`: nothing was spent for so long that the bucket was full.
    All {
        /// See above.
        calm: bool,
    },
    /// Some are: the node says too much.
    Some,
    /// None is.
    None,
}

impl Quota {
    /// Takes from the bucket, which is filled for the time that has passed.
    pub(crate) fn spend(&mut self, events: usize, allowance: Allowance, now: Duration) -> Spend {
        let full = f64::from(allowance.burst);
        let left = self.spent.map_or(full, |(left, at)| {
            let passed = now.saturating_sub(at).as_secs_f64();
            (left + passed * f64::from(allowance.per_second)).min(full)
        });
        let wanted = f64::from(u32::try_from(events).unwrap_or(u32::MAX));
        let (left, spend) = if wanted <= left {
            (left - wanted, Spend::All { calm: full <= left })
        } else if 1.0 <= left {
            (0.0, Spend::Some)
        } else {
            (left, Spend::None)
        };
        self.spent = Some((left, now));
        spend
    }
}
