//! What one adapter is doing, in a word and a sentence.

use super::done;
use crate::adapter::{AdapterName, AdapterSpec, Report, Reported, Tri};
use crate::resource::Resource;
use jiff::Timestamp;

/// What one adapter is doing about the current generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdapterPhase {
    /// Not started.
    Pending,
    /// At work.
    Running,
    /// Done.
    Complete,
    /// Stopped by an error; it will be tried again.
    Failed,
}

/// One adapter's line in a list of statuses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AdapterLine {
    /// What it is doing.
    pub phase: AdapterPhase,
    /// Why, in a sentence.
    pub message: String,
    /// When that began.
    pub since: Timestamp,
    /// When the adapter first reported at this generation, or when the generation began.
    pub created_at: Timestamp,
}

/// Reasons of an `Available` that is False because the adapter waits for something.
const WAITING_REASONS: [&str; 4] =
    ["PreconditionsNotMet", "PreconditionNotMet", "NotStarted", "ResourcesSkipped"];

/// Reasons of an `Available` that is False because the adapter is still at work.
const PROGRESS_REASONS: [&str; 5] = [
    "JobRunning",
    "JobPending",
    "WorkloadInProgress",
    "PostconditionsNotMet",
    "MinimumReplicasUnavailable",
];

/// Endings of reasons that mean the same, in adapters' own words.
const PROGRESS_ENDINGS: [&str; 3] = ["InProgress", "Running", "Progressing"];

/// What an adapter is doing about the current generation, by its last report.
pub fn adapter_phase(of: &Resource, adapter: &AdapterName) -> AdapterPhase {
    let report = of.reports.get(adapter);
    let Some(report) = report.filter(|report| report.observed_generation == of.generation) else {
        return AdapterPhase::Pending;
    };
    let said = &report.conditions;
    if done(of, adapter).is_some() {
        AdapterPhase::Complete
    } else if said.health.status == Tri::False {
        AdapterPhase::Failed
    } else if of.deletion.is_some() {
        AdapterPhase::Running
    } else {
        let reason = said.available.reason.as_str();
        let waits = WAITING_REASONS.contains(&reason);
        let works = PROGRESS_REASONS.contains(&reason)
            || PROGRESS_ENDINGS.iter().any(|ending| reason.ends_with(ending));
        match (said.available.status, said.applied.status) {
            (Tri::True, _) => AdapterPhase::Complete,
            (Tri::Unknown, Tri::True) => AdapterPhase::Running,
            (Tri::Unknown, Tri::False | Tri::Unknown) => AdapterPhase::Pending,
            (Tri::False, Tri::True) if works => AdapterPhase::Running,
            (Tri::False, Tri::False | Tri::Unknown) if waits => AdapterPhase::Pending,
            (Tri::False, _) => AdapterPhase::Failed,
        }
    }
}

/// The line of one adapter; for an adapter that has not reported, what it waits for.
pub fn adapter_line(
    of: &Resource,
    adapter: &AdapterName,
    adapters: &[AdapterSpec],
    children: bool,
) -> AdapterLine {
    let phase = adapter_phase(of, adapter);
    let report = of.reports.get(adapter);
    match report.filter(|report| report.observed_generation == of.generation) {
        Some(report) => AdapterLine {
            phase,
            message: last_word(of, phase, report),
            since: began(of, adapter, phase, report),
            created_at: report.generation_since,
        },
        None => AdapterLine {
            phase,
            message: waits_for(of, adapter, adapters, children),
            since: of.updated.at,
            created_at: of.updated.at,
        },
    }
}

fn last_word(of: &Resource, phase: AdapterPhase, report: &Report) -> String {
    let said = &report.conditions;
    let cleaned_up = of.deletion.is_some() && phase == AdapterPhase::Complete;
    let finalized = said.finalized.as_ref().filter(|_| cleaned_up);
    // Available was Unknown last, but the adapter is done: what it said then is what holds.
    let definite = report.definite.as_ref().map(|word| &word.available);
    let definite = definite.filter(|_| phase == AdapterPhase::Complete && !cleaned_up);
    [finalized, definite, Some(&said.available), Some(&said.applied), Some(&said.health)]
        .into_iter()
        .flatten()
        .map(|said| said.message.as_str())
        .find(|message| !message.is_empty())
        .unwrap_or_default()
        .to_owned()
}

fn began(of: &Resource, adapter: &AdapterName, phase: AdapterPhase, report: &Report) -> Timestamp {
    let said = &report.conditions;
    let last = |said: &[&Reported]| {
        let newest = said.iter().map(|said| said.last_transition_time);
        newest.fold(report.generation_since, Timestamp::max)
    };
    match phase {
        AdapterPhase::Complete => done(of, adapter).unwrap_or_else(|| last(&[&said.available])),
        AdapterPhase::Failed if said.health.status == Tri::False => last(&[&said.health]),
        AdapterPhase::Pending | AdapterPhase::Running | AdapterPhase::Failed => {
            last(&[&said.available, &said.applied])
        }
    }
}

fn waits_for(
    of: &Resource,
    adapter: &AdapterName,
    adapters: &[AdapterSpec],
    children: bool,
) -> String {
    let deleting = of.deletion.is_some();
    if deleting && children {
        return "Waiting for node pools to be deleted".to_owned();
    }
    let before = predecessors(of, adapter, adapters);
    if before.iter().all(|name| done(of, name).is_some()) {
        return "Not started".to_owned();
    }
    let names: Vec<&str> = before.into_iter().map(display).collect();
    let names = match names.split_last() {
        Some((last, [])) => (*last).to_owned(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
        None => String::new(),
    };
    let end = if deleting { "be cleaned up" } else { "complete" };
    format!("Waiting for {names} to {end}")
}

/// Whoever must be done before it is this adapter's turn, first things first: what it depends on,
/// directly or not; while the resource is being deleted, the required adapters that depend on it.
pub(crate) fn predecessors<'a>(
    of: &Resource,
    adapter: &AdapterName,
    adapters: &'a [AdapterSpec],
) -> Vec<&'a AdapterName> {
    if of.deletion.is_none() {
        return dependencies(adapter, adapters);
    }
    let waits = |spec: &&AdapterSpec| dependencies(&spec.name, adapters).contains(&adapter);
    adapters
        .iter()
        .rev()
        .filter(|spec| spec.required)
        .filter(waits)
        .map(|spec| &spec.name)
        .collect()
}

/// Everything `adapter` depends on, directly or not, dependencies first.
fn dependencies<'a>(adapter: &AdapterName, adapters: &'a [AdapterSpec]) -> Vec<&'a AdapterName> {
    let spec = adapters.iter().find(|spec| spec.name == *adapter);
    let mut wanted: Vec<&AdapterName> =
        spec.map_or(Vec::new(), |spec| spec.depends_on.iter().collect());
    let mut found = Vec::new();
    // Dependencies come first in the list, so that one walk from its end meets each after whoever
    // wants it.
    for spec in adapters.iter().rev().filter(|spec| spec.name != *adapter) {
        if wanted.contains(&&spec.name) {
            wanted.extend(&spec.depends_on);
            found.push(&spec.name);
        }
    }
    found.reverse();
    found
}

fn display(adapter: &AdapterName) -> &str {
    match adapter.as_str() {
        "dns" => "DNS",
        name => name,
    }
}

#[cfg(test)]
mod tests;
