//! The query of a request, read strictly: what nobody knows is refused, because a misspelt filter
//! that is ignored gives a wrong answer that looks right.

use crate::problem::Fault;
use argosy_api::error;
use argosy_api::route::{Parameter, Route};
use argosy_core::field::{Constraint, FieldError};
use argosy_core::nearest::nearest;
use serde_json::Value;

/// The parameters of one request, each checked by itself.
#[derive(Debug)]
pub(super) struct Query(Vec<(&'static str, String)>);

impl Query {
    pub(super) fn parse(text: &str, route: &'static Route) -> Result<Self, Fault> {
        let (mut pairs, mut errors): (Vec<(&'static str, String)>, _) = (Vec::new(), Vec::new());
        for pair in text.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let (Some(name), Some(value)) = (decode(name), decode(value)) else {
                let detail = format!("the query parameter '{name}' is not percent-encoded UTF-8");
                return Err(Fault::new(&error::VALIDATION, detail));
            };
            let Some(known) = route.query().find(|parameter| parameter.name == name) else {
                errors.push(unknown(&name, route));
                continue;
            };
            if !known.repeats && pairs.iter().any(|(earlier, _)| *earlier == known.name) {
                let message = format!("{name} is given more than once");
                errors.push(FieldError::new(name, Constraint::Unique, message));
                continue;
            }
            match check(known, &value) {
                Ok(()) => pairs.push((known.name, value)),
                Err(error) => errors.push(error),
            }
        }
        let missing = |name: &str| pairs.iter().all(|(known, _)| *known != name);
        for required in route.query().filter(|known| known.required && missing(known.name)) {
            let name = required.name;
            let message = format!("Missing required query parameter '{name}'");
            errors.push(FieldError::new(name, Constraint::Required, message));
        }
        if errors.is_empty() { Ok(Self(pairs)) } else { Err(Fault::fields(errors)) }
    }

    pub(super) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.0.iter().filter(move |(known, _)| *known == name).map(|(_, value)| value.as_str())
    }

    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.all(name).next()
    }

    /// A number that was checked to be one.
    pub(super) fn number<T: std::str::FromStr>(&self, name: &str) -> Option<T> {
        self.text(name).and_then(|value| value.parse().ok())
    }

    pub(super) fn flag(&self, name: &str) -> bool {
        self.text(name) == Some("true")
    }
}

fn unknown(name: &str, route: &'static Route) -> FieldError {
    let known: Vec<&str> = route.query().map(|parameter| parameter.name).collect();
    let what_next = match nearest(name, known.iter().copied()) {
        Some(near) => format!("Did you mean '{near}'?"),
        None if known.is_empty() => "This path takes none.".to_owned(),
        None => format!("Supported parameters: {}", known.join(", ")),
    };
    FieldError::new(
        name,
        Constraint::Enum,
        format!("Unknown query parameter '{name}'. {what_next}"),
    )
}

/// Compares a value with the schema that the reference shows for it.
fn check(parameter: &Parameter, value: &str) -> Result<(), FieldError> {
    let (name, schema) = (parameter.name, &parameter.schema);
    let bound = |key| schema.get(key).and_then(Value::as_u64);
    let complain = |constraint, message: String| {
        Err(FieldError::new(name, constraint, message).with_value(shortened(value)))
    };
    match schema.get("type").and_then(Value::as_str) {
        Some("integer") => {
            let (min, max) = (bound("minimum").unwrap_or(0), bound("maximum").unwrap_or(u64::MAX));
            let range = match bound("maximum") {
                Some(max) => format!("an integer between {min} and {max}"),
                None => format!("an integer of at least {min}"),
            };
            let message = format!("Invalid {name} '{}'. Must be {range}", shortened(value));
            match value.parse::<i128>() {
                Err(_) => complain(Constraint::Format, message),
                Ok(number) if number < i128::from(min) => complain(Constraint::Min, message),
                Ok(number) if i128::from(max) < number => complain(Constraint::Max, message),
                Ok(_) => Ok(()),
            }
        }
        Some("boolean") if !matches!(value, "true" | "false") => complain(
            Constraint::Format,
            format!("Invalid {name} '{}'. Must be true or false", shortened(value)),
        ),
        // The handler has a better sentence about phases.
        _ if name.ends_with("phase") => Ok(()),
        _ => {
            let words: Vec<&str> = schema
                .get("enum")
                .and_then(Value::as_array)
                .map_or_else(Vec::new, |words| words.iter().filter_map(Value::as_str).collect());
            if !words.is_empty() && !words.contains(&value) {
                return complain(
                    Constraint::Enum,
                    format!(
                        "Invalid {name} value '{}'. Supported values: {}",
                        shortened(value),
                        words.join(", ")
                    ),
                );
            }
            if bound("minLength").is_some() && value.is_empty() {
                return complain(Constraint::MinLength, format!("{name} must not be empty"));
            }
            match bound("maxLength") {
                Some(max) if max < value.chars().count() as u64 => complain(
                    Constraint::MaxLength,
                    format!("{name} is too long; at most {max} characters are allowed"),
                ),
                _ => Ok(()),
            }
        }
    }
}

/// A value as it may stand in a sentence.
fn shortened(value: &str) -> String {
    if value.chars().count() <= 100 {
        return value.to_owned();
    }
    value.chars().take(100).chain(['…']).collect()
}

/// Decodes `%41` and `+`; `None` if it is not that, or not UTF-8 afterwards.
fn decode(text: &str) -> Option<String> {
    let mut bytes = text.bytes();
    let mut decoded = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        decoded.push(match byte {
            b'+' => b' ',
            b'%' => {
                let digit = |byte: u8| char::from(byte).to_digit(16);
                let (high, low) = (digit(bytes.next()?)?, digit(bytes.next()?)?);
                u8::try_from(high * 16 + low).ok()?
            }
            other => other,
        });
    }
    String::from_utf8(decoded).ok()
}

#[cfg(test)]
mod tests;
