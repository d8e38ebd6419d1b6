//! Clouds that lie, lag, throttle, refuse and forget: nothing is paid for twice, and nothing is lost sight of.

use super::{minutes, ordered, seconds, settle, settled};
use crate::world::{Cloud, World, admin, cluster_named, object, pool, pool_named, settings, user};
use crate::yard::{Lies, SICK};
use argosy_control::ids::Ids;
use argosy_control::resource::Creation;
use argosy_core::instance::{FAILED_KEPT_MAX, Reason, State};
use argosy_core::machine::{Notice, NoticeKind, Tags, Trouble};
use argosy_core::node::NodeStatus;
use argosy_core::status::Phase;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use uuid::Uuid;

fn capacity() -> Trouble {
    let code = "ZONE_RESOURCE_POOL_EXHAUSTED".to_owned();
    Trouble::Capacity { code, message: "no more machines of the kind".to_owned() }
}

fn terminating(world: &World) -> usize {
    let leaves = |record: &&Arc<argosy_core::instance::Instance>| {
        matches!(record.state, State::Terminating(_))
    };
    world.current().iter().filter(leaves).count()
}

/// A cloud that lies in this way from the start, until the pool of three is ready.
async fn bought_from(lie: impl FnOnce(&mut Lies)) -> World {
    let world = World::with(settings()).await;
    world.cloud().lie(lie);
    ordered(&world, json!({"nodeCount": 3})).await;
    world.soon("the pool is ready", World::is_ready).await;
    assert_eq!(world.states(), "Running Running Running");
    assert_eq!(world.cloud().living().len(), 3, "one machine each");
    world.assert_accounted();
    world
}

#[tokio::test(start_paused = true)]
async fn g1_a_purchase_that_times_out_is_found_and_not_repeated() {
    for no_tokens in [false, true] {
        let world = World::with(settings()).await;
        world.cloud().lie(|lies| (lies.hang_after_create, lies.no_tokens) = (true, no_tokens));
        ordered(&world, json!({"nodeCount": 3})).await;
        world.soon("three are made", |world| world.cloud().living().len() == 3).await;
        world.cloud().lie(|lies| lies.hang_after_create = false);
        world.soon("the pool is ready", World::is_ready).await;
        assert_eq!(world.states(), "Running Running Running");
        assert_eq!(world.cloud().living().len(), 3);
        assert_eq!(world.cloud().asked_for("terminate"), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn g2_a_purchase_whose_answer_is_lost_is_found_and_not_repeated() {
    let world = bought_from(|lies| lies.lose_creates = 3).await;
    assert_eq!(world.cloud().asked_for("create"), 3);
    assert!(3 <= world.cloud().asked_for("find"));
}

#[tokio::test(start_paused = true)]
async fn g3_without_tokens_nothing_is_bought_again_before_it_is_proven_absent() {
    let world = bought_from(|lies| (lies.no_tokens, lies.lose_creates) = (true, 3)).await;
    assert_eq!(world.cloud().asked_for("create"), 3);
    // And where nothing was made, that is found out, and it is bought once.
    let world = World::with(settings()).await;
    world.cloud().lie(|lies| {
        lies.no_tokens = true;
        lies.refuse = Some(Trouble::Unsure("502".to_owned()));
    });
    ordered(&world, json!({"nodeCount": 1})).await;
    world.soon("it is called", |world| world.cloud().asked_for("create") == 1).await;
    world.cloud().lie(|lies| lies.refuse = None);
    let since = world.now();
    world.soon("it is bought", |world| world.cloud().asked_for("create") == 2).await;
    assert!(minutes(2) <= world.now().duration_since(since), "after it had time to appear");
    world.soon("the pool is ready", World::is_ready).await;
    assert_eq!(world.cloud().living().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn g4_listings_that_lag_a_minute_show_nothing_that_is_not_so() {
    for no_tokens in [false, true] {
        let world = bought_from(|lies| {
            (lies.no_tokens, lies.lose_creates, lies.lag) = (no_tokens, 2, minutes(1));
        })
        .await;
        world.pass(minutes(30)).await;
        assert_eq!(world.cloud().asked_for("terminate"), 0, "nothing was taken for gone");
        assert_eq!(world.states(), "Running Running Running");
        assert_eq!(world.cloud().living().len(), 3);
    }
}

/// Two clouds: `gcp` for the cluster `a`, `aws` for `b`.
pub(super) async fn two_clouds() -> (World, Arc<Cloud>) {
    let aws: Arc<Cloud> = Arc::default();
    let other = aws.clone();
    let prepare = |outside: &mut crate::world::Elsewhere| {
        outside.more_clouds = BTreeMap::from([("aws", other)]);
    };
    (World::prepared(settings(), prepare).await, aws)
}

#[tokio::test(start_paused = true)]
async fn g5_a_storm_of_429_is_waited_out_and_does_not_reach_other_providers() {
    let (world, aws) = two_clouds().await;
    settle(&world, 2, json!({})).await;
    let retry_after_s = Some(120);
    let storm = Trouble::Throttled { retry_after_s, message: "too many requests".to_owned() };
    world.cloud().lie(|lies| lies.all = Some(storm));
    world.cloud().yard.lock().unwrap().log.clear();
    world.patch(&user(), pool("a", "p"), json!({"nodeCount": 4})).await.unwrap();
    let elsewhere = object(json!({"provider": "aws", "region": "us-east-1"}));
    let cluster = Creation { spec: elsewhere, ..cluster_named("b") };
    world.create(&user(), cluster).await.unwrap();
    world.create(&user(), pool_named("b", "q")).await.unwrap();
    let since = world.now();
    world.soon("the other is", |w| w.phase(pool("b", "q")) == Some(Phase::Ready)).await;
    assert!(world.now().duration_since(since) < seconds(10), "{}", world.now());
    assert_eq!(aws.living().len(), 2);
    world.pass(minutes(20)).await;
    let creates = world.cloud().asked_for("create");
    assert!((2..=22).contains(&creates), "two, each at most every two minutes: {creates}");
    let lists = world.cloud().asked_for("list");
    assert!((5..=12).contains(&lists), "{lists}");
    assert_eq!(world.cloud().living().len(), 2);
    assert_eq!(world.current().len(), 6, "{}", world.states());
    world.cloud().tell_the_truth();
    world.soon("the pool is ready", |world| world.is_ready() && world.running() == 6).await;
    assert_eq!(world.cloud().living().len(), 4);
}

#[tokio::test(start_paused = true)]
async fn g6_a_machine_that_lives_on_after_its_return_is_told_of_and_asked_for_again() {
    let world = settled(2, json!({})).await;
    world.cloud().lie(|lies| lies.keep_alive = true);
    world.patch(&user(), pool("a", "p"), json!({"nodeCount": 1})).await.unwrap();
    world.soon("it is returned", |world| world.cloud().asked_for("terminate") == 1).await;
    let alarmed = |world: &World| {
        let told = |state: &State| matches!(state, State::Terminating(it) if it.alarmed);
        world.current().iter().any(|record| told(&record.state))
    };
    world.keeps("nobody is told yet", minutes(14), |w| !alarmed(w) && terminating(w) == 1).await;
    world.pass(minutes(2)).await;
    assert!(alarmed(&world), "{}", world.states());
    world.keeps("it is not forgotten", minutes(30), |world| terminating(world) == 1).await;
    let asked = world.cloud().asked_for("terminate");
    assert!((3..=20).contains(&asked), "asked {asked} times");
    world.cloud().tell_the_truth();
    world.soon("it is gone", |world| terminating(world) == 0).await;
    assert_eq!(world.cloud().living().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn g7_a_404_alone_does_not_end_a_record() {
    let world = settled(2, json!({})).await;
    world.cloud().lie(|lies| lies.deny = true);
    world.patch(&user(), pool("a", "p"), json!({"nodeCount": 1})).await.unwrap();
    world.soon("it is returned", |world| 1 <= world.cloud().asked_for("terminate")).await;
    world.keeps("it is there", minutes(30), |world| terminating(world) == 1).await;
    assert_eq!(world.cloud().living().len(), 2);
    // When listings agree it is over.
    let leaving = world
        .current()
        .into_iter()
        .find(|it| it.machine().is_some() && super::why(it).is_some())
        .unwrap();
    world.cloud().made(leaving.id.as_str(), |made| made.hidden = true);
    let since = world.now();
    world.soon("it is gone", |world| terminating(world) == 0).await;
    assert!(seconds(60) <= world.now().duration_since(since), "in two looks, a minute apart");
}

#[tokio::test(start_paused = true)]
async fn g8_revoked_credentials_pause_the_provider_and_returns_go_on_for_ever() {
    let world = settled(3, json!({})).await;
    world.cloud().lie(|lies| lies.all = Some(Trouble::Credentials("token revoked".to_owned())));
    world.cloud().yard.lock().unwrap().log.clear();
    world.patch(&user(), pool("a", "p"), json!({"nodeCount": 5})).await.unwrap();
    world.soon("it says so", |world| world.said().starts_with("CredentialsInvalid")).await;
    assert!(world.provider_book("gcp").unwrap().paused.is_some());
    let guidance = world.data("guidance").to_string();
    assert!(guidance.contains("valid credentials"), "{guidance}");
    world.pass(minutes(30)).await;
    let (creates, calls) =
        (world.cloud().asked_for("create"), world.cloud().yard.lock().unwrap().log.len());
    assert!(creates <= 2, "{creates}");
    assert!((10..=25).contains(&calls), "half an hour, asked every two minutes: {calls}");
    assert_eq!(world.running(), 3, "what runs, runs");

    world.cloud().yard.lock().unwrap().log.clear();
    world.delete(pool("a", "p")).await;
    world.soon("they are drained", |world| terminating(world) == 3).await;
    world.keeps("nothing is lost", minutes(60), |world| terminating(world) == 3).await;
    let asked = world.cloud().asked_for("terminate");
    assert!((3 * 6..=3 * 20).contains(&asked), "for ever, and seldom: {asked}");
    world.cloud().tell_the_truth();
    world.soon("all is gone", |world| world.get(pool("a", "p")).is_none()).await;
    assert!(world.cloud().living().is_empty());
}

#[tokio::test(start_paused = true)]
async fn g8_with_good_credentials_buying_goes_on_by_itself() {
    let world = settled(1, json!({})).await;
    world.cloud().lie(|lies| lies.all = Some(Trouble::Credentials("token revoked".to_owned())));
    world.patch(&user(), pool("a", "p"), json!({"nodeCount": 3})).await.unwrap();
    world.soon("it says so", |world| world.said().starts_with("CredentialsInvalid")).await;
    world.pass(minutes(30)).await;
    world.cloud().tell_the_truth();
    let since = world.now();
    world.soon("the pool is ready", |world| world.is_ready() && world.running() == 3).await;
    assert!(world.now().duration_since(since) <= minutes(11), "{}", world.now());
    assert_eq!(world.provider_book("gcp").unwrap().paused, None);
    assert_eq!(world.cloud().living().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn g9_machines_of_a_provider_that_is_not_configured_are_named() {
    let world = settled(3, json!({})).await;
    assert_eq!(world.unprovided(), []);
    *world.outside.provider.lock().unwrap() = "aws";
    let world = world.restart(settings()).await;
    assert_eq!(world.unprovided(), [("gcp".to_owned(), 3)]);
    // Whoever starts like that all the same loses nothing.
    world.pass(minutes(30)).await;
    assert_eq!(world.current().len(), 3);
    *world.outside.provider.lock().unwrap() = "gcp";
    let world = world.restart(settings()).await;
    assert_eq!(world.unprovided(), []);
    world.delete(pool("a", "p")).await;
    world.soon("all is gone", |world| world.current().is_empty()).await;
    assert!(world.cloud().living().is_empty());
}

#[tokio::test(start_paused = true)]
async fn g10_where_there_are_none_others_are_bought() {
    // In another zone.
    let world = World::with(settings()).await;
    world.cloud().lie(|lies| lies.empty_zone = Some("us-east1-b"));
    let zones = json!(["us-east1-b", "us-east1-c"]);
    ordered(&world, json!({"nodeCount": 4, "zones": zones})).await;
    world.soon("the pool is ready", World::is_ready).await;
    assert!(world.current().iter().all(|record| record.order.zone == "us-east1-c"));
    assert!(world.cloud().asked_for("create") <= 12, "{}", world.cloud().asked_for("create"));

    // At another provider.
    let (world, aws) = two_clouds().await;
    world.cloud().lie(|lies| lies.refuse = Some(capacity()));
    let choice = |name: &str, priority: u32, region: &str, kind: &str| json!({"name": name, "priority": priority, "regions": [region], "machineType": kind});
    let providers = json!([
        choice("gcp", 1, "us-east1", "n1-standard-4"),
        choice("aws", 2, "us-east-1", "m5.xlarge"),
    ]);
    ordered(&world, json!({"nodeCount": 3, "providers": providers})).await;
    world.soon("the pool is ready", World::is_ready).await;
    assert_eq!((aws.living().len(), world.cloud().living().len()), (3, 0));
    assert!(world.cloud().asked_for("create") <= 9, "{}", world.cloud().asked_for("create"));
}

#[tokio::test(start_paused = true)]
async fn g10_where_there_are_none_at_all_it_is_said_and_tried_again_ever_more_seldom() {
    let world = World::with(settings()).await;
    world.cloud().lie(|lies| lies.refuse = Some(capacity()));
    ordered(&world, json!({"nodeCount": 2, "zones": ["us-east1-b"]})).await;
    let said = "ProvisioningFailed: Failed to provision node 1 of 2. GCP error: ZONE_RESOURCE";
    world.soon("it says so", |world| world.said().starts_with(said)).await;
    let guidance = world.data("guidance").to_string();
    assert!(guidance.contains("another machine type, zone or region"), "{guidance}");
    world.pass(minutes(60)).await;
    let asked = world.cloud().asked_for("create");
    assert!((5..=30).contains(&asked), "in an hour: {asked}");
    world.cloud().tell_the_truth();
    let since = world.now();
    world.soon("the pool is ready", World::is_ready).await;
    assert!(world.now().duration_since(since) <= minutes(12), "never given up");
    assert_eq!(world.cloud().living().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn g10_a_quota_is_asked_for_before_anything_is_bought() {
    let world = World::with(settings()).await;
    let quota = Trouble::Quota {
        resource: "CPUs".to_owned(),
        each: 4,
        available: 6,
        message: "quota CPUs exceeded".to_owned(),
    };
    world.cloud().lie(|lies| lies.room = Some(quota));
    ordered(&world, json!({"nodeCount": 2})).await;
    world.soon("it says so", |world| world.said().starts_with("QuotaExceeded")).await;
    let guidance = world.data("guidance").to_string();
    assert!(guidance.contains("quota increase for CPUs"), "{guidance}");
    world.pass(minutes(30)).await;
    assert_eq!((world.cloud().asked_for("create"), world.instances().len()), (0, 0));
    world.cloud().tell_the_truth();
    world.soon("the pool is ready", World::is_ready).await;
}

#[tokio::test(start_paused = true)]
async fn g11_a_listing_that_misses_too_much_is_not_believed() {
    for shown in [0, 3] {
        let world = settled(6, json!({})).await;
        let dead = world.members()[0].clone();
        world.cloud().lie(|lies| lies.show_only = Some(shown));
        world
            .soon("it is frozen", |world| {
                world.provider_book("gcp").is_some_and(|book| book.frozen.is_some())
            })
            .await;
        // Not even what we know of ourselves is acted on there.
        world.unplug(&dead);
        let still = |world: &World| {
            world.cloud().asked_for("create") == 6
                && world.cloud().asked_for("terminate") == 0
                && world.cloud().living().len() == 6
        };
        world.keeps("nothing is bought or returned", minutes(20), still).await;
        assert_eq!(world.running(), 6, "nothing is concluded");
        // What a person wants is done all the same, and it thaws when the listing is whole.
        world.cloud().tell_the_truth();
        world
            .soon("it thaws", |world| {
                world.provider_book("gcp").is_none_or(|book| book.frozen.is_none())
            })
            .await;
        world.soon("the dead one goes", |world| world.instance(&dead).state.is_over()).await;
        world.soon("the pool is ready", |w| w.is_ready() && w.cloud().living().len() == 6).await;
        assert_eq!(world.cloud().asked_for("create"), 7);
    }
}

#[tokio::test(start_paused = true)]
async fn g11_when_somebody_vouches_for_the_listing_it_is_believed() {
    let world = settled(3, json!({})).await;
    // They are really gone: somebody deleted them by hand.
    world.cloud().each(|made| (made.hidden, made.on) = (true, false));
    let frozen =
        |world: &World| world.provider_book("gcp").is_some_and(|book| book.frozen.is_some());
    world.soon("it is frozen", frozen).await;
    // That nobody is heard at all is held against us for 20 minutes.
    world.pass(minutes(15)).await;
    assert_eq!((world.running(), world.cloud().asked_for("create")), (3, 3));
    let thawed = world.control.instances.thaw(&admin(), "gcp", "deleted by hand").await.unwrap();
    assert!(thawed);
    world.soon("others are bought", |world| world.cloud().asked_for("create") == 6).await;
    world.soon("the pool is ready", World::is_ready).await;
    let vanished = world.gone_because(|reason| *reason == Reason::Vanished);
    assert_eq!(vanished.len(), 3, "{}", world.states());
    assert!(!frozen(&world));
}

#[tokio::test(start_paused = true)]
async fn g11_the_only_machine_is_replaced_when_it_vanished_and_not_while_its_node_is_heard() {
    let world = settled(1, json!({})).await;
    world.cloud().each(|made| made.hidden = true);
    let still = |world: &World| world.cloud().asked_for("create") == 1 && world.running() == 1;
    world.keeps("nothing is concluded", minutes(20), still).await;
    world.cloud().each(|made| made.on = false);
    world.soon("another is bought", |world| world.cloud().asked_for("create") == 2).await;
    world.soon("the pool is ready", World::is_ready).await;
    let vanished = world.gone_because(|reason| *reason == Reason::Vanished);
    assert_eq!(vanished.len(), 1, "{}", world.states());
}

#[tokio::test(start_paused = true)]
async fn i11_failed_purchases_do_not_pile_up_while_there_is_no_capacity() {
    let world = World::with(settings()).await;
    world.cloud().lie(|lies| lies.refuse = Some(capacity()));
    ordered(&world, json!({"nodeCount": 3})).await;
    let failed = |world: &World| {
        let over = world.instances().into_iter().filter(|it| it.state.is_over());
        over.map(|it| it.id.to_string()).collect::<BTreeSet<_>>()
    };
    world.soon("none is to be had", |world| !failed(world).is_empty()).await;
    let first = failed(&world);
    world.pass(minutes(10 * 60)).await;
    let tried = world.cloud().asked_for("create");
    assert!(40 < tried, "it was tried {tried} times");
    let kept = failed(&world);
    assert!((FAILED_KEPT_MAX..40).contains(&kept.len()), "{} are kept of {tried}", kept.len());
    assert!(kept.is_disjoint(&first), "the oldest are forgotten");
    world.cloud().tell_the_truth();
    world.soon("the pool is ready", World::is_ready).await;
    world.assert_accounted();
}

#[tokio::test(start_paused = true)]
async fn i11_a_large_order_that_failed_is_forgotten_to_the_last() {
    let world = World::with(settings()).await;
    world.cloud().lie(|lies| lies.refuse = Some(capacity()));
    ordered(&world, json!({"nodeCount": 100})).await;
    let failed = |world: &World| {
        let all = world.instances().into_iter();
        all.filter(|it| matches!(it.state, State::Failed { .. })).count()
    };
    // More than are forgotten at a time.
    world.soon("all of it failed", |world| 100 <= failed(world)).await;
    world.cloud().tell_the_truth();
    world.soon("the pool is ready", World::is_ready).await;
    world.soon("some are forgotten", |world| failed(world) < 100).await;
    // Each that is forgotten has the pool looked at again, and not only the next look at everything.
    world.pass(minutes(1)).await;
    assert_eq!(failed(&world), FAILED_KEPT_MAX);
    world.assert_accounted();
}

#[tokio::test(start_paused = true)]
async fn g12_machines_that_never_register_are_returned_and_after_three_none_is_bought() {
    let world = World::with(settings()).await;
    world.cloud().lie(|lies| lies.no_boot = true);
    ordered(&world, json!({"nodeCount": 1})).await;
    world.soon("one is returned", |world| world.cloud().asked_for("terminate") == 1).await;
    world.soon("it is gone", |world| world.instances().iter().any(|it| it.state.is_over())).await;
    let first = world.instances().into_iter().find(|it| it.state.is_over()).unwrap();
    let State::Failed { failure, console, .. } = &first.state else { panic!("{first:?}") };
    assert_eq!(failure.reason, "RegistrationTimeout");
    assert!(console.contains("could not reach the control plane"), "{console}");
    let paused = |world: &World| world.said().starts_with("RegistrationUnhealthy");
    world.soon("buying is paused", paused).await;
    assert_eq!(world.cloud().asked_for("create"), 3);
    world.keeps("nothing is bought", minutes(30), |w| w.cloud().asked_for("create") == 3).await;
    assert!(world.cloud().living().is_empty());
    assert!(world.said().contains("could not reach the control plane"), "{}", world.said());
    // Somebody mended the image, and said so.
    world.cloud().tell_the_truth();
    world.patch(&user(), pool("a", "p"), json!({"image": "mended"})).await.unwrap();
    world.soon("the pool is ready", World::is_ready).await;
    assert_eq!(world.cloud().asked_for("create"), 4);
}

/// Tags of a machine of this control plane, or of another one.
fn tags(installation: Uuid) -> Tags {
    Tags { installation: Some(installation), ..Tags::default() }
}

#[tokio::test(start_paused = true)]
async fn g13_a_machine_that_nobody_knows_is_reported_with_its_price_and_reaped_only_on_request() {
    let world = settled(1, json!({})).await;
    let ours = world.store.read(|view| view.installation().unwrap().value.id);
    world.cloud().stranger("lost", tags(ours), world.now());
    let since = world.now();
    world.soon("it is reported", |world| !world.orphans().is_empty()).await;
    assert!(world.now().duration_since(since) <= minutes(2).saturating_add(seconds(5)));
    let orphan = world.orphans()[0].clone();
    assert_eq!((orphan.name.as_str(), orphan.price_per_hour), ("lost", Some(80.0)));
    world.keeps("it is left alone", minutes(20), |w| w.cloud().asked_for("terminate") == 0).await;

    world.cloud().stranger("younger", tags(ours), world.now());
    world.soon("that is reported, too", |world| world.orphans().len() == 2).await;
    let since = world.now();
    let instances = &world.control.instances;
    let refused = instances.reap(&user(), "gcp", orphan.machine.as_str(), "paid for nothing").await;
    assert!(refused.is_err(), "it takes an admin");
    for orphan in world.orphans() {
        let machine = orphan.machine.as_str();
        instances.reap(&admin(), "gcp", machine, "paid for nothing").await.unwrap();
    }
    world.soon("the older is gone", |world| world.cloud().living().len() == 2).await;
    assert!(world.now().duration_since(since) <= minutes(3));
    assert!(world.cloud().living().contains(&"younger".to_owned()), "in quarantine");
    world.soon("the younger is gone", |world| world.cloud().living().len() == 1).await;
    assert!(minutes(9) <= world.now().duration_since(since));
    world.soon("both are forgotten", |world| world.orphans().is_empty()).await;
    assert_eq!(world.running(), 1);
}

#[tokio::test(start_paused = true)]
async fn g14_two_control_planes_in_one_account_leave_each_other_alone() {
    let one = settled(3, json!({})).await;
    let cloud = one.outside.cloud.clone();
    let two = World::prepared(settings(), |outside| {
        (outside.cloud, outside.ids) = (cloud, Ids::seeded(8));
    })
    .await;
    ordered(&two, json!({"nodeCount": 2})).await;
    two.soon("the other is ready", World::is_ready).await;
    one.cloud().stranger("stranger", tags(Uuid::from_u128(77)), one.now());
    two.pass(minutes(10)).await;
    assert_eq!((one.orphans(), two.orphans()), (Vec::new(), Vec::new()));
    assert_eq!((one.running(), two.running()), (3, 2));
    assert_eq!(one.cloud().living().len(), 6);
    one.delete(pool("a", "p")).await;
    one.soon("its own are gone", |world| world.current().is_empty()).await;
    two.pass(minutes(10)).await;
    assert_eq!((two.running(), two.is_ready(), two.cloud().living().len()), (2, true, 3));
    // Its store is lost, and it begins anew: what it bought before is somebody else's.
    drop(two);
    let cloud = one.outside.cloud.clone();
    let three = World::prepared(settings(), |outside| {
        (outside.cloud, outside.ids) = (cloud, Ids::seeded(9));
    })
    .await;
    ordered(&three, json!({"nodeCount": 1})).await;
    three.soon("it is ready", World::is_ready).await;
    three.pass(minutes(10)).await;
    assert_eq!((three.current().len(), three.cloud().living().len()), (1, 4));
}

#[tokio::test(start_paused = true)]
async fn g15_a_spot_machine_that_is_taken_back_is_drained_at_once_and_replaced() {
    let world = settled(3, json!({"capacity": "spot"})).await;
    let going = world.members()[0].clone();
    world.cloud().made(&going, |made| made.drains = false);
    let at = world.now().checked_add(minutes(4)).unwrap();
    let (kind, message) = (NoticeKind::Reclaim, "preempted".to_owned());
    world.cloud().notice(&going, Notice { kind, at: Some(at), message });
    world.soon("it is drained", |w| w.status(&going) == Some(NodeStatus::Draining)).await;
    assert!(world.now() < at);
    world.soon("another is bought", |world| world.cloud().asked_for("create") == 4).await;
    assert!(world.now() < at, "{}", world.now());
    world.soon("it is gone", |world| world.instance(&going).state.is_over()).await;
    let reclaimed = world.gone_because(|reason| *reason == Reason::Reclaimed);
    assert_eq!(reclaimed.len(), 1, "{}", world.states());
    world.soon("the pool is ready", World::is_ready).await;
    assert_eq!((world.running(), world.cloud().living().len()), (3, 3));
    assert_eq!(world.cloud().asked_for("create"), 4);
}

#[tokio::test(start_paused = true)]
async fn g17_of_five_of_which_three_were_made_exactly_two_are_bought_again() {
    let world = World::with(settings()).await;
    world.cloud().lie(|lies| lies.capacity = Some(3));
    ordered(&world, json!({"nodeCount": 5})).await;
    world.soon("three run", |world| world.running() == 3).await;
    world.pass(minutes(5)).await;
    assert!(world.said().contains("node 4 of 5"), "{}", world.said());
    let first: Vec<String> = world.members();
    world.cloud().tell_the_truth();
    world.soon("the pool is ready", World::is_ready).await;
    assert_eq!(world.cloud().yard.lock().unwrap().made.len(), 5, "never more than five");
    let members = world.members();
    assert_eq!(members.len(), 5);
    assert!(first.iter().all(|name| members.contains(name)));
    let numbers: Vec<u32> = {
        let mut numbers: Vec<u32> = world.current().iter().map(|record| record.number).collect();
        numbers.sort_unstable();
        numbers
    };
    assert_eq!(numbers, [1, 2, 3, 4, 5]);
    assert_eq!(world.cloud().asked_for("terminate"), 0);
}

#[tokio::test(start_paused = true)]
async fn g18_a_node_whose_replacement_cannot_be_bought_is_kept() {
    let world = settled(3, json!({"minAvailable": 2})).await;
    let sick = world.members()[0].clone();
    world.cloud().lie(|lies| lies.refuse = Some(capacity()));
    world.turn(&sick, SICK);
    world.soon("it is cordoned", |w| w.status(&sick) == Some(NodeStatus::Cordoned)).await;
    let kept = |world: &World| {
        world.cloud().living().len() == 3
            && world.cloud().asked_for("terminate") == 0
            && world.status(&sick) == Some(NodeStatus::Cordoned)
    };
    world.keeps("it is kept", minutes(30), kept).await;
    assert!(world.said().starts_with("ReplacementBlocked"), "{}", world.said());
    assert!(world.said().contains("ZONE_RESOURCE_POOL_EXHAUSTED"), "{}", world.said());
    assert!(world.cloud().asked_for("create") <= 3 + 60);
    world.cloud().tell_the_truth();
    world.soon("it is replaced", |w| w.instance(&sick).state.is_over() && w.is_ready()).await;
    assert_eq!(world.cloud().living().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn g18_an_update_never_goes_below_what_must_be_available() {
    let world = settled(3, json!({"minAvailable": 3, "image": "one"})).await;
    let in_service = |world: &World| {
        world.store.read(|view| {
            let active = |node: &&argosy_store::view::Stored<argosy_core::node::Node>| {
                node.value.status() == NodeStatus::Active
            };
            view.nodes().filter(active).count()
        })
    };
    world.cloud().lie(|lies| lies.refuse = Some(capacity()));
    world.patch(&user(), pool("a", "p"), json!({"image": "two"})).await.unwrap();
    world.keeps("all serve", minutes(30), |world| in_service(world) == 3).await;
    world.cloud().tell_the_truth();
    let updated = |world: &World| {
        world.running() == 3 && world.current().iter().all(|record| record.order.image == "two")
    };
    for _ in 0..7200 {
        assert!(3 <= in_service(&world), "{}", world.words());
        if updated(&world) && world.cloud().living().len() == 3 {
            break;
        }
        world.pass(seconds(1)).await;
    }
    assert!(updated(&world), "{} | {}", world.states(), world.said());
    world.soon("the pool is ready", World::is_ready).await;
    // Three for each image, and nothing twice.
    assert_eq!(world.cloud().yard.lock().unwrap().made.len(), 6);
}

#[tokio::test(start_paused = true)]
async fn g19_without_a_price_list_the_cost_is_unknown_and_the_last_one_guards() {
    let spec = json!({"machineType": "a3-highgpu-8g", "maxHourlyCost": 200.0});
    let world = settled(2, spec).await;
    assert_eq!(world.data("cost_per_hour"), json!(160.0));
    world.cloud().lie(|lies| lies.no_prices = true);
    // Until what is offered is asked for again.
    world.pass(minutes(11)).await;
    world.patch(&user(), pool("a", "p"), json!({"nodeCount": 3})).await.unwrap();
    world.soon("it says so", |world| world.said().starts_with("CostGuard")).await;
    world.keeps("none is bought", minutes(30), |w| w.cloud().asked_for("create") == 2).await;
    world.patch(&user(), pool("a", "p"), json!({"maxHourlyCost": 500.0})).await.unwrap();
    world.soon("the pool is ready", |world| world.is_ready() && world.running() == 3).await;
    assert_eq!(world.data("cost_per_hour"), Value::Null, "nobody knows what the third costs");
}
