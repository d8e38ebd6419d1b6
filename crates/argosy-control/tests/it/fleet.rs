//! A fleet whose agents are a loop in the test: they beat while somebody lets them live.

use crate::command::{node, seconds};
use crate::world::{World, admin, with_adapters};
use argosy_control::Settings;
use argosy_control::command::Wire;
use argosy_control::pulse::{Attached, Moment};
use argosy_core::audit::AuditRecord;
use argosy_core::command::{Command, CommandKind};
use argosy_core::health::HealthState;
use argosy_core::ledger::{Entry, What};
use argosy_core::node::settings::Budget;
use argosy_core::node::{Liveness, Node, NodeId};
use argosy_store::Txn;
use argosy_store::engine::EntryQuery;
use jiff::SignedDuration;
use std::collections::BTreeMap;
use std::sync::Arc;

/// How often agents on a stream beat.
const BEAT: i64 = 10;

/// The amnesty after a start, and a bit.
pub(crate) const SETTLED: i64 = 310;

pub(crate) fn settings() -> Settings {
    with_adapters(&[])
}

/// No budget, no breaker and no rate holds anything.
pub(crate) fn unlimited() -> Settings {
    let mut settings = settings();
    let budget = Budget { percent: 100.0, at_least: 1_000_000, every: SignedDuration::ZERO };
    settings.nodes.defaults.budget = budget;
    settings.nodes.fleet.budget = budget;
    settings.nodes.fleet.zone_budget = budget;
    settings.nodes.defaults.breaker.percent = 100.0;
    settings.nodes.fleet.breaker.percent = 100.0;
    settings.nodes.fleet.zone_breaker.percent = 100.0;
    settings
}

/// `n0` to so many, on streams in the pool `h100`, registered long ago.
pub(crate) struct Fleet {
    pub(crate) ids: Vec<String>,
    streams: BTreeMap<String, Attached>,
    /// Those that beat.
    alive: Vec<String>,
}

impl Fleet {
    pub(crate) async fn new(world: &World, count: usize) -> Fleet {
        let ids: Vec<String> = (0..count).map(|index| format!("n{index}")).collect();
        for some in ids.chunks(500) {
            let mut txn = Txn::at(world.now());
            for id in some {
                let old = world.now().checked_sub(SignedDuration::from_hours(48)).unwrap();
                let pool = Some("h100".to_owned());
                let node = Node { pool, joined_at: old, registered_at: old, ..node(world, id) };
                txn.create(Arc::new(node));
            }
            world.store.commit(txn).await.unwrap();
        }
        let mut fleet = Fleet { alive: ids.clone(), ids, streams: BTreeMap::new() };
        fleet.attach(world);
        fleet
    }

    /// Opens the streams of all that live.
    pub(crate) fn attach(&mut self, world: &World) {
        for id in &self.alive {
            let pulse = world.control.nodes.board.admit(&NodeId::parse(id).unwrap());
            self.streams.insert(id.clone(), pulse.attach());
        }
        self.beat(world);
    }

    fn beat(&self, world: &World) {
        self.alive.iter().for_each(|id| touch(world, id));
    }

    /// These have lost power: their streams break, and they are silent.
    pub(crate) fn die(&mut self, ids: &[&str]) {
        self.alive.retain(|id| !ids.contains(&id.as_str()));
        ids.iter().for_each(|id| _ = self.streams.remove(*id));
    }

    /// Everybody is back.
    pub(crate) fn revive(&mut self, world: &World) {
        self.alive = self.ids.clone();
        self.attach(world);
    }

    /// Virtual time passes, and who lives is heard.
    pub(crate) async fn live(&self, world: &World, time: i64) {
        let mut left = time;
        while 0 < left {
            let step = left.min(BEAT);
            self.beat(world);
            world.pass(seconds(step)).await;
            left -= step;
        }
        self.beat(world);
    }

    /// The same, and they fetch their commands every second, as those on a stream do.
    pub(crate) async fn work(&self, world: &World, time: i64) {
        for _ in 0..time {
            self.beat(world);
            self.fetch(world).await;
            world.pass(seconds(1)).await;
        }
        self.fetch(world).await;
    }

    async fn fetch(&self, world: &World) {
        for id in &self.alive {
            world.control.commands.fetch(&admin(), id, Wire::Navarch).await.unwrap();
        }
    }

    /// As words: `n3 UNHEALTHY`, of those that are not ACTIVE.
    pub(crate) fn words(&self, world: &World) -> String {
        let words = self.ids.iter().map(|id| (id, find(world, id).status().as_str()));
        let words = words.filter(|(_, word)| *word != "ACTIVE");
        words.map(|(id, word)| format!("{id} {word}")).collect::<Vec<_>>().join(", ")
    }

    /// How many are like this.
    pub(crate) fn count(&self, world: &World, is: impl Fn(&Node) -> bool) -> usize {
        self.ids.iter().filter(|id| is(&find(world, id))).count()
    }

    pub(crate) fn lost(&self, world: &World) -> usize {
        self.count(world, |node| node.liveness == Liveness::Unreachable)
    }

    pub(crate) fn out_of_service(&self, world: &World) -> usize {
        self.count(world, Node::in_disruption)
    }
}

/// One sign of life.
pub(crate) fn touch(world: &World, id: &str) {
    let now = Moment { wall: world.now(), monotonic: world.control.clock.monotonic() };
    world.control.nodes.board.admit(&NodeId::parse(id).unwrap()).touch(now);
}

pub(crate) fn find(world: &World, id: &str) -> Arc<Node> {
    world.store.read(|view| view.node(id).unwrap().value.clone())
}

/// What a report would do to the health of nodes.
pub(crate) async fn turn(world: &World, ids: &[&str], state: HealthState) {
    let now = world.now();
    let before: Vec<_> =
        world.store.read(|view| ids.iter().map(|id| view.node(id).unwrap().clone()).collect());
    let mut txn = Txn::at(now);
    for node in before {
        let mut after = (*node.value).clone();
        after.health.state = state;
        after.health.since = now;
        let sick = state == HealthState::Unhealthy;
        after.health.reason = if sick { "fatal-xid" } else { "NoFindings" }.to_owned();
        after.health.message = if sick { "Xid 79" } else { "" }.to_owned();
        after.turned(&node.value, now);
        txn.update(Arc::new(after), node.revision);
    }
    world.store.commit(txn).await.unwrap();
}

pub(crate) async fn sick(world: &World, ids: &[&str]) {
    turn(world, ids, HealthState::Unhealthy).await;
}

pub(crate) async fn well(world: &World, ids: &[&str]) {
    turn(world, ids, HealthState::Healthy).await;
}

/// Our own commands to a node, oldest first.
pub(crate) fn automatic(world: &World, id: &str) -> Vec<Arc<Command>> {
    let all = |view: &argosy_store::view::View| {
        let commands = view.commands_of(id).map(|command| command.value.clone());
        commands.filter(|command| command.automatic).collect()
    };
    world.store.read(all)
}

/// How many of our own commands of a kind there are.
pub(crate) fn issued(world: &World, kind: CommandKind) -> usize {
    let ours = |command: &Command| command.automatic && command.kind == kind;
    world.store.read(|view| view.commands().filter(|command| ours(&command.value)).count())
}

/// The ledger of a node, oldest first.
pub(crate) async fn ledger(world: &World, id: &str) -> Vec<What> {
    let query = EntryQuery {
        stream: "nodes".to_owned(),
        subject: Some(id.to_owned()),
        cursor: None,
        newest_first: false,
        limit: 10_000,
    };
    let entries = world.store.entries(&query).await.unwrap();
    let read = |body: &str| serde_json::from_str::<Entry>(body).unwrap().what;
    entries.iter().map(|entry| read(&entry.body)).collect()
}

/// Every audit record with this action.
pub(crate) async fn audited(world: &World, action: &str) -> Vec<AuditRecord> {
    let query = EntryQuery {
        stream: "audit".to_owned(),
        subject: None,
        cursor: None,
        newest_first: false,
        limit: 100_000,
    };
    let entries = world.store.entries(&query).await.unwrap();
    let records = entries.iter().map(|entry| serde_json::from_str::<AuditRecord>(&entry.body));
    records.map(Result::unwrap).filter(|record| record.action == action).collect()
}
