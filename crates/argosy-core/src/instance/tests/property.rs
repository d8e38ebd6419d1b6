//! What holds of every record, whatever a cloud does to it and wherever we crash.

use crate::fixture::{at, permitted};
use crate::gate::{self, Guards};
use crate::instance::fixture::{OURS, abilities, always, intent, machine_of, node_id, pool};
use crate::instance::{Instance, Limits, ListingFacts, Next, Reason, State, next};
use crate::invariant::{self, Change};
use crate::inventory::{Known, Listing, PoolFacts, ProviderBook, compare};
use crate::machine::{Abilities, Machine, MachineState, Trouble};
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;

/// How many records there are: enough for a vanish guard.
const RECORDS: usize = 4;

/// How long a call may take to have its effect after we lost sight of it. Seconds; that our calls have a
/// deadline well below is what the settle window relies on.
const EFFECT_WITHIN: i64 = 60;

/// What becomes of a call that makes a machine.
#[derive(Clone, Copy, Debug)]
enum Create {
    /// It works, and we hear of it.
    Answered,
    /// It works, and the answer comes when it likes, more than once.
    AnsweredLate,
    /// It works after so many seconds, and we hear nothing.
    Lost(i64),
    /// We crash before it.
    CrashBefore,
    /// We crash after it; it works after so many seconds.
    CrashAfter(i64),
    /// It does not work, and we hear nothing.
    LostForNothing,
    /// It does not work.
    Refused(u8),
}

/// What becomes of a call that ends a machine.
#[derive(Clone, Copy, Debug)]
enum End {
    /// It works after so many seconds.
    Works(i64),
    /// It is said to work, and does not.
    Lies,
    /// It works, and we hear nothing.
    Lost,
    /// It does not work.
    Refused(u8),
    /// We crash before it.
    CrashBefore,
}

/// What becomes of a look.
#[derive(Clone, Copy, Debug)]
enum Look {
    /// It shows what was so many parts in ten of the lag ago.
    Behind(u8),
    /// The same, and its answer is heard only after so many other things.
    HeardLate(u8),
    /// It fails.
    Fails(u8),
}

#[derive(Clone, Debug)]
enum Happens {
    /// What `next` says is done, with these outcomes.
    Acts(usize, Create, End, Look),
    /// The whole provider is listed.
    Lists(Look),
    /// An answer that was held back is heard.
    Hears(usize),
    Registers(usize),
    Leaves(usize, u8),
    /// The provider takes a machine away.
    Reclaims(usize),
    Passes(i64),
}

fn any_look() -> impl Strategy<Value = Look> {
    prop_oneof![
        6 => (0_u8..=10).prop_map(Look::Behind),
        2 => (0_u8..=10).prop_map(Look::HeardLate),
        1 => (0_u8..4).prop_map(Look::Fails),
    ]
}

fn any_create() -> impl Strategy<Value = Create> {
    prop_oneof![
        2 => Just(Create::Answered),
        2 => Just(Create::AnsweredLate),
        3 => (0..EFFECT_WITHIN).prop_map(Create::Lost),
        1 => Just(Create::CrashBefore),
        3 => (0..EFFECT_WITHIN).prop_map(Create::CrashAfter),
        2 => Just(Create::LostForNothing),
        2 => (0_u8..6).prop_map(Create::Refused),
    ]
}

fn any_end() -> impl Strategy<Value = End> {
    prop_oneof![
        3 => (0_i64..300).prop_map(End::Works),
        2 => Just(End::Lies),
        1 => Just(End::Lost),
        2 => (0_u8..6).prop_map(End::Refused),
        1 => Just(End::CrashBefore),
    ]
}

fn anything() -> impl Strategy<Value = Happens> {
    let record = 0..RECORDS;
    prop_oneof![
        12 => (record.clone(), any_create(), any_end(), any_look())
            .prop_map(|(of, create, end, look)| Happens::Acts(of, create, end, look)),
        4 => any_look().prop_map(Happens::Lists),
        3 => (0_usize..8).prop_map(Happens::Hears),
        2 => record.clone().prop_map(Happens::Registers),
        1 => (record.clone(), 0_u8..4).prop_map(|(of, why)| Happens::Leaves(of, why)),
        1 => record.prop_map(Happens::Reclaims),
        8 => prop_oneof![Just(1_i64), 2_i64..30, 30_i64..90, 90_i64..700].prop_map(Happens::Passes),
    ]
}

/// A machine that really exists, or did.
#[derive(Clone, Debug)]
struct Real {
    of: usize,
    machine: Machine,
    made_at: i64,
    ends_at: Option<i64>,
}

/// An answer that is on its way.
#[derive(Clone, Debug)]
enum Answer {
    Made(usize, Machine),
    Shown(usize, Option<Machine>, Timestamp),
    Listed(Vec<Machine>, Timestamp),
}

/// Records, a cloud, and time.
struct World {
    abilities: Abilities,
    /// Whether the cloud shows for a while that a machine is gone.
    shows_gone: bool,
    records: Vec<Instance>,
    real: Vec<Real>,
    /// Machines that will be made: when, and for which record.
    coming: Vec<(i64, usize)>,
    answers: Vec<Answer>,
    book: ProviderBook,
    now: i64,
}

impl World {
    fn new(tokens: bool, lag: i64, shows_gone: bool) -> Self {
        let records = (0..RECORDS).map(|number| intent(number as u32)).collect();
        let abilities = abilities(tokens, lag);
        let book = ProviderBook { name: "aws".to_owned(), ..ProviderBook::default() };
        World {
            abilities,
            shows_gone,
            records,
            real: Vec::new(),
            coming: Vec::new(),
            answers: Vec::new(),
            book,
            now: 0,
        }
    }

    fn now(&self) -> Timestamp {
        at(self.now)
    }

    /// Commits a record: what the store checks, and what must hold of every step.
    fn commit(&mut self, of: usize, after: Instance) {
        let before = &self.records[of];
        let change = Change::Instance { before: Some(before), after: &after };
        assert_eq!(invariant::check(change), Ok(()), "{before:?}\n{after:?}");
        if before.state.is_over() {
            assert_eq!(*before, after, "over stays over");
        }
        if let (Some(machine), false) = (before.machine(), after.state.is_over()) {
            assert_eq!(after.machine(), Some(machine), "a machine that is known is not lost");
        }
        self.records[of] = after;
    }

    fn make(&mut self, of: usize) -> Machine {
        // A provider with tokens answers with what is there, even if that is gone.
        let known = self.real.iter().find(|real| real.of == of && self.abilities.tokens);
        if let Some(real) = known {
            let gone = real.ends_at.is_some_and(|ends_at| ends_at <= self.now);
            let state = if gone { MachineState::Gone } else { MachineState::Running };
            return Machine { state, ..real.machine.clone() };
        }
        let id = format!("i-{}", self.real.len());
        let machine = machine_of(&self.records[of], &id, MachineState::Running);
        let (made_at, ends_at) = (self.now, None);
        self.real.push(Real { of, machine: machine.clone(), made_at, ends_at });
        machine
    }

    /// What the cloud shows, as of then.
    fn shown(&self, then: i64) -> Vec<(usize, Machine)> {
        let there = self.real.iter().filter(|real| real.made_at <= then);
        let shown = there.filter_map(|real| {
            let gone = real.ends_at.is_some_and(|ends_at| ends_at <= then);
            let state = if gone { MachineState::Gone } else { MachineState::Running };
            (!gone || self.shows_gone).then(|| (real.of, Machine { state, ..real.machine.clone() }))
        });
        shown.collect()
    }

    fn behind(&self, tenths: u8) -> i64 {
        self.now - self.abilities.list_lag.as_secs() * i64::from(tenths) / 10
    }

    fn passes(&mut self, seconds: i64) {
        let until = self.now + seconds;
        self.coming.sort_unstable();
        while let Some((when, of)) = self.coming.first().copied().filter(|(when, _)| *when <= until)
        {
            self.coming.remove(0);
            self.now = self.now.max(when);
            self.make(of);
            self.check();
        }
        self.now = until;
    }

    fn trouble(which: u8) -> Trouble {
        let message = "no".to_owned();
        match which {
            0 => Trouble::Throttled { retry_after_s: Some(120), message },
            1 => Trouble::Unreachable(message),
            2 => Trouble::Credentials(message),
            3 => Trouble::Unsure(message),
            4 => Trouble::NotFound(message),
            _ => Trouble::Quota { resource: String::new(), each: 0, available: 0, message },
        }
    }

    fn acts(&mut self, of: usize, create: Create, end: End, look: Look) {
        match next(&self.records[of], &self.abilities, &Limits::default(), &always(), self.now()) {
            Next::Call => {
                let intent = self.records[of].called(self.now());
                self.commit(of, intent);
                self.creates(of, create);
            }
            Next::Look => self.looks(of, look),
            Next::Terminate => self.ends(of, end),
            Next::Stale => {
                let stale = self.records[of].leaving(permitted(Reason::Stale), self.now()).unwrap();
                self.commit(of, stale);
            }
            Next::Alarm => {
                let alarmed = self.records[of].alarmed().unwrap();
                self.commit(of, alarmed);
            }
            Next::Wait(_) | Next::Nothing | Next::Forget => {}
        }
    }

    /// A call whose intent is committed.
    fn creates(&mut self, of: usize, create: Create) {
        match create {
            Create::Answered => {
                let machine = self.make(of);
                let after = self.records[of].answered(Ok(&machine), self.now());
                self.commit(of, after);
            }
            Create::AnsweredLate => {
                let machine = self.make(of);
                self.answers.extend([Answer::Made(of, machine.clone()), Answer::Made(of, machine)]);
            }
            Create::Lost(delay) => {
                self.coming.push((self.now + delay, of));
                self.refused(of, &Self::trouble(3));
            }
            Create::CrashAfter(delay) => self.coming.push((self.now + delay, of)),
            Create::CrashBefore => {}
            Create::LostForNothing => self.refused(of, &Self::trouble(3)),
            Create::Refused(which) => self.refused(of, &Self::trouble(which)),
        }
    }

    fn refused(&mut self, of: usize, trouble: &Trouble) {
        let after = self.records[of].answered(Err(trouble), self.now());
        self.commit(of, after);
    }

    fn looks(&mut self, of: usize, look: Look) {
        let answer = |world: &Self, tenths| {
            let mut shown = world.shown(world.behind(tenths));
            // A search shows what lives first.
            shown.sort_by_key(|(_, machine)| machine.state == MachineState::Gone);
            let machine = shown.into_iter().find(|(whose, _)| *whose == of).map(|(_, it)| it);
            Answer::Shown(of, machine, world.now())
        };
        match look {
            Look::Behind(tenths) => self.hears(&answer(self, tenths)),
            Look::HeardLate(tenths) => self.answers.push(answer(self, tenths)),
            Look::Fails(which) => {
                let after = self.records[of].unseen(&Self::trouble(which), self.now());
                self.commit(of, after);
            }
        }
    }

    fn lists(&mut self, look: Look) {
        let answer = |world: &Self, tenths| {
            let shown = world.shown(world.behind(tenths));
            Answer::Listed(shown.into_iter().map(|(_, machine)| machine).collect(), world.now())
        };
        match look {
            Look::Behind(tenths) => self.hears(&answer(self, tenths)),
            Look::HeardLate(tenths) => self.answers.push(answer(self, tenths)),
            Look::Fails(_) => {}
        }
    }

    fn hears(&mut self, answer: &Answer) {
        match answer {
            Answer::Made(of, machine) => {
                let after = self.records[*of].answered(Ok(machine), self.now());
                self.commit(*of, after);
            }
            Answer::Shown(of, machine, began_at) => {
                let frozen = self.book.frozen.is_some();
                let facts = ListingFacts { began_at: *began_at, whole: false, frozen };
                let record = &self.records[*of];
                let after = record.seen(machine.as_ref(), facts, &self.abilities, self.now());
                if let Some(after) = after {
                    self.commit(*of, after);
                }
            }
            Answer::Listed(machines, began_at) => self.compares(machines, *began_at),
        }
    }

    fn compares(&mut self, machines: &[Machine], began_at: Timestamp) {
        let listing = Listing { provider: "aws", machines, began_at, first: true };
        let pool = |id| {
            let (tenant, pool_name) = ("acme".to_owned(), "workers".to_owned());
            (id == pool()).then_some(PoolFacts { tenant, pool_name, deleting: false })
        };
        let known = Known {
            installation: OURS,
            instances: self.records.iter().collect(),
            orphans: Vec::new(),
            book: &self.book,
            pool: &pool,
            heard: &|_| false,
            price: &|_| None,
        };
        let found = compare(&listing, &known, &self.abilities, self.now());
        assert_eq!((&found.orphans, &found.adopted), (&Vec::new(), &Vec::new()));
        for after in found.instances {
            let of = self.records.iter().position(|record| record.id == after.id).unwrap();
            self.commit(of, after);
        }
        self.book = found.book.unwrap_or_else(|| self.book.clone());
    }

    fn ends(&mut self, of: usize, end: End) {
        let guards = Guards { installation: OURS, shown: None, compared: true, recovery: None };
        let Ok(doomed) = gate::release(&self.records[of], &guards) else { return };
        let answer = match end {
            End::Works(after) => {
                self.end(doomed.machine().as_str(), after);
                Ok(())
            }
            End::Lost => {
                self.end(doomed.machine().as_str(), 0);
                Err(Self::trouble(3))
            }
            End::Lies => Ok(()),
            End::Refused(which) => Err(Self::trouble(which)),
            End::CrashBefore => return,
        };
        let after = self.records[of].asked(answer.as_ref().copied(), self.now());
        self.commit(of, after);
    }

    fn end(&mut self, id: &str, after: i64) {
        let ends_at = self.now + after;
        let real = self.real.iter_mut().find(|real| real.machine.id.as_str() == id).unwrap();
        real.ends_at = Some(real.ends_at.map_or(ends_at, |before| before.min(ends_at)));
    }

    fn registers(&mut self, of: usize) {
        if self.living(of) == 0 {
            return;
        }
        if let Some(after) = self.records[of].registered(&node_id(of as u32), self.now()) {
            self.commit(of, after);
        }
    }

    fn living(&self, of: usize) -> usize {
        let lives = |real: &&Real| real.ends_at.is_none_or(|ends_at| self.now < ends_at);
        self.real.iter().filter(|real| real.of == of).filter(lives).count()
    }

    fn happens(&mut self, what: &Happens) {
        match what {
            Happens::Acts(of, create, end, look) => self.acts(*of, *create, *end, *look),
            Happens::Lists(look) => self.lists(*look),
            Happens::Hears(which) => {
                if !self.answers.is_empty() {
                    let answer = self.answers.remove(which % self.answers.len());
                    self.hears(&answer);
                }
            }
            Happens::Registers(of) => self.registers(*of),
            Happens::Leaves(of, why) => {
                let by = "ada".to_owned();
                let reason = match why {
                    0 => Reason::ScaleDown { asked: false },
                    1 => Reason::PoolDeleted,
                    2 => Reason::Operator { by, reason: "costs".to_owned() },
                    _ => Reason::Unwanted,
                };
                if let Some(after) = self.records[*of].leaving(permitted(reason), self.now()) {
                    self.commit(*of, after);
                }
            }
            Happens::Reclaims(of) => {
                // One that we know of. A machine that comes and goes unseen while its answer is lost, and
                // is shown by a listing that lags after it was bought again, becomes an orphan, and is told.
                if let Some(machine) = self.records[*of].machine().cloned() {
                    self.end(machine.as_str(), 0);
                }
            }
            Happens::Passes(seconds) => self.passes(*seconds),
        }
        self.check();
    }

    /// At most one machine for a record, and none for one that is over (I2).
    fn check(&self) {
        for (of, record) in self.records.iter().enumerate() {
            let living = self.living(of);
            assert!(living <= 1, "{living} machines for {record:?}");
            assert!(living == 0 || !record.state.is_over(), "a machine is left by {record:?}");
        }
    }

    /// The faults are over: everything that is said is done, listings come every two minutes.
    fn calms(&mut self) {
        let answers = std::mem::take(&mut self.answers);
        answers.iter().for_each(|answer| self.hears(answer));
        for round in 0..240 {
            for of in 0..RECORDS {
                self.registers(of);
                let mut acts = 0;
                while !matches!(self.then(of), Next::Wait(_) | Next::Nothing | Next::Forget) {
                    let before = self.records[of].clone();
                    self.acts(of, Create::Answered, End::Works(20), Look::Behind(10));
                    let held = self.book.frozen.is_some() && before == self.records[of];
                    acts += 1;
                    assert!(acts < 8, "it spins: {:?}", self.records[of]);
                    if held {
                        break;
                    }
                }
            }
            if round % 4 == 0 {
                self.lists(Look::Behind(10));
            }
            self.passes(30);
            self.check();
        }
    }

    fn then(&self, of: usize) -> Next {
        next(&self.records[of], &self.abilities, &Limits::default(), &always(), self.now())
    }
}

fn run(tokens: bool, lag: i64, shows_gone: bool, story: &[(u8, Happens)]) -> World {
    let mut world = World::new(tokens, lag, shows_gone);
    // The first calls: what was committed, and then anything.
    for (of, (fate, _)) in story.iter().take(RECORDS).enumerate() {
        let fates =
            [Create::AnsweredLate, Create::Lost(30), Create::CrashBefore, Create::CrashAfter(45)];
        world.creates(of, fates[usize::from(*fate) % fates.len()]);
    }
    story.iter().for_each(|(_, what)| world.happens(what));
    world
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a3_g1_g2_g3_g4_one_machine_for_a_record_and_none_for_one_that_is_over(
        tokens: bool,
        lag in prop_oneof![Just(0_i64), Just(60), Just(240)],
        shows_gone: bool,
        story in proptest::collection::vec((any::<u8>(), anything()), 4..160),
    ) {
        let mut world = run(tokens, lag, shows_gone, &story);
        world.calms();
        // Two hours without a fault: everything is up or over, unless the guard waits for a person.
        for record in &world.records {
            let settled = matches!(
                record.state,
                State::Running { .. } | State::Terminated { .. } | State::Failed { .. }
            );
            prop_assert!(settled || world.book.frozen.is_some(), "{:?}", record);
        }
    }

    #[test]
    fn next_never_waits_for_what_has_passed(
        tokens: bool,
        story in proptest::collection::vec((any::<u8>(), anything()), 4..80),
    ) {
        let world = run(tokens, 60, true, &story);
        for of in 0..RECORDS {
            if let Next::Wait(until) = world.then(of) {
                prop_assert!(world.now() < until);
                let long = SignedDuration::from_hours(24);
                prop_assert!(until.duration_since(world.now()) <= long);
            }
        }
    }
}
