//! What a scan found, as data: the shape of `scan -o json`, which scripts rely on. Members are added, never
//! renamed.

use crate::check::{CheckOutcome, Word};
use crate::gpu::{GpuError, GpuIdentity, Inventory, Reading, Sweep};
use crate::host::{HostError, HostSample};
use crate::log::{Line, Problem, Source};
use crate::signal::{Signal, SignalKind};
use crate::watch::gpu::{Expected, GpuWatch, Memory};
use crate::watch::host::HostWatch;
use crate::watch::log::LogWatch;
use argosy_core::health::Severity;
use argosy_core::recovery::RecoveryAction;
use argosy_core::xid::{Catalogue, Class, Row};
use jiff::Timestamp;
use serde::Serialize;
use std::collections::BTreeMap;

/// The most kinds of signals that are told apart. Beyond it a log is full of garbage.
const SIGNALS_MAX: usize = 256;

/// The whole.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The shape of this document; it changes when a member changes its meaning.
    pub schema: u32,
    /// The word about this machine.
    pub verdict: Word,
    /// Why, the worst first; empty if all is well.
    pub reasons: Vec<Reason>,
    /// The driver's versions; members are missing if it does not say.
    pub driver: Driver,
    /// The GPUs, by index.
    pub gpus: Vec<GpuFound>,
    /// The machine around them; `null` if it did not answer.
    pub host: Option<HostSample>,
    /// What happened since the machine was started, repeats counted together.
    pub signals: Vec<SignalFound>,
    /// The word of each check.
    pub checks: Vec<CheckOutcome>,
    /// What could not be seen, and why.
    pub unseen: Vec<Unseen>,
    /// When.
    pub at: Timestamp,
    /// How long it took.
    pub took_ms: u64,
    /// Which agent looked.
    pub agent_version: &'static str,
}

/// The driver.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Driver {
    /// Its version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The newest CUDA that it serves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cuda: Option<String>,
    /// NVML's version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nvml: Option<String>,
    /// Why nothing can be said about the GPUs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Why a machine is not healthy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Reason {
    /// How bad it is.
    pub word: Word,
    /// A word for programs: `Xid79`, `ProbeHung`, `RowRemapFailed`.
    pub code: String,
    /// The GPU's number, if it is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu: Option<u32>,
    /// Where it is on the PCI bus, if the kernel said so: all there is of a GPU that is gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pci: Option<String>,
    /// A sentence.
    pub message: String,
    /// What helps; empty if the message says it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub advice: String,
    /// How often it was seen.
    pub count: u32,
    /// When it was seen last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<Timestamp>,
}

/// One GPU: what it is and how it is.
#[derive(Clone, Debug, Serialize)]
pub struct GpuFound {
    /// Its number.
    pub index: u32,
    /// What it is; `null` if it does not answer.
    pub identity: Option<GpuIdentity>,
    /// How it is; `null` if it does not answer.
    pub reading: Option<Reading>,
    /// What the driver said instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unreadable: Option<String>,
}

/// A signal, explained if it has a code.
#[derive(Clone, Debug, Serialize)]
pub struct SignalFound {
    /// The signal.
    #[serde(flatten)]
    pub signal: Signal,
    /// What the catalogue says about its code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explained: Option<Explained>,
}

/// A row of the catalogue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Explained {
    /// The code.
    pub code: u32,
    /// The driver's name for it.
    pub name: String,
    /// What kind of fault.
    pub class: &'static str,
    /// What is recommended.
    pub action: &'static str,
    /// A sentence.
    pub meaning: String,
}

/// Something that could not be seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Unseen {
    /// What.
    pub what: String,
    /// Why, and the way out.
    pub why: String,
}

/// What was looked at.
pub(crate) struct Looked {
    pub(crate) at: Timestamp,
    pub(crate) took_ms: u64,
    /// `None` if there are no GPUs by choice.
    pub(crate) gpus: Option<GpusLooked>,
    pub(crate) host: Result<HostSample, HostError>,
    pub(crate) lines: Vec<Line>,
    /// More lines were there than were read.
    pub(crate) lines_cut: bool,
    pub(crate) sources: Vec<Source>,
    pub(crate) problems: Vec<Problem>,
    pub(crate) expected_gpus: Option<u32>,
    pub(crate) on_the_bus: u32,
}

/// What the GPUs said: an inventory, and sweeps some time apart.
pub(crate) struct GpusLooked {
    pub(crate) inventory: Result<Inventory, GpuError>,
    pub(crate) sweeps: Vec<(Timestamp, Result<Sweep, GpuError>)>,
}

impl Report {
    /// Judges what was looked at, by the same rules as a running agent and the server's built-in policy.
    pub(crate) fn of(looked: Looked) -> Self {
        let empty = Inventory::default();
        let inventory = match &looked.gpus {
            Some(GpusLooked { inventory: Ok(inventory), .. }) => inventory,
            Some(GpusLooked { inventory: Err(_), .. }) | None => &empty,
        };
        let mut checks = Vec::new();
        let mut signals = Signals::default();
        let (sweep, gpu_error) = watch_gpus(&looked, inventory, &mut checks, &mut signals);
        watch_logs(&looked, inventory, &mut checks, &mut signals);
        watch_host(&looked, inventory, &mut checks, &mut signals);

        let recovery: BTreeMap<u32, u32> = sweep
            .iter()
            .flat_map(|sweep| &sweep.gpus)
            .filter_map(|gpu| Some((gpu.index, gpu.recovery_action?)))
            .collect();
        let signals: Vec<SignalFound> = signals.into_vec();
        let mut reasons: Vec<Reason> = checks.iter().filter_map(check_reason).collect();
        // `boot` and `nvml` tell the same story when a GPU was never there.
        reasons.dedup_by(|second, first| second.message == first.message);
        reasons.extend(signals.iter().filter_map(|found| signal_reason(found, &recovery)));
        reasons.sort_by_key(|reason| std::cmp::Reverse(reason.word));
        Report {
            schema: 1,
            verdict: reasons.iter().map(|reason| reason.word).max().unwrap_or(Word::Healthy),
            reasons,
            driver: Driver {
                version: inventory.driver_version.clone(),
                cuda: inventory.cuda_version.clone(),
                nvml: inventory.nvml_version.clone(),
                error: gpu_error.map(ToString::to_string),
            },
            gpus: gpus(inventory, sweep),
            unseen: unseen(&looked, sweep, gpu_error),
            host: looked.host.ok(),
            signals,
            checks,
            at: looked.at,
            took_ms: looked.took_ms,
            agent_version: env!("CARGO_PKG_VERSION"),
        }
    }
}

fn watch_gpus<'a>(
    looked: &'a Looked,
    inventory: &Inventory,
    checks: &mut Vec<CheckOutcome>,
    signals: &mut Signals,
) -> (Option<&'a Sweep>, Option<&'a GpuError>) {
    let Some(gpus) = &looked.gpus else {
        checks.push(CheckOutcome::healthy("nvml", "GPUs were not asked for"));
        return (None, None);
    };
    let booted = looked.host.as_ref().ok().and_then(|host| host.booted_at);
    let expected = Expected { gpus: looked.expected_gpus, on_the_bus: looked.on_the_bus, booted };
    let mut watch = GpuWatch::new(expected, Memory::default());
    let mut last = (None, None);
    let failed = gpus.inventory.as_ref().err().map(|error| (looked.at, Err(error)));
    let sweeps = gpus.sweeps.iter().map(|(at, sweep)| (*at, sweep.as_ref()));
    for (at, sweep) in failed.into_iter().chain(sweeps) {
        let seen = watch.on(sweep, inventory, at);
        *checks = seen.checks;
        seen.signals.into_iter().for_each(|signal| signals.add(signal));
        last = match sweep {
            Ok(sweep) => (Some(sweep), None),
            Err(error) => (last.0, Some(error)),
        };
    }
    last
}

fn watch_logs(
    looked: &Looked,
    inventory: &Inventory,
    checks: &mut Vec<CheckOutcome>,
    signals: &mut Signals,
) {
    let mut watch = LogWatch::default();
    watch.learn(inventory);
    for line in &looked.lines {
        watch.read(line).into_iter().for_each(|signal| signals.add(signal));
    }
    checks.push(watch.outcome(&looked.sources, &looked.problems));
}

fn watch_host(
    looked: &Looked,
    inventory: &Inventory,
    checks: &mut Vec<CheckOutcome>,
    signals: &mut Signals,
) {
    let mut watch = HostWatch::default();
    watch.learn(inventory);
    let check = match &looked.host {
        Ok(sample) => {
            let (check, seen) = watch.on(sample);
            seen.into_iter().for_each(|signal| signals.add(signal));
            check
        }
        Err(error) => watch.failed(error),
    };
    checks.push(check);
}

fn gpus(inventory: &Inventory, sweep: Option<&Sweep>) -> Vec<GpuFound> {
    let mut found: BTreeMap<u32, GpuFound> = BTreeMap::new();
    let at = |index: u32| -> GpuFound {
        GpuFound { index, identity: None, reading: None, unreadable: None }
    };
    for gpu in &inventory.gpus {
        found.entry(gpu.index).or_insert_with(|| at(gpu.index)).identity = Some(gpu.clone());
    }
    for reading in sweep.iter().flat_map(|sweep| &sweep.gpus) {
        let gpu = found.entry(reading.index).or_insert_with(|| at(reading.index));
        gpu.reading = Some(reading.clone());
    }
    let swept = sweep.map(|sweep| &sweep.unreadable);
    for (index, said) in inventory.unreadable.iter().chain(swept.into_iter().flatten()) {
        let gpu = found.entry(*index).or_insert_with(|| at(*index));
        if gpu.reading.is_none() {
            gpu.unreadable = Some(said.clone());
        }
    }
    found.into_values().collect()
}

fn unseen(looked: &Looked, sweep: Option<&Sweep>, error: Option<&GpuError>) -> Vec<Unseen> {
    let say = |what: &str, why: String| Unseen { what: what.to_owned(), why };
    let mut unseen = Vec::new();
    match (&looked.gpus, error, sweep) {
        (None, _, _) => unseen.push(say("GPUs", "not asked for: --gpu none".to_owned())),
        (Some(_), Some(error), _) if matches!(error, GpuError::Absent { .. }) => {
            let why = if looked.on_the_bus == 0 {
                format!("none on the PCI bus, and {error}")
            } else {
                format!("{} on the PCI bus, but {error}; install the driver", looked.on_the_bus)
            };
            unseen.push(say("GPUs", why));
        }
        (Some(_), Some(error), _) => unseen.push(say("GPUs", error.to_string())),
        (Some(_), None, Some(sweep)) if sweep.count < looked.on_the_bus => {
            let why = format!(
                "the PCI bus shows {} and the driver counts {}; in a container that may be meant, otherwise say --expect-gpus {}",
                looked.on_the_bus, sweep.count, looked.on_the_bus
            );
            unseen.push(say("some GPUs", why));
        }
        (Some(_), None, _) => {}
    }
    for problem in &looked.problems {
        unseen.push(say(&problem.source.to_string(), problem.message.clone()));
    }
    if looked.lines_cut {
        let why = format!("there are more than the {} that were read", looked.lines.len());
        unseen.push(say("older or newer log lines", why));
    }
    match &looked.host {
        Err(error) => unseen.push(say("the machine", error.to_string())),
        Ok(host) => {
            let rows = [
                ("processors", host.cpu.is_none(), "/proc/stat cannot be read"),
                ("memory", host.memory.is_none(), "/proc/meminfo cannot be read"),
                ("disks", host.disks.is_empty(), "no file system on a real disk is mounted here"),
                ("InfiniBand", host.ports.is_empty(), "no port in /sys/class/infiniband"),
                (
                    "clock",
                    host.clock_synchronised.is_none(),
                    "systemd-timesyncd does not run here, and others leave no word",
                ),
            ];
            let missing = rows.into_iter().filter(|(_, is_missing, _)| *is_missing);
            unseen.extend(missing.map(|(what, _, why)| say(what, why.to_owned())));
        }
    }
    unseen
}

/// Signals, repeats counted together, in the order in which they were first seen.
#[derive(Default)]
struct Signals {
    places: BTreeMap<(SignalKind, Option<u32>, String), usize>,
    all: Vec<Signal>,
}

impl Signals {
    fn add(&mut self, signal: Signal) {
        let words = ["xid_code", "sxid_code", "reason", "signal", "pci", "device", "mount"];
        let words = words.iter().filter_map(|name| signal.metrics.get(*name).map(String::as_str));
        let key = words.collect::<Vec<_>>().join(" ");
        let key = (signal.kind, signal.gpu.as_ref().map(|gpu| gpu.index), key);
        let known = self.places.get(&key).and_then(|place| self.all.get_mut(*place));
        if let Some(known) = known {
            known.count = known.count.saturating_add(signal.count);
            known.last = known.last.max(signal.last);
        } else if self.all.len() < SIGNALS_MAX {
            self.places.insert(key, self.all.len());
            self.all.push(signal);
        }
    }

    fn into_vec(self) -> Vec<SignalFound> {
        let found = |signal: Signal| {
            let explained = row(&signal).map(|row| Explained {
                code: row.code,
                name: row.name.clone(),
                class: row.class.as_str(),
                action: row.action.as_str(),
                meaning: row.meaning.clone(),
            });
            SignalFound { signal, explained }
        };
        self.all.into_iter().map(found).collect()
    }
}

fn number(signal: &Signal, metric: &str) -> Option<u32> {
    signal.metrics.get(metric)?.parse().ok()
}

fn row(signal: &Signal) -> Option<&'static Row> {
    let catalogue = Catalogue::builtin();
    match signal.kind {
        SignalKind::Xid => catalogue.xid(number(signal, "xid_code")?),
        SignalKind::Sxid => catalogue.sxid(number(signal, "sxid_code")?),
        SignalKind::Thermal
        | SignalKind::Power
        | SignalKind::Memory
        | SignalKind::Nvlink
        | SignalKind::Pcie
        | SignalKind::DriverError
        | SignalKind::EccSbe
        | SignalKind::EccDbe
        | SignalKind::Host => None,
    }
}

fn check_reason(check: &CheckOutcome) -> Option<Reason> {
    (check.word != Word::Healthy).then(|| Reason {
        word: check.word,
        code: check.reason.clone(),
        gpu: None,
        pci: None,
        message: check.message.clone(),
        advice: String::new(),
        count: 1,
        last: None,
    })
}

/// What a signal says against the machine, as the built-in policy would; `None` if nothing.
fn signal_reason(found: &SignalFound, recovery: &BTreeMap<u32, u32>) -> Option<Reason> {
    let SignalFound { signal, .. } = found;
    let gpu = signal.gpu.as_ref().map(|gpu| gpu.index);
    let asks = gpu.and_then(|gpu| recovery.get(&gpu));
    let (word, code) = match signal.kind {
        SignalKind::Xid | SignalKind::Sxid => {
            let name = if signal.kind == SignalKind::Xid { "Xid" } else { "SXid" };
            let code = number(signal, "xid_code").or(number(signal, "sxid_code"));
            let code = format!("{name}{}", code.map(|code| code.to_string()).unwrap_or_default());
            let class = row(signal).map_or(Class::Unknown, |row| row.class);
            // The driver is closer to the GPU than the catalogue: if it asks for nothing, watch it.
            let is_cured = matches!(class, Class::GpuReset | Class::Vm) && asks == Some(&0);
            (if is_cured { Word::Degraded } else { of(class.severity()) }, code)
        }
        SignalKind::DriverError => {
            // What else a driver does wrong is the word of the check `nvml`.
            let action = signal.recovery_action.filter(|number| *number != 0)?;
            let reason = signal.metrics.get("reason").filter(|word| *word == "RecoveryAction")?;
            let action = RecoveryAction::from_number(action);
            (action.map_or(Word::Degraded, |action| of(action.severity())), reason.clone())
        }
        SignalKind::EccDbe => (Word::Unhealthy, "EccUncorrected".to_owned()),
        SignalKind::EccSbe => {
            let often = number(signal, "ecc_sbe_count").is_none_or(|count| 100 < count);
            (if often { Word::Degraded } else { Word::Healthy }, "EccCorrected".to_owned())
        }
        SignalKind::Memory => memory_reason(signal),
        SignalKind::Thermal => {
            let too_hot = number(signal, "temperature").is_some_and(|degrees| 95 <= degrees);
            (if too_hot { Word::Unhealthy } else { Word::Degraded }, "Hot".to_owned())
        }
        SignalKind::Power => (Word::Degraded, "Power".to_owned()),
        SignalKind::Nvlink => (Word::Degraded, "Nvlink".to_owned()),
        SignalKind::Pcie => (Word::Degraded, "Pcie".to_owned()),
        SignalKind::Host => host_reason(signal)?,
    };
    (word != Word::Healthy).then(|| Reason {
        word,
        code,
        gpu,
        pci: signal.metrics.get("pci").cloned(),
        message: signal.message.clone(),
        advice: advice(signal),
        count: signal.count,
        last: Some(signal.last),
    })
}

/// What happened to a GPU's memory, by what was counted.
pub(super) fn memory_reason(signal: &Signal) -> (Word, String) {
    const CODES: [(&str, Word, &str); 5] = [
        ("row_remap_failure", Word::Unhealthy, "RowRemapFailed"),
        ("row_remap_pending", Word::Degraded, "RowRemapPending"),
        ("row_remaps_total", Word::Degraded, "RowsRemapped"),
        ("retired_pages_pending", Word::Degraded, "PageRetirementPending"),
        ("retired_pages_total", Word::Degraded, "PagesRetired"),
    ];
    let row = CODES.iter().find(|(metric, ..)| signal.metrics.contains_key(*metric));
    let (word, code) = row.map_or((Word::Degraded, "Memory"), |(_, word, code)| (*word, *code));
    (word, code.to_owned())
}

/// Words about the machine that speak against its hardware. That a program was ended for want of memory
/// does not, and what lasts is in the check `host` already.
fn host_reason(signal: &Signal) -> Option<(Word, String)> {
    const AGAINST: [&str; 10] = [
        "kernel-panic",
        "hard-lockup",
        "machine-check",
        "memory-error",
        "disk-failed",
        "disk-error",
        "filesystem-down",
        "nic-failed",
        "fabric-fatal",
        "fabric-switches",
    ];
    let word = signal.metrics.get("signal")?;
    AGAINST.contains(&word.as_str()).then(|| (Word::Degraded, word.clone()))
}

fn of(severity: Severity) -> Word {
    match severity {
        Severity::Healthy => Word::Healthy,
        Severity::Degraded => Word::Degraded,
        Severity::Unhealthy => Word::Unhealthy,
    }
}

/// What helps, by the driver's word or the catalogue's.
fn advice(signal: &Signal) -> String {
    let asks = signal.recovery_action.filter(|number| *number != 0);
    let driver = asks.and_then(RecoveryAction::from_number).map(|action| action.meaning());
    let known = row(signal)
        .map(|row| format!("{} ({}): {}", row.name, row.class.as_str(), row.action.meaning()));
    match (known, driver) {
        (Some(known), Some(driver)) => format!("{known} The driver asks: {driver}"),
        (Some(known), None) => known,
        (None, Some(driver)) => driver.to_owned(),
        (None, None) => String::new(),
    }
}
