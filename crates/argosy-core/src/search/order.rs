//! The order of a list.

use super::SearchError;
use super::field::{Buffer, Field};
use crate::field::quotable;
use crate::nearest::nearest;
use crate::resource::Resource;
use std::cmp::Ordering;

/// The order of a list: fields and directions, with the id as the last word, so that two resources
/// are never equal and pages never overlap.
#[derive(Clone, Debug, PartialEq)]
pub struct Order {
    keys: Vec<Key>,
}

#[derive(Clone, Debug, PartialEq)]
struct Key {
    field: Field,
    descending: bool,
}

/// What one can sort by.
const FIELDS: [&str; 14] = [
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

impl Order {
    /// The most fields of one order; there are not many more to tell resources apart by.
    pub const KEYS_MAX: usize = 8;

    /// `created_time desc`.
    pub fn newest_first() -> Self {
        Self { keys: vec![Key { field: Field::CreatedTime, descending: true }] }
    }

    /// Reads `name asc,created_time desc`; `asc` may be left out, and a blank text is newest first.
    ///
    /// # Errors
    /// Names a field nobody can sort by, with those one can.
    pub fn parse(text: &str) -> Result<Self, SearchError> {
        if text.trim().is_empty() {
            return Ok(Self::newest_first());
        }
        let mut keys = Vec::new();
        let mut at = 1;
        for item in text.split(',') {
            let error = |message| Err(SearchError { at, message });
            match parse_key(item) {
                Ok(_) if keys.len() == Self::KEYS_MAX => {
                    return error(format!("at most {} fields can be sorted by", Self::KEYS_MAX));
                }
                Ok(key) => keys.push(key),
                Err(message) => return error(message),
            }
            at += item.chars().count() + 1;
        }
        Ok(Self { keys })
    }

    /// Compares two resources. What a resource does not have comes last, in both directions.
    pub fn compare(&self, a: &Resource, b: &Resource) -> Ordering {
        for Key { field, descending } in &self.keys {
            let (mut room_a, mut room_b) = (Buffer::new(), Buffer::new());
            let ordering = match (field.find(a, &mut room_a), field.find(b, &mut room_b)) {
                (Some(a), Some(b)) if *descending => b.order(&a),
                (Some(a), Some(b)) => a.order(&b),
                (a, b) => b.is_some().cmp(&a.is_some()),
            };
            if ordering.is_ne() {
                return ordering;
            }
        }
        a.id.cmp(&b.id)
    }
}

fn parse_key(item: &str) -> Result<Key, String> {
    let mut words = item.split_whitespace();
    let name = words.next().unwrap_or_default();
    let descending = match words.next() {
        None => false,
        Some(word) if word.eq_ignore_ascii_case("asc") => false,
        Some(word) if word.eq_ignore_ascii_case("desc") => true,
        Some(word) => {
            return Err(format!("expected `asc` or `desc`, found `{}`", quotable(word)));
        }
    };
    if let Some(word) = words.next() {
        return Err(format!("expected `,`, found `{}`", quotable(word)));
    }
    match Field::named(name).filter(|_| FIELDS.contains(&name)) {
        Some(field) => Ok(Key { field, descending }),
        None => {
            let hint = nearest(name, FIELDS)
                .map(|meant| format!(" Did you mean `{meant}`?"))
                .unwrap_or_default();
            let known = FIELDS.join(", ");
            Err(format!("Cannot sort by `{}`.{hint} One can sort by {known}", quotable(name)))
        }
    }
}
