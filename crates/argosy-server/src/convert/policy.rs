//! Health policies, from the wire and to it.

use super::member::{self, Members};
use super::{ledger, node};
use argosy_api::policy as api;
use argosy_api::route::OWN;
use argosy_control::Stored;
use argosy_control::policy::{Backtest, Hit};
use argosy_core::field::{Constraint, FieldError};
use argosy_core::health::{Event, Severity};
use argosy_core::policy::{Policy, PolicySpec, Rule};
use jiff::Timestamp;
use serde_json::{Map, Value};

/// A policy as it stands on the wire.
pub(crate) fn wire(stored: &Stored<Policy>) -> api::Policy {
    let policy = &*stored.value;
    let rules = policy.spec.rules.iter().map(|rule| api::Rule {
        name: rule.name.clone(),
        description: rule.description.clone(),
        priority: rule.priority,
        condition: rule.condition.clone(),
        result: node::severity(rule.result),
        lasts: rule.lasts.clone(),
    });
    api::Policy {
        name: policy.name.to_string(),
        kind: "Policy".to_owned(),
        href: format!("{OWN}/policies/{}", policy.name),
        version: policy.version,
        spec: api::PolicyPut {
            description: policy.spec.description.clone(),
            pools: policy.spec.pools.clone(),
            rules: rules.collect(),
        },
        created_at: policy.created.at.to_string(),
        created_by: policy.created.by.clone(),
        updated_at: policy.updated.at.to_string(),
        updated_by: policy.updated.by.clone(),
        revision: stored.revision.0,
        warnings: Vec::new(),
    }
}

/// Reads a policy. What the server adds to one (`version`, `created_at`, …) is ignored, so that what was
/// read can be sent.
///
/// # Errors
/// Every member that is wrong. Whether the rules compile is for the service to say.
pub(crate) fn spec(
    body: Map<String, Value>,
    place: &str,
    name: Option<&str>,
) -> Result<PolicySpec, Vec<FieldError>> {
    let mut members = Members::new(place, body);
    let spec = PolicySpec {
        description: members.text_or_empty("description"),
        pools: members.list("pools", |value, field| {
            member::text(Some(&value), &field).map(str::to_owned).map_err(|error| vec![error])
        }),
        rules: members.list("rules", rule),
    };
    if let (Some(sent), Some(name)) = (members.text_if_any("name"), name)
        && sent != name
    {
        let message = format!("name must be that of the path, '{name}', or be left out");
        members.complain([FieldError::new(members.field("name"), Constraint::Enum, message)]);
    }
    members.ignore(&[
        "kind",
        "href",
        "version",
        "created_at",
        "created_by",
        "updated_at",
        "updated_by",
        "revision",
        "warnings",
    ]);
    members.finish(spec)
}

fn rule(value: Value, place: String) -> Result<Rule, Vec<FieldError>> {
    let Value::Object(object) = value else {
        return Err(vec![member::wrong_type(&place, "an object", &value)]);
    };
    let mut members = Members::new(format!("{place}."), object);
    let priority = members.whole("priority", i64::from(i32::MIN), i64::from(i32::MAX));
    let result = members.take("result", |value, field| {
        let words = [Severity::Healthy, Severity::Degraded, Severity::Unhealthy]
            .map(|severity| (node::severity(severity).as_str(), severity));
        member::word(member::text(value.as_ref(), field)?, field, words.into_iter()).map(Some)
    });
    let rule = Rule {
        name: members.text("name"),
        description: members.text_or_empty("description"),
        priority: priority.and_then(|priority| i32::try_from(priority).ok()).unwrap_or(0),
        condition: members.text("condition"),
        // Without a result there is a complaint, and this is not given to anybody.
        result: result.unwrap_or(Severity::Healthy),
        lasts: members.text_if_any("lasts"),
    };
    members.finish(rule)
}

/// What somebody asks about an event.
#[derive(Debug)]
pub(crate) struct Question {
    pub(crate) event: Event,
    pub(crate) node: Option<String>,
    pub(crate) spec: Option<PolicySpec>,
}

/// Reads what somebody asks about an event.
///
/// # Errors
/// Every member that is wrong.
pub(crate) fn question(body: Map<String, Value>) -> Result<Question, Vec<FieldError>> {
    let mut members = Members::new("", body);
    let node = members.text_if_any("node_id");
    let spec = members.object("policy").map(|policy| spec(policy, "policy.", None)).transpose();
    let event = match members.take("event", member::object) {
        Some(event) => ledger::event(event, "event"),
        None => Err(vec![member::missing("event")]),
    };
    match (event, spec) {
        (Ok(event), Ok(spec)) => members.finish(Question { event, node, spec }),
        (event, spec) => {
            members.complain(event.err().into_iter().flatten());
            members.complain(spec.err().into_iter().flatten());
            Err(members.finish(()).err().unwrap_or_default())
        }
    }
}

/// Reads which policy to run over history, and from when.
///
/// # Errors
/// Every member that is wrong.
pub(crate) fn trial(
    body: Map<String, Value>,
) -> Result<(PolicySpec, Option<Timestamp>), Vec<FieldError>> {
    let mut members = Members::new("", body);
    let since = members.take("since", |value, field| {
        let Some(value) = value else { return Ok(None) };
        member::text(Some(&value), field)?.parse().map(Some).map_err(|_| {
            let message = format!("{field} must be a time like 2026-01-31T12:00:00Z");
            FieldError::new(field, Constraint::Format, message)
        })
    });
    let spec = match members.object("policy") {
        Some(policy) => spec(policy, "policy.", None),
        None => Err(vec![member::missing("policy")]),
    };
    match spec {
        Ok(spec) => members.finish((spec, since)),
        Err(errors) => {
            members.complain(errors);
            Err(members.finish(()).err().unwrap_or_default())
        }
    }
}

/// What a policy would have done, as it stands on the wire.
pub(crate) fn report(backtest: Backtest) -> api::BacktestReport {
    let hits = |hits: Vec<Hit>| {
        let hit = |hit: Hit| api::BacktestHit {
            node_id: hit.node.to_string(),
            at: hit.at.to_string(),
            rule: hit.rule,
            severity: node::severity(hit.severity),
            event: hit.event,
        };
        hits.into_iter().map(hit).collect()
    };
    let errors = backtest.errors.into_iter();
    api::BacktestReport {
        kind: "BacktestReport".to_owned(),
        events: backtest.events,
        from: backtest.from.map(|from| from.to_string()),
        to: backtest.to.map(|to| to.to_string()),
        only_new: hits(backtest.only_new),
        only_current: hits(backtest.only_current),
        both: backtest.both,
        errors: errors.map(|(message, count)| api::BacktestError { message, count }).collect(),
    }
}

#[cfg(test)]
mod tests;
