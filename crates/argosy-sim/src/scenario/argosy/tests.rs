use crate::scenario::{
    Action, Assertion, Cascade, Effect, Place, Rate, Scenario, Scope, StartupPattern, read,
};
use jiff::SignedDuration;

/// Every key there is.
const ALL: &str = include_str!("tests/all-keys.yaml");

fn scenario(text: &str) -> Scenario {
    read(text, "f.yaml").unwrap_or_else(|errors| panic!("{errors:#?}")).0
}

#[test]
fn every_key_is_read() {
    let all = scenario(ALL);
    assert_eq!((all.name.as_str(), all.summary.as_str()), ("all-keys", "Everything at once."));
    assert_eq!(
        (all.duration, all.settle),
        (SignedDuration::from_hours(36), SignedDuration::from_mins(90))
    );
    assert_eq!((all.processes, all.every_beat, all.seed), (3, true, Some(7)));
    assert_eq!(all.config["machines"]["sweep_every"], "10m");
    assert_eq!(all.clusters[0].pools[0].1["nodeCount"], 4);
    assert_eq!(all.fleet.nodes.len(), 2 + 8);
    assert_eq!(all.fleet.nodes[0].labels["team"], "red");
    assert_eq!((all.fleet.startup.pattern, all.fleet.startup.batch), (StartupPattern::Wave, 10));
    assert_eq!(all.machines.types["x"], (2, "L4".to_owned()));
    assert_eq!(all.reports.html.as_deref(), Some("out.html"));
    let trouble = &all.trouble;
    let own = trouble.hardware.last().unwrap();
    assert_eq!((own.name.as_str(), own.rate, own.interrupts), ("Own", Rate::PerDay(3.0), false));
    assert_eq!(
        own.effects,
        [(1.0, Effect::Inject("xid:79".to_owned())), (3.0, Effect::Clock(-90))]
    );
    // The profile's causes come first, at half their rate.
    assert_eq!(trouble.hardware[0].name, "Faulty GPU");
    assert_eq!(
        trouble.cascade,
        Some(Cascade {
            probability: 0.1,
            depth_max: 2,
            delay: (SignedDuration::from_secs(1), SignedDuration::from_mins(1)),
            scope: Scope::Zone,
            affected_max: 0.2,
        })
    );
    assert_eq!(trouble.outages[0].place, Place::Pool("c.p".to_owned()));
    assert_eq!(trouble.control.clock_jump_max, 120);
    assert_eq!(trouble.link.latency.1, SignedDuration::from_millis(20));
    assert_eq!(trouble.cloud.latency.0, trouble.cloud.latency.1);
    assert_eq!(all.workload.unwrap().jobs[0].work, Some(SignedDuration::from_hours(5)));
}

#[test]
fn the_script_is_in_order_of_time_and_says_what_it_says() {
    let all = scenario(ALL);
    let lines: Vec<String> =
        all.script.iter().map(|step| format!("{} {:?}", step.at.as_secs(), step.action)).collect();
    assert_eq!(all.script.len(), 11, "{lines:#?}");
    assert!(all.script.is_sorted_by_key(|step| step.at), "{lines:#?}");
    let nodes = Place::Node("a".to_owned());
    assert_eq!(all.script[0].action, Action::StartFleet);
    assert_eq!(all.script[1].action, Action::Fault(nodes.clone(), Effect::Silent));
    assert_eq!(all.script[2].action, Action::Recover(nodes, Some("xid:79".to_owned())));
    assert_eq!(
        all.script[9].action,
        Action::Assert(Assertion::NodeCount {
            status: Some("active".to_owned()),
            from: 1,
            to: u64::MAX
        })
    );
}

#[test]
fn every_assertion_is_read() {
    let all = scenario(ALL);
    let text = |text: &str| text.to_owned();
    assert_eq!(
        all.assertions,
        [
            Assertion::NodeStatus(text("a"), text("active")),
            Assertion::NodeHealth(text("b"), text("healthy")),
            Assertion::NodeCount { status: None, from: 3, to: 3 },
            Assertion::PoolReady(text("c.p")),
            Assertion::PoolReason(text("c.p"), text("NeedsHuman")),
            Assertion::Bought(12),
            Assertion::Availability(0.9),
            Assertion::DetectedWithin(SignedDuration::from_secs(30)),
            Assertion::Goodput(0.8),
        ]
    );
}
