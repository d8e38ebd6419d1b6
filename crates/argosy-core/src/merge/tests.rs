use super::*;
use proptest::prelude::*;
use serde_json::json;

/// Merges whole documents, as members of an object that has nothing else; a document that the patch
/// removed is `null`.
fn merged(target: &Value, patch: &Value) -> Value {
    let mut outer = Map::from_iter([("doc".to_owned(), target.clone())]);
    merge(&mut outer, &Map::from_iter([("doc".to_owned(), patch.clone())]));
    outer.remove("doc").unwrap_or(Value::Null)
}

/// Appendix A of the RFC, row by row.
#[test]
fn the_examples_of_the_rfc_hold() {
    for (target, patch, result) in [
        (json!({"a":"b"}), json!({"a":"c"}), json!({"a":"c"})),
        (json!({"a":"b"}), json!({"b":"c"}), json!({"a":"b","b":"c"})),
        (json!({"a":"b"}), json!({"a":null}), json!({})),
        (json!({"a":"b","b":"c"}), json!({"a":null}), json!({"b":"c"})),
        (json!({"a":["b"]}), json!({"a":"c"}), json!({"a":"c"})),
        (json!({"a":"c"}), json!({"a":["b"]}), json!({"a":["b"]})),
        (json!({"a":{"b":"c"}}), json!({"a":{"b":"d","c":null}}), json!({"a":{"b":"d"}})),
        (json!({"a":[{"b":"c"}]}), json!({"a":[1]}), json!({"a":[1]})),
        (json!(["a", "b"]), json!(["c", "d"]), json!(["c", "d"])),
        (json!({"a":"b"}), json!(["c"]), json!(["c"])),
        (json!({"a":"foo"}), json!(null), json!(null)),
        (json!({"a":"foo"}), json!("bar"), json!("bar")),
        (json!({"e":null}), json!({"a":1}), json!({"e":null,"a":1})),
        (json!([1, 2]), json!({"a":"b","c":null}), json!({"a":"b"})),
        (json!({}), json!({"a":{"bb":{"ccc":null}}}), json!({"a":{"bb":{}}})),
    ] {
        assert_eq!(merged(&target, &patch), result, "{target} patched by {patch}");
    }
}

#[test]
fn a_partial_patch_keeps_what_it_does_not_mention() {
    let pool = json!({"nodeCount": 3, "machineType": "n1-highmem-8"});
    let expected = json!({"nodeCount": 8, "machineType": "n1-highmem-8"});
    assert_eq!(merged(&pool, &json!({"nodeCount": 8})), expected);
}

#[test]
fn nulls_inside_lists_are_values() {
    assert_eq!(
        merged(&json!({}), &json!({"a":[null, {"b":null}]})),
        json!({"a":[null, {"b":null}]})
    );
}

#[test]
fn the_deepest_patch_the_door_lets_in_merges() {
    let deep = (0..64).fold(json!({"x": null}), |inner, _| json!({ "a": inner }));
    let expected = (0..64).fold(json!({}), |inner, _| json!({ "a": inner }));
    assert_eq!(merged(&json!({}), &deep), expected);
}

fn document() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0..9).prop_map(Value::from),
        "[a-c]".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            object_of(inner),
        ]
    })
}

fn object_of(member: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
    prop::collection::btree_map("[a-d]", member, 0..4).prop_map(Value::from_iter)
}

/// Whether an object member is null anywhere outside lists.
fn has_null_member(value: &Value) -> bool {
    value
        .as_object()
        .is_some_and(|members| members.values().any(|v| v.is_null() || has_null_member(v)))
}

proptest! {
    #[test]
    fn patching_twice_is_patching_once(target in object_of(document()), patch in object_of(document())) {
        let once = merged(&target, &patch);
        prop_assert_eq!(merged(&once, &patch), once);
    }

    #[test]
    fn an_empty_patch_changes_nothing(target in object_of(document())) {
        prop_assert_eq!(merged(&target, &json!({})), target);
    }

    #[test]
    fn a_patch_never_brings_a_null_member(patch in object_of(document())) {
        let made = merged(&json!({}), &patch);
        prop_assert!(!has_null_member(&made));
    }

    #[test]
    fn members_the_patch_does_not_name_stay(target in object_of(document()), patch in object_of(document())) {
        let result = merged(&target, &patch);
        for (key, value) in target.as_object().unwrap() {
            if patch.get(key).is_none() {
                prop_assert_eq!(result.get(key), Some(value));
            }
        }
    }
}
