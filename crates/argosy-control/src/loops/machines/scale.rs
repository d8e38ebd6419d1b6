//! How large a pool is to be: what it is measured by, what its autoscaler makes of it, and why.
//!
//! What a newcomer gets wrong: an autoscaler buys nothing. It changes the size in the pool's book, and the
//! plan of the pool does the rest.

use super::books::fenced;
use super::picture::Scene;
use super::step::put_book;
use super::{Bench, Desk, Ended, Key, SELF, Topic};
use crate::Error;
use crate::extension::Measuring;
use crate::office::{Office, POOL_HISTORY, read_entry, system};
use crate::pulse::PulseBoard;
use crate::stats::MachineAlarm;
use argosy_core::autoscale::{
    Advice, Autoscaling, HISTORY_LEN_MAX, History, Metrics, PoolView, RawMetrics, Sample, Scaled,
    Source, recommend,
};
use argosy_core::id::ResourceId;
use argosy_core::node::{Liveness, Node, NodeStatus};
use argosy_core::pool::{DECISIONS_MAX, Decision, PoolBook};
use argosy_store::engine::EntryQuery;
use argosy_store::view::View;
use jiff::{SignedDuration, Timestamp};
use std::time::Duration;
use tracing::{info, warn};

/// How often what an autoscaler says is written down while it decides nothing: for `explain`.
const ADVICE_EVERY: SignedDuration = SignedDuration::from_mins(5);

/// A node whose GPUs do less than this together, in percent of one, does nothing.
const IDLE_MAX: f32 = 1.0;

/// How long a source of measurements may take, whatever it promises itself: nobody else measures the pool
/// meanwhile. Less than `MachineSettings::autoscale_every`, so that the next one is not late for it.
const MEASURE_MAX: Duration = Duration::from_secs(20);

/// What a pool's size is judged by, now.
#[derive(Debug)]
pub(super) struct Measured {
    raw: RawMetrics,
    /// What was written down before this process led.
    past: Option<Vec<Sample>>,
}

/// What is remembered of a pool.
#[derive(Default)]
pub(super) struct Scale {
    history: Option<History>,
    sampled_at: Option<Timestamp>,
    /// What was last refused, so that it is said once.
    refused: Vec<String>,
}

impl Desk {
    /// Begins to measure a pool that has an autoscaler, or ends it.
    pub(super) fn watch_size(&mut self, scene: &Scene, now: Timestamp) {
        let pool = scene.resource.value.id;
        let scales = scene.reports() && scene.autoscaling().is_some();
        let topic = Topic::Scale(pool);
        match (scales, self.scales.contains_key(&pool)) {
            (true, false) => {
                self.scales.insert(pool, Scale::default());
                self.alarms.set(&topic, Some(now));
            }
            (false, true) => {
                self.scales.remove(&pool);
                self.alarms.set(&topic, None);
            }
            (true, true) | (false, false) => {}
        }
    }

    pub(super) fn measure(&mut self, pool: ResourceId, now: Timestamp) {
        let Some(scale) = self.scales.get(&pool) else { return };
        let known = scale.history.is_some();
        let Some(scene) = Scene::of(&self.bench, pool, &self.listened) else { return };
        let Some(autoscaling) = scene.autoscaling().cloned() else { return };
        let next = now.checked_add(self.bench.settings().autoscale_every).ok();
        self.alarms.set(&Topic::Scale(pool), next);
        let nodes = scene.nodes().map(|node| &**node);
        let beats = heartbeats(&self.bench.board, nodes, now);
        let (bench, name) = (self.bench.clone(), scene.pool_name.clone());
        let tenant = scene.resource.value.tenant.clone();
        self.start(Key::Measure(pool), async move {
            let past = match known {
                true => None,
                false => match history(&bench.office, pool).await {
                    Ok(past) => Some(past),
                    Err(error) => {
                        warn!(%error, %pool, "could not read a pool's history");
                        return Ended::Trouble;
                    }
                },
            };
            let measuring = Measuring { pool, name, tenant, from: autoscaling.metrics };
            let raw = elsewhere(&bench, &measuring, beats).await;
            Ended::Measured(Box::new(Measured { raw, past }))
        });
    }

    pub(super) async fn scale(&mut self, pool: ResourceId, measured: Measured) {
        let Some(scene) = Scene::of(&self.bench, pool, &self.listened) else { return };
        let Some(autoscaling) = scene.autoscaling().cloned() else { return };
        // What is measured while nodes are coming back says nothing.
        if scene.is_recovering() {
            return;
        }
        let now = self.bench.office.clock.now();
        let Measured { raw, past } = measured;
        let (mut metrics, refused) = Metrics::plausible(raw);
        let Some(scale) = self.scales.get_mut(&pool) else { return };
        let refused: Vec<String> = refused.into_iter().map(|refused| refused.message).collect();
        if refused != scale.refused {
            for sentence in &refused {
                warn!(pool = scene.pool_name, sentence, "did not believe a measurement (G16)");
            }
            self.bench.office.stats.readings_refused.add(refused.len() as u64);
            scale.refused = refused;
        }
        let history = scale.history.get_or_insert_with(History::default);
        past.into_iter().flatten().for_each(|sample| history.push(sample));
        let ready = u32::try_from(scene.nodes().filter(|node| serves(node)).count());
        let ready = ready.unwrap_or(u32::MAX);
        let sample = Sample {
            at: now,
            nodes: ready,
            utilization: metrics.utilization,
            pending_jobs: metrics.pending_jobs,
            queue_depth: metrics.queue_depth,
        };
        let every = self.bench.settings().sample_every;
        let due = scale.sampled_at.is_none_or(|at| every <= now.duration_since(at));
        let worth = metrics.utilization.is_some() || metrics.queue_depth.is_some();
        let keep = (due && worth).then_some(sample);
        if let Some(sample) = keep {
            scale.sampled_at = Some(now);
            history.push(sample);
        }
        // Lent for the question, and taken back: it may be long.
        metrics.history = std::mem::take(history);
        // Schedules are written by the clock on the wall, and so all of it is judged by that.
        let ahead = self.bench.office.clock.ahead();
        let by_wall = |at: Timestamp| at.checked_sub(ahead).unwrap_or(at);
        metrics.at = metrics.at.map(by_wall);
        let advice = self.advise(&scene, &autoscaling, &metrics, ready, by_wall);
        if let Some(scale) = self.scales.get_mut(&pool) {
            scale.history = Some(metrics.history);
        }
        if let Some(next) = advice.as_ref().and_then(|advice| advice.next) {
            let usual = now.checked_add(self.bench.settings().autoscale_every).ok();
            let next = next.checked_add(ahead).unwrap_or(next);
            let soonest = usual.map_or(next, |usual| usual.min(next));
            self.alarms.set(&Topic::Scale(pool), Some(soonest.max(now)));
        }
        match self.keep(pool, advice, keep).await {
            Ok(()) => {}
            Err(Error::Store(argosy_store::Error::Fenced)) => self.fenced = true,
            Err(error) => warn!(%error, %pool, "could not keep how large a pool is to be"),
        }
    }

    fn advise(
        &self,
        scene: &Scene,
        autoscaling: &Autoscaling,
        metrics: &Metrics,
        ready: u32,
        by_wall: impl Fn(Timestamp) -> Timestamp,
    ) -> Option<Advice> {
        let now = by_wall(self.bench.office.clock.now());
        let spec = scene.spec.as_ref().ok()?;
        let book = scene.book();
        let view = PoolView {
            name: &scene.pool_name,
            wanted: book.target.unwrap_or(spec.nodes),
            ready,
            min: spec.min,
            max: spec.max,
            metrics,
            last_scaled: book.scaled.map(|(at, up)| Scaled { at: by_wall(at), up }),
        };
        let custom = self.bench.extensions.autoscaler.as_ref();
        let own = custom.and_then(|own| own.recommend(&view, now)).map(|advice| Advice {
            from: view.wanted,
            target: advice.target.max(spec.min).min(spec.max),
            ..advice
        });
        Some(own.unwrap_or_else(|| recommend(autoscaling, &view, now)))
    }

    /// Keeps what was decided, and what it was decided by.
    async fn keep(
        &self,
        pool: ResourceId,
        advice: Option<Advice>,
        sample: Option<Sample>,
    ) -> Result<(), Error> {
        let bench = &self.bench;
        let decide = |view: &View, now: Timestamp| {
            let mut txn = fenced(bench, now);
            if view.resource(pool).is_none() {
                return Ok((None, None));
            }
            let before = view.pool_book(pool);
            let known = before.map_or_else(|| PoolBook::new(pool), |book| (*book.value).clone());
            let after = advice.as_ref().and_then(|advice| advised(&known, advice, now));
            let moved = after.as_ref().filter(|after| after.target != known.target).cloned();
            if let Some(after) = after {
                put_book(&mut txn, before, after, &system(SELF), now);
            }
            if let Some(sample) = &sample {
                txn.append(POOL_HISTORY, &pool.to_string(), sample);
            }
            Ok(((!txn.is_empty()).then_some(txn), moved))
        };
        let (_, moved) = bench.office.decide(decide).await?;
        if let (Some(_), Some(advice)) = (moved, advice) {
            info!(%pool, decision = %advice, "changed how large a pool is to be");
        }
        Ok(())
    }
}

/// The book with what an autoscaler says; `None` if that is not worth a commit.
fn advised(book: &PoolBook, advice: &Advice, now: Timestamp) -> Option<PoolBook> {
    let mut after = book.clone();
    let moves = advice.target != advice.from;
    let known = book.advice.as_ref();
    let same = known.is_some_and(|(_, known)| {
        known.target == advice.target && known.policy == advice.policy && known.held == advice.held
    });
    let lately = known.is_some_and(|(at, _)| now.duration_since(*at) < ADVICE_EVERY);
    if !moves && same && lately {
        return None;
    }
    after.advice = Some((now, advice.clone()));
    if moves {
        after.target = Some(advice.target);
        after.scaled = Some((now, advice.from < advice.target));
        let (from, to, reason) = (advice.from, advice.target, advice.to_string());
        after.decisions.push(Decision { at: now, from, to, reason });
        let surplus = after.decisions.len().saturating_sub(DECISIONS_MAX);
        after.decisions.drain(..surplus);
    }
    Some(after)
}

/// Whether a node does, or could do, work.
fn serves(node: &Node) -> bool {
    node.status() == NodeStatus::Active && node.liveness == Liveness::Fresh
}

/// What the nodes of a pool say with their heartbeats: the mean of the GPUs that were measured, and the longest
/// queue that any of them knows of.
///
/// Unknown is not idle: a node counts as one that works unless all its GPUs say that they do not, and the mean
/// of a minority of the GPUs is no mean of the pool.
pub(crate) fn heartbeats<'n>(
    board: &PulseBoard,
    nodes: impl Iterator<Item = &'n Node>,
    now: Timestamp,
) -> RawMetrics {
    let (mut sum, mut measured, mut unmeasured, mut busy) = (0.0, 0_u32, 0_u32, 0_u32);
    let (mut pending, mut depth) = (None::<f64>, None::<f64>);
    for node in nodes.filter(|node| serves(node)) {
        let Some(sample) = board.live(node.id.as_str()).sample else {
            unmeasured += u32::try_from(node.gpus.len()).unwrap_or(0);
            busy += u32::from(!node.gpus.is_empty());
            continue;
        };
        let work = sample.gpu_work();
        sum += f64::from(work.sum);
        measured += u32::from(work.measured);
        // A GPU that is not listed is one that could not be read.
        let known = usize::from(work.measured);
        let unknown = node.gpus.len().saturating_sub(known).max(usize::from(work.unmeasured));
        unmeasured += u32::try_from(unknown).unwrap_or(0);
        busy += u32::from(0 < unknown || IDLE_MAX < work.sum);
        let most = |known: Option<f64>, new: Option<u32>| {
            new.map(f64::from).map_or(known, |new| Some(known.map_or(new, |known| known.max(new))))
        };
        pending = most(pending, sample.pending_jobs);
        depth = most(depth, sample.queue_depth);
    }
    RawMetrics {
        at: Some(now),
        utilization: (0 < measured && unmeasured <= measured).then(|| sum / f64::from(measured)),
        busy_nodes: (0 < measured).then_some(busy),
        pending_jobs: pending,
        queue_depth: depth,
        history: Vec::new(),
    }
}

/// What is measured elsewhere, in the place of what heartbeats say.
async fn elsewhere(bench: &Bench, measuring: &Measuring, beats: RawMetrics) -> RawMetrics {
    let Some(source) = &bench.extensions.metrics else { return beats };
    let from = &measuring.from;
    let asks = [&from.utilization, &from.pending_jobs, &from.queue_depth];
    let asked = asks.iter().any(|source| **source != Source::Heartbeats);
    if !asked && !source.always() {
        return beats;
    }
    let late = || format!("no answer within {} s", MEASURE_MAX.as_secs());
    let measured = tokio::time::timeout(MEASURE_MAX, source.measure(measuring, &beats)).await;
    match measured.unwrap_or_else(|_| Err(late())) {
        Ok(measured) => measured,
        Err(why) => {
            bench.office.stats.machine_alarms.raise(MachineAlarm::MeasureFailed);
            warn!(pool = measuring.name, why, "could not measure a pool");
            // Old or missing measurements move nothing.
            RawMetrics { at: None, ..RawMetrics::default() }
        }
    }
}

/// What was written down of a pool's past, oldest first.
pub(crate) async fn history(office: &Office, pool: ResourceId) -> Result<Vec<Sample>, Error> {
    let query = EntryQuery {
        stream: POOL_HISTORY.to_owned(),
        subject: Some(pool.to_string()),
        cursor: None,
        newest_first: true,
        limit: HISTORY_LEN_MAX,
    };
    let entries = office.store.entries(&query).await?;
    entries.iter().rev().map(read_entry).collect()
}
