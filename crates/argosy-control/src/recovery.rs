//! Recovery: how a new incarnation of the store begins, what it holds back, and how it ends.
//!
//! What a newcomer gets wrong: a pool is in recovery because of a document of its own. The transaction that says
//! that history was lost writes one for each pool; a person's confirmation, or a forecast in which nothing would
//! be done, removes it.

use crate::clock::Clock;
use crate::ids::Ids;
use crate::office::{Mutation, Office, system};
use crate::{Error, StoreError};
use argosy_core::access::Caller;
use argosy_core::id::ResourceId;
use argosy_core::incarnation::{Forecast, HistoryLoss, Incarnation, Recovery, Would};
use argosy_core::instance::Reason;
use argosy_core::inventory::{Installation, Orphan};
use argosy_core::plant::{self, Bug};
use argosy_core::pool::pool_name;
use argosy_core::resource::Kind;
use argosy_store::engine::{Engine, Fence};
use argosy_store::view::{Lost, Stored, View};
use argosy_store::{Store, Txn};
use jiff::Timestamp;
use std::collections::BTreeMap;
use std::sync::Arc;
use tracing::{error, warn};

/// Who begins and ends recoveries that nobody asked for.
const SELF: &str = argosy_core::pool::BY;

/// Begins a new incarnation in a backup that is being restored, with every pool of it in recovery.
///
/// # Errors
/// The backup cannot be read or written.
pub async fn restored(engine: Arc<dyn Engine>, clock: Clock, ids: &Ids) -> Result<(), StoreError> {
    let (store, driver) = Store::open(engine).await?;
    let now = clock.now();
    let txn = store.read(|view| {
        let mut txn = Txn::at(now);
        let cause = HistoryLoss::Restored { head: view.revision().0 };
        begin(&mut txn, view, cause, &system("restore"), ids, now);
        txn
    });
    tokio::select! {
        ended = driver.run() => ended,
        committed = store.commit(txn) => committed.map(|_| ()),
    }
}

/// Writes a new incarnation into a transaction, with every pool there is, or was, in recovery.
pub(crate) fn begin(
    txn: &mut Txn,
    view: &View,
    cause: HistoryLoss,
    caller: &Caller,
    ids: &Ids,
    now: Timestamp,
) {
    let why = cause.to_string();
    let known = view.installation();
    let lost = || view.lost().and_then(|lost| lost.installation.as_deref());
    let before = known.map(|known| &*known.value).or_else(lost).cloned();
    let before = before.unwrap_or_else(|| Installation {
        id: ids.token(now),
        since: now,
        incarnation: Incarnation::default(),
    });
    let incarnation = before.incarnation.next(cause.clone(), now);
    let number = incarnation.number;
    let after = Arc::new(Installation { incarnation, ..before });
    let change = match known {
        Some(known) => Mutation::update("lose-history", known, after),
        None => Mutation { action: "lose-history", ..Mutation::create(after) },
    };
    Office::put(txn, change.because(&why), caller, now);
    for (pool, (tenant, pool_name)) in pools(view) {
        let (incarnation, since, cause) = (number, now, cause.clone());
        let forecast = None;
        let after =
            Arc::new(Recovery { pool, tenant, pool_name, incarnation, since, cause, forecast });
        let change = match view.recovery(pool) {
            Some(before) => Mutation::update("recover", before, after),
            None => Mutation { action: "recover", ..Mutation::create(after) },
        };
        Office::put(txn, change.because(&why), caller, now);
    }
}

/// Every pool, and those that are gone and have left machines behind; with their tenant and name.
fn pools(view: &View) -> BTreeMap<ResourceId, (String, String)> {
    let live = view.instances().map(|record| &record.value).filter(|it| !it.state.is_over());
    let left = live.map(|record| (record.pool, (record.tenant.clone(), record.pool_name.clone())));
    let mut pools: BTreeMap<_, _> = left.collect();
    pools.extend(view.resources(Kind::NodePool).map(|pool| {
        let pool = &pool.value;
        let cluster = pool.owner.and_then(|owner| view.resource(owner));
        let name = match cluster {
            Some(cluster) => pool_name(&cluster.value.name, &pool.name),
            None => pool.name.to_string(),
        };
        (pool.id, (pool.tenant.clone(), name))
    }));
    pools
}

/// Begins a new incarnation because a provider has a machine that the store should know; under the lease of who
/// found it.
pub(crate) async fn unknown_machine(
    office: &Office,
    fence: &Fence,
    cause: HistoryLoss,
) -> Result<(), Error> {
    let decide = |view: &View, now: Timestamp| {
        let mut txn = Txn::at(now);
        txn.fence(fence.clone());
        begin(&mut txn, view, cause.clone(), &system(SELF), &office.ids, now);
        Ok((Some(txn), ()))
    };
    office.decide(decide).await?;
    tell(&cause);
    Ok(())
}

/// Begins a new incarnation if this process has seen commits that the store does not have, and nobody has begun one
/// for that.
pub(crate) async fn after_loss(office: &Office) -> Result<(), Error> {
    let decide = |view: &View, now: Timestamp| {
        let Some(lost) = view.lost() else { return Ok((None, None)) };
        let mut txn = Txn::at(now);
        begin(&mut txn, view, cause_of(lost), &system(SELF), &office.ids, now);
        Ok((Some(txn), Some(cause_of(lost))))
    };
    if let (_, Some(cause)) = office.decide(decide).await? {
        tell(&cause);
    }
    Ok(())
}

fn cause_of(lost: &Lost) -> HistoryLoss {
    HistoryLoss::ServerAhead { seen: lost.seen.0, head: lost.head.0 }
}

fn tell(cause: &HistoryLoss) {
    error!(%cause, "history was lost; every pool is in recovery and terminates nothing");
}

/// Why nothing may be done in a pool, if it is in recovery.
pub(crate) fn held(view: &View, pool: ResourceId) -> Option<String> {
    if plant::has(Bug::NoRecovery) {
        return None;
    }
    match view.recovery(pool) {
        Some(recovery) => Some(recovery.value.sentence()),
        // Its document is written in a moment.
        None => view.lost().map(|lost| format!("in recovery: {}", cause_of(lost))),
    }
}

/// Why a machine without a record may not be terminated, if its pool is in recovery, or nobody knows its pool and any
/// is.
pub(crate) fn held_orphan(view: &View, orphan: &Orphan) -> Option<String> {
    match orphan.tags.pool.filter(|pool| view.resource(*pool).is_some()) {
        Some(pool) => held(view, pool),
        None => {
            let any = view.recoveries().next().map(|recovery| recovery.value.pool);
            any.and_then(|pool| held(view, pool))
        }
    }
}

/// Makes a transaction fail if a recovery of a pool begins before it is committed.
pub(crate) fn stay_clear(txn: &mut Txn, pool: ResourceId) {
    if plant::has(Bug::NoRecovery) {
        return;
    }
    txn.absent(&Recovery {
        pool,
        tenant: String::new(),
        pool_name: String::new(),
        incarnation: 0,
        since: Timestamp::UNIX_EPOCH,
        cause: HistoryLoss::Restored { head: 0 },
        forecast: None,
    });
}

/// Ends the recovery of a pool in a transaction. What was to go before the history was lost is decided anew, with a
/// drain of its own.
pub(crate) fn end(
    txn: &mut Txn,
    view: &View,
    recovery: &Stored<Recovery>,
    (action, reason): (&'static str, &str),
    caller: &Caller,
    now: Timestamp,
) -> Result<(), Error> {
    for record in view.instances_of(recovery.value.pool) {
        let departs = record.value.departure.as_ref();
        let early = departs.is_some_and(|departure| departure.since <= recovery.value.since);
        if let Some(after) = early.then(|| record.value.staying()).flatten() {
            let change = Mutation::update("stay", record, Arc::new(after)).because(reason);
            Office::write_instance(txn, change, caller, now)?;
        }
    }
    let change = Mutation::remove(action, recovery, Some(reason.to_owned()));
    Office::put(txn, change, caller, now);
    Ok(())
}

/// Writes down what a pool would do. Where that is nothing, or nobody has to confirm it, its recovery ends.
pub(crate) async fn foretold(
    office: &Office,
    fence: &Fence,
    pool: ResourceId,
    forecast: &Forecast,
) -> Result<(), Error> {
    let automatic = office.settings.machines.recover_automatically;
    let decide = |view: &View, now: Timestamp| {
        let Some(recovery) = view.recovery(pool) else { return Ok((None, false)) };
        let mut txn = Txn::at(now);
        txn.fence(fence.clone());
        if forecast.is_nothing() || automatic && forecast.waits_for.is_none() {
            let why = if forecast.is_nothing() { "nothing would be done" } else { AUTOMATIC };
            end(&mut txn, view, recovery, ("recovered", why), &system(SELF), now)?;
            return Ok((Some(txn), true));
        }
        if recovery.value.forecast.as_ref() == Some(forecast) {
            return Ok((None, false));
        }
        let forecast = Some(forecast.clone());
        let after = Arc::new(Recovery { forecast, ..(*recovery.value).clone() });
        let change = Mutation::update("foretell", recovery, after);
        Office::put(&mut txn, change, &system(SELF), now);
        Ok((Some(txn), false))
    };
    if let (_, true) = office.decide(decide).await? {
        warn!(%pool, %forecast, "a pool has left recovery");
    }
    Ok(())
}

/// Why a recovery ended that nobody confirmed although something would be done.
const AUTOMATIC: &str = "machines.recover_automatically is set";

/// What would become of the machines of a pool that is gone.
pub(crate) fn forecast_of_gone(view: &View, pool: ResourceId, unlisted: Option<&str>) -> Forecast {
    let waits_for = unlisted.map(|name| format!("the first listing of the machines at {name}"));
    let mut forecast = Forecast { waits_for, ..Forecast::default() };
    for record in view.instances_of(pool).filter(|record| !record.value.state.is_over()) {
        forecast.add(Would::Terminate {
            instance: record.value.id.clone(),
            drain: view.node(record.value.id.as_str()).is_some(),
            reason: Reason::PoolDeleted.to_string(),
        });
    }
    forecast
}
