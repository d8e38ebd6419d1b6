//! What is said about the parts of a cluster: the same reasons as every other provider gives.

use argosy_control::provider::{Cause, Done, Refusal};
use argosy_core::machine::Trouble;
use serde_json::{Map, Value, json};

pub(super) fn done(reason: &str, message: impl Into<String>, data: Value) -> Done {
    Done { reason: reason.to_owned(), message: message.into(), data: map(data), unhealthy: None }
}

pub(super) fn refusal(reason: &str, message: String, guidance: String) -> Refusal {
    Refusal {
        cause: Cause { reason: reason.to_owned(), message },
        applied: false,
        healthy: true,
        data: map(json!({ "guidance": guidance })),
    }
}

pub(super) fn zone_not_found(domain: &str) -> Refusal {
    let message = format!(
        "Route53 hosted zone not found for domain {domain}. \
         Please create zone or update cluster spec."
    );
    let guidance = format!("Create the zone {domain}, or set spec.dns.baseDomain to one you have.");
    Refusal { healthy: false, ..refusal("DNSZoneNotFound", message, guidance) }
}

/// A record of that name is somebody else's.
pub(super) fn record_taken(name: &str, whose: &str) -> Refusal {
    let message = format!("DNS record {name} exists already and {whose}");
    let guidance = format!("Remove {name}, or give the cluster another name or domain.");
    refusal("DNSRecordConflict", message, guidance)
}

/// A target that no record can point to.
pub(super) fn bad_target(target: &str) -> Refusal {
    let shown: String = target.chars().take(80).collect();
    let message = format!("spec.dns.target `{shown}` is neither an address nor a host name");
    refusal("InvalidDNSTarget", message, "Change spec.dns.target.".to_owned())
}

/// A domain that no record can be in.
pub(super) fn bad_domain(domain: &str) -> Refusal {
    let shown: String = domain.chars().take(80).collect();
    let message = format!("`{shown}` is not a domain");
    refusal("InvalidDNSDomain", message, "Change spec.dns.baseDomain.".to_owned())
}

/// The account is asked in one region.
pub(super) fn other_region(region: &str, ours: &str) -> Refusal {
    let message = format!("Invalid region '{region}' for provider AWS. Supported regions: {ours}");
    refusal("InvalidRegion", message, "Change the spec.".to_owned())
}

/// What a trouble at AWS means to a part of a cluster.
pub(super) fn of_trouble(trouble: Trouble, region: &str) -> Refusal {
    match trouble {
        Trouble::Denied { permission, .. } => {
            let message = format!("AWS credentials lack {permission} permission in {region}");
            refusal("PermissionDenied", message, format!("Grant {permission} to the credentials."))
        }
        Trouble::Quota { resource, message, .. } => {
            let message = format!(
                "AWS quota exceeded for resource: {resource} in region {region}. {message}"
            );
            let guidance = format!(
                "Request a quota increase for {resource} in {region}, or use another region."
            );
            refusal("QuotaExceeded", message, guidance)
        }
        Trouble::Credentials(message) => {
            let guidance = "Give the provider credentials that AWS takes.".to_owned();
            Refusal { healthy: false, ..refusal("CredentialsInvalid", message, guidance) }
        }
        Trouble::Invalid { message, .. } => {
            let guidance = "Change the spec or the provider's settings.".to_owned();
            refusal("InvalidRequest", message, guidance)
        }
        Trouble::Capacity { message, .. }
        | Trouble::Unsure(message)
        | Trouble::Throttled { message, .. }
        | Trouble::NotFound(message)
        | Trouble::Unreachable(message)
        | Trouble::Unable(message) => {
            let guidance = "It is tried again by itself.".to_owned();
            Refusal { healthy: false, ..refusal("ProviderError", message, guidance) }
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
