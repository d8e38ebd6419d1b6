//! Members of a JSON object, taken by type, with complaints in one style.

use argosy_core::field::{Constraint, FieldError};
use serde_json::{Map, Value};

/// The complaint about a member that must be there.
pub(crate) fn missing(field: &str) -> FieldError {
    FieldError::new(field, Constraint::Required, format!("Missing required field '{field}'"))
}

/// The complaint about a member of the wrong type.
pub(crate) fn wrong_type(field: &str, expected: &str, got: &Value) -> FieldError {
    let message = format!("Invalid {field}: expected {expected}, got {}", type_name(got));
    FieldError::new(field, Constraint::Format, message)
}

/// The type of a JSON value, with its article.
pub(crate) const fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// A text that must be there.
pub(crate) fn text<'a>(value: Option<&'a Value>, field: &str) -> Result<&'a str, FieldError> {
    match value {
        None => Err(missing(field)),
        Some(Value::String(text)) => Ok(text),
        Some(other) => Err(wrong_type(field, "a string", other)),
    }
}

/// A text that may be left out; then it is empty.
pub(crate) fn text_or_empty(value: Option<&Value>, field: &str) -> Result<String, FieldError> {
    value.map_or(Ok(String::new()), |value| text(Some(value), field).map(str::to_owned))
}

/// An object that may be left out.
pub(crate) fn object(
    value: Option<Value>,
    field: &str,
) -> Result<Option<Map<String, Value>>, FieldError> {
    match value {
        None => Ok(None),
        Some(Value::Object(object)) => Ok(Some(object)),
        Some(other) => Err(wrong_type(field, "an object", &other)),
    }
}
