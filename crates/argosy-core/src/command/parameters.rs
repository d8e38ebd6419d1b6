//! What a command may be given along, by kind: a closed list of names, each with its type.
//!
//! Nothing a person types here can reach a shell: a value that is not a word of a list, a whole number
//! in a range or a boolean is refused before a node ever sees it (K15).

use super::{CommandKind, Order, PARAMETER_LEN_MAX, PARAMETERS_MAX, REASON_LEN_MAX, Refused, cut};
use crate::field::{Constraint, FieldError, quotable};
use crate::nearest::nearest;
use crate::node::settings::PoolSettings;
use jiff::SignedDuration;
use std::ops::RangeInclusive;

/// The diagnostics there are. `all` is what Navarch's daemon runs if nobody says which.
const TESTS: &[&str] = &["quick", "memory", "bandwidth", "compute", "stress", "all"];

/// How long a diagnostic may run. An hour of stress shows what a day of it would.
const TEST_S: RangeInclusive<i64> = 1..=3600;

/// Which GPU: more than any machine has.
const TEST_GPU: RangeInclusive<i64> = 0..=63;

/// How many products or copies: what is not found in so many is not found by more.
const TEST_RUNS: RangeInclusive<i64> = 1..=10_000;

/// How long a drain may take: a training run that checkpoints once a day, and then some.
const DRAIN_S: RangeInclusive<i64> = 1..=7 * 24 * 3600;

/// What a parameter's value must be.
enum Form {
    Boolean,
    OneOf(&'static [&'static str]),
    Seconds(RangeInclusive<i64>),
    Whole(RangeInclusive<i64>),
    /// A share of the whole, from 0.01 to 1.
    Share,
}

/// An order that can be given.
pub(super) struct Checked {
    /// With the parameters as the node gets them.
    pub(super) order: Order,
    /// How long the drain may take; `Some` for a drain and nothing else.
    pub(super) drain_for: Option<SignedDuration>,
}

/// The parameters of a kind.
const fn known(kind: CommandKind) -> &'static [(&'static str, Form)] {
    match kind {
        CommandKind::Cordon | CommandKind::Uncordon => &[],
        CommandKind::Drain => &[("timeout", Form::Seconds(DRAIN_S)), ("force", Form::Boolean)],
        // Navarch's documents say `type`, its daemon says `test`.
        CommandKind::RunDiagnostic => &[
            ("test", Form::OneOf(TESTS)),
            ("type", Form::OneOf(TESTS)),
            ("seconds", Form::Seconds(TEST_S)),
            ("gpu", Form::Whole(TEST_GPU)),
            ("runs", Form::Whole(TEST_RUNS)),
            ("fraction", Form::Share),
            ("force", Form::Boolean),
        ],
        CommandKind::Terminate => &[("exit", Form::Boolean), ("force", Form::Boolean)],
    }
}

/// Checks reason and parameters, every complaint at once, and fills in what a drain needs to know.
pub(super) fn check(mut order: Order, settings: &PoolSettings) -> Result<Checked, Refused> {
    let mut errors = Vec::new();
    if PARAMETERS_MAX < order.parameters.len() {
        let count = order.parameters.len();
        let message = format!("{count} parameters were sent; at most {PARAMETERS_MAX} are allowed");
        let error = FieldError::new("parameters", Constraint::Max, message);
        return Err(Refused::Invalid(vec![error]));
    }
    // Where Navarch's clients put it.
    if let Some(reason) = order.parameters.remove("reason")
        && order.reason.is_empty()
    {
        order.reason = reason;
    }
    if order.automatic {
        // Ours quote kernel lines and nodes' messages, which may be anything.
        let plain = order.reason.replace(char::is_control, " ");
        order.reason = cut(&plain);
    } else {
        errors.extend(check_reason(&order.reason));
    }
    for (name, value) in &order.parameters {
        errors.extend(check_one(order.kind, name, value));
    }
    if order.parameters.contains_key("test") && order.parameters.contains_key("type") {
        let message = "`test` and `type` are two names of one parameter; give one of them";
        errors.push(FieldError::new("parameters.type", Constraint::Unique, message));
    }
    let drain_for = match order.kind {
        CommandKind::Drain => drain_time(&order, settings).map_err(|error| errors.push(error)).ok(),
        CommandKind::Cordon
        | CommandKind::Uncordon
        | CommandKind::RunDiagnostic
        | CommandKind::Terminate => {
            if order.drain_for.is_some() {
                let message = format!("{} has no deadline; only DRAIN has", order.kind.as_str());
                errors.push(FieldError::new("deadline", Constraint::Format, message));
            }
            None
        }
    };
    if !errors.is_empty() {
        return Err(Refused::Invalid(errors));
    }
    if let Some(time) = drain_for {
        // As it was promised when it was asked for, however the settings change meanwhile.
        let parameters = &mut order.parameters;
        parameters.insert("timeout".to_owned(), time.as_secs().to_string());
        parameters.entry("force".to_owned()).or_insert_with(|| settings.drain_force.to_string());
    }
    Ok(Checked { order, drain_for })
}

fn check_reason(reason: &str) -> Option<FieldError> {
    if REASON_LEN_MAX < reason.len() {
        let len = reason.len();
        let message =
            format!("the reason is {len} bytes long; at most {REASON_LEN_MAX} are allowed");
        return Some(FieldError::new("reason", Constraint::MaxLength, message));
    }
    reason.contains(char::is_control).then(|| {
        let message = "the reason must be one line of text, without control characters";
        FieldError::new("reason", Constraint::Pattern, message)
    })
}

fn check_one(kind: CommandKind, name: &str, value: &str) -> Option<FieldError> {
    let field = format!("parameters.{}", quotable(name));
    let complain = |constraint, message| Some(FieldError::new(field.clone(), constraint, message));
    if PARAMETER_LEN_MAX < name.len().max(value.len()) {
        let message =
            format!("a parameter is longer than the {PARAMETER_LEN_MAX} bytes that are allowed");
        return complain(Constraint::MaxLength, message);
    }
    let known = known(kind);
    let Some((_, form)) = known.iter().find(|(known, _)| *known == name) else {
        return complain(Constraint::Enum, unknown(kind, name));
    };
    let quoted = quotable(value);
    match form {
        Form::Boolean if matches!(value, "true" | "false") => None,
        Form::Boolean => complain(
            Constraint::Format,
            format!("parameter {name} must be `true` or `false`, not `{quoted}`"),
        ),
        Form::OneOf(words) if words.contains(&value) => None,
        Form::OneOf(words) => complain(
            Constraint::Enum,
            format!("parameter {name} must be one of {}, not `{quoted}`", words.join(", ")),
        ),
        Form::Seconds(range) if whole(value).is_some_and(|s| range.contains(&s)) => None,
        Form::Seconds(range) => {
            let (min, max) = (range.start(), range.end());
            let message = format!(
                "parameter {name} must be a whole number of seconds from {min} to {max}, not \
                 `{quoted}`"
            );
            complain(Constraint::Format, message)
        }
        Form::Whole(range) if whole(value).is_some_and(|n| range.contains(&n)) => None,
        Form::Whole(range) => {
            let (min, max) = (range.start(), range.end());
            let message = format!(
                "parameter {name} must be a whole number from {min} to {max}, not `{quoted}`"
            );
            complain(Constraint::Format, message)
        }
        Form::Share if share(value) => None,
        Form::Share => complain(
            Constraint::Format,
            format!("parameter {name} must be a number from 0.01 to 1, not `{quoted}`"),
        ),
    }
}

/// Digits and one point: `1e-1`, `.5` and `inf` are somebody's mistake.
fn share(value: &str) -> bool {
    let plain = value.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let begins = value.starts_with(|first: char| first.is_ascii_digit());
    plain && begins && value.parse::<f64>().is_ok_and(|share| (0.01..=1.0).contains(&share))
}

fn unknown(kind: CommandKind, name: &str) -> String {
    let word = kind.as_str();
    let quoted = quotable(name);
    if kind == CommandKind::Cordon && name == "uncordon" {
        return "to take a cordon back, issue UNCORDON".to_owned();
    }
    let known = known(kind);
    let names = || known.iter().map(|(name, _)| *name);
    if known.is_empty() {
        return format!("{word} has no parameters; `{quoted}` is not known");
    }
    match nearest(name, names()) {
        Some(meant) => format!("{word} has no parameter `{quoted}`; is `{meant}` meant?"),
        None => {
            let names: Vec<_> = names().collect();
            format!("{word} has no parameter `{quoted}`; it has {}", names.join(", "))
        }
    }
}

/// Only digits: `+5`, ` 5` and `5s` are somebody's mistake.
fn whole(text: &str) -> Option<i64> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    if digits { text.parse().ok() } else { None }
}

/// How long a drain may take: what was asked for, else what the pool says.
fn drain_time(order: &Order, settings: &PoolSettings) -> Result<SignedDuration, FieldError> {
    let named = order.parameters.get("timeout").and_then(|timeout| whole(timeout));
    let asked = order.drain_for.map(|time| time.as_secs());
    if let (Some(named), Some(asked)) = (named, asked)
        && named != asked
    {
        let message = format!("`timeout` says {named} s, the deadline {asked} s; give one of them");
        return Err(FieldError::new("parameters.timeout", Constraint::Unique, message));
    }
    let Some(time_s) = asked else {
        return Ok(named.map_or(settings.drain_for, SignedDuration::from_secs));
    };
    if DRAIN_S.contains(&time_s) {
        return Ok(SignedDuration::from_secs(time_s));
    }
    let (min, max) = (DRAIN_S.start(), DRAIN_S.end());
    let message = format!("a drain may take from {min} to {max} seconds, not {time_s}");
    Err(FieldError::new("deadline", Constraint::Max, message))
}
