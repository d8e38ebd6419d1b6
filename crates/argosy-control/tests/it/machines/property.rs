//! Whatever the cloud, the machines and the process do for some hours: when it stops, the pool is as it was
//! asked for, nothing was paid for twice, and nobody who was well was sent away.

use super::{minutes, seconds, why};
use crate::world::{World, in_virtual_time, pool, settings, user};
use crate::yard::SICK;
use argosy_core::instance::Reason;
use argosy_core::machine::{MachineState, Trouble};
use jiff::SignedDuration;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use serde_json::json;
use std::collections::BTreeSet;

/// How many stories are tried: more find little, and cost a second each.
const CASES: u32 = 24;

/// Where the stories begin.
const SEED: u64 = 7;

/// A story that fails is told as it is: each try to make it shorter can be hours of virtual time.
const SHRINKS: u32 = 0;

/// How long it may take until all is well again: breakers are calm, and the last place is tried again.
const HEALS_WITHIN: SignedDuration = SignedDuration::from_hours(8);

#[derive(Clone, Debug)]
enum Event {
    /// The answers to the next purchases are lost.
    Lose(u32),
    /// Purchases are made, and never answered.
    Hang(bool),
    /// Nothing can be bought.
    Refuse(Option<Trouble>),
    /// Nothing works.
    All(Option<Trouble>),
    /// Returns are acknowledged, and not carried out.
    KeepAlive(bool),
    /// Machines that are to be returned are denied.
    Deny(bool),
    /// Listings are empty.
    Blind(bool),
    /// New machines do not boot.
    NoBoot(bool),
    /// One of the machines loses power.
    Unplug(usize),
    /// One of them turns sick.
    Sicken(usize),
    /// One of them is ended by somebody else.
    Remove(usize),
    /// The process dies.
    Die,
    /// The pool is to have another size.
    Resize(u32),
}

fn trouble() -> impl Strategy<Value = Option<Trouble>> {
    let capacity = Trouble::Capacity { code: "EMPTY".to_owned(), message: "none left".to_owned() };
    let throttled =
        Trouble::Throttled { retry_after_s: Some(90), message: "too many requests".to_owned() };
    prop_oneof![
        3 => Just(None),
        1 => Just(Some(capacity)),
        1 => Just(Some(throttled)),
        1 => Just(Some(Trouble::Unsure("502".to_owned()))),
        1 => Just(Some(Trouble::Unreachable("no route".to_owned()))),
        1 => Just(Some(Trouble::Credentials("revoked".to_owned()))),
    ]
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        2 => (1_u32..4).prop_map(Event::Lose),
        1 => any::<bool>().prop_map(Event::Hang),
        2 => trouble().prop_map(Event::Refuse),
        1 => trouble().prop_map(Event::All),
        1 => any::<bool>().prop_map(Event::KeepAlive),
        1 => any::<bool>().prop_map(Event::Deny),
        1 => any::<bool>().prop_map(Event::Blind),
        1 => any::<bool>().prop_map(Event::NoBoot),
        2 => (0_usize..8).prop_map(Event::Unplug),
        2 => (0_usize..8).prop_map(Event::Sicken),
        1 => (0_usize..8).prop_map(Event::Remove),
        3 => Just(Event::Die),
        2 => (4_u32..9).prop_map(Event::Resize),
    ]
}

/// What was done to machines: the rest of them are well.
#[derive(Default)]
struct Harm {
    hurt: BTreeSet<String>,
    removed: BTreeSet<String>,
}

async fn happens(world: World, event: Event, harm: &mut Harm) -> World {
    let nth = |world: &World, index: usize| {
        let living = world.cloud().living();
        (!living.is_empty()).then(|| living[index % living.len()].clone())
    };
    match event {
        Event::Lose(count) => world.cloud().lie(|lies| lies.lose_creates = count),
        Event::Hang(hang) => world.cloud().lie(|lies| lies.hang_after_create = hang),
        Event::Refuse(trouble) => world.cloud().lie(|lies| lies.refuse = trouble),
        Event::All(trouble) => world.cloud().lie(|lies| lies.all = trouble),
        Event::KeepAlive(keep) => world.cloud().lie(|lies| lies.keep_alive = keep),
        Event::Deny(deny) => world.cloud().lie(|lies| lies.deny = deny),
        Event::Blind(blind) => world.cloud().lie(|lies| lies.show_only = blind.then_some(0)),
        Event::NoBoot(no_boot) => world.cloud().lie(|lies| lies.no_boot = no_boot),
        Event::Unplug(index) => {
            if let Some(name) = nth(&world, index) {
                world.unplug(&name);
                harm.hurt.insert(name);
            }
        }
        Event::Sicken(index) => {
            if let Some(name) = nth(&world, index) {
                world.turn(&name, SICK);
                harm.hurt.insert(name);
            }
        }
        Event::Remove(index) => {
            if let Some(name) = nth(&world, index) {
                world.cloud().made(&name, |made| {
                    (made.machine.state, made.on) = (MachineState::Gone, false);
                });
                harm.removed.insert(name);
            }
        }
        Event::Die => return world.restart(settings()).await,
        Event::Resize(nodes) => {
            world.patch(&user(), pool("a", "p"), json!({"nodeCount": nodes})).await.unwrap();
        }
    }
    world
}

/// At most one machine for a record, and none that nobody knows, or could know by now.
fn paid_once(world: &World) -> Result<(), TestCaseError> {
    let names = world.cloud().living();
    let distinct: BTreeSet<&String> = names.iter().collect();
    prop_assert_eq!(distinct.len(), names.len(), "two machines for one record: {:?}", names);
    let known: BTreeSet<String> = world.instances().iter().map(|it| it.id.to_string()).collect();
    for name in names {
        prop_assert!(known.contains(&name), "nobody knows {}", name);
    }
    Ok(())
}

async fn story(
    no_tokens: bool,
    lag_s: i64,
    events: Vec<(Event, i64)>,
) -> Result<(), TestCaseError> {
    let mut world = World::with(settings()).await;
    world.cloud().lie(|lies| (lies.no_tokens, lies.lag) = (no_tokens, seconds(lag_s)));
    super::ordered(&world, json!({"nodeCount": 6})).await;
    let mut harm = Harm::default();
    for (event, pause_s) in events {
        world = happens(world, event, &mut harm).await;
        world.pass(seconds(pause_s)).await;
        paid_once(&world)?;
    }
    world.cloud().lie(|lies| {
        *lies =
            crate::yard::Lies { no_tokens, lag: seconds(lag_s), ..crate::yard::Lies::default() };
    });
    world.patch(&user(), pool("a", "p"), json!({"nodeCount": 6})).await.unwrap();
    let end = world.now().checked_add(HEALS_WITHIN).unwrap();
    let healed = |world: &World| {
        world.running() == 6 && world.current().len() == 6 && world.cloud().living().len() == 6
    };
    while !(healed(&world) && world.is_ready()) {
        let told = || format!("{} | {} | {}", world.states(), world.said(), world.words());
        prop_assert!(world.now() < end, "it does not heal: {}", told());
        // What came to nothing before it was mended stops the pool.
        if ["RegistrationUnhealthy", "NeedsHuman"].iter().any(|it| world.said().starts_with(it)) {
            world.resume().await;
        }
        world.pass(seconds(10)).await;
        paid_once(&world)?;
    }
    // And stays so.
    world.pass(minutes(5)).await;
    prop_assert!(healed(&world), "{} | {}", world.states(), world.said());
    world.assert_accounted();
    for record in world.instances() {
        let id = record.id.as_str();
        let fair = match why(&record) {
            None | Some(Reason::ScaleDown { .. } | Reason::Unwanted) => true,
            Some(Reason::Replaced { .. }) => harm.hurt.contains(id) || harm.removed.contains(id),
            Some(Reason::Vanished) => harm.removed.contains(id),
            // It never booted.
            Some(Reason::Stale) => world.try_node(id).is_none(),
            Some(_) => false,
        };
        prop_assert!(fair, "{} was well: {:?}", id, record.state);
    }
    Ok(())
}

/// The same stories in every run, unless `PROPTEST_RNG_SEED` says otherwise: what turns red was changed.
fn config() -> ProptestConfig {
    let usual = ProptestConfig::with_cases(CASES);
    let rng_seed = match usual.rng_seed {
        RngSeed::Random => RngSeed::Fixed(SEED),
        given @ RngSeed::Fixed(_) => given,
    };
    ProptestConfig { failure_persistence: None, max_shrink_iters: SHRINKS, rng_seed, ..usual }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn i2_when_all_faults_stop_the_pool_is_as_it_was_asked_for_and_was_paid_for_once(
        no_tokens in any::<bool>(),
        lag_s in prop_oneof![Just(0_i64), Just(60)],
        events in proptest::collection::vec((event(), 1_i64..600), 1..14),
    ) {
        in_virtual_time(story(no_tokens, lag_s, events))?;
    }
}
