use super::*;
use crate::cmd::node::fixture::{HOSTILE, harmless, node, screen, times};
use crate::output::Screen;
use serde_json::Value;

/// The table, without a session.
fn text(screen: &Screen, wide: bool, nodes: &[Node]) -> String {
    grid(nodes, wide, times()).render(screen, true)
}

#[test]
fn a_line_has_what_people_look_for() {
    let sick = json!({
        "status": "UNHEALTHY", "health_status": "UNHEALTHY",
        "health": {
            "status": "UNHEALTHY", "since": "2026-01-01T11:56:00Z", "reason": "fatal-xid",
            "message": "Xid 79 on GPU 3",
        },
        "held": {
            "action": "cordon", "guard": "budget", "reason": "1 of 1 in use",
            "since": "2026-01-01T11:56:00Z",
        },
    });
    let silent = json!({
        "status": "CORDONED", "liveness": "Unreachable", "gpus": [], "pool": null,
        "duty": {
            "state": "Cordoned", "by": "alice", "reason": "new fans",
            "since": "2026-01-01T11:00:00Z",
        },
    });
    let nodes = [
        node("gpu-1", json!({})),
        node("gpu-2", sick),
        node("gpu-3", silent),
        node("gpu-4", json!({ "last_heartbeat": null })),
    ];
    assert_eq!(
        text(&screen(None), false, &nodes),
        "\
NODE   POOL  STATUS     HEALTH     LIVENESS     GPUS     UTIL  TEMP  HEARTBEAT  AGE  REASON
gpu-1  h100  ACTIVE     HEALTHY    -            2x H100  85%   71C   4s         5d   -
gpu-2  h100  UNHEALTHY  UNHEALTHY  -            2x H100  85%   71C   4s         5d   Xid 79 on GPU 3; cordon held by budget: 1 of 1 in use
gpu-3  -     CORDONED   HEALTHY    Unreachable  -        -     -     4s         5d   alice: new fans
gpu-4  h100  ACTIVE     HEALTHY    -            2x H100  85%   71C   -          5d   -
"
    );
}

#[test]
fn wide_has_place_agent_and_driver() {
    let text = text(&screen(None), true, &[node("gpu-1", json!({}))]);
    for word in ["PROVIDER", "gcp", "us-east1-b", "a3-highgpu-8g", "navarch", "550.54"] {
        assert!(text.contains(word), "{text}");
    }
}

#[test]
fn it_fits_the_terminal_and_leaves_out_what_says_nothing() {
    let nodes = [node("gpu-1", json!({})), node("gpu-2", json!({}))];
    let whole = text(&screen(None), false, &nodes);
    assert!(whole.contains("LIVENESS") && whole.contains("REASON"), "{whole}");
    for width in [80, 100, 200] {
        let text = text(&screen(Some(width)), false, &nodes);
        assert!(!text.contains("LIVENESS") && !text.contains("REASON"), "{text}");
        for line in text.lines() {
            assert!(line.chars().count() <= usize::from(width), "{width}: {line}");
        }
        assert!(text.contains("gpu-1") && text.contains("ACTIVE"), "{text}");
    }
}

#[test]
fn j14_nothing_a_node_says_acts_on_the_terminal() {
    let hostile = json!({
        "pool": HOSTILE, "provider": HOSTILE, "agent": HOSTILE,
        "health": { "status": "UNHEALTHY", "since": HOSTILE, "reason": HOSTILE, "message": HOSTILE },
        "status": "UNHEALTHY", "registered_at": HOSTILE,
        "gpus": [{ "index": 0, "name": HOSTILE, "driver_version": HOSTILE }],
        "flags": [{ "type": HOSTILE, "since": HOSTILE, "message": HOSTILE }],
    });
    for width in [None, Some(100)] {
        for wide in [false, true] {
            let text = text(&screen(width), wide, &[node(HOSTILE, hostile.clone())]);
            harmless(&text);
            assert_eq!(text.lines().count(), 2, "{text:?}");
        }
    }
}

#[test]
fn models_are_short_and_counted() {
    let rows = [
        (&["NVIDIA H100 80GB HBM3"; 8][..], "8x H100"),
        (&["NVIDIA A100-SXM4-80GB", "NVIDIA A100-SXM4-80GB"], "2x A100"),
        (&["Tesla T4", "NVIDIA H200"], "1x T4, 1x H200"),
        (&["NVIDIA GeForce RTX 4090"], "1x RTX 4090"),
        (&["NVIDIA GB200"], "1x GB200"),
        (&["", ""], "2x GPU"),
        (&[], ""),
    ];
    for (names, expected) in rows {
        let gpus: Vec<Value> =
            names.iter().map(|name| json!({ "index": 0, "name": name })).collect();
        let gpus: Vec<Gpu> = serde_json::from_value(Value::Array(gpus)).unwrap();
        assert_eq!(super::gpus(&gpus), expected);
    }
}

#[test]
fn the_reason_is_what_speaks_against_a_node() {
    let health = |status: &str, reason: &str, message: &str| json!({ "status": status, "since": "", "reason": reason, "message": message });
    let flag = json!([{ "type": "ClockSkewed", "since": "", "message": "off by 4m" }]);
    let finding = json!({
        "node_id": "a", "key": "thermal/GPU-3", "severity": "degraded", "rule": "hot",
        "message": "GPU 3 is hot", "first_seen": "", "last_seen": "", "count": 1, "ends": "AtTime",
    });
    let duty = json!({ "state": "Draining", "by": "alice", "reason": "fans", "since": "" });
    let silent_duty = json!({ "state": "Cordoned", "by": "alice", "since": "" });
    let rows = [
        (json!({}), ""),
        (json!({ "health": health("UNKNOWN", "NoReport", "it has not reported yet") }), ""),
        (json!({ "health": health("UNKNOWN", "PolicyError", "rule x failed") }), "rule x failed"),
        (json!({ "health": health("DEGRADED", "hot", "") }), "hot"),
        (
            json!({ "health": health("DEGRADED", "hot", "GPU 3 is hot"), "findings": [finding] }),
            "thermal/GPU-3: GPU 3 is hot",
        ),
        (json!({ "flags": flag }), "ClockSkewed"),
        (json!({ "status": "DRAINING", "duty": duty }), "alice: fans"),
        (
            json!({
                "status": "CORDONED", "duty": silent_duty,
                "health": health("UNHEALTHY", "fatal-xid", "Xid 79"),
            }),
            "by alice",
        ),
        (
            json!({
                "status": "CORDONED", "health": health("UNHEALTHY", "fatal-xid", "Xid 79"),
                "duty": { "state": "Cordoned", "by": "argosy", "automatic": true, "reason": "sick" },
            }),
            "Xid 79",
        ),
        (
            json!({
                "status": "CORDONED",
                "duty": { "state": "Cordoned", "by": "argosy", "automatic": true, "reason": "silent" },
            }),
            "argosy: silent",
        ),
    ];
    for (with, expected) in rows {
        assert_eq!(reason(&node("a", with.clone())), expected, "{with}");
    }
}
