//! When many fail at once, stop: the brakes on what we do by ourselves. Recovery is never braked.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::fmt;

/// What a brake is for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(tag = "scope", rename_all = "lowercase")]
pub enum Scope {
    /// Everything.
    Fleet,
    /// One zone of a provider.
    Zone {
        /// The zone, with its provider and region before it.
        zone: String,
    },
    /// One pool.
    Pool {
        /// Whose.
        tenant: String,
        /// Which; empty for nodes without a pool.
        pool: String,
    },
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scope::Fleet => f.write_str("fleet"),
            Scope::Zone { zone } => write!(f, "zone/{zone}"),
            Scope::Pool { tenant, pool } => write!(f, "pool/{tenant}/{pool}"),
        }
    }
}

/// A breaker that is not closed, as it is stored. A closed one has no document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Breaker {
    /// Where it stops us.
    pub scope: Scope,
    /// Since when.
    pub opened_at: Timestamp,
    /// Why, with the numbers.
    pub reason: String,
    /// When something last turned bad there.
    pub last_bad_at: Timestamp,
    /// While half open: how many actions may be taken, and how many were. `None` while open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub half_open: Option<HalfOpen>,
}

/// How far a half-open breaker is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HalfOpen {
    /// Since when this step lasts.
    pub since: Timestamp,
    /// How many actions this step allows: 1, 2, 4, …
    pub allowed: u32,
    /// How many were taken.
    pub taken: u32,
}

/// Somebody stopped all automatic action, for everything or for one pool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pause {
    /// Whose nodes.
    pub tenant: String,
    /// Only this pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// Who.
    pub by: String,
    /// Why.
    pub reason: String,
    /// When.
    pub at: Timestamp,
}
