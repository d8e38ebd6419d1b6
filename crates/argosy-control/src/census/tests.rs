use super::*;
use serde_json::json;

fn node(index: usize, pool: Option<&str>, provider: &str) -> Node {
    let at = "2026-01-01T00:00:00Z";
    serde_json::from_value(json!({
        "id": format!("n-{index}"),
        "tenant": "acme",
        "pool": pool,
        "place": { "provider": provider, "region": "", "zone": "", "instance_type": "" },
        "machine": {},
        "gpus": [{ "index": 0 }, { "index": 1 }],
        "registered_at": at,
        "joined_at": at,
        "liveness": "Fresh",
        "liveness_since": at,
        "health": { "state": "Healthy", "since": at, "reason": "", "message": "" },
        "duty": "Active",
        "held": { "action": "cordon", "guard": "budget", "reason": "", "since": at },
    }))
    .unwrap()
}

#[test]
fn o4_words_of_nodes_do_not_grow_without_limit() {
    let (mut census, mut known) = (Census::default(), Known::default());
    for index in 0..1000 {
        let (pool, provider) = (format!("pool-{index}"), format!("cloud-{index}"));
        census.count(&node(index, Some(&pool), &provider), &mut known);
    }
    census.count(&node(1000, Some("pool-7"), "cloud-7"), &mut known);
    census.count(&node(1001, None, ""), &mut known);
    assert_eq!((census.nodes.len(), census.gpus.len()), (WORDS_MAX + 1, WORDS_MAX + 1));
    assert_eq!(census.nodes.values().sum::<usize>(), 1002, "everybody is counted");
    assert_eq!(census.gpus.values().sum::<usize>(), 2004);
    assert_eq!(census.gpus["cloud-7"], 4, "a word that is known stays itself");
    assert_eq!(census.held["budget"], 1002);
}

#[test]
fn nodes_without_pool_or_provider_have_words_of_their_own() {
    let (mut census, mut known) = (Census::default(), Known::default());
    census.count(&node(1, None, ""), &mut known);
    let group = census.nodes.keys().next().unwrap();
    assert_eq!((&*group.pool, group.status), ("none", NodeStatus::Active));
    assert_eq!(census.gpus["unknown"], 2);
}
