use super::*;
use serde_json::{Value, json};

fn resource(phase: &str, conditions: Value) -> Resource {
    serde_json::from_value(json!({
        "id": "a", "uid": "u", "kind": "Cluster", "name": "a", "href": "/a", "spec": {},
        "generation": 1, "revision": 7,
        "status": {"phase": phase, "lastTransitionTime": "2026-01-01T00:00:00Z", "conditions": conditions},
        "created_at": "", "updated_at": "", "created_time": "", "updated_time": "",
        "created_by": "me", "updated_by": "me",
    }))
    .unwrap()
}

fn statuses(lines: &[(&str, &str, &str)]) -> StatusList {
    let statuses: Vec<Value> = lines
        .iter()
        .map(|(adapter, phase, message)| {
            json!({
                "id": "", "cluster_id": "u", "adapter_name": adapter, "phase": phase,
                "message": message, "last_transition_time": "", "created_at": "",
            })
        })
        .collect();
    let items = json!([{
        "adapter": "machines", "observed_generation": 1, "data": {}, "created_time": "",
        "last_report_time": "",
        "conditions": [{"type": "Available", "status": "False", "reason": "QuotaExceeded", "last_transition_time": ""}],
    }]);
    let list = StatusList::default();
    let mut value = serde_json::to_value(list).unwrap();
    value["statuses"] = Value::Array(statuses);
    value["items"] = items;
    serde_json::from_value(value).unwrap()
}

#[test]
fn goals_are_read_as_people_write_them() {
    let condition = |kind: &str, status| Ok(Goal::Condition { kind: kind.to_owned(), status });
    let rows = [
        ("Ready", Ok(Goal::Ready)),
        ("ready", Ok(Goal::Ready)),
        ("phase=Ready", Ok(Goal::Ready)),
        ("deleted", Ok(Goal::Deleted)),
        ("condition=Healthy", condition("Healthy", Tri::True)),
        ("condition=Healthy=false", condition("Healthy", Tri::False)),
        ("condition=Healthy=Unknown", condition("Healthy", Tri::Unknown)),
    ];
    for (text, goal) in rows {
        assert_eq!(text.parse::<Goal>(), goal, "{text}");
    }
    for bad in [
        "",
        "done",
        "phase=Pending",
        "condition",
        "condition=",
        "condition=A=maybe",
        "condition=A=True=x",
    ] {
        assert!(bad.parse::<Goal>().is_err(), "{bad}");
    }
}

#[test]
fn a_goal_is_reached_by_phase_or_condition() {
    let healthy = json!([{
        "type": "Healthy", "status": "True", "reason": "", "observed_generation": 1,
        "created_time": "", "last_updated_time": "", "last_transition_time": "",
    }]);
    let condition = |status| Goal::Condition { kind: "Healthy".to_owned(), status };
    let rows = [
        (Goal::Ready, "Ready", true),
        (Goal::Ready, "Not Ready", false),
        (Goal::Deleted, "Terminating", false),
        (condition(Tri::True), "Not Ready", true),
        (condition(Tri::False), "Not Ready", false),
    ];
    for (goal, phase, reached) in rows {
        assert_eq!(goal.reached(&resource(phase, healthy.clone())), reached, "{goal:?} {phase}");
    }
}

#[test]
fn a_timeout_names_the_adapter_that_holds_things_up() {
    let list = statuses(&[
        ("validation", "Complete", "fine"),
        ("machines", "Failed", "8 GPUs wanted, 4 left"),
        ("later", "Pending", "waits for machines"),
    ]);
    let failure = explain(
        Failure::new(Exit::Timeout, "late"),
        &Noun::of_pools(Some("alpha".to_owned())),
        "alpha/workers",
        Some(&list),
    );
    assert_eq!(failure.why, ["adapter machines is Failed: QuotaExceeded: 8 GPUs wanted, 4 left"]);
    assert_eq!(failure.fix.len(), 2);
    assert!(failure.fix[0].contains("raise the quota"));
    assert_eq!(failure.fix[1], "argosy nodepool statuses alpha/workers shows every adapter");
    assert_eq!(failing(&list), Some("machines"));
}

#[test]
fn detaching_says_how_to_come_back() {
    let failure = detached(&Noun::CLUSTERS, "alpha", &Goal::Ready);
    assert_eq!(failure.exit, Exit::Interrupted);
    assert_eq!(failure.fix, ["argosy wait cluster/alpha --for Ready waits again"]);
}
