//! The adapters of each kind of resource as configured, and the order their dependencies give them.

use super::{AdapterName, condition_kind};
use crate::nearest::nearest;
use crate::resource::Kind;
use jiff::SignedDuration;
use std::collections::{BTreeMap, BTreeSet};

/// One adapter of a kind of resource, as configured.
#[derive(Clone, Debug, PartialEq)]
pub struct AdapterSpec {
    /// Its name.
    pub name: AdapterName,
    /// The adapters that must be done first; cleanup goes the other way.
    pub depends_on: Vec<AdapterName>,
    /// Whether the resource waits for it.
    pub required: bool,
    /// How long it may take for one generation before it counts as stalled.
    pub deadline: SignedDuration,
    /// Who does the work.
    pub runner: Runner,
}

impl AdapterSpec {
    /// The built-in adapter of node pools that is a loop of its own: it is always at work, and reports when
    /// there is something to say.
    pub const MACHINES: &str = "machines";

    /// Whether nobody has to tell it that it is its turn, although it is built in.
    pub fn is_loop(&self) -> bool {
        self.runner == Runner::BuiltIn && self.name.as_str() == Self::MACHINES
    }
}

/// Who does an adapter's work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Runner {
    /// We do, in this process, against the provider.
    BuiltIn,
    /// Somebody who is told by HTTP and reports over REST.
    Webhook {
        /// Where events go.
        url: String,
    },
    /// Somebody who watches the API and reports over REST; nobody is told.
    External,
}

/// The adapters of every kind of resource, each list in an order in which dependencies come first.
#[derive(Clone, Debug, PartialEq)]
pub struct AdapterGraph {
    kinds: BTreeMap<Kind, Vec<AdapterSpec>>,
}

impl AdapterGraph {
    /// Checks the graph and puts each list in order; what does not depend on each other stays in the
    /// order given.
    ///
    /// # Errors
    /// Names an adapter given twice, a dependency nobody defined (with the nearest name), a cycle,
    /// or a built-in adapter that does not exist for the kind.
    pub fn new(kinds: BTreeMap<Kind, Vec<AdapterSpec>>) -> Result<Self, GraphError> {
        let kinds = kinds
            .into_iter()
            .map(|(kind, adapters)| {
                check(kind, &adapters)?;
                Ok((kind, in_order(kind, adapters)?))
            })
            .collect::<Result<_, GraphError>>()?;
        Ok(Self { kinds })
    }

    /// The adapters of a kind, dependencies first.
    pub fn of(&self, kind: Kind) -> &[AdapterSpec] {
        self.kinds.get(&kind).map_or(&[], Vec::as_slice)
    }
}

impl Default for AdapterGraph {
    /// Clusters: validation, then dns, then infrastructure. Node pools: validation, then machines.
    fn default() -> Self {
        let built_in = |name: &str, after: &[&str], deadline_mins| AdapterSpec {
            name: AdapterName(name.to_owned()),
            depends_on: after.iter().map(|name| AdapterName((*name).to_owned())).collect(),
            required: true,
            deadline: SignedDuration::from_mins(deadline_mins),
            runner: Runner::BuiltIn,
        };
        let clusters = vec![
            built_in("validation", &[], 5),
            built_in("dns", &["validation"], 5),
            built_in("infrastructure", &["dns"], 30),
        ];
        let pools = vec![built_in("validation", &[], 5), built_in("machines", &["validation"], 30)];
        Self { kinds: BTreeMap::from([(Kind::Cluster, clusters), (Kind::NodePool, pools)]) }
    }
}

/// What is wrong with a configured graph.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("adapter `{adapter}` of {kind}: {problem}")]
pub struct GraphError {
    /// The kind of resource.
    pub kind: Kind,
    /// The adapter.
    pub adapter: AdapterName,
    /// What is wrong, and what would be right.
    pub problem: String,
}

/// The adapters that run in this process, by kind of resource.
pub const fn built_in(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Cluster => &["validation", "dns", "infrastructure"],
        Kind::NodePool => &["validation", "machines"],
    }
}

/// Everything that can be wrong with a list of adapters, but for cycles.
fn check(kind: Kind, adapters: &[AdapterSpec]) -> Result<(), GraphError> {
    let names: BTreeSet<&str> = adapters.iter().map(|spec| spec.name.as_str()).collect();
    let mut seen = BTreeMap::new();
    for spec in adapters {
        let wrong = |problem| GraphError { kind, adapter: spec.name.clone(), problem };
        if let Some(other) = seen.insert(condition_kind(&spec.name), &spec.name) {
            return Err(wrong(if *other == spec.name {
                "is given twice; give each adapter once".to_owned()
            } else {
                let shared = condition_kind(other);
                format!("has the same condition {shared} as `{other}`; rename one of them")
            }));
        }
        if spec.runner == Runner::BuiltIn && !built_in(kind).contains(&spec.name.as_str()) {
            return Err(wrong(format!(
                "there is no such built-in adapter; the built-in ones are {}; anything else needs a \
                 webhook, or runs elsewhere as an external adapter",
                built_in(kind).join(", ")
            )));
        }
        let unknown = spec.depends_on.iter().find(|name| !names.contains(name.as_str()));
        if let Some(unknown) = unknown {
            let others = names.iter().copied().filter(|name| *name != spec.name.as_str());
            let hint = nearest(unknown.as_str(), others)
                .map_or(String::new(), |near| format!("; did you mean `{near}`?"));
            return Err(wrong(format!("depends on `{unknown}`, which is not defined{hint}")));
        }
    }
    Ok(())
}

/// The same adapters, each after what it depends on.
fn in_order(kind: Kind, mut left: Vec<AdapterSpec>) -> Result<Vec<AdapterSpec>, GraphError> {
    let mut ordered: Vec<AdapterSpec> = Vec::with_capacity(left.len());
    while !left.is_empty() {
        let waits = |spec: &AdapterSpec| {
            spec.depends_on.iter().any(|name| left.iter().any(|other| other.name == *name))
        };
        match left.iter().position(|spec| !waits(spec)) {
            Some(next) => ordered.push(left.remove(next)),
            None => return Err(cycle(kind, &left)),
        }
    }
    Ok(ordered)
}

/// Names the circle in `stuck`, in which every adapter waits for another one.
fn cycle(kind: Kind, stuck: &[AdapterSpec]) -> GraphError {
    let waits_for = |name: &AdapterName| {
        let spec = stuck.iter().find(|spec| spec.name == *name)?;
        spec.depends_on.iter().find(|name| stuck.iter().any(|other| other.name == **name))
    };
    let mut path: Vec<&AdapterName> = Vec::new();
    let mut next = stuck.first().map(|spec| &spec.name);
    while let Some(name) = next {
        let seen = path.iter().position(|before| *before == name);
        path.push(name);
        if let Some(start) = seen {
            path.drain(..start);
            break;
        }
        next = waits_for(name);
    }
    let path: Vec<&str> = path.into_iter().map(AdapterName::as_str).collect();
    GraphError {
        kind,
        adapter: AdapterName(path.first().copied().unwrap_or_default().to_owned()),
        problem: format!(
            "waits for itself: {}; remove one of these dependencies",
            path.join(" -> ")
        ),
    }
}

#[cfg(test)]
mod tests;
