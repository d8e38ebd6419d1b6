//! Nodes and what is wrong with them, to the wire.

use super::fleet::memory_percent;
use argosy_api::node as api;
use argosy_api::route::OWN;
use argosy_control::Stored;
use argosy_control::pulse::{GpuMoment, GpuSample, GpuTrack, HistoryPoint, Live};
use argosy_core::external::{AGENT, External, Party, Told};
use argosy_core::health::{Check, Ends, Finding, HealthState, Severity};
use argosy_core::node::{Duty, Gpu, Liveness, Node, NodeStatus};
use argosy_core::why::Why;
use jiff::{SignedDuration, Timestamp};
use std::time::Duration;

/// A node as it stands on the wire, with what is known of it beyond its document.
pub(crate) fn wire(stored: &Stored<Node>, live: &Live) -> api::Node {
    let node = &*stored.value;
    let (place, machine) = (&node.place, &node.machine);
    let time = |at: Option<Timestamp>| at.map(|at| at.to_string());
    api::Node {
        id: node.id.to_string(),
        kind: "Node".to_owned(),
        href: href(node.id.as_str()),
        tenant: node.tenant.clone(),
        pool: node.pool.clone(),
        provider: place.provider.to_string(),
        region: place.region.to_string(),
        zone: place.zone.to_string(),
        instance_type: place.instance_type.to_string(),
        status: status(node.status()),
        health_status: health(node.health.state),
        health: api::NodeHealth {
            status: health(node.health.state),
            since: node.health.since.to_string(),
            reason: node.health.reason.clone(),
            message: node.health.message.clone(),
        },
        liveness: liveness(node.liveness),
        liveness_since: node.liveness_since.to_string(),
        duty: duty(&node.duty),
        flags: node
            .flags
            .iter()
            .map(|(flag, note)| api::NodeFlag {
                kind: flag.as_str().to_owned(),
                since: note.since.to_string(),
                message: note.message.clone(),
            })
            .collect(),
        hostname: machine.hostname.clone(),
        internal_ip: machine.internal_ip.clone(),
        external_ip: machine.external_ip.clone(),
        kernel_version: machine.kernel_version.clone(),
        boot_id: machine.boot_id.clone(),
        machine_id: machine.machine_id.clone(),
        agent: machine.agent.clone(),
        gpus: node.gpus.iter().map(|known| gpu(known, live)).collect(),
        metrics: live.sample.as_ref().map(|sample| api::NodeMetrics {
            cpu_percent: sample.cpu_percent,
            memory_percent: sample.memory_percent,
            pending_jobs: sample.pending_jobs,
            queue_depth: sample.queue_depth,
        }),
        labels: node.labels.iter().map(|(key, value)| (key.into(), value.into())).collect(),
        registered_at: node.registered_at.to_string(),
        joined_at: node.joined_at.to_string(),
        last_heartbeat: time(live.heard_at),
        last_report: time(live.reported_at),
        last_poll: time(live.polled_at),
        attached: live.attached,
        checks: node.checks.iter().map(|(name, known)| check(name, known)).collect(),
        findings: node.findings.iter().map(|known| finding(node, known)).collect(),
        flaps: (node.flaps.count != 0 || node.flaps.hold_until.is_some()).then(|| api::Flaps {
            count: node.flaps.count,
            recovered_at: time(node.flaps.recovered_at),
            hold_until: time(node.flaps.hold_until),
        }),
        held: node.held.as_ref().map(|held| api::HeldAction {
            action: held.action.clone(),
            guard: held.guard.clone(),
            reason: held.reason.clone(),
            since: held.since.to_string(),
        }),
        external: external(&node.external),
        revision: stored.revision.0,
    }
}

/// What workload systems were told. The node's agent is among the parties, and is none of them.
fn external(external: &External) -> api::ExternalState {
    let time = |at: Option<Timestamp>| at.map(|at| at.to_string());
    let systems = || external.parties.iter().filter(|(key, _)| *key != AGENT);
    let state = |party: &Party| party.told.as_ref().map(|told| told.state);
    let rank = |told: Option<Told>| match told {
        None | Some(Told::Uncordon) => 0,
        Some(Told::Cordon) => 1,
        Some(Told::Drain) => 2,
    };
    let told = systems().map(|(_, party)| state(party)).min_by_key(|told| rank(*told)).flatten();
    api::ExternalState {
        told: word(told.unwrap_or_default()).to_owned(),
        failures: systems().map(|(_, party)| party.failures).max().unwrap_or(0),
        retry_at: time(systems().filter_map(|(_, party)| party.retry_at).min()),
        systems: systems()
            .map(|(key, party)| api::ExternalSystem {
                system: key.clone(),
                told: state(party).map(|told| word(told).to_owned()),
                told_at: time(party.told_at),
                node_name: party.name.clone(),
                seen: party.seen.as_ref().map(|seen| format!("{:?}", seen.out)),
                seen_since: time(party.seen.as_ref().map(|seen| seen.at)),
                seen_note: party.seen.as_ref().map(|seen| seen.note.clone()).unwrap_or_default(),
                work: party.work.as_ref().map(|work| work.message.clone()).unwrap_or_default(),
                failures: party.failures,
                failure: party.failure.clone(),
                retry_at: time(party.retry_at),
            })
            .collect(),
        work_left: external.left.as_ref().map(|left| left.what.clone()),
    }
}

fn word(told: Told) -> &'static str {
    match told {
        Told::Uncordon => "Uncordon",
        Told::Cordon => "Cordon",
        Told::Drain => "Drain",
    }
}

/// The path of a node.
pub(crate) fn href(id: &str) -> String {
    format!("{OWN}/nodes/{id}")
}

pub(crate) const fn status(status: NodeStatus) -> api::NodeStatus {
    match status {
        NodeStatus::Unknown => api::NodeStatus::Unknown,
        NodeStatus::Active => api::NodeStatus::Active,
        NodeStatus::Cordoned => api::NodeStatus::Cordoned,
        NodeStatus::Draining => api::NodeStatus::Draining,
        NodeStatus::Unhealthy => api::NodeStatus::Unhealthy,
        NodeStatus::Terminated => api::NodeStatus::Terminated,
    }
}

pub(super) const fn health(state: HealthState) -> api::HealthStatus {
    match state {
        HealthState::Unknown => api::HealthStatus::Unknown,
        HealthState::Healthy => api::HealthStatus::Healthy,
        HealthState::Degraded => api::HealthStatus::Degraded,
        HealthState::Unhealthy => api::HealthStatus::Unhealthy,
    }
}

pub(super) const fn liveness(liveness: Liveness) -> api::Liveness {
    match liveness {
        Liveness::Fresh => api::Liveness::Fresh,
        Liveness::Suspect => api::Liveness::Suspect,
        Liveness::Unreachable => api::Liveness::Unreachable,
    }
}

pub(crate) const fn severity(severity: Severity) -> api::Severity {
    match severity {
        Severity::Healthy => api::Severity::Healthy,
        Severity::Degraded => api::Severity::Degraded,
        Severity::Unhealthy => api::Severity::Unhealthy,
    }
}

fn duty(duty: &Duty) -> api::Duty {
    let state = match duty {
        Duty::Active => api::DutyState::Active,
        Duty::Cordoned(_) => api::DutyState::Cordoned,
        Duty::Draining { .. } => api::DutyState::Draining,
        Duty::Terminated(_) => api::DutyState::Terminated,
    };
    let (command_id, deadline, drained) = match duty {
        Duty::Draining { command, deadline, done, .. } => {
            (Some(command.to_string()), Some(deadline.to_string()), *done)
        }
        Duty::Active | Duty::Cordoned(_) | Duty::Terminated(_) => (None, None, false),
    };
    let hold = duty.hold();
    api::Duty {
        state,
        by: hold.map(|hold| hold.by.clone()),
        automatic: hold.is_some_and(|hold| hold.automatic),
        reason: hold.map(|hold| hold.reason.clone()),
        since: hold.map(|hold| hold.at.to_string()),
        deadline,
        command_id,
        drained,
    }
}

/// A GPU as it registered, with what it last measured.
fn gpu(gpu: &Gpu, live: &Live) -> api::Gpu {
    let samples = live.sample.iter().flat_map(|sample| &sample.gpus);
    let measured: Option<&GpuSample> =
        samples.into_iter().find(|sample| i32::from(sample.index) == gpu.index);
    api::Gpu {
        index: gpu.index,
        uuid: gpu.uuid.clone(),
        name: gpu.name.to_string(),
        pci_bus_id: gpu.pci_bus_id.clone(),
        memory_total: gpu.memory_total,
        driver_version: gpu.driver_version.to_string(),
        cuda_version: gpu.cuda_version.to_string(),
        serial: gpu.serial.clone(),
        temperature: measured.map(|sample| sample.temperature),
        power: measured.map(|sample| sample.power),
        utilization: measured.map(|sample| sample.utilization),
        memory_used: measured.map(|sample| sample.memory_used),
        ecc_corrected: measured.map(|sample| sample.ecc_corrected),
        ecc_uncorrected: measured.map(|sample| sample.ecc_uncorrected),
    }
}

fn check(name: &str, check: &Check) -> api::HealthCheck {
    api::HealthCheck {
        name: name.to_owned(),
        status: health(check.state),
        message: check.message.clone(),
        since: check.since.to_string(),
        details: check.details.clone(),
    }
}

/// A finding, with the node it is about.
pub(crate) fn finding(node: &Node, finding: &Finding) -> api::Finding {
    let by_rule = !finding.policy.is_empty();
    let (ends, ends_at) = match finding.ends {
        Ends::WhenCheckPasses => (api::FindingEnd::WhenCheckPasses, None),
        Ends::At(at) => (api::FindingEnd::AtTime, Some(at.to_string())),
        Ends::AtReboot => (api::FindingEnd::AtReboot, None),
    };
    api::Finding {
        node_id: node.id.to_string(),
        pool: node.pool.clone(),
        key: finding.key.clone(),
        severity: finding.severity.map(severity),
        rule: finding.rule.clone(),
        policy: by_rule.then(|| finding.policy.clone()),
        policy_version: by_rule.then_some(finding.policy_version),
        message: finding.message.clone(),
        evidence: finding.evidence.clone(),
        gpu: finding.gpu.clone(),
        first_seen: finding.first.to_string(),
        last_seen: finding.last.to_string(),
        count: finding.count,
        ends,
        ends_at,
    }
}

pub(crate) fn why(node: &Node, why: Why) -> api::Why {
    let steps = why.steps.into_iter().map(|step| api::WhyStep {
        at: step.at.to_string(),
        revision: step.revision,
        kind: step.kind,
        message: step.message,
        evidence: step.evidence,
    });
    api::Why {
        kind: "Why".to_owned(),
        node_id: node.id.to_string(),
        status: status(node.status()),
        summary: why.summary,
        steps: steps.collect(),
        next: why.next,
    }
}

/// One moment of a node's recent past. Points are kept on the monotonic clock, people read the other.
pub(crate) fn point(point: HistoryPoint, now: Timestamp, monotonic: Duration) -> api::MetricsPoint {
    let ago_s = monotonic.as_secs().saturating_sub(u64::from(point.at_s));
    let ago = SignedDuration::from_secs(i64::try_from(ago_s).unwrap_or(i64::MAX));
    api::MetricsPoint {
        at: now.saturating_sub(ago).unwrap_or(now).to_string(),
        gpu_percent: point.gpu_percent,
        cpu_percent: point.cpu_percent,
        memory_percent: point.memory_percent,
        temperature: point.temperature,
    }
}

/// What a GPU of a node measured lately.
pub(crate) fn track(node: &Node, track: &GpuTrack) -> api::GpuHistory {
    let total = node.gpus.iter().find(|gpu| usize::try_from(gpu.index) == Ok(track.index));
    let total = total.map_or(0, |gpu| gpu.memory_total);
    fn each<T>(of: &GpuTrack, take: impl Fn(&GpuMoment) -> Option<T>) -> Vec<Option<T>> {
        of.moments.iter().map(|moment| moment.as_ref().and_then(&take)).collect()
    }
    api::GpuHistory {
        index: track.index,
        temperature: each(track, |it| Some(it.temperature)),
        power: each(track, |it| Some(it.power)),
        utilization: each(track, |it| Some(it.utilization)),
        memory_percent: each(track, |it| memory_percent(it.memory_used, total)),
        ecc_corrected: each(track, |it| it.ecc.map(|(corrected, _)| corrected)),
        ecc_uncorrected: each(track, |it| it.ecc.map(|(_, uncorrected)| uncorrected)),
    }
}

#[cfg(test)]
mod tests;
