//! What an agent does next, decided from what happened and when. No clock, no disk, no network.
//!
//! What a newcomer gets wrong: nothing here is done, only said. Whoever drives it (`driver`, or a
//! simulator with an event heap) carries the effects out in their order and comes back with events;
//! `Effect::Wake` says when to come back even if nothing happened. A later `Wake` replaces an earlier one.

mod line;
mod orders;
mod outbox;
mod wire;

pub use line::Loss;
pub use wire::ack;

use crate::check::CheckOutcome;
use crate::command::{End, Order};
use crate::journal::Entry;
use crate::signal::{Condition, Signal};
use crate::spool::{Report, Spooled};
use argosy_api::rpc::attach::{Said, Told};
use argosy_api::rpc::node::{
    Error, Heartbeat, Hello, NodeConfig, NodeMetrics, RegisterNodeRequest,
};
use argosy_core::backoff;
use jiff::{SignedDuration, Timestamp};
use line::Line;
use orders::Orders;
use outbox::Outbox;
use std::sync::Arc;

/// Who speaks: the same for as long as the process runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The node.
    pub node_id: String,
    /// Which start of the machine this is.
    pub boot_id: String,
    /// Which agent this is.
    pub agent_version: String,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// The process began, with what the last one left on disk. Comes first, and once.
    Started {
        /// Reports and signals that were not acknowledged.
        spooled: Spooled,
        /// Commands that were begun, the oldest first.
        journal: Vec<Entry>,
    },
    /// The time of a `Wake` has come, or may have.
    Woke,
    /// What the machine is, at the start and whenever it changed.
    Described {
        /// As it is said to the control plane; its `node_id` does not matter.
        registration: Arc<RegisterNodeRequest>,
        /// Whether the GPUs could be read. If not, it is only used by a node that nobody knows:
        /// saying that there are no GPUs would be a lie.
        complete: bool,
    },
    /// How busy the machine is.
    Sampled(Box<NodeMetrics>),
    /// A look between rounds found something worse than the last round did: a GPU that is gone.
    Alarmed,
    /// A round of checks ended.
    Checked {
        /// What the checks found.
        outcomes: Vec<CheckOutcome>,
        /// How conditions of GPUs stand that could be looked at.
        conditions: Vec<Condition>,
        /// What happened since the last round.
        signals: Vec<Signal>,
    },
    /// Something was seen between rounds.
    Seen(Vec<Signal>),
    /// The control plane said something: on the stream, or in answer to a call.
    Told(Told),
    /// The answer to a heartbeat by call said that there are commands to poll for.
    CommandsWait,
    /// The stream ended or could not be opened, or a call did not get through.
    Lost(Loss),
    /// An entry of the journal is on disk, or could not be written.
    Noted {
        /// Which command.
        command: String,
        /// Why it is not on disk.
        error: Option<String>,
    },
    /// A command that runs is so far.
    Progress {
        /// Which.
        command: String,
        /// From 0 to 100.
        percent: u8,
        /// A sentence.
        message: String,
    },
    /// A command ended.
    Ended {
        /// Which.
        command: String,
        /// How.
        end: End,
    },
    /// The process is to end. What runs goes on after the next start, from the journal.
    Stop,
}

/// Something to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Open a stream and say this on it first. Answered by what is told, or by `Lost`.
    Attach(Box<Hello>),
    /// Give the stream up; nothing more is to be heard of it.
    Detach,
    /// Say this: on the stream if one was opened and not given up, else by a call of its own.
    Say(Said),
    /// Ask for commands by a call.
    Poll,
    /// Run these checks, or all if none is named. Answered by `Checked`.
    Check(Vec<String>),
    /// Keep signals on disk until they are part of a report.
    Keep(Vec<Signal>),
    /// Keep a report on disk. It has the oldest of the kept signals, which are forgotten.
    KeepReport(Box<Report>),
    /// Forget the kept report: it was taken.
    Forget(u64),
    /// Keep this on disk and nothing else.
    KeepOnly(Box<Spooled>),
    /// Write this down so that it survives a crash. Answered by `Noted`.
    Note(Box<Entry>),
    /// Begin a command. Answered by `Ended`, perhaps after some `Progress`.
    Begin(Box<Order>),
    /// Take a command back. It still ends by `Ended`.
    Cancel(String),
    /// End the process.
    Exit(Exit),
    /// Come back at this time. Replaces the last one.
    Wake(Timestamp),
    /// Write a line to the log.
    Notice(Notice),
}

/// How the process ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Somebody stopped it.
    Stopped,
    /// The control plane terminated the node.
    Terminated,
}

/// A line for the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// Whether it shows that something is wrong.
    pub wrong: bool,
    /// A constant sentence.
    pub sentence: &'static str,
    /// What it is about this time.
    pub about: String,
}

/// The agent: what it knows.
#[derive(Clone, Debug)]
pub struct Agent {
    who: Arc<Identity>,
    line: Line,
    described: Option<Arc<RegisterNodeRequest>>,
    complete: bool,
    registration: Registration,
    /// The description that was said last, until it is answered.
    asked: Option<Arc<RegisterNodeRequest>>,
    /// An older description was said before it and is not answered either: the next answer is about that one.
    asked_twice: bool,
    registrations: u32,
    config: Config,
    metrics: Option<Box<NodeMetrics>>,
    checking_since: Option<Timestamp>,
    outbox: Outbox,
    orders: Orders,
    due: Due,
    latest: Timestamp,
    wake: Option<Timestamp>,
}

/// How far we are with telling what we are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Registration {
    /// To be said as soon as it can be.
    Wanted,
    /// Only if somebody asks: the control plane knows us, and we know no better.
    IfUnknown,
    /// Said, not answered.
    Asked,
    Done,
}

/// How to behave, as the control plane told, inside our own limits.
#[derive(Clone, Debug)]
struct Config {
    revision: u64,
    beat_s: u32,
    round_s: u32,
    checks: Vec<String>,
}

/// When each thing is next due; `None` if it is not.
#[derive(Clone, Copy, Debug, Default)]
struct Due {
    beat: Option<Timestamp>,
    round: Option<Timestamp>,
    line: Option<Timestamp>,
    register: Option<Timestamp>,
    report: Option<Timestamp>,
    ack: Option<Timestamp>,
    poll: Option<Timestamp>,
    guard: Option<Timestamp>,
    leave: Option<Timestamp>,
}

/// Before anybody told us: what the control plane's own defaults are.
const BEAT_S: u32 = 10;
/// See `BEAT_S`.
const ROUND_S: u32 = 60;
/// The longest time between heartbeats, whatever we are told. A node that is silent for longer is lost
/// to any control plane; a shorter limit would not let a busy one ask for room.
const BEAT_S_MAX: u32 = 300;
/// The shortest and the longest time between rounds of checks. A round asks the driver of every GPU some
/// thirty questions; after an hour nobody would call it watching.
const ROUND_S_MIN: u32 = 5;
/// See `ROUND_S_MIN`.
const ROUND_S_MAX: u32 = 3600;
/// How many checks can be named, and how long a name may be: as many as the control plane keeps.
const CHECKS_MAX: usize = 64;
/// See `CHECKS_MAX`.
const CHECK_LEN_MAX: usize = 128;
/// A round that takes longer than this was lost by whoever ran it; another is begun.
const ROUND_LOST: SignedDuration = SignedDuration::from_secs(180);
/// The wait after a registration that was not taken, and the longest.
const REGISTER_FIRST: SignedDuration = SignedDuration::from_secs(2);
/// See `REGISTER_FIRST`.
const REGISTER_MAX: SignedDuration = SignedDuration::from_secs(120);
/// After this long without an answer something is said again.
const ANSWER_MAX: SignedDuration = SignedDuration::from_secs(30);
/// How often commands are polled for where there is no stream: heartbeats tell sooner if some wait.
const POLL_EVERY: SignedDuration = SignedDuration::from_secs(30);

impl Agent {
    /// An agent that has not begun. The first event must be `Started`.
    pub fn new(who: Arc<Identity>) -> Self {
        let config = Config { revision: 0, beat_s: BEAT_S, round_s: ROUND_S, checks: Vec::new() };
        Self {
            who,
            line: Line::default(),
            described: None,
            complete: false,
            registration: Registration::Wanted,
            asked: None,
            asked_twice: false,
            registrations: 0,
            config,
            metrics: None,
            checking_since: None,
            outbox: Outbox::default(),
            orders: Orders::default(),
            due: Due::default(),
            latest: Timestamp::MIN,
            wake: None,
        }
    }

    /// What follows from an event. Never panics, whatever the event and whatever the time.
    pub fn on(&mut self, event: Event, now: Timestamp) -> Vec<Effect> {
        self.follow_clock(now);
        let mut effects = Vec::new();
        let out = &mut effects;
        match event {
            Event::Started { spooled, journal } => self.started(spooled, journal, now, out),
            Event::Woke => {}
            Event::Described { registration, complete } => self.describe(registration, complete),
            Event::Sampled(metrics) => self.metrics = Some(metrics),
            Event::Alarmed => self.due.round = Some(now),
            Event::Checked { outcomes, signals, conditions } => {
                self.checking_since = None;
                self.outbox.checked(outcomes, conditions, now);
                self.outbox.seen(self.of_this_boot(signals), out);
            }
            Event::Seen(signals) => self.outbox.seen(self.of_this_boot(signals), out),
            Event::Told(told) => self.told(told, now, out),
            Event::CommandsWait => self.due.poll = self.line.is_calling().then_some(now),
            Event::Lost(loss) => self.lost(loss, now, out),
            Event::Noted { command, error } => self.noted(&command, error, now, out),
            Event::Progress { command, percent, message } => {
                self.progress(&command, percent, message, out);
            }
            Event::Ended { command, end } => self.ended(&command, end, now, out),
            Event::Stop => {
                out.push(Effect::Detach);
                out.push(Effect::Exit(Exit::Stopped));
                return effects;
            }
        }
        self.run_due(now, out);
        self.set_wake(out);
        effects
    }

    /// When this agent wants to be woken; `None` before it has begun.
    pub fn wakes_at(&self) -> Option<Timestamp> {
        self.wake
    }

    /// Everything that is to be kept on disk, for whoever could not keep it piece by piece.
    pub fn unsent(&self) -> Spooled {
        self.outbox.unsent()
    }

    /// Whether the control plane has answered on the line that is open now.
    pub fn is_heard(&self) -> bool {
        self.line.is_open()
    }

    /// Somebody set the clock back: what was due in an hour by the old clock is due in an hour by the
    /// new one. Otherwise heartbeats would stop until the old time is reached again.
    fn follow_clock(&mut self, now: Timestamp) {
        if now < self.latest {
            self.due.shift(now.duration_since(self.latest));
            let by = now.duration_since(self.latest);
            let outbox = &mut self.outbox;
            for since in [&mut self.checking_since, &mut outbox.said_at, &mut outbox.not_before] {
                *since = since.map(|since| later(since, by));
            }
            self.line.shift(by);
        }
        self.latest = now;
    }

    fn started(
        &mut self,
        spooled: Spooled,
        journal: Vec<Entry>,
        now: Timestamp,
        out: &mut Vec<Effect>,
    ) {
        self.outbox.restore(spooled);
        self.restore(journal, now, out);
        self.due.line = Some(now);
        self.due.round = Some(now);
    }

    /// Signals with the boot they are of: what is kept on disk may be said after the next one.
    fn of_this_boot(&self, mut signals: Vec<Signal>) -> Vec<Signal> {
        for signal in signals.iter_mut().filter(|signal| signal.boot_id.is_empty()) {
            signal.boot_id.clone_from(&self.who.boot_id);
        }
        signals
    }

    fn describe(&mut self, registration: Arc<RegisterNodeRequest>, complete: bool) {
        // A driver that broke after the start does not make the GPUs vanish.
        if self.complete && !complete {
            return;
        }
        if self.described.as_deref() == Some(&*registration) && self.complete == complete {
            return;
        }
        self.described = Some(registration);
        self.complete = complete;
        // One that is on its way is answered first: the answer shows that there is a newer one.
        if !matches!(self.registration, Registration::Wanted | Registration::Asked) {
            self.registration = self.description_is_news();
        }
    }

    /// What is to be done with a description that the control plane does not have.
    fn description_is_news(&self) -> Registration {
        if self.complete { Registration::Wanted } else { Registration::IfUnknown }
    }

    /// A registration was answered: the last one that was said, or one before it.
    fn registered(&mut self) {
        if std::mem::take(&mut self.asked_twice) {
            return;
        }
        let asked = self.asked.take();
        let is_current = match (&asked, &self.described) {
            (Some(asked), Some(described)) => Arc::ptr_eq(asked, described),
            (None, _) | (_, None) => true,
        };
        self.registration =
            if is_current { Registration::Done } else { self.description_is_news() };
    }

    fn told(&mut self, told: Told, now: Timestamp, out: &mut Vec<Effect>) {
        self.hear(now);
        match told {
            Told::Welcome(welcome) => {
                self.configure(welcome.config.into_option(), now);
                if self.registration == Registration::Wanted && !self.complete {
                    self.registration = Registration::IfUnknown;
                }
                self.known(welcome.health_sequence, out);
            }
            Told::Registered(registered) => {
                self.registered();
                self.configure(registered.config.into_option(), now);
                self.known(registered.health_sequence, out);
            }
            Told::HeartbeatAck(ack) => {
                if 0 < ack.next_interval_seconds {
                    self.config.beat_s = ack.next_interval_seconds.clamp(1, BEAT_S_MAX);
                    self.hasten_beat(now);
                }
            }
            Told::Config(config) => self.configure(Some(*config), now),
            Told::Command(command) => self.order(*command, now, out),
            Told::ReportAck(answer) => {
                self.registrations = 0;
                self.outbox.taken(answer.sequence, out);
            }
            Told::CommandAck(answer) => self.answered(&answer, now, out),
            Told::Error(error) => self.complaint(&error, now, out),
        }
    }

    /// The control plane knows us, and how far we are.
    fn known(&mut self, health_sequence: u64, out: &mut Vec<Effect>) {
        self.outbox.numbered(health_sequence, out);
        if self.orders.has_unanswered() {
            self.due.ack.get_or_insert(self.latest);
        }
        self.due.beat.get_or_insert(self.latest);
    }

    /// Takes a configuration inside our own limits: 0 and `u32::MAX` are somebody's mistake.
    fn configure(&mut self, config: Option<NodeConfig>, now: Timestamp) {
        let Some(config) = config else { return };
        let or = |told: u32, default: u32| if told == 0 { default } else { told };
        self.config.revision = config.revision;
        self.config.beat_s = or(config.heartbeat_interval_seconds, BEAT_S).clamp(1, BEAT_S_MAX);
        self.config.round_s =
            or(config.health_check_interval_seconds, ROUND_S).clamp(ROUND_S_MIN, ROUND_S_MAX);
        self.config.checks = config.enabled_health_checks;
        self.config.checks.truncate(CHECKS_MAX);
        self.config.checks.retain(|name| name.len() <= CHECK_LEN_MAX);
        self.hasten_beat(now);
        let round = now.saturating_add(seconds(self.config.round_s)).unwrap_or(Timestamp::MAX);
        self.due.round = self.due.round.map(|due| due.min(round));
    }

    /// What is due is not put off by a new interval, only brought forward.
    fn hasten_beat(&mut self, now: Timestamp) {
        let next = later(now, seconds(self.config.beat_s));
        self.due.beat = self.due.beat.map(|due| due.min(next));
    }

    /// Something we said was not taken.
    fn complaint(&mut self, error: &Error, now: Timestamp, out: &mut Vec<Effect>) {
        if error.code == "not_found" && error.command_id.is_empty() {
            self.outbox.unsaid(now, error.health_sequence);
            if self.registration != Registration::Asked {
                self.registration = Registration::Wanted;
            }
            return;
        }
        let about = format!("{}: {}", error.code, error.message);
        if !error.command_id.is_empty() {
            self.ack_refused(&error.command_id, &error.code, now, out);
        } else if error.health_sequence != 0 {
            if self.outbox.refused(error.health_sequence, &error.code, now, out) {
                out.push(notice(true, "the control plane cannot read a report; dropped it", about));
                return;
            }
        } else if self.registration == Registration::Asked {
            self.registration = Registration::Wanted;
        }
        out.push(notice(true, "the control plane refused something", about));
    }

    /// Does everything whose time has come.
    fn run_due(&mut self, now: Timestamp, out: &mut Vec<Effect>) {
        if is_due(self.due.line, now) {
            self.turn_line(now, out);
        }
        if is_due(self.due.round, now) {
            self.round(now, out);
        }
        self.run_orders(now, out);
        if !self.line.is_open() {
            return;
        }
        self.register(now, out);
        if is_due(self.due.beat, now) {
            self.beat(now, out);
        }
        if is_due(self.due.ack, now) {
            self.repeat_acks(now, out);
        }
        if is_due(self.due.poll, now) {
            self.due.poll = Some(later(now, POLL_EVERY));
            out.push(Effect::Poll);
        }
        self.due.report = self.outbox.flush(now, out);
        self.give_up_deaf(now, out);
    }

    fn register(&mut self, now: Timestamp, out: &mut Vec<Effect>) {
        let Some(described) = &self.described else {
            self.due.register = None;
            return;
        };
        let lost = self.registration == Registration::Asked && is_due(self.due.register, now);
        let wait = self.due.register.is_some_and(|due| now < due);
        if !lost && (self.registration != Registration::Wanted || wait) {
            self.due.register = self.due.register.filter(|due| now < *due);
            return;
        }
        let node_id = self.who.node_id.clone();
        let said = RegisterNodeRequest { node_id, ..(**described).clone() };
        out.push(Effect::Say(Said::from(said)));
        let before = self.asked.replace(described.clone());
        self.asked_twice = lost && before.is_some_and(|before| !Arc::ptr_eq(&before, described));
        self.registration = Registration::Asked;
        self.registrations = self.registrations.saturating_add(1);
        let wait =
            backoff::delay(&self.who.node_id, self.registrations, REGISTER_FIRST, REGISTER_MAX);
        self.due.register = Some(later(now, wait.max(ANSWER_MAX / 10)));
    }

    fn beat(&mut self, now: Timestamp, out: &mut Vec<Effect>) {
        // On a stream it is known who speaks.
        let node_id = if self.line.is_calling() { self.who.node_id.clone() } else { String::new() };
        let said = Heartbeat {
            node_id,
            sent_at: Some(wire::time(now)).into(),
            metrics: self.metrics.take().map(|metrics| *metrics).into(),
            ..Heartbeat::default()
        };
        out.push(Effect::Say(Said::from(said)));
        self.due.beat = Some(later(now, seconds(self.config.beat_s)));
    }

    fn round(&mut self, now: Timestamp, out: &mut Vec<Effect>) {
        self.due.round = Some(later(now, seconds(self.config.round_s)));
        let running = self.checking_since.is_some_and(|since| now < later(since, ROUND_LOST));
        if !running {
            self.checking_since = Some(now);
            out.push(Effect::Check(self.config.checks.clone()));
        }
    }

    fn set_wake(&mut self, out: &mut Vec<Effect>) {
        let next = self.due.next(self.line.is_open());
        if next != self.wake {
            self.wake = next;
            out.extend(next.map(Effect::Wake));
        }
    }
}

impl Due {
    fn all(&mut self) -> [&mut Option<Timestamp>; 9] {
        let Due { beat, round, line, register, report, ack, poll, guard, leave } = self;
        [beat, round, line, register, report, ack, poll, guard, leave]
    }

    fn shift(&mut self, by: SignedDuration) {
        for due in self.all() {
            *due = due.map(|due| later(due, by));
        }
    }

    /// The soonest. What needs a line does not count without one.
    fn next(&self, open: bool) -> Option<Timestamp> {
        let Due { beat, round, line, register, report, ack, poll, guard, leave } = *self;
        let always = [round, line, guard, leave];
        let said = [beat, register, report, ack, poll];
        let said = said.into_iter().filter(|_| open);
        always.into_iter().chain(said).flatten().min()
    }
}

fn is_due(due: Option<Timestamp>, now: Timestamp) -> bool {
    due.is_some_and(|due| due <= now)
}

fn later(time: Timestamp, by: SignedDuration) -> Timestamp {
    time.saturating_add(by).unwrap_or(Timestamp::MAX)
}

fn seconds(seconds: u32) -> SignedDuration {
    SignedDuration::from_secs(seconds.into())
}

fn notice(wrong: bool, sentence: &'static str, about: impl Into<String>) -> Effect {
    Effect::Notice(Notice { wrong, sentence, about: about.into() })
}

#[cfg(test)]
mod tests;
