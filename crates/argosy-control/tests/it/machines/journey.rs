//! The life of a pool when the cloud is honest: bought, known by its labels, replaced, returned.

use super::{ordered, settled, why};
use crate::node::world::{events, xid};
use crate::world::{
    World, admin, cluster_named, labelled, object, pool, pool_named, settings, user,
};
use crate::yard::SICK;
use argosy_control::extension::{Extensions, Observer};
use argosy_control::resource::Creation;
use argosy_core::instance::{Instance, Reason, State};
use argosy_core::ledger::What;
use argosy_core::machine::Trouble;
use argosy_core::node::{Node, NodeStatus};
use argosy_core::status::Phase;
use serde_json::json;
use std::sync::{Arc, Mutex};

#[tokio::test(start_paused = true)]
async fn a_pool_of_five_becomes_five_nodes_grows_to_eight_and_leaves_nothing_behind() {
    let world = World::with(settings()).await;
    ordered(&world, json!({"nodeCount": 5, "machineType": "n1-standard-4"})).await;
    world.until_phase(pool("a", "p"), Phase::Ready).await;
    assert_eq!(world.running(), 5);
    assert_eq!(world.cloud().living().len(), 5);
    let patched = world.patch(&user(), pool("a", "p"), json!({"nodeCount": 8})).await.unwrap();
    assert_eq!(patched.value.generation, 2);
    world.until("eight run", |world| world.running() == 8).await;
    world.until_phase(pool("a", "p"), Phase::Ready).await;
    assert_eq!(world.cloud().asked_for("create"), 8, "not one too many");
    world.delete(pool("a", "p")).await;
    world.until_gone(pool("a", "p")).await;
    assert_eq!(world.cloud().living(), [""; 0]);
    assert_eq!(world.current().len(), 0);
}

/// The words of a node that its ledger tells of, oldest first.
async fn walk(world: &World, id: &str) -> Vec<String> {
    let mut lines = world.whats(id, |what| matches!(what, What::Status { .. })).await;
    lines.reverse();
    lines
        .iter()
        .filter_map(|what| {
            let What::Status { to, .. } = what else { return None };
            Some(serde_json::to_value(to).unwrap().to_string())
        })
        .collect()
}

#[tokio::test(start_paused = true)]
async fn cuj_5_a_sick_node_is_replaced_and_its_whole_walk_can_be_told() {
    let world = settled(3, json!({})).await;
    let sick = world.members()[1].clone();
    world.cloud().made(&sick, |made| made.drains = false);
    world.turn(&sick, SICK);
    world.soon("it is drained", |w| w.status(&sick) == Some(NodeStatus::Draining)).await;
    let new = world.current().into_iter().find(|record| record.replaces.is_some()).unwrap();
    assert!(matches!(new.state, State::Running { .. }), "create before destroy: {:?}", new.state);
    assert_eq!(new.replaces.as_ref().map(|id| id.as_str()), Some(sick.as_str()));
    assert_eq!(new.number, world.instance(&sick).number, "it takes its place");
    world.pass(super::minutes(10)).await;
    assert_eq!(world.cloud().living().len(), 4, "what runs on it has its time");
    world.cloud().made(&sick, |made| made.drains = true);
    world.soon("it is gone", |w| w.instance(&sick).state.is_over()).await;

    let is_it =
        |reason: &Reason| matches!(reason, Reason::Replaced { by: Some(by), .. } if *by == new.id);
    assert!(why(&world.instance(&sick)).is_some_and(is_it), "{:?}", world.instance(&sick).state);
    let words = ["\"ACTIVE\"", "\"UNHEALTHY\"", "\"CORDONED\"", "\"DRAINING\"", "\"TERMINATED\""];
    let walk = walk(&world, &sick).await;
    assert_eq!(walk[walk.len() - 5..], words, "{walk:?}");
    let why = world.control.nodes.why(&admin(), &sick).await.unwrap();
    assert!(why.summary.starts_with(&format!("{sick} is TERMINATED because")), "{}", why.summary);
    assert!(why.summary.contains(new.id.as_str()), "{}", why.summary);
    world.soon("the pool is ready", World::is_ready).await;
    assert_eq!(world.cloud().living().len(), 3);
    assert_eq!(world.cloud().asked_for("create"), 4);
    world.assert_accounted();
}

#[tokio::test(start_paused = true)]
async fn a_gpu_that_is_known_to_be_bad_is_refused_at_boot() {
    let world = settled(3, json!({})).await;
    let sick = world.members()[0].clone();
    // Only the vendor can mend that.
    world.says(&sick, events(vec![xid(142, 3)])).await;
    world.soon("it is gone", |w| w.instance(&sick).state.is_over()).await;
    let condemned = world.store.read(|view| view.condemned(&format!("{sick}-3")).cloned());
    assert_eq!(condemned.map(|found| found.value.node.to_string()), Some(sick.clone()));
    world.soon("the pool is ready", World::is_ready).await;

    // The cloud sells the same hardware again.
    world.cloud().lie(|lies| lies.used_gpus_of = Some(sick.clone()));
    world.patch(&user(), pool("a", "p"), json!({"nodeCount": 4})).await.unwrap();
    let refused = |world: &World| world.gone_because(|r| matches!(r, Reason::BadHardware { .. }));
    world.soon("it is refused", |world| !refused(world).is_empty()).await;
    world.cloud().lie(|lies| lies.used_gpus_of = None);
    world.soon("another is bought", |world| world.running() == 4 && world.is_ready()).await;
    let serial = format!("{sick}-3");
    for name in world.members() {
        let node = world.node(&name);
        assert!(node.gpus.iter().all(|gpu| gpu.serial != serial), "{name} has it");
    }
    assert!(refused(&world).len() <= 3);
    world.soon("it is gone", |world| world.cloud().living().len() == 4).await;
}

#[tokio::test(start_paused = true)]
async fn nodes_carry_the_name_of_their_pool_and_its_labels() {
    let world = World::with(settings()).await;
    world.create(&user(), cluster_named("default")).await.unwrap();
    world.create(&user(), cluster_named("a")).await.unwrap();
    let spec = object(json!({"nodeCount": 1, "nodeLabels": {"tier": "gold"}}));
    for of in ["default", "a"] {
        let creation = Creation { spec: spec.clone(), ..pool_named(of, "p") };
        world.create(&user(), labelled(creation, json!({"squad": "ml"}))).await.unwrap();
    }
    world.soon("both run", |world| world.running() == 2).await;
    let mut pools = Vec::new();
    for name in world.members() {
        let node = world.node(&name);
        pools.extend(node.pool.clone());
        let label = |key: &str| node.labels.get(key).unwrap_or_default().to_owned();
        assert_eq!((label("tier").as_str(), label("squad").as_str()), ("gold", "ml"), "{name}");
        assert_eq!(node.pool.as_deref(), Some(world.instance(&name).pool_name.as_str()));
    }
    pools.sort_unstable();
    assert_eq!(pools, ["a.p", "p"]);
}

#[tokio::test(start_paused = true)]
async fn the_machines_of_a_pool_deleted_by_force_go_all_the_same() {
    for dies in [false, true] {
        let world = settled(3, json!({})).await;
        world.cloud().lie(|lies| lies.all = Some(Trouble::Unreachable("no route".to_owned())));
        world.delete(pool("a", "p")).await;
        world.pass(super::minutes(5)).await;
        let forced = world.control.resources.force_delete(&admin(), pool("a", "p"), "hurry").await;
        forced.unwrap();
        assert_eq!(world.get(pool("a", "p")), None);
        assert_eq!(world.cloud().living().len(), 3);
        // Whether whoever forced it is still there or not.
        let world = if dies { world.restart(settings()).await } else { world };
        world.cloud().tell_the_truth();
        world.soon("they are gone", |world| world.cloud().living().is_empty()).await;
        world.soon("and known to be", |world| world.current().is_empty()).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_pool_that_is_gone_is_let_go_of_although_the_process_died_in_between() {
    let one = settled(2, json!({})).await;
    let two = one.another(settings(), "two").await;
    two.pass(super::seconds(1)).await;
    // The one that tends machines is stopped, and the other one dies before it takes over.
    one.rig.freeze(true);
    two.delete(pool("a", "p")).await;
    two.control.resources.force_delete(&admin(), pool("a", "p"), "hurry").await.unwrap();
    drop(one);
    let world = two.restart(settings()).await;
    let kept = world.current().iter().filter(|record| why(record).is_none()).count();
    assert_eq!(kept, 2, "nobody has decided anything about them");
    assert_eq!(world.get(pool("a", "p")), None);
    world.soon("they are gone", |world| world.cloud().living().is_empty()).await;
    world.soon("and known to be", |world| world.current().is_empty()).await;
}

#[derive(Default)]
struct Gossip(Mutex<Vec<String>>);

impl Gossip {
    fn heard(&self, what: &str) -> usize {
        self.0.lock().unwrap().iter().filter(|said| *said == what).count()
    }
}

impl Observer for Gossip {
    fn node_unhealthy(&self, node: &Node) {
        self.0.lock().unwrap().push(format!("unhealthy {}", node.id));
    }

    fn instance_stale(&self, instance: &Instance) {
        self.0.lock().unwrap().push(format!("stale {}", instance.number));
    }

    fn instance_failed(&self, instance: &Instance) {
        self.0.lock().unwrap().push(format!("failed {}", instance.number));
    }
}

#[tokio::test(start_paused = true)]
async fn observers_are_told_of_sick_nodes_and_of_machines_that_came_to_nothing() {
    let gossip = Arc::new(Gossip::default());
    let world = World::prepared(settings(), |outside| {
        outside.extensions = Extensions { observer: gossip.clone(), ..Extensions::default() };
    })
    .await;
    world.cloud().lie(|lies| {
        lies.refuse_number = Some(2);
        lies.refuse = Some(Trouble::Denied {
            permission: "compute.instances.create".to_owned(),
            message: "not allowed".to_owned(),
        });
    });
    ordered(&world, json!({"nodeCount": 2})).await;
    world.soon("one fails", |_| gossip.heard("failed 2") == 1).await;
    world.cloud().lie(|lies| (lies.refuse, lies.no_boot) = (None, true));
    world.soon("one is stale", |_| gossip.heard("stale 2") == 1).await;
    world.cloud().lie(|lies| lies.no_boot = false);
    world.soon("both run", |world| world.running() == 2).await;
    let sick = world.members()[0].clone();
    world.turn(&sick, SICK);
    let said = format!("unhealthy {sick}");
    world.soon("it is told", |_| gossip.heard(&said) == 1).await;
    world.pass(super::minutes(30)).await;
    assert_eq!(gossip.heard("stale 2"), 1, "once each");
    assert_eq!(gossip.heard(&said), 1, "once each");
}
