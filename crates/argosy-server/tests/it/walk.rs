//! Walks over the whole route table: what is in it is served, and to nobody else.

use crate::world::{Answer, NODES, World};
use argosy_api::route::{Access, BASE, OWN, Operation, ROUTES, Route, Scope};
use argosy_core::instance::Instance;
use argosy_core::inventory::{Installation, Orphan, ProviderBook};
use argosy_store::Txn;
use jiff::Timestamp;
use serde_json::json;
use std::sync::Arc;
use uuid::Uuid;

/// Calls a route on something new, so that no call disturbs another.
async fn call(world: &World, who: &str, route: &Route, count: usize) -> Answer {
    let path = if route.path.starts_with(OWN) {
        fleet_path(world, route, count).await
    } else {
        let cluster = world.cluster(&format!("cluster-{count}")).await;
        let pool = world.pool(&cluster, "workers").await;
        if matches!(route.operation, Operation::ForceDelete(_)) {
            let path = format!("{}/{cluster}", crate::world::CLUSTERS);
            assert_eq!(world.send("admin", &format!("DELETE {path}"), &[], "").await.status, 202);
        }
        route.path.replace("{cluster_id}", &cluster).replace("{nodepool_id}", &pool)
    };
    let condition = |kind: &str| json!({ "type": kind, "status": "True" });
    let rule =
        json!({ "name": "r", "condition": "event.event_type == 'xid'", "result": "degraded" });
    let policy = json!({ "rules": [rule], "pools": [format!("pool-{count}")] });
    let body = match route.body.map(|body| body.schema) {
        Some("ClusterCreate" | "NodePoolCreate") => {
            json!({ "name": format!("new-{count}"), "spec": {}, "labels": { "team": "alpha" } })
        }
        Some("ResourcePatch") => json!({ "labels": { "color": "red" } }),
        Some("ForceDelete" | "SafetyReason") => json!({ "reason": "a walk" }),
        Some("StatusReport") => json!({
            "adapter": "validation",
            "observed_generation": 1,
            "conditions": (["Available", "Applied", "Health"].map(condition)),
        }),
        Some("CommandCreate") => json!({ "type": "CORDON", "reason": "a walk" }),
        Some("CommandBatchCreate") => {
            json!({ "nodes": ["gpu-1"], "type": "CORDON", "reason": "a walk" })
        }
        Some("PolicyPut") => policy,
        Some("ExplainRequest") => json!({ "event": { "event_type": "xid" } }),
        Some("BacktestRequest") => json!({ "policy": policy }),
        Some("PoolResume") => json!({ "reason": "a walk" }),
        Some("InstanceTerminate") => json!({ "reason": "a walk" }),
        Some("InstanceAdopt") => json!({
            "provider": format!("cloud-{count}"),
            "machine_id": format!("m-{count}"),
            "nodepool": "workers",
            "cluster": format!("cluster-{count}"),
            "reason": "a walk",
        }),
        Some("SimulateRequest") => json!({
            "autoscaling": { "type": "reactive" },
            "history": [{ "at": "2026-03-01T12:00:00Z", "nodes": 2, "utilization": 50.0 }],
        }),
        Some(other) => panic!("{other} has no example here"),
        None => json!(null),
    };
    let body = if body.is_null() { String::new() } else { body.to_string() };
    world.send(who, &format!("{} {path}", route.method), &[], body).await
}

/// The path of a route of the node plane, about something new that it can be asked of.
async fn fleet_path(world: &World, route: &Route, count: usize) -> String {
    let (node, policy, pool) =
        (format!("node-{count}"), format!("policy-{count}"), format!("pool-{count}"));
    let mut command = String::new();
    if route.path.contains("{node_id}") || route.path.contains("{command_id}") {
        world.node(&node).await;
        let first = [(Operation::DeleteNode, "TERMINATE"), (Operation::GetCommand, "CORDON")];
        if let Some((_, kind)) = first.iter().find(|(of, _)| *of == route.operation) {
            // Each walk ends a node, and none comes instead.
            let body = json!({ "type": kind, "reason": "a walk", "over_budget": true });
            let issued = world.json(&format!("POST {NODES}/{node}/commands"), body).await;
            command = issued.body["id"].as_str().unwrap().to_owned();
        }
    }
    if route.operation == Operation::Pause {
        world.node_with(&node, |new| new.pool = Some(pool.clone())).await;
    }
    if route.path.contains("{policy}") && route.operation != Operation::PutPolicy {
        let rule = json!({ "name": "r", "condition": "true", "result": "degraded" });
        let body = json!({ "rules": [rule], "pools": [pool] });
        let made = world.json(&format!("PUT {OWN}/policies/{policy}"), body).await;
        assert_eq!(made.status, 200, "{}", made.text);
    }
    let mut of_pool = String::new();
    let machines = ["/instances", "/orphans", "/providers/", "/nodepools/", "/recovery/"];
    if machines.iter().any(|part| route.path.contains(part)) {
        let cluster = world.cluster(&format!("cluster-{count}")).await;
        of_pool = world.pool(&cluster, "workers").await;
        own_machines(world, &of_pool, count).await;
    }
    let required = if route.query().any(|known| known.required) { "?reason=walk" } else { "" };
    let path = route
        .path
        .replace("{node_id}", &node)
        .replace("{command_id}", &command)
        .replace("{policy}", &policy)
        .replace(
            "{pool}",
            if route.operation == Operation::ConfirmRecovery { &of_pool } else { &pool },
        )
        .replace("{instance_id}", &format!("w-{count}"))
        .replace("{machine_id}", &format!("m-{count}"))
        .replace("{provider}", &format!("cloud-{count}"))
        .replace("{nodepool_id}", &of_pool)
        .replace("{scope}", "fleet");
    format!("{path}{required}")
}

/// A machine of a pool, one that no record knows, and their provider.
async fn own_machines(world: &World, pool: &str, count: usize) {
    const AT: &str = "2026-03-01T12:00:00Z";
    let provider = format!("cloud-{count}");
    let us = Uuid::from_u128(7);
    let instance: Instance = serde_json::from_value(json!({
        "id": format!("w-{count}"), "tenant": "one", "pool": pool, "pool_name": "workers", "number": 1,
        "token": us, "ordered_at": AT, "why": "a walk",
        "order": { "provider": provider, "region": "r", "machine_type": "t" },
        "state": { "state": "running", "machine": format!("i-{count}"), "node": "n", "since": AT },
    }))
    .unwrap();
    let orphan: Orphan = serde_json::from_value(json!({
        "provider": provider, "machine": format!("m-{count}"), "name": format!("o-{count}"),
        "region": "r", "zone": "", "machine_type": "t", "first_seen": AT,
        "tags": { "installation": us, "pool": pool },
    }))
    .unwrap();
    let mut txn = Txn::at(Timestamp::UNIX_EPOCH);
    txn.overwrite(Arc::new(Installation {
        id: us,
        since: Timestamp::UNIX_EPOCH,
        incarnation: argosy_core::incarnation::Incarnation::default(),
    }));
    txn.create(Arc::new(instance));
    txn.create(Arc::new(orphan));
    txn.create(Arc::new(ProviderBook { name: provider, ..ProviderBook::default() }));
    world.store.commit(txn).await.unwrap();
}

/// What concerns more than the caller's own: policies judge the nodes of every team, and the breaker of
/// the fleet is every tenant's. Where there are such walls, only administrators may.
fn concerns_others(route: &Route) -> bool {
    matches!(
        route.operation,
        Operation::PutPolicy | Operation::DeletePolicy | Operation::CloseBreaker
    )
}

#[tokio::test]
async fn every_route_is_served_as_the_table_says() {
    let world = World::new().await;
    for (count, route) in ROUTES.iter().enumerate() {
        let answer = call(&world, "admin", route, count).await;
        let status = answer.status.as_u16();
        // A node pool is never created outside a cluster.
        let refused = route.operation == Operation::Create(Scope::NodePools) && status == 422;
        let declared = refused || route.answers.iter().any(|answer| answer.status == status);
        assert!(declared, "{} {}: {status} {}", route.method, route.path, answer.text);
        let has_body = route
            .answers
            .iter()
            .any(|declared| declared.status == status && !declared.content.is_empty());
        assert_eq!(!answer.text.is_empty(), has_body || refused, "{}", route.path);
        assert_eq!(answer.header("x-request-id").len(), 36, "{}", route.path);
    }
}

#[tokio::test]
async fn every_route_refuses_whom_it_must() {
    let world = World::new().await;
    let callers = ["", "viewer", "operator", "admin", "adapter"];
    let mut count = 0;
    for route in ROUTES.iter() {
        let allowed: &[&str] = match route.access {
            Access::Public => &callers,
            Access::Read => &["viewer", "operator", "admin", "adapter"],
            Access::Write if concerns_others(route) => &["admin"],
            Access::Write => &["operator", "admin"],
            Access::Report => &["admin", "adapter"],
            Access::Force | Access::Administer => &["admin"],
        };
        for who in callers {
            count += 1;
            let answer = call(&world, who, route, count).await;
            let place = format!("{who:?} {} {}: {}", route.method, route.path, answer.text);
            match (who, allowed.contains(&who)) {
                (_, true) => assert!(![401, 403].contains(&answer.status.as_u16()), "{place}"),
                ("", false) => {
                    assert_eq!(answer.status, 401, "{place}");
                    assert_eq!(answer.body["code"], "HYPERFLEET-AUT-001", "{place}");
                }
                (_, false) => {
                    assert_eq!(answer.status, 403, "{place}");
                    assert_eq!(answer.body["error"], "PermissionDenied", "{place}");
                }
            }
        }
    }
}

#[tokio::test]
async fn another_tenant_cannot_tell_that_anything_exists() {
    let world = World::new().await;
    // Each tenant has pools, and names for policies, of its own; a breaker or a provider may be everybody's.
    let own = |route: &&Route| {
        matches!(
            route.operation,
            Operation::PutPolicy
                | Operation::Pause
                | Operation::Resume
                | Operation::CloseBreaker
                | Operation::ThawProvider
        )
    };
    let named = ROUTES.iter().filter(|route| route.path.contains('{') && !own(route));
    for (count, route) in named.enumerate() {
        let answer = call(&world, "stranger", route, count).await;
        assert_eq!(answer.status, 404, "{} {}: {}", route.method, route.path, answer.text);
        let node = route.path.contains("{node_id}");
        let code = if node { "HYPERFLEET-NTF-002" } else { "HYPERFLEET-NTF-001" };
        assert_eq!(answer.body["code"], code, "{}", route.path);
    }
    let lists = ["/api/hyperfleet/v1/clusters", "/api/hyperfleet/v1/nodepools"].map(str::to_owned);
    for path in
        lists.into_iter().chain(["nodes", "commands", "findings"].map(|l| format!("{OWN}/{l}")))
    {
        let answer = world.send("stranger", &format!("GET {path}"), &[], "").await;
        assert_eq!(
            (&answer.body["total"], &answer.body["items"]),
            (&json!(0), &json!([])),
            "{path}"
        );
    }
}

#[tokio::test]
async fn another_team_is_told_that_it_may_not() {
    let world = World::new().await;
    let routes = ROUTES.iter().filter(|route| {
        route.path.starts_with(BASE)
            && route.path.contains('{')
            && matches!(route.access, Access::Read | Access::Write)
    });
    for (count, route) in routes.enumerate() {
        let answer = call(&world, "rival", route, count).await;
        assert_eq!(answer.status, 403, "{} {}: {}", route.method, route.path, answer.text);
        assert_eq!(answer.body["error"], "PermissionDenied");
    }
    let answer = world.send("rival", "GET /api/hyperfleet/v1/clusters", &[], "").await;
    assert_eq!(answer.body["total"], 0);
}
