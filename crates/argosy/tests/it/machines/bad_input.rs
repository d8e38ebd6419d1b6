//! What people and clouds get wrong: clear words, and nothing bought or destroyed by mistake.

use super::*;
use crate::harness::{Server, Setup};

fn gcp() -> Value {
    json!({ "provider": "gcp", "region": "us-east1" })
}

async fn cluster(server: &Server) -> String {
    let created = server.create("clusters", &json!({ "name": "default", "spec": gcp() })).await;
    let path = format!("clusters/{}", text(&created, "/id"));
    server.ready(&path).await;
    path
}

#[tokio::test]
async fn a_spec_that_cannot_be_is_refused_with_the_nearest_names_and_buys_nothing() {
    let server = Setup::embedded().start().await;
    let path = cluster(&server).await;
    let rows = [
        (
            json!({ "nodeCount": 2, "machineType": "a3-highgpu-8" }),
            "spec.machineType",
            "a3-highgpu-8g",
        ),
        (
            json!({ "nodeCount": 2, "machineType": "a3-highgpu-8x" }),
            "spec.machineType",
            "a3-highgpu-8g",
        ),
        (json!({ "nodeCount": 4, "minNodes": 5, "maxNodes": 3 }), "spec.minNodes", "maxNodes"),
        (json!({ "nodeCount": 9, "minNodes": 1, "maxNodes": 8 }), "spec.nodeCount", "8"),
        (json!({ "nodeCount": 1, "minNodes": 2, "maxNodes": 8 }), "spec.nodeCount", "2"),
        (json!({ "nodeCount": 2, "maxHourlyCost": -1 }), "spec.maxHourlyCost", ""),
        (json!({ "nodeCount": 2, "strategy": "cheapest" }), "spec.strategy", "cost"),
        (json!({ "nodeCount": 2, "providers": [{ "name": "gpc" }] }), "spec.providers", "gcp"),
    ];
    for (spec, field, word) in rows {
        let body = json!({ "name": "workers", "spec": spec });
        let refused = server.post(&format!("{path}/nodepools"), &body).await;
        let said = refused.refused(400, &json!({}));
        let fields = said["errors"].as_array().expect("errors");
        let about = fields.iter().find(|error| text(error, "/field").starts_with(field));
        let about = about.unwrap_or_else(|| panic!("nothing about {field}: {said:#}"));
        assert!(about.to_string().contains(word), "{field} without {word}: {about:#}");
    }
    assert_eq!(server.count(&format!("{path}/nodepools")).await.0, 0);
    assert_eq!(instances(&server, "pool = 'workers'").await, Vec::<Value>::new());
}

/// Only the provider knows its zones, so it is asked, and what it says is what the pool says.
#[tokio::test]
async fn an_unknown_zone_is_a_condition_with_the_zones_there_are() {
    let server = Setup::embedded().start().await;
    let path = cluster(&server).await;
    let spec = json!({ "nodeCount": 2, "machineType": "n1-standard-4", "zones": ["us-east1-z"] });
    let path = add_pool(&server, &path, "workers", &spec).await;
    server
        .statuses_once(&path, |statuses| {
            let machines = crate::harness::conditions(statuses, "machines").unwrap_or_default();
            let said = machines["Available"].to_string();
            let told = said.contains("us-east1-z") && said.contains("us-east1-b");
            (!told).then(|| format!("nothing about the zone: {said}"))
        })
        .await;
    assert_eq!(server.cloud_machines().await, Vec::<Value>::new());
    let spec = json!({ "nodeCount": 2, "machineType": "n1-standard-4", "zones": ["us-east1-b"] });
    resize(&server, &path, &spec).await;
    settled(&server, &path, 2).await;
}

/// G4: keys that are taken away pause buying at the provider, and return nothing.
#[tokio::test]
async fn revoked_credentials_are_a_condition_with_the_way_out_and_nothing_is_lost() {
    let server = Setup::embedded().config("machines: { sweep_every: 1s }").start().await;
    let path = make(&server, &gcp(), "workers", &json!({ "nodeCount": 2 })).await;
    let two = settled(&server, &path, 2).await;
    let fault = server.inject(json!({ "kind": "CredentialsRevoked", "match": "gcp" })).await;
    resize(&server, &path, &json!({ "nodeCount": 4 })).await;
    let said = server
        .statuses_once(&path, |statuses| {
            let machines = crate::harness::conditions(statuses, "machines").unwrap_or_default();
            let about = machines.to_string().to_lowercase();
            (!about.contains("credentials")).then(|| format!("nothing about credentials: {about}"))
        })
        .await;
    let items = said["items"].as_array().expect("a list");
    let machines = items.iter().find(|item| item["adapter"] == "machines").expect("machines");
    assert!(machines["data"]["guidance"].is_string(), "the way out: {machines:#}");
    let providers = server.cli(&["provider", "list"]).await;
    has(providers.expect(0), &["paused"]);
    assert_eq!(ids(&open(&server).await).intersection(&two).count(), 2, "nobody was returned");
    assert_eq!(server.cloud_machines().await.len(), 2, "and nothing was bought");
    server.clear(fault).await;
    settled(&server, &path, 4).await;
}

/// G9: a provider cannot be taken out of the configuration while it has machines.
#[tokio::test]
async fn g9_a_provider_that_has_machines_cannot_be_taken_out() {
    let mut server = Setup::embedded().start().await;
    let path = make(&server, &gcp(), "workers", &json!({ "nodeCount": 2 })).await;
    let two = settled(&server, &path, 2).await;
    server.kill9();
    server.without_flag("--simulated-cloud=instant");
    let said = server.launch().await.expect_err("it does not start");
    has(&said, &["2 of provider `gcp`", "put the providers back"]);
    server.with_flag("--simulated-cloud=instant");
    server.restart().await;
    assert_eq!(settled(&server, &path, 2).await, two, "and nothing was lost by it");
}

#[tokio::test]
async fn missing_credentials_are_named_before_anything_is_begun() {
    let config = "providers: { cloud: { type: lambda, ssh_key: ops, api_key: { env: NO_SUCH_KEY } } }\n\
                  machines: { server_url: 'http://argosy.example', agent: { path: /opt/agent } }";
    let mut server = Setup::embedded().without_cloud().config(config).prepare().await;
    let said = server.launch().await.expect_err("it does not start");
    has(&said, &["providers.cloud.api_key", "NO_SUCH_KEY"]);
}

/// G10, G11: a listing that is suddenly empty is not believed.
#[tokio::test]
async fn g11_an_empty_listing_returns_and_replaces_nobody() {
    let server = Setup::embedded().config("machines: { sweep_every: 1s }").start().await;
    let path = make(&server, &gcp(), "workers", &json!({ "nodeCount": 5 })).await;
    let five = settled(&server, &path, 5).await;
    let fault = server.inject(json!({ "kind": "ListsEmpty", "match": "gcp" })).await;
    await_until("the listing is not believed", async || {
        let said = server.cli(&["provider", "list"]).await;
        said.expect(0).contains("frozen").then_some(())
    })
    .await;
    assert_eq!(ids(&open(&server).await), five);
    server.clear(fault).await;
    await_until("it is believed again", async || {
        let said = server.cli(&["provider", "list"]).await;
        (!said.expect(0).contains("frozen")).then_some(())
    })
    .await;
    assert_eq!(settled(&server, &path, 5).await, five);
}
