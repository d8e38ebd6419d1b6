//! Commands: issued by people and by ourselves, fetched and ended by nodes.

pub(crate) mod sheet;

use crate::node::Nodes;
use crate::office::{Office, allow_verb};
use crate::pool::protects_node;
use crate::pulse::Moment;
use crate::resource::key_id;
use crate::safety::{Beyond, Judged};
use crate::{Error, Stored};
use argosy_core::access::{Caller, Verb};
use argosy_core::command::{
    Ack, Command, CommandKind, CommandState, Issued, Order, Outcome, Refused, acknowledged,
    delivered, due, fetched, issue,
};
use argosy_core::field::{Constraint, FieldError};
use argosy_core::id::CommandId;
use argosy_core::invariant::Cause;
use argosy_core::node::{Flag, Node, NodeId};
use argosy_core::protect::Protection;
use argosy_core::remedy::{Effect, Impact, effect};
use argosy_store::entity::{IdempotencyKey, Made};
use argosy_store::view::View;
use argosy_store::{Revision, Txn};
use jiff::{SignedDuration, Timestamp};
use sheet::Sheet;
use std::collections::{BTreeMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

/// How many commands are remembered whose outcome was said again. An agent that lost our answer says
/// it twice, one that is broken for ever: the audit log needs to know once.
const REPLAYS_MAX: usize = 1024;

/// The service.
#[derive(Clone)]
pub struct Commands {
    pub(crate) office: Arc<Office>,
    nodes: Nodes,
    replays: Arc<Mutex<VecDeque<CommandId>>>,
}

/// What somebody wants a node to do.
#[derive(Clone, Debug)]
pub struct NewCommand {
    /// What.
    pub kind: CommandKind,
    /// How.
    pub parameters: BTreeMap<String, String>,
    /// Why.
    pub reason: String,
    /// How long a drain may take.
    pub drain_for: Option<SignedDuration>,
    /// The same key gives the same command.
    pub idempotency_key: Option<String>,
    /// Only if the node is still at this revision.
    pub if_revision: Option<Revision>,
    /// Decide, but do not do it.
    pub dry_run: bool,
    /// What becomes of it where it takes more nodes out of service than a budget allows.
    pub beyond: Beyond,
}

/// How many nodes one request may name. With more the commit would keep others waiting, and a node that changes
/// meanwhile would have all of them decided again; with fewer a large pool takes many requests, each judged for
/// itself.
pub const NODES_MAX: usize = 500;

/// What came of a command for several nodes.
#[derive(Debug)]
pub struct Given {
    /// Each node in the order of the request: its command, or why it cannot be told.
    pub nodes: Vec<(String, Result<Stored<Command>, Error>)>,
    /// What it does to the disruption budgets.
    pub impacts: Vec<Impact>,
}

/// Which wire a node speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wire {
    /// Navarch's: no word of completion ever comes. A command is acknowledged by being fetched, and done
    /// when the daemon, which runs commands before it polls again, polls again.
    Navarch,
    /// Ours: told again until acknowledged.
    Argosy,
}

/// A command for one node while it is decided about.
enum Ordered<'v> {
    /// It was given before, under the same key.
    Known(Stored<Command>),
    /// It is to be given.
    New {
        node: &'v Stored<Node>,
        issued: Box<Issued>,
        effect: Effect,
        /// The idempotency key, with the digest of the request.
        key: Option<(String, String)>,
    },
}

/// What came of it for one node: the command with its revision, if it is stored already.
type Told = Result<(Arc<Command>, Option<Revision>), Error>;

/// What a request writes, and what is answered.
type Decided = (Option<Txn>, (Vec<Told>, Judged));

impl Commands {
    pub(crate) fn new(nodes: Nodes) -> Self {
        Self { office: nodes.office.clone(), nodes, replays: Arc::default() }
    }

    /// Issues a command.
    ///
    /// # Errors
    /// `NodeNotFound`; `Precondition` and `TooMany` say why the node cannot have it; `OverBudget`; `Invalid` names
    /// the parameter; `Changed`; `KeyReused`, and `CommandNotFound` for a key whose command is forgotten.
    pub async fn issue(
        &self,
        caller: &Caller,
        node: &str,
        new: NewCommand,
    ) -> Result<Stored<Command>, Error> {
        let mut given = self.issue_all(caller, &[node.to_owned()], new).await?;
        let missing = || (node.to_owned(), Err(Error::NodeNotFound(node.to_owned())));
        given.nodes.pop().unwrap_or_else(missing).1
    }

    /// Issues the same command to several nodes, in one commit: together they fit the disruption budgets, or none of
    /// them is told. A node that cannot be told for another reason does not keep the others from it.
    ///
    /// # Errors
    /// `OverBudget`; `Invalid` for no nodes, more than `NODES_MAX`, or one named twice; `Forbidden`.
    pub async fn issue_all(
        &self,
        caller: &Caller,
        nodes: &[String],
        new: NewCommand,
    ) -> Result<Given, Error> {
        allow_verb(caller, Verb::Write)?;
        check_nodes(nodes)?;
        let now = self.office.clock.now();
        let named: Vec<(&str, CommandId)> =
            nodes.iter().map(|node| (node.as_str(), self.office.ids.command(now))).collect();
        let decide = |view: &View, now: Timestamp| self.decide_all(view, now, caller, &named, &new);
        let (revision, (given, judged)) = self.office.decide(decide).await?;
        if !new.dry_run {
            judged.tell(&self.office, caller, new.beyond);
        }
        let stored = |(value, known): (Arc<Command>, Option<Revision>)| Stored {
            value,
            revision: known.unwrap_or(revision),
        };
        let given = nodes.iter().cloned().zip(given.into_iter().map(|it| it.map(stored)));
        Ok(Given { nodes: given.collect(), impacts: judged.impacts })
    }

    fn decide_all(
        &self,
        view: &View,
        now: Timestamp,
        caller: &Caller,
        named: &[(&str, CommandId)],
        new: &NewCommand,
    ) -> Result<Decided, Error> {
        let several = 1 < named.len();
        let ordered: Vec<Result<Ordered<'_>, Error>> = named
            .iter()
            .map(|(node, id)| self.order(view, now, *id, caller, (node, several), new))
            .collect();
        let asked = ordered.iter().filter_map(|one| match one {
            Ok(Ordered::New { node, effect, .. }) => Some((&node.value.id, *effect)),
            Ok(Ordered::Known(_)) | Err(_) => None,
        });
        let asked: Vec<(&NodeId, Effect)> = asked.collect();
        let (office, over) = (&self.office, (new.beyond, new.reason.as_str()));
        let judged = Judged::of(office, view, caller, &asked, over, now)?;
        let mut txn = Txn::at(now);
        let mut given = Vec::with_capacity(ordered.len());
        for one in ordered {
            let (node, issued, key) = match one {
                Ok(Ordered::New { node, issued, key, .. }) => (node, issued, key),
                Ok(Ordered::Known(first)) => {
                    given.push(Ok((first.value, Some(first.revision))));
                    continue;
                }
                Err(error) => {
                    given.push(Err(error));
                    continue;
                }
            };
            let command = Arc::new(issued.command.clone());
            given.push(Ok((command.clone(), new.dry_run.then_some(node.revision))));
            let mut sheet = Sheet::of(view, node);
            sheet.issued(*issued, action(new.kind));
            sheet::make_room(&mut txn, view, &node.value);
            sheet.write(&mut txn, caller, Cause::Other, Some(&command.reason), now)?;
            if let Some((key, digest)) = key {
                self.remember(&mut txn, view, (key, digest), command.id, now);
            }
        }
        judged.write(&mut txn, view, caller, &new.reason, now);
        let any = !new.dry_run && !txn.is_empty();
        Ok((any.then_some(txn), (given, judged)))
    }

    /// Remembers what a request came to under the key that its client chose.
    fn remember(
        &self,
        txn: &mut Txn,
        view: &View,
        (id, digest): (String, String),
        command: CommandId,
        now: Timestamp,
    ) {
        let expires = now.saturating_add(self.office.settings.idempotency_kept).unwrap_or(now);
        let used = Arc::new(IdempotencyKey { id, digest, made: Made::Command(command), expires });
        match view.idempotency_key(&used.id) {
            Some(expired) => txn.update(used, expired.revision),
            None => txn.create(used),
        }
    }

    /// Decides on a command for one node; where it is one of `several`, each has the request's key for itself.
    fn order<'v>(
        &self,
        view: &'v View,
        now: Timestamp,
        id: CommandId,
        caller: &Caller,
        (node, several): (&str, bool),
        new: &NewCommand,
    ) -> Result<Ordered<'v>, Error> {
        let found = self.nodes.find(view, caller, node)?;
        let order = Order {
            kind: new.kind,
            parameters: new.parameters.clone(),
            reason: new.reason.clone(),
            by: caller.subject.clone(),
            automatic: false,
            drain_for: new.drain_for,
        };
        let digest = order.digest(&found.value.id);
        let key = new.idempotency_key.as_deref().map(|key| match several {
            true => key_id(caller, &format!("{key}/{node}")),
            false => key_id(caller, key),
        });
        if let Some(first) = earlier(view, key.as_deref(), &digest, now)? {
            return Ok(Ordered::Known(first.clone()));
        }
        let current = found.revision;
        if let Some(expected) = new.if_revision.filter(|expected| *expected != current) {
            return Err(Error::Changed { expected, current });
        }
        if new.kind == CommandKind::Terminate
            && let Some(by) = protects_node(view, &found.value)
        {
            allow_protected(caller, &found.value, by, new)?;
        }
        let open = Sheet::of(view, found).open();
        let waiting: Vec<&Command> = open.iter().map(|command| &**command).collect();
        let nodes = self.office.nodes();
        let settings = nodes.of_node(&found.value);
        let given_at = self.office.shared(now);
        let issued = issue(&found.value, &waiting, order, id, settings, given_at);
        let issued = issued.map_err(refused)?;
        let effect = effect(new.kind, &new.parameters, &found.value);
        let key = key.map(|key| (key, digest));
        Ok(Ordered::New { node: found, issued: Box::new(issued), effect, key })
    }

    /// What the node should do now; it counts as fetched.
    ///
    /// # Errors
    /// `Forbidden`. A node nobody knows gets nothing on Navarch's wire, `NodeNotFound` on ours.
    pub async fn fetch(
        &self,
        caller: &Caller,
        node: &str,
        wire: Wire,
    ) -> Result<Vec<Arc<Command>>, Error> {
        self.office.speaks_for(caller, node)?;
        let asked_at = self.office.clock.now();
        // Most of the time there is nothing, and nothing is written: this is all that happens then.
        let quiet = self.office.store.read(|view| {
            let Ok(found) = self.nodes.find(view, caller, node) else { return false };
            self.polled(&found.value, asked_at);
            let mut commands = view.commands_of(node);
            let told = !found.value.flags.contains_key(&Flag::CommandChannelDown);
            told && commands.all(|command| command.value.state.is_done())
        });
        if quiet {
            return Ok(Vec::new());
        }
        let decide = |view: &View, now: Timestamp| {
            let found = match (self.nodes.find(view, caller, node), wire) {
                (Ok(found), _) => found,
                (Err(Error::NodeNotFound(_)), Wire::Navarch) => return Ok((None, Vec::new())),
                (Err(error), _) => return Err(error),
            };
            let mut sheet = Sheet::of(view, found);
            if let Some((node, entries)) = fetched(&sheet.node, now) {
                sheet.amended(node, entries, "hear");
            }
            let nodes = self.office.nodes();
            let settings = nodes.of_node(&found.value);
            // By the time of who leads: not by a clock that is off, nor while nobody led.
            if self.office.may_judge(view, now) {
                sheet.elapse(settings, now);
            }
            let told = match wire {
                Wire::Argosy => tell_one(&mut sheet, now),
                Wire::Navarch => tell_all(&mut sheet, asked_at, now),
            };
            if sheet.is_blank() {
                return Ok((None, told));
            }
            let mut txn = Txn::at(now);
            sheet.write(&mut txn, caller, Cause::Other, None, now)?;
            Ok((Some(txn), told))
        };
        Ok(self.office.decide(decide).await?.1)
    }

    /// Takes in what a node says about a command. What is said of a command that has ended changes
    /// nothing; it is answered as it ended.
    ///
    /// # Errors
    /// `CommandNotFound`, also if it is another node's; `Forbidden`.
    pub async fn acknowledge(
        &self,
        caller: &Caller,
        node: &str,
        command: CommandId,
        ack: Ack,
    ) -> Result<Stored<Command>, Error> {
        self.office.speaks_for(caller, node)?;
        let decide = |view: &View, now: Timestamp| {
            let found = self.nodes.find(view, caller, node)?;
            let known = view.command(command).filter(|known| known.value.node == found.value.id);
            let Some(known) = known else {
                return Err(Error::CommandNotFound(command.to_string()));
            };
            let mut txn = Txn::at(now);
            let Some(moved) = acknowledged(&found.value, &known.value, ack.clone(), now) else {
                let answer = (known.value.clone(), Some(known.revision));
                let replay = known.value.state.is_done() && self.is_first_replay(command);
                if !replay {
                    return Ok((None, answer));
                }
                let steps = (Some(&*known.value), Some(&*known.value));
                let said = ack.outcome.map_or_else(String::new, |said| format!("{said:?} again"));
                Office::record(&mut txn, caller, "ack-replayed", steps, Some(said), now);
                return Ok((Some(txn), answer));
            };
            let answer = Arc::new(moved.command.clone());
            let mut sheet = Sheet::of(view, found);
            sheet.moved(moved, "acknowledge");
            sheet.write(&mut txn, caller, Cause::Other, None, now)?;
            Ok((Some(txn), (answer, None)))
        };
        let (revision, (value, known)) = self.office.decide(decide).await?;
        Ok(Stored { value, revision: known.unwrap_or(revision) })
    }

    /// Whether a command's outcome is said again for the first time that we remember.
    fn is_first_replay(&self, command: CommandId) -> bool {
        let mut replays = self.replays.lock().unwrap_or_else(PoisonError::into_inner);
        if replays.contains(&command) {
            return false;
        }
        if replays.len() == REPLAYS_MAX {
            replays.pop_front();
        }
        replays.push_back(command);
        true
    }

    /// One command.
    ///
    /// # Errors
    /// `CommandNotFound`.
    pub fn get(&self, caller: &Caller, command: CommandId) -> Result<Stored<Command>, Error> {
        allow_verb(caller, Verb::Read)?;
        let found = self.office.store.read(|view| {
            let found = view.command(command)?;
            self.office.shows_command(view, caller, &found.value).then(|| found.clone())
        });
        found.ok_or_else(|| Error::CommandNotFound(command.to_string()))
    }

    /// Commands the caller may see, newest first: of one node, or all.
    ///
    /// # Errors
    /// `NodeNotFound`.
    pub fn list(
        &self,
        caller: &Caller,
        node: Option<&str>,
        open_only: bool,
    ) -> Result<Vec<Stored<Command>>, Error> {
        allow_verb(caller, Verb::Read)?;
        self.office.store.read(|view| {
            let shown = |command: &&Stored<Command>| {
                let asked_for = !open_only || !command.value.state.is_done();
                asked_for && self.office.shows_command(view, caller, &command.value)
            };
            let mut found: Vec<_> = match node {
                Some(node) => {
                    let node = self.nodes.find(view, caller, node)?;
                    view.commands_of(node.value.id.as_str()).filter(shown).cloned().collect()
                }
                None if open_only => view.open_commands().filter(shown).cloned().collect(),
                None => view.commands().filter(shown).cloned().collect(),
            };
            found.reverse();
            Ok(found)
        })
    }

    /// Waits until there may be something new for a node that holds a stream open. May be dropped and
    /// called again. For a node that nobody knows, for ever.
    pub async fn wait(&self, node: &str) {
        let pulse = self.nodes.board.find(node).or_else(|| {
            let known = self.office.store.read(|view| view.node(node).cloned())?;
            Some(self.nodes.board.admit(&known.value.id))
        });
        match pulse {
            Some(pulse) => pulse.woken().await,
            None => std::future::pending().await,
        }
    }

    /// Notes that a node asked for its commands.
    fn polled(&self, node: &Node, wall: Timestamp) {
        let pulse = self.nodes.board.admit(&node.id);
        // On a stream it is we who look, when there is something: that is no sign of life.
        if !pulse.attached() {
            pulse.polled(Moment { wall, monotonic: self.office.clock.monotonic() });
        }
    }
}

/// Whether the nodes of a request are some, not too many, and each once.
fn check_nodes(nodes: &[String]) -> Result<(), Error> {
    let complain = |constraint, message: String| {
        Err(Error::Invalid(vec![FieldError::new("nodes", constraint, message)]))
    };
    if nodes.is_empty() {
        return complain(Constraint::Required, "nodes names no node".to_owned());
    }
    if NODES_MAX < nodes.len() {
        let count = nodes.len();
        let message = format!("nodes names {count} nodes; at most {NODES_MAX} are allowed");
        return complain(Constraint::Max, message);
    }
    let mut seen = HashSet::new();
    match nodes.iter().find(|node| !seen.insert(node.as_str())) {
        Some(twice) => {
            let twice: String = twice.chars().take(64).collect();
            let message = format!("nodes names {twice} more than once");
            complain(Constraint::Unique, message)
        }
        None => Ok(()),
    }
}

/// The oldest open command, again and again: an agent that keeps a journal does it once.
fn tell_one(sheet: &mut Sheet<'_>, now: Timestamp) -> Vec<Arc<Command>> {
    let open = sheet.open();
    let waiting: Vec<&Command> = open.iter().map(|command| &**command).collect();
    let Some(id) = due(&waiting).map(|command| command.id) else { return Vec::new() };
    let Some(command) = open.into_iter().find(|command| command.id == id) else {
        return Vec::new();
    };
    if let Some(moved) = delivered(&sheet.node, &command, now) {
        sheet.moved(moved, "deliver");
    }
    sheet.open().into_iter().filter(|command| command.id == id).collect()
}

/// Every command that was not told yet. Those that were, before this was asked, are done: the daemon
/// does what it was told before it asks again. A drain is ended by whoever knows what runs.
fn tell_all(sheet: &mut Sheet<'_>, asked_at: Timestamp, now: Timestamp) -> Vec<Arc<Command>> {
    let mut told = Vec::new();
    for command in sheet.open() {
        match &command.state {
            CommandState::Pending => {
                let Some(moved) = delivered(&sheet.node, &command, now) else { continue };
                told.push(Arc::new(in_navarchs_words(&moved.command, now)));
                sheet.moved(moved, "deliver");
            }
            CommandState::Acknowledged { at, .. }
                if *at < asked_at && command.kind != CommandKind::Drain =>
            {
                let message = "the node fetched it and asked for more".to_owned();
                let outcome = Some(Outcome::Completed);
                let ack = Ack { outcome, progress: None, message, result: None };
                if let Some(moved) = acknowledged(&sheet.node, &command, ack, now) {
                    sheet.moved(moved, "acknowledge");
                }
            }
            CommandState::Acknowledged { .. } | CommandState::Done { .. } => {}
        }
    }
    told
}

/// A command as Navarch's daemon understands it: it knows no deadlines, only how many seconds it has from
/// now, and has no handler for UNCORDON, but one for a CORDON that says so.
fn in_navarchs_words(command: &Command, now: Timestamp) -> Command {
    let mut told = command.clone();
    if let Some(deadline) = command.deadline {
        let left_s = deadline.duration_since(now).as_secs().max(1);
        told.parameters.insert("timeout".to_owned(), left_s.to_string());
    }
    if command.kind == CommandKind::Uncordon {
        told.kind = CommandKind::Cordon;
        told.parameters.insert("uncordon".to_owned(), "true".to_owned());
    }
    told
}

/// What an earlier request with the same key came to.
fn earlier<'v>(
    view: &'v View,
    key: Option<&str>,
    digest: &str,
    now: Timestamp,
) -> Result<Option<&'v Stored<Command>>, Error> {
    let known = key.and_then(|key| view.idempotency_key(key)).map(|known| &known.value);
    let Some(known) = known.filter(|known| now < known.expires) else { return Ok(None) };
    match known.made {
        Made::Command(id) if known.digest == digest => match view.command(id) {
            Some(first) => Ok(Some(first)),
            // It was carried out once, so not again, although nobody can say what came of it.
            None => Err(Error::CommandNotFound(id.to_string())),
        },
        Made::Command(_) | Made::Resource(_) => Err(Error::KeyReused),
    }
}

/// Whether somebody may, and really wants to, terminate a protected node (F11).
fn allow_protected(
    caller: &Caller,
    node: &Node,
    by: Protection,
    new: &NewCommand,
) -> Result<(), Error> {
    let forced = new.parameters.get("force").is_some_and(|force| force == "true");
    let reason = new.parameters.get("reason").unwrap_or(&new.reason);
    let complain = |field, message: String| {
        Err(Error::Invalid(vec![FieldError::new(field, Constraint::Required, message)]))
    };
    if !forced {
        return Err(Error::Precondition(format!(
            "node {} is not terminated: {by}. Take the label off, or, with the role admin, add the parameter \
             force=true and a reason",
            node.id
        )));
    }
    if reason.trim().is_empty() {
        let message =
            format!("node {}: {by}; say why it is to be terminated all the same", node.id);
        return complain("reason", message);
    }
    allow_verb(caller, Verb::Force)
}

/// What a command is called in the audit record of its node.
pub(crate) const fn action(kind: CommandKind) -> &'static str {
    match kind {
        CommandKind::Cordon => "cordon",
        CommandKind::Drain => "drain",
        CommandKind::RunDiagnostic => "diagnose",
        CommandKind::Terminate => "terminate",
        CommandKind::Uncordon => "uncordon",
    }
}

/// Why an order is refused, as what the caller can do about it.
pub(crate) fn refused(refused: Refused) -> Error {
    match refused {
        Refused::Precondition(why) => Error::Precondition(why),
        Refused::TooMany(why) => Error::TooMany(why),
        Refused::Invalid(errors) => Error::Invalid(errors),
    }
}
