//! What must hold of a plan, counted anew: the planner's own sums are not asked.

use crate::breaker::{Area, Breaker, Scope, passed};
use crate::health::{HealthState, POLICY_ERROR};
use crate::node::settings::{Budget, NodeSettings};
use crate::node::{Duty, Liveness, Node, NodeId};
use crate::remedy::{Action, ActionKind, Fleet, Plan, Subject, allowed};
use jiff::Timestamp;
use std::collections::{BTreeMap, HashMap, HashSet};

pub(super) fn broken(
    fleet: &Fleet<'_>,
    plan: &Plan,
    settings: &NodeSettings,
    now: Timestamp,
) -> Option<String> {
    if plan.actions.is_empty() {
        return None;
    }
    let named = |action: &Action, broken: String| {
        format!("Plan to {} node {}: {broken}", action.kind, action.node)
    };
    let subjects = acted_on(fleet, plan);
    let mut seen: HashSet<&NodeId> = HashSet::new();
    for action in &plan.actions {
        if !seen.insert(&action.node) {
            return Some(named(action, "I3: it is acted on twice".to_owned()));
        }
        let Some(subject) = subjects.get(&action.node) else {
            return Some(named(action, "I3: there is no such node".to_owned()));
        };
        let broken = started(action.kind, subject, fleet, settings)
            .or_else(|| stopped(action.kind, subject.node, fleet, plan));
        if let Some(broken) = broken {
            return Some(named(action, broken));
        }
    }
    over_budget(fleet, plan, &subjects, settings, now)
}

fn acted_on<'f>(fleet: &'f Fleet<'_>, plan: &Plan) -> HashMap<&'f NodeId, &'f Subject<'f>> {
    let wanted: HashSet<&NodeId> = plan.actions.iter().map(|action| &action.node).collect();
    let subjects = fleet.nodes.iter().filter(|subject| wanted.contains(&subject.node.id));
    subjects.map(|subject| (&subject.node.id, subject)).collect()
}

/// Whether an action does not fit the node as it is (I3).
fn started(
    kind: ActionKind,
    of: &Subject<'_>,
    fleet: &Fleet<'_>,
    settings: &NodeSettings,
) -> Option<String> {
    let node = of.node;
    let pending = of.cordon_pending.is_some();
    let (active, ours) = (node.duty == Duty::Active, node.in_disruption());
    let fits = match kind {
        ActionKind::Cordon => active && !pending,
        ActionKind::EnforceCordon | ActionKind::Withdraw => active && pending,
        ActionKind::Drain => ours && matches!(node.duty, Duty::Cordoned(_)),
        ActionKind::StopDrain => ours && matches!(node.duty, Duty::Draining { done: false, .. }),
        ActionKind::Uncordon => ours,
    };
    if !fits {
        return Some(format!("I3: it is {}", node.status().as_str()));
    }
    let sick = node.health.state == HealthState::Unhealthy;
    let act_after = settings.of_node(node).act_after;
    let lost = node.liveness == Liveness::Unreachable
        && fleet.excuse.is_none()
        && of.unreachable_for.is_some_and(|time| act_after <= time);
    let evidence = match kind {
        ActionKind::Withdraw | ActionKind::StopDrain => true,
        ActionKind::Uncordon => !node.is_bad() && of.heard,
        ActionKind::Cordon | ActionKind::EnforceCordon | ActionKind::Drain => {
            (sick && of.heard) || (lost && node.health.reason != POLICY_ERROR)
        }
    };
    (!evidence).then(|| "I3: there is no current evidence for it".to_owned())
}

/// Whether a pause or a breaker forbids an action (I3).
fn stopped(kind: ActionKind, node: &Node, fleet: &Fleet<'_>, plan: &Plan) -> Option<String> {
    if matches!(kind, ActionKind::Withdraw | ActionKind::StopDrain) {
        return None;
    }
    if fleet.pauses.iter().any(|pause| pause.covers(node)) {
        return Some("I3: it is paused".to_owned());
    }
    if kind == ActionKind::Uncordon {
        return None;
    }
    let open = |scope: &Scope| {
        let is_it = |breaker: &&Breaker| breaker.scope == *scope;
        let planned = plan.breakers.iter().find(is_it);
        let breaker = planned.or_else(|| {
            let goes = plan.closed.iter().any(|closed| closed.scope == *scope);
            fleet.breakers.iter().copied().find(is_it).filter(|_| !goes)
        });
        breaker.is_some_and(|breaker| breaker.half_open.is_none() && !breaker.is_closed())
    };
    let scope = Area::of(node).map(Area::scope).find(open)?;
    Some(format!("I3: the breaker of {scope} is open"))
}

/// Whether more nodes would be out of service than a budget allows (I4).
fn over_budget(
    fleet: &Fleet<'_>,
    plan: &Plan,
    subjects: &HashMap<&NodeId, &Subject<'_>>,
    settings: &NodeSettings,
    now: Timestamp,
) -> Option<String> {
    let mut counted: BTreeMap<Area<'_>, (usize, usize)> = BTreeMap::new();
    let cordons = plan.actions.iter().filter(|action| action.kind == ActionKind::Cordon);
    for subject in cordons.filter_map(|action| subjects.get(&action.node)) {
        for area in Area::of(subject.node) {
            counted.entry(area).or_default().0 += 1;
        }
    }
    if counted.is_empty() {
        return None;
    }
    // Only what the plan adds to is its responsibility: a fleet can shrink under its budget.
    for subject in &fleet.nodes {
        let node = subject.node;
        if matches!(node.duty, Duty::Terminated(_)) {
            continue;
        }
        let out = node.in_disruption() || subject.cordon_pending.is_some();
        let old = passed(node.joined_at, settings.of_node(node).warm_up, now);
        for area in Area::of(node) {
            if let Some((used, total)) = counted.get_mut(&area) {
                *used += usize::from(out);
                *total += usize::from(old);
            }
        }
    }
    let over = counted.into_iter().find_map(|(area, (used, total))| {
        let allowed = allowed(budget(area, settings), total);
        (allowed < used).then(|| (area.scope(), used, allowed))
    });
    over.map(|(scope, used, allowed)| {
        format!("Plan for {scope}: I4: {used} nodes would be out of service, and {allowed} may be")
    })
}

fn budget<'s>(area: Area<'_>, settings: &'s NodeSettings) -> &'s Budget {
    match area {
        Area::Fleet => &settings.fleet.budget,
        Area::Zone(..) => &settings.fleet.zone_budget,
        Area::Pool(_, "") => &settings.defaults.budget,
        Area::Pool(tenant, pool) => &settings.of_pool(tenant, Some(pool)).budget,
    }
}
