//! A node and its open commands while something is decided about them; written as one commit.

use crate::Error;
use crate::office::{Mutation, Office};
use argosy_core::access::Caller;
use argosy_core::command::{Command, ENDED_KEPT, Issued, Moved, again, elapsed, orphaned};
use argosy_core::id::CommandId;
use argosy_core::invariant::Cause;
use argosy_core::ledger::Entry;
use argosy_core::node::settings::PoolSettings;
use argosy_core::node::{Node, NodeId};
use argosy_store::Txn;
use argosy_store::view::{Stored, View};
use jiff::Timestamp;
use std::sync::Arc;

/// The sheet. What is decided later sees what was decided before.
pub(crate) struct Sheet<'v> {
    before: &'v Stored<Node>,
    /// The node as it stands now.
    pub(crate) node: Arc<Node>,
    /// Why the node is written, if it is.
    action: Option<&'static str>,
    lines: Vec<Line<'v>>,
    entries: Vec<Entry>,
}

/// One command on the sheet.
struct Line<'v> {
    before: Option<&'v Stored<Command>>,
    now: Arc<Command>,
    /// Why it is written, if it is.
    action: Option<&'static str>,
}

impl<'v> Sheet<'v> {
    /// With the commands of the node that have not ended.
    pub(crate) fn of(view: &'v View, node: &'v Stored<Node>) -> Sheet<'v> {
        let open = view.commands_of(node.value.id.as_str());
        let open = open.filter(|command| !command.value.state.is_done());
        let line = |command: &'v Stored<Command>| Line {
            before: Some(command),
            now: command.value.clone(),
            action: None,
        };
        Sheet {
            before: node,
            node: node.value.clone(),
            action: None,
            lines: open.map(line).collect(),
            entries: Vec::new(),
        }
    }

    /// The commands that have not ended, by age.
    pub(crate) fn open(&self) -> Vec<Arc<Command>> {
        let lines = self.lines.iter().map(|line| &line.now);
        lines.filter(|command| !command.state.is_done()).cloned().collect()
    }

    /// Takes in an order that was given.
    pub(crate) fn issued(&mut self, issued: Issued, action: &'static str) {
        let Issued { node, command, cancelled, entries } = issued;
        for command in cancelled {
            self.set(command, "cancel");
        }
        let now = Arc::new(command);
        self.lines.push(Line { before: None, now, action: Some("issue") });
        self.node = Arc::new(node);
        // Even if nothing about it changes: two orders for one node must meet in the store (F9).
        self.action = Some(action);
        self.entries.extend(entries);
    }

    /// Takes in what happened to a command.
    pub(crate) fn moved(&mut self, moved: Moved, action: &'static str) {
        let Moved { node, command, entries } = moved;
        self.set(command, action);
        self.amended(node, entries, action);
    }

    /// Takes in what changed about the node.
    pub(crate) fn amended(&mut self, node: Node, entries: Vec<Entry>, action: &'static str) {
        if *self.node != node {
            self.node = Arc::new(node);
            self.action = Some(action);
        }
        self.entries.extend(entries);
    }

    /// Adds a line to the ledger.
    pub(crate) fn note(&mut self, entry: Entry) {
        self.entries.push(entry);
    }

    /// Takes in what time has done to the commands.
    pub(crate) fn elapse(&mut self, settings: &PoolSettings, systems: &[String], now: Timestamp) {
        for command in self.open() {
            let open = self.open();
            let waiting: Vec<&Command> = open.iter().map(|command| &**command).collect();
            if let Some(moved) = elapsed(&self.node, &command, &waiting, settings, systems, now) {
                self.moved(moved, "expire");
            }
        }
    }

    /// Tells the node again what it is to be, if it is not. True if so.
    pub(crate) fn again(&mut self, settings: &PoolSettings, id: CommandId, now: Timestamp) -> bool {
        let open = self.open();
        let waiting: Vec<&Command> = open.iter().map(|command| &**command).collect();
        let issued = again(&self.node, &waiting, id, settings, now);
        let any = issued.is_some();
        if let Some(issued) = issued {
            self.issued(issued, "tell-again");
        }
        any
    }

    fn set(&mut self, command: Command, action: &'static str) {
        let line = self.lines.iter_mut().find(|line| line.now.id == command.id);
        // A cordon that is enforced changes its node alone.
        if let Some(line) = line.filter(|line| *line.now != command) {
            line.now = Arc::new(command);
            line.action = Some(action);
        }
    }

    /// Whether there is nothing to write.
    pub(crate) fn is_blank(&self) -> bool {
        let untouched = self.lines.iter().all(|line| line.action.is_none());
        untouched && self.action.is_none() && self.entries.is_empty()
    }

    /// Adds it all to a transaction: the documents with an audit record each, the lines of the ledger.
    pub(crate) fn write(
        self,
        txn: &mut Txn,
        caller: &Caller,
        cause: Cause,
        reason: Option<&str>,
        now: Timestamp,
    ) -> Result<(), Error> {
        let reason = || reason.filter(|reason| !reason.is_empty()).map(str::to_owned);
        for Line { before, now: command, action } in self.lines {
            let Some(action) = action else { continue };
            let change = Mutation { action, before, after: Some(command), reason: reason() };
            Office::write_command(txn, change, caller, now)?;
        }
        if let Some(action) = self.action {
            let (before, after) = (Some(self.before), Some(self.node));
            let change = Mutation { action, before, after, reason: reason() };
            return Office::write_node(txn, change, cause, &self.entries, caller, now);
        }
        Office::note(txn, &self.entries);
        Ok(())
    }
}

/// Makes room for one more command of a node among those that have ended: the oldest go.
pub(crate) fn make_room(txn: &mut Txn, view: &View, node: &Node) {
    let ended = || {
        let all = view.commands_of(node.id.as_str());
        all.filter(|command| command.value.state.is_done())
    };
    let surplus = ended().count().saturating_sub(ENDED_KEPT - 1);
    for command in ended().take(surplus) {
        txn.remove(&*command.value, command.revision);
    }
}

/// Ends the open commands of a node that is or was forgotten: another machine may register under its id,
/// and none of them is meant for that one. True if there are any.
pub(crate) fn abandon(
    txn: &mut Txn,
    view: &View,
    node: &NodeId,
    caller: &Caller,
    now: Timestamp,
) -> Result<bool, Error> {
    let mut any = false;
    for open in view.commands_of(node.as_str()) {
        let Some((ended, entry)) = orphaned(&open.value, now) else { continue };
        any = true;
        let change = Mutation::update("cancel", open, Arc::new(ended));
        Office::write_command(txn, change, caller, now)?;
        Office::note(txn, &[entry]);
    }
    Ok(any)
}
