//! A control plane in virtual time, with a scripted cloud and a scripted post office.

use crate::engine::Rig;
use crate::workload::Workload;
use argosy_control::clock::Clock;
use argosy_control::extension::Extensions;
use argosy_control::ids::Ids;
use argosy_control::notify::{CloudEvent, Notifier, SendError};
use argosy_control::provider::{Ask, Cause, Done, Part, Provider, Refusal};
use argosy_control::resource::{Created, Creation, Target, Write};
use argosy_control::scheduler::Scheduler;
use argosy_control::task::Tasks;
use argosy_control::{Control, Error, MachineSettings, Outside, Settings, Stored};
use argosy_core::access::{Authorization, Caller, Role};
use argosy_core::adapter::{
    AdapterGraph, AdapterName, AdapterSpec, DraftCondition, ReportDraft, Runner, TimeWindow, Tri,
};
use argosy_core::catalog::Catalog;
use argosy_core::gate::Doomed;
use argosy_core::label::Labels;
use argosy_core::machine::{Abilities, Machine, MachineId, Offer, Order, Purchase, Trouble};
use argosy_core::name::Name;
use argosy_core::resource::{Kind, Patch, Resource, Spec, Strategy};
use argosy_core::sentinel::Rules;
use argosy_core::status::{Condition, Phase, phase};
use argosy_store::Store;
use argosy_store::memory::Memory;
use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};

pub(crate) struct World {
    pub(crate) control: Control,
    pub(crate) store: Store,
    pub(crate) rig: Arc<Rig>,
    pub(crate) outside: Arc<Elsewhere>,
    memory: Arc<Memory>,
    /// Dropped with the world, which is how a process dies.
    _tasks: Tasks,
}

/// What is not part of the control plane, and outlives it.
pub(crate) struct Elsewhere {
    pub(crate) cloud: Arc<Cloud>,
    pub(crate) post: Arc<Post>,
    /// The provider that the cloud is configured for.
    pub(crate) provider: Mutex<&'static str>,
    /// More clouds, by the provider that they are configured for.
    pub(crate) more_clouds: BTreeMap<&'static str, Arc<Cloud>>,
    /// What is added to the control plane.
    pub(crate) extensions: Extensions,
    /// The workload system, if one is configured.
    pub(crate) workload: Option<Arc<Workload>>,
    pub(crate) ids: Ids,
    clock: Clock,
}

pub(crate) fn settings() -> Settings {
    Settings {
        adapters: AdapterGraph::default(),
        rules: Rules::default(),
        window: TimeWindow::default(),
        catalog: Catalog::default(),
        authorization: Authorization::Team,
        conditions: BTreeMap::new(),
        nodes: argosy_core::node::settings::NodeSettings::default(),
        machines: MachineSettings::default(),
        tombstones_kept: SignedDuration::from_hours(24),
        idempotency_kept: SignedDuration::from_hours(24),
        audit_kept: SignedDuration::from_hours(24 * 90),
        history_kept: SignedDuration::from_hours(24 * 30),
    }
}

/// Settings in which clusters have these adapters (each waits for the one before) and pools none.
pub(crate) fn with_adapters(adapters: &[(&str, Runner)]) -> Settings {
    let mut specs: Vec<AdapterSpec> = Vec::new();
    for (name, runner) in adapters {
        specs.push(AdapterSpec {
            name: adapter(name),
            depends_on: specs.last().map(|spec| spec.name.clone()).into_iter().collect(),
            required: true,
            deadline: SignedDuration::from_mins(5),
            runner: runner.clone(),
        });
    }
    let adapters = AdapterGraph::new(BTreeMap::from([(Kind::Cluster, specs)])).unwrap();
    Settings { adapters, ..settings() }
}

/// Runs a case of a property: what `start_paused` is to a test.
pub(crate) fn in_virtual_time<T>(case: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_time().start_paused(true).build().unwrap().block_on(case)
}

async fn pass(clock: Clock, time: SignedDuration) {
    clock.sleep_until(clock.now().checked_add(time).unwrap()).await;
}

pub(crate) fn adapter(name: &str) -> AdapterName {
    AdapterName::parse(name).unwrap()
}

impl World {
    pub(crate) async fn new() -> World {
        World::with(settings()).await
    }

    pub(crate) async fn with(settings: Settings) -> World {
        World::with_workload(settings, None).await
    }

    pub(crate) async fn with_workload(
        settings: Settings,
        workload: Option<Arc<Workload>>,
    ) -> World {
        World::prepared(settings, |outside| outside.workload = workload).await
    }

    /// A world in which something outside is not as usual.
    pub(crate) async fn prepared(
        settings: Settings,
        prepare: impl FnOnce(&mut Elsewhere),
    ) -> World {
        let clock = Clock::simulated("2026-01-01T00:00:00Z".parse().unwrap());
        let memory = Arc::new(Memory::with_clock(Arc::new(move || clock.now())));
        let mut outside = Elsewhere {
            cloud: Arc::default(),
            post: Arc::default(),
            provider: Mutex::new("gcp"),
            more_clouds: BTreeMap::new(),
            extensions: Extensions::default(),
            workload: None,
            clock,
            ids: Ids::seeded(7),
        };
        prepare(&mut outside);
        World::start(settings, memory, Arc::new(outside), "one").await
    }

    /// What a replica that hears of nothing more from now on will have.
    pub(crate) fn replica(&self) -> Arc<Memory> {
        Arc::new(self.memory.copy())
    }

    /// The process dies and its store with it; a new one starts on what a replica has.
    pub(crate) async fn fail_over(self, settings: Settings, replica: Arc<Memory>) -> World {
        let outside = self.outside.clone();
        drop(self);
        pass(outside.clock, SignedDuration::from_millis(1)).await;
        World::start(settings, replica, outside, "two").await
    }

    /// A process on what another left behind, with another workload system.
    pub(crate) async fn elsewhere(
        settings: Settings,
        memory: Arc<Memory>,
        workload: Arc<Workload>,
    ) -> World {
        let clock = Clock::simulated("2026-01-02T00:00:00Z".parse().unwrap());
        let outside = Elsewhere {
            cloud: Arc::default(),
            post: Arc::default(),
            provider: Mutex::new("gcp"),
            more_clouds: BTreeMap::new(),
            extensions: Extensions::default(),
            workload: Some(workload),
            clock,
            ids: Ids::seeded(8),
        };
        World::start(settings, memory, Arc::new(outside), "two").await
    }

    /// Another process on the same store.
    pub(crate) async fn another(&self, settings: Settings, holder: &str) -> World {
        World::start(settings, self.memory.clone(), self.outside.clone(), holder).await
    }

    /// The process dies, and a new one starts.
    pub(crate) async fn restart(self, settings: Settings) -> World {
        // Aborted tasks end when they are next looked at.
        self.restart_after(settings, SignedDuration::from_millis(1)).await
    }

    /// The process dies, and after a while a new one starts.
    pub(crate) async fn restart_after(self, settings: Settings, time: SignedDuration) -> World {
        let (memory, outside) = (self.memory.clone(), self.outside.clone());
        drop(self);
        pass(outside.clock, time).await;
        World::start(settings, memory, outside, "two").await
    }

    async fn start(
        settings: Settings,
        memory: Arc<Memory>,
        outside: Arc<Elsewhere>,
        holder: &str,
    ) -> World {
        let rig = Arc::new(Rig::new(memory.clone()));
        let (store, driver) = Store::open(rig.clone()).await.unwrap();
        let mut tasks = Tasks::default();
        tasks.start("store", driver.run());
        let mut clouds = outside.more_clouds.clone();
        clouds.insert(*outside.provider.lock().unwrap(), outside.cloud.clone());
        for cloud in clouds.values() {
            *cloud.clock.lock().unwrap() = Some(outside.clock);
        }
        let provider = |(name, cloud): (&&str, &Arc<Cloud>)| {
            ((*name).to_owned(), cloud.clone() as Arc<dyn Provider>)
        };
        let plugs = Outside {
            clouds: clouds.iter().map(provider).collect(),
            notifier: outside.post.clone(),
            schedulers: outside
                .workload
                .iter()
                .map(|workload| workload.clone() as Arc<dyn Scheduler>)
                .collect(),
            extensions: outside.extensions.clone(),
        };
        let Elsewhere { clock, ids, .. } = &*outside;
        let control =
            Control::start(store.clone(), settings, plugs, *clock, ids.clone(), holder, &mut tasks);
        for cloud in clouds.into_values() {
            let robots = crate::yard::robots(cloud, control.clone(), store.clone());
            tasks.start("robots", robots);
        }
        World { control, store, rig, outside, memory, _tasks: tasks }
    }

    /// Providers that machines are at and that this process does not know.
    pub(crate) fn unprovided(&self) -> Vec<(String, usize)> {
        let cloud: Arc<dyn Provider> = self.outside.cloud.clone();
        let name = self.outside.provider.lock().unwrap().to_string();
        argosy_control::instance::unprovided(&self.store, &BTreeMap::from([(name, cloud)]))
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.control.clock.now()
    }

    pub(crate) fn cloud(&self) -> &Cloud {
        &self.outside.cloud
    }

    pub(crate) fn post(&self) -> &Post {
        &self.outside.post
    }

    pub(crate) async fn cluster(&self, name: &str) -> Stored<Resource> {
        self.create(&user(), cluster_named(name)).await.unwrap().resource
    }

    pub(crate) async fn pool(&self, of: &str, name: &str) -> Stored<Resource> {
        self.create(&user(), pool_named(of, name)).await.unwrap().resource
    }

    pub(crate) async fn create(
        &self,
        caller: &Caller,
        creation: Creation<'_>,
    ) -> Result<Created, Error> {
        self.control.resources.create(caller, creation, Write::default()).await
    }

    pub(crate) async fn patch(
        &self,
        caller: &Caller,
        target: Target<'_>,
        spec: Value,
    ) -> Result<Stored<Resource>, Error> {
        let patch = spec_patch(spec);
        self.control.resources.patch(caller, target, &patch, Write::default()).await
    }

    pub(crate) async fn relabel(
        &self,
        caller: &Caller,
        target: Target<'_>,
        labels: Value,
    ) -> Result<Stored<Resource>, Error> {
        let labels = Some(object(labels));
        let patch = Patch { spec: None, labels, strategy: Strategy::Merge };
        self.control.resources.patch(caller, target, &patch, Write::default()).await
    }

    pub(crate) async fn delete(&self, target: Target<'_>) -> Stored<Resource> {
        self.control.resources.delete(&user(), target, Write::default()).await.unwrap()
    }

    pub(crate) fn get(&self, target: Target<'_>) -> Option<Arc<Resource>> {
        self.control.resources.get(&admin(), target).ok().map(|found| found.value)
    }

    pub(crate) fn phase(&self, target: Target<'_>) -> Option<Phase> {
        self.get(target).map(|found| phase(&found))
    }

    pub(crate) fn condition(&self, target: Target<'_>, kind: &str) -> Option<Condition> {
        let found = self.get(target)?;
        found.conditions.iter().find(|condition| condition.kind == kind).cloned()
    }

    /// Virtual time passes.
    pub(crate) async fn pass(&self, time: SignedDuration) {
        pass(self.control.clock, time).await;
    }

    /// Virtual time passes until something holds.
    #[track_caller]
    pub(crate) fn until<'a>(
        &'a self,
        what: &'a str,
        holds: impl Fn(&World) -> bool + 'a,
    ) -> impl Future<Output = ()> + 'a {
        let place = std::panic::Location::caller();
        async move {
            let mut changes = self.store.subscribe();
            let end = self.now().checked_add(SignedDuration::from_hours(2)).unwrap();
            while !holds(self) {
                assert!(self.now() < end, "{place}: it never came to this: {what}");
                tokio::select! {
                    changed = changes.changed() => changed.unwrap(),
                    () = self.pass(SignedDuration::from_millis(20)) => {}
                }
            }
        }
    }

    pub(crate) async fn until_phase(&self, target: Target<'_>, wanted: Phase) {
        self.until(wanted.as_str(), |world| world.phase(target) == Some(wanted)).await;
    }

    pub(crate) async fn until_gone(&self, target: Target<'_>) {
        self.until("it is gone", |world| world.get(target).is_none()).await;
    }
}

pub(crate) fn user() -> Caller {
    Caller {
        subject: "ann".to_owned(),
        via: "token",
        tenant: "acme".to_owned(),
        teams: Vec::new(),
        role: Role::Operator,
        adapter: None,
        node: None,
        request_id: "r1".to_owned(),
    }
}

pub(crate) fn admin() -> Caller {
    Caller { role: Role::Admin, ..user() }
}

pub(crate) fn of_team(team: &str) -> Caller {
    Caller { subject: format!("{team}-user"), teams: vec![team.to_owned()], ..user() }
}

pub(crate) fn of_tenant(tenant: &str) -> Caller {
    Caller { tenant: tenant.to_owned(), ..admin() }
}

pub(crate) fn cluster(reference: &str) -> Target<'_> {
    Target { kind: Kind::Cluster, cluster: None, reference }
}

pub(crate) fn pool<'a>(cluster: &'a str, reference: &'a str) -> Target<'a> {
    Target { kind: Kind::NodePool, cluster: Some(cluster), reference }
}

pub(crate) fn object(value: Value) -> Spec {
    value.as_object().unwrap().clone()
}

pub(crate) fn spec_patch(spec: Value) -> Patch {
    Patch { spec: Some(object(spec)), labels: None, strategy: Strategy::Merge }
}

pub(crate) fn cluster_named(name: &str) -> Creation<'static> {
    Creation {
        kind: Kind::Cluster,
        cluster: None,
        name: Name::parse(name).unwrap(),
        spec: object(json!({"provider": "gcp", "region": "us-east1"})),
        labels: Labels::default(),
    }
}

pub(crate) fn pool_named<'a>(of: &'a str, name: &str) -> Creation<'a> {
    let spec = object(json!({"nodeCount": 2}));
    Creation { kind: Kind::NodePool, cluster: Some(of), spec, ..cluster_named(name) }
}

pub(crate) fn labelled<'a>(creation: Creation<'a>, labels: Value) -> Creation<'a> {
    Creation { labels: Labels::parse(&object(labels)).unwrap(), ..creation }
}

/// A report: `T`, `F` or `U` for Available; the rest is well.
pub(crate) fn report(
    adapter_name: &str,
    generation: u32,
    available: &str,
    time: Option<Timestamp>,
) -> ReportDraft {
    let tri = |letter: &str| match letter {
        "T" => Tri::True,
        "F" => Tri::False,
        _ => Tri::Unknown,
    };
    let condition = |kind: &str, status| DraftCondition {
        kind: kind.to_owned(),
        status,
        reason: "Because".to_owned(),
        message: String::new(),
    };
    ReportDraft {
        adapter: adapter(adapter_name),
        observed_generation: generation,
        observed_time: time,
        conditions: vec![
            condition("Available", tri(available)),
            condition("Applied", Tri::True),
            condition("Health", Tri::True),
        ],
        data: Map::new(),
        metadata: Map::new(),
    }
}

pub(crate) fn adapter_caller(name: &str) -> Caller {
    Caller {
        subject: format!("adapter-{name}"),
        role: Role::Adapter,
        adapter: Some(name.to_owned()),
        ..user()
    }
}

/// What the cloud does when it is asked.
#[derive(Clone, Debug)]
pub(crate) enum Does {
    Fail(&'static str),
    Unhealthy,
    Hang,
    Panic,
}

/// A cloud that does as it is told, and remembers what it was asked for.
#[derive(Default)]
pub(crate) struct Cloud {
    calls: Mutex<Vec<String>>,
    script: Mutex<HashMap<String, Does>>,
    pub(crate) yard: crate::yard::Shared,
    /// What time it is.
    clock: Mutex<Option<Clock>>,
    /// Calls that are under way.
    pub(crate) busy: Arc<std::sync::atomic::AtomicUsize>,
}

impl Cloud {
    /// What happens from now on when `what`, like `a dns`, is asked for; `None` is success.
    pub(crate) fn when(&self, what: &str, does: Option<Does>) {
        let mut script = self.script.lock().unwrap();
        match does {
            Some(does) => script.insert(what.to_owned(), does),
            None => script.remove(what),
        };
    }

    /// Every call since the last time somebody asked, like `a dns@1` or `a -dns@2`.
    pub(crate) fn calls(&self) -> Vec<String> {
        std::mem::take(&mut self.calls.lock().unwrap())
    }

    /// How often something was asked for.
    pub(crate) fn count(&self, call: &str) -> usize {
        self.calls.lock().unwrap().iter().filter(|made| *made == call).count()
    }

    async fn asked(&self, what: &str, ask: &Ask) -> Result<Done, Refusal> {
        let Resource { name, generation, .. } = &*ask.resource;
        let key = format!("{name} {what}");
        self.calls.lock().unwrap().push(format!("{key}@{generation}"));
        let does = self.script.lock().unwrap().get(&key).cloned();
        let _busy = Busy::new(self.busy.clone());
        let mut done = Done {
            reason: "Done".to_owned(),
            message: "It is done".to_owned(),
            data: Map::new(),
            unhealthy: None,
        };
        match does {
            None => Ok(done),
            Some(Does::Unhealthy) => {
                done.unhealthy = Some(cause("HealthCheckFailed"));
                Ok(done)
            }
            Some(Does::Fail(reason)) => Err(Refusal {
                cause: cause(reason),
                applied: false,
                healthy: true,
                data: Map::new(),
            }),
            Some(Does::Hang) => std::future::pending().await,
            Some(Does::Panic) => panic!("scripted"),
        }
    }
}

struct Busy(Arc<std::sync::atomic::AtomicUsize>);

impl Busy {
    fn new(count: Arc<std::sync::atomic::AtomicUsize>) -> Self {
        count.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        Self(count)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.fetch_sub(1, std::sync::atomic::Ordering::SeqCst);
    }
}

fn cause(reason: &str) -> Cause {
    Cause { reason: reason.to_owned(), message: format!("It is {reason}") }
}

fn part(part: Part) -> &'static str {
    match part {
        Part::Dns => "dns",
        Part::Infrastructure => "infrastructure",
    }
}

impl Cloud {
    fn now(&self) -> Timestamp {
        self.clock.lock().unwrap().unwrap().now()
    }
}

#[async_trait]
impl Provider for Cloud {
    fn abilities(&self) -> Abilities {
        self.machine_abilities()
    }

    async fn offers(&self, region: &str) -> Result<Vec<Offer>, Trouble> {
        self.machine_offers(region)
    }

    async fn room(&self, order: &Order, count: u32) -> Result<(), Trouble> {
        self.machine_room(order, count)
    }

    async fn create(&self, purchase: &Purchase) -> Result<Machine, Trouble> {
        self.machine_create(purchase, self.now()).await
    }

    async fn find(&self, purchase: &Purchase) -> Result<Option<Machine>, Trouble> {
        self.machine_find(purchase, self.now())
    }

    async fn list(&self) -> Result<Vec<Machine>, Trouble> {
        self.machine_list(self.now())
    }

    async fn terminate(&self, doomed: &Doomed) -> Result<(), Trouble> {
        self.machine_terminate(doomed)
    }

    async fn reboot(&self, machine: &MachineId) -> Result<(), Trouble> {
        self.machine_reboot(machine)
    }

    async fn console(&self, machine: &MachineId) -> Result<String, Trouble> {
        Ok(format!("{machine}: Booting\ncloud-init: could not reach the control plane\n"))
    }

    async fn preflight(&self, ask: &Ask) -> Result<Done, Refusal> {
        self.asked("validation", ask).await
    }

    async fn ensure(&self, of: Part, ask: &Ask) -> Result<Done, Refusal> {
        self.asked(part(of), ask).await
    }

    async fn remove(&self, of: Part, ask: &Ask) -> Result<Done, Refusal> {
        self.asked(&format!("-{}", part(of)), ask).await
    }
}

/// Adapters outside: takes events, or refuses them.
#[derive(Default)]
pub(crate) struct Post {
    delivered: Mutex<Vec<CloudEvent>>,
    refusal: Mutex<HashMap<String, SendError>>,
    then: Mutex<Option<Box<dyn FnOnce() + Send>>>,
    pub(crate) tries: std::sync::atomic::AtomicUsize,
}

impl Post {
    /// What happens to events about this resource from now on; `*` is any.
    pub(crate) fn when(&self, id: &str, refusal: Option<SendError>) {
        let mut refusals = self.refusal.lock().unwrap();
        match refusal {
            Some(refusal) => refusals.insert(id.to_owned(), refusal),
            None => refusals.remove(id),
        };
    }

    /// What happens once, right after the next delivery.
    pub(crate) fn then(&self, then: impl FnOnce() + Send + 'static) {
        *self.then.lock().unwrap() = Some(Box::new(then));
    }

    pub(crate) fn delivered(&self) -> Vec<CloudEvent> {
        self.delivered.lock().unwrap().clone()
    }
}

#[async_trait]
impl Notifier for Post {
    async fn send(&self, _: &str, _: &str, event: &CloudEvent) -> Result<(), SendError> {
        self.tries.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        let refusals = self.refusal.lock().unwrap().clone();
        if let Some(refusal) = refusals.get(&event.data.id).or(refusals.get("*")) {
            return Err(refusal.clone());
        }
        self.delivered.lock().unwrap().push(event.clone());
        if let Some(then) = self.then.lock().unwrap().take() {
            then();
        }
        Ok(())
    }
}
