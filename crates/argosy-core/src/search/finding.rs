//! What a search for findings can ask about: the finding, and the node it is about.

use super::field::{FieldOf, Searchable, named, parse_label, unknown};
use super::value::{Buffer, Found, Type, Words};
use crate::health::{Finding, Severity};
use crate::node::Node;
use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;

/// One thing that every finding may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Field {
    Node,
    Pool,
    Provider,
    Region,
    Zone,
    Key,
    Severity,
    /// How bad, as a number: for the usual order.
    Badness,
    Rule,
    Policy,
    PolicyVersion,
    Message,
    Evidence,
    Gpu,
    Count,
    FirstSeen,
    LastSeen,
    Label(String),
}

/// Every name that stands for itself. The first name of a field is the one it prints as.
const NAMES: [(&str, Field); 17] = [
    ("node", Field::Node),
    ("node_id", Field::Node),
    ("pool", Field::Pool),
    ("provider", Field::Provider),
    ("region", Field::Region),
    ("zone", Field::Zone),
    ("key", Field::Key),
    ("severity", Field::Severity),
    ("rule", Field::Rule),
    ("policy", Field::Policy),
    ("policy_version", Field::PolicyVersion),
    ("message", Field::Message),
    ("evidence", Field::Evidence),
    ("gpu", Field::Gpu),
    ("count", Field::Count),
    ("first_seen", Field::FirstSeen),
    ("last_seen", Field::LastSeen),
];

const SEVERITIES: Words = Words {
    noun: "severity",
    all: &[word(Severity::Healthy), word(Severity::Degraded), word(Severity::Unhealthy)],
    old: &[],
    exact: false,
};

const fn word(severity: Severity) -> &'static str {
    match severity {
        Severity::Healthy => "healthy",
        Severity::Degraded => "degraded",
        Severity::Unhealthy => "unhealthy",
    }
}

impl Searchable for Finding {
    type Item<'a> = (&'a Node, &'a Finding);
    type Field = Field;

    fn usual_order() -> Vec<(Field, bool)> {
        vec![(Field::Badness, true), (Field::LastSeen, true)]
    }

    fn tie(a: (&Node, &Finding), b: (&Node, &Finding)) -> Ordering {
        (&a.0.id, &a.1.key).cmp(&(&b.0.id, &b.1.key))
    }
}

impl FieldOf for Field {
    type Noun = Finding;

    const SORTABLE: &'static [&'static str] =
        &["node", "pool", "key", "rule", "count", "first_seen", "last_seen"];

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
            Field::Node
            | Field::Pool
            | Field::Provider
            | Field::Region
            | Field::Zone
            | Field::Key
            | Field::Rule
            | Field::Policy
            | Field::Message
            | Field::Evidence
            | Field::Gpu
            | Field::Label(_) => Type::Any,
            Field::Badness | Field::PolicyVersion | Field::Count => Type::Number,
            Field::FirstSeen | Field::LastSeen => Type::Time,
            Field::Severity => Type::Word(SEVERITIES),
        }
    }

    fn find<'i: 'b, 'b>(
        &self,
        (node, finding): (&'i Node, &'i Finding),
        _: &'b mut Buffer,
    ) -> Option<Found<'b>> {
        let text = match self {
            Field::Node => node.id.as_str(),
            Field::Pool => node.pool.as_deref()?,
            Field::Provider => &node.place.provider,
            Field::Region => &node.place.region,
            Field::Zone => &node.place.zone,
            Field::Key => &finding.key,
            Field::Severity => word(finding.severity?),
            Field::Rule => &finding.rule,
            Field::Policy => &finding.policy,
            Field::Message => &finding.message,
            Field::Evidence => &finding.evidence,
            Field::Gpu => &finding.gpu,
            Field::Label(key) => return Some(Found::Text(Cow::Borrowed(node.labels.get(key)?))),
            Field::Badness => {
                // A rule that failed says less than any that did not.
                return Some(Found::Number(match finding.severity {
                    None => 0.0,
                    Some(Severity::Healthy) => 1.0,
                    Some(Severity::Degraded) => 2.0,
                    Some(Severity::Unhealthy) => 3.0,
                }));
            }
            Field::PolicyVersion => {
                let version = Some(finding.policy_version).filter(|version| 0 < *version)?;
                return Some(Found::Number(f64::from(version)));
            }
            Field::Count => return Some(Found::Number(f64::from(finding.count))),
            Field::FirstSeen => return Some(Found::Time(finding.first)),
            Field::LastSeen => return Some(Found::Time(finding.last)),
        };
        Found::text_of(text)
    }
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
