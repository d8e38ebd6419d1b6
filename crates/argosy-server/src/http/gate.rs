//! The narrow door for reads that look at the whole fleet.
//!
//! Two hundred dashboards that list everything each second must not keep one heartbeat waiting: such
//! reads take at most half of the cores, a few more wait, and the rest are told to come back. Those who
//! ask for the same wait for one another and share what is made.
//!
//! What a newcomer gets wrong: a page is never given to somebody who may have written since it was read.
//! Either nothing was written since, or it was read after the request came.

use crate::problem::Fault;
use argosy_api::error;
use argosy_control::Revision;
use bytes::Bytes;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedMutexGuard, OwnedSemaphorePermit, Semaphore};

/// How many may wait for their turn. A turn is milliseconds, so a longer queue means that more is asked
/// than can be answered, and who waits at its end has given up before it gets there.
const WAITING_MAX: usize = 64;

/// How old a page may be that is given again: what nodes measure moves without a commit, and a second is
/// as often as anybody looks.
const AGE_MAX: Duration = Duration::from_secs(1);

/// How many bytes of pages are kept: twenty of the largest.
const KEPT_BYTES_MAX: usize = 64 * 1024 * 1024;

pub(super) struct Gate {
    at_work: Arc<Semaphore>,
    waiting: Semaphore,
    pages: Mutex<Pages>,
}

#[derive(Default)]
struct Pages {
    by_key: HashMap<String, Made>,
    bytes: usize,
    /// Pages that are being made, or waited for.
    asked: HashMap<String, Arc<tokio::sync::Mutex<()>>>,
}

/// A page, and when it was read.
pub(super) struct Made {
    pub(super) revision: Revision,
    /// On the monotonic clock, before it was read.
    pub(super) at: Duration,
    pub(super) body: Bytes,
}

/// The turn of one among those who ask for the same, or its place in the queue.
pub(super) struct Turn<'a> {
    gate: &'a Gate,
    key: String,
    asked: Arc<tokio::sync::Mutex<()>>,
    held: Option<OwnedMutexGuard<()>>,
}

impl Gate {
    /// A gate on a machine with so many cores.
    pub(super) fn new(cores: usize) -> Self {
        Self {
            at_work: Arc::new(Semaphore::new((cores / 2).max(1))),
            waiting: Semaphore::new(WAITING_MAX),
            pages: Mutex::default(),
        }
    }

    /// Waits for a place at work; it is taken until what is returned is dropped.
    ///
    /// # Errors
    /// 429, if too many wait already.
    pub(super) async fn enter(&self) -> Result<OwnedSemaphorePermit, Fault> {
        if let Ok(at_once) = self.at_work.clone().try_acquire_owned() {
            return Ok(at_once);
        }
        let too_many = || {
            let detail = "too many lists are being made at once";
            Fault::new(&error::TOO_MANY, detail)
        };
        let _waiting = self.waiting.try_acquire().map_err(|_| too_many())?;
        self.at_work.clone().acquire_owned().await.map_err(|_| too_many())
    }

    /// Waits until nobody makes the same page; who comes next waits in turn.
    pub(super) async fn turn(&self, key: &str) -> Turn<'_> {
        let asked = self.pages().asked.entry(key.to_owned()).or_default().clone();
        // Before it waits, so that it is forgotten if it gives up.
        let mut turn = Turn { gate: self, key: key.to_owned(), asked, held: None };
        turn.held = Some(turn.asked.clone().lock_owned().await);
        turn
    }

    /// A page that was made already, for somebody who asked then: one that is still true, or that was
    /// read since.
    pub(super) fn page(
        &self,
        key: &str,
        asked_at: Duration,
        revision: Revision,
        now: Duration,
    ) -> Option<Bytes> {
        let pages = self.pages();
        let made = pages.by_key.get(key)?;
        let fresh = now.saturating_sub(made.at) < AGE_MAX;
        let true_still = made.revision == revision || asked_at <= made.at;
        (fresh && true_still).then(|| made.body.clone())
    }

    /// Keeps a page for who asks for the same next.
    pub(super) fn keep(&self, key: String, made: Made) {
        let mut pages = self.pages();
        let now = made.at;
        let Pages { by_key, bytes, .. } = &mut *pages;
        by_key.retain(|known, old| {
            let kept = *known != key && now.saturating_sub(old.at) < AGE_MAX;
            *bytes -= if kept { 0 } else { old.body.len() };
            kept
        });
        if *bytes + made.body.len() <= KEPT_BYTES_MAX {
            *bytes += made.body.len();
            by_key.insert(key, made);
        }
    }

    fn pages(&self) -> MutexGuard<'_, Pages> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        drop(self.held.take());
        let mut pages = self.gate.pages();
        // The table's own, and this one.
        if Arc::strong_count(&self.asked) <= 2 {
            pages.asked.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests;
