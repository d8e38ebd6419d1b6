//! What is to be played: a fleet, a world that goes wrong, and what is expected of it.
//!
//! Read from our own files and from Navarch's; both become the same thing here.

mod argosy;
mod effect;
mod fleet;
mod navarch;
mod read;
mod tree;

pub mod profile;
pub mod shipped;

pub use read::{ScenarioError, TEXT_LEN_MAX, Warning, read};

use argosy_agent::gpu::fake::injection::{Injection, InjectionError};
use jiff::SignedDuration;
use serde_json::Value;
use std::collections::BTreeMap;

/// The most machines of one scenario. Each takes some kilobytes.
pub const NODES_MAX: u32 = 2_000_000;

/// The longest scenario: longer than any machine of the fleet will live.
pub const DURATION_MAX: SignedDuration = SignedDuration::from_hours(24 * 3_660);

/// The longest name, word or line of a scenario, in bytes.
const TEXT_MAX: usize = 1024;

/// A scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// Its name, by which it is run.
    pub name: String,
    /// One line.
    pub summary: String,
    /// More about it.
    pub description: String,
    /// How long it goes on. Faults stop then.
    pub duration: SignedDuration,
    /// How long the world is then given to become as it was asked to be.
    pub settle: SignedDuration,
    /// Part of the server's configuration file, to be laid over the usual one.
    pub config: Value,
    /// Processes of the control plane.
    pub processes: u32,
    /// What is declared: clusters, with their pools.
    pub clusters: Vec<Cluster>,
    /// Machines that are simply there, not bought by us.
    pub fleet: Fleet,
    /// How work and machines behave.
    pub machines: Machines,
    /// What goes wrong.
    pub trouble: Trouble,
    /// What happens at a given time.
    pub script: Vec<Step>,
    /// What must be so at the end.
    pub assertions: Vec<Assertion>,
    /// The work on the machines.
    pub workload: Option<Workload>,
    /// Play every heartbeat, also where nothing can come of it.
    pub every_beat: bool,
    /// The seed it is played with if nobody names another.
    pub seed: Option<u64>,
    /// How far apart measurements are; by the length of the scenario if there is nothing.
    pub sample_every: Option<SignedDuration>,
    /// Files that a run leaves behind, beside what its caller asks for.
    pub reports: Reports,
}

impl Default for Scenario {
    /// An hour of nothing.
    fn default() -> Self {
        Self {
            name: String::new(),
            summary: String::new(),
            description: String::new(),
            duration: SignedDuration::from_hours(1),
            settle: SignedDuration::from_hours(1),
            config: Value::Object(serde_json::Map::new()),
            processes: 1,
            clusters: Vec::new(),
            fleet: Fleet::default(),
            machines: Machines::default(),
            trouble: Trouble::default(),
            script: Vec::new(),
            assertions: Vec::new(),
            workload: None,
            every_beat: false,
            seed: None,
            sample_every: None,
            reports: Reports::default(),
        }
    }
}

/// Files that a run leaves behind: paths, from where the command is given.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reports {
    /// The outcome as JSON.
    pub json: Option<String>,
    /// The report as one page.
    pub html: Option<String>,
    /// The story, line by line.
    pub log: Option<String>,
}

/// A cluster that is declared through the API.
#[derive(Clone, Debug, PartialEq)]
pub struct Cluster {
    /// Its name.
    pub name: String,
    /// Its spec, as the API takes it: `provider`, `region`.
    pub spec: Value,
    /// Its node pools: name and spec, as the API takes it.
    pub pools: Vec<(String, Value)>,
}

/// Machines that are simply there.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fleet {
    /// One by one, or as many as were made up.
    pub nodes: Vec<NodeSpec>,
    /// When they start.
    pub startup: Startup,
}

/// One of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeSpec {
    /// Its id.
    pub id: String,
    /// Provider, region, zone and type.
    pub provider: String,
    /// Region.
    pub region: String,
    /// Zone.
    pub zone: String,
    /// Type.
    pub instance_type: String,
    /// Pool.
    pub pool: String,
    /// GPUs.
    pub gpus: u32,
    /// Of this model: `H100`.
    pub gpu_model: String,
    /// Labels.
    pub labels: BTreeMap<String, String>,
}

/// How machines of a fleet start.
#[derive(Clone, Debug, PartialEq)]
pub struct Startup {
    /// In which pattern.
    pub pattern: StartupPattern,
    /// Over how long.
    pub over: SignedDuration,
    /// So many at once, in a wave.
    pub batch: u32,
    /// How far a start may be off, as part of the time.
    pub jitter: f64,
    /// Whether they start by themselves, or when the script says so.
    pub by_itself: bool,
}

impl Default for Startup {
    fn default() -> Self {
        Self {
            pattern: StartupPattern::Instant,
            over: SignedDuration::ZERO,
            batch: 100,
            jitter: 0.0,
            by_itself: true,
        }
    }
}

/// In which pattern machines start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StartupPattern {
    /// All at once.
    #[default]
    Instant,
    /// Evenly.
    Linear,
    /// Ever faster.
    Exponential,
    /// In batches.
    Wave,
}

/// How machines that we buy behave.
#[derive(Clone, Debug, PartialEq)]
pub struct Machines {
    /// How long one boots: mean and deviation.
    pub boot: (SignedDuration, SignedDuration),
    /// How long work needs to leave a machine that is drained, at most.
    pub drain: SignedDuration,
    /// How long a reboot takes.
    pub reboot: SignedDuration,
    /// GPUs of one machine, and their model, by machine type; for machines that the catalog does not know.
    pub types: BTreeMap<String, (u32, String)>,
    /// Dollars per hour, by machine type; the catalog's otherwise.
    pub prices: BTreeMap<String, f64>,
}

impl Default for Machines {
    fn default() -> Self {
        Self {
            boot: (SignedDuration::from_mins(4), SignedDuration::from_secs(45)),
            drain: SignedDuration::from_secs(30),
            reboot: SignedDuration::from_mins(3),
            types: BTreeMap::new(),
            prices: BTreeMap::new(),
        }
    }
}

/// What goes wrong, by chance. All of it is off by default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trouble {
    /// Of machines and GPUs.
    pub hardware: Vec<Cause>,
    /// Faults that bring others.
    pub cascade: Option<Cascade>,
    /// Machines that mend by themselves.
    pub recovery: Option<Recovery>,
    /// Whole places that go away.
    pub outages: Vec<Outage>,
    /// Of the network between machines and the control plane.
    pub link: Link,
    /// Of the cloud.
    pub cloud: Cloud,
    /// Of the store.
    pub store: Store,
    /// Of the control plane's processes.
    pub control: Control,
}

/// A cause of faults, with its rate.
#[derive(Clone, Debug, PartialEq)]
pub struct Cause {
    /// What people call it: `GPU HBM3`.
    pub name: String,
    /// How often.
    pub rate: Rate,
    /// What happens then, with weights.
    pub effects: Vec<(f64, Effect)>,
    /// Whether the work on the machine is interrupted.
    pub interrupts: bool,
}

/// How often something happens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rate {
    /// So many in a million GPU-hours.
    PerMillionGpuHours(f64),
    /// So many in a thousand node-days.
    PerThousandNodeDays(f64),
    /// So many in the whole fleet each day.
    PerDay(f64),
}

/// What happens to a machine.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Something the agent can see: `xid:79`, `temperature:95`, as `argosy cloud inject` takes it; the GPU is
    /// drawn.
    Inject(String),
    /// The machine falls silent for good.
    Silent,
    /// The machine restarts by itself.
    Reboot,
    /// The agent crashes, and starts again.
    AgentCrash,
    /// The machine's connection is cut for a while.
    Partition(SignedDuration),
    /// The machine's clock is off by so many seconds from now on.
    Clock(i64),
    /// Nothing that we could see; the work on it is interrupted all the same.
    Unseen,
}

impl Effect {
    /// The injection that a text of `Inject` is, with `gpu` where it names none and is about one.
    ///
    /// # Errors
    /// The text is none. Scenarios that were read have no such text.
    pub fn injection(text: &str, gpu: u32) -> Result<Injection, InjectionError> {
        match text.parse() {
            Err(InjectionError::Missing { name: "gpu", .. }) => format!("{text} gpu:{gpu}").parse(),
            whole => whole,
        }
    }
}

/// Faults that bring others.
#[derive(Clone, Debug, PartialEq)]
pub struct Cascade {
    /// How likely one brings another.
    pub probability: f64,
    /// How far it goes.
    pub depth_max: u32,
    /// After how long: from, to.
    pub delay: (SignedDuration, SignedDuration),
    /// Where the next one is.
    pub scope: Scope,
    /// How much of the scope it takes at most, 0 to 1.
    pub affected_max: f64,
}

/// Near what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The label `rack`.
    Rack,
    /// The zone.
    Zone,
    /// The region.
    Region,
    /// The provider.
    Provider,
    /// Anywhere.
    Random,
}

/// Machines that mend by themselves.
#[derive(Clone, Debug, PartialEq)]
pub struct Recovery {
    /// How likely a fault mends, if it is not fatal.
    pub probability: f64,
    /// After how long: mean and deviation.
    pub after: (SignedDuration, SignedDuration),
    /// Whether a machine with a fatal fault is replaced by its owner, and after how long.
    pub replace_fatal_after: Option<SignedDuration>,
}

/// A place that goes away for a while.
#[derive(Clone, Debug, PartialEq)]
pub struct Outage {
    /// Its name.
    pub name: String,
    /// When.
    pub at: SignedDuration,
    /// For how long.
    pub lasts: SignedDuration,
    /// What.
    pub place: Place,
    /// What happens to the machines there.
    pub effect: Effect,
}

/// Which machines.
#[derive(Clone, Debug, PartialEq)]
pub enum Place {
    /// Those of a zone, a region, a provider, a pool, a rack.
    Zone(String),
    /// Those of a region.
    Region(String),
    /// Those of a provider.
    Provider(String),
    /// Those of a pool.
    Pool(String),
    /// Those of a rack.
    Rack(String),
    /// This part of all, 0 to 1.
    Part(f64),
    /// One.
    Node(String),
    /// All.
    Everything,
}

/// The network between machines and the control plane.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Link {
    /// How long a message takes: from, to.
    pub latency: (SignedDuration, SignedDuration),
    /// How likely a message breaks the connection instead of arriving.
    pub loss: f64,
    /// How likely a message arrives twice.
    pub twice: f64,
    /// Partitions a day, each of a random part of the fleet.
    pub partitions_per_day: f64,
    /// How long one lasts on average.
    pub partition: SignedDuration,
}

/// How the cloud lies.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cloud {
    /// How long a call takes: from, to.
    pub latency: (SignedDuration, SignedDuration),
    /// How far listings are behind, at most.
    pub list_lag: SignedDuration,
    /// How likely an answer is lost after the deed.
    pub lost_answers: f64,
    /// How likely a call is refused as one too many.
    pub throttled: f64,
    /// How likely a call fails, with nothing done.
    pub errors: f64,
    /// Times a day without stock, and how long one lasts on average.
    pub stockouts_per_day: f64,
    /// How long.
    pub stockout: SignedDuration,
    /// How likely a machine never boots.
    pub duds: f64,
    /// How likely the machine was used before and its GPUs are known to be bad.
    pub lemons: f64,
    /// Machines that the provider takes away each day, by notice or without one.
    pub reclaimed_per_day: f64,
}

/// How the store fails.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Store {
    /// How long a commit takes: from, to.
    pub latency: (SignedDuration, SignedDuration),
    /// How likely a batch is written and its answer lost.
    pub lost_answers: f64,
    /// How likely a batch is torn: the process that wrote it ends in the middle, and nothing of it counts.
    pub torn: f64,
    /// Times a day that another copy takes over; what was acknowledged is there.
    pub failovers_per_day: f64,
    /// How long one takes.
    pub failover: SignedDuration,
}

/// How the processes of the control plane fail.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Control {
    /// Crashes a day, of one process or all.
    pub crashes_per_day: f64,
    /// How long until it is started again.
    pub restart: SignedDuration,
    /// Times a day that one stands still for a while and goes on.
    pub pauses_per_day: f64,
    /// How long.
    pub pause: SignedDuration,
    /// Times a day that its wall clock is set, and by how many seconds at most.
    pub clock_jumps_per_day: f64,
    /// Seconds.
    pub clock_jump_max: i64,
    /// How long it is wrong until a time server sets it right.
    pub clock_wrong_for: SignedDuration,
}

/// Something that happens at a given time.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// When, since the beginning.
    pub at: SignedDuration,
    /// What.
    pub action: Action,
}

/// What happens.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Every machine of the fleet starts.
    StartFleet,
    /// Every machine of the fleet stops.
    StopFleet,
    /// Something happens to machines.
    Fault(Place, Effect),
    /// What was wrong with machines is not any more: everything, or what this injection did.
    Recover(Place, Option<String>),
    /// Somebody orders a node: `cordon`, `uncordon`, `drain`, `diagnose`, `terminate`.
    Command {
        /// Whom.
        target: String,
        /// What.
        kind: String,
        /// Parameters.
        parameters: BTreeMap<String, String>,
    },
    /// A pool's spec becomes this.
    Resize {
        /// The cluster.
        cluster: String,
        /// The pool.
        pool: String,
        /// What is laid over its spec.
        spec: Value,
    },
    /// A cluster or a pool is deleted.
    Delete {
        /// The cluster.
        cluster: String,
        /// The pool, or all of it.
        pool: Option<String>,
    },
    /// Automation is paused or resumed.
    Pause(bool),
    /// All processes of the control plane end, and are started again after so long.
    Down(SignedDuration),
    /// The store is backed up.
    BackUp,
    /// The control plane ends, and starts again on the last backup.
    Restore,
    /// The database fails over to what it had at the last backup; the control plane goes on.
    LoseCommits,
    /// Somebody lets a pool in recovery do what it would do.
    Confirm {
        /// The cluster.
        cluster: String,
        /// The pool.
        pool: String,
    },
    /// Waits until a node has this status, and fails if it has not in time.
    WaitForStatus {
        /// Whom.
        target: String,
        /// Which.
        status: String,
        /// How long at most.
        within: SignedDuration,
    },
    /// This must be so now.
    Assert(Assertion),
    /// A line in the story.
    Log(String),
}

/// Something that must be so.
#[derive(Clone, Debug, PartialEq)]
pub enum Assertion {
    /// A node has this status.
    NodeStatus(String, String),
    /// A node has this health.
    NodeHealth(String, String),
    /// So many nodes are in service, or have this status; between from and to.
    NodeCount {
        /// Which are counted: `active`, or every one that is not terminated.
        status: Option<String>,
        /// At least.
        from: u64,
        /// At most.
        to: u64,
    },
    /// A pool has as many nodes in service as it asks for.
    PoolReady(String),
    /// A condition of a pool has this reason.
    PoolReason(String, String),
    /// At most so many machines were bought until now.
    Bought(u64),
    /// The part of GPUs in service, over all the time, is at least this.
    Availability(f64),
    /// Faults are known within so many seconds, 99 of 100.
    DetectedWithin(SignedDuration),
    /// The work's time that was not lost is at least this part.
    Goodput(f64),
}

/// The work on the machines: jobs that need many at once.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    /// The jobs.
    pub jobs: Vec<Job>,
}

/// One kind of job. All of its machines work, or none does.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// Its name.
    pub name: String,
    /// How many run at once.
    pub count: u32,
    /// GPUs that one needs.
    pub gpus: u32,
    /// How long one works in all; for ever if there is nothing.
    pub work: Option<SignedDuration>,
    /// How often it writes a checkpoint.
    pub checkpoint_every: SignedDuration,
    /// How long it stands still for that.
    pub checkpoint: SignedDuration,
    /// How long it needs to start again.
    pub restart: SignedDuration,
}
