//! What calls that must not wait leave to be written down, and what time does to nodes.
//!
//! Three things, in every process: it drains the queue of notes (flags of nodes, refusals for the audit
//! log); it keeps the board in step with the store (nodes that were forgotten, commands that wait, how
//! many nodes there are); and, in one process at a time, it ends findings and flags whose time has come.

use crate::Error;
use crate::loops::{Beats, RENEW_EVERY};
use crate::office::{AUDIT, Mutation, Office, system};
use crate::pulse::PulseBoard;
use argosy_core::access::Caller;
use argosy_core::audit::AuditRecord;
use argosy_core::health::{Ends, expire};
use argosy_core::invariant::Cause;
use argosy_core::node::{Flag, Node, NodeId};
use argosy_store::engine::Fence;
use argosy_store::view::{Event, View};
use argosy_store::{Revision, Txn};
use jiff::{SignedDuration, Timestamp};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::MissedTickBehavior;
use tracing::{error, warn};

const NAME: &str = "notes";

/// The action of a credential that was used for another node.
pub(crate) const IMPERSONATION: &str = "impersonation";

/// How many notes may wait. Each is rare by itself; a flood of them is an attack, or one cause with many
/// effects, and is counted as well as it is written down.
const QUEUE_MAX: usize = 1024;

/// How many notes become one commit.
const BATCH_MAX: usize = 256;

/// How often the same refusal is written down again, with how many there were.
const REPEATED_EVERY: Duration = Duration::from_secs(600);

/// How many different refusals are remembered. When there are more, all of them are news again.
const REFUSALS_MAX: usize = 1024;

/// How often it is looked for findings whose time has come: nobody waits for the end of an hour by the
/// second.
const EXPIRE_EVERY: Duration = Duration::from_secs(10);

/// How long the flag of a contested id stays after the last attempt.
const CONTESTED_FOR: SignedDuration = SignedDuration::from_hours(1);

/// Something to write down.
#[derive(Debug)]
pub(crate) enum Note {
    /// A flag of a node is to be raised, and what it says, or lowered.
    Flag { node: NodeId, flag: Flag, raise: Option<String> },
    /// Somebody was refused, and somebody else will want to know.
    Refused(Refusal),
}

/// Who was refused what.
#[derive(Clone, Debug)]
pub(crate) struct Refusal {
    pub(crate) action: &'static str,
    pub(crate) node: NodeId,
    pub(crate) caller: Caller,
    pub(crate) reason: String,
}

/// Where notes are left.
pub(crate) struct Notes(mpsc::Sender<Note>);

impl Notes {
    /// Leaves a note without waiting; false if there is no room.
    pub(crate) fn leave(&self, note: Note) -> bool {
        self.0.try_send(note).is_ok()
    }
}

/// A queue of notes, and its end.
pub(crate) fn queue() -> (Notes, mpsc::Receiver<Note>) {
    let (sender, receiver) = mpsc::channel(QUEUE_MAX);
    (Notes(sender), receiver)
}

/// Runs until the process ends.
pub(crate) async fn run(
    office: Arc<Office>,
    board: PulseBoard,
    mut left: mpsc::Receiver<Note>,
    beats: Arc<Beats>,
    holder: String,
) -> Result<(), Error> {
    let mut clerk = Clerk { office, board, refusals: HashMap::new() };
    let mut changes = clerk.office.store.subscribe();
    let mut seen = clerk.count();
    let mut tick = tokio::time::interval(RENEW_EVERY);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut expired_at = clerk.office.clock.monotonic();
    let mut batch = Vec::new();
    loop {
        tokio::select! {
            biased;
            _ = tick.tick() => {
                beats.beat(NAME, clerk.office.clock.now());
                let now = clerk.office.clock.monotonic();
                if EXPIRE_EVERY <= now.saturating_sub(expired_at) {
                    expired_at = now;
                    clerk.expire(&holder).await;
                }
            }
            changed = changes.changed() => match changed {
                Ok(()) => seen = clerk.follow(seen).await,
                Err(_) => return Ok(()),
            },
            count = left.recv_many(&mut batch, BATCH_MAX) => {
                if count == 0 {
                    return Ok(());
                }
                clerk.write(std::mem::take(&mut batch)).await;
            }
        }
    }
}

struct Clerk {
    office: Arc<Office>,
    board: PulseBoard,
    /// When a refusal was last written down, and how many there were since.
    refusals: HashMap<(&'static str, String, NodeId), (Duration, u64)>,
}

impl Clerk {
    /// Writes notes down, as one commit.
    async fn write(&mut self, notes: Vec<Note>) {
        let mut flags: BTreeMap<(NodeId, Flag), Option<String>> = BTreeMap::new();
        let mut records = Vec::new();
        for note in notes {
            match note {
                Note::Flag { node, flag, raise } => _ = flags.insert((node, flag), raise),
                Note::Refused(refusal) => records.extend(self.news(refusal)),
            }
        }
        let caller = system(NAME);
        let decide = |view: &View, now: Timestamp| {
            let mut txn = Txn::at(now);
            for record in &records {
                let record = AuditRecord { at: now, ..record.clone() };
                txn.append(AUDIT, &record.id, &record);
            }
            let mut any = !records.is_empty();
            // All flags of one node are one change of it.
            let mut after: BTreeMap<&NodeId, (Arc<Node>, Vec<_>)> = BTreeMap::new();
            for ((node, flag), raise) in &flags {
                let Some(stored) = view.node(node.as_str()) else { continue };
                let (value, entries) =
                    after.entry(node).or_insert_with(|| (stored.value.clone(), Vec::new()));
                if let Some((flagged, entry)) = value.flagged(*flag, raise.as_deref(), now) {
                    *value = Arc::new(flagged);
                    entries.push(entry);
                }
            }
            for (node, (value, entries)) in after {
                let Some(stored) = view.node(node.as_str()) else { continue };
                if entries.is_empty() {
                    continue;
                }
                any = true;
                let change = Mutation::update("flag", stored, value);
                Office::write_node(&mut txn, change, Cause::Other, &entries, &caller, now)?;
            }
            Ok((any.then_some(txn), ()))
        };
        if let Err(error) = self.office.decide(decide).await {
            warn!(%error, "could not write down what was noted");
            // The next heartbeats will say so again.
            for ((node, flag), raise) in &flags {
                if let (Flag::ClockSkewed, Some(pulse)) = (flag, self.board.find(node.as_str())) {
                    pulse.set_skewed(raise.is_none());
                }
            }
        }
    }

    /// The record of a refusal, if it is not the same as a moment ago.
    fn news(&mut self, refusal: Refusal) -> Option<AuditRecord> {
        let Refusal { action, node, caller, reason } = refusal;
        let now = self.office.clock.monotonic();
        if REFUSALS_MAX <= self.refusals.len() {
            self.refusals.clear();
        }
        let key = (action, caller.subject.clone(), node.clone());
        let more = match self.refusals.get_mut(&key) {
            Some((at, count)) if now.saturating_sub(*at) < REPEATED_EVERY => {
                *count += 1;
                return None;
            }
            Some((_, count)) => *count,
            None => 0,
        };
        self.refusals.insert(key, (now, 0));
        let subject = &caller.subject;
        if action == IMPERSONATION {
            error!(%node, subject, reason, more, "a node's credential was used for another node");
        } else {
            warn!(%node, subject, action, reason, more, "refused a node");
        }
        let more = if more == 0 { String::new() } else { format!("; {more} times more since") };
        Some(AuditRecord {
            at: Timestamp::UNIX_EPOCH,
            actor: caller.subject,
            via: caller.via.to_owned(),
            tenant: caller.tenant,
            action: action.to_owned(),
            kind: "Node".to_owned(),
            id: node.to_string(),
            name: node.to_string(),
            before: None,
            after: None,
            reason: Some(format!("{reason}{more}")),
            request_id: caller.request_id,
        })
    }

    /// Tells the board how many nodes there are; the revision that is of.
    fn count(&self) -> Revision {
        self.office.store.read(|view| {
            self.board.set_fleet(view.nodes().len());
            view.revision()
        })
    }

    /// Brings the board in step with what was committed after a revision; up to which one is the answer.
    async fn follow(&self, mut seen: Revision) -> Revision {
        loop {
            match self.office.store.events(seen).await {
                Ok(Ok(events)) => {
                    let Some(last) = events.last() else { return seen };
                    seen = last.revision;
                    events.iter().for_each(|event| self.apply(event));
                }
                // Too far behind to know what changed.
                Ok(Err(_)) => return self.catch_up(),
                Err(error) => {
                    warn!(%error, "could not read the feed");
                    return seen;
                }
            }
        }
    }

    fn apply(&self, event: &Event) {
        let mut nodes = false;
        for change in &event.nodes {
            nodes |= change.before.is_none() || change.after.is_none();
            if change.after.is_none() {
                self.board.remove(&change.id);
            }
        }
        let commanded = event.commands.iter().filter_map(|change| {
            let stored = change.after.as_ref().or(change.before.as_ref())?;
            self.board.find(stored.value.node.as_str()).map(|pulse| (pulse, stored))
        });
        for (pulse, stored) in commanded {
            let node = stored.value.node.as_str();
            let wait = self.office.store.read(|view| commands_wait(view, node));
            pulse.set_commands_wait(wait);
        }
        if nodes {
            self.count();
        }
    }

    /// Looks at everything once.
    fn catch_up(&self) -> Revision {
        self.office.store.read(|view| {
            self.board.retain(|node| view.node(node.as_str()).is_some());
            for command in view.open_commands() {
                if let Some(pulse) = self.board.find(command.value.node.as_str()) {
                    pulse.set_commands_wait(true);
                }
            }
        });
        self.count()
    }

    /// Ends what time ends, if it is this process' turn.
    async fn expire(&self, holder: &str) {
        let fence = match self.office.lease(NAME, holder).await {
            Ok(Some(lease)) => Fence { lease: NAME.to_owned(), epoch: lease.epoch },
            Ok(None) => return,
            Err(error) => return warn!(%error, lease = NAME, "could not ask for the lease"),
        };
        loop {
            let now = self.office.clock.now();
            let due: Vec<NodeId> = self.office.store.read(|view| {
                let due = view.nodes().filter(|node| self.is_due(&node.value, now));
                due.take(BATCH_MAX).map(|node| node.value.id.clone()).collect()
            });
            if due.is_empty() {
                return;
            }
            match self.end(&fence, &due).await {
                Ok(()) => {}
                Err(Error::Store(argosy_store::Error::Fenced)) => return,
                Err(error) => return warn!(%error, "could not end what is over"),
            }
        }
    }

    fn is_due(&self, node: &Node, now: Timestamp) -> bool {
        let over = |ends: &Ends| matches!(ends, Ends::At(end) if *end <= now);
        node.findings.iter().any(|finding| over(&finding.ends)) || self.is_calm(node, now)
    }

    /// Whether nobody has come with the node's id for a while although it is flagged as contested.
    fn is_calm(&self, node: &Node, now: Timestamp) -> bool {
        let Some(note) = node.flags.get(&Flag::IdentityConflict) else { return false };
        let pulse = self.board.find(node.id.as_str());
        let last = pulse.and_then(|pulse| pulse.contested_for(self.office.clock.monotonic()));
        let long_ago = last.and_then(|last| SignedDuration::try_from(last).ok());
        CONTESTED_FOR <= now.duration_since(note.since)
            && long_ago.is_none_or(|passed| CONTESTED_FOR <= passed)
    }

    async fn end(&self, fence: &Fence, due: &[NodeId]) -> Result<(), Error> {
        let caller = system(NAME);
        let decide = |view: &View, now: Timestamp| {
            let mut txn = Txn::at(now);
            txn.fence(fence.clone());
            let mut any = false;
            for stored in due.iter().filter_map(|node| view.node(node.as_str())) {
                let (mut after, mut entries) = (None, Vec::new());
                if let Some(taken) = expire(&stored.value, now) {
                    after = taken.node;
                    entries.extend(taken.entries);
                }
                if self.is_calm(&stored.value, now) {
                    let node = after.as_ref().unwrap_or(&stored.value);
                    if let Some((lowered, entry)) = node.flagged(Flag::IdentityConflict, None, now)
                    {
                        after = Some(lowered);
                        entries.push(entry);
                    }
                }
                let Some(after) = after else { continue };
                any = true;
                let change = Mutation::update("expire", stored, Arc::new(after));
                Office::write_node(&mut txn, change, Cause::Other, &entries, &caller, now)?;
            }
            Ok((any.then_some(txn), ()))
        };
        self.office.decide(decide).await.map(|_| ())
    }
}

/// Whether a node has commands that have not ended.
pub(crate) fn commands_wait(view: &View, node: &str) -> bool {
    view.commands_of(node).any(|command| !command.value.state.is_done())
}
