//! Deletion: the cascade, cleanup in reverse, the tombstone, and by force.

use crate::world::{
    Does, World, admin, cluster, cluster_named, object, pool, pool_named, settings, user,
};
use argosy_control::Error;
use argosy_control::resource::{Creation, Target, Write};
use argosy_core::resource::Kind;
use argosy_core::status::Phase;
use serde_json::json;
use std::sync::atomic::Ordering;

async fn ready(world: &World, pools: &[&str]) {
    world.cluster("a").await;
    for name in pools {
        world.pool("a", name).await;
        world.until_phase(pool("a", name), Phase::Ready).await;
    }
    world.until_phase(cluster("a"), Phase::Ready).await;
    world.cloud().calls();
}

#[tokio::test(start_paused = true)]
async fn h8_cleanup_goes_backwards_and_begins_when_the_pools_are_gone() {
    let world = World::new().await;
    ready(&world, &["p"]).await;
    // The machines do not go, whatever the cloud says.
    world.cloud().lie(|lies| lies.keep_alive = true);
    let deleted = world.delete(cluster("a")).await;
    assert_eq!(deleted.value.generation, 2);
    assert_eq!(world.phase(cluster("a")), Some(Phase::Terminating));
    assert_eq!(world.phase(pool("a", "p")), Some(Phase::Terminating));

    let tries = |world: &World| world.cloud().asked_for("terminate");
    world.until("three tries each", |world| 6 <= tries(world)).await;
    assert_eq!(world.cloud().count("a -infrastructure@2"), 0);
    assert_eq!(world.phase(pool("a", "p")), Some(Phase::Terminating));
    world.cloud().lie(|lies| lies.keep_alive = false);
    world.until("the pool is gone", |world| world.get(pool("a", "p")).is_none()).await;
    assert!(world.cloud().living().is_empty(), "which needs its machines to be gone");
    world.until_gone(cluster("a")).await;
    let mut calls = world.cloud().calls();
    calls.dedup();
    assert_eq!(calls, ["a -infrastructure@2", "a -dns@2"]);
}

#[tokio::test(start_paused = true)]
async fn h8_deletion_needs_no_timer() {
    let world = World::new().await;
    ready(&world, &["p", "q"]).await;
    world.delete(cluster("a")).await;
    // That machines are gone takes a look at the cloud; all that follows, none.
    world
        .until("the pools are gone", |world| {
            world.get(pool("a", "p")).is_none() && world.get(pool("a", "q")).is_none()
        })
        .await;
    let since = world.now();
    let mut changes = world.store.subscribe();
    while world.get(cluster("a")).is_some() {
        changes.changed().await.unwrap();
    }
    assert!(world.now().duration_since(since).as_millis() < 25);
}

#[tokio::test(start_paused = true)]
async fn what_is_gone_says_so_by_id_and_by_name() {
    let world = World::new().await;
    ready(&world, &["p"]).await;
    let id = world.get(cluster("a")).unwrap().id.to_string();
    let pool_id = world.get(pool("a", "p")).unwrap().id.to_string();
    world.delete(pool("a", "p")).await;
    world.until_gone(pool("a", "p")).await;
    let gone = |target: Target<'_>| match world.control.resources.get(&user(), target) {
        Err(Error::Deleted { tombstone, .. }) => tombstone.name.to_string(),
        other => panic!("{other:?}"),
    };
    assert_eq!(gone(pool("a", "p")), "p");
    assert_eq!(gone(pool("a", &pool_id)), "p");
    assert_eq!(gone(Target { cluster: None, ..pool("a", &pool_id) }), "p");
    world.delete(cluster("a")).await;
    world.until_gone(cluster("a")).await;
    assert_eq!(gone(cluster("a")), "a");
    assert_eq!(gone(cluster(&id)), "a");
    let patched = world.patch(&user(), cluster("a"), json!({"x": 1})).await;
    assert!(matches!(patched, Err(Error::Deleted { .. })));
    let again = world.control.resources.delete(&user(), cluster("a"), Write::default()).await;
    assert!(matches!(again, Err(Error::Deleted { .. })));
}

#[tokio::test(start_paused = true)]
async fn a_name_is_taken_until_its_holder_is_gone() {
    let world = World::new().await;
    ready(&world, &[]).await;
    world.cloud().when("a -dns", Some(Does::Fail("Busy")));
    world.delete(cluster("a")).await;
    let taken = world.create(&user(), cluster_named("a")).await;
    assert!(matches!(taken, Err(Error::NameTaken { deleting: true, .. })), "{taken:?}");
    let patched = world.patch(&user(), cluster("a"), json!({"x": 1})).await;
    assert!(matches!(patched, Err(Error::Deleting { .. })));
    let child = world.create(&user(), pool_named("a", "late")).await;
    assert!(matches!(child, Err(Error::Deleting { kind: Kind::Cluster, .. })));

    world.cloud().when("a -dns", None);
    world.until_gone(cluster("a")).await;
    let second = world.cluster("a").await;
    assert_eq!(world.get(cluster("a")).unwrap().id, second.value.id);
    world.until_phase(cluster("a"), Phase::Ready).await;
}

#[tokio::test(start_paused = true)]
async fn deleting_again_is_the_same_as_once() {
    let world = World::new().await;
    ready(&world, &[]).await;
    world.cloud().when("a -dns", Some(Does::Fail("Busy")));
    world.delete(cluster("a")).await;
    let before = world.rig.accepted.load(Ordering::SeqCst);
    let again = world.delete(cluster("a")).await;
    assert_eq!(again.value.generation, 2);
    assert_eq!(world.rig.accepted.load(Ordering::SeqCst), before);
}

#[tokio::test(start_paused = true)]
async fn h7_a_delete_during_create_ends_the_work_and_cleans_up() {
    let world = World::new().await;
    world.cloud().when("a infrastructure", Some(Does::Hang));
    world.cluster("a").await;
    world.until("it works", |world| world.cloud().count("a infrastructure@1") == 1).await;
    world.delete(cluster("a")).await;
    world.until_gone(cluster("a")).await;
    assert_eq!(world.cloud().busy.load(Ordering::SeqCst), 0);
    assert_eq!(world.cloud().count("a -infrastructure@2"), 1);
}

#[tokio::test(start_paused = true)]
async fn h7_force_delete_takes_the_children_and_is_written_down() {
    let world = World::new().await;
    ready(&world, &["p"]).await;
    let resources = &world.control.resources;
    let early = resources.force_delete(&admin(), cluster("a"), "hurry").await;
    assert!(matches!(early, Err(Error::NotDeleting { .. })));
    world.cloud().lie(|lies| lies.keep_alive = true);
    world.delete(cluster("a")).await;
    let forbidden = resources.force_delete(&user(), cluster("a"), "mine").await;
    assert!(matches!(forbidden, Err(Error::Forbidden(_))));
    world.until("it works", |world| world.cloud().asked_for("terminate") == 2).await;

    resources.force_delete(&admin(), cluster("a"), "the zone is lost").await.unwrap();
    assert_eq!(world.get(cluster("a")), None);
    let log = world.control.audit.list(&admin(), None, 10).await.unwrap();
    let log: Vec<_> = log
        .iter()
        .filter(|entry| entry.record.action == "force-delete")
        .map(|entry| {
            let record = &entry.record;
            (record.action.as_str(), record.name.as_str(), record.reason.as_deref())
        })
        .collect();
    let why = Some("the zone is lost");
    assert_eq!(log, [("force-delete", "a", why), ("force-delete", "p", why)]);
    assert!(matches!(
        resources.get(&user(), cluster("a")),
        Err(Error::Deleted { tombstone, .. }) if tombstone.forced.as_deref() == why
    ));
    // Both names are free, and what they were paid for is not forgotten.
    world.cluster("a").await;
    world.pool("a", "p").await;
    assert_eq!(world.cloud().living().len(), 2);
    world.cloud().lie(|lies| lies.keep_alive = false);
    world.until_phase(pool("a", "p"), Phase::Ready).await;
    world.until("the old ones are gone", |world| world.cloud().living().len() == 2).await;
}

#[tokio::test(start_paused = true)]
async fn a_pool_and_the_end_of_its_cluster_never_miss_each_other() {
    let mut created_too = 0;
    for round in 0..20 {
        let world = World::new().await;
        world.cluster("a").await;
        let caller = user();
        let delete = world.control.resources.delete(&caller, cluster("a"), Write::default());
        let create = world.create(&caller, pool_named("a", "p"));
        let (deleted, created) = match round % 2 {
            0 => futures_util::future::join(delete, create).await,
            _ => {
                let (created, deleted) = futures_util::future::join(create, delete).await;
                (deleted, created)
            }
        };
        deleted.unwrap();
        match created {
            Ok(_) => created_too += 1,
            Err(Error::Deleting { .. } | Error::ClusterNotFound { .. }) => {}
            Err(other) => panic!("{other}"),
        }
        world.until_gone(cluster("a")).await;
        assert_eq!(world.store.read(|view| view.count(Kind::NodePool)), 0);
    }
    assert!(0 < created_too, "the interesting case came up");
}

#[tokio::test(start_paused = true)]
async fn i2_gone_means_confirmed_gone_by_the_cloud_that_has_it() {
    let world = World::new().await;
    let elsewhere = json!({"provider": "aws", "region": "us-east-1"});
    // Nothing was ever made for the first: no such cloud is configured.
    let never = Creation { spec: object(elsewhere), ..cluster_named("never") };
    world.create(&user(), never).await.unwrap();
    let refused = |world: &World, name: &str, kind: &str| {
        let condition = world.condition(cluster(name), kind);
        condition.is_some_and(|condition| condition.reason == "ProviderNotConfigured")
    };
    let kind = "ValidationSuccessful";
    world.until("it says so", |world| refused(world, "never", kind)).await;
    world.delete(cluster("never")).await;
    world.until_gone(cluster("never")).await;

    // The second has infrastructure that nobody can reach any more.
    ready(&world, &[]).await;
    *world.outside.provider.lock().unwrap() = "aws";
    let world = world.restart(settings()).await;
    world.delete(cluster("a")).await;
    let kind = "InfrastructureSuccessful";
    world.until("it says so", |world| refused(world, "a", kind)).await;
    tokio::time::sleep(std::time::Duration::from_secs(600)).await;
    assert_eq!(world.phase(cluster("a")), Some(Phase::Terminating));
    world.control.resources.force_delete(&admin(), cluster("a"), "paid for").await.unwrap();
}
