//! Policies as people use them: written in a file, tried, put in force, and judged by; on a real server.

use crate::harness::{Server, Setup};
use serde_json::{Value, json};

/// Navarch's own default, as a file of its format.
const NAVARCH: &str = include_str!("../../src/policy_file/tests/navarch-default.yaml");

const POLICY: &str = "\
name: default
rules:
  - name: off-the-bus
    condition: has(xid.code) && xid.code == 79
    result: unhealthy
  - name: memory-fault
    condition: |
      event.event_type == 'xid' &&
      event.metrics.xid_code == 31
    result: unhealthy
    lasts: 12h
tests:
  - {name: off the bus, xid: 79, expect: {result: unhealthy, rule: off-the-bus}}
  - {name: warm, event: {event_type: thermal, metrics: {temperature: 88}}, expect: healthy}
";

async fn call(server: &Server, method: &str, body: &Value) -> Value {
    let path = format!("/navarch.ControlPlaneService/{method}");
    server.post(&path, body).await.expect(200)
}

/// Registers a node of the pool h100, and reports an Xid on it.
async fn xid(server: &Server, node: &str, code: u32) -> Value {
    let gpus = json!([{ "index": 0, "uuid": format!("GPU-{node}") }]);
    let labels = json!({ "labels": { "pool": "h100" } });
    let machine = json!({ "nodeId": node, "provider": "gcp", "gpus": gpus, "metadata": labels });
    call(server, "RegisterNode", &machine).await;
    let event = json!({
        "gpuIndex": 0, "system": "HEALTH_WATCH_SYSTEM_DRIVER", "eventType": "HEALTH_EVENT_TYPE_XID",
        "metrics": { "xid_code": code.to_string() }, "message": "it happened",
    });
    call(server, "ReportHealth", &json!({ "nodeId": node, "events": [event] })).await["nodeStatus"]
        .take()
}

#[tokio::test]
async fn a_policy_goes_from_a_file_to_the_fleet_and_back() {
    let server = Setup::embedded().file("policy.yaml", POLICY).start().await;
    let cli = async |line: &str| server.cli(&line.split(' ').collect::<Vec<_>>()).await;
    assert_eq!(xid(&server, "gpu-1", 31).await, "NODE_STATUS_ACTIVE");
    assert_eq!(xid(&server, "gpu-2", 79).await, "NODE_STATUS_UNHEALTHY");
    assert_eq!(xid(&server, "gpu-3", 48).await, "NODE_STATUS_UNHEALTHY");

    let listed = cli("policy list -o json").await.json();
    assert_eq!(listed["items"][0]["version"], 0, "{listed:#}");
    let said = cli("policy explain --xid 79 -o json").await.json();
    assert_eq!((&said["severity"], &said["rule"]), (&json!("unhealthy"), &json!("xid-fatal")));
    cli("policy check policy.yaml").await.expect(0);
    cli("policy test policy.yaml").await.expect(0);

    let tried = cli("policy backtest -f policy.yaml -o json").await.json();
    assert_eq!((&tried["events"], &tried["both"]), (&json!(3), &json!(1)), "{tried:#}");
    assert_eq!(tried["only_new"][0]["node_id"], "gpu-1");
    assert_eq!(tried["only_current"][0]["node_id"], "gpu-3");
    assert_eq!(tried["only_current"][0]["event"], "Xid 48 on GPU 0: it happened");

    // Changes are shown, and made only on a yes.
    let shown = cli("policy apply -f policy.yaml --dry-run").await;
    assert!(shown.expect(2).contains("+ memory-fault → unhealthy"), "{}", shown.out);
    cli("policy apply -f policy.yaml").await.expect(6);
    assert_eq!(cli("policy get default -o json").await.json()["version"], 0);
    cli("policy apply -f policy.yaml --yes").await.expect(0);
    let again = cli("policy apply -f policy.yaml --dry-run").await;
    assert!(again.expect(0).contains("is so already"), "{}", again.out);
    assert_eq!(xid(&server, "gpu-1", 31).await, "NODE_STATUS_UNHEALTHY");
    let why = cli("why gpu-1").await;
    assert!(why.expect(0).contains("memory-fault"), "{}", why.out);

    // What is printed can be read again.
    let printed = cli("policy get default -o yaml").await.expect(0).to_owned();
    std::fs::write(server.dir().join("printed.yaml"), printed).unwrap();
    cli("policy apply -f printed.yaml --dry-run").await.expect(0);

    // A bad one is refused with its place, by the program and by the server, and the old one stays.
    let bad = POLICY.replace("event.metrics", "evnt.metrics");
    std::fs::write(server.dir().join("bad.yaml"), bad).unwrap();
    let refused = cli("policy apply -f bad.yaml --yes").await;
    assert_eq!(refused.code, Some(64));
    assert!(refused.err.contains("bad.yaml:9:7: rules[1].condition: unknown variable `evnt`"));
    let rule =
        |condition: &str| json!({ "name": "a", "condition": condition, "result": "unhealthy" });
    let body = json!({ "rules": [rule("true"), rule("true &&\n (")] });
    let refused = server.put("/api/argosy/v1/policies/default", &body).await;
    let errors = refused.expect(400)["errors"].take();
    assert_eq!(errors[0]["field"], "rules[1].name", "{errors:#}");
    assert_eq!(errors[1]["field"], "rules[1].condition");
    assert!(errors[1]["message"].as_str().unwrap().starts_with("line 2, column 3: "), "{errors:#}");
    assert_eq!(cli("policy get default -o json").await.json()["version"], 1);

    let missing = cli("policy delete defautl --yes").await;
    assert_eq!(missing.code, Some(3));
    assert!(missing.err.contains("did you mean `default`?"), "{}", missing.err);
    cli("policy delete default --yes").await.expect(0);
    assert_eq!(cli("policy get default -o json").await.json()["version"], 0);
}

#[tokio::test]
async fn a_pool_may_be_judged_by_navarch_s_own_file() {
    let server = Setup::embedded().file("navarch.yaml", NAVARCH).start().await;
    let cli = async |line: &str| server.cli(&line.split(' ').collect::<Vec<_>>()).await;
    cli("policy check navarch.yaml").await.expect(0);
    cli("policy apply -f navarch.yaml --name h100 --pool h100 --yes").await.expect(0);
    // It condemns for faults of programs, where ours does not.
    assert_eq!(xid(&server, "gpu-1", 31).await, "NODE_STATUS_UNHEALTHY");
    let said = cli("policy explain --xid 31 --node gpu-1 -o json").await.json();
    assert_eq!((&said["policy"], &said["rule"]), (&json!("h100"), &json!("fatal-xid")));
    let said = cli("policy explain --xid 31 -o json").await.json();
    assert_eq!((&said["policy"], &said["severity"]), (&json!("default"), &json!("healthy")));
}

#[tokio::test]
async fn the_configuration_can_bring_a_policy() {
    let config = "nodes: { policy_file: navarch.yaml }";
    let server = Setup::embedded().config(config).file("navarch.yaml", NAVARCH).start().await;
    assert_eq!(xid(&server, "gpu-1", 31).await, "NODE_STATUS_UNHEALTHY");
    let shown = server.cli(&["policy", "get", "-o", "json"]).await.json();
    assert_eq!(
        (shown["version"].clone(), shown["rules"].as_array().unwrap().len()),
        (json!(0), 10)
    );

    let dir = server.dir();
    std::fs::write(dir.join("bad.yaml"), NAVARCH.replace("\"true\"", "tru")).unwrap();
    std::fs::write(dir.join("config.yaml"), "nodes: { policy_file: bad.yaml }\n").unwrap();
    let refused = server.cli(&["config", "check", "config.yaml"]).await;
    assert_eq!(refused.code, Some(64));
    let line = "nodes.policy_file: bad.yaml:55:16: rules[9].condition: unknown variable `tru`";
    assert!(refused.err.contains(line), "{}", refused.err);
}
