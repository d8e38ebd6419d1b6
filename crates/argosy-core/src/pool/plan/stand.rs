//! Where a machine of a pool stands: what its record and its node together say.

use super::{Member, Picture};
use crate::breaker::later;
use crate::health::HealthState;
use crate::instance::State;
use crate::machine::NoticeKind;
use crate::node::{Duty, Hold, Liveness, Node};
use crate::pool::choice::types_at;
use crate::pool::{BY, Capacity};
use jiff::{SignedDuration, Timestamp};

/// How long after its node registered a GPU that is known to be bad sends a machine straight back: nothing of
/// worth runs on it yet. Later it is replaced as a sick one is.
const BOOT_FOR: SignedDuration = SignedDuration::from_mins(30);

/// Where a machine stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::pool) enum Standing {
    /// Its node has not registered yet.
    Coming,
    /// In service.
    Ready,
    /// Registered and not in service, and nobody has decided anything about it.
    Unsure,
    /// Out of service for its health.
    Sick {
        /// Whether it is not heard at all.
        lost: bool,
    },
    /// Out of service for its health, and nothing is wrong with it any more, or nobody can say.
    Recovering,
    /// Taken out of service because the pool wants it gone.
    Parting,
    /// Taken out of service by a person: theirs.
    Held,
    /// It came with a GPU that is known to be bad.
    Condemned(String),
    /// Its provider takes it back.
    Reclaimed,
    /// A person terminated its node.
    Terminated(String),
    /// It is on its way out.
    Leaving,
}

impl Standing {
    /// Of a machine that is not over.
    pub(super) fn of(member: &Member<'_>, picture: &Picture<'_>, now: Timestamp) -> Self {
        let since = match &member.instance.state {
            State::Running { since, .. } => *since,
            State::Provisioning(_) | State::AwaitingNode { .. } => return Standing::Coming,
            State::Terminating(_) | State::Terminated { .. } | State::Failed { .. } => {
                return Standing::Leaving;
            }
        };
        let Some(node) = member.node else {
            // One that was forgotten and lives registers again within seconds.
            let gone = member.lost_for.is_some_and(|time| picture.register_within <= time);
            return if gone { Standing::Sick { lost: true } } else { Standing::Unsure };
        };
        if let Duty::Terminated(hold) = &node.duty {
            return Standing::Terminated(hold.by.clone());
        }
        // While nothing is done by ourselves it keeps its seat, or another would be bought beside it.
        let fresh = now.duration_since(since) < BOOT_FOR
            && node.duty == Duty::Active
            && picture.holds(Some(member)).is_none();
        if fresh && let Some(serial) = bad_serial(node, picture) {
            return Standing::Condemned(serial);
        }
        if member.notice.is_some_and(|notice| notice.kind == NoticeKind::Reclaim) {
            return Standing::Reclaimed;
        }
        let lost = node.liveness == Liveness::Unreachable
            && member.lost_for.is_some_and(|time| picture.act_after <= time);
        let sick = node.health.state == HealthState::Unhealthy && member.heard;
        match node.duty.hold() {
            // It is to go, and its node was not told yet, or has to be told again.
            None if member.instance.departure.is_some() => Standing::Parting,
            None if is_ready(node) => Standing::Ready,
            None => Standing::Unsure,
            Some(hold) if !hold.automatic && !is_ours(hold) => Standing::Held,
            Some(_) if lost || sick => Standing::Sick { lost },
            Some(hold) if hold.automatic => Standing::Recovering,
            Some(_) => Standing::Parting,
        }
    }

    /// Whether it holds one of the pool's seats: it is, or may become, one of its nodes.
    pub(super) const fn is_seated(&self) -> bool {
        match self {
            Standing::Coming
            | Standing::Ready
            | Standing::Unsure
            | Standing::Sick { .. }
            | Standing::Recovering
            | Standing::Parting
            | Standing::Held => true,
            Standing::Condemned(_)
            | Standing::Reclaimed
            | Standing::Terminated(_)
            | Standing::Leaving => false,
        }
    }

    /// Whether it can be counted on to take another's place.
    pub(super) const fn is_hopeful(&self) -> bool {
        matches!(self, Standing::Coming | Standing::Ready | Standing::Unsure | Standing::Recovering)
    }
}

/// Whether a hold is the pool's own.
fn is_ours(hold: &Hold) -> bool {
    !hold.automatic && hold.by == BY
}

/// In service: heard, with nothing against it. A warning does not make a node useless.
fn is_ready(node: &Node) -> bool {
    node.duty == Duty::Active
        && node.liveness == Liveness::Fresh
        && matches!(node.health.state, HealthState::Healthy | HealthState::Degraded)
}

/// Since when a node has been in service without a break: registered, heard and healthy.
pub(super) fn serving_since(member: &Member<'_>) -> Option<Timestamp> {
    let State::Running { since, .. } = &member.instance.state else { return None };
    let node = member.node.filter(|node| is_ready(node))?;
    Some((*since).max(node.health.since).max(node.liveness_since))
}

/// When somebody has to look at a node that nothing was ever found out about: its agent speaks, and no check
/// says how it is; `None` if that is not so.
pub(super) fn unjudged_from(node: &Node, picture: &Picture<'_>) -> Option<Timestamp> {
    let unjudged = node.duty == Duty::Active
        && node.liveness == Liveness::Fresh
        && node.health.state == HealthState::Unknown;
    unjudged.then(|| later(node.health.since, picture.register_within))
}

/// A GPU of the node that is known to be bad.
pub(super) fn bad_serial(node: &Node, picture: &Picture<'_>) -> Option<String> {
    if picture.bad_hardware.is_empty() {
        return None;
    }
    let mut serials = node.gpus.iter().map(|gpu| gpu.hardware()).filter(|one| !one.is_empty());
    serials.find(|serial| picture.bad_hardware.contains(*serial)).map(str::to_owned)
}

/// In what a machine is not what the spec asks for; `None` if it is.
pub(super) fn outdated(member: &Member<'_>, picture: &Picture<'_>) -> Option<String> {
    if let Some(notice) = member.notice.filter(|notice| notice.kind == NoticeKind::Maintenance) {
        return Some(format!("its provider will work on it: {}", notice.message));
    }
    outdated_order(member, picture)
}

/// In what a machine was ordered otherwise than the spec asks for now.
pub(super) fn outdated_order(member: &Member<'_>, picture: &Picture<'_>) -> Option<String> {
    let (spec, order) = (picture.spec, &member.instance.order);
    // What was ordered of a machine that was adopted nobody knows: it is not replaced for that.
    let known = !member.instance.adopted;
    if known && order.image != spec.image {
        return Some(format!("its image is {}, not {}", shown(&order.image), shown(&spec.image)));
    }
    match (spec.capacity, order.spot) {
        _ if !known => {}
        (Capacity::OnDemand, true) => return Some("it is a spot machine".to_owned()),
        (Capacity::Spot, false) => return Some("it is not a spot machine".to_owned()),
        (Capacity::OnDemand, false) | (Capacity::Spot, true) | (Capacity::SpotPreferred, _) => {}
    }
    if !spec.zones.is_empty() && !order.zone.is_empty() && !spec.zones.contains(&order.zone) {
        return Some(format!("it is in zone {}", order.zone));
    }
    let choice = spec.providers.iter().find(|choice| choice.name == order.provider);
    if choice.is_none() && !spec.providers.is_empty() {
        return Some(format!("it is at provider {}", order.provider));
    }
    // Of a provider that is not configured nothing can be said.
    let facts = picture.providers.get(&order.provider)?;
    // What the spec does not name is no reason to replace: where nobody names a region, another default is one for
    // new machines only.
    let regions = choice.map(|choice| &choice.regions).filter(|regions| !regions.is_empty());
    if regions.is_some_and(|regions| !regions.contains(&order.region)) {
        return Some(format!("it is in region {}", order.region));
    }
    let types = types_at(spec, choice, facts);
    // One that is empty stands for any.
    let fits = types.iter().any(|wanted| wanted.is_empty() || *wanted == order.machine_type);
    (!fits).then(|| format!("its machine type is {}", shown(&order.machine_type)))
}

fn shown(text: &str) -> &str {
    if text.is_empty() { "the provider's default" } else { text }
}
