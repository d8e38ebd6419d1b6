//! Events to try rules on before they are let near real ones: one of each kind, as agents send them.

use super::facts::{Facts, Variables};
use super::prepare::Constants;
use super::{Compiled, JUDGEMENT_COST_MAX, Judged, RuleError, error, too_dear};
use crate::language::ENV;
use argosy_core::health::{Event, EventType, Evidence, Health, HealthState, Metric, System};
use argosy_core::label::Labels;
use argosy_core::node::{Duty, External, Flaps, Gpu, Liveness, Machine, Node, NodeId, Place};
use cel::Context;
use jiff::Timestamp;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

/// One event of each kind, with the measurements that such an event carries.
pub(super) static EVENTS: LazyLock<Vec<Event>> = LazyLock::new(|| {
    let int = Metric::Int;
    let text = |word: &str| Metric::Text(word.to_owned());
    let event = |event_type, system, metrics: &[(&str, Metric)], message: &str| Event {
        node_time: Some(Timestamp::UNIX_EPOCH),
        gpu_index: 3,
        gpu_uuid: UUID.to_owned(),
        gpu_serial: SERIAL.to_owned(),
        system,
        event_type,
        metrics: metrics.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect(),
        message: message.to_owned(),
        raw: String::new(),
        recovery_action: None,
        count: 1,
        boot_id: String::new(),
        condition: String::new(),
    };
    let mut off_the_bus = event(
        EventType::Xid,
        System::Driver,
        &[("xid_code", int(79))],
        "GPU has fallen off the bus",
    );
    off_the_bus.raw =
        "NVRM: Xid (PCI:0000:41:00): 79, pid=1234, GPU has fallen off the bus.".to_owned();
    off_the_bus.recovery_action = Some(2);
    let remap = [("row_remap_pending", int(1)), ("row_remap_failure", int(0))];
    vec![
        off_the_bus,
        event(EventType::Xid, System::Sm, &[("xid_code", int(31))], "MMU fault"),
        event(EventType::Sxid, System::Nvswitch, &[("sxid_code", int(20034))], "LTSSM fault"),
        event(EventType::Thermal, System::Thermal, &[("temperature", int(88))], "hot"),
        event(EventType::Power, System::Power, &[("power_watts", Metric::Float(712.5))], "brake"),
        event(EventType::Memory, System::Mem, &remap, "rows are to be remapped"),
        event(EventType::Nvlink, System::Nvlink, &[("link_id", int(4))], "link error"),
        event(EventType::Pcie, System::Pcie, &[], "replays"),
        event(EventType::DriverError, System::Driver, &[], "the driver does not answer"),
        event(EventType::EccSbe, System::Mem, &[("ecc_sbe_count", int(250))], "corrected"),
        event(EventType::EccDbe, System::Mem, &[("ecc_dbe_count", int(1))], "uncorrectable"),
        event(
            EventType::Host,
            System::Unknown,
            &[("signal", text("disk-failed"))],
            "a disk failed",
        ),
        event(EventType::Unknown, System::Unknown, &[], ""),
    ]
});

const UUID: &str = "GPU-5a3f0c1e-0000-0000-0000-000000000000";
const SERIAL: &str = "1652823055642";

/// A node that has everything a node can have.
pub(super) static NODE: LazyLock<Node> = LazyLock::new(|| {
    let at = Timestamp::UNIX_EPOCH;
    let labels: Value = json!({ "pool": "h100", "rack": "r12" });
    Node {
        id: NodeId::parse("gpu-1").expect("a good name"),
        tenant: String::new(),
        pool: Some("h100".to_owned()),
        place: Place {
            provider: "gcp".into(),
            region: "us-east1".into(),
            zone: "us-east1-b".into(),
            instance_type: "a3-highgpu-8g".into(),
        },
        machine: Machine { agent: "argosy-agent/0.2.0".to_owned(), ..Machine::default() },
        gpus: vec![Gpu {
            index: 3,
            uuid: UUID.to_owned(),
            name: "NVIDIA H100 80GB HBM3".into(),
            driver_version: "560.35.03".into(),
            serial: SERIAL.to_owned(),
            ..Gpu::default()
        }],
        labels: labels
            .as_object()
            .and_then(|labels| Labels::parse(labels).ok())
            .unwrap_or_default(),
        registered_at: at,
        joined_at: at,
        liveness: Liveness::Fresh,
        liveness_since: at,
        health: Health {
            state: HealthState::Healthy,
            since: at,
            reason: String::new(),
            message: String::new(),
        },
        evidence: Evidence::default(),
        expected_gpus: Vec::new(),
        duty: Duty::Active,
        checks: BTreeMap::new(),
        findings: Vec::new(),
        sightings: Vec::new(),
        report_sequence: 0,
        flaps: Flaps::default(),
        flags: BTreeMap::new(),
        held: None,
        external: External::default(),
    }
});

/// Tries rules on every sample, and says what is odd about them.
///
/// # Errors
/// Rules that can give no answer, and what they all cost if that is too much.
pub(super) fn try_out(
    rules: &[(usize, Compiled)],
    constants: &Constants,
) -> Result<Vec<RuleError>, Vec<RuleError>> {
    let (mut errors, mut warnings) = (Vec::new(), Vec::new());
    let judged = EVENTS.iter().map(|event| Judged {
        event,
        node: &NODE,
        elsewhere: &[],
        now: Timestamp::UNIX_EPOCH,
    });
    let facts: Vec<Facts<'_>> = judged.map(Facts::new).collect();
    let dearest = |rule: &Compiled| {
        facts.iter().map(|facts| rule.condition.cost(facts.size())).max().unwrap_or_default()
    };
    let cost = rules.iter().fold(0, |sum: u64, (_, rule)| sum.saturating_add(dearest(rule)));
    for (place, rule) in rules {
        if JUDGEMENT_COST_MAX < dearest(rule) {
            errors.push(error(*place, "condition", too_dear(dearest(rule))));
            continue;
        }
        let (mut answered, mut failure, mut relevant_failure) = (false, None, None);
        for (event, facts) in EVENTS.iter().zip(&facts) {
            let variables = Variables::new(facts, constants);
            let mut context = Context::with_env(Arc::clone(&ENV));
            context.set_variable_resolver(&variables);
            match rule.condition.holds(&context) {
                Ok(_) => answered = true,
                Err(message) => {
                    if facts.traits().meet(rule.reach) {
                        relevant_failure.get_or_insert((event.event_type, message.clone()));
                    }
                    failure.get_or_insert(message);
                }
            }
        }
        match (answered, failure, relevant_failure) {
            (false, failure, _) => {
                let failure = failure.unwrap_or_default();
                let message = format!("gives no answer for any kind of event: {failure}");
                errors.push(error(*place, "condition", message));
            }
            (true, _, Some((kind, failure))) => {
                let message = format!(
                    "fails on a {} event that has not all it asks for: {failure}; ask has(…) first",
                    kind.as_str()
                );
                warnings.push(error(*place, "condition", message));
            }
            (true, _, None) => {}
        }
        if rule.reach.is_none() {
            let kinds: Vec<&str> = EventType::ALL.iter().map(|kind| kind.as_str()).collect();
            let message = format!("can never hold; event types are {}", kinds.join(", "));
            warnings.push(error(*place, "condition", message));
        }
    }
    if errors.is_empty() && JUDGEMENT_COST_MAX < cost {
        let message = format!("all rules together: {}", too_dear(cost));
        errors.push(RuleError { field: "rules".to_owned(), line: None, column: None, message });
    }
    if errors.is_empty() { Ok(warnings) } else { Err(errors) }
}
