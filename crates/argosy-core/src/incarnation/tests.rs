use super::{Forecast, HistoryLoss, Horizon, Incarnation, NAMED_MAX, Would, made_at, proves_loss};
use crate::fixture::at;
use crate::instance::fixture::instance_id;
use jiff::{SignedDuration, Timestamp};
use uuid::Uuid;

fn token(second: i64) -> Uuid {
    let millis = u64::try_from(at(second).as_millisecond()).unwrap();
    uuid::Builder::from_unix_timestamp_millis(millis, &[7; 10]).into_uuid()
}

#[test]
fn a_token_says_when_it_was_made() {
    assert_eq!(made_at(token(90)), Some(at(90)));
    assert_eq!(made_at(Uuid::from_u128(7)), None);
}

/// What it is, when it was bought, the last commit, the begin of the incarnation, now, and whether it proves a loss.
type Row = (&'static str, i64, Option<i64>, Option<i64>, i64, bool);

/// Bought at a second, the last commit at the opening, the begin of the incarnation, now: hours later or soon.
#[test]
fn r1_v1_only_a_machine_that_the_store_must_have_known_proves_a_loss() {
    const HOUR: i64 = 3_600;
    let rows: [Row; 7] = [
        ("bought after the last commit of a backup", 100, Some(50), None, 90 * HOUR, true),
        ("bought before it, and its record kept until today", 40, Some(50), None, HOUR, true),
        ("bought before it, and forgotten since", 40, Some(50), None, 25 * HOUR, false),
        ("nobody knows what the store had", 40, None, None, 25 * HOUR, false),
        ("bought in what is known to be lost", 100, Some(50), Some(200), HOUR, false),
        ("bought since, and lost again", 300, Some(250), Some(200), 90 * HOUR, true),
        ("the same moment", 200, Some(50), Some(200), HOUR, false),
    ];
    for (what, bought, opened, since, now, expected) in rows {
        let horizon = Horizon {
            opened_at: opened.map(at),
            incarnation_since: since.map(at),
            kept: SignedDuration::from_hours(24),
        };
        assert_eq!(proves_loss(token(bought), &horizon, at(now)), expected, "{what}");
    }
    let horizon = Horizon {
        opened_at: Some(Timestamp::MIN),
        incarnation_since: None,
        kept: SignedDuration::from_hours(24),
    };
    assert!(!proves_loss(Uuid::from_u128(7), &horizon, at(0)), "it does not say when");
}

#[test]
fn r1_v1_an_incarnation_is_one_more_each_time() {
    let first = Incarnation::default();
    assert!(first.is_first());
    let second = first.next(HistoryLoss::Restored { head: 7 }, at(5));
    assert_eq!((second.number, second.since), (1, Some(at(5))));
    assert_eq!(second.next(HistoryLoss::ServerAhead { seen: 9, head: 4 }, at(6)).number, 2);
}

#[test]
fn r1_v1_a_forecast_counts_all_and_names_some() {
    let mut forecast = Forecast::default();
    assert!(forecast.is_nothing());
    for number in 0..u32::try_from(NAMED_MAX).unwrap() + 5 {
        let (instance, reason) = (instance_id(number), "the pool needs fewer nodes".to_owned());
        forecast.add(Would::Terminate { instance, drain: number % 2 == 0, reason });
    }
    assert_eq!((forecast.terminate, forecast.drain, forecast.steps.len()), (205, 103, NAMED_MAX));
    assert_eq!(
        forecast.to_string(),
        "205 machines would be terminated (103 drained first), 0 bought"
    );
    assert!(!forecast.is_nothing());
    let waits_for = Some("the first listing of the machines at GCP".to_owned());
    assert!(!Forecast { waits_for, ..Forecast::default() }.is_nothing());
}
