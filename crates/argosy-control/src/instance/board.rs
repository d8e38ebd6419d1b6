//! What the loops tell people beside the documents: in memory, and only in the process that leads.

use jiff::Timestamp;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// The board. Cheap to clone; all clones are one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Board(Arc<Mutex<BTreeMap<String, Timestamp>>>);

impl Board {
    /// A provider was listed whole.
    pub(crate) fn note_listed(&self, provider: &str, at: Timestamp) {
        let mut listed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        listed.insert(provider.to_owned(), at);
    }

    /// When each provider was last listed whole.
    pub(super) fn listed(&self) -> BTreeMap<String, Timestamp> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
