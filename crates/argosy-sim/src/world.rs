//! The world: machines, links, clouds, a disk and several processes of the control plane, all by one seed.
//!
//! One task pops what is due from the heap and waits for the next; everything else that runs is the product.
//! Where nothing can happen, time is skipped: the wall clock coasts while the timer stands still, so that
//! nothing that is renewed or measured all the time notices (`may_coast`).

mod cloud;
mod engine;
mod fault;
mod fleet;
mod gauge;
mod heap;
mod link;
mod process;
mod script;
mod tape;

use crate::dice::{Dice, ln};
use crate::oracle::Oracle;
use crate::outcome::{Outcome, Violation};
use crate::run::{Product, RunError, Watcher};
use crate::scenario::{Scenario, StartupPattern, Trouble};
use argosy_agent::agent::{Event, Loss};
use argosy_agent::swarm::Spec;
use argosy_api::rpc::attach::{Said, Told};
use argosy_api::rpc::node::Hello;
use argosy_control::clock::Clock;
use argosy_control::ids::Ids;
use argosy_core::catalog::{Catalog, MachineType, ProviderCatalog};
use cloud::{Cloud, News};
use engine::Disk;
use fault::Trial;
use fleet::Unit;
use gauge::Gauge;
use heap::Heap;
use jiff::{SignedDuration, Timestamp};
use link::{Connection, Inbox, OpenEnd};
use process::{Process, Site};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tape::{Tape, timer};
use tokio::time::Instant;

pub(crate) use cloud::Made as Bought;
pub(crate) use tape::Line;

/// When every world begins.
const EPOCH: &str = "2026-01-01T00:00:00Z";

/// How long nothing must have happened on the timer before time may be skipped: longer than any loop of the
/// product rests between two looks.
const STILL: Duration = Duration::from_millis(2_500);

/// How long after a change of who leads time is played: a lease runs out, and another takes it.
const TAKEOVER: Duration = Duration::from_secs(20);

/// How long the control plane is down while somebody restores a backup.
const RESTORE_TAKES: Duration = Duration::from_secs(60);

/// How often the beats of machines that have nothing else to say are made, on the timer.
const BEAT_EVERY: Duration = Duration::from_secs(10);

/// A machine that was not heard for so long on the timer is silent.
const SILENT_AFTER: Duration = Duration::from_secs(21);

/// A machine that was not heard for so long is lost for the moment, whoever asks.
const LOST_AFTER: Duration = Duration::from_secs(35);

/// How often the operator looks for pools that stopped and asked for a person, once nothing goes wrong any more.
const RESUME_EVERY: Duration = Duration::from_secs(600);

/// What is left out of a run, to see whether it fails without it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Cut {
    /// Faults by their number.
    pub(crate) skip: BTreeSet<u64>,
    /// Everything after this time.
    pub(crate) until: Option<Duration>,
}

/// Something that happens.
pub(crate) enum Happening {
    Boot {
        unit: usize,
        start: u32,
    },
    Wake {
        unit: usize,
        start: u32,
        at: Timestamp,
    },
    Connect {
        connection: u64,
        hello: Box<Hello>,
    },
    Up {
        connection: u64,
        said: Box<Said>,
    },
    Down {
        connection: u64,
        told: Box<Told>,
    },
    Parted {
        connection: u64,
    },
    GivenUp {
        connection: u64,
    },
    Unreachable {
        unit: usize,
        start: u32,
    },
    Uncut {
        unit: usize,
    },
    Trial(Trial),
    Heal {
        unit: usize,
    },
    Taken {
        cloud: String,
        machine: String,
    },
    Restart {
        process: usize,
    },
    /// A time server sets the clock of a process right.
    SetRight {
        process: usize,
    },
    Step(usize),
    Wait(usize),
    Measure,
}

/// Chance, for each part of the world its own.
struct Chances {
    link: Dice,
    fault: Dice,
    boot: Dice,
    control: Dice,
}

/// A world.
pub(crate) struct World {
    scenario: Scenario,
    /// What may still go wrong: nothing, once faults have stopped.
    trouble: Trouble,
    cut_out: Cut,
    epoch: Timestamp,
    /// What time it really is.
    clock: Clock,
    tape: Tape,
    site: Arc<Site>,
    processes: Vec<Process>,
    heap: Heap<Happening>,
    units: Vec<Unit>,
    /// The machines that are not parked: of a million there are few, and they alone can be silent.
    awake: BTreeSet<usize>,
    by_name: BTreeMap<String, usize>,
    by_machine: BTreeMap<(String, String), usize>,
    connections: BTreeMap<u64, Connection>,
    connected: u64,
    orphans: Vec<(Instant, OpenEnd)>,
    inbox: Inbox,
    dice: Chances,
    oracle: Oracle,
    /// What the oracle knew at the last backup.
    saved: Option<Box<Oracle>>,
    gauge: Gauge,
    trials: u64,
    /// When the fleet was last counted, its machines and its GPUs.
    counted: (Option<Duration>, f64, f64),
    errands: script::Errands,
    next_beat: Instant,
    /// Until when time is played whatever happens, on the timer.
    play_until: Instant,
    violation: Option<Violation>,
    /// For `Watcher`: what it was told so far.
    told: (Duration, u64),
}

/// What a run gives.
pub(crate) struct Ran {
    pub(crate) outcome: Outcome,
    pub(crate) story: Vec<Line>,
    /// How many faults there were, left out or not.
    pub(crate) trials: u64,
}

/// A duration drawn from a range.
fn between(dice: &mut Dice, (from, to): (SignedDuration, SignedDuration)) -> Duration {
    let (from, to) = (plain(from), plain(to));
    let more = to.saturating_sub(from);
    if more.is_zero() {
        return from;
    }
    let more_us = u64::try_from(more.as_micros()).unwrap_or(u64::MAX);
    from + Duration::from_micros(dice.below(more_us))
}

/// A duration that is not negative.
fn plain(duration: SignedDuration) -> Duration {
    Duration::try_from(duration).unwrap_or(Duration::ZERO)
}

/// Plays a scenario from beginning to end. Needs a paused runtime of one thread.
pub(crate) async fn play(
    scenario: &Scenario,
    product: &Product,
    seed: u64,
    watcher: &Watcher,
    cut: Cut,
    with_story: bool,
) -> Result<Ran, RunError> {
    let mut world = World::new(scenario, product, seed, cut, with_story)?;
    world.begin().await?;
    let duration = plain(world.scenario.duration);
    let end = world.cut_out.until.map_or(duration, |until| until.min(duration));
    world.go_on(end, watcher).await?;
    if world.violation.is_none() {
        world.stop_faults();
        let settle = plain(world.scenario.settle);
        if !settle.is_zero() && world.cut_out.until.is_none() {
            world.settle(end + settle, watcher).await?;
        }
    }
    let outcome = world.outcome(seed);
    let (story, trials) = (world.tape.story(), world.trials);
    Ok(Ran { outcome, story, trials })
}

impl World {
    fn new(
        scenario: &Scenario,
        product: &Product,
        seed: u64,
        cut_out: Cut,
        with_story: bool,
    ) -> Result<Self, RunError> {
        let epoch: Timestamp =
            EPOCH.parse().map_err(|error| RunError::Machine(format!("{EPOCH}: {error}")))?;
        let scenario = scenario.clone();
        let mut product = product.clone();
        extend_catalog(&mut product.settings.catalog, &scenario);
        let clock = Clock::simulated(epoch);
        let tape = Tape::new(with_story);
        let dice = |part: &str| Dice::part(seed, part);
        let store = crate::scenario::Store {
            latency: scenario.trouble.store.latency,
            ..crate::scenario::Store::default()
        };
        let shared = (1 < scenario.processes).then_some(clock);
        let disk = Disk::new(epoch, dice("disk"), store, shared, tape.clone());
        let catalog = &product.settings.catalog;
        let clouds = used_providers(&scenario, catalog).into_iter().map(|name| {
            let of = catalog.providers.get(&name).cloned();
            let of = of.unwrap_or_else(|| ProviderCatalog {
                display: name.clone(),
                regions: Vec::new(),
                machine_types: BTreeMap::new(),
            });
            let prices = scenario.machines.prices.clone();
            let (dice, lies) = (dice(&format!("cloud {name}")), scenario.trouble.cloud.clone());
            let cloud = Cloud::new(&name, of, prices, dice, lies, clock, tape.clone());
            (name, cloud)
        });
        let clouds = clouds.collect();
        let ids = Ids::seeded(dice("ids").any());
        let oracle = Oracle::new(&product.settings);
        let site = Site {
            product,
            disk,
            clouds,
            ids,
            clock,
            tape: tape.clone(),
            deaths: Mutex::default(),
        };
        let count = usize::try_from(scenario.processes.max(1)).unwrap_or(1);
        let processes = (0..count).map(|number| Process::new(number, epoch)).collect();
        let gauge = Gauge::new(&scenario);
        Ok(Self {
            trouble: Trouble::default(),
            cut_out,
            epoch,
            clock,
            site: Arc::new(site),
            processes,
            heap: Heap::default(),
            units: Vec::new(),
            awake: BTreeSet::new(),
            by_name: BTreeMap::new(),
            by_machine: BTreeMap::new(),
            connections: BTreeMap::new(),
            connected: 0,
            orphans: Vec::new(),
            inbox: Inbox::default(),
            dice: Chances {
                link: dice("link"),
                fault: dice("fault"),
                boot: dice("boot"),
                control: dice("control"),
            },
            oracle,
            saved: None,
            gauge,
            trials: 0,
            counted: (None, 0.0, 0.0),
            errands: script::Errands::default(),
            next_beat: timer(),
            play_until: timer(),
            violation: None,
            told: (Duration::ZERO, 0),
            tape,
            scenario,
        })
    }

    /// How long it has been since the beginning.
    pub(crate) fn now(&self) -> Duration {
        plain(self.clock.now().duration_since(self.epoch))
    }

    fn seconds(&self) -> f64 {
        self.now().as_secs_f64()
    }

    /// The control plane starts, and what is declared is declared.
    async fn begin(&mut self) -> Result<(), RunError> {
        let site = self.site.clone();
        for process in &mut self.processes {
            process.start(&site).await.map_err(RunError::Declared)?;
        }
        self.declare().await?;
        self.gauge.wants(&self.scenario);
        // What goes wrong begins when everything is declared.
        self.trouble = self.scenario.trouble.clone();
        self.site.disk.arm(self.trouble.store.clone());
        self.place_fleet();
        self.plan_faults();
        for (index, step) in self.scenario.script.iter().enumerate() {
            self.heap.push(plain(step.at), Happening::Step(index));
        }
        self.heap.push(Duration::ZERO, Happening::Measure);
        Ok(())
    }

    /// The machines that are simply there.
    fn place_fleet(&mut self) {
        let nodes = self.scenario.fleet.nodes.clone();
        for node in nodes {
            let spec = Spec {
                node_id: node.id.clone(),
                boot: 0,
                pool: node.pool,
                provider: node.provider,
                region: node.region,
                zone: node.zone,
                machine_type: node.instance_type,
                gpus: node.gpus,
                model: if node.gpu_model.is_empty() {
                    fleet::MODEL.to_owned()
                } else {
                    node.gpu_model
                },
                labels: node.labels,
            };
            self.add_unit(Unit::new(spec, None));
        }
        if self.scenario.fleet.startup.by_itself {
            self.start_fleet();
        }
    }

    fn add_unit(&mut self, unit: Unit) -> usize {
        let index = self.units.len();
        self.by_name.insert(unit.spec.node_id.clone(), index);
        if let Some(bought) = unit.bought.clone() {
            self.by_machine.insert(bought, index);
        }
        self.units.push(unit);
        self.awake.insert(index);
        index
    }

    /// Every machine that is simply there starts, in its turn.
    fn start_fleet(&mut self) {
        let startup = self.scenario.fleet.startup.clone();
        let over = startup.over.as_secs_f64();
        let fleet: Vec<usize> = (0..self.units.len())
            .filter(|index| self.units.get(*index).is_some_and(|unit| unit.bought.is_none()))
            .collect();
        let count = fleet.len().max(1) as f64;
        let batch = f64::from(startup.batch.max(1));
        for (place, index) in fleet.into_iter().enumerate() {
            let place = place as f64;
            let part = match startup.pattern {
                StartupPattern::Instant => 0.0,
                StartupPattern::Linear => place / count,
                // Twice as many in each twentieth of the time.
                StartupPattern::Exponential => ln(place + 1.0) / ln(count + 1.0),
                StartupPattern::Wave => (place / batch).floor() / (count / batch).ceil().max(1.0),
            };
            let off = (self.dice.boot.share() * 2.0 - 1.0) * startup.jitter * over;
            let takes = (part * over + off).max(0.0) + self.dice.boot.share();
            self.boot_after(index, Duration::from_secs_f64(takes));
        }
    }

    /// Nothing goes wrong any more, and what is away comes back.
    fn stop_faults(&mut self) {
        let latency = self.trouble.link.latency;
        self.trouble = Trouble::default();
        self.trouble.link.latency = latency;
        self.site.disk.heal();
        for cloud in self.site.clouds.values() {
            cloud.heal();
        }
        for index in 0..self.units.len() {
            self.uncut(index);
        }
        for number in 0..self.processes.len() {
            self.set_right(number);
        }
        let now = self.now();
        self.tape.tell(now, || "nothing goes wrong any more".to_owned());
    }

    /// Plays until everything is as it was asked to be, or the time is over.
    async fn settle(&mut self, end: Duration, watcher: &Watcher) -> Result<(), RunError> {
        let step = Duration::from_secs(60);
        let mut resume_at = self.now();
        while self.violation.is_none() {
            let unsettled = self.unsettled();
            if resume_at <= self.now() {
                self.resume_stopped_pools();
                resume_at = self.now() + RESUME_EVERY;
            }
            if unsettled.is_none() && self.heap_is_idle() {
                return Ok(());
            }
            if end <= self.now() {
                if let Some(message) = unsettled {
                    self.violate("I10", message);
                }
                return Ok(());
            }
            let until = (self.now() + step).min(end);
            self.go_on(until, watcher).await?;
        }
        Ok(())
    }

    /// Plays until a time, or until something is that must never be.
    async fn go_on(&mut self, until: Duration, watcher: &Watcher) -> Result<(), RunError> {
        loop {
            self.take_in();
            if self.violation.is_some() {
                return Ok(());
            }
            self.tell_watcher(watcher);
            if watcher.is_stopped() {
                return Err(RunError::Stopped);
            }
            let now = self.now();
            if until <= now {
                return Ok(());
            }
            let mut happened = false;
            while let Some(event) = self.heap.due(now) {
                happened = true;
                self.happen(event).await;
                self.take_in();
                if self.violation.is_some() {
                    return Ok(());
                }
            }
            let ticked = timer();
            if self.next_beat <= ticked {
                self.next_beat = ticked + BEAT_EVERY;
                self.beat();
            }
            self.reap_orphans();
            if happened {
                continue;
            }
            let next = self.heap.next_at().map_or(until, |next| next.min(until));
            if let Some(time) = self.may_coast(now, next) {
                self.coast(time);
                // The timer moves on only when everybody who was woken has done what there was to do.
                tokio::time::sleep(Duration::from_millis(1)).await;
                continue;
            }
            let beat = self.next_beat.saturating_duration_since(timer());
            let wait = next.saturating_sub(self.now()).min(beat);
            tokio::select! {
                biased;
                () = self.tape.rung() => {}
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    fn tell_watcher(&mut self, watcher: &Watcher) {
        let (now, events) = (self.now(), self.tape.events());
        let passed = now.saturating_sub(self.told.0);
        if passed < Duration::from_secs(1) {
            return;
        }
        let passed_ms = u64::try_from(passed.as_millis()).unwrap_or(u64::MAX);
        watcher.passed(passed_ms, events - self.told.1);
        self.told = (now, events);
    }

    /// How much time can be skipped: `None` while anything may happen that goes by the timer.
    fn may_coast(&mut self, now: Duration, next: Duration) -> Option<Duration> {
        if self.scenario.every_beat || timer() < self.play_until {
            return None;
        }
        let (still, calling) = self.tape.still_for();
        if still < STILL || calling || !self.errands.is_empty() || !self.orphans.is_empty() {
            return None;
        }
        if self.oracle.goes_by_timer(self.clock.now()) || self.is_anybody_silent() {
            return None;
        }
        let mut until = next;
        for process in self.processes.iter().filter(|process| process.up.is_some()) {
            if let Some(time) = process.clock.next_sleeper() {
                until = until.min(now + plain(time.duration_since(process.clock.now())));
            }
        }
        let ends = self.oracle.next_end();
        if let Some(end) = ends {
            until = until.min(plain(end.duration_since(self.epoch)));
        }
        let time = until.saturating_sub(now);
        (Duration::from_millis(2) < time).then_some(time)
    }

    fn coast(&mut self, time: Duration) {
        let time = SignedDuration::try_from(time).unwrap_or(SignedDuration::ZERO);
        self.clock.coast(time);
        for process in &self.processes {
            process.clock.coast(time);
        }
    }

    /// Whether a node is silent that something may yet be done about, by the timer.
    fn is_anybody_silent(&self) -> bool {
        let ticked = timer();
        let patience = self.oracle.silence_matters_for() + SILENT_AFTER;
        let mut awake = self.awake.iter().filter_map(|index| self.units.get(*index));
        awake.any(|unit| {
            let quiet = ticked.saturating_duration_since(unit.heard_at);
            let cut_off = unit.connection.is_none() || unit.cut_until.is_some();
            (cut_off || SILENT_AFTER < quiet)
                && quiet < patience
                && self.oracle.is_expected(unit.name())
        })
    }

    /// Takes in what happened meanwhile: what was committed, told, bought, and who died.
    fn take_in(&mut self) {
        loop {
            let written = self.site.disk.written();
            let told = self.inbox.take();
            let torn = self.site.disk.torn();
            let deaths = std::mem::take(&mut *tape::lock(&self.site.deaths));
            let mut news = Vec::new();
            for cloud in self.site.clouds.values() {
                news.extend(cloud.news().into_iter().map(|it| (cloud.clone(), it)));
            }
            let nothing = written.is_empty() && told.is_empty() && torn.is_empty();
            if nothing && deaths.is_empty() && news.is_empty() {
                break;
            }
            for (cloud, news) in news {
                self.hear(&cloud, news);
            }
            for (revision, commit) in written {
                self.committed(revision, &commit);
            }
            for (connection, told) in told {
                self.tell(connection, told);
            }
            for process in torn {
                let now = self.now();
                self.tape
                    .tell(now, || format!("process {} ends in the middle of a batch", process + 1));
                let restart = plain(self.scenario.trouble.control.restart);
                self.crash(process, restart.max(Duration::from_secs(1)));
            }
            for (process, death) in deaths {
                if self.processes.get(process).is_some_and(|it| it.up.is_some()) {
                    self.violate("death", format!("process {}: {death}", process + 1));
                }
            }
        }
        let ended = self.errands.take();
        self.errands_ended(ended);
        let refused = self.processes.iter().find_map(|process| {
            let broken = process.up.as_ref()?.control.stats.last_refusal()?;
            Some((process.number + 1, broken))
        });
        if let Some((number, broken)) = refused
            && self.violation.is_none()
        {
            let message =
                format!("process {number} was about to commit what must never be: {broken}");
            self.violate("refused", message);
        }
    }

    fn violate(&mut self, invariant: &str, message: String) {
        let at = self.seconds();
        let now = self.now();
        self.tape.tell(now, || format!("{invariant} is broken: {message}"));
        if self.violation.is_none() {
            let invariant = invariant.to_owned();
            self.violation = Some(Violation { invariant, at, message });
        }
    }

    /// Something happened in a cloud.
    fn hear(&mut self, cloud: &Arc<Cloud>, news: News) {
        let now = self.now();
        match news {
            News::Made(made) => {
                let machine_type = made.machine.machine_type.clone();
                let types = &self.scenario.machines.types;
                let (gpus, model) = types
                    .get(&machine_type)
                    .cloned()
                    .unwrap_or_else(|| (cloud.gpus(&machine_type), model_of(&machine_type)));
                let spec = fleet::spec_of(&made, gpus, &model);
                self.tape.tell(now, || {
                    format!("{} made {} for {}", cloud.name, made.machine.id, spec.node_id)
                });
                let bought = Some((cloud.name.clone(), made.machine.id.to_string()));
                let name = spec.node_id.clone();
                let index = self.add_unit(Unit::new(spec, bought));
                let (mean, deviation) = self.scenario.machines.boot;
                let takes = self.dice.boot.around(mean.as_secs_f64(), deviation.as_secs_f64());
                let dud = 0.0 < self.trouble.cloud.duds
                    && self.dice.boot.happens(self.trouble.cloud.duds);
                let lemon = 0.0 < self.trouble.cloud.lemons
                    && self.dice.boot.happens(self.trouble.cloud.lemons);
                if lemon
                    && 0 < gpus
                    && let Some(unit) = self.units.get_mut(index)
                {
                    let gpu = 0;
                    unit.sick.push((
                        argosy_agent::gpu::fake::injection::Injection::RowRemapFailed { gpu },
                        false,
                    ));
                }
                if dud {
                    self.tape.tell(now, || format!("{name} will never boot"));
                } else {
                    self.boot_after(index, Duration::from_secs_f64(takes.max(5.0)));
                }
                let twin = self.oracle.bought(&made);
                if let Some(message) = twin {
                    self.violate("I2", message);
                }
            }
            News::Gone(id) => {
                self.oracle.returned(&cloud.name, &id);
                let index = self.by_machine.get(&(cloud.name.clone(), id)).copied();
                if let Some(index) = index {
                    self.tape.tell(now, || match self.units.get(index) {
                        Some(unit) => format!("the machine of {} is gone", unit.name()),
                        None => String::new(),
                    });
                    self.power_off(index);
                    if let Some(unit) = self.units.get_mut(index) {
                        unit.dead = true;
                    }
                }
            }
            News::Reboot(id) => {
                let index = self.by_machine.get(&(cloud.name.clone(), id)).copied();
                if let Some(index) = index {
                    self.gauge.acted("reboot");
                    self.reboot(index);
                }
            }
        }
    }

    async fn happen(&mut self, event: Happening) {
        match event {
            Happening::Boot { unit, start } => self.boot(unit, start),
            Happening::Wake { unit, start, at } => self.wake(unit, start, at),
            Happening::Connect { connection, hello } => self.connect(connection, *hello),
            Happening::Up { connection, said } => self.arrive_up(connection, said),
            Happening::Down { connection, told } => self.arrive_down(connection, told),
            Happening::Parted { connection } => self.part(connection),
            Happening::GivenUp { connection } => self.break_off(connection),
            Happening::Unreachable { unit, start } => {
                if self.units.get(unit).is_some_and(|it| it.start == start) {
                    let loss = Loss::Unreachable("nobody answers".to_owned());
                    self.step(unit, Event::Lost(loss));
                }
            }
            Happening::Uncut { unit } => {
                let now = self.now();
                let over = |it: &Unit| it.cut_until.is_some_and(|until| until <= now);
                if self.units.get(unit).is_some_and(over) {
                    self.uncut(unit);
                }
            }
            Happening::Trial(trial) => self.try_fault(trial),
            Happening::Heal { unit } => self.mend(unit),
            Happening::Taken { cloud, machine } => {
                if let Some(cloud) = self.site.clouds.get(&cloud) {
                    cloud.end(&machine);
                }
            }
            Happening::Restart { process } => self.restart(process).await,
            Happening::SetRight { process } => self.set_right(process),
            Happening::Step(index) => self.act(index),
            Happening::Wait(index) => self.wait_for(index),
            Happening::Measure => self.measure(),
        }
    }

    fn uncut(&mut self, index: usize) {
        if let Some(unit) = self.units.get_mut(index) {
            unit.cut_until = None;
        }
    }

    fn set_right(&mut self, number: usize) {
        let now = self.now();
        let Some(process) = self.processes.get_mut(number) else { return };
        if process.set_right() {
            self.play_until = timer() + TAKEOVER;
            self.tape.stir();
            self.tape.tell(now, || format!("the clock of process {} is right", number + 1));
        }
    }

    /// Everything stands still for so long: all processes are down.
    pub(crate) fn go_down(&mut self, time: Duration) {
        for number in 0..self.processes.len() {
            self.crash(number, time);
        }
    }

    /// The store is backed up.
    pub(crate) fn back_up(&mut self) {
        self.take_in();
        self.site.disk.back_up();
        self.saved = Some(Box::new(self.oracle.clone()));
        let now = self.now();
        self.tape.tell(now, || "the store is backed up".to_owned());
    }

    /// The store is again what it was at the last backup: restored below a control plane that was stopped for it, or
    /// below one that goes on.
    pub(crate) fn go_back(&mut self, restored: bool) {
        self.take_in();
        let Some(saved) = self.saved.clone() else { return };
        if restored {
            for process in 0..self.processes.len() {
                self.crash(process, RESTORE_TAKES);
            }
        }
        if !self.site.disk.go_back(restored) {
            return;
        }
        self.oracle.go_back_to(*saved);
        // Agents find out by what is answered to them.
        for unit in 0..self.units.len() {
            self.unpark(unit);
        }
        self.play_until = timer() + TAKEOVER;
        let now = self.now();
        let what = if restored { "the backup is restored" } else { "the store loses commits" };
        self.tape.stir();
        self.tape.tell(now, || what.to_owned());
    }

    /// A process ends without a word, and is started again after a while.
    fn crash(&mut self, number: usize, restart: Duration) {
        let Some(process) = self.processes.get_mut(number) else { return };
        if process.up.take().is_none() {
            return;
        }
        self.play_until = timer() + TAKEOVER;
        self.drop_streams(number);
        let at = self.now() + restart;
        self.heap.push(at, Happening::Restart { process: number });
    }

    async fn restart(&mut self, number: usize) {
        let site = self.site.clone();
        let now = self.now();
        let Some(process) = self.processes.get_mut(number) else { return };
        if process.up.is_some() {
            return;
        }
        self.play_until = timer() + TAKEOVER;
        match process.start(&site).await {
            Ok(()) => self.tape.tell(now, || format!("process {} is up again", number + 1)),
            Err(_) => {
                let at = self.now() + Duration::from_secs(1);
                self.heap.push(at, Happening::Restart { process: number });
            }
        }
    }
}

/// The providers that a scenario buys from.
fn used_providers(scenario: &Scenario, catalog: &Catalog) -> BTreeSet<String> {
    let mut used = BTreeSet::new();
    let mut look = |value: &serde_json::Value| {
        let text = value.to_string();
        let named = catalog.providers.keys().filter(|name| text.contains(&format!("\"{name}\"")));
        used.extend(named.cloned());
    };
    for cluster in &scenario.clusters {
        look(&cluster.spec);
        cluster.pools.iter().for_each(|(_, spec)| look(spec));
    }
    used
}

/// Makes the catalog know what the scenario names.
fn extend_catalog(catalog: &mut Catalog, scenario: &Scenario) {
    for cluster in &scenario.clusters {
        let text = |key: &str| cluster.spec.get(key).and_then(|it| it.as_str()).map(str::to_owned);
        let Some(provider) = text("provider") else { continue };
        let of = catalog.providers.entry(provider.clone()).or_insert_with(|| ProviderCatalog {
            display: provider,
            regions: Vec::new(),
            machine_types: BTreeMap::new(),
        });
        if let Some(region) = text("region").filter(|region| !of.regions.contains(region)) {
            of.regions.push(region);
        }
        for (name, (gpus, _)) in &scenario.machines.types {
            let cpus = (gpus * 24).max(4);
            let machine_type = MachineType { cpus, gpus: *gpus };
            of.machine_types.entry(name.clone()).or_insert(machine_type);
        }
        for (_, spec) in &cluster.pools {
            let count = ["nodeCount", "maxNodes", "minNodes"].into_iter();
            let count = count.filter_map(|key| spec.get(key).and_then(|it| it.as_u64())).max();
            let count = u32::try_from(count.unwrap_or(0)).unwrap_or(u32::MAX);
            // A pool that heals has more machines than nodes for a while.
            catalog.nodes_max = catalog.nodes_max.max(count);
        }
    }
}

/// The GPUs of a machine type, by its name.
fn model_of(machine_type: &str) -> String {
    let name = machine_type.to_ascii_lowercase();
    let known = [
        ("a100", "A100"),
        ("a2-", "A100"),
        ("p4d", "A100"),
        ("p5e", "H200"),
        ("h200", "H200"),
        ("b200", "B200"),
        ("l40s", "L40S"),
        ("t4", "T4"),
        ("v100", "V100"),
    ];
    let found = known.iter().find(|(part, _)| name.contains(part));
    found.map_or(fleet::MODEL, |(_, model)| model).to_owned()
}
