//! What is remembered of a pool between two looks: where buying failed, and how many machines in a row never
//! came up.

use super::{Backoff, BuyingPaused, PLACES_MAX, Place, PoolBook};
use crate::backoff::delay;
use crate::breaker::later;
use crate::id::ResourceId;
use crate::instance::Instance;
use crate::machine::{Order, Trouble};
use jiff::{SignedDuration, Timestamp};
use std::collections::BTreeMap;

/// How long a place is left alone after the first failure there; twice as long after each further one.
pub(super) const BACKOFF_FIRST: SignedDuration = SignedDuration::from_secs(2);
/// At most so long: nothing is given up for good by failing.
pub(super) const BACKOFF_MAX: SignedDuration = SignedDuration::from_mins(10);
/// So many machines in a row that never registered pause buying: the next one would not either.
pub(super) const STALE_MAX: u32 = 3;

impl PoolBook {
    /// Of a pool of which nothing is known yet.
    pub fn new(pool: ResourceId) -> Self {
        Self {
            pool,
            target: None,
            scaled: None,
            advice: None,
            decisions: Vec::new(),
            stale_in_a_row: 0,
            proven_at: None,
            paused: None,
            places: BTreeMap::new(),
            ordered: 0,
            vain: Vec::new(),
            update_failed: None,
            resumed_at: None,
            good: None,
            boot_s: None,
        }
    }
}

/// The book after a purchase that came to nothing: its place is left alone for a while.
///
/// `number` is the node it was to be. What may have worked (`Trouble::Unsure`) or says nothing of the place
/// (throttled, unreachable: the record itself is tried again) leaves the book as it is.
pub fn failed(
    book: &PoolBook,
    order: &Order,
    number: u32,
    trouble: &Trouble,
    now: Timestamp,
) -> PoolBook {
    match trouble {
        Trouble::Unsure(_)
        | Trouble::Throttled { .. }
        | Trouble::Unreachable(_)
        | Trouble::NotFound(_) => book.clone(),
        Trouble::Quota { .. }
        | Trouble::Capacity { .. }
        | Trouble::Credentials(_)
        | Trouble::Denied { .. }
        | Trouble::Invalid { .. }
        | Trouble::Unable(_) => held_against(book, order, number, (trouble, false), now),
    }
}

/// The book after something came to nothing at a place; `made` if there was a machine.
pub(super) fn held_against(
    book: &PoolBook,
    order: &Order,
    number: u32,
    (trouble, made): (&Trouble, bool),
    now: Timestamp,
) -> PoolBook {
    let mut book = book.clone();
    let key = Place::of(order).key();
    let before = book.places.get(&key);
    // Several purchases of one round fail together: that is one failure, and the first of them is named.
    let same_round = before.filter(|before| now < before.until);
    let backoff = match (same_round, before) {
        (Some(before), _) => Backoff {
            number: before.number.min(number),
            trouble: trouble.clone(),
            made: before.made || made,
            ..before.clone()
        },
        (None, before) => {
            let failures = before.map_or(0, |before| before.failures).saturating_add(1);
            let who = format!("{}/{key}", book.pool);
            let until = later(now, delay(&who, failures, BACKOFF_FIRST, BACKOFF_MAX));
            Backoff { failures, until, trouble: trouble.clone(), number, made }
        }
    };
    if !book.places.contains_key(&key) && PLACES_MAX <= book.places.len() {
        let soonest = book.places.iter().min_by_key(|(_, backoff)| backoff.until);
        if let Some(soonest) = soonest.map(|(key, _)| key.clone()) {
            book.places.remove(&soonest);
        }
    }
    book.places.insert(key, backoff);
    book
}

/// The book after a purchase that worked; `None` if that says nothing new of its place.
pub fn bought(book: &PoolBook, order: &Order) -> Option<PoolBook> {
    let key = Place::of(order).key();
    // Where machines are made and come to nothing, only one that does its work is news.
    let disproved = book.places.get(&key).is_some_and(|backoff| !backoff.made);
    let mut book = disproved.then(|| book.clone())?;
    book.places.remove(&key);
    Some(book)
}

/// The book after a machine registered; `None` if that says nothing new of the pool.
pub fn registered(book: &PoolBook, instance: &Instance, now: Timestamp) -> Option<PoolBook> {
    let proven_at = book.proven_at.max(Some(instance.ordered_at));
    let took = u32::try_from(now.duration_since(instance.ordered_at).as_secs()).unwrap_or(0);
    // The slowest of late; one that was quicker shortens it by a quarter of the difference.
    let boot_s = book
        .boot_s
        .map_or(took, |known| if known < took { took } else { known - (known - took) / 4 });
    let boot_s = Some(boot_s);
    let news = book.stale_in_a_row != 0 || (book.proven_at, book.boot_s) != (proven_at, boot_s);
    news.then(|| PoolBook { stale_in_a_row: 0, proven_at, boot_s, ..book.clone() })
}

/// The book after a person said that it may go on: what came to nothing before does not count.
pub fn resumed(book: &PoolBook, now: Timestamp) -> PoolBook {
    PoolBook {
        paused: None,
        stale_in_a_row: 0,
        update_failed: None,
        vain: Vec::new(),
        resumed_at: Some(now),
        ..book.clone()
    }
}

/// The book after a machine never registered: its place is left alone for a while, and after three in a row
/// nothing more is bought until the spec asks for other machines. One that was ordered before, or with, a machine
/// that did register does not count. `console` is what it wrote, of which the last line is shown.
pub(super) fn stale(
    book: &PoolBook,
    instance: &Instance,
    console: &str,
    made_from: &str,
    now: Timestamp,
) -> PoolBook {
    let last = console.lines().map(str::trim).rfind(|line| !line.is_empty());
    let said = last.map(|line| format!(" Its console ends with: {}", quotable_line(line)));
    let said = said.unwrap_or_default();
    let code = "REGISTRATION_TIMEOUT".to_owned();
    let message = format!("{} never registered.{said}", instance.id);
    let trouble = Trouble::Capacity { code, message: message.clone() };
    let mut book = held_against(book, &instance.order, instance.number, (&trouble, true), now);
    // Of a hundred that are ordered at once, three that never come are no sign that the next will not.
    if book.proven_at.is_some_and(|proven_at| instance.ordered_at <= proven_at) {
        return book;
    }
    book.stale_in_a_row = book.stale_in_a_row.saturating_add(1);
    if STALE_MAX <= book.stale_in_a_row && book.paused.is_none() {
        let row = book.stale_in_a_row;
        book.paused = Some(BuyingPaused {
            since: now,
            made_from: made_from.to_owned(),
            reason: REGISTRATION_UNHEALTHY.to_owned(),
            message: format!(
                "{row} machines in a row never registered, so no more are bought. The last was {message}"
            ),
        });
    }
    book
}

/// The reason of a pool whose machines do not register.
pub(super) const REGISTRATION_UNHEALTHY: &str = "RegistrationUnhealthy";

/// The most of a console line that is repeated.
const LINE_LEN_MAX: usize = 200;

fn quotable_line(line: &str) -> String {
    let start: String = line.chars().take(LINE_LEN_MAX).collect();
    start.escape_debug().to_string()
}

#[cfg(test)]
mod tests;
