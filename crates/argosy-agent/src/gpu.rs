//! GPUs as an agent sees them: what they are (`Inventory`) and how they are (`Sweep`).
//!
//! A value the driver does not give is `None`, never 0: what cannot be known must not look well.

pub mod child;
pub mod fake;
pub mod nvml;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// Whether what the driver said of a GPU means that it is not there any more, rather than that it cannot be read.
pub(crate) fn is_gone(said: &str) -> bool {
    matches!(said, "GPU_IS_LOST" | "GPU_NOT_FOUND")
}

/// Somebody who knows the GPUs of this machine: the driver in a child process, or a fake.
///
/// Every call ends in bounded time, whatever the driver does.
#[async_trait]
pub trait Gpu: Send {
    /// What is there.
    async fn inventory(&mut self) -> Result<Inventory, GpuError>;
    /// How it is, now. One GPU that cannot be read does not spoil the others.
    async fn sweep(&mut self) -> Result<Sweep, GpuError>;
}

/// Why nothing can be said about the GPUs of this machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum GpuError {
    /// There is no NVML here: a machine without GPUs, or without a driver.
    #[error("NVML is not there: {message}")]
    Absent {
        /// What the loader said.
        message: String,
    },
    /// NVML is there and does not work.
    #[error("NVML does not work: {message}")]
    Driver {
        /// NVML's own word, for example `DRIVER_NOT_LOADED` or `LIB_RM_VERSION_MISMATCH`.
        code: String,
        /// A sentence.
        message: String,
    },
    /// A call did not come back in time. The child that made it was given up.
    #[error("the driver did not answer {call} within {after:?}")]
    Hung {
        /// What was asked.
        call: String,
        /// How long we waited.
        after: Duration,
        /// The GPU it was about, if it was about one.
        gpu: Option<u32>,
    },
    /// The child that asks the driver died.
    #[error("the probe died during {call}: {how}")]
    Crashed {
        /// What was asked.
        call: String,
        /// `signal 11`, `exit code 101`.
        how: String,
        /// The GPU it was about, if it was about one.
        gpu: Option<u32>,
    },
}

/// What is in this machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Inventory {
    /// The driver, as it says itself: `580.159.04`.
    pub driver_version: Option<String>,
    /// The newest CUDA the driver serves: `13.0`.
    pub cuda_version: Option<String>,
    /// NVML's own version.
    pub nvml_version: Option<String>,
    /// The GPUs, by index.
    pub gpus: Vec<GpuIdentity>,
    /// GPUs that are listed and do not answer, by index, with what the driver said.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unreadable: BTreeMap<u32, String>,
}

/// What one GPU is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GpuIdentity {
    /// Its number on this machine.
    pub index: u32,
    /// Its name for life.
    pub uuid: String,
    /// The product: `NVIDIA H200`.
    pub name: String,
    /// What is printed on it.
    pub serial: Option<String>,
    /// The board it sits on.
    pub board_id: Option<u32>,
    /// The board's part number.
    pub board_part_number: Option<String>,
    /// Where it is: `00000000:18:00.0`, as NVML writes it.
    pub pci_bus_id: String,
    /// Its firmware.
    pub vbios_version: Option<String>,
    /// All its memory, in bytes.
    pub memory_total_bytes: Option<u64>,
    /// `9.0` for Hopper.
    pub compute_capability: Option<String>,
    /// Whether it is cut into MIG instances, and into how many.
    pub mig: Option<Mig>,
    /// Whether ECC is on.
    pub ecc_enabled: Option<bool>,
    /// Whether persistence mode is on.
    pub persistence: Option<bool>,
    /// The fastest PCIe generation it and its slot can do.
    pub pcie_generation_max: Option<u32>,
    /// The widest link it and its slot can do.
    pub pcie_width_max: Option<u32>,
    /// The most power it may be given, in watts.
    pub power_limit_max_watts: Option<f64>,
    /// Degrees at which it slows down.
    pub slowdown_celsius: Option<u32>,
    /// Degrees at which it shuts down.
    pub shutdown_celsius: Option<u32>,
    /// Its NVLinks; empty if it has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nvlinks: Vec<Nvlink>,
}

/// Whether a GPU is cut into instances.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mig {
    /// Whether the mode is on.
    pub enabled: bool,
    /// Whether it will be on after the next reset.
    pub pending: bool,
    /// How many instances there are.
    pub instances: u32,
}

/// One NVLink of a GPU.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Nvlink {
    /// Its number on the GPU.
    pub link: u32,
    /// Whether it is up.
    pub active: bool,
    /// What is at its other end: `GPU`, `Switch`, …
    pub remote: Option<String>,
    /// Where its other end is.
    pub remote_pci_bus_id: Option<String>,
}

/// How the GPUs are, at one time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sweep {
    /// How long it took.
    pub took: Duration,
    /// How many GPUs the driver counts, now.
    pub count: u32,
    /// Those that could be read, by index.
    pub gpus: Vec<Reading>,
    /// Those that could not, by index, with what the driver said (`GPU_IS_LOST`, …).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unreadable: BTreeMap<u32, String>,
}

/// How one GPU is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Reading {
    /// Its number on this machine.
    pub index: u32,
    /// Its name for life.
    pub uuid: String,
    /// How much of the last second it worked, in percent.
    pub utilization_percent: Option<u32>,
    /// How much of the last second its memory was read or written, in percent.
    pub memory_utilization_percent: Option<u32>,
    /// Memory in use.
    pub memory_used_bytes: Option<u64>,
    /// Memory that is free.
    pub memory_free_bytes: Option<u64>,
    /// Of the chip.
    pub temperature_celsius: Option<u32>,
    /// Of the memory.
    pub memory_temperature_celsius: Option<u32>,
    /// What it draws.
    pub power_watts: Option<f64>,
    /// What it may draw, now.
    pub power_limit_watts: Option<f64>,
    /// Of its multiprocessors.
    pub sm_clock_mhz: Option<u32>,
    /// Of its memory.
    pub memory_clock_mhz: Option<u32>,
    /// `P0` is 0.
    pub performance_state: Option<u32>,
    /// Why its clocks are held back, as words: `HwThermalSlowdown`, `SwPowerCap`, `GpuIdle`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub throttle_reasons: Vec<String>,
    /// Errors corrected since the driver was loaded, and over its life.
    pub ecc_corrected: Option<Counts>,
    /// Errors not corrected since the driver was loaded, and over its life.
    pub ecc_uncorrected: Option<Counts>,
    /// Rows of memory that were replaced by spare ones.
    pub row_remaps: Option<RowRemaps>,
    /// Pages of memory taken out of use, on GPUs before row remapping.
    pub retired_pages: Option<RetiredPages>,
    /// Links that are not up, of those that are there.
    pub nvlinks_down: Option<u32>,
    /// Errors on all links together, since the driver was loaded, by kind: `crc_flit`, `crc_data`, `replay`, `recovery`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub nvlink_errors: BTreeMap<String, u64>,
    /// Packets sent again on the bus.
    pub pcie_replays: Option<u32>,
    /// The PCIe generation now; it falls when the GPU is idle.
    pub pcie_generation: Option<u32>,
    /// The width of the link now.
    pub pcie_width: Option<u32>,
    /// What the driver wants done, by NVML's number.
    pub recovery_action: Option<u32>,
    /// The programs that use it; `None` if the driver does not say.
    pub processes: Option<Vec<Process>>,
    /// Whether it is cut into instances.
    pub mig: Option<Mig>,
}

/// How many, since the driver was loaded and over the GPU's life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Since the driver was loaded.
    pub volatile: Option<u64>,
    /// Over its life.
    pub aggregate: Option<u64>,
}

/// Rows of memory that were replaced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowRemaps {
    /// Because of corrected errors.
    pub corrected: u32,
    /// Because of uncorrected errors.
    pub uncorrected: u32,
    /// Some wait for the next reset.
    pub pending: bool,
    /// One could not be made: no spare row is left.
    pub failed: bool,
}

/// Pages of memory taken out of use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetiredPages {
    /// Because of many corrected errors.
    pub corrected: u32,
    /// Because of an uncorrected one.
    pub uncorrected: u32,
    /// Some wait for the next reset.
    pub pending: bool,
}

/// A program that uses a GPU.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// Its name, from `/proc`; empty if it is gone or not ours to see.
    pub name: String,
    /// GPU memory it holds.
    pub memory_bytes: Option<u64>,
}
