//! `argosy up`: what a stranger sees in the first minute, and that it is there again the next day.

use crate::harness::{Api, PROGRAM, Process, TestDir, argosy, await_until, run};
use crate::machines::agent;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

const ARGOSY: &str = "/api/argosy/v1";

/// A directory whose agents end with the test: where it fails, nobody else ends them.
struct Home(TestDir);

impl Drop for Home {
    fn drop(&mut self) {
        for pid in agents(self.0.path()).values() {
            let _ = Command::new("kill").args(["-s", "KILL", &pid.to_string()]).status();
        }
    }
}

/// A demonstration of two dozen nodes in a directory, where nothing breaks unless it is told to.
async fn up(dir: &Path) -> (Process, Api) {
    // Beside the program, where it looks.
    agent();
    let mut command = Command::new(PROGRAM);
    command.args(["up", "--port", "0", "--nodes", "24", "--no-faults"]);
    command.current_dir(dir).env("HOME", dir);
    let process = Process::spawn(command, "Dashboard  http://").await.expect("it starts");
    let address = process.address.trim_end_matches("/ui/").to_owned();
    let api = Api::new(&address, None);
    (process, api)
}

/// The agents on this host that live, by machine.
fn agents(dir: &Path) -> BTreeMap<String, u64> {
    let rooms =
        std::fs::read_dir(dir.join(".argosy/machines/local")).into_iter().flatten().flatten();
    let lives = |pid: &u64| {
        let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&words).contains("argosy-agent")
    };
    let processes = rooms.filter_map(|room| {
        let text = std::fs::read_to_string(room.path().join("process.json")).ok()?;
        let said: Value = serde_json::from_str(&text).expect("JSON");
        let pid = said["process"]["pid"].as_u64().filter(lives)?;
        Some((room.file_name().into_string().expect("a name"), pid))
    });
    processes.collect()
}

/// The nodes of a search that are in service.
async fn active(api: &Api, query: &str) -> Vec<String> {
    let path = format!("{ARGOSY}/nodes?status=ACTIVE&size=1000&{query}");
    let page = api.get(&path).await.expect(200);
    let items = page["items"].as_array().expect("items").iter();
    items.map(|node| node["id"].as_str().expect("an id").to_owned()).collect()
}

async fn active_count(api: &Api, query: &str, count: usize) -> Vec<String> {
    await_until(&format!("{count} nodes are in service: {query}"), async || {
        let nodes = active(api, query).await;
        (nodes.len() == count).then_some(nodes)
    })
    .await
}

/// Breaks a GPU as a person does, and waits until another node has taken the place.
async fn broken_and_replaced(dir: &Path, api: &Api, node: &str) {
    let server = format!("http://{}", api.address());
    let words = ["demo", "inject", node, "xid-79", "-o", "json", "--server", &server];
    let said = run(argosy(dir, &words)).await;
    let said: Value = serde_json::from_str(said.expect(0)).expect("JSON");
    assert_eq!(said["node"], json!(node));
    assert!(said["what"].as_str().is_some_and(|what| what.starts_with("xid:79 gpu:")), "{said}");
    let record = await_until(&format!("{node} is returned"), async || {
        let record = api.get(&format!("{ARGOSY}/instances/{node}")).await.expect(200);
        (record["state"] == "Terminated").then_some(record)
    })
    .await;
    let heir = record["replaced_by"].as_str().expect("another took its place");
    let heir = api.get(&format!("{ARGOSY}/instances/{heir}")).await.expect(200);
    assert_eq!((&heir["state"], &heir["replaces"]), (&json!("Running"), &json!(node)));
    let why = api.get(&format!("{ARGOSY}/nodes/{node}/why")).await.expect(200);
    let steps = why["steps"].as_array().expect("steps");
    let kinds: Vec<&str> = steps.iter().filter_map(|step| step["type"].as_str()).collect();
    for kind in ["event", "verdict", "decision", "command"] {
        assert!(kinds.contains(&kind), "{kind} in {why:#}");
    }
}

#[tokio::test]
async fn a_stranger_sees_a_fleet_breaks_a_gpu_and_it_is_there_again_the_next_day() {
    let home = Home(TestDir::new());
    let dir = home.0.path();
    let (mut first, api) = up(dir).await;
    assert_eq!(api.get("/ui/").await.status, 200);
    let me = api.get(&format!("{ARGOSY}/me")).await.expect(200);
    assert_eq!((&me["server"]["demo"], &me["may"]["write"]), (&json!(true), &json!(true)));
    for cluster in ["atlas", "borealis", "comet"] {
        api.ready(&format!("clusters/{cluster}")).await;
    }
    api.ready("clusters/atlas/nodepools/h100").await;
    let real = active_count(&api, "provider=local", 3).await;
    assert_eq!(agents(dir).into_keys().collect::<Vec<_>>(), real);
    api.create(
        "clusters",
        &json!({ "name": "mine", "spec": { "provider": "gcp", "region": "us-east1" } }),
    )
    .await;

    let simulated = active(&api, "pool=atlas.h100").await;
    broken_and_replaced(dir, &api, simulated.first().expect("nodes")).await;
    broken_and_replaced(dir, &api, real.first().expect("agents")).await;
    let real = active_count(&api, "provider=local", 3).await;

    let refused = run(argosy(dir, &["demo", "inject", "nonsense"])).await;
    refused.expect(64);
    assert!(refused.err.contains("argosy demo faults"), "{}", refused.err);

    first.signal("INT");
    assert_eq!(first.ended().await, Some(0));
    let log = first.log.read();
    assert!(log.contains("`argosy up` continues where it was"), "{log}");
    assert_eq!(agents(dir), BTreeMap::new(), "nothing is left running");

    let (mut second, api) = up(dir).await;
    api.ready("clusters/mine").await;
    assert_eq!(active_count(&api, "provider=local", 3).await, real, "the same machines");
    second.signal("INT");
    assert_eq!(second.ended().await, Some(0));
    assert_eq!(agents(dir), BTreeMap::new());
}

#[tokio::test]
async fn a_plain_server_is_no_demonstration_and_says_what_is() {
    let server = crate::harness::Setup::embedded().start().await;
    let refused = server.cli(&["demo", "inject", "xid-79"]).await;
    refused.expect(3);
    assert!(refused.err.contains("argosy up"), "{}", refused.err);
    let faults = server.cli(&["demo", "faults", "-o", "name"]).await;
    assert!(faults.expect(0).lines().any(|line| line == "silent"));
}
