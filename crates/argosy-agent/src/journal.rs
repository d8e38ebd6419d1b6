//! Commands that were begun and how they ended, on disk: so that none takes effect twice.
//!
//! Flow: an entry without an end is written before a command is begun, the same with its end after it,
//! and once more when the control plane has heard of it. The last entry of a command counts.
//! Guarantees: when `note` returns well, the entry survives a power cut.

use crate::command::{End, Order};
use crate::record::{Medium, Opened, Record, Records};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::io;

/// How many commands that have ended are remembered, so that one that comes again is answered and not
/// done: months of what a node is told, and more than the control plane remembers itself.
pub const ENDED_MAX: usize = 256;

/// The file is written anew when it has twice as many records as count, and more than this.
const COMPACT_FROM: usize = 2 * ENDED_MAX;

const ENTRY: u8 = 1;

/// A command that was begun, or refused.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// What was to be done.
    pub order: Order,
    /// During which start of the machine.
    pub boot_id: String,
    /// When it was begun.
    pub begun_at: Timestamp,
    /// How it ended; `None` while it has not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<End>,
    /// Whether the control plane has heard how it ended.
    #[serde(default)]
    pub answered: bool,
}

/// The file.
pub struct Journal {
    records: Records,
    entries: Vec<Entry>,
    written: usize,
    /// Something could not be written, so the whole file is to be.
    behind: bool,
}

impl Journal {
    /// Opens the journal. Gives its entries, the oldest first, and how many bytes of damage were cut off.
    ///
    /// # Errors
    /// If it cannot be read: then nothing may be begun, because nobody knows what was.
    pub fn open(medium: Box<dyn Medium>) -> io::Result<(Self, Vec<Entry>, u64)> {
        let (records, Opened { records: found, cut_bytes }) = Records::open(medium)?;
        let mut journal =
            Self { records, entries: Vec::new(), written: found.len(), behind: false };
        for Record { kind, json } in found {
            if kind == ENTRY
                && let Ok(entry) = serde_json::from_slice(&json)
            {
                journal.remember(entry);
            }
        }
        let entries = journal.entries.clone();
        Ok((journal, entries, cut_bytes))
    }

    /// Writes an entry down. When it returns, the entry is on disk.
    ///
    /// # Errors
    /// If it is not: the disk is full, for example. It is remembered all the same, and written with the
    /// next entry that can be.
    pub fn note(&mut self, entry: Entry) -> io::Result<()> {
        self.remember(entry.clone());
        let noted = if self.behind || (COMPACT_FROM < self.written) {
            self.rewrite()
        } else {
            record(&entry).and_then(|record| self.records.append(&[record], true))
        };
        self.behind = noted.is_err();
        if noted.is_ok() {
            self.written += 1;
        }
        noted
    }

    /// Writes everything anew, for what could not be written before.
    ///
    /// # Errors
    /// If it still cannot be.
    pub fn catch_up(&mut self) -> io::Result<()> {
        let written = self.rewrite();
        self.behind = written.is_err();
        written
    }

    fn rewrite(&mut self) -> io::Result<()> {
        let all: Vec<Record> = self.entries.iter().map(record).collect::<io::Result<_>>()?;
        self.records.replace(&all)?;
        self.written = all.len();
        Ok(())
    }

    fn remember(&mut self, entry: Entry) {
        match self.entries.iter_mut().find(|known| known.order.id == entry.order.id) {
            Some(known) => *known = entry,
            None => self.entries.push(entry),
        }
        while ENDED_MAX < self.entries.len() {
            // One that was not heard, or not ended, is never forgotten for one that was.
            let heard = self.entries.iter().position(|entry| entry.answered).unwrap_or(0);
            self.entries.remove(heard);
        }
    }
}

fn record(entry: &Entry) -> io::Result<Record> {
    Ok(Record { kind: ENTRY, json: serde_json::to_vec(entry)? })
}

#[cfg(test)]
mod tests;
