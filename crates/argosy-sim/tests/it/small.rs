//! The smallest worlds.

use crate::kit::{fleet_of, hours, minutes, played, pool_of, shipped};
use argosy_sim::outcome::{Fault, Outcome};
use argosy_sim::scenario::{Action, Assertion, Effect, Place, Scenario, Step};

#[test]
fn a_pool_that_is_declared_becomes_nodes_and_the_same_seed_is_the_same_run() {
    let mut scenario = pool_of(5, minutes(30));
    scenario.assertions = vec![
        Assertion::PoolReady("train.workers".to_owned()),
        Assertion::NodeCount { status: Some("active".to_owned()), from: 5, to: 5 },
    ];
    let first = played(&scenario, 1);
    assert_eq!(first.violations, []);
    assert!(first.assertions.iter().all(|checked| checked.holds), "{:?}", first.assertions);
    assert_eq!((first.money.bought, first.nodes), (5, 5));
    let again = played(&scenario, 1);
    assert_eq!(first.digest, again.digest);
    assert_eq!(first, again);
    assert_ne!(first.digest, played(&scenario, 2).digest);
}

fn at(minute: i64, action: Action) -> Step {
    Step { at: minutes(minute), action }
}

#[test]
fn a_sick_node_is_known_and_cordoned_and_comes_back_when_it_is_well() {
    let mut scenario = fleet_of(10, minutes(60));
    let sick = Place::Node("n-3".to_owned());
    let status = |word: &str| Assertion::NodeStatus("n-3".to_owned(), word.to_owned());
    scenario.script = vec![
        at(20, Action::Fault(sick.clone(), Effect::Inject("xid:79 gpu:1".to_owned()))),
        at(22, Action::Assert(status("cordoned"))),
        at(25, Action::Recover(sick, None)),
        at(
            30,
            Action::Command {
                target: "n-4".to_owned(),
                kind: "cordon".to_owned(),
                parameters: Default::default(),
            },
        ),
        at(31, Action::Assert(Assertion::NodeStatus("n-4".to_owned(), "cordoned".to_owned()))),
    ];
    let outcome = played(&scenario, 3);
    assert_eq!(outcome.violations, []);
    assert!(outcome.assertions.iter().all(|checked| checked.holds), "{:?}", outcome.assertions);
    let fault = &outcome.faults[0];
    assert!(fault.detected_after.is_some_and(|after| after < 10.0), "{fault:?}");
    assert!(fault.cordoned_after.is_some_and(|after| after < 60.0), "{fault:?}");
}

#[test]
fn a_machine_that_falls_silent_is_replaced() {
    let mut scenario = pool_of(20, hours(3));
    scenario.script = vec![at(60, Action::Fault(Place::Part(0.06), Effect::Silent))];
    scenario.assertions = vec![
        Assertion::PoolReady("train.workers".to_owned()),
        Assertion::NodeCount { status: Some("active".to_owned()), from: 20, to: 20 },
    ];
    let outcome = played(&scenario, 1);
    assert_eq!((outcome.actions["replace"], outcome.actions["return"]), (1, 1));
    assert_eq!(outcome.violations, []);
    assert!(outcome.assertions.iter().all(|checked| checked.holds), "{:?}", outcome.assertions);
}

#[test]
fn e1_a_node_whose_clock_is_hours_off_does_as_it_is_told() {
    for off_s in [-7_200, 7_200] {
        let mut scenario = pool_of(10, hours(3));
        scenario.script = vec![
            at(60, Action::Fault(Place::Everything, Effect::Clock(off_s))),
            at(70, Action::Fault(Place::Part(0.1), Effect::Inject("xid:48 gpu:1".to_owned()))),
        ];
        scenario.assertions = vec![
            Assertion::PoolReady("train.workers".to_owned()),
            Assertion::NodeCount { status: Some("active".to_owned()), from: 10, to: 10 },
        ];
        let outcome = played(&scenario, 1);
        assert_eq!(outcome.violations, [], "{off_s}");
        assert!(outcome.assertions.iter().all(|it| it.holds), "{off_s}: {:?}", outcome.assertions);
        assert_eq!(outcome.actions.get("drain"), Some(&1), "{off_s}: told once");
    }
}

#[test]
fn shipped_scenarios_hold_and_are_the_same_each_time() {
    for name in ["basic-fleet", "cordon-drain", "gpu-failure", "xid-classification"] {
        let scenario = shipped(name);
        let first = played(&scenario, 1);
        assert_eq!(first.violations, [], "{name}");
        let failed: Vec<_> = first.assertions.iter().filter(|checked| !checked.holds).collect();
        assert!(failed.is_empty(), "{name}: {failed:#?}");
        assert_eq!(first, played(&scenario, 1), "{name}");
    }
}

#[test]
fn r2_m11_a_pool_whose_machines_all_break_stops_and_asks_for_a_person() {
    let outcome = played(&shipped("badimage"), 1);
    assert_eq!(outcome.violations, []);
    assert_eq!(outcome.assertions.len(), 4);
    let failed: Vec<_> = outcome.assertions.iter().filter(|checked| !checked.holds).collect();
    assert!(failed.is_empty(), "{failed:#?}, {:?}", outcome.money);
}

#[test]
fn skipping_time_changes_nothing_that_is_done() {
    let mut scenario = pool_of(6, hours(4));
    let sick = Effect::Inject("xid:79 gpu:1".to_owned());
    scenario.script = vec![
        at(60, Action::Fault(Place::Part(0.3), sick)),
        at(150, Action::Fault(Place::Part(0.3), Effect::Silent)),
    ];
    let skipped = played(&scenario, 5);
    let whole = played(&Scenario { every_beat: true, ..scenario }, 5);
    let faults = |outcome: &Outcome| -> Vec<_> {
        let faults = outcome.faults.iter();
        // New machines have other names: those are made from the time.
        faults.map(|it| (it.at.round(), it.kind.clone())).collect()
    };
    assert_eq!(faults(&skipped), faults(&whole));
    assert_eq!(skipped.actions, whole.actions);
    assert_eq!(skipped.money.bought, whole.money.bought);
    // Of two that fail at once the budget lets one be replaced after the other: which is first goes by their
    // names, so the times are compared in their order.
    let times = |outcome: &Outcome, of: fn(&Fault) -> Option<f64>| -> Vec<(f64, Option<f64>)> {
        let mut times: Vec<_> =
            outcome.faults.iter().map(|fault| (fault.at.round(), of(fault))).collect();
        times.sort_by(|a, b| a.partial_cmp(b).expect("no time is NaN"));
        times
    };
    for of in [|fault: &Fault| fault.detected_after, |fault: &Fault| fault.repaired_after] {
        for (one, other) in times(&skipped, of).into_iter().zip(times(&whole, of)) {
            let near = match (one.1, other.1) {
                // Several waits after each other, each of which ends within a look or a beat of when it should.
                (Some(a), Some(b)) => (a - b).abs() < 90.0,
                (a, b) => a == b,
            };
            assert!(near, "{one:?} {other:?}");
        }
    }
}
