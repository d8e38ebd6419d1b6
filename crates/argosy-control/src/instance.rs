//! Instances, orphans and providers, as people see them and act on them.
//!
//! What a newcomer gets wrong: nothing here calls a provider. What somebody asks for is written down, and
//! the loop that leads does it.

mod act;
mod recover;

pub(crate) mod board;

mod simulate;

use crate::office::{Office, allow_verb};
use crate::provider::Provider;
use crate::resource::forbidden;
use crate::{Error, Revision, Stored};
use argosy_core::access::{Caller, Decision, Verb, may};
use argosy_core::autoscale::Advice;
use argosy_core::id::ResourceId;
use argosy_core::instance::Instance;
use argosy_core::inventory::{Frozen, Orphan, Paused};
use argosy_core::label::Labels;
use argosy_core::machine::HourlyCost;
use argosy_core::pool::PoolBook;
use argosy_core::resource::{Kind, Resource};
use argosy_core::search::{Filter, Order};
use argosy_store::Store;
use argosy_store::view::View;
use board::Board;
use jiff::Timestamp;
use std::collections::BTreeMap;
use std::sync::Arc;

pub use recover::Recoveries;
pub use simulate::{Simulate, Simulated};

/// The service.
#[derive(Clone)]
pub struct Instances {
    pub(crate) office: Arc<Office>,
    providers: Arc<BTreeMap<String, Arc<dyn Provider>>>,
    pub(crate) board: Board,
}

/// An instance, and what it costs.
#[derive(Clone, Debug)]
pub struct Shown {
    /// The record.
    pub stored: Stored<Instance>,
    /// In US dollars; `None` if it is over, or nobody knows.
    pub cost_per_hour: Option<f64>,
}

impl From<Stored<Instance>> for Shown {
    fn from(stored: Stored<Instance>) -> Self {
        Self { cost_per_hour: stored.value.cost_per_hour(), stored }
    }
}

/// Which instances.
#[derive(Clone, Debug)]
pub struct InstanceQuery {
    /// Only those that match.
    pub filter: Filter<Instance>,
    /// In this order.
    pub order: Order<Instance>,
    /// How many to leave out.
    pub skip: usize,
    /// How many at most.
    pub limit: usize,
}

/// A page of instances.
#[derive(Clone, Debug)]
pub struct InstancePage {
    /// The instances, in order.
    pub instances: Vec<Shown>,
    /// How many match in all.
    pub total: usize,
    /// What all that match cost.
    pub cost: HourlyCost,
    /// What the page was read at: a watch can go on from here.
    pub revision: Revision,
}

/// A provider, as people see it.
#[derive(Clone, Debug, PartialEq)]
pub struct ProviderShown {
    /// Its name in the configuration.
    pub name: String,
    /// False if it is no longer in the configuration, while machines of it are.
    pub configured: bool,
    /// Why nothing is bought there now.
    pub paused: Option<Paused>,
    /// Why its listings are not believed now.
    pub frozen: Option<Frozen>,
    /// How many of the caller's instances are in which state, by its word.
    pub instances: BTreeMap<&'static str, u32>,
    /// How many machines of it are known that no record knows, as far as the caller may see them.
    pub orphans: u32,
    /// What the caller's instances and these orphans cost.
    pub cost: HourlyCost,
    /// When it was last listed whole; `None` in a process that does not lead.
    pub listed_at: Option<Timestamp>,
}

/// Why a pool is as it is.
#[derive(Clone, Debug)]
pub struct Explained {
    /// The node pool.
    pub resource: Stored<Resource>,
    /// What is remembered of it; `None` if nothing happened yet.
    pub book: Option<Stored<PoolBook>>,
    /// Its instances, by number, those that are over at the end.
    pub members: Vec<Shown>,
    /// How many machines carry its tag and are known to no record.
    pub orphans: u32,
    /// What its instances that are not over and these orphans cost.
    pub cost: HourlyCost,
    /// What its autoscaler says now; `None` if it has none, or this process does not lead.
    pub advice: Option<Advice>,
    /// When all of that was so.
    pub at: Timestamp,
}

/// Providers that machines of ours are at and that are not configured, with how many there are: who started like
/// this would lose sight of them (G9). To be asked before the loops are started.
pub fn unprovided(
    store: &Store,
    providers: &BTreeMap<String, Arc<dyn Provider>>,
) -> Vec<(String, usize)> {
    let mut lost: BTreeMap<String, usize> = BTreeMap::new();
    store.read(|view| {
        let live = view.instances().filter(|record| !record.value.state.is_over());
        let named = live.map(|record| &record.value.order.provider);
        let orphans = view.orphans().map(|orphan| &orphan.value.provider);
        for provider in named.chain(orphans).filter(|name| !providers.contains_key(*name)) {
            *lost.entry(provider.clone()).or_default() += 1;
        }
    });
    lost.into_iter().collect()
}

impl Instances {
    pub(crate) fn new(
        office: Arc<Office>,
        providers: Arc<BTreeMap<String, Arc<dyn Provider>>>,
    ) -> Self {
        Self { office, providers, board: Board::default() }
    }

    /// One instance, by its id or by what its provider calls the machine.
    ///
    /// # Errors
    /// `InstanceNotFound`; `Forbidden` if it is another team's.
    pub fn get(&self, caller: &Caller, id: &str) -> Result<Shown, Error> {
        allow_verb(caller, Verb::Read)?;
        self.office.store.read(|view| self.find(view, caller, id).cloned()).map(Shown::from)
    }

    /// Instances the caller may see.
    ///
    /// # Errors
    /// `Forbidden`.
    pub fn list(&self, caller: &Caller, query: &InstanceQuery) -> Result<InstancePage, Error> {
        let (revision, mut found) = self.seen_by(caller)?;
        found.retain(|instance| query.filter.matches(&instance.value));
        let total = found.len();
        let live = found.iter().filter(|it| !it.value.state.is_over());
        let cost = live.map(|it| it.value.cost_per_hour()).collect();
        let compare =
            |a: &Stored<Instance>, b: &Stored<Instance>| query.order.compare(&a.value, &b.value);
        let end = query.skip.saturating_add(query.limit);
        // All of it is looked at, only the beginning is put in order.
        if end < found.len() {
            found.select_nth_unstable_by(end, compare);
            found.truncate(end);
        }
        found.sort_unstable_by(compare);
        let instances = found.into_iter().skip(query.skip).map(Shown::from).collect();
        Ok(InstancePage { instances, total, cost, revision })
    }

    /// Calls `look` with every instance the caller may see, by id.
    ///
    /// # Errors
    /// `Forbidden`.
    pub fn each(
        &self,
        caller: &Caller,
        look: &mut dyn FnMut(&Stored<Instance>),
    ) -> Result<Revision, Error> {
        let (revision, found) = self.seen_by(caller)?;
        found.iter().for_each(look);
        Ok(revision)
    }

    /// The labels of a node pool; none if it is gone.
    pub fn labels_of(&self, pool: ResourceId) -> Labels {
        let labels = |view: &View| view.resource(pool).map(|pool| pool.value.labels.clone());
        self.office.store.read(labels).unwrap_or_default()
    }

    /// The instances the caller may see, by id. Commits wait for readers, so that what is done with them is
    /// done afterwards.
    fn seen_by(&self, caller: &Caller) -> Result<(Revision, Vec<Stored<Instance>>), Error> {
        allow_verb(caller, Verb::Read)?;
        Ok(self.office.store.read(|view| {
            let shown =
                |it: &&Stored<Instance>| self.office.shows_instance(view, caller, &it.value);
            (view.revision(), view.instances().filter(shown).cloned().collect())
        }))
    }

    /// The providers: those of the configuration, and those that machines remind us of.
    ///
    /// # Errors
    /// `Forbidden`.
    pub fn providers(&self, caller: &Caller) -> Result<Vec<ProviderShown>, Error> {
        allow_verb(caller, Verb::Read)?;
        let listed = self.board.listed();
        let mut shown: BTreeMap<String, ProviderShown> = BTreeMap::new();
        let empty = |name: &str| ProviderShown {
            name: name.to_owned(),
            configured: self.providers.contains_key(name),
            paused: None,
            frozen: None,
            instances: BTreeMap::new(),
            orphans: 0,
            cost: HourlyCost::default(),
            listed_at: listed.get(name).copied(),
        };
        for name in self.providers.keys() {
            shown.insert(name.clone(), empty(name));
        }
        self.office.store.read(|view| {
            for instance in view.instances().map(|instance| &*instance.value) {
                let name = &instance.order.provider;
                // A provider that is gone matters for as long as something of it may exist.
                let matters = self.providers.contains_key(name) || !instance.state.is_over();
                if !matters || !self.office.shows_instance(view, caller, instance) {
                    continue;
                }
                let provider = shown.entry(name.clone()).or_insert_with(|| empty(name));
                *provider.instances.entry(instance.state.as_str()).or_default() += 1;
                if !instance.state.is_over() {
                    provider.cost.add(instance.cost_per_hour());
                }
            }
            for orphan in view.orphans().map(|orphan| &*orphan.value) {
                if self.shows_orphan(view, caller, orphan) {
                    let name = &orphan.provider;
                    let provider = shown.entry(name.clone()).or_insert_with(|| empty(name));
                    provider.orphans += 1;
                    provider.cost.add(orphan.price_per_hour);
                }
            }
            for book in view.provider_books().map(|book| &*book.value) {
                if let Some(provider) = shown.get_mut(&book.name) {
                    provider.paused.clone_from(&book.paused);
                    provider.frozen.clone_from(&book.frozen);
                }
            }
        });
        Ok(shown.into_values().collect())
    }

    /// The machines that carry our tags and that no record knows, as far as the caller may see them: those
    /// that were bought for a pool it may see, and all that nobody can tell the pool of, for admins.
    ///
    /// # Errors
    /// `Forbidden`.
    pub fn orphans(&self, caller: &Caller) -> Result<Vec<Stored<Orphan>>, Error> {
        allow_verb(caller, Verb::Read)?;
        Ok(self.office.store.read(|view| {
            let shown = |it: &&Stored<Orphan>| self.shows_orphan(view, caller, &it.value);
            view.orphans().filter(shown).cloned().collect()
        }))
    }

    /// Why a pool is as it is.
    ///
    /// # Errors
    /// `NotFound`; `Forbidden` if it is another team's.
    pub fn explain(&self, caller: &Caller, pool: ResourceId) -> Result<Explained, Error> {
        allow_verb(caller, Verb::Read)?;
        let at = self.office.clock.now();
        self.office.store.read(|view| {
            let resource = self.pool(view, caller, Verb::Read, pool)?.clone();
            let mut members: Vec<Shown> =
                view.instances_of(pool).cloned().map(Shown::from).collect();
            members.sort_by_key(|member| {
                let of = &member.stored.value;
                (of.state.is_over(), of.number, of.ordered_at)
            });
            let live = members.iter().filter(|member| !member.stored.value.state.is_over());
            let orphans = view.orphans().map(|orphan| &orphan.value);
            let orphans = orphans.filter(|orphan| orphan.tags.pool == Some(pool));
            let orphans: Vec<Option<f64>> = orphans.map(|orphan| orphan.price_per_hour).collect();
            let prices = live.map(|member| member.cost_per_hour).chain(orphans.iter().copied());
            let cost = prices.collect();
            let orphans = u32::try_from(orphans.len()).unwrap_or(u32::MAX);
            let book = view.pool_book(pool).cloned();
            let advice = book.as_ref().and_then(|book| book.value.advice.clone());
            let advice = advice.map(|(_, advice)| advice);
            Ok(Explained { resource, book, members, orphans, cost, advice, at })
        })
    }

    /// The instance, if the caller may know of it.
    pub(crate) fn find<'v>(
        &self,
        view: &'v View,
        caller: &Caller,
        id: &str,
    ) -> Result<&'v Stored<Instance>, Error> {
        let hidden = || Error::InstanceNotFound(id.to_owned());
        // Of several with one machine, as after a record was lost and adopted again, the one that lives.
        let by_machine = || {
            let theirs = |it: &&Stored<Instance>| it.value.tenant == caller.tenant;
            view.instances_by_machine(id).filter(theirs).min_by_key(|it| it.value.state.is_over())
        };
        let found = view.instance(id).or_else(by_machine);
        let found = found.filter(|it| it.value.tenant == caller.tenant).ok_or_else(hidden)?;
        if self.office.shows_instance(view, caller, &found.value) {
            Ok(found)
        } else {
            let message = "User does not have permission to access this instance";
            Err(Error::Forbidden(message.to_owned()))
        }
    }

    /// The node pool, if the caller may do this to it.
    fn pool<'v>(
        &self,
        view: &'v View,
        caller: &Caller,
        verb: Verb,
        pool: ResourceId,
    ) -> Result<&'v Stored<Resource>, Error> {
        let kind = Kind::NodePool;
        let missing = || Error::NotFound { kind, reference: pool.to_string(), cluster: None };
        let found = view.resource(pool).filter(|it| it.value.kind == kind).ok_or_else(missing)?;
        let cluster = found.value.owner.and_then(|owner| view.resource(owner));
        let cluster = cluster.map(|cluster| &*cluster.value);
        match self.office.allow(caller, verb, &found.value, cluster) {
            Decision::Allow => Ok(found),
            Decision::Hide => Err(missing()),
            Decision::Forbid => Err(forbidden(kind)),
        }
    }

    fn shows_orphan(&self, view: &View, caller: &Caller, orphan: &Orphan) -> bool {
        let pool = orphan.tags.pool.and_then(|pool| view.resource(pool));
        match pool {
            Some(pool) => self.office.shows(view, caller, (&*pool.value).into()),
            None => may(caller, Verb::Administer) == Decision::Allow,
        }
    }
}
