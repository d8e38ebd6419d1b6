//! What Lambda says, as far as we read it.

use argosy_core::machine::Offer;
use serde::Deserialize;
use serde_json::Value;

/// Every answer is wrapped so.
#[derive(Debug, Deserialize)]
pub(super) struct Data {
    pub(super) data: Value,
}

/// The token of its notebook is not read: what we do not know we cannot tell.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Instance {
    pub(super) id: String,
    pub(super) status: String,
    #[serde(default)]
    pub(super) name: Option<String>,
    #[serde(default)]
    pub(super) ip: Option<String>,
    #[serde(default)]
    pub(super) private_ip: Option<String>,
    #[serde(default)]
    pub(super) region: Option<Named>,
    #[serde(default)]
    pub(super) instance_type: Option<Named>,
    #[serde(default)]
    pub(super) tags: Option<Vec<Tag>>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Named {
    pub(super) name: String,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct Tag {
    pub(super) key: String,
    #[serde(default)]
    pub(super) value: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct Launched {
    pub(super) instance_ids: Vec<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Terminated {
    pub(super) terminated_instances: Vec<Identified>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Restarted {
    pub(super) restarted_instances: Vec<Identified>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Identified {
    pub(super) id: String,
}

/// An instance type, and where there are any now.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Offered {
    pub(super) instance_type: InstanceType,
    #[serde(default)]
    pub(super) regions_with_capacity_available: Vec<Named>,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct InstanceType {
    pub(super) name: String,
    #[serde(default)]
    pub(super) price_cents_per_hour: Option<u32>,
    #[serde(default)]
    pub(super) specs: Specs,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Specs {
    pub(super) vcpus: u32,
    pub(super) gpus: u32,
}

impl Offered {
    /// What it is in one region. Lambda says where there are any now, not where there could be.
    pub(super) fn offer(self, region: &str) -> Offer {
        let Self { instance_type, regions_with_capacity_available: regions } = self;
        let InstanceType { name, price_cents_per_hour, specs } = instance_type;
        Offer {
            machine_type: name,
            region: region.to_owned(),
            zones: Vec::new(),
            cpus: specs.vcpus,
            gpus: specs.gpus,
            price_per_hour: price_cents_per_hour.map(|cents| f64::from(cents) / 100.0),
            spot_price_per_hour: None,
            available: regions.iter().any(|it| it.name == region),
        }
    }
}
