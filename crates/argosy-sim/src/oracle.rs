//! What must never be: looked at after every commit, against what the world knows to be true.
//!
//! It reads the documents themselves, not what the product makes of them, and counts anew what the product
//! has counted before.

use crate::world::Bought;
use argosy_control::Settings;
use argosy_core::breaker::{Area, Breaker, Pause};
use argosy_core::catalog::Catalog;
use argosy_core::command::{Command, CommandKind};
use argosy_core::gate;
use argosy_core::health::{Ends, HealthState};
use argosy_core::instance::{Instance, Reason, State};
use argosy_core::invariant::{self, Cause, Change};
use argosy_core::inventory::ProviderBook;
use argosy_core::liveness::Outlook;
use argosy_core::machine::{Notice, NoticeKind};
use argosy_core::node::settings::NodeSettings;
use argosy_core::node::{Duty, Liveness, Node};
use argosy_core::pool::{PoolBook, PoolSpec};
use argosy_core::remedy::allowed;
use argosy_core::resource::Resource;
use argosy_store::engine::{Commit, Put, Revision};
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;
use std::time::Duration;

/// An invariant and how it is broken.
pub(crate) type Broken = (&'static str, String);

/// No machine is paid for that no spec allows: none above the size and what replaces others.
pub(crate) const MONEY: &str = "MONEY";

/// A command may be open for so long after everything has become quiet.
const OPEN_MAX: SignedDuration = SignedDuration::from_hours(2);

/// How many commits a minute are always in order: people, adapters, leases of a small fleet.
const COMMITS_LEAST: u64 = 1_000;

/// And for each node and record besides: to buy, register, judge, drain and return it all in one minute takes less.
const COMMITS_EACH: u64 = 60;

/// So many nodes must be silent before it is the silence of the fleet.
const MASS_LEAST: usize = 4;

/// A document that changed.
pub(crate) enum Turn {
    Node { before: Option<Arc<Node>>, after: Arc<Node> },
    Command { before: Option<Arc<Command>>, after: Arc<Command> },
    Instance { before: Option<Arc<Instance>>, after: Arc<Instance> },
}

/// A pool may be paid above what its spec allows for so long while nothing keeps its machines: a return has to be
/// taken, tried again and seen.
const OVERPAID_MAX: SignedDuration = SignedDuration::from_hours(1);

/// What is stored, as the disk has it.
#[derive(Clone)]
pub(crate) struct Oracle {
    settings: NodeSettings,
    catalog: Catalog,
    revision: Revision,
    pub(crate) nodes: BTreeMap<String, Arc<Node>>,
    pub(crate) commands: BTreeMap<String, Arc<Command>>,
    pub(crate) instances: BTreeMap<String, Arc<Instance>>,
    pub(crate) resources: BTreeMap<String, Arc<Resource>>,
    breakers: BTreeMap<String, Arc<Breaker>>,
    pauses: BTreeMap<String, Arc<Pause>>,
    books: BTreeMap<String, Arc<PoolBook>>,
    /// GPUs that are known to be bad.
    condemned: BTreeSet<String>,
    /// Providers whose listings are not believed.
    frozen: BTreeSet<String>,
    /// Since when more machines of a pool are paid for than its spec allows.
    overpaid: BTreeMap<String, Timestamp>,
    /// Pools in recovery.
    recoveries: BTreeSet<String>,
    /// Machines whose node was once in the store: they may be at work, whatever it says of them now.
    served: BTreeSet<String>,
    outlook: Option<Outlook>,
    orphans: BTreeSet<String>,
    /// Commands that have not ended.
    open: BTreeSet<String>,
    /// When findings end by themselves, by node.
    ends: BTreeMap<String, Timestamp>,
    /// Machines that exist, by provider, for each record.
    living: BTreeMap<String, BTreeSet<(String, String)>>,
    /// Which minute it is, and how many commits it had.
    minute: (i64, u64),
    /// How many automatic cordons each breaker let through in its step.
    let_through: BTreeMap<String, (Timestamp, u32)>,
}

#[derive(Deserialize)]
struct Found<T> {
    value: T,
}

#[derive(Deserialize)]
struct Audited {
    action: String,
    kind: String,
    id: String,
}

fn read<T: DeserializeOwned>(put: &Put) -> Result<Option<Arc<T>>, Broken> {
    let Some(body) = &put.body else { return Ok(None) };
    let read = serde_json::from_str::<Found<T>>(body);
    let broken = |error: serde_json::Error| ("I1", format!("{} cannot be read: {error}", put.key));
    read.map(|found| Some(Arc::new(found.value))).map_err(broken)
}

/// Keeps a document, and gives the one before.
fn keep<T>(map: &mut BTreeMap<String, Arc<T>>, id: &str, value: Option<&Arc<T>>) -> Option<Arc<T>> {
    match value {
        Some(value) => map.insert(id.to_owned(), value.clone()),
        None => map.remove(id),
    }
}

impl Oracle {
    pub(crate) fn new(settings: &Settings) -> Self {
        Self {
            settings: settings.nodes.clone(),
            catalog: settings.catalog.clone(),
            revision: Revision::ZERO,
            nodes: BTreeMap::new(),
            commands: BTreeMap::new(),
            instances: BTreeMap::new(),
            resources: BTreeMap::new(),
            breakers: BTreeMap::new(),
            pauses: BTreeMap::new(),
            books: BTreeMap::new(),
            condemned: BTreeSet::new(),
            frozen: BTreeSet::new(),
            overpaid: BTreeMap::new(),
            recoveries: BTreeSet::new(),
            served: BTreeSet::new(),
            outlook: None,
            orphans: BTreeSet::new(),
            open: BTreeSet::new(),
            ends: BTreeMap::new(),
            living: BTreeMap::new(),
            minute: (0, 0),
            let_through: BTreeMap::new(),
        }
    }

    /// Takes a commit in, and says what it breaks.
    pub(crate) fn commit(
        &mut self,
        revision: Revision,
        commit: &Commit,
        now: Timestamp,
        is_heard: &dyn Fn(&str) -> bool,
    ) -> Result<Vec<Turn>, Broken> {
        if revision != self.revision.next() {
            let last = self.revision;
            return Err(("I6", format!("revision {revision} came after {last}")));
        }
        self.revision = revision;
        self.is_calm(now)?;
        let audits = audits(commit)?;
        let mut turns = Vec::new();
        let (mut ordered, mut departed, mut bought) = (Vec::new(), Vec::new(), Vec::new());
        for put in &commit.puts {
            let id = put.key.id.as_str();
            match put.key.kind.as_str() {
                "node" => {
                    let after = read::<Node>(put)?;
                    let before = keep(&mut self.nodes, id, after.as_ref());
                    self.note_ends(id, after.as_deref());
                    if let Some(after) = after {
                        let action = audited(&audits, "Node", id, commit, revision)?;
                        let cause = match action {
                            "register" => Cause::Registration,
                            _ => Cause::Other,
                        };
                        check(Change::Node { before: before.as_deref(), after: &after, cause })?;
                        if after.liveness == Liveness::Unreachable
                            && before.as_ref().is_some_and(|it| it.liveness != after.liveness)
                        {
                            self.may_be_lost(&after, is_heard)?;
                        }
                        turns.push(Turn::Node { before, after });
                    }
                }
                "command" => {
                    let after = read::<Command>(put)?;
                    let before = keep(&mut self.commands, id, after.as_ref());
                    let Some(after) = after else {
                        self.open.remove(id);
                        continue;
                    };
                    if after.state.is_done() {
                        self.open.remove(id);
                    } else {
                        self.open.insert(id.to_owned());
                    }
                    audited(&audits, "Command", id, commit, revision)?;
                    check(Change::Command { before: before.as_deref(), after: &after })?;
                    if before.is_none() && after.automatic {
                        ordered.push(after.clone());
                    }
                    turns.push(Turn::Command { before, after });
                }
                "instance" => {
                    let after = read::<Instance>(put)?;
                    let before = keep(&mut self.instances, id, after.as_ref());
                    if let Some(after) = after {
                        audited(&audits, "Instance", id, commit, revision)?;
                        check(Change::Instance { before: before.as_deref(), after: &after })?;
                        self.is_over(&after)?;
                        if before.is_none() && !after.adopted {
                            bought.push(after.clone());
                        }
                        let went = before.as_ref().is_some_and(|it| it.departure.is_some());
                        let goes = after.departure.as_ref().filter(|_| !went);
                        if goes.is_some_and(|it| gate::is_ours(&it.reason)) {
                            departed.push(after.clone());
                        }
                        self.may_end(before.as_deref(), &after, commit.at, is_heard)?;
                        if matches!(after.state, State::Running { .. }) {
                            self.served.insert(id.to_owned());
                        }
                        turns.push(Turn::Instance { before, after });
                    }
                }
                "resource" => {
                    let after = read::<Resource>(put)?;
                    let before = keep(&mut self.resources, id, after.as_ref());
                    if let Some(after) = after {
                        audited(&audits, after.kind.as_str(), id, commit, revision)?;
                        check(Change::Resource { before: before.as_deref(), after: &after })?;
                    }
                }
                "breaker" => {
                    let after = read::<Breaker>(put)?;
                    let before = keep(&mut self.breakers, id, after.as_ref());
                    if after.is_none() {
                        self.may_let_go(before.as_deref())?;
                    }
                }
                "pause" => {
                    let after = read::<Pause>(put)?;
                    keep(&mut self.pauses, id, after.as_ref());
                }
                "pool-book" => {
                    let after = read::<PoolBook>(put)?;
                    keep(&mut self.books, id, after.as_ref());
                }
                "provider-book" => {
                    let after = read::<ProviderBook>(put)?;
                    match after.is_some_and(|book| book.frozen.is_some()) {
                        true => _ = self.frozen.insert(id.to_owned()),
                        false => _ = self.frozen.remove(id),
                    }
                }
                "condemned" => match put.body {
                    Some(_) => _ = self.condemned.insert(id.to_owned()),
                    None => _ = self.condemned.remove(id),
                },
                "recovery" => match put.body {
                    Some(_) => _ = self.recoveries.insert(id.to_owned()),
                    None => _ = self.recoveries.remove(id),
                },
                "outlook" => self.outlook = read::<Outlook>(put)?.map(|it| (*it).clone()),
                "orphan" => match put.body {
                    Some(_) => _ = self.orphans.insert(id.to_owned()),
                    None => _ = self.orphans.remove(id),
                },
                _ => {}
            }
        }
        for command in ordered {
            self.may_order(&command, now, is_heard)?;
        }
        for record in bought {
            self.may_buy(&record)?;
        }
        for record in departed {
            self.may_depart(&record)?;
        }
        Ok(turns)
    }

    /// A pool's spec, and how many machines it may hold: as many as it is to have, and those that others are put in
    /// the place of. `None` if it is gone or its spec cannot be read.
    fn seats_allowed(&self, pool: &str) -> Option<(PoolSpec, u32)> {
        let resource = self.resources.get(pool)?;
        let cluster = self.resources.get(&resource.owner?.to_string())?;
        let spec = PoolSpec::read(&resource.spec, &cluster.spec, &self.catalog).ok()?;
        let target = spec.target(self.books.get(pool).and_then(|book| book.target));
        let wanted = resource.deletion.is_none();
        let most = if wanted { target.saturating_add(spec.max_unavailable.of(target)) } else { 0 };
        Some((spec, most))
    }

    /// Whether a record holds a seat of its pool, or is to: it is not on its way out, and nobody takes it away.
    fn is_seated(&self, record: &Instance) -> bool {
        let up = match &record.state {
            State::Provisioning(_) | State::AwaitingNode { .. } | State::Running { .. } => true,
            State::Terminating(_) | State::Terminated { .. } | State::Failed { .. } => false,
        };
        let node = self.nodes.get(record.id.as_str());
        let ended = node.is_some_and(|node| {
            let bad = |serial: &str| self.condemned.contains(serial);
            matches!(node.duty, Duty::Terminated(_))
                || node.gpus.iter().any(|gpu| bad(gpu.hardware()))
        });
        let taken = |notice: &Notice| notice.kind == NoticeKind::Reclaim;
        up && !ended && !record.notice.as_ref().is_some_and(taken)
    }

    /// Whether a machine may be bought: never more than the spec allows, with those that replace others.
    fn may_buy(&self, record: &Instance) -> Result<(), Broken> {
        let pool = record.pool.to_string();
        let Some((_, allowed)) = self.seats_allowed(&pool) else { return Ok(()) };
        let held = self.instances.values().filter(|it| it.pool == record.pool);
        let held = held.filter(|it| self.is_seated(it)).count();
        if u32::try_from(held).is_ok_and(|held| held <= allowed) {
            return Ok(());
        }
        let message = format!(
            "{} is machine {held} of {}, and its spec allows {allowed}, replacements included",
            record.id, record.pool_name
        );
        Err((MONEY, message))
    }

    /// Whether machines are paid for that no spec allows: for too long, and while nothing keeps them. `paid` are the
    /// machines that really exist, by pool and record.
    pub(crate) fn overpaid(
        &mut self,
        paid: &BTreeMap<String, Vec<String>>,
        now: Timestamp,
    ) -> Option<String> {
        let kept = !self.pauses.is_empty()
            || !self.frozen.is_empty()
            || self.breakers.values().any(|it| !it.is_closed());
        let mut found = None;
        self.overpaid.retain(|pool, _| paid.contains_key(pool));
        for (pool, machines) in paid {
            // One on its way out has its time, and a lost one is told of otherwise.
            let counts = |id: &&String| {
                let record = self.instances.get(*id);
                record.is_some_and(|it| it.departure.is_none() && self.is_seated(it))
            };
            let held = machines.iter().filter(counts).count();
            // What goes in steps, or may not fall below what must be available, takes as long as its drains.
            let at_once = |spec: &PoolSpec| spec.autoscaling.is_none() && spec.min_available == 0;
            let allowed = self.seats_allowed(pool).filter(|(spec, _)| at_once(spec));
            let allowed = allowed.map_or(u32::MAX, |(_, allowed)| allowed);
            if kept || u32::try_from(held).is_ok_and(|held| held <= allowed) {
                self.overpaid.remove(pool);
                continue;
            }
            let since = *self.overpaid.entry(pool.clone()).or_insert(now);
            if OVERPAID_MAX < now.duration_since(since) {
                let message = format!(
                    "{held} machines of the pool {pool} have been paid for since {since}, and its spec allows \
                     {allowed}, replacements included"
                );
                found.get_or_insert(message);
            }
        }
        found
    }

    /// Whether there are not more commits than so large a fleet can be the reason of (I15).
    fn is_calm(&mut self, now: Timestamp) -> Result<(), Broken> {
        let minute = now.as_second().div_euclid(60);
        if self.minute.0 != minute {
            self.minute = (minute, 0);
        }
        self.minute.1 += 1;
        let things = (self.nodes.len() + self.instances.len()) as u64;
        let most = COMMITS_LEAST + COMMITS_EACH * things;
        if self.minute.1 <= most {
            return Ok(());
        }
        Err((
            "I15",
            format!(
                "more than {most} commits in one minute, with {} nodes and {} instances",
                self.nodes.len(),
                self.instances.len()
            ),
        ))
    }

    fn note_ends(&mut self, id: &str, node: Option<&Node>) {
        let ends = node.and_then(|node| {
            let ends = node.findings.iter().filter_map(|finding| match finding.ends {
                Ends::At(end) => Some(end),
                Ends::WhenCheckPasses
                | Ends::AtReboot
                | Ends::WhenOver
                | Ends::WhenReplaced
                | Ends::WhenGpusReturn => None,
            });
            ends.min()
        });
        match ends {
            Some(end) => _ = self.ends.insert(id.to_owned(), end),
            None => _ = self.ends.remove(id),
        }
    }

    /// Whether the record of a machine says that it is gone while it is not (I2).
    fn is_over(&self, after: &Instance) -> Result<(), Broken> {
        if !after.state.is_over() {
            return Ok(());
        }
        let living = self.living.get(after.id.as_str()).and_then(|living| living.first());
        match living {
            Some((provider, machine)) => Err((
                "I2",
                format!(
                    "the record of {} says {} while {machine} at {provider} runs",
                    after.id,
                    after.state.as_str()
                ),
            )),
            None => Ok(()),
        }
    }

    /// Whether a machine may be told to go (V1): not in a recovery that nobody has confirmed, and if its node is at
    /// work not before that was drained, or had its time.
    fn may_end(
        &self,
        before: Option<&Instance>,
        after: &Instance,
        at: Timestamp,
        is_heard: &dyn Fn(&str) -> bool,
    ) -> Result<(), Broken> {
        let Some(before) = before else { return Ok(()) };
        let leaves = match (&before.state, &after.state) {
            (State::Terminating(_), _) => None,
            (_, State::Terminating(leaving)) => Some(&leaving.reason),
            (_, _) => None,
        };
        let departs = after.departure.as_ref().filter(|_| before.departure.is_none());
        let reason = leaves.or(departs.map(|departure| &departure.reason));
        let Some(reason) = reason.filter(|reason| is_ours(reason)) else { return Ok(()) };
        let id = after.id.as_str();
        if self.recoveries.contains(&after.pool.to_string()) {
            return Err((
                "V1",
                format!("{id} is to go although its pool is in recovery: {reason}"),
            ));
        }
        if leaves.is_none() || !self.served.contains(id) || !is_heard(id) {
            return Ok(());
        }
        let drained = self.nodes.get(id).is_some_and(|node| match &node.duty {
            Duty::Draining { done, deadline, .. } => *done || *deadline <= at,
            Duty::Terminated(_) => true,
            Duty::Active | Duty::Cordoned(_) => node.liveness == Liveness::Unreachable,
        });
        let over = before.departure.as_ref().is_some_and(|departure| departure.deadline <= at);
        if drained || over {
            return Ok(());
        }
        Err(("V1", format!("{id} ends while its node is at work, without a drain: {reason}")))
    }

    /// The store is again what it was then; what the world is like stays.
    pub(crate) fn go_back_to(&mut self, saved: Oracle) {
        let (living, served) = (std::mem::take(&mut self.living), std::mem::take(&mut self.served));
        *self = Oracle { living, served, ..saved };
    }

    /// Whether a breaker that is no more had tried first whether it may let go (I3).
    fn may_let_go(&self, before: Option<&Breaker>) -> Result<(), Broken> {
        let Some(before) = before else { return Ok(()) };
        if before.half_open.is_some() || before.is_closed() {
            return Ok(());
        }
        let there = |node: &&Arc<Node>| {
            !matches!(node.duty, Duty::Terminated(_))
                && Area::of(node).any(|area| area.scope() == before.scope)
        };
        match self.nodes.values().filter(there).count() {
            0 => Ok(()),
            count => Err((
                "I3",
                format!(
                    "the breaker of {} let everything through at once that it held back, in an area \
                     of {count} nodes",
                    before.scope
                ),
            )),
        }
    }

    /// Whether the silence of a node may be held against it: not while most of the fleet is silent (I3).
    fn may_be_lost(&self, node: &Node, is_heard: &dyn Fn(&str) -> bool) -> Result<(), Broken> {
        let (mut silent, mut total) = (1, 1);
        for other in self.nodes.values() {
            let counts = !matches!(other.duty, Duty::Terminated(_))
                && other.liveness != Liveness::Unreachable
                && other.id != node.id;
            if counts {
                total += 1;
                silent += usize::from(!is_heard(other.id.as_str()));
            }
        }
        // A little more than half: of some that fell silent just now, the product may not know yet.
        if MASS_LEAST <= silent && total * 3 < silent * 5 {
            let id = &node.id;
            let message = format!(
                "the silence of {id} is held against it while {silent} of {total} are silent"
            );
            return Err(("I3", message));
        }
        Ok(())
    }

    /// Whether something may be done by itself to a node now (I3, I4).
    fn may_order(
        &mut self,
        command: &Command,
        now: Timestamp,
        is_heard: &dyn Fn(&str) -> bool,
    ) -> Result<(), Broken> {
        if !matches!(command.kind, CommandKind::Cordon | CommandKind::Drain) {
            return Ok(());
        }
        let Some(node) = self.nodes.get(command.node.as_str()).cloned() else {
            return Err(("I3", format!("{} is ordered and nobody knows it", command.node)));
        };
        let (id, kind) = (&node.id, command.kind.as_str());
        if let Some(pause) = self.pauses.values().find(|pause| pause.covers(&node)) {
            return Err(("I3", format!("{kind} of {id} while {} has paused it", pause.by)));
        }
        let lost = node.health.state != HealthState::Unhealthy;
        if lost {
            let known = self.nodes.values().filter(|it| !matches!(it.duty, Duty::Terminated(_)));
            let (mut silent, mut total) = (0, 0);
            for node in known.filter(|it| it.liveness != Liveness::Unreachable || it.id == *id) {
                total += 1;
                silent += usize::from(!is_heard(node.id.as_str()));
            }
            if 2 < silent && total < 2 * silent {
                let message =
                    format!("{kind} of {id} for its silence while {silent} of {total} are silent");
                return Err(("I3", message));
            }
            if let Some(outlook) = &self.outlook {
                let message = format!("{kind} of {id} for its silence: {}", outlook.excuse);
                return Err(("I3", message));
            }
        }
        self.lets_through(&format!("{kind} of {id}"), &node, command.kind == CommandKind::Cordon)?;
        if command.kind == CommandKind::Cordon { self.is_in_budget(&node, now) } else { Ok(()) }
    }

    /// Whether a machine may begin to leave by the pool's own decision now: it is an action like any other (M22).
    fn may_depart(&mut self, record: &Instance) -> Result<(), Broken> {
        let Some(node) = self.nodes.get(record.id.as_str()).cloned() else { return Ok(()) };
        self.lets_through(&format!("the departure of {}", record.id), &node, true)
    }

    /// Whether the breakers let an action about a node pass; `begins` are counted while they are half open.
    fn lets_through(&mut self, what: &str, node: &Node, begins: bool) -> Result<(), Broken> {
        let scopes: Vec<String> = Area::of(node).map(|area| area.scope().to_string()).collect();
        for scope in &scopes {
            let breaker = self.breakers.values().find(|it| it.scope.to_string() == *scope);
            let Some(breaker) = breaker.filter(|breaker| !breaker.is_closed()) else { continue };
            let Some(step) = breaker.half_open else {
                return Err(("I3", format!("{what} while the breaker of {scope} is open")));
            };
            if !begins {
                continue;
            }
            let through = self.let_through.entry(scope.clone()).or_insert((step.since, 0));
            if through.0 != step.since {
                *through = (step.since, 0);
            }
            through.1 += 1;
            if step.allowed < through.1 {
                let (let_through, most) = (through.1, step.allowed);
                return Err((
                    "I3",
                    format!(
                        "{what}: the breaker of {scope} let {let_through} through, and {most} may pass"
                    ),
                ));
            }
        }
        Ok(())
    }

    /// Whether so many nodes may be out of service by our own doing (I4), counted anew.
    fn is_in_budget(&self, of: &Node, now: Timestamp) -> Result<(), Broken> {
        let pending: HashSet<&str> = self
            .open
            .iter()
            .filter_map(|id| self.commands.get(id))
            .filter(|command| command.automatic && command.kind == CommandKind::Cordon)
            .map(|command| command.node.as_str())
            .collect();
        for area in Area::of(of) {
            let budget = match area {
                Area::Fleet => &self.settings.fleet.budget,
                Area::Zone(..) => &self.settings.fleet.zone_budget,
                Area::Pool(..) => &self.settings.of(of.pool.as_deref()).budget,
            };
            let (mut used, mut total) = (0, 0);
            for node in self.nodes.values() {
                if matches!(node.duty, Duty::Terminated(_))
                    || !Area::of(node).any(|other| other == area)
                {
                    continue;
                }
                used += usize::from(node.in_disruption() || pending.contains(node.id.as_str()));
                let warm_up = self.settings.of_node(node).warm_up;
                // A clock of a process may be off by a while.
                let old = node.joined_at.saturating_add(warm_up).is_ok_and(|at| at <= now);
                total += usize::from(old);
            }
            // Nodes that a clock which is ahead takes for warm already are counted, too.
            let most = allowed(budget, total).max(allowed(budget, self.warm_in(area)));
            if most < used {
                let message = format!(
                    "cordon of {}: {used} nodes of {} are out of service by our own doing, and {most} \
                     may be",
                    of.id,
                    area.scope()
                );
                return Err(("I4", message));
            }
        }
        Ok(())
    }

    /// All nodes of an area that some clock may take for warm.
    fn warm_in(&self, area: Area<'_>) -> usize {
        let nodes = self.nodes.values().filter(|node| !matches!(node.duty, Duty::Terminated(_)));
        nodes.filter(|node| Area::of(node).any(|other| other == area)).count()
    }

    /// A machine was made: whether it is one too many (I2).
    pub(crate) fn bought(&mut self, made: &Bought) -> Option<String> {
        let instance = made.purchase.instance.to_string();
        let machine = (made.purchase.order.provider.clone(), made.machine.id.to_string());
        let living = self.living.entry(instance.clone()).or_default();
        living.insert(machine);
        let all: Vec<&str> = living.iter().map(|(_, machine)| machine.as_str()).collect();
        (1 < all.len()).then(|| format!("{} were bought for {instance}", all.join(" and ")))
    }

    /// A machine is no more.
    pub(crate) fn returned(&mut self, provider: &str, machine: &str) {
        let key = (provider.to_owned(), machine.to_owned());
        self.living.retain(|_, living| {
            living.remove(&key);
            !living.is_empty()
        });
    }

    /// Whether a machine is in a record, or reported as an orphan.
    pub(crate) fn is_known(&self, provider: &str, instance: &str, machine: &str) -> bool {
        let record = self.instances.get(instance);
        record.is_some_and(|record| !record.state.is_over())
            || self.orphans.contains(&format!("{provider}/{machine}"))
    }

    /// Whether a node is known, and not done with.
    pub(crate) fn is_expected(&self, name: &str) -> bool {
        self.nodes.get(name).is_some_and(|node| !matches!(node.duty, Duty::Terminated(_)))
    }

    /// For how long silence may have consequences that go by the timer.
    pub(crate) fn silence_matters_for(&self) -> Duration {
        let defaults = &self.settings.defaults;
        let longest = |of: fn(&argosy_core::node::settings::PoolSettings) -> SignedDuration| {
            let pools = self.settings.pools.values().map(of);
            pools.fold(of(defaults), SignedDuration::max)
        };
        let time = longest(|pool| pool.unreachable_after) + longest(|pool| pool.act_after);
        Duration::try_from(time).unwrap_or(Duration::ZERO) + Duration::from_secs(120)
    }

    /// Whether something is under way that goes by the timer: commands, an excuse, a finding that should have
    /// ended by now.
    pub(crate) fn goes_by_timer(&self, now: Timestamp) -> bool {
        self.outlook.is_some() || !self.open.is_empty() || self.ends.values().any(|end| *end <= now)
    }

    /// When the next finding ends by itself.
    pub(crate) fn next_end(&self) -> Option<Timestamp> {
        self.ends.values().min().copied()
    }

    /// A command that has been open for too long.
    pub(crate) fn open_command(&self, now: Timestamp) -> Option<&Command> {
        let open = self.open.iter().filter_map(|id| self.commands.get(id));
        let mut old = open.filter(|command| OPEN_MAX < now.duration_since(command.issued_at));
        old.next().map(|command| &**command)
    }
}

/// Whether it is our own decision that a machine ends, and not its provider's, its node's or a person's about it.
fn is_ours(reason: &Reason) -> bool {
    match reason {
        Reason::ScaleDown { .. }
        | Reason::PoolDeleted
        | Reason::Replaced { .. }
        | Reason::Sick { .. }
        | Reason::Unwanted => true,
        Reason::Stale
        | Reason::BadHardware { .. }
        | Reason::Reclaimed
        | Reason::Vanished
        | Reason::NodeTerminated { .. }
        | Reason::Operator { .. } => false,
    }
}

fn check(change: Change<'_>) -> Result<(), Broken> {
    invariant::check(change).map_err(|message| {
        let names = ["I2", "I3", "I4", "I5", "I6", "I7", "I11"];
        let name = names.into_iter().find(|name| message.contains(&format!("{name}:")));
        (name.unwrap_or("I7"), message)
    })
}

fn audits(commit: &Commit) -> Result<Vec<Audited>, Broken> {
    let audits = commit.appends.iter().filter(|append| append.stream == "audit");
    let read = |append: &argosy_store::engine::Append| {
        serde_json::from_str::<Audited>(&append.body)
            .map_err(|error| ("I9", format!("an audit record cannot be read: {error}")))
    };
    audits.map(read).collect()
}

/// What was done to a document, by its audit record, of which there must be one (I9).
fn audited<'a>(
    audits: &'a [Audited],
    kind: &str,
    id: &str,
    commit: &Commit,
    revision: Revision,
) -> Result<&'a str, Broken> {
    let mut found = audits.iter().filter(|audit| audit.kind == kind && audit.id == id);
    match (found.next(), found.next()) {
        (Some(audit), None) => Ok(&audit.action),
        (None, _) => {
            let all = commit.puts.len();
            let message = format!(
                "revision {revision} writes {kind} {id} ({all} documents) and no audit record"
            );
            Err(("I9", message))
        }
        (Some(_), Some(_)) => {
            Err(("I9", format!("revision {revision} has two audit records of {kind} {id}")))
        }
    }
}

#[cfg(test)]
mod tests;
