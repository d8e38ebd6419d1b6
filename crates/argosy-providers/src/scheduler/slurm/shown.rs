//! What `scontrol show node` says about one node.

use super::OURS;

/// A node as Slurm shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Shown {
    /// As it is printed: `ALLOCATED+DRAIN`.
    pub(super) state: String,
    /// Whether it gets no new jobs because it was drained.
    pub(super) drain: bool,
    /// Why it is drained or down, without who said so and when.
    pub(super) reason: Option<String>,
}

impl Shown {
    /// Reads the form of several lines: at the beginning of a line stands only what Slurm wrote, whatever
    /// a machine or a person put into a value.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let line = |key: &str| text.lines().find_map(|line| line.trim_start().strip_prefix(key));
        let state = line("State=")?.split_whitespace().next()?.to_owned();
        let drain = words(&state).any(|word| word == "DRAIN");
        let reason = line("Reason=").map(|reason| {
            let reason = reason.trim_end();
            let alone = reason.strip_suffix(']').and_then(|reason| reason.rsplit_once(" ["));
            alone.map_or(reason, |(reason, _who_and_when)| reason).to_owned()
        });
        Some(Self { state, drain, reason })
    }

    /// Every node of a listing, with its name.
    pub(super) fn all(text: &str) -> impl Iterator<Item = (&str, Self)> {
        let blocks = text.split("\n\n").map(str::trim_start);
        blocks.filter_map(|block| {
            let name = block.strip_prefix("NodeName=")?.split_whitespace().next()?;
            Some((name, Self::parse(block)?))
        })
    }

    /// Whether it is down, and gets no jobs for that.
    pub(super) fn is_down(&self) -> bool {
        let base = words(&self.state).next();
        matches!(base, Some("DOWN" | "ERROR" | "FUTURE"))
            || words(&self.state).any(|word| word == "FAIL")
    }

    /// Whether Slurm has not heard from it since it was started.
    pub(super) fn is_unknown(&self) -> bool {
        words(&self.state).next() == Some("UNKNOWN")
    }

    /// Whether the reason is one of ours.
    pub(super) fn ours(&self) -> bool {
        self.reason.as_ref().is_some_and(|reason| reason.starts_with(OURS))
    }

    /// Whether the node gets no jobs and has none. What Slurm is not sure of has jobs: after a start it
    /// says `UNKNOWN` until the node has answered.
    pub(super) fn drained(&self) -> bool {
        let free = matches!(words(&self.state).next(), Some("IDLE" | "DOWN"));
        free && self.drain && !words(&self.state).any(|word| word == "COMPLETING")
    }
}

/// The base state, then the flags. Older versions mark a base state with a sign: `IDLE*+DRAIN`.
fn words(state: &str) -> impl Iterator<Item = &str> {
    let sign = |char: char| !char.is_ascii_alphanumeric() && char != '_';
    state.split('+').map(move |word| word.trim_end_matches(sign))
}

#[cfg(test)]
mod tests;
