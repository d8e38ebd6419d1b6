//! Review 2: absence is not failure, and time is measured by one clock. Each row by its ID.

use super::{minutes, ordered, seconds, settled};
use crate::world::{World, pool, settings, user};
use argosy_control::command::NewCommand;
use argosy_control::safety::Beyond;
use argosy_core::command::{CommandKind, CommandState};
use argosy_core::machine::{Notice, NoticeKind};
use jiff::SignedDuration;
use serde_json::json;
use std::collections::BTreeMap;

impl World {
    fn set_clock(&self, by: SignedDuration) {
        self.control.clock.set_by(by);
    }

    /// Four machines were ordered, and their agents do not come before they are told to.
    async fn booting(&self) {
        self.cloud().lie(|lies| lies.no_boot = true);
        ordered(self, json!({"nodeCount": 4})).await;
        self.soon("they boot", |world| world.cloud().living().len() == 4).await;
        self.cloud().lie(|lies| lies.no_boot = false);
    }

    /// Their agents come, and nothing had been given up.
    async fn all_come(&self, bought: usize) {
        self.pass(minutes(1)).await;
        self.cloud().each(|made| made.on = true);
        self.soon("all came", |world| world.is_ready() && world.running() == bought).await;
        assert_eq!(self.cloud().asked_for("create"), bought, "{}", self.states());
        assert_eq!(self.cloud().asked_for("terminate"), 0, "{}", self.states());
    }
}

#[tokio::test(start_paused = true)]
async fn r2_m2_an_outage_is_held_against_no_machine_that_boots() {
    let world = World::with(settings()).await;
    world.booting().await;
    world.pass(seconds(20)).await;
    let world = world.restart_after(settings(), minutes(45)).await;
    world.all_come(4).await;
}

#[tokio::test(start_paused = true)]
async fn r2_m2_a_clock_that_is_set_forward_is_held_against_no_machine() {
    let world = World::with(settings()).await;
    world.booting().await;
    world.pass(seconds(5)).await;
    world.set_clock(minutes(15));
    world.all_come(4).await;
}

#[tokio::test(start_paused = true)]
async fn r2_m2_what_excuses_silence_excuses_registration() {
    let world = settled(6, json!({})).await;
    world.pass(minutes(10)).await;
    world.cloud().lie(|lies| lies.no_boot = true);
    world.patch(&user(), pool("a", "p"), json!({"nodeCount": 10})).await.unwrap();
    world.soon("they boot", |world| world.cloud().living().len() == 10).await;
    world.cloud().lie(|lies| lies.no_boot = false);
    // The control plane is cut off from all of them.
    world.cloud().each(|made| made.on = false);
    world.soon("it is isolated", |w| w.store.read(|view| view.outlook().is_some())).await;
    world.keeps("none is given up", minutes(60), |w| w.cloud().living().len() == 10).await;
    world.all_come(10).await;
}

#[tokio::test(start_paused = true)]
async fn r2_m2_a_machine_that_never_comes_is_given_up_when_we_listened_long_enough() {
    let world = World::with(settings()).await;
    world.booting().await;
    let world = world.restart_after(settings(), minutes(45)).await;
    // The startup grace, and the time that it has.
    world.keeps("they have their time", minutes(14), |w| w.cloud().living().len() == 4).await;
    world.soon("they are given up", |w| 4 <= w.cloud().asked_for("terminate")).await;
}

#[tokio::test(start_paused = true)]
async fn r2_m21_a_clock_that_is_set_forward_cuts_no_running_work() {
    let world = settled(3, json!({"drainFor": "1h"})).await;
    world.cloud().each(|made| made.drains = false);
    let began = world.control.clock.monotonic();
    world.patch(&user(), pool("a", "p"), json!({"nodeCount": 2})).await.unwrap();
    world.pass(minutes(5)).await;
    world.set_clock(SignedDuration::from_hours(2));
    world.keeps("it has its hour", minutes(50), |w| w.cloud().living().len() == 3).await;
    world.soon("its hour is over", |w| w.cloud().living().len() == 2).await;
    let took = (world.control.clock.monotonic() - began).as_secs() / 60;
    assert!((56..64).contains(&took), "{took} min");
}

#[tokio::test(start_paused = true)]
async fn r2_m21_a_clock_that_is_set_forward_makes_nobody_lost_for_good() {
    let world = settled(3, json!({})).await;
    world.pass(minutes(10)).await;
    // There are no more machines: one that is lost for good makes room for another.
    world.cloud().lie(|lies| lies.capacity = Some(3));
    let silent = world.members()[0].clone();
    world.cloud().made(&silent, |made| made.on = false);
    world.pass(minutes(12)).await;
    world.set_clock(SignedDuration::from_hours(1));
    world.keeps("it may come back", minutes(12), |w| w.cloud().asked_for("terminate") == 0).await;
    world.soon("it makes room", |w| w.cloud().asked_for("terminate") == 1).await;
    world.soon("another one is there", |w| w.is_ready() && w.running() == 3).await;
}

#[tokio::test(start_paused = true)]
async fn r2_m21_what_was_left_of_a_drain_is_left_after_an_outage() {
    let world = settled(3, json!({"drainFor": "1h"})).await;
    world.cloud().each(|made| made.drains = false);
    world.patch(&user(), pool("a", "p"), json!({"nodeCount": 2})).await.unwrap();
    world.pass(minutes(30)).await;
    let world = world.restart_after(settings(), SignedDuration::from_hours(2)).await;
    let began = world.now();
    world.keeps("it has what was left", minutes(27), |w| w.cloud().living().len() == 3).await;
    world.soon("that is over", |w| w.cloud().living().len() == 2).await;
    let took = world.now().duration_since(began);
    assert!((minutes(28)..minutes(36)).contains(&took), "{took}");
    world.soon("nothing counts on it", |w| w.store.read(|v| v.attendance().is_none())).await;
}

#[tokio::test(start_paused = true)]
async fn r2_m17_a_clock_that_is_set_back_stops_nothing() {
    let world = World::with(settings()).await;
    world.cloud().lie(|lies| lies.load = 95.0);
    let policy = json!({"type": "reactive", "scaleUpAt": 80, "scaleDownAt": 20, "cooldown": "10s"});
    let spec = json!({"nodeCount": 2, "minNodes": 1, "maxNodes": 8, "autoscaling": policy});
    ordered(&world, spec).await;
    world.soon("it runs", |world| 2 <= world.running()).await;
    world.set_clock(SignedDuration::from_hours(-3));
    let listed = world.cloud().asked_for("list");
    world.pass(minutes(10)).await;
    let listed = world.cloud().asked_for("list") - listed;
    assert!(4 <= listed, "{listed} listings in ten minutes");
    assert_eq!(world.running(), 8, "the autoscaler goes on: {}", world.said());
}

#[tokio::test(start_paused = true)]
async fn r2_m5_a_process_whose_clock_is_off_leads_nothing() {
    for off in [minutes(10), minutes(-10), seconds(2)] {
        let world = settled(2, json!({})).await;
        let other = world.beside(settings(), "two", off).await;
        world.pass(minutes(1)).await;
        assert_eq!(world.control.clock_off(), None);
        let said = other.control.clock_off().unwrap();
        assert!((said - off).abs() < seconds(1), "{said}");
        // What it is asked to command lives as long as any command.
        world.cloud().each(|made| made.deaf = true);
        let order = NewCommand {
            kind: CommandKind::RunDiagnostic,
            parameters: BTreeMap::new(),
            reason: "to see".to_owned(),
            drain_for: None,
            idempotency_key: None,
            if_revision: None,
            dry_run: false,
            beyond: Beyond::Refuse,
        };
        let node = world.members()[0].clone();
        let given = other.control.commands.issue(&user(), &node, order).await.unwrap();
        let open = |world: &World| {
            let id = given.value.id;
            world.store.read(|view| view.command(id).map(|it| !it.value.state.is_done()))
        };
        world.soon("it is known", |world| open(world).is_some()).await;
        world.keeps("it is open", minutes(9), |world| open(world) == Some(true)).await;
        world.soon("its time is over", |world| open(world) == Some(false)).await;
        assert!(world.now().duration_since(given.value.issued_at) < minutes(11));
        world.cloud().each(|made| made.deaf = false);
        // The one that leads dies: nobody leads, and requests are answered.
        drop(world);
        other.patch(&user(), pool("a", "p"), json!({"nodeCount": 3})).await.unwrap();
        other.keeps("nothing is bought", minutes(20), |w| w.cloud().living().len() == 2).await;
        // A time server sets it right.
        other.set_clock(-off);
        other.soon("it leads", |w| w.running() == 3 && w.is_ready()).await;
        assert_eq!(other.control.clock_off(), None);
    }
}

#[tokio::test(start_paused = true)]
async fn r2_m5_commands_that_are_not_fetched_are_given_again_ever_more_seldom() {
    let mut short = settings();
    short.nodes.defaults.command_life = seconds(20);
    let world = World::with(short).await;
    ordered(&world, json!({"nodeCount": 3, "drainFor": "10h"})).await;
    world.soon("it runs", |world| world.running() == 3 && world.is_ready()).await;
    world.cloud().each(|made| made.deaf = true);
    world.patch(&user(), pool("a", "p"), json!({"nodeCount": 2})).await.unwrap();
    world.pass(SignedDuration::from_hours(3)).await;
    let (given, expired) = world.store.read(|view| {
        let done = |state: &CommandState| state.is_done();
        (view.commands().count(), view.commands().filter(|it| done(&it.value.state)).count())
    });
    assert!(5 < expired && given < 30, "{given} commands, {expired} of them expired");
}

#[tokio::test(start_paused = true)]
async fn r2_m23_what_could_not_be_asked_changes_nothing() {
    let world = settled(2, json!({"drainFor": "1h"})).await;
    world.cloud().each(|made| made.drains = false);
    let going = world.members()[0].clone();
    let (kind, message) = (NoticeKind::Maintenance, "host maintenance".to_owned());
    world.cloud().notice(&going, Notice { kind, at: None, message });
    world.soon("another one is there", |w| w.cloud().living().len() == 3 && w.running() == 3).await;
    let notice = |world: &World| {
        let record = world.store.read(|view| view.instance(&going).unwrap().value.clone());
        record.notice.clone()
    };
    let departs = |world: &World| {
        world.store.read(|view| view.instance(&going).unwrap().value.departure.is_some())
    };
    world.soon("it is on its way out", departs).await;
    world.cloud().notice(&going, Notice::unknown());
    world
        .keeps("it stays so", minutes(20), |w| {
            departs(w) && notice(w).is_some_and(|notice| notice.kind == kind)
        })
        .await;
    // What was asked and is not so any more is taken back.
    world.cloud().made(&going, |made| made.machine.notice = None);
    world.soon("it is known", |w| notice(w).is_none()).await;
}
