//! Waiting for a disk where it is nobody's loss.

use std::io;
use std::time::Duration;
use tokio::sync::Semaphore;

/// How much may wait for disks at once, in all providers. A disk that hangs keeps the threads that wait for it, and
/// the control plane has 512 for everything: its store, its names, its files. Fewer than this, and a hundred hosts
/// that are listed wait for each other.
const AT_ONCE_MAX: usize = 32;

/// How long to wait for one of them to be free. A busy disk is through with a file within seconds.
const PATIENCE: Duration = Duration::from_secs(30);

static DISKS: Limit = Limit::new();

/// Threads that may wait for disks.
struct Limit {
    free: Semaphore,
}

/// Runs what reads and writes files on a thread that may wait. Dropped, it goes on to its end.
///
/// # Errors
/// As `work`; `TimedOut` if too many others wait for a disk that does not answer.
pub(crate) async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    DISKS.run(work).await
}

impl Limit {
    const fn new() -> Self {
        Self { free: Semaphore::const_new(AT_ONCE_MAX) }
    }

    async fn run<T: Send + 'static>(
        &'static self,
        work: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let Ok(permit) = tokio::time::timeout(PATIENCE, self.free.acquire()).await else {
            let what = format!("{AT_ONCE_MAX} others wait for a disk that does not answer");
            return Err(io::Error::new(io::ErrorKind::TimedOut, what));
        };
        let permit = permit.map_err(io::Error::other)?;
        let working = tokio::task::spawn_blocking(move || {
            let done = work();
            drop(permit);
            done
        });
        working.await.unwrap_or_else(|cause| Err(io::Error::other(cause)))
    }
}

#[cfg(test)]
mod tests;
