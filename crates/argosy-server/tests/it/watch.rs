//! Watches: what they tell, and that nothing is missed between two of them.

use crate::world::{CLUSTERS, NODES, World, admin};
use argosy_control::node::Heartbeat;
use argosy_control::pulse::Via;
use argosy_core::health::HealthState;
use axum::body::Body;
use axum::http::Response;
use http_body_util::BodyExt;
use serde_json::{Value, json};

pub(crate) struct Stream(Response<Body>);

impl Stream {
    pub(crate) async fn open(world: &World, query: &str, headers: &[(&str, &str)]) -> Self {
        let response = world.open("admin", &format!("GET {query}"), headers, "").await;
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        assert!(!response.headers().contains_key("content-encoding"));
        let mut stream = Self(response);
        assert_eq!(stream.chunk().await.as_deref(), Some("retry: 1000\n\n"));
        stream
    }

    pub(crate) async fn chunk(&mut self) -> Option<String> {
        let frame = self.0.body_mut().frame().await?.unwrap();
        Some(String::from_utf8(frame.into_data().unwrap().to_vec()).unwrap())
    }

    /// The next event: its name, its id if it has one, its data.
    pub(crate) async fn next(&mut self) -> Option<(String, Option<u64>, Value)> {
        let chunk = self.chunk().await?;
        let field = |name: &str| {
            let prefix = format!("{name}: ");
            chunk.lines().find_map(|line| line.strip_prefix(&prefix).map(str::to_owned))
        };
        let data: Value = serde_json::from_str(&field("data").unwrap()).unwrap();
        let id = field("id").map(|id| id.parse().unwrap());
        let name = field("event").unwrap();
        assert_eq!(data["type"], name);
        Some((name, id, data))
    }

    /// The next event in a line: `ADDED here`.
    pub(crate) async fn line(&mut self) -> String {
        let (name, _, data) = self.next().await.unwrap();
        let object = &data["object"];
        let of = object["name"].as_str().or(object["id"].as_str()).unwrap_or("-");
        format!("{name} {of}")
    }
}

#[tokio::test]
async fn a_watch_begins_with_what_is_there_and_goes_on() {
    let world = World::new().await;
    let first = world.cluster("first").await;
    let mut stream = Stream::open(&world, &format!("{CLUSTERS}?watch=true"), &[]).await;
    assert_eq!(stream.line().await, "ADDED first");
    assert_eq!(stream.line().await, "BOOKMARK -");
    world.cluster("second").await;
    assert_eq!(stream.line().await, "ADDED second");
    let patch = json!({ "labels": { "color": "red" } });
    let patched = world.json(&format!("PATCH {CLUSTERS}/{first}"), patch).await;
    let (name, id, data) = stream.next().await.unwrap();
    assert_eq!((name.as_str(), id), ("MODIFIED", patched.body["revision"].as_u64()));
    assert_eq!(data["object"], patched.body, "a watch shows what GET shows");
}

#[tokio::test]
async fn no_id_is_given_before_everything_up_to_it_was_told() {
    let world = World::new().await;
    let cluster = world.cluster("here").await;
    for name in ["a", "b", "c"] {
        world.pool(&cluster, name).await;
    }
    let list = format!("{CLUSTERS}/{cluster}/nodepools?watch=true");
    let mut stream = Stream::open(&world, &list, &[]).await;
    for _ in 0..3 {
        assert!(matches!(stream.next().await.unwrap(), (name, None, _) if name == "ADDED"));
    }
    let (name, start, _) = stream.next().await.unwrap();
    assert_eq!(name, "BOOKMARK");
    assert!(start.is_some());
    // One commit marks the cluster and its three pools.
    world.send("admin", &format!("DELETE {CLUSTERS}/{cluster}"), &[], "").await;
    let mut ids = Vec::new();
    for _ in 0..3 {
        let (name, id, data) = stream.next().await.unwrap();
        assert_eq!(
            (name.as_str(), &data["object"]["status"]["phase"]),
            ("MODIFIED", &json!("Terminating"))
        );
        ids.push(id.is_some());
    }
    assert_eq!(ids, [false, false, true]);
}

#[tokio::test]
async fn a_watch_resumes_where_it_was() {
    let world = World::new().await;
    let before = world.get(CLUSTERS).await.body["revision"].to_string();
    for name in ["first", "second", "third"] {
        world.cluster(name).await;
    }
    let by_query = format!("{CLUSTERS}?watch=true&resource_version={before}");
    let mut stream = Stream::open(&world, &by_query, &[]).await;
    assert_eq!(stream.line().await, "ADDED first");
    let (_, id, _) = stream.next().await.unwrap();
    drop(stream);
    let header = [("last-event-id", &*id.unwrap().to_string())];
    let mut stream = Stream::open(&world, &by_query, &header).await;
    assert_eq!(stream.line().await, "ADDED third", "the header wins: browsers send it");
}

#[tokio::test]
async fn a_place_that_never_was_is_gone() {
    let world = World::new().await;
    let line = format!("{CLUSTERS}?watch=true&resource_version=999999");
    let answer = world.get(&line).await;
    assert_eq!((answer.status.as_u16(), &answer.body["code"]), (410, &json!("HYPERFLEET-GON-001")));
}

#[tokio::test]
async fn one_resource_can_be_watched_to_its_end() {
    let world = World::new().await;
    let cluster = world.cluster("here").await;
    world.cluster("other").await;
    let path = format!("{CLUSTERS}/{cluster}");
    let mut stream = Stream::open(&world, &format!("{path}?watch=true&fields=name"), &[]).await;
    assert_eq!(stream.line().await, "ADDED here");
    assert_eq!(stream.line().await, "BOOKMARK -");
    world.send("admin", &format!("DELETE {path}"), &[], "").await;
    assert_eq!(stream.line().await, "MODIFIED here");
    world.json(&format!("POST {path}/force-delete"), json!({ "reason": "x" })).await;
    let (name, _, data) = stream.next().await.unwrap();
    assert_eq!(
        (name.as_str(), &data["object"]),
        ("DELETED", &json!({ "id": cluster, "name": "here" }))
    );
}

#[tokio::test]
async fn a_stopping_server_says_goodbye() {
    let world = World::new().await;
    world.cluster("here").await;
    let mut stream = Stream::open(&world, &format!("{CLUSTERS}?watch=true"), &[]).await;
    assert_eq!(stream.line().await, "ADDED here");
    let (_, id, _) = stream.next().await.unwrap();
    world.stop.send_replace(true);
    let (name, last, _) = stream.next().await.unwrap();
    assert_eq!((name.as_str(), last), ("BOOKMARK", id));
    assert!(stream.next().await.is_none());
}

#[tokio::test]
async fn head_on_a_watch_ends_at_once() {
    let world = World::new().await;
    let answer = world.send("admin", &format!("HEAD {CLUSTERS}?watch=true"), &[], "").await;
    assert_eq!((answer.status.as_u16(), answer.text.as_str()), (200, ""));
}

#[tokio::test(start_paused = true)]
async fn a_quiet_watch_shows_that_it_is_alive() {
    let world = World::new().await;
    let mut stream = Stream::open(&world, &format!("{CLUSTERS}?watch=true"), &[]).await;
    assert_eq!(stream.line().await, "BOOKMARK -");
    assert_eq!(stream.chunk().await.as_deref(), Some(": still here\n\n"));
}

#[tokio::test]
async fn a_watch_of_nodes_tells_what_is_decided_and_not_that_they_live() {
    let world = World::new().await;
    world.node("a").await;
    let mut all = Stream::open(&world, &format!("{NODES}?watch=true"), &[]).await;
    let sick = format!("{NODES}?watch=true&status=UNHEALTHY&fields=status");
    let mut sick = Stream::open(&world, &sick, &[]).await;
    assert_eq!((all.line().await, all.line().await), ("ADDED a".into(), "BOOKMARK -".into()));
    assert_eq!(sick.line().await, "BOOKMARK -");
    for _ in 0..100 {
        let nodes = &world.control.nodes;
        nodes.heartbeat(&admin(), "a", Via::Call, Heartbeat::default()).unwrap();
    }
    // Only the first report says something new.
    for _ in 0..3 {
        world.report("a", HealthState::Healthy, &[]).await;
    }
    world.node("b").await;
    assert_eq!((all.line().await, all.line().await), ("MODIFIED a".into(), "ADDED b".into()));
    world.report("a", HealthState::Unhealthy, &[]).await;
    let (name, id, data) = all.next().await.unwrap();
    assert_eq!((name.as_str(), &data["object"]["status"]), ("MODIFIED", &json!("UNHEALTHY")));
    assert!(data["object"]["last_heartbeat"].is_string(), "with what is known of it now");
    let (name, _, data) = sick.next().await.unwrap();
    assert_eq!(
        (name.as_str(), &data["object"]),
        ("ADDED", &json!({ "id": "a", "status": "UNHEALTHY" }))
    );
    world.report("a", HealthState::Healthy, &[]).await;
    assert_eq!(sick.line().await, "DELETED a", "it no longer matches");

    // Who comes back is told what it missed, and nothing twice.
    drop(all);
    let header = [("last-event-id", &*id.unwrap().to_string())];
    let mut resumed = Stream::open(&world, &format!("{NODES}?watch=true"), &header).await;
    let (name, _, data) = resumed.next().await.unwrap();
    assert_eq!((name.as_str(), &data["object"]["status"]), ("MODIFIED", &json!("ACTIVE")));
    world.send("admin", &format!("DELETE {NODES}/b?force=true"), &[], "").await;
    assert_eq!(resumed.line().await, "DELETED b");
    let lost = world.get(&format!("{NODES}?watch=true&resource_version=999999")).await;
    assert_eq!((lost.status.as_u16(), &lost.body["code"]), (410, &json!("HYPERFLEET-GON-001")));
}

#[tokio::test]
async fn a_command_can_be_watched_to_its_end() {
    let world = World::new().await;
    world.node("a").await;
    let post = format!("POST {NODES}/a/commands");
    let command = world.json(&post, json!({ "type": "CORDON" })).await.body;
    let href = command["href"].as_str().unwrap();
    let mut one = Stream::open(&world, &format!("{href}?watch=true"), &[]).await;
    let open = "/api/argosy/v1/commands?watch=true&state=open&node=a";
    let mut open = Stream::open(&world, open, &[]).await;
    for stream in [&mut one, &mut open] {
        let (name, _, data) = stream.next().await.unwrap();
        assert_eq!((name.as_str(), &data["object"]), ("ADDED", &command));
        assert_eq!(stream.line().await, "BOOKMARK -");
    }
    let other = world.json(&post, json!({ "type": "UNCORDON" })).await.body;
    let (name, _, data) = one.next().await.unwrap();
    assert_eq!((name.as_str(), &data["object"]["state"]), ("MODIFIED", &json!("cancelled")));
    let mut lines = [open.line().await, open.line().await];
    lines.sort_unstable();
    let id = |command: &Value| command["id"].as_str().unwrap().to_owned();
    assert_eq!(lines, [format!("ADDED {}", id(&other)), format!("DELETED {}", id(&command))]);
}
