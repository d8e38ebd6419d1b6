//! Mistakes that are planted are found by seeds, and told as a short story.

use crate::kit::{chaos, hours, minutes, played};
use argosy_core::plant::{Bug, plant};
use argosy_sim::explain::explain;
use argosy_sim::outcome::Violation;
use argosy_sim::run::{Product, Watcher};
use argosy_sim::scenario::Scenario;

/// So many seeds are tried for each.
const SEEDS: u64 = 20;

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
        Bug::RegistrationClearsCordon | Bug::DrainDoneTooSoon => {}
    }
    scenario
}

#[test]
fn every_planted_mistake_is_found() {
    for bug in Bug::ALL {
        plant(Some(bug));
        let found = found(&world(bug));
        plant(None);
        println!("{bug:?}: {found:?}");
    }
}
