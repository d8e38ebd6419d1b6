//! What happened to a GPU or to the machine, as it was seen and not judged: judging is the server's work.
//!
//! What a newcomer gets wrong: a signal is not a reading. A hot GPU is one signal when it gets hot, not
//! one with every look at it; that it still is hot is said by a condition in each round of checks.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Something that happened once, or `count` times between `first` and `last`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signal {
    /// What kind of thing.
    pub kind: SignalKind,
    /// The GPU it happened to; `None` for the whole machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gpu: Option<GpuRef>,
    /// Numbers and short words by name: `xid_code`, `temperature`, `signal`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metrics: BTreeMap<String, String>,
    /// A sentence for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The line as the kernel wrote it; empty if it was not a line.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub raw: String,
    /// What the driver advises, by NVML's number; `None` if it was not asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovery_action: Option<u32>,
    /// How often: at least 1.
    pub count: u32,
    /// The first time, by this machine's clock.
    pub first: Timestamp,
    /// The last time.
    pub last: Timestamp,
    /// The boot in which it happened: a signal may be kept on disk over one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub boot_id: String,
    /// The condition that began, which lasts until it is said to be over; empty if it happened once.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub condition: String,
}

/// How a condition of a GPU stands, as the last look showed it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Condition {
    /// Which GPU, by its name for life.
    pub gpu: String,
    /// Which condition.
    pub name: String,
    /// Whether it holds.
    pub holds: bool,
}

/// Kinds of signals, by the words that policies use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SignalKind {
    /// An error code of the GPU's driver; metric `xid_code`.
    Xid,
    /// An error code of an NVSwitch; metric `sxid_code`.
    Sxid,
    /// Heat, or a slowdown because of it; metric `temperature`.
    Thermal,
    /// Power, or a slowdown because of it.
    Power,
    /// GPU memory other than ECC counts: row remaps and retired pages.
    Memory,
    /// Links between GPUs.
    Nvlink,
    /// The bus: replays, width, AER.
    Pcie,
    /// The driver itself.
    DriverError,
    /// Corrected ECC errors; metric `ecc_sbe_count`.
    EccSbe,
    /// Uncorrected ECC errors; metric `ecc_dbe_count`.
    EccDbe,
    /// The machine around the GPUs; metric `signal` says what (`oom-kill`, `machine-check`, …).
    Host,
}

/// Which GPU.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct GpuRef {
    /// Its number on this machine.
    pub index: u32,
    /// Its name for life, as the driver says it.
    pub uuid: String,
    /// What is printed on it; empty if the driver does not say.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub serial: String,
}

impl Signal {
    /// A signal that happened once, at `at`.
    pub fn once(kind: SignalKind, at: Timestamp, message: impl Into<String>) -> Self {
        Self {
            kind,
            gpu: None,
            metrics: BTreeMap::new(),
            message: message.into(),
            raw: String::new(),
            recovery_action: None,
            count: 1,
            first: at,
            last: at,
            boot_id: String::new(),
            condition: String::new(),
        }
    }

    /// The same, as the beginning of a condition.
    #[must_use]
    pub fn begins(mut self, condition: &str) -> Self {
        condition.clone_into(&mut self.condition);
        self
    }

    /// The same, on this GPU.
    #[must_use]
    pub fn on(mut self, gpu: GpuRef) -> Self {
        self.gpu = Some(gpu);
        self
    }

    /// The same, with one more metric.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl ToString) -> Self {
        self.metrics.insert(name.to_owned(), value.to_string());
        self
    }
}
