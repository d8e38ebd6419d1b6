//! Watches: the list first, then every change, resumable, and nothing of others.

use crate::world::{
    World, admin, cluster, cluster_named, in_virtual_time, labelled, of_team, of_tenant, pool,
    pool_named, report, user, with_adapters,
};
use argosy_control::resource::{Target, Write};
use argosy_control::watch::{Watch, WatchEvent, WatchList};
use argosy_control::{Error, Revision, Settings};
use argosy_core::access::Caller;
use argosy_core::adapter::{AdapterGraph, DraftCondition, Runner};
use argosy_core::resource::{Kind, Resource};
use argosy_core::search::Filter;
use argosy_store::engine::Retention;
use futures_util::FutureExt;
use jiff::SignedDuration;
use proptest::prelude::*;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a watch of clusters asks for.
fn all<'a>() -> WatchList<'a> {
    WatchList {
        kind: Kind::Cluster,
        cluster: None,
        reference: None,
        filter: Filter::everything(),
        after: None,
    }
}

fn pools<'a>() -> WatchList<'a> {
    WatchList { kind: Kind::NodePool, ..all() }
}

fn open(world: &World, caller: &Caller, list: WatchList<'_>) -> Watch {
    world.control.resources.watch(caller, list).unwrap()
}

/// An event as a word: `+a`, `~a`, `-a`, `=7`.
fn word(world: &World, event: &WatchEvent) -> String {
    match event {
        WatchEvent::Added(item) => format!("+{}", item.value.name),
        WatchEvent::Modified(item) => format!("~{}", item.value.name),
        WatchEvent::Deleted { id, last, .. } => {
            let tombstone = world.store.read(|view| {
                let living = view.resource(*id).map(|found| found.value.name.to_string());
                living.or_else(|| view.tombstone(*id).map(|gone| gone.value.name.to_string()))
            });
            let name = last.as_ref().map(|last| last.value.name.to_string()).or(tombstone);
            format!("-{}", name.unwrap_or_default())
        }
        WatchEvent::Bookmark(_) => "=".to_owned(),
    }
}

/// Everything a watch has to say until it waits.
async fn drain(watch: &mut Watch) -> Result<Vec<WatchEvent>, Error> {
    let mut events = Vec::new();
    let patience = std::time::Duration::from_millis(1);
    while let Ok(event) = tokio::time::timeout(patience, watch.next()).await {
        events.push(event?);
    }
    Ok(events)
}

async fn words(world: &World, watch: &mut Watch) -> String {
    let events = drain(watch).await.unwrap();
    events.iter().map(|event| word(world, event)).collect::<Vec<_>>().join(" ")
}

async fn quiet() -> World {
    World::with(with_adapters(&[])).await
}

/// A store whose memory of events is empty, as after a restart: what is asked for comes from the
/// engine.
async fn reopened(world: World) -> World {
    world.restart(with_adapters(&[])).await
}

#[tokio::test(start_paused = true)]
async fn a_watch_begins_with_what_is_there_and_goes_on() {
    let world = quiet().await;
    world.cluster("a").await;
    world.cluster("b").await;
    let mut watch = open(&world, &user(), all());
    assert_eq!(words(&world, &mut watch).await, "+a +b =");
    world.cluster("c").await;
    world.patch(&user(), cluster("a"), json!({"x": 1})).await.unwrap();
    world.pool("a", "p").await;
    assert_eq!(words(&world, &mut watch).await, "+c ~a");
    world.delete(cluster("b")).await;
    world.until_gone(cluster("b")).await;
    assert_eq!(words(&world, &mut watch).await, "~b -b");
}

#[tokio::test(start_paused = true)]
async fn one_resource_can_be_watched() {
    let world = quiet().await;
    world.cluster("a").await;
    world.cluster("b").await;
    let list = WatchList { reference: Some("a"), ..all() };
    let mut watch = open(&world, &user(), list);
    assert_eq!(words(&world, &mut watch).await, "+a =");
    world.patch(&user(), cluster("b"), json!({"x": 1})).await.unwrap();
    world.delete(cluster("a")).await;
    world.until_gone(cluster("a")).await;
    assert_eq!(words(&world, &mut watch).await, "~a -a");
    let gone = world.control.resources.watch(&user(), WatchList { reference: Some("a"), ..all() });
    assert!(matches!(gone, Err(Error::Deleted { .. })));
}

#[tokio::test(start_paused = true)]
async fn what_leaves_the_filter_is_deleted_and_what_enters_it_is_added() {
    let world = quiet().await;
    world.cluster("a").await;
    let list = || WatchList { filter: Filter::label("tier", "gold"), ..all() };
    let mut watch = open(&world, &user(), list());
    assert_eq!(words(&world, &mut watch).await, "=");
    world.relabel(&user(), cluster("a"), json!({"tier": "gold"})).await.unwrap();
    world.patch(&user(), cluster("a"), json!({"x": 1})).await.unwrap();
    assert_eq!(words(&world, &mut watch).await, "+a ~a");
    world.relabel(&user(), cluster("a"), json!({"tier": "tin"})).await.unwrap();
    world.patch(&user(), cluster("a"), json!({"x": 2})).await.unwrap();
    assert_eq!(words(&world, &mut watch).await, "-a");
}

#[tokio::test(start_paused = true)]
async fn pools_of_one_cluster_can_be_watched() {
    let world = quiet().await;
    for name in ["a", "b"] {
        world.cluster(name).await;
        world.pool(name, &format!("p{name}")).await;
    }
    let of_a = || WatchList { cluster: Some("a"), ..pools() };
    let mut watch = open(&world, &user(), of_a());
    assert_eq!(words(&world, &mut watch).await, "+pa =");
    let from = world.store.read(|view| view.revision());
    let change = async |world: &World| {
        world.patch(&user(), pool("b", "pb"), json!({"x": 1})).await.unwrap();
        world.patch(&user(), pool("a", "pa"), json!({"x": 1})).await.unwrap();
        world.delete(pool("b", "pb")).await;
        world.until_gone(pool("b", "pb")).await;
    };
    change(&world).await;
    assert_eq!(words(&world, &mut watch).await, "~pa");
    // The same, read back from the engine.
    let world = reopened(world).await;
    let mut watch = open(&world, &user(), WatchList { after: Some(from), ..of_a() });
    assert_eq!(words(&world, &mut watch).await, "~pa");
}

/// What a client holds after it has followed a watch.
fn fold(held: &mut BTreeMap<String, Arc<Resource>>, event: &WatchEvent) {
    match event {
        WatchEvent::Added(item) | WatchEvent::Modified(item) => {
            held.insert(item.value.id.to_string(), item.value.clone());
        }
        WatchEvent::Deleted { id, .. } => drop(held.remove(&id.to_string())),
        WatchEvent::Bookmark(_) => {}
    }
}

fn revision_of(event: &WatchEvent) -> Revision {
    match event {
        WatchEvent::Added(item) | WatchEvent::Modified(item) => item.revision,
        WatchEvent::Deleted { revision, .. } | WatchEvent::Bookmark(revision) => *revision,
    }
}

#[test]
fn i13_a_watch_resumed_anywhere_ends_where_the_live_one_does() {
    let step = (0..5_u8, 0..4_u8, 0..3_u8);
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(16));
    runner
        .run(&prop::collection::vec(step, 1..20), |steps| {
            in_virtual_time(async {
                let mut world = quiet().await;
                let list = || WatchList { filter: Filter::label("tier", "v1"), ..all() };
                let mut live = open(&world, &user(), list());
                for (what, which, tier) in steps {
                    let name = format!("c{which}");
                    let labels = json!({"tier": format!("v{tier}")});
                    match what {
                        0 | 1 => {
                            let creation = labelled(cluster_named(&name), labels);
                            drop(world.create(&user(), creation).await);
                        }
                        2 => drop(world.relabel(&user(), cluster(&name), labels).await),
                        3 => drop(world.patch(&user(), cluster(&name), json!({"x": tier})).await),
                        _ => {
                            let write = Write::default();
                            let resources = &world.control.resources;
                            drop(resources.delete(&user(), cluster(&name), write).await);
                        }
                    }
                }
                world.pass(SignedDuration::from_secs(1)).await;
                let told = drain(&mut live).await.unwrap();
                let mut end = BTreeMap::new();
                told.iter().for_each(|event| fold(&mut end, event));
                // From memory, and then from the engine.
                for reopen in [false, true] {
                    if reopen {
                        world = reopened(world).await;
                    }
                    let head = world.store.read(|view| view.revision());
                    for from in 0..=head.0 {
                        let after = Some(Revision(from));
                        let mut held = BTreeMap::new();
                        let seen = told.iter().filter(|event| revision_of(event).0 <= from);
                        seen.for_each(|event| fold(&mut held, event));
                        let mut watch = open(&world, &user(), WatchList { after, ..list() });
                        let events = drain(&mut watch).await.unwrap();
                        events.iter().for_each(|event| fold(&mut held, event));
                        prop_assert_eq!(&held, &end, "from {}, from the engine: {}", from, reopen);
                        let order: Vec<_> = events.iter().map(revision_of).collect();
                        prop_assert!(order.is_sorted() && order.iter().all(|at| from < at.0));
                    }
                }
                Ok(())
            })
        })
        .unwrap();
}

#[tokio::test(start_paused = true)]
async fn i13_a_watch_resumes_across_the_edge_of_memory() {
    let world = quiet().await;
    world.cluster("a").await;
    // More than memory keeps.
    for size in 0..4200 {
        world.patch(&user(), cluster("a"), json!({"size": size})).await.unwrap();
    }
    let head = world.store.read(|view| view.revision()).0;
    assert_eq!(head, 4201);
    for from in [0, 1, 100, 104, 105, 106, 4200, 4201] {
        let list = WatchList { after: Some(Revision(from)), ..all() };
        let events = drain(&mut open(&world, &user(), list)).await.unwrap();
        let found: Vec<u64> = events.iter().map(|event| revision_of(event).0).collect();
        assert_eq!(found, (from + 1..=head).collect::<Vec<_>>(), "from {from}");
    }
}

#[tokio::test(start_paused = true)]
async fn i13_what_is_no_longer_or_was_never_retained_is_gone() {
    let world = quiet().await;
    world.cluster("a").await;
    for size in 0..50 {
        world.patch(&user(), cluster("a"), json!({"size": size})).await.unwrap();
    }
    world.store.trim(&Retention { changes_kept: 45, streams: Vec::new() }).await.unwrap();
    let world = reopened(world).await;
    let resume = async |from: u64| {
        let list = WatchList { after: Some(Revision(from)), ..all() };
        drain(&mut open(&world, &user(), list)).await.map(|events| events.len())
    };
    assert!(matches!(resume(5).await, Err(Error::Gone { oldest: Revision(6), .. })));
    assert_eq!(resume(6).await.unwrap(), 45);
    assert_eq!(resume(51).await.unwrap(), 0);
    assert!(matches!(resume(52).await, Err(Error::Gone { .. })));
    assert!(matches!(resume(u64::MAX).await, Err(Error::Gone { .. })));
}

#[tokio::test(start_paused = true)]
async fn a_revision_that_another_process_gave_out_is_waited_for() {
    let one = quiet().await;
    let two = one.another(with_adapters(&[]), "two").await;
    let revision = one.cluster("a").await.revision;
    assert!(two.store.read(|view| view.revision()) < revision, "it has not heard yet");
    let mut watch = open(&two, &user(), WatchList { after: Some(revision), ..all() });
    assert_eq!(words(&two, &mut watch).await, "");
    one.cluster("b").await;
    two.until("it has heard", |world| world.get(cluster("b")).is_some()).await;
    assert_eq!(words(&two, &mut watch).await, "+b");
}

#[tokio::test(start_paused = true)]
async fn a_watch_with_nothing_to_show_says_how_far_it_is() {
    let world = quiet().await;
    world.cluster("a").await;
    let list = WatchList { filter: Filter::label("tier", "gold"), ..all() };
    let mut watch = open(&world, &user(), list);
    drain(&mut watch).await.unwrap();
    let mut events = Vec::new();
    // In steps: a watcher that is far behind is told more, to be on the safe side.
    for size in 0..1100 {
        world.patch(&user(), cluster("a"), json!({"size": size})).await.unwrap();
        if size % 100 == 99 {
            events.extend(drain(&mut watch).await.unwrap());
        }
    }
    let bookmarks: Vec<u64> = events.iter().map(|event| revision_of(event).0).collect();
    assert!(events.iter().all(|event| matches!(event, WatchEvent::Bookmark(_))));
    assert_eq!(bookmarks.len(), 1, "{bookmarks:?}");
}

/// Settings in which nothing goes before the adapter `scan` has said so.
fn attended() -> Settings {
    let one = with_adapters(&[("scan", Runner::External)]);
    let scan = one.adapters.of(Kind::Cluster).to_vec();
    let kinds = Kind::ALL.into_iter().map(|kind| (kind, scan.clone())).collect();
    Settings { adapters: AdapterGraph::new(kinds).unwrap(), ..one }
}

/// The adapter `scan` says that it has cleaned up.
async fn finalize(world: &World, target: Target<'_>) {
    let generation = world.get(target).unwrap().generation;
    let mut draft = report("scan", generation, "F", None);
    let finalized = DraftCondition { kind: "Finalized".to_owned(), ..draft.conditions[1].clone() };
    draft.conditions.push(finalized);
    world.control.adapters.report(&admin(), target, draft).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn i8_nothing_of_another_tenant_or_team_is_told() {
    let world = World::with(attended()).await;
    let from = Revision::ZERO;
    let alpha = of_team("alpha");
    let strangers = [of_team("beta"), user(), of_tenant("other")];
    let mut live: Vec<Watch> = strangers
        .iter()
        .flat_map(|caller| [open(&world, caller, all()), open(&world, caller, pools())])
        .collect();
    for watch in &mut live {
        drain(watch).await.unwrap();
    }
    let team = json!({"team": "alpha"});
    for name in ["a", "b"] {
        world.create(&alpha, labelled(cluster_named(name), team.clone())).await.unwrap();
        // Without a label of its own.
        world.create(&alpha, pool_named(name, "p")).await.unwrap();
        world.patch(&alpha, pool(name, "p"), json!({"x": 1})).await.unwrap();
    }
    // One goes in order, the other by force, cluster and pool in one commit.
    let resources = &world.control.resources;
    for name in ["a", "b"] {
        resources.delete(&alpha, cluster(name), Write::default()).await.unwrap();
    }
    finalize(&world, pool("a", "p")).await;
    world.until_gone(pool("a", "p")).await;
    finalize(&world, cluster("a")).await;
    world.until_gone(cluster("a")).await;
    resources.force_delete(&admin(), cluster("b"), "test").await.unwrap();
    for (index, watch) in live.iter_mut().enumerate() {
        let events = drain(watch).await.unwrap();
        assert!(events.is_empty(), "live {index}: {events:?}");
    }

    let mut world = world;
    for reopen in [false, true] {
        if reopen {
            world = world.restart(attended()).await;
        }
        for caller in &strangers {
            for list in [all(), pools()] {
                let list = WatchList { after: Some(from), ..list };
                let events = drain(&mut open(&world, caller, list)).await.unwrap();
                assert!(events.is_empty(), "{} {reopen}: {events:?}", caller.subject);
            }
        }
        // Its own team, and the tenant's admins, see it all.
        for caller in [&alpha, &admin()] {
            for list in [all(), pools()] {
                let list = WatchList { after: Some(from), ..list };
                let events = drain(&mut open(&world, caller, list)).await.unwrap();
                let ends = events.iter().filter(|e| matches!(e, WatchEvent::Deleted { .. }));
                assert_eq!(ends.count(), 2, "{} {reopen}: {events:?}", caller.subject);
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn i8_what_moves_to_another_team_leaves_without_a_trace() {
    let world = quiet().await;
    let (alpha, beta) = (of_team("alpha"), of_team("beta"));
    world.create(&alpha, labelled(cluster_named("a"), json!({"team": "alpha"}))).await.unwrap();
    let mut before = open(&world, &alpha, all());
    let mut after = open(&world, &beta, all());
    assert_eq!(words(&world, &mut before).await, "+a =");
    assert_eq!(words(&world, &mut after).await, "=");
    let from = world.store.read(|view| view.revision());
    world.relabel(&admin(), cluster("a"), json!({"team": "beta"})).await.unwrap();
    world.patch(&beta, cluster("a"), json!({"secret": 1})).await.unwrap();
    let told = drain(&mut before).await.unwrap();
    let [WatchEvent::Deleted { last: Some(last), .. }] = &told[..] else { panic!("{told:?}") };
    assert_eq!(last.value.labels.get("team"), Some("alpha"), "as it was, not as it is");
    assert_eq!(words(&world, &mut after).await, "+a ~a");

    // From the engine it cannot be told whose it was: list again.
    let world = reopened(world).await;
    let resumed = |caller| open(&world, caller, WatchList { after: Some(from), ..all() });
    let outcome = drain(&mut resumed(&alpha)).await;
    assert!(matches!(outcome, Err(Error::Gone { .. })), "{outcome:?}");
    assert_eq!(words(&world, &mut resumed(&beta)).await, "~a ~a");
}

#[tokio::test(start_paused = true)]
async fn o3_a_thousand_idle_watchers_hear_of_one_commit() {
    let world = quiet().await;
    let mut watches: Vec<Watch> = (0..1000).map(|_| open(&world, &user(), all())).collect();
    for watch in &mut watches {
        assert!(matches!(watch.next().await, Ok(WatchEvent::Bookmark(_))));
    }
    let caller = user();
    let heard = futures_util::future::join_all(watches.iter_mut().map(Watch::next));
    let (heard, created) =
        futures_util::future::join(heard, world.create(&caller, cluster_named("a"))).await;
    created.unwrap();
    assert!(heard.iter().all(|event| matches!(event, Ok(WatchEvent::Added(_)))));
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_dropped_while_it_waits_misses_nothing() {
    let world = quiet().await;
    let mut watch = open(&world, &user(), all());
    drain(&mut watch).await.unwrap();
    for index in 0..50 {
        let name = format!("c{index}");
        assert!(watch.next().now_or_never().is_none());
        world.cluster(&name).await;
        assert_eq!(words(&world, &mut watch).await, format!("+{name}"));
    }
}
