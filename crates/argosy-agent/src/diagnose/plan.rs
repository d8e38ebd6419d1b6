//! What to test, and how: parsed from a command's parameters, or refused with the parameter's name.

use argosy_core::nearest::nearest;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

/// How long a test may work. An hour of stress shows what a day of it would; the server's limit is the same.
const SECONDS: RangeInclusive<u32> = 1..=3600;

/// How many products or copies. More than ten thousand products find nothing that a thousand do not.
const RUNS: RangeInclusive<u32> = 1..=10_000;

/// The highest number of a GPU. No machine has more than 16 today; NVML's own limit is 64.
const GPU: RangeInclusive<u32> = 0..=63;

/// Of the free memory, in hundredths.
const FRACTION: RangeInclusive<u32> = 1..=100;

const MEMORY_SECONDS: u32 = 60;
const MEMORY_FRACTION: u32 = 95;
const BANDWIDTH_RUNS: u32 = 10;
const COMPUTE_RUNS: u32 = 100;
const STRESS_SECONDS: u32 = 60;

/// What opening the driver, compiling the kernels and giving memory back may take on top of the test:
/// eight GPUs without persistence mode need the better part of a minute.
const AROUND: Duration = Duration::from_secs(120);

/// One product of each kind on a slow GPU, with its hash.
const RUN_MAX: Duration = Duration::from_millis(200);

/// One run of the copies of `bandwidth` on all GPUs, which take turns: eight H100s need a quarter of a second.
const BANDWIDTH_RUN_MAX: Duration = Duration::from_millis(500);

/// A test, on which GPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// What to do.
    pub test: Test,
    /// On this GPU only; `None` for all.
    pub gpu: Option<u32>,
    /// Even if other programs use the GPU.
    pub force: bool,
    /// Spoils one bit on purpose, so that it can be seen that it is found. Never from a command.
    pub inject_bit_flip: bool,
    /// NVML, if it is not where the system keeps it. Never from a command.
    pub nvml_library: Option<PathBuf>,
}

/// The tests there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Test {
    /// Inventory, link width, ECC, clocks: what NVML says, without load.
    Quick,
    /// Patterns over the free memory.
    Memory {
        /// At most this long; the first pattern is always finished.
        seconds: u32,
        /// How much of the free memory, in hundredths.
        fraction_percent: u32,
    },
    /// Copies: host to device, device to host, device to device.
    Bandwidth {
        /// How many of each.
        runs: u32,
    },
    /// Matrix products, each compared with the hash it must have.
    Compute {
        /// How many of each kind.
        runs: u32,
    },
    /// Products back to back: heat and power.
    Stress {
        /// How long.
        seconds: u32,
    },
    /// Quick, memory, bandwidth and compute, one after the other.
    All,
}

/// A parameter that is not understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadParameter {
    /// No test is called that.
    #[error("parameter test must be one of {TESTS}, not `{given}`", TESTS = names())]
    Test {
        /// What was given, made fit for quoting.
        given: String,
    },
    /// There is no such parameter.
    #[error("a diagnostic has no parameter `{given}`; {hint}")]
    Unknown {
        /// What was given, made fit for quoting.
        given: String,
        /// Which there are, or which is meant.
        hint: String,
    },
    /// There is one, and this test has no use for it.
    #[error("the test {test} has no parameter {name}")]
    Unused {
        /// The test.
        test: &'static str,
        /// The parameter.
        name: &'static str,
    },
    /// The value is of another form, or out of range.
    #[error("parameter {name} must be {allowed}, not `{given}`")]
    Value {
        /// The parameter.
        name: &'static str,
        /// What it may be.
        allowed: String,
        /// What was given, made fit for quoting.
        given: String,
    },
    /// `test` and `type` say the same thing.
    #[error("`test` and `type` are two names of one parameter; give one of them")]
    Twice,
}

const NAMES: &[&str] = &["test", "type", "gpu", "seconds", "runs", "fraction", "force"];
const TESTS: &[&str] = &["quick", "memory", "bandwidth", "compute", "stress", "all"];

fn names() -> String {
    TESTS.join(", ")
}

impl Test {
    /// Its word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Quick => "quick",
            Self::Memory { .. } => "memory",
            Self::Bandwidth { .. } => "bandwidth",
            Self::Compute { .. } => "compute",
            Self::Stress { .. } => "stress",
            Self::All => "all",
        }
    }

    /// How long it may take before something is wrong with the driver, and not with patience.
    pub fn time_max(self) -> Duration {
        let seconds = |seconds: u32| Duration::from_secs(u64::from(seconds));
        AROUND
            + match self {
                Self::Quick => Duration::ZERO,
                Self::Bandwidth { runs } => BANDWIDTH_RUN_MAX * runs,
                // Memory may end its last pass late.
                Self::Memory { seconds: limit, .. } => seconds(limit).mul_f64(1.2),
                Self::Stress { seconds: limit } => seconds(limit),
                Self::Compute { runs } => RUN_MAX * runs,
                Self::All => {
                    return self.steps().iter().map(|step| step.time_max()).sum();
                }
            }
    }

    /// What it is made of: itself, or the tests that `all` means.
    pub fn steps(self) -> Vec<Self> {
        match self {
            Self::All => vec![
                Self::Quick,
                Self::Memory { seconds: 30, fraction_percent: MEMORY_FRACTION },
                Self::Bandwidth { runs: BANDWIDTH_RUNS },
                Self::Compute { runs: COMPUTE_RUNS },
            ],
            single @ (Self::Quick
            | Self::Memory { .. }
            | Self::Bandwidth { .. }
            | Self::Compute { .. }
            | Self::Stress { .. }) => vec![single],
        }
    }
}

impl Plan {
    /// All GPUs, with care.
    pub fn new(test: Test) -> Self {
        Self { test, gpu: None, force: false, inject_bit_flip: false, nvml_library: None }
    }

    /// Reads a command's parameters: `test` (or `type`; `all` if neither), `gpu`, `seconds`, `runs`,
    /// `fraction`, `force`.
    pub fn parse(parameters: &BTreeMap<String, String>) -> Result<Self, BadParameter> {
        if let Some(given) = parameters.keys().find(|name| !NAMES.contains(&name.as_str())) {
            let hint = match nearest(&quoted(given), NAMES.iter().copied()) {
                Some(meant) => format!("is `{meant}` meant?"),
                None => format!("it has {}", NAMES.join(", ")),
            };
            return Err(BadParameter::Unknown { given: quoted(given), hint });
        }
        if parameters.contains_key("test") && parameters.contains_key("type") {
            return Err(BadParameter::Twice);
        }
        let word = parameters.get("test").or_else(|| parameters.get("type"));
        let mut reader = Reader { parameters, used: Vec::new() };
        let test = match word.map_or("all", String::as_str) {
            "quick" => Test::Quick,
            "memory" => Test::Memory {
                seconds: reader.number("seconds", SECONDS)?.unwrap_or(MEMORY_SECONDS),
                fraction_percent: reader.fraction()?.unwrap_or(MEMORY_FRACTION),
            },
            "bandwidth" => {
                Test::Bandwidth { runs: reader.number("runs", RUNS)?.unwrap_or(BANDWIDTH_RUNS) }
            }
            "compute" => {
                Test::Compute { runs: reader.number("runs", RUNS)?.unwrap_or(COMPUTE_RUNS) }
            }
            "stress" => Test::Stress {
                seconds: reader.number("seconds", SECONDS)?.unwrap_or(STRESS_SECONDS),
            },
            "all" => Test::All,
            other => return Err(BadParameter::Test { given: quoted(other) }),
        };
        let gpu = reader.number("gpu", GPU)?;
        let force = reader.boolean("force")?;
        for name in ["seconds", "runs", "fraction"] {
            if parameters.contains_key(name) && !reader.used.contains(&name) {
                return Err(BadParameter::Unused { test: test.as_str(), name });
            }
        }
        Ok(Self { gpu, force, ..Self::new(test) })
    }

    /// The parameters that `parse` makes this of: all but what never comes from a command.
    pub fn parameters(&self) -> BTreeMap<String, String> {
        let mut all = BTreeMap::from([("test".to_owned(), self.test.as_str().to_owned())]);
        let mut put = |name: &str, value: String| all.insert(name.to_owned(), value);
        match self.test {
            Test::Memory { seconds, fraction_percent } => {
                put("seconds", seconds.to_string());
                put(
                    "fraction",
                    format!("{}.{:02}", fraction_percent / 100, fraction_percent % 100),
                );
            }
            Test::Bandwidth { runs } | Test::Compute { runs } => {
                put("runs", runs.to_string());
            }
            Test::Stress { seconds } => {
                put("seconds", seconds.to_string());
            }
            Test::Quick | Test::All => {}
        }
        if let Some(gpu) = self.gpu {
            put("gpu", gpu.to_string());
        }
        if self.force {
            put("force", "true".to_owned());
        }
        all
    }
}

struct Reader<'a> {
    parameters: &'a BTreeMap<String, String>,
    used: Vec<&'static str>,
}

impl Reader<'_> {
    fn take(&mut self, name: &'static str) -> Option<&str> {
        self.used.push(name);
        self.parameters.get(name).map(String::as_str)
    }

    /// A whole number; only digits: `+5`, ` 5` and `5s` are somebody's mistake.
    fn number(
        &mut self,
        name: &'static str,
        range: RangeInclusive<u32>,
    ) -> Result<Option<u32>, BadParameter> {
        let Some(given) = self.take(name) else { return Ok(None) };
        let number = digits(given).filter(|number| range.contains(number));
        number.map(Some).ok_or_else(|| BadParameter::Value {
            name,
            allowed: format!("a whole number from {} to {}", range.start(), range.end()),
            given: quoted(given),
        })
    }

    /// `0.01` to `1`, as hundredths: at most two digits after the point.
    fn fraction(&mut self) -> Result<Option<u32>, BadParameter> {
        let Some(given) = self.take("fraction") else { return Ok(None) };
        hundredths(given).filter(|percent| FRACTION.contains(percent)).map(Some).ok_or_else(|| {
            BadParameter::Value {
                name: "fraction",
                allowed: "a number from 0.01 to 1 with at most two digits after the point"
                    .to_owned(),
                given: quoted(given),
            }
        })
    }

    fn boolean(&mut self, name: &'static str) -> Result<bool, BadParameter> {
        match self.take(name) {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(given) => Err(BadParameter::Value {
                name,
                allowed: "`true` or `false`".to_owned(),
                given: quoted(given),
            }),
        }
    }
}

fn digits(text: &str) -> Option<u32> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) { text.parse().ok() } else { None }
}

fn hundredths(text: &str) -> Option<u32> {
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    let part = match part.len() {
        1 => digits(part)? * 10,
        2 => digits(part)?,
        _ => return None,
    };
    digits(whole)?.checked_mul(100)?.checked_add(part)
}

/// What somebody sent, cut and without control characters, so that a line of ours stays one.
fn quoted(given: &str) -> String {
    const LEN_MAX: usize = 40;
    let plain: String = given.chars().take(LEN_MAX).flat_map(char::escape_debug).collect();
    if given.chars().nth(LEN_MAX).is_some() { format!("{plain}…") } else { plain }
}

#[cfg(test)]
mod tests;
