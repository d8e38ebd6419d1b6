//! The thread that writes to disk. A disk that hangs hangs this thread and nothing else.

use crate::agent::{Agent, Event};
use crate::journal::{Entry, Journal};
use crate::metrics::Figures;
use crate::record::Disk;
use crate::spool::{Keep, SPOOL_LEN_MAX, Spool, Spooled};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc as std_mpsc;
use tokio::sync::mpsc;

/// How many writes may wait. More is a disk that does not answer: signals are then in memory alone, and
/// commands are refused, which is better than growing.
const WRITES_MAX: usize = 256;

enum Write {
    Keep(Keep),
    Note(Box<Entry>),
}

/// A way to the thread.
pub(super) struct DiskThread {
    writes: std_mpsc::SyncSender<Write>,
    /// Whether the spool says less than is known.
    pub(super) behind: Arc<AtomicBool>,
    thread: std::thread::JoinHandle<()>,
}

/// What was on disk.
pub(super) struct Found {
    pub(super) spooled: Spooled,
    pub(super) journal: Vec<Entry>,
    /// How many bytes of damage were cut off the two files.
    pub(super) cut_bytes: u64,
}

impl DiskThread {
    /// Opens the files and starts the thread. What is noted is told to `events`.
    pub(super) fn start(
        data_dir: &Path,
        figures: Arc<Figures>,
        events: mpsc::Sender<Event>,
    ) -> io::Result<(Self, Found)> {
        let spool = Box::new(Disk::open(&data_dir.join("spool"))?);
        let (mut spool, spooled, cut_spool) = Spool::open(spool, SPOOL_LEN_MAX)?;
        let journal = Box::new(Disk::open(&data_dir.join("journal"))?);
        let (mut journal, entries, cut_journal) = Journal::open(journal)?;
        let (writes, waiting) = std_mpsc::sync_channel(WRITES_MAX);
        let behind = Arc::new(AtomicBool::new(false));
        let told = behind.clone();
        let thread = std::thread::Builder::new().name("disk".to_owned()).spawn(move || {
            for write in waiting {
                match write {
                    Write::Keep(keep) => {
                        let was = spool.is_behind();
                        if let (Err(error), false) = (spool.keep(&keep), was) {
                            tracing::warn!(%error, "cannot spool; keeping it in memory");
                        }
                        told.store(spool.is_behind(), Ordering::Relaxed);
                        Figures::set(&figures.spool_bytes, spool.len());
                    }
                    Write::Note(entry) => {
                        let command = entry.order.id.clone();
                        let error = journal.note(*entry).err().map(|error| error.to_string());
                        if events.blocking_send(Event::Noted { command, error }).is_err() {
                            // Nobody is left to hear it; what waits is still written.
                        }
                    }
                }
            }
        })?;
        let found = Found { spooled, journal: entries, cut_bytes: cut_spool + cut_journal };
        Ok((Self { writes, behind, thread }, found))
    }

    pub(super) fn keep(&self, keep: Keep) {
        if self.writes.try_send(Write::Keep(keep)).is_err() {
            self.behind.store(true, Ordering::Relaxed);
        }
    }

    /// Writes an entry; an error at once if the disk does not take any more.
    pub(super) fn note(&self, entry: Box<Entry>) -> Result<(), Event> {
        let command = entry.order.id.clone();
        self.writes.try_send(Write::Note(entry)).map_err(|_| Event::Noted {
            command,
            error: Some("the disk does not answer".to_owned()),
        })
    }

    /// Writes what waits and ends the thread.
    pub(super) fn finish(self) -> std::thread::JoinHandle<()> {
        self.thread
    }
}

/// Feeds what was found to the agent, as the first thing it hears.
pub(super) fn begin(
    agent: &mut Agent,
    found: Found,
    now: jiff::Timestamp,
) -> Vec<crate::agent::Effect> {
    agent.on(Event::Started { spooled: found.spooled, journal: found.journal }, now)
}
