//! Which stretch of its history the store is in, and what waits while a new one begins in recovery.
//!
//! A restore, and a failover to a database that misses commits, leave a store that is older than the world. By
//! such a store the machines that were bought since are too many, and those that it believes to run may be gone.
//! So a new incarnation begins in recovery: each pool looks, and shows what it would do, and does nothing of it
//! before a person has confirmed it. A pool that would do nothing leaves recovery by itself.
//!
//! What a newcomer gets wrong: a pause holds back what is automatic. A recovery holds back what people asked for,
//! too: that they asked for it may be exactly what was lost.

use crate::id::ResourceId;
use crate::instance::InstanceId;
use crate::machine::MachineId;
use crate::node::Node;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use std::fmt;
use uuid::Uuid;

/// A stretch of history in which no commit was lost.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Incarnation {
    /// How often history was lost or replaced before it.
    pub number: u32,
    /// Since when; `None` for the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// Why it began; `None` for the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<HistoryLoss>,
}

impl Incarnation {
    /// Whether it is the first, as it is in most stores.
    pub fn is_first(&self) -> bool {
        self.number == 0
    }

    /// The one after it.
    #[must_use]
    pub fn next(&self, cause: HistoryLoss, now: Timestamp) -> Self {
        Self { number: self.number.saturating_add(1), since: Some(now), cause: Some(cause) }
    }
}

/// Why a new incarnation began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum HistoryLoss {
    /// A backup was put in place of the store.
    Restored {
        /// The last commit in the backup.
        head: u64,
    },
    /// A server process had seen commits that the store does not have.
    ServerAhead {
        /// The last one it had seen.
        seen: u64,
        /// The last one in the store.
        head: u64,
    },
    /// A provider shows a machine that was bought for this control plane, whose record is missing and cannot have
    /// been removed as old.
    UnknownMachine {
        /// The provider, by the name in the configuration.
        provider: String,
        /// What it calls the machine.
        machine: MachineId,
    },
}

/// As a sentence without its end.
impl fmt::Display for HistoryLoss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HistoryLoss::Restored { head } => {
                write!(f, "the store was restored from a backup that ends at revision {head}")
            }
            HistoryLoss::ServerAhead { seen, head } => write!(
                f,
                "the store lost commits: a server had seen revision {seen}, the store ends at {head}"
            ),
            HistoryLoss::UnknownMachine { provider, machine } => write!(
                f,
                "the store lost commits: {provider} has {machine}, which was bought here and has no record"
            ),
        }
    }
}

/// A node pool in recovery. While this document exists nothing of the pool is terminated, drained, bought or
/// resized.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Recovery {
    /// The node pool; it may be gone and have left machines.
    pub pool: ResourceId,
    /// Whose.
    pub tenant: String,
    /// The pool, by the name that nodes carry.
    pub pool_name: String,
    /// Which incarnation began with it.
    pub incarnation: u32,
    /// Since when.
    pub since: Timestamp,
    /// Why.
    pub cause: HistoryLoss,
    /// What the pool would do now; `None` until a leader has looked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forecast: Option<Forecast>,
}

impl Recovery {
    /// Whether a node is of this pool.
    pub fn covers(&self, node: &Node) -> bool {
        node.tenant == self.tenant && node.pool.as_deref() == Some(self.pool_name.as_str())
    }

    /// Why nothing is done, with the way out. It names no count, so that it is the same until it ends.
    pub fn sentence(&self) -> String {
        let Self { pool_name, since, cause, .. } = self;
        format!(
            "in recovery since {since:.0}: {cause}. `argosy recovery show` lists what would be done, `argosy recovery \
             confirm {pool_name}` lets it be done"
        )
    }
}

/// How many machines and purchases a forecast names: it is stored each time it changes.
pub const NAMED_MAX: usize = 200;

/// What a pool would do if it were not in recovery.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Forecast {
    /// What has to be seen before it is complete; `None` if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<String>,
    /// How many machines would be terminated.
    pub terminate: u32,
    /// How many of them would be drained first.
    pub drain: u32,
    /// How many machines would be bought.
    pub buy: u32,
    /// Each of them with its reason; at most `NAMED_MAX`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<Would>,
}

/// One thing that would be done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum Would {
    /// A machine would be terminated.
    Terminate {
        /// Which.
        instance: InstanceId,
        /// Whether its node would be drained first.
        drain: bool,
        /// Why.
        reason: String,
    },
    /// A machine would be bought.
    Buy {
        /// What.
        machine_type: String,
        /// Where: the provider.
        provider: String,
        /// Why.
        reason: String,
    },
}

impl Forecast {
    /// Whether it is complete and nothing would be done: then the pool leaves recovery by itself.
    pub fn is_nothing(&self) -> bool {
        self.waits_for.is_none() && self.terminate == 0 && self.buy == 0
    }

    /// Adds one thing.
    pub fn add(&mut self, would: Would) {
        match &would {
            Would::Terminate { drain, .. } => {
                self.terminate = self.terminate.saturating_add(1);
                self.drain = self.drain.saturating_add(u32::from(*drain));
            }
            Would::Buy { .. } => self.buy = self.buy.saturating_add(1),
        }
        if self.steps.len() < NAMED_MAX {
            self.steps.push(would);
        }
    }
}

/// `36 machines would be terminated (34 of them drained first), 1 would be bought`.
impl fmt::Display for Forecast {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { terminate, drain, buy, .. } = self;
        let machines = if *terminate == 1 { "machine" } else { "machines" };
        write!(f, "{terminate} {machines} would be terminated")?;
        if 0 < *drain {
            write!(f, " ({drain} drained first)")?;
        }
        write!(f, ", {buy} bought")
    }
}

/// When a token was made; `None` for one that does not say.
pub fn made_at(token: Uuid) -> Option<Timestamp> {
    let (seconds, nanoseconds) = token.get_timestamp()?.to_unix();
    Timestamp::new(i64::try_from(seconds).ok()?, i32::try_from(nanoseconds).ok()?).ok()
}

/// What the time of an unknown machine's purchase is compared with.
#[derive(Clone, Copy, Debug)]
pub struct Horizon {
    /// When the last commit was made that the store had as this process opened it; `None` if that is not known.
    pub opened_at: Option<Timestamp>,
    /// When the incarnation began: what was lost before is known to be lost.
    pub incarnation_since: Option<Timestamp>,
    /// How long the record of a machine that is gone is kept.
    pub kept: SignedDuration,
}

/// Whether a machine of ours without a record proves that the store lost history.
///
/// Its purchase was committed before its provider was asked. So it proves it if it was bought after the last
/// commit that the store had, or so lately that its record cannot have been removed for its age.
pub fn proves_loss(token: Uuid, horizon: &Horizon, now: Timestamp) -> bool {
    let Some(at) = made_at(token) else { return false };
    if horizon.incarnation_since.is_some_and(|since| at <= since) {
        return false;
    }
    let unseen = horizon.opened_at.is_some_and(|opened_at| opened_at < at);
    unseen || now.duration_since(at) < horizon.kept
}

#[cfg(test)]
mod tests;
