//! Makes a plan: seats first, then who leaves, who comes, who is cured and who is replaced.

mod learn;
mod shrink;

use super::stand::{self, bad_serial, outdated, unjudged_from};
use super::{Buy, Cost, Member, Picture, Plan, Standing, Step};
use crate::breaker::{later, passed};
use crate::gate::{self, Brakes, Held};
use crate::health::HealthState;
use crate::instance::{Instance, InstanceId, Purpose, Reason, State};
use crate::machine::Trouble;
use crate::node::{Duty, Hold, Node};
use crate::pool::choice::{Chooser, Closed, Resident};
use crate::pool::cure::{self, Treatment};
use crate::pool::{BY, BuyingPaused, Outcome, PoolBook, Remedy, Replacement, outcome};
use jiff::{SignedDuration, Timestamp};
use shrink::busy;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// How long a lost node must have been silent to be given up before its replacement could be bought, where that
/// makes room for it: networks are mended within less.
const LOST_FOR_GOOD: SignedDuration = SignedDuration::from_mins(30);

/// How long a node must have been sick to be returned before its replacement could be bought, where nothing more
/// can be bought beside it: a provider that has none now may have some in ten minutes.
const FULL_FOR: SignedDuration = SignedDuration::from_mins(10);
/// And how often in a row its provider must have said that there is none: with the pauses in between, for some
/// eight minutes.
const FULL_AFTER: u32 = 8;
/// What providers call it when what was reserved, or all hosts that there are, is in use.
const FIXED_CODES: [&str; 2] = ["ReservationCapacityExceeded", "NoFreeHost"];

/// How soon a new node is looked at again whose second report has not come yet.
const REPORTS_AFTER: SignedDuration = SignedDuration::from_secs(15);

/// The shortest drain that a command can have.
const DRAIN_LEAST: SignedDuration = SignedDuration::from_secs(1);

/// So many machines within an hour that came with a GPU known to be bad stop buying for the rest of it.
const BAD_HARDWARE_MAX: usize = 3;
/// The hour of `BAD_HARDWARE_MAX`.
const BAD_HARDWARE_WITHIN: SignedDuration = SignedDuration::from_hours(1);

/// What a pool consists of: one of its nodes, or what is to become one.
struct Seat {
    member: usize,
    /// Who is to take its place.
    replacement: Option<usize>,
    /// In what it is not what the spec asks for.
    outdated: Option<String>,
    /// Whether the pool is to be smaller by it.
    leaving: bool,
}

/// What keeps us from buying.
#[derive(Clone, Debug)]
pub(in crate::pool) enum Blocked<'a> {
    /// Machines do not register.
    Paused(&'a BuyingPaused),
    /// It would cost too much.
    Cost { sum: f64, next: f64, max: f64 },
    /// It could cost too much: nobody knows what such a machine costs.
    PriceUnknown { machine_type: String, provider: String },
    /// There is nowhere to buy.
    NoPlace { closed: Vec<Closed<'a>>, until: Option<Timestamp> },
    /// What is bought has GPUs that are known to be bad.
    BadHardware { machines: usize, until: Timestamp },
}

/// A node that is out of service for its health, and what is done about it.
#[derive(Clone, Debug)]
pub(in crate::pool) struct Sick {
    pub(in crate::pool) member: usize,
    pub(in crate::pool) doing: String,
    /// Nothing more can be done by ourselves.
    pub(in crate::pool) human: bool,
}

/// What the report is made from.
#[derive(Debug, Default)]
pub(in crate::pool) struct Summary<'a> {
    pub(in crate::pool) target: u32,
    pub(in crate::pool) ready: Vec<usize>,
    pub(in crate::pool) coming: Vec<usize>,
    /// Registered, and not in service for no reason that we act on.
    pub(in crate::pool) unsure: Vec<usize>,
    pub(in crate::pool) held: Vec<usize>,
    pub(in crate::pool) sick: Vec<Sick>,
    /// On their way out, or to be.
    pub(in crate::pool) parting: Vec<usize>,
    /// How many are not what the spec asks for, and in what one of them is not.
    pub(in crate::pool) outdated: usize,
    pub(in crate::pool) outdated_in: Option<String>,
    /// When the next window for disturbing them opens, if none is open.
    pub(in crate::pool) window: Option<Timestamp>,
    /// The provider of nodes that are not wanted, and stay until its machines were listed.
    pub(in crate::pool) unlisted: Option<&'a str>,
    /// Seats that nobody holds, after what is bought now.
    pub(in crate::pool) missing: u32,
    pub(in crate::pool) buying: usize,
    pub(in crate::pool) blocked: Option<(Purpose, Blocked<'a>)>,
    /// Why nothing is done by ourselves.
    pub(in crate::pool) stopped: Option<&'a str>,
    /// Machines that are to go and stay for now, and what keeps them.
    pub(in crate::pool) kept: Vec<(usize, Held)>,
    /// Nodes whose time in service is not long enough yet for the next one to be replaced, and until when.
    pub(in crate::pool) soaking: Vec<usize>,
    /// How long one replacement may take, if no window has so much time left.
    pub(in crate::pool) window_short: Option<SignedDuration>,
}

/// Whether one has what another has that says in what a machine is not as the spec asks, beside its GPUs.
fn is_like(member: &Member<'_>, model: &Instance) -> bool {
    let one = member.instance;
    member.notice.is_none() && (one.adopted, &one.order) == (model.adopted, &model.order)
}

pub(super) struct Planner<'p, 'a> {
    picture: &'p Picture<'a>,
    now: Timestamp,
    target: u32,
    /// One for each member; `None` for one that is over.
    standings: Vec<Option<Standing>>,
    seats: Vec<Seat>,
    /// How many machines there are that are not on their way out, with what is bought now.
    held: u32,
    /// How many nodes are in service and not told to leave.
    ready: u32,
    chooser: Option<Chooser<'p>>,
    cost: Cost<'p>,
    /// How many hold each number: two may, where one was to replace the other and both are wanted now. Counted
    /// when something is bought.
    numbers: Option<BTreeMap<u32, u32>>,
    lifted: bool,
    /// What keeps us from buying anything at all.
    barred: Option<Blocked<'p>>,
    /// No number below it is free.
    free: u32,
    /// Whether every seat was held before anything was bought: those who are well are not disturbed otherwise.
    whole: bool,
    /// Who is on its way out with a permit of now.
    departing: BTreeSet<usize>,
    /// The book as it should be, once it differs.
    book: Option<PoolBook>,
    summary: Summary<'p>,
    plan: Plan,
}

impl<'p, 'a> Planner<'p, 'a>
where
    'a: 'p,
{
    pub(super) fn new(picture: &'p Picture<'a>, now: Timestamp) -> Self {
        let standing = |member: &Member<'_>| {
            (!member.instance.state.is_over()).then(|| Standing::of(member, picture, now))
        };
        let standings: Vec<Option<Standing>> = picture.members.iter().map(standing).collect();
        let target = picture.spec.target(picture.book.target);
        let made_from = picture.spec.made_from();
        let lifted = picture.book.paused.as_ref().is_some_and(|it| it.made_from != made_from);
        let plan = Plan {
            buy: Vec::new(),
            steps: Vec::new(),
            book: None,
            outcome: Outcome::Waiting,
            next: None,
        };
        let count = |wanted: fn(&Standing) -> bool| {
            let held = standings.iter().flatten().filter(|standing| wanted(standing));
            u32::try_from(held.count()).unwrap_or(u32::MAX)
        };
        Self {
            now,
            target,
            held: count(Standing::is_seated),
            ready: count(|standing| *standing == Standing::Ready),
            standings,
            seats: Vec::new(),
            chooser: None,
            cost: Cost::of(picture),
            numbers: None,
            lifted,
            barred: bar(picture, lifted, now),
            free: 1,
            whole: false,
            departing: BTreeSet::new(),
            book: None,
            summary: Summary { target, stopped: picture.stopped, ..Summary::default() },
            plan,
            picture,
        }
    }

    pub(super) fn plan(mut self) -> Plan {
        if self.picture.resource.deletion.is_some() {
            return self.delete();
        }
        self.sit();
        self.learn();
        self.see_off_unseated();
        self.shrink();
        self.grow();
        self.heal();
        self.watch_unsure();
        self.update();
        self.keep_wanted();
        self.finish()
    }

    fn member(&self, index: usize) -> Option<&'p Member<'a>> {
        self.picture.members.get(index)
    }

    fn standing(&self, index: usize) -> Standing {
        self.standings.get(index).cloned().flatten().unwrap_or(Standing::Leaving)
    }

    fn is_ready(&self, index: usize) -> bool {
        self.standings.get(index).is_some_and(|one| *one == Some(Standing::Ready))
    }

    /// The book as it will be kept.
    fn book(&self) -> &PoolBook {
        self.book.as_ref().unwrap_or(self.picture.book)
    }

    fn book_mut(&mut self) -> &mut PoolBook {
        self.book.get_or_insert_with(|| self.picture.book.clone())
    }

    fn wake(&mut self, at: Timestamp) {
        self.plan.next = Some(self.plan.next.map_or(at, |next| next.min(at)));
    }

    /// Whether a machine may leave for a reason, as things are.
    fn permit(&self, index: usize, reason: &Reason) -> Result<(), Held> {
        let provider = self.member(index).map(|member| member.instance.order.provider.as_str());
        let facts = provider.and_then(|name| self.picture.providers.get(name));
        let frozen = facts.and_then(|facts| facts.frozen).map(|frozen| frozen.message.as_str());
        let brakes = Brakes { frozen, stopped: self.picture.stopped };
        gate::permit(reason.clone(), &brakes).map(drop)
    }

    /// It is to go and stays for now: it keeps its node, its seat and its cost.
    fn keep(&mut self, index: usize, held: Held) {
        // What its node was told to do for this is called off: when it may go, its work has its time again. A drain
        // for its health is the remedy's to stop.
        let ours = |hold: &Hold| hold.by == BY && !hold.automatic;
        if let Some(member) = self.member(index)
            && let Some(node) = member.node
            && let Duty::Draining { hold, done: false, .. } = &node.duty
            && ours(hold)
        {
            let (node, reason) = (node.id.clone(), format!("it is not drained for now: {held}"));
            let instance = member.instance.id.clone();
            if member.instance.departure.is_some() {
                self.plan.steps.push(Step::Stay { instance });
            }
            self.plan.steps.push(Step::Cordon { node, reason });
        }
        if self.summary.kept.iter().all(|(kept, _)| *kept != index) {
            self.summary.kept.push((index, held));
        }
    }

    fn leave(&mut self, index: usize, reason: Reason) {
        let Some(member) = self.member(index) else { return };
        if let Err(held) = self.permit(index, &reason) {
            return self.keep(index, held);
        }
        self.departing.insert(index);
        self.plan.steps.push(Step::Leave { instance: member.instance.id.clone(), reason });
        self.summary.parting.push(index);
    }

    /// The pool is deleted: everything goes, as soon as what runs there has ended or had its time.
    fn delete(mut self) -> Plan {
        let now = self.picture.resource.without_drain;
        let mut left = Vec::new();
        for (index, member) in self.picture.members.iter().enumerate() {
            if member.instance.state.is_over() {
                continue;
            }
            left.push(index);
            let adopted = member.instance.adopted && self.standing(index) == Standing::Coming;
            match &member.instance.state {
                State::Terminating(leaving) => {
                    if Reason::PoolDeleted.outweighs(&leaving.reason) {
                        self.leave(index, Reason::PoolDeleted);
                    }
                }
                // What runs there nobody knows before its node has registered, or had its time to.
                State::AwaitingNode { .. } if adopted && !now => {}
                State::Running { .. } if !now && self.may_run_work(index) => {
                    self.part(index, "the pool is deleted", Reason::PoolDeleted);
                }
                State::Provisioning(_)
                | State::AwaitingNode { .. }
                | State::Running { .. }
                | State::Terminated { .. }
                | State::Failed { .. } => self.leave(index, Reason::PoolDeleted),
            }
        }
        self.plan.outcome = outcome::removing(self.picture, &left, &self.cost);
        self.plan
    }

    /// Whether work may run there: its agent registered, and was not given up.
    fn may_run_work(&self, index: usize) -> bool {
        let Some(member) = self.member(index) else { return false };
        match self.standing(index) {
            Standing::Sick { lost } => !lost,
            Standing::Terminated(_) | Standing::Leaving | Standing::Coming => false,
            Standing::Ready
            | Standing::Unsure
            | Standing::Recovering
            | Standing::Parting
            | Standing::Held
            | Standing::Condemned(_)
            | Standing::Reclaimed => member.node.is_some(),
        }
    }

    /// Who holds a seat, and who is to take whose.
    fn sit(&mut self) {
        let live = |standing: &Option<Standing>| standing.as_ref().is_some_and(Standing::is_seated);
        let seated = || {
            let all = self.picture.members.iter().zip(&self.standings).enumerate();
            all.filter(|(_, (_, standing))| live(standing))
                .map(|(index, (member, _))| (index, member.instance))
        };
        let late = seated().filter_map(|(index, one)| Some((index, one.replaces.as_ref()?)));
        let late: Vec<(usize, &InstanceId)> = late.collect();
        let early: HashSet<&InstanceId> = late.iter().map(|(_, replaces)| *replaces).collect();
        let early: HashMap<&InstanceId, usize> = seated()
            .filter(|(_, one)| !early.is_empty() && early.contains(&one.id))
            .map(|(index, one)| (&one.id, index))
            .collect();
        let mut replaced: HashMap<usize, usize> = HashMap::new();
        let mut replacing: BTreeSet<usize> = BTreeSet::new();
        for (index, replaces) in late {
            let Some(old) = early.get(replaces).copied() else { continue };
            let hopeful = self.standing(index).is_hopeful() && !self.is_bad(index);
            if hopeful && !replaced.contains_key(&old) && self.is_to_go(old) {
                replaced.insert(old, index);
                replacing.insert(index);
            }
        }
        // What was ordered for one that is as it should be: most are its like, and are not asked in what they
        // are not.
        let mut model: Option<&Instance> = None;
        for index in 0..self.standings.len() {
            let seated = self.standings.get(index).is_some_and(live);
            let Some(member) = self.member(index).filter(|_| seated && !replacing.contains(&index))
            else {
                continue;
            };
            let outdated = match model.is_some_and(|model| is_like(member, model)) {
                true => self.bad_gpu(member),
                false => self.outdated(index),
            };
            if outdated.is_none() && member.notice.is_none() {
                model = Some(member.instance);
            }
            let replacement = replaced.get(&index).copied();
            self.seats.push(Seat { member: index, replacement, outdated, leaving: false });
        }
    }

    /// Whether a node is sick or silent, although nobody has taken it out of service for it. One that is to
    /// take another's place will not do so any time soon, and must not keep others from being replaced.
    fn is_bad(&self, index: usize) -> bool {
        let Some(member) = self.member(index) else { return false };
        let sick = |node: &Node| node.health.state == HealthState::Unhealthy && member.heard;
        match member.node {
            Some(node) => member.lost_for.is_some() || sick(node),
            None => matches!(self.standing(index), Standing::Sick { .. }),
        }
    }

    /// Whether a node is to be replaced as it is now. One that is well again is not.
    fn is_to_go(&self, index: usize) -> bool {
        match self.standing(index) {
            Standing::Sick { .. } | Standing::Recovering | Standing::Held => true,
            Standing::Ready | Standing::Unsure | Standing::Coming | Standing::Parting => {
                self.outdated(index).is_some()
            }
            Standing::Condemned(_)
            | Standing::Reclaimed
            | Standing::Terminated(_)
            | Standing::Leaving => false,
        }
    }

    fn outdated(&self, index: usize) -> Option<String> {
        let member = self.member(index)?;
        self.bad_gpu(member).or_else(|| outdated(member, self.picture))
    }

    fn bad_gpu(&self, member: &Member<'_>) -> Option<String> {
        let bad = member.node.and_then(|node| bad_serial(node, self.picture));
        bad.map(|serial| format!("its GPU {serial} is known to be bad"))
    }

    /// Those who hold no seat: terminated by a person, refused at boot, taken back by their provider.
    fn see_off_unseated(&mut self) {
        for index in 0..self.standings.len() {
            match self.standings.get(index).cloned().flatten() {
                Some(Standing::Terminated(by)) => {
                    self.leave(index, Reason::NodeTerminated { by });
                }
                Some(Standing::Condemned(serial)) if self.picture.stopped.is_none() => {
                    self.leave(index, Reason::BadHardware { serial });
                }
                Some(Standing::Reclaimed) => {
                    let at = self.member(index).and_then(|member| member.notice?.at);
                    if let Some(at) = at.filter(|at| self.now < *at) {
                        self.wake(at);
                    }
                    let over = at.is_some_and(|at| at <= self.now);
                    if over || self.is_lost(index) {
                        self.leave(index, Reason::Reclaimed);
                    } else {
                        let why = "its provider takes it back";
                        self.part(index, why, Reason::Reclaimed);
                    }
                }
                _ => {}
            }
        }
    }

    fn is_lost(&self, index: usize) -> bool {
        let lost = self.member(index).and_then(|member| member.lost_for);
        lost.is_some_and(|time| self.picture.act_after <= time)
    }

    /// One step on a node's way out: cordon, drain, and when the drain has ended or the machine's own deadline
    /// has passed, the return. Nothing is done to the node before the permit to end its machine was given.
    fn part(&mut self, index: usize, why: &str, reason: Reason) {
        let Some(member) = self.member(index) else { return };
        let Some(node) = member.node else { return self.leave(index, reason) };
        if let Err(held) = self.permit(index, &reason) {
            return self.keep(index, held);
        }
        let departure = member.instance.departure.as_ref();
        let known = departure.map(|departure| departure.reason.clone());
        let reason = match known {
            Some(known) if known.outweighs(&reason) => known,
            Some(_) | None => reason,
        };
        let drain = drained(node, self.now);
        let deadline = match (departure, &drain) {
            (Some(departure), _) => departure.deadline,
            (None, Drained::Until(deadline) | Drained::Overdue(deadline)) => *deadline,
            (None, Drained::NotBegun | Drained::Done) => later(self.now, self.picture.drain_for),
        };
        if matches!(drain, Drained::Done) || deadline <= self.now {
            if let Reason::Replaced { because, .. } = &reason {
                self.condemn(index, because.clone());
            }
            return self.leave(index, reason);
        }
        self.departing.insert(index);
        self.summary.parting.push(index);
        self.wake(deadline);
        if departure.is_none_or(|known| reason.outweighs(&known.reason)) {
            let instance = member.instance.id.clone();
            let reason = reason.clone();
            self.plan.steps.push(Step::Depart { instance, reason, deadline });
        }
        // One that ended with work left, before the machine's own deadline, is asked for again.
        let begun = match drain {
            Drained::Until(_) | Drained::Done => true,
            Drained::NotBegun | Drained::Overdue(_) => false,
        };
        if member.commanded || begun {
            return;
        }
        let hurry = matches!(reason, Reason::Reclaimed | Reason::PoolDeleted);
        let (node_id, reason_of, reason) = (node.id.clone(), reason, why.to_owned());
        // The command has what is left of the one deadline, however often it is given.
        let drain_for = Some(deadline.duration_since(self.now).max(DRAIN_LEAST));
        self.plan.steps.push(match node.duty.hold() {
            // Cordoned first, so that the whole walk can be seen; a drain does both.
            None if !hurry => Step::Cordon { node: node_id, reason },
            hold => {
                // What a person asked for goes on under a pause, which stops our own drains.
                let asked = self.picture.stopped.is_some() && gate::asked_for(&reason_of);
                let automatic = hold.is_some_and(|hold| hold.automatic) && !asked;
                let theirs = hold.filter(|_| self.standing(index) == Standing::Held);
                let by =
                    theirs.map_or_else(|| BY.to_owned(), |hold| format!("{BY} for {}", hold.by));
                Step::Drain { node: node_id, reason, automatic, by, drain_for }
            }
        });
    }

    fn condemn(&mut self, index: usize, because: String) {
        let Some(member) = self.member(index) else { return };
        let serials = cure::condemned(member);
        if let Some(node) = member.node.filter(|_| !serials.is_empty()) {
            self.plan.steps.push(Step::Condemn { serials, because, node: node.id.clone() });
        }
    }

    fn wait_for_window(&mut self) {
        let opens = self.picture.spec.maintenance.next_edge(self.now);
        self.summary.window = opens;
        if let Some(at) = opens {
            self.wake(at);
        }
    }

    /// Seats that nobody holds. Those of machines that are being taken back keep their number.
    fn grow(&mut self) {
        let seats = u32::try_from(self.seats.len()).unwrap_or(u32::MAX);
        let missing = self.target.saturating_sub(seats);
        (self.summary.missing, self.whole) = (missing, missing == 0);
        if missing == 0 || !self.picture.its_turn {
            return;
        }
        let successors: BTreeSet<&str> = self
            .picture
            .members
            .iter()
            .filter(|member| !member.instance.state.is_over())
            .filter_map(|member| member.instance.replaces.as_ref().map(InstanceId::as_str))
            .collect();
        let going: Vec<&Member<'a>> = self
            .standings
            .iter()
            .zip(&self.picture.members)
            .filter(|(standing, _)| **standing == Some(Standing::Reclaimed))
            .map(|(_, member)| member)
            .filter(|member| !successors.contains(member.instance.id.as_str()))
            .collect();
        let mut going = going.into_iter();
        for _ in 0..missing {
            // Two who were one another's replacement can count as one again; they are sorted out first.
            if !self.may_exceed() {
                return;
            }
            let bought = match going.next() {
                Some(member) => {
                    let id = member.instance.id.clone();
                    let number = self.number_for(member.instance.number, 0);
                    let why = format!("{id} is taken back by its provider");
                    self.buy(number, Some(id), why, Purpose::Seat)
                }
                None => {
                    let number = self.number_for(self.free, 0);
                    self.free = number.saturating_add(1);
                    let why = format!("node {number} of {}", self.target);
                    self.buy(number, None, why, Purpose::Seat)
                }
            };
            if !bought {
                return;
            }
            self.summary.missing -= 1;
        }
    }

    fn numbers(&mut self) -> &mut BTreeMap<u32, u32> {
        let (members, standings) = (&self.picture.members, &self.standings);
        self.numbers.get_or_insert_with(|| {
            let mut numbers = BTreeMap::new();
            for (member, standing) in members.iter().zip(standings) {
                if standing.as_ref().is_some_and(Standing::is_seated) {
                    *numbers.entry(member.instance.number).or_default() += 1;
                }
            }
            numbers
        })
    }

    /// The number for a purchase: this one if no more than so many hold it, else the next that nobody holds.
    fn number_for(&mut self, wanted: u32, holders: u32) -> u32 {
        let free = self.free;
        let numbers = self.numbers();
        let held = |number: &u32| numbers.get(number).copied().unwrap_or(0);
        if held(&wanted) <= holders {
            return wanted;
        }
        (free..=u32::MAX).find(|number| held(number) == 0).unwrap_or(wanted)
    }

    /// Nodes that are sick or lost: cured, or replaced, who has been so for longest first.
    fn heal(&mut self) {
        let mut sick: Vec<(Timestamp, usize)> = Vec::new();
        for (at, seat) in self.seats.iter().enumerate() {
            let ill = matches!(self.standing(seat.member), Standing::Sick { .. }) && !seat.leaving;
            let member = self.member(seat.member).filter(|_| ill);
            sick.extend(member.map(|member| (cure::fell_ill_at(member), at)));
        }
        if sick.is_empty() {
            return;
        }
        sick.sort_unstable();
        for (_, seat) in sick {
            let Some(Seat { member: index, replacement, .. }) = self.seats.get(seat) else {
                continue;
            };
            let (index, replacement) = (*index, *replacement);
            let (doing, human) = match replacement {
                Some(replacement) => (self.hand_over(index, replacement), false),
                None => self.treat(index),
            };
            self.summary.sick.push(Sick { member: index, doing, human });
        }
    }

    /// Those about whom nobody has decided anything: they do not wait for ever. One without a node is lost when
    /// its time is over; one that is never judged somebody has to look at, for it may well do its work.
    fn watch_unsure(&mut self) {
        for index in 0..self.standings.len() {
            let unsure =
                self.standings.get(index).is_some_and(|one| *one == Some(Standing::Unsure));
            if !unsure || self.summary.parting.contains(&index) {
                continue;
            }
            let Some(member) = self.member(index) else { continue };
            let limit = self.picture.register_within;
            let Some(node) = member.node else {
                if let Some(time) = member.lost_for {
                    self.wake(later(self.now, limit.saturating_sub(time)));
                }
                continue;
            };
            match unjudged_from(node, self.picture) {
                Some(from) if from <= self.now => {
                    let doing = "its agent sends no checks, so nobody can say how it is".to_owned();
                    self.summary.sick.push(Sick { member: index, doing, human: true });
                }
                Some(from) => self.wake(from),
                None => {}
            }
        }
    }

    /// A node whose replacement is bought: it goes when that is ready.
    fn hand_over(&mut self, index: usize, replacement: usize) -> String {
        let Some((member, new)) = self.member(index).zip(self.member(replacement)) else {
            return String::new();
        };
        let new_id = &new.instance.id;
        if !self.is_ready(replacement) {
            let coming = self.standing(replacement) == Standing::Coming;
            if coming && self.picture.its_turn && self.outdated(replacement).is_some() {
                let said = format!("replacement {new_id} is not what the spec asks for any more");
                self.leave(replacement, Reason::Unwanted);
                return said;
            }
            let how = if coming { "is ordered" } else { "has registered and is being checked" };
            return format!("replacement {new_id} {how}");
        }
        let because = cure::ailment(member);
        let reason = Reason::Replaced { by: Some(new_id.clone()), because: because.clone() };
        if let Err(held) = self.permit(index, &reason) {
            let said = format!("replacement {new_id} is ready; it stays for now: {held}");
            self.keep(index, held);
            return said;
        }
        if self.standing(index) == (Standing::Sick { lost: true }) {
            self.condemn(index, because);
            self.leave(index, reason);
            return format!("replacement {new_id} is ready, and it is returned");
        }
        self.part(index, &because, reason);
        match member.node.map(|node| drained(node, self.now)) {
            Some(Drained::Until(deadline)) => {
                format!("replacement {new_id} is ready; draining until {deadline}")
            }
            Some(Drained::NotBegun | Drained::Overdue(_) | Drained::Done) | None => {
                format!("replacement {new_id} is ready; it is drained and returned")
            }
        }
    }

    /// The next step of the ladder for a node without a replacement; whether a person is needed.
    fn treat(&mut self, index: usize) -> (String, bool) {
        let Some(member) = self.member(index) else { return (String::new(), false) };
        match self.picture.spec.remedy {
            Remedy::Replace => {}
            Remedy::Observe | Remedy::Cordon | Remedy::Drain => {
                return ("spec.remedy does not let it be replaced".to_owned(), true);
            }
        }
        if let Some(stopped) = self.picture.stopped {
            return (format!("nothing is done: {stopped}"), false);
        }
        let abilities = self.picture.providers.get(&member.instance.order.provider);
        let abilities = abilities.map(|facts| &facts.abilities);
        let because = cure::ailment(member);
        let treatment = cure::treat(member, self.picture.spec, abilities, self.now);
        if treatment == Treatment::Replace
            && let Some(why) = self.in_vain(member.instance.number)
        {
            return (why, true);
        }
        match (treatment, member.node) {
            (Treatment::Diagnose, Some(node)) => {
                if !member.commanded {
                    let (instance, node) = (member.instance.id.clone(), node.id.clone());
                    self.plan.steps.push(Step::Diagnose { instance, node, because });
                }
                ("its GPUs are tested".to_owned(), false)
            }
            (Treatment::Reboot, Some(node)) => (self.reboot(member, node, because), false),
            (Treatment::Wait(until, what), _) => {
                self.wake(until);
                (what.to_owned(), false)
            }
            (Treatment::Human(why), _) => (why.to_owned(), true),
            // Without a node there is nobody to be tested or told to end its work.
            (Treatment::Replace, _) | (Treatment::Diagnose | Treatment::Reboot, None) => {
                (self.replace(index, because), false)
            }
        }
    }

    /// What runs on a node has to end before it boots again.
    fn reboot(&mut self, member: &Member<'_>, node: &Node, because: String) -> String {
        let (instance, node_id) = (member.instance.id.clone(), node.id.clone());
        match drained(node, self.now) {
            Drained::Done | Drained::Overdue(_) => {
                self.plan.steps.push(Step::Reboot { instance, node: node_id, because });
                "it boots again".to_owned()
            }
            Drained::Until(deadline) => {
                self.wake(deadline);
                format!("draining until {deadline}, then it boots again")
            }
            Drained::NotBegun => {
                if !member.commanded {
                    self.plan.steps.push(Step::Drain {
                        node: node_id,
                        reason: because,
                        automatic: node.duty.hold().is_none_or(|hold| hold.automatic),
                        by: BY.to_owned(),
                        drain_for: self.picture.spec.drain_for,
                    });
                }
                "it is drained, then it boots again".to_owned()
            }
        }
    }

    /// Another is bought for a sick node, if it may be.
    fn replace(&mut self, index: usize, because: String) -> String {
        let Some(member) = self.member(index) else { return String::new() };
        let (number, id) = (self.number_for(member.instance.number, 1), member.instance.id.clone());
        if !self.may_exceed() {
            return "it waits for its turn: as many as spec.maxUnavailable allows are being replaced"
                .to_owned();
        }
        let why = format!("{id} is to be replaced: {because}");
        if self.buy(number, Some(id), why, Purpose::Sick) {
            return "a replacement is ordered".to_owned();
        }
        if self.makes_room(index) {
            // It has nothing left to lose, and what it costs can be had back for one that works.
            self.leave(index, Reason::Replaced { by: None, because });
            return "it is returned to make room for another".to_owned();
        }
        if self.goes_first(index) {
            self.part(index, &because.clone(), Reason::Replaced { by: None, because });
            return "no other can be bought beside it: it is drained and returned first".to_owned();
        }
        "it is kept until a replacement can be bought".to_owned()
    }

    /// Whether one more machine may be held than the pool is to have.
    fn may_exceed(&self) -> bool {
        let extra = self.held.saturating_sub(self.target);
        extra < self.picture.spec.max_unavailable.of(self.target)
    }

    /// Whether a lost node is given up before there is another, because that may be what it takes to get one.
    fn makes_room(&self, index: usize) -> bool {
        let lost = self.member(index).and_then(|member| member.lost_for);
        let for_good = lost.is_some_and(|time| LOST_FOR_GOOD.max(self.picture.act_after) <= time);
        for_good && self.is_full()
    }

    /// Whether a sick node that still answers is drained and returned before there is another: the capacity is
    /// fixed (reserved machines, static hosts, an allowance for exactly so many), and its provider has said so
    /// for some time.
    fn goes_first(&self, index: usize) -> bool {
        let Some(member) = self.member(index) else { return false };
        let lasting = passed(cure::fell_ill_at(member), FULL_FOR, self.now);
        let out = self.seats.iter().filter(|seat| {
            let departure = self.member(seat.member).and_then(|it| it.instance.departure.as_ref());
            let first =
                departure.is_some_and(|it| matches!(it.reason, Reason::Replaced { by: None, .. }));
            first && seat.member != index
        });
        let out = u32::try_from(out.count()).unwrap_or(u32::MAX);
        let out = out.saturating_add(self.summary.missing);
        self.picture.spec.replacement == Replacement::Auto
            && lasting
            && self.is_fixed()
            && out < self.picture.spec.max_unavailable.of(self.target)
    }

    /// Whether a provider has said again and again that we have as much as we may have: no more of it comes by
    /// waiting. That it has sold out is another matter: whoever returns a machine then has one less.
    fn is_fixed(&self) -> bool {
        let fixed = |trouble: &Trouble| match trouble {
            Trouble::Quota { .. } => true,
            Trouble::Capacity { code, .. } => FIXED_CODES.contains(&code.as_str()),
            Trouble::Unsure(_)
            | Trouble::Throttled { .. }
            | Trouble::Credentials(_)
            | Trouble::Denied { .. }
            | Trouble::Invalid { .. }
            | Trouble::NotFound(_)
            | Trouble::Unreachable(_)
            | Trouble::Unable(_) => false,
        };
        match &self.summary.blocked {
            Some((_, Blocked::Cost { .. })) => true,
            Some((_, Blocked::NoPlace { closed, .. })) => closed.iter().any(|closed| {
                matches!(closed, Closed::Failed(_, _, backoff)
                    if FULL_AFTER <= backoff.failures && fixed(&backoff.trouble))
            }),
            Some((
                _,
                Blocked::Paused(_) | Blocked::BadHardware { .. } | Blocked::PriceUnknown { .. },
            ))
            | None => false,
        }
    }

    /// Whether nothing more can be bought because as much as there may be is held already.
    fn is_full(&self) -> bool {
        match &self.summary.blocked {
            Some((_, Blocked::Cost { .. })) => true,
            Some((_, Blocked::NoPlace { closed, .. })) => {
                closed.iter().any(|closed| matches!(closed, Closed::Failed(..)))
            }
            Some((
                _,
                Blocked::Paused(_) | Blocked::BadHardware { .. } | Blocked::PriceUnknown { .. },
            ))
            | None => false,
        }
    }

    /// Nodes that are not what the spec asks for: replaced a few at a time, while a window is open.
    fn update(&mut self) {
        let spec = self.picture.spec;
        let mut waiting: Vec<(u8, Timestamp, usize)> = Vec::new();
        for at in 0..self.seats.len() {
            let Some(Seat { member: index, replacement, outdated, leaving }) = self.seats.get(at)
            else {
                continue;
            };
            let (index, replacement) = (*index, *replacement);
            let Some(because) = outdated.clone().filter(|_| !leaving) else { continue };
            if matches!(self.standing(index), Standing::Sick { .. } | Standing::Held) {
                continue;
            }
            self.summary.outdated += 1;
            self.summary.outdated_in.get_or_insert_with(|| because.clone());
            match replacement {
                Some(replacement) => self.update_to(index, replacement, &because),
                // Nothing runs there yet, so nobody is disturbed, and the right one can be ordered now.
                None if self.standing(index) == Standing::Coming => {
                    if self.picture.its_turn {
                        self.leave(index, Reason::Unwanted);
                    }
                }
                None => {
                    let member = self.member(index);
                    let key = member.map(|member| (busy(member), member.instance.ordered_at, at));
                    waiting.extend(key);
                }
            }
        }
        let failed = self.book().update_failed.is_some();
        if waiting.is_empty() || self.picture.stopped.is_some() || !self.picture.its_turn || failed
        {
            return;
        }
        let window = spec.maintenance.contains(self.now);
        waiting.sort_unstable();
        let mut disturbed = self.disturbed();
        for (_, _, seat) in waiting {
            let Some(seat) = self.seats.get(seat) else { continue };
            let (index, because) = (seat.member, seat.outdated.clone().unwrap_or_default());
            let Some(member) = self.member(index) else { continue };
            if member.notice.is_none() && !(window && self.fits_window()) {
                self.wait_for_window();
                continue;
            }
            if !self.whole
                || !self.may_exceed()
                || spec.max_unavailable.of(self.target) <= disturbed
            {
                return;
            }
            let number = self.number_for(member.instance.number, 1);
            let id = member.instance.id.clone();
            let why = format!("{id} is to be replaced: {because}");
            if !self.buy(number, Some(id), why, Purpose::Update) {
                return;
            }
            disturbed = disturbed.saturating_add(1);
        }
    }

    /// How many of the pool's nodes are out of service for any reason, being replaced, or so new that nobody
    /// can say yet whether they are better than what they replaced.
    fn disturbed(&mut self) -> u32 {
        let mut disturbed = 0_u32;
        for at in 0..self.seats.len() {
            let Some(Seat { member: index, replacement, outdated, leaving }) = self.seats.get(at)
            else {
                continue;
            };
            if *leaving {
                continue;
            }
            let (index, changing) = (*index, replacement.is_some() || !self.is_ready(*index));
            let new = outdated.is_none()
                && self.member(index).is_some_and(|it| it.instance.purpose == Purpose::Update);
            if changing || new && !self.has_soaked(index) {
                disturbed = disturbed.saturating_add(1);
            }
        }
        disturbed
    }

    /// Whether a new node has been in service for `minReady`, and its checks passed more than once.
    fn has_soaked(&mut self, index: usize) -> bool {
        let least = self.picture.spec.min_ready;
        if !self.is_ready(index) {
            return false;
        }
        if least.is_zero() {
            return true;
        }
        let Some(member) = self.member(index) else { return false };
        let Some(since) = stand::serving_since(member) else { return false };
        let from = later(since, least);
        if self.now < from {
            self.summary.soaking.push(index);
            self.wake(from);
            return false;
        }
        // Its checks passed once for it to be in service, and once more since; where no report of it is heard (it
        // speaks to another process, or says only what changed), twice the time stands for that.
        let anyway = later(since, least.saturating_mul(2));
        let again = member.reported_at.is_some_and(|at| since < at) || anyway <= self.now;
        if !again {
            self.summary.soaking.push(index);
            self.wake(anyway.min(later(self.now, REPORTS_AFTER)));
        }
        again
    }

    /// Whether a replacement that is begun now can be finished before the window closes.
    fn fits_window(&mut self) -> bool {
        let Some(closes) = self.picture.spec.maintenance.next_edge(self.now) else { return true };
        let boot =
            self.picture.book.boot_s.map(|seconds| SignedDuration::from_secs(seconds.into()));
        let takes = boot
            .unwrap_or(self.picture.register_within)
            .saturating_add(self.picture.spec.min_ready)
            .saturating_add(self.picture.drain_for);
        let fits = later(self.now, takes) <= closes;
        if !fits {
            self.summary.window_short = Some(takes);
        }
        fits
    }

    /// One step from a node that is not what the spec asks for to the one that is.
    fn update_to(&mut self, index: usize, replacement: usize, because: &str) {
        let Some((member, new)) = self.member(index).zip(self.member(replacement)) else { return };
        let coming = self.standing(replacement) == Standing::Coming;
        if coming && self.outdated(replacement).is_some() {
            // The spec changed again before it was up.
            return self.leave(replacement, Reason::Unwanted);
        }
        let parting = self.standing(index) == Standing::Parting;
        let update = new.instance.purpose == Purpose::Update;
        if update && !parting && self.book().update_failed.is_some() {
            return self.leave(replacement, Reason::Unwanted);
        }
        if !parting && !self.picture.spec.maintenance.contains(self.now) && member.notice.is_none()
        {
            self.wait_for_window();
            // Nobody pays for both until the window opens again.
            if update {
                self.leave(replacement, Reason::Unwanted);
            }
            return;
        }
        if !self.is_ready(replacement) || update && !self.has_soaked(replacement) {
            return;
        }
        if self.is_ready(index) {
            if self.ready <= self.picture.spec.min_available {
                return;
            }
            self.ready -= 1;
        }
        let by = Some(new.instance.id.clone());
        self.part(index, because, Reason::Replaced { by, because: because.to_owned() });
    }

    /// Nodes that were on their way out and are wanted after all.
    fn keep_wanted(&mut self) {
        let kept: BTreeSet<usize> = self.summary.kept.iter().map(|(index, _)| *index).collect();
        for seat in &self.seats {
            let index = seat.member;
            let goes = seat.leaving || seat.replacement.is_some();
            if goes || self.departing.contains(&index) || kept.contains(&index) {
                continue;
            }
            let Some(member) = self.member(index) else { continue };
            if member.instance.departure.is_some() {
                self.plan.steps.push(Step::Stay { instance: member.instance.id.clone() });
            }
            // What its cordon was given for is over; one that a person or its health asks for is not ours.
            let ours = self.standing(index) == Standing::Parting;
            let held = |node: &&Node| node.duty.hold().is_some();
            if let Some(node) = member.node.filter(|_| ours && !member.commanded).filter(held) {
                let reason = "the pool wants it after all".to_owned();
                self.plan.steps.push(Step::Uncordon { node: node.id.clone(), reason });
            }
        }
    }

    /// Buys one machine, if there is a place and nothing speaks against it.
    fn buy(
        &mut self,
        number: u32,
        replaces: Option<InstanceId>,
        why: String,
        purpose: Purpose,
    ) -> bool {
        if let Some(blocked) = self.barred.clone() {
            return self.block(purpose, blocked);
        }
        // This look found out that it must not; the next one says so.
        if self.book().paused.is_some() {
            return false;
        }
        let book = self.book.as_ref().unwrap_or(self.picture.book);
        let chooser = self
            .chooser
            .get_or_insert_with(|| chooser(self.picture, book, &self.standings, self.now));
        let Some(order) = chooser.peek() else {
            let until = chooser.opens_at();
            let closed = chooser.closed(self.picture.providers);
            if let Some(at) = until.filter(|at| self.now < *at) {
                self.wake(at);
            }
            return self.block(purpose, Blocked::NoPlace { closed, until });
        };
        if let Some(max) = self.picture.spec.max_hourly_cost {
            let missing = self.cost.uncounted.map(|(of, at)| (of.to_owned(), at.to_owned()));
            match (missing, self.cost.next(&order)) {
                (None, Some(next)) if max < self.cost.sum + next => {
                    let sum = self.cost.sum;
                    return self.block(purpose, Blocked::Cost { sum, next, max });
                }
                (None, Some(_)) => {}
                (Some((machine_type, provider)), _) => {
                    return self.block(purpose, Blocked::PriceUnknown { machine_type, provider });
                }
                (None, None) => {
                    let (machine_type, provider) = (order.machine_type, order.provider);
                    return self.block(purpose, Blocked::PriceUnknown { machine_type, provider });
                }
            }
        }
        let Some(order) = chooser.next() else { return false };
        _ = self.cost.add(&order, self.picture);
        *self.numbers().entry(number).or_default() += 1;
        self.held = self.held.saturating_add(1);
        self.summary.buying += 1;
        self.plan.buy.push(Buy { number, order, replaces, purpose, why });
        true
    }

    fn block(&mut self, purpose: Purpose, blocked: Blocked<'p>) -> bool {
        if let Blocked::BadHardware { until, .. } = &blocked {
            self.wake(*until);
        }
        self.summary.blocked.get_or_insert((purpose, blocked));
        false
    }

    fn finish(mut self) -> Plan {
        self.count();
        if let Some(chooser) = self.chooser.as_ref().filter(|_| !self.plan.buy.is_empty()) {
            let ordered = chooser.ordered;
            self.book_mut().ordered = ordered;
        }
        self.plan.book = self.book.take();
        self.plan.outcome = if self.picture.its_turn {
            let book = self.plan.book.as_ref().unwrap_or(self.picture.book);
            outcome::of(self.picture, book, &self.summary, &self.cost, self.now)
        } else {
            Outcome::Waiting
        };
        self.plan
    }

    /// Who is ready, and who is waited for.
    fn count(&mut self) {
        let told: BTreeSet<usize> = self.summary.sick.iter().map(|sick| sick.member).collect();
        for (index, standing) in self.standings.iter().enumerate() {
            match standing {
                _ if told.contains(&index) => {}
                Some(Standing::Ready) => self.summary.ready.push(index),
                Some(Standing::Coming) => self.summary.coming.push(index),
                Some(Standing::Unsure | Standing::Recovering) => self.summary.unsure.push(index),
                Some(Standing::Held) => self.summary.held.push(index),
                Some(
                    Standing::Sick { .. }
                    | Standing::Parting
                    | Standing::Condemned(_)
                    | Standing::Reclaimed
                    | Standing::Terminated(_)
                    | Standing::Leaving,
                )
                | None => {}
            }
        }
    }
}

/// What keeps us from buying anything at all.
fn bar<'p>(picture: &'p Picture<'_>, lifted: bool, now: Timestamp) -> Option<Blocked<'p>> {
    if let Some(paused) = picture.book.paused.as_ref().filter(|_| !lifted) {
        return Some(Blocked::Paused(paused));
    }
    let bad = picture.members.iter().filter_map(|member| match &member.instance.state {
        State::Terminated { at, reason: Reason::BadHardware { .. }, .. } => Some(*at),
        State::Terminating(leaving) => {
            matches!(leaving.reason, Reason::BadHardware { .. }).then_some(leaving.since)
        }
        State::Provisioning(_)
        | State::AwaitingNode { .. }
        | State::Running { .. }
        | State::Terminated { .. }
        | State::Failed { .. } => None,
    });
    let until = bad.map(|at| later(at, BAD_HARDWARE_WITHIN)).filter(|until| now < *until);
    let until: Vec<Timestamp> = until.collect();
    let machines = until.len();
    let until = until.into_iter().min()?;
    (BAD_HARDWARE_MAX <= machines).then_some(Blocked::BadHardware { machines, until })
}

/// Where to buy, as things are.
fn chooser<'p, 'a: 'p>(
    picture: &'p Picture<'a>,
    book: &PoolBook,
    standings: &[Option<Standing>],
    now: Timestamp,
) -> Chooser<'p> {
    let residents = picture.members.iter().zip(standings).filter_map(|(member, standing)| {
        let standing = standing.as_ref().filter(|standing| standing.is_seated())?;
        Some(Resident {
            order: &member.instance.order,
            lost: *standing == Standing::Sick { lost: true } || member.lost_for.is_some(),
            asked: matches!(member.instance.state, State::Provisioning(_)),
            stuck: match &member.instance.state {
                State::Provisioning(buying) => 1 < buying.calls && buying.trouble.is_some(),
                State::AwaitingNode { .. }
                | State::Running { .. }
                | State::Terminating(_)
                | State::Terminated { .. }
                | State::Failed { .. } => false,
            },
        })
    });
    let residents: Vec<Resident<'p>> = residents.collect();
    Chooser::new(picture.spec, picture.providers, book, residents.into_iter(), now)
}

/// How a node's drain stands.
enum Drained {
    NotBegun,
    Until(Timestamp),
    /// It has ended or its deadline has passed, and work may be left.
    Overdue(Timestamp),
    /// Nothing runs there any more.
    Done,
}

fn drained(node: &Node, now: Timestamp) -> Drained {
    match &node.duty {
        Duty::Draining { .. } if node.is_emptied() => Drained::Done,
        Duty::Draining { deadline, done: true, .. } => Drained::Overdue(*deadline),
        Duty::Draining { deadline, .. } if *deadline <= now => Drained::Overdue(*deadline),
        Duty::Draining { deadline, .. } => Drained::Until(*deadline),
        Duty::Active | Duty::Cordoned(_) | Duty::Terminated(_) => Drained::NotBegun,
    }
}
