//! The parameters of commands: a closed list of names, each with its type (K15).
//!
//! The control plane checks the same. It is checked again here because a node obeys whoever holds the
//! control plane's key, and nothing that anybody types may reach a shell.

use super::{Kind, Order};
use std::fmt;
use std::time::Duration;

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
    Diagnose(Test),
    /// Stop; the process, too, if `exit`.
    Terminate {
        /// Whether to.
        exit: bool,
    },
}

/// The diagnostics there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Test {
    /// Inventory, link width, ECC, clocks.
    Quick,
    /// Patterns over free memory.
    Memory,
    /// Host to device, device to device.
    Bandwidth,
    /// Matrix products, compared bit by bit.
    Compute,
    /// Heat and power under load, for so long.
    Stress(Duration),
    /// All but stress, one after the other.
    All,
}

impl Test {
    /// The names, as they are written.
    pub const NAMES: [&str; 6] = ["quick", "memory", "bandwidth", "compute", "stress", "all"];
    /// How long stress takes if nobody says.
    pub const STRESS: Duration = Duration::from_secs(60);
    /// The longest stress. An hour shows what a day would.
    pub const STRESS_MAX: Duration = Duration::from_secs(3600);

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Test::Quick => "quick",
            Test::Memory => "memory",
            Test::Bandwidth => "bandwidth",
            Test::Compute => "compute",
            Test::Stress(_) => "stress",
            Test::All => "all",
        }
    }

    /// The test of a name; stress takes `stress`, or a minute.
    pub fn parse(name: &str, stress: Option<Duration>) -> Option<Self> {
        match name {
            "quick" => Some(Test::Quick),
            "memory" => Some(Test::Memory),
            "bandwidth" => Some(Test::Bandwidth),
            "compute" => Some(Test::Compute),
            "stress" => Some(Test::Stress(stress.unwrap_or(Self::STRESS))),
            "all" => Some(Test::All),
            _ => None,
        }
    }
}

impl fmt::Display for Test {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
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
    /// A kind of command that takes no parameters, because nobody knows it.
    #[error("commands of type {0} are not known to this agent; update it")]
    Kind(i32),
}

/// Understands a command.
///
/// # Errors
/// What is wrong with a parameter; nothing is done then.
pub fn parse(order: &Order) -> Result<Action, BadParameter> {
    let known = match order.kind {
        Kind::Cordon | Kind::Uncordon => "none",
        Kind::Drain => "timeout, force",
        Kind::RunDiagnostic => "test, seconds",
        Kind::Terminate => "exit, force",
        Kind::Unknown(number) => return Err(BadParameter::Kind(number)),
    };
    // Navarch's documents say `type` for `test`.
    let takes = |name: &str| known.split(", ").any(|known| known == name);
    let alias = |name: &str| order.kind == Kind::RunDiagnostic && name == "type";
    if let Some(name) = order.parameters.keys().find(|name| !takes(name) && !alias(name)) {
        return Err(BadParameter::Unknown { kind: order.kind, name: shown(name), known });
    }
    match order.kind {
        Kind::Cordon => Ok(Action::Cordon),
        Kind::Uncordon => Ok(Action::Uncordon),
        Kind::Drain => {
            seconds(order, "timeout", 7 * 24 * 3600)?;
            Ok(Action::Drain { force: boolean(order, "force", false)? })
        }
        Kind::RunDiagnostic => diagnostic(order).map(Action::Diagnose),
        Kind::Terminate => {
            boolean(order, "force", false)?;
            Ok(Action::Terminate { exit: boolean(order, "exit", true)? })
        }
        Kind::Unknown(number) => Err(BadParameter::Kind(number)),
    }
}

fn diagnostic(order: &Order) -> Result<Test, BadParameter> {
    let stress = seconds(order, "seconds", Test::STRESS_MAX.as_secs())?;
    let name = order.parameters.get("test").or_else(|| order.parameters.get("type"));
    // What Navarch's daemon runs if nobody says which.
    let name = name.map_or("all", String::as_str);
    Test::parse(name, stress).ok_or_else(|| BadParameter::Value {
        name: "test",
        wanted: format!("one of {}", Test::NAMES.join(", ")),
        value: shown(name),
    })
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

fn seconds(order: &Order, name: &'static str, most: u64) -> Result<Option<Duration>, BadParameter> {
    let Some(value) = order.parameters.get(name) else { return Ok(None) };
    // Only digits: `+5`, ` 5` and `5s` are somebody's mistake.
    let digits = value.bytes().all(|byte| byte.is_ascii_digit());
    match value.parse::<u64>() {
        Ok(seconds) if digits && (1..=most).contains(&seconds) => {
            Ok(Some(Duration::from_secs(seconds)))
        }
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
