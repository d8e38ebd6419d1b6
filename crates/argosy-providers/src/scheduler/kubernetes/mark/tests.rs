use super::*;
use argosy_core::merge::merge;

const WHEN: &str = "2030-01-01T13:00:00Z";

fn node(value: &Value) -> Node {
    serde_json::from_value(value.clone()).unwrap()
}

fn cordon(reason: &str) -> Wish<'_> {
    Wish::Out { reason, deadline: None }
}

fn drain(reason: &str) -> Wish<'_> {
    Wish::Out { reason, deadline: Some(WHEN.parse().unwrap()) }
}

/// The node once a wish was carried out, after which there is nothing more to do.
fn after(before: &Value, wish: &Wish<'_>) -> Value {
    let Some(change) = patch(&node(before), wish) else { return before.clone() };
    assert_eq!(change["metadata"]["resourceVersion"], "7", "it holds for what was read");
    let mut after = before.clone();
    merge(after.as_object_mut().unwrap(), change.as_object().unwrap());
    assert_eq!(patch(&node(&after), wish), None, "one patch is enough");
    after
}

/// A node of a cluster where others write annotations and taints, too.
fn plain() -> Value {
    json!({
        "metadata": { "name": "n1", "resourceVersion": "7", "annotations": { "team": "ml" } },
        "spec": { "taints": [{ "key": "gpu", "value": "h100", "effect": "NoSchedule" }] },
    })
}

fn with_unschedulable(mut node: Value) -> Value {
    node["spec"]["unschedulable"] = json!(true);
    node
}

#[test]
fn a_cordon_says_why_and_leaves_what_is_not_ours() {
    assert_eq!(
        after(&plain(), &cordon("xid 79\non GPU 3")),
        json!({
            "metadata": {
                "name": "n1",
                "resourceVersion": "7",
                "annotations": {
                    "team": "ml",
                    "argosy.dev/cordoned": "xid 79 on GPU 3",
                    "argosy.dev/made-unschedulable": "true",
                },
            },
            "spec": {
                "unschedulable": true,
                "taints": [
                    { "key": "gpu", "value": "h100", "effect": "NoSchedule" },
                    { "key": "argosy.dev/cordoned", "effect": "NoSchedule" },
                ],
            },
        })
    );
}

#[test]
fn whatever_we_did_is_undone_and_nothing_else() {
    let wishes: [fn() -> Wish<'static>; 3] = [|| cordon("a"), || cordon(""), || drain("b")];
    for before in [plain(), with_unschedulable(plain())] {
        assert_eq!(patch(&node(&before), &Wish::In), None, "there is nothing of ours");
        for wish in wishes {
            let out = after(&before, &wish());
            assert!(is_out(&node(&out)));
            assert_eq!(after(&out, &Wish::In), before);
            // However often it was asked for, and in which order.
            let again = after(&after(&out, &drain("c")), &cordon("d"));
            assert_eq!(after(&again, &Wish::In), before);
        }
    }
    let mut bare = json!({ "metadata": { "name": "n1", "resourceVersion": "7" } });
    let back = after(&after(&bare, &cordon("a")), &Wish::In);
    bare["metadata"]["annotations"] = json!({});
    bare["spec"] = json!({ "taints": [] });
    assert_eq!(back, bare);
}

#[test]
fn what_a_person_changed_meanwhile_stays_as_far_as_it_is_theirs() {
    // `kubectl uncordon` does not take our taint: the node stays out until we say otherwise.
    let mut out = after(&plain(), &cordon("a"));
    out["spec"].as_object_mut().unwrap().remove("unschedulable");
    assert!(is_out(&node(&out)));
    assert_eq!(after(&out, &Wish::In), plain());

    // A taint that came later stays.
    let mut out = after(&plain(), &cordon("a"));
    let theirs = json!({ "key": "maintenance", "effect": "NoExecute" });
    out["spec"]["taints"].as_array_mut().unwrap().push(theirs.clone());
    let mut expected = plain();
    expected["spec"]["taints"].as_array_mut().unwrap().push(theirs);
    assert_eq!(after(&out, &Wish::In), expected);
}

#[test]
fn the_deadline_is_on_the_node_as_long_as_it_drains() {
    let draining = after(&plain(), &drain("a"));
    assert_eq!(draining["metadata"]["annotations"]["argosy.dev/drain-deadline"], WHEN);
    assert_eq!(deadline(&node(&draining)), Some(WHEN.parse().unwrap()));
    assert_eq!(deadline(&node(&after(&draining, &cordon("a")))), None, "what runs may stay");
    assert_eq!(deadline(&node(&after(&draining, &Wish::In))), None);
    assert_eq!(deadline(&node(&plain())), None);

    let mut odd = draining;
    odd["metadata"]["annotations"]["argosy.dev/drain-deadline"] = json!("soon");
    assert_eq!(deadline(&node(&odd)), None, "nobody is evicted for a text");
}

#[test]
fn a_reason_is_one_line_of_some_length() {
    let out = after(&plain(), &cordon(&"x".repeat(100_000)));
    let reason = out["metadata"]["annotations"]["argosy.dev/cordoned"].as_str().unwrap();
    assert_eq!(reason.len(), REASON_MAX);
}
