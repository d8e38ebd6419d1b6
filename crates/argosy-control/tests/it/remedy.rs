//! What is done by ourselves: within budgets, behind breakers, and not while somebody paused us.

use crate::command::{issue, seconds};
use crate::fleet::{
    Fleet, SETTLED, audited, automatic, find, issued, ledger, settings, sick, turn, unlimited, well,
};
use crate::node::world::{agent, results};
use crate::world::{World, admin, of_tenant, user};
use argosy_control::Error;
use argosy_control::command::Wire;
use argosy_core::access::{Caller, Role};
use argosy_core::breaker::{Breaker, Scope};
use argosy_core::command::{Ack, CommandKind, CommandState, Outcome as Ended};
use argosy_core::health::HealthState;
use argosy_core::ledger::What;
use argosy_core::node::settings::Remedy;
use argosy_core::node::{Duty, Node, NodeStatus};
use argosy_store::engine::Outcome;
use jiff::SignedDuration;
use std::sync::Arc;
use std::sync::atomic::Ordering;

fn pool() -> Scope {
    Scope::Pool { tenant: "acme".to_owned(), pool: "h100".to_owned() }
}

fn breakers(world: &World) -> Vec<Arc<Breaker>> {
    world.store.read(|view| view.breakers().map(|breaker| breaker.value.clone()).collect())
}

fn names(range: std::ops::Range<usize>) -> Vec<String> {
    range.map(|index| format!("n{index}")).collect()
}

fn texts(names: &[String]) -> Vec<&str> {
    names.iter().map(String::as_str).collect()
}

async fn settled(settings: argosy_control::Settings, count: usize) -> (World, Fleet) {
    let world = World::with(settings).await;
    let fleet = Fleet::new(&world, count).await;
    fleet.live(&world, SETTLED).await;
    (world, fleet)
}

#[tokio::test(start_paused = true)]
async fn cuj_5_a_sick_node_is_told_to_cordon_and_is_put_back_when_it_is_well() {
    let (world, fleet) = settled(settings(), 10).await;
    sick(&world, &["n1"]).await;
    world.pass(SignedDuration::from_millis(150)).await;
    assert_eq!(fleet.words(&world), "n1 UNHEALTHY", "until it has fetched it");
    assert_eq!(automatic(&world, "n1")[0].kind, CommandKind::Cordon);
    fleet.work(&world, 1).await;
    assert_eq!(fleet.words(&world), "n1 CORDONED");
    well(&world, &["n1"]).await;
    fleet.work(&world, 29).await;
    assert_eq!(fleet.words(&world), "n1 CORDONED");
    assert_eq!(find(&world, "n1").held.as_ref().unwrap().guard, "hold-down");
    fleet.work(&world, 2).await;
    assert_eq!(fleet.words(&world), "");
    assert_eq!(find(&world, "n1").held, None);
    assert_eq!(audited(&world, "cordon").await.len(), 1);
    assert_eq!(audited(&world, "uncordon").await[0].actor, "argosy");
}

#[tokio::test(start_paused = true)]
async fn cuj_5_from_the_report_to_the_cordon_and_back_it_can_be_told_why() {
    let world = World::with(settings()).await;
    world.enrol("gpu-1").await;
    world.says("gpu-1", results("boot=H xid=H")).await;
    world.pass(seconds(5)).await;
    let answer = world.says("gpu-1", results("boot=H xid=U")).await;
    assert_eq!(answer.status, NodeStatus::Unhealthy, "CUJ-3");
    world.pass(SignedDuration::from_millis(150)).await;
    let commands = &world.control.commands;
    let told = commands.fetch(&agent("gpu-1"), "gpu-1", Wire::Argosy).await.unwrap();
    assert_eq!(told[0].kind, CommandKind::Cordon);
    assert_eq!(world.node("gpu-1").status(), NodeStatus::Cordoned);
    let why = world.control.nodes.why(&admin(), "gpu-1").await.unwrap();
    let because = "gpu-1 is CORDONED because check xid says: xid says U";
    assert!(why.summary.starts_with(because), "{}", why.summary);
    let steps: Vec<String> =
        why.steps.iter().map(|step| format!("{}: {}", step.kind, step.message)).collect();
    let decided = "decision: decided to cordon it: check xid says: xid says U".to_owned();
    assert!(steps.contains(&decided), "{steps:#?}");
    let budgets = ["nodes without a pool 1/1, zone us-east1-b 1/1, fleet 1/1"];
    let decision = why.steps.iter().find(|step| step.kind == "decision").unwrap();
    assert_eq!(decision.evidence, budgets);

    world.says("gpu-1", results("boot=H xid=H")).await;
    world.pass(seconds(20)).await;
    let why = world.control.nodes.why(&admin(), "gpu-1").await.unwrap();
    assert!(why.summary.contains("it is well again"), "{}", why.summary);
    world.beat("gpu-1").unwrap();
    world.pass(seconds(12)).await;
    assert_eq!(world.node("gpu-1").status(), NodeStatus::Active);
}

#[tokio::test(start_paused = true)]
async fn f14_a_node_that_says_it_once_and_dies_is_taken_out_of_service() {
    let (world, mut fleet) = settled(settings(), 10).await;
    sick(&world, &["n1"]).await;
    fleet.die(&["n1"]);
    fleet.live(&world, 14).await;
    assert_eq!(fleet.words(&world), "n1 UNHEALTHY");
    fleet.live(&world, 2).await;
    assert_eq!(fleet.words(&world), "n1 CORDONED", "although it fetched nothing");
    let decisions: Vec<_> = ledger(&world, "n1")
        .await
        .into_iter()
        .filter_map(|what| {
            let What::Decision { action, reason, .. } = what else { return None };
            Some(format!("{action}: {reason}"))
        })
        .collect();
    let expected =
        ["cordon: fatal-xid: Xid 79", "cordon: the node did not fetch its cordon for 15 s"];
    assert_eq!(decisions, expected);
}

#[tokio::test(start_paused = true)]
async fn f5_a_node_that_recovers_in_its_drain_is_not_drained() {
    let mut draining = settings();
    draining.nodes.defaults.remedy = Remedy::Drain;
    let (world, fleet) = settled(draining, 10).await;
    sick(&world, &["n1"]).await;
    fleet.work(&world, 3).await;
    assert_eq!(fleet.words(&world), "n1 DRAINING");
    well(&world, &["n1"]).await;
    fleet.work(&world, 32).await;
    assert_eq!(fleet.words(&world), "");
    let commands = automatic(&world, "n1");
    let drain = commands.iter().find(|command| command.kind == CommandKind::Drain).unwrap();
    let CommandState::Done { outcome, .. } = &drain.state else { panic!("{drain:?}") };
    assert_eq!(*outcome, Ended::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_cannot_do_what_it_is_told_is_told_again_after_a_minute() {
    let mut draining = settings();
    draining.nodes.defaults.remedy = Remedy::Drain;
    let (world, fleet) = settled(draining, 10).await;
    let drains = |world: &World| {
        let commands = automatic(world, "n1");
        commands.iter().filter(|command| command.kind == CommandKind::Drain).count()
    };
    let commands = &world.control.commands;
    sick(&world, &["n1"]).await;
    // It is cordoned first.
    for _ in 0..3 {
        fleet.live(&world, 1).await;
        for told in commands.fetch(&agent("n1"), "n1", Wire::Argosy).await.unwrap() {
            let failed = told.kind == CommandKind::Drain;
            let outcome = if failed { Ended::Failed } else { Ended::Completed };
            let message = "says the node".to_owned();
            let ack = Ack { outcome: Some(outcome), progress: None, message, result: None };
            commands.acknowledge(&agent("n1"), "n1", told.id, ack).await.unwrap();
        }
    }
    assert_eq!(drains(&world), 1);
    fleet.live(&world, 55).await;
    assert_eq!(drains(&world), 1, "it just said that it cannot");
    fleet.live(&world, 10).await;
    assert_eq!(drains(&world), 2);
}

#[tokio::test(start_paused = true)]
async fn what_an_operator_decided_stays() {
    let (world, fleet) = settled(settings(), 10).await;
    issue(&world, "n1", "CORDON").await.unwrap();
    sick(&world, &["n1"]).await;
    fleet.work(&world, 60).await;
    well(&world, &["n1"]).await;
    fleet.work(&world, 600).await;
    assert_eq!(fleet.words(&world), "n1 CORDONED");
    assert_eq!(automatic(&world, "n1").len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_node_whose_health_cannot_be_told_is_left_alone() {
    let (world, fleet) = settled(unlimited(), 10).await;
    let now = world.now();
    let mut txn = argosy_store::Txn::at(now);
    let before = world.store.read(|view| view.node("n1").unwrap().clone());
    let mut after = (*before.value).clone();
    after.health.state = HealthState::Unknown;
    after.health.reason = argosy_core::health::POLICY_ERROR.to_owned();
    txn.update(Arc::new(after), before.revision);
    world.store.commit(txn).await.unwrap();
    fleet.work(&world, 600).await;
    assert_eq!(issued(&world, CommandKind::Cordon), 0);
}

#[tokio::test(start_paused = true)]
async fn f13_most_of_a_pool_at_once_opens_the_breaker_and_recovery_goes_on() {
    let (world, fleet) = settled(settings(), 20).await;
    // One before, to see it recover.
    sick(&world, &["n19"]).await;
    fleet.work(&world, 400).await;
    assert_eq!(fleet.words(&world), "n19 CORDONED");
    for index in 0..12 {
        sick(&world, &[&format!("n{index}")]).await;
        fleet.work(&world, 1).await;
        // 10 % of twenty, whatever happens.
        assert!(fleet.out_of_service(&world) <= 2);
    }
    let open = breakers(&world);
    let scopes: Vec<String> = open.iter().map(|breaker| breaker.scope.to_string()).collect();
    assert!(scopes.contains(&"pool/acme/h100".to_owned()), "{scopes:?}");
    assert!(open.iter().all(|breaker| breaker.half_open.is_none()));
    fleet.work(&world, 300).await;
    assert!(fleet.out_of_service(&world) <= 2);
    let cordons = issued(&world, CommandKind::Cordon);
    let held = fleet.count(&world, |node| node.held.is_some());
    assert!(10 <= held, "{held} are held, and say why");

    well(&world, &["n19"]).await;
    fleet.work(&world, 35).await;
    assert_eq!(find(&world, "n19").duty, Duty::Active, "recovery is never braked");
    assert_eq!(issued(&world, CommandKind::Cordon), cordons);
    assert!(!audited(&world, "open").await.is_empty());
    let brakes = world.control.safety.brakes(&user()).unwrap();
    assert_eq!(brakes.breakers.len(), open.len());
}

#[tokio::test(start_paused = true)]
async fn a_breaker_lets_one_then_two_then_four_through() {
    let mut loose = unlimited();
    loose.nodes.defaults.breaker.percent = 20.0;
    let (world, fleet) = settled(loose, 40).await;
    sick(&world, &texts(&names(0..20))).await;
    fleet.work(&world, 5).await;
    assert_eq!(issued(&world, CommandKind::Cordon), 0);
    // Fifteen minutes of calm, then steps of five minutes.
    fleet.work(&world, 890).await;
    assert_eq!(issued(&world, CommandKind::Cordon), 0);
    fleet.work(&world, 10).await;
    assert_eq!(issued(&world, CommandKind::Cordon), 1);
    for (after, expected) in [(290, 1), (20, 3), (280, 3), (20, 7), (280, 7), (20, 15)] {
        fleet.work(&world, after).await;
        assert_eq!(issued(&world, CommandKind::Cordon), expected);
    }
    fleet.work(&world, 300).await;
    assert_eq!(issued(&world, CommandKind::Cordon), 20);
    fleet.work(&world, 310).await;
    assert_eq!(breakers(&world), [], "with actions to spare, it is closed");
}

#[tokio::test(start_paused = true)]
async fn a_breaker_goes_on_where_it_was_after_a_restart() {
    let mut loose = unlimited();
    loose.nodes.defaults.breaker.percent = 20.0;
    let (world, mut fleet) = settled(loose.clone(), 40).await;
    sick(&world, &texts(&names(0..20))).await;
    fleet.work(&world, 910).await;
    assert_eq!(issued(&world, CommandKind::Cordon), 1);
    let world = world.restart(loose).await;
    fleet.revive(&world);
    fleet.work(&world, 200).await;
    assert_eq!(issued(&world, CommandKind::Cordon), 1, "its one action was taken");
    fleet.work(&world, 110).await;
    assert_eq!(issued(&world, CommandKind::Cordon), 3);
}

#[tokio::test(start_paused = true)]
async fn f12_a_breaker_closed_after_three_days_has_no_backlog() {
    let mut loose = unlimited();
    loose.nodes.defaults.breaker.percent = 20.0;
    loose.nodes.defaults.breaker.calm = SignedDuration::from_hours(24 * 30);
    let (world, mut fleet) = settled(loose.clone(), 20).await;
    sick(&world, &texts(&names(0..12))).await;
    fleet.live(&world, 60).await;
    assert_eq!(breakers(&world).len(), 1);
    // Eleven are repaired meanwhile.
    well(&world, &texts(&names(1..12))).await;
    fleet.live(&world, 600).await;
    let world = world.restart_after(loose, SignedDuration::from_hours(3 * 24)).await;
    fleet.revive(&world);
    fleet.live(&world, SETTLED).await;
    assert_eq!(issued(&world, CommandKind::Cordon), 0);
    assert_eq!(breakers(&world).len(), 1);
    let closed = world.control.safety.close(&user(), &pool(), "driver rolled back").await.unwrap();
    assert!(closed);
    fleet.work(&world, 5).await;
    assert_eq!(fleet.words(&world), "n0 CORDONED", "only what is so now");
    assert_eq!(issued(&world, CommandKind::Cordon), 1);
    assert_eq!(audited(&world, "close").await[0].reason.as_deref(), Some("driver rolled back"));
    let again = world.control.safety.close(&user(), &pool(), "again").await.unwrap();
    assert!(!again, "it is closed");
    assert!(world.control.safety.brakes(&user()).unwrap().breakers.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_breaker_closed_by_hand_opens_for_what_is_new() {
    let mut loose = unlimited();
    loose.nodes.defaults.breaker.percent = 20.0;
    loose.nodes.defaults.remedy = Remedy::Cordon;
    let (world, fleet) = settled(loose, 20).await;
    sick(&world, &texts(&names(0..6))).await;
    fleet.work(&world, 2).await;
    assert_eq!(issued(&world, CommandKind::Cordon), 0);
    world.control.safety.close(&user(), &pool(), "they are what they are").await.unwrap();
    fleet.work(&world, 2).await;
    assert_eq!(issued(&world, CommandKind::Cordon), 6, "although it was a minute ago");
    sick(&world, &texts(&names(6..12))).await;
    fleet.work(&world, 2).await;
    assert_eq!(issued(&world, CommandKind::Cordon), 6);
    let open = breakers(&world);
    assert!(open.len() == 1 && !open[0].is_closed(), "{open:?}");
}

#[tokio::test(start_paused = true)]
async fn d4_nodes_that_flap_do_not_go_in_and_out_of_service() {
    let (world, fleet) = settled(unlimited(), 30).await;
    let flapping = names(0..9);
    for _ in 0..30 {
        sick(&world, &texts(&flapping)).await;
        fleet.work(&world, 20).await;
        well(&world, &texts(&flapping)).await;
        fleet.work(&world, 20).await;
    }
    assert_eq!(fleet.out_of_service(&world), 9);
    assert_eq!(issued(&world, CommandKind::Cordon), 9, "once each");
    assert_eq!(issued(&world, CommandKind::Uncordon), 0);
}

#[tokio::test(start_paused = true)]
async fn d4_the_hold_doubles_with_each_relapse() {
    let (world, fleet) = settled(unlimited(), 10).await;
    for hold in [30, 60, 120, 240] {
        sick(&world, &["n1"]).await;
        fleet.work(&world, 5).await;
        assert_eq!(fleet.words(&world), "n1 CORDONED");
        well(&world, &["n1"]).await;
        let since = world.now();
        fleet.work(&world, hold - 1).await;
        assert_eq!(fleet.words(&world), "n1 CORDONED", "{hold}");
        let until = find(&world, "n1").flaps.hold_until.unwrap();
        assert_eq!(until.duration_since(since), seconds(hold));
        fleet.work(&world, 2).await;
        assert_eq!(fleet.words(&world), "", "{hold}");
        assert_eq!(find(&world, "n1").flaps.hold_until, None);
    }
}

#[tokio::test(start_paused = true)]
async fn i4_a_thousand_sick_nodes_never_exceed_the_budget() {
    let mut patient = settings();
    // Only the budget holds.
    patient.nodes.defaults.budget.every = SignedDuration::ZERO;
    patient.nodes.defaults.breaker.percent = 100.0;
    patient.nodes.fleet.breaker.percent = 100.0;
    patient.nodes.fleet.zone_breaker.percent = 100.0;
    let (world, fleet) = settled(patient, 1000).await;
    sick(&world, &texts(&names(0..500))).await;
    for _ in 0..20 {
        fleet.live(&world, 1).await;
        let out = |node: &Node| {
            let sent = automatic(&world, node.id.as_str());
            node.in_disruption() || sent.iter().any(|command| !command.state.is_done())
        };
        assert!(fleet.count(&world, out) <= 100);
    }
    fleet.live(&world, 10).await;
    assert_eq!(fleet.out_of_service(&world), 100);
    assert_eq!(world.control.stats.invariants_kept.get(), 0);
    let brakes = world.control.safety.brakes(&user()).unwrap();
    let used: Vec<String> = brakes
        .budgets
        .iter()
        .map(|budget| {
            format!("{} {}/{} of {}", budget.scope, budget.used, budget.allowed, budget.total)
        })
        .collect();
    assert_eq!(used, ["fleet 100/100 of 1000", "pool/acme/h100 100/100 of 1000"]);
}

#[tokio::test(start_paused = true)]
async fn a_thousand_are_cordoned_in_a_second_where_the_settings_allow() {
    let (world, fleet) = settled(unlimited(), 2000).await;
    let bad = names(0..1000);
    world.rig.accepted.store(0, Ordering::SeqCst);
    for some in bad.chunks(100) {
        sick(&world, &texts(some)).await;
    }
    world.pass(SignedDuration::from_secs(1)).await;
    assert_eq!(issued(&world, CommandKind::Cordon), 1000);
    let commits = world.rig.accepted.load(Ordering::SeqCst);
    assert!(commits <= 10 + 30, "{commits} commits: they share");
    assert_eq!(fleet.count(&world, |node| node.held.is_some()), 0);
}

#[tokio::test(start_paused = true)]
async fn a_pause_stops_everything_within_two_seconds_and_over_a_restart() {
    let (world, mut fleet) = settled(unlimited(), 60).await;
    sick(&world, &texts(&names(0..5))).await;
    fleet.work(&world, 2).await;
    assert_eq!(fleet.out_of_service(&world), 5);
    well(&world, &["n0"]).await;
    fleet.work(&world, 25).await;
    // Sent, and not fetched yet.
    sick(&world, &texts(&names(5..10))).await;
    world.pass(SignedDuration::from_millis(200)).await;
    assert_eq!(issued(&world, CommandKind::Cordon), 10);

    world.control.safety.pause(&user(), None, "power work").await.unwrap();
    sick(&world, &texts(&names(10..20))).await;
    world.pass(seconds(2)).await;
    fleet.work(&world, 60).await;
    assert_eq!(fleet.out_of_service(&world), 5, "what was sent was taken back");
    assert_eq!(issued(&world, CommandKind::Cordon), 10);
    assert_eq!(issued(&world, CommandKind::Uncordon), 0, "recovery is an action, too");
    assert_eq!(find(&world, "n12").held.as_ref().unwrap().reason, "paused by ann: power work");

    let world = world.restart(unlimited()).await;
    fleet.revive(&world);
    fleet.work(&world, 400).await;
    assert_eq!(issued(&world, CommandKind::Cordon), 10);
    let brakes = world.control.safety.brakes(&user()).unwrap();
    assert_eq!(brakes.pauses[0].value.by, "ann");

    assert!(world.control.safety.resume(&user(), None).await.unwrap());
    assert!(!world.control.safety.resume(&user(), None).await.unwrap());
    fleet.work(&world, 3).await;
    assert_eq!(fleet.out_of_service(&world), 19, "n1 to n19; n0 is back in service");
    assert_eq!(audited(&world, "pause").await.len(), 1);
    assert_eq!(audited(&world, "resume").await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_pause_of_one_pool_is_for_that_pool() {
    let world = World::with(unlimited()).await;
    let fleet = Fleet::new(&world, 10).await;
    let elsewhere = Node { pool: Some("a100".to_owned()), ..(*find(&world, "n9")).clone() };
    let mut txn = argosy_store::Txn::at(world.now());
    txn.overwrite(Arc::new(elsewhere));
    world.store.commit(txn).await.unwrap();
    fleet.live(&world, SETTLED).await;
    world.control.safety.pause(&user(), Some("h100"), "row 4").await.unwrap();
    sick(&world, &["n1", "n9"]).await;
    fleet.work(&world, 5).await;
    assert_eq!(fleet.words(&world), "n1 UNHEALTHY, n9 CORDONED");
}

#[tokio::test(start_paused = true)]
async fn an_action_that_was_planned_before_a_pause_is_not_taken_after_it() {
    let one = World::with(unlimited()).await;
    let two = one.another(unlimited(), "two").await;
    let fleet = Fleet::new(&one, 10).await;
    fleet.live(&one, SETTLED).await;
    // The plan is made, and its commit is on its way when somebody pauses elsewhere.
    one.rig.freeze_next.store(true, Ordering::SeqCst);
    sick(&one, &["n1"]).await;
    one.pass(SignedDuration::from_millis(500)).await;
    two.control.safety.pause(&user(), None, "stop").await.unwrap();
    one.rig.outcomes.lock().unwrap().clear();
    one.rig.freeze(false);
    fleet.live(&one, 5).await;
    let outcomes = one.rig.outcomes.lock().unwrap().clone();
    let refused =
        |outcome: &Outcome| matches!(outcome, Outcome::Conflict(key) if key.kind == "pause");
    assert!(outcomes.iter().any(refused), "it did try: {outcomes:?}");
    assert_eq!(issued(&one, CommandKind::Cordon), 0);
    assert_eq!(find(&one, "n1").held.as_ref().unwrap().guard, "pause");
}

#[tokio::test(start_paused = true)]
async fn i3_a_node_that_recovers_between_plan_and_commit_is_left_alone() {
    let one = World::with(unlimited()).await;
    let two = one.another(unlimited(), "two").await;
    let fleet = Fleet::new(&one, 10).await;
    fleet.live(&one, SETTLED).await;
    one.rig.freeze_next.store(true, Ordering::SeqCst);
    sick(&one, &["n1", "n2"]).await;
    one.pass(SignedDuration::from_millis(500)).await;
    two.until("it has heard", |two| find(two, "n1").is_bad()).await;
    well(&two, &["n1"]).await;
    one.rig.freeze(false);
    fleet.live(&one, 2).await;
    assert_eq!(automatic(&one, "n1").len(), 0);
    assert_eq!(automatic(&one, "n2").len(), 1, "and the other is not");
}

#[tokio::test(start_paused = true)]
async fn brakes_are_for_those_who_may() {
    let (world, _fleet) = settled(settings(), 10).await;
    let safety = &world.control.safety;
    let viewer = Caller { role: Role::Viewer, ..user() };
    assert!(matches!(safety.pause(&viewer, None, "x").await, Err(Error::Forbidden(_))));
    assert!(matches!(safety.resume(&viewer, None).await, Err(Error::Forbidden(_))));
    assert!(matches!(safety.close(&viewer, &pool(), "x").await, Err(Error::Forbidden(_))));
    assert!(matches!(safety.close(&user(), &Scope::Fleet, "x").await, Err(Error::Forbidden(_))));
    assert!(!safety.close(&admin(), &Scope::Fleet, "x").await.unwrap());
    let node = Caller { role: Role::Node, ..user() };
    assert!(matches!(safety.brakes(&node), Err(Error::Forbidden(_))));

    let complaint = |error: Error| {
        let Error::Invalid(errors) = error else { panic!("{error}") };
        format!("{}: {}", errors[0].field, errors[0].message)
    };
    let bare = safety.pause(&user(), None, " ").await.unwrap_err();
    assert_eq!(complaint(bare), "reason: say why: whoever finds it stopped asks");
    let long = safety.pause(&user(), None, &"x".repeat(2000)).await.unwrap_err();
    assert!(complaint(long).starts_with("reason: reason is 2000 bytes long"));
    let slip = safety.pause(&user(), Some("h10"), "x").await.unwrap_err();
    assert_eq!(complaint(slip), "pool: there is no pool 'h10'; did you mean 'h100'?");

    // Another tenant sees nothing of it, and its pauses are its own.
    safety.pause(&user(), None, "mine").await.unwrap();
    let theirs = safety.brakes(&of_tenant("umbrella")).unwrap();
    assert!(theirs.pauses.is_empty() && theirs.budgets.is_empty());
    assert!(!safety.resume(&of_tenant("umbrella"), None).await.unwrap());
    assert_eq!(safety.brakes(&user()).unwrap().pauses.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn only_one_process_acts() {
    let one = World::with(unlimited()).await;
    let two = one.another(unlimited(), "two").await;
    let mut fleet = Fleet::new(&one, 40).await;
    fleet.live(&one, SETTLED).await;
    turn(&one, &texts(&names(0..20)), HealthState::Unhealthy).await;
    fleet.live(&one, 20).await;
    assert_eq!(issued(&one, CommandKind::Cordon), 20, "each once");
    assert_eq!(two.control.stats.remedies.get(), 0);
    // The one that acts stops; the other begins, and nothing is done twice.
    one.rig.freeze(true);
    fleet.revive(&two);
    fleet.live(&two, 60).await;
    turn(&two, &texts(&names(20..30)), HealthState::Unhealthy).await;
    fleet.live(&two, 30).await;
    assert_eq!(issued(&two, CommandKind::Cordon), 30);
    one.rig.freeze(false);
    fleet.live(&two, 30).await;
    assert_eq!(issued(&two, CommandKind::Cordon), 30);
}
