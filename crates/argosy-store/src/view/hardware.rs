//! Which nodes have, or had, a GPU: by serial number, or UUID where there is none.
//!
//! A fleet of a hundred thousand nodes has a million GPUs, and nearly each is in one node for ever. So an
//! entry is a number made of the name and one node; whoever asks compares the names.

use argosy_core::node::{Gpu, Node, NodeId};
use std::collections::HashMap;
use std::collections::hash_map::{Entry, RandomState};
use std::hash::BuildHasher;

/// The index. Nodes go in and out as they are stored and replaced.
#[derive(Debug, Default)]
pub(super) struct Hardware {
    /// By this process's own secret, so that nobody outside can choose names that meet.
    hasher: RandomState,
    homes: HashMap<u64, Home>,
}

#[derive(Debug)]
enum Home {
    One(NodeId),
    /// A GPU that was moved, or a copied machine, or two names that meet.
    More(Vec<NodeId>),
}

impl Hardware {
    pub(super) fn insert(&mut self, node: &Node) {
        for name in names(node) {
            match self.homes.entry(self.hasher.hash_one(name)) {
                Entry::Vacant(place) => _ = place.insert(Home::One(node.id.clone())),
                Entry::Occupied(mut place) => {
                    let place = place.get_mut();
                    if !place.nodes().contains(&node.id) {
                        let mut nodes = place.nodes().to_vec();
                        nodes.push(node.id.clone());
                        *place = Home::More(nodes);
                    }
                }
            }
        }
    }

    pub(super) fn remove(&mut self, node: &Node) {
        for name in names(node) {
            let Entry::Occupied(mut place) = self.homes.entry(self.hasher.hash_one(name)) else {
                continue;
            };
            let left: Vec<_> =
                place.get().nodes().iter().filter(|id| **id != node.id).cloned().collect();
            if left.is_empty() {
                place.remove();
            } else {
                place.insert(Home::More(left));
            }
        }
    }

    /// The nodes whose GPUs may include this one: those that do, and now and then one more.
    pub(super) fn maybe_in(&self, name: &str) -> &[NodeId] {
        self.homes.get(&self.hasher.hash_one(name)).map_or(&[], Home::nodes)
    }
}

impl Home {
    fn nodes(&self) -> &[NodeId] {
        match self {
            Home::One(node) => std::slice::from_ref(node),
            Home::More(nodes) => nodes,
        }
    }
}

/// What a node has, and what it had when something was seen.
pub(super) fn names(node: &Node) -> impl Iterator<Item = &str> {
    let has = node.gpus.iter().map(Gpu::hardware);
    let had = node.sightings.iter().map(|seen| seen.hardware.as_str());
    has.chain(had).filter(|name| !name.is_empty())
}
