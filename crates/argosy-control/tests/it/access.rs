//! Who sees and does what.

use crate::world::{
    World, admin, cluster, cluster_named, labelled, of_team, of_tenant, pool, pool_named, settings,
    user, with_adapters,
};
use argosy_control::resource::{List, Target, Write};
use argosy_control::{Control, Error, Settings};
use argosy_core::access::{Authorization, Caller, Role};
use argosy_core::resource::Kind;
use argosy_core::search::{Filter, Order};
use serde_json::json;

fn quiet() -> Settings {
    with_adapters(&[])
}

pub(crate) fn names(control: &Control, caller: &Caller, kind: Kind) -> Vec<String> {
    let list = List {
        kind,
        cluster: None,
        filter: Filter::everything(),
        order: Order::parse("name asc").unwrap(),
        page: 1,
        size: 100,
    };
    let page = control.resources.list(caller, &list).unwrap();
    assert_eq!(page.total, page.items.len());
    page.items.iter().map(|item| item.value.name.to_string()).collect()
}

fn word<T>(outcome: Result<T, Error>) -> &'static str {
    match outcome {
        Ok(_) => "yes",
        Err(Error::Forbidden(_)) => "forbidden",
        Err(Error::NotFound { .. } | Error::ClusterNotFound { .. }) => "not found",
        Err(Error::Deleted { .. }) => "deleted",
        Err(other) => panic!("{other}"),
    }
}

#[tokio::test(start_paused = true)]
async fn full_journey_6_another_teams_cluster_is_forbidden_and_not_listed() {
    let world = World::with(quiet()).await;
    let (alpha, beta) = (of_team("alpha"), of_team("beta"));
    let team = json!({"team": "alpha"});
    world.create(&alpha, labelled(cluster_named("a"), team)).await.unwrap();
    // The pool carries no label of its own: its cluster's counts.
    world.create(&alpha, pool_named("a", "p")).await.unwrap();
    let resources = &world.control.resources;

    let id = world.get(cluster("a")).unwrap().id.to_string();
    let pool_id = world.get(pool("a", "p")).unwrap().id.to_string();
    let flat = Target { cluster: None, ..pool("a", &pool_id) };
    for target in [cluster("a"), cluster(&id), pool("a", "p"), flat] {
        assert_eq!(word(resources.get(&alpha, target)), "yes");
        assert_eq!(word(resources.get(&beta, target)), "forbidden", "{target:?}");
        assert_eq!(word(resources.statuses(&beta, target)), "forbidden");
        assert_eq!(word(world.control.adapters.history(&beta, target, None, 1).await), "forbidden");
        assert_eq!(word(world.patch(&beta, target, json!({"x": 1})).await), "forbidden");
        assert_eq!(word(resources.delete(&beta, target, Write::default()).await), "forbidden");
        assert_eq!(word(resources.get(&admin(), target)), "yes");
        assert_eq!(word(resources.get(&of_tenant("other"), target)), "not found");
        let stranger = of_tenant("other");
        assert_eq!(word(world.patch(&stranger, target, json!({"x": 1})).await), "not found");
    }
    assert_eq!(word(world.create(&beta, pool_named("a", "q")).await), "forbidden");
    for kind in Kind::ALL {
        assert_eq!(names(&world.control, &alpha, kind).len(), 1);
        assert_eq!(names(&world.control, &beta, kind).len(), 0);
        assert_eq!(names(&world.control, &admin(), kind).len(), 1);
        assert_eq!(names(&world.control, &of_tenant("other"), kind).len(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn what_remains_of_another_teams_resources_is_as_private_as_they_were() {
    let world = World::with(quiet()).await;
    let alpha = of_team("alpha");
    let team = json!({"team": "alpha"});
    let made = world.create(&alpha, labelled(cluster_named("a"), team)).await.unwrap();
    let id = made.resource.value.id.to_string();
    let made = world.create(&alpha, pool_named("a", "p")).await.unwrap();
    let pool_id = made.resource.value.id.to_string();
    world.control.resources.delete(&alpha, cluster("a"), Write::default()).await.unwrap();
    world.until_gone(cluster("a")).await;
    let flat = Target { cluster: None, ..pool("a", &pool_id) };
    for target in [cluster("a"), cluster(&id), flat] {
        let see = |caller: &Caller| word(world.control.resources.get(caller, target));
        assert_eq!(see(&alpha), "deleted", "{target:?}");
        assert_eq!(see(&admin()), "deleted");
        assert_eq!(see(&of_team("beta")), "not found", "{target:?}");
        assert_eq!(see(&of_tenant("other")), "not found");
    }
}

#[tokio::test(start_paused = true)]
async fn a_team_writes_only_under_its_own_name() {
    let world = World::with(quiet()).await;
    let alpha = of_team("alpha");
    let theirs = labelled(cluster_named("b"), json!({"team": "beta"}));
    let refused = world.create(&alpha, theirs).await.unwrap_err();
    assert!(refused.to_string().contains("team 'beta'"), "{refused}");
    let mine = labelled(cluster_named("a"), json!({"team": "alpha"}));
    world.create(&alpha, mine).await.unwrap();
    let moved = world.relabel(&alpha, cluster("a"), json!({"team": "beta"})).await;
    assert_eq!(word(moved), "forbidden");
    let pool_of_theirs = labelled(pool_named("a", "p"), json!({"team": "beta"}));
    assert_eq!(word(world.create(&alpha, pool_of_theirs).await), "forbidden");
    let both = Caller { teams: vec!["alpha".into(), "beta".into()], ..alpha.clone() };
    let moved = world.relabel(&both, cluster("a"), json!({"team": "beta"})).await;
    assert_eq!(word(moved), "yes");
    assert_eq!(word(world.control.resources.get(&alpha, cluster("a"))), "forbidden");
}

#[tokio::test(start_paused = true)]
async fn a_viewer_looks_and_changes_nothing() {
    let world = World::with(quiet()).await;
    world.cluster("a").await;
    for role in [Role::Viewer, Role::Adapter] {
        let caller = Caller { role, ..user() };
        let resources = &world.control.resources;
        assert_eq!(word(resources.get(&caller, cluster("a"))), "yes");
        assert_eq!(word(world.create(&caller, cluster_named("b")).await), "forbidden");
        assert_eq!(word(world.patch(&caller, cluster("a"), json!({"x": 1})).await), "forbidden");
        let delete = resources.delete(&caller, cluster("a"), Write::default()).await;
        assert_eq!(word(delete), "forbidden");
        assert_eq!(word(resources.force_delete(&caller, cluster("a"), "no").await), "forbidden");
        assert_eq!(word(world.control.audit.list(&caller, None, 1).await), "forbidden");
        assert_eq!(word(world.control.audit.verify(&caller).await), "forbidden");
    }
}

#[tokio::test(start_paused = true)]
async fn without_team_authorization_only_tenants_matter() {
    let none = Settings { authorization: Authorization::None, ..settings() };
    let world = World::with(none).await;
    let mine = labelled(cluster_named("a"), json!({"team": "alpha"}));
    world.create(&of_team("alpha"), mine).await.unwrap();
    assert_eq!(word(world.control.resources.get(&of_team("beta"), cluster("a"))), "yes");
    let stranger = of_tenant("other");
    assert_eq!(word(world.control.resources.get(&stranger, cluster("a"))), "not found");
    // The same name is another thing there.
    world.create(&stranger, cluster_named("a")).await.unwrap();
    let mine = world.control.resources.get(&user(), cluster("a")).unwrap();
    let theirs = world.control.resources.get(&stranger, cluster("a")).unwrap();
    assert_ne!(mine.value.id, theirs.value.id);
}
