//! Health policies as they are stored: rules in CEL, first match by priority. `argosy-policy` compiles
//! and evaluates them.

use crate::field::{Constraint, FieldError, quotable};
use crate::health::{Event, EventType, Lasts, Severity};
use crate::label::is_value;
use crate::name::Name;
use crate::resource::Stamp;
use crate::span;
use jiff::SignedDuration;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

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
    /// The pools it is for. The policy `default` has none: it is for every node whose pool has no
    /// policy of its own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pools: Vec<String>,
    /// The rules, at most `RULES_MAX`.
    pub rules: Vec<Rule>,
}

/// The most rules of a policy: each may be asked of every event.
pub const RULES_MAX: usize = 64;
/// The most pools of a policy. More would be a default.
pub const POOLS_MAX: usize = 256;
/// The longest description of a policy or a rule, in bytes: it goes into every finding.
pub const DESCRIPTION_LEN_MAX: usize = 1024;
/// The longest name of a rule, in bytes: it is the one word that says why a node is sick.
pub const RULE_NAME_LEN_MAX: usize = 63;
/// The longest that a finding may last by itself. Whoever wants it for longer wants `reboot`.
pub const LASTS_MAX: SignedDuration = SignedDuration::from_hours(90 * 24);

impl PolicySpec {
    /// What is wrong with it as a whole under this name. What is wrong with its rules is said by
    /// whoever compiles them.
    pub fn check(&self, name: &Name) -> Vec<FieldError> {
        let mut errors = Vec::new();
        if DESCRIPTION_LEN_MAX < self.description.len() {
            errors.push(too_long("description", self.description.len(), DESCRIPTION_LEN_MAX));
        }
        let mut complain = |constraint, message: String| {
            errors.push(FieldError::new("pools", constraint, message));
        };
        match (name.as_str() == DEFAULT_POLICY, self.pools.is_empty()) {
            (true, false) => complain(
                Constraint::Max,
                "the policy `default` is for every node whose pool has no policy of its own; \
                 leave pools out, or give the policy another name"
                    .to_owned(),
            ),
            (false, true) => complain(
                Constraint::Required,
                format!(
                    "say which pools the policy `{name}` is for; only the policy `default` is for \
                     all that are left"
                ),
            ),
            (true, true) | (false, false) => {}
        }
        if POOLS_MAX < self.pools.len() {
            let len = self.pools.len();
            complain(Constraint::Max, format!("{len} pools; at most {POOLS_MAX} are allowed"));
            return errors;
        }
        let mut seen = BTreeSet::new();
        for pool in &self.pools {
            if pool.is_empty() || !is_value(pool) {
                let pool = quotable(pool);
                complain(Constraint::Pattern, format!("`{pool}` is not the name of a pool"));
            } else if !seen.insert(pool) {
                complain(Constraint::Unique, format!("the pool `{pool}` is named twice"));
            }
        }
        errors
    }
}

fn too_long(field: &str, len: usize, max: usize) -> FieldError {
    let message = format!("{field} is {len} bytes long; at most {max} are allowed");
    FieldError::new(field, Constraint::MaxLength, message)
}

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
    /// How long a finding lasts without a repeat, as in `30m`; `reboot` means until the node boots again,
    /// `replaced` until another GPU is in its place. Without it: `reboot` for unhealthy, `1h` for degraded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lasts: Option<String>,
}

impl Rule {
    /// How long a finding of it lasts.
    ///
    /// # Errors
    /// A sentence about `lasts`.
    pub fn lasting(&self) -> Result<Lasts, String> {
        match (self.lasts.as_deref(), self.result) {
            (Some("replaced"), _) => Ok(Lasts::UntilReplaced),
            (Some("reboot"), _) | (None, Severity::Unhealthy) => Ok(Lasts::UntilReboot),
            (None, Severity::Degraded) => Ok(Lasts::For(DEGRADED_LASTS)),
            (None, Severity::Healthy) => Ok(Lasts::For(SignedDuration::ZERO)),
            (Some(text), _) => match span::parse(text) {
                Ok(length) if length < SignedDuration::from_secs(1) || LASTS_MAX < length => {
                    let max = span::Written(LASTS_MAX);
                    Err(format!("`{text}` is not between 1s and {max}; `reboot` has no end"))
                }
                Ok(length) => Ok(Lasts::For(length)),
                Err(complaint) => Err(format!("{complaint}; or `reboot`, or `replaced`")),
            },
        }
    }
}

/// How long a warning lasts without a repeat, and how long it is remembered that a rule failed. An hour
/// is long enough to be seen, and too short to be remembered as a property of the node.
pub const DEGRADED_LASTS: SignedDuration = SignedDuration::from_hours(1);

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_zero(number: &i32) -> bool {
    *number == 0
}

/// The name of the policy that is there when nobody wrote one.
pub const DEFAULT_POLICY: &str = "default";

/// The Xid an event is about.
pub fn xid_of(event: &Event) -> Option<u32> {
    (event.event_type == EventType::Xid).then(|| code_of(event)).flatten()
}

/// The SXid an event is about.
pub fn sxid_of(event: &Event) -> Option<u32> {
    (event.event_type == EventType::Sxid).then(|| code_of(event)).flatten()
}

fn code_of(event: &Event) -> Option<u32> {
    u32::try_from(event.code()).ok().filter(|code| *code != 0)
}

#[cfg(test)]
mod tests;
