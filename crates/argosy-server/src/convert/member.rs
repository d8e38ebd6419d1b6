//! Members of a JSON object, taken by type, with complaints in one style.

use argosy_core::field::{Constraint, FieldError};
use argosy_core::nearest::nearest;
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

/// The longest reason somebody may give.
pub(crate) const REASON_LEN_MAX: usize = 1024;

/// A reason that must be there.
pub(crate) fn reason(text: &str) -> Result<&str, FieldError> {
    match text.chars().count() {
        0 => Err(FieldError::new("reason", Constraint::MinLength, "reason must not be empty")),
        len if REASON_LEN_MAX < len => Err(FieldError::new(
            "reason",
            Constraint::MaxLength,
            format!("reason is {len} characters long; at most {REASON_LEN_MAX} are allowed"),
        )),
        _ => Ok(text),
    }
}

/// One of a few words.
pub(crate) fn word<T: Copy>(
    text: &str,
    field: &str,
    words: impl Iterator<Item = (&'static str, T)> + Clone,
) -> Result<T, FieldError> {
    words.clone().find(|(word, _)| *word == text).map(|(_, value)| value).ok_or_else(|| {
        let known: Vec<&str> = words.map(|(word, _)| word).collect();
        let short: String = text.chars().take(100).collect();
        let message =
            format!("Invalid {field} value '{short}'. Supported values: {}", known.join(", "));
        FieldError::new(field, Constraint::Enum, message)
    })
}

/// The members of an object, taken one by one; what is wrong is collected, and what is left at the end
/// is unknown.
pub(crate) struct Members {
    /// What stands before each name in a complaint: `rules[3].`.
    place: String,
    left: Map<String, Value>,
    taken: Vec<&'static str>,
    errors: Vec<FieldError>,
}

impl Members {
    pub(crate) fn new(place: impl Into<String>, object: Map<String, Value>) -> Self {
        Self { place: place.into(), left: object, taken: Vec::new(), errors: Vec::new() }
    }

    /// Where a member is.
    pub(crate) fn field(&self, name: &str) -> String {
        format!("{}{name}", self.place)
    }

    /// Takes a member and reads it; `read` is given its place.
    pub(crate) fn take<T: Default>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(Option<Value>, &str) -> Result<T, FieldError>,
    ) -> T {
        self.taken.push(name);
        let (value, field) = (self.left.remove(name), self.field(name));
        read(value, &field).unwrap_or_else(|error| {
            self.errors.push(error);
            T::default()
        })
    }

    /// A text that must be there.
    pub(crate) fn text(&mut self, name: &'static str) -> String {
        self.take(name, |value, field| text(value.as_ref(), field).map(str::to_owned))
    }

    /// A text that may be left out.
    pub(crate) fn text_or_empty(&mut self, name: &'static str) -> String {
        self.take(name, |value, field| text_or_empty(value.as_ref(), field))
    }

    /// A text that may be left out.
    pub(crate) fn text_if_any(&mut self, name: &'static str) -> Option<String> {
        self.take(name, |value, field| {
            value.map(|value| text(Some(&value), field).map(str::to_owned)).transpose()
        })
    }

    /// True or false; false if it is left out.
    pub(crate) fn flag(&mut self, name: &'static str) -> bool {
        self.take(name, |value, field| match value {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(flag),
            Some(other) => Err(wrong_type(field, "a boolean", &other)),
        })
    }

    /// A whole number that may be left out.
    pub(crate) fn whole(&mut self, name: &'static str, min: i64, max: i64) -> Option<i64> {
        self.take(name, |value, field| {
            let Some(value) = value else { return Ok(None) };
            let range = format!("{field} must be a whole number from {min} to {max}");
            match value.as_i64() {
                Some(number) if number < min => Err(FieldError::new(field, Constraint::Min, range)),
                Some(number) if max < number => Err(FieldError::new(field, Constraint::Max, range)),
                Some(number) => Ok(Some(number)),
                None => Err(FieldError::new(field, Constraint::Format, range)),
            }
        })
    }

    /// A list that may be left out; `read` is given each element and its place.
    pub(crate) fn list<T>(
        &mut self,
        name: &'static str,
        mut read: impl FnMut(Value, String) -> Result<T, Vec<FieldError>>,
    ) -> Vec<T> {
        let place = self.field(name);
        let elements = self.take(name, |value, field| match value {
            None => Ok(Vec::new()),
            Some(Value::Array(elements)) => Ok(elements),
            Some(other) => Err(wrong_type(field, "an array", &other)),
        });
        let mut found = Vec::with_capacity(elements.len());
        for (index, element) in elements.into_iter().enumerate() {
            match read(element, format!("{place}[{index}]")) {
                Ok(element) => found.push(element),
                Err(errors) => self.errors.extend(errors),
            }
        }
        found
    }

    /// An object that may be left out.
    pub(crate) fn object(&mut self, name: &'static str) -> Option<Map<String, Value>> {
        self.take(name, object)
    }

    /// Members that may be there and say nothing new.
    pub(crate) fn ignore(&mut self, names: &[&'static str]) {
        for name in names {
            self.left.remove(*name);
            self.taken.push(name);
        }
    }

    /// One more complaint.
    pub(crate) fn complain(&mut self, errors: impl IntoIterator<Item = FieldError>) {
        self.errors.extend(errors);
    }

    /// The end: nothing may be left.
    pub(crate) fn finish<T>(mut self, value: T) -> Result<T, Vec<FieldError>> {
        for name in self.left.keys() {
            let short: String = name.chars().take(100).collect();
            let what_next = match nearest(name, self.taken.iter().copied()) {
                Some(near) => format!("Did you mean '{near}'?"),
                None => format!("Supported fields: {}", self.taken.join(", ")),
            };
            let message = format!("Unknown field '{}{short}'. {what_next}", self.place);
            let field = format!("{}{short}", self.place);
            self.errors.push(FieldError::new(field, Constraint::Enum, message));
        }
        if self.errors.is_empty() { Ok(value) } else { Err(self.errors) }
    }
}

#[cfg(test)]
mod tests;
