use super::{SIM_STEPS_MAX, SimPool, Summary, simulate};
use crate::autoscale::Sample;
use crate::autoscale::tests::{now, parse};
use jiff::SignedDuration;
use serde_json::{Value, json};

const MINUTE: SignedDuration = SignedDuration::from_mins(1);

/// One sample a minute, each `work` nodes' worth on `nodes` nodes.
fn recorded(nodes: u32, works: &[f64]) -> Vec<Sample> {
    works
        .iter()
        .zip(0_i64..)
        .map(|(work, minute)| Sample {
            at: now() + SignedDuration::from_mins(minute),
            nodes,
            utilization: Some((100.0 * work / f64::from(nodes)).min(100.0)),
            pending_jobs: None,
            queue_depth: None,
        })
        .collect()
}

fn pool(nodes: u32, boot: i64) -> SimPool {
    SimPool { min: 1, max: 20, nodes, boot: SignedDuration::from_mins(boot) }
}

/// The simulated sizes, minute by minute: `wanted>target/ready`.
fn sizes(policy: &Value, pool: SimPool, history: &[Sample]) -> String {
    let steps = simulate(&parse(policy), pool, history, MINUTE);
    let shown = steps.iter().map(|s| format!("{}>{}/{}", s.wanted, s.target, s.ready));
    shown.collect::<Vec<_>>().join(" ")
}

#[test]
fn the_work_is_kept_and_the_utilization_follows_from_the_simulated_size() {
    let reactive = json!({"type": "reactive", "cooldown": "0s"});
    // Recorded on ten nodes at 38 %: two would be full, and five have room.
    let work = recorded(10, &[3.8; 6]);
    assert_eq!(sizes(&reactive, pool(2, 0), &work), "2>3/2 3>4/3 4>5/4 5>5/5 5>5/5 5>5/5");
    // While they boot, they are counted.
    assert_eq!(sizes(&reactive, pool(2, 3), &work), "2>3/2 3>3/2 3>3/2 3>4/3 4>4/3 4>4/3");
    // A cooldown is one of the recorded clock.
    let slow = json!({"type": "reactive", "cooldown": "2m"});
    assert_eq!(sizes(&slow, pool(2, 0), &work), "2>3/2 3>3/3 3>4/3 4>4/4 4>5/4 5>5/5");
    let idle = recorded(10, &[0.1; 4]);
    assert_eq!(sizes(&reactive, pool(4, 0), &idle), "4>3/4 3>2/3 2>1/2 1>1/1");
}

#[test]
fn what_boots_is_given_back_first() {
    let policy = json!({"type": "queue", "metric": "queueDepth", "cooldown": "0s"});
    let mut work = recorded(4, &[1.0; 4]);
    for (sample, jobs) in work.iter_mut().zip([60, 30, 30, 30]) {
        sample.queue_depth = Some(jobs);
    }
    assert_eq!(sizes(&policy, pool(2, 2), &work), "2>6/2 6>3/2 3>3/3 3>3/3");
}

#[test]
fn jobs_that_waited_run_on_a_larger_pool_and_count_as_need() {
    let policy = json!({"type": "queue", "jobsPerNode": 10, "cooldown": "0s"});
    let mut work = recorded(2, &[2.0; 3]);
    for sample in &mut work {
        sample.pending_jobs = Some(25);
    }
    let steps = simulate(&parse(&policy), pool(2, 0), &work, MINUTE);
    let shown: Vec<_> = steps.iter().map(|s| (s.wanted, s.target, s.need)).collect();
    assert_eq!(shown, [(2, 5, Some(5)), (5, 5, Some(5)), (5, 5, Some(5))]);
}

#[test]
fn a_summary_counts_what_was_paid_for_and_what_was_missing() {
    let works: Vec<f64> = (0..120).map(|i| if i < 60 { 2.0 } else { 6.0 }).collect();
    let work = recorded(10, &works);
    let policy = parse(&json!({"type": "reactive", "cooldown": "0s"}));
    let steps = simulate(&policy, pool(3, 5), &work, MINUTE);
    let scaled = Summary::of(&steps);
    let fixed = Summary::of_static(&steps, 10);
    assert_eq!((fixed.node_hours, fixed.changes, fixed.minutes_below_need), (20.0, 0, 0.0));
    assert_eq!(
        scaled.to_string(),
        "10.3 node hours, 5 changes of size, 15 minutes below need, at most 8 nodes"
    );
    assert_eq!(
        scaled.against(&fixed),
        "10.3 node hours instead of 20 (48.4 % less), 5 changes of size instead of 0, 15 minutes below \
         need instead of 0"
    );
    let tight = Summary::of_static(&steps, 2);
    assert_eq!(tight.minutes_below_need, 60.0);
    assert!(scaled.against(&tight).contains("more"));
}

#[test]
fn a_prediction_is_ahead_of_a_reaction_on_the_same_days() {
    // Six days with a ramp from 2 to 14 nodes between 8:00 and 9:00, one sample every five minutes.
    let history: Vec<Sample> = (0..6 * 288_i32)
        .map(|i| {
            let hour = f64::from(i % 288) / 12.0;
            let work =
                2.0 + 12.0 * (hour - 8.0).clamp(0.0, 1.0) - 12.0 * (hour - 18.0).clamp(0.0, 1.0);
            let at = now() + SignedDuration::from_mins(5 * i64::from(i));
            let utilization = Some(5.0 * work);
            Sample { at, nodes: 20, utilization, pending_jobs: None, queue_depth: None }
        })
        .collect();
    let look = SignedDuration::from_mins(5);
    let run = |policy: &Value| Summary::of(&simulate(&parse(policy), pool(3, 10), &history, look));
    let reactive = run(&json!({"type": "reactive"}));
    let predictive = run(&json!({"type": "predictive", "fallback": {"type": "reactive"}}));
    assert!(
        predictive.minutes_below_need < reactive.minutes_below_need / 4.0,
        "{predictive}; {reactive}"
    );
    let fixed = Summary { node_hours: 20.0 * 6.0 * 24.0, ..reactive };
    assert!(predictive.node_hours < 0.8 * fixed.node_hours, "{predictive}");
}

#[test]
fn any_history_comes_to_an_end() {
    let policy = parse(&json!({"type": "reactive"}));
    assert!(simulate(&policy, pool(2, 1), &[], MINUTE).is_empty());
    let empty = Summary::of(&[]);
    assert_eq!((empty.node_hours, empty.against(&empty).is_empty()), (0.0, false));
    let mut years = recorded(2, &[1.0, 1.0]);
    years[1].at = now() + SignedDuration::from_hours(24 * 3650);
    for step in [SignedDuration::MIN, MINUTE] {
        let steps = simulate(&policy, pool(2, 1), &years, step);
        assert!(steps.len() <= SIM_STEPS_MAX && 40_000 < steps.len(), "{}", steps.len());
    }
    // What was not recorded for long is not known.
    let steps = simulate(&policy, pool(2, 1), &years, MINUTE);
    assert!(steps[10].reason.contains("old"), "{}", steps[10].reason);
}
