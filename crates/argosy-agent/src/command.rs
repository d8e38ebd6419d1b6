//! What an agent can do: cordon, drain, diagnose, terminate.
//!
//! What a newcomer gets wrong: nothing here decides whether a command may be done. That it came, is not
//! too late and was not done before is `agent`'s word; a handler does it and says how it went.

pub mod drain;
pub mod duty;
pub mod hook;
mod parameters;

pub use parameters::{Action, BadParameter, parse};

use async_trait::async_trait;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tokio::sync::mpsc;

/// The longest message of an outcome, in bytes: what the control plane keeps of it.
pub const MESSAGE_LEN_MAX: usize = 1024;
/// The longest result, as JSON text, in bytes: what the control plane takes.
pub const RESULT_LEN_MAX: usize = 64 * 1024;

/// A command, as it was told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// Which: the same if it is told again.
    pub id: String,
    /// What.
    pub kind: Kind,
    /// How. Not checked yet.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, String>,
    /// Why, for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Not begun by then, it is not begun at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// Begun, it is to be done by then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Timestamp>,
    /// Of a drain: for how many seconds nothing may use a GPU before its work has ended.
    #[serde(default)]
    pub quiet_seconds: u32,
}

/// Kinds of commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Take no new work.
    Cordon,
    /// Take work again.
    Uncordon,
    /// Wait until nothing runs.
    Drain,
    /// Run a diagnostic.
    RunDiagnostic,
    /// Stop.
    Terminate,
    /// Something of a newer control plane, by its number on the wire.
    Unknown(i32),
}

/// How a command ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// When.
    pub at: Timestamp,
    /// Whether it was done.
    pub completed: bool,
    /// How a drain ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drained: Option<Drained>,
    /// A sentence; at most `MESSAGE_LEN_MAX`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// A JSON document, or nothing; at most `RESULT_LEN_MAX`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub result_json: String,
    /// Whether the process is to end now: after a termination.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub exit: bool,
}

/// How a drain ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Drained {
    /// Everything that ran came to its end.
    Drained,
    /// What still ran at the deadline was ended.
    Forced,
    /// Something still ran at the deadline, and was left running.
    TimedOut,
    /// Somebody took the drain back.
    Cancelled,
}

impl End {
    /// It was done.
    pub fn completed(at: Timestamp, message: impl Into<String>) -> Self {
        let message = cut(message.into());
        let (drained, result_json, exit) = (None, String::new(), false);
        Self { at, completed: true, drained, message, result_json, exit }
    }

    /// It was not.
    pub fn failed(at: Timestamp, message: impl Into<String>) -> Self {
        Self { completed: false, ..Self::completed(at, message) }
    }

    /// It was taken back.
    pub fn cancelled(at: Timestamp, order: &Order, message: impl Into<String>) -> Self {
        let drained = (order.kind == Kind::Drain).then_some(Drained::Cancelled);
        Self { drained, ..Self::failed(at, message) }
    }

    /// What a handler said.
    pub fn of(at: Timestamp, said: Result<Outcome, Failure>) -> Self {
        match said {
            Ok(outcome) => {
                let result = outcome.result.map(|result| result.to_string()).unwrap_or_default();
                let fits = result.len() <= RESULT_LEN_MAX;
                let message = if fits {
                    outcome.message
                } else {
                    let len = result.len();
                    format!(
                        "{} (its result of {len} bytes is too long to be sent)",
                        outcome.message
                    )
                };
                let completed =
                    !matches!(outcome.drained, Some(Drained::TimedOut | Drained::Cancelled));
                Self {
                    completed,
                    drained: outcome.drained,
                    result_json: if fits { result } else { String::new() },
                    exit: outcome.exit,
                    ..Self::completed(at, message)
                }
            }
            Err(failure) => Self::failed(at, failure.to_string()),
        }
    }
}

/// What came of a command that was done.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// A sentence for people.
    pub message: String,
    /// What a diagnostic found. A member `passed` that is `true` absolves the node.
    pub result: Option<serde_json::Value>,
    /// How a drain ended.
    pub drained: Option<Drained>,
    /// Whether the process is to end, once the outcome has been heard.
    pub exit: bool,
}

impl Outcome {
    /// Done, with a sentence.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), ..Self::default() }
    }
}

/// Why a command was not done. It is not tried again; the sentence is for people.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Failure(pub String);

impl From<BadParameter> for Failure {
    fn from(bad: BadParameter) -> Self {
        Failure(bad.to_string())
    }
}

/// Somebody who can do a command. Registered with the builder, it replaces the one we have for the kind
/// of command, or for one diagnostic.
///
/// Dropping the future takes the command back, so it must leave nothing behind that runs on.
#[async_trait]
pub trait Handler: Send + Sync {
    /// Does it.
    ///
    /// # Errors
    /// A sentence that says why it was not done.
    async fn handle(&self, order: &Order, progress: &Progress) -> Result<Outcome, Failure>;
}

/// Where a handler says how far it is.
#[derive(Clone, Debug)]
pub struct Progress {
    sender: mpsc::Sender<Step>,
}

/// How far a command is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// From 0 to 100.
    pub percent: u8,
    /// A sentence.
    pub message: String,
}

/// How many steps wait to be said. Who says more than the line takes has them left out: only the last
/// one matters.
const STEPS_MAX: usize = 16;

impl Progress {
    /// A place to say it, and where it is heard.
    pub fn channel() -> (Self, mpsc::Receiver<Step>) {
        let (sender, receiver) = mpsc::channel(STEPS_MAX);
        (Self { sender }, receiver)
    }

    /// Says how far it is. Never waits.
    pub fn tell(&self, percent: u8, message: impl Into<String>) {
        let step = Step { percent: percent.min(100), message: cut(message.into()) };
        _ = self.sender.try_send(step);
    }
}

/// A text inside `MESSAGE_LEN_MAX`, cut between characters.
pub(crate) fn cut(mut text: String) -> String {
    if MESSAGE_LEN_MAX < text.len() {
        text.truncate(text.floor_char_boundary(MESSAGE_LEN_MAX - "…".len()));
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests;
