//! What the loops tell people beside the documents: in memory, and only in the process that leads.

use argosy_core::autoscale::{Advice, History, Sample};
use argosy_core::id::ResourceId;
use jiff::Timestamp;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The board. Cheap to clone; all clones are one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Board(Arc<Mutex<Noted>>);

#[derive(Debug, Default)]
struct Noted {
    listed: BTreeMap<String, Timestamp>,
    pools: HashMap<ResourceId, Sized>,
}

/// What is known of one pool's size.
#[derive(Debug, Default)]
struct Sized {
    history: History,
    advice: Option<Advice>,
}

impl Board {
    /// A provider was listed whole.
    pub(crate) fn note_listed(&self, provider: &str, at: Timestamp) {
        self.lock().listed.insert(provider.to_owned(), at);
    }

    /// When each provider was last listed whole.
    pub(super) fn listed(&self) -> BTreeMap<String, Timestamp> {
        self.lock().listed.clone()
    }

    /// What was measured of a pool; as much is kept as a `History` has room for.
    pub(crate) fn note_sample(&self, pool: ResourceId, sample: Sample) {
        self.lock().pools.entry(pool).or_default().history.push(sample);
    }

    /// What was measured of a pool, oldest first.
    pub(crate) fn history(&self, pool: ResourceId) -> History {
        self.lock().pools.get(&pool).map(|known| known.history.clone()).unwrap_or_default()
    }

    /// What a pool's autoscaler says now; `None` if it has none.
    pub(crate) fn note_advice(&self, pool: ResourceId, advice: Option<Advice>) {
        self.lock().pools.entry(pool).or_default().advice = advice;
    }

    pub(super) fn advice(&self, pool: ResourceId) -> Option<Advice> {
        self.lock().pools.get(&pool).and_then(|known| known.advice.clone())
    }

    /// Forgets a pool that is gone.
    pub(crate) fn forget(&self, pool: ResourceId) {
        self.lock().pools.remove(&pool);
    }

    fn lock(&self) -> MutexGuard<'_, Noted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
