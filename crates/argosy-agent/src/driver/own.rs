//! The agent about itself: how often it was started, and whether it can keep what it knows.

use super::is_wanted;
use crate::check::{CheckOutcome, Word};
use crate::record::replace_file;
use crate::signal::{Signal, SignalKind};
use jiff::{SignedDuration, Timestamp};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// How many starts within `STARTS_WITHIN` are not worth a word: an upgrade and a few tries at it.
pub const STARTS_MAX: usize = 5;
const STARTS_WITHIN: SignedDuration = SignedDuration::from_mins(10);
/// How many starts are remembered: what is more than enough to complain need not be counted.
const STARTS_KEPT: usize = 100;
const STARTS_FILE: &str = "starts";

/// What the agent knows about itself.
pub(super) struct Own {
    starts: Vec<Timestamp>,
    behind: Arc<AtomicBool>,
    cut_bytes: u64,
}

impl Own {
    /// Notes a start.
    pub(super) fn start(
        data_dir: &Path,
        now: Timestamp,
        cut_bytes: u64,
        behind: Arc<AtomicBool>,
    ) -> Self {
        let path = data_dir.join(STARTS_FILE);
        let known = std::fs::read(&path).unwrap_or_default();
        let mut starts: Vec<Timestamp> = serde_json::from_slice(&known).unwrap_or_default();
        starts.retain(|start| recent(*start, now));
        starts.push(now);
        if STARTS_KEPT < starts.len() {
            starts.drain(..starts.len() - STARTS_KEPT);
        }
        let text = serde_json::to_vec(&starts).unwrap_or_default();
        if let Err(error) = replace_file(&path, &text) {
            tracing::warn!(%error, "cannot count the starts of the agent");
        }
        if 0 < cut_bytes {
            tracing::warn!(cut_bytes, "the end of a file was damaged and was cut off");
        }
        Self { starts, behind, cut_bytes }
    }

    /// The check `agent`, if it is wanted.
    pub(super) fn outcome(&self, names: &[String], now: Timestamp) -> Option<CheckOutcome> {
        if !is_wanted(names, "agent") {
            return None;
        }
        let starts = unstable(&self.starts, now);
        let full = self.behind.load(Ordering::Relaxed);
        let mut outcome = match (starts, full) {
            (Some(outcome), _) => outcome,
            (None, true) => CheckOutcome::fault(
                "agent",
                Word::Degraded,
                "SpoolFull",
                "the agent cannot write to its data directory; what it has not said yet would be \
                 lost by a restart",
            ),
            (None, false) => CheckOutcome::healthy("agent", "the agent works"),
        };
        let starts = self.starts.iter().filter(|start| recent(**start, now)).count();
        outcome.details.insert("starts".to_owned(), starts.to_string());
        Some(outcome)
    }

    /// What is to be said once about what was found at the start.
    pub(super) fn signal(&mut self, now: Timestamp) -> Option<Signal> {
        let cut_bytes = std::mem::take(&mut self.cut_bytes);
        (0 < cut_bytes).then(|| {
            let message = "a file of the agent was damaged at its end, which was cut off";
            Signal::once(SignalKind::Host, now, message)
                .with("signal", "agent-file-damaged")
                .with("cut_bytes", cut_bytes)
        })
    }
}

/// The word on an agent that was started too often lately (N5).
pub fn unstable(starts: &[Timestamp], now: Timestamp) -> Option<CheckOutcome> {
    let starts = starts.iter().filter(|start| recent(**start, now)).count();
    (STARTS_MAX < starts).then(|| {
        let message = format!("the agent was started {starts} times within ten minutes");
        CheckOutcome::fault("agent", Word::Degraded, "AgentUnstable", message)
    })
}

fn recent(start: Timestamp, now: Timestamp) -> bool {
    now.duration_since(start).abs() <= STARTS_WITHIN
}
