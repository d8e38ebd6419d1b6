//! Draining: waits until nothing uses a GPU and the hook has ended well, until the deadline.

use super::{Drained, Outcome, Progress};
use crate::gpu::{GpuError, Process, Sweep};
use std::collections::BTreeSet;

/// What still runs on the GPUs of a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Busy {
    /// Nothing.
    Free,
    /// These.
    With(Vec<Process>),
    /// It cannot be told, and why. Not the same as nothing.
    Unknown(String),
}

/// What a sweep says of it. `ours` are the agent's own children.
pub fn busy(sweep: &Result<Sweep, GpuError>, ours: &BTreeSet<u32>) -> Busy {
    let sweep = match sweep {
        Ok(sweep) => sweep,
        // A machine without a driver runs nothing on a GPU.
        Err(GpuError::Absent { .. }) => return Busy::Free,
        Err(error) => return Busy::Unknown(error.to_string()),
    };
    let mut found = Vec::new();
    let mut seen = BTreeSet::new();
    for gpu in &sweep.gpus {
        let Some(processes) = &gpu.processes else {
            return Busy::Unknown(format!(
                "the driver does not say what runs on GPU {}",
                gpu.index
            ));
        };
        for process in processes {
            if !ours.contains(&process.pid) && seen.insert(process.pid) {
                found.push(process.clone());
            }
        }
    }
    // What fell off the bus runs nothing; any other that cannot be read might.
    let mut unsure = sweep.unreadable.iter().filter(|(_, why)| *why != "GPU_IS_LOST");
    if let (true, Some((index, why))) = (found.is_empty(), unsure.next()) {
        return Busy::Unknown(format!("GPU {index} cannot be read: {why}"));
    }
    if found.is_empty() { Busy::Free } else { Busy::With(found) }
}

impl Busy {
    /// A few words on it, for people.
    pub fn words(&self) -> String {
        match self {
            Busy::Free => "nothing runs on a GPU".to_owned(),
            Busy::Unknown(why) => format!("it cannot be told what runs on the GPUs: {why}"),
            Busy::With(processes) => {
                let named = |process: &Process| format!("{} ({})", process.name, process.pid);
                let first: Vec<String> = processes.iter().take(3).map(named).collect();
                let more = processes.len().saturating_sub(first.len());
                let more = if more == 0 { String::new() } else { format!(" and {more} more") };
                format!("on the GPUs: {}{more}", first.join(", "))
            }
        }
    }
}

/// Whether a drain is over, from what still runs and what the hook did. `None` if it goes on.
///
/// What still runs at the deadline decides: `Drained` is never said of a machine that works (F4). `calm` is whether
/// nothing has run for long enough: what loads, or is between two steps, uses no GPU either.
pub fn verdict(busy: &Busy, hook: &HookState, calm: bool, past_deadline: bool) -> Option<Outcome> {
    let done = |drained, message| Some(Outcome { drained: Some(drained), ..Outcome::new(message) });
    match (busy, hook) {
        (Busy::Free, HookState::Done) if calm => {
            done(Drained::Drained, "nothing runs on a GPU".to_owned())
        }
        _ if !past_deadline => None,
        (Busy::Free, HookState::Done) => done(
            Drained::TimedOut,
            "nothing ran on a GPU at the deadline, but not for long enough to be sure".to_owned(),
        ),
        (Busy::Free, HookState::Failed(why)) => {
            done(Drained::TimedOut, format!("nothing runs on a GPU, but {why}"))
        }
        (Busy::Free, HookState::Running) => {
            done(Drained::TimedOut, "the hook had not ended at the deadline".to_owned())
        }
        (Busy::With(_) | Busy::Unknown(_), _) => {
            done(Drained::TimedOut, format!("at the deadline, {}", busy.words()))
        }
    }
}

/// How far the hook of a drain is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HookState {
    /// It has ended well, or there is none.
    Done,
    /// It runs.
    Running,
    /// It ended badly; the sentence says how.
    Failed(String),
}

/// Says what is waited for, if that is something else than before.
pub(crate) fn tell(progress: &Progress, busy: &Busy, hook: &HookState, last: &mut String) {
    let words = match (busy, hook) {
        (Busy::Free, HookState::Running) => "waiting for the hook".to_owned(),
        (Busy::Free, HookState::Failed(why)) => format!("waiting, because {why}"),
        _ => format!("waiting: {}", busy.words()),
    };
    if words != *last {
        progress.tell(0, words.clone());
        *last = words;
    }
}
