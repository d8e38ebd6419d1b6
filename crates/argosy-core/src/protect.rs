//! The label `argosy.dev/protected`: what carries it is not taken away until the label is off, or an
//! administrator forces it with a reason.
//!
//! On a cluster or a node pool it keeps the pool and its size: no DELETE, no smaller pool, no TERMINATE. Sick
//! nodes are still replaced. On a node it keeps that machine: nothing that we do by ourselves ends it.
//!
//! What a newcomer gets wrong: which machine is protected is asked of its record, which knows its pool. Names
//! of pools come in two forms and are not compared.

use crate::instance::Reason;
use crate::label::Labels;
use crate::node::Node;
use crate::resource::Resource;
use std::fmt;

/// The label. Its value is `true`; any other protects nothing.
pub const PROTECTED: &str = "argosy.dev/protected";

/// What carries the label that protects a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protection {
    /// Its node.
    Node,
    /// Its node pool.
    Pool,
    /// The cluster of its node pool.
    Cluster,
}

/// Whether these labels protect what carries them.
pub fn is_protected(labels: &Labels) -> bool {
    labels.get(PROTECTED) == Some("true")
}

/// What protects a machine of a pool; the label that keeps most goes first.
pub fn protection(
    node: Option<&Node>,
    pool: Option<&Resource>,
    cluster: Option<&Resource>,
) -> Option<Protection> {
    let rows = [
        (node.map(|node| &node.labels), Protection::Node),
        (pool.map(|pool| &pool.labels), Protection::Pool),
        (cluster.map(|cluster| &cluster.labels), Protection::Cluster),
    ];
    rows.into_iter().find(|(labels, _)| labels.is_some_and(is_protected)).map(|(_, by)| by)
}

impl Protection {
    /// Whether a machine that is protected like this stays, although there is this reason for it to go.
    ///
    /// What people ask for was judged when they asked, and what is gone cannot be kept.
    pub fn keeps(self, reason: &Reason) -> bool {
        match reason {
            Reason::ScaleDown { .. } => true,
            Reason::Replaced { .. }
            | Reason::Sick { .. }
            | Reason::BadHardware { .. }
            | Reason::Unwanted => self == Protection::Node,
            Reason::PoolDeleted
            | Reason::Operator { .. }
            | Reason::NodeTerminated { .. }
            | Reason::Reclaimed
            | Reason::Vanished
            | Reason::Stale => false,
        }
    }
}

/// As a part of a sentence: `its node pool is labelled argosy.dev/protected`.
impl fmt::Display for Protection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let who = match self {
            Protection::Node => "its node",
            Protection::Pool => "its node pool",
            Protection::Cluster => "its cluster",
        };
        write!(f, "{who} is labelled {PROTECTED}")
    }
}

#[cfg(test)]
mod tests;
