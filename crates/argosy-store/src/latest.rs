//! The latest revision, for everybody who waits for the next.
//!
//! What tokio's `watch` is, but for one thing: whoever began to wait first is woken first. `watch` wakes in an
//! order by chance, and then no two runs of a simulation are the same.

use crate::engine::Revision;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tokio::sync::Notify;

#[derive(Debug, Default)]
struct Shared {
    revision: AtomicU64,
    closed: AtomicBool,
    moved: Notify,
}

/// Where it is told. Dropping it tells everybody who waits that there is no next.
#[derive(Debug)]
pub(crate) struct Latest(Arc<Shared>);

/// Who waits for the next.
#[derive(Clone, Debug)]
pub struct Follower {
    shared: Arc<Shared>,
    seen: Revision,
}

/// There will be no next: the store has stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the store has stopped")]
pub struct Stopped;

impl Latest {
    pub(crate) fn new(revision: Revision) -> Self {
        let latest = Self(Arc::default());
        latest.set(revision);
        latest
    }

    pub(crate) fn get(&self) -> Revision {
        Revision(self.0.revision.load(Ordering::Acquire))
    }

    pub(crate) fn set(&self, revision: Revision) {
        self.0.revision.store(revision.0, Ordering::Release);
        self.0.moved.notify_waiters();
    }

    /// One who waits for what comes after the present.
    pub(crate) fn follow(&self) -> Follower {
        Follower { shared: self.0.clone(), seen: self.get() }
    }
}

impl Drop for Latest {
    fn drop(&mut self) {
        self.0.closed.store(true, Ordering::Release);
        self.0.moved.notify_waiters();
    }
}

impl Follower {
    /// Waits until there is one that was not seen yet. May be dropped at any await.
    ///
    /// # Errors
    /// There will be none.
    pub async fn changed(&mut self) -> Result<(), Stopped> {
        let seen = self.seen;
        self.wait_for(|revision| *revision != seen).await.map(|_| ())
    }

    /// Waits until the latest is as wanted; it counts as seen.
    ///
    /// # Errors
    /// It never will be.
    pub async fn wait_for(
        &mut self,
        wanted: impl Fn(&Revision) -> bool,
    ) -> Result<Revision, Stopped> {
        let shared = self.shared.clone();
        loop {
            let mut moved = std::pin::pin!(shared.moved.notified());
            // Before the revision is looked at, so that no news falls between the two.
            moved.as_mut().enable();
            let revision = Revision(shared.revision.load(Ordering::Acquire));
            if wanted(&revision) {
                self.seen = revision;
                return Ok(revision);
            }
            if shared.closed.load(Ordering::Acquire) {
                return Err(Stopped);
            }
            moved.await;
        }
    }

    /// Takes the latest for seen.
    pub fn mark_unchanged(&mut self) {
        self.seen = Revision(self.shared.revision.load(Ordering::Acquire));
    }
}

#[cfg(test)]
mod tests;
