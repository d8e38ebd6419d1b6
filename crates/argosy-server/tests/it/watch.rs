//! Watches: what they tell, and that nothing is missed between two of them.

use crate::world::{CLUSTERS, World};
use axum::body::Body;
use axum::http::Response;
use http_body_util::BodyExt;
use serde_json::{Value, json};

struct Stream(Response<Body>);

impl Stream {
    async fn open(world: &World, query: &str, headers: &[(&str, &str)]) -> Self {
        let response = world.open("admin", &format!("GET {query}"), headers, "").await;
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        assert!(!response.headers().contains_key("content-encoding"));
        let mut stream = Self(response);
        assert_eq!(stream.chunk().await.as_deref(), Some("retry: 1000\n\n"));
        stream
    }

    async fn chunk(&mut self) -> Option<String> {
        let frame = self.0.body_mut().frame().await?.unwrap();
        Some(String::from_utf8(frame.into_data().unwrap().to_vec()).unwrap())
    }

    /// The next event: its name, its id if it has one, its data.
    async fn next(&mut self) -> Option<(String, Option<u64>, Value)> {
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
    async fn line(&mut self) -> String {
        let (name, _, data) = self.next().await.unwrap();
        format!("{name} {}", data["object"]["name"].as_str().unwrap_or("-"))
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
