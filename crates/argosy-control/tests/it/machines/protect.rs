//! Review 2: what a deletion, a label and a pause keep, and for how long. Each row by its ID.

use super::{minutes, seconds, settle, settled};
use crate::world::{World, admin, cluster, object, pool, pool_named, settings, spec_patch, user};
use crate::yard::SICK;
use argosy_control::Error;
use argosy_control::command::NewCommand;
use argosy_control::resource::{Creation, Write};
use argosy_control::safety::Beyond;
use argosy_core::access::Caller;
use argosy_core::breaker::{Breaker, Pause, Scope};
use argosy_core::command::CommandKind;
use argosy_core::instance::State;
use argosy_core::machine::Trouble;
use argosy_store::Txn;
use jiff::Timestamp;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

const LABEL: &str = "argosy.dev/protected";

/// One word for what came of it: `yes`, `conflict`, `forbidden`, `invalid`.
fn came<T>(outcome: Result<T, Error>) -> &'static str {
    match outcome {
        Ok(_) => "yes",
        Err(Error::Precondition(why)) => {
            assert!(why.contains(LABEL), "{why}");
            "conflict"
        }
        Err(Error::Forbidden(why)) => {
            assert!(why.contains("admin"), "{why}");
            "forbidden"
        }
        Err(Error::Invalid(errors)) => {
            assert!(errors.iter().all(|error| error.field == "reason"), "{errors:?}");
            "invalid"
        }
        Err(other) => panic!("{other}"),
    }
}

fn forced(reason: &str) -> Write {
    Write { force: true, reason: Some(reason.to_owned()), ..Write::default() }
}

fn at_once(reason: &str) -> Write {
    Write { now: true, reason: Some(reason.to_owned()), ..Write::default() }
}

impl World {
    async fn set(&self, caller: &Caller, spec: Value, write: Write) -> Result<(), Error> {
        let resources = &self.control.resources;
        resources.patch(caller, pool("a", "p"), &spec_patch(spec), write).await.map(drop)
    }

    /// Deletes the pool, or its cluster.
    async fn end(&self, caller: &Caller, whole: bool, write: Write) -> Result<(), Error> {
        let target = if whole { cluster("a") } else { pool("a", "p") };
        self.control.resources.delete(caller, target, write).await.map(drop)
    }

    /// What keeps machines that are to go.
    fn guards(&self) -> Vec<String> {
        let blocked = |record: &argosy_core::instance::Instance| record.blocked.clone();
        self.current().iter().filter_map(|it| blocked(it)).map(|it| it.guard).collect()
    }

    async fn terminate_node(&self, node: &str) -> Result<(), Error> {
        let new = NewCommand {
            kind: CommandKind::Terminate,
            parameters: BTreeMap::new(),
            reason: "wrong rack".to_owned(),
            drain_for: None,
            idempotency_key: None,
            if_revision: None,
            dry_run: false,
            beyond: Beyond::Refuse,
        };
        self.control.commands.issue(&user(), node, new).await.map(drop)
    }
}

#[tokio::test(start_paused = true)]
async fn r2_m19_a_protected_pool_or_cluster_stays_as_large_as_it_is() {
    for whole in [false, true] {
        let world = settled(4, json!({"image": "one", "drainFor": "1m"})).await;
        let target = if whole { cluster("a") } else { pool("a", "p") };
        world.relabel(&user(), target, json!({LABEL: "true"})).await.unwrap();
        let one = world.members().remove(0);
        let default = Write::default;
        assert_eq!(came(world.end(&user(), false, default()).await), "conflict");
        assert_eq!(came(world.end(&admin(), true, default()).await), "conflict");
        assert_eq!(came(world.end(&user(), false, forced("x")).await), "forbidden");
        assert_eq!(came(world.end(&admin(), false, forced(" ")).await), "invalid");
        assert_eq!(came(world.set(&user(), json!({"nodeCount": 2}), default()).await), "conflict");
        assert_eq!(came(world.set(&user(), json!({"image": "two"}), default()).await), "conflict");
        let instances = &world.control.instances;
        assert_eq!(
            came(instances.terminate(&admin(), &one, "x", false, Beyond::Refuse).await),
            "conflict"
        );
        assert_eq!(came(world.terminate_node(&one).await), "conflict");
        assert_eq!(came(world.set(&user(), json!({"nodeCount": 5}), default()).await), "yes");
        world.soon("it grows", |world| world.running() == 5 && world.is_ready()).await;
        assert_eq!(
            came(world.set(&admin(), json!({"nodeCount": 2}), forced("two do")).await),
            "yes"
        );
        world.soon("it is forced", |world| world.cloud().living().len() == 2).await;
        assert_eq!(world.audited("patch").await, "two do");
        world.relabel(&user(), target, json!({LABEL: null})).await.unwrap();
        assert_eq!(came(world.end(&user(), whole, default()).await), "yes");
        world.soon("it is gone", |world| world.get(pool("a", "p")).is_none()).await;
    }
}

#[tokio::test(start_paused = true)]
async fn r2_m19_an_admin_deletes_what_is_protected_by_force() {
    let world = settled(2, json!({"drainFor": "1m"})).await;
    world.relabel(&user(), pool("a", "p"), json!({LABEL: "true"})).await.unwrap();
    assert_eq!(came(world.end(&admin(), true, forced("moved to b")).await), "yes");
    world.soon("it is gone", |world| world.get(cluster("a")).is_none()).await;
    assert_eq!(world.cloud().living().len(), 0);
    assert_eq!(world.audited("delete").await, "moved to b");
}

#[tokio::test(start_paused = true)]
async fn r2_m19_no_autoscaler_shrinks_a_protected_pool() {
    let world = World::with(settings()).await;
    world.cloud().lie(|lies| lies.load = 95.0);
    let policy = json!({"type": "reactive", "scaleUpAt": 80, "scaleDownAt": 20, "cooldown": "10s"});
    let spec = json!({"nodeCount": 2, "minNodes": 1, "maxNodes": 4, "autoscaling": policy});
    super::ordered(&world, spec).await;
    world.soon("it grows", |world| world.running() == 4).await;
    world.relabel(&user(), pool("a", "p"), json!({LABEL: "true"})).await.unwrap();
    world.cloud().lie(|lies| lies.load = 5.0);
    world.cloud().each(|made| made.load = 5.0);
    world.soon("it is said", |world| world.guards().contains(&"Protected".to_owned())).await;
    world.keeps("all four stay", minutes(30), |world| world.running() == 4).await;
    assert!(world.said().contains("its node pool is labelled"), "{}", world.said());
    world.relabel(&user(), pool("a", "p"), json!({LABEL: "false"})).await.unwrap();
    world
        .soon("it shrinks", |world| world.cloud().living().len() == 1 && world.guards().is_empty())
        .await;
}

#[tokio::test(start_paused = true)]
async fn r2_m19_a_protected_node_is_never_chosen() {
    let world = settled(4, json!({"image": "one", "drainFor": "1m", "minReady": "0s"})).await;
    // The oldest goes first otherwise.
    let (kept, other) = (world.members().remove(0), world.members().remove(1));
    let nodes = &world.control.nodes;
    for node in [&kept, &other] {
        nodes.protect(&user(), node, true, "runs the acceptance test").await.unwrap();
    }
    let lives = |world: &World| world.cloud().living().contains(&kept);
    assert_eq!(
        came(world.set(&user(), json!({"nodeCount": 1}), Write::default()).await),
        "conflict"
    );
    assert_eq!(came(world.end(&user(), true, Write::default()).await), "conflict");
    assert_eq!(came(world.terminate_node(&kept).await), "conflict");
    nodes.protect(&user(), &other, false, "one is enough").await.unwrap();
    world.set(&user(), json!({"nodeCount": 2}), Write::default()).await.unwrap();
    world.soon("two went", |world| world.cloud().living().len() == 2).await;
    world.set(&user(), json!({"image": "two"}), Write::default()).await.unwrap();
    let updated = |world: &World| {
        world.current().iter().any(|it| it.order.image == "two")
            && world.cloud().living().len() == 2
    };
    world.soon("the other is replaced", |world| updated(world) && world.running() == 2).await;
    world.keeps("it stays", minutes(10), lives).await;
    assert_eq!(world.guards(), ["Protected"]);
    world.turn(&kept, SICK);
    world.soon("a person is asked", |world| world.said().starts_with("NeedsHuman")).await;
    world
        .keeps("it stays, and nothing is bought for it", minutes(30), |world| {
            lives(world) && world.cloud().living().len() == 2
        })
        .await;
    assert!(world.said().contains("its node is labelled"), "{}", world.said());
    nodes.protect(&user(), &kept, false, "it is over").await.unwrap();
    world.soon("it is replaced", |world| !lives(world) && world.running() == 2).await;
}

#[tokio::test(start_paused = true)]
async fn r2_m19_everything_new_is_protected_where_the_deployment_wants_it() {
    let mut settings = settings();
    settings.protect_new = true;
    let world = World::with(settings).await;
    settle(&world, 1, json!({})).await;
    for target in [cluster("a"), pool("a", "p")] {
        assert_eq!(world.get(target).unwrap().labels.get(LABEL), Some("true"));
    }
    world.relabel(&user(), cluster("a"), json!({LABEL: null})).await.unwrap();
    assert_eq!(came(world.end(&user(), true, Write::default()).await), "conflict");
    world.relabel(&user(), pool("a", "p"), json!({LABEL: null})).await.unwrap();
    assert_eq!(came(world.end(&user(), true, Write::default()).await), "yes");
}

#[tokio::test(start_paused = true)]
async fn r2_m4_where_nothing_runs_a_deletion_ends_in_seconds() {
    // It never got a machine, and asks for one again and again.
    let world = World::with(settings()).await;
    let (code, message) = ("ZONE_RESOURCE_POOL_EXHAUSTED".to_owned(), "none left".to_owned());
    world.cloud().lie(|lies| lies.refuse = Some(Trouble::Capacity { code, message }));
    super::ordered(&world, json!({"nodeCount": 4})).await;
    world.pass(minutes(5)).await;
    let began = world.now();
    world.delete(pool("a", "p")).await;
    world.soon("it is gone", |world| world.get(pool("a", "p")).is_none()).await;
    let took = world.now().duration_since(began);
    assert!(took < seconds(10), "{took}");
}

#[tokio::test(start_paused = true)]
async fn r2_m4_an_admin_deletes_without_a_drain_also_after_it_has_begun() {
    for whole in [false, true] {
        let world = settled(4, json!({"drainFor": "30m"})).await;
        world.cloud().each(|made| made.drains = false);
        world.end(&user(), whole, Write::default()).await.unwrap();
        let busy = |world: &World| world.cloud().asked_for("terminate") == 0;
        world.keeps("they have their time", minutes(5), busy).await;
        assert_eq!(came(world.end(&user(), whole, at_once("x")).await), "forbidden");
        assert_eq!(came(world.end(&admin(), whole, at_once("")).await), "invalid");
        world.keeps("they still have", minutes(5), busy).await;
        let began = world.now();
        assert_eq!(came(world.end(&admin(), whole, at_once("power is off")).await), "yes");
        world.soon("it is gone", |world| world.get(pool("a", "p")).is_none()).await;
        assert!(world.now().duration_since(began) < minutes(5), "{}", world.now());
        assert_eq!(world.audited("delete").await, "power is off");
        // Once more is the same as once.
        let world = settled(2, json!({"drainFor": "30m"})).await;
        world.cloud().each(|made| made.drains = false);
        let began = world.now();
        assert_eq!(came(world.end(&admin(), whole, at_once("power is off")).await), "yes");
        world.soon("it is gone", |world| world.get(pool("a", "p")).is_none()).await;
        assert!(world.now().duration_since(began) < minutes(5), "{}", world.now());
    }
}

#[tokio::test(start_paused = true)]
async fn r2_m20_a_pause_and_a_breaker_go_with_their_pool() {
    let world = settled(2, json!({})).await;
    let paused = world.control.safety.pause(&user(), Some("p"), "incident 1").await.unwrap();
    assert_eq!(paused.value.pool.as_deref(), Some("a.p"), "by its own name");
    assert_eq!(paused.value.pool_id, Some(world.get(pool("a", "p")).unwrap().id));
    let again = world.control.safety.pause(&user(), Some("a/p"), "incident 2").await.unwrap();
    assert_eq!(world.pauses().len(), 1, "{again:?}");
    let mut txn = Txn::at(world.now());
    let scope = Scope::Pool { tenant: "acme".to_owned(), pool: "a.p".to_owned() };
    let closed = None;
    let breaker = Breaker { reason: "three".to_owned(), closed, ..Breaker::unknown(scope) };
    txn.overwrite(Arc::new(Breaker { last_bad_at: world.now(), ..breaker }));
    world.store.commit(txn).await.unwrap();
    world.delete(pool("a", "p")).await;
    world.soon("it is gone", |world| world.get(pool("a", "p")).is_none()).await;
    assert_eq!(world.pauses(), []);
    assert_eq!(world.store.read(|view| view.breakers().count()), 0);
    // One of the same name has nothing to do with it.
    let spec = object(json!({"nodeCount": 4}));
    world.create(&user(), Creation { spec, ..pool_named("a", "p") }).await.unwrap();
    world.soon("the pool is ready", |world| world.is_ready() && world.running() == 4).await;
    world.set(&user(), json!({"nodeCount": 2}), Write::default()).await.unwrap();
    world.soon("it shrinks", |world| world.cloud().living().len() == 2 && world.is_ready()).await;
}

#[tokio::test(start_paused = true)]
async fn r2_m20_a_short_name_means_one_pool_or_none() {
    let world = settled(1, json!({})).await;
    world.cluster("b").await;
    world.pool("b", "p").await;
    let pause = async |name: &str| {
        let paused = world.control.safety.pause(&user(), Some(name), "incident").await;
        match paused {
            Ok(paused) => paused.value.pool.clone().unwrap(),
            Err(Error::Invalid(errors)) => errors[0].message.clone(),
            Err(other) => panic!("{other}"),
        }
    };
    assert_eq!(pause("p").await, "2 pools are named 'p'; say which one: a.p, b.p");
    assert_eq!(pause("q").await.split(';').next().unwrap(), "there is no pool 'q'");
    assert_eq!(pause("b/p").await, "b.p");
    assert_eq!(pause("a.p").await, "a.p");
    let resume = async |name: &str| world.control.safety.resume(&user(), Some(name)).await.unwrap();
    assert!(!resume("p").await);
    assert!(resume("a/p").await && resume("b.p").await);
    assert_eq!(world.pauses(), []);
}

#[tokio::test(start_paused = true)]
async fn r2_m20_a_pause_from_before_it_knew_its_pool_is_brought_up_to_date() {
    let world = settled(2, json!({})).await;
    let at = Timestamp::UNIX_EPOCH;
    let text = |text: &str| text.to_owned();
    let mut txn = Txn::at(world.now());
    for name in ["p", "gone.p"] {
        let (by, reason) = (text("ann"), text("incident"));
        let (pool, pool_id) = (Some(text(name)), None);
        txn.create(Arc::new(Pause { tenant: text("acme"), pool, pool_id, by, reason, at }));
    }
    world.store.commit(txn).await.unwrap();
    let world = world.restart(settings()).await;
    let id = world.get(pool("a", "p")).unwrap().id;
    let known = || world.pauses().into_iter().find(|pause| pause.pool_id == Some(id));
    world.soon("it knows", |_| known().is_some()).await;
    assert_eq!(known().unwrap().pool.as_deref(), Some("a.p"));
    assert_eq!(world.pauses().len(), 2, "one of nobody's stays as it is");
}

#[tokio::test(start_paused = true)]
async fn r2_m3_what_is_held_is_shown_with_what_keeps_it_and_is_taken_back_first() {
    let world = World::with(settings()).await;
    world.cloud().lie(|lies| lies.load = 95.0);
    let policy = json!({"type": "reactive", "scaleUpAt": 80, "scaleDownAt": 20, "cooldown": "10s"});
    let spec = json!({"nodeCount": 2, "minNodes": 1, "maxNodes": 4, "autoscaling": policy});
    super::ordered(&world, spec).await;
    world.soon("it grows", |world| world.running() == 4).await;
    world.control.safety.pause(&user(), Some("a.p"), "incident 1").await.unwrap();
    world.cloud().each(|made| made.load = 5.0);
    world.soon("three are held", |world| world.guards() == ["Paused"; 3]).await;
    let held = world.current().into_iter().find_map(|it| it.blocked.clone()).unwrap();
    assert_eq!(held.message, "automatic action is paused by ann: incident 1");
    let bought = world.cloud().asked_for("create");
    world.cloud().each(|made| made.load = 95.0);
    world.soon("none is", |world| world.guards().is_empty()).await;
    let all = |record: &Arc<argosy_core::instance::Instance>| {
        matches!(record.state, State::Running { .. })
    };
    assert!(world.current().iter().all(all), "{}", world.states());
    assert_eq!(world.cloud().asked_for("create"), bought, "nothing is bought beside them");
}

impl World {
    fn pauses(&self) -> Vec<Pause> {
        self.store.read(|view| view.pauses().map(|it| (*it.value).clone()).collect())
    }

    /// The reason of the last audit record of an action.
    async fn audited(&self, action: &str) -> String {
        let mut records = self.records(action).await;
        records.sort_by_key(|record| record.at);
        records.iter().rev().find_map(|record| record.reason.clone()).unwrap_or_default()
    }
}
