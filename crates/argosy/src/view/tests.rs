use super::*;

fn resource(kind: &str, conditions: &[(&str, &str, &str)]) -> Resource {
    let conditions: Vec<Value> = conditions
        .iter()
        .map(|(kind, status, message)| {
            json!({
                "type": kind, "status": status, "reason": "Why", "message": message,
                "observed_generation": 1, "created_time": "", "last_updated_time": "",
                "last_transition_time": "",
            })
        })
        .collect();
    serde_json::from_value(json!({
        "id": "a", "uid": "u", "kind": kind, "name": "a\u{1b}[2J", "href": "/a", "cluster_id": "c-1",
        "spec": {"provider": "gcp", "region": "us-east1", "machineType": "n1", "nodeCount": 3},
        "labels": {"team": "ml"}, "generation": 2, "revision": 7,
        "status": {"phase": "Not Ready", "lastTransitionTime": "", "conditions": conditions},
        "created_at": "", "updated_at": "", "created_time": "2026-01-01T00:00:00Z",
        "updated_time": "", "created_by": "me", "updated_by": "me",
    }))
    .unwrap()
}

#[test]
fn the_adapter_that_failed_says_why() {
    type Row<'a> = (&'a [(&'a str, &'a str, &'a str)], &'a str);
    let rows: [Row<'_>; 7] = [
        (&[], ""),
        (&[("Reconciled", "True", "fine")], ""),
        (&[("Reconciled", "False", "waiting")], "waiting"),
        (&[("Reconciled", "False", "waiting"), ("DnsSuccessful", "False", "no zone")], "no zone"),
        (&[("Reconciled", "False", "w"), ("Stalled", "True", "late")], "late"),
        (&[("Reconciled", "False", "w"), ("EventRejected", "True", "no")], "no"),
        (&[("Reconciled", "True", ""), ("Healthy", "False", "")], "Why"),
    ];
    for (conditions, expected) in rows {
        assert_eq!(why(&resource("Cluster", conditions)), expected, "{conditions:?}");
    }
}

#[test]
fn a_row_has_what_people_look_for() {
    let now = "2026-01-01T00:05:00Z".parse().unwrap();
    let clusters = ClusterNames::from([("c-1".to_owned(), "alpha".to_owned())]);
    let text = |kind: &str, wide| {
        let row = row(&resource(kind, &[]), wide, now, &clusters);
        row.into_iter().map(|(cell, _)| crate::output::clean(&cell)).collect::<Vec<_>>().join("|")
    };
    assert_eq!(text("Cluster", false), "a[2J|Not Ready|gcp|us-east1|5m|");
    assert_eq!(text("NodePool", false), "a[2J|alpha|Not Ready|n1|3|5m|");
    assert_eq!(text("NodePool", true), "a[2J|alpha|Not Ready|n1|3|5m|2|u|team=ml|me|");
}
