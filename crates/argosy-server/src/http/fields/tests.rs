use super::*;
use serde_json::json;

fn check(fields: &str, expected: Value) {
    let whole = json!({
        "id": "x", "name": "n", "generation": 2,
        "labels": { "team": "a", "example.com/zone": "z" },
        "spec": { "region": "r", "platform": { "type": "gcp", "zone": "b" } },
        "status": { "phase": "Ready", "conditions": [
            { "type": "Reconciled", "status": "True" }, { "type": "Healthy", "status": "False" },
        ] },
    });
    assert_eq!(Fields::parse([fields].into_iter()).unwrap().project(&whole), expected, "{fields}");
}

#[test]
fn only_what_was_asked_for_is_left_and_the_id() {
    check("name", json!({ "id": "x", "name": "n" }));
    check("status.phase", json!({ "id": "x", "status": { "phase": "Ready" } }));
    check(
        "spec.platform.type,spec.region",
        json!({
            "id": "x", "spec": { "platform": { "type": "gcp" }, "region": "r" },
        }),
    );
    check(
        "status.conditions.type",
        json!({
            "id": "x", "status": { "conditions": [{ "type": "Reconciled" }, { "type": "Healthy" }] },
        }),
    );
    check(
        "status.conditions.type,status.conditions.status,status.phase",
        json!({
            "id": "x", "status": { "phase": "Ready", "conditions": [
                { "type": "Reconciled", "status": "True" }, { "type": "Healthy", "status": "False" },
            ] },
        }),
    );
    check("labels.example.com/zone", json!({ "id": "x", "labels": { "example.com/zone": "z" } }));
    check("spec.nothing", json!({ "id": "x", "spec": {} }));
    check("owner_references.*", json!({ "id": "x" }));
}

#[test]
fn unknown_fields_are_named() {
    let rows = [
        ("nam", "Unknown field 'nam'. Did you mean 'name'?"),
        ("name,status.fase", "Unknown field 'status.fase'. Supported fields: id, uid, "),
        ("", "Unknown field ''. "),
        ("spec..x", "Unknown field 'spec..x'. "),
    ];
    for (text, start) in rows {
        let errors = Fields::parse([text].into_iter()).unwrap_err();
        assert!(errors[0].message.starts_with(start), "{}", errors[0].message);
    }
}
