//! Workload systems: told, told again, asked, and never waited for.

use crate::command::{agent, check, find, issue, ledger, node, put, quiet, seconds};
use crate::workload::{Does, Workload};
use crate::world::{World, admin, user};
use argosy_control::command::Wire;
use argosy_control::scheduler::SchedulerError;
use argosy_core::command::{Ack, Outcome};
use argosy_core::external::{Party, SYSTEMS_LABEL};
use argosy_core::node::settings::Remedy;
use argosy_core::node::{Flag, Machine, NodeId, Registration, Told};
use serde_json::json;
use std::sync::Arc;

/// Nodes that the workload system has been told of.
async fn world_of(nodes: &[&str]) -> World {
    world_with(Workload::default(), nodes).await
}

async fn world_with(workload: Workload, nodes: &[&str]) -> World {
    let world = World::with_workload(quiet(), Some(Arc::new(workload))).await;
    for id in nodes {
        put(&world, node(&world, id)).await;
        until_told(&world, id, Told::Uncordon).await;
    }
    system(&world).calls();
    world
}

/// What is stored of the workload system.
fn party(world: &World, id: &str) -> Party {
    let parties = find(world, id).external.parties.clone();
    let mut systems = parties.into_iter().filter(|(key, _)| key.starts_with("scripted"));
    systems.next().map(|(_, party)| party).unwrap_or_default()
}

/// The node fetches its drain, and says this of it.
async fn says(world: &World, id: &str, outcome: Option<Outcome>, message: &str) {
    let commands = &world.control.commands;
    commands.fetch(&agent(id), id, Wire::Argosy).await.unwrap();
    let open = commands.list(&admin(), Some(id), true).unwrap();
    let drain = open.iter().find(|command| command.value.deadline.is_some()).unwrap().value.id;
    let ack = Ack { outcome, progress: None, message: message.to_owned(), result: None };
    commands.acknowledge(&agent(id), id, drain, ack).await.unwrap();
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
            let party = party(world, id);
            party.told.map(|wish| wish.state) == Some(told) && party.telling.is_none()
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
    world.until("it failed", |world| party(world, "n1").failures == 3).await;
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
    // And then at once what is wanted now, not what was wanted then (N10).
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
        (system(&world).state("n1"), party(&world, "n1").told.unwrap().state),
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
    // So is one that was never known: its machine may have had another name.
    let registration = Registration { node_id: "n2".to_owned(), ..Registration::default() };
    world.control.nodes.register(&admin(), registration).await.unwrap();
    world.pass(seconds(10)).await;
    assert_eq!(system(&world).calls(), ["n1 cordon", "n1 uncordon", "n2 uncordon"]);
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

#[tokio::test(start_paused = true)]
async fn r2_n1_a_drain_is_over_when_the_workload_system_says_so_not_the_agent() {
    let world = world_of(&["n1"]).await;
    system(&world).run("n1", 3);
    issue(&world, "n1", "DRAIN").await.unwrap();
    says(&world, "n1", Some(Outcome::Drained), "nothing runs on a GPU").await;
    world.pass(seconds(600)).await;
    check(&world, "n1", "DRAINING/ann: DRAIN acknowledged");
    assert!(50 < system(&world).count("n1 status"), "it is asked all the time");
    system(&world).run("n1", 0);
    world.pass(seconds(11)).await;
    check(&world, "n1", "DRAINING/ann: DRAIN Drained");
    assert!(find(&world, "n1").is_emptied());
}

#[tokio::test(start_paused = true)]
async fn r2_n1_what_the_agent_still_sees_holds_the_drain_open() {
    let world = world_of(&["n1"]).await;
    system(&world).run("n1", 1);
    issue(&world, "n1", "DRAIN timeout=300").await.unwrap();
    says(&world, "n1", None, "waiting: on the GPUs: python (12)").await;
    system(&world).run("n1", 0);
    world.pass(seconds(60)).await;
    check(&world, "n1", "DRAINING/ann: DRAIN acknowledged");
    world.pass(seconds(301)).await;
    check(&world, "n1", "DRAINING/ann: DRAIN TimedOut");
    let left = find(&world, "n1").external.left.clone().unwrap().what;
    assert!(left.contains("agent: waiting: on the GPUs: python (12)"), "{left}");
    assert!(!find(&world, "n1").is_emptied());
}

#[tokio::test(start_paused = true)]
async fn r2_n1_a_drain_that_times_out_says_what_is_left() {
    let world = world_of(&["n1"]).await;
    system(&world).run("n1", 2);
    issue(&world, "n1", "DRAIN timeout=60").await.unwrap();
    says(&world, "n1", Some(Outcome::Drained), "nothing runs on a GPU").await;
    world.pass(seconds(59)).await;
    check(&world, "n1", "DRAINING/ann: DRAIN acknowledged");
    world.pass(seconds(5)).await;
    check(&world, "n1", "DRAINING/ann: DRAIN TimedOut");
    let left = find(&world, "n1").external.left.clone().unwrap().what;
    assert_eq!(left, "at the deadline, work was left: scripted: 2 jobs");
}

#[tokio::test(start_paused = true)]
async fn r2_n2_force_reaches_the_workload_system_and_forced_is_what_it_ended() {
    let world = world_of(&["n1"]).await;
    system(&world).run("n1", 2);
    issue(&world, "n1", "DRAIN timeout=60 force=true").await.unwrap();
    until_told(&world, "n1", Told::Drain).await;
    assert!(system(&world).last_drain().force);
    world.pass(seconds(59)).await;
    assert_eq!(system(&world).jobs("n1"), 2, "never before the deadline");
    world.pass(seconds(32)).await;
    assert_eq!(system(&world).jobs("n1"), 0);
    check(&world, "n1", "DRAINING/ann: DRAIN Forced");
    assert!(find(&world, "n1").is_emptied());
}

#[tokio::test(start_paused = true)]
async fn r2_n3_another_drain_is_told_with_its_own_deadline() {
    let world = world_of(&["n1"]).await;
    system(&world).run("n1", 1);
    issue(&world, "n1", "DRAIN timeout=5").await.unwrap();
    world.pass(seconds(10)).await;
    check(&world, "n1", "DRAINING/ann: DRAIN TimedOut");
    let first = system(&world).last_drain().deadline;
    issue(&world, "n1", "DRAIN timeout=600").await.unwrap();
    world.pass(seconds(2)).await;
    assert_eq!(system(&world).count("n1 drain"), 2);
    assert!(first.saturating_add(seconds(500)).unwrap() < system(&world).last_drain().deadline);
}

#[tokio::test(start_paused = true)]
async fn r2_n4_a_pause_stops_an_automatic_drain_and_its_asking() {
    let mut settings = quiet();
    settings.nodes.defaults.remedy = Remedy::Drain;
    let workload = Arc::new(Workload::default());
    let world = World::with_workload(settings, Some(workload)).await;
    world.enrol("n1").await;
    world.pass(seconds(400)).await;
    system(&world).run("n1", 1);
    world.says("n1", crate::node::world::results("boot=H xid=U")).await;
    world
        .until("it is drained", |world| {
            world.node("n1").status() == argosy_core::node::NodeStatus::Draining
        })
        .await;
    until_told(&world, "n1", Told::Drain).await;
    world.control.safety.pause(&user(), None, "false alarm").await.unwrap();
    world.pass(seconds(3)).await;
    assert_eq!(world.node("n1").status(), argosy_core::node::NodeStatus::Cordoned);
    assert_eq!(world.node("n1").held.as_ref().unwrap().guard, "pause");
    until_told(&world, "n1", Told::Cordon).await;
    system(&world).calls();
    world.pass(seconds(120)).await;
    assert_eq!(system(&world).count("n1 status"), 0, "nobody is asked to leave any more");
}

#[tokio::test(start_paused = true)]
async fn r2_n10_a_new_decision_does_not_wait_for_the_failure_of_the_old_one() {
    let world = world_of(&["n1"]).await;
    system(&world).when("n1 cordon", later());
    issue(&world, "n1", "CORDON").await.unwrap();
    world.until("it failed often", |world| party(world, "n1").failures == 6).await;
    // The seventh call hangs, and fails after the operator has changed their mind.
    system(&world).when("n1 cordon", Some(Does::Hang));
    let calls = || system(&world).count("n1 cordon");
    let before = calls();
    world.until("it is called again", |_| before < calls()).await;
    issue(&world, "n1", "UNCORDON").await.unwrap();
    world.pass(seconds(31)).await;
    assert_eq!(system(&world).count("n1 uncordon"), 1);
    assert!(!find(&world, "n1").flags.contains_key(&Flag::ExternalFailed));
}

#[tokio::test(start_paused = true)]
async fn r2_n20_what_the_system_forgot_is_told_again_and_shown() {
    let world = world_with(Workload::that_lists(), &["n1", "n2"]).await;
    issue(&world, "n1", "CORDON").await.unwrap();
    until_told(&world, "n1", Told::Cordon).await;
    world.pass(seconds(300)).await;
    assert_eq!(system(&world).count("n1 cordon"), 1, "what is so is not told again");
    let lists = system(&world).count("list");
    assert!((4..=6).contains(&lists), "once a minute, not {lists} times");
    // Slurm lost its state, or somebody resumed it.
    system(&world).set("n1", "uncordon");
    world.until("it is told again", |world| system(world).count("n1 cordon") == 2).await;
    world.pass(seconds(61)).await;
    assert_eq!(system(&world).state("n1"), "cordon");
    assert!(find(&world, "n1").flags.is_empty());
    let lines = lines(&world, "n1").await;
    let told = ["cordon true", "seen false", "ExternalDiffers true", "cordon true"];
    assert_eq!(lines[..4], told, "{lines:?}");
}

#[tokio::test(start_paused = true)]
async fn r2_n20_what_a_person_did_there_is_shown_and_stays() {
    let world = world_with(Workload::that_lists(), &["n1"]).await;
    system(&world).set("n1", "theirs");
    world.pass(seconds(65)).await;
    let flag = find(&world, "n1").flags[&Flag::ExternalDiffers].message.clone();
    assert!(flag.contains("gets no work there, not because of argosy"), "{flag}");
    assert_eq!(system(&world).state("n1"), "theirs");
    assert_eq!(find(&world, "n1").status(), argosy_core::node::NodeStatus::Active);
    system(&world).set("n1", "uncordon");
    world.pass(seconds(65)).await;
    assert!(find(&world, "n1").flags.is_empty());
}

#[tokio::test(start_paused = true)]
async fn r2_n20_who_cannot_be_asked_is_told_again_each_hour() {
    let world = world_of(&["n1"]).await;
    issue(&world, "n1", "CORDON").await.unwrap();
    until_told(&world, "n1", Told::Cordon).await;
    world.pass(seconds(3 * 3600)).await;
    let count = system(&world).count("n1 cordon");
    assert!((3..=4).contains(&count), "{count}");
}

#[tokio::test(start_paused = true)]
async fn r2_n21_a_system_that_replaces_another_is_told_everything() {
    let world = world_of(&["n1", "n2"]).await;
    issue(&world, "n1", "CORDON").await.unwrap();
    until_told(&world, "n1", Told::Cordon).await;
    let memory = world.replica();
    let other = Arc::new(Workload::at("b.example"));
    drop(world);
    let world = World::elsewhere(quiet(), memory, other).await;
    world.until("n1 is told", |world| system(world).state("n1") == "cordon").await;
    world.until("n2 is told", |world| system(world).count("n2 uncordon") == 1).await;
    let keys: Vec<String> = find(&world, "n1").external.parties.keys().cloned().collect();
    assert_eq!(keys, ["scripted b.example"], "the other one is forgotten");
}

#[tokio::test(start_paused = true)]
async fn r2_n22_a_node_that_one_system_does_not_know_is_not_drained_there() {
    let world = world_of(&["n1"]).await;
    let unknown = SchedulerError::UnknownNode("no node n1 here".to_owned());
    system(&world).when("n1 status", Some(Does::Fail(unknown)));
    issue(&world, "n1", "DRAIN timeout=60").await.unwrap();
    says(&world, "n1", Some(Outcome::Drained), "nothing runs on a GPU").await;
    world.pass(seconds(30)).await;
    let flag = find(&world, "n1").flags[&Flag::ExternalFailed].message.clone();
    assert!(flag.contains("no node n1 here"), "{flag}");
    world.pass(seconds(92)).await;
    check(&world, "n1", "DRAINING/ann: DRAIN TimedOut");
    // One that is said not to be there is not asked about.
    let labelled =
        argosy_core::label::Labels::parse(json!({ SYSTEMS_LABEL: "slurm" }).as_object().unwrap());
    put(&world, argosy_core::node::Node { labels: labelled.unwrap(), ..node(&world, "n2") }).await;
    issue(&world, "n2", "DRAIN timeout=60").await.unwrap();
    says(&world, "n2", Some(Outcome::Drained), "nothing runs on a GPU").await;
    check(&world, "n2", "DRAINING/ann: DRAIN Drained");
    assert_eq!(system(&world).count("n2 drain"), 0);
}

#[tokio::test(start_paused = true)]
async fn r2_n33_a_machine_that_changes_its_name_leaves_no_drain_behind() {
    let world = world_of(&["n1"]).await;
    issue(&world, "n1", "CORDON").await.unwrap();
    until_told(&world, "n1", Told::Cordon).await;
    let mut renamed = (*find(&world, "n1")).clone();
    renamed.machine = Machine { hostname: "gpu17.example".to_owned(), ..Machine::default() };
    put(&world, renamed).await;
    world.until("it is told by its new name", |w| system(w).state("gpu17") == "cordon").await;
    world.until("its old one is released", |w| system(w).state("n1") == "uncordon").await;
    issue(&world, "n1", "UNCORDON").await.unwrap();
    world.until("it is back", |world| system(world).state("gpu17") == "uncordon").await;
}

#[tokio::test(start_paused = true)]
async fn r2_n34_a_cordon_does_not_wait_behind_questions() {
    let nodes: Vec<String> = (0..70).map(|number| format!("d{number}")).collect();
    let mut ids: Vec<&str> = nodes.iter().map(String::as_str).collect();
    ids.push("n1");
    let world = world_of(&ids).await;
    for id in &nodes {
        system(&world).when(&format!("{id} status"), Some(Does::Hang));
        issue(&world, id, "DRAIN").await.unwrap();
        until_told(&world, id, Told::Drain).await;
    }
    world.pass(seconds(15)).await;
    issue(&world, "n1", "CORDON").await.unwrap();
    world.pass(seconds(1)).await;
    assert_eq!(system(&world).state("n1"), "cordon");
}
