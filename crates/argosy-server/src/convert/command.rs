//! Commands, from the wire and to it.

use super::member::{self, Members};
use argosy_api::command as api;
use argosy_api::route::OWN;
use argosy_control::Stored;
use argosy_control::command::NewCommand;
use argosy_control::safety::Beyond;
use argosy_core::command::{Command, CommandKind, CommandState, Outcome};
use argosy_core::field::{Constraint, FieldError};
use jiff::SignedDuration;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The longest drain anybody may ask for, in seconds: a week. What runs longer is not waited for but
/// asked to end.
const DRAIN_FOR_MAX_S: i64 = 7 * 24 * 3600;

/// A command as it stands on the wire.
pub(crate) fn wire(stored: &Stored<Command>) -> api::Command {
    let command = &*stored.value;
    let (state, outcome, message, result) = match &command.state {
        CommandState::Done { outcome, message, result, .. } => {
            (ended(*outcome), Some(*outcome), message.clone(), result.clone())
        }
        CommandState::Pending => (api::CommandState::Pending, None, String::new(), None),
        CommandState::Acknowledged { .. } => {
            (api::CommandState::Acknowledged, None, String::new(), None)
        }
    };
    let (acknowledged_at, progress, ended_at) = match &command.state {
        CommandState::Pending => (None, None, None),
        CommandState::Acknowledged { at, progress } => (Some(at.to_string()), *progress, None),
        CommandState::Done { at, .. } => (None, None, Some(at.to_string())),
    };
    api::Command {
        id: command.id.to_string(),
        kind: "Command".to_owned(),
        href: href(&command.id.to_string()),
        node_id: command.node.to_string(),
        type_: kind(command.kind),
        parameters: command.parameters.clone(),
        state,
        outcome: outcome.map(self::outcome),
        progress,
        message,
        result,
        by: command.by.clone(),
        automatic: command.automatic,
        reason: command.reason.clone(),
        issued_at: command.issued_at.to_string(),
        expires_at: command.expires_at.to_string(),
        deadline: command.deadline.map(|deadline| deadline.to_string()),
        acknowledged_at,
        ended_at,
        revision: stored.revision.0,
        budgets: Vec::new(),
        warnings: Vec::new(),
    }
}

/// The path of a command.
pub(crate) fn href(id: &str) -> String {
    format!("{OWN}/commands/{id}")
}

pub(crate) const fn kind(kind: CommandKind) -> api::CommandType {
    match kind {
        CommandKind::Cordon => api::CommandType::Cordon,
        CommandKind::Drain => api::CommandType::Drain,
        CommandKind::RunDiagnostic => api::CommandType::RunDiagnostic,
        CommandKind::Terminate => api::CommandType::Terminate,
        CommandKind::Uncordon => api::CommandType::Uncordon,
    }
}

pub(crate) const fn outcome(outcome: Outcome) -> api::CommandOutcome {
    match outcome {
        Outcome::Completed => api::CommandOutcome::Completed,
        Outcome::Drained => api::CommandOutcome::Drained,
        Outcome::Forced => api::CommandOutcome::Forced,
        Outcome::TimedOut => api::CommandOutcome::TimedOut,
        Outcome::Failed => api::CommandOutcome::Failed,
        Outcome::Expired => api::CommandOutcome::Expired,
        Outcome::Cancelled => api::CommandOutcome::Cancelled,
    }
}

const fn ended(outcome: Outcome) -> api::CommandState {
    match outcome {
        Outcome::Completed | Outcome::Drained | Outcome::Forced => api::CommandState::Completed,
        Outcome::TimedOut | Outcome::Failed => api::CommandState::Failed,
        Outcome::Expired => api::CommandState::Expired,
        Outcome::Cancelled => api::CommandState::Cancelled,
    }
}

/// The state that core calls by this word.
pub(crate) fn state_word(word: &str) -> Option<api::CommandState> {
    api::CommandState::ALL.iter().copied().find(|state| state.as_str() == word)
}

/// Reads what somebody wants a node to do; key, revision and whether it is meant are in headers.
///
/// # Errors
/// Every member that is wrong.
pub(crate) fn creation(body: Map<String, Value>) -> Result<NewCommand, Vec<FieldError>> {
    read(Members::new("", body))
}

/// Reads what somebody wants several nodes to do, and which.
///
/// # Errors
/// Every member that is wrong.
pub(crate) fn batch(
    body: Map<String, Value>,
) -> Result<(Vec<String>, NewCommand), Vec<FieldError>> {
    let mut members = Members::new("", body);
    let nodes = members.list("nodes", |value, field| {
        member::text(Some(&value), &field).map(str::to_owned).map_err(|error| vec![error])
    });
    Ok((nodes, read(members)?))
}

fn read(mut members: Members) -> Result<NewCommand, Vec<FieldError>> {
    let kind = members.take("type", |value, field| {
        let words = CommandKind::ALL.iter().map(|kind| (kind.as_str(), *kind));
        member::word(member::text(value.as_ref(), field)?, field, words).map(Some)
    });
    let parameters = members.take("parameters", |value, field| {
        let parameters = member::object(value, field)?.unwrap_or_default();
        parameters
            .into_iter()
            .map(|(name, value)| {
                let field = format!("{field}.{name}");
                member::text(Some(&value), &field).map(str::to_owned).map(|value| (name, value))
            })
            .collect::<Result<BTreeMap<_, _>, _>>()
    });
    let reason = members.take("reason", |value, field| {
        let reason = member::text_or_empty(value.as_ref(), field)?;
        if reason.is_empty() { Ok(reason) } else { member::reason(&reason).map(str::to_owned) }
    });
    let drain_for = members.whole("drain_for_seconds", 1, DRAIN_FOR_MAX_S);
    if drain_for.is_some() && kind.is_some_and(|kind| kind != CommandKind::Drain) {
        let message = "drain_for_seconds is for the type DRAIN only";
        members.complain([FieldError::new("drain_for_seconds", Constraint::Enum, message)]);
    }
    let beyond = if members.flag("over_budget") { Beyond::Override } else { Beyond::Refuse };
    // Without a type there is a complaint, and this is not given to anybody.
    let kind = kind.unwrap_or(CommandKind::Cordon);
    members.finish(NewCommand {
        kind,
        parameters,
        reason,
        drain_for: drain_for.map(SignedDuration::from_secs),
        idempotency_key: None,
        if_revision: None,
        dry_run: false,
        beyond,
    })
}

#[cfg(test)]
mod tests;
