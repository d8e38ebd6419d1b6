use super::*;
use serde_json::json;

#[test]
fn an_explanation_begins_with_what_matters_and_says_what_to_do() {
    let explained: PoolExplanation = serde_json::from_value(json!({
        "kind": "PoolExplanation", "name": "h100",
        "pool_id": "01890a5d-ac96-774b-bcce-b302099a8057", "at": "2026-03-01T12:00:00Z",
        "summary": "It is to have 5 nodes; 3 are registered and 1 come or go.",
        "asked": 4, "target": 5, "instances": { "Running": 3 }, "cost_per_hour": 294.96,
        "report": { "available": "False", "reason": "QuotaExceeded", "message": "node 4 of 5: no GPUs",
                    "guidance": "Have the quota of GPUs raised" },
        "stale_in_a_row": 0,
        "places": [{ "place": "aws/us-east-1//p5.48xlarge", "failures": 3,
                     "until": "2026-03-01T12:02:00Z", "message": "no capacity" }],
        "advice": { "from": 5, "target": 6, "wanted": 6, "policy": "queue", "sentence": "5 -> 6: a queue",
                    "next": "2026-03-01T12:00:30Z" },
        "decisions": [{ "at": "2026-03-01T11:55:00Z", "from": 4, "to": 5, "reason": "jobs wait" }],
        "members": [],
    }))
    .unwrap();
    let times = Times::at("2026-03-01T12:00:00Z".parse().unwrap());
    let text = page(&Screen::plain(), &explained, times);
    assert!(text.starts_with("It is to have 5 nodes"), "{text}");
    for part in [
        "Size        5 nodes by its autoscaler; the spec says 4",
        "Cost        $294.96 an hour",
        "What to do  Have the quota of GPUs raised",
        "Autoscaler  5 -> 6: a queue",
        "Next look   in 30s",
        "WHERE BUYING FAILED",
        "3 in a row",
        "in 2m",
        "DECISIONS",
        "4 -> 5",
    ] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
}

#[test]
fn a_pool_is_named_with_its_cluster_or_without() {
    let of = |cluster: Option<&str>, name: &'static str| {
        let noun = Noun::of_pools(cluster.map(str::to_owned));
        let (cluster, name) = named(&noun, name);
        (cluster.map(str::to_owned), name.to_owned())
    };
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(of(None, "w"), (None, "w".to_owned()));
    assert_eq!(of(Some("c"), "w"), (some("c"), "w".to_owned()));
    assert_eq!(of(Some("c"), "d/w"), (some("d"), "w".to_owned()));
    assert_eq!(of(None, "nodepool/d/w"), (some("d"), "w".to_owned()));
}
