//! The agent's side of a test: starts the child, listens to it, and gives it up at the deadline.

use crate::child_process::{self, Starter};
use crate::diagnose::plan::{Plan, Test};
use crate::diagnose::talk::{LINE_LEN_MAX, Refusal, STRANGE_LINES_MAX, Said};
use crate::diagnose::{Diagnosis, Progress, quick};
use crate::gpu::{Gpu, GpuError};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader};
use tokio::process::Child;

static STARTER: Starter = Starter::new();

/// How much of what the child wrote as errors is kept: its last words.
const LAST_WORDS_MAX: usize = 4096;

/// How long a killed child may take to go. One that sits in the kernel does not go at all.
const REAP: Duration = Duration::from_secs(5);

/// Why there is no diagnosis.
#[derive(Debug, thiserror::Error)]
pub enum DiagnoseError {
    /// The child says why it will not: nothing is known about the GPUs.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The child could not be started.
    #[error("{program} cannot be started")]
    Start {
        /// What was to be started.
        program: PathBuf,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
    /// The deadline passed. The driver hangs, or there was too little time.
    #[error(
        "the test did not end within {after:?} and was killed{}{}",
        if *gone { "" } else { "; it does not go, the driver holds it" },
        if last.is_empty() { String::new() } else { format!("; it was last at: {last}") }
    )]
    Hung {
        /// How long we waited.
        after: Duration,
        /// Whether the killed child is gone.
        gone: bool,
        /// The last progress it told.
        last: String,
    },
    /// The child died. A driver's library that is missing a function does that.
    #[error("the test died ({how}){}", quote(last_words))]
    Crashed {
        /// `signal 11`, `exit code 101`.
        how: String,
        /// What it wrote before.
        last_words: String,
    },
    /// The child said things, and no result.
    #[error("the test ended without a result{}", quote(last_words))]
    Senseless {
        /// What it wrote instead.
        last_words: String,
    },
    /// NVML did not answer, and `quick` is what it says.
    #[error(transparent)]
    Gpu(#[from] GpuError),
}

/// Does what the plan says: asks `gpus` for what `quick` judges, and starts children for all else.
///
/// `exe` is this program. Guarantees: ends a few seconds after `time_max`, whatever the driver does; a
/// child that is running when the future is dropped is killed.
pub async fn run(
    exe: &Path,
    gpus: &mut (impl Gpu + ?Sized),
    plan: &Plan,
    time_max: Duration,
    on_progress: impl FnMut(Progress),
) -> Result<Diagnosis, DiagnoseError> {
    let (quick, others): (Vec<Test>, Vec<Test>) =
        plan.test.steps().into_iter().partition(|test| *test == Test::Quick);
    let mut parts = Vec::new();
    if !quick.is_empty() {
        let inventory = gpus.inventory().await?;
        let sweep = gpus.sweep().await?;
        parts.push(quick::judge(&inventory, &sweep, plan.gpu));
    }
    parts.extend(run_children(exe, plan, &others, time_max, on_progress).await?);
    Ok(match parts.len() {
        1 => parts.remove(0),
        _ => Diagnosis::joined(plan.test.as_str(), parts),
    })
}

/// One child after the other, all within `time_max`.
async fn run_children(
    exe: &Path,
    plan: &Plan,
    steps: &[Test],
    time_max: Duration,
    mut on_progress: impl FnMut(Progress),
) -> Result<Vec<Diagnosis>, DiagnoseError> {
    let mut last = String::new();
    let mut running = None;
    let all = async {
        let count = steps.len() as f64;
        let mut parts = Vec::new();
        for (test, done) in steps.iter().zip(0_u32..) {
            let plan = Plan { test: *test, ..plan.clone() };
            let child = running.insert(start(exe, &plan).await?);
            let part = listen(child, |progress| {
                last.clone_from(&progress.message);
                let percent = (f64::from(done) * 100.0 + progress.percent) / count;
                on_progress(Progress { percent, ..progress });
            });
            parts.push(part.await?);
        }
        Ok::<_, DiagnoseError>(parts)
    };
    let ended = tokio::time::timeout(time_max, all).await;
    let Ok(parts) = ended else {
        let gone = match &mut running {
            Some(child) => give_up(child).await,
            None => true,
        };
        return Err(DiagnoseError::Hung { after: time_max, gone, last });
    };
    parts
}

async fn start(exe: &Path, plan: &Plan) -> Result<Child, DiagnoseError> {
    let mut command = child_process::command(exe);
    command.arg("diagnose").arg("--worker");
    for (name, value) in plan.parameters() {
        command.arg(format!("{name}={value}"));
    }
    if plan.inject_bit_flip {
        command.arg("--inject-bit-flip");
    }
    if let Some(library) = &plan.nvml_library {
        command.arg("--nvml-library").arg(library);
    }
    command
        // CUDA's numbers as NVML's, and no GPU hidden by what our own environment says.
        .env("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
        .env_remove("CUDA_VISIBLE_DEVICES")
        // Its last words are to say what happened, not where.
        .env("RUST_BACKTRACE", "0")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let started = STARTER.start(command).await;
    started.map_err(|source| DiagnoseError::Start { program: exe.to_owned(), source })
}

/// Hears the child out. Its standard input stays open meanwhile: the child ends with it.
async fn listen(
    child: &mut Child,
    mut on_progress: impl FnMut(Progress),
) -> Result<Diagnosis, DiagnoseError> {
    let (Some(out), Some(err)) = (child.stdout.take(), child.stderr.take()) else {
        return Err(DiagnoseError::Senseless { last_words: String::new() });
    };
    let mut errors = Vec::new();
    let heard = {
        let mut gather = std::pin::pin!(gather(err, &mut errors));
        let mut hear = std::pin::pin!(hear(BufReader::new(out), &mut on_progress));
        let mut silent = false;
        let heard = loop {
            tokio::select! {
                heard = &mut hear => break heard,
                () = &mut gather, if !silent => silent = true,
            }
        };
        // What it still writes before it goes, for a moment.
        if heard.end.is_none() && !silent {
            let _ = tokio::time::timeout(REAP, gather).await;
        }
        heard
    };
    // It has said all it has to say, or nothing but nonsense: one that stays is held by the driver.
    let status = match tokio::time::timeout(REAP, child.wait()).await {
        Ok(status) => status.ok(),
        Err(_) => {
            give_up(child).await;
            None
        }
    };
    match heard.end {
        Some(Said::Done(diagnosis)) => return Ok(*diagnosis),
        Some(Said::Refused(refusal)) => return Err(DiagnoseError::Refused(refusal)),
        Some(Said::Progress(_)) | None => {}
    }
    let errors = plain(String::from_utf8_lossy(&errors).trim());
    let last_words = if errors.is_empty() { heard.strange } else { errors };
    Err(match status {
        Some(status) if status.success() => DiagnoseError::Senseless { last_words },
        Some(status) => DiagnoseError::Crashed { how: how(status), last_words },
        None => DiagnoseError::Crashed { how: "killed, it did not end".to_owned(), last_words },
    })
}

/// What came over the child's standard output.
#[derive(Debug, Default)]
struct Heard {
    /// A result or a refusal.
    end: Option<Said>,
    /// The start of the last line that was not ours.
    strange: String,
}

async fn hear(
    mut from: impl AsyncBufRead + Unpin,
    on_progress: &mut impl FnMut(Progress),
) -> Heard {
    let mut heard = Heard::default();
    let mut strange_count = 0;
    let mut line = Vec::new();
    while strange_count < STRANGE_LINES_MAX && next_line(&mut from, &mut line).await {
        match serde_json::from_slice(&line) {
            Ok(Said::Progress(progress)) => on_progress(tame(progress)),
            Ok(end @ (Said::Done(_) | Said::Refused(_))) => {
                heard.end = Some(end);
                return heard;
            }
            Err(_) => {
                strange_count += 1;
                let start = line.get(..line.len().min(200)).unwrap_or_default();
                heard.strange = plain(&String::from_utf8_lossy(start));
            }
        }
    }
    heard
}

/// Reads a line into `line`, cut at `LINE_LEN_MAX`: the rest is read and forgotten. `false` at the end.
async fn next_line(from: &mut (impl AsyncBufRead + Unpin), line: &mut Vec<u8>) -> bool {
    line.clear();
    let mut any = false;
    loop {
        let Ok(some) = from.fill_buf().await else { return any };
        if some.is_empty() {
            return any;
        }
        any = true;
        let end = some.iter().position(|byte| *byte == b'\n');
        let piece = some.get(..end.unwrap_or(some.len())).unwrap_or_default();
        let room = LINE_LEN_MAX.saturating_sub(line.len());
        line.extend_from_slice(piece.get(..piece.len().min(room)).unwrap_or_default());
        let used = end.map_or(some.len(), |end| end + 1);
        from.consume(used);
        if end.is_some() {
            return true;
        }
    }
}

/// Keeps the end of what the child writes as errors. All of it is read, or the child would wait for us.
async fn gather(mut from: impl AsyncRead + Unpin, kept: &mut Vec<u8>) {
    let mut piece = [0; 1024];
    while let Ok(count @ 1..) = from.read(&mut piece).await {
        kept.extend_from_slice(piece.get(..count).unwrap_or_default());
        if LAST_WORDS_MAX < kept.len() {
            kept.drain(..kept.len() - LAST_WORDS_MAX);
        }
    }
}

/// A number that is one, and a message that is a line.
fn tame(progress: Progress) -> Progress {
    let percent =
        if progress.percent.is_finite() { progress.percent.clamp(0.0, 100.0) } else { 0.0 };
    let message = progress.message.chars().take(200).collect::<String>();
    Progress { percent, message: plain(&message) }
}

fn plain(text: &str) -> String {
    text.replace(char::is_control, " ")
}

/// Kills a child; whether it is gone.
async fn give_up(child: &mut Child) -> bool {
    // An error says that it is gone already.
    let _ = child.start_kill();
    tokio::time::timeout(REAP, child.wait()).await.is_ok()
}

fn how(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    match (status.signal(), status.code()) {
        (Some(signal), _) => format!("signal {signal}"),
        (None, Some(code)) => format!("exit code {code}"),
        (None, None) => status.to_string(),
    }
}

fn quote(last_words: &str) -> String {
    if last_words.is_empty() { String::new() } else { format!("; its last words: {last_words}") }
}

#[cfg(test)]
mod tests;
