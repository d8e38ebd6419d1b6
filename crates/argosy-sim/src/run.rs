//! Runs a scenario: one seed on this thread, or many on several.

use crate::outcome::Outcome;
use crate::scenario::Scenario;
use crate::world::{self, Cut, Ran};
use argosy_control::{MachineSettings, Settings};
use argosy_core::access::Authorization;
use argosy_core::adapter::{AdapterGraph, TimeWindow};
use argosy_core::catalog::Catalog;
use argosy_core::node::settings::NodeSettings;
use argosy_core::policy::PolicySpec;
use argosy_core::sentinel::Rules;
use jiff::SignedDuration;
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// What is tried out: the product as somebody has configured it.
#[derive(Clone, Debug)]
pub struct Product {
    /// What the services and loops go by.
    pub settings: Settings,
    /// Health policies.
    pub policies: Vec<PolicySpec>,
}

impl Product {
    /// The product as it comes: nothing configured.
    pub fn plain() -> Self {
        let settings = Settings {
            adapters: AdapterGraph::default(),
            rules: Rules::default(),
            window: TimeWindow::default(),
            catalog: Catalog::default(),
            authorization: Authorization::Team,
            conditions: BTreeMap::new(),
            nodes: NodeSettings::default(),
            machines: MachineSettings::default(),
            protect_new: false,
            tombstones_kept: SignedDuration::from_hours(24),
            idempotency_kept: SignedDuration::from_hours(24),
            audit_kept: SignedDuration::from_hours(24 * 90),
            history_kept: SignedDuration::from_hours(24 * 30),
        };
        Self { settings, policies: Vec::new() }
    }
}

/// Who looks on while it runs, from another thread. It changes nothing of what happens.
#[derive(Debug, Default)]
pub struct Watcher {
    simulated_ms: AtomicU64,
    events: AtomicU64,
    seeds_done: AtomicU64,
    failing: AtomicU64,
    stop: AtomicBool,
}

impl Watcher {
    /// How many seconds passed in all worlds so far.
    pub fn simulated_seconds(&self) -> f64 {
        self.simulated_ms.load(Ordering::Relaxed) as f64 / 1_000.0
    }

    /// How many things happened in all of them.
    pub fn events(&self) -> u64 {
        self.events.load(Ordering::Relaxed)
    }

    /// How many seeds are over.
    pub fn seeds_done(&self) -> u64 {
        self.seeds_done.load(Ordering::Relaxed)
    }

    /// How many of them found something that must never be.
    pub fn seeds_failing(&self) -> u64 {
        self.failing.load(Ordering::Relaxed)
    }

    /// Ends everything soon: seeds under way are left out of the result.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    pub(crate) fn passed(&self, milliseconds: u64, events: u64) {
        self.simulated_ms.fetch_add(milliseconds, Ordering::Relaxed);
        self.events.fetch_add(events, Ordering::Relaxed);
    }

    pub(crate) fn done(&self, outcome: &Outcome) {
        self.seeds_done.fetch_add(1, Ordering::Relaxed);
        if !outcome.violations.is_empty() {
            self.failing.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Why there is no outcome.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// The product refuses what the scenario declares: it has to be changed.
    #[error("{0}")]
    Declared(String),
    /// Somebody stopped it.
    #[error("it was stopped")]
    Stopped,
    /// This machine cannot run it.
    #[error("{0}")]
    Machine(String),
}

/// Many seeds.
#[derive(Clone, Debug)]
pub struct Many {
    /// Which, in order.
    pub seeds: Vec<u64>,
    /// So many at once.
    pub jobs: NonZeroUsize,
    /// No seed is begun after so long.
    pub limit: Option<Duration>,
}

/// Runs one seed on this thread, from beginning to end.
///
/// # Errors
/// See `RunError`. What the product does wrong is no error, but in the outcome.
pub fn run(
    scenario: &Scenario,
    product: &Product,
    seed: u64,
    watcher: &Watcher,
) -> Result<Outcome, RunError> {
    let ran = ran(scenario, product, seed, watcher, Cut::default(), false)?;
    watcher.done(&ran.outcome);
    Ok(ran.outcome)
}

/// Runs one seed as `run` does, and tells what happened: when, since the beginning, and what.
///
/// # Errors
/// See `RunError`.
pub fn run_telling(
    scenario: &Scenario,
    product: &Product,
    seed: u64,
    watcher: &Watcher,
) -> Result<(Outcome, Vec<(Duration, String)>), RunError> {
    let ran = ran(scenario, product, seed, watcher, Cut::default(), true)?;
    watcher.done(&ran.outcome);
    Ok((ran.outcome, ran.story.into_iter().map(|line| (line.at, line.text)).collect()))
}

/// Runs one seed, perhaps without some of its faults.
pub(crate) fn ran(
    scenario: &Scenario,
    product: &Product,
    seed: u64,
    watcher: &Watcher,
    cut: Cut,
    with_story: bool,
) -> Result<Ran, RunError> {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().start_paused(true).build();
    let runtime = runtime.map_err(|error| RunError::Machine(error.to_string()))?;
    runtime.block_on(world::play(scenario, product, seed, watcher, cut, with_story))
}

/// Runs many seeds, each on one thread. What came of them is in the order of the seeds; those that were not
/// begun in time are left out.
///
/// # Errors
/// The first that there was, by seed.
pub fn run_many(
    scenario: &Scenario,
    product: &Product,
    many: &Many,
    watcher: &Watcher,
) -> Result<Vec<Outcome>, RunError> {
    #[expect(clippy::disallowed_methods, reason = "for how long this machine is kept busy")]
    let started = std::time::Instant::now();
    let next = AtomicUsize::new(0);
    let late = || many.limit.is_some_and(|limit| limit <= started.elapsed());
    let work = || {
        let mut done = Vec::new();
        while !late()
            && let Some(seed) = many.seeds.get(next.fetch_add(1, Ordering::Relaxed))
        {
            done.push((*seed, run(scenario, product, *seed, watcher)));
        }
        done
    };
    let mut all: Vec<(u64, Result<Outcome, RunError>)> = std::thread::scope(|scope| {
        let jobs: Vec<_> = (0..many.jobs.get()).map(|_| scope.spawn(work)).collect();
        let ended = jobs.into_iter().map(|job| job.join().map_err(panicked));
        ended.collect::<Result<Vec<_>, _>>().map(|done| done.into_iter().flatten().collect())
    })?;
    all.sort_by_key(|(seed, _)| *seed);
    // What was done when somebody stopped it counts.
    let begun = all.len();
    all.retain(|(_, outcome)| *outcome != Err(RunError::Stopped));
    if all.is_empty() && 0 < begun {
        return Err(RunError::Stopped);
    }
    all.into_iter().map(|(_, outcome)| outcome).collect()
}

/// How many bytes this process has in memory, where the kernel says so.
pub(crate) fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: u64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(kilobytes * 1_024)
}

fn panicked(_: Box<dyn std::any::Any + Send>) -> RunError {
    RunError::Machine("a run panicked".to_owned())
}
