//! All current documents in memory, typed, with a few indexes; kept current by the feed.

use crate::engine::Revision;
use argosy_core::id::ResourceId;
use argosy_core::resource::{Kind, Resource, Tombstone};
use std::sync::Arc;

/// A resource and the commit that last wrote it.
#[derive(Clone, Debug)]
pub struct Stored<T> {
    /// The document.
    pub value: Arc<T>,
    /// The commit that last wrote it.
    pub revision: Revision,
}

/// What one commit changed, typed, for watchers and loops.
#[derive(Clone, Debug)]
pub struct Event {
    /// The commit.
    pub revision: Revision,
    /// The resources it changed.
    pub resources: Vec<ResourceChange>,
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
}

/// The current documents.
#[derive(Debug, Default)]
pub struct View {}

impl View {
    /// One resource.
    pub fn resource(&self, id: ResourceId) -> Option<&Stored<Resource>> {
        let _ = id;
        todo!()
    }

    /// All resources of a kind, by id.
    pub fn resources(&self, kind: Kind) -> impl Iterator<Item = &Stored<Resource>> {
        let _ = kind;
        std::iter::empty()
    }

    /// What a resource owns.
    pub fn children(&self, owner: ResourceId) -> impl Iterator<Item = &Stored<Resource>> {
        let _ = owner;
        std::iter::empty()
    }

    /// What remains of a removed resource.
    pub fn tombstone(&self, id: ResourceId) -> Option<&Tombstone> {
        let _ = id;
        todo!()
    }
}
