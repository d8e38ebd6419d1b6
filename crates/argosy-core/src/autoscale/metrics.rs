//! What an autoscaler sees: measurements, and which of them can be true.
//!
//! What a newcomer gets wrong: utilization alone says nothing about demand. Half of two nodes is one
//! node's work, half of twenty is ten; so every sample carries how many nodes it was measured on.

use super::{MetricsFrom, PoolView};
use crate::span::Written;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::Deref;

/// More jobs than anybody waits for: an autoscaler that believed more would buy a continent.
pub const JOBS_MAX: u64 = 10_000_000;

/// How many times longer than ever before a queue may become between two looks. More is rather a unit
/// mistaken for another; the bounds of the pool hold anyway.
const LEAP_MAX: u64 = 100;

/// Queues shorter than this may leap as they like: somebody submitted an array of jobs.
const LEAP_FROM: u64 = 10_000;

/// How many samples of a queue must be known before a leap is doubted, and how many as long as the leap
/// make it true.
const LEAP_SAMPLES: usize = 12;
const LEAP_WITNESSES: usize = 3;

/// A percentage may be a little above 100 through rounding.
const PERCENT_MAX: f64 = 101.0;

/// More nodes than one pool has.
const NODES_MAX: u32 = 1_000_000;

/// The most samples of a history: two weeks of one a minute.
pub const HISTORY_LEN_MAX: usize = 14 * 24 * 60;

/// How far ahead of ours the clock of whoever measured may be.
const SKEW_MAX: SignedDuration = SignedDuration::from_secs(60);

/// What was measured of a pool at one time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// When.
    pub at: Timestamp,
    /// On how many nodes, those that were ready.
    pub nodes: u32,
    /// Mean utilization of their GPUs, 0 to 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub utilization: Option<f64>,
    /// Jobs that wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending_jobs: Option<u64>,
    /// Jobs that wait or run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_depth: Option<u64>,
}

impl Sample {
    /// How many nodes' worth of work there was. Of a pool that was full it is what could be seen.
    pub fn demand(&self) -> Option<f64> {
        let utilization = self.utilization.filter(|percent| is_percent(*percent))?;
        Some(utilization.min(100.0) / 100.0 * f64::from(self.nodes.min(NODES_MAX)))
    }
}

/// Samples in the order of their times, one a time, at most `HISTORY_LEN_MAX`: the newest are kept.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "Vec<Sample>")]
pub struct History(Vec<Sample>);

impl History {
    /// Adds a sample; one of the same time is replaced.
    pub fn push(&mut self, sample: Sample) {
        match self.0.binary_search_by_key(&sample.at, |known| known.at) {
            Ok(place) => {
                if let Some(known) = self.0.get_mut(place) {
                    *known = sample;
                }
            }
            Err(place) => self.0.insert(place, sample),
        }
        self.0.drain(..self.0.len().saturating_sub(HISTORY_LEN_MAX));
    }

    /// Forgets what was measured before this time.
    pub fn forget_before(&mut self, at: Timestamp) {
        self.0.drain(..self.0.partition_point(|sample| sample.at < at));
    }
}

impl From<Vec<Sample>> for History {
    fn from(mut samples: Vec<Sample>) -> Self {
        // The last word about a time is the one that was said last.
        samples.reverse();
        samples.sort_by_key(|sample| sample.at);
        samples.dedup_by_key(|sample| sample.at);
        samples.drain(..samples.len().saturating_sub(HISTORY_LEN_MAX));
        History(samples)
    }
}

impl Deref for History {
    type Target = [Sample];

    fn deref(&self) -> &[Sample] {
        &self.0
    }
}

/// What is known of a pool's load.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Metrics {
    /// When the values below were measured; without it nobody knows their age, and none is used.
    pub at: Option<Timestamp>,
    /// Mean utilization of the GPUs of the nodes that are ready, 0 to 100.
    pub utilization: Option<f64>,
    /// How many of the ready nodes do any work. Estimated from the utilization where it is missing.
    pub busy_nodes: Option<u32>,
    /// Jobs that wait to run.
    pub pending_jobs: Option<u64>,
    /// Jobs that wait or run.
    pub queue_depth: Option<u64>,
    /// What was measured before.
    pub history: History,
}

/// Measurements as they came from outside: anything that can be written as a number.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RawMetrics {
    /// As in `Metrics`.
    pub at: Option<Timestamp>,
    /// As in `Metrics`.
    pub utilization: Option<f64>,
    /// As in `Metrics`.
    pub busy_nodes: Option<u32>,
    /// As in `Metrics`.
    pub pending_jobs: Option<f64>,
    /// As in `Metrics`.
    pub queue_depth: Option<f64>,
    /// As in `Metrics`.
    pub history: Vec<RawSample>,
}

/// One sample as it came from outside.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RawSample {
    /// As in `Sample`.
    pub at: Timestamp,
    /// As in `Sample`.
    pub nodes: u32,
    /// As in `Sample`.
    pub utilization: Option<f64>,
    /// As in `Sample`.
    pub pending_jobs: Option<f64>,
    /// As in `Sample`.
    pub queue_depth: Option<f64>,
}

/// One of the things that are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Metric {
    /// Mean utilization in percent.
    Utilization,
    /// Jobs that wait.
    PendingJobs,
    /// Jobs that wait or run.
    QueueDepth,
}

impl Metric {
    /// Each of them.
    pub const ALL: [Metric; 3] = [Metric::Utilization, Metric::PendingJobs, Metric::QueueDepth];

    /// As it stands in a spec.
    pub const fn as_str(self) -> &'static str {
        match self {
            Metric::Utilization => "utilization",
            Metric::PendingJobs => "pendingJobs",
            Metric::QueueDepth => "queueDepth",
        }
    }

    const fn words(self) -> &'static str {
        match self {
            Metric::Utilization => "utilization",
            Metric::PendingJobs => "number of waiting jobs",
            Metric::QueueDepth => "queue depth",
        }
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A measurement that cannot be true, and is not used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// Of what.
    pub metric: Metric,
    /// How many values; more than one only of a history.
    pub count: usize,
    /// A whole sentence.
    pub message: String,
}

impl Metrics {
    /// What can be true of the measurements, and a sentence for each that cannot. What is refused counts
    /// as not measured.
    pub fn plausible(raw: RawMetrics) -> (Metrics, Vec<Refused>) {
        Metrics::plausible_after(History::default(), raw)
    }

    /// The same after a history that was plausible already; what `raw` has of one is added to it.
    ///
    /// For whoever keeps the history of a pool: two weeks are not looked through at every look.
    pub fn plausible_after(known: History, raw: RawMetrics) -> (Metrics, Vec<Refused>) {
        let mut refused = Vec::new();
        let samples = plausible_history(&raw.history, &mut refused);
        let history = match samples.is_empty() {
            true => known,
            false => History::from([known.0, samples].concat()),
        };
        let mut check = |metric, value: Option<f64>| {
            let checked = check(metric, value?);
            let checked = match (metric, &checked) {
                (Metric::PendingJobs | Metric::QueueDepth, Ok(jobs)) => {
                    check_leap(metric, *jobs, &history)
                }
                (Metric::Utilization, _) | (_, Err(_)) => checked,
            };
            checked.map_err(|message| refused.push(Refused { metric, count: 1, message })).ok()
        };
        let metrics = Metrics {
            at: raw.at,
            utilization: check(Metric::Utilization, raw.utilization),
            busy_nodes: raw.busy_nodes.filter(|nodes| *nodes <= NODES_MAX),
            pending_jobs: check(Metric::PendingJobs, raw.pending_jobs).map(whole),
            queue_depth: check(Metric::QueueDepth, raw.queue_depth).map(whole),
            history,
        };
        (metrics, refused)
    }
}

fn plausible_history(raw: &[RawSample], refused: &mut Vec<Refused>) -> Vec<Sample> {
    let mut wrong: [(usize, Option<String>); 3] = Default::default();
    let mut keep = |place: usize, metric, value: Option<f64>, at: Timestamp| {
        let why = match check(metric, value?) {
            Ok(value) => return Some(value),
            Err(why) => why,
        };
        if let Some((count, first)) = wrong.get_mut(place) {
            *count += 1;
            first.get_or_insert_with(|| format!("{why}, at {}", seconds(at)));
        }
        None
    };
    let samples: Vec<Sample> = raw
        .iter()
        .map(|raw| {
            let nodes = raw.nodes.min(NODES_MAX);
            // Nobody measures on a million nodes: whatever it was, it was not this pool.
            let utilization = raw.utilization.filter(|_| raw.nodes <= NODES_MAX);
            Sample {
                at: raw.at,
                nodes,
                utilization: keep(0, Metric::Utilization, utilization, raw.at),
                pending_jobs: keep(1, Metric::PendingJobs, raw.pending_jobs, raw.at).map(whole),
                queue_depth: keep(2, Metric::QueueDepth, raw.queue_depth, raw.at).map(whole),
            }
        })
        .collect();
    for (metric, (count, first)) in Metric::ALL.into_iter().zip(wrong) {
        let Some(first) = first else { continue };
        let of = raw.len();
        let message =
            format!("{count} of {of} samples of the history are refused; the first: {first}");
        refused.push(Refused { metric, count, message });
    }
    samples
}

/// The value as it may be used.
fn check(metric: Metric, value: f64) -> Result<f64, String> {
    let impossible = |limit: fmt::Arguments<'_>| {
        format!("the {} {value} is not possible ({limit}), and is not used", metric.words())
    };
    match metric {
        Metric::Utilization if is_percent(value) => Ok(value.min(100.0)),
        Metric::Utilization => Err(impossible(format_args!("0 to 100 %"))),
        Metric::PendingJobs | Metric::QueueDepth => {
            let possible = (0.0..=counted(JOBS_MAX)).contains(&value);
            possible.then_some(value).ok_or_else(|| impossible(format_args!("0 to {JOBS_MAX}")))
        }
    }
}

/// A queue that is suddenly a hundred times longer than it ever was is not believed at once.
fn check_leap(metric: Metric, jobs: f64, history: &History) -> Result<f64, String> {
    let of = |sample: &Sample| match metric {
        Metric::PendingJobs => sample.pending_jobs,
        Metric::QueueDepth => sample.queue_depth,
        Metric::Utilization => None,
    };
    if whole(jobs) <= LEAP_FROM {
        return Ok(jobs);
    }
    let mut seen: Vec<u64> = history.iter().filter_map(of).collect();
    if seen.len() < LEAP_SAMPLES {
        return Ok(jobs);
    }
    // Not the longest: a single wrong sample in the history must not vouch for the next.
    let place = seen.len() - LEAP_WITNESSES;
    let (_, longest, _) = seen.select_nth_unstable(place);
    let longest = (*longest).max(1);
    if whole(jobs) <= longest.saturating_mul(LEAP_MAX) {
        return Ok(jobs);
    }
    let words = metric.words();
    Err(format!(
        "the {words} {jobs} is more than {LEAP_MAX} times the {longest} seen so far, and is not used \
         until {LEAP_WITNESSES} samples agree"
    ))
}

fn is_percent(value: f64) -> bool {
    (0.0..=PERCENT_MAX).contains(&value)
}

#[expect(clippy::cast_precision_loss, reason = "limits are far below 2^52")]
pub(super) fn counted(value: u64) -> f64 {
    value as f64
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
fn whole(value: f64) -> u64 {
    value.ceil() as u64
}

/// A time without the fraction of its second, for sentences.
pub(super) fn seconds(at: Timestamp) -> Timestamp {
    Timestamp::from_second(at.as_second()).unwrap_or(at)
}

/// What may be used of a pool's metrics now; where a value is missing, why.
pub(super) struct Facts<'a> {
    /// The size the pool is held to, machines that boot included.
    pub(super) wanted: u32,
    /// How many nodes are ready.
    pub(super) ready: u32,
    /// In percent, of the nodes that are ready.
    pub(super) utilization: Result<f64, String>,
    /// Of the nodes that are ready.
    pub(super) busy: Option<u32>,
    /// Jobs that wait.
    pub(super) pending_jobs: Result<u64, String>,
    /// Jobs that wait or run.
    pub(super) queue_depth: Result<u64, String>,
    /// Where they come from.
    pub(super) from: &'a MetricsFrom,
    /// Until now, in order.
    pub(super) history: &'a [Sample],
    /// The time of this look.
    pub(super) now: Timestamp,
}

impl<'a> Facts<'a> {
    /// Looks at everything with doubt: whoever fills a `Metrics` may have left `plausible` out.
    pub(super) fn gather(pool: &PoolView<'a>, from: &'a MetricsFrom, now: Timestamp) -> Self {
        let metrics = pool.metrics;
        let useless = uselessness(metrics.at, from.age_max, now);
        let fact = |metric: Metric, value: Option<f64>| {
            let value = value.ok_or_else(|| format!("no {} is known", metric.words()))?;
            useless.clone().map_or_else(|| check(metric, value), Err)
        };
        let jobs = |metric, value: Option<u64>| fact(metric, value.map(counted)).map(whole);
        let until = metrics.history.partition_point(|sample| sample.at <= now);
        Facts {
            wanted: pool.wanted,
            ready: pool.ready,
            utilization: fact(Metric::Utilization, metrics.utilization),
            busy: metrics.busy_nodes.filter(|_| useless.is_none()).map(|busy| busy.min(pool.ready)),
            pending_jobs: jobs(Metric::PendingJobs, metrics.pending_jobs),
            queue_depth: jobs(Metric::QueueDepth, metrics.queue_depth),
            from,
            history: metrics.history.get(..until).unwrap_or_default(),
            now,
        }
    }
}

/// Why measurements of this time cannot be used, if they cannot.
fn uselessness(at: Option<Timestamp>, age_max: SignedDuration, now: Timestamp) -> Option<String> {
    let Some(at) = at else {
        return Some("the metrics do not say when they were measured".to_owned());
    };
    let age = now.duration_since(at);
    if age_max < age {
        let (age, limit) = (Written(SignedDuration::from_secs(age.as_secs())), Written(age_max));
        return Some(format!(
            "the newest metrics are {age} old, and after {limit} they are not used"
        ));
    }
    if age < -SKEW_MAX {
        return Some(format!("the metrics are of {}, which is in the future", seconds(at)));
    }
    None
}

#[cfg(test)]
mod tests;
