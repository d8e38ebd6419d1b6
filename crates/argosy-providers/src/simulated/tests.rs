use super::console::Stage;
use super::*;
use argosy_core::id::ResourceId;
use argosy_core::label::Labels;
use argosy_core::name::Name;
use argosy_core::resource::{Kind, Resource, Spec, Stamp};
use jiff::SignedDuration;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

const EPOCH: &str = "2025-10-28T12:00:00Z";

fn cloud(latencies: Latencies) -> SimulatedCloud {
    SimulatedCloud::in_memory(Catalog::default(), clock(), latencies)
}

fn clock() -> Clock {
    Clock::simulated(EPOCH.parse().unwrap())
}

fn instant() -> SimulatedCloud {
    cloud(Latencies::INSTANT)
}

fn gcp(region: &str) -> Place {
    Place { provider: "gcp".to_owned(), region: region.to_owned() }
}

fn resource(kind: Kind, number: u8, name: &str, spec: Value, labels: Value) -> Resource {
    let id = |number: u8| format!("00000000-0000-7000-8000-0000000000{number:02x}");
    let stamp = Stamp { at: EPOCH.parse().unwrap(), by: "ada".to_owned() };
    Resource {
        id: ResourceId::parse(&id(number)).unwrap(),
        kind,
        name: Name::parse(name).unwrap(),
        tenant: "default".to_owned(),
        owner: None,
        spec: serde_json::from_value::<Spec>(spec).unwrap(),
        labels: Labels::parse(labels.as_object().unwrap()).unwrap(),
        generation: 1,
        created: stamp.clone(),
        updated: stamp.clone(),
        deletion: None,
        without_drain: false,
        shrink_forced: false,
        started: None,
        phase_since: stamp.at,
        conditions: Vec::new(),
        reports: BTreeMap::new(),
        dispatches: BTreeMap::new(),
        stalled: BTreeMap::new(),
    }
}

fn cluster_of(spec: Value, labels: Value) -> Ask {
    let cluster = Arc::new(resource(Kind::Cluster, 1, "my-cluster", spec, labels));
    Ask { resource: cluster.clone(), cluster }
}

fn cluster() -> Ask {
    cluster_of(json!({ "provider": "gcp", "region": "us-east1" }), json!({ "team": "platform" }))
}

fn pool(nodes: u32, machine_type: &str) -> Ask {
    let spec = json!({ "nodeCount": nodes, "machineType": machine_type });
    let pool = resource(Kind::NodePool, 2, "my-nodepool", spec, json!({}));
    Ask { resource: Arc::new(pool), cluster: cluster().cluster }
}

/// `Reason: message`, and how the refusal differs from "nothing made, adapter healthy".
fn told(refusal: &Refusal) -> String {
    let Refusal { cause, applied, healthy, data } = refusal;
    assert!(data["guidance"].as_str().is_some_and(|text| text.ends_with('.')), "{data:?}");
    let applied = if *applied { " (applied)" } else { "" };
    let healthy = if *healthy { "" } else { " (unhealthy)" };
    format!("{}: {}{applied}{healthy}", cause.reason, cause.message)
}

#[track_caller]
fn refused(answer: Result<Done, Refusal>, expected: &str) {
    assert_eq!(told(&answer.expect_err("it should be refused")), expected);
}

#[track_caller]
fn succeeded(answer: Result<Done, Refusal>, expected: &str) -> Map {
    let done = answer.expect("it should succeed");
    assert_eq!(done.unhealthy, None);
    assert_eq!(format!("{}: {}", done.reason, done.message), expected);
    done.data
}

type Map = serde_json::Map<String, Value>;

/// The ids of what exists and is not leaving.
fn living(cloud: &SimulatedCloud, ask: &Ask) -> Vec<String> {
    let items = cloud.inventory().remove(&ask.resource.id).unwrap_or_default();
    let living = items.into_iter().filter(|item| item.state != Stage::Terminating);
    living.map(|item| item.item.id).collect()
}

#[tokio::test(start_paused = true)]
async fn a_cluster_is_made_and_removed_and_a_pool_is_checked() {
    let (cloud, cluster, pool) = (cloud(Latencies::default()), cluster(), pool(5, "n1-standard-4"));
    let data = succeeded(
        cloud.preflight(&cluster).await,
        "AllChecksPassed: Validation completed successfully. All checks passed: \
         route53ZoneFound, s3BucketAccessible, quotaSufficient",
    );
    let results =
        json!({ "route53ZoneFound": true, "s3BucketAccessible": true, "quotaSufficient": true });
    assert_eq!(data["validationResults"], results);
    let data = succeeded(
        cloud.ensure(Part::Dns, &cluster).await,
        "AllRecordsCreated: All DNS records created and verified",
    );
    let records = json!(["api.my-cluster.example.com", "*.apps.my-cluster.example.com"]);
    assert_eq!(data["recordsCreated"], records);
    succeeded(
        cloud.ensure(Part::Infrastructure, &cluster).await,
        "InfrastructureReady: Network and control plane created in us-east1",
    );
    succeeded(
        cloud.preflight(&pool).await,
        "AllChecksPassed: Validation completed successfully. All checks passed: \
         clusterAccessible, machineTypeAvailable",
    );
    succeeded(
        cloud.remove(Part::Infrastructure, &cluster).await,
        "InfrastructureRemoved: Infrastructure resources successfully cleaned up",
    );
    succeeded(cloud.remove(Part::Dns, &cluster).await, "RecordsRemoved: DNS records removed");
    assert_eq!(cloud.inventory(), BTreeMap::new());
}

#[tokio::test(start_paused = true)]
async fn mvp_journey_1_scenario_2_insufficient_permissions() {
    let (cloud, cluster) = (instant(), cluster());
    cloud.deny("gcp", "compute.networks.create").await.unwrap();
    refused(
        cloud.ensure(Part::Infrastructure, &cluster).await,
        "PermissionDenied: Service account lacks compute.networks.create permission in GCP project",
    );
    cloud.grant("gcp", "compute.networks.create").await.unwrap();
    cloud.ensure(Part::Infrastructure, &cluster).await.expect("the cause is mended");
}

#[tokio::test(start_paused = true)]
async fn mvp_journey_1_scenario_3_quota_exceeded() {
    let (cloud, cluster) = (instant(), cluster());
    let full = Quota { limit: 100, used_by_others: 100 };
    cloud.set_quota(gcp("us-east1"), Metric::Cpus, full).await.unwrap();
    let sentence = "QuotaExceeded: GCP quota exceeded for resource: CPUS in region us-east1. \
                    Current: 100/100";
    refused(cloud.preflight(&cluster).await, sentence);
    refused(cloud.ensure(Part::Infrastructure, &cluster).await, sentence);

    let enough = Quota { limit: 104, used_by_others: 100 };
    cloud.set_quota(gcp("us-east1"), Metric::Cpus, enough).await.unwrap();
    cloud.preflight(&cluster).await.expect("the cause is mended");
    cloud.ensure(Part::Infrastructure, &cluster).await.expect("the cause is mended");
    cloud.preflight(&cluster).await.expect("what is there needs no more quota");
}

#[tokio::test(start_paused = true)]
async fn mvp_journey_1_scenario_4_dns_zone_not_found() {
    let (cloud, cluster) = (instant(), cluster());
    cloud.delete_zone("example.com").await.unwrap();
    let data = succeeded(
        cloud.preflight(&cluster).await,
        "AllChecksPassed: Validation completed successfully. All checks passed: \
         s3BucketAccessible, quotaSufficient",
    );
    assert_eq!(data["validationResults"]["route53ZoneFound"], false);
    refused(
        cloud.ensure(Part::Dns, &cluster).await,
        "DNSZoneNotFound: Route53 hosted zone not found for domain example.com. \
         Please create zone or update cluster spec. (unhealthy)",
    );
    cloud.create_zone("example.com").await.unwrap();
    cloud.ensure(Part::Dns, &cluster).await.expect("the cause is mended");
}

#[tokio::test(start_paused = true)]
async fn mvp_journey_2_scenario_1_timeout() {
    let (cloud, cluster) = (cloud(Latencies::default()), cluster());
    let before = cloud.inner.clock.now();
    let once = NewFault { count: Some(1), ..NewFault::new(FaultKind::Timeout) };
    cloud.inject(once).await.unwrap();
    refused(
        cloud.ensure(Part::Infrastructure, &cluster).await,
        "Timeout: GCP cluster creation timed out after 25 minutes. Last status: Not ready",
    );
    let passed = cloud.inner.clock.now().duration_since(before);
    assert_eq!(passed.as_mins(), 25);
    assert_eq!(living(&cloud, &cluster), Vec::<String>::new(), "given up means rolled back");
    cloud.ensure(Part::Infrastructure, &cluster).await.expect("the fault was there once");
}

#[tokio::test(start_paused = true)]
async fn a_stuck_cluster_goes_on_as_soon_as_the_fault_is_cleared() {
    let (cloud, cluster) = (cloud(Latencies::default()), cluster());
    let before = cloud.inner.clock.now();
    let fault = cloud.inject(NewFault::new(FaultKind::Timeout)).await.unwrap();
    let mend = async {
        cloud.inner.clock.sleep_until(before + SignedDuration::from_mins(3)).await;
        cloud.clear(fault.id).await.unwrap()
    };
    let (made, cleared) = tokio::join!(cloud.ensure(Part::Infrastructure, &cluster), mend);
    made.expect("the cause is mended");
    assert!(cleared);
    assert_eq!(cloud.inner.clock.now().duration_since(before).as_mins(), 3);
}

#[tokio::test(start_paused = true)]
async fn mvp_journey_2_scenario_3_degraded() {
    let (cloud, cluster) = (instant(), cluster());
    let fault = cloud.inject(NewFault::new(FaultKind::HealthCheckFailed)).await.unwrap();
    let done = cloud.ensure(Part::Dns, &cluster).await.expect("the records are there");
    let cause = done.unhealthy.expect("but they are not healthy");
    assert_eq!(cause.reason, "HealthCheckFailed");
    assert_eq!(
        cause.message,
        "DNS records exist but health check failing. Record set may be misconfigured."
    );
    cloud.clear(fault.id).await.unwrap();
    let done = cloud.ensure(Part::Dns, &cluster).await.expect("the records are there");
    assert_eq!(done.unhealthy, None);
}

#[tokio::test(start_paused = true)]
async fn mvp_journey_3_scenario_3_label_denied() {
    let (cloud, cluster) = (instant(), cluster());
    cloud.deny_label("team:platform").await.unwrap();
    refused(
        cloud.preflight(&cluster).await,
        "PermissionDenied: Insufficient permissions to access clusters with label 'team:platform'",
    );
    cloud.grant_label("team:platform").await.unwrap();
    cloud.preflight(&cluster).await.expect("the cause is mended");
}

#[tokio::test(start_paused = true)]
async fn mvp_journey_5_scenario_5_nodepools_denied() {
    let sentence = "PermissionDenied: Insufficient permissions to access nodepools in cluster";
    let (cloud, pool) = (instant(), pool(5, "n1-standard-4"));
    cloud.deny("gcp", "container.nodePools.list").await.unwrap();
    refused(cloud.preflight(&pool).await, sentence);
    cloud.grant("gcp", "container.nodePools.list").await.unwrap();
    cloud.deny_label("team:platform").await.unwrap();
    refused(cloud.preflight(&pool).await, sentence);
    cloud.grant_label("team:platform").await.unwrap();
    cloud.preflight(&pool).await.expect("the cause is mended");
}

#[tokio::test(start_paused = true)]
async fn an_empty_spec_gets_defaults() {
    let (cloud, cluster) = (instant(), cluster_of(json!({}), json!({})));
    cloud.preflight(&cluster).await.unwrap();
    let done = cloud.ensure(Part::Infrastructure, &cluster).await.unwrap();
    assert_eq!(done.message, "Network and control plane created in us-east1");
}

#[tokio::test(start_paused = true)]
async fn the_spec_names_the_domain() {
    for spec in [json!({ "dns": { "baseDomain": "Acme.test" } }), json!({ "domain": "acme.test" })]
    {
        let (cloud, cluster) = (instant(), cluster_of(spec, json!({})));
        let refusal = cloud.ensure(Part::Dns, &cluster).await.unwrap_err();
        assert!(refusal.cause.message.contains("for domain acme.test."), "{refusal:?}");
        cloud.create_zone("acme.test").await.unwrap();
        let done = cloud.ensure(Part::Dns, &cluster).await.unwrap();
        assert_eq!(done.data["recordsCreated"][0], "api.my-cluster.acme.test");
    }
}

#[tokio::test(start_paused = true)]
async fn a_zone_takes_its_own_records_with_it() {
    let (cloud, cluster) = (instant(), cluster_of(json!({ "domain": "a.acme.test" }), json!({})));
    for zone in ["acme.test", "a.acme.test"] {
        cloud.create_zone(zone).await.unwrap();
    }
    cloud.ensure(Part::Dns, &cluster).await.unwrap();
    cloud.delete_zone("acme.test").await.unwrap();
    assert_eq!(living(&cloud, &cluster).len(), 2);
    cloud.delete_zone("a.acme.test").await.unwrap();
    assert_eq!(living(&cloud, &cluster).len(), 0);
}

#[tokio::test(start_paused = true)]
async fn an_updated_spec_is_said_to_be_updated() {
    let mut changed = Resource::clone(&cluster().resource);
    changed.generation = 2;
    let changed = Arc::new(changed);
    let ask = Ask { resource: changed.clone(), cluster: changed };
    let done = instant().preflight(&ask).await.unwrap();
    assert_eq!(done.message, "Validation completed successfully for updated spec");
}

#[tokio::test(start_paused = true)]
async fn a_new_region_replaces_what_is_in_the_old_one() {
    let (cloud, before) = (cloud(Latencies::default()), cluster());
    let after = cluster_of(json!({ "provider": "gcp", "region": "us-west1" }), json!({}));
    for part in [Part::Dns, Part::Infrastructure] {
        cloud.ensure(part, &before).await.unwrap();
        cloud.ensure(part, &after).await.unwrap();
    }
    let items = cloud.inventory().remove(&after.resource.id).unwrap();
    assert_eq!(items.len(), 4);
    assert!(items.iter().all(|item| item.item.shape.place == gcp("us-west1")), "{items:?}");
    let quotas = &cloud.overview().providers["gcp"].quotas;
    assert_eq!((quotas["us-east1"]["CPUS"].used, quotas["us-west1"]["CPUS"].used), (0, 4));
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_replaced_is_kept() {
    let cloud = cloud(Latencies::default());
    let none = Quota { limit: 0, used_by_others: 0 };
    cloud.set_quota(gcp("us-west1"), Metric::Clusters, none).await.unwrap();
    let moved = cluster_of(json!({ "provider": "gcp", "region": "us-west1" }), json!({}));
    cloud.ensure(Part::Infrastructure, &cluster()).await.unwrap();
    let before = living(&cloud, &moved);
    refused(
        cloud.preflight(&moved).await,
        "QuotaExceeded: GCP quota exceeded for resource: CLUSTERS in region us-west1. Current: 0/0",
    );
    refused(
        cloud.ensure(Part::Infrastructure, &moved).await,
        "QuotaExceeded: GCP quota exceeded for resource: CLUSTERS in region us-west1. \
         Current: 0/0 (applied)",
    );
    assert_eq!(living(&cloud, &moved), before);
}

/// A file of its own for each test, gone afterwards.
struct TestFile(PathBuf);

impl TestFile {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("argosy-{}-{name}.json", std::process::id()));
        let _ = fs::remove_file(&path);
        Self(path)
    }

    fn open(&self, clock: Clock) -> Result<SimulatedCloud, OpenError> {
        SimulatedCloud::open(&self.0, Catalog::default(), clock, None)
    }
}

impl Drop for TestFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

#[tokio::test]
async fn a_file_that_cannot_be_used_is_refused_with_the_way_out() {
    let file = TestFile::new("corrupt");
    for (text, expected) in [
        ("", "is not a simulated cloud this version can read; move it away"),
        ("{\"version\":1", "is not a simulated cloud"),
        ("{\"version\":1,\"surprise\":true}", "is not a simulated cloud"),
        ("{\"version\":2,\"surprise\":true}", "is not a simulated cloud"),
        ("{\"version\":3,\"anything\":[]}", "has format 3, but this version reads up to 2"),
    ] {
        fs::write(&file.0, text).unwrap();
        let error = file.open(clock()).unwrap_err().to_string();
        assert!(error.contains(expected), "{text}: {error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_shorter_latency_also_ends_what_is_under_way() {
    let hour = Latency { min_ms: Latency::MAX_MS, max_ms: Latency::MAX_MS };
    let slow = Latencies {
        validation: hour,
        dns: hour,
        infrastructure: hour,
        machine: hour,
        removal: hour,
    };
    let (cloud, ask) = (cloud(slow), cluster());
    let began = cloud.inner.clock.now();
    let hurried = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        cloud.set_latencies(Latencies::INSTANT).await.unwrap();
    };
    let (checked, made, ()) =
        tokio::join!(cloud.preflight(&ask), cloud.ensure(Part::Dns, &ask), hurried);
    assert!(checked.is_ok() && made.is_ok());
    assert_eq!(cloud.inner.clock.now().duration_since(began), SignedDuration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn a_spec_the_catalog_does_not_know_is_refused() {
    let rows = [
        (
            json!({ "platform": { "type": "azure" } }),
            "UnsupportedProvider: Unsupported provider 'azure'. \
             Supported providers: aws, gcp, lambda",
        ),
        (
            json!({ "provider": "lambda", "region": "moon" }),
            "InvalidRegion: Invalid region 'moon' for provider Lambda. Supported regions: \
             us-west-1, us-east-1, us-south-1, europe-central-1, asia-northeast-1",
        ),
    ];
    for (spec, expected) in rows {
        refused(instant().preflight(&cluster_of(spec, json!({}))).await, expected);
    }
    // What means the same everywhere is sold under its own name here.
    instant().preflight(&pool(1, "h100-8x")).await.expect("it is sold");
    refused(
        instant().preflight(&pool(1, "abacus")).await,
        "UnknownMachineType: Unknown machine type 'abacus' for provider GCP. \
         Supported machine types: a2-highgpu-1g, a2-highgpu-8g, a3-highgpu-8g, n1-highmem-8, \
         n1-standard-4, n1-standard-8",
    );
}

#[tokio::test(start_paused = true)]
async fn a_fault_strikes_only_the_resources_it_names() {
    let cloud = instant();
    let fault = NewFault { matching: "other".to_owned(), ..NewFault::new(FaultKind::Timeout) };
    cloud.inject(fault).await.unwrap();
    cloud.ensure(Part::Infrastructure, &cluster()).await.expect("it is not `other`");
}

#[tokio::test]
async fn a_cloud_that_is_opened_again_goes_on_where_it_was() {
    let (file, cluster, clock) = (TestFile::new("reopen"), cluster(), clock());
    let cloud = file.open(clock).unwrap();
    cloud.set_latencies(Latencies::INSTANT).await.unwrap();
    cloud.create_zone("acme.test").await.unwrap();
    cloud.deny("aws", "ec2:RunInstances").await.unwrap();
    cloud.deny_label("team:red").await.unwrap();
    let quota = Quota { limit: 40, used_by_others: 7 };
    cloud.set_quota(gcp("us-east1"), Metric::Cpus, quota).await.unwrap();
    let fault = NewFault { matching: "x".to_owned(), ..NewFault::new(FaultKind::Timeout) };
    cloud.inject(fault).await.unwrap();
    cloud.ensure(Part::Infrastructure, &cluster).await.unwrap();
    let before = serde_json::to_value(cloud.overview()).unwrap();

    let again = file.open(clock).unwrap();
    assert_eq!(serde_json::to_value(again.overview()).unwrap(), before);
    assert_eq!(before["providers"]["gcp"]["quotas"]["us-east1"]["CPUS"]["used"], 4 + 7);
    again.ensure(Part::Infrastructure, &cluster).await.unwrap();
    assert_eq!(living(&again, &cluster), living(&cloud, &cluster), "it finds what is there");
    again.remove(Part::Infrastructure, &cluster).await.unwrap();
    assert_eq!(living(&file.open(clock).unwrap(), &cluster), Vec::<String>::new());
}

#[tokio::test]
async fn a_file_of_format_1_is_read_without_the_machines_that_nobody_has_a_record_of() {
    let (file, cluster, clock) = (TestFile::new("format-1"), cluster(), clock());
    let cloud = file.open(clock).unwrap();
    cloud.set_latencies(Latencies::INSTANT).await.unwrap();
    cloud.create_zone("acme.test").await.unwrap();
    cloud.ensure(Part::Infrastructure, &cluster).await.unwrap();
    let machine = json!({
        "id": "workers-9", "kind": "machine", "what": "n1-standard-4", "provider": "gcp",
        "region": "us-east1", "cpus": 4, "gpus": 0, "zone": "us-east1-b",
        "created_at": EPOCH, "ready_at": EPOCH,
    });
    let text = fs::read_to_string(&file.0).unwrap();
    let mut lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let mut whole = lines.next().unwrap();
    whole["version"] = json!(1);
    whole.as_object_mut().unwrap().remove("machines");
    let owner = "00000000-0000-7000-8000-000000000002";
    whole["inventory"][owner] = json!([machine]);
    let mut added = lines.next().unwrap();
    added["items"].as_array_mut().unwrap().push(machine);
    fs::write(&file.0, format!("{whole}\n{added}\n")).unwrap();

    let again = file.open(clock).unwrap();
    assert_eq!(again.overview().zones, cloud.overview().zones);
    assert_eq!(living(&again, &cluster), living(&cloud, &cluster));
    assert_eq!(again.inventory().len(), 1, "the pool had nothing but machines");
    again.remove(Part::Infrastructure, &cluster).await.unwrap();
    let third = file.open(clock).unwrap();
    assert_eq!(third.inventory(), BTreeMap::new(), "it is written in its new form");
}

#[tokio::test]
async fn r2_i31_what_could_not_be_written_is_written_when_it_can_be() {
    let dir = std::env::temp_dir().join(format!("argosy-cloud-unsaved-{}", std::process::id()));
    let away = dir.with_extension("away");
    fs::create_dir_all(&dir).unwrap();
    let file = TestFile(dir.join("cloud.json"));
    let cloud = file.open(clock()).unwrap();
    cloud.create_zone("first.test").await.unwrap();
    fs::rename(&dir, &away).unwrap();
    cloud.create_zone("second.test").await.unwrap_err();
    fs::rename(&away, &dir).unwrap();
    // Nothing changed since.
    cloud.save().await.unwrap();
    let again = file.open(clock()).unwrap();
    let (kept, known) =
        (serde_json::to_value(again.overview()), serde_json::to_value(cloud.overview()));
    assert_eq!(kept.unwrap(), known.unwrap());
    fs::remove_dir_all(&dir).unwrap();
}
