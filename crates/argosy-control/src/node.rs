//! Nodes: registration, heartbeats, health reports; lists, history and why.

use crate::office::Office;
use crate::policy::PolicyBook;
use crate::pulse::{Live, PulseBoard, Sample, Via};
use crate::{Error, Revision, Stored};
use argosy_core::access::Caller;
use argosy_core::health::{HealthReport, HealthState};
use argosy_core::ledger::What;
use argosy_core::node::{Node, NodeId, NodeStatus, Registration};
use argosy_core::search::{Filter, Order};
use argosy_core::why::{Noted, Why};
use jiff::{SignedDuration, Timestamp};
use std::sync::Arc;

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
        let _ = (caller, registration, &self.office);
        todo!()
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
        let _ = (caller, node, via, beat);
        todo!()
    }

    /// Takes in a health report. A report that says nothing new writes nothing.
    ///
    /// # Errors
    /// As for a heartbeat; `TooMany` beyond the node's quota of events.
    pub async fn report(
        &self,
        caller: &Caller,
        node: &str,
        report: HealthReport,
    ) -> Result<HealthAnswer, Error> {
        let _ = (caller, node, report);
        todo!()
    }

    /// What a node should go by.
    ///
    /// # Errors
    /// As for a heartbeat.
    pub fn config(&self, caller: &Caller, node: &str, via: Via) -> Result<NodeConfig, Error> {
        let _ = (caller, node, via);
        todo!()
    }

    /// One node.
    ///
    /// # Errors
    /// `NodeNotFound`.
    pub fn get(&self, caller: &Caller, node: &str) -> Result<(Stored<Node>, Live), Error> {
        let _ = (caller, node);
        todo!()
    }

    /// Nodes the caller may see.
    ///
    /// # Errors
    /// `Forbidden`.
    pub fn list(&self, caller: &Caller, query: &NodeQuery) -> Result<NodePage, Error> {
        let _ = (caller, query);
        todo!()
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
        let _ = (caller, look);
        todo!()
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
        let _ = (caller, node, before, limit, keep);
        todo!()
    }

    /// Why a node is as it is.
    ///
    /// # Errors
    /// `NodeNotFound`.
    pub async fn why(&self, caller: &Caller, node: &str) -> Result<Why, Error> {
        let _ = (caller, node);
        todo!()
    }

    /// Forgets a node: one that is terminated or unreachable, or any with `force`. It may register
    /// again under its id.
    ///
    /// # Errors
    /// `NodeNotFound`; `Precondition` if it is alive.
    pub async fn forget(
        &self,
        caller: &Caller,
        node: &NodeId,
        force: bool,
        reason: Option<String>,
    ) -> Result<(), Error> {
        let _ = (caller, node, force, reason);
        todo!()
    }
}
