//! How everything of ours prints: tables that fit the terminal, colour, and text on which no terminal acts.
//!
//! Names of GPUs, lines of a kernel and words of a server are somebody else's text: whatever is printed
//! passes [`clean`] first, or [`escape`] where it has to stay the same.

mod grid;
mod profile;
mod screen;
mod text;

pub use grid::{Column, Grid, Said};
pub use profile::{PROFILE, version};
pub use screen::{Paint, Screen};
pub use text::{clean, escape, indent, is_harmless, wrap};

use std::io::Write;

/// Writes to standard output. A reader that went away (`| head`) is not an error: `false`.
pub fn print(text: &str) -> bool {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).is_ok()
}

/// Writes a line about what is going on to standard error.
pub fn note(text: &str) {
    let mut err = std::io::stderr().lock();
    // Nobody is left to tell.
    let _ = writeln!(err, "{text}");
}
