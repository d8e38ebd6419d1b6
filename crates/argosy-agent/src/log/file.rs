//! A log file: read to its end, and followed when it grows, is cut or is replaced.
//!
//! It is read in a thread of its own: a disk that hangs must not stop the heartbeat.

use super::{Begin, FilePosition, LINE_LEN_MAX, Line, Mark, Now, Options, Seen, Source, text};
use jiff::Timestamp;
use std::ffi::OsString;
use std::fs::{File, Metadata};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::mpsc;

/// How many lines wait to be taken. When nobody takes them, the file waits on the disk.
const WAITING_MAX: usize = 64;

/// How much is read at once.
const CHUNK_LEN: usize = 32 * 1024;

/// The thread needs little more than its chunk, which is not on its stack.
const STACK_LEN: usize = 128 * 1024;

/// A file being followed.
pub(super) struct Tail {
    source: Source,
    path: PathBuf,
    now: Now,
    lines: mpsc::Receiver<(Vec<u8>, FilePosition)>,
    /// Dropped with the tail, which ends the thread.
    _stop: SyncSender<()>,
}

impl Tail {
    pub(super) fn open(source: Source, path: &Path, options: &Options) -> io::Result<Self> {
        let (sender, lines) = mpsc::channel(WAITING_MAX);
        let (stop, stopped) = sync_channel(1);
        let mut follower = Follower::open(path, options)?;
        let every = options.look_every;
        std::thread::Builder::new()
            .name("log-file".into())
            .stack_size(STACK_LEN)
            .spawn(move || follower.follow(&sender, &stopped, every))?;
        Ok(Self { source, path: path.to_owned(), now: options.now.clone(), lines, _stop: stop })
    }

    pub(super) fn source(&self) -> &Source {
        &self.source
    }

    pub(super) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Seen> {
        loop {
            let Poll::Ready(Some((bytes, position))) = self.lines.poll_recv(cx) else {
                return Poll::Pending;
            };
            let now = (self.now)();
            let text = text(&bytes);
            let (at, text) = match &self.source {
                Source::Syslog(_) => match syslog(&text) {
                    Some((at, message)) => (at, message.to_owned()),
                    None => continue,
                },
                Source::Kmsg | Source::Journald | Source::Program(_) => (None, text),
            };
            let at = at.map_or(now, |at| at.min(now));
            let line = Line {
                source: self.source.clone(),
                at,
                text,
                lost_before: 0,
                boot_id: String::new(),
            };
            return Poll::Ready(Seen { line, mark: Mark::File(self.path.clone(), position) });
        }
    }
}

/// The message of a line with the kernel's tag, and its time if the line has all of it:
/// `Mar 29 15:38:59 host kernel: [12.3] …`, or `2026-03-29T15:38:59.123+00:00 host kernel: …`.
///
/// Other tags are other programs, which may write what they like; so the tag is where it belongs.
pub(super) fn syslog(line: &str) -> Option<(Option<Timestamp>, &str)> {
    let (first, rest) = line.split_once(' ')?;
    let (at, rest) = if first.starts_with(|char: char| char.is_ascii_digit()) {
        (first.parse().ok(), rest)
    } else {
        // A month, a day that one space or two may precede, a time.
        let (_day, rest) = rest.trim_start().split_once(' ')?;
        let (time, rest) = rest.split_once(' ')?;
        if time.split(':').count() != 3 {
            return None;
        }
        (None, rest)
    };
    let (_host, rest) = rest.split_once(' ')?;
    Some((at, rest.strip_prefix("kernel:")?.trim_start()))
}

/// The side that reads.
struct Follower {
    path: PathBuf,
    file: Option<Held>,
    /// What of a line was read before its end was written.
    line: Vec<u8>,
    chunk: Box<[u8]>,
}

struct Held {
    file: File,
    device: u64,
    inode: u64,
    /// The byte behind what was read.
    offset: u64,
}

impl Held {
    fn open(path: &Path, offset: impl FnOnce(&Metadata) -> u64) -> io::Result<Self> {
        let mut file = File::open(path)?;
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a file"));
        }
        let offset = offset(&metadata).min(metadata.len());
        file.seek(SeekFrom::Start(offset))?;
        Ok(Self { file, device: metadata.dev(), inode: metadata.ino(), offset })
    }

    fn is_at(&self, metadata: &Metadata) -> bool {
        self.device == metadata.dev() && self.inode == metadata.ino()
    }
}

/// Whoever took the lines is gone.
struct Gone;

impl Follower {
    fn open(path: &Path, options: &Options) -> io::Result<Self> {
        let known = options.position.files.get(path);
        let is_known = |metadata: &Metadata, known: &FilePosition| {
            known.device == metadata.dev() && known.inode == metadata.ino()
        };
        let now = Held::open(path, |metadata| match known {
            // Shorter than what was read: it was cut, and all of it is new.
            Some(known) if is_known(metadata, known) && metadata.len() < known.offset => 0,
            Some(known) if is_known(metadata, known) => known.offset,
            Some(_) => 0,
            // A file knows no boots: what is in it may be years old.
            None => match options.begin {
                Begin::Boot | Begin::Now => metadata.len(),
            },
        })?;
        // Replaced while nobody looked: the rest of the old one comes first.
        let rotated = known.filter(|known| (known.device, known.inode) != (now.device, now.inode));
        let before = rotated.and_then(|known| {
            let held = Held::open(&rotated_name(path), |_| known.offset).ok()?;
            ((known.device, known.inode) == (held.device, held.inode)).then_some(held)
        });
        let chunk = vec![0; CHUNK_LEN].into_boxed_slice();
        Ok(Self {
            path: path.to_owned(),
            file: Some(before.unwrap_or(now)),
            line: Vec::new(),
            chunk,
        })
    }

    fn follow(
        &mut self,
        lines: &mpsc::Sender<(Vec<u8>, FilePosition)>,
        stopped: &Receiver<()>,
        every: Duration,
    ) {
        loop {
            if self.read(lines).is_err() {
                return;
            }
            match stopped.recv_timeout(every) {
                Err(RecvTimeoutError::Timeout) => {}
                Ok(()) | Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    /// Reads all there is: the file to its end, and the one that took its place.
    fn read(&mut self, lines: &mpsc::Sender<(Vec<u8>, FilePosition)>) -> Result<(), Gone> {
        loop {
            let there = std::fs::metadata(&self.path).ok();
            let was_cut = match (&self.file, &there) {
                (Some(held), Some(there)) => held.is_at(there) && there.len() < held.offset,
                _ => false,
            };
            if was_cut {
                self.again();
            }
            // What was written before we looked is read before another file is.
            self.drain(lines)?;
            let was_replaced = match (&self.file, &there) {
                (Some(held), Some(there)) => !held.is_at(there),
                (None, Some(_)) => true,
                (_, None) => false,
            };
            if !was_replaced {
                return Ok(());
            }
            self.again();
            if self.file.is_none() {
                return Ok(());
            }
        }
    }

    /// Begins with the file that has the name now.
    fn again(&mut self) {
        self.line.clear();
        self.file = Held::open(&self.path, |_| 0).ok();
    }

    fn drain(&mut self, lines: &mpsc::Sender<(Vec<u8>, FilePosition)>) -> Result<(), Gone> {
        let Some(held) = &mut self.file else { return Ok(()) };
        loop {
            let len = match held.file.read(&mut self.chunk) {
                Ok(len) => len,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                // It is looked at again in a while.
                Err(_) => return Ok(()),
            };
            let mut rest = self.chunk.get(..len).unwrap_or_default();
            if rest.is_empty() {
                return Ok(());
            }
            while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
                let (piece, behind) = rest.split_at_checked(end + 1).unwrap_or((rest, &[]));
                keep(&mut self.line, piece.get(..end).unwrap_or_default());
                held.offset += u64::try_from(piece.len()).unwrap_or_default();
                let Held { device, inode, offset, .. } = *held;
                let position = FilePosition { device, inode, offset };
                let line = std::mem::take(&mut self.line);
                lines.blocking_send((line, position)).map_err(|_| Gone)?;
                rest = behind;
            }
            keep(&mut self.line, rest);
            held.offset += u64::try_from(rest.len()).unwrap_or_default();
        }
    }
}

/// As much of a line as is wanted; the rest is thrown away.
fn keep(line: &mut Vec<u8>, piece: &[u8]) {
    let room = LINE_LEN_MAX.saturating_sub(line.len());
    line.extend_from_slice(piece.get(..room).unwrap_or(piece));
}

/// What `logrotate` calls the file it put aside.
fn rotated_name(path: &Path) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(".1");
    PathBuf::from(name)
}

#[cfg(test)]
mod tests;
