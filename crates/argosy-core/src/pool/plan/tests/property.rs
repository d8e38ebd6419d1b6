//! Plays plans against a model of a provider, its nodes and the remedy, with every kind of fault.

use super::*;
use crate::fixture::permitted;
use crate::instance::{Instance, InstanceId, State};
use crate::machine::{Machine, MachineId, MachineState, Tags};
use crate::node::{Duty, Hold};
use crate::pool::fixture::Town;
use crate::pool::plan::stand::Standing;
use crate::pool::{BY, Plan, bought, registered, resumed};
use jiff::Timestamp;
use uuid::Uuid;

/// Chance that is the same in every run: xorshift.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }

    fn one_in(&mut self, sides: u64) -> bool {
        self.roll(sides) == 0
    }
}

struct World {
    town: Town,
    dice: Dice,
    now: i64,
    made: u32,
    /// Since when a node is lost, by its id.
    lost: std::collections::BTreeMap<String, i64>,
    faults: bool,
}

const DRAIN_S: i64 = 900;

impl World {
    fn new(seed: u64) -> Self {
        let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let nodes = u32::try_from(dice.roll(9)).unwrap() + 1;
        let mut town = town(nodes, "");
        town.spec.max_unavailable = match dice.roll(3) {
            0 => Unavailable::Percent(10.0),
            1 => Unavailable::Nodes(2),
            _ => Unavailable::Nodes(3),
        };
        town.spec.min_available = u32::try_from(dice.roll(u64::from(nodes) + 1)).unwrap();
        Self { town, dice, now: 0, made: 0, lost: Default::default(), faults: true }
    }

    fn time(&self) -> Timestamp {
        at(self.now)
    }

    fn of(&self, id: &str) -> Option<usize> {
        self.town.ones.iter().position(|one| one.instance.id.as_str() == id)
    }

    /// One round: time goes by, the world does something, a plan is made, checked and carried out.
    fn step(&mut self) {
        self.now += i64::try_from(self.dice.roll(120)).unwrap() + 1;
        for index in 0..self.town.ones.len() {
            self.live(index);
        }
        if self.faults {
            self.fault();
        }
        self.remedy();
        for one in &mut self.town.ones {
            let lost = self.lost.get(one.instance.id.as_str());
            one.lost_for = lost.map(|since| SignedDuration::from_secs(self.now - since));
            one.reported_at = Some(at(self.now));
        }
        // Records that are over are kept for a day; here, for a few hours.
        let kept = self.now - 4 * 3600;
        self.town.ones.retain(|one| match &one.instance.state {
            State::Terminated { at: then, .. } | State::Failed { at: then, .. } => at(kept) < *then,
            State::Provisioning(_)
            | State::AwaitingNode { .. }
            | State::Running { .. }
            | State::Terminating(_) => true,
        });
        let plan = self.town.plan_at(self.time());
        self.check(&plan);
        self.carry_out(&plan);
    }

    /// What happens to a machine by itself.
    fn live(&mut self, index: usize) {
        let (faults, now) = (self.faults, self.time());
        let fails = faults && self.dice.one_in(12);
        let slow = self.dice.one_in(3);
        let one = &mut self.town.ones[index];
        let id = one.instance.id.as_str().to_owned();
        match one.instance.state.clone() {
            State::Provisioning(_) if slow => {}
            State::Provisioning(_) if fails => {
                let (order, number) = (one.instance.order.clone(), one.instance.number);
                one.instance = one.instance.answered(Err(&exhausted()), now);
                self.town.book = failed(&self.town.book, &order, number, &exhausted(), now);
            }
            State::Provisioning(_) => {
                let machine = machine(&id);
                one.instance = one.instance.answered(Ok(&machine), now);
                let order = one.instance.order.clone();
                self.town.book = bought(&self.town.book, &order).unwrap_or(self.town.book.clone());
            }
            State::AwaitingNode { .. } if slow => {}
            State::AwaitingNode { .. } if fails => {
                one.instance = one.instance.leaving(permitted(Reason::Stale), now).unwrap();
            }
            State::AwaitingNode { .. } => {
                let mut node = crate::fixture::node(&id);
                node.health.state = HealthState::Healthy;
                (node.health.since, node.liveness_since) = (now, now);
                one.instance = one.instance.registered(&node.id, now).unwrap();
                one.node = Some(node);
                let (book, registers) = (self.town.book.clone(), one.instance.clone());
                self.town.book = registered(&book, &registers, now).unwrap_or(book);
            }
            State::Terminating(leaving) if !slow => {
                let (machine, node) = (leaving.machine, leaving.node);
                let reason = leaving.reason;
                one.instance.state = State::Terminated { machine, node, at: now, reason };
                one.node = None;
                self.lost.remove(&id);
            }
            State::Terminating(_)
            | State::Running { .. }
            | State::Terminated { .. }
            | State::Failed { .. } => {}
        }
        if let Some(Duty::Draining { done, .. }) = one.node.as_mut().map(|node| &mut node.duty) {
            *done |= !slow;
        }
        if let Some(last) =
            one.instance.tried.last_mut().filter(|last| last.outcome.is_empty() && !slow)
        {
            last.outcome = "it ended".to_owned();
            if last.cure == Cure::Reboot && !fails {
                let node = one.node.as_mut();
                if let Some(node) = node {
                    node.health.state = HealthState::Healthy;
                    node.findings.clear();
                }
            }
        }
    }

    fn fault(&mut self) {
        let (now, what) = (self.time(), self.dice.roll(24));
        let size = u32::try_from(self.dice.roll(10)).unwrap() + 1;
        let count = u64::try_from(self.town.ones.len()).unwrap();
        let index = usize::try_from(if count == 0 { 0 } else { self.dice.roll(count) }).unwrap();
        match what {
            0 => {
                self.town.spec.nodes = size;
                self.town.spec.min_available = self.town.spec.min_available.min(size);
                self.town.resource.generation += 1;
            }
            1 => {
                self.town.spec.image = format!("image-{}", size % 2);
                self.town.resource.generation += 1;
            }
            2 => self.town.stopped = Some("paused by ada".to_owned()),
            3 | 4 => self.town.stopped = None,
            5 => self.town.clouds.get_mut("gcp").unwrap().compared = false,
            6 | 7 => self.town.clouds.get_mut("gcp").unwrap().compared = true,
            _ => {}
        }
        let Some(one) = self.town.ones.get_mut(index) else { return };
        if !matches!(one.instance.state, State::Running { .. }) {
            return;
        }
        let id = one.instance.id.as_str().to_owned();
        let ada = Hold { by: "ada".to_owned(), automatic: false, reason: String::new(), at: now };
        let Some(node) = one.node.as_mut() else { return };
        match what {
            8 | 9 => {
                node.health.state = HealthState::Unhealthy;
                node.health.since = now;
                let key = if size % 2 == 0 { "check/gpu" } else { "xid/48/GPU-x" };
                node.findings = vec![finding(key, "", "it is broken")];
            }
            10 | 11 => {
                (node.liveness, node.liveness_since) = (Liveness::Unreachable, now);
                self.lost.insert(id, self.now);
            }
            12..=14 => {
                node.health.state = HealthState::Healthy;
                node.findings.clear();
                node.liveness = Liveness::Fresh;
                self.lost.remove(&id);
            }
            15 => node.duty = Duty::Cordoned(ada),
            16 | 17 if node.duty.hold().is_some_and(|hold| hold.by.ends_with("ada")) => {
                node.duty = Duty::Active;
            }
            18 => node.duty = Duty::Terminated(ada),
            19 => one.instance = one.instance.leaving(permitted(Reason::Vanished), now).unwrap(),
            20 => {
                let message = String::new();
                one.notice = Some(Notice { kind: NoticeKind::Reclaim, at: None, message });
            }
            _ => {}
        }
    }

    /// The remedy loop: cordons the bad inside its budget, and puts back the well.
    fn remedy(&mut self) {
        let now = self.time();
        let ours =
            Hold { by: "argosy".to_owned(), automatic: true, reason: String::new(), at: now };
        let allowed =
            usize::try_from(self.town.spec.max_unavailable.of(self.town.spec.nodes)).unwrap();
        let nodes = self.town.ones.iter().filter_map(|one| one.node.as_ref());
        let mut out = nodes.filter(|node| node.in_disruption()).count();
        let stopped = self.town.stopped.is_some();
        for one in &mut self.town.ones {
            let lost = self.lost.get(one.instance.id.as_str());
            let lost = lost.is_some_and(|since| 300 <= self.now - since);
            let Some(node) = one.node.as_mut() else { continue };
            let sick = node.health.state == HealthState::Unhealthy;
            if node.duty == Duty::Active && (sick || lost) && out < allowed && !stopped {
                node.duty = Duty::Cordoned(ours.clone());
                out += 1;
            } else if node.in_disruption() && !node.is_bad() {
                node.duty = Duty::Active;
            }
        }
    }

    fn standing(&self, index: usize) -> Option<Standing> {
        let one = &self.town.ones[index];
        if one.instance.state.is_over() {
            return None;
        }
        let mut seen = None;
        self.town.picture(|picture| {
            seen = Some(Standing::of(&picture.members[index], picture, self.time()));
        });
        seen
    }

    fn check(&self, plan: &Plan) {
        let standings: Vec<Option<Standing>> =
            (0..self.town.ones.len()).map(|index| self.standing(index)).collect();
        let seated = standings.iter().flatten().filter(|one| one.is_seated()).count();
        let spec = &self.town.spec;
        let most = spec.nodes + spec.max_unavailable.of(spec.nodes);
        let after = seated + plan.buy.len();
        assert!(
            plan.buy.is_empty() || after <= usize::try_from(most).unwrap(),
            "{after} machines for {} nodes: {}",
            spec.nodes,
            told(plan)
        );
        self.check_numbers(plan, &standings);
        self.check_disturbance(plan, &standings);
    }

    fn check_numbers(&self, plan: &Plan, standings: &[Option<Standing>]) {
        let live: Vec<(&Instance, &Standing)> = self
            .town
            .ones
            .iter()
            .zip(standings)
            .filter_map(|(one, standing)| Some((&one.instance, standing.as_ref()?)))
            .collect();
        for (nth, buy) in plan.buy.iter().enumerate() {
            let twice = plan.buy.iter().skip(nth + 1).any(|other| other.number == buy.number);
            assert!(!twice, "number {} is bought twice: {}", buy.number, told(plan));
            let holders = live.iter().filter(|(instance, standing)| {
                instance.number == buy.number && standing.is_seated()
            });
            match &buy.replaces {
                None => assert_eq!(holders.count(), 0, "number {} is taken", buy.number),
                Some(old) => {
                    let others = live.iter().filter(|(instance, standing)| {
                        let index = self.of(instance.id.as_str()).unwrap();
                        let node = self.town.ones[index].node.as_ref();
                        let well = node.is_none_or(|node| !node.is_bad());
                        instance.replaces.as_ref() == Some(old) && standing.is_hopeful() && well
                    });
                    assert_eq!(others.count(), 0, "{old} has a replacement");
                }
            }
        }
    }

    /// Those in service are disturbed one step at a time, and never too many of them.
    fn check_disturbance(&self, plan: &Plan, standings: &[Option<Standing>]) {
        let ready = standings.iter().flatten().filter(|one| **one == Standing::Ready).count();
        let mut left = ready;
        for step in &plan.steps {
            let id = match step {
                Step::Leave { instance, .. } => instance.as_str(),
                Step::Cordon { node, .. } | Step::Drain { node, .. } => node.as_str(),
                Step::Depart { .. }
                | Step::Block { .. }
                | Step::Stay { .. }
                | Step::Uncordon { .. }
                | Step::Diagnose { .. }
                | Step::Reboot { .. }
                | Step::Condemn { .. } => continue,
            };
            let index = self.of(id).unwrap();
            let standing = standings[index].clone().unwrap();
            if standing == Standing::Held {
                // It is a person's: it goes only for a smaller pool, and nobody takes it over.
                let ours = matches!(step, Step::Cordon { .. })
                    || matches!(step, Step::Drain { by, .. } if by == BY);
                assert!(!ours, "{id} is a person's: {step:?}");
                let seats = standings.iter().flatten().filter(|one| one.is_seated()).count();
                assert!(
                    self.town.spec.target(self.town.book.target) < u32::try_from(seats).unwrap(),
                    "{id} is a person's, and wanted: {step:?}"
                );
            }
            if standing == Standing::Ready {
                assert!(matches!(step, Step::Cordon { .. }), "{id} is in service: {step:?}");
                left -= 1;
            }
            if let (Step::Leave { .. }, Some(node)) = (step, &self.town.ones[index].node) {
                let departure = self.town.ones[index].instance.departure.as_ref();
                let had_its_time = departure.is_some_and(|it| it.deadline <= self.time());
                let ended = had_its_time
                    || match &node.duty {
                        Duty::Draining { done, deadline, .. } => *done || *deadline <= self.time(),
                        Duty::Terminated(_) => true,
                        Duty::Active | Duty::Cordoned(_) => false,
                    };
                assert!(ended || self.lost.contains_key(id), "{id} was not drained: {step:?}");
            }
        }
        let least = usize::try_from(self.town.spec.min_available).unwrap();
        assert!(left == ready || least <= left, "{left} of {ready} left, at least {least}");
    }

    /// As the loop does it, or only the beginning of it: then it died.
    fn carry_out(&mut self, plan: &Plan) {
        let dies = self.faults && self.dice.one_in(10);
        let kept = if dies { self.dice.roll(3) } else { u64::MAX };
        let kept = usize::try_from(kept).unwrap_or(usize::MAX);
        for step in plan.steps.iter().take(kept) {
            self.take(step);
        }
        if dies {
            return;
        }
        if let Some(book) = &plan.book {
            self.town.book = book.clone();
        }
        for buy in &plan.buy {
            self.made += 1;
            let id = InstanceId::parse(&format!("n{}", self.made)).unwrap();
            let mut bought = one(id.as_str(), buy.number, buy.replaces.clone(), "asked", 0);
            bought.instance = Instance::new(
                id,
                "acme".to_owned(),
                self.town.resource.id,
                "workers",
                buy.number,
                Uuid::from_u128(u128::from(self.made)),
                buy.order.clone(),
                buy.why.clone(),
                buy.replaces.clone(),
                self.time(),
            );
            self.town.ones.push(bought);
        }
    }

    fn take(&mut self, step: &Step) {
        let now = self.time();
        let (id, duty) = match step {
            Step::Leave { instance, reason } => {
                let index = self.of(instance.as_str()).unwrap();
                let one = &mut self.town.ones[index];
                if let Some(after) = one.instance.leaving(permitted(reason.clone()), now) {
                    one.instance = after;
                }
                return;
            }
            Step::Depart { instance, reason, deadline } => {
                let index = self.of(instance.as_str()).unwrap();
                let one = &mut self.town.ones[index];
                let permit = permitted(reason.clone());
                one.instance = one.instance.departing(permit, *deadline, now).unwrap();
                return;
            }
            Step::Block { instance, held } => {
                let index = self.of(instance.as_str()).unwrap();
                let one = &mut self.town.ones[index];
                one.instance = one.instance.blocked(held.as_ref(), now).unwrap();
                return;
            }
            Step::Stay { instance } => {
                let index = self.of(instance.as_str()).unwrap();
                let one = &mut self.town.ones[index];
                one.instance = one.instance.staying().unwrap();
                return;
            }
            Step::Diagnose { instance, because, .. } => {
                return self.tried(instance, Cure::Diagnose, because);
            }
            Step::Reboot { instance, because, .. } => {
                return self.tried(instance, Cure::Reboot, because);
            }
            Step::Condemn { .. } => return,
            Step::Uncordon { node, .. } => (node, Duty::Active),
            Step::Cordon { node, reason } => (node, Duty::Cordoned(ours(false, reason, now))),
            Step::Drain { node, reason, automatic, by, drain_for } => {
                let hold = Hold { by: by.clone(), ..ours(*automatic, reason, now) };
                let drain_for = drain_for.unwrap_or(SignedDuration::from_secs(DRAIN_S));
                let command = crate::fixture::command_id(1);
                let deadline = now.checked_add(drain_for).unwrap();
                (node, Duty::Draining { hold, command, deadline, done: false })
            }
        };
        let index = self.of(id.as_str()).unwrap();
        self.town.ones[index].node.as_mut().unwrap().duty = duty;
    }

    fn tried(&mut self, instance: &InstanceId, cure: Cure, because: &str) {
        let (index, now) = (self.of(instance.as_str()).unwrap(), self.time());
        let one = &mut self.town.ones[index];
        one.instance = one.instance.tried(cure, because, now);
    }

    /// Faults stop: what people did is undone by them, and what broke stays broken.
    fn calm(&mut self) {
        self.faults = false;
        self.town.stopped = None;
        self.town.clouds.get_mut("gcp").unwrap().compared = true;
        self.town.resource.generation += 1;
        self.town.book = resumed(&self.town.book, self.time());
        for one in &mut self.town.ones {
            let Some(node) = one.node.as_mut() else { continue };
            if node.duty.hold().is_some_and(|hold| hold.by.ends_with("ada"))
                && !matches!(node.duty, Duty::Terminated(_))
            {
                node.duty = Duty::Active;
            }
        }
    }

    fn settled(&self) -> bool {
        let live = self.town.ones.iter().filter(|one| !one.instance.state.is_over()).count();
        let wanted = usize::try_from(self.town.spec.nodes).unwrap();
        let plan = self.town.plan_at(self.time());
        let quiet = plan.buy.is_empty() && plan.steps.is_empty();
        quiet && live == wanted && matches!(plan.outcome, Outcome::Ready { .. })
    }
}

fn ours(automatic: bool, reason: &str, now: Timestamp) -> Hold {
    Hold { by: crate::pool::BY.to_owned(), automatic, reason: reason.to_owned(), at: now }
}

fn machine(id: &str) -> Machine {
    Machine {
        id: MachineId::new(format!("m-{id}")),
        name: id.to_owned(),
        state: MachineState::Running,
        tags: Tags::default(),
        region: String::new(),
        zone: String::new(),
        machine_type: String::new(),
        spot: false,
        created_at: None,
        internal_ip: String::new(),
        external_ip: String::new(),
        notice: None,
    }
}

#[test]
fn i10_whatever_happens_nothing_is_paid_twice_and_the_pool_is_whole_in_the_end() {
    for seed in 1..=80 {
        let mut world = World::new(seed);
        let run = std::panic::AssertUnwindSafe(|| {
            for _ in 0..200 {
                world.step();
            }
            world.calm();
            let mut rounds = 0;
            while !world.settled() {
                world.step();
                rounds += 1;
                assert!(rounds < 1500, "{:?}", world.town.plan_at(world.time()));
            }
        });
        if let Err(panic) = std::panic::catch_unwind(run) {
            eprintln!("seed {seed}");
            std::panic::resume_unwind(panic);
        }
    }
}
