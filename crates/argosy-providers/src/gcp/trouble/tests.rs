use super::super::wire::OperationErrors;
use super::*;
use crate::rest::Bucket;
use argosy_control::clock::Clock;
use reqwest::Url;
use serde_json::json;
use std::time::Duration;

fn rest() -> Rest {
    let url = Url::parse("https://compute.googleapis.com").unwrap();
    let bucket = Bucket::new(1.0, 1);
    Rest::new("GCP", &url, Duration::from_secs(1), bucket, Clock::System).unwrap()
}

/// The trouble's kind, and what else it says in a word.
fn word(trouble: &Trouble) -> String {
    match trouble {
        Trouble::Unsure(_) => "unsure".to_owned(),
        Trouble::Throttled { retry_after_s, .. } => format!("throttled {retry_after_s:?}"),
        Trouble::Quota { resource, .. } => format!("quota {resource}"),
        Trouble::Capacity { code, .. } => format!("capacity {code}"),
        Trouble::Credentials(_) => "credentials".to_owned(),
        Trouble::Denied { permission, .. } => format!("denied {permission}"),
        Trouble::Invalid { field, .. } => format!("invalid {field}"),
        Trouble::NotFound(_) => "not found".to_owned(),
        Trouble::Unreachable(_) => "unreachable".to_owned(),
        Trouble::Unable(_) => "unable".to_owned(),
    }
}

#[test]
fn what_a_refused_call_means() {
    let rest = rest();
    let check = |status: u16, reason: &str, message: &str, expected: &str| {
        let body = json!({ "error": {
            "code": status, "message": message, "errors": [{ "reason": reason }],
        }});
        let status = StatusCode::from_u16(status).unwrap();
        let said = Said { status, retry_after_s: Some(4), body };
        let trouble = super::said(&rest, &said, Effect::Change);
        assert_eq!(word(&trouble), expected, "{status} {reason}: {message}");
    };
    check(401, "authError", "Invalid Credentials", "credentials");
    check(
        403,
        "forbidden",
        "Required 'compute.instances.create' permission for 'projects/p'",
        "denied compute.instances.create",
    );
    check(403, "forbidden", "The caller does not have permission", "denied ");
    check(
        403,
        "accessNotConfigured",
        "Compute Engine API has not been used in project 1",
        "denied serviceusage.services.use",
    );
    check(403, "rateLimitExceeded", "Rate Limit Exceeded", "throttled Some(4)");
    check(403, "userRateLimitExceeded", "User Rate Limit Exceeded", "throttled Some(4)");
    check(
        403,
        "quotaExceeded",
        "Quota 'NVIDIA_A100_GPUS' exceeded.  Limit: 16.0 in region r.",
        "quota GPUs",
    );
    check(403, "quotaExceeded", "Quota 'CPUS' exceeded.  Limit: 24.0 in region r.", "quota CPUs");
    check(404, "notFound", "The resource 'x' was not found", "not found");
    check(
        412,
        "conditionNotMet",
        "Constraint constraints/compute.vmExternalIpAccess violated",
        "denied ",
    );
    check(429, "rateLimitExceeded", "Too many", "throttled Some(4)");
    check(
        400,
        "invalid",
        "Invalid value for field 'resource.machineType': 'x'. …",
        "invalid machineType",
    );
    check(
        400,
        "invalid",
        "Machine type with name 'x' does not exist in zone 'z'.",
        "invalid machineType",
    );
    check(400, "invalid", "Invalid value for field 'zone': 'us-x'. Unknown zone.", "invalid zones");
    check(
        400,
        "invalid",
        "Invalid value for field \
        'resource.disks[0].initializeParams.sourceImage': 'x'.",
        "invalid image",
    );
    check(400, "required", "Required field 'resource' not specified", "invalid ");
    check(
        503,
        "backendError",
        "The zone 'z' does not have enough resources available",
        "capacity ZONE_RESOURCE_POOL_EXHAUSTED",
    );
    check(500, "backendError", "Internal error", "unsure");
}

#[test]
fn what_a_failed_operation_means() {
    let check = |code: &str, message: &str, expected: &str| {
        let error = OperationError { code: code.to_owned(), message: message.to_owned() };
        let failed = Operation {
            status: "DONE".to_owned(),
            error: Some(OperationErrors { errors: vec![error] }),
            ..Operation::default()
        };
        let trouble = operation(&failed).expect("it failed");
        assert_eq!(word(&trouble), expected, "{code}");
        assert!(!trouble.to_string().is_empty());
    };
    check("ZONE_RESOURCE_POOL_EXHAUSTED", "", "capacity ZONE_RESOURCE_POOL_EXHAUSTED");
    check(
        "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS",
        "The zone 'z' does not have enough",
        "capacity ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS",
    );
    check("QUOTA_EXCEEDED", "Quota 'PREEMPTIBLE_NVIDIA_H100_GPUS' exceeded.", "quota GPUs");
    check("QUOTA_EXCEEDED", "Quota 'INSTANCES' exceeded.", "quota instances");
    check("RESOURCE_OPERATION_RATE_EXCEEDED", "slow down", "throttled None");
    check(
        "PERMISSIONS_ERROR",
        "Required 'compute.disks.create' permission for 'projects/p'",
        "denied compute.disks.create",
    );
    check(
        "RESOURCE_NOT_FOUND",
        "The resource 'projects/p/global/images/x' was not found",
        "invalid image",
    );
    check("INTERNAL_ERROR", "Internal error", "unsure");
    check("", "", "unsure");
    let fine = Operation { status: "DONE".to_owned(), ..Operation::default() };
    assert_eq!(operation(&fine), None);
    let bare = Operation { http_error_status_code: Some(500), ..fine };
    assert_eq!(operation(&bare).map(|it| word(&it)), Some("unsure".to_owned()));
}

#[test]
fn i12_what_machines_are_told_is_not_repeated() {
    let message = "Invalid value for field 'resource.metadata.items[0].value': 'join s3cr3t'. …";
    let body = json!({ "error": { "code": 400, "message": message } });
    let said = Said { status: StatusCode::BAD_REQUEST, retry_after_s: None, body };
    let trouble = super::said(&rest(), &said, Effect::Change);
    assert!(!format!("{trouble:?}").contains("s3cr3t"), "{trouble:?}");
}

#[test]
fn bodies_of_other_shapes_mean_what_their_status_means() {
    let rest = rest();
    for body in [
        json!(null),
        json!([]),
        json!("error"),
        json!({ "error": "text" }),
        json!({ "error": { "message": 7, "errors": {}, "details": "x" } }),
        json!({ "error": { "errors": [{ "reason": [] }], "details": [1, {}] } }),
    ] {
        let said = Said { status: StatusCode::BAD_GATEWAY, retry_after_s: None, body };
        let trouble = super::said(&rest, &said, Effect::Change);
        assert_eq!(word(&trouble), "unsure", "{said:?}");
    }
}
