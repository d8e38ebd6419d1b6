//! Keeps the workload systems at what is wanted of them: tells each what became of a node's duty, asks how far
//! drains are, and compares what they hold with what they were told.
//!
//! What a newcomer gets wrong: nobody waits for this. A cordon holds when it is committed; a system that is
//! away, slow or wrong is called again, flagged on the node, and never the reason to take it back. Each system
//! is for itself: one that hangs keeps no other waiting.

mod hands;
mod queue;

use crate::Error;
use crate::loops::{Alarms, Beats, RENEW_EVERY, keep_lease, lead};
use crate::office::Office;
use crate::scheduler::Scheduler;
use argosy_core::external::Next;
use argosy_core::node::{Node, NodeId};
use argosy_store::Revision;
use argosy_store::view::DocumentChange;
use hands::{Ended, Hands, Outside, next_of};
use jiff::{SignedDuration, Timestamp};
use queue::{Queue, Rank};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::{Id, JoinError, JoinSet};
use tracing::{error, info, warn};

const NAME: &str = "external";

/// How often a system is asked how far a drain is.
const ASK_EVERY: SignedDuration = SignedDuration::from_secs(10);

/// How often what a system holds is listed: for so long a node that somebody put back there, or that it forgot,
/// may get work. One listing is one request or a few for the whole fleet.
const LIST_EVERY: SignedDuration = SignedDuration::from_secs(60);

/// How soon after a node registered anew: whoever restarted it may have made it anew there as well. Many that
/// come together are one listing.
const LIST_SOON: SignedDuration = SignedDuration::from_secs(5);

/// When to look again at a node for which something could not be saved.
const AFTER_TROUBLE: SignedDuration = SignedDuration::from_secs(1);

/// When to look again at a node whose call panicked.
const AFTER_PANIC: SignedDuration = SignedDuration::from_secs(60);

/// When to read the feed again after it could not be read.
const FEED_RETRY: Duration = Duration::from_secs(1);

/// Every configured workload system.
pub(crate) type Schedulers = Arc<[Arc<dyn Scheduler>]>;

/// One system and one node of it.
type Pair = (usize, NodeId);

/// Runs until the process ends.
pub(crate) async fn run(
    office: Arc<Office>,
    schedulers: Schedulers,
    beats: Arc<Beats>,
    holder: String,
) -> Result<(), Error> {
    let outside: Arc<[Outside]> = schedulers.iter().cloned().map(Outside::new).collect();
    loop {
        let fence = lead(&office, NAME, &holder, &beats).await;
        info!(epoch = fence.epoch, "telling workload systems");
        let hands = Hands { office: office.clone(), outside: outside.clone(), fence };
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
    alarms: Alarms<Pair>,
    /// When to ask next how far a drain is.
    ask_at: HashMap<Pair, Timestamp>,
    /// Nodes that wait for their turn, by system.
    queues: Vec<Queue>,
    calls: JoinSet<Ended>,
    called: HashMap<Id, Pair>,
    /// When to list next what a system holds.
    list_at: Vec<Option<Timestamp>>,
    lists: JoinSet<(usize, Ended)>,
    fenced: bool,
}

impl Desk {
    fn new(hands: Hands, beats: Arc<Beats>) -> Self {
        let now = hands.office.clock.now();
        let lists = hands.outside.iter().map(|system| system.abilities.list.then_some(now));
        Self {
            beats,
            seen: Revision::ZERO,
            alarms: Alarms::default(),
            ask_at: HashMap::new(),
            queues: hands.outside.iter().map(|_| Queue::default()).collect(),
            calls: JoinSet::new(),
            called: HashMap::new(),
            list_at: lists.collect(),
            lists: JoinSet::new(),
            fenced: false,
            hands,
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
            self.start_lists();
            let list_at = self.list_at.iter().flatten().min().copied();
            tokio::select! {
                biased;
                _ = beat.tick() => self.beats.beat(NAME, clock.now()),
                () = self.alarms.ring(clock) => {
                    while let Some((system, node)) = self.alarms.due(clock.now()) {
                        self.look_at(system, &node);
                    }
                }
                Some(ended) = self.calls.join_next_with_id() => self.ended(ended),
                Some(listed) = self.lists.join_next() => self.listed(listed),
                () = clock.sleep_until(list_at.unwrap_or(Timestamp::MAX)),
                    if list_at.is_some() => {}
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
        let due: Vec<Pair> = self.hands.office.store.read(|view| {
            self.seen = view.revision();
            let systems = self.hands.outside.iter().enumerate();
            let due = systems.flat_map(|(index, system)| {
                let due = view
                    .nodes()
                    .filter(|node| next_of(view, &node.value, system, now) != Next::Nothing);
                due.map(|node| (index, node.value.id.clone())).collect::<Vec<_>>()
            });
            due.collect()
        });
        for (system, node) in due {
            self.look_at(system, &node);
        }
    }

    /// Looks at what changed.
    async fn follow(&mut self) {
        loop {
            match self.hands.office.store.events(self.seen).await {
                Ok(Ok(events)) => {
                    let Some(last) = events.last() else { return };
                    self.seen = last.revision;
                    let nodes = || events.iter().flat_map(|event| &event.nodes);
                    if nodes().any(is_made_anew) {
                        self.list_soon();
                    }
                    let changed = nodes().filter_map(|change| {
                        let known = change.after.as_ref().or(change.before.as_ref())?;
                        Some(known.value.id.clone())
                    });
                    let changed: BTreeSet<NodeId> = changed.collect();
                    for node in changed {
                        for system in 0..self.hands.outside.len() {
                            self.look_at(system, &node);
                        }
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

    /// Decides what is due for one node at one system, and when to look again.
    fn look_at(&mut self, system: usize, node: &NodeId) {
        let (Some(outside), Some(queue)) =
            (self.hands.outside.get(system), self.queues.get_mut(system))
        else {
            return;
        };
        if queue.is_under_way(node) {
            // It is looked at when the call has ended.
            return;
        }
        let pair = (system, node.clone());
        let now = self.hands.office.clock.now();
        let next = self.hands.office.store.read(|view| {
            let found = view.node(node.as_str());
            found.map_or(Next::Nothing, |found| next_of(view, &found.value, outside, now))
        });
        let ask_at = self.ask_at.get(&pair).copied().filter(|at| now < *at);
        let (rank, wake_at) = match next {
            Next::Ask(_) if ask_at.is_some() => (None, ask_at),
            Next::Wait(at) => (None, Some(at)),
            Next::Tell(wish) => (Some(Rank::of(wish.state)), None),
            Next::Ask(_) | Next::Release(_) => (Some(Rank::Ask), None),
            Next::Nothing => {
                self.ask_at.remove(&pair);
                (None, None)
            }
        };
        match rank {
            Some(rank) => queue.push(node, rank),
            None => queue.drop(node),
        }
        self.alarms.set(&pair, wake_at);
    }

    fn start_calls(&mut self) {
        for (system, queue) in self.queues.iter_mut().enumerate() {
            while let Some(node) = queue.pop() {
                let (hands, of) = (self.hands.clone(), node.clone());
                let call = self.calls.spawn(async move { hands.call(system, &of).await });
                self.called.insert(call.id(), (system, node));
            }
        }
    }

    fn ended(&mut self, ended: Result<(Id, Ended), JoinError>) {
        let now = self.hands.office.clock.now();
        let later = |time: SignedDuration| now.saturating_add(time).ok();
        let (task, ended) = match ended {
            Ok((task, ended)) => (task, Some(ended)),
            Err(death) => (death.id(), None),
        };
        let Some(pair) = self.called.remove(&task) else { return };
        let (system, node) = &pair;
        if let Some(queue) = self.queues.get_mut(*system) {
            queue.ended(node);
        }
        match ended {
            Some(Ended::Noted) => self.look_at(*system, node),
            Some(Ended::StillDraining { deadline }) => {
                // And at its deadline, for what is left then.
                let at =
                    later(ASK_EVERY).map(|at| if now < deadline { at.min(deadline) } else { at });
                self.ask_at.extend(at.map(|at| (pair.clone(), at)));
                self.look_at(*system, node);
            }
            Some(Ended::Trouble) => self.alarms.set(&pair, later(AFTER_TROUBLE)),
            Some(Ended::Fenced) => self.fenced = true,
            None => {
                error!(%node, "a call to a workload system panicked");
                self.alarms.set(&pair, later(AFTER_PANIC));
            }
        }
    }

    fn start_lists(&mut self) {
        let now = self.hands.office.clock.now();
        for (system, at) in self.list_at.iter_mut().enumerate() {
            if at.is_some_and(|at| at <= now) {
                *at = None;
                let hands = self.hands.clone();
                self.lists.spawn(async move { (system, hands.list(system).await) });
            }
        }
    }

    fn listed(&mut self, listed: Result<(usize, Ended), JoinError>) {
        let now = self.hands.office.clock.now();
        let next = now.saturating_add(LIST_EVERY).ok();
        match listed {
            Ok((_, Ended::Fenced)) => self.fenced = true,
            Ok((system, _)) => {
                if let Some(at) = self.list_at.get_mut(system) {
                    *at = next;
                }
            }
            Err(death) => {
                error!(%death, "listing a workload system panicked");
                // Nobody knows which; those that can be listed are.
                for (at, system) in self.list_at.iter_mut().zip(self.hands.outside.iter()) {
                    if at.is_none() && system.abilities.list {
                        *at = next;
                    }
                }
            }
        }
    }

    fn list_soon(&mut self) {
        let soon = self.hands.office.clock.now().saturating_add(LIST_SOON).ok();
        for at in self.list_at.iter_mut().filter(|at| at.is_some()) {
            *at = (*at).min(soon);
        }
    }
}

/// Whether a machine registered as something else than before: it booted, or has another name.
fn is_made_anew(change: &DocumentChange<Node>) -> bool {
    let before = change.before.as_ref().map(|before| &before.value.machine);
    let after = change.after.as_ref().map(|after| &after.value.machine);
    after.is_some() && before != after
}
