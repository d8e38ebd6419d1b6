//! Node pools by the name that their nodes carry, and what protects their machines.
//!
//! What a newcomer gets wrong: a name is what people write and nodes say. What is stored about a pool, and what is
//! asked of a machine, goes by the pool's id.

use crate::Error;
use argosy_core::catalog::Catalog;
use argosy_core::instance::Instance;
use argosy_core::node::Node;
use argosy_core::pool::{PoolSpec, pool_name};
use argosy_core::protect::{PROTECTED, Protection, is_protected, protection};
use argosy_core::resource::{Kind, Resource, Spec};
use argosy_store::view::{Stored, View};

/// The cluster of a pool; `None` for a cluster.
pub(crate) fn cluster_of<'v>(view: &'v View, pool: &Resource) -> Option<&'v Stored<Resource>> {
    view.resource(pool.owner?)
}

/// The name that the nodes of a pool carry; `None` if its cluster is gone.
pub(crate) fn node_pool_name(view: &View, pool: &Resource) -> Option<String> {
    Some(pool_name(&cluster_of(view, pool)?.value.name, &pool.name))
}

/// The declared pool whose nodes carry this name.
pub(crate) fn by_node_pool_name<'v>(
    view: &'v View,
    tenant: &str,
    name: &str,
) -> Option<&'v Stored<Resource>> {
    let mut pools = view.resources(Kind::NodePool).filter(|pool| pool.value.tenant == tenant);
    pools.find(|pool| node_pool_name(view, &pool.value).as_deref() == Some(name))
}

/// What protects a machine: the label of its node, its pool or its cluster.
pub(crate) fn protects(view: &View, instance: &Instance) -> Option<Protection> {
    let node = view.node(instance.id.as_str()).map(|node| &*node.value);
    let node = node.filter(|node| node.tenant == instance.tenant);
    protects_in(view, node, view.resource(instance.pool))
}

/// What protects a node: through the record of its machine; where we bought none, through the pool it says.
pub(crate) fn protects_node(view: &View, node: &Node) -> Option<Protection> {
    let record = view.instance(node.id.as_str());
    let pool = match record.filter(|record| record.value.tenant == node.tenant) {
        Some(record) => view.resource(record.value.pool),
        None => node.pool.as_deref().and_then(|name| by_node_pool_name(view, &node.tenant, name)),
    };
    protects_in(view, Some(node), pool)
}

fn protects_in(
    view: &View,
    node: Option<&Node>,
    pool: Option<&Stored<Resource>>,
) -> Option<Protection> {
    let pool = pool.map(|pool| &*pool.value);
    let cluster = pool.and_then(|pool| cluster_of(view, pool)).map(|cluster| &*cluster.value);
    protection(node, pool, cluster)
}

/// Refuses to delete what is protected, or what something protected belongs to.
///
/// # Errors
/// `Precondition`, with what is protected and the ways out.
pub(crate) fn allow_delete(view: &View, resource: &Resource) -> Result<(), Error> {
    let what = |one: &Resource| format!("{} {}", noun(one.kind), one.name);
    let whole = what(resource);
    let refuse = |label: String, off: String| {
        Err(Error::Precondition(format!(
            "{whole} is not deleted: {label} is labelled {PROTECTED}. Take the label off ({off}), or, with the role \
             admin, add force=true and reason=TEXT"
        )))
    };
    let cluster = cluster_of(view, resource).map(|cluster| &*cluster.value);
    let children: Vec<&Resource> = view.children(resource.id).map(|child| &*child.value).collect();
    let kin = [Some(resource), cluster].into_iter().flatten();
    let mut kin = kin.chain(children.iter().copied());
    if let Some(one) = kin.find(|one| is_protected(&one.labels)) {
        let owner =
            cluster_of(view, one).map_or_else(String::new, |it| format!("{}/", it.value.name));
        let command = match one.kind {
            Kind::Cluster => "cluster",
            Kind::NodePool => "nodepool",
        };
        let off = format!("argosy {command} patch {owner}{} -l {PROTECTED}-", one.name);
        return refuse(what(one), off);
    }
    let pools = children.into_iter().chain((resource.kind == Kind::NodePool).then_some(resource));
    let machines = pools.flat_map(|pool| view.instances_of(pool.id));
    let mut living = machines.filter(|record| !record.value.state.is_over());
    let node = living.find(|record| protects(view, &record.value) == Some(Protection::Node));
    match node.map(|record| &record.value.id) {
        Some(node) => refuse(
            format!("its node {node}"),
            format!("argosy node unprotect {node} --reason TEXT"),
        ),
        None => Ok(()),
    }
}

/// Refuses a change of a pool, or of its cluster, that takes protected machines away: a smaller pool, or one of
/// other machines.
///
/// # Errors
/// `Precondition`, with what is protected and the ways out.
pub(crate) fn allow_change(
    view: &View,
    catalog: &Catalog,
    before: &Resource,
    after: &Resource,
) -> Result<(), Error> {
    match before.kind {
        Kind::NodePool => {
            let Some(cluster) = cluster_of(view, before) else { return Ok(()) };
            let of = &cluster.value;
            allow_specs(
                view,
                catalog,
                (before, of),
                (&before.spec, &of.spec),
                (&after.spec, &of.spec),
            )
        }
        Kind::Cluster => view.children(before.id).try_for_each(|pool| {
            let pool = &*pool.value;
            let (old, new) = ((&pool.spec, &before.spec), (&pool.spec, &after.spec));
            allow_specs(view, catalog, (pool, before), old, new)
        }),
    }
}

/// The spec of a pool, and that of its cluster.
type Specs<'a> = (&'a Spec, &'a Spec);

fn allow_specs(
    view: &View,
    catalog: &Catalog,
    (pool, cluster): (&Resource, &Resource),
    old: Specs<'_>,
    new: Specs<'_>,
) -> Result<(), Error> {
    if old == new {
        return Ok(());
    }
    let read = |(pool, cluster)| PoolSpec::read(pool, cluster, catalog);
    let (Ok(old), Ok(new)) = (read(old), read(new)) else { return Ok(()) };
    let wanted = view.pool_book(pool.id).and_then(|book| book.value.target);
    let (from, to) = (old.target(wanted), new.target(wanted));
    let living = view.instances_of(pool.id).filter(|record| !record.value.state.is_over());
    let living: Vec<Option<Protection>> =
        living.map(|record| protects(view, &record.value)).collect();
    let whole = protection(None, Some(pool), Some(cluster));
    let nodes = living.iter().filter(|by| **by == Some(Protection::Node)).count();
    let kept = if whole.is_some() { living.len() } else { nodes };
    let fewer = to < from && usize::try_from(to).is_ok_and(|to| to < kept);
    let others = whole.is_some() && old.made_from() != new.made_from() && !living.is_empty();
    if !fewer && !others {
        return Ok(());
    }
    let name = format!("{}/{}", cluster.name, pool.name);
    let label = match whole {
        Some(Protection::Cluster) => format!("its cluster {} is", cluster.name),
        Some(Protection::Pool | Protection::Node) => "it is".to_owned(),
        None => format!("{nodes} of its nodes are"),
    };
    let what = if fewer {
        format!("node pool {name} is not made smaller, from {from} to {to} nodes")
    } else {
        format!("the {} machines of node pool {name} are not replaced by others", living.len())
    };
    Err(Error::Precondition(format!(
        "{what}: {label} labelled {PROTECTED}. Take the label off, or, with the role admin, add force=true and \
         reason=TEXT"
    )))
}

/// What a kind is called in sentences.
pub(crate) const fn noun(kind: Kind) -> &'static str {
    match kind {
        Kind::Cluster => "cluster",
        Kind::NodePool => "node pool",
    }
}
