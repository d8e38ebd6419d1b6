//! What the simulated cloud says: the reasons and sentences of the documents, word for word.

use super::quota::Exceeded;
use super::want::Want;
use argosy_control::provider::{Cause, Done, Part, Refusal};
use serde_json::{Map, Value, json};

pub(super) fn done(reason: &str, message: impl Into<String>, data: Value) -> Done {
    Done { reason: reason.to_owned(), message: message.into(), data: map(data), unhealthy: None }
}

pub(super) fn removed(part: Part) -> Done {
    let (reason, message) = match part {
        Part::Dns => ("RecordsRemoved", "DNS records removed"),
        Part::Infrastructure => {
            ("InfrastructureRemoved", "Infrastructure resources successfully cleaned up")
        }
    };
    done(reason, message, json!({}))
}

pub(super) fn health_check_failed() -> Cause {
    Cause {
        reason: "HealthCheckFailed".to_owned(),
        message: "DNS records exist but health check failing. Record set may be misconfigured."
            .to_owned(),
    }
}

pub(super) fn permission_denied(permission: &str, display: &str) -> Refusal {
    let message = format!("Service account lacks {permission} permission in {display} project");
    refusal("PermissionDenied", message, format!("Grant {permission} to the service account."))
}

pub(super) fn label_denied(label: &str) -> Refusal {
    let message = format!("Insufficient permissions to access clusters with label '{label}'");
    let guidance = format!("Ask for access to clusters with label '{label}', or change the label.");
    refusal("PermissionDenied", message, guidance)
}

pub(super) fn pools_denied() -> Refusal {
    let message = "Insufficient permissions to access nodepools in cluster".to_owned();
    let guidance = "Ask for access to the node pools of this cluster.".to_owned();
    refusal("PermissionDenied", message, guidance)
}

pub(super) fn quota_exceeded(exceeded: &Exceeded, want: &Want) -> Refusal {
    let Exceeded { metric, limit, used, needed } = exceeded;
    let (display, region) = (&want.display, &want.place.region);
    let message = format!(
        "{display} quota exceeded for resource: {metric} in region {region}. Current: {used}/{limit}"
    );
    let guidance = format!(
        "Request a quota increase for {metric} in {region}, or use another region. \
         {needed} more needed."
    );
    refusal("QuotaExceeded", message, guidance)
}

pub(super) fn zone_not_found(domain: &str) -> Refusal {
    let message = format!(
        "Route53 hosted zone not found for domain {domain}. \
         Please create zone or update cluster spec."
    );
    let guidance = format!("Create the zone {domain}, or set spec.dns.baseDomain to one you have.");
    Refusal { healthy: false, ..refusal("DNSZoneNotFound", message, guidance) }
}

pub(super) fn timed_out(display: &str, after_s: u32) -> Refusal {
    let after = match after_s % 60 {
        0 => format!("{} minutes", after_s / 60),
        _ => format!("{after_s} seconds"),
    };
    let message =
        format!("{display} cluster creation timed out after {after}. Last status: Not ready");
    let guidance = "It is tried again by itself. If it times out again, look at the provider's \
                    console: somebody may have to step in."
        .to_owned();
    refusal("Timeout", message, guidance)
}

pub(super) fn unsupported(reason: &str, message: String) -> Refusal {
    refusal(reason, message, "Change the spec.".to_owned())
}

fn refusal(reason: &str, message: String, guidance: String) -> Refusal {
    Refusal {
        cause: Cause { reason: reason.to_owned(), message },
        applied: false,
        healthy: true,
        data: map(json!({ "guidance": guidance })),
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
