//! What can be searched for, and the table of fields each of them has.

use super::value::{Buffer, Found, Type};
use crate::field::quotable;
use crate::label::is_key;
use crate::nearest::nearest;
use std::cmp::Ordering;
use std::fmt;

/// Something that can be searched for: it has a table of fields. The set is closed.
#[expect(private_bounds, reason = "nobody outside can add a table")]
pub trait Searchable: Sized {
    /// One of them, with what belongs to it.
    type Item<'a>: Copy;

    /// Its fields.
    type Field: FieldOf<Noun = Self>;

    /// How a list is ordered that nobody ordered: fields, and whether the largest comes first.
    fn usual_order() -> Vec<(Self::Field, bool)>;

    /// The last word of every order: no two are equal.
    fn tie(a: Self::Item<'_>, b: Self::Item<'_>) -> Ordering;
}

/// One thing that every item may have. Printed, it is its name.
pub(super) trait FieldOf: Clone + fmt::Debug + fmt::Display + PartialEq {
    /// Whose field it is.
    type Noun: Searchable<Field = Self>;

    /// What one can sort by.
    const SORTABLE: &'static [&'static str];

    /// Reads a field's name.
    ///
    /// # Errors
    /// A sentence: which part is not known, and what is.
    fn parse(name: &str) -> Result<Self, String>;

    /// The field with exactly this name.
    fn named(name: &str) -> Option<Self>;

    /// The field of a label.
    fn of_label(key: &str) -> Self;

    /// The key, if it is a label.
    fn label(&self) -> Option<&str>;

    /// What it may be compared with.
    fn type_of(&self) -> Type;

    /// What an item has in this field; `None` if it has nothing.
    fn find<'i: 'b, 'b>(&self, item: ItemOf<'i, Self>, buffer: &'b mut Buffer)
    -> Option<Found<'b>>;
}

/// What a field is looked up in.
pub(super) type ItemOf<'a, F> = <<F as FieldOf>::Noun as Searchable>::Item<'a>;

/// The field with exactly this name.
pub(super) fn named<F: Clone>(name: &str, names: &[(&str, F)]) -> Option<F> {
    names.iter().find(|(known, _)| *known == name).map(|(_, field)| field.clone())
}

/// The key of a label, as it stands behind `labels.`.
pub(super) fn parse_label(key: &str) -> Result<String, String> {
    if is_key(key) {
        Ok(key.to_owned())
    } else {
        Err(format!("`{}` cannot be a label's key", quotable(key)))
    }
}

/// The sentence about a name nobody knows: the nearest, or all of them. `heads` are the words that may
/// stand before a dot, `more` says what stands behind them.
pub(super) fn unknown<F>(name: &str, names: &[(&str, F)], heads: &[&str], more: &str) -> String {
    let shown = quotable(name);
    let known = names.iter().map(|(known, _)| *known);
    if let Some(meant) = nearest(name, known.clone()) {
        return format!("unknown field `{shown}`; did you mean `{meant}`?");
    }
    if let Some((head, rest)) = name.split_once('.')
        && let Some(meant) = nearest(head, heads.iter().copied())
        && meant != head
    {
        return format!("unknown field `{shown}`; did you mean `{meant}.{}`?", quotable(rest));
    }
    let known: Vec<&str> = known.collect();
    format!("unknown field `{shown}`; known are {}, {more}", known.join(", "))
}
