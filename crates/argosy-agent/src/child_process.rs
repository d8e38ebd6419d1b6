//! Programs that the agent starts: without its credential, and never on the thread that keeps heartbeats going.
//!
//! What a newcomer gets wrong: starting a program waits for its file. On a disk that hangs, that is for ever.

use rustix::process::{Pid, Signal, kill_process_group};
use std::ffi::OsStr;
use std::io;
use std::time::Duration;
use tokio::process::{Child, Command};
use tokio::sync::Semaphore;

/// The credential of the agent in its environment. It is nobody else's.
const TOKEN_VARIABLE: &str = "ARGOSY_TOKEN";

/// How long a program may take to start before it counts as not started: reading its file takes milliseconds.
const START_MAX: Duration = Duration::from_secs(10);

/// A program of ours or of somebody else, which does not get the agent's credential and is killed when it is dropped.
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.env_remove(TOKEN_VARIABLE).kill_on_drop(true);
    command
}

/// Starts programs of one kind beside the loop, one at a time: a disk that hangs takes one thread, and whoever
/// comes next hears of it.
pub(crate) struct Starter {
    free: Semaphore,
}

impl Starter {
    /// For one kind of program, so that one that hangs does not hold up others.
    pub(crate) const fn new() -> Self {
        Self { free: Semaphore::const_new(1) }
    }

    /// Starts a program. What is started after nobody waits for it any more is killed.
    ///
    /// # Errors
    /// What the operating system said; `TimedOut` if the program's file does not answer.
    pub(crate) async fn start(&'static self, mut command: Command) -> io::Result<Child> {
        let starting = async {
            let permit = self.free.acquire().await.map_err(io::Error::other)?;
            let starting = tokio::task::spawn_blocking(move || {
                let child = command.spawn();
                drop(permit);
                child
            });
            starting.await.map_err(io::Error::other)?
        };
        tokio::time::timeout(START_MAX, starting).await.unwrap_or_else(|_| {
            let what = format!("the program did not start within {} s", START_MAX.as_secs());
            Err(io::Error::new(io::ErrorKind::TimedOut, what))
        })
    }
}

/// A child that leads a process group, and everything it started.
///
/// Dropped before `wait` has answered, all of it is killed: the child that was not waited for still has its
/// number, so no stranger can have it.
pub(crate) struct Group {
    child: Child,
    leader: Option<Pid>,
}

impl Group {
    /// Takes a child that was started with `process_group(0)`.
    pub(crate) fn new(child: Child) -> Self {
        let leader = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        Self { child, leader }
    }

    /// The child.
    pub(crate) fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Waits for the child. What it left behind is its own affair then.
    ///
    /// # Errors
    /// As `Child::wait`.
    pub(crate) async fn wait(&mut self) -> io::Result<std::process::ExitStatus> {
        let status = self.child.wait().await;
        self.leader = None;
        status
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(leader) = self.leader {
            // An error says that nobody is left.
            _ = kill_process_group(leader, Signal::KILL);
        }
    }
}

#[cfg(test)]
mod tests;
