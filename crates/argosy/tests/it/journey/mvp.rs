//! The MVP document's journeys 1 to 5, and every scenario in which they go wrong.

use super::journeys;
use crate::harness::{Profile, Server, Setup, subset, text};
use argosy_api::client::Collection;
use serde_json::{Value, json};

journeys! {
    mvp_journey_1_create_a_new_cluster,
    mvp_journey_1_sad_path_scenario_1_invalid_configuration,
    mvp_journey_1_sad_path_scenario_2_insufficient_permissions,
    mvp_journey_1_sad_path_scenario_3_quota_exceeded,
    mvp_journey_1_sad_path_scenario_4_adapter_failure_during_provisioning,
    mvp_journey_2_monitor_cluster_status_and_troubleshoot_issues,
    mvp_journey_2_sad_path_scenario_1_cluster_stuck_in_not_ready,
    mvp_journey_2_sad_path_scenario_2_cluster_resource_not_found,
    mvp_journey_2_sad_path_scenario_3_adapter_reporting_degraded_state,
    mvp_journey_3_list_and_filter_clusters,
    mvp_journey_3_sad_path_scenario_1_invalid_filter_parameters,
    mvp_journey_3_sad_path_scenario_2_no_results_found,
    mvp_journey_3_sad_path_scenario_3_authentication_authorization_failure,
    mvp_journey_4_create_a_new_nodepool,
    mvp_journey_4_sad_path_scenario_1_invalid_node_count,
    mvp_journey_4_sad_path_scenario_2_quota_exceeded_during_provisioning,
    mvp_journey_4_sad_path_scenario_3_adapter_failure_during_node_provisioning,
    mvp_journey_5_list_and_filter_nodepools,
    mvp_journey_5_sad_path_scenario_1_parent_cluster_not_found,
    mvp_journey_5_sad_path_scenario_2_invalid_filter_parameters,
    mvp_journey_5_sad_path_scenario_3_no_nodepools_found,
    mvp_journey_5_sad_path_scenario_4_nodepool_not_found,
    mvp_journey_5_sad_path_scenario_5_authentication_authorization_failure,
}

fn cluster(name: &str) -> Value {
    json!({
        "kind": "Cluster",
        "name": name,
        "spec": { "provider": "gcp", "region": "us-east1" },
        "labels": { "environment": "production", "team": "platform" },
    })
}

fn pool(name: &str, workload: &str) -> Value {
    json!({
        "name": name,
        "spec": { "nodeCount": 5, "machineType": "n1-standard-4" },
        "labels": { "workload": workload, "team": "platform" },
    })
}

/// Creates a cluster; its path.
async fn created(server: &Server, body: &Value) -> String {
    let created = server.create("clusters", body).await;
    subset(&created["status"], &json!({ "phase": server.profile().first_phase() }));
    format!("clusters/{}", text(&created, "/id"))
}

/// Creates a cluster and a pool in it; the pool's path.
async fn created_pool(server: &Server, body: &Value) -> String {
    let cluster = created(server, &cluster("my-cluster")).await;
    server.ready(&cluster).await;
    let created = server.create(&format!("{cluster}/nodepools"), body).await;
    subset(&created["status"], &json!({ "phase": server.profile().first_phase() }));
    format!("{cluster}/nodepools/{}", text(&created, "/id"))
}

/// Conditions of an adapter: Available, Applied, Health, and what Available says.
fn conditions(tri: [&str; 3], reason: &str, message: &str) -> Value {
    let [available, applied, health] = tri;
    json!({
        "Available": { "status": available, "reason": reason, "message": message },
        "Applied": { "status": applied },
        "Health": { "status": health },
    })
}

/// What comes after `Supported values: `.
fn phases(profile: Profile) -> &'static str {
    match profile {
        Profile::Full | Profile::Upstream => "Not Ready, Ready, Pending, Terminating",
        Profile::Mvp => "Not Ready, Ready",
    }
}

async fn mvp_journey_1_create_a_new_cluster(setup: Setup) {
    let server = setup.start().await;
    let path = created(&server, &cluster("my-cluster")).await;
    let ready = server.ready(&path).await;
    subset(&ready, &cluster("my-cluster"));
    for adapter in ["validation", "dns", "infrastructure"] {
        let found = server.conditions(&path, adapter).await.expect("a report");
        subset(
            &found,
            &json!({
                "Available": { "status": "True" },
                "Applied": { "status": "True" },
                "Health": { "status": "True" },
            }),
        );
    }
    // Everything that was asked for is there, and no node.
    let inventory = server.cloud_inventory().await;
    let items = inventory[text(&ready, "/id")].as_array().expect("what was made").clone();
    let kinds: Vec<&str> = items.iter().map(|item| text(item, "/kind")).collect();
    for kind in ["dns_record", "network", "control_plane"] {
        assert!(kinds.contains(&kind), "{kinds:?}");
    }
    assert!(!kinds.contains(&"machine"), "{kinds:?}");
    assert!(items.iter().all(|item| item["region"] == "us-east1"), "{items:#?}");
    assert_eq!(server.count(&format!("{path}/nodepools")).await.0, 0);
}

async fn mvp_journey_1_sad_path_scenario_1_invalid_configuration(setup: Setup) {
    let server = setup.start().await;
    let before = server.count("clusters").await;
    let long = "a".repeat(64);
    let place = |provider: &str, region: &str| json!({ "name": "a", "spec": { "provider": provider, "region": region } });
    let rows = [
        (
            place("gcp", "invalid-region"),
            "spec.region",
            "Invalid region 'invalid-region' for provider GCP. Supported regions: us-east1, \
             us-west1, us-central1, europe-west1, europe-west4, asia-east1",
        ),
        (
            place("azure", "us-east1"),
            "spec.provider",
            "Unsupported provider 'azure'. Supported providers: aws, gcp, lambda",
        ),
        (cluster(&long), "name", "name is 64 characters long; at most 63 are allowed"),
        (json!({ "spec": {} }), "name", "Missing required field 'name'"),
        (json!({ "name": "a" }), "spec", "Missing required field 'spec'"),
    ];
    for (body, field, sentence) in rows {
        let refused = server.post("clusters", &body).await;
        let refused = refused.refused(400, &json!({ "error": sentence, "detail": sentence }));
        assert_eq!(text(&refused, "/errors/0/field"), field);
    }
    assert_eq!(server.count("clusters").await, before, "nothing was written");
}

async fn mvp_journey_1_sad_path_scenario_2_insufficient_permissions(setup: Setup) {
    let server = setup.start().await;
    server.deny("gcp", "compute.networks.create").await;
    let path = created(&server, &cluster("my-cluster")).await;
    let message = "Service account lacks compute.networks.create permission in GCP project";
    let denied = conditions(["False", "False", "True"], "PermissionDenied", message);
    server.conditions_with(&path, "infrastructure", denied).await;
    subset(&server.get(&path).await.expect(200)["status"], &json!({ "phase": "Not Ready" }));
    server.grant("gcp", "compute.networks.create").await;
    server.ready(&path).await;
}

async fn mvp_journey_1_sad_path_scenario_3_quota_exceeded(setup: Setup) {
    let server = setup.start().await;
    server.set_quota("gcp/us-east1/CPUS", 100, 100).await;
    let path = created(&server, &cluster("my-cluster")).await;
    let message = "GCP quota exceeded for resource: CPUS in region us-east1. Current: 100/100";
    let exceeded = conditions(["False", "False", "True"], "QuotaExceeded", message);
    server.conditions_with(&path, "validation", exceeded).await;
    subset(&server.get(&path).await.expect(200)["status"], &json!({ "phase": "Not Ready" }));
    let guided = server.statuses_once(&path, |statuses| {
        let guidance = statuses["items"][0]["data"]["guidance"].as_str().unwrap_or_default();
        let actionable = guidance.starts_with("Request a quota increase for CPUS in us-east1");
        (!actionable).then(|| format!("guidance: {guidance}"))
    });
    guided.await;
    server.set_quota("gcp/us-east1/CPUS", 200, 100).await;
    server.ready(&path).await;
}

async fn mvp_journey_1_sad_path_scenario_4_adapter_failure_during_provisioning(setup: Setup) {
    let server = setup.start().await;
    server.delete_zone("example.com").await;
    let paths = [
        created(&server, &cluster("waits-for-the-zone")).await,
        created(&server, &cluster("changes-its-spec")).await,
    ];
    let message = "Route53 hosted zone not found for domain example.com. Please create zone or \
                   update cluster spec.";
    for path in &paths {
        let broken = conditions(["False", "False", "False"], "DNSZoneNotFound", message);
        server.conditions_with(path, "dns", broken).await;
        let found = server.conditions(path, "validation").await.expect("a report");
        subset(&found, &json!({ "Available": { "status": "True" } }));
        // What follows is not started: it has reported nothing, and says what it waits for.
        assert_eq!(server.conditions(path, "infrastructure").await, None);
        server
            .statuses_with(
                path,
                json!({ "statuses": [
            { "adapter_name": "validation", "phase": "Complete" },
            { "adapter_name": "dns", "phase": "Failed", "message": message },
            {
                "adapter_name": "infrastructure",
                "phase": "Pending",
                "message": "Waiting for validation and DNS to complete",
            },
        ] }),
            )
            .await;
        subset(&server.get(path).await.expect(200)["status"], &json!({ "phase": "Not Ready" }));
    }
    // The two ways out of the document: another domain in the spec, or the zone that is missing.
    let [waiting, changed] = &paths;
    server.create_zone("acme.test").await;
    let patch = json!({ "spec": { "dns": { "baseDomain": "acme.test" } } });
    server.patch(changed, &patch).await.expect(200);
    server.ready(changed).await;
    server.create_zone("example.com").await;
    server.ready(waiting).await;
}

async fn mvp_journey_2_monitor_cluster_status_and_troubleshoot_issues(setup: Setup) {
    let server = setup.start().await;
    server.set_latency("infrastructure", 3_600_000).await;
    let path = created(&server, &cluster("my-cluster")).await;
    // Progress: who is done, and who is at it.
    server
        .statuses_with(
            &path,
            json!({ "statuses": [
        { "adapter_name": "validation", "phase": "Complete" },
        { "adapter_name": "dns", "phase": "Complete" },
        { "adapter_name": "infrastructure", "phase": "Running" },
    ] }),
        )
        .await;
    let working = json!({ "Available": { "status": "False" }, "Applied": { "status": "True" } });
    server.conditions_with(&path, "infrastructure", working).await;
    subset(&server.get(&path).await.expect(200)["status"], &json!({ "phase": "Not Ready" }));
    server.set_latency("infrastructure", 0).await;
    server.ready(&path).await;
    let statuses = server.get(&format!("{path}/statuses")).await.expect(200);
    for item in statuses["items"].as_array().expect("a list") {
        let conditions = item["conditions"].as_array().expect("a list");
        let kinds: Vec<&str> = conditions.iter().map(|one| text(one, "/type")).collect();
        assert_eq!(kinds, ["Available", "Applied", "Health"]);
        assert!(conditions.iter().all(|one| one["last_transition_time"].is_string()), "{item:#}");
    }

    // Back to Not Ready when the generation changes, until it is reconciled.
    server.set_latency("infrastructure", 3_600_000).await;
    let patch = json!({ "spec": { "region": "us-west1" } });
    let patched = server.patch(&path, &patch).await.expect(200);
    subset(&patched, &json!({ "generation": 2, "status": { "phase": "Not Ready" } }));
    server.set_latency("infrastructure", 0).await;
    server.ready(&path).await;

    // And when an adapter reports a failure, with a condition of its own. Then it is tried again.
    let said = |kind: &str, status: &str| json!({ "type": kind, "status": status, "reason": "RecordsLost", "message": "They are gone" });
    let report = json!({
        "adapter": "dns",
        "observed_generation": 2,
        "conditions": [
            said("Available", "False"), said("Applied", "True"), said("Health", "True"),
            said("DNSRecordsCreated", "False"),
        ],
    });
    let id = path.trim_start_matches("clusters/");
    let mut watch = server.client().watch(Collection::Clusters, Some(id), &[], None);
    watch.next().await.expect("what is there");
    server.put(&format!("{path}/statuses"), &report).await.expect(201);
    let fell = loop {
        // A bookmark has no object.
        if let Some(cluster) = watch.next().await.expect("a change").object {
            break cluster;
        }
    };
    subset(&fell["status"], &json!({ "phase": "Not Ready" }));
    server.ready(&path).await;
}

async fn mvp_journey_2_sad_path_scenario_1_cluster_stuck_in_not_ready(setup: Setup) {
    // The error is there to be read for as long as the wait before the next attempt.
    let config = "sentinel: { backoff_first: 2s, backoff_max: 2s }";
    let mut server = setup.only_config(config).start().await;
    server.inject(json!({ "kind": "Timeout", "match": "my-cluster", "count": 1 })).await;
    let path = created(&server, &cluster("my-cluster")).await;
    let stuck = json!({ "statuses": [
        { "adapter_name": "validation", "phase": "Complete" },
        { "adapter_name": "dns", "phase": "Complete" },
        { "adapter_name": "infrastructure", "phase": "Running" },
    ] });
    server.statuses_with(&path, stuck.clone()).await;
    subset(&server.get(&path).await.expect(200)["status"], &json!({ "phase": "Not Ready" }));

    // 26 minutes pass: the cloud's own record says that it began so long ago. Setting a latency makes
    // the cloud write down what is under way.
    server.set_latency("machine", 0).await;
    server.kill9();
    server.edit("data/simulated-cloud.json", |text| {
        let mut world: Value = serde_json::from_str(&text).expect("JSON");
        let owners = world["inventory"].as_object_mut().expect("the inventory");
        let items = owners.values_mut().flat_map(|items| items.as_array_mut().expect("items"));
        for item in items {
            let began: jiff::Timestamp = text_of(item).parse().expect("a time");
            let earlier = began - jiff::SignedDuration::from_mins(26);
            item["created_at"] = json!(earlier.to_string());
        }
        world.to_string()
    });
    server.restart().await;
    let message = "GCP cluster creation timed out after 25 minutes. Last status: Not ready";
    let given_up = conditions(["False", "False", "True"], "Timeout", message);
    let found = server.conditions_with(&path, "infrastructure", given_up).await;
    assert!(found["Available"]["last_transition_time"].is_string(), "{found:#}");
    let statuses = server.get(&format!("{path}/statuses")).await.expect(200);
    let guidance = text(&statuses, "/items/2/data/guidance");
    assert!(guidance.contains("somebody may have to step in"), "{guidance}");
    subset(&server.get(&path).await.expect(200)["status"], &json!({ "phase": "Not Ready" }));
    // It is tried again by itself, and the fault does not come back.
    server.ready(&path).await;
}

fn text_of(item: &Value) -> &str {
    text(item, "/created_at")
}

async fn mvp_journey_2_sad_path_scenario_2_cluster_resource_not_found(setup: Setup) {
    let server = setup.start().await;
    let missing = json!({ "error": "Cluster not found", "id": "non-existent-id" });
    server.get("clusters/non-existent-id").await.refused(404, &missing);
    server.get("clusters/non-existent-id/statuses").await.refused(404, &missing);
}

async fn mvp_journey_2_sad_path_scenario_3_adapter_reporting_degraded_state(setup: Setup) {
    // Ready clusters are looked at every second, so that the test sees health being monitored.
    let config = "sentinel: { resync_ready: 1s, backoff_first: 50ms, backoff_max: 200ms }";
    let server = setup.only_config(config).start().await;
    let path = created(&server, &cluster("my-cluster")).await;
    server.ready(&path).await;
    let fault = server.inject(json!({ "kind": "HealthCheckFailed", "match": "my-cluster" })).await;
    let found = server.conditions_with(
        &path,
        "dns",
        json!({
            "Available": { "status": "True" },
            "Applied": { "status": "True" },
            "Health": {
                "status": "False",
                "reason": "HealthCheckFailed",
                "message": "DNS records exist but health check failing. Record set may be \
                            misconfigured.",
            },
        }),
    );
    found.await;
    let degraded = server.get(&path).await.expect(200);
    subset(&degraded["status"], &json!({ "phase": "Ready" }));
    server.clear(fault).await;
    server.conditions_with(&path, "dns", json!({ "Health": { "status": "True" } })).await;
    subset(&server.get(&path).await.expect(200)["status"], &json!({ "phase": "Ready" }));
}

async fn mvp_journey_3_list_and_filter_clusters(setup: Setup) {
    let server = setup.start().await;
    let ready = created(&server, &cluster("ready")).await;
    server.ready(&ready).await;
    let mut other = cluster("other");
    other["spec"]["region"] = json!("us-west1");
    server.deny("gcp", "compute.networks.create").await;
    let broken = created(&server, &other).await;
    server.in_phase(&broken, "Not Ready").await;

    let one = server.get(&ready).await.expect(200);
    subset(&one, &cluster("ready"));
    let rows = [
        ("", &["other", "ready"][..]),
        ("?status.phase=%22Not%20Ready%22", &["other"]),
        ("?status.phase=Not+Ready", &["other"]),
        ("?provider=gcp", &["other", "ready"]),
        ("?status.phase=Ready&provider=gcp", &["ready"]),
        ("?region=us-west1", &["other"]),
        ("?name=read", &["ready"]),
        ("?labels=environment:production&provider=gcp&region=us-east1&phase=Ready", &["ready"]),
        ("?labels=team:platform", &["other", "ready"]),
        ("?labels=team:other", &[]),
    ];
    for (query, expected) in rows {
        let list = server.get(&format!("clusters{query}")).await.expect(200);
        let names: Vec<_> = expected.iter().map(|name| json!({ "name": name })).collect();
        subset(
            &list,
            &json!({
                "kind": "ClusterList", "page": 1, "size": names.len(), "total": names.len(),
                "items": names,
            }),
        );
        for item in list["items"].as_array().expect("a list") {
            for member in ["id", "name", "created_at", "updated_at"] {
                assert!(item[member].is_string(), "no {member} in {item:#}");
            }
            assert!(item["spec"]["provider"].is_string() && item["spec"]["region"].is_string());
            assert!(item["status"]["phase"].is_string() && item["labels"].is_object());
        }
    }
}

async fn mvp_journey_3_sad_path_scenario_1_invalid_filter_parameters(setup: Setup) {
    let server = setup.start().await;
    let words = phases(server.profile());
    let phase = format!("Invalid phase value 'InvalidPhase'. Supported values: {words}");
    let provider =
        "Invalid provider value 'unsupported-provider'. Supported values: aws, gcp, lambda";
    let rows = [
        ("phase=InvalidPhase", phase.as_str()),
        ("status.phase=InvalidPhase", &phase),
        ("provider=unsupported-provider", provider),
    ];
    for (query, sentence) in rows {
        let refused = server.get(&format!("clusters?{query}")).await;
        refused.refused(400, &json!({ "error": sentence }));
    }
}

async fn mvp_journey_3_sad_path_scenario_2_no_results_found(setup: Setup) {
    let server = setup.start().await;
    let list = server.get("clusters?phase=Ready").await.expect(200);
    let empty = json!({ "kind": "ClusterList", "page": 1, "size": 0, "total": 0, "items": [] });
    subset(&list, &empty);
}

/// Callers whom the API lets in everywhere: what they may not touch, validation finds.
fn without_teams(setup: Setup) -> Setup {
    let entry = |token: &str, role: &str, team: &str| json!({ "token": token, "name": token, "role": role, "teams": [team] });
    let entries = json!([entry("admin", "admin", "ops"), entry("user", "operator", "other")]);
    setup.tokens_without_teams(entries).token("admin")
}

async fn mvp_journey_3_sad_path_scenario_3_authentication_authorization_failure(setup: Setup) {
    let server = without_teams(setup).start().await;
    // An invalid token is another matter: who asks is not known at all.
    let unknown = json!({ "error": "Unauthenticated" });
    server.with_token("expired").get("clusters").await.refused(401, &unknown);
    server.without_token().get("clusters").await.refused(401, &unknown);

    server.deny_label("team:platform").await;
    let path = created(&server, &cluster("my-cluster")).await;
    let message = "Insufficient permissions to access clusters with label 'team:platform'";
    let user = server.with_token("user");
    let denied = json!({
        "Available": { "status": "False", "reason": "PermissionDenied", "message": message },
    });
    user.conditions_with(&path, "validation", denied).await;
    user.get(&path).await.expect(200);
    assert_eq!(user.count("clusters?labels=team:platform").await.0, 1, "accepted, and shown");
    server.grant_label("team:platform").await;
    user.ready(&path).await;
}

async fn mvp_journey_4_create_a_new_nodepool(setup: Setup) {
    let server = setup.start().await;
    let path = created_pool(&server, &pool("workers", "compute")).await;
    let ready = server.ready(&path).await;
    subset(&ready, &pool("workers", "compute"));
    for adapter in ["validation", "machines"] {
        let found = server.conditions(&path, adapter).await.expect("a report");
        subset(&found, &json!({ "Available": { "status": "True" } }));
    }
    let machines = server.cloud_machines_of("my-cluster.workers").await;
    assert_eq!(machines.len(), 5);
    let running = |machine: &Value| machine["state"] == "Running" && machine["up"] == true;
    assert!(machines.iter().all(running), "{machines:#?}");
}

async fn mvp_journey_4_sad_path_scenario_1_invalid_node_count(setup: Setup) {
    let server = setup.start().await;
    let path = created(&server, &cluster("my-cluster")).await;
    server.ready(&path).await;
    let pools = format!("{path}/nodepools");
    let before = server.count(&pools).await;
    let rows = [
        (0, "Invalid node count: 0. Must be between 1 and 100"),
        (-3, "Invalid node count: -3. Must be between 1 and 100"),
        (150, "Node count 150 exceeds maximum limit of 100 per nodepool"),
    ];
    for (count, sentence) in rows {
        let mut body = pool("workers", "compute");
        body["spec"]["nodeCount"] = json!(count);
        let refused = server.post(&pools, &body).await.refused(400, &json!({ "error": sentence }));
        assert_eq!(text(&refused, "/errors/0/field"), "spec.nodeCount");
    }
    assert_eq!(server.count(&pools).await, before, "nothing was written");
}

async fn mvp_journey_4_sad_path_scenario_2_quota_exceeded_during_provisioning(setup: Setup) {
    let server = setup.start().await;
    let cluster = created(&server, &cluster("my-cluster")).await;
    server.ready(&cluster).await;
    // The cluster's control plane uses 4 of the 14; 10 are left.
    server.set_quota("gcp/us-east1/CPUS", 14, 0).await;
    let body = pool("workers", "compute");
    let created = server.create(&format!("{cluster}/nodepools"), &body).await;
    subset(&created["status"], &json!({ "phase": server.profile().first_phase() }));
    let path = format!("{cluster}/nodepools/workers");
    let message = "Insufficient quota to provision 5 nodes of type n1-standard-4. Required: 20 \
                   CPUs, Available: 10 CPUs";
    let exceeded = conditions(["False", "False", "True"], "QuotaExceeded", message);
    server.conditions_with(&path, "machines", exceeded).await;
    server
        .statuses_once(&path, |statuses| {
            let guidance = statuses["items"][1]["data"]["guidance"].as_str().unwrap_or_default();
            let actionable =
                guidance.starts_with("Reduce the node count or request a quota increase");
            (!actionable).then(|| format!("guidance: {guidance}"))
        })
        .await;
    subset(&server.get(&path).await.expect(200)["status"], &json!({ "phase": "Not Ready" }));
    // What the guidance says helps: fewer nodes fit in, and more do when the quota is raised.
    server.patch(&path, &json!({ "spec": { "nodeCount": 2 } })).await.expect(200);
    server.ready(&path).await;
    server.patch(&path, &json!({ "spec": { "nodeCount": 5 } })).await.expect(200);
    server.set_quota("gcp/us-east1/CPUS", 24, 0).await;
    server.ready(&path).await;
}

async fn mvp_journey_4_sad_path_scenario_3_adapter_failure_during_node_provisioning(setup: Setup) {
    let server = setup.start().await;
    let fault = json!({
        "kind": "ProvisioningFailed",
        "match": "workers",
        "params": { "node": 3, "code": "ZONE_RESOURCE_POOL_EXHAUSTED" },
    });
    let fault = server.inject(fault).await;
    let path = created_pool(&server, &pool("workers", "compute")).await;
    let message = "Failed to provision node 3 of 5. GCP error: ZONE_RESOURCE_POOL_EXHAUSTED";
    let failed = conditions(["False", "False", "True"], "ProvisioningFailed", message);
    server.conditions_with(&path, "machines", failed).await;
    subset(&server.get(&path).await.expect(200)["status"], &json!({ "phase": "Not Ready" }));
    server.clear(fault).await;
    server.ready(&path).await;
}

async fn mvp_journey_5_list_and_filter_nodepools(setup: Setup) {
    let server = setup.start().await;
    let ready = created_pool(&server, &pool("workers", "compute")).await;
    server.ready(&ready).await;
    let pools = ready.trim_end_matches("/workers");
    server.inject(json!({ "kind": "ProvisioningFailed", "match": "gpus" })).await;
    server.create(pools, &pool("gpus", "gpu")).await;
    server.in_phase(&format!("{pools}/gpus"), "Not Ready").await;
    let rows = [
        ("", &["gpus", "workers"][..]),
        ("?labels=workload:gpu", &["gpus"]),
        ("?phase=Ready", &["workers"]),
        ("?labels=workload:gpu&phase=Ready", &[]),
        ("?labels=workload:gpu,team:platform&phase=Not%20Ready", &["gpus"]),
    ];
    for (query, expected) in rows {
        let list = server.get(&format!("{pools}{query}")).await.expect(200);
        let ids: Vec<_> = expected.iter().map(|id| json!({ "id": id })).collect();
        subset(
            &list,
            &json!({
                "kind": "NodePoolList", "page": 1, "size": ids.len(), "total": ids.len(), "items": ids,
            }),
        );
        for item in list["items"].as_array().expect("a list") {
            subset(item, &json!({ "spec": { "nodeCount": 5, "machineType": "n1-standard-4" } }));
            for member in ["cluster_id", "created_at", "updated_at"] {
                assert!(item[member].is_string(), "no {member} in {item:#}");
            }
            assert!(item["status"]["phase"].is_string() && item["labels"].is_object());
        }
    }
}

async fn mvp_journey_5_sad_path_scenario_1_parent_cluster_not_found(setup: Setup) {
    let server = setup.start().await;
    let missing = json!({ "error": "Cluster not found", "cluster_id": "non-existent-cluster" });
    // The parent is checked before the filter is.
    for query in ["", "?labels=workload:gpu", "?phase=InvalidPhase", "?labels=nonsense"] {
        let path = format!("clusters/non-existent-cluster/nodepools{query}");
        server.get(&path).await.refused(404, &missing);
    }
    let body = pool("workers", "compute");
    server.post("clusters/non-existent-cluster/nodepools", &body).await.refused(404, &missing);
}

async fn mvp_journey_5_sad_path_scenario_2_invalid_filter_parameters(setup: Setup) {
    let server = setup.start().await;
    let path = created(&server, &cluster("my-cluster")).await;
    let scope = match server.profile() {
        Profile::Mvp => " for MVP",
        Profile::Full | Profile::Upstream => "",
    };
    let words = phases(server.profile());
    let phase = format!("Invalid phase value 'Provisioning'. Supported values{scope}: {words}");
    let label = "Invalid label filter format. Expected format: key:value";
    let rows = [
        ("phase=Provisioning", phase.as_str()),
        ("labels=workload", label),
        ("labels=workload:gpu,team", label),
        ("labels=:gpu", label),
    ];
    for (query, sentence) in rows {
        let refused = server.get(&format!("{path}/nodepools?{query}")).await;
        refused.refused(400, &json!({ "error": sentence }));
    }
}

async fn mvp_journey_5_sad_path_scenario_3_no_nodepools_found(setup: Setup) {
    let server = setup.start().await;
    let path = created(&server, &cluster("my-cluster")).await;
    let list = server.get(&format!("{path}/nodepools?labels=workload:nonexistent")).await;
    let empty = json!({ "kind": "NodePoolList", "page": 1, "size": 0, "total": 0, "items": [] });
    subset(&list.expect(200), &empty);
}

async fn mvp_journey_5_sad_path_scenario_4_nodepool_not_found(setup: Setup) {
    let server = setup.start().await;
    created(&server, &cluster("cluster-123")).await;
    let missing = json!({
        "error": "NodePool not found",
        "nodepool_id": "non-existent-nodepool-id",
        "cluster_id": "cluster-123",
    });
    let path = "clusters/cluster-123/nodepools/non-existent-nodepool-id";
    server.get(path).await.refused(404, &missing);
    server.get(&format!("{path}/statuses")).await.refused(404, &missing);
}

async fn mvp_journey_5_sad_path_scenario_5_authentication_authorization_failure(setup: Setup) {
    let server = without_teams(setup).start().await;
    let cluster = created(&server, &cluster("my-cluster")).await;
    server.ready(&cluster).await;
    let pools = format!("{cluster}/nodepools");
    server.with_token("expired").get(&pools).await.refused(401, &json!({}));

    server.deny_label("workload:gpu").await;
    let user = server.with_token("user");
    user.create(&pools, &pool("gpus", "gpu")).await;
    let message = "Insufficient permissions to access nodepools in cluster";
    let denied = json!({
        "Available": { "status": "False", "reason": "PermissionDenied", "message": message },
    });
    let path = format!("{pools}/gpus");
    user.conditions_with(&path, "validation", denied).await;
    assert_eq!(user.count(&pools).await.0, 1, "accepted, and shown");
    server.grant_label("workload:gpu").await;
    user.ready(&path).await;
}
