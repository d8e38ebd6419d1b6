//! Reads a JSON object member by member, and collects one complaint a field instead of stopping at the
//! first.

use super::{Constraint, FieldError, QUOTE_LEN_MAX, quotable};
use crate::nearest::nearest;
use crate::span::{self, Written};
use jiff::SignedDuration;
use serde_json::{Map, Value};
use std::fmt;

/// The most complaints about one object and what is in it: after these, nobody reads on.
const COMPLAINTS_MAX: usize = 64;

/// An object that is being read.
///
/// Flow: `open`, one call a member, `close`. A member with a complaint reads as if it were not there,
/// so that the rest is still checked; `close` is what says whether anything was wrong.
pub(crate) struct Reader<'a> {
    members: &'a Map<String, Value>,
    field: String,
    known: Vec<&'static str>,
    complaints: Vec<FieldError>,
    strict: bool,
}

impl<'a> Reader<'a> {
    /// Begins with an object.
    pub(crate) fn open(value: &'a Value, field: &str) -> Result<Self, Vec<FieldError>> {
        let Value::Object(members) = value else {
            return Err(vec![FieldError::wrong_type(field, "an object", value)]);
        };
        let (known, complaints) = (Vec::new(), Vec::new());
        Ok(Self { members, field: field.to_owned(), known, complaints, strict: true })
    }

    /// Where a member is.
    pub(crate) fn path(&self, name: &str) -> String {
        format!("{}.{name}", self.field)
    }

    /// A member as it was sent; from now on it is a known one.
    pub(crate) fn get(&mut self, name: &'static str) -> Option<&'a Value> {
        self.known.push(name);
        self.members.get(name)
    }

    /// Whether a member was sent.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.members.contains_key(name)
    }

    /// A complaint about a member, with what was sent.
    pub(crate) fn complain(&mut self, name: &str, rule: Constraint, message: impl fmt::Display) {
        let field = self.path(name);
        let complaint = FieldError::new(&field, rule, format!("{field} {message}"));
        let complaint = match self.members.get(name).filter(|value| is_short(value)) {
            Some(value) => complaint.with_value(value.clone()),
            None => complaint,
        };
        self.complaints.push(complaint);
    }

    /// A complaint about a member whose value may be a secret.
    pub(crate) fn complain_of_secret(&mut self, name: &str, rule: Constraint, message: &str) {
        let field = self.path(name);
        let complaint = FieldError::new(&field, rule, format!("{field} {message}"));
        self.complaints.push(complaint);
    }

    /// Complaints of what is deeper.
    pub(crate) fn take<T>(&mut self, read: Result<T, Vec<FieldError>>) -> Option<T> {
        read.map_err(|complaints| self.complaints.extend(complaints)).ok()
    }

    /// A number in this range.
    pub(crate) fn number(&mut self, name: &'static str, (min, max): (f64, f64)) -> Option<f64> {
        let value = self.get(name)?;
        let Some(number) = value.as_f64() else {
            self.wrong_type(name, "a number", value);
            return None;
        };
        let rule = if number < min { Constraint::Min } else { Constraint::Max };
        if !(min..=max).contains(&number) {
            self.complain(name, rule, format_args!("must be between {min} and {max}"));
            return None;
        }
        Some(number)
    }

    /// A whole number in this range.
    pub(crate) fn count(&mut self, name: &'static str, (min, max): (u32, u32)) -> Option<u32> {
        let value = self.get(name)?;
        if !value.is_number() {
            self.wrong_type(name, "a whole number", value);
            return None;
        }
        let number = value.as_i64().filter(|n| (i64::from(min)..=i64::from(max)).contains(n));
        if let Some(number) = number.and_then(|number| u32::try_from(number).ok()) {
            return Some(number);
        }
        let low = value.as_f64().is_some_and(|number| number < f64::from(min));
        let rule = match value.as_i64() {
            None => Constraint::Format,
            Some(_) if low => Constraint::Min,
            Some(_) => Constraint::Max,
        };
        self.complain(name, rule, format_args!("must be a whole number from {min} to {max}"));
        None
    }

    /// A length of time in this range, written like `10m`.
    pub(crate) fn span(
        &mut self,
        name: &'static str,
        (min, max): (SignedDuration, SignedDuration),
    ) -> Option<SignedDuration> {
        let text = self.text(name)?;
        match span::parse(text) {
            Ok(length) if min <= length && length <= max => Some(length),
            Ok(length) => {
                let rule = if length < min { Constraint::Min } else { Constraint::Max };
                let (min, max) = (Written(min), Written(max));
                self.complain(name, rule, format_args!("must be between {min} and {max}"));
                None
            }
            Err(message) => {
                self.complain(name, Constraint::Format, format_args!("is wrong: {message}"));
                None
            }
        }
    }

    /// Text.
    pub(crate) fn text(&mut self, name: &'static str) -> Option<&'a str> {
        let value = self.get(name)?;
        if value.as_str().is_none() {
            self.wrong_type(name, "a string", value);
        }
        value.as_str()
    }

    /// One of a few words.
    pub(crate) fn choice<T: Copy>(
        &mut self,
        name: &'static str,
        words: &[(&'static str, T)],
    ) -> Option<T> {
        let text = self.text(name)?;
        let found = words.iter().find(|(word, _)| *word == text);
        if found.is_none() {
            let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            let message = format!(
                "must be one of {}, not `{}`{}",
                words.join(", "),
                quotable(text),
                meant(text, words.iter().copied())
            );
            self.complain(name, Constraint::Enum, message);
        }
        found.map(|(_, choice)| *choice)
    }

    /// A list with at least one and at most `len_max` items, each read by `read` under its own path.
    pub(crate) fn list<T>(
        &mut self,
        name: &'static str,
        len_max: usize,
        mut read: impl FnMut(&'a Value, &str) -> Result<T, Vec<FieldError>>,
    ) -> Option<Vec<T>> {
        let value = self.get(name)?;
        let Value::Array(items) = value else {
            self.wrong_type(name, "a list", value);
            return None;
        };
        if items.is_empty() || len_max < items.len() {
            let rule = if items.is_empty() { Constraint::Min } else { Constraint::Max };
            let len = items.len();
            self.complain(name, rule, format_args!("must have 1 to {len_max} items, not {len}"));
            return None;
        }
        let path = self.path(name);
        let mut list = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            let item = read(item, &format!("{path}[{index}]"));
            list.extend(self.take(item));
        }
        (list.len() == items.len()).then_some(list)
    }

    /// Stops asking which members are unknown: what would be right is not clear any more.
    pub(crate) fn forgive_unknown(&mut self) {
        self.strict = false;
    }

    /// Complains about members that nobody asked for, and says whether all was well.
    pub(crate) fn close(mut self) -> Result<(), Vec<FieldError>> {
        let unknown = self.members.keys().filter(|name| !self.known.contains(&name.as_str()));
        if self.strict {
            for name in unknown {
                let field = format!("{}.{}", self.field, quotable(name));
                let meant = meant(name, self.known.iter().copied());
                let message = format!("{field} is not one of {}{meant}", self.known.join(", "));
                self.complaints.push(FieldError::new(field, Constraint::Enum, message));
            }
        }
        self.complaints.truncate(COMPLAINTS_MAX);
        if self.complaints.is_empty() { Ok(()) } else { Err(self.complaints) }
    }

    fn wrong_type(&mut self, name: &str, wanted: &str, sent: &Value) {
        self.complaints.push(FieldError::wrong_type(self.path(name), wanted, sent));
    }
}

/// `; did you mean x?`, if a word is close. Case, `_` and `-` do not count: other programs' files write
/// `scale_up_at`.
pub(crate) fn meant<'a>(word: &str, words: impl Iterator<Item = &'a str> + Clone) -> String {
    let plain = |word: &str| word.replace(['_', '-'], "").to_lowercase();
    // What is long is no slip of the finger, and takes long to compare.
    let word: String = word.chars().take(QUOTE_LEN_MAX).collect();
    words
        .clone()
        .find(|candidate| plain(candidate) == plain(&word))
        .or_else(|| nearest(&word, words))
        .map(|meant| format!("; did you mean {meant}?"))
        .unwrap_or_default()
}

fn is_short(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => true,
        Value::String(text) => text.len() <= QUOTE_LEN_MAX,
        Value::Array(_) | Value::Object(_) => false,
    }
}

#[cfg(test)]
mod tests;
