//! What a reviewer did to nodes' health, on the real services.

use super::world::{agent, events, registration, results, seconds, xid};
use crate::fleet::{Fleet, SETTLED, find, settings, sick};
use crate::world::{World, admin};
use argosy_control::node::Heartbeat;
use argosy_control::pulse::Via;
use argosy_core::command::CommandKind;
use argosy_core::health::{Condition, Event, EventType, HealthReport, Metric};
use argosy_core::node::settings::Remedy;
use argosy_core::node::{Duty, Flag, Liveness};
use std::collections::BTreeMap;

/// A report of an agent that goes by the checks that it was told.
fn told(text: &str) -> HealthReport {
    HealthReport { told: Some(Vec::new()), ..results(text) }
}

const ALL_WELL: &str = "boot=H nvml=H xid=H";

/// A world that acts by itself and has listened for long.
async fn acting() -> World {
    let mut settings = settings();
    settings.nodes.defaults.remedy = Remedy::Cordon;
    settings.nodes.defaults.warm_up = seconds(0);
    let world = World::with(settings).await;
    world.pass(seconds(400)).await;
    world
}

impl World {
    /// Time passes, and a node beats and fetches its commands.
    async fn lives(&self, id: &str, time: i64) {
        for _ in 0..time.max(5) / 5 {
            self.beat(id).unwrap();
            let wire = argosy_control::command::Wire::Navarch;
            self.control.commands.fetch(&agent(id), id, wire).await.unwrap();
            self.pass(seconds(5)).await;
        }
        self.beat(id).unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn r2_n13_a_node_that_was_cordoned_for_its_health_stays_out_until_it_has_shown_that_it_is_well()
 {
    let world = acting().await;
    world.enrol("g1").await;
    assert_eq!(world.state("g1"), "ACTIVE/UNKNOWN/NoReport", "in service at once (CUJ-1)");
    world.says("g1", told(ALL_WELL)).await;
    assert_eq!(world.state("g1"), "ACTIVE/HEALTHY/NoFindings");
    world.says("g1", events(vec![xid(79, 3)])).await;
    world.lives("g1", 20).await;
    assert_eq!(world.state("g1"), "CORDONED/UNHEALTHY/xid-fatal");
    // It boots again, with a GPU less, and only beats.
    let mut said = registration("g1");
    said.machine.boot_id = "boot-2".to_owned();
    let mut fewer = said.clone();
    fewer.gpus.remove(3);
    world.try_enrol(fewer).await.unwrap();
    assert_eq!(world.state("g1"), "CORDONED/UNHEALTHY/GpusMissing");
    world.try_enrol(said).await.unwrap();
    world.lives("g1", 120).await;
    assert_eq!(world.state("g1"), "CORDONED/UNKNOWN/NoReport");
    world.says("g1", told("boot=H nvml=H")).await;
    world.lives("g1", 40).await;
    assert_eq!(world.state("g1"), "CORDONED/UNKNOWN/NoReport", "nobody heard of xid");
    world.says("g1", told(ALL_WELL)).await;
    world.lives("g1", 10).await;
    assert_eq!(world.state("g1"), "CORDONED/HEALTHY/NoFindings", "not for 30 s");
    world.lives("g1", 30).await;
    assert_eq!(world.state("g1"), "ACTIVE/HEALTHY/NoFindings");
}

#[tokio::test(start_paused = true)]
async fn r2_n14_the_fatal_event_at_the_end_of_a_flood_is_judged() {
    let world = World::attentive().await;
    world.enrol("g1").await;
    let mut flood: Vec<Event> = Vec::new();
    for turn in 0..544 {
        let kind = [EventType::Nvlink, EventType::Pcie, EventType::Power, EventType::Unknown];
        let event_type = kind[turn % 4];
        let event = xid(0, i32::try_from(turn / 4 % 8).unwrap());
        flood.push(Event { event_type, metrics: BTreeMap::new(), ..event });
    }
    flood.push(xid(79, 7));
    world.says("g1", events(flood)).await;
    assert_eq!(world.state("g1"), "UNHEALTHY/UNHEALTHY/xid-fatal");
}

#[tokio::test(start_paused = true)]
async fn r2_n17_a_gpu_that_stays_hot_stays_unhealthy() {
    let world = acting().await;
    world.enrol("g1").await;
    world.says("g1", told(ALL_WELL)).await;
    let hot = Event {
        event_type: EventType::Thermal,
        gpu_uuid: "GPU-g1-3".to_owned(),
        metrics: BTreeMap::from([("temperature".to_owned(), Metric::Int(96))]),
        condition: "temperature-hot".to_owned(),
        ..xid(0, 3)
    };
    world.says("g1", events(vec![hot])).await;
    let stands = |holds| {
        let (gpu, name) = ("GPU-g1-3".to_owned(), "temperature-hot".to_owned());
        HealthReport { conditions: vec![Condition { gpu, name, holds }], ..told(ALL_WELL) }
    };
    for _ in 0..60 {
        world.lives("g1", 60).await;
        world.says("g1", stands(true)).await;
    }
    assert_eq!(world.state("g1"), "CORDONED/UNHEALTHY/too-hot", "an hour later, with `lasts` 30m");
    world.says("g1", stands(false)).await;
    world.lives("g1", 40).await;
    assert_eq!(world.state("g1"), "ACTIVE/HEALTHY/NoFindings");
}

#[tokio::test(start_paused = true)]
async fn r2_n19_an_agent_that_beats_and_does_not_report_is_unknown_and_then_as_good_as_silent() {
    let world = acting().await;
    world.enrol("g1").await;
    world.enrol("g2").await;
    for id in ["g1", "g2"] {
        world.says(id, told(ALL_WELL)).await;
    }
    world.beat("g2").unwrap();
    world.lives("g1", 190).await;
    assert_eq!(
        world.state("g1"),
        "ACTIVE/HEALTHY/NoFindings",
        "three rounds of a minute, and a bit"
    );
    world.lives("g1", 20).await;
    assert_eq!(world.state("g1"), "ACTIVE/UNKNOWN/ReportsMissing");
    // What says nothing is no report.
    world.says("g1", told("boot=? nvml=? xid=?")).await;
    world.says("g1", told("")).await;
    assert_eq!(world.state("g1"), "ACTIVE/UNKNOWN/ReportsMissing");
    world.lives("g1", 320).await;
    assert_eq!(world.state("g1"), "CORDONED/UNKNOWN/ReportsMissing");
    let Duty::Cordoned(hold) = &world.node("g1").duty else { panic!("it is cordoned") };
    assert!(hold.reason.starts_with("no complete health report for 30"), "{}", hold.reason);
    world.says("g1", told(ALL_WELL)).await;
    world.lives("g1", 40).await;
    assert_eq!(world.state("g1"), "ACTIVE/HEALTHY/NoFindings");
}

#[tokio::test(start_paused = true)]
async fn r2_n15_most_of_a_fleet_that_dies_is_noticed_while_one_node_is_heard() {
    let world = World::with(settings()).await;
    let mut fleet = Fleet::new(&world, 4).await;
    fleet.live(&world, SETTLED).await;
    fleet.die(&["n1", "n2", "n3"]);
    fleet.live(&world, 60).await;
    assert_eq!(fleet.lost(&world), 3);
    assert_eq!(world.control.safety.brakes(&admin()).unwrap().isolated, None);
}

#[tokio::test(start_paused = true)]
async fn r2_n15_an_isolation_shows_who_is_suspect_and_ends() {
    let world = World::with(settings()).await;
    let mut fleet = Fleet::new(&world, 4).await;
    fleet.live(&world, SETTLED).await;
    fleet.die(&["n0", "n1", "n2", "n3"]);
    fleet.live(&world, 900).await;
    assert_eq!(fleet.lost(&world), 0);
    assert!(world.control.safety.brakes(&admin()).unwrap().isolated.is_some());
    assert_eq!(fleet.count(&world, |node| node.liveness == Liveness::Suspect), 4);
    fleet.live(&world, 400).await;
    assert_eq!(fleet.lost(&world), 4, "it is believed after four times the startup grace period");
    assert_eq!(world.control.safety.brakes(&admin()).unwrap().isolated, None);
}

#[tokio::test(start_paused = true)]
async fn r2_n16_a_dead_node_holds_no_budget() {
    let world = World::with(settings()).await;
    let mut fleet = Fleet::new(&world, 10).await;
    fleet.live(&world, SETTLED).await;
    fleet.die(&["n0"]);
    fleet.live(&world, 360).await;
    assert_eq!(fleet.words(&world), "n0 CORDONED");
    sick(&world, &["n1"]).await;
    fleet.work(&world, 15).await;
    assert_eq!(fleet.words(&world), "n0 CORDONED, n1 CORDONED");
}

#[tokio::test(start_paused = true)]
async fn r2_n16_a_sick_node_that_a_budget_holds_for_long_is_an_alarm_that_names_the_holder() {
    let world = World::with(settings()).await;
    let fleet = Fleet::new(&world, 10).await;
    fleet.live(&world, SETTLED).await;
    sick(&world, &["n4"]).await;
    fleet.work(&world, 15).await;
    sick(&world, &["n7"]).await;
    fleet.work(&world, 595).await;
    assert_eq!(fleet.words(&world), "n4 CORDONED, n7 UNHEALTHY");
    assert!(!find(&world, "n7").flags.contains_key(&Flag::HeldTooLong));
    fleet.work(&world, 15).await;
    let note = find(&world, "n7").flags.get(&Flag::HeldTooLong).cloned().unwrap();
    assert!(note.message.contains("out of service by our own doing (n4)"), "{}", note.message);
    // A person makes room, and the alarm ends.
    crate::fleet::well(&world, &["n4"]).await;
    fleet.work(&world, 60).await;
    assert!(find(&world, "n7").flags.is_empty());
}

#[tokio::test(start_paused = true)]
async fn r2_n40_gaps_that_nothing_was_done_about_are_no_relapses() {
    let world = World::with(settings()).await;
    let mut fleet = Fleet::new(&world, 10).await;
    fleet.live(&world, SETTLED).await;
    for _ in 0..6 {
        fleet.die(&["n3"]);
        fleet.live(&world, 50).await;
        assert_eq!(find(&world, "n3").liveness, Liveness::Unreachable);
        fleet.revive(&world);
        fleet.live(&world, 20).await;
    }
    assert_eq!(find(&world, "n3").flaps.count, 0);
    sick(&world, &["n3"]).await;
    fleet.work(&world, 5).await;
    crate::fleet::well(&world, &["n3"]).await;
    fleet.work(&world, 35).await;
    assert_eq!(fleet.words(&world), "", "after 30 s, as for the first time");
    // What was put back and fails again has relapsed.
    sick(&world, &["n3"]).await;
    fleet.work(&world, 1).await;
    assert_eq!(find(&world, "n3").flaps.count, 1);
}

#[tokio::test(start_paused = true)]
async fn r2_n18_a_node_whose_rule_fails_is_held_and_shown_and_silence_is_judged_by_itself() {
    let world = acting().await;
    let hot = serde_json::from_value(serde_json::json!({ "rules": [
        { "name": "hot", "condition": "event.metrics.temperature > 85", "result": "unhealthy" },
    ]}));
    let policies = &world.control.policies;
    policies.put(&admin(), "default", hot.unwrap(), None, false).await.unwrap();
    for id in ["g1", "g2"] {
        world.enrol(id).await;
        world.says(id, told(ALL_WELL)).await;
    }
    // What the catalogue calls fatal is fatal, though the rule fails.
    world.says("g1", events(vec![xid(79, 3)])).await;
    world.lives("g1", 10).await;
    assert_eq!(world.state("g1"), "CORDONED/UNHEALTHY/hot");
    // What nobody calls unhealthy leaves it unknown, in service, and held.
    world.says("g2", events(vec![xid(31, 3)])).await;
    world.lives("g2", 10).await;
    assert_eq!(world.state("g2"), "ACTIVE/UNKNOWN/PolicyError");
    assert_eq!(world.node("g2").held.as_ref().unwrap().guard, "policy");
    // Then it dies.
    for _ in 0..90 {
        world.beat("g1").unwrap();
        world.pass(seconds(5)).await;
    }
    assert_eq!(world.state("g2"), "CORDONED/UNKNOWN/PolicyError");
}

#[tokio::test(start_paused = true)]
async fn r2_n29_a_comparison_that_no_count_reaches_is_refused() {
    let world = World::attentive().await;
    let spec = |most: i64| {
        let condition = format!("event.event_type == 'xid' && seen_on_gpu('24h') >= {most}");
        serde_json::from_value(serde_json::json!({ "rules": [
            { "name": "again", "condition": condition, "result": "unhealthy" },
        ]}))
        .unwrap()
    };
    let policies = &world.control.policies;
    let refused = policies.put(&admin(), "default", spec(40), None, true).await.unwrap_err();
    let argosy_control::Error::Invalid(errors) = refused else { panic!("{refused}") };
    assert_eq!(errors[0].field, "rules[0].condition");
    assert!(errors[0].message.contains("compared with 40"), "{}", errors[0].message);
    policies.put(&admin(), "default", spec(32), None, true).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn r2_n23_r2_n31_the_driver_s_word_counts_and_ends_in_any_text() {
    let world = acting().await;
    world.enrol("g1").await;
    world.says("g1", told(ALL_WELL)).await;
    let change = |to: &str| Event {
        message: format!("GPU recovery action changed from 0x0 (None) to {to}"),
        raw: String::new(),
        ..xid(154, 3)
    };
    world.says("g1", events(vec![change("0x2 (Node Reboot Required)")])).await;
    world.lives("g1", 10).await;
    assert_eq!(world.state("g1"), "CORDONED/UNHEALTHY/driver-asks-for-recovery");
    world.says("g1", events(vec![change("0x0 (None)")])).await;
    world.lives("g1", 40).await;
    assert_eq!(world.state("g1"), "ACTIVE/HEALTHY/NoFindings");
    // One that cannot be read still says that something is wanted.
    let unread = Event { message: "recovery".to_owned(), raw: String::new(), ..xid(154, 3) };
    world.says("g1", events(vec![unread])).await;
    assert_eq!(world.state("g1"), "ACTIVE/DEGRADED/driver-asks-for-attention");
}

#[tokio::test(start_paused = true)]
async fn r2_n30_what_was_told_late_is_of_the_boot_it_happened_in() {
    let world = acting().await;
    let mut said = registration("g1");
    world.enrol("g1").await;
    said.machine.boot_id = "boot-2".to_owned();
    world.try_enrol(said).await.unwrap();
    world.says("g1", told(ALL_WELL)).await;
    let spooled = Event { boot_id: "boot-1".to_owned(), ..xid(79, 2) };
    world.says("g1", events(vec![spooled])).await;
    world.lives("g1", 20).await;
    assert_eq!(world.state("g1"), "ACTIVE/HEALTHY/NoFindings");
    let commands = |view: &argosy_store::view::View| {
        view.commands_of("g1").filter(|command| command.value.kind == CommandKind::Cordon).count()
    };
    assert_eq!(world.store.read(commands), 0);
    let beat = Heartbeat::default();
    world.control.nodes.heartbeat(&agent("g1"), "g1", Via::Call, beat).unwrap();
}
