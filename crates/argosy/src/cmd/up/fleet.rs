//! What the demonstration shows: three clusters, some hundred simulated nodes, a few real agents.

use crate::config::machines::{ProcessProvider, ProcessType, ProviderOf};
use crate::config::{
    BreakerOf, BudgetOf, Config, Duration, FleetNodes, Machines, Nodes, Sentinel, SimulatedCloud,
};
use argosy_api::client::{Client, ClientError, Collection, WriteOptions};
use argosy_api::resource::ResourceCreate;
use reqwest::Method;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// The provider whose machines are agents on this host.
pub(super) const LOCAL: &str = "local";

/// The fewest nodes of the whole: below that there is nothing to see.
pub(super) const NODES_MIN: u16 = 12;

/// The most: a pool has at most a hundred.
pub(super) const NODES_MAX: u16 = 240;

/// Where the agent's program is, if it is where we are.
pub(super) fn agent() -> Option<PathBuf> {
    let agent = std::env::current_exe().ok()?.with_file_name("argosy-agent");
    agent.is_file().then_some(agent)
}

/// The server of a demonstration: as usual, but nobody has to wait an hour to see a drain end.
pub(super) fn config(address: SocketAddr, data_dir: &Path, with_agents: bool) -> Config {
    let seconds = |seconds| Duration::from_signed(jiff::SignedDuration::from_secs(seconds));
    let breaker =
        |percent, at_least| BreakerOf { percent, at_least, window: seconds(60), calm: seconds(60) };
    let budget =
        |percent, at_least, every| BudgetOf { percent, at_least, every: Some(seconds(every)) };
    let nodes = Nodes {
        stream_heartbeat: seconds(2),
        health_check: seconds(10),
        suspect_after: seconds(7),
        unreachable_after: seconds(12),
        act_after: seconds(10),
        warm_up: seconds(10),
        drain_for: seconds(20),
        drain_quiet: seconds(2),
        cordon_grace: seconds(5),
        recover_after: seconds(20),
        budget: budget(10.0, 2, 2),
        breaker: breaker(25.0, 4),
        fleet: FleetNodes {
            budget: budget(10.0, 4, 0),
            zone_budget: budget(20.0, 2, 0),
            breaker: breaker(10.0, 12),
            zone_breaker: breaker(25.0, 8),
            amnesty: seconds(20),
            ..FleetNodes::default()
        },
        ..Nodes::default()
    };
    let type_of = |name: &str, gpu: &str, gpus, price| ProcessType {
        name: name.to_owned(),
        gpu: gpu.to_owned(),
        cpus: 2,
        gpus,
        price_per_hour: Some(price),
    };
    let local = ProcessProvider {
        zones: vec!["bench-a".to_owned(), "bench-b".to_owned()],
        types: vec![
            type_of("bench-8x", "fake:8xB200", 8, 0.0),
            type_of("bench-4x", "fake:4xL40S", 4, 0.0),
        ],
        max_processes: 8,
        end_with_server: true,
        ..ProcessProvider::default()
    };
    let local = with_agents.then(|| (LOCAL.to_owned(), ProviderOf::Process(local)));
    Config {
        listen: address.to_string(),
        data_dir: data_dir.to_owned(),
        simulated_cloud: SimulatedCloud { enabled: true, instant: false },
        providers: local.into_iter().collect(),
        machines: Machines { agent_args: vec!["--allow-inject".to_owned()], ..Machines::default() },
        nodes,
        // Whoever raises a quota sees what comes of it.
        sentinel: Sentinel { backoff_max: seconds(10), ..Sentinel::default() },
        ..Config::default()
    }
}

/// Lets machines take a few seconds to boot: long enough that people see a node cordoned before another takes
/// its place. The cloud forgets it when it is opened again.
pub(super) async fn slow_down(client: &Client) -> Result<(), ClientError> {
    let latency = json!({ "machine": { "min_ms": 4_000, "max_ms": 8_000 } });
    client.send(Method::PUT, "/simulated-cloud/v1/latency", Some(&latency)).await.map(drop)
}

/// Makes what there is to look at. What is there already stays as it is.
pub(super) async fn make(
    client: &Client,
    nodes: u16,
    with_agents: bool,
) -> Result<(), ClientError> {
    let share = |percent: u16| nodes * percent / 100;
    let rented = share(5).max(2);
    // Rented machines are few: the pool below asks for half as many again as there are.
    let quota = json!({ "limit": rented * 8 });
    let place = "/simulated-cloud/v1/quotas/lambda/us-south-1/GPUS";
    client.send(Method::PUT, place, Some(&quota)).await?;
    let clusters = [
        ("atlas", json!({ "provider": "gcp", "region": "us-east1" }), "ml"),
        ("borealis", json!({ "provider": "aws", "region": "us-east-1" }), "research"),
        ("comet", json!({ "provider": "lambda", "region": "us-south-1" }), "platform"),
    ];
    for (name, spec, team) in clusters {
        create(client, Collection::Clusters, name, spec, team).await?;
    }
    let zones = |region: &str, letters: &[&str]| -> Vec<String> {
        letters.iter().map(|letter| format!("{region}{letter}")).collect()
    };
    let (gcp, aws) = (zones("us-east1-", &["b", "c", "d"]), zones("us-east-1", &["b", "c"]));
    let mut pools = vec![
        (
            "atlas",
            "h100",
            json!({ "machineType": "a3-highgpu-8g", "nodeCount": share(40), "zones": gcp }),
            "ml",
        ),
        (
            "atlas",
            "a100",
            json!({ "machineType": "a2-highgpu-8g", "nodeCount": share(25), "zones": gcp }),
            "ml",
        ),
        (
            "borealis",
            "h100",
            json!({ "machineType": "p5.48xlarge", "nodeCount": share(30), "zones": aws }),
            "research",
        ),
        (
            "comet",
            "rented",
            json!({ "machineType": "gpu_8x_h100_sxm5", "nodeCount": rented + rented / 2 }),
            "platform",
        ),
    ];
    if with_agents {
        let bench = |machine_type: &str, count: u16| {
            let local = json!({ "name": LOCAL, "regions": ["local"], "machineType": machine_type });
            json!({ "nodeCount": count, "providers": [local], "zones": ["bench-a", "bench-b"] })
        };
        pools.push(("comet", "bench", bench("bench-8x", 2), "platform"));
        pools.push(("comet", "edge", bench("bench-4x", 1), "platform"));
    }
    for (cluster, name, spec, team) in pools {
        create(client, Collection::NodePools(cluster), name, spec, team).await?;
    }
    Ok(())
}

async fn create(
    client: &Client,
    of: Collection<'_>,
    name: &str,
    spec: Value,
    team: &str,
) -> Result<(), ClientError> {
    let body = ResourceCreate {
        kind: None,
        name: name.to_owned(),
        spec: spec.as_object().cloned().unwrap_or_default(),
        labels: BTreeMap::from([("team".to_owned(), team.to_owned())]),
    };
    match client.create(of, &body, &WriteOptions::default()).await {
        // Left by a start that was interrupted.
        Err(error) if error.status() == Some(409) => Ok(()),
        result => result.map(drop),
    }
}
