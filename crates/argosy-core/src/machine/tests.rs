use super::Trouble;

/// Every way to say no, with its word and what a person can do.
#[test]
fn every_trouble_has_a_word_and_a_way_out() {
    let text = || "says no".to_owned();
    let rows = [
        (Trouble::Unsure(text()), "ProvisioningUnconfirmed", "looked for"),
        (Trouble::Throttled { retry_after_s: None, message: text() }, "Throttled", "tried again"),
        (quota("CPUs", 64, 32), "QuotaExceeded", "a node needs 64, 32 are left"),
        (quota("GPUs", 0, 0), "QuotaExceeded", "the quota of GPUs raised at the provider, or"),
        (quota("", 0, 0), "QuotaExceeded", "the quota raised"),
        (
            Trouble::Capacity { code: "ZONE_EXHAUSTED".to_owned(), message: text() },
            "InsufficientCapacity",
            "more zones",
        ),
        (Trouble::Credentials(text()), "CredentialsInvalid", "valid credentials"),
        (
            Trouble::Denied { permission: "ec2:RunInstances".to_owned(), message: text() },
            "PermissionDenied",
            "the permission ec2:RunInstances.",
        ),
        (
            Trouble::Denied { permission: String::new(), message: text() },
            "PermissionDenied",
            "the missing permission",
        ),
        (
            Trouble::Invalid { field: "machineType".to_owned(), message: text() },
            "InvalidSpec",
            "`machineType`",
        ),
        (Trouble::NotFound(text()), "ProvisioningFailed", "still exists"),
        (Trouble::Unreachable(text()), "ProviderUnreachable", "can be reached"),
        (Trouble::Unable(text()), "NotSupported", "another provider"),
    ];
    for (trouble, reason, guidance) in rows {
        assert_eq!(trouble.reason(), reason);
        assert!(trouble.guidance().contains(guidance), "{}", trouble.guidance());
        assert!(trouble.guidance().ends_with('.'), "{}", trouble.guidance());
        assert_eq!(trouble.to_string(), "says no");
    }
}

fn quota(resource: &str, each: u64, available: u64) -> Trouble {
    let (resource, message) = (resource.to_owned(), "says no".to_owned());
    Trouble::Quota { resource, each, available, message }
}
