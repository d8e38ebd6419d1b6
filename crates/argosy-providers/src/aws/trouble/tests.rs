use crate::aws::query::{Effect, Fault, FaultKind, Refused};
use argosy_core::machine::Trouble;
use http::StatusCode;
use std::time::Duration;

fn refused(status: u16, code: &str, message: &str, effect: Effect) -> Trouble {
    let kind = FaultKind::Refused(Refused {
        status: StatusCode::from_u16(status).expect("a status"),
        code: code.to_owned(),
        message: message.to_owned(),
        retry_after_s: None,
    });
    Fault { permission: "ec2:RunInstances".to_owned(), effect, kind }.into()
}

/// The variant, and what matters in it.
fn gist(trouble: &Trouble) -> String {
    match trouble {
        Trouble::Unsure(_) => "unsure".to_owned(),
        Trouble::Throttled { .. } => "throttled".to_owned(),
        Trouble::Quota { resource, available, .. } => format!("quota {resource} {available}"),
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
fn every_error_of_a_launch_means_what_can_be_done_about_it() {
    let denied = "You are not authorized to perform this operation. User: arn:aws:iam::1:user/a is \
                  not authorized to perform: iam:PassRole on resource: arn:aws:iam::1:role/r";
    let rows = [
        (500, "InsufficientInstanceCapacity", "", "capacity InsufficientInstanceCapacity"),
        (500, "InsufficientHostCapacity", "", "capacity InsufficientHostCapacity"),
        (400, "SpotMaxPriceTooLow", "", "capacity SpotMaxPriceTooLow"),
        (400, "MaxSpotInstanceCountExceeded", "", "quota spot instances 0"),
        (400, "VcpuLimitExceeded", "your current vCPU limit of 32 allows", "quota vCPUs 0"),
        (
            400,
            "InstanceLimitExceeded",
            "Your quota allows for 3 more running instance(s). You requested at least 5",
            "quota instances 3",
        ),
        (503, "RequestLimitExceeded", "", "throttled"),
        (400, "Throttling", "", "throttled"),
        (429, "", "", "throttled"),
        (401, "AuthFailure", "", "credentials"),
        (403, "InvalidClientTokenId", "", "credentials"),
        (400, "ExpiredToken", "", "credentials"),
        (400, "RequestExpired", "", "credentials"),
        (403, "SignatureDoesNotMatch", "", "credentials"),
        (403, "UnauthorizedOperation", "", "denied ec2:RunInstances"),
        (403, "UnauthorizedOperation", denied, "denied iam:PassRole"),
        (403, "AccessDenied", "", "denied ec2:RunInstances"),
        (400, "InvalidInstanceType", "", "invalid machineType"),
        (400, "InvalidAMIID.NotFound", "", "invalid image"),
        (400, "InvalidParameterValue", "", "invalid "),
        (400, "Unsupported", "", "invalid zones"),
        (400, "InvalidInstanceID.NotFound", "", "not found"),
        (400, "InvalidInstanceID.Malformed", "", "not found"),
        (400, "IdempotentParameterMismatch", "", "unsure"),
        (500, "InternalError", "", "unsure"),
        (503, "Unavailable", "", "unsure"),
        (502, "", "", "unsure"),
        (302, "", "", "unsure"),
        (400, "SomethingNew", "", "unable"),
    ];
    for (status, code, message, expected) in rows {
        let trouble = refused(status, code, message, Effect::Launch);
        assert_eq!(gist(&trouble), expected, "{status} {code} {message}");
    }
}

#[test]
fn what_only_looked_has_done_nothing() {
    for (status, code) in [(500, "InternalError"), (503, "Unavailable"), (502, "")] {
        assert_eq!(gist(&refused(status, code, "", Effect::Read)), "unreachable");
    }
    let no_answer = |effect| {
        let kind = FaultKind::NoAnswer("a timeout".to_owned());
        gist(&Fault { permission: "ec2:X".to_owned(), effect, kind }.into())
    };
    assert_eq!(no_answer(Effect::Read), "unreachable");
    assert_eq!(no_answer(Effect::Change), "unsure");
    assert_eq!(no_answer(Effect::Launch), "unsure");
}

#[test]
fn what_was_never_sent_was_not_done() {
    let trouble =
        |kind| gist(&Fault { permission: "ec2:X".to_owned(), effect: Effect::Launch, kind }.into());
    assert_eq!(trouble(FaultKind::NotSent("refused".to_owned())), "unreachable");
    assert_eq!(trouble(FaultKind::NoKeys("none".to_owned())), "credentials");
    assert_eq!(trouble(FaultKind::TooFast(Duration::from_secs(40))), "throttled");
}

#[test]
fn a_refusal_is_told_without_what_nobody_can_read() {
    let message = "Not allowed. Encoded authorization failure message: 4GIOHlTkIaWHQD0Q0m6XSnuUMCm";
    let trouble = refused(403, "UnauthorizedOperation", message, Effect::Launch);
    assert_eq!(trouble.to_string(), "UnauthorizedOperation: Not allowed.");
}

#[test]
fn r2_i6_r2_i11_one_bad_order_does_not_suspend_the_account_and_is_told_as_it_is() {
    let rows = [
        ("OptInRequired", Effect::Launch, "invalid image"),
        ("OptInRequired", Effect::Read, "denied ec2:RunInstances"),
        // Protection from termination is no missing permission.
        ("OperationNotPermitted", Effect::Change, "unable"),
        (
            "InsufficientFreeAddressesInSubnet",
            Effect::Launch,
            "capacity InsufficientFreeAddressesInSubnet",
        ),
    ];
    for (code, effect, expected) in rows {
        let trouble = refused(400, code, "AWS says why", effect);
        assert_eq!(gist(&trouble), expected, "{code}");
        let whole = format!("{trouble:?}");
        assert!(whole.contains("AWS says why"), "{whole}");
    }
}
