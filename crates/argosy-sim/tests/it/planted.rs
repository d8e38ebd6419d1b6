//! Mistakes that are planted are found by seeds, and told as a short story.

use crate::kit::{chaos, hours, minutes, played, pool_of};
use argosy_core::plant::{Bug, plant};
use argosy_sim::explain::explain;
use argosy_sim::outcome::Violation;
use argosy_sim::run::{Product, Watcher};
use argosy_sim::scenario::{Action, Rate, Scenario, Step};
use serde_json::json;

/// So many seeds are tried for each.
const SEEDS: u64 = 12;

/// The first seed that finds it.
fn found(scenario: &Scenario) -> Option<(u64, Violation)> {
    (1..=SEEDS).find_map(|seed| {
        let violation = played(scenario, seed).violations.into_iter().next();
        violation.map(|violation| (seed, violation))
    })
}

/// A world with more of what brings a mistake to light.
fn world(bug: Bug) -> Scenario {
    let mut scenario = chaos(20, hours(3));
    let trouble = &mut scenario.trouble;
    match bug {
        Bug::MassSilence => {
            trouble.link.partitions_per_day = 16.0;
            trouble.link.partition = minutes(15);
        }
        Bug::DoublePurchase => trouble.cloud.lost_answers = 0.2,
        Bug::BreakerReplays => {
            trouble.link.partitions_per_day = 24.0;
            trouble.link.partition = minutes(15);
        }
        Bug::RegistrationClearsCordon => {
            for cause in &mut trouble.hardware {
                match cause.name.as_str() {
                    "agent" => cause.rate = Rate::PerDay(400.0),
                    "GPU" => cause.rate = Rate::PerDay(60.0),
                    _ => {}
                }
            }
        }
        Bug::NoSurgeLimit => {
            let spec = json!({"image": "another"});
            let (cluster, pool) = ("train".to_owned(), "workers".to_owned());
            let action = Action::Resize { cluster, pool, spec };
            let script = vec![Step { at: minutes(30), action }];
            return Scenario { script, ..pool_of(10, hours(1)) };
        }
        Bug::DrainDoneTooSoon | Bug::NoRecovery => {}
    }
    scenario
}

fn is_found(bug: Bug) {
    let scenario = world(bug);
    plant(Some(bug));
    let found = found(&scenario);
    plant(None);
    let (seed, violation) = found.unwrap_or_else(|| panic!("{SEEDS} seeds do not find {bug:?}"));
    println!("{bug:?}: seed {seed}: {violation:?}");
    let well = played(&scenario, seed);
    assert_eq!(well.violations, [], "{bug:?}: without it the same seed is well");
}

#[test]
fn seeds_find_a_registration_that_clears_a_cordon() {
    is_found(Bug::RegistrationClearsCordon);
}

#[test]
fn seeds_find_a_drain_that_is_said_to_be_done_too_soon() {
    is_found(Bug::DrainDoneTooSoon);
}

#[test]
fn seeds_find_a_machine_that_is_bought_twice() {
    is_found(Bug::DoublePurchase);
}

#[test]
fn seeds_find_a_breaker_that_replays_its_backlog() {
    is_found(Bug::BreakerReplays);
}

#[test]
fn seeds_find_silence_of_the_fleet_that_is_acted_on() {
    is_found(Bug::MassSilence);
}

/// The scenario tells its story without chance, so one seed is enough.
#[test]
fn r1_v1_a_control_plane_that_forgets_its_recovery_is_found() {
    let shipped = argosy_sim::scenario::shipped::find("old-backup").unwrap();
    let (scenario, _) = argosy_sim::scenario::read(shipped.text, shipped.name).unwrap();
    plant(Some(Bug::NoRecovery));
    let bad = played(&scenario, 1);
    plant(None);
    let found: Vec<&str> = bad.violations.iter().map(|it| it.invariant.as_str()).collect();
    assert_eq!(found, ["V1"], "{:?}", bad.violations);
    let well = played(&scenario, 1);
    assert_eq!(well.violations, []);
    assert!(well.assertions.iter().all(|it| it.holds), "{:?}", well.assertions);
}

#[test]
fn seeds_find_more_machines_than_the_spec_allows() {
    is_found(Bug::NoSurgeLimit);
}

#[test]
fn a_failing_seed_becomes_a_short_story() {
    let scenario = world(Bug::DrainDoneTooSoon);
    plant(Some(Bug::DrainDoneTooSoon));
    let story = explain(&scenario, &Product::plain(), 1, &Watcher::default());
    plant(None);
    let story = story.expect("it runs").expect("it fails");
    println!("{story}");
    assert_eq!(story.violation.invariant, "I5");
    assert!(story.faults.0 <= 1, "{:?}", story.faults);
    assert!(story.lines.last().is_some_and(|(_, line)| line.starts_with("I5 is broken")));
    assert_eq!(story.command, "argosy sim run chaos --seed 1");
}
