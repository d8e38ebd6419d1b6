//! Health policies as they stand on the wire: rules in CEL, the first that matches by priority decides.

use crate::node::{NodeEvent, Severity, Verdict};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Policy {
    /// Its name.
    #[schema(pattern = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", max_length = 63)]
    pub name: String,
    /// `Policy`.
    #[schema(pattern = "^Policy$")]
    pub kind: String,
    /// Its path.
    pub href: String,
    /// 1 at first, one more at each effective change; 0 for the built-in default nobody changed.
    #[schema(minimum = 0)]
    pub version: u32,
    /// What it says.
    #[serde(flatten)]
    pub spec: PolicyPut,
    /// When it was made.
    #[schema(format = "date-time")]
    pub created_at: String,
    /// By whom.
    pub created_by: String,
    /// When it was last changed.
    #[schema(format = "date-time")]
    pub updated_at: String,
    /// By whom.
    pub updated_by: String,
    /// The commit that last wrote it; its ETag is this number in quotes.
    #[schema(minimum = 0)]
    pub revision: u64,
    /// In the answer to a PUT: what is valid and probably not meant, such as a rule that fails on an event it
    /// is about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// What a policy says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PolicyPut {
    /// What it is for.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The pools it is for; none means every node that has no policy of its own pool.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pools: Vec<String>,
    /// The rules.
    #[schema(max_items = 64)]
    pub rules: Vec<Rule>,
}

/// One rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Its name, unique in the policy.
    #[schema(min_length = 1)]
    pub name: String,
    /// What it is for.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Higher is asked first; equals in the order they are given.
    #[serde(default)]
    pub priority: i32,
    /// CEL that gives true or false.
    #[schema(min_length = 1)]
    pub condition: String,
    /// What it means when it is true.
    pub result: Severity,
    /// How long a finding lasts without a repeat, as in `30m`; `reboot` means until the node boots again,
    /// `replaced` until another GPU is in its place. Left out: `reboot` for unhealthy, `1h` for degraded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub lasts: Option<String>,
}

/// Every policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PolicyList {
    /// `PolicyList`.
    #[schema(pattern = "^PolicyList$")]
    pub kind: String,
    /// The policies, by name.
    pub items: Vec<Policy>,
}

/// Asks what a policy says of an event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ExplainRequest {
    /// What happened.
    pub event: NodeEvent,
    /// On which node: its pool decides which policy is asked, its past what rules count. Left out: on a
    /// node nothing is known of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub node_id: Option<String>,
    /// The policy to ask, instead of the one in force.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub policy: Option<PolicyPut>,
}

/// What a policy says of an event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Explanation {
    /// `Explanation`.
    #[schema(pattern = "^Explanation$")]
    pub kind: String,
    /// What it says.
    #[serde(flatten)]
    pub verdict: Verdict,
}

/// Runs a policy over recorded history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BacktestRequest {
    /// The policy to try.
    pub policy: PolicyPut,
    /// From when; as far back as events are kept if it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = "date-time")]
    pub since: Option<String>,
}

/// What a policy would have done with recorded history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BacktestReport {
    /// `BacktestReport`.
    #[schema(pattern = "^BacktestReport$")]
    pub kind: String,
    /// How many events were judged.
    #[schema(minimum = 0)]
    pub events: usize,
    /// The first of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = "date-time")]
    pub from: Option<String>,
    /// The last of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = "date-time")]
    pub to: Option<String>,
    /// Nodes it would have hit that the current policy did not, each with the first event that shows
    /// it.
    pub only_new: Vec<BacktestHit>,
    /// Nodes the current policy hit that it would not have.
    pub only_current: Vec<BacktestHit>,
    /// How many both hit.
    #[schema(minimum = 0)]
    pub both: usize,
    /// Rules that failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<BacktestError>,
}

/// A node that a policy hits, and the event that shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BacktestHit {
    /// The node.
    pub node_id: String,
    /// When.
    #[schema(format = "date-time")]
    pub at: String,
    /// The rule.
    pub rule: String,
    /// How bad.
    pub severity: Severity,
    /// The event, in a sentence.
    pub event: String,
}

/// A rule that failed on recorded history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BacktestError {
    /// The rule and what went wrong.
    pub message: String,
    /// How often.
    #[schema(minimum = 0)]
    pub count: usize,
}
