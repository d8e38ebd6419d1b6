//! Fleets through the real program: machines are bought, register, fall ill, are replaced and returned.
//!
//! On the simulated cloud, with real agents as processes, and at EC2 as moto's server plays it.

mod bad_input;
mod commands;
mod ec2;
mod navarch;
mod process;
mod protect;
mod recovery;
mod simulated;

use crate::harness::{Api, PATIENCE, await_until, await_until_within, text};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;
use std::sync::LazyLock;

/// Our own API.
const OWN: &str = "/api/argosy/v1";

/// Makes a cluster called `default`, waits until it is ready, and makes a node pool in it; the pool's path.
async fn make(api: &Api, cluster: &Value, pool: &str, spec: &Value) -> String {
    let created = api.create("clusters", &json!({ "name": "default", "spec": cluster })).await;
    let cluster = format!("clusters/{}", text(&created, "/id"));
    api.ready(&cluster).await;
    add_pool(api, &cluster, pool, spec).await
}

/// Makes a node pool in a cluster; its path.
async fn add_pool(api: &Api, cluster: &str, pool: &str, spec: &Value) -> String {
    let body = json!({ "name": pool, "spec": spec });
    let created = api.create(&format!("{cluster}/nodepools"), &body).await;
    format!("{cluster}/nodepools/{}", text(&created, "/id"))
}

/// The instances that a search finds.
async fn instances(api: &Api, search: &str) -> Vec<Value> {
    let request = api.request(reqwest::Method::GET, &format!("{OWN}/instances"));
    let reply = api.send(request.query(&[("search", search), ("size", "100")])).await;
    reply.expect(200)["items"].as_array().expect("a list").clone()
}

/// Those that are not over.
async fn open(api: &Api) -> Vec<Value> {
    instances(api, "open = true").await
}

async fn instance(api: &Api, id: &str) -> Value {
    api.get(&format!("{OWN}/instances/{id}")).await.expect(200)
}

async fn nodes(api: &Api) -> Vec<Value> {
    let list = api.get(&format!("{OWN}/nodes?size=100")).await.expect(200);
    list["items"].as_array().expect("a list").clone()
}

/// The ids of some of them.
fn ids(of: &[Value]) -> BTreeSet<String> {
    of.iter().map(|one| text(one, "/id").to_owned()).collect()
}

/// The pool once it is Ready with exactly so many machines, each with a node in service: their ids.
async fn settled(api: &Api, path: &str, count: usize) -> BTreeSet<String> {
    let mut last = (Vec::new(), Vec::new(), Value::Null);
    // What a lost answer leaves in doubt is looked at again after a minute.
    let patience = PATIENCE * 2;
    let settled = await_until_within(patience, "the pool has all its nodes", async || {
        let (machines, nodes) = (open(api).await, nodes(api).await);
        let pool = api.get(path).await.expect(200);
        let running: BTreeSet<String> = ids(&machines
            .iter()
            .filter(|it| it["state"] == "Running")
            .cloned()
            .collect::<Vec<_>>());
        let serving: BTreeSet<String> =
            ids(&nodes.iter().filter(|it| it["status"] == "ACTIVE").cloned().collect::<Vec<_>>());
        let holds = machines.len() == count
            && running.len() == count
            && serving == running
            && pool["status"]["phase"] == "Ready";
        last = (machines, nodes, pool);
        holds.then_some(running)
    });
    // The rest of the patience is for telling what was there instead.
    match tokio::time::timeout(patience.mul_f32(0.9), settled).await {
        Ok(settled) => settled,
        Err(_) => {
            let statuses = api.get(&format!("{path}/statuses")).await.text;
            panic!("not {count} nodes: {:#?}\n{:#?}\n{:#}\n{statuses}", last.0, last.1, last.2);
        }
    }
}

/// Which of them is not among those who were there before.
fn newcomer(before: &BTreeSet<String>, now: &BTreeSet<String>) -> String {
    let new: Vec<&String> = now.difference(before).collect();
    assert_eq!(new.len(), 1, "one newcomer in {now:?}, after {before:?}");
    new[0].clone()
}

/// Asks for another size.
async fn resize(api: &Api, path: &str, spec: &Value) {
    api.patch(path, &json!({ "spec": spec })).await.expect(200);
}

/// The record once its machine is known to be gone.
async fn terminated(api: &Api, id: &str) -> Value {
    await_until(&format!("{id} is returned"), async || {
        let record = instance(api, id).await;
        (record["state"] == "Terminated").then_some(record)
    })
    .await
}

/// The statuses that a node went through, as its ledger has them.
async fn walk(api: &Api, node: &str) -> Vec<String> {
    let history = api.get(&format!("{OWN}/nodes/{node}/history?limit=200")).await.expect(200);
    let items = history["items"].as_array().expect("a list");
    let mut steps: Vec<(u64, String)> = items
        .iter()
        .filter(|entry| entry["type"] == "status")
        .map(|entry| (entry["sequence"].as_u64().expect("a number"), text(entry, "/to").to_owned()))
        .collect();
    steps.sort_unstable();
    steps.into_iter().map(|(_, to)| to).collect()
}

/// The statuses of a sick node that was replaced, as the document has them.
const WALK: [&str; 4] = ["UNHEALTHY", "CORDONED", "DRAINING", "TERMINATED"];

/// Deletes a pool, and waits until nothing of it is left in our books.
async fn delete(api: &Api, path: &str) {
    assert_eq!(api.delete(path).await.status, 202);
    api.gone(path).await;
    assert_eq!(open(api).await, Vec::<Value>::new(), "a machine is left");
    let nodes = nodes(api).await;
    assert!(nodes.iter().all(|node| node["status"] == "TERMINATED"), "{nodes:#?}");
}

/// The real agent, built as this program is.
pub(crate) fn agent() -> PathBuf {
    static AGENT: LazyLock<PathBuf> = LazyLock::new(|| {
        let agent = PathBuf::from(crate::harness::PROGRAM).with_file_name("argosy-agent");
        // `scripts/run-tests` has built the whole workspace; for one package, cargo would choose other features of its
        // dependencies and build them again.
        if std::env::var_os("ARGOSY_WORKSPACE_BUILT").is_some() {
            return agent;
        }
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let built = Command::new(cargo)
            .args(["build", "--quiet", "--package", "argosy-agent"])
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .status();
        assert!(built.expect("cargo").success(), "cargo build --package argosy-agent");
        agent
    });
    AGENT.clone()
}

/// Text has all these words.
#[track_caller]
fn has(text: &str, words: &[&str]) {
    for word in words {
        assert!(text.contains(word), "lacks {word}:\n{text}");
    }
}
