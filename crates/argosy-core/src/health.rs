//! What a node says about its health, and what we make of it.
//!
//! A report carries results (each check's word, which replaces its last one) and events (things that
//! happened once). Policies judge events; `take_in` turns results and verdicts into findings, and
//! findings into the node's health. What a newcomer gets wrong: a clean report does not wash away an
//! event. A finding says itself what ends it.

mod door;
mod intake;

pub(crate) use intake::decisive;
pub use intake::{absolve, expire, sight, take_in};

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
/// The reason of `Unknown` until the node reports for the first time.
pub const NO_REPORT: &str = "NoReport";
/// The reason of `Healthy`.
pub const NO_FINDINGS: &str = "NoFindings";

impl Health {
    /// Of a node that has not reported yet.
    pub fn unreported(now: Timestamp) -> Self {
        Self {
            state: HealthState::Unknown,
            since: now,
            reason: NO_REPORT.to_owned(),
            message: "it has not reported its health yet".to_owned(),
        }
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
}

/// What ends a finding. An operator's uncordon ends every finding of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ends {
    /// The check passes.
    WhenCheckPasses,
    /// Nothing like it happens until then.
    At(Timestamp),
    /// The node boots again, a diagnostic passes, or an operator says so.
    AtReboot,
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
}

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
}

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

    /// What makes two events the same finding: `xid/79/GPU-1b2c…`, `host/disk-failed/node`.
    pub fn key_of(&self, node: &Node) -> String {
        let kind = self.event_type.as_str();
        let code = match self.host_signal() {
            "" => self.code().to_string(),
            signal => signal.to_owned(),
        };
        match (self.gpu_uuid_of(node), self.gpu_index) {
            ("", index) if index < 0 => format!("{kind}/{code}/node"),
            ("", index) => format!("{kind}/{code}/gpu{index}"),
            (uuid, _) => format!("{kind}/{code}/{uuid}"),
        }
    }
}

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
    /// How bad; the error if a rule failed on the way, in which case nothing may be concluded.
    pub severity: Result<Severity, String>,
    /// The rule that decided, or failed; empty if none matched.
    pub rule: String,
    /// The policy's name.
    pub policy: String,
    /// Its version.
    pub policy_version: u32,
    /// What the rule says about it, for people.
    pub message: String,
    /// How long a finding of it lasts without a repeat; `None`: until the node boots again.
    pub lasts: Option<SignedDuration>,
    /// What spoke for and against: the driver's word, the catalogue's row, and where they disagree.
    pub inputs: Vec<String>,
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
    Diagnostic(CommandId),
    /// An operator says so.
    Operator(String),
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
