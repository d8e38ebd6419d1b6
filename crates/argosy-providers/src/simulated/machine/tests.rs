use super::*;
use crate::conformance::{Lie, Rig, conforms};
use crate::simulated::{
    Booted, Boots, Latencies, Latency, Metric, NewFault, Quota, SimulatedCloud,
};
use argosy_control::clock::Clock;
use argosy_control::provider::Provider;
use argosy_core::catalog::Catalog;
use argosy_core::gate::{self, Doomed, Guards};
use argosy_core::id::ResourceId;
use argosy_core::instance::{Instance, Reason, State, Terminating};
use futures_util::future::BoxFuture;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use uuid::Uuid;

const EPOCH: &str = "2025-10-28T12:00:00Z";

fn clock() -> Clock {
    Clock::simulated(EPOCH.parse().unwrap())
}

fn cloud(latencies: Latencies) -> SimulatedCloud {
    SimulatedCloud::in_memory(Catalog::default(), clock(), latencies)
}

fn east() -> Place {
    Place { provider: "gcp".to_owned(), region: "us-east1".to_owned() }
}

fn order(machine_type: &str) -> Order {
    Order {
        provider: "gcp".to_owned(),
        region: "us-east1".to_owned(),
        zone: String::new(),
        machine_type: machine_type.to_owned(),
        spot: false,
        image: String::new(),
        price_per_hour: None,
    }
}

/// The purchase of the `number`th node of a pool; its token is its number.
fn purchase(pool: &str, number: u32, order: Order) -> Purchase {
    let token = Uuid::from_u128(number.into());
    let instance = InstanceId::mint(plain(pool), token);
    let tags = Tags {
        installation: Some(Uuid::from_u128(1)),
        instance: Some(instance.clone()),
        pool: Some(ResourceId::new(Uuid::from_u128(2))),
        token: Some(token),
    };
    Purchase {
        instance,
        token,
        tags,
        order,
        number,
        pool: pool.to_owned(),
        tenant: "default".to_owned(),
        labels: BTreeMap::from([("rack".to_owned(), "r7".to_owned())]),
    }
}

fn node(number: u32) -> Purchase {
    purchase("prod.workers", number, order("n1-standard-4"))
}

fn doomed(machine: &Machine) -> Doomed {
    let purchase = node(1);
    let leaving = Terminating {
        machine: Some(machine.id.clone()),
        node: None,
        since: Timestamp::UNIX_EPOCH,
        reason: Reason::PoolDeleted,
        calls: 0,
        retry_at: None,
        trouble: None,
        absent_since: None,
        alarmed: false,
        console: String::new(),
    };
    let instance = Instance {
        id: purchase.instance,
        tenant: purchase.tenant,
        pool: ResourceId::new(Uuid::from_u128(2)),
        pool_name: purchase.pool,
        number: 1,
        token: purchase.token,
        order: purchase.order,
        ordered_at: Timestamp::UNIX_EPOCH,
        why: String::new(),
        replaces: None,
        purpose: argosy_core::instance::Purpose::Seat,
        adopted: false,
        departure: None,
        blocked: None,
        tried: Vec::new(),
        notice: None,
        sight: Default::default(),
        state: State::Terminating(leaving),
    };
    let guards =
        Guards { installation: Uuid::from_u128(1), shown: None, compared: true, recovery: None };
    gate::release(&instance, &guards).unwrap()
}

fn fault(kind: FaultKind, matching: &str) -> NewFault {
    NewFault { matching: matching.to_owned(), ..NewFault::new(kind) }
}

async fn state_of(cloud: &SimulatedCloud, purchase: &Purchase) -> Option<MachineState> {
    let found = cloud.named("gcp").find(purchase).await.unwrap();
    found.map(|machine| machine.state)
}

async fn pass(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

struct Simulated(SimulatedCloud);

impl Simulated {
    async fn strike(&self, kind: FaultKind, count: Option<u32>, params: FaultParams) -> bool {
        let fault = NewFault { count, params, ..NewFault::new(kind) };
        self.0.inject(fault).await.is_ok()
    }
}

impl Rig for Simulated {
    fn provider(&self) -> Arc<dyn Provider> {
        Arc::new(self.0.named("gcp"))
    }

    async fn truth(&self) -> Vec<String> {
        let machines = self.0.machines().into_iter();
        let exist = machines.filter(|view| view.state != MachineState::Gone);
        exist.map(|view| view.machine.id).collect()
    }

    async fn inject(&self, lie: Lie) -> bool {
        let none = FaultParams::default;
        let (kind, count, params) = match lie {
            Lie::TimeoutAfterCreate => (FaultKind::CreateTimesOut, Some(1), none()),
            Lie::TimeoutBeforeCreate => {
                let params = FaultParams { done: Some(false), ..none() };
                (FaultKind::CreateTimesOut, Some(1), params)
            }
            Lie::ErrorAfterCreate => (FaultKind::CreateErrors, Some(1), none()),
            Lie::PartialSuccess => (FaultKind::TagsLost, Some(1), none()),
            Lie::LagLists(lag) => {
                let after_s = u32::try_from(lag.as_secs()).ok();
                (FaultKind::ListsLag, None, FaultParams { after_s, ..none() })
            }
            Lie::Throttle { times } => (FaultKind::Throttled, Some(times), none()),
            Lie::Quota => {
                let quota = Quota { limit: 0, used_by_others: 0 };
                return self.0.set_quota(east(), Metric::Cpus, quota).await.is_ok();
            }
            Lie::Capacity => (FaultKind::StockOut, None, none()),
            Lie::RevokeCredentials => (FaultKind::CredentialsRevoked, None, none()),
            Lie::DenyCreate => {
                return self.0.deny("gcp", "compute.instances.create").await.unwrap();
            }
            Lie::DeleteLies => (FaultKind::DeleteLies, None, none()),
            Lie::ErrorAfterDelete => (FaultKind::DeleteErrors, Some(1), none()),
            Lie::EmptyList => (FaultKind::ListsEmpty, None, none()),
            Lie::HalfList => (FaultKind::ListsHalf, None, none()),
            Lie::BrokenList => (FaultKind::ListsBreak, None, none()),
            Lie::PlainMachine => {
                let made = self.0.named("gcp").create(&node(77)).await.unwrap();
                return self.0.world().fleet.change(made.id.as_str(), |made| {
                    made.name = "Bob's box".to_owned();
                    made.tags = Tags::default();
                });
            }
        };
        self.strike(kind, count, params).await
    }

    async fn calm(&self) {
        for fault in self.0.overview().faults {
            self.0.clear(fault.id).await.unwrap();
        }
        let quota = Metric::Cpus.default_quota();
        self.0.set_quota(east(), Metric::Cpus, quota).await.unwrap();
        self.0.grant("gcp", "compute.instances.create").await.unwrap();
    }

    fn order(&self) -> Order {
        Order { zone: "us-east1-c".to_owned(), ..order("n1-standard-4") }
    }

    async fn pass(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_simulated_cloud_keeps_every_rule() {
    for latencies in [Latencies::INSTANT, Latencies::default()] {
        let skipped = conforms(&Simulated(cloud(latencies))).await;
        assert_eq!(skipped, Vec::<&str>::new());
    }
}

#[tokio::test(start_paused = true)]
async fn a_machine_boots_runs_and_is_shown_as_gone_for_an_hour() {
    let second = Latency { min_ms: 1_000, max_ms: 1_000 };
    let cloud = cloud(Latencies { machine: second, removal: second, ..Latencies::INSTANT });
    let (gcp, node) = (cloud.named("gcp"), node(1));
    let made = gcp.create(&node).await.unwrap();
    assert_eq!(made.state, MachineState::Starting);
    pass(1).await;
    assert_eq!(state_of(&cloud, &node).await, Some(MachineState::Running));
    gcp.terminate(&doomed(&made)).await.unwrap();
    assert_eq!(state_of(&cloud, &node).await, Some(MachineState::Stopping));
    assert_eq!(cloud.overview().providers["gcp"].quotas["us-east1"]["CPUS"].used, 4);
    pass(1).await;
    assert_eq!(state_of(&cloud, &node).await, Some(MachineState::Gone));
    assert_eq!(cloud.overview().providers["gcp"].quotas["us-east1"]["CPUS"].used, 0);
    pass(3_599).await;
    assert_eq!(gcp.list().await.unwrap().len(), 1);
    pass(1).await;
    assert_eq!(gcp.list().await.unwrap(), Vec::new());
}

#[tokio::test(start_paused = true)]
async fn mvp_journey_4_scenario_2_quota_exceeded_during_provisioning() {
    let cloud = cloud(Latencies::INSTANT);
    let gcp = cloud.named("gcp");
    let tight = Quota { limit: 14, used_by_others: 4 };
    cloud.set_quota(east(), Metric::Cpus, tight).await.unwrap();
    let expected = Trouble::Quota {
        resource: "CPUs".to_owned(),
        each: 4,
        available: 10,
        message: "GCP quota exceeded for resource: CPUS in region us-east1. Current: 4/14"
            .to_owned(),
    };
    let order = order("n1-standard-4");
    assert_eq!(gcp.room(&order, 5).await, Err(expected));
    assert_eq!(gcp.room(&order, 2).await, Ok(()));
    for number in [1, 2] {
        gcp.create(&node(number)).await.unwrap();
    }
    assert!(matches!(gcp.create(&node(3)).await, Err(Trouble::Quota { available: 2, .. })));
    let enough = Quota { limit: 16, used_by_others: 4 };
    cloud.set_quota(east(), Metric::Cpus, enough).await.unwrap();
    gcp.create(&node(3)).await.expect("the cause is mended");
}

#[tokio::test(start_paused = true)]
async fn mvp_journey_4_scenario_3_adapter_failure_during_node_provisioning() {
    let cloud = cloud(Latencies::INSTANT);
    let gcp = cloud.named("gcp");
    let params = FaultParams { node: Some(3), ..FaultParams::default() };
    let third = NewFault { params, ..fault(FaultKind::ProvisioningFailed, "work*") };
    let third = cloud.inject(third).await.unwrap();
    let elsewhere = cloud.inject(fault(FaultKind::ProvisioningFailed, "prod")).await.unwrap();
    for number in [1, 2, 4] {
        gcp.create(&node(number)).await.expect("only the third fails");
    }
    let expected = Trouble::Capacity {
        code: "ZONE_RESOURCE_POOL_EXHAUSTED".to_owned(),
        message: "GCP error: ZONE_RESOURCE_POOL_EXHAUSTED".to_owned(),
    };
    assert_eq!(gcp.create(&node(3)).await, Err(expected));
    for id in [third.id, elsewhere.id] {
        assert!(cloud.clear(id).await.unwrap());
    }
    gcp.create(&node(3)).await.expect("the cause is mended");
}

#[tokio::test(start_paused = true)]
async fn each_name_shows_the_machines_that_were_bought_through_it() {
    let cloud = cloud(Latencies::INSTANT);
    let (gcp, aws) = (cloud.named("gcp"), cloud.named("aws"));
    let made = gcp.create(&node(1)).await.unwrap();
    assert_eq!(gcp.list().await.unwrap().len(), 1);
    assert_eq!(aws.list().await.unwrap().len(), 0);
    assert_eq!(aws.find(&node(1)).await, Ok(None));
    assert!(matches!(aws.terminate(&doomed(&made)).await, Err(Trouble::NotFound(_))));
    assert_eq!(gcp.list().await.unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_zone_that_is_out_of_machines_leaves_the_others() {
    let cloud = cloud(Latencies::INSTANT);
    let gcp = cloud.named("gcp");
    let params = FaultParams {
        zone: Some("us-east1-b".to_owned()),
        machine_type: Some("n1-standard-4".to_owned()),
        ..FaultParams::default()
    };
    let out = NewFault { params, ..NewFault::new(FaultKind::StockOut) };
    cloud.inject(out).await.unwrap();
    for number in 1..=3 {
        let made = gcp.create(&node(number)).await.unwrap();
        assert_ne!(made.zone, "us-east1-b");
    }
    let there = Order { zone: "us-east1-b".to_owned(), ..order("n1-standard-4") };
    let answer = gcp.create(&purchase("workers", 4, there.clone())).await;
    assert!(matches!(answer, Err(Trouble::Capacity { .. })), "{answer:?}");
    let other = Order { machine_type: "n1-standard-8".to_owned(), ..there };
    gcp.create(&purchase("workers", 5, other)).await.expect("another type is not short");
    assert!(gcp.offers("us-east1").await.unwrap().iter().all(|offer| offer.available));
    cloud.inject(fault(FaultKind::StockOut, "gcp")).await.unwrap();
    assert!(gcp.offers("us-east1").await.unwrap().iter().all(|offer| !offer.available));
}

#[tokio::test(start_paused = true)]
async fn what_is_offered_has_a_price_and_spot_costs_a_third() {
    let cloud = cloud(Latencies::INSTANT);
    let rows = [
        ("gcp", "us-east1", "n1-standard-4", 0.19, Some(0.063), 3),
        ("aws", "us-east-1", "p5.48xlarge", 98.32, Some(32.773), 3),
        ("aws", "us-east-1", "p4d.24xlarge", 32.77, Some(10.923), 3),
        ("lambda", "us-east-1", "gpu_8x_h100_sxm5", 23.92, None, 0),
    ];
    for (provider, region, machine_type, price, spot, zones) in rows {
        let offers = cloud.named(provider).offers(region).await.unwrap();
        let offer = offers.iter().find(|offer| offer.machine_type == machine_type).unwrap();
        assert_eq!(offer.price_per_hour, Some(price), "{machine_type}");
        assert_eq!(offer.spot_price_per_hour, spot, "{machine_type}");
        assert_eq!(offer.zones.len(), zones, "{machine_type}");
    }
    let answer = cloud.named("gcp").offers("us-east2").await;
    let Err(Trouble::Invalid { field, message }) = answer else { panic!("{answer:?}") };
    assert_eq!(field, "region");
    assert!(message.contains("Did you mean us-east1?"), "{message}");
}

/// What was booted and stopped, in order.
#[derive(Default)]
struct Heard(Mutex<Vec<String>>);

impl Heard {
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

impl Boots for Heard {
    fn boot(&self, machine: &Booted) {
        let Booted { name, reboots, pool, zone, gpus, gpu_model, labels, .. } = machine;
        assert_eq!((pool.as_str(), labels["rack"].as_str()), ("prod.workers", "r7"));
        assert_eq!(gpu_model.is_empty(), *gpus == 0);
        assert!(zone.starts_with("us-east1-"));
        self.0.lock().unwrap().push(format!("boot {name} {reboots}"));
    }

    fn stop(&self, name: &str) {
        self.0.lock().unwrap().push(format!("stop {name}"));
    }

    fn inject(&self, name: &str, what: &str) -> BoxFuture<'static, Result<(), String>> {
        self.0.lock().unwrap().push(format!("inject {name} {what}"));
        let known = what.starts_with("xid:");
        let answer = if known { Ok(()) } else { Err(format!("nobody knows {what}")) };
        Box::pin(std::future::ready(answer))
    }
}

/// Runs the machines of a cloud beside a test.
fn hosted(cloud: &SimulatedCloud) -> (Arc<Heard>, tokio::task::JoinSet<()>) {
    let heard = Arc::new(Heard::default());
    let mut tasks = tokio::task::JoinSet::new();
    let host = cloud.clone().host(heard.clone());
    tasks.spawn(async move {
        let _ = host.await;
    });
    (heard, tasks)
}

#[tokio::test(start_paused = true)]
async fn whoever_runs_the_machines_hears_of_each_when_it_is_up_and_when_it_is_not() {
    let second = Latency { min_ms: 1_000, max_ms: 1_000 };
    let cloud = cloud(Latencies { machine: second, ..Latencies::INSTANT });
    let (heard, _tasks) = hosted(&cloud);
    let gcp = cloud.named("gcp");
    let (node, silent) = (node(1), node(2));
    let name = node.instance.as_str();
    let made = gcp.create(&node).await.unwrap();
    let nobody = cloud.break_gpu("nobody", "fire").await;
    assert_eq!(nobody, Err("nobody knows fire".to_owned()));
    assert_eq!(heard.take(), ["inject nobody fire"]);
    cloud.inject(fault(FaultKind::BootFails, silent.instance.as_str())).await.unwrap();
    let mute = gcp.create(&silent).await.unwrap();
    tokio::time::sleep(Duration::from_millis(999)).await;
    assert_eq!(heard.take(), Vec::<String>::new(), "they boot");
    pass(1).await;
    assert_eq!(heard.take(), [format!("boot {name} 0")], "one of them never comes up");
    assert!(gcp.console(&mute.id).await.unwrap().contains("Failed to start argosy-agent"));
    assert!(gcp.console(&made.id).await.unwrap().contains("Started argosy-agent"));

    let kill = NewFault { count: Some(1), ..fault(FaultKind::Kill, name) };
    cloud.inject(kill).await.unwrap();
    pass(1).await;
    assert_eq!(heard.take(), [format!("stop {name}")]);
    assert_eq!(state_of(&cloud, &node).await, Some(MachineState::Running), "F: nobody says so");

    gcp.reboot(&made.id).await.unwrap();
    pass(2).await;
    assert_eq!(heard.take(), [format!("boot {name} 1")]);
    gcp.reboot(&made.id).await.unwrap();
    pass(2).await;
    assert_eq!(heard.take(), [format!("stop {name}"), format!("boot {name} 2")]);

    gcp.terminate(&doomed(&made)).await.unwrap();
    pass(1).await;
    assert_eq!(heard.take(), [format!("stop {name}")]);
}

#[tokio::test(start_paused = true)]
async fn a_spot_machine_that_is_reclaimed_has_its_notice_and_goes() {
    let cloud = cloud(Latencies::INSTANT);
    let (heard, _tasks) = hosted(&cloud);
    let gcp = cloud.named("gcp");
    let spot = Order { spot: true, ..order("a3-highgpu-8g") };
    let spot = purchase("prod.workers", 1, spot);
    gcp.create(&spot).await.unwrap();
    gcp.create(&node(2)).await.unwrap();
    let reclaim = fault(FaultKind::Reclaim, "workers");
    cloud.inject(reclaim).await.unwrap();
    pass(1).await;
    let noticed = gcp.find(&spot).await.unwrap().unwrap();
    assert_eq!(noticed.state, MachineState::Running);
    let notice = noticed.notice.unwrap();
    assert_eq!((notice.kind, notice.at.is_some()), (NoticeKind::Reclaim, true));
    assert_eq!(heard.take().len(), 2, "both run");
    pass(120).await;
    assert_eq!(state_of(&cloud, &spot).await, Some(MachineState::Gone));
    assert_eq!(state_of(&cloud, &node(2)).await, Some(MachineState::Running), "not a spot machine");
    assert_eq!(heard.take(), [format!("stop {}", spot.instance)]);
}

/// What somebody asks of the cloud, about which of eight purchases.
#[derive(Clone, Copy, Debug)]
enum Act {
    Buy(u32),
    Return(u32),
    Reboot(u32),
    Pass(u64),
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        4 => (1..9_u32).prop_map(Act::Buy),
        3 => (1..9_u32).prop_map(Act::Return),
        1 => (1..9_u32).prop_map(Act::Reboot),
        2 => (0..5_u64).prop_map(Act::Pass),
    ];
    proptest::collection::vec(act, 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_order_of_calls_leaves_one_machine_a_token_and_counts_it(acts in acts()) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(async {
            let cloud = cloud(Latencies::default());
            let gcp = cloud.named("gcp");
            let mut bought = BTreeMap::new();
            let mut returned = BTreeSet::new();
            for act in acts {
                match act {
                    Act::Buy(number) => {
                        let made = gcp.create(&node(number)).await.unwrap();
                        let first = bought.entry(number).or_insert_with(|| made.clone());
                        assert_eq!(first.id, made.id, "a token buys one machine");
                    }
                    Act::Return(number) => {
                        let Some(made) = bought.get(&number) else { continue };
                        let _ = gcp.terminate(&doomed(made)).await;
                        returned.insert(number);
                    }
                    Act::Reboot(number) => {
                        let Some(made) = bought.get(&number) else { continue };
                        let _ = gcp.reboot(&made.id).await;
                    }
                    Act::Pass(seconds) => pass(seconds).await,
                }
            }
            pass(10).await;
            let machines = cloud.machines();
            assert_eq!(machines.len(), bought.len());
            let living = machines.iter().filter(|view| view.state == MachineState::Running).count();
            assert_eq!(living, bought.len() - returned.len());
            let used = cloud.overview().providers["gcp"].quotas["us-east1"]["CPUS"].used;
            assert_eq!(used, 4 * u64::try_from(living).unwrap());
        });
    }
}

/// A file of its own for each test, gone afterwards.
struct TestFile(PathBuf);

impl TestFile {
    fn new(name: &str) -> Self {
        let name = format!("argosy-{}-machines-{name}.json", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = std::fs::remove_file(&path);
        Self(path)
    }

    fn open(&self, clock: Clock) -> SimulatedCloud {
        let latencies = Some(Latencies::INSTANT);
        SimulatedCloud::open(&self.0, Catalog::default(), clock, latencies).unwrap()
    }

    /// Changes when the file is written anew, and not when something is added.
    fn inode(&self) -> u64 {
        std::fs::metadata(&self.0).unwrap().ino()
    }
}

impl Drop for TestFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[tokio::test]
async fn a_thousand_machines_are_added_to_the_file_one_by_one() {
    let file = TestFile::new("thousand");
    let clock = clock();
    let cloud = file.open(clock);
    cloud.create_zone("acme.test").await.unwrap();
    cloud.inject(fault(FaultKind::ListsLag, "aws")).await.unwrap();
    let gcp = cloud.named("gcp");
    let inode = file.inode();
    for number in 1..=1_000 {
        gcp.create(&node(number)).await.unwrap();
    }
    assert_eq!(file.inode(), inode, "it was never written anew");
    assert_eq!(file.open(clock).machines(), cloud.machines());
}

#[tokio::test]
async fn a_cloud_that_is_opened_again_has_its_machines_and_boots_them() {
    let file = TestFile::new("reopen");
    let clock = clock();
    let cloud = file.open(clock);
    let gcp = cloud.named("gcp");
    let stays = gcp.create(&node(1)).await.unwrap();
    let leaves = gcp.create(&node(2)).await.unwrap();
    let killed = gcp.create(&node(3)).await.unwrap();
    gcp.terminate(&doomed(&leaves)).await.unwrap();
    let kill = NewFault { count: Some(1), ..fault(FaultKind::Kill, &killed.name) };
    cloud.inject(kill).await.unwrap();
    let before = cloud.machines();

    let again = file.open(clock);
    assert_eq!(again.machines(), before);
    let made = again.named("gcp").create(&node(1)).await.unwrap();
    assert_eq!(made.id, stays.id, "a token is remembered");
    let heard = Heard::default();
    again.look(&heard, &mut BTreeMap::new());
    assert_eq!(heard.take(), [format!("boot {} 0", node(1).instance)]);
    let more = again.named("gcp").create(&node(4)).await.unwrap();
    assert!(
        before.iter().all(|view| view.machine.id != more.id.as_str()),
        "ids are not given twice"
    );
}

#[tokio::test]
async fn a_call_that_changes_nothing_writes_nothing_and_half_a_line_is_not_read() {
    let file = TestFile::new("half");
    let clock = clock();
    let cloud = file.open(clock);
    let gcp = cloud.named("gcp");
    let made = gcp.create(&node(1)).await.unwrap();
    let before = std::fs::read(&file.0).unwrap();
    gcp.create(&node(1)).await.unwrap();
    gcp.list().await.unwrap();
    assert_eq!(std::fs::read(&file.0).unwrap(), before);
    gcp.terminate(&doomed(&made)).await.unwrap();
    let after = std::fs::read(&file.0).unwrap();
    assert!(after.starts_with(&before) && before.len() < after.len());
    std::fs::write(&file.0, &after[..after.len() - 1]).unwrap();
    let again = file.open(clock);
    let states: Vec<MachineState> = again.machines().iter().map(|view| view.state).collect();
    assert_eq!(states, [MachineState::Running], "its end was not written to its end");
}

#[tokio::test]
async fn a_call_that_is_dropped_while_it_saves_leaves_the_file_whole() {
    let file = TestFile::new("dropped");
    let clock = clock();
    let cloud = file.open(clock);
    let gcp = cloud.named("gcp");
    for number in 1..100 {
        let node = node(number);
        tokio::select! {
            biased;
            _ = gcp.create(&node) => {}
            () = tokio::task::yield_now() => {}
        }
        file.open(clock);
    }
    cloud.create_zone("acme.test").await.unwrap();
    assert_eq!(file.open(clock).machines(), cloud.machines());
}
