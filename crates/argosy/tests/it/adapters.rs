//! Adapters outside the process: told by webhook, heard over REST.

use crate::harness::{Server, Setup, await_until, subset, text};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha2::Sha256;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

const SECRET: &str = "a secret that nobody else has";

/// One delivery as it arrived.
#[derive(Debug)]
pub(crate) struct Delivery {
    pub(crate) headers: BTreeMap<String, String>,
    body: Vec<u8>,
}

impl Delivery {
    fn event(&self) -> Value {
        serde_json::from_slice(&self.body).expect("JSON")
    }

    /// Standard Webhooks: HMAC-SHA256 over id, time and body.
    fn is_signed(&self) -> bool {
        let mut mac = Hmac::<Sha256>::new_from_slice(SECRET.as_bytes()).expect("any key");
        let (id, time) = (&self.headers["webhook-id"], &self.headers["webhook-timestamp"]);
        mac.update(format!("{id}.{time}.").as_bytes());
        mac.update(&self.body);
        let expected = format!("v1,{}", BASE64_STANDARD.encode(mac.finalize().into_bytes()));
        self.headers["webhook-signature"] == expected
    }
}

/// How a receiver answers; `HangUp` closes the connection without a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Status(u16),
    HangUp,
}

/// The adapter's side: a real HTTP listener.
pub(crate) struct Receiver {
    pub(crate) url: String,
    deliveries: mpsc::Receiver<Delivery>,
    /// How the next ones are answered; 202 when there are none.
    answers: Arc<Mutex<VecDeque<Answer>>>,
    // Ends with the value.
    _tasks: JoinSet<()>,
}

impl Receiver {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}/events", listener.local_addr().expect("an address"));
        let answers = Arc::new(Mutex::new(VecDeque::new()));
        let (tell, deliveries) = mpsc::channel(100);
        let mut tasks = JoinSet::new();
        let next = answers.clone();
        tasks.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let Some(delivery) = receive(stream, &next).await else { continue };
                if tell.send(delivery).await.is_err() {
                    return;
                }
            }
        });
        Self { url, deliveries, answers, _tasks: tasks }
    }

    fn answers(&self, answers: impl IntoIterator<Item = Answer>) {
        let mut next = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        *next = answers.into_iter().collect();
    }

    pub(crate) async fn next(&mut self) -> Delivery {
        let next = tokio::time::timeout(crate::harness::PATIENCE, self.deliveries.recv());
        next.await.expect("a delivery in time").expect("a receiver")
    }
}

/// Reads one request and answers it.
async fn receive(stream: TcpStream, answers: &Mutex<VecDeque<Answer>>) -> Option<Delivery> {
    let mut stream = BufReader::new(stream);
    let mut headers = BTreeMap::new();
    let mut line = String::new();
    loop {
        line.clear();
        stream.read_line(&mut line).await.ok().filter(|len| 0 < *len)?;
        match line.trim_end().split_once(": ") {
            Some((name, value)) => _ = headers.insert(name.to_ascii_lowercase(), value.to_owned()),
            None if line.trim_end().is_empty() => break,
            None => {}
        }
    }
    let mut body = vec![0; headers.get("content-length")?.parse().ok()?];
    stream.read_exact(&mut body).await.ok()?;
    let answer = answers.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    if let Answer::Status(status) = answer.unwrap_or(Answer::Status(202)) {
        let answer =
            format!("HTTP/1.1 {status} Test\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
        stream.write_all(answer.as_bytes()).await.ok()?;
        stream.shutdown().await.ok()?;
    }
    Some(Delivery { headers, body })
}

/// A server whose clusters need the built-in validation, then an adapter outside.
async fn server_with(receiver: &Receiver) -> Server {
    let url = &receiver.url;
    Setup::embedded()
        .file("secret", SECRET)
        .config(&format!(
            "webhooks: {{ allow: [127.0.0.1] }}\n\
             adapters: {{ cluster: [{{ name: validation }}, {{ name: landing-zone, \
             depends_on: [validation], runner: webhook, url: '{url}', secret: {{ file: secret }} }}] }}"
        ))
        .start()
        .await
}

fn cluster(name: &str) -> Value {
    json!({ "name": name, "spec": { "provider": "gcp", "region": "us-east1" } })
}

fn report(adapter: &str, generation: &Value, available: &str, finalized: bool) -> Value {
    let condition = |kind: &str, status: &str| json!({ "type": kind, "status": status, "reason": "Done", "message": "It is done" });
    let mut conditions = vec![
        condition("Available", available),
        condition("Applied", available),
        condition("Health", "True"),
    ];
    conditions.extend(finalized.then(|| condition("Finalized", "True")));
    json!({ "adapter": adapter, "observed_generation": generation, "conditions": conditions })
}

/// Does what an adapter does: looks the resource up by the event, and reports.
async fn work(server: &Server, delivery: &Delivery) {
    let event = delivery.event();
    let href = text(&event, "/data/href");
    let resource = server.get(href).await.expect(200);
    let deleting = resource.get("deleted_time").is_some();
    let available = if deleting { "False" } else { "True" };
    let report = report("landing-zone", &event["data"]["generation"], available, deleting);
    server.put(&format!("{href}/statuses"), &report).await.expect(201);
}

#[tokio::test]
async fn an_adapter_outside_is_told_with_a_signature_and_reports_over_rest() {
    let mut receiver = Receiver::start().await;
    let server = server_with(&receiver).await;
    let created = server.create("clusters", &cluster("alpha")).await;
    let path = format!("clusters/{}", text(&created, "/id"));

    let delivery = receiver.next().await;
    assert_eq!(delivery.headers["content-type"], "application/cloudevents+json");
    assert!(delivery.is_signed(), "{delivery:?}");
    let event = delivery.event();
    let href = format!("/api/hyperfleet/v1/{path}");
    subset(
        &event,
        &json!({
            "specversion": "1.0",
            "type": "com.redhat.hyperfleet.cluster.reconcile",
            "id": delivery.headers["webhook-id"],
            "datacontenttype": "application/json",
            "data": { "id": created["id"], "kind": "Cluster", "href": href, "generation": 1 },
        }),
    );
    // Told after what it depends on is done.
    server
        .statuses_with(
            &path,
            json!({ "statuses": [
        { "adapter_name": "validation", "phase": "Complete" },
        { "adapter_name": "landing-zone", "phase": "Pending" },
    ] }),
        )
        .await;
    work(&server, &delivery).await;
    server.ready(&path).await;

    // A change is a new generation, and a new event.
    server.patch(&path, &json!({ "spec": { "note": 1 } })).await.expect(200);
    let delivery = receiver.next().await;
    assert_eq!(delivery.event()["data"]["generation"], 2);
    work(&server, &delivery).await;
    server.ready(&path).await;

    // Cleanup, too; it is gone when the adapter says that it has finished.
    server.delete(&path).await.expect(202);
    let delivery = receiver.next().await;
    assert!(delivery.is_signed());
    work(&server, &delivery).await;
    server.gone(&path).await.refused(404, &json!({ "error": "ClusterNotFound" }));
}

#[tokio::test]
async fn a_receiver_that_is_down_is_told_again() {
    let mut receiver = Receiver::start().await;
    receiver.answers([Answer::HangUp, Answer::Status(503), Answer::Status(429)]);
    let server = server_with(&receiver).await;
    let created = server.create("clusters", &cluster("alpha")).await;
    let path = format!("clusters/{}", text(&created, "/id"));
    let deliveries = [
        receiver.next().await,
        receiver.next().await,
        receiver.next().await,
        receiver.next().await,
    ];
    // It is one event, whoever often it takes to deliver it.
    for delivery in &deliveries {
        assert!(delivery.is_signed());
        assert_eq!(delivery.headers["webhook-id"], deliveries[0].headers["webhook-id"]);
    }
    work(&server, &deliveries[3]).await;
    server.ready(&path).await;
}

#[tokio::test]
async fn c4_an_event_that_nobody_takes_is_given_up_and_said() {
    let mut receiver = Receiver::start().await;
    let server = server_with(&receiver).await;
    // Five attempts, then a dead letter.
    receiver.answers([Answer::Status(500); 5]);
    let created = server.create("clusters", &cluster("poison")).await;
    let path = format!("clusters/{}", text(&created, "/id"));
    for _ in 0..5 {
        receiver.next().await;
    }
    let rejected = |cluster: &Value| -> Option<Value> {
        let conditions = cluster["status"]["conditions"].as_array()?;
        conditions.iter().find(|one| one["type"] == "EventRejected").cloned()
    };
    let found = server.once(&path, |cluster| rejected(cluster).is_some()).await;
    let condition = rejected(&found).expect("it was there");
    subset(&condition, &json!({ "status": "True" }));
    let message = text(&condition, "/message");
    assert!(message.contains("landing-zone") && message.contains("500"), "{message}");

    // Others are not affected.
    let other = server.create("clusters", &cluster("other")).await;
    let delivery = receiver.next().await;
    assert_eq!(delivery.event()["data"]["id"], other["id"]);
    work(&server, &delivery).await;
    server.ready("clusters/other").await;

    // The way out that the message names: change the resource.
    server.patch(&path, &json!({ "labels": { "try": "again" } })).await.expect(200);
    let delivery = receiver.next().await;
    assert_eq!(delivery.event()["data"]["id"], created["id"]);
    work(&server, &delivery).await;
    let ready = server.ready(&path).await;
    assert_eq!(rejected(&ready), None);
}

#[tokio::test]
async fn a_receiver_that_refuses_is_not_asked_five_times() {
    let mut receiver = Receiver::start().await;
    receiver.answers([Answer::Status(422)]);
    let server = server_with(&receiver).await;
    let created = server.create("clusters", &cluster("alpha")).await;
    let path = format!("clusters/{}", text(&created, "/id"));
    receiver.next().await;
    let found = server.once(&path, |cluster| cluster.to_string().contains("EventRejected")).await;
    assert!(found.to_string().contains("422"), "{found:#}");
    assert!(receiver.deliveries.try_recv().is_err(), "once is enough");
}

#[tokio::test]
async fn an_address_inside_is_not_called_unless_it_is_allowed() {
    let mut receiver = Receiver::start().await;
    let server = Setup::embedded()
        .file("secret", SECRET)
        .config(&format!(
            "adapters: {{ cluster: [{{ name: outside, runner: webhook, url: '{}', \
             secret: {{ file: secret }} }}] }}",
            receiver.url
        ))
        .start()
        .await;
    server.create("clusters", &cluster("alpha")).await;
    server.once("clusters/alpha", |cluster| cluster.to_string().contains("EventRejected")).await;
    assert!(receiver.deliveries.try_recv().is_err(), "nobody was called");
}

#[tokio::test]
async fn a_report_of_an_adapter_nobody_configured_is_stored_and_shown() {
    let mut server = Setup::embedded().start().await;
    let created = server.create("clusters", &cluster("alpha")).await;
    let path = format!("clusters/{}", text(&created, "/id"));
    server.ready(&path).await;
    let statuses = format!("{path}/statuses");
    let stored = server.put(&statuses, &report("pull-secret", &json!(1), "False", false)).await;
    subset(&stored.expect(201), &json!({ "adapter": "pull-secret", "observed_generation": 1 }));
    // Also after a restart; it comes after those that are configured, and nobody waits for it.
    server.restart().await;
    server
        .statuses_with(
            &path,
            json!({ "statuses": [
        { "adapter_name": "validation" }, { "adapter_name": "dns" },
        { "adapter_name": "infrastructure" },
        { "adapter_name": "pull-secret", "phase": "Failed", "message": "It is done" },
    ] }),
        )
        .await;
    assert_eq!(server.get(&path).await.expect(200)["status"]["phase"], "Ready");
}

#[tokio::test]
async fn h4_an_adapter_that_never_reports_is_called_stalled() {
    let server = Setup::embedded()
        .config(
            "adapters: { cluster: [{ name: silent, runner: external, deadline: 1s }, \
             { name: quick, runner: external }] }",
        )
        .start()
        .await;
    let created = server.create("clusters", &cluster("alpha")).await;
    let path = format!("clusters/{}", text(&created, "/id"));
    server
        .put(&format!("{path}/statuses"), &report("quick", &json!(1), "True", false))
        .await
        .expect(201);
    let stalled = |cluster: &Value| -> Option<Value> {
        let conditions = cluster["status"]["conditions"].as_array()?;
        conditions.iter().find(|one| one["type"] == "Stalled").cloned()
    };
    let found = server.once(&path, |cluster| stalled(cluster).is_some()).await;
    let condition = stalled(&found).expect("it was there");
    subset(&condition, &json!({ "status": "True", "reason": "AdapterStalled" }));
    let message = text(&condition, "/message");
    assert!(message.contains("silent") && !message.contains("quick"), "{message}");
    assert!(message.contains("check that the adapter runs"), "what to do: {message}");
    // Its next report clears it.
    server
        .put(&format!("{path}/statuses"), &report("silent", &json!(1), "True", false))
        .await
        .expect(201);
    let ready = server.ready(&path).await;
    assert_eq!(stalled(&ready), None);
}

#[tokio::test]
async fn a_node_pool_has_adapters_outside_as_well() {
    let mut receiver = Receiver::start().await;
    let server = Setup::embedded()
        .file("secret", SECRET)
        .config(&format!(
            "webhooks: {{ allow: [127.0.0.1] }}\n\
             adapters: {{ nodepool: [{{ name: landing-zone, runner: webhook, url: '{}', \
             secret: {{ file: secret }} }}] }}",
            receiver.url
        ))
        .start()
        .await;
    let created = server.create("clusters", &cluster("alpha")).await;
    let path = format!("clusters/{}", text(&created, "/id"));
    let body = json!({ "name": "workers", "spec": { "nodeCount": 1 } });
    let pool = server.create(&format!("{path}/nodepools"), &body).await;
    let delivery = receiver.next().await;
    // By its uid: a name may come back.
    subset(
        &delivery.event(),
        &json!({
            "type": "com.redhat.hyperfleet.nodepool.reconcile",
            "data": {
                "id": pool["uid"], "kind": "NodePool", "generation": 1,
                "owner_references": { "id": created["id"], "kind": "Cluster" },
            },
        }),
    );
    work(&server, &delivery).await;
    server.ready(&format!("{path}/nodepools/workers")).await;
    await_until("the log says so", async || server.log().contains("event sent").then_some(()))
        .await;
}
