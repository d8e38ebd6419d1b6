//! What is written down about machines: records, and the books of pools and providers, each change with its
//! audit record and under our lease.

use super::shelf::Shelf;
use super::step::{draw_permit, put_book};
use super::{Bench, SELF};
use crate::Error;
use crate::command::sheet::abandon;
use crate::office::{Mutation, Office, system};
use crate::recovery;
use crate::safety::Draws;
use crate::stats::MachineAlarm;
use argosy_core::access::Caller;
use argosy_core::backoff;
use argosy_core::gate::Held;
use argosy_core::id::ResourceId;
use argosy_core::incarnation::{HistoryLoss, Horizon, Incarnation, proves_loss};
use argosy_core::instance::{Instance, InstanceId, Reason, State, Terminating};
use argosy_core::invariant::Cause;
use argosy_core::inventory::{
    Comparison, Installation, Known, Listing, Orphan, Paused, PoolFacts, ProviderBook,
    compare as judge,
};
use argosy_core::machine::{Machine, MachineId, Tags, Trouble};
use argosy_core::node::{Duty, Liveness, NodeId, is_owned};
use argosy_core::pool::{self, Buy, PoolBook, PoolSpec, pool_name};
use argosy_core::resource::Kind;
use argosy_store::engine::Fence;
use argosy_store::view::{Stored, View};
use argosy_store::{Revision, Txn};
use jiff::{SignedDuration, Timestamp};
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Duration;
use tracing::{error, info, warn};
use uuid::Uuid;

/// How many documents one commit changes: other commits wait behind it.
const BATCH_MAX: usize = 500;

/// The first wait after a provider would not have us; doubles.
const PAUSE_FIRST: SignedDuration = SignedDuration::from_secs(15);
/// The longest: people who mended the credentials see it within this time.
const PAUSE_MAX: SignedDuration = SignedDuration::from_mins(5);

/// How soon, and how seldom, the gate is asked again that did not open.
const HELD_FOR: (SignedDuration, SignedDuration) =
    (SignedDuration::from_secs(10), SignedDuration::from_mins(5));

/// An orphan that somebody wants gone is left alone for so long after it was first seen: what looks like
/// nobody's may be another process's newest.
const QUARANTINE: SignedDuration = SignedDuration::from_mins(10);

/// A node that spoke so lately is there: longer than any pause between heartbeats that we ask for.
const HEARD_WITHIN: Duration = Duration::from_mins(5);

/// Which control plane this is; made up once.
pub(super) async fn installation(office: &Office, fence: &Fence) -> Result<Uuid, Error> {
    let decide = |view: &View, now: Timestamp| {
        if let Some(known) = view.installation() {
            return Ok((None, known.value.id));
        }
        let id = office.ids.token(now);
        let mut txn = Txn::at(now);
        txn.fence(fence.clone());
        let change = Mutation::create(Arc::new(Installation {
            id,
            since: now,
            incarnation: Incarnation::default(),
        }));
        Office::put(&mut txn, change, &system(SELF), now);
        Ok((Some(txn), id))
    };
    office.decide(decide).await.map(|(_, id)| id)
}

/// Labels of a machine's node.
pub(super) fn labels(bench: &Bench, record: &Instance) -> BTreeMap<String, String> {
    let catalog = &bench.office.settings.catalog;
    bench.office.store.read(|view| {
        let Some(pool) = view.resource(record.pool) else { return BTreeMap::new() };
        let cluster = pool.value.owner.and_then(|owner| view.resource(owner));
        let own = pool.value.labels.iter().map(|(key, value)| (key.to_owned(), value.to_owned()));
        let mut labels: BTreeMap<String, String> = own.collect();
        if let Some(cluster) = cluster
            && let Ok(spec) = PoolSpec::read(&pool.value.spec, &cluster.value.spec, catalog)
        {
            labels.extend(spec.labels);
        }
        // A node that says to whose team it belongs is refused: that is the server's to know.
        labels.retain(|key, _| !is_owned(key));
        labels
    })
}

/// Changes a record as it is now; false if it is gone, or nothing is to be changed.
pub(super) async fn amend(
    bench: &Bench,
    record: &Instance,
    action: &'static str,
    change: impl Fn(&Instance, Timestamp) -> Option<Instance>,
) -> Result<bool, Error> {
    let decide = |view: &View, now: Timestamp| {
        let Some(before) = view.instance(record.id.as_str()) else { return Ok((None, false)) };
        let Some(after) = change(&before.value, now) else { return Ok((None, false)) };
        if after == *before.value {
            return Ok((None, false));
        }
        let mut txn = fenced(bench, now);
        put(&mut txn, view, action, before, after, now)?;
        Ok((Some(txn), true))
    };
    bench.office.decide(decide).await.map(|(_, changed)| changed)
}

pub(super) fn fenced(bench: &Bench, now: Timestamp) -> Txn {
    let mut txn = Txn::at(now);
    txn.fence(bench.fence.clone());
    txn
}

/// Adds a record as it should be, and what follows for its node.
fn put(
    txn: &mut Txn,
    view: &View,
    action: &'static str,
    before: &Stored<Instance>,
    after: Instance,
    now: Timestamp,
) -> Result<(), Error> {
    let caller = system(SELF);
    let left = match &after.state {
        State::Terminating(leaving) => Some(leaving.reason.to_string()),
        State::Terminated { reason, .. } => Some(reason.to_string()),
        State::Failed { failure, .. } => Some(failure.message.clone()),
        State::Provisioning(_) | State::AwaitingNode { .. } | State::Running { .. } => None,
    };
    // However a machine comes to go, its node goes with it.
    if let Some(why) = &left {
        end_node(txn, view, after.id.as_str(), why, &caller, now)?;
    }
    let mut change = Mutation::update(action, before, Arc::new(after));
    change.reason = left;
    Office::write_instance(txn, change, &caller, now)
}

/// Marks the node of a machine that goes.
fn end_node(
    txn: &mut Txn,
    view: &View,
    id: &str,
    why: &str,
    caller: &Caller,
    now: Timestamp,
) -> Result<(), Error> {
    let Some(node) = view.node(id) else { return Ok(()) };
    if matches!(node.value.duty, Duty::Terminated(_)) {
        return Ok(());
    }
    abandon(txn, view, &node.value.id, caller, now)?;
    let (after, entries) = node.value.ended(SELF, why, now);
    let change = Mutation::update("terminate", node, Arc::new(after)).because(why);
    Office::write_node(txn, change, Cause::Other, &entries, caller, now)
}

/// What a provider answered to a purchase, and what follows for the books.
pub(super) async fn answered(
    bench: &Bench,
    record: &Instance,
    answer: &Result<Machine, Trouble>,
) -> Result<(), Error> {
    let decide = |view: &View, now: Timestamp| {
        let Some(before) = view.instance(record.id.as_str()) else { return Ok((None, ())) };
        let after = before.value.answered(answer.as_ref(), now);
        let mut txn = fenced(bench, now);
        put(&mut txn, view, "answer", before, after, now)?;
        let book = view.pool_book(record.pool);
        let fresh = PoolBook::new(record.pool);
        let known = book.map_or(&fresh, |book| &*book.value);
        let after = match answer {
            Ok(_) => pool::bought(known, &record.order),
            Err(trouble) => Some(pool::failed(known, &record.order, record.number, trouble, now)),
        };
        if let Some(after) = after.filter(|after| after != known) {
            put_book(&mut txn, book, after, &system(SELF), now);
        }
        let trouble = answer.as_ref().err();
        mind_provider(bench, &mut txn, view, &record.order.provider, trouble, now);
        Ok((Some(txn), ()))
    };
    bench.office.decide(decide).await.map(|_| ())
}

/// Keeps the book of a provider: paused while it does not take our credentials (G8).
fn mind_provider(
    bench: &Bench,
    txn: &mut Txn,
    view: &View,
    name: &str,
    trouble: Option<&Trouble>,
    now: Timestamp,
) {
    let before = view.provider_book(name);
    let fresh = ProviderBook { name: name.to_owned(), ..ProviderBook::default() };
    let known = before.map_or(&fresh, |book| &*book.value);
    let paused = match trouble {
        Some(trouble @ Trouble::Credentials(_)) => {
            let failures = known.paused.as_ref().map_or(0, |paused| paused.failures) + 1;
            let wait = backoff::delay(name, failures, PAUSE_FIRST, PAUSE_MAX);
            Some(Paused {
                since: known.paused.as_ref().map_or(now, |paused| paused.since),
                trouble: trouble.clone(),
                retry_at: now.saturating_add(wait).unwrap_or(now),
                failures,
            })
        }
        // Anything else that it says, it says to somebody whom it knows.
        Some(Trouble::Unsure(_) | Trouble::Unreachable(_) | Trouble::Throttled { .. }) => {
            known.paused.clone()
        }
        Some(_) | None => None,
    };
    if paused == known.paused {
        return;
    }
    match &paused {
        Some(paused) => {
            bench.office.stats.machine_alarms.raise(MachineAlarm::Paused);
            error!(provider = name, trouble = %paused.trouble, "nothing is bought there");
        }
        None => info!(provider = name, "it takes our credentials again"),
    }
    put_provider(txn, before, ProviderBook { paused, ..known.clone() }, now);
}

fn put_provider(
    txn: &mut Txn,
    before: Option<&Stored<ProviderBook>>,
    after: ProviderBook,
    now: Timestamp,
) {
    let change = match before {
        Some(before) => Mutation::update("book", before, Arc::new(after)),
        None => Mutation::create(Arc::new(after)),
    };
    Office::put(txn, change, &system(SELF), now);
}

/// A provider could not be asked at all.
pub(super) async fn provider_failed(
    bench: &Bench,
    name: &str,
    trouble: &Trouble,
) -> Result<(), Error> {
    let decide = |view: &View, now: Timestamp| {
        let mut txn = fenced(bench, now);
        mind_provider(bench, &mut txn, view, name, Some(trouble), now);
        Ok(((!txn.is_empty()).then_some(txn), ()))
    };
    bench.office.decide(decide).await.map(|_| ())
}

/// A record could not be looked for: it is tried again.
pub(super) async fn look_failed(
    bench: &Bench,
    record: &Instance,
    trouble: &Trouble,
) -> Result<(), Error> {
    bench.office.stats.machine_alarms.raise(MachineAlarm::LookFailed);
    warn!(instance = %record.id, %trouble, "could not look for a machine");
    let later = |record: &Instance, now: Timestamp| Some(record.unseen(trouble, now));
    amend(bench, record, "look", later).await?;
    provider_failed(bench, &record.order.provider, trouble).await
}

/// The gate did not open: it is tried again.
pub(super) async fn held(bench: &Bench, record: &Instance, held: &Held) -> Result<(), Error> {
    bench.office.stats.machine_alarms.raise(MachineAlarm::Held);
    warn!(instance = %record.id, %held, "did not return a machine");
    let later = |record: &Instance, now: Timestamp| {
        let State::Terminating(leaving) = &record.state else { return None };
        let age = now.duration_since(leaving.since) / 2;
        let wait = age.clamp(HELD_FOR.0, HELD_FOR.1);
        // The provider was not asked, so that is not counted as a call.
        let leaving = Terminating {
            retry_at: now.checked_add(wait).ok(),
            trouble: Some(Trouble::Unable(held.to_string())),
            ..leaving.clone()
        };
        Some(Instance { state: State::Terminating(leaving), ..record.clone() })
    };
    amend(bench, record, "hold", later).await.map(|_| ())
}

/// There is no room for what a pool wants.
pub(super) async fn no_room(
    bench: &Bench,
    id: ResourceId,
    buy: &Buy,
    trouble: &Trouble,
) -> Result<(), Error> {
    let decide = |view: &View, now: Timestamp| {
        if view.resource(id).is_none() {
            return Ok((None, ()));
        }
        let book = view.pool_book(id);
        let fresh = PoolBook::new(id);
        let known = book.map_or(&fresh, |book| &*book.value);
        let after = pool::failed(known, &buy.order, buy.number, trouble, now);
        let mut txn = fenced(bench, now);
        put_book(&mut txn, book, after, &system(SELF), now);
        Ok((Some(txn), ()))
    };
    bench.office.decide(decide).await.map(|_| ())
}

/// Gives up on a machine whose node never came.
pub(super) async fn stale(bench: &Bench, record: &Instance, console: &str) -> Result<(), Error> {
    let decide = |view: &View, now: Timestamp| {
        let Some(before) = view.instance(record.id.as_str()) else { return Ok((None, None)) };
        // It may have come while its console was read.
        let waits = matches!(before.value.state, State::AwaitingNode { .. });
        // Nor is silence held against anybody that is excused since.
        if !waits || view.outlook().is_some() || view.node(record.id.as_str()).is_some() {
            return Ok((None, None));
        }
        let mut draws = Draws::default();
        let permit = match draw_permit(view, &mut draws, &before.value, Reason::Stale) {
            Ok(permit) => permit,
            Err(held) => return Ok((None, Some(held))),
        };
        let Some(after) = before.value.leaving(permit, now) else { return Ok((None, None)) };
        let after = after.kept_console(console).unwrap_or(after);
        let mut txn = fenced(bench, now);
        put(&mut txn, view, "stale", before, after, now)?;
        draws.write(&mut txn, view, &system(SELF), now);
        Ok((Some(txn), None))
    };
    match bench.office.decide(decide).await?.1 {
        Some(held) => warn!(instance = %record.id, %held, "a machine never registered and stays"),
        None => {
            bench.office.stats.machines_stale.add_one();
            warn!(instance = %record.id, "a machine never registered and is returned");
        }
    }
    Ok(())
}

/// The node of a machine registered.
pub(super) async fn registered(
    bench: &Bench,
    record: &Instance,
    node: &NodeId,
) -> Result<(), Error> {
    let decide = |view: &View, now: Timestamp| {
        let Some(before) = view.instance(record.id.as_str()) else { return Ok((None, ())) };
        let Some(after) = before.value.registered(node, now) else { return Ok((None, ())) };
        let mut txn = fenced(bench, now);
        put(&mut txn, view, "register", before, after, now)?;
        let book = view.pool_book(record.pool);
        if let Some(book) = book
            && let Some(after) = pool::registered(&book.value, &before.value, now)
        {
            put_book(&mut txn, Some(book), after, &system(SELF), now);
        }
        Ok((Some(txn), ()))
    };
    bench.office.decide(decide).await.map(|_| ())
}

/// The node of a machine that runs is not known any more, or is known again.
pub(super) async fn accompanied(bench: &Bench, record: &Instance) -> Result<(), Error> {
    let decide = |view: &View, now: Timestamp| {
        let Some(before) = view.instance(record.id.as_str()) else { return Ok((None, None)) };
        let node = view.node(record.id.as_str());
        let known = node.is_some_and(|node| node.value.tenant == record.tenant);
        let Some(after) = before.value.accompanied(known, now) else { return Ok((None, None)) };
        let mut txn = fenced(bench, now);
        put(&mut txn, view, "accompany", before, after, now)?;
        Ok((Some(txn), Some(known)))
    };
    match bench.office.decide(decide).await?.1 {
        Some(false) => {
            bench.office.stats.machine_alarms.raise(MachineAlarm::Nodeless);
            warn!(instance = %record.id, "the node of a machine is not known any more");
        }
        Some(true) => info!(instance = %record.id, "the node of a machine has registered again"),
        None => {}
    }
    Ok(())
}

/// Forgets a record that is over, and its node with it.
pub(super) async fn forget(bench: &Bench, record: &Instance) -> Result<(), Error> {
    let caller = system(SELF);
    let decide = |view: &View, now: Timestamp| {
        let Some(before) = view.instance(record.id.as_str()) else { return Ok((None, false)) };
        if !before.value.state.is_over() {
            return Ok((None, false));
        }
        let mut txn = fenced(bench, now);
        let node = view.node(record.id.as_str());
        let node = node.filter(|node| matches!(node.value.duty, Duty::Terminated(_)));
        if let Some(node) = node {
            abandon(&mut txn, view, &node.value.id, &caller, now)?;
            let change = Mutation::remove("forget", node, None);
            Office::write_node(&mut txn, change, Cause::Other, &[], &caller, now)?;
        }
        Office::write_instance(&mut txn, Mutation::remove("forget", before, None), &caller, now)?;
        Ok((Some(txn), node.is_some()))
    };
    let (_, node) = bench.office.decide(decide).await?;
    if node {
        bench.board.remove(record.id.as_str());
    }
    Ok(())
}

/// Compares a provider's machines with our records, and writes down what follows. Says which orphans are to
/// go now.
pub(super) async fn compare(
    bench: &Bench,
    shelf: &mut Shelf,
    provider: &str,
    machines: Vec<Machine>,
    began_at: Timestamp,
) -> Result<Vec<Orphan>, Error> {
    let (found, seen) = judged(bench, shelf, provider, &machines, began_at);
    let Comparison {
        instances,
        mut adopted,
        mut orphans,
        forgotten,
        book,
        notices,
        alarms,
        unknown,
    } = found;
    // Two entries of the configuration may be one account: what the other one bought is nobody's orphan.
    let elsewhere = |id: &InstanceId| {
        bench.office.store.read(|view| {
            let record = view.instance(id.as_str());
            record.is_some_and(|record| {
                record.value.order.provider != provider && !record.value.state.is_over()
            })
        })
    };
    orphans.retain(|orphan| !orphan.tags.instance.as_ref().is_some_and(elsewhere));
    adopted.retain(|record| !elsewhere(&record.id));
    let unknown = unknown.iter().filter(|(_, tags)| !tags.instance.as_ref().is_some_and(elsewhere));
    if let Some(machine) = proof_of_loss(bench, unknown) {
        // Before they are adopted, so that no pool has too many for a moment.
        let cause = HistoryLoss::UnknownMachine { provider: provider.to_owned(), machine };
        recovery::unknown_machine(&bench.office, &bench.fence, cause).await?;
    }
    bench.office.stats.machine_alarms.add(MachineAlarm::Listing, alarms.len());
    for alarm in &alarms {
        error!(provider, alarm, "a listing shows what should not be");
    }
    for (id, notice) in notices {
        let known = seen.records.get(&id).is_some_and(|record| record.value.notice.is_some());
        if !known {
            bench.office.stats.machine_alarms.raise(MachineAlarm::Notice);
            warn!(instance = %id, ?notice, "the provider gives notice");
        }
    }
    for batch in instances.chunks(BATCH_MAX) {
        keep(bench, batch, &seen.records).await?;
    }
    for record in &adopted {
        warn!(instance = %record.id, provider, "adopted a machine of ours that no record knew");
    }
    for batch in adopted.chunks(BATCH_MAX) {
        adopt(bench, batch).await?;
    }
    keep_orphans(bench, provider, orphans, forgotten, (book, seen.book)).await?;
    shelf.listed(machines);
    let now = bench.office.clock.now();
    Ok(bench.office.store.read(|view| {
        let theirs = view.orphans().filter(|orphan| orphan.value.provider == provider);
        let due = theirs.filter(|orphan| {
            let quarantined = now.duration_since(orphan.value.first_seen) < QUARANTINE;
            orphan.value.reap.is_some() && !quarantined
        });
        due.map(|orphan| (*orphan.value).clone()).collect()
    }))
}

/// A machine that the store would know if it had all its history.
fn proof_of_loss<'a>(
    bench: &Bench,
    unknown: impl Iterator<Item = &'a (MachineId, Tags)>,
) -> Option<MachineId> {
    let (now, store) = (bench.office.clock.now(), &bench.office.store);
    let incarnation = store.read(|view| view.installation().map(|it| it.value.incarnation.clone()));
    let horizon = Horizon {
        opened_at: store.opened_at(),
        incarnation_since: incarnation.and_then(|incarnation| incarnation.since),
        kept: bench.settings().limits.kept,
    };
    let mut proofs = unknown
        .filter(|(_, tags)| tags.token.is_some_and(|token| proves_loss(token, &horizon, now)));
    proofs.next().map(|(machine, _)| machine.clone())
}

/// A provider's records as a listing was compared with them.
type SeenRecords = BTreeMap<InstanceId, Stored<Instance>>;

/// What a listing was compared with.
struct SeenThen {
    records: SeenRecords,
    /// The book's revision, if there was one.
    book: Option<Revision>,
}

fn judged(
    bench: &Bench,
    shelf: &Shelf,
    provider: &str,
    machines: &[Machine],
    began_at: Timestamp,
) -> (Comparison, SeenThen) {
    // Copied, so that nobody waits for us to think.
    let (records, orphans, book, pools, heard) = bench.office.store.read(|view| {
        let theirs = view.instances().filter(|record| record.value.order.provider == provider);
        let orphans = view.orphans().filter(|orphan| orphan.value.provider == provider);
        let pools = view.resources(Kind::NodePool).filter_map(|pool| {
            let cluster = view.resource(pool.value.owner?)?;
            let facts = PoolFacts {
                tenant: pool.value.tenant.clone(),
                pool_name: pool_name(&cluster.value.name, &pool.value.name),
                deleting: pool.value.deletion.is_some(),
            };
            Some((pool.value.id, facts))
        });
        (
            theirs.map(|record| (record.value.id.clone(), record.clone())).collect::<SeenRecords>(),
            orphans.map(|orphan| orphan.value.clone()).collect::<Vec<_>>(),
            view.provider_book(provider).cloned(),
            pools.collect::<BTreeMap<ResourceId, PoolFacts>>(),
            heard(bench, view, provider),
        )
    });
    let fresh = ProviderBook { name: provider.to_owned(), ..ProviderBook::default() };
    let pool = |id: ResourceId| pools.get(&id).cloned();
    let price = |machine: &Machine| shelf.price(machine);
    let known = Known {
        installation: bench.installation,
        instances: records.values().map(|record| &*record.value).collect(),
        orphans: orphans.iter().map(|orphan| &**orphan).collect(),
        book: book.as_ref().map_or(&fresh, |book| &*book.value),
        pool: &pool,
        heard: &|record| heard.contains(&record.id),
        price: &price,
    };
    let listing = Listing { provider, machines, began_at, first: !shelf.compared };
    let found = judge(&listing, &known, &shelf.abilities, bench.office.clock.now());
    (found, SeenThen { book: book.map(|book| book.revision), records })
}

/// The records of a provider whose nodes are heard.
fn heard(bench: &Bench, view: &View, provider: &str) -> HashSet<InstanceId> {
    let (excused, now) = (view.outlook().is_some(), bench.office.clock.monotonic());
    let theirs = view.instances().filter(|record| record.value.order.provider == provider);
    let heard = theirs.filter(|record| {
        let id = record.value.id.as_str();
        let node = view.node(id).filter(|node| node.value.tenant == record.value.tenant);
        let fresh = node.is_some_and(|node| node.value.liveness == Liveness::Fresh);
        // While something excuses silence nobody is marked for it: then what counts is who spoke lately.
        let quiet_for = || bench.board.find(id).and_then(|pulse| pulse.quiet_for(now));
        fresh && (!excused || quiet_for().is_some_and(|time| time < HEARD_WITHIN))
    });
    heard.map(|record| record.value.id.clone()).collect()
}

/// Keeps records as a listing shows them, where nobody else changed them meanwhile.
async fn keep(bench: &Bench, changes: &[Instance], seen: &SeenRecords) -> Result<(), Error> {
    let decide = |view: &View, now: Timestamp| {
        let mut txn = fenced(bench, now);
        for after in changes {
            let Some(before) = view.instance(after.id.as_str()) else { continue };
            // The next listing knows better.
            if seen.get(&after.id).map(|seen| seen.revision) == Some(before.revision)
                && *before.value != *after
            {
                put(&mut txn, view, "list", before, after.clone(), now)?;
            }
        }
        Ok(((!txn.is_empty()).then_some(txn), ()))
    };
    bench.office.decide(decide).await.map(|_| ())
}

async fn adopt(bench: &Bench, adopted: &[Instance]) -> Result<(), Error> {
    let caller = system(SELF);
    let decide = |view: &View, now: Timestamp| {
        let mut txn = fenced(bench, now);
        for record in adopted.iter().filter(|record| view.instance(record.id.as_str()).is_none()) {
            let change = Mutation { action: "adopt", ..Mutation::create(Arc::new(record.clone())) };
            Office::write_instance(&mut txn, change.because(&record.why), &caller, now)?;
        }
        Ok(((!txn.is_empty()).then_some(txn), ()))
    };
    bench.office.decide(decide).await.map(|_| ())
}

async fn keep_orphans(
    bench: &Bench,
    provider: &str,
    orphans: Vec<Orphan>,
    forgotten: Vec<Orphan>,
    (book, seen): (Option<ProviderBook>, Option<Revision>),
) -> Result<(), Error> {
    let caller = system(SELF);
    for orphan in &orphans {
        let (machine, cost) = (&orphan.machine, orphan.price_per_hour);
        warn!(provider, %machine, ?cost, "a machine carries our tag, and no record knows it");
    }
    let decide = |view: &View, now: Timestamp| {
        let mut txn = fenced(bench, now);
        for orphan in &orphans {
            let change = match view.orphan(provider, orphan.machine.as_str()) {
                Some(before) if *before.value == *orphan => continue,
                Some(before) => {
                    // Who asked for its end did so since.
                    let reap = before.value.reap.clone();
                    let after = Orphan { reap, ..orphan.clone() };
                    Mutation::update("list", before, Arc::new(after))
                }
                None => Mutation::create(Arc::new(orphan.clone())),
            };
            Office::put(&mut txn, change, &caller, now);
        }
        for orphan in &forgotten {
            if let Some(before) = view.orphan(provider, orphan.machine.as_str()) {
                let change = Mutation::remove("forget", before, None);
                Office::put(&mut txn, change, &caller, now);
            }
        }
        // Only what a listing can say, into the book as it is; and one that came back shows that our credentials
        // are good.
        let before = view.provider_book(provider);
        let fresh = ProviderBook { name: provider.to_owned(), ..ProviderBook::default() };
        let known = before.map_or(&fresh, |book| &*book.value);
        let judged = book.as_ref().filter(|_| before.map(|book| book.revision) == seen);
        let after = match judged {
            Some(judged) => ProviderBook { paused: None, ..judged.clone() },
            None => ProviderBook { paused: None, ..known.clone() },
        };
        if after != *known {
            if let Some(frozen) = after.frozen.as_ref().filter(|_| known.frozen.is_none()) {
                bench.office.stats.machine_alarms.raise(MachineAlarm::Frozen);
                error!(provider, message = frozen.message, "a listing cannot be true");
            }
            put_provider(&mut txn, before, after, now);
        }
        Ok(((!txn.is_empty()).then_some(txn), ()))
    };
    bench.office.decide(decide).await.map(|_| ())
}
