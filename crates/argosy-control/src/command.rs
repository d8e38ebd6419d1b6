//! Commands: issued by people and by ourselves, fetched and ended by nodes.

use crate::office::Office;
use crate::pulse::PulseBoard;
use crate::{Error, Stored};
use argosy_core::access::Caller;
use argosy_core::command::{Ack, Command, CommandKind};
use argosy_core::id::CommandId;
use jiff::SignedDuration;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The service.
#[derive(Clone)]
pub struct Commands {
    pub(crate) office: Arc<Office>,
    pub(crate) board: PulseBoard,
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
    pub if_revision: Option<argosy_store::Revision>,
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

impl Commands {
    /// Issues a command.
    ///
    /// # Errors
    /// `NodeNotFound`; `Precondition` and `TooMany` say why the node cannot have it; `Changed`.
    pub async fn issue(
        &self,
        caller: &Caller,
        node: &str,
        new: NewCommand,
    ) -> Result<Stored<Command>, Error> {
        let _ = (caller, node, new, &self.office);
        todo!()
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
        let _ = (caller, node, wire, &self.board);
        todo!()
    }

    /// Takes in what a node says about a command.
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
        let _ = (caller, node, command, ack);
        todo!()
    }

    /// One command.
    ///
    /// # Errors
    /// `CommandNotFound`.
    pub fn get(&self, caller: &Caller, command: CommandId) -> Result<Stored<Command>, Error> {
        let _ = (caller, command);
        todo!()
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
        let _ = (caller, node, open_only);
        todo!()
    }

    /// Waits until there may be something new for a node that holds a stream open. May be dropped and
    /// called again.
    pub async fn wait(&self, node: &str) {
        let _ = node;
        todo!()
    }
}
