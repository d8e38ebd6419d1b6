//! The narrow door for reads that look at the whole fleet.
//!
//! Two hundred dashboards that list everything each second must not keep one heartbeat waiting: such
//! reads take at most half of the cores, a few more wait, and the rest are told to come back. What was
//! made less than a second ago and is still true is given again.

use crate::problem::Fault;
use argosy_api::error;
use argosy_control::Revision;
use bytes::Bytes;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{Semaphore, SemaphorePermit};

/// How many may wait for their turn. A turn is milliseconds, so a longer queue means that more is asked
/// than can be answered, and who waits at its end has given up before it gets there.
const WAITING_MAX: usize = 64;

/// How old a page may be that is given again: what nodes measure moves without a commit, and a second is
/// as often as anybody looks.
const AGE_MAX: Duration = Duration::from_secs(1);

/// How many bytes of pages are kept: twenty of the largest.
const KEPT_BYTES_MAX: usize = 64 * 1024 * 1024;

pub(super) struct Gate {
    at_work: Semaphore,
    waiting: Semaphore,
    pages: Mutex<Pages>,
}

#[derive(Default)]
struct Pages {
    by_key: HashMap<String, Made>,
    bytes: usize,
}

/// A page, and when it was true.
pub(super) struct Made {
    pub(super) revision: Revision,
    pub(super) at: Duration,
    pub(super) body: Bytes,
}

impl Gate {
    /// A gate on a machine with so many cores.
    pub(super) fn new(cores: usize) -> Self {
        Self {
            at_work: Semaphore::new((cores / 2).max(1)),
            waiting: Semaphore::new(WAITING_MAX),
            pages: Mutex::default(),
        }
    }

    /// Waits for a turn; it lasts until what is returned is dropped.
    ///
    /// # Errors
    /// 429, if too many wait already.
    pub(super) async fn enter(&self) -> Result<SemaphorePermit<'_>, Fault> {
        if let Ok(at_once) = self.at_work.try_acquire() {
            return Ok(at_once);
        }
        let too_many = || {
            let detail = "too many lists are being made at once";
            Fault::new(&error::TOO_MANY, detail)
        };
        let _waiting = self.waiting.try_acquire().map_err(|_| too_many())?;
        self.at_work.acquire().await.map_err(|_| too_many())
    }

    /// A page that was just made, if it is still true.
    pub(super) fn page(&self, key: &str, revision: Revision, now: Duration) -> Option<Bytes> {
        let pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        let made = pages.by_key.get(key)?;
        let current = made.revision == revision && now.saturating_sub(made.at) < AGE_MAX;
        current.then(|| made.body.clone())
    }

    /// Keeps a page for who asks for the same next.
    pub(super) fn keep(&self, key: String, made: Made) {
        let mut pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        let now = made.at;
        let Pages { by_key, bytes } = &mut *pages;
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
}

#[cfg(test)]
mod tests;
