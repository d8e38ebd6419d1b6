//! Instances by id, by what a provider calls the machine, and by node pool.

use super::Stored;
use argosy_core::id::ResourceId;
use argosy_core::instance::{Instance, InstanceId};
use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::Arc;

/// The index.
#[derive(Debug, Default)]
pub(super) struct Instances {
    // In order, for lists.
    by_id: BTreeMap<InstanceId, Stored<Instance>>,
    // Two providers may use the same words, so there may be more than one.
    by_machine: HashMap<Arc<str>, Vec<InstanceId>>,
    // Whole, because a pool is looked at whole, and often.
    by_pool: HashMap<ResourceId, BTreeMap<InstanceId, Stored<Instance>>>,
}

impl Instances {
    pub(super) fn get(&self, id: &str) -> Option<&Stored<Instance>> {
        self.by_id.get(id)
    }

    pub(super) fn all(&self) -> impl ExactSizeIterator<Item = &Stored<Instance>> {
        self.by_id.values()
    }

    pub(super) fn after(&self, id: Option<&str>) -> impl Iterator<Item = &Stored<Instance>> {
        let start = id.map_or(Bound::Unbounded, Bound::Excluded);
        self.by_id.range::<str, _>((start, Bound::Unbounded)).map(|(_, instance)| instance)
    }

    pub(super) fn of_pool(&self, pool: ResourceId) -> impl Iterator<Item = &Stored<Instance>> {
        self.by_pool.get(&pool).into_iter().flat_map(BTreeMap::values)
    }

    pub(super) fn by_machine(&self, machine: &str) -> impl Iterator<Item = &Stored<Instance>> {
        let ids = self.by_machine.get(machine).into_iter().flatten();
        ids.filter_map(|id| self.by_id.get(id))
    }

    /// Keeps an instance, and answers with what it was before.
    pub(super) fn set(&mut self, instance: Stored<Instance>) -> Option<Stored<Instance>> {
        let id = instance.value.id.clone();
        let before = self.by_id.insert(id.clone(), instance.clone());
        let (old, new) = (before.as_ref().map(|before| &*before.value), &*instance.value);
        // What changes most often, its state, does not move it.
        if old.and_then(Instance::machine) != new.machine() {
            old.into_iter().for_each(|old| self.forget_machine(old));
            if let Some(machine) = new.machine() {
                self.by_machine.entry(machine.as_str().into()).or_default().push(id.clone());
            }
        }
        if let Some(old) = old.filter(|old| old.pool != new.pool) {
            self.forget_pool(old);
        }
        self.by_pool.entry(new.pool).or_default().insert(id, instance);
        before
    }

    pub(super) fn unset(&mut self, id: &str) -> Option<Stored<Instance>> {
        let gone = self.by_id.remove(id)?;
        self.forget_machine(&gone.value);
        self.forget_pool(&gone.value);
        Some(gone)
    }

    fn forget_machine(&mut self, instance: &Instance) {
        let Some(machine) = instance.machine() else { return };
        if let Some(ids) = self.by_machine.get_mut(machine.as_str()) {
            ids.retain(|id| *id != instance.id);
            if ids.is_empty() {
                self.by_machine.remove(machine.as_str());
            }
        }
    }

    fn forget_pool(&mut self, instance: &Instance) {
        if let Some(ids) = self.by_pool.get_mut(&instance.pool) {
            ids.remove(&instance.id);
            if ids.is_empty() {
                self.by_pool.remove(&instance.pool);
            }
        }
    }
}

#[cfg(test)]
mod tests;
