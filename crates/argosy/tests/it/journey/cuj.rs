//! The critical user journeys of the node plane, CUJ-1 to CUJ-6, through the real door on Navarch's wire,
//! on both stores; and what a power cut must not take away from them.

use crate::harness::{Api, Setup, await_until, subset};
use reqwest::Method;
use serde_json::{Value, json};

/// Makes the two tests of each journey.
macro_rules! on_both_stores {
    ($($name:ident),+ $(,)?) => {$(
        mod $name {
            use crate::harness::{Engine, Profile, Setup};

            #[tokio::test]
            async fn embedded() {
                super::$name(Setup::new(Engine::Embedded, Profile::Full)).await;
            }

            #[tokio::test]
            async fn postgres() {
                super::$name(Setup::new(Engine::Postgres, Profile::Full)).await;
            }
        }
    )+};
}

on_both_stores! {
    cuj_1_node_registration_and_configuration,
    cuj_2_heartbeat_and_liveness,
    cuj_3_health_check_reporting,
    cuj_4_command_issuance_and_execution,
    cuj_5_full_node_lifecycle,
    cuj_6_a_thousand_nodes_at_once,
    a_power_cut_loses_no_cordon_no_drain_and_no_pause,
}

/// Calls a method of Navarch's service as JSON.
async fn call(api: &Api, method: &str, body: &Value) -> (u16, Value) {
    let path = format!("/navarch.ControlPlaneService/{method}");
    let reply = api.send(api.request(Method::POST, &path).json(body)).await;
    (reply.status, reply.json())
}

#[track_caller]
fn ok((status, answer): (u16, Value)) -> Value {
    assert_eq!(status, 200, "{answer:#}");
    answer
}

async fn register(api: &Api, node: &str) -> Value {
    let gpu = |index: usize| {
        json!({
            "index": index,
            "uuid": format!("GPU-{node}-{index}"),
            "name": "NVIDIA H100 80GB HBM3",
            "memoryTotal": "85899345920",
        })
    };
    let body = json!({
        "nodeId": node,
        "provider": "gcp",
        "region": "us-central1",
        "zone": "us-central1-a",
        "instanceType": "a3-highgpu-8g",
        "gpus": (0..8).map(gpu).collect::<Vec<_>>(),
        "metadata": { "hostname": node, "labels": { "pool": "training" } },
    });
    ok(call(api, "RegisterNode", &body).await)
}

async fn node(api: &Api, node: &str) -> Value {
    ok(call(api, "GetNode", &json!({ "nodeId": node })).await)["node"].take()
}

async fn status(api: &Api, of: &str) -> String {
    let status = node(api, of).await["status"].take();
    let word = status.as_str().unwrap_or("NODE_STATUS_UNKNOWN");
    word.trim_start_matches("NODE_STATUS_").to_owned()
}

async fn report(api: &Api, node: &str, check: &str, health: &str) -> String {
    let result = json!({ "checkName": check, "status": format!("HEALTH_STATUS_{health}") });
    let body = json!({ "nodeId": node, "results": [result] });
    let answer = ok(call(api, "ReportHealth", &body).await);
    assert_eq!(answer["acknowledged"], true);
    answer["nodeStatus"].as_str().unwrap_or_default().trim_start_matches("NODE_STATUS_").to_owned()
}

async fn issue(api: &Api, node: &str, kind: &str) -> String {
    let body = json!({
        "nodeId": node,
        "commandType": format!("NODE_COMMAND_TYPE_{kind}"),
        "parameters": { "reason": "a journey" },
    });
    let answer = ok(call(api, "IssueCommand", &body).await);
    answer["commandId"].as_str().expect("an id").to_owned()
}

/// The types of the commands the node fetches now.
async fn fetch(api: &Api, node: &str) -> Vec<String> {
    let answer = ok(call(api, "GetNodeCommands", &json!({ "nodeId": node })).await);
    let commands = answer["commands"].as_array().cloned().unwrap_or_default();
    let kind = |command: &Value| command["type"].as_str().expect("a type").to_owned();
    let kinds = commands.iter().map(kind);
    kinds.map(|kind| kind.trim_start_matches("NODE_COMMAND_TYPE_").to_owned()).collect()
}

async fn command(api: &Api, id: &str) -> Value {
    api.get(&format!("/api/argosy/v1/commands/{id}")).await.expect(200)
}

async fn cuj_1_node_registration_and_configuration(setup: Setup) {
    let server = setup.start().await;
    let answer = register(&server, "gpu-1").await;
    let config = json!({
        "healthCheckIntervalSeconds": 60,
        "heartbeatIntervalSeconds": 30,
        "enabledHealthChecks": ["boot", "nvml", "xid"],
    });
    assert_eq!((&answer["success"], &answer["config"]), (&json!(true), &config));
    let stored = node(&server, "gpu-1").await;
    let expected =
        json!({ "nodeId": "gpu-1", "status": "NODE_STATUS_ACTIVE", "zone": "us-central1-a" });
    subset(&stored, &expected);
    assert_eq!(stored["gpus"].as_array().map(Vec::len), Some(8));

    let (status, error) = call(&server, "RegisterNode", &json!({ "provider": "gcp" })).await;
    let refusal = json!({ "code": "invalid_argument", "message": "node_id is required" });
    assert_eq!((status, error), (400, refusal));
    // A second registration updates the record, and is not a second node.
    let body = json!({ "nodeId": "gpu-1", "provider": "gcp", "instanceType": "a3-megagpu-8g" });
    ok(call(&server, "RegisterNode", &body).await);
    subset(&node(&server, "gpu-1").await, &json!({ "instanceType": "a3-megagpu-8g" }));
    let nodes = server.get("/api/argosy/v1/nodes").await.expect(200);
    assert_eq!(nodes["total"], 1);
}

async fn cuj_2_heartbeat_and_liveness(setup: Setup) {
    // Nobody is taken for lost in the first minutes after a start; here that would be a long test.
    let limits = "nodes: { heartbeat: 1s, stream_heartbeat: 1s, suspect_after: 2s, unreachable_after: 3s, fleet: { amnesty: 0s } }";
    let server = setup.config(limits).start().await;
    let body = json!({ "nodeId": "nobody" });
    let (status_code, error) = call(&server, "SendHeartbeat", &body).await;
    assert_eq!((status_code, &error["code"]), (404, &json!("not_found")));
    let message = error["message"].as_str().unwrap_or_default();
    assert!(message.starts_with("node not found: nobody"), "{message}");

    for name in ["gpu-1", "gpu-2", "gpu-3"] {
        register(&server, name).await;
    }
    let beat = async |name: &str| {
        let gpu = json!({ "gpuIndex": 0, "temperature": 61, "utilizationPercent": 97.5 });
        let metrics = json!({ "cpuUsagePercent": 12.5, "gpuMetrics": [gpu] });
        let body = json!({ "nodeId": name, "metrics": metrics });
        assert_eq!(
            ok(call(&server, "SendHeartbeat", &body).await),
            json!({ "acknowledged": true })
        );
    };
    beat("gpu-1").await;
    let first = node(&server, "gpu-1").await["lastHeartbeat"].take();
    beat("gpu-1").await;
    let second = node(&server, "gpu-1").await["lastHeartbeat"].take();
    assert!(first.as_str() < second.as_str(), "{first} {second}");
    let shown = server.get("/api/argosy/v1/nodes/gpu-1").await.expect(200);
    assert_eq!(shown["gpus"][0]["temperature"], 61, "{shown:#}");

    // One of three falls silent; the others go on.
    let lost = async || {
        beat("gpu-2").await;
        beat("gpu-3").await;
        (status(&server, "gpu-1").await == "UNHEALTHY").then_some(())
    };
    await_until("gpu-1 is missed", lost).await;
    let shown = server.get("/api/argosy/v1/nodes/gpu-1").await.expect(200);
    assert_eq!(shown["liveness"], "Unreachable");
    let back = async || {
        beat("gpu-1").await;
        (status(&server, "gpu-1").await == "ACTIVE").then_some(())
    };
    await_until("gpu-1 is back", back).await;
}

async fn cuj_3_health_check_reporting(setup: Setup) {
    let server = setup.start().await;
    register(&server, "gpu-1").await;
    for check in ["boot", "nvml", "xid"] {
        assert_eq!(report(&server, "gpu-1", check, "HEALTHY").await, "ACTIVE");
    }
    subset(&node(&server, "gpu-1").await, &json!({ "healthStatus": "HEALTH_STATUS_HEALTHY" }));
    assert_eq!(report(&server, "gpu-1", "nvml", "DEGRADED").await, "ACTIVE");
    let degraded =
        json!({ "status": "NODE_STATUS_ACTIVE", "healthStatus": "HEALTH_STATUS_DEGRADED" });
    subset(&node(&server, "gpu-1").await, &degraded);
    assert_eq!(report(&server, "gpu-1", "xid", "UNHEALTHY").await, "UNHEALTHY");
    let sick =
        json!({ "status": "NODE_STATUS_UNHEALTHY", "healthStatus": "HEALTH_STATUS_UNHEALTHY" });
    subset(&node(&server, "gpu-1").await, &sick);
    let (code, error) = call(&server, "ReportHealth", &json!({ "nodeId": "nobody" })).await;
    assert_eq!((code, &error["code"]), (404, &json!("not_found")));
}

async fn cuj_4_command_issuance_and_execution(setup: Setup) {
    let server = setup.start().await;
    register(&server, "gpu-1").await;
    let id = issue(&server, "gpu-1", "CORDON").await;
    subset(&command(&server, &id).await, &json!({ "state": "pending", "reason": "a journey" }));
    assert_eq!(fetch(&server, "gpu-1").await, ["CORDON"]);
    subset(&command(&server, &id).await, &json!({ "state": "acknowledged" }));
    assert_eq!(status(&server, "gpu-1").await, "CORDONED");
    // The daemon runs commands before it polls again.
    assert_eq!(fetch(&server, "gpu-1").await, Vec::<String>::new());
    subset(&command(&server, &id).await, &json!({ "state": "completed" }));

    for kind in ["RUN_DIAGNOSTIC", "DRAIN", "TERMINATE"] {
        issue(&server, "gpu-1", kind).await;
        assert_eq!(fetch(&server, "gpu-1").await, [kind]);
    }
    assert_eq!(status(&server, "gpu-1").await, "TERMINATED");
    let body = json!({ "nodeId": "gpu-1", "commandType": 77 });
    let (code, error) = call(&server, "IssueCommand", &body).await;
    assert_eq!((code, &error["code"]), (400, &json!("invalid_argument")));
}

async fn cuj_5_full_node_lifecycle(setup: Setup) {
    let server = setup.config("nodes: { recover_after: 0s }").start().await;
    register(&server, "gpu-1").await;
    assert_eq!(status(&server, "gpu-1").await, "ACTIVE");
    assert_eq!(report(&server, "gpu-1", "nvml", "HEALTHY").await, "ACTIVE");

    // The control plane issues the cordon by itself; the node receives it.
    assert_eq!(report(&server, "gpu-1", "nvml", "UNHEALTHY").await, "UNHEALTHY");
    let told = async || (fetch(&server, "gpu-1").await == ["CORDON"]).then_some(());
    await_until("the node is told to cordon", told).await;
    assert_eq!(status(&server, "gpu-1").await, "CORDONED");
    // And takes it back when the node is well again.
    report(&server, "gpu-1", "nvml", "HEALTHY").await;
    let active = async || (status(&server, "gpu-1").await == "ACTIVE").then_some(());
    await_until("the node is back in service", active).await;

    issue(&server, "gpu-1", "CORDON").await;
    let drain = issue(&server, "gpu-1", "DRAIN").await;
    assert_eq!(status(&server, "gpu-1").await, "DRAINING");
    assert!(command(&server, &drain).await["deadline"].is_string());
    issue(&server, "gpu-1", "TERMINATE").await;
    assert_eq!(status(&server, "gpu-1").await, "TERMINATED");
    let body = json!({ "nodeId": "gpu-1" });
    let (code, error) = call(&server, "RegisterNode", &body).await;
    assert_eq!((code, &error["code"]), (400, &json!("failed_precondition")), "{error}");

    let why = server.get("/api/argosy/v1/nodes/gpu-1/why").await.expect(200);
    let summary = why["summary"].as_str().expect("a summary");
    assert!(summary.contains("TERMINATED"), "{summary}");
}

async fn cuj_6_a_thousand_nodes_at_once(setup: Setup) {
    let server = setup.start().await;
    let names: Vec<String> = (0..1000).map(|number| format!("gpu-{number:04}")).collect();
    let api: &Api = &server;
    let life = async |name: &String| {
        register(api, name).await;
        let sick = name.ends_with('7');
        report(api, name, "nvml", if sick { "DEGRADED" } else { "HEALTHY" }).await;
    };
    for some in names.chunks(100) {
        futures_util::future::join_all(some.iter().map(life)).await;
    }
    issue(api, "gpu-0500", "CORDON").await;
    let all = ok(call(api, "ListNodes", &json!({})).await);
    let nodes = all["nodes"].as_array().expect("nodes");
    let ids: std::collections::BTreeSet<_> =
        nodes.iter().filter_map(|node| node["nodeId"].as_str()).collect();
    assert_eq!((nodes.len(), ids.len()), (1000, 1000));
    let with = |member: &str, word: &str| {
        nodes.iter().filter(|node| node[member].as_str() == Some(word)).count()
    };
    assert_eq!(with("status", "NODE_STATUS_CORDONED"), 1);
    assert_eq!(with("healthStatus", "HEALTH_STATUS_DEGRADED"), 100);
    let cordoned = json!({ "status": "NODE_STATUS_CORDONED" });
    let filtered = ok(call(api, "ListNodes", &cordoned).await);
    assert_eq!(filtered["nodes"][0]["nodeId"], "gpu-0500");
}

async fn a_power_cut_loses_no_cordon_no_drain_and_no_pause(setup: Setup) {
    let mut server = setup.start().await;
    for name in ["gpu-1", "gpu-2", "gpu-3"] {
        register(&server, name).await;
    }
    issue(&server, "gpu-1", "CORDON").await;
    let drain = issue(&server, "gpu-2", "DRAIN").await;
    let deadline = command(&server, &drain).await["deadline"].take();
    let pause = json!({ "reason": "a bad driver was pushed" });
    assert!(matches!(server.put("/api/argosy/v1/safety/pause", &pause).await.status, 200 | 201));
    assert_eq!(report(&server, "gpu-3", "nvml", "UNHEALTHY").await, "UNHEALTHY");

    server.restart().await;
    assert_eq!(status(&server, "gpu-1").await, "CORDONED");
    assert_eq!(status(&server, "gpu-2").await, "DRAINING");
    // F7: the same deadline goes on; F6: a daemon that starts again changes nothing of it.
    assert_eq!(command(&server, &drain).await["deadline"], deadline);
    register(&server, "gpu-2").await;
    assert_eq!(status(&server, "gpu-2").await, "DRAINING");
    assert_eq!(fetch(&server, "gpu-2").await, ["DRAIN"]);
    // What was sick still is, and nobody acts on it until somebody says so.
    assert_eq!(status(&server, "gpu-3").await, "UNHEALTHY");
    assert_eq!(fetch(&server, "gpu-3").await, Vec::<String>::new());
    assert_eq!(server.delete("/api/argosy/v1/safety/pause").await.status, 200);
    let told = async || (fetch(&server, "gpu-3").await == ["CORDON"]).then_some(());
    await_until("the pause is over", told).await;
}
