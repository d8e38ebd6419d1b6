use super::fake::{FakeGcp, PROJECT};
use super::*;
use crate::conformance::{Lie, Rig, conforms};
use crate::standin::Lies;
use argosy_control::provider::Cause;
use argosy_core::id::ResourceId;
use argosy_core::instance::InstanceId;
use argosy_core::label::Labels;
use argosy_core::machine::{MachineState, NoticeKind, Tags};
use argosy_core::name::Name;
use argosy_core::resource::{Kind, Resource, Spec, Stamp};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use uuid::Uuid;

struct Bench {
    fake: FakeGcp,
    gcp: Arc<Gcp>,
    zone: &'static str,
}

impl Bench {
    async fn new() -> Self {
        Self::with(|_| {}).await
    }

    async fn with(change: impl FnOnce(&mut Settings)) -> Self {
        let fake = FakeGcp::start().await.unwrap();
        let mut settings = fake.settings();
        change(&mut settings);
        let gcp = Arc::new(Gcp::new(settings, Clock::System).unwrap());
        Self { fake, gcp, zone: "us-central1-a" }
    }

    fn purchase(&self, number: u128) -> Purchase {
        let token = Uuid::from_u128(0x0190_0000_0000_7000_8000_0000_0000_0000 | number);
        let instance = InstanceId::mint("workers", token);
        let tags = Tags {
            installation: Some(Uuid::from_u128(7)),
            instance: Some(instance.clone()),
            pool: Some(ResourceId::new(Uuid::from_u128(8))),
            token: Some(token),
        };
        Purchase {
            instance,
            token,
            tags,
            order: self.order(),
            number: 1,
            pool: "workers".to_owned(),
            tenant: "default".to_owned(),
            labels: BTreeMap::new(),
        }
    }
}

impl Rig for Bench {
    fn provider(&self) -> Arc<dyn Provider> {
        self.gcp.clone()
    }

    async fn truth(&self) -> Vec<String> {
        self.fake.machines()
    }

    async fn inject(&self, lie: Lie) -> bool {
        let set = |change: fn(&mut Lies)| self.fake.lie(change);
        match lie {
            Lie::TimeoutAfterCreate => set(|lies| lies.lose_create = Some(true)),
            Lie::TimeoutBeforeCreate => set(|lies| lies.lose_create = Some(false)),
            Lie::ErrorAfterCreate => set(|lies| lies.fail_create = true),
            // A machine is made by one call.
            Lie::PartialSuccess => return false,
            Lie::LagLists(lag) => self.fake.lie(|lies| lies.lag = lag),
            Lie::Throttle { times } => self.fake.lie(|lies| lies.throttle = times),
            Lie::Quota => set(|lies| lies.quota = true),
            Lie::Capacity => set(|lies| lies.capacity = true),
            Lie::RevokeCredentials => set(|lies| lies.revoked = true),
            Lie::DenyCreate => set(|lies| lies.deny_create = true),
            Lie::DeleteLies => set(|lies| lies.delete_lies = true),
            Lie::ErrorAfterDelete => set(|lies| lies.fail_delete = true),
            Lie::EmptyList => set(|lies| lies.empty_list = true),
            Lie::HalfList => set(|lies| lies.half_list = true),
            Lie::BrokenList => set(|lies| lies.broken_list = true),
            Lie::PlainMachine => self.fake.make_by_hand("us-east1-b", "somebodys-desk"),
        }
        true
    }

    async fn calm(&self) {
        self.fake.lie(Lies::calm);
    }

    fn order(&self) -> Order {
        Order {
            provider: "gcp".to_owned(),
            region: "us-central1".to_owned(),
            zone: self.zone.to_owned(),
            machine_type: "a2-highgpu-1g".to_owned(),
            spot: false,
            image: String::new(),
            price_per_hour: None,
        }
    }

    async fn pass(&self, time: Duration) {
        self.fake.pass(time);
    }
}

#[tokio::test]
async fn g1_g2_g4_g5_g7_g8_g10_g14_gcp_conforms() {
    let bench = Bench::new().await;
    let skipped = conforms(&bench).await;
    assert_eq!(skipped, ["a create that is half done can be found and removed"]);
}

#[tokio::test]
async fn gcp_conforms_when_any_zone_will_do() {
    let bench = Bench { zone: "", ..Bench::new().await };
    let skipped = conforms(&bench).await;
    let expected = [
        "a create that is half done can be found and removed",
        "an unknown zone is refused with the nearest name",
    ];
    assert_eq!(skipped, expected);
}

#[tokio::test]
async fn a_listing_has_every_page_or_is_none() {
    let bench = Bench::new().await;
    for number in 1..=5 {
        bench.gcp.create(&bench.purchase(number)).await.unwrap();
    }
    let listed = bench.gcp.list().await.unwrap();
    assert_eq!(listed.len(), 5);
    let mut ids: Vec<String> = listed.iter().map(|machine| machine.id.to_string()).collect();
    ids.sort();
    assert_eq!(ids, bench.fake.machines());
    bench.fake.lie(|lies| lies.unreachable_zone = true);
    let trouble = bench.gcp.list().await.expect_err("a zone could not be asked");
    assert!(matches!(&trouble, Trouble::Unreachable(why) if why.contains("us-east1-d")));
}

#[tokio::test]
async fn a_machine_whose_operation_goes_on_is_on_its_way() {
    let bench = Bench::with(|settings| settings.pace.create_max = Duration::from_millis(20)).await;
    bench.fake.lie(|lies| lies.stuck = true);
    let purchase = bench.purchase(1);
    let made = bench.gcp.create(&purchase).await.unwrap();
    assert_eq!(made.state, MachineState::Starting);
    assert_eq!(made.tags, purchase.tags);
    assert_eq!([made.id.to_string()], *bench.fake.machines());
}

#[tokio::test]
async fn g7_a_deletion_that_is_done_shows_the_machine_as_gone() {
    let bench = Bench::new().await;
    let purchase = bench.purchase(1);
    let made = bench.gcp.create(&purchase).await.unwrap();
    bench.gcp.delete(&made.id).await.unwrap();
    let leaving = bench.gcp.find(&purchase).await.unwrap().unwrap();
    assert_eq!((leaving.state, &leaving.id), (MachineState::Stopping, &made.id));
    bench.fake.pass(Duration::from_secs(10));
    let gone = bench.gcp.find(&purchase).await.unwrap().unwrap();
    assert_eq!((gone.state, &gone.id), (MachineState::Gone, &made.id));
    // One that never was is not gone, it is unknown.
    assert_eq!(bench.gcp.find(&bench.purchase(2)).await, Ok(None));
    // Its token cannot bring it back.
    let late = bench.gcp.create(&purchase).await.expect_err("its token was used");
    assert!(matches!(late, Trouble::Unsure(_)), "{late:?}");
    assert!(bench.fake.machines().is_empty());
}

#[tokio::test]
async fn a_name_that_is_taken_by_somebody_else_is_no_purchase_of_ours() {
    let bench = Bench::new().await;
    let purchase = bench.purchase(1);
    bench.gcp.create(&purchase).await.unwrap();
    let mut other = purchase.clone();
    other.token = Uuid::from_u128(99);
    other.tags.token = Some(other.token);
    let trouble = bench.gcp.create(&other).await.expect_err("the name is taken");
    assert!(matches!(&trouble, Trouble::Invalid { field, .. } if field == "name"), "{trouble:?}");
    assert_eq!(bench.gcp.find(&other).await, Ok(None));
}

#[tokio::test]
async fn g15_what_google_intends_is_told() {
    let bench = Bench::new().await;
    let mut purchase = bench.purchase(1);
    purchase.order.spot = true;
    let spot = bench.gcp.create(&purchase).await.unwrap();
    assert!(spot.spot && spot.notice.is_none(), "{spot:?}");
    bench.fake.preempt(spot.id.as_str());
    let leaving = bench.gcp.find(&purchase).await.unwrap().unwrap();
    assert_eq!(leaving.notice.map(|notice| notice.kind), Some(NoticeKind::Reclaim));
    let other = bench.purchase(2);
    let made = bench.gcp.create(&other).await.unwrap();
    bench.fake.announce(made.id.as_str(), "2026-11-20T08:00:00Z");
    let notice = bench.gcp.list().await.unwrap().into_iter().find(|it| it.id == made.id);
    let notice = notice.and_then(|it| it.notice).unwrap();
    assert_eq!(notice.kind, NoticeKind::Maintenance);
    assert_eq!(notice.at, Some("2026-11-20T08:00:00Z".parse().unwrap()));
}

#[tokio::test]
async fn i12_what_machines_are_told_reaches_them_and_nobody_else() {
    let told = |purchase: &Purchase| format!("#!/bin/sh\njoin {} s3cr3t", purchase.instance);
    let bench = Bench::with(|settings| settings.user_data = UserData::new(told)).await;
    let purchase = bench.purchase(1);
    bench.gcp.create(&purchase).await.unwrap();
    let script = format!("startup-script=#!/bin/sh\njoin {} s3cr3t", purchase.instance);
    assert_eq!(bench.fake.boot_scripts(), [script]);
    let listed = bench.gcp.list().await.unwrap();
    assert!(!format!("{listed:?} {:?}", bench.gcp).contains("s3cr3t"));

    let config = |_: &Purchase| "#cloud-config\n{}".to_owned();
    let bench = Bench::with(|settings| settings.user_data = UserData::new(config)).await;
    bench.gcp.create(&bench.purchase(1)).await.unwrap();
    assert_eq!(bench.fake.boot_scripts(), ["user-data=#cloud-config\n{}"]);

    let long = |_: &Purchase| "s3cr3t, and too long for you".to_owned();
    let bench = Bench::with(|settings| settings.user_data = UserData::new(long)).await;
    let trouble = bench.gcp.create(&bench.purchase(1)).await.expect_err("too long");
    assert!(!format!("{trouble:?}").contains("s3cr3t"), "{trouble:?}");
}

#[tokio::test]
async fn i12_no_secret_is_in_settings_or_errors() {
    let bench = Bench::new().await;
    bench.gcp.list().await.unwrap();
    bench.fake.lie(|lies| lies.revoked = true);
    let trouble = bench.gcp.list().await.expect_err("revoked");
    let shown = format!("{:?} {:?} {trouble:?}", bench.gcp, bench.fake.settings());
    for secret in ["ya29", "PRIVATE KEY", "BEGIN", "private_key"] {
        assert!(!shown.contains(secret), "{secret} in {shown}");
    }
    assert!(matches!(&trouble, Trouble::Credentials(why) if why.contains("invalid_grant")));
}

#[tokio::test]
async fn settings_that_cannot_be_used_are_refused_without_being_repeated() {
    let fake = FakeGcp::start().await.unwrap();
    let check = |change: &dyn Fn(&mut Settings), expected: &str| {
        let mut settings = fake.settings();
        change(&mut settings);
        let error = Gcp::new(settings, Clock::System).expect_err(expected).to_string();
        assert!(error.starts_with(expected), "{error}");
        assert!(!error.contains("s3cr3t"), "{error}");
    };
    check(&|it| it.project = String::new(), "project must be");
    check(&|it| it.project = "../other".to_owned(), "project must be");
    check(&|it| it.disk_gb = 1, "disk_gb must be");
    check(&|it| it.image = String::new(), "image must not");
    check(&|it| it.network = String::new(), "network must not");
    check(&|it| it.endpoints.compute = "http://example.com".to_owned(), "endpoints.compute `http");
    check(&|it| it.endpoints.dns = "s3://x".to_owned(), "endpoints.dns");
    let key = |text: &str| Credentials::Key(Credential::new(text));
    check(&|it| it.credentials = key("s3cr3t"), "credentials are not the JSON key");
    let file = json!({ "client_email": "a", "private_key": "s3cr3t", "token_uri": "https://x" });
    check(&|it| it.credentials = key(&file.to_string()), "credentials hold a private key");
    let mut file: Value = serde_json::from_str(&fake.key()).unwrap();
    file["token_uri"] = json!("http://example.com/token");
    check(&|it| it.credentials = key(&file.to_string()), "credentials: token_uri `http");
    check(
        &|it| {
            it.credentials = Credentials::Metadata;
            it.endpoints.metadata = "http://example.com".to_owned();
        },
        "endpoints.metadata",
    );
}

#[tokio::test]
async fn one_token_serves_many_calls_and_is_replaced_early() {
    let bench = Bench::new().await;
    let calls = (0..20).map(|_| bench.gcp.list());
    for listed in futures_util::future::join_all(calls).await {
        listed.unwrap();
    }
    assert_eq!(bench.fake.tokens_given(), 1);
    // Withdrawn before its time: one more is fetched, and the call goes on.
    bench.fake.withdraw_tokens();
    bench.gcp.list().await.unwrap();
    assert_eq!(bench.fake.tokens_given(), 2);

    let bench = Bench::new().await;
    bench.fake.set_token_s(299);
    bench.gcp.list().await.unwrap();
    bench.gcp.list().await.unwrap();
    assert_eq!(bench.fake.tokens_given(), 2, "less than five minutes are left: not used again");
}

#[tokio::test]
async fn a_token_is_used_to_its_end_while_the_sign_in_is_out_of_order() {
    let bench = Bench::new().await;
    bench.fake.set_token_s(200);
    bench.gcp.list().await.unwrap();
    bench.fake.lie(|lies| lies.sign_in_down = true);
    bench.gcp.list().await.unwrap();
    assert_eq!(bench.fake.tokens_given(), 1);
    // One that was refused is not used to its end.
    bench.fake.withdraw_tokens();
    let trouble = bench.gcp.list().await.expect_err("no token is left");
    assert!(matches!(trouble, Trouble::Unreachable(_)), "{trouble:?}");
}

#[tokio::test]
async fn the_metadata_server_signs_in_too() {
    let bench = Bench::with(|settings| settings.credentials = Credentials::Metadata).await;
    bench.gcp.create(&bench.purchase(1)).await.unwrap();
    assert_eq!(bench.fake.machines().len(), 1);
    bench.fake.lie(|lies| lies.revoked = true);
    let trouble = bench.gcp.list().await.expect_err("revoked");
    assert!(matches!(trouble, Trouble::Credentials(_)), "{trouble:?}");
}

#[tokio::test]
async fn hostile_answers_buy_nothing_and_end_nothing() {
    let bench = Bench::with(|settings| {
        settings.pace.create_max = Duration::from_millis(20);
        settings.pace.call_max = Duration::from_secs(10);
    })
    .await;
    let made = bench.gcp.create(&bench.purchase(1)).await.unwrap();
    let bodies = [
        "".to_owned(),
        "{}".to_owned(),
        "[]".to_owned(),
        "null".to_owned(),
        "<html>".to_owned(),
        "{\"items\": 5}".to_owned(),
        "{\"items\": {\"zones/a\": {\"instances\": [{\"name\": 5}]}}}".to_owned(),
        "{\"name\": [], \"status\": {}}".to_owned(),
        "{\"nextPageToken\": \"again\", \"items\": {}}".to_owned(),
        "[".repeat(100_000),
        format!("\"{}\"", "x".repeat(10 * 1024 * 1024)),
    ];
    for body in bodies {
        let shown: String = body.chars().take(60).collect();
        bench.fake.lie(|lies| lies.body = Some(body.into_bytes()));
        let answer = bench.gcp.create(&bench.purchase(2)).await;
        assert!(matches!(answer, Err(Trouble::Unsure(_))), "{shown}: {answer:?}");
        let answer = bench.gcp.delete(&made.id).await;
        assert!(matches!(answer, Err(Trouble::Unsure(_))), "{shown}: {answer:?}");
        // An empty object is an empty list; whoever keeps records notices (G11).
        if let Ok(listed) = bench.gcp.list().await {
            assert!(listed.is_empty(), "{shown}: {listed:?}");
        }
        let _whatever = bench.gcp.offers("us-central1").await;
        let _whatever = bench.gcp.find(&bench.purchase(1)).await;
        let _whatever = bench.gcp.console(&made.id).await;
        bench.fake.lie(Lies::calm);
        assert_eq!([made.id.to_string()], *bench.fake.machines(), "{shown}");
    }
}

#[tokio::test]
async fn g10_room_is_told_with_the_numbers() {
    let bench = Bench::new().await;
    bench.fake.set_quota("us-central1", "NVIDIA_A100_GPUS", 2.0);
    let order = bench.order();
    bench.gcp.room(&order, 2).await.unwrap();
    bench.gcp.create(&bench.purchase(1)).await.unwrap();
    let trouble = bench.gcp.room(&order, 2).await.expect_err("one is left");
    let expected = Trouble::Quota {
        resource: "GPUs".to_owned(),
        each: 1,
        available: 1,
        message: "GCP quota exceeded for resource: NVIDIA_A100_GPUS in region us-central1. \
                  Current: 1/2. Required: 2 GPUs, Available: 1 GPUs"
            .to_owned(),
    };
    assert_eq!(trouble, expected);
    bench.gcp.create(&bench.purchase(2)).await.unwrap();
    // The operation says only that it is too much; the numbers are asked for.
    let trouble = bench.gcp.create(&bench.purchase(3)).await.expect_err("none is left");
    assert!(matches!(trouble, Trouble::Quota { each: 1, available: 0, .. }), "{trouble:?}");
    let order = Order { machine_type: "a2-higgpu-1g".to_owned(), ..order };
    let trouble = bench.gcp.room(&order, 1).await.expect_err("there is no such type");
    assert!(trouble.to_string().contains("Did you mean a2-highgpu-1g?"), "{trouble}");
}

#[tokio::test]
async fn an_unknown_region_or_image_is_refused() {
    let bench = Bench::new().await;
    let trouble = bench.gcp.offers("us-centrall").await.expect_err("no such region");
    assert!(trouble.to_string().contains("Did you mean us-central1?"), "{trouble}");
    let mut purchase = bench.purchase(1);
    purchase.order.image = "nowhere".to_owned();
    let trouble = bench.gcp.create(&purchase).await.expect_err("no such image");
    assert!(matches!(&trouble, Trouble::Invalid { field, .. } if field == "image"), "{trouble:?}");
    let other = MachineId::new("projects/other/zones/us-central1-a/instances/x");
    let trouble = bench.gcp.delete(&other).await.expect_err("another project's");
    assert!(matches!(trouble, Trouble::NotFound(_)), "{trouble:?}");
}

// Clusters.

fn resource(kind: Kind, number: u8, name: &str, spec: Value) -> Resource {
    let id = format!("00000000-0000-7000-8000-0000000000{number:02x}");
    let stamp = Stamp { at: "2026-01-01T00:00:00Z".parse().unwrap(), by: "ada".to_owned() };
    Resource {
        id: ResourceId::parse(&id).unwrap(),
        kind,
        name: Name::parse(name).unwrap(),
        tenant: "default".to_owned(),
        owner: None,
        spec: serde_json::from_value::<Spec>(spec).unwrap(),
        labels: Labels::default(),
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

fn cluster(number: u8, spec: Value) -> Ask {
    let cluster = Arc::new(resource(Kind::Cluster, number, "blue", spec));
    Ask { resource: cluster.clone(), cluster }
}

fn spec(targets: &[&str]) -> Value {
    json!({
        "region": "us-central1",
        "dns": { "baseDomain": "fleet.example.com", "targets": targets },
    })
}

/// `Reason: message`.
fn told(answer: Result<Done, Refusal>) -> String {
    match answer {
        Ok(done) => format!("{}: {}", done.reason, done.message),
        Err(Refusal { cause: Cause { reason, message }, .. }) => format!("{reason}! {message}"),
    }
}

#[tokio::test]
async fn records_are_made_changed_and_removed_with_their_claim() {
    let bench = Bench::new().await;
    let gcp = &bench.gcp;
    let ask = cluster(1, spec(&["203.0.113.1", "203.0.113.2"]));
    let missing = told(gcp.ensure(Part::Dns, &ask).await);
    let expected = "DNSZoneNotFound! Cloud DNS managed zone not found for domain \
                    fleet.example.com. Please create zone or update cluster spec.";
    assert_eq!(missing, expected);
    // The parent's zone will do.
    bench.fake.make_dns_zone("example", "example.com");
    let done = "AllRecordsCreated: All DNS records created and verified";
    assert_eq!(told(gcp.ensure(Part::Dns, &ask).await), done);
    let claim = "_argosy.blue.fleet.example.com. TXT \
                 [\"\\\"argosy-cluster=00000000-0000-7000-8000-000000000001\\\"\"]";
    let records = |data: &str| {
        let names = ["*.apps.blue.fleet.example.com.", "api.blue.fleet.example.com."];
        let [apps, api] = names.map(|name| format!("{name} {data}"));
        vec![apps, claim.to_owned(), api]
    };
    assert_eq!(bench.fake.records(), records("A [\"203.0.113.1\",\"203.0.113.2\"]"));
    let before = bench.fake.requests();
    assert_eq!(told(gcp.ensure(Part::Dns, &ask).await), done);
    assert!(bench.fake.requests() - before < 12, "what is there is only looked at");
    // An alias instead.
    let ask = cluster(1, spec(&["entry.example.net"]));
    assert_eq!(told(gcp.ensure(Part::Dns, &ask).await), done);
    assert_eq!(bench.fake.records(), records("CNAME [\"entry.example.net.\"]"));
    let removed = "RecordsRemoved: DNS records removed";
    assert_eq!(told(gcp.remove(Part::Dns, &ask).await), removed);
    assert_eq!(bench.fake.records(), [""; 0]);
    assert_eq!(told(gcp.remove(Part::Dns, &ask).await), removed);
}

#[tokio::test]
async fn records_of_others_are_left_alone() {
    let bench = Bench::new().await;
    let (gcp, fake) = (&bench.gcp, &bench.fake);
    fake.make_dns_zone("fleet", "fleet.example.com");
    let ask = cluster(1, spec(&["203.0.113.1"]));
    fake.put_record("fleet", "api.blue.fleet.example.com.", "A", "198.51.100.1");
    let before = fake.records();
    assert!(told(gcp.ensure(Part::Dns, &ask).await).starts_with("DNSRecordTaken!"));
    assert_eq!(told(gcp.remove(Part::Dns, &ask).await), "RecordsRemoved: DNS records removed");
    assert_eq!(fake.records(), before);
    // Another cluster of the same name, with its claim.
    let bench = Bench::new().await;
    bench.fake.make_dns_zone("fleet", "fleet.example.com");
    bench.gcp.ensure(Part::Dns, &cluster(2, spec(&["203.0.113.2"]))).await.unwrap();
    let before = bench.fake.records();
    assert!(told(bench.gcp.ensure(Part::Dns, &ask).await).starts_with("DNSRecordTaken!"));
    bench.gcp.remove(Part::Dns, &ask).await.unwrap();
    assert_eq!(bench.fake.records(), before);
}

#[tokio::test]
async fn records_lead_somewhere() {
    let bench = Bench::new().await;
    bench.fake.make_dns_zone("fleet", "fleet.example.com");
    for (targets, expected) in [
        (&[][..], "AllRecordsCreated:"),
        (&["a.example", "203.0.113.1"][..], "InvalidDNSTarget!"),
        (&["2001:db8::1"][..], "AllRecordsCreated:"),
    ] {
        let answer = told(bench.gcp.ensure(Part::Dns, &cluster(1, spec(targets))).await);
        assert!(answer.starts_with(expected), "{answer}");
    }
    let one = json!({ "dns": { "baseDomain": "fleet.example.com", "target": "203.0.113.8" } });
    bench.gcp.ensure(Part::Dns, &cluster(1, one)).await.unwrap();
    assert!(bench.fake.records()[0].ends_with(" A [\"203.0.113.8\"]"));
    // Who has not said where gets the names all the same, and they say so.
    bench.gcp.ensure(Part::Dns, &cluster(1, spec(&[]))).await.unwrap();
    let waiting = bench.fake.records();
    assert!(waiting[0].contains("TXT") && waiting[0].contains("no target yet"), "{waiting:?}");
    let bench = Bench::with(|it| it.dns_targets = vec!["203.0.113.9".to_owned()]).await;
    bench.fake.make_dns_zone("fleet", "fleet.example.com");
    bench.gcp.ensure(Part::Dns, &cluster(1, spec(&[]))).await.unwrap();
    assert!(bench.fake.records()[0].contains("203.0.113.9"));
}

#[tokio::test]
async fn a_network_is_made_once_moves_and_goes() {
    let bench = Bench::new().await;
    let gcp = &bench.gcp;
    let ask = cluster(1, spec(&[]));
    let name = format!("argosy-{}", ask.cluster.id);
    let things = |region: &str| {
        vec![
            format!("global/firewalls/{name}-internal"),
            format!("global/networks/{name}"),
            format!("regions/{region}/subnetworks/{name}"),
        ]
    };
    for _ in 0..2 {
        let answer = told(gcp.ensure(Part::Infrastructure, &ask).await);
        assert_eq!(answer, "InfrastructureReady: Network created in us-central1");
        assert_eq!(bench.fake.things(), things("us-central1"));
    }
    let moved = cluster(1, json!({ "region": "us-east1" }));
    gcp.ensure(Part::Infrastructure, &moved).await.unwrap();
    assert_eq!(bench.fake.things(), things("us-east1"));
    for _ in 0..2 {
        let answer = told(gcp.remove(Part::Infrastructure, &moved).await);
        let expected = "InfrastructureRemoved: Infrastructure resources successfully cleaned up";
        assert_eq!(answer, expected);
        assert_eq!(bench.fake.things(), [""; 0]);
    }
    let nowhere = cluster(1, json!({ "region": "us-centrall" }));
    let answer = told(gcp.ensure(Part::Infrastructure, &nowhere).await);
    assert!(answer.contains("Did you mean us-central1?"), "{answer}");
    let answer = told(gcp.ensure(Part::Infrastructure, &cluster(1, json!({}))).await);
    assert_eq!(answer, "InvalidRegion! The cluster's spec names no region");
}

#[tokio::test]
async fn what_is_asked_for_is_checked_first() {
    let bench = Bench::new().await;
    let gcp = &bench.gcp;
    bench.fake.make_dns_zone("fleet", "fleet.example.com");
    let passed = "AllChecksPassed: Validation completed successfully. All checks passed:";
    let cluster = cluster(1, spec(&[]));
    let answer = told(gcp.preflight(&cluster).await);
    assert_eq!(answer, format!("{passed} dnsZoneFound, regionAvailable"));
    let pool = |kind: &str| {
        let spec = json!({ "nodeCount": 3, "machineType": kind });
        let pool = resource(Kind::NodePool, 2, "workers", spec);
        Ask { resource: Arc::new(pool), cluster: cluster.cluster.clone() }
    };
    let answer = told(gcp.preflight(&pool("a2-highgpu-1g")).await);
    assert_eq!(answer, format!("{passed} machineTypeAvailable, quotaSufficient"));
    let answer = told(gcp.preflight(&pool("a2-highgpu-1h")).await);
    assert!(answer.starts_with("InvalidSpec! GCP has no machine type"), "{answer}");
    bench.fake.set_quota("us-central1", "NVIDIA_A100_GPUS", 0.0);
    let answer = told(gcp.preflight(&pool("a2-highgpu-1g")).await);
    assert!(answer.starts_with("QuotaExceeded! GCP quota exceeded"), "{answer}");
    bench.fake.lie(|lies| lies.revoked = true);
    let answer = told(gcp.preflight(&cluster).await);
    assert!(answer.starts_with("CredentialsInvalid!"), "{answer}");
    assert_eq!(bench.gcp.settings.project, PROJECT);
}
