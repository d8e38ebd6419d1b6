//! The pods of a node: which have to leave it, and what became of asking them.

use argosy_control::scheduler::{DrainStatus, SchedulerError};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// A pod that has to leave its node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Left {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) uid: String,
    /// Whether it was asked, and is ending.
    pub(super) leaving: bool,
}

/// What became of asking a pod to leave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It is ending.
    Leaving,
    /// It is not there any more.
    Gone,
    /// A disruption budget, or an API server that is busy, holds it back for now.
    Held(String),
    /// The API server would not, or could not.
    Failed(SchedulerError),
    /// It was not asked.
    Stays,
}

/// How many pods are named to people; the others are counted.
const PODS_NAMED: usize = 5;

impl Left {
    /// The pod, unless it stays: a DaemonSet would only start it again, on a cordoned node too, and
    /// a mirror pod is the kubelet's own.
    pub(super) fn of(metadata: &ObjectMeta) -> Option<Self> {
        let owners = metadata.owner_references.iter().flatten();
        let daemon = owners
            .into_iter()
            .any(|owner| owner.controller == Some(true) && owner.kind == "DaemonSet");
        let annotations = metadata.annotations.as_ref();
        let mirror = annotations.is_some_and(|all| all.contains_key("kubernetes.io/config.mirror"));
        if daemon || mirror {
            return None;
        }
        Some(Self {
            namespace: metadata.namespace.clone().unwrap_or_default(),
            name: metadata.name.clone().unwrap_or_default(),
            uid: metadata.uid.clone().unwrap_or_default(),
            leaving: metadata.deletion_timestamp.is_some(),
        })
    }
}

/// How far a drain is, in numbers and in words. `over` is said of a drain whose deadline has passed.
///
/// # Errors
/// If the API server refuses whatever we ask for: no pod leaves before a person has changed something.
pub(super) fn sum_up(fates: Vec<(Left, Fate)>, over: bool) -> Result<DrainStatus, SchedulerError> {
    let refused = |fate: &Fate| matches!(fate, Fate::Failed(SchedulerError::Refused(_)));
    if let Some((_, Fate::Failed(error))) = fates.first()
        && fates.iter().all(|(_, fate)| refused(fate))
    {
        return Err(error.clone());
    }
    let mut left = 0_u32;
    let mut named = Vec::new();
    for (pod, fate) in fates {
        let note = match fate {
            Fate::Gone => continue,
            Fate::Failed(error) => format!(" ({error})"),
            Fate::Held(message) => format!(" (held back: {message})"),
            Fate::Leaving => " (is ending)".to_owned(),
            Fate::Stays => String::new(),
        };
        left = left.saturating_add(1);
        if named.len() < PODS_NAMED {
            named.push(format!("{}/{}{note}", pod.namespace, pod.name));
        }
    }
    if left == 0 {
        return Ok(DrainStatus::Drained);
    }
    let over = if over { "the deadline has passed; " } else { "" };
    let pods = if left == 1 { "1 pod is left" } else { &format!("{left} pods are left") };
    let more = if PODS_NAMED < left as usize { ", …" } else { "" };
    let message = format!("{over}{pods}: {}{more}", named.join(", "));
    Ok(DrainStatus::Draining { left: Some(left), message })
}

#[cfg(test)]
mod tests;
