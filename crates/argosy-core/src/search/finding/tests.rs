use super::super::{Filter, Order};
use super::*;
use serde_json::json;

fn node() -> Node {
    let at = "2026-03-01T12:00:00Z";
    let finding = |key: &str, severity: Option<&str>, rule: &str, last: &str| {
        json!({ "key": key, "severity": severity, "rule": rule, "policy": "default",
                "policy_version": 3, "message": "it fell off the bus", "evidence": "NVRM: Xid 79",
                "gpu": "GPU-aa", "first": at, "last": last, "count": 2, "ends": "AtReboot" })
    };
    serde_json::from_value(json!({
        "id": "gpu-17",
        "tenant": "acme",
        "pool": "h100",
        "place": { "provider": "gcp", "region": "us-east1", "zone": "b", "instance_type": "" },
        "machine": {},
        "gpus": [],
        "labels": { "rack": "r7" },
        "registered_at": at, "joined_at": at, "liveness": "Fresh", "liveness_since": at,
        "health": { "state": "Unhealthy", "since": at, "reason": "", "message": "" },
        "duty": "Active",
        "findings": [
            finding("broken", None, "typo", "2026-03-04T00:00:00Z"),
            finding("old", Some("unhealthy"), "fatal-xid", "2026-03-02T00:00:00Z"),
            finding("new", Some("unhealthy"), "fatal-xid", "2026-03-03T00:00:00Z"),
            finding("warm", Some("degraded"), "thermal", "2026-03-04T00:00:00Z"),
        ],
    }))
    .unwrap()
}

#[track_caller]
fn check(search: &str, expected: &str) {
    let node = node();
    let filter: Filter<Finding> =
        Filter::parse(search).unwrap_or_else(|error| panic!("{search}: {error}"));
    let mut found: Vec<_> =
        node.findings.iter().filter(|finding| filter.matches((&node, finding))).collect();
    let order: Order<Finding> = Order::default();
    found.sort_by(|a, b| order.compare((&node, a), (&node, b)));
    let keys: Vec<&str> = found.iter().map(|finding| finding.key.as_str()).collect();
    assert_eq!(keys.join(" "), expected, "{search}");
    assert_eq!(Filter::parse(&filter.to_string()), Ok(filter), "{search} printed and read again");
}

#[test]
fn every_field_can_be_asked_and_the_worst_comes_first() {
    check("", "new old warm broken");
    check("severity = 'unhealthy'", "new old");
    check("severity is null", "broken");
    check("rule = 'thermal' or key = 'old'", "old warm");
    check("last_seen > '2026-03-02T12:00:00Z' and first_seen < '2026-03-02'", "new warm broken");
    for all in [
        "node = 'gpu-17' and node_id like 'gpu-%'",
        "pool = 'h100' and provider = 'gcp' and region = 'us-east1' and zone = 'b'",
        "policy = 'default' and policy_version >= 3 and count = 2",
        "message like '%bus' and evidence like '%79' and gpu = 'GPU-aa'",
        "labels.rack = 'r7'",
    ] {
        check(all, "new old warm broken");
    }
}

#[test]
fn what_nobody_knows_is_named() {
    let refuse = |search: &str, start: &str| {
        let error = Filter::<Finding>::parse(search).unwrap_err().to_string();
        assert!(error.starts_with(start), "{error}");
    };
    refuse("severty = 'x'", "unknown field `severty`; did you mean `severity`?");
    refuse(
        "severity = 'bad'",
        "Invalid severity value 'bad'. Supported values: healthy, degraded, unhealthy",
    );
    refuse("nothing = 'x'", "unknown field `nothing`; known are node, node_id, pool, ");
}
