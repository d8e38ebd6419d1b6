//! Review 2: what destroyed machines, or paid for too many. Each row by its ID.

use super::money::two_clouds;
use super::{minutes, ordered, seconds, settled};
use crate::workload::Workload;
use crate::world::{World, pool, settings, user};
use crate::yard::SICK;
use argosy_control::resource::Write;
use argosy_core::instance::{Reason, State};
use argosy_core::machine::{MachineState, Trouble};
use argosy_core::node::NodeStatus;
use argosy_core::resource::{Patch, Strategy};
use serde_json::json;
use std::sync::Arc;

impl World {
    fn paid(&self) -> usize {
        self.cloud().living().len()
    }

    /// How many nodes of an image are in service.
    fn serving(&self, image: &str) -> usize {
        let current = self.current();
        let of_image = current.iter().filter(|record| record.order.image == image);
        of_image.filter(|it| self.status(it.id.as_str()) == Some(NodeStatus::Active)).count()
    }

    /// Machines of an image turn sick a minute after their node registered.
    fn spoil(&self, image: &str) {
        for record in self.current().iter().filter(|record| record.order.image == image) {
            let State::Running { since, .. } = &record.state else { continue };
            if minutes(1) <= self.now().duration_since(*since) {
                self.turn(record.id.as_str(), SICK);
            }
        }
    }

    async fn size(&self, nodes: u32) {
        self.patch(&user(), pool("a", "p"), json!({"nodeCount": nodes})).await.unwrap();
    }

    fn workload(&self) -> &Workload {
        self.outside.workload.as_deref().unwrap()
    }

    async fn pause_pool(&self) {
        self.control.safety.pause(&user(), Some("a.p"), "incident 1").await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn r2_m1_an_update_to_a_bad_image_stops_and_can_be_taken_back() {
    let world = settled(6, json!({"image": "good", "drainFor": "1m"})).await;
    world.patch(&user(), pool("a", "p"), json!({"image": "bad"})).await.unwrap();
    for _ in 0..720 {
        world.spoil("bad");
        assert!(5 <= world.serving("good"), "{} | {}", world.states(), world.said());
        assert!(world.paid() <= 7, "{}", world.states());
        world.pass(seconds(10)).await;
    }
    assert!(world.said().starts_with("UpdateFailed"), "{}", world.said());
    assert_eq!(world.serving("good"), 6, "{}", world.states());
    assert!(world.cloud().asked_for("create") <= 8, "{}", world.states());
    // A label is no answer to it, the old spec is.
    world.patch(&user(), pool("a", "p"), json!({"nodeLabels": {"a": "b"}})).await.unwrap();
    world.keeps("it stands", minutes(10), |w| w.said().starts_with("UpdateFailed")).await;
    let id = world.get(pool("a", "p")).unwrap().id;
    let spec = Some(world.control.instances.good_spec(&user(), id).unwrap());
    let patch = Patch { spec, labels: None, strategy: Strategy::Replace };
    let resources = &world.control.resources;
    resources.patch(&user(), pool("a", "p"), &patch, Write::default()).await.unwrap();
    world.soon("the pool is ready", |world| world.is_ready() && world.paid() == 6).await;
    assert_eq!(world.serving("good"), 6);
    assert!(world.control.instances.good_spec(&user(), id).is_err());
}

#[tokio::test(start_paused = true)]
async fn r2_m1_an_update_that_works_goes_on_after_each_soak() {
    let world = settled(3, json!({"image": "one", "minReady": "10m"})).await;
    world.patch(&user(), pool("a", "p"), json!({"image": "two"})).await.unwrap();
    world.soon("the first is up", |world| world.serving("two") == 1).await;
    world.keeps("it has to soak", minutes(9), |world| world.serving("one") == 3).await;
    world.soon("all are", |world| world.serving("two") == 3 && world.paid() == 3).await;
    assert_eq!(world.cloud().asked_for("create"), 6);
    assert!(world.is_ready(), "{}", world.said());
}

#[tokio::test(start_paused = true)]
async fn r2_m3_a_paused_pool_that_is_resized_pays_for_what_it_asks_for() {
    let world = settled(6, json!({})).await;
    world.pause_pool().await;
    for _ in 0..3 {
        for nodes in [2, 6] {
            world.size(nodes).await;
            for _ in 0..120 {
                assert!(world.paid() <= 6, "{} | {}", world.states(), world.said());
                world.pass(seconds(1)).await;
            }
        }
    }
    world.soon("six are paid", |world| world.paid() == 6 && world.running() == 6).await;
}

#[tokio::test(start_paused = true)]
async fn r2_m3_what_an_autoscaler_wants_waits_for_the_pause_and_keeps_its_seat() {
    let world = World::with(settings()).await;
    world.cloud().lie(|lies| lies.load = 95.0);
    let policy = json!({"type": "reactive", "scaleUpAt": 80, "scaleDownAt": 20, "cooldown": "10s"});
    let spec = json!({"nodeCount": 2, "minNodes": 1, "maxNodes": 4, "autoscaling": policy});
    ordered(&world, spec).await;
    world.soon("it grows", |world| world.running() == 4).await;
    world.pause_pool().await;
    world.cloud().lie(|lies| lies.load = 5.0);
    world.cloud().each(|made| made.load = 5.0);
    world.keeps("none is touched", minutes(30), |world| world.serving("") == 4).await;
    assert!(world.said().contains("paused by ann"), "{}", world.said());
    world.cloud().lie(|lies| lies.load = 95.0);
    world.cloud().each(|made| made.load = 95.0);
    world.keeps("nothing is bought", minutes(30), |world| world.paid() == 4).await;
}

#[tokio::test(start_paused = true)]
async fn r2_m4_a_pool_is_deleted_whatever_was_held_before() {
    let world = settled(4, json!({})).await;
    world.cloud().each(|made| made.drains = false);
    world.pause_pool().await;
    world.size(2).await;
    world.pass(minutes(1)).await;
    world.delete(pool("a", "p")).await;
    world.cloud().each(|made| made.drains = true);
    world.soon("it is gone", |world| world.get(pool("a", "p")).is_none()).await;
    assert_eq!(world.paid(), 0);
    let deleted = world.gone_because(|reason| *reason == Reason::PoolDeleted);
    assert_eq!(deleted.len(), 4, "the stronger reason: {}", world.states());
}

#[tokio::test(start_paused = true)]
async fn r2_m4_a_hundred_busy_nodes_that_are_deleted_have_their_time() {
    let world = settled(100, json!({"drainFor": "30m"})).await;
    world.cloud().each(|made| made.drains = false);
    let began = world.now();
    world.delete(pool("a", "p")).await;
    world.keeps("all work", minutes(29), |w| w.cloud().asked_for("terminate") == 0).await;
    let some: Vec<String> = world.members().into_iter().take(10).collect();
    some.iter().for_each(|name| world.cloud().made(name, |made| made.drains = true));
    world.soon("those that are done go", |world| world.paid() == 90).await;
    assert!(world.now().duration_since(began) < minutes(30), "{}", world.now());
    world.soon("it is gone", |world| world.get(pool("a", "p")).is_none()).await;
    let took = world.now().duration_since(began);
    assert!((minutes(30)..minutes(40)).contains(&took), "{took}");
}

#[tokio::test(start_paused = true)]
async fn r2_m6_a_node_that_fetches_no_command_goes_at_its_deadline() {
    for spec in [json!({"nodeCount": 1}), json!({"image": "two"})] {
        let world = settled(3, json!({"drainFor": "10m", "image": "one", "minReady": "0s"})).await;
        world.cloud().each(|made| made.deaf = true);
        let deaf = world.cloud().living();
        let began = world.now();
        world.patch(&user(), pool("a", "p"), spec.clone()).await.unwrap();
        let left = |world: &World| {
            world.cloud().living().iter().filter(|name| deaf.contains(name)).count()
        };
        let fewer = if spec.get("nodeCount").is_some() { 1 } else { 2 };
        world.keeps("they have their time", minutes(9), |world| left(world) == 3).await;
        world.soon("its time is over", |world| left(world) == fewer).await;
        let took = world.now().duration_since(began);
        assert!((minutes(10)..minutes(14)).contains(&took), "{took}");
        let given = world.store.read(|view| view.commands().count());
        assert!(given <= 30, "{given} commands");
    }
}

#[tokio::test(start_paused = true)]
async fn r2_m7_an_unknown_price_blocks_where_there_is_a_limit() {
    for (settings, spec, said) in [
        (settings(), json!({"maxHourlyCost": 1000.0}), "spec.maxHourlyCost is set"),
        (limited(1000.0), json!({}), "machines.max_hourly_cost is set"),
    ] {
        let world = World::with(settings).await;
        world.cloud().lie(|lies| lies.no_prices = true);
        let mut spec = spec;
        spec["nodeCount"] = json!(2);
        ordered(&world, spec).await;
        world.soon("it says so", |world| world.said().contains(said)).await;
        assert!(world.said().contains("is not known"), "{}", world.said());
        world.keeps("nothing is bought", minutes(20), |world| world.paid() == 0).await;
        world.cloud().tell_the_truth();
        world.soon("the offers came", |world| world.running() == 2 && world.is_ready()).await;
    }
}

fn limited(max_hourly_cost: f64) -> argosy_control::Settings {
    let mut settings = settings();
    settings.machines.max_hourly_cost = Some(max_hourly_cost);
    settings
}

#[tokio::test(start_paused = true)]
async fn r2_m8_a_purchase_without_an_answer_is_given_up_and_placed_elsewhere() {
    for no_tokens in [false, true] {
        let (world, aws) = two_clouds().await;
        let unclear = Trouble::Unsure("500 Internal Server Error".to_owned());
        world.cloud().lie(|lies| (lies.refuse, lies.no_tokens) = (Some(unclear), no_tokens));
        let providers = json!([
            {"name": "gcp", "priority": 1, "regions": ["us-east1"], "machineType": "n1-standard-4"},
            {"name": "aws", "priority": 2, "regions": ["us-east-1"], "machineType": "m5.xlarge"},
        ]);
        ordered(&world, json!({"nodeCount": 2, "providers": providers})).await;
        let began = world.now();
        world.soon("they are elsewhere", |world| world.running() == 2).await;
        let took = world.now().duration_since(began);
        assert!(took < minutes(20), "{took}");
        assert_eq!((aws.living().len(), world.paid()), (2, 0));
        world.assert_accounted();
    }
}

#[tokio::test(start_paused = true)]
async fn r2_m8_a_purchase_that_the_spec_does_not_ask_for_any_more_goes_first() {
    let (world, aws) = two_clouds().await;
    let unclear = Trouble::Unsure("500 Internal Server Error".to_owned());
    world.cloud().lie(|lies| lies.refuse = Some(unclear));
    let at = |name: &str, region: &str, kind: &str| json!([{"name": name, "regions": [region], "machineType": kind}]);
    let gcp = at("gcp", "us-east1", "n1-standard-4");
    ordered(&world, json!({"nodeCount": 2, "providers": gcp})).await;
    world.pass(seconds(30)).await;
    let aws_only = json!({"providers": at("aws", "us-east-1", "m5.xlarge")});
    world.patch(&user(), pool("a", "p"), aws_only).await.unwrap();
    let began = world.now();
    world.soon("they are elsewhere", |world| world.running() == 2).await;
    let took = world.now().duration_since(began);
    assert!(took < minutes(2), "{took}");
    assert_eq!((aws.living().len(), world.paid()), (2, 0));
}

#[tokio::test(start_paused = true)]
async fn r2_m11_replacing_gives_up_and_says_what_it_cost() {
    let world = settled(8, json!({"machineType": "a3-highgpu-8g", "image": "bad"})).await;
    for _ in 0..(24 * 60) {
        world.spoil("bad");
        world.pass(minutes(1)).await;
    }
    assert!(world.cloud().asked_for("create") <= 8 + 6, "{}", world.states());
    assert!(world.said().starts_with("NeedsHuman"), "{}", world.said());
    assert!(world.said().contains("they cost $"), "{}", world.said());
    let wrong = world.gone_because(|reason| matches!(reason, Reason::ScaleDown { .. }));
    assert!(wrong.is_empty(), "{}", world.states());
    // Another image is another chance.
    world.patch(&user(), pool("a", "p"), json!({"image": "good"})).await.unwrap();
    world.soon("all are well", |world| world.serving("good") == 8 && world.is_ready()).await;
}

#[tokio::test(start_paused = true)]
async fn r2_m12_what_has_nothing_to_do_with_the_order_lifts_no_brake() {
    let world = World::with(settings()).await;
    world.cloud().lie(|lies| lies.no_boot = true);
    ordered(&world, json!({"nodeCount": 2})).await;
    for round in 0..(6 * 120) {
        let label = json!({"nodeLabels": {"round": round.to_string()}});
        world.patch(&user(), pool("a", "p"), label).await.unwrap();
        world.pass(seconds(10)).await;
    }
    assert!(world.said().starts_with("RegistrationUnhealthy"), "{}", world.said());
    assert!(world.cloud().asked_for("create") <= 4, "{}", world.states());
    world.cloud().lie(|lies| lies.no_boot = false);
    world.patch(&user(), pool("a", "p"), json!({"image": "mended"})).await.unwrap();
    world.soon("the pool is ready", World::is_ready).await;
}

#[tokio::test(start_paused = true)]
async fn r2_m13_a_replacement_is_begun_only_if_it_fits_into_the_window() {
    // It is midnight of a Thursday; a replacement takes its boot, five minutes of soak and a drain of ten.
    let window = |duration: &str| json!({"windows": [{"cron": "0 1 * * *", "duration": duration}]});
    let spec = json!({"image": "one", "drainFor": "10m", "maintenance": window("10m")});
    let world = settled(4, spec).await;
    world.patch(&user(), pool("a", "p"), json!({"image": "two"})).await.unwrap();
    let told = |world: &World| world.said().contains("shorter than one replacement may take");
    world.soon("it says why", told).await;
    world.keeps("nobody pays for five", minutes(26 * 60), |world| world.paid() == 4).await;
    let longer = json!({"maintenance": window("3h")});
    world.patch(&user(), pool("a", "p"), longer).await.unwrap();
    let updated = |world: &World| world.serving("two") == 4 && world.paid() == 4;
    let end = world.now().checked_add(minutes(48 * 60)).unwrap();
    while !updated(&world) && world.now() < end {
        world.pass(minutes(1)).await;
        let hour = world.now().to_string();
        let open = ["T01:", "T02:", "T03:", "T04:00"].iter().any(|at| hour.contains(at));
        assert!(world.paid() == 4 || open, "{hour}: {}", world.states());
    }
    assert!(updated(&world), "{} | {}", world.states(), world.said());
}

#[tokio::test(start_paused = true)]
async fn r2_m14_spot_that_is_taken_at_once_falls_back() {
    let world = World::with(settings()).await;
    ordered(&world, json!({"nodeCount": 2, "capacity": "spot-preferred"})).await;
    for _ in 0..(6 * 60) {
        world.cloud().each(|made| {
            if made.machine.spot {
                (made.machine.state, made.on) = (MachineState::Gone, false);
            }
        });
        world.pass(seconds(10)).await;
    }
    assert_eq!((world.running(), world.paid()), (2, 2), "{}", world.said());
    assert!(world.current().iter().all(|record| !record.order.spot));
    assert!(world.cloud().asked_for("create") <= 8, "{}", world.states());
}

#[tokio::test(start_paused = true)]
async fn r2_m16_a_machine_that_is_adopted_keeps_its_id_and_goes_last() {
    let world = settled(2, json!({})).await;
    let lost = world.members()[0].clone();
    world.cloud().lie(|lies| lies.keep_alive = true);
    world.cloud().made(&lost, |made| (made.hidden, made.on) = (true, false));
    world.soon("it is given up", |world| world.instance(&lost).state.is_over()).await;
    world.soon("another is there", |world| world.running() == 2 && world.is_ready()).await;
    world.cloud().made(&lost, |made| (made.hidden, made.on, made.drains) = (false, true, false));
    world.soon("it is found", |world| !world.orphans().is_empty()).await;
    world.cloud().lie(|lies| lies.keep_alive = false);
    let machine = world.orphans()[0].machine.clone();
    let id = world.get(pool("a", "p")).unwrap().id;
    let instances = &world.control.instances;
    let adopted = instances.adopt(&user(), "gcp", machine.as_str(), id, "it works").await.unwrap();
    assert_eq!(adopted.stored.value.id.as_str(), lost);
    world.soon("one of three goes", |world| world.paid() == 2).await;
    assert!(world.cloud().living().contains(&lost), "{}", world.states());
    world.soon("its node is back", |w| w.status(&lost) == Some(NodeStatus::Active)).await;
    world.keeps("it stays", minutes(60), |w| w.cloud().living().contains(&lost)).await;
}

#[tokio::test(start_paused = true)]
async fn r2_m27_with_quota_for_exactly_n_the_sick_one_is_returned_first() {
    for (replacement, quota, returned) in
        [("auto", true, true), ("surge", true, false), ("auto", false, false)]
    {
        let world = settled(3, json!({"replacement": replacement, "drainFor": "10m"})).await;
        let sick = world.members()[0].clone();
        world.cloud().each(|made| made.drains = made.machine.name != sick);
        let full = match quota {
            true => Trouble::Quota {
                resource: "hosts".to_owned(),
                each: 1,
                available: 0,
                message: "3 of 3 are in use".to_owned(),
            },
            false => Trouble::Capacity {
                code: "ZONE_RESOURCE_POOL_EXHAUSTED".to_owned(),
                message: "sold out".to_owned(),
            },
        };
        world.cloud().lie(|lies| lies.refuse = Some(full));
        world.turn(&sick, SICK);
        world.keeps("it may come yet", minutes(10), |world| world.paid() == 3).await;
        world.pass(minutes(50)).await;
        assert_eq!(world.paid(), if returned { 2 } else { 3 }, "{}", world.said());
        world.cloud().tell_the_truth();
        world.cloud().each(|made| made.drains = true);
        world.soon("the pool is ready", |w| w.is_ready() && w.paid() == 3).await;
        assert!(!world.cloud().living().contains(&sick), "{}", world.said());
    }
}

/// A pool whose nodes run jobs that a workload system knows of; its agents say at once that no GPU is used.
async fn working(nodes: u32, spec: serde_json::Value) -> World {
    let workload = Some(Arc::new(Workload::default()));
    let world = World::with_workload(settings(), workload).await;
    super::settle(&world, nodes, spec).await;
    for record in world.current() {
        world.workload().run(record.id.as_str(), 1);
    }
    world
}

#[tokio::test(start_paused = true)]
async fn r2_n1_a_smaller_pool_ends_no_machine_with_work_on_it_before_its_deadline() {
    let world = working(5, json!({"drainFor": "30m"})).await;
    world.size(4).await;
    world.keeps("its work has until then", minutes(29), |world| world.paid() == 5).await;
    world.soon("the deadline is over", |world| world.paid() == 4).await;
}

#[tokio::test(start_paused = true)]
async fn r2_n1_a_smaller_pool_ends_a_machine_as_soon_as_its_work_has_ended() {
    let world = working(5, json!({"drainFor": "30m"})).await;
    world.size(4).await;
    world.keeps("it works", minutes(5), |world| world.paid() == 5).await;
    for record in world.current() {
        world.workload().run(record.id.as_str(), 0);
    }
    world.keeps("the others stay", minutes(1), |world| 4 <= world.paid()).await;
    assert_eq!(world.paid(), 4, "{}", world.states());
}

#[tokio::test(start_paused = true)]
async fn r2_n1_a_deleted_pool_lets_its_work_end() {
    let world = working(2, json!({"drainFor": "30m"})).await;
    world.delete(pool("a", "p")).await;
    world.keeps("its work has until then", minutes(5), |world| world.paid() == 2).await;
}

#[tokio::test(start_paused = true)]
async fn r2_n4_a_pause_turns_the_drain_of_a_replacement_into_a_cordon() {
    let world = working(3, json!({"image": "one", "drainFor": "30m"})).await;
    world.patch(&user(), pool("a", "p"), json!({"image": "two"})).await.unwrap();
    let draining = |world: &World| {
        let all = world.current();
        all.iter().filter(|one| world.status(one.id.as_str()) == Some(NodeStatus::Draining)).count()
    };
    world.soon("one is drained", |world| draining(world) == 1).await;
    world.pause_pool().await;
    world.pass(seconds(10)).await;
    assert_eq!(draining(&world), 0, "{}", world.states());
    world.workload().calls();
    world.pass(minutes(5)).await;
    let asked = world.workload().calls();
    assert!(!asked.iter().any(|call| call.ends_with("status")), "{asked:?}");
    assert_eq!(world.paid(), 4, "{}", world.states());
}
