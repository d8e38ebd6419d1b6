//! What the stand-in is to say: a file that is read again with every call, so that a test can change it
//! while the child runs.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The environment variable that names the script.
pub const SCRIPT_ENV: &str = "ARGOSY_NVML_STANDIN_SCRIPT";

/// A whole machine, as its driver tells it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Script {
    /// What `nvmlSystemGetDriverVersion` says.
    pub driver_version: String,
    /// What `nvmlSystemGetNVMLVersion` says.
    pub nvml_version: String,
    /// What `nvmlSystemGetCudaDriverVersion_v2` says: 13000 for 13.0.
    pub cuda_version: i32,
    /// The GPUs, by index.
    pub gpus: Vec<Gpu>,
    /// What goes wrong. The first that fits a call counts.
    pub faults: Vec<Fault>,
}

impl Default for Script {
    fn default() -> Self {
        Self {
            driver_version: "580.159.04".to_owned(),
            nvml_version: "13.580.159.04".to_owned(),
            cuda_version: 13_000,
            gpus: Vec::new(),
            faults: Vec::new(),
        }
    }
}

impl Script {
    /// A machine with this many H100s, all well.
    pub fn h100s(count: u32) -> Self {
        Self { gpus: (0..count).map(Gpu::h100).collect(), ..Self::default() }
    }

    /// The same, and this goes wrong.
    #[must_use]
    pub fn with_fault(mut self, fault: Fault) -> Self {
        self.faults.push(fault);
        self
    }

    /// Reads a script; one that cannot be read is a machine whose driver is not loaded.
    pub(crate) fn read() -> Option<Self> {
        let path = std::env::var_os(SCRIPT_ENV)?;
        serde_json::from_str(&std::fs::read_to_string(path).ok()?).ok()
    }

    /// Writes it in one step: a child that reads at this moment sees the old one or the new one.
    pub fn write(&self, path: &Path) -> std::io::Result<()> {
        let next = path.with_extension("next");
        std::fs::write(&next, serde_json::to_vec_pretty(self)?)?;
        std::fs::rename(next, path)
    }
}

/// Something that goes wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// In which function; `None` is any that is about a GPU.
    #[serde(default)]
    pub call: Option<String>,
    /// On which GPU; `None` is any.
    #[serde(default)]
    pub gpu: Option<u32>,
    /// What happens instead of an answer.
    pub behaviour: Behaviour,
}

impl Fault {
    /// This happens in this function, on any GPU.
    pub fn in_call(call: &str, behaviour: Behaviour) -> Self {
        Self { call: Some(call.to_owned()), gpu: None, behaviour }
    }

    /// This happens with this GPU, in any function.
    pub fn on_gpu(gpu: u32, behaviour: Behaviour) -> Self {
        Self { call: None, gpu: Some(gpu), behaviour }
    }

    pub(crate) fn fits(&self, call: &str, gpu: Option<u32>) -> bool {
        match &self.call {
            Some(own) => own == call && (self.gpu.is_none() || self.gpu == gpu),
            None => gpu.is_some() && (self.gpu.is_none() || self.gpu == gpu),
        }
    }
}

/// What happens instead of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Behaviour {
    /// The call never returns.
    Hang,
    /// The process dies of `SIGABRT`.
    Abort,
    /// NVML's number for an error: 15 is `GPU_IS_LOST`.
    Return(u32),
    /// This many bytes are written to the error output, and then the call goes on.
    Babble(u32),
}

/// One GPU. `None` is what this GPU does not support.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Gpu {
    /// Its name for life.
    pub uuid: String,
    /// The product.
    pub name: String,
    /// What is printed on it.
    pub serial: Option<String>,
    /// The board it sits on.
    pub board_id: Option<u32>,
    /// The board's part number.
    pub board_part_number: Option<String>,
    /// Where it is: `00000000:18:00.0`.
    pub pci_bus_id: String,
    /// Its firmware.
    pub vbios_version: Option<String>,
    /// All its memory.
    pub memory_total_bytes: u64,
    /// Memory in use.
    pub memory_used_bytes: u64,
    /// `(9, 0)` for Hopper.
    pub compute_capability: Option<(i32, i32)>,
    /// MIG mode now and after the next reset; 1 is on.
    pub mig: Option<(u32, u32)>,
    /// How many instances it is cut into.
    pub mig_instances: u32,
    /// Whether ECC is on.
    pub ecc_enabled: Option<bool>,
    /// Whether persistence mode is on.
    pub persistence: Option<bool>,
    /// The PCIe generation: now and at most.
    pub pcie_generation: Option<(u32, u32)>,
    /// The PCIe width: now and at most.
    pub pcie_width: Option<(u32, u32)>,
    /// In milliwatts.
    pub power_milliwatts: Option<u32>,
    /// In milliwatts: now, and the most that can be set.
    pub power_limit_milliwatts: Option<(u32, u32)>,
    /// Of the chip.
    pub temperature_celsius: Option<u32>,
    /// Degrees at which it shuts down, by `nvmlTemperatureThresholds_t` 0.
    pub shutdown_celsius: Option<u32>,
    /// Degrees at which it slows down, by `nvmlTemperatureThresholds_t` 1.
    pub slowdown_celsius: Option<u32>,
    /// Of the GPU and its memory, in percent.
    pub utilization_percent: Option<(u32, u32)>,
    /// Of the multiprocessors and of the memory.
    pub clocks_mhz: Option<(u32, u32)>,
    /// `P0` is 0.
    pub performance_state: Option<u32>,
    /// NVML's bits.
    pub throttle_reasons: Option<u64>,
    /// Its links: whether each is up.
    pub nvlinks: Vec<bool>,
    /// Where the other end of each link is.
    pub nvlink_remote_bus_id: Option<String>,
    /// Errors of each link, by NVML's number of the counter; what is not here is not supported.
    pub nvlink_errors: BTreeMap<u32, u64>,
    /// Values by field id; what is not here is not supported.
    pub fields: BTreeMap<u32, u64>,
    /// By how much a field's value grows with each time it is asked for, in one process.
    pub grow: BTreeMap<u32, u64>,
    /// The programs that use it.
    pub processes: Vec<Process>,
}

/// A program that uses a GPU.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// What it holds.
    pub memory_bytes: u64,
}

impl Gpu {
    /// An H100 in a machine of eight, idle and well.
    pub fn h100(index: u32) -> Self {
        Self {
            uuid: format!("GPU-57a0d1e5-0000-4000-8000-{index:012}"),
            name: "NVIDIA H100 80GB HBM3".to_owned(),
            serial: Some(format!("165292300{index:04}")),
            board_id: Some(0x1800 + index),
            board_part_number: Some("692-2G520-0200-000".to_owned()),
            pci_bus_id: format!("00000000:{:02X}:00.0", 0x18 + index * 8),
            vbios_version: Some("96.00.89.00.01".to_owned()),
            memory_total_bytes: 85_520_809_984,
            memory_used_bytes: 611_385_344,
            compute_capability: Some((9, 0)),
            mig: Some((0, 0)),
            mig_instances: 0,
            ecc_enabled: Some(true),
            persistence: Some(true),
            pcie_generation: Some((5, 5)),
            pcie_width: Some((16, 16)),
            power_milliwatts: Some(72_450),
            power_limit_milliwatts: Some((700_000, 700_000)),
            temperature_celsius: Some(31 + index),
            shutdown_celsius: Some(92),
            slowdown_celsius: Some(89),
            utilization_percent: Some((0, 0)),
            clocks_mhz: Some((345, 2_619)),
            performance_state: Some(0),
            throttle_reasons: Some(1),
            nvlinks: vec![true; 18],
            nvlink_remote_bus_id: Some("00000000:05:00.0".to_owned()),
            nvlink_errors: (0..4).map(|counter| (counter, 0)).collect(),
            // ECC, memory temperature, links, PCIe replays, row remaps, recovery action.
            fields: [3, 4, 5, 6, 94, 142, 143, 144, 145, 230]
                .into_iter()
                .map(|field| (field, 0))
                .chain([(82, 40), (91, 18)])
                .collect(),
            grow: BTreeMap::new(),
            processes: Vec::new(),
        }
    }
}

/// The shared library, for a program that was built together with it: cargo puts it into `deps`, beside the
/// tests, and (if it was built by name) one floor above.
pub fn library(beside: &Path) -> Option<PathBuf> {
    const NAME: &str = "libargosy_nvml_standin.so";
    let here = beside.parent()?;
    [here.join(NAME), here.join("deps").join(NAME), here.parent()?.join(NAME)]
        .into_iter()
        .find(|path| path.exists())
}
