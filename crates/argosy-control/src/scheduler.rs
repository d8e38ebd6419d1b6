//! The port to a workload system: who is told that a machine takes no more work, and who says when the
//! work on it is over.
//!
//! What a newcomer gets wrong: a machine that the system does not know is not a machine without work.
//! It is a name that was mapped wrongly, as far as anybody can tell from here.

use crate::notify::SendError;
pub use argosy_core::external::Out;
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
    /// What the system called it when it was told, if that name is to be used whatever the others say.
    pub known_as: Option<String>,
}

/// A drain, as it is told and asked about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drain {
    /// Why, for people.
    pub reason: String,
    /// Until when what runs has time to end.
    pub deadline: Timestamp,
    /// Whether the deadline has passed: nothing is asked to leave any more.
    pub over: bool,
    /// Whether what is left then is ended.
    pub force: bool,
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
    /// Work is still there, and is being ended by force.
    Ending {
        /// See `Draining`.
        left: Option<u32>,
        /// See `Draining`.
        message: String,
    },
    /// The machine takes no work, and has none.
    Drained,
    /// The same; some of it was ended by force.
    Forced,
}

/// What a system holds about one of its nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// What it calls the node, as `Scheduler::name_of` does.
    pub name: String,
    /// Whether the node gets work there.
    pub out: Out,
    /// Its state and the reason that is given there, for people: one line.
    pub note: String,
}

/// What a system can be told and asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Abilities {
    /// It can list what it holds about all its nodes. One that cannot is told again from time to time.
    pub list: bool,
    /// It can be told of a cordon.
    pub cordon: bool,
    /// It can be told of a drain; otherwise it hears of a cordon.
    pub drain: bool,
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
/// what still runs stay, `uncordon` gives the machine work again. `list` shows what became of it.
///
/// Guarantees: each call is idempotent, takes seconds, and may be dropped at any await; nothing has to be
/// remembered between two calls, so another process can go on. What a person did in the system by
/// hand is never undone. Work is killed only after the deadline of a drain that says so, or where an
/// implementation is configured to.
#[async_trait]
pub trait Scheduler: Send + Sync + 'static {
    /// Which kind this is, for people: `slurm`. No spaces.
    fn name(&self) -> &'static str;

    /// Where it is. One at another address is another system: it is told everything.
    fn address(&self) -> String;

    /// What it can be told and asked.
    fn abilities(&self) -> Abilities;

    /// What the system calls a machine, as far as that follows from the machine alone.
    ///
    /// # Errors
    /// `UnknownNode` or `Refused` if there is no such name.
    fn name_of(&self, machine: &Machine) -> Result<String, SchedulerError>;

    /// No new work starts on the machine; what runs goes on.
    async fn cordon(&self, machine: &Machine, reason: &str) -> Result<(), SchedulerError>;

    /// The machine may be given work again, as far as we kept it from that.
    async fn uncordon(&self, machine: &Machine) -> Result<(), SchedulerError>;

    /// No new work starts on the machine, and what runs is asked to leave before the deadline.
    async fn drain(&self, machine: &Machine, drain: &Drain) -> Result<(), SchedulerError>;

    /// How far a drain is. Where work leaves only when it is asked again (Kubernetes refuses an
    /// eviction now and takes it later), this asks again, until the deadline of the drain; after it, what is
    /// left is ended if the drain says so.
    async fn drain_status(
        &self,
        machine: &Machine,
        drain: &Drain,
    ) -> Result<DrainStatus, SchedulerError>;

    /// What the system holds about all its nodes. Only asked of one that can.
    async fn list(&self) -> Result<Vec<Listed>, SchedulerError>;
}

/// What the state of a system is stored under: by name and address.
pub(crate) fn key_of(system: &dyn Scheduler) -> String {
    format!("{} {}", system.name(), system.address())
}
