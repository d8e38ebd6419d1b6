//! What is to be reported: the last word of each check, and everything that happened until it was taken.
//!
//! One report flies at a time. What happens meanwhile gathers for the next one, so the line itself sets
//! the pace, and a day without a line is one long meanwhile.

use super::{ANSWER_MAX, Effect, later, notice, wire};
use crate::check::CheckOutcome;
use crate::signal::{Condition, GpuRef, Signal, SignalKind};
use crate::spool::{Report, Spooled};
use argosy_api::rpc::attach::Said;
use jiff::{SignedDuration, Timestamp};
use std::collections::BTreeMap;

/// How many signals may wait. Floods are aggregated before they come here, so a thousand different ones
/// is a machine that has been falling apart for a day without a control plane.
pub(super) const WAITING_MAX: usize = 1000;
/// How many signals one report carries: half of what the control plane takes, to leave it room.
const REPORT_SIGNALS_MAX: usize = 500;
/// How many outcomes wait: as many checks as the control plane keeps.
const OUTCOMES_MAX: usize = 64;
/// After how many signals that were made one with others, or given up, what is kept on disk is written
/// anew: it holds them still. Not each time, because a thousand signals are more than a megabyte.
const ROOM_MADE_MAX: u32 = 100;
/// How long to wait after a report that the control plane could not take just now.
const REFUSED_WAIT: SignedDuration = SignedDuration::from_secs(5);

#[derive(Clone, Debug, Default)]
pub(super) struct Outbox {
    /// The number of the last report that was made.
    sequence: u64,
    /// Whether the control plane has said how far it is, on the line that is open.
    numbered: bool,
    flying: Option<Box<Report>>,
    /// When the flying one was said; `None` if it is to be said.
    pub(super) said_at: Option<Timestamp>,
    /// How often in a row a report was said and nothing at all was heard after it.
    pub(super) unanswered: u32,
    /// Not before this time, after a refusal.
    pub(super) not_before: Option<Timestamp>,
    outcomes: Vec<CheckOutcome>,
    /// As the last round saw them; said with its outcomes.
    conditions: Vec<Condition>,
    checked_at: Option<Timestamp>,
    pub(super) waiting: Vec<Signal>,
    /// Signals that were given up because too many waited.
    dropped: u64,
    /// How often room was made since what is on disk was what waits.
    room_made: u32,
}

impl Outbox {
    pub(super) fn sequence(&self) -> u64 {
        self.sequence
    }

    pub(super) fn restore(&mut self, spooled: Spooled) {
        self.sequence = spooled.report.as_ref().map_or(0, |report| report.sequence);
        self.flying = spooled.report.map(Box::new);
        self.waiting = spooled.signals;
        while WAITING_MAX < self.waiting.len() {
            self.make_room();
        }
    }

    /// What an agent after us would have to say.
    pub(super) fn unsent(&self) -> Spooled {
        let flying = self.flying.as_deref().filter(|report| !report.signals.is_empty());
        Spooled { report: flying.cloned(), signals: self.waiting.clone() }
    }

    /// The newest word of each check; older words that were not sent are of no use to anybody.
    pub(super) fn checked(
        &mut self,
        outcomes: Vec<CheckOutcome>,
        conditions: Vec<Condition>,
        now: Timestamp,
    ) {
        self.conditions = conditions;
        for outcome in outcomes {
            let known = self.outcomes.iter_mut().find(|known| known.check == outcome.check);
            if let Some(known) = known {
                *known = outcome;
            } else if self.outcomes.len() < OUTCOMES_MAX {
                self.outcomes.push(outcome);
            }
        }
        self.checked_at = Some(now);
    }

    pub(super) fn seen(&mut self, signals: Vec<Signal>, out: &mut Vec<Effect>) {
        if signals.is_empty() {
            return;
        }
        out.push(Effect::Keep(signals.clone()));
        for signal in signals {
            self.waiting.push(signal);
            if WAITING_MAX < self.waiting.len() {
                self.make_room();
            }
        }
        if ROOM_MADE_MAX <= self.room_made {
            self.keep_only(out);
        }
    }

    /// What is kept becomes what is known, whatever was kept before.
    fn keep_only(&mut self, out: &mut Vec<Effect>) {
        self.room_made = 0;
        out.push(Effect::KeepOnly(Box::new(self.unsent())));
    }

    /// Makes one of two signals that say the same; if none do, the oldest goes.
    fn make_room(&mut self) {
        self.room_made = self.room_made.saturating_add(1);
        let mut firsts = BTreeMap::new();
        let pair = self.waiting.iter().enumerate().find_map(|(at, signal)| {
            let first = *firsts.entry(sayings(signal)).or_insert(at);
            (first != at).then_some((first, at))
        });
        let Some((at, next)) = pair else {
            self.dropped = self.dropped.saturating_add(1);
            if !self.waiting.is_empty() {
                self.waiting.remove(0);
            }
            return;
        };
        let later = self.waiting.remove(next);
        if let Some(first) = self.waiting.get_mut(at) {
            first.count = first.count.saturating_add(later.count);
            first.first = first.first.min(later.first);
            first.last = first.last.max(later.last);
        }
    }

    /// The control plane says which report it took last. Ours, if it flies, was taken or is to be said.
    pub(super) fn numbered(&mut self, sequence: u64, out: &mut Vec<Effect>) {
        self.taken(sequence, out);
        // A control plane that answers nonsense must not use up all numbers.
        self.sequence = self.sequence.max(sequence.min(u64::MAX / 2));
        self.numbered = true;
        self.said_at = None;
    }

    /// The line is gone, and with it what is known of the other side.
    pub(super) fn unnumbered(&mut self) {
        self.numbered = false;
        self.said_at = None;
        self.unanswered = 0;
    }

    /// A report was taken, or was known already: both mean that it arrived.
    pub(super) fn taken(&mut self, sequence: u64, out: &mut Vec<Effect>) {
        if let Some(report) = self.flying.take_if(|report| report.sequence <= sequence) {
            self.said_at = None;
            self.not_before = None;
            if report.signals.is_empty() {
                return;
            }
            if self.waiting.is_empty() {
                self.keep_only(out);
            } else {
                out.push(Effect::Forget(report.sequence));
            }
        }
    }

    /// The control plane does not know us: the report is said again when it does.
    pub(super) fn unsaid(&mut self, now: Timestamp, sequence: u64) {
        if self.flies(sequence) {
            self.said_at = None;
            self.not_before = Some(later(now, REFUSED_WAIT));
        }
    }

    /// A report was not taken. Whether it is given up: one that cannot be read never will be.
    pub(super) fn refused(
        &mut self,
        sequence: u64,
        code: &str,
        now: Timestamp,
        out: &mut Vec<Effect>,
    ) -> bool {
        let hopeless = matches!(code, "invalid_argument" | "out_of_range" | "unimplemented");
        if hopeless && self.flies(sequence) {
            self.taken(sequence, out);
            return true;
        }
        self.unsaid(now, sequence);
        false
    }

    fn flies(&self, sequence: u64) -> bool {
        self.flying.as_ref().is_some_and(|report| report.sequence == sequence)
    }

    /// Says what there is to say. Gives the time at which to look again, if something waits.
    pub(super) fn flush(&mut self, now: Timestamp, out: &mut Vec<Effect>) -> Option<Timestamp> {
        if !self.numbered {
            return None;
        }
        if let Some(wait) = self.not_before.filter(|time| now < *time) {
            return (self.flying.is_some() || self.owes()).then_some(wait);
        }
        if let Some(said) = self.said_at {
            let again = later(said, ANSWER_MAX);
            if now < again {
                return Some(again);
            }
            self.unanswered = self.unanswered.saturating_add(1);
        }
        if self.flying.is_none() {
            if !self.owes() {
                return None;
            }
            self.make(now, out);
        }
        let report = self.flying.as_mut()?;
        // Whatever the other side has taken meanwhile, ours must be greater to be taken.
        let said = wire::report(report);
        out.push(Effect::Say(Said::from(said)));
        self.said_at = Some(now);
        self.not_before = None;
        Some(later(now, ANSWER_MAX))
    }

    fn owes(&self) -> bool {
        !self.outcomes.is_empty() || !self.waiting.is_empty()
    }

    fn make(&mut self, now: Timestamp, out: &mut Vec<Effect>) {
        let many = self.waiting.len().min(REPORT_SIGNALS_MAX);
        let signals: Vec<Signal> = self.waiting.drain(..many).collect();
        self.sequence = self.sequence.saturating_add(1);
        let report = Report {
            sequence: self.sequence,
            checked_at: self.checked_at.unwrap_or(now),
            outcomes: std::mem::take(&mut self.outcomes),
            conditions: std::mem::take(&mut self.conditions),
            signals,
        };
        // A report without signals is not worth the disk: after a crash the next round says it anew.
        let keep = !report.signals.is_empty();
        self.flying = Some(Box::new(report));
        if keep && 0 < self.room_made {
            // Its signals are not those on disk, which would be said again by the next agent.
            self.keep_only(out);
        } else if let Some(report) = self.flying.as_ref().filter(|_| keep) {
            out.push(Effect::KeepReport(report.clone()));
        }
        if 0 < self.dropped {
            let about = self.dropped.to_string();
            out.push(notice(true, "signals were dropped because too many waited", about));
            self.dropped = 0;
        }
    }
}

/// See `sayings`.
type Saying<'a> = (SignalKind, Option<&'a GpuRef>, [Option<&'a String>; 4], &'a String, &'a String);

/// What a signal says, of which GPU and which boot: two with the same are one that happened twice.
fn sayings(signal: &Signal) -> Saying<'_> {
    let codes = ["xid_code", "sxid_code", "signal", "reason"].map(|name| signal.metrics.get(name));
    (signal.kind, signal.gpu.as_ref(), codes, &signal.condition, &signal.boot_id)
}
