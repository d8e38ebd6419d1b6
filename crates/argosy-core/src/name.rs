//! Names of clusters and node pools: parsed once, then trusted.

use crate::field::{Constraint, FieldError};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The name of a cluster or a node pool: `[a-z0-9]([-a-z0-9]*[a-z0-9])?`, at most 63 characters, so
/// that it can be a DNS label and the name of an object at any provider.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Name(String);

impl Name {
    /// The longest name.
    pub const LEN_MAX: usize = 63;

    /// Reads a name.
    ///
    /// # Errors
    /// Says which rule the text breaks, as a complaint about the field `name`.
    pub fn parse(text: &str) -> Result<Self, FieldError> {
        let len = text.chars().count();
        let complaint = if text.is_empty() {
            FieldError::new("name", Constraint::Required, "name must not be empty")
        } else if Self::LEN_MAX < len {
            FieldError::new(
                "name",
                Constraint::MaxLength,
                format!("name is {len} characters long; at most {} are allowed", Self::LEN_MAX),
            )
        } else if !text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
            || text.starts_with('-')
            || text.ends_with('-')
        {
            FieldError::new(
                "name",
                Constraint::Pattern,
                "name may hold lower-case letters, digits and hyphens, and must start and end with \
                 a letter or digit",
            )
        } else {
            return Ok(Self(text.to_owned()));
        };
        Err(if len <= 2 * Self::LEN_MAX { complaint.with_value(text) } else { complaint })
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests;
