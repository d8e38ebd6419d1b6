//! Tables.

use crate::screen::{Paint, Screen};
use crate::text::clean;
use comfy_table::{Cell, ContentArrangement, Row, Table, presets};

#[cfg(test)]
mod tests;

/// A cell: its text and what it means.
pub type Said = (String, Paint);

/// What stands where nothing was said.
const UNSAID: &str = "-";

/// The space between columns.
const GAP: u16 = 2;

/// A table in the making: columns, then rows of text with a meaning.
#[derive(Clone, Debug)]
pub struct Grid {
    columns: Vec<Column>,
    rows: Vec<Vec<Said>>,
    wraps: bool,
    empty: Empty,
}

/// A column's header, and how well it can be spared: the highest goes first where a terminal has no room. One with
/// 0 always stays.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// What stands above it.
    pub header: &'static str,
    /// How well it can be spared.
    pub spare: u8,
}

/// What becomes of columns in which nothing is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Empty {
    Kept,
    LeftOutOnTerminal,
    LeftOut,
}

impl Grid {
    /// A table of which no column can be spared.
    pub fn new(headers: &[&'static str]) -> Self {
        Self::of(headers.iter().map(|header| Column { header, spare: 0 }))
    }

    /// A table of columns of which some can be spared.
    pub fn of(columns: impl IntoIterator<Item = Column>) -> Self {
        let columns = columns.into_iter().collect();
        Self { columns, rows: Vec::new(), wraps: false, empty: Empty::Kept }
    }

    /// On a terminal, goes on in the next line instead of cutting what does not fit.
    #[must_use]
    pub fn wrapping(self) -> Self {
        Self { wraps: true, ..self }
    }

    /// On a terminal, leaves out columns in which nothing is said, to make room for the others. A script
    /// finds every column where it was.
    #[must_use]
    pub fn sparse(self) -> Self {
        Self { empty: Empty::LeftOutOnTerminal, ..self }
    }

    /// Leaves out columns in which nothing is said, always: for what only people read.
    #[must_use]
    pub fn compact(self) -> Self {
        Self { empty: Empty::LeftOut, ..self }
    }

    /// Adds a row; what was not said is shown as `-`.
    pub fn row(&mut self, cells: impl IntoIterator<Item = Said>) {
        let row = cells.into_iter().map(|(text, paint)| {
            let text = clean(&text);
            (if text.is_empty() { UNSAID.to_owned() } else { text }, paint)
        });
        self.rows.push(row.collect());
    }

    /// The places of the columns that are shown.
    fn shown(&self, width: Option<u16>) -> Vec<usize> {
        let cells = |place: usize| self.rows.iter().filter_map(move |row| row.get(place));
        let keeps_all = self.rows.is_empty()
            || match self.empty {
                Empty::Kept => true,
                Empty::LeftOutOnTerminal => width.is_none(),
                Empty::LeftOut => false,
            };
        let says = |place: &usize| keeps_all || cells(*place).any(|(text, _)| text != UNSAID);
        let mut shown: Vec<usize> = (0..self.columns.len()).filter(says).collect();
        let Some(width) = width.map(usize::from) else { return shown };
        let gap = usize::from(GAP);
        let spare = |place: &usize| self.columns.get(*place).map_or(0, |column| column.spare);
        let wide = |place: &usize| {
            let header = self.columns.get(*place).map_or(0, |column| column.header.len());
            let longest = cells(*place).map(|(text, _)| text.chars().count()).max();
            header.max(longest.unwrap_or(0)) + gap
        };
        while width + gap < shown.iter().map(wide).sum() {
            let can_go = shown.iter().copied().filter(|place| spare(place) != 0);
            let Some(least) = can_go.max_by_key(spare) else { break };
            shown.retain(|place| *place != least);
        }
        shown
    }

    /// The lines. On a terminal each row fits, in one line unless the grid wraps.
    pub fn render(&self, screen: &Screen, headers: bool) -> String {
        let shown = self.shown(screen.width);
        let mut table = Table::new();
        table.load_style(presets::NOTHING).set_truncation_indicator("…");
        match screen.width {
            Some(width) => table
                .set_content_arrangement(ContentArrangement::Dynamic)
                // The padding of the last column is not printed.
                .set_width(width.saturating_add(GAP)),
            None => table.set_content_arrangement(ContentArrangement::Disabled),
        };
        if screen.colour {
            table.enforce_styling();
        } else {
            table.force_no_tty();
        }
        if headers {
            let columns = shown.iter().filter_map(|place| self.columns.get(*place));
            let mut row = Row::from(columns.map(|column| column.header).collect::<Vec<_>>());
            row.max_height(1);
            table.set_header(row);
        }
        for cells in &self.rows {
            let mut row = Row::new();
            for (text, paint) in shown.iter().filter_map(|place| cells.get(*place)) {
                let cell = Cell::new(text);
                row.add_cell(paint.cell().map_or(cell.clone(), |colour| cell.fg(colour)));
            }
            if screen.width.is_some() && !self.wraps {
                row.max_height(1);
            }
            table.add_row(row);
        }
        for column in table.column_iter_mut() {
            column.set_padding((0, GAP));
        }
        table.lines().flat_map(|line| [line.trim_end().to_owned(), "\n".to_owned()]).collect()
    }
}
