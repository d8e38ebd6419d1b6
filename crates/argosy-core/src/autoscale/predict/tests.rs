use super::{line, median, season};
use crate::autoscale::tests::{advise, now, refuse};
use crate::autoscale::{History, Sample};
use jiff::SignedDuration;
use proptest::prelude::*;
use serde_json::json;

/// One sample every five minutes of so many hours, on 100 nodes: the work `work(h)` of `h` hours ago.
fn history(hours: u32, work: impl Fn(f64) -> f64) -> Vec<Sample> {
    (0..=hours * 12)
        .map(|i| Sample {
            at: now() - SignedDuration::from_mins(5 * i64::from(i)),
            nodes: 100,
            utilization: Some(work(f64::from(i) / 12.0).clamp(0.0, 100.0)),
            pending_jobs: None,
            queue_depth: None,
        })
        .collect()
}

fn check(policy: &serde_json::Value, pool: &str, history: Vec<Sample>, expected: &str) {
    assert_eq!(advise(policy, pool, history).to_string(), format!("{expected} (predictive)"));
}

#[test]
fn nodes_are_ordered_for_the_work_that_comes_while_they_boot() {
    let usual = json!({"type": "predictive"});
    let far = json!({"type": "predictive", "horizon": "1h"});
    // 7 nodes of work and rising by 6 an hour.
    let rising = |h: f64| 7.0 - 6.0 * h;
    check(
        &usual,
        "wanted 10 util 70",
        history(1, rising),
        "10 -> 12: work for 7 nodes now, for 8 expected in 10m (rising by 6 an hour): 12 nodes at 70 %",
    );
    check(
        &far,
        "wanted 10 util 70",
        history(1, rising),
        "10 -> 19: work for 7 nodes now, for 13 expected in 1h (rising by 6 an hour): 19 nodes at 70 %",
    );
    // The line is of work: the same rise on a pool that was doubled half an hour ago.
    let mut doubled = history(1, rising);
    for sample in &mut doubled {
        sample.nodes = if now() - SignedDuration::from_mins(30) < sample.at { 200 } else { 100 };
        sample.utilization = sample.utilization.map(|u| u * 100.0 / f64::from(sample.nodes));
    }
    assert_eq!(advise(&usual, "wanted 10 util 70", doubled).target, 12);
    // Work that will vanish is still here.
    check(
        &usual,
        "util 70",
        history(1, |h| 3.5 + 6.0 * h),
        "5: work for 3.5 nodes now, for 2.5 expected in 10m (falling by 6 an hour): 5 nodes at 70 %",
    );
    // A node goes only if there is some room without it.
    check(
        &usual,
        "wanted 6 util 57",
        history(1, |_| 3.42),
        "6: work for 3.4 nodes now, for 3.4 expected in 10m (no clear trend): 5 nodes at 70 %",
    );
    check(
        &usual,
        "wanted 6 util 50",
        history(1, |_| 3.0),
        "6 -> 5: work for 3 nodes now, for 3 expected in 10m (no clear trend): 5 nodes at 70 %",
    );
    // The last node stays.
    check(
        &usual,
        "wanted 2 util 0",
        history(1, |_| 0.0),
        "2 -> 1: work for 0 nodes now, for 0 expected in 10m (no clear trend): 1 node at 70 %",
    );
    // Nothing is known of now: the newest sample stands for it.
    check(
        &usual,
        "wanted 3 ready 0",
        history(1, |_| 2.0),
        "3: work for 2 nodes now, for 2 expected in 10m (no clear trend): 3 nodes at 70 %",
    );
}

#[test]
fn noise_and_wild_samples_are_no_trend() {
    let usual = json!({"type": "predictive"});
    let zigzag = |h: f64| if ((h * 12.0).round() as i64) % 2 == 0 { 4.0 } else { 2.5 };
    let advice = advise(&usual, "wanted 5 util 60", history(1, zigzag));
    assert!(advice.reason.contains("no clear trend"), "{advice}");
    // A quarter of the samples is wild, and the line is the same.
    let mut wild = history(1, |h| 7.0 - 6.0 * h);
    for sample in wild.iter_mut().step_by(4) {
        sample.utilization = Some(100.0);
    }
    let advice = advise(&usual, "wanted 10 util 70", wild);
    assert!(advice.reason.contains("(rising by "), "{advice}");
    assert!((11..=13).contains(&advice.target), "{advice}");
}

#[test]
fn what_the_same_time_of_other_days_had_is_expected_today() {
    let usual = json!({"type": "predictive"});
    let off = json!({"type": "predictive", "season": "off"});
    // Five days with a step from 2 to 8 nodes at 12:05, which is in five minutes.
    let step = |h: f64| {
        let ago = h.rem_euclid(24.0);
        if 16.0 < ago && ago < 23.95 { 8.0 } else { 2.0 }
    };
    check(
        &usual,
        "util 40",
        history(5 * 24, step),
        "5 -> 12: work for 2 nodes now, for 8 expected in 10m (no clear trend, daily season): 12 nodes \
         at 70 %",
    );
    check(
        &off,
        "util 40",
        history(5 * 24, step),
        "5 -> 4: work for 2 nodes now, for 2 expected in 10m (no clear trend): 3 nodes at 70 %",
    );
    // Today has half as much again, at every hour: the season is added to what is left.
    let today = |h: f64| if h < 12.0 { step(h) + 1.0 } else { step(h) };
    let advice = advise(&usual, "util 60", history(5 * 24, today));
    assert!(advice.reason.contains("for 9 expected"), "{advice}");
    // One odd day among five does not make a season.
    let holiday = |h: f64| if (24.0..48.0).contains(&h) { 2.0 } else { step(h) };
    let advice = advise(&usual, "util 40", history(5 * 24, holiday));
    assert!(advice.reason.contains("for 8 expected"), "{advice}");
    // A day and a half is not two days.
    let advice = advise(&usual, "util 40", history(36, step));
    assert!(!advice.reason.contains("season"), "{advice}");
}

#[test]
fn too_little_history_says_how_much_is_missing_and_asks_the_fallback() {
    let plain = json!({"type": "predictive"});
    let with = json!({"type": "predictive", "lookback": "2h", "fallback": {"type": "reactive"}});
    let short =
        "too little history: 3 samples over 10m of the last 1h, at least 6 over 30m are needed";
    let few = history(1, |_| 3.0).into_iter().take(3).collect::<Vec<_>>();
    assert_eq!(
        advise(&plain, "util 90", few.clone()).to_string(),
        format!("5: {short} (predictive); without an opinion the size stays")
    );
    check(
        &with,
        "util 90",
        few,
        "5 -> 6: too little history: 3 samples over 10m of the last 2h, at least 6 over 1h are needed; \
         utilization 90 % is above 80 %",
    );
    let advice = advise(&with, "util 90", Vec::new());
    assert!(advice.reason.starts_with("too little history: 0 samples over 0s"), "{advice}");
    assert_eq!((advice.parts[0].at.as_str(), advice.parts[0].target), ("fallback", Some(6)));
    // What lies in the future is not history.
    let mut future = history(1, |_| 3.0);
    future.iter_mut().for_each(|sample| sample.at += SignedDuration::from_hours(2));
    assert!(advise(&plain, "util 90", future).reason.starts_with("too little history: 0 samples"));
}

#[test]
fn what_is_out_of_range_is_refused() {
    refuse(
        &json!({"type": "predictive", "horizon": "7h", "targetUtilization": 0, "season": "weekly",
                "lookback": "1m", "fallback": 5}),
        &[
            "spec.autoscaling.horizon must be between 1m and 6h",
            "spec.autoscaling.targetUtilization must be between 1 and 100",
            "spec.autoscaling.season must be one of daily, off, not `weekly`",
            "spec.autoscaling.lookback must be between 10m and 1d",
            "spec.autoscaling.fallback must be an object, not a number",
        ],
    );
}

#[test]
fn a_season_needs_two_days() {
    for (hours, expected) in [(24, None), (47, None), (49, Some(3.0)), (24 * 20, Some(3.0))] {
        let history = History::from(history(hours, |_| 3.0));
        assert_eq!(season(&history, now()).map(f64::round), expected, "{hours} h");
    }
}

#[test]
fn the_median_is_in_the_middle() {
    for (mut values, expected) in [
        (vec![], None),
        (vec![3.0], Some(3.0)),
        (vec![9.0, 1.0], Some(5.0)),
        (vec![9.0, 1.0, 2.0], Some(2.0)),
        (vec![4.0, 9.0, 1.0, 2.0], Some(3.0)),
    ] {
        assert_eq!(median(&mut values), expected);
    }
}

proptest! {
    #[test]
    fn a_straight_line_is_found(level in -50.0..50.0_f64, slope in 0.5..50.0_f64, count in 6_u32..48) {
        let points: Vec<(f64, f64)> = (0..count)
            .map(|i| { let x = -f64::from(count - 1 - i) / 12.0; (x, level + slope * x) })
            .collect();
        let (found_level, found_slope) = line(&points);
        prop_assert!((found_level - level).abs() < 1e-6 && (found_slope - slope).abs() < 1e-6);
    }
}
