//! The search language: text to a tree, and whether something matches it: a resource, a node, a
//! finding, an instance. They differ in their fields and in nothing else.
//!
//! The user's text is parsed alone and becomes a tree; scope (kind, owner, tenant) and the other
//! filters are further trees, joined by `and`. No text is ever pasted into other text.
//!
//! ```text
//! search  = term { ("and" | "or") term }          "and" binds tighter than "or"
//! term    = "not" term | "(" search ")" | test
//! test    = field ("=" | "==" | "!=" | "<>" | "<" | "<=" | ">" | ">=") value
//!         | field ["not"] ("like" | "ilike") string       "%" any text, "_" one character
//!         | field ["not"] "in" list                       ('a', 'b') or ['a', 'b']
//!         | field ["not"] "between" value "and" value     both ends included
//!         | field "is" ["not"] "null"
//! ```
//!
//! Strings stand in single, double or back quotes. A quote inside is doubled or follows a backslash;
//! a backslash is doubled. In a pattern, a backslash before `%`, `_` or itself makes it plain.
//!
//! What a newcomer gets wrong: a test of something that is not there does not match, even with `!=`
//! or `not in`; only `is null` and a `not` before the whole test do. The same holds for values of
//! another type, so no stored document can make a search fail. Compared with a number, text counts
//! as the number it reads as. Where a node has several (GPUs, findings), a test holds if it holds for
//! any of them: `not xid = 79` and `xid != 79` are not the same.

mod field;
mod finding;
mod instance;
mod lex;
mod like;
mod node;
mod order;
mod parse;
mod resource;
mod value;

use self::field::{FieldOf, ItemOf};
use self::like::Like;
use self::resource::Field;
use self::value::{Buffer, Found, Scalar};
use crate::label::{Labels, is_key, is_value};
use crate::resource::Resource;
use crate::status::Phase;
use std::cmp::Ordering;
use std::fmt;

pub use self::field::Searchable;
pub use self::order::Order;

/// A parsed filter.
///
/// Printed, it is a text that parses to the same filter; the one that matches everything is empty.
#[derive(Clone, Debug, PartialEq)]
pub struct Filter<T: Searchable = Resource>(Tree<T::Field>);

/// Why a text is not a search, with the place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message} (at character {at})")]
pub struct SearchError {
    /// Counted from 1, in characters.
    pub at: usize,
    /// What is wrong and what would be right.
    pub message: String,
}

/// `All` and `Any` never hold one of their own kind, nor fewer than two terms.
#[derive(Clone, Debug, PartialEq)]
enum Tree<F> {
    Everything,
    All(Vec<Tree<F>>),
    Any(Vec<Tree<F>>),
    Not(Box<Tree<F>>),
    Test(Test<F>),
}

#[derive(Clone, Debug, PartialEq)]
struct Test<F> {
    field: F,
    negated: bool,
    check: Check,
}

#[derive(Clone, Debug, PartialEq)]
enum Check {
    Compare(Comparison, Scalar),
    In(Vec<Scalar>),
    Between(Scalar, Scalar),
    Like(Like),
    Null,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// The deepest nesting: parentheses and `not`s around each other. The parser and the evaluation go
/// down one call a level.
const DEPTH_MAX: usize = 16;

/// The most tests in one search, each value of a list counted: each may be asked of everything there
/// is.
const TERMS_MAX: usize = 256;

impl<T: Searchable> Filter<T> {
    /// The longest search text, in bytes: room for every filter a person or a sentinel writes, and
    /// short enough that reading it costs nothing.
    pub const LEN_MAX: usize = 4096;

    /// Matches everything.
    pub fn everything() -> Self {
        Self(Tree::Everything)
    }

    /// Reads a search text; a blank one matches everything.
    ///
    /// # Errors
    /// Where it stops being one, or which field nobody knows (with the nearest).
    pub fn parse(text: &str) -> Result<Self, SearchError> {
        if Self::LEN_MAX < text.len() {
            return Err(SearchError {
                at: text.char_indices().take_while(|(i, _)| *i < Self::LEN_MAX).count(),
                message: format!(
                    "the search is {} bytes long; at most {} are allowed",
                    text.len(),
                    Self::LEN_MAX
                ),
            });
        }
        parse::parse::<T>(text).map(Self)
    }

    /// Both must hold.
    #[must_use]
    pub fn and(self, other: Filter<T>) -> Self {
        Self(Tree::all(vec![self.0, other.0]))
    }

    /// The field of this name is this text. A field nobody knows matches nothing.
    pub fn equals(name: &str, text: &str) -> Self {
        match T::Field::named(name) {
            Some(field) => Self::equal(field, text),
            None => Self(Tree::Not(Box::new(Tree::Everything))),
        }
    }

    /// The label has this value.
    pub fn label(key: &str, value: &str) -> Self {
        Self::equal(T::Field::of_label(key), value)
    }

    /// Reads the `labels=k:v,k:v` form.
    ///
    /// # Errors
    /// The sentence `Invalid label filter format. Expected format: key:value`, or that nothing has so
    /// many labels.
    pub fn labels(text: &str) -> Result<Self, SearchError> {
        let mut terms = Vec::new();
        let mut at = 1;
        for pair in text.split(',') {
            let error = |message: String| Err(SearchError { at, message });
            if terms.len() == Labels::COUNT_MAX {
                return error(format!("more labels than the {} one may have", Labels::COUNT_MAX));
            }
            match pair.trim().split_once(':') {
                Some((key, value)) if is_key(key) && is_value(value) => {
                    terms.push(Self::label(key, value).0);
                }
                Some(_) | None => {
                    let message = "Invalid label filter format. Expected format: key:value";
                    return error(message.to_owned());
                }
            }
            at += pair.chars().count() + 1;
        }
        Ok(Self(Tree::all(terms)))
    }

    /// Labels an item must have for the filter to match, as far as the tree says so plainly: lets a
    /// list start from an index.
    pub fn required_labels(&self) -> impl Iterator<Item = (&str, &str)> {
        let terms = match &self.0 {
            Tree::All(terms) => terms.as_slice(),
            plain @ (Tree::Everything | Tree::Any(_) | Tree::Not(_) | Tree::Test(_)) => {
                std::slice::from_ref(plain)
            }
        };
        terms.iter().filter_map(Tree::label)
    }

    /// Whether an item matches.
    pub fn matches(&self, item: T::Item<'_>) -> bool {
        self.0.matches(item)
    }

    fn equal(field: T::Field, text: &str) -> Self {
        Self::test(field, Check::Compare(Comparison::Equal, Scalar::Text(text.to_owned())))
    }

    fn test(field: T::Field, check: Check) -> Self {
        Self(Tree::Test(Test { field, negated: false, check }))
    }
}

impl Filter {
    /// The phase is one of these.
    pub fn phase_in(phases: &[Phase]) -> Self {
        let phases = phases.iter().map(|phase| Scalar::Text(phase.as_str().to_owned())).collect();
        Self::test(Field::Phase, Check::In(phases))
    }

    /// `spec.provider`, or `spec.platform.type`, is this.
    pub fn provider(provider: &str) -> Self {
        Self::equal(Field::Provider, provider)
    }

    /// `spec.region`, or `spec.platform.<type>.region`, is this.
    pub fn region(region: &str) -> Self {
        Self::equal(Field::Region, region)
    }

    /// The name contains this text, or is it.
    pub fn name(text: &str, exact: bool) -> Self {
        if exact {
            Self::equal(Field::Name, text)
        } else {
            Self::test(Field::Name, Check::Like(Like::containing(text)))
        }
    }
}

impl<F> Tree<F> {
    /// All of these, without needless nesting.
    fn all(terms: Vec<Tree<F>>) -> Tree<F> {
        let mut flat = Vec::with_capacity(terms.len());
        for term in terms {
            match term {
                Tree::Everything => {}
                Tree::All(inner) => flat.extend(inner),
                other @ (Tree::Any(_) | Tree::Not(_) | Tree::Test(_)) => flat.push(other),
            }
        }
        if flat.len() <= 1 { flat.pop().unwrap_or(Tree::Everything) } else { Tree::All(flat) }
    }

    /// Any of these, without needless nesting; there is at least one.
    fn any(terms: Vec<Tree<F>>) -> Tree<F> {
        let mut flat = Vec::with_capacity(terms.len());
        for term in terms {
            match term {
                Tree::Any(inner) => flat.extend(inner),
                other @ (Tree::Everything | Tree::All(_) | Tree::Not(_) | Tree::Test(_)) => {
                    flat.push(other);
                }
            }
        }
        if flat.len() <= 1 { flat.pop().unwrap_or(Tree::Everything) } else { Tree::Any(flat) }
    }
}

impl<F: FieldOf> Tree<F> {
    /// The label this term asks for, if that is all it does.
    fn label(&self) -> Option<(&str, &str)> {
        if let Tree::Test(Test {
            field,
            negated: false,
            check: Check::Compare(Comparison::Equal, Scalar::Text(value)),
        }) = self
        {
            Some((field.label()?, value))
        } else {
            None
        }
    }

    fn matches(&self, item: ItemOf<'_, F>) -> bool {
        match self {
            Tree::Everything => true,
            Tree::All(terms) => terms.iter().all(|term| term.matches(item)),
            Tree::Any(terms) => terms.iter().any(|term| term.matches(item)),
            Tree::Not(term) => !term.matches(item),
            Tree::Test(test) => {
                let mut buffer = Buffer::new();
                test.holds(test.field.find(item, &mut buffer).as_ref())
            }
        }
    }
}

impl<F> Test<F> {
    fn holds(&self, found: Option<&Found<'_>>) -> bool {
        let holds = match (&self.check, found) {
            (Check::Null, found) => Some(found.is_none()),
            (_, None) => None,
            (_, Some(Found::Several(found))) => {
                return found.iter().any(|found| self.holds(Some(found)));
            }
            (Check::Compare(comparison, value), Some(found)) => {
                found.compare(value).map(|ordering| comparison.holds(ordering))
            }
            (Check::In(values), Some(found)) => is_among(found, values),
            (Check::Between(low, high), Some(found)) => found
                .compare(low)
                .zip(found.compare(high))
                .map(|(low, high)| low != Ordering::Less && high != Ordering::Greater),
            (Check::Like(like), Some(found)) => found.text().map(|text| like.matches(&text)),
        };
        holds.is_some_and(|holds| holds != self.negated)
    }
}

/// `None` if nothing in the list can be compared with it.
fn is_among(found: &Found<'_>, values: &[Scalar]) -> Option<bool> {
    let mut orderings = values.iter().filter_map(|value| found.compare(value)).peekable();
    orderings.peek()?;
    Some(orderings.any(Ordering::is_eq))
}

impl Comparison {
    fn holds(self, ordering: Ordering) -> bool {
        match self {
            Comparison::Equal => ordering.is_eq(),
            Comparison::NotEqual => ordering.is_ne(),
            Comparison::Less => ordering.is_lt(),
            Comparison::LessOrEqual => ordering.is_le(),
            Comparison::Greater => ordering.is_gt(),
            Comparison::GreaterOrEqual => ordering.is_ge(),
        }
    }

    const fn as_str(self) -> &'static str {
        match self {
            Comparison::Equal => "=",
            Comparison::NotEqual => "!=",
            Comparison::Less => "<",
            Comparison::LessOrEqual => "<=",
            Comparison::Greater => ">",
            Comparison::GreaterOrEqual => ">=",
        }
    }
}

impl<T: Searchable> fmt::Display for Filter<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<F: fmt::Display> fmt::Display for Tree<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Tree::Everything => Ok(()),
            Tree::All(terms) => write_joined(f, terms, " and ", |f, term| match term {
                Tree::Any(_) => write!(f, "({term})"),
                Tree::Everything | Tree::All(_) | Tree::Not(_) | Tree::Test(_) => term.fmt(f),
            }),
            Tree::Any(terms) => write_joined(f, terms, " or ", |f, term| term.fmt(f)),
            Tree::Not(term) => match **term {
                Tree::All(_) | Tree::Any(_) => write!(f, "not ({term})"),
                Tree::Everything | Tree::Not(_) | Tree::Test(_) => write!(f, "not {term}"),
            },
            Tree::Test(test) => test.fmt(f),
        }
    }
}

impl<F: fmt::Display> fmt::Display for Test<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Test { field, negated, check } = self;
        let not = if *negated { "not " } else { "" };
        match check {
            Check::Compare(comparison, value) => {
                write!(f, "{field} {} {value}", comparison.as_str())
            }
            Check::In(values) => {
                write!(f, "{field} {not}in (")?;
                write_joined(f, values, ", ", |f, value| value.fmt(f))?;
                f.write_str(")")
            }
            Check::Between(low, high) => write!(f, "{field} {not}between {low} and {high}"),
            Check::Like(like) => write!(f, "{field} {not}{like}"),
            Check::Null => write!(f, "{field} is {not}null"),
        }
    }
}

fn write_joined<T>(
    f: &mut fmt::Formatter<'_>,
    items: &[T],
    between: &str,
    write: impl Fn(&mut fmt::Formatter<'_>, &T) -> fmt::Result,
) -> fmt::Result {
    for (i, item) in items.iter().enumerate() {
        if 0 < i {
            f.write_str(between)?;
        }
        write(f, item)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
