use super::*;
use argosy_control::Revision;
use serde_json::{Value, json};

/// The members of the body that the row names.
fn check(fault: impl Into<Fault>, status: u16, members: Value) {
    let problem = fault.into().problem("/x", "id", Timestamp::UNIX_EPOCH);
    assert_eq!(problem.status, status);
    let body = serde_json::to_value(&problem).unwrap();
    for (name, value) in members.as_object().unwrap() {
        assert_eq!(&body[name], value, "{name} in {body}");
    }
}

#[test]
fn each_error_has_the_members_its_clients_look_for() {
    check(
        Error::NotFound { kind: Kind::Cluster, reference: "x".into(), cluster: None },
        404,
        json!({ "error": "Cluster not found", "id": "x", "code": "HYPERFLEET-NTF-001",
                "cluster_id": null, "instance": "/x", "trace_id": "id" }),
    );
    check(
        Error::ClusterNotFound { reference: "c".into() },
        404,
        json!({ "error": "Cluster not found", "cluster_id": "c", "id": null }),
    );
    check(
        Error::NotFound {
            kind: Kind::NodePool,
            reference: "p".into(),
            cluster: Some("cluster-123".into()),
        },
        404,
        json!({ "error": "NodePool not found", "nodepool_id": "p", "cluster_id": "cluster-123" }),
    );
    check(
        Error::Forbidden("User does not have permission to access this cluster".into()),
        403,
        json!({ "error": "PermissionDenied", "code": "HYPERFLEET-AUZ-001",
                "message": "User does not have permission to access this cluster" }),
    );
    check(
        Error::Changed { expected: Revision(1), current: Revision(7) },
        409,
        json!({ "code": "HYPERFLEET-CNF-002", "current_revision": 7 }),
    );
    check(
        AuthError::Expired,
        401,
        json!({ "error": "Unauthenticated", "code": "HYPERFLEET-AUT-003" }),
    );
    check(StoreError::Full("x".into()), 507, json!({ "code": "HYPERFLEET-SVC-003" }));
    check(BodyError::TooLarge { max: 9 }, 413, json!({ "code": "HYPERFLEET-LMT-002" }));
}

#[test]
fn a_bad_field_gives_its_sentence_to_error_and_detail() {
    let sentence = "Invalid node count: 0. Must be between 1 and 100";
    check(
        Fault::field(FieldError::new("spec.nodeCount", Constraint::Min, sentence).with_value(0)),
        400,
        json!({ "error": sentence, "detail": sentence,
                "errors": [{ "field": "spec.nodeCount", "message": sentence, "value": 0,
                             "constraint": "min" }] }),
    );
}

#[test]
fn what_the_store_says_about_itself_stays_inside() {
    let fault: Fault = StoreError::Refused("/var/lib/secret is damaged".into()).into();
    let problem = fault.problem("/x", "id", Timestamp::UNIX_EPOCH);
    assert_eq!(problem.status, 500);
    assert!(!serde_json::to_string(&problem).unwrap().contains("secret"));
}
