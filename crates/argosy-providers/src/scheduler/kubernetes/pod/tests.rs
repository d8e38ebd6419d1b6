use super::*;
use serde_json::{Value, json};

fn left(metadata: Value) -> Option<Left> {
    Left::of(&serde_json::from_value(metadata).unwrap())
}

fn pod(name: &str) -> Left {
    let (namespace, name, uid) = ("ml".to_owned(), name.to_owned(), "u".to_owned());
    Left { namespace, name, uid, leaving: false }
}

#[test]
fn pods_of_daemon_sets_and_mirrors_of_static_pods_stay() {
    let owner = |kind: &str, controller: Value| {
        json!([{
            "apiVersion": "apps/v1", "kind": kind, "name": "o", "uid": "1", "controller": controller,
        }])
    };
    let mirror = json!({ "kubernetes.io/config.mirror": "abc" });
    for (more, leaves) in [
        (json!({}), true),
        (json!({ "ownerReferences": owner("ReplicaSet", json!(true)) }), true),
        (json!({ "ownerReferences": owner("StatefulSet", json!(true)) }), true),
        (json!({ "ownerReferences": owner("DaemonSet", json!(true)) }), false),
        (json!({ "ownerReferences": owner("DaemonSet", json!(false)) }), true),
        (json!({ "ownerReferences": owner("DaemonSet", Value::Null) }), true),
        (json!({ "annotations": mirror }), false),
        (json!({ "annotations": { "kubernetes.io/config.source": "api" } }), true),
    ] {
        let mut metadata = json!({ "namespace": "ml", "name": "a", "uid": "u" });
        metadata.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        assert_eq!(left(metadata).is_some(), leaves, "{more}");
    }
    let ending = json!({
        "namespace": "ml", "name": "a", "uid": "u", "deletionTimestamp": "2030-01-01T00:00:00Z",
    });
    assert_eq!(left(ending), Some(Left { leaving: true, ..pod("a") }));
}

#[test]
fn the_sum_is_a_number_and_a_sentence() {
    let check = |fates: &[(&str, Fate)], over: bool, expected: &str| {
        let fates = fates.iter().map(|(name, fate)| (pod(name), fate.clone())).collect();
        let said = match sum_up(fates, over) {
            Ok(DrainStatus::Drained) => "drained".to_owned(),
            Ok(DrainStatus::Draining { left, message }) => format!("{left:?} {message}"),
            Ok(other) => format!("{other:?}"),
            Err(error) => format!("{error:?}"),
        };
        assert_eq!(said, expected);
    };
    let held = || Fate::Held("budget b needs 1".to_owned());
    let refused = || Fate::Failed(SchedulerError::Refused("forbidden".to_owned()));
    check(&[], false, "drained");
    check(&[], true, "drained");
    check(&[("a", Fate::Gone), ("b", Fate::Gone)], false, "drained");
    check(&[("a", Fate::Leaving)], false, "Some(1) 1 pod is left: ml/a (is ending)");
    check(
        &[("a", held()), ("b", Fate::Gone), ("c", Fate::Leaving)],
        false,
        "Some(2) 2 pods are left: ml/a (held back: budget b needs 1), ml/c (is ending)",
    );
    check(
        &[("a", Fate::Stays), ("b", Fate::Stays)],
        true,
        "Some(2) the deadline has passed; 2 pods are left: ml/a, ml/b",
    );
    check(
        &["a", "b", "c", "d", "e", "f"].map(|name| (name, Fate::Stays)),
        false,
        "Some(6) 6 pods are left: ml/a, ml/b, ml/c, ml/d, ml/e, …",
    );
    check(
        &[("a", Fate::Failed(SchedulerError::Later("busy".to_owned())))],
        false,
        "Some(1) 1 pod is left: ml/a (busy)",
    );
    // One pod that may not be evicted does not hide the others; none that may is for a person.
    check(
        &[("a", refused()), ("b", Fate::Leaving)],
        false,
        "Some(2) 2 pods are left: ml/a (forbidden), ml/b (is ending)",
    );
    check(&[("a", refused()), ("b", refused())], false, "Refused(\"forbidden\")");
}
