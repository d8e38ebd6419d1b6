//! A thread that owns one connection and does one piece of work after the other.

use super::fault::Fault;
use crate::engine::Error;
use rusqlite::Connection;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use tokio::sync::{mpsc, oneshot};

/// How many pieces of work may wait.
///
/// Callers wait for room, so a small number only adds a wake-up; a large one would hide that the
/// disk cannot follow.
const WAITING_MAX: usize = 64;

type Job = Box<dyn FnOnce(&mut Connection) -> ControlFlow<()> + Send>;

pub(super) struct Worker {
    // Both are there until the worker is dropped.
    jobs: Option<mpsc::Sender<Job>>,
    thread: Option<JoinHandle<()>>,
    database: PathBuf,
}

impl Worker {
    pub(super) fn start(
        name: &str,
        mut connection: Connection,
        database: &Path,
    ) -> Result<Self, Error> {
        let (jobs, mut waiting) = mpsc::channel::<Job>(WAITING_MAX);
        let work = move || {
            while let Some(job) = waiting.blocking_recv() {
                if job(&mut connection).is_break() {
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new().name(name.to_string()).spawn(work);
        let thread = thread.map_err(|error| Error::Unavailable(format!("no thread: {error}")))?;
        Ok(Self { jobs: Some(jobs), thread: Some(thread), database: database.to_path_buf() })
    }

    /// Does the work on the thread. `Unavailable`, for ever, once the thread has stopped.
    pub(super) async fn call<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Connection) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, Error> {
        let (reply, answer) = oneshot::channel();
        let database = self.database.clone();
        let job: Job = Box::new(move |connection| {
            let result = work(connection);
            let stop = result.as_ref().is_err_and(Fault::is_final);
            // Nobody listens if the caller was cancelled; the work is done all the same.
            let _ = reply.send(result.map_err(|fault| fault.into_error(&database)));
            if stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        let jobs = self.jobs.as_ref().ok_or_else(|| self.stopped())?;
        jobs.send(job).await.map_err(|_| self.stopped())?;
        answer.await.map_err(|_| self.stopped())?
    }

    /// Returns when the thread has stopped.
    pub(super) async fn finished(&self) {
        if let Some(jobs) = &self.jobs {
            jobs.closed().await;
        }
    }

    fn stopped(&self) -> Error {
        Error::Unavailable(format!(
            "work on {} has stopped after a failure; the process must be restarted",
            self.database.display()
        ))
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // A panic has been reported by its hook, and callers have heard `Unavailable`.
            let _ = thread.join();
        }
    }
}
