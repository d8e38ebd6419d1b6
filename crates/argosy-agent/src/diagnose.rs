//! Diagnostics: a fixed list of typed tests of a GPU, run in a child process.
//!
//! Nothing that a command says can become a program or a shell (K15): its parameters are words of a list
//! and numbers in a range, or it is refused. The agent itself never loads CUDA: `run` starts a child
//! that does, listens to it and gives it up at the deadline; `quick` needs no CUDA at all.

pub mod model;
pub mod plan;
pub mod quick;

mod bandwidth;
mod child;
mod compute;
mod cuda;
mod memory;
mod reference;
mod sensor;
mod stress;
mod talk;
pub mod worker;

pub use child::{DiagnoseError, run};
pub use plan::{BadParameter, Plan, Test};
pub use talk::Refusal;

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a test found, for every GPU it tested.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Diagnosis {
    /// Whether nothing is wrong.
    pub passed: bool,
    /// Which test: `quick`, `memory`, …
    pub test: String,
    /// A sentence for people.
    pub message: String,
    /// What is wrong with the machine and not with one GPU: some that are missing, for example.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
    /// What CUDA the driver serves, as `12.4`; `None` if the test did not need it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cuda_version: Option<String>,
    /// How long the test took.
    pub seconds: f64,
    /// By index.
    pub gpus: Vec<GpuDiagnosis>,
}

/// What a test found on one GPU.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GpuDiagnosis {
    /// Its number on this machine.
    pub index: u32,
    /// Its name for life.
    pub uuid: String,
    /// The product.
    pub name: String,
    /// Whether nothing is wrong with it.
    pub passed: bool,
    /// A sentence for people; more than one, if more is wrong.
    pub message: String,
    /// What was measured and counted, by name with the unit last.
    pub figures: BTreeMap<String, f64>,
    /// What a figure should be on a GPU of this model. Empty for models we do not know.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub expected: BTreeMap<String, Expected>,
    /// Words that are not numbers: hashes, addresses.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub words: BTreeMap<String, String>,
    /// How it was under load, over time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub curve: Vec<Point>,
}

/// What a figure should be.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Expected {
    /// Below this, the GPU fails.
    pub low: f64,
    /// What the data sheet promises at most. More is noted, and is no fault of the GPU.
    pub high: f64,
}

/// How a GPU was at one time under load.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Since the load began.
    pub seconds: f64,
    /// Of the chip.
    pub temperature_celsius: Option<u32>,
    /// What it draws.
    pub power_watts: Option<f64>,
    /// Of its multiprocessors.
    pub sm_clock_mhz: Option<u32>,
    /// Why its clocks are held back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub throttle_reasons: Vec<String>,
}

/// How far a test is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// From 0 to 100.
    pub percent: f64,
    /// What it is doing.
    pub message: String,
}

impl Diagnosis {
    /// The word of all GPUs together.
    pub fn of(test: &str, problems: Vec<String>, gpus: Vec<GpuDiagnosis>, seconds: f64) -> Self {
        let failed: Vec<_> =
            gpus.iter().filter(|gpu| !gpu.passed).map(|gpu| gpu.index.to_string()).collect();
        let message = match (failed.len(), gpus.len()) {
            (0, 0) => "no GPU was tested".to_owned(),
            (0, 1) => "the GPU passed".to_owned(),
            (0, count) => format!("all {count} GPUs passed"),
            (1, _) => format!("GPU {} failed", failed.join(", ")),
            (_, count) => format!("{} of {count} GPUs failed: {}", failed.len(), failed.join(", ")),
        };
        let message =
            problems.iter().fold(message, |message, problem| format!("{message}; {problem}"));
        let passed = problems.is_empty() && failed.is_empty() && !gpus.is_empty();
        Self {
            passed,
            test: test.to_owned(),
            message,
            problems,
            cuda_version: None,
            seconds: rounded(seconds),
            gpus,
        }
    }

    /// Several tests of the same GPUs as one.
    pub fn joined(test: &str, parts: Vec<Self>) -> Self {
        let mut gpus: BTreeMap<u32, GpuDiagnosis> = BTreeMap::new();
        let mut problems = Vec::new();
        let (mut seconds, mut cuda_version) = (0.0, None);
        for part in parts {
            seconds += part.seconds;
            cuda_version = part.cuda_version.or(cuda_version);
            problems.extend(part.problems);
            for gpu in part.gpus {
                let message = format!("{}: {}", part.test, gpu.message);
                match gpus.entry(gpu.index) {
                    std::collections::btree_map::Entry::Vacant(place) => {
                        place.insert(GpuDiagnosis { message, ..gpu });
                    }
                    std::collections::btree_map::Entry::Occupied(mut place) => {
                        let whole = place.get_mut();
                        whole.passed &= gpu.passed;
                        whole.message = format!("{}; {message}", whole.message);
                        whole.figures.extend(gpu.figures);
                        whole.expected.extend(gpu.expected);
                        whole.words.extend(gpu.words);
                        whole.curve.extend(gpu.curve);
                    }
                }
            }
        }
        Self { cuda_version, ..Self::of(test, problems, gpus.into_values().collect(), seconds) }
    }
}

impl GpuDiagnosis {
    /// Adds a figure.
    fn figure(&mut self, name: &str, value: f64) {
        self.figures.insert(name.to_owned(), rounded(value));
    }

    /// Compares the figures with what is expected of them, and says what is wrong: with the complaints
    /// the test has itself, and after `well` if there are none.
    fn judged(mut self, mut complaints: Vec<String>, well: &str) -> Self {
        let mut notes = Vec::new();
        for (name, expected) in &self.expected {
            let Some(figure) = self.figures.get(name) else { continue };
            if *figure < expected.low {
                complaints.push(format!("{name} is {figure}, below {}", expected.low));
            } else if expected.high < *figure {
                notes.push(format!("{name} is {figure}, above {}: doubtful", expected.high));
            }
        }
        self.passed = complaints.is_empty();
        self.message = if complaints.is_empty() { well.to_owned() } else { complaints.join("; ") };
        if self.passed && !model::is_known(&self.name) {
            notes.push("no expected range is known for this model".to_owned());
        }
        for note in notes {
            self.message = format!("{}; {note}", self.message);
        }
        self
    }
}

/// Three places after the point: more is noise, and reads badly.
fn rounded(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

/// The best and the middle of several times, in seconds; `None` without any.
fn best_and_median(times: &[f64]) -> Option<(f64, f64)> {
    let mut sorted = times.to_vec();
    sorted.sort_by(f64::total_cmp);
    Some((*sorted.first()?, *sorted.get(sorted.len() / 2)?))
}

#[cfg(test)]
mod tests;
