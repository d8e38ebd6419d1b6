//! The text of a scenario file becomes a scenario, or every complaint about it at once.
//!
//! Which dialect a file is in is seen from its keys: `events`, `stress`, or a `fleet` that is a list are Navarch's.

use super::tree::{self, At, Desk};
use super::{Scenario, argosy, navarch};
use std::fmt;

/// The longest text that is read, in bytes. A fleet of ten thousand nodes one by one fits.
pub const TEXT_LEN_MAX: usize = 4 * 1024 * 1024;

/// Something in a file that makes it no scenario.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{message}{}", Place(self), Fix(fix))]
pub struct ScenarioError {
    /// The file, as its reader called it.
    pub file: String,
    /// The line, from 1; 0 if it is about the whole file.
    pub line: u32,
    /// The column, from 1; 0 if it is about the whole file.
    pub column: u32,
    /// The key: `trouble.hardware[2].effects[0]`.
    pub key: String,
    /// What is wrong, as a sentence without its full stop.
    pub message: String,
    /// What to do about it; empty if the sentence says it.
    pub fix: String,
}

/// Something in a file that is played, and perhaps not as its author thinks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// The file, as its reader called it.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1.
    pub column: u32,
    /// The key.
    pub key: String,
    /// What is to be known, as a sentence without its full stop.
    pub message: String,
}

struct Place<'a>(&'a ScenarioError);

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ScenarioError { file, line, column, key, .. } = self.0;
        place(f, file, *line, *column, key)
    }
}

struct Fix<'a>(&'a str);

impl fmt::Display for Fix<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(f, "; {}", self.0) }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        place(f, &self.file, self.line, self.column, &self.key)?;
        f.write_str(&self.message)
    }
}

fn place(f: &mut fmt::Formatter<'_>, file: &str, line: u32, column: u32, key: &str) -> fmt::Result {
    f.write_str(file)?;
    if line != 0 {
        write!(f, ":{line}:{column}")?;
    }
    f.write_str(": ")?;
    if key.is_empty() { Ok(()) } else { write!(f, "{key}: ") }
}

/// Reads a scenario; `file` is what complaints call it.
///
/// # Errors
/// Everything that is wrong with it, in the order of the file; never nothing.
pub fn read(text: &str, file: &str) -> Result<(Scenario, Vec<Warning>), Vec<ScenarioError>> {
    let tree = tree::parse(text, file).map_err(|error| vec![error])?;
    let theirs = navarch::is_navarch(&tree);
    let desk = Desk::new(file, theirs);
    let root = At::root(&desk, &tree);
    let made = if theirs { navarch::scenario(&root) } else { argosy::scenario(&root) };
    desk.close(made)
}

#[cfg(test)]
mod tests;
