//! One call to one workload system about one node, and what is written down before and after it.

use super::NAME;
use crate::Error;
use crate::command::sheet::Sheet;
use crate::office::{Office, system};
use crate::scheduler::{
    Abilities, Drain, DrainStatus, Listed, Machine, Scheduler, SchedulerError, key_of,
};
use argosy_core::command;
use argosy_core::external::{self, Call, Next, System, Told, Wish, Work};
use argosy_core::invariant::Cause;
use argosy_core::node::{Duty, Node, NodeId};
use argosy_store::Txn;
use argosy_store::engine::Fence;
use argosy_store::view::{Stored, View};
use futures_util::{StreamExt, stream};
use jiff::Timestamp;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Mutex;
use tracing::warn;

/// How long one call may take. Systems answer in seconds; one that hangs must not hold its place.
const CALL_MAX: Duration = Duration::from_secs(30);

/// How long a listing of everything may take.
const LIST_MAX: Duration = Duration::from_secs(120);

/// How many nodes that a listing shows otherwise are written at once: enough to share commits.
const WRITES_MAX: usize = 64;

/// One system, and what never changes of it.
pub(super) struct Outside {
    scheduler: Arc<dyn Scheduler>,
    key: String,
    pub(super) abilities: Abilities,
}

impl Outside {
    pub(super) fn new(scheduler: Arc<dyn Scheduler>) -> Self {
        let (key, abilities) = (key_of(&*scheduler), scheduler.abilities());
        Self { scheduler, key, abilities }
    }

    fn system(&self) -> System<'_> {
        System {
            key: &self.key,
            name: self.scheduler.name(),
            can_list: self.abilities.list,
            takes_cordon: self.abilities.cordon,
            takes_drain: self.abilities.drain,
        }
    }
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// What came of it is written down, or there was nothing to do any more.
    Noted,
    /// Work is left on the node.
    StillDraining { deadline: Timestamp },
    /// What came of it could not be written down.
    Trouble,
    /// Another process leads.
    Fenced,
}

/// What calls need.
#[derive(Clone)]
pub(super) struct Hands {
    pub(super) office: Arc<Office>,
    pub(super) outside: Arc<[Outside]>,
    pub(super) fence: Fence,
}

/// A call, as it was when it was decided.
struct Job {
    machine: Machine,
    call: Call,
}

/// What came of a call.
enum Outcome {
    /// It heard; what it calls the machine.
    Heard(String),
    Status(DrainStatus),
    Failed(SchedulerError),
}

/// What is due for a node at one system.
pub(super) fn next_of(view: &View, node: &Node, outside: &Outside, now: Timestamp) -> Next {
    let system = outside.system();
    let wanted = wanted(view, node, &system);
    let name = outside.scheduler.name_of(&machine(node)).ok();
    external::next(node, &system, &wanted, name.as_deref(), now)
}

fn wanted(view: &View, node: &Node, system: &System<'_>) -> Wish {
    let force = match &node.duty {
        Duty::Draining { command, .. } => {
            view.command(*command).is_some_and(|command| command.value.forces())
        }
        Duty::Active | Duty::Cordoned(_) | Duty::Terminated(_) => false,
    };
    external::wanted(node, system, force)
}

fn machine(node: &Node) -> Machine {
    Machine {
        id: node.id.to_string(),
        hostname: node.machine.hostname.clone(),
        labels: node.labels.clone(),
        known_as: None,
    }
}

impl Hands {
    /// Does whatever is due for a node now.
    pub(super) async fn call(&self, system: usize, node: &NodeId) -> Ended {
        let Some(outside) = self.outside.get(system) else { return Ended::Noted };
        let job = match self.prepare(outside, node).await {
            Ok(Some(job)) => job,
            Ok(None) => return Ended::Noted,
            Err(error) => return trouble(node, &error),
        };
        let now = self.office.clock.now();
        let asked = tokio::time::timeout(CALL_MAX, make(&*outside.scheduler, &job, now)).await;
        let slow = || format!("no answer in {} s", CALL_MAX.as_secs());
        let outcome = asked.unwrap_or_else(|_| Outcome::Failed(SchedulerError::Later(slow())));
        if let Outcome::Failed(error) = &outcome {
            let (system, what) = (outside.scheduler.name(), job.call.as_str());
            warn!(%node, system, what, %error, "a workload system could not be told or asked");
        }
        let left = match (&outcome, &job.call) {
            (
                Outcome::Status(DrainStatus::Draining { .. } | DrainStatus::Ending { .. }),
                Call::Ask(Wish { deadline: Some(deadline), .. }),
            ) => Some(*deadline),
            _ => None,
        };
        match self.note(outside, node, &job.call, outcome).await {
            Ok(()) => left.map_or(Ended::Noted, |deadline| Ended::StillDraining { deadline }),
            Err(error) => trouble(node, &error),
        }
    }

    /// What is due, written down before it is done; `None` if nothing is.
    async fn prepare(&self, outside: &Outside, node: &NodeId) -> Result<Option<Job>, Error> {
        let decide = |view: &View, now: Timestamp| {
            let Some(found) = view.node(node.as_str()) else { return Ok((None, None)) };
            let system = outside.system();
            let call = match next_of(view, &found.value, outside, now) {
                Next::Tell(wish) => Call::Tell(wish),
                Next::Ask(wish) => Call::Ask(wish),
                Next::Release(name) if is_anothers(view, found, &system, &name) => {
                    let mut sheet = Sheet::of(view, found);
                    let (node, entries) = external::released(&found.value, &system, &name, now);
                    sheet.amended(node, entries, "tell");
                    return Ok((Some(self.written(sheet, now)?), None));
                }
                Next::Release(name) => Call::Release(name),
                Next::Wait(_) | Next::Nothing => return Ok((None, None)),
            };
            let known_as = match &call {
                Call::Release(name) => Some(name.clone()),
                Call::Tell(_) | Call::Ask(_) => None,
            };
            let machine = Machine { known_as, ..machine(&found.value) };
            let telling = match &call {
                Call::Tell(wish) => external::telling(&found.value, system.key, wish),
                Call::Ask(_) | Call::Release(_) => None,
            };
            let job = Some(Job { machine, call });
            let Some(telling) = telling else { return Ok((None, job)) };
            let mut sheet = Sheet::of(view, found);
            sheet.amended(telling, Vec::new(), "tell");
            Ok((Some(self.written(sheet, now)?), job))
        };
        Ok(self.office.decide(decide).await?.1)
    }

    /// Writes down what came of it, and ends the drain if that was what it waited for.
    async fn note(
        &self,
        outside: &Outside,
        node: &NodeId,
        call: &Call,
        outcome: Outcome,
    ) -> Result<(), Error> {
        let systems = &self.office.systems;
        let decide = |view: &View, now: Timestamp| {
            let Some(found) = view.node(node.as_str()) else { return Ok((None, ())) };
            let system = outside.system();
            let mut sheet = Sheet::of(view, found);
            if let Some(node) = external::without_others(&sheet.node, systems) {
                sheet.amended(node, Vec::new(), "tell");
            }
            let node = sheet.node.clone();
            let gone = matches!(node.duty, Duty::Terminated(_));
            let news = match (&outcome, call) {
                // Who has no such machine any more gives it no work.
                (Outcome::Failed(SchedulerError::UnknownNode(_)), Call::Tell(wish)) if gone => {
                    Some(external::heard(&node, &system, wish, "", now))
                }
                (Outcome::Failed(error), call) => {
                    let wanted = wanted(view, &node, &system);
                    external::failed(&node, &system, call, &wanted, &error.to_string(), now)
                }
                (Outcome::Heard(_), Call::Release(name)) => {
                    Some(external::released(&node, &system, name, now))
                }
                (Outcome::Heard(name), Call::Tell(wish) | Call::Ask(wish)) => {
                    Some(external::heard(&node, &system, wish, name, now))
                }
                (Outcome::Status(status), Call::Ask(wish)) => {
                    wish.deadline.zip(work(status, wish, now)).and_then(|(deadline, work)| {
                        external::answered(&node, &system, work, deadline, now)
                    })
                }
                (Outcome::Status(_), Call::Tell(_) | Call::Release(_)) => None,
            };
            if let Some((node, entries)) = news {
                sheet.amended(node, entries, "tell");
            }
            for open in sheet.open() {
                if let Some(moved) = command::concluded(&sheet.node, &open, systems, now) {
                    sheet.moved(moved, "drained");
                }
            }
            if sheet.is_blank() {
                return Ok((None, ()));
            }
            Ok((Some(self.written(sheet, now)?), ()))
        };
        self.office.decide(decide).await.map(|_| ())
    }

    /// Compares what a system holds with what it was told.
    pub(super) async fn list(&self, system: usize) -> Ended {
        let Some(outside) = self.outside.get(system) else { return Ended::Noted };
        let began = self.office.clock.now();
        let listed = match tokio::time::timeout(LIST_MAX, outside.scheduler.list()).await {
            Ok(Ok(listed)) => listed,
            Ok(Err(error)) => {
                warn!(system = outside.key, %error, "what a workload system holds could not be listed");
                return Ended::Noted;
            }
            Err(_) => {
                warn!(system = outside.key, "listing what a workload system holds took too long");
                return Ended::Noted;
            }
        };
        // Of one that is there twice, the last counts; who is not there is not judged: half a list is none.
        let by_name: HashMap<&str, &Listed> =
            listed.iter().map(|one| (one.name.as_str(), one)).collect();
        let told: Vec<(NodeId, &Listed)> = self.office.store.read(|view| {
            let named = view.nodes().filter_map(|node| {
                node.value.external.party(&outside.key)?;
                let name = outside.scheduler.name_of(&machine(&node.value)).ok()?;
                let shown = by_name.get(name.as_str())?;
                let news = self.seen(outside, &node.value, shown, began, began);
                news.map(|_| (node.value.id.clone(), *shown))
            });
            named.collect()
        });
        let fenced = Mutex::new(false);
        let writes = stream::iter(told).for_each_concurrent(WRITES_MAX, async |(node, shown)| {
            if let Err(error) = self.note_seen(outside, &node, shown, began).await
                && trouble(&node, &error) == Ended::Fenced
            {
                *fenced.lock().await = true;
            }
        });
        writes.await;
        if fenced.into_inner() { Ended::Fenced } else { Ended::Noted }
    }

    fn seen(
        &self,
        outside: &Outside,
        node: &Node,
        shown: &Listed,
        began: Timestamp,
        now: Timestamp,
    ) -> Option<(Node, Vec<argosy_core::ledger::Entry>)> {
        external::seen(node, &outside.system(), shown.out, &shown.note, began, now)
    }

    async fn note_seen(
        &self,
        outside: &Outside,
        node: &NodeId,
        shown: &Listed,
        began: Timestamp,
    ) -> Result<(), Error> {
        let decide = |view: &View, now: Timestamp| {
            let Some(found) = view.node(node.as_str()) else { return Ok((None, ())) };
            let Some((node, entries)) = self.seen(outside, &found.value, shown, began, now) else {
                return Ok((None, ()));
            };
            let mut sheet = Sheet::of(view, found);
            sheet.amended(node, entries, "seen");
            Ok((Some(self.written(sheet, now)?), ()))
        };
        self.office.decide(decide).await.map(|_| ())
    }

    fn written(&self, sheet: Sheet<'_>, now: Timestamp) -> Result<Txn, Error> {
        let mut txn = Txn::at(now);
        txn.fence(self.fence.clone());
        sheet.write(&mut txn, &system(NAME), Cause::Automatic, None, now)?;
        Ok(txn)
    }
}

/// Whether a name that a machine had before is another machine's by now: what is said of it is about that one.
fn is_anothers(view: &View, node: &Stored<Node>, system: &System<'_>, name: &str) -> bool {
    let others = view.nodes().filter(|other| other.value.id != node.value.id);
    let mut parties = others.filter_map(|other| other.value.external.party(system.key));
    parties.any(|party| party.name == name)
}

async fn make(system: &dyn Scheduler, job: &Job, now: Timestamp) -> Outcome {
    let Job { machine, call } = job;
    let name = match &machine.known_as {
        Some(name) => Ok(name.clone()),
        None => system.name_of(machine),
    };
    let heard = match (call, &name) {
        (Call::Ask(wish), _) => {
            return match system.drain_status(machine, &drain(wish, now)).await {
                Ok(status) => Outcome::Status(status),
                Err(error) => Outcome::Failed(error),
            };
        }
        (_, Err(error)) => Err(error.clone()),
        (Call::Release(_), Ok(_)) => system.uncordon(machine).await,
        (Call::Tell(wish), Ok(_)) => match wish.state {
            Told::Uncordon => system.uncordon(machine).await,
            Told::Cordon => system.cordon(machine, &wish.reason).await,
            Told::Drain => system.drain(machine, &drain(wish, now)).await,
        },
    };
    let lets_go = match call {
        Call::Release(_) => true,
        Call::Tell(wish) => wish.state == Told::Uncordon,
        Call::Ask(_) => false,
    };
    match heard {
        Ok(()) => Outcome::Heard(name.unwrap_or_default()),
        // Who has no such node keeps no work from it.
        Err(SchedulerError::UnknownNode(_)) if lets_go => Outcome::Heard(name.unwrap_or_default()),
        Err(error) => Outcome::Failed(error),
    }
}

fn drain(wish: &Wish, now: Timestamp) -> Drain {
    let deadline = wish.deadline.unwrap_or(Timestamp::MAX);
    Drain { reason: wish.reason.clone(), deadline, over: deadline <= now, force: wish.force }
}

/// What a status says about the work on a node; `None` if it is of no drain.
fn work(status: &DrainStatus, wish: &Wish, at: Timestamp) -> Option<Work> {
    let of = wish.command?;
    let (over, forced, message) = match status {
        DrainStatus::Drained => (true, false, ""),
        DrainStatus::Forced => (true, true, ""),
        DrainStatus::Draining { message, .. } => (false, false, message.as_str()),
        DrainStatus::Ending { message, .. } => (false, true, message.as_str()),
    };
    Some(Work { of, at, over, forced, last: false, message: message.to_owned() })
}

fn trouble(node: &NodeId, error: &Error) -> Ended {
    if matches!(error, Error::Store(argosy_store::Error::Fenced)) {
        return Ended::Fenced;
    }
    warn!(%error, %node, "could not write down what a workload system was told; trying again");
    Ended::Trouble
}
