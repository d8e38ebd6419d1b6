//! What a command is talking to, and what colours mean there.

use crate::text::{clean, wrap};
use comfy_table::Color;
use std::io::IsTerminal;

#[cfg(test)]
mod tests;

/// What the command is talking to: a person at a terminal, or a pipe.
#[derive(Clone, Copy, Debug)]
pub struct Screen {
    /// Standard output is a terminal that can be drawn on.
    pub live: bool,
    /// Somebody can answer a question.
    pub asks: bool,
    /// Columns, if standard output is a terminal.
    pub width: Option<u16>,
    /// Lines, if standard output is a terminal.
    pub height: Option<u16>,
    /// Colour is wanted.
    pub colour: bool,
}

impl Screen {
    /// What there is. If nobody says whether there is to be colour, there is on a terminal, unless NO_COLOR is set.
    pub fn detect(colour: Option<bool>) -> Self {
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let live = std::io::stdout().is_terminal() && !dumb;
        let size = terminal_size::terminal_size_of(std::io::stdout());
        Self {
            live,
            asks: std::io::stdin().is_terminal() && std::io::stderr().is_terminal(),
            width: size.map(|(width, _)| width.0),
            height: size.map(|(_, height)| height.0),
            colour: colour.unwrap_or(live && !no_color),
        }
    }

    /// No terminal, no colour.
    pub fn plain() -> Self {
        Self { live: false, asks: false, width: None, height: None, colour: false }
    }

    /// No colour, on a terminal of this size.
    pub fn sized(width: Option<u16>, height: Option<u16>) -> Self {
        Self { width, height, ..Self::plain() }
    }

    /// The same, but lines may be as long as they need to be.
    #[must_use]
    pub fn unbounded(self) -> Self {
        Self { width: None, ..self }
    }

    /// The same, but narrower: for what is printed with so many spaces in front.
    #[must_use]
    pub fn indented(self, columns: u16) -> Self {
        Self { width: self.width.map(|width| width.saturating_sub(columns)), ..self }
    }

    /// A picture to be drawn over the one before it: from the top left, each line cleared before it is
    /// written, and what is below cleared too. What does not fit the terminal is only counted.
    pub fn in_place(&self, picture: &str, last: &str) -> String {
        // The last line, and the one the cursor is in.
        let rows = self.height.map_or(usize::MAX, |height| usize::from(height).saturating_sub(2));
        let all = picture.lines().count();
        let (shown, more) = match all.checked_sub(rows) {
            None | Some(0) => (all, String::new()),
            Some(cut) => (rows.saturating_sub(1), format!("… and {} more lines\n", cut + 1)),
        };
        let mut text: String = picture.lines().take(shown).flat_map(|line| [line, "\n"]).collect();
        text.push_str(&more);
        text.push_str(last);
        text.push('\n');
        format!("\u{1b}[H{}\u{1b}[J", text.replace('\n', "\u{1b}[K\n"))
    }

    /// The text in a colour, if there is colour.
    pub fn paint(&self, text: &str, paint: Paint) -> String {
        match (self.colour, paint.code()) {
            (true, Some(code)) => format!("\u{1b}[{code}m{text}\u{1b}[0m"),
            (true, None) | (false, _) => text.to_owned(),
        }
    }

    /// The text in lines that fit, the first after `first` and the others after as many spaces.
    pub fn paragraph(&self, first: &str, text: &str) -> String {
        let indent = first.chars().count();
        let columns = self.width.map_or(usize::MAX, usize::from).saturating_sub(indent).max(20);
        let mut out = String::new();
        for (place, line) in wrap(&clean(text), columns).iter().enumerate() {
            let before = if place == 0 { first.to_owned() } else { " ".repeat(indent) };
            out.push_str(&before);
            out.push_str(line);
            out.push('\n');
        }
        out
    }
}

/// What a colour means. The word is always printed too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paint {
    /// As it should be.
    Good,
    /// On its way, or not quite well.
    Busy,
    /// Wrong.
    Bad,
    /// Over, or not known.
    Dim,
    /// Neither.
    Plain,
}

impl Paint {
    /// The colour of a phase of a resource or an adapter, or of a condition's status; of a word about a
    /// node's status, health or liveness; of how far a command is.
    pub fn of_state(word: &str) -> Self {
        match word {
            "Ready" | "Complete" | "True" => Paint::Good,
            "ACTIVE" | "HEALTHY" | "Fresh" | "healthy" => Paint::Good,
            "completed" | "Completed" | "Drained" => Paint::Good,
            "Failed" | "False" => Paint::Bad,
            "UNHEALTHY" | "Unreachable" | "unhealthy" => Paint::Bad,
            "failed" | "expired" | "TimedOut" | "Expired" => Paint::Bad,
            "Terminating" | "Not Ready" | "Running" => Paint::Busy,
            "CORDONED" | "DRAINING" | "Cordoned" | "Draining" => Paint::Busy,
            "DEGRADED" | "Suspect" | "degraded" => Paint::Busy,
            "acknowledged" | "Forced" => Paint::Busy,
            "Pending" | "Unknown" | "UNKNOWN" | "TERMINATED" | "Terminated" => Paint::Dim,
            "pending" | "cancelled" | "Cancelled" => Paint::Dim,
            _ => Paint::Plain,
        }
    }

    const fn code(self) -> Option<&'static str> {
        match self {
            Paint::Good => Some("32"),
            Paint::Busy => Some("33"),
            Paint::Bad => Some("31"),
            Paint::Dim => Some("2"),
            Paint::Plain => None,
        }
    }

    pub(crate) const fn cell(self) -> Option<Color> {
        match self {
            Paint::Good => Some(Color::DarkGreen),
            Paint::Busy => Some(Color::DarkYellow),
            Paint::Bad => Some(Color::DarkRed),
            Paint::Dim => Some(Color::DarkGrey),
            Paint::Plain => None,
        }
    }
}
