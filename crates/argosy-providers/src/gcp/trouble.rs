//! What Google's errors mean.

use super::wire::{Operation, OperationError};
use crate::rest::{Effect, Rest, Said, plain};
use argosy_core::machine::Trouble;
use http::StatusCode;
use serde_json::Value;

/// What a refused call means.
pub(super) fn said(rest: &Rest, said: &Said, effect: Effect) -> Trouble {
    let error = said.body.get("error").unwrap_or(&Value::Null);
    let message = told(error.get("message").and_then(Value::as_str).unwrap_or_default());
    let first = error.get("errors").and_then(|errors| errors.get(0));
    let reason = first.and_then(|first| first.get("reason")).and_then(Value::as_str);
    let details = error.get("details").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let detail = details.iter().find_map(|detail| detail.get("reason")?.as_str());
    let status = error.get("status").and_then(Value::as_str).unwrap_or_default();
    let retry_after_s = said.retry_after_s;
    match (said.status, reason.unwrap_or_default(), detail.unwrap_or_default()) {
        (StatusCode::FORBIDDEN, "rateLimitExceeded" | "userRateLimitExceeded", _)
        | (StatusCode::FORBIDDEN, _, "RATE_LIMIT_EXCEEDED") => {
            Trouble::Throttled { retry_after_s, message }
        }
        (StatusCode::FORBIDDEN, "quotaExceeded", _) => quota(message),
        (StatusCode::FORBIDDEN, "accessNotConfigured", _)
        | (StatusCode::FORBIDDEN, _, "SERVICE_DISABLED") => {
            Trouble::Denied { permission: "serviceusage.services.use".to_owned(), message }
        }
        (StatusCode::FORBIDDEN, ..) => {
            Trouble::Denied { permission: permission(&message).to_owned(), message }
        }
        // An organization's policy.
        (StatusCode::PRECONDITION_FAILED, ..) => {
            Trouble::Denied { permission: String::new(), message }
        }
        (StatusCode::SERVICE_UNAVAILABLE, ..) if is_stock_out(&message) => {
            Trouble::Capacity { code: STOCK_OUT.to_owned(), message }
        }
        (StatusCode::BAD_REQUEST, ..) if status == "RESOURCE_EXHAUSTED" => quota(message),
        (StatusCode::BAD_REQUEST, ..) => {
            Trouble::Invalid { field: field(&message).to_owned(), message }
        }
        _ => rest.common(said, effect, &message),
    }
}

/// What a failed operation means; `None` if it did not fail.
pub(super) fn operation(operation: &Operation) -> Option<Trouble> {
    let none = OperationError::default();
    let errors = operation.error.as_ref().map(|error| error.errors.as_slice());
    let status = operation.http_error_status_code.filter(|status| 400 <= *status);
    let OperationError { code, message } = match errors {
        Some(errors) => errors.first().unwrap_or(&none),
        None if status.is_some() => &none,
        None => return None,
    };
    let message = match told(message) {
        empty if empty.is_empty() => {
            format!("GCP's operation {} failed", plain(&operation.name))
        }
        message => message,
    };
    Some(match code.as_str() {
        code if code.contains("RESOURCE_POOL_EXHAUSTED") || code.contains("STOCKOUT") => {
            Trouble::Capacity { code: plain(code), message }
        }
        "QUOTA_EXCEEDED" | "QUOTA_FOR_INSTANCES" | "LIMIT_EXCEEDED" => quota(message),
        "RATE_LIMIT_EXCEEDED" | "RESOURCE_OPERATION_RATE_EXCEEDED" => {
            Trouble::Throttled { retry_after_s: None, message }
        }
        "PERMISSIONS_ERROR" | "FORBIDDEN" => {
            Trouble::Denied { permission: permission(&message).to_owned(), message }
        }
        "CONDITION_NOT_MET" => Trouble::Denied { permission: String::new(), message },
        "INVALID_FIELD_VALUE"
        | "RESOURCE_NOT_FOUND"
        | "INVALID_USAGE"
        | "BAD_REQUEST"
        | "UNSUPPORTED_OPERATION" => {
            Trouble::Invalid { field: field(&message).to_owned(), message }
        }
        // Whatever else it is, it may have left something behind.
        _ => Trouble::Unsure(message),
    })
}

const STOCK_OUT: &str = "ZONE_RESOURCE_POOL_EXHAUSTED";

fn is_stock_out(message: &str) -> bool {
    message.contains("RESOURCE_POOL_EXHAUSTED") || message.contains("not have enough resources")
}

/// An error may repeat what was sent, and what machines are told at boot is a secret.
fn told(message: &str) -> String {
    let secret = ["metadata", "startup-script", "user-data"];
    match message.split_once('\'') {
        Some((before, _)) if secret.iter().any(|word| message.contains(word)) => {
            plain(&format!("{before}(what was sent is not repeated)"))
        }
        Some(_) | None => plain(message),
    }
}

/// `Quota 'NVIDIA_A100_GPUS' exceeded.  Limit: 16.0 in region us-central1.`
fn quota(message: String) -> Trouble {
    let metric = message.split('\'').nth(1).unwrap_or_default();
    let resource = unit(metric).to_owned();
    // How much is used is asked separately; that nothing is left is what it says.
    Trouble::Quota { resource, each: 0, available: 0, message }
}

/// What a metric counts.
pub(super) fn unit(metric: &str) -> &str {
    match metric {
        metric if metric.contains("GPUS") => "GPUs",
        metric if metric.contains("CPUS") => "CPUs",
        "" | "INSTANCES" => "instances",
        metric => metric,
    }
}

/// `Required 'compute.instances.create' permission for 'projects/p'`.
fn permission(message: &str) -> &str {
    let quoted = message.split('\'').nth(1).unwrap_or_default();
    let named = quoted.split('.').count() == 3
        && quoted.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'.');
    if named { quoted } else { "" }
}

/// Which member of the pool's spec an error is about.
fn field(message: &str) -> &'static str {
    const WORDS: [(&str, &str); 9] = [
        ("machineType", "machineType"),
        ("Machine type", "machineType"),
        ("sourceImage", "image"),
        ("/images/", "image"),
        ("subnetworks/", "subnetwork"),
        ("networks/", "network"),
        ("field 'zone'", "zones"),
        ("Unknown zone", "zones"),
        ("field 'region'", "region"),
    ];
    let found = WORDS.iter().find(|(word, _)| message.contains(word));
    found.map_or("", |(_, field)| field)
}

#[cfg(test)]
mod tests;
