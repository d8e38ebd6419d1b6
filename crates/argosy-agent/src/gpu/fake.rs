//! GPUs that are made up, with faults on request: for tests and for machines that have none.
//!
//! `Fake` is pure: what it says follows from its name, the time and what was injected, so that the simulator
//! gets the same in every run. `SharedFake` is the same behind a lock, for the agent and whoever injects.

pub mod injection;
mod model;

use crate::gpu::{
    Counts, Gpu, GpuError, GpuIdentity, Inventory, Mig, Nvlink, Process, Reading, RowRemaps, Sweep,
};
use argosy_core::kernel::OFF_THE_BUS;
use argosy_core::recovery::RecoveryAction;
use argosy_core::xid::{Catalogue, Class};
use async_trait::async_trait;
use injection::Injection;
use jiff::Timestamp;
use model::Model;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc;

/// The most GPUs of one made-up machine; real ones have sixteen at most.
pub const GPUS_MAX: u32 = 64;

/// The most programs on one made-up GPU.
const PROCESSES_MAX: usize = 64;

/// How many lines of a made-up kernel wait for their reader. One that injects faster than anybody reads is
/// told so.
pub const LINES_MAX: usize = 1_024;

/// A made-up machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Fake {
    model: &'static Model,
    node_id: String,
    gpus: Vec<State>,
    hang: Option<Option<u32>>,
    driver_error: Option<String>,
}

/// What was done to one GPU.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct State {
    lost: bool,
    missing: bool,
    corrected: u64,
    uncorrected: u64,
    remaps: RowRemaps,
    celsius: Option<u32>,
    throttle: Option<String>,
    links_down: u32,
    link_errors: u64,
    replays: u32,
    width: Option<u32>,
    recovery: u32,
    mig_instances: u32,
    processes: Vec<Process>,
}

/// Why a text names no made-up machine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    /// The count makes no sense.
    #[error("`{text}` is no number of GPUs from 1 to {GPUS_MAX}; write for example 8xH100")]
    Count {
        /// What was given.
        text: String,
    },
    /// Nobody knows this model.
    #[error("no GPU is called `{text}`; there are: {}", model::names())]
    Model {
        /// What was given.
        text: String,
    },
}

/// Why an injection does not fit this machine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InjectError {
    /// There is no such GPU.
    #[error("there is no GPU {index}: this machine has {count}, from 0 on")]
    NoSuchGpu {
        /// The number that was given.
        index: u32,
        /// How many there are.
        count: u32,
    },
    /// Too many lines wait for their reader.
    #[error("{LINES_MAX} lines of the kernel wait to be read; inject more slowly")]
    TooFast,
    /// Too many programs.
    #[error("GPU {index} has {PROCESSES_MAX} programs already")]
    TooManyProcesses {
        /// The GPU.
        index: u32,
    },
}

impl Fake {
    /// Reads `8xH100`, or `H100` for one. The names of the GPUs follow from `node_id`.
    pub fn parse(spec: &str, node_id: &str) -> Result<Self, SpecError> {
        let (count, name) = spec.split_once(['x', 'X']).unwrap_or(("1", spec));
        let count: u32 = count
            .parse()
            .ok()
            .filter(|count| (1..=GPUS_MAX).contains(count))
            .ok_or_else(|| SpecError::Count { text: count.to_owned() })?;
        let model = model::find(name).ok_or_else(|| SpecError::Model { text: name.to_owned() })?;
        Ok(Self {
            model,
            node_id: node_id.to_owned(),
            gpus: (0..count).map(|_| State::default()).collect(),
            hang: None,
            driver_error: None,
        })
    }

    /// What is there.
    pub fn inventory(&self) -> Result<Inventory, GpuError> {
        self.driver("inventory")?;
        let mut inventory = Inventory {
            driver_version: Some("580.159.04".to_owned()),
            cuda_version: Some("13.0".to_owned()),
            nvml_version: Some("13.580.159.04".to_owned()),
            ..Inventory::default()
        };
        for (index, slot, state) in self.counted() {
            if state.lost {
                inventory.unreadable.insert(index, "GPU_IS_LOST".to_owned());
            } else {
                inventory.gpus.push(self.identity(index, slot, state));
            }
        }
        Ok(inventory)
    }

    /// How it is at this time.
    pub fn sweep(&self, now: Timestamp) -> Result<Sweep, GpuError> {
        self.driver("sweep")?;
        let mut sweep = Sweep { took: Duration::from_millis(5), ..Sweep::default() };
        for (index, slot, state) in self.counted() {
            sweep.count += 1;
            if state.lost {
                sweep.unreadable.insert(index, "GPU_IS_LOST".to_owned());
            } else {
                sweep.gpus.push(self.reading(index, slot, state, now));
            }
        }
        Ok(sweep)
    }

    /// Makes it happen; what comes back is what the kernel writes about it.
    ///
    /// GPUs are numbered as they were at first: a missing one keeps its number here, so that it can be healed.
    pub fn inject(&mut self, injection: &Injection) -> Result<Vec<String>, InjectError> {
        let count = u32::try_from(self.gpus.len()).unwrap_or(u32::MAX);
        if let Some(index) = injection.gpu()
            && count <= index
        {
            return Err(InjectError::NoSuchGpu { index, count });
        }
        match injection {
            Injection::Line { text } => return Ok(vec![text.clone()]),
            Injection::Hang { gpu } => self.hang = Some(*gpu),
            Injection::DriverError { code } => self.driver_error = Some(code.clone()),
            Injection::Heal { gpu: None } => {
                self.hang = None;
                self.driver_error = None;
                self.gpus.iter_mut().for_each(State::heal);
            }
            Injection::Heal { gpu: Some(gpu) } => {
                self.hang = self.hang.filter(|at| *at != Some(*gpu));
                self.with(*gpu, State::heal);
            }
            Injection::Xid { gpu, code } => {
                self.with(*gpu, |state| state.xid(*code));
                return Ok(vec![self.xid_line(*gpu, *code)]);
            }
            Injection::Process { gpu, pid, name } => {
                let process =
                    Process { pid: *pid, name: name.clone(), memory_bytes: Some(1 << 30) };
                let full = self.with(*gpu, |state| state.begin(process)) == Some(false);
                if full {
                    return Err(InjectError::TooManyProcesses { index: *gpu });
                }
            }
            Injection::Lost { gpu } => {
                self.with(*gpu, |state| state.lost = true);
            }
            Injection::Missing { gpu } => {
                self.with(*gpu, |state| state.missing = true);
            }
            Injection::EccCorrected { gpu, count } => {
                self.with(*gpu, |state| state.corrected = state.corrected.saturating_add(*count));
            }
            Injection::EccUncorrected { gpu, count } => {
                let add = |state: &mut State| {
                    state.uncorrected = state.uncorrected.saturating_add(*count);
                };
                self.with(*gpu, add);
            }
            Injection::RowRemapPending { gpu } => {
                self.with(*gpu, |state| state.remaps.pending = true);
            }
            Injection::RowRemapFailed { gpu } => {
                self.with(*gpu, |state| state.remaps.failed = true);
            }
            Injection::Temperature { gpu, celsius } => {
                self.with(*gpu, |state| state.celsius = Some(*celsius));
            }
            Injection::Throttle { gpu, reason } => {
                self.with(*gpu, |state| state.throttle = Some(reason.clone()));
            }
            Injection::NvlinkDown { gpu, links } => {
                let links = (*links).min(self.model.links);
                self.with(*gpu, |state| state.links_down = links);
            }
            Injection::NvlinkErrors { gpu, count } => {
                let add = |state: &mut State| {
                    state.link_errors = state.link_errors.saturating_add(*count);
                };
                self.with(*gpu, add);
            }
            Injection::PcieReplays { gpu, count } => {
                self.with(*gpu, |state| state.replays = state.replays.saturating_add(*count));
            }
            Injection::PcieWidth { gpu, width } => {
                self.with(*gpu, |state| state.width = Some(*width));
            }
            Injection::Recovery { gpu, action } => {
                self.with(*gpu, |state| state.recovery = *action);
            }
            Injection::Mig { gpu, instances } => {
                self.with(*gpu, |state| state.mig_instances = *instances);
            }
        }
        Ok(Vec::new())
    }

    /// Every program on every GPU ends.
    pub fn end_processes(&mut self) {
        self.gpus.iter_mut().for_each(|state| state.processes.clear());
    }

    fn with<T>(&mut self, gpu: u32, change: impl FnOnce(&mut State) -> T) -> Option<T> {
        self.gpus.get_mut(usize::try_from(gpu).ok()?).map(change)
    }

    fn driver(&self, call: &str) -> Result<(), GpuError> {
        if let Some(gpu) = self.hang {
            let call = if gpu.is_some() { call } else { "start" }.to_owned();
            return Err(GpuError::Hung { call, after: Duration::from_secs(10), gpu });
        }
        match &self.driver_error {
            Some(code) => Err(GpuError::Driver {
                code: code.clone(),
                message: "this fault was injected".to_owned(),
            }),
            None => Ok(()),
        }
    }

    /// Those that the driver counts: their number now, the slot they sit in, and how they are.
    fn counted(&self) -> impl Iterator<Item = (u32, u32, &State)> {
        let present = (0_u32..).zip(&self.gpus).filter(|(_, state)| !state.missing);
        (0_u32..).zip(present).map(|(index, (slot, state))| (index, slot, state))
    }

    fn identity(&self, index: u32, slot: u32, state: &State) -> GpuIdentity {
        let Model { product, memory_bytes, part_number, .. } = self.model;
        let links = (0..self.model.links).map(|link| Nvlink {
            link,
            active: state.links_down <= link,
            remote: Some("Switch".to_owned()),
            remote_pci_bus_id: Some(format!("00000000:{:02X}:00.0", 5 + link % 4)),
        });
        GpuIdentity {
            index,
            uuid: self.uuid(slot),
            name: (*product).to_owned(),
            serial: Some(format!("165{:010}", self.hash("serial", slot) % 10_000_000_000)),
            board_id: Some(slot),
            board_part_number: Some((*part_number).to_owned()),
            pci_bus_id: format!("00000000:{:02X}:00.0", bus(slot)),
            vbios_version: Some(self.model.vbios_version.to_owned()),
            memory_total_bytes: Some(*memory_bytes),
            compute_capability: Some(self.model.compute_capability.to_owned()),
            mig: state.mig(self.model),
            ecc_enabled: Some(true),
            persistence: Some(true),
            pcie_generation_max: Some(self.model.pcie_generation),
            pcie_width_max: Some(16),
            power_limit_max_watts: Some(f64::from(self.model.power_watts)),
            slowdown_celsius: Some(self.model.slowdown_celsius),
            shutdown_celsius: Some(self.model.slowdown_celsius + 3),
            nvlinks: links.collect(),
        }
    }

    fn reading(&self, index: u32, slot: u32, state: &State, now: Timestamp) -> Reading {
        let model = self.model;
        let is_busy = !state.processes.is_empty();
        // Every GPU has its own wave, a few minutes long.
        let phase = self.hash("wave", slot) % 240;
        let second = now.as_second().unsigned_abs().wrapping_add(phase) % 240;
        let wave = u32::try_from(second.abs_diff(120)).unwrap_or(0);
        let percent = if is_busy { 85 + wave / 9 } else { 0 };
        let celsius = if is_busy { 58 + wave / 10 } else { 30 + wave / 20 };
        let watts = if is_busy { model.power_watts * percent / 110 } else { 70 + wave / 12 };
        let used: u64 = state.processes.iter().filter_map(|process| process.memory_bytes).sum();
        let used = used.saturating_add(600 << 20).min(model.memory_bytes);
        let idle = (!is_busy).then(|| "GpuIdle".to_owned());
        let errors = ["crc_data", "crc_flit", "recovery", "replay"]
            .map(|kind| (kind.to_owned(), if kind == "replay" { state.link_errors } else { 0 }));
        let counts = |count: u64| Some(Counts { volatile: Some(count), aggregate: Some(count) });
        Reading {
            index,
            uuid: self.uuid(slot),
            utilization_percent: Some(percent),
            memory_utilization_percent: Some(percent / 2),
            memory_used_bytes: Some(used),
            memory_free_bytes: Some(model.memory_bytes - used),
            temperature_celsius: Some(state.celsius.unwrap_or(celsius)),
            memory_temperature_celsius: Some(celsius + 8),
            power_watts: Some(f64::from(watts)),
            power_limit_watts: Some(f64::from(model.power_watts)),
            sm_clock_mhz: Some(if is_busy { model.sm_clock_mhz } else { 345 }),
            memory_clock_mhz: Some(model.memory_clock_mhz),
            performance_state: Some(0),
            throttle_reasons: state.throttle.clone().into_iter().chain(idle).collect(),
            ecc_corrected: counts(state.corrected),
            ecc_uncorrected: counts(state.uncorrected),
            row_remaps: Some(state.remaps),
            retired_pages: None,
            nvlinks_down: (model.links != 0).then_some(state.links_down),
            nvlink_errors: if model.links == 0 { BTreeMap::new() } else { errors.into() },
            pcie_replays: Some(state.replays),
            pcie_generation: Some(model.pcie_generation),
            pcie_width: Some(state.width.unwrap_or(16)),
            recovery_action: Some(state.recovery),
            processes: Some(state.processes.clone()),
            mig: state.mig(model),
        }
    }

    fn xid_line(&self, slot: u32, code: u32) -> String {
        let text = match code {
            OFF_THE_BUS => "GPU has fallen off the bus.".to_owned(),
            _ => Catalogue::builtin().xid(code).map_or_else(
                || "injected".to_owned(),
                |row| row.name.to_ascii_lowercase().replace('_', " "),
            ),
        };
        let bus = bus(slot);
        format!(
            "NVRM: Xid (PCI:0000:{bus:02x}:00): {code}, pid='<unknown>', name=<unknown>, {text}"
        )
    }

    fn uuid(&self, slot: u32) -> String {
        let (high, low) = (self.hash("uuid-high", slot), self.hash("uuid-low", slot));
        format!(
            "GPU-{:08x}-{:04x}-4{:03x}-8{:03x}-{:012x}",
            high >> 32,
            (high >> 16) & 0xffff,
            high & 0xfff,
            low >> 52,
            low & 0xffff_ffff_ffff
        )
    }

    /// FNV-1a: `DefaultHasher` may change between Rust releases, and names must not.
    fn hash(&self, what: &str, slot: u32) -> u64 {
        let seed = self.node_id.bytes().chain(what.bytes()).chain(slot.to_le_bytes());
        seed.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        })
    }
}

/// The bus of a slot: distinct for all of them.
fn bus(slot: u32) -> u32 {
    0x18 + slot * 3
}

impl State {
    fn mig(&self, model: &Model) -> Option<Mig> {
        let enabled = self.mig_instances != 0;
        model.mig.then_some(Mig { enabled, pending: enabled, instances: self.mig_instances })
    }

    fn begin(&mut self, process: Process) -> bool {
        let has_room = self.processes.len() < PROCESSES_MAX;
        if has_room {
            self.processes.push(process);
        }
        has_room
    }

    /// What a fault with this code does besides its line in the log.
    fn xid(&mut self, code: u32) {
        match code {
            OFF_THE_BUS => self.lost = true,
            48 | 94 | 95 => self.uncorrected = self.uncorrected.saturating_add(1),
            63 => self.remaps.pending = true,
            64 => self.remaps.failed = true,
            74 => self.link_errors = self.link_errors.saturating_add(1),
            92 => self.corrected = self.corrected.saturating_add(200),
            _ => {}
        }
        match Catalogue::builtin().xid(code).map(|row| row.class) {
            Some(Class::GpuReset) => self.recovery = RecoveryAction::GpuReset.number(),
            Some(Class::Node) => self.recovery = RecoveryAction::NodeReboot.number(),
            Some(_) | None => {}
        }
    }

    /// As after a reset: what is wrong ends, what was counted over its life stays.
    fn heal(&mut self) {
        let Self { corrected, uncorrected, remaps, link_errors, replays, mig_instances, .. } =
            std::mem::take(self);
        let remaps = RowRemaps { pending: false, failed: false, ..remaps };
        *self = Self {
            corrected,
            uncorrected,
            remaps,
            link_errors,
            replays,
            mig_instances,
            ..Self::default()
        };
    }
}

/// A made-up machine that several hold: the agent, which looks, and whoever injects.
#[derive(Clone)]
pub struct SharedFake {
    fake: Arc<Mutex<Fake>>,
    clock: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    lines: mpsc::Sender<String>,
}

impl SharedFake {
    /// The machine, and the lines that its kernel will write.
    pub fn new(
        fake: Fake,
        clock: impl Fn() -> Timestamp + Send + Sync + 'static,
    ) -> (Self, mpsc::Receiver<String>) {
        let (lines, read) = mpsc::channel(LINES_MAX);
        (Self { fake: Arc::new(Mutex::new(fake)), clock: Arc::new(clock), lines }, read)
    }

    /// Makes it happen.
    pub fn inject(&self, injection: &Injection) -> Result<(), InjectError> {
        for line in self.lock().inject(injection)? {
            match self.lines.try_send(line) {
                // Nobody reads the log here: then it is not read.
                Ok(()) | Err(mpsc::error::TrySendError::Closed(_)) => {}
                Err(mpsc::error::TrySendError::Full(_)) => return Err(InjectError::TooFast),
            }
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Fake> {
        // Nothing under the lock can leave it half changed.
        self.fake.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for SharedFake {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SharedFake").field("fake", &self.fake).finish_non_exhaustive()
    }
}

#[async_trait]
impl Gpu for SharedFake {
    async fn inventory(&mut self) -> Result<Inventory, GpuError> {
        self.lock().inventory()
    }

    async fn sweep(&mut self) -> Result<Sweep, GpuError> {
        let now = (self.clock)();
        self.lock().sweep(now)
    }
}

#[cfg(test)]
mod tests;
