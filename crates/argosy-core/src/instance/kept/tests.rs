use super::{FAILED_KEPT_MAX, surplus};
use crate::fixture::at;
use crate::instance::fixture::{intent, node_id};
use crate::instance::{Failure, Instance, State};

const NONE: [u32; 0] = [];

/// A purchase that came to nothing so long ago, for a reason, in a zone.
fn failed(number: u32, ago: i64, reason: &str, zone: &str) -> Instance {
    let failure = Failure { reason: reason.to_owned(), message: String::new() };
    let mut record = intent(number);
    record.order.zone = zone.to_owned();
    record.state = State::Failed { at: at(-ago), failure, console: String::new() };
    record
}

fn numbers(records: &[Instance]) -> Vec<u32> {
    surplus(records.iter(), at(0)).iter().map(|record| record.number).collect()
}

#[test]
fn the_last_failures_of_each_place_are_kept_and_the_others_forgotten() {
    let of = |count: u32, zone: &str| -> Vec<Instance> {
        (1..=count).map(|n| failed(n, 10_000 - i64::from(n), "CapacityExhausted", zone)).collect()
    };
    assert_eq!(numbers(&[]), NONE);
    assert_eq!(numbers(&of(5, "a")), NONE);
    assert_eq!(numbers(&of(8, "a")), [1, 2, 3]);
    // Whatever order they come in.
    assert_eq!(numbers(&of(8, "a").into_iter().rev().collect::<Vec<_>>()), [1, 2, 3]);
    // Each place for itself.
    assert_eq!(numbers(&[of(5, "a"), of(5, "b")].concat()), NONE);
    assert_eq!(numbers(&[of(6, "a"), of(7, "b")].concat()), [1, 1, 2]);
    assert_eq!(FAILED_KEPT_MAX, 5);
}

#[test]
fn what_is_young_or_was_bought_or_is_not_over_is_kept() {
    let many = |ago: i64, reason: &str| -> Vec<Instance> {
        (1..=9).map(|number| failed(number, ago, reason, "a")).collect()
    };
    assert_eq!(numbers(&many(599, "CapacityExhausted")), NONE);
    assert_eq!(numbers(&many(600, "CapacityExhausted")).len(), 4);
    assert_eq!(numbers(&many(9999, "RegistrationTimeout")), NONE);
    let open: Vec<Instance> = (1..=9).map(intent).collect();
    assert_eq!(numbers(&open), NONE);
    let gone = open.iter().map(|record| {
        let known: Instance = record.registered(&node_id(record.number), at(-9999)).unwrap();
        known
            .leaving(
                crate::fixture::permitted(crate::instance::Reason::ScaleDown { asked: false }),
                at(-9999),
            )
            .unwrap()
    });
    assert_eq!(numbers(&gone.collect::<Vec<_>>()), NONE);
}
