//! Clusters, adapters and reports as short texts, for the tests of this crate.

use crate::access::{Caller, Role};
use crate::adapter::{
    AdapterName, AdapterSpec, DraftCondition, ReportDraft, Runner, TimeWindow, Tri, Verdict, accept,
};
use crate::health::{Evidence, Health, HealthState};
use crate::id::{CommandId, ResourceId};
use crate::label::Labels;
use crate::name::Name;
use crate::node::{Duty, External, Flaps, Hold, Liveness, Machine, Node, NodeId, Place};
use crate::resource::{Kind, NewResource, Resource, Stamp};
use crate::status::Condition;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use uuid::Uuid;

/// So many seconds after 2025-10-28T12:00:00Z.
pub(crate) fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_761_652_800 + seconds).unwrap()
}

pub(crate) fn seconds(timestamp: Timestamp) -> i64 {
    timestamp.duration_since(at(0)).as_secs()
}

pub(crate) fn by(who: &str, seconds: i64) -> Stamp {
    Stamp { at: at(seconds), by: who.to_owned() }
}

pub(crate) fn name(text: &str) -> AdapterName {
    AdapterName::parse(text).unwrap()
}

pub(crate) fn object(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

/// Adapters with a deadline of 60 s: `dns<validation` depends on another, `logs?` is not required,
/// `audit!` is a webhook, `scan~` is external.
pub(crate) fn adapters(text: &str) -> Vec<AdapterSpec> {
    text.split_whitespace()
        .map(|word| {
            let (head, after) = word.split_once('<').unwrap_or((word, ""));
            let runner = if head.contains('!') {
                Runner::Webhook { url: "http://adapter.test/events".to_owned() }
            } else if head.contains('~') {
                Runner::External
            } else {
                Runner::BuiltIn
            };
            AdapterSpec {
                name: name(head.trim_end_matches(['?', '!', '~'])),
                depends_on: after.split(',').filter(|word| !word.is_empty()).map(name).collect(),
                required: !head.contains('?'),
                deadline: SignedDuration::from_secs(60),
                runner,
            }
        })
        .collect()
}

/// A cluster that was created at 0.
pub(crate) fn cluster(adapters: &[AdapterSpec]) -> Resource {
    let new = NewResource {
        kind: Kind::Cluster,
        name: Name::parse("prod").unwrap(),
        owner: None,
        spec: object(json!({"provider": "gcp", "region": "us-east1", "nodeCount": 3})),
        labels: Labels::parse(&object(json!({"team": "alpha"}))).unwrap(),
    };
    let id = ResourceId::new(Uuid::from_u128(0x0199_0000_0000_7000_8000_0000_0000_0001));
    Resource::create(new, id, "acme".to_owned(), by("ada", 0), adapters)
}

/// The cluster at a later generation, which began at `seconds`.
pub(crate) fn at_generation(of: Resource, generation: u32, seconds: i64) -> Resource {
    Resource { generation, updated: by("ada", seconds), ..of }
}

/// A report: `dns:FT@2+30/Reason` says Available False and Applied True about generation 2 at 30
/// seconds. The letters are Available, Applied (else True), Health (else True), Finalized (else
/// absent).
pub(crate) fn draft(text: &str) -> ReportDraft {
    let (head, reason) = text.split_once('/').unwrap_or((text, ""));
    let (head, time) = head.split_once('+').unwrap_or((head, "0"));
    let (head, generation) = head.split_once('@').unwrap_or((head, "1"));
    let (adapter, letters) = head.split_once(':').unwrap();
    let mut letters = letters.chars().map(|letter| match letter {
        'T' => Tri::True,
        'F' => Tri::False,
        'U' => Tri::Unknown,
        other => panic!("{other} is not a status"),
    });
    let said = |kind: &str, status, reason: &str| DraftCondition {
        kind: kind.to_owned(),
        status,
        reason: reason.to_owned(),
        message: String::new(),
    };
    let mut conditions = vec![
        said("Available", letters.next().unwrap(), reason),
        said("Applied", letters.next().unwrap_or(Tri::True), ""),
        said("Health", letters.next().unwrap_or(Tri::True), ""),
    ];
    conditions.extend(letters.next().map(|status| said("Finalized", status, "")));
    ReportDraft {
        adapter: name(adapter),
        observed_generation: generation.parse().unwrap(),
        observed_time: Some(at(time.parse().unwrap())),
        conditions,
        data: Map::new(),
        metadata: Map::new(),
    }
}

/// The resource after one report that arrived at `now`.
pub(crate) fn hear(
    of: &Resource,
    adapters: &[AdapterSpec],
    draft: &ReportDraft,
    now: Timestamp,
) -> Resource {
    match accept(of, draft, now, TimeWindow::default()).unwrap() {
        Verdict::News(report) => of.reported(&draft.adapter, report, adapters, false, now),
        Verdict::Old(_) => of.clone(),
    }
}

/// The resource after reports that each arrived when they were made.
pub(crate) fn told(of: Resource, adapters: &[AdapterSpec], reports: &str) -> Resource {
    reports.split_whitespace().map(draft).fold(of, |of, draft| {
        let now = draft.observed_time.unwrap();
        hear(&of, adapters, &draft, now)
    })
}

pub(crate) fn condition<'a>(of: &'a Resource, kind: &str) -> &'a Condition {
    of.conditions.iter().find(|condition| condition.kind == kind).unwrap()
}

/// `Reconciled=False/ReconciledMissingAdapters@1`, one for each condition.
pub(crate) fn lines(of: &Resource) -> Vec<String> {
    of.conditions
        .iter()
        .map(|said| {
            format!("{}={:?}/{}@{}", said.kind, said.status, said.reason, said.observed_generation)
        })
        .collect()
}

pub(crate) fn caller(role: Role, tenant: &str, teams: &[&str]) -> Caller {
    Caller {
        subject: "ada".to_owned(),
        via: "token",
        tenant: tenant.to_owned(),
        teams: teams.iter().map(|team| (*team).to_owned()).collect(),
        role,
        adapter: None,
        node: None,
        request_id: "r-1".to_owned(),
    }
}

/// A node without a pool that registered long ago, and nothing is wrong with it.
pub(crate) fn node(id: &str) -> Node {
    let past = at(-1_000_000);
    Node {
        id: NodeId::parse(id).unwrap(),
        tenant: "acme".to_owned(),
        pool: None,
        place: Place::default(),
        machine: Machine::default(),
        gpus: Vec::new(),
        labels: Labels::default(),
        registered_at: past,
        joined_at: past,
        liveness: Liveness::Fresh,
        liveness_since: past,
        health: Health {
            state: HealthState::Healthy,
            since: past,
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
}

pub(crate) fn hold(by: &str, automatic: bool, seconds: i64) -> Hold {
    Hold { by: by.to_owned(), automatic, reason: "because".to_owned(), at: at(seconds) }
}

pub(crate) fn command_id(number: u128) -> CommandId {
    CommandId::new(Uuid::from_u128(number))
}

/// A permit, with nothing that speaks against it.
pub(crate) fn permitted(reason: crate::instance::Reason) -> crate::gate::Permit {
    crate::gate::permit(reason, &crate::gate::Brakes::default()).unwrap()
}
