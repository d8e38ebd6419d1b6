//! What the child says to the agent: one JSON value a line.

use crate::diagnose::{Diagnosis, Progress};
use serde::{Deserialize, Serialize};

/// The longest line. The longest we write is a result with the curves of sixteen GPUs: some 400 kB. What
/// is longer is not ours, and is skipped without being kept.
pub(super) const LINE_LEN_MAX: usize = 1 << 20;

/// How many lines that are not ours are borne with. A driver's library may print a few; more is a
/// program gone mad.
pub(super) const STRANGE_LINES_MAX: u32 = 100;

/// One line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Said {
    /// How far it is.
    Progress(Progress),
    /// It will not be done, and why. The last line.
    Refused(Refusal),
    /// What was found. The last line.
    Done(Box<Diagnosis>),
}

/// Why a test was not begun.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Refusal {
    /// There is no driver.
    #[error("{message}")]
    Absent {
        /// What was looked for.
        message: String,
    },
    /// There is a driver, and it does not work.
    #[error("the driver does not work: {message}")]
    Driver {
        /// What it said.
        message: String,
    },
    /// Somebody's work is on the GPU.
    #[error(
        "GPU {gpu} is in use by process {pid}{}; drain the node first, or test with force",
        if program.is_empty() { String::new() } else { format!(" ({program})") }
    )]
    Busy {
        /// Which GPU.
        gpu: u32,
        /// Who uses it.
        pid: u32,
        /// Its name; empty if it is not ours to see.
        program: String,
    },
    /// The GPU is cut into instances.
    #[error("GPU {gpu} is cut into MIG instances; these tests are of whole GPUs")]
    Mig {
        /// Which GPU.
        gpu: u32,
    },
    /// There is none of that number.
    #[error("there is no GPU {index}; there are {count}, counted from 0")]
    NoSuchGpu {
        /// What was asked for.
        index: u32,
        /// How many there are.
        count: u32,
    },
}
