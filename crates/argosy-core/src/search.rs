//! The search language: text to a tree, and whether a resource matches it.
//!
//! The user's text is parsed alone and becomes a tree; scope (kind, owner, tenant) and the other
//! filters are further trees, joined by `and`. No text is ever pasted into other text.

use crate::resource::Resource;
use crate::status::Phase;

/// A parsed filter.
#[derive(Clone, Debug, PartialEq)]
pub struct Filter {
    // Replaced by the real tree.
    everything: (),
}

/// Why a text is not a search, with the place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message} (at character {at})")]
pub struct SearchError {
    /// Counted from 1, in characters.
    pub at: usize,
    /// What is wrong and what would be right.
    pub message: String,
}

impl Filter {
    /// The longest search text, in bytes.
    pub const LEN_MAX: usize = 4096;
    /// The deepest nesting.
    pub const DEPTH_MAX: usize = 16;

    /// Matches everything.
    pub fn everything() -> Self {
        todo!()
    }

    /// Reads a search text.
    ///
    /// # Errors
    /// Where it stops being one, or which field nobody knows (with the nearest).
    pub fn parse(text: &str) -> Result<Self, SearchError> {
        let _ = text;
        todo!()
    }

    /// Both must hold.
    #[must_use]
    pub fn and(self, other: Filter) -> Self {
        let _ = other;
        todo!()
    }

    /// The phase is one of these.
    pub fn phase_in(phases: &[Phase]) -> Self {
        let _ = phases;
        todo!()
    }

    /// `spec.provider`, or `spec.platform.type`, is this.
    pub fn provider(provider: &str) -> Self {
        let _ = provider;
        todo!()
    }

    /// `spec.region`, or `spec.platform.<type>.region`, is this.
    pub fn region(region: &str) -> Self {
        let _ = region;
        todo!()
    }

    /// The name contains this text, or is it.
    pub fn name(text: &str, exact: bool) -> Self {
        let _ = (text, exact);
        todo!()
    }

    /// The label has this value.
    pub fn label(key: &str, value: &str) -> Self {
        let _ = (key, value);
        todo!()
    }

    /// Reads the `labels=k:v,k:v` form.
    ///
    /// # Errors
    /// The sentence `Invalid label filter format. Expected format: key:value`.
    pub fn labels(text: &str) -> Result<Self, SearchError> {
        let _ = text;
        todo!()
    }

    /// A label the resource must have for the filter to match, if the tree says so plainly: lets a
    /// list start from an index.
    pub fn required_label(&self) -> Option<(&str, &str)> {
        todo!()
    }

    /// Whether a resource matches.
    pub fn matches(&self, resource: &Resource) -> bool {
        let _ = resource;
        todo!()
    }
}

/// The order of a list: fields and directions, with the id as the last word.
#[derive(Clone, Debug, PartialEq)]
pub struct Order {
    // Replaced by the real list.
    keys: (),
}

impl Order {
    /// `created_time desc`.
    pub fn newest_first() -> Self {
        todo!()
    }

    /// Reads `name asc,created_time desc`.
    ///
    /// # Errors
    /// Names a field nobody can sort by, with those one can.
    pub fn parse(text: &str) -> Result<Self, SearchError> {
        let _ = text;
        todo!()
    }

    /// Compares two resources.
    pub fn compare(&self, a: &Resource, b: &Resource) -> std::cmp::Ordering {
        let _ = (a, b);
        todo!()
    }
}
