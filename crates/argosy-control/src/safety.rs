//! The brakes: pauses by people, breakers by ourselves, and how much of each budget is used.

use crate::office::{Mutation, Office, allow_verb, system};
use crate::pool::{cluster_of, node_pool_name};
use crate::{Error, Stored};
use argosy_core::access::{Caller, Verb};
use argosy_core::breaker::{Area, Breaker, Closed, Pause, Scope};
use argosy_core::command::{Command, CommandKind, CommandState, REASON_LEN_MAX};
use argosy_core::field::{Constraint, FieldError};
use argosy_core::id::ResourceId;
use argosy_core::instance::{Reason, State};
use argosy_core::liveness::Excuse;
use argosy_core::nearest::nearest;
use argosy_core::node::NodeId;
use argosy_core::pool::{BY, pool_name};
use argosy_core::remedy;
pub use argosy_core::remedy::{BudgetUse, Impact};
use argosy_core::remedy::{Effect, Fleet, LastDisruption, Leaving, Subject, budgets};
use argosy_core::resource::{Kind, Resource};
use argosy_store::Txn;
use argosy_store::engine::Fence;
use argosy_store::view::View;
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use tracing::warn;

/// The service.
#[derive(Clone)]
pub struct Safety {
    pub(crate) office: Arc<Office>,
}

/// Whether we act by ourselves, and if not, why not.
#[derive(Clone, Debug)]
pub struct Brakes {
    /// Pauses of the caller's tenant.
    pub pauses: Vec<Stored<Pause>>,
    /// Breakers that are not closed: of the tenant's pools, and of the zones and the fleet, which all
    /// tenants share.
    pub breakers: Vec<Stored<Breaker>>,
    /// How much of each budget is used, where the tenant has nodes.
    pub budgets: Vec<BudgetUse>,
    /// Set while we think that we are cut off from the fleet, with the numbers.
    pub isolated: Option<String>,
    /// Set while nodes are still coming back after our own start.
    pub amnesty: Option<String>,
}

impl Safety {
    /// The state of all brakes.
    ///
    /// # Errors
    /// `Forbidden`.
    pub fn brakes(&self, caller: &Caller) -> Result<Brakes, Error> {
        allow_verb(caller, Verb::Read)?;
        let now = self.office.clock.now();
        let settings = &*self.office.nodes();
        Ok(self.office.store.read(|view| {
            let theirs = |pause: &&Stored<Pause>| pause.value.tenant == caller.tenant;
            let nodes = view.nodes().filter(|node| node.value.tenant == caller.tenant);
            let areas: BTreeSet<Area<'_>> = nodes.flat_map(|node| Area::of(&node.value)).collect();
            let scopes: BTreeSet<Scope> = areas.into_iter().map(Area::scope).collect();
            let shown = |breaker: &&Stored<Breaker>| {
                !breaker.value.is_closed() && visible(caller, &breaker.value.scope)
            };
            let outlook = view.outlook().map(|outlook| outlook.value.excuse);
            let (mut isolated, mut amnesty) = (None, None);
            match outlook {
                Some(excuse @ Excuse::Isolation { .. }) => isolated = Some(excuse.to_string()),
                Some(excuse @ Excuse::Amnesty { .. }) => amnesty = Some(excuse.to_string()),
                None => {}
            }
            let used = budgets(&everybody(view), settings, now).into_iter();
            Brakes {
                pauses: view.pauses().filter(theirs).cloned().collect(),
                breakers: view.breakers().filter(shown).cloned().collect(),
                budgets: used.filter(|budget| scopes.contains(&budget.scope)).collect(),
                isolated,
                amnesty,
            }
        }))
    }

    /// Stops all automatic action, for the tenant or one pool. It survives restarts.
    ///
    /// What is on its way to a node that has not fetched it is taken back. Pausing again replaces who
    /// paused, and why.
    ///
    /// # Errors
    /// `Forbidden`; `Invalid` without a reason, or for a pool that nobody knows.
    pub async fn pause(
        &self,
        caller: &Caller,
        pool: Option<&str>,
        reason: &str,
    ) -> Result<Stored<Pause>, Error> {
        allow_verb(caller, Verb::Write)?;
        let reason = given(reason)?;
        let decide = |view: &View, now: Timestamp| {
            let (pool, pool_id) = match pool {
                Some(pool) => known_pool(view, &caller.tenant, pool)?,
                None => (None, None),
            };
            let pause = Arc::new(Pause {
                tenant: caller.tenant.clone(),
                pool,
                pool_id,
                by: caller.subject.clone(),
                reason: reason.to_owned(),
                at: now,
            });
            let mut txn = Txn::at(now);
            let change = match find_pause(view, &pause) {
                Some(before) => Mutation::update("pause", before, pause.clone()),
                None => Mutation { action: "pause", ..Mutation::create(pause.clone()) },
            };
            Office::put(&mut txn, change.because(reason), caller, now);
            Ok((Some(txn), pause))
        };
        let (revision, value) = self.office.decide(decide).await?;
        let (tenant, pool, by) = (&value.tenant, &value.pool, &value.by);
        warn!(tenant, pool, by, reason, "automatic action is paused");
        Ok(Stored { value, revision })
    }

    /// Takes a pause back; true if there was one.
    ///
    /// # Errors
    /// `Forbidden`.
    pub async fn resume(&self, caller: &Caller, pool: Option<&str>) -> Result<bool, Error> {
        allow_verb(caller, Verb::Write)?;
        let decide = |view: &View, now: Timestamp| {
            let Some(pause) = pause_named(view, &caller.tenant, pool) else {
                return Ok((None, false));
            };
            let mut txn = Txn::at(now);
            Office::put(&mut txn, Mutation::remove("resume", pause, None), caller, now);
            Ok((Some(txn), true))
        };
        let (_, resumed) = self.office.decide(decide).await?;
        if resumed {
            warn!(tenant = caller.tenant, pool, by = caller.subject, "automatic action goes on");
        }
        Ok(resumed)
    }

    /// Closes a breaker by hand; true if it was not closed. What waited is forgotten: the present is
    /// judged anew, and only what turns bad from now on can open it again.
    ///
    /// # Errors
    /// `Forbidden`, also for an operator who wants to close what other tenants are behind as well;
    /// `Invalid` without a reason.
    pub async fn close(&self, caller: &Caller, scope: &Scope, reason: &str) -> Result<bool, Error> {
        let verb = match scope {
            Scope::Pool { .. } => Verb::Write,
            Scope::Zone { .. } | Scope::Fleet => Verb::Administer,
        };
        allow_verb(caller, verb)?;
        let reason = given(reason)?;
        if !visible(caller, scope) {
            return Ok(false);
        }
        let decide = |view: &View, now: Timestamp| {
            let stored = view.breakers().find(|breaker| breaker.value.scope == *scope);
            let Some(before) = stored.filter(|breaker| !breaker.value.is_closed()) else {
                return Ok((None, false));
            };
            let by = caller.subject.clone();
            let closed = Some(Closed { by, reason: reason.to_owned(), at: now });
            let after = Breaker { closed, ..(*before.value).clone() };
            let mut txn = Txn::at(now);
            let change = Mutation::update("close", before, Arc::new(after)).because(reason);
            Office::put(&mut txn, change, caller, now);
            Ok((Some(txn), true))
        };
        let (_, closed) = self.office.decide(decide).await?;
        if closed {
            warn!(%scope, by = caller.subject, reason, "a breaker was closed by hand");
        }
        Ok(closed)
    }
}

/// The pools of other tenants do not exist.
fn visible(caller: &Caller, scope: &Scope) -> bool {
    match scope {
        Scope::Pool { tenant, .. } => *tenant == caller.tenant,
        Scope::Zone { .. } | Scope::Fleet => true,
    }
}

/// The reason of a request that needs one.
pub(crate) fn given(reason: &str) -> Result<&str, Error> {
    let complain = |constraint, message: String| {
        Err(Error::Invalid(vec![FieldError::new("reason", constraint, message)]))
    };
    match reason.trim() {
        "" => complain(Constraint::Required, "say why: whoever finds it stopped asks".to_owned()),
        long if REASON_LEN_MAX < long.len() => complain(
            Constraint::MaxLength,
            format!("reason is {} bytes long; at most {REASON_LEN_MAX} are allowed", long.len()),
        ),
        reason => Ok(reason),
    }
}

/// A pool by the name that its nodes carry, and its id if it is declared.
type PoolKey = (Option<String>, Option<ResourceId>);

/// Which pool is meant: by the name that nodes carry, by CLUSTER/NAME, or by its own name if just one has it. A
/// misspelt pool would be paused in vain, and nobody would know.
fn known_pool(view: &View, tenant: &str, pool: &str) -> Result<PoolKey, Error> {
    let declared = view.resources(Kind::NodePool).filter(|pool| pool.value.tenant == tenant);
    let declared: Vec<(String, String, &Resource)> = declared
        .filter_map(|found| {
            let cluster = &cluster_of(view, &found.value)?.value.name;
            let path = format!("{cluster}/{}", found.value.name);
            Some((pool_name(cluster, &found.value.name), path, &*found.value))
        })
        .collect();
    let known =
        |(name, _, found): &(String, String, &Resource)| (Some(name.clone()), Some(found.id));
    if let Some(found) = declared.iter().find(|(name, path, _)| name == pool || path == pool) {
        return Ok(known(found));
    }
    let of_nodes = view.nodes().filter(|node| node.value.tenant == tenant);
    let of_nodes: BTreeSet<&str> = of_nodes.filter_map(|node| node.value.pool.as_deref()).collect();
    if of_nodes.contains(pool) {
        return Ok((Some(pool.to_owned()), None));
    }
    let refuse = |message: String| {
        Err(Error::Invalid(vec![FieldError::new("pool", Constraint::Enum, message)]))
    };
    let short: Vec<_> =
        declared.iter().filter(|(_, _, found)| found.name.as_str() == pool).collect();
    match short.as_slice() {
        [one] => Ok(known(one)),
        [] => {
            let names = declared.iter().map(|(name, ..)| name.as_str());
            let meant = nearest(pool, of_nodes.into_iter().chain(names).collect::<BTreeSet<_>>());
            let meant = meant.map(|meant| format!("; did you mean '{meant}'?")).unwrap_or_default();
            refuse(format!("there is no pool '{pool}'{meant}"))
        }
        several => {
            let names: Vec<&str> = several.iter().map(|(name, ..)| name.as_str()).collect();
            let (count, names) = (names.len(), names.join(", "));
            refuse(format!("{count} pools are named '{pool}'; say which one: {names}"))
        }
    }
}

/// The pause that another one replaces.
fn find_pause<'v>(view: &'v View, pause: &Pause) -> Option<&'v Stored<Pause>> {
    let same = |known: &&Stored<Pause>| match &pause.pool {
        Some(pool) => known.value.is_of(&pause.tenant, pool, pause.pool_id),
        None => known.value.tenant == pause.tenant && known.value.pool.is_none(),
    };
    view.pauses().find(same)
}

/// The pause of a pool as somebody names it, also if nobody else knows such a pool any more.
fn pause_named<'v>(view: &'v View, tenant: &str, pool: Option<&str>) -> Option<&'v Stored<Pause>> {
    let (name, id) = match pool.map(|pool| (pool, known_pool(view, tenant, pool))) {
        None => (None, None),
        Some((_, Ok(known))) => known,
        Some((pool, Err(_))) => (Some(pool.to_owned()), None),
    };
    find_pause(view, &pause_of(tenant, name.as_deref(), id))
}

/// Removes what stops us in a pool together with the pool, so that the next one of its name begins without.
pub(crate) fn forget_pool(
    txn: &mut Txn,
    view: &View,
    pool: &Resource,
    caller: &Caller,
    now: Timestamp,
) {
    let Some(name) = node_pool_name(view, pool) else { return };
    let paused = |pause: &&Stored<Pause>| pause.value.is_of(&pool.tenant, &name, Some(pool.id));
    for pause in view.pauses().filter(paused) {
        Office::put(txn, Mutation::remove("resume", pause, None), caller, now);
    }
    let scope = Area::Pool(&pool.tenant, &name).scope();
    if let Some(breaker) = view.breakers().find(|breaker| breaker.value.scope == scope) {
        Office::put(txn, Mutation::remove("close", breaker, None), caller, now);
    }
}

/// Brings pauses up to date that were written down before they knew their pool's id: those of a declared pool, also
/// by its own name if just one has it, which paused nothing then.
pub(crate) async fn upgrade_pauses(office: &Office, fence: &Fence) -> Result<(), Error> {
    let caller = system(BY);
    let decide = |view: &View, now: Timestamp| {
        let mut txn = Txn::at(now);
        txn.fence(fence.clone());
        for before in view.pauses().filter(|pause| pause.value.pool_id.is_none()) {
            let tenant = &before.value.tenant;
            let Some(name) = before.value.pool.as_deref() else { continue };
            let Ok((pool, Some(id))) = known_pool(view, tenant, name) else { continue };
            let after = Pause { pool, pool_id: Some(id), ..(*before.value).clone() };
            Office::put(&mut txn, Mutation::remove("upgrade", before, None), &caller, now);
            let known = view.pauses().any(|pause| pause.value.pool_id == Some(id));
            if !known {
                let change = Mutation { action: "upgrade", ..Mutation::create(Arc::new(after)) };
                Office::put(&mut txn, change, &caller, now);
            }
        }
        Ok(((!txn.is_empty()).then_some(txn), ()))
    };
    office.decide(decide).await.map(|_| ())
}

/// The fleet as its documents say, as far as budgets care.
fn everybody(view: &View) -> Fleet<'_> {
    let pending = cordons_pending(view);
    let leaving = leaving(view);
    let nodes = view.nodes().map(|node| Subject {
        unreported_for: None,
        node: &node.value,
        heard: true,
        unreachable_for: None,
        cordon_pending: pending.get(&node.value.id).map(|command| command.issued_at),
        leaving: leaving.get(node.value.id.as_str()).copied(),
    });
    let breakers = view.breakers().map(|breaker| &*breaker.value).collect();
    let (pauses, recoveries) = (Vec::new(), Vec::new());
    Fleet { nodes: nodes.collect(), breakers, pauses, recoveries, excuse: None }
}

/// Nodes that are out of service although their documents do not say so, or not by whom: whose GPUs a diagnostic
/// occupies, and whose instance somebody terminated.
fn leaving(view: &View) -> HashMap<&str, Leaving<'_>> {
    let open = view.open_commands().map(|command| &*command.value);
    let tested = open.filter(|command| command.occupies()).map(|command| {
        let since = command.issued_at;
        (command.node.as_str(), Leaving { by: &command.by, since, how: "tested" })
    });
    let ended = view.instances().filter_map(|record| {
        let (reason, since) = match &record.value.state {
            State::Terminating(leaving) => (&leaving.reason, leaving.since),
            State::Terminated { reason, at, .. } => (reason, *at),
            State::Provisioning(_)
            | State::AwaitingNode { .. }
            | State::Running { .. }
            | State::Failed { .. } => return None,
        };
        let Reason::Operator { by, .. } = reason else { return None };
        Some((record.value.id.as_str(), Leaving { by, since, how: "terminated" }))
    });
    tested.chain(ended).collect()
}

/// What becomes of a request that takes more nodes out of service than a disruption budget allows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Beyond {
    /// It is refused, with the numbers.
    #[default]
    Refuse,
    /// It is carried out, because the caller asked for that: needs the role admin and a reason.
    Override,
    /// It is carried out, for a client that has no way to ask for that.
    Count,
}

/// A request to take nodes out of service, judged against the budgets.
#[derive(Clone, Debug, Default)]
pub(crate) struct Judged {
    /// What it does to each budget that its nodes are in.
    pub(crate) impacts: Vec<Impact>,
    /// Whether it disrupts nodes.
    disrupts: bool,
}

impl Judged {
    /// Judges what some nodes are asked to do. Everything that follows has to be in one transaction with `write`.
    ///
    /// # Errors
    /// `OverBudget`; `Forbidden` and `Invalid` for who may not ask for more than the budgets allow, or does not say
    /// why.
    pub(crate) fn of(
        office: &Office,
        view: &View,
        caller: &Caller,
        asked: &[(&NodeId, Effect)],
        (beyond, reason): (Beyond, &str),
        now: Timestamp,
    ) -> Result<Self, Error> {
        if beyond == Beyond::Override {
            may_override(caller, reason)?;
        }
        let nodes: HashSet<&NodeId> = asked
            .iter()
            .filter(|(_, effect)| *effect != Effect::None)
            .map(|(node, _)| *node)
            .collect();
        if nodes.is_empty() {
            return Ok(Self::default());
        }
        let disrupts = asked.iter().any(|(_, effect)| *effect == Effect::Disrupts);
        let shown = |impact: Impact| {
            impact.shown(|out| {
                let node = view.node(out.node.as_str());
                node.is_some_and(|node| office.shows(view, caller, (&*node.value).into()))
            })
        };
        let impacts = remedy::impacts(&everybody(view), &nodes, &office.nodes(), now);
        let judged = Self { impacts: impacts.into_iter().map(shown).collect(), disrupts };
        if beyond == Beyond::Refuse && judged.is_over() {
            let exceeded = judged.impacts.into_iter().filter(Impact::is_exceeded).collect();
            return Err(Error::OverBudget(exceeded));
        }
        Ok(judged)
    }

    /// Whether it disrupts more than a budget allows.
    fn is_over(&self) -> bool {
        self.disrupts && self.impacts.iter().any(Impact::is_exceeded)
    }

    /// The budgets that it exceeds, if it does.
    fn excess(&self) -> Option<String> {
        self.is_over().then(|| {
            let exceeded = self.impacts.iter().filter(|impact| impact.is_exceeded());
            exceeded.map(ToString::to_string).collect::<Vec<_>>().join("; ")
        })
    }

    /// Makes two requests that disrupt at the same moment meet in the store, and has the audit log say by how much a
    /// budget is exceeded.
    pub(crate) fn write(
        &self,
        txn: &mut Txn,
        view: &View,
        caller: &Caller,
        reason: &str,
        now: Timestamp,
    ) {
        if !self.disrupts {
            return;
        }
        let (by, tenant) = (caller.subject.clone(), caller.tenant.clone());
        let last = Arc::new(LastDisruption { at: now, by, tenant });
        let before = view.last_disruption();
        if let Some(excess) = self.excess() {
            let colon = if reason.is_empty() { "" } else { ": " };
            let why = format!("{reason}{colon}{excess}");
            let steps = (before.map(|before| &*before.value), Some(&*last));
            Office::record(txn, caller, "over-budget", steps, Some(why), now);
        }
        match before {
            Some(before) => txn.update(last, before.revision),
            None => txn.create(last),
        }
    }

    /// Says so where people and metrics look.
    pub(crate) fn tell(&self, office: &Office, caller: &Caller, beyond: Beyond) {
        let Some(excess) = self.excess() else { return };
        match beyond {
            Beyond::Refuse | Beyond::Override => office.stats.over_budget.add_one(),
            Beyond::Count => office.stats.over_budget_unasked.add_one(),
        }
        warn!(by = caller.subject, excess, "a request exceeded a disruption budget");
    }
}

/// Whether somebody may, and really wants to, exceed a budget.
fn may_override(caller: &Caller, reason: &str) -> Result<(), Error> {
    given(reason)?;
    allow_verb(caller, Verb::Force).map_err(|_| {
        Error::Forbidden("over_budget needs the role admin; without it the budgets hold".to_owned())
    })
}

/// Our own cordons that their nodes have not fetched.
pub(crate) fn cordons_pending(view: &View) -> HashMap<NodeId, Arc<Command>> {
    let open = view.open_commands().map(|command| &command.value);
    let ours = open.filter(|command| {
        command.automatic
            && command.kind == CommandKind::Cordon
            && command.state == CommandState::Pending
    });
    ours.map(|command| (command.node.clone(), command.clone())).collect()
}

/// The key of a pause: the rest of it does not matter.
pub(crate) fn pause_of(tenant: &str, pool: Option<&str>, pool_id: Option<ResourceId>) -> Pause {
    Pause {
        tenant: tenant.to_owned(),
        pool: pool.map(str::to_owned),
        pool_id,
        by: String::new(),
        reason: String::new(),
        at: Timestamp::UNIX_EPOCH,
    }
}

/// Why nothing may be done by itself in some areas of a tenant's pool.
pub(crate) fn stopped(
    view: &View,
    tenant: &str,
    (pool, id): (&str, Option<ResourceId>),
    areas: &[Area<'_>],
) -> Option<String> {
    let pause = view.pauses().find(|pause| pause.value.stops(tenant, pool, id));
    if let Some(pause) = pause {
        let by = &pause.value.by;
        return Some(format!("automatic action is paused by {by}: {}", pause.value.reason));
    }
    open(view, areas)
}

/// The breakers that are not closed in some areas.
fn breakers<'v>(
    view: &'v View,
    areas: &[Area<'_>],
) -> impl Iterator<Item = &'v Stored<Breaker>> + use<'v> {
    let scopes: Vec<Scope> = areas.iter().map(|area| area.scope()).collect();
    let there = move |of: &&Stored<Breaker>| scopes.contains(&of.value.scope);
    view.breakers().filter(|breaker| !breaker.value.is_closed()).filter(there)
}

/// Why an open breaker stops everything that is automatic in some areas.
pub(crate) fn open(view: &View, areas: &[Area<'_>]) -> Option<String> {
    let open = breakers(view, areas).find(|breaker| breaker.value.half_open.is_none());
    open.map(|breaker| format!("the breaker is open: {}", breaker.value.reason))
}

/// Why nothing more is begun in some areas: a half-open breaker has let pass as much as it may for now. What was
/// begun goes on.
pub(crate) fn spent(view: &View, areas: &[Area<'_>]) -> Option<String> {
    breakers(view, areas).find_map(|breaker| breaker.value.spent())
}

/// What one transaction draws from half-open breakers.
#[derive(Default)]
pub(crate) struct Draws(BTreeMap<Scope, Breaker>);

impl Draws {
    /// Draws one action in some areas.
    ///
    /// # Errors
    /// Why it may not be taken now; then nothing is drawn.
    pub(crate) fn take(&mut self, view: &View, areas: &[Area<'_>]) -> Result<(), String> {
        if let Some(why) = open(view, areas) {
            return Err(why);
        }
        let stored = breakers(view, areas).map(|breaker| &*breaker.value);
        let drawn = stored.map(|breaker| self.0.get(&breaker.scope).unwrap_or(breaker).clone());
        let mut drawn: Vec<Breaker> = drawn.collect();
        if let Some(why) = drawn.iter().find_map(Breaker::spent) {
            return Err(why);
        }
        drawn.iter_mut().for_each(Breaker::draw);
        self.0.extend(drawn.into_iter().map(|breaker| (breaker.scope.clone(), breaker)));
        Ok(())
    }

    /// Adds it to the transaction: another that draws at the same moment meets it in the store.
    pub(crate) fn write(self, txn: &mut Txn, view: &View, caller: &Caller, now: Timestamp) {
        for after in self.0.into_values() {
            let before = view.breakers().find(|breaker| breaker.value.scope == after.scope);
            let Some(before) = before else { continue };
            let change = Mutation::update("half-open", before, Arc::new(after));
            Office::put(txn, change, caller, now);
        }
    }
}

/// Makes a transaction fail if a pause or a breaker that `stopped` asks about appears before it is committed.
pub(crate) fn stay_unstopped(
    txn: &mut Txn,
    view: &View,
    tenant: &str,
    (pool, id): (&str, Option<ResourceId>),
    areas: &[Area<'_>],
) {
    txn.absent(&pause_of(tenant, None, None));
    txn.absent(&pause_of(tenant, Some(pool), id));
    for area in areas {
        let scope = area.scope();
        match view.breakers().find(|breaker| breaker.value.scope == scope) {
            Some(breaker) => txn.check(&*breaker.value, breaker.revision),
            None => txn.absent(&Breaker::unknown(scope)),
        }
    }
}

#[cfg(test)]
mod tests;
