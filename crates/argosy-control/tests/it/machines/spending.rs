//! Reviews 1 and 2: how large pools become, and what that costs. Each row by its ID.

use super::{minutes, ordered, seconds, settled};
use crate::world::{World, admin, cluster_named, object, pool, pool_named, settings, user};
use argosy_control::extension::{Extensions, Measuring, MetricsSource};
use argosy_control::resource::{Creation, Write};
use argosy_control::{Error, Settings};
use argosy_core::autoscale::{CredentialScope, RawMetrics};
use argosy_core::instance::Reason;
use argosy_core::machine::{HourlyCost, Tags};
use argosy_core::node::NodeStatus;
use argosy_core::resource::{Patch, Strategy};
use async_trait::async_trait;
use serde_json::{Value, json};
use std::sync::Arc;
use uuid::Uuid;

impl World {
    /// How busy all machines are, and those that come.
    fn load(&self, percent: f32) {
        self.cloud().lie(|lies| lies.load = percent);
        self.cloud().each(|made| made.load = percent);
    }

    fn draining(&self) -> usize {
        let draining = |name: &String| self.status(name) == Some(NodeStatus::Draining);
        self.cloud().living().iter().filter(|name| draining(name)).count()
    }

    /// What the pool costs, as its page says.
    fn cost(&self) -> HourlyCost {
        let id = self.get(pool("a", "p")).unwrap().id;
        self.control.instances.explain(&user(), id).unwrap().cost
    }
}

fn reactive() -> Value {
    json!({"type": "reactive", "scaleUpAt": 80, "scaleDownAt": 20})
}

/// A pool of two to six, with these parts besides utilization, grown as far as it goes.
async fn composite(mode: &str, bounds: Value) -> World {
    let world = World::with(settings()).await;
    world.load(95.0);
    let mut entry = object(json!({"start": 0, "end": 24}));
    entry.extend(object(bounds));
    let parts = json!([reactive(), {"type": "scheduled", "entries": [entry]}]);
    let policy = json!({"type": "composite", "mode": mode, "policies": parts, "cooldown": "10s"});
    let spec = json!({"nodeCount": 2, "minNodes": 1, "maxNodes": 6, "autoscaling": policy});
    ordered(&world, spec).await;
    world
}

#[tokio::test(start_paused = true)]
async fn r2_m9_a_schedule_in_a_composite_freezes_no_direction() {
    for (mode, bounds, most, least) in [
        ("max", json!({"minNodes": 2}), 6, 2),
        ("min", json!({"maxNodes": 4}), 4, 1),
        ("max", json!({"maxNodes": 4}), 4, 1),
    ] {
        let world = composite(mode, bounds.clone()).await;
        world.soon("it grows", |world| world.running() == most).await;
        world.keeps("no further", minutes(10), |world| world.running() == most).await;
        world.load(5.0);
        world.soon("it shrinks", |world| world.current().len() == least).await;
        world.keeps("no further", minutes(10), |w| w.current().len() == least).await;
    }
}

#[tokio::test(start_paused = true)]
async fn r2_m15_a_schedule_alone_ends() {
    let world = World::with(settings()).await;
    // It is midnight.
    let policy = json!({"type": "scheduled", "cooldown": "10s",
                        "entries": [{"cron": "0 0 * * *", "duration": "2h", "nodes": 4}]});
    let spec = json!({"nodeCount": 1, "minNodes": 1, "maxNodes": 6, "autoscaling": policy});
    ordered(&world, spec).await;
    world.soon("the entry holds", |world| world.running() == 4).await;
    world.keeps("while it is open", minutes(90), |world| world.running() == 4).await;
    world.pass(minutes(30)).await;
    world.soon("the smallest size holds", |world| world.current().len() == 1).await;
}

/// A pool that its autoscaler took from one node to four.
async fn grown() -> World {
    let world = World::with(settings()).await;
    world.load(95.0);
    let mut policy = reactive();
    policy["cooldown"] = json!("10s");
    let spec = json!({"nodeCount": 1, "minNodes": 1, "maxNodes": 4, "drainFor": "10m",
                      "autoscaling": policy});
    ordered(&world, spec).await;
    world.soon("it grows", |world| world.running() == 4 && world.is_ready()).await;
    world
}

#[tokio::test(start_paused = true)]
async fn r2_m10_taking_the_autoscaler_away_keeps_the_size() {
    let world = grown().await;
    world.patch(&user(), pool("a", "p"), json!({"autoscaling": null})).await.unwrap();
    world.keeps("its size stays", minutes(60), |w| w.cloud().living().len() == 4).await;
    let spec = world.get(pool("a", "p")).unwrap().spec.clone();
    assert_eq!(spec["nodeCount"], json!(4), "and everybody can see it");
    // As a whole spec, too, which says how many nodes to begin with.
    let world = grown().await;
    let whole = json!({"nodeCount": 1, "minNodes": 1, "maxNodes": 4, "drainFor": "10m"});
    let spec = Some(object(whole));
    let patch = Patch { spec, labels: None, strategy: Strategy::Replace };
    let resources = &world.control.resources;
    resources.patch(&user(), pool("a", "p"), &patch, Write::default()).await.unwrap();
    world.keeps("its size stays", minutes(60), |w| w.cloud().living().len() == 4).await;
}

#[tokio::test(start_paused = true)]
async fn r2_m10_without_its_autoscaler_a_pool_shrinks_in_steps() {
    let world = grown().await;
    world.cloud().each(|made| made.drains = false);
    let smaller = json!({"autoscaling": null, "nodeCount": 1});
    world.patch(&user(), pool("a", "p"), smaller).await.unwrap();
    let began = world.now();
    while 1 < world.cloud().living().len() && world.now().duration_since(began) < minutes(90) {
        assert!(world.draining() <= 1, "{} | {}", world.words(), world.said());
        world.pass(seconds(10)).await;
    }
    assert_eq!(world.cloud().living().len(), 1, "{}", world.said());
    assert!(minutes(28) < world.now().duration_since(began), "one after the other");
}

#[tokio::test(start_paused = true)]
async fn r2_m18_a_queue_that_nobody_sends_is_refused() {
    let world = World::with(settings()).await;
    world.create(&user(), cluster_named("a")).await.unwrap();
    let spec = |autoscaling: Value| object(json!({"nodeCount": 1, "autoscaling": autoscaling}));
    let refused = |spec| Creation { spec, ..pool_named("a", "p") };
    let queue = json!({"type": "queue"});
    let error = world.create(&user(), refused(spec(queue.clone()))).await.unwrap_err();
    let Error::Invalid(errors) = error else { panic!("{error}") };
    assert_eq!(errors[0].field, "spec.autoscaling.metrics.pendingJobs");
    world.create(&user(), pool_named("a", "p")).await.unwrap();
    let patched = world.patch(&user(), pool("a", "p"), json!({"autoscaling": queue})).await;
    assert!(matches!(patched, Err(Error::Invalid(_))), "{patched:?}");
    let jobs = json!({"http": {"url": "https://jobs.example/", "pointer": "/n"}});
    let known = json!({"type": "queue", "metrics": {"pendingJobs": jobs}});
    world.patch(&user(), pool("a", "p"), json!({"autoscaling": known})).await.unwrap();
}

/// So many jobs wait all the time, and nobody knows which nodes work.
struct Waiting(f64);

#[async_trait]
impl MetricsSource for Waiting {
    fn always(&self) -> bool {
        true
    }

    async fn measure(&self, _: &Measuring, beats: &RawMetrics) -> Result<RawMetrics, String> {
        let pending_jobs = Some(self.0);
        Ok(RawMetrics { at: beats.at, pending_jobs, ..RawMetrics::default() })
    }
}

#[tokio::test(start_paused = true)]
async fn r1_q11_a_queue_does_not_buy_by_what_it_bought() {
    let world = World::prepared(settings(), |outside| {
        let metrics = Some(Arc::new(Waiting(40.0)) as Arc<dyn MetricsSource>);
        outside.extensions = Extensions { metrics, ..Extensions::default() };
    })
    .await;
    let queue = json!({"type": "queue", "jobsPerNode": 10, "cooldown": "0s"});
    let spec = json!({"nodeCount": 1, "maxNodes": 12, "autoscaling": queue});
    ordered(&world, spec).await;
    world.soon("four take forty", |world| world.running() == 4).await;
    world.keeps("no more", minutes(30), |world| world.current().len() == 4).await;
}

#[tokio::test(start_paused = true)]
async fn r2_m24_a_listing_that_is_vouched_for_is_believed_however_seldom_it_comes() {
    let mut settings = settings();
    settings.machines.sweep_every = minutes(40);
    let world = World::with(settings).await;
    super::settle(&world, 3, json!({})).await;
    world.cloud().each(|made| (made.hidden, made.on) = (true, false));
    let frozen =
        |world: &World| world.provider_book("gcp").is_some_and(|book| book.frozen.is_some());
    world.keeps("until it is listed", minutes(30), |world| world.running() == 3).await;
    world.soon("it is frozen", frozen).await;
    world.control.instances.thaw(&admin(), "gcp", "deleted by hand").await.unwrap();
    for _ in 0..100 {
        assert!(!frozen(&world), "somebody vouched for it");
        world.pass(minutes(1)).await;
    }
    world.soon("others are there", |world| world.is_ready() && world.paid_for() == 3).await;
    assert_eq!(world.gone_because(|reason| *reason == Reason::Vanished).len(), 3);
}

impl World {
    fn paid_for(&self) -> usize {
        let yard = self.cloud().yard.lock().unwrap();
        yard.living().iter().filter(|made| made.on).count()
    }
}

#[tokio::test(start_paused = true)]
async fn r2_m7_a_price_that_becomes_known_later_is_used() {
    let world = World::with(settings()).await;
    world.cloud().lie(|lies| lies.no_prices = true);
    super::settle(&world, 2, json!({"machineType": "a3-highgpu-8g"})).await;
    assert_eq!(world.cost(), HourlyCost { known: 0.0, unpriced: 2 });
    world.cloud().tell_the_truth();
    let known = HourlyCost { known: 160.0, unpriced: 0 };
    world.soon("the offers came", |world| world.cost() == known).await;
    assert_eq!(world.data("cost_per_hour"), json!(160.0));
    let providers = world.control.instances.providers(&user()).unwrap();
    assert_eq!(providers.iter().find(|it| it.name == "gcp").unwrap().cost, known);
    // It counts against a limit from then on, although the price list goes away again.
    world.cloud().lie(|lies| lies.no_prices = true);
    let more = json!({"nodeCount": 3, "maxHourlyCost": 200.0});
    world.patch(&user(), pool("a", "p"), more).await.unwrap();
    world.soon("it says so", |world| world.said().starts_with("CostGuard")).await;
    world.keeps("none is bought", minutes(20), |world| world.cloud().living().len() == 2).await;
}

#[tokio::test(start_paused = true)]
async fn r2_m7_what_is_orphaned_or_held_is_in_the_sums() {
    let world = settled(2, json!({"machineType": "a3-highgpu-8g"})).await;
    let installation = world.store.read(|view| view.installation().map(|it| it.value.id));
    let tags = Tags {
        installation,
        pool: Some(world.get(pool("a", "p")).unwrap().id),
        instance: None,
        token: Some(Uuid::from_u128(7)),
    };
    world.cloud().stranger("p-lost", tags, world.now());
    world.soon("it is found", |world| world.orphans().len() == 1).await;
    assert_eq!(world.cost(), HourlyCost { known: 240.0, unpriced: 0 });
    let cost = |world: &World| {
        let providers = world.control.instances.providers(&admin()).unwrap();
        providers.iter().find(|it| it.name == "gcp").unwrap().cost.known
    };
    assert!((cost(&world) - 240.0).abs() < 1e-9);
    // Machines that are on their way out cost until they are gone for certain.
    world.cloud().lie(|lies| lies.keep_alive = true);
    world.patch(&user(), pool("a", "p"), json!({"nodeCount": 1})).await.unwrap();
    world.pass(minutes(10)).await;
    assert!((cost(&world) - 240.0).abs() < 1e-9);
    world.cloud().lie(|lies| lies.keep_alive = false);
    world.soon("it is gone", |world| (cost(world) - 160.0).abs() < 1e-9).await;
}

fn credentials() -> Settings {
    let mut settings = settings();
    let scope = CredentialScope { url: "https://prom.example/".to_owned(), tenant: user().tenant };
    settings.machines.metrics.credentials.insert("prom".to_owned(), scope);
    settings
}

#[tokio::test(start_paused = true)]
async fn r1_s2_credentials_are_for_their_address_and_their_tenant() {
    let world = World::with(credentials()).await;
    let mut stranger = user();
    stranger.tenant = "globex".to_owned();
    for caller in [user(), stranger.clone()] {
        world.create(&caller, cluster_named("a")).await.unwrap();
    }
    let spec = |url: &str| {
        let source = json!({"prometheus": {"url": url, "query": "up", "credentials": "prom"}});
        let mut policy = reactive();
        policy["metrics"] = json!({"utilization": source});
        object(json!({"nodeCount": 1, "autoscaling": policy}))
    };
    let own = "https://prom.example/";
    for (caller, url, fine) in [
        (user(), "https://evil.example/", false),
        (user(), "http://prom.example/", false),
        (stranger, own, false),
        (user(), own, true),
    ] {
        let creation = Creation { spec: spec(url), ..pool_named("a", "p") };
        match world.create(&caller, creation).await {
            Ok(_) => assert!(fine, "{url}"),
            Err(Error::Invalid(errors)) => {
                let at = "spec.autoscaling.metrics.utilization.prometheus.credentials";
                assert_eq!((fine, errors[0].field.as_str()), (false, at), "{url}");
            }
            Err(other) => panic!("{url}: {other}"),
        }
    }
    // Nor by a change, while other changes are as before.
    let evil = serde_json::Value::Object(spec("https://evil.example/"));
    let patched = world.patch(&user(), pool("a", "p"), evil).await;
    assert!(matches!(patched, Err(Error::Invalid(_))), "{patched:?}");
    world.patch(&user(), pool("a", "p"), json!({"nodeCount": 2})).await.unwrap();
}
