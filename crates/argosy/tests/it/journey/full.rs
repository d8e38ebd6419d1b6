//! The full document's journeys, 1 to 10.
//!
//! What its examples leave open or contradict themselves in (ids that are no UUIDs, a machine type
//! that changes by itself) is not followed; everything else is, member by member.

use super::journeys;
use crate::harness::{Engine, Profile, Server, Setup, subset, text};
use serde_json::{Value, json};

journeys! {
    full_journey_1_create_a_new_cluster,
    full_journey_2_monitor_cluster_status_and_troubleshoot_issues,
    full_journey_2_step_3_wait_for_automatic_recovery,
    full_journey_3_list_and_filter_clusters,
    full_journey_4_update_cluster_configuration,
    full_journey_5_delete_cluster,
    full_journey_5_step_2_monitor_deletion_progress,
    full_journey_6_cluster_access_control_and_permissions,
    full_journey_7_create_a_new_nodepool,
    full_journey_8_list_and_filter_nodepools,
    full_journey_9_update_nodepool_configuration,
    full_journey_10_delete_nodepool,
}

/// Longer than any test: what takes this long is held until the latency is set anew.
const HELD_MS: u32 = 3_600_000;

/// `my-nodepool` of `my-test-cluster`, as its nodes call it.
const POOL: &str = "my-test-cluster.my-nodepool";

fn my_test_cluster() -> Value {
    json!({
        "name": "my-test-cluster",
        "spec": { "provider": "gcp", "region": "us-east1", "nodeCount": 3 },
        "labels": { "environment": "production", "team": "platform" },
    })
}

fn my_staging_cluster() -> Value {
    json!({
        "name": "my-staging-cluster",
        "spec": { "provider": "aws", "region": "us-west-2", "nodeCount": 2 },
        "labels": { "environment": "staging", "team": "platform" },
    })
}

fn my_nodepool() -> Value {
    json!({
        "name": "my-nodepool",
        "spec": { "nodeCount": 5, "machineType": "n1-standard-4" },
        "labels": { "workload": "compute", "team": "platform" },
    })
}

fn gpu_nodepool() -> Value {
    json!({
        "name": "gpu-nodepool",
        "spec": { "nodeCount": 3, "machineType": "n1-highmem-8" },
        "labels": { "workload": "gpu", "team": "ml" },
    })
}

/// A resource as the document shows it: what was sent, its id, and the phase.
fn shown(body: &Value, id: &Value, phase: &str) -> Value {
    let mut shown = body.clone();
    shown["id"] = id.clone();
    shown["status"] = json!({ "phase": phase });
    shown
}

/// A node pool as the document shows it.
fn pool_shown(body: &Value, cluster: &Value, phase: &str) -> Value {
    let mut shown = shown(body, &body["name"], phase);
    shown["cluster_id"] = cluster["id"].clone();
    shown
}

/// The times the document shows are there, and in order.
#[track_caller]
fn times(resource: &Value) {
    let created = text(resource, "/created_at");
    let updated = text(resource, "/updated_at");
    let moved = text(resource, "/status/lastTransitionTime");
    let times = [created, updated, moved].map(|time| time.parse::<jiff::Timestamp>().expect(time));
    let [created, updated, moved] = times;
    assert!(created <= moved && moved <= updated, "{resource:#}");
}

async fn ready_cluster(server: &Server, body: &Value) -> (Value, String) {
    let created = server.create("clusters", body).await;
    let path = format!("clusters/{}", text(&created, "/id"));
    (server.ready(&path).await, path)
}

async fn full_journey_1_create_a_new_cluster(setup: Setup) {
    let server = setup.start().await;
    server.set_latency("dns", HELD_MS).await;

    // Step 1: submit.
    let body = my_test_cluster();
    let created = server.create("clusters", &body).await;
    subset(&created, &shown(&body, &created["id"], server.profile().first_phase()));
    times(&created);
    assert_eq!(created["created_at"], created["updated_at"]);
    let (id, path) = (&created["id"], format!("clusters/{}", text(&created, "/id")));

    // Step 3 comes about while DNS is at work: validation is through, infrastructure waits.
    let line = |adapter: &str, phase: &str, message: &str| json!({ "cluster_id": id, "adapter_name": adapter, "phase": phase, "message": message });
    let statuses = server.statuses_with(&path, json!({
        "cluster_id": id,
        "statuses": [
            line("validation", "Complete", "Validation completed successfully. All checks passed: \
                 route53ZoneFound, s3BucketAccessible, quotaSufficient"),
            line("dns", "Running", "DNS configuration in progress"),
            line("infrastructure", "Pending", "Waiting for validation and DNS to complete"),
        ],
    }));
    for line in statuses.await["statuses"].as_array().expect("a list") {
        for member in ["id", "last_transition_time", "created_at"] {
            assert!(line[member].is_string(), "no {member} in {line}");
        }
    }

    // Step 2: the cluster itself is not ready by then.
    let polled = server.get(&path).await.expect(200);
    subset(&polled, &shown(&body, id, "Not Ready"));
    times(&polled);

    // Step 4: until it is.
    server.set_latency("dns", 0).await;
    let ready = server.ready(&path).await;
    subset(&ready, &shown(&body, id, "Ready"));
    times(&ready);
    let statuses = server.get(&format!("{path}/statuses")).await.expect(200);
    let lines = statuses["statuses"].as_array().expect("a list");
    assert!(lines.iter().all(|line| line["phase"] == "Complete"), "{statuses:#}");
    // Success: lastTransitionTime is that of the latest adapter's update.
    let latest = lines.iter().map(|line| text(line, "/last_transition_time")).max();
    assert!(latest <= ready["status"]["lastTransitionTime"].as_str(), "{ready:#} {statuses:#}");
}

/// The document's own reports, made by adapters outside: the answer must show them word for word.
async fn full_journey_2_monitor_cluster_status_and_troubleshoot_issues(setup: Setup) {
    let server = setup
        .config(
            "adapters: { cluster: [\
                { name: validation, runner: external },\
                { name: dns, runner: external, depends_on: [validation] },\
                { name: infrastructure, runner: external, depends_on: [validation, dns] }] }",
        )
        .start()
        .await;
    let body = my_test_cluster();
    let created = server.create("clusters", &body).await;
    let (id, path) = (&created["id"], format!("clusters/{}", text(&created, "/id")));
    let condition = |kind: &str, reason: &str, message: &str| json!({ "type": kind, "status": "True", "reason": reason, "message": message });
    let reports = [
        json!({
            "adapter": "validation",
            "observedGeneration": 1,
            "conditions": [
                condition("Available", "JobSucceeded", "Job completed successfully after 115 seconds"),
                condition("Applied", "JobLaunched", "Kubernetes Job created successfully"),
                condition("Health", "AllChecksPassed", "All validation checks passed"),
            ],
            "data": { "validationResults": {
                "route53ZoneFound": true, "s3BucketAccessible": true, "quotaSufficient": true,
            } },
            "metadata": { "jobName": "validation-cls-123-gen1", "executionTime": "115s" },
        }),
        json!({
            "adapter": "dns",
            "observedGeneration": 1,
            "conditions": [
                condition("Available", "AllRecordsCreated", "All DNS records created and verified"),
                condition("Applied", "JobLaunched", "DNS Job created successfully"),
                condition("Health", "NoErrors", "DNS adapter executed without errors"),
            ],
            "data": { "recordsCreated":
                ["api.my-cluster.example.com", "*.apps.my-cluster.example.com"] },
        }),
    ];
    for report in &reports {
        server.put(&format!("{path}/statuses"), report).await.expect(201);
    }

    // Step 1: the high-level status.
    let polled = server.get(&path).await.expect(200);
    subset(&polled, &shown(&body, id, "Not Ready"));
    times(&polled);

    // Step 2: the details.
    let statuses = server.get(&format!("{path}/statuses")).await.expect(200);
    subset(
        &statuses,
        &json!({
            "id": format!("status-{}", text(&created, "/id")),
            "type": "clusterStatus",
            "href": format!("/api/hyperfleet/v1/{path}/statuses"),
            "clusterId": id,
            "adapterStatuses": reports,
        }),
    );
    for adapter in statuses["adapterStatuses"].as_array().expect("a list") {
        assert!(adapter["lastUpdated"].is_string(), "{adapter:#}");
        for condition in adapter["conditions"].as_array().expect("a list") {
            assert!(condition["lastTransitionTime"].is_string(), "{condition:#}");
        }
    }
    let newest = &statuses["adapterStatuses"][1]["lastUpdated"];
    assert_eq!(&statuses["lastUpdated"], newest, "the newest report's time");
    assert_eq!(&polled["status"]["lastTransitionTime"], newest, "the last status update");
}

async fn full_journey_2_step_3_wait_for_automatic_recovery(setup: Setup) {
    let server = setup.start().await;
    server.delete_zone("example.com").await;
    let body = my_test_cluster();
    let created = server.create("clusters", &body).await;
    let path = format!("clusters/{}", text(&created, "/id"));
    let broken = json!({ "Available": { "status": "False" }, "Health": { "status": "False" } });
    server.conditions_with(&path, "dns", broken).await;
    subset(&server.get(&path).await.expect(200), &shown(&body, &created["id"], "Not Ready"));

    // Nobody asks for anything again: the cause goes away, and the cluster becomes ready.
    server.create_zone("example.com").await;
    let ready = server.ready(&path).await;
    subset(&ready, &shown(&body, &created["id"], "Ready"));
    times(&ready);
}

async fn full_journey_3_list_and_filter_clusters(setup: Setup) {
    let server = setup.start().await;
    let (production, _) = ready_cluster(&server, &my_test_cluster()).await;
    server.deny("aws", "ec2:CreateVpc").await;
    let staging = server.create("clusters", &my_staging_cluster()).await;
    let staging_path = format!("clusters/{}", text(&staging, "/id"));
    server.in_phase(&staging_path, "Not Ready").await;

    let production = shown(&my_test_cluster(), &production["id"], "Ready");
    let staging = shown(&my_staging_cluster(), &staging["id"], "Not Ready");
    let (both, one, other) = (vec![&production, &staging], vec![&production], vec![&staging]);
    let none = Vec::new();
    let rows = [
        // Step 1: everything; oldest first to have the document's order.
        ("order=created_time", &both),
        // Step 2.
        ("phase=Not%20Ready", &other),
        // Step 3.
        ("labels=environment:production", &one),
        ("labels=region:us-east1", &none),
        ("labels=environment:production,team:platform", &one),
        ("provider=gcp", &one),
        ("phase=Ready&labels=environment:production", &one),
        // The parameters it lists without an example.
        ("phase=Ready", &one),
        ("provider=aws", &other),
        ("region=us-west-2", &other),
        ("name=staging", &other),
        ("name=%22my-test-cluster%22", &one),
        ("name=%22test%22", &none),
        ("labels=environment:production&provider=gcp&region=us-east1&phase=Ready", &one),
        ("labels=environment:staging&phase=Ready", &none),
    ];
    for (query, expected) in rows {
        let list = server.get(&format!("clusters?{query}")).await.expect(200);
        subset(&list, &json!({ "items": expected, "total": expected.len() }));
        list["items"].as_array().expect("a list").iter().for_each(times);
    }
    // Phases that no cluster is in are no error where the profile has them.
    if server.profile() == Profile::Full {
        for phase in ["Pending", "Terminating"] {
            let list = server.get(&format!("clusters?phase={phase}")).await.expect(200);
            subset(&list, &json!({ "items": [], "total": 0 }));
        }
    }
}

async fn full_journey_4_update_cluster_configuration(setup: Setup) {
    let server = setup.start().await;
    let (before, path) = ready_cluster(&server, &my_test_cluster()).await;
    let old_lines = server.get(&format!("{path}/statuses")).await.expect(200);
    server.set_latency("dns", HELD_MS).await;

    // Step 1: a new region, more nodes.
    let spec = json!({ "provider": "gcp", "region": "us-west1", "nodeCount": 5 });
    let patched = server.patch(&path, &json!({ "spec": spec })).await.expect(200);
    let mut body = my_test_cluster();
    body["spec"] = spec;
    subset(&patched, &shown(&body, &before["id"], "Not Ready"));
    assert_eq!(patched["created_at"], before["created_at"]);
    times(&patched);

    // Step 2: adapters at work on it, in new lines.
    let line = |adapter: &str, phase: &str, message: &str| {
        json!({
            "cluster_id": before["id"],
            "adapter_name": adapter,
            "phase": phase,
            "message": message,
        })
    };
    let lines = server.statuses_with(&path, json!({
        "cluster_id": before["id"],
        "statuses": [
            line("validation", "Complete", "Validation completed successfully for updated spec"),
            line("dns", "Running", "DNS configuration in progress for new region us-west1"),
            line("infrastructure", "Pending", "Waiting for validation and DNS to complete"),
        ],
    }));
    let lines = lines.await;
    for place in 0..3 {
        let id = format!("/statuses/{place}/id");
        assert_ne!(lines.pointer(&id), old_lines.pointer(&id), "a generation has lines of its own");
    }

    // Step 3: done.
    server.set_latency("dns", 0).await;
    let ready = server.ready(&path).await;
    subset(&ready, &shown(&body, &before["id"], "Ready"));
    times(&ready);
    let lines = server.get(&format!("{path}/statuses")).await.expect(200);
    let complete = lines["statuses"].as_array().expect("a list");
    assert!(complete.iter().all(|line| line["phase"] == "Complete"), "{lines:#}");
    let inventory = server.cloud_inventory().await;
    let items = inventory[text(&before, "/id")].as_array().expect("what was made").clone();
    assert!(items.iter().all(|item| item["region"] == "us-west1"), "{items:#?}");
}

async fn full_journey_5_delete_cluster(setup: Setup) {
    let server = setup.start().await;
    let mut body = my_test_cluster();
    body["spec"] = json!({ "provider": "gcp", "region": "us-west1", "nodeCount": 5 });
    let (before, path) = ready_cluster(&server, &body).await;
    let id = text(&before, "/id");
    // Everything that is removed is held; infrastructure is let go, and DNS comes after it.
    server.set_latency("removal", HELD_MS).await;

    // Step 1: ask.
    let deleting = server.delete(&path).await.expect(202);
    subset(&deleting, &shown(&body, &before["id"], server.profile().last_phase()));
    times(&deleting);
    assert!(deleting["deleted_time"].is_string(), "{deleting:#}");

    // Step 2: cleanup in reverse order. While infrastructure is at it, DNS waits.
    let line = |adapter: &str, phase: &str, message: &str| json!({ "cluster_id": id, "adapter_name": adapter, "phase": phase, "message": message });
    server
        .statuses_with(
            &path,
            json!({ "cluster_id": id, "statuses": [
        line("infrastructure", "Running", "Removing infrastructure for us-west1"),
        line("dns", "Pending", "Waiting for infrastructure to be cleaned up"),
        line("validation", "Pending", "Waiting for infrastructure and DNS to be cleaned up"),
    ] }),
        )
        .await;
    let seen = json!({ "phase": server.profile().last_phase() });
    subset(&server.get(&path).await.expect(200)["status"], &seen);
    server.set_latency("removal", 0).await;

    // Step 3: gone, and the answer says so.
    let message = format!("Cluster {id} has been successfully deleted");
    let gone = json!({ "error": "ClusterNotFound", "message": message });
    server.gone(&path).await.refused(404, &gone);
    server.get(&format!("{path}/statuses")).await.refused(404, &gone);
    assert_eq!(server.count("clusters").await.0, 0);
    let inventory = server.cloud_inventory().await;
    assert_eq!(inventory, json!({}), "nothing is left at the provider");
    assert_eq!(server.cloud_machines().await, Vec::<Value>::new());
}

/// The moment the document shows: infrastructure is cleaned up, DNS is at it. Infrastructure's adapter
/// is outside here, so that the moment lasts.
async fn full_journey_5_step_2_monitor_deletion_progress(setup: Setup) {
    let server = setup
        .config(
            "adapters: { cluster: [{ name: validation }, { name: dns, depends_on: [validation] },\
             { name: infrastructure, runner: external, depends_on: [validation, dns] }] }",
        )
        .start()
        .await;
    let mut body = my_test_cluster();
    body["spec"] = json!({ "provider": "gcp", "region": "us-west1", "nodeCount": 5 });
    let created = server.create("clusters", &body).await;
    let (id, path) = (&created["id"], format!("clusters/{}", text(&created, "/id")));
    let report = |generation: u32, tri: [&str; 2], message: &str, more: Option<&str>| {
        let condition = |kind: &str, status: &str| json!({ "type": kind, "status": status, "reason": "Done", "message": message });
        let [available, applied] = tri;
        let mut conditions = vec![
            condition("Available", available),
            condition("Applied", applied),
            condition("Health", "True"),
        ];
        conditions.extend(more.map(|kind| condition(kind, "True")));
        json!({
            "adapter": "infrastructure",
            "observed_generation": generation,
            "conditions": conditions,
        })
    };
    let statuses = format!("{path}/statuses");
    let made = report(1, ["True", "True"], "Network and control plane created", None);
    server.put(&statuses, &made).await.expect(201);
    server.ready(&path).await;
    server.set_latency("removal", HELD_MS).await;
    let deleting = server.delete(&path).await.expect(202);
    let cleaned = "Infrastructure resources successfully cleaned up";
    let generation = deleting["generation"].as_u64().and_then(|n| u32::try_from(n).ok());
    let generation = generation.expect("a generation");
    let finished = report(generation, ["False", "False"], cleaned, Some("Finalized"));
    server.put(&statuses, &finished).await.expect(201);

    let line = |adapter: &str, phase: &str, message: &str| json!({ "cluster_id": id, "adapter_name": adapter, "phase": phase, "message": message });
    let expected = json!({ "cluster_id": id, "statuses": [
        line("infrastructure", "Complete", cleaned),
        line("dns", "Running", "Removing DNS records for us-west1"),
        line("validation", "Pending", "Waiting for infrastructure and DNS to be cleaned up"),
    ] });
    server.statuses_with(&path, expected).await;
    server.set_latency("removal", 0).await;
    server.gone(&path).await.refused(404, &json!({ "error": "ClusterNotFound" }));
}

async fn full_journey_6_cluster_access_control_and_permissions(setup: Setup) {
    let server = setup
        .tokens(json!([
            { "token": "user-a-token", "name": "user-a", "role": "operator", "teams": ["alpha"] },
            { "token": "user-b-token", "name": "user-b", "role": "operator", "teams": ["beta"] },
        ]))
        .start()
        .await;
    let (a, b) = (server.with_token("user-a-token"), server.with_token("user-b-token"));

    let body = json!({
        "name": "team-alpha-cluster",
        "spec": { "provider": "gcp", "region": "us-east1", "nodeCount": 3 },
        "labels": { "environment": "production", "team": "alpha" },
    });
    let created = a.create("clusters", &body).await;
    subset(&created, &shown(&body, &created["id"], server.profile().first_phase()));
    let path = format!("clusters/{}", text(&created, "/id"));

    // The other team: refused, whatever it tries.
    let denied = json!({
        "error": "PermissionDenied",
        "message": "User does not have permission to access this cluster",
    });
    b.get(&path).await.refused(403, &denied);
    b.get("clusters/team-alpha-cluster").await.refused(403, &denied);
    b.get(&format!("{path}/statuses")).await.refused(403, &denied);
    b.get(&format!("{path}/nodepools")).await.refused(403, &denied);
    b.patch(&path, &json!({ "labels": { "team": "beta" } })).await.refused(403, &denied);
    b.delete(&path).await.refused(403, &denied);
    b.post(&format!("{path}/nodepools"), &my_nodepool()).await.refused(403, &denied);

    // Nor does it see it in lists, by any filter; its own team does.
    let queries = ["", "?labels=team:alpha", "?search=name%3D'team-alpha-cluster'", "?size=1"];
    for query in queries {
        assert_eq!(b.count(&format!("clusters{query}")).await.0, 0, "{query}");
        assert_eq!(a.count(&format!("clusters{query}")).await.0, 1, "{query}");
    }
    subset(&a.ready(&path).await, &shown(&body, &created["id"], "Ready"));
    // Nobody creates for another team, either.
    let stolen = json!({ "name": "stolen", "spec": {}, "labels": { "team": "alpha" } });
    b.post("clusters", &stolen).await.refused(403, &json!({ "error": "PermissionDenied" }));
    assert_eq!(a.count("clusters").await.0, 1);
}

async fn full_journey_7_create_a_new_nodepool(setup: Setup) {
    let server = setup.start().await;
    let (cluster, path) = ready_cluster(&server, &my_test_cluster()).await;
    server.set_latency("machine", HELD_MS).await;

    // Step 1: submit.
    let body = my_nodepool();
    let created = server.create(&format!("{path}/nodepools"), &body).await;
    subset(&created, &pool_shown(&body, &cluster, server.profile().first_phase()));
    times(&created);

    // Step 2: poll, by the id it was given.
    let path = format!("{path}/nodepools/my-nodepool");
    let polled = server.in_phase(&path, "Not Ready").await;
    subset(&polled, &pool_shown(&body, &cluster, "Not Ready"));
    times(&polled);

    // Step 3: ready.
    server.set_latency("machine", 0).await;
    let ready = server.ready(&path).await;
    subset(&ready, &pool_shown(&body, &cluster, "Ready"));
    subset(&server.get(&path).await.expect(200), &pool_shown(&body, &cluster, "Ready"));
    times(&ready);
    let lines = server.get(&format!("{path}/statuses")).await.expect(200);
    subset(
        &lines,
        &json!({ "cluster_id": cluster["id"], "statuses": [
        { "adapter_name": "validation", "phase": "Complete" },
        { "adapter_name": "machines", "phase": "Complete" },
    ] }),
    );
    assert_eq!(server.cloud_machines_of(POOL).await.len(), 5, "nodes are provisioned");
}

async fn full_journey_8_list_and_filter_nodepools(setup: Setup) {
    let server = setup.start().await;
    let (cluster, path) = ready_cluster(&server, &my_test_cluster()).await;
    let pools = format!("{path}/nodepools");
    server.create(&pools, &my_nodepool()).await;
    server.ready(&format!("{pools}/my-nodepool")).await;
    server.inject(json!({ "kind": "ProvisioningFailed", "match": "gpu-nodepool" })).await;
    server.create(&pools, &gpu_nodepool()).await;
    server.in_phase(&format!("{pools}/gpu-nodepool"), "Not Ready").await;

    let compute = pool_shown(&my_nodepool(), &cluster, "Ready");
    let gpu = pool_shown(&gpu_nodepool(), &cluster, "Not Ready");
    let (both, one, other) = (vec![&compute, &gpu], vec![&compute], vec![&gpu]);
    let none = Vec::new();
    let rows = [
        // Step 1; oldest first to have the document's order.
        ("order=created_time", &both),
        // Step 2.
        ("labels=workload:gpu", &other),
        ("phase=Ready", &one),
        ("labels=workload:gpu&phase=Ready", &none),
        // Its use cases.
        ("labels=workload:gpu&phase=Not%20Ready", &other),
        ("labels=workload:compute", &one),
    ];
    for (query, expected) in rows {
        let list = server.get(&format!("{pools}?{query}")).await.expect(200);
        subset(&list, &json!({ "items": expected, "total": expected.len() }));
        list["items"].as_array().expect("a list").iter().for_each(times);
    }
}

async fn full_journey_9_update_nodepool_configuration(setup: Setup) {
    let server = setup.start().await;
    let (cluster, path) = ready_cluster(&server, &my_test_cluster()).await;
    let mut body = my_nodepool();
    server.create(&format!("{path}/nodepools"), &body).await;
    let path = format!("{path}/nodepools/my-nodepool");
    server.ready(&path).await;

    // Step 1: only the count is sent; the machine type stays.
    let patched = server.patch(&path, &json!({ "spec": { "nodeCount": 8 } })).await.expect(200);
    body["spec"]["nodeCount"] = json!(8);
    subset(&patched, &pool_shown(&body, &cluster, "Not Ready"));
    times(&patched);

    // Step 2: done.
    let ready = server.ready(&path).await;
    subset(&ready, &pool_shown(&body, &cluster, "Ready"));
    times(&ready);
    assert_eq!(server.cloud_machines_of(POOL).await.len(), 8);
}

async fn full_journey_10_delete_nodepool(setup: Setup) {
    let server = setup.start().await;
    let (cluster, cluster_path) = ready_cluster(&server, &my_test_cluster()).await;
    let body = my_nodepool();
    let created = server.create(&format!("{cluster_path}/nodepools"), &body).await;
    let path = format!("{cluster_path}/nodepools/my-nodepool");
    server.ready(&path).await;
    server.set_latency("removal", HELD_MS).await;

    // Step 1: ask.
    let deleting = server.delete(&path).await.expect(202);
    subset(&deleting, &pool_shown(&body, &cluster, server.profile().last_phase()));
    times(&deleting);
    let removing = server.statuses_with(
        &path,
        json!({ "statuses": [
            { "adapter_name": "machines", "phase": "Running" },
            { "adapter_name": "validation", "phase": "Pending" },
        ] }),
    );
    let removing = text(&removing.await, "/statuses/0/message").to_owned();
    assert!(removing.starts_with("Removing nodes; 5 left: my-nodepool-"), "{removing}");
    server.set_latency("removal", 0).await;

    // Step 2: gone, by its name and by its uid.
    for token in ["my-nodepool", text(&created, "/uid")] {
        let message = format!("NodePool {token} has been successfully deleted");
        let gone = json!({ "error": "NodePoolNotFound", "message": message });
        server.gone(&format!("{cluster_path}/nodepools/{token}")).await.refused(404, &gone);
    }
    assert_eq!(server.count(&format!("{cluster_path}/nodepools")).await.0, 0);
    assert_eq!(
        server.cloud_machines().await,
        Vec::<Value>::new(),
        "nodes removed from the cluster"
    );
    // The cluster is not touched.
    assert_eq!(server.get(&cluster_path).await.expect(200)["status"]["phase"], "Ready");
}

/// The engines are what the names of the tests say.
#[tokio::test]
async fn a_server_uses_the_store_it_is_told_to() {
    for (engine, file) in [(Engine::Embedded, true), (Engine::Postgres, false)] {
        let server = Setup::new(engine, Profile::Full).start().await;
        server.create("clusters", &my_test_cluster()).await;
        let files = std::fs::read_dir(server.dir().join("data")).expect("a directory");
        let names = files.filter_map(Result::ok).map(|file| file.file_name());
        let stores = names.filter(|name| name.to_string_lossy().contains("argosy"));
        assert_eq!(0 < stores.count(), file, "{engine:?}");
    }
}
