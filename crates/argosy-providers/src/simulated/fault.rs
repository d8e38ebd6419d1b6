//! Faults that have no cause in the world: they are injected, and last until they are cleared or
//! have struck often enough.

use serde::{Deserialize, Serialize};

/// A fault to inject: the body of `POST faults`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewFault {
    /// What goes wrong.
    pub kind: FaultKind,
    /// Which resources, by name: `my-cluster`, `gpu-*`, or `*` for all, which is the default.
    #[serde(rename = "match", default = "everything")]
    pub matching: String,
    /// How exactly it goes wrong; what is left out has a default.
    #[serde(default)]
    pub params: FaultParams,
    /// After how many strikes it goes away; if absent, it stays until it is cleared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
}

/// What can go wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FaultKind {
    /// The control plane of a cluster never becomes ready. Takes `after_s`.
    Timeout,
    /// The DNS records of a cluster exist, but their check fails.
    HealthCheckFailed,
    /// One machine of a node pool cannot be made. Takes `node` and `code`.
    ProvisioningFailed,
}

/// The parameters of a fault. Each kind takes its own, and refuses the others'.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FaultParams {
    /// `Timeout`: after how many seconds the attempt is given up; 1500 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_s: Option<u32>,
    /// `ProvisioningFailed`: which node of the pool, from 1; 1 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<u32>,
    /// `ProvisioningFailed`: the provider's error code; `ZONE_RESOURCE_POOL_EXHAUSTED` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
}

/// A fault that is in place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fault {
    /// By which it is cleared.
    pub id: u64,
    /// What it is; `count` is what is left of it.
    #[serde(flatten)]
    pub fault: NewFault,
}

impl FaultParams {
    /// 25 minutes: what the documents say a cluster takes before it is given up.
    pub const AFTER_S: u32 = 25 * 60;
    /// What a cloud says when a zone has no machines left.
    pub const CODE: &str = "ZONE_RESOURCE_POOL_EXHAUSTED";
}

impl NewFault {
    /// A fault of every resource, until it is cleared.
    pub fn new(kind: FaultKind) -> Self {
        Self { kind, matching: everything(), params: FaultParams::default(), count: None }
    }

    /// The first thing that is wrong with it: the field, and a sentence.
    pub(super) fn complaint(&self) -> Option<(&'static str, &'static str)> {
        let FaultParams { after_s, node, code } = &self.params;
        let timeout = self.kind == FaultKind::Timeout;
        let provisioning = self.kind == FaultKind::ProvisioningFailed;
        [
            (
                self.count == Some(0),
                "count",
                "count must be at least 1; leave it out for a fault that stays",
            ),
            (
                self.matching.is_empty() || 64 < self.matching.len(),
                "match",
                "match must be a resource's name, the start of one with `*` after it, or `*`",
            ),
            (after_s.is_some() && !timeout, "params.after_s", "after_s belongs to kind Timeout"),
            (*after_s == Some(0), "params.after_s", "params.after_s must be at least 1"),
            (node.is_some() && !provisioning, "params.node", "node belongs to ProvisioningFailed"),
            (*node == Some(0), "params.node", "params.node counts from 1"),
            (code.is_some() && !provisioning, "params.code", "code belongs to ProvisioningFailed"),
            (
                code.as_ref().is_some_and(|code| code.is_empty() || 128 < code.len()),
                "params.code",
                "params.code must have 1 to 128 characters",
            ),
        ]
        .into_iter()
        .find_map(|(wrong, field, sentence)| wrong.then_some((field, sentence)))
    }

    pub(super) fn strikes(&self, kind: FaultKind, name: &str) -> bool {
        self.kind == kind
            && match self.matching.strip_suffix('*') {
                Some(start) => name.starts_with(start),
                None => name == self.matching,
            }
    }
}

fn everything() -> String {
    "*".to_owned()
}
