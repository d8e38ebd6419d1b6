//! The order of a list.

use super::SearchError;
use super::field::{FieldOf, Searchable};
use super::value::Buffer;
use crate::field::quotable;
use crate::nearest::nearest;
use crate::resource::Resource;
use std::cmp::Ordering;

/// The order of a list: fields and directions, with the id as the last word, so that two items are
/// never equal and pages never overlap.
#[derive(Clone, Debug, PartialEq)]
pub struct Order<T: Searchable = Resource> {
    /// Each with whether the largest comes first.
    keys: Vec<(T::Field, bool)>,
}

/// As lists are that nobody ordered: resources newest first, nodes by id, findings worst first.
impl<T: Searchable> Default for Order<T> {
    fn default() -> Self {
        Self { keys: T::usual_order() }
    }
}

impl<T: Searchable> Order<T> {
    /// The most fields of one order; there are not many more to tell items apart by.
    pub const KEYS_MAX: usize = 8;

    /// Reads `name asc,created_time desc`; `asc` may be left out, and a blank text is the usual order.
    ///
    /// # Errors
    /// Names a field nobody can sort by, with those one can.
    pub fn parse(text: &str) -> Result<Self, SearchError> {
        if text.trim().is_empty() {
            return Ok(Self::default());
        }
        let mut keys = Vec::new();
        let mut at = 1;
        for item in text.split(',') {
            let error = |message| Err(SearchError { at, message });
            match parse_key::<T>(item) {
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

    /// Compares two items. What an item does not have comes last, in both directions.
    pub fn compare(&self, a: T::Item<'_>, b: T::Item<'_>) -> Ordering {
        for (field, descending) in &self.keys {
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
        T::tie(a, b)
    }
}

fn parse_key<T: Searchable>(item: &str) -> Result<(T::Field, bool), String> {
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
    let fields = T::Field::SORTABLE;
    match T::Field::named(name).filter(|_| fields.contains(&name)) {
        Some(field) => Ok((field, descending)),
        None => {
            let hint = nearest(name, fields.iter().copied())
                .map(|meant| format!(" Did you mean `{meant}`?"))
                .unwrap_or_default();
            let known = fields.join(", ");
            Err(format!("Cannot sort by `{}`.{hint} One can sort by {known}", quotable(name)))
        }
    }
}
