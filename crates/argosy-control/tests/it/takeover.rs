//! More than one process on one store, one after the other or at the same time.

use crate::world::{Does, World, cluster, cluster_named, settings, user, with_adapters};
use argosy_control::Error;
use argosy_core::adapter::Runner;
use argosy_core::resource::Kind;
use argosy_core::status::Phase;
use argosy_store::engine::{Outcome, Retention};
use serde_json::json;
use std::sync::atomic::Ordering;
use std::time::Duration;

#[tokio::test(start_paused = true)]
async fn a_new_process_goes_on_where_the_old_one_was() {
    let world = World::new().await;
    world.cluster("done").await;
    world.until_phase(cluster("done"), Phase::Ready).await;
    world.cloud().when("a dns", Some(Does::Hang));
    world.cluster("a").await;
    world.until("it works", |world| world.cloud().count("a dns@1") == 1).await;
    world.cloud().calls();

    let world = world.restart(settings()).await;
    assert_eq!(world.cloud().busy.load(Ordering::SeqCst), 0, "the old run ended with the process");
    world.cloud().when("a dns", None);
    let since = world.now();
    world.until_phase(cluster("a"), Phase::Ready).await;
    // The dead process's lease, and then the resync of what was under way.
    assert!(world.now().duration_since(since).as_secs() <= 21);
    assert_eq!(world.cloud().calls(), ["a dns@1", "a infrastructure@1"], "what was done is done");
    assert_eq!(world.phase(cluster("done")), Some(Phase::Ready));
}

#[tokio::test(start_paused = true)]
async fn a_restart_with_nothing_to_do_commits_nothing() {
    let world = World::with(with_adapters(&[("scan", Runner::External)])).await;
    for index in 0..1000 {
        world.cluster(&format!("c{index}")).await;
    }
    let same = with_adapters(&[("scan", Runner::External)]);
    let world = world.restart(same).await;
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(world.rig.accepted.load(Ordering::SeqCst), 0);
}

#[tokio::test(start_paused = true)]
async fn a_changed_configuration_reaches_what_is_there() {
    let world = World::with(with_adapters(&[("scan", Runner::External)])).await;
    for index in 0..100 {
        world.cluster(&format!("c{index}")).await;
    }
    let world = world.restart(with_adapters(&[])).await;
    world
        .until("all are ready", |world| {
            (0..100).all(|i| world.phase(cluster(&format!("c{i}"))) == Some(Phase::Ready))
        })
        .await;
    assert_eq!(world.rig.accepted.load(Ordering::SeqCst), 100);
}

#[tokio::test(start_paused = true)]
async fn h6_of_two_processes_one_runs_adapters() {
    let one = World::new().await;
    let two = one.another(settings(), "two").await;
    for (index, world) in [&one, &two, &one, &two].into_iter().enumerate() {
        world.cluster(&format!("c{index}")).await;
    }
    for index in 0..4 {
        let name = format!("c{index}");
        one.until_phase(cluster(&name), Phase::Ready).await;
        two.until_phase(cluster(&name), Phase::Ready).await;
    }
    let mut calls = one.cloud().calls();
    let all = calls.len();
    calls.sort_unstable();
    calls.dedup();
    assert_eq!((calls.len(), all), (12, 12), "each adapter ran once for each");
    assert_eq!(two.control.stats.adapter_runs.get(), 0);
}

#[tokio::test(start_paused = true)]
async fn b7_a_leader_that_wakes_up_too_late_is_fenced_off() {
    let one = World::new().await;
    let two = one.another(settings(), "two").await;
    let rig = one.rig.clone();
    one.cloud().when("a infrastructure", Some(Does::Fail("Busy")));
    one.cluster("a").await;
    one.until("it is tried", |world| world.cloud().count("a infrastructure@1") == 1).await;
    // It stops before it has written down how that went.
    rig.freeze(true);
    rig.outcomes.lock().unwrap().clear();
    one.cloud().when("a infrastructure", None);
    let since = two.now();
    two.until_phase(cluster("a"), Phase::Ready).await;
    assert!(two.now().duration_since(since).as_secs() <= 25, "{}", two.now());
    let before = two.get(cluster("a"));
    two.cloud().calls();

    tokio::time::sleep(Duration::from_secs(30)).await;
    rig.freeze(false);
    tokio::time::sleep(Duration::from_secs(30)).await;
    let outcomes = rig.outcomes.lock().unwrap().clone();
    assert!(!outcomes.is_empty(), "it did try");
    assert!(outcomes.iter().all(|outcome| *outcome == Outcome::Fenced), "{outcomes:?}");
    assert_eq!(two.get(cluster("a")), before);
    assert_eq!(two.cloud().calls(), Vec::<String>::new());
    // It follows again, and serves.
    assert_eq!(one.get(cluster("a")), before);
    one.patch(&user(), cluster("a"), json!({"size": 2})).await.unwrap();
    one.until_phase(cluster("a"), Phase::Ready).await;
    assert_eq!(one.get(cluster("a")).unwrap().generation, 2);
}

#[tokio::test(start_paused = true)]
async fn a_write_on_an_old_view_is_decided_again_on_a_new_one() {
    let one = World::new().await;
    let two = one.another(settings(), "two").await;
    one.cluster("a").await;
    // The second has not heard of it, and is not asked to.
    let taken = two.create(&user(), cluster_named("a")).await;
    assert!(matches!(taken, Err(Error::NameTaken { .. })), "{taken:?}");
    let (a, b) = (user(), user());
    let patches = futures_util::future::join(
        one.patch(&a, cluster("a"), json!({"x": 1})),
        two.patch(&b, cluster("a"), json!({"y": 2})),
    );
    let (first, second) = patches.await;
    first.unwrap();
    second.unwrap();
    let is_both = |world: &World| {
        let spec = world.get(cluster("a")).unwrap().spec.clone();
        spec.contains_key("x") && spec.contains_key("y")
    };
    one.until("both see both", |_| is_both(&one) && is_both(&two)).await;
}

#[tokio::test(start_paused = true)]
async fn a_process_that_fell_behind_the_feed_loads_everything_again() {
    let one = World::with(with_adapters(&[])).await;
    let two = one.another(with_adapters(&[]), "two").await;
    two.rig.deaf.store(true, Ordering::SeqCst);
    for index in 0..20 {
        one.cluster(&format!("c{index}")).await;
    }
    one.delete(cluster("c0")).await;
    one.until_gone(cluster("c0")).await;
    one.store.trim(&Retention { changes_kept: 1, streams: Vec::new() }).await.unwrap();
    assert_eq!(two.get(cluster("c1")), None);
    two.rig.deaf.store(false, Ordering::SeqCst);
    two.until("it has caught up", |world| world.get(cluster("c19")).is_some()).await;
    let all = |world: &World| {
        world.store.read(|view| {
            let all = view.resources(Kind::Cluster).map(|found| found.value.clone());
            (view.revision(), all.collect::<Vec<_>>())
        })
    };
    assert_eq!(all(&two), all(&one));
    two.cluster("mine").await;
}
