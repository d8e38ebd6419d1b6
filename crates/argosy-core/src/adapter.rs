//! What adapters report, and whether a report is news.
//!
//! The three mandatory conditions are fields: a report without one does not exist past the door.

mod graph;

use crate::field::{Constraint, FieldError};
use crate::resource::{Generation, Resource};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;

pub use graph::{AdapterGraph, AdapterSpec, GraphError, Runner, built_in};

/// An adapter's name: lower case letters, digits and hyphens, at most 63.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AdapterName(String);

/// True, False or not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Tri {
    /// It holds.
    True,
    /// It does not hold.
    False,
    /// Nobody knows yet.
    Unknown,
}

/// One condition of a report: always a positive assertion.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reported {
    /// Whether it holds.
    pub status: Tri,
    /// One CamelCase word; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// A sentence for people; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// When `status` last changed, by the times of the reports.
    pub last_transition_time: Timestamp,
}

/// The conditions of one report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reports {
    /// The work is done and usable.
    pub available: Reported,
    /// The adapter's objects were created.
    pub applied: Reported,
    /// The adapter itself ran without unexpected errors.
    pub health: Reported,
    /// Cleanup is confirmed; only meaningful while the resource is being deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finalized: Option<Reported>,
    /// Anything else the adapter says, by type.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub others: BTreeMap<String, Reported>,
}

impl Reports {
    /// Every condition.
    pub fn all(&self) -> impl Iterator<Item = &Reported> {
        let Self { available, applied, health, finalized, others } = self;
        [available, applied, health].into_iter().chain(finalized).chain(others.values())
    }
}

/// The latest accepted report of one adapter about one resource.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The generation the adapter acted on.
    pub observed_generation: Generation,
    /// What it says.
    pub conditions: Reports,
    /// The last definite word on `Available`, kept so that a later Unknown does not erase what is
    /// known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definite: Option<Definite>,
    /// Free-form results.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub data: Map<String, Value>,
    /// Free-form facts about the run (job name, duration, …).
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
    /// The time of the first report this adapter ever made about the resource.
    pub created_time: Timestamp,
    /// The time of the first report at `observed_generation`.
    pub generation_since: Timestamp,
    /// The time of this report.
    pub last_report_time: Timestamp,
}

/// The last time an adapter said True or False about `Available`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Definite {
    /// The generation it was about.
    pub generation: Generation,
    /// The time of that report.
    pub at: Timestamp,
    /// What it said; never Unknown.
    pub available: Reported,
}

/// A report as it came in, its syntax checked, its meaning not yet.
#[derive(Clone, Debug, PartialEq)]
pub struct ReportDraft {
    /// Who reports.
    pub adapter: AdapterName,
    /// The generation the adapter acted on; at least 1.
    pub observed_generation: Generation,
    /// When the adapter looked; our own time if it does not say.
    pub observed_time: Option<Timestamp>,
    /// What it says; types are unique and not empty.
    pub conditions: Vec<DraftCondition>,
    /// Free-form results.
    pub data: Map<String, Value>,
    /// Free-form facts about the run.
    pub metadata: Map<String, Value>,
}

/// One condition of a draft.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DraftCondition {
    /// `Available`, `Applied`, `Health`, `Finalized`, or the adapter's own.
    pub kind: String,
    /// Whether it holds.
    pub status: Tri,
    /// One word.
    pub reason: String,
    /// A sentence.
    pub message: String,
}

/// How far a reporter's time may be from ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeWindow {
    /// How far in the past.
    pub past: SignedDuration,
    /// How far in the future.
    pub future: SignedDuration,
}

impl Default for TimeWindow {
    /// 30 minutes back: a report that waited longer describes a world that is gone. 5 minutes ahead:
    /// more is a broken clock, and would make every honest report look old.
    fn default() -> Self {
        Self { past: SignedDuration::from_mins(30), future: SignedDuration::from_mins(5) }
    }
}

/// Whether a report is news.
#[expect(clippy::large_enum_variant, reason = "lives for one decision, never in a collection")]
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// Store it.
    News(Report),
    /// Keep it as history at most; it must not change what is known.
    Old(Old),
}

/// Why a report is not news.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Old {
    /// For a generation that does not exist yet.
    FutureGeneration,
    /// For an older generation than this adapter already reported.
    OlderGeneration,
    /// For the same generation, but observed earlier, or at the same instant.
    OlderTime,
}

impl ReportDraft {
    /// The draft as a report that stands alone, for the history of what was not news; `None` if a
    /// mandatory condition is missing.
    pub fn as_report(&self, now: Timestamp) -> Option<Report> {
        let at = self.observed_time.unwrap_or(now);
        Some(first(self, said(self, at).ok()?, at))
    }
}

/// Judges a report about `of`, which this adapter may have reported on before.
///
/// Guarantees: of any set of reports about one generation of `of`, in any order and however often
/// each arrives, the same one ends up stored, with the same `definite`. What a report that came too
/// late would have told about earlier days is lost: `created_time`, `generation_since` and the
/// transition times describe the reports that were news when they arrived.
///
/// # Errors
/// What is wrong with the draft itself: a mandatory condition missing, a time outside the window.
pub fn accept(
    of: &Resource,
    draft: &ReportDraft,
    now: Timestamp,
    window: TimeWindow,
) -> Result<Verdict, Vec<FieldError>> {
    let at = match draft.observed_time {
        Some(at) => in_window(at, now, window).map(|()| at)?,
        None => our_time(of, draft, now),
    };
    if of.generation < draft.observed_generation {
        return Ok(Verdict::Old(Old::FutureGeneration));
    }
    let Some(stored) = of.reports.get(&draft.adapter) else {
        return Ok(Verdict::News(first(draft, said(draft, at)?, at)));
    };
    let age =
        (draft.observed_generation, at).cmp(&(stored.observed_generation, stored.last_report_time));
    let old = if draft.observed_generation < stored.observed_generation {
        Old::OlderGeneration
    } else {
        Old::OlderTime
    };
    let conditions = match said(draft, at) {
        Ok(conditions) => conditions,
        // An old report would not be stored anyway, so its sender need not repair it.
        Err(_) if age == Ordering::Less => return Ok(Verdict::Old(old)),
        Err(complaints) => return Err(complaints),
    };
    let new = first(draft, conditions, at);
    Ok(match age.then_with(|| content(&new).cmp(&content(stored))) {
        Ordering::Greater => Verdict::News(following(stored, new)),
        Ordering::Equal => Verdict::Old(old),
        // The stored report is newer but may know less: it says Unknown, and this is the last that
        // anybody knew.
        Ordering::Less => match later(stored.definite.as_ref(), new.definite) {
            definite if definite != stored.definite => {
                Verdict::News(Report { definite, ..Report::clone(stored) })
            }
            _ => Verdict::Old(old),
        },
    })
}

/// The time of a report that brings none: now, and in any case after what was reported before, since
/// our clock may stand still (in a simulation) or be set back.
fn our_time(of: &Resource, draft: &ReportDraft, now: Timestamp) -> Timestamp {
    let past = of.reports.get(&draft.adapter);
    let past = past.filter(|past| past.observed_generation == draft.observed_generation);
    let next = past
        .and_then(|past| past.last_report_time.checked_add(SignedDuration::from_micros(1)).ok());
    next.map_or(now, |next| next.max(now))
}

fn in_window(at: Timestamp, now: Timestamp, window: TimeWindow) -> Result<(), Vec<FieldError>> {
    let ahead = at.duration_since(now);
    let (constraint, problem) = if window.future < ahead {
        (Constraint::Max, format!("more than {:#} in the future", window.future))
    } else if ahead < -window.past {
        (Constraint::Min, format!("more than {:#} in the past", window.past))
    } else {
        return Ok(());
    };
    let message = format!(
        "observed_time is {problem}; the time here is {now:.0}: check the reporter's clock"
    );
    Err(vec![FieldError::new("observed_time", constraint, message).with_value(at.to_string())])
}

/// The conditions of a draft by name, each as if its status had just changed.
fn said(draft: &ReportDraft, at: Timestamp) -> Result<Reports, Vec<FieldError>> {
    let mut by_kind: BTreeMap<&str, Reported> = draft
        .conditions
        .iter()
        .map(|condition| {
            let reported = Reported {
                status: condition.status,
                reason: condition.reason.clone(),
                message: condition.message.clone(),
                last_transition_time: at,
            };
            (condition.kind.as_str(), reported)
        })
        .collect();
    let mut take = |kind: &str| by_kind.remove(kind).ok_or_else(|| missing(kind));
    let finalized = take("Finalized").ok();
    match (take("Available"), take("Applied"), take("Health")) {
        (Ok(available), Ok(applied), Ok(health)) => Ok(Reports {
            available,
            applied,
            health,
            finalized,
            others: by_kind.into_iter().map(|(kind, said)| (kind.to_owned(), said)).collect(),
        }),
        (available, applied, health) => {
            Err([available, applied, health].into_iter().filter_map(Result::err).collect())
        }
    }
}

fn missing(kind: &str) -> FieldError {
    let message =
        format!("condition {kind} is missing; every report carries Available, Applied and Health");
    FieldError::new("conditions", Constraint::Required, message)
}

fn first(draft: &ReportDraft, conditions: Reports, at: Timestamp) -> Report {
    let definite = (conditions.available.status != Tri::Unknown).then(|| Definite {
        generation: draft.observed_generation,
        at,
        available: conditions.available.clone(),
    });
    Report {
        observed_generation: draft.observed_generation,
        conditions,
        definite,
        data: draft.data.clone(),
        metadata: draft.metadata.clone(),
        created_time: at,
        generation_since: at,
        last_report_time: at,
    }
}

/// `new` with what it inherits from the report it replaces.
fn following(stored: &Report, new: Report) -> Report {
    let before = &stored.conditions;
    let conditions = Reports {
        available: since(Some(&before.available), new.conditions.available),
        applied: since(Some(&before.applied), new.conditions.applied),
        health: since(Some(&before.health), new.conditions.health),
        finalized: new.conditions.finalized.map(|said| since(before.finalized.as_ref(), said)),
        others: new
            .conditions
            .others
            .into_iter()
            .map(|(kind, said)| {
                let said = since(before.others.get(&kind), said);
                (kind, said)
            })
            .collect(),
    };
    let generation_since = if stored.observed_generation == new.observed_generation {
        stored.generation_since
    } else {
        new.generation_since
    };
    Report {
        conditions,
        definite: later(stored.definite.as_ref(), new.definite),
        created_time: stored.created_time,
        generation_since,
        ..new
    }
}

/// A condition keeps its transition time while its status stays the same.
fn since(before: Option<&Reported>, now: Reported) -> Reported {
    match before {
        Some(before) if before.status == now.status => {
            Reported { last_transition_time: before.last_transition_time, ..now }
        }
        _ => now,
    }
}

/// The later of two definite words; the stored one if they say the same.
fn later(stored: Option<&Definite>, new: Option<Definite>) -> Option<Definite> {
    let rank = |word: &Definite| {
        let said = &word.available;
        (word.generation, word.at, weight(said.status), said.reason.clone(), said.message.clone())
    };
    match new {
        Some(new) if stored.map(rank) < Some(rank(&new)) => {
            let available = since(stored.map(|word| &word.available), new.available);
            Some(Definite { available, ..new })
        }
        _ => stored.cloned(),
    }
}

/// What decides between two reports of one generation and one instant: something must, or the order
/// of arrival would. The word on `Available` comes first, so that `definite` is decided alike; the
/// rest is compared as text, in which all that counts is that it differs when the reports do.
fn content(report: &Report) -> (u8, &str, &str, String) {
    let Reports { available, applied, health, finalized, others } = &report.conditions;
    let mut rest = String::new();
    let named = [Some(applied), Some(health), finalized.as_ref()];
    for said in named.into_iter().chain(others.values().map(Some)) {
        let said = said.map(|said| (said.status, &said.reason, &said.message));
        rest.push_str(&format!("{said:?}"));
    }
    rest.push_str(&format!("{:?}{:?}{:?}", others.keys(), report.data, report.metadata));
    (weight(available.status), &available.reason, &available.message, rest)
}

/// At the same instant a definite word beats Unknown, and bad news beats good: a false alarm costs
/// one more look, a false all-clear an outage.
const fn weight(status: Tri) -> u8 {
    match status {
        Tri::Unknown => 0,
        Tri::True => 1,
        Tri::False => 2,
    }
}

impl AdapterName {
    /// The longest name.
    pub const LEN_MAX: usize = 63;

    /// Reads a name: lower-case letters, digits and hyphens, 1 to 63 characters.
    ///
    /// # Errors
    /// Says which rule the text breaks, as a complaint about the field `adapter`.
    pub fn parse(text: &str) -> Result<Self, FieldError> {
        let len = text.chars().count();
        let complaint = if text.is_empty() {
            FieldError::new("adapter", Constraint::Required, "adapter must not be empty")
        } else if Self::LEN_MAX < len {
            FieldError::new(
                "adapter",
                Constraint::MaxLength,
                format!("adapter is {len} characters long; at most {} are allowed", Self::LEN_MAX),
            )
        } else if !text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-') {
            FieldError::new(
                "adapter",
                Constraint::Pattern,
                "adapter may hold lower-case letters, digits and hyphens",
            )
        } else {
            return Ok(Self(text.to_owned()));
        };
        Err(if len <= 2 * Self::LEN_MAX { complaint.with_value(text) } else { complaint })
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for AdapterName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The condition of a resource that mirrors this adapter's `Available`: `dns` is `DnsSuccessful`.
pub fn condition_kind(adapter: &AdapterName) -> String {
    let words = adapter.as_str().split('-').map(|word| {
        let mut letters = word.chars();
        letters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(letters)
    });
    words.flatten().chain("Successful".chars()).collect()
}

#[cfg(test)]
mod tests;
