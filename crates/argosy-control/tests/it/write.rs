//! Creates and patches: keys, names, revisions, and answers that get lost.

use crate::world::{
    World, admin, cluster, cluster_named, object, of_tenant, settings, spec_patch, user,
    with_adapters,
};
use argosy_control::resource::{Created, Creation, Idempotency, Write};
use argosy_control::{Error, Revision, Settings};
use argosy_core::access::Caller;
use argosy_core::resource::Kind;
use futures_util::future::join_all;
use jiff::SignedDuration;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::time::Duration;

fn keyed(key: &str, digest: &str) -> Write {
    let idempotency = Idempotency { key: key.to_owned(), digest: digest.to_owned() };
    Write { idempotency: Some(idempotency), ..Write::default() }
}

async fn create(
    world: &World,
    caller: &Caller,
    creation: Creation<'_>,
    write: Write,
) -> Result<Created, Error> {
    world.control.resources.create(caller, creation, write).await
}

async fn quiet() -> World {
    World::with(with_adapters(&[])).await
}

#[tokio::test(start_paused = true)]
async fn a_repeated_request_finds_the_first_ones_result() {
    let world = quiet().await;
    let first = create(&world, &user(), cluster_named("a"), keyed("k", "d")).await.unwrap();
    assert!(!first.replayed);
    world.patch(&user(), cluster("a"), json!({"size": 2})).await.unwrap();
    let second = create(&world, &user(), cluster_named("a"), keyed("k", "d")).await.unwrap();
    assert!(second.replayed);
    assert_eq!(second.resource.value.id, first.resource.value.id);
    assert_eq!(second.resource.value.generation, 2, "as it is now");
    let other = create(&world, &user(), cluster_named("b"), keyed("k", "e")).await;
    assert!(matches!(other, Err(Error::KeyReused)));
    assert_eq!(world.get(cluster("b")), None);
}

#[tokio::test(start_paused = true)]
async fn callers_do_not_share_keys() {
    let world = quiet().await;
    create(&world, &user(), cluster_named("a"), keyed("c/k", "d")).await.unwrap();
    let sly = Caller { subject: "ann/c".to_owned(), ..user() };
    let taken = create(&world, &sly, cluster_named("a"), keyed("k", "d")).await;
    assert!(matches!(taken, Err(Error::NameTaken { deleting: false, .. })), "{taken:?}");
    let elsewhere = of_tenant("other");
    let made = create(&world, &elsewhere, cluster_named("a"), keyed("c/k", "d")).await.unwrap();
    assert!(!made.replayed);
}

#[tokio::test(start_paused = true)]
async fn a_key_is_forgotten_in_time_and_can_then_be_used_again() {
    let idempotency_kept = SignedDuration::from_hours(1);
    let world = World::with(Settings { idempotency_kept, ..with_adapters(&[]) }).await;
    create(&world, &user(), cluster_named("a"), keyed("k", "d")).await.unwrap();
    tokio::time::sleep(Duration::from_secs(3600 - 120)).await;
    let early = create(&world, &user(), cluster_named("b"), keyed("k", "e")).await;
    assert!(matches!(early, Err(Error::KeyReused)));
    // Expired, whether or not it was removed yet.
    tokio::time::sleep(Duration::from_secs(121)).await;
    create(&world, &user(), cluster_named("b"), keyed("k", "e")).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn thirty_two_requests_with_one_key_create_one() {
    let world = quiet().await;
    let caller = user();
    let all =
        join_all((0..32).map(|_| create(&world, &caller, cluster_named("a"), keyed("k", "d"))));
    let made: Vec<Created> = all.await.into_iter().map(Result::unwrap).collect();
    let ids: BTreeSet<_> = made.iter().map(|made| made.resource.value.id).collect();
    assert_eq!(ids.len(), 1);
    assert_eq!(made.iter().filter(|made| !made.replayed).count(), 1);
}

#[tokio::test(start_paused = true)]
async fn thirty_two_requests_with_one_key_for_different_things_create_one() {
    let world = quiet().await;
    let caller = user();
    let all = join_all((0..32).map(|index| {
        let write = keyed("k", &format!("digest {index}"));
        create(&world, &caller, cluster_named(&format!("c{index}")), write)
    }));
    let (made, refused): (Vec<_>, Vec<_>) = all.await.into_iter().partition(Result::is_ok);
    assert_eq!(made.len(), 1);
    assert!(refused.iter().all(|refused| matches!(refused, Err(Error::KeyReused))));
    assert_eq!(world.store.read(|view| view.count(Kind::Cluster)), 1);
}

#[tokio::test(start_paused = true)]
async fn thirty_two_requests_with_one_name_create_one() {
    let world = quiet().await;
    let caller = user();
    let all =
        join_all((0..32).map(|_| create(&world, &caller, cluster_named("a"), Write::default())));
    let (made, refused): (Vec<_>, Vec<_>) = all.await.into_iter().partition(Result::is_ok);
    assert_eq!(made.len(), 1);
    assert!(
        refused
            .iter()
            .all(|refused| matches!(refused, Err(Error::NameTaken { deleting: false, .. })))
    );
}

#[tokio::test(start_paused = true)]
async fn a1_a_retry_after_a_lost_answer_finds_the_same_object() {
    let world = quiet().await;
    world.rig.lose_answer.store(true, Ordering::SeqCst);
    let lost = create(&world, &user(), cluster_named("a"), keyed("k", "d")).await;
    assert!(matches!(lost, Err(Error::Store(argosy_store::Error::Unavailable(_)))), "{lost:?}");
    let again = create(&world, &user(), cluster_named("a"), keyed("k", "d")).await.unwrap();
    assert!(again.replayed);
    assert_eq!(world.store.read(|view| view.count(Kind::Cluster)), 1);
}

#[tokio::test(start_paused = true)]
async fn a1_also_if_the_store_stays_out_of_reach_for_a_while() {
    let world = quiet().await;
    world.rig.lose_answer.store(true, Ordering::SeqCst);
    world.rig.deaf.store(true, Ordering::SeqCst);
    let lost = create(&world, &user(), cluster_named("a"), keyed("k", "d")).await;
    assert!(lost.is_err());
    // The view cannot know, so the retry conflicts until it does.
    let caller = user();
    let retry = create(&world, &caller, cluster_named("a"), keyed("k", "d"));
    let heal = async {
        tokio::time::sleep(Duration::from_secs(5)).await;
        world.rig.deaf.store(false, Ordering::SeqCst);
    };
    let (again, ()) = futures_util::future::join(retry, heal).await;
    assert!(again.unwrap().replayed);
    assert_eq!(world.store.read(|view| view.count(Kind::Cluster)), 1);
}

#[tokio::test(start_paused = true)]
async fn what_was_written_shows_after_a_lost_answer_without_another_commit() {
    let world = quiet().await;
    world.rig.lose_answer.store(true, Ordering::SeqCst);
    world.rig.deaf.store(true, Ordering::SeqCst);
    assert!(create(&world, &user(), cluster_named("a"), Write::default()).await.is_err());
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(world.get(cluster("a")), None);
    world.rig.deaf.store(false, Ordering::SeqCst);
    world.until("it shows", |world| world.get(cluster("a")).is_some()).await;
}

#[tokio::test(start_paused = true)]
async fn h9_no_concurrent_patch_is_lost() {
    let world = quiet().await;
    world.cluster("a").await;
    let caller = user();
    let all = join_all((0..32).map(|index| {
        let mut spec = json!({});
        spec[format!("member-{index}")] = Value::from(index);
        world.patch(&caller, cluster("a"), spec)
    }));
    let generations: BTreeSet<u32> =
        all.await.into_iter().map(|patched| patched.unwrap().value.generation).collect();
    assert_eq!(generations, (2..=33).collect());
    let spec = world.get(cluster("a")).unwrap().spec.clone();
    assert!((0..32).all(|index| spec.contains_key(&format!("member-{index}"))));
}

#[tokio::test(start_paused = true)]
async fn h9_of_patches_that_expect_one_revision_one_wins() {
    let world = quiet().await;
    let revision = world.cluster("a").await.revision;
    let caller = user();
    let all = join_all((0..32).map(|index| {
        let (world, caller) = (&world, &caller);
        async move {
            let write = Write { if_match: Some(revision), ..Write::default() };
            let patch = spec_patch(json!({"size": index}));
            world.control.resources.patch(caller, cluster("a"), &patch, write).await
        }
    }));
    let (made, refused): (Vec<_>, Vec<_>) = all.await.into_iter().partition(Result::is_ok);
    assert_eq!(made.len(), 1);
    let won = made[0].as_ref().unwrap().revision;
    for refused in refused {
        let Err(Error::Changed { expected, current }) = refused else { panic!("{refused:?}") };
        assert_eq!((expected, current), (revision, won));
    }
}

#[tokio::test(start_paused = true)]
async fn a_patch_that_changes_nothing_writes_nothing() {
    let world = quiet().await;
    let before = world.cluster("a").await;
    let commits = world.rig.accepted.load(Ordering::SeqCst);
    let after = world.patch(&user(), cluster("a"), json!({"region": "us-east1"})).await.unwrap();
    assert_eq!((after.value.generation, after.revision), (1, before.revision));
    assert_eq!(world.rig.accepted.load(Ordering::SeqCst), commits);
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_answers_as_if_and_writes_nothing() {
    let world = quiet().await;
    let dry = || Write { dry_run: true, ..Write::default() };
    let made = create(&world, &user(), cluster_named("a"), dry()).await.unwrap();
    assert_eq!(made.resource.value.name.as_str(), "a");
    assert_eq!(world.get(cluster("a")), None);
    world.cluster("a").await;
    let before = world.store.read(|view| view.revision());
    let resources = &world.control.resources;
    let patch = spec_patch(json!({"size": 2}));
    let patched = resources.patch(&user(), cluster("a"), &patch, dry()).await.unwrap();
    assert_eq!(patched.value.generation, 2);
    let deleted = resources.delete(&user(), cluster("a"), dry()).await.unwrap();
    assert!(deleted.value.deletion.is_some());
    assert_eq!(world.store.read(|view| view.revision()), before);
    let bad = spec_patch(json!({"region": "the-moon"}));
    let refused = resources.patch(&user(), cluster("a"), &bad, dry()).await;
    assert!(matches!(refused, Err(Error::Invalid(_))));
}

#[tokio::test(start_paused = true)]
async fn a_name_that_looks_like_an_id_is_found() {
    let world = quiet().await;
    let name = "01234567-89ab-7def-8123-456789abcdef";
    let made = world.cluster(name).await.value;
    assert_eq!(world.get(cluster(name)).unwrap().id, made.id);
    // Somebody else's id goes before a name.
    let second = world.cluster(&made.id.to_string()).await.value;
    assert_ne!(second.id, made.id);
    assert_eq!(world.get(cluster(&made.id.to_string())).unwrap().id, made.id);
}

#[tokio::test(start_paused = true)]
async fn a_pool_needs_a_cluster() {
    let world = World::with(settings()).await;
    let spec = object(json!({"nodeCount": 1}));
    let alone = Creation { kind: Kind::NodePool, spec, ..cluster_named("p") };
    let refused = world.create(&admin(), alone.clone()).await;
    assert!(matches!(refused, Err(Error::NeedsCluster(Kind::NodePool))));
    let lost = Creation { cluster: Some("nowhere"), ..alone };
    let refused = world.create(&admin(), lost).await;
    assert!(matches!(refused, Err(Error::ClusterNotFound { .. })));
    assert_eq!(world.store.read(|view| view.revision()), Revision::ZERO);
}
