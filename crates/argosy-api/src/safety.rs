//! The brakes on what the server does by itself, as they stand on the wire.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Whether the server acts by itself, and if not, why not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Brakes {
    /// `Brakes`.
    #[schema(pattern = "^Brakes$")]
    pub kind: String,
    /// What people stopped.
    pub pauses: Vec<Pause>,
    /// Breakers that are not closed.
    pub breakers: Vec<Breaker>,
    /// How much of each budget is used.
    pub budgets: Vec<BudgetUse>,
    /// Set while the server thinks that it is cut off from the fleet, with the numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub isolated: Option<String>,
    /// Set while nodes are still coming back after the server's own start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub amnesty: Option<String>,
}

/// Somebody stopped all automatic action, for everything or for one pool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Pause {
    /// Only this pool, by the name that its nodes carry; absent for everything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub pool: Option<String>,
    /// That pool's uid, if it is a declared one: another pool that is given its name later is not paused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = "uuid")]
    pub pool_id: Option<String>,
    /// Who.
    pub by: String,
    /// Why.
    pub reason: String,
    /// When.
    #[schema(format = "date-time")]
    pub at: String,
    /// The commit that wrote it.
    #[schema(minimum = 0)]
    pub revision: u64,
}

/// A breaker that is not closed: so much turned bad at once that the server stopped acting there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Breaker {
    /// Where: `fleet`, `zone/…` or `pool/TENANT/POOL`; also its name in paths.
    pub scope: String,
    /// Since when.
    #[schema(format = "date-time")]
    pub opened_at: String,
    /// Why, with the numbers.
    pub reason: String,
    /// When something last turned bad there.
    #[schema(format = "date-time")]
    pub last_bad_at: String,
    /// How far it is on its way to closed; absent while it is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub half_open: Option<HalfOpen>,
    /// The commit that last wrote it.
    #[schema(minimum = 0)]
    pub revision: u64,
}

/// How far a half-open breaker is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HalfOpen {
    /// Since when this step lasts.
    #[schema(format = "date-time")]
    pub since: String,
    /// How many actions this step allows.
    #[schema(minimum = 0)]
    pub allowed: u32,
    /// How many were taken.
    #[schema(minimum = 0)]
    pub taken: u32,
}

/// How much of one budget is used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BudgetUse {
    /// Of what, as in `Breaker`.
    pub scope: String,
    /// How many nodes are out of service by the server's own doing.
    #[schema(minimum = 0)]
    pub used: usize,
    /// How many nodes are out of service whoever did it: what requests of people and programs are judged by.
    #[serde(default)]
    #[schema(minimum = 0)]
    pub out: usize,
    /// How many may be.
    #[schema(minimum = 0)]
    pub allowed: usize,
    /// How many nodes there are.
    #[schema(minimum = 0)]
    pub total: usize,
}

/// What a request does to one disruption budget.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BudgetImpact {
    /// Of what, as in `Breaker`.
    pub scope: String,
    /// The same for people: `pool h100`.
    pub name: String,
    /// How many nodes may be out of service; one is always allowed.
    #[schema(minimum = 1)]
    pub allowed: usize,
    /// How many nodes there are.
    #[schema(minimum = 0)]
    pub total: usize,
    /// How many are out of service without the request, whoever did it.
    #[schema(minimum = 0)]
    pub used: usize,
    /// How many the request names.
    #[schema(minimum = 0)]
    pub asked: usize,
    /// Whether that is more than may be.
    pub exceeded: bool,
    /// The nodes that are out of service without the request, the longest first; only where it is exceeded, at most
    /// 20, and only those that the caller may see.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub out: Vec<OutOfService>,
    /// What would make room for the request; only where it is exceeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub frees: Option<String>,
    /// All of it in a sentence.
    pub message: String,
}

/// A node that is out of service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OutOfService {
    /// Which.
    pub node_id: String,
    /// How: `cordoned`, `draining`, `drained`, `terminated` and not replaced, or `tested`.
    pub how: String,
    /// Who did it.
    pub by: String,
    /// Since when.
    #[schema(format = "date-time")]
    pub since: String,
}

/// Why somebody stops, or lets go on, what the server does by itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SafetyReason {
    /// Why; it is kept in the audit log.
    #[schema(min_length = 1, max_length = 1024)]
    pub reason: String,
}

/// What taking a brake off came to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Released {
    /// False if there was nothing to take off.
    pub released: bool,
}
