//! The thread that writes to disk. A disk that hangs hangs this thread and nothing else.

use crate::agent::{Agent, Event};
use crate::journal::{Entry, Journal};
use crate::metrics::Figures;
use crate::record::{Disk, Medium, Unwritable};
use crate::spool::{Keep, SPOOL_LEN_MAX, Spool, Spooled};
use rustix::fs::FlockOperation;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc as std_mpsc;
use tokio::sync::mpsc;

/// How many writes may wait. More is a disk that does not answer: signals are then in memory alone, and
/// commands are refused, which is better than growing.
pub(super) const WRITES_MAX: usize = 256;

/// The file whose lock says that an agent uses the directory.
const LOCK_FILE: &str = "lock";

enum Write {
    Keep(Keep),
    Note(Box<Entry>),
}

/// A way to the thread.
pub(super) struct DiskThread {
    writes: std_mpsc::SyncSender<Write>,
    /// Whether the spool or the journal says less than is known.
    pub(super) behind: Arc<AtomicBool>,
    /// The same of the spool alone, as the thread knows it.
    spool_behind: Arc<AtomicBool>,
    /// Something was not even given to the thread.
    missed: bool,
    /// Whether a `Keep::All` waits. One is enough: it may be a megabyte, and the next knows more.
    rewriting: Arc<AtomicBool>,
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
    ///
    /// Files that cannot be written are no error: an agent on a file system that became read-only has more
    /// to say than others.
    pub(super) fn start(
        data_dir: &Path,
        lock: Option<File>,
        figures: Arc<Figures>,
        events: mpsc::Sender<Event>,
    ) -> io::Result<(Self, Found)> {
        let (mut spool, spooled, cut_spool, broken_spool) =
            open(&data_dir.join("spool"), |medium| Spool::open(medium, SPOOL_LEN_MAX))?;
        let (mut journal, entries, cut_journal, broken_journal) =
            open(&data_dir.join("journal"), Journal::open)?;
        let (writes, waiting) = std_mpsc::sync_channel(WRITES_MAX);
        let behind = Arc::new(AtomicBool::new(broken_spool || broken_journal));
        let spool_behind = Arc::new(AtomicBool::new(broken_spool));
        let rewriting = Arc::new(AtomicBool::new(false));
        let (told, told_spool, begun) = (behind.clone(), spool_behind.clone(), rewriting.clone());
        let thread = std::thread::Builder::new().name("disk".to_owned()).spawn(move || {
            // Until the last write is done nobody else may begin.
            let _lock = lock;
            let mut journal_behind = broken_journal;
            for write in waiting {
                match write {
                    Write::Keep(keep) => {
                        if let Keep::All(_) = keep {
                            begun.store(false, Ordering::Relaxed);
                            journal_behind = journal_behind && journal.catch_up().is_err();
                        }
                        let was = spool.is_behind();
                        if let (Err(error), false) = (spool.keep(&keep), was) {
                            tracing::warn!(%error, "cannot spool; keeping it in memory");
                        }
                        told_spool.store(spool.is_behind(), Ordering::Relaxed);
                        Figures::set(&figures.spool_bytes, spool.len());
                    }
                    Write::Note(entry) => {
                        let command = entry.order.id.clone();
                        let error = journal.note(*entry).err().map(|error| error.to_string());
                        journal_behind = error.is_some();
                        if events.blocking_send(Event::Noted { command, error }).is_err() {
                            // Nobody is left to hear it; what waits is still written.
                        }
                    }
                }
                told.store(spool.is_behind() || journal_behind, Ordering::Relaxed);
            }
        })?;
        let found = Found { spooled, journal: entries, cut_bytes: cut_spool + cut_journal };
        let missed = false;
        Ok((Self { writes, behind, spool_behind, missed, rewriting, thread }, found))
    }

    /// Whether the spool missed something, which only a `Keep::All` makes good.
    pub(super) fn is_spool_behind(&self) -> bool {
        self.missed || self.spool_behind.load(Ordering::Relaxed)
    }

    /// Whether anything is to be made good.
    pub(super) fn is_behind(&self) -> bool {
        self.missed || self.behind.load(Ordering::Relaxed)
    }

    pub(super) fn keep(&mut self, keep: Keep) {
        let all = matches!(keep, Keep::All(_));
        if all && self.rewriting.swap(true, Ordering::Relaxed) {
            self.missed = true;
            return;
        }
        let given = self.writes.try_send(Write::Keep(keep)).is_ok();
        if all {
            self.missed = !given;
            self.rewriting.fetch_and(given, Ordering::Relaxed);
        }
        if !given {
            self.missed = true;
            self.behind.store(true, Ordering::Relaxed);
        }
    }

    /// Writes an entry; an error at once if the disk does not take any more.
    #[expect(clippy::result_large_err, reason = "the agent is handed the event as it is")]
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

/// Opens a file with what is in it; whether it cannot be written, too.
fn open<T, Found>(
    path: &Path,
    read: impl Fn(Box<dyn Medium>) -> io::Result<(T, Found, u64)>,
) -> io::Result<(T, Found, u64, bool)> {
    let opened = Disk::open(path).and_then(|disk| read(Box::new(disk)));
    let error = match opened {
        Ok((file, found, cut_bytes)) => return Ok((file, found, cut_bytes, false)),
        Err(error) => error,
    };
    let path_text = path.display().to_string();
    tracing::warn!(path = path_text, %error, "cannot write a file; going on without it");
    let (file, found, cut_bytes) = read(Box::new(Unwritable::new(path, &error)))?;
    Ok((file, found, cut_bytes, true))
}

/// Takes the data directory for this process, for as long as the file is open. `WouldBlock` if another has
/// it; `None` where no lock can be had, because nothing can be written there.
pub(super) fn lock(data_dir: &Path) -> io::Result<Option<File>> {
    let path = data_dir.join(LOCK_FILE);
    let opened = File::options().write(true).create(true).truncate(false).open(&path);
    // A file system that became read-only still knows who has the lock.
    let Ok(file) = opened.or_else(|_| File::open(&path)) else { return Ok(None) };
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(file)),
        Err(rustix::io::Errno::WOULDBLOCK) => Err(io::ErrorKind::WouldBlock.into()),
        Err(error) => {
            tracing::warn!(%error, "this file system has no locks; see that only one agent uses it");
            Ok(None)
        }
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
