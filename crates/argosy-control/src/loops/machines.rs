//! Keeps every node pool as large and as well as it should be: buys, tends, replaces and returns machines.
//!
//! Woken by commits and alarms, it plans each pool that may be concerned anew. What talks to a provider runs
//! beside it, one job a record, so that a slow cloud holds up nobody else.
//!
//! What a newcomer gets wrong: everything this loop remembers may be lost. A record says what was begun; what
//! came of it is found by looking. Nothing is bought or returned at a provider before its machines were
//! compared with our records once (B2).

mod books;
mod job;
mod picture;
mod report;
mod scale;
mod shelf;
mod step;

use crate::Error;
use crate::adapter::Adapters;
use crate::extension::Extensions;
use crate::instance::board::Board;
use crate::loops::{Alarms, Beats, RENEW_EVERY, keep_lease, lead};
use crate::office::Office;
use crate::provider::Provider;
use crate::pulse::PulseBoard;
use crate::recovery;
use crate::safety;
use crate::stats::MachineAlarm;
use argosy_core::autoscale::MetricsAccess;
use argosy_core::command::{Command, CommandKind};
use argosy_core::id::ResourceId;
use argosy_core::instance::{
    Failure, Instance, InstanceId, Limits, Next, Reason, State, next, surplus,
};
use argosy_core::inventory::Orphan;
use argosy_core::liveness::Listened;
use argosy_core::machine::{Abilities, MachineId, Offer, Order, Trouble};
use argosy_core::node::Node;
use argosy_core::pool::{Buy, Plan};
use argosy_core::resource::{Kind, Resource};
use argosy_core::sentinel::is_turn;
use argosy_store::Revision;
use argosy_store::engine::Fence;
use argosy_store::view::{DocumentChange, Event, Stored, View};
use jiff::{SignedDuration, Timestamp};
use picture::Scene;
use shelf::Shelf;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::task::{Id, JoinError, JoinSet};
use tracing::{error, info, warn};
use uuid::Uuid;

pub(crate) use scale::history;
pub(crate) use step::permit;

const NAME: &str = "machines";

/// Who acts, as people see it.
const SELF: &str = argosy_core::pool::BY;

/// How often it looks at most: a burst of registrations is one look.
const LOOKS_APART: Duration = Duration::from_millis(100);

/// It rests for so many times as long as it thought, so that large pools do not cost a whole core.
const REST: u32 = 3;

/// It rests for so long for each record of the pools it planned, so that a thousand machines that come up one
/// after the other are not a thousand plans of a large pool.
const REST_PER_RECORD: Duration = Duration::from_millis(1);

/// The longest rest.
const REST_MAX: Duration = Duration::from_secs(3);

/// When to read the feed again after it could not be read.
const FEED_RETRY: Duration = Duration::from_secs(1);

/// When to look again at what could not be saved.
const AFTER_TROUBLE: SignedDuration = SignedDuration::from_secs(1);

/// How often what a provider offers, and for how much, is asked for.
const OFFERS_EVERY: SignedDuration = SignedDuration::from_mins(10);

/// How soon it is asked for again after that failed: what a pool costs is not known until then.
const OFFERS_RETRY: SignedDuration = SignedDuration::from_secs(30);

/// The first wait after a listing that failed; doubles, up to `MachineSettings::sweep_every`.
const LIST_RETRY: SignedDuration = SignedDuration::from_secs(2);

/// When it is asked again whether a machine whose node never came may leave, while something speaks against it.
const HELD_FOR: SignedDuration = SignedDuration::from_secs(10);

/// The longest that a provider may have us wait for a listing.
const WAIT_MAX: SignedDuration = SignedDuration::from_mins(30);

/// How often everything is looked at although nothing says that it changed.
const RESYNC_EVERY: SignedDuration = SignedDuration::from_hours(1);

/// How many records of failed purchases are forgotten at a time: each is a commit.
const FORGOTTEN_MAX: usize = 50;

/// How long the store's word that we lead holds: a thousand purchases at once ask it once. Far below
/// `LEASE`, so that nobody else leads before it is asked again.
const LEADS_FOR: Duration = Duration::from_secs(1);

/// What the loop goes by.
#[derive(Clone, Debug)]
pub struct MachineSettings {
    /// How long things may take.
    pub limits: Limits,
    /// How often each provider's machines are compared with our records.
    pub sweep_every: SignedDuration,
    /// How often autoscalers are asked.
    pub autoscale_every: SignedDuration,
    /// How often what a pool's size is judged by is written down, for forecasts and simulations.
    pub sample_every: SignedDuration,
    /// The most that all machines together may cost an hour, in US dollars.
    pub max_hourly_cost: Option<f64>,
    /// What pools may be measured by.
    pub metrics: MetricsAccess,
    /// Whether pools leave recovery, once their machines are known, without anybody having confirmed what they
    /// would do.
    pub recover_automatically: bool,
}

impl Default for MachineSettings {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            sweep_every: SignedDuration::from_mins(2),
            autoscale_every: SignedDuration::from_secs(30),
            sample_every: SignedDuration::from_mins(5),
            max_hourly_cost: None,
            metrics: MetricsAccess::default(),
            recover_automatically: false,
        }
    }
}

/// What is assumed of a provider that does not matter any more.
const NO_ABILITIES: Abilities = Abilities {
    tokens: false,
    tags: false,
    reboot: false,
    console: false,
    spot: false,
    list_lag: SignedDuration::ZERO,
};

/// Providers, by the name in the configuration.
pub(crate) type Clouds = Arc<BTreeMap<String, Arc<dyn Provider>>>;

/// What the loop is given.
#[derive(Clone)]
pub(crate) struct Parts {
    pub(crate) office: Arc<Office>,
    pub(crate) adapters: Adapters,
    pub(crate) board: PulseBoard,
    pub(crate) clouds: Clouds,
    pub(crate) extensions: Arc<Extensions>,
    pub(crate) told: Board,
}

/// Runs until the process ends.
pub(crate) async fn run(parts: Parts, beats: Arc<Beats>, holder: String) -> Result<(), Error> {
    loop {
        let fence = lead(&parts.office, NAME, &holder, &beats).await;
        info!(epoch = fence.epoch, "tending machines");
        let (office, f) = (parts.office.clone(), fence.clone());
        tokio::select! {
            biased;
            () = tend(parts.clone(), fence, beats.clone(), &holder) => {}
            () = keep_lease(&office, NAME, &holder, &f) => {}
        }
        warn!("another process tends machines now");
    }
}

/// Works until a commit is fenced off. Dropping it drops the jobs that are under way.
async fn tend(parts: Parts, fence: Fence, beats: Arc<Beats>, holder: &str) {
    first_pool(&parts.office, &beats).await;
    let installation = loop {
        match books::installation(&parts.office, &fence).await {
            Ok(installation) => break installation,
            Err(Error::Store(argosy_store::Error::Fenced)) => return,
            Err(error) => {
                warn!(%error, "could not read which control plane this is");
                tokio::time::sleep(FEED_RETRY).await;
            }
        }
    };
    if let Err(error) = safety::upgrade_pauses(&parts.office, &fence).await {
        warn!(%error, "could not bring the pauses of pools up to date");
    }
    let holder = holder.to_owned();
    let bench = Arc::new(Bench { parts, fence, installation, holder, led_at: Mutex::default() });
    Desk::new(bench, beats).work().await;
}

/// Waits until there is a pool, or was one: before that there is no machine, and no provider is asked for any.
async fn first_pool(office: &Office, beats: &Beats) {
    let mut changes = office.store.subscribe();
    let any = |view: &View| view.installation().is_some() || 0 < view.count(Kind::NodePool);
    while !office.store.read(any) {
        beats.beat(NAME, office.clock.now());
        tokio::select! {
            biased;
            changed = changes.changed() => if changed.is_err() { return },
            () = tokio::time::sleep(RENEW_EVERY) => {}
        }
    }
}

/// What jobs need.
pub(crate) struct Bench {
    parts: Parts,
    pub(crate) fence: Fence,
    installation: Uuid,
    holder: String,
    /// When the store last said that we lead, on the monotonic clock.
    led_at: Mutex<Option<Duration>>,
}

impl std::ops::Deref for Bench {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.parts
    }
}

impl Bench {
    fn settings(&self) -> &MachineSettings {
        &self.office.settings.machines
    }

    /// Whether this process still leads, asked of the store itself: what was paused for a minute must not
    /// act on what it knew before (B7).
    async fn leads(&self) -> bool {
        let asked_at = self.office.clock.monotonic();
        let led_at = *self.led_at.lock().unwrap_or_else(PoisonError::into_inner);
        if led_at.is_some_and(|led_at| asked_at.saturating_sub(led_at) < LEADS_FOR) {
            return true;
        }
        match self.office.lease(NAME, &self.holder).await {
            Ok(Some(lease)) if lease.epoch == self.fence.epoch => {
                let mut led_at = self.led_at.lock().unwrap_or_else(PoisonError::into_inner);
                *led_at = Some(asked_at);
                true
            }
            Ok(_) | Err(_) => false,
        }
    }
}

/// What is done at one time only once.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Key {
    /// About one record.
    Record(InstanceId),
    /// The listing of a provider.
    List(String),
    /// What a provider offers.
    Offers(String),
    /// Whether there is room for what a pool wants.
    Room(ResourceId),
    /// What is reported about a pool.
    Report(ResourceId),
    /// A reboot.
    Reboot(InstanceId),
    /// The end of an orphan.
    Reap(String, MachineId),
    /// What a pool's size is judged by.
    Measure(ResourceId),
}

/// What a job came back with.
#[derive(Debug)]
enum Ended {
    /// Nothing that the desk must know; what was found is in the store.
    Well,
    /// It could not be saved.
    Trouble,
    /// Another process leads.
    Fenced,
    /// A provider's machines.
    Listed(Timestamp, Result<Vec<argosy_core::machine::Machine>, Trouble>),
    /// What a provider offers, by region.
    Offers(Vec<(String, Result<Vec<Offer>, Trouble>)>),
    /// Whether there is room, and for what that was asked.
    Room(Vec<Buy>, Result<(), (Buy, Trouble)>),
    /// What a pool's size is judged by.
    Measured(Box<scale::Measured>),
}

/// When to look at what again.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Topic {
    Pool(ResourceId),
    Record(InstanceId),
    List(String),
    Offers(String),
    Scale(ResourceId),
}

/// What the leading process has on its desk.
struct Desk {
    bench: Arc<Bench>,
    beats: Arc<Beats>,
    seen: Revision,
    shelves: BTreeMap<String, Shelf>,
    /// Pools to look at.
    pools: BTreeSet<ResourceId>,
    /// Records to look at.
    records: BTreeSet<InstanceId>,
    alarms: Alarms<Topic>,
    jobs: JoinSet<Ended>,
    keys: HashMap<Id, Key>,
    under_way: HashSet<Key>,
    /// For what there is room, as a provider said a moment ago.
    room: HashMap<ResourceId, Vec<Buy>>,
    /// Pools of which there is news while something is being reported about them.
    unsaid: HashSet<ResourceId>,
    scales: HashMap<ResourceId, scale::Scale>,
    /// When we listened: only then is anybody's absence held against it.
    listened: Listened,
    /// The pauses and breakers that there are.
    stops: Vec<Revision>,
    /// The pools in recovery.
    recovering: BTreeSet<ResourceId>,
    /// Whether silence was excused when they were last looked at.
    excused: bool,
    /// In which incarnation the machines of all providers were listed, or are being.
    incarnation: u32,
    thought: Duration,
    /// When everything of a provider was last looked at.
    resynced_at: HashMap<String, Timestamp>,
    /// A cluster or a pool is new or has another spec: it may be where nobody bought before.
    moved: bool,
    fenced: bool,
}

impl Desk {
    fn new(bench: Arc<Bench>, beats: Arc<Beats>) -> Self {
        let shelves = bench.clouds.iter().map(|(name, cloud)| (name.clone(), Shelf::new(&**cloud)));
        Self {
            shelves: shelves.collect(),
            beats,
            seen: Revision::ZERO,
            pools: BTreeSet::new(),
            records: BTreeSet::new(),
            alarms: Alarms::default(),
            jobs: JoinSet::new(),
            keys: HashMap::new(),
            under_way: HashSet::new(),
            room: HashMap::new(),
            unsaid: HashSet::new(),
            scales: HashMap::new(),
            listened: Listened::new(
                bench.office.clock.now(),
                bench.office.settings.nodes.fleet.amnesty,
            ),
            stops: Vec::new(),
            recovering: BTreeSet::new(),
            excused: false,
            incarnation: 0,
            thought: Duration::ZERO,
            resynced_at: HashMap::new(),
            moved: false,
            fenced: false,
            bench,
        }
    }

    async fn work(mut self) {
        let mut changes = self.bench.office.store.subscribe();
        let mut beat = tokio::time::interval(RENEW_EVERY);
        self.look_at_everything();
        self.incarnation = self.bench.office.store.read(incarnation);
        for name in self.shelves.keys().cloned().collect::<Vec<_>>() {
            self.list(name.clone());
            self.ask_offers(name);
        }
        while !self.fenced {
            self.think().await;
            tokio::select! {
                biased;
                _ = beat.tick() => self.beats.beat(NAME, self.bench.office.clock.now()),
                () = self.alarms.ring(self.bench.office.clock) => self.ring(),
                Some(ended) = self.jobs.join_next_with_id() => self.ended(ended).await,
                changed = changes.changed() => {
                    if changed.is_err() {
                        return;
                    }
                    self.follow().await;
                    self.listen();
                    self.mind_stops();
                    self.mind_recovery();
                }
            }
            // What came in the meantime is taken along, so that a thousand registrations are not a thousand
            // plans of one pool.
            while let Some(ended) = self.jobs.try_join_next_with_id() {
                self.ended(ended).await;
            }
        }
    }

    /// Looks at all pools and records that may be concerned, then rests.
    async fn think(&mut self) {
        if self.pools.is_empty() && self.records.is_empty() {
            return;
        }
        let clock = self.bench.office.clock;
        let began = clock.monotonic();
        self.beats.beat(NAME, clock.now());
        self.listen();
        if std::mem::take(&mut self.moved) {
            self.ask_new_places();
        }
        for id in std::mem::take(&mut self.records) {
            self.tend(&id);
        }
        let mut planned = 0;
        for id in std::mem::take(&mut self.pools) {
            // Here as well: with a store that is away, looking at many takes long, and is no hang.
            self.beats.beat(NAME, clock.now());
            planned += self.look_at(id).await;
        }
        self.thought = clock.monotonic().saturating_sub(began);
        let due = self.thought.saturating_mul(REST).max(REST_PER_RECORD.saturating_mul(planned));
        let rest = LOOKS_APART.max(due).min(REST_MAX);
        tokio::time::sleep(rest).await;
    }

    /// Notes whether silence is excused. Its end is a commit, and so is noticed at once.
    fn listen(&mut self) {
        let office = &self.bench.office;
        let excused = office.store.read(|view| view.outlook().is_some());
        self.listened.note(excused, office.clock.now());
    }

    fn look_at_everything(&mut self) {
        let office = &self.bench.office;
        let (seen, pools, records) = office.store.read(|view| {
            let pools = view.resources(Kind::NodePool).map(|pool| pool.value.id);
            // A pool that is gone may have left machines behind that nobody let go of yet.
            let left = view.instances().map(|record| record.value.pool);
            let records = view.instances().map(|record| record.value.id.clone());
            let pools: BTreeSet<_> = pools.chain(left).collect();
            (view.revision(), pools, records.collect::<BTreeSet<_>>())
        });
        (self.seen, self.pools, self.records) = (seen, pools, records);
    }

    /// Remembers what changed.
    async fn follow(&mut self) {
        loop {
            let events = match self.bench.office.store.events(self.seen).await {
                Ok(Ok(events)) => events,
                Ok(Err(_)) => return self.look_at_everything(),
                Err(error) => {
                    warn!(%error, "could not read the feed");
                    tokio::time::sleep(FEED_RETRY).await;
                    continue;
                }
            };
            let Some(last) = events.last() else { return };
            self.seen = last.revision;
            for event in &events {
                self.touch(event);
            }
        }
    }

    /// Which pools and records an event is about.
    fn touch(&mut self, event: &Event) {
        for change in &event.resources {
            let Some(after) = &change.after else {
                self.pools.insert(change.id);
                continue;
            };
            let before = change.before.as_ref().map(|before| before.value.generation);
            self.moved |= before != Some(after.value.generation);
            let same = |before: &Stored<Resource>| self.is_same(&before.value, &after.value);
            if change.before.as_ref().is_some_and(same) {
                continue;
            }
            match after.value.kind {
                Kind::NodePool => _ = self.pools.insert(change.id),
                Kind::Cluster => {
                    let id = change.id;
                    let children = self.bench.office.store.read(|view| {
                        view.children(id).map(|child| child.value.id).collect::<Vec<_>>()
                    });
                    self.pools.extend(children);
                }
            }
        }
        for change in &event.instances {
            let record = change.after.as_ref().or(change.before.as_ref());
            let Some(record) = record.map(|record| &record.value) else { continue };
            self.records.insert(record.id.clone());
            // A returned machine that is forgotten was in no plan. Of failed purchases there may be more to forget.
            let forgotten = change.after.is_none();
            if !(forgotten && matches!(record.state, State::Terminated { .. })) {
                self.pools.insert(record.pool);
            }
        }
        self.pools.extend(&event.pool_books);
        for name in &event.providers {
            self.look_at_provider(name, true);
        }
        for change in &event.instances {
            self.observe_instance(change);
        }
        // A node that has yet to do what it was told by ourselves is told nothing else: whoever waits for that is
        // looked at when it ends. What a test found is news while it runs, too.
        let waited_for = |command: &Command| {
            command.kind == CommandKind::RunDiagnostic
                || (command.by == SELF && command.state.is_done())
        };
        let commands = event.commands.iter().filter_map(|change| change.after.as_ref());
        for command in commands.filter(|command| waited_for(&command.value)) {
            let node = command.value.node.as_str();
            let pool = |view: &View| view.instance(node).map(|record| record.value.pool);
            self.pools.extend(self.bench.office.store.read(pool));
        }
        for change in &event.nodes {
            self.observe(change);
            let record = self.bench.office.store.read(|view| {
                view.instance(&change.id).map(|record| (record.value.pool, record.value.id.clone()))
            });
            if let Some((pool, record)) = record {
                self.pools.insert(pool);
                self.records.insert(record);
            }
        }
    }

    /// Whether a resource is to us what it was: what other adapters report, and how ours is doing, is not ours.
    fn is_same(&self, before: &Resource, after: &Resource) -> bool {
        let adapters = self.bench.office.adapters(after.kind);
        let ours = adapters.iter().find(|spec| spec.is_loop());
        let turn = |of: &Resource| ours.map(|spec| is_turn(of, spec, adapters));
        let end = |of: &Resource| (of.deletion.clone(), of.without_drain);
        (before.generation, end(before)) == (after.generation, end(after))
            && (&before.spec, &before.labels) == (&after.spec, &after.labels)
            && turn(before) == turn(after)
    }

    /// Tells whoever wants to know that a node turned bad.
    fn observe(&self, change: &DocumentChange<Node>) {
        let Some(after) = &change.after else { return };
        let was_bad = change.before.as_ref().is_some_and(|before| before.value.is_bad());
        if after.value.is_bad() && !was_bad {
            self.bench.extensions.observer.node_unhealthy(&after.value);
        }
    }

    /// Tells whoever wants to know that a machine could not be bought, or that its node never came.
    fn observe_instance(&self, change: &DocumentChange<Instance>) {
        let Some(after) = change.after.as_ref().map(|after| &after.value) else { return };
        let before = change.before.as_ref().map(|before| &before.value.state);
        let is_stale = |state: &State| match state {
            State::Terminating(leaving) => leaving.reason == Reason::Stale,
            State::Failed { failure, .. } => failure.reason == Failure::REGISTRATION_TIMEOUT,
            State::Provisioning(_)
            | State::AwaitingNode { .. }
            | State::Running { .. }
            | State::Terminated { .. } => false,
        };
        let was_stale = before.is_some_and(is_stale);
        let was_over = before.is_some_and(State::is_over);
        let observer = &self.bench.extensions.observer;
        if is_stale(&after.state) {
            if !was_stale {
                observer.instance_stale(after);
            }
        } else if matches!(after.state, State::Failed { .. }) && !was_over {
            observer.instance_failed(after);
        }
    }

    /// Looks at every pool when a pause or a breaker appeared or went: no plan is what it was.
    fn mind_stops(&mut self) {
        let (stops, pools) = self.bench.office.store.read(|view| {
            let pauses = view.pauses().map(|pause| pause.revision);
            let stops: Vec<Revision> =
                pauses.chain(view.breakers().map(|breaker| breaker.revision)).collect();
            let news = stops != self.stops;
            let pools = view.resources(Kind::NodePool).filter(|_| news).map(|pool| pool.value.id);
            (stops, pools.collect::<Vec<_>>())
        });
        self.stops = stops;
        self.pools.extend(pools);
    }

    /// A new incarnation lists every provider anew, for its records are other ones; and a pool that leaves recovery
    /// is looked at, with all that waited in it.
    fn mind_recovery(&mut self) {
        let (number, excused, recovering) = self.bench.office.store.read(|view| {
            let pools = view.recoveries().map(|recovery| recovery.value.pool);
            (incarnation(view), view.outlook().is_some(), pools.collect::<BTreeSet<_>>())
        });
        if number != self.incarnation {
            self.incarnation = number;
            for name in self.shelves.keys().cloned().collect::<Vec<_>>() {
                self.shelves.get_mut(&name).into_iter().for_each(|shelf| shelf.compared = false);
                self.list(name);
            }
            self.look_at_everything();
        }
        // They wait for nodes to connect, and the excuse says when they have.
        if excused != self.excused {
            self.excused = excused;
            self.pools.extend(&recovering);
        }
        let moved: Vec<ResourceId> =
            recovering.symmetric_difference(&self.recovering).copied().collect();
        self.recovering = recovering;
        self.bench.office.store.read(|view| {
            let records = moved.iter().flat_map(|pool| view.instances_of(*pool));
            self.records.extend(records.map(|record| record.value.id.clone()));
        });
        self.pools.extend(moved);
    }

    fn ring(&mut self) {
        let now = self.bench.office.clock.now();
        while let Some(topic) = self.alarms.due(now) {
            match topic {
                Topic::Pool(id) => _ = self.pools.insert(id),
                Topic::Record(id) => _ = self.records.insert(id),
                Topic::List(name) => self.list(name),
                Topic::Offers(name) => self.ask_offers(name),
                Topic::Scale(id) => self.measure(id, now),
            }
        }
    }

    /// Starts a job, unless one like it is under way.
    fn start(&mut self, key: Key, job: impl Future<Output = Ended> + Send + 'static) {
        if self.under_way.insert(key.clone()) {
            let handle = self.jobs.spawn(job);
            self.keys.insert(handle.id(), key);
        }
    }

    async fn ended(&mut self, ended: Result<(Id, Ended), JoinError>) {
        let (task, ended) = match ended {
            Ok(ended) => ended,
            Err(death) => {
                self.bench.office.stats.machine_alarms.raise(MachineAlarm::Died);
                error!(%death, "a job about machines died");
                (death.id(), Ended::Trouble)
            }
        };
        let Some(key) = self.keys.remove(&task) else { return };
        self.under_way.remove(&key);
        let now = self.bench.office.clock.now();
        let soon = now.checked_add(AFTER_TROUBLE).ok();
        match (key, ended) {
            (_, Ended::Fenced) => self.fenced = true,
            (Key::List(name), Ended::Listed(began_at, listing)) => {
                self.listed(name, began_at, listing).await;
            }
            (Key::Offers(name), Ended::Offers(offers)) => self.offered(name, offers, now),
            (Key::Room(pool), Ended::Room(asked, answer)) => {
                self.room_for(pool, asked, answer).await;
            }
            (Key::Measure(pool), Ended::Measured(measured)) => self.scale(pool, *measured).await,
            (Key::Record(id) | Key::Reboot(id), Ended::Trouble) => {
                self.alarms.set(&Topic::Record(id), soon);
            }
            // It may have something else to do by now.
            (Key::Record(id) | Key::Reboot(id), _) => _ = self.records.insert(id),
            (Key::Report(id) | Key::Room(id), Ended::Trouble) => {
                self.alarms.set(&Topic::Pool(id), soon);
            }
            (Key::List(name), _) => self.alarms.set(&Topic::List(name), soon),
            (Key::Offers(name), _) => self.alarms.set(&Topic::Offers(name), soon),
            (Key::Measure(id), _) => self.alarms.set(&Topic::Scale(id), soon),
            // What was to be said meanwhile is said now.
            (Key::Report(id), _) if self.unsaid.remove(&id) => _ = self.pools.insert(id),
            (Key::Room(_) | Key::Report(_) | Key::Reap(..), _) => {}
        }
    }

    /// Does what is due about one record.
    fn tend(&mut self, id: &InstanceId) {
        if self.under_way.contains(&Key::Record(id.clone())) {
            // It is looked at again when that ends.
            return;
        }
        let office = &self.bench.office;
        let found = office.store.read(|view| {
            let record = view.instance(id.as_str())?.value.clone();
            let registered =
                view.node(id.as_str()).is_some_and(|node| node.value.tenant == record.tenant);
            Some((record, registered))
        });
        let topic = Topic::Record(id.clone());
        let Some((record, registered)) = found else { return self.alarms.set(&topic, None) };
        if record.state.is_over() {
            return self.tend_over(record);
        }
        let Some(shelf) = self.shelves.get(&record.order.provider) else {
            // The server refuses to start like this; the configuration may have changed under a takeover.
            self.bench.office.stats.machine_alarms.raise(MachineAlarm::Unconfigured);
            warn!(instance = %id, provider = record.order.provider, "its provider is not configured");
            return self.alarms.set(&topic, None);
        };
        let now = office.clock.now();
        if registered && record.registered(&node_id(&record), now).is_some() {
            let (bench, key) = (self.bench.clone(), Key::Record(id.clone()));
            return self.start(key, job::registered(bench, record));
        }
        if record.accompanied(registered, now).is_some() {
            let (bench, key) = (self.bench.clone(), Key::Record(id.clone()));
            return self
                .start(key, async move { job::settle(books::accompanied(&bench, &record).await) });
        }
        let recovering = office.store.read(|view| recovery::held(view, record.pool).is_some());
        // Before our records are known to be true nothing is done by them.
        let limits = &self.bench.settings().limits;
        let due = next(&record, &shelf.abilities, limits, &self.listened, now);
        let may_leave = || office.store.read(|view| permit(view, &record, Reason::Stale).is_ok());
        let wake = match due {
            Next::Wait(at) => Some(at),
            Next::Stale if shelf.compared && !may_leave() => now.checked_add(HELD_FOR).ok(),
            Next::Nothing => None,
            // It is looked at again when its pool has left recovery.
            Next::Call | Next::Terminate | Next::Stale if recovering => None,
            Next::Look if !shelf.compared => None,
            Next::Call | Next::Terminate | Next::Stale | Next::Alarm if !shelf.compared => None,
            Next::Call
            | Next::Look
            | Next::Terminate
            | Next::Stale
            | Next::Alarm
            | Next::Forget => {
                let work =
                    job::Work { record, due, guards: shelf.guards(), slots: shelf.slots.clone() };
                self.start(Key::Record(id.clone()), job::run(self.bench.clone(), work));
                None
            }
        };
        self.alarms.set(&topic, wake);
    }

    /// Forgets a record that has been over for long enough, whether or not its provider is still there.
    fn tend_over(&mut self, record: Arc<Instance>) {
        let (id, now) = (record.id.clone(), self.bench.office.clock.now());
        let wake = match next(
            &record,
            &NO_ABILITIES,
            &self.bench.settings().limits,
            &self.listened,
            now,
        ) {
            Next::Forget => {
                let bench = self.bench.clone();
                self.start(Key::Record(id.clone()), async move {
                    job::settle(books::forget(&bench, &record).await)
                });
                None
            }
            Next::Wait(at) => Some(at),
            Next::Call
            | Next::Look
            | Next::Terminate
            | Next::Nothing
            | Next::Stale
            | Next::Alarm => None,
        };
        self.alarms.set(&Topic::Record(id), wake);
    }

    /// Plans one pool, and does it. Says how many records it has.
    async fn look_at(&mut self, id: ResourceId) -> u32 {
        let Some(scene) = Scene::of(&self.bench, id, &self.listened) else {
            self.forget(id).await;
            return 0;
        };
        let records = u32::try_from(scene.records.len()).unwrap_or(u32::MAX);
        let now = self.bench.office.clock.now();
        if scene.unattended {
            self.alarms.set(&Topic::Pool(id), now.checked_add(AFTER_TROUBLE).ok());
            return records;
        }
        let plan = scene.plan(&self.shelves, &self.bench, now);
        let next = plan.next.into_iter().chain(scene.retry_at()).min();
        self.alarms.set(&Topic::Pool(id), next);
        self.watch_size(&scene, now);
        self.forget_failures(&scene, now);
        let done = match plan.forecast.clone() {
            Some(forecast) => {
                self.report(&scene, &plan);
                recovery::foretold(&self.bench.office, &self.bench.fence, id, &forecast).await
            }
            None => self.carry_out(&scene, plan).await,
        };
        match done {
            Ok(()) => {}
            Err(Error::Store(argosy_store::Error::Fenced)) => self.fenced = true,
            Err(error) => {
                warn!(%error, pool = %id, "could not do what was planned; planning again");
                self.alarms.set(&Topic::Pool(id), now.checked_add(AFTER_TROUBLE).ok());
            }
        }
        records
    }

    /// Forgets failed purchases of a pool of which there are too many.
    fn forget_failures(&mut self, scene: &Scene, now: Timestamp) {
        let records = scene.records.iter().map(|seen| &*seen.record.value);
        // The rest follows: the end of each has us look at the pool again.
        for record in surplus(records, now).into_iter().take(FORGOTTEN_MAX) {
            let (bench, record) = (self.bench.clone(), record.clone());
            self.start(Key::Record(record.id.clone()), async move {
                job::settle(books::forget(&bench, &record).await)
            });
        }
    }

    /// The pool is gone, forced perhaps: nobody wants what was bought for it.
    async fn forget(&mut self, id: ResourceId) {
        let unlisted = self.shelves.iter().find(|(_, shelf)| !shelf.compared);
        let unlisted = unlisted.map(|(name, _)| name.as_str());
        let office = &self.bench.office;
        let forecast = office.store.read(|view| {
            let recovering = view.recovery(id).is_some();
            recovering.then(|| recovery::forecast_of_gone(view, id, unlisted))
        });
        if let Some(forecast) = forecast
            && let Err(error) = recovery::foretold(office, &self.bench.fence, id, &forecast).await
        {
            warn!(%error, pool = %id, "could not write down what would become of a pool's machines");
        }
        let next = match step::abandon(&self.bench, id).await {
            Ok(next) => next,
            Err(Error::Store(argosy_store::Error::Fenced)) => return self.fenced = true,
            Err(error) => {
                warn!(%error, pool = %id, "could not let go of the machines of a pool that is gone");
                let now = self.bench.office.clock.now();
                return self.alarms.set(&Topic::Pool(id), now.checked_add(AFTER_TROUBLE).ok());
            }
        };
        self.alarms.set(&Topic::Pool(id), next);
        self.alarms.set(&Topic::Scale(id), None);
        self.room.remove(&id);
        self.scales.remove(&id);
    }

    async fn carry_out(&mut self, scene: &Scene, plan: Plan) -> Result<(), Error> {
        let reboots = step::take(&self.bench, scene, &plan).await?;
        for (instance, machine, provider) in reboots {
            let key = Key::Reboot(instance.clone());
            self.start(key, job::reboot(self.bench.clone(), instance, machine, provider));
        }
        self.report(scene, &plan);
        self.buy(scene, plan).await
    }

    /// Has the pool's adapter report what is to be said, if that is news.
    fn report(&mut self, scene: &Scene, plan: &Plan) {
        if scene.reports() && report::is_news(&scene.resource.value, &plan.outcome) {
            let (bench, resource) = (self.bench.clone(), scene.resource.value.clone());
            let outcome = plan.outcome.clone();
            let key = Key::Report(resource.id);
            if self.under_way.contains(&key) {
                self.unsaid.insert(resource.id);
            }
            self.start(key, async move {
                job::settle(report::report(&bench, &resource, &outcome).await)
            });
        }
    }

    /// Orders what is missing: asks for room first, and writes the orders down when there is.
    async fn buy(&mut self, scene: &Scene, plan: Plan) -> Result<(), Error> {
        let pool = scene.resource.value.id;
        if plan.buy.is_empty() {
            self.room.remove(&pool);
            return Ok(());
        }
        let same = |one: &Buy, other: &Buy| {
            (one.number, &one.order, &one.replaces) == (other.number, &other.order, &other.replaces)
        };
        let room = self.room.get(&pool);
        let roomy = room.is_some_and(|room| {
            room.len() == plan.buy.len() && room.iter().zip(&plan.buy).all(|(a, b)| same(a, b))
        });
        if !roomy {
            self.start(Key::Room(pool), job::room(&self.bench, plan.buy));
            return Ok(());
        }
        self.room.remove(&pool);
        let price = |order: &Order| {
            let shelf = self.shelves.get(&order.provider)?;
            shelf.price_of(&order.machine_type, &order.region, order.spot)
        };
        if let Some((buy, trouble)) = step::too_dear(&self.bench, &plan.buy, price) {
            return books::no_room(&self.bench, pool, &buy, &trouble).await;
        }
        for record in step::order(&self.bench, scene, &plan).await? {
            self.call(&record);
        }
        Ok(())
    }

    /// Makes the first call of a record that was just written down.
    fn call(&mut self, record: &Arc<Instance>) {
        let Some(shelf) = self.shelves.get(&record.order.provider) else { return };
        let (guards, slots) = (shelf.guards(), shelf.slots.clone());
        let work = job::Work { record: record.clone(), due: Next::Call, guards, slots };
        self.start(Key::Record(record.id.clone()), job::first_call(self.bench.clone(), work));
    }

    async fn room_for(
        &mut self,
        pool: ResourceId,
        asked: Vec<Buy>,
        answer: Result<(), (Buy, Trouble)>,
    ) {
        match answer {
            Ok(()) => _ = self.room.insert(pool, asked),
            Err((buy, trouble)) => {
                let noted = books::no_room(&self.bench, pool, &buy, &trouble).await;
                if let Err(Error::Store(argosy_store::Error::Fenced)) = noted {
                    self.fenced = true;
                }
            }
        }
        self.pools.insert(pool);
    }

    fn list(&mut self, name: String) {
        let Some(cloud) = self.bench.clouds.get(&name).cloned() else { return };
        let clock = self.bench.office.clock;
        self.start(Key::List(name), async move {
            let began_at = clock.now();
            Ended::Listed(began_at, job::in_time(cloud.list()).await)
        });
    }

    async fn listed(
        &mut self,
        name: String,
        began_at: Timestamp,
        listing: Result<Vec<argosy_core::machine::Machine>, Trouble>,
    ) {
        let now = self.bench.office.clock.now();
        let Some(shelf) = self.shelves.get_mut(&name) else { return };
        let wait = match &listing {
            Ok(_) => self.bench.office.settings.machines.sweep_every,
            Err(trouble) => {
                let most = self.bench.office.settings.machines.sweep_every;
                shelf.list_failed(LIST_RETRY, most).max(asked_to_wait(trouble))
            }
        };
        self.alarms.set(&Topic::List(name.clone()), now.checked_add(wait).ok());
        let first = !shelf.compared;
        let saved = match listing {
            Ok(machines) => {
                let saved = books::compare(&self.bench, shelf, &name, machines, began_at).await;
                self.bench.told.note_listed(&name, began_at);
                if saved.is_ok() && first {
                    info!(provider = name, "compared the provider's machines with our records");
                }
                saved
            }
            Err(trouble) => {
                self.bench.office.stats.machine_alarms.raise(MachineAlarm::ListFailed);
                warn!(provider = name, %trouble, "could not list machines");
                books::provider_failed(&self.bench, &name, &trouble).await.map(|()| Vec::new())
            }
        };
        match saved {
            Ok(reap) => {
                // What it changed is in the feed; here is what waited for it.
                let resynced_at = self.resynced_at.get(&name).copied();
                let long_ago = |at: Timestamp| RESYNC_EVERY <= now.duration_since(at);
                let everything = first || resynced_at.is_none_or(long_ago);
                if everything {
                    self.resynced_at.insert(name.clone(), now);
                }
                self.look_at_provider(&name, everything);
                for orphan in reap {
                    self.reap(&name, orphan);
                }
            }
            Err(Error::Store(argosy_store::Error::Fenced)) => self.fenced = true,
            Err(error) => {
                warn!(%error, provider = name, "could not write down what a listing says");
                self.alarms.set(&Topic::List(name), now.checked_add(AFTER_TROUBLE).ok());
            }
        }
    }

    /// Looks at everything of a provider, or at what is not simply running.
    fn look_at_provider(&mut self, name: &str, everything: bool) {
        let office = self.bench.office.clone();
        office.store.read(|view| {
            let live = view.instances().map(|record| &record.value).filter(|record| {
                let settled = record.state.is_over()
                    || (!everything && matches!(record.state, State::Running { .. }));
                record.order.provider == name && !settled
            });
            for record in live {
                self.records.insert(record.id.clone());
                self.pools.insert(record.pool);
            }
            let pools = view.resources(Kind::NodePool).filter(|_| everything);
            self.pools.extend(pools.map(|pool| pool.value.id));
        });
    }

    fn reap(&mut self, name: &str, orphan: Orphan) {
        let Some(shelf) = self.shelves.get(name) else { return };
        let Some(cloud) = self.bench.clouds.get(name).cloned() else { return };
        let key = Key::Reap(name.to_owned(), orphan.machine.clone());
        let job = job::reap(self.bench.clone(), cloud, orphan, shelf.guards());
        self.start(key, job);
    }

    /// Asks for what is sold where nobody bought before: what it costs must be known before the next look in
    /// ten minutes.
    fn ask_new_places(&mut self) {
        let is_new = |(name, shelf): (&String, &Shelf)| {
            let regions = picture::regions(&self.bench, name);
            regions.iter().any(|region| !shelf.knows(region)).then(|| name.clone())
        };
        let asked: Vec<String> = self.shelves.iter().filter_map(is_new).collect();
        for name in asked {
            self.ask_offers(name);
        }
    }

    fn ask_offers(&mut self, name: String) {
        let Some(cloud) = self.bench.clouds.get(&name).cloned() else { return };
        let regions = picture::regions(&self.bench, &name);
        self.start(Key::Offers(name), async move {
            let mut offers = Vec::new();
            for region in regions {
                let found = job::in_time(cloud.offers(&region)).await;
                offers.push((region, found));
            }
            Ended::Offers(offers)
        });
    }

    fn offered(
        &mut self,
        name: String,
        offers: Vec<(String, Result<Vec<Offer>, Trouble>)>,
        now: Timestamp,
    ) {
        let Some(shelf) = self.shelves.get_mut(&name) else { return };
        let failed = offers.iter().any(|(_, offers)| offers.is_err());
        let news = shelf.offered(offers);
        let wait = if failed { OFFERS_RETRY } else { OFFERS_EVERY };
        self.alarms.set(&Topic::Offers(name.clone()), now.checked_add(wait).ok());
        if news {
            self.look_at_provider(&name, true);
        }
    }
}

/// How long a provider wants us to wait (G5); not so long that nobody would look for its machines.
fn asked_to_wait(trouble: &Trouble) -> SignedDuration {
    let Trouble::Throttled { retry_after_s: Some(seconds), .. } = trouble else {
        return SignedDuration::ZERO;
    };
    SignedDuration::from_secs(i64::from(*seconds)).min(WAIT_MAX)
}

/// Which incarnation the store is in.
fn incarnation(view: &View) -> u32 {
    view.installation().map_or(0, |found| found.value.incarnation.number)
}

/// The node that registers from a machine has the machine's name.
fn node_id(record: &Instance) -> argosy_core::node::NodeId {
    argosy_core::node::NodeId::parse(record.id.as_str()).expect("a DNS label can be a node's id")
}
