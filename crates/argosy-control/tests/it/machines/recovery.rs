//! Review 1, V1: after a restore, or a failover that lost commits, nothing is destroyed.

use super::{SETTLED, minutes, settled};
use crate::world::{World, admin, of_tenant, pool, settings, user};
use crate::yard::SICK;
use argosy_control::Error;
use argosy_control::safety::Beyond;
use argosy_core::incarnation::{Forecast, HistoryLoss, Incarnation};
use argosy_core::instance::Reason;
use argosy_core::node::NodeStatus;
use argosy_store::memory::Memory;
use serde_json::json;
use std::sync::Arc;

impl World {
    fn incarnation(&self) -> Incarnation {
        self.control.instances.recoveries(&user()).unwrap().incarnation
    }

    /// What the pool would do; `None` if it is not in recovery.
    fn forecast(&self) -> Option<Forecast> {
        let found = self.control.instances.recoveries(&user()).unwrap();
        found.pools.first().map(|pool| pool.value.forecast.clone().unwrap_or_default())
    }

    fn in_service(&self) -> usize {
        let current = self.current();
        current.iter().filter(|it| self.status(it.id.as_str()) == Some(NodeStatus::Active)).count()
    }

    /// Waits until it is known what the pool would do.
    async fn known(&self) -> Forecast {
        let complete = |world: &World| {
            world.forecast().is_some_and(|it| it.waits_for.is_none() && 0 < it.terminate + it.buy)
        };
        self.soon("it is known what would be done", complete).await;
        self.forecast().unwrap()
    }

    async fn confirm(&self) -> bool {
        self.control.instances.confirm_recovery(&user(), "a.p", "as it should be").await.unwrap()
    }
}

/// A pool of four of which a replica knows, and of twelve now.
async fn grown() -> (World, Arc<Memory>) {
    let world = settled(4, json!({"drainFor": "10m"})).await;
    let replica = world.replica();
    world.patch(&user(), pool("a", "p"), json!({"nodeCount": 12})).await.unwrap();
    world.soon("twelve run", |world| world.running() == 12 && world.is_ready()).await;
    world.cloud().yard.lock().unwrap().log.clear();
    (world, replica)
}

/// Nothing is terminated or drained, until a person has confirmed it; then it goes the way of every shrink.
async fn nothing_goes_before_it_is_confirmed(world: World) {
    let untouched = |world: &World| {
        world.cloud().asked_for("terminate") + world.cloud().asked_for("create") == 0
    };
    world.keeps("nothing is touched", SETTLED, untouched).await;
    let forecast = world.known().await;
    assert_eq!((forecast.terminate, forecast.drain, forecast.buy), (8, 8, 0), "{forecast:?}");
    assert_eq!((world.running(), world.in_service()), (12, 12), "{}", world.states());
    world.keeps("it waits", minutes(30), |w| untouched(w) && w.in_service() == 12).await;
    assert!(world.said().contains("argosy recovery confirm a.p"), "{}", world.said());
    assert!(world.said().contains("8 machines would be terminated"), "{}", world.said());

    world.cloud().each(|made| made.drains = false);
    assert!(world.confirm().await);
    assert!(!world.confirm().await, "it is not in recovery any more");
    world.soon("they are drained", |world| world.in_service() == 4).await;
    world.keeps("their work has its time", minutes(9), untouched).await;
    world.soon("four are left", |world| world.cloud().living().len() == 4).await;
    let shrunk = world.gone_because(|reason| *reason == Reason::ScaleDown { asked: true });
    assert_eq!(shrunk.len(), 8, "{}", world.states());
    world.soon("the pool is ready", World::is_ready).await;
    world.assert_accounted();
}

#[tokio::test(start_paused = true)]
async fn r1_v1_a_store_that_misses_a_larger_size_terminates_nothing() {
    let (world, replica) = grown().await;
    let world = world.fail_over(settings(), replica).await;
    world.soon("it is noticed", |world| world.incarnation().number == 1).await;
    let cause = world.incarnation().cause.unwrap();
    assert!(matches!(cause, HistoryLoss::UnknownMachine { .. }), "{cause}");
    nothing_goes_before_it_is_confirmed(world).await;
}

#[tokio::test(start_paused = true)]
async fn r1_v1_a_server_that_saw_more_than_the_store_has_terminates_nothing() {
    let (world, replica) = grown().await;
    world.lose_commits_since(&replica);
    world.soon("it is noticed", |world| world.incarnation().number == 1).await;
    let cause = world.incarnation().cause.unwrap();
    assert!(matches!(cause, HistoryLoss::ServerAhead { .. }), "{cause}");
    nothing_goes_before_it_is_confirmed(world).await;
}

#[tokio::test(start_paused = true)]
async fn r1_v1_a_restored_store_terminates_nothing() {
    let (world, replica) = grown().await;
    let world = world.restored(settings(), replica).await;
    let incarnation = world.incarnation();
    assert!(matches!(incarnation.cause, Some(HistoryLoss::Restored { .. })), "{incarnation:?}");
    nothing_goes_before_it_is_confirmed(world).await;
}

#[tokio::test(start_paused = true)]
async fn r1_v1_a_restored_pool_with_nothing_to_do_leaves_recovery_alone() {
    let world = settled(4, json!({})).await;
    let replica = world.replica();
    world.cloud().yard.lock().unwrap().log.clear();
    let world = world.restored(settings(), replica).await;
    let before = world.incarnation();
    assert_eq!((before.number, world.forecast().is_some()), (1, true));
    world.soon("it leaves recovery", |world| world.forecast().is_none()).await;
    assert_eq!(world.incarnation(), before, "the machines that it knew prove nothing");
    world.keeps("it is as it was", minutes(30), |world| world.in_service() == 4).await;
    let calls = world.cloud().asked_for("terminate") + world.cloud().asked_for("create");
    assert_eq!(calls, 0);
    // It is a pool like any other again.
    world.patch(&user(), pool("a", "p"), json!({"nodeCount": 3})).await.unwrap();
    world.soon("three are left", |world| world.cloud().living().len() == 3).await;
}

#[tokio::test(start_paused = true)]
async fn r1_v1_a_failover_that_lost_nothing_changes_the_leader_and_nothing_else() {
    let world = settled(4, json!({})).await;
    let replica = world.replica();
    let world = world.fail_over(settings(), replica).await;
    world.keeps("no history is lost", minutes(30), |world| world.incarnation().is_first()).await;
    assert_eq!((world.forecast(), world.in_service()), (None, 4));
    world.patch(&user(), pool("a", "p"), json!({"nodeCount": 3})).await.unwrap();
    world.soon("three are left", |world| world.cloud().living().len() == 3).await;
}

#[tokio::test(start_paused = true)]
async fn r1_v1_nothing_passes_a_recovery_whoever_asks() {
    let (world, replica) = grown().await;
    let world = world.restored(settings(), replica).await;
    world.known().await;
    let one = world.members()[0].clone();
    let instances = &world.control.instances;
    let refused = instances.terminate(&admin(), &one, "it is old", true, Beyond::Refuse).await;
    let Err(Error::Precondition(why)) = refused else { panic!("{refused:?}") };
    assert!(why.contains("argosy recovery confirm a.p"), "{why}");
    // A node that turns sick is taken out of service; its work goes on.
    world.turn(&one, SICK);
    world.soon("it is cordoned", |world| world.in_service() == 11).await;
    world
        .keeps("it is not drained", minutes(30), |world| {
            world.status(&one) == Some(NodeStatus::Cordoned)
        })
        .await;
    world.delete(pool("a", "p")).await;
    world.soon("that is foreseen", |w| w.forecast().is_some_and(|it| it.terminate == 12)).await;
    world.keeps("none goes", minutes(10), |world| world.cloud().living().len() == 12).await;
    let stranger = of_tenant("rival");
    let theirs = instances.confirm_recovery(&stranger, "a.p", "mine").await;
    assert!(matches!(theirs, Err(Error::NotFound { .. })), "{theirs:?}");
    assert!(instances.recoveries(&stranger).unwrap().pools.is_empty());
    assert!(instances.confirm_recovery(&user(), "a.p", " ").await.is_err(), "a reason is needed");
    assert!(world.confirm().await);
    world.soon("it is gone", |world| world.get(pool("a", "p")).is_none()).await;
    assert!(world.cloud().living().is_empty());
}

#[tokio::test(start_paused = true)]
async fn r1_v1_machines_that_are_gone_are_bought_again_once_that_is_confirmed() {
    let world = settled(4, json!({})).await;
    let replica = world.replica();
    world.patch(&user(), pool("a", "p"), json!({"nodeCount": 3})).await.unwrap();
    world.soon("one is gone", |world| world.cloud().living().len() == 3).await;
    world.cloud().yard.lock().unwrap().log.clear();
    let world = world.restored(settings(), replica).await;
    let forecast = world.known().await;
    assert_eq!((forecast.terminate, forecast.buy), (0, 1), "{forecast:?}");
    world.keeps("none is bought", minutes(30), |w| w.cloud().asked_for("create") == 0).await;
    assert!(world.confirm().await);
    world.soon("four run", |world| world.running() == 4 && world.is_ready()).await;
    assert_eq!((world.cloud().asked_for("create"), world.cloud().living().len()), (1, 4));
}

/// What was to go when the backup was made may be wanted since, and be busy: its deadline of then says nothing.
#[tokio::test(start_paused = true)]
async fn r1_v1_what_was_to_go_before_is_decided_anew_with_a_drain_of_its_own() {
    let world = settled(4, json!({"drainFor": "10m"})).await;
    world.cloud().each(|made| made.drains = false);
    world.patch(&user(), pool("a", "p"), json!({"nodeCount": 3})).await.unwrap();
    let departs = |world: &World| {
        let current = world.current();
        current.iter().find_map(|it| it.departure.as_ref().map(|departure| departure.deadline))
    };
    world.soon("one is to go", |world| departs(world).is_some()).await;
    let replica = world.replica();
    world.patch(&user(), pool("a", "p"), json!({"nodeCount": 4})).await.unwrap();
    world.soon("it stays", |world| departs(world).is_none() && world.in_service() == 4).await;
    world.pass(minutes(60)).await;
    world.cloud().yard.lock().unwrap().log.clear();
    let world = world.restored(settings(), replica).await;
    assert!(departs(&world).is_some_and(|deadline| deadline < world.now()));
    assert_eq!(world.known().await.terminate, 1);
    assert_eq!(world.cloud().asked_for("terminate"), 0);
    assert!(world.confirm().await);
    let anew = |world: &World| departs(world).is_some_and(|deadline| world.now() < deadline);
    world.soon("its time begins anew", anew).await;
    assert_eq!(world.cloud().asked_for("terminate"), 0);
}

#[tokio::test(start_paused = true)]
async fn r1_v1_a_setting_lets_pools_go_on_once_their_machines_are_known() {
    let (world, replica) = grown().await;
    let mut unattended = settings();
    unattended.machines.recover_automatically = true;
    let world = world.restored(unattended, replica).await;
    world.keeps("nodes have to connect first", minutes(1), |w| w.forecast().is_some()).await;
    world.soon("it leaves recovery", |world| world.forecast().is_none()).await;
    let ended = world.cloud().asked_for("terminate");
    assert_eq!((world.running(), ended), (12, 0), "{}", world.states());
    world.soon("four are left", |world| world.cloud().living().len() == 4).await;
}
