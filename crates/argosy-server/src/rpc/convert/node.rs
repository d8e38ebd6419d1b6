//! Our own messages.

use super::{
    RawGpuSample, cut, few, gpu_index, gpu_sample, metrics, node_time, nth, number, percent,
    seconds, time, word, words,
};
use crate::body::read_json;
use argosy_api::rpc::node as wire;
use argosy_control::Control;
use argosy_control::node::{Heartbeat, NodeConfig};
use argosy_control::pulse::Sample;
use argosy_core::command::{Ack, Command, CommandKind, CommandState, Outcome, RESULT_LEN_MAX};
use argosy_core::field::{Constraint, FieldError};
use argosy_core::health::{
    CheckResult, EVENTS_MAX, Event, EventType, HealthReport, HealthState, METRICS_MAX, System,
};
use argosy_core::id::CommandId;
use argosy_core::label::Labels;
use argosy_core::node::{CHECKS_MAX, GPUS_MAX, Gpu, Machine, NodeStatus, Place, Registration};
use buffa::{EnumValue, MapView};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use std::sync::Arc;

/// What a node says when it registers.
pub(crate) fn registration(
    request: &wire::RegisterNodeRequestView<'_>,
) -> Result<Registration, FieldError> {
    let part = |text: &str, field: &str| word(text, || field.to_owned()).map(Arc::from);
    let text = |text: &str, field: &str| word(text, || field.to_owned()).map(str::to_owned);
    few(request.gpus.len(), GPUS_MAX, || "gpus".to_owned())?;
    let pool = text(request.pool, "pool")?;
    Ok(Registration {
        node_id: request.node_id.to_owned(),
        place: Place {
            provider: part(request.provider, "provider")?,
            region: part(request.region, "region")?,
            zone: part(request.zone, "zone")?,
            instance_type: part(request.instance_type, "instance_type")?,
        },
        machine: Machine {
            hostname: text(request.hostname, "hostname")?,
            internal_ip: text(request.internal_ip, "internal_ip")?,
            external_ip: text(request.external_ip, "external_ip")?,
            kernel_version: text(request.kernel_version, "kernel_version")?,
            boot_id: text(request.boot_id, "boot_id")?,
            machine_id: text(request.machine_id, "machine_id")?,
            agent: text(request.agent_version, "agent_version")?,
        },
        gpus: request.gpus.iter().enumerate().map(gpu).collect::<Result<_, _>>()?,
        labels: words(pairs(&request.labels), Labels::COUNT_MAX, || "labels".to_owned())?,
        pool: (!pool.is_empty()).then_some(pool),
    })
}

fn gpu((at, gpu): (usize, &wire::GpuView<'_>)) -> Result<Gpu, FieldError> {
    let field = |name: &str| format!("gpus[{at}].{name}");
    // Board and VBIOS are on the wire for agents that know them; nothing is decided by them yet.
    word(gpu.board_id, || field("board_id"))?;
    word(gpu.vbios_version, || field("vbios_version"))?;
    Ok(Gpu {
        index: gpu_index(gpu.index.into(), || field("index"))?.into(),
        uuid: word(gpu.uuid, || field("uuid"))?.to_owned(),
        name: word(gpu.name, || field("name"))?.into(),
        pci_bus_id: word(gpu.pci_bus_id, || field("pci_bus_id"))?.to_owned(),
        memory_total: i64::try_from(gpu.memory_total_bytes).unwrap_or(i64::MAX),
        driver_version: word(gpu.driver_version, || field("driver_version"))?.into(),
        cuda_version: word(gpu.cuda_version, || field("cuda_version"))?.into(),
        serial: word(gpu.serial, || field("serial"))?.to_owned(),
    })
}

/// A sign of life.
pub(crate) fn heartbeat(heartbeat: &wire::HeartbeatView<'_>) -> Result<Heartbeat, FieldError> {
    let counts = heartbeat.pending_jobs.is_some() || heartbeat.queue_depth.is_some();
    let sample = match heartbeat.metrics.as_option() {
        Some(metrics) => Some(sample(metrics)?),
        None => counts.then(Sample::default),
    };
    let sample = sample.map(|sample| Sample {
        pending_jobs: heartbeat.pending_jobs,
        queue_depth: heartbeat.queue_depth,
        ..sample
    });
    Ok(Heartbeat { node_time: node_time(&heartbeat.sent_at, || "sent_at".to_owned())?, sample })
}

fn sample(metrics: &wire::NodeMetricsView<'_>) -> Result<Sample, FieldError> {
    few(metrics.gpus.len(), GPUS_MAX, || "metrics.gpus".to_owned())?;
    let gpus = metrics.gpus.iter().enumerate().map(|(at, gpu)| {
        let raw = RawGpuSample {
            index: gpu.index.into(),
            temperature: gpu.temperature_celsius.into(),
            power: gpu.power_watts.into(),
            utilization: gpu.utilization_percent.into(),
            memory_used: gpu.memory_used_bytes,
            ecc_corrected: gpu.ecc_corrected_total,
            ecc_uncorrected: gpu.ecc_uncorrected_total,
        };
        gpu_sample(&raw, "index", || format!("metrics.gpus[{at}]"))
    });
    let percent = |value: f32, field: &str| percent(value.into(), || format!("metrics.{field}"));
    Ok(Sample {
        cpu_percent: percent(metrics.cpu_usage_percent, "cpu_usage_percent")?,
        memory_percent: percent(metrics.memory_usage_percent, "memory_usage_percent")?,
        gpus: gpus.collect::<Result<_, _>>()?,
        pending_jobs: None,
        queue_depth: None,
    })
}

/// How a node feels.
pub(crate) fn report(report: &wire::HealthReportView<'_>) -> Result<HealthReport, FieldError> {
    if report.sequence == 0 {
        let message = "sequence is required: the first report of a node has 1";
        return Err(FieldError::new("sequence", Constraint::Required, message));
    }
    few(report.results.len(), CHECKS_MAX, || "results".to_owned())?;
    few(report.events.len(), EVENTS_MAX, || "events".to_owned())?;
    Ok(HealthReport {
        sequence: Some(report.sequence),
        results: report.results.iter().enumerate().map(result).collect::<Result<_, _>>()?,
        events: report.events.iter().enumerate().map(event).collect::<Result<_, _>>()?,
    })
}

fn result((at, result): (usize, &wire::CheckResultView<'_>)) -> Result<CheckResult, FieldError> {
    let field = |name: &str| format!("results[{at}].{name}");
    let name = word(result.check, || field("check"))?;
    if name.is_empty() {
        let field = field("check");
        let message = format!("{field} is required");
        return Err(FieldError::new(field, Constraint::Required, message));
    }
    node_time(&result.time, || field("time"))?;
    Ok(CheckResult {
        name: name.to_owned(),
        state: nth(&HealthState::ALL, result.status).unwrap_or(HealthState::Unknown),
        message: cut(result.message).to_owned(),
        details: words(pairs(&result.details), METRICS_MAX, || field("details"))?,
    })
}

fn event((at, event): (usize, &wire::HealthEventView<'_>)) -> Result<Event, FieldError> {
    let field = |name: &str| format!("events[{at}].{name}");
    let time = node_time(&event.time, || field("time"))?;
    node_time(&event.first, || field("first"))?;
    let last = node_time(&event.last, || field("last"))?;
    let index = event.gpu_index.map(|index| gpu_index(index.into(), || field("gpu_index")));
    Ok(Event {
        node_time: last.or(time),
        gpu_index: index.transpose()?.map_or(-1, i32::from),
        gpu_uuid: word(event.gpu_uuid, || field("gpu_uuid"))?.to_owned(),
        gpu_serial: word(event.gpu_serial, || field("gpu_serial"))?.to_owned(),
        system: nth(System::ALL, event.system).unwrap_or(System::Unknown),
        event_type: nth(EventType::ALL, event.r#type).unwrap_or(EventType::Unknown),
        metrics: metrics(pairs(&event.metrics), || field("metrics"))?,
        message: cut(event.message).to_owned(),
        raw: cut(event.raw).to_owned(),
        recovery_action: event.recovery_action,
        count: event.count.max(1),
    })
}

/// Which command an acknowledgement is about, and what it says.
pub(crate) fn ack(ack: &wire::CommandAckView<'_>) -> Result<(CommandId, Ack), FieldError> {
    let complain = |field: &str, constraint, what: &str| {
        FieldError::new(field, constraint, format!("{field} {what}"))
    };
    let id = CommandId::parse(ack.command_id)
        .ok_or_else(|| complain("command_id", Constraint::Format, "is not the id of a command"))?;
    let progress = u8::try_from(ack.progress_percent).ok().filter(|percent| *percent <= 100);
    let Some(progress) = progress else {
        return Err(complain("progress_percent", Constraint::Max, "is more than 100"));
    };
    let ack = Ack {
        outcome: outcome(ack)?,
        progress: (progress != 0).then_some(progress),
        message: cut(ack.message).to_owned(),
        result: (!ack.result_json.is_empty()).then(|| document(ack.result_json)).transpose()?,
    };
    Ok((id, ack))
}

/// How a command ended; `None` while it has not.
fn outcome(ack: &wire::CommandAckView<'_>) -> Result<Option<Outcome>, FieldError> {
    use wire::{CommandState as State, DrainOutcome as Drain};
    let said = ack.outcome.as_known().unwrap_or(Drain::DRAIN_OUTCOME_UNSPECIFIED);
    match ack.state.as_known() {
        Some(State::COMMAND_STATE_ACKNOWLEDGED | State::COMMAND_STATE_RUNNING) => Ok(None),
        Some(State::COMMAND_STATE_COMPLETED) => Ok(Some(match said {
            Drain::DRAIN_OUTCOME_UNSPECIFIED => Outcome::Completed,
            Drain::DRAIN_OUTCOME_DRAINED => Outcome::Drained,
            Drain::DRAIN_OUTCOME_FORCED => Outcome::Forced,
            Drain::DRAIN_OUTCOME_TIMED_OUT => Outcome::TimedOut,
            Drain::DRAIN_OUTCOME_CANCELLED => Outcome::Cancelled,
        })),
        Some(State::COMMAND_STATE_FAILED) => Ok(Some(match said {
            Drain::DRAIN_OUTCOME_TIMED_OUT => Outcome::TimedOut,
            Drain::DRAIN_OUTCOME_CANCELLED => Outcome::Cancelled,
            Drain::DRAIN_OUTCOME_UNSPECIFIED
            | Drain::DRAIN_OUTCOME_DRAINED
            | Drain::DRAIN_OUTCOME_FORCED => Outcome::Failed,
        })),
        Some(
            State::COMMAND_STATE_UNSPECIFIED
            | State::COMMAND_STATE_EXPIRED
            | State::COMMAND_STATE_CANCELLED,
        )
        | None => {
            let message = "state is required: ACKNOWLEDGED, RUNNING, COMPLETED or FAILED";
            Err(FieldError::new("state", Constraint::Enum, message))
        }
    }
}

fn document(text: &str) -> Result<Value, FieldError> {
    let complain = |constraint, what: String| {
        Err(FieldError::new("result_json", constraint, format!("result_json {what}")))
    };
    if RESULT_LEN_MAX < text.len() {
        let what = format!("is {} bytes long; at most {RESULT_LEN_MAX} are allowed", text.len());
        return complain(Constraint::MaxLength, what);
    }
    read_json(text.as_bytes())
        .or_else(|error| complain(Constraint::Format, format!("cannot be read: {error}")))
}

fn pairs<'a>(
    map: &'a MapView<'_, &'a str, &'a str>,
) -> impl ExactSizeIterator<Item = (&'a str, &'a str)> {
    map.iter().map(|(key, value)| (*key, *value))
}

/// How a node is to behave.
pub(crate) fn config(config: &NodeConfig) -> wire::NodeConfig {
    wire::NodeConfig {
        revision: config.revision,
        heartbeat_interval_seconds: seconds(config.heartbeat_every),
        health_check_interval_seconds: seconds(config.health_every),
        enabled_health_checks: config.checks.clone(),
    }
}

/// The one word.
pub(crate) fn status(status: NodeStatus) -> EnumValue<wire::NodeStatus> {
    EnumValue::from(number(&NodeStatus::ALL, &status))
}

/// Whether a node is well.
pub(crate) fn health(health: HealthState) -> EnumValue<wire::HealthStatus> {
    EnumValue::from(number(&HealthState::ALL, &health))
}

/// What a node is told by, beside the command itself.
#[derive(Clone, Copy)]
pub(crate) struct Telling {
    /// By how much its clock is ahead of ours.
    pub(crate) off: SignedDuration,
    /// For how long nothing may use a GPU before a drain is over.
    pub(crate) quiet: SignedDuration,
    /// The time, by our clock.
    pub(crate) now: Timestamp,
}

impl Telling {
    /// What holds for a node now.
    pub(crate) fn to(control: &Control, node: &str) -> Self {
        let (nodes, now) = (&control.nodes, control.clock.now());
        Self { off: nodes.clock_off(node), quiet: nodes.drain_quiet(node), now }
    }
}

/// What a node is to do. Until when is said as the node's own clock will have it, which is `off` ahead of ours:
/// otherwise a machine whose clock is an hour ahead refuses everything as expired.
pub(crate) fn command(command: &Command, told: Telling) -> wire::Command {
    let Telling { off, quiet, now } = told;
    let left = |at: Timestamp| seconds_up(at.duration_since(now));
    let time = |at: Timestamp| time(at.saturating_add(off).unwrap_or(at));
    wire::Command {
        id: command.id.to_string(),
        r#type: EnumValue::from(1 + number(&CommandKind::ALL, &command.kind)),
        parameters: command.parameters.clone().into_iter().collect(),
        issued_at: Some(time(command.issued_at)).into(),
        expires_at: Some(time(command.expires_at)).into(),
        deadline: command.deadline.map(time).into(),
        reason: command.reason.clone(),
        expires_in_seconds: Some(left(command.expires_at)),
        deadline_in_seconds: command.deadline.map(left),
        quiet_seconds: match command.kind {
            CommandKind::Drain => seconds_up(quiet),
            CommandKind::Cordon
            | CommandKind::RunDiagnostic
            | CommandKind::Terminate
            | CommandKind::Uncordon => 0,
        },
    }
}

/// Whole seconds, rounded up; none for what is over.
fn seconds_up(span: SignedDuration) -> u32 {
    let whole = span.as_secs().saturating_add(i64::from(0 < span.subsec_nanos()));
    u32::try_from(whole.max(0)).unwrap_or(u32::MAX)
}

/// How far a command is.
pub(crate) fn state(command: &Command) -> wire::AckCommandResponse {
    use wire::CommandState as State;
    let state = match &command.state {
        CommandState::Pending => State::COMMAND_STATE_UNSPECIFIED,
        CommandState::Acknowledged { progress: None, .. } => State::COMMAND_STATE_ACKNOWLEDGED,
        CommandState::Acknowledged { progress: Some(_), .. } => State::COMMAND_STATE_RUNNING,
        CommandState::Done { outcome, .. } => match outcome {
            Outcome::Completed | Outcome::Drained | Outcome::Forced => {
                State::COMMAND_STATE_COMPLETED
            }
            Outcome::TimedOut | Outcome::Failed => State::COMMAND_STATE_FAILED,
            Outcome::Expired => State::COMMAND_STATE_EXPIRED,
            Outcome::Cancelled => State::COMMAND_STATE_CANCELLED,
        },
    };
    wire::AckCommandResponse { command_id: command.id.to_string(), state: state.into() }
}
