//! Commands from order to outcome, on both wires: CUJ-4, and the faults of commands and drains.

use crate::world::{World, admin, in_virtual_time, of_team, of_tenant, user, with_adapters};
use argosy_control::command::{NewCommand, Wire};
use argosy_control::watch::WatchCommands;
use argosy_control::{Error, Revision, Settings, Stored};
use argosy_core::access::{Caller, Role};
use argosy_core::audit::AuditRecord;
use argosy_core::command::{Ack, Command, CommandKind, CommandState, ENDED_KEPT, Outcome};
use argosy_core::health::{Health, HealthState};
use argosy_core::id::CommandId;
use argosy_core::label::Labels;
use argosy_core::ledger::Entry;
use argosy_core::node::settings::{NodeSettings, PoolSettings, Remedy};
use argosy_core::node::{
    Duty, External, Flag, Flaps, Liveness, Machine, Node, NodeId, NodeStatus, Place, Registration,
};
use argosy_store::Txn;
use argosy_store::engine::EntryQuery;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use jiff::SignedDuration;
use proptest::prelude::*;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;

pub(crate) fn seconds(count: i64) -> SignedDuration {
    SignedDuration::from_secs(count)
}

/// Nobody reconciles anything, and nobody acts on nodes that no agent speaks for.
pub(crate) fn quiet() -> Settings {
    let mut settings = with_adapters(&[]);
    settings.nodes.defaults.remedy = Remedy::Observe;
    settings
}

/// A healthy node of acme's.
pub(crate) fn node(world: &World, id: &str) -> Node {
    let now = world.now();
    Node {
        id: NodeId::parse(id).unwrap(),
        tenant: "acme".to_owned(),
        pool: None,
        place: Place::default(),
        machine: Machine { hostname: format!("{id}.example"), ..Machine::default() },
        gpus: Vec::new(),
        labels: Labels::default(),
        registered_at: now,
        joined_at: now,
        liveness: Liveness::Fresh,
        liveness_since: now,
        health: Health {
            state: HealthState::Healthy,
            since: now,
            reason: "AllPassed".to_owned(),
            message: String::new(),
        },
        duty: Duty::Active,
        checks: BTreeMap::new(),
        findings: Vec::new(),
        sightings: Vec::new(),
        report_sequence: 0,
        flaps: Flaps::default(),
        flags: BTreeMap::new(),
        held: None,
        external: External::default(),
    }
}

pub(crate) async fn put(world: &World, node: Node) {
    let mut txn = Txn::at(world.now());
    txn.overwrite(Arc::new(node));
    world.store.commit(txn).await.unwrap();
}

/// A world with nodes, and nothing else going on.
async fn world_of(nodes: &[&str]) -> World {
    let world = World::with(quiet()).await;
    for id in nodes {
        put(&world, node(&world, id)).await;
    }
    world
}

/// `DRAIN timeout=60`.
pub(crate) fn order(text: &str) -> NewCommand {
    let (kind, rest) = text.split_once(' ').unwrap_or((text, ""));
    let pair = |word: &str| {
        let (name, value) = word.split_once('=').unwrap();
        (name.to_owned(), value.to_owned())
    };
    NewCommand {
        kind: CommandKind::ALL.into_iter().find(|known| known.as_str() == kind).unwrap(),
        parameters: rest.split_whitespace().map(pair).collect(),
        reason: "because".to_owned(),
        drain_for: None,
        idempotency_key: None,
        if_revision: None,
        dry_run: false,
    }
}

pub(crate) async fn issue(world: &World, node: &str, text: &str) -> Result<CommandId, Error> {
    let issued = world.control.commands.issue(&user(), node, order(text)).await;
    issued.map(|issued| issued.value.id)
}

/// The node itself.
pub(crate) fn agent(node: &str) -> Caller {
    Caller {
        subject: format!("node-{node}"),
        role: Role::Node,
        node: Some(node.to_owned()),
        ..user()
    }
}

async fn fetch(world: &World, node: &str, wire: Wire) -> Vec<Arc<Command>> {
    world.control.commands.fetch(&agent(node), node, wire).await.unwrap()
}

/// What the node is told, as words.
async fn told(world: &World, node: &str, wire: Wire) -> String {
    let commands = fetch(world, node, wire).await;
    let words: Vec<_> = commands.iter().map(|command| command.kind.as_str()).collect();
    words.join(" ")
}

fn ack(outcome: Outcome) -> Ack {
    let message = "says the node".to_owned();
    Ack { outcome: Some(outcome), progress: None, message, result: None }
}

async fn say(
    world: &World,
    node: &str,
    command: CommandId,
    outcome: Outcome,
) -> Result<Stored<Command>, Error> {
    world.control.commands.acknowledge(&agent(node), node, command, ack(outcome)).await
}

pub(crate) fn find(world: &World, id: &str) -> Arc<Node> {
    world.store.read(|view| view.node(id).unwrap().value.clone())
}

fn revision(world: &World, id: &str) -> Revision {
    world.store.read(|view| view.node(id).unwrap().revision)
}

/// `DRAINING/ann: CORDON Completed, DRAIN acknowledged`.
pub(crate) fn line(world: &World, id: &str) -> String {
    let node = find(world, id);
    let hold = node.duty.hold().map(|hold| format!("/{}", hold.by)).unwrap_or_default();
    let commands = world.control.commands.list(&admin(), Some(id), false).unwrap();
    let word = |command: &Stored<Command>| {
        let state = match &command.value.state {
            CommandState::Done { outcome, .. } => format!("{outcome:?}"),
            CommandState::Pending | CommandState::Acknowledged { .. } => {
                command.value.state.word().to_owned()
            }
        };
        format!("{} {state}", command.value.kind.as_str())
    };
    let commands: Vec<_> = commands.iter().rev().map(word).collect();
    format!("{}{hold}: {}", node.status().as_str(), commands.join(", "))
}

#[track_caller]
pub(crate) fn check(world: &World, id: &str, expected: &str) {
    assert_eq!(line(world, id), expected);
}

/// The ledger of a node as lines, oldest first.
pub(crate) async fn ledger(world: &World, node: &str) -> Vec<Entry> {
    let query = EntryQuery {
        stream: "nodes".to_owned(),
        subject: Some(node.to_owned()),
        cursor: None,
        newest_first: false,
        limit: 1000,
    };
    let entries = world.store.entries(&query).await.unwrap();
    entries.iter().map(|entry| serde_json::from_str(&entry.body).unwrap()).collect()
}

async fn audit(world: &World, action: &str) -> Vec<AuditRecord> {
    let entries = world.control.audit.list(&admin(), None, 10_000).await.unwrap();
    let records = entries.into_iter().map(|entry| entry.record);
    records.filter(|record| record.action == action).collect()
}

fn word<T>(outcome: Result<T, Error>) -> String {
    match outcome {
        Ok(_) => "yes".to_owned(),
        Err(Error::Forbidden(_)) => "forbidden".to_owned(),
        Err(Error::Precondition(why)) => format!("precondition: {why}"),
        Err(error @ (Error::NodeNotFound(_) | Error::CommandNotFound(_))) => error.to_string(),
        Err(Error::Changed { .. }) => "changed".to_owned(),
        Err(Error::Invalid(errors)) => format!("invalid: {}", errors[0].field),
        Err(other) => panic!("{other}"),
    }
}

#[tokio::test(start_paused = true)]
async fn cuj_4_on_our_wire_a_command_is_pending_acknowledged_and_completed() {
    let world = world_of(&["n1"]).await;
    for (text, duty) in [
        ("CORDON", "CORDONED/ann"),
        ("DRAIN", "DRAINING/ann"),
        ("UNCORDON", "ACTIVE"),
        ("RUN_DIAGNOSTIC test=quick", "ACTIVE"),
        ("TERMINATE", "TERMINATED/ann"),
    ] {
        let world = world_of(&["n1"]).await;
        if text == "UNCORDON" {
            let cordon = issue(&world, "n1", "CORDON").await.unwrap();
            fetch(&world, "n1", Wire::Argosy).await;
            say(&world, "n1", cordon, Outcome::Completed).await.unwrap();
        }
        let id = issue(&world, "n1", text).await.unwrap();
        let get = || world.control.commands.get(&user(), id).unwrap().value;
        let kind = get().kind.as_str();
        assert_eq!((get().state.word(), get().by.as_str()), ("pending", "ann"), "{text}");
        assert_eq!(get().reason, "because");
        assert_eq!(told(&world, "n1", Wire::Argosy).await, kind, "{text}");
        assert_eq!(get().state.word(), "acknowledged", "{text}");
        say(&world, "n1", id, Outcome::Completed).await.unwrap();
        assert_eq!(get().state.word(), "completed", "{text}");
        assert_eq!(told(&world, "n1", Wire::Argosy).await, "", "{text}");
        assert_eq!(line(&world, "n1").split(':').next(), Some(duty), "{text}");
    }
    check(&world, "n1", "ACTIVE: ");
}

#[tokio::test(start_paused = true)]
async fn cuj_4_on_navarchs_wire_a_command_is_done_when_the_daemon_asks_again() {
    let world = world_of(&["n1"]).await;
    issue(&world, "n1", "CORDON").await.unwrap();
    issue(&world, "n1", "RUN_DIAGNOSTIC").await.unwrap();
    check(&world, "n1", "CORDONED/ann: CORDON pending, RUN_DIAGNOSTIC pending");
    assert_eq!(told(&world, "n1", Wire::Navarch).await, "CORDON RUN_DIAGNOSTIC");
    check(&world, "n1", "CORDONED/ann: CORDON acknowledged, RUN_DIAGNOSTIC acknowledged");
    world.pass(seconds(10)).await;
    issue(&world, "n1", "DRAIN timeout=60").await.unwrap();
    world.pass(seconds(10)).await;
    let drain = fetch(&world, "n1", Wire::Navarch).await;
    assert_eq!(drain.len(), 1);
    assert_eq!(drain[0].parameters["timeout"], "50", "what is left until the deadline");
    let before = "DRAINING/ann: CORDON Completed, RUN_DIAGNOSTIC Completed";
    check(&world, "n1", &format!("{before}, DRAIN acknowledged"));
    // Asking again says nothing about what runs on the node.
    world.pass(seconds(10)).await;
    assert_eq!(told(&world, "n1", Wire::Navarch).await, "");
    check(&world, "n1", &format!("{before}, DRAIN acknowledged"));
    world.pass(seconds(41)).await;
    check(&world, "n1", &format!("{before}, DRAIN TimedOut"));
    issue(&world, "n1", "TERMINATE").await.unwrap();
    assert_eq!(told(&world, "n1", Wire::Navarch).await, "TERMINATE");
    // The daemon has ended, and never asks again.
    world.pass(seconds(601)).await;
    let before = before.replace("DRAINING", "TERMINATED");
    check(&world, "n1", &format!("{before}, DRAIN TimedOut, TERMINATE Completed"));
}

#[tokio::test(start_paused = true)]
async fn cuj_4_navarchs_daemon_is_told_to_uncordon_in_its_own_words() {
    let world = world_of(&["n1"]).await;
    issue(&world, "n1", "CORDON").await.unwrap();
    let id = issue(&world, "n1", "UNCORDON").await.unwrap();
    let told = fetch(&world, "n1", Wire::Navarch).await;
    assert_eq!((told.len(), told[0].id, told[0].kind), (1, id, CommandKind::Cordon));
    assert_eq!(told[0].parameters["uncordon"], "true");
    check(&world, "n1", "ACTIVE: CORDON Cancelled, UNCORDON acknowledged");
}

#[tokio::test(start_paused = true)]
async fn cuj_4_what_cannot_be_asked_is_refused_and_nothing_is_stored() {
    let world = world_of(&["n1", "gone"]).await;
    issue(&world, "gone", "TERMINATE").await.unwrap();
    let drain = issue(&world, "n1", "DRAIN").await.unwrap();
    let before = world.store.read(|view| (view.revision(), view.commands().len()));
    let viewer = Caller { role: Role::Viewer, ..user() };
    let rows: Vec<(Caller, &str, &str, String)> = vec![
        (user(), "n2", "CORDON", "node not found: n2".to_owned()),
        (user(), "n1'; --", "CORDON", "node not found: n1'; --".to_owned()),
        (of_tenant("other"), "n1", "CORDON", "node not found: n1".to_owned()),
        (viewer, "n1", "CORDON", "forbidden".to_owned()),
        (agent("n1"), "n1", "UNCORDON", "forbidden".to_owned()),
        (
            user(),
            "gone",
            "CORDON",
            "precondition: node gone was terminated by ann and takes no commands (current status: \
             TERMINATED); forget it to let a new machine register under its id"
                .to_owned(),
        ),
        (
            user(),
            "n1",
            "DRAIN",
            format!(
                "precondition: DRAIN {drain} was issued to node n1 by ann and has not ended (current \
                 status: DRAINING)"
            ),
        ),
        (user(), "n1", "RUN_DIAGNOSTIC test=;reboot", "invalid: parameters.test".to_owned()),
    ];
    for (caller, node, text, expected) in rows {
        let outcome = world.control.commands.issue(&caller, node, order(text)).await;
        assert_eq!(word(outcome), expected, "{} {node} {text}", caller.subject);
    }
    let commands = &world.control.commands;
    assert_eq!(commands.fetch(&agent("n2"), "n2", Wire::Navarch).await.unwrap(), []);
    let unknown = commands.fetch(&agent("n2"), "n2", Wire::Argosy).await;
    assert_eq!(word(unknown), "node not found: n2");
    assert_eq!(
        word(commands.get(&of_tenant("other"), drain)),
        format!("command not found: {drain}")
    );
    assert_eq!(word(commands.list(&user(), Some("n2"), false)), "node not found: n2");
    assert_eq!(commands.list(&of_tenant("other"), None, false).unwrap().len(), 0);
    assert_eq!(before, world.store.read(|view| (view.revision(), view.commands().len())));
}

#[tokio::test(start_paused = true)]
async fn cuj_4_a_thousand_nodes_are_told_at_once_and_each_only_of_its_own() {
    let world = World::with(quiet()).await;
    let ids: Vec<String> = (0..1000).map(|number| format!("n{number}")).collect();
    for id in &ids {
        put(&world, node(&world, id)).await;
    }
    let issues: FuturesUnordered<_> =
        ids.iter().map(|id| async { issue(&world, id, "CORDON").await.unwrap() }).collect();
    assert_eq!(issues.count().await, 1000);
    let fetches: FuturesUnordered<_> = ids
        .iter()
        .map(async |id| {
            let commands = fetch(&world, id, Wire::Argosy).await;
            assert_eq!(commands.len(), 1);
            assert_eq!(commands[0].node.as_str(), id);
            say(&world, id, commands[0].id, Outcome::Completed).await.unwrap();
        })
        .collect();
    assert_eq!(fetches.count().await, 1000);
    for id in &ids {
        check(&world, id, "CORDONED/ann: CORDON Completed");
    }
}

#[tokio::test(start_paused = true)]
async fn cuj_5_our_own_cordon_holds_when_the_node_has_fetched_it() {
    let world = world_of(&[]).await;
    let mut sick = node(&world, "n1");
    sick.health.state = HealthState::Unhealthy;
    put(&world, sick).await;
    let now = world.now();
    let command = Command {
        id: world.control.ids.command(now),
        node: NodeId::parse("n1").unwrap(),
        tenant: "acme".to_owned(),
        kind: CommandKind::Cordon,
        parameters: BTreeMap::new(),
        by: "remedy".to_owned(),
        automatic: true,
        reason: "xid 79".to_owned(),
        issued_at: now,
        expires_at: now.checked_add(seconds(600)).unwrap(),
        deadline: None,
        state: CommandState::Pending,
    };
    let mut txn = Txn::at(now);
    txn.create(Arc::new(command));
    world.store.commit(txn).await.unwrap();
    check(&world, "n1", "UNHEALTHY: CORDON pending");
    assert_eq!(told(&world, "n1", Wire::Navarch).await, "CORDON");
    check(&world, "n1", "CORDONED/remedy: CORDON acknowledged");
    // An operator makes it theirs, drains and ends it: the rest of the lifecycle.
    for (text, status) in [
        ("CORDON", NodeStatus::Cordoned),
        ("DRAIN", NodeStatus::Draining),
        ("TERMINATE", NodeStatus::Terminated),
    ] {
        issue(&world, "n1", text).await.unwrap();
        assert_eq!(find(&world, "n1").status(), status);
    }
}

#[tokio::test(start_paused = true)]
async fn f1_a_command_whose_reply_was_lost_is_delivered_again() {
    let world = world_of(&["n1"]).await;
    let id = issue(&world, "n1", "CORDON").await.unwrap();
    issue(&world, "n1", "RUN_DIAGNOSTIC").await.unwrap();
    for _ in 0..3 {
        let commands = fetch(&world, "n1", Wire::Argosy).await;
        assert_eq!((commands.len(), commands[0].id), (1, id), "one at a time, until it is done");
        world.pass(seconds(30)).await;
    }
    say(&world, "n1", id, Outcome::Completed).await.unwrap();
    assert_eq!(told(&world, "n1", Wire::Argosy).await, "RUN_DIAGNOSTIC");
}

#[tokio::test(start_paused = true)]
async fn f2_an_agent_that_restarts_mid_drain_finds_the_same_drain_and_deadline() {
    let world = world_of(&["n1"]).await;
    let id = issue(&world, "n1", "DRAIN timeout=600").await.unwrap();
    let deadline = world.now().checked_add(seconds(600)).unwrap();
    for _ in 0..5 {
        let drain = fetch(&world, "n1", Wire::Argosy).await;
        assert_eq!((drain[0].id, drain[0].deadline), (id, Some(deadline)));
        world.pass(seconds(100)).await;
    }
    world.pass(seconds(101)).await;
    check(&world, "n1", "DRAINING/ann: DRAIN TimedOut");
    assert_eq!(told(&world, "n1", Wire::Argosy).await, "");
}

#[tokio::test(start_paused = true)]
async fn f3_a_result_sent_twice_is_one_outcome() {
    let world = world_of(&["n1"]).await;
    let id = issue(&world, "n1", "DRAIN").await.unwrap();
    fetch(&world, "n1", Wire::Argosy).await;
    let first = say(&world, "n1", id, Outcome::Drained).await.unwrap();
    let entries = ledger(&world, "n1").await.len();
    for outcome in [Outcome::Drained, Outcome::Failed, Outcome::TimedOut] {
        world.pass(seconds(5)).await;
        let again = say(&world, "n1", id, outcome).await.unwrap();
        assert_eq!((again.value, again.revision), (first.value.clone(), first.revision));
    }
    check(&world, "n1", "DRAINING/ann: DRAIN Drained");
    assert_eq!(ledger(&world, "n1").await.len(), entries);
}

#[tokio::test(start_paused = true)]
async fn f4_past_its_deadline_a_drain_is_forced_or_timed_out_and_never_drained() {
    let forced = PoolSettings { drain_force: true, ..PoolSettings::default() };
    let pools = BTreeMap::from([("hard".to_owned(), forced)]);
    let nodes = NodeSettings { pools, ..NodeSettings::default() };
    let world = World::with(Settings { nodes, ..quiet() }).await;
    for (id, pool, text, expected) in [
        ("n1", None, "DRAIN timeout=60", "DRAINING/ann: DRAIN TimedOut"),
        // Forced is what the node says that it ended; until it does, it has a minute.
        ("n2", None, "DRAIN timeout=60 force=true", "DRAINING/ann: DRAIN acknowledged"),
        ("n3", Some("hard"), "DRAIN timeout=60", "DRAINING/ann: DRAIN acknowledged"),
        ("n4", Some("hard"), "DRAIN timeout=60 force=false", "DRAINING/ann: DRAIN TimedOut"),
    ] {
        let pool = pool.map(str::to_owned);
        put(&world, Node { pool, ..node(&world, id) }).await;
        let drain = issue(&world, id, text).await.unwrap();
        fetch(&world, id, Wire::Argosy).await;
        world.pass(seconds(59)).await;
        check(&world, id, "DRAINING/ann: DRAIN acknowledged");
        world.pass(seconds(2)).await;
        check(&world, id, expected);
        // Too late: nobody believes that nothing ran at the deadline.
        let late = if id == "n2" { Outcome::Forced } else { Outcome::Drained };
        say(&world, id, drain, late).await.unwrap();
        let ended = if id == "n2" { "Forced" } else { "TimedOut" };
        check(&world, id, &format!("DRAINING/ann: DRAIN {ended}"));
    }
}

#[tokio::test(start_paused = true)]
async fn f5_a_drain_that_is_taken_back_is_cancelled_and_nothing_comes_of_it_later() {
    for (text, expected) in [
        ("UNCORDON", "ACTIVE: DRAIN Cancelled, UNCORDON pending"),
        ("CORDON", "CORDONED/ann: DRAIN Cancelled, CORDON pending"),
    ] {
        let world = world_of(&["n1"]).await;
        let drain = issue(&world, "n1", "DRAIN timeout=60 force=true").await.unwrap();
        fetch(&world, "n1", Wire::Argosy).await;
        issue(&world, "n1", text).await.unwrap();
        check(&world, "n1", expected);
        say(&world, "n1", drain, Outcome::Forced).await.unwrap();
        world.pass(seconds(120)).await;
        check(&world, "n1", expected);
        assert_eq!(told(&world, "n1", Wire::Argosy).await, text, "the drain is not told again");
    }
}

#[tokio::test(start_paused = true)]
async fn f7_a_restart_mid_drain_changes_neither_deadline_nor_promise() {
    let world = world_of(&["n1", "n2"]).await;
    for id in ["n1", "n2"] {
        issue(&world, id, "DRAIN timeout=120").await.unwrap();
    }
    fetch(&world, "n1", Wire::Argosy).await;
    let deadline = world.now().checked_add(seconds(120)).unwrap();
    world.pass(seconds(30)).await;
    // With other settings, too.
    let mut settings = quiet();
    settings.nodes.defaults.drain_force = true;
    settings.nodes.defaults.drain_for = seconds(10);
    let world = world.restart(settings).await;
    let drain = fetch(&world, "n1", Wire::Argosy).await;
    assert_eq!(drain[0].deadline, Some(deadline));
    world.pass(seconds(88)).await;
    check(&world, "n1", "DRAINING/ann: DRAIN acknowledged");
    world.pass(seconds(3)).await;
    check(&world, "n1", "DRAINING/ann: DRAIN TimedOut");
    // And this one was promised to be forced.
    issue(&world, "n1", "DRAIN timeout=60").await.unwrap();
    fetch(&world, "n1", Wire::Argosy).await;
    let world = world.restart(quiet()).await;
    world.pass(seconds(62)).await;
    check(&world, "n1", "DRAINING/ann: DRAIN TimedOut, DRAIN acknowledged");
    world.pass(seconds(60)).await;
    check(&world, "n1", "DRAINING/ann: DRAIN TimedOut, DRAIN TimedOut");
}

#[tokio::test(start_paused = true)]
async fn f8_a_command_that_comes_an_hour_late_is_expired_and_not_executed() {
    let world = world_of(&["n1", "n2"]).await;
    issue(&world, "n1", "RUN_DIAGNOSTIC").await.unwrap();
    world.pass(seconds(3600)).await;
    check(&world, "n1", "ACTIVE: RUN_DIAGNOSTIC Expired");
    for wire in [Wire::Argosy, Wire::Navarch] {
        assert_eq!(told(&world, "n1", wire).await, "");
    }
    // Nor is it when nobody has had time to notice.
    let id = issue(&world, "n2", "RUN_DIAGNOSTIC").await.unwrap();
    let issued = world.control.commands.get(&user(), id).unwrap();
    let past = world.now().checked_sub(seconds(3600)).unwrap();
    let late = Command { issued_at: past, expires_at: past, ..(*issued.value).clone() };
    let mut txn = Txn::at(world.now());
    txn.overwrite(Arc::new(late));
    world.store.commit(txn).await.unwrap();
    assert_eq!(told(&world, "n2", Wire::Argosy).await, "");
    check(&world, "n2", "ACTIVE: RUN_DIAGNOSTIC Expired");
}

#[tokio::test(start_paused = true)]
async fn f9_of_two_operators_who_saw_the_same_node_one_is_told_that_it_changed() {
    let one = world_of(&["n1"]).await;
    let two = one.another(quiet(), "two").await;
    for texts in [["DRAIN", "UNCORDON"], ["TERMINATE", "DRAIN"]] {
        let cordon = issue(&one, "n1", "CORDON").await.unwrap();
        two.until("the other process knows", |two| {
            two.store.read(|view| view.command(cordon).is_some())
        })
        .await;
        let seen = revision(&one, "n1");
        let order = |text| NewCommand { if_revision: Some(seen), ..order(text) };
        let (ann, bob) = (user(), Caller { subject: "bob".to_owned(), ..user() });
        let (first, second) = tokio::join!(
            one.control.commands.issue(&ann, "n1", order(texts[0])),
            two.control.commands.issue(&bob, "n1", order(texts[1])),
        );
        let mut words = [word(first), word(second)];
        words.sort();
        assert_eq!(words, ["changed", "yes"], "{texts:?}");
    }
    assert_eq!(one.control.commands.list(&user(), Some("n1"), false).unwrap().len(), 4);
}

#[tokio::test(start_paused = true)]
async fn f9_without_saying_what_they_saw_operators_take_turns() {
    let world = world_of(&["n1"]).await;
    let orders = ["DRAIN", "CORDON", "UNCORDON", "DRAIN", "CORDON", "UNCORDON"];
    let issues: FuturesUnordered<_> =
        orders.iter().map(|text| async { word(issue(&world, "n1", text).await) }).collect();
    let words: Vec<String> = issues.collect().await;
    assert!(2 <= words.iter().filter(|word| *word == "yes").count(), "{words:?}");
    let open = world.control.commands.list(&user(), Some("n1"), true).unwrap();
    assert!(open.len() <= 2, "each overrules what contradicts it");
    // The ledger tells one story, in which each word follows from the one before.
    let mut status = "ACTIVE".to_owned();
    for entry in ledger(&world, "n1").await {
        let entry = serde_json::to_value(entry).unwrap();
        if entry["type"] == "status" {
            assert_eq!(entry["from"], json!(status));
            status = entry["to"].as_str().unwrap().to_owned();
        }
    }
    assert_eq!(status, find(&world, "n1").status().as_str());
}

#[tokio::test(start_paused = true)]
async fn f10_a_replay_changes_nothing_and_is_noted_once() {
    let world = world_of(&["n1"]).await;
    let id = issue(&world, "n1", "CORDON").await.unwrap();
    fetch(&world, "n1", Wire::Argosy).await;
    say(&world, "n1", id, Outcome::Completed).await.unwrap();
    for _ in 0..100 {
        say(&world, "n1", id, Outcome::Completed).await.unwrap();
    }
    check(&world, "n1", "CORDONED/ann: CORDON Completed");
    let replays = audit(&world, "ack-replayed").await;
    assert_eq!(replays.len(), 1);
    assert_eq!((&replays[0].actor, &replays[0].id), (&"node-n1".to_owned(), &id.to_string()));
    assert_eq!(replays[0].before, replays[0].after);
}

#[tokio::test(start_paused = true)]
async fn f11_a_protected_node_is_terminated_only_with_force_and_reason_by_an_admin() {
    let world = world_of(&[]).await;
    let labels = json!({"argosy.dev/protected": "true"});
    let labels = Labels::parse(labels.as_object().unwrap()).unwrap();
    put(&world, Node { labels: labels.clone(), ..node(&world, "n1") }).await;
    // Or by what people can label themselves: its pool.
    let created = crate::world::labelled(
        crate::world::pool_named("c", "gold"),
        json!({"argosy.dev/protected": "true"}),
    );
    world.cluster("c").await;
    world.create(&user(), created).await.unwrap();
    put(&world, Node { pool: Some("gold".to_owned()), ..node(&world, "n2") }).await;
    put(&world, Node { pool: Some("tin".to_owned()), ..node(&world, "n3") }).await;
    let reason = |text: &str, reason: &str| NewCommand { reason: reason.to_owned(), ..order(text) };
    for id in ["n1", "n2"] {
        let rows = [
            (admin(), reason("TERMINATE", "broken"), "precondition"),
            (admin(), reason("TERMINATE force=false", "broken"), "precondition"),
            (admin(), reason("TERMINATE force=true", " "), "invalid: reason"),
            (user(), reason("TERMINATE force=true", "broken"), "forbidden"),
            (user(), reason("DRAIN", ""), "yes"),
            (admin(), reason("TERMINATE force=true", "broken"), "yes"),
        ];
        for (caller, new, expected) in rows {
            let outcome = word(world.control.commands.issue(&caller, id, new).await);
            assert!(outcome.starts_with(expected), "{outcome}");
        }
    }
    let free = world.control.commands.issue(&user(), "n3", reason("TERMINATE", "")).await;
    assert_eq!(word(free), "yes");
    let terminations = audit(&world, "terminate").await;
    assert_eq!(terminations.len(), 3);
    assert_eq!(terminations[2].reason.as_deref(), Some("broken"));
}

#[tokio::test(start_paused = true)]
async fn d5_a_node_that_is_heard_but_fetches_nothing_is_flagged_and_left_alone() {
    let world = world_of(&["n1", "n2"]).await;
    let lost = Node { liveness: Liveness::Unreachable, ..node(&world, "lost") };
    put(&world, lost).await;
    for id in ["n1", "lost"] {
        issue(&world, id, "RUN_DIAGNOSTIC").await.unwrap();
    }
    world.pass(seconds(602)).await;
    check(&world, "n1", "ACTIVE: RUN_DIAGNOSTIC Expired");
    let flags = |id: &str| find(&world, id).flags.keys().copied().collect::<Vec<Flag>>();
    assert_eq!(flags("n1"), [Flag::CommandChannelDown]);
    assert_eq!(flags("n2"), []);
    assert_eq!(flags("lost"), [], "that it is silent is known already");
    assert!(find(&world, "n1").flags[&Flag::CommandChannelDown].message.contains("RUN_DIAGNOSTIC"));
    // It is said once.
    issue(&world, "n1", "RUN_DIAGNOSTIC").await.unwrap();
    world.pass(seconds(602)).await;
    let raised = ledger(&world, "n1")
        .await
        .into_iter()
        .filter(|entry| serde_json::to_value(entry).unwrap()["type"] == "flag");
    assert_eq!(raised.count(), 1);
    // Lowered when it asks.
    assert_eq!(told(&world, "n1", Wire::Navarch).await, "");
    assert_eq!(flags("n1"), []);
    assert_eq!(find(&world, "n1").status(), NodeStatus::Active);
}

#[tokio::test(start_paused = true)]
async fn k1_a_node_cannot_fetch_or_end_another_nodes_commands() {
    let world = world_of(&["n1", "n2"]).await;
    let id = issue(&world, "n1", "CORDON").await.unwrap();
    let commands = &world.control.commands;
    assert_eq!(word(commands.fetch(&agent("n2"), "n1", Wire::Argosy).await), "forbidden");
    let done = ack(Outcome::Completed);
    let ended = commands.acknowledge(&agent("n2"), "n1", id, done.clone()).await;
    assert_eq!(word(ended), "forbidden");
    // Under its own name it is not its command.
    let ended = commands.acknowledge(&agent("n2"), "n2", id, done).await;
    assert_eq!(word(ended), format!("command not found: {id}"));
    check(&world, "n1", "CORDONED/ann: CORDON pending");
    world.pass(seconds(1)).await;
    let records = audit(&world, "impersonation").await;
    assert_eq!(records.len(), 1, "the same again is counted, not written");
    assert_eq!(world.control.stats.impersonations.get(), 2);
    assert_eq!((records[0].actor.as_str(), records[0].id.as_str()), ("node-n2", "n1"));
}

#[tokio::test(start_paused = true)]
async fn commands_are_as_private_as_their_nodes() {
    let world = world_of(&["n2"]).await;
    let labels = Labels::parse(json!({"team": "alpha"}).as_object().unwrap()).unwrap();
    put(&world, Node { labels, ..node(&world, "n1") }).await;
    let commands = &world.control.commands;
    let (alpha, beta) = (of_team("alpha"), of_team("beta"));
    let theirs = commands.issue(&alpha, "n1", order("CORDON")).await.unwrap().value.id;
    let free = commands.issue(&beta, "n2", order("CORDON")).await.unwrap().value.id;
    assert_eq!(word(commands.issue(&beta, "n1", order("UNCORDON")).await), "forbidden");
    assert_eq!(word(commands.get(&beta, theirs)), format!("command not found: {theirs}"));
    assert_eq!(word(commands.list(&beta, Some("n1"), false)), "forbidden");
    let all = |caller: &Caller| -> Vec<CommandId> {
        let all = commands.list(caller, None, false).unwrap();
        all.iter().map(|command| command.value.id).collect()
    };
    assert_eq!(all(&beta), [free]);
    assert_eq!(all(&alpha), [free, theirs], "newest first");
    let watched = WatchCommands { command: Some(theirs), node: None, state: None, after: None };
    assert!(matches!(commands.watch(&beta, watched), Err(Error::CommandNotFound(_))));
}

#[tokio::test(start_paused = true)]
async fn the_same_key_gives_the_same_command_and_nothing_twice() {
    let world = world_of(&["n1", "n2"]).await;
    let keyed = |text: &str| NewCommand {
        idempotency_key: Some("k".to_owned()),
        if_revision: Some(revision(&world, "n1")),
        ..order(text)
    };
    let commands = &world.control.commands;
    let new = keyed("DRAIN");
    let first = commands.issue(&user(), "n1", new.clone()).await.unwrap();
    for _ in 0..3 {
        // Also long after the node has moved on.
        let again = commands.issue(&user(), "n1", new.clone()).await.unwrap();
        assert_eq!((again.value.id, again.revision), (first.value.id, first.revision));
    }
    let other = commands.issue(&user(), "n1", keyed("CORDON")).await;
    assert!(matches!(other, Err(Error::KeyReused)));
    let other = commands.issue(&user(), "n2", keyed("DRAIN")).await;
    assert!(matches!(other, Err(Error::KeyReused)));
    // A key is its caller's.
    let bob = Caller { subject: "bob".to_owned(), ..user() };
    let theirs =
        commands.issue(&bob, "n2", NewCommand { if_revision: None, ..keyed("DRAIN") }).await;
    assert_ne!(theirs.unwrap().value.id, first.value.id);
    // At the same moment, too.
    issue(&world, "n2", "UNCORDON").await.unwrap();
    let both = NewCommand { idempotency_key: Some("both".to_owned()), ..order("DRAIN") };
    let ann = user();
    let (one, two) = tokio::join!(
        commands.issue(&ann, "n2", both.clone()),
        commands.issue(&ann, "n2", both.clone())
    );
    assert_eq!(one.unwrap().value.id, two.unwrap().value.id);
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_decides_and_writes_nothing() {
    let world = world_of(&["n1"]).await;
    let before = world.store.read(|view| view.revision());
    let dry = |text| NewCommand { dry_run: true, ..order(text) };
    let commands = &world.control.commands;
    let would = commands.issue(&user(), "n1", dry("DRAIN timeout=60")).await.unwrap();
    assert_eq!(would.value.deadline, world.now().checked_add(seconds(60)).ok());
    let refused = word(commands.issue(&user(), "n1", dry("UNCORDON")).await);
    assert_eq!(
        refused,
        "precondition: node n1 is not cordoned (current status: NODE_STATUS_ACTIVE)"
    );
    assert_eq!(world.store.read(|view| view.revision()), before);
    check(&world, "n1", "ACTIVE: ");
}

#[tokio::test(start_paused = true)]
async fn a_fetch_without_news_writes_nothing() {
    let world = world_of(&["n1"]).await;
    let before = world.store.read(|view| view.revision());
    for wire in [Wire::Argosy, Wire::Navarch] {
        assert_eq!(told(&world, "n1", wire).await, "");
    }
    issue(&world, "n1", "DRAIN").await.unwrap();
    fetch(&world, "n1", Wire::Argosy).await;
    let after = world.store.read(|view| view.revision());
    assert_eq!(after.0, before.0 + 2);
    for wire in [Wire::Argosy, Wire::Navarch, Wire::Argosy] {
        fetch(&world, "n1", wire).await;
    }
    assert_eq!(world.store.read(|view| view.revision()), after);
    let live = world.control.nodes.board.live("n1");
    assert_eq!((live.polled_at, live.heard_at), (Some(world.now()), Some(world.now())));
}

#[tokio::test(start_paused = true)]
async fn what_ended_a_week_ago_is_forgotten_and_what_is_open_is_not() {
    let world = world_of(&["n1"]).await;
    let id = issue(&world, "n1", "DRAIN timeout=604800").await.unwrap();
    fetch(&world, "n1", Wire::Argosy).await;
    let open = world.control.commands.get(&user(), id).unwrap().value;
    let now = world.now();
    let ago = |hours: i64| now.checked_sub(SignedDuration::from_hours(hours)).unwrap();
    let mut txn = Txn::at(now);
    let mut keep = |issued_at, ended_at: Option<_>| {
        let mut command = Command { id: world.control.ids.command(issued_at), ..(*open).clone() };
        command.issued_at = issued_at;
        let (outcome, message) = (Outcome::Completed, String::new());
        if let Some(at) = ended_at {
            command.kind = CommandKind::RunDiagnostic;
            command.state = CommandState::Done { at, outcome, message, result: None };
        }
        txn.create(Arc::new(command));
    };
    // More than one commit's worth of what is old, what ended later, and a drain that goes on.
    for _ in 0..600 {
        keep(ago(200), Some(ago(169)));
    }
    keep(ago(199), Some(ago(167)));
    keep(ago(198), None);
    world.store.commit(txn).await.unwrap();
    world.pass(seconds(62)).await;
    check(
        &world,
        "n1",
        "DRAINING/ann: RUN_DIAGNOSTIC Completed, DRAIN acknowledged, DRAIN acknowledged",
    );
}

#[tokio::test(start_paused = true)]
async fn a_node_keeps_its_last_hundred_commands() {
    let world = world_of(&["n1"]).await;
    for _ in 0..ENDED_KEPT + 20 {
        let id = issue(&world, "n1", "RUN_DIAGNOSTIC").await.unwrap();
        fetch(&world, "n1", Wire::Argosy).await;
        say(&world, "n1", id, Outcome::Completed).await.unwrap();
    }
    let kept = world.control.commands.list(&user(), Some("n1"), false).unwrap();
    assert_eq!(kept.len(), ENDED_KEPT);
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_takes_over_a_forgotten_id_is_told_nothing_that_was_meant_for_the_old_one() {
    let world = world_of(&["n1", "n2"]).await;
    for id in ["n1", "n2"] {
        issue(&world, id, "RUN_DIAGNOSTIC").await.unwrap();
        issue(&world, id, "DRAIN").await.unwrap();
    }
    let id = NodeId::parse("n1").unwrap();
    world.control.nodes.forget(&admin(), &id, true, None).await.unwrap();
    let registration = Registration { node_id: "n1".to_owned(), ..Registration::default() };
    world.control.nodes.register(&agent("n1"), registration).await.unwrap();
    for wire in [Wire::Argosy, Wire::Navarch] {
        assert_eq!(told(&world, "n1", wire).await, "");
    }
    check(&world, "n1", "ACTIVE: RUN_DIAGNOSTIC Cancelled, DRAIN Cancelled");
    // However a node goes, its commands end.
    let stored = world.store.read(|view| view.node("n2").unwrap().clone());
    let mut txn = Txn::at(world.now());
    txn.remove(&*stored.value, stored.revision);
    world.store.commit(txn).await.unwrap();
    world.pass(seconds(2)).await;
    let open = world.control.commands.list(&admin(), None, true).unwrap();
    assert_eq!(open.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn of_ten_thousand_open_streams_only_the_one_concerned_is_rung() {
    let one = World::with(quiet()).await;
    let mut txn = Txn::at(one.now());
    for number in 0..10_000 {
        txn.create(Arc::new(node(&one, &format!("n{number}"))));
    }
    one.store.commit(txn).await.unwrap();
    // In the process that took the command, and in any other.
    let two = one.another(quiet(), "two").await;
    for world in [&one, &two] {
        let commands = world.control.commands.clone();
        let mut streams: FuturesUnordered<_> = (0..10_000)
            .map(|number| {
                let commands = commands.clone();
                async move {
                    let id = format!("n{number}");
                    commands.wait(&id).await;
                    id
                }
            })
            .collect();
        assert!(streams.next().now_or_never().is_none());
        let id = issue(&one, "n77", "RUN_DIAGNOSTIC").await.unwrap();
        assert_eq!(streams.next().await.as_deref(), Some("n77"));
        world.pass(seconds(1)).await;
        assert!(streams.next().now_or_never().is_none(), "and nobody else");
        // The next in line is news, too; that it was fetched is none.
        let woken = world.control.commands.clone();
        fetch(&one, "n77", Wire::Argosy).await;
        world.pass(seconds(1)).await;
        woken.wait("n77").await;
        let again = woken.wait("n77");
        tokio::pin!(again);
        assert!(again.as_mut().now_or_never().is_none());
        say(&one, "n77", id, Outcome::Completed).await.unwrap();
        again.await;
    }
}

#[test]
fn i9_each_change_of_a_node_or_command_has_exactly_one_record_in_its_commit() {
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(16));
    let step = (0..9_u8, 0..3_u8, any::<prop::sample::Index>());
    runner
        .run(&prop::collection::vec(step, 5..60), |steps| {
            in_virtual_time(async {
                let world = world_of(&["n0", "n1", "n2"]).await;
                let after = world.store.read(|view| view.revision());
                // A short history may be nothing but refusals; then there is nothing to compare.
                issue(&world, "n0", "CORDON").await.unwrap();
                for (what, which, index) in steps {
                    // Many of these are refused; that is part of the history.
                    let id = format!("n{which}");
                    let all = world.control.commands.list(&user(), Some(&id), false).unwrap();
                    match what {
                        0..=4 => {
                            let text = CommandKind::ALL[usize::from(what)].as_str();
                            drop(issue(&world, &id, text).await);
                        }
                        5 => drop(fetch(&world, &id, Wire::Argosy).await),
                        6 => drop(fetch(&world, &id, Wire::Navarch).await),
                        7 if !all.is_empty() => {
                            let command = &all[index.index(all.len())].value;
                            let done =
                                [Outcome::Completed, Outcome::Failed][usize::from(which % 2)];
                            drop(say(&world, &id, command.id, done).await);
                        }
                        _ => world.pass(seconds(301)).await,
                    }
                }
                let mutations = mutations(&world, after).await;
                let entries = world.control.audit.list(&admin(), None, 10_000).await.unwrap();
                let mut records: BTreeMap<(u64, String), usize> = BTreeMap::new();
                for entry in entries {
                    if entry.record.action != "ack-replayed" {
                        let key = (entry.revision, entry.record.id);
                        *records.entry(key).or_default() += 1;
                    }
                }
                prop_assert!(!mutations.is_empty());
                prop_assert_eq!(mutations, records);
                Ok(())
            })
        })
        .unwrap();
}

/// Every document that was written or ended after a revision, by commit.
async fn mutations(world: &World, after: Revision) -> BTreeMap<(u64, String), usize> {
    let mut mutations: BTreeMap<(u64, String), usize> = BTreeMap::new();
    let mut seen = after;
    loop {
        let events = world.store.events(seen).await.unwrap().unwrap();
        let Some(last) = events.last() else { return mutations };
        seen = last.revision;
        for event in &events {
            let nodes = event.nodes.iter().map(|change| change.id.clone());
            let commands = event.commands.iter().filter(|change| change.after.is_some());
            for id in nodes.chain(commands.map(|change| change.id.clone())) {
                *mutations.entry((event.revision.0, id)).or_default() += 1;
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn r2_n7_a_drain_is_told_although_a_diagnostic_runs() {
    let world = world_of(&["n1"]).await;
    issue(&world, "n1", "RUN_DIAGNOSTIC test=stress seconds=3600").await.unwrap();
    assert_eq!(told(&world, "n1", Wire::Argosy).await, "RUN_DIAGNOSTIC");
    issue(&world, "n1", "DRAIN").await.unwrap();
    assert_eq!(told(&world, "n1", Wire::Argosy).await, "DRAIN");
}

#[tokio::test(start_paused = true)]
async fn r2_n8_a_node_on_which_many_diagnostics_wait_is_taken_out_of_service() {
    let world = world_of(&["n1"]).await;
    for seconds in 1..=32 {
        issue(&world, "n1", &format!("RUN_DIAGNOSTIC seconds={seconds}")).await.unwrap();
    }
    let one_more = issue(&world, "n1", "RUN_DIAGNOSTIC").await;
    assert!(matches!(one_more, Err(Error::TooMany(_))), "{one_more:?}");
    issue(&world, "n1", "CORDON").await.unwrap();
    issue(&world, "n1", "DRAIN").await.unwrap();
    assert_eq!(told(&world, "n1", Wire::Argosy).await, "CORDON");
}

#[tokio::test(start_paused = true)]
async fn r2_n5_a_node_that_was_away_is_told_again_what_it_is_to_be() {
    let mut settings = quiet();
    settings.nodes.defaults.command_life = seconds(5);
    let world = World::with(settings).await;
    world.enrol("n1").await;
    issue(&world, "n1", "CORDON").await.unwrap();
    world.pass(seconds(7)).await;
    check(&world, "n1", "CORDONED/ann: CORDON Expired");
    world.beat("n1").unwrap();
    world.pass(seconds(31)).await;
    world.beat("n1").unwrap();
    assert_eq!(told(&world, "n1", Wire::Argosy).await, "CORDON");
    // One that was terminated is told when it is heard.
    issue(&world, "n1", "TERMINATE").await.unwrap();
    world.pass(seconds(60)).await;
    assert_eq!(told(&world, "n1", Wire::Argosy).await, "TERMINATE");
}
