//! Walks over the whole route table: what is in it is served, and to nobody else.

use crate::world::{Answer, World};
use argosy_api::route::{Access, Operation, ROUTES, Route, Scope};
use serde_json::json;

/// Calls a route on a new cluster with a new node pool, so that no call disturbs another.
async fn call(world: &World, who: &str, route: &Route, count: usize) -> Answer {
    let cluster = world.cluster(&format!("cluster-{count}")).await;
    let pool = world.pool(&cluster, "workers").await;
    if matches!(route.operation, Operation::ForceDelete(_)) {
        let path = format!("{}/{cluster}", crate::world::CLUSTERS);
        assert_eq!(world.send("admin", &format!("DELETE {path}"), &[], "").await.status, 202);
    }
    let path = route.path.replace("{cluster_id}", &cluster).replace("{nodepool_id}", &pool);
    let condition = |kind: &str| json!({ "type": kind, "status": "True" });
    let body = match route.body.map(|body| body.schema) {
        Some("ClusterCreate" | "NodePoolCreate") => {
            json!({ "name": format!("new-{count}"), "spec": {}, "labels": { "team": "alpha" } })
        }
        Some("ResourcePatch") => json!({ "labels": { "color": "red" } }),
        Some("ForceDelete") => json!({ "reason": "a walk" }),
        Some("StatusReport") => json!({
            "adapter": "validation",
            "observed_generation": 1,
            "conditions": (["Available", "Applied", "Health"].map(condition)),
        }),
        Some(other) => panic!("{other} has no example here"),
        None => json!(null),
    };
    let body = if body.is_null() { String::new() } else { body.to_string() };
    world.send(who, &format!("{} {path}", route.method), &[], body).await
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
    for (count, route) in ROUTES.iter().enumerate().filter(|(_, route)| route.path.contains('{')) {
        let answer = call(&world, "stranger", route, count).await;
        assert_eq!(answer.status, 404, "{} {}: {}", route.method, route.path, answer.text);
        assert_eq!(answer.body["code"], "HYPERFLEET-NTF-001");
    }
    for path in ["/api/hyperfleet/v1/clusters", "/api/hyperfleet/v1/nodepools"] {
        let answer = world.send("stranger", &format!("GET {path}"), &[], "").await;
        assert_eq!((&answer.body["total"], &answer.body["items"]), (&json!(0), &json!([])));
    }
}

#[tokio::test]
async fn another_team_is_told_that_it_may_not() {
    let world = World::new().await;
    let routes = ROUTES.iter().filter(|route| {
        route.path.contains('{') && matches!(route.access, Access::Read | Access::Write)
    });
    for (count, route) in routes.enumerate() {
        let answer = call(&world, "rival", route, count).await;
        assert_eq!(answer.status, 403, "{} {}: {}", route.method, route.path, answer.text);
        assert_eq!(answer.body["error"], "PermissionDenied");
    }
    let answer = world.send("rival", "GET /api/hyperfleet/v1/clusters", &[], "").await;
    assert_eq!(answer.body["total"], 0);
}
