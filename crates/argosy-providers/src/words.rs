//! What providers say alike: the reasons and sentences of the documents.

use argosy_control::provider::{Cause, Done, Refusal};
use argosy_core::machine::Trouble;
use argosy_core::nearest::nearest;
use serde_json::{Map, Value, json};

pub(crate) fn done(reason: &str, message: impl Into<String>, data: Value) -> Done {
    Done { reason: reason.to_owned(), message: message.into(), data: map(data), unhealthy: None }
}

/// Done, because there is nothing to do.
pub(crate) fn nothing_to_make(message: &str) -> Done {
    done("NothingToMake", message, json!({}))
}

/// A word of the spec that nobody knows, with the nearest that somebody does.
pub(crate) fn unknown<'a>(
    field: &str,
    noun: &str,
    word: &str,
    known: impl Iterator<Item = &'a str>,
) -> Trouble {
    let mut known: Vec<&str> = known.collect();
    known.sort_unstable();
    known.dedup();
    let hint = match nearest(word, known.iter().copied()) {
        Some(near) => format!("; did you mean '{near}'?"),
        None if known.is_empty() => "; there are none here".to_owned(),
        None => format!("; there are: {}", known.join(", ")),
    };
    let message = format!("there is no {noun} '{word}'{hint}");
    Trouble::Invalid { field: field.to_owned(), message }
}

/// All checks of a cluster or a pool, in the order in which they were made.
pub(crate) fn checked(generation: u32, checks: &[(&str, bool)]) -> Done {
    let message = if generation <= 1 {
        let passed: Vec<&str> =
            checks.iter().filter(|(_, passed)| *passed).map(|(name, _)| *name).collect();
        format!("Validation completed successfully. All checks passed: {}", passed.join(", "))
    } else {
        "Validation completed successfully for updated spec".to_owned()
    };
    let results: Map<String, Value> =
        checks.iter().map(|(name, passed)| ((*name).to_owned(), json!(passed))).collect();
    done("AllChecksPassed", message, json!({ "validationResults": results }))
}

pub(crate) fn health_check_failed() -> Cause {
    Cause {
        reason: "HealthCheckFailed".to_owned(),
        message: "DNS records exist but health check failing. Record set may be misconfigured."
            .to_owned(),
    }
}

pub(crate) fn refusal(reason: &str, message: String, guidance: impl Into<String>) -> Refusal {
    Refusal {
        cause: Cause { reason: reason.to_owned(), message },
        applied: false,
        healthy: true,
        data: map(json!({ "guidance": guidance.into() })),
    }
}

/// `service` is what keeps zones: `Cloud DNS managed zone`.
pub(crate) fn zone_not_found(service: &str, domain: &str) -> Refusal {
    let message = format!(
        "{service} not found for domain {domain}. Please create zone or update cluster spec."
    );
    let guidance = format!("Create the zone {domain}, or set spec.dns.baseDomain to one you have.");
    Refusal { healthy: false, ..refusal("DNSZoneNotFound", message, guidance) }
}

/// What a provider's no means for a part of a cluster.
pub(crate) fn refused(trouble: &Trouble, display: &str) -> Refusal {
    let message = trouble.to_string();
    match trouble {
        Trouble::Denied { permission, .. } if !permission.is_empty() => {
            let message =
                format!("Service account lacks {permission} permission in {display} project");
            let guidance = format!("Grant {permission} to the service account.");
            refusal("PermissionDenied", message, guidance)
        }
        Trouble::Denied { .. } => {
            refusal("PermissionDenied", message, "Grant the service account what is missing.")
        }
        Trouble::Credentials(_) => {
            let guidance = format!("Give Argosy new credentials for {display}.");
            refusal("CredentialsInvalid", message, guidance)
        }
        Trouble::Quota { resource, .. } => {
            let guidance = format!("Request a quota increase for {resource}, or use less.");
            refusal("QuotaExceeded", message, guidance)
        }
        Trouble::Capacity { .. } => {
            refusal("ProvisioningFailed", message, "Try another zone, region or machine type.")
        }
        Trouble::Invalid { .. } | Trouble::NotFound(_) => {
            refusal("InvalidSpec", message, "Change the spec.")
        }
        Trouble::Unable(_) => refusal("NotSupported", message, "Use another provider for this."),
        Trouble::Throttled { .. } => refusal("Throttled", message, "It is tried again by itself."),
        Trouble::Unsure(_) | Trouble::Unreachable(_) => {
            let guidance = "It is tried again by itself.";
            Refusal { healthy: false, ..refusal("ProviderUnreachable", message, guidance) }
        }
    }
}

fn map(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Map::new()
        }
    }
}
