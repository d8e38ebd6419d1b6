//! Waiting for a disk where it is nobody's loss.

use std::io;

/// Runs what reads and writes files on a thread that may wait. Dropped, it goes on to its end.
pub(crate) async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|cause| Err(io::Error::other(cause)))
}
