//! What time does to commands, and who is told that there is a new one.
//!
//! Two loops. `run` is led by one process: it ends what has expired or is past its deadline, and
//! forgets what ended long ago. `ring` goes on in every process, for the streams that end there.

use crate::Error;
use crate::command::sheet::{Sheet, abandon, make_room};
use crate::loops::{Beats, RENEW_EVERY, keep_lease, lead};
use crate::office::{Office, system};
use crate::pulse::PulseBoard;
use argosy_core::command::{Command, CommandState, elapsed, is_due_again};
use argosy_core::invariant::Cause;
use argosy_core::node::{Duty, Node, NodeId};
use argosy_store::engine::Fence;
use argosy_store::view::{Event, Stored, View};
use argosy_store::{Revision, Txn};
use futures_util::StreamExt;
use jiff::{SignedDuration, Timestamp};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::MissedTickBehavior;
use tracing::{info, warn};

const NAME: &str = "commands";

const RING: &str = "dispatch";

/// How often deadlines are looked at: nobody drains by the tenth of a second.
const EVERY: Duration = Duration::from_secs(1);

/// How often it is looked for what can be forgotten.
const FORGET_EVERY: SignedDuration = SignedDuration::from_secs(60);

/// How long a command that has ended is kept; its lines in the ledger stay longer. Fewer are kept where
/// a node gets many: `command::ENDED_KEPT`.
const KEPT: SignedDuration = SignedDuration::from_hours(7 * 24);

/// How many documents one commit removes: other commits wait behind it.
const REMOVALS_MAX: usize = 500;

/// How many nodes are written at once: enough to share commits.
const WRITES_MAX: usize = 64;

/// When to read the feed again after it could not be read.
const FEED_RETRY: Duration = Duration::from_secs(1);

/// Runs until the process ends.
pub(crate) async fn run(
    office: Arc<Office>,
    beats: Arc<Beats>,
    holder: String,
) -> Result<(), Error> {
    loop {
        let fence = lead(&office, NAME, &holder, &beats).await;
        info!(epoch = fence.epoch, "watching over commands");
        tokio::select! {
            biased;
            () = watch(&office, &beats, &fence) => {}
            () = keep_lease(&office, NAME, &holder, &fence) => {}
        }
        warn!("another process watches over commands now");
    }
}

/// Looks once a second, until a commit is fenced off. What it remembers is only when it last forgot.
async fn watch(office: &Office, beats: &Beats, fence: &Fence) {
    let mut tick = tokio::time::interval(EVERY);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut forget_at = office.clock.now();
    loop {
        tick.tick().await;
        let now = office.clock.now();
        beats.beat(NAME, now);
        let mut outcome = sweep(office, fence, now).await;
        if outcome.is_ok() && forget_at <= now {
            forget_at = now.saturating_add(FORGET_EVERY).unwrap_or(now);
            outcome = forget(office, fence, now).await;
        }
        match outcome {
            Ok(()) => {}
            Err(Error::Store(argosy_store::Error::Fenced)) => return,
            Err(error) => warn!(%error, "could not end or forget commands; trying again"),
        }
    }
}

/// Ends the commands whose time has come.
async fn sweep(office: &Office, fence: &Fence, now: Timestamp) -> Result<(), Error> {
    let due: BTreeSet<NodeId> = office.store.read(|view| {
        let due = view.open_commands().filter(|command| is_due(office, view, &command.value, now));
        let due = due.map(|command| command.value.node.clone());
        let again = view.nodes().filter(|node| is_told_again(&node.value, now));
        due.chain(again.map(|node| node.value.id.clone())).collect()
    });
    // All of them are tried; of the failures one is enough to know.
    let failure = Mutex::new(None);
    let ends = futures_util::stream::iter(due);
    let ends = ends.for_each_concurrent(WRITES_MAX, async |node| {
        if let Err(error) = end(office, fence, &node).await {
            failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        }
    });
    ends.await;
    failure.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
}

/// Whether a node is told again what it is to be without having asked. One that was terminated is told when it is
/// heard: most are gone.
fn is_told_again(node: &Node, now: Timestamp) -> bool {
    !matches!(node.duty, Duty::Terminated(_)) && is_due_again(node, now)
}

fn is_due(office: &Office, view: &View, command: &Command, now: Timestamp) -> bool {
    let Some(node) = view.node(command.node.as_str()) else { return true };
    let nodes = office.nodes();
    let settings = nodes.of_node(&node.value);
    elapsed(&node.value, command, &[], settings, &office.systems, now).is_some()
}

/// Ends what is due among the commands of one node.
async fn end(office: &Office, fence: &Fence, node: &NodeId) -> Result<(), Error> {
    let caller = system(NAME);
    let decide = |view: &View, now: Timestamp| {
        let mut txn = Txn::at(now);
        txn.fence(fence.clone());
        let Some(found) = view.node(node.as_str()) else {
            let ended = abandon(&mut txn, view, node, &caller, now)?;
            return Ok((ended.then_some(txn), ()));
        };
        let mut sheet = Sheet::of(view, found);
        let nodes = office.nodes();
        let settings = nodes.of_node(&found.value);
        sheet.elapse(settings, &office.systems, now);
        if is_told_again(&sheet.node, now) && sheet.again(settings, office.ids.command(now), now) {
            make_room(&mut txn, view, &found.value);
        }
        if sheet.is_blank() {
            return Ok((None, ()));
        }
        sheet.write(&mut txn, &caller, Cause::Automatic, None, now)?;
        Ok((Some(txn), ()))
    };
    office.decide(decide).await.map(|_| ())
}

/// Removes commands that ended long ago. They carry no audit record: nothing that a person asked for
/// changes.
async fn forget(office: &Office, fence: &Fence, now: Timestamp) -> Result<(), Error> {
    let before = now.checked_sub(KEPT).unwrap_or(Timestamp::MIN);
    loop {
        let old: Vec<Stored<Command>> = office.store.read(|view| {
            // By age, so that this looks at what is old and at nothing else.
            let old = view.commands().take_while(|command| command.value.issued_at < before);
            let ended = old.filter(|command| ended_before(&command.value, before));
            ended.take(REMOVALS_MAX).cloned().collect()
        });
        if old.is_empty() {
            return Ok(());
        }
        let mut txn = Txn::at(now);
        txn.fence(fence.clone());
        for command in &old {
            txn.remove(&*command.value, command.revision);
        }
        office.store.commit(txn).await?;
    }
}

fn ended_before(command: &Command, time: Timestamp) -> bool {
    match &command.state {
        CommandState::Done { at, .. } => *at < time,
        CommandState::Pending | CommandState::Acknowledged { .. } => false,
    }
}

/// Tells the streams of this process that there may be something for their nodes: those whose commands
/// a commit changed, and no others. Runs until the process ends.
pub(crate) async fn ring(
    office: Arc<Office>,
    board: PulseBoard,
    beats: Arc<Beats>,
) -> Result<(), Error> {
    let mut changes = office.store.subscribe();
    let mut seen = office.store.read(View::revision);
    let mut beat = tokio::time::interval(RENEW_EVERY);
    loop {
        tokio::select! {
            biased;
            _ = beat.tick() => beats.beat(RING, office.clock.now()),
            changed = changes.changed() => match changed {
                Ok(()) => seen = follow(&office, &board, seen).await,
                Err(_) => return Ok(()),
            },
        }
    }
}

/// Rings for what changed after a revision; up to which one is the answer.
async fn follow(office: &Office, board: &PulseBoard, mut seen: Revision) -> Revision {
    loop {
        match office.store.events(seen).await {
            Ok(Ok(events)) => {
                let Some(last) = events.last() else { return seen };
                seen = last.revision;
                let nodes: BTreeSet<&NodeId> =
                    events.iter().flat_map(|event| told(event)).collect();
                for node in nodes {
                    wake(board, node);
                }
            }
            // Too far behind to know what changed: whoever has something waiting may not know of it.
            Ok(Err(_)) => office.store.read(|view| {
                view.open_commands().for_each(|command| wake(board, &command.value.node));
                seen = view.revision();
            }),
            Err(error) => {
                warn!(%error, "could not read the feed");
                tokio::time::sleep(FEED_RETRY).await;
            }
        }
    }
}

/// The nodes that have something new to do after an event: a command that was issued, or the next one
/// when one has ended. That a node has fetched a command is no news to it.
fn told(event: &Event) -> impl Iterator<Item = &NodeId> {
    event.commands.iter().filter_map(|change| {
        let after = &change.after.as_ref()?.value;
        match after.state {
            CommandState::Pending | CommandState::Done { .. } => Some(&after.node),
            CommandState::Acknowledged { .. } => None,
        }
    })
}

fn wake(board: &PulseBoard, node: &NodeId) {
    if let Some(pulse) = board.find(node.as_str()) {
        pulse.wake();
    }
}
