//! Does what a plan says in our own records: one commit, decided on what was planned from.

use super::picture::{self, Scene, Seen};
use super::{Bench, SELF, node_id};
use crate::Error;
use crate::command::sheet::{Sheet, make_room};
use crate::office::{Mutation, Office, system};
use crate::safety;
use crate::stats::MachineAlarm;
use argosy_core::access::Caller;
use argosy_core::breaker::Area;
use argosy_core::command::{CommandKind, Order as Command, issue};
use argosy_core::gate::{self, Brakes, Held, Permit};
use argosy_core::id::ResourceId;
use argosy_core::instance::{Cure, Instance, InstanceId, Reason, State};
use argosy_core::invariant::Cause;
use argosy_core::inventory::Condemned;
use argosy_core::machine::{MachineId, Order, Trouble};
use argosy_core::node::{Duty, Liveness, Node};
use argosy_core::pool::{Buy, COST_GUARD, PRICE_UNKNOWN, Plan, Step};
use argosy_store::Txn;
use argosy_store::view::{Stored, View};
use jiff::{SignedDuration, Timestamp};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tracing::{info, warn};

/// How many steps are taken in one commit: other commits wait behind it.
const STEPS_MAX: usize = 200;

/// A machine to boot again: the record, what its provider calls it, and the provider.
pub(super) type Reboot = (InstanceId, MachineId, String);

/// Takes the steps of a plan, and keeps the pool's book. Says which machines are to be booted again.
pub(super) async fn take(bench: &Bench, scene: &Scene, plan: &Plan) -> Result<Vec<Reboot>, Error> {
    let mut reboots = Vec::new();
    conclude(bench, scene).await?;
    // With what is bought its book is written; see `order`.
    let book = plan.book.as_ref().filter(|_| plan.buy.is_empty());
    if plan.steps.is_empty() && book.is_none_or(|book| book == scene.book()) {
        return Ok(reboots);
    }
    let mut chunks: Vec<&[Step]> = plan.steps.chunks(STEPS_MAX).collect();
    if chunks.is_empty() {
        chunks.push(&[]);
    }
    for (nth, steps) in chunks.into_iter().enumerate() {
        let decide = |view: &View, now: Timestamp| {
            let mut hand = Hand {
                bench,
                scene,
                view,
                txn: Txn::at(now),
                now,
                any: false,
                condemned: BTreeSet::new(),
            };
            hand.txn.fence(bench.fence.clone());
            if !hand.goes_on() {
                return Ok((None, Vec::new()));
            }
            let mut to_boot = Vec::new();
            for step in steps {
                to_boot.extend(hand.step(step)?);
            }
            if let Some(book) = book.filter(|_| nth == 0) {
                hand.keep_book(book);
            }
            Ok((hand.any.then_some(hand.txn), to_boot))
        };
        reboots.extend(bench.office.decide(decide).await?.1);
    }
    Ok(reboots)
}

/// Writes down what came of cures: the ladder goes on from there.
async fn conclude(bench: &Bench, scene: &Scene) -> Result<(), Error> {
    for seen in &scene.records {
        let Some(outcome) = &seen.concluded else { continue };
        let noted = |record: &Instance, _: Timestamp| record.outcome_of_last(outcome);
        super::books::amend(bench, &seen.record.value, "conclude", noted).await?;
    }
    Ok(())
}

/// Writes down what is to be bought: a record each, with the token of the call that follows.
pub(super) async fn order(
    bench: &Bench,
    scene: &Scene,
    plan: &Plan,
) -> Result<Vec<Arc<Instance>>, Error> {
    let pool = &scene.resource;
    let caller = system(SELF);
    let decide = |view: &View, now: Timestamp| {
        // Somebody else changed what it was decided on: the next plan knows better.
        let same = view.resource(pool.value.id).is_some_and(|found| {
            found.value.generation == pool.value.generation
                && found.value.deletion == pool.value.deletion
        });
        let book = view.pool_book(pool.value.id);
        let revision = |book: &Stored<_>| book.revision;
        if !same || book.map(revision) != scene.book.as_ref().map(revision) {
            return Ok((None, Vec::new()));
        }
        let mut txn = Txn::at(now);
        txn.fence(bench.fence.clone());
        let mut records = Vec::new();
        for buy in &plan.buy {
            let record = Arc::new(new(bench, scene, buy, now));
            let change = Mutation { action: "order", ..Mutation::create(record.clone()) };
            Office::write_instance(&mut txn, change.because(&buy.why), &caller, now)?;
            records.push(record);
        }
        // Written each time, so that two who order for one pool meet in the store.
        let mut after = plan.book.clone().unwrap_or_else(|| scene.book().clone());
        let count = u64::try_from(records.len()).unwrap_or(0);
        after.ordered = scene.book().ordered.saturating_add(count);
        put_book(&mut txn, book, after, &caller, now);
        Ok((Some(txn), records))
    };
    let (_, records) = bench.office.decide(decide).await?;
    for record in &records {
        let Instance { id, order, why, .. } = &**record;
        let (provider, zone, kind) = (&order.provider, &order.zone, &order.machine_type);
        info!(instance = %id, provider, zone, kind, why, "ordered a machine");
    }
    bench.office.stats.machines_ordered.add(u64::try_from(records.len()).unwrap_or(0));
    Ok(records)
}

/// What would cost more than all machines together may, or may cost more for all that is known, and what to say
/// about it. `price` is what a machine costs now.
pub(super) fn too_dear(
    bench: &Bench,
    buy: &[Buy],
    price: impl Fn(&Order) -> Option<f64>,
) -> Option<(Buy, Trouble)> {
    let most = bench.settings().max_hourly_cost?;
    let refused = |code: &str, message: String| {
        Some((buy.first()?.clone(), Trouble::Capacity { code: code.to_owned(), message }))
    };
    let unknown = |machine_type: &str, provider: &str| {
        format!(
            "machines.max_hourly_cost is set, and the price of {machine_type} at {provider} is not known. Set it \
             under providers.{provider}.prices, or price_per_hour where the provider lists its machine types"
        )
    };
    // Whatever may exist costs: machines that nobody knows, too, and those that are to go.
    let sum = bench.office.store.read(|view| {
        let live = view.instances().map(|record| &record.value);
        let live = live.filter(|record| !record.state.is_over()).map(|record| {
            let order = &record.order;
            let known = record.cost_per_hour().or_else(|| price(order));
            known.ok_or_else(|| unknown(&order.machine_type, &order.provider))
        });
        let orphans = view.orphans().map(|orphan| &orphan.value).map(|orphan| {
            let known = orphan.price_per_hour;
            known.ok_or_else(|| unknown(&orphan.machine_type, &orphan.provider))
        });
        live.chain(orphans).sum::<Result<f64, String>>()
    });
    let more = buy.iter().map(|buy| {
        let order = &buy.order;
        let known = order.price_per_hour.or_else(|| price(order));
        known.ok_or_else(|| unknown(&order.machine_type, &order.provider))
    });
    let (now, more) = match sum.and_then(|now| Ok((now, more.sum::<Result<f64, String>>()?))) {
        Ok(known) => known,
        Err(message) => return refused(PRICE_UNKNOWN, message),
    };
    if now + more <= most {
        return None;
    }
    refused(
        COST_GUARD,
        format!(
            "All machines together may cost {most:.2} $/h (machines.max_hourly_cost). They cost {now:.2} $/h, \
             and this would add {more:.2} $/h"
        ),
    )
}

/// Lets go of every machine of a pool that is gone, as a deletion does: what runs there ends first, or has its
/// time. Then forgets the pool's book. Says when to look again.
pub(super) async fn abandon(bench: &Bench, pool: ResourceId) -> Result<Option<Timestamp>, Error> {
    let caller = system(SELF);
    let decide = |view: &View, now: Timestamp| {
        if view.resource(pool).is_some() {
            return Ok((None, None));
        }
        let mut txn = Txn::at(now);
        txn.fence(bench.fence.clone());
        let left = view.instances_of(pool).filter(|record| !record.value.state.is_over());
        let mut next: Option<Timestamp> = None;
        for record in left.take(STEPS_MAX) {
            next = next.into_iter().chain(see_off(bench, view, &mut txn, record, now)?).min();
        }
        let over = view.instances_of(pool).all(|record| record.value.state.is_over());
        if let Some(book) = view.pool_book(pool).filter(|_| over) {
            Office::put(&mut txn, Mutation::remove("forget", book, None), &caller, now);
        }
        Ok(((!txn.is_empty()).then_some(txn), next))
    };
    bench.office.decide(decide).await.map(|(_, next)| next)
}

/// One step of a machine whose pool is gone, on its way out.
fn see_off(
    bench: &Bench,
    view: &View,
    txn: &mut Txn,
    record: &Stored<Instance>,
    now: Timestamp,
) -> Result<Option<Timestamp>, Error> {
    let (caller, id) = (system(SELF), record.value.id.as_str());
    let Ok(permit) = permit(view, &record.value, Reason::PoolDeleted) else { return Ok(None) };
    let node = view.node(id).filter(|node| node.value.tenant == record.value.tenant);
    let node = node.filter(|node| match &node.value.duty {
        Duty::Terminated(_) => false,
        Duty::Draining { .. } if node.value.is_emptied() => false,
        Duty::Active | Duty::Cordoned(_) | Duty::Draining { .. } => {
            node.value.liveness != Liveness::Unreachable
        }
    });
    let running = matches!(record.value.state, State::Running { .. });
    let deadline = record.value.departure.as_ref().map(|departure| departure.deadline);
    let over = deadline.is_some_and(|deadline| deadline <= now);
    let Some(node) = node.filter(|_| running && !over) else {
        if let Some(after) = record.value.leaving(permit, now) {
            let change = Mutation::update("leave", record, Arc::new(after));
            Office::write_instance(txn, change, &caller, now)?;
        }
        return Ok(None);
    };
    let nodes = bench.office.nodes();
    let drain_for = nodes.of_node(&node.value).drain_for;
    let deadline = deadline.or_else(|| now.checked_add(drain_for).ok()).unwrap_or(now);
    let why = Reason::PoolDeleted.to_string();
    if let Some(after) = record.value.departing(permit, deadline, now) {
        let change = Mutation::update("depart", record, Arc::new(after)).because(&why);
        Office::write_instance(txn, change, &caller, now)?;
    }
    let (told, retry_at) = picture::told(view, id, now);
    if !told && !matches!(node.value.duty, Duty::Draining { .. }) {
        let left = deadline.duration_since(now).max(SignedDuration::from_secs(1));
        let order = Command { drain_for: Some(left), ..ordered(CommandKind::Drain, &why) };
        tell(bench, view, txn, node, order, now)?;
    }
    Ok(Some(retry_at.map_or(deadline, |at| at.min(deadline))))
}

fn new(bench: &Bench, scene: &Scene, buy: &Buy, now: Timestamp) -> Instance {
    let resource = &scene.resource.value;
    let unique = bench.office.ids.token(now);
    let new = Instance::new(
        InstanceId::mint(resource.name.as_str(), unique),
        resource.tenant.clone(),
        resource.id,
        &scene.pool_name,
        buy.number,
        bench.office.ids.token(now),
        buy.order.clone(),
        buy.why.clone(),
        buy.replaces.clone(),
        now,
    );
    Instance { purpose: buy.purpose, ..new }
}

/// Adds a book as it should be to a transaction.
pub(super) fn put_book(
    txn: &mut Txn,
    before: Option<&Stored<argosy_core::pool::PoolBook>>,
    after: argosy_core::pool::PoolBook,
    caller: &Caller,
    now: Timestamp,
) {
    let after = Arc::new(after);
    let change = match before {
        Some(before) => Mutation::update("book", before, after),
        None => Mutation::create(after),
    };
    Office::put(txn, change, caller, now);
}

/// Asks whether a machine may leave, as things are.
pub(crate) fn permit(view: &View, record: &Instance, reason: Reason) -> Result<Permit, Held> {
    let book = view.provider_book(&record.order.provider).map(|book| &book.value);
    let frozen = book.and_then(|book| book.frozen.as_ref()).map(|it| it.message.as_str());
    let stopped = picture::stopped(view, &record.tenant, &record.pool_name);
    gate::permit(reason, &Brakes { frozen, stopped: stopped.as_deref() })
}

/// One commit in the making.
struct Hand<'a> {
    bench: &'a Bench,
    scene: &'a Scene,
    view: &'a View,
    txn: Txn,
    now: Timestamp,
    any: bool,
    condemned: BTreeSet<String>,
}

impl<'a> Hand<'a> {
    /// Whether what was planned may still be done: false if a pause or a breaker came in between. Should one
    /// come before the commit, that fails.
    fn goes_on(&mut self) -> bool {
        let Scene { resource, pool_name, stopped, .. } = self.scene;
        let tenant = resource.value.tenant.as_str();
        let areas = [Area::Fleet, Area::Pool(tenant, pool_name)];
        // The plan knew, and has what is done all the same.
        if stopped.is_some() {
            return true;
        }
        safety::stay_unstopped(&mut self.txn, self.view, tenant, pool_name, &areas);
        safety::stopped(self.view, tenant, pool_name, &areas).is_none()
    }

    fn step(&mut self, step: &Step) -> Result<Option<Reboot>, Error> {
        match step {
            Step::Depart { instance, reason, deadline } => {
                let Some((record, _)) = self.same(instance.as_str()) else { return Ok(None) };
                let Some(permit) = self.permit(&record.value, reason) else { return Ok(None) };
                let Some(after) = record.value.departing(permit, *deadline, self.now) else {
                    return Ok(None);
                };
                let why = reason.to_string();
                info!(%instance, reason = why, %deadline, "a machine is to go once it is drained");
                self.put("depart", record, after, &why)?;
            }
            Step::Stay { instance } => {
                let Some((record, _)) = self.same(instance.as_str()) else { return Ok(None) };
                let Some(after) = record.value.staying() else { return Ok(None) };
                info!(%instance, "a machine that was to go stays");
                self.put("stay", record, after, "the pool wants it after all")?;
            }
            Step::Leave { instance, reason } => {
                let Some((record, node)) = self.same(instance.as_str()) else { return Ok(None) };
                let Some(permit) = self.permit(&record.value, reason) else { return Ok(None) };
                let Some(after) = record.value.leaving(permit, self.now) else {
                    return Ok(None);
                };
                let why = reason.to_string();
                info!(%instance, reason = why, "a machine is to go");
                self.put("leave", record, after, &why)?;
                if let Some(node) = node {
                    self.command(node, ordered(CommandKind::Terminate, &why))?;
                }
            }
            Step::Cordon { node, reason } => {
                self.order_node(node.as_str(), ordered(CommandKind::Cordon, reason))?;
            }
            Step::Uncordon { node, reason } => {
                self.order_node(node.as_str(), ordered(CommandKind::Uncordon, reason))?;
            }
            Step::Drain { node, reason, automatic, by, drain_for } => {
                let (by, automatic, drain_for) = (by.clone(), *automatic, *drain_for);
                let order = ordered(CommandKind::Drain, reason);
                let order = Command { by, automatic, drain_for, ..order };
                self.order_node(node.as_str(), order)?;
            }
            Step::Diagnose { instance, because, .. } => {
                let Some((record, Some(node))) = self.same(instance.as_str()) else {
                    return Ok(None);
                };
                let parameters = BTreeMap::from([("test".to_owned(), "quick".to_owned())]);
                let order = ordered(CommandKind::RunDiagnostic, because);
                if self.command(node, Command { automatic: true, parameters, ..order })? {
                    let after = record.value.tried(Cure::Diagnose, because, self.now);
                    self.put("diagnose", record, after, because)?;
                }
            }
            Step::Reboot { instance, because, .. } => {
                let Some((record, _)) = self.same(instance.as_str()) else { return Ok(None) };
                let Some(machine) = record.value.machine().cloned() else { return Ok(None) };
                let provider = record.value.order.provider.clone();
                let after = record.value.tried(Cure::Reboot, because, self.now);
                self.put("reboot", record, after, because)?;
                return Ok(Some((instance.clone(), machine, provider)));
            }
            Step::Condemn { serials, because, node } => {
                for serial in serials {
                    // Two nodes may name the same one.
                    if self.view.condemned(serial).is_none()
                        && self.condemned.insert(serial.clone())
                    {
                        let condemned = Condemned {
                            serial: serial.clone(),
                            because: because.clone(),
                            node: node.clone(),
                            at: self.now,
                        };
                        let change =
                            Mutation { action: "condemn", ..Mutation::create(Arc::new(condemned)) };
                        Office::put(
                            &mut self.txn,
                            change.because(because),
                            &system(SELF),
                            self.now,
                        );
                        self.any = true;
                    }
                }
            }
        }
        Ok(None)
    }

    /// The permit for a machine to leave; `None` if something came in between that speaks against it.
    fn permit(&self, record: &Instance, reason: &Reason) -> Option<Permit> {
        permit(self.view, record, reason.clone()).inspect_err(|held| self.held(record, held)).ok()
    }

    fn held(&self, record: &Instance, held: &Held) {
        self.bench.office.stats.machine_alarms.raise(MachineAlarm::Held);
        warn!(instance = %record.id, %held, "did not take a machine away");
    }

    /// A record and its node, if both are what was planned for.
    fn same(&self, id: &str) -> Option<(&'a Stored<Instance>, Option<&'a Stored<Node>>)> {
        let planned: &Seen =
            self.scene.records.iter().find(|seen| seen.record.value.id.as_str() == id)?;
        let record = self.view.instance(id)?;
        let node = planned.node.as_ref().and_then(|node| self.view.node(node.value.id.as_str()));
        let revision = |node: &Stored<Node>| node.revision;
        let same = record.revision == planned.record.revision
            && node.map(revision) == planned.node.as_ref().map(revision);
        same.then_some((record, node))
    }

    fn put(
        &mut self,
        action: &'static str,
        record: &Stored<Instance>,
        after: Instance,
        why: &str,
    ) -> Result<(), Error> {
        let change = Mutation::update(action, record, Arc::new(after)).because(why);
        Office::write_instance(&mut self.txn, change, &system(SELF), self.now)?;
        self.any = true;
        Ok(())
    }

    fn order_node(&mut self, node: &str, order: Command) -> Result<(), Error> {
        let Some((record, Some(node))) = self.same(node) else { return Ok(()) };
        debug_assert_eq!(node_id(&record.value), node.value.id);
        self.command(node, order).map(|_| ())
    }

    /// Tells a node something; false if it cannot be told.
    fn command(&mut self, node: &'a Stored<Node>, order: Command) -> Result<bool, Error> {
        // A zone may be stopped in which only some of the pool's nodes are.
        if order.automatic {
            let Node { tenant, pool, .. } = &*node.value;
            let pool = pool.as_deref().unwrap_or_default();
            let areas: Vec<Area<'_>> = Area::of(&node.value).collect();
            if safety::stopped(self.view, tenant, pool, &areas).is_some() {
                return Ok(false);
            }
            safety::stay_unstopped(&mut self.txn, self.view, tenant, pool, &areas);
        }
        let told = tell(self.bench, self.view, &mut self.txn, node, order, self.now)?;
        self.any |= told;
        Ok(told)
    }

    fn keep_book(&mut self, book: &argosy_core::pool::PoolBook) {
        let before = self.view.pool_book(book.pool);
        // Somebody else wrote in it: the next plan knows better.
        let revision = |book: &Stored<_>| book.revision;
        let same = before.map(revision) == self.scene.book.as_ref().map(revision);
        if same && before.is_none_or(|before| *before.value != *book) {
            put_book(&mut self.txn, before, book.clone(), &system(SELF), self.now);
            self.any = true;
        }
    }
}

/// Adds a command for a node to a transaction; false if it cannot be told.
fn tell(
    bench: &Bench,
    view: &View,
    txn: &mut Txn,
    node: &Stored<Node>,
    order: Command,
    now: Timestamp,
) -> Result<bool, Error> {
    let (kind, automatic, reason) = (order.kind, order.automatic, order.reason.clone());
    let nodes = bench.office.nodes();
    let settings = nodes.of_node(&node.value);
    let mut sheet = Sheet::of(view, node);
    let open = sheet.open();
    let waiting: Vec<_> = open.iter().map(|command| &**command).collect();
    let id = bench.office.ids.command(now);
    match issue(&node.value, &waiting, order, id, settings, now) {
        Ok(issued) => sheet.issued(issued, action(kind)),
        Err(refused) => {
            // A node that is terminated already takes no commands, and needs none.
            if kind != CommandKind::Terminate {
                warn!(node = %node.value.id, ?kind, %refused, "could not tell a node");
            }
            return Ok(false);
        }
    }
    make_room(txn, view, &node.value);
    let cause = if automatic { Cause::Automatic } else { Cause::Other };
    sheet.write(txn, &system(SELF), cause, Some(&reason), now)?;
    Ok(true)
}

fn action(kind: CommandKind) -> &'static str {
    match kind {
        CommandKind::Cordon => "cordon",
        CommandKind::Drain => "drain",
        CommandKind::RunDiagnostic => "diagnose",
        CommandKind::Terminate => "terminate",
        CommandKind::Uncordon => "uncordon",
    }
}

/// What a node is told by ourselves, and not for its health.
fn ordered(kind: CommandKind, reason: &str) -> Command {
    let (by, reason) = (SELF.to_owned(), reason.to_owned());
    Command { kind, parameters: BTreeMap::new(), reason, by, automatic: false, drain_for: None }
}
