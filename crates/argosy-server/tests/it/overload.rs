//! More is asked than can be answered: nodes are not kept waiting, and everybody is told something.

use crate::watch::Stream;
use crate::world::{NODES, World, admin};
use argosy_control::node::Heartbeat;
use argosy_control::pulse::Via;
use futures_util::future::{Either, join_all, select};
use serde_json::json;
use std::pin::pin;

async fn fleet(nodes: usize) -> World {
    let world = World::new().await;
    for index in 0..nodes {
        world.node(&format!("n-{index:04}")).await;
    }
    world
}

/// Two hundred dashboards, each with a list of its own, so that no two can share one: some are served,
/// the rest are told when to come back, and meanwhile heartbeats go on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn o2_lists_of_everything_do_not_keep_nodes_waiting() {
    let world = fleet(400).await;
    let path = |index: usize| format!("{NODES}?size=1000&search=gpu_count%3C{}", index + 100);
    let lists = join_all((0..200).map(|index| {
        let (world, path) = (&world, path(index));
        async move { world.get(&path).await }
    }));
    let beats = async {
        for index in 0..400 {
            let id = format!("n-{index:04}");
            let nodes = &world.control.nodes;
            nodes.heartbeat(&admin(), &id, Via::Call, Heartbeat::default()).unwrap();
            tokio::task::yield_now().await;
        }
    };
    let lists = match select(pin!(lists), pin!(beats)).await {
        Either::Left(_) => panic!("a fleet of heartbeats took longer than every list"),
        Either::Right(((), lists)) => lists.await,
    };
    let served = lists.iter().filter(|answer| answer.status == 200).count();
    let later: Vec<_> = lists.iter().filter(|answer| answer.status == 429).collect();
    assert_eq!(served + later.len(), 200, "nothing else happens to anybody");
    assert!(65 <= served && !later.is_empty(), "{served} were served");
    for answer in later {
        assert_eq!(answer.header("retry-after"), "1");
        assert_eq!(answer.body["code"], "HYPERFLEET-LMT-004");
    }
    let whole = lists.iter().find(|answer| answer.status == 200).unwrap();
    assert_eq!((&whole.body["total"], &whole.body["size"]), (&json!(400), &json!(400)));
}

/// Two hundred dashboards that ask for the same: all are served, because they share it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn o2_those_who_ask_for_the_same_share_one_page() {
    let world = fleet(100).await;
    let list = format!("{NODES}?size=1000");
    let answers = join_all((0..200).map(|_| world.get(&list))).await;
    assert!(answers.iter().all(|answer| answer.status == 200));
    // Another tenant asks for the same, and is not given it.
    let theirs = world.send("stranger", &format!("GET {list}"), &[], "").await;
    assert_eq!(theirs.body["total"], 0);
    // Whoever wrote sees what it wrote.
    let cordon = json!({ "type": "CORDON" });
    assert_eq!(world.json(&format!("POST {NODES}/n-0007/commands"), cordon).await.status, 201);
    assert_eq!(world.get(&list).await.body["items"][7]["status"], "CORDONED");
}

/// A thousand who opened a watch and do not read: nothing is collected for them, and one that comes back
/// to its connection misses nothing.
#[tokio::test]
async fn o3_watchers_that_do_not_read_cost_nothing_and_miss_nothing() {
    let world = fleet(20).await;
    let list = format!("{NODES}?watch=true&fields=id");
    let mut streams = Vec::new();
    for _ in 0..1000 {
        streams.push(Stream::open(&world, &list, &[]).await);
    }
    for index in 20..220 {
        world.node(&format!("n-{index:04}")).await;
    }
    for stream in streams.iter_mut().step_by(400) {
        for index in 0..20 {
            assert_eq!(stream.line().await, format!("ADDED n-{index:04}"));
        }
        assert_eq!(stream.line().await, "BOOKMARK -");
        for index in 20..220 {
            assert_eq!(stream.line().await, format!("ADDED n-{index:04}"));
        }
    }
    drop(streams);
    assert!(world.get("/metrics").await.text.contains("\nargosy_watchers 0\n"));
}
