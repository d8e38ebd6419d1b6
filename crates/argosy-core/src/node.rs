//! A node: a machine whose agent registered. Three independent facts (liveness, health, duty), and
//! the one word people see, which is derived from them and never stored.
//!
//! What a newcomer gets wrong: registration says what a machine *is*. It never changes what we decided
//! about it: a cordon, a drain or a quarantine outlives any number of registrations.

pub mod settings;

mod register;

pub use register::{Conflict, RegisterError, Registered, Registrar, is_owned, register};

pub use crate::external::{External, Told};

use crate::field::{Constraint, FieldError};
use crate::health::{Check, Finding, Health, HealthState, POLICY_ERROR, Sighting};
use crate::id::CommandId;
use crate::label::Labels;
use crate::ledger::{Entry, What};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// What a node is called: its instance id or host name, chosen by whoever starts the agent.
///
/// Letters, digits, `.`, `_`, `:` and `-`, beginning and ending with a letter or digit.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NodeId(Arc<str>);

impl NodeId {
    /// The longest id: cloud instance ids and full host names fit.
    pub const LEN_MAX: usize = 128;

    /// Reads an id.
    ///
    /// # Errors
    /// Says which rule the text breaks, as a complaint about the field `node_id`.
    pub fn parse(text: &str) -> Result<Self, FieldError> {
        let complain =
            |constraint, message: String| FieldError::new("node_id", constraint, message);
        if text.is_empty() {
            return Err(complain(Constraint::Required, "node_id is required".to_owned()));
        }
        if Self::LEN_MAX < text.len() {
            let len = text.len();
            let message =
                format!("node_id is {len} bytes long; at most {} are allowed", Self::LEN_MAX);
            return Err(complain(Constraint::MaxLength, message));
        }
        let edge = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric());
        let inner = |byte: u8| byte.is_ascii_alphanumeric() || b"._:-".contains(&byte);
        if text.bytes().all(inner) && edge(text.bytes().next()) && edge(text.bytes().last()) {
            return Ok(Self(text.into()));
        }
        let message = "node_id may hold letters, digits, dots, underscores, colons and hyphens, and \
                       must start and end with a letter or digit";
        Err(complain(Constraint::Pattern, message.to_owned()))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Lets maps with `NodeId` keys be asked by text.
impl std::borrow::Borrow<str> for NodeId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A registered machine, and what we know and decided about it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Node {
    /// Which.
    pub id: NodeId,
    /// Whose.
    pub tenant: String,
    /// The node pool it belongs to, if any; chosen once, at a registration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// Where it is.
    pub place: Place,
    /// What it runs on.
    pub machine: Machine,
    /// Its GPUs, as it last registered them.
    pub gpus: Vec<Gpu>,
    /// What people filter by.
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    pub labels: Labels,
    /// When it first registered.
    pub registered_at: Timestamp,
    /// When it last came into service: its first registration, or the last one after a reboot. It is
    /// warming up for a while after that.
    pub joined_at: Timestamp,
    /// Whether it is heard.
    pub liveness: Liveness,
    /// Since when.
    pub liveness_since: Timestamp,
    /// Whether it is well.
    pub health: Health,
    /// Whether it may be given work.
    pub duty: Duty,
    /// The latest results of its health checks, by name; at most `CHECKS_MAX`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub checks: BTreeMap<String, Check>,
    /// What is wrong with it now; at most `FINDINGS_MAX`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Finding>,
    /// What was seen lately, for rules that count; at most `SIGHTINGS_MAX`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sightings: Vec<Sighting>,
    /// The number of the last health report, from agents that number them.
    #[serde(default)]
    pub report_sequence: u64,
    /// How often it recovered and fell ill again.
    #[serde(default)]
    pub flaps: Flaps,
    /// Things to know about it that are neither health nor duty.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub flags: BTreeMap<Flag, FlagNote>,
    /// An automatic action that was due and not taken, and why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<Held>,
    /// What those outside who act on it were told, and what they hold.
    #[serde(default)]
    pub external: External,
}

/// How many health checks a node may report.
pub const CHECKS_MAX: usize = 64;
/// How many findings are kept: the oldest of the least severe goes first.
pub const FINDINGS_MAX: usize = 64;
/// How many different things are remembered as seen: the one not seen for longest goes first.
pub const SIGHTINGS_MAX: usize = 64;
/// How many GPUs a node may have.
pub const GPUS_MAX: usize = 64;

/// Where a node is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Place {
    /// `gcp`, `aws`, …
    pub provider: Arc<str>,
    /// The region.
    pub region: Arc<str>,
    /// The zone.
    pub zone: Arc<str>,
    /// The machine type.
    pub instance_type: Arc<str>,
}

/// What a node runs on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// Its host name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub hostname: String,
    /// Its address inside.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub internal_ip: String,
    /// Its address outside.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub external_ip: String,
    /// Its kernel.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub kernel_version: String,
    /// Changes at each boot; empty if the agent does not say.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub boot_id: String,
    /// The hardware's or the cloud's own identity; empty if the agent does not say.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub machine_id: String,
    /// The agent and its version: `argosy-agent/0.2.0`, `navarch`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub agent: String,
}

/// One GPU. A device that failed to answer may be all empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gpu {
    /// Its place in the node.
    pub index: i32,
    /// The driver's name for it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub uuid: String,
    /// The model.
    #[serde(default, skip_serializing_if = "str_is_empty")]
    pub name: Arc<str>,
    /// Its address on the bus.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub pci_bus_id: String,
    /// Its memory, in bytes.
    #[serde(default)]
    pub memory_total: i64,
    /// The driver.
    #[serde(default, skip_serializing_if = "str_is_empty")]
    pub driver_version: Arc<str>,
    /// CUDA.
    #[serde(default, skip_serializing_if = "str_is_empty")]
    pub cuda_version: Arc<str>,
    /// The board's serial number: follows the hardware from node to node.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub serial: String,
}

fn str_is_empty(text: &Arc<str>) -> bool {
    text.is_empty()
}

impl Gpu {
    /// What follows the hardware: its serial number, or else its UUID.
    pub fn hardware(&self) -> &str {
        if self.serial.is_empty() { &self.uuid } else { &self.serial }
    }
}

/// Whether a node is heard. Decided by our clock alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Liveness {
    /// It is.
    Fresh,
    /// It should have been by now.
    Suspect,
    /// It is taken for lost.
    Unreachable,
}

impl Liveness {
    /// The word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Liveness::Fresh => "Fresh",
            Liveness::Suspect => "Suspect",
            Liveness::Unreachable => "Unreachable",
        }
    }
}

/// Whether a node may be given work. Only commands and our own decisions change it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Duty {
    /// It may.
    Active,
    /// No new work.
    Cordoned(Hold),
    /// No new work, and what runs is to end.
    Draining {
        /// Who wanted it.
        hold: Hold,
        /// The drain.
        command: CommandId,
        /// When it ends, whatever still runs.
        deadline: Timestamp,
        /// Whether the drain has ended.
        done: bool,
    },
    /// It is, or will be, gone. Nothing brings it back but a new registration under a new id.
    Terminated(Hold),
}

/// Who took a node out of service, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hold {
    /// Who.
    pub by: String,
    /// Whether we did it by ourselves: then we may undo it when the node recovers.
    pub automatic: bool,
    /// Why.
    pub reason: String,
    /// When.
    pub at: Timestamp,
}

impl Duty {
    /// Who took the node out of service; `None` while it is in service.
    pub fn hold(&self) -> Option<&Hold> {
        match self {
            Duty::Active => None,
            Duty::Cordoned(hold) | Duty::Terminated(hold) | Duty::Draining { hold, .. } => {
                Some(hold)
            }
        }
    }
}

/// The one word people see.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NodeStatus {
    /// Nothing is known yet.
    Unknown,
    /// In service.
    Active,
    /// Gets no new work.
    Cordoned,
    /// What runs is to end.
    Draining,
    /// In service, and should not be.
    Unhealthy,
    /// Gone.
    Terminated,
}

impl NodeStatus {
    /// Every word, in the order of their numbers on the wire.
    pub const ALL: [NodeStatus; 6] = [
        NodeStatus::Unknown,
        NodeStatus::Active,
        NodeStatus::Cordoned,
        NodeStatus::Draining,
        NodeStatus::Unhealthy,
        NodeStatus::Terminated,
    ];

    /// The word.
    pub const fn as_str(self) -> &'static str {
        match self {
            NodeStatus::Unknown => "UNKNOWN",
            NodeStatus::Active => "ACTIVE",
            NodeStatus::Cordoned => "CORDONED",
            NodeStatus::Draining => "DRAINING",
            NodeStatus::Unhealthy => "UNHEALTHY",
            NodeStatus::Terminated => "TERMINATED",
        }
    }
}

impl Node {
    /// The one word: duty first, then what speaks against an active node.
    ///
    /// A node that nobody has judged yet is ACTIVE: it registered, and nothing speaks against it.
    pub fn status(&self) -> NodeStatus {
        match self.duty {
            Duty::Terminated(_) => NodeStatus::Terminated,
            Duty::Draining { .. } => NodeStatus::Draining,
            Duty::Cordoned(_) => NodeStatus::Cordoned,
            Duty::Active if self.is_bad() => NodeStatus::Unhealthy,
            Duty::Active => NodeStatus::Active,
        }
    }

    /// Whether the node should not be in service: it is sick, or lost.
    pub fn is_bad(&self) -> bool {
        self.health.state == HealthState::Unhealthy || self.liveness == Liveness::Unreachable
    }

    /// Whether nothing speaks against the node being in service. Not the opposite of bad: while a rule
    /// fails, nobody can say.
    pub fn is_well(&self) -> bool {
        let unsure =
            self.health.state == HealthState::Unknown && self.health.reason == POLICY_ERROR;
        !self.is_bad() && !unsure
    }

    /// The node with a flag raised, and what it says, or lowered; `None` if it is so already.
    pub fn flagged(
        &self,
        flag: Flag,
        raise: Option<&str>,
        now: Timestamp,
    ) -> Option<(Node, Entry)> {
        let raised = self.flags.get(&flag);
        let message = match (raised, raise) {
            (None, Some(message)) => message.to_owned(),
            (Some(_), None) => "it is over".to_owned(),
            (None, None) | (Some(_), Some(_)) => return None,
        };
        let mut node = self.clone();
        match raise {
            Some(message) => {
                let note = FlagNote { since: now, message: message.to_owned() };
                node.flags.insert(flag, note);
            }
            None => _ = node.flags.remove(&flag),
        }
        let (raised, flag) = (raise.is_some(), flag.as_str().to_owned());
        let entry =
            Entry { at: now, node: self.id.clone(), what: What::Flag { flag, raised, message } };
        Some((node, entry))
    }

    /// The node once its machine is, or will be, gone, and what is written down about it.
    pub fn ended(&self, by: &str, why: &str, now: Timestamp) -> (Node, Vec<Entry>) {
        let mut node = self.clone();
        let (by, reason) = (by.to_owned(), why.to_owned());
        node.duty = Duty::Terminated(Hold { by, automatic: false, reason, at: now });
        node.held = None;
        let (from, to) = (self.status().into(), node.status().into());
        let what = What::Status { from, to, reason: why.to_owned() };
        (node, vec![Entry { at: now, node: self.id.clone(), what }])
    }

    /// Keeps count of recoveries and relapses, after a change of health or liveness.
    pub fn turned(&mut self, before: &Node, now: Timestamp) {
        if self.is_bad() && !before.is_bad() {
            self.flaps.relapsed(now);
        }
        if self.is_well() && !before.is_well() {
            self.flaps.recovered_at = Some(now);
        }
    }

    /// Whether its drain has ended with nothing left. One that ended at its deadline may have left work.
    pub fn is_emptied(&self) -> bool {
        match &self.duty {
            Duty::Draining { command, done: true, .. } => {
                self.external.left.as_ref().is_none_or(|left| left.of != *command)
            }
            Duty::Draining { done: false, .. }
            | Duty::Active
            | Duty::Cordoned(_)
            | Duty::Terminated(_) => false,
        }
    }

    /// Whether an automatic action has taken it out of service: what budgets count.
    pub fn in_disruption(&self) -> bool {
        match &self.duty {
            Duty::Active | Duty::Terminated(_) => false,
            Duty::Cordoned(hold) | Duty::Draining { hold, .. } => hold.automatic,
        }
    }

    /// The GPU an event names, by UUID or else by place.
    pub fn gpu(&self, uuid: &str, index: i32) -> Option<&Gpu> {
        let by_uuid = self.gpus.iter().find(|gpu| !uuid.is_empty() && gpu.uuid == uuid);
        by_uuid.or_else(|| self.gpus.iter().find(|gpu| gpu.index == index))
    }
}

/// How often a node recovered and fell ill again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flaps {
    /// How many times lately.
    pub count: u32,
    /// Since when it is well again; `None` while it is not, and before it was ever ill.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovered_at: Option<Timestamp>,
    /// It must have been well until then before it is put back into service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold_until: Option<Timestamp>,
}

/// How long a node must be well for its past not to count any more. Longer than the longest hold, or
/// a node that is put back after it and fails at once would begin anew with the shortest.
const FLAPS_FORGOTTEN_AFTER: SignedDuration = SignedDuration::from_hours(24);

impl Flaps {
    fn relapsed(&mut self, now: Timestamp) {
        let Some(recovered_at) = self.recovered_at.take() else { return };
        self.count = if now.duration_since(recovered_at) < FLAPS_FORGOTTEN_AFTER {
            self.count.saturating_add(1)
        } else {
            0
        };
    }
}

/// Something to know about a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Flag {
    /// Its clock is off. We do not use it.
    ClockSkewed,
    /// Another machine tried to register under its id.
    IdentityConflict,
    /// It reports but does not fetch its commands.
    CommandChannelDown,
    /// It could not do what takes it out of service, or puts it back; it is told again.
    CommandFailed,
    /// It reports more than it may.
    Noisy,
    /// A workload system could not be told.
    ExternalFailed,
    /// A workload system holds something else than it was told.
    ExternalDiffers,
}

impl Flag {
    /// The word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Flag::ClockSkewed => "ClockSkewed",
            Flag::IdentityConflict => "IdentityConflict",
            Flag::CommandChannelDown => "CommandChannelDown",
            Flag::CommandFailed => "CommandFailed",
            Flag::Noisy => "Noisy",
            Flag::ExternalFailed => "ExternalFailed",
            Flag::ExternalDiffers => "ExternalDiffers",
        }
    }
}

/// Since when a flag is set, and what it says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlagNote {
    /// Since when.
    pub since: Timestamp,
    /// A sentence.
    pub message: String,
}

/// An automatic action that was due and not taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// What would have been done: `cordon`.
    pub action: String,
    /// Which guard held it: `budget`, `rate`, `breaker`, `pause`, `amnesty`, `isolation`, `policy` (a
    /// rule failed), or `hold-down` (it must stay well for a while).
    pub guard: String,
    /// A sentence with the numbers.
    pub reason: String,
    /// Since when.
    pub since: Timestamp,
}

/// What a machine says when it registers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Registration {
    /// Its id.
    pub node_id: String,
    /// Where it is.
    pub place: Place,
    /// What it runs on.
    pub machine: Machine,
    /// Its GPUs.
    pub gpus: Vec<Gpu>,
    /// Its labels; `pool` among them names the pool where `pool` does not.
    pub labels: BTreeMap<String, String>,
    /// The pool.
    pub pool: Option<String>,
}

#[cfg(test)]
pub(crate) mod fixture;

#[cfg(test)]
mod tests;
