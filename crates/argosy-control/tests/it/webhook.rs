//! Events for adapters outside: once a generation, again at each resync, and given up in the end.

use crate::world::{World, adapter_caller, admin, cluster, of_tenant, report, user, with_adapters};
use argosy_control::Settings;
use argosy_control::adapter::DeadLetter;
use argosy_control::notify::{CloudEvent, SendError};
use argosy_core::adapter::{Runner, Tri};
use argosy_core::status::Phase;
use serde_json::json;
use std::sync::atomic::Ordering;

fn hooked() -> Settings {
    with_adapters(&[("hook", Runner::Webhook { url: "http://hook.test/".to_owned() })])
}

async fn done(world: &World, generation: u32) {
    let draft = report("hook", generation, "T", None);
    world.control.adapters.report(&adapter_caller("hook"), cluster("a"), draft).await.unwrap();
}

async fn dead_letters(world: &World) -> Vec<DeadLetter> {
    let adapters = &world.control.adapters;
    assert!(adapters.dead_letters(&of_tenant("other"), None, 10).await.unwrap().is_empty());
    let letters = adapters.dead_letters(&admin(), None, 10).await.unwrap();
    letters.into_iter().map(|(_, letter)| letter).collect()
}

#[tokio::test(start_paused = true)]
async fn c3_an_event_goes_out_once_a_generation_and_again_at_each_resync() {
    let world = World::with(hooked()).await;
    let of = world.cluster("a").await.value;
    world.until("an event", |world| world.post().delivered().len() == 1).await;
    done(&world, 1).await;
    tokio::time::sleep(std::time::Duration::from_secs(1200)).await;
    let sent = world.post().delivered();
    assert_eq!(sent.len(), 1, "nothing more until the resync");
    let first = &sent[0];
    assert_eq!(first.kind, "com.redhat.hyperfleet.cluster.reconcile");
    assert_eq!((first.data.id.clone(), first.data.generation), (of.id.to_string(), 1));

    world.patch(&user(), cluster("a"), json!({"size": 2})).await.unwrap();
    world.until("the next", |world| world.post().delivered().len() == 2).await;
    done(&world, 2).await;
    let since = world.now();
    world.until("the resync", |world| world.post().delivered().len() == 3).await;
    let waited = world.now().duration_since(since).as_secs();
    assert!((1799..=1801).contains(&waited), "{waited}");
    let sent = world.post().delivered();
    assert_eq!([sent[1].data.generation, sent[2].data.generation], [2, 2]);
    let ids: std::collections::BTreeSet<_> = sent.iter().map(|event| &event.id).collect();
    assert_eq!(ids.len(), 3, "each has its own id");
    assert_eq!(world.phase(cluster("a")), Some(Phase::Ready));
}

#[tokio::test(start_paused = true)]
async fn an_adapter_that_does_not_report_is_told_again_every_ten_seconds() {
    let world = World::with(hooked()).await;
    let since = world.now();
    world.cluster("a").await;
    world.until("four events", |world| world.post().delivered().len() == 4).await;
    let waited = world.now().duration_since(since).as_secs();
    assert!((30..=31).contains(&waited), "{waited}");
}

#[tokio::test(start_paused = true)]
async fn c4_an_event_that_fails_five_times_becomes_a_dead_letter() {
    let world = World::with(hooked()).await;
    let later = || Some(SendError::Later("503".to_owned()));
    world.post().when("*", later());
    let id = world.cluster("bad").await.value.id.to_string();
    world.post().when(&id, later());
    world.post().when("*", None);
    world.cluster("a").await;
    world.until("it is given up", |w| w.condition(cluster("bad"), "EventRejected").is_some()).await;
    let other = world.get(cluster("a")).unwrap().id.to_string();
    assert!(world.post().delivered().iter().all(|event| event.data.id == other));
    let rejected = world.condition(cluster("bad"), "EventRejected").unwrap();
    assert_eq!(rejected.status, Tri::True);
    assert!(rejected.message.contains("hook (503)"), "{}", rejected.message);
    let dead = dead_letters(&world).await;
    assert_eq!(dead.iter().map(|letter| &letter.event.data.id).collect::<Vec<_>>(), [&id]);
    assert_eq!((dead[0].adapter.as_str(), dead[0].cause.as_str()), ("hook", "503"));
    let stats = &world.control.stats;
    assert_eq!((stats.events_failed.get(), stats.events_rejected.get()), (5, 1));

    // A new generation starts afresh.
    world.post().when(&id, None);
    world.patch(&user(), cluster("bad"), json!({"size": 2})).await.unwrap();
    let told = |event: &CloudEvent| event.data.generation == 2;
    world.until("a new event", |world| world.post().delivered().iter().any(told)).await;
    assert_eq!(world.condition(cluster("bad"), "EventRejected"), None);
}

#[tokio::test(start_paused = true)]
async fn c4_an_event_that_is_refused_is_given_up_at_once() {
    let world = World::with(hooked()).await;
    let since = world.now();
    world.post().when("*", Some(SendError::Refused("400".to_owned())));
    world.cluster("a").await;
    world.until("it is given up", |w| w.condition(cluster("a"), "EventRejected").is_some()).await;
    assert_eq!(world.post().tries.load(Ordering::SeqCst), 1);
    assert!(world.now().duration_since(since).as_millis() < 5);
    assert_eq!(dead_letters(&world).await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a2_a_redelivery_after_a_crash_carries_the_same_id() {
    let world = World::with(hooked()).await;
    // The process dies after the event went out, before that is written down.
    let rig = world.rig.clone();
    world.post().then(move || rig.freeze(true));
    world.cluster("a").await;
    world.until("it is sent", |world| world.post().delivered().len() == 1).await;
    let world = world.restart(hooked()).await;
    world.until("it is sent again", |world| world.post().delivered().len() == 2).await;
    world.until("and at the resync", |world| world.post().delivered().len() == 3).await;
    let ids: Vec<_> = world.post().delivered().into_iter().map(|event| event.id).collect();
    assert_eq!(ids[0], ids[1]);
    assert_ne!(ids[1], ids[2]);
}
