//! What the node plane goes by, for the whole fleet and per pool. The defaults are the product's
//! promises; each can be set.

use crate::node::Node;
use jiff::SignedDuration;
use std::collections::BTreeMap;

/// The settings of every pool.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeSettings {
    /// Of nodes without a pool, and of pools without settings of their own.
    pub defaults: PoolSettings,
    /// By the name of the pool.
    pub pools: BTreeMap<String, PoolSettings>,
    /// What the specs of node pools say, by tenant and name: the deployment's settings in it.
    pub specs: BTreeMap<String, BTreeMap<String, PoolSettings>>,
    /// Of the fleet as a whole.
    pub fleet: FleetSettings,
}

impl NodeSettings {
    /// The settings of a node: those of its pool.
    pub fn of_node(&self, node: &Node) -> &PoolSettings {
        self.of_pool(&node.tenant, node.pool.as_deref())
    }

    /// The settings of a tenant's pool.
    pub fn of_pool(&self, tenant: &str, pool: Option<&str>) -> &PoolSettings {
        let said = pool.and_then(|pool| self.specs.get(tenant)?.get(pool));
        said.unwrap_or_else(|| self.of(pool))
    }

    /// The deployment's settings for pools of a name.
    pub fn of(&self, pool: Option<&str>) -> &PoolSettings {
        pool.and_then(|pool| self.pools.get(pool)).unwrap_or(&self.defaults)
    }
}

impl NodeSettings {
    /// How often a node says that it is there, in whole seconds, at least one: as its pool's settings
    /// say, or more seldom while there are so many nodes that it would be too much for us.
    pub fn heartbeat_every(
        &self,
        pool: Option<&str>,
        on_stream: bool,
        nodes: usize,
    ) -> SignedDuration {
        let settings = self.of(pool);
        let wanted =
            if on_stream { settings.stream_heartbeat_every } else { settings.heartbeat_every };
        self.fleet.heartbeat_least(nodes).max(whole(wanted))
    }

    /// How often a node runs its checks, in whole seconds, at least one.
    pub fn health_every(&self, pool: Option<&str>) -> SignedDuration {
        whole(self.of(pool).health_every)
    }
}

impl FleetSettings {
    /// The shortest interval at which so many nodes do not ask more of us than they may.
    pub fn heartbeat_least(&self, nodes: usize) -> SignedDuration {
        let nodes = i64::try_from(nodes).unwrap_or(i64::MAX);
        let per_second = i64::from(self.heartbeats_per_second.max(1));
        SignedDuration::from_secs((nodes / per_second).saturating_add(1))
    }
}

/// Whole seconds, at least one: Navarch's daemon panics on 0.
fn whole(every: SignedDuration) -> SignedDuration {
    let seconds = every.as_secs().saturating_add(i64::from(0 < every.subsec_nanos()));
    SignedDuration::from_secs(seconds.max(1))
}

/// What holds for the nodes of one pool.
#[derive(Clone, Debug, PartialEq)]
pub struct PoolSettings {
    /// How often a node that calls us says that it is there.
    pub heartbeat_every: SignedDuration,
    /// How often a node on a stream does: a few bytes, so it can be more often.
    pub stream_heartbeat_every: SignedDuration,
    /// How often a node runs its health checks.
    pub health_every: SignedDuration,
    /// Which.
    pub checks: Vec<String>,
    /// How long a node on a stream may be silent before it is `Suspect`. For nodes that call us it is
    /// at least two of their intervals and a bit.
    pub suspect_after: SignedDuration,
    /// How long before it is `Unreachable`; for nodes that call us, at least three of their intervals.
    pub unreachable_after: SignedDuration,
    /// How long a node must be `Unreachable` before anything is done about it.
    pub act_after: SignedDuration,
    /// How long a new or rebooted node does not count in any percentage.
    pub warm_up: SignedDuration,
    /// How long a drain may take, if nobody says otherwise.
    pub drain_for: SignedDuration,
    /// Whether what is left at the deadline of a drain is ended by force, if nobody says otherwise.
    pub drain_force: bool,
    /// For how long nothing may use a GPU before a node says that its work has ended: work that loads, or is between
    /// two steps, uses none either.
    pub drain_quiet: SignedDuration,
    /// How long a command may stay undelivered.
    pub command_life: SignedDuration,
    /// How long an automatic cordon waits for the node to fetch it before it holds anyway.
    pub cordon_grace: SignedDuration,
    /// How far we go by ourselves with a node that is sick or lost.
    pub remedy: Remedy,
    /// How much of the pool may be out of service by our own doing.
    pub budget: Budget,
    /// When to stop acting by ourselves.
    pub breaker: BreakerSettings,
    /// How long a node must be well again before it goes back into service; doubles with each relapse.
    pub recover_after: SignedDuration,
    /// The longest such hold.
    pub recover_after_max: SignedDuration,
}

/// How far we go by ourselves with a node that is sick or lost.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Remedy {
    /// Only say so.
    Observe,
    /// Give it no new work.
    Cordon,
    /// And end what runs on it.
    Drain,
}

/// How many nodes may be out of service by our own doing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Budget {
    /// At once, in percent of those that are not warming up.
    pub percent: f64,
    /// But at least so many.
    pub at_least: u32,
    /// Not more often than one each so often; zero means no limit.
    pub every: SignedDuration,
}

/// When to stop acting by ourselves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BreakerSettings {
    /// Opens when more than so many percent turn bad within the window.
    pub percent: f64,
    /// And at least so many nodes.
    pub at_least: u32,
    /// How far back is looked.
    pub window: SignedDuration,
    /// How long it must be calm before one node is tried.
    pub calm: SignedDuration,
}

/// What holds for the fleet as a whole.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FleetSettings {
    /// How much of the fleet may be out of service by our own doing.
    pub budget: Budget,
    /// How much of one zone.
    pub zone_budget: Budget,
    /// When to stop acting by ourselves, anywhere.
    pub breaker: BreakerSettings,
    /// The same, for one zone.
    pub zone_breaker: BreakerSettings,
    /// How long after our own start, failover or sleep nodes that have not come back yet are not held
    /// against them.
    pub amnesty: SignedDuration,
    /// The most heartbeats per second we ask for: with more nodes they are told to be slower.
    pub heartbeats_per_second: u32,
    /// How far a node's clock may be off before it is flagged.
    pub clock_skew_max: SignedDuration,
    /// How many health events per second one node may send for long.
    pub events_per_second: u32,
    /// How many at once.
    pub events_burst: u32,
}

impl Default for PoolSettings {
    fn default() -> Self {
        Self {
            heartbeat_every: SignedDuration::from_secs(30),
            stream_heartbeat_every: SignedDuration::from_secs(10),
            health_every: SignedDuration::from_secs(60),
            checks: ["boot", "nvml", "xid"].map(str::to_owned).to_vec(),
            suspect_after: SignedDuration::from_secs(25),
            unreachable_after: SignedDuration::from_secs(45),
            act_after: SignedDuration::from_secs(300),
            warm_up: SignedDuration::from_mins(15),
            drain_for: SignedDuration::from_mins(60),
            drain_force: false,
            drain_quiet: SignedDuration::from_secs(10),
            command_life: SignedDuration::from_mins(10),
            cordon_grace: SignedDuration::from_secs(15),
            remedy: Remedy::Cordon,
            budget: Budget { percent: 10.0, at_least: 1, every: SignedDuration::from_secs(10) },
            breaker: BreakerSettings {
                percent: 20.0,
                at_least: 3,
                window: SignedDuration::from_mins(5),
                calm: SignedDuration::from_mins(15),
            },
            recover_after: SignedDuration::from_secs(30),
            recover_after_max: SignedDuration::from_hours(4),
        }
    }
}

impl Default for FleetSettings {
    fn default() -> Self {
        let window = SignedDuration::from_mins(5);
        let calm = SignedDuration::from_mins(15);
        Self {
            budget: Budget { percent: 10.0, at_least: 1, every: SignedDuration::ZERO },
            zone_budget: Budget { percent: 20.0, at_least: 1, every: SignedDuration::ZERO },
            breaker: BreakerSettings { percent: 5.0, at_least: 5, window, calm },
            zone_breaker: BreakerSettings { percent: 20.0, at_least: 5, window, calm },
            amnesty: SignedDuration::from_secs(300),
            heartbeats_per_second: 5000,
            clock_skew_max: SignedDuration::from_secs(2),
            events_per_second: 20,
            events_burst: 500,
        }
    }
}

#[cfg(test)]
mod tests;
