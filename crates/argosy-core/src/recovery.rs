//! What the driver itself says a GPU needs, the first and best opinion there is.
//!
//! NVML gives it as field 230, and the kernel log as Xid 154 whenever it changes. Drivers that do not
//! know the field say nothing, which is not the same as `None`.

use crate::health::Severity;
use serde::{Deserialize, Serialize};

/// What the driver wants done with a GPU, by NVML's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RecoveryAction {
    /// Nothing: the GPU can be used.
    None,
    /// A reset of the GPU.
    GpuReset,
    /// A reboot of the operating system.
    NodeReboot,
    /// That traffic between GPUs ends; then it is to be asked again.
    DrainP2p,
    /// That running work ends, no new work begins, and then a reset.
    DrainAndReset,
    /// That the NVLink domain that the node shares with others (IMEX) is recovered.
    RecoverImex,
    /// A reset of the GPU's PCIe bus.
    BusReset,
    /// A reboot of the whole system, below the operating system.
    SystemReboot,
}

impl RecoveryAction {
    /// All of them, in the order of NVML's numbers.
    pub const ALL: [RecoveryAction; 8] = [
        RecoveryAction::None,
        RecoveryAction::GpuReset,
        RecoveryAction::NodeReboot,
        RecoveryAction::DrainP2p,
        RecoveryAction::DrainAndReset,
        RecoveryAction::RecoverImex,
        RecoveryAction::BusReset,
        RecoveryAction::SystemReboot,
    ];

    /// The one with NVML's number. `Option::None` is a number that a newer driver may know: something
    /// is wanted, and we cannot say what.
    pub fn from_number(number: u32) -> Option<Self> {
        Self::ALL.get(usize::try_from(number).ok()?).copied()
    }

    /// NVML's number.
    pub const fn number(self) -> u32 {
        self as u32
    }

    /// The one that these words mean: those of the kernel log, of `nvidia-smi`, of NVML's constants,
    /// and our own.
    pub fn from_words(words: &str) -> Option<Self> {
        let plain = words.to_ascii_lowercase().replace(['_', '-'], " ");
        let plain = plain.split_whitespace().collect::<Vec<_>>().join(" ");
        let plain = plain.strip_prefix("nvml ").unwrap_or(&plain);
        let plain = plain.strip_prefix("gpu recovery action ").unwrap_or(plain);
        match plain.strip_suffix(" required").unwrap_or(plain) {
            "none" => Some(RecoveryAction::None),
            // Drivers from 610 on name the means: a reset of the PCI function.
            "gpu reset" | "reset" | "pf flr" => Some(RecoveryAction::GpuReset),
            "node reboot" | "reboot" | "os reboot" => Some(RecoveryAction::NodeReboot),
            "drain p2p" => Some(RecoveryAction::DrainP2p),
            "drain and reset" => Some(RecoveryAction::DrainAndReset),
            "recover imex" | "recover imex domain" => Some(RecoveryAction::RecoverImex),
            "bus reset" => Some(RecoveryAction::BusReset),
            "system reboot" => Some(RecoveryAction::SystemReboot),
            _ => Option::None,
        }
    }

    /// The word, as rules compare with it.
    pub const fn as_str(self) -> &'static str {
        match self {
            RecoveryAction::None => "none",
            RecoveryAction::GpuReset => "gpu-reset",
            RecoveryAction::NodeReboot => "node-reboot",
            RecoveryAction::DrainP2p => "drain-p2p",
            RecoveryAction::DrainAndReset => "drain-and-reset",
            RecoveryAction::RecoverImex => "recover-imex",
            RecoveryAction::BusReset => "bus-reset",
            RecoveryAction::SystemReboot => "system-reboot",
        }
    }

    /// A sentence for people.
    pub const fn meaning(self) -> &'static str {
        match self {
            RecoveryAction::None => "The GPU can be used.",
            RecoveryAction::GpuReset => "End all work on the GPU and reset it.",
            RecoveryAction::NodeReboot => "Boot the operating system again.",
            RecoveryAction::DrainP2p => {
                "Begin no new work and end what talks to other GPUs; the driver then says what comes next."
            }
            RecoveryAction::DrainAndReset => {
                "The GPU has lost a part of itself: let running work end, begin no new, then reset it."
            }
            RecoveryAction::RecoverImex => {
                "The NVLink domain across nodes must be recovered; the GPU itself is well."
            }
            RecoveryAction::BusReset => "Reset the PCIe bus of the GPU.",
            RecoveryAction::SystemReboot => {
                "Boot the whole system again, not only its operating system."
            }
        }
    }

    /// How bad it is. Whatever asks for no new work is unhealthy, even where running work may end.
    pub const fn severity(self) -> Severity {
        match self {
            RecoveryAction::None => Severity::Healthy,
            RecoveryAction::RecoverImex => Severity::Degraded,
            RecoveryAction::GpuReset
            | RecoveryAction::NodeReboot
            | RecoveryAction::DrainP2p
            | RecoveryAction::DrainAndReset
            | RecoveryAction::BusReset
            | RecoveryAction::SystemReboot => Severity::Unhealthy,
        }
    }
}

/// What Xid 154 says: the driver changed its mind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecoveryChange {
    /// What it wanted before; `None` if we have no word for it.
    pub from: Option<RecoveryAction>,
    /// What it wants now; `None` if we have no word for it, which is never the same as nothing.
    pub to: Option<RecoveryAction>,
}

impl RecoveryChange {
    /// Reads the text of an Xid 154: `GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset
    /// Required)`.
    pub fn parse(text: &str) -> Option<Self> {
        let (_, change) = text.split_once("recovery action changed from ")?;
        let (from, to) = change.split_once(" to ")?;
        Some(Self { from: action(from), to: action(to) })
    }
}

/// `0x1 (GPU Reset Required)`: by the number, which does not change from driver to driver as words do;
/// by the words if there is no number.
fn action(text: &str) -> Option<RecoveryAction> {
    let text = text.trim().trim_end_matches('.');
    let (first, words) = text.split_once('(').unwrap_or((text, text));
    match first.trim().strip_prefix("0x") {
        Some(digits) => RecoveryAction::from_number(u32::from_str_radix(digits, 16).ok()?),
        None => RecoveryAction::from_words(words.trim_end().trim_end_matches(')')),
    }
}

#[cfg(test)]
mod tests;
