use super::{HISTORY_LEN_MAX, History, Metric, Metrics, RawMetrics, RawSample, Sample};
use crate::autoscale::tests::now;
use jiff::SignedDuration;
use proptest::prelude::*;
use serde_json::json;

fn raw(utilization: f64, pending: f64, queue: f64) -> RawMetrics {
    RawMetrics {
        at: Some(now()),
        utilization: Some(utilization),
        pending_jobs: Some(pending),
        queue_depth: Some(queue),
        ..RawMetrics::default()
    }
}

#[test]
fn g16_what_cannot_be_true_is_refused_with_a_sentence() {
    let not_percent = |text: &str| {
        format!("the utilization {text} is not possible (0 to 100 %), and is not used")
    };
    for (value, expected) in [
        (0.0, Ok(0.0)),
        (99.9, Ok(99.9)),
        // Rounding.
        (100.9, Ok(100.0)),
        (101.1, Err(not_percent("101.1"))),
        (91_000.0, Err(not_percent("91000"))),
        (-0.1, Err(not_percent("-0.1"))),
        (f64::NAN, Err(not_percent("NaN"))),
        (f64::INFINITY, Err(not_percent("inf"))),
        (f64::NEG_INFINITY, Err(not_percent("-inf"))),
    ] {
        let (metrics, refused) = Metrics::plausible(raw(value, 0.0, 0.0));
        match expected {
            Ok(expected) => assert_eq!((metrics.utilization, refused.len()), (Some(expected), 0)),
            Err(message) => {
                assert_eq!((metrics.utilization, refused.len()), (None, 1), "{value}");
                assert_eq!(
                    (refused[0].metric, &refused[0].message),
                    (Metric::Utilization, &message)
                );
            }
        }
    }
    for (value, expected) in [
        (0.0, Some(0)),
        (2.5, Some(3)),
        (10_000_000.0, Some(10_000_000)),
        (10_000_001.0, None),
        (-1.0, None),
        (f64::NAN, None),
        (f64::INFINITY, None),
    ] {
        let (metrics, refused) = Metrics::plausible(raw(50.0, value, value));
        assert_eq!((metrics.pending_jobs, metrics.queue_depth), (expected, expected), "{value}");
        assert_eq!(refused.len(), if expected.is_some() { 0 } else { 2 }, "{value}");
        assert_eq!(metrics.utilization, Some(50.0), "the others are used all the same");
    }
}

fn sample(minutes_ago: i64, pending_jobs: f64) -> RawSample {
    RawSample {
        at: now() - SignedDuration::from_mins(minutes_ago),
        nodes: 4,
        utilization: Some(50.0),
        pending_jobs: Some(pending_jobs),
        queue_depth: None,
    }
}

#[test]
fn g16_a_queue_a_thousand_times_longer_than_ever_is_not_believed_at_once() {
    let before = |seen: &[f64]| -> Vec<RawSample> {
        let usual = (seen.len()..20).map(|_| 50.0).chain(seen.iter().copied());
        usual.zip(0_i64..).map(|(jobs, i)| sample(100 - i, jobs)).collect()
    };
    for (history, pending, used) in [
        (before(&[]), 5000.0, true),
        (before(&[]), 10_000.0, true),
        (before(&[]), 50_000.0, false),
        // One sample does not vouch for the next, and three do.
        (before(&[50_000.0]), 50_000.0, false),
        (before(&[50_000.0; 2]), 50_000.0, false),
        (before(&[50_000.0; 3]), 50_000.0, true),
        // Of a pool that is new, nobody knows what is usual.
        (before(&[])[..11].to_vec(), 50_000.0, true),
    ] {
        let raw = RawMetrics { history, ..raw(50.0, pending, 0.0) };
        let (metrics, refused) = Metrics::plausible(raw);
        assert_eq!((metrics.pending_jobs.is_some(), refused.is_empty()), (used, used), "{pending}");
        // The same of a history that is kept.
        let again = self::raw(50.0, pending, 0.0);
        assert_eq!(Metrics::plausible_after(metrics.history.clone(), again), (metrics, refused));
    }
    let raw = RawMetrics { history: before(&[]), ..raw(50.0, 50_000.0, 0.0) };
    assert_eq!(
        Metrics::plausible(raw).1[0].message,
        "the number of waiting jobs 50000 is more than 100 times the 50 seen so far, and is not used \
         until 3 samples agree"
    );
}

#[test]
fn g16_a_history_loses_what_cannot_be_true_and_says_how_much() {
    let mut history: Vec<RawSample> = (0..10).map(|i| sample(i, 1.0)).collect();
    history[3].utilization = Some(f64::NAN);
    history[4].utilization = Some(-7.0);
    history[5].pending_jobs = Some(f64::INFINITY);
    history[6].nodes = u32::MAX;
    let (metrics, refused) = Metrics::plausible(RawMetrics { history, ..RawMetrics::default() });
    assert_eq!(metrics.history.len(), 10);
    let known =
        |of: fn(&Sample) -> bool| metrics.history.iter().filter(|sample| of(sample)).count();
    assert_eq!(known(|sample| sample.utilization.is_some()), 7);
    assert_eq!(known(|sample| sample.pending_jobs.is_some()), 9);
    let messages: Vec<&str> = refused.iter().map(|refused| refused.message.as_str()).collect();
    assert_eq!(
        messages,
        [
            "2 of 10 samples of the history are refused; the first: the utilization NaN is not possible \
             (0 to 100 %), and is not used, at 2026-06-10T11:57:00Z",
            "1 of 10 samples of the history are refused; the first: the number of waiting jobs inf is \
             not possible (0 to 10000000), and is not used, at 2026-06-10T11:55:00Z",
        ]
    );
}

#[test]
fn a_history_is_in_order_without_doubles_and_has_an_end() {
    let at = |second: i64, nodes: u32| Sample {
        at: jiff::Timestamp::from_second(second).unwrap(),
        nodes,
        utilization: None,
        pending_jobs: None,
        queue_depth: None,
    };
    let mut history = History::from(vec![at(3, 1), at(1, 1), at(3, 2)]);
    history.push(at(2, 1));
    history.push(at(1, 9));
    let shown = |history: &History| {
        let samples = history.iter().map(|s| format!("{}:{}", s.at.as_second(), s.nodes));
        samples.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(shown(&history), "1:9 2:1 3:2");
    history.forget_before(at(2, 0).at);
    assert_eq!(shown(&history), "2:1 3:2");
    let read: History = serde_json::from_value(json!(history)).unwrap();
    assert_eq!(read, history);

    let long: Vec<Sample> = (0..30_000).map(|second| at(second, 1)).collect();
    let mut history = History::from(long);
    history.push(at(30_000, 1));
    assert_eq!(
        (history.len(), history.last().map(|s| s.at.as_second())),
        (HISTORY_LEN_MAX, Some(30_000))
    );
}

proptest! {
    #[test]
    fn g16_what_is_left_is_always_possible(
        utilization: f64, pending: f64, queue: f64,
        history in prop::collection::vec((any::<i32>(), any::<u32>(), any::<f64>(), any::<f64>()), 0..40),
    ) {
        let history = history
            .into_iter()
            .map(|(second, nodes, utilization, pending)| RawSample {
                at: jiff::Timestamp::from_second(i64::from(second)).unwrap(),
                nodes,
                utilization: Some(utilization),
                pending_jobs: Some(pending),
                queue_depth: None,
            })
            .collect();
        let raw = RawMetrics { history, ..raw(utilization, pending, queue) };
        let (metrics, refused) = Metrics::plausible(raw);
        let values = metrics.history.iter().map(|s| s.utilization).chain([metrics.utilization]);
        for value in values.flatten() {
            prop_assert!((0.0..=100.0).contains(&value));
        }
        for jobs in [metrics.pending_jobs, metrics.queue_depth].into_iter().flatten() {
            prop_assert!(jobs <= super::JOBS_MAX);
        }
        prop_assert!(refused.iter().all(|refused| !refused.message.is_empty()));
    }
}
