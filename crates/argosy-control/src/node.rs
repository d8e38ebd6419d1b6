//! Nodes: registration, heartbeats, health reports; lists, history and why.
//!
//! What a newcomer gets wrong: a heartbeat never touches the store. What it needs to know of a node is on
//! the board since the first one; what is to be written because of it is left for a loop.

mod ledger;

mod report;

pub use ledger::{LineFilter, LinePage, Lines};

use crate::command::sheet::abandon;
use crate::loops::notes::{Note, Refusal, commands_wait};
use crate::office::{Mutation, Office, allow_verb};
use crate::policy::PolicyBook;
use crate::pulse::{Known, Live, Moment, Pulse, PulseBoard, Sample, Via};
use crate::{Error, Revision, Stored};
use argosy_core::access::{Caller, Decision, Role, Verb, may_see};
use argosy_core::command::Command;
use argosy_core::health::HealthState;
use argosy_core::invariant::Cause;
use argosy_core::ledger::{Entry, What};
use argosy_core::liveness::limits;
use argosy_core::node::{
    Duty, Flag, Liveness, Node, NodeId, NodeStatus, RegisterError, Registrar, Registration,
    register,
};
use argosy_core::search::{Filter, Order};
use argosy_core::why::{self, Noted, Why};
use argosy_store::Txn;
use argosy_store::view::View;
use jiff::{SignedDuration, Timestamp};
use std::sync::Arc;

pub(crate) use report::elsewhere;

/// The stream of nodes' ledgers; the subject is the node's id.
pub(crate) const LEDGER: &str = "nodes";

/// The service.
#[derive(Clone)]
pub struct Nodes {
    pub(crate) office: Arc<Office>,
    /// Signs of life.
    pub board: PulseBoard,
    pub(crate) policies: Arc<PolicyBook>,
}

/// How many of a node's commands are looked at to tell why it is as it is.
const WHY_COMMANDS_MAX: usize = 100;

/// What a node is told to do by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeConfig {
    /// How often to say that it is there; whole seconds, at least 1.
    pub heartbeat_every: SignedDuration,
    /// How often to run its checks; whole seconds, at least 1.
    pub health_every: SignedDuration,
    /// Which.
    pub checks: Vec<String>,
    /// Changes when any of it does.
    pub revision: u64,
}

/// One heartbeat.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Heartbeat {
    /// The node's clock, for the flag `ClockSkewed` and nothing else.
    pub node_time: Option<Timestamp>,
    /// Measurements.
    pub sample: Option<Sample>,
}

/// What is answered to a heartbeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BeatAnswer {
    /// The revision of the node's configuration: if it is another, ask again.
    pub config_revision: u64,
    /// How long until the next one, in seconds.
    pub next_s: u32,
    /// Whether commands wait.
    pub commands_wait: bool,
}

/// What is answered to a health report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HealthAnswer {
    /// The node's word after it.
    pub status: NodeStatus,
    /// Its health after it.
    pub health: HealthState,
    /// False if the report was old and nothing was done with it.
    pub news: bool,
}

/// Which nodes.
#[derive(Clone, Debug)]
pub struct NodeQuery {
    /// Only those that match.
    pub filter: Filter<Node>,
    /// In this order.
    pub order: Order<Node>,
    /// How many to leave out.
    pub skip: usize,
    /// How many at most.
    pub limit: usize,
}

/// A page of nodes.
#[derive(Clone, Debug)]
pub struct NodePage {
    /// The nodes, in order.
    pub nodes: Vec<(Stored<Node>, Live)>,
    /// How many match in all.
    pub total: usize,
    /// What the page was read at: a watch can go on from here.
    pub revision: Revision,
}

/// What a registration came to.
enum Admission {
    /// The node, and its revision if nothing was written.
    In(Arc<Node>, Option<Revision>),
    /// It was refused, and that was written down.
    Out(Error),
}

impl Nodes {
    /// Takes in a machine, or what is new about one.
    ///
    /// # Errors
    /// `Invalid` names the field; `IdentityConflict` if another machine has the id; `Precondition` if
    /// the node was terminated; `Forbidden` if the caller is another node.
    pub async fn register(
        &self,
        caller: &Caller,
        registration: Registration,
    ) -> Result<(Stored<Node>, NodeConfig), Error> {
        let admitted = self.admit(caller, &registration).await;
        let stats = &self.office.stats;
        match &admitted {
            Ok(_) => stats.registrations.add_one(),
            Err(_) => stats.registrations_refused.add_one(),
        }
        let node = admitted?;
        let pulse = self.board.admit(&node.value.id);
        pulse.know(self.known(&node.value));
        pulse.touch(self.office.moment());
        let config = self.config_of(node.value.pool.as_deref(), Via::Call);
        Ok((node, config))
    }

    async fn admit(
        &self,
        caller: &Caller,
        registration: &Registration,
    ) -> Result<Stored<Node>, Error> {
        allow_verb(caller, Verb::Attend)?;
        let id = parse(&registration.node_id)?;
        self.office.speaks_for(caller, id.as_str())?;
        let decide = |view: &View, now: Timestamp| {
            self.decide_admission(view, now, caller, &id, registration)
        };
        match self.office.decide(decide).await? {
            (_, Admission::Out(error)) => Err(error),
            (revision, Admission::In(value, known)) => {
                Ok(Stored { value, revision: known.unwrap_or(revision) })
            }
        }
    }

    fn decide_admission(
        &self,
        view: &View,
        now: Timestamp,
        caller: &Caller,
        id: &NodeId,
        registration: &Registration,
    ) -> Result<(Option<Txn>, Admission), Error> {
        let known = view.node(id.as_str());
        // Whose work a node may carry is said by its credential.
        let team = match caller.teams.as_slice() {
            [team] if caller.role == Role::Node => Some(team.as_str()),
            _ => None,
        };
        let heard_recently =
            known.is_some_and(|known| self.was_heard(&known.value, view.nodes().len()));
        let registrar = Registrar { tenant: &caller.tenant, team, heard_recently };
        let existing = known.map(|known| &*known.value);
        let refused = match register(existing, registration, registrar, now) {
            Ok(registered) => {
                let node = Arc::new(registered.node);
                if let (false, Some(known)) = (registered.changed, known) {
                    return Ok((None, Admission::In(node, Some(known.revision))));
                }
                let change = match known {
                    None => Mutation { action: "register", ..Mutation::create(node.clone()) },
                    Some(known) => Mutation::update("register", known, node.clone()),
                };
                let (mut txn, entries) = (Txn::at(now), &registered.entries);
                Office::write_node(&mut txn, change, Cause::Registration, entries, caller, now)?;
                return Ok((Some(txn), Admission::In(node, None)));
            }
            Err(refused) => refused,
        };
        let sentence = refused.to_string();
        match refused {
            RegisterError::Invalid(errors) => Err(Error::Invalid(errors)),
            RegisterError::Precondition(_) => {
                self.refused(caller, id, &sentence);
                Err(Error::Precondition(sentence))
            }
            RegisterError::Taken(_) => {
                self.refused(caller, id, &sentence);
                Err(Error::IdentityConflict(sentence))
            }
            RegisterError::Conflict(conflict) => {
                self.board.admit(id).contested(self.office.moment());
                let out = Admission::Out(Error::IdentityConflict(conflict.message.clone()));
                let (Some(flagged), Some(known)) = (conflict.flagged, known) else {
                    return Ok((None, out));
                };
                let change = Mutation::update("identity-conflict", known, Arc::new(flagged));
                let (change, mut txn) = (change.because(conflict.message), Txn::at(now));
                let entries = &conflict.entries;
                Office::write_node(&mut txn, change, Cause::Registration, entries, caller, now)?;
                Ok((Some(txn), out))
            }
        }
    }

    /// Has it written down that a machine was not let in.
    fn refused(&self, caller: &Caller, node: &NodeId, reason: &str) {
        let (node, caller, reason) = (node.clone(), caller.clone(), reason.to_owned());
        let refusal = Refusal { action: "register-refused", node, caller, reason };
        self.office.note_later(Note::Refused(refusal));
    }

    /// Whether a node was heard so lately that it must be taken for alive.
    fn was_heard(&self, node: &Node, nodes: usize) -> bool {
        let pulse = self.board.find(node.id.as_str());
        let quiet = pulse.as_ref().and_then(|p| p.quiet_for(self.office.clock.monotonic()));
        let Some(quiet) = quiet.and_then(|quiet| SignedDuration::try_from(quiet).ok()) else {
            // Perhaps another process hears it, or this one has only just begun to listen.
            return node.liveness != Liveness::Unreachable;
        };
        let (settings, pool) = (&self.office.settings.nodes, node.pool.as_deref());
        let on_stream = pulse.is_some_and(|pulse| pulse.on_stream());
        let every = settings.heartbeat_every(pool, on_stream, nodes);
        let (_, unreachable_after) = limits(settings.of(pool), every);
        quiet < unreachable_after
    }

    /// Notes that a node is there. Touches memory only.
    ///
    /// # Errors
    /// `Invalid` for an id that is none, `NodeNotFound`, `Forbidden`.
    pub fn heartbeat(
        &self,
        caller: &Caller,
        node: &str,
        via: Via,
        beat: Heartbeat,
    ) -> Result<BeatAnswer, Error> {
        let (pulse, known) = self.attend(caller, node)?;
        let at = self.office.moment();
        pulse.touch(at);
        self.office.stats.heartbeats.add_one();
        let beats = self.board.count_beat(at);
        if let Some(node_time) = beat.node_time {
            self.compare_clocks(node, &pulse, node_time, at);
        }
        if let Some(sample) = beat.sample {
            self.measure(&pulse, sample, beats, at);
        }
        let next_s = self.interval_s(&known, via);
        Ok(BeatAnswer {
            config_revision: revision_of(known.config, next_s),
            next_s,
            commands_wait: pulse.commands_wait(),
        })
    }

    /// Notices a node whose clock is off. Nothing is decided by it; the node is told times as its own clock has
    /// them.
    fn compare_clocks(&self, node: &str, pulse: &Pulse, node_time: Timestamp, at: Moment) {
        let off = node_time.duration_since(at.wall);
        let is_off = self.office.settings.nodes.fleet.clock_skew_max < off.abs();
        let Some(skewed) = pulse.clock_was(off, is_off) else { return };
        let Ok(node) = NodeId::parse(node) else { return };
        let direction = if off.is_negative() { "behind" } else { "ahead of" };
        let sentence = format!("its clock is {} s {direction} ours", off.abs().as_secs());
        let raise = skewed.then_some(sentence);
        if self.office.note_later(Note::Flag { node, flag: Flag::ClockSkewed, raise }) {
            pulse.set_skewed(skewed);
        }
    }

    /// By how much a node's clock is known to be ahead of ours.
    pub fn clock_off(&self, node: &str) -> SignedDuration {
        self.board.find(node).map_or(SignedDuration::ZERO, |pulse| pulse.clock_off())
    }

    /// For how long nothing may use a GPU of a node before it says that its work has ended.
    pub fn drain_quiet(&self, node: &str) -> SignedDuration {
        let nodes = self.office.nodes();
        let found = self.office.store.read(|view| view.node(node).map(|node| node.value.clone()));
        found.map_or(nodes.defaults.drain_quiet, |node| nodes.of_node(&node).drain_quiet)
    }

    /// Keeps measurements, unless there is too much to do: then they are what goes first.
    fn measure(&self, pulse: &Pulse, sample: Sample, beats: u64, at: Moment) {
        let stats = &self.office.stats;
        let most = u64::from(self.office.settings.nodes.fleet.heartbeats_per_second);
        if most < beats || !pulse.may_measure(at) {
            return stats.samples_shed.add_one();
        }
        let (sample, refused) = sample.plausible();
        if 0 < refused {
            stats.readings_refused.add(refused);
        }
        pulse.measured(at, sample);
    }

    /// What a node should go by.
    ///
    /// # Errors
    /// As for a heartbeat.
    pub fn config(&self, caller: &Caller, node: &str, via: Via) -> Result<NodeConfig, Error> {
        self.attend(caller, node)?;
        let pool = self.office.store.read(|view| view.node(node).map(|n| n.value.pool.clone()));
        let pool = pool.ok_or_else(|| Error::NodeNotFound(node.to_owned()))?;
        Ok(self.config_of(pool.as_deref(), via))
    }

    fn config_of(&self, pool: Option<&str>, via: Via) -> NodeConfig {
        let settings = &self.office.settings.nodes;
        let every = settings.heartbeat_every(pool, via == Via::Stream, self.board.fleet());
        NodeConfig {
            heartbeat_every: every,
            health_every: settings.health_every(pool),
            checks: settings.of(pool).checks.clone(),
            revision: revision_of(self.digest(pool), seconds(every)),
        }
    }

    /// Stands for what a node is told to do, but for how often it says that it is there.
    fn digest(&self, pool: Option<&str>) -> u64 {
        let settings = &self.office.settings.nodes;
        let health_s = settings.health_every(pool).as_secs();
        let checks = settings.of(pool).checks.iter();
        let bytes = checks.flat_map(|check| check.bytes().chain([0]));
        fnv(FNV_BASIS, health_s.to_le_bytes().into_iter().chain(bytes))
    }

    fn known(&self, node: &Node) -> Known {
        let (settings, pool) = (&self.office.settings.nodes, node.pool.as_deref());
        // For one node: how many there are is asked at each heartbeat.
        Known {
            tenant: node.tenant.as_str().into(),
            heartbeat_s: seconds(settings.heartbeat_every(pool, false, 1)),
            stream_heartbeat_s: seconds(settings.heartbeat_every(pool, true, 1)),
            config: self.digest(pool),
        }
    }

    fn interval_s(&self, known: &Known, via: Via) -> u32 {
        let wanted = match via {
            Via::Call => known.heartbeat_s,
            Via::Stream => known.stream_heartbeat_s,
        };
        let fleet = &self.office.settings.nodes.fleet;
        wanted.max(seconds(fleet.heartbeat_least(self.board.fleet())))
    }

    /// The place on the board of a node that the caller speaks for. Looks at the store only if the board
    /// does not know the node yet.
    fn attend(&self, caller: &Caller, node: &str) -> Result<(Arc<Pulse>, Known), Error> {
        self.office.speaks_for(caller, node)?;
        let not_found = || Error::NodeNotFound(node.to_owned());
        if let Some(pulse) = self.board.find(node)
            && let Some(known) = pulse.known()
        {
            let theirs = *known.tenant == *caller.tenant;
            return if theirs { Ok((pulse, known)) } else { Err(not_found()) };
        }
        let id = parse(node)?;
        let (found, wait) = self
            .office
            .store
            .read(|view| Some((view.node(node)?.value.clone(), commands_wait(view, node))))
            .filter(|(found, _)| found.tenant == caller.tenant)
            .ok_or_else(not_found)?;
        let (pulse, known) = (self.board.admit(&id), self.known(&found));
        pulse.set_skewed(found.flags.contains_key(&Flag::ClockSkewed));
        pulse.set_commands_wait(wait);
        pulse.know(known.clone());
        Ok((pulse, known))
    }

    /// One node.
    ///
    /// # Errors
    /// `NodeNotFound`; `Forbidden` if it is another team's.
    pub fn get(&self, caller: &Caller, node: &str) -> Result<(Stored<Node>, Live), Error> {
        allow_verb(caller, Verb::Read)?;
        let found = self.office.store.read(|view| self.find(view, caller, node).cloned())?;
        let live = self.board.live(node);
        Ok((found, live))
    }

    /// Nodes the caller may see.
    ///
    /// # Errors
    /// `Forbidden`.
    pub fn list(&self, caller: &Caller, query: &NodeQuery) -> Result<NodePage, Error> {
        let (revision, mut found) = self.seen_by(caller)?;
        found.retain(|node| query.filter.matches(&node.value));
        let total = found.len();
        let compare = |a: &Stored<Node>, b: &Stored<Node>| query.order.compare(&a.value, &b.value);
        let end = query.skip.saturating_add(query.limit);
        // All of it is looked at, only the beginning is put in order.
        if end < found.len() {
            found.select_nth_unstable_by(end, compare);
            found.truncate(end);
        }
        found.sort_unstable_by(compare);
        let page = found.into_iter().skip(query.skip);
        let nodes = page.map(|node| {
            let live = self.board.live(node.value.id.as_str());
            (node, live)
        });
        Ok(NodePage { nodes: nodes.collect(), total, revision })
    }

    /// Calls `look` with every node the caller may see, by id, without copying any.
    ///
    /// # Errors
    /// `Forbidden`.
    pub fn each(
        &self,
        caller: &Caller,
        look: &mut dyn FnMut(&Stored<Node>, &Live),
    ) -> Result<Revision, Error> {
        let (revision, found) = self.seen_by(caller)?;
        for node in &found {
            look(node, &self.board.live(node.value.id.as_str()));
        }
        Ok(revision)
    }

    /// The nodes the caller may see, by id. Commits wait for readers, so that what is done with the
    /// nodes is done afterwards.
    fn seen_by(&self, caller: &Caller) -> Result<(Revision, Vec<Stored<Node>>), Error> {
        allow_verb(caller, Verb::Read)?;
        Ok(self.office.store.read(|view| {
            let shown = view.nodes().filter(|node| self.shows(caller, &node.value));
            (view.revision(), shown.cloned().collect())
        }))
    }

    /// The node's ledger, newest first, before a sequence number; only what `keep` keeps.
    ///
    /// # Errors
    /// `NodeNotFound`.
    pub async fn ledger(
        &self,
        caller: &Caller,
        node: &str,
        before: Option<u64>,
        limit: usize,
        keep: fn(&What) -> bool,
    ) -> Result<Vec<Noted>, Error> {
        let (node, _) = self.get(caller, node)?;
        self.lines(&node.value, before, limit, keep).await
    }

    async fn lines(
        &self,
        node: &Node,
        before: Option<u64>,
        limit: usize,
        keep: fn(&What) -> bool,
    ) -> Result<Vec<Noted>, Error> {
        // What is older is of another node that had this id once, perhaps another tenant's.
        let since = node.registered_at;
        let keep = |entry: &Entry| since <= entry.at && keep(&entry.what);
        let subject = Some(node.id.as_str());
        let found = self.office.newest(LEDGER, subject, before, limit, keep).await?;
        let noted = found.into_iter().map(|(place, entry)| Noted {
            sequence: place.sequence,
            revision: place.revision.0,
            entry,
        });
        Ok(noted.collect())
    }

    /// Why a node is as it is.
    ///
    /// # Errors
    /// `NodeNotFound`.
    pub async fn why(&self, caller: &Caller, node: &str) -> Result<Why, Error> {
        allow_verb(caller, Verb::Read)?;
        let (node, commands) = self.office.store.read(|view| {
            let found = self.find(view, caller, node)?;
            let theirs = |command: &&Stored<Command>| command.value.tenant == found.value.tenant;
            let commands = view.commands_of(node).rev().filter(theirs).take(WHY_COMMANDS_MAX);
            let commands: Vec<_> = commands.map(|command| command.value.clone()).collect();
            Ok::<_, Error>((found.value.clone(), commands))
        })?;
        let ledger = self.lines(&node, None, why::LEDGER_MAX, |_| true).await?;
        let commands: Vec<_> = commands.iter().map(|command| &**command).collect();
        Ok(why::why(&node, &ledger, &commands, self.office.clock.now()))
    }

    /// Forgets a node: one that is terminated or unreachable, or any with `force`. It may register
    /// again under its id.
    ///
    /// # Errors
    /// `NodeNotFound`; `Precondition` if it is alive; `Forbidden` to force it without being an admin.
    pub async fn forget(
        &self,
        caller: &Caller,
        node: &NodeId,
        force: bool,
        reason: Option<String>,
    ) -> Result<(), Error> {
        allow_verb(caller, if force { Verb::Force } else { Verb::Write })?;
        let decide = |view: &View, now: Timestamp| {
            let found = self.find(view, caller, node.as_str())?;
            let value = &found.value;
            let gone = matches!(value.duty, Duty::Terminated(_))
                || value.liveness == Liveness::Unreachable;
            if !gone && !force {
                return Err(Error::Precondition(format!(
                    "node {node} is {} and heard; terminate it first, or force it",
                    value.status().as_str()
                )));
            }
            let (from, to) = (value.status().into(), NodeStatus::Unknown.into());
            let why = reason.as_deref().map_or(String::new(), |reason| format!(": {reason}"));
            let sentence = format!("{} forgot the node{why}", caller.subject);
            let what = What::Status { from, to, reason: sentence };
            let entries = [Entry { at: now, node: node.clone(), what }];
            let change = Mutation::remove("forget", found, reason.clone());
            let mut txn = Txn::at(now);
            abandon(&mut txn, view, node, caller, now)?;
            Office::write_node(&mut txn, change, Cause::Other, &entries, caller, now)?;
            Ok((Some(txn), ()))
        };
        self.office.decide(decide).await?;
        self.board.remove(node.as_str());
        Ok(())
    }

    /// The node, if the caller may know of it.
    pub(crate) fn find<'v>(
        &self,
        view: &'v View,
        caller: &Caller,
        node: &str,
    ) -> Result<&'v Stored<Node>, Error> {
        let hidden = || Error::NodeNotFound(node.to_owned());
        let found = view.node(node).ok_or_else(hidden)?;
        match self.allow(caller, &found.value) {
            Decision::Allow => Ok(found),
            Decision::Hide => Err(hidden()),
            Decision::Forbid => Err(Error::Forbidden(
                "User does not have permission to access this node".to_owned(),
            )),
        }
    }

    fn shows(&self, caller: &Caller, node: &Node) -> bool {
        self.allow(caller, node) == Decision::Allow
    }

    fn allow(&self, caller: &Caller, node: &Node) -> Decision {
        let teams = node.labels.get("team").into_iter();
        may_see(caller, &node.tenant, teams, self.office.settings.authorization)
    }
}

/// Reads an id at the door.
fn parse(node: &str) -> Result<NodeId, Error> {
    NodeId::parse(node).map_err(|error| Error::Invalid(vec![error]))
}

/// Whole seconds of an interval that has no others.
fn seconds(every: SignedDuration) -> u32 {
    u32::try_from(every.as_secs()).unwrap_or(u32::MAX)
}

/// The number of a configuration: another one if any of it is.
fn revision_of(digest: u64, heartbeat_s: u32) -> u64 {
    fnv(digest, heartbeat_s.to_le_bytes())
}

const FNV_BASIS: u64 = 0xcbf2_9ce4_8422_2325;

/// FNV-1a: the same in every process and every release, as nodes remember it.
fn fnv(from: u64, bytes: impl IntoIterator<Item = u8>) -> u64 {
    let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.into_iter().fold(from, mix)
}
