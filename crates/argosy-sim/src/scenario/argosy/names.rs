//! What a scenario has, for whatever names it: nodes, places, pools, and how many GPUs there can be.

use crate::scenario::tree::At;
use crate::scenario::{Machines, NodeSpec, Place};
use argosy_core::catalog::Catalog;
use argosy_core::field::FieldError;
use argosy_core::name::Name;
use argosy_core::pool::{PoolSpec, meanings, pool_name};
use argosy_core::resource::{Kind, Spec};
use jiff::SignedDuration;
use serde_json::Value;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};

/// What there is.
pub(in crate::scenario) struct Names {
    catalog: Catalog,
    types: BTreeMap<String, u32>,
    nodes: RefCell<BTreeSet<String>>,
    zones: RefCell<BTreeSet<String>>,
    regions: RefCell<BTreeSet<String>>,
    providers: RefCell<BTreeSet<String>>,
    racks: RefCell<BTreeSet<String>>,
    /// Pools of machines that are there, by the name that nodes carry.
    pools: RefCell<BTreeSet<String>>,
    /// Pools that buy: cluster and pool.
    bought: RefCell<BTreeSet<(String, String)>>,
    /// `None` once a machine was seen whose GPUs nobody knows.
    gpus: Cell<Option<u64>>,
    /// When it ends: nothing is planned for later.
    pub(super) until: SignedDuration,
}

impl Names {
    /// Nothing yet, under a configuration, until then.
    pub(in crate::scenario) fn new(
        config: &Value,
        machines: &Machines,
        until: SignedDuration,
    ) -> Self {
        // A catalog that cannot be read is the server's to complain about: it reads the configuration.
        let catalog = config.get("catalog").cloned().map(serde_json::from_value);
        let types = machines.types.iter().map(|(name, (gpus, _))| (name.clone(), *gpus));
        Self {
            catalog: catalog.and_then(Result::ok).unwrap_or_default(),
            types: types.collect(),
            nodes: RefCell::default(),
            zones: RefCell::default(),
            regions: RefCell::default(),
            providers: RefCell::default(),
            racks: RefCell::default(),
            pools: RefCell::default(),
            bought: RefCell::default(),
            gpus: Cell::new(Some(0)),
            until,
        }
    }

    /// Machines that are there.
    pub(in crate::scenario) fn learn(&self, nodes: &[NodeSpec]) {
        let insert = |set: &RefCell<BTreeSet<String>>, name: &str| {
            if !name.is_empty() && !set.borrow().contains(name) {
                set.borrow_mut().insert(name.to_owned());
            }
        };
        let mut gpus = 0;
        for node in nodes {
            gpus += u64::from(node.gpus);
            insert(&self.zones, &node.zone);
            insert(&self.regions, &node.region);
            insert(&self.providers, &node.provider);
            insert(&self.pools, &node.pool);
            insert(&self.racks, node.labels.get("rack").map_or("", String::as_str));
        }
        self.gpus.set(self.gpus.get().map(|known| known + gpus));
        self.nodes.borrow_mut().extend(nodes.iter().map(|node| node.id.clone()));
    }

    /// Whether a cluster's spec is one.
    pub(super) fn check_cluster(&self, spec: &Spec) -> Result<(), Vec<FieldError>> {
        self.catalog.check(Kind::Cluster, spec, None)
    }

    /// A pool that buys, under its cluster.
    pub(super) fn learn_pool(
        &self,
        (cluster, cluster_spec): (&Name, &Spec),
        (pool, spec): (&Name, &Spec),
    ) -> Result<(), Vec<FieldError>> {
        self.bought.borrow_mut().insert((cluster.to_string(), pool.to_string()));
        let read = PoolSpec::read(spec, cluster_spec, &self.catalog)?;
        let nodes = if read.autoscaling.is_some() { read.max.max(read.nodes) } else { read.nodes };
        let each = self.gpus_of(read.types.first(), Catalog::provider_of(cluster_spec));
        let more = each.map(|each| u64::from(each) * u64::from(nodes));
        self.gpus.set(self.gpus.get().zip(more).map(|(known, more)| known + more));
        Ok(())
    }

    /// GPUs of a machine type, as far as anybody knows.
    fn gpus_of(&self, machine_type: Option<&String>, provider: Option<&str>) -> Option<u32> {
        let name = match (machine_type, provider) {
            (Some(name), _) => name.as_str(),
            (None, Some(provider)) => self.catalog.providers.get(provider)?.smallest()?,
            (None, None) => return None,
        };
        let of = |name: &str| {
            let declared = self.types.get(name).copied();
            let mut catalogs = self.catalog.providers.values();
            declared.or_else(|| catalogs.find_map(|of| Some(of.machine_types.get(name)?.gpus)))
        };
        of(name).or_else(|| meanings(name).find_map(of))
    }

    /// GPUs that there can be, all machines together; `None` if nobody knows.
    pub(super) fn gpus(&self) -> Option<u64> {
        self.gpus.get()
    }

    /// Complains about a node that is not there.
    pub(in crate::scenario) fn node(&self, at: &At<'_>, id: &str) {
        let nodes = self.nodes.borrow();
        if !nodes.contains(id) {
            let known: Vec<&str> = nodes.iter().take(1000).map(String::as_str).collect();
            missing(at, "node", id, &known);
        }
    }

    /// A place as nodes name it; a complaint if no machine can be there.
    pub(in crate::scenario) fn place(&self, at: &At<'_>, place: Place) -> Place {
        let known = |noun: &str, set: &RefCell<BTreeSet<String>>, name: &str| {
            let set = set.borrow();
            // Where pools buy, machines come up in places that nobody wrote down.
            if !set.contains(name) && self.bought.borrow().is_empty() {
                let known: Vec<&str> = set.iter().map(String::as_str).collect();
                missing(at, noun, name, &known);
            }
        };
        match &place {
            Place::Zone(name) => known("zone", &self.zones, name),
            Place::Region(name) => known("region", &self.regions, name),
            Place::Provider(name) => known("provider", &self.providers, name),
            Place::Rack(name) => known("rack", &self.racks, name),
            Place::Node(id) => self.node(at, id),
            Place::Pool(name) => return Place::Pool(self.pool(at, name)),
            Place::Part(_) | Place::Everything => {}
        }
        place
    }

    /// A pool as its nodes name it, from `POOL` or `CLUSTER/POOL`; a complaint if there is none.
    pub(in crate::scenario) fn pool(&self, at: &At<'_>, text: &str) -> String {
        let bought = self.bought.borrow();
        let matches = |(cluster, pool): &&(String, String)| {
            pool == text
                || format!("{cluster}/{pool}") == text
                || format!("{cluster}.{pool}") == text
        };
        let found: Vec<_> = bought.iter().filter(matches).collect();
        match found.as_slice() {
            [(cluster, pool)] => {
                let names = Name::parse(cluster).ok().zip(Name::parse(pool).ok());
                return names
                    .map_or_else(String::new, |(cluster, pool)| pool_name(&cluster, &pool));
            }
            [] if self.pools.borrow().contains(text) => {}
            [] => {
                let pools = self.pools.borrow();
                let written: Vec<String> =
                    bought.iter().map(|(cluster, pool)| format!("{cluster}/{pool}")).collect();
                let known: Vec<&str> =
                    written.iter().chain(pools.iter()).map(String::as_str).collect();
                missing(at, "pool", text, &known);
            }
            [_, _, ..] => {
                at.error(format!("there are several pools `{text}`"), "write `CLUSTER/POOL`");
            }
        }
        text.to_owned()
    }

    /// Complains about a cluster, or a pool of it, that is not declared.
    pub(super) fn declared(&self, at: &At<'_>, cluster: &str, pool: Option<&str>) {
        let bought = self.bought.borrow();
        let found =
            bought.iter().any(|(of, name)| of == cluster && pool.is_none_or(|pool| pool == name));
        if !found {
            let wanted =
                pool.map_or_else(|| cluster.to_owned(), |pool| format!("{cluster}/{pool}"));
            let written: Vec<String> = bought
                .iter()
                .map(|(of, name)| pool.map_or_else(|| of.clone(), |_| format!("{of}/{name}")))
                .collect();
            let known: Vec<&str> = written.iter().map(String::as_str).collect();
            missing(at, if pool.is_some() { "pool" } else { "cluster" }, &wanted, &known);
        }
    }
}

fn missing(at: &At<'_>, noun: &str, name: &str, known: &[&str]) {
    if known.is_empty() {
        let name = crate::scenario::tree::quoted(name);
        at.error(
            format!("there is no {noun} `{name}`"),
            format!("the scenario has no {noun} by name"),
        );
    } else {
        at.unknown(noun, name, known);
    }
}
