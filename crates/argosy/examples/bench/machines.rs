//! Machines: a pool from zero to Ready, a fault to its replacement, the autoscaler and the sweep.

use crate::figures::Figures;
use crate::http::Connection;
use crate::now;
use crate::server::{Adapters, Home, Server};
use anyhow::{Context, Result, bail};
use argosy_core::autoscale::{
    Autoscaling, History, Metrics, PoolView, RawMetrics, Sample, recommend,
};
use argosy_core::id::ResourceId;
use argosy_core::instance::{Instance, InstanceId};
use argosy_core::inventory::{Known, Listing, ProviderBook, compare};
use argosy_core::machine::{Abilities, Machine, MachineId, MachineState, Order};
use argosy_core::node::NodeId;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::hint::black_box;
use std::path::Path;
use std::time::Duration;
use uuid::Uuid;

/// How much is measured.
pub(crate) struct MachineSizes {
    nodes: u32,
    faults: u32,
    pools: u32,
    instances: u32,
}

impl MachineSizes {
    pub(crate) const FULL: Self =
        Self { nodes: 1000, faults: 100, pools: 1000, instances: 100_000 };
    pub(crate) const QUICK: Self = Self { nodes: 100, faults: 10, pools: 100, instances: 10_000 };
}

/// A cloud in which there is room, and a node plane that may act on as many as there are.
const ROOM: &str = "
catalog:
  nodes_max: 100000
  providers:
    gcp:
      display: GCP
      regions: [us-east1]
      machine_types: { n1-standard-4: { cpus: 4 } }
nodes:
  budget: { percent: 100, at_least: 1000000, every: 0s }
  breaker: { percent: 100, at_least: 1000000 }
  fleet:
    budget: { percent: 100, at_least: 1000000 }
    zone_budget: { percent: 100, at_least: 1000000 }
    breaker: { percent: 100, at_least: 1000000 }
    zone_breaker: { percent: 100, at_least: 1000000 }
";

/// A pool on the simulated cloud: from nothing to all nodes registered and well, then one fault after another.
pub(crate) async fn pool(
    program: &Path,
    home: &Home,
    sizes: &MachineSizes,
    figures: &mut Figures,
) -> Result<()> {
    let server = Server::start_with(program, home, Adapters::Instant, ROOM).await?;
    let mut asks = Connection::open(server.port).await?;
    let quota = json!({ "limit": 1_000_000_000, "used_by_others": 0 }).to_string();
    asks.cloud("PUT", "/quotas/gcp/us-east1/CPUS", &quota).await?;
    let cluster = json!({ "name": "bench", "spec": { "provider": "gcp", "region": "us-east1" } });
    let made = asks.ask("POST", "/clusters", &cluster.to_string(), 201).await?;
    let made: Value = serde_json::from_slice(&made)?;
    let cluster = format!("/clusters/{}", made.get("id").and_then(Value::as_str).context("an id")?);
    until_ready(&mut asks, &cluster).await?;
    let spec = json!({ "nodeCount": sizes.nodes, "machineType": "n1-standard-4" });
    let body = json!({ "name": "pool", "spec": spec }).to_string();
    let (cpu, began) = (server.cpu()?, now());
    asks.ask("POST", &format!("{cluster}/nodepools"), &body, 201).await?;
    until_ready(&mut asks, &format!("{cluster}/nodepools/pool")).await?;
    figures.set("pool.ready", began.elapsed().as_secs_f64() * 1e3);
    let each = (server.cpu()? - cpu).as_secs_f64() * 1e6 / f64::from(sizes.nodes);
    figures.set("pool.cpu", each);
    figures.set("pool.memory", server.resident_bytes()? / 1e6);
    faults(&mut asks, sizes, figures).await
}

/// Breaks one node after another, and waits for its replacement to be ordered.
async fn faults(asks: &mut Connection, sizes: &MachineSizes, figures: &mut Figures) -> Result<()> {
    let list = asks.argosy("/instances?search=state%3D'Running'&size=1000").await?;
    let items = list.get("items").and_then(Value::as_array).context("instances")?;
    let nodes: Vec<String> =
        items.iter().filter_map(|item| item.get("id")?.as_str()).map(str::to_owned).collect();
    let mut times = Vec::new();
    for node in nodes.iter().take(sizes.faults as usize) {
        let event = json!({
            "eventType": "HEALTH_EVENT_TYPE_XID", "gpuIndex": 0,
            "metrics": { "xid_code": "79" }, "message": "GPU has fallen off the bus",
        });
        let report = json!({ "nodeId": node, "events": [event] }).to_string();
        let began = now();
        asks.rpc("/navarch.ControlPlaneService/ReportHealth", &report).await?;
        let path = format!("/instances?search=replaces%3D'{node}'");
        loop {
            let found = asks.argosy(&path).await?;
            let items = found.get("items").and_then(Value::as_array);
            if items.is_some_and(|items| !items.is_empty()) {
                break;
            }
            if Duration::from_secs(60) < began.elapsed() {
                bail!("no replacement was ordered for {node}");
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        times.push(began.elapsed());
    }
    figures.times("replace", times);
    Ok(())
}

async fn until_ready(asks: &mut Connection, path: &str) -> Result<()> {
    let began = now();
    loop {
        let found: Value = serde_json::from_slice(&asks.ask("GET", path, "", 200).await?)?;
        if found.pointer("/status/phase").is_some_and(|phase| phase == "Ready") {
            return Ok(());
        }
        if Duration::from_secs(300) < began.elapsed() {
            bail!("{path} is not Ready: {found:#}");
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// How many pools an autoscaler judges, on one core: utilization and a forecast from two weeks, the larger.
pub(crate) fn autoscaler(sizes: &MachineSizes, figures: &mut Figures) -> Result<()> {
    let policy = json!({
        "type": "composite", "mode": "max",
        "policies": [{ "type": "reactive" }, { "type": "predictive" }],
    });
    let autoscaling = Autoscaling::parse(&policy, "spec.autoscaling")
        .map_err(|errors| anyhow::anyhow!("{errors:?}"))?;
    let end = Timestamp::from_second(1_790_000_000)?;
    let sample = |index: i64| {
        let at = end.checked_sub(SignedDuration::from_mins(5 * (4032 - index)))?;
        let wave = f64::from(u16::try_from(index % 288)?) / 288.0;
        let utilization = Some(50.0 + 30.0 * (wave * std::f64::consts::TAU).sin());
        anyhow::Ok(Sample { at, nodes: 10, utilization, pending_jobs: None, queue_depth: None })
    };
    let history: Vec<Sample> = (0..4032).map(sample).collect::<Result<_>>()?;
    let raw = RawMetrics { at: Some(end), utilization: Some(77.0), ..RawMetrics::default() };
    let (metrics, _) = Metrics::plausible(raw);
    let metrics = Metrics { history: History::from(history), ..metrics };
    let began = now();
    for index in 0..sizes.pools {
        let view = PoolView {
            name: "pool",
            wanted: 10 + index % 5,
            ready: 10,
            min: 1,
            max: 100,
            metrics: &metrics,
            last_scaled: None,
        };
        black_box(recommend(&autoscaling, black_box(&view), end));
    }
    figures.set("autoscale.rate", f64::from(sizes.pools) / began.elapsed().as_secs_f64());
    Ok(())
}

/// One listing of a large account held against our records.
pub(crate) fn sweep(sizes: &MachineSizes, figures: &mut Figures) -> Result<()> {
    let at = Timestamp::from_second(1_790_000_000)?;
    let installation = Uuid::from_u128(7);
    let pool = ResourceId::new(Uuid::from_u128(9));
    let mut records = Vec::new();
    let mut machines = Vec::new();
    for index in 0..sizes.instances {
        let id = InstanceId::parse(&format!("pool-{index:08}"))
            .map_err(|error| anyhow::anyhow!(error.message))?;
        let order = Order {
            provider: "aws".to_owned(),
            region: "us-east-1".to_owned(),
            zone: String::new(),
            machine_type: "p5.48xlarge".to_owned(),
            spot: false,
            image: String::new(),
            price_per_hour: Some(98.0),
        };
        let token = Uuid::from_u128(u128::from(index));
        let record = Instance::new(
            id,
            "acme".to_owned(),
            pool,
            "pool",
            index,
            token,
            order,
            String::new(),
            None,
            at,
        );
        let purchase = record.purchase(installation, BTreeMap::new());
        let machine = Machine {
            id: MachineId::new(format!("i-{index:017x}")),
            name: record.id.to_string(),
            state: MachineState::Running,
            tags: purchase.tags,
            region: "us-east-1".to_owned(),
            zone: "us-east-1a".to_owned(),
            machine_type: "p5.48xlarge".to_owned(),
            spot: false,
            created_at: Some(at),
            internal_ip: String::new(),
            external_ip: String::new(),
            notice: None,
        };
        let node =
            NodeId::parse(record.id.as_str()).map_err(|error| anyhow::anyhow!(error.message))?;
        let record = record.answered(Ok(&machine), at);
        records.push(record.registered(&node, at).unwrap_or(record));
        machines.push(machine);
    }
    let book = ProviderBook { name: "aws".to_owned(), ..ProviderBook::default() };
    let known = Known {
        heard: &|_| false,
        installation,
        instances: records.iter().collect(),
        orphans: Vec::new(),
        book: &book,
        pool: &|_| None,
        price: &|_| Some(98.0),
    };
    let listing = Listing { provider: "aws", machines: &machines, began_at: at, first: false };
    let list_lag = SignedDuration::from_secs(60);
    let abilities =
        Abilities { tokens: true, tags: true, reboot: true, console: true, spot: true, list_lag };
    let began = now();
    let found = compare(black_box(&listing), &known, &abilities, at);
    figures.set("sweep.ms", began.elapsed().as_secs_f64() * 1e3);
    anyhow::ensure!(found.orphans.is_empty(), "a record was not found");
    Ok(())
}
