use super::*;
use argosy_control::Revision;
use serde_json::json;
use std::sync::Arc;

fn object(value: Value) -> Map<String, Value> {
    let Value::Object(object) = value else { panic!("an object") };
    object
}

fn complaints(errors: Vec<FieldError>) -> Vec<String> {
    errors.into_iter().map(|error| error.message).collect()
}

#[test]
fn what_was_read_can_be_sent() {
    let document = json!({
        "name": "hot",
        "tenant": "acme",
        "version": 3,
        "spec": {
            "description": "d",
            "pools": ["h100"],
            "rules": [{ "name": "r", "description": "x", "priority": 5,
                        "condition": "event.event_type == 'xid'", "result": "degraded", "lasts": "30m" }],
        },
        "created": { "at": "2026-01-01T00:00:00Z", "by": "ada" },
        "updated": { "at": "2026-01-02T00:00:00Z", "by": "bob" },
    });
    let policy: Policy = serde_json::from_value(document).unwrap();
    let stored = Stored { value: Arc::new(policy.clone()), revision: Revision(9) };
    let shown = serde_json::to_value(wire(&stored)).unwrap();
    assert_eq!((&shown["version"], &shown["updated_by"]), (&json!(3), &json!("bob")));
    assert_eq!(shown["href"], "/api/argosy/v1/policies/hot");
    assert_eq!(spec(object(shown), "", Some("hot")).unwrap(), policy.spec);
}

#[test]
fn a_policy_names_each_rule_that_is_wrong() {
    let body = json!({
        "name": "other",
        "rules": [{ "name": "a", "condition": "true", "result": "sick" }, 7, { "prio": 1 }],
        "rulez": [],
    });
    assert_eq!(
        complaints(spec(object(body), "", Some("hot")).unwrap_err()),
        [
            "Invalid rules[0].result value 'sick'. Supported values: healthy, degraded, unhealthy",
            "Invalid rules[1]: expected an object, got a number",
            "Missing required field 'rules[2].result'",
            "Missing required field 'rules[2].name'",
            "Missing required field 'rules[2].condition'",
            "Unknown field 'rules[2].prio'. Supported fields: priority, result, name, description, \
             condition, lasts",
            "name must be that of the path, 'hot', or be left out",
            "Unknown field 'rulez'. Did you mean 'rules'?",
        ]
    );
}

#[test]
fn a_question_is_about_an_event() {
    let body = json!({
        "node_id": "gpu-1",
        "event": { "event_type": "xid", "gpu_index": 3, "metrics": { "xid_code": 79, "hot": 1.5, "x": "y", "b": true },
                   "raw": "NVRM: Xid 79" },
        "policy": { "rules": [] },
    });
    let asked = question(object(body)).unwrap();
    assert_eq!((asked.node.as_deref(), asked.event.code()), (Some("gpu-1"), 79));
    assert_eq!((asked.event.gpu_index, asked.event.count), (3, 1));
    assert_eq!(asked.spec, Some(PolicySpec::default()));
    let rows = [
        (json!({}), "Missing required field 'event'"),
        (json!({ "event": 7 }), "Invalid event: expected an object, got a number"),
        (json!({ "event": {} }), "Missing required field 'event.event_type'"),
        (
            json!({ "event": { "event_type": "sad" } }),
            "Invalid event.event_type value 'sad'. Supported values: unknown, xid, ",
        ),
        (
            json!({ "event": { "event_type": "xid", "metrics": { "a": [] } } }),
            "Invalid event.metrics.a: expected a boolean, a number or a string, got an array",
        ),
        (
            json!({ "event": { "event_type": "xid", "gpu_uuid": "x".repeat(200) } }),
            "event.gpu_uuid is 200 bytes long",
        ),
        (
            json!({ "event": { "event_type": "xid", "node_time": "soon" } }),
            "event.node_time must be a time like 2026-01-31T12:00:00Z",
        ),
        (
            json!({ "event": { "event_type": "xid" }, "policy": { "rules": 1 } }),
            "Invalid policy.rules: expected an array, got a number",
        ),
    ];
    for (body, start) in rows {
        let sentences = complaints(question(object(body)).unwrap_err());
        assert!(sentences[0].starts_with(start), "{sentences:?}");
    }
}

#[test]
fn a_trial_has_a_policy_and_perhaps_a_beginning() {
    let body = json!({ "policy": { "rules": [] }, "since": "2026-01-01T00:00:00Z" });
    let (spec, since) = trial(object(body)).unwrap();
    assert_eq!((spec, since.is_some()), (PolicySpec::default(), true));
    let sentences = complaints(trial(object(json!({ "since": "yesterday" }))).unwrap_err());
    assert_eq!(
        sentences,
        ["since must be a time like 2026-01-31T12:00:00Z", "Missing required field 'policy'"]
    );
}
