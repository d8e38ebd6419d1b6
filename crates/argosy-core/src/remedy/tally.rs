//! How much of each budget is used, and what each breaker says: counted once over the fleet.

use super::{Fleet, Plan, Subject, turned_bad_at};
use crate::breaker::{Area, Breaker, Counts, Scope, counts, later, passed, turn, turns_at};
use crate::node::settings::{BreakerSettings, Budget, NodeSettings, PoolSettings};
use crate::node::{Duty, Node, NodeId};
use crate::pool::{BY, is_reserved};
use jiff::{SignedDuration, Timestamp};
use std::collections::HashMap;
use std::fmt::Write;

/// How much of one budget is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BudgetUse {
    /// Of what.
    pub scope: Scope,
    /// How many nodes are out of service by our own doing, or about to be.
    pub used: usize,
    /// How many may be.
    pub allowed: usize,
    /// How many nodes are out of service whoever did it, or about to be: what requests are judged by.
    pub out: usize,
    /// How many nodes there are that are not warming up.
    pub total: usize,
}

/// How many of so many nodes may be out of service by our own doing.
pub fn allowed(budget: &Budget, total: usize) -> usize {
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a fleet has fewer nodes than 2^52, and the percentage is clamped"
    )]
    let share = (budget.percent.clamp(0.0, 100.0) * (total as f64) / 100.0).floor() as usize;
    share.max(usize::try_from(budget.at_least).unwrap_or(usize::MAX))
}

/// How much of each budget is used: of every pool and zone, and of the fleet.
pub fn budgets(fleet: &Fleet<'_>, settings: &NodeSettings, now: Timestamp) -> Vec<BudgetUse> {
    let tallies = Tallies::count(fleet, settings, now).list.into_iter();
    let mut all: Vec<BudgetUse> = tallies
        .map(|tally| BudgetUse {
            scope: tally.area.scope(),
            used: tally.used,
            out: tally.out,
            allowed: tally.allowed(),
            total: tally.there,
        })
        .collect();
    all.sort_by(|a, b| a.scope.cmp(&b.scope));
    all
}

/// What is counted for one pool, one zone, or the fleet.
pub(super) struct Tally<'a> {
    pub(super) area: Area<'a>,
    budget: Budget,
    settings: BreakerSettings,
    counts: Counts,
    /// How many nodes are there and not warming up: what a budget is a part of. The breaker also counts those
    /// that were replaced lately.
    pub(super) there: usize,
    used: usize,
    /// How many nodes are out of service whoever did it, those among them that a person ended and nothing replaced.
    pub(super) out: usize,
    /// How many of those were ended: they are in no other sum.
    pub(super) vacant: usize,
    /// Who uses it: the first few.
    holders: Vec<&'a NodeId>,
    /// When a node was last taken out of service by our own doing.
    youngest: Option<Timestamp>,
    stored: Option<&'a Breaker>,
    breaker: Option<Breaker>,
}

impl<'a> Tally<'a> {
    fn new(area: Area<'a>, node: &Node, settings: &NodeSettings) -> Self {
        let fleet = &settings.fleet;
        let pool = settings.of_node(node);
        let (budget, settings) = match area {
            Area::Fleet => (fleet.budget, fleet.breaker),
            Area::Zone(..) => (fleet.zone_budget, fleet.zone_breaker),
            Area::Pool(..) => (pool.budget, pool.breaker),
        };
        let (counts, stored) = (Counts::default(), None);
        Self {
            area,
            budget,
            settings,
            counts,
            there: 0,
            used: 0,
            out: 0,
            vacant: 0,
            holders: Vec::new(),
            youngest: None,
            stored,
            breaker: None,
        }
    }

    /// How many nodes a request may leave out of service: what the budget allows of the nodes there were before
    /// people ended some, and always one.
    pub(super) fn allowed_on_request(&self) -> usize {
        allowed(&self.budget, self.there.saturating_add(self.vacant)).max(1)
    }

    /// Who uses the budget: ` (n0, n7 and 3 more)`.
    fn held_by(&self) -> String {
        let names: Vec<&str> = self.holders.iter().map(|node| node.as_str()).collect();
        match self.used.saturating_sub(names.len()) {
            _ if names.is_empty() => String::new(),
            0 => format!(" ({})", names.join(", ")),
            more => format!(" ({} and {more} more)", names.join(", ")),
        }
    }

    fn allowed(&self) -> usize {
        allowed(&self.budget, self.there)
    }

    fn has_allowance(&self) -> bool {
        self.breaker.as_ref().and_then(Breaker::left) != Some(0)
    }

    /// When the next node may be taken out of service; `None` if it may now.
    fn rate_ends(&self, now: Timestamp) -> Option<Timestamp> {
        let youngest = self.youngest.filter(|at| !passed(*at, self.budget.every, now))?;
        Some(later(youngest, self.budget.every))
    }
}

/// What keeps a node from being acted on, and where.
#[derive(Clone, Copy)]
pub(super) struct Guard {
    pub(super) word: &'static str,
    /// When it lets go by itself, if that can be told.
    pub(super) until: Option<Timestamp>,
    place: usize,
}

/// Every tally, and which of them each node counts in.
pub(super) struct Tallies<'a> {
    list: Vec<Tally<'a>>,
    /// Three for each node, in its order; `NOWHERE` for a node that does not say its zone.
    places: Vec<[usize; 3]>,
    /// Nodes that people ended and nothing replaced yet, in each place that they are counted in.
    vacant: Vec<(usize, usize)>,
    /// Breakers of pools and zones that have no nodes any more.
    deserted: Vec<Breaker>,
}

/// How long the place of a node that a person ended is kept for one that replaces it. Where nothing came in a
/// day nothing will, and the fleet is smaller; a shorter time would let a loop end a pool node by node.
pub(crate) const VACANT_FOR: SignedDuration = SignedDuration::from_hours(24);

/// When a person ended a node, if its place may still be empty because of that.
fn ended_at(of: &Subject<'_>, now: Timestamp) -> Option<Timestamp> {
    let Duty::Terminated(hold) = &of.node.duty else { return None };
    let at = match of.leaving {
        Some(leaving) => leaving.since,
        // What a pool ends it has replaced, or wants gone.
        None if is_reserved(&hold.by) => return None,
        None => hold.at,
    };
    (!passed(at, VACANT_FOR, now)).then_some(at)
}

const NOWHERE: usize = usize::MAX;

/// How many of those who use a budget are named: more would be a list and not a sentence.
const HOLDERS_MAX: usize = 3;

/// How many places are compared with before a node's are looked up: more than that takes as long.
const RECENT_MAX: usize = 4;

/// Whether a node is out of service, or about to be, whoever wants it.
pub(super) fn is_out(of: &Subject<'_>) -> bool {
    of.node.duty.hold().is_some() || of.cordon_pending.is_some() || of.leaving.is_some()
}

/// Whether two nodes count in the same places.
fn is_beside(a: &Node, b: &Node) -> bool {
    let (here, there) = (&a.place, &b.place);
    // What differs most is compared first.
    here.zone == there.zone
        && a.pool == b.pool
        && a.tenant == b.tenant
        && here.region == there.region
        && here.provider == there.provider
}

impl<'a> Tallies<'a> {
    pub(super) fn count(fleet: &Fleet<'a>, settings: &NodeSettings, now: Timestamp) -> Self {
        let (list, vacant, deserted) = (Vec::new(), Vec::new(), Vec::new());
        let places = Vec::with_capacity(fleet.nodes.len());
        let mut all = Tallies { list, places, vacant, deserted };
        let mut known: HashMap<Area<'a>, usize> = HashMap::new();
        // A pool is mostly in two or three zones: they are not looked up for each node.
        let mut recent: Vec<(&'a Node, [usize; 3], &PoolSettings)> = Vec::new();
        let (mut bad, mut replaced, mut ended) = (Vec::new(), Vec::new(), Vec::new());
        for (index, subject) in fleet.nodes.iter().enumerate() {
            let node = subject.node;
            if let Duty::Terminated(hold) = &node.duty {
                all.places.push([NOWHERE; 3]);
                ended.extend(ended_at(subject, now).map(|at| (at, index)));
                // One that was replaced quickly turned bad all the same: were it not counted, a fleet
                // could be replaced node by node behind a breaker that sees one bad node at a time.
                let was_bad = turned_bad_at(node).filter(|at| *at <= hold.at);
                if hold.by == BY
                    && let Some(at) = was_bad
                {
                    replaced.push((node, at, hold.at));
                }
                continue;
            }
            let beside = recent.iter().position(|(other, ..)| is_beside(other, node));
            let (places, pool) = match beside.and_then(|at| recent.get(at)) {
                Some((_, places, pool)) => (*places, *pool),
                None => {
                    let mut places = [NOWHERE; 3];
                    for (place, area) in places.iter_mut().zip(Area::of(node)) {
                        *place = *known.entry(area).or_insert_with(|| {
                            all.list.push(Tally::new(area, node, settings));
                            all.list.len() - 1
                        });
                    }
                    (places, settings.of_node(node))
                }
            };
            if beside.is_none() {
                recent.truncate(RECENT_MAX - 1);
                recent.insert(0, (node, places, pool));
            }
            all.places.push(places);
            let warm = !passed(node.joined_at, pool.warm_up, now);
            let hold = node.duty.hold();
            let out_since = hold.filter(|hold| hold.automatic).map(|hold| hold.at);
            let out_since = out_since.or(subject.cordon_pending);
            let out = is_out(subject);
            for place in places {
                let Some(tally) = all.list.get_mut(place) else { continue };
                tally.counts.nodes += 1;
                tally.counts.total += usize::from(!warm);
                tally.there += usize::from(!warm);
                // One that is warming up is in no percentage, but out of service all the same. What can do no
                // work takes none away.
                let costs = out_since.is_some() && !node.cannot_serve();
                tally.used += usize::from(costs);
                if costs && tally.holders.len() < HOLDERS_MAX {
                    tally.holders.push(&node.id);
                }
                tally.out += usize::from(out);
                tally.youngest = tally.youngest.max(out_since);
            }
            // What an operator took out of service is theirs, whatever becomes of it there.
            if !warm && hold.is_none_or(|hold| hold.automatic) {
                bad.extend(turned_bad_at(node).map(|at| (at, places)));
            }
        }
        for (node, turned_bad_at, ended_at) in replaced {
            let mut places = [NOWHERE; 3];
            for (place, area) in places.iter_mut().zip(Area::of(node)) {
                let Some(index) = known.get(&area) else { continue };
                let Some(tally) = all.list.get_mut(*index) else { continue };
                if passed(ended_at, tally.settings.window, now) {
                    continue;
                }
                *place = *index;
                tally.counts.total += 1;
                tally.youngest = tally.youngest.max(Some(ended_at));
            }
            bad.push((turned_bad_at, places));
        }
        all.count_vacant(fleet, &known, ended);
        all.attach(&fleet.breakers, &known);
        all.judge(&bad, now);
        all
    }

    /// Counts the places of nodes that people ended, but those that a newer node in service has filled.
    fn count_vacant(
        &mut self,
        fleet: &Fleet<'a>,
        known: &HashMap<Area<'a>, usize>,
        mut ended: Vec<(Timestamp, usize)>,
    ) {
        ended.sort_unstable();
        let Some((first, _)) = ended.first().copied() else { return };
        let mut came: HashMap<usize, Vec<Timestamp>> = HashMap::new();
        for (subject, places) in fleet.nodes.iter().zip(&self.places) {
            let node = subject.node;
            let serves = node.duty == Duty::Active && !node.is_bad() && !is_out(subject);
            if serves && first < node.registered_at {
                for place in places.iter().filter(|place| **place != NOWHERE) {
                    came.entry(*place).or_default().push(node.registered_at);
                }
            }
        }
        came.values_mut().for_each(|came| came.sort_unstable());
        for (at, index) in ended {
            let Some(node) = fleet.nodes.get(index).map(|subject| subject.node) else { continue };
            for area in Area::of(node) {
                let Some(place) = known.get(&area) else { continue };
                let later = came.get_mut(place).filter(|came| came.last() > Some(&at));
                if let Some(came) = later {
                    came.remove(came.partition_point(|came| *came <= at));
                } else if let Some(tally) = self.list.get_mut(*place) {
                    tally.out += 1;
                    tally.vacant += 1;
                    self.vacant.push((index, *place));
                }
            }
        }
    }

    /// Each place with what is counted there.
    pub(super) fn each(&self) -> impl Iterator<Item = (usize, &Tally<'a>)> {
        self.list.iter().enumerate()
    }

    /// The places that a node counts in.
    pub(super) fn places_of(&self, index: usize) -> impl Iterator<Item = usize> {
        let places = self.places.get(index).copied().unwrap_or([NOWHERE; 3]);
        places.into_iter().filter(|place| *place != NOWHERE)
    }

    /// Whether a node counts in a place although it was ended.
    pub(super) fn is_vacant(&self, index: usize, place: usize) -> bool {
        self.vacant.contains(&(index, place))
    }

    fn attach(&mut self, breakers: &[&'a Breaker], known: &HashMap<Area<'a>, usize>) {
        for breaker in breakers {
            let place = match &breaker.scope {
                Scope::Fleet => known.get(&Area::Fleet),
                Scope::Pool { tenant, pool } => known.get(&Area::Pool(tenant, pool)),
                scope @ Scope::Zone { .. } => {
                    let mut zones = known.iter().filter(|(area, _)| matches!(area, Area::Zone(..)));
                    zones.find(|(area, _)| area.scope() == *scope).map(|(_, place)| place)
                }
            };
            match place.and_then(|place| self.list.get_mut(*place)) {
                Some(tally) => tally.stored = Some(breaker),
                None => self.deserted.push((*breaker).clone()),
            }
        }
    }

    /// Turns every breaker by what went bad and when.
    fn judge(&mut self, bad: &[(Timestamp, [usize; 3])], now: Timestamp) {
        for (at, places) in bad {
            for place in places {
                let Some(tally) = self.list.get_mut(*place) else { continue };
                if counts(tally.stored, *at, &tally.settings, now) {
                    tally.counts.bad += 1;
                    tally.counts.last_bad_at = tally.counts.last_bad_at.max(Some(*at));
                }
            }
        }
        for tally in &mut self.list {
            tally.breaker = turn(tally.stored, tally.area, tally.counts, &tally.settings, now);
        }
    }

    /// When a breaker turns although nothing changed.
    pub(super) fn next(&self) -> Option<Timestamp> {
        let turns = self.list.iter().filter_map(|tally| {
            tally.breaker.as_ref().map(|breaker| turns_at(breaker, &tally.settings))
        });
        turns.min()
    }

    fn of(&self, index: usize) -> impl Iterator<Item = (usize, &Tally<'a>)> {
        let places = self.places.get(index).copied().unwrap_or([NOWHERE; 3]);
        places.into_iter().filter_map(|place| Some((place, self.list.get(place)?)))
    }

    /// Why the first breaker is open that a node is behind; half open is not open.
    pub(super) fn open(&self, index: usize) -> Option<String> {
        let open = |tally: &Tally<'_>| {
            let breaker = tally.breaker.as_ref()?;
            let open = breaker.left() == Some(0) && breaker.half_open.is_none();
            open.then(|| breaker.reason.clone())
        };
        self.of(index).find_map(|(_, tally)| open(tally))
    }

    /// Takes a node out of service, or to its drain, everywhere it counts; or says which guard holds
    /// that. `free`: it takes nothing from a budget, as a drain, whose node is out of service already, or a
    /// cordon of a node that can do no work.
    pub(super) fn take(&mut self, index: usize, free: bool, now: Timestamp) -> Result<(), Guard> {
        let stopped = self.of(index).find(|(_, tally)| !tally.has_allowance());
        if let Some((place, tally)) = stopped {
            let breaker = tally.breaker.as_ref();
            let until = breaker.map(|breaker| turns_at(breaker, &tally.settings));
            return Err(Guard { word: "breaker", until, place });
        }
        if !free {
            let full = self.of(index).find(|(_, tally)| tally.allowed() <= tally.used);
            if let Some((place, _)) = full {
                return Err(Guard { word: "budget", until: None, place });
            }
            let rates = self
                .of(index)
                .filter_map(|(place, tally)| tally.rate_ends(now).map(|until| (until, place)));
            if let Some((until, place)) = rates.max() {
                return Err(Guard { word: "rate", until: Some(until), place });
            }
        }
        for place in self.places.get(index).copied().unwrap_or([NOWHERE; 3]) {
            let Some(tally) = self.list.get_mut(place) else { continue };
            if !free {
                tally.used += 1;
                tally.youngest = Some(now);
            }
            tally.breaker.iter_mut().for_each(Breaker::draw);
        }
        Ok(())
    }

    /// What a guard says, with the numbers.
    pub(super) fn why(&self, guard: Guard, now: Timestamp) -> String {
        let Some(tally) = self.list.get(guard.place) else { return String::new() };
        let Tally { area, used, there, budget, .. } = tally;
        match (guard.word, &tally.breaker) {
            ("breaker", Some(Breaker { half_open: Some(step), .. })) => format!(
                "{area}: the breaker is half open, and {} of {} actions were taken",
                step.taken, step.allowed
            ),
            ("breaker", Some(breaker)) => format!("the breaker is open: {}", breaker.reason),
            ("budget", _) => format!(
                "{area}: {used} nodes are out of service by our own doing{}, and {} may be ({} % of \
                 {}, at least {})",
                tally.held_by(),
                tally.allowed(),
                budget.percent,
                there,
                budget.at_least
            ),
            _ => {
                let ago = tally.youngest.map_or(0, |at| now.duration_since(at).abs().as_secs());
                let every_s = budget.every.as_secs();
                format!(
                    "{area}: a node was taken out of service {ago} s ago, and it is one each {every_s} s"
                )
            }
        }
    }

    /// The budgets a node is in: `pool h100 2/5, zone a 2/10, fleet 7/50`.
    pub(super) fn line(&self, index: usize) -> String {
        let mut line = String::new();
        for (_, tally) in self.of(index) {
            let comma = if line.is_empty() { "" } else { ", " };
            write!(line, "{comma}{} {}/{}", tally.area, tally.used, tally.allowed())
                .expect("writing to a string cannot fail");
        }
        line
    }

    /// Puts the breakers that changed into the plan.
    pub(super) fn settle(self, plan: &mut Plan) {
        for tally in self.list {
            match (tally.stored, tally.breaker) {
                (Some(stored), Some(breaker)) if *stored == breaker => {}
                (_, Some(breaker)) => plan.breakers.push(breaker),
                (Some(stored), None) => plan.closed.push(stored.clone()),
                (None, None) => {}
            }
        }
        plan.closed.extend(self.deserted);
    }
}
