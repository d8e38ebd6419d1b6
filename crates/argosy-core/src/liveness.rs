//! Who went silent, and whether to believe it.
//!
//! Decided over the whole fleet at once: when most of it is silent, the silence is ours. All times are
//! spans on our own monotonic clock: no wall clock, and never a node's.

use crate::node::{Liveness, NodeId};
use jiff::SignedDuration;

/// What is known of one node's signs of life.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pulse<'a> {
    /// Which.
    pub node: &'a NodeId,
    /// What we say of it so far.
    pub liveness: Liveness,
    /// How long ago it was last heard by us; `None` if not since we began to listen.
    pub quiet_for: Option<SignedDuration>,
    /// How long it may be silent before it is `Suspect`.
    pub suspect_after: SignedDuration,
    /// How long before it is `Unreachable`.
    pub unreachable_after: SignedDuration,
}

/// How long we have been listening: since start, failover, or waking up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listening {
    /// For how long.
    pub listening_for: SignedDuration,
    /// How long nodes that were not heard since get to come back.
    pub amnesty: SignedDuration,
}

/// What to write down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sweep {
    /// Nodes whose liveness changes, and to what. Recovery (`Fresh`) is never held back.
    pub marks: Vec<(NodeId, Liveness)>,
    /// Set if most of the fleet is silent: then nobody is marked `Unreachable`, and nothing may be
    /// done about those that are.
    pub isolated: Option<Isolation>,
    /// Whether nodes are still coming back after our own start: nothing may be done about silence.
    pub amnesty: bool,
}

/// Our own isolation, as far as it can be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Isolation {
    /// How many are silent.
    pub silent: usize,
    /// Of how many.
    pub total: usize,
}

/// Looks at the whole fleet.
pub fn sweep(fleet: &[Pulse<'_>], listening: Listening) -> Sweep {
    let _ = (fleet, listening);
    todo!()
}
