//! What a search for clusters and node pools can ask about.

use super::field::{FieldOf, Searchable, named, parse_label, unknown};
use super::value::{Buffer, Found, Type, Words};
use crate::adapter::Tri;
use crate::catalog::Catalog;
use crate::field::quotable;
use crate::resource::{Kind, Resource};
use crate::status::{self, Condition, Phase};
use serde_json::Value;
use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;

/// One thing that every resource may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Field {
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
pub enum Part {
    Status,
    Reason,
    ObservedGeneration,
    LastUpdatedTime,
    LastTransitionTime,
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

/// The phases; `NotReady` is an old spelling.
const PHASES: Words = Words {
    noun: "phase",
    all: &[
        Phase::NotReady.as_str(),
        Phase::Ready.as_str(),
        Phase::Pending.as_str(),
        Phase::Terminating.as_str(),
    ],
    old: &[("NotReady", Phase::NotReady.as_str())],
    exact: true,
};

/// The parts of a condition by name; the status alone has none.
const PARTS: [(&str, Part); 4] = [
    ("reason", Part::Reason),
    ("observed_generation", Part::ObservedGeneration),
    ("last_updated_time", Part::LastUpdatedTime),
    ("last_transition_time", Part::LastTransitionTime),
];

impl Searchable for Resource {
    type Item<'a> = &'a Resource;
    type Field = Field;

    fn usual_order() -> Vec<(Field, bool)> {
        vec![(Field::CreatedTime, true)]
    }

    fn tie(a: &Resource, b: &Resource) -> Ordering {
        a.id.cmp(&b.id)
    }
}

impl FieldOf for Field {
    type Noun = Resource;

    const SORTABLE: &'static [&'static str] = &[
        "id",
        "kind",
        "name",
        "generation",
        "created_time",
        "created_at",
        "updated_time",
        "updated_at",
        "deleted_time",
        "created_by",
        "updated_by",
        "phase",
        "provider",
        "region",
    ];

    fn parse(name: &str) -> Result<Self, String> {
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
            Some(("labels", key)) => parse_label(key).map(Field::Label),
            Some(("status", rest)) if let Some(condition) = rest.strip_prefix("conditions.") => {
                parse_condition(condition)
            }
            Some(_) | None => {
                let more = "labels.<key>, spec.<path> and status.conditions.<Type>";
                Err(unknown(name, &NAMES, &["labels", "spec", "status"], more))
            }
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
            Field::Phase => Type::Word(PHASES),
            Field::Condition(_, Part::Status) => Type::Tri,
        }
    }

    fn find<'i: 'b, 'b>(
        &self,
        resource: &'i Resource,
        buffer: &'b mut Buffer,
    ) -> Option<Found<'b>> {
        let text = match self {
            Field::Id => buffer.id(resource.id.uuid()),
            Field::Kind => resource.kind.as_str(),
            Field::Name => resource.name.as_str(),
            Field::Href => return Some(Found::Text(Cow::Owned(href(resource)))),
            Field::OwnerId => buffer.id(resource.owner?.uuid()),
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
