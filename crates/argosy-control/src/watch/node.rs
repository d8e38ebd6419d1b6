//! Watches of nodes. Heartbeats write nothing, so they are no news here.

use super::{LISTED_MAX, WasShown, Watch, Watched};
use crate::node::Nodes;
use crate::office::{Office, allow_verb};
use crate::{Error, Revision, Stored};
use argosy_core::access::{Caller, Verb};
use argosy_core::node::{Duty, Node, NodeId};
use argosy_core::search::Filter;
use argosy_store::view::{DocumentChange, Event, View};
use std::sync::Arc;

/// Which nodes to watch.
#[derive(Clone, Debug)]
pub struct WatchNodes<'a> {
    /// Only this one.
    pub node: Option<&'a str>,
    /// Only those that match.
    pub filter: Filter<Node>,
    /// Go on after this revision; without it, begin with what is there.
    pub after: Option<Revision>,
}

/// Which nodes a watch shows.
pub struct NodeScope {
    only: Option<NodeId>,
    filter: Filter<Node>,
    caller: Caller,
    office: Arc<Office>,
}

impl Nodes {
    /// Follows nodes, or one of them.
    ///
    /// # Errors
    /// `NodeNotFound`; `Forbidden`.
    pub fn watch(&self, caller: &Caller, watch: WatchNodes<'_>) -> Result<Watch<Node>, Error> {
        allow_verb(caller, Verb::Read)?;
        let (office, store) = (self.office.clone(), self.office.store.clone());
        let changes = store.subscribe();
        store.read(|view| {
            let only = watch.node.map(|id| self.find(view, caller, id)).transpose()?;
            let only = only.map(|found| found.value.id.clone());
            let (filter, caller) = (watch.filter, caller.clone());
            let scope = NodeScope { only, filter, caller, office: office.clone() };
            Ok(Watch::start(scope, store.clone(), view, watch.after, changes))
        })
    }
}

impl Watched for Node {
    type Id = String;
    type Scope = NodeScope;
    type Cursor = NodeId;
    type Change = DocumentChange<Node>;

    fn changes(event: &Event) -> &[DocumentChange<Node>] {
        &event.nodes
    }

    fn id(change: &DocumentChange<Node>) -> String {
        change.id.clone()
    }

    fn sides(change: &DocumentChange<Node>) -> (Option<&Stored<Node>>, Option<&Stored<Node>>) {
        (change.before.as_ref(), change.after.as_ref())
    }

    fn listed(
        scope: &NodeScope,
        view: &View,
        after: Option<&NodeId>,
    ) -> (Vec<Stored<Node>>, Option<NodeId>) {
        if let Some(only) = &scope.only {
            let found = view.node(only.as_str()).filter(|found| found.value.shows(scope, view));
            return (found.cloned().into_iter().collect(), None);
        }
        let mut looked_at = 0;
        let mut last = None;
        let mut shown = Vec::new();
        for node in view.nodes_after(after.map(NodeId::as_str)).take(LISTED_MAX) {
            looked_at += 1;
            last = Some(&node.value.id);
            if node.value.shows(scope, view) {
                shown.push(node.clone());
            }
        }
        (shown, last.filter(|_| looked_at == LISTED_MAX).cloned())
    }

    fn shows(&self, scope: &NodeScope, view: &View) -> bool {
        scope.only.as_ref().is_none_or(|only| *only == self.id)
            && scope.office.shows(view, &scope.caller, self.into())
            && scope.filter.matches(self)
    }

    fn is_new(&self) -> bool {
        self.joined_at == self.registered_at
            && self.liveness_since == self.registered_at
            && self.health.since == self.registered_at
            && self.duty == Duty::Active
            && self.checks.is_empty()
            && self.findings.is_empty()
            && self.sightings.is_empty()
            && self.flags.is_empty()
    }

    fn was_shown(scope: &NodeScope, view: &View, change: &DocumentChange<Node>) -> WasShown {
        let NodeScope { only, caller, office, .. } = scope;
        if only.as_ref().is_some_and(|only| only.as_str() != change.id) {
            return WasShown::No;
        }
        match &change.after {
            Some(after) if after.value.is_new() => WasShown::No,
            Some(after) if office.shows(view, caller, (&*after.value).into()) => WasShown::Maybe,
            Some(_) => WasShown::No,
            // It is the caller's own: it was found when the watch began.
            None if only.is_some() => WasShown::Maybe,
            None => WasShown::Unknown,
        }
    }
}
