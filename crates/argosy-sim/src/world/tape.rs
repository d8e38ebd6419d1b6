//! What is written along while a world runs: the digest of everything, and the story if somebody wants it.

use sha2::{Digest, Sha256};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// The longest story. A seed that fails is told from its end, so the beginning is what may be missing.
const STORY_MAX: usize = 200_000;

/// Locks what nothing can leave half changed.
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The tape. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Tape(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    /// Rings when there is something for the world to look at.
    bell: Notify,
}

struct State {
    hash: Sha256,
    events: u64,
    story: Option<Vec<Line>>,
    /// When something last happened that may have consequences, on the timer.
    stirred_at: Instant,
    /// Calls to the disk and to clouds that are under way.
    calls: u64,
}

/// One line of a story.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Line {
    /// When, since the beginning.
    pub(crate) at: Duration,
    /// What.
    pub(crate) text: String,
}

/// A call that is under way for as long as this is kept.
pub(crate) struct Call(Tape);

impl Drop for Call {
    fn drop(&mut self) {
        self.0.lock().calls -= 1;
    }
}

impl Tape {
    pub(crate) fn new(with_story: bool) -> Self {
        let state = State {
            hash: Sha256::new(),
            events: 0,
            story: with_story.then(Vec::new),
            stirred_at: timer(),
            calls: 0,
        };
        Self(Arc::new(Shared { state: Mutex::new(state), bell: Notify::new() }))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.0.state)
    }

    /// Something happened: its parts are part of the digest.
    pub(crate) fn note<'a>(&self, parts: impl IntoIterator<Item = &'a [u8]>) {
        let mut state = self.lock();
        state.events += 1;
        for part in parts {
            // Led by its length: otherwise a letter could move from one part to the next.
            state.hash.update((part.len() as u64).to_be_bytes());
            state.hash.update(part);
        }
    }

    /// A line of the story; it is made only if somebody wants one.
    pub(crate) fn tell(&self, at: Duration, text: impl FnOnce() -> String) {
        let mut state = self.lock();
        if let Some(story) = &mut state.story {
            if STORY_MAX <= story.len() {
                story.drain(..STORY_MAX / 2);
            }
            let text = text();
            story.push(Line { at, text });
        }
    }

    /// Something happened that may have consequences.
    pub(crate) fn stir(&self) {
        self.lock().stirred_at = timer();
    }

    /// For how long nothing has happened, on the timer, and whether calls are under way.
    pub(crate) fn still_for(&self) -> (Duration, bool) {
        let state = self.lock();
        (timer().saturating_duration_since(state.stirred_at), 0 < state.calls)
    }

    /// A call begins.
    pub(crate) fn call(&self) -> Call {
        self.lock().calls += 1;
        Call(self.clone())
    }

    /// Has the world look.
    pub(crate) fn ring(&self) {
        self.0.bell.notify_one();
    }

    /// Waits until somebody rings.
    pub(crate) async fn rung(&self) {
        self.0.bell.notified().await;
    }

    /// How many things happened.
    pub(crate) fn events(&self) -> u64 {
        self.lock().events
    }

    /// The digest so far, in hex.
    pub(crate) fn digest(&self) -> String {
        let hash = self.lock().hash.clone().finalize();
        hash.iter().fold(String::with_capacity(64), |mut hex, byte| {
            for digit in [byte >> 4, byte & 15] {
                hex.extend(char::from_digit(u32::from(digit), 16));
            }
            hex
        })
    }

    /// Takes the story.
    pub(crate) fn story(&self) -> Vec<Line> {
        self.lock().story.as_mut().map(std::mem::take).unwrap_or_default()
    }
}

/// The monotonic clock of everything in a world.
pub(crate) fn timer() -> Instant {
    #[expect(clippy::disallowed_methods, reason = "tokio's timer is paused: it is the world's own")]
    Instant::now()
}
