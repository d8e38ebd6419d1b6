//! Who may do what to which resource.

use crate::resource::Resource;
use serde::{Deserialize, Serialize};

/// What a caller may do in general; from `Viewer` on, each role includes the ones before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Speaks for a node: registers, reports, fetches its commands. It reads nothing else.
    Node,
    /// Reads resources and reports statuses under its own name, nothing else.
    Adapter,
    /// Reads.
    Viewer,
    /// Reads, creates, changes and deletes.
    Operator,
    /// Everything, for every team of the tenant.
    Admin,
}

/// Who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The name written down in stamps and audit records.
    pub subject: String,
    /// How we know: `none`, `token`, `jwt`, `system`.
    pub via: &'static str,
    /// Whose resources exist for this caller.
    pub tenant: String,
    /// The teams it belongs to.
    pub teams: Vec<String>,
    /// What it may do.
    pub role: Role,
    /// The adapter it is, if it may report for one only.
    pub adapter: Option<String>,
    /// The node it is, if it may speak for one only.
    pub node: Option<String>,
    /// The id of the request, for the audit record.
    pub request_id: String,
}

/// What a caller wants to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    /// Look.
    Read,
    /// Create, change, delete.
    Write,
    /// Report a status.
    Report,
    /// Speak for a node.
    Attend,
    /// Remove a record although its cleanup is not confirmed.
    Force,
    /// Read the audit log, manage the simulated cloud.
    Administer,
}

/// Whether teams matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Authorization {
    /// Everybody of a tenant sees everything of it.
    None,
    /// A resource with a `team` label is for that team and for admins.
    Team,
}

/// The answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Go on.
    Allow,
    /// Say that it is not allowed: 403.
    Forbid,
    /// Say that it does not exist: 404. For what belongs to another tenant.
    Hide,
}

/// May the caller do this at all, whatever it is done to?
pub fn may(caller: &Caller, verb: Verb) -> Decision {
    let allowed = match verb {
        Verb::Read => caller.role != Role::Node,
        Verb::Attend => matches!(caller.role, Role::Node | Role::Admin),
        Verb::Write => matches!(caller.role, Role::Operator | Role::Admin),
        Verb::Report => matches!(caller.role, Role::Adapter | Role::Admin),
        Verb::Force | Verb::Administer => caller.role == Role::Admin,
    };
    if allowed { Decision::Allow } else { Decision::Forbid }
}

/// May the caller do this to a resource? `cluster` is a node pool's owner: what a team may not do to
/// the cluster it may not do to its pools.
pub fn may_touch(
    caller: &Caller,
    verb: Verb,
    resource: &Resource,
    cluster: Option<&Resource>,
    authorization: Authorization,
) -> Decision {
    let touched = [Some(resource), cluster].into_iter().flatten();
    let teams = touched.filter_map(|touched| touched.labels.get("team"));
    match may_see(caller, &resource.tenant, teams, authorization) {
        Decision::Allow => may(caller, verb),
        refusal @ (Decision::Forbid | Decision::Hide) => refusal,
    }
}

/// May the caller know about something of this tenant and these teams?
pub fn may_see<'a>(
    caller: &Caller,
    tenant: &str,
    mut teams: impl Iterator<Item = &'a str>,
    authorization: Authorization,
) -> Decision {
    // First, so that not even a refusal tells a stranger that the resource exists.
    if caller.tenant != tenant {
        return Decision::Hide;
    }
    let theirs = |team: &str| !caller.teams.iter().any(|mine| mine == team);
    if teams_matter(caller, authorization) && teams.any(theirs) {
        Decision::Forbid
    } else {
        Decision::Allow
    }
}

/// Whether there is anything in the tenant that the caller may not see.
pub fn teams_matter(caller: &Caller, authorization: Authorization) -> bool {
    match authorization {
        Authorization::None => false,
        // Adapters serve every team of the tenant; nodes carry their teams' work.
        Authorization::Team => !matches!(caller.role, Role::Node | Role::Adapter | Role::Admin),
    }
}

#[cfg(test)]
mod tests;
