//! The brakes: pauses by people, breakers by ourselves, and how much of each budget is used.

use crate::office::{Mutation, Office, allow_verb};
use crate::{Error, Stored};
use argosy_core::access::{Caller, Verb};
use argosy_core::breaker::{Area, Breaker, Closed, Pause, Scope};
use argosy_core::command::{Command, CommandKind, CommandState, REASON_LEN_MAX};
use argosy_core::field::{Constraint, FieldError};
use argosy_core::liveness::Excuse;
use argosy_core::nearest::nearest;
use argosy_core::node::NodeId;
pub use argosy_core::remedy::BudgetUse;
use argosy_core::remedy::{Fleet, Subject, budgets};
use argosy_core::resource::Kind;
use argosy_store::Txn;
use argosy_store::view::View;
use jiff::Timestamp;
use std::collections::{BTreeSet, HashMap};
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
            if let Some(pool) = pool {
                known_pool(view, &caller.tenant, pool)?;
            }
            let pause = Arc::new(Pause {
                tenant: caller.tenant.clone(),
                pool: pool.map(str::to_owned),
                by: caller.subject.clone(),
                reason: reason.to_owned(),
                at: now,
            });
            let mut txn = Txn::at(now);
            let change = match view.pause(&caller.tenant, pool) {
                Some(before) => Mutation::update("pause", before, pause.clone()),
                None => Mutation { action: "pause", ..Mutation::create(pause.clone()) },
            };
            Office::put(&mut txn, change.because(reason), caller, now);
            Ok((Some(txn), pause))
        };
        let (revision, value) = self.office.decide(decide).await?;
        warn!(tenant = value.tenant, pool, by = value.by, reason, "automatic action is paused");
        Ok(Stored { value, revision })
    }

    /// Takes a pause back; true if there was one.
    ///
    /// # Errors
    /// `Forbidden`.
    pub async fn resume(&self, caller: &Caller, pool: Option<&str>) -> Result<bool, Error> {
        allow_verb(caller, Verb::Write)?;
        let decide = |view: &View, now: Timestamp| {
            let Some(pause) = view.pause(&caller.tenant, pool) else { return Ok((None, false)) };
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

/// A misspelt pool would be paused in vain, and nobody would know.
fn known_pool(view: &View, tenant: &str, pool: &str) -> Result<(), Error> {
    let of_nodes = view.nodes().filter(|node| node.value.tenant == tenant);
    let of_nodes = of_nodes.filter_map(|node| node.value.pool.as_deref());
    let declared = view.resources(Kind::NodePool).filter(|pool| pool.value.tenant == tenant);
    let declared = declared.map(|pool| pool.value.name.as_str());
    let pools: BTreeSet<&str> = of_nodes.chain(declared).collect();
    if pools.contains(pool) {
        return Ok(());
    }
    let meant = match nearest(pool, pools) {
        Some(meant) => format!("; did you mean '{meant}'?"),
        None => String::new(),
    };
    let message = format!("there is no pool '{pool}'{meant}");
    Err(Error::Invalid(vec![FieldError::new("pool", Constraint::Enum, message)]))
}

/// The fleet as its documents say, as far as budgets care.
fn everybody(view: &View) -> Fleet<'_> {
    let pending = cordons_pending(view);
    let subject = |node: &'_ NodeId| pending.get(node).map(|command| command.issued_at);
    let nodes = view.nodes().map(|node| Subject {
        unreported_for: None,
        node: &node.value,
        heard: true,
        unreachable_for: None,
        cordon_pending: subject(&node.value.id),
    });
    let breakers = view.breakers().map(|breaker| &*breaker.value).collect();
    Fleet { nodes: nodes.collect(), breakers, pauses: Vec::new(), excuse: None }
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
pub(crate) fn pause_of(tenant: &str, pool: Option<&str>) -> Pause {
    Pause {
        tenant: tenant.to_owned(),
        pool: pool.map(str::to_owned),
        by: String::new(),
        reason: String::new(),
        at: Timestamp::UNIX_EPOCH,
    }
}

/// Why nothing may be done by itself in some areas of a tenant's pool.
pub(crate) fn stopped(view: &View, tenant: &str, pool: &str, areas: &[Area<'_>]) -> Option<String> {
    let pause = view.pauses().find(|pause| {
        let of = &pause.value;
        of.tenant == tenant && of.pool.as_deref().is_none_or(|of| of == pool)
    });
    if let Some(pause) = pause {
        let by = &pause.value.by;
        return Some(format!("automatic action is paused by {by}: {}", pause.value.reason));
    }
    let breaker = view.breakers().map(|breaker| &breaker.value).find(|breaker| {
        !breaker.is_closed()
            && breaker.half_open.is_none()
            && areas.iter().any(|area| area.scope() == breaker.scope)
    });
    breaker.map(|breaker| format!("the breaker is open: {}", breaker.reason))
}

/// Makes a transaction fail if a pause or a breaker that `stopped` asks about appears before it is committed.
pub(crate) fn stay_unstopped(
    txn: &mut Txn,
    view: &View,
    tenant: &str,
    pool: &str,
    areas: &[Area<'_>],
) {
    txn.absent(&pause_of(tenant, None));
    txn.absent(&pause_of(tenant, Some(pool)));
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
