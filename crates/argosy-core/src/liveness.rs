//! Who went silent, and whether to believe it.
//!
//! Decided over the whole fleet at once: while nobody at all is heard, the silence may be ours, for a while.
//! One node that is heard shows that we listen, and the silence of the others is theirs, tenant by tenant and
//! zone by zone. All times are spans on our own monotonic clock: no wall clock, and never a node's.
//!
//! What a newcomer gets wrong: being silent and being acted on are two things. A node that is marked
//! `Unreachable` is shown as such; whether anything is done about it is `remedy`'s to say, much later.

mod listened;

pub use listened::Listened;

use crate::node::settings::PoolSettings;
use crate::node::{Liveness, NodeId};
use crate::plant::{self, Bug};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use std::fmt;

/// What is known of one node's signs of life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pulse<'a> {
    /// Which.
    pub node: &'a NodeId,
    /// What we say of it so far.
    pub liveness: Liveness,
    /// How long ago it was last heard by us; `None` if not since we began to listen.
    pub quiet_for: Option<SignedDuration>,
    /// How long it may be silent before it is `Suspect`.
    pub suspect_after: SignedDuration,
    /// How long before it is `Unreachable`.
    pub unreachable_after: SignedDuration,
}

/// How long we have been listening: since start, failover, waking up, or the end of an isolation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listening {
    /// For how long.
    pub listening_for: SignedDuration,
    /// How long nodes that were not heard since get to come back.
    pub amnesty: SignedDuration,
    /// How many nodes there are besides those that are looked at: marked `Fresh`, and heard in time
    /// (`is_well`). Most of a fleet, and all there is to know of them.
    pub well: usize,
    /// How long ago anybody at all was last heard, of any tenant and any zone.
    pub deaf_for: SignedDuration,
}

impl Pulse<'_> {
    /// Whether nothing is to be said about the node: it may be counted in `Listening::well`.
    pub fn is_well(&self) -> bool {
        self.liveness == Liveness::Fresh
            && self.quiet_for.is_some_and(|quiet| quiet < self.suspect_after)
    }
}

/// What to write down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sweep {
    /// Nodes whose liveness changes, and to what. Recovery (`Fresh`) is never held back.
    pub marks: Vec<(NodeId, Liveness)>,
    /// Set if nothing may be done about silence now; then nobody is marked `Unreachable` either.
    pub excuse: Option<Excuse>,
    /// Whether anybody is heard: an isolation that ended although nobody is has lasted too long to be
    /// believed.
    pub heard: bool,
}

/// Why silence is not held against anybody.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "excuse", rename_all = "lowercase")]
pub enum Excuse {
    /// Nobody is heard, of no tenant and no zone: we are the ones who are cut off, as far as it can be told.
    Isolation {
        /// How many are silent.
        silent: usize,
        /// Of how many.
        total: usize,
    },
    /// We have not listened for long, and nodes are still coming back.
    Amnesty {
        /// How many were not heard yet.
        missing: usize,
        /// Of how many.
        total: usize,
    },
}

impl Excuse {
    /// One word: `isolation` or `amnesty`.
    pub const fn word(self) -> &'static str {
        match self {
            Excuse::Isolation { .. } => "isolation",
            Excuse::Amnesty { .. } => "amnesty",
        }
    }
}

impl fmt::Display for Excuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // Without numbers: they would be those of other tenants.
            Excuse::Isolation { .. } => f.write_str(
                "no node is heard: the control plane is likely cut off, and nothing is done about silence \
                 for now",
            ),
            Excuse::Amnesty { missing, total } => write!(
                f,
                "the control plane began to listen a short while ago, and {missing} of {total} nodes \
                 were not heard yet: silence is held against nobody"
            ),
        }
    }
}

/// What the process that listens to the fleet makes of its silence, as it is stored when it changes:
/// so that every process can say it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outlook {
    /// Since when.
    pub since: Timestamp,
    /// Why nothing is done about silence.
    #[serde(flatten)]
    pub excuse: Excuse,
}

/// That somebody led while something counted on it: the drains of machines that are to go. Written once a minute for as
/// long as there are any, so that the next who leads knows for how long nobody did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attendance {
    /// Up to when.
    pub until: Timestamp,
}

/// How often `Attendance` is written.
pub const ATTENDED_EVERY: SignedDuration = SignedDuration::from_secs(60);

/// Who has not said that he leads for so long did not: one that is late, and the time until another takes over.
const ATTENDED_LATE: SignedDuration = SignedDuration::from_secs(150);

impl Attendance {
    /// For how long nobody led; `None` if somebody does.
    pub fn away(&self, now: Timestamp) -> Option<SignedDuration> {
        Some(now.duration_since(self.until)).filter(|time| ATTENDED_LATE <= *time)
    }
}

/// Whom a process heard that does not listen for the whole fleet, told to the one that does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heard {
    /// Which process.
    pub process: String,
    /// The nodes it heard since it last said so; how many milliseconds ago, for clocks of two processes
    /// have nothing else in common; and whether on a stream.
    pub nodes: Vec<(NodeId, u32, bool)>,
    /// Those of whom it had a complete health report, and how many milliseconds ago.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reported: Vec<(NodeId, u32)>,
}

/// How long a node may be silent: before it is `Suspect`, and before it is `Unreachable`.
///
/// As the settings say, but never less than two and three of the intervals at which it was told to be
/// heard: those of nodes that call us are longer than those on a stream, and in a large fleet all are.
pub fn limits(settings: &PoolSettings, every: SignedDuration) -> (SignedDuration, SignedDuration) {
    let times = |count: i32| every.checked_mul(count).unwrap_or(SignedDuration::MAX);
    let late = times(2).saturating_add(SignedDuration::from_secs(5));
    (settings.suspect_after.max(late), settings.unreachable_after.max(times(3)))
}

/// How long complete health reports may be missing: three rounds of checks, and a bit for a slow one.
pub fn reports_late(health_every: SignedDuration) -> SignedDuration {
    // Agents make no more rounds than that, whatever they are told.
    let every = health_every.max(SignedDuration::from_secs(5));
    let rounds = every.checked_mul(3).unwrap_or(SignedDuration::MAX);
    rounds.saturating_add(SignedDuration::from_secs(15))
}

/// How many times as long as the amnesty an isolation may last, and the amnesty itself because nodes are
/// still coming back.
///
/// Once and a fleet whose nodes return slowly is taken for lost; without end and a zone that died while
/// we were away is never noticed. Breakers and budgets hold after it as ever.
const AMNESTY_STRETCH: i32 = 4;

/// More than one in so many nodes missing makes the amnesty longer: 5 %.
const MISSING_SHARE: usize = 20;

/// Nodes that have been lost for so long are not part of the fleet whose silence is judged: a rack that
/// was switched off last week must not make each further silence look like our own isolation.
const LOST_LONG_AGO: SignedDuration = SignedDuration::from_hours(1);

/// Looks at the whole fleet.
///
/// Guarantees: nobody is marked `Unreachable` while there is an excuse; nobody is marked `Fresh` who
/// was not heard, and everybody who was is; the longer a node is silent the worse its mark.
pub fn sweep(fleet: &[Pulse<'_>], listening: Listening) -> Sweep {
    let amnesty = amnesty(fleet, listening);
    let isolation = isolation(fleet, listening, amnesty.is_some());
    let mark = |pulse: &Pulse<'_>| {
        let next = match silence(pulse, listening, amnesty.is_some()) {
            Some(quiet) if quiet < pulse.suspect_after => match pulse.quiet_for {
                Some(_) => Liveness::Fresh,
                None => pulse.liveness,
            },
            // Whose fault it is can be left open; that it was not heard is true all the same.
            Some(_) if isolation.is_some() => pulse.liveness.max(Liveness::Suspect),
            Some(quiet) if quiet < pulse.unreachable_after => Liveness::Suspect,
            Some(_) if amnesty.is_some() => pulse.liveness.max(Liveness::Suspect),
            Some(_) => Liveness::Unreachable,
            None => pulse.liveness,
        };
        (next != pulse.liveness).then(|| (pulse.node.clone(), next))
    };
    Sweep {
        marks: fleet.iter().filter_map(mark).collect(),
        excuse: isolation.or(amnesty),
        heard: is_heard(fleet, listening),
    }
}

/// Whether anybody was heard, anywhere, so lately that we listen: within the time after which the first of
/// those who are silent is late.
fn is_heard(fleet: &[Pulse<'_>], listening: Listening) -> bool {
    fleet.iter().all(|pulse| listening.deaf_for < pulse.suspect_after)
}

/// How long a node has been silent, as far as it counts; `None` while it may still come back.
fn silence(pulse: &Pulse<'_>, listening: Listening, amnesty: bool) -> Option<SignedDuration> {
    match pulse.quiet_for {
        None if amnesty => None,
        None => Some(listening.listening_for),
        quiet => quiet,
    }
}

fn amnesty(fleet: &[Pulse<'_>], listening: Listening) -> Option<Excuse> {
    let Listening { listening_for, amnesty, well, .. } = listening;
    let missing =
        |pulse: &&Pulse<'_>| pulse.quiet_for.is_none() && pulse.liveness != Liveness::Unreachable;
    let (missing, total) = (fleet.iter().filter(missing).count(), fleet.len() + well);
    let longest = amnesty.checked_mul(AMNESTY_STRETCH).unwrap_or(SignedDuration::MAX);
    let many = total < missing.saturating_mul(MISSING_SHARE);
    (listening_for < amnesty || (many && listening_for < longest))
        .then_some(Excuse::Amnesty { missing, total })
}

fn isolation(fleet: &[Pulse<'_>], listening: Listening, amnesty: bool) -> Option<Excuse> {
    let long_gone = |pulse: &Pulse<'_>| {
        pulse.liveness == Liveness::Unreachable
            && pulse.quiet_for.is_none_or(|quiet| LOST_LONG_AGO <= quiet)
    };
    let (mut silent, mut total) = (0, listening.well);
    for pulse in fleet.iter().filter(|pulse| !long_gone(pulse)) {
        total += 1;
        let quiet = silence(pulse, listening, amnesty);
        silent += usize::from(quiet.is_some_and(|quiet| pulse.suspect_after <= quiet));
    }
    if plant::has(Bug::MassSilence) || is_heard(fleet, listening) {
        return None;
    }
    let longest = listening.amnesty.checked_mul(AMNESTY_STRETCH).unwrap_or(SignedDuration::MAX);
    (2 <= silent && total < 2 * silent && listening.deaf_for < longest)
        .then_some(Excuse::Isolation { silent, total })
}

#[cfg(test)]
mod tests;
