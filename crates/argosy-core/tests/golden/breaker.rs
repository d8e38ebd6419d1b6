//! Brakes, and what processes tell each other of silence.

use crate::{at, check};
use argosy_core::breaker::{Breaker, Closed, HalfOpen, Pause, Scope};
use argosy_core::liveness::{Attendance, Excuse, Heard, Outlook};
use argosy_core::node::NodeId;
use argosy_core::remedy::LastDisruption;
use serde_json::json;

#[test]
fn a_breaker_is_read_and_written_as_ever() {
    let breaker = Breaker {
        scope: Scope::Pool { tenant: "acme".to_owned(), pool: "h100".to_owned() },
        opened_at: at(0),
        reason: "pool h100: 12 of 20 nodes turned bad within 300 s, more than 20 %".to_owned(),
        last_bad_at: at(1),
        half_open: Some(HalfOpen { since: at(2), allowed: 4, taken: 1 }),
        closed: Some(Closed { by: "ada".to_owned(), reason: "switch".to_owned(), at: at(3) }),
    };
    check("breaker.json", "breaker", &breaker);
    let zone = Scope::Zone { zone: "gcp/us-east1/us-east1-b".to_owned() };
    let zone = Breaker { scope: zone, half_open: None, closed: None, ..breaker };
    check("breaker-zone.json", "breaker", &zone);
    check("breaker-fleet.json", "breaker", &Breaker { scope: Scope::Fleet, ..zone });
}

#[test]
fn the_last_disruption_is_read_and_written_as_ever() {
    let (by, tenant) = ("ada".to_owned(), "acme".to_owned());
    check("disruption.json", "disruption", &LastDisruption { at: at(1), by, tenant });
}

#[test]
fn a_pause_is_read_and_written_as_ever() {
    let pause = Pause {
        tenant: "acme".to_owned(),
        pool: Some("h100".to_owned()),
        pool_id: None,
        by: "ada".to_owned(),
        reason: "power work in row 4".to_owned(),
        at: at(1),
    };
    check("pause.json", "pause", &pause);
    let bare = json!({ "tenant": "acme", "by": "ada", "reason": "all of it", "at": at(1) });
    assert_eq!(serde_json::from_value::<Pause>(bare).unwrap().pool, None);
}

#[test]
fn what_processes_tell_each_other_of_silence_is_read_and_written_as_ever() {
    let excuse = Excuse::Isolation { silent: 9, total: 10 };
    check("outlook.json", "outlook", &Outlook { since: at(1), excuse });
    check("attendance.json", "attendance", &Attendance { until: at(1) });
    let node = NodeId::parse("gpu-1").unwrap();
    let heard = Heard {
        process: "host-1".to_owned(),
        nodes: vec![(node, 1500, true)],
        reported: Vec::new(),
    };
    check("heard.json", "heard", &heard);
}
