//! Health policies as they are stored: rules in CEL, first match by priority. `argosy-policy` compiles
//! and evaluates them.

use crate::health::Severity;
use crate::name::Name;
use crate::resource::Stamp;
use serde::{Deserialize, Serialize};

/// A policy, as it is stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Policy {
    /// Its name.
    pub name: Name,
    /// Whose.
    pub tenant: String,
    /// 1 at first, one more at each effective change.
    pub version: u32,
    /// The rules.
    pub spec: PolicySpec,
    /// Who made it.
    pub created: Stamp,
    /// Who last changed it.
    pub updated: Stamp,
}

/// What a policy says.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicySpec {
    /// What it is for.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// The pools it is for; empty means every node that has no policy of its own pool.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pools: Vec<String>,
    /// The rules, at most `RULES_MAX`.
    pub rules: Vec<Rule>,
}

/// The most rules of a policy: each may be asked of every event.
pub const RULES_MAX: usize = 64;

/// One rule.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Its name, unique in the policy.
    pub name: String,
    /// What it is for.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Higher is asked first; equals in the order of the file.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub priority: i32,
    /// CEL that gives true or false.
    pub condition: String,
    /// What it means when it is true.
    pub result: Severity,
    /// How long a finding lasts without a repeat, as in `30m`; `reboot` means until the node boots
    /// again. Without it: `reboot` for unhealthy, `1h` for degraded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lasts: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_zero(number: &i32) -> bool {
    *number == 0
}

/// The name of the policy that is there when nobody wrote one.
pub const DEFAULT_POLICY: &str = "default";
