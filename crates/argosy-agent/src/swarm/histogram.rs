//! How long things took, in little memory: a soak of days is as large as a minute.
//!
//! Buckets are as wide as a 128th of what they count, so every percentile is right within 0.8 %; the
//! largest value is exact. Load and benchmarks read their times with it.

use std::time::Duration;

/// How many buckets each power of two has, as a power of two.
const BITS: u32 = 7;
const SPLIT: u64 = 1 << BITS;

/// Counted times. Grows to at most 60 KB.
#[derive(Clone, Debug, Default)]
pub struct Histogram {
    counts: Vec<u64>,
    count: u64,
    largest_ns: u64,
}

impl Histogram {
    /// Counts one time.
    pub fn add(&mut self, time: Duration) {
        let ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let place = place(ns);
        if self.counts.len() <= place {
            self.counts.resize(place + 1, 0);
        }
        if let Some(count) = self.counts.get_mut(place) {
            *count += 1;
        }
        self.count += 1;
        self.largest_ns = self.largest_ns.max(ns);
    }

    /// How many were counted.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The time that this share of all did not exceed: 0.5 is the middle. `None` of nothing.
    pub fn at(&self, share: f64) -> Option<Duration> {
        if self.count == 0 {
            return None;
        }
        // Rounded up: the p99 of 100 times is the 99th, not the 100th.
        let wanted = ((self.count as f64 * share).ceil() as u64).clamp(1, self.count);
        let mut seen = 0;
        for (place, count) in self.counts.iter().enumerate() {
            seen += count;
            if wanted <= seen {
                return Some(Duration::from_nanos(last_of(place).min(self.largest_ns)));
            }
        }
        self.max()
    }

    /// The longest. `None` of nothing.
    pub fn max(&self) -> Option<Duration> {
        (0 < self.count).then(|| Duration::from_nanos(self.largest_ns))
    }
}

impl FromIterator<Duration> for Histogram {
    fn from_iter<T: IntoIterator<Item = Duration>>(times: T) -> Self {
        let mut histogram = Self::default();
        times.into_iter().for_each(|time| histogram.add(time));
        histogram
    }
}

/// The bucket of a value: values below `SPLIT` have one each.
fn place(ns: u64) -> usize {
    let shift = ns.max(1).ilog2().saturating_sub(BITS);
    let place = u64::from(shift) * SPLIT + (ns >> shift);
    usize::try_from(place).unwrap_or(usize::MAX)
}

/// The largest value of a bucket.
fn last_of(place: usize) -> u64 {
    let place = place as u64;
    let shift = (place / SPLIT).saturating_sub(1);
    let top = u128::from(place - shift * SPLIT) + 1;
    u64::try_from((top << shift) - 1).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
