use super::*;
use argosy_control::Revision;
use serde_json::json;
use std::sync::Arc;

fn stored(state: Value) -> Stored<Command> {
    let command = serde_json::from_value(json!({
        "id": "0195a000-0000-7000-8000-000000000001",
        "node": "gpu-1",
        "tenant": "acme",
        "kind": "DRAIN",
        "parameters": { "force": "true" },
        "by": "ada",
        "automatic": false,
        "reason": "a fan",
        "issued_at": "2026-01-01T00:00:00Z",
        "expires_at": "2026-01-01T00:10:00Z",
        "deadline": "2026-01-01T01:00:00Z",
        "state": state,
    }));
    Stored { value: Arc::new(command.unwrap()), revision: Revision(7) }
}

#[test]
fn a_command_says_how_far_it_is() {
    let row = |state: Value, expected: Value| {
        let shown = serde_json::to_value(wire(&stored(state))).unwrap();
        for (name, value) in expected.as_object().unwrap() {
            assert_eq!(&shown[name], value, "{name} in {shown}");
        }
    };
    row(
        json!({ "state": "pending" }),
        json!({ "state": "pending", "type": "DRAIN", "node_id": "gpu-1", "outcome": null,
                "deadline": "2026-01-01T01:00:00Z", "revision": 7,
                "href": "/api/argosy/v1/commands/0195a000-0000-7000-8000-000000000001" }),
    );
    row(
        json!({ "state": "acknowledged", "at": "2026-01-01T00:00:01Z", "progress": 40 }),
        json!({ "state": "acknowledged", "acknowledged_at": "2026-01-01T00:00:01Z", "progress": 40 }),
    );
    for (outcome, state) in [
        ("Completed", "completed"),
        ("Drained", "completed"),
        ("Forced", "completed"),
        ("TimedOut", "failed"),
        ("Failed", "failed"),
        ("Expired", "expired"),
        ("Cancelled", "cancelled"),
    ] {
        let done = json!({ "state": "done", "at": "2026-01-01T00:00:02Z", "outcome": outcome,
                           "message": "m", "result": { "passed": true } });
        assert_eq!(stored(done.clone()).value.state.word(), state, "core says the same");
        row(
            done,
            json!({ "state": state, "outcome": outcome, "ended_at": "2026-01-01T00:00:02Z",
                    "message": "m", "result": { "passed": true } }),
        );
    }
}

#[test]
fn a_wish_is_read_strictly() {
    let read = |body: Value| {
        let Value::Object(body) = body else { panic!("an object") };
        creation(body)
    };
    let new = read(json!({ "type": "DRAIN", "reason": "a fan", "drain_for_seconds": 60,
                           "parameters": { "force": "true" } }))
    .unwrap();
    assert_eq!((new.kind, new.drain_for), (CommandKind::Drain, Some(SignedDuration::from_mins(1))));
    assert_eq!((new.reason.as_str(), new.parameters["force"].as_str()), ("a fan", "true"));
    let rows = [
        (json!({}), "type", "Missing required field 'type'"),
        (
            json!({ "type": "REBOOT" }),
            "type",
            "Invalid type value 'REBOOT'. Supported values: CORDON, DRAIN, RUN_DIAGNOSTIC, \
             TERMINATE, UNCORDON",
        ),
        (json!({ "type": 1 }), "type", "Invalid type: expected a string, got a number"),
        (
            json!({ "type": "CORDON", "drain_for_seconds": 60 }),
            "drain_for_seconds",
            "drain_for_seconds is for the type DRAIN only",
        ),
        (
            json!({ "type": "DRAIN", "drain_for_seconds": 604_801 }),
            "drain_for_seconds",
            "drain_for_seconds must be a whole number from 1 to 604800",
        ),
        (
            json!({ "type": "DRAIN", "drain_for_seconds": 1.5 }),
            "drain_for_seconds",
            "drain_for_seconds must be a whole number from 1 to 604800",
        ),
        (
            json!({ "type": "CORDON", "parameters": { "a": 1 } }),
            "parameters.a",
            "Invalid parameters.a: expected a string, got a number",
        ),
        (
            json!({ "type": "CORDON", "reasn": "x" }),
            "reasn",
            "Unknown field 'reasn'. Did you mean 'reason'?",
        ),
        (
            json!({ "type": "CORDON", "reason": "x".repeat(1025) }),
            "reason",
            "reason is 1025 characters long; at most 1024 are allowed",
        ),
    ];
    for (body, field, message) in rows {
        let errors = read(body).unwrap_err();
        assert_eq!((errors[0].field.as_str(), errors[0].message.as_str()), (field, message));
    }
}
