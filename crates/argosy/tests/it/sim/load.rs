//! Simulated nodes on the real wire, against the real program.

use crate::harness::{Ran, Server, Setup, argosy, await_until, run};
use serde_json::{Value, json};
use std::process::Stdio;
use tokio::net::TcpListener;
use tokio::process::Child;

const NODES: u64 = 200;

/// A figure of the server's own, since it was started.
async fn metric(server: &Server, name: &str) -> Option<u64> {
    let text = server.get("/metrics").await.text;
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
    line.trim().parse().ok()
}

async fn metric_reaches(server: &Server, name: &str, least: u64) {
    await_until(&format!("{name} reaches {least}"), async || {
        metric(server, name).await.filter(|value| least <= *value)
    })
    .await;
}

async fn known_nodes(server: &Server) -> u64 {
    let list = server.get("/api/argosy/v1/nodes?size=1").await.expect(200);
    list["total"].as_u64().unwrap()
}

/// Begins a load that lasts until somebody interrupts it.
fn begin(server: &Server, flags: &[&str]) -> Child {
    let url = server.url();
    let nodes = NODES.to_string();
    let mut args = vec!["sim", "load", "--server", &url, "--nodes", &nodes, "--ramp", "1s"];
    args.extend(["--duration", "10m", "-o", "json"]);
    args.extend(flags);
    let mut command = argosy(server.dir(), &args);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// Presses Ctrl-C, and waits for what is printed then.
async fn interrupt(load: Child) -> Ran {
    let id = load.id().unwrap().to_string();
    let sent = std::process::Command::new("kill").args(["-s", "INT", &id]).status();
    assert!(sent.unwrap().success());
    let output = load.wait_with_output().await.unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Ran { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

fn report(ran: &Ran, code: i32) -> Value {
    serde_json::from_str(ran.expect(code)).unwrap_or_else(|error| panic!("{error}: {}", ran.out))
}

/// Percentiles are there, in order.
fn timed(report: &Value, turn: &str, least: u64) {
    let times = &report["latency_ms"][turn];
    assert!(least <= times["count"].as_u64().unwrap_or(0), "{turn}: {report:#}");
    let at = |name: &str| times[name].as_f64().unwrap();
    assert!(0.0 < at("p50") && at("p50") <= at("p99"), "{times}");
    assert!(at("p99") <= at("p999") && at("p999") <= at("max"), "{times}");
}

#[tokio::test]
async fn nodes_on_streams_come_back_to_a_server_that_was_killed_and_are_forgotten_at_the_end() {
    let mut server = Setup::embedded().start().await;
    let flags = ["--interval", "1s", "--report-interval", "5s", "--faults-per-hour", "7200"];
    let load = begin(&server, &[&flags[..], &["--max-errors", "100000"]].concat());
    metric_reaches(&server, "argosy_attached", NODES).await;
    metric_reaches(&server, "argosy_node_heartbeats_total", 2 * NODES).await;
    metric_reaches(&server, "argosy_health_reports_total", NODES).await;
    assert_eq!(known_nodes(&server).await, NODES);
    let page = server.get("/api/argosy/v1/nodes?size=1").await.expect(200);
    assert_eq!(page["items"][0]["gpus"].as_array().map(Vec::len), Some(8), "{page:#}");
    server.restart().await;
    metric_reaches(&server, "argosy_attached", NODES).await;
    metric_reaches(&server, "argosy_node_heartbeats_total", 2 * NODES).await;

    let report = report(&interrupt(load).await, 130);
    for (name, expected) in [
        ("registered", json!(NODES)),
        ("interrupted", json!(true)),
        ("wire", json!("argosy")),
        ("forgotten", json!(NODES)),
        ("left_because", json!(null)),
    ] {
        assert_eq!(report[name], expected, "{name}: {report:#}");
    }
    // The server counts a stream before the node that asked for it has read the first word on it: at the moment of
    // Ctrl-C a few may still be about to.
    for name in ["connected", "reconnects"] {
        let count = report[name].as_u64().unwrap();
        assert!((NODES * 9 / 10..=NODES).contains(&count), "{name}: {report:#}");
    }
    // Each lost its stream once; how often it then knocked in vain is chance.
    let errors = report["errors"].as_u64().unwrap();
    let ended = report["errors_by_kind"]["ended"]["count"].as_u64().unwrap_or(0);
    assert!(NODES <= errors && 0 < ended, "{report:#}");
    assert!(4 * NODES <= report["heartbeats"].as_u64().unwrap(), "{report:#}");
    assert!(50.0 < report["heartbeats_per_second"].as_f64().unwrap(), "{report:#}");
    assert!(0 < report["faults"].as_u64().unwrap(), "{report:#}");
    timed(&report, "hello", 2 * NODES);
    timed(&report, "registration", NODES);
    timed(&report, "report", NODES);
    assert!(report["latency_ms"].get("heartbeat").is_none(), "streams answer none");
    assert_eq!(known_nodes(&server).await, 0);
}

#[tokio::test]
async fn nodes_by_calls_come_back_to_a_server_that_was_killed_and_stay_if_they_are_to() {
    let mut server = Setup::embedded().start().await;
    let flags = ["--wire", "navarch", "--rate", "200", "--report-interval", "5s", "--keep"];
    let load = begin(&server, &[&flags[..], &["--max-errors", "100000"]].concat());
    metric_reaches(&server, "argosy_node_heartbeats_total", 2 * NODES).await;
    metric_reaches(&server, "argosy_health_reports_total", NODES).await;
    let address = server.url().trim_start_matches("http://").to_owned();
    server.kill9();
    // They call once a second: a server that is back before that was never missed.
    let door =
        await_until("the port is free", async || TcpListener::bind(&address).await.ok()).await;
    door.accept().await.unwrap();
    drop(door);
    server.restart().await;
    metric_reaches(&server, "argosy_node_heartbeats_total", 5 * NODES).await;

    let report = report(&interrupt(load).await, 130);
    for (name, expected) in [
        ("registered", json!(NODES)),
        ("connected", json!(NODES)),
        ("wire", json!("navarch")),
        ("forgotten", json!(0)),
    ] {
        assert_eq!(report[name], expected, "{name}: {report:#}");
    }
    // Only those that called while nobody was there noticed it.
    let reconnects = report["reconnects"].as_u64().unwrap();
    let unavailable = report["errors_by_kind"]["unavailable"]["count"].as_u64().unwrap_or(0);
    assert!(0 < reconnects && reconnects <= unavailable.min(NODES), "{report:#}");
    timed(&report, "registration", NODES);
    timed(&report, "heartbeat", 2 * NODES);
    timed(&report, "report", NODES);
    assert_eq!(known_nodes(&server).await, NODES);
}

#[tokio::test]
async fn a_load_ends_by_itself_with_a_table_or_a_document() {
    let server = Setup::embedded().start().await;
    let short = ["sim", "load", "--nodes", "5", "--ramp", "0s", "--duration", "2s"];
    let ran = server.cli(&[&short[..], &["--interval", "1s"]].concat()).await;
    let table = ran.expect(0);
    for part in ["nodes registered            5", "P999", "streams answer no heartbeats"] {
        assert!(table.contains(part), "{part}: {table}");
    }
    let json = ["--wire", "navarch", "--encoding", "json", "--interval", "100ms", "-o", "json"];
    let ran = server.cli(&[&short[..], &json[..]].concat()).await;
    let report = report(&ran, 0);
    assert_eq!((&report["errors"], &report["forgotten"]), (&json!(0), &json!(5)), "{report:#}");
    assert_eq!(report["interrupted"], false);
    // On a machine that is busy, fewer than the ten a second that each was to send.
    assert!(5 <= report["heartbeats"].as_u64().unwrap(), "{report:#}");
}

#[tokio::test]
async fn what_cannot_be_measured_is_said_by_the_exit_code() {
    let server = Setup::embedded()
        .tokens(json!([
            { "token": "fleet-secret", "name": "fleet", "role": "node" },
            { "token": "vic-secret", "name": "vic", "role": "viewer" },
        ]))
        .token("fleet-secret")
        .start()
        .await;
    let load = async |token: &str, flags: &[&str]| {
        let short = ["sim", "load", "--nodes", "3", "--ramp", "0s", "--duration", "2s"];
        let mut command = argosy(server.dir(), &[&short[..], flags].concat());
        command.env("ARGOSY_SERVER", server.url()).env("ARGOSY_TOKEN", token);
        run(command).await
    };
    for wire in ["argosy", "navarch"] {
        let refused = load("vic-secret", &["--wire", wire]).await;
        refused.expect(4);
        assert!(refused.err.contains("takes none of the nodes"), "{}", refused.err);
        let refused = load("nobody", &["--wire", wire]).await;
        refused.expect(4);
    }
    // A node's credential cannot make the server forget nodes; that is said, and is no error of the load.
    let ran = load("fleet-secret", &["-o", "json"]).await;
    let report = report(&ran, 0);
    assert_eq!((&report["registered"], &report["forgotten"]), (&json!(3), &json!(0)), "{report:#}");
    assert!(report["left_because"].is_string(), "{report:#}");
    assert!(ran.err.contains("3 nodes stay known to the server"), "{}", ran.err);

    let nobody = ["sim", "load", "--server", "http://127.0.0.1:1"];
    let ran = run(argosy(server.dir(), &nobody)).await;
    ran.expect(7);
    let ran = run(argosy(server.dir(), &["sim", "load", "--nodes", "1000000000"])).await;
    ran.expect(64);
    assert!(ran.err.contains("from 1 to 100000 nodes"), "{}", ran.err);
}
