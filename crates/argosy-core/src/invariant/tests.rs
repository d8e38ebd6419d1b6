mod instance;

use super::{Cause, Change};
use crate::adapter::Report;
use crate::command::{Command, CommandKind, CommandState, Outcome};
use crate::fixture::{adapters, at, by, cluster, command_id, hold, name, node, object, told};
use crate::health::HealthState;
use crate::name::Name;
use crate::node::{Duty, GPUS_MAX, Gpu, Liveness, Node};
use crate::resource::Resource;
use crate::status::Condition;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;

fn check(before: Option<&Resource>, after: &Resource) -> Result<(), String> {
    super::check(Change::Resource { before, after })
}

#[track_caller]
fn refused(change: impl Fn(&mut Resource), expected: &str) {
    let specs = adapters("validation dns<validation");
    let before = told(cluster(&specs), &specs, "validation:T@1+1 dns:T@1+2");
    assert_eq!(check(None, &before), Ok(()));
    assert_eq!(check(Some(&before), &before), Ok(()));
    let mut after = before.clone();
    change(&mut after);
    let sentence = format!("Cluster {}: {expected}", after.id);
    assert_eq!(check(Some(&before), &after), Err(sentence));
}

fn dns(of: &mut Resource) -> &mut Report {
    Arc::make_mut(of.reports.get_mut(&name("dns")).unwrap())
}

#[test]
fn nothing_goes_backwards() {
    refused(|of| of.generation = 0, "I6: generations start at 1");
    refused(|of| dns(of).last_report_time = at(1), "I6: the report of dns went backwards");
    refused(
        |of| {
            of.reports.remove(&name("dns"));
        },
        "I6: the report of dns went backwards",
    );
    refused(
        |of| dns(of).observed_generation = 2,
        "I6: dns reported a generation that does not exist yet",
    );
    refused(|of| of.spec = object(json!({})), "I6: the wish changed without a new generation");
    refused(
        |of| of.deletion = Some(by("ada", 9)),
        // The adapters are available, which is not the same as cleaned up.
        "I7: Reconciled is True, but dns is not done with this generation",
    );
}

#[test]
fn a_generation_is_not_taken_back() {
    let specs = adapters("validation");
    let first = cluster(&specs);
    let second = Resource { generation: 2, ..first.clone() };
    assert!(
        check(Some(&second), &first).unwrap_err().ends_with("I6: the generation went backwards")
    );
}

#[test]
fn what_a_resource_is_does_not_change() {
    refused(|of| of.name = Name::parse("other").unwrap(), "I7: its name changed");
    refused(|of| of.tenant = "umbrella".to_owned(), "I7: its tenant changed");
    refused(|of| of.owner = Some(of.id), "I7: its owner changed");
    refused(|of| of.created = by("eve", 0), "I7: its creation changed");
}

#[test]
fn a_deletion_is_not_undone() {
    let deleting = cluster(&[]).deleted(by("ada", 5), &[], false).unwrap();
    let undone = Resource { deletion: None, ..deleting.clone() };
    assert!(check(Some(&deleting), &undone).unwrap_err().ends_with("I7: its deletion changed"));
}

#[test]
fn reconciled_rests_on_this_generation_alone() {
    refused(|of| of.generation = 2, "I7: Reconciled is True for another generation");
    refused(
        |of| {
            of.generation = 2;
            let reconciled: &mut Condition = &mut of.conditions[0];
            reconciled.observed_generation = 2;
        },
        "I7: Reconciled is True, but dns is not done with this generation",
    );
    refused(
        |of| of.conditions.push(of.conditions[0].clone()),
        "I7: condition Reconciled is there twice",
    );
}

#[track_caller]
fn node_step(cause: Cause, before: &Duty, after: Duty, expected: &str) {
    let before = Node { duty: before.clone(), report_sequence: 7, ..node("a") };
    let after = Node { duty: after, ..before.clone() };
    node_change(cause, &before, &after, expected);
}

#[track_caller]
fn node_change(cause: Cause, before: &Node, after: &Node, expected: &str) {
    let found = super::check(Change::Node { before: Some(before), after, cause });
    match expected {
        "" => assert_eq!(found, Ok(())),
        rule => assert_eq!(found, Err(format!("Node a: {rule}"))),
    }
}

fn draining(command: u128, deadline: i64, done: bool) -> Duty {
    let hold = hold("ada", false, 1);
    Duty::Draining { hold, command: command_id(command), deadline: at(deadline), done }
}

#[test]
fn i7_duty_takes_only_legal_steps() {
    let (active, gone) = (Duty::Active, Duty::Terminated(hold("ada", false, 1)));
    let cordoned = Duty::Cordoned(hold("ada", false, 1));
    let draining = |done| draining(1, 60, done);
    let every = [active.clone(), cordoned.clone(), draining(false), gone.clone()];
    for before in &every[..3] {
        for after in &every {
            node_step(Cause::Other, before, after.clone(), "");
        }
    }
    for after in &every[..3] {
        let back = "I7: it came back from being terminated";
        node_step(Cause::Other, &gone, after.clone(), back);
    }
    let early = "I5: its drain ended before it began";
    node_step(Cause::Other, &active, draining(true), early);
    node_step(Cause::Other, &cordoned, draining(true), early);
    node_step(Cause::Other, &draining(false), draining(true), "");
    node_step(
        Cause::Other,
        &draining(true),
        draining(false),
        "I5: its drain had ended and goes on",
    );
    let found = Node { duty: cordoned, ..node("a") };
    let change = Change::Node { before: None, after: &found, cause: Cause::Other };
    assert_eq!(super::check(change).unwrap_err(), "Node a: I7: it begins out of service");
}

#[test]
fn i5_the_deadline_of_a_drain_stays_and_a_new_drain_is_another() {
    let moved = "I5: the deadline of its drain moved";
    node_step(Cause::Other, &draining(1, 60, false), draining(1, 61, false), moved);
    node_step(Cause::Other, &draining(1, 60, false), draining(2, 90, false), "");
    let early = "I5: its drain ended before it began";
    node_step(Cause::Other, &draining(1, 60, false), draining(2, 90, true), early);
}

#[test]
fn f6_a_registration_clears_nothing() {
    let changed = "I7: a registration changed its duty";
    let held = [
        Duty::Cordoned(hold("ada", false, 1)),
        Duty::Cordoned(hold("argosy", true, 1)),
        draining(1, 60, false),
    ];
    for duty in &held {
        node_step(Cause::Registration, duty, Duty::Active, changed);
        node_step(Cause::Registration, duty, duty.clone(), "");
    }
    let before = Node { pool: Some("h100".to_owned()), ..node("a") };
    let moved = Node { pool: Some("a100".to_owned()), ..before.clone() };
    node_change(Cause::Registration, &before, &moved, "I7: its pool changed");
    let other = Node { tenant: "umbrella".to_owned(), ..before.clone() };
    node_change(Cause::Registration, &before, &other, "I7: its tenant changed");
    let anew = Node { registered_at: at(9), ..before.clone() };
    node_change(Cause::Registration, &before, &anew, "I7: its first registration changed");
}

#[test]
fn i7_an_automatic_action_never_touches_what_an_operator_decided() {
    let touched = "I7: an automatic action touched what an operator decided";
    let theirs = Duty::Cordoned(hold("ada", false, 1));
    let ours = Duty::Cordoned(hold("argosy", true, 1));
    node_step(Cause::Automatic, &theirs, Duty::Active, touched);
    node_step(Cause::Automatic, &theirs, ours.clone(), touched);
    node_step(Cause::Automatic, &draining(1, 60, false), Duty::Active, touched);
    node_step(Cause::Automatic, &ours, Duty::Active, "");
    node_step(Cause::Automatic, &Duty::Active, ours, "");
    // What was found about the node may change all the same.
    let before = Node { duty: theirs, ..node("a") };
    let lost = Node { liveness: Liveness::Unreachable, ..before.clone() };
    node_change(Cause::Automatic, &before, &lost, "");
}

#[test]
fn i6_the_numbers_of_reports_only_grow() {
    let before = Node { report_sequence: 7, ..node("a") };
    let at = |report_sequence| Node { report_sequence, ..before.clone() };
    let back = "I6: its report sequence went backwards";
    node_change(Cause::Other, &before, &at(8), "");
    node_change(Cause::Other, &before, &at(6), back);
    node_change(Cause::Other, &before, &at(0), back);
    node_change(Cause::Registration, &before, &at(6), back);
    node_change(Cause::Registration, &before, &at(0), "");
}

#[test]
fn i11_a_node_with_too_much_in_it_is_refused() {
    let before = node("a");
    let mut after = before.clone();
    after.gpus = vec![Gpu::default(); GPUS_MAX + 1];
    node_change(Cause::Other, &before, &after, "I11: it has 65 GPUs, and at most 64 are kept");
    after.gpus.pop();
    after.health.state = HealthState::Unhealthy;
    node_change(Cause::Other, &before, &after, "");
}

fn command(kind: CommandKind, state: CommandState) -> Command {
    Command {
        id: command_id(1),
        node: node("a").id,
        tenant: "acme".to_owned(),
        kind,
        parameters: BTreeMap::new(),
        by: "ada".to_owned(),
        automatic: false,
        reason: String::new(),
        issued_at: at(0),
        expires_at: at(600),
        deadline: (kind == CommandKind::Drain).then(|| at(60)),
        state,
    }
}

/// `pending`, `ack 10 50` (fetched at 10, 50 % done), `done 20 Drained`.
fn state(text: &str) -> CommandState {
    let words: Vec<&str> = text.split(' ').collect();
    let time = |index: usize| at(words[index].parse().unwrap());
    match words[0] {
        "pending" => CommandState::Pending,
        "ack" => {
            let progress = words.get(2).map(|percent| percent.parse().unwrap());
            CommandState::Acknowledged { at: time(1), progress }
        }
        _ => CommandState::Done {
            at: time(1),
            outcome: serde_json::from_value::<Outcome>(json!(words[2])).unwrap(),
            message: String::new(),
            result: None,
        },
    }
}

#[track_caller]
fn command_step(kind: CommandKind, before: &str, after: &str, expected: &str) {
    let before = (before != "-").then(|| command(kind, state(before)));
    let after = command(kind, state(after));
    let found = super::check(Change::Command { before: before.as_ref(), after: &after });
    match expected {
        "" => assert_eq!(found, Ok(())),
        rule => assert_eq!(found, Err(format!("Command {}: {rule}", after.id))),
    }
}

#[test]
fn i5_a_command_goes_one_way_and_ends_once() {
    let (cordon, drain) = (CommandKind::Cordon, CommandKind::Drain);
    command_step(cordon, "-", "pending", "");
    command_step(cordon, "-", "ack 1", "I5: it begins as acknowledged");
    command_step(cordon, "pending", "pending", "");
    command_step(cordon, "pending", "ack 1", "");
    command_step(cordon, "pending", "done 600 Expired", "");
    command_step(
        cordon,
        "ack 1",
        "pending",
        "I5: the node had fetched it, and it is pending again",
    );
    command_step(cordon, "ack 1", "ack 2", "I5: the node had fetched it, and fetched it again");
    command_step(drain, "ack 1", "ack 1 50", "");
    command_step(drain, "ack 1 50", "ack 1 40", "I6: its progress went backwards");
    command_step(cordon, "ack 1", "done 2 Completed", "");
    let again = "I5: it had ended, and ended again";
    command_step(cordon, "done 2 Completed", "done 2 Completed", "");
    command_step(cordon, "done 2 Completed", "done 3 Completed", again);
    command_step(cordon, "done 2 Completed", "done 2 Failed", again);
    command_step(cordon, "done 2 Completed", "pending", again);
}

#[test]
fn f4_after_its_deadline_a_drain_is_never_drained() {
    let drain = CommandKind::Drain;
    command_step(drain, "ack 1", "done 60 Drained", "");
    command_step(drain, "ack 1", "done 61 Drained", "I5: it ended as Drained after its deadline");
    command_step(drain, "ack 1", "done 61 TimedOut", "");
    command_step(drain, "ack 1", "done 61 Forced", "");
    let cordon = CommandKind::Cordon;
    command_step(cordon, "ack 1", "done 2 Drained", "I5: a CORDON cannot end as Drained");
}

#[test]
fn i5_what_was_asked_for_does_not_change() {
    let before = command(CommandKind::Drain, CommandState::Pending);
    let refused = |change: &dyn Fn(&mut Command), what: &str| {
        let mut after = before.clone();
        change(&mut after);
        let found = super::check(Change::Command { before: Some(&before), after: &after });
        assert_eq!(found, Err(format!("Command {}: I5: its {what} changed", after.id)));
    };
    refused(&|of| of.node = node("b").id, "node");
    refused(&|of| of.kind = CommandKind::Cordon, "kind");
    refused(&|of| of.automatic = true, "author");
    refused(&|of| of.deadline = Some(at(61)), "deadline");
    refused(&|of| of.expires_at = at(601), "age");
    refused(&|of| _ = of.parameters.insert("force".to_owned(), "true".to_owned()), "parameters");
}
