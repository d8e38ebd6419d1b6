//! What a node says about its health, and what we make of it.
//!
//! A report carries results (each check's word, which replaces its last one) and events (things that
//! happened once). Policies judge events; `take_in` turns results and verdicts into findings, and
//! findings into the node's health. What a newcomer gets wrong: a clean report does not wash away an
//! event. A finding says itself what ends it.

mod door;
mod intake;

pub(crate) use intake::{Begun, decisive, hardware_of, registered};
pub use intake::{absolve, aged, expire, sight, take_in, thinned};

use crate::id::CommandId;
use crate::ledger::{Entry, VerdictNote};
use crate::node::{Gpu, Node};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Whether a node is well, since when, and why we say so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Health {
    /// The word.
    pub state: HealthState,
    /// Since when it is that word.
    pub since: Timestamp,
    /// One word: the rule or check that decided, or one of `POLICY_ERROR`, `NO_REPORT`, `NO_FINDINGS`.
    pub reason: String,
    /// A sentence.
    pub message: String,
}

/// The reason of `Unknown` while a rule that should have judged an event failed.
pub const POLICY_ERROR: &str = "PolicyError";
/// The reason of `Unknown` until a complete report of this boot: every check that the node was told to run.
pub const NO_REPORT: &str = "NoReport";
/// What that means.
const NO_EVIDENCE: &str = "no complete health report since it last started or registered";
/// The reason of `Unknown` when complete reports have stopped coming.
pub const REPORTS_MISSING: &str = "ReportsMissing";
/// The rule of the finding that a node has fewer GPUs than it must have. We raise it; no agent does.
pub const GPUS_MISSING: &str = "GpusMissing";
/// The reason of `Healthy`.
pub const NO_FINDINGS: &str = "NoFindings";

impl Health {
    /// Of a node that has not reported yet.
    pub fn unreported(now: Timestamp) -> Self {
        Self {
            state: HealthState::Unknown,
            since: now,
            reason: NO_REPORT.to_owned(),
            message: NO_EVIDENCE.to_owned(),
        }
    }
}

/// What a node's health rests on. Results of checks are of the boot that the node last registered with:
/// a new boot or registration forgets them, and nothing is well until they are complete again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// When the first complete report since the last boot or registration came; `None` until it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub complete_at: Option<Timestamp>,
    /// Since when complete reports are missing that should have come; `None` while they come.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing_since: Option<Timestamp>,
    /// Whether there ever was a complete report: only what once came can stop.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub given: bool,
}

impl Evidence {
    /// Whether complete reports have stopped coming.
    pub fn is_missing(&self) -> bool {
        self.missing_since.is_some()
    }

    /// Why nothing good can be said of the node; `None` if it can: the reason and a sentence.
    fn lacks(&self) -> Option<(&'static str, &'static str)> {
        if self.is_missing() {
            let sentence =
                "its agent is heard, and its health reports have stopped coming or are incomplete";
            return Some((REPORTS_MISSING, sentence));
        }
        self.complete_at.is_none().then_some((NO_REPORT, NO_EVIDENCE))
    }
}

/// Whether a node is well.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum HealthState {
    /// Nobody can say: no report yet, or a rule that failed.
    Unknown,
    /// It is.
    Healthy,
    /// It works, with a warning.
    Degraded,
    /// It is not.
    Unhealthy,
}

impl HealthState {
    /// Every word, in the order of their numbers on the wire.
    pub const ALL: [HealthState; 4] =
        [HealthState::Unknown, HealthState::Healthy, HealthState::Degraded, HealthState::Unhealthy];

    /// The word.
    pub const fn as_str(self) -> &'static str {
        match self {
            HealthState::Unknown => "UNKNOWN",
            HealthState::Healthy => "HEALTHY",
            HealthState::Degraded => "DEGRADED",
            HealthState::Unhealthy => "UNHEALTHY",
        }
    }
}

/// How bad something is. The order is the order of badness.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Not at all.
    Healthy,
    /// A warning.
    Degraded,
    /// Take the node out of service.
    Unhealthy,
}

/// The latest word of one health check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// The word.
    pub state: HealthState,
    /// What the node says about it; at most `MESSAGE_LEN_MAX`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// When we heard the word for the first time in a row, by our clock.
    pub since: Timestamp,
    /// More about it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub details: BTreeMap<String, String>,
}

/// One thing that is wrong with a node now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// What makes it the same finding when it is seen again: `check/gpu`, `xid/79/GPU-1b2c…`.
    pub key: String,
    /// How bad; `None` if the rule that should say failed (`PolicyError`).
    pub severity: Option<Severity>,
    /// One word: the rule, or the check.
    pub rule: String,
    /// The policy it is a rule of, and its version; empty and 0 for a check.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub policy: String,
    /// See `policy`.
    #[serde(default)]
    pub policy_version: u32,
    /// A sentence.
    pub message: String,
    /// The kernel line or measurement it rests on.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub evidence: String,
    /// The GPU's UUID; empty if it is about the whole node.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub gpu: String,
    /// When it was first seen, by our clock.
    pub first: Timestamp,
    /// When it was last seen. A check that goes on saying the same is not seen again: a report that
    /// says nothing new writes nothing.
    pub last: Timestamp,
    /// How often.
    pub count: u32,
    /// What ends it.
    pub ends: Ends,
    /// The milder finding of the same key that it came on top of, with an end of its own: what is left
    /// when this one ends first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub under: Option<Box<Finding>>,
    /// The condition that lasts while it does (`temperature`); empty for what happened once.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub condition: String,
}

impl Finding {
    /// What would end it, for people.
    pub fn ends_when(&self) -> String {
        let operator = "or an operator uncordons the node";
        match self.ends {
            Ends::WhenCheckPasses => "the check passes".to_owned(),
            Ends::At(end) => format!("nothing like it is seen until {end:.0}, {operator}"),
            Ends::AtReboot => {
                format!("the node boots again, a diagnostic that tests the part passes, {operator}")
            }
            Ends::WhenOver if self.condition == RECOVERY => {
                format!("the driver no longer asks for it, the node boots again, {operator}")
            }
            Ends::WhenOver => {
                format!("the agent reports that it is over, the node boots again, {operator}")
            }
            Ends::WhenReplaced => {
                format!("the node registers with another GPU in its place, {operator}")
            }
            Ends::WhenGpusReturn => format!("the node registers with all its GPUs, {operator}"),
        }
    }
}

/// The condition that the driver asks for recovery of a GPU.
pub const RECOVERY: &str = "recovery";

/// What ends a finding. An operator's uncordon ends every finding of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ends {
    /// The check passes.
    WhenCheckPasses,
    /// Nothing like it happens until then.
    At(Timestamp),
    /// The node boots again, a diagnostic that tests the part passes, or an operator says so.
    AtReboot,
    /// The agent says that the condition is over, or the node boots again.
    WhenOver,
    /// The GPU is replaced, or an operator says so.
    WhenReplaced,
    /// The node registers with all the GPUs it must have, or an operator says so.
    WhenGpusReturn,
}

/// What was seen lately, for rules that count: one kind of event on one GPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sighting {
    /// The kind of event.
    pub event_type: EventType,
    /// The Xid or SXid, or 0.
    #[serde(default)]
    pub code: i64,
    /// The GPU's UUID; empty for the whole node.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub gpu: String,
    /// What follows the GPU's hardware from node to node.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub hardware: String,
    /// When, newest last; at most `SIGHTING_TIMES_MAX`, so a count says "at least".
    pub times: Vec<Timestamp>,
    /// The last of them as the node told it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<LineSeen>,
}

/// A kernel line that was told, to recognise it when it is told again: an agent that lost its place reads
/// the log from the beginning.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LineSeen {
    /// Of which boot; empty if the agent does not say.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub boot_id: String,
    /// When it was written, by the node's clock.
    pub node_time: Timestamp,
    /// The line.
    pub raw: String,
}

/// How many times of one sighting are kept. Rules compare with small numbers.
pub const SIGHTING_TIMES_MAX: usize = 32;
/// The longest message, line of evidence or detail that is kept, in bytes; the rest is cut off.
pub const MESSAGE_LEN_MAX: usize = 1024;
/// The most events one report may carry. A flood is aggregated by the node: first, last, count.
pub const EVENTS_MAX: usize = 1000;
/// The most metrics of one event, and details of one result.
pub const METRICS_MAX: usize = 64;

/// A report of a node, parsed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HealthReport {
    /// Numbers reports of agents that do; a report that is not newer than the last one is old.
    pub sequence: Option<u64>,
    /// What checks say.
    pub results: Vec<CheckResult>,
    /// What happened.
    pub events: Vec<Event>,
    /// How conditions of GPUs stand: what lasts ends when the agent says that it is over.
    pub conditions: Vec<Condition>,
    /// The checks that the node was told to run, without which the report is not complete. `None`: its
    /// agent sends all it has each time, under names of its own (Navarch's).
    pub told: Option<Vec<String>>,
}

impl HealthReport {
    /// Whether every check that the node was told to run has a word in it.
    pub fn is_complete(&self) -> bool {
        let known = |result: &CheckResult| result.state != HealthState::Unknown;
        match self.told.as_deref() {
            None | Some([]) => !self.results.is_empty() && self.results.iter().all(known),
            Some(told) => told.iter().all(|name| {
                self.results.iter().any(|result| result.name == *name && known(result))
            }),
        }
    }
}

/// How a condition of a GPU stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// The GPU's UUID; empty for the whole node.
    pub gpu: String,
    /// Which: `temperature`.
    pub name: String,
    /// Whether it holds; false: it is over.
    pub holds: bool,
}

/// The most conditions of one report: every GPU has a dozen.
pub const CONDITIONS_MAX: usize = 1024;

/// The result of one health check.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckResult {
    /// Which check.
    pub name: String,
    /// Its word.
    pub state: HealthState,
    /// What it says.
    pub message: String,
    /// More about it.
    pub details: BTreeMap<String, String>,
}

/// Something that happened on a node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// When, by the node's clock. For people; nothing is decided by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_time: Option<Timestamp>,
    /// The GPU's place; -1 for the whole node.
    pub gpu_index: i32,
    /// The GPU's UUID.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub gpu_uuid: String,
    /// The GPU's serial number, if the agent knows it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub gpu_serial: String,
    /// Which part of the GPU.
    pub system: System,
    /// What kind of event.
    pub event_type: EventType,
    /// Measurements: `xid_code`, `temperature`, `ecc_dbe_count`, …
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metrics: BTreeMap<String, Metric>,
    /// What the node says.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The line of the kernel log, as it was.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub raw: String,
    /// What the driver itself recommends, by NVML's number; `None` if it was not asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovery_action: Option<u32>,
    /// How many times it happened, if the node aggregated a flood.
    #[serde(default = "one")]
    pub count: u32,
    /// The boot in which it happened; empty means the current one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub boot_id: String,
    /// The condition that began (`temperature`), which lasts until the agent says that it is over; empty for
    /// what happened once.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub condition: String,
}

/// Measurements that tell apart what a part of a GPU can have, the worst first.
const TELLING: [&str; 12] = [
    "row_remap_failure",
    "row_remap_pending",
    "row_remaps_total",
    "retired_pages_pending",
    "retired_pages_total",
    "throttle",
    "memory_temperature",
    "temperature",
    "nvlinks_down",
    "nvlink_errors",
    "pcie_replays",
    "pcie_width",
];

fn one() -> u32 {
    1
}

impl Event {
    /// The Xid or SXid; 0 if it has none.
    pub fn code(&self) -> i64 {
        let code = |name: &str| match self.metrics.get(name) {
            Some(Metric::Int(code)) => Some(*code),
            Some(Metric::Bool(_) | Metric::Float(_) | Metric::Text(_)) | None => None,
        };
        let code = match self.event_type {
            EventType::Sxid => code("sxid_code").or_else(|| code("xid_code")),
            EventType::Xid => code("xid_code"),
            EventType::Unknown
            | EventType::Thermal
            | EventType::Power
            | EventType::Memory
            | EventType::Nvlink
            | EventType::Pcie
            | EventType::DriverError
            | EventType::EccSbe
            | EventType::EccDbe
            | EventType::Host => None,
        };
        code.unwrap_or(0)
    }

    /// The GPU of a node it is about; `None` for the whole node, and for a GPU that the node did not
    /// register.
    pub fn gpu_of<'a>(&self, node: &'a Node) -> Option<&'a Gpu> {
        node.gpu(&self.gpu_uuid, self.gpu_index)
    }

    /// The UUID of its GPU, as far as it can be told; empty for the whole node.
    pub fn gpu_uuid_of<'a>(&'a self, node: &'a Node) -> &'a str {
        if self.gpu_uuid.is_empty() {
            self.gpu_of(node).map_or("", |gpu| &gpu.uuid)
        } else {
            &self.gpu_uuid
        }
    }

    /// What happened to the machine around the GPUs: `disk-failed`; empty for any other event.
    pub fn host_signal(&self) -> &str {
        match (self.event_type, self.metrics.get("signal")) {
            (EventType::Host, Some(Metric::Text(signal))) => signal,
            _ => "",
        }
    }

    /// What happened within its kind: the code, the signal, the agent's reason, the condition, or the
    /// measurement that is out of order; `0` if nothing says.
    pub fn subject(&self) -> String {
        let text = |name: &str| match self.metrics.get(name) {
            Some(Metric::Text(word)) if !word.is_empty() => Some(word.clone()),
            _ => None,
        };
        let is_set = |metric: &Metric| match metric {
            Metric::Bool(set) => *set,
            Metric::Int(number) => *number != 0,
            Metric::Float(number) => *number != 0.0,
            Metric::Text(word) => !word.is_empty(),
        };
        if self.code() != 0 {
            return self.code().to_string();
        }
        if !self.host_signal().is_empty() {
            return self.host_signal().to_owned();
        }
        let condition = || Some(self.condition.clone()).filter(|name| !name.is_empty());
        let telling = || {
            let mut telling = TELLING.iter();
            let name = telling.find(|name| self.metrics.get(**name).is_some_and(is_set))?;
            Some((*name).to_owned())
        };
        let mut subject = match self.event_type {
            EventType::DriverError => text("reason").or_else(condition),
            EventType::Xid | EventType::Sxid | EventType::Host => None,
            EventType::Unknown
            | EventType::Thermal
            | EventType::Power
            | EventType::Memory
            | EventType::Nvlink
            | EventType::Pcie
            | EventType::EccSbe
            | EventType::EccDbe => condition().or_else(telling),
        };
        subject.iter_mut().for_each(|subject| cut(subject, SUBJECT_LEN_MAX));
        subject.unwrap_or_else(|| "0".to_owned())
    }

    /// What makes two events the same finding: `xid/79/GPU-1b2c…`, `host/disk-failed/node`.
    pub fn key_of(&self, node: &Node) -> String {
        let kind = self.event_type.as_str();
        let code = self.subject();
        match (self.gpu_uuid_of(node), self.gpu_index) {
            ("", index) if index < 0 => format!("{kind}/{code}/node"),
            ("", index) => format!("{kind}/{code}/gpu{index}"),
            (uuid, _) => format!("{kind}/{code}/{uuid}"),
        }
    }
}

/// The longest subject of an event that becomes part of a key, in bytes.
const SUBJECT_LEN_MAX: usize = 64;

/// A measurement. Navarch sends text; it is read as a whole number, a finite number or a boolean where
/// it is one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Metric {
    /// `true` or `false`.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A finite number.
    Float(f64),
    /// Anything else.
    Text(String),
}

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum $name { $($(#[$variant_doc])* #[serde(rename = $word)] $variant),+ }

        impl $name {
            /// All of them, in the order of their numbers on the wire.
            pub const ALL: &[$name] = &[$($name::$variant),+];

            /// The word rules compare with.
            pub const fn as_str(self) -> &'static str {
                match self { $($name::$variant => $word),+ }
            }
        }
    };
}

words! {
    /// The kind of an event.
    EventType {
        /// Not said.
        Unknown = "unknown",
        /// A driver error code.
        Xid = "xid",
        /// Temperature.
        Thermal = "thermal",
        /// Power.
        Power = "power",
        /// Memory.
        Memory = "memory",
        /// NVLink.
        Nvlink = "nvlink",
        /// PCI Express.
        Pcie = "pcie",
        /// The driver.
        DriverError = "driver_error",
        /// A corrected memory error.
        EccSbe = "ecc_sbe",
        /// An uncorrectable memory error.
        EccDbe = "ecc_dbe",
        /// An error code of the switch between GPUs. Not on Navarch's wire.
        Sxid = "sxid",
        /// The machine around the GPUs; the metric `signal` says what. Not on Navarch's wire.
        Host = "host",
    }
}

words! {
    /// The part of a GPU an event is about.
    System {
        /// Not said.
        Unknown = "DCGM_HEALTH_WATCH_UNKNOWN",
        /// PCI Express.
        Pcie = "DCGM_HEALTH_WATCH_PCIE",
        /// NVLink.
        Nvlink = "DCGM_HEALTH_WATCH_NVLINK",
        /// The power management unit.
        Pmu = "DCGM_HEALTH_WATCH_PMU",
        /// The microcontroller.
        Mcu = "DCGM_HEALTH_WATCH_MCU",
        /// Memory.
        Mem = "DCGM_HEALTH_WATCH_MEM",
        /// The multiprocessors.
        Sm = "DCGM_HEALTH_WATCH_SM",
        /// The info ROM.
        Inforom = "DCGM_HEALTH_WATCH_INFOROM",
        /// Temperature.
        Thermal = "DCGM_HEALTH_WATCH_THERMAL",
        /// Power.
        Power = "DCGM_HEALTH_WATCH_POWER",
        /// The driver.
        Driver = "DCGM_HEALTH_WATCH_DRIVER",
        /// The switch between GPUs.
        Nvswitch = "DCGM_HEALTH_WATCH_NVSWITCH",
    }
}

/// What a policy says of one event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// How bad; the error if a rule failed on the way, in which case nothing good may be concluded.
    pub severity: Result<Severity, String>,
    /// How bad the driver and the catalogue say it is: a rule that fails does not make it milder.
    pub at_least: Severity,
    /// Whether it is that bad only because the driver asks for recovery, and over when it does not any more.
    pub advised: bool,
    /// The rule that decided, or failed; empty if none matched.
    pub rule: String,
    /// The policy's name.
    pub policy: String,
    /// Its version.
    pub policy_version: u32,
    /// What the rule says about it, for people.
    pub message: String,
    /// How long a finding of it lasts.
    pub lasts: Lasts,
    /// What spoke for and against: the driver's word, the catalogue's row, and where they disagree.
    pub inputs: Vec<String>,
}

/// How long a finding of an event lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lasts {
    /// For so long without a repeat.
    For(SignedDuration),
    /// Until the node boots again.
    UntilReboot,
    /// Until the GPU is replaced, or an operator says so.
    UntilReplaced,
}

/// The node after a report, and what to write down about it.
#[derive(Clone, Debug, PartialEq)]
pub struct TakenIn {
    /// The node; `None` if nothing that is stored changed.
    pub node: Option<Node>,
    /// For the ledger.
    pub entries: Vec<Entry>,
}

/// Why findings of events end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Absolution {
    /// The node booted again.
    Reboot,
    /// A diagnostic passed.
    Diagnostic(Tested),
    /// An operator says so.
    Operator(String),
}

/// What a diagnostic that passed has shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tested {
    /// Which command.
    pub command: CommandId,
    /// Which test: `compute`.
    pub test: String,
    /// The GPUs that passed, by UUID; `None` if the result names none: then all of them.
    pub gpus: Option<Vec<String>>,
}

impl Tested {
    /// Whether the test shows that what was found is over: it made the GPU in question work, and the part in
    /// question. One that only reads what the driver says (`quick`) shows nothing.
    pub fn clears(&self, finding: &Finding) -> bool {
        let memory = [
            "ecc_dbe/", "ecc_sbe/", "memory/", "xid/48/", "xid/63/", "xid/64/", "xid/94/",
            "xid/95/",
        ];
        let of_memory = memory.iter().any(|kind| finding.key.starts_with(kind));
        let worked = match self.test.as_str() {
            "all" => true,
            "memory" => of_memory,
            "compute" | "stress" => !of_memory && !finding.gpu.is_empty(),
            _ => false,
        };
        let among = |gpus: &Vec<String>| finding.gpu.is_empty() || gpus.contains(&finding.gpu);
        worked && self.gpus.as_ref().is_none_or(among)
    }
}

impl From<&Verdict> for VerdictNote {
    fn from(verdict: &Verdict) -> Self {
        VerdictNote {
            policy: verdict.policy.clone(),
            policy_version: verdict.policy_version,
            rule: verdict.rule.clone(),
            severity: verdict.severity.as_ref().ok().copied(),
            error: verdict.severity.as_ref().err().cloned(),
            inputs: verdict.inputs.clone(),
        }
    }
}

/// Cuts a text so that it has at most so many bytes.
pub(crate) fn cut(text: &mut String, len_max: usize) {
    if len_max < text.len() {
        text.truncate(text.floor_char_boundary(len_max));
    }
}

#[cfg(test)]
mod tests;
