//! `fields`: only the members somebody asked for.

use argosy_api::resource::Resource;
use argosy_core::field::{Constraint, FieldError};
use argosy_core::nearest::nearest;
use serde::Serialize;
use serde_json::{Map, Value};

/// The members of a resource one can ask for. Below `spec` and `labels` any path is allowed; an
/// empty list means that there is nothing below.
const MEMBERS: &[(&str, &[&str])] = &[
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

/// A resource as somebody asked to see it.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum Shown {
    /// All of it, which needs no tree of values before it becomes text.
    Whole(Box<Resource>),
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
    pub(super) fn parse<'a>(texts: impl Iterator<Item = &'a str>) -> Result<Self, Vec<FieldError>> {
        let (mut paths, mut errors) = (Vec::new(), Vec::new());
        for text in texts.flat_map(|text| text.split(',')).map(str::trim) {
            let path = text.strip_suffix(".*").unwrap_or(text);
            if known(path) {
                paths.push(path.split('.').map(str::to_owned).collect());
            } else {
                errors.push(unknown(text));
            }
        }
        if !paths.is_empty() {
            paths.push(vec!["id".to_owned()]);
        }
        if errors.is_empty() { Ok(Self(paths)) } else { Err(errors) }
    }

    /// Leaves only what was asked for.
    pub(super) fn show(&self, resource: Resource) -> Shown {
        if self.0.is_empty() {
            return Shown::Whole(Box::new(resource));
        }
        Shown::Part(self.project(&serde_json::to_value(resource).unwrap_or_default()))
    }

    fn project(&self, value: &Value) -> Value {
        let mut left = Value::Object(Map::new());
        for path in &self.0 {
            copy(value, &mut left, path);
        }
        left
    }
}

fn known(path: &str) -> bool {
    let (member, rest) = path.split_once('.').map_or((path, None), |(m, rest)| (m, Some(rest)));
    let below = MEMBERS.iter().find(|(name, _)| *name == member).map(|(_, below)| *below);
    match (below, rest) {
        (None, _) => false,
        (Some(_), None) => true,
        (Some(below), Some(rest)) => {
            below.contains(&rest)
                || (below == ["*"] && rest.split('.').all(|part| !part.is_empty()))
        }
    }
}

fn unknown(text: &str) -> FieldError {
    let member = text.split('.').next().unwrap_or_default();
    let what_next = match nearest(member, MEMBERS.iter().map(|(name, _)| *name)) {
        Some(near) if near != member => format!("Did you mean '{near}'?"),
        _ => {
            let names: Vec<&str> = MEMBERS.iter().map(|(name, _)| *name).collect();
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
