//! The hook: a program of the machine's owner that is told when the duty changes.
//!
//! It is run directly, with one word as its argument and the rest in its environment: no shell, and
//! nothing that came over the wire is an argument.

use super::{Failure, Order};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::process::Command;

/// How much of what a hook writes is quoted when it fails, in bytes. The rest is read and thrown away.
const QUOTE_LEN_MAX: u64 = 512;

/// The program, and how long it may take where a command has no deadline.
#[derive(Clone, Debug)]
pub struct Hook {
    /// Which.
    pub program: PathBuf,
    /// How long.
    pub time_max: Duration,
}

impl Hook {
    /// Runs it with a word: `cordon`, `uncordon`, `drain` or `terminate`. Dropped, it is killed.
    ///
    /// # Errors
    /// It could not be started, ended badly, or did not end in time.
    pub async fn run(&self, word: &str, order: &Order, time_max: Duration) -> Result<(), Failure> {
        let mut child = Command::new(&self.program)
            .arg(word)
            .env("ARGOSY_COMMAND_ID", &order.id)
            .env("ARGOSY_REASON", &order.reason)
            .env("ARGOSY_DEADLINE", order.deadline.map(|time| time.to_string()).unwrap_or_default())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| self.failure(&format!("could not be started: {error}")))?;
        let stderr = child.stderr.take();
        let quote = async {
            let mut text = Vec::new();
            if let Some(mut stderr) = stderr {
                _ = (&mut stderr).take(QUOTE_LEN_MAX).read_to_end(&mut text).await;
                _ = tokio::io::copy(&mut stderr, &mut tokio::io::sink()).await;
            }
            String::from_utf8_lossy(&text).trim().to_owned()
        };
        let end = tokio::time::timeout(time_max, async {
            // Together, so that a hook that writes much does not wait for a reader.
            let (quote, status) = tokio::join!(quote, child.wait());
            (status, quote)
        });
        match end.await {
            Err(_) => Err(self.failure(&format!("did not end within {time_max:?}"))),
            Ok((Err(error), _)) => Err(self.failure(&format!("cannot be waited for: {error}"))),
            Ok((Ok(status), _)) if status.success() => Ok(()),
            Ok((Ok(status), quote)) => Err(self.failure(&format!("ended with {status}: {quote}"))),
        }
    }

    fn failure(&self, what: &str) -> Failure {
        Failure(format!("the hook {} {what}", self.program.display()))
    }
}
