//! Worlds in which everything goes wrong, one seed after the other.

use crate::kit::{chaos, hours, shipped};
use argosy_sim::run::{Many, Product, Watcher, run_many};
use argosy_sim::scenario::Scenario;
use jiff::SignedDuration;
use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

/// Runs seeds for so long; none may find anything.
fn none_fails(scenario: &Scenario, seeds: u64, limit: Duration) {
    #[expect(
        clippy::disallowed_methods,
        reason = "how long it took is printed, and nothing follows from it"
    )]
    let started = Instant::now();
    let jobs = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let many = Many { seeds: (1..=seeds).collect(), jobs, limit: Some(limit) };
    let outcomes =
        run_many(scenario, &Product::plain(), &many, &Watcher::default()).expect("it can be run");
    let simulated: f64 = outcomes.iter().map(|outcome| outcome.simulated_seconds).sum();
    println!(
        "{}: {} seeds of {} nodes, {:.0} simulated days in {:.0} s",
        scenario.name,
        outcomes.len(),
        outcomes.first().map_or(0, |outcome| outcome.nodes),
        simulated / 86_400.0,
        started.elapsed().as_secs_f64()
    );
    for outcome in &outcomes {
        let replay = argosy_sim::explain::replay(outcome);
        assert_eq!(outcome.violations, [], "{replay}");
        let failed: Vec<_> = outcome.assertions.iter().filter(|it| !it.holds).collect();
        assert!(failed.is_empty(), "{replay}: {failed:?}");
    }
}

#[test]
fn whatever_goes_wrong_what_must_never_be_is_not() {
    none_fails(&chaos(30, hours(3)), 6, Duration::from_secs(5));
}

#[test]
fn a_thousand_seeds_of_two_hundred_nodes_or_as_many_as_there_is_time_for() {
    let mut scenario = shipped("everything");
    let seconds = std::env::var("ARGOSY_SEEDS_SECONDS").ok();
    let seconds: Option<u64> = seconds.and_then(|text| text.parse().ok());
    if seconds.is_none() {
        // Beside all other tests there is time for hours only; `scripts/ci-steps` has a step for whole days.
        scenario.duration = hours(1);
        scenario.settle = SignedDuration::ZERO;
        scenario.script.clear();
        scenario.assertions.clear();
    }
    none_fails(&scenario, 1_000, Duration::from_secs(seconds.unwrap_or(5)));
}
