//! What rules are written in: CEL with some variables and functions, and no others.

use crate::limits::Name;
use argosy_core::nearest::nearest;
use cel::common::types::{CelList, CelMap, CelMapKey, DYN_TYPE};
use cel::common::value::{CowVal, Val};
use cel::{Env, ExecutionError};
use std::sync::{Arc, LazyLock};

/// The names that a kind of rule may use, besides CEL's own.
#[derive(Debug)]
pub(crate) struct Language {
    pub(crate) variables: &'static [&'static str],
    /// Functions, and how many steps one call may take at most.
    pub(crate) functions: &'static [(&'static str, u64)],
}

/// What every rule may call. No `matches`: the interpreter would compile a regular expression at each
/// evaluation, which can cost more than any bill says.
const FUNCTIONS: [&str; 26] = [
    "bool",
    "bytes",
    "contains",
    "double",
    "duration",
    "dyn",
    "endsWith",
    "getDate",
    "getDayOfMonth",
    "getDayOfWeek",
    "getFullYear",
    "getHours",
    "getMinutes",
    "getMonth",
    "getSeconds",
    "hasValue",
    "int",
    "orValue",
    "size",
    "startsWith",
    "string",
    "timestamp",
    "type",
    "uint",
    "value",
    "or",
];
/// Names of types are values: `type(x) == string`.
const TYPES: [&str; 10] =
    ["bool", "bytes", "double", "int", "list", "map", "null_type", "string", "type", "uint"];

impl Language {
    /// How many steps the name stands for.
    ///
    /// # Errors
    /// Nobody knows it: a sentence with the nearest that is known.
    pub(crate) fn steps(&self, name: Name<'_>) -> Result<u64, String> {
        let own = self.functions.iter().map(|(name, _)| *name);
        let (noun, name, known): (_, _, Vec<&str>) = match name {
            Name::Variable(name) if TYPES.contains(&name) => return Ok(1),
            // Operators: `_+_`, `!_`, `@in`.
            Name::Function(name) if !name.starts_with(|c: char| c.is_ascii_alphabetic()) => {
                return Ok(1);
            }
            Name::Variable(name) => ("variable", name, self.variables.to_vec()),
            Name::Function(name) => match self.functions.iter().find(|(own, _)| *own == name) {
                Some((_, steps)) => return Ok(*steps),
                None => ("function", name, FUNCTIONS.into_iter().chain(own).collect()),
            },
        };
        if known.contains(&name) {
            return Ok(1);
        }
        Err(match nearest(name, known.iter().copied()) {
            Some(meant) => format!("unknown {noun} `{name}`; did you mean `{meant}`?"),
            None => format!("unknown {noun} `{name}`; known are {}", known.join(", ")),
        })
    }
}

/// The function that gives a map's keys in order, and leaves anything else as it is. No text can name
/// it.
pub(crate) const SORTED: &str = "@sorted";

/// CEL and `SORTED`. Made once: that takes longer than a rule does.
pub(crate) static ENV: LazyLock<Arc<Env>> = LazyLock::new(|| {
    let mut env = Env::stdlib();
    env.add_overload(SORTED, "sorted_dyn", vec![DYN_TYPE], sorted)
        .expect("the standard functions have no such name");
    Arc::new(env)
});

/// The keys of a map in order; anything else as it is.
fn sorted<'b, 'v>(args: Vec<CowVal<'b, 'v>>) -> Result<CowVal<'b, 'v>, ExecutionError> {
    let [range] = <[CowVal<'b, 'v>; 1]>::try_from(args)
        .map_err(|args| ExecutionError::invalid_argument_count(1, args.len()))?;
    let keys: Vec<Box<dyn Val + 'v>> = match range.downcast_ref::<CelMap<'v>>() {
        None => return Ok(range),
        Some(map) => {
            let mut keys: Vec<&CelMapKey<'v>> = map.inner().keys().collect();
            keys.sort();
            keys.into_iter().map(|key| key.inner().clone_as_boxed()).collect()
        }
    };
    Ok(CowVal::owned(CelList::from(keys)))
}
