//! What a node pool's spec asks for, read once and then trusted.

use crate::catalog::Catalog;
use crate::field::FieldError;
use crate::instance::Cure;
use crate::node::settings;
use crate::resource::Spec;
use jiff::SignedDuration;
use serde_json::Value;
use std::collections::BTreeMap;

/// What a node pool's spec asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct PoolSpec {
    /// How many nodes, while no autoscaler says otherwise.
    pub nodes: u32,
    /// An autoscaler goes no lower.
    pub min: u32,
    /// An autoscaler goes no higher.
    pub max: u32,
    /// Machine types, the one that is wanted most first; empty: the provider's default.
    pub types: Vec<String>,
    /// Zones to spread over; empty: any.
    pub zones: Vec<String>,
    /// Whether the provider may take the machines back.
    pub capacity: Capacity,
    /// The image; empty: the provider's default.
    pub image: String,
    /// Where to buy; empty: at the first provider there is.
    pub providers: Vec<ProviderChoice>,
    /// In which order to try them.
    pub strategy: Strategy,
    /// The most the pool may cost, in US dollars per hour.
    pub max_hourly_cost: Option<f64>,
    /// When nodes that are well may be disturbed.
    pub maintenance: Option<Value>,
    /// Who changes its size.
    pub autoscaling: Option<Value>,
    /// How far we go by ourselves with a node that is sick or lost.
    pub remedy: Remedy,
    /// What is tried with a sick node, in order.
    pub cures: Vec<Cure>,
    /// How long a drain may take.
    pub drain_for: Option<SignedDuration>,
    /// How many may be out of service by our own doing.
    pub max_unavailable: Unavailable,
    /// How many must be in service while we disturb others.
    pub min_available: u32,
    /// Labels of its nodes.
    pub labels: BTreeMap<String, String>,
}

/// Whether the provider may take machines back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Capacity {
    /// It may not.
    #[default]
    OnDemand,
    /// It may.
    Spot,
    /// It may, but where there are none of those it may not.
    SpotPreferred,
}

/// A provider to buy from.
#[derive(Clone, Debug, PartialEq)]
pub struct ProviderChoice {
    /// Its name in the configuration.
    pub name: String,
    /// The lowest is tried first.
    pub priority: i32,
    /// How many of a round go there.
    pub weight: u32,
    /// Its regions, in order; empty: its default.
    pub regions: Vec<String>,
    /// What to buy there, if not what the pool says.
    pub machine_type: Option<String>,
}

/// In which order providers are tried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strategy {
    /// The lowest priority number first.
    #[default]
    Priority,
    /// The lowest known price first.
    Cost,
    /// In turn, by weight.
    RoundRobin,
    /// Those that say they have some first.
    Availability,
}

/// How far we go by ourselves with a node that is sick or lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Remedy {
    /// Only say so.
    Observe,
    /// Give it no new work.
    Cordon,
    /// And end what runs on it.
    Drain,
    /// And put another in its place.
    #[default]
    Replace,
}

/// How many nodes may be out of service by our own doing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Unavailable {
    /// So many.
    Nodes(u32),
    /// In percent of the pool, at least one.
    Percent(f64),
}

impl PoolSpec {
    /// Reads a pool's spec under its cluster's.
    ///
    /// # Errors
    /// Every complaint there is.
    pub fn read(spec: &Spec, cluster: &Spec, catalog: &Catalog) -> Result<Self, Vec<FieldError>> {
        let _ = (spec, cluster, catalog);
        Err(Vec::new())
    }

    /// What the node plane goes by for the pool's nodes: the deployment's settings, with what the spec says.
    #[must_use]
    pub fn settings(&self, defaults: &settings::PoolSettings) -> settings::PoolSettings {
        defaults.clone()
    }
}
