//! Health policies: stored, compiled once, asked for every event.

use crate::office::Office;
use crate::{Error, Revision, Stored};
use argosy_core::access::Caller;
use argosy_core::health::{Event, Severity, Verdict};
use argosy_core::node::{Node, NodeId};
use argosy_core::policy::{Policy, PolicySpec};
use argosy_policy::HealthPolicy;
use argosy_store::view::View;
use jiff::Timestamp;
use std::sync::Arc;

/// The service.
#[derive(Clone)]
pub struct Policies {
    pub(crate) office: Arc<Office>,
    pub(crate) book: Arc<PolicyBook>,
}

/// The compiled policies, by tenant and name; compiled anew when a document changes.
#[derive(Default)]
pub(crate) struct PolicyBook {}

impl PolicyBook {
    /// The policy in force for a node: that of its pool, or else the tenant's default, or else the
    /// built-in one.
    pub(crate) fn of(&self, view: &View, node: &Node) -> Arc<HealthPolicy> {
        let _ = (view, node);
        todo!()
    }
}

/// What a policy would have done with recorded history.
#[derive(Clone, Debug, PartialEq)]
pub struct Backtest {
    /// How many events were judged.
    pub events: usize,
    /// From when.
    pub from: Option<Timestamp>,
    /// To when.
    pub to: Option<Timestamp>,
    /// Nodes it would have hit that the current policy did not, with the first event that shows it.
    pub only_new: Vec<Hit>,
    /// Nodes the current policy hit that it would not have.
    pub only_current: Vec<Hit>,
    /// How many both would have hit.
    pub both: usize,
    /// Rules that failed, and how often.
    pub errors: Vec<(String, usize)>,
}

/// A node that a policy hits, and the event that shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct Hit {
    /// The node.
    pub node: NodeId,
    /// When.
    pub at: Timestamp,
    /// What the policy says.
    pub rule: String,
    /// How bad.
    pub severity: Severity,
    /// The event, in a sentence.
    pub event: String,
}

impl Policies {
    /// Policies of the caller's tenant, the built-in default among them.
    ///
    /// # Errors
    /// `Forbidden`.
    pub fn list(&self, caller: &Caller) -> Result<Vec<Stored<Policy>>, Error> {
        let _ = (caller, &self.office);
        todo!()
    }

    /// One policy.
    ///
    /// # Errors
    /// `PolicyNotFound`.
    pub fn get(&self, caller: &Caller, name: &str) -> Result<Stored<Policy>, Error> {
        let _ = (caller, name);
        todo!()
    }

    /// Makes or replaces a policy. One that does not compile is refused, and the old one stays.
    ///
    /// # Errors
    /// `Invalid`: `rules[3].condition`, with line and column; `Changed`.
    pub async fn put(
        &self,
        caller: &Caller,
        name: &str,
        spec: PolicySpec,
        if_revision: Option<Revision>,
        dry_run: bool,
    ) -> Result<Stored<Policy>, Error> {
        let _ = (caller, name, spec, if_revision, dry_run);
        todo!()
    }

    /// Removes a policy; of the default, what the operator made of it.
    ///
    /// # Errors
    /// `PolicyNotFound`.
    pub async fn delete(&self, caller: &Caller, name: &str) -> Result<(), Error> {
        let _ = (caller, name);
        todo!()
    }

    /// What the policy in force for a node, or a given one, says of an event.
    ///
    /// # Errors
    /// `NodeNotFound`; `Invalid` if the given policy does not compile.
    pub fn explain(
        &self,
        caller: &Caller,
        node: Option<&str>,
        spec: Option<&PolicySpec>,
        event: &Event,
    ) -> Result<Verdict, Error> {
        let _ = (caller, node, spec, event);
        todo!()
    }

    /// Runs a policy over recorded history.
    ///
    /// # Errors
    /// `Invalid` if it does not compile.
    pub async fn backtest(
        &self,
        caller: &Caller,
        spec: &PolicySpec,
        since: Option<Timestamp>,
    ) -> Result<Backtest, Error> {
        let _ = (caller, spec, since);
        todo!()
    }
}
