//! What is written down about a mutation. The hash chain is the store's.

use crate::access::Caller;
use crate::id::ResourceId;
use crate::resource::{Kind, Resource};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fmt::Write;

/// One mutation: who, what, to which, before and after.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditRecord {
    /// When, by our clock.
    pub at: Timestamp,
    /// Who.
    pub actor: String,
    /// How we know: `none`, `token`, `jwt`, `system`.
    pub via: String,
    /// Whose resource it is.
    pub tenant: String,
    /// `create`, `patch`, `delete`, `report`, `force-delete`, `finalize`, `stall`, …
    pub action: String,
    /// What kind of thing.
    pub kind: Kind,
    /// Which.
    pub id: ResourceId,
    /// What it is called.
    pub name: String,
    /// SHA-256 of the stored document before, in hex; absent at creation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// SHA-256 of the stored document after, in hex; absent when the record was removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// Why, where somebody said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The request it came with.
    pub request_id: String,
}

impl AuditRecord {
    /// Describes one mutation of one resource; at least one of `before` and `after` is there.
    pub fn new(
        caller: &Caller,
        action: &str,
        before: Option<&Resource>,
        after: Option<&Resource>,
        reason: Option<String>,
        at: Timestamp,
    ) -> Self {
        let resource = after.or(before).expect("a mutation has a resource before or after it");
        Self {
            at,
            actor: caller.subject.clone(),
            via: caller.via.to_owned(),
            tenant: resource.tenant.clone(),
            action: action.to_owned(),
            kind: resource.kind,
            id: resource.id,
            name: resource.name.to_string(),
            before: before.map(digest),
            after: after.map(digest),
            reason,
            request_id: caller.request_id.clone(),
        }
    }
}

/// SHA-256 in hex over the JSON text of the document, as the store writes it.
fn digest(document: &Resource) -> String {
    let text = serde_json::to_vec(document).expect("a resource has only text for map keys");
    Sha256::digest(&text).iter().fold(String::new(), |mut hex, byte| {
        write!(hex, "{byte:02x}").expect("writing to a string cannot fail");
        hex
    })
}

#[cfg(test)]
mod tests;
