//! What the node plane goes by: for the fleet, for every pool, and for single pools.

use super::{Duration, Key, Section};
use argosy_core::node::settings::{
    BreakerSettings, Budget, FleetSettings, NodeSettings, PoolSettings, Remedy,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A section of settings that hold for every pool, and the same with every key optional, for one.
macro_rules! pool_section {
    ($( $(#[doc = $doc:literal])+ $key:ident: $kind:ty = $default:expr ),+ $(,)?) => {
        section! {
            /// What holds for nodes: of every pool that does not say otherwise, and without a pool.
            Nodes {
                $( $(#[doc = $doc])+ $key: $kind = $default, )+
                /// What is different in a pool, by its name: any of the keys above.
                pools: BTreeMap<String, PoolNodes> = BTreeMap::new(),
                /// What holds for the fleet as a whole.
                fleet: FleetNodes = FleetNodes::default(),
                /// A health policy to begin with, in our format or Navarch's. It is read at each start
                /// and is the policy `default`; without it the built-in one is.
                policy_file: Option<PathBuf> = None,
            }
        }

        /// What is different in one pool.
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub(crate) struct PoolNodes {
            $( $(#[doc = $doc])+ #[serde(skip_serializing_if = "Option::is_none")] $key: Option<$kind> ),+
        }

        impl Nodes {
            /// The settings of a pool that changes some of them.
            fn changed(&self, pool: &PoolNodes) -> Nodes {
                Nodes { $( $key: pool.$key.clone().unwrap_or_else(|| self.$key.clone()), )+ ..Self::default() }
            }
        }
    };
}

pool_section! {
    /// How often a node that calls says that it is there.
    heartbeat: Duration = Duration::from_signed(PoolSettings::default().heartbeat_every),
    /// How often a node on a stream does.
    stream_heartbeat: Duration = Duration::from_signed(PoolSettings::default().stream_heartbeat_every),
    /// How often a node runs its health checks.
    health_check: Duration = Duration::from_signed(PoolSettings::default().health_every),
    /// Which checks it runs.
    checks: Vec<String> = PoolSettings::default().checks,
    /// How long a node may be silent before it is Suspect; for nodes that call, at least two heartbeats
    /// and 5 s.
    suspect_after: Duration = Duration::from_signed(PoolSettings::default().suspect_after),
    /// How long before it is Unreachable; for nodes that call, at least three heartbeats.
    unreachable_after: Duration = Duration::from_signed(PoolSettings::default().unreachable_after),
    /// How long a node must be Unreachable before anything is done about it.
    act_after: Duration = Duration::from_signed(PoolSettings::default().act_after),
    /// How long a new or rebooted node counts in no percentage.
    warm_up: Duration = Duration::from_signed(PoolSettings::default().warm_up),
    /// How long a drain may take, if nobody says otherwise.
    drain_for: Duration = Duration::from_signed(PoolSettings::default().drain_for),
    /// Whether what still runs at the deadline of a drain is ended by force.
    drain_force: bool = PoolSettings::default().drain_force,
    /// For how long nothing may use a GPU before a node says that its work has ended: work that loads, or is
    /// between two steps, uses none either. Where a workload system is configured, that decides.
    drain_quiet: Duration = Duration::from_signed(PoolSettings::default().drain_quiet),
    /// How long a command may stay undelivered before it expires.
    command_life: Duration = Duration::from_signed(PoolSettings::default().command_life),
    /// How long an automatic cordon waits for the node to fetch it before it holds anyway.
    cordon_grace: Duration = Duration::from_signed(PoolSettings::default().cordon_grace),
    /// How far we go by ourselves with a node that is sick or lost: `observe`, `cordon` or `drain`.
    remedy: Remedy = PoolSettings::default().remedy,
    /// How much may be out of service by our own doing.
    budget: BudgetOf = BudgetOf::from(PoolSettings::default().budget),
    /// When to stop acting by ourselves.
    breaker: BreakerOf = BreakerOf::from(PoolSettings::default().breaker),
    /// How long a node must be well again before it goes back into service; doubles with each relapse.
    recover_after: Duration = Duration::from_signed(PoolSettings::default().recover_after),
    /// The longest such wait.
    recover_after_max: Duration = Duration::from_signed(PoolSettings::default().recover_after_max),
}

section! {
    /// What holds for the fleet as a whole.
    FleetNodes {
        /// How much of the fleet may be out of service by our own doing.
        budget: BudgetOf = BudgetOf::from(FleetSettings::default().budget),
        /// How much of one zone.
        zone_budget: BudgetOf = BudgetOf::from(FleetSettings::default().zone_budget),
        /// When to stop acting by ourselves, anywhere.
        breaker: BreakerOf = BreakerOf::from(FleetSettings::default().breaker),
        /// The same, in one zone.
        zone_breaker: BreakerOf = BreakerOf::from(FleetSettings::default().zone_breaker),
        /// How long after our own start, failover or sleep silence is not held against nodes that have
        /// not come back yet.
        amnesty: Duration = Duration::from_signed(FleetSettings::default().amnesty),
        /// The most heartbeats per second to ask for: a larger fleet is told to be slower.
        heartbeats_per_second: u32 = FleetSettings::default().heartbeats_per_second,
        /// How far a node's clock may be off before the node is flagged.
        clock_skew: Duration = Duration::from_signed(FleetSettings::default().clock_skew_max),
        /// How many health events per second one node may send for long.
        events_per_second: u32 = FleetSettings::default().events_per_second,
        /// How many at once.
        events_burst: u32 = FleetSettings::default().events_burst,
    }
}

section! {
    /// How many nodes may be out of service by our own doing.
    BudgetOf {
        /// At once, in percent of those that are not warming up.
        percent: f64 = PoolSettings::default().budget.percent,
        /// But at least so many.
        at_least: u32 = PoolSettings::default().budget.at_least,
        /// One each so often; `0s` means no limit. Not given: 10 s in a pool, no limit in a zone and in
        /// the fleet.
        every: Option<Duration> = None,
    }
}

section! {
    /// When to stop acting by ourselves: too many turned bad at once. Recovery is never stopped.
    BreakerOf {
        /// More than so many percent.
        percent: f64 = PoolSettings::default().breaker.percent,
        /// And at least so many nodes.
        at_least: u32 = PoolSettings::default().breaker.at_least,
        /// Within so long.
        window: Duration = Duration::from_signed(PoolSettings::default().breaker.window),
        /// How long it must be calm before one node is tried, then two, then four.
        calm: Duration = Duration::from_signed(PoolSettings::default().breaker.calm),
    }
}

impl From<Budget> for BudgetOf {
    fn from(of: Budget) -> Self {
        Self { percent: of.percent, at_least: of.at_least, every: None }
    }
}

impl From<BreakerSettings> for BreakerOf {
    fn from(of: BreakerSettings) -> Self {
        let (window, calm) = (Duration::from_signed(of.window), Duration::from_signed(of.calm));
        Self { percent: of.percent, at_least: of.at_least, window, calm }
    }
}

impl BudgetOf {
    fn settings(&self, usual: Budget) -> Budget {
        let every = self.every.map_or(usual.every, Duration::signed);
        Budget { percent: self.percent, at_least: self.at_least, every }
    }
}

impl BreakerOf {
    fn settings(&self) -> BreakerSettings {
        BreakerSettings {
            percent: self.percent,
            at_least: self.at_least,
            window: self.window.signed(),
            calm: self.calm.signed(),
        }
    }
}

impl Nodes {
    /// As core wants it.
    pub(crate) fn settings(&self) -> NodeSettings {
        let pools = self.pools.iter();
        let fleet = &self.fleet;
        NodeSettings {
            defaults: self.of_pool(),
            specs: BTreeMap::new(),
            pools: pools.map(|(name, pool)| (name.clone(), self.changed(pool).of_pool())).collect(),
            fleet: FleetSettings {
                budget: fleet.budget.settings(FleetSettings::default().budget),
                zone_budget: fleet.zone_budget.settings(FleetSettings::default().zone_budget),
                breaker: fleet.breaker.settings(),
                zone_breaker: fleet.zone_breaker.settings(),
                amnesty: fleet.amnesty.signed(),
                heartbeats_per_second: fleet.heartbeats_per_second,
                clock_skew_max: fleet.clock_skew.signed(),
                events_per_second: fleet.events_per_second,
                events_burst: fleet.events_burst,
            },
        }
    }

    fn of_pool(&self) -> PoolSettings {
        PoolSettings {
            heartbeat_every: self.heartbeat.signed(),
            stream_heartbeat_every: self.stream_heartbeat.signed(),
            health_every: self.health_check.signed(),
            checks: self.checks.clone(),
            suspect_after: self.suspect_after.signed(),
            unreachable_after: self.unreachable_after.signed(),
            act_after: self.act_after.signed(),
            warm_up: self.warm_up.signed(),
            drain_for: self.drain_for.signed(),
            drain_force: self.drain_force,
            drain_quiet: self.drain_quiet.signed(),
            command_life: self.command_life.signed(),
            cordon_grace: self.cordon_grace.signed(),
            remedy: self.remedy,
            budget: self.budget.settings(PoolSettings::default().budget),
            breaker: self.breaker.settings(),
            recover_after: self.recover_after.signed(),
            recover_after_max: self.recover_after_max.signed(),
        }
    }

    /// What does not fit together: of the section, and of each pool.
    pub(crate) fn complaints(&self) -> Vec<String> {
        let mut found = self.own_complaints("nodes");
        for (name, pool) in &self.pools {
            found.extend(self.changed(pool).own_complaints(&format!("nodes.pools.{name}")));
        }
        let fleet = &self.fleet;
        for (key, percent) in [
            ("budget.percent", fleet.budget.percent),
            ("zone_budget.percent", fleet.zone_budget.percent),
            ("breaker.percent", fleet.breaker.percent),
            ("zone_breaker.percent", fleet.zone_breaker.percent),
        ] {
            found.extend(bad_percent(&format!("nodes.fleet.{key}"), percent));
        }
        for (key, number) in [
            ("heartbeats_per_second", fleet.heartbeats_per_second),
            ("events_per_second", fleet.events_per_second),
            ("events_burst", fleet.events_burst),
        ] {
            if number == 0 {
                found.push(format!("nodes.fleet.{key}: it must be at least 1"));
            }
        }
        found
    }

    fn own_complaints(&self, key: &str) -> Vec<String> {
        let mut found = Vec::new();
        let least = Duration::from_secs(1);
        for (name, time) in [
            ("heartbeat", self.heartbeat),
            ("stream_heartbeat", self.stream_heartbeat),
            ("health_check", self.health_check),
            ("command_life", self.command_life),
            ("drain_for", self.drain_for),
        ] {
            // Nodes are told whole seconds, and Navarch's daemon dies of a zero.
            if time < least {
                found.push(format!("{key}.{name}: {time} is too short; at least 1s"));
            }
        }
        if self.unreachable_after <= self.suspect_after {
            let (unreachable, suspect) = (self.unreachable_after, self.suspect_after);
            found.push(format!(
                "{key}.unreachable_after: {unreachable} is not longer than suspect_after, which is {suspect}"
            ));
        }
        if self.suspect_after <= self.stream_heartbeat {
            let (suspect, beat) = (self.suspect_after, self.stream_heartbeat);
            found.push(format!(
                "{key}.suspect_after: {suspect} is not longer than stream_heartbeat, which is {beat}: \
                 every node would be Suspect"
            ));
        }
        found.extend(bad_percent(&format!("{key}.budget.percent"), self.budget.percent));
        found.extend(bad_percent(&format!("{key}.breaker.percent"), self.breaker.percent));
        found
    }
}

fn bad_percent(key: &str, percent: f64) -> Option<String> {
    let fits = (0.0..=100.0).contains(&percent);
    (!fits).then(|| format!("{key}: {percent} is not between 0 and 100"))
}
