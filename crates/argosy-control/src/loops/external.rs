//! Tells the workload systems what became of a node's duty, and asks them how far drains are.
//!
//! What a newcomer gets wrong: nobody waits for this. A cordon holds when it is committed; a system that is
//! away, slow or wrong is called again, flagged on the node, and never the reason to take it back.

use crate::Error;
use crate::command::sheet::Sheet;
use crate::loops::{Alarms, Beats, RENEW_EVERY, keep_lease, lead};
use crate::office::{Office, system};
use crate::scheduler::{DrainStatus, Machine, Scheduler, SchedulerError};
use argosy_core::command;
use argosy_core::external::{self, Call, Next};
use argosy_core::invariant::Cause;
use argosy_core::node::{Duty, Node, NodeId, Told};
use argosy_store::engine::Fence;
use argosy_store::view::View;
use argosy_store::{Revision, Txn};
use futures_util::future::join_all;
use jiff::{SignedDuration, Timestamp};
use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::{Id, JoinError, JoinSet};
use tracing::{error, info, warn};

const NAME: &str = "external";

/// How many nodes are told about at once. Each is a connection, and `slurmctld` takes one at a time.
const CALLS_MAX: usize = 32;

/// How long one system may take. They answer in seconds; one that hangs must not hold its place.
const CALL_MAX: Duration = Duration::from_secs(30);

/// How often a system is asked how far a drain is.
const ASK_EVERY: SignedDuration = SignedDuration::from_secs(10);

/// When to look again at a node for which something could not be saved.
const AFTER_TROUBLE: SignedDuration = SignedDuration::from_secs(1);

/// When to look again at a node whose call panicked.
const AFTER_PANIC: SignedDuration = SignedDuration::from_secs(60);

/// When to read the feed again after it could not be read.
const FEED_RETRY: Duration = Duration::from_secs(1);

/// Every configured workload system.
pub(crate) type Schedulers = Arc<[Arc<dyn Scheduler>]>;

/// Runs until the process ends.
pub(crate) async fn run(
    office: Arc<Office>,
    schedulers: Schedulers,
    beats: Arc<Beats>,
    holder: String,
) -> Result<(), Error> {
    loop {
        let fence = lead(&office, NAME, &holder, &beats).await;
        info!(epoch = fence.epoch, "telling workload systems");
        let hands = Hands { office: office.clone(), schedulers: schedulers.clone(), fence };
        let fence = hands.fence.clone();
        let desk = Desk::new(hands, beats.clone());
        tokio::select! {
            biased;
            () = desk.work() => {}
            () = keep_lease(&office, NAME, &holder, &fence) => {}
        }
        warn!("another process tells workload systems now");
    }
}

/// What the leading process has on its desk. All of it is made anew from the store.
struct Desk {
    hands: Hands,
    beats: Arc<Beats>,
    seen: Revision,
    alarms: Alarms<NodeId>,
    /// When to ask next how far a drain is.
    ask_at: HashMap<NodeId, Timestamp>,
    /// Nodes that wait for their turn, and the same as a set.
    queue: VecDeque<NodeId>,
    queued: HashSet<NodeId>,
    calls: JoinSet<Ended>,
    called: HashMap<Id, NodeId>,
    under_way: HashSet<NodeId>,
    fenced: bool,
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    /// What came of it is written down.
    Noted,
    /// There was nothing to do any more.
    Moot,
    /// Work is left on the node.
    StillDraining,
    /// What came of it could not be written down.
    Trouble,
    /// Another process leads.
    Fenced,
}

impl Desk {
    fn new(hands: Hands, beats: Arc<Beats>) -> Self {
        Self {
            hands,
            beats,
            seen: Revision::ZERO,
            alarms: Alarms::default(),
            ask_at: HashMap::new(),
            queue: VecDeque::new(),
            queued: HashSet::new(),
            calls: JoinSet::new(),
            called: HashMap::new(),
            under_way: HashSet::new(),
            fenced: false,
        }
    }

    /// Works until a commit is fenced off. Dropping it drops the calls that are under way.
    async fn work(mut self) {
        let clock = self.hands.office.clock;
        let mut changes = self.hands.office.store.subscribe();
        let mut beat = tokio::time::interval(RENEW_EVERY);
        self.look_at_everything();
        while !self.fenced {
            self.start_calls();
            tokio::select! {
                biased;
                _ = beat.tick() => self.beats.beat(NAME, clock.now()),
                () = self.alarms.ring(clock) => {
                    while let Some(node) = self.alarms.due(clock.now()) {
                        self.look_at(&node);
                    }
                }
                Some(ended) = self.calls.join_next_with_id() => self.ended(ended),
                changed = changes.changed() => {
                    if changed.is_err() {
                        return;
                    }
                    self.follow().await;
                }
            }
        }
    }

    fn look_at_everything(&mut self) {
        let now = self.hands.office.clock.now();
        let nodes: Vec<NodeId> = self.hands.office.store.read(|view| {
            self.seen = view.revision();
            let due = view.nodes().filter(|node| external::next(&node.value, now) != Next::Nothing);
            due.map(|node| node.value.id.clone()).collect()
        });
        for node in nodes {
            self.look_at(&node);
        }
    }

    /// Looks at what changed.
    async fn follow(&mut self) {
        loop {
            match self.hands.office.store.events(self.seen).await {
                Ok(Ok(events)) => {
                    let Some(last) = events.last() else { return };
                    self.seen = last.revision;
                    let nodes = events.iter().flat_map(|event| &event.nodes);
                    let changed = nodes.filter_map(|change| {
                        let known = change.after.as_ref().or(change.before.as_ref())?;
                        Some(known.value.id.clone())
                    });
                    let changed: BTreeSet<NodeId> = changed.collect();
                    for node in changed {
                        self.look_at(&node);
                    }
                }
                Ok(Err(_)) => return self.look_at_everything(),
                Err(error) => {
                    warn!(%error, "could not read the feed");
                    tokio::time::sleep(FEED_RETRY).await;
                }
            }
        }
    }

    /// Decides what is due for one node, and when to look again.
    fn look_at(&mut self, node: &NodeId) {
        if self.under_way.contains(node) {
            // It is looked at when the call has ended.
            return;
        }
        let now = self.hands.office.clock.now();
        let next = self.hands.office.store.read(|view| {
            view.node(node.as_str()).map_or(Next::Nothing, |node| external::next(&node.value, now))
        });
        let ask_at = self.ask_at.get(node).copied().filter(|at| now < *at);
        let wake_at = match next {
            Next::Call(Call::AskDrained) if ask_at.is_some() => ask_at,
            Next::Wait(at) => Some(at),
            Next::Call(_) => {
                if self.queued.insert(node.clone()) {
                    self.queue.push_back(node.clone());
                }
                None
            }
            Next::Nothing => {
                self.ask_at.remove(node);
                None
            }
        };
        self.alarms.set(node, wake_at);
    }

    fn start_calls(&mut self) {
        while self.under_way.len() < CALLS_MAX
            && let Some(node) = self.queue.pop_front()
        {
            self.queued.remove(&node);
            self.under_way.insert(node.clone());
            let (hands, of) = (self.hands.clone(), node.clone());
            let call = self.calls.spawn(async move { hands.call(&of).await });
            self.called.insert(call.id(), node);
        }
    }

    fn ended(&mut self, ended: Result<(Id, Ended), JoinError>) {
        let now = self.hands.office.clock.now();
        let later = |time: SignedDuration| now.saturating_add(time).ok();
        let (task, ended) = match ended {
            Ok((task, ended)) => (task, Some(ended)),
            Err(death) => (death.id(), None),
        };
        let Some(node) = self.called.remove(&task) else { return };
        self.under_way.remove(&node);
        match ended {
            Some(Ended::Noted | Ended::Moot) => self.look_at(&node),
            Some(Ended::StillDraining) => {
                self.ask_at.extend(later(ASK_EVERY).map(|at| (node.clone(), at)));
                self.look_at(&node);
            }
            Some(Ended::Trouble) => self.alarms.set(&node, later(AFTER_TROUBLE)),
            Some(Ended::Fenced) => self.fenced = true,
            None => {
                error!(%node, "a call to a workload system panicked");
                self.alarms.set(&node, later(AFTER_PANIC));
            }
        }
    }
}

/// What calls need.
#[derive(Clone)]
struct Hands {
    office: Arc<Office>,
    schedulers: Schedulers,
    fence: Fence,
}

/// What is to be said to the systems, as it was when it was decided.
struct Work {
    machine: Machine,
    call: Call,
    reason: String,
    deadline: Timestamp,
}

/// What the systems say together.
enum Answer {
    /// These heard it; of a drain, these say that it is over.
    Done(String),
    StillDraining,
    Failed {
        system: String,
        message: String,
    },
}

impl Hands {
    /// Does whatever is due for a node now.
    async fn call(&self, node: &NodeId) -> Ended {
        let work = match self.prepare(node).await {
            Ok(Some(work)) => work,
            Ok(None) => return Ended::Moot,
            Err(error) => return trouble(node, &error),
        };
        let answer = self.ask_all(&work).await;
        if let Answer::Failed { system, message } = &answer {
            let what = work.call.as_str();
            warn!(%node, system, what, message, "a workload system could not be told or asked");
        }
        match self.note(node, &work, &answer).await {
            Ok(()) if matches!(answer, Answer::StillDraining) => Ended::StillDraining,
            Ok(()) => Ended::Noted,
            Err(error) => trouble(node, &error),
        }
    }

    /// What is due, written down before it is done; `None` if nothing is.
    async fn prepare(&self, node: &NodeId) -> Result<Option<Work>, Error> {
        let caller = system(NAME);
        let decide = |view: &View, now: Timestamp| {
            let Some(found) = view.node(node.as_str()) else { return Ok((None, None)) };
            let Next::Call(call) = external::next(&found.value, now) else {
                return Ok((None, None));
            };
            let work = Some(work(&found.value, call, now));
            let Call::Tell(told) = call else { return Ok((None, work)) };
            let Some(telling) = external::telling(&found.value, told) else {
                return Ok((None, work));
            };
            let mut sheet = Sheet::of(view, found);
            sheet.amended(telling, Vec::new(), "tell");
            let mut txn = Txn::at(now);
            txn.fence(self.fence.clone());
            sheet.write(&mut txn, &caller, Cause::Automatic, None, now)?;
            Ok((Some(txn), work))
        };
        Ok(self.office.decide(decide).await?.1)
    }

    /// Calls every system, each for as long as it may take.
    async fn ask_all(&self, work: &Work) -> Answer {
        let calls = self.schedulers.iter().map(|system| async {
            let answer = tokio::time::timeout(CALL_MAX, ask(&**system, work)).await;
            let slow =
                || Err(SchedulerError::Later(format!("no answer in {} s", CALL_MAX.as_secs())));
            (system.name(), answer.unwrap_or_else(|_| slow()))
        });
        together(join_all(calls).await)
    }

    /// Writes down what came of it.
    async fn note(&self, node: &NodeId, work: &Work, answer: &Answer) -> Result<(), Error> {
        let caller = system(NAME);
        let decide = |view: &View, now: Timestamp| {
            let Some(found) = view.node(node.as_str()) else { return Ok((None, ())) };
            let mut sheet = Sheet::of(view, found);
            match (answer, work.call) {
                (Answer::Failed { system, message }, call) => {
                    let (node, entries) = external::failed(&sheet.node, system, call, message, now);
                    sheet.amended(node, entries, "tell");
                }
                (Answer::Done(systems), Call::Tell(told)) => {
                    let (node, entries) = external::heard(&sheet.node, systems, told, now);
                    sheet.amended(node, entries, "tell");
                }
                (Answer::Done(_) | Answer::StillDraining, _) => {
                    if let Some((node, entries)) = external::answered(&sheet.node, now) {
                        sheet.amended(node, entries, "tell");
                    }
                }
            }
            if let (Answer::Done(systems), Call::AskDrained) = (answer, work.call) {
                end_drain(&mut sheet, systems, now);
            }
            if sheet.is_blank() {
                return Ok((None, ()));
            }
            let mut txn = Txn::at(now);
            txn.fence(self.fence.clone());
            sheet.write(&mut txn, &caller, Cause::Automatic, None, now)?;
            Ok((Some(txn), ()))
        };
        self.office.decide(decide).await.map(|_| ())
    }
}

/// Ends the drain of a node, if it is still the one that was asked about.
fn end_drain(sheet: &mut Sheet<'_>, systems: &str, now: Timestamp) {
    let Duty::Draining { command: drain, done: false, .. } = &sheet.node.duty else { return };
    let drain = *drain;
    let Some(open) = sheet.open().into_iter().find(|open| open.id == drain) else { return };
    let Some(moved) = command::drained(&sheet.node, &open, systems, now) else { return };
    sheet.note(external::drained(&sheet.node, systems, now));
    sheet.moved(moved, "drained");
}

fn work(node: &Node, call: Call, now: Timestamp) -> Work {
    let machine = Machine {
        id: node.id.to_string(),
        hostname: node.machine.hostname.clone(),
        labels: node.labels.clone(),
    };
    let reason = match node.duty.hold() {
        Some(hold) if hold.reason.is_empty() => format!("by {}", hold.by),
        Some(hold) => hold.reason.clone(),
        None => String::new(),
    };
    let deadline = match node.duty {
        Duty::Draining { deadline, .. } => deadline,
        Duty::Active | Duty::Cordoned(_) | Duty::Terminated(_) => now,
    };
    Work { machine, call, reason, deadline }
}

async fn ask(system: &dyn Scheduler, work: &Work) -> Result<DrainStatus, SchedulerError> {
    let Work { machine, call, reason, deadline } = work;
    let done = |()| DrainStatus::Drained;
    match call {
        Call::Tell(Told::Cordon) => system.cordon(machine, reason).await.map(done),
        Call::Tell(Told::Uncordon) => system.uncordon(machine).await.map(done),
        Call::Tell(Told::Drain) => system.drain(machine, reason, *deadline).await.map(done),
        Call::AskDrained => system.drain_status(machine).await,
    }
}

/// What several answers come to. A node runs under one of the systems, perhaps: those that do not know it
/// do not matter as long as one does.
fn together(answers: Vec<(&'static str, Result<DrainStatus, SchedulerError>)>) -> Answer {
    let mut done = Vec::new();
    let mut unknown = None;
    let mut draining = false;
    for (system, answer) in answers {
        match answer {
            Ok(DrainStatus::Drained) => done.push(system),
            Ok(DrainStatus::Draining { .. }) => draining = true,
            Err(SchedulerError::UnknownNode(message)) => unknown = Some((system, message)),
            Err(SchedulerError::Later(message) | SchedulerError::Refused(message)) => {
                return Answer::Failed { system: system.to_owned(), message };
            }
        }
    }
    match unknown {
        _ if draining => Answer::StillDraining,
        Some((system, message)) if done.is_empty() => {
            Answer::Failed { system: system.to_owned(), message }
        }
        Some(_) | None => Answer::Done(done.join(", ")),
    }
}

fn trouble(node: &NodeId, error: &Error) -> Ended {
    if matches!(error, Error::Store(argosy_store::Error::Fenced)) {
        return Ended::Fenced;
    }
    warn!(%error, %node, "could not write down what a workload system was told; trying again");
    Ended::Trouble
}

#[cfg(test)]
mod tests;
