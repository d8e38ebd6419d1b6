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

#[test]
fn what_is_not_there_in_the_node_plane_says_what_to_do() {
    let register = error::NODE_NOT_FOUND.hint;
    check(
        Error::NodeNotFound("gpu-9".into()),
        404,
        json!({ "error": "Node not found", "detail": "Node 'gpu-9' not found", "node_id": "gpu-9",
                "id": "gpu-9", "code": "HYPERFLEET-NTF-002", "hint": register }),
    );
    check(
        Error::CommandNotFound("7".into()),
        404,
        json!({ "error": "Command not found", "id": "7", "node_id": null }),
    );
    check(Error::PolicyNotFound("hot".into()), 404, json!({ "detail": "Policy 'hot' not found" }));
    check(Error::TooMany("32 wait".into()), 429, json!({ "code": "HYPERFLEET-LMT-004" }));
    let busy = Fault::new(&error::TOO_MANY, "later").respond("/x", "id", Timestamp::UNIX_EPOCH);
    assert_eq!(busy.headers()[RETRY_AFTER], "1");
}

#[test]
fn j14_no_sentence_can_move_the_cursor_or_turn_the_line() {
    let odd = "a\u{1b}[31mb\nc\u{202e}d\u{7f}e";
    let rows = [
        Fault::from(Error::NodeNotFound(odd.into())),
        Fault::field(FieldError::new(odd, Constraint::Enum, odd)),
        Fault::forbidden(odd),
    ];
    for fault in rows {
        let problem = fault.problem("/x", "id", Timestamp::UNIX_EPOCH);
        let Problem { detail, error, message, errors, .. } = problem;
        let fields = errors.into_iter().flat_map(|error| [error.field, error.message]);
        for sentence in [detail, error].into_iter().chain(message).chain(fields) {
            assert!(!sentence.contains(is_odd), "{sentence:?}");
        }
    }
    let plain = Fault::new(&error::BAD_REQUEST, odd).problem("/x", "id", Timestamp::UNIX_EPOCH);
    assert_eq!(plain.detail, "a\\u{1b}[31mb\\nc\\u{202e}d\\u{7f}e");
}
