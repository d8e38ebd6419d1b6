//! A control plane inside a program of one's own, with eyes, ears and an opinion added to it.
//!
//! `cargo run -p argosy-providers --example embed`

use argosy_control::clock::Clock;
use argosy_control::extension::{Autoscaler, Extensions, Measuring, MetricsSource, Observer};
use argosy_control::ids::Ids;
use argosy_control::notify::{CloudEvent, Notifier, SendError};
use argosy_control::resource::{Creation, Write};
use argosy_control::task::Tasks;
use argosy_control::{Control, MachineSettings, Outside, Settings};
use argosy_core::access::{Authorization, Caller, Role};
use argosy_core::autoscale::{Advice, Kind as Policy, PoolView, RawMetrics};
use argosy_core::catalog::Catalog;
use argosy_core::instance::Instance;
use argosy_core::label::Labels;
use argosy_core::name::Name;
use argosy_core::node::Node;
use argosy_core::resource::Kind;
use argosy_providers::simulated::{Latencies, SimulatedCloud};
use argosy_store::Store;
use argosy_store::memory::Memory;
use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;

/// Is told what goes wrong: a pager, a chat, a ticket.
struct Pager;

impl Observer for Pager {
    fn node_unhealthy(&self, node: &Node) {
        println!("{} is unhealthy: {}", node.id, node.health.reason);
    }

    fn instance_stale(&self, instance: &Instance) {
        println!("{} never registered", instance.id);
    }

    fn instance_failed(&self, instance: &Instance) {
        println!("{} could not be bought", instance.id);
    }
}

/// Asks one's own scheduler instead of the nodes.
struct JobQueue;

#[async_trait]
impl MetricsSource for JobQueue {
    fn always(&self) -> bool {
        true
    }

    async fn measure(&self, of: &Measuring, beats: &RawMetrics) -> Result<RawMetrics, String> {
        println!("forty jobs wait for {}", of.name);
        Ok(RawMetrics { pending_jobs: Some(40.0), ..beats.clone() })
    }
}

/// Ten jobs a node, and never fewer than three nodes.
struct TenJobsEach;

impl Autoscaler for TenJobsEach {
    fn recommend(&self, pool: &PoolView<'_>, _: Timestamp) -> Option<Advice> {
        let jobs = pool.metrics.pending_jobs?;
        let target = u32::try_from(jobs.div_ceil(10)).ok()?.max(3);
        Some(Advice {
            from: pool.wanted,
            target,
            wanted: target,
            policy: Policy::Queue,
            reason: format!("{jobs} jobs wait, and a node runs ten"),
            parts: Vec::new(),
            held: None,
            next: None,
        })
    }
}

/// No adapter of this program is outside.
struct NoPost;

#[async_trait]
impl Notifier for NoPost {
    async fn send(&self, _: &str, _: &str, _: &CloudEvent) -> Result<(), SendError> {
        Err(SendError::Refused("there is nobody outside".to_owned()))
    }
}

fn settings() -> Settings {
    let month = SignedDuration::from_hours(24 * 30);
    Settings {
        adapters: Default::default(),
        rules: Default::default(),
        window: Default::default(),
        catalog: Catalog::default(),
        authorization: Authorization::Team,
        conditions: BTreeMap::new(),
        nodes: Default::default(),
        machines: MachineSettings::default(),
        protect_new: false,
        tombstones_kept: month,
        idempotency_kept: month,
        audit_kept: month,
        history_kept: month,
    }
}

fn creation<'a>(kind: Kind, cluster: Option<&'a str>, name: &str, spec: Value) -> Creation<'a> {
    let spec: Map<String, Value> = spec.as_object().cloned().unwrap_or_default();
    let name = Name::parse(name).expect("a name");
    Creation { kind, cluster, name, spec, labels: Labels::default() }
}

/// Runs until the pool was given another size, and says which.
async fn resized() -> Result<u32, Box<dyn Error>> {
    let (store, driver) = Store::open(Arc::new(Memory::new())).await?;
    let mut tasks = Tasks::default();
    tasks.start("store", driver.run());
    let cloud = SimulatedCloud::in_memory(Catalog::default(), Clock::System, Latencies::INSTANT);
    let outside = Outside {
        clouds: BTreeMap::from([("gcp".to_owned(), Arc::new(cloud.named("gcp")) as _)]),
        notifier: Arc::new(NoPost),
        schedulers: Vec::new(),
        extensions: Extensions {
            observer: Arc::new(Pager),
            metrics: Some(Arc::new(JobQueue)),
            autoscaler: Some(Arc::new(TenJobsEach)),
        },
    };
    let (clock, ids) = (Clock::System, Ids::Random);
    let control = Control::start(store.clone(), settings(), outside, clock, ids, "me", &mut tasks);
    let me = Caller {
        subject: "me".to_owned(),
        via: "embedded",
        tenant: "default".to_owned(),
        teams: Vec::new(),
        role: Role::Admin,
        adapter: None,
        node: None,
        request_id: String::new(),
    };
    let spec = json!({ "provider": "gcp", "region": "us-east1" });
    let cluster = creation(Kind::Cluster, None, "mine", spec);
    control.resources.create(&me, cluster, Write::default()).await?;
    let spec = json!({ "nodeCount": 1, "maxNodes": 8, "autoscaling": { "type": "queue" } });
    let pool = creation(Kind::NodePool, Some("mine"), "workers", spec);
    let pool = control.resources.create(&me, pool, Write::default()).await?.resource.value.id;
    let mut changes = store.subscribe();
    loop {
        let target = store.read(|view| view.pool_book(pool).and_then(|book| book.value.target));
        if let Some(target) = target {
            return Ok(target);
        }
        changes.changed().await?;
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    println!("the pool is to have {} nodes", resized().await?);
    Ok(())
}

#[cfg(test)]
mod tests {
    #[tokio::test]
    async fn an_opinion_of_ones_own_moves_the_pool() {
        assert_eq!(super::resized().await.unwrap(), 4);
    }
}
