//! What holds of every plan, for any fleet, whatever happens to it.

use super::{Machine, fleet, machine};
use crate::breaker::{Area, Breaker, Closed, Pause, Scope};
use crate::fixture::{at, command_id, hold};
use crate::health::HealthState;
use crate::invariant::{self, Change};
use crate::liveness::Excuse;
use crate::node::settings::{BreakerSettings, Budget, NodeSettings, Remedy};
use crate::node::{Duty, Liveness};
use crate::remedy::{Action, ActionKind, Plan, allowed, plan};
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// Something that happens.
#[derive(Clone, Debug)]
enum Happens {
    Sick(usize),
    Well(usize),
    Untold(usize),
    Lost(usize),
    Back(usize),
    Rebooted(usize),
    Fetched(usize),
    OperatorCordons(usize),
    OperatorUncordons(usize),
    Paused(Option<bool>),
    Resumed,
    Excused(bool),
    BreakersClosed,
    Passes(i64),
}

fn anything() -> impl Strategy<Value = Happens> {
    let node = 0_usize..24;
    prop_oneof![
        6 => node.clone().prop_map(Happens::Sick),
        4 => node.clone().prop_map(Happens::Well),
        1 => node.clone().prop_map(Happens::Untold),
        3 => node.clone().prop_map(Happens::Lost),
        2 => node.clone().prop_map(Happens::Back),
        1 => node.clone().prop_map(Happens::Rebooted),
        6 => node.clone().prop_map(Happens::Fetched),
        1 => node.clone().prop_map(Happens::OperatorCordons),
        1 => node.prop_map(Happens::OperatorUncordons),
        1 => proptest::option::of(any::<bool>()).prop_map(Happens::Paused),
        1 => Just(Happens::Resumed),
        1 => any::<bool>().prop_map(Happens::Excused),
        1 => Just(Happens::BreakersClosed),
        8 => (1_i64..2000).prop_map(Happens::Passes),
    ]
}

fn any_budget() -> impl Strategy<Value = Budget> {
    (0_u32..60, 0_u32..3, prop_oneof![Just(0_i64), Just(10)]).prop_map(
        |(percent, at_least, every)| Budget {
            percent: f64::from(percent),
            at_least,
            every: SignedDuration::from_secs(every),
        },
    )
}

fn any_breaker() -> impl Strategy<Value = BreakerSettings> {
    (5_u32..80, 1_u32..5).prop_map(|(percent, at_least)| BreakerSettings {
        percent: f64::from(percent),
        at_least,
        window: SignedDuration::from_secs(300),
        calm: SignedDuration::from_secs(900),
    })
}

fn any_settings() -> impl Strategy<Value = NodeSettings> {
    let budgets = (any_budget(), any_budget(), any_budget());
    let breakers = (any_breaker(), any_breaker(), any_breaker());
    (budgets, breakers, any::<bool>()).prop_map(|(budgets, breakers, drain)| {
        let mut settings = NodeSettings::default();
        (settings.defaults.budget, settings.fleet.budget, settings.fleet.zone_budget) = budgets;
        (settings.defaults.breaker, settings.fleet.breaker, settings.fleet.zone_breaker) = breakers;
        settings.defaults.remedy = if drain { Remedy::Drain } else { Remedy::Cordon };
        settings
    })
}

/// A fleet, and time.
struct World {
    machines: Vec<Machine>,
    breakers: Vec<Breaker>,
    pauses: Vec<Pause>,
    excuse: Option<Excuse>,
    settings: NodeSettings,
    now: i64,
}

impl World {
    fn new(size: usize, settings: NodeSettings) -> World {
        let machines = (0..size).map(|index| {
            let (pool, zone) = (index % 3, index % 2);
            machine(&format!("n{index}"), &format!("pool=p{pool},zone=z{zone}"))
        });
        let (machines, breakers, pauses) = (machines.collect(), Vec::new(), Vec::new());
        World { machines, breakers, pauses, excuse: None, settings, now: 0 }
    }

    fn now(&self) -> Timestamp {
        at(self.now)
    }

    fn happens(&mut self, what: &Happens) {
        let now = self.now();
        let size = self.machines.len();
        let of = |index: &usize| index % size;
        match what {
            Happens::Sick(index) => self.health(of(index), HealthState::Unhealthy, "xid"),
            Happens::Well(index) => self.health(of(index), HealthState::Healthy, ""),
            Happens::Untold(index) => self.health(of(index), HealthState::Unknown, "PolicyError"),
            Happens::Lost(index) => self.liveness(of(index), Liveness::Unreachable),
            Happens::Back(index) => self.liveness(of(index), Liveness::Fresh),
            Happens::Rebooted(index) => self.machines[of(index)].node.joined_at = now,
            Happens::Fetched(index) => self.cordoned(of(index)),
            Happens::OperatorCordons(index) => {
                let machine = &mut self.machines[of(index)];
                machine.node.duty = Duty::Cordoned(hold("ada", false, self.now));
                machine.cordon_pending = None;
            }
            Happens::OperatorUncordons(index) => {
                let machine = &mut self.machines[of(index)];
                machine.node.duty = Duty::Active;
                machine.cordon_pending = None;
            }
            Happens::Paused(pool) => {
                let pool = pool.map(|first| format!("p{}", usize::from(first)));
                let (tenant, by) = ("acme".to_owned(), "ada".to_owned());
                self.pauses.push(Pause { tenant, pool, by, reason: "x".to_owned(), at: now });
            }
            Happens::Resumed => self.pauses.clear(),
            Happens::Excused(yes) => {
                self.excuse = yes.then_some(Excuse::Amnesty { missing: 1, total: size });
            }
            Happens::BreakersClosed => {
                for breaker in &mut self.breakers {
                    let (by, reason) = ("ada".to_owned(), String::new());
                    breaker.closed = Some(Closed { by, reason, at: now });
                }
            }
            Happens::Passes(seconds) => {
                self.now += seconds;
                for machine in &mut self.machines {
                    machine.unreachable_for = machine.unreachable_for.map(|time| time + seconds);
                }
            }
        }
    }

    fn health(&mut self, index: usize, state: HealthState, reason: &str) {
        let now = self.now();
        let node = &mut self.machines[index].node;
        if node.health.state != state {
            let before = node.clone();
            node.health.state = state;
            node.health.since = now;
            reason.clone_into(&mut node.health.reason);
            node.turned(&before, now);
        }
    }

    fn liveness(&mut self, index: usize, liveness: Liveness) {
        let now = self.now();
        let machine = &mut self.machines[index];
        machine.heard = liveness == Liveness::Fresh || machine.heard;
        if machine.node.liveness != liveness {
            let before = machine.node.clone();
            machine.node.liveness = liveness;
            machine.node.liveness_since = now;
            machine.node.turned(&before, now);
            machine.unreachable_for = (liveness == Liveness::Unreachable).then_some(0);
        }
    }

    fn cordoned(&mut self, index: usize) {
        let machine = &mut self.machines[index];
        if machine.cordon_pending.take().is_some() && machine.node.duty == Duty::Active {
            machine.node.duty = Duty::Cordoned(hold("argosy", true, self.now));
        }
    }

    fn plan_with(&self, breakers: &[Breaker]) -> Plan {
        let fleet = fleet(&self.machines, breakers, &self.pauses, self.excuse);
        plan(&fleet, &self.settings, self.now())
    }

    /// Plans, checks, and carries the plan out.
    fn act(&mut self) -> Result<Plan, TestCaseError> {
        let now = self.now();
        let fleet = fleet(&self.machines, &self.breakers, &self.pauses, self.excuse);
        let plan = plan(&fleet, &self.settings, now);
        let settings = &self.settings;
        let change = Change::Fleet { fleet: &fleet, plan: &plan, settings, now };
        prop_assert_eq!(invariant::check(change), Ok(()), "{}", &plan);
        for action in &plan.actions {
            let found = self.machines.iter().position(|machine| machine.node.id == action.node);
            let index = found.unwrap();
            match action.kind {
                ActionKind::EnforceCordon => self.cordoned(index),
                ActionKind::Withdraw => self.machines[index].cordon_pending = None,
                ActionKind::Uncordon => {
                    self.machines[index].node.duty = Duty::Active;
                }
                ActionKind::StopDrain => {
                    self.machines[index].node.duty = Duty::Cordoned(hold("argosy", true, self.now));
                }
                ActionKind::Drain => {
                    let (hold, deadline) = (hold("argosy", true, self.now), at(self.now + 3600));
                    let command = command_id(1);
                    self.machines[index].node.duty =
                        Duty::Draining { hold, command, deadline, done: false };
                }
                ActionKind::Cordon => self.machines[index].cordon_pending = Some(now),
            }
        }
        for (node, held) in &plan.holds {
            let machine = self.machines.iter_mut().find(|machine| machine.node.id == *node);
            machine.unwrap().node.held.clone_from(held);
        }
        let gone = |breaker: &Breaker| {
            let written = plan.breakers.iter().chain(&plan.closed);
            written.map(|written| &written.scope).any(|scope| *scope == breaker.scope)
        };
        self.breakers.retain(|breaker| !gone(breaker));
        self.breakers.extend(plan.breakers.iter().cloned());
        Ok(plan)
    }

    /// How many are out of service by our doing or about to be, and how many may be.
    fn uses(&self) -> BTreeMap<Area<'_>, (usize, usize)> {
        let mut counted: BTreeMap<Area<'_>, (usize, usize)> = BTreeMap::new();
        for machine in &self.machines {
            let out = machine.node.in_disruption() || machine.cordon_pending.is_some();
            let warm = self.now().duration_since(machine.node.joined_at).as_secs() < 15 * 60;
            for area in Area::of(&machine.node) {
                let (used, total) = counted.entry(area).or_default();
                *used += usize::from(out);
                *total += usize::from(!warm);
            }
        }
        for (area, (_, total)) in &mut counted {
            let budget = match area {
                Area::Fleet => &self.settings.fleet.budget,
                Area::Zone(..) => &self.settings.fleet.zone_budget,
                Area::Pool(..) => &self.settings.defaults.budget,
            };
            *total = allowed(budget, *total);
        }
        counted
    }
}

fn uncordoned(plan: &Plan) -> BTreeSet<String> {
    let back = plan.actions.iter().filter(|action| action.kind == ActionKind::Uncordon);
    back.map(|action| action.node.to_string()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// I4, and with it I3: `act` asks the invariant, too.
    #[test]
    fn i4_automatic_disruption_never_exceeds_its_budget(
        size in 1_usize..24,
        settings in any_settings(),
        story in proptest::collection::vec(anything(), 1..40),
    ) {
        let mut world = World::new(size, settings);
        // Without a reboot nothing leaves the count, so the budget holds at every instant.
        for what in story.iter().filter(|what| !matches!(what, Happens::Rebooted(_))) {
            world.happens(what);
            let plan = world.act()?;
            for (area, (used, allowed)) in world.uses() {
                prop_assert!(used <= allowed, "{area}: {used} of {allowed} after {what:?}: {plan}");
            }
        }
    }

    #[test]
    fn i4_an_action_never_leads_above_a_budget_that_shrank(
        size in 1_usize..24,
        settings in any_settings(),
        story in proptest::collection::vec(anything(), 1..40),
    ) {
        let mut world = World::new(size, settings);
        for what in &story {
            world.happens(what);
            let before: Vec<usize> = world.uses().values().map(|(used, _)| *used).collect();
            let plan = world.act()?;
            for ((area, (used, allowed)), before) in world.uses().into_iter().zip(before) {
                prop_assert!(used <= allowed.max(before), "{area}: {used} of {allowed}: {plan}");
            }
        }
    }

    #[test]
    fn guards_hold_whatever_happens(
        size in 1_usize..24,
        settings in any_settings(),
        story in proptest::collection::vec(anything(), 1..40),
    ) {
        let mut world = World::new(size, settings);
        for what in &story {
            world.happens(what);
            let free = uncordoned(&world.plan_with(&[]));
            let braked = uncordoned(&world.plan_with(&world.breakers));
            prop_assert_eq!(free, braked, "a breaker held back a recovery");
            let before = world.machines.clone();
            let (paused, excused) = (world.pauses.clone(), world.excuse.is_some());
            let plan = world.act()?;
            let open: Vec<&Scope> = world.breakers.iter()
                .filter(|breaker| breaker.half_open.is_none() && !breaker.is_closed())
                .map(|breaker| &breaker.scope)
                .collect();
            let stops = [ActionKind::Withdraw, ActionKind::StopDrain];
            for action in plan.actions.iter().filter(|action| !stops.contains(&action.kind)) {
                let found = before.iter().find(|machine| machine.node.id == action.node);
                let node = &found.unwrap().node;
                prop_assert!(!paused.iter().any(|pause| pause.covers(node)), "{plan}");
                prop_assert_ne!(&node.health.reason, "PolicyError");
                if action.kind != ActionKind::Uncordon {
                    let sick = node.health.state == HealthState::Unhealthy;
                    prop_assert!(sick || !excused, "{plan}: silence has an excuse");
                    let mut scopes = Area::of(node).map(Area::scope);
                    prop_assert!(!scopes.any(|scope| open.contains(&&scope)), "{plan}");
                }
            }
        }
    }

    /// Nothing of what happened while a breaker was open, or everything was paused, is made up for.
    #[test]
    fn f12_no_guard_leaves_a_backlog(
        size in 1_usize..24,
        settings in any_settings(),
        story in proptest::collection::vec(anything(), 1..40),
    ) {
        let mut world = World::new(size, settings);
        for what in &story {
            world.happens(what);
            world.act()?;
        }
        world.breakers.clear();
        world.pauses.clear();
        for index in 0..size {
            world.health(index, HealthState::Healthy, "");
            world.liveness(index, Liveness::Fresh);
        }
        let plan = world.act()?;
        let harm = |kind: ActionKind| match kind {
            ActionKind::Uncordon | ActionKind::Withdraw | ActionKind::StopDrain => false,
            ActionKind::Cordon | ActionKind::EnforceCordon | ActionKind::Drain => true,
        };
        prop_assert!(!plan.actions.iter().any(|action| harm(action.kind)), "{plan}");
    }

    #[test]
    fn a_single_sick_node_of_a_small_pool_is_repaired(size in 1_usize..=4, which in 0_usize..4) {
        let mut world = World::new(0, NodeSettings::default());
        world.machines = (0..size).map(|index| machine(&format!("n{index}"), "")).collect();
        world.happens(&Happens::Sick(which));
        let plan = world.act()?;
        prop_assert_eq!(plan.to_string(), format!("cordon n{}", which % size));
    }

    /// Carrying a plan out and planning again at the same moment adds nothing.
    #[test]
    fn a_plan_that_was_carried_out_is_not_made_again(
        size in 1_usize..24,
        settings in any_settings(),
        story in proptest::collection::vec(anything(), 1..40),
    ) {
        let mut world = World::new(size, settings);
        for what in &story {
            world.happens(what);
            let first = world.act()?;
            let again = world.act()?;
            for action in &again.actions {
                let same = |done: &&Action| done.node == action.node && done.kind == action.kind;
                prop_assert!(first.actions.iter().find(same).is_none(), "{first}, then {again}");
            }
        }
    }
}
