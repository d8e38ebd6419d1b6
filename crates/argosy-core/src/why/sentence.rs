//! The one sentence, and what a person can do.

use crate::command::{Command, CommandKind};
use crate::health::{Ends, Finding, HealthState, NO_REPORT, Severity, decisive};
use crate::node::{Duty, Flag, Held, Hold, Liveness, Node};
use jiff::Timestamp;
use std::collections::BTreeSet;

/// Why the node is as it is, in one sentence.
pub(super) fn summary(node: &Node, commands: &[&Command], now: Timestamp) -> String {
    let (id, word) = (&node.id, node.status().as_str());
    let why = match &node.duty {
        Duty::Active if node.is_bad() => {
            format!(" because {}{}", cause(node, now), remedy(node, commands, now))
        }
        Duty::Active => active(node, now),
        Duty::Cordoned(hold) => format!(" because {}{}", taken_out(hold), return_of(node, now)),
        Duty::Draining { hold, deadline, done, .. } => {
            let left = node.external.left.as_ref().filter(|_| *done && !node.is_emptied());
            let until = if let Some(left) = left {
                format!("; the drain ended at its deadline with work left: {}", left.what)
            } else if *done {
                "; the drain has ended".to_owned()
            } else {
                format!("; what runs there has until {} to end", time(*deadline))
            };
            format!(" because {}{until}{}", taken_out(hold), return_of(node, now))
        }
        Duty::Terminated(hold) => format!(" because {}", taken_out(hold)),
    };
    format!("{id} is {word}{why}")
}

/// An active node that is not bad: what there is to say about it all the same.
fn active(node: &Node, now: Timestamp) -> String {
    let quiet = match node.liveness {
        Liveness::Fresh => String::new(),
        Liveness::Suspect | Liveness::Unreachable => {
            format!(
                "; it should have been heard by now, and was not since {}",
                ago(node.liveness_since, now)
            )
        }
    };
    let health = match (node.health.state, decisive(&node.findings)) {
        (HealthState::Unknown, _) if node.health.reason == NO_REPORT => {
            let registered = ago(node.registered_at, now);
            format!(
                ": nothing speaks against it; it registered {registered} and has not reported its health yet"
            )
        }
        (HealthState::Unknown, Some(finding)) => format!(
            ", but nobody can say whether it is well: {}; nothing is done by itself on that ground",
            finding.message
        ),
        (HealthState::Degraded, Some(finding)) => format!(", with a warning: {}", says(finding)),
        (_, _) => ": nothing speaks against it".to_owned(),
    };
    format!("{health}{quiet}{}", held(node, now))
}

/// What is wrong with a bad node.
fn cause(node: &Node, now: Timestamp) -> String {
    let sick = node.health.state == HealthState::Unhealthy;
    let lost = node.liveness == Liveness::Unreachable;
    let silence = || format!("it is unreachable since {}", ago(node.liveness_since, now));
    let illness = || {
        let worst = decisive(&node.findings);
        worst.map_or_else(|| node.health.message.clone(), says)
    };
    match (sick, lost) {
        (true, true) => format!("{}, and {}", illness(), silence()),
        (true, false) => illness(),
        (false, _) => silence(),
    }
}

/// `rule fatal-xid of policy default version 3 found: GPU has fallen off the bus (GPU-1b2c)`.
pub(crate) fn says(finding: &Finding) -> String {
    let Finding { rule, policy, policy_version, message, gpu, .. } = finding;
    let place = if gpu.is_empty() { String::new() } else { format!(" ({gpu})") };
    match finding.severity {
        Some(_) if policy.is_empty() => format!("check {rule} says: {message}{place}"),
        Some(_) => format!(
            "rule {rule} of policy {policy} version {policy_version} found: {message}{place}"
        ),
        None => format!("{message}{place}"),
    }
}

/// What we do about a bad node that is still in service.
fn remedy(node: &Node, commands: &[&Command], now: Timestamp) -> String {
    let on_its_way = commands.iter().find(|command| {
        command.automatic && command.kind == CommandKind::Cordon && !command.state.is_done()
    });
    match on_its_way {
        Some(command) => {
            format!("; a CORDON is on its way to it since {}", ago(command.issued_at, now))
        }
        None => held(node, now),
    }
}

/// What would be done, and what holds it.
fn held(node: &Node, now: Timestamp) -> String {
    let Some(Held { action, guard, reason, since }) = &node.held else { return String::new() };
    let done = match action.as_str() {
        "cordon" => "cordoned",
        "uncordon" => "put back into service",
        "drain" => "drained",
        other => other,
    };
    let why = match guard.as_str() {
        "breaker" => "the breaker is open",
        "budget" => "the budget is used up",
        "rate" => "it is too soon after the last one",
        "pause" => "automatic action is paused",
        "amnesty" => "nodes are still coming back after our own start",
        "isolation" => "so much of the fleet is silent that the silence may be ours",
        "policy" => "a rule of its policy failed",
        // When it goes back is said already.
        "hold-down" => return String::new(),
        other => other,
    };
    format!("; it would be {done}, but {why} since {}: {reason}", ago(*since, now))
}

fn taken_out(hold: &Hold) -> String {
    let Hold { by, automatic, reason, .. } = hold;
    match (automatic, reason.is_empty()) {
        (true, false) => reason.clone(),
        (true, true) => "it was taken out of service by itself".to_owned(),
        (false, false) => format!("{by} said so: {reason}"),
        (false, true) => format!("{by} said so"),
    }
}

/// Whether and when a node that we took out of service goes back by itself.
fn return_of(node: &Node, now: Timestamp) -> String {
    if !node.in_disruption() || !node.is_well() {
        return held(node, now);
    }
    let since =
        node.flaps.recovered_at.map_or(String::new(), |at| format!(" since {}", ago(at, now)));
    let when = match node.flaps.hold_until {
        Some(until) if now < until => format!("at {}", time(until)),
        Some(_) | None => "soon".to_owned(),
    };
    let relapses = match node.flaps.count {
        0 => String::new(),
        1 => ", later than the first time because it fell ill again before".to_owned(),
        count => format!(", later each time because it fell ill again {count} times before"),
    };
    format!(
        "; it is well again{since} and goes back into service {when}{relapses}{}",
        held(node, now)
    )
}

/// What a person can do now.
pub(super) fn next(node: &Node) -> Vec<String> {
    let id = &node.id;
    if matches!(node.duty, Duty::Terminated(_)) {
        return vec![format!(
            "to use the machine again, forget the node (`argosy node forget {id}`) and register it anew"
        )];
    }
    let mut next: Vec<String> = node.findings.iter().map(|finding| end_of(finding, node)).collect();
    if node.liveness == Liveness::Unreachable {
        next.push(format!(
            "look at the machine: its power, its network, its agent. When it is heard again, that is \
             over; if it is gone for good, forget it (`argosy node forget {id}`)"
        ));
    }
    next.extend(node.held.as_ref().and_then(release));
    next.extend(node.flags.iter().map(|(flag, note)| advice(*flag, &note.message)));
    match &node.duty {
        Duty::Active if node.is_bad() => {
            next.push(format!("`argosy node cordon {id}` takes it out of service now"));
        }
        Duty::Active | Duty::Terminated(_) => {}
        Duty::Cordoned(hold) if hold.automatic && node.is_bad() => next.push(format!(
            "if you know better, `argosy node uncordon {id}` puts it back and ends what events found"
        )),
        Duty::Cordoned(_) => {
            next.push(format!("`argosy node uncordon {id}` puts it back into service now"));
        }
        Duty::Draining { .. } => next.push(format!(
            "`argosy node uncordon {id}` cancels the drain and puts it back into service"
        )),
    }
    // Several findings may have one way out.
    let mut seen = BTreeSet::new();
    next.retain(|advice| seen.insert(advice.clone()));
    next
}

fn end_of(finding: &Finding, node: &Node) -> String {
    let Finding { key, rule, policy, severity, ends, .. } = finding;
    if severity.is_none() {
        return format!(
            "correct rule {rule} of policy {policy} (`argosy policy check`, then `argosy policy apply`)"
        );
    }
    match ends {
        Ends::WhenCheckPasses => format!("make the check {rule} pass: {key} ends when it does"),
        Ends::At(end) => format!("wait: {key} ends at {} if nothing like it happens", time(*end)),
        Ends::AtReboot => format!(
            "repair or reboot the node, or run `argosy node diagnose {}`: {key} ends at its next boot or \
             when a diagnostic passes",
            node.id
        ),
    }
}

fn release(held: &Held) -> Option<String> {
    let advice = match held.guard.as_str() {
        "breaker" => {
            "find out why so many turned bad at once; then close the breaker by hand, or wait until it \
             has been calm for a while"
        }
        "pause" => "take the pause back when it is safe to act again",
        "budget" => {
            "put nodes that are well again back into service: that makes room in the budget"
        }
        // The others pass by themselves.
        _ => return None,
    };
    Some(advice.to_owned())
}

fn advice(flag: Flag, message: &str) -> String {
    let what = match flag {
        Flag::ClockSkewed => "set its clock",
        Flag::IdentityConflict => "find out which machine is the real one",
        Flag::CommandChannelDown => "look at why it does not fetch its commands",
        Flag::CommandFailed => "look at why its machine cannot do what it was told",
        Flag::Noisy => "look at what floods it with events",
        Flag::ExternalFailed => "look at why the workload system cannot be told",
        Flag::ExternalDiffers => "look at what was changed in the workload system",
    };
    format!("{what}: {message}")
}

/// To the second, in UTC.
pub(super) fn time(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// `2025-10-28T12:00:00Z (5 min ago)`.
fn ago(at: Timestamp, now: Timestamp) -> String {
    let seconds = now.duration_since(at).as_secs().max(0);
    let passed = match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        7200..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} days", seconds / 86_400),
    };
    format!("{} ({passed} ago)", time(at))
}

/// How bad, as a rule says it.
pub(super) fn severity_word(severity: Severity) -> &'static str {
    match severity {
        Severity::Healthy => "healthy",
        Severity::Degraded => "degraded",
        Severity::Unhealthy => "unhealthy",
    }
}
