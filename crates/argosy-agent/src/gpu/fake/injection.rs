//! Something that is to go wrong with a made-up GPU, as data and as a line of text: `xid:79 gpu:3`.

use argosy_core::kernel::LINE_LEN_MAX;
use argosy_core::recovery::RecoveryAction;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// The longest name of a program or of a reason; the kernel keeps 15 letters of the former.
const WORD_LEN_MAX: usize = 64;

/// Something that is to go wrong, or to be well again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "inject", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Injection {
    /// The driver reports this code: a line in the kernel's log, and what the fault does to the GPU.
    Xid {
        /// The GPU.
        gpu: u32,
        /// The code.
        code: u32,
    },
    /// The GPU does not answer any more.
    Lost {
        /// The GPU.
        gpu: u32,
    },
    /// The driver does not count the GPU any more, and says nothing about it.
    Missing {
        /// The GPU.
        gpu: u32,
    },
    /// Memory corrects so many errors more.
    EccCorrected {
        /// The GPU.
        gpu: u32,
        /// How many.
        count: u64,
    },
    /// Memory has so many errors more that it could not correct.
    EccUncorrected {
        /// The GPU.
        gpu: u32,
        /// How many.
        count: u64,
    },
    /// A bad row of memory will be replaced at the next reset.
    RowRemapPending {
        /// The GPU.
        gpu: u32,
    },
    /// A bad row of memory cannot be replaced.
    RowRemapFailed {
        /// The GPU.
        gpu: u32,
    },
    /// The GPU is this hot.
    Temperature {
        /// The GPU.
        gpu: u32,
        /// How hot.
        celsius: u32,
    },
    /// The clocks are held back for this reason: `HwThermalSlowdown`, `HwPowerBrakeSlowdown`, ….
    Throttle {
        /// The GPU.
        gpu: u32,
        /// The driver's word.
        reason: String,
    },
    /// So many links are down.
    NvlinkDown {
        /// The GPU.
        gpu: u32,
        /// How many.
        links: u32,
    },
    /// So many packets more had to be sent again on the links.
    NvlinkErrors {
        /// The GPU.
        gpu: u32,
        /// How many.
        count: u64,
    },
    /// So many packets more had to be sent again on the bus.
    PcieReplays {
        /// The GPU.
        gpu: u32,
        /// How many.
        count: u32,
    },
    /// The bus is this wide only.
    PcieWidth {
        /// The GPU.
        gpu: u32,
        /// How wide.
        width: u32,
    },
    /// The driver asks for this, by NVML's number.
    Recovery {
        /// The GPU.
        gpu: u32,
        /// NVML's number.
        action: u32,
    },
    /// A call to the driver does not return.
    Hang {
        /// The GPU; `None` if it hangs before it gets to any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        gpu: Option<u32>,
    },
    /// The driver fails with this word, for example `DRIVER_NOT_LOADED`.
    DriverError {
        /// NVML's word.
        code: String,
    },
    /// A program uses the GPU.
    Process {
        /// The GPU.
        gpu: u32,
        /// Its number.
        pid: u32,
        /// Its name.
        #[serde(default)]
        name: String,
    },
    /// The GPU is cut into so many instances; 0 turns MIG off.
    Mig {
        /// The GPU.
        gpu: u32,
        /// How many.
        instances: u32,
    },
    /// The kernel writes this line.
    Line {
        /// The line.
        text: String,
    },
    /// All is well again: programs have ended, and counters stay where they are.
    Heal {
        /// The GPU; `None` for all of them and the driver.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        gpu: Option<u32>,
    },
}

/// Why a text is no injection.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InjectionError {
    /// Nobody knows this word.
    #[error("nothing is called `{word}`; there are: {}", KINDS.join(", "))]
    UnknownKind {
        /// The word.
        word: String,
    },
    /// A value is needed.
    #[error("`{kind}` needs `{name}`, for example `{example}`")]
    Missing {
        /// What was to be injected.
        kind: &'static str,
        /// What is missing.
        name: &'static str,
        /// A whole one.
        example: &'static str,
    },
    /// A value makes no sense.
    #[error("`{value}` is no {name}")]
    BadValue {
        /// Which.
        name: String,
        /// What was given.
        value: String,
    },
    /// A word that this kind has no use for.
    #[error("`{kind}` has no `{word}`")]
    Unused {
        /// What was to be injected.
        kind: &'static str,
        /// The word.
        word: String,
    },
    /// Too much text.
    #[error("{name} has {len} bytes; at most {len_max} are allowed")]
    TooLong {
        /// Which.
        name: &'static str,
        /// How long it is.
        len: usize,
        /// How long it may be.
        len_max: usize,
    },
}

/// The words of all kinds.
pub const KINDS: [&str; 20] = [
    "xid",
    "lost",
    "missing",
    "ecc-corrected",
    "ecc-uncorrected",
    "row-remap-pending",
    "row-remap-failed",
    "temperature",
    "throttle",
    "nvlink-down",
    "nvlink-errors",
    "pcie-replays",
    "pcie-width",
    "recovery",
    "hang",
    "driver-error",
    "process",
    "mig",
    "line",
    "heal",
];

impl Injection {
    /// The GPU that it is about, if it is about one.
    pub fn gpu(&self) -> Option<u32> {
        match self {
            Injection::Xid { gpu, .. }
            | Injection::Lost { gpu }
            | Injection::Missing { gpu }
            | Injection::EccCorrected { gpu, .. }
            | Injection::EccUncorrected { gpu, .. }
            | Injection::RowRemapPending { gpu }
            | Injection::RowRemapFailed { gpu }
            | Injection::Temperature { gpu, .. }
            | Injection::Throttle { gpu, .. }
            | Injection::NvlinkDown { gpu, .. }
            | Injection::NvlinkErrors { gpu, .. }
            | Injection::PcieReplays { gpu, .. }
            | Injection::PcieWidth { gpu, .. }
            | Injection::Recovery { gpu, .. }
            | Injection::Process { gpu, .. }
            | Injection::Mig { gpu, .. } => Some(*gpu),
            Injection::Hang { gpu } | Injection::Heal { gpu } => *gpu,
            Injection::DriverError { .. } | Injection::Line { .. } => None,
        }
    }
}

impl FromStr for Injection {
    type Err = InjectionError;

    /// Reads `kind`, or `kind:value`, and then `name:value` for whatever else it needs.
    fn from_str(text: &str) -> Result<Self, InjectionError> {
        let text = text.trim();
        // A line may hold anything, and is taken whole.
        if let Some(line) = text.strip_prefix("line:") {
            let text = short("the line", line.trim(), LINE_LEN_MAX)?;
            return Ok(Injection::Line { text });
        }
        let mut words = text.split_whitespace();
        let first = words.next().unwrap_or_default();
        let (kind, value) = first.split_once(':').unwrap_or((first, ""));
        let mut parts = Parts { value: value.to_owned(), named: BTreeMap::new() };
        for word in words {
            let (name, value) = word.split_once(':').unwrap_or((word, ""));
            parts.named.insert(name.to_owned(), value.to_owned());
        }
        let (kind, injection) = parts.read(kind)?;
        match parts.left() {
            Some(word) => Err(InjectionError::Unused { kind, word }),
            None => Ok(injection),
        }
    }
}

/// The words of a text that were not used yet.
struct Parts {
    value: String,
    named: BTreeMap<String, String>,
}

impl Parts {
    fn read(&mut self, kind: &str) -> Result<(&'static str, Injection), InjectionError> {
        Ok(match kind {
            "xid" => {
                let code = self.number("xid", "code", "xid:79 gpu:3")?;
                ("xid", Injection::Xid { gpu: self.gpu("xid", "xid:79 gpu:3")?, code })
            }
            "lost" => ("lost", Injection::Lost { gpu: self.gpu("lost", "lost gpu:3")? }),
            "missing" => {
                ("missing", Injection::Missing { gpu: self.gpu("missing", "missing gpu:3")? })
            }
            "ecc-corrected" => {
                let (kind, example) = ("ecc-corrected", "ecc-corrected:200 gpu:3");
                let count = self.number(kind, "count", example)?;
                (kind, Injection::EccCorrected { gpu: self.gpu(kind, example)?, count })
            }
            "ecc-uncorrected" => {
                let (kind, example) = ("ecc-uncorrected", "ecc-uncorrected:1 gpu:3");
                let count = self.number(kind, "count", example)?;
                (kind, Injection::EccUncorrected { gpu: self.gpu(kind, example)?, count })
            }
            "row-remap-pending" => {
                let kind = "row-remap-pending";
                let gpu = self.gpu(kind, "row-remap-pending gpu:3")?;
                (kind, Injection::RowRemapPending { gpu })
            }
            "row-remap-failed" => {
                let kind = "row-remap-failed";
                let gpu = self.gpu(kind, "row-remap-failed gpu:3")?;
                (kind, Injection::RowRemapFailed { gpu })
            }
            "temperature" => {
                let (kind, example) = ("temperature", "temperature:96 gpu:3");
                let celsius = self.number(kind, "celsius", example)?;
                (kind, Injection::Temperature { gpu: self.gpu(kind, example)?, celsius })
            }
            "throttle" => {
                let (kind, example) = ("throttle", "throttle:HwThermalSlowdown gpu:3");
                let reason = self.word(kind, "reason", example)?;
                (kind, Injection::Throttle { gpu: self.gpu(kind, example)?, reason })
            }
            "nvlink-down" => {
                let (kind, example) = ("nvlink-down", "nvlink-down:2 gpu:3");
                let links = self.number(kind, "links", example)?;
                (kind, Injection::NvlinkDown { gpu: self.gpu(kind, example)?, links })
            }
            "nvlink-errors" => {
                let (kind, example) = ("nvlink-errors", "nvlink-errors:5 gpu:3");
                let count = self.number(kind, "count", example)?;
                (kind, Injection::NvlinkErrors { gpu: self.gpu(kind, example)?, count })
            }
            "pcie-replays" => {
                let (kind, example) = ("pcie-replays", "pcie-replays:50 gpu:3");
                let count = self.number(kind, "count", example)?;
                (kind, Injection::PcieReplays { gpu: self.gpu(kind, example)?, count })
            }
            "pcie-width" => {
                let (kind, example) = ("pcie-width", "pcie-width:8 gpu:3");
                let width = self.number(kind, "width", example)?;
                (kind, Injection::PcieWidth { gpu: self.gpu(kind, example)?, width })
            }
            "recovery" => {
                let (kind, example) = ("recovery", "recovery:gpu-reset gpu:3");
                let word = self.word(kind, "action", example)?;
                let action = RecoveryAction::from_words(&word)
                    .map(RecoveryAction::number)
                    .or_else(|| word.parse().ok())
                    .ok_or_else(|| bad("recovery action", &word))?;
                (kind, Injection::Recovery { gpu: self.gpu(kind, example)?, action })
            }
            "hang" => ("hang", Injection::Hang { gpu: self.optional_gpu()? }),
            "driver-error" => {
                let (kind, example) = ("driver-error", "driver-error:DRIVER_NOT_LOADED");
                (kind, Injection::DriverError { code: self.word(kind, "code", example)? })
            }
            "process" => {
                let (kind, example) = ("process", "process:4711 gpu:3 name:python3");
                let pid = self.number(kind, "pid", example)?;
                let gpu = self.gpu(kind, example)?;
                let name = self.named.remove("name").unwrap_or_default();
                let name = short("the name", &name, WORD_LEN_MAX)?;
                (kind, Injection::Process { gpu, pid, name })
            }
            "mig" => {
                let (kind, example) = ("mig", "mig:2 gpu:3");
                let instances = self.number(kind, "instances", example)?;
                (kind, Injection::Mig { gpu: self.gpu(kind, example)?, instances })
            }
            "heal" => ("heal", Injection::Heal { gpu: self.optional_gpu()? }),
            other => return Err(InjectionError::UnknownKind { word: other.to_owned() }),
        })
    }

    fn word(
        &mut self,
        kind: &'static str,
        name: &'static str,
        example: &'static str,
    ) -> Result<String, InjectionError> {
        let value = std::mem::take(&mut self.value);
        if value.is_empty() {
            return Err(InjectionError::Missing { kind, name, example });
        }
        short(name, &value, WORD_LEN_MAX)
    }

    fn number<T: FromStr>(
        &mut self,
        kind: &'static str,
        name: &'static str,
        example: &'static str,
    ) -> Result<T, InjectionError> {
        let word = self.word(kind, name, example)?;
        word.parse().map_err(|_| bad(name, &word))
    }

    fn gpu(&mut self, kind: &'static str, example: &'static str) -> Result<u32, InjectionError> {
        self.optional_gpu()?.ok_or(InjectionError::Missing { kind, name: "gpu", example })
    }

    fn optional_gpu(&mut self) -> Result<Option<u32>, InjectionError> {
        let Some(word) = self.named.remove("gpu") else { return Ok(None) };
        word.parse().map(Some).map_err(|_| bad("number of a GPU", &word))
    }

    fn left(self) -> Option<String> {
        let value = Some(self.value).filter(|value| !value.is_empty());
        value.or_else(|| self.named.into_keys().next())
    }
}

fn bad(name: &str, value: &str) -> InjectionError {
    let value = value.chars().take(WORD_LEN_MAX).collect();
    InjectionError::BadValue { name: name.to_owned(), value }
}

fn short(name: &'static str, text: &str, len_max: usize) -> Result<String, InjectionError> {
    if len_max < text.len() {
        return Err(InjectionError::TooLong { name, len: text.len(), len_max });
    }
    Ok(text.to_owned())
}

impl fmt::Display for Injection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Injection::Xid { gpu, code } => write!(f, "xid:{code} gpu:{gpu}"),
            Injection::Lost { gpu } => write!(f, "lost gpu:{gpu}"),
            Injection::Missing { gpu } => write!(f, "missing gpu:{gpu}"),
            Injection::EccCorrected { gpu, count } => write!(f, "ecc-corrected:{count} gpu:{gpu}"),
            Injection::EccUncorrected { gpu, count } => {
                write!(f, "ecc-uncorrected:{count} gpu:{gpu}")
            }
            Injection::RowRemapPending { gpu } => write!(f, "row-remap-pending gpu:{gpu}"),
            Injection::RowRemapFailed { gpu } => write!(f, "row-remap-failed gpu:{gpu}"),
            Injection::Temperature { gpu, celsius } => write!(f, "temperature:{celsius} gpu:{gpu}"),
            Injection::Throttle { gpu, reason } => write!(f, "throttle:{reason} gpu:{gpu}"),
            Injection::NvlinkDown { gpu, links } => write!(f, "nvlink-down:{links} gpu:{gpu}"),
            Injection::NvlinkErrors { gpu, count } => write!(f, "nvlink-errors:{count} gpu:{gpu}"),
            Injection::PcieReplays { gpu, count } => write!(f, "pcie-replays:{count} gpu:{gpu}"),
            Injection::PcieWidth { gpu, width } => write!(f, "pcie-width:{width} gpu:{gpu}"),
            Injection::Recovery { gpu, action } => match RecoveryAction::from_number(*action) {
                Some(word) => write!(f, "recovery:{} gpu:{gpu}", word.as_str()),
                None => write!(f, "recovery:{action} gpu:{gpu}"),
            },
            Injection::Hang { gpu: Some(gpu) } => write!(f, "hang gpu:{gpu}"),
            Injection::Hang { gpu: None } => f.write_str("hang"),
            Injection::DriverError { code } => write!(f, "driver-error:{code}"),
            Injection::Process { gpu, pid, name } if name.is_empty() => {
                write!(f, "process:{pid} gpu:{gpu}")
            }
            Injection::Process { gpu, pid, name } => {
                write!(f, "process:{pid} gpu:{gpu} name:{name}")
            }
            Injection::Mig { gpu, instances } => write!(f, "mig:{instances} gpu:{gpu}"),
            Injection::Line { text } => write!(f, "line:{text}"),
            Injection::Heal { gpu: Some(gpu) } => write!(f, "heal gpu:{gpu}"),
            Injection::Heal { gpu: None } => f.write_str("heal"),
        }
    }
}
