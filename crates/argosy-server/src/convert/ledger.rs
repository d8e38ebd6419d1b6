//! What was written down about a node, to the wire; and events, from it and to it.

use super::member::{self, Members};
use super::{command, node};
use argosy_api::node as api;
use argosy_core::field::{Constraint, FieldError};
use argosy_core::health::{Event, EventType, HealthReport, Lasts, Metric, System, Verdict};
use argosy_core::ledger::{VerdictNote, What};
use argosy_core::why::Noted;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// One line of the ledger, with a sentence for people.
pub(crate) fn entry(noted: Noted) -> api::LedgerEntry {
    let Noted { sequence, revision, entry } = noted;
    let line = api::LedgerEntry {
        sequence,
        revision,
        at: entry.at.to_string(),
        node_id: entry.node.to_string(),
        kind: entry.what.kind().to_owned(),
        ..api::LedgerEntry::default()
    };
    match entry.what {
        What::Registered { message } | What::RegistrationRefused { message } => {
            api::LedgerEntry { message, ..line }
        }
        What::Event { event, verdict, finding } => api::LedgerEntry {
            message: event_sentence(&event, &verdict),
            event: Some(event_wire(&event)),
            verdict: Some(verdict_note(verdict)),
            finding,
            ..line
        },
        What::Check { name, from, to, message } => {
            let said = if message.is_empty() { String::new() } else { format!(": {message}") };
            let (from, to) = (from.as_str(), to.as_str());
            moved(line, from, to, format!("check {name} {from} -> {to}{said}"), name)
        }
        What::Cleared { finding, reason } => api::LedgerEntry {
            message: format!("finding {finding} ended: {reason}"),
            finding: Some(finding),
            ..line
        },
        What::Health { from, to, reason, findings } => {
            let (from, to) = (from.as_str(), to.as_str());
            let message = format!("health {from} -> {to}: {reason}");
            api::LedgerEntry { findings, ..moved(line, from, to, message, None) }
        }
        What::Liveness { from, to, reason } => {
            let (from, to) = (from.as_str(), to.as_str());
            moved(line, from, to, format!("liveness {from} -> {to}: {reason}"), None)
        }
        What::Status { from, to, reason } => {
            let message = format!("{} -> {}: {reason}", from.0, to.0);
            moved(line, &from.0, &to.0, message, None)
        }
        What::Decision { action, held_by, reason, budget } => api::LedgerEntry {
            message: match &held_by {
                Some(guard) => format!("{action} is held by {guard}: {reason}"),
                None => format!("decided to {action}: {reason}"),
            },
            action: Some(action),
            held_by,
            budget: Some(budget).filter(|budget| !budget.is_empty()),
            ..line
        },
        What::Command { id, kind, state, outcome, by, message } => {
            let kind = command::kind(kind);
            let said = if message.is_empty() { String::new() } else { format!(": {message}") };
            api::LedgerEntry {
                message: format!("{kind} by {by} {state}{said}"),
                command: command::state_word(&state).map(|state| api::CommandStep {
                    id: id.to_string(),
                    kind,
                    state,
                    outcome: outcome.map(command::outcome),
                    by,
                }),
                ..line
            }
        }
        What::External { system, what, ok, message } => {
            let said = if message.is_empty() { String::new() } else { format!(": {message}") };
            let done = if ok { "was told" } else { "could not be told" };
            api::LedgerEntry {
                message: format!("{system} {done} to {what}{said}"),
                subject: Some(system),
                action: Some(what),
                ok: Some(ok),
                ..line
            }
        }
        What::Flag { flag, raised, message } => {
            let done = if raised { "raised" } else { "lowered" };
            let said = if message.is_empty() { String::new() } else { format!(": {message}") };
            api::LedgerEntry {
                message: format!("flag {flag} was {done}{said}"),
                subject: Some(flag),
                ok: Some(raised),
                ..line
            }
        }
    }
}

fn moved(
    line: api::LedgerEntry,
    from: &str,
    to: &str,
    message: String,
    subject: impl Into<Option<String>>,
) -> api::LedgerEntry {
    let (from, to) = (Some(from.to_owned()), Some(to.to_owned()));
    api::LedgerEntry { from, to, message, subject: subject.into(), ..line }
}

fn event_sentence(event: &Event, verdict: &VerdictNote) -> String {
    let code = match event.code() {
        0 => String::new(),
        code => format!(" {code}"),
    };
    let place =
        if event.gpu_index < 0 { String::new() } else { format!(" on GPU {}", event.gpu_index) };
    let times = if 1 < event.count { format!(" ({} times)", event.count) } else { String::new() };
    let what = format!("{}{code}{place}{times}", event.event_type.as_str());
    let rule = &verdict.rule;
    match (verdict.severity, &verdict.error) {
        (_, Some(error)) => format!("{what}: rule {rule} failed: {error}"),
        (Some(severity), None) if !rule.is_empty() => {
            format!("{what}: {} by rule {rule}", node::severity(severity))
        }
        (Some(_) | None, None) => format!("{what}: no rule matched"),
    }
}

/// An event as it stands on the wire.
pub(crate) fn event_wire(event: &Event) -> api::NodeEvent {
    let metric = |metric: &Metric| match metric {
        Metric::Bool(value) => Value::from(*value),
        Metric::Int(value) => Value::from(*value),
        Metric::Float(value) => Value::from(*value),
        Metric::Text(value) => Value::from(value.as_str()),
    };
    api::NodeEvent {
        node_time: event.node_time.map(|time| time.to_string()),
        event_type: event.event_type.as_str().to_owned(),
        system: event.system.as_str().to_owned(),
        gpu_index: event.gpu_index,
        gpu_uuid: event.gpu_uuid.clone(),
        gpu_serial: event.gpu_serial.clone(),
        metrics: event.metrics.iter().map(|(name, value)| (name.clone(), metric(value))).collect(),
        message: event.message.clone(),
        raw: event.raw.clone(),
        recovery_action: event.recovery_action,
        count: event.count,
    }
}

fn verdict_note(note: VerdictNote) -> api::Verdict {
    api::Verdict {
        policy: note.policy,
        policy_version: note.policy_version,
        rule: note.rule,
        severity: note.severity.map(node::severity),
        error: note.error,
        message: String::new(),
        lasts_seconds: None,
        inputs: note.inputs,
    }
}

/// What a policy says, as it stands on the wire.
pub(crate) fn verdict(verdict: Verdict) -> api::Verdict {
    let (severity, error) = match verdict.severity {
        Ok(severity) => (Some(node::severity(severity)), None),
        Err(error) => (None, Some(error)),
    };
    api::Verdict {
        policy: verdict.policy,
        policy_version: verdict.policy_version,
        rule: verdict.rule,
        severity,
        error,
        message: verdict.message,
        lasts_seconds: match verdict.lasts {
            Lasts::For(lasts) => u64::try_from(lasts.as_secs()).ok(),
            Lasts::UntilReboot | Lasts::UntilReplaced => None,
        },
        inputs: verdict.inputs,
    }
}

/// Reads an event that somebody asks about.
///
/// # Errors
/// Every member that is wrong.
pub(crate) fn event(object: Map<String, Value>, place: &str) -> Result<Event, Vec<FieldError>> {
    let mut members = Members::new(format!("{place}."), object);
    let node_time = members.take("node_time", |value, field| {
        let Some(value) = value else { return Ok(None) };
        let text = member::text(Some(&value), field)?;
        text.parse().map(Some).map_err(|_| {
            let message = format!("{field} must be a time like 2026-01-31T12:00:00Z");
            FieldError::new(field, Constraint::Format, message)
        })
    });
    let event_type = members.take("event_type", |value, field| {
        let words = EventType::ALL.iter().map(|kind| (kind.as_str(), *kind));
        member::word(member::text(value.as_ref(), field)?, field, words).map(Some)
    });
    let system = members.take("system", |value, field| {
        let Some(value) = value else { return Ok(None) };
        let words = System::ALL.iter().map(|system| (system.as_str(), *system));
        member::word(member::text(Some(&value), field)?, field, words).map(Some)
    });
    let metrics = members.take("metrics", |value, field| {
        let metrics = member::object(value, field)?.unwrap_or_default();
        metrics
            .into_iter()
            .map(|(name, value)| metric(value, &format!("{field}.{name}")).map(|m| (name, m)))
            .collect::<Result<BTreeMap<_, _>, _>>()
    });
    let index = members.whole("gpu_index", -1, i64::from(u16::MAX));
    let event = Event {
        node_time,
        gpu_index: index.and_then(|index| i32::try_from(index).ok()).unwrap_or(-1),
        gpu_uuid: members.text_or_empty("gpu_uuid"),
        gpu_serial: members.text_or_empty("gpu_serial"),
        system: system.unwrap_or(System::Unknown),
        event_type: event_type.unwrap_or(EventType::Unknown),
        metrics,
        message: members.text_or_empty("message"),
        raw: members.text_or_empty("raw"),
        recovery_action: number(members.whole("recovery_action", 0, i64::from(u32::MAX))),
        count: number(members.whole("count", 1, 1_000_000)).unwrap_or(1),
        boot_id: String::new(),
        condition: String::new(),
    };
    let event = members.finish(event)?;
    // The same limits as for what nodes send.
    let report = HealthReport { events: vec![event], ..HealthReport::default() };
    let renamed = |mut error: FieldError| {
        error.field = error.field.replace("events[0]", place);
        error.message = error.message.replace("events[0]", place);
        error
    };
    match report.bounded() {
        Ok(mut report) => Ok(report.events.pop().expect("one went in")),
        Err(errors) => Err(errors.into_iter().map(renamed).collect()),
    }
}

fn number(number: Option<i64>) -> Option<u32> {
    number.and_then(|number| u32::try_from(number).ok())
}

fn metric(value: Value, field: &str) -> Result<Metric, FieldError> {
    match value {
        Value::Bool(value) => Ok(Metric::Bool(value)),
        Value::String(value) => Ok(Metric::Text(value)),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => Ok(Metric::Int(whole)),
            (None, Some(float)) => Ok(Metric::Float(float)),
            (None, None) => Err(member::wrong_type(field, "a number", &Value::Number(number))),
        },
        other @ (Value::Null | Value::Array(_) | Value::Object(_)) => {
            Err(member::wrong_type(field, "a boolean, a number or a string", &other))
        }
    }
}

#[cfg(test)]
mod tests;
