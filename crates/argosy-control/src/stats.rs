//! Numbers about what the services and loops have done, for `/metrics`.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// A number that only grows.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// One more.
    pub fn add_one(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// So many more.
    pub fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
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
    /// Registrations of nodes that were let in.
    pub registrations: Counter,
    /// Registrations that were refused.
    pub registrations_refused: Counter,
    /// Heartbeats of nodes.
    pub heartbeats: Counter,
    /// Measurements that came with heartbeats and were not kept: too soon, or too much at once.
    pub samples_shed: Counter,
    /// Readings that cannot be true and were not kept.
    pub readings_refused: Counter,
    /// Health reports of nodes that were taken in.
    pub health_reports: Counter,
    /// Health reports that were old.
    pub health_reports_old: Counter,
    /// Health events that were judged.
    pub health_events: Counter,
    /// Health events that were not, because their node sent too many.
    pub health_events_dropped: Counter,
    /// Credentials of one node that were used for another. More than none is an attack, or a mistake in
    /// how credentials are handed out.
    pub impersonations: Counter,
    /// Things to write down later that found the queue full.
    pub notes_lost: Counter,
    /// Actions about nodes that nobody asked for.
    pub remedies: Counter,
    /// Machines that were ordered.
    pub machines_ordered: Counter,
    /// Purchases that came to nothing, or may have.
    pub machine_failures: Counter,
    /// Machines that never registered.
    pub machines_stale: Counter,
    /// What the last change was that was stopped, and which rule it would have broken.
    refusal: Mutex<Option<String>>,
}

impl Stats {
    /// A change of ours was stopped because it would have broken a rule that always holds.
    pub(crate) fn refused(&self, broken: &str) {
        self.invariants_kept.add_one();
        *self.refusal.lock().unwrap_or_else(PoisonError::into_inner) = Some(broken.to_owned());
    }

    /// What the last such change was, for whoever looks for the mistake.
    pub fn last_refusal(&self) -> Option<String> {
        self.refusal.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
