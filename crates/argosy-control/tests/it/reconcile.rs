//! From a wish to Ready, through failures, changes, hangs and panics.

use crate::world::{Does, World, admin, cluster, pool};
use argosy_core::adapter::Tri;
use argosy_core::resource::Resource;
use argosy_core::status::{Phase, phase};
use argosy_store::Revision;
use serde_json::json;
use std::sync::atomic::Ordering;

fn seconds(world: &World, since: jiff::Timestamp) -> f64 {
    world.now().duration_since(since).as_secs_f64()
}

/// The reason of one adapter's last word on Available.
fn reason(of: &Resource, name: &str) -> String {
    let said = of.reports.iter().find(|(adapter, _)| adapter.as_str() == name);
    said.map(|(_, report)| report.conditions.available.reason.clone()).unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn adapters_run_in_order_each_because_of_the_commit_before_it() {
    let world = World::new().await;
    let since = world.now();
    let created = world.cluster("a").await;
    assert_eq!(phase(&created.value), Phase::Pending);
    // Counted in commits: no timer is needed, so none may pass.
    let mut changes = world.store.subscribe();
    while world.phase(cluster("a")) != Some(Phase::Ready) {
        changes.changed().await.unwrap();
    }
    let events = world.store.events(Revision::ZERO).await.unwrap().unwrap();
    let changes = events.iter().flat_map(|event| &event.resources);
    let mut phases: Vec<_> = changes.map(|c| phase(&c.after.as_ref().unwrap().value)).collect();
    phases.dedup();
    assert_eq!(phases, [Phase::Pending, Phase::NotReady, Phase::Ready]);
    assert_eq!(world.cloud().calls(), ["a validation@1", "a dns@1", "a infrastructure@1"]);
    assert!(seconds(&world, since) < 0.005, "{}", seconds(&world, since));
    for kind in ["Reconciled", "ValidationSuccessful", "DnsSuccessful", "Healthy"] {
        assert_eq!(world.condition(cluster("a"), kind).unwrap().status, Tri::True, "{kind}");
    }

    world.pool("a", "p").await;
    world.until_phase(pool("a", "p"), Phase::Ready).await;
    assert_eq!(world.cloud().calls(), ["p validation@1"]);
    assert_eq!(world.cloud().asked_for("create"), 2);
    // Two machines boot meanwhile: their agents look every half second.
    assert!(seconds(&world, since) < 1.2, "{}", seconds(&world, since));
}

#[tokio::test(start_paused = true)]
async fn a_failing_adapter_is_retried_until_the_cause_is_gone() {
    let world = World::new().await;
    world.cloud().when("a dns", Some(Does::Fail("DNSZoneNotFound")));
    world.cluster("a").await;
    world.until("six tries", |world| world.cloud().count("a dns@1") == 6).await;
    let of = world.get(cluster("a")).unwrap();
    assert_eq!(world.phase(cluster("a")), Some(Phase::NotReady));
    assert_eq!(world.condition(cluster("a"), "DnsSuccessful").unwrap().reason, "DNSZoneNotFound");
    assert_eq!(world.cloud().count("a infrastructure@1"), 0, "{of:?}");

    world.cloud().when("a dns", None);
    let since = world.now();
    world.until_phase(cluster("a"), Phase::Ready).await;
    assert!(seconds(&world, since) <= 10.1, "{}", seconds(&world, since));
}

#[tokio::test(start_paused = true)]
async fn a_retry_under_way_does_not_hide_why_the_last_try_failed() {
    let world = World::new().await;
    world.cloud().when("a dns", Some(Does::Fail("DNSZoneNotFound")));
    world.cluster("a").await;
    let failed = |world: &World| {
        world.get(cluster("a")).is_some_and(|of| reason(&of, "dns") == "DNSZoneNotFound")
    };
    world.until("a failure", failed).await;
    world.cloud().when("a dns", Some(Does::Hang));
    world.until("a retry", |world| world.cloud().count("a dns@1") == 2).await;
    assert!(failed(&world));
}

#[tokio::test(start_paused = true)]
async fn waits_between_retries_grow_up_to_a_limit() {
    let world = World::new().await;
    world.cloud().when("a validation", Some(Does::Fail("PermissionDenied")));
    let since = world.now();
    world.cluster("a").await;
    let mut times = Vec::new();
    for tries in 1..=7 {
        world.until("a try", |world| world.cloud().count("a validation@1") == tries).await;
        times.push(seconds(&world, since));
    }
    let waits: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let expected = [1.0, 2.0, 4.0, 8.0, 10.0, 10.0];
    for (wait, full) in waits.iter().zip(expected) {
        assert!(full * 0.79 <= *wait && *wait <= full + 0.05, "{waits:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn ready_stays_ready_while_a_health_check_fails() {
    let world = World::new().await;
    world.cloud().when("a infrastructure", Some(Does::Unhealthy));
    world.cluster("a").await;
    world.until_phase(cluster("a"), Phase::Ready).await;
    let healthy = world.condition(cluster("a"), "Healthy").unwrap();
    assert_eq!((healthy.status, healthy.reason.as_str()), (Tri::False, "HealthCheckFailed"));
    tokio::time::sleep(std::time::Duration::from_secs(60)).await;
    assert_eq!(world.phase(cluster("a")), Some(Phase::Ready));

    world.cloud().when("a infrastructure", None);
    world
        .until("it is healthy again", |world| {
            world.condition(cluster("a"), "Healthy").unwrap().status == Tri::True
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_patch_ends_the_runs_of_the_generation_before() {
    let world = World::new().await;
    world.cloud().when("a infrastructure", Some(Does::Hang));
    world.cluster("a").await;
    world.until("it works", |world| world.cloud().count("a infrastructure@1") == 1).await;
    assert_eq!(world.cloud().busy.load(Ordering::SeqCst), 1);

    // The new generation begins with validation, and the old run ends all the same.
    world.cloud().when("a validation", Some(Does::Fail("QuotaExceeded")));
    world.patch(&admin(), cluster("a"), json!({"region": "us-west1"})).await.unwrap();
    world.until("it is told", |world| world.cloud().count("a validation@2") == 1).await;
    assert_eq!(world.cloud().busy.load(Ordering::SeqCst), 0);

    world.cloud().when("a infrastructure", None);
    world.cloud().when("a validation", None);
    world.until_phase(cluster("a"), Phase::Ready).await;
    assert_eq!(world.condition(cluster("a"), "Reconciled").unwrap().observed_generation, 2);
    assert_eq!(world.cloud().count("a infrastructure@2"), 1);
}

#[tokio::test(start_paused = true)]
async fn what_is_done_is_looked_at_again_only_at_the_resync() {
    let world = World::new().await;
    world.cluster("a").await;
    world.until_phase(cluster("a"), Phase::Ready).await;
    let since = world.now();
    world.cloud().calls();
    world.until("the resync", |world| world.cloud().count("a infrastructure@1") == 1).await;
    assert!((1799.0..=1801.0).contains(&seconds(&world, since)), "{}", seconds(&world, since));
    assert_eq!(world.phase(cluster("a")), Some(Phase::Ready));
}

#[tokio::test(start_paused = true)]
async fn h4_a_run_that_hangs_is_cut_off_and_tried_again() {
    let world = World::new().await;
    world.cloud().when("a dns", Some(Does::Hang));
    let since = world.now();
    world.cluster("a").await;
    world
        .until("it says so", |world| {
            world.get(cluster("a")).is_some_and(|of| reason(&of, "dns") == "DeadlineExceeded")
        })
        .await;
    assert!((299.0..=301.0).contains(&seconds(&world, since)), "{}", seconds(&world, since));
    world.cloud().when("a dns", None);
    let since = world.now();
    world.until_phase(cluster("a"), Phase::Ready).await;
    assert!(seconds(&world, since) < 11.0);
}

#[tokio::test(start_paused = true)]
async fn a_cloud_that_hangs_for_hundreds_does_not_stop_the_others_for_good() {
    let world = World::new().await;
    for index in 0..300 {
        world.cloud().when(&format!("slow-{index} validation"), Some(Does::Hang));
        world.cluster(&format!("slow-{index}")).await;
    }
    world.cluster("a").await;
    world.until_phase(cluster("a"), Phase::Ready).await;
}

#[tokio::test(start_paused = true)]
async fn a10_a_panic_stays_with_its_resource() {
    let world = World::new().await;
    world.cloud().when("bad dns", Some(Does::Panic));
    world.cluster("bad").await;
    world.cluster("good").await;
    world.until_phase(cluster("good"), Phase::Ready).await;
    world.until("five panics", |world| world.cloud().count("bad dns@1") == 5).await;
    let shown = |world: &World| world.condition(cluster("bad"), "DnsSuccessful").unwrap();
    world.until("it says so", |world| shown(world).message.contains("set aside")).await;
    assert_eq!(shown(&world).reason, "AdapterPanicked");

    tokio::time::sleep(std::time::Duration::from_secs(3600)).await;
    assert_eq!(world.cloud().count("bad dns@1"), 5, "it is set aside");

    // A change is a reason to try again, as often as before.
    world.patch(&admin(), cluster("bad"), json!({"note": "try again"})).await.unwrap();
    world.until("five more", |world| world.cloud().count("bad dns@2") == 5).await;
    world.cloud().when("bad dns", None);
    world.patch(&admin(), cluster("bad"), json!({"note": "mended"})).await.unwrap();
    world.until_phase(cluster("bad"), Phase::Ready).await;
}

#[tokio::test(start_paused = true)]
async fn a_loop_that_does_not_go_on_is_named() {
    let world = World::new().await;
    tokio::time::sleep(std::time::Duration::from_secs(600)).await;
    assert_eq!(world.control.alive(), Ok(()));
    // The retention loop asks for its lease, and never hears.
    world.rig.freeze(true);
    tokio::time::sleep(std::time::Duration::from_secs(180)).await;
    assert!(world.control.alive().unwrap_err().contains("retention"));
}
