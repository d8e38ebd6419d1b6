//! YAML with the place of everything in it, so that a complaint can name the line.

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_saphyr::{Location, Spanned};
use std::fmt;

/// A value, and where it begins.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) at: Place,
    pub(super) tree: Tree,
}

/// A place in a file, counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) line: usize,
    pub(super) column: usize,
}

impl From<Location> for Place {
    fn from(location: Location) -> Self {
        let number = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        Self { line: number(location.line()), column: number(location.column()) }
    }
}

#[derive(Clone, Debug)]
pub(super) enum Tree {
    Map(Vec<(String, Place, Node)>),
    List(Vec<Node>),
    Scalar(Value),
}

impl Tree {
    /// What it is, for a complaint.
    pub(super) fn noun(&self) -> &'static str {
        match self {
            Tree::Map(_) => "a map",
            Tree::List(_) => "a list",
            Tree::Scalar(Value::Null) => "nothing",
            Tree::Scalar(Value::Bool(_)) => "a boolean",
            Tree::Scalar(Value::Number(_)) => "a number",
            Tree::Scalar(Value::String(_) | Value::Array(_) | Value::Object(_)) => "text",
        }
    }
}

impl<'de> Deserialize<'de> for Node {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Spanned { value, referenced, .. } = Spanned::<Tree>::deserialize(deserializer)?;
        Ok(Self { at: referenced.into(), tree: value })
    }
}

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TreeVisitor)
    }
}

struct TreeVisitor;

impl<'de> Visitor<'de> for TreeVisitor {
    type Value = Tree;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("YAML")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Tree, E> {
        Ok(Tree::Scalar(value.into()))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Tree, E> {
        Ok(Tree::Scalar(value.into()))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Tree, E> {
        Ok(Tree::Scalar(value.into()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Tree, E> {
        Ok(Tree::Scalar(value.into()))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Tree, E> {
        Ok(Tree::Scalar(value.into()))
    }

    fn visit_unit<E: Error>(self) -> Result<Tree, E> {
        Ok(Tree::Scalar(Value::Null))
    }

    fn visit_none<E: Error>(self) -> Result<Tree, E> {
        Ok(Tree::Scalar(Value::Null))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Tree, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Tree::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Tree, A::Error> {
        let mut map = Vec::new();
        while let Some(key) = members.next_key::<Spanned<String>>()? {
            map.push((key.value, key.referenced.into(), members.next_value()?));
        }
        Ok(Tree::Map(map))
    }
}
