//! Lines the kernel and its friends write: one reader over `/dev/kmsg`, the journal and log files.
//!
//! What a newcomer gets wrong: the same line is in all of them. So the kernel is heard through one
//! source, the first that can be read; a second is only for what the kernel does not write.

mod file;
mod journald;
mod kmsg;
mod position;

use jiff::Timestamp;
use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::str::FromStr;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::Sleep;

pub use position::{FilePosition, KmsgPosition, Position};

/// The longest text of a line, in bytes; the rest is thrown away as it comes. The kernel's own limit.
pub const LINE_LEN_MAX: usize = argosy_core::kernel::LINE_LEN_MAX;

/// Where lines come from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    /// `/dev/kmsg`: at once, from the start of this boot.
    Kmsg,
    /// The journal, through `journalctl`: the kernel's lines and the fabric manager's.
    Journald,
    /// A file that syslog writes; only lines with the kernel's tag count, whoever else writes there.
    Syslog(PathBuf),
    /// A file of one program, such as the fabric manager's own log.
    Program(PathBuf),
}

impl Source {
    /// Whether faults of GPUs can be seen there.
    pub fn tells_of_kernel(&self) -> bool {
        match self {
            Source::Kmsg | Source::Journald | Source::Syslog(_) => true,
            Source::Program(_) => false,
        }
    }
}

/// A word that names no source.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a log: write kmsg, journald, the path of a file that syslog writes, or program: and \
     the path of a file that one program writes"
)]
pub struct SourceError(String);

impl FromStr for Source {
    type Err = SourceError;

    /// Reads `kmsg`, `journald`, `/var/log/kern.log` or `program:/var/log/fabricmanager.log`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let path = |text: &str| Some(PathBuf::from(text)).filter(|path| path.is_absolute());
        let source = match text {
            "kmsg" => Some(Source::Kmsg),
            "journald" => Some(Source::Journald),
            _ => match text.strip_prefix("program:") {
                Some(text) => path(text).map(Source::Program),
                None => path(text).map(Source::Syslog),
            },
        };
        source.ok_or_else(|| SourceError(text.to_owned()))
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Kmsg => f.write_str("/dev/kmsg"),
            Source::Journald => f.write_str("the journal"),
            Source::Syslog(path) | Source::Program(path) => path.display().fmt(f),
        }
    }
}

/// One line, without whatever its log puts before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Where it was read.
    pub source: Source,
    /// When it was written, as well as its log knows.
    pub at: Timestamp,
    /// What it says: at most `LINE_LEN_MAX` bytes. A record of several lines keeps its line ends.
    pub text: String,
    /// How many lines were overwritten between the last one and this one.
    pub lost_before: u64,
    /// The boot in which it was written, where its log says so; empty means this one.
    pub boot_id: String,
}

/// What reading a source met with, and what a person can do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Which source.
    pub source: Source,
    /// What kind.
    pub kind: ProblemKind,
    /// What happened, and the way out.
    pub message: String,
}

/// Kinds of problems with a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProblemKind {
    /// It is not on this machine.
    Absent,
    /// It is there and may not be read.
    Forbidden,
    /// It was read, or tried, and failed.
    Failed,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.source, self.message)
    }
}

impl Problem {
    fn of(source: &Source, error: &std::io::Error) -> Self {
        let kind = if error.kind() == std::io::ErrorKind::NotFound {
            ProblemKind::Absent
        } else if error.kind() == std::io::ErrorKind::PermissionDenied {
            ProblemKind::Forbidden
        } else {
            ProblemKind::Failed
        };
        let way_out = match (kind, source) {
            (ProblemKind::Absent | ProblemKind::Failed, _) => "",
            (ProblemKind::Forbidden, Source::Kmsg) => {
                "; run as root, or give the capability CAP_SYSLOG"
            }
            (ProblemKind::Forbidden, Source::Journald) => {
                "; run as root, or join the group systemd-journal"
            }
            (ProblemKind::Forbidden, Source::Syslog(_) | Source::Program(_)) => {
                "; run as root, or join the group adm"
            }
        };
        Self { source: source.clone(), kind, message: format!("{error}{way_out}") }
    }
}

/// Tells the time. A test may hand in its own.
pub type Now = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// What to read, where it is, and from where to go on.
#[derive(Clone)]
pub struct Options {
    /// Which sources; `None` takes the first that tells of the kernel and can be read, and the fabric
    /// manager's own log.
    pub sources: Option<Vec<Source>>,
    /// From where to go on, as `Logs::position` gave it.
    pub position: Position,
    /// Where to begin without a position.
    pub begin: Begin,
    /// Usually `/dev/kmsg`.
    pub kmsg: PathBuf,
    /// Usually `/proc`: boot id and uptime.
    pub proc: PathBuf,
    /// The program, by name or path.
    pub journalctl: PathBuf,
    /// Directories that hold the system's journal, in one directory for each machine id.
    pub journals: Vec<PathBuf>,
    /// Usually `/var/log`.
    pub var_log: PathBuf,
    /// How often a file is looked at. The kernel's own log needs no looking.
    pub look_every: Duration,
    /// The clock.
    pub now: Now,
}

/// Where a log is begun that was never read before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    /// With what was said since this boot, where the log knows boots: what broke an hour before the
    /// agent was installed is broken.
    Boot,
    /// With what is said from now on.
    Now,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            sources: None,
            position: Position::default(),
            begin: Begin::Boot,
            kmsg: "/dev/kmsg".into(),
            proc: "/proc".into(),
            journalctl: "journalctl".into(),
            journals: vec!["/run/log/journal".into(), "/var/log/journal".into()],
            var_log: "/var/log".into(),
            look_every: Duration::from_secs(1),
            #[expect(clippy::disallowed_methods, reason = "the clock, unless another is given")]
            now: Arc::new(Timestamp::now),
        }
    }
}

/// How long a machine without any log of the kernel is left alone before its logs are tried again.
const TRY_AGAIN_AFTER: Duration = Duration::from_secs(60);

/// The files of syslog, by how likely they hold the kernel's lines alone.
const SYSLOG_FILES: [&str; 3] = ["kern.log", "messages", "syslog"];

/// Where the fabric manager writes, unless it was told otherwise.
const FABRIC_MANAGER_FILE: &str = "fabricmanager.log";

/// The open sources.
///
/// *Guarantees:* `next` is cancel-safe: a line is given out once or stays where it is. A source that
/// fails is opened again, later, and says so in `problems` meanwhile; the others go on.
/// *Assumes:* a tokio runtime with I/O and time.
pub struct Logs {
    open: Vec<Open>,
    /// Which source is asked first, next time: a storm in one must not silence another.
    turn: usize,
    refused: Vec<Problem>,
    position: Position,
    /// What to try again, and when: a machine without any log of the kernel may get one.
    again: Option<(Pin<Box<Sleep>>, Options)>,
}

enum Open {
    Kmsg(Box<kmsg::Kmsg>),
    Journald(Box<journald::Journald>),
    File(file::Tail),
}

/// A line, and from where to go on after it.
struct Seen {
    line: Line,
    mark: Mark,
}

enum Mark {
    Kmsg(KmsgPosition),
    Journald(String),
    File(PathBuf, FilePosition),
}

impl Logs {
    /// Opens what can be opened. Never fails: `problems` tells what could not be.
    pub fn open(options: Options) -> Self {
        let mut logs = Self {
            open: Vec::new(),
            turn: 0,
            refused: Vec::new(),
            position: options.position.clone(),
            again: None,
        };
        logs.open_all(options);
        logs
    }

    fn open_all(&mut self, options: Options) {
        self.open.clear();
        self.refused.clear();
        match &options.sources {
            Some(sources) => {
                for source in sources {
                    self.add(source, &options);
                }
            }
            None => self.add_default(&options),
        }
        let is_deaf = !self.open.iter().any(|open| open.source().tells_of_kernel());
        self.again = (is_deaf && !self.refused.is_empty())
            .then(|| (Box::pin(tokio::time::sleep(TRY_AGAIN_AFTER)), options));
    }

    /// The next line. Waits for as long as none is written.
    pub async fn next(&mut self) -> Line {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    /// The sources that are being read, now.
    pub fn sources(&self) -> Vec<Source> {
        self.open.iter().filter(|open| open.problem().is_none()).map(Open::source).collect()
    }

    /// What could not be opened, and what cannot be read at the moment.
    pub fn problems(&self) -> Vec<Problem> {
        let now = self.open.iter().filter_map(Open::problem);
        self.refused.iter().chain(now).cloned().collect()
    }

    /// From where to go on after the last line that `next` gave: to be saved once what it said is safe.
    pub fn position(&self) -> &Position {
        &self.position
    }

    fn add(&mut self, source: &Source, options: &Options) -> bool {
        let opened = match source {
            Source::Kmsg => kmsg::Kmsg::open(options).map(Box::new).map(Open::Kmsg),
            Source::Journald => journald::Journald::open(options).map(Box::new).map(Open::Journald),
            Source::Syslog(path) | Source::Program(path) => {
                file::Tail::open(source.clone(), path, options).map(Open::File)
            }
        };
        match opened {
            Ok(open) => {
                self.open.push(open);
                true
            }
            Err(error) => {
                self.refused.push(Problem::of(source, &error));
                false
            }
        }
    }

    fn add_default(&mut self, options: &Options) {
        let file = |name: &str| options.var_log.join(name);
        let mut candidates: VecDeque<Source> = [Source::Kmsg, Source::Journald].into();
        candidates.extend(SYSLOG_FILES.iter().map(|name| Source::Syslog(file(name))));
        let heard = candidates.iter().find(|source| self.add(source, options));
        // The journal has the fabric manager's lines already.
        let fabric_manager = file(FABRIC_MANAGER_FILE);
        if heard != Some(&Source::Journald) && is_file(&fabric_manager) {
            self.add(&Source::Program(fabric_manager), options);
        }
        if heard.is_some() {
            // That there is no syslog matters only where nothing else is there, either.
            self.refused.retain(|problem| problem.kind != ProblemKind::Absent);
        }
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Line> {
        if let Some((sleep, _)) = &mut self.again
            && sleep.as_mut().poll(cx).is_ready()
            && let Some((_, options)) = self.again.take()
        {
            self.open_all(Options { position: self.position.clone(), ..options });
            // The new timer is to be polled, too.
            cx.waker().wake_by_ref();
        }
        let count = self.open.len();
        for offset in 0..count {
            let index = (self.turn + offset) % count;
            let Some(open) = self.open.get_mut(index) else { continue };
            if let Poll::Ready(Seen { line, mark }) = open.poll_next(cx) {
                self.turn = index + 1;
                self.position.advance(mark);
                return Poll::Ready(line);
            }
        }
        Poll::Pending
    }
}

fn is_file(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|metadata| metadata.is_file())
}

impl Open {
    fn source(&self) -> Source {
        match self {
            Open::Kmsg(_) => Source::Kmsg,
            Open::Journald(_) => Source::Journald,
            Open::File(file) => file.source().clone(),
        }
    }

    fn problem(&self) -> Option<&Problem> {
        match self {
            Open::Kmsg(kmsg) => kmsg.problem(),
            Open::Journald(journald) => journald.problem(),
            Open::File(_) => None,
        }
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Seen> {
        match self {
            Open::Kmsg(kmsg) => kmsg.poll_next(cx),
            Open::Journald(journald) => journald.poll_next(cx),
            Open::File(file) => file.poll_next(cx),
        }
    }
}

/// As much of the bytes as a line may have, as text; what is not UTF-8 is replaced.
fn text(bytes: &[u8]) -> String {
    let bytes = bytes.get(..LINE_LEN_MAX).unwrap_or(bytes);
    let mut text = String::from_utf8_lossy(bytes).into_owned();
    text.truncate(text.floor_char_boundary(LINE_LEN_MAX));
    text
}

#[cfg(test)]
mod tests;
