//! The driver behind a wall: a child process asks it, and is given up when it does not answer.
//!
//! Flow: the child is started by the first question and ends by itself when none comes for a while, so that an
//! idle agent holds no device open (an open device stops a driver upgrade) and no memory.
//!
//! Guarantees: every question is answered in bounded time. There is never more than one child; one that was
//! killed and does not die, because it sits in the kernel, is waited for and not joined by a second.

pub(crate) mod line;

use crate::child_process::{self, Starter};
use crate::gpu::{Gpu, GpuError, GpuIdentity, Inventory, Sweep};
use async_trait::async_trait;
use line::{Ask, LINE_LEN_MAX, Say};
use rustix::process::{Pid, Signal, kill_process};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::time::timeout;

static STARTER: Starter = Starter::new();

/// How often one question may start the child again because it died.
///
/// Each time, one GPU is left out. A machine on which more of them kill the child has a driver that cannot
/// be asked, and starting processes for ever would be one more load on it.
const CRASHES_MAX: usize = 4;

/// How long the last words of a child that has ended are listened to.
const LAST_WORDS_MAX: Duration = Duration::from_millis(200);

/// How much is kept of what the child wrote to its error output: its last words are what helps.
const STDERR_KEPT_BYTES: usize = 2 * 1024;

/// The longest part of the child's last words that goes into an error.
const LAST_WORDS_LEN_MAX: usize = 200;

/// How the child is treated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// NVML, if it is not where the system keeps it.
    pub nvml_library: Option<PathBuf>,
    /// How long one GPU may take, and how long the start may. A sweep takes milliseconds for each; the first
    /// look at a GPU without persistence mode takes seconds.
    pub deadline: Duration,
    /// How long a killed child may take to be gone before it counts as stuck.
    pub reap_max: Duration,
    /// How long the child stays without a question. It stays for good while a GPU is not in persistence mode:
    /// such a GPU is shut down with its last user, and forgets what it has counted.
    pub idle: Duration,
    /// What the child finds in its environment besides what is in ours.
    pub environment: Vec<(OsString, OsString)>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            nvml_library: None,
            deadline: Duration::from_secs(10),
            reap_max: Duration::from_secs(1),
            // Long enough for a sweep right after an inventory, short enough to be gone before the next.
            idle: Duration::from_secs(2),
            environment: Vec::new(),
        }
    }
}

/// The GPUs of this machine, asked for in a child process.
#[derive(Debug)]
pub struct Child {
    exe: PathBuf,
    arguments: Vec<OsString>,
    options: Options,
    running: Option<Running>,
    stuck: Option<Stuck>,
    /// What a child is ended with; tests use one that it survives.
    end_with: Signal,
}

impl Child {
    /// `exe` is this program: it is started as `exe probe`.
    pub fn new(exe: PathBuf, options: Options) -> Self {
        let mut arguments = vec![OsString::from("probe"), OsString::from("--idle-ms")];
        arguments.push(options.idle.as_millis().to_string().into());
        if let Some(library) = &options.nvml_library {
            arguments.push("--nvml-library".into());
            arguments.push(library.into());
        }
        Self { exe, arguments, options, running: None, stuck: None, end_with: Signal::KILL }
    }

    /// The child's number, if there is one.
    pub fn pid(&self) -> Option<u32> {
        let stuck = self.stuck.as_ref().map(|stuck| &stuck.process);
        stuck.or(self.running.as_ref().map(|running| &running.process))?.id()
    }

    /// Asks, and starts the child again without the GPUs that killed it, until all the others answered.
    async fn ask(&mut self, kind: Kind) -> Result<Answers, GpuError> {
        self.await_stuck()?;
        let mut answers = Answers::default();
        let mut crashes = 0;
        // A child that ends because nobody asked may do so just when we ask: once, that is no crash.
        let mut may_have_ended = self.running.is_some();
        loop {
            match self.attempt(kind, &mut answers).await {
                Attempt::Done => return Ok(answers),
                Attempt::Failed(error) => {
                    self.running = None;
                    return Err(error);
                }
                Attempt::Late(gpu) => return Err(self.give_up(kind, gpu).await),
                Attempt::Ended { how: None, .. } if may_have_ended => {
                    self.running = None;
                    may_have_ended = false;
                }
                Attempt::Ended { how, gpu: Some(gpu) } if crashes < CRASHES_MAX => {
                    self.running = None;
                    crashes += 1;
                    let how = how.unwrap_or_else(|| "it ended without an answer".to_owned());
                    answers.unreadable.insert(gpu, format!("ProbeCrashed: {how}"));
                }
                Attempt::Ended { how, gpu } => {
                    self.running = None;
                    let how = how.unwrap_or_else(|| "it ended without an answer".to_owned());
                    return Err(GpuError::Crashed { call: kind.call(&answers), how, gpu });
                }
            }
        }
    }

    async fn attempt(&mut self, kind: Kind, answers: &mut Answers) -> Attempt {
        // Somebody stopped listening in the middle of an answer: what it says now answers that question.
        if self.running.as_ref().is_some_and(|running| running.busy) {
            self.give_up(kind, None).await;
            if self.stuck.is_some() {
                return Attempt::Late(None);
            }
        }
        answers.begun = false;
        if self.running.is_none() {
            match self.start().await {
                Ok(running) => self.running = Some(running),
                Err(error) => {
                    let how = format!("it cannot be started: {error}");
                    return Attempt::Ended { how: Some(how), gpu: None };
                }
            }
        }
        let Some(running) = self.running.as_mut() else {
            return Attempt::Ended { how: None, gpu: None };
        };
        running.busy = true;
        let ended = running.question(&kind.ask(answers), answers, self.options.deadline).await;
        match ended {
            Ended::Well => {
                running.busy = false;
                Attempt::Done
            }
            Ended::Failed(error) => Attempt::Failed(error),
            Ended::Late => Attempt::Late(answers.next()),
            Ended::Nonsense(how) => Attempt::Ended { how: Some(how), gpu: answers.next() },
            Ended::Silent => {
                // Its outputs are closed; it is gone, or about to be.
                match timeout(self.options.reap_max, running.process.wait()).await {
                    Ok(Ok(status)) => {
                        running.hear_last_words().await;
                        let how = running.how(status);
                        Attempt::Ended { how, gpu: answers.next() }
                    }
                    Ok(Err(_)) | Err(_) => Attempt::Late(answers.next()),
                }
            }
        }
    }

    async fn start(&self) -> std::io::Result<Running> {
        let mut command = child_process::command(&self.exe);
        command
            .args(&self.arguments)
            .envs(self.options.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut process = STARTER.start(command).await?;
        let missing = || std::io::Error::other("no pipe to the child");
        Ok(Running {
            stdin: process.stdin.take().ok_or_else(missing)?,
            stdout: BufReader::new(process.stdout.take().ok_or_else(missing)?),
            stderr: Some(process.stderr.take().ok_or_else(missing)?),
            process,
            last_words: VecDeque::new(),
            line: Vec::new(),
            busy: false,
        })
    }

    /// Ends a child that does not answer. If it does not die, it is kept, so that none is started beside it.
    async fn give_up(&mut self, kind: Kind, gpu: Option<u32>) -> GpuError {
        let error = GpuError::Hung { call: kind.word(gpu), after: self.options.deadline, gpu };
        let Some(running) = self.running.as_mut() else { return error };
        end(&running.process, self.end_with);
        // It stays ours while we wait: the caller may stop waiting, and it would be forgotten.
        let reaped = timeout(self.options.reap_max, running.process.wait()).await;
        if let (Some(running), false) = (self.running.take(), matches!(reaped, Ok(Ok(_)))) {
            self.stuck = Some(Stuck { process: running.process, error: error.clone() });
        }
        error
    }

    fn await_stuck(&mut self) -> Result<(), GpuError> {
        if let Some(stuck) = &mut self.stuck {
            match stuck.process.try_wait() {
                Ok(None) => return Err(stuck.error.clone()),
                // An error means that it is not ours to wait for any more.
                Ok(Some(_)) | Err(_) => self.stuck = None,
            }
        }
        Ok(())
    }
}

#[async_trait]
impl Gpu for Child {
    async fn inventory(&mut self) -> Result<Inventory, GpuError> {
        let answers = self.ask(Kind::Inventory).await?;
        let Answers { driver_version, cuda_version, nvml_version, read, unreadable, .. } = answers;
        let identity = |say| match say {
            Say::Identity { gpu } => Some(*gpu),
            Say::Begin { .. }
            | Say::Reading { .. }
            | Say::Unreadable { .. }
            | Say::End
            | Say::Failed { .. } => None,
        };
        let mut gpus: Vec<GpuIdentity> = read.into_values().filter_map(identity).collect();
        name_link_ends(&mut gpus, unreadable.is_empty());
        Ok(Inventory { driver_version, cuda_version, nvml_version, gpus, unreadable })
    }

    async fn sweep(&mut self) -> Result<Sweep, GpuError> {
        #[expect(clippy::disallowed_methods, reason = "how long it took, by no clock of ours")]
        let began = Instant::now();
        let answers = self.ask(Kind::Sweep).await?;
        let reading = |say| match say {
            Say::Reading { gpu } => Some(*gpu),
            Say::Begin { .. }
            | Say::Identity { .. }
            | Say::Unreadable { .. }
            | Say::End
            | Say::Failed { .. } => None,
        };
        Ok(Sweep {
            took: began.elapsed(),
            count: answers.count,
            gpus: answers.read.into_values().filter_map(reading).collect(),
            unreadable: answers.unreadable,
        })
    }
}

/// Says what is at the other end of each link that is up: a GPU of this machine, or else a switch. If some
/// GPUs could not be read (`whole` is false), an end that is not known may be one of them.
///
/// NVML has a call for it; its wrapper loses the answer.
fn name_link_ends(gpus: &mut [GpuIdentity], whole: bool) {
    let places: BTreeSet<String> =
        gpus.iter().map(|gpu| gpu.pci_bus_id.to_ascii_lowercase()).collect();
    for link in gpus.iter_mut().flat_map(|gpu| &mut gpu.nvlinks).filter(|link| link.active) {
        let end = link.remote_pci_bus_id.as_ref().map(|end| end.to_ascii_lowercase());
        link.remote = match end {
            Some(end) if places.contains(&end) => Some("GPU".to_owned()),
            Some(_) if whole => Some("Switch".to_owned()),
            Some(_) | None => None,
        };
    }
}

/// What is asked.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Inventory,
    Sweep,
}

impl Kind {
    fn ask(self, answers: &Answers) -> Ask {
        let skip: BTreeSet<u32> =
            answers.read.keys().chain(answers.unreadable.keys()).copied().collect();
        match self {
            Kind::Inventory => Ask::Inventory { skip },
            Kind::Sweep => Ask::Sweep { skip },
        }
    }

    fn word(self, gpu: Option<u32>) -> String {
        match (self, gpu) {
            (_, None) => "start",
            (Kind::Inventory, Some(_)) => "inventory",
            (Kind::Sweep, Some(_)) => "sweep",
        }
        .to_owned()
    }

    fn call(self, answers: &Answers) -> String {
        self.word(answers.next())
    }
}

/// What was answered so far, by all the children that one question took.
#[derive(Debug, Default)]
struct Answers {
    begun: bool,
    count: u32,
    driver_version: Option<String>,
    cuda_version: Option<String>,
    nvml_version: Option<String>,
    read: BTreeMap<u32, Say>,
    unreadable: BTreeMap<u32, String>,
}

impl Answers {
    /// The GPU that the child is at: the first that has not been answered for.
    fn next(&self) -> Option<u32> {
        let unanswered =
            |index: &u32| !self.read.contains_key(index) && !self.unreadable.contains_key(index);
        (0..self.count).find(unanswered).filter(|_| self.begun)
    }

    /// Takes in a line. `None` if more are to come.
    fn hear(&mut self, say: Say) -> Option<Ended> {
        let index = say.index();
        match say {
            Say::Begin { count, driver_version, cuda_version, nvml_version } => {
                self.begun = true;
                self.count = count;
                self.driver_version = driver_version;
                self.cuda_version = cuda_version;
                self.nvml_version = nvml_version;
                None
            }
            Say::End => Some(Ended::Well),
            Say::Failed { error } => Some(Ended::Failed(error)),
            // A child that names a GPU out of turn is not ours, and could go on for ever.
            Say::Identity { .. } | Say::Reading { .. } | Say::Unreadable { .. }
                if index != self.next() =>
            {
                Some(Ended::Nonsense("it answered out of turn".to_owned()))
            }
            Say::Unreadable { index, error } => {
                self.unreadable.insert(index, error);
                None
            }
            read @ (Say::Identity { .. } | Say::Reading { .. }) => {
                self.read.extend(index.map(|index| (index, read)));
                None
            }
        }
    }
}

/// How one child's part of an answer ended.
#[derive(Debug)]
enum Attempt {
    Done,
    Failed(GpuError),
    /// It did not answer in time, at this GPU.
    Late(Option<u32>),
    /// It is gone; `how` is `None` if it ended in order.
    Ended {
        how: Option<String>,
        gpu: Option<u32>,
    },
}

/// How a conversation ended.
#[derive(Debug)]
enum Ended {
    Well,
    Failed(GpuError),
    Late,
    Silent,
    Nonsense(String),
}

/// A child that was killed and is still there.
#[derive(Debug)]
struct Stuck {
    process: tokio::process::Child,
    error: GpuError,
}

/// A child that answers.
#[derive(Debug)]
struct Running {
    process: tokio::process::Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    /// `None` when it is closed.
    stderr: Option<ChildStderr>,
    last_words: VecDeque<u8>,
    line: Vec<u8>,
    /// Whether a question was asked that was not answered to the end.
    busy: bool,
}

impl Running {
    async fn question(&mut self, ask: &Ask, answers: &mut Answers, deadline: Duration) -> Ended {
        let Ok(mut text) = serde_json::to_vec(ask) else {
            return Ended::Nonsense("the question cannot be written".to_owned());
        };
        text.push(b'\n');
        match timeout(deadline, self.stdin.write_all(&text)).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) => return Ended::Silent,
            Err(_) => return Ended::Late,
        }
        loop {
            match timeout(deadline, self.next_line()).await {
                Err(_) => return Ended::Late,
                Ok(Line::End) => return Ended::Silent,
                Ok(Line::TooLong) => {
                    return Ended::Nonsense(format!("a line of more than {LINE_LEN_MAX} bytes"));
                }
                Ok(Line::Whole) => match serde_json::from_slice(&self.line) {
                    Ok(say) => {
                        if let Some(ended) = answers.hear(say) {
                            return ended;
                        }
                    }
                    Err(error) => return Ended::Nonsense(format!("not an answer: {error}")),
                },
            }
        }
    }

    /// Reads a line into `self.line`, and whatever the child writes to its error output meanwhile: a pipe
    /// that nobody empties would stop it.
    async fn next_line(&mut self) -> Line {
        self.line.clear();
        let mut chunk = [0; 512];
        loop {
            let said = async {
                match &mut self.stderr {
                    Some(stderr) => stderr.read(&mut chunk).await.unwrap_or(0),
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                filled = self.stdout.fill_buf() => {
                    let filled = filled.unwrap_or_default();
                    if filled.is_empty() {
                        return Line::End;
                    }
                    let (part, whole) = match filled.iter().position(|byte| *byte == b'\n') {
                        Some(end) => (filled.get(..end).unwrap_or_default(), true),
                        None => (filled, false),
                    };
                    let taken = part.len() + usize::from(whole);
                    if LINE_LEN_MAX < self.line.len() + part.len() {
                        return Line::TooLong;
                    }
                    self.line.extend_from_slice(part);
                    self.stdout.consume(taken);
                    if whole {
                        return Line::Whole;
                    }
                }
                count = said => {
                    match chunk.get(..count) {
                        Some(words) if !words.is_empty() => keep(&mut self.last_words, words),
                        Some(_) | None => self.stderr = None,
                    }
                }
            }
        }
    }

    /// Reads what it wrote to its error output before it ended. That is over at once, unless a child of its
    /// own still holds it.
    async fn hear_last_words(&mut self) {
        let hearing = async {
            let mut chunk = [0; 512];
            while let Some(stderr) = &mut self.stderr {
                let count = stderr.read(&mut chunk).await.unwrap_or(0);
                match chunk.get(..count) {
                    Some(words) if !words.is_empty() => keep(&mut self.last_words, words),
                    Some(_) | None => self.stderr = None,
                }
            }
        };
        // What is not heard by then is not waited for.
        _ = timeout(LAST_WORDS_MAX, hearing).await;
    }

    /// How it ended; `None` if it ended in order, which is what a child does that nobody asks.
    fn how(&mut self, status: ExitStatus) -> Option<String> {
        if status.success() {
            return None;
        }
        let how = match (status.signal(), status.code()) {
            (Some(signal), _) => format!("signal {signal}"),
            (None, Some(code)) => format!("exit code {code}"),
            (None, None) => "an unknown end".to_owned(),
        };
        let words = last_line(self.last_words.make_contiguous());
        Some(if words.is_empty() { how } else { format!("{how} ({words})") })
    }
}

enum Line {
    Whole,
    TooLong,
    End,
}

fn keep(last_words: &mut VecDeque<u8>, words: &[u8]) {
    last_words.extend(words);
    let over = last_words.len().saturating_sub(STDERR_KEPT_BYTES);
    last_words.drain(..over);
}

/// The last line that says something, without what a terminal would obey.
fn last_line(words: &[u8]) -> String {
    let text = String::from_utf8_lossy(words);
    let line = text.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or_default();
    line.chars().filter(|letter| !letter.is_control()).take(LAST_WORDS_LEN_MAX).collect()
}

fn end(process: &tokio::process::Child, signal: Signal) {
    let pid = process.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
    if let Some(pid) = pid {
        // The only error is that it is gone already, which is what we want.
        let _gone = kill_process(pid, signal);
    }
}

#[cfg(test)]
mod tests;
