//! What a search can ask about: fields, what is found in them, and what that is compared with.

use crate::adapter::Tri;
use crate::catalog::Catalog;
use crate::field::quotable;
use crate::id::ResourceId;
use crate::label::is_key;
use crate::nearest::nearest;
use crate::resource::{Kind, Resource};
use crate::status::{self, Condition};
use jiff::Timestamp;
use serde_json::Value;
use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt::{self, Write};
use uuid::fmt::Hyphenated;

/// One thing that every resource may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Field {
    Id,
    Kind,
    Name,
    Href,
    OwnerId,
    OwnerKind,
    CreatedBy,
    UpdatedBy,
    DeletedBy,
    Provider,
    Region,
    Phase,
    Generation,
    CreatedTime,
    UpdatedTime,
    /// The later of the last change of the wish and the last change of the status.
    UpdatedAt,
    DeletedTime,
    Spec(Vec<String>),
    Label(String),
    Condition(String, Part),
}

/// One part of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Status,
    Reason,
    ObservedGeneration,
    LastUpdatedTime,
    LastTransitionTime,
}

/// What a field may be compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    /// Anything: the stored value has its own type.
    Any,
    Number,
    Time,
    /// One of the phases.
    Phase,
    /// True, False or Unknown.
    Tri,
}

/// Every name that stands for itself. The first name of a field is the one it prints as.
const NAMES: [(&str, Field); 19] = [
    ("id", Field::Id),
    ("kind", Field::Kind),
    ("name", Field::Name),
    ("href", Field::Href),
    ("owner_id", Field::OwnerId),
    ("owner_kind", Field::OwnerKind),
    ("generation", Field::Generation),
    ("created_time", Field::CreatedTime),
    ("created_at", Field::CreatedTime),
    ("created_by", Field::CreatedBy),
    ("updated_time", Field::UpdatedTime),
    ("updated_at", Field::UpdatedAt),
    ("updated_by", Field::UpdatedBy),
    ("deleted_time", Field::DeletedTime),
    ("deleted_by", Field::DeletedBy),
    ("phase", Field::Phase),
    ("status.phase", Field::Phase),
    ("provider", Field::Provider),
    ("region", Field::Region),
];

/// The parts of a condition by name; the status alone has none.
const PARTS: [(&str, Part); 4] = [
    ("reason", Part::Reason),
    ("observed_generation", Part::ObservedGeneration),
    ("last_updated_time", Part::LastUpdatedTime),
    ("last_transition_time", Part::LastTransitionTime),
];

impl Field {
    /// Reads a field's name.
    ///
    /// # Errors
    /// A sentence: which part is not known, and what is.
    pub(super) fn parse(name: &str) -> Result<Self, String> {
        if let Some(field) = Self::named(name) {
            return Ok(field);
        }
        match name.split_once('.') {
            Some(("spec", path)) => {
                let path: Vec<String> = path.split('.').map(str::to_owned).collect();
                if path.iter().any(String::is_empty) {
                    return Err(format!("`{}` has an empty part between dots", quotable(name)));
                }
                Ok(Field::Spec(path))
            }
            Some(("labels", key)) if is_key(key) => Ok(Field::Label(key.to_owned())),
            Some(("labels", key)) => Err(format!("`{}` cannot be a label's key", quotable(key))),
            Some(("status", rest)) if let Some(condition) = rest.strip_prefix("conditions.") => {
                parse_condition(condition)
            }
            Some(_) | None => Err(unknown(name)),
        }
    }

    /// The field with exactly this name.
    pub(super) fn named(name: &str) -> Option<Self> {
        NAMES.iter().find(|(known, _)| *known == name).map(|(_, field)| field.clone())
    }

    pub(super) fn type_of(&self) -> Type {
        match self {
            Field::Id
            | Field::Kind
            | Field::Name
            | Field::Href
            | Field::OwnerId
            | Field::OwnerKind
            | Field::CreatedBy
            | Field::UpdatedBy
            | Field::DeletedBy
            | Field::Provider
            | Field::Region
            | Field::Spec(_)
            | Field::Label(_)
            | Field::Condition(_, Part::Reason) => Type::Any,
            Field::Generation | Field::Condition(_, Part::ObservedGeneration) => Type::Number,
            Field::CreatedTime
            | Field::UpdatedTime
            | Field::UpdatedAt
            | Field::DeletedTime
            | Field::Condition(_, Part::LastUpdatedTime | Part::LastTransitionTime) => Type::Time,
            Field::Phase => Type::Phase,
            Field::Condition(_, Part::Status) => Type::Tri,
        }
    }

    /// What a resource has in this field; `None` if it has nothing.
    pub(super) fn find<'a>(
        &self,
        resource: &'a Resource,
        buffer: &'a mut Buffer,
    ) -> Option<Found<'a>> {
        let text = match self {
            Field::Id => buffer.id(resource.id),
            Field::Kind => resource.kind.as_str(),
            Field::Name => resource.name.as_str(),
            Field::Href => return Some(Found::Text(Cow::Owned(href(resource)))),
            Field::OwnerId => buffer.id(resource.owner?),
            Field::OwnerKind => resource.owner.map(|_| Kind::Cluster.as_str())?,
            Field::CreatedBy => &resource.created.by,
            Field::UpdatedBy => &resource.updated.by,
            Field::DeletedBy => &resource.deletion.as_ref()?.by,
            Field::Provider => Catalog::provider_of(&resource.spec)?,
            Field::Region => Catalog::region_of(&resource.spec)?,
            Field::Phase => status::phase(resource).as_str(),
            Field::Label(key) => resource.labels.get(key)?,
            Field::Generation => return Some(Found::Number(f64::from(resource.generation))),
            Field::CreatedTime => return Some(Found::Time(resource.created.at)),
            Field::UpdatedTime => return Some(Found::Time(resource.updated.at)),
            Field::UpdatedAt => {
                let latest = resource.updated.at.max(status::last_transition(resource));
                return Some(Found::Time(latest));
            }
            Field::DeletedTime => return Some(Found::Time(resource.deletion.as_ref()?.at)),
            Field::Spec(path) => return find_in_spec(resource, path),
            Field::Condition(kind, part) => {
                let condition = resource.conditions.iter().find(|c| c.kind == *kind)?;
                return Some(part.find(condition));
            }
        };
        Some(Found::Text(Cow::Borrowed(text)))
    }
}

fn parse_condition(text: &str) -> Result<Field, String> {
    let (kind, part) = match text.split_once('.') {
        None => (text, Part::Status),
        Some((kind, name)) => {
            let part = PARTS.iter().find(|(known, _)| *known == name).map(|(_, part)| *part);
            let names: Vec<&str> = PARTS.iter().map(|(known, _)| *known).collect();
            let unknown = || {
                format!(
                    "a condition has no `{}`; it has {}, and alone it stands for its status",
                    quotable(name),
                    names.join(", ")
                )
            };
            (kind, part.ok_or_else(unknown)?)
        }
    };
    let well_formed = kind.starts_with(|c: char| c.is_ascii_uppercase())
        && kind.bytes().all(|b| b.is_ascii_alphanumeric());
    if !well_formed {
        return Err(format!(
            "`{}` cannot be a condition's type; one reads like `Reconciled`",
            quotable(kind)
        ));
    }
    Ok(Field::Condition(kind.to_owned(), part))
}

fn unknown(name: &str) -> String {
    let shown = quotable(name);
    let known = NAMES.iter().map(|(known, _)| *known);
    if let Some(meant) = nearest(name, known.clone()) {
        return format!("unknown field `{shown}`; did you mean `{meant}`?");
    }
    if let Some((head, rest)) = name.split_once('.')
        && let Some(meant) = nearest(head, ["labels", "spec", "status"])
        && meant != head
    {
        return format!("unknown field `{shown}`; did you mean `{meant}.{}`?", quotable(rest));
    }
    let known: Vec<&str> = known.collect();
    format!(
        "unknown field `{shown}`; known are {}, labels.<key>, spec.<path> and \
         status.conditions.<Type>",
        known.join(", ")
    )
}

fn find_in_spec<'a>(resource: &'a Resource, path: &[String]) -> Option<Found<'a>> {
    let (first, rest) = path.split_first()?;
    let mut value = resource.spec.get(first)?;
    for part in rest {
        value = match value {
            Value::Object(members) => members.get(part)?,
            Value::Array(items) => items.get(part.parse::<usize>().ok()?)?,
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => return None,
        };
    }
    match value {
        Value::Null => None,
        Value::Bool(value) => Some(Found::Bool(*value)),
        Value::Number(value) => value.as_f64().map(Found::Number),
        Value::String(value) => Some(Found::Text(Cow::Borrowed(value))),
        Value::Array(_) | Value::Object(_) => Some(Found::Other),
    }
}

/// The path of a resource, as it stands in bodies.
fn href(resource: &Resource) -> String {
    const BASE: &str = "/api/hyperfleet/v1/clusters";
    match resource.owner {
        None => format!("{BASE}/{}", resource.id),
        Some(owner) => format!("{BASE}/{owner}/{}/{}", resource.kind.plural(), resource.id),
    }
}

impl Part {
    fn find(self, condition: &Condition) -> Found<'_> {
        match self {
            Part::Status => Found::Text(Cow::Borrowed(tri_word(condition.status))),
            Part::Reason => Found::Text(Cow::Borrowed(&condition.reason)),
            Part::ObservedGeneration => Found::Number(f64::from(condition.observed_generation)),
            Part::LastUpdatedTime => Found::Time(condition.last_updated_time),
            Part::LastTransitionTime => Found::Time(condition.last_transition_time),
        }
    }
}

pub(super) const fn tri_word(tri: Tri) -> &'static str {
    match tri {
        Tri::True => "True",
        Tri::False => "False",
        Tri::Unknown => "Unknown",
    }
}

/// Room to write an id without asking for memory.
pub(super) struct Buffer([u8; Hyphenated::LENGTH]);

impl Buffer {
    pub(super) const fn new() -> Self {
        Self([0; Hyphenated::LENGTH])
    }

    fn id(&mut self, id: ResourceId) -> &str {
        id.uuid().as_hyphenated().encode_lower(&mut self.0)
    }
}

/// What a resource has in a field.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Found<'a> {
    Text(Cow<'a, str>),
    Number(f64),
    Bool(bool),
    Time(Timestamp),
    /// A list or an object: there, but not comparable with anything.
    Other,
}

/// What a field is compared with.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Scalar {
    Text(String),
    Number(f64),
    Bool(bool),
    Time(Timestamp),
}

impl Found<'_> {
    /// How this stands to a value; `None` if the two cannot be compared.
    pub(super) fn compare(&self, value: &Scalar) -> Option<Ordering> {
        match (self, value) {
            (Found::Text(found), Scalar::Text(value)) => Some(found.as_ref().cmp(value)),
            (Found::Text(found), Scalar::Number(value)) => {
                let found: f64 = found.parse().ok()?;
                // "inf" and "nan" are words, not amounts.
                if found.is_finite() { found.partial_cmp(value) } else { None }
            }
            (Found::Text(found), Scalar::Bool(value)) => {
                found.parse().ok().map(|found: bool| found.cmp(value))
            }
            (Found::Number(found), Scalar::Number(value)) => found.partial_cmp(value),
            (Found::Bool(found), Scalar::Bool(value)) => Some(found.cmp(value)),
            (Found::Time(found), Scalar::Time(value)) => Some(found.cmp(value)),
            (Found::Number(_) | Found::Bool(_), Scalar::Text(value)) => {
                self.text().map(|found| found.as_ref().cmp(value))
            }
            (
                Found::Number(_) | Found::Bool(_) | Found::Time(_) | Found::Other,
                Scalar::Text(_) | Scalar::Number(_) | Scalar::Bool(_) | Scalar::Time(_),
            )
            | (Found::Text(_), Scalar::Time(_)) => None,
        }
    }

    /// The order of two finds in the same field; unlike types stay as they are.
    pub(super) fn order(&self, other: &Found<'_>) -> Ordering {
        match (self, other) {
            (Found::Text(a), Found::Text(b)) => a.cmp(b),
            (Found::Number(a), Found::Number(b)) => a.total_cmp(b),
            (Found::Bool(a), Found::Bool(b)) => a.cmp(b),
            (Found::Time(a), Found::Time(b)) => a.cmp(b),
            _ => Ordering::Equal,
        }
    }

    /// As text, for what can be read as one.
    pub(super) fn text(&self) -> Option<Cow<'_, str>> {
        match self {
            Found::Text(text) => Some(Cow::Borrowed(text)),
            Found::Number(value) => Some(Cow::Owned(value.to_string())),
            Found::Bool(value) => Some(Cow::Borrowed(if *value { "true" } else { "false" })),
            Found::Time(_) | Found::Other => None,
        }
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((name, _)) = NAMES.iter().find(|(_, field)| field == self) {
            f.write_str(name)?;
        }
        if let Field::Spec(path) = self {
            write!(f, "spec.{}", path.join("."))?;
        }
        if let Field::Label(key) = self {
            write!(f, "labels.{key}")?;
        }
        if let Field::Condition(kind, part) = self {
            write!(f, "status.conditions.{kind}")?;
            if let Some((name, _)) = PARTS.iter().find(|(_, known)| known == part) {
                write!(f, ".{name}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scalar::Text(text) => write_quoted(f, text),
            Scalar::Number(value) if *value == 0.0 => f.write_str("0"),
            // Outside this range, plain digits would fill the line.
            Scalar::Number(value) if (1e-6..1e15).contains(&value.abs()) => write!(f, "{value}"),
            Scalar::Number(value) => write!(f, "{value:e}"),
            Scalar::Bool(value) => write!(f, "{value}"),
            Scalar::Time(time) => write!(f, "'{time}'"),
        }
    }
}

pub(super) fn write_quoted(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    f.write_char('\'')?;
    for c in text.chars() {
        if matches!(c, '\'' | '\\') {
            f.write_char('\\')?;
        }
        f.write_char(c)?;
    }
    f.write_char('\'')
}
