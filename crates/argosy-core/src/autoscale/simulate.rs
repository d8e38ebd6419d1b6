//! A policy replayed over recorded history: what it would have done, and what that would have cost.
//!
//! What a newcomer gets wrong: the recorded utilization was measured on the recorded size. The replay
//! keeps the work and lets the utilization follow from the simulated size. Of a pool that was full,
//! only the work that fitted was recorded, so a replay can understate what it needed.

use super::metrics::{History, Metrics, Sample, counted};
use super::{Autoscaling, PoolView, Scaled, Shown, nodes_for, recommend};
use jiff::{SignedDuration, Timestamp};
use std::collections::VecDeque;
use std::fmt;

/// The most steps of a replay: five weeks of one a minute. A longer history is replayed in longer steps.
pub const SIM_STEPS_MAX: usize = 50_000;

/// The pool that is simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimPool {
    /// Its smallest size.
    pub min: u32,
    /// Its largest size.
    pub max: u32,
    /// Its size at the start.
    pub nodes: u32,
    /// How long a machine needs from the order until it is ready.
    pub boot: SignedDuration,
}

/// One look of the simulated autoscaler.
#[derive(Clone, Debug, PartialEq)]
pub struct SimStep {
    /// When.
    pub at: Timestamp,
    /// The size the pool was held to.
    pub wanted: u32,
    /// The size it is held to from now on.
    pub target: u32,
    /// How many nodes were ready.
    pub ready: u32,
    /// How many nodes the recorded work fills; `None` where nothing was recorded.
    pub need: Option<u32>,
    /// Why, as `explain` says it.
    pub reason: String,
}

/// Replays a history from its first to its last sample, looking every `step` (at least a second).
///
/// Jobs that waited count as work where the policy says how many fit on a node.
pub fn simulate(
    autoscaling: &Autoscaling,
    pool: SimPool,
    history: &[Sample],
    step: SignedDuration,
) -> Vec<SimStep> {
    let history = History::from(history.to_vec());
    let Some((first, last)) = history.first().zip(history.last()).map(|(a, b)| (a.at, b.at)) else {
        return Vec::new();
    };
    let limit = i32::try_from(SIM_STEPS_MAX).unwrap_or(i32::MAX);
    let step = step.max(last.duration_since(first) / limit).max(SignedDuration::from_secs(1));
    let per_node = autoscaling.policy.queue().map(|queue| queue.jobs_per_node);
    let mut machines = Machines { ready: pool.nodes, booting: VecDeque::new() };
    let mut metrics = Metrics { history, ..Metrics::default() };
    let (mut wanted, mut last_scaled, mut at) = (pool.nodes, None, first);
    let mut steps = Vec::new();
    while at <= last && steps.len() < SIM_STEPS_MAX {
        machines.boot(at);
        let ready = machines.ready;
        let known = metrics.history.partition_point(|sample| sample.at <= at);
        let sample = known.checked_sub(1).and_then(|place| metrics.history.get(place)).copied();
        let load = sample.map(|sample| Load::of(&sample, ready, per_node)).unwrap_or_default();
        metrics.at = sample.map(|sample| sample.at);
        metrics.utilization = load.utilization;
        metrics.busy_nodes = load.busy;
        metrics.pending_jobs = load.pending_jobs;
        metrics.queue_depth = sample.and_then(|sample| sample.queue_depth);
        let (min, max) = (pool.min, pool.max);
        let view =
            PoolView { name: "simulated", wanted, ready, min, max, metrics: &metrics, last_scaled };
        let advice = recommend(autoscaling, &view, at);
        let target = advice.target;
        steps.push(SimStep { at, wanted, target, ready, need: load.need, reason: advice.reason });
        if target != wanted {
            last_scaled = Some(Scaled { at, up: wanted < target });
            machines.resize(wanted, target, at.checked_add(pool.boot).unwrap_or(at));
            wanted = target;
        }
        let Ok(next) = at.checked_add(step) else { break };
        at = next;
    }
    steps
}

/// What a pool of the simulated size would have measured.
#[derive(Clone, Copy, Debug, Default)]
struct Load {
    utilization: Option<f64>,
    busy: Option<u32>,
    pending_jobs: Option<u64>,
    need: Option<u32>,
}

impl Load {
    fn of(sample: &Sample, ready: u32, per_node: Option<u32>) -> Load {
        let recorded = sample.pending_jobs.unwrap_or(0);
        let per_node = per_node.map(f64::from);
        let waiting = per_node.map_or(0.0, |each| counted(recorded) / each.max(1.0));
        // What waited then would run on a larger pool, and what ran then would wait for a smaller one.
        let work = sample.demand().map(|ran| ran + waiting);
        let left_over = work.map(|work| (work - f64::from(ready)).max(0.0));
        let share = |work: f64| (100.0 * work / f64::from(ready.max(1))).min(100.0);
        Load {
            utilization: work.map(share),
            busy: work.map(|work| nodes_for(work).min(ready)),
            pending_jobs: sample.pending_jobs.map(|jobs| match (left_over, per_node) {
                (Some(left_over), Some(each)) => u64::from(nodes_for(left_over * each)),
                (_, _) => jobs,
            }),
            need: work.map(nodes_for),
        }
    }
}

/// The machines of the simulated pool.
struct Machines {
    ready: u32,
    /// When how many will be ready, in order.
    booting: VecDeque<(Timestamp, u32)>,
}

impl Machines {
    fn boot(&mut self, now: Timestamp) {
        while let Some((_, count)) = self.booting.pop_front_if(|(at, _)| *at <= now) {
            self.ready = self.ready.saturating_add(count);
        }
    }

    fn resize(&mut self, from: u32, to: u32, ready_at: Timestamp) {
        if from < to {
            self.booting.push_back((ready_at, to - from));
            return;
        }
        // What boots is given back first: it does no work yet.
        let mut fewer = from - to;
        while let Some((_, count)) = self.booting.back_mut() {
            let given = fewer.min(*count);
            (*count, fewer) = (*count - given, fewer - given);
            if fewer == 0 {
                break;
            }
            self.booting.pop_back();
        }
        self.ready = self.ready.saturating_sub(fewer);
    }
}

/// What a replay comes to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// Nodes times hours, from the order on.
    pub node_hours: f64,
    /// How often the size was changed.
    pub changes: usize,
    /// For how many minutes fewer nodes were ready than the work fills.
    pub minutes_below_need: f64,
    /// The largest size.
    pub nodes_max: u32,
}

impl Summary {
    /// Of a replay.
    pub fn of(steps: &[SimStep]) -> Summary {
        Summary::sum(steps, |step| (step.target, step.ready))
    }

    /// Of the same work on a pool that always had so many nodes.
    pub fn of_static(steps: &[SimStep], nodes: u32) -> Summary {
        Summary { changes: 0, ..Summary::sum(steps, |_| (nodes, nodes)) }
    }

    fn sum(steps: &[SimStep], sizes: impl Fn(&SimStep) -> (u32, u32)) -> Summary {
        let each = match steps {
            [first, second, ..] => second.at.duration_since(first.at).as_secs_f64(),
            [] | [_] => 0.0,
        };
        let nodes = steps.iter().map(|step| f64::from(sizes(step).0)).sum::<f64>();
        let short = |step: &&SimStep| step.need.is_some_and(|need| sizes(step).1 < need);
        let short = u32::try_from(steps.iter().filter(short).count()).unwrap_or(u32::MAX);
        Summary {
            node_hours: nodes * each / 3600.0,
            changes: steps.iter().filter(|step| step.target != step.wanted).count(),
            minutes_below_need: f64::from(short) * each / 60.0,
            nodes_max: steps.iter().map(|step| sizes(step).0).max().unwrap_or(0),
        }
    }

    /// This one beside another, in one line: `12 node hours instead of 20 (40 % less), …`.
    pub fn against(&self, other: &Summary) -> String {
        let share = match other.node_hours {
            0.0 => String::new(),
            hours => {
                let change = 100.0 * (self.node_hours - hours) / hours;
                let word = if change <= 0.0 { "less" } else { "more" };
                format!(" ({} % {word})", Shown(change.abs()))
            }
        };
        format!(
            "{} node hours instead of {}{share}, {} changes of size instead of {}, {} minutes below \
             need instead of {}",
            Shown(self.node_hours),
            Shown(other.node_hours),
            self.changes,
            other.changes,
            Shown(self.minutes_below_need),
            Shown(other.minutes_below_need),
        )
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} node hours, {} changes of size, {} minutes below need, at most {} nodes",
            Shown(self.node_hours),
            self.changes,
            Shown(self.minutes_below_need),
            self.nodes_max
        )
    }
}

#[cfg(test)]
mod tests;
