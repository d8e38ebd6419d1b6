use super::*;
use crate::cmd::node::fixture::{HOSTILE, command, harmless, harmless_failure, node, times};
use serde_json::json;

fn found(nodes: Vec<Node>, selected: bool) -> Found {
    Found { nodes, missing: Vec::new(), selected }
}

fn fleet(of: &[(&str, &str, &str)]) -> Vec<Node> {
    of.iter()
        .map(|(id, pool, status)| node(id, json!({ "pool": pool, "status": status })))
        .collect()
}

#[test]
fn a_plan_says_how_many_of_which_pools() {
    let nodes = fleet(&[
        ("a1", "a100", "ACTIVE"),
        ("h1", "h100", "ACTIVE"),
        ("h2", "h100", "UNHEALTHY"),
        ("h3", "h100", "ACTIVE"),
    ]);
    let mut found = found(nodes, true);
    found
        .missing
        .push(("h9".to_owned(), Failure::new(Exit::NotFound, "node h9 is not registered")));
    let over = ["pool h100: 3 nodes would leave service; the budget is 1".to_owned()];
    assert_eq!(
        plan(&Order::drain(None, false).unwrap(), &found, &over, None),
        "\
Drain 4 nodes (a100: 1, h100: 3):
  a100: 1 ACTIVE; 2x H100
  h100: 2 ACTIVE, 1 UNHEALTHY; 6x H100
  a1 h1 h2 h3
  ! pool h100: 3 nodes would leave service; the budget is 1
  ! h9: node h9 is not registered"
    );
    let many: Vec<Node> = (0..100).map(|place| node(&format!("n{place}"), json!({}))).collect();
    let text = plan(&Order::cordon(), &self::found(many, true), &[], Some(60));
    assert!(text.contains("n19 and 80 more") && !text.contains("n20"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 60), "{text}");
}

#[test]
fn what_matters_is_asked_about_and_needs_a_reason() {
    let (drain, terminate) = (Order::drain(None, false).unwrap(), Order::terminate(false));
    let (cordon, uncordon) = (Order::cordon(), Order::uncordon());
    let diagnose = Order::diagnose(Test::Quick, [("seconds", None), ("gpu", None), ("runs", None)]);
    // The order, how many nodes, whether they were selected: whether it asks, whether it needs a reason.
    let rows = [
        (&cordon, 1, false, false, false),
        (&cordon, 3, false, false, false),
        (&cordon, 1, true, true, false),
        (&uncordon, 3, false, false, false),
        (&uncordon, 3, true, true, false),
        (&diagnose, 2, false, false, false),
        (&drain, 1, false, false, false),
        (&drain, 2, false, true, true),
        (&drain, 1, true, true, false),
        (&terminate, 1, false, true, true),
        (&terminate, 5, true, true, true),
    ];
    for (order, count, selected, asks, reason) in rows {
        let nodes = (0..count).map(|place| node(&place.to_string(), json!({}))).collect();
        let found = found(nodes, selected);
        assert_eq!(order.asks(&found), asks, "{order:?} {count} {selected}");
        assert_eq!(order.needs_reason(count), reason, "{order:?} {count}");
    }
}

#[test]
fn orders_become_what_the_api_understands() {
    let hour = "1h".parse().unwrap();
    let rows = [
        (Order::cordon(), json!({ "type": "CORDON", "reason": "why" })),
        (
            Order::drain(Some(hour), true).unwrap(),
            json!({
                "type": "DRAIN", "reason": "why", "parameters": { "force": "true" },
                "drain_for_seconds": 3600,
            }),
        ),
        (
            Order::diagnose(
                Test::Memory,
                [("seconds", Some(300)), ("gpu", Some(0)), ("runs", None)],
            ),
            json!({
                "type": "RUN_DIAGNOSTIC", "reason": "why",
                "parameters": { "test": "memory", "seconds": "300", "gpu": "0" },
            }),
        ),
        (Order::terminate(false), json!({ "type": "TERMINATE", "reason": "why" })),
    ];
    for (order, expected) in rows {
        assert_eq!(serde_json::to_value(order.body(Some("why"))).unwrap(), expected);
    }
    let centuries = "36500d".parse().unwrap();
    assert!(Order::drain(Some(centuries), false).is_ok(), "the server says what is too long");
}

#[test]
fn u9_more_than_the_budget_is_noticed() {
    let brakes = |used: usize, allowed: usize, fleet: usize| -> Brakes {
        serde_json::from_value(json!({
            "kind": "Brakes", "pauses": [], "breakers": [],
            "budgets": [
                { "scope": "fleet", "used": used, "allowed": fleet, "total": 100 },
                { "scope": "pool/default/h100", "used": used, "allowed": allowed, "total": 20 },
                { "scope": "pool/other/h100", "used": 0, "allowed": 0, "total": 20 },
                { "scope": "zone/gcp/us-east1/us-east1-b", "used": 0, "allowed": 50, "total": 90 },
            ],
        }))
        .unwrap()
    };
    let three =
        fleet(&[("a", "h100", "ACTIVE"), ("b", "h100", "UNHEALTHY"), ("c", "h100", "ACTIVE")]);
    let out =
        fleet(&[("a", "h100", "CORDONED"), ("b", "h100", "DRAINING"), ("c", "h100", "ACTIVE")]);
    let over = "pool h100: 3 nodes would leave service; the budget is 2";
    let rows: [(&[Node], Brakes, &[&str]); 5] = [
        (&three, brakes(0, 3, 5), &[]),
        (&three, brakes(0, 2, 5), &[over]),
        (
            &three,
            brakes(2, 4, 100),
            &["pool h100: 3 nodes would leave service and 2 are out already; the budget is 4"],
        ),
        // Two of them are out of service already, and one more is not many.
        (&out, brakes(2, 2, 2), &[]),
        (&three, brakes(0, 3, 2), &["the fleet: 3 nodes would leave service; the budget is 2"]),
    ];
    for (nodes, brakes, expected) in rows {
        assert_eq!(overdrawn(nodes, &brakes), expected);
    }
}

#[test]
fn each_node_has_its_line() {
    let drain = Order::drain(None, false).unwrap();
    let command = command("c-1", "gpu-1", json!({}));
    assert_eq!(
        line(&drain, &command, false, times()),
        "node gpu-1: draining, deadline in 58m (command c-1)"
    );
    assert_eq!(line(&drain, &command, true, times()), "node gpu-1: would be drained");
    assert_eq!(line(&Order::cordon(), &command, true, times()), "node gpu-1: would be cordoned");
    let failure = Failure::new(Exit::Conflict, "it was terminated by bob");
    assert_eq!(
        failed_line(&drain, "gpu-2", &failure),
        "node gpu-2: not draining: it was terminated by bob"
    );
}

#[test]
fn failures_of_one_kind_keep_their_exit_code() {
    let failed = |exits: &[Exit]| {
        let failures: Vec<(String, Failure)> =
            exits.iter().map(|exit| ("n".to_owned(), Failure::new(*exit, ""))).collect();
        together(&failures, 5, "cordoned")
    };
    assert_eq!(failed(&[Exit::NotFound, Exit::NotFound]).exit, Exit::NotFound);
    assert_eq!(failed(&[Exit::NotFound, Exit::Conflict]).exit, Exit::Failed);
    assert_eq!(failed(&[Exit::Conflict]).what, "1 of 5 nodes were not cordoned");
}

#[test]
fn j14_plans_and_lines_of_hostile_texts_are_harmless() {
    let hostile = node(HOSTILE, json!({ "pool": HOSTILE, "zone": HOSTILE }));
    let mut found = found(vec![hostile.clone(), hostile], true);
    // A failure's own text is cleaned where it is made.
    found.missing.push((HOSTILE.to_owned(), Failure::new(Exit::NotFound, "gone")));
    harmless(&plan(&Order::cordon(), &found, &[HOSTILE.to_owned()], Some(80)));
    harmless(&what(&Order::cordon(), &found));
    let told = command(HOSTILE, HOSTILE, json!({ "deadline": HOSTILE }));
    let text = line(&Order::cordon(), &told, false, times());
    harmless(&text);
    assert_eq!(text.lines().count(), 1, "{text:?}");
    harmless(&failed_line(&Order::cordon(), HOSTILE, &Failure::failed("no")));
    harmless_failure(&together(&found.missing, 3, "cordoned"));
}
