//! What a provider's listing says about our records, and what it does not: machines nobody knows, machines
//! that are gone, and listings that cannot be true.

mod compare;

pub use compare::{ALARMS_MAX, Comparison, Known, Listing, PoolFacts, compare};

use crate::incarnation::Incarnation;
use crate::instance::ABSENT_FOR;
use crate::machine::{MachineId, Tags, Trouble};
use crate::node::NodeId;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// Which control plane this is. Made once, kept for ever, written on every machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Installation {
    /// Its id.
    pub id: Uuid,
    /// Since when.
    pub since: Timestamp,
    /// Which stretch of its history the store is in.
    #[serde(default, skip_serializing_if = "Incarnation::is_first")]
    pub incarnation: Incarnation,
}

/// A machine that carries our tags and that no record knows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Orphan {
    /// Where it is: the provider, by the name in the configuration.
    pub provider: String,
    /// What the provider calls it.
    pub machine: MachineId,
    /// What it was named.
    pub name: String,
    /// What is written on it.
    pub tags: Tags,
    /// Its region.
    pub region: String,
    /// Its zone.
    pub zone: String,
    /// What it is.
    pub machine_type: String,
    /// In US dollars; `None` if nobody knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price_per_hour: Option<f64>,
    /// When a listing first showed it.
    pub first_seen: Timestamp,
    /// Since when listings do not show it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing_since: Option<Timestamp>,
    /// Who wants it gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reap: Option<Reap>,
}

/// Who wants an orphan gone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reap {
    /// Who.
    pub by: String,
    /// Why.
    pub reason: String,
    /// When.
    pub at: Timestamp,
}

/// A GPU that is known to be bad, wherever it turns up again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Condemned {
    /// Its serial number, or its UUID where it has none.
    pub serial: String,
    /// Why.
    pub because: String,
    /// Where it was.
    pub node: NodeId,
    /// Since when.
    pub at: Timestamp,
}

/// What is remembered of a provider as a whole.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProviderBook {
    /// Its name in the configuration.
    pub name: String,
    /// Why nothing is bought there now; what must go is tried all the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<Paused>,
    /// Why its listings cannot be believed now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frozen: Option<Frozen>,
    /// Its listings are believed whatever they miss, because somebody vouched for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vouched: Option<Vouched>,
}

/// A person's word for a provider's listings. It holds until two whole ones were believed that are far enough apart to
/// prove an absence, however seldom the provider is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Vouched {
    /// When it was given.
    pub at: Timestamp,
    /// When the first listing since began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listed_at: Option<Timestamp>,
}

impl Vouched {
    /// After a whole listing that began then was believed; `None` if it holds no longer.
    pub(crate) fn listed(self, began_at: Timestamp) -> Option<Self> {
        let Some(first) = self.listed_at else {
            // One that was under way shows what was there before.
            let listed_at = (self.at <= began_at).then_some(began_at);
            return Some(Self { listed_at, ..self });
        };
        let proves = first.saturating_add(ABSENT_FOR).is_ok_and(|from| from <= began_at);
        (!proves).then_some(self)
    }
}

impl ProviderBook {
    /// Somebody says that what the provider shows is all there is: `None` if that was not in doubt.
    pub fn thawed(&self, now: Timestamp) -> Option<Self> {
        self.frozen.as_ref()?;
        let vouched = Some(Vouched { at: now, listed_at: None });
        Some(Self { frozen: None, vouched, ..self.clone() })
    }
}

/// Why nothing is bought at a provider now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Paused {
    /// Since when.
    pub since: Timestamp,
    /// What the provider says.
    pub trouble: Trouble,
    /// When it is tried again.
    pub retry_at: Timestamp,
    /// How often it was tried.
    pub failures: u32,
}

/// A listing that cannot be true.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frozen {
    /// Since when.
    pub since: Timestamp,
    /// How many of our machines it should have shown.
    pub expected: u32,
    /// How many it showed.
    pub found: u32,
    /// A sentence with the numbers and the way out.
    pub message: String,
}

#[cfg(test)]
mod tests;
