//! Nodes on the command line: registered over Connect JSON, as Navarch's daemon does it.

use super::until;
use crate::harness::{Ran, Server, Setup, argosy, await_until, run, text};
use serde_json::{Value, json};
use std::process::Stdio;
use tokio::io::{AsyncBufReadExt, BufReader};

/// Calls Navarch's service, as its daemon does.
pub(super) async fn navarch(server: &Server, method: &str, body: Value) -> Value {
    server.post(&format!("/navarch.ControlPlaneService/{method}"), &body).await.expect(200)
}

/// Calls our own service, as an agent does.
async fn agent(server: &Server, method: &str, body: Value) -> Value {
    server.post(&format!("/argosy.v1.NodeService/{method}"), &body).await.expect(200)
}

/// Registers nodes of pool h100 with two GPUs each, and lets them say that they are there.
pub(super) async fn register(server: &Server, ids: &[&str]) {
    let gpu = |index: u32| {
        json!({
            "index": index, "uuid": format!("GPU-{index}"), "name": "NVIDIA H100 80GB HBM3",
            "memoryTotal": "85899345920",
        })
    };
    for id in ids {
        let body = json!({
            "nodeId": id, "provider": "gcp", "region": "us-east1", "zone": "us-east1-b",
            "instanceType": "a3-highgpu-8g", "gpus": [gpu(0), gpu(1)],
            "metadata": { "hostname": format!("{id}.dc"), "labels": { "pool": "h100", "rack": "r7" } },
        });
        assert_eq!(navarch(server, "RegisterNode", body).await["success"], true);
    }
}

async fn beat(server: &Server, id: &str, percent: f64, degrees: u32) {
    let gpu = |index: u32| {
        json!({
            "gpuIndex": index, "temperature": degrees, "powerUsage": 600,
            "utilizationPercent": percent, "memoryUsed": "42949672960",
        })
    };
    let metrics = json!({
        "cpuUsagePercent": 12.0, "memoryUsagePercent": 30.0, "gpuMetrics": [gpu(0), gpu(1)],
    });
    navarch(server, "SendHeartbeat", json!({ "nodeId": id, "metrics": metrics })).await;
}

/// A GPU falls off the bus.
async fn xid_79(server: &Server, id: &str) {
    let event = json!({
        "gpuIndex": 1, "gpuUuid": "GPU-1", "system": "HEALTH_WATCH_SYSTEM_DRIVER",
        "eventType": "HEALTH_EVENT_TYPE_XID", "metrics": { "xid_code": "79" },
        "message": "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.",
    });
    let report = json!({ "nodeId": id, "results": [], "events": [event] });
    let answer = navarch(server, "ReportHealth", report).await;
    assert_eq!(answer["nodeStatus"], "NODE_STATUS_UNHEALTHY");
}

async fn status(server: &Server, id: &str) -> String {
    let node = server.get(&format!("/api/argosy/v1/nodes/{id}")).await.expect(200);
    text(&node, "/status").to_owned()
}

#[track_caller]
fn has(text: &str, words: &[&str]) {
    for word in words {
        assert!(text.contains(word), "lacks {word}:\n{text}");
    }
}

#[tokio::test]
async fn nodes_are_listed_and_described_in_every_form() {
    let server = Setup::embedded().start().await;
    assert_eq!(server.cli(&["node", "list"]).await.err, "no nodes\n");
    register(&server, &["gpu-1", "gpu-2"]).await;
    beat(&server, "gpu-1", 88.0, 71).await;
    let table = server.cli(&["node", "list"]).await;
    has(table.expect(0), &["NODE", "REASON", "gpu-2", "ACTIVE", "2x H100", "88%", "71C", "h100"]);
    let wide = server.cli(&["nodes", "ls", "-o", "wide", "--order", "-id"]).await;
    has(wide.expect(0), &["us-east1-b", "a3-highgpu-8g"]);
    let second = wide.out.lines().nth(1).expect("a row");
    assert!(second.starts_with("gpu-2"), "{}", wide.out);
    for (query, expected) in [
        (&["--pool", "h100"][..], "node/gpu-1\nnode/gpu-2\n"),
        (&["--search", "id = 'gpu-2'"], "node/gpu-2\n"),
        (&["-l", "rack=r7", "-l", "pool!=h100"], ""),
        (
            &[
                "--status",
                "active",
                "--health",
                "unknown",
                "--liveness",
                "fresh",
                "--zone",
                "us-east1-b",
            ],
            "node/gpu-1\nnode/gpu-2\n",
        ),
        (&["--status", "CORDONED"], ""),
        (&["--provider", "aws"], ""),
        (&["--region", "us-east1", "--sort", "-id"], "node/gpu-2\nnode/gpu-1\n"),
    ] {
        let args = [&["node", "list", "-o", "name"], query].concat();
        assert_eq!(server.cli(&args).await.expect(0), expected, "{query:?}");
    }
    let listed = server.cli(&["node", "list", "-o", "json"]).await.json();
    assert_eq!((&listed["kind"], &listed["total"]), (&json!("NodeList"), &json!(2)));
    let page = server.cli(&["node", "get", "node/gpu-1"]).await;
    has(
        page.expect(0),
        &["gpu-1  ACTIVE", "gpu-1.dc", "Liveness", "Fresh", "Health", "Duty", "40/80 GiB", "600W"],
    );
    let one = server.cli(&["node", "get", "gpu-1", "-o", "json"]).await.json();
    assert_eq!(text(&one, "/id"), "gpu-1");
    let both = server.cli(&["node", "get", "gpu-1", "gpu-2", "-o", "json"]).await.json();
    assert_eq!(both["items"].as_array().map(Vec::len), Some(2));
    let yaml = server.cli(&["node", "get", "gpu-1", "-o", "yaml"]).await;
    has(yaml.expect(0), &["id: gpu-1", "pool: h100"]);
}

#[tokio::test]
async fn a_node_is_cordoned_put_back_and_followed() {
    let server = Setup::embedded().start().await;
    register(&server, &["gpu-1", "gpu-2"]).await;
    let mut command = argosy(server.dir(), &["node", "watch"]);
    command.env("ARGOSY_SERVER", server.url()).stdout(Stdio::piped());
    let mut watch = command.spawn().expect("the program can be run");
    let mut lines = BufReader::new(watch.stdout.take().expect("piped")).lines();
    let told = |kind: &'static str, status: &'static str| {
        move |event: &Value| {
            event["object"]["id"] == "gpu-1"
                && event["type"] == kind
                && event["object"]["status"] == status
        }
    };
    until(&mut lines, told("ADDED", "ACTIVE")).await;
    let cordoned = server.cli(&["node", "cordon", "gpu-1", "--reason", "new fans"]).await;
    cordoned.expect(0);
    has(&cordoned.err, &["node gpu-1: cordoned (command "]);
    until(&mut lines, told("MODIFIED", "CORDONED")).await;
    has(
        server.cli(&["node", "get", "gpu-1"]).await.expect(0),
        &["CORDONED", "new fans", "CORDON "],
    );
    // The daemon fetches it, and fetches again when it has done it.
    let waiting = async {
        let args = ["node", "uncordon", "gpu-1", "--wait", "-o", "json"];
        server.cli(&args).await
    };
    let polling = async {
        await_until("the uncordon is done", async || {
            navarch(&server, "GetNodeCommands", json!({ "nodeId": "gpu-1" })).await;
            let list = server.get("/api/argosy/v1/commands?state=completed").await.expect(200);
            let done = list["items"].as_array().expect("items");
            done.iter().any(|command| command["type"] == "UNCORDON").then_some(())
        })
        .await;
    };
    let (waited, ()) = tokio::join!(waiting, polling);
    assert_eq!(text(&waited.json(), "/outcome"), "Completed");
    until(&mut lines, told("MODIFIED", "ACTIVE")).await;
    watch.kill().await.expect("our own child");
}

#[tokio::test]
async fn drains_end_as_they_should_and_the_exit_code_says_so() {
    let server = Setup::embedded().start().await;
    register(&server, &["gpu-1", "gpu-2", "gpu-3"]).await;
    // The daemon takes the drain, and nobody ever says that the work has left.
    let drain = async |id: &'static str, more: &[&str]| {
        let args = [&["node", "drain", id, "--wait", "--drain-for", "2s"], more].concat();
        let taking = await_until("the daemon takes it", async || {
            let told = navarch(&server, "GetNodeCommands", json!({ "nodeId": id })).await;
            told["commands"].is_array().then_some(())
        });
        tokio::join!(server.cli(&args), taking).0
    };
    let late = drain("gpu-1", &[]).await;
    late.expect(1);
    has(&late.err, &["deadline in ", "gpu-1  DRAIN TimedOut after", "argosy why node/gpu-1"]);
    // One of three may be out of service.
    let beyond = server.cli(&["node", "drain", "gpu-2"]).await;
    beyond.expect(6);
    has(&beyond.err, &["disruption budget", "gpu-1 drained by ", "argosy node uncordon gpu-1"]);
    server.cli(&["node", "uncordon", "gpu-1"]).await.expect(0);
    let forced = drain("gpu-2", &["--force", "-o", "json"]).await;
    assert_eq!(text(&forced.json(), "/outcome"), "Forced");
    has(&forced.err, &["gpu-2  DRAIN Forced after"]);
    let unheard = ["node", "drain", "gpu-2", "--wait", "--drain-for", "1s"];
    let unheard = server.cli(&unheard).await;
    unheard.expect(1);
    has(&unheard.err, &["gpu-2  DRAIN Expired after"]);
    server.cli(&["node", "uncordon", "gpu-2"]).await.expect(0);
    // Somebody takes it back meanwhile.
    let waiting = server.cli(&["node", "drain", "gpu-3", "--wait", "--reason", "fans"]);
    let cancelling = async {
        await_until("it is draining", async || {
            (status(&server, "gpu-3").await == "DRAINING").then_some(())
        })
        .await;
        server.cli(&["node", "uncordon", "gpu-3"]).await.expect(0);
    };
    let (cancelled, ()) = tokio::join!(waiting, cancelling);
    cancelled.expect(1);
    has(&cancelled.err, &["DRAIN of node gpu-3 ended as Cancelled"]);
    assert_eq!(status(&server, "gpu-3").await, "ACTIVE");
}

#[tokio::test]
async fn waiting_too_long_is_8_and_says_how_to_go_on() {
    let server = Setup::embedded().start().await;
    register(&server, &["gpu-1"]).await;
    let late = server.cli(&["node", "cordon", "gpu-1", "--wait", "--timeout", "200ms"]).await;
    late.expect(8);
    has(&late.err, &["has not fetched CORDON yet", "argosy command wait "]);
    let listed = server.cli(&["command", "list", "--open", "-o", "name"]).await;
    let id = listed.expect(0).trim().to_owned();
    assert!(id.starts_with("command/"), "{id}");
    let late = server.cli(&["command", "wait", &id, "--timeout", "200ms"]).await;
    late.expect(8);
    let page = server.cli(&["command", "get", &id]).await;
    has(page.expect(0), &["CORDON", "gpu-1", "pending", "Expires"]);
    navarch(&server, "GetNodeCommands", json!({ "nodeId": "gpu-1" })).await;
    navarch(&server, "GetNodeCommands", json!({ "nodeId": "gpu-1" })).await;
    let done = server.cli(&["command", "wait", &id]).await;
    done.expect(0);
    has(&done.err, &["gpu-1  CORDON Completed"]);
    let table = server.cli(&["commands", "list", "--node", "gpu-1"]).await;
    has(table.expect(0), &["COMMAND", "Completed", "gpu-1"]);
    server.cli(&["command", "get", "01990000-0000-7000-8000-000000000000"]).await.expect(3);
}

#[tokio::test]
async fn the_story_goes_from_the_event_to_the_command() {
    let server = Setup::embedded().start().await;
    register(&server, &["gpu-1"]).await;
    xid_79(&server, "gpu-1").await;
    // Nobody tells it to: the server cordons it by itself, and the node fetches that.
    await_until("the node is cordoned", async || {
        navarch(&server, "GetNodeCommands", json!({ "nodeId": "gpu-1" })).await;
        (status(&server, "gpu-1").await == "CORDONED").then_some(())
    })
    .await;
    let story = server.cli(&["why", "gpu-1"]).await;
    let told = story.expect(0).to_owned();
    has(
        &told,
        &[
            "gpu-1 is CORDONED because",
            "event: Xid 79 on GPU 1",
            "policy default",
            "health: ",
            "decision: ",
            "command: CORDON issued by argosy",
            "What you can do:",
            "argosy node diagnose gpu-1",
        ],
    );
    let place = |word: &str| told.find(word).unwrap_or(usize::MAX);
    assert!(
        place("event:") < place("verdict:") && place("verdict:") < place("decision:"),
        "{told}"
    );
    assert!(place("decision:") < place("command:"), "{told}");
    let same = server.cli(&["why", "node/gpu-1", "-o", "json"]).await.json();
    assert_eq!((text(&same, "/kind"), text(&same, "/status")), ("Why", "CORDONED"));
    let absolute = server.cli(&["why", "node/gpu-1", "-o", "wide"]).await;
    has(absolute.expect(0), &["T", "Z  r"]);
    let events = server.cli(&["node", "events", "gpu-1", "--since", "1h"]).await;
    has(events.expect(0), &["xid 79", "unhealthy", "(default v0)", "fallen off the bus"]);
    let history = server.cli(&["node", "history", "gpu-1"]).await;
    has(history.expect(0), &["registered", "event", "health", "decision", "command", "status"]);
    let few = server.cli(&["node", "history", "gpu-1", "--limit", "2", "-o", "json"]).await.json();
    let few = few["items"].as_array().expect("items");
    assert_eq!(few.len(), 2);
    assert!(few[0]["sequence"].as_u64() < few[1]["sequence"].as_u64(), "the latest last");
    server.cli(&["why", "nobody"]).await.expect(3);
}

#[tokio::test]
async fn a_cluster_is_explained_by_the_adapter_that_holds_it_up() {
    let server = Setup::embedded().start().await;
    server.deny("gcp", "compute.networks.create").await;
    let made = ["cluster", "create", "stuck", "--provider", "gcp", "--region", "us-east1"];
    server.cli(&made).await.expect(0);
    let said = await_until("the adapter fails", async || {
        let said = server.cli(&["why", "cluster/stuck"]).await;
        said.expect(0).contains("infrastructure is Failed").then_some(said)
    })
    .await;
    has(&said.out, &["cluster stuck is Not Ready", "compute.networks.create", "statuses stuck"]);
    let json = server.cli(&["why", "cluster/stuck", "-o", "json"]).await.json();
    assert_eq!(text(&json, "/blocking/adapter_name"), "infrastructure");
    server.cli(&["why", "cluster/nope"]).await.expect(3);
}

#[tokio::test]
async fn events_are_followed() {
    let server = Setup::embedded().start().await;
    register(&server, &["gpu-1"]).await;
    let args = ["node", "events", "gpu-1", "--follow", "-o", "json"];
    let mut command = argosy(server.dir(), &args);
    command.env("ARGOSY_SERVER", server.url()).stdout(Stdio::piped());
    let mut follow = command.spawn().expect("the program can be run");
    let mut lines = BufReader::new(follow.stdout.take().expect("piped")).lines();
    xid_79(&server, "gpu-1").await;
    let event = until(&mut lines, |entry| entry["type"] == "event").await;
    assert_eq!(text(&event, "/event/event_type"), "xid");
    assert_eq!(text(&event, "/verdict/severity"), "unhealthy");
    follow.kill().await.expect("our own child");
}

#[tokio::test]
async fn top_shows_what_gpus_do_once_in_a_pipe() {
    let server = Setup::embedded().start().await;
    register(&server, &["gpu-1", "gpu-2", "gpu-3"]).await;
    beat(&server, "gpu-1", 20.0, 80).await;
    beat(&server, "gpu-2", 90.0, 60).await;
    let shown = server.cli(&["top", "--once"]).await;
    has(
        shown.expect(0),
        &["3 nodes (3 ACTIVE), 6 GPUs, 55% busy, 160/320 GiB, 2.4 kW", "1200W", "90%", "80/160G"],
    );
    let order = |shown: &Ran| -> Vec<String> {
        let rows = shown.out.lines().skip(2);
        rows.filter_map(|row| row.split_whitespace().next()).map(str::to_owned).collect()
    };
    assert_eq!(order(&shown), ["gpu-2", "gpu-1", "gpu-3"]);
    assert_eq!(order(&server.cli(&["top", "--by", "temp"]).await), ["gpu-1", "gpu-2", "gpu-3"]);
    let gpus = server.cli(&["top", "gpu-1", "--gpus", "--by", "node"]).await;
    assert_eq!(order(&gpus), ["gpu-1", "0", "1"]);
    assert_eq!(server.cli(&["top", "--pool", "none"]).await.expect(0).lines().count(), 2);
    server.cli(&["top", "nobody"]).await.expect(3);
}

#[tokio::test]
async fn pause_stops_the_server_from_acting_and_resume_lets_it() {
    let mut server = Setup::embedded().start().await;
    register(&server, &["gpu-1"]).await;
    has(server.cli(&["safety"]).await.expect(0), &["Automatic action is on", "BUDGETS"]);
    let paused = server.cli(&["pause", "--pool", "h100", "--reason", "new driver"]).await;
    paused.expect(0);
    has(&paused.err, &["paused for pool h100", "argosy resume --pool h100"]);
    server.restart().await;
    let page = server.cli(&["safety"]).await;
    has(page.expect(0), &["on, but not everywhere", "pool h100", "new driver"]);
    xid_79(&server, "gpu-1").await;
    let held = await_until("it is said what holds the cordon", async || {
        let held = server.cli(&["node", "get", "gpu-1"]).await;
        held.expect(0).contains("held by pause").then_some(held)
    })
    .await;
    has(&held.out, &["UNHEALTHY", "cordon is due"]);
    let other = server.cli(&["resume"]).await;
    other.expect(0);
    has(&other.err, &["was not paused for everything", "it is for pool h100"]);
    server.cli(&["resume", "--pool", "h100"]).await.expect(0);
    await_until("the node is told", async || {
        let args = ["command", "list", "--node", "gpu-1", "-o", "json"];
        let list = server.cli(&args).await.json();
        list["items"].as_array().is_some_and(|items| !items.is_empty()).then_some(())
    })
    .await;
    server.cli(&["pause", "--reason", "all of it"]).await.expect(0);
    has(server.cli(&["safety", "-o", "json"]).await.expect(0), &["all of it"]);
    server.cli(&["resume"]).await.expect(0);
    let closed = server.cli(&["safety", "close", "pool/default/h100", "--reason", "calm"]).await;
    closed.expect(0);
    has(&closed.err, &["was not open"]);
    assert_ne!(server.cli(&["safety", "close", "rack/7", "--reason", "x"]).await.code, Some(0));
}

#[tokio::test]
async fn many_nodes_are_told_and_one_that_cannot_be_does_not_stop_the_others() {
    let server = Setup::embedded().start().await;
    let ids: Vec<String> = (0..40).map(|place| format!("gpu-{place:02}")).collect();
    register(&server, &ids.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let args = ["node", "terminate", "gpu-07", "--reason", "sold", "--yes"];
    server.cli(&args).await.expect(0);
    // A plan first, and nothing is done. The one that was terminated is all that may be out of service.
    let select = ["node", "drain", "-l", "rack=r7", "--reason", "power work"];
    let plan = server.cli(&[&select[..], &["--dry-run"]].concat()).await;
    plan.expect(6);
    has(
        &plan.err,
        &["Drain 40 nodes (h100: 40):", "39 ACTIVE, 1 TERMINATED; 80x H100", "and 20 more"],
    );
    let numbers = "pool h100: 1 node may be out of service, 1 is (gpu-07 terminated by";
    has(&plan.err, &[numbers, "and 39 more are asked for", "--over-budget"]);
    let plan = server.cli(&[&select[..], &["--dry-run", "--over-budget"]].concat()).await;
    plan.expect(5);
    has(&plan.err, &["! exceeds", "node gpu-00: would be drained", "node gpu-07: not draining: "]);
    assert_eq!(status(&server, "gpu-00").await, "ACTIVE");
    // More than the budget allows; then nobody at a terminal; then somebody who says so.
    let beyond = server.cli(&[&select[..], &["--yes"]].concat()).await;
    beyond.expect(6);
    has(&beyond.err, &["--over-budget", "argosy node delete gpu-07"]);
    let unasked = server.cli(&[&select[..], &["--over-budget"]].concat()).await;
    unasked.expect(6);
    has(&unasked.err, &["add --yes"]);
    assert_eq!(status(&server, "gpu-00").await, "ACTIVE", "u9: nothing was done");
    let done = server.cli(&[&select[..], &["--yes", "--over-budget"]].concat()).await;
    done.expect(5);
    has(&done.err, &["node gpu-00: draining, deadline in ", "1 of 40 nodes were not draining"]);
    for id in &ids {
        let expected = if id == "gpu-07" { "TERMINATED" } else { "DRAINING" };
        assert_eq!(status(&server, id).await, expected, "{id}");
    }
    let back = server.cli(&["node", "uncordon", "--status", "DRAINING", "--yes"]).await;
    back.expect(0);
    has(&back.err, &["39 nodes uncordoned"]);
    let some = server.cli(&["node", "cordon", "gpu-01", "nobody", "gpu-02"]).await;
    some.expect(3);
    has(
        &some.err,
        &["node gpu-01: cordoned", "node gpu-02: cordoned", "node nobody: not cordoned"],
    );
    let named = server.cli(&["node", "cordon", "gpu-03", "-o", "name"]).await;
    assert!(named.expect(0).starts_with("command/"), "{}", named.out);
}

#[tokio::test]
async fn what_cannot_be_is_refused_with_what_to_do() {
    let server = Setup::embedded().start().await;
    register(&server, &["gpu-17", "gpu-18"]).await;
    let rows: [(i32, &[&str], &str); 18] = [
        (3, &["node", "get", "gpx-17"], "did you mean `gpu-17`?"),
        (3, &["node", "cordon", "zzzzzzzz"], "Register it first"),
        (3, &["node", "events", "zzzzzzzz"], "Register it first"),
        (3, &["node", "watch", "zzzzzzzz"], "Register it first"),
        (3, &["node", "drain", "--pool", "nope", "--reason", "x"], "no node matches"),
        (3, &["why", "node/zzzzzzzz"], "Register it first"),
        (5, &["node", "uncordon", "gpu-17"], "is not cordoned"),
        (5, &["node", "uncordon", "gpu-17", "-o", "json"], "is not cordoned"),
        (5, &["node", "delete", "gpu-17", "--yes"], "argosy why node/gpu-17"),
        (6, &["node", "delete", "gpu-17"], "Forget node gpu-17"),
        (6, &["node", "terminate", "gpu-17", "--reason", "x"], "Terminate node gpu-17"),
        (64, &["node", "terminate", "gpu-17", "--yes"], "needs a --reason"),
        (64, &["node", "drain", "gpu-17", "gpu-18", "--yes"], "needs a --reason"),
        (64, &["node", "diagnose", "gpu-17", "--test", "everything"], "quick, memory"),
        (1, &["node", "drain", "gpu-17", "--drain-for", "30d"], "604800"),
        (1, &["node", "cordon", "gpu-17", "--reason", "a\nb"], "one line of text"),
        (1, &["node", "list", "--search", "colour = 'red'"], "colour"),
        (1, &["node", "list", "--order", "colour"], "colour"),
    ];
    for (code, args, word) in rows {
        let ran = server.cli(args).await;
        assert_eq!(ran.code, Some(code), "{args:?}: {ran:?}");
        assert!(ran.err.contains(word), "{args:?}: {}", ran.err);
        assert_eq!(ran.out, "", "errors go to standard error");
    }
    assert_eq!(status(&server, "gpu-17").await, "ACTIVE");
    let args = ["node", "terminate", "gpu-17", "--reason", "sold", "--yes"];
    server.cli(&args).await.expect(0);
    let gone = server.cli(&["node", "cordon", "gpu-17"]).await;
    gone.expect(5);
    has(&gone.err, &["was terminated by"]);
    let forgotten = server.cli(&["node", "forget", "gpu-17", "--yes"]).await;
    forgotten.expect(0);
    server.cli(&["node", "get", "gpu-17"]).await.expect(3);
}

#[tokio::test]
async fn a_diagnostic_prints_what_the_agent_found() {
    let server = Setup::embedded().start().await;
    let body = json!({ "nodeId": "gpu-1", "agentVersion": "argosy-agent/0.2.0" });
    agent(&server, "RegisterNode", body).await;
    let diagnosing =
        server.cli(&["node", "diagnose", "gpu-1", "--test", "memory", "--seconds", "60"]);
    let working = async {
        let command = await_until("the agent is told", async || {
            let told = agent(&server, "PollCommands", json!({ "nodeId": "gpu-1" })).await;
            told["commands"].as_array().and_then(|commands| commands.first()).cloned()
        })
        .await;
        assert_eq!(text(&command, "/type"), "COMMAND_TYPE_RUN_DIAGNOSTIC");
        assert_eq!(text(&command, "/parameters/test"), "memory");
        assert_eq!(text(&command, "/parameters/seconds"), "60");
        let ack = |state: &str, more: Value| {
            let mut ack = json!({ "commandId": command["id"], "state": state });
            ack.as_object_mut().expect("an object").extend(more.as_object().expect("one").clone());
            json!({ "nodeId": "gpu-1", "ack": ack })
        };
        let half = json!({ "progressPercent": 50 });
        agent(&server, "AckCommand", ack("COMMAND_STATE_RUNNING", half)).await;
        let result = json!({ "passed": true, "gpus": [{ "index": 0, "errors": 0 }] }).to_string();
        let end = json!({ "message": "all memory is fine", "resultJson": result });
        agent(&server, "AckCommand", ack("COMMAND_STATE_COMPLETED", end)).await;
    };
    let (diagnosed, ()) = tokio::join!(diagnosing, working);
    has(diagnosed.expect(0), &["gpu-1:", "passed: true", "errors: 0"]);
    has(&diagnosed.err, &["RUN_DIAGNOSTIC Completed after", "all memory is fine"]);
    let told = server.cli(&["node", "diagnose", "gpu-1", "--no-wait"]).await;
    told.expect(0);
    has(&told.err, &["told to run a diagnostic (command "]);
    let again = server.cli(&["node", "diagnose", "gpu-1", "--no-wait"]).await;
    again.expect(5);
    has(&again.err, &["has not ended"]);
}

#[tokio::test]
async fn j14_nothing_a_node_says_reaches_the_terminal() {
    let server = Setup::embedded().start().await;
    register(&server, &["gpu-1"]).await;
    let hostile = "\u{1b}[2J\u{1b}]0;owned\u{7}a\nnode gpu-1: cordoned\r\u{202e}evil\u{9b}31m";
    let event = json!({
        "gpuIndex": 0, "gpuUuid": "GPU-0", "eventType": "HEALTH_EVENT_TYPE_XID",
        "metrics": { "xid_code": "79", "note": hostile }, "message": hostile,
    });
    let result = json!({
        "checkName": "nvml", "status": "HEALTH_STATUS_UNHEALTHY", "message": hostile,
        "details": { "line": hostile },
    });
    let report = json!({ "nodeId": "gpu-1", "results": [result], "events": [event] });
    let sent = server.post("/navarch.ControlPlaneService/ReportHealth", &report).await;
    assert_eq!(sent.status, 200, "{}", sent.text);
    let lines: [&[&str]; 9] = [
        &["node", "list"],
        &["node", "list", "-o", "wide"],
        &["node", "get", "gpu-1"],
        &["node", "get", "gpu-1", "-o", "json"],
        &["node", "get", "gpu-1", "-o", "yaml"],
        &["node", "events", "gpu-1"],
        &["node", "history", "gpu-1"],
        &["why", "gpu-1"],
        &["command", "list"],
    ];
    for args in lines {
        let ran = server.cli(args).await;
        let said = format!("{}{}", ran.expect(0), ran.err);
        let bad = |c: char| (c.is_control() && c != '\n') || ('\u{202a}'..='\u{202e}').contains(&c);
        assert!(!said.contains(bad), "{args:?}: {said:?}");
        assert!(!said.lines().any(|line| line.starts_with("node gpu-1: cordoned")), "{said:?}");
    }
}

#[tokio::test]
async fn who_may_only_look_cannot_act() {
    let server = Setup::embedded()
        .tokens(json!([
            { "token": "daemon-secret", "name": "gpu-1", "role": "node", "node": "gpu-1" },
            { "token": "vic-secret", "name": "vic", "role": "viewer" },
        ]))
        .token("daemon-secret")
        .start()
        .await;
    register(&server, &["gpu-1"]).await;
    let viewer = |args: &[&str]| {
        let mut command = argosy(server.dir(), args);
        command.env("ARGOSY_SERVER", server.url()).env("ARGOSY_TOKEN", "vic-secret");
        run(command)
    };
    assert_eq!(viewer(&["node", "list", "-o", "name"]).await.expect(0), "node/gpu-1\n");
    viewer(&["why", "gpu-1"]).await.expect(0);
    viewer(&["node", "cordon", "gpu-1"]).await.expect(4);
    viewer(&["pause", "--reason", "x"]).await.expect(4);
    let impostor = json!({ "nodeId": "gpu-2", "provider": "gcp" });
    let refused = server.post("/navarch.ControlPlaneService/RegisterNode", &impostor).await;
    assert_eq!(refused.status, 403, "{}", refused.text);
}
