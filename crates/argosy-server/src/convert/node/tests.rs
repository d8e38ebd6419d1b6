use super::*;
use argosy_control::Revision;
use argosy_control::pulse::Sample;
use serde_json::{Value, json};
use std::sync::Arc;

fn stored(change: Value) -> Stored<Node> {
    let at = "2026-01-01T00:00:00Z";
    let mut document = json!({
        "id": "gpu-1",
        "tenant": "acme",
        "pool": "h100",
        "place": { "provider": "gcp", "region": "r", "zone": "z", "instance_type": "t" },
        "machine": { "hostname": "h", "agent": "navarch" },
        "gpus": [{ "index": 0, "uuid": "GPU-a", "name": "H100" }, { "index": 1 }],
        "registered_at": at,
        "joined_at": at,
        "liveness": "Fresh",
        "liveness_since": at,
        "health": { "state": "Healthy", "since": at, "reason": "NoFindings", "message": "" },
        "duty": "Active",
    });
    for (name, value) in change.as_object().unwrap() {
        document[name] = value.clone();
    }
    Stored { value: Arc::new(serde_json::from_value(document).unwrap()), revision: Revision(7) }
}

fn shown(change: Value, live: &Live) -> Value {
    serde_json::to_value(wire(&stored(change), live)).unwrap()
}

#[test]
fn what_is_not_known_is_absent() {
    let node = shown(json!({}), &Live::default());
    assert_eq!((&node["status"], &node["revision"]), (&json!("ACTIVE"), &json!(7)));
    assert_eq!(
        (&node["health_status"], &node["duty"]["state"]),
        (&json!("HEALTHY"), &json!("Active"))
    );
    for absent in
        ["last_heartbeat", "last_report", "metrics", "held", "flaps", "findings", "kernel_version"]
    {
        assert!(node.get(absent).is_none(), "{absent}");
    }
    assert!(node["gpus"][0].get("temperature").is_none());
    assert!(!node.to_string().contains("null"), "{node}");
    // Whatever is shown can be read again.
    assert!(serde_json::from_value::<api::Node>(node).is_ok());
}

#[test]
fn what_gpus_measure_stands_with_them() {
    let live = Live {
        heard_at: "2026-01-01T00:00:09Z".parse().ok(),
        attached: true,
        sample: Some(Sample {
            cpu_percent: Some(12.5),
            gpus: vec![GpuSample {
                index: 1,
                temperature: Some(61),
                power: Some(300),
                ..GpuSample::default()
            }],
            queue_depth: Some(4),
            ..Sample::default()
        }),
        ..Live::default()
    };
    let node = shown(json!({}), &live);
    assert!(node["gpus"][0].get("temperature").is_none(), "only where it was measured");
    assert_eq!(
        (&node["gpus"][1]["temperature"], &node["gpus"][1]["power"]),
        (&json!(61), &json!(300))
    );
    assert_eq!(
        (&node["metrics"]["cpu_percent"], &node["metrics"]["queue_depth"]),
        (&json!(12.5), &json!(4))
    );
    assert_eq!(
        (&node["last_heartbeat"], &node["attached"]),
        (&json!("2026-01-01T00:00:09Z"), &json!(true))
    );
}

#[test]
fn a_drain_shows_who_wants_it_and_until_when() {
    let hold =
        json!({ "by": "ada", "automatic": false, "reason": "a fan", "at": "2026-01-01T00:00:01Z" });
    let duty = json!({ "Draining": { "hold": hold, "command": "0195a000-0000-7000-8000-000000000001",
                                     "deadline": "2026-01-01T01:00:00Z", "done": true } });
    let node = shown(json!({ "duty": duty }), &Live::default());
    assert_eq!(node["status"], "DRAINING");
    assert_eq!(
        node["duty"],
        json!({ "state": "Draining", "by": "ada", "automatic": false, "reason": "a fan",
                "since": "2026-01-01T00:00:01Z", "deadline": "2026-01-01T01:00:00Z",
                "command_id": "0195a000-0000-7000-8000-000000000001", "drained": true })
    );
}

#[test]
fn a_finding_says_what_ends_it() {
    let at = "2026-01-01T00:00:00Z";
    let of = |ends: Value, policy: &str| {
        json!({ "key": "k", "severity": "degraded", "rule": "r", "policy": policy, "policy_version": 2,
                "message": "m", "first": at, "last": at, "count": 3, "ends": ends })
    };
    let findings = [
        of(json!("AtReboot"), "default"),
        of(json!({ "At": at }), "default"),
        of(json!("WhenCheckPasses"), ""),
    ];
    let node = shown(json!({ "findings": findings }), &Live::default());
    let of = |index: usize| node["findings"][index].clone();
    assert_eq!(
        (&of(0)["ends"], &of(0)["policy_version"], &of(0)["node_id"]),
        (&json!("AtReboot"), &json!(2), &json!("gpu-1"))
    );
    assert_eq!((&of(1)["ends"], &of(1)["ends_at"]), (&json!("AtTime"), &json!(at)));
    assert_eq!((&of(2)["ends"], of(2).get("policy")), (&json!("WhenCheckPasses"), None));
}

#[test]
fn a_point_is_as_long_ago_as_the_monotonic_clock_says() {
    let at = |at_s: u32| {
        let known = HistoryPoint {
            at_s,
            gpu_percent: Some(1),
            cpu_percent: Some(2),
            memory_percent: None,
            temperature: Some(4),
        };
        point(known, "2026-01-01T00:01:00Z".parse().unwrap(), Duration::from_secs(100)).at
    };
    assert_eq!(at(70), "2026-01-01T00:00:30Z");
    assert_eq!(at(200), "2026-01-01T00:01:00Z", "never in the future");
}
