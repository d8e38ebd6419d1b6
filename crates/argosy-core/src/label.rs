//! Labels: what people filter by. Parsed once, then trusted.

use crate::field::FieldError;
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
        let _ = labels;
        todo!()
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
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
