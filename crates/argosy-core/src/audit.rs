//! What is written down about a mutation. The hash chain is the store's.

use crate::access::Caller;
use crate::breaker::{Breaker, Pause};
use crate::command::Command;
use crate::incarnation::Recovery;
use crate::instance::Instance;
use crate::inventory::{Condemned, Installation, Orphan, ProviderBook};
use crate::node::Node;
use crate::policy::Policy;
use crate::pool::PoolBook;
use crate::remedy::LastDisruption;
use crate::resource::Resource;
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
    pub kind: String,
    /// Which.
    pub id: String,
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

/// What an audit record says of which document it is about.
pub struct Identity<'a> {
    /// Whose; empty for what belongs to nobody in particular.
    pub tenant: &'a str,
    /// What kind of thing.
    pub kind: &'static str,
    /// Which.
    pub id: String,
    /// What it is called.
    pub name: String,
}

/// A document whose mutations are written down.
pub trait Audited: Serialize {
    /// Which document it is.
    fn identity(&self) -> Identity<'_>;
}

impl Audited for Resource {
    fn identity(&self) -> Identity<'_> {
        let (id, name) = (self.id.to_string(), self.name.to_string());
        Identity { tenant: &self.tenant, kind: self.kind.as_str(), id, name }
    }
}

impl Audited for Node {
    fn identity(&self) -> Identity<'_> {
        let id = self.id.to_string();
        Identity { tenant: &self.tenant, kind: "Node", name: id.clone(), id }
    }
}

impl Audited for Command {
    fn identity(&self) -> Identity<'_> {
        let (id, name) = (self.id.to_string(), self.node.to_string());
        Identity { tenant: &self.tenant, kind: "Command", id, name }
    }
}

impl Audited for Policy {
    fn identity(&self) -> Identity<'_> {
        let name = self.name.to_string();
        Identity { tenant: &self.tenant, kind: "Policy", id: name.clone(), name }
    }
}

impl Audited for Pause {
    fn identity(&self) -> Identity<'_> {
        let name = self.pool.clone().unwrap_or_else(|| "fleet".to_owned());
        Identity { tenant: &self.tenant, kind: "Pause", id: name.clone(), name }
    }
}

impl Audited for Breaker {
    fn identity(&self) -> Identity<'_> {
        let name = self.scope.to_string();
        Identity { tenant: "", kind: "Breaker", id: name.clone(), name }
    }
}

impl Audited for Instance {
    fn identity(&self) -> Identity<'_> {
        let (id, name) = (self.id.to_string(), self.id.to_string());
        Identity { tenant: &self.tenant, kind: "Instance", id, name }
    }
}

/// What is remembered of a pool, with whose it is: the book itself does not say.
#[derive(Serialize)]
pub struct OwnedBook<'a> {
    /// Whose.
    #[serde(skip)]
    pub tenant: &'a str,
    /// What.
    #[serde(flatten)]
    pub book: &'a PoolBook,
}

impl Audited for OwnedBook<'_> {
    fn identity(&self) -> Identity<'_> {
        let id = self.book.pool.to_string();
        Identity { tenant: self.tenant, kind: "PoolBook", name: id.clone(), id }
    }
}

impl Audited for ProviderBook {
    fn identity(&self) -> Identity<'_> {
        let (id, name) = (self.name.clone(), self.name.clone());
        Identity { tenant: "", kind: "Provider", id, name }
    }
}

impl Audited for Orphan {
    fn identity(&self) -> Identity<'_> {
        let (id, name) = (format!("{}/{}", self.provider, self.machine), self.name.clone());
        Identity { tenant: "", kind: "Orphan", id, name }
    }
}

impl Audited for PoolBook {
    fn identity(&self) -> Identity<'_> {
        let id = self.pool.to_string();
        Identity { tenant: "", kind: "PoolBook", name: id.clone(), id }
    }
}

impl Audited for Condemned {
    fn identity(&self) -> Identity<'_> {
        let serial = self.serial.clone();
        Identity { tenant: "", kind: "Condemned", name: serial.clone(), id: serial }
    }
}

impl Audited for Installation {
    fn identity(&self) -> Identity<'_> {
        let id = self.id.to_string();
        Identity { tenant: "", kind: "Installation", name: id.clone(), id }
    }
}

impl Audited for LastDisruption {
    fn identity(&self) -> Identity<'_> {
        let id = "fleet".to_owned();
        Identity { tenant: &self.tenant, kind: "Disruption", name: id.clone(), id }
    }
}

impl Audited for Recovery {
    fn identity(&self) -> Identity<'_> {
        let (id, name) = (self.pool.to_string(), self.pool_name.clone());
        Identity { tenant: &self.tenant, kind: "Recovery", id, name }
    }
}

impl AuditRecord {
    /// Describes one mutation of one document; at least one of `before` and `after` is there.
    pub fn new<T: Audited>(
        caller: &Caller,
        action: &str,
        before: Option<&T>,
        after: Option<&T>,
        reason: Option<String>,
        at: Timestamp,
    ) -> Self {
        let document = after.or(before).expect("a mutation has a document before or after it");
        let Identity { tenant, kind, id, name } = document.identity();
        Self {
            at,
            actor: caller.subject.clone(),
            via: caller.via.to_owned(),
            tenant: tenant.to_owned(),
            action: action.to_owned(),
            kind: kind.to_owned(),
            id,
            name,
            before: before.map(digest),
            after: after.map(digest),
            reason,
            request_id: caller.request_id.clone(),
        }
    }
}

/// SHA-256 in hex over the JSON text of the document, as the store writes it.
fn digest(document: &impl Serialize) -> String {
    let text = serde_json::to_vec(document).expect("a document has only text for map keys");
    Sha256::digest(&text).iter().fold(String::new(), |mut hex, byte| {
        write!(hex, "{byte:02x}").expect("writing to a string cannot fail");
        hex
    })
}

#[cfg(test)]
mod tests;
