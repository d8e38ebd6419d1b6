//! A2: killed between a commit and the event that tells of it.

use crate::adapters::Receiver;
use crate::harness::{Api, Engine, Profile, Setup, text};
use serde_json::json;

/// Dies at a failpoint around the delivery of the event, which then arrives so often.
async fn is_told_in_the_end(engine: Engine, failpoint: &str, arrivals: usize) {
    let mut receiver = Receiver::start().await;
    let url = &receiver.url;
    let config = format!(
        "adapters: {{ cluster: [{{ name: outside, runner: webhook, url: '{url}', \
         secret: {{ file: secret }} }}] }}\nwebhooks: {{ allow: ['127.0.0.1'] }}"
    );
    let setup = Setup::new(engine, Profile::Full).config(&config);
    let mut server = setup.file("secret", &"s".repeat(32)).prepare().await;
    server.fail_at(Some(failpoint));
    server.launch().await.expect("it dies later");
    let body = json!({ "name": "told", "spec": { "provider": "gcp", "region": "us-east1" } });
    let create = |api: &Api| {
        let request = api.request(reqwest::Method::POST, "clusters");
        request.header("idempotency-key", "told").json(&body)
    };
    // Whether it is answered depends on the failpoint.
    let _ = create(&server).send().await;
    assert_eq!(server.ended().await.0, None, "{failpoint}");
    server.fail_at(None);
    server.restart().await;
    let created = server.send(create(&server)).await.expect(201);
    let mut told = Vec::new();
    for _ in 0..arrivals {
        told.push(receiver.next().await.headers["webhook-id"].clone());
    }
    told.dedup();
    assert_eq!(told.len(), 1, "{failpoint}: the receiver cannot tell the repetition");

    let path = format!("clusters/{}", text(&created, "/id"));
    let conditions = ["Available", "Applied", "Health"]
        .map(|name| json!({ "type": name, "status": "True", "reason": "Done" }));
    let report =
        json!({ "adapter": "outside", "observed_generation": 1, "conditions": conditions });
    server.put(&format!("{path}/statuses"), &report).await.expect(201);
    server.ready(&path).await;
}

/// The first commit creates the cluster, the second notes that the event was delivered.
async fn around_the_delivery(engine: Engine) {
    is_told_in_the_end(engine, "commit.after_commit:1", 1).await;
    is_told_in_the_end(engine, "commit.before_sql:2", 2).await;
}

#[tokio::test]
async fn a2_killed_around_an_event_it_is_told_in_the_end_with_one_id_embedded() {
    around_the_delivery(Engine::Embedded).await;
}

#[tokio::test]
async fn a2_killed_around_an_event_it_is_told_in_the_end_with_one_id_postgres() {
    around_the_delivery(Engine::Postgres).await;
}
