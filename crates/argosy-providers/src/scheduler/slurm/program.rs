//! One of Slurm's programs, run without a shell and inside limits.

use argosy_control::scheduler::SchedulerError;
use std::io;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;
use tokio::sync::Semaphore;

/// A program that can be run.
#[derive(Clone, Debug)]
pub(super) struct Program {
    path: PathBuf,
    conf: Option<PathBuf>,
    places: Arc<Semaphore>,
}

/// What a program said, and whether it went well.
#[derive(Debug)]
pub(super) struct Said {
    pub(super) well: bool,
    pub(super) stdout: String,
    pub(super) stderr: String,
}

/// How long a program may take. Slurm's own try for 9 s to reach a controller that is down, and then
/// say so; what takes longer hangs.
const TIME_MAX: Duration = Duration::from_secs(15);

/// How many run at once. Each is a process and a thread of Slurm's controller: with a thousand nodes to
/// drain more would get in its way, fewer would wait for each other.
const PROCESSES_MAX: usize = 8;

/// The most that is read of what a program prints: a node is shown in 2 KiB. More is not from Slurm.
const OUTPUT_BYTES_MAX: usize = 64 * 1024;

/// What the programs find in their environment, and nothing else: `SQUEUE_PARTITION` and its like would
/// change what they answer.
const ENVIRONMENT: [&str; 4] = ["PATH", "LD_LIBRARY_PATH", "HOME", "SLURM_CONF"];

impl Program {
    /// Programs of one installation, which share the limit.
    pub(super) fn of_one<const N: usize>(paths: [PathBuf; N], conf: Option<&PathBuf>) -> [Self; N] {
        let places = Arc::new(Semaphore::new(PROCESSES_MAX));
        paths.map(|path| Self { path, conf: conf.cloned(), places: places.clone() })
    }

    /// Runs it to its end. It is killed when this is dropped.
    pub(super) async fn run(&self, words: &[&str]) -> Result<Said, SchedulerError> {
        self.run_within(words, OUTPUT_BYTES_MAX).await
    }

    /// The same, for one that may print so many bytes.
    pub(super) async fn run_within(
        &self,
        words: &[&str],
        bytes_max: usize,
    ) -> Result<Said, SchedulerError> {
        let name = self.path.display();
        let later = |message: String| SchedulerError::Later(message);
        let _place = self.places.acquire().await.map_err(|cause| later(cause.to_string()))?;
        match tokio::time::timeout(TIME_MAX, self.run_unlimited(words, bytes_max)).await {
            Ok(Ok(said)) => Ok(said),
            Ok(Err(Trouble::Start(cause))) => {
                let message = format!("{name} cannot be run: {cause}");
                let lasting = [io::ErrorKind::NotFound, io::ErrorKind::PermissionDenied];
                let lasting = lasting.contains(&cause.kind());
                Err(if lasting { SchedulerError::Refused(message) } else { later(message) })
            }
            Ok(Err(Trouble::Read(cause))) => Err(later(format!("{name} cannot be read: {cause}"))),
            Ok(Err(Trouble::TooLong)) => {
                Err(SchedulerError::Refused(format!("{name} printed more than {bytes_max} bytes")))
            }
            Err(_) => Err(later(format!("{name} was not done in {} s", TIME_MAX.as_secs()))),
        }
    }

    async fn run_unlimited(&self, words: &[&str], bytes_max: usize) -> Result<Said, Trouble> {
        let mut command = Command::new(&self.path);
        command.args(words).env_clear().env("LC_ALL", "C").kill_on_drop(true);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        for name in ENVIRONMENT {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        if let Some(conf) = &self.conf {
            command.env("SLURM_CONF", conf);
        }
        let mut child = command.spawn().map_err(Trouble::Start)?;
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let (stdout, stderr) = tokio::try_join!(read(stdout, bytes_max), read(stderr, bytes_max))?;
        let status = child.wait().await.map_err(Trouble::Read)?;
        Ok(Said { well: status.success(), stdout, stderr })
    }
}

enum Trouble {
    Start(io::Error),
    Read(io::Error),
    TooLong,
}

async fn read(pipe: Option<impl AsyncRead + Unpin>, bytes_max: usize) -> Result<String, Trouble> {
    let mut bytes = Vec::new();
    if let Some(pipe) = pipe {
        let mut pipe = pipe.take(bytes_max as u64 + 1);
        pipe.read_to_end(&mut bytes).await.map_err(Trouble::Read)?;
    }
    if bytes_max < bytes.len() {
        return Err(Trouble::TooLong);
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests;
