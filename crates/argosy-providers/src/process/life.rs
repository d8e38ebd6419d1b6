//! Whether a process lives, and whether it is the one that is meant: a pid alone says neither.

use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open, pidfd_send_signal};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::Path;

/// A process for ever: pids are used again, and start times after a reboot of the host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Process {
    pub(super) pid: i32,
    /// In ticks since the host was started.
    start_time: u64,
    /// Which start of the host.
    host_boot: String,
}

impl Process {
    /// The process that has this pid now.
    pub(super) fn of(pid: i32) -> Option<Self> {
        let (_, start_time) = stat(pid)?;
        Some(Self { pid, start_time, host_boot: host_boot() })
    }

    /// Whether it has not ended. One that only waits to be reaped has.
    pub(super) fn lives(&self) -> bool {
        self.host_boot == host_boot()
            && stat(self.pid).is_some_and(|(state, start_time)| {
                start_time == self.start_time && !matches!(state, 'Z' | 'X')
            })
    }

    /// Asks it to end. What has ended is not asked.
    pub(super) fn terminate(&self) {
        let Some(pid) = Pid::from_raw(self.pid) else { return };
        // Opened before the check: whoever takes the pid afterwards is not signalled.
        let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) else { return };
        if self.lives() {
            _ = pidfd_send_signal(handle, Signal::TERM);
        }
    }

    /// Ends it and what it has started. It leads a group of its own.
    pub(super) fn kill(&self) {
        let Some(pid) = Pid::from_raw(self.pid) else { return };
        if self.lives() {
            _ = kill_process_group(pid, Signal::KILL);
        }
    }
}

/// The process that was started with this word among its own. Asked only when its pid was not written down.
pub(super) fn with_word(word: &str) -> Option<Process> {
    let folders = fs::read_dir("/proc").ok()?;
    let pids = folders.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid| says(*pid, word)).filter_map(Process::of).find(Process::lives)
}

fn says(pid: i32, word: &str) -> bool {
    let Ok(words) = fs::read(Path::new("/proc").join(pid.to_string()).join("cmdline")) else {
        return false;
    };
    words.split(|byte| *byte == 0).any(|other| other == word.as_bytes())
}

/// The state and the start time of a process.
fn stat(pid: i32) -> Option<(char, u64)> {
    parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// See proc(5): the name, in parentheses, may hold anything; the state is the third field, the start time the
/// twenty-second.
fn parse(stat: &str) -> Option<(char, u64)> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace();
    let state = fields.next()?.chars().next()?;
    let start_time = fields.nth(18)?.parse().ok()?;
    Some((state, start_time))
}

fn host_boot() -> String {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id");
    id.unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests;
