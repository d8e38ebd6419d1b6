//! Documents as they were once stored: what is read from them, and written again, must not change.
//!
//! When a stored type changes on purpose, add the step to `upgrade.rs`, then write the files anew
//! with `UPDATE=1 cargo test -p argosy-core --test golden`.

#![expect(clippy::unwrap_used, reason = "the panic is the failure of the test")]

mod breaker;
mod node;

use argosy_core::adapter::{AdapterName, Definite, Report, Reported, Reports, Tri};
use argosy_core::command::{Command, CommandKind, CommandState, Outcome};
use argosy_core::id::{CommandId, ResourceId};
use argosy_core::incarnation::{Forecast, HistoryLoss, Incarnation, Recovery, Would};
use argosy_core::instance::InstanceId;
use argosy_core::inventory::Installation;
use argosy_core::label::Labels;
use argosy_core::machine::MachineId;
use argosy_core::name::Name;
use argosy_core::node::NodeId;
use argosy_core::resource::{Dispatch, Kind, Resource, Stamp};
use argosy_core::status::Condition;
use argosy_core::upgrade::{VERSION, upgrade};
use jiff::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::path::Path;

#[track_caller]
fn check<T: Serialize + DeserializeOwned + PartialEq + Debug>(file: &str, kind: &str, today: &T) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(file);
    let written = serde_json::to_string_pretty(today).unwrap() + "\n";
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &written).unwrap();
    }
    let stored = std::fs::read_to_string(&path).unwrap();
    let document = upgrade(kind, VERSION, serde_json::from_str(&stored).unwrap()).unwrap();
    assert_eq!(&serde_json::from_value::<T>(document).unwrap(), today, "{file} is read otherwise");
    assert_eq!(written, stored, "{file} is written otherwise");
}

#[test]
fn a_resource_with_everything_in_it_is_read_and_written_as_ever() {
    check("resource.json", "resource", &resource());
}

#[test]
fn a_tombstone_is_read_and_written_as_ever() {
    check(
        "tombstone.json",
        "tombstone",
        &resource().tombstone(at(7), Some("lost account".to_owned())),
    );
}

#[test]
fn a_document_without_what_was_added_later_is_still_read() {
    let mut bare = serde_json::to_value(resource()).unwrap();
    let optional = [
        "owner",
        "deletion",
        "started",
        "conditions",
        "reports",
        "dispatches",
        "stalled",
        "labels",
    ];
    for member in optional {
        bare.as_object_mut().unwrap().remove(member).unwrap();
    }
    let read: Resource = serde_json::from_value(bare).unwrap();
    assert!(read.owner.is_none() && read.deletion.is_none() && read.started.is_none());
    assert!(read.reports.is_empty() && read.conditions.is_empty() && read.labels.is_empty());
}

#[test]
fn an_installation_and_a_recovery_are_read_and_written_as_ever() {
    let cause = HistoryLoss::Restored { head: 406 };
    let id = uuid::Uuid::from_u128(7);
    let first = Installation { id, since: at(1), incarnation: Incarnation::default() };
    let incarnation = first.incarnation.next(cause.clone(), at(2));
    check("installation.json", "installation", &Installation { incarnation, ..first.clone() });
    let old: Installation = serde_json::from_value(json!({ "id": id, "since": at(1) })).unwrap();
    assert_eq!(old, first, "one that was stored before there were incarnations");
    let mut forecast = Forecast::default();
    forecast.add(Would::Terminate {
        instance: InstanceId::parse("workers-0f3k9a2m").unwrap(),
        drain: true,
        reason: "the pool needs fewer nodes".to_owned(),
    });
    forecast.add(Would::Buy {
        machine_type: "a3-highgpu-8g".to_owned(),
        provider: "gcp".to_owned(),
        reason: "node 2 of 2".to_owned(),
    });
    let recovery = Recovery {
        pool: ResourceId::parse("01990000-0000-7000-8000-000000000002").unwrap(),
        tenant: "acme".to_owned(),
        pool_name: "train.workers".to_owned(),
        incarnation: 1,
        since: at(2),
        cause,
        forecast: Some(forecast),
    };
    let causes = [
        HistoryLoss::ServerAhead { seen: 9, head: 4 },
        HistoryLoss::UnknownMachine {
            provider: "gcp".to_owned(),
            machine: MachineId::new("i-7".to_owned()),
        },
    ];
    let others = causes.map(|cause| Recovery { cause, forecast: None, ..recovery.clone() });
    let all: Vec<Recovery> = [recovery].into_iter().chain(others).collect();
    check("recovery.json", "recovery", &all);
}

#[test]
fn a_command_in_each_of_its_states_is_read_and_written_as_ever() {
    let pending = command(CommandState::Pending);
    let fetched = command(CommandState::Acknowledged { at: at(2), progress: Some(40) });
    let ended = command(CommandState::Done {
        at: at(3),
        outcome: Outcome::TimedOut,
        message: "one job is left".to_owned(),
        result: Some(json!({ "jobs": [17] })),
    });
    check("command.json", "command", &[pending, fetched, ended].to_vec());
}

#[test]
fn a_command_without_what_may_be_missing_is_still_read() {
    let mut bare = serde_json::to_value(command(CommandState::Pending)).unwrap();
    for member in ["parameters", "reason", "deadline"] {
        bare.as_object_mut().unwrap().remove(member).unwrap();
    }
    let read: Command = serde_json::from_value(bare).unwrap();
    assert!(read.parameters.is_empty() && read.reason.is_empty() && read.deadline.is_none());
}

fn command(state: CommandState) -> Command {
    let parameters = [("force", "true"), ("timeout", "3600")];
    let parameters = parameters.map(|(name, value)| (name.to_owned(), value.to_owned()));
    Command {
        id: CommandId::parse("01990000-0000-7000-8000-000000000003").unwrap(),
        node: NodeId::parse("gpu-17.rack-3").unwrap(),
        tenant: "acme".to_owned(),
        kind: CommandKind::Drain,
        parameters: BTreeMap::from(parameters),
        by: "ada".to_owned(),
        automatic: false,
        reason: "fan is loud".to_owned(),
        issued_at: at(1),
        expires_at: at(601),
        deadline: Some(at(3601)),
        state,
    }
}

fn resource() -> Resource {
    let adapter = AdapterName::parse("machines").unwrap();
    let conditions = vec![Condition {
        kind: "Reconciled".to_owned(),
        status: Tri::False,
        reason: "ReconciledMissingAdapters".to_owned(),
        message: "Waiting for machines".to_owned(),
        observed_generation: 3,
        created_time: at(0),
        last_updated_time: at(5),
        last_transition_time: at(3),
    }];
    let rejected = Some("410 Gone".to_owned());
    let labels = object(json!({ "example.com/tier": "gold", "team": "alpha" }));
    Resource {
        id: ResourceId::parse("01990000-0000-7000-8000-000000000001").unwrap(),
        kind: Kind::NodePool,
        name: Name::parse("gpu-pool").unwrap(),
        tenant: "acme".to_owned(),
        owner: ResourceId::parse("01990000-0000-7000-8000-000000000002"),
        spec: object(json!({ "machineType": "a3-highgpu-8g", "nodeCount": 5 })),
        labels: Labels::parse(&labels).unwrap(),
        generation: 3,
        created: by("ada", 0),
        updated: by("ada", 3),
        deletion: Some(by("eve", 3)),
        without_drain: false,
        shrink_forced: false,
        started: Some(at(1)),
        phase_since: at(3),
        conditions,
        reports: BTreeMap::from([(adapter.clone(), report().into())]),
        dispatches: BTreeMap::from([(
            adapter.clone(),
            Dispatch { generation: 3, delivered: 2, rejected },
        )]),
        stalled: BTreeMap::from([(adapter, at(6))]),
    }
}

fn report() -> Report {
    let said = |status, reason: &str, seconds| Reported {
        status,
        reason: reason.to_owned(),
        message: format!("{reason} it is"),
        last_transition_time: at(seconds),
    };
    Report {
        observed_generation: 3,
        conditions: Reports {
            available: said(Tri::Unknown, "Looking", 5),
            applied: said(Tri::True, "JobLaunched", 1),
            health: said(Tri::True, "NoErrors", 1),
            finalized: Some(said(Tri::False, "StillDraining", 5)),
            others: BTreeMap::from([("NodesRegistered".to_owned(), said(Tri::True, "All", 2))]),
        },
        definite: Some(Definite {
            generation: 2,
            at: at(2),
            available: said(Tri::True, "Done", 2),
        }),
        data: object(json!({ "nodes": ["n-1", "n-2"] })),
        metadata: object(json!({ "executionTime": "115s", "jobName": "machines-gen3" })),
        created_time: at(1),
        generation_since: at(4),
        last_report_time: at(5),
    }
}

/// With microseconds, because that is what is stored.
fn at(seconds: i64) -> Timestamp {
    Timestamp::from_microsecond((1_761_652_800 + seconds) * 1_000_000 + 250_001).unwrap()
}

fn by(who: &str, seconds: i64) -> Stamp {
    Stamp { at: at(seconds), by: who.to_owned() }
}

fn object(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}
