//! A pool as the store shows it, and the picture of it that a plan is made from.

use super::shelf::Shelf;
use super::{Bench, SELF};
use crate::pool::protects;
use crate::pulse::Sample;
use crate::recovery;
use crate::safety;
use argosy_core::adapter::AdapterSpec;
use argosy_core::autoscale::Autoscaling;
use argosy_core::breaker::Area;
use argosy_core::catalog::{Catalog, ProviderCatalog};
use argosy_core::command::{CommandKind, CommandState, quiet_until};
use argosy_core::field::FieldError;
use argosy_core::id::ResourceId;
use argosy_core::incarnation::Forecast;
use argosy_core::instance::{Cure, Instance};
use argosy_core::inventory::ProviderBook;
use argosy_core::liveness::Listened;
use argosy_core::node::{Duty, Liveness, Node};
use argosy_core::pool::{
    Member, Outcome, Picture, PoolBook, PoolSpec, ProviderFacts, Recovering, pool_name,
};
use argosy_core::protect::Protection;
use argosy_core::resource::{Kind, Resource, Spec};
use argosy_core::sentinel::is_turn;
use argosy_store::view::{Stored, View};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

/// A pool, with everything that belongs to it.
pub(super) struct Scene {
    pub(super) resource: Stored<Resource>,
    pub(super) pool_name: String,
    pub(super) spec: Result<PoolSpec, Vec<FieldError>>,
    pub(super) records: Vec<Seen>,
    pub(super) book: Option<Stored<PoolBook>>,
    fresh_book: PoolBook,
    books: BTreeMap<String, Stored<ProviderBook>>,
    pub(super) stopped: Option<String>,
    /// Why nothing more is begun by ourselves.
    spent: Option<String>,
    /// Whether a deadline of one of its machines may have to be put off first: nobody led for a while.
    pub(super) unattended: bool,
    /// Why it is in recovery, and why silence is excused meanwhile.
    recovery: Option<String>,
    excuse: Option<String>,
    /// Whether our adapter is configured, and it is its turn.
    turn: Option<bool>,
    /// The provider of the cluster, if it names one.
    provider: Option<String>,
    /// GPUs that are known to be bad and in a machine all the same.
    condemned: HashSet<String>,
}

/// A record, and its node.
pub(super) struct Seen {
    pub(super) record: Stored<Instance>,
    pub(super) node: Option<Stored<Node>>,
    commanded: bool,
    /// When it may be told again what it could not do.
    retry_at: Option<Timestamp>,
    heard: bool,
    /// Known only where some are to leave.
    utilization: Option<f32>,
    lost_for: Option<SignedDuration>,
    reported_at: Option<Timestamp>,
    /// Why it is left alone, although the rest of its pool is not.
    stopped: Option<String>,
    protected: Option<Protection>,
    /// What came of the cure that was last tried, if that is known and not written down yet.
    pub(super) concluded: Option<String>,
}

impl Scene {
    /// The pool; `None` if it is gone.
    pub(super) fn of(bench: &Bench, id: ResourceId, listened: &Listened) -> Option<Scene> {
        let office = &bench.office;
        let now = office.clock.now();
        let catalog = &office.settings.catalog;
        office.store.read(|view| {
            let resource = view.resource(id).filter(|found| found.value.kind == Kind::NodePool)?;
            let cluster = view.resource(resource.value.owner?)?;
            let pool_name = pool_name(&cluster.value.name, &resource.value.name);
            let spec = PoolSpec::read(&resource.value.spec, &cluster.value.spec, catalog);
            let book = view.pool_book(id).cloned();
            let excused = view.outlook().is_some();
            let records = view.instances_of(id);
            let records = records.map(|record| seen(bench, view, record, (excused, listened), now));
            let mut records: Vec<Seen> = records.collect();
            let attended = view.attendance().and_then(|attended| attended.value.away(now));
            let leaves = |seen: &Seen| seen.record.value.departure.is_some();
            let unattended = attended.is_some() && records.iter().any(leaves);
            // Who has the least to do leaves first, where some are to leave.
            let target = book.as_ref().and_then(|book| book.value.target);
            let target = spec.as_ref().map_or(u32::MAX, |spec| spec.target(target));
            let live = records.iter().filter(|seen| !seen.record.value.state.is_over()).count();
            if usize::try_from(target).unwrap_or(usize::MAX) < live {
                records.iter_mut().for_each(|seen| seen.utilization = utilization(bench, seen));
            }
            // Of all GPUs that are known to be bad, few are still in a machine.
            let is_here = |serial: &String| {
                let mut nodes = view.nodes_with_hardware(serial);
                nodes.any(|node| !matches!(node.value.duty, Duty::Terminated(_)))
            };
            let condemned = view.all_condemned().map(|gpu| &gpu.value.serial);
            let condemned = condemned.filter(|serial| is_here(serial)).cloned().collect();
            let adapters = office.adapters(Kind::NodePool);
            let ours = adapters.iter().find(|spec| spec.is_loop());
            let turn = |spec: &AdapterSpec| is_turn(&resource.value, spec, adapters);
            Some(Scene {
                unattended,
                condemned,
                records,
                spec,
                book,
                fresh_book: PoolBook::new(id),
                books: view
                    .provider_books()
                    .map(|book| (book.value.name.clone(), book.clone()))
                    .collect(),
                stopped: stopped(view, &resource.value.tenant, &pool_name, id),
                spent: spent(view, &resource.value.tenant, &pool_name),
                recovery: recovery::held(view, id),
                excuse: view.outlook().map(|outlook| outlook.value.excuse.to_string()),
                turn: ours.map(turn),
                provider: Catalog::provider_of(&cluster.value.spec).map(str::to_owned),
                resource: resource.clone(),
                pool_name,
            })
        })
    }

    /// When one of its nodes may be told again what it could not do.
    pub(super) fn retry_at(&self) -> Option<Timestamp> {
        self.records.iter().filter_map(|seen| seen.retry_at).min()
    }

    /// Who changes its size.
    pub(super) fn autoscaling(&self) -> Option<&Autoscaling> {
        self.spec.as_ref().ok()?.autoscaling.as_ref()
    }

    /// Its nodes, in whatever state.
    pub(super) fn nodes(&self) -> impl Iterator<Item = &Arc<Node>> {
        self.records.iter().filter_map(|seen| seen.node.as_ref()).map(|node| &node.value)
    }

    /// Whether it is in recovery.
    pub(super) fn is_recovering(&self) -> bool {
        self.recovery.is_some()
    }

    fn recovering(&self) -> Option<Recovering<'_>> {
        let why = self.recovery.as_deref()?;
        Some(Recovering { why, excuse: self.excuse.as_deref() })
    }

    /// Whether the adapter `machines` is ours, and may speak.
    pub(super) fn reports(&self) -> bool {
        self.turn == Some(true)
    }

    /// The book as it is.
    pub(super) fn book(&self) -> &PoolBook {
        self.book.as_ref().map_or(&self.fresh_book, |book| &book.value)
    }

    /// Plans from the picture, or says why there is none.
    pub(super) fn plan(
        &self,
        shelves: &BTreeMap<String, Shelf>,
        bench: &Bench,
        now: Timestamp,
    ) -> argosy_core::pool::Plan {
        let nothing = |outcome| argosy_core::pool::Plan {
            buy: Vec::new(),
            steps: Vec::new(),
            book: None,
            outcome,
            next: None,
            forecast: self.recovery.is_some().then(Forecast::default),
        };
        let Some(its_turn) = self.turn else { return nothing(Outcome::Waiting) };
        let deleting = self.resource.value.deletion.is_some();
        let spec = match &self.spec {
            Ok(spec) => spec.clone(),
            Err(errors) => {
                let catalog = &bench.office.settings.catalog;
                let anything = PoolSpec::read(&Spec::new(), &Spec::new(), catalog);
                match anything.ok().filter(|_| deleting) {
                    Some(spec) => spec,
                    None => {
                        let plan = nothing(unreadable(errors));
                        let waits_for = Some("a spec that can be read".to_owned());
                        let forecast = plan.forecast.map(|known| Forecast { waits_for, ..known });
                        return argosy_core::pool::Plan { forecast, ..plan };
                    }
                }
            }
        };
        let providers: BTreeMap<String, ProviderFacts<'_>> = shelves
            .iter()
            .map(|(name, shelf)| (name.clone(), self.facts(bench, name, shelf)))
            .collect();
        if let Some(outcome) = self.unprovided(&spec, &providers)
            && self.records.iter().all(|seen| seen.record.value.state.is_over())
        {
            return nothing(if deleting { removed() } else { outcome });
        }
        let nodes = bench.office.nodes();
        let settings = nodes.of_pool(&self.resource.value.tenant, Some(&self.pool_name));
        let picture = Picture {
            resource: &self.resource.value,
            spec: &spec,
            pool_name: &self.pool_name,
            members: self.records.iter().map(Seen::member).collect(),
            book: self.book(),
            providers: &providers,
            bad_hardware: &self.condemned,
            stopped: self.stopped.as_deref(),
            spent: self.spent.as_deref(),
            recovery: self.recovering(),
            its_turn,
            act_after: settings.act_after,
            register_within: bench.settings().limits.registration,
            drain_for: spec.drain_for.unwrap_or(settings.drain_for),
            ahead: bench.office.clock.ahead(),
        };
        argosy_core::pool::plan(&picture, now)
    }

    fn facts<'s>(&'s self, bench: &'s Bench, name: &'s str, shelf: &'s Shelf) -> ProviderFacts<'s> {
        let known = bench.office.settings.catalog.providers.get(name);
        let book = self.books.get(name).map(|book| &*book.value);
        ProviderFacts {
            kind: if shelf.kind.is_empty() { name } else { &shelf.kind },
            display: known.map_or(name, |known| &known.display),
            abilities: shelf.abilities,
            offers: &shelf.offers,
            paused: book.and_then(|book| book.paused.as_ref()),
            frozen: book.and_then(|book| book.frozen.as_ref()),
            compared: shelf.compared,
            default_region: known
                .and_then(|known| known.regions.first())
                .map_or("", String::as_str),
            default_type: known.and_then(ProviderCatalog::smallest).unwrap_or_default(),
        }
    }

    /// None of the providers that were asked for is configured.
    fn unprovided(
        &self,
        spec: &PoolSpec,
        providers: &BTreeMap<String, ProviderFacts<'_>>,
    ) -> Option<Outcome> {
        let named = || spec.providers.iter().map(|choice| choice.name.as_str());
        let any = if spec.providers.is_empty() {
            match &self.provider {
                Some(name) => providers.contains_key(name),
                None => !providers.is_empty(),
            }
        } else {
            named().any(|name| providers.contains_key(name))
        };
        if any {
            return None;
        }
        let which = match (&self.provider, named().next()) {
            (_, Some(_)) => format!("provider '{}'", named().collect::<Vec<_>>().join("', '")),
            (Some(name), None) => format!("provider '{name}'"),
            (None, None) => "any provider".to_owned(),
        };
        Some(Outcome::Failed {
            reason: "ProviderNotConfigured".to_owned(),
            message: format!(
                "No cloud is configured for {which}. Start the server with --simulated-cloud, configure \
                 it under `providers`, or make this adapter an external one in the configuration."
            ),
            applied: false,
            healthy: true,
            data: Map::new(),
        })
    }
}

impl Seen {
    fn member(&self) -> Member<'_> {
        Member {
            instance: &self.record.value,
            node: self.node.as_ref().map(|node| &*node.value),
            heard: self.heard,
            utilization: self.utilization,
            lost_for: self.lost_for,
            notice: self.record.value.notice.as_ref(),
            commanded: self.commanded,
            reported_at: self.reported_at,
            stopped: self.stopped.as_deref(),
            protected: self.protected,
        }
    }
}

/// What is to be known of one machine; while `excused`, silence is held against nobody, and otherwise for as long as
/// we `listened`.
fn seen(
    bench: &Bench,
    view: &View,
    record: &Stored<Instance>,
    (excused, listened): (bool, &Listened),
    now: Timestamp,
) -> Seen {
    let id = record.value.id.as_str();
    let node = view.node(id).filter(|node| node.value.tenant == record.value.tenant).cloned();
    let (commanded, retry_at) = told(view, id, now);
    let live = bench.board.live(id);
    let lost_since = match &node {
        Some(node) => {
            let lost = node.value.liveness == Liveness::Unreachable;
            lost.then_some(node.value.liveness_since)
        }
        None => record.value.sight.nodeless_since,
    };
    Seen {
        concluded: concluded(view, &record.value, node.as_ref(), now),
        commanded,
        retry_at,
        // While nothing excuses silence, who is not heard is marked; so who is not marked is heard.
        heard: !excused || live.heard_at.is_some(),
        reported_at: live.reported_at,
        stopped: stopped_there(view, &record.value, node.as_ref()),
        protected: protects(view, &record.value),
        utilization: None,
        lost_for: lost_since.filter(|_| !excused).map(|since| listened.time(since, now)),
        record: record.clone(),
        node,
    }
}

/// Whether a node has been told something by the pool that it has yet to do, or did not do a moment ago; and
/// when it may be told again then.
pub(super) fn told(view: &View, node: &str, now: Timestamp) -> (bool, Option<Timestamp>) {
    let ours = || {
        let all = view.commands_of(node).rev().map(|command| &*command.value);
        all.filter(|command| command.by == SELF)
    };
    let retry_at = quiet_until(ours()).filter(|until| now < *until);
    let open = ours().any(|command| !command.state.is_done());
    (retry_at.is_some() || open, retry_at)
}

/// How long a node that was booted again has to show whether it is well.
const BOOTED_FOR: SignedDuration = SignedDuration::from_secs(60);

/// What came of the cure that was last tried: of a diagnostic, how the command ended; of a reboot, that it
/// happened, once the node had time to show how it is.
fn concluded(
    view: &View,
    record: &Instance,
    node: Option<&Stored<Node>>,
    now: Timestamp,
) -> Option<String> {
    let last = record.tried.last().filter(|last| last.outcome.is_empty())?;
    let node = &node?.value;
    match last.cure {
        Cure::Diagnose => {
            let test = view.commands_of(node.id.as_str()).rev().find(|command| {
                command.value.kind == CommandKind::RunDiagnostic
                    && last.at <= command.value.issued_at
            })?;
            let CommandState::Done { outcome, message, result, .. } = &test.value.state else {
                return None;
            };
            let passed = result.as_ref().and_then(|result| result.get("passed"));
            let said = match passed.and_then(Value::as_bool) {
                Some(true) => "the test passed".to_owned(),
                Some(false) => "the test failed".to_owned(),
                None => format!("the test ended: {outcome:?}"),
            };
            Some(if message.is_empty() { said } else { format!("{said}: {message}") })
        }
        Cure::Reboot => {
            let well = node.is_well() && node.liveness == Liveness::Fresh;
            let shown = well || BOOTED_FOR <= now.duration_since(node.joined_at);
            let said = if well { "it came back well" } else { "it came back and is not well" };
            (last.at < node.joined_at && shown).then(|| said.to_owned())
        }
        Cure::Replace => None,
    }
}

/// How much of the GPUs of a machine is used, from 0 to 1.
fn utilization(bench: &Bench, seen: &Seen) -> Option<f32> {
    bench.board.find(seen.record.value.id.as_str())?.with_sample(busy).flatten()
}

/// `None` if one of its GPUs did not say: what the others do is no proof that this one is idle, and the idle
/// ones go first.
fn busy(sample: &Sample) -> Option<f32> {
    let work = sample.gpu_work();
    let mean = work.mean().filter(|_| work.unmeasured == 0)?;
    Some((mean / 100.0).clamp(0.0, 1.0))
}

/// Why nothing is done by ourselves in a pool now.
pub(super) fn stopped(view: &View, tenant: &str, pool: &str, id: ResourceId) -> Option<String> {
    let areas = [Area::Fleet, Area::Pool(tenant, pool)];
    safety::stopped(view, tenant, (pool, Some(id)), &areas)
}

/// Why nothing more is begun by ourselves in a pool now.
fn spent(view: &View, tenant: &str, pool: &str) -> Option<String> {
    safety::spent(view, &[Area::Fleet, Area::Pool(tenant, pool)])
}

/// Why one machine of a pool is left alone: the breaker of its zone. What was begun goes on while that is half open.
fn stopped_there(view: &View, record: &Instance, node: Option<&Stored<Node>>) -> Option<String> {
    let areas = areas(record, node);
    let begun = record.departure.is_some();
    let spent = || safety::spent(view, &areas).filter(|_| !begun);
    safety::open(view, &areas).or_else(spent)
}

/// The node of a machine.
pub(super) fn node_of<'v>(view: &'v View, record: &Instance) -> Option<&'v Stored<Node>> {
    view.node(record.id.as_str()).filter(|node| node.value.tenant == record.tenant)
}

/// What breakers a machine is behind: those of its node, or of the place where it was ordered.
pub(super) fn areas<'r>(record: &'r Instance, node: Option<&'r Stored<Node>>) -> Vec<Area<'r>> {
    let order = &record.order;
    let zone = match node.map(|node| &node.value.place) {
        Some(place) => (&*place.provider, &*place.region, &*place.zone),
        None => (&*order.provider, &*order.region, &*order.zone),
    };
    let zone = (!zone.2.is_empty()).then_some(Area::Zone(zone.0, zone.1, zone.2));
    let pool = Area::Pool(&record.tenant, &record.pool_name);
    [Some(Area::Fleet), Some(pool), zone].into_iter().flatten().collect()
}

/// Nothing was ever bought.
fn removed() -> Outcome {
    let (reason, message) = ("NothingToRemove".to_owned(), "Nothing was provisioned".to_owned());
    Outcome::Removed { reason, message, data: Map::new() }
}

fn unreadable(errors: &[FieldError]) -> Outcome {
    let all: Vec<&str> = errors.iter().map(|error| error.message.as_str()).collect();
    Outcome::Failed {
        reason: "InvalidSpec".to_owned(),
        message: all.join("; "),
        applied: false,
        healthy: true,
        data: Map::from_iter([("guidance".to_owned(), json!("Change the spec."))]),
    }
}

/// The regions in which something may be bought from a provider.
pub(super) fn regions(bench: &Bench, provider: &str) -> BTreeSet<String> {
    let catalog = &bench.office.settings.catalog;
    let mut regions = bench.office.store.read(|view| {
        let theirs = |cluster: &&Stored<Resource>| {
            Catalog::provider_of(&cluster.value.spec).is_none_or(|name| name == provider)
        };
        let clusters = view.resources(Kind::Cluster).filter(theirs);
        let of_clusters = clusters.filter_map(|cluster| Catalog::region_of(&cluster.value.spec));
        let choices = view.resources(Kind::NodePool).flat_map(|pool| {
            pool.value.spec.get("providers").and_then(Value::as_array).into_iter().flatten()
        });
        let choices =
            choices.filter(|choice| choice.get("name").is_some_and(|name| name == provider));
        let of_pools = choices.flat_map(|choice| {
            choice.get("regions").and_then(Value::as_array).into_iter().flatten()
        });
        let of_pools = of_pools.filter_map(Value::as_str);
        of_clusters.chain(of_pools).map(str::to_owned).collect::<BTreeSet<_>>()
    });
    if let Some(known) = catalog.providers.get(provider) {
        regions.retain(|region| known.regions.contains(region));
        regions.extend(known.regions.first().cloned());
    }
    regions
}
