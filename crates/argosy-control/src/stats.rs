//! Numbers about what the services and loops have done, for `/metrics`.

use jiff::SignedDuration;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
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

/// A time that changes.
#[derive(Debug, Default)]
pub struct Millis(AtomicI64);

impl Millis {
    /// It is this long now.
    pub fn set(&self, time: SignedDuration) {
        self.0.store(i64::try_from(time.as_millis()).unwrap_or(i64::MAX), Ordering::Relaxed);
    }

    /// How long it is.
    pub fn get(&self) -> SignedDuration {
        SignedDuration::from_millis(self.0.load(Ordering::Relaxed))
    }
}

/// What people are told about machines and their providers, beside what the conditions of a pool say. Each is
/// a line in the log as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MachineAlarm {
    /// A listing shows what should not be: a machine nobody knows, one that is stopped, one that is missing
    /// although its node is heard.
    Listing,
    /// A listing misses too much to be believed.
    Frozen,
    /// A provider does not take our credentials.
    Paused,
    /// A provider's machines could not be listed.
    ListFailed,
    /// A machine could not be looked for.
    LookFailed,
    /// A machine was to be returned, and a guard did not let it go.
    Held,
    /// A provider did not return a machine.
    ReturnFailed,
    /// A machine that was returned is there after a quarter of an hour, and may cost.
    Overdue,
    /// A machine could not be booted again.
    RebootFailed,
    /// A machine that nobody knows was to go, and did not.
    ReapFailed,
    /// The node of a machine that runs is not known any more.
    Nodeless,
    /// A provider takes a machine back, or will work on it.
    Notice,
    /// What a pool's size is judged by could not be measured.
    MeasureFailed,
    /// The provider of a machine is not configured.
    Unconfigured,
    /// A job about machines died of a mistake in this program.
    Died,
}

impl MachineAlarm {
    /// Every one.
    pub const ALL: [Self; 15] = [
        Self::Listing,
        Self::Frozen,
        Self::Paused,
        Self::ListFailed,
        Self::LookFailed,
        Self::Held,
        Self::ReturnFailed,
        Self::Overdue,
        Self::RebootFailed,
        Self::ReapFailed,
        Self::Nodeless,
        Self::Notice,
        Self::MeasureFailed,
        Self::Unconfigured,
        Self::Died,
    ];

    /// The word, as `/metrics` says it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Listing => "listing",
            Self::Frozen => "frozen",
            Self::Paused => "paused",
            Self::ListFailed => "list_failed",
            Self::LookFailed => "look_failed",
            Self::Held => "held",
            Self::ReturnFailed => "return_failed",
            Self::Overdue => "overdue",
            Self::RebootFailed => "reboot_failed",
            Self::ReapFailed => "reap_failed",
            Self::Nodeless => "nodeless",
            Self::Notice => "notice",
            Self::MeasureFailed => "measure_failed",
            Self::Unconfigured => "unconfigured",
            Self::Died => "died",
        }
    }
}

/// How often each was raised.
#[derive(Debug, Default)]
pub struct MachineAlarms([Counter; MachineAlarm::ALL.len()]);

impl MachineAlarms {
    /// Once more.
    pub fn raise(&self, alarm: MachineAlarm) {
        self.add(alarm, 1);
    }

    /// So many times more.
    pub fn add(&self, alarm: MachineAlarm, count: usize) {
        if let Some(counter) = self.0.get(alarm as usize) {
            counter.add(count as u64);
        }
    }

    /// How often.
    pub fn of(&self, alarm: MachineAlarm) -> u64 {
        self.0.get(alarm as usize).map_or(0, Counter::get)
    }
}

/// The numbers, since the process started.
#[derive(Debug, Default)]
pub struct Stats {
    /// Commits that were accepted.
    pub commits: Counter,
    /// How far this process' clock is ahead of that of the store.
    pub clock_off: Millis,
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
    /// Commands and terminations that took more out of service than a disruption budget allows, because the caller
    /// asked for that.
    pub over_budget: Counter,
    /// The same for clients that cannot ask for it: Navarch's wire knows no budgets.
    pub over_budget_unasked: Counter,
    /// Machines that were ordered.
    pub machines_ordered: Counter,
    /// Purchases that came to nothing, or may have.
    pub machine_failures: Counter,
    /// Machines that never registered.
    pub machines_stale: Counter,
    /// What people are told about machines, and providers of machines.
    pub machine_alarms: MachineAlarms,
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
