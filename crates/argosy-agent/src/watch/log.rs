//! A line of a log becomes a signal, or most often nothing.
//!
//! Programs can write into logs, and a process chooses its own name: so a line counts only if it begins
//! as the kernel begins it. What is found in the middle of a line is never more than a remark.

mod form;

use crate::check::{CheckOutcome, Word};
use crate::gpu::Inventory;
use crate::log::{Line, Problem, Source};
use crate::signal::{GpuRef, Signal, SignalKind};
use crate::watch::word::HostWord;
use argosy_core::health::MESSAGE_LEN_MAX;
use argosy_core::kernel::{Detail, KernelFault, Lines, OFF_THE_BUS, SxidFault, XidFault};
use argosy_core::pci::PciAddress;
use form::Found;
use jiff::{SignedDuration, Timestamp};
use std::collections::BTreeMap;

/// How long after an Xid 79 the driver's own words for it (`GPU has fallen off the bus`) are about the
/// same fall. It writes both within a second; a GPU does not come back and fall again within a minute.
const SAME_FALL: SignedDuration = SignedDuration::from_secs(60);

/// The most GPUs whose fall is remembered. No machine has more, and addresses come from lines.
const FALLS_MAX: usize = 64;

/// What was read so far: which GPU is where, and what the lines before this one said.
#[derive(Clone, Debug, Default)]
pub struct LogWatch {
    lines: BTreeMap<Source, Lines>,
    gpus: BTreeMap<PciAddress, GpuRef>,
    falls: BTreeMap<PciAddress, Timestamp>,
    faults: u64,
}

impl LogWatch {
    /// Learns which GPU is at which address. A GPU that is no longer listed is remembered: the line that
    /// says why may come after it is gone.
    pub fn learn(&mut self, inventory: &Inventory) {
        for (address, gpu) in places(inventory) {
            if self.gpus.len() < FALLS_MAX || self.gpus.contains_key(&address) {
                self.gpus.insert(address, gpu);
            }
        }
    }

    /// What a line says: nothing for most; two signals if lines were lost before it.
    pub fn read(&mut self, line: &Line) -> Vec<Signal> {
        let mut signals = Vec::new();
        if 0 < line.lost_before {
            signals.push(lost(line));
        }
        let fault = self.lines.entry(line.source.clone()).or_default().read(&line.text);
        let signal = match fault {
            Some(fault) => self.fault(&fault, line.at),
            None => form::find(&line.text).map(|found| self.found(found, line.at)),
        };
        signals.extend(signal.map(|mut signal| {
            signal.raw = cut(&line.text);
            signal.boot_id.clone_from(&line.boot_id);
            signal
        }));
        signals
    }

    /// How many faults of GPUs and switches the lines told of.
    pub fn faults(&self) -> u64 {
        self.faults
    }

    /// The word of the check `xid`: whether faults could be seen if there were any.
    pub fn outcome(&self, reading: &[Source], problems: &[Problem]) -> CheckOutcome {
        let kernel = reading.iter().find(|source| source.tells_of_kernel());
        let mut outcome = match kernel {
            Some(source) => CheckOutcome::healthy(
                "xid",
                format!("{} faults of GPUs and switches in {source}", self.faults),
            ),
            None => {
                let why: Vec<String> = problems.iter().map(ToString::to_string).collect();
                let why =
                    if why.is_empty() { "no source is configured".into() } else { why.join("; ") };
                CheckOutcome::fault(
                    "xid",
                    Word::Degraded,
                    "LogUnreadable",
                    format!(
                        "the kernel's log cannot be read, so faults of GPUs are not seen: {why}"
                    ),
                )
            }
        };
        outcome.details.insert("faults".into(), self.faults.to_string());
        let names: Vec<String> = reading.iter().map(ToString::to_string).collect();
        if !names.is_empty() {
            outcome.details.insert("sources".into(), names.join(", "));
        }
        outcome
    }

    fn fault(&mut self, fault: &KernelFault, at: Timestamp) -> Option<Signal> {
        let signal = match fault {
            KernelFault::Xid(xid) => {
                if xid.code == OFF_THE_BUS {
                    self.remember_fall(xid.gpu, at);
                }
                self.placed(xid_signal(xid, at), xid.gpu)
            }
            KernelFault::OffTheBus { gpu } => {
                let told = |gpu| self.falls.get(gpu).is_some_and(|fell| same_fall(*fell, at));
                // Without an address it is about the GPU that just fell, if one did.
                let told = match gpu {
                    Some(gpu) => told(gpu),
                    None => self.falls.keys().any(told),
                };
                if told {
                    return None;
                }
                let signal = Signal::once(SignalKind::Xid, at, "the GPU has fallen off the bus")
                    .with("xid_code", OFF_THE_BUS);
                match gpu {
                    Some(gpu) => {
                        self.remember_fall(*gpu, at);
                        self.placed(signal, *gpu)
                    }
                    None => signal,
                }
            }
            KernelFault::Sxid(sxid) => sxid_signal(sxid, at),
        };
        self.faults = self.faults.saturating_add(1);
        Some(signal)
    }

    fn remember_fall(&mut self, gpu: PciAddress, at: Timestamp) {
        self.falls.retain(|_, fell| same_fall(*fell, at));
        if self.falls.len() < FALLS_MAX {
            self.falls.insert(gpu, at);
        }
    }

    /// The signal with its address, and with the GPU if one is known to be there.
    fn placed(&self, signal: Signal, address: PciAddress) -> Signal {
        let signal = signal.with("pci", address);
        match self.gpus.get(&address) {
            Some(gpu) => signal.on(gpu.clone()),
            None => signal,
        }
    }

    fn found(&self, found: Found<'_>, at: Timestamp) -> Signal {
        let mut signal = match found.word {
            Some(word) => host_signal(word, at),
            None => Signal::once(
                SignalKind::Pcie,
                at,
                "the PCIe bus met an error that it could not correct",
            ),
        };
        for (name, value) in found.facts {
            signal = signal.with(name, cut(value));
        }
        match found.device {
            Some(device) => self.placed(signal, device),
            None => signal,
        }
    }
}

/// A signal about the machine, with the word's own sentence.
pub fn host_signal(word: HostWord, at: Timestamp) -> Signal {
    Signal::once(SignalKind::Host, at, word.meaning()).with("signal", word.as_str())
}

/// Where each GPU is.
pub(super) fn places(inventory: &Inventory) -> impl Iterator<Item = (PciAddress, GpuRef)> {
    inventory.gpus.iter().filter_map(|gpu| {
        let known = GpuRef {
            index: gpu.index,
            uuid: gpu.uuid.clone(),
            serial: gpu.serial.clone().unwrap_or_default(),
        };
        Some((PciAddress::parse(&gpu.pci_bus_id)?, known))
    })
}

fn same_fall(fell: Timestamp, at: Timestamp) -> bool {
    at.duration_since(fell).abs() <= SAME_FALL
}

fn lost(line: &Line) -> Signal {
    let mut signal = host_signal(HostWord::KernelOverrun, line.at).with("lost", line.lost_before);
    signal.message = format!(
        "{} lines of {} were lost before they could be read",
        line.lost_before, line.source
    );
    signal
}

fn xid_signal(xid: &XidFault, at: Timestamp) -> Signal {
    let text = if xid.text.is_empty() { "no more is said" } else { &xid.text };
    let mut signal = Signal::once(SignalKind::Xid, at, cut(&format!("Xid {}: {text}", xid.code)))
        .with("xid_code", xid.code);
    if let Some(instance) = xid.instance {
        signal = signal.with("mig_gpu_instance", instance.gpu);
        if let Some(compute) = instance.compute {
            signal = signal.with("mig_compute_instance", compute);
        }
    }
    if let Some(pid) = xid.pid {
        signal = signal.with("pid", pid);
    }
    if let Some(process) = &xid.process {
        signal = signal.with("process", process);
    }
    match &xid.detail {
        Detail::Plain => signal,
        Detail::Recovery(change) => {
            signal.recovery_action = change.to.map(|action| action.number());
            signal
        }
        Detail::Nvlink(nvlink) => {
            signal = signal.with("nvlink_unit", &nvlink.unit).with("fatal", nvlink.fatal);
            if let Some(link) = nvlink.link {
                signal = signal.with("link", link);
            }
            if nvlink.injected { signal.with("injected", true) } else { signal }
        }
    }
}

fn sxid_signal(sxid: &SxidFault, at: Timestamp) -> Signal {
    let mut signal =
        Signal::once(SignalKind::Sxid, at, cut(&format!("SXid {}: {}", sxid.code, sxid.text)))
            .with("sxid_code", sxid.code)
            .with("switch", sxid.switch);
    if let Some(fatal) = sxid.fatal {
        signal = signal.with("fatal", fatal);
    }
    match sxid.link {
        Some(link) => signal.with("link", link),
        None => signal,
    }
}

/// As much as the server keeps of a text.
fn cut(text: &str) -> String {
    text.get(..text.floor_char_boundary(MESSAGE_LEN_MAX)).unwrap_or(text).to_owned()
}

#[cfg(test)]
mod tests;
