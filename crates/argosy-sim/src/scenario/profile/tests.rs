use super::{find, list, llama3_counts};
use crate::dice::Dice;
use crate::scenario::{Cause, Effect, Rate};
use std::collections::BTreeMap;

/// Llama 3's fleet and time.
const NODES: u64 = 2_048;
const GPUS: u64 = 16_384;
const DAYS: f64 = 54.0;

#[test]
fn the_table_adds_up_to_the_published_total() {
    assert_eq!(llama3_counts().map(|(_, count)| count).sum::<u32>(), 419);
    let causes = find("llama3").unwrap().causes(1.0);
    for ((name, count), cause) in llama3_counts().zip(&causes) {
        let expected = cause.rate.per_day(NODES, GPUS) * DAYS;
        assert_eq!(cause.name, name);
        assert!((expected - f64::from(count)).abs() < 1e-9, "{name}: {expected}, not {count}");
    }
}

#[test]
fn rates_scale_with_the_fleet_and_with_the_scale() {
    let per_day = |name: &str, scale: f64, nodes: u64, gpus: u64| -> f64 {
        let causes = find(name).unwrap().causes(scale);
        causes.iter().map(|cause| cause.rate.per_day(nodes, gpus)).sum()
    };
    let check = |found: f64, expected: f64| {
        assert!((found - expected).abs() < 1e-9 * expected, "{found}, not {expected}");
    };
    check(per_day("llama3", 1.0, NODES, GPUS), 419.0 / 54.0);
    check(per_day("llama3", 1.0, NODES / 4, GPUS / 4), 419.0 / 54.0 / 4.0);
    check(per_day("llama3", 10.0, NODES, GPUS), 4190.0 / 54.0);
    check(per_day("llama3-hardware", 1.0, NODES, GPUS), (419.0 - 54.0 - 7.0 - 2.0) / 54.0);
    check(per_day("kokolis-rsc1", 1.0, 1_000, 8_000), 6.5);
    check(per_day("kokolis-rsc2", 1.0, 1_000, 8_000), 2.34);
    check(per_day("lablup-b200", 1.0, 63, 504), 10.0 / 55.0);
}

#[test]
fn every_effect_of_every_profile_can_happen() {
    for profile in list() {
        for cause in profile.causes(1.0) {
            let weights: f64 = cause.effects.iter().map(|(weight, _)| weight).sum();
            assert!((weights - 1.0).abs() < 1e-9, "{}: {weights}", cause.name);
            for (_, effect) in &cause.effects {
                if let Effect::Inject(text) = effect {
                    assert!(Effect::injection(text, 7).is_ok(), "{}: {text}", cause.name);
                }
            }
            // What cannot be read would have become a fault that nobody sees.
            let unseen = cause.effects.iter().filter(|(_, of)| *of == Effect::Unseen).count();
            let meant = [
                "Software bug",
                "Network switch or cable",
                "NIC",
                "NCCL watchdog timeout",
                "Silent data corruption",
                "Dependency",
            ];
            assert_eq!(unseen, usize::from(meant.contains(&cause.name.as_str())), "{}", cause.name);
        }
    }
}

/// How often each cause comes in 54 days, each as a Poisson process of its own.
fn drawn(causes: &[Cause], seed: u64) -> BTreeMap<String, u32> {
    let mut counts = BTreeMap::new();
    for cause in causes {
        let mut dice = Dice::part(seed, &cause.name);
        let mean_days = 1.0 / cause.rate.per_day(NODES, GPUS);
        let mut day = dice.wait(mean_days);
        while day < DAYS {
            *counts.entry(cause.name.clone()).or_default() += 1;
            day += dice.wait(mean_days);
        }
    }
    counts
}

/// Over 400 seeds, the sum of (drawn - published)² / published over the 18 causes has on average the 18 degrees of
/// freedom that it has if the counts are Poisson with the published means. Its standard error is √(2·18/400) = 0.3,
/// a little more for the rare causes; within 1.5 is within five of them. Rates that were wrong by a tenth, in the three
/// largest causes alone, would add 148·0.01 + 72·0.01 + 54·0.01 = 2.7 and fail.
#[test]
fn counts_by_cause_agree_with_the_published_table() {
    let chi_squared = |scale: f64| -> f64 {
        let causes = find("llama3").unwrap().causes(scale);
        let seeds = 400;
        let one = |seed| -> f64 {
            let counts = drawn(&causes, seed);
            llama3_counts()
                .map(|(name, expected)| {
                    let found = f64::from(counts.get(name).copied().unwrap_or_default());
                    (found - f64::from(expected)).powi(2) / f64::from(expected)
                })
                .sum()
        };
        (0..seeds).map(one).sum::<f64>() / seeds as f64
    };
    let found = chi_squared(1.0);
    assert!((found - 18.0).abs() < 1.5, "{found}");
    // And it can tell: a tenth more is seen.
    let wrong = chi_squared(1.1);
    assert!(1.5 < wrong - 18.0, "{wrong}");
}

/// The total of one run is within four standard deviations (√419 ≈ 20.5) of 419; in 400 runs one of them would be
/// outside by chance with a probability of 2.5 %, and these seeds have none.
#[test]
fn the_total_of_a_run_is_within_sampling_error() {
    let causes = find("llama3").unwrap().causes(1.0);
    let totals: Vec<u32> = (0..400).map(|seed| drawn(&causes, seed).values().sum()).collect();
    let four = 4.0 * 419_f64.sqrt();
    for total in &totals {
        assert!((f64::from(*total) - 419.0).abs() < four, "{total}");
    }
    let mean = f64::from(totals.iter().sum::<u32>()) / totals.len() as f64;
    assert!((mean - 419.0).abs() < 5.0, "{mean}");
}

#[test]
fn a_rate_says_how_many_a_day() {
    let check = |rate: Rate, expected: f64| assert_eq!(rate.per_day(1_000, 8_000), expected);
    check(Rate::PerMillionGpuHours(1_000.0), 192.0);
    check(Rate::PerThousandNodeDays(6.5), 6.5);
    check(Rate::PerDay(3.0), 3.0);
}
