//! Faults that have no cause in the world: they are injected, and last until they are cleared or
//! have struck often enough.

use serde::{Deserialize, Serialize};

/// A fault to inject: the body of `POST faults`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewFault {
    /// What goes wrong.
    pub kind: FaultKind,
    /// What it strikes, by name: `my-cluster`, `gpu-*`, or `*` for all, which is the default. Whose name it
    /// is follows from the kind: a cluster's, a node pool's or a machine's, or a provider's.
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
    /// No answer comes to whoever buys a machine for a pool. Takes `done`.
    CreateTimesOut,
    /// Whoever buys a machine for a pool is answered with a 500. Takes `done`.
    CreateErrors,
    /// A machine of a pool is made without its tags, and answered with a 500.
    TagsLost,
    /// A machine of a pool, or one by its own name, boots and its agent does not: it never registers.
    BootFails,
    /// A machine of a pool, or one by its own name, loses its power and is shown as running all the same.
    Kill,
    /// A spot machine of a pool, or one by its own name, gets a notice and goes. Takes `after_s`.
    Reclaim,
    /// A machine of a pool, or one by its own name, is not returned, although it is said to be.
    DeleteLies,
    /// A machine of a pool, or one by its own name, is returned, and answered with a 500.
    DeleteErrors,
    /// A provider has no machines left. Takes `zone`, `machine_type` and `code`.
    StockOut,
    /// A provider is asked too often. Takes `after_s`.
    Throttled,
    /// A provider does not accept the credentials.
    CredentialsRevoked,
    /// A provider's listings are behind. Takes `after_s`.
    ListsLag,
    /// A provider's listings are empty.
    ListsEmpty,
    /// A provider's listings show every second machine.
    ListsHalf,
    /// A provider's listings break off.
    ListsBreak,
}

/// The parameters of a fault. Each kind takes its own, and refuses the others'.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FaultParams {
    /// Seconds. `Timeout`: after how many the attempt is given up; 1500 if absent. `Reclaim`: how many a
    /// machine still has; 120. `Throttled`: after how many to ask again; 1. `ListsLag`: how many a listing
    /// is behind; 10.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_s: Option<u32>,
    /// `ProvisioningFailed`: which node of the pool, from 1; 1 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<u32>,
    /// `ProvisioningFailed`, `StockOut`: the provider's error code; `ZONE_RESOURCE_POOL_EXHAUSTED` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// `CreateTimesOut`, `CreateErrors`: whether the machine is made all the same; true if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub done: Option<bool>,
    /// `StockOut`: in which zone; every one if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// `StockOut`: of which machine type; every one if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine_type: Option<String>,
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
    /// Two minutes: what EC2 gives a spot machine.
    pub const NOTICE_S: u32 = 120;
    /// What a provider that is asked too often wants us to wait.
    pub const RETRY_S: u32 = 1;
    /// How long a machine may be missing in listings: what the cloud admits to.
    pub const LAG_S: u32 = 10;

    /// Whether a shortage is one of this type in this zone.
    pub(super) fn is_about(&self, zone: &str, machine_type: &str) -> bool {
        self.zone.as_deref().is_none_or(|own| own == zone)
            && self.machine_type.as_deref().is_none_or(|own| own == machine_type)
    }
}

impl FaultKind {
    const fn takes_after(self) -> bool {
        use FaultKind::{ListsLag, Reclaim, Throttled, Timeout};
        matches!(self, Timeout | Reclaim | Throttled | ListsLag)
    }

    const fn takes_code(self) -> bool {
        matches!(self, FaultKind::ProvisioningFailed | FaultKind::StockOut)
    }

    const fn takes_done(self) -> bool {
        matches!(self, FaultKind::CreateTimesOut | FaultKind::CreateErrors)
    }
}

/// The longest zone or machine type that is kept.
const NAME_LEN_MAX: usize = 128;

impl NewFault {
    /// A fault of every resource, until it is cleared.
    pub fn new(kind: FaultKind) -> Self {
        Self { kind, matching: everything(), params: FaultParams::default(), count: None }
    }

    /// The first thing that is wrong with it: the field, and a sentence.
    pub(super) fn complaint(&self) -> Option<(&'static str, &'static str)> {
        let FaultParams { after_s, node, code, done, zone, machine_type } = &self.params;
        let provisioning = self.kind == FaultKind::ProvisioningFailed;
        let stock = self.kind == FaultKind::StockOut;
        let unfit = |name: &Option<String>| {
            name.as_ref().is_some_and(|name| name.is_empty() || NAME_LEN_MAX < name.len())
        };
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
            (
                after_s.is_some() && !self.kind.takes_after(),
                "params.after_s",
                "after_s belongs to kind Timeout, Reclaim, Throttled or ListsLag",
            ),
            (*after_s == Some(0), "params.after_s", "params.after_s must be at least 1"),
            (node.is_some() && !provisioning, "params.node", "node belongs to ProvisioningFailed"),
            (*node == Some(0), "params.node", "params.node counts from 1"),
            (
                code.is_some() && !self.kind.takes_code(),
                "params.code",
                "code belongs to ProvisioningFailed or StockOut",
            ),
            (
                done.is_some() && !self.kind.takes_done(),
                "params.done",
                "done belongs to CreateTimesOut or CreateErrors",
            ),
            (zone.is_some() && !stock, "params.zone", "zone belongs to StockOut"),
            (unfit(zone), "params.zone", "params.zone must have 1 to 128 characters"),
            (
                machine_type.is_some() && !stock,
                "params.machine_type",
                "machine_type belongs to StockOut",
            ),
            (
                unfit(machine_type),
                "params.machine_type",
                "params.machine_type must have 1 to 128 characters",
            ),
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
