//! What a search for nodes can ask about: what is stored about them, not what is only in memory, so
//! that a watch of a search tells all there is to tell.

use super::field::{FieldOf, Searchable, named, parse_label, unknown};
use super::value::{Buffer, Found, Type, Words};
use crate::health::{EventType, HealthState};
use crate::node::{Duty, Gpu, Liveness, Node, NodeStatus};
use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;

/// One thing that every node may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Field {
    Id,
    Pool,
    Provider,
    Region,
    Zone,
    InstanceType,
    Status,
    Health,
    HealthReason,
    HealthSince,
    Liveness,
    LivenessSince,
    Duty,
    DutyBy,
    DutyReason,
    /// Whether we took it out of service by ourselves.
    Automatic,
    Hostname,
    InternalIp,
    ExternalIp,
    KernelVersion,
    BootId,
    Agent,
    GpuCount,
    GpuName,
    GpuUuid,
    GpuSerial,
    DriverVersion,
    RegisteredAt,
    JoinedAt,
    /// The keys of what is wrong with it.
    Finding,
    /// The rules and checks that say so.
    Rule,
    /// The driver's error codes that were seen lately, whatever was made of them.
    Xid,
    Flag,
    /// The guard that holds an action that is due.
    HeldBy,
    Label(String),
}

/// Every name that stands for itself. The first name of a field is the one it prints as.
const NAMES: [(&str, Field); 36] = [
    ("id", Field::Id),
    ("node_id", Field::Id),
    ("pool", Field::Pool),
    ("provider", Field::Provider),
    ("region", Field::Region),
    ("zone", Field::Zone),
    ("instance_type", Field::InstanceType),
    ("status", Field::Status),
    ("health", Field::Health),
    ("health_status", Field::Health),
    ("health_reason", Field::HealthReason),
    ("health_since", Field::HealthSince),
    ("liveness", Field::Liveness),
    ("liveness_since", Field::LivenessSince),
    ("duty", Field::Duty),
    ("duty_by", Field::DutyBy),
    ("duty_reason", Field::DutyReason),
    ("automatic", Field::Automatic),
    ("hostname", Field::Hostname),
    ("internal_ip", Field::InternalIp),
    ("external_ip", Field::ExternalIp),
    ("kernel_version", Field::KernelVersion),
    ("boot_id", Field::BootId),
    ("agent", Field::Agent),
    ("gpu_count", Field::GpuCount),
    ("gpu_name", Field::GpuName),
    ("gpu_uuid", Field::GpuUuid),
    ("gpu_serial", Field::GpuSerial),
    ("driver_version", Field::DriverVersion),
    ("registered_at", Field::RegisteredAt),
    ("joined_at", Field::JoinedAt),
    ("finding", Field::Finding),
    ("rule", Field::Rule),
    ("xid", Field::Xid),
    ("flag", Field::Flag),
    ("held_by", Field::HeldBy),
];

const STATUSES: Words = Words {
    noun: "status",
    all: &[
        NodeStatus::Unknown.as_str(),
        NodeStatus::Active.as_str(),
        NodeStatus::Cordoned.as_str(),
        NodeStatus::Draining.as_str(),
        NodeStatus::Unhealthy.as_str(),
        NodeStatus::Terminated.as_str(),
    ],
    old: &[],
    exact: false,
};

const HEALTH: Words = Words {
    noun: "health",
    all: &[
        HealthState::Unknown.as_str(),
        HealthState::Healthy.as_str(),
        HealthState::Degraded.as_str(),
        HealthState::Unhealthy.as_str(),
    ],
    old: &[],
    exact: false,
};

const LIVENESS: Words = Words {
    noun: "liveness",
    all: &[Liveness::Fresh.as_str(), Liveness::Suspect.as_str(), Liveness::Unreachable.as_str()],
    old: &[],
    exact: false,
};

const DUTIES: Words = Words {
    noun: "duty",
    all: &["Active", "Cordoned", "Draining", "Terminated"],
    old: &[],
    exact: false,
};

const fn duty_word(duty: &Duty) -> &'static str {
    match duty {
        Duty::Active => "Active",
        Duty::Cordoned(_) => "Cordoned",
        Duty::Draining { .. } => "Draining",
        Duty::Terminated(_) => "Terminated",
    }
}

impl Searchable for Node {
    type Item<'a> = &'a Node;
    type Field = Field;

    fn usual_order() -> Vec<(Field, bool)> {
        Vec::new()
    }

    fn tie(a: &Node, b: &Node) -> Ordering {
        a.id.cmp(&b.id)
    }
}

impl FieldOf for Field {
    type Noun = Node;

    const SORTABLE: &'static [&'static str] = &[
        "id",
        "pool",
        "provider",
        "region",
        "zone",
        "instance_type",
        "status",
        "health",
        "health_since",
        "liveness",
        "liveness_since",
        "hostname",
        "agent",
        "gpu_count",
        "registered_at",
        "joined_at",
    ];

    fn parse(name: &str) -> Result<Self, String> {
        match (Self::named(name), name.split_once('.')) {
            (Some(field), _) => Ok(field),
            (None, Some(("labels", key))) => parse_label(key).map(Field::Label),
            (None, _) => Err(unknown(name, &NAMES, &["labels"], "and labels.<key>")),
        }
    }

    fn named(name: &str) -> Option<Self> {
        named(name, &NAMES)
    }

    fn of_label(key: &str) -> Self {
        Field::Label(key.to_owned())
    }

    fn label(&self) -> Option<&str> {
        if let Field::Label(key) = self { Some(key) } else { None }
    }

    fn type_of(&self) -> Type {
        match self {
            Field::Id
            | Field::Pool
            | Field::Provider
            | Field::Region
            | Field::Zone
            | Field::InstanceType
            | Field::HealthReason
            | Field::DutyBy
            | Field::DutyReason
            | Field::Automatic
            | Field::Hostname
            | Field::InternalIp
            | Field::ExternalIp
            | Field::KernelVersion
            | Field::BootId
            | Field::Agent
            | Field::GpuName
            | Field::GpuUuid
            | Field::GpuSerial
            | Field::DriverVersion
            | Field::Finding
            | Field::Rule
            | Field::Flag
            | Field::HeldBy
            | Field::Label(_) => Type::Any,
            Field::GpuCount | Field::Xid => Type::Number,
            Field::HealthSince | Field::LivenessSince | Field::RegisteredAt | Field::JoinedAt => {
                Type::Time
            }
            Field::Status => Type::Word(STATUSES),
            Field::Health => Type::Word(HEALTH),
            Field::Liveness => Type::Word(LIVENESS),
            Field::Duty => Type::Word(DUTIES),
        }
    }

    fn find<'i: 'b, 'b>(&self, node: &'i Node, _: &'b mut Buffer) -> Option<Found<'b>> {
        let text = match self {
            Field::Id => node.id.as_str(),
            Field::Pool => node.pool.as_deref()?,
            Field::Provider => &node.place.provider,
            Field::Region => &node.place.region,
            Field::Zone => &node.place.zone,
            Field::InstanceType => &node.place.instance_type,
            Field::Status => node.status().as_str(),
            Field::Health => node.health.state.as_str(),
            Field::HealthReason => &node.health.reason,
            Field::Liveness => node.liveness.as_str(),
            Field::Duty => duty_word(&node.duty),
            Field::DutyBy => &node.duty.hold()?.by,
            Field::DutyReason => &node.duty.hold()?.reason,
            Field::Hostname => &node.machine.hostname,
            Field::InternalIp => &node.machine.internal_ip,
            Field::ExternalIp => &node.machine.external_ip,
            Field::KernelVersion => &node.machine.kernel_version,
            Field::BootId => &node.machine.boot_id,
            Field::Agent => &node.machine.agent,
            Field::HeldBy => &node.held.as_ref()?.guard,
            // The one text that may be empty and is there all the same.
            Field::Label(key) => return Some(Found::Text(Cow::Borrowed(node.labels.get(key)?))),
            Field::Automatic => return Some(Found::Bool(node.duty.hold()?.automatic)),
            Field::GpuCount => return Some(Found::Number(count(node.gpus.len()))),
            Field::HealthSince => return Some(Found::Time(node.health.since)),
            Field::LivenessSince => return Some(Found::Time(node.liveness_since)),
            Field::RegisteredAt => return Some(Found::Time(node.registered_at)),
            Field::JoinedAt => return Some(Found::Time(node.joined_at)),
            Field::GpuName => return of_gpus(node, |gpu| &gpu.name),
            Field::GpuUuid => return of_gpus(node, |gpu| &gpu.uuid),
            Field::GpuSerial => return of_gpus(node, |gpu| &gpu.serial),
            Field::DriverVersion => return of_gpus(node, |gpu| &gpu.driver_version),
            Field::Finding => {
                return Found::several(node.findings.iter().filter_map(|f| Found::text_of(&f.key)));
            }
            Field::Rule => {
                return Found::several(
                    node.findings.iter().filter_map(|f| Found::text_of(&f.rule)),
                );
            }
            Field::Xid => {
                let seen = node.sightings.iter().filter(|seen| seen.event_type == EventType::Xid);
                return Found::several(seen.filter_map(|seen| number(seen.code)));
            }
            Field::Flag => {
                let flags = node.flags.keys().map(|flag| flag.as_str());
                return Found::several(flags.filter_map(Found::text_of));
            }
        };
        Found::text_of(text)
    }
}

/// What the GPUs of a node say, each different word once: most nodes have eight of the same.
fn of_gpus<'a>(node: &'a Node, of: fn(&'a Gpu) -> &'a str) -> Option<Found<'a>> {
    let mut words: Vec<&str> = node.gpus.iter().map(of).collect();
    words.dedup();
    Found::several(words.into_iter().filter_map(Found::text_of))
}

fn count(len: usize) -> f64 {
    u32::try_from(len).map_or(f64::MAX, f64::from)
}

fn number(code: i64) -> Option<Found<'static>> {
    // Codes are small; one that does not fit is none.
    i32::try_from(code).ok().map(|code| Found::Number(f64::from(code)))
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self, NAMES.iter().find(|(_, field)| field == self)) {
            (Field::Label(key), _) => write!(f, "labels.{key}"),
            (_, Some((name, _))) => f.write_str(name),
            (_, None) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
