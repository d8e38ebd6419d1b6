//! Nodes for tests, as a server answers them.

use crate::failure::Failure;
use crate::output::{Screen, clean};
use crate::view::Times;
use argosy_api::command::Command;
use argosy_api::node::Node;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// When it is, in tests.
pub(in crate::cmd) const NOW: &str = "2026-01-01T12:00:00Z";

/// Text that would clear the screen, forge a line and turn the reading order (J14).
pub(in crate::cmd) const HOSTILE: &str =
    "\u{1b}[2J\u{1b}]0;owned\u{7}a\nnode b: cordoned\r\u{202e}evil\u{2066}\u{200b}\u{9b}31m";

/// Times as seen at `NOW`.
pub(in crate::cmd) fn times() -> Times {
    Times::at(NOW.parse().unwrap())
}

/// A node of pool h100 with two GPUs, changed by the members of `with`.
pub(in crate::cmd) fn node(id: &str, with: Value) -> Node {
    let gpu = |index: u32, util: f64, temperature: u32| {
        json!({
            "index": index, "uuid": format!("GPU-{index}"), "name": "NVIDIA H100 80GB HBM3",
            "memory_total": 85_899_345_920_u64, "driver_version": "550.54", "temperature": temperature,
            "power": 500, "utilization": util, "memory_used": 42_949_672_960_u64,
        })
    };
    read(
        json!({
            "id": id, "kind": "Node", "href": "/n", "tenant": "default", "pool": "h100",
            "provider": "gcp", "region": "us-east1", "zone": "us-east1-b",
            "instance_type": "a3-highgpu-8g", "status": "ACTIVE", "health_status": "HEALTHY",
            "health": { "status": "HEALTHY", "since": "2026-01-01T11:00:00Z" },
            "liveness": "Fresh", "liveness_since": "2026-01-01T10:00:00Z",
            "duty": { "state": "Active" }, "agent": "navarch",
            "gpus": [gpu(0, 80.0, 61), gpu(1, 90.0, 71)],
            "registered_at": "2025-12-27T12:00:00Z", "joined_at": "2026-01-01T10:00:00Z",
            "last_heartbeat": "2026-01-01T11:59:56Z", "attached": false,
            "external": { "told": "Uncordon", "failures": 0 }, "revision": 7,
        }),
        with,
    )
}

/// A drain of a node, changed by the members of `with`.
pub(in crate::cmd) fn command(id: &str, node: &str, with: Value) -> Command {
    read(
        json!({
            "id": id, "kind": "Command", "href": "/c", "node_id": node, "type": "DRAIN",
            "state": "pending", "by": "alice", "automatic": false, "reason": "new fans",
            "issued_at": "2026-01-01T11:58:00Z", "expires_at": "2026-01-01T12:08:00Z",
            "deadline": "2026-01-01T12:58:00Z", "revision": 9,
        }),
        with,
    )
}

fn read<T: DeserializeOwned>(mut value: Value, with: Value) -> T {
    let (Value::Object(members), Value::Object(more)) = (&mut value, with) else {
        panic!("both are objects");
    };
    members.extend(more);
    serde_json::from_value(value).unwrap()
}

/// A screen as wide as a terminal of so many columns.
pub(in crate::cmd) fn screen(width: Option<u16>) -> Screen {
    Screen::sized(width, None)
}

/// Nothing in a text can act on a terminal, and no line is there that was not meant.
#[track_caller]
pub(in crate::cmd) fn harmless(text: &str) {
    for line in text.lines() {
        assert_eq!(clean(line), line, "{text:?}");
        assert!(!line.starts_with("node b: cordoned"), "a forged line: {text:?}");
    }
}

/// The same for what is said on failure.
#[track_caller]
pub(in crate::cmd) fn harmless_failure(failure: &Failure) {
    harmless(&failure.to_string());
}
