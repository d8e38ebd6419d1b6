//! Does by itself what the plan says about nodes that are sick, lost or well again.
//!
//! Woken by any commit, it looks at everything anew; nothing waits in a queue. What a newcomer gets
//! wrong: between the plan and its commit the world goes on. So each commit depends on the nodes it was
//! decided on, on no pause having appeared, and on the lease.

use crate::Error;
use crate::command::sheet::{Sheet, make_room};
use crate::loops::Beats;
use crate::loops::liveness::{EVERY, GAP_MAX, Lookout, Watching, signed};
use crate::office::{Mutation, Office, system};
use crate::pulse::PulseBoard;
use crate::safety::{cordons_pending, pause_of};
use argosy_core::access::Caller;
use argosy_core::breaker::{Breaker, Pause};
use argosy_core::command::{Command, CommandKind, Order, enforced, issue, withdrawn};
use argosy_core::invariant::{self, Cause, Change};
use argosy_core::ledger::{Entry, What};
use argosy_core::liveness::Excuse;
use argosy_core::node::settings::NodeSettings;
use argosy_core::node::{Held, Liveness, Node, NodeId};
use argosy_core::remedy::{Action, ActionKind, Fleet, Plan, Subject, back_at, plan};
use argosy_store::engine::Fence;
use argosy_store::view::{Stored, View};
use argosy_store::{Revision, Txn};
use futures_util::future::try_join_all;
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;
use tracing::{error, info, warn};

const NAME: &str = "remedy";

/// Who acts, as people see it.
const SELF: &str = "argosy";

/// How often it looks at most: a burst of reports is one look.
const LOOKS_APART: Duration = Duration::from_millis(200);

/// It rests for so many times as long as it thought, so that a large fleet does not cost a whole core.
/// What it waited for while its commits were written does not count: that was somebody else's work.
const REST: u32 = 4;

/// It rests for so long for each node, so that a fleet that comes up is not looked at for each of them.
const REST_PER_NODE: Duration = Duration::from_micros(5);

/// The longest rest: what is promised by the second counts on it.
const REST_MAX: Duration = EVERY;

/// How many nodes are acted on in one commit. More would share the price of a commit better, but one
/// node that changes meanwhile makes all of them be decided again.
const BATCH_MAX: usize = 100;

/// How often everything is looked at although nothing changed and no alarm is due.
const LOOK_ANYWAY: Duration = Duration::from_secs(30);

/// Runs until the process ends.
pub(crate) async fn run(
    office: Arc<Office>,
    board: PulseBoard,
    lookout: Arc<Lookout>,
    beats: Arc<Beats>,
) -> Result<(), Error> {
    let mut watching = lookout.subscribe();
    let mut changes = office.store.subscribe();
    let mut desk = Desk::new(&office, &board);
    loop {
        beats.beat(NAME, office.clock.now());
        changes.mark_unchanged();
        let now = watching.borrow_and_update().clone();
        let looked = match now {
            Some(now) => desk.look(&now).await,
            // Another process acts, and what we know will be out of date when we do.
            None => {
                desk = Desk::new(&office, &board);
                Ok(())
            }
        };
        match looked {
            // The loop that keeps the lease will notice, too.
            Ok(()) | Err(Error::Store(argosy_store::Error::Fenced)) => {}
            Err(error) => warn!(%error, "could not do what was planned; planning again"),
        }
        let due = desk.thought.saturating_mul(REST).max(REST_PER_NODE.saturating_mul(desk.nodes));
        let rest = LOOKS_APART.max(due).min(REST_MAX);
        tokio::time::sleep(rest).await;
        tokio::select! {
            biased;
            changed = changes.changed() => if changed.is_err() { return Ok(()) },
            () = wait_for(&office, desk.next) => {}
            () = tokio::time::sleep(EVERY) => {}
        }
    }
}

async fn wait_for(office: &Office, alarm: Option<Timestamp>) {
    match alarm {
        Some(at) => office.clock.sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// What the acting process remembers. All of it may be lost: then the lost are waited for anew.
struct Desk<'a> {
    office: &'a Office,
    board: &'a PulseBoard,
    /// Since when we know that a node is unreachable, on the monotonic clock.
    lost: HashMap<NodeId, Duration>,
    listening_since: Option<Duration>,
    /// How long the last plan took to make, and for how many nodes.
    thought: Duration,
    nodes: u32,
    /// When to look again although nothing changed.
    next: Option<Timestamp>,
    /// What the last plan was made from and when, if there was nothing to do.
    idle: Option<(Basis, Duration)>,
}

/// What a plan is made from, but for the time: while it is the same, so is the plan.
struct Basis {
    /// When nodes, commands, breakers and pauses last changed.
    revisions: [Revision; 4],
    settings: Arc<NodeSettings>,
    fence: Fence,
    listening_since: Duration,
    excuse: Option<Excuse>,
}

impl Basis {
    fn of(office: &Office, watching: &Watching) -> Self {
        let Watching { fence, listening_since, excuse, .. } = watching.clone();
        let settings = office.nodes();
        let revisions = office.store.read(|view| {
            let (nodes, commands) = (view.changed_at::<Node>(), view.changed_at::<Command>());
            [nodes, commands, view.changed_at::<Breaker>(), view.changed_at::<Pause>()]
        });
        Basis { revisions, settings, fence, listening_since, excuse }
    }
}

impl PartialEq for Basis {
    fn eq(&self, other: &Self) -> bool {
        // Settings that are read anew are another copy.
        Arc::ptr_eq(&self.settings, &other.settings)
            && self.revisions == other.revisions
            && (&self.fence, self.listening_since, self.excuse)
                == (&other.fence, other.listening_since, other.excuse)
    }
}

/// Nobody asks whether a node was heard that is well and in service.
fn is_asked(node: &Node) -> bool {
    node.is_bad() || node.duty.hold().is_some()
}

/// The revisions that nodes had when the plan was made.
type Seen<'p> = HashMap<&'p NodeId, Revision>;

/// The fleet as it was when the plan was made.
struct Picture {
    nodes: Vec<Stored<Node>>,
    pending: HashMap<NodeId, Arc<Command>>,
    breakers: Vec<Stored<Breaker>>,
    pauses: Vec<Stored<Pause>>,
}

impl Picture {
    fn of(view: &View) -> Self {
        Picture {
            nodes: view.nodes().cloned().collect(),
            pending: cordons_pending(view),
            breakers: view.breakers().cloned().collect(),
            pauses: view.pauses().cloned().collect(),
        }
    }
}

impl<'a> Desk<'a> {
    fn new(office: &'a Office, board: &'a PulseBoard) -> Self {
        let (lost, thought) = (HashMap::new(), Duration::ZERO);
        Desk {
            office,
            board,
            lost,
            listening_since: None,
            thought,
            nodes: 0,
            next: None,
            idle: None,
        }
    }

    /// Plans, and does it.
    async fn look(&mut self, watching: &Watching) -> Result<(), Error> {
        let monotonic = self.office.clock.monotonic();
        let blind = GAP_MAX < monotonic.saturating_sub(watching.looked_at);
        // Whoever does not see what is must not act on what was.
        if blind || self.office.store.trouble().is_some() {
            (self.next, self.idle) = (None, None);
            return Ok(());
        }
        let basis = Basis::of(self.office, watching);
        if self.is_idle(&basis, monotonic) {
            return Ok(());
        }
        (self.next, self.idle) = (None, None);
        if self.listening_since != Some(watching.listening_since) {
            self.listening_since = Some(watching.listening_since);
            self.lost.clear();
        }
        let picture = self.office.store.read(Picture::of);
        self.count_lost(&picture.nodes, monotonic);
        let now = self.office.clock.now();
        let settings = &*basis.settings;
        let fleet = self.fleet(&picture, watching, monotonic);
        let plan = plan(&fleet, settings, now);
        let change = Change::Fleet { fleet: &fleet, plan: &plan, settings, now };
        if let Err(broken) = invariant::check(change) {
            error!(broken, "refused to carry out a plan that breaks an invariant");
            self.office.stats.refused(&broken);
            return Ok(());
        }
        self.thought = self.office.clock.monotonic().saturating_sub(monotonic);
        self.nodes = u32::try_from(picture.nodes.len()).unwrap_or(u32::MAX);
        self.next = plan.next;
        // Who is bad and was not heard yet may be heard any time; nothing is written then.
        let unheard = |of: &Subject<'_>| !of.heard && is_asked(of.node);
        if plan.is_nothing() && !fleet.nodes.iter().any(unheard) {
            self.idle = Some((basis, monotonic));
            return Ok(());
        }
        self.carry_out(&plan, &picture, &watching.fence).await
    }

    /// Whether a look would find what the last one found: nothing to do.
    fn is_idle(&self, basis: &Basis, monotonic: Duration) -> bool {
        let due = self.next.is_some_and(|at| at <= self.office.clock.now());
        !due && self
            .idle
            .as_ref()
            .is_some_and(|(was, at)| monotonic.saturating_sub(*at) < LOOK_ANYWAY && was == basis)
    }

    fn count_lost(&mut self, nodes: &[Stored<Node>], now: Duration) {
        let lost = nodes.iter().filter(|node| node.value.liveness == Liveness::Unreachable);
        let lost = lost.map(|node| {
            let id = node.value.id.clone();
            let since = self.lost.get(&id).copied().unwrap_or(now);
            (id, since)
        });
        self.lost = lost.collect();
    }

    fn fleet<'p>(
        &self,
        picture: &'p Picture,
        watching: &Watching,
        monotonic: Duration,
    ) -> Fleet<'p> {
        let listening_for = monotonic.saturating_sub(watching.listening_since);
        let subject = |node: &'p Stored<Node>| {
            let node = &*node.value;
            let pulse = is_asked(node).then(|| self.board.find(node.id.as_str())).flatten();
            let quiet = pulse.and_then(|pulse| pulse.quiet_for(monotonic));
            // Only those can be among the lost, and few are asked for.
            let silent = node.liveness == Liveness::Unreachable;
            let since = silent.then(|| self.lost.get(&node.id)).flatten();
            Subject {
                node,
                heard: quiet.is_some_and(|quiet| quiet <= listening_for),
                unreachable_for: since.map(|since| signed(monotonic.saturating_sub(*since))),
                cordon_pending: picture.pending.get(&node.id).map(|command| command.issued_at),
            }
        };
        Fleet {
            nodes: picture.nodes.iter().map(subject).collect(),
            breakers: picture.breakers.iter().map(|breaker| &*breaker.value).collect(),
            pauses: picture.pauses.iter().map(|pause| &*pause.value).collect(),
            excuse: watching.excuse,
        }
    }

    async fn carry_out(&self, plan: &Plan, picture: &Picture, fence: &Fence) -> Result<(), Error> {
        // Before any action, so that a step of a half-open breaker cannot be taken twice.
        if !self.turn_breakers(plan, picture, fence).await? {
            return Ok(());
        }
        if plan.actions.is_empty() && plan.holds.is_empty() {
            return Ok(());
        }
        let acted: HashSet<&NodeId> = plan.actions.iter().map(|action| &action.node).collect();
        let held: HashSet<&NodeId> = plan.holds.iter().map(|(node, _)| node).collect();
        let nodes = picture.nodes.iter().map(|node| (&node.value.id, node.revision));
        let seen: Seen<'_> =
            nodes.filter(|(node, _)| acted.contains(node) || held.contains(node)).collect();
        // Together, so that they share a write: a slow disk would make the last wait for all the others.
        let batches = plan.actions.chunks(BATCH_MAX);
        try_join_all(batches.map(|actions| self.act(actions, &seen, fence))).await?;
        for holds in plan.holds.chunks(BATCH_MAX) {
            self.hold(holds, &seen, &acted, fence).await?;
        }
        Ok(())
    }

    /// Stores the breakers as they should be; false if somebody else turned one meanwhile.
    async fn turn_breakers(
        &self,
        plan: &Plan,
        picture: &Picture,
        fence: &Fence,
    ) -> Result<bool, Error> {
        if plan.breakers.is_empty() && plan.closed.is_empty() {
            return Ok(true);
        }
        let caller = system(SELF);
        let decide = |view: &View, now: Timestamp| {
            let mut txn = Txn::at(now);
            txn.fence(fence.clone());
            let changes = plan.breakers.iter().map(|breaker| (&breaker.scope, Some(breaker)));
            let closed = plan.closed.iter().map(|breaker| (&breaker.scope, None));
            for (scope, after) in changes.chain(closed) {
                let is_it = |breaker: &&Stored<Breaker>| breaker.value.scope == *scope;
                let (before, seen) =
                    (view.breakers().find(is_it), picture.breakers.iter().find(is_it));
                if before.map(|stored| stored.revision) != seen.map(|stored| stored.revision) {
                    return Ok((None, false));
                }
                let change = match (before, after) {
                    (None, Some(after)) => {
                        Mutation { action: "open", ..Mutation::create(Arc::new(after.clone())) }
                    }
                    (Some(before), Some(after)) => {
                        let action = if after.half_open.is_some() { "half-open" } else { "open" };
                        Mutation::update(action, before, Arc::new(after.clone()))
                    }
                    (Some(before), None) => Mutation::remove("close", before, None),
                    (None, None) => continue,
                };
                let change = match after {
                    Some(after) => change.because(&after.reason),
                    None => change,
                };
                Office::put(&mut txn, change, &caller, now);
            }
            Ok((Some(txn), true))
        };
        let (_, turned) = self.office.decide(decide).await?;
        if turned {
            tell_of_breakers(plan, picture);
        }
        Ok(turned)
    }

    /// Does some of what was planned, in one commit.
    async fn act(&self, actions: &[Action], seen: &Seen<'_>, fence: &Fence) -> Result<(), Error> {
        let caller = system(SELF);
        let decide = |view: &View, now: Timestamp| {
            let mut txn = Txn::at(now);
            txn.fence(fence.clone());
            let mut unpaused = BTreeSet::new();
            let mut done = Vec::new();
            for action in actions {
                let Some(node) = view.node(action.node.as_str()) else { continue };
                // It is not what was planned for any more; the next plan knows better.
                if seen.get(&action.node) != Some(&node.revision) {
                    continue;
                }
                let stops = matches!(action.kind, ActionKind::Withdraw | ActionKind::StopDrain);
                if !stops && view.pauses().any(|pause| pause.value.covers(&node.value)) {
                    continue;
                }
                if self.step(&mut txn, view, node, action, &caller, now)? {
                    done.push(action);
                    if !stops {
                        unpaused.insert((&node.value.tenant, None));
                        unpaused.insert((&node.value.tenant, node.value.pool.as_deref()));
                    }
                }
            }
            for (tenant, pool) in unpaused {
                txn.absent(&pause_of(tenant, pool));
            }
            Ok(((!done.is_empty()).then_some(txn), done))
        };
        let (_, done) = self.office.decide(decide).await?;
        for Action { node, kind, reason, budget } in done {
            self.office.stats.remedies.add_one();
            info!(%node, action = %kind, reason, budget, "acted by ourselves");
        }
        Ok(())
    }

    /// Adds one action to a transaction; false if it cannot be done.
    fn step(
        &self,
        txn: &mut Txn,
        view: &View,
        node: &Stored<Node>,
        action: &Action,
        caller: &Caller,
        now: Timestamp,
    ) -> Result<bool, Error> {
        let nodes = self.office.nodes();
        let settings = nodes.of_node(&node.value);
        let mut sheet = Sheet::of(view, node);
        // Before what follows from it, as the story is told.
        sheet.note(decision(action, now));
        let mut before = (*node.value).clone();
        before.held = None;
        let open = sheet.open();
        let ours =
            |command: &&Arc<Command>| command.automatic && command.kind == CommandKind::Cordon;
        let moved = match action.kind {
            ActionKind::EnforceCordon => {
                open.iter().find(ours).and_then(|command| enforced(&before, command, now))
            }
            ActionKind::Withdraw => open
                .iter()
                .find(ours)
                .and_then(|command| withdrawn(&before, command, &action.reason, now)),
            ActionKind::Cordon
            | ActionKind::StopDrain
            | ActionKind::Drain
            | ActionKind::Uncordon => None,
        };
        let kind = match action.kind {
            // The node hears of a cordon, and goes on no longer.
            ActionKind::Cordon | ActionKind::StopDrain => Some(CommandKind::Cordon),
            ActionKind::Drain => Some(CommandKind::Drain),
            ActionKind::Uncordon => Some(CommandKind::Uncordon),
            ActionKind::EnforceCordon | ActionKind::Withdraw => None,
        };
        if let Some(kind) = kind {
            let mut past = view.commands_of(node.value.id.as_str()).rev();
            let last = past.find(|command| command.value.kind == kind && command.value.automatic);
            let stops = action.kind == ActionKind::StopDrain;
            let until = last.and_then(|last| last.value.failed_until()).filter(|_| !stops);
            if until.is_some_and(|until| now < until) {
                return Ok(false);
            }
            if kind == CommandKind::Uncordon {
                before.flaps.hold_until = None;
            }
            let order = Order {
                kind,
                parameters: BTreeMap::new(),
                reason: action.reason.clone(),
                by: SELF.to_owned(),
                automatic: true,
                drain_for: None,
            };
            let waiting: Vec<&Command> = open.iter().map(|command| &**command).collect();
            let id = self.office.ids.command(now);
            match issue(&before, &waiting, order, id, settings, now) {
                Ok(issued) => sheet.issued(issued, action.kind.as_str()),
                Err(refused) => {
                    warn!(node = %action.node, action = %action.kind, %refused, "could not act");
                    return Ok(false);
                }
            }
            make_room(txn, view, &node.value);
        } else if let Some(moved) = moved {
            sheet.moved(moved, action.kind.as_str());
        } else {
            return Ok(false);
        }
        sheet.write(txn, caller, Cause::Automatic, Some(&action.reason), now)?;
        Ok(true)
    }

    /// Writes down what was due and not done, in one commit.
    async fn hold(
        &self,
        holds: &[(NodeId, Option<Held>)],
        seen: &Seen<'_>,
        acted: &HashSet<&NodeId>,
        fence: &Fence,
    ) -> Result<(), Error> {
        let caller = system(SELF);
        let decide = |view: &View, now: Timestamp| {
            let mut txn = Txn::at(now);
            txn.fence(fence.clone());
            let mut any = false;
            for (id, held) in holds {
                let Some(before) = view.node(id.as_str()) else { continue };
                // Taking a cordon back has changed the node, and why is to be said all the same.
                let same = seen.get(id) == Some(&before.revision);
                if !(same || acted.contains(id)) || before.value.held == *held {
                    continue;
                }
                let nodes = self.office.nodes();
                let settings = nodes.of_node(&before.value);
                let mut after = (*before.value).clone();
                after.held.clone_from(held);
                let waits = held.as_ref().is_some_and(|held| held.guard == "hold-down");
                after.flaps.hold_until = waits.then(|| back_at(&before.value, settings));
                let entries: Vec<Entry> =
                    held.iter().map(|held| held_back(id, held, now)).collect();
                let change = Mutation::update("hold", before, Arc::new(after));
                Office::write_node(&mut txn, change, Cause::Automatic, &entries, &caller, now)?;
                any = true;
            }
            Ok((any.then_some(txn), ()))
        };
        self.office.decide(decide).await?;
        Ok(())
    }
}

fn decision(action: &Action, at: Timestamp) -> Entry {
    let what = What::Decision {
        action: action.kind.decision().to_owned(),
        held_by: None,
        reason: action.reason.clone(),
        budget: action.budget.clone(),
    };
    Entry { at, node: action.node.clone(), what }
}

fn held_back(node: &NodeId, held: &Held, at: Timestamp) -> Entry {
    let what = What::Decision {
        action: held.action.clone(),
        held_by: Some(held.guard.clone()),
        reason: held.reason.clone(),
        budget: String::new(),
    };
    Entry { at, node: node.clone(), what }
}

fn tell_of_breakers(plan: &Plan, picture: &Picture) {
    for breaker in &plan.breakers {
        let Breaker { scope, reason, .. } = breaker;
        let was = picture.breakers.iter().find(|stored| stored.value.scope == *scope);
        let was_open =
            was.is_some_and(|was| was.value.half_open.is_none() && !was.value.is_closed());
        match breaker.half_open {
            Some(step) => {
                info!(%scope, allowed = step.allowed, taken = step.taken, "a breaker is half open");
            }
            None if was_open => {}
            None => {
                error!(%scope, reason, "a breaker opened: nothing more is done there by itself")
            }
        }
    }
    for Breaker { scope, .. } in &plan.closed {
        info!(%scope, "a breaker closed");
    }
}
