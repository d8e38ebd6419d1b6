//! Pools become nodes: bought, tended, replaced and returned, whatever the cloud does.

mod absence;
mod fault;
mod heal;
mod journey;
mod money;
mod property;
mod protect;
mod recovery;
mod review;
mod scale;
mod spending;

use crate::world::{Cloud, World, cluster_named, object, pool, pool_named, settings, user};
use argosy_control::resource::Creation;
use argosy_core::instance::{Instance, Reason, State};
use argosy_core::inventory::{Orphan, ProviderBook};
use argosy_core::node::NodeStatus;
use argosy_core::pool::PoolBook;
use argosy_core::status::Phase;
use jiff::SignedDuration;
use serde_json::{Value, json};
use std::sync::Arc;

/// A cluster `a` with a pool `p` of this spec.
pub(crate) async fn ordered(world: &World, spec: Value) {
    world.create(&user(), cluster_named("a")).await.unwrap();
    let creation = Creation { spec: object(spec), ..pool_named("a", "p") };
    world.create(&user(), creation).await.unwrap();
}

/// The amnesty after a start, and a bit.
const SETTLED: SignedDuration = SignedDuration::from_mins(6);

/// How long a new node counts in no percentage, and a bit.
const WARMED_UP: SignedDuration = SignedDuration::from_mins(16);

/// A pool `p` of so many nodes that have been up for so long that nothing is excused any more.
async fn settled(nodes: u32, more: Value) -> World {
    let world = World::with(settings()).await;
    settle(&world, nodes, more).await;
    world
}

async fn settle(world: &World, nodes: u32, more: Value) {
    let mut spec = object(more);
    spec.insert("nodeCount".to_owned(), json!(nodes));
    ordered(world, Value::Object(spec)).await;
    world.soon("the pool is ready", World::is_ready).await;
    assert_eq!(world.running(), nodes as usize);
    world.pass(SETTLED).await;
}

fn minutes(count: i64) -> SignedDuration {
    SignedDuration::from_mins(count)
}

fn seconds(count: i64) -> SignedDuration {
    SignedDuration::from_secs(count)
}

/// Why a machine went, or goes.
fn why(record: &Instance) -> Option<&Reason> {
    match &record.state {
        State::Terminating(leaving) => Some(&leaving.reason),
        State::Terminated { reason, .. } => Some(reason),
        State::Provisioning(_)
        | State::AwaitingNode { .. }
        | State::Running { .. }
        | State::Failed { .. } => None,
    }
}

impl World {
    /// Virtual time passes until something holds, that may take hours.
    #[track_caller]
    fn soon<'a>(
        &'a self,
        what: &'a str,
        holds: impl Fn(&World) -> bool + 'a,
    ) -> impl Future<Output = ()> + 'a {
        let place = std::panic::Location::caller();
        async move {
            let end = self.now().checked_add(SignedDuration::from_hours(4)).unwrap();
            while !holds(self) {
                let told = || format!("{} | {} | {}", self.states(), self.said(), self.words());
                assert!(self.now() < end, "{place}: it never came to this: {what}: {}", told());
                self.pass(SignedDuration::from_millis(500)).await;
            }
        }
    }

    /// For so long, something holds at every moment that is looked at.
    #[track_caller]
    fn keeps<'a>(
        &'a self,
        what: &'a str,
        time: SignedDuration,
        holds: impl Fn(&World) -> bool + 'a,
    ) -> impl Future<Output = ()> + 'a {
        let place = std::panic::Location::caller();
        async move {
            let end = self.now().checked_add(time).unwrap();
            while self.now() < end {
                let told = || format!("{} | {} | {}", self.states(), self.said(), self.words());
                assert!(holds(self), "{place}: it does not hold that {what}: {}", told());
                self.pass(seconds(1)).await;
            }
        }
    }

    fn is_ready(&self) -> bool {
        self.phase(pool("a", "p")) == Some(Phase::Ready)
    }

    /// What the adapter last said of the pool: `QuotaExceeded: …`.
    fn said(&self) -> String {
        let Some(found) = self.get(pool("a", "p")) else { return String::new() };
        let report = found.reports.iter().find(|(name, _)| name.as_str() == "machines");
        let said = report.map(|(_, report)| &report.conditions.available);
        said.map(|said| format!("{}: {}", said.reason, said.message)).unwrap_or_default()
    }

    /// A member of what it says with that.
    fn data(&self, member: &str) -> Value {
        let found = self.get(pool("a", "p")).unwrap();
        let report = found.reports.iter().find(|(name, _)| name.as_str() == "machines");
        report.and_then(|(_, report)| report.data.get(member)).cloned().unwrap_or_default()
    }

    /// `ACTIVE CORDONED`: the words of all nodes.
    fn words(&self) -> String {
        let words = |view: &argosy_store::view::View| {
            view.nodes().map(|node| node.value.status().as_str()).collect::<Vec<_>>().join(" ")
        };
        self.store.read(words)
    }

    fn status(&self, node: &str) -> Option<NodeStatus> {
        self.try_node(node).map(|node| node.status())
    }

    fn instance(&self, id: &str) -> Arc<Instance> {
        self.store.read(|view| view.instance(id).unwrap().value.clone())
    }

    /// The names of those that run, by number.
    fn members(&self) -> Vec<String> {
        let mut running = self.current();
        running.retain(|record| matches!(record.state, State::Running { .. }));
        running.sort_by_key(|record| record.number);
        running.iter().map(|record| record.id.to_string()).collect()
    }

    /// The records of a reason.
    fn gone_because(&self, is: impl Fn(&Reason) -> bool) -> Vec<Arc<Instance>> {
        let mut records = self.instances();
        records.retain(|record| why(record).is_some_and(&is));
        records
    }

    fn orphans(&self) -> Vec<Arc<Orphan>> {
        self.store.read(|view| view.orphans().map(|orphan| orphan.value.clone()).collect())
    }

    fn pool_book(&self) -> Option<Arc<PoolBook>> {
        let id = self.get(pool("a", "p"))?.id;
        self.store.read(|view| view.pool_book(id).map(|book| book.value.clone()))
    }

    /// Says that buying and updating may go on.
    async fn resume(&self) {
        let id = self.get(pool("a", "p")).unwrap().id;
        self.control.instances.resume(&user(), id, "it is mended").await.unwrap();
    }

    fn provider_book(&self, name: &str) -> Option<Arc<ProviderBook>> {
        self.store.read(|view| view.provider_book(name).map(|book| book.value.clone()))
    }

    /// Makes a machine's checks say something else.
    fn turn(&self, name: &str, health: &'static str) {
        self.cloud().made(name, |made| made.health = health);
    }

    /// Takes a machine's power away.
    fn unplug(&self, name: &str) {
        self.cloud().made(name, |made| made.on = false);
    }

    /// Every record has at most one machine, and every machine of ours a record or an orphan (I2).
    #[track_caller]
    fn assert_accounted(&self) {
        let records = self.instances();
        let orphans = self.orphans();
        let names = self.cloud().living();
        for record in &records {
            let id = record.id.as_str();
            let living = names.iter().filter(|name| *name == id).count();
            assert!(living <= 1, "{living} machines for {id}: {:?}", record.state);
        }
        for name in &names {
            let current = records.iter().any(|it| it.id.as_str() == name && !it.state.is_over());
            let orphan = orphans.iter().any(|orphan| orphan.name == *name);
            assert!(current || orphan, "nobody knows {name}");
        }
    }
}

impl Cloud {
    /// Stops all lies.
    fn tell_the_truth(&self) {
        self.lie(|lies| *lies = crate::yard::Lies::default());
        self.each(|made| made.hidden = false);
    }
}
