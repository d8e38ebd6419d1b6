//! Whose turn it is: which adapters to run now, when to look again, and why.

use crate::adapter::{AdapterName, AdapterSpec};
use crate::resource::{Generation, Resource};
use jiff::{SignedDuration, Timestamp};
use std::collections::BTreeMap;

/// When an adapter is run again although nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// While the resource is not ready.
    pub resync_not_ready: SignedDuration,
    /// When it is, to find drift.
    pub resync_ready: SignedDuration,
    /// The first wait after a failure; doubles with each, with jitter.
    pub backoff_first: SignedDuration,
    /// The longest wait after failures.
    pub backoff_max: SignedDuration,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            resync_not_ready: SignedDuration::from_secs(10),
            resync_ready: SignedDuration::from_mins(30),
            backoff_first: SignedDuration::from_secs(1),
            backoff_max: SignedDuration::from_mins(5),
        }
    }
}

/// What this process remembers of its attempts to run one adapter for one resource. It may be
/// forgotten at any time: then the adapter is run once more than needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempts {
    /// The generation it is about.
    pub generation: Generation,
    /// Whether a run is under way.
    pub running: bool,
    /// When the last run started.
    pub started: Timestamp,
    /// How many runs in a row have failed.
    pub failures: u32,
}

/// What to do about one resource now.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// Adapters to run, each with the reason, dependencies first.
    pub run: Vec<Turn>,
    /// Adapters whose deadline passed and that are not marked yet.
    pub stalled: Vec<AdapterName>,
    /// All required adapters have cleaned up and no child is left: remove the record.
    pub finalize: bool,
    /// When to look again even if nothing changes.
    pub wake_at: Option<Timestamp>,
}

/// One adapter's turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Who.
    pub adapter: AdapterName,
    /// Why now.
    pub reason: &'static str,
}

/// Decides what to do about `of`. An adapter is due at once when what it depends on is done and it
/// has not finished this generation; after a failure with backoff; and at each resync. While the
/// resource is being deleted the order is reversed, and nothing is cleaned up before the last child
/// is gone.
pub fn plan(
    of: &Resource,
    adapters: &[AdapterSpec],
    children: bool,
    attempts: &BTreeMap<AdapterName, Attempts>,
    now: Timestamp,
    rules: &Rules,
) -> Plan {
    let _ = (of, adapters, children, attempts, now, rules);
    todo!()
}
