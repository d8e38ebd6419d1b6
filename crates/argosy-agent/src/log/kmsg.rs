//! `/dev/kmsg`: one record a read, numbered from the start of the boot.

use super::{Begin, KmsgPosition, Line, Mark, Now, Options, Problem, Seen, Source, text};
use jiff::{SignedDuration, Timestamp};
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::net::unix::pipe::Receiver;
use tokio::time::Sleep;

/// More than the kernel gives for one record, which is 8 KiB: a smaller buffer would be refused.
const BUFFER_LEN: usize = 16 * 1024;

/// How many records are read before others get a turn.
///
/// At a start the whole ring is read and most of it skipped: some ten thousand records.
const READS_MAX: u32 = 256;

/// How long a log that failed is left alone.
const OPEN_AGAIN_AFTER: Duration = Duration::from_secs(10);

/// The open log.
pub(super) struct Kmsg {
    path: PathBuf,
    /// Any file that can be waited for; tokio has no safe name for it but a pipe's end.
    file: Option<Receiver>,
    open_again: Option<Pin<Box<Sleep>>>,
    problem: Option<Problem>,
    buffer: Box<[u8]>,
    /// Read and not yet given out. A device gives one a read; a pipe may give more.
    waiting: VecDeque<Record>,
    boot_id: String,
    /// The number of the last record that was read or is known from before.
    last: Option<u64>,
    /// The time at which the kernel's own clock was zero.
    zero: Timestamp,
    /// Whether all that was there has been read, so that what comes is new.
    live: bool,
    now: Now,
}

/// What a record says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) sequence: u64,
    /// Since the kernel's clock was zero.
    pub(super) microseconds: u64,
    pub(super) text: String,
}

impl Kmsg {
    pub(super) fn open(options: &Options) -> io::Result<Self> {
        let boot_id = boot_id(options);
        let is_ours = |position: &&KmsgPosition| !boot_id.is_empty() && position.boot_id == boot_id;
        let position = options.position.kmsg.as_ref().filter(is_ours);
        let now = (options.now)();
        let zero = uptime(options).and_then(|uptime| now.checked_sub(uptime).ok()).unwrap_or(now);
        let mut kmsg = Self {
            path: options.kmsg.clone(),
            file: None,
            open_again: None,
            problem: None,
            buffer: vec![0; BUFFER_LEN].into_boxed_slice(),
            waiting: VecDeque::new(),
            last: position.map(|position| position.sequence),
            boot_id,
            zero,
            live: false,
            now: options.now.clone(),
        };
        let file = kmsg.device(options.begin == Begin::Now && position.is_none())?;
        kmsg.file = Some(file);
        Ok(kmsg)
    }

    pub(super) fn problem(&self) -> Option<&Problem> {
        self.problem.as_ref()
    }

    pub(super) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Seen> {
        for _ in 0..READS_MAX {
            if let Some(seen) = self.waiting.pop_front().and_then(|record| self.seen(record)) {
                return Poll::Ready(seen);
            }
            if !self.waiting.is_empty() {
                continue;
            }
            let Some(file) = &self.file else {
                ready!(self.poll_open(cx));
                continue;
            };
            if let Err(error) = ready!(file.poll_read_ready(cx)) {
                self.fail(&error);
                continue;
            }
            match file.try_read(&mut self.buffer) {
                Ok(0) => self.fail(&io::Error::other("the log ended")),
                Ok(len) => {
                    self.waiting.extend(records(self.buffer.get(..len).unwrap_or_default()));
                }
                Err(error) => self.refused(&error),
            }
        }
        // More is there, and it is somebody else's turn.
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    fn refused(&mut self, error: &io::Error) {
        use io::ErrorKind::{BrokenPipe, Interrupted, InvalidInput, WouldBlock};
        let kind = error.kind();
        if kind == WouldBlock {
            self.live = true;
            return;
        }
        // Records were overwritten before they were read, and the next one's number tells how many
        // (`BrokenPipe`); or one was larger than the buffer, and the kernel passes over it.
        if ![BrokenPipe, Interrupted, InvalidInput].contains(&kind) {
            self.fail(error);
        }
    }

    fn fail(&mut self, error: &io::Error) {
        self.problem = Some(Problem::of(&Source::Kmsg, error));
        self.file = None;
        self.open_again = Some(Box::pin(tokio::time::sleep(OPEN_AGAIN_AFTER)));
    }

    fn poll_open(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if let Some(open_again) = &mut self.open_again {
            ready!(open_again.as_mut().poll(cx));
        }
        match self.device(false) {
            Ok(file) => {
                self.live = false;
                self.file = Some(file);
                self.open_again = None;
                self.problem = None;
            }
            Err(error) => self.fail(&error),
        }
        Poll::Ready(())
    }

    fn device(&self, at_end: bool) -> io::Result<Receiver> {
        let nonblocking = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
        let mut file = File::options().read(true).custom_flags(nonblocking).open(&self.path)?;
        if at_end {
            // Only a pipe in the log's place refuses; and it has nothing old.
            let _ = file.seek(SeekFrom::End(0));
        }
        Receiver::from_file_unchecked(file)
    }

    /// The record as a line; `None` if it was read before.
    fn seen(&mut self, record: Record) -> Option<Seen> {
        if self.last.is_some_and(|last| record.sequence <= last) {
            return None;
        }
        let lost_before = self.last.map_or(0, |last| record.sequence - last - 1);
        self.last = Some(record.sequence);
        let position = KmsgPosition { boot_id: self.boot_id.clone(), sequence: record.sequence };
        let line = Line {
            source: Source::Kmsg,
            at: self.at(record.microseconds),
            text: record.text,
            lost_before,
            boot_id: String::new(),
        };
        Some(Seen { line, mark: Mark::Kmsg(position) })
    }

    /// When it was written. The kernel's clock drifts from the machine's by seconds a day, so a record
    /// that comes while we wait sets them right.
    fn at(&mut self, microseconds: u64) -> Timestamp {
        let now = (self.now)();
        let since = SignedDuration::from_micros(i64::try_from(microseconds).unwrap_or(i64::MAX));
        if self.live {
            self.live = false;
            self.zero = now.checked_sub(since).unwrap_or(self.zero);
        }
        self.zero.checked_add(since).unwrap_or(now).min(now)
    }
}

/// The records in what was read: `6,1234,5678901,-;text`, and lines that begin with a space tell more
/// about the one before.
pub(super) fn records(bytes: &[u8]) -> impl Iterator<Item = Record> {
    bytes.split(|byte| *byte == b'\n').filter(|line| !line.starts_with(b" ")).filter_map(record)
}

fn record(line: &[u8]) -> Option<Record> {
    let end = line.iter().position(|byte| *byte == b';')?;
    let (head, message) = line.split_at_checked(end)?;
    let mut numbers = str::from_utf8(head).ok()?.split(',');
    numbers.next()?.parse::<u32>().ok()?;
    let sequence = numbers.next()?.parse().ok()?;
    let microseconds = numbers.next()?.parse().ok()?;
    // The flags, and whatever newer kernels put behind them.
    numbers.next()?;
    let message = message.get(1..).unwrap_or_default();
    Some(Record { sequence, microseconds, text: text(&unescaped(message)) })
}

/// The kernel writes bytes that cannot be shown, and the backslash, as `\x0a`.
fn unescaped(bytes: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((byte, behind)) = rest.split_first() {
        let escaped = rest.strip_prefix(b"\\x").and_then(|rest| rest.split_at_checked(2));
        let value = escaped
            .and_then(|(digits, behind)| Some((str::from_utf8(digits).ok()?, behind)))
            .filter(|(digits, _)| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
            .and_then(|(digits, behind)| Some((u8::from_str_radix(digits, 16).ok()?, behind)));
        let (byte, behind) = value.unwrap_or((*byte, behind));
        plain.push(byte);
        rest = behind;
    }
    plain
}

/// This boot's id; empty if the machine does not say.
fn boot_id(options: &Options) -> String {
    let path = options.proc.join("sys/kernel/random/boot_id");
    crate::host::read::text(&path).unwrap_or_default().trim().to_owned()
}

fn uptime(options: &Options) -> Option<SignedDuration> {
    let text = crate::host::read::text(&options.proc.join("uptime"))?;
    let seconds: f64 = text.split_whitespace().next()?.parse().ok()?;
    SignedDuration::try_from_secs_f64(seconds).ok().filter(|uptime| !uptime.is_negative())
}

#[cfg(test)]
mod tests;
