//! Drives reconciliation: a commit wakes what depends on it; timers catch the rest.
//!
//! What a newcomer gets wrong: everything this loop remembers may be lost. It is made anew from the
//! store when a process starts to lead.

use crate::Error;
use crate::loops::run::{Ended, Hands, Job};
use crate::loops::{Alarms, Amendment, Beats, RENEW_EVERY, amend, keep_lease, lead};
use crate::office::{Office, system};
use crate::resource::{bury, delete_children};
use argosy_core::adapter::{AdapterName, Runner};
use argosy_core::id::ResourceId;
use argosy_core::resource::{Kind, Resource, Stamp};
use argosy_core::sentinel::{Attempts, plan};
use argosy_store::engine::Fence;
use argosy_store::view::{Event, View};
use argosy_store::{Revision, Txn};
use futures_util::StreamExt;
use jiff::{SignedDuration, Timestamp};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::task::{AbortHandle, Id, JoinError, JoinSet};
use tracing::{error, info, warn};

const NAME: &str = "sentinel";

/// How many runs may be under way at once. Most wait for a cloud, so it may be many; each holds a
/// connection to it, so not without end.
const RUNS_MAX: usize = 256;

/// After so many panics in a row an adapter is left alone with a resource until it changes.
const PANICS_MAX: u32 = 5;

/// How many resources are brought up to date at once: enough to share commits.
const REFRESHES_MAX: usize = 64;

/// When to read the feed again after it could not be read.
const FEED_RETRY: Duration = Duration::from_secs(1);

/// When to look again at a resource for which something could not be saved.
const AFTER_TROUBLE: SignedDuration = SignedDuration::from_secs(1);

/// Runs until the process ends.
pub(crate) async fn run(
    hands: impl Fn(Fence) -> Hands,
    office: Arc<Office>,
    beats: Arc<Beats>,
    holder: String,
) -> Result<(), Error> {
    loop {
        let fence = lead(&office, NAME, &holder, &beats).await;
        info!(epoch = fence.epoch, "reconciling");
        let desk = Desk::new(hands(fence.clone()), office.clone(), beats.clone());
        // Apart from the work, so that a desk full of it does not cost us the lease.
        tokio::select! {
            biased;
            () = desk.work() => {}
            () = keep_lease(&office, NAME, &holder, &fence) => {}
        }
        warn!("another process reconciles now");
    }
}

/// What the leading process has on its desk.
struct Desk {
    office: Arc<Office>,
    beats: Arc<Beats>,
    hands: Hands,
    seen: Revision,
    attempts: HashMap<ResourceId, BTreeMap<AdapterName, Attempts>>,
    panics: HashMap<ResourceId, BTreeMap<AdapterName, u32>>,
    alarms: Alarms<ResourceId>,
    runs: JoinSet<Ended>,
    jobs: HashMap<Id, Job>,
    under_way: HashMap<(ResourceId, AdapterName), AbortHandle>,
    slots: Arc<Semaphore>,
    fenced: bool,
}

impl Desk {
    fn new(hands: Hands, office: Arc<Office>, beats: Arc<Beats>) -> Self {
        Self {
            office,
            beats,
            hands,
            seen: Revision::ZERO,
            attempts: HashMap::new(),
            panics: HashMap::new(),
            alarms: Alarms::default(),
            runs: JoinSet::new(),
            jobs: HashMap::new(),
            under_way: HashMap::new(),
            slots: Arc::new(Semaphore::new(RUNS_MAX)),
            fenced: false,
        }
    }

    /// Works until a commit is fenced off. Dropping it drops the runs that are under way.
    async fn work(mut self) {
        let mut changes = self.office.store.subscribe();
        let mut beat = tokio::time::interval(RENEW_EVERY);
        self.look_at_everything().await;
        while !self.fenced {
            tokio::select! {
                biased;
                _ = beat.tick() => self.beats.beat(NAME, self.office.clock.now()),
                () = self.alarms.ring(self.office.clock) => self.ring().await,
                Some(ended) = self.runs.join_next_with_id() => self.ended(ended).await,
                changed = changes.changed() => {
                    if changed.is_err() {
                        return;
                    }
                    self.follow().await;
                }
            }
        }
    }

    /// A first look at everything there is.
    async fn look_at_everything(&mut self) {
        let ids = self.office.store.read(|view| {
            self.seen = view.revision();
            let all = Kind::ALL.into_iter().flat_map(|kind| view.resources(kind));
            all.map(|resource| resource.value.id).collect::<Vec<_>>()
        });
        // Together, because after a change of the configuration each of them is a commit.
        let refreshes = futures_util::stream::iter(ids.iter().copied());
        refreshes.for_each_concurrent(REFRESHES_MAX, |id| self.refresh(id)).await;
        for id in ids {
            self.look_at(id).await;
        }
    }

    /// Looks at what changed.
    async fn follow(&mut self) {
        loop {
            let events = match self.office.store.events(self.seen).await {
                Ok(Ok(events)) => events,
                Ok(Err(_)) => return self.look_at_everything().await,
                Err(error) => {
                    warn!(%error, "could not read the feed");
                    tokio::time::sleep(FEED_RETRY).await;
                    continue;
                }
            };
            let Some(last) = events.last() else { return };
            self.seen = last.revision;
            let touched: BTreeSet<_> = events.iter().flat_map(|event| touched(event)).collect();
            for id in touched {
                self.look_at(id).await;
            }
        }
    }

    /// Looks at everything whose time has come.
    async fn ring(&mut self) {
        let now = self.office.clock.now();
        while let Some(id) = self.alarms.due(now) {
            self.look_at(id).await;
        }
    }

    /// Decides about one resource, and acts.
    async fn look_at(&mut self, id: ResourceId) {
        let now = self.office.clock.now();
        // Here as well: with a store that is away, looking at many takes long, and is no hang.
        self.beats.beat(NAME, now);
        let found = self.office.store.read(|view| {
            let resource = view.resource(id)?.value.clone();
            let missed = resource.deletion.is_some()
                && view.children(id).any(|child| child.value.deletion.is_none());
            Some((resource, view.has_children(id), missed))
        });
        let Some((resource, children, missed)) = found else { return self.forget(id) };
        self.drop_outdated(&resource);
        let adapters = self.office.adapters(resource.kind);
        let none = BTreeMap::new();
        let attempts = self.attempts.get(&id).unwrap_or(&none);
        let rules = &self.office.settings.rules;
        let plan = plan(&resource, adapters, children, attempts, now, rules);
        self.alarms.set(&id, plan.wake_at);
        for turn in plan.run {
            self.start(&resource, &turn.adapter, turn.reason, now);
        }
        let saved = if missed {
            self.delete_missed(id).await
        } else if plan.finalize {
            self.finalize(id).await
        } else if !plan.stalled.is_empty() {
            self.mark_stalled(&resource, &plan.stalled).await
        } else {
            Ok(())
        };
        match saved {
            Ok(()) => {}
            Err(Error::Store(argosy_store::Error::Fenced)) => self.fenced = true,
            Err(error) => {
                warn!(%error, resource = %id, "could not save what was decided; trying again");
                self.alarms.set(&id, now.checked_add(AFTER_TROUBLE).ok());
            }
        }
    }

    /// Ends the runs for an older generation: they work on what nobody wants any more.
    fn drop_outdated(&mut self, resource: &Resource) {
        let Some(attempts) = self.attempts.get_mut(&resource.id) else { return };
        attempts.retain(|name, attempt| {
            let current = attempt.generation == resource.generation;
            if !current && let Some(old) = self.under_way.remove(&(resource.id, name.clone())) {
                old.abort();
            }
            current
        });
        if attempts.is_empty() {
            // What drove an adapter to panic may have changed as well.
            self.panics.remove(&resource.id);
        }
    }

    fn start(&mut self, resource: &Resource, name: &AdapterName, reason: &str, now: Timestamp) {
        let adapters = self.office.adapters(resource.kind);
        let Some(spec) = adapters.iter().find(|spec| spec.name == *name) else { return };
        let id = resource.id;
        let panics = self.panics.get(&id).and_then(|of| of.get(name)).copied().unwrap_or(0);
        let attempts = self.attempts.entry(id).or_default();
        let past = attempts.get(name);
        if PANICS_MAX <= panics {
            return;
        }
        let failures = past.map_or(0, |past| past.failures);
        let generation = resource.generation;
        let attempt = Attempts { generation, running: true, started: now, failures };
        attempts.insert(name.clone(), attempt);
        info!(resource = %id, adapter = %name, generation, reason, "adapter runs");
        let job = Job { id, adapter: name.clone(), generation, deadline: spec.deadline };
        let (hands, run, slots) = (self.hands.clone(), job.clone(), self.slots.clone());
        let runner = spec.runner.clone();
        let handle = self.runs.spawn(async move {
            let _slot = slots.acquire().await;
            match runner {
                Runner::BuiltIn => hands.built_in(&run).await,
                Runner::Webhook { url } => hands.webhook(&run, &url, failures).await,
                Runner::External => Ended::Moot,
            }
        });
        self.jobs.insert(handle.id(), job);
        self.under_way.insert((id, name.clone()), handle);
    }

    async fn ended(&mut self, ended: Result<(Id, Ended), JoinError>) {
        let (task, ended, panicked) = match ended {
            Ok((task, ended)) => (task, ended, false),
            Err(death) => (death.id(), Ended::Failed, death.is_panic()),
        };
        let Some(job) = self.jobs.remove(&task) else { return };
        let key = (job.id, job.adapter.clone());
        if self.under_way.get(&key).is_none_or(|current| current.id() != task) {
            return;
        }
        self.under_way.remove(&key);
        if ended == Ended::Fenced {
            self.fenced = true;
            return;
        }
        if let Some(attempt) =
            self.attempts.get_mut(&job.id).and_then(|attempts| attempts.get_mut(&job.adapter))
        {
            attempt.running = false;
            attempt.failures = match ended {
                Ended::Failed => attempt.failures.saturating_add(1),
                Ended::Well | Ended::Moot | Ended::Fenced => 0,
            };
        }
        if ended == Ended::Well
            && let Some(panics) = self.panics.get_mut(&job.id)
        {
            panics.remove(&job.adapter);
        }
        if panicked {
            let count =
                self.panics.entry(job.id).or_default().entry(job.adapter.clone()).or_default();
            *count += 1;
            let count = *count;
            error!(resource = %job.id, adapter = %job.adapter, count, "an adapter panicked");
            self.hands.report_panic(&job, count, PANICS_MAX <= count).await;
        }
        self.look_at(job.id).await;
    }

    fn forget(&mut self, id: ResourceId) {
        self.alarms.set(&id, None);
        self.panics.remove(&id);
        for name in self.attempts.remove(&id).unwrap_or_default().into_keys() {
            if let Some(run) = self.under_way.remove(&(id, name)) {
                run.abort();
            }
        }
    }

    /// Deletes the children that the delete of their owner has missed.
    async fn delete_missed(&self, id: ResourceId) -> Result<(), Error> {
        let caller = system(NAME);
        let decide = |view: &View, now: Timestamp| {
            let owner = view.resource(id);
            let deleting = owner.and_then(|it| Some((&it.value, it.value.deletion.as_ref()?)));
            let Some((owner, deletion)) = deleting else { return Ok((None, ())) };
            let stamp = Stamp { at: now, by: deletion.by.clone() };
            let mut txn = Txn::at(now);
            txn.fence(self.hands.fence.clone());
            let of = (id, owner.without_drain);
            let marked = delete_children(&mut txn, &self.office, view, of, &stamp, &caller)?;
            Ok((marked.then_some(txn), ()))
        };
        self.office.decide(decide).await.map(|_| ())
    }

    /// Removes the record of a resource that is cleaned up.
    async fn finalize(&self, id: ResourceId) -> Result<(), Error> {
        let caller = system(NAME);
        let decide = |view: &View, now: Timestamp| {
            let Some(gone) = view.resource(id) else { return Ok((None, ())) };
            let none = BTreeMap::new();
            let adapters = self.office.adapters(gone.value.kind);
            let children = view.has_children(id);
            let rules = &self.office.settings.rules;
            if !plan(&gone.value, adapters, children, &none, now, rules).finalize {
                return Ok((None, ()));
            }
            let mut txn = Txn::at(now);
            txn.fence(self.hands.fence.clone());
            bury(&mut txn, view, "finalize", gone, None, &caller, now)?;
            Ok((Some(txn), ()))
        };
        self.office.decide(decide).await.map(|_| info!(resource = %id, "deleted"))
    }

    /// Says that adapters let their deadlines pass.
    async fn mark_stalled(&self, of: &Resource, stalled: &[AdapterName]) -> Result<(), Error> {
        for adapter in stalled {
            warn!(resource = %of.id, %adapter, "adapter let its deadline pass");
        }
        let mark = |resource: &mut Resource, _: &mut Txn, now: Timestamp| {
            for adapter in stalled {
                resource.stalled.entry(adapter.clone()).or_insert(now);
            }
        };
        let amendment = Amendment { id: of.id, action: "stall", generation: Some(of.generation) };
        amend(&self.office, &self.hands.fence, amendment, mark).await
    }

    /// Brings the conditions up to date with the configuration.
    async fn refresh(&self, id: ResourceId) {
        let amendment = Amendment { id, action: "refresh", generation: None };
        let nothing = |_: &mut Resource, _: &mut Txn, _: Timestamp| {};
        if let Err(error) = amend(&self.office, &self.hands.fence, amendment, nothing).await {
            warn!(%error, resource = %id, "could not bring conditions up to date");
        }
    }
}

/// The resources an event is about: those that changed, and the owner of one that went.
fn touched(event: &Event) -> impl Iterator<Item = ResourceId> {
    event.resources.iter().flat_map(|change| {
        let gone = change.tombstone.as_ref();
        [Some(change.id), gone.and_then(|gone| gone.owner)].into_iter().flatten()
    })
}
