//! Quotas: how much of what a region gives.

use super::inventory::{Place, Usage};
use serde::{Deserialize, Serialize};
use std::fmt;

/// What a quota is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Metric {
    /// CPUs of machines and control planes.
    Cpus,
    /// GPUs of machines.
    Gpus,
    /// Control planes.
    Clusters,
}

/// A quota as it is set: the body of `PUT quotas/{provider}/{region}/{resource}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Quota {
    /// The most that can be used.
    pub limit: u64,
    /// How much of it somebody else uses, in the same account but not through us.
    #[serde(default)]
    pub used_by_others: u64,
}

/// A quota that does not suffice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Exceeded {
    pub(super) metric: Metric,
    pub(super) limit: u64,
    pub(super) used: u64,
    pub(super) needed: u64,
}

impl Metric {
    /// Every metric.
    pub const ALL: [Metric; 3] = [Metric::Cpus, Metric::Gpus, Metric::Clusters];

    /// The name as it stands in paths and sentences.
    pub const fn as_str(self) -> &'static str {
        match self {
            Metric::Cpus => "CPUS",
            Metric::Gpus => "GPUS",
            Metric::Clusters => "CLUSTERS",
        }
    }

    /// The word behind a number.
    pub(super) const fn unit(self) -> &'static str {
        match self {
            Metric::Cpus => "CPUs",
            Metric::Gpus => "GPUs",
            Metric::Clusters => "clusters",
        }
    }

    /// What a region gives unless somebody sets it: more than a demonstration or a measurement needs.
    pub(super) const fn default_quota(self) -> Quota {
        let limit = match self {
            Metric::Cpus => 1_000_000,
            Metric::Gpus | Metric::Clusters => 100_000,
        };
        Quota { limit, used_by_others: 0 }
    }

    pub(super) const fn used(self, usage: &Usage) -> u64 {
        match self {
            Metric::Cpus => usage.cpus,
            Metric::Gpus => usage.gpus,
            Metric::Clusters => usage.clusters,
        }
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The first quota that `needed` on top of `used` would break.
pub(super) fn exceeded(
    quota: impl Fn(Metric) -> Quota,
    used: &Usage,
    needed: &Usage,
) -> Option<Exceeded> {
    Metric::ALL.into_iter().find_map(|metric| {
        let Quota { limit, used_by_others } = quota(metric);
        let used = metric.used(used).saturating_add(used_by_others);
        let needed = metric.used(needed);
        let breaks = 0 < needed && limit < used.saturating_add(needed);
        breaks.then_some(Exceeded { metric, limit, used, needed })
    })
}

/// A quota that was set.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct SetQuota {
    #[serde(flatten)]
    pub(super) place: Place,
    pub(super) resource: Metric,
    #[serde(flatten)]
    pub(super) quota: Quota,
}
