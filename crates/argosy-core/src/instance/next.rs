//! What to do about one record now, or when to ask again.

use super::step::{after, asked_to_look, gives_up, gone_at, is_final, pace, settled_at};
use super::{ABSENT_FOR, Instance, Provisioning, State, Terminating};
use crate::liveness::Listened;
use crate::machine::Abilities;
use crate::plant::{self, Bug};
use jiff::{SignedDuration, Timestamp};

/// How patient we are with machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How long a machine may take until its node registers; only time in which we listened counts. Too short, and slow images are bought for
    /// ever; too long, and a broken one is paid for.
    pub registration: SignedDuration,
    /// How long a return may take until people are told.
    pub alarm_after: SignedDuration,
    /// How long a record is kept when it is over.
    pub kept: SignedDuration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            registration: SignedDuration::from_mins(10),
            alarm_after: SignedDuration::from_mins(15),
            kept: SignedDuration::from_hours(24),
        }
    }
}

/// What to do about a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Commit `Instance::called`, then ask the provider for the machine.
    Call,
    /// Look for the machine; then `Instance::seen`, or `unseen` if the look failed.
    Look,
    /// Ask the gate, then the provider to end it; then `Instance::asked`.
    Terminate,
    /// Nothing before then.
    Wait(Timestamp),
    /// Nothing until something happens to it.
    Nothing,
    /// Its node never registered (G12): keep the console, then `Instance::leaving`.
    Stale,
    /// Its return takes too long and costs (G6): tell people, then `Instance::alarmed`.
    Alarm,
    /// It has been over for long enough: remove the record.
    Forget,
}

/// What to do about one record now, or when to ask again.
///
/// Assumes that no call of ours for this record is under way: whoever makes the call knows, and asks when it
/// has ended.
///
/// `listened` says how much of the time that a machine has had we were there to hear its node.
pub fn next(
    instance: &Instance,
    abilities: &Abilities,
    limits: &Limits,
    listened: &Listened,
    now: Timestamp,
) -> Next {
    let due = |at: Timestamp, what: Next| if at <= now { what } else { Next::Wait(at) };
    match &instance.state {
        State::Provisioning(buying) => {
            let (at, what) = buy(instance, buying, abilities);
            due(at, what)
        }
        State::AwaitingNode { since, .. } => {
            // One that was adopted may be at work: its agent has to notice first that it is not known.
            let times = if instance.adopted { 2 } else { 1 };
            due(after(listened.from(*since, now), limits.registration * times), Next::Stale)
        }
        State::Running { .. } => Next::Nothing,
        State::Terminating(leaving) => {
            let (at, what) = give_back(leaving, abilities);
            let alarm_at = after(leaving.since, limits.alarm_after);
            if leaving.alarmed || (at < alarm_at && now < alarm_at) {
                due(at, what)
            } else {
                due(alarm_at, Next::Alarm)
            }
        }
        State::Terminated { at, .. } | State::Failed { at, .. } => {
            due(after(*at, limits.kept), Next::Forget)
        }
    }
}

/// What a purchase needs next, and when.
fn buy(instance: &Instance, buying: &Provisioning, abilities: &Abilities) -> (Timestamp, Next) {
    let not_before = buying.retry_at.unwrap_or(Timestamp::MIN);
    let (at, what) = match (buying.called_at, buying.absent_since) {
        // Nothing was made for certain.
        (None, _) => (Timestamp::MIN, Next::Call),
        (Some(_), None) if plant::has(Bug::DoublePurchase) => (Timestamp::MIN, Next::Call),
        // An answer was lost: look, never guess (G1, G2).
        (Some(_), None) => (Timestamp::MIN, Next::Look),
        // It is there, for its node came from it, and the provider does not show it yet: that is a matter of
        // seconds, and nothing has to be proven.
        (Some(called), Some(absent)) if buying.node.is_some() => {
            (after(absent, pace(called, absent).min(ABSENT_FOR)), Next::Look)
        }
        // With the same token the provider makes nothing new, whatever its listings miss.
        (Some(called), Some(_))
            if abilities.tokens
                && !buying.trouble.as_ref().is_some_and(|trouble| {
                    is_final(trouble) || gives_up(trouble, buying.calls)
                }) =>
        {
            (instance.call_again_at(buying.calls, called), Next::Call)
        }
        // Without, it must be proven that there is nothing (G3).
        (Some(called), Some(absent)) => {
            (after(absent, ABSENT_FOR).max(settled_at(called, abilities)), Next::Look)
        }
    };
    (at.max(not_before), what)
}

/// What a return needs next, and when.
fn give_back(leaving: &Terminating, abilities: &Abilities) -> (Timestamp, Next) {
    let not_before = leaving.retry_at.unwrap_or(Timestamp::MIN);
    let (at, what) = match (&leaving.machine, leaving.absent_since) {
        (_, Some(absent)) => {
            (after(absent, ABSENT_FOR).max(gone_at(leaving, abilities)), Next::Look)
        }
        (None, None) => (Timestamp::MIN, Next::Look),
        (Some(_), None) if 0 < leaving.calls && asked_to_look(leaving) => {
            (Timestamp::MIN, Next::Look)
        }
        (Some(_), None) => (Timestamp::MIN, Next::Terminate),
    };
    (at.max(not_before), what)
}
