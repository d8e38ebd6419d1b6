//! `fields`: only the members somebody asked for.

use argosy_core::field::{Constraint, FieldError};
use argosy_core::nearest::nearest;
use serde::Serialize;
use serde_json::{Map, Value};

/// The members one can ask for, each with what is below it: `*` allows any path, and an empty list
/// means that there is nothing.
pub(super) type Members = &'static [(&'static str, &'static [&'static str])];

/// The members of a resource.
pub(super) const OF_RESOURCE: Members = &[
    ("id", &[]),
    ("uid", &[]),
    ("kind", &[]),
    ("name", &[]),
    ("href", &[]),
    ("spec", &["*"]),
    ("labels", &["*"]),
    ("tenancy", &["*"]),
    ("generation", &[]),
    ("revision", &[]),
    (
        "status",
        &[
            "phase",
            "lastTransitionTime",
            "conditions",
            "conditions.type",
            "conditions.status",
            "conditions.reason",
            "conditions.message",
            "conditions.observed_generation",
            "conditions.created_time",
            "conditions.last_updated_time",
            "conditions.last_transition_time",
        ],
    ),
    ("cluster_id", &[]),
    ("owner_references", &["id", "kind", "href"]),
    ("created_at", &[]),
    ("updated_at", &[]),
    ("created_time", &[]),
    ("updated_time", &[]),
    ("created_by", &[]),
    ("updated_by", &[]),
    ("deleted_time", &[]),
    ("deleted_by", &[]),
];

/// The members of a node.
pub(super) const OF_NODE: Members = &[
    ("id", &[]),
    ("kind", &[]),
    ("href", &[]),
    ("tenant", &[]),
    ("pool", &[]),
    ("provider", &[]),
    ("region", &[]),
    ("zone", &[]),
    ("instance_type", &[]),
    ("status", &[]),
    ("health_status", &[]),
    ("health", &["status", "since", "reason", "message"]),
    ("liveness", &[]),
    ("liveness_since", &[]),
    ("duty", &["state", "by", "automatic", "reason", "since", "deadline", "command_id", "drained"]),
    ("flags", &["type", "since", "message"]),
    ("hostname", &[]),
    ("internal_ip", &[]),
    ("external_ip", &[]),
    ("kernel_version", &[]),
    ("boot_id", &[]),
    ("machine_id", &[]),
    ("agent", &[]),
    (
        "gpus",
        &[
            "index",
            "uuid",
            "name",
            "pci_bus_id",
            "memory_total",
            "driver_version",
            "cuda_version",
            "serial",
            "temperature",
            "power",
            "utilization",
            "memory_used",
            "ecc_corrected",
            "ecc_uncorrected",
        ],
    ),
    ("metrics", &["cpu_percent", "memory_percent", "pending_jobs", "queue_depth"]),
    ("labels", &["*"]),
    ("registered_at", &[]),
    ("joined_at", &[]),
    ("last_heartbeat", &[]),
    ("last_report", &[]),
    ("last_poll", &[]),
    ("attached", &[]),
    ("checks", &["name", "status", "message", "since", "details"]),
    (
        "findings",
        &[
            "node_id",
            "pool",
            "key",
            "severity",
            "rule",
            "policy",
            "policy_version",
            "message",
            "evidence",
            "gpu",
            "first_seen",
            "last_seen",
            "count",
            "ends",
            "ends_at",
        ],
    ),
    ("flaps", &["count", "recovered_at", "hold_until"]),
    ("held", &["action", "guard", "reason", "since"]),
    ("external", &["told", "failures", "retry_at"]),
    ("revision", &[]),
];

/// The members of an instance.
pub(super) const OF_INSTANCE: Members = &[
    ("id", &[]),
    ("kind", &[]),
    ("href", &[]),
    ("tenant", &[]),
    ("state", &[]),
    ("since", &[]),
    ("reason", &[]),
    ("status_message", &[]),
    ("pool", &[]),
    ("pool_id", &[]),
    ("number", &[]),
    ("node_id", &[]),
    ("provider", &[]),
    ("region", &[]),
    ("zone", &[]),
    ("machine_type", &[]),
    ("spot", &[]),
    ("image", &[]),
    ("machine_id", &[]),
    ("cost_per_hour", &[]),
    ("ordered_at", &[]),
    ("why", &[]),
    ("replaces", &[]),
    ("replaced_by", &[]),
    ("departure", &["reason", "message", "since", "deadline"]),
    ("blocked", &["guard", "message", "since"]),
    ("calls", &[]),
    ("retry_at", &[]),
    ("overdue", &[]),
    ("tried", &["cure", "at", "because", "outcome"]),
    ("console", &[]),
    ("revision", &[]),
];

/// Something as somebody asked to see it.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum Shown<T> {
    /// All of it, which needs no tree of values before it becomes text.
    Whole(Box<T>),
    /// What is left of it.
    Part(Value),
}

/// The paths somebody asked for; none means everything.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Fields(Vec<Vec<String>>);

impl Fields {
    /// Reads `name,status.phase`, given any number of times.
    ///
    /// # Errors
    /// Names each field nobody knows.
    pub(super) fn parse<'a>(
        texts: impl Iterator<Item = &'a str>,
        members: Members,
    ) -> Result<Self, Vec<FieldError>> {
        let (mut paths, mut errors) = (Vec::new(), Vec::new());
        for text in texts.flat_map(|text| text.split(',')).map(str::trim) {
            let path = text.strip_suffix(".*").unwrap_or(text);
            if known(path, members) {
                paths.push(path.split('.').map(str::to_owned).collect());
            } else {
                errors.push(unknown(text, members));
            }
        }
        if !paths.is_empty() {
            paths.push(vec!["id".to_owned()]);
        }
        if errors.is_empty() { Ok(Self(paths)) } else { Err(errors) }
    }

    /// Leaves only what was asked for.
    pub(super) fn show<T: Serialize>(&self, whole: T) -> Shown<T> {
        if self.0.is_empty() {
            return Shown::Whole(Box::new(whole));
        }
        Shown::Part(self.project(&serde_json::to_value(whole).unwrap_or_default()))
    }

    fn project(&self, value: &Value) -> Value {
        let mut left = Value::Object(Map::new());
        for path in &self.0 {
            copy(value, &mut left, path);
        }
        left
    }
}

fn known(path: &str, members: Members) -> bool {
    let (member, rest) = path.split_once('.').map_or((path, None), |(m, rest)| (m, Some(rest)));
    let below = members.iter().find(|(name, _)| *name == member).map(|(_, below)| *below);
    match (below, rest) {
        (None, _) => false,
        (Some(_), None) => true,
        (Some(below), Some(rest)) => {
            below.contains(&rest)
                || (below == ["*"] && rest.split('.').all(|part| !part.is_empty()))
        }
    }
}

fn unknown(text: &str, members: Members) -> FieldError {
    let member = text.split('.').next().unwrap_or_default();
    let what_next = match nearest(member, members.iter().map(|(name, _)| *name)) {
        Some(near) if near != member => format!("Did you mean '{near}'?"),
        _ => {
            let names: Vec<&str> = members.iter().map(|(name, _)| *name).collect();
            format!("Supported fields: {}", names.join(", "))
        }
    };
    let short: String = text.chars().take(100).collect();
    FieldError::new("fields", Constraint::Enum, format!("Unknown field '{short}'. {what_next}"))
}

/// Copies what is at `path`, through arrays, without disturbing what is there already.
fn copy(from: &Value, to: &mut Value, path: &[String]) {
    let Some((member, rest)) = path.split_first() else { return };
    match from {
        Value::Object(object) => {
            // A label key may hold dots itself: try the rest of the path as one key.
            let whole = path.join(".");
            let (key, rest) =
                if object.contains_key(member) { (member, rest) } else { (&whole, &[][..]) };
            let (Some(value), Value::Object(to)) = (object.get(key), to) else { return };
            if rest.is_empty() {
                to.insert(key.clone(), value.clone());
                return;
            }
            let blank = match value {
                Value::Array(items) => Value::Array(vec![Value::Object(Map::new()); items.len()]),
                Value::Object(_) => Value::Object(Map::new()),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return,
            };
            copy(value, to.entry(key.clone()).or_insert(blank), rest);
        }
        Value::Array(items) => {
            if let Value::Array(to) = to {
                items.iter().zip(to).for_each(|(item, to)| copy(item, to, path));
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests;
