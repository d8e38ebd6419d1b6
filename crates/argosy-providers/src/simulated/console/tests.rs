use super::*;
use argosy_control::clock::Clock;
use argosy_control::provider::Provider;
use argosy_core::instance::InstanceId;
use argosy_core::machine::{Order, Purchase, Tags};
use axum::body::{self, Body as RawBody};
use serde_json::Value;
use tower::ServiceExt;

fn cloud() -> SimulatedCloud {
    let clock = Clock::simulated("2025-10-28T12:00:00Z".parse().unwrap());
    SimulatedCloud::in_memory(Catalog::default(), clock, Latencies::INSTANT)
}

/// Asks, as the binary mounts it; an empty `sent` is no body.
async fn ask(cloud: &SimulatedCloud, request: &str, sent: &str) -> (u16, Value) {
    let (method, path) = request.split_once(' ').unwrap();
    let app = Router::new().nest("/simulated-cloud/v1", router(cloud.clone()));
    let mut request =
        http::Request::builder().method(method).uri(format!("/simulated-cloud/v1{path}"));
    if !sent.is_empty() {
        request = request.header("content-type", "application/json");
    }
    let request = request.body(RawBody::from(sent.to_owned())).unwrap();
    let response = app.oneshot(request).await.unwrap();
    let status = response.status().as_u16();
    let problem = response
        .headers()
        .get("content-type")
        .is_some_and(|kind| kind == "application/problem+json");
    assert_eq!(problem, 400 <= status, "{status}");
    let bytes = body::to_bytes(response.into_body(), 1 << 20).await.unwrap();
    (status, serde_json::from_slice(&bytes).unwrap_or_default())
}

#[tokio::test(start_paused = true)]
async fn what_is_set_is_shown_and_can_be_taken_back() {
    let cloud = cloud();
    let rows = [
        ("PUT /zones/Acme.test", "", 201, "/zones/0", json!("acme.test")),
        ("PUT /zones/acme.test", "", 204, "/zones/0", json!("acme.test")),
        ("DELETE /zones/acme.test", "", 204, "/zones/0", json!("example.com")),
        (
            "PUT /quotas/gcp/us-east1/CPUS",
            r#"{"limit": 100, "used_by_others": 90}"#,
            200,
            "/providers/gcp/quotas/us-east1/CPUS",
            json!({ "limit": 100, "used": 90 }),
        ),
        (
            "PUT /quotas/gcp/us-east1/CPUS",
            r#"{"limit": 7}"#,
            200,
            "/providers/gcp/quotas/us-east1/CPUS",
            json!({ "limit": 7, "used": 0 }),
        ),
        (
            "PUT /permissions/aws/denied/ec2:CreateVpc",
            "",
            201,
            "/providers/aws/denied_permissions",
            json!(["ec2:CreateVpc"]),
        ),
        (
            "DELETE /permissions/aws/denied/ec2:CreateVpc",
            "",
            204,
            "/providers/aws/denied_permissions",
            json!([]),
        ),
        ("PUT /denied-labels/team:platform", "", 201, "/denied_labels", json!(["team:platform"])),
        ("DELETE /denied-labels/team:platform", "", 204, "/denied_labels", json!([])),
        (
            "POST /faults",
            r#"{"kind": "ProvisioningFailed", "match": "gpu-*", "params": {"node": 3}, "count": 2}"#,
            201,
            "/faults",
            json!([{
                "id": 1,
                "kind": "ProvisioningFailed",
                "match": "gpu-*",
                "params": { "node": 3 },
                "count": 2,
            }]),
        ),
        ("DELETE /faults/1", "", 204, "/faults", json!([])),
        (
            "PUT /latency",
            r#"{"dns": {"min_ms": 5, "max_ms": 9}}"#,
            200,
            "/latency/dns",
            json!({ "min_ms": 5, "max_ms": 9 }),
        ),
        ("GET /inventory", "", 200, "/inventory", json!({})),
        ("GET /machines", "", 200, "/inventory", json!({})),
        (
            "POST /faults",
            r#"{"kind": "StockOut", "match": "gcp", "params": {"zone": "us-east1-b"}}"#,
            201,
            "/faults/0/params",
            json!({ "zone": "us-east1-b" }),
        ),
        ("DELETE /faults/2", "", 204, "/faults", json!([])),
    ];
    for (request, sent, status, pointer, expected) in rows {
        assert_eq!(ask(&cloud, request, sent).await.0, status, "{request}");
        let (_, state) = ask(&cloud, "GET ", "").await;
        assert_eq!(state.pointer(pointer), Some(&expected), "{request}");
    }
}

#[tokio::test(start_paused = true)]
async fn bad_input_is_told_with_the_field_and_what_is_allowed() {
    let rows = [
        ("PUT /zones/-bad-", "", 400, "domain must be dot-separated labels"),
        ("DELETE /zones/none.test", "", 404, "There is no zone none.test."),
        (
            "PUT /quotas/azure/x/CPUS",
            r#"{"limit": 1}"#,
            400,
            "Unknown provider 'azure'. Supported: aws, gcp, lambda",
        ),
        (
            "PUT /quotas/lambda/moon/CPUS",
            r#"{"limit": 1}"#,
            400,
            "Unknown region 'moon'. Supported: us-west-1, us-east-1,",
        ),
        (
            "PUT /quotas/gcp/us-east1/DISKS",
            r#"{"limit": 1}"#,
            400,
            "Unknown resource 'DISKS'. Supported: CPUS, GPUS, CLUSTERS",
        ),
        ("PUT /quotas/gcp/us-east1/CPUS", r#"{"limit": -1}"#, 400, "limit: invalid value"),
        ("PUT /quotas/gcp/us-east1/CPUS", r#"{"limit": 1, "x": 1}"#, 400, "expected `limit` or"),
        ("PUT /quotas/gcp/us-east1/CPUS", "{}", 400, "missing field `limit`"),
        ("PUT /quotas/gcp/us-east1/CPUS", "{", 400, "EOF while parsing"),
        ("PUT /quotas/gcp/us-east1/CPUS", "", 415, "application/json"),
        (
            "PUT /permissions/gcp/denied/fly",
            "",
            400,
            "Unknown permission 'fly'. Supported: storage.buckets.get,",
        ),
        ("DELETE /permissions/gcp/denied/dns.changes.create", "", 404, "is not denied."),
        ("PUT /denied-labels/team", "", 400, "label must have the form key:value"),
        ("DELETE /denied-labels/team:x", "", 404, "Label team:x is not denied."),
        (
            "POST /faults",
            r#"{"kind": "Gremlin"}"#,
            400,
            "kind: unknown variant `Gremlin`, expected",
        ),
        ("POST /faults", r#"{"kind": "Timeout", "count": 0}"#, 400, "count must be at least 1"),
        ("POST /faults", r#"{"kind": "Timeout", "match": ""}"#, 400, "match must be a resource's"),
        (
            "POST /faults",
            r#"{"kind": "Timeout", "params": {"node": 3}}"#,
            400,
            "node belongs to ProvisioningFailed",
        ),
        (
            "POST /faults",
            r#"{"kind": "HealthCheckFailed", "params": {"after_s": 3}}"#,
            400,
            "after_s belongs to kind Timeout",
        ),
        (
            "POST /faults",
            r#"{"kind": "Kill", "params": {"done": true}}"#,
            400,
            "done belongs to CreateTimesOut or CreateErrors",
        ),
        (
            "POST /faults",
            r#"{"kind": "Kill", "params": {"zone": "us-east1-b"}}"#,
            400,
            "zone belongs to StockOut",
        ),
        (
            "POST /faults",
            r#"{"kind": "StockOut", "params": {"machine_type": ""}}"#,
            400,
            "params.machine_type must have 1 to 128 characters",
        ),
        (
            "POST /machines/workers-1/inject",
            r#"{"what": "xid:79 gpu:3"}"#,
            400,
            "nothing runs on the machines of this cloud",
        ),
        ("DELETE /faults/77", "", 404, "There is no fault 77."),
        ("DELETE /faults/x", "", 404, "There is no fault x."),
        (
            "PUT /latency",
            r#"{"dns": {"min_ms": 9, "max_ms": 5}}"#,
            400,
            "dns must have min_ms <= max_ms <= 3600000, not 9 and 5",
        ),
        ("PUT /latency", r#"{"lunch": {}}"#, 400, "unknown field `lunch`, expected one of"),
        ("GET /nowhere", "", 404, "There is no such page"),
        ("POST /inventory", "", 405, "does not take that method"),
    ];
    let cloud = cloud();
    let before = serde_json::to_value(cloud.overview()).unwrap();
    for (request, sent, status, expected) in rows {
        let (answered, problem) = ask(&cloud, request, sent).await;
        assert_eq!(answered, status, "{request} {sent}: {problem}");
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains(expected), "{request} {sent}: {detail}");
    }
    assert_eq!(serde_json::to_value(cloud.overview()).unwrap(), before, "nothing was changed");
}

#[tokio::test(start_paused = true)]
async fn what_is_kept_is_limited() {
    let cloud = cloud();
    for number in 0..ENTRIES_MAX {
        cloud.deny_label(&format!("team:{number}")).await.unwrap();
    }
    let (status, problem) = ask(&cloud, "PUT /denied-labels/team:more", "").await;
    assert_eq!(status, 409, "{problem}");
}

#[tokio::test(start_paused = true)]
async fn the_machines_are_listed_with_what_was_asked_for_and_how_they_are() {
    let cloud = cloud();
    let order = Order {
        provider: "gcp".to_owned(),
        region: "us-east1".to_owned(),
        zone: "us-east1-c".to_owned(),
        machine_type: "a3-highgpu-8g".to_owned(),
        spot: true,
        image: String::new(),
        price_per_hour: None,
    };
    let purchase = Purchase {
        instance: InstanceId::parse("workers-1").unwrap(),
        token: uuid::Uuid::from_u128(7),
        tags: Tags::default(),
        order,
        number: 1,
        pool: "workers".to_owned(),
        tenant: "default".to_owned(),
        labels: BTreeMap::new(),
    };
    cloud.named("gcp").create(&purchase).await.unwrap();
    let (_, machines) = ask(&cloud, "GET /machines", "").await;
    let expected = json!({
        "name": "workers-1",
        "provider": "gcp",
        "region": "us-east1",
        "zone": "us-east1-c",
        "machine_type": "a3-highgpu-8g",
        "gpus": 8,
        "spot": true,
        "price_per_hour": 29.417,
        "pool": "workers",
        "state": "Running",
        "up": true,
        "dead": false,
    });
    for (member, value) in expected.as_object().unwrap() {
        assert_eq!(machines[0][member], *value, "{member}: {machines}");
    }
}
