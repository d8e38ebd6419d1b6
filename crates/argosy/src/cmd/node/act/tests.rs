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
    let over = ["! exceeds the disruption budget: pool h100: …".to_owned()];
    assert_eq!(
        plan(&Order::drain(None, false).unwrap(), &found, &over, None),
        "\
Drain 4 nodes (a100: 1, h100: 3):
  a100: 1 ACTIVE; 2x H100
  h100: 2 ACTIVE, 1 UNHEALTHY; 6x H100
  a1 h1 h2 h3
  ! exceeds the disruption budget: pool h100: …
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
        (
            Order::terminate(false).over_budget(true),
            json!({ "type": "TERMINATE", "reason": "why", "over_budget": true }),
        ),
    ];
    for (order, expected) in rows {
        assert_eq!(serde_json::to_value(order.body(Some("why"))).unwrap(), expected);
    }
    let centuries = "36500d".parse().unwrap();
    assert!(Order::drain(Some(centuries), false).is_ok(), "the server says what is too long");
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
