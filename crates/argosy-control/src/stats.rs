//! Numbers about what the services and loops have done, for `/metrics`.

use std::sync::atomic::{AtomicU64, Ordering};

/// A number that only grows.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// One more.
    pub fn add_one(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// The number.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The numbers, since the process started.
#[derive(Debug, Default)]
pub struct Stats {
    /// Commits that were accepted.
    pub commits: Counter,
    /// Commits that had to be decided again because somebody else was first.
    pub conflicts: Counter,
    /// Reports that were news.
    pub reports_stored: Counter,
    /// Reports that were not.
    pub reports_discarded: Counter,
    /// Runs of built-in adapters that were started.
    pub adapter_runs: Counter,
    /// Runs of built-in adapters that failed.
    pub adapter_failures: Counter,
    /// Events that were delivered.
    pub events_sent: Counter,
    /// Deliveries that failed.
    pub events_failed: Counter,
    /// Events that were given up.
    pub events_rejected: Counter,
    /// Changes of ours that were stopped because they would have broken a rule that always holds.
    /// More than none is a mistake in this program.
    pub invariants_kept: Counter,
}
