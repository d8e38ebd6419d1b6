//! What can be tried with a sick node before another takes its place: diagnose, reboot, replace, and then a
//! person.
//!
//! What a newcomer gets wrong: a ladder that can be climbed again and again is a machine that is rebooted for
//! ever. Each step is taken once per sickness, and a sickness is over only after an hour of health (F15).

use super::{Member, PoolSpec};
use crate::breaker::{later, passed};
use crate::health::{Ends, Finding, HealthState, Severity, decisive};
use crate::instance::{Cure, Tried};
use crate::machine::Abilities;
use crate::node::{Duty, Liveness, Node};
use crate::recovery::{RecoveryAction, RecoveryChange};
use crate::why::says;
use crate::xid::{Catalogue, Class};
use jiff::{SignedDuration, Timestamp};

/// How long a node must be well for what was tried before not to count any more.
const WELL_FOR: SignedDuration = SignedDuration::from_hours(1);
/// How long a diagnostic may take before it counts as tried in vain.
const DIAGNOSE_FOR: SignedDuration = SignedDuration::from_mins(30);
/// How long a reboot may take until the node is well again.
const REBOOT_FOR: SignedDuration = SignedDuration::from_mins(15);
/// How many reboots a machine may get in a day: one that needs more is not made well by them.
const REBOOTS_MAX: usize = 2;
/// The day of `REBOOTS_MAX`.
const REBOOTS_WITHIN: SignedDuration = SignedDuration::from_hours(24);

/// What to do about a sick node now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Treatment {
    /// Test it.
    Diagnose,
    /// Boot it again, once what runs on it has ended.
    Reboot,
    /// Put another in its place.
    Replace,
    /// Something is being tried, until then.
    Wait(Timestamp, &'static str),
    /// Nothing more can be done by ourselves.
    Human(&'static str),
}

/// What findings say about the hardware.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Signs {
    /// A reset or a reboot is what is asked for.
    wants_reboot: bool,
    /// Nothing but the vendor helps.
    beyond_help: bool,
    /// A test that passes would clear it.
    testable: bool,
}

/// The next step of the ladder for a node that was taken out of service because it is sick or lost.
pub(super) fn treat(
    member: &Member<'_>,
    spec: &PoolSpec,
    abilities: Option<&Abilities>,
    now: Timestamp,
) -> Treatment {
    let of_now = |node| of_this_sickness(node, &member.instance.tried);
    let tried = member.node.map_or(&[][..], of_now);
    if let Some(wait) = under_way(tried, now) {
        return wait;
    }
    let has = |cure: Cure| tried.iter().any(|one| one.cure == cure);
    let may = |cure: Cure| spec.cures.contains(&cure) && !has(cure);
    let lost = member.node.is_none_or(|node| node.liveness == Liveness::Unreachable);
    let signs = member.node.map(|node| signs(&node.findings)).unwrap_or_default();
    // A node that is not heard can neither be tested nor told to end its work.
    if !lost && !signs.beyond_help {
        if may(Cure::Diagnose) && signs.testable && !signs.wants_reboot {
            return Treatment::Diagnose;
        }
        let reboots = member
            .instance
            .tried
            .iter()
            .filter(|one| one.cure == Cure::Reboot && !passed(one.at, REBOOTS_WITHIN, now));
        let can = abilities.is_some_and(|abilities| abilities.reboot);
        if may(Cure::Reboot) && can && signs.wants_reboot && reboots.count() < REBOOTS_MAX {
            return Treatment::Reboot;
        }
    }
    if !spec.cures.contains(&Cure::Replace) {
        return Treatment::Human("spec.cures does not let it be replaced");
    }
    Treatment::Replace
}

/// What was tried since the node fell ill, or so shortly before that it is still the same illness.
fn of_this_sickness<'a>(node: &Node, tried: &'a [Tried]) -> &'a [Tried] {
    let began = ill_since(node);
    let counts_from = began.checked_sub(WELL_FOR).unwrap_or(Timestamp::MIN);
    let old = tried.iter().take_while(|one| one.at < counts_from).count();
    tried.get(old..).unwrap_or_default()
}

/// Since when a machine's node is out of service for its health, or is not known any more.
pub(super) fn fell_ill_at(member: &Member<'_>) -> Timestamp {
    let nodeless = member.instance.sight.nodeless_since;
    member.node.map_or_else(|| nodeless.unwrap_or(Timestamp::MAX), ill_since)
}

fn ill_since(node: &Node) -> Timestamp {
    let held = node.duty.hold().map(|hold| hold.at);
    let sick = node.health.since.max(node.liveness_since);
    held.map_or(sick, |held| held.min(sick))
}

/// What is being tried, and has neither ended nor taken too long.
fn under_way(tried: &[Tried], now: Timestamp) -> Option<Treatment> {
    let last = tried.last().filter(|last| last.outcome.is_empty())?;
    let (most, what) = match last.cure {
        Cure::Diagnose => (DIAGNOSE_FOR, "its GPUs are being tested"),
        Cure::Reboot => (REBOOT_FOR, "it boots again"),
        Cure::Replace => return None,
    };
    (!passed(last.at, most, now)).then(|| Treatment::Wait(later(last.at, most), what))
}

fn signs(findings: &[Finding]) -> Signs {
    let bad = findings.iter().filter(|finding| finding.severity == Some(Severity::Unhealthy));
    bad.fold(Signs::default(), |signs, finding| {
        let class = class(finding);
        let asked = recovery(finding);
        let reboot = match (asked, class) {
            // The driver knows best.
            (Some(asked), _) => helps(asked),
            (None, Some(Class::GpuReset | Class::Vm | Class::Node)) => true,
            (
                None,
                Some(
                    Class::Info
                    | Class::App
                    | Class::Follow
                    | Class::Config
                    | Class::Unknown
                    | Class::Link
                    | Class::Facility
                    | Class::Reduced
                    | Class::Support,
                )
                | None,
            ) => false,
        };
        Signs {
            wants_reboot: signs.wants_reboot || reboot,
            beyond_help: signs.beyond_help || asked.is_none() && class == Some(Class::Support),
            // What a check says ends with the check; what an event says, with a test that passes.
            testable: signs.testable || matches!(finding.ends, Ends::AtReboot | Ends::At(_)),
        }
    })
}

const fn helps(asked: RecoveryAction) -> bool {
    match asked {
        RecoveryAction::GpuReset
        | RecoveryAction::NodeReboot
        | RecoveryAction::DrainAndReset
        | RecoveryAction::BusReset
        | RecoveryAction::SystemReboot => true,
        RecoveryAction::None | RecoveryAction::DrainP2p | RecoveryAction::RecoverImex => false,
    }
}

/// What kind of fault a finding of an Xid or SXid is about: `xid/79/GPU-1b2c…`.
fn class(finding: &Finding) -> Option<Class> {
    let mut parts = finding.key.split('/');
    let (kind, code) = (parts.next()?, parts.next()?.parse().ok()?);
    let row = match kind {
        "xid" => Catalogue::builtin().xid(code),
        "sxid" => Catalogue::builtin().sxid(code),
        _ => None,
    };
    row.map(|row| row.class)
}

/// What the driver asks for, where a finding repeats its words.
fn recovery(finding: &Finding) -> Option<RecoveryAction> {
    let texts = [&finding.evidence, &finding.message];
    let changed = texts.iter().find_map(|text| RecoveryChange::parse(text)?.to);
    changed.or_else(|| {
        let asks = texts.iter().find_map(|text| text.split_once("asks for recovery"))?.1;
        RecoveryAction::from_words(asks.rsplit(':').next()?.trim())
    })
}

/// The GPUs of a node that nobody should get again: their faults are the vendor's to mend, or a reboot did not
/// help.
pub(super) fn condemned(member: &Member<'_>) -> Vec<String> {
    let Some(node) = member.node else { return Vec::new() };
    let rebooted =
        of_this_sickness(node, &member.instance.tried).iter().any(|one| one.cure == Cure::Reboot);
    let bad = node.findings.iter().filter(|finding| {
        let class = class(finding);
        finding.severity == Some(Severity::Unhealthy)
            && class.is_some_and(Class::condemns)
            && (rebooted || class == Some(Class::Support))
    });
    let gpus = bad.filter(|finding| !finding.gpu.is_empty());
    let gpus = gpus.filter_map(|finding| node.gpus.iter().find(|gpu| gpu.uuid == finding.gpu));
    let mut serials: Vec<String> =
        gpus.map(|gpu| gpu.hardware().to_owned()).filter(|serial| !serial.is_empty()).collect();
    serials.sort_unstable();
    serials.dedup();
    serials
}

/// What is wrong with a node, in one sentence.
pub(super) fn ailment(member: &Member<'_>) -> String {
    let Some(node) = member.node else {
        let since = member.instance.sight.nodeless_since;
        let since = since.map(|since| format!(" since {since:.0}")).unwrap_or_default();
        return format!("its node is not known any more{since}, and has not registered again");
    };
    if node.duty == Duty::Active && node.health.state == HealthState::Unknown {
        return format!("it has not been judged since {:.0}", node.health.since);
    }
    if node.liveness == Liveness::Unreachable {
        return format!("unreachable since {:.0}", node.liveness_since);
    }
    let bad = node.findings.iter().any(|finding| finding.severity == Some(Severity::Unhealthy));
    if bad && let Some(finding) = decisive(&node.findings) {
        return says(finding);
    }
    match &node.duty {
        Duty::Cordoned(hold) | Duty::Draining { hold, .. } => hold.reason.clone(),
        Duty::Active | Duty::Terminated(_) => {
            format!("{}: {}", node.health.reason, node.health.message)
        }
    }
}

#[cfg(test)]
mod tests;
