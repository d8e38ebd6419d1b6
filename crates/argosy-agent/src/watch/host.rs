//! Samples of the machine become the word of the check `host`, and signals where something begins.
//!
//! What a newcomer gets wrong: a counter says nothing by itself. What it grew by since the last look
//! does, and a counter that shrank was reset and grew by nothing.

mod port;

use crate::check::{CheckOutcome, Word};
use crate::gpu::Inventory;
use crate::host::{Blocked, Disk, HostError, HostSample, Link, Memory, PciDevice};
use crate::signal::{Signal, SignalKind};
use crate::watch::log::{host_signal, places};
use crate::watch::word::HostWord;
use argosy_core::pci::PciAddress;
use jiff::{SignedDuration, Timestamp};
use port::PortMemory;
use std::collections::{BTreeMap, BTreeSet};

/// A file system this full is a warning: logs and checkpoints of a day fit into what is left.
const DISK_WARNING_PERCENT: f64 = 85.0;
/// A file system this full fails the next checkpoint.
const DISK_FULL_PERCENT: f64 = 95.0;
/// By how much it must fall before it is well again, so that one file does not ring the bell each time.
const DISK_RELIEF_PERCENT: f64 = 2.0;
/// File systems smaller than this are boot partitions, which are full by design.
const DISK_SIZE_MIN: u64 = 4 * 1024 * 1024 * 1024;

/// With less memory than this the kernel begins to end programs.
const MEMORY_LOW_PERCENT: f64 = 2.0;
/// And with this much it is well again.
const MEMORY_WELL_PERCENT: f64 = 4.0;

/// How long a network link may be down: drivers take one down for seconds when they are set up anew.
const LINK_DOWN_MAX: SignedDuration = SignedDuration::from_secs(60);
/// Errors a second on a network link that a good cable never has.
const LINK_ERRORS_PER_S: f64 = 10.0;

/// How many times a network link may come or go within `TROUBLE_LASTS`: one flap is two changes, and
/// one is maintenance.
const LINK_CHANGES_MAX: u64 = 2;

/// How long a program may wait in the kernel without working. The kernel itself warns after 120 s; some
/// drivers need that long to give up.
const BLOCKED_MAX: SignedDuration = SignedDuration::from_secs(300);

/// How long after its start a machine may have a wrong clock: the first answer of a time server takes
/// minutes on a busy network.
const CLOCK_GRACE_S: u64 = 600;

/// How often a link must be seen narrow in a row. A GPU that wakes up trains its link for a moment.
const NARROW_TIMES: u32 = 2;

/// How long after its last trouble a thing still counts as troubled, so that the word does not flicker
/// with every look.
const TROUBLE_LASTS: SignedDuration = SignedDuration::from_secs(600);

/// The most things of one kind that are remembered; names come from the machine's files.
const MEMORY_MAX: usize = 256;

/// What was seen so far.
#[derive(Clone, Debug, Default)]
pub struct HostWatch {
    disks: BTreeMap<String, DiskMemory>,
    memory_low: bool,
    links: BTreeMap<String, LinkMemory>,
    ports: BTreeMap<(String, u32), PortMemory>,
    blocked: BTreeMap<(u32, u64), BlockedMemory>,
    narrow: BTreeMap<PciAddress, u32>,
    /// Where the GPUs are that the driver lists.
    listed: BTreeSet<PciAddress>,
    clock_wrong: bool,
}

#[derive(Clone, Debug, Default)]
struct DiskMemory {
    full: Fullness,
    was_writable: bool,
    read_only: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Fullness {
    #[default]
    Well,
    Warning,
    Full,
}

#[derive(Clone, Debug, Default)]
struct LinkMemory {
    was_up: bool,
    down_since: Option<Timestamp>,
    told_down: bool,
    errors: Option<(Timestamp, u64)>,
    troubled_at: Option<Timestamp>,
    /// When its changes were counted from, and from how many.
    changes: Option<(Timestamp, u64)>,
    flapped_at: Option<Timestamp>,
}

#[derive(Clone, Debug)]
struct BlockedMemory {
    since: Timestamp,
    worked_ticks: u64,
    told: bool,
}

/// Something that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Finding {
    word: Word,
    reason: &'static str,
    message: String,
}

/// What one look at the machine gave.
#[derive(Debug, Default)]
struct Look {
    findings: Vec<Finding>,
    signals: Vec<Signal>,
}

impl Look {
    fn find(&mut self, word: Word, reason: &'static str, message: String) {
        self.findings.push(Finding { word, reason, message });
    }
}

impl HostWatch {
    /// Learns which GPUs the driver lists: their links are told of where the driver is asked.
    pub fn learn(&mut self, inventory: &Inventory) {
        self.listed = places(inventory).map(|(address, _)| address).take(MEMORY_MAX).collect();
    }

    /// The check's word about this sample, and what began with it.
    pub fn on(&mut self, sample: &HostSample) -> (CheckOutcome, Vec<Signal>) {
        let at = sample.at;
        let mut look = Look::default();
        self.disks.retain(|mount, _| sample.disks.iter().any(|disk| disk.mount == *mount));
        for disk in &sample.disks {
            self.disk(disk, at, &mut look);
        }
        if let Some(memory) = &sample.memory {
            self.memory(memory, at, &mut look);
        }
        for link in &sample.links {
            self.link(link, at, &mut look);
        }
        self.gone_links(sample);
        for port in &sample.ports {
            let key = (port.device.clone(), port.port);
            if self.ports.contains_key(&key) || self.ports.len() < MEMORY_MAX {
                self.ports.entry(key).or_default().look(Some(port), port_name(port), at, &mut look);
            }
        }
        // Parts of devices come and go with the containers that have them.
        let is_there = |key: &(String, u32)| {
            sample.ports.iter().any(|port| port.device == key.0 && port.port == key.1)
        };
        self.ports.retain(|key, memory| !memory.is_virtual() || is_there(key));
        for ((device, number), memory) in &mut self.ports {
            // A port that vanished is down, whatever the reason.
            if !sample.ports.iter().any(|port| port.device == *device && port.port == *number) {
                memory.look(None, format!("{device}/{number}"), at, &mut look);
            }
        }
        self.blocked(&sample.blocked, at, &mut look);
        self.widths(&sample.nvidia, at, &mut look);
        self.clock(sample, &mut look);
        (outcome(sample, look.findings), look.signals)
    }

    /// The check's word when there is no sample.
    pub fn failed(&self, error: &HostError) -> CheckOutcome {
        CheckOutcome::fault("host", Word::Degraded, "HostHung", error.to_string())
    }

    fn disk(&mut self, disk: &Disk, at: Timestamp, look: &mut Look) {
        if MEMORY_MAX <= self.disks.len() && !self.disks.contains_key(&disk.mount) {
            return;
        }
        let known = self.disks.entry(disk.mount.clone()).or_default();
        let signal = |word: HostWord, message: String| {
            let mut signal =
                host_signal(word, at).with("mount", &disk.mount).with("device", &disk.device);
            signal.message = message;
            signal
        };
        if disk.read_only && known.was_writable {
            let message = format!("{} can only be read any more", disk.mount);
            if !known.read_only {
                look.signals.push(signal(HostWord::ReadOnly, message.clone()));
            }
            look.find(Word::Unhealthy, "FilesystemReadOnly", message);
        }
        known.read_only = disk.read_only;
        known.was_writable |= !disk.read_only;
        let is_small = disk.total_bytes.is_some_and(|total| total < DISK_SIZE_MIN);
        let used = [disk.used_percent, disk.files_used_percent].into_iter().flatten();
        let used = used.filter(|_| !is_small && !disk.read_only).fold(0.0, f64::max);
        let full = fullness(used, known.full);
        if known.full < full {
            let message = format!("{} is {used:.0} % full", disk.mount);
            let signal = signal(HostWord::DiskFull, message);
            look.signals.push(signal.with("used_percent", format!("{used:.1}")));
        }
        known.full = full;
        let word = match full {
            Fullness::Well => return,
            Fullness::Warning => Word::Degraded,
            Fullness::Full => Word::Unhealthy,
        };
        look.find(word, "DiskFull", format!("{} is {used:.0} % full", disk.mount));
    }

    fn memory(&mut self, memory: &Memory, at: Timestamp, look: &mut Look) {
        if memory.total_bytes == 0 {
            return;
        }
        let left = memory.available_bytes as f64 * 100.0 / memory.total_bytes as f64;
        let limit = if self.memory_low { MEMORY_WELL_PERCENT } else { MEMORY_LOW_PERCENT };
        let low = left < limit;
        let message = format!("{left:.1} % of memory is left");
        if low && !self.memory_low {
            let mut signal = host_signal(HostWord::MemoryLow, at)
                .with("available_percent", format!("{left:.1}"));
            signal.message.clone_from(&message);
            look.signals.push(signal);
        }
        self.memory_low = low;
        if low {
            look.find(Word::Degraded, "MemoryLow", message);
        }
    }

    fn link(&mut self, link: &Link, at: Timestamp, look: &mut Look) {
        if MEMORY_MAX <= self.links.len() && !self.links.contains_key(&link.name) {
            return;
        }
        let known = self.links.entry(link.name.clone()).or_default();
        match link.up {
            Some(true) => {
                *known =
                    LinkMemory { was_up: true, down_since: None, told_down: false, ..known.clone() }
            }
            // A port without a cable was never up, and is nobody's loss.
            Some(false) if known.was_up => {
                let since = *known.down_since.get_or_insert(at);
                if LINK_DOWN_MAX <= at.duration_since(since) {
                    let message = format!("network link {} is down since {since}", link.name);
                    if !known.told_down {
                        known.told_down = true;
                        let mut signal =
                            host_signal(HostWord::NetworkDown, at).with("device", &link.name);
                        signal.message.clone_from(&message);
                        look.signals.push(signal);
                    }
                    look.find(Word::Degraded, "NetworkDown", message);
                }
            }
            Some(false) | None => {}
        }
        flapping(known, link, at, look);
        let errors = [link.receive_errors, link.send_errors].into_iter().flatten();
        let errors = errors.fold(0, u64::saturating_add);
        let before = known.errors.replace((at, errors));
        let Some((looked, before)) = before else { return };
        let seconds = at.duration_since(looked).as_secs_f64();
        let grown = errors.saturating_sub(before);
        if 0.0 < seconds && LINK_ERRORS_PER_S * seconds < grown as f64 {
            if !recently(known.troubled_at, at) {
                let signal = host_signal(HostWord::NetworkErrors, at).with("device", &link.name);
                look.signals.push(signal.with("errors", grown));
            }
            known.troubled_at = Some(at);
        }
        if recently(known.troubled_at, at) {
            let message = format!("network link {} counts errors", link.name);
            look.find(Word::Degraded, "NetworkErrors", message);
        }
    }

    /// A link whose device is gone is forgotten: containers and drivers take them away on purpose.
    fn gone_links(&mut self, sample: &HostSample) {
        self.links.retain(|name, _| sample.links.iter().any(|link| link.name == *name));
    }

    fn blocked(&mut self, blocked: &[Blocked], at: Timestamp, look: &mut Look) {
        let there: BTreeSet<(u32, u64)> =
            blocked.iter().map(|process| (process.pid, process.started_ticks)).collect();
        self.blocked.retain(|key, _| there.contains(key));
        for process in blocked.iter().take(MEMORY_MAX) {
            let fresh =
                || BlockedMemory { since: at, worked_ticks: process.worked_ticks, told: false };
            let key = (process.pid, process.started_ticks);
            let known = self.blocked.entry(key).or_insert_with(fresh);
            if known.worked_ticks != process.worked_ticks {
                *known = fresh();
            }
            if at.duration_since(known.since) < BLOCKED_MAX {
                continue;
            }
            let message = format!(
                "{} ({}) waits in the kernel since {} and cannot be ended",
                process.name, process.pid, known.since
            );
            if !known.told {
                known.told = true;
                let signal = host_signal(HostWord::BlockedTask, at).with("pid", process.pid);
                let mut signal = signal.with("process", &process.name);
                signal.message.clone_from(&message);
                look.signals.push(signal);
            }
            look.find(Word::Degraded, "ProcessBlocked", message);
        }
    }

    fn widths(&mut self, devices: &[PciDevice], at: Timestamp, look: &mut Look) {
        self.narrow.retain(|address, _| devices.iter().any(|device| device.address == *address));
        for device in devices.iter().filter(|device| device.is_gpu()).take(MEMORY_MAX) {
            let (Some(width), Some(width_max)) = (device.width, device.width_max) else { continue };
            if width_max <= width || device.awake == Some(false) {
                self.narrow.remove(&device.address);
                continue;
            }
            let times = self.narrow.entry(device.address).or_default();
            *times = times.saturating_add(1);
            if *times < NARROW_TIMES {
                continue;
            }
            let message =
                format!("the link of {} has {width} lanes of {width_max}", device.address);
            if *times == NARROW_TIMES && !self.listed.contains(&device.address) {
                let signal = Signal::once(SignalKind::Pcie, at, message.clone())
                    .with("pci", device.address)
                    .with("pcie_width", width)
                    .with("pcie_width_max", width_max);
                look.signals.push(signal);
            }
            look.find(Word::Degraded, "LinkNarrow", message);
        }
    }

    fn clock(&mut self, sample: &HostSample, look: &mut Look) {
        let wrong = sample.clock_synchronised == Some(false)
            && sample.uptime_s.is_some_and(|uptime| CLOCK_GRACE_S <= uptime);
        if wrong && !self.clock_wrong {
            look.signals.push(host_signal(HostWord::ClockUnsynchronised, sample.at));
        }
        self.clock_wrong = wrong;
        if wrong {
            let message = "the clock is not synchronised; look at `timedatectl`".to_owned();
            look.find(Word::Degraded, "ClockUnsynchronised", message);
        }
    }
}

fn flapping(known: &mut LinkMemory, link: &Link, at: Timestamp, look: &mut Look) {
    let Some(changes) = link.carrier_changes else { return };
    let (since, before) = *known.changes.get_or_insert((at, changes));
    if LINK_CHANGES_MAX < changes.saturating_sub(before) {
        if !recently(known.flapped_at, at) {
            let signal = host_signal(HostWord::NetworkFlap, at).with("device", &link.name);
            look.signals.push(signal.with("changes", changes - before));
        }
        known.flapped_at = Some(at);
    }
    // A new count begins when the last is over, when it was too many, and when the device was reset.
    if known.flapped_at == Some(at) || changes < before || TROUBLE_LASTS <= at.duration_since(since)
    {
        known.changes = Some((at, changes));
    }
    if recently(known.flapped_at, at) {
        let message = format!("network link {} goes down and comes back", link.name);
        look.find(Word::Degraded, "NetworkFlap", message);
    }
}

fn fullness(used: f64, before: Fullness) -> Fullness {
    let at_least = |limit: f64, level: Fullness| {
        let limit = if level <= before { limit - DISK_RELIEF_PERCENT } else { limit };
        limit <= used
    };
    if at_least(DISK_FULL_PERCENT, Fullness::Full) {
        Fullness::Full
    } else if at_least(DISK_WARNING_PERCENT, Fullness::Warning) {
        Fullness::Warning
    } else {
        Fullness::Well
    }
}

fn recently(troubled_at: Option<Timestamp>, at: Timestamp) -> bool {
    troubled_at.is_some_and(|troubled| at.duration_since(troubled) < TROUBLE_LASTS)
}

fn port_name(port: &crate::host::Port) -> String {
    format!("{}/{}", port.device, port.port)
}

fn outcome(sample: &HostSample, mut findings: Vec<Finding>) -> CheckOutcome {
    // The worst first; of equals the first that was found.
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.word));
    let mut outcome = match findings.first() {
        None => CheckOutcome::healthy("host", "disks, memory, network and clock are well"),
        Some(worst) => {
            let messages: Vec<&str> =
                findings.iter().take(MESSAGES_MAX).map(|found| found.message.as_str()).collect();
            CheckOutcome::fault("host", worst.word, worst.reason, messages.join("; "))
        }
    };
    if 1 < findings.len() {
        outcome.details.insert("findings".into(), findings.len().to_string());
    }
    let mut detail = |name: &str, value: Option<String>| {
        outcome.details.extend(value.map(|value| (name.to_owned(), value)));
    };
    let ports = &sample.ports;
    let active = ports.iter().filter(|port| port.active == Some(true)).count();
    detail(
        "infiniband",
        (!ports.is_empty()).then(|| format!("{active} of {} ports active", ports.len())),
    );
    detail("gpus_on_bus", Some(sample.gpus_on_bus().to_string()));
    detail("uptime_s", sample.uptime_s.map(|uptime| uptime.to_string()));
    outcome
}

/// How many findings a message tells of.
const MESSAGES_MAX: usize = 5;

#[cfg(test)]
mod tests;
