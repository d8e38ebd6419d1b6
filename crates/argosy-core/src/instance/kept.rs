//! Which records of purchases that came to nothing are kept, and which are too many.

use super::{Failure, Instance, State};
use crate::id::ResourceId;
use crate::pool::Place;
use jiff::{SignedDuration, Timestamp};
use std::collections::BTreeMap;

/// How many purchases that came to nothing are kept for each pool and place: enough to see what a provider
/// says. Where capacity trickles, a pool tries for days, and what it learns is the same each time.
pub const FAILED_KEPT_MAX: usize = 5;

/// None is forgotten sooner: a listing that lags may still show what a record is about.
const FAILED_KEPT_FOR: SignedDuration = SignedDuration::from_mins(10);

/// The records of failed purchases to forget before their time, the oldest first.
///
/// Those of machines that were bought and never registered stay: they have a console, and say how often a
/// replacement came to nothing.
pub fn surplus<'a>(
    records: impl Iterator<Item = &'a Instance>,
    now: Timestamp,
) -> Vec<&'a Instance> {
    let mut places: BTreeMap<(ResourceId, Place), Vec<(Timestamp, &'a Instance)>> = BTreeMap::new();
    for record in records {
        if let State::Failed { at, failure, .. } = &record.state
            && failure.reason != Failure::REGISTRATION_TIMEOUT
        {
            let place = (record.pool, Place::of(&record.order));
            places.entry(place).or_default().push((*at, record));
        }
    }
    let mut over = Vec::new();
    for failed in places.values_mut() {
        failed.sort_unstable_by_key(|(at, record)| (*at, &record.id));
        over.extend(failed.iter().take(failed.len().saturating_sub(FAILED_KEPT_MAX)));
    }
    over.retain(|(at, _)| FAILED_KEPT_FOR <= now.duration_since(*at));
    over.sort_unstable_by_key(|(at, record)| (*at, &record.id));
    over.into_iter().map(|(_, record)| record).collect()
}

#[cfg(test)]
mod tests;
