//! What is wrong with one field of somebody's input, in words they can act on.

pub(crate) mod reader;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One complaint about one field.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FieldError {
    /// Where: `name`, `spec.region`, `labels.team`, `conditions[2].status`.
    pub field: String,
    /// A whole sentence: what is wrong and what would be right.
    pub message: String,
    /// What was sent, if it is short.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// Which rule it broke.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub constraint: Option<Constraint>,
}

/// The rules a field can break, as they stand in an error body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Constraint {
    /// The field is missing.
    Required,
    /// Too small.
    Min,
    /// Too large.
    Max,
    /// Too short.
    MinLength,
    /// Too long.
    MaxLength,
    /// Does not have the right form.
    Pattern,
    /// Not one of the allowed values.
    Enum,
    /// Not of the right type.
    Format,
    /// Taken, or given twice.
    Unique,
}

impl FieldError {
    /// A complaint without the offending value.
    pub fn new(
        field: impl Into<String>,
        constraint: Constraint,
        message: impl Into<String>,
    ) -> Self {
        Self {
            field: field.into(),
            message: message.into(),
            value: None,
            constraint: Some(constraint),
        }
    }

    /// The complaint that a value has the wrong JSON type; `wanted` reads like `a string`.
    pub fn wrong_type(field: impl Into<String>, wanted: &str, sent: &Value) -> Self {
        let field = field.into();
        let sent = match sent {
            Value::Null => "null",
            Value::Bool(_) => "a boolean",
            Value::Number(_) => "a number",
            Value::String(_) => "a string",
            Value::Array(_) => "a list",
            Value::Object(_) => "an object",
        };
        let message = format!("{field} must be {wanted}, not {sent}");
        Self::new(field, Constraint::Format, message)
    }

    /// The same complaint with the value that was sent.
    #[must_use]
    pub fn with_value(mut self, value: impl Into<Value>) -> Self {
        self.value = Some(value.into());
        self
    }
}

/// The most characters of somebody's text that a sentence repeats.
pub(crate) const QUOTE_LEN_MAX: usize = 63;

/// Text from outside, cut and escaped so that it can stand in a sentence and on a terminal.
pub(crate) fn quotable(text: &str) -> String {
    let start: String = text.chars().take(QUOTE_LEN_MAX).collect();
    let cut = if start.len() < text.len() { "…" } else { "" };
    format!("{}{cut}", start.escape_debug())
}

#[cfg(test)]
mod tests;
