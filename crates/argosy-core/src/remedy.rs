//! What to do by ourselves about nodes that are sick, lost or well again, inside every budget.
//!
//! Level-triggered: the plan is made from what is, each time anew. There is no backlog that could be
//! replayed after a pause, an open breaker or an outage.
//!
//! What a newcomer gets wrong: budgets limit what is *done*, not what is noticed. A node that may not
//! be acted on is shown as bad all the same, with the guard that holds us.

mod tally;

use crate::breaker::{Breaker, Pause, later, passed};
use crate::command::cut;
use crate::health::{Health, HealthState, POLICY_ERROR, decisive};
use crate::liveness::Excuse;
use crate::node::settings::{NodeSettings, PoolSettings, Remedy};
use crate::node::{Duty, Held, Liveness, Node, NodeId};
use crate::why::says;
use jiff::{SignedDuration, Timestamp};
use std::fmt;
use tally::Tallies;
pub use tally::{BudgetUse, allowed, budgets};

/// What the plan is made from.
#[derive(Clone, Debug)]
pub struct Fleet<'a> {
    /// Every node of every tenant.
    pub nodes: Vec<Subject<'a>>,
    /// Breakers that are not closed.
    pub breakers: Vec<&'a Breaker>,
    /// Pauses.
    pub pauses: Vec<&'a Pause>,
    /// Nobody acts on silence now: we are isolated, or nodes are still coming back.
    pub excuse: Option<Excuse>,
}

/// One node, with what its document does not say.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// The node.
    pub node: &'a Node,
    /// Whether it was heard since we began to listen: what its document says of its health may be from
    /// before an outage of ours otherwise.
    pub heard: bool,
    /// How long it has been unreachable by our monotonic clock, if it is.
    pub unreachable_for: Option<SignedDuration>,
    /// Whether an automatic cordon is on its way to it, and since when.
    pub cordon_pending: Option<Timestamp>,
}

/// What to do now.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// What to do, in order: recovery first.
    pub actions: Vec<Action>,
    /// What would be done if a guard did not hold it; only where that is news. `None`: nothing is held
    /// any more.
    pub holds: Vec<(NodeId, Option<Held>)>,
    /// Breakers as they should be stored, where that is news.
    pub breakers: Vec<Breaker>,
    /// Breakers that are closed: their documents go.
    pub closed: Vec<Breaker>,
    /// When to look again although nothing changed.
    pub next: Option<Timestamp>,
}

impl Plan {
    /// Whether there is nothing to do now.
    pub fn is_nothing(&self) -> bool {
        let Plan { actions, holds, breakers, closed, next: _ } = self;
        actions.is_empty() && holds.is_empty() && breakers.is_empty() && closed.is_empty()
    }
}

/// One thing to do by ourselves.
#[derive(Clone, Debug, PartialEq)]
pub struct Action {
    /// To whom.
    pub node: NodeId,
    /// What.
    pub kind: ActionKind,
    /// Why, for people and for the ledger: the finding, the rule.
    pub reason: String,
    /// The state of the budgets when it was decided: `pool h100 2/5, zone a 2/10, fleet 7/50`. Empty
    /// for what needs none.
    pub budget: String,
}

/// The kinds of action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ActionKind {
    /// Take back a cordon that the node has not fetched: it may not be carried out any more.
    Withdraw,
    /// Stop our own drain: it may not be carried out any more. The node stays out of service.
    StopDrain,
    /// Put it back: an UNCORDON command; a drain in progress is cancelled.
    Uncordon,
    /// The cordon that was sent holds although the node did not fetch it.
    EnforceCordon,
    /// End what runs on it: a DRAIN command.
    Drain,
    /// Take it out of service: a CORDON command.
    Cordon,
}

impl ActionKind {
    /// The word.
    pub const fn as_str(self) -> &'static str {
        match self {
            ActionKind::Withdraw => "withdraw",
            ActionKind::StopDrain => "stop-drain",
            ActionKind::Uncordon => "uncordon",
            ActionKind::EnforceCordon => "enforce-cordon",
            ActionKind::Drain => "drain",
            ActionKind::Cordon => "cordon",
        }
    }
}

impl ActionKind {
    /// What is decided, to be said of the node: `decided to cordon it`.
    pub const fn decision(self) -> &'static str {
        match self {
            ActionKind::Withdraw => "not cordon",
            ActionKind::StopDrain => "not drain",
            ActionKind::Uncordon => "uncordon",
            ActionKind::EnforceCordon | ActionKind::Cordon => "cordon",
            ActionKind::Drain => "drain",
        }
    }
}

impl fmt::Display for ActionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One line: `uncordon b; cordon a; hold c budget; free d; open pool/acme/h100`.
impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let actions = self.actions.iter().map(|action| format!("{} {}", action.kind, action.node));
        let holds = self.holds.iter().map(|(node, held)| match held {
            Some(held) if held.action == "cordon" => format!("hold {node} {}", held.guard),
            Some(held) => format!("hold {node} {} {}", held.action, held.guard),
            None => format!("free {node}"),
        });
        let breakers = self.breakers.iter().map(|breaker| match breaker.half_open {
            None => format!("open {}", breaker.scope),
            Some(step) => format!("half-open {} {}/{}", breaker.scope, step.taken, step.allowed),
        });
        let closed = self.closed.iter().map(|breaker| format!("close {}", breaker.scope));
        let all: Vec<String> = actions.chain(holds).chain(breakers).chain(closed).collect();
        f.write_str(&all.join("; "))
    }
}

/// Makes the plan. Takes time in proportion to the fleet.
///
/// Guarantees: no more nodes are taken out of service than any budget allows, however often it is
/// asked and carried out; nothing is done about a paused node but to stop; nothing is done about a node
/// whose health cannot be told, or about silence while there is an excuse for it; breakers and budgets
/// never hold back a recovery.
pub fn plan(fleet: &Fleet<'_>, settings: &NodeSettings, now: Timestamp) -> Plan {
    let mut planner = Planner {
        fleet,
        settings,
        tallies: Tallies::count(fleet, settings, now),
        now,
        plan: Plan::default(),
        waiting: Vec::new(),
    };
    planner.plan.next = planner.tallies.next();
    for index in 0..fleet.nodes.len() {
        planner.look_at(index);
    }
    planner.take_turns();
    let Planner { tallies, mut plan, .. } = planner;
    // Stable, so that within a kind who waited longest is first.
    plan.actions.sort_by_key(|action| action.kind);
    tallies.settle(&mut plan);
    plan
}

/// When a node that is well again goes back into service, if it stays well.
pub fn back_at(node: &Node, settings: &PoolSettings) -> Timestamp {
    later(well_since(node), hold_down(node, settings))
}

fn well_since(node: &Node) -> Timestamp {
    let since = || node.health.since.max(node.liveness_since);
    node.flaps.recovered_at.unwrap_or_else(since)
}

/// How long a node must be well before it is put back into service.
fn hold_down(node: &Node, settings: &PoolSettings) -> SignedDuration {
    let doubled = 1_i32.checked_shl(node.flaps.count).filter(|factor| 0 < *factor);
    let wait = doubled.and_then(|factor| settings.recover_after.checked_mul(factor));
    wait.unwrap_or(SignedDuration::MAX).min(settings.recover_after_max)
}

/// Whether a node should be out of service, as far as we may act on it.
enum Bad {
    /// It should not; `well` if it should be in service.
    No { well: bool },
    /// It is sick.
    Sick,
    /// It has been lost for long enough.
    Lost,
    /// It is lost, but not for long enough yet.
    NotYet(SignedDuration),
    /// It may be lost, or it may be us.
    Excused(Excuse),
    /// Nobody can say how it is: a rule failed. It is never acted on.
    Untold,
}

fn judge(of: &Subject<'_>, excuse: Option<Excuse>, settings: &PoolSettings) -> Bad {
    let Subject { node, heard, unreachable_for, .. } = of;
    if node.health.state == HealthState::Unknown && node.health.reason == POLICY_ERROR {
        return Bad::Untold;
    }
    let sick = node.health.state == HealthState::Unhealthy;
    if sick && *heard {
        return Bad::Sick;
    }
    let lost = node.liveness == Liveness::Unreachable;
    match (excuse, unreachable_for) {
        (Some(excuse), _) if sick || lost => Bad::Excused(excuse),
        (None, Some(time)) if lost && settings.act_after <= *time => Bad::Lost,
        (None, Some(time)) if lost => Bad::NotYet(settings.act_after.saturating_sub(*time)),
        _ => Bad::No { well: !sick && *heard && node.liveness == Liveness::Fresh },
    }
}

/// When the node turned bad: which of those that wait is first.
fn turned_bad_at(node: &Node) -> Option<Timestamp> {
    let sick = node.health.state == HealthState::Unhealthy;
    let lost = node.liveness == Liveness::Unreachable;
    let (sick, lost) = (sick.then_some(node.health.since), lost.then_some(node.liveness_since));
    match (sick, lost) {
        (Some(sick), Some(lost)) => Some(sick.min(lost)),
        (one, other) => one.or(other),
    }
}

/// A node that should be acted on, if every guard lets us.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    since: Option<Timestamp>,
    index: usize,
    drain: bool,
}

struct Planner<'a> {
    fleet: &'a Fleet<'a>,
    settings: &'a NodeSettings,
    tallies: Tallies<'a>,
    now: Timestamp,
    plan: Plan,
    waiting: Vec<Candidate>,
}

impl<'a> Planner<'a> {
    fn look_at(&mut self, index: usize) {
        let Some(subject) = self.fleet.nodes.get(index) else { return };
        let node = subject.node;
        let at_ease = node.duty == Duty::Active && subject.cordon_pending.is_none();
        // Most of a fleet: whose settings nobody needs to know.
        if at_ease && !node.is_bad() && node.held.is_none() {
            return;
        }
        let settings = self.settings.of_node(node);
        let bad = judge(subject, self.fleet.excuse, settings);
        match (&node.duty, subject.cordon_pending) {
            (Duty::Active, Some(since)) => self.under_way(index, &bad, since),
            (Duty::Active, None) => match bad {
                Bad::Sick | Bad::Lost => self.candidate(index, Remedy::Cordon),
                Bad::Excused(excuse) if Remedy::Cordon <= settings.remedy => {
                    self.hold(node, "cordon", excuse.word(), || excuse.to_string());
                }
                Bad::NotYet(time) => {
                    self.free(node);
                    self.wake(later(self.now, time));
                }
                Bad::No { .. } | Bad::Untold | Bad::Excused(_) => self.free(node),
            },
            (Duty::Cordoned(hold) | Duty::Draining { hold, .. }, _) if hold.automatic => {
                let cordoned = matches!(node.duty, Duty::Cordoned(_));
                let open = matches!(node.duty, Duty::Draining { done: false, .. });
                let stop = if open { self.stopped(index) } else { None };
                let done = self.plan.actions.len();
                match bad {
                    Bad::Sick | Bad::Lost if open && Remedy::Drain <= settings.remedy => {
                        match &stop {
                            Some((guard, reason)) => {
                                self.hold(node, "drain", guard, || reason.clone());
                            }
                            None => self.free(node),
                        }
                    }
                    Bad::Sick | Bad::Lost if cordoned => self.candidate(index, Remedy::Drain),
                    Bad::No { well: true } => self.recover(node, settings),
                    Bad::Sick | Bad::Lost | Bad::NotYet(_) | Bad::Excused(_) => self.free(node),
                    Bad::No { well: false } | Bad::Untold => self.free(node),
                }
                // A node that goes back into service now is not drained any more either.
                if let Some((_, reason)) = stop.filter(|_| self.plan.actions.len() == done) {
                    self.act(node, ActionKind::StopDrain, reason, String::new());
                }
            }
            (Duty::Cordoned(_) | Duty::Draining { .. } | Duty::Terminated(_), _) => self.free(node),
        }
    }

    /// A cordon of ours is on its way: it is taken back if it could not be sent now, or holds if the
    /// node does not fetch it.
    fn under_way(&mut self, index: usize, bad: &Bad, since: Timestamp) {
        let Some(subject) = self.fleet.nodes.get(index) else { return };
        let node = subject.node;
        let stop = match bad {
            Bad::Untold => Some(("policy", "its health cannot be told".to_owned())),
            Bad::Excused(excuse) => Some((excuse.word(), excuse.to_string())),
            // One who recovered is the command's own to notice.
            Bad::No { .. } | Bad::NotYet(_) => None,
            Bad::Sick | Bad::Lost => self.stopped(index),
        };
        if let Some((guard, reason)) = stop {
            self.act(node, ActionKind::Withdraw, reason.clone(), String::new());
            return self.hold(node, "cordon", guard, || reason);
        }
        self.free(node);
        let grace = self.settings.of_node(node).cordon_grace;
        let enforce = node.liveness == Liveness::Unreachable || passed(since, grace, self.now);
        match bad {
            Bad::Sick | Bad::Lost if enforce => {
                let waited_s = self.now.duration_since(since).abs().as_secs();
                let reason = format!("the node did not fetch its cordon for {waited_s} s");
                self.act(node, ActionKind::EnforceCordon, reason, self.tallies.line(index));
            }
            Bad::Sick | Bad::Lost => self.wake(later(since, grace)),
            Bad::No { .. } | Bad::NotYet(_) | Bad::Excused(_) | Bad::Untold => {}
        }
    }

    /// A node that we took out of service is well again.
    fn recover(&mut self, node: &Node, settings: &PoolSettings) {
        let (well_since, wait) = (well_since(node), hold_down(node, settings));
        if let Some(pause) = self.pause(node) {
            return self.hold(node, "uncordon", "pause", || paused(pause));
        }
        let well_s = self.now.duration_since(well_since).abs().as_secs();
        if passed(well_since, wait, self.now) {
            let reason = format!("well again for {well_s} s");
            return self.act(node, ActionKind::Uncordon, reason, String::new());
        }
        self.wake(later(well_since, wait));
        let (wait_s, relapses) = (wait.as_secs(), node.flaps.count);
        self.hold(node, "uncordon", "hold-down", || match relapses {
            0 => format!("well again; it goes back into service after {wait_s} s"),
            _ => format!(
                "well again; it goes back into service after {wait_s} s, as often as it relapsed \
                 lately: {relapses} times"
            ),
        });
    }

    fn candidate(&mut self, index: usize, remedy: Remedy) {
        let Some(subject) = self.fleet.nodes.get(index) else { return };
        let node = subject.node;
        if self.settings.of_node(node).remedy < remedy {
            return self.free(node);
        }
        let (since, drain) = (turned_bad_at(node), remedy == Remedy::Drain);
        self.waiting.push(Candidate { since, index, drain });
    }

    /// Lets through whom every guard lets through, who has been bad for longest first.
    fn take_turns(&mut self) {
        let mut waiting = std::mem::take(&mut self.waiting);
        waiting.sort_unstable();
        for Candidate { index, drain, .. } in waiting {
            let Some(subject) = self.fleet.nodes.get(index) else { continue };
            let node = subject.node;
            let kind = if drain { ActionKind::Drain } else { ActionKind::Cordon };
            if let Some(pause) = self.pause(node) {
                self.hold(node, kind.as_str(), "pause", || paused(pause));
                continue;
            }
            match self.tallies.take(index, drain, self.now) {
                Ok(()) => {
                    let reason = because(subject);
                    self.act(node, kind, reason, self.tallies.line(index));
                }
                Err(guard) => {
                    if let Some(at) = guard.until {
                        self.wake(at);
                    }
                    if is_news(node, kind.as_str(), guard.word) {
                        let reason = self.tallies.why(guard, self.now);
                        self.hold(node, kind.as_str(), guard.word, || reason);
                    }
                }
            }
        }
    }

    /// What stops whatever we do to a node by ourselves: the guard, and why.
    fn stopped(&self, index: usize) -> Option<(&'static str, String)> {
        let node = self.fleet.nodes.get(index)?.node;
        let paused = self.pause(node).map(|pause| ("pause", paused(pause)));
        paused.or_else(|| self.tallies.open(index).map(|why| ("breaker", why)))
    }

    fn pause(&self, node: &Node) -> Option<&'a Pause> {
        self.fleet.pauses.iter().find(|pause| pause.covers(node)).copied()
    }

    fn act(&mut self, node: &Node, kind: ActionKind, reason: String, budget: String) {
        self.plan.actions.push(Action { node: node.id.clone(), kind, reason, budget });
    }

    /// The sentence is made only if it is news: it may be one of ten thousand.
    fn hold(&mut self, node: &Node, action: &str, guard: &str, reason: impl FnOnce() -> String) {
        if is_news(node, action, guard) {
            let (action, guard) = (action.to_owned(), guard.to_owned());
            let held = Held { action, guard, reason: reason(), since: self.now };
            self.plan.holds.push((node.id.clone(), Some(held)));
        }
    }

    fn free(&mut self, node: &Node) {
        if node.held.is_some() {
            self.plan.holds.push((node.id.clone(), None));
        }
    }

    fn wake(&mut self, at: Timestamp) {
        self.plan.next = Some(self.plan.next.map_or(at, |next| next.min(at)));
    }
}

fn is_news(node: &Node, action: &str, guard: &str) -> bool {
    node.held.as_ref().is_none_or(|held| held.action != action || held.guard != guard)
}

fn paused(pause: &Pause) -> String {
    format!("paused by {}: {}", pause.by, pause.reason)
}

/// Why a node is taken out of service.
fn because(of: &Subject<'_>) -> String {
    let Health { state, reason, message, .. } = &of.node.health;
    if *state == HealthState::Unhealthy && of.heard {
        let said = || format!("{reason}: {message}");
        // A finding may say as much as a reason may, and then some.
        return cut(&decisive(&of.node.findings).map_or_else(said, says));
    }
    format!("unreachable for {} s", of.unreachable_for.unwrap_or_default().as_secs())
}

#[cfg(test)]
mod tests;
