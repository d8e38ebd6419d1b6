use super::table::{grid, page, sum, touched};
use super::*;
use crate::output::Screen;
use serde_json::json;

fn instance(more: serde_json::Value) -> Instance {
    let mut value = json!({
        "id": "h100-0f3k9a2m", "kind": "Instance", "href": "/api/argosy/v1/instances/h100-0f3k9a2m",
        "tenant": "default", "state": "Running", "since": "2026-03-01T11:00:00Z",
        "status_message": "its node has registered", "pool": "h100",
        "pool_id": "01890a5d-ac96-774b-bcce-b302099a8057", "number": 3, "node_id": "h100-0f3k9a2m",
        "provider": "aws", "region": "us-east-1", "zone": "us-east-1a", "machine_type": "p5.48xlarge",
        "spot": false, "machine_id": "i-0abc", "cost_per_hour": 98.32,
        "ordered_at": "2026-03-01T10:00:00Z", "why": "the pool wants 5 nodes and has 4",
        "calls": 0, "revision": 7,
    });
    if let (Some(value), Some(more)) = (value.as_object_mut(), more.as_object()) {
        value.extend(more.clone());
    }
    serde_json::from_value(value).unwrap()
}

fn times() -> Times {
    Times::at("2026-03-01T12:00:00Z".parse().unwrap())
}

#[test]
fn a_table_says_what_costs_how_much_and_what_is_wrong() {
    let failed = instance(json!({
        "id": "h100-bad", "state": "Failed", "node_id": null, "cost_per_hour": null,
        "reason": "QuotaExceeded", "status_message": "no GPUs are left",
    }));
    let text = grid(&[instance(json!({})), failed.clone()], false, times());
    let text = text.render(&Screen::plain(), true);
    assert!(text.starts_with("INSTANCE"), "{text}");
    for part in ["Running", "1h", "aws us-east-1/us-east-1a", "98.32"] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
    assert!(text.contains("QuotaExceeded: no GPUs are left"), "{text}");
    let leaving = instance(json!({ "state": "Terminating", "cost_per_hour": null }));
    assert_eq!(
        sum(&[instance(json!({})), failed, leaving]),
        "3 instances, 1 running, at least $98.32 an hour, 1 without a known price"
    );
    let leaving = instance(json!({ "state": "Terminating", "cost_per_hour": null }));
    assert_eq!(sum(&[leaving]), "1 instance, 0 running, cost unknown, 1 without a known price");
    // The sum of nothing is not less than nothing.
    assert_eq!(sum(&[]), "0 instances, 0 running, $0.00 an hour");
}

#[test]
fn a_page_fits_a_narrow_terminal_and_ends_with_the_console() {
    let stale = instance(json!({
        "state": "Terminating", "node_id": null, "reason": "RegistrationTimeout", "overdue": true,
        "status_message": "its node did not register in time", "calls": 2,
        "retry_at": "2026-03-01T12:00:30Z", "console": "one\ntwo\u{1b}[2Jthree",
        "tried": [{ "cure": "reboot", "at": "2026-03-01T11:30:00Z", "because": "Xid 79" }],
    }));
    let text = page(&Screen::sized(Some(80), None), &stale, times());
    for part in [
        "State       Terminating  (1h ago)",
        "RegistrationTimeout  its node did not register in time",
        "still costs",
        "asked 2 times  again in 30s",
        "none has registered",
        "reboot",
        "two[2Jthree",
    ] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
    assert!(!text.contains('\u{1b}'), "{text:?}");
}

#[test]
fn who_is_asked_sees_what_is_touched() {
    assert_eq!(
        touched(&instance(json!({}))),
        "h100-0f3k9a2m: Running p5.48xlarge in aws us-east-1/us-east-1a (i-0abc), $98.32 an hour; node \
         h100-0f3k9a2m, which is not drained first; number 3 of pool h100"
    );
}

#[test]
fn an_orphan_is_named_with_its_provider() {
    let named = |text| orphan_of(text).map(|(a, b)| format!("{a} {b}")).map_err(|f| f.exit);
    assert_eq!(named("aws/i-0abc"), Ok("aws i-0abc".to_owned()));
    assert_eq!(named("orphan/gcp/projects/p/i"), Ok("gcp projects/p/i".to_owned()));
    for wrong in ["i-0abc", "aws/", "/i-0abc", ""] {
        assert_eq!(named(wrong), Err(Exit::Usage), "{wrong}");
    }
}
