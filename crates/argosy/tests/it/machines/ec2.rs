//! At EC2 and Route 53, as moto's server plays them behind a door that lies where it is told to.
//!
//! What moto makes does not boot. Here every machine that exists there runs the agent's core, told what the
//! machine's own user data tells it.

use super::*;
use crate::harness::{Server, Setup};
use argosy_agent::clock::System;
use argosy_agent::swarm::{Load, Spec, Swarm, Wire};
use argosy_control::clock::Clock;
use argosy_providers::aws::standin::{Booted, IMAGE, REGION, Standin};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

/// How often it is looked what exists, for a machine to boot or to end.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// A server that buys at a stand-in.
struct Account {
    server: Server,
    cloud: Arc<Standin>,
    swarm: Arc<Swarm>,
    _power: JoinSet<()>,
}

impl Account {
    async fn open(cloud: Standin, more: &str) -> Self {
        let endpoint = cloud.url().to_string();
        cloud.create_zone("example.com").await;
        let server = Setup::embedded()
            .without_cloud()
            .config(&format!(
                "providers: {{ ec2: {{ type: aws, region: {REGION}, endpoint: '{endpoint}', image: {IMAGE}, \
                 access_key_id: {{ file: id }}, secret_access_key: {{ file: key }} }} }}\n\
                 machines: {{ server_url: 'http://argosy.example:8080', agent: {{ path: /opt/argosy-agent }}, \
                 sweep_every: 1s }}\n{more}"
            ))
            .file("id", "AKIDEXAMPLE")
            .file("key", "not-a-secret")
            .start()
            .await;
        let wire = Wire::new(&server.url(), None).expect("a wire");
        // Work that leaves at once: the journey is not about waiting for it.
        let load = Load { leaves_within: jiff::SignedDuration::ZERO, ..Load::default() };
        let swarm = Arc::new(Swarm::start(load, Arc::new(System), wire));
        let (cloud, mut power) = (Arc::new(cloud), JoinSet::new());
        power.spawn(supply(cloud.clone(), swarm.clone()));
        Self { server, cloud, swarm, _power: power }
    }

    /// The names of the machines that EC2 has.
    async fn machines(&self) -> BTreeSet<String> {
        self.cloud.machines().await.into_iter().map(|it| it.machine.name).collect()
    }
}

/// Boots what exists, and takes the power of what does not any more.
async fn supply(cloud: Arc<Standin>, swarm: Arc<Swarm>) {
    let mut up = BTreeSet::new();
    let mut looks = tokio::time::interval(LOOK_EVERY);
    loop {
        looks.tick().await;
        let mut there = cloud.machines().await;
        // One that was made this moment is handed its user data in the next.
        there.retain(|it| !it.user_data.is_empty());
        let names: BTreeSet<String> = there.iter().map(|it| it.machine.name.clone()).collect();
        up.difference(&names).for_each(|gone: &String| swarm.kill(gone));
        for booted in there.iter().filter(|it| !up.contains(&it.machine.name)) {
            swarm.boot(spec(booted)).expect("GPUs that can be made up");
        }
        up = names;
    }
}

/// What its user data tells a machine's agent.
fn spec(booted: &Booted) -> Spec {
    let script = &booted.user_data;
    let (before, _) =
        script.split_once("' >'/etc/argosy/agent.yaml.new'").expect("a configuration");
    let (_, config) = before.rsplit_once("printf '%s\\n' '").expect("its text");
    let config: Value = serde_json::from_str(config).expect("JSON");
    assert_eq!(config["servers"], json!(["http://argosy.example:8080"]));
    let word = |name: &str| config[name].as_str().unwrap_or_default().to_owned();
    assert_eq!(word("node_id"), booted.machine.name);
    Spec {
        node_id: word("node_id"),
        boot: 0,
        pool: word("pool"),
        provider: word("provider"),
        region: word("region"),
        zone: word("zone"),
        machine_type: word("instance_type"),
        gpus: 8,
        model: "H100".to_owned(),
        labels: serde_json::from_value(config["labels"].clone()).expect("labels"),
    }
}

fn cluster() -> Value {
    json!({ "provider": "ec2", "region": REGION })
}

#[tokio::test]
async fn journeys_4_and_7_to_10_at_ec2() {
    let account = Account::open(Standin::start(Clock::System).await, "").await;
    let server = &account.server;

    // MVP 4 and full 7: a cluster with its records and its network, and a pool of five.
    let spec = json!({ "nodeCount": 5, "machineType": "p5.48xlarge" });
    let path = make(server, &cluster(), "workers", &spec).await;
    let five = settled(server, &path, 5).await;
    assert_eq!(account.machines().await, five);
    assert_eq!(account.cloud.records("example.com").await.len(), 3);
    assert_eq!(account.cloud.networks().await.len(), 1);

    // Full 8: listed and found.
    let list = server.get("nodepools?labels=workload:none").await.expect(200);
    assert_eq!(list["total"], 0);
    let list = server.get("nodepools?phase=Ready").await.expect(200);
    assert_eq!((&list["total"], &list["items"][0]["name"]), (&json!(1), &json!("workers")));

    // Full 9: eight.
    resize(server, &path, &json!({ "nodeCount": 8, "machineType": "p5.48xlarge" })).await;
    let eight = settled(server, &path, 8).await;
    assert_eq!(account.machines().await, eight);

    // A sick one is replaced.
    let sick = eight.first().expect("eight").clone();
    account.swarm.inject(&sick, "xid:170 gpu:3".parse().expect("a fault")).await.expect("it is up");
    terminated(server, &sick).await;
    let now = settled(server, &path, 8).await;
    assert_eq!(instance(server, &newcomer(&eight, &now)).await["replaces"], json!(sick));
    let steps = walk(server, &sick).await;
    assert!(steps.ends_with(&WALK.map(str::to_owned)), "{steps:?}");
    assert_eq!(account.machines().await, now);

    // Full 10, and the cluster: nothing is left behind.
    delete(server, &path).await;
    let (cluster, _) = path.split_once("/nodepools").expect("a pool's path");
    assert_eq!(server.delete(cluster).await.status, 202);
    server.gone(cluster).await;
    assert_eq!(account.machines().await, BTreeSet::new());
    assert_eq!(account.cloud.records("example.com").await, Vec::<String>::new());
    assert_eq!(account.cloud.networks().await, Vec::<String>::new());
}

/// G1, G2, G3, G5: answers that are lost, errors after the deed, listings behind, too many calls.
#[tokio::test]
async fn no_lie_of_ec2_makes_us_pay_twice_or_lose_a_machine() {
    let cloud = Standin::start(Clock::System).await;
    cloud.trick(|tricks| {
        (tricks.launches_unanswered, tricks.launches_lost) = (2, 1);
        (tricks.launches_with_error, tricks.throttled) = (1, 3);
        tricks.list_lag = Duration::from_secs(2);
    });
    let account = Account::open(cloud, "").await;
    let server = &account.server;
    let spec = json!({ "nodeCount": 5, "machineType": "p5.48xlarge" });
    let path = make(server, &cluster(), "workers", &spec).await;
    let five = settled(server, &path, 5).await;
    assert_eq!(account.machines().await, five, "what exists is what we know");
    assert_eq!(account.cloud.machines().await.len(), 5, "and exists once");
    let all = instances(server, "pool = 'workers'").await;
    assert_eq!(ids(&all), five, "nothing was bought to be returned");

    // Returns that fail after they were done are looked for, and not taken for granted.
    account.cloud.trick(|tricks| {
        (tricks.list_lag, tricks.terminations_with_error) = (Duration::ZERO, 2);
    });
    delete(server, &path).await;
    assert_eq!(account.machines().await, BTreeSet::new());
}
