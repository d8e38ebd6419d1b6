//! Nodes that are lost or sick: replaced within budgets, cured where that helps, and left to people where
//! nothing does.

use super::{WARMED_UP, minutes, seconds, settled};
use crate::node::world::{events, xid};
use crate::world::{World, admin, pool, user};
use crate::yard::{SICK, WELL};
use argosy_control::stats::MachineAlarm;
use argosy_core::breaker::Scope;
use argosy_core::health::Event;
use argosy_core::instance::{Cure, Reason};
use argosy_core::node::{Liveness, NodeId, NodeStatus};
use jiff::SignedDuration;
use serde_json::{Value, json};

/// How many nodes are out of service by our own doing.
fn disrupted(world: &World) -> usize {
    world.store.read(|view| view.nodes().filter(|node| node.value.in_disruption()).count())
}

#[tokio::test(start_paused = true)]
async fn d1_a_node_without_power_is_replaced_and_its_machine_confirmed_gone() {
    let world = settled(3, json!({})).await;
    let dead = world.members()[0].clone();
    let since = world.now();
    world.unplug(&dead);
    let lost = |world: &World| world.node(&dead).liveness == Liveness::Unreachable;
    world.soon("it is unreachable", lost).await;
    // Three of the intervals at which it calls, and a bit.
    assert!(world.now().duration_since(since) <= seconds(120), "{}", world.now());
    let lost_at = world.now();
    world.soon("another is bought", |world| world.cloud().asked_for("create") == 4).await;
    let waited = world.now().duration_since(lost_at);
    assert!((seconds(300)..=seconds(330)).contains(&waited), "{waited}");
    world.soon("it is gone", |world| world.instance(&dead).state.is_over()).await;
    assert!(!world.cloud().living().contains(&dead));
    assert_eq!(world.status(&dead), Some(NodeStatus::Terminated));
    world.soon("the pool is ready", World::is_ready).await;
    world.pass(minutes(30)).await;
    assert_eq!((world.running(), world.cloud().asked_for("create")), (3, 4));
    assert_eq!(world.cloud().asked_for("terminate"), 1);
    world.assert_accounted();
}

#[tokio::test(start_paused = true)]
async fn d1_a_node_that_comes_back_in_time_is_left_alone() {
    let world = settled(3, json!({})).await;
    let away = world.members()[0].clone();
    world.unplug(&away);
    let lost = |world: &World| world.node(&away).liveness == Liveness::Unreachable;
    world.soon("it is unreachable", lost).await;
    world.pass(minutes(4)).await;
    world.cloud().made(&away, |made| made.on = true);
    world.soon("it is back", |world| !lost(world)).await;
    world.pass(minutes(30)).await;
    assert_eq!(world.cloud().asked_for("create"), 3);
    assert_eq!(world.words(), "ACTIVE ACTIVE ACTIVE");
}

#[tokio::test(start_paused = true)]
async fn a_machine_whose_node_was_forgotten_is_replaced_when_its_time_is_over() {
    let world = settled(2, json!({})).await;
    let dead = world.members()[0].clone();
    world.unplug(&dead);
    let node = NodeId::parse(&dead).unwrap();
    world.control.nodes.forget(&admin(), &node, true, None).await.unwrap();
    let patient = |world: &World| world.cloud().asked_for("create") == 2;
    world.keeps("it may register again", minutes(9), patient).await;
    assert!(world.instance(&dead).sight.nodeless_since.is_some());
    world.soon("another is bought", |world| world.cloud().asked_for("create") == 3).await;
    world.soon("it is gone", |world| world.instance(&dead).state.is_over()).await;
    world.soon("the pool is ready", World::is_ready).await;
    assert_eq!(world.control.stats.machine_alarms.of(MachineAlarm::Nodeless), 1);
    world.assert_accounted();
}

#[tokio::test(start_paused = true)]
async fn d3_a_lost_zone_is_replaced_slowly_and_elsewhere() {
    let zones = json!({"zones": ["us-east1-b", "us-east1-c", "us-east1-d"]});
    let world = settled(6, zones).await;
    let lost: Vec<String> = {
        let mut there = world.current();
        there.retain(|record| record.order.zone == "us-east1-b");
        there.iter().map(|record| record.id.to_string()).collect()
    };
    assert_eq!(lost.len(), 2, "spread evenly");
    lost.iter().for_each(|name| world.unplug(name));
    world.cloud().lie(|lies| lies.empty_zone = Some("us-east1-b"));
    let slowly = |world: &World| {
        let extra = world.cloud().living().len();
        disrupted(world) <= 1 && extra <= 7
    };
    let replaced = |world: &World| {
        lost.iter().all(|name| world.instance(name).state.is_over()) && world.is_ready()
    };
    for _ in 0..7200 {
        assert!(slowly(&world), "{} | {}", world.words(), world.said());
        if replaced(&world) {
            break;
        }
        world.pass(seconds(1)).await;
    }
    assert!(replaced(&world), "{} | {}", world.states(), world.said());
    assert_eq!(world.running(), 6);
    let zones: Vec<String> = world.current().iter().map(|it| it.order.zone.clone()).collect();
    assert!(!zones.contains(&"us-east1-b".to_owned()), "{zones:?}");
    // Once the zone has one lost node left, that is no sign of a lost zone: it is tried again, once.
    assert!(world.cloud().asked_for("create") <= 9, "{}", world.cloud().asked_for("create"));
    assert!(lost.iter().all(|name| !world.cloud().living().contains(name)));
}

#[tokio::test(start_paused = true)]
async fn d6_a_new_machine_with_a_dead_nodes_address_does_not_revive_it() {
    let world = settled(3, json!({})).await;
    let dead = world.members()[0].clone();
    let ip = "10.0.0.5";
    world.cloud().made(&dead, |made| {
        (made.machine.internal_ip, made.boots) = (ip.to_owned(), made.boots + 1);
    });
    world.soon("it has the address", |w| w.node(&dead).machine.internal_ip == ip).await;
    world.unplug(&dead);
    world.until("another is bought", |world| world.cloud().living().len() == 4).await;
    let new = world.current().into_iter().find(|record| record.replaces.is_some()).unwrap();
    world.cloud().made(new.id.as_str(), |made| {
        (made.machine.internal_ip, made.boots) = (ip.to_owned(), made.boots + 1);
    });
    let new = new.id.to_string();
    let has_it = |w: &World| w.try_node(&new).is_some_and(|node| node.machine.internal_ip == ip);
    world.soon("the new one has the address", has_it).await;
    world.soon("the old one is gone", |world| world.instance(&dead).state.is_over()).await;
    world.soon("the pool is ready", World::is_ready).await;
    let old = world.node(&dead);
    assert_eq!((old.status(), old.liveness), (NodeStatus::Terminated, Liveness::Unreachable));
    assert_eq!(world.status(&new), Some(NodeStatus::Active));
    assert_eq!(world.cloud().asked_for("create"), 4);
}

#[tokio::test(start_paused = true)]
async fn f13_when_most_of_a_pool_turns_bad_at_once_hardly_anything_is_done() {
    let world = settled(10, json!({})).await;
    world.pass(WARMED_UP).await;
    let members = world.members();
    for name in &members[..6] {
        world.turn(name, SICK);
        world.pass(SignedDuration::from_millis(1500)).await;
    }
    let open = |world: &World| {
        world.store.read(|view| {
            view.breakers().any(|breaker| {
                matches!(breaker.value.scope, Scope::Pool { .. }) && !breaker.value.is_closed()
            })
        })
    };
    assert!(open(&world), "{}", world.words());
    let terminated = world.cloud().asked_for("terminate");
    let held = |world: &World| {
        disrupted(world) <= 1
            && world.cloud().asked_for("terminate") == terminated
            && world.cloud().living().len() <= 11
    };
    world.keeps("at most the budget is acted on", minutes(13), held).await;
    assert!(world.cloud().asked_for("terminate") <= 1);
    assert!(open(&world));
    // Recovery is never braked.
    members[..6].iter().for_each(|name| world.cloud().made(name, |made| made.health = WELL));
    // All but the first, which was replaced while it was the only one.
    let left = world.members();
    assert!(9 <= members.iter().filter(|name| left.contains(name)).count());
    let well = |world: &World| left.iter().all(|n| world.status(n) == Some(NodeStatus::Active));
    world.soon("all are in service", well).await;
    assert_eq!(world.cloud().asked_for("terminate"), terminated);
    world.soon("the pool is ready", |w| w.is_ready() && w.cloud().living().len() == 10).await;
    world.assert_accounted();
}

#[tokio::test(start_paused = true)]
async fn f13_when_the_breaker_closes_the_present_is_judged_anew() {
    let world = settled(10, json!({})).await;
    world.pass(WARMED_UP).await;
    let members = world.members();
    members[..6].iter().for_each(|name| world.turn(name, SICK));
    world.pass(minutes(10)).await;
    // Five of them were a driver's fault; one is really broken.
    members[1..6].iter().for_each(|name| world.cloud().made(name, |made| made.health = WELL));
    let gone = |world: &World| world.instance(&members[0]).state.is_over();
    world.soon("that one is replaced", |world| gone(world) && world.is_ready()).await;
    world.soon("nothing is left", |world| world.cloud().living().len() == 10).await;
    assert_eq!(world.cloud().asked_for("terminate"), 1, "and no other");
}

#[tokio::test(start_paused = true)]
async fn f14_a_node_that_says_it_once_and_dies_is_replaced() {
    let world = settled(3, json!({})).await;
    let dead = world.members()[0].clone();
    world.says(&dead, crate::node::world::results(SICK)).await;
    world.unplug(&dead);
    world.soon("it is gone", |world| world.instance(&dead).state.is_over()).await;
    world.soon("the pool is ready", World::is_ready).await;
    assert_eq!((world.running(), world.cloud().asked_for("create")), (3, 4));
}

/// A pool in which everything is tried before a node is replaced.
fn ladder() -> Value {
    json!({"cures": ["diagnose", "reboot", "replace"]})
}

#[tokio::test(start_paused = true)]
async fn f15_a_reboot_that_helps_is_all_that_is_done() {
    let world = settled(3, ladder()).await;
    let sick = world.members()[0].clone();
    world.says(&sick, events(vec![xid(79, 2)])).await;
    world.soon("it boots again", |world| world.cloud().asked_for("reboot") == 1).await;
    world.soon("it is back", |w| w.status(&sick) == Some(NodeStatus::Active)).await;
    world.pass(minutes(20)).await;
    assert_eq!((world.cloud().asked_for("reboot"), world.cloud().asked_for("create")), (1, 3));
    let tried = world.instance(&sick).tried.clone();
    let tried: Vec<_> = tried.iter().map(|it| (it.cure, it.outcome.as_str())).collect();
    assert_eq!(tried, [(Cure::Reboot, "it came back well")]);
    assert!(world.is_ready());

    // So soon after it is the same illness, and what did not help for long is not tried again.
    world.says(&sick, events(vec![xid(79, 2)])).await;
    world.soon("it is replaced", |world| world.instance(&sick).state.is_over()).await;
    assert_eq!((world.cloud().asked_for("reboot"), world.cloud().asked_for("create")), (1, 4));
}

#[tokio::test(start_paused = true)]
async fn f15_a_node_that_takes_its_time_to_be_cordoned_is_cured_when_it_is() {
    let world = settled(3, json!({"cures": ["reboot", "replace"]})).await;
    world.cloud().each(|made| made.cordons_in = seconds(5));
    let (sick, began) = (world.members()[0].clone(), world.now());
    // The pool is looked at while the node has the command and is not done with it.
    world.says(&sick, events(vec![xid(79, 2)])).await;
    world.soon("it boots again", |world| world.cloud().asked_for("reboot") == 1).await;
    let waited = world.now().duration_since(began);
    assert!(waited < minutes(5), "it waited for {waited:#}");
}

#[tokio::test(start_paused = true)]
async fn f15_where_a_reboot_does_not_help_the_node_is_replaced_and_its_gpu_remembered() {
    let world = settled(3, ladder()).await;
    let sick = world.members()[0].clone();
    world.cloud().lie(|lies| lies.reboot_in_vain = true);
    world.cloud().made(&sick, |made| made.health = "boot=H nvml=H xid=H gpu=U");
    world.says(&sick, events(vec![xid(79, 2)])).await;
    world.soon("it boots again", |world| world.cloud().asked_for("reboot") == 1).await;
    let rebooted = world.now();
    world.pass(seconds(30)).await;
    world.says(&sick, events(vec![xid(79, 2)])).await;
    world.soon("another is bought", |world| world.cloud().asked_for("create") == 4).await;
    let waited = world.now().duration_since(rebooted);
    assert!((minutes(1)..=minutes(16)).contains(&waited), "it had its time: {waited}");
    let tried = world.instance(&sick).tried.clone();
    let tried: Vec<_> = tried.iter().map(|it| (it.cure, it.outcome.as_str())).collect();
    assert_eq!(tried, [(Cure::Reboot, "it came back and is not well")]);
    world.soon("it is gone", |world| world.instance(&sick).state.is_over()).await;
    world.soon("the pool is ready", World::is_ready).await;
    assert_eq!(world.cloud().asked_for("reboot"), 1);
}

#[tokio::test(start_paused = true)]
async fn f15_a_test_that_passes_puts_a_node_back_and_one_that_fails_does_not() {
    for passes in [true, false] {
        let world = settled(3, ladder()).await;
        let sick = world.members()[0].clone();
        world.cloud().made(&sick, |made| made.passes = passes);
        // No reboot mends a link, and a test tells.
        let line = "NVRM: Xid (PCI:0000:02:00): 150, MSE_WATCHDOG Fatal XC0 i0 Link 08 (0x0 0x0)";
        let broken_link = Event { raw: line.to_owned(), ..xid(150, 2) };
        world.says(&sick, events(vec![broken_link])).await;
        let tested = |world: &World| {
            world.instance(&sick).tried.first().is_some_and(|it| !it.outcome.is_empty())
        };
        world.soon("it is tested", tested).await;
        let tried = world.instance(&sick).tried[0].clone();
        let said = if passes { "the test passed" } else { "the test failed" };
        assert_eq!((tried.cure, tried.outcome.as_str()), (Cure::Diagnose, said));
        if passes {
            world.soon("it is back", |w| w.status(&sick) == Some(NodeStatus::Active)).await;
        } else {
            world.soon("it is replaced", |w| w.instance(&sick).state.is_over()).await;
        }
        world.pass(minutes(10)).await;
        assert_eq!(world.cloud().asked_for("create"), if passes { 3 } else { 4 });
        assert_eq!(world.cloud().asked_for("reboot"), 0);
        assert!(world.is_ready());
    }
}

#[tokio::test(start_paused = true)]
async fn f15_when_replacements_come_to_nothing_it_is_left_to_people() {
    let world = settled(3, json!({})).await;
    let sick = world.members()[0].clone();
    world.turn(&sick, SICK);
    world.cloud().lie(|lies| lies.no_boot = true);
    world.soon("three came to nothing", |w| 3 <= w.cloud().asked_for("terminate")).await;
    world.keeps("it is kept", minutes(20), |w| w.cloud().living().contains(&sick)).await;
    assert!(world.cloud().asked_for("create") <= 3 + 4, "{}", world.said());
    assert_eq!(world.status(&sick), Some(NodeStatus::Cordoned));
    assert!(!world.is_ready());
    let said = world.said();
    assert!(said.starts_with("NeedsHuman") && said.contains("did no work"), "{said}");
    world.cloud().lie(|lies| lies.no_boot = false);
    // A label says nothing of the machines (M12); a person does.
    world.patch(&user(), pool("a", "p"), json!({"nodeLabels": {"mended": "yes"}})).await.unwrap();
    world.keeps("it is kept", minutes(10), |w| w.cloud().living().contains(&sick)).await;
    world.resume().await;
    world.soon("it is replaced", |w| w.instance(&sick).state.is_over() && w.is_ready()).await;
    let replaced = world.gone_because(|reason| matches!(reason, Reason::Replaced { .. }));
    assert_eq!(replaced.len(), 1);
    world.soon("nothing is left", |world| world.cloud().living().len() == 3).await;
}
