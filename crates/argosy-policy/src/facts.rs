//! What rules are told: a resource and its reports as CEL values, without what looks secret.

use crate::language::ENV;
use crate::limits::Size;
use argosy_core::adapter::{AdapterName, Report, Reported, Tri};
use argosy_core::resource::{Kind, Resource};
use cel::objects::{Key, Map};
use cel::{Context, Value};
use serde_json::{Value as Json, json};
use std::collections::HashMap;
use std::sync::Arc;

/// `resource` and `statuses`, and how large they are.
///
/// `statuses` leaves out an adapter any of whose conditions is Unknown: a rule sees definite words.
pub(crate) fn facts(of: &Resource) -> (Context<'static, 'static>, Size) {
    let statuses: Vec<Json> = of
        .reports
        .iter()
        .filter(|(_, report)| report.conditions.all().all(|said| said.status != Tri::Unknown))
        .map(|(adapter, report)| status(adapter, report))
        .collect();
    let mut size = Size::default();
    let mut context = Context::with_env(Arc::clone(&ENV));
    context.add_variable_from_value("resource", to_cel(&record(of), &mut size));
    context.add_variable_from_value("statuses", to_cel(&Json::Array(statuses), &mut size));
    context.add_function("dig", dig).expect("the standard functions have no `dig`");
    (context, size)
}

/// The record as people see it, without its status. What is not there is absent, not null.
fn record(of: &Resource) -> Json {
    let mut record = json!({
        "id": of.id.to_string(),
        "kind": of.kind.as_str(),
        "name": of.name.as_str(),
        "generation": of.generation,
        "spec": redacted(&Json::Object(of.spec.clone())),
        "labels": redacted(&Json::from_iter(of.labels.iter())),
        "created_time": of.created.at.to_string(),
        "created_by": of.created.by,
        "updated_time": of.updated.at.to_string(),
        "updated_by": of.updated.by,
    });
    if let Some(members) = record.as_object_mut() {
        if let Some(deletion) = &of.deletion {
            members.insert("deleted_time".to_owned(), deletion.at.to_string().into());
            members.insert("deleted_by".to_owned(), deletion.by.clone().into());
        }
        if let Some(owner) = &of.owner {
            let owner = json!({ "id": owner.to_string(), "kind": Kind::Cluster.as_str() });
            members.insert("owner_references".to_owned(), owner);
        }
    }
    record
}

fn status(adapter: &AdapterName, report: &Report) -> Json {
    let said = &report.conditions;
    let condition = |(kind, said): (&str, &Reported)| {
        json!({
            "type": kind,
            "status": match said.status {
                Tri::True => "True",
                Tri::False => "False",
                Tri::Unknown => "Unknown",
            },
            "reason": said.reason,
            "message": said.message,
            "last_transition_time": said.last_transition_time.to_string(),
        })
    };
    let known =
        [("Available", &said.available), ("Applied", &said.applied), ("Health", &said.health)];
    let finalized = said.finalized.iter().map(|said| ("Finalized", said));
    let others = said.others.iter().map(|(kind, said)| (kind.as_str(), said));
    let conditions: Vec<Json> =
        known.into_iter().chain(finalized).chain(others).map(condition).collect();
    json!({
        "adapter": adapter.as_str(),
        "observed_generation": report.observed_generation,
        "conditions": conditions,
        "data": redacted(&Json::Object(report.data.clone())),
    })
}

/// Parts of keys whose values a rule must not be able to put into a message.
const SENSITIVE: [&str; 16] = [
    "password",
    "passwd",
    "secret",
    "token",
    "credential",
    "auth",
    "private",
    "connection",
    "cert",
    "kubeconfig",
    "bearer",
    "apikey",
    "accesskey",
    "sshkey",
    "signingkey",
    "encryptionkey",
];
const REDACTED: &str = "***REDACTED***";

fn is_sensitive(key: &str) -> bool {
    let plain: String = key.chars().filter(char::is_ascii_alphanumeric).collect();
    let plain = plain.to_ascii_lowercase();
    SENSITIVE.iter().any(|part| plain.contains(part))
}

fn redacted(value: &Json) -> Json {
    match value {
        Json::Object(members) => {
            let member = |(key, value): (&String, &Json)| {
                let value = if is_sensitive(key) { REDACTED.into() } else { redacted(value) };
                (key.clone(), value)
            };
            members.iter().map(member).collect()
        }
        Json::Array(items) => items.iter().map(redacted).collect(),
        plain @ (Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_)) => plain.clone(),
    }
}

/// Whole numbers become `int`, whatever their sign, so that `x + 1` works on each of them.
fn to_cel(json: &Json, size: &mut Size) -> Value {
    size.total += 8;
    match json {
        Json::Null => Value::Null,
        Json::Bool(value) => Value::Bool(*value),
        Json::Number(number) => match number.as_i64() {
            Some(whole) => Value::Int(whole),
            None => Value::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Json::String(text) => {
            size.total += text.len();
            Value::String(Arc::new(text.clone()))
        }
        Json::Array(items) => {
            size.longest = size.longest.max(items.len());
            Value::List(Arc::new(items.iter().map(|item| to_cel(item, size)).collect()))
        }
        Json::Object(members) => {
            size.longest = size.longest.max(members.len());
            let mut map = HashMap::with_capacity(members.len());
            for (key, value) in members {
                size.total += key.len();
                map.insert(Key::from(key.as_str()), to_cel(value, size));
            }
            Value::Map(Map { map: Arc::new(map) })
        }
    }
}

/// `dig(x, "a.b.0")`: what is at the end of the path, or null.
fn dig(value: Value, path: Arc<String>) -> Value {
    let mut found = &value;
    for part in path.split('.') {
        let next = if let Value::Map(map) = found {
            map.map.get(&Key::from(part))
        } else if let Value::List(items) = found {
            part.parse::<usize>().ok().and_then(|index| items.get(index))
        } else {
            None
        };
        match next {
            Some(next) => found = next,
            None => return Value::Null,
        }
    }
    found.clone()
}

#[cfg(test)]
mod tests;
