//! Labels: what people filter by. Parsed once, then trusted.

use crate::field::{Constraint, FieldError};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The labels of a resource, each key and value in Kubernetes' form.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Labels(BTreeMap<String, String>);

impl Labels {
    /// The most labels one resource may carry: each is indexed, so more would be a way to exhaust us.
    pub const COUNT_MAX: usize = 64;

    /// Reads labels from a JSON object.
    ///
    /// # Errors
    /// One complaint for each bad key or value, named `labels.<key>`, and one for too many.
    pub fn parse(labels: &Map<String, Value>) -> Result<Self, Vec<FieldError>> {
        let mut errors = Vec::new();
        if Self::COUNT_MAX < labels.len() {
            errors.push(FieldError::new(
                "labels",
                Constraint::Max,
                format!(
                    "{} labels were sent; at most {} are allowed",
                    labels.len(),
                    Self::COUNT_MAX
                ),
            ));
            // Nobody reads hundreds of further complaints.
            return Err(errors);
        }
        let mut parsed = BTreeMap::new();
        for (key, value) in labels {
            match parse_label(key, value) {
                Ok(value) => _ = parsed.insert(key.clone(), value),
                Err(complaints) => errors.extend(complaints),
            }
        }
        if errors.is_empty() { Ok(Self(parsed)) } else { Err(errors) }
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }

    /// These labels and one more, which the server gives; it must be a label as parsing knows them.
    #[must_use]
    pub fn with(mut self, key: &str, value: &str) -> Self {
        self.0.insert(key.to_owned(), value.to_owned());
        self
    }

    /// These labels without one.
    #[must_use]
    pub fn without(mut self, key: &str) -> Self {
        self.0.remove(key);
        self
    }

    /// All labels, by key.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Whether a text can be the key of a label.
pub(crate) fn is_key(text: &str) -> bool {
    check_key("", text).is_ok()
}

/// Whether a text can be the value of a label.
pub(crate) fn is_value(text: &str) -> bool {
    text.is_empty() || text.len() <= PART_LEN_MAX && is_word(text)
}

/// The longest key: a DNS name of 253 characters, a slash and a name.
const KEY_LEN_MAX: usize = 255;
/// The longest value, and the longest name and DNS label inside a key.
const PART_LEN_MAX: usize = 63;

fn parse_label(key: &str, value: &Value) -> Result<String, Vec<FieldError>> {
    // A key of any length comes from outside; one that is too long is described, not repeated.
    let field = if key.len() <= KEY_LEN_MAX {
        format!("labels.{}", key.escape_debug())
    } else {
        "labels".to_owned()
    };
    let mut errors: Vec<FieldError> = check_key(&field, key).err().into_iter().collect();
    match parse_value(&field, value) {
        Ok(value) if errors.is_empty() => return Ok(value),
        Ok(_) => {}
        Err(complaint) => errors.push(complaint),
    }
    Err(errors)
}

fn check_key(field: &str, key: &str) -> Result<(), FieldError> {
    let complain = |constraint, message: String| Err(FieldError::new(field, constraint, message));
    if KEY_LEN_MAX < key.len() {
        let len = key.chars().count();
        return complain(
            Constraint::MaxLength,
            format!("a label key is {len} characters long; at most {KEY_LEN_MAX} are allowed"),
        );
    }
    let (prefix, name) = match key.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, key),
    };
    if name.is_empty() {
        return complain(
            Constraint::Required,
            "a label key must not be empty; `team` and `example.com/team` are right".to_owned(),
        );
    }
    if prefix.is_some_and(|prefix| !prefix.split('.').all(is_dns_label)) {
        return complain(
            Constraint::Pattern,
            format!(
                "the part of a label key before `/` must be a DNS name like `example.com`: \
                 lower-case letters, digits and hyphens, between dots, at most {PART_LEN_MAX} \
                 characters each"
            ),
        );
    }
    if PART_LEN_MAX < name.len() {
        return complain(
            Constraint::MaxLength,
            format!("the name in a label key may be {PART_LEN_MAX} characters long"),
        );
    }
    if !is_word(name) {
        return complain(
            Constraint::Pattern,
            "a label key may hold letters, digits, `-`, `_` and `.`, must start and end with a \
             letter or digit, and may have one prefix before a `/`"
                .to_owned(),
        );
    }
    Ok(())
}

fn parse_value(field: &str, value: &Value) -> Result<String, FieldError> {
    let Value::String(text) = value else {
        return Err(FieldError::wrong_type(field, "a string", value));
    };
    if PART_LEN_MAX < text.len() {
        let len = text.chars().count();
        return Err(FieldError::new(
            field,
            Constraint::MaxLength,
            format!("{field} is {len} characters long; at most {PART_LEN_MAX} are allowed"),
        ));
    }
    if !is_value(text) {
        return Err(FieldError::new(
            field,
            Constraint::Pattern,
            format!(
                "{field} may hold letters, digits, `-`, `_` and `.`, and must start and end with a \
                 letter or digit"
            ),
        )
        .with_value(text.as_str()));
    }
    Ok(text.clone())
}

/// `[a-z0-9]([-a-z0-9]*[a-z0-9])?`, at most 63 characters.
fn is_dns_label(text: &str) -> bool {
    text.len() <= PART_LEN_MAX
        && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        && is_word(text)
}

/// `[A-Za-z0-9]([-._A-Za-z0-9]*[A-Za-z0-9])?`.
fn is_word(text: &str) -> bool {
    let edge = |b: Option<u8>| b.is_some_and(|b| b.is_ascii_alphanumeric());
    text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_'))
        && edge(text.bytes().next())
        && edge(text.bytes().next_back())
}

#[cfg(test)]
mod tests;
