//! How things are printed: formats, tables that fit the terminal, colour, ages.
//!
//! Text from the server is somebody else's text: whatever goes to a table passes `clean` first.

use clap::ValueEnum;
use comfy_table::{Cell, Color, ContentArrangement, Row, Table, presets};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::io::{IsTerminal, Write};

/// How results are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Format {
    /// Aligned columns, ages instead of times.
    #[default]
    Table,
    /// The same with more columns.
    Wide,
    /// What the API answered.
    Json,
    /// The same as YAML.
    Yaml,
    /// One `kind/name` a line.
    Name,
}

/// When to use colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Colour {
    /// On a terminal, unless NO_COLOR is set.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// What the command is talking to: a person at a terminal, or a pipe.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Screen {
    /// Standard output is a terminal.
    pub(crate) live: bool,
    /// Somebody can answer a question.
    pub(crate) asks: bool,
    /// Columns, if standard output is a terminal.
    pub(crate) width: Option<u16>,
    /// Lines, if standard output is a terminal.
    pub(crate) height: Option<u16>,
    colour: bool,
}

impl Screen {
    pub(crate) fn detect(colour: Colour) -> Self {
        let live = std::io::stdout().is_terminal();
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        Self {
            live: live && !dumb,
            asks: std::io::stdin().is_terminal() && std::io::stderr().is_terminal(),
            width: Table::new().width(),
            height: terminal_size::terminal_size_of(std::io::stdout()).map(|(_, height)| height.0),
            colour: match colour {
                Colour::Auto => live && !no_color && !dumb,
                Colour::Always => true,
                Colour::Never => false,
            },
        }
    }

    /// No terminal, no colour.
    #[cfg(test)]
    pub(crate) fn plain() -> Self {
        Self { live: false, asks: false, width: None, height: None, colour: false }
    }

    /// No colour, on a terminal of this size.
    #[cfg(test)]
    pub(crate) fn sized(width: Option<u16>, height: Option<u16>) -> Self {
        Self { width, height, ..Self::plain() }
    }

    /// The same, but lines may be as long as they need to be.
    pub(crate) fn unbounded(self) -> Self {
        Self { width: None, ..self }
    }

    /// The same, but narrower: for what is printed with so many spaces in front.
    pub(crate) fn indented(self, columns: u16) -> Self {
        Self { width: self.width.map(|width| width.saturating_sub(columns)), ..self }
    }

    /// A picture to be drawn over the one before it: from the top left, each line cleared before it is
    /// written, and what is below cleared too. What does not fit the terminal is only counted.
    pub(crate) fn in_place(&self, picture: &str, last: &str) -> String {
        // The last line, and the one the cursor is in.
        let rows = self.height.map_or(usize::MAX, |height| usize::from(height).saturating_sub(2));
        let all = picture.lines().count();
        let (shown, more) = match all.checked_sub(rows) {
            None | Some(0) => (all, String::new()),
            Some(cut) => (rows.saturating_sub(1), format!("… and {} more lines\n", cut + 1)),
        };
        let mut text: String =
            picture.lines().take(shown).flat_map(|line| [line, "\n"]).collect::<String>();
        text.push_str(&more);
        text.push_str(last);
        text.push('\n');
        format!("\u{1b}[H{}\u{1b}[J", text.replace('\n', "\u{1b}[K\n"))
    }

    /// The text in a colour, if there is colour.
    pub(crate) fn paint(&self, text: &str, paint: Paint) -> String {
        match (self.colour, paint.code()) {
            (true, Some(code)) => format!("\u{1b}[{code}m{text}\u{1b}[0m"),
            (true, None) | (false, _) => text.to_owned(),
        }
    }
}

/// What a colour means. The word is always printed too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Paint {
    Good,
    Busy,
    Bad,
    Dim,
    Plain,
}

impl Paint {
    /// The colour of a phase of a resource or an adapter, or of a condition's status; of a word about a
    /// node's status, health or liveness; of how far a command is.
    pub(crate) fn of_state(word: &str) -> Self {
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

    const fn cell(self) -> Option<Color> {
        match self {
            Paint::Good => Some(Color::DarkGreen),
            Paint::Busy => Some(Color::DarkYellow),
            Paint::Bad => Some(Color::DarkRed),
            Paint::Dim => Some(Color::DarkGrey),
            Paint::Plain => None,
        }
    }
}

/// A table in the making: headers, then rows of text with a meaning.
#[derive(Clone, Debug)]
pub(crate) struct Grid {
    headers: Vec<&'static str>,
    rows: Vec<Vec<(String, Paint)>>,
    wraps: bool,
    empty: Empty,
}

/// What becomes of columns in which nothing is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Empty {
    Kept,
    LeftOutOnTerminal,
    LeftOut,
}

/// What stands where nothing was said.
const UNSAID: &str = "-";

impl Grid {
    pub(crate) fn new(headers: &[&'static str]) -> Self {
        Self { headers: headers.to_vec(), rows: Vec::new(), wraps: false, empty: Empty::Kept }
    }

    /// On a terminal, goes on in the next line instead of cutting what does not fit.
    pub(crate) fn wrapping(self) -> Self {
        Self { wraps: true, ..self }
    }

    /// On a terminal, leaves out columns in which nothing is said, to make room for the others. A script
    /// finds every column where it was.
    pub(crate) fn sparse(self) -> Self {
        Self { empty: Empty::LeftOutOnTerminal, ..self }
    }

    /// Leaves out columns in which nothing is said, always: for what only people read.
    pub(crate) fn compact(self) -> Self {
        Self { empty: Empty::LeftOut, ..self }
    }

    /// Adds a row; what was not said is shown as `-`.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = (String, Paint)>) {
        let row = cells.into_iter().map(|(text, paint)| {
            let text = clean(&text);
            (if text.is_empty() { UNSAID.to_owned() } else { text }, paint)
        });
        self.rows.push(row.collect());
    }

    /// The lines. On a terminal each row fits, in one line unless the grid wraps.
    pub(crate) fn render(&self, screen: &Screen, headers: bool) -> String {
        let says = |place: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(place));
            self.rows.is_empty() || cells.into_iter().any(|(text, _)| text != UNSAID)
        };
        let keeps_all = match self.empty {
            Empty::Kept => true,
            Empty::LeftOutOnTerminal => screen.width.is_none(),
            Empty::LeftOut => false,
        };
        let shown: Vec<bool> =
            (0..self.headers.len()).map(|place| keeps_all || says(place)).collect();
        let kept = |place: &usize| shown.get(*place).copied().unwrap_or(true);
        let mut table = Table::new();
        table.load_style(presets::NOTHING).set_truncation_indicator("…");
        match screen.width {
            Some(width) => table
                .set_content_arrangement(ContentArrangement::Dynamic)
                // The padding of the last column is not printed.
                .set_width(width.saturating_add(2)),
            None => table.set_content_arrangement(ContentArrangement::Disabled),
        };
        if screen.colour {
            table.enforce_styling();
        } else {
            table.force_no_tty();
        }
        if headers {
            let places = self.headers.iter().enumerate().filter(|(place, _)| kept(place));
            let mut row = Row::from(places.map(|(_, header)| *header).collect::<Vec<_>>());
            row.max_height(1);
            table.set_header(row);
        }
        for cells in &self.rows {
            let mut row = Row::new();
            for (_, (text, paint)) in cells.iter().enumerate().filter(|(place, _)| kept(place)) {
                let cell = Cell::new(text);
                row.add_cell(paint.cell().map_or(cell.clone(), |colour| cell.fg(colour)));
            }
            if screen.width.is_some() && !self.wraps {
                row.max_height(1);
            }
            table.add_row(row);
        }
        for column in table.column_iter_mut() {
            column.set_padding((0, 2));
        }
        let mut text = String::new();
        for line in table.lines() {
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

/// The text without anything that moves a cursor, changes a colour or turns the reading order.
pub(crate) fn clean(text: &str) -> String {
    text.chars()
        .filter_map(|c| match c {
            '\n' | '\r' | '\t' | '\u{2028}' | '\u{2029}' => Some(' '),
            c if c.is_control() => None,
            // Marks that turn or hide text: bidirectional controls, zero-width characters, BOM, tags.
            '\u{061c}'
            | '\u{180e}'
            | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{e0000}'..='\u{e007f}' => None,
            c => Some(c),
        })
        .collect()
}

/// The text in lines of at most so many columns, broken between words; a word that is longer than a line
/// is left whole, so that it can be copied.
pub(crate) fn wrap(text: &str, columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= columns => {
                line.push(' ');
                line.push_str(word);
            }
            Some(_) | None => lines.push(word.to_owned()),
        }
    }
    lines
}

/// The text with so many spaces in front of each line.
pub(crate) fn indent(text: &str, columns: usize) -> String {
    text.lines().map(|line| format!("{:columns$}{line}\n", "")).collect()
}

/// How long ago, in at most two units: `45s`, `12m`, `3h20m`, `5d`.
pub(crate) fn age(then: Timestamp, now: Timestamp) -> String {
    span(now.duration_since(then).max(SignedDuration::ZERO))
}

/// A length of time, in at most two units.
pub(crate) fn span(length: SignedDuration) -> String {
    let seconds = length.as_secs();
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match seconds {
        ..60 => format!("{seconds}s"),
        60..600 => match seconds % 60 {
            0 => format!("{minutes}m"),
            rest => format!("{minutes}m{rest}s"),
        },
        600..3600 => format!("{minutes}m"),
        3600..36_000 => match minutes % 60 {
            0 => format!("{hours}h"),
            rest => format!("{hours}h{rest}m"),
        },
        36_000..172_800 => format!("{hours}h"),
        172_800.. => format!("{days}d"),
    }
}

/// A value as pretty JSON, or as YAML, with a line end.
pub(crate) fn document(value: &Value, yaml: bool) -> String {
    let pretty = || serde_json::to_string_pretty(value).unwrap_or_default();
    if !yaml {
        return escape(&pretty(), false);
    }
    match serde_saphyr::to_string(value) {
        Ok(text) if text.chars().all(harmless) => text,
        // JSON is YAML too, and there every mark can be escaped.
        Ok(_) | Err(_) => escape(&pretty(), true),
    }
}

/// A value as one line of JSON.
pub(crate) fn line(value: &Value) -> String {
    escape(&value.to_string(), false)
}

/// Whether no terminal acts on a character.
fn harmless(c: char) -> bool {
    c == '\n' || clean(c.encode_utf8(&mut [0; 4])).starts_with(c)
}

/// JSON that is the same JSON, but on whose text no terminal acts.
fn escape(text: &str, yaml: bool) -> String {
    let mut out = String::with_capacity(text.len() + 1);
    for c in text.chars() {
        if harmless(c) {
            out.push(c);
        } else if yaml {
            // YAML knows no pairs of surrogates.
            out.push_str(&format!("\\U{:08x}", u32::from(c)));
        } else {
            for unit in c.encode_utf16(&mut [0; 2]) {
                out.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    out.push('\n');
    out
}

/// Writes to standard output. A reader that went away (`| head`) is not an error.
pub(crate) fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    if out.write_all(text.as_bytes()).and_then(|()| out.flush()).is_err() {
        std::process::exit(0);
    }
}

/// Writes a line about what is going on to standard error.
pub(crate) fn note(text: &str) {
    let mut err = std::io::stderr().lock();
    // Nobody is left to tell.
    let _ = writeln!(err, "{text}");
}

#[cfg(test)]
mod tests;
