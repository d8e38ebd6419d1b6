//! Commands: issued by people and by ourselves, fetched and ended by nodes.

pub(crate) mod sheet;

use crate::node::Nodes;
use crate::office::{Office, allow_verb};
use crate::pulse::Moment;
use crate::resource::key_id;
use crate::{Error, Stored};
use argosy_core::access::{Caller, Verb};
use argosy_core::command::{
    Ack, Command, CommandKind, CommandState, Order, Outcome, Refused, acknowledged, delivered, due,
    fetched, is_due_again, issue,
};
use argosy_core::field::{Constraint, FieldError};
use argosy_core::id::CommandId;
use argosy_core::invariant::Cause;
use argosy_core::node::{Flag, Node};
use argosy_core::resource::Kind;
use argosy_store::entity::{IdempotencyKey, Made};
use argosy_store::view::View;
use argosy_store::{Revision, Txn};
use jiff::{SignedDuration, Timestamp};
use sheet::Sheet;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

/// The label of a node, or of its pool, that makes a termination need force and a reason (F11).
pub(crate) const PROTECTED: &str = "argosy.dev/protected";

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

/// What to write, and the command with its revision, if it is stored already.
type Issuing = (Option<Txn>, (Arc<Command>, Option<Revision>));

impl Commands {
    pub(crate) fn new(nodes: Nodes) -> Self {
        Self { office: nodes.office.clone(), nodes, replays: Arc::default() }
    }

    /// Issues a command.
    ///
    /// # Errors
    /// `NodeNotFound`; `Precondition` and `TooMany` say why the node cannot have it; `Invalid` names the
    /// parameter; `Changed`; `KeyReused`, and `CommandNotFound` for a key whose command is forgotten.
    pub async fn issue(
        &self,
        caller: &Caller,
        node: &str,
        new: NewCommand,
    ) -> Result<Stored<Command>, Error> {
        allow_verb(caller, Verb::Write)?;
        let id = self.office.ids.command(self.office.clock.now());
        let decide =
            |view: &View, now: Timestamp| self.decide_issue(view, now, id, caller, node, &new);
        let (revision, (value, known)) = self.office.decide(decide).await?;
        Ok(Stored { value, revision: known.unwrap_or(revision) })
    }

    fn decide_issue(
        &self,
        view: &View,
        now: Timestamp,
        id: CommandId,
        caller: &Caller,
        node: &str,
        new: &NewCommand,
    ) -> Result<Issuing, Error> {
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
        let key = new.idempotency_key.as_deref().map(|key| key_id(caller, key));
        if let Some(first) = earlier(view, key.as_deref(), &digest, now)? {
            return Ok((None, (first.value.clone(), Some(first.revision))));
        }
        let current = found.revision;
        if let Some(expected) = new.if_revision.filter(|expected| *expected != current) {
            return Err(Error::Changed { expected, current });
        }
        if new.kind == CommandKind::Terminate && is_protected(view, &found.value) {
            allow_protected(caller, &found.value, new)?;
        }
        let mut sheet = Sheet::of(view, found);
        let open = sheet.open();
        let waiting: Vec<&Command> = open.iter().map(|command| &**command).collect();
        let nodes = self.office.nodes();
        let settings = nodes.of_node(&found.value);
        let issued = issue(&found.value, &waiting, order, id, settings, now).map_err(refused)?;
        let command = Arc::new(issued.command.clone());
        if new.dry_run {
            return Ok((None, (command, Some(current))));
        }
        sheet.issued(issued, action(new.kind));
        let mut txn = Txn::at(now);
        sheet::make_room(&mut txn, view, &found.value);
        sheet.write(&mut txn, caller, Cause::Other, Some(&command.reason), now)?;
        if let Some(key) = key {
            let expires = now.saturating_add(self.office.settings.idempotency_kept);
            let expires = expires.unwrap_or(now);
            let made = Made::Command(id);
            let used = Arc::new(IdempotencyKey { id: key, digest, made, expires });
            match view.idempotency_key(&used.id) {
                Some(expired) => txn.update(used, expired.revision),
                None => txn.create(used),
            }
        }
        Ok((Some(txn), (command, None)))
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
            let again = is_due_again(&found.value, asked_at);
            told && !again && commands.all(|command| command.value.state.is_done())
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
            sheet.elapse(settings, &self.office.systems, now);
            let again = is_due_again(&sheet.node, now)
                && sheet.again(settings, self.office.ids.command(now), now);
            let told = match wire {
                Wire::Argosy => tell_one(&mut sheet, now),
                Wire::Navarch => tell_all(&mut sheet, asked_at, now),
            };
            if sheet.is_blank() {
                return Ok((None, told));
            }
            let mut txn = Txn::at(now);
            if again {
                sheet::make_room(&mut txn, view, &found.value);
            }
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
            let systems = &self.office.systems;
            let moved = acknowledged(&found.value, &known.value, ack.clone(), systems, now);
            let Some(moved) = moved else {
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

/// The oldest open command, again and again: an agent that keeps a journal does it once.
fn tell_one(sheet: &mut Sheet<'_>, now: Timestamp) -> Vec<Arc<Command>> {
    let open = sheet.open();
    let waiting: Vec<&Command> = open.iter().map(|command| &**command).collect();
    let Some(id) = due(&sheet.node, &waiting).map(|command| command.id) else { return Vec::new() };
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
                if let Some(moved) = acknowledged(&sheet.node, &command, ack, &[], now) {
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

fn is_protected(view: &View, node: &Node) -> bool {
    let marked = node.labels.get(PROTECTED) == Some("true");
    let pool = node.pool.as_deref().filter(|_| !marked);
    marked
        || pool.is_some_and(|pool| {
            view.labelled(PROTECTED, "true").any(|resource| {
                let resource = &resource.value;
                let theirs = resource.tenant == node.tenant && resource.kind == Kind::NodePool;
                theirs && resource.name.to_string() == pool
            })
        })
}

/// Whether somebody may, and really wants to, terminate a protected node (F11).
fn allow_protected(caller: &Caller, node: &Node, new: &NewCommand) -> Result<(), Error> {
    let forced = new.parameters.get("force").is_some_and(|force| force == "true");
    let reason = new.parameters.get("reason").unwrap_or(&new.reason);
    let complain = |field, message: String| {
        Err(Error::Invalid(vec![FieldError::new(field, Constraint::Required, message)]))
    };
    if !forced {
        return Err(Error::Precondition(format!(
            "node {} is protected by the label {PROTECTED}; it is terminated only with the parameter \
             force=true and a reason",
            node.id
        )));
    }
    if reason.trim().is_empty() {
        let message = format!("node {} is protected; say why it is to be terminated", node.id);
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
