//! Events, and what policies make of them.

use super::world::{agent, events, quiet, registration, results, seconds, word, xid};
use crate::world::{World, admin};
use argosy_control::node::Heartbeat;
use argosy_control::pulse::Via;
use argosy_core::health::{Event, HealthReport, Severity};
use argosy_core::ledger::What;
use argosy_core::node::{Flag, NodeStatus};
use argosy_core::policy::{PolicySpec, Rule};
use futures_util::future::join_all;

fn rule(name: &str, condition: &str, result: Severity, lasts: Option<&str>) -> Rule {
    Rule {
        name: name.to_owned(),
        description: String::new(),
        priority: 0,
        condition: condition.to_owned(),
        result,
        lasts: lasts.map(str::to_owned),
    }
}

async fn policy(world: &World, rules: Vec<Rule>) {
    let spec = PolicySpec { rules, ..PolicySpec::default() };
    world.control.policies.put(&admin(), "default", spec, None, false).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn cuj_3_an_event_that_condemns_hardware_does_and_one_of_a_program_does_not() {
    let world = World::with(quiet()).await;
    world.enrol("gpu-1").await;
    world.says("gpu-1", results("boot=H")).await;
    world.pass(seconds(1)).await;
    for code in [13, 31, 43, 45] {
        let answer = world.says("gpu-1", events(vec![xid(code, 1)])).await;
        assert_eq!(answer.status, NodeStatus::Active, "{code}");
    }
    world.pass(seconds(1)).await;
    let answer = world.says("gpu-1", events(vec![xid(79, 3)])).await;
    assert_eq!(answer.status, NodeStatus::Unhealthy);
    assert_eq!(world.state("gpu-1"), "UNHEALTHY/UNHEALTHY/xid-fatal");
    // A clean report does not wash it away.
    world.pass(seconds(60)).await;
    world.says("gpu-1", results("boot=H nvml=H xid=H")).await;
    assert_eq!(world.state("gpu-1"), "UNHEALTHY/UNHEALTHY/xid-fatal");
    let why = world.control.nodes.why(&admin(), "gpu-1").await.unwrap();
    let kinds: Vec<_> = why.steps.iter().map(|step| step.kind.as_str()).collect();
    assert_eq!(kinds[..5], ["event", "verdict", "finding", "health", "status"]);
    assert!(why.steps[0].evidence[0].starts_with("NVRM: Xid"), "{:?}", why.steps[0]);
    assert!(why.steps[1].message.contains("policy default version 0"), "{:?}", why.steps[1]);
    // A reboot does.
    let mut said = registration("gpu-1");
    said.machine.boot_id = "boot-2".to_owned();
    world.try_enrol(said).await.unwrap();
    assert_eq!(
        world.state("gpu-1"),
        "ACTIVE/UNKNOWN/NoReport",
        "nothing is shown of this boot yet"
    );
    assert_eq!(world.control.stats.health_events.get(), 5);
}

#[tokio::test(start_paused = true)]
async fn a_finding_ends_by_itself_when_its_rule_says_so() {
    let world = World::with(quiet()).await;
    let brief = rule("brief", "event.event_type == 'xid'", Severity::Unhealthy, Some("5m"));
    policy(&world, vec![brief]).await;
    world.enrol("gpu-1").await;
    world.says("gpu-1", results("boot=H")).await;
    let beat_for = async |turns: usize| {
        for _ in 0..turns {
            world.pass(seconds(10)).await;
            world.beat("gpu-1").unwrap();
            world.says("gpu-1", results("boot=H")).await;
        }
    };
    world.says("gpu-1", events(vec![xid(79, 3)])).await;
    beat_for(20).await;
    world.says("gpu-1", events(vec![xid(79, 3)])).await;
    beat_for(29).await;
    assert_eq!(world.state("gpu-1"), "UNHEALTHY/UNHEALTHY/brief");
    beat_for(3).await;
    assert_eq!(world.state("gpu-1"), "ACTIVE/HEALTHY/NoFindings");
    let ended = world.whats("gpu-1", |what| matches!(what, What::Cleared { .. })).await;
    assert_eq!(ended.len(), 1);
    assert_eq!(world.records("expire").await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn j13_a_rule_that_fails_leaves_the_node_unknown_and_nothing_is_done() {
    let world = World::with(quiet()).await;
    let hot = rule("hot", "event.metrics.temperature > 95", Severity::Unhealthy, None);
    policy(&world, vec![hot]).await;
    world.enrol("gpu-1").await;
    world.says("gpu-1", results("boot=H")).await;
    world.pass(seconds(1)).await;
    let answer = world.says("gpu-1", events(vec![xid(31, 3)])).await;
    assert_eq!(answer.status, NodeStatus::Active);
    assert_eq!(world.state("gpu-1"), "ACTIVE/UNKNOWN/PolicyError");
    for _ in 0..20 {
        world.pass(seconds(60)).await;
        world.beat("gpu-1").unwrap();
        world.says("gpu-1", results("boot=H nvml=H xid=H")).await;
        assert_eq!(world.state("gpu-1"), "ACTIVE/UNKNOWN/PolicyError", "never healthy");
    }
    let commands = world.control.commands.list(&admin(), None, false).unwrap();
    assert!(commands.is_empty(), "never acted on");
    let why = world.control.nodes.why(&admin(), "gpu-1").await.unwrap();
    assert!(why.summary.contains("rule hot of policy default version 1 failed"), "{why:?}");
    // What is known for sure to be bad is bad all the same.
    world.says("gpu-1", results("nvml=U")).await;
    assert_eq!(world.state("gpu-1"), "UNHEALTHY/UNHEALTHY/nvml");
    world.says("gpu-1", results("nvml=H")).await;
    assert_eq!(world.state("gpu-1"), "ACTIVE/UNKNOWN/PolicyError");
    // A policy that works judges the next one like it.
    let fatal = rule("fatal", "has(xid.code) && xid.code == 31", Severity::Unhealthy, None);
    policy(&world, vec![fatal]).await;
    world.says("gpu-1", events(vec![xid(48, 3)])).await;
    assert_eq!(world.state("gpu-1"), "ACTIVE/UNKNOWN/PolicyError");
    world.says("gpu-1", events(vec![xid(31, 3)])).await;
    assert_eq!(world.state("gpu-1"), "UNHEALTHY/UNHEALTHY/fatal");
    let failed = world.whats(
        "gpu-1",
        |what| matches!(what, What::Event { verdict, .. } if verdict.error.is_some()),
    );
    assert_eq!(failed.await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn rules_count_within_a_report_and_across_reports_at_once() {
    let world = World::with(quiet()).await;
    let often = "event.event_type == 'xid' && seen_on_gpu('1h') >= 3";
    policy(&world, vec![rule("often", often, Severity::Degraded, None)]).await;
    world.enrol("a").await;
    world.says("a", results("boot=H")).await;
    world.says("a", events(vec![xid(63, 0), xid(63, 0), xid(63, 1)])).await;
    assert_eq!(world.state("a"), "ACTIVE/HEALTHY/NoFindings");
    world.says("a", events(vec![xid(63, 0)])).await;
    assert_eq!(world.state("a"), "ACTIVE/DEGRADED/often");
    world.enrol("c").await;
    world.says("c", results("boot=H")).await;
    world.says("c", events(vec![xid(63, 0), xid(63, 0), xid(63, 0)])).await;
    assert_eq!(world.state("c"), "ACTIVE/DEGRADED/often");
    // None is lost or judged by a past that is over, however many come at once.
    world.enrol("b").await;
    world.says("b", results("boot=H")).await;
    join_all((0..20).map(|_| world.says("b", events(vec![xid(63, 5)])))).await;
    let node = world.node("b");
    assert_eq!(node.sightings[0].times.len(), 20);
    assert_eq!(node.findings[0].count, 18);
}

#[tokio::test(start_paused = true)]
async fn a_gpu_is_known_by_what_happened_to_it_in_another_machine() {
    let world = World::with(quiet()).await;
    let again = "event.event_type == 'xid' && seen_on_serial('24h') >= 2";
    policy(&world, vec![rule("again", again, Severity::Unhealthy, None)]).await;
    world.enrol("a").await;
    world.says("a", results("boot=H")).await;
    world.says("a", events(vec![xid(48, 7)])).await;
    assert_eq!(world.state("a"), "ACTIVE/HEALTHY/NoFindings");
    // The GPU moves to another machine.
    let mut without = registration("a");
    let moved = without.gpus.pop().unwrap();
    world.try_enrol(without).await.unwrap();
    let mut with = registration("b");
    with.gpus.truncate(7);
    with.gpus.push(moved);
    world.try_enrol(with).await.unwrap();
    world.enrol("c").await;
    world.says("c", results("boot=H")).await;
    world.says("c", events(vec![xid(48, 7)])).await;
    assert_eq!(world.state("c"), "ACTIVE/HEALTHY/NoFindings");
    world.says("b", events(vec![xid(48, 7)])).await;
    assert_eq!(world.state("b"), "UNHEALTHY/UNHEALTHY/again");
}

#[tokio::test(start_paused = true)]
async fn o7_a_flood_from_one_node_is_summarised_and_flagged() {
    let world = World::with(quiet()).await;
    world.enrol("loud").await;
    world.enrol("other").await;
    let nodes = &world.control.nodes;
    // 100,000 events within a second, and one among them that matters.
    let mut outcomes = Vec::new();
    for turn in 0..100 {
        world.pass(jiff::SignedDuration::from_millis(10)).await;
        let mut flood = vec![xid(13, 0); 999];
        flood.push(if turn == 0 { xid(79, 3) } else { xid(13, 1) });
        let report = HealthReport { sequence: Some(turn + 1), ..events(flood) };
        outcomes.push(word(nodes.report(&agent("loud"), "loud", report).await));
        let beat = Heartbeat::default();
        nodes.heartbeat(&agent("loud"), "loud", Via::Call, beat).unwrap();
    }
    assert_eq!(outcomes[0], "yes");
    let (taken, refused): (Vec<_>, Vec<_>) = outcomes.iter().partition(|word| *word == "yes");
    assert!(taken.len() <= 21, "{} were taken in", taken.len());
    assert!(refused.iter().all(|word| *word == "too many"));
    let stats = &world.control.stats;
    assert!(stats.health_events.get() <= 42, "{} were judged", stats.health_events.get());
    assert!(99_900 < stats.health_events_dropped.get());
    assert_eq!(world.state("loud"), "UNHEALTHY/UNHEALTHY/xid-fatal");
    assert!(world.node("loud").flags.contains_key(&Flag::Noisy));
    assert_eq!(world.live("loud").heard_at, Some(world.now()));
    let flood = world.whats("loud", |what| matches!(what, What::Event { .. })).await;
    let What::Event { event, .. } = flood.last().unwrap() else { panic!() };
    assert_eq!((event.code(), event.count), (13, 999), "the first, and how many");
    // Nobody else is held up, and when it is calm the flag goes.
    world.says("other", events(vec![xid(79, 0)])).await;
    assert_eq!(world.state("other"), "UNHEALTHY/UNHEALTHY/xid-fatal");
    world.pass(seconds(10)).await;
    world.says("loud", HealthReport { sequence: Some(200), ..results("boot=H") }).await;
    assert!(world.node("loud").flags.contains_key(&Flag::Noisy), "not calm yet");
    world.pass(seconds(60)).await;
    world.says("loud", HealthReport { sequence: Some(201), ..results("boot=H") }).await;
    assert!(world.node("loud").flags.is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_is_too_much_or_wrong_in_a_report_is_refused_and_nothing_is_stored() {
    let world = World::with(quiet()).await;
    world.enrol("gpu-1").await;
    let commits = world.commits();
    let nodes = &world.control.nodes;
    let unnamed = HealthReport { results: results("=U").results, ..HealthReport::default() };
    let huge = Event { gpu_uuid: "x".repeat(1000), ..xid(79, 0) };
    for (report, field) in [
        (events(vec![xid(13, 0); 1001]), "invalid events"),
        (unnamed, "invalid results[0].check_name"),
        (events(vec![huge]), "invalid events[0].gpu_uuid"),
    ] {
        assert_eq!(word(nodes.report(&agent("gpu-1"), "gpu-1", report).await), field);
    }
    assert_eq!(world.commits(), commits);
    assert_eq!(world.live("gpu-1").heard_at, Some(world.now()), "a sign of life all the same");
    assert_eq!(world.live("gpu-1").reported_at, None);
}
