//! What to do by ourselves about nodes that are sick, lost or well again, inside every budget.
//!
//! Level-triggered: the plan is made from what is, each time anew. There is no backlog that could be
//! replayed after a pause, an open breaker or an outage.

use crate::breaker::{Breaker, Pause};
use crate::node::settings::NodeSettings;
use crate::node::{Held, Node, NodeId};
use jiff::{SignedDuration, Timestamp};
use std::fmt;

/// What the plan is made from.
#[derive(Clone, Debug)]
pub struct Fleet<'a> {
    /// Every node of every tenant.
    pub nodes: Vec<Subject<'a>>,
    /// Breakers that are not closed.
    pub breakers: Vec<&'a Breaker>,
    /// Pauses.
    pub pauses: Vec<&'a Pause>,
    /// Nobody acts on silence now: we are isolated, or nodes are still coming back.
    pub silence_excused: Option<String>,
}

/// One node, with what its document does not say.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// The node.
    pub node: &'a Node,
    /// How long it has been unreachable by our monotonic clock, if it is.
    pub unreachable_for: Option<SignedDuration>,
    /// Whether an automatic cordon is on its way to it, and since when.
    pub cordon_pending: Option<Timestamp>,
}

/// What to do now.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// What to do, in order.
    pub actions: Vec<Action>,
    /// What would be done if a guard did not hold it; only where that is news.
    pub holds: Vec<(NodeId, Option<Held>)>,
    /// Breakers as they should be stored.
    pub breakers: Vec<Breaker>,
    /// Breakers that are closed: their documents go.
    pub closed: Vec<Breaker>,
    /// When to look again although nothing changed.
    pub next: Option<Timestamp>,
}

/// One thing to do by ourselves.
#[derive(Clone, Debug, PartialEq)]
pub struct Action {
    /// To whom.
    pub node: NodeId,
    /// What.
    pub kind: ActionKind,
    /// Why, for people and for the ledger: the finding, the rule.
    pub reason: String,
    /// The state of the budgets when it was decided: `pool h100 2/5, zone a 2/10, fleet 7/50`.
    pub budget: String,
}

/// The kinds of action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActionKind {
    /// Take it out of service: a CORDON command.
    Cordon,
    /// The cordon that was sent holds although the node did not fetch it.
    EnforceCordon,
    /// End what runs on it: a DRAIN command.
    Drain,
    /// Put it back: an UNCORDON command; a drain in progress is cancelled.
    Uncordon,
}

impl fmt::Display for ActionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ActionKind::Cordon => "cordon",
            ActionKind::EnforceCordon => "enforce-cordon",
            ActionKind::Drain => "drain",
            ActionKind::Uncordon => "uncordon",
        })
    }
}

/// Makes the plan.
pub fn plan(fleet: &Fleet<'_>, settings: &NodeSettings, now: Timestamp) -> Plan {
    let _ = (fleet, settings, now);
    todo!()
}
