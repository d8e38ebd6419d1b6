//! On the simulated cloud of a plain server: each machine runs the agent's own core.

use super::*;
use crate::harness::{Server, Setup};

/// A server as people start it to try it: nothing is configured.
async fn plain() -> Server {
    Setup::embedded().only_config("{}").start().await
}

fn gcp() -> Value {
    json!({ "provider": "gcp", "region": "us-east1" })
}

#[tokio::test]
async fn a_pool_of_five_grows_to_eight_replaces_a_sick_node_and_leaves_nothing() {
    let server = plain().await;
    let spec = json!({ "nodeCount": 5, "machineType": "h100-8x" });
    let path = make(&server, &gcp(), "workers", &spec).await;
    let five = settled(&server, &path, 5).await;
    for node in nodes(&server).await {
        assert_eq!(
            (&node["pool"], node["gpus"].as_array().map(Vec::len)),
            (&json!("workers"), Some(8))
        );
    }

    resize(&server, &path, &json!({ "nodeCount": 8 })).await;
    let eight = settled(&server, &path, 8).await;
    assert!(five.is_subset(&eight), "{five:?} {eight:?}");

    // A GPU falls off the bus.
    let sick = five.first().expect("five").clone();
    server.cli(&["cloud", "inject", &sick, "xid:79", "gpu:3"]).await.expect(0);
    let record = terminated(&server, &sick).await;
    let now = settled(&server, &path, 8).await;
    let new = newcomer(&eight, &now);
    assert_eq!((&record["reason"], &record["replaced_by"]), (&json!("Replaced"), &json!(new)));
    assert_eq!(instance(&server, &new).await["replaces"], json!(sick));
    let steps = walk(&server, &sick).await;
    assert!(steps.ends_with(&WALK.map(str::to_owned)), "{steps:?}");
    let why = server.cli(&["why", &sick]).await;
    has(why.expect(0), &["TERMINATED", "Xid 79"]);

    delete(&server, &path).await;
    assert_eq!(server.cloud_machines().await, Vec::<Value>::new());
}

/// A1, B2: whatever was begun is found again and ended, and nothing is bought twice.
#[tokio::test]
async fn a_power_cut_while_it_buys_and_while_it_returns_loses_no_machine() {
    let mut server = plain().await;
    let spec = json!({ "nodeCount": 6, "machineType": "n1-standard-4" });
    let path = make(&server, &gcp(), "workers", &spec).await;
    server.restart().await;
    let six = settled(&server, &path, 6).await;
    let names = |machines: Vec<Value>| -> BTreeSet<String> {
        machines.iter().map(|machine| text(machine, "/name").to_owned()).collect()
    };
    assert_eq!(names(server.cloud_machines().await), six);
    server.restart().await;
    assert_eq!(settled(&server, &path, 6).await, six, "the same as before");

    assert_eq!(server.delete(&path).await.status, 202);
    server.restart().await;
    server.gone(&path).await;
    assert_eq!(open(&server).await, Vec::<Value>::new());
    assert_eq!(server.cloud_machines().await, Vec::<Value>::new());
}

/// F15: what a reboot may mend is rebooted once; the second time another takes its place.
#[tokio::test]
async fn a_fault_that_a_reboot_may_mend_is_rebooted_once_and_then_replaced() {
    let config = "nodes: { recover_after: 0s, budget: { every: 0s } }";
    let server = Setup::embedded().config(config).start().await;
    let spec = json!({ "nodeCount": 3, "machineType": "h100-8x", "cures": ["reboot", "replace"] });
    let path = make(&server, &gcp(), "workers", &spec).await;
    let three = settled(&server, &path, 3).await;
    let sick = three.first().expect("three").clone();
    let inject = async || {
        server.cli(&["cloud", "inject", &sick, "xid:79", "gpu:3"]).await.expect(0);
    };
    inject().await;
    await_until("it was booted again", async || {
        let record = instance(&server, &sick).await;
        let tried = record["tried"].as_array()?.first()?.clone();
        (tried["cure"] == "reboot" && tried["outcome"].is_string()).then_some(())
    })
    .await;
    assert_eq!(settled(&server, &path, 3).await, three, "the same machine, well again");
    inject().await;
    let record = terminated(&server, &sick).await;
    assert_eq!(record["reason"], "Replaced", "{record:#}");
    let now = settled(&server, &path, 3).await;
    assert_eq!(instance(&server, &newcomer(&three, &now)).await["replaces"], json!(sick));
}
