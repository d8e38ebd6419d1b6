//! Workload systems: told, told again, asked, and never waited for.

use crate::command::{check, find, issue, ledger, node, put, quiet, seconds};
use crate::workload::{Does, Workload};
use crate::world::{World, admin};
use argosy_control::scheduler::SchedulerError;
use argosy_core::node::{Flag, NodeId, Registration, Told};
use std::sync::Arc;

async fn world_of(nodes: &[&str]) -> World {
    let world = World::with_workload(quiet(), Some(Arc::default())).await;
    for id in nodes {
        put(&world, node(&world, id)).await;
    }
    world
}

fn system(world: &World) -> &Workload {
    world.outside.workload.as_deref().unwrap()
}

fn later() -> Option<Does> {
    Some(Does::Fail(SchedulerError::Later("slurmctld is away".to_owned())))
}

async fn until_told(world: &World, id: &str, told: Told) {
    world
        .until("it was told", |world| {
            let external = &find(world, id).external;
            external.told == told && external.telling.is_none()
        })
        .await;
}

/// The lines about workload systems and flags, as `cordon true`.
async fn lines(world: &World, id: &str) -> Vec<String> {
    let mut lines = Vec::new();
    for entry in ledger(world, id).await {
        let entry = serde_json::to_value(entry).unwrap();
        let word = |member: &str| entry[member].to_string().replace('"', "");
        match entry["type"].as_str().unwrap() {
            "external" => lines.push(format!("{} {}", word("what"), word("ok"))),
            "flag" => lines.push(format!("{} {}", word("flag"), word("raised"))),
            _ => {}
        }
    }
    lines
}

#[tokio::test(start_paused = true)]
async fn it_is_told_what_every_command_means_for_it() {
    let world = world_of(&["n1", "n2"]).await;
    for (text, told, state) in [
        ("CORDON", Told::Cordon, "cordon"),
        ("DRAIN", Told::Drain, "drain"),
        ("UNCORDON", Told::Uncordon, "uncordon"),
        ("DRAIN", Told::Drain, "drain"),
        ("CORDON", Told::Cordon, "cordon"),
        ("TERMINATE", Told::Cordon, "cordon"),
    ] {
        issue(&world, "n1", text).await.unwrap();
        until_told(&world, "n1", told).await;
        assert_eq!(system(&world).state("n1"), state, "{text}");
    }
    world.pass(seconds(600)).await;
    let mut calls = system(&world).calls();
    calls.retain(|call| !call.ends_with("status"));
    let wanted = ["n1 cordon", "n1 drain", "n1 uncordon", "n1 drain", "n1 cordon"];
    assert_eq!(calls, wanted, "each once, and nothing about anybody else");
}

#[tokio::test(start_paused = true)]
async fn a_drain_ends_when_the_system_says_so() {
    let world = world_of(&["n1"]).await;
    system(&world).run("n1", 3);
    issue(&world, "n1", "DRAIN").await.unwrap();
    // The node need not fetch it: the work is asked to leave all the same, and longer than a command
    // lives undelivered.
    world.pass(seconds(900)).await;
    check(&world, "n1", "DRAINING/ann: DRAIN pending");
    let asked = system(&world).count("n1 status");
    assert!((85..=95).contains(&asked), "every ten seconds, not {asked} times");
    system(&world).run("n1", 0);
    world.pass(seconds(11)).await;
    check(&world, "n1", "DRAINING/ann: DRAIN Drained");
    system(&world).calls();
    world.pass(seconds(600)).await;
    assert_eq!(system(&world).calls(), Vec::<String>::new(), "and is not asked again");
    assert_eq!(lines(&world, "n1").await, ["drain true", "drained true"]);
}

#[tokio::test(start_paused = true)]
async fn a_drain_of_a_node_the_system_does_not_know_is_never_drained() {
    let world = world_of(&["n1"]).await;
    let unknown = SchedulerError::UnknownNode("no node n1 here".to_owned());
    for call in ["n1 drain", "n1 cordon", "n1 status"] {
        system(&world).when(call, Some(Does::Fail(unknown.clone())));
    }
    issue(&world, "n1", "DRAIN timeout=60").await.unwrap();
    world.pass(seconds(62)).await;
    check(&world, "n1", "CORDONED/ann: DRAIN Expired");
    let flag = find(&world, "n1").flags[&Flag::ExternalFailed].message.clone();
    assert!(flag.contains("no node n1 here"), "{flag}");
}

#[tokio::test(start_paused = true)]
async fn f5_a_drain_that_is_taken_back_is_taken_back_there_too() {
    let world = world_of(&["n1"]).await;
    system(&world).run("n1", 1);
    issue(&world, "n1", "DRAIN").await.unwrap();
    until_told(&world, "n1", Told::Drain).await;
    issue(&world, "n1", "UNCORDON").await.unwrap();
    until_told(&world, "n1", Told::Uncordon).await;
    assert_eq!(system(&world).state("n1"), "uncordon");
    system(&world).run("n1", 0);
    world.pass(seconds(600)).await;
    assert!(find(&world, "n1").duty.hold().is_none());
}

#[tokio::test(start_paused = true)]
async fn l6_a_cordon_that_the_system_refuses_holds_is_seen_and_is_tried_again() {
    let world = world_of(&["n1"]).await;
    system(&world).when("n1 cordon", later());
    issue(&world, "n1", "CORDON").await.unwrap();
    world.until("it failed", |world| find(world, "n1").external.failures == 3).await;
    check(&world, "n1", "CORDONED/ann: CORDON pending");
    let flag = find(&world, "n1").flags[&Flag::ExternalFailed].clone();
    assert_eq!(flag.message, "ExternalCordonFailed: scripted: slurmctld is away");
    system(&world).when("n1 cordon", None);
    until_told(&world, "n1", Told::Cordon).await;
    assert!(find(&world, "n1").flags.is_empty());
    let expected = ["cordon false", "ExternalFailed true", "cordon true", "ExternalFailed false"];
    assert_eq!(lines(&world, "n1").await, expected, "said when it began and when it was over");
}

#[tokio::test(start_paused = true)]
async fn l6_a_system_that_is_away_for_hours_is_called_now_and_then() {
    let world = world_of(&["n1"]).await;
    system(&world).when("n1 cordon", later());
    issue(&world, "n1", "CORDON").await.unwrap();
    world.pass(seconds(4 * 3600)).await;
    let count = system(&world).count("n1 cordon");
    assert!((50..=70).contains(&count), "{count}");
    // And then at once what is wanted now, not what was wanted then.
    issue(&world, "n1", "UNCORDON").await.unwrap();
    world.pass(seconds(1)).await;
    assert_eq!(system(&world).count("n1 uncordon"), 1, "perhaps one of the cordons was heard");
    assert!(!find(&world, "n1").flags.contains_key(&Flag::ExternalFailed));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_was_heard_but_not_answered_is_undone_too() {
    let world = world_of(&["n1"]).await;
    system(&world).when("n1 cordon", Some(Does::DoAndHang));
    issue(&world, "n1", "CORDON").await.unwrap();
    world.until("it was called", |world| system(world).count("n1 cordon") == 1).await;
    // The process dies before it knows; the operator uncordons before another one looks.
    let world = world.restart(quiet()).await;
    assert_eq!(
        (system(&world).state("n1"), find(&world, "n1").external.told),
        ("cordon", Told::Uncordon)
    );
    issue(&world, "n1", "UNCORDON").await.unwrap();
    until_told(&world, "n1", Told::Uncordon).await;
    assert_eq!(system(&world).state("n1"), "uncordon");
}

#[tokio::test(start_paused = true)]
async fn a_machine_under_a_forgotten_id_is_let_back_in() {
    let world = world_of(&["n1"]).await;
    issue(&world, "n1", "TERMINATE").await.unwrap();
    until_told(&world, "n1", Told::Cordon).await;
    let id = NodeId::parse("n1").unwrap();
    world.control.nodes.forget(&admin(), &id, false, None).await.unwrap();
    assert_eq!(system(&world).state("n1"), "cordon");
    let registration = Registration { node_id: "n1".to_owned(), ..Registration::default() };
    world.control.nodes.register(&admin(), registration).await.unwrap();
    until_told(&world, "n1", Told::Uncordon).await;
    assert_eq!(system(&world).state("n1"), "uncordon");
    // One that was never known is not spoken of.
    let registration = Registration { node_id: "n2".to_owned(), ..Registration::default() };
    world.control.nodes.register(&admin(), registration).await.unwrap();
    world.pass(seconds(10)).await;
    assert_eq!(system(&world).calls(), ["n1 cordon", "n1 uncordon"]);
}

#[tokio::test(start_paused = true)]
async fn l1_a_system_that_hangs_holds_up_nobody_else() {
    let nodes: Vec<String> = (0..40).map(|number| format!("h{number}")).collect();
    let mut ids: Vec<&str> = nodes.iter().map(String::as_str).collect();
    ids.push("n1");
    let world = world_of(&ids).await;
    for id in &nodes {
        system(&world).when(&format!("{id} cordon"), Some(Does::Hang));
        issue(&world, id, "CORDON").await.unwrap();
    }
    issue(&world, "n1", "DRAIN").await.unwrap();
    check(&world, "h1", "CORDONED/ann: CORDON pending");
    until_told(&world, "n1", Told::Drain).await;
    let waited = world.now().duration_since(find(&world, "n1").registered_at);
    assert!(waited < seconds(65), "two rounds of calls that time out, not {waited}");
    let flag = &find(&world, "h1").flags[&Flag::ExternalFailed].message;
    assert_eq!(flag, "ExternalCordonFailed: scripted: no answer in 30 s");
    assert!(world.control.alive().is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_system_that_panics_is_called_again_later() {
    let world = world_of(&["n1"]).await;
    system(&world).when("n1 cordon", Some(Does::Panic));
    issue(&world, "n1", "CORDON").await.unwrap();
    world.until("it panicked", |world| system(world).count("n1 cordon") == 2).await;
    system(&world).when("n1 cordon", None);
    until_told(&world, "n1", Told::Cordon).await;
    check(&world, "n1", "CORDONED/ann: CORDON pending");
}

#[tokio::test(start_paused = true)]
async fn of_two_processes_one_tells_and_the_other_takes_over() {
    let one = world_of(&["n1", "n2"]).await;
    let two = one.another(quiet(), "two").await;
    issue(&two, "n1", "CORDON").await.unwrap();
    until_told(&two, "n1", Told::Cordon).await;
    assert_eq!(system(&one).calls(), ["n1 cordon"]);
    drop(one);
    issue(&two, "n2", "CORDON").await.unwrap();
    until_told(&two, "n2", Told::Cordon).await;
    assert_eq!(system(&two).calls(), ["n2 cordon"]);
}

#[tokio::test(start_paused = true)]
async fn a_restart_tells_nothing_that_is_known() {
    let world = world_of(&["n1", "n2"]).await;
    issue(&world, "n1", "CORDON").await.unwrap();
    until_told(&world, "n1", Told::Cordon).await;
    system(&world).calls();
    let world = world.restart(quiet()).await;
    world.pass(seconds(60)).await;
    assert_eq!(system(&world).calls(), Vec::<String>::new());
}
