//! What could not be said yet, on disk: bounded, checksummed, the least important dropped first.
//!
//! What a newcomer gets wrong: the agent's own memory is the truth while it runs; the file is for the
//! next one. So a write that fails (a full disk) costs nothing until the process dies, and is made good
//! by the next that succeeds. Metrics are never kept, and the outcomes of commands have a file of their
//! own, the journal, which drops none that was not heard.

use crate::check::CheckOutcome;
use crate::record::{Medium, Opened, Record, Records};
use crate::signal::Signal;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::io;

/// The most the file may take, if nobody says otherwise. A thousand signals, which is what an agent keeps,
/// with a kernel line each are about one and a half megabytes.
pub const SPOOL_LEN_MAX: u64 = 8 * 1024 * 1024;

/// A file shorter than this is not worth compacting.
const COMPACT_FROM: u64 = 64 * 1024;

const SIGNAL: u8 = 1;
const REPORT: u8 = 2;
const TAKEN: u8 = 3;

/// A report with its number, as it was made: sent again, it is the same.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Its number.
    pub sequence: u64,
    /// When the checks ran.
    pub checked_at: Timestamp,
    /// What they found.
    #[serde(default)]
    pub outcomes: Vec<CheckOutcome>,
    /// What happened.
    #[serde(default)]
    pub signals: Vec<Signal>,
}

/// What is in the spool.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spooled {
    /// A report that was made and not acknowledged.
    pub report: Option<Report>,
    /// Signals that are in no report, the oldest first.
    pub signals: Vec<Signal>,
}

/// The file.
pub struct Spool {
    records: Records,
    len_max: u64,
    /// Bytes of what still counts, about.
    live_len: u64,
    /// Something could not be written: the file says less than is known.
    behind: bool,
}

/// Something for the spool.
#[derive(Clone, Debug, PartialEq)]
pub enum Keep {
    /// Signals that were seen.
    Signals(Vec<Signal>),
    /// A report made of the oldest signals.
    Report(Box<Report>),
    /// A report that was taken.
    Taken(u64),
}

impl Spool {
    /// Opens the spool. Gives what is in it, and how many bytes of damage were cut off.
    ///
    /// # Errors
    /// If it cannot be read at all.
    pub fn open(medium: Box<dyn Medium>, len_max: u64) -> io::Result<(Self, Spooled, u64)> {
        let (records, Opened { records: found, cut_bytes }) = Records::open(medium)?;
        let spooled = replay(&found);
        let mut spool = Self { records, len_max, live_len: 0, behind: false };
        spool.live_len = spool.records.len();
        // Whoever finds rubbish tidies it up now, while nobody waits.
        _ = spool.compact(&spooled);
        Ok((spool, spooled, cut_bytes))
    }

    /// How long the file is, in bytes.
    pub fn len(&self) -> u64 {
        self.records.len()
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Whether something could not be written and would be lost by a crash now.
    pub fn is_behind(&self) -> bool {
        self.behind
    }

    /// Writes something down.
    ///
    /// # Errors
    /// If the disk is full, or the file as long as it may be. Nothing is lost while the process lives.
    pub fn keep(&mut self, keep: &Keep) -> io::Result<()> {
        let kept = self.try_keep(keep);
        self.behind |= kept.is_err();
        kept
    }

    fn try_keep(&mut self, keep: &Keep) -> io::Result<()> {
        let records = match keep {
            Keep::Signals(signals) => {
                signals.iter().map(|signal| record(SIGNAL, signal)).collect::<io::Result<_>>()?
            }
            Keep::Report(report) => vec![record(REPORT, report)?],
            Keep::Taken(sequence) => return self.taken(*sequence),
        };
        let new: u64 = records.iter().map(|record: &Record| 9 + record.json.len() as u64).sum();
        if self.len_max < self.len() + new {
            let spooled = replay(&self.records.read()?);
            self.compact(&spooled)?;
        }
        if self.len_max < self.len() + new {
            let what = format!("the spool has {} of {} bytes", self.len(), self.len_max);
            return Err(io::Error::new(io::ErrorKind::StorageFull, what));
        }
        // A process that is killed loses nothing that was written; what a power cut would lose is not
        // worth making a kernel line wait for the disk.
        self.records.append(&records, false)?;
        self.live_len += new;
        Ok(())
    }

    fn taken(&mut self, sequence: u64) -> io::Result<()> {
        if self.is_empty() {
            self.behind = false;
            return Ok(());
        }
        self.records.append(&[record(TAKEN, &sequence)?], false)?;
        let spooled = replay(&self.records.read()?);
        let idle = spooled.report.is_none() && spooled.signals.is_empty();
        if idle || COMPACT_FROM < self.len() {
            self.compact(&spooled)?;
        }
        Ok(())
    }

    /// Writes what still counts anew, if that is less than half of what is there.
    fn compact(&mut self, spooled: &Spooled) -> io::Result<()> {
        let signals = spooled.signals.iter().map(|signal| record(SIGNAL, signal));
        let report = spooled.report.iter().map(|report| record(REPORT, report));
        let live: Vec<Record> = report.chain(signals).collect::<io::Result<_>>()?;
        self.live_len = live.iter().map(|record| 9 + record.json.len() as u64).sum();
        if self.live_len * 2 <= self.len() && !self.is_empty() {
            self.records.replace(&live)?;
            self.behind = false;
        }
        Ok(())
    }
}

/// What is left when everything has been gone through in order. A report holds as many of the oldest
/// signals as it has; what cannot be understood, from a newer agent perhaps, is passed over.
fn replay(records: &[Record]) -> Spooled {
    let mut spooled = Spooled::default();
    for Record { kind, json } in records {
        match *kind {
            SIGNAL => spooled.signals.extend(serde_json::from_slice::<Signal>(json)),
            REPORT => {
                if let Ok(report) = serde_json::from_slice::<Report>(json) {
                    spooled.signals.retain(|signal| !report.signals.contains(signal));
                    spooled.report = Some(report);
                }
            }
            TAKEN => {
                if let Ok(taken) = serde_json::from_slice::<u64>(json) {
                    spooled.report.take_if(|report| report.sequence <= taken);
                }
            }
            _ => {}
        }
    }
    spooled
}

fn record(kind: u8, value: &impl Serialize) -> io::Result<Record> {
    Ok(Record { kind, json: serde_json::to_vec(value)? })
}

#[cfg(test)]
mod tests;
