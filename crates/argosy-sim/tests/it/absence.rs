//! Absence is not failure, and a clock that is off leads nothing: review 2, each row by its ID.

use crate::kit::{played, shipped};
use argosy_sim::outcome::Outcome;

fn is_well(outcome: &Outcome, seed: u64) {
    assert_eq!(outcome.violations, [], "seed {seed}");
    assert!(outcome.assertions.iter().all(|it| it.holds), "seed {seed}: {:?}", outcome.assertions);
}

#[test]
fn r2_m5_a_pool_grows_and_shrinks_while_clocks_are_off() {
    let scenario = shipped("skew");
    for seed in 1..=5 {
        let outcome = played(&scenario, seed);
        is_well(&outcome, seed);
        assert_eq!(outcome.money.bought, 40, "seed {seed}");
    }
}

#[test]
fn r2_m2_an_outage_longer_than_the_registration_timeout_costs_nothing() {
    let outcome = played(&shipped("long-outage"), 1);
    is_well(&outcome, 1);
    assert_eq!(outcome.money.bought, 12);
}
