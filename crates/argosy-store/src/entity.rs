//! The kinds of document we keep, and how each becomes text and back.

use crate::engine::{Error, Key};
use argosy_core::breaker::{Breaker, Pause};
use argosy_core::command::Command;
use argosy_core::id::{CommandId, ResourceId};
use argosy_core::incarnation::Recovery;
use argosy_core::instance::Instance;
use argosy_core::inventory::{Condemned, Installation, Orphan, ProviderBook};
use argosy_core::liveness::{Attendance, Heard, Outlook};
use argosy_core::name::Name;
use argosy_core::node::Node;
use argosy_core::policy::Policy;
use argosy_core::pool::PoolBook;
use argosy_core::remedy::LastDisruption;
use argosy_core::resource::{Kind, Resource, Tombstone};
use argosy_core::upgrade::{VERSION, upgrade};
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

/// A kind of document.
pub trait Entity: Serialize + DeserializeOwned {
    /// The kind in its key. Never change it: it is on people's disks.
    const KIND: &'static str;

    /// The id in its key.
    fn key_id(&self) -> String;
}

/// A name that is taken, and by whom. It is a document of its own so that two creates at the same
/// moment conflict in the store, not in a check before it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct NameClaim {
    /// Whose.
    pub tenant: String,
    /// What.
    pub kind: Kind,
    /// The cluster, for a node pool.
    pub owner: Option<ResourceId>,
    /// The name.
    pub name: Name,
    /// Who has it.
    pub holder: ResourceId,
}

/// A request that was carried out, remembered under the key its client chose.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdempotencyKey {
    /// The caller's tenant and subject, and the key.
    pub id: String,
    /// Digest of the request.
    pub digest: String,
    /// What it created.
    #[serde(flatten)]
    pub made: Made,
    /// When it may be forgotten.
    pub expires: Timestamp,
}

/// What a request created: `{"resource": "…"}` or `{"command": "…"}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Made {
    /// A cluster or a node pool.
    Resource(ResourceId),
    /// A command to a node.
    Command(CommandId),
}

impl Entity for Resource {
    const KIND: &'static str = "resource";

    fn key_id(&self) -> String {
        self.id.to_string()
    }
}

impl Entity for Tombstone {
    const KIND: &'static str = "tombstone";

    fn key_id(&self) -> String {
        self.id.to_string()
    }
}

impl Entity for NameClaim {
    const KIND: &'static str = "name";

    fn key_id(&self) -> String {
        // None of the parts can hold a slash: tenants, kinds, ids and names are all parsed.
        let owner = self.owner.map(|id| id.to_string()).unwrap_or_default();
        format!("{}/{}/{owner}/{}", self.tenant, self.kind, self.name)
    }
}

impl Entity for IdempotencyKey {
    const KIND: &'static str = "idempotency";

    fn key_id(&self) -> String {
        self.id.clone()
    }
}

impl Entity for Node {
    const KIND: &'static str = "node";

    fn key_id(&self) -> String {
        self.id.to_string()
    }
}

impl Entity for Command {
    const KIND: &'static str = "command";

    fn key_id(&self) -> String {
        self.id.to_string()
    }
}

impl Entity for Policy {
    const KIND: &'static str = "policy";

    fn key_id(&self) -> String {
        format!("{}/{}", self.tenant, self.name)
    }
}

impl Entity for Breaker {
    const KIND: &'static str = "breaker";

    fn key_id(&self) -> String {
        self.scope.to_string()
    }
}

impl Entity for Pause {
    const KIND: &'static str = "pause";

    fn key_id(&self) -> String {
        // A declared pool is meant by its id, which no name can look like: its name may be given again.
        match self.pool_id {
            Some(id) => format!("{}/#{id}", self.tenant),
            None => format!("{}/{}", self.tenant, self.pool.as_deref().unwrap_or_default()),
        }
    }
}

impl Entity for Outlook {
    const KIND: &'static str = "outlook";

    fn key_id(&self) -> String {
        // There is one fleet, so there is one.
        "fleet".to_owned()
    }
}

impl Entity for Attendance {
    const KIND: &'static str = "attendance";

    fn key_id(&self) -> String {
        "fleet".to_owned()
    }
}

impl Entity for Heard {
    const KIND: &'static str = "heard";

    fn key_id(&self) -> String {
        self.process.clone()
    }
}

impl Entity for Instance {
    const KIND: &'static str = "instance";

    fn key_id(&self) -> String {
        self.id.to_string()
    }
}

impl Entity for PoolBook {
    const KIND: &'static str = "pool-book";

    fn key_id(&self) -> String {
        self.pool.to_string()
    }
}

impl Entity for ProviderBook {
    const KIND: &'static str = "provider-book";

    fn key_id(&self) -> String {
        self.name.clone()
    }
}

impl Entity for Condemned {
    const KIND: &'static str = "condemned";

    fn key_id(&self) -> String {
        self.serial.clone()
    }
}

impl Entity for Orphan {
    const KIND: &'static str = "orphan";

    fn key_id(&self) -> String {
        orphan_key(&self.provider, self.machine.as_str())
    }
}

/// The id of an orphan. The name of a provider has no slash; what it calls a machine may.
pub fn orphan_key(provider: &str, machine: &str) -> String {
    format!("{provider}/{machine}")
}

impl Entity for Installation {
    const KIND: &'static str = "installation";

    fn key_id(&self) -> String {
        // A store belongs to one control plane, so there is one.
        "self".to_owned()
    }
}

impl Entity for LastDisruption {
    const KIND: &'static str = "disruption";

    fn key_id(&self) -> String {
        // The budgets of the fleet span all of it, so there is one.
        "fleet".to_owned()
    }
}

impl Entity for Recovery {
    const KIND: &'static str = "recovery";

    fn key_id(&self) -> String {
        self.pool.to_string()
    }
}

/// A document of any kind, decoded.
#[derive(Clone, Debug)]
pub(crate) enum Decoded {
    Resource(Arc<Resource>),
    Tombstone(Arc<Tombstone>),
    NameClaim(Arc<NameClaim>),
    IdempotencyKey(Arc<IdempotencyKey>),
    Node(Arc<Node>),
    Command(Arc<Command>),
    Policy(Arc<Policy>),
    Breaker(Arc<Breaker>),
    Pause(Arc<Pause>),
    Outlook(Arc<Outlook>),
    Attendance(Arc<Attendance>),
    Heard(Arc<Heard>),
    Instance(Arc<Instance>),
    PoolBook(Arc<PoolBook>),
    ProviderBook(Arc<ProviderBook>),
    Orphan(Arc<Orphan>),
    Condemned(Arc<Condemned>),
    Installation(Arc<Installation>),
    LastDisruption(Arc<LastDisruption>),
    Recovery(Arc<Recovery>),
    /// Removed.
    Gone,
}

/// Entities that the view keeps.
pub(crate) trait Keep: Entity + Clone {
    fn decoded(self: Arc<Self>) -> Decoded;
}

macro_rules! keep {
    ($($entity:ident),+) => {
        $(impl Keep for $entity {
            fn decoded(self: Arc<Self>) -> Decoded {
                Decoded::$entity(self)
            }
        })+

        /// Reads a document of whatever kind its key says.
        pub(crate) fn decode(key: &Key, body: &str) -> Result<Decoded, Error> {
            match key.kind.as_str() {
                $($entity::KIND => Ok(Decoded::$entity(Arc::new(read(key, body)?))),)+
                other => Err(Error::Refused(format!(
                    "the store holds a document of the kind `{other}`, which this build does not \
                     know; start a newer argosy"
                ))),
            }
        }
    };
}

keep!(
    Resource,
    Tombstone,
    NameClaim,
    IdempotencyKey,
    Node,
    Command,
    Policy,
    Breaker,
    Pause,
    Outlook,
    Attendance,
    Heard,
    Instance,
    PoolBook,
    ProviderBook,
    Orphan,
    Condemned,
    Installation,
    LastDisruption,
    Recovery
);

#[derive(Serialize)]
struct Written<'a, T> {
    version: u32,
    value: &'a T,
}

#[derive(Deserialize)]
struct Found<T> {
    version: u32,
    value: T,
}

/// The text of a document, with the version it was written in.
pub(crate) fn write<T: Entity>(value: &T) -> Arc<str> {
    serde_json::to_string(&Written { version: VERSION, value })
        .expect("our documents have string keys and finite numbers")
        .into()
}

fn read<T: Entity>(key: &Key, body: &str) -> Result<T, Error> {
    let damaged = |error: serde_json::Error| {
        Error::Refused(format!("the document {key} cannot be read: {error}; restore a backup"))
    };
    match serde_json::from_str::<Found<T>>(body) {
        Ok(Found { version: VERSION, value }) => Ok(value),
        // Another version, or a shape only its own version can explain: take the slow way.
        Ok(_) | Err(_) => {
            let Found { version, value } =
                serde_json::from_str::<Found<Value>>(body).map_err(damaged)?;
            let value = upgrade(&key.kind, version, value).map_err(Error::Refused)?;
            serde_json::from_value(value).map_err(damaged)
        }
    }
}

#[cfg(test)]
mod tests;
