//! What a node pool's spec asks for, read once and then trusted.

mod read;

use crate::autoscale::Autoscaling;
use crate::catalog::Catalog;
use crate::field::FieldError;
use crate::instance::Cure;
use crate::machine::Offer;
use crate::merge::merge;
use crate::node::settings::{self, Budget, PoolSettings};
use crate::resource::{Patch, Spec, Strategy as Merge};
use crate::window::Windows;
use jiff::SignedDuration;
use serde_json::Value;
use std::collections::BTreeMap;

/// The most machine types of a pool.
pub const TYPES_MAX: usize = 8;
/// The most zones of a pool: no region has more.
pub const ZONES_MAX: usize = 8;
/// The most providers of a pool.
pub const PROVIDERS_MAX: usize = 8;
/// The most regions of a provider.
pub const REGIONS_MAX: usize = 8;

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
    pub maintenance: Windows,
    /// Who changes its size.
    pub autoscaling: Option<Autoscaling>,
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
    /// How long a new node must have been in service, healthy, before what it replaces is drained and the next
    /// one is replaced.
    pub min_ready: SignedDuration,
    /// Whether a sick node may be returned before its replacement is bought.
    pub replacement: Replacement,
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
    pub priority: u32,
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

/// Whether a sick node may be returned before its replacement is bought.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Replacement {
    /// Another is bought first; where a provider has had none for some time, the sick one is drained and
    /// returned first.
    #[default]
    Auto,
    /// Never.
    Surge,
}

/// How many nodes may be out of service by our own doing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Unavailable {
    /// So many.
    Nodes(u32),
    /// In percent of the pool, at least one.
    Percent(f64),
}

impl Default for PoolSpec {
    /// One node, wherever there is one.
    fn default() -> Self {
        Self {
            nodes: 1,
            min: 0,
            max: u32::MAX,
            types: Vec::new(),
            zones: Vec::new(),
            capacity: Capacity::OnDemand,
            image: String::new(),
            providers: Vec::new(),
            strategy: Strategy::Priority,
            max_hourly_cost: None,
            maintenance: Windows::default(),
            autoscaling: None,
            remedy: Remedy::Replace,
            // With another bought first nothing is missing meanwhile; a cure takes the node away for its drain.
            cures: vec![Cure::Replace],
            drain_for: None,
            max_unavailable: Unavailable::Percent(10.0),
            min_available: 0,
            // Long enough for several rounds of an agent's checks, and for work to begin.
            min_ready: SignedDuration::from_mins(5),
            replacement: Replacement::Auto,
            labels: BTreeMap::new(),
        }
    }
}

impl PoolSpec {
    /// Reads a pool's spec under its cluster's.
    ///
    /// What is not ours in it is free: its adapters' business. What is nearly ours is taken for a slip.
    ///
    /// # Errors
    /// Every complaint there is.
    pub fn read(spec: &Spec, cluster: &Spec, catalog: &Catalog) -> Result<Self, Vec<FieldError>> {
        read::read(spec, Catalog::provider_of(cluster), Catalog::region_of(cluster), catalog)
    }

    /// As `read`, for whoever has not got the whole cluster at hand: under its provider.
    ///
    /// # Errors
    /// As `read`.
    pub(crate) fn check(
        spec: &Spec,
        provider: Option<&str>,
        catalog: &Catalog,
    ) -> Result<(), Vec<FieldError>> {
        read::read(spec, provider, None, catalog).map(drop)
    }

    /// What the node plane goes by for the pool's nodes: the deployment's settings, with what the spec says.
    ///
    /// A pool that replaces its nodes cordons them and no more: they are drained when another is ready.
    #[must_use]
    pub fn settings(&self, defaults: &PoolSettings) -> PoolSettings {
        let remedy = match self.remedy {
            Remedy::Observe => settings::Remedy::Observe,
            Remedy::Cordon | Remedy::Replace => settings::Remedy::Cordon,
            Remedy::Drain => settings::Remedy::Drain,
        };
        let (percent, at_least) = match self.max_unavailable {
            Unavailable::Nodes(nodes) => (0.0, nodes),
            Unavailable::Percent(percent) => (percent, 1),
        };
        PoolSettings {
            remedy,
            budget: Budget { percent, at_least, ..defaults.budget },
            drain_for: self.drain_for.unwrap_or(defaults.drain_for),
            ..defaults.clone()
        }
    }

    /// What its machines are made from. Where this is the same, another spec asks for no other machines.
    pub fn made_from(&self) -> String {
        let places = self.providers.iter().map(|choice| {
            let ProviderChoice { name, regions, machine_type, .. } = choice;
            format!("{name} {} {}", regions.join("+"), machine_type.as_deref().unwrap_or_default())
        });
        let places: Vec<String> = places.collect();
        let capacity = match self.capacity {
            Capacity::OnDemand => "on-demand",
            Capacity::Spot => "spot",
            Capacity::SpotPreferred => "spot-preferred",
        };
        let (types, zones) = (self.types.join("+"), self.zones.join("+"));
        format!("{}|{types}|{capacity}|{zones}|{}", self.image, places.join(","))
    }

    /// How many nodes it is to have, if an autoscaler that it has wants so many.
    pub fn target(&self, wanted: Option<u32>) -> u32 {
        match wanted {
            Some(wanted) if self.autoscaling.is_some() => wanted.clamp(self.min, self.max),
            Some(_) | None => self.nodes,
        }
    }
}

/// A change that takes a pool's autoscaler away, as it is meant: the size that the autoscaler left stays, for
/// `nodeCount` only said how many nodes to begin with. `None` if the change is another one, or names a size itself.
///
/// `left` is what the autoscaler wanted last.
pub fn keeping_size(before: &Spec, change: &Patch, left: u32) -> Option<Patch> {
    let wanted = change.spec.as_ref()?;
    let given = |spec: &Spec, name: &str| spec.get(name).is_some_and(|value| !value.is_null());
    let after = match change.strategy {
        Merge::Merge => {
            let mut after = before.clone();
            merge(&mut after, wanted);
            after
        }
        Merge::Replace => wanted.clone(),
    };
    let names_size = given(wanted, NODE_COUNT)
        && match change.strategy {
            Merge::Merge => true,
            // A whole spec repeats what was there before.
            Merge::Replace => wanted.get(NODE_COUNT) != before.get(NODE_COUNT),
        };
    if names_size || !given(before, "autoscaling") || given(&after, "autoscaling") {
        return None;
    }
    let bound =
        |name| after.get(name).and_then(Value::as_u64).and_then(|it| u32::try_from(it).ok());
    let size = left.max(bound("minNodes").unwrap_or(0)).min(bound("maxNodes").unwrap_or(u32::MAX));
    let mut spec = wanted.clone();
    spec.insert(NODE_COUNT.to_owned(), size.into());
    Some(Patch { spec: Some(spec), ..change.clone() })
}

/// The member that says how many nodes a pool has, or begins with.
const NODE_COUNT: &str = "nodeCount";

impl Unavailable {
    /// How many of so many nodes.
    pub fn of(self, nodes: u32) -> u32 {
        match self {
            Unavailable::Nodes(most) => most,
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a share of a u32 is one"
            )]
            Unavailable::Percent(percent) => {
                ((percent.clamp(0.0, 100.0) * f64::from(nodes) / 100.0).floor() as u32).max(1)
            }
        }
    }
}

/// Machine types that mean the same at every kind of provider, and what each kind calls them.
const ABSTRACT_TYPES: [(&str, &[(&str, &str)]); 7] = [
    (
        "h100-8x",
        &[("aws", "p5.48xlarge"), ("gcp", "a3-highgpu-8g"), ("lambda", "gpu_8x_h100_sxm5")],
    ),
    ("h100-1x", &[("aws", "p5.4xlarge"), ("gcp", "a3-highgpu-1g"), ("lambda", "gpu_1x_h100_pcie")]),
    ("a100-8x", &[("aws", "p4d.24xlarge"), ("gcp", "a2-highgpu-8g"), ("lambda", "gpu_8x_a100")]),
    ("a100-4x", &[("gcp", "a2-highgpu-4g"), ("lambda", "gpu_4x_a100")]),
    ("a100-1x", &[("gcp", "a2-highgpu-1g"), ("lambda", "gpu_1x_a100")]),
    ("a10-1x", &[("aws", "g5.xlarge"), ("lambda", "gpu_1x_a10")]),
    ("l4-1x", &[("aws", "g6.xlarge"), ("gcp", "g2-standard-4")]),
];

/// Whether a machine type means the same at every kind of provider.
pub(super) fn is_abstract(machine_type: &str) -> bool {
    ABSTRACT_TYPES.iter().any(|(name, _)| *name == machine_type)
}

/// What providers call a machine type that means the same at each of them; nothing for any other.
pub fn meanings(machine_type: &str) -> impl Iterator<Item = &'static str> {
    let found = ABSTRACT_TYPES.iter().find(|(name, _)| *name == machine_type);
    found.into_iter().flat_map(|(_, names)| names.iter().map(|(_, name)| *name))
}

/// What a kind of provider calls a machine type; `None` if it has nothing like it.
///
/// A kind that has no names of its own (a simulated one) is asked by what it offers.
pub(super) fn resolve<'a>(machine_type: &'a str, kind: &str, offers: &[Offer]) -> Option<&'a str> {
    let Some((_, names)) = ABSTRACT_TYPES.iter().find(|(name, _)| *name == machine_type) else {
        return Some(machine_type);
    };
    let kinds = ABSTRACT_TYPES.iter().flat_map(|(_, names)| names.iter());
    if kinds.into_iter().any(|(known, _)| *known == kind) {
        return names.iter().find(|(known, _)| *known == kind).map(|(_, name)| *name);
    }
    let offered = |name: &str| offers.iter().any(|offer| offer.machine_type == name);
    let name = names.iter().map(|(_, name)| *name).find(|name| offered(name));
    name.or(Some(machine_type))
}

#[cfg(test)]
mod tests;
