//! Faults by their number.

use super::world::{agent, quiet, registration, results, seconds, word};
use crate::command::order;
use crate::world::{World, admin, in_virtual_time, user};
use argosy_control::node::Heartbeat;
use argosy_control::pulse::{GpuSample, Sample, Via};
use argosy_core::access::{Caller, Role};
use argosy_core::ledger::What;
use argosy_core::node::{Flag, NodeId, NodeStatus};
use argosy_store::Revision;
use jiff::SignedDuration;
use proptest::prelude::*;
use std::collections::BTreeMap;

#[tokio::test(start_paused = true)]
async fn f6_a_registration_clears_no_cordon_drain_or_quarantine() {
    let world = World::with(quiet()).await;
    for (id, command, status) in
        [("a", "CORDON", "CORDONED"), ("b", "DRAIN", "DRAINING"), ("c", "", "UNHEALTHY")]
    {
        world.enrol(id).await;
        world.says(id, results("xid=U")).await;
        if !command.is_empty() {
            world.control.commands.issue(&user(), id, order(command)).await.unwrap();
        }
        let before = world.node(id);
        let mut said = registration(id);
        for boot in ["boot-1", "boot-2", "boot-3"] {
            world.pass(seconds(100)).await;
            said.machine.boot_id = boot.to_owned();
            let (node, _) = world.try_enrol(said.clone()).await.unwrap();
            assert_eq!(node.value.status().as_str(), status);
            assert_eq!(node.value.duty, before.duty);
            assert_eq!(node.value.findings, before.findings);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn d6_a_new_machine_does_not_become_a_dead_node() {
    let world = World::with(quiet()).await;
    world.enrol("gpu-1").await;
    world.pass(seconds(3600)).await;
    // Another machine with its address is another node.
    let mut other = registration("gpu-2");
    other.machine.internal_ip = "10.0.0.1".to_owned();
    world.try_enrol(other).await.unwrap();
    // Another machine with its id is nobody, however long it is silent.
    let mut stranger = registration("gpu-1");
    stranger.machine.machine_id = "machine-x".to_owned();
    stranger.gpus.clear();
    assert_eq!(word(world.try_enrol(stranger.clone()).await), "conflict");
    assert_eq!(world.live("gpu-1").heard_at, Some(world.node("gpu-1").registered_at));
    let id = NodeId::parse("gpu-1").unwrap();
    world.control.nodes.forget(&admin(), &id, true, None).await.unwrap();
    world.try_enrol(stranger).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn d13_two_machines_with_one_identity_are_told_apart() {
    let world = World::with(quiet()).await;
    world.enrol("gpu-1").await;
    let mut clone = registration("gpu-1");
    clone.machine.machine_id = "machine-clone".to_owned();
    for _ in 0..50 {
        world.pass(seconds(20)).await;
        world.beat("gpu-1").unwrap();
        assert_eq!(word(world.try_enrol(clone.clone()).await), "conflict");
    }
    let node = world.node("gpu-1");
    assert_eq!(node.machine.machine_id, "machine-gpu-1");
    let note = &node.flags[&Flag::IdentityConflict];
    assert!(note.message.contains("machine-gpu-1") && note.message.contains("machine-clone"));
    // Once, however often it knocks.
    assert_eq!(world.records("identity-conflict").await.len(), 1);
    assert_eq!(world.ledger("gpu-1").await, "registered status registration_refused flag");
    assert_eq!(world.control.stats.registrations_refused.get(), 50);
    // The real one goes on.
    world.enrol("gpu-1").await;
    // When nobody has come for an hour the flag goes, and not before.
    world.pass(seconds(3400)).await;
    assert!(world.node("gpu-1").flags.contains_key(&Flag::IdentityConflict));
    world.until("the flag goes", |w| w.node("gpu-1").flags.is_empty()).await;
}

#[tokio::test(start_paused = true)]
async fn d13_an_id_is_not_for_the_taking_right_after_a_restart() {
    let world = World::with(quiet()).await;
    let mut daemon = registration("gpu-1");
    daemon.machine.machine_id.clear();
    world.try_enrol(daemon.clone()).await.unwrap();
    let world = world.restart(quiet()).await;
    let mut clone = registration("gpu-2");
    clone.node_id = "gpu-1".to_owned();
    clone.machine.machine_id.clear();
    assert_eq!(word(world.try_enrol(clone).await), "conflict");
    world.try_enrol(daemon).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn e1_a_clock_that_is_off_is_flagged_and_never_used() {
    let world = World::with(quiet()).await;
    world.enrol("gpu-1").await;
    let day = SignedDuration::from_hours(24);
    let beats = async |off: SignedDuration, count: usize| {
        for _ in 0..count {
            world.pass(seconds(10)).await;
            let node_time = world.now().saturating_add(off).ok();
            let beat = Heartbeat { node_time, sample: None };
            let nodes = &world.control.nodes;
            nodes.heartbeat(&agent("gpu-1"), "gpu-1", Via::Call, beat).unwrap();
            assert_eq!(world.live("gpu-1").heard_at, Some(world.now()), "by our clock");
        }
        world.pass(seconds(1)).await;
        world.node("gpu-1").flags.get(&Flag::ClockSkewed).map(|note| note.message.clone())
    };
    assert_eq!(beats(seconds(2), 9).await, None, "as far off as it may be");
    assert_eq!(beats(seconds(3), 2).await, None);
    assert_eq!(beats(seconds(0), 1).await, None);
    for (off, says) in [
        (seconds(-3), "3 s behind ours"),
        (day, "86400 s ahead of ours"),
        (-day, "86400 s behind ours"),
        (day * 3650, "315360000 s ahead of ours"),
        (SignedDuration::MAX, "ahead of ours"),
        (SignedDuration::MIN, "behind ours"),
    ] {
        let message = beats(off, 3).await.unwrap();
        assert!(message.contains(says), "{message}");
        assert_eq!(world.node("gpu-1").status(), NodeStatus::Active);
        assert_eq!(beats(seconds(0), 2).await, Some(message), "twice right may be chance");
        assert_eq!(beats(seconds(0), 1).await, None);
    }
    let flags = world.whats("gpu-1", |what| matches!(what, What::Flag { .. })).await;
    assert_eq!(flags.len(), 12);
}

#[tokio::test(start_paused = true)]
async fn e1_a_flag_that_could_not_be_written_is_written_later() {
    let world = World::with(quiet()).await;
    world.enrol("gpu-1").await;
    let beat = || {
        let node_time = Some("9999-12-30T00:00:00Z".parse().unwrap());
        let beat = Heartbeat { node_time, sample: None };
        let nodes = &world.control.nodes;
        nodes.heartbeat(&agent("gpu-1"), "gpu-1", Via::Call, beat).unwrap();
    };
    (0..3).for_each(|_| beat());
    world.rig.refuse(true);
    world.pass(seconds(5)).await;
    assert!(world.node("gpu-1").flags.is_empty());
    world.rig.refuse(false);
    beat();
    world.until("it is flagged", |w| w.node("gpu-1").flags.contains_key(&Flag::ClockSkewed)).await;
}

#[tokio::test(start_paused = true)]
async fn j18_no_reading_that_cannot_be_true_is_kept() {
    let world = World::with(quiet()).await;
    world.enrol("gpu-1").await;
    let gpu = GpuSample {
        utilization: Some(f32::NAN),
        memory_used: Some(1 << 63),
        ..GpuSample::default()
    };
    let sample = Sample {
        cpu_percent: Some(f32::INFINITY),
        memory_percent: Some(1e38),
        gpus: vec![gpu; 8],
        ..Sample::default()
    };
    let beat = Heartbeat { node_time: None, sample: Some(sample) };
    world.control.nodes.heartbeat(&agent("gpu-1"), "gpu-1", Via::Call, beat).unwrap();
    let kept = world.live("gpu-1").sample.unwrap();
    assert_eq!((kept.cpu_percent, kept.memory_percent), (None, None));
    assert!(kept.gpus.iter().all(|gpu| *gpu == GpuSample::default()));
    assert_eq!(world.control.stats.readings_refused.get(), 2 + 8 * 2);
}

#[tokio::test(start_paused = true)]
async fn k1_a_node_speaks_for_nobody_else() {
    let world = World::with(quiet()).await;
    world.enrol("a").await;
    world.enrol("b").await;
    let nodes = &world.control.nodes;
    let (thief, before) = (agent("a"), world.node("b"));
    for _ in 0..20 {
        assert_eq!(word(nodes.register(&thief, registration("b")).await), "forbidden");
        let beat = Heartbeat::default();
        assert_eq!(word(nodes.heartbeat(&thief, "b", Via::Call, beat)), "forbidden");
        assert_eq!(word(nodes.report(&thief, "b", results("xid=U")).await), "forbidden");
        assert_eq!(word(nodes.config(&thief, "b", Via::Call)), "forbidden");
    }
    // Nor is it told who exists.
    assert_eq!(word(nodes.register(&thief, registration("nobody")).await), "forbidden");
    assert_eq!(word(nodes.report(&thief, "nobody", results("")).await), "forbidden");
    world.pass(seconds(5)).await;
    assert_eq!(world.node("b"), before);
    assert_eq!(world.control.stats.impersonations.get(), 82);
    let records = world.records("impersonation").await;
    let about: Vec<_> = records.iter().map(|r| (r.actor.as_str(), r.id.as_str())).collect();
    assert_eq!(about, [("node-a", "nobody"), ("node-a", "b")], "each once, however often");
    // It goes on, and so it is told again, with the number.
    world.pass(seconds(600)).await;
    assert_eq!(word(nodes.config(&thief, "b", Via::Call)), "forbidden");
    world.pass(seconds(5)).await;
    let last = world.records("impersonation").await.swap_remove(0);
    let reason = last.reason.unwrap();
    assert_eq!(reason, "the credential is that of node a; 79 times more since");
    assert_eq!(world.control.audit.verify(&admin()).await.unwrap().broken, None);
}

#[tokio::test(start_paused = true)]
async fn k3_a_node_does_not_choose_its_team_its_role_or_another_pool() {
    let world = World::with(quiet()).await;
    for key in ["tenant", "role", "team", "argosy.dev/protected"] {
        let mut said = registration("gpu-1");
        said.labels.insert(key.to_owned(), "x".to_owned());
        assert_eq!(word(world.try_enrol(said).await), format!("invalid labels.{key}"));
    }
    assert_eq!(world.commits(), 0);
    let mut said = registration("gpu-1");
    said.pool = Some("h100".to_owned());
    world.try_enrol(said.clone()).await.unwrap();
    said.pool = Some("gold".to_owned());
    assert_eq!(word(world.try_enrol(said).await), "precondition");
    assert_eq!(world.node("gpu-1").pool.as_deref(), Some("h100"));
    world.pass(seconds(5)).await;
    assert_eq!(world.records("register-refused").await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn k4_a_decommissioned_node_does_not_come_back() {
    let world = World::with(quiet()).await;
    world.enrol("gpu-1").await;
    world.control.commands.issue(&user(), "gpu-1", order("TERMINATE")).await.unwrap();
    for _ in 0..10 {
        assert_eq!(word(world.try_enrol(registration("gpu-1")).await), "precondition");
    }
    // It may still say that it is on its way out; what it feels does not matter any more.
    world.beat("gpu-1").unwrap();
    let commits = world.commits();
    let answer = world.says("gpu-1", results("xid=U")).await;
    assert_eq!((answer.status, world.commits()), (NodeStatus::Terminated, commits));
    world.pass(seconds(5)).await;
    let records = world.records("register-refused").await;
    assert_eq!(records.len(), 1);
    assert!(records[0].reason.as_ref().unwrap().contains("was terminated"));
}

#[tokio::test(start_paused = true)]
async fn another_tenants_id_is_not_to_be_had() {
    let world = World::with(quiet()).await;
    world.enrol("gpu-1").await;
    let before = world.node("gpu-1");
    let stranger = Caller {
        tenant: "other".to_owned(),
        subject: "eve".to_owned(),
        role: Role::Node,
        ..user()
    };
    let refused = world.control.nodes.register(&stranger, registration("gpu-1")).await.unwrap_err();
    assert_eq!(refused.to_string(), "node id gpu-1 cannot be used here; choose another one");
    assert_eq!(world.node("gpu-1"), before);
}

#[tokio::test(start_paused = true)]
async fn o1_measurements_are_shed_first_and_liveness_is_kept() {
    let mut settings = quiet();
    settings.nodes.fleet.heartbeats_per_second = 50;
    let world = World::with(settings).await;
    let ids: Vec<String> = (0..100).map(|n| format!("gpu-{n}")).collect();
    for id in &ids {
        world.enrol(id).await;
    }
    world.pass(seconds(60)).await;
    // Five times as many as there should be, within one second.
    let sample = Sample { cpu_percent: Some(50.0), ..Sample::default() };
    for _ in 0..5 {
        for id in &ids {
            let beat = Heartbeat { node_time: None, sample: Some(sample.clone()) };
            world.control.nodes.heartbeat(&agent(id), id, Via::Call, beat).unwrap();
        }
    }
    let heard = ids.iter().filter(|id| world.live(id).heard_at == Some(world.now())).count();
    let measured = ids.iter().filter(|id| world.live(id).sample.is_some()).count();
    assert_eq!((heard, measured), (100, 50));
    assert_eq!(world.control.stats.samples_shed.get(), 450);
    // One node that beats without end is measured once a second.
    world.pass(seconds(2)).await;
    for n in 0..40_u8 {
        let sample = Some(Sample { cpu_percent: Some(n.into()), ..Sample::default() });
        let beat = Heartbeat { node_time: None, sample };
        world.control.nodes.heartbeat(&agent("gpu-0"), "gpu-0", Via::Call, beat).unwrap();
    }
    assert_eq!(world.live("gpu-0").sample.unwrap().cpu_percent, Some(0.0));
}

/// One thing that happens to one of three nodes. Much of it is refused; that is part of the history.
async fn step(world: &World, what: u8, id: &str, turn: usize) {
    let nodes = &world.control.nodes;
    match what {
        0 | 1 => {
            let mut said = registration(id);
            said.machine.boot_id = format!("boot-{}", turn / 7);
            drop(world.try_enrol(said).await);
        }
        2 => {
            let mut stranger = registration(id);
            stranger.machine.machine_id = "stranger".to_owned();
            drop(world.try_enrol(stranger).await);
        }
        3 | 4 => {
            let said = results(["xid=U", "xid=H gpu=D", "gpu=H"][turn % 3]);
            drop(nodes.report(&agent(id), id, said).await);
        }
        5 => {
            for _ in 0..3 {
                let node_time = Some("2001-01-01T00:00:00Z".parse().unwrap());
                let beat = Heartbeat { node_time, sample: None };
                drop(nodes.heartbeat(&agent(id), id, Via::Call, beat));
            }
        }
        6 => {
            let kind = ["CORDON", "UNCORDON", "DRAIN", "RUN_DIAGNOSTIC"][turn % 4];
            drop(world.control.commands.issue(&user(), id, order(kind)).await);
        }
        _ => {
            let force = turn.is_multiple_of(5);
            drop(nodes.forget(&admin(), &NodeId::parse(id).unwrap(), force, None).await);
        }
    }
}

#[test]
fn i9_each_change_of_a_node_has_exactly_one_record_in_its_commit() {
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(16));
    let steps = prop::collection::vec((0..8_u8, 0..3_u8), 5..60);
    runner
        .run(&steps, |steps| {
            in_virtual_time(async {
                let world = World::with(quiet()).await;
                for (turn, (what, which)) in steps.into_iter().enumerate() {
                    step(&world, what, &format!("n{which}"), turn).await;
                    world.pass(SignedDuration::from_millis(700)).await;
                }
                let mut changes: BTreeMap<(u64, String), usize> = BTreeMap::new();
                let mut seen = Revision::ZERO;
                loop {
                    let page = world.store.events(seen).await.unwrap().unwrap();
                    let Some(last) = page.last() else { break };
                    seen = last.revision;
                    for event in &page {
                        let nodes = event.nodes.iter().map(|change| &change.id);
                        let commands = event.commands.iter().map(|change| &change.id);
                        for id in nodes.chain(commands) {
                            *changes.entry((event.revision.0, id.clone())).or_default() += 1;
                        }
                    }
                }
                let mut records: BTreeMap<(u64, String), usize> = BTreeMap::new();
                for entry in world.control.audit.list(&admin(), None, 10_000).await.unwrap() {
                    // Of what was refused there is a record and nothing else.
                    if entry.record.before.is_some() || entry.record.after.is_some() {
                        let key = (entry.revision, entry.record.id.clone());
                        *records.entry(key).or_default() += 1;
                    }
                }
                prop_assert_eq!(records, changes);
                prop_assert_eq!(world.control.stats.invariants_kept.get(), 0);
                Ok(())
            })
        })
        .unwrap();
}
