//! Worlds in which everything goes wrong.

use crate::kit::{chaos, hours, played};

#[test]
fn whatever_goes_wrong_what_must_never_be_is_not() {
    let scenario = chaos(30, hours(6));
    for seed in 1..=4 {
        let started = std::time::Instant::now();
        let outcome = played(&scenario, seed);
        println!(
            "seed {seed}: {:?} events {} faults {} actions {:?} simulated {} violations {:?}",
            started.elapsed(),
            outcome.events,
            outcome.faults.len(),
            outcome.actions,
            outcome.simulated_seconds,
            outcome.violations
        );
    }
}
