//! The port to a workload system: who is told that a machine takes no more work, and who says when the
//! work on it is over.
//!
//! What a newcomer gets wrong: a machine that the system does not know is not a machine without work.
//! It is a name that was mapped wrongly, as far as anybody can tell from here.

use crate::notify::SendError;
use argosy_core::label::Labels;
use async_trait::async_trait;
use jiff::Timestamp;

/// The machine that is spoken of. Each workload system has its own name for it, made from one of these.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Our name for the node.
    pub id: String,
    /// What the machine calls itself; empty if it never said.
    pub hostname: String,
    /// The node's labels.
    pub labels: Labels,
}

/// How far a drain is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DrainStatus {
    /// Work is still there, or the system cannot say that there is none.
    Draining {
        /// How many jobs or pods are left, if it can be counted.
        left: Option<u32>,
        /// What it waits for, for people: one line.
        message: String,
    },
    /// The machine takes no work, and has none.
    Drained,
}

/// Why a workload system did not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SchedulerError {
    /// Try again later.
    #[error("{0}")]
    Later(String),
    /// Trying again cannot help before a person has changed something.
    #[error("{0}")]
    Refused(String),
    /// The system has no such machine: it may be gone from there, or its name is mapped wrongly. What runs
    /// on it is unknown.
    #[error("{0}")]
    UnknownNode(String),
}

impl From<SendError> for SchedulerError {
    fn from(error: SendError) -> Self {
        match error {
            SendError::Later(message) => Self::Later(message),
            SendError::Refused(message) => Self::Refused(message),
        }
    }
}

/// A workload system: Slurm, Kubernetes, or something that is told by webhook.
///
/// Flow: `drain`, again while it fails; then `drain_status` from time to time, until it says drained, and
/// once more after the deadline, for what is left. The last call counts: `cordon` after `drain` lets
/// what still runs stay, `uncordon` gives the machine work again.
///
/// Guarantees: each call is idempotent, takes seconds, and may be dropped at any await; nothing has to be
/// remembered between two calls, so another process can go on. What a person did in the system by
/// hand is never undone. Work is never killed by these calls, unless an implementation is configured
/// to.
#[async_trait]
pub trait Scheduler: Send + Sync + 'static {
    /// Which kind this is, for people: `slurm`.
    fn name(&self) -> &'static str;

    /// No new work starts on the machine; what runs goes on.
    async fn cordon(&self, machine: &Machine, reason: &str) -> Result<(), SchedulerError>;

    /// The machine may be given work again, as far as we kept it from that.
    async fn uncordon(&self, machine: &Machine) -> Result<(), SchedulerError>;

    /// No new work starts on the machine, and what runs is asked to leave before the deadline.
    async fn drain(
        &self,
        machine: &Machine,
        reason: &str,
        deadline: Timestamp,
    ) -> Result<(), SchedulerError>;

    /// How far a drain is. Where work leaves only when it is asked again (Kubernetes refuses an
    /// eviction now and takes it later), this asks again, until the deadline of the drain.
    async fn drain_status(&self, machine: &Machine) -> Result<DrainStatus, SchedulerError>;
}
