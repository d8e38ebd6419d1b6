//! What is going to happen, by time; at the same time, in the order in which it was decided.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::time::Duration;

/// Things to come. Times are since the beginning of the world.
pub(crate) struct Heap<E> {
    entries: BinaryHeap<Entry<E>>,
    pushed: u64,
}

struct Entry<E> {
    at: Duration,
    order: u64,
    event: E,
}

impl<E> Default for Heap<E> {
    fn default() -> Self {
        Self { entries: BinaryHeap::new(), pushed: 0 }
    }
}

impl<E> Heap<E> {
    /// This is going to happen then.
    pub(crate) fn push(&mut self, at: Duration, event: E) {
        self.pushed += 1;
        self.entries.push(Entry { at, order: self.pushed, event });
    }

    /// When the next thing happens.
    pub(crate) fn next_at(&self) -> Option<Duration> {
        self.entries.peek().map(|entry| entry.at)
    }

    /// Takes the next thing whose time has come.
    pub(crate) fn due(&mut self, now: Duration) -> Option<E> {
        if now < self.next_at()? {
            return None;
        }
        self.entries.pop().map(|entry| entry.event)
    }
}

impl<E> PartialEq for Entry<E> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<E> Eq for Entry<E> {}

impl<E> PartialOrd for Entry<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for Entry<E> {
    // The other way round: the heap has the greatest first.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.order).cmp(&(self.at, self.order))
    }
}
