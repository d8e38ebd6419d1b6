//! Navarch's messages.

use super::{
    RawGpuSample, cut, few, gpu_sample, metrics, node_time, nth, number, percent, seconds, time,
    word, words,
};
use argosy_api::rpc;
use argosy_api::rpc::navarch as wire;
use argosy_control::node::{Heartbeat, NodeConfig};
use argosy_control::pulse::Sample;
use argosy_core::command::{Command, CommandKind, PARAMETERS_MAX};
use argosy_core::field::{Constraint, FieldError};
use argosy_core::health::{
    CheckResult, EVENTS_MAX, Event, EventType, HealthReport, HealthState, METRICS_MAX, System,
};
use argosy_core::instance::{Instance, State};
use argosy_core::label::Labels;
use argosy_core::node::{
    CHECKS_MAX, GPUS_MAX, Gpu, Machine, Node, NodeId, NodeStatus, Place, Registration,
};
use buffa::{EnumValue, MapView, MessageFieldView, RepeatedView};
use jiff::Timestamp;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a daemon of Navarch is called among agents: it does not say its version.
const AGENT: &str = "navarch";

/// What a node says when it registers.
pub(crate) fn registration(
    request: &wire::RegisterNodeRequestView<'_>,
) -> Result<Registration, FieldError> {
    let part = |text: &str, field: &str| word(text, || field.to_owned()).map(Arc::from);
    let metadata = &*request.metadata;
    let text =
        |text: &str, field: &str| word(text, || format!("metadata.{field}")).map(str::to_owned);
    few(request.gpus.len(), GPUS_MAX, || "gpus".to_owned())?;
    Ok(Registration {
        node_id: request.node_id.to_owned(),
        place: Place {
            provider: part(request.provider, "provider")?,
            region: part(request.region, "region")?,
            zone: part(request.zone, "zone")?,
            instance_type: part(request.instance_type, "instance_type")?,
        },
        machine: Machine {
            hostname: text(metadata.hostname, "hostname")?,
            internal_ip: text(metadata.internal_ip, "internal_ip")?,
            external_ip: text(metadata.external_ip, "external_ip")?,
            kernel_version: text(metadata.kernel_version, "kernel_version")?,
            agent: AGENT.to_owned(),
            ..Machine::default()
        },
        gpus: request.gpus.iter().enumerate().map(gpu).collect::<Result<_, _>>()?,
        labels: words(pairs(&metadata.labels), Labels::COUNT_MAX, || "metadata.labels".to_owned())?,
        pool: None,
    })
}

fn gpu((at, gpu): (usize, &wire::GPUInfoView<'_>)) -> Result<Gpu, FieldError> {
    let field = |name: &str| format!("gpus[{at}].{name}");
    Ok(Gpu {
        index: gpu.index,
        uuid: word(gpu.uuid, || field("uuid"))?.to_owned(),
        name: word(gpu.name, || field("name"))?.into(),
        pci_bus_id: word(gpu.pci_bus_id, || field("pci_bus_id"))?.to_owned(),
        memory_total: gpu.memory_total.max(0),
        driver_version: word(gpu.driver_version, || field("driver_version"))?.into(),
        cuda_version: word(gpu.cuda_version, || field("cuda_version"))?.into(),
        serial: String::new(),
    })
}

/// A sign of life.
pub(crate) fn heartbeat(request: &wire::HeartbeatRequestView<'_>) -> Result<Heartbeat, FieldError> {
    let sample = request.metrics.as_option().map(sample).transpose()?;
    Ok(Heartbeat { node_time: node_time(&request.timestamp, || "timestamp".to_owned())?, sample })
}

fn sample(metrics: &wire::NodeMetricsView<'_>) -> Result<Sample, FieldError> {
    few(metrics.gpu_metrics.len(), GPUS_MAX, || "metrics.gpu_metrics".to_owned())?;
    let gpus = metrics.gpu_metrics.iter().enumerate().map(|(at, gpu)| {
        let raw = RawGpuSample {
            index: gpu.gpu_index.into(),
            temperature: Some(gpu.temperature.into()),
            power: Some(gpu.power_usage.into()),
            utilization: Some(gpu.utilization_percent),
            memory_used: u64::try_from(gpu.memory_used).ok(),
            // That wire has no place for them.
            ecc_corrected: None,
            ecc_uncorrected: None,
        };
        gpu_sample(&raw, "gpu_index", || format!("metrics.gpu_metrics[{at}]"))
    });
    Ok(Sample {
        cpu_percent: percent(Some(metrics.cpu_usage_percent), || {
            "metrics.cpu_usage_percent".to_owned()
        })?,
        memory_percent: percent(Some(metrics.memory_usage_percent), || {
            "metrics.memory_usage_percent".to_owned()
        })?,
        gpus: gpus.collect::<Result<_, _>>()?,
        pending_jobs: None,
        queue_depth: None,
    })
}

/// How a node feels.
pub(crate) fn report(
    request: &wire::ReportHealthRequestView<'_>,
) -> Result<HealthReport, FieldError> {
    few(request.results.len(), CHECKS_MAX, || "results".to_owned())?;
    few(request.events.len(), EVENTS_MAX, || "events".to_owned())?;
    Ok(HealthReport {
        sequence: None,
        results: request.results.iter().enumerate().map(result).collect::<Result<_, _>>()?,
        events: request.events.iter().enumerate().map(event).collect::<Result<_, _>>()?,
        conditions: Vec::new(),
        // Navarch's daemon sends every check it has, whatever it was told.
        told: None,
    })
}

fn result(
    (at, result): (usize, &wire::HealthCheckResultView<'_>),
) -> Result<CheckResult, FieldError> {
    let field = |name: &str| format!("results[{at}].{name}");
    let name = word(result.check_name, || field("check_name"))?;
    if name.is_empty() {
        let field = field("check_name");
        let message = format!("{field} is required");
        return Err(FieldError::new(field, Constraint::Required, message));
    }
    node_time(&result.timestamp, || field("timestamp"))?;
    Ok(CheckResult {
        name: name.to_owned(),
        state: nth(&HealthState::ALL, result.status).unwrap_or(HealthState::Unknown),
        message: cut(result.message).to_owned(),
        details: words(pairs(&result.details), METRICS_MAX, || field("details"))?,
    })
}

fn event((at, event): (usize, &wire::HealthEventView<'_>)) -> Result<Event, FieldError> {
    let field = |name: &str| format!("events[{at}].{name}");
    if event.gpu_index < -1 {
        let field = field("gpu_index");
        let message = format!("{field} is {}; -1 means the whole node", event.gpu_index);
        return Err(FieldError::new(field, Constraint::Min, message));
    }
    Ok(Event {
        node_time: node_time(&event.timestamp, || field("timestamp"))?,
        gpu_index: event.gpu_index,
        gpu_uuid: word(event.gpu_uuid, || field("gpu_uuid"))?.to_owned(),
        gpu_serial: String::new(),
        system: nth(System::ALL, event.system).unwrap_or(System::Unknown),
        event_type: nth(EventType::ALL, event.event_type).unwrap_or(EventType::Unknown),
        metrics: metrics(pairs(&event.metrics), || field("metrics"))?,
        message: cut(event.message).to_owned(),
        raw: String::new(),
        recovery_action: None,
        count: 1,
        boot_id: String::new(),
        condition: String::new(),
    })
}

fn pairs<'a>(
    map: &'a MapView<'_, &'a str, &'a str>,
) -> impl ExactSizeIterator<Item = (&'a str, &'a str)> {
    map.iter().map(|(key, value)| (*key, *value))
}

/// What kind of command is asked for.
pub(crate) fn kind(kind: EnumValue<wire::NodeCommandType>) -> Result<CommandKind, FieldError> {
    let complain = |constraint, message| Err(FieldError::new("command_type", constraint, message));
    let asked = kind.to_i32();
    if asked == 0 {
        return complain(Constraint::Required, "command_type is required".to_owned());
    }
    let known = usize::try_from(asked - 1).ok().and_then(|at| CommandKind::ALL.get(at));
    known.copied().map_or_else(
        || {
            let known = CommandKind::ALL.map(CommandKind::as_str).join(", ");
            let message = format!("command_type {asked} is unknown; known are {known}");
            complain(Constraint::Enum, message)
        },
        Ok,
    )
}

/// How a command is to be carried out.
pub(crate) fn parameters(
    request: &wire::IssueCommandRequestView<'_>,
) -> Result<BTreeMap<String, String>, FieldError> {
    words(pairs(&request.parameters), PARAMETERS_MAX, || "parameters".to_owned())
}

/// How a node is to behave.
pub(crate) fn config(config: &NodeConfig) -> wire::NodeConfig {
    let interval = |interval| i32::try_from(seconds(interval)).unwrap_or(i32::MAX);
    wire::NodeConfig {
        health_check_interval_seconds: interval(config.health_every),
        heartbeat_interval_seconds: interval(config.heartbeat_every),
        enabled_health_checks: config.checks.clone(),
    }
}

/// The one word.
pub(crate) fn status(status: NodeStatus) -> EnumValue<wire::NodeStatus> {
    EnumValue::from(number(&NodeStatus::ALL, &status))
}

/// What a node is to do.
pub(crate) fn command(command: &Command) -> wire::NodeCommand {
    let mut parameters = command.parameters.clone();
    if !command.reason.is_empty() {
        parameters.entry("reason".to_owned()).or_insert_with(|| command.reason.clone());
    }
    wire::NodeCommand {
        command_id: command.id.to_string(),
        r#type: EnumValue::from(1 + number(&CommandKind::ALL, &command.kind)),
        parameters: parameters.into_iter().collect(),
        issued_at: Some(time(command.issued_at)).into(),
    }
}

/// One of our times, in an answer.
pub(crate) fn stamp(at: Timestamp) -> rpc::Timestamp {
    time(at)
}

/// A node, without a copy of anything.
pub(crate) fn node(node: &Node, heard_at: Option<Timestamp>) -> wire::NodeInfoView<'_> {
    let machine = &node.machine;
    let metadata = wire::NodeMetadataView {
        hostname: &machine.hostname,
        internal_ip: &machine.internal_ip,
        external_ip: &machine.external_ip,
        kernel_version: &machine.kernel_version,
        labels: node.labels.iter().collect(),
    };
    wire::NodeInfoView {
        node_id: node.id.as_str(),
        provider: &node.place.provider,
        region: &node.place.region,
        zone: &node.place.zone,
        instance_type: &node.place.instance_type,
        status: status(node.status()),
        health_status: EnumValue::from(number(&HealthState::ALL, &node.health.state)),
        last_heartbeat: moment(heard_at),
        gpus: RepeatedView::new(node.gpus.iter().map(gpu_info).collect()),
        metadata: metadata.into(),
    }
}

/// A time that may not be known, without a copy of anything.
fn moment<'a>(at: Option<Timestamp>) -> MessageFieldView<rpc::TimestampView<'a>> {
    let at = at.map(|at| rpc::TimestampView {
        seconds: at.as_second(),
        nanos: at.subsec_nanosecond(),
        ..Default::default()
    });
    at.map_or_else(MessageFieldView::unset, MessageFieldView::some)
}

/// What an instance is doing.
pub(crate) fn instance_state(state: &State) -> EnumValue<wire::InstanceState> {
    EnumValue::from(match state {
        State::Provisioning(_) => wire::InstanceState::INSTANCE_STATE_PROVISIONING,
        State::AwaitingNode { .. } => wire::InstanceState::INSTANCE_STATE_PENDING_REGISTRATION,
        State::Running { .. } => wire::InstanceState::INSTANCE_STATE_RUNNING,
        State::Terminating(_) => wire::InstanceState::INSTANCE_STATE_TERMINATING,
        State::Terminated { .. } => wire::InstanceState::INSTANCE_STATE_TERMINATED,
        State::Failed { .. } => wire::InstanceState::INSTANCE_STATE_FAILED,
    })
}

/// An instance, without a copy of anything. When its node was ready is remembered while it runs.
pub(crate) fn instance<'a>(
    instance: &'a Instance,
    message: &'a str,
    labels: &'a Labels,
) -> wire::InstanceInfoView<'a> {
    let (ready_at, terminated_at) = match &instance.state {
        State::Running { since, .. } => (Some(*since), None),
        State::Terminated { at, .. } | State::Failed { at, .. } => (None, Some(*at)),
        State::Provisioning(_) | State::AwaitingNode { .. } | State::Terminating(_) => (None, None),
    };
    wire::InstanceInfoView {
        instance_id: instance.id.as_str(),
        provider: &instance.order.provider,
        region: &instance.order.region,
        zone: &instance.order.zone,
        instance_type: &instance.order.machine_type,
        state: instance_state(&instance.state),
        pool_name: &instance.pool_name,
        created_at: moment(Some(instance.ordered_at)),
        ready_at: moment(ready_at),
        terminated_at: moment(terminated_at),
        node_id: instance.node().map_or("", NodeId::as_str),
        status_message: message,
        labels: labels.iter().collect(),
    }
}

fn gpu_info(gpu: &Gpu) -> wire::GPUInfoView<'_> {
    wire::GPUInfoView {
        index: gpu.index,
        uuid: &gpu.uuid,
        name: &gpu.name,
        pci_bus_id: &gpu.pci_bus_id,
        memory_total: gpu.memory_total,
        driver_version: &gpu.driver_version,
        cuda_version: &gpu.cuda_version,
    }
}
