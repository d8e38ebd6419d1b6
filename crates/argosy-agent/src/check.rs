//! Health checks: the word of each, with a reason that a program can read.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What one check found, this time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckOutcome {
    /// The check: `boot`, `nvml`, `xid`, `host`, `agent`.
    pub check: String,
    /// Its word.
    pub word: Word,
    /// One word for programs: `ProbeHung`, `GpuMissing`; empty if all is well.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// A sentence for people.
    pub message: String,
    /// More about it: numbers and short words.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub details: BTreeMap<String, String>,
}

/// How well something is. The order is the order of badness.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Word {
    /// Well.
    Healthy,
    /// Well enough to work, with a warning.
    Degraded,
    /// Not fit for work.
    Unhealthy,
}

impl CheckOutcome {
    /// A check that found nothing wrong.
    pub fn healthy(check: &str, message: impl Into<String>) -> Self {
        Self {
            check: check.to_owned(),
            word: Word::Healthy,
            reason: String::new(),
            message: message.into(),
            details: BTreeMap::new(),
        }
    }

    /// A check that found something.
    pub fn fault(check: &str, word: Word, reason: &str, message: impl Into<String>) -> Self {
        Self { word, reason: reason.to_owned(), ..Self::healthy(check, message) }
    }
}
