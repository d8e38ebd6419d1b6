//! What is found in a field, and what it is compared with.

use crate::field::quotable;
use jiff::Timestamp;
use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt::{self, Write};
use uuid::Uuid;
use uuid::fmt::Hyphenated;

/// What a field may be compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    /// Anything: the stored value has its own type.
    Any,
    Number,
    Time,
    /// One of a few words.
    Word(Words),
    /// True, False or Unknown.
    Tri,
}

/// A closed set of words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Words {
    /// What they are: `phase`.
    pub(super) noun: &'static str,
    /// The words.
    pub(super) all: &'static [&'static str],
    /// Old spellings of some.
    pub(super) old: &'static [(&'static str, &'static str)],
    /// Whether capitals matter.
    pub(super) exact: bool,
}

impl Words {
    /// Reads one of the words.
    ///
    /// # Errors
    /// The sentence that lists them.
    pub(super) fn read(&self, text: &str) -> Result<&'static str, String> {
        let text = self.old.iter().find(|(old, _)| *old == text).map_or(text, |(_, new)| new);
        let same = |word: &&&str| {
            if self.exact { **word == text } else { word.eq_ignore_ascii_case(text) }
        };
        self.all.iter().find(same).copied().ok_or_else(|| {
            let (noun, supported) = (self.noun, self.all.join(", "));
            format!("Invalid {noun} value '{}'. Supported values: {supported}", quotable(text))
        })
    }
}

/// Room to write an id without asking for memory.
pub(super) struct Buffer([u8; Hyphenated::LENGTH]);

impl Buffer {
    pub(super) const fn new() -> Self {
        Self([0; Hyphenated::LENGTH])
    }

    pub(super) fn id(&mut self, id: Uuid) -> &str {
        id.as_hyphenated().encode_lower(&mut self.0)
    }
}

/// What something has in a field.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Found<'a> {
    Text(Cow<'a, str>),
    Number(f64),
    Bool(bool),
    Time(Timestamp),
    /// A list or an object: there, but not comparable with anything.
    Other,
    /// Several at once, at least one: a test holds if it holds for any of them.
    Several(Vec<Found<'a>>),
}

/// What a field is compared with.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Scalar {
    Text(String),
    Number(f64),
    Bool(bool),
    Time(Timestamp),
}

impl<'a> Found<'a> {
    /// A text, if there is any.
    pub(super) fn text_of(text: &'a str) -> Option<Self> {
        (!text.is_empty()).then_some(Found::Text(Cow::Borrowed(text)))
    }

    /// Several at once, if there are any.
    pub(super) fn several(found: impl Iterator<Item = Found<'a>>) -> Option<Self> {
        let found: Vec<_> = found.collect();
        (!found.is_empty()).then_some(Found::Several(found))
    }

    /// How this stands to a value; `None` if the two cannot be compared.
    pub(super) fn compare(&self, value: &Scalar) -> Option<Ordering> {
        match (self, value) {
            (Found::Text(found), Scalar::Text(value)) => Some(found.as_ref().cmp(value)),
            (Found::Text(found), Scalar::Number(value)) => {
                let found: f64 = found.parse().ok()?;
                // "inf" and "nan" are words, not amounts.
                if found.is_finite() { found.partial_cmp(value) } else { None }
            }
            (Found::Text(found), Scalar::Bool(value)) => {
                found.parse().ok().map(|found: bool| found.cmp(value))
            }
            (Found::Number(found), Scalar::Number(value)) => found.partial_cmp(value),
            (Found::Bool(found), Scalar::Bool(value)) => Some(found.cmp(value)),
            (Found::Time(found), Scalar::Time(value)) => Some(found.cmp(value)),
            (Found::Number(_) | Found::Bool(_), Scalar::Text(value)) => {
                self.text().map(|found| found.as_ref().cmp(value))
            }
            (
                Found::Number(_)
                | Found::Bool(_)
                | Found::Time(_)
                | Found::Other
                | Found::Several(_),
                Scalar::Text(_) | Scalar::Number(_) | Scalar::Bool(_) | Scalar::Time(_),
            )
            | (Found::Text(_), Scalar::Time(_)) => None,
        }
    }

    /// The order of two finds in the same field; unlike types stay as they are.
    pub(super) fn order(&self, other: &Found<'_>) -> Ordering {
        match (self, other) {
            (Found::Text(a), Found::Text(b)) => a.cmp(b),
            (Found::Number(a), Found::Number(b)) => a.total_cmp(b),
            (Found::Bool(a), Found::Bool(b)) => a.cmp(b),
            (Found::Time(a), Found::Time(b)) => a.cmp(b),
            _ => Ordering::Equal,
        }
    }

    /// As text, for what can be read as one.
    pub(super) fn text(&self) -> Option<Cow<'_, str>> {
        match self {
            Found::Text(text) => Some(Cow::Borrowed(text)),
            Found::Number(value) => Some(Cow::Owned(value.to_string())),
            Found::Bool(value) => Some(Cow::Borrowed(if *value { "true" } else { "false" })),
            Found::Time(_) | Found::Other | Found::Several(_) => None,
        }
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scalar::Text(text) => write_quoted(f, text),
            Scalar::Number(value) if *value == 0.0 => f.write_str("0"),
            // Outside this range, plain digits would fill the line.
            Scalar::Number(value) if (1e-6..1e15).contains(&value.abs()) => write!(f, "{value}"),
            Scalar::Number(value) => write!(f, "{value:e}"),
            Scalar::Bool(value) => write!(f, "{value}"),
            Scalar::Time(time) => write!(f, "'{time}'"),
        }
    }
}

pub(super) fn write_quoted(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    f.write_char('\'')?;
    for c in text.chars() {
        if matches!(c, '\'' | '\\') {
            f.write_char('\\')?;
        }
        f.write_char(c)?;
    }
    f.write_char('\'')
}
