use super::*;
use argosy_control::Revision;
use argosy_core::resource::Stamp;
use jiff::Timestamp;
use serde_json::json;
use std::sync::Arc;

fn object(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

fn resource(kind: Kind, owner: Option<&str>) -> Resource {
    let at: Timestamp = "2025-10-28T12:00:00Z".parse().unwrap();
    let stamp = Stamp { at, by: "ann".into() };
    Resource {
        id: ResourceId::parse("550e8400-e29b-41d4-a716-446655440000").unwrap(),
        kind,
        name: Name::parse("my-name").unwrap(),
        tenant: "t".into(),
        owner: owner.map(|owner| ResourceId::parse(owner).unwrap()),
        spec: object(json!({ "provider": "gcp" })),
        labels: Labels::default(),
        generation: 1,
        created: stamp.clone(),
        updated: stamp,
        deletion: None,
        without_drain: false,
        shrink_forced: false,
        started: None,
        phase_since: at,
        conditions: Vec::new(),
        reports: Default::default(),
        dispatches: Default::default(),
        stalled: Default::default(),
    }
}

fn shown(resource: Resource, profile: Profile) -> Value {
    let stored = Stored { value: Arc::new(resource), revision: Revision(7) };
    serde_json::to_value(wire(&stored, profile)).unwrap()
}

#[test]
fn a_new_cluster_reads_as_the_full_journey_shows_it() {
    let shown = shown(resource(Kind::Cluster, None), Profile::Full);
    let expected = json!({
        "id": "550e8400-e29b-41d4-a716-446655440000",
        "name": "my-name",
        "spec": { "provider": "gcp" },
        "created_at": "2025-10-28T12:00:00Z",
        "updated_at": "2025-10-28T12:00:00Z",
        "created_time": "2025-10-28T12:00:00Z",
        "href": "/api/hyperfleet/v1/clusters/550e8400-e29b-41d4-a716-446655440000",
        "kind": "Cluster",
        "revision": 7,
        "status": {
            "phase": "Pending", "lastTransitionTime": "2025-10-28T12:00:00Z", "conditions": [],
        },
    });
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(&shown[name], value, "{name}");
    }
    for absent in ["deleted_time", "deleted_by", "owner_references", "cluster_id", "labels"] {
        assert!(shown.get(absent).is_none(), "{absent}");
    }
}

#[test]
fn the_id_of_a_pool_is_its_name_but_for_upstream() {
    let owner = "660f9511-f3ac-52e5-b827-557766551111";
    let rows = [
        (Profile::Full, "my-name", "Pending"),
        (Profile::Mvp, "my-name", "Not Ready"),
        (Profile::Upstream, "550e8400-e29b-41d4-a716-446655440000", "Pending"),
    ];
    for (profile, id, phase) in rows {
        let shown = shown(resource(Kind::NodePool, Some(owner)), profile);
        assert_eq!(shown["id"], id);
        assert_eq!(shown["status"]["phase"], phase);
        assert_eq!(shown["uid"], "550e8400-e29b-41d4-a716-446655440000");
        assert_eq!(shown["cluster_id"], owner);
        assert_eq!(shown["owner_references"]["id"], owner);
        let path = format!("/api/hyperfleet/v1/clusters/{owner}/nodepools/");
        assert!(shown["href"].as_str().unwrap().starts_with(&path));
    }
}

#[test]
fn deletion_shows_only_when_it_was_asked_for() {
    let mut gone = resource(Kind::Cluster, None);
    gone.deletion = Some(Stamp { at: "2025-10-28T14:00:00Z".parse().unwrap(), by: "bob".into() });
    let shown = shown(gone, Profile::Full);
    assert_eq!(shown["deleted_time"], "2025-10-28T14:00:00Z");
    assert_eq!(shown["deleted_by"], "bob");
    assert_eq!(shown["status"]["phase"], "Terminating");
}

/// The sentences about a create, in order.
fn refused(body: Value) -> Vec<String> {
    creation(Kind::Cluster, object(body), &Catalog::default())
        .map(|_| vec![])
        .unwrap_or_else(|errors| errors.into_iter().map(|error| error.message).collect())
}

#[test]
fn a_create_names_every_field_that_is_wrong() {
    let rows = [
        (json!({}), vec!["Missing required field 'name'", "Missing required field 'spec'"]),
        (
            json!({ "name": 7, "spec": [] }),
            vec![
                "Invalid name: expected a string, got a number",
                "Invalid spec: expected an object, got an array",
            ],
        ),
        (
            json!({ "name": "a", "spec": {}, "labels": null }),
            vec!["Invalid labels: expected an object, got null"],
        ),
        (
            json!({ "kind": "NodePool", "name": "a", "spec": {} }),
            vec!["Invalid kind 'NodePool'. Supported values: Cluster"],
        ),
        (json!({ "kind": "Cluster", "name": "a", "spec": {}, "id": 1, "status": [] }), vec![]),
    ];
    for (body, sentences) in rows {
        assert_eq!(refused(body.clone()), sentences, "{body}");
    }
    let long = "x".repeat(64);
    assert_eq!(
        refused(json!({ "name": long, "spec": {} })),
        ["name is 64 characters long; at most 63 are allowed"]
    );
}

#[test]
fn a_patch_takes_spec_and_labels_and_nothing_else() {
    let rows = [
        (json!({}), "HYPERFLEET-VAL-005"),
        (json!({ "name": "x" }), "HYPERFLEET-VAL-006"),
        (json!({ "spec": {}, "kind": "x" }), "HYPERFLEET-VAL-006"),
        (json!({ "spec": null }), "HYPERFLEET-VAL-000"),
        (json!({ "labels": "x" }), "HYPERFLEET-VAL-000"),
    ];
    for (body, code) in rows {
        let fault = patch(object(body.clone()), Strategy::Merge).unwrap_err();
        assert_eq!(fault.problem("", "", Timestamp::UNIX_EPOCH).code, code, "{body}");
    }
    let good = patch(object(json!({ "spec": { "nodeCount": 8 } })), Strategy::Merge).unwrap();
    assert_eq!((good.spec, good.labels), (Some(object(json!({ "nodeCount": 8 }))), None));
}

#[test]
fn a_reason_has_limits() {
    let check = |reason: &str| force_delete(&object(json!({ "reason": reason }))).is_ok();
    assert!(check("x") && check(&"é".repeat(1024)));
    assert!(!check("") && !check(&"é".repeat(1025)));
    assert!(force_delete(&Map::new()).is_err());
}
