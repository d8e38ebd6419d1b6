//! One listing of one provider held against our records.
//!
//! What a newcomer gets wrong: a listing is a claim, not the truth. It may lag, and it may be of the wrong
//! project; what it shows is believed at once, what it does not show only slowly, and not at all when too
//! much is missing at a time (G11).

use super::{Frozen, Orphan, ProviderBook};
use crate::id::ResourceId;
use crate::instance::{
    ABSENT_FOR, Instance, InstanceId, ListingFacts, Purpose, Reason, Sight, State,
};
use crate::machine::{
    Abilities, Machine, MachineId, MachineState, Notice, NoticeKind, Order, Tags,
};
use jiff::Timestamp;
use std::cell::OnceCell;
use std::collections::{BTreeSet, HashMap, HashSet};
use uuid::Uuid;

/// How many alarms one comparison raises: a hundred thousand sentences help nobody, and the last says how
/// many more there were.
pub const ALARMS_MAX: usize = 32;

/// A whole listing of a provider.
#[derive(Clone, Copy, Debug)]
pub struct Listing<'a> {
    /// The provider, by the name in the configuration.
    pub provider: &'a str,
    /// Every machine, on all pages.
    pub machines: &'a [Machine],
    /// When it began, by our clock.
    pub began_at: Timestamp,
    /// Whether it is the first since we began to lead: then machines without a record are taken in.
    pub first: bool,
}

/// What we know of a provider's machines.
pub struct Known<'a> {
    /// Which control plane we are.
    pub installation: Uuid,
    /// Every record of this provider, over or not.
    pub instances: Vec<&'a Instance>,
    /// Every orphan of this provider.
    pub orphans: Vec<&'a Orphan>,
    /// What is remembered of the provider.
    pub book: &'a ProviderBook,
    /// What is known of a node pool; `None` if there is none.
    pub pool: &'a dyn Fn(ResourceId) -> Option<PoolFacts>,
    /// Whether the node of a record is heard now: what speaks is there, whatever a listing does not show.
    pub heard: &'a dyn Fn(&Instance) -> bool,
    /// What a machine costs per hour, in US dollars; `None` if nobody knows.
    pub price: &'a dyn Fn(&Machine) -> Option<f64>,
}

/// What has to be known of a node pool to take a machine into it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolFacts {
    /// Whose.
    pub tenant: String,
    /// By the name that nodes carry.
    pub pool_name: String,
    /// Whether it is being deleted.
    pub deleting: bool,
}

/// What follows from a listing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Comparison {
    /// Records that change.
    pub instances: Vec<Instance>,
    /// Records of machines that had none.
    pub adopted: Vec<Instance>,
    /// Orphans that are new or changed.
    pub orphans: Vec<Orphan>,
    /// Orphans that are gone, or have a record.
    pub forgotten: Vec<Orphan>,
    /// What is to be remembered of the provider, if that changes.
    pub book: Option<ProviderBook>,
    /// What the provider intends to do with machines of ours.
    pub notices: Vec<(InstanceId, Notice)>,
    /// What people have to be told, at most `ALARMS_MAX`.
    pub alarms: Vec<String>,
    /// Machines of ours, with what is written on them, that nothing in the store knows; of the first listing only,
    /// which is made before a machine of ours can have been lost in any other way.
    pub unknown: Vec<(MachineId, Tags)>,
}

/// Holds a listing against our records.
pub fn compare(
    listing: &Listing<'_>,
    known: &Known<'_>,
    abilities: &Abilities,
    now: Timestamp,
) -> Comparison {
    let round = Round::new(listing, known, abilities, now);
    round.compare()
}

/// A stretch of a comparison: who belongs to whom, and what was found so far.
struct Round<'a> {
    listing: &'a Listing<'a>,
    known: &'a Known<'a>,
    abilities: &'a Abilities,
    now: Timestamp,
    /// The machine of each record, in the order of `known.instances`.
    machine_of: Vec<Option<&'a Machine>>,
    /// Machines of ours that no living record claims, with the record they are a second machine of.
    spare: Vec<(&'a Machine, Option<&'a Instance>)>,
    /// Machines that carry the tag of another control plane: never looked at (G14).
    strangers: HashSet<&'a MachineId>,
    alarms_left_out: usize,
    found: Comparison,
}

impl<'a> Round<'a> {
    fn new(
        listing: &'a Listing<'a>,
        known: &'a Known<'a>,
        abilities: &'a Abilities,
        now: Timestamp,
    ) -> Self {
        let mut round = Self {
            listing,
            known,
            abilities,
            now,
            machine_of: vec![None; known.instances.len()],
            spare: Vec::new(),
            strangers: HashSet::new(),
            alarms_left_out: 0,
            found: Comparison::default(),
        };
        round.claim();
        round
    }

    /// Says of each machine whose it is.
    fn claim(&mut self) {
        let keys = Keys::new(&self.known.instances);
        let mut second = Vec::new();
        for machine in self.listing.machines {
            let ours = machine.tags.installation == Some(self.known.installation);
            if machine.tags.installation.is_some() && !ours {
                self.strangers.insert(&machine.id);
                continue;
            }
            match keys.of(machine) {
                Some(index) => self.claim_for(index, machine, &mut second),
                None if ours || self.could_be_ours(machine) => self.spare.push((machine, None)),
                None => {}
            }
        }
        self.spare.extend(second);
        // A page that is shown twice is no second machine.
        let mut listed = HashSet::new();
        self.spare.retain(|(machine, _)| listed.insert(&machine.id));
    }

    /// Gives a machine to a record, or takes it for a second one.
    fn claim_for(
        &mut self,
        index: usize,
        machine: &'a Machine,
        second: &mut Vec<(&'a Machine, Option<&'a Instance>)>,
    ) {
        let (Some(record), Some(holder)) =
            (self.known.instances.get(index).copied(), self.machine_of.get_mut(index))
        else {
            return;
        };
        let loser = match (*holder, record.machine()) {
            (_, Some(mine)) if *mine != machine.id => Some(machine),
            (Some(held), _) if held.id == machine.id => None,
            (None, _) => holder.replace(machine),
            (Some(held), _) if rank(machine) < rank(held) => holder.replace(machine),
            (Some(_), _) => Some(machine),
        };
        if let Some(loser) = loser {
            second.push((loser, Some(record)));
        }
    }

    /// Whether a machine without tags may be ours, by its name.
    fn could_be_ours(&self, machine: &Machine) -> bool {
        !self.abilities.tags && InstanceId::minted(&machine.name).is_some()
    }

    fn compare(mut self) -> Comparison {
        let frozen = self.guard();
        let look = ListingFacts { began_at: self.listing.began_at, whole: true, frozen };
        let mut unclaimed = std::mem::take(&mut self.spare);
        for index in 0..self.machine_of.len() {
            let (Some(record), Some(shown)) =
                (self.known.instances.get(index).copied(), self.machine_of.get(index).copied())
            else {
                continue;
            };
            if record.state.is_over() {
                unclaimed.extend(shown.map(|machine| (machine, Some(record))));
            } else {
                self.record(record, shown, look);
            }
        }
        self.unknown(&unclaimed, frozen);
        let left_out = self.alarms_left_out;
        if 0 < left_out {
            let provider = self.listing.provider;
            let last = format!("{provider}: {left_out} more of the same are not told one by one");
            self.found.alarms.push(last);
        }
        self.found
    }

    fn alarm(&mut self, sentence: String) {
        if self.found.alarms.len() + 1 < ALARMS_MAX {
            self.found.alarms.push(sentence);
        } else {
            self.alarms_left_out += 1;
        }
    }

    /// Whether too much is missing at once to be true (G11).
    fn guard(&mut self) -> bool {
        let (mut expected, mut found) = (0_u32, 0_u32);
        for (record, shown) in self.known.instances.iter().zip(&self.machine_of) {
            if !self.should_be_shown(record) {
                continue;
            }
            expected += 1;
            let theirs = record.machine().is_some_and(|id| self.strangers.contains(id));
            found += u32::from(shown.is_some() || theirs);
        }
        let missing = expected - found;
        // More than a fifth of them. A single one is no mass, even where it is the only one: it is missed
        // as any other is, and whether its node speaks says more than how many there were.
        let too_much = 2 <= missing && expected < missing * 5;
        let book = self.known.book;
        let frozen = too_much && book.vouched.is_none();
        let after = ProviderBook {
            frozen: frozen.then(|| Frozen {
                since: book.frozen.as_ref().map_or(self.now, |frozen| frozen.since),
                expected,
                found,
                message: self.doubt(expected, found),
            }),
            vouched: book.vouched.and_then(|vouched| vouched.listed(self.listing.began_at)),
            ..book.clone()
        };
        if let (Some(frozen), None) = (&after.frozen, &book.frozen) {
            let message = frozen.message.clone();
            self.alarm(message);
        }
        self.found.book = (after != *book).then_some(after);
        frozen
    }

    fn doubt(&self, expected: u32, found: u32) -> String {
        let provider = self.listing.provider;
        format!(
            "{provider} shows {found} of the {expected} machines of ours that it should: nothing is \
             concluded from that, and nothing is bought or returned there by ourselves. Check that \
             its account, project and regions in the configuration are still the right ones; if the \
             machines are really gone, say so with `argosy provider thaw {provider}`"
        )
    }

    /// Whether a listing that tells the truth shows this one.
    fn should_be_shown(&self, record: &Instance) -> bool {
        let since = match &record.state {
            State::AwaitingNode { since, .. } | State::Running { since, .. } => *since,
            // One that was told to end is missed by nobody.
            State::Terminating(leaving) if leaving.machine.is_some() && leaving.calls == 0 => {
                if leaving.absent_since.is_some() || leaving.reason == Reason::Vanished {
                    return false;
                }
                leaving.since
            }
            State::Provisioning(_)
            | State::Terminating(_)
            | State::Terminated { .. }
            | State::Failed { .. } => return false,
        };
        let shown_from = since.saturating_add(self.abilities.list_lag);
        shown_from.is_ok_and(|from| from <= self.listing.began_at)
    }

    /// What the listing says of a record that is not over.
    fn record(&mut self, record: &'a Instance, shown: Option<&'a Machine>, look: ListingFacts) {
        let theirs = record.machine().is_some_and(|id| self.strangers.contains(id));
        if shown.is_none() && theirs {
            // It is there, and somebody else wrote their tag on it: it is not ours to judge.
            return;
        }
        let changed = record.seen(shown, look, self.abilities, self.now);
        // What it costs may have become known since it was ordered.
        let unpriced = record.order.price_per_hour.is_none();
        let price = shown.filter(|_| unpriced).and_then(|machine| self.price(machine));
        let priced = price.map(|price| changed.as_ref().unwrap_or(record).priced(price));
        let changed = priced.or(changed);
        if shown.is_none() && is_up(record) && (self.known.heard)(record) {
            return self.contradicted(record, changed);
        }
        if let Some(machine) = shown {
            self.notice(record, machine);
            let after = changed.as_ref().unwrap_or(record);
            if after.sight.stopped_since.is_some() && record.sight.stopped_since.is_none() {
                let (provider, id) = (self.listing.provider, &machine.id);
                self.alarm(format!(
                    "{provider} shows {id} of {} as stopped, and it may cost all the same: start it \
                     there, or return it with `argosy instance terminate {}`",
                    record.id, record.id
                ));
            }
        }
        self.found.instances.extend(changed);
    }

    /// A machine is not shown and its node speaks: the listing is wrong. That is written down and told once,
    /// and nothing follows from it for as long as the node is heard.
    fn contradicted(&mut self, record: &'a Instance, changed: Option<Instance>) {
        let Some(missed) = changed.filter(|_| record.sight.missing_since.is_none()) else { return };
        let (provider, id) = (self.listing.provider, &record.id);
        let machine = record.machine().map_or("its machine", MachineId::as_str);
        self.alarm(format!(
            "{provider} does not show {machine} of {id}, and its node is heard: it is left alone. Check \
             that the account, project and regions of {provider} in the configuration are those in \
             which it was bought"
        ));
        self.found.instances.push(missed);
    }

    /// Hands on what the provider intends to do with a machine (G15).
    fn notice(&mut self, record: &Instance, machine: &Machine) {
        if !is_up(record) {
            return;
        }
        let taken = machine.spot && machine.state == MachineState::Stopping;
        let told = machine.notice.clone();
        let notice = told.filter(|notice| notice.kind != NoticeKind::Unknown).or_else(|| {
            taken.then(|| Notice {
                kind: NoticeKind::Reclaim,
                at: None,
                message: format!("{} stops the spot machine {}", self.listing.provider, machine.id),
            })
        });
        self.found.notices.extend(notice.map(|notice| (record.id.clone(), notice)));
    }

    /// Machines of ours that no living record claims: taken in, or reported (G13).
    fn unknown(&mut self, machines: &[(&'a Machine, Option<&'a Instance>)], frozen: bool) {
        let before: HashMap<&MachineId, &Orphan> =
            self.known.orphans.iter().map(|orphan| (&orphan.machine, *orphan)).collect();
        let mut kept = HashSet::new();
        // Numbers are given to those that are taken in, and that is rare.
        let first = self.listing.first && !machines.is_empty();
        let mut numbers = Numbers::new(if first { &self.known.instances } else { &[] });
        // The older first: where two carry one record's tag, that one is taken in.
        let mut machines: Vec<_> = machines.iter().collect();
        machines.sort_by_key(|(machine, _)| rank(machine));
        let mut taken = HashSet::new();
        for (machine, record) in machines {
            let known = before.get(&machine.id).copied();
            let fades = known.is_none() && record.is_some_and(|of| self.fades(of));
            if machine.state == MachineState::Gone || fades {
                continue;
            }
            let ours = machine.tags.installation == Some(self.known.installation);
            if self.listing.first && ours && record.is_none() && known.is_none() {
                self.found.unknown.push((machine.id.clone(), machine.tags.clone()));
            }
            let new = record.is_none().then(|| self.adopt(machine, known, &mut numbers)).flatten();
            if let Some(new) = new.filter(|new| taken.insert(new.id.clone())) {
                self.found.adopted.push(new);
                continue;
            }
            kept.insert(&machine.id);
            self.report(machine, *record, known);
        }
        self.forget(&kept, frozen);
    }

    /// Whether a listing that lags, or took long, may still show a machine that this record had before.
    fn fades(&self, record: &Instance) -> bool {
        let since = match &record.state {
            State::AwaitingNode { since, .. } | State::Running { since, .. } => *since,
            State::Terminating(leaving) => leaving.since,
            State::Terminated { at, .. } | State::Failed { at, .. } => *at,
            State::Provisioning(_) => return false,
        };
        let lag = self.abilities.list_lag.saturating_add(ABSENT_FOR);
        since.saturating_add(lag).is_ok_and(|until| self.listing.began_at < until)
    }

    /// The record of a machine that has none, if it is to have one.
    fn adopt(
        &self,
        machine: &Machine,
        known: Option<&Orphan>,
        numbers: &mut Numbers,
    ) -> Option<Instance> {
        let wanted = known.is_none_or(|orphan| orphan.reap.is_none());
        let lives = matches!(machine.state, MachineState::Starting | MachineState::Running);
        if !self.listing.first || !wanted || !lives {
            return None;
        }
        // Without its token and its pool it cannot be told from one that was bought by mistake.
        let (pool, token) = (machine.tags.pool?, machine.tags.token?);
        let id = machine.tags.instance.clone()?;
        let facts = (self.known.pool)(pool).filter(|facts| !facts.deleting)?;
        let order = Order {
            provider: self.listing.provider.to_owned(),
            region: machine.region.clone(),
            zone: machine.zone.clone(),
            machine_type: machine.machine_type.clone(),
            spot: machine.spot,
            image: String::new(),
            price_per_hour: self.price(machine),
        };
        Some(Instance {
            purpose: Purpose::Seat,
            departure: None,
            blocked: None,
            id,
            tenant: facts.tenant,
            pool,
            pool_name: facts.pool_name,
            number: numbers.free(pool),
            token,
            order,
            ordered_at: self.now,
            why: format!("adopted: {} carries our tags and had no record", machine.id),
            replaces: None,
            adopted: true,
            tried: Vec::new(),
            notice: None,
            sight: Sight::default(),
            state: State::AwaitingNode { machine: machine.id.clone(), since: self.now },
        })
    }

    /// Writes an orphan down, with what it costs.
    fn report(&mut self, machine: &Machine, of: Option<&Instance>, known: Option<&Orphan>) {
        let price = self.price(machine);
        let orphan = Orphan {
            provider: self.listing.provider.to_owned(),
            machine: machine.id.clone(),
            name: machine.name.clone(),
            tags: machine.tags.clone(),
            region: machine.region.clone(),
            zone: machine.zone.clone(),
            machine_type: machine.machine_type.clone(),
            // A price list that is away for a while does not make a machine free.
            price_per_hour: price.or_else(|| known.and_then(|known| known.price_per_hour)),
            first_seen: known.map_or(self.now, |known| known.first_seen),
            missing_since: None,
            reap: known.and_then(|known| known.reap.clone()),
        };
        if known == Some(&orphan) {
            return;
        }
        if known.is_none() {
            let (provider, id) = (self.listing.provider, &machine.id);
            let whose = of.map_or_else(
                || "carries our tags and has no record".to_owned(),
                |record| match record.state.is_over() {
                    true => format!("is there although {} is over", record.id),
                    false => format!("is a second machine of {}", record.id),
                },
            );
            let cost = orphan.price_per_hour.map_or_else(
                || "nobody knows what it costs".to_owned(),
                |price| format!("it costs ${price:.2} per hour"),
            );
            self.alarm(format!("{provider}: {id} ({}) {whose}; {cost}", machine.machine_type));
        }
        self.found.orphans.push(orphan);
    }

    /// Forgets orphans that two listings did not show, and those that have a record now.
    fn forget(&mut self, kept: &HashSet<&MachineId>, frozen: bool) {
        if self.known.orphans.is_empty() {
            return;
        }
        let shown: HashSet<&MachineId> =
            self.listing.machines.iter().map(|machine| &machine.id).collect();
        for orphan in &self.known.orphans {
            if kept.contains(&orphan.machine) {
                continue;
            }
            // Shown, and no orphan: it is gone in so many words, or belongs to a record or to strangers.
            if shown.contains(&orphan.machine) {
                self.found.forgotten.push((*orphan).clone());
                continue;
            }
            let missing_since = orphan.missing_since.unwrap_or(self.listing.began_at);
            let long = missing_since.saturating_add(ABSENT_FOR);
            if frozen {
                continue;
            } else if long.is_ok_and(|long| long <= self.listing.began_at) {
                self.found.forgotten.push((*orphan).clone());
            } else if orphan.missing_since.is_none() {
                let missing_since = Some(missing_since);
                self.found.orphans.push(Orphan { missing_since, ..(*orphan).clone() });
            }
        }
    }

    /// What a machine costs, if somebody knows a number that can be one.
    fn price(&self, machine: &Machine) -> Option<f64> {
        (self.known.price)(machine).filter(|price| price.is_finite() && 0.0 <= *price)
    }
}

/// Whether a record is of a machine that should be up.
fn is_up(record: &Instance) -> bool {
    matches!(record.state, State::AwaitingNode { .. } | State::Running { .. })
}

/// Which of two machines for one record is kept: one that lives, then the older one.
fn rank(machine: &Machine) -> (bool, bool, Option<Timestamp>, &MachineId) {
    let gone = machine.state == MachineState::Gone;
    (gone, machine.created_at.is_none(), machine.created_at, &machine.id)
}

/// Records by everything a machine can carry.
struct Keys<'a> {
    records: &'a [&'a Instance],
    machines: HashMap<&'a MachineId, usize>,
    /// Nearly every machine is known by its id: what else it carries is sorted when one is not.
    tokens: OnceCell<HashMap<Uuid, usize>>,
    ids: OnceCell<HashMap<&'a str, usize>>,
}

impl<'a> Keys<'a> {
    fn new(records: &'a [&'a Instance]) -> Self {
        let mut machines = HashMap::with_capacity(records.len());
        for (index, record) in records.iter().enumerate() {
            if let Some(machine) = record.machine() {
                // A provider may use an id again (a host that is there for ever): it belongs to whom it
                // serves now.
                let slot = machines.entry(machine).or_insert(index);
                if !record.state.is_over() {
                    *slot = index;
                }
            }
        }
        Self { records, machines, tokens: OnceCell::new(), ids: OnceCell::new() }
    }

    fn of(&self, machine: &Machine) -> Option<usize> {
        let by_id = self.machines.get(&machine.id).copied();
        let by_token = || self.tokens().get(&machine.tags.token?).copied();
        let by_tag = || self.ids().get(machine.tags.instance.as_ref()?.as_str()).copied();
        let by_name = || self.ids().get(machine.name.as_str()).copied();
        by_id.or_else(by_token).or_else(by_tag).or_else(by_name)
    }

    fn tokens(&self) -> &HashMap<Uuid, usize> {
        let all = || self.records.iter().enumerate().map(|(index, of)| (of.token, index)).collect();
        self.tokens.get_or_init(all)
    }

    fn ids(&self) -> &HashMap<&'a str, usize> {
        let records = self.records.iter().enumerate();
        self.ids.get_or_init(|| records.map(|(index, of)| (of.id.as_str(), index)).collect())
    }
}

/// Numbers of nodes that are free, by pool.
struct Numbers {
    used: HashMap<ResourceId, BTreeSet<u32>>,
    /// Where to go on looking: below, all are used.
    from: HashMap<ResourceId, u32>,
}

impl Numbers {
    fn new(records: &[&Instance]) -> Self {
        let mut used: HashMap<_, BTreeSet<_>> = HashMap::new();
        for record in records.iter().filter(|record| !record.state.is_over()) {
            used.entry(record.pool).or_default().insert(record.number);
        }
        Self { used, from: HashMap::new() }
    }

    /// The lowest free number of a pool, which is then taken.
    fn free(&mut self, pool: ResourceId) -> u32 {
        let from = self.from.entry(pool).or_insert(1);
        let used = self.used.get(&pool);
        while *from < u32::MAX && used.is_some_and(|used| used.contains(from)) {
            *from = from.saturating_add(1);
        }
        let free = *from;
        *from = from.saturating_add(1);
        free
    }
}
