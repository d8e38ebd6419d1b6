//! The hook: a program of the machine's owner that is told when the duty changes.
//!
//! It is run directly, with one word as its argument and the rest in its environment: no shell, and
//! nothing that came over the wire is an argument.

use super::{Failure, Order};
use crate::child_process::{self, Group, Starter};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::process::ChildStderr;

static STARTER: Starter = Starter::new();

/// How much of what a hook writes is quoted when it fails, in bytes. The rest is read and thrown away.
const QUOTE_LEN_MAX: u64 = 512;

/// How long what a hook wrote may still come when it has ended.
const QUOTE_WAIT: Duration = Duration::from_secs(1);

/// The program, and how long it may take where a command has no deadline.
#[derive(Clone, Debug)]
pub struct Hook {
    /// Which.
    pub program: PathBuf,
    /// How long.
    pub time_max: Duration,
}

impl Hook {
    /// Runs it with a word: `cordon`, `uncordon`, `drain` or `terminate`. Dropped or too late, it is killed with
    /// everything it started: a `kubectl` that ran on would work beside the next one.
    ///
    /// # Errors
    /// It could not be started, ended badly, or did not end in time.
    pub async fn run(&self, word: &str, order: &Order, time_max: Duration) -> Result<(), Failure> {
        let mut command = child_process::command(&self.program);
        command
            .arg(word)
            .env("ARGOSY_COMMAND_ID", &order.id)
            .env("ARGOSY_REASON", &order.reason)
            .env("ARGOSY_DEADLINE", order.deadline.map(|time| time.to_string()).unwrap_or_default())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .process_group(0);
        let started = STARTER.start(command).await;
        let started =
            started.map_err(|error| self.failure(&format!("could not be started: {error}")))?;
        let mut child = Group::new(started);
        let stderr = child.child().stderr.take();
        let mut text = Vec::new();
        let ended = {
            let mut reading = std::pin::pin!(read(stderr, &mut text));
            let ended = tokio::time::timeout(time_max, async {
                // Together, so that a hook that writes much does not wait for a reader.
                tokio::select! {
                    status = child.wait() => (status, false),
                    () = &mut reading => (child.wait().await, true),
                }
            });
            let ended = ended.await;
            if let Ok((_, false)) = ended {
                // It may have left somebody behind who holds its stderr for ever.
                _ = tokio::time::timeout(QUOTE_WAIT, &mut reading).await;
            }
            ended
        };
        let quote = String::from_utf8_lossy(&text);
        match ended {
            Err(_) => Err(self.failure(&format!("did not end within {time_max:?}"))),
            Ok((Err(error), _)) => Err(self.failure(&format!("cannot be waited for: {error}"))),
            Ok((Ok(status), _)) if status.success() => Ok(()),
            Ok((Ok(status), _)) => {
                Err(self.failure(&format!("ended with {status}: {}", quote.trim())))
            }
        }
    }

    fn failure(&self, what: &str) -> Failure {
        Failure(format!("the hook {} {what}", self.program.display()))
    }
}

/// Reads what is quoted, and throws the rest away. Dropped, `text` has what was read so far.
async fn read(stderr: Option<ChildStderr>, text: &mut Vec<u8>) {
    if let Some(mut stderr) = stderr {
        let mut start = (&mut stderr).take(QUOTE_LEN_MAX);
        while let Ok(1..) = start.read_buf(text).await {}
        _ = tokio::io::copy(&mut stderr, &mut tokio::io::sink()).await;
    }
}
