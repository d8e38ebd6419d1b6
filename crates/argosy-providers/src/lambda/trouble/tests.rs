use super::*;
use crate::rest::Bucket;
use argosy_control::clock::Clock;
use http::StatusCode;
use reqwest::Url;
use serde_json::json;
use std::time::Duration;

#[test]
fn what_a_refused_call_means() {
    let url = Url::parse("https://cloud.lambda.ai").unwrap();
    let bucket = Bucket::new(1.0, 1);
    let rest = Rest::new("Lambda", &url, Duration::from_secs(1), bucket, Clock::System).unwrap();
    let check = |status: u16, code: &str, effect: Effect, expected: &str| {
        let status = StatusCode::from_u16(status).unwrap();
        let body = json!({ "error": { "code": code, "message": "Told.", "suggestion": "Do." } });
        let said = Said { status, retry_after_s: None, body };
        let trouble = format!("{:?}", super::said(&rest, &said, effect));
        assert!(trouble.starts_with(expected), "{status} {code}: {trouble}");
    };
    use Effect::{Change, Look};
    check(401, "global/invalid-api-key", Look, "Credentials(\"Told. Do.\")");
    check(403, "global/account-inactive", Change, "Credentials");
    check(400, "global/quota-exceeded", Change, "Quota { resource: \"instances\", each: 1");
    check(
        400,
        "instance-operations/launch/insufficient-capacity",
        Change,
        "Capacity { code: \"instance-operations/launch/insufficient-capacity\"",
    );
    check(404, "global/object-does-not-exist", Change, "NotFound");
    check(403, "global/payment-method-required", Change, "Denied");
    check(400, "global/invalid-parameters", Change, "Invalid");
    check(400, "instance-operations/launch/file-system-in-wrong-region", Change, "Invalid");
    check(429, "", Change, "Throttled");
    check(500, "global/unknown", Change, "Unsure");
    check(500, "global/unknown", Look, "Unreachable");
    check(400, "something/new", Change, "Invalid");
}

#[test]
fn the_member_that_is_wrong_is_named_as_in_a_spec() {
    for (field, expected) in [
        ("instance_type_name", "machineType"),
        ("region_name", "region"),
        ("ssh_key_names", "sshKey"),
        ("quantity", ""),
    ] {
        assert_eq!(member(field), expected);
    }
}
