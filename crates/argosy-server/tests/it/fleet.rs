//! The fleet as a whole: who asks, every GPU, every event; as answers and as streams.

use crate::watch::Stream;
use crate::world::{World, admin};
use argosy_control::node::Heartbeat;
use argosy_control::pulse::{GpuSample, Sample, Via};
use argosy_core::health::HealthState;
use serde_json::{Value, json};

const GPUS: &str = "/api/argosy/v1/fleet/gpus";
const EVENTS: &str = "/api/argosy/v1/events";

/// GPU 0 measures this; nobody hears of GPU 1.
fn measure(world: &World, id: &str, temperature: i16, ecc_corrected: u32) {
    let gpu = GpuSample {
        temperature: Some(temperature),
        power: Some(300),
        utilization: Some(93.4),
        ecc_corrected: Some(ecc_corrected),
        ..GpuSample::default()
    };
    let sample = Some(Sample { gpus: vec![gpu], ..Sample::default() });
    let beat = Heartbeat { sample, ..Heartbeat::default() };
    world.control.nodes.heartbeat(&admin(), id, Via::Call, beat).unwrap();
}

fn ids(nodes: &Value) -> Vec<&str> {
    nodes.as_array().unwrap().iter().map(|node| node["id"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn everybody_can_ask_who_they_are() {
    let world = World::new().await;
    let path = "GET /api/argosy/v1/me";
    assert_eq!(world.send("", path, &[], "").await.status, 401);
    let rows = [
        ("admin", "Admin", json!({ "write": true, "force": true, "administer": true })),
        ("viewer", "Viewer", json!({ "write": false, "force": false, "administer": false })),
    ];
    for (who, role, may) in rows {
        let me = world.send(who, path, &[], "").await.body;
        assert_eq!((&me["role"], &me["may"]), (&json!(role), &may), "{me:#}");
        let facts = json!({ "version": "1.2.3", "build_time": "today", "authentication": true, "demo": false });
        assert_eq!(me["server"], facts);
    }
}

#[tokio::test]
async fn every_gpu_is_in_one_answer_with_what_it_measured() {
    let world = World::new().await;
    world.node("a-well").await;
    world
        .node_with("b-sick", |node| {
            node.pool = Some("atlas.trainers".to_owned());
            node.labels.insert("rack".to_owned(), "r8".to_owned());
        })
        .await;
    world.report("b-sick", HealthState::Unhealthy, &[79]).await;
    measure(&world, "b-sick", 61, 7);
    let all = world.get(GPUS).await.body;
    assert_eq!(ids(&all["items"]), ["a-well", "b-sick"]);
    let (well, sick) = (&all["items"][0], &all["items"][1]);
    assert_eq!((&well["gpus"], &well["pool"]), (&json!(2), &json!("h100")));
    assert!(well.get("t").is_none() && well.get("bad").is_none(), "{well:#}");
    let row = ["pool", "cluster", "rack", "status", "t", "w", "u", "ce", "ue"];
    assert_eq!(
        json!(row.map(|member| &sick[member])),
        json!([
            "atlas.trainers",
            "atlas",
            "r8",
            "UNHEALTHY",
            [61, null],
            [300, null],
            [93, null],
            [7, null],
            [null, null]
        ]),
        "{sick:#}"
    );
    assert!(sick["at"].is_i64());

    let some = world.get(&format!("{GPUS}?pool=h100")).await.body;
    assert_eq!(ids(&some["items"]), ["a-well"]);
    let refused = world.get(&format!("{GPUS}?every_ms=5")).await;
    assert_eq!(refused.status, 400, "{}", refused.text);

    let history = world.get("/api/argosy/v1/nodes/b-sick/metrics").await.body;
    let gpu = &history["gpus"][0];
    assert_eq!((&gpu["temperature"], &gpu["ecc_corrected"]), (&json!([61]), &json!([7])));
    assert_eq!(history["items"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn the_stream_of_gpus_tells_all_then_what_changed_and_never_falls_silent() {
    let world = World::new().await;
    world.node("a").await;
    world.node("b").await;
    let mut stream = Stream::open(&world, &format!("{GPUS}?watch=true&every_ms=250"), &[]).await;
    let (name, _, all) = stream.next().await.unwrap();
    assert_eq!((name.as_str(), &all["more"]), ("SNAPSHOT", &json!(false)));
    assert_eq!(ids(&all["nodes"]), ["a", "b"]);
    let (name, _, quiet) = stream.next().await.unwrap();
    assert_eq!(name, "SAMPLES");
    assert_eq!(json!([quiet["nodes"], quiet["samples"], quiet["gone"]]), json!([[], [], []]));

    measure(&world, "a", 50, 0);
    let (_, _, measured) = stream.next().await.unwrap();
    assert_eq!(ids(&measured["samples"]), ["a"]);
    assert_eq!(measured["samples"][0]["t"], json!([50, null]));
    assert_eq!(measured["nodes"], json!([]));

    world.report("b", HealthState::Unhealthy, &[79]).await;
    let (_, _, changed) = stream.next().await.unwrap();
    assert_eq!(ids(&changed["nodes"]), ["b"]);
    assert_eq!(changed["nodes"][0]["status"], "UNHEALTHY");

    let gone = world.send("admin", "DELETE /api/argosy/v1/nodes/a?force=true", &[], "").await;
    assert_eq!(gone.status, 204, "{}", gone.text);
    let (_, _, fewer) = stream.next().await.unwrap();
    assert_eq!(fewer["gone"], json!(["a"]));

    world.stop.send(true).unwrap();
    assert_eq!(stream.next().await.unwrap().0, "BYE");
    assert!(stream.chunk().await.is_none());
}

#[tokio::test]
async fn what_happened_in_the_whole_fleet_is_listed_and_followed() {
    let world = World::new().await;
    world.node("a").await;
    world.node_with("b", |node| node.pool = Some("other".to_owned())).await;
    world.report("a", HealthState::Unhealthy, &[79]).await;
    let of = async |query: &str| {
        let page = world.get(&format!("{EVENTS}?{query}")).await;
        assert_eq!(page.status, 200, "{}", page.text);
        page.body
    };
    let about = |page: &Value| -> Vec<String> {
        let lines = page["items"].as_array().unwrap().iter();
        lines.map(|line| format!("{} {}", line["node_id"], line["type"]).replace('"', "")).collect()
    };
    let all = about(&of("").await);
    assert!(all.contains(&"b registered".to_owned()) && all.contains(&"a event".to_owned()));
    assert_eq!(about(&of("pool=other").await), ["b status", "b registered"]);
    assert_eq!(about(&of("type=event").await), ["a event"]);
    assert_eq!(about(&of("node=a&type=registered").await), ["a registered"]);
    assert_eq!(world.get(&format!("{EVENTS}?type=nonsense")).await.status, 400);
    // Page by page it is the same.
    let mut walked = Vec::new();
    let mut query = "limit=1".to_owned();
    loop {
        let page = of(&query).await;
        walked.extend(about(&page));
        match page["next"].as_u64() {
            Some(next) => query = format!("limit=1&before={next}"),
            None => break,
        }
    }
    assert_eq!(walked, all);

    let mut stream = Stream::open(&world, &format!("{EVENTS}?watch=true&type=event"), &[]).await;
    world.report("b", HealthState::Unhealthy, &[48]).await;
    let (name, id, data) = stream.next().await.unwrap();
    assert_eq!((name.as_str(), &data["object"]["node_id"]), ("ADDED", &json!("b")));
    assert_eq!(id, data["object"]["sequence"].as_u64());
    // Whoever was away misses nothing.
    let from = id.unwrap() - 1;
    let resumed = [("last-event-id", from.to_string())];
    let resumed = resumed.each_ref().map(|(name, value)| (*name, value.as_str()));
    let mut again = Stream::open(&world, &format!("{EVENTS}?watch=true"), &resumed).await;
    assert_eq!(again.next().await.unwrap().1, id);
}

#[tokio::test]
async fn another_tenants_fleet_is_not_shown() {
    let world = World::new().await;
    world.node("a").await;
    let rows = [GPUS, EVENTS];
    for path in rows {
        let theirs = world.send("stranger", &format!("GET {path}"), &[], "").await;
        assert_eq!((theirs.status.as_u16(), &theirs.body["items"]), (200, &json!([])), "{path}");
    }
}
