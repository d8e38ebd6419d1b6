//! The journal, through a `journalctl` that follows it.

use super::{Begin, Line, Mark, Now, Options, Problem, ProblemKind, Seen, Source, text};
use crate::child_process::{self, Starter};
use crate::host::read;
use futures_util::future::BoxFuture;
use jiff::Timestamp;
use serde::Deserialize;
use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::process::Stdio;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::Sleep;

static STARTER: Starter = Starter::new();

/// How long a `journalctl` that was started again must run to count as well: the kernel of a healthy machine may
/// write nothing for hours, and one that cannot read ends at once.
const WELL_AFTER: Duration = Duration::from_secs(10);

/// The longest entry that is read, as JSON. Each byte of a line that is not text takes up to four.
const ENTRY_LEN_MAX: usize = 64 * 1024;

/// How much is read at once.
const CHUNK_LEN: usize = 8 * 1024;

/// How many chunks are read before others get a turn.
const READS_MAX: u32 = 64;

/// How long a journal that ended is left alone: doubled each time, up to the second.
const START_AGAIN_AFTER: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// The longest word for a place in the journal that is kept. A real one has about 150 bytes.
const CURSOR_LEN_MAX: usize = 1024;

/// The journal being followed.
pub(super) struct Journald {
    program: PathBuf,
    running: Option<(Child, ChildStdout)>,
    start_again: Option<Pin<Box<Sleep>>>,
    starting: Option<BoxFuture<'static, io::Result<Child>>>,
    /// When it counts as well again, unless it has ended by then.
    well_at: Option<Pin<Box<Sleep>>>,
    pause: Duration,
    problem: Option<Problem>,
    begin: Begin,
    cursor: Option<String>,
    entries: Entries,
    now: Now,
}

impl Journald {
    pub(super) fn open(options: &Options) -> io::Result<Self> {
        readable(&options.journals)?;
        let mut journald = Self {
            program: options.journalctl.clone(),
            running: None,
            start_again: None,
            starting: None,
            well_at: None,
            pause: START_AGAIN_AFTER.0,
            problem: None,
            begin: options.begin,
            cursor: options.position.journal_cursor.clone(),
            entries: Entries::default(),
            now: options.now.clone(),
        };
        journald.running = Some(reading(journald.command().spawn()?)?);
        Ok(journald)
    }

    pub(super) fn problem(&self) -> Option<&Problem> {
        self.problem.as_ref()
    }

    pub(super) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Seen> {
        let mut chunk = [0; CHUNK_LEN];
        if let Some(well_at) = &mut self.well_at
            && well_at.as_mut().poll(cx).is_ready()
        {
            (self.well_at, self.problem) = (None, None);
        }
        for _ in 0..READS_MAX {
            while let Some(json) = self.entries.next() {
                if let Some(seen) = self.seen(&json) {
                    return Poll::Ready(seen);
                }
            }
            let Some((_, stdout)) = &mut self.running else {
                ready!(self.poll_start(cx));
                continue;
            };
            let mut buffer = ReadBuf::new(&mut chunk);
            match ready!(Pin::new(stdout).poll_read(cx, &mut buffer)) {
                Ok(()) if buffer.filled().is_empty() => self.ended("journalctl ended"),
                Ok(()) => self.entries.extend(buffer.filled()),
                Err(error) => self.ended(&error.to_string()),
            }
        }
        // More is there, and it is somebody else's turn.
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    fn command(&self) -> Command {
        let mut command = child_process::command(&self.program);
        command
            .args(["--follow", "--no-pager", "--all", "--quiet", "--output=json"])
            .arg("--output-fields=MESSAGE,SYSLOG_IDENTIFIER");
        match (&self.cursor, self.begin) {
            (Some(cursor), _) => command.arg("--no-tail").arg(format!("--after-cursor={cursor}")),
            (None, Begin::Boot) => command.args(["--no-tail", "--boot"]),
            (None, Begin::Now) => command.arg("--lines=0"),
        };
        // Both fields are set by the journal itself: no program can write as another.
        command.args(["_TRANSPORT=kernel", "+", "_SYSTEMD_UNIT=nvidia-fabricmanager.service"]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        command
    }

    fn poll_start(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if let Some(start_again) = &mut self.start_again {
            ready!(start_again.as_mut().poll(cx));
            self.start_again = None;
        }
        if self.starting.is_none() {
            self.starting = Some(Box::pin(STARTER.start(self.command())));
        }
        let Some(starting) = &mut self.starting else { return Poll::Ready(()) };
        let started = ready!(starting.as_mut().poll(cx)).and_then(reading);
        self.starting = None;
        match started {
            Ok(running) => {
                self.running = Some(running);
                self.well_at = Some(Box::pin(tokio::time::sleep(WELL_AFTER)));
                // The new timer is to be polled, too.
                cx.waker().wake_by_ref();
            }
            Err(error) => self.ended(&error.to_string()),
        }
        Poll::Ready(())
    }

    fn ended(&mut self, why: &str) {
        (self.running, self.well_at) = (None, None);
        self.entries = Entries::default();
        let message = format!("{why}; it is started again in {} s", self.pause.as_secs());
        let kind = ProblemKind::Failed;
        self.problem = Some(Problem { source: Source::Journald, kind, message });
        self.start_again = Some(Box::pin(tokio::time::sleep(self.pause)));
        self.pause = (self.pause * 2).min(START_AGAIN_AFTER.1);
    }

    fn seen(&mut self, json: &[u8]) -> Option<Seen> {
        let entry: Entry = serde_json::from_slice(json).ok()?;
        let cursor = entry.cursor.clone().filter(|cursor| cursor.len() <= CURSOR_LEN_MAX)?;
        // What begins to speak again is well again.
        self.problem = None;
        self.pause = START_AGAIN_AFTER.0;
        self.cursor = Some(cursor.clone());
        let written = entry.microseconds.as_ref().and_then(|text| text.parse().ok());
        let at = written.and_then(|written| Timestamp::from_microsecond(written).ok());
        let line = Line {
            source: Source::Journald,
            at: at.unwrap_or_else(|| (self.now)()),
            boot_id: entry.boot_id.as_deref().map(hyphenated).unwrap_or_default(),
            text: entry.text(),
            lost_before: 0,
        };
        Some(Seen { line, mark: Mark::Journald(cursor) })
    }
}

fn reading(mut child: Child) -> io::Result<(Child, ChildStdout)> {
    let stdout = child.stdout.take().ok_or_else(|| io::Error::other("journalctl has no output"))?;
    Ok((child, stdout))
}

/// Whether the system's journal is there and may be read. `journalctl` itself shows a stranger less
/// and says so to nobody: an agent would think that all is quiet.
fn readable(journals: &[PathBuf]) -> io::Result<()> {
    let mut refused = io::Error::new(io::ErrorKind::NotFound, "this machine keeps no journal");
    for machine in journals.iter().flat_map(|journal| read::entries(journal)) {
        match std::fs::File::open(machine.join("system.journal")) {
            Ok(_) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => refused = error,
        }
    }
    Err(refused)
}

/// A boot id as the kernel writes it: the journal leaves out the hyphens. Empty for what is none.
fn hyphenated(boot_id: &str) -> String {
    let parts = [0..8, 8..12, 12..16, 16..20, 20..32];
    let parts: Option<Vec<&str>> = parts.into_iter().map(|part| boot_id.get(part)).collect();
    let is_id = boot_id.len() == 32 && boot_id.bytes().all(|byte| byte.is_ascii_hexdigit());
    parts.filter(|_| is_id).map(|parts| parts.join("-")).unwrap_or_default()
}

/// One entry, as far as it is read.
#[derive(Deserialize)]
struct Entry {
    #[serde(rename = "__CURSOR")]
    cursor: Option<String>,
    #[serde(rename = "__REALTIME_TIMESTAMP")]
    microseconds: Option<String>,
    #[serde(rename = "_BOOT_ID")]
    boot_id: Option<String>,
    #[serde(rename = "SYSLOG_IDENTIFIER", default)]
    identifier: Message,
    #[serde(rename = "MESSAGE", default)]
    message: Message,
}

impl Entry {
    /// The line as `/dev/kmsg` has it: of one that a program wrote there, the journal cuts off the
    /// first word and calls it the writer's name.
    fn text(self) -> String {
        let message = self.message.text();
        match self.identifier {
            Message::Text(name) if !name.is_empty() && name != "kernel" => {
                text(format!("{name}: {message}").as_bytes())
            }
            Message::Text(_) | Message::Bytes(_) | Message::None | Message::Other(_) => message,
        }
    }
}

/// A text; or bytes, if it is not one; or several, if a program set it twice.
#[derive(Default, Deserialize)]
#[serde(untagged)]
enum Message {
    Text(String),
    Bytes(Vec<u8>),
    #[default]
    None,
    Other(serde::de::IgnoredAny),
}

impl Message {
    fn text(self) -> String {
        match self {
            Message::Text(message) => text(message.as_bytes()),
            Message::Bytes(bytes) => text(&bytes),
            Message::None | Message::Other(_) => String::new(),
        }
    }
}

/// Bytes come in, whole lines go out; a line that is too long is thrown away as it comes.
#[derive(Default)]
pub(super) struct Entries {
    bytes: Vec<u8>,
    too_long: bool,
}

impl Entries {
    pub(super) fn extend(&mut self, chunk: &[u8]) {
        self.bytes.extend_from_slice(chunk);
    }

    pub(super) fn next(&mut self) -> Option<Vec<u8>> {
        loop {
            let Some(end) = self.bytes.iter().position(|byte| *byte == b'\n') else {
                if ENTRY_LEN_MAX < self.bytes.len() {
                    self.too_long = true;
                    self.bytes.clear();
                }
                return None;
            };
            let rest = self.bytes.split_off(end + 1);
            let mut line = std::mem::replace(&mut self.bytes, rest);
            line.truncate(end);
            if !std::mem::take(&mut self.too_long) {
                return Some(line);
            }
        }
    }
}

#[cfg(test)]
mod tests;
