//! What talks to a provider: each beside the desk, and each writes down what came of it.

use super::shelf::{Guarding, Slots};
use super::{Bench, Ended, SELF, books, node_id};
use crate::Error;
use crate::provider::Provider;
use crate::recovery;
use crate::stats::MachineAlarm;
use argosy_core::gate::{self, Guards};
use argosy_core::instance::{Instance, InstanceId, ListingFacts, Next, State};
use argosy_core::inventory::Orphan;
use argosy_core::machine::{MachineId, Order, Trouble};
use argosy_core::pool::Buy;
use jiff::{SignedDuration, Timestamp};
use std::sync::Arc;
use std::time::Duration;
use tracing::{error, info, warn};

/// How long a call to a provider may take, whatever it promises itself. Listings of large accounts have many
/// pages.
const CALL_MAX: Duration = Duration::from_secs(120);

/// The same for a purchase: well below `argosy_core::instance::SETTLE`, after which a call whose answer was lost
/// must not take effect any more.
const CREATE_MAX: Duration = Duration::from_secs(60);

/// A call that was written down longer ago than this is written down anew before it is made.
const FRESH_FOR: SignedDuration = SignedDuration::from_secs(5);

/// What is to be done about one record.
pub(super) struct Work {
    pub(super) record: Arc<Instance>,
    pub(super) due: Next,
    pub(super) guards: Guarding,
    pub(super) slots: Slots,
}

/// A call that does not go on for ever. What it had begun may have happened.
pub(super) async fn in_time<T>(
    call: impl Future<Output = Result<T, Trouble>>,
) -> Result<T, Trouble> {
    within(CALL_MAX, call).await
}

async fn within<T>(
    time: Duration,
    call: impl Future<Output = Result<T, Trouble>>,
) -> Result<T, Trouble> {
    let late = || Trouble::Unsure(format!("no answer within {} s", time.as_secs()));
    tokio::time::timeout(time, call).await.unwrap_or_else(|_| Err(late()))
}

/// How a job ended whose results are in the store.
pub(super) fn settle(result: Result<(), Error>) -> Ended {
    match result {
        Ok(()) => Ended::Well,
        Err(Error::Store(argosy_store::Error::Fenced)) => Ended::Fenced,
        Err(error) => {
            warn!(%error, "could not write down what became of a machine");
            Ended::Trouble
        }
    }
}

/// Does what is due about one record.
pub(super) async fn run(bench: Arc<Bench>, work: Work) -> Ended {
    let Some(cloud) = bench.clouds.get(&work.record.order.provider).cloned() else {
        return Ended::Well;
    };
    let done = match work.due {
        Next::Call => call_again(&bench, &*cloud, &work).await,
        Next::Look => look(&bench, &*cloud, &work).await,
        Next::Terminate => terminate(&bench, &*cloud, &work).await,
        Next::Stale => stale(&bench, &*cloud, &work.record).await,
        Next::Alarm => alarm(&bench, &work.record).await,
        Next::Forget | Next::Wait(_) | Next::Nothing => Ok(()),
    };
    settle(done)
}

/// The call that belongs to a record that was just written down.
pub(super) async fn first_call(bench: Arc<Bench>, work: Work) -> Ended {
    let Some(cloud) = bench.clouds.get(&work.record.order.provider).cloned() else {
        return Ended::Well;
    };
    argosy_store::failpoint::hit("machine-ordered");
    settle(call(&bench, &*cloud, &work).await)
}

/// One more call for a record: its intent first.
async fn call_again(bench: &Bench, cloud: &dyn Provider, work: &Work) -> Result<(), Error> {
    let again = |record: &Instance, now: Timestamp| Some(record.called(now));
    if books::amend(bench, &work.record, "call", again).await? {
        call(bench, cloud, work).await?;
    }
    Ok(())
}

async fn call(bench: &Bench, cloud: &dyn Provider, work: &Work) -> Result<(), Error> {
    let _slot = work.slots.purchases.acquire().await;
    let record = &work.record;
    // It may have waited behind many others: whether it is still wanted, and when it was called for, is asked
    // again, or a listing from before the call could prove that there is nothing.
    if !still_wanted(bench, record).await? {
        return Ok(());
    }
    let purchase = record.purchase(bench.installation, books::labels(bench, record));
    // Whoever leads now may have found that nothing was bought, and bought it.
    if !bench.leads().await {
        return Err(argosy_store::Error::Fenced.into());
    }
    let answer = within(CREATE_MAX, cloud.create(&purchase)).await;
    argosy_store::failpoint::hit("machine-created");
    match &answer {
        Ok(machine) => info!(instance = %record.id, machine = %machine.id, "bought a machine"),
        Err(trouble) => {
            bench.office.stats.machine_failures.add_one();
            warn!(instance = %record.id, %trouble, "could not buy a machine");
        }
    }
    books::answered(bench, record, &answer).await
}

/// Whether a purchase is still to be made; one that waited for long is called for anew.
async fn still_wanted(bench: &Bench, record: &Instance) -> Result<bool, Error> {
    let now = bench.office.clock.now();
    if bench.office.store.read(|view| recovery::held(view, record.pool).is_some()) {
        return Ok(false);
    }
    let called_at =
        bench.office.store.read(|view| match &view.instance(record.id.as_str())?.value.state {
            State::Provisioning(buying) => buying.called_at,
            State::AwaitingNode { .. }
            | State::Running { .. }
            | State::Terminating(_)
            | State::Terminated { .. }
            | State::Failed { .. } => None,
        });
    match called_at {
        None => Ok(false),
        Some(at) if now.duration_since(at) <= FRESH_FOR => Ok(true),
        Some(_) => {
            let again = |record: &Instance, now: Timestamp| {
                matches!(record.state, State::Provisioning(_)).then(|| record.called(now))
            };
            books::amend(bench, record, "call", again).await
        }
    }
}

/// Looks for the machine of one record.
async fn look(bench: &Bench, cloud: &dyn Provider, work: &Work) -> Result<(), Error> {
    let _slot = work.slots.others.acquire().await;
    let record = &work.record;
    let purchase = record.purchase(bench.installation, books::labels(bench, record));
    let began_at = bench.office.clock.now();
    let found = match in_time(cloud.find(&purchase)).await {
        Ok(found) => found,
        Err(trouble) => return books::look_failed(bench, record, &trouble).await,
    };
    let abilities = cloud.abilities();
    let frozen = bench.office.store.read(|view| {
        view.provider_book(&record.order.provider).is_some_and(|book| book.value.frozen.is_some())
    });
    let facts = ListingFacts { began_at, whole: false, frozen };
    let seen =
        |record: &Instance, now: Timestamp| record.seen(found.as_ref(), facts, &abilities, now);
    books::amend(bench, record, "look", seen).await.map(|_| ())
}

/// Returns a machine, if the gate opens.
async fn terminate(bench: &Bench, cloud: &dyn Provider, work: &Work) -> Result<(), Error> {
    let _slot = work.slots.others.acquire().await;
    // The record as it is now, not as it was when this was decided.
    let id = work.record.id.as_str();
    let found = bench.office.store.read(|view| {
        let record = view.instance(id)?.value.clone();
        let recovery = recovery::held(view, record.pool);
        Some((record, recovery))
    });
    let Some((record, recovery)) = found else { return Ok(()) };
    let guards = Guards {
        installation: bench.installation,
        shown: record.machine().and_then(|machine| work.guards.shown.get(machine)),
        compared: work.guards.compared,
        recovery: recovery.as_deref(),
    };
    let doomed = match gate::release(&record, &guards) {
        Ok(doomed) => doomed,
        Err(held) => return books::held(bench, &record, &held).await,
    };
    if !bench.leads().await {
        return Err(argosy_store::Error::Fenced.into());
    }
    let answer = in_time(cloud.terminate(&doomed)).await;
    argosy_store::failpoint::hit("machine-returned");
    match &answer {
        Ok(()) => info!(instance = %record.id, machine = %doomed.machine(), "returned a machine"),
        Err(trouble) => {
            bench.office.stats.machine_alarms.raise(MachineAlarm::ReturnFailed);
            warn!(instance = %record.id, %trouble, "could not return a machine");
        }
    }
    let asked = |record: &Instance, now: Timestamp| {
        matches!(record.state, State::Terminating(_))
            .then(|| record.asked(answer.as_ref().copied(), now))
    };
    books::amend(bench, &record, "return", asked).await.map(|_| ())
}

/// Gives up on a machine whose node never came, and keeps what it wrote on its console.
async fn stale(bench: &Bench, cloud: &dyn Provider, record: &Arc<Instance>) -> Result<(), Error> {
    let console = match record.machine() {
        Some(machine) if cloud.abilities().console => {
            in_time(cloud.console(machine)).await.unwrap_or_else(|trouble| trouble.to_string())
        }
        Some(_) | None => String::new(),
    };
    books::stale(bench, record, &console).await
}

/// Says once that a machine which should be gone still costs.
async fn alarm(bench: &Bench, record: &Arc<Instance>) -> Result<(), Error> {
    bench.office.stats.machine_alarms.raise(MachineAlarm::Overdue);
    let cost = record.order.price_per_hour;
    error!(instance = %record.id, ?cost, "a machine that was returned is still there, and may cost");
    let alarmed = |record: &Instance, _: Timestamp| record.alarmed();
    books::amend(bench, record, "alarm", alarmed).await.map(|_| ())
}

/// Writes down that the node of a machine registered.
pub(super) async fn registered(bench: Arc<Bench>, record: Arc<Instance>) -> Ended {
    settle(books::registered(&bench, &record, &node_id(&record)).await)
}

/// Boots a machine again.
pub(super) async fn reboot(
    bench: Arc<Bench>,
    id: InstanceId,
    machine: MachineId,
    provider: String,
) -> Ended {
    let Some(cloud) = bench.clouds.get(&provider).cloned() else { return Ended::Well };
    if !bench.leads().await {
        return Ended::Fenced;
    }
    // Whether it helped is the node's to show.
    let outcome = match in_time(cloud.reboot(&machine)).await {
        Ok(()) => {
            info!(instance = %id, "the provider boots a machine again");
            return Ended::Well;
        }
        Err(trouble) => trouble.to_string(),
    };
    bench.office.stats.machine_alarms.raise(MachineAlarm::RebootFailed);
    warn!(instance = %id, outcome, "could not boot a machine again");
    let Some(record) = bench
        .office
        .store
        .read(|view| view.instance(id.as_str()).map(|record| record.value.clone()))
    else {
        return Ended::Well;
    };
    let noted = |record: &Instance, _: Timestamp| record.outcome_of_last(&outcome);
    settle(books::amend(&bench, &record, "reboot", noted).await.map(|_| ()))
}

/// Ends a machine that nobody has a record of, because somebody asked for it.
pub(super) async fn reap(
    bench: Arc<Bench>,
    cloud: Arc<dyn Provider>,
    orphan: Orphan,
    guarding: Guarding,
) -> Ended {
    let recovery = bench.office.store.read(|view| recovery::held_orphan(view, &orphan));
    let guards = Guards {
        installation: bench.installation,
        shown: guarding.shown.get(&orphan.machine),
        compared: guarding.compared,
        recovery: recovery.as_deref(),
    };
    let doomed = match gate::reap(&orphan, &guards) {
        Ok(doomed) => doomed,
        Err(held) => {
            bench.office.stats.machine_alarms.raise(MachineAlarm::ReapFailed);
            warn!(machine = %orphan.machine, %held, "did not reap a machine");
            return Ended::Well;
        }
    };
    if !bench.leads().await {
        return Ended::Fenced;
    }
    match in_time(cloud.terminate(&doomed)).await {
        // That it is gone is a listing's to say.
        Ok(()) => info!(machine = %orphan.machine, by = SELF, "reaped a machine that nobody knew"),
        Err(trouble) => {
            bench.office.stats.machine_alarms.raise(MachineAlarm::ReapFailed);
            warn!(machine = %orphan.machine, %trouble, "could not reap a machine");
        }
    }
    Ended::Well
}

/// Asks whether there is room for what is to be bought.
pub(super) fn room(
    bench: &Arc<Bench>,
    buy: Vec<Buy>,
) -> impl Future<Output = Ended> + Send + 'static + use<> {
    let bench = bench.clone();
    async move {
        let mut asked: Vec<(&Buy, u32)> = Vec::new();
        for one in &buy {
            match asked.iter_mut().find(|(other, _)| same_quota(&other.order, &one.order)) {
                Some((_, count)) => *count += 1,
                None => asked.push((one, 1)),
            }
        }
        for (one, count) in asked {
            let Some(cloud) = bench.clouds.get(&one.order.provider) else { continue };
            if let Err(trouble) = in_time(cloud.room(&one.order, count)).await {
                // Not to know is no reason not to try.
                if matches!(trouble, Trouble::Quota { .. } | Trouble::Capacity { .. }) {
                    let refused = one.clone();
                    return Ended::Room(buy, Err((refused, trouble)));
                }
            }
        }
        Ended::Room(buy, Ok(()))
    }
}

/// Allowances are of a region, whatever the zone.
fn same_quota(one: &Order, other: &Order) -> bool {
    let of = |order: &Order| {
        let Order { provider, region, machine_type, spot, .. } = order.clone();
        (provider, region, machine_type, spot)
    };
    of(one) == of(other)
}
