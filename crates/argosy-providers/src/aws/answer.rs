//! EC2's answers, as far as we read them, and the machine in them.

use argosy_core::id::ResourceId;
use argosy_core::instance::InstanceId;
use argosy_core::machine::{Machine, MachineId, MachineState, Notice, NoticeKind, Tags};
use jiff::Timestamp;
use serde::{Deserialize, Deserializer};

/// What is written on machines, under which key.
pub(super) const INSTALLATION: &str = "argosy-installation";
pub(super) const INSTANCE: &str = "argosy-instance";
pub(super) const POOL: &str = "argosy-pool";
pub(super) const TOKEN: &str = "argosy-token";
/// The cluster a network was made for.
pub(super) const CLUSTER: &str = "argosy-cluster";

/// EC2's lists: `<xSet><item>…</item></xSet>`.
#[derive(Clone, Debug, Deserialize)]
#[serde(bound(deserialize = "T: Deserialize<'de>"))]
pub(super) struct Set<T> {
    #[serde(default = "Vec::new")]
    pub(super) item: Vec<T>,
}

impl<T> Default for Set<T> {
    fn default() -> Self {
        Self { item: Vec::new() }
    }
}

/// An answer in pages.
pub(super) trait Page {
    type Item;

    /// What is on this page, and how to ask for the next.
    fn split(self) -> (Vec<Self::Item>, Option<String>);
}

macro_rules! page {
    ($page:ident, $set:ident: $item:ty, $name:literal) => {
        #[derive(Debug, Default, Deserialize)]
        #[serde(default)]
        pub(super) struct $page {
            #[serde(rename = $name)]
            $set: Set<$item>,
            #[serde(rename = "nextToken")]
            next_token: String,
        }

        impl Page for $page {
            type Item = $item;

            fn split(self) -> (Vec<$item>, Option<String>) {
                let next = Some(self.next_token).filter(|token| !token.is_empty());
                (self.$set.item, next)
            }
        }
    };
}

page!(Instances, reservations: Reservation, "reservationSet");
page!(Statuses, statuses: Status, "instanceStatusSet");
page!(SpotRequests, requests: SpotRequest, "spotInstanceRequestSet");
page!(Types, types: Type, "instanceTypeSet");
page!(Offerings, offerings: Offering, "instanceTypeOfferingSet");
page!(SpotPrices, prices: SpotPrice, "spotPriceHistorySet");
page!(Subnets, subnets: Subnet, "subnetSet");
page!(Vpcs, vpcs: Vpc, "vpcSet");
page!(Groups, groups: Group, "securityGroupInfo");
page!(Zones, zones: Zone, "availabilityZoneInfo");
page!(Regions, regions: Region, "regionInfo");

/// Also the answer of RunInstances.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Reservation {
    #[serde(rename = "instancesSet")]
    pub(super) instances: Set<Instance>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Instance {
    pub(super) instance_id: String,
    instance_state: Named,
    instance_type: String,
    instance_lifecycle: String,
    launch_time: String,
    placement: Placement,
    private_ip_address: String,
    ip_address: String,
    tag_set: Set<Tag>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Named {
    name: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Placement {
    availability_zone: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Tag {
    pub(super) key: String,
    pub(super) value: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Status {
    pub(super) instance_id: String,
    events_set: Set<Event>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Event {
    code: String,
    description: String,
    not_before: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct SpotRequest {
    pub(super) instance_id: String,
    status: SpotStatus,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct SpotStatus {
    code: String,
    message: String,
    update_time: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Type {
    pub(super) instance_type: String,
    v_cpu_info: VCpus,
    gpu_info: Gpus,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct VCpus {
    #[serde(rename = "defaultVCpus")]
    default: u32,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Gpus {
    gpus: Set<Gpu>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Gpu {
    count: u32,
}

impl Type {
    pub(super) fn cpus(&self) -> u32 {
        self.v_cpu_info.default
    }

    pub(super) fn gpus(&self) -> u32 {
        self.gpu_info.gpus.item.iter().fold(0, |sum, gpu| sum.saturating_add(gpu.count))
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Offering {
    pub(super) instance_type: String,
    pub(super) location: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct SpotPrice {
    pub(super) instance_type: String,
    #[serde(deserialize_with = "dollars")]
    pub(super) spot_price: Option<f64>,
}

/// A price that can be one; anything else is as if it were not told.
fn dollars<'de, D: Deserializer<'de>>(from: D) -> Result<Option<f64>, D::Error> {
    let text = String::deserialize(from)?;
    Ok(text.trim().parse().ok().filter(|price: &f64| price.is_finite() && 0.0 <= *price))
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Subnet {
    pub(super) subnet_id: String,
    pub(super) availability_zone: String,
    pub(super) vpc_id: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Vpc {
    pub(super) vpc_id: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Group {
    pub(super) group_id: String,
    pub(super) vpc_id: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Zone {
    pub(super) zone_name: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Region {
    pub(super) region_name: String,
}

/// The answer of CreateVpc, CreateSubnet and CreateSecurityGroup.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Created {
    vpc: Vpc,
    subnet: Subnet,
    #[serde(rename = "groupId")]
    group_id: String,
}

impl Created {
    /// The id of what was made.
    pub(super) fn id(self) -> Option<String> {
        [self.vpc.vpc_id, self.subnet.subnet_id, self.group_id]
            .into_iter()
            .find(|id| !id.is_empty())
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Console {
    /// In base 64.
    pub(super) output: String,
}

/// An answer of which nothing is read.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Nothing {}

impl Instance {
    /// The machine; `None` if the answer has no id for it.
    pub(super) fn machine(self, region: &str) -> Option<Machine> {
        if self.instance_id.is_empty() {
            return None;
        }
        let tag = |key: &str| {
            let found = self.tag_set.item.iter().find(|tag| tag.key == key);
            found.map(|tag| tag.value.as_str()).unwrap_or_default()
        };
        Some(Machine {
            id: MachineId::new(self.instance_id.as_str()),
            name: tag("Name").to_owned(),
            state: state(&self.instance_state.name),
            tags: Tags {
                installation: tag(INSTALLATION).parse().ok(),
                instance: InstanceId::parse(tag(INSTANCE)).ok(),
                pool: tag(POOL).parse().ok().map(ResourceId::new),
                token: tag(TOKEN).parse().ok(),
            },
            region: region.to_owned(),
            zone: self.placement.availability_zone,
            machine_type: self.instance_type,
            spot: self.instance_lifecycle == "spot",
            created_at: self.launch_time.parse().ok(),
            internal_ip: self.private_ip_address,
            external_ip: self.ip_address,
            notice: None,
        })
    }
}

/// A word that we do not know is that of a machine that exists: taking it for gone would lose it.
fn state(name: &str) -> MachineState {
    match name {
        "pending" => MachineState::Starting,
        "stopping" | "shutting-down" => MachineState::Stopping,
        "stopped" => MachineState::Stopped,
        "terminated" => MachineState::Gone,
        _ => MachineState::Running,
    }
}

impl Status {
    /// The first event that is still to come.
    pub(super) fn notice(&self) -> Option<Notice> {
        let over = |event: &&Event| {
            ["[Completed]", "[Canceled]"].iter().any(|mark| event.description.starts_with(mark))
        };
        let events = self.events_set.item.iter().filter(|event| !over(event));
        let first = events.min_by_key(|event| event.not_before.parse::<Timestamp>().ok())?;
        Some(Notice {
            kind: NoticeKind::Maintenance,
            at: first.not_before.parse().ok(),
            message: format!("AWS has scheduled {}: {}", first.code, first.description),
        })
    }
}

impl SpotRequest {
    pub(super) fn notice(&self) -> Option<Notice> {
        let SpotStatus { code, message, update_time } = &self.status;
        // AWS takes it two minutes after it said so.
        let grace = jiff::SignedDuration::from_mins(2);
        let said: Option<Timestamp> = update_time.parse().ok();
        code.starts_with("marked-for-").then(|| Notice {
            kind: NoticeKind::Reclaim,
            at: said.and_then(|said| said.checked_add(grace).ok()),
            message: format!("AWS takes it back: {message}"),
        })
    }
}

#[cfg(test)]
mod tests;
