//! Navarch's configuration file, as it is.

use super::process::Yard;
use super::*;
use crate::harness::{Setup, argosy, run};

/// A file as its users have it: nothing in it is ours.
const FILE: &str = "\
server:
  address: \"127.0.0.1:50051\"
  heartbeat_interval: 1s
  heartbeat_timeout: 5s
  autoscale_interval: 1s
providers:
  fake: { type: fake, gpu_count: 2 }
pools:
  training:
    provider: fake
    instance_type: h100-8x
    min_nodes: 2
    max_nodes: 4
    cooldown: 1s
    autoscaling: { type: reactive, scale_up_at: 90, scale_down_at: 0 }
    health: { unhealthy_after: 2, auto_replace: true }
    labels: { team: ml }
";

/// The nodes of its pool, once they are in service.
async fn nodes_of_training(yard: &Yard) -> BTreeSet<String> {
    let found = await_until("the declared pool has nodes", async || {
        let nodes = nodes(yard).await;
        let ready = nodes.iter().filter(|node| node["status"] == "ACTIVE");
        let ready: Vec<Value> = ready.filter(|node| node["pool"] == "training").cloned().collect();
        (ready.len() == 2).then_some(ready)
    });
    ids(&found.await)
}

#[tokio::test]
async fn a_file_of_navarch_and_what_it_is_converted_to_start_the_same_fleet() {
    let beside = agent();
    // Its machines run the agent beside the program: one is built there.
    assert!(beside.is_file());
    let setup = Setup::embedded().without_cloud().only_config(FILE);
    let mut yard = Yard::of(setup.start().await, "fake");
    let pool = yard.get("nodepools?name=training").await.expect(200);
    assert_eq!(pool["total"], 1, "{pool:#}");
    let before = nodes_of_training(&yard).await;
    let node = nodes(&yard).await.remove(0);
    assert_eq!(node["gpus"].as_array().map(Vec::len), Some(2), "{node:#}");

    // Our own file of the same goes on with the same fleet.
    let converted = run(argosy(yard.dir(), &["config", "convert", "argosy.yaml"])).await;
    let ours = converted.expect(0).to_owned();
    has(&ours, &["pools:", "training:", "type: process"]);
    yard.kill9();
    yard.edit("argosy.yaml", |_| ours);
    yard.restart().await;
    assert_eq!(nodes_of_training(&yard).await, before);
    assert_eq!(open(&yard).await.len(), 2);

    let path = format!("nodepools/{}", text(&pool, "/items/0/uid"));
    assert_eq!(yard.delete(&path).await.status, 202);
    yard.gone(&path).await;
    assert!(yard.alive().is_empty());
}
