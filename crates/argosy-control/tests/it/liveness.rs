//! Who is heard: single nodes, the whole fleet, our own absence, and more than one process.

use crate::fleet::{
    Fleet, SETTLED, automatic, find, issued, ledger, settings, sick, touch, unlimited,
};
use crate::world::{World, admin};
use argosy_core::command::CommandKind;
use argosy_core::ledger::What;
use argosy_core::liveness::Excuse;
use argosy_core::node::{Duty, Liveness, NodeId};
use jiff::SignedDuration;
use std::sync::atomic::Ordering;
use std::time::Duration;

fn excuse(world: &World) -> Option<&'static str> {
    world.store.read(|view| view.outlook().map(|outlook| outlook.value.excuse.word()))
}

#[tokio::test(start_paused = true)]
async fn d1_a_node_without_power_is_unreachable_in_45_s_and_acted_on_300_s_later() {
    let world = World::with(settings()).await;
    let mut fleet = Fleet::new(&world, 20).await;
    fleet.live(&world, SETTLED).await;
    assert_eq!(excuse(&world), None);
    fleet.die(&["n3"]);
    fleet.live(&world, 24).await;
    assert_eq!(find(&world, "n3").liveness, Liveness::Fresh);
    fleet.live(&world, 1).await;
    assert_eq!(find(&world, "n3").liveness, Liveness::Suspect);
    fleet.live(&world, 18).await;
    assert_eq!(find(&world, "n3").liveness, Liveness::Suspect, "43 s");
    fleet.live(&world, 2).await;
    assert_eq!(find(&world, "n3").liveness, Liveness::Unreachable, "45 s");
    assert_eq!(fleet.words(&world), "n3 UNHEALTHY");

    fleet.live(&world, 298).await;
    assert_eq!(automatic(&world, "n3").len(), 0, "not for 300 s");
    fleet.live(&world, 4).await;
    assert_eq!(fleet.words(&world), "n3 CORDONED", "it cannot fetch it, so it holds");
    let Duty::Cordoned(hold) = &find(&world, "n3").duty else { panic!("it is cordoned") };
    assert!(hold.automatic && hold.reason.starts_with("unreachable for 30"), "{}", hold.reason);
    assert_eq!(fleet.out_of_service(&world), 1);

    // It is heard again: in service after the hold.
    fleet.revive(&world);
    fleet.work(&world, 5).await;
    assert_eq!(find(&world, "n3").liveness, Liveness::Fresh);
    assert_eq!(fleet.words(&world), "n3 CORDONED");
    fleet.work(&world, 30).await;
    assert_eq!(fleet.words(&world), "");
    let told: Vec<String> = ledger(&world, "n3")
        .await
        .iter()
        .filter_map(|what| {
            if let What::Liveness { from, to, reason } = what {
                return Some(format!("{} {}: {reason}", from.as_str(), to.as_str()));
            }
            let What::Decision { action, held_by: None, budget, .. } = what else { return None };
            Some(format!("{action} ({budget})"))
        })
        .collect();
    let expected = [
        "Fresh Suspect: silent for 24 s",
        "Suspect Unreachable: silent for 44 s",
        "cordon (pool h100 0/2, fleet 0/2)",
        "cordon (pool h100 0/2, fleet 0/2)",
        "Unreachable Fresh: heard again",
        "uncordon ()",
    ];
    assert_eq!(told, expected);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_calls_is_given_more_time() {
    let world = World::with(settings()).await;
    let mut fleet = Fleet::new(&world, 4).await;
    fleet.live(&world, SETTLED).await;
    fleet.die(&["n0"]);
    // It gave up its stream, and calls: every 30 s.
    touch(&world, "n0");
    fleet.live(&world, 63).await;
    assert_eq!(find(&world, "n0").liveness, Liveness::Fresh);
    fleet.live(&world, 2).await;
    assert_eq!(find(&world, "n0").liveness, Liveness::Suspect);
    fleet.live(&world, 25).await;
    assert_eq!(find(&world, "n0").liveness, Liveness::Unreachable);
}

#[tokio::test(start_paused = true)]
async fn d2_a_fleet_that_is_silent_as_a_whole_is_our_own_isolation() {
    let world = World::with(unlimited()).await;
    let mut fleet = Fleet::new(&world, 20).await;
    fleet.live(&world, SETTLED).await;
    let all = fleet.ids.clone();
    fleet.die(&all.iter().map(String::as_str).collect::<Vec<_>>());
    fleet.live(&world, 1100).await;
    assert_eq!(fleet.lost(&world), 0);
    assert_eq!(fleet.words(&world), "");
    assert_eq!(issued(&world, CommandKind::Cordon), 0);
    let brakes = world.control.safety.brakes(&admin()).unwrap();
    let said = brakes.isolated.unwrap();
    assert!(said.starts_with("no node is heard"), "{said}");
    assert_eq!(brakes.amnesty, None);

    // All but one come back: timers begin anew, for that one as well.
    fleet.revive(&world);
    fleet.die(&["n7"]);
    fleet.live(&world, 5).await;
    assert_eq!(excuse(&world), Some("amnesty"));
    assert_eq!(world.control.safety.brakes(&admin()).unwrap().isolated, None);
    fleet.live(&world, 280).await;
    assert_eq!(fleet.lost(&world), 0);
    fleet.live(&world, 30).await;
    assert_eq!(find(&world, "n7").liveness, Liveness::Unreachable);
    assert_eq!(issued(&world, CommandKind::Cordon), 0);
    fleet.live(&world, 310).await;
    assert_eq!(fleet.words(&world), "n7 CORDONED");
}

#[tokio::test(start_paused = true)]
async fn d2_an_isolation_is_written_once() {
    let world = World::with(settings()).await;
    let mut fleet = Fleet::new(&world, 50).await;
    fleet.live(&world, SETTLED).await;
    world.rig.accepted.store(0, Ordering::SeqCst);
    let all = fleet.ids.clone();
    fleet.die(&all.iter().map(String::as_str).collect::<Vec<_>>());
    fleet.live(&world, 1100).await;
    // The outlook, and who is suspect: in one commit each.
    let written = world.rig.accepted.load(Ordering::SeqCst);
    assert!(written <= 3, "{written} commits");
    let outlook = world.store.read(|view| view.outlook().unwrap().value.excuse);
    assert_eq!(outlook, Excuse::Isolation { silent: 50, total: 50 });
}

#[tokio::test(start_paused = true)]
async fn d8_after_an_hour_of_our_own_absence_nobody_is_lost_and_nothing_is_done() {
    let world = World::with(unlimited()).await;
    let mut fleet = Fleet::new(&world, 20).await;
    fleet.live(&world, SETTLED).await;
    let world = world.restart_after(unlimited(), SignedDuration::from_hours(1)).await;
    world.pass(SignedDuration::from_secs(60)).await;
    assert_eq!(excuse(&world), Some("amnesty"));
    fleet.die(&["n5"]);
    // They come back one after the other.
    for id in fleet.ids.iter().filter(|id| *id != "n5") {
        world.pass(SignedDuration::from_secs(6)).await;
        touch(&world, id);
        assert_eq!(fleet.lost(&world), 0);
    }
    fleet.attach(&world);
    fleet.live(&world, 60).await;
    assert_eq!(fleet.lost(&world), 0);
    assert_eq!(issued(&world, CommandKind::Cordon), 0);
    fleet.live(&world, 90).await;
    assert_eq!(fleet.words(&world), "n5 UNHEALTHY", "it had its time");
    assert_eq!(issued(&world, CommandKind::Cordon), 0);
    fleet.live(&world, 310).await;
    assert_eq!(fleet.words(&world), "n5 CORDONED");
}

#[tokio::test(start_paused = true)]
async fn d8_sickness_from_before_an_outage_is_no_evidence_after_it() {
    let mut observing = unlimited();
    observing.nodes.defaults.remedy = argosy_core::node::settings::Remedy::Observe;
    let world = World::with(observing).await;
    let mut fleet = Fleet::new(&world, 20).await;
    fleet.live(&world, SETTLED).await;
    sick(&world, &["n1", "n2"]).await;
    let world = world.restart(unlimited()).await;
    fleet.die(&["n1"]);
    fleet.attach(&world);
    fleet.live(&world, 60).await;
    // Of the one that is back it is known that nothing else was said; of the other nothing is known.
    assert_eq!(automatic(&world, "n2").len(), 1);
    assert_eq!(automatic(&world, "n1").len(), 0);
    assert_eq!(find(&world, "n1").held.as_ref().unwrap().guard, "amnesty");
}

#[tokio::test(start_paused = true)]
async fn e2_our_wall_clock_may_jump() {
    for jump in [3600, -3600] {
        let world = World::with(unlimited()).await;
        let mut fleet = Fleet::new(&world, 20).await;
        fleet.live(&world, SETTLED).await;
        world.control.clock.set_by(SignedDuration::from_secs(jump));
        let since = find(&world, "n1").liveness_since;
        fleet.live(&world, 120).await;
        let marked = fleet.count(&world, |node| node.liveness_since != since);
        assert_eq!((fleet.lost(&world), marked), (0, 0), "{jump}");
        assert_eq!(issued(&world, CommandKind::Cordon), 0);
        // And silence takes as long as it takes. The leap may have cost us the lease, and begun the
        // amnesty anew.
        fleet.live(&world, SETTLED).await;
        fleet.die(&["n1"]);
        fleet.live(&world, 43).await;
        assert_eq!(fleet.lost(&world), 0, "{jump}");
        fleet.live(&world, 2).await;
        assert_eq!(fleet.lost(&world), 1, "{jump}");
    }
}

#[tokio::test(start_paused = true)]
async fn e3_a_process_that_was_stopped_takes_it_for_a_start() {
    let world = World::with(unlimited()).await;
    let mut fleet = Fleet::new(&world, 20).await;
    fleet.live(&world, SETTLED).await;
    fleet.die(&["n1"]);
    fleet.live(&world, 60).await;
    assert_eq!(fleet.words(&world), "n1 UNHEALTHY");
    sick(&world, &["n2"]).await;
    fleet.die(&["n2"]);
    let epoch = issued(&world, CommandKind::Cordon);
    // Ten minutes in which nothing of ours runs, and then everything at once.
    tokio::time::advance(Duration::from_secs(600)).await;
    world.pass(SignedDuration::from_secs(20)).await;
    assert_eq!(fleet.lost(&world), 1, "the one from before");
    assert_eq!(excuse(&world), Some("amnesty"));
    let brakes = world.control.safety.brakes(&admin()).unwrap();
    assert!(brakes.amnesty.is_some() && brakes.isolated.is_none());
    assert_eq!(issued(&world, CommandKind::Cordon), epoch, "it was lost for seconds, not minutes");
    fleet.attach(&world);
    fleet.live(&world, 250).await;
    assert_eq!((fleet.lost(&world), issued(&world, CommandKind::Cordon)), (1, epoch));
    fleet.live(&world, 120).await;
    assert_eq!(automatic(&world, "n1").len(), 1, "in its own time");
}

#[tokio::test(start_paused = true)]
async fn e3_a_look_that_comes_late_is_the_first_one() {
    let world = World::with(settings()).await;
    let mut fleet = Fleet::new(&world, 20).await;
    fleet.live(&world, SETTLED).await;
    assert_eq!(excuse(&world), None);
    // What it writes hangs, while it keeps its lease.
    fleet.die(&["n1"]);
    world.rig.stalled.send_replace(true);
    fleet.live(&world, 45).await;
    world.rig.stalled.send_replace(false);
    fleet.live(&world, 5).await;
    assert_eq!(excuse(&world), Some("amnesty"));
    assert_eq!(fleet.lost(&world), 0, "who knows what was missed");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_heard_by_another_process_is_heard() {
    let one = World::with(unlimited()).await;
    let two = one.another(unlimited(), "two").await;
    let mut fleet = Fleet::new(&one, 20).await;
    fleet.live(&one, 30).await;
    // Half of them call the process that does not listen for the fleet.
    let half: Vec<String> = fleet.ids[..10].to_vec();
    fleet.die(&half.iter().map(String::as_str).collect::<Vec<_>>());
    let id = |id: &String| NodeId::parse(id).unwrap();
    let streams: Vec<_> =
        half.iter().map(|node| two.control.nodes.board.admit(&id(node)).attach()).collect();
    for _ in 0..60 {
        half.iter().for_each(|node| touch(&two, node));
        fleet.live(&one, 10).await;
    }
    assert_eq!(fleet.count(&one, |node| node.liveness != Liveness::Fresh), 0);
    assert_eq!(excuse(&one), None);
    // One of those is silent: as fast as any other.
    half[1..].iter().for_each(|node| touch(&two, node));
    fleet.live(&one, 10).await;
    for _ in 0..3 {
        half[1..].iter().for_each(|node| touch(&two, node));
        fleet.live(&one, 10).await;
    }
    fleet.live(&one, 8).await;
    assert_eq!(fleet.words(&one), "n0 UNHEALTHY");
    drop(streams);

    // The process is gone, and so is what it told; its nodes had better call another.
    drop(two);
    for _ in 0..12 {
        half[1..].iter().for_each(|node| touch(&one, node));
        fleet.live(&one, 10).await;
    }
    assert_eq!(fleet.words(&one), "n0 UNHEALTHY");
    assert_eq!(one.store.read(|view| view.heard().len()), 0);
}

#[tokio::test(start_paused = true)]
async fn a_node_that_registers_at_another_process_is_heard() {
    let one = World::with(unlimited()).await;
    let two = one.another(unlimited(), "two").await;
    let fleet = Fleet::new(&one, 4).await;
    fleet.live(&one, SETTLED).await;
    two.enrol("late").await;
    let liveness = || one.store.read(|view| view.node("late").map(|node| node.value.liveness));
    // It calls each 30 s, and the process that it calls tells the one that listens now and then.
    for second in 0..90 {
        if second % 30 == 29 {
            touch(&two, "late");
        }
        fleet.live(&one, 1).await;
        assert_eq!(liveness(), Some(Liveness::Fresh), "after {second} s");
    }
    fleet.live(&one, 120).await;
    assert_eq!(liveness(), Some(Liveness::Unreachable), "and it is missed when it falls silent");
}

#[tokio::test(start_paused = true)]
async fn when_another_process_takes_over_nobody_is_lost() {
    let one = World::with(unlimited()).await;
    let two = one.another(unlimited(), "two").await;
    let mut fleet = Fleet::new(&one, 20).await;
    fleet.live(&one, SETTLED).await;
    drop(one);
    fleet.revive(&two);
    fleet.live(&two, 60).await;
    assert_eq!(fleet.count(&two, |node| node.liveness != Liveness::Fresh), 0);
    assert_eq!(excuse(&two), Some("amnesty"));
    fleet.live(&two, SETTLED).await;
    assert_eq!(excuse(&two), None);
    fleet.die(&["n1"]);
    fleet.live(&two, 45).await;
    assert_eq!(fleet.words(&two), "n1 UNHEALTHY");
}

#[tokio::test(start_paused = true)]
async fn a_quiet_fleet_writes_nothing() {
    let world = World::with(settings()).await;
    let fleet = Fleet::new(&world, 100).await;
    fleet.live(&world, SETTLED).await;
    world.rig.accepted.store(0, Ordering::SeqCst);
    fleet.live(&world, 3600).await;
    assert_eq!(world.rig.accepted.load(Ordering::SeqCst), 0);
}
