//! What adapters report, and whether a report is news.
//!
//! The three mandatory conditions are fields: a report without one does not exist past the door.

use crate::field::FieldError;
use crate::resource::{Generation, Kind, Resource};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt;

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

/// The latest accepted report of one adapter about one resource.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The generation the adapter acted on.
    pub observed_generation: Generation,
    /// What it says.
    pub conditions: Reports,
    /// The last definite (True or False) word on `Available` at `observed_generation`, kept so that
    /// a later Unknown does not erase what is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub definite: Option<Reported>,
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

/// Judges a report about `of`, which this adapter may have reported on before.
///
/// # Errors
/// What is wrong with the draft itself: a mandatory condition missing, a time outside the window.
pub fn accept(
    of: &Resource,
    draft: &ReportDraft,
    now: Timestamp,
    window: TimeWindow,
) -> Result<Verdict, Vec<FieldError>> {
    let _ = (of, draft, now, window);
    todo!()
}

/// One adapter of a kind of resource, as configured.
#[derive(Clone, Debug, PartialEq)]
pub struct AdapterSpec {
    /// Its name.
    pub name: AdapterName,
    /// The adapters that must be done first; cleanup goes the other way.
    pub depends_on: Vec<AdapterName>,
    /// Whether the resource waits for it.
    pub required: bool,
    /// How long it may take for one generation before it counts as stalled.
    pub deadline: SignedDuration,
    /// Who does the work.
    pub runner: Runner,
}

/// Who does an adapter's work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Runner {
    /// We do, in this process, against the provider.
    BuiltIn,
    /// Somebody who is told by HTTP and reports over REST.
    Webhook {
        /// Where events go.
        url: String,
    },
    /// Somebody who watches the API and reports over REST; nobody is told.
    External,
}

/// The adapters of every kind of resource, each list in an order in which dependencies come first.
#[derive(Clone, Debug, PartialEq)]
pub struct AdapterGraph {
    kinds: BTreeMap<Kind, Vec<AdapterSpec>>,
}

impl AdapterGraph {
    /// Checks the graph and puts each list in order.
    ///
    /// # Errors
    /// Names an adapter given twice, a dependency nobody defined (with the nearest name), a cycle,
    /// or a built-in adapter that does not exist for the kind.
    pub fn new(kinds: BTreeMap<Kind, Vec<AdapterSpec>>) -> Result<Self, GraphError> {
        let _ = kinds;
        todo!()
    }

    /// The adapters of a kind, dependencies first.
    pub fn of(&self, kind: Kind) -> &[AdapterSpec] {
        self.kinds.get(&kind).map_or(&[], Vec::as_slice)
    }
}

/// What is wrong with a configured graph.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("adapter `{adapter}` of {kind}: {problem}")]
pub struct GraphError {
    /// The kind of resource.
    pub kind: Kind,
    /// The adapter.
    pub adapter: AdapterName,
    /// What is wrong, and what would be right.
    pub problem: String,
}

impl AdapterName {
    /// Reads a name: lower-case letters, digits and hyphens, 1 to 63 characters.
    ///
    /// # Errors
    /// Says which rule the text breaks, as a complaint about the field `adapter`.
    pub fn parse(text: &str) -> Result<Self, FieldError> {
        let _ = text;
        todo!()
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
