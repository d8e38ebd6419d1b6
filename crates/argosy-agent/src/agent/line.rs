//! The line to the control plane: a stream, single calls where none can be had, or nothing for a while.

use super::{Agent, Effect, Registration, later, notice};
use argosy_api::rpc::node::Hello;
use argosy_core::backoff;
use jiff::{SignedDuration, Timestamp};

/// Why nothing can be said just now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Loss {
    /// Nobody is there: no name, no route, no connection, no handshake.
    Unreachable(String),
    /// Somebody is there who does not do streams, or somebody in between who does not let them through.
    Streamless(String),
    /// Somebody is there and does not want us: a wrong credential, or one for another node.
    Refused(String),
    /// The stream ended, or a call failed on the way.
    Ended(String),
}

#[derive(Clone, Debug, Default)]
pub(super) struct Line {
    state: State,
    /// Tries in a row that came to nothing.
    failures: u32,
    /// Since when something is told on the stream.
    attached_at: Option<Timestamp>,
    /// Streams in a row that ended soon after their first word.
    short: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// Nothing is open; `due.line` says when to try.
    #[default]
    Down,
    /// A stream was asked for; `due.line` says when to give up.
    Opening,
    /// A stream on which something was told.
    Attached,
    /// Single calls; `due.line` says when to try a stream again.
    Calling,
}

/// The wait after the first try that failed, and the longest: an hour of outage costs each agent sixty
/// tries, and nobody waits longer than a minute after it.
const RETRY_FIRST: SignedDuration = SignedDuration::from_secs(1);
/// See `RETRY_FIRST`.
const RETRY_MAX: SignedDuration = SignedDuration::from_secs(60);
/// How long a stream may stay without a word before it counts as none.
const OPENING_MAX: SignedDuration = SignedDuration::from_secs(15);
/// Over how long the agents of a control plane that stopped come back. Half a minute would look like an
/// outage to its operator; nothing would be a stampede.
const RETURN_SPREAD: SignedDuration = SignedDuration::from_secs(5);
/// How long to stay with single calls before a stream is tried again: servers and proxies are replaced,
/// and a stream costs both sides less.
const CALLING_FOR: SignedDuration = SignedDuration::from_secs(300);
/// After so many streams in a row that ended without a word, somebody in between does not like streams.
const WORDLESS_MAX: u32 = 2;
/// After so many reports in a row without a word of any kind, whoever holds the stream open does not listen:
/// something in between may answer pings for a control plane that is long gone.
const UNANSWERED_MAX: u32 = 2;

/// A stream that ended sooner than this after its first word was none: whoever accepts and dies is left alone for
/// longer each time, as one who does not accept is.
const LIVED_MIN: SignedDuration = SignedDuration::from_secs(60);

impl Line {
    /// The clock was set by this much.
    pub(super) fn shift(&mut self, by: SignedDuration) {
        self.attached_at = self.attached_at.map(|at| later(at, by));
    }

    pub(super) fn is_open(&self) -> bool {
        matches!(self.state, State::Attached | State::Calling)
    }

    /// Whether the stream lived for a while.
    fn lived(&self, now: Timestamp) -> bool {
        self.attached_at.is_some_and(|at| LIVED_MIN <= now.duration_since(at))
    }

    pub(super) fn is_calling(&self) -> bool {
        self.state == State::Calling
    }
}

impl Agent {
    /// Somebody answered.
    pub(super) fn hear(&mut self, now: Timestamp) {
        self.line.failures = 0;
        self.outbox.unanswered = 0;
        if self.line.state == State::Opening {
            self.line.state = State::Attached;
            self.line.attached_at = Some(now);
            self.due.line = None;
            self.due.beat = Some(now);
        }
    }

    /// The time of `due.line` has come: to try a stream, or to give one up.
    pub(super) fn turn_line(&mut self, now: Timestamp, out: &mut Vec<Effect>) {
        match self.line.state {
            State::Down => self.open(now, out),
            State::Opening => {
                let why = "the stream was opened and nothing was told on it";
                self.lost(Loss::Streamless(why.to_owned()), now, out);
            }
            State::Calling => {
                self.settle_nothing();
                self.open(now, out);
            }
            State::Attached => self.due.line = None,
        }
    }

    /// Gives a stream up on which nothing is answered any more. Calls have deadlines of their own.
    pub(super) fn give_up_deaf(&mut self, now: Timestamp, out: &mut Vec<Effect>) {
        if self.line.state == State::Attached && UNANSWERED_MAX <= self.outbox.unanswered {
            let why = "reports are not answered, nor is anything else told";
            self.lost(Loss::Ended(why.to_owned()), now, out);
        }
    }

    fn open(&mut self, now: Timestamp, out: &mut Vec<Effect>) {
        self.line.state = State::Opening;
        self.due.line = Some(later(now, OPENING_MAX));
        out.push(Effect::Attach(Box::new(Hello {
            node_id: self.who.node_id.clone(),
            boot_id: self.who.boot_id.clone(),
            agent_version: self.who.agent_version.clone(),
            config_revision: self.config.revision,
            health_sequence: self.outbox.sequence(),
        })));
    }

    pub(super) fn lost(&mut self, loss: Loss, now: Timestamp, out: &mut Vec<Effect>) {
        let was = self.line.state;
        if was == State::Down {
            return;
        }
        if was == State::Calling && matches!(loss, Loss::Ended(_) | Loss::Streamless(_)) {
            // One call failed on the way: what it said is said again when it is due.
            self.registration_unanswered();
            return;
        }
        self.settle_nothing();
        self.line.failures = self.line.failures.saturating_add(1);
        if was != State::Calling {
            out.push(Effect::Detach);
        }
        let wordless = was == State::Opening && WORDLESS_MAX <= self.line.failures;
        match loss {
            Loss::Streamless(why) => self.call(why, now, out),
            Loss::Ended(why) if wordless => self.call(why, now, out),
            Loss::Unreachable(why) | Loss::Refused(why) | Loss::Ended(why) => {
                self.line.state = State::Down;
                let who = self.who.node_id.as_str();
                let wait = if was == State::Attached {
                    self.line.short =
                        if self.line.lived(now) { 0 } else { self.line.short.saturating_add(1) };
                    let again = self.line.short.saturating_sub(1);
                    let longer = match again {
                        0 => SignedDuration::ZERO,
                        again => backoff::delay(who, again, RETRY_FIRST, RETRY_MAX),
                    };
                    spread(who, self.line.failures.saturating_add(again), RETURN_SPREAD) + longer
                } else {
                    backoff::delay(who, self.line.failures, RETRY_FIRST, RETRY_MAX)
                };
                self.due.line = Some(later(now, wait));
                // The first of a row is news; the others are the same news.
                if self.line.failures == 1 && self.line.short <= 1 {
                    out.push(notice(true, "lost the control plane; trying again", why));
                }
            }
        }
    }

    /// From now on by single calls.
    fn call(&mut self, why: String, now: Timestamp, out: &mut Vec<Effect>) {
        self.line.state = State::Calling;
        self.due.line = Some(later(now, CALLING_FOR));
        self.due.beat = Some(now);
        self.due.poll = Some(now);
        // There is no welcome: the answer to a registration says how far we are.
        if self.registration == Registration::Done {
            self.registration = Registration::Wanted;
            self.due.register = None;
        }
        out.push(notice(true, "no stream can be had; going on by single calls", why));
    }

    /// Nothing that was said and not answered will be.
    fn settle_nothing(&mut self) {
        self.registration_unanswered();
        self.outbox.unnumbered();
        self.orders.unsaid();
        self.due.poll = None;
        self.due.beat = None;
        self.due.ack = None;
    }

    fn registration_unanswered(&mut self) {
        (self.asked, self.asked_twice) = (None, false);
        if self.registration == Registration::Asked {
            self.registration = Registration::Wanted;
        }
    }
}

/// A time from nothing to `over`, spread over the fleet and the same in every run: the jitter of a
/// `backoff::delay`, which is its last fifth.
fn spread(who: &str, attempt: u32, over: SignedDuration) -> SignedDuration {
    backoff::delay(who, attempt, over * 5, over * 5) - over * 4
}
