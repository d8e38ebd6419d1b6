//! Processes that die, stores that miss the last seconds, and leaders that wake up too late.

use super::{minutes, ordered, seconds, settled};
use crate::world::{World, pool, settings, user};
use argosy_core::instance::Reason;
use jiff::SignedDuration;
use serde_json::json;

/// How often the process dies in a row.
const DEATHS: usize = 50;

#[tokio::test(start_paused = true)]
async fn a3_dying_fifty_times_between_the_call_and_its_answer_buys_one_machine() {
    let mut world = World::with(settings()).await;
    // The machine is made, nobody hears of it, and no listing shows it: only the token is left.
    world
        .cloud()
        .lie(|lies| (lies.hang_after_create, lies.hide, lies.no_boot) = (true, true, true));
    ordered(&world, json!({"nodeCount": 1})).await;
    for death in 1..=DEATHS {
        world.soon("it is called", |world| death <= world.cloud().asked_for("create")).await;
        world = world.restart(settings()).await;
    }
    assert_eq!(world.cloud().living().len(), 1);
    world.cloud().tell_the_truth();
    world.cloud().each(|made| made.on = true);
    world.soon("the pool is ready", World::is_ready).await;
    assert_eq!(world.states(), "Running");
    assert_eq!(world.cloud().living().len(), 1);
    assert_eq!(world.cloud().asked_for("terminate"), 0);
    world.assert_accounted();
}

#[tokio::test(start_paused = true)]
async fn a3_dying_at_each_of_fifty_purchases_buys_fifty_machines_even_without_tokens() {
    let mut world = World::with(settings()).await;
    world.cloud().lie(|lies| (lies.hang_after_create, lies.no_tokens) = (true, true));
    ordered(&world, json!({"nodeCount": 1})).await;
    for death in 1..=DEATHS {
        world.soon("it is bought", |world| world.cloud().living().len() == death).await;
        world = world.restart(settings()).await;
        if death < DEATHS {
            let one_more = json!({"nodeCount": death + 1});
            world.patch(&user(), pool("a", "p"), one_more).await.unwrap();
        }
    }
    world.cloud().tell_the_truth();
    world.soon("the pool is ready", World::is_ready).await;
    assert_eq!((world.running(), world.instances().len()), (DEATHS, DEATHS));
    assert_eq!(world.cloud().living().len(), DEATHS);
    assert_eq!(world.cloud().asked_for("terminate"), 0);
    world.assert_accounted();
}

#[tokio::test(start_paused = true)]
async fn a3_dying_between_a_return_and_its_answer_leaves_nothing_behind() {
    let mut world = settled(4, json!({})).await;
    world.delete(pool("a", "p")).await;
    for _ in 0..10 {
        world.pass(seconds(7)).await;
        world = world.restart(settings()).await;
    }
    world.soon("it is gone", |world| world.get(pool("a", "p")).is_none()).await;
    assert!(world.cloud().living().is_empty());
    assert!(world.current().is_empty());
}

#[tokio::test(start_paused = true)]
async fn b2_a_store_that_misses_the_last_purchases_buys_none_of_them_again() {
    let world = settled(3, json!({})).await;
    let replica = world.replica();
    let five = world.patch(&user(), pool("a", "p"), json!({"nodeCount": 5})).await;
    five.unwrap();
    world.soon("five run", |world| world.running() == 5).await;
    let before: Vec<String> = world.members();

    // What the store forgot: the wish for five, and the two that were bought for it.
    world.cloud().yard.lock().unwrap().log.clear();
    let world = world.fail_over(settings(), replica).await;
    assert_eq!(world.running(), 3);
    world.patch(&user(), pool("a", "p"), json!({"nodeCount": 5})).await.unwrap();
    world.soon("the pool is ready", |world| world.running() == 5 && world.is_ready()).await;
    let log = world.cloud().yard.lock().unwrap().log.clone();
    assert_eq!(log.first().map(String::as_str), Some("list"), "{log:?}");
    assert!(log.iter().all(|call| !call.starts_with("create")), "{log:?}");
    let mut after = world.members();
    let mut before = before;
    before.sort_unstable();
    after.sort_unstable();
    assert_eq!(after, before, "adopted by their tags");
    world
        .keeps("nothing is returned", minutes(30), |w| w.cloud().asked_for("terminate") == 0)
        .await;
    world.assert_accounted();
}

#[tokio::test(start_paused = true)]
async fn b2_a_store_that_misses_the_last_returns_ends_nothing_that_lives() {
    let world = settled(4, json!({})).await;
    let replica = world.replica();
    world.patch(&user(), pool("a", "p"), json!({"nodeCount": 3})).await.unwrap();
    world.soon("one is gone", |world| world.cloud().living().len() == 3).await;
    let living = world.cloud().living();

    // The listing cannot be had for a while: until then nothing is concluded. Of those that live it is known that
    // they have nothing to do, and of the one that is gone it is not.
    let away = argosy_core::machine::Trouble::Unreachable("no route".to_owned());
    world.cloud().lie(|lies| lies.all = Some(away));
    world.cloud().yard.lock().unwrap().log.clear();
    let world = world.fail_over(settings(), replica).await;
    world.pass(seconds(15)).await;
    world.patch(&user(), pool("a", "p"), json!({"nodeCount": 2})).await.unwrap();
    world.pass(minutes(10)).await;
    let log = world.cloud().yard.lock().unwrap().log.clone();
    assert!(log.iter().all(|call| call == "list"), "{log:?}");
    world.cloud().tell_the_truth();
    world.soon("the pool is ready", |world| world.running() == 2 && world.is_ready()).await;
    world.soon("nothing is left over", |world| world.cloud().living().len() == 2).await;
    assert!(world.cloud().living().iter().all(|name| living.contains(name)), "none is new");
    assert_eq!(world.cloud().asked_for("create"), 0);
    let vanished = world.gone_because(|reason| *reason == Reason::Vanished);
    assert!(vanished.len() <= 1, "{}", world.states());
    world.assert_accounted();
}

#[tokio::test(start_paused = true)]
async fn b7_a_leader_that_wakes_up_too_late_neither_buys_nor_returns_again() {
    for no_tokens in [false, true] {
        let one = World::with(settings()).await;
        one.cloud().lie(|lies| lies.no_tokens = no_tokens);
        ordered(&one, json!({"nodeCount": 2})).await;
        one.soon("two run", |world| world.running() == 2 && world.is_ready()).await;
        let two = one.another(settings(), "two").await;
        two.pass(seconds(1)).await;
        let (mut leads, mut other) = (one, two);
        // It stops at some moment between the wish and the last answer: before the intent, the call, or
        // the record of what came of it.
        for (nodes, after_ms) in
            [(3, 0), (2, 0), (4, 1), (3, 1), (5, 20), (4, 20), (5, 25), (4, 45)]
        {
            other.patch(&user(), pool("a", "p"), json!({"nodeCount": nodes})).await.unwrap();
            other.pass(SignedDuration::from_millis(after_ms)).await;
            leads.rig.freeze(true);
            let done = |world: &World| {
                let living = world.cloud().living().len();
                world.running() == nodes && world.current().len() == nodes && living == nodes
            };
            other.soon("the other one does it", |world| done(world) && world.is_ready()).await;
            let calls = |world: &World| {
                (world.cloud().asked_for("create"), world.cloud().asked_for("terminate"))
            };
            let before = calls(&other);
            leads.rig.freeze(false);
            other.pass(minutes(1)).await;
            assert_eq!(calls(&other), before, "the first one did something, too");
            assert!(done(&other), "{}", other.states());
            other.assert_accounted();
            (leads, other) = (other, leads);
        }
    }
}
