use super::standin::{REGION, Standin, Tricks};
use super::*;
use crate::conformance::{Lie, Rig, conforms};
use argosy_core::id::ResourceId;
use argosy_core::instance::InstanceId;
use argosy_core::machine::NoticeKind;
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

mod cluster;

/// The provider under test and the cloud behind it.
struct Bench {
    standin: Standin,
    aws: Arc<Aws>,
}

impl Bench {
    async fn new() -> Self {
        Self::with(|_| {}).await
    }

    async fn with(change: impl FnOnce(&mut Settings)) -> Self {
        let standin = Standin::start(Clock::System).await;
        let boot =
            |purchase: &Purchase| format!("#!/bin/sh\nagent --node-id {}\n", purchase.instance);
        let mut settings = standin.settings(UserData::new(boot));
        change(&mut settings);
        let aws = Aws::new(settings, Clock::System).expect("settings that can be used");
        Self { standin, aws: Arc::new(aws) }
    }
}

impl Rig for Bench {
    fn provider(&self) -> Arc<dyn Provider> {
        self.aws.clone()
    }

    async fn truth(&self) -> Vec<String> {
        let machines = self.standin.machines().await;
        machines.into_iter().map(|booted| booted.machine.id.to_string()).collect()
    }

    async fn inject(&self, lie: Lie) -> bool {
        let trick = |change: fn(&mut Tricks)| self.standin.trick(change);
        match lie {
            Lie::TimeoutAfterCreate => trick(|tricks| tricks.launches_unanswered = 1),
            Lie::TimeoutBeforeCreate => trick(|tricks| tricks.launches_lost = 1),
            Lie::ErrorAfterCreate => trick(|tricks| tricks.launches_with_error = 1),
            // RunInstances is one call: it is done or it is not.
            Lie::PartialSuccess => return false,
            Lie::LagLists(lag) => self.standin.trick(|tricks| tricks.list_lag = lag),
            Lie::Throttle { times } => self.standin.trick(|tricks| tricks.throttled = times),
            Lie::Quota => trick(|tricks| tricks.no_quota = true),
            Lie::Capacity => trick(|tricks| tricks.no_capacity = true),
            Lie::RevokeCredentials => trick(|tricks| tricks.revoked = true),
            Lie::DenyCreate => trick(|tricks| tricks.denied = vec!["RunInstances".to_owned()]),
            Lie::DeleteLies => trick(|tricks| tricks.terminations_lie = true),
            Lie::ErrorAfterDelete => trick(|tricks| tricks.terminations_with_error = 1),
            Lie::EmptyList => trick(|tricks| tricks.lists_empty = true),
            Lie::HalfList => trick(|tricks| tricks.lists_halved = true),
            Lie::BrokenList => trick(|tricks| tricks.lists_broken = true),
            Lie::PlainMachine => self.standin.make_by_hand().await,
        }
        true
    }

    async fn calm(&self) {
        self.standin.trick(|tricks| *tricks = Tricks::default());
    }

    fn order(&self) -> Order {
        Order {
            provider: "aws".to_owned(),
            region: REGION.to_owned(),
            zone: "us-east-1a".to_owned(),
            machine_type: "p5.48xlarge".to_owned(),
            spot: false,
            image: String::new(),
            price_per_hour: None,
        }
    }

    async fn pass(&self, time: Duration) {
        self.standin.pass(time);
    }
}

fn purchase(number: u32, order: Order) -> Purchase {
    let token = Uuid::from_u128(0x0190_0000_0000_7000_8000_0000_0000_0000 | u128::from(number));
    let instance = InstanceId::mint("workers", token);
    Purchase {
        tags: Tags {
            installation: Some(Uuid::from_u128(1)),
            instance: Some(instance.clone()),
            pool: Some(ResourceId::new(Uuid::from_u128(2))),
            token: Some(token),
        },
        instance,
        token,
        order,
        number,
        pool: "workers".to_owned(),
        tenant: "default".to_owned(),
        labels: BTreeMap::new(),
    }
}

#[tokio::test]
async fn it_keeps_the_promises_of_every_provider() {
    let bench = Bench::new().await;
    let untried = conforms(&bench).await;
    assert_eq!(untried, ["a create that is half done can be found and removed"]);
}

#[tokio::test]
async fn a_machine_is_bought_with_everything_it_needs() {
    let bench = Bench::new().await;
    let bought = purchase(1, Order { spot: true, ..bench.order() });
    let machine = bench.aws.create(&bought).await.expect("a machine");
    assert!(machine.spot);
    assert_eq!(machine.name, bought.instance.as_str());
    assert_eq!(machine.tags, bought.tags);
    assert_eq!((machine.region.as_str(), machine.zone.as_str()), (REGION, "us-east-1a"));
    let booted = bench.standin.machines().await;
    assert_eq!(booted.len(), 1);
    let expected = format!("#!/bin/sh\nagent --node-id {}\n", bought.instance);
    assert_eq!(booted[0].user_data, expected);
}

/// A3: whoever dies between the call and the record asks again, and has one machine.
#[tokio::test]
async fn asked_fifty_times_by_fifty_processes_it_buys_one_machine() {
    let bench = Bench::new().await;
    let bought = purchase(1, bench.order());
    bench.standin.trick(|tricks| tricks.launches_unanswered = 1);
    let lost = bench.aws.create(&bought).await;
    assert!(matches!(lost, Err(Trouble::Unsure(_))), "{lost:?}");
    let boot = |purchase: &Purchase| format!("#!/bin/sh\nagent --node-id {}\n", purchase.instance);
    for _ in 0..50 {
        let settings = bench.standin.settings(UserData::new(boot));
        let aws = Aws::new(settings, Clock::System).expect("settings that can be used");
        let machine = aws.create(&bought).await.expect("the machine of the first call");
        assert_eq!(bench.truth().await, [machine.id.to_string()]);
    }
}

/// G4: who cannot see the machine yet asks for it again, and has it.
#[tokio::test]
async fn a_token_knows_its_machine_before_listings_do() {
    let bench = Bench::new().await;
    let lag = LIST_LAG.unsigned_abs();
    bench.standin.trick(|tricks| tricks.list_lag = lag);
    let bought = purchase(1, bench.order());
    let made = bench.aws.create(&bought).await.expect("a machine");
    assert!(bench.aws.list().await.expect("a listing").is_empty());
    assert_eq!(bench.aws.find(&bought).await.expect("a look"), None);
    let again = bench.aws.create(&bought).await.expect("the same machine");
    assert_eq!(again.id, made.id);
    bench.standin.pass(lag);
    let found = bench.aws.find(&bought).await.expect("a look").expect("it is shown now");
    assert_eq!(found.id, made.id);
    assert_eq!(bench.truth().await.len(), 1);
}

#[tokio::test]
async fn another_order_under_the_same_token_is_never_sure() {
    let bench = Bench::new().await;
    let first = purchase(1, bench.order());
    bench.aws.create(&first).await.expect("a machine");
    let order = Order { machine_type: "p4d.24xlarge".to_owned(), ..bench.order() };
    let other = Purchase { order, ..first };
    let answer = bench.aws.create(&other).await;
    assert!(matches!(answer, Err(Trouble::Unsure(_))), "{answer:?}");
    assert_eq!(bench.truth().await.len(), 1);
}

#[tokio::test]
async fn every_page_of_a_listing_is_read() {
    let bench = Bench::new().await;
    bench.standin.trick(|tricks| tricks.page_size = Some(2));
    for number in 1..=5 {
        let order = Order { machine_type: "t3.micro".to_owned(), ..bench.order() };
        bench.aws.create(&purchase(number, order)).await.expect("a machine");
    }
    assert_eq!(bench.aws.list().await.expect("a listing").len(), 5);
}

/// G15.
#[tokio::test]
async fn what_aws_intends_is_shown_with_the_machine() {
    let bench = Bench::new().await;
    let spot = purchase(1, Order { spot: true, ..bench.order() });
    let spot = bench.aws.create(&spot).await.expect("a machine");
    let plain = bench.aws.create(&purchase(2, bench.order())).await.expect("a machine");
    let calm = bench.aws.create(&purchase(3, bench.order())).await.expect("a machine");
    bench.standin.schedule(plain.id.as_str(), "system-reboot", "2026-11-20T10:00:00.000Z");
    bench.standin.schedule(spot.id.as_str(), "instance-retirement", "2026-11-21T10:00:00.000Z");
    bench.standin.reclaim(spot.id.as_str(), "2026-11-15T09:00:00.000Z");
    let machines = bench.aws.list().await.expect("a listing");
    let notice = |id: &MachineId| {
        let machine = machines.iter().find(|machine| machine.id == *id).expect("it is listed");
        machine.notice.as_ref().map(|notice| (notice.kind, notice.at.map(|at| at.to_string())))
    };
    let at = |time: &str| Some(time.to_owned());
    assert_eq!(notice(&plain.id), Some((NoticeKind::Maintenance, at("2026-11-20T10:00:00Z"))));
    // What comes first is told.
    assert_eq!(notice(&spot.id), Some((NoticeKind::Reclaim, at("2026-11-15T09:02:00Z"))));
    assert_eq!(notice(&calm.id), None);
}

#[tokio::test]
async fn machines_are_listed_even_if_notices_cannot_be_asked_for() {
    let bench = Bench::new().await;
    bench.aws.create(&purchase(1, bench.order())).await.expect("a machine");
    bench.standin.trick(|tricks| {
        tricks.denied =
            vec!["DescribeInstanceStatus".to_owned(), "DescribeSpotInstanceRequests".to_owned()];
    });
    assert_eq!(bench.aws.list().await.expect("a listing").len(), 1);
}

#[tokio::test]
async fn r2_m23_notices_that_cannot_be_asked_for_are_unknown() {
    let bench = Bench::new().await;
    let spot = purchase(1, Order { spot: true, ..bench.order() });
    let spot = bench.aws.create(&spot).await.expect("a machine");
    let plain = bench.aws.create(&purchase(2, bench.order())).await.expect("a machine");
    bench.standin.schedule(plain.id.as_str(), "system-reboot", "2026-11-20T10:00:00.000Z");
    let (events, taken) = ("DescribeInstanceStatus", "DescribeSpotInstanceRequests");
    let (known, unknown) = (Some(NoticeKind::Maintenance), Some(NoticeKind::Unknown));
    for (denied, of_spot, of_plain) in [
        (vec![], None, known),
        (vec![events], unknown, unknown),
        (vec![taken], unknown, known),
        (vec![events, taken], unknown, unknown),
    ] {
        let denied: Vec<String> = denied.into_iter().map(str::to_owned).collect();
        bench.standin.trick(|tricks| tricks.denied = denied.clone());
        let machines = bench.aws.list().await.expect("a listing");
        let notice = |id: &MachineId| {
            let machine = machines.iter().find(|machine| machine.id == *id).expect("it is listed");
            machine.notice.as_ref().map(|notice| notice.kind)
        };
        assert_eq!((notice(&spot.id), notice(&plain.id)), (of_spot, of_plain), "{denied:?}");
    }
}

#[tokio::test]
async fn a_machine_goes_to_the_subnet_of_its_zone() {
    let bench = Bench::new().await;
    let query = Query::read("DescribeSubnets").filter("default-for-az", &["true"]);
    let subnets = bench.aws.pages::<Subnets>(query).await.expect("moto has default subnets");
    let of = |zone: &str| {
        let found = subnets.iter().find(|subnet| subnet.availability_zone == zone);
        found.expect("a subnet in each zone").subnet_id.clone()
    };
    let chosen = vec![of("us-east-1b"), of("us-east-1c")];
    let mut settings = bench.standin.settings(UserData::default());
    settings.subnets = chosen;
    let aws = Aws::new(settings, Clock::System).expect("settings that can be used");
    let order = |zone: &str| Order { zone: zone.to_owned(), ..bench.order() };
    let made = aws.create(&purchase(1, order("us-east-1c"))).await.expect("a machine");
    assert_eq!(made.zone, "us-east-1c");
    let made = aws.create(&purchase(2, order(""))).await.expect("a machine");
    assert_eq!(made.zone, "us-east-1b");
    let answer = aws.create(&purchase(3, order("us-east-1a"))).await;
    let Err(Trouble::Invalid { field, message }) = answer else { panic!("{answer:?}") };
    assert_eq!(field, "zones");
    assert!(message.contains("us-east-1b"), "{message}");
}

#[tokio::test]
async fn what_cannot_be_bought_is_not_asked_for() {
    let bench = Bench::with(|settings| settings.image.clear()).await;
    let order = |region: &str, image: &str| Order {
        region: region.to_owned(),
        image: image.to_owned(),
        ..bench.order()
    };
    let rows = [(order("eu-west-1", "ami-1"), "region"), (order(REGION, ""), "image")];
    for (order, expected) in rows {
        let answer = bench.aws.create(&purchase(1, order)).await;
        let Err(Trouble::Invalid { field, .. }) = answer else { panic!("{answer:?}") };
        assert_eq!(field, expected);
    }
    let made = bench.aws.create(&purchase(2, order(REGION, standin::IMAGE))).await;
    assert!(made.is_ok(), "the order's image is taken: {made:?}");
}

#[tokio::test]
async fn user_data_that_ec2_would_not_take_is_refused_here() {
    let long =
        |settings: &mut Settings| settings.user_data = UserData::new(|_| "x".repeat(16 * 1024 + 1));
    let bench = Bench::with(long).await;
    let answer = bench.aws.create(&purchase(1, bench.order())).await;
    assert!(matches!(answer, Err(Trouble::Invalid { .. })), "{answer:?}");
    assert!(bench.truth().await.is_empty());
}

#[tokio::test]
async fn offers_have_gpus_zones_and_prices() {
    let bench = Bench::with(|settings| {
        settings.prices.insert("p4d.24xlarge".to_owned(), 9.5);
    })
    .await;
    let offers = bench.aws.offers(REGION).await.expect("offers");
    let find = |name: &str| {
        let found = offers.iter().find(|offer| offer.machine_type == name);
        found.unwrap_or_else(|| panic!("{name} is offered"))
    };
    let p5 = find("p5.48xlarge");
    assert_eq!((p5.cpus, p5.gpus), (192, 8));
    assert!(p5.zones.contains(&"us-east-1a".to_owned()), "{p5:?}");
    assert_eq!(p5.price_per_hour, Some(55.04));
    assert!(p5.spot_price_per_hour.is_some(), "{p5:?}");
    assert_eq!(find("p4d.24xlarge").price_per_hour, Some(9.5), "what was told counts");
    assert!(bench.aws.offers("eu-west-1").await.expect("none").is_empty());
}

#[tokio::test]
async fn a_cloud_that_is_not_there_was_never_asked() {
    // Bound and dropped: nobody listens there.
    let port = {
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        listener.local_addr().expect("an address").port()
    };
    let endpoint = Url::parse(&format!("http://127.0.0.1:{port}/")).expect("a URL");
    let bench = Bench::with(|settings| settings.endpoint = Some(endpoint)).await;
    let answer = bench.aws.create(&purchase(1, bench.order())).await;
    assert!(matches!(answer, Err(Trouble::Unreachable(_))), "{answer:?}");
}

#[test]
fn settings_that_cannot_be_used_are_refused() {
    let settings = |region: &str| Settings {
        region: region.to_owned(),
        credentials: Credentials::Found { profile: None },
        endpoint: None,
        subnets: Vec::new(),
        security_groups: Vec::new(),
        image: String::new(),
        key_name: None,
        instance_profile: None,
        user_data: UserData::default(),
        prices: BTreeMap::new(),
        rates: Rates::default(),
    };
    for region in ["us-east-1", "eu-central-2", "us-gov-west-1", "cn-north-1"] {
        assert!(Aws::new(settings(region), Clock::System).is_ok(), "{region}");
    }
    for region in ["", "useast1", "US-EAST-1", "us-east-1.evil.com/", "-us", "us-east-1\n"] {
        let error = Aws::new(settings(region), Clock::System).expect_err("no region");
        assert!(matches!(error, SettingsError::Region(_)), "{region}: {error}");
    }
    let prices = BTreeMap::from([("p5.48xlarge".to_owned(), f64::NAN)]);
    let error = Aws::new(Settings { prices, ..settings("us-east-1") }, Clock::System);
    assert_eq!(error.expect_err("no price"), SettingsError::Price("p5.48xlarge".to_owned()));
    let never = Rate { burst: 0, per_s: 1.0 };
    let rates = Rates { reads: never, ..Rates::default() };
    let error = Aws::new(Settings { rates, ..settings("us-east-1") }, Clock::System);
    assert_eq!(error.expect_err("no rate"), SettingsError::Rate);
}

#[test]
fn keys_show_themselves_to_nobody() {
    let keys = Keys::new("AKIDEXAMPLE", "hunter2", Some("session"));
    let shown = format!("{keys:?} {:?}", Credentials::Keys(keys.clone()));
    assert!(!shown.contains("hunter2") && !shown.contains("AKID") && !shown.contains("session"));
}

#[tokio::test]
async fn a_machine_that_is_terminated_is_shown_as_gone() {
    let bench = Bench::new().await;
    let bought = purchase(1, bench.order());
    let made = bench.aws.create(&bought).await.expect("a machine");
    let query = Query::change("TerminateInstances").with("InstanceId.1", made.id.as_str());
    let Nothing {} = bench.aws.client.ec2(&query).await.expect("it goes");
    let found = bench.aws.find(&bought).await.expect("a look").expect("EC2 shows it for a while");
    assert_eq!(found.state, MachineState::Gone);
}

/// Whether a word is the name of an action.
fn is_action(word: &str) -> bool {
    let verbs =
        ["Describe", "Create", "Delete", "Run", "Terminate", "Reboot", "Get", "List", "Change"];
    let verb = verbs.iter().find_map(|verb| word.strip_prefix(verb));
    verb.is_some_and(|rest| {
        rest.starts_with(|first: char| first.is_ascii_uppercase())
            && rest.chars().all(|letter| letter.is_ascii_alphanumeric())
    })
}

#[test]
fn the_policy_in_the_documentation_allows_exactly_what_is_used() {
    let sources = [
        include_str!("../aws.rs"),
        include_str!("offer.rs"),
        include_str!("network.rs"),
        include_str!("dns.rs"),
    ];
    // Every second piece between quotation marks is a text.
    let words = sources.iter().flat_map(|source| source.split('"').skip(1).step_by(2));
    let dns = |action: &str| action.contains("ResourceRecordSets") || action.contains("HostedZone");
    let service = |action: &str| if dns(action) { "route53" } else { "ec2" };
    let mut used: Vec<String> = words
        .filter(|word| is_action(word))
        .map(|action| format!("{}:{action}", service(action)))
        // What comes with machines that carry tags and have a role.
        .chain(["ec2:CreateTags", "iam:PassRole"].map(ToOwned::to_owned))
        .collect();
    used.sort();
    used.dedup();
    let page = include_str!("../../../../docs/providers/aws.md");
    let policy = page.split("```json").nth(1).and_then(|rest| rest.split("```").next());
    let policy: serde_json::Value =
        serde_json::from_str(policy.expect("a policy")).expect("a policy is JSON");
    let statements = policy["Statement"].as_array().expect("statements");
    let actions = statements.iter().flat_map(|statement| {
        statement["Action"].as_array().expect("actions").iter().filter_map(|name| name.as_str())
    });
    let mut allowed: Vec<String> = actions.map(ToOwned::to_owned).collect();
    allowed.sort();
    assert_eq!(allowed, used);
}
