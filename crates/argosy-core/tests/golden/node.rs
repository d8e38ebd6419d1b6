//! Nodes and lines of their ledgers.

use crate::{at, check, object};
use argosy_core::command::{CommandKind, Outcome};
use argosy_core::external::{LeftOver, Out, Party, Seen, Wish, Work};
use argosy_core::health::{
    Check, Ends, Event, EventType, Finding, Health, HealthState, Metric, Severity, Sighting, System,
};
use argosy_core::id::CommandId;
use argosy_core::label::Labels;
use argosy_core::ledger::{Entry, VerdictNote, What};
use argosy_core::node::{
    Duty, External, Flag, FlagNote, Flaps, Gpu, Held, Hold, Liveness, Machine, Node, NodeId, Place,
    Told,
};
use serde_json::json;
use std::collections::BTreeMap;

#[test]
fn a_node_with_everything_in_it_is_read_and_written_as_ever() {
    check("node.json", "node", &node());
}

#[test]
fn every_duty_is_read_and_written_as_ever() {
    let hold = || Hold {
        by: "ann".to_owned(),
        automatic: false,
        reason: "new fans".to_owned(),
        at: at(6),
    };
    let duties = vec![
        Duty::Active,
        Duty::Cordoned(hold()),
        Duty::Draining { hold: hold(), command: command(), deadline: at(3600), done: false },
        Duty::Terminated(hold()),
    ];
    check("duty.json", "node", &duties);
}

#[test]
fn a_node_without_what_may_be_absent_is_still_read() {
    let mut bare = serde_json::to_value(node()).unwrap();
    let optional = [
        "pool",
        "labels",
        "checks",
        "findings",
        "sightings",
        "report_sequence",
        "flaps",
        "flags",
        "held",
        "external",
    ];
    for member in optional {
        bare.as_object_mut().unwrap().remove(member).unwrap();
    }
    let read: Node = serde_json::from_value(bare).unwrap();
    assert!(read.pool.is_none() && read.findings.is_empty() && read.held.is_none());
    assert_eq!((read.flaps, read.external), (Flaps::default(), External::default()));
}

#[test]
fn every_line_of_a_ledger_is_read_and_written_as_ever() {
    let lines: Vec<Entry> =
        whats().into_iter().map(|what| Entry { at: at(9), node: id(), what }).collect();
    check("ledger.json", "ledger", &lines);
    for line in &lines {
        let written = serde_json::to_value(line).unwrap();
        assert_eq!(written["type"], line.what.kind(), "the word is the stored one");
    }
}

fn id() -> NodeId {
    NodeId::parse("gpu-17").unwrap()
}

fn command() -> CommandId {
    CommandId::parse("01990000-0000-7000-8000-000000000007").unwrap()
}

fn node() -> Node {
    let labels = object(json!({ "pool": "h100", "rack": "r7", "team": "alpha" }));
    let gpu = Gpu {
        index: 3,
        uuid: "GPU-1b2c".to_owned(),
        name: "NVIDIA H100 80GB HBM3".into(),
        pci_bus_id: "0000:04:00.0".to_owned(),
        memory_total: 85_899_345_920,
        driver_version: "550.54.15".into(),
        cuda_version: "12.4".into(),
        serial: "1650923011111".to_owned(),
    };
    Node {
        id: id(),
        tenant: "acme".to_owned(),
        pool: Some("h100".to_owned()),
        place: Place {
            provider: "gcp".into(),
            region: "us-east1".into(),
            zone: "us-east1-b".into(),
            instance_type: "a3-highgpu-8g".into(),
        },
        machine: Machine {
            hostname: "gpu-17.example".to_owned(),
            internal_ip: "10.0.0.17".to_owned(),
            external_ip: "192.0.2.17".to_owned(),
            kernel_version: "6.1.0-18-amd64".to_owned(),
            boot_id: "b1".to_owned(),
            machine_id: "m1".to_owned(),
            agent: "argosy-agent/0.2.0".to_owned(),
        },
        gpus: vec![gpu, Gpu::default()],
        labels: Labels::parse(&labels).unwrap(),
        registered_at: at(0),
        joined_at: at(1),
        liveness: Liveness::Suspect,
        liveness_since: at(2),
        health: Health {
            state: HealthState::Unhealthy,
            since: at(3),
            reason: "fatal-xid".to_owned(),
            message: "GPU has fallen off the bus".to_owned(),
        },
        duty: Duty::Cordoned(Hold {
            by: "argosy".to_owned(),
            automatic: true,
            reason: "fatal-xid".to_owned(),
            at: at(4),
        }),
        checks: BTreeMap::from([(
            "gpu".to_owned(),
            Check {
                state: HealthState::Degraded,
                message: "86 C".to_owned(),
                since: at(3),
                details: BTreeMap::from([("temperature".to_owned(), "86".to_owned())]),
            },
        )]),
        findings: findings(),
        sightings: vec![Sighting {
            event_type: EventType::Xid,
            code: 79,
            gpu: "GPU-1b2c".to_owned(),
            hardware: "1650923011111".to_owned(),
            times: vec![at(3), at(5)],
        }],
        report_sequence: 42,
        flaps: Flaps { count: 2, recovered_at: Some(at(1)), hold_until: Some(at(60)) },
        flags: BTreeMap::from([(
            Flag::ClockSkewed,
            FlagNote { since: at(2), message: "its clock is 90 s ahead".to_owned() },
        )]),
        held: Some(Held {
            action: "drain".to_owned(),
            guard: "budget".to_owned(),
            reason: "pool h100 5/5".to_owned(),
            since: at(5),
        }),
        external: external(),
    }
}

fn external() -> External {
    let wish = |state| Wish {
        state,
        reason: "new fans".to_owned(),
        deadline: Some(at(3600)),
        force: true,
        command: Some(command()),
    };
    let party = Party {
        told: Some(wish(Told::Cordon)),
        told_at: Some(at(6)),
        telling: Some(wish(Told::Drain)),
        name: "gpu17".to_owned(),
        former: vec!["gpu16".to_owned()],
        seen: Some(Seen { at: at(7), out: Out::ByOthers, note: "DOWN root: disk".to_owned() }),
        work: Some(Work {
            of: command(),
            at: at(7),
            over: false,
            forced: true,
            last: true,
            message: "job 7".to_owned(),
        }),
        failures: 1,
        retry_at: Some(at(7)),
        failure: "ExternalDrainFailed: slurm: down".to_owned(),
    };
    let parties = BTreeMap::from([
        ("agent".to_owned(), Party::default()),
        ("slurm /usr/bin/scontrol".to_owned(), party),
    ]);
    External { parties, left: Some(LeftOver { of: command(), what: "job 7".to_owned() }) }
}

/// Earlier builds had one word for all workload systems.
#[test]
fn r2_n21_who_was_told_what_is_asked_anew_of_a_node_of_an_earlier_build() {
    let mut old = serde_json::to_value(node()).unwrap();
    old["external"] = json!({
        "told": "Cordon", "telling": "Drain", "failures": 1, "retry_at": "2025-10-28T12:00:07Z",
    });
    let read: Node = serde_json::from_value(old).unwrap();
    assert_eq!(read.external, External::default());
}

fn findings() -> Vec<Finding> {
    let fatal = Finding {
        key: "xid/79/GPU-1b2c".to_owned(),
        severity: Some(Severity::Unhealthy),
        rule: "fatal-xid".to_owned(),
        policy: "default".to_owned(),
        policy_version: 3,
        message: "GPU has fallen off the bus".to_owned(),
        evidence: "NVRM: Xid (PCI:0000:04:00): 79".to_owned(),
        gpu: "GPU-1b2c".to_owned(),
        first: at(3),
        last: at(5),
        count: 2,
        ends: Ends::AtReboot,
    };
    let failed = Finding {
        key: "policy-error/thermal/0/node".to_owned(),
        severity: None,
        gpu: String::new(),
        evidence: String::new(),
        ends: Ends::At(at(3600)),
        ..fatal.clone()
    };
    let check = Finding {
        key: "check/gpu".to_owned(),
        severity: Some(Severity::Degraded),
        rule: "gpu".to_owned(),
        policy: String::new(),
        policy_version: 0,
        ends: Ends::WhenCheckPasses,
        ..fatal.clone()
    };
    vec![fatal, failed, check]
}

fn whats() -> Vec<What> {
    let text = |text: &str| text.to_owned();
    let event = Event {
        node_time: Some(at(2)),
        gpu_index: 3,
        gpu_uuid: text("GPU-1b2c"),
        gpu_serial: text("1650923011111"),
        system: System::Driver,
        event_type: EventType::Xid,
        metrics: BTreeMap::from([
            (text("xid_code"), Metric::Int(79)),
            (text("temperature"), Metric::Float(86.5)),
            (text("throttled"), Metric::Bool(true)),
            (text("unit"), Metric::Text(text("RLW"))),
        ]),
        message: text("GPU lost"),
        raw: text("NVRM: Xid (PCI:0000:04:00): 79"),
        recovery_action: Some(4),
        count: 2,
    };
    let verdict = VerdictNote {
        policy: text("default"),
        policy_version: 3,
        rule: text("fatal-xid"),
        severity: Some(Severity::Unhealthy),
        error: None,
        inputs: vec![text("driver: drain and reset")],
    };
    let failed =
        VerdictNote { severity: None, error: Some(text("no such key")), ..verdict.clone() };
    vec![
        What::Registered { message: text("first registration") },
        What::RegistrationRefused { message: text("machine m2 came with the same id") },
        What::Event {
            event: Box::new(event.clone()),
            verdict,
            finding: Some(text("xid/79/GPU-1b2c")),
        },
        What::Event { event: Box::new(event), verdict: failed, finding: None },
        What::Check {
            name: text("gpu"),
            from: HealthState::Healthy,
            to: HealthState::Degraded,
            message: text("86 C"),
        },
        What::Cleared { finding: text("check/gpu"), reason: text("the check passes") },
        What::Health {
            from: HealthState::Healthy,
            to: HealthState::Unhealthy,
            reason: text("fatal-xid"),
            findings: vec![text("xid/79/GPU-1b2c")],
        },
        What::Liveness {
            from: Liveness::Suspect,
            to: Liveness::Unreachable,
            reason: text("silent for 45 s"),
        },
        What::Status {
            from: argosy_core::node::NodeStatus::Active.into(),
            to: argosy_core::node::NodeStatus::Unhealthy.into(),
            reason: text("GPU has fallen off the bus"),
        },
        What::Decision {
            action: text("cordon"),
            held_by: Some(text("breaker")),
            reason: text("9 of 40 turned bad"),
            budget: text("pool h100 5/5"),
        },
        What::Command {
            id: command(),
            kind: CommandKind::RunDiagnostic,
            state: text("failed"),
            outcome: Some(Outcome::TimedOut),
            by: text("ann"),
            message: text("new fans"),
        },
        What::External {
            system: text("slurm"),
            what: text("cordon"),
            ok: true,
            message: text("drained"),
        },
        What::Flag { flag: text("ClockSkewed"), raised: true, message: text("90 s ahead") },
    ]
}
