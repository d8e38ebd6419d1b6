//! All current documents in memory, typed, with a few indexes; kept current by the feed.
//!
//! What a newcomer gets wrong: the view is behind its engine for a moment after a commit of another
//! process, never after one of our own: `Store::commit` returns when the view has seen it.

use crate::engine::{Key, Revision};
use crate::entity::{Decoded, Entity, IdempotencyKey, NameClaim};
use argosy_core::id::ResourceId;
use argosy_core::resource::{Kind, Resource, Tombstone};
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// A document and the commit that last wrote it.
#[derive(Debug)]
pub struct Stored<T> {
    /// The document.
    pub value: Arc<T>,
    /// The commit that last wrote it.
    pub revision: Revision,
}

impl<T> Clone for Stored<T> {
    fn clone(&self) -> Self {
        Self { value: self.value.clone(), revision: self.revision }
    }
}

/// What one commit changed, for watchers and loops.
#[derive(Clone, Debug)]
pub struct Event {
    /// The commit.
    pub revision: Revision,
    /// The resources it changed.
    pub resources: Vec<ResourceChange>,
}

impl Event {
    pub(crate) fn new(
        revision: Revision,
        mut resources: Vec<ResourceChange>,
        mut tombstones: HashMap<ResourceId, Arc<Tombstone>>,
    ) -> Event {
        for gone in resources.iter_mut().filter(|change| change.after.is_none()) {
            gone.tombstone = tombstones.remove(&gone.id);
        }
        Event { revision, resources }
    }
}

/// One resource's part in an event.
#[derive(Clone, Debug)]
pub struct ResourceChange {
    /// Which.
    pub id: ResourceId,
    /// As it was; `None` if it is new, or if the event was read back from the engine.
    pub before: Option<Stored<Resource>>,
    /// As it is; `None` if it was removed.
    pub after: Option<Stored<Resource>>,
    /// What remains of it, if it was removed and the same commit says so.
    pub tombstone: Option<Arc<Tombstone>>,
}

/// The current documents.
#[derive(Debug, Default)]
pub struct View {
    revision: Revision,
    by_id: HashMap<ResourceId, Stored<Resource>>,
    // In order, for lists.
    resources: BTreeMap<Kind, BTreeMap<ResourceId, Stored<Resource>>>,
    children: HashMap<ResourceId, BTreeSet<ResourceId>>,
    labels: HashMap<String, HashMap<String, BTreeSet<ResourceId>>>,
    names: HashMap<String, ResourceId>,
    tombstones: HashMap<ResourceId, Stored<Tombstone>>,
    tombstones_by_name: HashMap<String, ResourceId>,
    idempotency_keys: HashMap<String, Stored<IdempotencyKey>>,
}

impl View {
    /// The last commit this view has seen.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// One resource.
    pub fn resource(&self, id: ResourceId) -> Option<&Stored<Resource>> {
        self.by_id.get(&id)
    }

    /// All resources of a kind, by id, which is by age.
    pub fn resources(&self, kind: Kind) -> impl Iterator<Item = &Stored<Resource>> {
        self.resources.get(&kind).into_iter().flat_map(BTreeMap::values)
    }

    /// How many resources of a kind there are.
    pub fn count(&self, kind: Kind) -> usize {
        self.resources.get(&kind).map_or(0, BTreeMap::len)
    }

    /// What a resource owns.
    pub fn children(&self, owner: ResourceId) -> impl Iterator<Item = &Stored<Resource>> {
        self.children.get(&owner).into_iter().flatten().filter_map(|id| self.resource(*id))
    }

    /// Whether a resource owns anything, in whatever state.
    pub fn has_children(&self, owner: ResourceId) -> bool {
        self.children.contains_key(&owner)
    }

    /// How many resources of any kind carry a label.
    pub fn count_labelled(&self, key: &str, value: &str) -> usize {
        let ids = self.labels.get(key).and_then(|values| values.get(value));
        ids.map_or(0, BTreeSet::len)
    }

    /// The resources of any kind that carry a label.
    pub fn labelled<'v>(
        &'v self,
        key: &str,
        value: &str,
    ) -> impl Iterator<Item = &'v Stored<Resource>> + use<'v> {
        let ids = self.labels.get(key).and_then(|values| values.get(value));
        ids.into_iter().flatten().filter_map(|id| self.resource(*id))
    }

    /// Who has a name; the claim's `holder` does not matter.
    pub fn holder(&self, claim: &NameClaim) -> Option<ResourceId> {
        self.names.get(&claim.key_id()).copied()
    }

    /// What remains of a removed resource.
    pub fn tombstone(&self, id: ResourceId) -> Option<&Stored<Tombstone>> {
        self.tombstones.get(&id)
    }

    /// What remains of the last resource that had a name; the claim's `holder` does not matter.
    pub fn tombstone_named(&self, claim: &NameClaim) -> Option<&Stored<Tombstone>> {
        self.tombstone(*self.tombstones_by_name.get(&claim.key_id())?)
    }

    /// Tombstones of resources that were removed before a time.
    pub fn tombstones_before(&self, time: Timestamp) -> Vec<Stored<Tombstone>> {
        self.tombstones.values().filter(|t| t.value.removed_at < time).cloned().collect()
    }

    /// A remembered request.
    pub fn idempotency_key(&self, id: &str) -> Option<&Stored<IdempotencyKey>> {
        self.idempotency_keys.get(id)
    }

    /// Requests that may be forgotten at a time.
    pub fn idempotency_keys_expired(&self, now: Timestamp) -> Vec<Stored<IdempotencyKey>> {
        self.idempotency_keys.values().filter(|k| k.value.expires <= now).cloned().collect()
    }

    /// Takes in one document of the first load.
    pub(crate) fn load(&mut self, key: &Key, revision: Revision, document: Decoded) {
        self.set(key, revision, document);
    }

    /// Says up to where the first load goes.
    pub(crate) fn loaded(&mut self, revision: Revision) {
        self.revision = revision;
    }

    /// Takes in one commit, the next one.
    pub(crate) fn apply<'a>(
        &mut self,
        revision: Revision,
        documents: impl Iterator<Item = (&'a Key, Decoded)>,
    ) -> Event {
        let mut tombstones = HashMap::new();
        let mut resources = Vec::new();
        for (key, document) in documents {
            if let Decoded::Tombstone(tombstone) = &document {
                tombstones.insert(tombstone.id, tombstone.clone());
            }
            resources.extend(self.set(key, revision, document));
        }
        self.revision = revision;
        Event::new(revision, resources, tombstones)
    }

    fn set(&mut self, key: &Key, revision: Revision, document: Decoded) -> Option<ResourceChange> {
        match document {
            Decoded::Resource(value) => {
                let id = value.id;
                // The first load may have been ahead of the feed.
                if self.resource(id).is_some_and(|known| revision < known.revision) {
                    return None;
                }
                let before = self.unset_resource(id);
                let after = Stored { value, revision };
                self.set_resource(after.clone());
                Some(ResourceChange { id, before, after: Some(after), tombstone: None })
            }
            Decoded::Tombstone(value) => {
                self.tombstones_by_name.insert(claim_of(&value).key_id(), value.id);
                self.tombstones.insert(value.id, Stored { value, revision });
                None
            }
            Decoded::NameClaim(value) => {
                self.names.insert(key.id.clone(), value.holder);
                None
            }
            Decoded::IdempotencyKey(value) => {
                self.idempotency_keys.insert(key.id.clone(), Stored { value, revision });
                None
            }
            Decoded::Gone => self.unset(key),
        }
    }

    fn unset(&mut self, key: &Key) -> Option<ResourceChange> {
        match key.kind.as_str() {
            Resource::KIND => {
                let id = ResourceId::parse(&key.id)?;
                let before = self.unset_resource(id)?;
                let before = Some(before);
                return Some(ResourceChange { id, before, after: None, tombstone: None });
            }
            Tombstone::KIND => {
                let gone = self.tombstones.remove(&ResourceId::parse(&key.id)?)?.value;
                let name = claim_of(&gone).key_id();
                if self.tombstones_by_name.get(&name) == Some(&gone.id) {
                    self.tombstones_by_name.remove(&name);
                }
            }
            NameClaim::KIND => {
                self.names.remove(&key.id);
            }
            IdempotencyKey::KIND => {
                self.idempotency_keys.remove(&key.id);
            }
            _ => {}
        }
        None
    }

    fn set_resource(&mut self, resource: Stored<Resource>) {
        let Resource { id, kind, owner, .. } = *resource.value;
        self.by_id.insert(id, resource.clone());
        if let Some(owner) = owner {
            self.children.entry(owner).or_default().insert(id);
        }
        for (key, value) in resource.value.labels.iter() {
            let values = self.labels.entry(key.to_owned()).or_default();
            values.entry(value.to_owned()).or_default().insert(id);
        }
        self.resources.entry(kind).or_default().insert(id, resource);
    }

    fn unset_resource(&mut self, id: ResourceId) -> Option<Stored<Resource>> {
        let gone = self.by_id.remove(&id)?;
        if let Some(resources) = self.resources.get_mut(&gone.value.kind) {
            resources.remove(&id);
        }
        if let Some(owner) = gone.value.owner
            && let Some(children) = self.children.get_mut(&owner)
        {
            children.remove(&id);
            if children.is_empty() {
                self.children.remove(&owner);
            }
        }
        for (key, value) in gone.value.labels.iter() {
            let Some(values) = self.labels.get_mut(key) else { continue };
            if let Some(ids) = values.get_mut(value) {
                ids.remove(&id);
                if ids.is_empty() {
                    values.remove(value);
                }
            }
            if values.is_empty() {
                self.labels.remove(key);
            }
        }
        Some(gone)
    }
}

fn claim_of(tombstone: &Tombstone) -> NameClaim {
    NameClaim {
        tenant: tombstone.tenant.clone(),
        kind: tombstone.kind,
        owner: tombstone.owner,
        name: tombstone.name.clone(),
        holder: tombstone.id,
    }
}
