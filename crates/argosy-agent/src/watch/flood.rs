//! A flood of equal signals becomes one at once, and then one a window with first, last and count.
//!
//! What a newcomer gets wrong: equal means the same kind, code and place. A second code in the middle
//! of a storm is news and goes out at once.

use crate::signal::{Signal, SignalKind};
use jiff::{SignedDuration, Timestamp};
use std::collections::BTreeMap;

/// How long repeats are gathered.
///
/// Shorter, and a storm of a thousand faults a second is a stream of reports; longer, and the count
/// that people see is old.
pub const WINDOW: SignedDuration = SignedDuration::from_secs(30);

/// The most different signals that are kept apart.
///
/// Eight GPUs with a dozen codes each and the words of the host fit several times over. Beyond it a
/// machine writes garbage, and repeats of one kind are counted together.
pub const KEYS_MAX: usize = 256;

/// Gathers repeats.
#[derive(Clone, Debug)]
pub struct Flood {
    window: SignedDuration,
    held: BTreeMap<Key, Held>,
}

/// What makes two signals equal.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    kind: SignalKind,
    /// Its code or word; `None` where signals of one kind are counted together.
    code: Option<String>,
    place: Option<String>,
}

#[derive(Clone, Debug)]
struct Held {
    /// When what was gathered goes out.
    until: Timestamp,
    gathered: Option<Signal>,
}

impl Default for Flood {
    fn default() -> Self {
        Self::new(WINDOW)
    }
}

impl Flood {
    /// One that gathers for this long.
    pub fn new(window: SignedDuration) -> Self {
        Self { window, held: BTreeMap::new() }
    }

    /// Takes a signal in; gives it back if it is the first of its kind and should go out at once.
    pub fn on(&mut self, signal: Signal, now: Timestamp) -> Option<Signal> {
        let mut key = key(&signal);
        let is_crowded = !self.held.contains_key(&key)
            && KEYS_MAX <= self.held.keys().filter(|held| held.code.is_some()).count();
        if is_crowded {
            key = Key { kind: key.kind, code: None, place: None };
        }
        let Some(held) = self.held.get_mut(&key) else {
            let until = later(now, self.window);
            self.held.insert(key, Held { until, gathered: None });
            return Some(signal);
        };
        held.gathered = Some(match held.gathered.take() {
            Some(before) => joined(before, signal),
            None => signal,
        });
        None
    }

    /// What was gathered and is due, at most one signal for each key.
    ///
    /// A key that heard nothing for a whole window is forgotten: its next signal goes out at once.
    pub fn due(&mut self, now: Timestamp) -> Vec<Signal> {
        let mut due = Vec::new();
        let window = self.window;
        self.held.retain(|_, held| {
            // A clock that was set back must not hold signals for longer than a window.
            if now < held.until && held.until <= later(now, window) {
                return true;
            }
            held.until = later(now, window);
            let gathered = held.gathered.take();
            let goes_on = gathered.is_some();
            due.extend(gathered);
            goes_on
        });
        due
    }

    /// When something is due next; `None` if nothing is held.
    pub fn next_due(&self) -> Option<Timestamp> {
        self.held.values().map(|held| held.until).min()
    }

    /// All that was gathered, now: before the agent stops.
    pub fn finish(&mut self) -> Vec<Signal> {
        std::mem::take(&mut self.held).into_values().filter_map(|held| held.gathered).collect()
    }
}

fn later(now: Timestamp, by: SignedDuration) -> Timestamp {
    now.checked_add(by).unwrap_or(Timestamp::MAX)
}

fn key(signal: &Signal) -> Key {
    let metric = |name: &str| signal.metrics.get(name).cloned();
    // Corrected and uncorrected, this device and that one, are not repeats of each other.
    let code = ["xid_code", "sxid_code", "signal", "aer"].iter().find_map(|name| metric(name));
    let code = match (code, metric("severity")) {
        (Some(code), Some(severity)) => format!("{code} {severity}"),
        (code, severity) => code.or(severity).unwrap_or_default(),
    };
    let place = signal.gpu.as_ref().map(|gpu| gpu.uuid.clone());
    let place = place.or_else(|| ["pci", "switch", "device"].iter().find_map(|name| metric(name)));
    Key { kind: signal.kind, code: Some(code), place }
}

/// Two as one: the newer one's words, the older one's first time.
fn joined(before: Signal, signal: Signal) -> Signal {
    Signal {
        count: before.count.saturating_add(signal.count),
        first: before.first.min(signal.first),
        last: before.last.max(signal.last),
        recovery_action: signal.recovery_action.or(before.recovery_action),
        ..signal
    }
}

#[cfg(test)]
mod tests;
