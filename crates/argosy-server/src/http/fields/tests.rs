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
    assert_eq!(
        Fields::parse([fields].into_iter(), OF_RESOURCE).unwrap().project(&whole),
        expected,
        "{fields}"
    );
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
        let errors = Fields::parse([text].into_iter(), OF_RESOURCE).unwrap_err();
        assert!(errors[0].message.starts_with(start), "{}", errors[0].message);
    }
}

/// Every member that the reference shows can be asked for, and nothing else.
#[test]
fn the_members_are_those_of_the_wire() {
    let document = argosy_api::openapi::document();
    let schemas = &document["components"]["schemas"];
    for (name, members) in [("Resource", OF_RESOURCE), ("Node", OF_NODE)] {
        let properties = schemas[name]["properties"].as_object().unwrap();
        let mut listed: Vec<&str> = members.iter().map(|(member, _)| *member).collect();
        listed.sort_unstable();
        assert_eq!(listed, properties.keys().collect::<Vec<_>>(), "{name}");
        for (member, below) in members.iter().filter(|(_, below)| !below.contains(&"*")) {
            let property = &properties[*member];
            let reference = [property, &property["items"]].map(|p| p["$ref"].as_str());
            let inner = reference.into_iter().flatten().next().map(|reference| {
                &schemas[reference.trim_start_matches("#/components/schemas/")]["properties"]
            });
            let Some(inner) = inner.and_then(Value::as_object) else {
                assert!(below.is_empty(), "{name}.{member}");
                continue;
            };
            let mut here: Vec<&str> = below.iter().copied().filter(|b| !b.contains('.')).collect();
            here.sort_unstable();
            assert_eq!(here, inner.keys().collect::<Vec<_>>(), "{name}.{member}");
        }
    }
}
