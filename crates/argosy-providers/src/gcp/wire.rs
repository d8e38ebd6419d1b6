//! What Compute Engine and Cloud DNS say, as far as we read it.

use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Operation {
    pub(super) name: String,
    pub(super) status: String,
    /// URLs; neither is there for a global one.
    pub(super) zone: Option<String>,
    pub(super) region: Option<String>,
    pub(super) operation_type: String,
    pub(super) error: Option<OperationErrors>,
    pub(super) http_error_status_code: Option<u16>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct OperationErrors {
    pub(super) errors: Vec<OperationError>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct OperationError {
    pub(super) code: String,
    pub(super) message: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Operations {
    pub(super) items: Vec<Operation>,
}

/// `name` and `zone` must be there: without them a machine cannot be told from others.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Instance {
    pub(super) name: String,
    pub(super) zone: String,
    #[serde(default)]
    pub(super) status: String,
    #[serde(default)]
    pub(super) machine_type: String,
    #[serde(default)]
    pub(super) labels: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) creation_timestamp: String,
    #[serde(default)]
    pub(super) scheduling: Scheduling,
    #[serde(default)]
    pub(super) network_interfaces: Vec<NetworkInterface>,
    #[serde(default)]
    pub(super) resource_status: ResourceStatus,
}

/// What is asked of an instance, in a list: its metadata may hold a token, and is long.
pub(super) const INSTANCE_FIELDS: &str = "name,zone,status,machineType,labels,creationTimestamp,\
     scheduling(provisioningModel,preemptible),\
     networkInterfaces(networkIP,accessConfigs(natIP)),resourceStatus(upcomingMaintenance)";

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Scheduling {
    pub(super) provisioning_model: String,
    pub(super) preemptible: bool,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct NetworkInterface {
    #[serde(rename = "networkIP")]
    pub(super) network_ip: String,
    pub(super) access_configs: Vec<AccessConfig>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct AccessConfig {
    #[serde(rename = "natIP")]
    pub(super) nat_ip: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ResourceStatus {
    pub(super) upcoming_maintenance: Option<Maintenance>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Maintenance {
    pub(super) window_start_time: String,
    #[serde(rename = "type")]
    pub(super) kind: String,
}

/// A list over all zones: what is in each, and whether it could be asked.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, bound = "T: Deserialize<'de>")]
pub(super) struct Aggregated<T> {
    pub(super) items: BTreeMap<String, T>,
    pub(super) unreachables: Vec<String>,
    pub(super) warning: Option<Warning>,
}

impl<T> Default for Aggregated<T> {
    fn default() -> Self {
        Self { items: BTreeMap::new(), unreachables: Vec::new(), warning: None }
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ZoneInstances {
    pub(super) instances: Vec<Instance>,
    pub(super) warning: Option<Warning>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ZoneTypes {
    pub(super) machine_types: Vec<MachineType>,
    pub(super) warning: Option<Warning>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Warning {
    pub(super) code: String,
    pub(super) message: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct MachineType {
    pub(super) name: String,
    pub(super) guest_cpus: u32,
    pub(super) accelerators: Vec<Accelerator>,
    pub(super) deprecated: Option<Deprecated>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Accelerator {
    pub(super) guest_accelerator_count: u32,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Deprecated {
    pub(super) state: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Region {
    pub(super) name: String,
    pub(super) zones: Vec<String>,
    pub(super) quotas: Vec<Quota>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Regions {
    pub(super) items: Vec<Region>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Quota {
    pub(super) metric: String,
    pub(super) limit: f64,
    pub(super) usage: f64,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Serial {
    pub(super) contents: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ManagedZones {
    pub(super) managed_zones: Vec<ManagedZone>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ManagedZone {
    pub(super) name: String,
    pub(super) dns_name: String,
    pub(super) visibility: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct RecordSets {
    pub(super) rrsets: Vec<RecordSet>,
}

#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(default)]
pub(super) struct RecordSet {
    pub(super) name: String,
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) ttl: u32,
    pub(super) rrdatas: Vec<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Network {
    /// URLs.
    pub(super) subnetworks: Vec<String>,
}

impl Network {
    /// Its subnetworks: the region and the name of each.
    pub(super) fn places(&self) -> impl Iterator<Item = (&str, &str)> {
        self.subnetworks.iter().filter_map(|url| {
            let (_, place) = url.rsplit_once("regions/")?;
            place.split_once("/subnetworks/")
        })
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Subnetwork {
    pub(super) ip_cidr_range: String,
}

/// The last part of a URL: what a thing is called there.
pub(super) fn last(url: &str) -> &str {
    url.rsplit('/').next().unwrap_or_default()
}
