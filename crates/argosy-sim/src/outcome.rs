//! What came of one run: everything that a report shows, and nothing that depends on the machine it ran on.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One run of one seed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The scenario.
    pub scenario: String,
    /// The seed.
    pub seed: u64,
    /// A hash of everything that was committed, said and bought, in its order.
    pub digest: String,
    /// How much time passed in the world.
    pub simulated_seconds: f64,
    /// How many things happened.
    pub events: u64,
    /// What must never be and was; the run ends at the first.
    pub violations: Vec<Violation>,
    /// What the scenario expected, and whether it was so.
    pub assertions: Vec<Checked>,
    /// How many machines there were at most, and GPUs.
    pub nodes: u64,
    /// GPUs, at most.
    pub gpus: u64,
    /// What was measured over time, at even steps.
    pub series: Series,
    /// What went wrong, in order.
    pub faults: Vec<Fault>,
    /// What was done to nodes and machines: `cordon`, `drain`, `replace`, `reboot`, `buy`, `return`.
    pub actions: BTreeMap<String, u64>,
    /// What each rule of a health policy did, by name.
    pub rules: BTreeMap<String, RuleHits>,
    /// What the work on the machines got done; `None` without a workload.
    pub work: Option<Work>,
    /// What the machines cost.
    pub money: Money,
    /// How many bytes a node took at the end, where it could be measured.
    pub bytes_per_node: Option<u64>,
}

/// What must never be.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Violation {
    /// Which: `I4`.
    pub invariant: String,
    /// When, in seconds since the beginning.
    pub at: f64,
    /// A sentence with the names and numbers.
    pub message: String,
}

/// One assertion.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Checked {
    /// What was expected, in words.
    pub expected: String,
    /// What was.
    pub found: String,
    /// Whether that is the same.
    pub holds: bool,
}

/// Something that was made to go wrong.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Fault {
    /// When, in seconds since the beginning.
    pub at: f64,
    /// The node, the zone, the process: what it happened to.
    pub target: String,
    /// Why, in the words of the profile: `GPU HBM3`.
    pub cause: String,
    /// What happened: `xid:79`, `silent`, `crash`.
    pub kind: String,
    /// Whether the work on it was interrupted.
    pub interrupts: bool,
    /// Seconds until we knew.
    pub detected_after: Option<f64>,
    /// Seconds until the node took no new work.
    pub cordoned_after: Option<f64>,
    /// Seconds until another node did its work, or itself again.
    pub repaired_after: Option<f64>,
}

/// Measurements over time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// How far apart they are, in seconds.
    pub step_seconds: f64,
    /// GPUs that were asked for.
    pub wanted: Vec<u32>,
    /// GPUs that there are.
    pub present: Vec<u32>,
    /// GPUs in service: healthy, heard and not cordoned.
    pub in_service: Vec<u32>,
    /// Nodes out of service by our own doing.
    pub disrupted: Vec<u32>,
    /// How many may be.
    pub budget: Vec<u32>,
    /// Dollars per hour.
    pub cost_per_hour: Vec<f32>,
    /// The part of the work's time that was not lost, 0 to 1.
    pub goodput: Vec<f32>,
}

/// What a rule of a health policy did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RuleHits {
    /// How often it decided about a report.
    pub hits: u64,
    /// How many nodes it made unhealthy or degraded.
    pub nodes: u64,
    /// How many were replaced for it.
    pub replaced: u64,
}

/// What the work on the machines got done.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Work {
    /// Jobs that ran.
    pub jobs: u64,
    /// How often one was interrupted.
    pub interruptions: u64,
    /// By cause.
    pub by_cause: BTreeMap<String, u64>,
    /// GPU-seconds that could have been worked.
    pub possible: f64,
    /// Of them, those that counted in the end.
    pub useful: f64,
    /// Lost: work since the last checkpoint.
    pub redone: f64,
    /// Lost: waiting for machines.
    pub waited: f64,
    /// Lost: starting again, and writing checkpoints.
    pub overhead: f64,
}

/// What it cost.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Money {
    /// Dollars.
    pub total: f64,
    /// Dollars for machines that did nothing useful: booting, sick, cordoned, orphaned.
    pub wasted: f64,
    /// Machines bought.
    pub bought: u64,
    /// Machines returned.
    pub returned: u64,
}
