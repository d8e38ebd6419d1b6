//! Reports of adapters, from the wire and to it.

use super::member;
use super::resource::{href, id, tri};
use crate::profile::Profile;
use argosy_api::status::{self as api, StatusList};
use argosy_control::adapter::HistoryEntry;
use argosy_control::resource::{StatusLine, Statuses};
use argosy_core::adapter::{AdapterName, DraftCondition, Old, Report, ReportDraft, Reported, Tri};
use argosy_core::field::{Constraint, FieldError};
use argosy_core::resource::{Generation, Kind, Resource};
use argosy_core::status::AdapterPhase;
use jiff::Timestamp;
use serde_json::{Map, Value};
use uuid::Uuid;

/// The most conditions of one report: people read them.
const CONDITIONS_MAX: usize = 64;

/// What the adapters say, in the three shapes; `page` and `size` cut `items`.
pub(crate) fn statuses(
    statuses: &Statuses,
    profile: Profile,
    page: usize,
    size: usize,
) -> StatusList {
    let resource = &*statuses.resource.value;
    let cluster = resource.owner.unwrap_or(resource.id).to_string();
    let (nodepool, type_) = match resource.kind {
        Kind::Cluster => (None, "clusterStatus"),
        Kind::NodePool => (Some(id(resource, profile)), "nodePoolStatus"),
    };
    let reported = || statuses.lines.iter().filter_map(|l| Some((&l.adapter, l.report.as_ref()?)));
    let items: Vec<_> = reported()
        .skip(page.saturating_sub(1).saturating_mul(size))
        .take(size)
        .map(|(adapter, report)| item(adapter, report))
        .collect();
    let last_updated = reported().map(|(_, report)| report.last_report_time).max();
    StatusList {
        kind: "AdapterStatusList".to_owned(),
        page,
        size: items.len(),
        total: reported().count(),
        items: Some(items),
        cluster_id: cluster.clone(),
        nodepool_id: nodepool.clone(),
        statuses: Some(
            statuses
                .lines
                .iter()
                .map(|line| status_line(line, resource, &cluster, nodepool.as_ref()))
                .collect(),
        ),
        id: format!("status-{}", resource.id),
        type_: type_.to_owned(),
        href: format!("{}/statuses", href(resource)),
        cluster_id_camel: cluster,
        nodepool_id_camel: nodepool,
        adapter_statuses: Some(
            reported().map(|(adapter, report)| camel(adapter, report)).collect(),
        ),
        last_updated: last_updated.unwrap_or(resource.created.at).to_string(),
    }
}

fn status_line(
    line: &StatusLine,
    resource: &Resource,
    cluster: &str,
    nodepool: Option<&String>,
) -> api::StatusLine {
    // An adapter's work on one generation keeps its id, so that a client can follow it.
    let work = format!("{}/{}", line.adapter, resource.generation);
    api::StatusLine {
        id: Uuid::new_v5(&resource.id.uuid(), work.as_bytes()).to_string(),
        cluster_id: cluster.to_owned(),
        nodepool_id: nodepool.cloned(),
        adapter_name: line.adapter.to_string(),
        phase: match line.line.phase {
            AdapterPhase::Pending => api::AdapterPhase::Pending,
            AdapterPhase::Running => api::AdapterPhase::Running,
            AdapterPhase::Complete => api::AdapterPhase::Complete,
            AdapterPhase::Failed => api::AdapterPhase::Failed,
        },
        message: line.line.message.clone(),
        last_transition_time: line.line.since.to_string(),
        created_at: line.line.created_at.to_string(),
    }
}

/// One report.
pub(crate) fn item(adapter: &AdapterName, report: &Report) -> api::AdapterStatus {
    api::AdapterStatus {
        adapter: adapter.to_string(),
        observed_generation: report.observed_generation,
        conditions: conditions(report)
            .map(|(kind, said)| api::AdapterCondition {
                kind: kind.to_owned(),
                status: tri(said.status),
                reason: said.reason.clone(),
                message: said.message.clone(),
                last_transition_time: said.last_transition_time.to_string(),
            })
            .collect(),
        metadata: respelled(&report.metadata, snake_case),
        data: report.data.clone(),
        created_time: report.created_time.to_string(),
        last_report_time: report.last_report_time.to_string(),
    }
}

fn camel(adapter: &AdapterName, report: &Report) -> api::AdapterStatusCamel {
    api::AdapterStatusCamel {
        adapter: adapter.to_string(),
        observed_generation: report.observed_generation,
        conditions: conditions(report)
            .map(|(kind, said)| api::AdapterConditionCamel {
                kind: kind.to_owned(),
                status: tri(said.status),
                reason: said.reason.clone(),
                message: said.message.clone(),
                last_transition_time: said.last_transition_time.to_string(),
            })
            .collect(),
        data: report.data.clone(),
        metadata: respelled(&report.metadata, camel_case),
        last_updated: report.last_report_time.to_string(),
    }
}

/// The mandatory conditions first, then the others.
fn conditions(report: &Report) -> impl Iterator<Item = (&str, &Reported)> {
    let said = &report.conditions;
    [("Available", &said.available), ("Applied", &said.applied), ("Health", &said.health)]
        .into_iter()
        .chain(said.finalized.as_ref().map(|finalized| ("Finalized", finalized)))
        .chain(said.others.iter().map(|(kind, said)| (kind.as_str(), said)))
}

/// The members under another spelling, unless that is taken.
fn respelled(members: &Map<String, Value>, spell: fn(&str) -> String) -> Map<String, Value> {
    members
        .iter()
        .map(|(name, value)| {
            let other = spell(name);
            let name = if members.contains_key(&other) { name.clone() } else { other };
            (name, value.clone())
        })
        .collect()
}

fn snake_case(name: &str) -> String {
    let mut spelled = String::with_capacity(name.len() + 4);
    for character in name.chars() {
        if character.is_ascii_uppercase() && !spelled.is_empty() {
            spelled.push('_');
        }
        spelled.push(character.to_ascii_lowercase());
    }
    spelled
}

fn camel_case(name: &str) -> String {
    let mut parts = name.split('_').filter(|part| !part.is_empty());
    let mut spelled = parts.next().unwrap_or(name).to_owned();
    for part in parts {
        let mut characters = part.chars();
        spelled.extend(characters.next().map(|first| first.to_ascii_uppercase()));
        spelled.extend(characters);
    }
    spelled
}

/// One earlier report.
pub(crate) fn history(entry: &HistoryEntry) -> api::HistoryEntry {
    let discarded = entry.discarded.map(|old| match old {
        Old::FutureGeneration => "FutureGeneration",
        Old::OlderGeneration => "OlderGeneration",
        Old::OlderTime => "OlderTime",
    });
    api::HistoryEntry {
        sequence: entry.sequence,
        at: entry.at.to_string(),
        generation: entry.generation,
        discarded: discarded.map(str::to_owned),
        report: item(&entry.adapter, &entry.report),
    }
}

/// Reads a report, in either spelling.
///
/// # Errors
/// Every field that is wrong. What a report must say is for core to judge.
pub(crate) fn draft(body: &Map<String, Value>) -> Result<ReportDraft, Vec<FieldError>> {
    let either = |snake: &str, camel: &str| body.get(snake).or_else(|| body.get(camel));
    let mut errors = Vec::new();
    let adapter = member::text(body.get("adapter"), "adapter").and_then(AdapterName::parse);
    let generation = generation(either("observed_generation", "observedGeneration"));
    let time = observed_time(either("observed_time", "observedTime"));
    let conditions = draft_conditions(body.get("conditions"), &mut errors);
    let data = member::object(body.get("data").cloned(), "data");
    let metadata = member::object(body.get("metadata").cloned(), "metadata");
    match (adapter, generation, time, data, metadata) {
        (Ok(adapter), Ok(observed_generation), Ok(observed_time), Ok(data), Ok(metadata))
            if errors.is_empty() =>
        {
            Ok(ReportDraft {
                adapter,
                observed_generation,
                observed_time,
                conditions,
                data: data.unwrap_or_default(),
                metadata: metadata.unwrap_or_default(),
            })
        }
        (adapter, generation, time, data, metadata) => {
            let first = [adapter.err(), generation.err(), time.err()];
            let last = [data.err(), metadata.err()];
            let all = first.into_iter().flatten().chain(errors).chain(last.into_iter().flatten());
            Err(all.collect())
        }
    }
}

fn generation(value: Option<&Value>) -> Result<Generation, FieldError> {
    const FIELD: &str = "observed_generation";
    let value = value.ok_or_else(|| member::missing(FIELD))?;
    let Value::Number(number) = value else {
        return Err(member::wrong_type(FIELD, "an integer", value));
    };
    // `2.0` is an integer in JSON.
    let whole = number.as_f64().filter(|number| number.fract() == 0.0);
    let complain = |constraint| {
        let message =
            format!("Invalid {FIELD} {number}. Must be an integer between 1 and {}", i32::MAX);
        FieldError::new(FIELD, constraint, message).with_value(value.clone())
    };
    match whole {
        None => Err(complain(Constraint::Format)),
        Some(number) if number < 1.0 => Err(complain(Constraint::Min)),
        Some(number) if f64::from(i32::MAX) < number => Err(complain(Constraint::Max)),
        Some(number) => Ok(number as Generation),
    }
}

fn observed_time(value: Option<&Value>) -> Result<Option<Timestamp>, FieldError> {
    const FIELD: &str = "observed_time";
    let Some(value) = value else { return Ok(None) };
    let text = member::text(Some(value), FIELD)?;
    text.parse().map(Some).map_err(|_| {
        let message = "observed_time must be a time such as 2026-01-31T12:00:00Z (RFC 3339)";
        FieldError::new(FIELD, Constraint::Format, message)
    })
}

fn draft_conditions(value: Option<&Value>, errors: &mut Vec<FieldError>) -> Vec<DraftCondition> {
    const FIELD: &str = "conditions";
    let items = match value {
        None => {
            errors.push(member::missing(FIELD));
            return Vec::new();
        }
        Some(Value::Array(items)) => items,
        Some(other) => {
            errors.push(member::wrong_type(FIELD, "an array", other));
            return Vec::new();
        }
    };
    if CONDITIONS_MAX < items.len() {
        let message = format!("{} conditions are too many; at most {CONDITIONS_MAX}", items.len());
        errors.push(FieldError::new(FIELD, Constraint::Max, message));
        return Vec::new();
    }
    let mut drafts: Vec<DraftCondition> = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let field = format!("{FIELD}[{index}]");
        match draft_condition(item, &field) {
            Ok(draft) if drafts.iter().any(|earlier| earlier.kind == draft.kind) => {
                let message = format!("Condition type '{}' is given more than once", draft.kind);
                errors.push(FieldError::new(format!("{field}.type"), Constraint::Unique, message));
            }
            Ok(draft) => drafts.push(draft),
            Err(error) => errors.push(error),
        }
    }
    drafts
}

fn draft_condition(item: &Value, field: &str) -> Result<DraftCondition, FieldError> {
    let Value::Object(item) = item else {
        return Err(member::wrong_type(field, "an object", item));
    };
    let at = |name: &str| format!("{field}.{name}");
    let kind = member::text(item.get("type"), &at("type"))?;
    if kind.is_empty() {
        let message = format!("{} must not be empty", at("type"));
        return Err(FieldError::new(at("type"), Constraint::MinLength, message));
    }
    let status = match member::text(item.get("status"), &at("status"))? {
        "True" => Tri::True,
        "False" => Tri::False,
        "Unknown" => Tri::Unknown,
        other => {
            let short: String = other.chars().take(100).collect();
            let message = format!(
                "Invalid condition status '{short}'. Supported values: True, False, Unknown"
            );
            return Err(FieldError::new(at("status"), Constraint::Enum, message));
        }
    };
    Ok(DraftCondition {
        kind: kind.to_owned(),
        status,
        reason: member::text_or_empty(item.get("reason"), &at("reason"))?,
        message: member::text_or_empty(item.get("message"), &at("message"))?,
    })
}

#[cfg(test)]
mod tests;
