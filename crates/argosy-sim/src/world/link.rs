//! The network between machines and the control plane: streams that are slow, break, and are cut.
//!
//! What is said on a stream arrives in its order or not at all; what breaks it loses what is on its way in both
//! directions, and one side may learn of it long after the other.

use super::fleet::{Power, Unit};
use super::process::Process;
use super::tape::{Tape, lock, timer};
use super::{Happening, World};
use argosy_agent::agent::{Event, Loss};
use argosy_api::rpc::attach::{Said, Told};
use argosy_api::rpc::node::{AttachRequest, DrainOutcome, Hello};
use futures_util::StreamExt;
use futures_util::stream;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// How long it takes to find that nobody answers at all.
const NOBODY_AFTER: Duration = Duration::from_secs(5);

/// How long either side may take to notice that the other is gone: what pings allow.
const NOTICE_MAX_MS: u64 = 25_000;

/// How much may wait to be read on a stream: more than an agent says while a process stands still.
const SAYING_MAX: usize = 1_024;

/// One stream of one machine.
pub(crate) struct Connection {
    pub(crate) unit: usize,
    /// Which start of its agent.
    start: u32,
    process: usize,
    /// `None` until it is open, and again when the server's end is gone.
    open: Option<Open>,
    /// When the last thing on its way arrives, up and down: nothing overtakes.
    up_at: Duration,
    down_at: Duration,
}

struct Open {
    said: mpsc::Sender<AttachRequest>,
    /// Dropped with us, it ends.
    _task: JoinSet<()>,
}

impl Connection {
    /// The process at the other end, if it is open.
    pub(crate) fn open_at(&self) -> Option<usize> {
        self.open.as_ref().map(|_| self.process)
    }
}

/// What servers told, until the world takes it.
#[derive(Clone, Default)]
pub(crate) struct Inbox(Arc<Mutex<Vec<Heard>>>);

/// What was told on which connection; nothing, if it ended.
type Heard = (u64, Option<Told>);

impl Inbox {
    pub(crate) fn take(&self) -> Vec<Heard> {
        std::mem::take(&mut lock(&self.0))
    }

    fn put(&self, connection: u64, told: Option<Told>, tape: &Tape) {
        lock(&self.0).push((connection, told));
        tape.ring();
    }
}

impl World {
    fn latency(&mut self) -> Duration {
        super::between(&mut self.dice.link, self.trouble.link.latency)
    }

    /// An agent opens a stream.
    pub(crate) fn attach(&mut self, index: usize, hello: Hello) {
        self.hang_up(index);
        let up: Vec<usize> =
            self.processes.iter().filter(|it| it.up.is_some()).map(|it| it.number).collect();
        let process = self.dice.link.pick(&up).copied();
        let cut = self.units.get(index).is_some_and(|unit| unit.cut_until.is_some());
        let Some(process) = process.filter(|_| !cut) else {
            return self.unreachable(index, NOBODY_AFTER);
        };
        let at = self.now() + self.latency();
        let Some(unit) = self.units.get_mut(index) else { return };
        self.connected += 1;
        let id = self.connected;
        unit.connection = Some(id);
        let connection = Connection {
            unit: index,
            start: unit.start,
            process,
            open: None,
            up_at: at,
            down_at: at,
        };
        self.connections.insert(id, connection);
        self.heap.push(at, Happening::Connect { connection: id, hello: Box::new(hello) });
    }

    /// A machine's stream reaches the process.
    pub(crate) fn connect(&mut self, id: u64, hello: Hello) {
        let Some(connection) = self.connections.get_mut(&id) else { return };
        let Some(unit) = self.units.get_mut(connection.unit) else { return };
        let up = self.processes.get(connection.process).and_then(|it| it.up.as_ref());
        let (Some(up), None) = (up, unit.cut_until) else {
            return self.part(id);
        };
        unit.heard_at = timer();
        let (said, saying) = mpsc::channel(SAYING_MAX);
        let first = AttachRequest { message: Some(Said::from(hello)) };
        if said.try_send(first).is_err() {
            return;
        }
        let saying = stream::unfold(saying, |mut saying| async {
            let said = saying.recv().await?;
            Some((said, saying))
        });
        let told = argosy_server::attach(up.server.clone(), unit.caller.clone(), saying);
        let (inbox, tape) = (self.inbox.clone(), self.tape.clone());
        let mut task = JoinSet::new();
        task.spawn(async move {
            let mut told = std::pin::pin!(told);
            while let Some(Ok(response)) = told.next().await {
                if let Some(message) = response.message {
                    inbox.put(id, Some(message), &tape);
                }
            }
            inbox.put(id, None, &tape);
        });
        connection.open = Some(Open { said, _task: task });
    }

    /// A machine says something.
    pub(crate) fn say(&mut self, index: usize, said: Said) {
        self.is_true(index, &said);
        let id = self.units.get(index).and_then(|unit| unit.connection);
        let Some(id) = id.filter(|id| self.connections.contains_key(id)) else {
            return self.unreachable(index, Duration::ZERO);
        };
        let link = &self.trouble.link;
        let (loss, twice) = (link.loss, link.twice);
        if 0.0 < loss && self.dice.link.happens(loss) {
            return self.break_off(id);
        }
        let again = !matches!(said, Said::Heartbeat(_) | Said::Hello(_))
            && 0.0 < twice
            && self.dice.link.happens(twice);
        let at = self.now() + self.latency();
        let Some(connection) = self.connections.get_mut(&id) else { return };
        connection.up_at = connection.up_at.max(at);
        let at = connection.up_at;
        if again {
            let said = Box::new(said.clone());
            self.heap.push(at, Happening::Up { connection: id, said });
        }
        self.heap.push(at, Happening::Up { connection: id, said: Box::new(said) });
    }

    /// Whether a machine says that it is drained while something runs on it (I5).
    fn is_true(&mut self, index: usize, said: &Said) {
        let Said::Ack(ack) = said else { return };
        let drained = DrainOutcome::DRAIN_OUTCOME_DRAINED;
        let Some(unit) = self.units.get(index) else { return };
        let Power::On(machine) = &unit.power else { return };
        // What an agent says of a drain that ended before its machine booted again was true then.
        let this_start =
            unit.told.iter().any(|(id, start)| *id == ack.command_id && *start == unit.start);
        // What fell off the bus runs nothing: where that may be all GPUs of a machine, nothing can be said.
        let some_left = unit.sick.len() < usize::try_from(unit.spec.gpus).unwrap_or(usize::MAX);
        if this_start && some_left && ack.outcome == drained && machine.works() {
            let name = &unit.spec.node_id;
            let message = format!("{name} says that it is drained, and work runs on it");
            self.violate("I5", message);
        }
    }

    /// What a machine said arrives.
    pub(crate) fn arrive_up(&mut self, id: u64, said: Box<Said>) {
        let now = self.now();
        let Some(connection) = self.connections.get(&id) else { return };
        let Some(unit) = self.units.get_mut(connection.unit) else { return };
        let gate = self.processes.get(connection.process).and_then(Process::closed_for);
        let cut = unit.cut_until.map(|until| until.saturating_sub(now));
        if let Some(wait) = cut.max(gate).filter(|wait| !wait.is_zero()) {
            // Held up, in its order, until somebody gives the stream up or it goes on.
            return self.heap.push(now + wait, Happening::Up { connection: id, said });
        }
        let Some(open) = &connection.open else { return };
        unit.heard_at = timer();
        if !matches!(*said, Said::Heartbeat(_)) {
            let name = unit.spec.node_id.as_bytes();
            self.tape.note([b"up".as_slice(), name, word(&said).as_bytes()]);
            self.tape.stir();
        }
        // The server's end may have gone; its last word is on its way.
        let _ = open.said.try_send(AttachRequest { message: Some(*said) });
    }

    /// A server told something: it goes on its way.
    pub(crate) fn tell(&mut self, id: u64, told: Option<Told>) {
        let loss = self.trouble.link.loss;
        let lost = 0.0 < loss && self.dice.link.happens(loss);
        let at = self.now() + self.latency();
        let Some(connection) = self.connections.get_mut(&id) else { return };
        connection.down_at = connection.down_at.max(at);
        let at = connection.down_at;
        match told {
            Some(_) if lost => self.break_off(id),
            Some(told) => {
                self.heap.push(at, Happening::Down { connection: id, told: Box::new(told) });
            }
            None => {
                connection.open = None;
                self.heap.push(at, Happening::Parted { connection: id });
            }
        }
    }

    /// What a server told arrives.
    pub(crate) fn arrive_down(&mut self, id: u64, told: Box<Told>) {
        let Some(connection) = self.connections.get(&id) else { return };
        let index = connection.unit;
        let Some(unit) = self.units.get(index) else { return };
        if let Some(until) = unit.cut_until {
            return self.heap.push(until, Happening::Down { connection: id, told });
        }
        if unit.start != connection.start || unit.connection != Some(id) {
            return;
        }
        let name = unit.spec.node_id.as_bytes();
        self.tape.note([b"down".as_slice(), name, told_word(&told).as_bytes()]);
        if let Told::Command(command) = &*told
            && let Some(unit) = self.units.get_mut(index)
        {
            unit.told_of(&command.id);
        }
        if !matches!(*told, Told::ReportAck(_)) {
            self.tape.stir();
            self.unpark(index);
        }
        self.step(index, Event::Told(*told));
    }

    /// A machine learns that its stream is gone.
    pub(crate) fn part(&mut self, id: u64) {
        let Some(connection) = self.connections.remove(&id) else { return };
        let Some(unit) = self.units.get_mut(connection.unit) else { return };
        if unit.start == connection.start && unit.connection.take_if(|it| *it == id).is_some() {
            self.rouse(connection.unit);
            self.step(connection.unit, Event::Lost(Loss::Ended("the stream broke".to_owned())));
        }
    }

    /// A stream breaks: what is on its way is lost, and each side learns of it when it does.
    pub(crate) fn break_off(&mut self, id: u64) {
        let Some(connection) = self.connections.get(&id) else { return };
        let index = connection.unit;
        self.tape.stir();
        let now = self.now();
        self.tape.tell(now, || format!("the stream of connection {id} breaks"));
        // Nothing more gets through: what was scheduled finds no connection of this number.
        let (here, there) = (
            Duration::from_millis(self.dice.link.below(NOTICE_MAX_MS)),
            Duration::from_millis(self.dice.link.below(NOTICE_MAX_MS)),
        );
        let Some(mut connection) = self.connections.remove(&id) else { return };
        if let Some(open) = connection.open.take() {
            // The server's end goes on until it notices.
            self.orphans.push((timer() + there, OpenEnd(open)));
        }
        let Some(unit) = self.units.get_mut(index) else { return };
        if unit.connection == Some(id) {
            unit.connection = None;
            let start = unit.start;
            self.rouse(index);
            self.heap.push(now + here, Happening::Unreachable { unit: index, start });
        }
    }

    /// A machine gives its stream up, or its power is gone.
    pub(crate) fn hang_up(&mut self, index: usize) {
        self.rouse(index);
        let Some(unit) = self.units.get_mut(index) else { return };
        let Some(id) = unit.connection.take() else { return };
        let cut = unit.cut_until.is_some();
        if let Some(mut connection) = self.connections.remove(&id)
            && let Some(open) = connection.open.take()
        {
            let notice = if cut { NOTICE_MAX_MS } else { 50 };
            let there = Duration::from_millis(self.dice.link.below(notice));
            self.orphans.push((timer() + there, OpenEnd(open)));
        }
    }

    /// A machine finds that nobody answers.
    pub(crate) fn unreachable(&mut self, index: usize, after: Duration) {
        let at = self.now() + after;
        let Some(unit) = self.units.get(index) else { return };
        let start = unit.start;
        self.heap.push(at, Happening::Unreachable { unit: index, start });
    }

    /// A machine's network is cut for a while.
    pub(crate) fn cut(&mut self, index: usize, lasts: Duration) {
        let until = self.now() + lasts;
        self.unpark(index);
        let Some(unit) = self.units.get_mut(index) else { return };
        unit.cut_until = Some(unit.cut_until.map_or(until, |other| other.max(until)));
        self.heap.push(until, Happening::Uncut { unit: index });
        let connection = unit.connection;
        let notice = Duration::from_millis(5_000 + self.dice.link.below(NOTICE_MAX_MS));
        if let Some(id) = connection.filter(|_| notice < lasts) {
            let at = self.now() + notice;
            self.heap.push(at, Happening::GivenUp { connection: id });
        }
    }

    /// All streams to a process that is gone.
    pub(crate) fn drop_streams(&mut self, process: usize) {
        let gone = self.connections.iter().filter(|(_, it)| it.process == process);
        let gone: Vec<u64> = gone.map(|(id, _)| *id).collect();
        for id in gone {
            if let Some(connection) = self.connections.get_mut(&id) {
                connection.open = None;
                let index = connection.unit;
                self.rouse(index);
            }
            let at = self.now() + self.latency();
            self.heap.push(at, Happening::Parted { connection: id });
        }
        let folded =
            |unit: &Unit| matches!(unit.power, Power::Folded { process: at, .. } if at == process);
        let folded = self.units.iter().enumerate().filter(|(_, unit)| folded(unit));
        let folded: Vec<usize> = folded.map(|(index, _)| index).collect();
        for index in folded {
            let latency = self.latency();
            self.rouse(index);
            self.boot_after(index, latency);
        }
    }

    /// Ends of streams that have noticed by now that the other is gone.
    pub(crate) fn reap_orphans(&mut self) {
        let now = timer();
        self.orphans.retain(|(until, _)| now < *until);
    }
}

impl Process {
    /// For how long it still stands still.
    fn closed_for(&self) -> Option<Duration> {
        self.gate.closed_until().map(|until| until.saturating_duration_since(timer()))
    }
}

/// The server's end of a stream whose other end is gone.
pub(crate) struct OpenEnd(#[expect(dead_code, reason = "kept until it is dropped")] Open);

fn word(said: &Said) -> &'static str {
    match said {
        Said::Hello(_) => "hello",
        Said::Heartbeat(_) => "heartbeat",
        Said::Heartbeats(_) => "heartbeats",
        Said::Health(_) => "health",
        Said::Ack(_) => "ack",
        Said::Register(_) => "register",
    }
}

fn told_word(told: &Told) -> &'static str {
    match told {
        Told::Welcome(_) => "welcome",
        Told::Registered(_) => "registered",
        Told::HeartbeatAck(_) => "heartbeat-ack",
        Told::Config(_) => "config",
        Told::Command(_) => "command",
        Told::ReportAck(_) => "report-ack",
        Told::CommandAck(_) => "command-ack",
        Told::Error(_) => "error",
    }
}
