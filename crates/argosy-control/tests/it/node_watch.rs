//! Watches of nodes and commands: as those of resources, and nothing of other tenants.

use crate::world::{World, in_virtual_time, of_tenant, user, with_adapters};
use argosy_control::watch::{Watch, WatchCommands, WatchEvent, WatchNodes, Watched};
use argosy_control::{Error, Revision};
use argosy_core::access::Caller;
use argosy_core::command::Command;
use argosy_core::node::Node;
use argosy_core::search::Filter;
use argosy_store::Txn;
use argosy_store::engine::Retention;
use proptest::prelude::*;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A node as it registered, with a label.
fn node(id: &str, tenant: &str, tier: &str) -> Node {
    let at = "2026-01-01T00:00:00Z";
    serde_json::from_value(json!({
        "id": id,
        "tenant": tenant,
        "place": { "provider": "gcp", "region": "r", "zone": "z", "instance_type": "t" },
        "machine": {},
        "gpus": [],
        "labels": { "tier": tier },
        "registered_at": at,
        "joined_at": at,
        "liveness": "Fresh",
        "liveness_since": at,
        "health": { "state": "Unknown", "since": at, "reason": "NoReport", "message": "" },
        "duty": "Active",
    }))
    .unwrap()
}

/// The same after something happened to it.
fn reported(id: &str, tenant: &str, tier: &str) -> Node {
    let mut node = node(id, tenant, tier);
    node.health.since = "2026-01-01T00:00:05Z".parse().unwrap();
    node
}

fn command(id: u128, tenant: &str, state: serde_json::Value) -> Command {
    let at = "2026-01-01T00:00:00Z";
    serde_json::from_value(json!({
        "id": uuid::Uuid::from_u128(id),
        "node": "a",
        "tenant": tenant,
        "kind": "CORDON",
        "by": "ada",
        "automatic": false,
        "issued_at": at,
        "expires_at": at,
        "state": state,
    }))
    .unwrap()
}

async fn put(world: &World, nodes: Vec<Node>) -> Revision {
    let mut txn = Txn::at(world.now());
    for node in nodes {
        txn.overwrite(Arc::new(node));
    }
    world.store.commit(txn).await.unwrap()
}

async fn remove(world: &World, node: Node) {
    let mut txn = Txn::at(world.now());
    txn.discard(&node);
    world.store.commit(txn).await.unwrap();
}

async fn quiet() -> World {
    World::with(with_adapters(&[])).await
}

/// A store whose memory of events is empty, as after a restart.
async fn reopened(world: World) -> World {
    world.restart(with_adapters(&[])).await
}

fn all<'a>() -> WatchNodes<'a> {
    WatchNodes { node: None, filter: Filter::everything(), after: None }
}

fn gold<'a>() -> WatchNodes<'a> {
    WatchNodes { filter: Filter::label("tier", "gold"), ..all() }
}

fn open(world: &World, caller: &Caller, list: WatchNodes<'_>) -> Watch<Node> {
    world.control.nodes.watch(caller, list).unwrap()
}

/// The caller of the tests, who belongs to this tenant.
fn ours() -> String {
    user().tenant
}

/// Everything a watch has to say until it waits.
async fn drain<T: Watched + std::fmt::Debug>(
    watch: &mut Watch<T>,
) -> Result<Vec<WatchEvent<T>>, Error> {
    let mut events = Vec::new();
    let patience = std::time::Duration::from_millis(1);
    while let Ok(event) = tokio::time::timeout(patience, watch.next()).await {
        events.push(event?);
    }
    Ok(events)
}

/// Events as words: `+a`, `~a`, `-a`, `=`.
async fn words(watch: &mut Watch<Node>) -> String {
    let word = |event: &WatchEvent<Node>| match event {
        WatchEvent::Added(node) => format!("+{}", node.value.id),
        WatchEvent::Modified(node) => format!("~{}", node.value.id),
        WatchEvent::Deleted { id, .. } => format!("-{id}"),
        WatchEvent::Bookmark(_) => "=".to_owned(),
    };
    drain(watch).await.unwrap().iter().map(word).collect::<Vec<_>>().join(" ")
}

#[tokio::test(start_paused = true)]
async fn a_watch_of_nodes_begins_with_what_is_there_and_goes_on() {
    let (world, we) = (quiet().await, ours());
    put(&world, vec![node("b", &we, "tin"), node("a", &we, "gold"), node("x", "two", "gold")])
        .await;
    let mut watch = open(&world, &user(), all());
    let mut golden = open(&world, &user(), gold());
    let mut one = open(&world, &user(), WatchNodes { node: Some("b"), ..all() });
    assert_eq!(words(&mut watch).await, "+a +b =");
    assert_eq!(words(&mut golden).await, "+a =");
    assert_eq!(words(&mut one).await, "+b =");
    put(&world, vec![reported("b", &we, "gold"), node("c", &we, "tin"), node("y", "two", "tin")])
        .await;
    assert_eq!(words(&mut watch).await, "~b +c");
    assert_eq!(words(&mut golden).await, "+b");
    assert_eq!(words(&mut one).await, "~b");
    put(&world, vec![reported("a", &we, "tin")]).await;
    remove(&world, node("b", &we, "gold")).await;
    remove(&world, node("x", "two", "gold")).await;
    assert_eq!(words(&mut watch).await, "~a -b");
    assert_eq!(words(&mut golden).await, "-a -b");
    assert_eq!(words(&mut one).await, "-b");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_not_there_or_anothers_cannot_be_watched() {
    let world = quiet().await;
    put(&world, vec![node("x", "two", "tin")]).await;
    for id in ["nobody", "x", ""] {
        let list = WatchNodes { node: Some(id), ..all() };
        let outcome = world.control.nodes.watch(&user(), list).map(drop);
        assert!(matches!(outcome, Err(Error::NodeNotFound(named)) if named == id));
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_of_nodes_resumes_without_a_gap() {
    let (world, we) = (quiet().await, ours());
    let from = put(&world, vec![node("a", &we, "gold")]).await;
    put(&world, vec![node("b", &we, "gold"), node("x", "two", "gold")]).await;
    put(&world, vec![reported("a", &we, "tin"), reported("x", "two", "tin")]).await;
    let resumed = |world: &World, list: WatchNodes<'static>| {
        open(world, &user(), WatchNodes { after: Some(from), ..list })
    };
    assert_eq!(words(&mut resumed(&world, all())).await, "+b ~a");
    assert_eq!(words(&mut resumed(&world, gold())).await, "+b -a");
    // The same, read back from the engine.
    let world = reopened(world).await;
    assert_eq!(words(&mut resumed(&world, all())).await, "+b ~a");
    assert_eq!(words(&mut resumed(&world, gold())).await, "+b -a");
    let stranger = of_tenant("two");
    let mut theirs = open(&world, &stranger, WatchNodes { after: Some(from), ..all() });
    assert_eq!(words(&mut theirs).await, "+x ~x");
}

#[tokio::test(start_paused = true)]
async fn whose_a_removed_node_was_is_not_guessed() {
    let (world, we) = (quiet().await, ours());
    let from = put(&world, vec![node("a", &we, "tin"), node("b", &we, "tin")]).await;
    remove(&world, node("b", &we, "tin")).await;
    put(&world, vec![reported("a", &we, "tin")]).await;
    let world = reopened(world).await;
    let mut list = open(&world, &user(), WatchNodes { after: Some(from), ..all() });
    assert!(matches!(drain(&mut list).await, Err(Error::Gone { .. })), "list again");
    let one = WatchNodes { node: Some("a"), after: Some(from), ..all() };
    assert_eq!(words(&mut open(&world, &user(), one)).await, "~a", "others are no concern of it");
}

#[tokio::test(start_paused = true)]
async fn commands_can_be_watched_to_their_end() {
    let (world, we) = (quiet().await, ours());
    put(&world, vec![node("a", &we, "tin"), node("b", &we, "tin")]).await;
    let issue = async |id: u128, tenant: &str, state: serde_json::Value| {
        let mut txn = Txn::at(world.now());
        txn.overwrite(Arc::new(command(id, tenant, state)));
        world.store.commit(txn).await.unwrap();
    };
    let pending = || json!({ "state": "pending" });
    issue(1, &we, pending()).await;
    issue(2, "two", pending()).await;
    let id = command(1, &we, pending()).id;
    let only = |list| world.control.commands.watch(&user(), list);
    let lists = [
        WatchCommands { command: Some(id), ..WatchCommands::default() },
        WatchCommands { node: Some("a".to_owned()), ..WatchCommands::default() },
        WatchCommands { state: Some("open".to_owned()), ..WatchCommands::default() },
        WatchCommands { state: Some("completed".to_owned()), ..WatchCommands::default() },
        WatchCommands { node: Some("b".to_owned()), ..WatchCommands::default() },
    ];
    let mut watches: Vec<_> = lists.into_iter().map(|list| only(list).unwrap()).collect();
    let done = json!({ "state": "done", "at": "2026-01-01T00:00:01Z", "outcome": "Completed" });
    let word = |event: &WatchEvent<Command>| match event {
        WatchEvent::Added(command) => format!("+{}", command.value.state.word()),
        WatchEvent::Modified(command) => format!("~{}", command.value.state.word()),
        WatchEvent::Deleted { .. } => "-".to_owned(),
        WatchEvent::Bookmark(_) => "=".to_owned(),
    };
    issue(1, &we, done.clone()).await;
    issue(2, "two", done).await;
    let told =
        ["+pending = ~completed", "+pending = ~completed", "+pending = -", "= +completed", "="];
    for (watch, told) in watches.iter_mut().zip(told) {
        let events = drain(watch).await.unwrap();
        assert_eq!(events.iter().map(word).collect::<Vec<_>>().join(" "), told);
    }
    for list in [
        WatchCommands { command: Some(command(2, "two", pending()).id), ..Default::default() },
        WatchCommands { node: Some("nobody".to_owned()), ..Default::default() },
    ] {
        let outcome = only(list).map(drop);
        assert!(matches!(outcome, Err(Error::CommandNotFound(_) | Error::NodeNotFound(_))));
    }
}

/// A thousand who do not read: each holds a piece of the list, however long it is. When they come back
/// they go on without a gap; once what they need is gone, they are told so, with the place they were.
#[tokio::test(start_paused = true)]
async fn o3_a_thousand_slow_watchers_go_on_or_are_cut_with_their_place() {
    let (world, we) = (quiet().await, ours());
    let id = |index: usize| format!("n-{index:04}");
    put(&world, (0..1000).map(|index| node(&id(index), &we, "tin")).collect()).await;
    let mut watches: Vec<_> = (0..1000).map(|_| open(&world, &user(), all())).collect();
    let began = world.store.read(|view| view.revision());
    for step in 0..1500 {
        put(&world, vec![reported(&id(step % 1000), &we, "tin")]).await;
    }
    let mut slow = watches.pop().unwrap();
    let told = words(&mut slow).await;
    assert_eq!(told.matches('+').count(), 128, "the piece it had; the rest changed since");
    assert_eq!(told.matches('~').count(), 1500, "and every change");
    world.store.trim(&Retention { changes_kept: 1200, streams: Vec::new() }).await.unwrap();
    for watch in &mut watches {
        let cut = drain(watch).await;
        assert!(matches!(cut, Err(Error::Gone { asked, .. }) if asked == began), "{cut:?}");
    }
    assert_eq!(words(&mut slow).await, "", "who kept up is not disturbed");
}

/// What a watcher knows when it believes every event.
fn believe(picture: &mut BTreeMap<String, String>, event: WatchEvent<Node>) {
    match event {
        WatchEvent::Added(node) | WatchEvent::Modified(node) => {
            let tier = node.value.labels.get("tier").unwrap_or_default().to_owned();
            picture.insert(node.value.id.to_string(), tier);
        }
        WatchEvent::Deleted { id, .. } => _ = picture.remove(&id),
        WatchEvent::Bookmark(_) => {}
    }
}

/// A list longer than a watch reads at once, while the fleet changes under it: in the end the watcher
/// knows what the list says, whatever happened between which pieces.
#[test]
fn a_long_list_that_changes_while_it_is_read_ends_right() {
    let steps = prop::collection::vec((0..2000_usize, 0..4_u8, 0..700_usize), 1..8);
    let config = ProptestConfig { cases: 12, ..ProptestConfig::default() };
    proptest!(config, |(steps in steps)| {
        in_virtual_time(async {
            let (world, we) = (quiet().await, ours());
            let id = |index: usize| format!("n-{index:04}");
            put(&world, (0..1500).map(|index| node(&id(index), &we, "gold")).collect()).await;
            let mut watch = open(&world, &user(), gold());
            let mut picture = BTreeMap::new();
            for (index, what, read) in steps {
                match what {
                    0 => remove(&world, node(&id(index), &we, "gold")).await,
                    1 => _ = put(&world, vec![reported(&id(index), &we, "tin")]).await,
                    2 => _ = put(&world, vec![reported(&id(index), &we, "gold")]).await,
                    _ => _ = put(&world, vec![node(&id(index), "two", "gold")]).await,
                }
                for _ in 0..read {
                    let Ok(event) = tokio::time::timeout(std::time::Duration::from_millis(1), watch.next()).await else {
                        break;
                    };
                    believe(&mut picture, event.unwrap());
                }
            }
            for event in drain(&mut watch).await.unwrap() {
                believe(&mut picture, event);
            }
            let shown = world.store.read(|view| {
                let ours = view.nodes().filter(|node| node.value.tenant == we);
                let golden = ours.filter(|node| node.value.labels.get("tier") == Some("gold"));
                golden.map(|node| node.value.id.to_string()).collect::<Vec<_>>()
            });
            prop_assert_eq!(picture.into_keys().collect::<Vec<_>>(), shown);
            Ok(())
        })?;
    });
}
