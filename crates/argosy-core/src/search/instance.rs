//! What a search for instances can ask about.

use super::field::{FieldOf, Searchable, named, unknown};
use super::value::{Buffer, Found, Type, Words};
use crate::instance::Instance;
use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;

/// One thing that every instance may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Field {
    Id,
    State,
    /// The pool, by the name that nodes carry.
    Pool,
    PoolId,
    Node,
    Provider,
    Region,
    Zone,
    MachineType,
    Machine,
    Spot,
    Image,
    Number,
    CostPerHour,
    OrderedAt,
    Since,
    Why,
    Reason,
    Message,
    Replaces,
    /// What was tried with it.
    Tried,
    /// Whether anything of it may still exist.
    Open,
    /// Instances have no labels: a test of one never holds.
    Label(String),
}

/// Every name that stands for itself. The first name of a field is the one it prints as.
const NAMES: [(&str, Field); 26] = [
    ("id", Field::Id),
    ("instance_id", Field::Id),
    ("state", Field::State),
    ("pool", Field::Pool),
    ("pool_name", Field::Pool),
    ("pool_id", Field::PoolId),
    ("node_id", Field::Node),
    ("node", Field::Node),
    ("provider", Field::Provider),
    ("region", Field::Region),
    ("zone", Field::Zone),
    ("machine_type", Field::MachineType),
    ("instance_type", Field::MachineType),
    ("machine_id", Field::Machine),
    ("spot", Field::Spot),
    ("image", Field::Image),
    ("number", Field::Number),
    ("cost_per_hour", Field::CostPerHour),
    ("ordered_at", Field::OrderedAt),
    ("since", Field::Since),
    ("why", Field::Why),
    ("reason", Field::Reason),
    ("status_message", Field::Message),
    ("replaces", Field::Replaces),
    ("tried", Field::Tried),
    ("open", Field::Open),
];

const STATES: Words = Words {
    noun: "state",
    all: &["Provisioning", "AwaitingNode", "Running", "Terminating", "Terminated", "Failed"],
    old: &[],
    exact: false,
};

impl Searchable for Instance {
    type Item<'a> = &'a Instance;
    type Field = Field;

    fn usual_order() -> Vec<(Field, bool)> {
        vec![(Field::Pool, false), (Field::Number, false), (Field::OrderedAt, false)]
    }

    fn tie(a: &Instance, b: &Instance) -> Ordering {
        a.id.cmp(&b.id)
    }
}

impl FieldOf for Field {
    type Noun = Instance;

    const SORTABLE: &'static [&'static str] = &[
        "id",
        "state",
        "pool",
        "provider",
        "region",
        "zone",
        "machine_type",
        "number",
        "cost_per_hour",
        "ordered_at",
        "since",
    ];

    fn parse(name: &str) -> Result<Self, String> {
        Self::named(name).ok_or_else(|| unknown(name, &NAMES, &[], "and no others"))
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
            | Field::PoolId
            | Field::Node
            | Field::Provider
            | Field::Region
            | Field::Zone
            | Field::MachineType
            | Field::Machine
            | Field::Spot
            | Field::Image
            | Field::Why
            | Field::Reason
            | Field::Message
            | Field::Replaces
            | Field::Tried
            | Field::Open
            | Field::Label(_) => Type::Any,
            Field::Number | Field::CostPerHour => Type::Number,
            Field::OrderedAt | Field::Since => Type::Time,
            Field::State => Type::Word(STATES),
        }
    }

    fn find<'i: 'b, 'b>(&self, of: &'i Instance, buffer: &'b mut Buffer) -> Option<Found<'b>> {
        let text = match self {
            Field::Id => of.id.as_str(),
            Field::State => of.state.as_str(),
            Field::Pool => &of.pool_name,
            Field::PoolId => buffer.id(of.pool.uuid()),
            Field::Node => of.node()?.as_str(),
            Field::Provider => &of.order.provider,
            Field::Region => &of.order.region,
            Field::Zone => &of.order.zone,
            Field::MachineType => &of.order.machine_type,
            Field::Machine => of.machine()?.as_str(),
            Field::Image => &of.order.image,
            Field::Why => &of.why,
            Field::Reason => of.reason(),
            Field::Replaces => of.replaces.as_ref()?.as_str(),
            Field::Message => match of.message() {
                Cow::Borrowed(text) => text,
                Cow::Owned(text) => return Some(Found::Text(Cow::Owned(text))),
            },
            Field::Spot => return Some(Found::Bool(of.order.spot)),
            Field::Open => return Some(Found::Bool(!of.state.is_over())),
            Field::Number => return Some(Found::Number(f64::from(of.number))),
            Field::CostPerHour => return of.cost_per_hour().map(Found::Number),
            Field::OrderedAt => return Some(Found::Time(of.ordered_at)),
            Field::Since => return Some(Found::Time(of.since())),
            Field::Tried => {
                let tried = of.tried.iter().map(|tried| tried.cure.as_str());
                return Found::several(tried.filter_map(Found::text_of));
            }
            Field::Label(_) => return None,
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
