//! The memory across sweeps: from how the GPUs are to what happened to them.
//!
//! What a newcomer gets wrong: a GPU is known by its uuid. Its number changes when another one vanishes.
//!
//! The memory can be written down and taken up again, so that a restart of the agent neither forgets that
//! there were eight GPUs nor tells again what it has told.

mod edge;

use crate::check::{CheckOutcome, Word};
use crate::gpu::{GpuError, Inventory, Sweep, is_gone};
use crate::signal::{Condition, GpuRef, Signal, SignalKind};
use edge::{GpuMemory, apart};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// How long a driver that worked may be away before that is a fault: an upgrade unloads it, replaces it and
/// starts it again, which takes a minute or two with eight GPUs. Shorter, and every upgrade takes the machine
/// out of service; longer, and work is sent to a machine that cannot do it.
pub const DRIVER_RESTART_MAX: SignedDuration = SignedDuration::from_mins(5);

/// How many GPUs are remembered. No machine has more; one whose GPUs have new names with every sweep (some
/// virtual ones do) must not fill the memory.
const GPUS_MAX: usize = 64;

/// What should be there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Expected {
    /// How many GPUs, by configuration; `None` is as many as were ever seen.
    pub gpus: Option<u32>,
    /// How many GPUs of NVIDIA the PCI bus shows: what tells a machine without GPUs from one without a driver.
    pub on_the_bus: u32,
    /// When the machine was started, if that is known: a driver may take its time then, too.
    pub booted: Option<Timestamp>,
}

/// What one look at the GPUs says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// The word of `boot` and of `nvml`, in this order.
    pub checks: Vec<CheckOutcome>,
    /// What happened since the last look.
    pub signals: Vec<Signal>,
    /// How conditions of GPUs stand that could be looked at.
    pub conditions: Vec<Condition>,
    /// The machine is not what the inventory says: take it anew and register again. No fault.
    pub inventory_changed: bool,
}

/// Watches the GPUs of one machine.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GpuWatch {
    expected: Expected,
    memory: Memory,
}

/// What is remembered between looks, as it can be written down.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Memory {
    /// The most GPUs ever seen.
    count_max: u32,
    /// By uuid.
    gpus: BTreeMap<String, GpuMemory>,
    /// All were there since the machine was started.
    complete_once: bool,
    /// The driver answered, once.
    worked: bool,
    /// The driver did not answer, at the last look.
    failing: bool,
    /// Since when the driver is away; until all GPUs are back.
    away_since: Option<Timestamp>,
    /// How many were missing at the last look.
    missing: u32,
    /// What was wrong with the whole at the last look.
    reason: String,
}

/// What is wrong, for a check.
struct Finding {
    word: Word,
    reason: &'static str,
    message: String,
}

impl GpuWatch {
    /// Begins with what is remembered; `Memory::default()` if nothing is.
    pub fn new(expected: Expected, memory: Memory) -> Self {
        Self { expected, memory }
    }

    /// What is to be written down for the next start.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// The machine was started anew since the memory was written: what was in the driver's hands is over.
    pub fn rebooted(&mut self) {
        self.memory.complete_once = false;
        self.memory.failing = false;
        self.memory.away_since = None;
        self.memory.reason.clear();
        for gpu in self.memory.gpus.values_mut() {
            gpu.rebooted();
        }
    }

    /// How many GPUs should be there; `None` if nobody said and none was seen.
    pub fn expected(&self) -> Option<u32> {
        let learned = Some(self.memory.count_max).filter(|count| *count != 0);
        self.expected.gpus.or(learned)
    }

    /// What the driver advised for this GPU at the last look, by NVML's number.
    pub fn recovery_action(&self, uuid: &str) -> Option<u32> {
        self.memory.gpus.get(uuid)?.recovery_action
    }

    /// Takes in one look at the GPUs. `inventory` is the last one that was taken; an empty one if none was.
    pub fn on(
        &mut self,
        seen: Result<&Sweep, &GpuError>,
        inventory: &Inventory,
        now: Timestamp,
    ) -> Seen {
        match seen {
            Ok(sweep) => self.swept(sweep, inventory, now),
            Err(error) => self.failed(error, now),
        }
    }

    fn failed(&mut self, error: &GpuError, now: Timestamp) -> Seen {
        let absent = matches!(error, GpuError::Absent { .. });
        if absent && self.expected.on_the_bus == 0 && self.expected().unwrap_or(0) == 0 {
            let said = "this machine has no GPUs";
            let checks = ["boot", "nvml"].map(|check| CheckOutcome::healthy(check, said)).to_vec();
            return Seen { checks, ..Seen::default() };
        }
        let finding = match error {
            GpuError::Hung { .. } => {
                Finding { word: Word::Unhealthy, reason: "ProbeHung", message: error.to_string() }
            }
            GpuError::Crashed { .. } => Finding {
                word: Word::Unhealthy,
                reason: "ProbeCrashed",
                message: error.to_string(),
            },
            GpuError::Absent { .. } | GpuError::Driver { .. } => self.driver_away(error, now),
        };
        let mut signals = Vec::new();
        let is_news = self.memory.reason != finding.reason;
        if is_news && finding.word == Word::Unhealthy {
            let signal = Signal::once(SignalKind::DriverError, now, &finding.message);
            signals.push(signal.with("reason", finding.reason));
        }
        finding.reason.clone_into(&mut self.memory.reason);
        let mut nvml = CheckOutcome::fault("nvml", finding.word, finding.reason, &finding.message);
        nvml.details = error_details(error);
        let boot = self.boot(Some(&finding));
        Seen { checks: vec![boot, nvml], signals, ..Seen::default() }
    }

    fn driver_away(&mut self, error: &GpuError, now: Timestamp) -> Finding {
        // One that never worked is not coming back from anything, unless the machine has just been started.
        let since = match (self.memory.away_since, self.expected.booted) {
            (Some(since), _) => Some(since),
            (None, _) if self.memory.worked => Some(now),
            (None, booted) => booted,
        };
        self.memory.away_since = since;
        self.memory.failing = true;
        match since {
            Some(since) if apart(now, since) < DRIVER_RESTART_MAX => Finding {
                word: Word::Degraded,
                reason: "DriverRestarting",
                message: format!("the driver is away, perhaps for an upgrade: {error}"),
            },
            Some(_) | None => Finding {
                word: Word::Unhealthy,
                reason: match error {
                    GpuError::Absent { .. } => "DriverAbsent",
                    GpuError::Driver { .. } | GpuError::Hung { .. } | GpuError::Crashed { .. } => {
                        "DriverError"
                    }
                },
                message: error.to_string(),
            },
        }
    }

    fn swept(&mut self, sweep: &Sweep, inventory: &Inventory, now: Timestamp) -> Seen {
        let more = self.memory.count_max < sweep.count;
        self.memory.count_max = self.memory.count_max.max(sweep.count);
        let expected = self.expected().unwrap_or(0);
        let mut findings = findings(sweep, expected);
        self.memory.worked = true;
        // It may be another driver than before.
        let back = std::mem::take(&mut self.memory.failing);
        // A driver that has just come back finds its GPUs one by one.
        self.memory.away_since = self
            .memory
            .away_since
            .filter(|since| !findings.is_empty() && apart(now, *since) < DRIVER_RESTART_MAX);
        let settling = self.memory.away_since.is_some();

        let (mut signals, mut conditions) = (Vec::new(), Vec::new());
        if !settling {
            signals.extend(self.lost(sweep, inventory, expected, now));
        }
        for reading in &sweep.gpus {
            let identity = inventory.gpus.iter().find(|gpu| gpu.uuid == reading.uuid);
            let memory = self.memory.gpus.entry(reading.uuid.clone()).or_default();
            signals.extend(memory.on(reading, identity, now));
            conditions.extend(memory.conditions(&reading.uuid));
        }
        self.forget(sweep);

        if settling && let Some(finding) = findings.first_mut() {
            finding.word = Word::Degraded;
            finding.reason = "DriverRestarting";
        }
        self.memory.complete_once |= findings.is_empty();
        self.memory.reason = findings.first().map_or("", |finding| finding.reason).to_owned();
        let boot = self.boot(findings.first());
        let nvml = nvml_check(sweep, expected, &findings);
        let changed = more || back || differs(sweep, inventory);
        Seen { checks: vec![boot, nvml], signals, conditions, inventory_changed: changed }
    }

    /// Whether all that should be there was there since the start of the machine. Once is enough: what is
    /// lost later is the word of `nvml`.
    fn boot(&self, finding: Option<&Finding>) -> CheckOutcome {
        match finding {
            Some(finding) if !self.memory.complete_once => {
                CheckOutcome::fault("boot", finding.word, finding.reason, &finding.message)
            }
            Some(_) | None => {
                let count = self.expected().unwrap_or(0);
                CheckOutcome::healthy("boot", format!("all {count} GPUs were there at the start"))
            }
        }
    }

    /// GPUs that are gone since the last look, or that cannot be read any more.
    fn lost(
        &mut self,
        sweep: &Sweep,
        inventory: &Inventory,
        expected: u32,
        now: Timestamp,
    ) -> Vec<Signal> {
        let mut signals = Vec::new();
        let mut unreadable = BTreeSet::new();
        for (index, said) in &sweep.unreadable {
            let known = self.known(*index, inventory);
            let key = known.as_ref().map_or_else(|| format!("#{index}"), |gpu| gpu.uuid.clone());
            unreadable.insert(key.clone());
            let (_, reason) = unreadable_reason(said);
            let memory = self.memory.gpus.entry(key).or_default();
            if memory.gone.as_deref() != Some(reason) {
                memory.gone = Some(reason.to_owned());
                let message = format!("GPU {index} cannot be read: {said}");
                let signal = Signal::once(SignalKind::DriverError, now, message);
                let signal = known.into_iter().fold(signal, Signal::on);
                signals.push(signal.with("reason", reason));
            }
        }
        let missing = expected.saturating_sub(sweep.count);
        let message = format!("the driver counts {} GPUs of {expected}", sweep.count);
        let counted = |signal: Signal| {
            signal
                .with("reason", "GpuMissing")
                .with("gpus_seen", sweep.count)
                .with("gpus_expected", expected)
        };
        let mut named = false;
        if missing != 0 {
            let present: BTreeSet<&str> = sweep.gpus.iter().map(|gpu| gpu.uuid.as_str()).collect();
            for (uuid, memory) in &mut self.memory.gpus {
                let here = present.contains(uuid.as_str()) || unreadable.contains(uuid);
                if here || memory.gone.is_some() {
                    continue;
                }
                memory.gone = Some("GpuMissing".to_owned());
                named = true;
                let signal = Signal::once(SignalKind::DriverError, now, &message);
                signals.push(counted(signal.on(memory.gpu_ref(uuid))));
            }
        }
        if self.memory.missing < missing && !named {
            signals.push(counted(Signal::once(SignalKind::DriverError, now, message)));
        }
        self.memory.missing = missing;
        signals
    }

    /// Which GPU had this number when it could still be read.
    fn known(&self, index: u32, inventory: &Inventory) -> Option<GpuRef> {
        let listed = inventory.gpus.iter().find(|gpu| gpu.index == index).map(|gpu| GpuRef {
            index,
            uuid: gpu.uuid.clone(),
            serial: gpu.serial.clone().unwrap_or_default(),
        });
        listed.or_else(|| {
            let mut remembered = self.memory.gpus.iter().filter(|(uuid, _)| !uuid.starts_with('#'));
            let (uuid, memory) = remembered.find(|(_, memory)| memory.index == index)?;
            Some(memory.gpu_ref(uuid))
        })
    }

    fn forget(&mut self, sweep: &Sweep) {
        let present: BTreeSet<&str> = sweep.gpus.iter().map(|gpu| gpu.uuid.as_str()).collect();
        // Those without a name are kept for as long as they cannot be read.
        self.memory.gpus.retain(|uuid, _| {
            let number = uuid.strip_prefix('#').and_then(|index| index.parse().ok());
            number.is_none_or(|index: u32| sweep.unreadable.contains_key(&index))
        });
        if GPUS_MAX < self.memory.gpus.len() {
            self.memory.gpus.retain(|uuid, _| present.contains(uuid.as_str()));
        }
    }
}

/// What is wrong with a sweep, the worst first.
fn findings(sweep: &Sweep, expected: u32) -> Vec<Finding> {
    let mut findings: Vec<Finding> = sweep
        .unreadable
        .iter()
        .map(|(index, said)| {
            let (word, reason) = unreadable_reason(said);
            Finding { word, reason, message: format!("GPU {index} cannot be read: {said}") }
        })
        .collect();
    if sweep.count < expected {
        findings.push(Finding {
            word: Word::Unhealthy,
            reason: "GpuMissing",
            message: format!("the driver counts {} GPUs of {expected}", sweep.count),
        });
    }
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.word));
    findings
}

/// How bad it is that a GPU cannot be read, by what the driver said.
fn unreadable_reason(said: &str) -> (Word, &'static str) {
    match said {
        said if is_gone(said) => (Word::Unhealthy, "GpuLost"),
        // That we may not ask, or that our own probe fell over, is no proof against the GPU.
        "NO_PERMISSION" => (Word::Degraded, "GpuUnreadable"),
        said if said.starts_with("ProbeCrashed") => (Word::Degraded, "ProbeCrashed"),
        _ => (Word::Unhealthy, "GpuUnreadable"),
    }
}

fn nvml_check(sweep: &Sweep, expected: u32, findings: &[Finding]) -> CheckOutcome {
    let mut outcome = match findings.first() {
        None => CheckOutcome::healthy("nvml", format!("all {} GPUs answer", sweep.count)),
        Some(worst) => {
            let all: Vec<&str> = findings.iter().map(|finding| finding.message.as_str()).collect();
            CheckOutcome::fault("nvml", worst.word, worst.reason, all.join("; "))
        }
    };
    outcome.details.insert("gpus_seen".to_owned(), sweep.count.to_string());
    outcome.details.insert("gpus_expected".to_owned(), expected.to_string());
    outcome
}

fn error_details(error: &GpuError) -> BTreeMap<String, String> {
    let mut details = BTreeMap::new();
    let mut add = |name: &str, value: String| details.insert(name.to_owned(), value);
    match error {
        GpuError::Absent { .. } => {}
        GpuError::Driver { code, .. } => {
            add("code", code.clone());
        }
        GpuError::Hung { call, gpu, .. } | GpuError::Crashed { call, gpu, .. } => {
            add("call", call.clone());
            if let Some(gpu) = gpu {
                add("gpu", gpu.to_string());
            }
        }
    }
    details
}

/// Whether there are GPUs that the inventory does not have, or that are cut differently now. One that is
/// gone is a fault and not a difference: the machine is still meant to have it.
fn differs(sweep: &Sweep, inventory: &Inventory) -> bool {
    sweep.gpus.iter().any(|reading| {
        inventory
            .gpus
            .iter()
            .find(|gpu| gpu.uuid == reading.uuid)
            .is_none_or(|gpu| reading.mig.is_some() && gpu.mig != reading.mig)
    })
}

#[cfg(test)]
mod tests;
