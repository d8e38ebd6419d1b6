use crate::scenario::{
    Action, Assertion, Effect, Place, Rate, Scenario, Scope, StartupPattern, read,
};
use jiff::SignedDuration;

const SMALL: &str = include_str!("tests/small.yaml");
const STRESS: &str = include_str!("tests/stress.yaml");

fn scenario(text: &str) -> (Scenario, Vec<String>) {
    let (scenario, warnings) = read(text, "n.yaml").unwrap_or_else(|errors| panic!("{errors:#?}"));
    (scenario, warnings.iter().map(ToString::to_string).collect())
}

fn node(id: &str) -> Place {
    Place::Node(id.to_owned())
}

#[test]
fn every_action_of_a_small_file_is_played() {
    let (scenario, _) = scenario(SMALL);
    let inject = |text: &str| Effect::Inject(text.to_owned());
    let actions: Vec<(f64, Action)> =
        scenario.script.iter().map(|step| (step.at.as_secs_f64(), step.action.clone())).collect();
    let command = |target: &str, kind: &str, parameters: &[(&str, &str)]| Action::Command {
        target: target.to_owned(),
        kind: kind.to_owned(),
        parameters: parameters
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect(),
    };
    // Until the end, 65 seconds in.
    let far = Effect::Partition(SignedDuration::from_secs(61));
    assert_eq!(
        actions,
        [
            (0.0, Action::StartFleet),
            (1.5, Action::Log("three nodes".to_owned())),
            (3.0, Action::Fault(node("node-1"), inject("xid:48 gpu:2"))),
            (3.0, Action::Fault(node("node-2"), inject("temperature:95 gpu:0"))),
            (4.0, Action::Fault(node("node-3"), far)),
            (4.0, Action::Fault(node("node-3"), inject("driver-error:DRIVER_NOT_LOADED"))),
            (
                8.0,
                Action::WaitForStatus {
                    target: "node-1".to_owned(),
                    status: "unhealthy".to_owned(),
                    within: SignedDuration::from_secs(10),
                }
            ),
            (9.0, Action::Recover(node("node-1"), Some("xid:48 gpu:2".to_owned()))),
            (9.0, Action::Recover(node("node-2"), None)),
            (10.0, command("node-1", "diagnose", &[("level", "3")])),
            (11.0, command("node-2", "terminate", &[])),
            (
                12.0,
                Action::Assert(Assertion::NodeHealth("node-1".to_owned(), "unhealthy".to_owned()))
            ),
            (50.0, Action::StopFleet),
        ]
    );
    assert_eq!(
        scenario.duration,
        SignedDuration::from_secs(65),
        "five seconds after its last event"
    );
    assert!(!scenario.fleet.startup.by_itself, "`start_fleet` says when");
    let models: Vec<&str> =
        scenario.fleet.nodes.iter().map(|node| node.gpu_model.as_str()).collect();
    assert_eq!(models, ["H100", "A100", "H100"]);
    assert_eq!(scenario.fleet.nodes[0].labels["tier"], "1");
    assert_eq!(scenario.summary, "Every action that Navarch's files know.");
}

#[test]
fn what_navarch_does_not_do_is_told() {
    let (scenario, warnings) = scenario(SMALL);
    let expected = [
        "n.yaml:22:15: fleet[2].gpu_type: no such GPU can be made up",
        "n.yaml:23:5: fleet[2].colour: nobody reads this key",
        "params.failure_type: in Navarch's simulator this does nothing; here the node is cut off",
        "params.command_type: Navarch's simulator ends here with success",
        "expected: Navarch writes this count down and compares it with nothing; here it must be exactly 3 nodes",
    ];
    assert_eq!(warnings.len(), expected.len(), "{warnings:#?}");
    for (warning, part) in warnings.iter().zip(expected) {
        assert!(warning.contains(part), "{warning}\nhas no\n{part}");
    }
    assert_eq!(scenario.assertions[2], Assertion::NodeCount { status: None, from: 3, to: 3 });
    assert_eq!(
        scenario.assertions[0],
        Assertion::NodeStatus("node-1".to_owned(), "active".to_owned())
    );
}

#[test]
fn every_part_of_a_stress_section_is_played() {
    let (scenario, warnings) = scenario(STRESS);
    assert_eq!((scenario.fleet.nodes.len(), scenario.seed), (400, Some(42)));
    assert_eq!(scenario.sample_every, Some(SignedDuration::from_secs(10)));
    assert_eq!(scenario.reports.json.as_deref(), Some("out.json"));
    assert_eq!(scenario.reports.html.as_deref(), Some("out.html"));
    assert_eq!(scenario.machines.prices["a3-megagpu-8g"], 32.0);
    let startup = &scenario.fleet.startup;
    assert_eq!(
        (startup.pattern, startup.jitter, startup.by_itself),
        (StartupPattern::Exponential, 0.2, true)
    );
    // Zones are zones: a quarter of the fleet, and not whatever has the text in its id.
    let hit = scenario.fleet.nodes.iter().filter(|node| node.zone == "us-central1-a").count();
    assert_eq!(hit, 100);
    let trouble = &scenario.trouble;
    // Fifty a minute of a thousand nodes, whatever the rest says: no cap of one in a second.
    let rates: Vec<f64> =
        trouble.hardware.iter().map(|cause| cause.rate.per_day(1_000, 8_000)).collect();
    assert!((rates.iter().sum::<f64>() - 50.0 * 1440.0).abs() < 1e-6, "{rates:?}");
    assert_eq!(trouble.hardware[0].rate, Rate::PerThousandNodeDays(50.0 * 1440.0 * 60.0 / 100.0));
    assert_eq!(
        trouble.hardware[0].effects,
        [(30.0, Effect::Inject("xid:79".to_owned())), (10.0, Effect::Inject("xid:48".to_owned()))]
    );
    let cascade = trouble.cascade.as_ref().unwrap();
    assert_eq!((cascade.scope, cascade.depth_max, cascade.affected_max), (Scope::Zone, 4, 0.2));
    let recovery = trouble.recovery.as_ref().unwrap();
    assert_eq!(recovery.after, (SignedDuration::from_mins(8), SignedDuration::from_mins(2)));
    assert_eq!(recovery.replace_fatal_after, Some(SignedDuration::from_secs(45)));
    let outages: Vec<String> = trouble
        .outages
        .iter()
        .map(|outage| format!("{} {:?} {:?}", outage.at.as_secs(), outage.place, outage.effect))
        .collect();
    assert_eq!(
        outages,
        [
            r#"480 Zone("us-central1-a") Partition(3m)"#,
            r#"720 Provider("lambda") Inject("xid:79")"#,
            r#"1080 Region("us-east1") Silent"#,
            r#"1320 Part(0.1) Inject("temperature:95")"#,
        ]
    );
    assert_eq!(
        scenario.assertions,
        [Assertion::NodeCount { status: None, from: 240, to: u64::MAX }]
    );
    let unread = warnings.iter().filter(|warning| warning.contains("nobody reads this key"));
    assert_eq!(unread.count(), 1, "{warnings:#?}");
}

#[test]
fn what_cannot_be_is_refused_there_too() {
    let check = |from: &str, to: &str, text: &str, expected: &str| {
        assert!(text.contains(from), "{from}");
        let errors = read(&text.replacen(from, to, 1), "n.yaml").expect_err(to);
        let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert!(lines.iter().any(|line| line.contains(expected)), "{lines:#?}\nhas no\n{expected}");
    };
    check(
        "action: stop_fleet",
        "action: stop_flet",
        SMALL,
        "there is no word `stop_flet`; did you mean `stop_fleet`?",
    );
    check("target: node-1", "target: node-9", SMALL, "there is no node `node-9`");
    check(
        "gpu_index: 2",
        "gpu_index: 8",
        SMALL,
        "8 is outside of what is possible; write something from 0 to 7",
    );
    check("at: 1.5s", "at: soon", SMALL, "`soon` is no length of time");
    check("at: 1.5s", "at: -5s", SMALL, "`-5s` is no length of time");
    check("expected: \"3\"", "expected: several", SMALL, "it is no number");
    check(
        "total_nodes: 400",
        "total_nodes: 1000000000",
        STRESS,
        "write something from 1 to 2000000",
    );
    check("failure_rate: 50.0", "failure_rate: -1", STRESS, "-1 is outside of what is possible");
    check("probability: 0.3", "probability: 30", STRESS, "write something from 0 to 1");
    check(
        "target: us-central1-a",
        "target: us-central1-z",
        STRESS,
        "there is no zone `us-central1-z`; did you mean `us-central1-a`?",
    );
}

#[test]
fn the_dialect_is_seen_from_the_keys() {
    let is = |text: &str| super::is_navarch(&crate::scenario::tree::parse(text, "n.yaml").unwrap());
    assert!(is("events: []"));
    assert!(is("stress: {}"));
    assert!(is("fleet: [{id: a}]"));
    assert!(!is("fleet: {nodes: []}"));
    assert!(!is("name: x\nduration: 1h\nevents: []"), "ours, with a key that is not");
    assert!(!is("[]"));
}
