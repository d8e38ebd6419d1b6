//! What AWS's errors mean to us.
//!
//! What a newcomer gets wrong: the code decides, not the status. EC2 says that it has no machines left with
//! a 500, and that we are too fast with a 503; neither did anything.

use super::query::{Effect, Fault, FaultKind, Refused};
use argosy_core::machine::Trouble;

/// Codes that say: too fast.
const THROTTLE: [&str; 8] = [
    "RequestLimitExceeded",
    "Throttling",
    "ThrottlingException",
    "RequestThrottled",
    "RequestThrottledException",
    "TooManyRequestsException",
    "PriorRequestNotComplete",
    "EC2ThrottledException",
];

/// Codes that say: we do not know you, or not any more.
const CREDENTIALS: [&str; 11] = [
    "AuthFailure",
    "InvalidClientTokenId",
    "UnrecognizedClientException",
    "ExpiredToken",
    "ExpiredTokenException",
    "RequestExpired",
    "SignatureDoesNotMatch",
    "InvalidSignatureException",
    "IncompleteSignature",
    "MissingAuthenticationToken",
    "InvalidAccessKeyId",
];

/// Codes that say: you may not.
const DENIED: [&str; 3] = ["UnauthorizedOperation", "AccessDenied", "AccessDeniedException"];

/// Codes that say: none left here.
const CAPACITY: [&str; 7] = [
    "InsufficientInstanceCapacity",
    "InsufficientHostCapacity",
    "InsufficientReservedInstanceCapacity",
    "InsufficientCapacityOnHost",
    "InsufficientCapacity",
    "SpotMaxPriceTooLow",
    // Another zone has another subnet.
    "InsufficientFreeAddressesInSubnet",
];

/// Codes that say: your allowance is used up; and what it is of.
const QUOTA: [(&str, &str); 9] = [
    ("VcpuLimitExceeded", "vCPUs"),
    ("InstanceLimitExceeded", "instances"),
    ("MaxSpotInstanceCountExceeded", "spot instances"),
    ("MaxSpotFleetRequestCountExceeded", "spot instances"),
    ("VolumeLimitExceeded", "volumes"),
    ("AddressLimitExceeded", "addresses"),
    ("VpcLimitExceeded", "VPCs"),
    ("SubnetLimitExceeded", "subnets"),
    ("SecurityGroupLimitExceeded", "security groups"),
];

/// Codes about one thing that was named, by the member of the spec or setting that names it.
const INVALID: [(&str, &str); 14] = [
    ("InvalidInstanceType", "machineType"),
    ("InvalidAMIID.NotFound", "image"),
    ("InvalidAMIID.Malformed", "image"),
    ("InvalidAMIID.Unavailable", "image"),
    ("InvalidAvailabilityZone", "zones"),
    ("InvalidZone.NotFound", "zones"),
    ("InvalidSubnetID.NotFound", "subnets"),
    ("InvalidSubnet", "subnets"),
    ("InvalidGroup.NotFound", "securityGroups"),
    ("InvalidSecurityGroupID.NotFound", "securityGroups"),
    ("InvalidKeyPair.NotFound", "keyName"),
    ("InvalidIamInstanceProfileArn.Malformed", "instanceProfile"),
    ("InvalidUserData.Malformed", "userData"),
    ("Unsupported", "zones"),
];

pub(super) fn is_throttle(refused: &Refused) -> bool {
    THROTTLE.contains(&refused.code.as_str())
        || (refused.code.is_empty() && refused.status.as_u16() == 429)
}

pub(super) fn is_credentials(code: &str) -> bool {
    CREDENTIALS.contains(&code)
}

impl From<Fault> for Trouble {
    fn from(fault: Fault) -> Self {
        let Fault { permission, effect, kind } = fault;
        match kind {
            FaultKind::NoKeys(why) => Trouble::Credentials(why),
            FaultKind::NotSent(why) => {
                Trouble::Unreachable(format!("{permission} could not be asked: {why}"))
            }
            FaultKind::NoAnswer(why) => unanswered(effect, format!("{permission}: {why}")),
            FaultKind::TooFast(wait) => Trouble::Throttled {
                retry_after_s: Some(u32::try_from(wait.as_secs()).unwrap_or(u32::MAX).max(1)),
                message: format!("{permission} is asked more often than EC2 allows"),
            },
            FaultKind::Refused(refused) => of_refused(refused, permission, effect),
        }
    }
}

/// A call that only looks has done nothing, whatever became of it.
fn unanswered(effect: Effect, message: String) -> Trouble {
    match effect {
        Effect::Read => Trouble::Unreachable(message),
        Effect::Change | Effect::Launch => Trouble::Unsure(message),
    }
}

fn of_refused(refused: Refused, permission: String, effect: Effect) -> Trouble {
    let throttled = is_throttle(&refused);
    let Refused { status, code, message, retry_after_s } = refused;
    let code = code.as_str();
    let told = if code.is_empty() { message.clone() } else { format!("{code}: {message}") };
    if throttled {
        return Trouble::Throttled { retry_after_s, message: told };
    }
    if code == "RequestExpired" {
        // Signed too long ago by AWS's clock: mostly it is ours that is wrong.
        return Trouble::Credentials(format!("{told} Is this machine's clock right?"));
    }
    if is_credentials(code) {
        return Trouble::Credentials(told);
    }
    if DENIED.contains(&code) {
        return Trouble::Denied {
            permission: permission_in(&message).unwrap_or(permission),
            message: plain(&told),
        };
    }
    if CAPACITY.contains(&code) {
        return Trouble::Capacity { code: code.to_owned(), message };
    }
    if let Some((_, resource)) = QUOTA.iter().find(|(known, _)| *known == code) {
        let resource = (*resource).to_owned();
        return Trouble::Quota { resource, each: 0, available: more_allowed(&message), message };
    }
    if let Some((_, field)) = INVALID.iter().find(|(known, _)| *known == code) {
        return Trouble::Invalid { field: (*field).to_owned(), message: told };
    }
    match code {
        // An image of the Marketplace that the account has not subscribed to. The keys are good.
        "OptInRequired" if effect == Effect::Launch => {
            Trouble::Invalid { field: "image".to_owned(), message: told }
        }
        "OptInRequired" => Trouble::Denied { permission, message: told },
        "InvalidInstanceID.NotFound" | "InvalidInstanceID.Malformed" => Trouble::NotFound(told),
        // The same token with another order: the first one may have been bought.
        "IdempotentParameterMismatch" | "InvalidClientToken" => Trouble::Unsure(told),
        "InvalidParameterValue"
        | "InvalidParameterCombination"
        | "InvalidParameter"
        | "MissingParameter"
        | "ValidationError" => Trouble::Invalid { field: String::new(), message: told },
        _ if status.is_client_error() => Trouble::Unable(format!("{permission}: {told}")),
        _ => unanswered(effect, format!("{permission}: {told}")),
    }
}

/// The permission that a refusal names: `… is not authorized to perform: ec2:RunInstances on resource …`.
fn permission_in(message: &str) -> Option<String> {
    let (_, rest) = message.split_once("perform: ")?;
    let word = rest.split_whitespace().next()?.trim_end_matches(['.', ',']);
    word.contains(':').then(|| word.to_owned())
}

/// Without the encoded part, which nobody can read and which fills a page.
fn plain(message: &str) -> String {
    let cut = message.find("Encoded authorization failure message").unwrap_or(message.len());
    message.get(..cut).unwrap_or(message).trim_end().to_owned()
}

/// How many more are allowed, where it says so: `Your quota allows for 0 more running instance(s)`. A limit
/// alone does not say how much of it is left.
fn more_allowed(message: &str) -> u64 {
    let rest = message.split_once("allows for ").map(|(_, rest)| rest);
    let number = rest.and_then(|rest| rest.split_once(" more")).map(|(number, _)| number);
    number.and_then(|number| number.trim().parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests;
