//! Whose turn it is: which adapters to run now, when to look again, and why.

use crate::adapter::{AdapterName, AdapterSpec, Report, Runner, Tri};
use crate::backoff;
use crate::resource::{Generation, Resource};
use crate::status::{AdapterPhase, adapter_phase, done, predecessors};
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
            // No longer than a resync: people who removed a cause see the cluster recover within it.
            backoff_max: SignedDuration::from_secs(10),
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
///
/// Nobody is told to run an external adapter, one that is a loop of its own, or a webhook that refused the event of this
/// generation; their deadlines count all the same.
///
/// Guarantees: at `wake_at` the same question has a new answer, and not before.
pub fn plan(
    of: &Resource,
    adapters: &[AdapterSpec],
    children: bool,
    attempts: &BTreeMap<AdapterName, Attempts>,
    now: Timestamp,
    rules: &Rules,
) -> Plan {
    let deleting = of.deletion.is_some();
    if deleting && children {
        return Plan::default();
    }
    let is_done = |spec: &AdapterSpec| done(of, &spec.name).is_some();
    if deleting && adapters.iter().filter(|spec| spec.required).all(is_done) {
        return Plan { finalize: true, ..Plan::default() };
    }
    let mut plan = Plan::default();
    for spec in adapters {
        let Some(turn) = turn_since(of, spec, adapters) else { continue };
        let attempts = attempts.get(&spec.name).filter(|past| past.generation == of.generation);
        if let Some((due, reason)) = due(of, spec, attempts, turn, rules) {
            if due <= now {
                plan.run.push(Turn { adapter: spec.name.clone(), reason });
            } else {
                plan.wake(due);
            }
        }
        if let Some(deadline) = deadline(of, spec, turn) {
            if deadline <= now {
                plan.stalled.push(spec.name.clone());
            } else {
                plan.wake(deadline);
            }
        }
    }
    if deleting {
        plan.run.reverse();
    }
    plan
}

impl Plan {
    fn wake(&mut self, at: Timestamp) {
        self.wake_at = Some(self.wake_at.map_or(at, |earlier| earlier.min(at)));
    }
}

/// Whether it is an adapter's turn: those before it are done with this generation.
pub fn is_turn(of: &Resource, spec: &AdapterSpec, adapters: &[AdapterSpec]) -> bool {
    turn_since(of, spec, adapters).is_some()
}

/// Since when it is the adapter's turn: since the last one before it was done with this generation.
fn turn_since(of: &Resource, spec: &AdapterSpec, adapters: &[AdapterSpec]) -> Option<Timestamp> {
    predecessors(of, &spec.name, adapters)
        .into_iter()
        .map(|before| done(of, before))
        .try_fold(of.updated.at, |latest, done| Some(latest.max(done?)))
}

/// When the adapter is to be run, and why; `None` while that is not for us to say.
fn due(
    of: &Resource,
    spec: &AdapterSpec,
    attempts: Option<&Attempts>,
    turn: Timestamp,
    rules: &Rules,
) -> Option<(Timestamp, &'static str)> {
    let dispatch = of.dispatches.get(&spec.name);
    let refused = dispatch.is_some_and(|dispatch| {
        dispatch.generation == of.generation && dispatch.rejected.is_some()
    });
    let told = spec.runner != Runner::External && !spec.is_loop();
    if !told || refused || attempts.is_some_and(|past| past.running) {
        return None;
    }
    let report = last_report(of, spec);
    let done = done(of, &spec.name).is_some();
    // What a webhook's adapter reports is its own to retry; only an undelivered event is ours.
    let ours = spec.runner == Runner::BuiltIn;
    let failed = ours
        && (adapter_phase(of, &spec.name) == AdapterPhase::Failed
            || report.is_some_and(|report| report.conditions.health.status == Tri::False));
    let last = match (attempts, report.map(|report| report.last_report_time)) {
        (Some(past), reported) => reported.map_or(past.started, |at| at.max(past.started)),
        // A report from before its turn says that it waits: now it need not. And one of ours that
        // says it is at work was made by a process that is gone, and its work with it.
        (None, Some(reported)) if done || (turn <= reported && (failed || !ours)) => reported,
        (None, _) => return Some((Timestamp::MIN, "its turn")),
    };
    let failures = attempts.map_or(0, |past| past.failures);
    let (wait, reason) = if 0 < failures || failed {
        let who = format!("{}/{}", of.id, spec.name);
        let wait = backoff::delay(&who, failures.max(1), rules.backoff_first, rules.backoff_max);
        (wait, "retry after a failure")
    } else if done {
        (rules.resync_ready, "resync of what is done")
    } else {
        (rules.resync_not_ready, "resync of what is not done")
    };
    Some((later(last, wait), reason))
}

/// When the adapter counts as stalled, unless it does already, or is done.
fn deadline(of: &Resource, spec: &AdapterSpec, turn: Timestamp) -> Option<Timestamp> {
    let owes = done(of, &spec.name).is_none() && !of.stalled.contains_key(&spec.name);
    // A loop that has reported says by itself what keeps it.
    let owes = owes && !(spec.is_loop() && last_report(of, spec).is_some());
    let heard = last_report(of, spec).map_or(turn, |report| report.last_report_time.max(turn));
    owes.then(|| later(heard, spec.deadline))
}

/// What the adapter last reported at this generation.
fn last_report<'a>(of: &'a Resource, spec: &AdapterSpec) -> Option<&'a Report> {
    of.reports
        .get(&spec.name)
        .map(|report| &**report)
        .filter(|report| report.observed_generation == of.generation)
}

fn later(at: Timestamp, wait: SignedDuration) -> Timestamp {
    at.checked_add(wait).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests;
