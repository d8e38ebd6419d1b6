//! The machines of a world: each runs the agent's own core, or stands for one that has nothing to say.

use super::cloud::Made;
use super::link::Connection;
use super::process::agent;
use super::tape::timer;
use super::{Happening, World};
use argosy_agent::agent::{Event, Exit};
use argosy_agent::gpu::fake::injection::Injection;
use argosy_agent::swarm::{Act, Disk, Load, Machine, Spec};
use argosy_api::rpc::attach::{Said, Told};
use argosy_control::pulse::{Attached, Moment, Pulse};
use argosy_core::access::Caller;
use jiff::{SignedDuration, Timestamp};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// How long an agent must have had nothing to say but that it is there before it is no longer asked: more than
/// two rounds of checks.
const CALM: Duration = Duration::from_secs(130);

/// The same where there are more than `WHOLE_MAX` machines: long enough to have registered and reported once.
const CALM_OF_MANY: Duration = Duration::from_secs(15);

/// What a machine without a GPU in the catalog has.
pub(crate) const MODEL: &str = "H100";

/// A machine of the world.
pub(crate) struct Unit {
    pub(crate) spec: Spec,
    pub(crate) caller: Caller,
    pub(crate) power: Power,
    /// What is on its disk while its agent does not run.
    disk: Disk,
    /// Which start of the agent this is: what was meant for an earlier one is not heard.
    pub(crate) start: u32,
    pub(crate) connection: Option<u64>,
    /// Since when its agent said nothing of interest, since the beginning.
    calm_since: Duration,
    /// While its beats are made without its agent.
    parked: Option<Parked>,
    /// What its last report said, but for when.
    reported: Option<u64>,
    /// By how much its clock is off.
    pub(crate) clock_off: SignedDuration,
    /// Until when nothing gets through to it, since the beginning.
    pub(crate) cut_until: Option<Duration>,
    /// It is broken for good: it never boots again.
    pub(crate) dead: bool,
    /// What is wrong with its GPUs, and whether a boot mends it.
    pub(crate) sick: Vec<(Injection, bool)>,
    /// The cloud that it is at, and what that calls it; `None` for one that is simply there.
    pub(crate) bought: Option<(String, String)>,
    /// When the control plane last heard it, on the timer.
    pub(crate) heard_at: Instant,
    /// Faults that were not repaired yet.
    pub(crate) faults: Vec<usize>,
    /// The last commands that its agent was told, and in which start of it; at most `TOLD_MAX`.
    pub(crate) told: VecDeque<(String, u32)>,
}

/// Where the beats of a machine go that has nothing to say. Gone with its stream.
pub(crate) struct Parked {
    /// Its place on the board.
    pulse: Arc<Pulse>,
    /// The process at the other end of its stream.
    process: usize,
}

/// How many commands of a machine are remembered: one runs at a time, and few wait.
const TOLD_MAX: usize = 8;

/// With more machines than this, those that have nothing to say are folded: each takes tens of kilobytes.
const WHOLE_MAX: usize = 50_000;

/// What a machine is doing.
pub(crate) enum Power {
    /// It is off, or no more.
    Off,
    /// It comes up.
    Booting,
    /// Its agent runs.
    On(Box<Machine>),
    /// Its agent has nothing to say, and is left out: it starts anew when something happens to the machine.
    Folded {
        /// Its stream, for the process that it was open at.
        _place: Attached,
        process: usize,
    },
    /// It is on, and its agent ended because it was told to.
    Idle,
}

impl Unit {
    pub(crate) fn new(spec: Spec, bought: Option<(String, String)>) -> Self {
        Self {
            caller: agent(&spec.node_id),
            spec,
            power: Power::Off,
            disk: Disk::default(),
            start: 0,
            connection: None,
            calm_since: Duration::ZERO,
            parked: None,
            reported: None,
            clock_off: SignedDuration::ZERO,
            cut_until: None,
            dead: false,
            sick: Vec::new(),
            bought,
            heard_at: timer(),
            faults: Vec::new(),
            told: VecDeque::new(),
        }
    }

    /// Its agent was told of a command; of one that is told again, when it was first.
    pub(crate) fn told_of(&mut self, command: &str) {
        if self.told.iter().any(|(known, _)| known == command) {
            return;
        }
        if TOLD_MAX <= self.told.len() {
            self.told.pop_front();
        }
        self.told.push_back((command.to_owned(), self.start));
    }

    /// Its agent runs.
    pub(crate) fn is_on(&self) -> bool {
        matches!(self.power, Power::On(_) | Power::Folded { .. })
    }

    /// What is on it works: the machine has power.
    pub(crate) fn has_power(&self) -> bool {
        self.is_on() || matches!(self.power, Power::Idle)
    }

    pub(crate) fn name(&self) -> &str {
        &self.spec.node_id
    }
}

/// The machine of a purchase, as its boot script would describe it.
pub(crate) fn spec_of(made: &Made, gpus: u32, model: &str) -> Spec {
    let purchase = &made.purchase;
    Spec {
        node_id: purchase.instance.to_string(),
        boot: 0,
        pool: purchase.pool.clone(),
        provider: purchase.order.provider.clone(),
        region: made.machine.region.clone(),
        zone: made.machine.zone.clone(),
        machine_type: made.machine.machine_type.clone(),
        gpus,
        model: model.to_owned(),
        labels: purchase.labels.clone(),
    }
}

impl World {
    /// The time on a machine's own clock.
    fn clock_of(&self, unit: &Unit) -> Timestamp {
        self.clock.now().saturating_add(unit.clock_off).unwrap_or(Timestamp::MAX)
    }

    pub(crate) fn load(&self) -> Load {
        Load {
            leaves_within: self.scenario.machines.drain,
            diagnostic: SignedDuration::from_secs(20),
            ..Load::default()
        }
    }

    /// A machine begins to boot, and is up after so long.
    pub(crate) fn boot_after(&mut self, index: usize, takes: Duration) {
        let at = self.now() + takes;
        let Some(unit) = self.units.get_mut(index) else { return };
        unit.power = Power::Booting;
        unit.start += 1;
        let start = unit.start;
        self.heap.push(at, Happening::Boot { unit: index, start });
    }

    /// A machine is up: its agent starts.
    pub(crate) fn boot(&mut self, index: usize, start: u32) {
        let (now, load) = (self.now(), self.load());
        let Some(unit) = self.units.get_mut(index) else { return };
        if unit.start != start || unit.dead || !matches!(unit.power, Power::Booting) {
            return;
        }
        let clock = self.clock.now().saturating_add(unit.clock_off).unwrap_or(Timestamp::MAX);
        let disk = std::mem::take(&mut unit.disk);
        let Ok((mut machine, mut acts)) = Machine::boot(unit.spec.clone(), disk, load, clock)
        else {
            unit.power = Power::Off;
            return;
        };
        for (injection, _) in &unit.sick {
            if let Some(Ok(more)) = machine.inject(injection, clock) {
                acts.extend(more);
            }
        }
        unit.power = Power::On(Box::new(machine));
        unit.calm_since = now;
        unit.reported = None;
        self.tape.tell(now, || format!("{} is up", unit.spec.node_id));
        self.carry_out(index, acts);
        self.resume_work(index);
    }

    /// A machine loses its power; what it keeps is kept.
    pub(crate) fn power_off(&mut self, index: usize) {
        self.hang_up(index);
        let Some(unit) = self.units.get_mut(index) else { return };
        if let Power::On(machine) = std::mem::replace(&mut unit.power, Power::Off) {
            unit.disk = machine.into_disk();
        }
        unit.start += 1;
    }

    /// A machine boots again: what a boot mends is mended.
    pub(crate) fn reboot(&mut self, index: usize) {
        let takes = super::plain(self.scenario.machines.reboot);
        self.power_off(index);
        let Some(unit) = self.units.get_mut(index).filter(|unit| !unit.dead) else { return };
        unit.spec.boot += 1;
        unit.sick.retain(|(_, mended)| !mended);
        self.boot_after(index, takes);
    }

    /// An agent ends in the middle of what it does, and is started again.
    pub(crate) fn crash_agent(&mut self, index: usize) {
        if self.units.get(index).is_some_and(Unit::is_on) {
            self.power_off(index);
            self.boot_after(index, Duration::from_secs(5));
        }
    }

    /// Its beats are no longer made without its agent; whether they were.
    pub(crate) fn rouse(&mut self, index: usize) -> bool {
        self.awake.insert(index);
        self.units.get_mut(index).is_some_and(|unit| unit.parked.take().is_some())
    }

    /// Its agent is asked for everything again.
    pub(crate) fn unpark(&mut self, index: usize) {
        let now = self.now();
        let parked = self.rouse(index);
        let Some(unit) = self.units.get_mut(index) else { return };
        unit.calm_since = now;
        if matches!(unit.power, Power::Folded { .. }) {
            unit.power = Power::Booting;
            unit.start += 1;
            let start = unit.start;
            self.boot(index, start);
        } else if parked {
            self.step(index, Event::Woke);
        }
    }

    /// Leaves an agent out that has nothing to say, with its end of the stream and the server's. Its disk is kept
    /// if it was ever told anything; what it measured is measured again when it starts anew.
    fn fold(&mut self, index: usize) {
        let Some(unit) = self.units.get_mut(index) else { return };
        let Some(Parked { pulse, process }) = &unit.parked else { return };
        let process = *process;
        let folded = Power::Folded { _place: pulse.attach(), process };
        if let Power::On(machine) = std::mem::replace(&mut unit.power, folded)
            && !unit.told.is_empty()
        {
            unit.disk = machine.into_disk();
        }
        if let Some(id) = unit.connection.take() {
            self.connections.remove(&id);
        }
    }

    /// The time has come at which an agent wanted to be woken.
    pub(crate) fn wake(&mut self, index: usize, start: u32, at: Timestamp) {
        let Some(unit) = self.units.get_mut(index) else { return };
        if unit.start != start || unit.parked.is_some() {
            return;
        }
        let Power::On(machine) = &mut unit.power else { return };
        if machine.is_due(at) {
            self.step(index, Event::Woke);
        }
    }

    /// Something happens to a GPU of a machine.
    pub(crate) fn inject(&mut self, index: usize, injection: &Injection, mended: bool) {
        self.unpark(index);
        let Some(unit) = self.units.get(index) else { return };
        let clock = self.clock_of(unit);
        let Some(unit) = self.units.get_mut(index) else { return };
        let heals = matches!(injection, Injection::Heal { .. });
        if heals {
            unit.sick.clear();
        } else {
            unit.sick.push((injection.clone(), mended));
        }
        let Power::On(machine) = &mut unit.power else { return };
        if let Some(Ok(acts)) = machine.inject(injection, clock) {
            self.carry_out(index, acts);
        }
    }

    /// An agent hears of something.
    pub(crate) fn step(&mut self, index: usize, event: Event) {
        let Some(unit) = self.units.get(index) else { return };
        let clock = self.clock_of(unit);
        let now = self.now();
        let Some(unit) = self.units.get_mut(index) else { return };
        let Power::On(machine) = &mut unit.power else { return };
        // That a report was taken is no news to anybody.
        if !matches!(&event, Event::Woke | Event::Told(Told::ReportAck(_))) {
            unit.calm_since = now;
        }
        let acts = machine.on(event, clock);
        self.carry_out(index, acts);
    }

    fn carry_out(&mut self, index: usize, acts: Vec<Act>) {
        let now = self.now();
        for act in acts {
            if !self.is_calm(index, &act)
                && let Some(unit) = self.units.get_mut(index)
            {
                unit.calm_since = now;
            }
            match act {
                Act::Attach(hello) => self.attach(index, *hello),
                Act::Say(said) => self.say(index, said),
                Act::Poll => self.unreachable(index, Duration::ZERO),
                Act::Detach => self.hang_up(index),
                Act::Exit(Exit::Terminated | Exit::Stopped) => {
                    self.power_off(index);
                    if let Some(unit) = self.units.get_mut(index) {
                        unit.power = Power::Idle;
                    }
                    return;
                }
            }
        }
        let every_beat = self.scenario.every_beat;
        let many = WHOLE_MAX < self.units.len();
        let Some(unit) = self.units.get_mut(index) else { return };
        let Power::On(machine) = &mut unit.power else { return };
        if let Some(at) = machine.new_wake() {
            // On the machine's clock, which may be off.
            let since = at.duration_since(self.epoch).saturating_sub(unit.clock_off);
            let event = Happening::Wake { unit: index, start: unit.start, at };
            self.heap.push(super::plain(since), event);
        }
        let connection = unit.connection.and_then(|id| self.connections.get(&id));
        let calm_for = if many { CALM_OF_MANY } else { CALM };
        let calm = calm_for < now.saturating_sub(unit.calm_since) && unit.cut_until.is_none();
        if !every_beat
            && calm
            && unit.parked.is_none()
            && let Some(process) = connection.and_then(Connection::open_at)
            && let Some(up) = self.processes.get(process).and_then(|process| process.up.as_ref())
            && let Some(pulse) = up.control.nodes.board.find(&unit.spec.node_id)
        {
            unit.parked = Some(Parked { pulse, process });
            self.awake.remove(&index);
            if unit.sick.is_empty() && many {
                self.fold(index);
            }
        }
    }

    /// Whether an act is nothing but a sign of life.
    fn is_calm(&mut self, index: usize, act: &Act) -> bool {
        match act {
            Act::Say(Said::Heartbeat(_)) => true,
            Act::Say(Said::Health(report)) if report.events.is_empty() => {
                let Some(unit) = self.units.get_mut(index) else { return true };
                let words = report.results.iter().flat_map(|result| {
                    let status = (result.status.to_i32()).to_le_bytes();
                    result.check.bytes().chain(status).chain(result.message.bytes())
                });
                let said = words.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
                    (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
                });
                unit.reported.replace(said) == Some(said)
            }
            Act::Say(_) | Act::Attach(_) | Act::Detach | Act::Poll | Act::Exit(_) => false,
        }
    }

    /// The beats of all machines whose agents have nothing else to say.
    pub(crate) fn beat(&mut self) {
        let now = timer();
        let moments: Vec<Option<Moment>> = self
            .processes
            .iter()
            .map(|process| {
                let open = process.up.is_some() && process.gate.closed_until().is_none();
                let monotonic = process.clock.monotonic();
                open.then(|| Moment { wall: process.clock.now(), monotonic })
            })
            .collect();
        for unit in &mut self.units {
            let Some(Parked { pulse, process }) = &unit.parked else { continue };
            if let Some(moment) = moments.get(*process).copied().flatten() {
                pulse.touch(moment);
                unit.heard_at = now;
            }
        }
    }
}
