//! The parameters of commands: a closed list of names, each with its type (K15).
//!
//! The control plane checks the same. It is checked again here because a node obeys whoever holds the
//! control plane's key, and nothing that anybody types may reach a shell.

use super::{Kind, Order};
use crate::diagnose::{self, Plan};

/// What is to be done, with its parameters understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Take no new work.
    Cordon,
    /// Take work again.
    Uncordon,
    /// Wait until nothing runs; end what still runs at the deadline if `force`.
    Drain {
        /// Whether to.
        force: bool,
    },
    /// Run a diagnostic.
    Diagnose(Plan),
    /// Stop; the process, too, if `exit`.
    Terminate {
        /// Whether to.
        exit: bool,
    },
}

/// Why the parameters of a command are refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadParameter {
    /// A name nobody knows.
    #[error("parameter `{name}` is not known; {kind:?} has {known}")]
    Unknown {
        /// Of which command.
        kind: Kind,
        /// The name, as far as it can be shown.
        name: String,
        /// What there is.
        known: &'static str,
    },
    /// A value that is not one.
    #[error("parameter `{name}` must be {wanted}, not `{value}`")]
    Value {
        /// The name.
        name: &'static str,
        /// What it must be.
        wanted: String,
        /// What it is, as far as it can be shown.
        value: String,
    },
    /// Of a diagnostic.
    #[error(transparent)]
    Diagnostic(#[from] diagnose::BadParameter),
    /// A kind of command that takes no parameters, because nobody knows it.
    #[error("commands of type {0} are not known to this agent; update it")]
    Kind(i32),
}

/// Understands a command.
///
/// # Errors
/// What is wrong with a parameter; nothing is done then.
pub fn parse(order: &Order) -> Result<Action, BadParameter> {
    match order.kind {
        Kind::Cordon => only(order, "none").map(|()| Action::Cordon),
        Kind::Uncordon => only(order, "none").map(|()| Action::Uncordon),
        Kind::Drain => {
            only(order, "timeout, force")?;
            seconds(order, "timeout", 7 * 24 * 3600)?;
            Ok(Action::Drain { force: boolean(order, "force", false)? })
        }
        Kind::RunDiagnostic => Ok(Action::Diagnose(Plan::parse(&order.parameters)?)),
        Kind::Terminate => {
            only(order, "exit, force")?;
            boolean(order, "force", false)?;
            Ok(Action::Terminate { exit: boolean(order, "exit", true)? })
        }
        Kind::Unknown(number) => Err(BadParameter::Kind(number)),
    }
}

/// Refuses parameters of other names.
fn only(order: &Order, known: &'static str) -> Result<(), BadParameter> {
    let takes = |name: &str| known.split(", ").any(|known| known == name);
    match order.parameters.keys().find(|name| !takes(name)) {
        Some(name) => Err(BadParameter::Unknown { kind: order.kind, name: shown(name), known }),
        None => Ok(()),
    }
}

fn boolean(order: &Order, name: &'static str, default: bool) -> Result<bool, BadParameter> {
    match order.parameters.get(name).map(String::as_str) {
        None => Ok(default),
        Some("true") => Ok(true),
        Some("false") => Ok(false),
        Some(value) => Err(BadParameter::Value {
            name,
            wanted: "`true` or `false`".to_owned(),
            value: shown(value),
        }),
    }
}

fn seconds(order: &Order, name: &'static str, most: u64) -> Result<(), BadParameter> {
    let Some(value) = order.parameters.get(name) else { return Ok(()) };
    // Only digits: `+5`, ` 5` and `5s` are somebody's mistake.
    let digits = value.bytes().all(|byte| byte.is_ascii_digit());
    match value.parse::<u64>() {
        Ok(seconds) if digits && (1..=most).contains(&seconds) => Ok(()),
        _ => Err(BadParameter::Value {
            name,
            wanted: format!("a whole number of seconds from 1 to {most}"),
            value: shown(value),
        }),
    }
}

/// A text from outside, short and without anything that could upset a terminal.
fn shown(text: &str) -> String {
    text.chars().filter(|char| !char.is_control()).take(64).collect()
}
