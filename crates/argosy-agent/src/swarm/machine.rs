//! One machine of a swarm: the agent, GPUs that are made up, the work on them, and a disk in memory.
//!
//! Nothing here waits: an event goes in with the time, and what is to be said comes out.

use crate::agent::{Agent, Effect, Event, Exit, Identity};
use crate::check::CheckOutcome;
use crate::command::drain::{self, Busy, HookState};
use crate::command::{Action, Drained, End, Failure, Order, Outcome, parse};
use crate::diagnose::{Plan, quick};
use crate::driver::{gpu_metrics, wanted, wire_gpus};
use crate::gpu::fake::injection::Injection;
use crate::gpu::fake::{Fake, InjectError, SpecError};
use crate::gpu::{GpuError, Inventory, Sweep};
use crate::journal::Entry;
use crate::log::{Line, Source};
use crate::signal::{Signal, SignalKind};
use crate::spool::Spooled;
use crate::watch::flood::Flood;
use crate::watch::gpu::{Expected, GpuWatch, Memory};
use crate::watch::log::LogWatch;
use argosy_api::rpc::attach::Said;
use argosy_api::rpc::node::{Hello, NodeMetrics, RegisterNodeRequest};
use argosy_core::plant::{self, Bug};
use jiff::{SignedDuration, Timestamp};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// What a machine is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spec {
    /// The id of its node.
    pub node_id: String,
    /// Which start of the machine it is: another number, another boot.
    pub boot: u32,
    /// The pool of its node.
    pub pool: String,
    /// The provider.
    pub provider: String,
    /// The region.
    pub region: String,
    /// The zone.
    pub zone: String,
    /// The machine type.
    pub machine_type: String,
    /// How many GPUs it has.
    pub gpus: u32,
    /// Which: `H100`. Not looked at without any.
    pub model: String,
    /// The labels of its node.
    pub labels: BTreeMap<String, String>,
}

impl Spec {
    /// Whether there can be such GPUs.
    pub(super) fn check(&self) -> Result<(), SpecError> {
        self.fake().map(|_| ())
    }

    fn fake(&self) -> Result<Option<Fake>, SpecError> {
        if self.gpus == 0 {
            return Ok(None);
        }
        Fake::parse(&format!("{}x{}", self.gpus, self.model), &self.node_id).map(Some)
    }

    fn registration(&self, boot_id: &str) -> RegisterNodeRequest {
        let Self { node_id, pool, provider, region, zone, machine_type, labels, .. } = self.clone();
        RegisterNodeRequest {
            hostname: node_id.clone(),
            machine_id: format!("simulated-{node_id}"),
            node_id,
            provider,
            region,
            zone,
            instance_type: machine_type,
            pool,
            boot_id: boot_id.to_owned(),
            agent_version: env!("CARGO_PKG_VERSION").to_owned(),
            kernel_version: "6.8.0-1024-simulated".to_owned(),
            labels: labels.into_iter().collect(),
            ..RegisterNodeRequest::default()
        }
    }
}

/// The work on the machines: how busy it makes them, and how long it takes to leave.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Load {
    /// How busy machines are on average, in percent.
    pub mean_percent: f32,
    /// By how much that moves up and down.
    pub swing_percent: f32,
    /// How long one up and down takes.
    pub period: SignedDuration,
    /// How long work goes on at most once its machine is drained; each machine takes its own part of it.
    pub leaves_within: SignedDuration,
    /// How long a diagnostic takes.
    pub diagnostic: SignedDuration,
}

impl Default for Load {
    /// Busy, moving within minutes so that people see it move, and gone soon when it has to.
    fn default() -> Self {
        Self {
            mean_percent: 62.0,
            swing_percent: 24.0,
            period: SignedDuration::from_mins(15),
            leaves_within: SignedDuration::from_secs(4),
            diagnostic: SignedDuration::from_secs(2),
        }
    }
}

impl Load {
    /// How busy a machine is at a time, from 0 to 100: the same in every run.
    pub(super) fn percent(&self, node_id: &str, now: Timestamp) -> f32 {
        let period = self.period.as_secs().max(1);
        let phase = share(node_id, "phase");
        let turns = now.as_second().rem_euclid(period) as f32 / period as f32 + phase;
        // A second, faster wave: no real curve is as smooth as one.
        let swing = 0.85 * wave(turns) + 0.15 * wave(turns * 7.0);
        (self.mean_percent + self.swing_percent * swing).clamp(0.0, 100.0)
    }
}

/// A hill and a valley in each turn, from 1 to -1. Not a sine: the last bit of that is the platform's.
fn wave(turns: f32) -> f32 {
    let part = turns.rem_euclid(1.0);
    let half = (part * 2.0).fract();
    let hill = 4.0 * half * (1.0 - half);
    if part < 0.5 { hill } else { -hill }
}

/// What a machine keeps while it is off.
#[derive(Clone, Debug, Default)]
pub struct Disk {
    spooled: Spooled,
    journal: Vec<Entry>,
    gpus: Memory,
}

/// How many commands a disk remembers: as many as a control plane can have waiting, and those before.
const JOURNAL_MAX: usize = 64;

/// How often a drain looks whether anything still runs.
const LOOK_EVERY: SignedDuration = SignedDuration::from_secs(2);
/// How long a drain takes that has no deadline: only a control plane that is not ours sends one.
const DRAIN_DEFAULT: SignedDuration = SignedDuration::from_mins(5);

impl Disk {
    fn note(&mut self, entry: Entry) {
        match self.journal.iter_mut().find(|known| known.order.id == entry.order.id) {
            Some(known) => *known = entry,
            None => self.journal.push(entry),
        }
        if JOURNAL_MAX < self.journal.len() {
            self.journal.remove(0);
        }
    }

    fn report(&mut self, report: crate::spool::Report) {
        self.spooled.signals.retain(|signal| !report.signals.contains(signal));
        self.spooled.report = Some(report);
    }
}

/// Something for the line, or the end.
pub enum Act {
    /// Opens a stream and says hello on it.
    Attach(Box<Hello>),
    /// Gives the stream up.
    Detach,
    /// Says this on the stream, or by a call if there is none.
    Say(Said),
    /// Asks for commands by a call.
    Poll,
    /// The agent ends.
    Exit(Exit),
}

/// A machine that is up. It does nothing by itself: whoever has it tells it what happens, and when.
pub struct Machine {
    agent: Agent,
    who: Arc<Identity>,
    load: Load,
    gpus: Option<Fake>,
    watch: GpuWatch,
    lines: LogWatch,
    flood: Flood,
    disk: Disk,
    works: bool,
    command: Option<Command>,
    /// The time at which it was last promised to be woken.
    wake: Option<Timestamp>,
}

/// A command at work.
struct Command {
    order: Order,
    /// When to look at it again.
    look_at: Timestamp,
    doing: Doing,
}

enum Doing {
    Drain {
        force: bool,
        /// When the work that runs comes to its end.
        free_at: Timestamp,
        deadline: Timestamp,
        /// What was said last.
        said: String,
    },
    Diagnose(Plan),
}

impl Machine {
    /// Boots it with what it kept on its disk.
    ///
    /// # Errors
    /// If nobody can make up such GPUs.
    pub fn boot(
        spec: Spec,
        disk: Disk,
        load: Load,
        now: Timestamp,
    ) -> Result<(Self, Vec<Act>), SpecError> {
        let gpus = spec.fake()?;
        let who = Arc::new(Identity {
            node_id: spec.node_id.clone(),
            boot_id: format!("{}-boot-{}", spec.node_id, spec.boot),
            agent_version: env!("CARGO_PKG_VERSION").to_owned(),
        });
        let mut watch = GpuWatch::new(Expected::default(), disk.gpus.clone());
        watch.rebooted();
        let mut machine = Self {
            agent: Agent::new(who.clone()),
            load,
            gpus,
            watch,
            lines: LogWatch::default(),
            flood: Flood::default(),
            works: false,
            command: None,
            wake: None,
            disk,
            who,
        };
        machine.begin_work();
        let inventory = machine.inventory();
        let mut registration = spec.registration(&machine.who.boot_id);
        registration.gpus = inventory.as_ref().map(wire_gpus).unwrap_or_default();
        let complete = inventory.is_ok();
        machine.lines.learn(&inventory.unwrap_or_default());
        let spooled = machine.disk.spooled.clone();
        let journal = machine.disk.journal.clone();
        let sampled = machine.sample(now);
        let described = Event::Described { registration: Arc::new(registration), complete };
        let acts = machine.hear([Event::Started { spooled, journal }, described, sampled], now);
        Ok((machine, acts))
    }

    /// The machine loses its power.
    #[must_use]
    pub fn into_disk(self) -> Disk {
        Disk { gpus: self.watch.memory().clone(), ..self.disk }
    }

    /// The id of its node.
    pub fn node_id(&self) -> String {
        self.who.node_id.clone()
    }

    /// Whether work runs on it.
    pub fn works(&self) -> bool {
        self.works
    }

    /// Whether it was promised to be woken at this time.
    pub fn is_due(&mut self, at: Timestamp) -> bool {
        self.wake.take_if(|wake| *wake == at).is_some()
    }

    /// When it wants to be woken, if that has not been promised.
    pub fn new_wake(&mut self) -> Option<Timestamp> {
        let command = self.command.as_ref().map(|command| command.look_at);
        let wishes = [self.agent.wakes_at(), command, self.flood.next_due()];
        let soonest = wishes.into_iter().flatten().min()?;
        if self.wake == Some(soonest) {
            return None;
        }
        self.wake = Some(soonest);
        Some(soonest)
    }

    /// What follows from an event.
    pub fn on(&mut self, event: Event, now: Timestamp) -> Vec<Act> {
        let mut events = vec![event];
        events.extend(self.look_at_command(now));
        let gathered = self.flood.due(now);
        if !gathered.is_empty() {
            events.push(Event::Seen(gathered));
        }
        self.hear(events, now)
    }

    /// Makes something happen to a GPU; `None` without any.
    pub fn inject(
        &mut self,
        injection: &Injection,
        now: Timestamp,
    ) -> Option<Result<Vec<Act>, InjectError>> {
        let written = match self.gpus.as_mut()?.inject(injection) {
            Ok(written) => written,
            Err(error) => return Some(Err(error)),
        };
        let mut seen = Vec::new();
        for text in written {
            let line = Line { source: Source::Kmsg, at: now, text, lost_before: 0 };
            seen.extend(self.lines.read(&line));
        }
        for signal in &mut seen {
            if let (SignalKind::Xid, Some(gpu)) = (signal.kind, &signal.gpu) {
                let advised = self.watch.recovery_action(&gpu.uuid).filter(|action| *action != 0);
                signal.recovery_action = signal.recovery_action.or(advised);
            }
        }
        let seen: Vec<Signal> =
            seen.into_iter().filter_map(|signal| self.flood.on(signal, now)).collect();
        // What a sample would see after the next heartbeat: it brings the round forward.
        Some(Ok(self.hear([Event::Seen(seen), Event::Alarmed], now)))
    }

    /// Hears events in their order, and what comes of them.
    fn hear(&mut self, events: impl IntoIterator<Item = Event>, now: Timestamp) -> Vec<Act> {
        let mut unheard: VecDeque<Event> = events.into_iter().collect();
        let mut acts = Vec::new();
        while let Some(event) = unheard.pop_front() {
            for effect in self.agent.on(event, now) {
                self.carry_out(effect, now, &mut unheard, &mut acts);
            }
        }
        acts
    }

    fn carry_out(
        &mut self,
        effect: Effect,
        now: Timestamp,
        unheard: &mut VecDeque<Event>,
        acts: &mut Vec<Act>,
    ) {
        match effect {
            Effect::Attach(hello) => acts.push(Act::Attach(hello)),
            Effect::Detach => acts.push(Act::Detach),
            Effect::Poll => acts.push(Act::Poll),
            Effect::Say(said) => {
                if matches!(said, Said::Heartbeat(_)) {
                    unheard.push_back(self.sample(now));
                }
                acts.push(Act::Say(said));
            }
            Effect::Check(names) => unheard.push_back(self.check(&names, now)),
            Effect::Keep(signals) => self.disk.spooled.signals.extend(signals),
            Effect::KeepReport(report) => self.disk.report(*report),
            Effect::Forget(sequence) => {
                self.disk.spooled.report.take_if(|report| report.sequence <= sequence);
            }
            Effect::KeepOnly(spooled) => self.disk.spooled = *spooled,
            Effect::Note(entry) => {
                let command = entry.order.id.clone();
                self.disk.note(*entry);
                unheard.push_back(Event::Noted { command, error: None });
            }
            Effect::Begin(order) => unheard.extend(self.begin(*order, now)),
            Effect::Cancel(id) => unheard.extend(self.cancel(&id, now)),
            Effect::Exit(exit) => acts.push(Act::Exit(exit)),
            // Asked for when it is known what else wants to be woken.
            Effect::Wake(_) => {}
            Effect::Notice(notice) => {
                let (node, about) = (&self.who.node_id, notice.about);
                tracing::debug!(%node, about, "{}", notice.sentence);
            }
        }
    }

    fn inventory(&self) -> Result<Inventory, GpuError> {
        self.gpus.as_ref().map_or_else(|| Ok(Inventory::default()), Fake::inventory)
    }

    fn sweep(&self, now: Timestamp) -> Result<Sweep, GpuError> {
        self.gpus.as_ref().map_or_else(|| Ok(Sweep::default()), |gpus| gpus.sweep(now))
    }

    /// A round of checks, with the agent's own watchers.
    fn check(&mut self, names: &[String], now: Timestamp) -> Event {
        let inventory = self.inventory().unwrap_or_default();
        let sweep = self.sweep(now);
        self.lines.learn(&inventory);
        let looked = self.watch.on(sweep.as_ref(), &inventory, now);
        let mut outcomes = looked.checks;
        outcomes.push(self.lines.outcome(&[Source::Kmsg], &[]));
        outcomes.push(CheckOutcome::healthy("agent", "the agent works"));
        Event::Checked { outcomes: wanted(outcomes, names), signals: looked.signals }
    }

    /// How busy the machine is.
    fn sample(&self, now: Timestamp) -> Event {
        let percent = if self.works { self.load.percent(&self.who.node_id, now) } else { 0.0 };
        let sweep = self.sweep(now).unwrap_or_default();
        let gpus = sweep.gpus.iter().map(|reading| {
            // Each GPU a little apart from the others, as they are.
            let apart = share(&reading.uuid, "apart") * 6.0 - 3.0;
            let percent = if self.works { (percent + apart).clamp(0.0, 100.0) } else { 0.0 };
            let metrics = gpu_metrics(reading);
            // A job takes most of the memory when it begins, and keeps it.
            let filled = 0.55 + 0.4 * f64::from(share(&reading.uuid, "memory"));
            let free = if self.works { reading.memory_free_bytes.unwrap_or(0) } else { 0 };
            argosy_api::rpc::node::GpuMetrics {
                utilization_percent: percent.round(),
                memory_used_bytes: metrics.memory_used_bytes + (free as f64 * filled) as u64,
                ..metrics
            }
        });
        Event::Sampled(Box::new(NodeMetrics {
            cpu_usage_percent: (percent * 0.4 + 2.0).clamp(0.0, 100.0),
            memory_usage_percent: if self.works { 44.0 } else { 6.0 },
            gpus: gpus.collect(),
        }))
    }

    /// Work comes to the machine: a program on each GPU.
    fn begin_work(&mut self) {
        self.works = true;
        let Some(gpus) = &mut self.gpus else { return };
        gpus.end_processes();
        for gpu in 0..crate::gpu::fake::GPUS_MAX {
            let (pid, name) = (4_000 + gpu, "python".to_owned());
            if gpus.inject(&Injection::Process { gpu, pid, name }).is_err() {
                return;
            }
        }
    }

    fn end_work(&mut self) {
        self.works = false;
        if let Some(gpus) = &mut self.gpus {
            gpus.end_processes();
        }
    }

    fn begin(&mut self, order: Order, now: Timestamp) -> Vec<Event> {
        let done = |outcome| Ok(Some(outcome));
        let done = match parse(&order) {
            Err(bad) => Err(Failure::from(bad)),
            Ok(Action::Cordon) => done(Outcome::new("takes no new work")),
            Ok(Action::Uncordon) => {
                self.begin_work();
                done(Outcome::new("takes work again"))
            }
            Ok(Action::Terminate { exit }) => done(Outcome { exit, ..Outcome::new("stopping") }),
            Ok(Action::Drain { .. }) if plant::has(Bug::DrainDoneTooSoon) => {
                let drained = Some(Drained::Drained);
                done(Outcome { drained, ..Outcome::new("nothing runs on a GPU") })
            }
            Ok(Action::Drain { force }) => {
                let share = f64::from(share(&self.who.node_id, &order.id));
                let leaves_s = self.load.leaves_within.as_secs_f64() * share;
                let free_at = later(now, SignedDuration::from_secs_f64(leaves_s));
                let deadline = order.deadline.unwrap_or_else(|| later(now, DRAIN_DEFAULT));
                let doing = Doing::Drain { force, free_at, deadline, said: String::new() };
                self.command = Some(Command { order: order.clone(), look_at: now, doing });
                Ok(None)
            }
            Ok(Action::Diagnose(plan)) => {
                let look_at = later(now, self.load.diagnostic);
                let doing = Doing::Diagnose(plan);
                self.command = Some(Command { order: order.clone(), look_at, doing });
                Ok(None)
            }
        };
        match done {
            Ok(None) => self.look_at_command(now).into_iter().collect(),
            Ok(Some(outcome)) => vec![ended(&order, Ok(outcome), now)],
            Err(failure) => vec![ended(&order, Err(failure), now)],
        }
    }

    fn cancel(&mut self, id: &str, now: Timestamp) -> Option<Event> {
        let Command { order, .. } = self.command.take_if(|command| command.order.id == id)?;
        let end = End::cancelled(now, &order, "taken back");
        Some(Event::Ended { command: order.id, end })
    }

    /// How the command at work is, if it is time to look.
    fn look_at_command(&mut self, now: Timestamp) -> Option<Event> {
        let mut command = self.command.take_if(|command| command.look_at <= now)?;
        let (free_at, deadline, force, said) = match &mut command.doing {
            Doing::Diagnose(plan) => {
                let diagnosis = self.diagnose(plan, now);
                return Some(ended(&command.order, diagnosis, now));
            }
            Doing::Drain { force, free_at, deadline, said } => (*free_at, *deadline, *force, said),
        };
        if free_at <= now {
            self.end_work();
        }
        let busy = drain::busy(&self.sweep(now), &BTreeSet::new());
        if let Some(outcome) = drain::verdict(&busy, &HookState::Done, true, deadline <= now) {
            let outcome = match busy {
                Busy::With(processes) if force => {
                    self.end_work();
                    let message =
                        format!("{} processes were ended at the deadline", processes.len());
                    Outcome { drained: Some(Drained::Forced), ..Outcome::new(message) }
                }
                Busy::With(_) | Busy::Free | Busy::Unknown(_) => outcome,
            };
            return Some(ended(&command.order, Ok(outcome), now));
        }
        let words = format!("waiting: {}", busy.words());
        let news = (words != *said).then(|| {
            said.clone_from(&words);
            let command = command.order.id.clone();
            Event::Progress { command, percent: 0, message: words }
        });
        let ends = [free_at, deadline].into_iter().filter(|at| now < *at);
        command.look_at = ends.fold(later(now, LOOK_EVERY), Timestamp::min);
        self.command = Some(command);
        news
    }

    /// What the quick test says of the GPUs: no other can be run on made-up ones, so it stands for all.
    fn diagnose(&self, plan: &Plan, now: Timestamp) -> Result<Outcome, Failure> {
        let failed = |error: GpuError| Failure(error.to_string());
        let (inventory, sweep) =
            (self.inventory().map_err(failed)?, self.sweep(now).map_err(failed)?);
        let mut diagnosis = quick::judge(&inventory, &sweep, plan.gpu);
        diagnosis.test = plan.test.as_str().to_owned();
        let result = serde_json::to_value(&diagnosis).ok();
        Ok(Outcome { result, ..Outcome::new(diagnosis.message) })
    }
}

fn ended(order: &Order, said: Result<Outcome, Failure>, now: Timestamp) -> Event {
    Event::Ended { command: order.id.clone(), end: End::of(now, said) }
}

fn later(time: Timestamp, by: SignedDuration) -> Timestamp {
    time.saturating_add(by).unwrap_or(Timestamp::MAX)
}

/// A number from 0 to 1 for `who` and `what`: spread over the fleet, and the same in every run.
fn share(who: &str, what: &str) -> f32 {
    let seed = who.bytes().chain(what.bytes());
    // FNV-1a: `DefaultHasher` may change between Rust releases, and replays must not.
    let hash = seed.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    (hash >> 40) as f32 / (1_u64 << 24) as f32
}
