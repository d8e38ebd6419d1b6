//! When many fail at once, stop: the brakes on what we do by ourselves. Recovery is never braked.
//!
//! What a newcomer gets wrong: a breaker keeps no list of what it stopped. When it lets go, the present
//! is judged anew, and what was true three days ago is forgotten.

use crate::id::ResourceId;
use crate::node::Node;
use crate::node::settings::BreakerSettings;
use crate::plant::{self, Bug};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use std::fmt;

/// What a brake is for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(tag = "scope", rename_all = "lowercase")]
pub enum Scope {
    /// Everything.
    Fleet,
    /// One zone of a provider.
    Zone {
        /// The zone, with its provider and region before it.
        zone: String,
    },
    /// One pool.
    Pool {
        /// Whose.
        tenant: String,
        /// Which; empty for nodes without a pool.
        pool: String,
    },
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scope::Fleet => f.write_str("fleet"),
            Scope::Zone { zone } => write!(f, "zone/{zone}"),
            Scope::Pool { tenant, pool } => write!(f, "pool/{tenant}/{pool}"),
        }
    }
}

/// What a brake is for, of one node, without a copy of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Area<'a> {
    /// Everything.
    Fleet,
    /// Provider, region and zone.
    Zone(&'a str, &'a str, &'a str),
    /// Tenant and pool.
    Pool(&'a str, &'a str),
}

impl<'a> Area<'a> {
    /// Where a node counts: in its pool, in its zone if it says which, and in the fleet.
    pub fn of(node: &'a Node) -> impl Iterator<Item = Area<'a>> {
        let pool = Area::Pool(&node.tenant, node.pool.as_deref().unwrap_or_default());
        let at = &node.place;
        let zone = Area::Zone(&at.provider, &at.region, &at.zone);
        let zone = (!at.zone.is_empty()).then_some(zone);
        [Some(pool), zone, Some(Area::Fleet)].into_iter().flatten()
    }

    /// The same, to be kept.
    pub fn scope(self) -> Scope {
        match self {
            Area::Fleet => Scope::Fleet,
            Area::Zone(provider, region, zone) => {
                Scope::Zone { zone: format!("{provider}/{region}/{zone}") }
            }
            Area::Pool(tenant, pool) => {
                Scope::Pool { tenant: tenant.to_owned(), pool: pool.to_owned() }
            }
        }
    }
}

impl fmt::Display for Area<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Area::Fleet => f.write_str("fleet"),
            Area::Zone(_, _, zone) => write!(f, "zone {zone}"),
            Area::Pool(_, "") => f.write_str("nodes without a pool"),
            Area::Pool(_, pool) => write!(f, "pool {pool}"),
        }
    }
}

/// A breaker that is not closed, as it is stored. A closed one has no document, or one that says by
/// whom it was closed until that no longer matters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Breaker {
    /// Where it stops us.
    pub scope: Scope,
    /// Since when.
    pub opened_at: Timestamp,
    /// Why, with the numbers.
    pub reason: String,
    /// When the last of the nodes that opened it, or kept it open, turned bad.
    pub last_bad_at: Timestamp,
    /// While half open: how many actions may be taken, and how many were. `None` while open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub half_open: Option<HalfOpen>,
    /// Closed by hand: it stops nothing, and only what turns bad from then on opens it again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed: Option<Closed>,
}

/// How far a half-open breaker is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HalfOpen {
    /// Since when this step lasts.
    pub since: Timestamp,
    /// How many actions this step allows: 1, 2, 4, …
    pub allowed: u32,
    /// How many were taken.
    pub taken: u32,
}

/// Who closed a breaker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Closed {
    /// Who.
    pub by: String,
    /// Why.
    pub reason: String,
    /// When.
    pub at: Timestamp,
}

/// What a breaker is judged by: the nodes of its area that are not warming up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// How many nodes there are, warming up or not.
    pub nodes: usize,
    /// How many are not warming up.
    pub total: usize,
    /// How many of those turned bad lately, as `counts` says.
    pub bad: usize,
    /// When one of them last turned bad.
    pub last_bad_at: Option<Timestamp>,
}

impl Breaker {
    /// One of which only the scope is said: a key to ask by.
    pub fn unknown(scope: Scope) -> Self {
        let (opened_at, last_bad_at) = (Timestamp::UNIX_EPOCH, Timestamp::UNIX_EPOCH);
        let (reason, half_open, closed) = (String::new(), None, None);
        Breaker { scope, opened_at, reason, last_bad_at, half_open, closed }
    }

    /// How many more actions it lets pass now; `None` if it does not care.
    pub fn left(&self) -> Option<u32> {
        match (&self.closed, &self.half_open) {
            (Some(_), _) => None,
            (None, Some(step)) => Some(step.allowed.saturating_sub(step.taken)),
            (None, None) => Some(0),
        }
    }

    /// Why nothing more is begun there now although it is half open; `None` while something may be, or if it is not.
    pub fn spent(&self) -> Option<String> {
        let step = self.half_open.filter(|_| self.left() == Some(0))?;
        let HalfOpen { allowed, taken, .. } = step;
        let scope = &self.scope;
        Some(format!(
            "the breaker of {scope} is half open, and {taken} of {allowed} actions were taken"
        ))
    }

    /// Counts an action that it let pass.
    pub fn draw(&mut self) {
        if let Some(step) = self.half_open.as_mut().filter(|_| self.closed.is_none()) {
            step.taken = step.taken.saturating_add(1);
        }
    }

    /// Whether it is closed by hand.
    pub fn is_closed(&self) -> bool {
        self.closed.is_some()
    }

    /// The time from which on it counts what turns bad.
    fn counts_from(&self) -> Option<Timestamp> {
        self.closed.as_ref().map(|closed| closed.at).or(self.half_open.map(|step| step.since))
    }
}

/// Whether a node that turned bad then counts: it was lately, and after whatever made the breaker
/// forgive what was before.
pub fn counts(
    breaker: Option<&Breaker>,
    turned_bad_at: Timestamp,
    settings: &BreakerSettings,
    now: Timestamp,
) -> bool {
    let forgiven = breaker.and_then(Breaker::counts_from).is_some_and(|from| turned_bad_at <= from);
    !forgiven && !passed(turned_bad_at, settings.window, now)
}

/// A breaker as it should be now; `None` if it is closed.
///
/// Opens when too many turn bad at once. Half open when it was calm for long enough: then one action,
/// two, four, each step as long as it looks back. Closes when a step ends with actions to spare: then
/// it is not what holds us. Opens again when too many turn bad since the step began.
pub fn turn(
    breaker: Option<&Breaker>,
    area: Area<'_>,
    counts: Counts,
    settings: &BreakerSettings,
    now: Timestamp,
) -> Option<Breaker> {
    if let Some(reason) = trips(area, counts, settings) {
        // Of one that is open already, the first reason and time are what people want to know.
        let open =
            breaker.filter(|breaker| breaker.left() == Some(0) && breaker.half_open.is_none());
        return Some(Breaker {
            scope: area.scope(),
            opened_at: open.map_or(now, |open| open.opened_at),
            reason: open.map_or(reason, |open| open.reason.clone()),
            // Not in the future: after the clock was set back, calm would be an hour away.
            last_bad_at: counts.last_bad_at.map_or(now, |at| at.min(now)),
            half_open: None,
            closed: None,
        });
    }
    let mut next = breaker?.clone();
    if counts.nodes == 0 {
        return None;
    }
    if let Some(closed) = &next.closed {
        return (!passed(closed.at, settings.window, now)).then_some(next);
    }
    // A single node that turns bad now and then does not disturb the calm: in a large fleet there is
    // always one, and the breaker would never let go.
    next.last_bad_at = next.last_bad_at.min(now);
    match next.half_open {
        None if plant::has(Bug::BreakerReplays) && passed(next.last_bad_at, settings.calm, now) => {
            return None;
        }
        None if passed(next.last_bad_at, settings.calm, now) => {
            next.half_open = Some(HalfOpen { since: now, allowed: 1, taken: 0 });
        }
        None => {}
        Some(step) if !passed(step.since, settings.window, now) => {}
        Some(step) if step.taken < step.allowed => return None,
        Some(step) => {
            let allowed = step.allowed.saturating_mul(2);
            next.half_open = Some(HalfOpen { since: now, allowed, taken: 0 });
        }
    }
    Some(next)
}

/// When `turn` has another answer although nothing changed.
pub fn turns_at(breaker: &Breaker, settings: &BreakerSettings) -> Timestamp {
    match (&breaker.closed, &breaker.half_open) {
        (Some(closed), _) => later(closed.at, settings.window),
        (None, Some(step)) => later(step.since, settings.window),
        (None, None) => later(breaker.last_bad_at, settings.calm),
    }
}

fn trips(area: Area<'_>, counts: Counts, settings: &BreakerSettings) -> Option<String> {
    let Counts { total, bad, .. } = counts;
    let at_least = usize::try_from(settings.at_least).unwrap_or(usize::MAX);
    #[expect(clippy::cast_precision_loss, reason = "a fleet has fewer nodes than 2^52")]
    let many = settings.percent * (total as f64) < (bad as f64) * 100.0;
    (many && 0 < bad && at_least <= bad).then(|| {
        let (window_s, percent) = (settings.window.as_secs(), settings.percent);
        format!(
            "{area}: {bad} of {total} nodes turned bad within {window_s} s, more than {percent} %"
        )
    })
}

/// Whether so much time lies between the two. If the clock was set back, what seems to be in the
/// future was long ago.
pub(crate) fn passed(at: Timestamp, time: SignedDuration, now: Timestamp) -> bool {
    time <= now.duration_since(at).abs()
}

pub(crate) fn later(at: Timestamp, time: SignedDuration) -> Timestamp {
    at.checked_add(time).unwrap_or(Timestamp::MAX)
}

/// Somebody stopped all automatic action, for everything or for one pool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pause {
    /// Whose nodes.
    pub tenant: String,
    /// Only this pool, by the name that nodes carry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// That pool, if it is a declared one: another one that is given its name later is not paused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool_id: Option<ResourceId>,
    /// Who.
    pub by: String,
    /// Why.
    pub reason: String,
    /// When.
    pub at: Timestamp,
}

impl Pause {
    /// Whether it is for this pool, of which a name and, if it is declared, the id are known.
    pub fn is_of(&self, tenant: &str, name: &str, id: Option<ResourceId>) -> bool {
        let by_name = || self.pool.as_deref() == Some(name);
        let same = match (self.pool_id, id) {
            (Some(paused), Some(id)) => paused == id,
            // Nodes that say a name need no declared pool; and pauses were kept by name alone.
            (Some(_), None) | (None, _) => by_name(),
        };
        self.tenant == tenant && self.pool.is_some() && same
    }

    /// Whether it stops us in this pool: it is for it, or for everything.
    pub fn stops(&self, tenant: &str, name: &str, id: Option<ResourceId>) -> bool {
        self.tenant == tenant && self.pool.is_none() || self.is_of(tenant, name, id)
    }

    /// Whether it is for this node.
    pub fn covers(&self, node: &Node) -> bool {
        self.tenant == node.tenant
            && self.pool.as_ref().is_none_or(|pool| node.pool.as_ref() == Some(pool))
    }
}
