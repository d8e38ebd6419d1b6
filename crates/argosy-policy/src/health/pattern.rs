//! Regular expressions in rules: `event.message.matches('off the bus')`.
//!
//! The interpreter compiles a pattern each time it meets one, however large it becomes. So a pattern is
//! a literal, compiled once with the rule, to a limited size; matching then takes time in proportion to
//! the text, whatever the pattern. As in Go's `regexp`, which Navarch's policies were written for,
//! `\d`, `\w` and `\b` mean ASCII.

use argosy_core::health::MESSAGE_LEN_MAX;
use cel::ExecutionError;
use cel::common::traits::Indexer;
use cel::common::types::{CelBool, CelString, DYN_TYPE, Type};
use cel::common::value::{CowVal, Val};
use regex::bytes::{Regex, RegexBuilder};

/// The longest pattern, in bytes. One that is longer looks for too many things at once.
pub(crate) const PATTERN_LEN_MAX: usize = 256;
/// The largest machine that a pattern may become, in bytes: `(a{50}){50}` is short and enormous. A dozen
/// words that may be written large or small take half of it.
const MACHINE_BYTES_MAX: usize = 8 << 10;
/// How deep groups may nest in a pattern.
const NEST_MAX: u32 = 16;
/// The longest text that is matched, in bytes: no message or kernel line is longer.
const TEXT_LEN_MAX: usize = MESSAGE_LEN_MAX;
/// How many steps one match may take. The worst of 20,000 random patterns took a millisecond over the
/// longest text, which is as long as 30,000 steps.
pub(crate) const STEPS: u64 = 40_000;

/// A compiled pattern, to be indexed with a text: `text.matches('…')` is `@3[text]`, once compiled.
#[derive(Clone, Debug)]
pub(crate) struct Pattern(Regex);

impl Pattern {
    /// # Errors
    /// A sentence: it is no pattern, or too large.
    pub(crate) fn compile(text: &str) -> Result<Self, String> {
        if PATTERN_LEN_MAX < text.len() {
            let len = text.len();
            return Err(format!(
                "the pattern is {len} bytes long; at most {PATTERN_LEN_MAX} are allowed"
            ));
        }
        let mut builder = RegexBuilder::new(text);
        builder.unicode(false).size_limit(MACHINE_BYTES_MAX).nest_limit(NEST_MAX);
        builder.build().map(Self).map_err(|error| {
            if matches!(error, regex::Error::CompiledTooBig(_)) {
                return "the pattern becomes too large; repeat less in it".to_owned();
            }
            // The last line says what; those before draw a picture of where.
            let text = error.to_string();
            let last = text.lines().last().unwrap_or_default();
            format!("not a pattern: {}", last.trim_start_matches("error: "))
        })
    }
}

impl Val for Pattern {
    fn get_type(&self) -> &Type {
        &DYN_TYPE
    }

    fn cel_type() -> &'static Type {
        &DYN_TYPE
    }

    fn as_indexer<'b, 'v>(&'b self) -> Option<&'b (dyn Indexer + 'v)>
    where
        Self: 'v,
    {
        Some(self)
    }

    fn clone_as_boxed<'v>(&self) -> Box<dyn Val + 'v>
    where
        Self: 'v,
    {
        Box::new(self.clone())
    }
}

impl Indexer for Pattern {
    fn get<'b, 'v>(&'b self, text: &dyn Val) -> Result<CowVal<'b, 'v>, ExecutionError>
    where
        Self: 'v,
    {
        let fail = |message: &str| ExecutionError::function_error("matches", message);
        let text = text.downcast_ref::<CelString<'_>>().ok_or_else(|| fail("needs text"))?.inner();
        if TEXT_LEN_MAX < text.len() {
            return Err(fail(&format!("the text is longer than {TEXT_LEN_MAX} bytes")));
        }
        Ok(CowVal::owned(CelBool::from(self.0.is_match(text.as_bytes()))))
    }

    fn steal<'v>(self: Box<Self>, text: &dyn Val) -> Result<Box<dyn Val + 'v>, ExecutionError>
    where
        Self: 'v,
    {
        (*self).get(text).map(CowVal::into_owned)
    }
}
