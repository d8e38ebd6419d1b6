//! Pools become nodes: bought, tended, replaced and returned, whatever the cloud does.

use crate::world::{World, cluster_named, object, pool, pool_named, settings, user};
use argosy_control::resource::Creation;
use argosy_core::status::Phase;
use serde_json::{Value, json};

/// A cluster `a` with a pool `p` of this spec.
pub(crate) async fn ordered(world: &World, spec: Value) {
    world.create(&user(), cluster_named("a")).await.unwrap();
    let creation = Creation { spec: object(spec), ..pool_named("a", "p") };
    world.create(&user(), creation).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_pool_of_five_becomes_five_nodes_grows_to_eight_and_leaves_nothing_behind() {
    let world = World::with(settings()).await;
    ordered(&world, json!({"nodeCount": 5, "machineType": "n1-standard-4"})).await;
    world.until_phase(pool("a", "p"), Phase::Ready).await;
    assert_eq!(world.running(), 5);
    assert_eq!(world.cloud().living().len(), 5);
    let patched = world.patch(&user(), pool("a", "p"), json!({"nodeCount": 8})).await.unwrap();
    assert_eq!(patched.value.generation, 2);
    world.until("eight run", |world| world.running() == 8).await;
    world.until_phase(pool("a", "p"), Phase::Ready).await;
    assert_eq!(world.cloud().yard.lock().unwrap().count("create"), 8, "not one too many");
    world.delete(pool("a", "p")).await;
    world.until_gone(pool("a", "p")).await;
    assert_eq!(world.cloud().living(), [""; 0]);
    assert_eq!(world.current().len(), 0);
}
