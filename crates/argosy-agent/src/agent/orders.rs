//! Commands: one at a time, none twice, each ended by a word that is repeated until it was heard.

use super::{ANSWER_MAX, Agent, Effect, Exit, later, notice, wire};
use crate::command::{Drained, End, Kind, Order};
use crate::journal::{ENDED_MAX, Entry};
use argosy_api::rpc::attach::Said;
use argosy_api::rpc::node::{AckCommandResponse, Command, CommandState};
use argosy_core::backoff;
use jiff::{SignedDuration, Timestamp};
use std::collections::VecDeque;

/// How many commands may wait: as many as the control plane lets wait for one node.
const QUEUE_MAX: usize = 32;
/// The longest id of a command. Ours have 26 characters; what is longer is somebody's nonsense, and ids
/// are what the journal remembers.
const ID_LEN_MAX: usize = 128;
/// How long a command without a deadline may run. The longest diagnostic takes an hour; a handler that
/// hangs must not keep the next command waiting for ever.
const COMMAND_MAX: SignedDuration = SignedDuration::from_hours(2);
/// How long the journal may take. A disk that hangs must not keep this command and all behind it waiting.
const NOTING_MAX: SignedDuration = SignedDuration::from_secs(10);
/// How long a handler may take to say that it stopped, once it should have.
const GRACE: SignedDuration = SignedDuration::from_secs(60);
/// The wait before an outcome is said again, at first and at most.
const ACK_FIRST: SignedDuration = SignedDuration::from_secs(5);
/// See `ACK_FIRST`.
const ACK_MAX: SignedDuration = SignedDuration::from_secs(300);
/// How many outcomes are said at a time, and how long to wait before the next that were not said yet. After
/// a long outage many wait, and a line that is given more than it holds is a line that is lost.
const ACKS_MAX: usize = 16;
/// See `ACKS_MAX`.
const ACKS_EVERY: SignedDuration = SignedDuration::from_secs(1);
/// How long a node that was terminated waits for its outcome to be heard before it stops anyway.
const LEAVE_MAX: SignedDuration = SignedDuration::from_secs(10);

#[derive(Clone, Debug, Default)]
pub(super) struct Orders {
    /// Those that have ended, the oldest first; at most `ENDED_MAX`.
    ended: VecDeque<Ended>,
    running: Option<Box<Running>>,
    queue: VecDeque<Queued>,
    /// How often the outcomes were repeated in a row.
    repeats: u32,
    /// Set once the node was terminated: then nothing else is begun.
    leaving: bool,
}

#[derive(Clone, Debug)]
struct Ended {
    entry: Entry,
    /// How often its outcome was said on the line that is open.
    said: u32,
}

#[derive(Clone, Debug)]
struct Queued {
    order: Order,
    /// It was begun by an agent before us.
    begun: Option<Entry>,
}

#[derive(Clone, Debug)]
struct Running {
    entry: Entry,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The journal is being written; nothing has been done.
    Noting,
    Doing,
    /// Taken back; its handler has been told.
    Cancelling,
}

impl Orders {
    pub(super) fn has_unanswered(&self) -> bool {
        self.ended.iter().any(|ended| !ended.entry.answered)
    }

    /// The line is gone: what was said on it and not heard counts as not said.
    pub(super) fn unsaid(&mut self) {
        for ended in &mut self.ended {
            ended.said = 0;
        }
    }

    fn keep(&mut self, entry: Entry) {
        self.ended.push_back(Ended { entry, said: 0 });
        while ENDED_MAX < self.ended.len() {
            // What was not heard is kept longest; if nothing was ever heard, the oldest goes.
            let heard = self.ended.iter().position(|ended| ended.entry.answered).unwrap_or(0);
            self.ended.remove(heard);
        }
    }
}

impl Agent {
    /// Goes on where the last agent was.
    pub(super) fn restore(&mut self, journal: Vec<Entry>, now: Timestamp, out: &mut Vec<Effect>) {
        for entry in journal {
            let rebooted = entry.boot_id != self.who.boot_id;
            if let Some(end) = &entry.end {
                // It was to leave and was started again before anybody heard why: it says so and leaves.
                let left = leaves(&entry.order, end) && !entry.answered && !rebooted;
                self.orders.leaving |= left;
                self.orders.keep(entry);
                continue;
            }
            let whose = if rebooted { "the machine" } else { "the agent" };
            match entry.order.kind {
                Kind::RunDiagnostic | Kind::Unknown(_) => {
                    let end = End::failed(now, format!("interrupted by a restart of {whose}"));
                    self.finish(entry, end, out);
                }
                Kind::Terminate if rebooted => {
                    let end = End::completed(now, "the machine was started again since");
                    self.finish(entry, end, out);
                }
                // Doing these twice is doing them once; a drain goes on to its first deadline.
                Kind::Cordon | Kind::Uncordon | Kind::Drain | Kind::Terminate => {
                    let begun = Entry { boot_id: self.who.boot_id.clone(), ..entry };
                    let order = begun.order.clone();
                    self.orders.queue.push_back(Queued { order, begun: Some(begun) });
                }
            }
        }
    }

    /// The control plane tells a command, perhaps not for the first time.
    pub(super) fn order(&mut self, command: Command, now: Timestamp, out: &mut Vec<Effect>) {
        let order = wire::order(command, now);
        if order.id.is_empty() || ID_LEN_MAX < order.id.len() {
            let about = format!("an id of {} bytes", order.id.len());
            out.push(notice(true, "ignored a command without a usable id", about));
            return;
        }
        if self.recognise(&order, now, out) {
            return;
        }
        if let Kind::Unknown(number) = order.kind {
            let why = format!("this agent does not know commands of type {number}; update it");
            return self.refuse(order, why, now, out);
        }
        if let Some(expired) = order.expires_at.filter(|expires| *expires < now) {
            let why = format!("not begun: it expired at {expired} and came at {now}");
            return self.refuse(order, why, now, out);
        }
        if self.orders.leaving {
            return self.refuse(order, "the node is being terminated".to_owned(), now, out);
        }
        if QUEUE_MAX <= self.orders.queue.len() {
            let why = format!("{QUEUE_MAX} commands wait already, and at most as many may");
            return self.refuse(order, why, now, out);
        }
        self.overrule(&order, now, out);
        let ack = wire::underway(&order.id, false, 0, String::new());
        out.push(Effect::Say(Said::from(ack)));
        self.orders.queue.push_back(Queued { order, begun: None });
    }

    /// Whether the command is known already; then it is said again how far it is.
    fn recognise(&mut self, order: &Order, now: Timestamp, out: &mut Vec<Effect>) -> bool {
        let mut ended = self.orders.ended.iter_mut();
        if let Some(ended) = ended.find(|ended| ended.entry.order.id == order.id) {
            // Told again, so it did not hear.
            ended.entry.answered = false;
            ended.said = 0;
            self.due.ack = Some(now);
            return true;
        }
        let running = self.orders.running.as_ref().filter(|run| run.entry.order.id == order.id);
        let begun = running.is_some();
        if begun || self.orders.queue.iter().any(|queued| queued.order.id == order.id) {
            let ack = wire::underway(&order.id, begun, 0, String::new());
            out.push(Effect::Say(Said::from(ack)));
            return true;
        }
        false
    }

    /// Takes back what the order contradicts, as the control plane has done already.
    fn overrule(&mut self, order: &Order, now: Timestamp, out: &mut Vec<Effect>) {
        let contradicts = |open: Kind| match order.kind {
            Kind::Terminate => true,
            // A diagnostic may take an hour, and a node that is to be out of service, or back in it, cannot wait.
            Kind::Cordon | Kind::Uncordon | Kind::Drain => {
                matches!(open, Kind::Drain | Kind::RunDiagnostic)
            }
            Kind::RunDiagnostic | Kind::Unknown(_) => false,
        };
        let (overruled, kept): (VecDeque<Queued>, VecDeque<Queued>) =
            self.orders.queue.drain(..).partition(|queued| contradicts(queued.order.kind));
        self.orders.queue = kept;
        for Queued { order: open, begun } in overruled {
            let entry = begun.unwrap_or_else(|| self.entry(open, now));
            let end = End::cancelled(now, &entry.order, "overruled by a later command");
            self.finish(entry, end, out);
        }
        let running = self.orders.running.as_ref().map(|running| running.entry.order.clone());
        if let Some(open) = running.filter(|open| contradicts(open.kind)) {
            self.cancel(&open.id, now, out);
        }
    }

    fn cancel(&mut self, id: &str, now: Timestamp, out: &mut Vec<Effect>) {
        let waits = self.orders.queue.iter().position(|queued| queued.order.id == id);
        if let Some(Queued { order, begun }) = waits.and_then(|at| self.orders.queue.remove(at)) {
            let entry = begun.unwrap_or_else(|| self.entry(order, now));
            return self.take_back(entry, now, out);
        }
        let Some(running) = self.orders.running.as_mut().filter(|run| run.entry.order.id == id)
        else {
            return;
        };
        match running.state {
            State::Doing => {
                running.state = State::Cancelling;
                self.due.guard = Some(later(now, GRACE));
                out.push(Effect::Cancel(id.to_owned()));
            }
            State::Noting => {
                self.due.guard = None;
                if let Some(running) = self.orders.running.take() {
                    self.take_back(running.entry, now, out);
                }
            }
            State::Cancelling => {}
        }
    }

    /// Ends a command that was not begun here.
    fn take_back(&mut self, entry: Entry, now: Timestamp, out: &mut Vec<Effect>) {
        let end = End::cancelled(now, &entry.order, "taken back before it was begun");
        self.finish(entry, end, out);
    }

    /// Ends what is overdue, begins what is next, and leaves when all is said.
    pub(super) fn run_orders(&mut self, now: Timestamp, out: &mut Vec<Effect>) {
        if super::is_due(self.due.guard, now) {
            self.guard(now, out);
        }
        while self.orders.running.is_none() && !self.orders.leaving {
            let Some(queued) = self.orders.queue.pop_front() else { break };
            self.begin(queued, now, out);
        }
        let heard = !self.orders.has_unanswered();
        if self.orders.leaving && (heard || super::is_due(self.due.leave, now)) {
            self.due.leave = None;
            out.push(Effect::Exit(Exit::Terminated));
        }
    }

    fn begin(&mut self, queued: Queued, now: Timestamp, out: &mut Vec<Effect>) {
        let Queued { order, begun } = queued;
        if begun.is_none()
            && let Some(expired) = order.expires_at.filter(|expires| *expires < now)
        {
            let why = format!("not begun: it expired at {expired} while it waited");
            return self.refuse(order, why, now, out);
        }
        let state = if begun.is_some() { State::Doing } else { State::Noting };
        let entry = begun.unwrap_or_else(|| self.entry(order, now));
        match state {
            State::Doing => self.start(&entry, now, out),
            State::Noting | State::Cancelling => {
                self.due.guard = Some(later(now, NOTING_MAX));
                out.push(Effect::Note(Box::new(entry.clone())));
            }
        }
        self.orders.running = Some(Box::new(Running { entry, state }));
    }

    fn start(&mut self, entry: &Entry, now: Timestamp, out: &mut Vec<Effect>) {
        // A deadline is the handler's to keep; the guard is for one that does not.
        let limit = entry.order.deadline.unwrap_or_else(|| later(now, COMMAND_MAX)).max(now);
        self.due.guard = Some(later(limit, GRACE));
        if self.line.is_open() {
            let ack = wire::underway(&entry.order.id, true, 0, String::new());
            out.push(Effect::Say(Said::from(ack)));
        }
        out.push(Effect::Begin(Box::new(entry.order.clone())));
    }

    /// The journal has the command, so it may be begun; or it cannot be written.
    pub(super) fn noted(
        &mut self,
        id: &str,
        error: Option<String>,
        now: Timestamp,
        out: &mut Vec<Effect>,
    ) {
        let Some(mut running) = self
            .orders
            .running
            .take_if(|running| running.state == State::Noting && running.entry.order.id == id)
        else {
            return;
        };
        // A cordon may be done twice, so it does not need the journal; the others do.
        self.due.guard = None;
        let harmless = matches!(running.entry.order.kind, Kind::Cordon | Kind::Uncordon);
        if let Some(error) = error.filter(|_| !harmless) {
            let why = format!("not begun, because the journal cannot be written: {error}");
            return self.finish(running.entry, End::failed(now, why), out);
        }
        running.state = State::Doing;
        self.start(&running.entry, now, out);
        self.orders.running = Some(running);
    }

    pub(super) fn progress(
        &mut self,
        id: &str,
        percent: u8,
        message: String,
        out: &mut Vec<Effect>,
    ) {
        let running = self.orders.running.as_ref();
        let known = running.is_some_and(|running| running.entry.order.id == id);
        if known && self.line.is_open() {
            let ack = wire::underway(id, true, percent, message);
            out.push(Effect::Say(Said::from(ack)));
        }
    }

    pub(super) fn ended(&mut self, id: &str, end: End, now: Timestamp, out: &mut Vec<Effect>) {
        let ended = self.orders.running.take_if(|running| running.entry.order.id == id);
        let Some(running) = ended else { return };
        self.due.guard = None;
        let leaves = leaves(&running.entry.order, &end);
        self.finish(running.entry, end, out);
        if leaves {
            self.orders.leaving = true;
            self.due.leave = Some(later(now, LEAVE_MAX));
        }
    }

    /// A handler did not end when it should have. It is told to stop, and then given up.
    fn guard(&mut self, now: Timestamp, out: &mut Vec<Effect>) {
        self.due.guard = None;
        let Some(running) = &self.orders.running else { return };
        let order = running.entry.order.clone();
        match running.state {
            State::Noting => {
                let why = format!("the disk did not answer for {} s", NOTING_MAX.as_secs());
                self.noted(&order.id, Some(why), now, out);
            }
            State::Doing => self.cancel(&order.id, now, out),
            State::Cancelling => {
                let why = "it did not stop when it was to";
                out.push(notice(true, "gave a command up", order.id.clone()));
                let end = if order.kind == Kind::Drain {
                    End { drained: Some(Drained::TimedOut), ..End::failed(now, why) }
                } else {
                    End::failed(now, why)
                };
                self.ended(&order.id, end, now, out);
            }
        }
    }

    /// What the control plane now knows of a command.
    pub(super) fn answered(
        &mut self,
        answer: &AckCommandResponse,
        now: Timestamp,
        out: &mut Vec<Effect>,
    ) {
        use CommandState as State;
        let id = answer.command_id.as_str();
        let over = match answer.state.as_known() {
            Some(
                State::COMMAND_STATE_COMPLETED
                | State::COMMAND_STATE_FAILED
                | State::COMMAND_STATE_EXPIRED
                | State::COMMAND_STATE_CANCELLED,
            ) => true,
            Some(
                State::COMMAND_STATE_UNSPECIFIED
                | State::COMMAND_STATE_ACKNOWLEDGED
                | State::COMMAND_STATE_RUNNING,
            )
            | None => false,
        };
        if !over {
            return;
        }
        self.settle(id, out);
        // It is over for them while it runs here: somebody took it back.
        self.cancel(id, now, out);
    }

    /// An acknowledgement was not taken. What will never be taken is not said again.
    pub(super) fn ack_refused(
        &mut self,
        id: &str,
        code: &str,
        now: Timestamp,
        out: &mut Vec<Effect>,
    ) {
        if matches!(
            code,
            "not_found" | "invalid_argument" | "permission_denied" | "failed_precondition"
        ) {
            self.settle(id, out);
        } else {
            self.due.ack = self.orders.has_unanswered().then(|| later(now, ACK_FIRST));
        }
    }

    fn settle(&mut self, id: &str, out: &mut Vec<Effect>) {
        let mut ended = self.orders.ended.iter_mut().map(|ended| &mut ended.entry);
        let heard = ended.find(|entry| entry.order.id == id);
        let Some(entry) = heard.filter(|entry| !entry.answered) else { return };
        entry.answered = true;
        if let Some(end) = &mut entry.end {
            // They have it; keeping it would be for nobody.
            end.result_json = String::new();
        }
        out.push(Effect::Note(Box::new(entry.clone())));
        self.orders.repeats = 0;
        if !self.orders.has_unanswered() {
            self.due.ack = None;
        }
    }

    /// Says outcomes that were not heard: those that were not said yet, or if all were, those that were said
    /// least.
    pub(super) fn repeat_acks(&mut self, now: Timestamp, out: &mut Vec<Effect>) {
        let unheard = self.orders.ended.iter_mut().filter(|ended| !ended.entry.answered);
        let mut unheard: Vec<&mut Ended> = unheard.collect();
        if unheard.is_empty() {
            self.due.ack = None;
            return;
        }
        unheard.sort_by_key(|ended| ended.said);
        let unsaid = unheard.iter().filter(|ended| ended.said == 0).count();
        let many = if unsaid == 0 { ACKS_MAX } else { unsaid.min(ACKS_MAX) };
        for Ended { entry, said } in unheard.into_iter().take(many) {
            *said = said.saturating_add(1);
            if let Some(end) = &entry.end {
                out.push(Effect::Say(Said::from(wire::ack(&entry.order.id, end))));
            }
        }
        if ACKS_MAX < unsaid {
            self.due.ack = Some(later(now, ACKS_EVERY));
            return;
        }
        self.orders.repeats = self.orders.repeats.saturating_add(1);
        let wait = backoff::delay(&self.who.node_id, self.orders.repeats, ACK_FIRST, ACK_MAX);
        self.due.ack = Some(later(now, wait.min(ANSWER_MAX * 10)));
    }

    /// A command that is not begun, and why.
    fn refuse(&mut self, order: Order, why: String, now: Timestamp, out: &mut Vec<Effect>) {
        let entry = self.entry(order, now);
        self.finish(entry, End::failed(now, why), out);
    }

    fn finish(&mut self, entry: Entry, end: End, out: &mut Vec<Effect>) {
        let entry = Entry { end: Some(end), answered: false, ..entry };
        out.push(Effect::Note(Box::new(entry.clone())));
        self.orders.keep(entry);
        self.orders.repeats = 0;
        if self.line.is_open() {
            self.due.ack = Some(self.latest);
        }
    }

    fn entry(&self, order: Order, now: Timestamp) -> Entry {
        Entry {
            order,
            boot_id: self.who.boot_id.clone(),
            begun_at: now,
            end: None,
            answered: false,
        }
    }
}

/// Whether the process ends after a command that ended so.
fn leaves(order: &Order, end: &End) -> bool {
    order.kind == Kind::Terminate && end.completed && end.exit
}
