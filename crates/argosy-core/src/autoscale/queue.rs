//! Queue: as many nodes as the jobs need.
//!
//! What a newcomer gets wrong: jobs that wait come on top of those that run. An empty queue in front of
//! forty busy nodes asks for forty nodes, not for none; so waiting jobs are added to the nodes that work. Where
//! nobody knows who works (a pool without GPUs), what was bought for the jobs must not count as such, or each
//! purchase is the reason of the next.

use super::metrics::Facts;
use super::{Counted, Opinion, Source, nodes_for};
use crate::field::reader::Reader;
use serde::Serialize;

/// The most jobs of one node: more are threads.
const JOBS_PER_NODE_MAX: u32 = 100_000;

/// How many jobs fit on a node, and which are counted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Queue {
    /// How many jobs one node takes.
    pub jobs_per_node: u32,
    /// What is counted.
    pub metric: Jobs,
}

/// Which jobs are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Jobs {
    /// Those that wait; the nodes that work already are needed besides.
    PendingJobs,
    /// Those that wait or run.
    QueueDepth,
}

impl Default for Queue {
    fn default() -> Self {
        Queue { jobs_per_node: 10, metric: Jobs::PendingJobs }
    }
}

impl Queue {
    pub(super) fn read(reader: &mut Reader<'_>) -> Queue {
        let default = Queue::default();
        let metrics = [("pendingJobs", Jobs::PendingJobs), ("queueDepth", Jobs::QueueDepth)];
        Queue {
            jobs_per_node: reader
                .count("jobsPerNode", (1, JOBS_PER_NODE_MAX))
                .unwrap_or(default.jobs_per_node),
            metric: reader.choice("metric", &metrics).unwrap_or(default.metric),
        }
    }

    /// How many nodes so many jobs fill.
    pub(super) fn nodes_for(&self, jobs: u64) -> u32 {
        let nodes = jobs.div_ceil(u64::from(self.jobs_per_node.max(1)));
        u32::try_from(nodes).unwrap_or(u32::MAX)
    }

    pub(super) fn ask(&self, facts: &Facts<'_>) -> Opinion {
        let each = self.jobs_per_node;
        let read = match self.metric {
            Jobs::PendingJobs => &facts.pending_jobs,
            Jobs::QueueDepth => &facts.queue_depth,
        };
        let jobs = match read {
            Ok(jobs) => *jobs,
            Err(why) => return Opinion::none(why),
        };
        let needed = self.nodes_for(jobs);
        let (jobs, nodes) = (Counted(jobs, "job"), Counted(needed, "node"));
        let (target, reason) = match self.metric {
            Jobs::QueueDepth => {
                (needed, format!("{jobs} in the queue at {each} a node need {nodes}"))
            }
            Jobs::PendingJobs => {
                let waiting = format!("{jobs} waiting at {each} a node need {nodes}");
                match busy(facts) {
                    Some((busy, how)) => {
                        (busy.saturating_add(needed), format!("{waiting} beside {how}"))
                    }
                    // Whoever does not know must not take nodes away.
                    None => (
                        needed.max(facts.wanted),
                        format!("{waiting}; which nodes work is not known, so none is taken away"),
                    ),
                }
            }
        };
        let from = match self.metric {
            Jobs::QueueDepth => &facts.from.queue_depth,
            Jobs::PendingJobs => &facts.from.pending_jobs,
        };
        if target == 0 && 0 < facts.wanted && *from == Source::Heartbeats {
            // Without nodes nobody would say that jobs wait.
            return Opinion::new(1, format!("{reason}, but the last node stays"));
        }
        Opinion::new(target, reason)
    }
}

/// How many nodes work, and how that is known; `None` if nobody knows.
fn busy(facts: &Facts<'_>) -> Option<(u32, String)> {
    match (facts.busy, &facts.utilization) {
        (Some(busy), _) => Some((busy, format!("{busy} that work"))),
        (None, Ok(percent)) => {
            let busy = nodes_for(percent / 100.0 * f64::from(facts.ready));
            Some((busy, format!("the work of {busy}")))
        }
        (None, Err(_)) => None,
    }
}

#[cfg(test)]
mod tests;
