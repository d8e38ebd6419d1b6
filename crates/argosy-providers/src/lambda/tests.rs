use super::fake::{API_KEY, FakeLambda};
use super::*;
use crate::conformance::{Lie, Rig, conforms};
use crate::standin::Lies;
use std::sync::Arc;

struct Bench {
    fake: FakeLambda,
    lambda: Arc<Lambda>,
}

impl Bench {
    async fn new() -> Self {
        Self::with(|_| {}).await
    }

    async fn with(change: impl FnOnce(&mut Settings)) -> Self {
        let fake = FakeLambda::start().await.unwrap();
        let mut settings = fake.settings();
        change(&mut settings);
        let lambda = Arc::new(Lambda::new(settings, Clock::System).unwrap());
        Self { fake, lambda }
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
        self.lambda.clone()
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
            Lie::PlainMachine => self.fake.make_by_hand("somebody's notebook"),
        }
        true
    }

    async fn calm(&self) {
        self.fake.lie(Lies::calm);
    }

    fn order(&self) -> Order {
        Order {
            provider: "lambda".to_owned(),
            region: "us-west-1".to_owned(),
            zone: String::new(),
            machine_type: "gpu_1x_a10".to_owned(),
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
async fn g1_g2_g3_g4_g5_g7_g8_g10_g14_lambda_conforms() {
    let bench = Bench::new().await;
    let skipped = conforms(&bench).await;
    let expected = [
        "a create that is repeated makes nothing new",
        "creates with one token that overlap make one machine",
        "a create that is half done can be found and removed",
        "an unknown zone is refused with the nearest name",
    ];
    assert_eq!(skipped, expected);
}

#[tokio::test]
async fn g3_without_tokens_a_purchase_makes_one_machine_all_the_same() {
    let bench = Bench::new().await;
    let purchase = bench.purchase(1);
    // Overlapping, also while the listing does not show what was launched.
    bench.fake.lie(|lies| lies.lag = Duration::from_secs(60));
    let create = || bench.lambda.create(&purchase);
    let (one, two) = tokio::join!(create(), create());
    let (one, two) = (one.unwrap(), two.unwrap());
    assert_eq!(one.id, two.id);
    assert_eq!(bench.fake.launches(), 1);
    // Repeated by somebody who has lost all memory, once the listing shows it.
    bench.fake.lie(Lies::calm);
    let other = Lambda::new(bench.fake.settings(), Clock::System).unwrap();
    assert_eq!(other.create(&purchase).await.unwrap().id, one.id);
    assert_eq!(bench.fake.launches(), 1);
}

#[tokio::test]
async fn g3_who_cannot_look_does_not_launch() {
    let bench = Bench::new().await;
    bench.fake.lie(|lies| lies.broken_list = true);
    let trouble = bench.lambda.create(&bench.purchase(1)).await.expect_err("it cannot look");
    assert!(matches!(trouble, Trouble::Unreachable(_)), "{trouble:?}");
    assert_eq!(bench.fake.launches(), 0);
}

#[tokio::test]
async fn g13_without_tags_the_name_has_to_do() {
    let bench = Bench::new().await;
    let purchase = bench.purchase(1);
    let made = bench.lambda.create(&purchase).await.unwrap();
    bench.fake.make_by_hand("notebook-of-ada");
    bench.fake.forget_tags();
    let listed = bench.lambda.list().await.unwrap();
    let names: Vec<&str> = listed.iter().map(|machine| machine.name.as_str()).collect();
    assert_eq!(names, [purchase.instance.as_str()]);
    assert_eq!(listed[0].tags, Tags::default());
    assert_eq!(bench.lambda.find(&purchase).await.unwrap().unwrap().id, made.id);
}

#[test]
fn names_that_could_be_ours() {
    for (name, expected) in [
        ("workers-0f3k9a2m", true),
        ("a-b-c-00000001", true),
        ("workers-notebook", false),
        ("workers-0f3k9a2", false),
        ("workers-0f3k9a2u", false),
        ("-0f3k9a2m", false),
        ("0f3k9a2m", false),
        ("Workers-0f3k9a2m", false),
        ("", false),
        ("ä-0f3k9a2m", false),
    ] {
        let shown = Instance {
            id: "1".to_owned(),
            status: "active".to_owned(),
            name: Some(name.to_owned()),
            ip: None,
            private_ip: None,
            region: None,
            instance_type: None,
            tags: None,
        };
        assert_eq!(could_be_ours(&machine(shown)), expected, "{name}");
    }
    // What we mint is always known again.
    for number in 0..2000_u128 {
        let unique =
            Uuid::from_u128(number.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_0c5a_1b2d_3e4f));
        let name = InstanceId::mint("workers", unique);
        assert!(could_be_ours(&promised_named(name.as_str())), "{name}");
    }
}

fn promised_named(name: &str) -> Machine {
    let shown = json!({ "id": "1", "status": "booting", "name": name });
    machine(serde_json::from_value(shown).unwrap())
}

#[test]
fn what_lambda_says_a_machine_is_doing() {
    for (status, expected) in [
        ("booting", MachineState::Starting),
        ("active", MachineState::Running),
        ("unhealthy", MachineState::Running),
        ("terminating", MachineState::Stopping),
        ("terminated", MachineState::Gone),
        ("preempted", MachineState::Stopped),
        ("something new", MachineState::Running),
    ] {
        assert_eq!(state(status).0, expected, "{status}");
    }
    assert_eq!(state("preempted").1.map(|it| it.kind), Some(NoticeKind::Reclaim));
}

#[tokio::test]
async fn offers_have_their_price_and_say_where_there_are_any() {
    let bench = Bench::new().await;
    let offers = bench.lambda.offers("us-west-1").await.unwrap();
    let lines: Vec<String> = offers
        .iter()
        .map(|it| format!("{} {:?} {}", it.machine_type, it.price_per_hour, it.available))
        .collect();
    let expected = [
        "gpu_1x_a10 Some(0.75) true",
        "gpu_1x_h100_pcie Some(2.49) true",
        "gpu_8x_a100 Some(10.32) false",
        "gpu_8x_h100_sxm5 Some(23.92) false",
    ];
    assert_eq!(lines, expected);
}

#[tokio::test]
async fn i12_no_secret_is_shown() {
    let told = |_: &Purchase| "join s3cr3t".to_owned();
    let bench = Bench::with(|settings| settings.user_data = UserData::new(told)).await;
    bench.lambda.create(&bench.purchase(1)).await.unwrap();
    assert_eq!(bench.fake.user_data(), ["join s3cr3t"]);
    let listed = bench.lambda.list().await.unwrap();
    bench.fake.lie(|lies| lies.revoked = true);
    let trouble = bench.lambda.list().await.expect_err("revoked");
    let shown = format!("{:?} {listed:?} {trouble:?} {:?}", bench.lambda, bench.fake.settings());
    for secret in [API_KEY, "s3cr3t", "secret-notebook-token"] {
        assert!(!shown.contains(secret), "{secret} in {shown}");
    }
}

#[tokio::test]
async fn settings_that_cannot_be_used_are_refused() {
    let check = |change: &dyn Fn(&mut Settings), expected: &str| {
        let mut settings = Settings::new(Credential::new("k"), "fleet");
        change(&mut settings);
        let error = Lambda::new(settings, Clock::System).expect_err(expected).to_string();
        assert!(error.starts_with(expected), "{error}");
    };
    check(&|it| it.api_key = Credential::new("\n"), "api_key is empty");
    check(&|it| it.api_key = Credential::new("a\nb"), "api_key is empty or not a key");
    check(&|it| it.ssh_key = String::new(), "ssh_key must name");
    check(&|it| it.endpoint = "http://cloud.lambda.ai".to_owned(), "endpoint `http");
}

#[tokio::test]
async fn what_lambda_does_not_have_is_said() {
    let bench = Bench::new().await;
    let mut purchase = bench.purchase(1);
    purchase.order.spot = true;
    let trouble = bench.lambda.create(&purchase).await.expect_err("no spot");
    assert_eq!(trouble, Trouble::Unable("Lambda has no spot machines".to_owned()));
    let long = |_: &Purchase| "x".repeat(USER_DATA_LEN_MAX + 1);
    let bench = Bench::with(|settings| settings.user_data = UserData::new(long)).await;
    let trouble = bench.lambda.create(&bench.purchase(1)).await.expect_err("too long");
    assert!(matches!(&trouble, Trouble::Invalid { field, .. } if field == "userData"));
    for part in [Part::Dns, Part::Infrastructure] {
        let done = Lambda::nothing_to_make(part);
        assert_eq!(done.reason, "NothingToMake");
    }
    assert_eq!(bench.fake.launches(), 0);
}

#[tokio::test]
async fn g5_launches_wait_for_their_turn_or_are_sent_away() {
    let bench = Bench::with(|settings| {
        settings.pace.call_max = Duration::from_millis(500);
        settings.pace.launch_every = Duration::from_secs(12);
    })
    .await;
    bench.lambda.create(&bench.purchase(1)).await.unwrap();
    let trouble = bench.lambda.create(&bench.purchase(2)).await.expect_err("twelve seconds");
    let Trouble::Throttled { retry_after_s, .. } = trouble else { panic!("{trouble:?}") };
    assert_eq!(retry_after_s, Some(12));
    assert_eq!(bench.fake.launches(), 1);
}

#[tokio::test]
async fn hostile_answers_buy_nothing_and_end_nothing() {
    let bench = Bench::with(|settings| settings.pace.call_max = Duration::from_secs(10)).await;
    let made = bench.lambda.create(&bench.purchase(1)).await.unwrap();
    for body in [
        "".to_owned(),
        "{}".to_owned(),
        "[]".to_owned(),
        "{\"data\": null}".to_owned(),
        "{\"data\": {\"instance_ids\": \"x\"}}".to_owned(),
        "{\"data\": [{\"id\": 5}]}".to_owned(),
        "[".repeat(100_000),
        format!("\"{}\"", "x".repeat(10 * 1024 * 1024)),
    ] {
        let shown: String = body.chars().take(60).collect();
        bench.fake.lie(|lies| lies.body = Some(body.into_bytes()));
        let answer = bench.lambda.list().await;
        assert!(matches!(answer, Err(Trouble::Unreachable(_))), "{shown}: {answer:?}");
        let answer = bench.lambda.create(&bench.purchase(2)).await;
        assert!(matches!(answer, Err(Trouble::Unreachable(_))), "{shown}: {answer:?}");
        let answer = bench.lambda.reboot(&made.id).await;
        assert!(matches!(answer, Err(Trouble::Unsure(_))), "{shown}: {answer:?}");
        bench.fake.lie(Lies::calm);
        assert_eq!([made.id.to_string()], *bench.fake.machines(), "{shown}");
    }
    // A launch that is answered with too many ids, or none, is unsure.
    bench.fake.lie(|lies| lies.body = Some(b"{\"data\": []}".to_vec()));
    let answer = bench.lambda.create(&bench.purchase(3)).await;
    assert!(matches!(answer, Err(Trouble::Unsure(_))), "{answer:?}");
}
