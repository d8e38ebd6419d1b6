//! The duty file: whether this machine takes work, for other programs to watch.

use crate::record::replace_file;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::Path;

/// The name of the file in the data directory.
pub const DUTY_FILE: &str = "duty";

/// Whether this machine takes work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Duty {
    /// The word.
    pub state: DutyState,
    /// Why, for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// By which command.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub command: String,
    /// Since when.
    pub since: Timestamp,
}

/// The words for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DutyState {
    /// It takes work.
    Active,
    /// It takes no new work.
    Cordoned,
    /// It takes no new work, and what runs is to end.
    Draining,
}

/// Writes the file: whoever reads it finds the old word or the new one.
///
/// # Errors
/// What the operating system said.
pub fn write(data_dir: &Path, duty: &Duty) -> io::Result<()> {
    let mut text = serde_json::to_vec(duty)?;
    text.push(b'\n');
    replace_file(&data_dir.join(DUTY_FILE), &text)
}

/// Reads the file; `None` if there is none, or nobody can understand it.
pub fn read(data_dir: &Path) -> Option<Duty> {
    let text = std::fs::read(data_dir.join(DUTY_FILE)).ok()?;
    serde_json::from_slice(&text).ok()
}
