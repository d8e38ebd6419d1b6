//! What goes wrong, by chance: machines, links, clouds, the disk, and the processes of the control plane.
//!
//! Each fault has a number, in the order in which they come; to find out which of them matter, a run can be
//! repeated without some of them.

use super::fleet::{Power, Unit};
use super::tape::timer;
use super::{Happening, World, between, plain};
use crate::outcome::Fault;
use crate::scenario::{Effect, Place, Rate, Scope};
use argosy_agent::gpu::fake::injection::Injection;
use argosy_agent::swarm::Spec;
use jiff::SignedDuration;
use std::time::Duration;

/// A day, in seconds.
const DAY: f64 = 86_400.0;

/// For how long a rate that was worked out from the size of the fleet is gone by. What has not happened by then
/// is drawn anew, which changes no chance: what is waited for does not know how long it was.
const RATE_HOLDS: Duration = Duration::from_secs(3_600);

/// Something that is tried: it may be left out.
#[derive(Clone, Debug)]
pub(crate) enum Trial {
    /// A cause of the hardware.
    Hardware(usize),
    /// A cause of the hardware that did not come while its rate held.
    NotYet(usize),
    /// One fault brings another.
    Cascade { near: usize, effect: Box<Effect>, cause: String, depth: u32 },
    /// A place goes away.
    Outage(usize),
    /// A part of the fleet is cut off.
    Partition,
    /// A cloud has no stock.
    StockOut,
    /// A cloud takes a machine back.
    Reclaim,
    /// The disk fails over.
    FailOver,
    /// A process ends, or all do.
    Crash,
    /// A process stands still.
    Pause,
    /// A process's wall clock is set.
    ClockJump,
}

/// Faults of one machine within so many seconds may be noticed as one.
const TOGETHER_S: f64 = 600.0;

impl World {
    /// Draws when each kind of trouble first comes.
    pub(crate) fn plan_faults(&mut self) {
        for index in 0..self.trouble.hardware.len() {
            self.draw(Trial::Hardware(index));
        }
        for (index, outage) in self.trouble.outages.clone().into_iter().enumerate() {
            self.heap.push(plain(outage.at), Happening::Trial(Trial::Outage(index)));
        }
        for trial in [
            Trial::Partition,
            Trial::StockOut,
            Trial::Reclaim,
            Trial::FailOver,
            Trial::Crash,
            Trial::Pause,
            Trial::ClockJump,
        ] {
            self.draw(trial);
        }
    }

    /// Draws when the next fault of a kind comes.
    fn draw(&mut self, trial: Trial) {
        let trouble = &self.trouble;
        let per_day = match &trial {
            Trial::Hardware(index) => return self.draw_hardware(*index),
            Trial::Partition => trouble.link.partitions_per_day,
            Trial::StockOut => trouble.cloud.stockouts_per_day,
            Trial::Reclaim => trouble.cloud.reclaimed_per_day,
            Trial::FailOver => trouble.store.failovers_per_day,
            Trial::Crash => trouble.control.crashes_per_day,
            Trial::Pause => trouble.control.pauses_per_day,
            Trial::ClockJump => trouble.control.clock_jumps_per_day,
            Trial::NotYet(_) | Trial::Cascade { .. } | Trial::Outage(_) => return,
        };
        if 0.0 < per_day {
            let wait = self.dice.fault.wait(DAY / per_day);
            self.heap.push(self.now() + Duration::from_secs_f64(wait), Happening::Trial(trial));
        }
    }

    /// Draws when a cause of the hardware next comes, by the machines that are there.
    fn draw_hardware(&mut self, index: usize) {
        let Some(rate) = self.trouble.hardware.get(index).map(|cause| cause.rate) else { return };
        let (machines, gpus) = self.there();
        let per_day = match rate {
            Rate::PerDay(rate) => rate,
            Rate::PerMillionGpuHours(rate) => rate * 24.0 * gpus / 1e6,
            Rate::PerThousandNodeDays(rate) => rate * machines / 1e3,
        };
        let now = self.now();
        let holds = RATE_HOLDS.min(plain(self.scenario.duration) / 200);
        let wait = if 0.0 < per_day { self.dice.fault.wait(DAY / per_day) } else { f64::INFINITY };
        if wait < holds.as_secs_f64() {
            let at = now + Duration::from_secs_f64(wait);
            self.heap.push(at, Happening::Trial(Trial::Hardware(index)));
        } else {
            self.heap.push(now + holds, Happening::Trial(Trial::NotYet(index)));
        }
    }

    /// How many machines are there, and how many GPUs they have.
    fn there(&mut self) -> (f64, f64) {
        let now = self.now();
        let (counted_at, machines, gpus) = self.counted;
        // All causes ask at about the same time, and a fleet may be large.
        if counted_at.is_some_and(|at| now.saturating_sub(at) < Duration::from_secs(10)) {
            return (machines, gpus);
        }
        let there = self.units.iter().filter(|unit| !unit.dead);
        let sum =
            |(machines, gpus), unit: &Unit| (machines + 1.0, gpus + f64::from(unit.spec.gpus));
        let (machines, gpus) = there.fold((0.0, 0.0), sum);
        self.counted = (Some(now), machines, gpus);
        (machines, gpus)
    }

    /// The time of a fault has come.
    pub(crate) fn try_fault(&mut self, trial: Trial) {
        if plain(self.scenario.duration) <= self.now() {
            return;
        }
        if let Trial::NotYet(index) = trial {
            return self.draw_hardware(index);
        }
        self.draw(trial.clone());
        self.trials += 1;
        let skip = self.cut_out.skip.contains(&self.trials);
        let number = self.trials;
        match trial {
            Trial::Hardware(index) => {
                let Some(cause) = self.trouble.hardware.get(index).cloned() else { return };
                let there: Vec<usize> = (0..self.units.len())
                    .filter(|index| self.units.get(*index).is_some_and(|unit| !unit.dead))
                    .collect();
                let unit = self.dice.fault.pick(&there).copied();
                let total: f64 = cause.effects.iter().map(|(weight, _)| weight).sum();
                let mut left = self.dice.fault.share() * total;
                let effect = cause.effects.iter().find(|(weight, _)| {
                    left -= weight;
                    left < 0.0
                });
                let effect = effect.or(cause.effects.last()).map(|(_, effect)| effect.clone());
                let (Some(unit), Some(effect)) = (unit, effect) else { return };
                if skip {
                    return;
                }
                // A machine that is not up yet, or not any more, is not hit.
                if self.units.get(unit).is_some_and(Unit::has_power) {
                    self.note_fault(number, || format!("{} ({effect:?})", cause.name));
                    self.strike(unit, &cause.name, &effect, cause.interrupts);
                    self.spread(unit, &cause.name, &effect, 1);
                }
            }
            Trial::NotYet(_) => {}
            Trial::Cascade { near, effect, cause, depth } => {
                let target = self.neighbour(near);
                if let Some(unit) = target.filter(|_| !skip) {
                    self.note_fault(number, || format!("{cause} brings another"));
                    self.strike(unit, &cause, &effect, true);
                    self.spread(unit, &cause, &effect, depth + 1);
                }
            }
            Trial::Outage(index) => {
                let Some(outage) = self.trouble.outages.get(index).cloned() else { return };
                let hit = self.units_at(&outage.place);
                if skip {
                    return;
                }
                self.note_fault(number, || format!("{} ({} machines)", outage.name, hit.len()));
                for unit in hit {
                    match &outage.effect {
                        Effect::Partition(_) => {
                            let effect = Effect::Partition(outage.lasts);
                            self.strike(unit, &outage.name, &effect, true);
                        }
                        Effect::Silent => {
                            // A place that comes back: its machines boot again.
                            self.strike(unit, &outage.name, &Effect::Silent, true);
                            if let Some(unit) = self.units.get_mut(unit) {
                                unit.dead = false;
                            }
                            self.boot_after(unit, plain(outage.lasts));
                        }
                        effect @ (Effect::Inject(_)
                        | Effect::Reboot
                        | Effect::AgentCrash
                        | Effect::Clock(_)
                        | Effect::Unseen) => self.strike(unit, &outage.name, effect, true),
                    }
                }
            }
            Trial::Partition => {
                let share = self.dice.fault.share();
                // Mostly a rack or a few, now and then most of the fleet.
                let part = share * share * share;
                let lasts = self.dice.fault.wait(self.trouble.link.partition.as_secs_f64());
                let hit = self.units_at(&Place::Part(part));
                if skip {
                    return;
                }
                let lasts_s = lasts.round();
                self.note_fault(number, || {
                    format!("{} machines are cut off for {lasts_s} s", hit.len())
                });
                for unit in hit {
                    let lasts = SignedDuration::from_secs_f64(lasts);
                    self.strike(unit, "partition", &Effect::Partition(lasts), false);
                }
            }
            Trial::StockOut => {
                let lasts = self.dice.fault.wait(self.trouble.cloud.stockout.as_secs_f64());
                let clouds: Vec<_> = self.site.clouds.values().cloned().collect();
                let Some(cloud) = self.dice.fault.pick(&clouds).filter(|_| !skip) else { return };
                if let Some(zone) = cloud.stock_out(SignedDuration::from_secs_f64(lasts)) {
                    self.note_fault(number, || format!("no stock in {zone} for {lasts:.0} s"));
                    self.note_other(&zone, "stock-out", "no stock");
                }
            }
            Trial::Reclaim => {
                let clouds: Vec<_> = self.site.clouds.values().cloned().collect();
                let Some(cloud) = self.dice.fault.pick(&clouds).filter(|_| !skip) else { return };
                if let Some((machine, noticed)) = cloud.reclaim() {
                    self.note_fault(number, || format!("{} takes {machine} back", cloud.name));
                    let after = Duration::from_secs(if noticed { 120 } else { 0 });
                    let at = self.now() + after;
                    self.note_other(&machine, "reclaimed", "reclaimed");
                    let cloud = cloud.name.clone();
                    self.heap.push(at, Happening::Taken { cloud, machine });
                }
            }
            Trial::FailOver => {
                let mean = self.trouble.store.failover.as_secs_f64();
                let takes = self.dice.fault.wait(mean).min(mean * 5.0);
                if skip {
                    return;
                }
                self.note_fault(number, || format!("the disk fails over within {takes:.1} s"));
                self.note_other("store", "failover", "failover");
                self.play_until = timer() + super::TAKEOVER + Duration::from_secs_f64(takes);
                self.site.disk.fail_over(Duration::from_secs_f64(takes));
            }
            Trial::Crash => {
                let all = self.dice.control.happens(0.2);
                let number_of = self.dice.control.below(self.processes.len() as u64);
                let restart = plain(self.trouble.control.restart);
                if skip {
                    return;
                }
                let one = usize::try_from(number_of).unwrap_or(0);
                let hit = if all { 0..self.processes.len() } else { one..one + 1 };
                for process in hit {
                    let part = 0.2 + self.dice.control.share();
                    self.note_fault(number, || format!("process {} ends", process + 1));
                    self.note_other(&format!("process {}", process + 1), "crash", "crash");
                    self.crash(process, restart.mul_f64(part).max(Duration::from_secs(1)));
                }
            }
            Trial::Pause => {
                let one = self.dice.control.below(self.processes.len() as u64);
                let mean = self.trouble.control.pause.as_secs_f64();
                let lasts = Duration::from_secs_f64(self.dice.control.wait(mean).min(mean * 5.0));
                let one = usize::try_from(one).unwrap_or(0);
                let Some(process) = self.processes.get(one).filter(|_| !skip) else { return };
                process.gate.close(timer() + lasts);
                self.play_until = timer() + lasts + super::TAKEOVER;
                self.note_fault(number, || format!("process {} stands still {lasts:?}", one + 1));
                self.note_other(&format!("process {}", one + 1), "pause", "pause");
            }
            Trial::ClockJump => {
                let one = self.dice.control.below(self.processes.len() as u64);
                let most = self.trouble.control.clock_jump_max;
                let jump = (self.dice.control.share() * 2.0 - 1.0) * most as f64;
                #[expect(
                    clippy::cast_possible_truncation,
                    reason = "within what the scenario says"
                )]
                let jump = SignedDuration::from_secs(jump as i64);
                let one = usize::try_from(one).unwrap_or(0);
                let right_at = self.now() + plain(self.trouble.control.clock_wrong_for);
                let Some(process) = self.processes.get_mut(one).filter(|_| !skip) else { return };
                process.set_clock(jump);
                self.heap.push(right_at, Happening::SetRight { process: one });
                self.play_until = timer() + super::TAKEOVER;
                self.note_fault(number, || {
                    format!("the clock of process {} is set by {jump:#}", one + 1)
                });
                self.note_other(&format!("process {}", one + 1), "clock", "clock");
            }
        }
    }

    fn note_fault(&self, number: u64, what: impl FnOnce() -> String) {
        let now = self.now();
        self.tape.stir();
        self.tape.tell(now, || format!("fault {number}: {}", what()));
    }

    /// A fault of something that is no machine.
    fn note_other(&mut self, target: &str, cause: &str, kind: &str) {
        let at = self.seconds();
        self.gauge.faults.push(Fault {
            at,
            target: target.to_owned(),
            cause: cause.to_owned(),
            kind: kind.to_owned(),
            ..Fault::default()
        });
    }

    /// One fault may bring another nearby.
    fn spread(&mut self, near: usize, cause: &str, effect: &Effect, depth: u32) {
        let Some(cascade) = self.trouble.cascade.clone() else { return };
        if cascade.depth_max < depth || !self.dice.fault.happens(cascade.probability) {
            return;
        }
        let at = self.now() + between(&mut self.dice.fault, cascade.delay);
        let (effect, cause) = (Box::new(effect.clone()), cause.to_owned());
        let trial = Trial::Cascade { near, effect, cause, depth };
        self.heap.push(at, Happening::Trial(trial));
    }

    /// A machine near another that is well.
    fn neighbour(&mut self, near: usize) -> Option<usize> {
        let cascade = self.trouble.cascade.clone()?;
        let here = self.units.get(near)?.spec.clone();
        let same = |spec: &Spec| match cascade.scope {
            Scope::Rack => {
                here.labels.contains_key("rack")
                    && here.labels.get("rack") == spec.labels.get("rack")
            }
            Scope::Zone => here.zone == spec.zone && here.region == spec.region,
            Scope::Region => here.region == spec.region && here.provider == spec.provider,
            Scope::Provider => here.provider == spec.provider,
            Scope::Random => true,
        };
        let around: Vec<usize> = (0..self.units.len())
            .filter(|index| self.units.get(*index).is_some_and(|unit| same(&unit.spec)))
            .collect();
        let sick = |index: &&usize| {
            self.units.get(**index).is_some_and(|unit| unit.dead || !unit.sick.is_empty())
        };
        let hit = around.iter().filter(sick).count() as f64;
        if cascade.affected_max * around.len() as f64 <= hit {
            return None;
        }
        let well: Vec<usize> = around
            .into_iter()
            .filter(|index| {
                self.units.get(*index).is_some_and(|unit| unit.has_power() && unit.sick.is_empty())
            })
            .collect();
        self.dice.fault.pick(&well).copied()
    }

    /// What is noticed of a machine from now on is of this fault, and of those shortly before it: one that nobody
    /// noticed for long, or that nobody can, is not known because another one is.
    fn waits_to_be_known(&mut self, index: usize, number: usize, effect: &Effect) {
        let at = self.seconds();
        let Some(unit) = self.units.get_mut(index) else { return };
        unit.faults.retain(|earlier| {
            let earlier = self.gauge.faults.get(*earlier);
            earlier.is_some_and(|it| it.detected_after.is_some() || at - it.at < TOGETHER_S)
        });
        if !matches!(effect, Effect::Unseen) {
            unit.faults.push(number);
        }
    }

    /// Something happens to a machine.
    pub(crate) fn strike(&mut self, index: usize, cause: &str, effect: &Effect, interrupts: bool) {
        let (at, now) = (self.seconds(), self.now());
        let Some(unit) = self.units.get(index) else { return };
        let (target, gpus) = (unit.spec.node_id.clone(), unit.spec.gpus);
        self.tape.stir();
        let mut fatal = false;
        let kind = match effect {
            Effect::Inject(text) => {
                let gpu = self.dice.fault.below(u64::from(gpus.max(1)));
                let sticks = self.dice.fault.happens(0.5);
                let gpu = u32::try_from(gpu).unwrap_or(0);
                let Ok(injection) = Effect::injection(text, gpu) else { return };
                let hard = is_hard(&injection);
                fatal = hard && sticks;
                self.inject(index, &injection, !fatal);
                text.clone()
            }
            Effect::Silent => {
                fatal = true;
                self.power_off(index);
                if let Some(unit) = self.units.get_mut(index) {
                    unit.dead = true;
                }
                "silent".to_owned()
            }
            Effect::Reboot => {
                self.reboot(index);
                "reboot".to_owned()
            }
            Effect::AgentCrash => {
                self.crash_agent(index);
                "agent-crash".to_owned()
            }
            Effect::Partition(lasts) => {
                self.cut(index, plain(*lasts));
                "partition".to_owned()
            }
            Effect::Clock(seconds) => {
                if let Some(unit) = self.units.get_mut(index) {
                    unit.clock_off += SignedDuration::from_secs(*seconds);
                }
                self.unpark(index);
                "clock".to_owned()
            }
            Effect::Unseen => "unseen".to_owned(),
        };
        self.tape.note([b"fault".as_slice(), target.as_bytes(), kind.as_bytes()]);
        self.tape.tell(now, || format!("{target}: {kind}"));
        let number = self.gauge.faults.len();
        self.gauge.faults.push(Fault {
            at,
            target,
            cause: cause.to_owned(),
            kind,
            interrupts,
            ..Fault::default()
        });
        self.waits_to_be_known(index, number, effect);
        if interrupts {
            self.interrupt_work(index, cause, effect);
        }
        let Some(recovery) = self.trouble.recovery.clone() else { return };
        if fatal {
            if let Some(after) = recovery.replace_fatal_after {
                self.heap.push(now + plain(after), Happening::Heal { unit: index });
            }
        } else if self.dice.fault.happens(recovery.probability) {
            let (mean, deviation) = recovery.after;
            let after = self.dice.fault.around(mean.as_secs_f64(), deviation.as_secs_f64());
            let at = now + Duration::from_secs_f64(after.max(1.0));
            self.heap.push(at, Happening::Heal { unit: index });
        }
    }

    /// A machine is mended by its owner.
    pub(crate) fn mend(&mut self, index: usize) {
        let Some(unit) = self.units.get_mut(index) else { return };
        if unit.dead && unit.bought.is_some() {
            return;
        }
        unit.sick.clear();
        if unit.dead || matches!(unit.power, Power::Off) {
            unit.dead = false;
            unit.spec.boot += 1;
            let takes = plain(self.scenario.machines.reboot);
            self.boot_after(index, takes);
        } else {
            self.inject(index, &Injection::Heal { gpu: None }, true);
        }
    }

    /// What was wrong with a machine is not any more: all of it, or what one injection did.
    pub(crate) fn recover(&mut self, index: usize, what: Option<&str>) {
        self.tape.stir();
        self.uncut(index);
        let Some(unit) = self.units.get_mut(index) else { return };
        unit.clock_off = SignedDuration::ZERO;
        let left: Vec<(Injection, bool)> = match what {
            None => Vec::new(),
            Some(what) => {
                let same = |injection: &Injection| injection.to_string().starts_with(what);
                unit.sick.iter().filter(|(injection, _)| !same(injection)).cloned().collect()
            }
        };
        self.mend(index);
        for (injection, mended) in left {
            self.inject(index, &injection, mended);
        }
    }
}

/// Whether a place has a machine.
pub(crate) fn unit_matches(spec: &Spec, place: &Place) -> bool {
    match place {
        Place::Zone(zone) => spec.zone == *zone,
        Place::Region(region) => spec.region == *region,
        Place::Provider(provider) => spec.provider == *provider,
        Place::Pool(pool) => spec.pool == *pool,
        Place::Rack(rack) => spec.labels.get("rack") == Some(rack),
        Place::Node(node) => spec.node_id == *node,
        Place::Part(_) | Place::Everything => true,
    }
}

/// Whether a boot may not be enough to mend it.
fn is_hard(injection: &Injection) -> bool {
    let hard = [48, 62, 64, 74, 79, 95, 119, 120];
    if let Injection::Xid { code, .. } = injection {
        return hard.contains(code) || (136..=160).contains(code);
    }
    matches!(
        injection,
        Injection::Lost { .. } | Injection::Missing { .. } | Injection::RowRemapFailed { .. }
    )
}
