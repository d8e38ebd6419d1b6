//! What could not be said yet, on disk: bounded, checksummed, the least important dropped first.
//!
//! What a newcomer gets wrong: the agent's own memory is the truth while it runs; the file is for the
//! next one. So a write that fails (a full disk) costs nothing until the process dies, and is made good
//! when the file is written anew from memory, which alone knows what was missed. Metrics are never kept, and the outcomes of commands have a file of their
//! own, the journal, which drops none that was not heard.

use crate::check::CheckOutcome;
use crate::record::{Medium, Opened, RECORD_LEN_MAX, Record, Records};
use crate::signal::{Condition, Signal};
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
/// A signal of the next report, where they are too many for one record.
const PART: u8 = 4;

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
    /// How conditions of GPUs stood when the checks ran.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
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
    /// All there is: the file is written anew.
    All(Box<Spooled>),
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
        self.behind = match keep {
            // Nothing else makes good what was missed.
            Keep::All(_) => kept.is_err(),
            Keep::Signals(_) | Keep::Report(_) | Keep::Taken(_) => self.behind || kept.is_err(),
        };
        kept
    }

    fn try_keep(&mut self, keep: &Keep) -> io::Result<()> {
        let records = match keep {
            Keep::Signals(signals) => {
                signals.iter().map(|signal| record(SIGNAL, signal)).collect::<io::Result<_>>()?
            }
            Keep::Report(report) => report_records(report)?,
            Keep::Taken(sequence) => return self.taken(*sequence),
            Keep::All(spooled) => return self.rewrite(spooled),
        };
        let new = written_len(&records);
        if self.len_max < self.len() + new {
            let spooled = replay(&self.records.read()?);
            self.compact(&spooled)?;
        }
        if self.len_max < self.len() + new {
            return Err(self.full());
        }
        // A process that is killed loses nothing that was written; what a power cut would lose is not
        // worth making a kernel line wait for the disk.
        self.records.append(&records, false)?;
        self.live_len += new;
        Ok(())
    }

    fn taken(&mut self, sequence: u64) -> io::Result<()> {
        if self.is_empty() {
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
        let live = all_records(spooled)?;
        self.live_len = written_len(&live);
        if self.live_len * 2 <= self.len() && !self.is_empty() {
            self.records.replace(&live)?;
        }
        Ok(())
    }

    fn rewrite(&mut self, spooled: &Spooled) -> io::Result<()> {
        let all = all_records(spooled)?;
        let len = written_len(&all);
        if self.len_max < len {
            return Err(self.full());
        }
        self.records.replace(&all)?;
        self.live_len = len;
        Ok(())
    }

    fn full(&self) -> io::Error {
        let what = format!("the spool has {} of {} bytes", self.len(), self.len_max);
        io::Error::new(io::ErrorKind::StorageFull, what)
    }
}

/// What is left when everything has been gone through in order. A report holds as many of the oldest
/// signals as it has; what cannot be understood, from a newer agent perhaps, is passed over.
fn replay(records: &[Record]) -> Spooled {
    let mut spooled = Spooled::default();
    let mut parts = Vec::new();
    for Record { kind, json } in records {
        match *kind {
            PART => parts.extend(serde_json::from_slice::<Signal>(json)),
            SIGNAL => spooled.signals.extend(serde_json::from_slice::<Signal>(json)),
            REPORT => {
                if let Ok(mut report) = serde_json::from_slice::<Report>(json) {
                    report.signals.append(&mut parts);
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

fn all_records(spooled: &Spooled) -> io::Result<Vec<Record>> {
    let mut all = match &spooled.report {
        Some(report) => report_records(report)?,
        None => Vec::new(),
    };
    for signal in &spooled.signals {
        all.push(record(SIGNAL, signal)?);
    }
    Ok(all)
}

/// A report as one record, or in parts if it is too long for one. Parts whose end was torn off are none:
/// their signals are still there by themselves.
fn report_records(report: &Report) -> io::Result<Vec<Record>> {
    let whole = record(REPORT, report)?;
    if whole.json.len() <= RECORD_LEN_MAX {
        return Ok(vec![whole]);
    }
    let mut records: Vec<Record> =
        report.signals.iter().map(|signal| record(PART, signal)).collect::<io::Result<_>>()?;
    records.push(record(REPORT, &Report { signals: Vec::new(), ..report.clone() })?);
    Ok(records)
}

/// How many bytes records take in the file, with their heads.
fn written_len(records: &[Record]) -> u64 {
    records.iter().map(|record| 9 + record.json.len() as u64).sum()
}

fn record(kind: u8, value: &impl Serialize) -> io::Result<Record> {
    Ok(Record { kind, json: serde_json::to_vec(value)? })
}

#[cfg(test)]
mod tests;
