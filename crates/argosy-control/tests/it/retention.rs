//! What is old goes, and nothing else does.

use crate::world::{World, admin, cluster, cluster_named, user, with_adapters};
use argosy_control::resource::{Idempotency, Write};
use argosy_control::{Error, Settings};
use argosy_core::resource::Kind;
use jiff::SignedDuration;
use serde_json::json;
use std::time::Duration;

fn hours(count: u64) -> Duration {
    Duration::from_secs(count * 3600)
}

#[tokio::test(start_paused = true)]
async fn tombstones_and_keys_go_in_time_and_nothing_else_does() {
    let settings = Settings {
        tombstones_kept: SignedDuration::from_hours(1),
        idempotency_kept: SignedDuration::from_hours(2),
        ..with_adapters(&[])
    };
    let world = World::with(settings).await;
    let key = Idempotency { key: "k".to_owned(), digest: "d".to_owned() };
    let write = Write { idempotency: Some(key), ..Write::default() };
    world.control.resources.create(&user(), cluster_named("kept"), write).await.unwrap();
    let gone = world.cluster("gone").await.value.id;
    world.delete(cluster("gone")).await;
    world.until_gone(cluster("gone")).await;

    let left = |world: &World| {
        world.store.read(|view| {
            let keys = view.idempotency_keys_expired(jiff::Timestamp::MAX).len();
            (view.count(Kind::Cluster), view.tombstone(gone).is_some(), keys)
        })
    };
    tokio::time::sleep(hours(1) - Duration::from_secs(120)).await;
    assert_eq!(left(&world), (1, true, 1));
    tokio::time::sleep(Duration::from_secs(240)).await;
    assert_eq!(left(&world), (1, false, 1));
    let missing = world.control.resources.get(&user(), cluster("gone"));
    assert!(matches!(missing, Err(Error::NotFound { .. })));
    tokio::time::sleep(hours(1)).await;
    assert_eq!(left(&world), (1, false, 0));
    assert!(world.get(cluster("kept")).is_some());
}

#[tokio::test(start_paused = true)]
async fn more_than_one_commits_worth_goes_at_once() {
    let kept = SignedDuration::from_hours(1);
    let world = World::with(Settings { idempotency_kept: kept, ..with_adapters(&[]) }).await;
    for index in 0..1200 {
        let key = Idempotency { key: format!("k{index}"), digest: "d".to_owned() };
        let write = Write { idempotency: Some(key), ..Write::default() };
        let creation = cluster_named(&format!("c{index}"));
        world.control.resources.create(&user(), creation, write).await.unwrap();
    }
    let keys = || world.store.read(|v| v.idempotency_keys_expired(jiff::Timestamp::MAX).len());
    tokio::time::sleep(hours(1) - Duration::from_secs(5)).await;
    assert_eq!(keys(), 1200);
    tokio::time::sleep(Duration::from_secs(70)).await;
    assert_eq!(keys(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_log_that_is_old_as_a_whole_still_verifies() {
    let settings = Settings { audit_kept: SignedDuration::from_hours(1), ..with_adapters(&[]) };
    let world = World::with(settings).await;
    world.cluster("a").await;
    for size in 0..5 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        world.patch(&user(), cluster("a"), json!({"size": size})).await.unwrap();
    }
    tokio::time::sleep(hours(3)).await;
    let found = world.control.audit.verify(&admin()).await.unwrap();
    assert_eq!((found.broken, found.last), (None, Some(6)));
    assert_eq!(found.entries, 1, "the others are gone");
    world.patch(&user(), cluster("a"), json!({"size": 9})).await.unwrap();
    let found = world.control.audit.verify(&admin()).await.unwrap();
    assert_eq!((found.broken, found.last), (None, Some(7)));
}
