//! How much of a span the leader listened: absence is held against a machine only for that long.
//!
//! What a newcomer gets wrong: a timeout that counts from a stored time counts the outage of the control plane, too.

use jiff::{SignedDuration, Timestamp};

/// How many spans without listening are remembered. Beyond them the oldest counts as listened again: whoever waits
/// that long has had time enough since.
const AWAY_MAX: usize = 64;

/// When the process that leads listened, since it began to lead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listened {
    /// When it began to lead.
    began: Timestamp,
    /// From when on it counts what began before that.
    counts_from: Timestamp,
    /// When it did not, in order.
    away: Vec<(Timestamp, Timestamp)>,
    /// Since when it does not.
    away_since: Option<Timestamp>,
}

impl Listened {
    /// Begins to lead. What began before that is not counted for `grace` yet: who called while nobody was there
    /// calls again.
    pub fn new(now: Timestamp, grace: SignedDuration) -> Self {
        let counts_from = now.saturating_add(grace).unwrap_or(Timestamp::MAX);
        Self { began: now, counts_from, away: Vec::new(), away_since: None }
    }

    /// Notes whether silence is excused now.
    pub fn note(&mut self, excused: bool, now: Timestamp) {
        match (self.away_since, excused) {
            (None, true) => self.away_since = Some(now),
            (Some(from), false) => {
                self.away_since = None;
                if AWAY_MAX <= self.away.len() {
                    self.away.remove(0);
                }
                self.away.push((from, now));
            }
            (None, false) | (Some(_), true) => {}
        }
    }

    /// How much of the time since then it listened.
    pub fn time(&self, since: Timestamp, now: Timestamp) -> SignedDuration {
        let from = self.first(since);
        let overlap = |a: Timestamp, b: Timestamp| {
            b.min(now).duration_since(a.max(from)).max(SignedDuration::ZERO)
        };
        let open = self.away_since.map(|began| (began, now));
        let away = self.away.iter().copied().chain(open);
        let away = away.map(|(began, ended)| overlap(began, ended));
        let away = away.fold(SignedDuration::ZERO, SignedDuration::saturating_add);
        overlap(from, now).saturating_sub(away).max(SignedDuration::ZERO)
    }

    /// From when a wait that began then is to be counted, so that only time in which it listened counts: never
    /// before it began, and after `now` while the grace lasts.
    pub fn from(&self, since: Timestamp, now: Timestamp) -> Timestamp {
        let first = self.first(since);
        if now < first {
            return first;
        }
        now.checked_sub(self.time(since, now)).unwrap_or(first)
    }

    fn first(&self, since: Timestamp) -> Timestamp {
        if since < self.began { self.counts_from } else { since }
    }
}

#[cfg(test)]
mod tests;
