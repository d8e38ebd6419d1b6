//! What we know, in the words of the wire.

use crate::check::{CheckOutcome, Word};
use crate::command::{Drained, End, Kind, Order};
use crate::signal::{Signal, SignalKind};
use crate::spool::Report;
use argosy_api::rpc;
use argosy_api::rpc::node::{
    CheckResult, Command, CommandAck, CommandState, CommandType, DrainOutcome, HealthEvent,
    HealthEventType, HealthReport, HealthStatus, HealthSystem,
};
use buffa::EnumValue;
use jiff::{SignedDuration, Timestamp};

/// The number of the event type `host` on the wire, which a control plane that does not know it takes
/// for an unknown one.
const HOST: i32 = 11;

pub(super) fn time(time: Timestamp) -> rpc::Timestamp {
    rpc::Timestamp {
        seconds: time.as_second(),
        nanos: time.subsec_nanosecond(),
        ..Default::default()
    }
}

/// A time as it came; `None` if it is none.
fn parse_time(time: Option<&rpc::Timestamp>) -> Option<Timestamp> {
    time.and_then(|time| Timestamp::new(time.seconds, time.nanos).ok())
}

pub(super) fn report(report: &Report) -> HealthReport {
    HealthReport {
        sequence: report.sequence,
        results: report.outcomes.iter().map(|o| result(o, report.checked_at)).collect(),
        events: report.signals.iter().map(event).collect(),
    }
}

fn result(outcome: &CheckOutcome, at: Timestamp) -> CheckResult {
    let status = match outcome.word {
        Word::Healthy => HealthStatus::HEALTH_STATUS_HEALTHY,
        Word::Degraded => HealthStatus::HEALTH_STATUS_DEGRADED,
        Word::Unhealthy => HealthStatus::HEALTH_STATUS_UNHEALTHY,
    };
    let reason =
        (!outcome.reason.is_empty()).then(|| ("reason".to_owned(), outcome.reason.clone()));
    CheckResult {
        check: outcome.check.clone(),
        status: status.into(),
        message: outcome.message.clone(),
        time: Some(time(at)).into(),
        details: outcome.details.clone().into_iter().chain(reason).collect(),
    }
}

fn event(signal: &Signal) -> HealthEvent {
    use HealthEventType as Type;
    use HealthSystem as System;
    let (system, kind): (System, EnumValue<Type>) = match signal.kind {
        SignalKind::Xid => (System::HEALTH_SYSTEM_DRIVER, Type::HEALTH_EVENT_TYPE_XID.into()),
        SignalKind::Sxid => (System::HEALTH_SYSTEM_NVSWITCH, Type::HEALTH_EVENT_TYPE_SXID.into()),
        SignalKind::Thermal => {
            (System::HEALTH_SYSTEM_THERMAL, Type::HEALTH_EVENT_TYPE_THERMAL.into())
        }
        SignalKind::Power => (System::HEALTH_SYSTEM_POWER, Type::HEALTH_EVENT_TYPE_POWER.into()),
        SignalKind::Memory => (System::HEALTH_SYSTEM_MEM, Type::HEALTH_EVENT_TYPE_MEMORY.into()),
        SignalKind::Nvlink => (System::HEALTH_SYSTEM_NVLINK, Type::HEALTH_EVENT_TYPE_NVLINK.into()),
        SignalKind::Pcie => (System::HEALTH_SYSTEM_PCIE, Type::HEALTH_EVENT_TYPE_PCIE.into()),
        SignalKind::DriverError => {
            (System::HEALTH_SYSTEM_DRIVER, Type::HEALTH_EVENT_TYPE_DRIVER_ERROR.into())
        }
        SignalKind::EccSbe => (System::HEALTH_SYSTEM_MEM, Type::HEALTH_EVENT_TYPE_ECC_SBE.into()),
        SignalKind::EccDbe => (System::HEALTH_SYSTEM_MEM, Type::HEALTH_EVENT_TYPE_ECC_DBE.into()),
        SignalKind::Host => (System::HEALTH_SYSTEM_UNSPECIFIED, EnumValue::from(HOST)),
    };
    let gpu = signal.gpu.as_ref();
    HealthEvent {
        time: Some(time(signal.last)).into(),
        gpu_index: gpu.map(|gpu| gpu.index),
        gpu_uuid: gpu.map(|gpu| gpu.uuid.clone()).unwrap_or_default(),
        gpu_serial: gpu.map(|gpu| gpu.serial.clone()).unwrap_or_default(),
        system: system.into(),
        r#type: kind,
        metrics: signal.metrics.clone().into_iter().collect(),
        message: signal.message.clone(),
        raw: signal.raw.clone(),
        recovery_action: signal.recovery_action,
        count: signal.count,
        first: Some(time(signal.first)).into(),
        last: Some(time(signal.last)).into(),
    }
}

/// An order, or the number of a command type that nobody here knows, with the order all the same.
///
/// Times are the node's own: what is said as a span counts from now, whatever either clock shows.
pub(super) fn order(command: Command, now: Timestamp) -> Order {
    let kind = match command.r#type.as_known() {
        Some(CommandType::COMMAND_TYPE_CORDON) => Kind::Cordon,
        Some(CommandType::COMMAND_TYPE_UNCORDON) => Kind::Uncordon,
        Some(CommandType::COMMAND_TYPE_DRAIN) => Kind::Drain,
        Some(CommandType::COMMAND_TYPE_RUN_DIAGNOSTIC) => Kind::RunDiagnostic,
        Some(CommandType::COMMAND_TYPE_TERMINATE) => Kind::Terminate,
        Some(CommandType::COMMAND_TYPE_UNSPECIFIED) | None => {
            Kind::Unknown(command.r#type.to_i32())
        }
    };
    Order {
        id: command.id,
        kind,
        parameters: command.parameters.into_iter().collect(),
        reason: command.reason,
        expires_at: by(command.expires_in_seconds, command.expires_at.as_option(), now),
        deadline: by(command.deadline_in_seconds, command.deadline.as_option(), now),
        quiet_seconds: command.quiet_seconds,
    }
}

/// A time that was told as so many seconds from now; by a control plane that does not say so, as it is on the wire.
fn by(seconds: Option<u32>, at: Option<&rpc::Timestamp>, now: Timestamp) -> Option<Timestamp> {
    match seconds {
        Some(seconds) => now.checked_add(SignedDuration::from_secs(seconds.into())).ok(),
        None => parse_time(at),
    }
}

/// The acknowledgement that says how a command ended.
pub fn ack(command: &str, end: &End) -> CommandAck {
    let state = if end.completed {
        CommandState::COMMAND_STATE_COMPLETED
    } else {
        CommandState::COMMAND_STATE_FAILED
    };
    let outcome = match end.drained {
        None => DrainOutcome::DRAIN_OUTCOME_UNSPECIFIED,
        Some(Drained::Drained) => DrainOutcome::DRAIN_OUTCOME_DRAINED,
        Some(Drained::Forced) => DrainOutcome::DRAIN_OUTCOME_FORCED,
        Some(Drained::TimedOut) => DrainOutcome::DRAIN_OUTCOME_TIMED_OUT,
        Some(Drained::Cancelled) => DrainOutcome::DRAIN_OUTCOME_CANCELLED,
    };
    CommandAck {
        command_id: command.to_owned(),
        state: state.into(),
        outcome: outcome.into(),
        message: end.message.clone(),
        progress_percent: if end.completed { 100 } else { 0 },
        result_json: end.result_json.clone(),
    }
}

/// The acknowledgement of a command that has not ended.
pub(super) fn underway(command: &str, begun: bool, percent: u8, message: String) -> CommandAck {
    let state = if begun {
        CommandState::COMMAND_STATE_RUNNING
    } else {
        CommandState::COMMAND_STATE_ACKNOWLEDGED
    };
    CommandAck {
        command_id: command.to_owned(),
        state: state.into(),
        message,
        progress_percent: percent.min(100).into(),
        ..CommandAck::default()
    }
}
