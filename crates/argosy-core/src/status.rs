//! From reports to conditions, and from conditions to the one word people see.
//!
//! Neither function reads a clock: the same reports give the same answer in any order.

mod line;

use crate::adapter::{AdapterName, AdapterSpec, Definite, Tri, condition_kind};
use crate::resource::{Generation, Resource};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

pub(crate) use line::predecessors;
pub use line::{AdapterLine, AdapterPhase, adapter_line, adapter_phase};

/// One condition of a resource.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Condition {
    /// `Reconciled`, `LastKnownReconciled`, `DnsSuccessful`, `Healthy`, `Stalled`, …
    #[serde(rename = "type")]
    pub kind: String,
    /// True or False.
    pub status: Tri,
    /// One word.
    pub reason: String,
    /// A sentence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The generation it speaks of.
    pub observed_generation: Generation,
    /// When it was first there.
    pub created_time: Timestamp,
    /// The oldest report it rests on.
    pub last_updated_time: Timestamp,
    /// When `status` last changed.
    pub last_transition_time: Timestamp,
}

/// The word people see.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// Created; no required adapter has said anything yet.
    Pending,
    /// Some required adapter is not done with this generation.
    NotReady,
    /// All required adapters are done with this generation.
    Ready,
    /// Being deleted.
    Terminating,
}

impl Phase {
    /// Every phase, in the order in which error sentences list them.
    pub const ALL: [Phase; 4] = [Phase::NotReady, Phase::Ready, Phase::Pending, Phase::Terminating];

    /// The word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Phase::Pending => "Pending",
            Phase::NotReady => "Not Ready",
            Phase::Ready => "Ready",
            Phase::Terminating => "Terminating",
        }
    }
}

/// The phase of a resource: Terminating if it is being deleted; else Ready if `Reconciled`; else
/// Pending if no required adapter reported yet and it is still at generation 1; else Not Ready.
pub fn phase(of: &Resource) -> Phase {
    let reconciled = of.conditions.iter().find(|condition| condition.kind == RECONCILED);
    if of.deletion.is_some() {
        Phase::Terminating
    } else if reconciled.is_some_and(|condition| condition.status == Tri::True) {
        Phase::Ready
    } else if of.started.is_none() && of.generation == 1 {
        Phase::Pending
    } else {
        Phase::NotReady
    }
}

/// When anything people would call a status change last happened: the later of the phase change and
/// the newest transition of a reported condition.
pub fn last_transition(of: &Resource) -> Timestamp {
    of.reports
        .values()
        .flat_map(|report| report.conditions.all())
        .map(|said| said.last_transition_time)
        .fold(of.phase_since, Timestamp::max)
}

/// Since when an adapter is done with the current generation: available, or, while the resource is
/// being deleted, cleaned up.
pub fn done(of: &Resource, adapter: &AdapterName) -> Option<Timestamp> {
    let report = of.reports.get(adapter)?;
    let (generation, said) = if of.deletion.is_some() {
        (report.observed_generation, report.conditions.finalized.as_ref()?)
    } else {
        let definite = report.definite.as_ref()?;
        (definite.generation, &definite.available)
    };
    // The status may be the same as in the generation before; then it began anew with this one.
    (generation == of.generation && said.status == Tri::True)
        .then(|| said.last_transition_time.max(report.generation_since))
}

const RECONCILED: &str = "Reconciled";

/// The conditions of `of`, from its reports and its previous conditions.
///
/// `children` is whether any node pool of it is left, in whatever state.
pub fn aggregate(of: &Resource, adapters: &[AdapterSpec], children: bool) -> Vec<Condition> {
    let required: Vec<&AdapterName> =
        adapters.iter().filter(|spec| spec.required).map(|spec| &spec.name).collect();
    let known: Vec<(&AdapterName, &Definite)> = required
        .iter()
        .filter_map(|name| Some((*name, of.reports.get(*name)?.definite.as_ref()?)))
        .collect();
    let mut made = vec![reconciled(of, &required, children), last_known(of, &required, &known)];
    made.extend(known.iter().map(|(name, word)| successful(name, word)));
    made.extend(healthy(of, &required));
    made.extend(stalled(of, adapters));
    made.extend(rejected(of, adapters));
    made.into_iter().map(|made| made.following(&of.conditions)).collect()
}

/// A condition before it is compared with what it was.
struct Made {
    kind: String,
    status: bool,
    reason: String,
    message: String,
    generation: Generation,
    updated: Timestamp,
    /// When it was first there, if it was not before.
    born: Timestamp,
    /// When the status changed, if it did.
    changed: Timestamp,
}

impl Made {
    fn following(self, before: &[Condition]) -> Condition {
        let status = if self.status { Tri::True } else { Tri::False };
        let before = before.iter().find(|condition| condition.kind == self.kind);
        let last_transition_time = match before {
            Some(before) if before.status == status => before.last_transition_time,
            // Reporters' clocks differ; a transition is never before the one before it.
            Some(before) => before.last_transition_time.max(self.changed),
            None => self.changed,
        };
        Condition {
            kind: self.kind,
            status,
            reason: self.reason,
            message: self.message,
            observed_generation: self.generation,
            created_time: before.map_or(self.born, |before| before.created_time),
            last_updated_time: self.updated,
            last_transition_time,
        }
    }
}

fn reconciled(of: &Resource, required: &[&AdapterName], children: bool) -> Made {
    let deleting = of.deletion.is_some();
    let generation = of.generation;
    let waiting: Vec<&AdapterName> =
        required.iter().copied().filter(|name| done(of, name).is_none()).collect();
    let (status, reason, message) = if !waiting.is_empty() {
        let heard: Vec<&AdapterName> =
            required.iter().copied().filter(|name| of.reports.contains_key(*name)).collect();
        let message = format!(
            "Waiting for {} at generation {generation}; reported so far: {}",
            listed(&waiting),
            listed(&heard)
        );
        (false, "ReconciledMissingAdapters", message)
    } else if deleting && children {
        let message = "Waiting for node pools to be deleted".to_owned();
        (false, "ReconciledWaitingForChildren", message)
    } else if required.is_empty() {
        (true, "NoAdaptersRequired", "No adapter is required for this kind".to_owned())
    } else {
        let what = if deleting { "cleaned up" } else { "done" };
        let message = format!("All required adapters are {what} at generation {generation}");
        (true, "ReconciledAll", message)
    };
    let updated = oldest_report(of, required);
    Made {
        kind: RECONCILED.to_owned(),
        status,
        reason: reason.to_owned(),
        message,
        generation,
        updated,
        born: of.updated.at,
        // A new wish has no reports yet, so what it takes back is taken back when it was made.
        changed: updated,
    }
}

/// The time of the oldest report at the current generation; when it began, if there is none.
fn oldest_report(of: &Resource, required: &[&AdapterName]) -> Timestamp {
    let current = required
        .iter()
        .filter_map(|name| of.reports.get(*name))
        .filter(|report| report.observed_generation == of.generation);
    current.map(|report| report.last_report_time).min().unwrap_or(of.updated.at)
}

fn listed(names: &[&AdapterName]) -> String {
    let mut names: Vec<&str> = names.iter().map(|name| name.as_str()).collect();
    names.sort_unstable();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

/// What was last known about the adapters as a whole. It is sticky: a newer generation that is still
/// being worked on does not take back that the one before was in place.
fn last_known(
    of: &Resource,
    required: &[&AdapterName],
    known: &[(&AdapterName, &Definite)],
) -> Made {
    let kind = "LastKnownReconciled";
    let before = of.conditions.iter().find(|condition| condition.kind == kind);
    let held = before.map_or(of.updated.at, |before| before.last_updated_time);
    let words = || known.iter().map(|(_, word)| *word);
    let newest = words().map(|word| word.generation).max();
    let newest = newest.or(before.map(|before| before.observed_generation)).unwrap_or(1);
    let failed_at = |generation| {
        words().any(|word| word.generation == generation && word.available.status != Tri::True)
    };
    let oldest_at =
        |generation| words().filter(|word| word.generation == generation).map(|word| word.at).min();
    let failed_since = || oldest_at(newest).filter(|_| failed_at(newest)).unwrap_or(held);
    let was_true = before.filter(|before| before.status == Tri::True);

    let all_true = words().all(|word| word.available.status == Tri::True);
    let uniform = words().all(|word| word.generation == newest);
    let (status, reason, generation, updated) = match was_true {
        _ if required.is_empty() => (true, "NoAdaptersRequired", of.generation, of.updated.at),
        _ if known.len() < required.len() => {
            (false, "AdaptersMissingReports", newest, failed_since())
        }
        _ if all_true && uniform => {
            (true, "AllAdaptersReconciled", newest, oldest_at(newest).unwrap_or(held))
        }
        Some(before) if all_true || !failed_at(before.observed_generation) => {
            (true, "AllAdaptersReconciled", before.observed_generation, held)
        }
        _ if all_true => (false, "AdaptersNotAtSameGeneration", newest, held),
        _ => (false, "AdapterReportedNotAvailable", newest, failed_since()),
    };
    let message = match reason {
        "NoAdaptersRequired" => "No adapter is required for this kind".to_owned(),
        "AllAdaptersReconciled" => {
            format!("All required adapters were available at generation {generation}")
        }
        "AdaptersMissingReports" => "Some required adapter has not reported yet".to_owned(),
        "AdaptersNotAtSameGeneration" => {
            "The required adapters are available, but at different generations".to_owned()
        }
        _ => format!("A required adapter is not available at generation {generation}"),
    };
    Made {
        kind: kind.to_owned(),
        status,
        reason: reason.to_owned(),
        message,
        generation,
        updated,
        born: of.updated.at,
        changed: updated,
    }
}

fn successful(adapter: &AdapterName, word: &Definite) -> Made {
    Made {
        kind: condition_kind(adapter),
        status: word.available.status == Tri::True,
        reason: word.available.reason.clone(),
        message: word.available.message.clone(),
        generation: word.generation,
        updated: word.at,
        born: word.at,
        changed: word.at,
    }
}

/// Whether the adapters themselves run well; absent until one of them said anything.
fn healthy(of: &Resource, required: &[&AdapterName]) -> Option<Made> {
    let reports = || required.iter().filter_map(|name| of.reports.get(*name));
    reports().next()?;
    let current = || reports().filter(|report| report.observed_generation == of.generation);
    let sick = current().find(|report| report.conditions.health.status == Tri::False);
    let updated = oldest_report(of, required);
    let changed = current().map(|report| report.conditions.health.last_transition_time).max();
    let (reason, message) = match sick {
        Some(report) => {
            let health = &report.conditions.health;
            (health.reason.clone(), health.message.clone())
        }
        None => ("NoneUnhealthy".to_owned(), "No required adapter reports a problem".to_owned()),
    };
    Some(Made {
        kind: "Healthy".to_owned(),
        status: sick.is_none(),
        reason,
        message,
        generation: of.generation,
        updated: sick.map_or(updated, |report| report.last_report_time),
        born: updated,
        changed: changed.unwrap_or(of.updated.at),
    })
}

fn stalled(of: &Resource, adapters: &[AdapterSpec]) -> Option<Made> {
    let silent = || adapters.iter().filter_map(|spec| of.stalled.get_key_value(&spec.name));
    let since = silent().map(|(_, since)| *since).min()?;
    let named: Vec<String> =
        silent().map(|(name, since)| format!("{name} (since {since:.0})")).collect();
    let message = format!(
        "No report in time from {}: see /statuses for the last word of each adapter, check that the \
         adapter runs, and fix the cause; its next report clears this",
        named.join(", ")
    );
    Some(Made {
        kind: "Stalled".to_owned(),
        status: true,
        reason: "AdapterStalled".to_owned(),
        message,
        generation: of.generation,
        updated: since,
        born: since,
        changed: since,
    })
}

fn rejected(of: &Resource, adapters: &[AdapterSpec]) -> Option<Made> {
    let refusals: Vec<String> = adapters
        .iter()
        .filter_map(|spec| of.dispatches.get_key_value(&spec.name))
        .filter(|(_, dispatch)| dispatch.generation == of.generation)
        .filter_map(|(name, dispatch)| Some(format!("{name} ({})", dispatch.rejected.as_ref()?)))
        .collect();
    // Nobody noted when, so the generation's beginning stands in for it.
    let since = of.updated.at;
    (!refusals.is_empty()).then(|| Made {
        kind: "EventRejected".to_owned(),
        status: true,
        reason: "EventRejected".to_owned(),
        message: format!(
            "The event for generation {} was refused by {}: fix the adapter, then change the \
             resource to send a new one",
            of.generation,
            refusals.join(", ")
        ),
        generation: of.generation,
        updated: since,
        born: since,
        changed: since,
    })
}

#[cfg(test)]
mod tests;
