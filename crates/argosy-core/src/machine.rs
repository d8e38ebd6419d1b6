//! A machine as a provider shows it, what a provider offers, and the ways in which it says no.

use crate::id::ResourceId;
use crate::instance::InstanceId;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use uuid::Uuid;

/// What a provider calls a machine: `i-0abc…`, `projects/p/zones/z/instances/n`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MachineId(Arc<str>);

impl MachineId {
    /// The provider's own text.
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for MachineId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for MachineId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What is written on every machine of ours, so that it can be told from everybody else's and found again
/// by somebody who has lost all records of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tags {
    /// Which control plane bought it. A machine with another one is a stranger's: never touched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub installation: Option<Uuid>,
    /// For which record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<InstanceId>,
    /// For which node pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<ResourceId>,
    /// With which token it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<Uuid>,
}

/// What a provider says a machine is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum MachineState {
    /// It comes up.
    Starting,
    /// It is up.
    Running,
    /// It is about to be stopped or gone.
    Stopping,
    /// It exists and is off; it may cost all the same.
    Stopped,
    /// The provider says in so many words that it is no more. Better than not being listed.
    Gone,
}

/// A machine as a provider shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// What the provider calls it.
    pub id: MachineId,
    /// What it was named when it was made.
    pub name: String,
    /// What it is doing.
    pub state: MachineState,
    /// What we wrote on it, as far as the provider keeps it.
    pub tags: Tags,
    /// Where it is; empty if the provider does not say.
    pub region: String,
    /// Where in the region.
    pub zone: String,
    /// What it is.
    pub machine_type: String,
    /// Whether the provider may take it back at any time.
    pub spot: bool,
    /// When it was made, by the provider's clock: for people only.
    pub created_at: Option<Timestamp>,
    /// Its address inside.
    pub internal_ip: String,
    /// Its address outside.
    pub external_ip: String,
    /// What the provider intends to do with it.
    pub notice: Option<Notice>,
}

/// What a provider intends to do with a machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notice {
    /// What.
    pub kind: NoticeKind,
    /// When, by the provider's clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
    /// A sentence.
    pub message: String,
}

/// The kinds of notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NoticeKind {
    /// It takes back a spot machine.
    Reclaim,
    /// It will stop or move the machine to repair what is below it.
    Maintenance,
    /// It could not be asked: nothing is known, and what was known stays. Never stored.
    Unknown,
}

impl Notice {
    /// It could not be asked.
    pub fn unknown() -> Self {
        Self { kind: NoticeKind::Unknown, at: None, message: String::new() }
    }
}

/// What a provider can do. What it cannot is made up for elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Abilities {
    /// A create that is repeated with its token makes nothing new.
    pub tokens: bool,
    /// It keeps our tags. If not, the name has to do.
    pub tags: bool,
    /// It can reboot a machine.
    pub reboot: bool,
    /// It has the console log of a machine.
    pub console: bool,
    /// It has spot machines.
    pub spot: bool,
    /// For how long a listing may miss a machine that exists.
    pub list_lag: SignedDuration,
}

/// A machine type that can be bought.
#[derive(Clone, Debug, PartialEq)]
pub struct Offer {
    /// What the provider calls it.
    pub machine_type: String,
    /// Where: region, or region and zone.
    pub region: String,
    /// The zones of the region that have it; empty if the provider does not say.
    pub zones: Vec<String>,
    /// Virtual CPUs.
    pub cpus: u32,
    /// GPUs.
    pub gpus: u32,
    /// In US dollars; `None` if nobody knows.
    pub price_per_hour: Option<f64>,
    /// The same, for spot.
    pub spot_price_per_hour: Option<f64>,
    /// Whether there are any to be had now, as far as the provider says.
    pub available: bool,
}

/// What exactly is bought.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Order {
    /// The provider, by the name in the configuration.
    pub provider: String,
    /// The region.
    pub region: String,
    /// The zone; empty: any.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub zone: String,
    /// The machine type.
    pub machine_type: String,
    /// Whether the provider may take it back at any time.
    #[serde(default)]
    pub spot: bool,
    /// The image; empty: the provider's default.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub image: String,
    /// What it cost when it was ordered, in US dollars; `None` if nobody knew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price_per_hour: Option<f64>,
}

/// Everything a provider needs to make one machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Purchase {
    /// The record it is for; also its name, and the id under which its agent registers.
    pub instance: InstanceId,
    /// Makes a repeated call harmless where the provider can.
    pub token: Uuid,
    /// What is to be written on it.
    pub tags: Tags,
    /// What.
    pub order: Order,
    /// Which of the pool's nodes it is, from 1.
    pub number: u32,
    /// The node pool, by the name that nodes carry.
    pub pool: String,
    /// The tenant whose it is.
    pub tenant: String,
    /// Labels of its node.
    pub labels: BTreeMap<String, String>,
}

/// Why a provider did not do what it was asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, thiserror::Error)]
pub enum Trouble {
    /// Nobody knows whether it was done (a timeout, a 500, a connection that broke): look before trying
    /// again.
    #[error("{0}")]
    Unsure(String),
    /// It was not done: too many calls. Wait.
    #[error("{message}")]
    Throttled {
        /// How long the provider wants us to wait, in seconds.
        retry_after_s: Option<u32>,
        /// What it says.
        message: String,
    },
    /// It was not done: an allowance is used up. A person can have it raised.
    #[error("{message}")]
    Quota {
        /// What the allowance is of: `CPUs`, `GPUs`, `instances`.
        resource: String,
        /// How much one machine needs; 0 if the provider does not say.
        each: u64,
        /// How much is left.
        available: u64,
        /// What it says.
        message: String,
    },
    /// It was not done: there are none left here. Elsewhere there may be.
    #[error("{message}")]
    Capacity {
        /// The provider's code: `ZONE_RESOURCE_POOL_EXHAUSTED`.
        code: String,
        /// What it says.
        message: String,
    },
    /// It was not done: our credentials are missing, wrong or revoked. Nothing at this provider will work.
    #[error("{0}")]
    Credentials(String),
    /// It was not done: our credentials do not go so far.
    #[error("{message}")]
    Denied {
        /// What is missing.
        permission: String,
        /// What it says.
        message: String,
    },
    /// It was not done, and never will be as it was asked: an unknown type, zone or image.
    #[error("{message}")]
    Invalid {
        /// Which member of the pool's spec: `machineType`, `zones`, `image`.
        field: String,
        /// What is wrong, with the nearest names.
        message: String,
    },
    /// There is no such machine.
    #[error("{0}")]
    NotFound(String),
    /// It was not done: the provider could not be reached.
    #[error("{0}")]
    Unreachable(String),
    /// This provider cannot do that at all.
    #[error("{0}")]
    Unable(String),
}

impl Trouble {
    /// One word, for conditions and failures.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::Unsure(_) => "ProvisioningUnconfirmed",
            Self::Throttled { .. } => "Throttled",
            Self::Quota { .. } => "QuotaExceeded",
            Self::Capacity { .. } => "InsufficientCapacity",
            Self::Credentials(_) => "CredentialsInvalid",
            Self::Denied { .. } => "PermissionDenied",
            Self::Invalid { .. } => "InvalidSpec",
            Self::NotFound(_) => "ProvisioningFailed",
            Self::Unreachable(_) => "ProviderUnreachable",
            Self::Unable(_) => "NotSupported",
        }
    }

    /// What a person can do about it, as a sentence.
    pub fn guidance(&self) -> String {
        match self {
            Self::Unsure(_) => {
                "Nothing has to be done: the machine is looked for until it is found \
                                or proven not to exist."
                    .to_owned()
            }
            Self::Throttled { .. } => {
                "Nothing has to be done: it is tried again when the provider allows it.".to_owned()
            }
            Self::Quota { resource, .. } if resource.is_empty() => {
                "Have the quota raised at the provider, or ask for fewer nodes.".to_owned()
            }
            Self::Quota { resource, each, available, .. } => {
                let numbers = match each {
                    0 => String::new(),
                    each => format!(" (a node needs {each}, {available} are left)"),
                };
                format!(
                    "Have the quota of {resource} raised at the provider{numbers}, or ask for fewer \
                     nodes or another machine type."
                )
            }
            Self::Capacity { .. } => {
                "Give the pool more zones or machine types to choose from, or \
                                      wait: it is tried again."
                    .to_owned()
            }
            Self::Credentials(_) => "Give the provider valid credentials in the configuration; \
                                     nothing is bought there until they work."
                .to_owned(),
            Self::Denied { permission, .. } if permission.is_empty() => {
                "Give the provider's credentials the missing permission.".to_owned()
            }
            Self::Denied { permission, .. } => {
                format!("Give the provider's credentials the permission {permission}.")
            }
            Self::Invalid { field, .. } if field.is_empty() => {
                "Correct the pool's spec.".to_owned()
            }
            Self::Invalid { field, .. } => format!("Correct `{field}` in the pool's spec."),
            Self::NotFound(_) => {
                "Check that what the pool and the provider's configuration name still exists there."
                    .to_owned()
            }
            Self::Unreachable(_) => "Check that the provider's address can be reached from the \
                                     control plane; it is tried again."
                .to_owned(),
            Self::Unable(_) => {
                "Ask for something that this provider can do, or use another provider.".to_owned()
            }
        }
    }
}

/// What machines cost together, as far as their prices are known.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct HourlyCost {
    /// The sum of the known prices, in US dollars an hour.
    pub known: f64,
    /// How many have no known price: the sum is a lower bound then, and unknown if it is 0.
    pub unpriced: u32,
}

impl HourlyCost {
    /// Counts one more machine.
    pub fn add(&mut self, price_per_hour: Option<f64>) {
        match price_per_hour.filter(|price| price.is_finite() && 0.0 <= *price) {
            Some(price) => self.known += price,
            None => self.unpriced = self.unpriced.saturating_add(1),
        }
    }
}

impl FromIterator<Option<f64>> for HourlyCost {
    fn from_iter<T: IntoIterator<Item = Option<f64>>>(prices: T) -> Self {
        let mut cost = Self::default();
        prices.into_iter().for_each(|price| cost.add(price));
        cost
    }
}

#[cfg(test)]
mod tests;
