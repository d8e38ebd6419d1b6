//! Watches of commands.

use super::{LISTED_MAX, WasShown, Watch, Watched};
use crate::command::Commands;
use crate::office::{Office, allow_verb};
use crate::{Error, Revision, Stored};
use argosy_core::access::{Caller, Verb};
use argosy_core::command::{Command, CommandState};
use argosy_core::id::CommandId;
use argosy_store::view::{DocumentChange, Event, View};
use std::sync::Arc;

/// Which commands to watch.
#[derive(Clone, Debug, Default)]
pub struct WatchCommands {
    /// Only this one.
    pub command: Option<CommandId>,
    /// Only those of this node.
    pub node: Option<String>,
    /// Only those in this state, by its word; `open` means not ended.
    pub state: Option<String>,
    /// Go on after this revision; without it, begin with what is there.
    pub after: Option<Revision>,
}

/// Which commands a watch shows.
pub struct CommandScope {
    list: WatchCommands,
    caller: Caller,
    office: Arc<Office>,
}

impl Commands {
    /// Follows commands, or one of them.
    ///
    /// # Errors
    /// `CommandNotFound`, `NodeNotFound`; `Forbidden`.
    pub fn watch(&self, caller: &Caller, list: WatchCommands) -> Result<Watch<Command>, Error> {
        allow_verb(caller, Verb::Read)?;
        let (office, store) = (self.office.clone(), self.office.store.clone());
        let changes = store.subscribe();
        store.read(|view| {
            if let Some(id) = list.command {
                let found = view.command(id).map(|found| &*found.value);
                if !found.is_some_and(|found| office.shows_command(view, caller, found)) {
                    return Err(Error::CommandNotFound(id.to_string()));
                }
            }
            if let Some(node) = &list.node {
                let found = view.node(node).map(|found| &*found.value);
                if !found.is_some_and(|found| office.shows(view, caller, found.into())) {
                    return Err(Error::NodeNotFound(node.clone()));
                }
            }
            let after = list.after;
            let scope = CommandScope { list, caller: caller.clone(), office: office.clone() };
            Ok(Watch::start(scope, store.clone(), view, after, changes))
        })
    }
}

impl Watched for Command {
    type Id = String;
    type Scope = CommandScope;
    type Cursor = CommandId;
    type Change = DocumentChange<Command>;

    fn changes(event: &Event) -> &[DocumentChange<Command>] {
        &event.commands
    }

    fn id(change: &DocumentChange<Command>) -> String {
        change.id.clone()
    }

    fn sides(
        change: &DocumentChange<Command>,
    ) -> (Option<&Stored<Command>>, Option<&Stored<Command>>) {
        (change.before.as_ref(), change.after.as_ref())
    }

    fn listed(
        scope: &CommandScope,
        view: &View,
        after: Option<&CommandId>,
    ) -> (Vec<Stored<Command>>, Option<CommandId>) {
        let shown = |found: &&Stored<Command>| found.value.shows(scope, view);
        if let Some(id) = scope.list.command {
            return (view.command(id).filter(shown).cloned().into_iter().collect(), None);
        }
        if let Some(node) = &scope.list.node {
            return (view.commands_of(node).filter(shown).cloned().collect(), None);
        }
        let some: Vec<_> = view.commands_after(after.copied()).take(LISTED_MAX).collect();
        let next = some.last().filter(|_| some.len() == LISTED_MAX).map(|last| last.value.id);
        (some.into_iter().filter(shown).cloned().collect(), next)
    }

    fn shows(&self, scope: &CommandScope, view: &View) -> bool {
        let WatchCommands { command, node, state, .. } = &scope.list;
        command.is_none_or(|only| only == self.id)
            && node.as_ref().is_none_or(|node| *node == self.node.as_str())
            && state.as_ref().is_none_or(|state| is_in(&self.state, state))
            && scope.office.shows_command(view, &scope.caller, self)
    }

    fn is_new(&self) -> bool {
        self.state == CommandState::Pending
    }

    fn was_shown(scope: &CommandScope, view: &View, change: &DocumentChange<Command>) -> WasShown {
        let CommandScope { list, caller, office } = scope;
        match &change.after {
            // It is out of sight because of its state, or because it is not asked for at all.
            Some(after) => {
                let asked_for = list.command.is_none_or(|only| only == after.value.id)
                    && list.node.as_ref().is_none_or(|node| *node == after.value.node.as_str());
                let visible = || office.shows_command(view, caller, &after.value);
                if asked_for && visible() { WasShown::Maybe } else { WasShown::No }
            }
            None => match list.command {
                None => WasShown::Unknown,
                Some(only) if only.to_string() == change.id => WasShown::Maybe,
                Some(_) => WasShown::No,
            },
        }
    }
}

/// Whether a command is in the state of this word.
fn is_in(state: &CommandState, word: &str) -> bool {
    if word == "open" { !state.is_done() } else { state.word() == word }
}
