//! Pools that grow and shrink: by a wish, by what heartbeats say, and not by what cannot be true.

use super::{minutes, ordered, settled};
use crate::world::{World, pool, settings, user};
use argosy_control::extension::{Extensions, Measuring, MetricsSource};
use argosy_control::stats::MachineAlarm;
use argosy_core::autoscale::RawMetrics;
use argosy_core::instance::Reason;
use argosy_core::node::NodeStatus;
use async_trait::async_trait;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

#[tokio::test(start_paused = true)]
async fn a_pool_that_shrinks_gives_up_the_idle_one_and_lets_its_work_end() {
    let world = settled(5, json!({})).await;
    let idle = world.members()[2].clone();
    world.cloud().each(|made| made.load = 90.0);
    world.cloud().made(&idle, |made| (made.load, made.drains) = (0.0, false));
    world.pass(minutes(1)).await;
    world.patch(&user(), pool("a", "p"), json!({"nodeCount": 4})).await.unwrap();
    world.soon("it is drained", |w| w.status(&idle) == Some(NodeStatus::Draining)).await;
    world.keeps("its work goes on", minutes(30), |w| w.cloud().living().len() == 5).await;
    world.cloud().made(&idle, |made| made.drains = true);
    world.soon("it is gone", |world| world.cloud().living().len() == 4).await;
    let went = world.gone_because(|reason| *reason == Reason::ScaleDown { asked: true });
    assert_eq!(went.iter().map(|it| it.id.to_string()).collect::<Vec<_>>(), [idle]);
    assert!(world.is_ready());
    assert_eq!(world.cloud().asked_for("create"), 5, "nothing is bought for it");
}

#[tokio::test(start_paused = true)]
async fn a_drain_that_does_not_end_has_its_time_and_no_more() {
    let world = settled(3, json!({"drainFor": "20m"})).await;
    world.cloud().each(|made| made.drains = false);
    world.patch(&user(), pool("a", "p"), json!({"nodeCount": 2})).await.unwrap();
    let draining = |world: &World| world.words().contains("DRAINING");
    world.soon("one is drained", draining).await;
    world.keeps("it has its time", minutes(19), |world| world.cloud().living().len() == 3).await;
    world.pass(minutes(4)).await;
    assert_eq!(world.cloud().living().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_pool_follows_what_its_nodes_say_and_can_tell_why() {
    let world = World::with(settings()).await;
    world.cloud().lie(|lies| lies.load = 95.0);
    let policy = json!({"type": "reactive", "scaleUpAt": 80, "scaleDownAt": 20, "cooldown": "5m"});
    let spec = json!({"nodeCount": 2, "minNodes": 2, "maxNodes": 4, "autoscaling": policy});
    ordered(&world, spec).await;
    world.soon("it grows", |world| world.running() == 4).await;
    world.keeps("it stays in its bounds", minutes(15), |world| world.current().len() == 4).await;
    let decisions = world.pool_book().unwrap().decisions.clone();
    let moves: Vec<_> = decisions.iter().map(|it| (it.from, it.to)).collect();
    assert_eq!(moves, [(2, 3), (3, 4)]);
    let apart = decisions[1].at.duration_since(decisions[0].at);
    assert!(minutes(5) <= apart, "{apart}");
    assert!(decisions[0].reason.contains("95"), "{}", decisions[0].reason);

    world.cloud().lie(|lies| lies.load = 5.0);
    world.cloud().each(|made| made.load = 5.0);
    world.soon("it shrinks", |world| world.current().len() == 2).await;
    world.keeps("it stays in its bounds", minutes(15), |world| world.current().len() == 2).await;
    let decisions = world.pool_book().unwrap().decisions.clone();
    let moves: Vec<_> = decisions.iter().map(|it| (it.from, it.to)).collect();
    assert_eq!(moves, [(2, 3), (3, 4), (4, 3), (3, 2)]);
    assert!(decisions[3].reason.contains('5'), "{}", decisions[3].reason);
    assert!(world.is_ready());
    let advice = world.pool_book().unwrap().advice.clone();
    assert!(advice.is_some(), "what was last said is kept, too");
}

#[tokio::test(start_paused = true)]
async fn r2_i4_gpus_that_are_not_measured_are_not_idle() {
    let world = World::with(settings()).await;
    world.cloud().lie(|lies| lies.load = 50.0);
    let policy = json!({"type": "reactive", "scaleUpAt": 80, "scaleDownAt": 20, "cooldown": "1m"});
    let spec = json!({"nodeCount": 4, "minNodes": 1, "maxNodes": 6, "autoscaling": policy});
    ordered(&world, spec).await;
    world.soon("the pool is ready", World::is_ready).await;
    // MIG mode: there is no utilization. One node says that it is idle, which is no mean of the pool.
    world.cloud().each(|made| made.load = f32::NAN);
    let idle = world.members()[2].clone();
    world.cloud().made(&idle, |made| made.load = 0.0);
    world.keeps("nothing goes", minutes(30), |world| world.current().len() == 4).await;
    // If one must go, it is the one that is known to be idle.
    world.cloud().made(&idle, |made| made.drains = false);
    world.patch(&user(), pool("a", "p"), json!({"nodeCount": 3})).await.unwrap();
    world.soon("it is drained", |w| w.status(&idle) == Some(NodeStatus::Draining)).await;
}

/// Says whatever it is told to.
struct Liar(Mutex<RawMetrics>);

#[async_trait]
impl MetricsSource for Liar {
    fn always(&self) -> bool {
        true
    }

    async fn measure(&self, _: &Measuring, beats: &RawMetrics) -> Result<RawMetrics, String> {
        Ok(RawMetrics { at: beats.at, ..self.0.lock().unwrap().clone() })
    }
}

#[tokio::test(start_paused = true)]
async fn g16_measurements_that_cannot_be_true_move_nothing() {
    let jobs = |value: f64| RawMetrics { pending_jobs: Some(value), ..RawMetrics::default() };
    let used = |value: f64| RawMetrics { utilization: Some(value), ..RawMetrics::default() };
    let liar = Arc::new(Liar(Mutex::new(used(50.0))));
    let world = World::prepared(settings(), |outside| {
        outside.extensions = Extensions { metrics: Some(liar.clone()), ..Extensions::default() };
    })
    .await;
    let reactive = json!({"type": "reactive", "scaleUpAt": 80, "scaleDownAt": 20});
    let queue = json!({"type": "queue", "jobsPerNode": 10});
    let policies = json!([reactive, queue]);
    let both = json!({"type": "composite", "mode": "max", "policies": policies, "cooldown": "0s"});
    let spec = json!({"nodeCount": 3, "minNodes": 1, "maxNodes": 9, "autoscaling": both});
    ordered(&world, spec).await;
    world.soon("the pool is ready", World::is_ready).await;
    let lies = [
        used(f64::NAN),
        used(f64::INFINITY),
        used(f64::NEG_INFINITY),
        used(-40.0),
        used(95_000.0),
        jobs(f64::NAN),
        jobs(f64::INFINITY),
        jobs(-1.0),
        RawMetrics::default(),
    ];
    for lie in lies {
        *liar.0.lock().unwrap() = lie.clone();
        world.pass(minutes(5)).await;
        assert_eq!((world.running(), world.current().len()), (3, 3), "{lie:?}");
        assert_eq!(world.pool_book().unwrap().decisions, [], "{lie:?}");
    }
    assert_eq!(world.control.stats.readings_refused.get(), 8);
    assert_eq!(world.cloud().asked_for("create"), 3);
    // The limits hold whatever is believed.
    *liar.0.lock().unwrap() = jobs(5_000.0);
    world.soon("it grows", |world| world.running() == 9).await;
    world.keeps("no further", minutes(10), |world| world.current().len() == 9).await;
}

/// Never answers, until it is let go; counts how often it was asked.
#[derive(Default)]
struct Mute {
    speaks: AtomicBool,
    asked: AtomicUsize,
}

#[async_trait]
impl MetricsSource for Mute {
    fn always(&self) -> bool {
        true
    }

    async fn measure(&self, _: &Measuring, beats: &RawMetrics) -> Result<RawMetrics, String> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        if !self.speaks.load(Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
        Ok(RawMetrics { at: beats.at, pending_jobs: Some(5_000.0), ..RawMetrics::default() })
    }
}

#[tokio::test(start_paused = true)]
async fn a_source_that_never_answers_moves_nothing_and_is_asked_again() {
    let mute = Arc::new(Mute::default());
    let world = World::prepared(settings(), |outside| {
        outside.extensions = Extensions { metrics: Some(mute.clone()), ..Extensions::default() };
    })
    .await;
    let queue = json!({"type": "queue", "jobsPerNode": 10, "cooldown": "0s"});
    let spec = json!({"nodeCount": 2, "minNodes": 1, "maxNodes": 4, "autoscaling": queue});
    ordered(&world, spec).await;
    world.soon("the pool is ready", World::is_ready).await;
    let before = mute.asked.load(Ordering::Relaxed);
    world.keeps("its size stays", minutes(10), |world| world.current().len() == 2).await;
    let asked = mute.asked.load(Ordering::Relaxed) - before;
    assert!((15..=25).contains(&asked), "asked {asked} times in ten minutes");
    assert!(15 <= world.control.stats.machine_alarms.of(MachineAlarm::MeasureFailed));
    mute.speaks.store(true, Ordering::Relaxed);
    world.soon("it grows", |world| world.running() == 4).await;
}

#[tokio::test(start_paused = true)]
async fn a_maintenance_window_holds_back_what_would_disturb_those_that_are_well() {
    // It is midnight of a Thursday.
    let window: Value = json!({"windows": [{"cron": "0 1 * * *", "duration": "2h"}]});
    let world = settled(2, json!({"image": "one", "maintenance": window})).await;
    world.patch(&user(), pool("a", "p"), json!({"image": "two"})).await.unwrap();
    world.keeps("none is replaced", minutes(50), |world| world.cloud().living().len() == 2).await;
    assert_eq!(world.cloud().asked_for("create"), 2);
    let updated = |world: &World| {
        world.running() == 2 && world.current().iter().all(|record| record.order.image == "two")
    };
    world.soon("both are", |world| updated(world) && world.cloud().living().len() == 2).await;
    let hour = world.now().to_string();
    assert!(hour.contains("T01:") || hour.contains("T02:"), "{hour}");
    assert_eq!(world.cloud().asked_for("create"), 4);
}
