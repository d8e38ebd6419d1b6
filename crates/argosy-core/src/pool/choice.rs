//! Where to buy: every place that the spec allows, in order, without those where buying fails now.
//!
//! What a newcomer gets wrong: no place is ever given up. One that fails is left alone for a while, and then
//! tried with one machine before it gets the rest.

use super::spec::resolve;
use super::{Backoff, Capacity, PoolBook, PoolSpec, ProviderChoice, ProviderFacts, Strategy};
use crate::inventory::{Frozen, Paused};
use crate::machine::{Offer, Order};
use jiff::Timestamp;
use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};

/// Where a machine can be bought, as the book knows it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The provider, by the name in the configuration.
    pub provider: String,
    /// The region.
    pub region: String,
    /// The zone; empty: any.
    pub zone: String,
    /// The machine type.
    pub machine_type: String,
    /// Whether the provider may take it back.
    pub spot: bool,
}

impl Place {
    /// Where an order goes.
    pub fn of(order: &Order) -> Self {
        Self {
            provider: order.provider.clone(),
            region: order.region.clone(),
            zone: order.zone.clone(),
            machine_type: order.machine_type.clone(),
            spot: order.spot,
        }
    }

    /// `provider/region/zone/type/spot`.
    pub fn key(&self) -> String {
        let Place { provider, region, zone, machine_type, spot } = self;
        let spot = if *spot { "spot" } else { "on-demand" };
        format!("{provider}/{region}/{zone}/{machine_type}/{spot}")
    }
}

/// Why nothing can be bought at a provider, or anywhere.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Closed<'a> {
    /// It is not configured, or none is.
    NoProvider(String),
    /// Nothing is bought there now.
    Paused(&'a str, &'a Paused),
    /// Its listings cannot be believed now.
    Frozen(&'a str, &'a Frozen),
    /// Its machines were not compared with our records yet.
    NotCompared(&'a str),
    /// It has nothing of the kind.
    Lacks(String),
    /// Buying failed there lately.
    Failed(&'a str, Place, Backoff),
}

/// One place, and what its turn depends on.
struct Candidate {
    place: Place,
    provider_index: usize,
    priority: u32,
    spot_rank: u8,
    region_rank: usize,
    type_rank: usize,
    zone_rank: usize,
    /// Which of `loads` counts the members there.
    load: usize,
    price: Option<f64>,
    availability: u8,
    backoff: Option<Backoff>,
    open: bool,
    /// Whether a purchase there has been without an answer for more than one call.
    stuck: bool,
}

/// How many members a zone has, and how many of them are lost.
#[derive(Clone, Copy, Default)]
struct Load {
    members: u32,
    lost: u32,
}

impl Load {
    /// A zone that seems to be lost gets nothing new while there are others (D3). One lost node is no sign of
    /// it.
    fn shunned(self) -> bool {
        2 <= self.lost && self.members < self.lost * 2
    }
}

/// Gives out places, one purchase after the other.
pub(super) struct Chooser<'a> {
    candidates: Vec<Candidate>,
    loads: Vec<Load>,
    closed: Vec<Closed<'a>>,
    /// Which provider's turn it is, by weight.
    ring: Vec<usize>,
    strategy: Strategy,
    image: &'a str,
    pub(super) ordered: u64,
}

/// A member as far as it matters to where the next one goes.
#[derive(Clone, Copy)]
pub(super) struct Resident<'a> {
    pub(super) order: &'a Order,
    pub(super) lost: bool,
    /// Whether the provider has not answered yet.
    pub(super) asked: bool,
    /// Whether it was asked more than once, and gave no clear answer.
    pub(super) stuck: bool,
}

impl<'a> Chooser<'a> {
    pub(super) fn new(
        spec: &'a PoolSpec,
        providers: &'a BTreeMap<String, ProviderFacts<'a>>,
        book: &PoolBook,
        residents: impl Iterator<Item = Resident<'a>>,
        now: Timestamp,
    ) -> Self {
        let mut chooser = Self {
            candidates: Vec::new(),
            loads: Vec::new(),
            closed: Vec::new(),
            ring: Vec::new(),
            strategy: spec.strategy,
            image: &spec.image,
            ordered: book.ordered,
        };
        let default = default_choice(providers);
        let choices: Vec<&ProviderChoice> = match spec.providers.is_empty() {
            true => default.iter().collect(),
            false => spec.providers.iter().collect(),
        };
        if choices.is_empty() {
            let why = "no provider is configured".to_owned();
            chooser.closed.push(Closed::NoProvider(why));
        }
        let mut loads: HashMap<(String, String, String), usize> = HashMap::new();
        for (index, choice) in choices.iter().enumerate() {
            chooser.provider(index, choice, choices.len(), spec, providers, &mut loads);
        }
        chooser.ring = ring(&choices);
        chooser.settle(&loads, book, residents, now);
        chooser
    }

    /// All places of one provider, or why there are none.
    fn provider(
        &mut self,
        index: usize,
        choice: &ProviderChoice,
        of: usize,
        spec: &PoolSpec,
        providers: &'a BTreeMap<String, ProviderFacts<'a>>,
        loads: &mut HashMap<(String, String, String), usize>,
    ) {
        let Some((name, facts)) = providers.get_key_value(&choice.name) else {
            let why = format!("provider {} is not configured", choice.name);
            return self.closed.push(Closed::NoProvider(why));
        };
        if let Some(paused) = facts.paused {
            return self.closed.push(Closed::Paused(facts.display, paused));
        }
        if let Some(frozen) = facts.frozen {
            return self.closed.push(Closed::Frozen(facts.display, frozen));
        }
        if !facts.compared {
            return self.closed.push(Closed::NotCompared(facts.display));
        }
        let spots = spots(spec.capacity, facts);
        if spots.is_empty() {
            let why = format!("{} has no spot machines", facts.display);
            return self.closed.push(Closed::Lacks(why));
        }
        let types = types_at(spec, Some(choice), facts);
        if types.is_empty() {
            let wanted = spec.types.join(", ");
            let why = format!("{} has nothing like {wanted}", facts.display);
            return self.closed.push(Closed::Lacks(why));
        }
        let or_default = |name| if str::is_empty(name) { facts.default_type } else { name };
        let types: Vec<&str> = types.into_iter().map(or_default).collect();
        let regions = regions_at(choice, facts);
        let alone = of == 1 && regions.len() == 1;
        for (region_rank, region) in regions.iter().enumerate() {
            let zones = zones_at(spec, region, facts, alone);
            for (zone_rank, zone) in zones.iter().enumerate() {
                let key = (name.clone(), (*region).to_owned(), (*zone).to_owned());
                let load = *loads.entry(key).or_insert_with(|| {
                    self.loads.push(Load::default());
                    self.loads.len() - 1
                });
                for (type_rank, machine_type) in types.iter().enumerate() {
                    let offer = offer(facts.offers, machine_type, region, zone);
                    for (spot_rank, spot) in (0_u8..).zip(&spots) {
                        self.candidates.push(Candidate {
                            place: Place {
                                provider: name.clone(),
                                region: (*region).to_owned(),
                                zone: (*zone).to_owned(),
                                machine_type: (*machine_type).to_owned(),
                                spot: *spot,
                            },
                            provider_index: index,
                            priority: choice.priority,
                            spot_rank,
                            region_rank,
                            type_rank,
                            zone_rank,
                            load,
                            price: offer.and_then(|offer| price(offer, *spot)),
                            availability: match (offer, facts.offers.is_empty()) {
                                (Some(offer), _) if offer.available => 0,
                                (None, true) => 1,
                                (Some(_), _) | (None, false) => 2,
                            },
                            backoff: None,
                            open: true,
                            stuck: false,
                        });
                    }
                }
            }
        }
    }

    /// Counts who is where, and closes what is in backoff.
    fn settle(
        &mut self,
        loads: &HashMap<(String, String, String), usize>,
        book: &PoolBook,
        residents: impl Iterator<Item = Resident<'a>>,
        now: Timestamp,
    ) {
        let mut keys: HashMap<(&str, &str, &str), usize> = HashMap::new();
        for ((provider, region, zone), load) in loads {
            keys.insert((provider, region, zone), *load);
        }
        let mut asked: Vec<&Order> = Vec::new();
        let mut stuck: Vec<&Order> = Vec::new();
        for resident in residents {
            let order = resident.order;
            let key = (order.provider.as_str(), order.region.as_str(), order.zone.as_str());
            if let Some(load) = keys.get(&key).and_then(|load| self.loads.get_mut(*load)) {
                load.members += u32::from(!resident.lost);
                load.lost += u32::from(resident.lost);
            }
            if resident.asked && !book.places.is_empty() {
                asked.push(order);
            }
            if resident.stuck {
                stuck.push(order);
            }
        }
        if !stuck.is_empty() {
            let stuck: Vec<Place> = stuck.into_iter().map(Place::of).collect();
            for candidate in &mut self.candidates {
                candidate.stuck = stuck.contains(&candidate.place);
            }
        }
        if book.places.is_empty() {
            return;
        }
        let asked: Vec<String> = asked.into_iter().map(|order| Place::of(order).key()).collect();
        for candidate in &mut self.candidates {
            let key = candidate.place.key();
            candidate.backoff = book.places.get(&key).cloned();
            // One that failed is tried with a single machine first.
            candidate.open = match &candidate.backoff {
                Some(backoff) => backoff.until <= now && !asked.contains(&key),
                None => true,
            };
        }
    }

    /// Where the next machine is bought, with its price; it counts from then on.
    pub(super) fn next(&mut self) -> Option<Order> {
        let order = self.peek()?;
        let index = self.best()?;
        let candidate = self.candidates.get_mut(index)?;
        candidate.open = candidate.backoff.is_none();
        if let Some(load) = self.loads.get_mut(candidate.load) {
            load.members += 1;
        }
        self.ordered = self.ordered.saturating_add(1);
        Some(order)
    }

    /// What `next` would give.
    pub(super) fn peek(&self) -> Option<Order> {
        let candidate = self.best().and_then(|index| self.candidates.get(index))?;
        let Place { provider, region, zone, machine_type, spot } = candidate.place.clone();
        let (image, price_per_hour) = (self.image.to_owned(), candidate.price);
        Some(Order { provider, region, zone, machine_type, spot, image, price_per_hour })
    }

    fn best(&self) -> Option<usize> {
        let turn = self.turn();
        let open = self.candidates.iter().enumerate().filter(|(_, candidate)| candidate.open);
        open.min_by(|(_, a), (_, b)| self.compare(a, b, &turn)).map(|(index, _)| index)
    }

    /// How long each provider has to wait for its turn.
    fn turn(&self) -> Vec<usize> {
        if self.strategy != Strategy::RoundRobin || self.ring.is_empty() {
            return Vec::new();
        }
        let len = self.ring.len();
        let at = usize::try_from(self.ordered % len as u64).unwrap_or(0);
        let providers = self.ring.iter().max().map_or(0, |last| last + 1);
        let wait = |index: usize| {
            let ahead = (0..len).find(|step| self.ring.get((at + step) % len) == Some(&index));
            ahead.unwrap_or(len)
        };
        (0..providers).map(wait).collect()
    }

    fn compare(&self, a: &Candidate, b: &Candidate, turn: &[usize]) -> Ordering {
        let load = |of: &Candidate| self.loads.get(of.load).copied().unwrap_or_default();
        let (load_a, load_b) = (load(a), load(b));
        let wait = |of: &Candidate| turn.get(of.provider_index).copied();
        let by_strategy = match self.strategy {
            Strategy::Priority => Ordering::Equal,
            Strategy::Cost => {
                a.type_rank.cmp(&b.type_rank).then_with(|| by_price(a.price, b.price))
            }
            Strategy::RoundRobin => wait(a).cmp(&wait(b)),
            Strategy::Availability => a.availability.cmp(&b.availability),
        };
        let fixed = |of: &Candidate| (of.priority, of.provider_index, of.spot_rank, of.region_rank);
        // Where others wait for an answer the next one would wait, too.
        a.stuck
            .cmp(&b.stuck)
            .then_with(|| load_a.shunned().cmp(&load_b.shunned()))
            .then(by_strategy)
            .then_with(|| fixed(a).cmp(&fixed(b)))
            .then_with(|| load_a.members.cmp(&load_b.members))
            .then_with(|| (a.zone_rank, a.type_rank).cmp(&(b.zone_rank, b.type_rank)))
    }

    /// Why nothing can be bought, the most telling first: what failed where we would buy first, and what
    /// closes whole providers.
    pub(super) fn closed(
        &self,
        providers: &'a BTreeMap<String, ProviderFacts<'a>>,
    ) -> Vec<Closed<'a>> {
        let turn = self.turn();
        let mut failed: Vec<&Candidate> =
            self.candidates.iter().filter(|candidate| candidate.backoff.is_some()).collect();
        failed.sort_by(|a, b| self.compare(a, b, &turn));
        let failed = failed.into_iter().filter_map(|candidate| {
            let display =
                providers.get(&candidate.place.provider).map_or("", |facts| facts.display);
            Some(Closed::Failed(display, candidate.place.clone(), candidate.backoff.clone()?))
        });
        failed.chain(self.closed.iter().cloned()).collect()
    }

    /// When a place opens again, the earliest.
    pub(super) fn opens_at(&self) -> Option<Timestamp> {
        let backoffs = self.candidates.iter().filter_map(|candidate| candidate.backoff.as_ref());
        let closed = self.closed.iter().filter_map(|closed| match closed {
            Closed::Paused(_, paused) => Some(paused.retry_at),
            Closed::NoProvider(_)
            | Closed::Frozen(..)
            | Closed::NotCompared(_)
            | Closed::Lacks(_)
            | Closed::Failed(..) => None,
        });
        backoffs.map(|backoff| backoff.until).chain(closed).min()
    }
}

fn by_price(a: Option<f64>, b: Option<f64>) -> Ordering {
    match (a, b) {
        (Some(a), Some(b)) => a.total_cmp(&b),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => Ordering::Equal,
    }
}

/// A spec that names no provider is for the first there is.
fn default_choice(providers: &BTreeMap<String, ProviderFacts<'_>>) -> Option<ProviderChoice> {
    let name = providers.keys().next()?.clone();
    Some(ProviderChoice { name, priority: 0, weight: 1, regions: Vec::new(), machine_type: None })
}

fn spots(capacity: Capacity, facts: &ProviderFacts<'_>) -> Vec<bool> {
    match (capacity, facts.abilities.spot) {
        (Capacity::OnDemand, _) | (Capacity::SpotPreferred, false) => vec![false],
        (Capacity::Spot, true) => vec![true],
        (Capacity::SpotPreferred, true) => vec![true, false],
        (Capacity::Spot, false) => Vec::new(),
    }
}

/// The machine types to buy at a provider, in its own words; one that is empty is the provider's default.
pub(super) fn types_at<'b>(
    spec: &'b PoolSpec,
    choice: Option<&'b ProviderChoice>,
    facts: &ProviderFacts<'_>,
) -> Vec<&'b str> {
    let wanted: Vec<&str> = match choice.and_then(|choice| choice.machine_type.as_deref()) {
        Some(machine_type) => vec![machine_type],
        None => spec.types.iter().map(String::as_str).collect(),
    };
    if wanted.is_empty() {
        return vec![""];
    }
    wanted.into_iter().filter_map(|name| resolve(name, facts.kind, facts.offers)).collect()
}

/// The regions to buy in at a provider.
fn regions_at<'b>(choice: &'b ProviderChoice, facts: &'b ProviderFacts<'_>) -> Vec<&'b str> {
    match choice.regions.is_empty() {
        true => vec![facts.default_region],
        false => choice.regions.iter().map(String::as_str).collect(),
    }
}

/// The zones of a region that the spec names; any, if it names none there.
fn zones_at<'b>(
    spec: &'b PoolSpec,
    region: &str,
    facts: &ProviderFacts<'_>,
    alone: bool,
) -> Vec<&'b str> {
    let offered = |zone: &String| {
        facts.offers.iter().any(|offer| offer.region == region && offer.zones.contains(zone))
    };
    let there = |zone: &&String| is_in_region(zone, region) || offered(zone);
    let mut zones: Vec<&str> = spec.zones.iter().filter(there).map(String::as_str).collect();
    if zones.is_empty() && alone {
        zones = spec.zones.iter().map(String::as_str).collect();
    }
    if zones.is_empty() { vec![""] } else { zones }
}

/// Whether a zone is one of a region by its name: `europe-west1-b` of `europe-west1`, `us-east-1a` of `us-east-1`,
/// and `europe-west12-a` of another.
fn is_in_region(zone: &str, region: &str) -> bool {
    let rest = zone.strip_prefix(region).filter(|_| !region.is_empty());
    rest.is_some_and(|rest| {
        rest.is_empty() || rest.starts_with(|next: char| next == '-' || next.is_alphabetic())
    })
}

/// What a provider says of a machine type in a place.
pub(super) fn offer<'b>(
    offers: &'b [Offer],
    machine_type: &str,
    region: &str,
    zone: &str,
) -> Option<&'b Offer> {
    offers.iter().find(|offer| {
        let here = offer.region == region || offer.region == zone;
        let zoned =
            zone.is_empty() || offer.zones.is_empty() || offer.zones.iter().any(|z| z == zone);
        offer.machine_type == machine_type && here && zoned
    })
}

/// What a machine costs, if the provider says something that can be a price.
pub(super) fn price(offer: &Offer, spot: bool) -> Option<f64> {
    let price = if spot { offer.spot_price_per_hour } else { offer.price_per_hour };
    price.filter(|price| price.is_finite() && 0.0 <= *price)
}

/// Whose turn it is, by weight, spread over the round: smooth weighted round robin.
fn ring(choices: &[&ProviderChoice]) -> Vec<usize> {
    let total: i64 = choices.iter().map(|choice| i64::from(choice.weight)).sum();
    let mut credit: Vec<i64> = vec![0; choices.len()];
    let mut ring = Vec::new();
    for _ in 0..total {
        for (credit, choice) in credit.iter_mut().zip(choices) {
            *credit += i64::from(choice.weight);
        }
        // Of those with most credit, the first.
        let best = credit.iter().enumerate().rev().max_by_key(|(_, credit)| **credit);
        let Some(index) = best.map(|(index, _)| index) else { break };
        if let Some(credit) = credit.get_mut(index) {
            *credit -= total;
        }
        ring.push(index);
    }
    ring
}

#[cfg(test)]
mod tests;
