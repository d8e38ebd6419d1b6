//! How things are printed: tables that fit the terminal, colour, and text on which no terminal acts.
//!
//! Names of GPUs, lines of the kernel and words of a driver are somebody else's text: whatever is printed
//! passes `clean` first.

use comfy_table::{Cell, Color, ContentArrangement, Row, Table, presets};
use serde::Serialize;
use std::io::{IsTerminal, Write};

/// What the command is talking to: a person at a terminal, or a pipe.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Screen {
    /// Standard output is a terminal that can be drawn on.
    pub(crate) live: bool,
    /// Columns, if standard output is a terminal.
    pub(crate) width: Option<u16>,
    /// Lines, if standard output is a terminal.
    pub(crate) height: Option<u16>,
    colour: bool,
}

impl Screen {
    pub(crate) fn detect() -> Self {
        let live = std::io::stdout().is_terminal();
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let size = terminal_size::terminal_size_of(std::io::stdout());
        Self {
            live: live && !dumb,
            width: size.map(|(width, _)| width.0),
            height: size.map(|(_, height)| height.0),
            colour: live && !no_color && !dumb,
        }
    }

    /// No terminal, no colour.
    #[cfg(test)]
    pub(crate) fn plain() -> Self {
        Self { live: false, width: None, height: None, colour: false }
    }

    /// A terminal of this size.
    #[cfg(test)]
    pub(crate) fn sized(width: u16, height: u16, colour: bool) -> Self {
        Self { live: true, width: Some(width), height: Some(height), colour }
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
        let mut text: String = picture.lines().take(shown).flat_map(|line| [line, "\n"]).collect();
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

    /// The text in lines that fit, the first after `first` and the others after as many spaces.
    pub(crate) fn paragraph(&self, first: &str, text: &str) -> String {
        let indent = first.chars().count();
        let columns = self.width.map_or(usize::MAX, usize::from).saturating_sub(indent).max(20);
        let lines = wrap(&clean(text), columns);
        let mut out = String::new();
        for (place, line) in lines.iter().enumerate() {
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
pub(crate) enum Paint {
    Good,
    Busy,
    Bad,
    Dim,
    Plain,
}

impl Paint {
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

/// A cell: its text and what it means.
pub(crate) type Said = (String, Paint);

/// What stands where nothing was said.
const UNSAID: &str = "-";

/// The space between columns.
const GAP: usize = 2;

/// A table in the making. On a terminal, columns in which nothing is said are left out, then the least
/// important ones, until each row fits into one line.
#[derive(Clone, Debug)]
pub(crate) struct Grid {
    columns: Vec<Column>,
    rows: Vec<Vec<Said>>,
}

/// A column's header, and how important it is: the highest goes first when there is no room.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    pub(crate) header: &'static str,
    pub(crate) spare: u8,
}

impl Grid {
    pub(crate) fn new(columns: &[Column]) -> Self {
        Self { columns: columns.to_vec(), rows: Vec::new() }
    }

    /// Adds a row; what was not said is shown as `-`.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = Said>) {
        let row = cells.into_iter().map(|(text, paint)| {
            let text = clean(&text);
            (if text.is_empty() { UNSAID.to_owned() } else { text }, paint)
        });
        self.rows.push(row.collect());
    }

    /// The places of the columns that are shown.
    fn shown(&self, width: Option<u16>) -> Vec<usize> {
        let all = 0..self.columns.len();
        let Some(width) = width.map(usize::from) else { return all.collect() };
        let cells = |place: usize| self.rows.iter().filter_map(move |row| row.get(place));
        let says = |place: &usize| cells(*place).any(|(text, _)| text != UNSAID);
        let mut shown: Vec<usize> = all.filter(says).collect();
        let wide = |place: &usize| {
            let header = self.columns.get(*place).map_or(0, |column| column.header.len());
            let longest = cells(*place).map(|(text, _)| text.chars().count()).max();
            header.max(longest.unwrap_or(0)) + GAP
        };
        while width + GAP < shown.iter().map(wide).sum() {
            let spare = |place: &usize| self.columns.get(*place).map_or(0, |column| column.spare);
            let Some(least) =
                shown.iter().copied().filter(|place| spare(place) != 0).max_by_key(spare)
            else {
                break;
            };
            shown.retain(|place| *place != least);
        }
        shown
    }

    /// The lines.
    pub(crate) fn render(&self, screen: &Screen) -> String {
        let shown = self.shown(screen.width);
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
        let headers = shown.iter().filter_map(|place| self.columns.get(*place));
        let mut row = Row::from(headers.map(|column| column.header).collect::<Vec<_>>());
        row.max_height(1);
        table.set_header(row);
        for cells in &self.rows {
            let mut row = Row::new();
            for (text, paint) in shown.iter().filter_map(|place| cells.get(*place)) {
                let cell = Cell::new(text);
                row.add_cell(paint.cell().map_or(cell.clone(), |colour| cell.fg(colour)));
            }
            if screen.width.is_some() {
                row.max_height(1);
            }
            table.add_row(row);
        }
        for column in table.column_iter_mut() {
            column.set_padding((0, 2));
        }
        table.lines().flat_map(|line| [line.trim_end().to_owned(), "\n".to_owned()]).collect()
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
fn wrap(text: &str, columns: usize) -> Vec<String> {
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

/// A value as pretty JSON, on whose text no terminal acts.
pub(crate) fn document(value: &impl Serialize) -> String {
    let text = serde_json::to_string_pretty(value).unwrap_or_default();
    let mut out = String::with_capacity(text.len() + 1);
    for c in text.chars() {
        if c == '\n' || clean(c.encode_utf8(&mut [0; 4])).starts_with(c) {
            out.push(c);
        } else {
            for unit in c.encode_utf16(&mut [0; 2]) {
                out.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    out.push('\n');
    out
}

/// Writes to standard output. A reader that went away (`| head`) is not an error: `false`.
pub(crate) fn print(text: &str) -> bool {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).is_ok()
}

#[cfg(test)]
mod tests;
