//! Machines that register, beat and report, in the world of the other tests.

use crate::command::roomy;
use crate::world::{World, admin, user, with_adapters};
use argosy_control::node::{BeatAnswer, HealthAnswer, Heartbeat, NodeConfig, NodeQuery};
use argosy_control::pulse::{Live, Via};
use argosy_control::{Error, Settings, Stored};
use argosy_core::access::{Caller, Role};
use argosy_core::audit::AuditRecord;
use argosy_core::health::{
    CheckResult, Event, EventType, HealthReport, HealthState, Metric, System,
};
use argosy_core::ledger::What;
use argosy_core::node::settings::Remedy;
use argosy_core::node::{Gpu, Machine, Node, Place, Registration};
use argosy_core::search::{Filter, Order};
use jiff::SignedDuration;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

pub(crate) fn seconds(count: i64) -> SignedDuration {
    SignedDuration::from_secs(count)
}

/// Settings under which nothing is done by itself: neither by adapters nor about nodes that are bad. Every node may
/// be out of service.
pub(crate) fn quiet() -> Settings {
    let mut settings = with_adapters(&[]);
    settings.nodes.defaults.remedy = Remedy::Observe;
    roomy(settings)
}

/// The credential of one node.
pub(crate) fn agent(node: &str) -> Caller {
    let (subject, node) = (format!("node-{node}"), Some(node.to_owned()));
    Caller { subject, role: Role::Node, node, ..user() }
}

/// What an eight-GPU machine says of itself.
pub(crate) fn registration(id: &str) -> Registration {
    let gpu = |index: i32| Gpu {
        index,
        uuid: format!("GPU-{id}-{index}"),
        name: "NVIDIA H100".into(),
        pci_bus_id: format!("0000:{:02x}:00.0", index + 1),
        memory_total: 80 << 30,
        serial: format!("{id}-{index}"),
        ..Gpu::default()
    };
    Registration {
        node_id: id.to_owned(),
        place: Place {
            provider: "gcp".into(),
            region: "us-east1".into(),
            zone: "us-east1-b".into(),
            instance_type: "a3-highgpu-8g".into(),
        },
        machine: Machine {
            hostname: format!("{id}.example"),
            boot_id: "boot-1".to_owned(),
            machine_id: format!("machine-{id}"),
            agent: "argosy-agent/0.2.0".to_owned(),
            ..Machine::default()
        },
        gpus: (0..8).map(gpu).collect(),
        ..Registration::default()
    }
}

/// `gpu=U xid=H` as the results of checks: H, D, U or `?`.
pub(crate) fn results(text: &str) -> HealthReport {
    let result = |word: &str| {
        let (name, letter) = word.split_once('=').unwrap();
        let state = match letter {
            "H" => HealthState::Healthy,
            "D" => HealthState::Degraded,
            "U" => HealthState::Unhealthy,
            _ => HealthState::Unknown,
        };
        let message = format!("{name} says {letter}");
        CheckResult { name: name.to_owned(), state, message, details: BTreeMap::new() }
    };
    let results = text.split_whitespace().map(result).collect();
    HealthReport { results, ..HealthReport::default() }
}

/// An Xid on a GPU.
pub(crate) fn xid(code: i64, gpu_index: i32) -> Event {
    Event {
        node_time: None,
        gpu_index,
        gpu_uuid: String::new(),
        gpu_serial: String::new(),
        system: System::Driver,
        event_type: EventType::Xid,
        metrics: BTreeMap::from([("xid_code".to_owned(), Metric::Int(code))]),
        message: String::new(),
        raw: format!("NVRM: Xid (PCI:0000:0{gpu_index}:00): {code}, pid=1"),
        recovery_action: None,
        count: 1,
        boot_id: String::new(),
        condition: String::new(),
    }
}

pub(crate) fn events(events: Vec<Event>) -> HealthReport {
    HealthReport { events, ..HealthReport::default() }
}

pub(crate) fn query(search: &str) -> NodeQuery {
    let (filter, order) = (Filter::parse(search).unwrap(), Order::parse("id asc").unwrap());
    NodeQuery { filter, order, skip: 0, limit: 100 }
}

impl World {
    /// A world that has been listening for so long that it has nothing to excuse any more.
    pub(crate) async fn attentive() -> World {
        let world = World::with(quiet()).await;
        world.pass(seconds(400)).await;
        world
    }

    /// A machine registers with its own credential.
    pub(crate) async fn enrol(&self, id: &str) -> (Stored<Node>, NodeConfig) {
        self.try_enrol(registration(id)).await.unwrap()
    }

    pub(crate) async fn try_enrol(
        &self,
        said: Registration,
    ) -> Result<(Stored<Node>, NodeConfig), Error> {
        self.control.nodes.register(&agent(&said.node_id), said).await
    }

    pub(crate) fn beat(&self, id: &str) -> Result<BeatAnswer, Error> {
        self.control.nodes.heartbeat(&agent(id), id, Via::Call, Heartbeat::default())
    }

    pub(crate) async fn says(&self, id: &str, report: HealthReport) -> HealthAnswer {
        self.control.nodes.report(&agent(id), id, report).await.unwrap()
    }

    pub(crate) fn node(&self, id: &str) -> Arc<Node> {
        self.control.nodes.get(&admin(), id).unwrap().0.value
    }

    pub(crate) fn live(&self, id: &str) -> Live {
        self.control.nodes.get(&admin(), id).unwrap().1
    }

    /// `UNHEALTHY/UNHEALTHY/xid`: its word, its health, and the reason of that.
    pub(crate) fn state(&self, id: &str) -> String {
        let node = self.node(id);
        let health = &node.health;
        format!("{}/{}/{}", node.status().as_str(), health.state.as_str(), health.reason)
    }

    /// The kinds of the lines in a node's ledger, oldest first.
    pub(crate) async fn ledger(&self, id: &str) -> String {
        let nodes = &self.control.nodes;
        let mut lines = nodes.ledger(&admin(), id, None, 1000, |_| true).await.unwrap();
        lines.reverse();
        lines.iter().map(|line| line.entry.what.kind()).collect::<Vec<_>>().join(" ")
    }

    pub(crate) async fn whats(&self, id: &str, keep: fn(&What) -> bool) -> Vec<What> {
        let nodes = &self.control.nodes;
        let lines = nodes.ledger(&admin(), id, None, 1000, keep).await.unwrap();
        lines.into_iter().map(|line| line.entry.what).collect()
    }

    /// The audit records of one action, newest first.
    pub(crate) async fn records(&self, action: &str) -> Vec<AuditRecord> {
        let all = self.control.audit.list(&admin(), None, 100_000).await.unwrap();
        let records = all.into_iter().map(|entry| entry.record);
        records.filter(|record| record.action == action).collect()
    }

    /// How many commits the engine has accepted.
    pub(crate) fn commits(&self) -> u64 {
        self.rig.accepted.load(Ordering::SeqCst)
    }
}

/// What became of a request, in a word.
pub(crate) fn word<T>(outcome: Result<T, Error>) -> String {
    match outcome {
        Ok(_) => "yes".to_owned(),
        Err(Error::Forbidden(_)) => "forbidden".to_owned(),
        Err(Error::NodeNotFound(_)) => "not found".to_owned(),
        Err(Error::Invalid(errors)) => format!("invalid {}", errors[0].field),
        Err(Error::IdentityConflict(_)) => "conflict".to_owned(),
        Err(Error::Precondition(_)) => "precondition".to_owned(),
        Err(Error::TooMany(_)) => "too many".to_owned(),
        Err(other) => panic!("{other}"),
    }
}
