use super::*;
use argosy_core::ledger::Entry;
use serde_json::json;

/// The sentence of a line, and the members that are there beside it.
#[track_caller]
fn check(what: Value, message: &str, members: &[&str]) {
    let mut document = json!({ "at": "2026-01-01T00:00:00Z", "node": "gpu-1" });
    for (name, value) in what.as_object().unwrap() {
        document[name] = value.clone();
    }
    let entry: Entry = serde_json::from_value(document).unwrap();
    let line = super::entry(Noted { sequence: 3, revision: 9, entry });
    assert_eq!(
        (line.message.as_str(), line.kind.as_str()),
        (message, what["type"].as_str().unwrap())
    );
    let shown = serde_json::to_value(&line).unwrap();
    let always = ["at", "message", "node_id", "revision", "sequence", "type"];
    let more: Vec<&str> = shown
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .filter(|m| !always.contains(m))
        .collect();
    assert_eq!(more, members, "{shown}");
    assert_eq!(serde_json::from_value::<api::LedgerEntry>(shown).unwrap(), line);
}

#[test]
fn every_line_is_a_sentence_with_what_it_is_made_of() {
    let event = json!({ "gpu_index": 3, "gpu_uuid": "GPU-a", "system": "DCGM_HEALTH_WATCH_DRIVER",
                        "event_type": "xid", "metrics": { "xid_code": 79 }, "raw": "NVRM: Xid", "count": 4 });
    let verdict = |rule: &str, severity: Value, error: Value| json!({ "policy": "default", "policy_version": 2, "rule": rule, "severity": severity, "error": error });
    let of = |verdict: Value| json!({ "type": "event", "event": event, "verdict": verdict, "finding": "xid/79/GPU-a" });
    let parts = ["event", "finding", "verdict"];
    check(
        of(verdict("fatal", json!("unhealthy"), json!(null))),
        "xid 79 on GPU 3 (4 times): unhealthy by rule fatal",
        &parts,
    );
    check(
        of(verdict("typo", json!(null), json!("no such key"))),
        "xid 79 on GPU 3 (4 times): rule typo failed: no such key",
        &parts,
    );
    check(
        of(verdict("", json!("healthy"), json!(null))),
        "xid 79 on GPU 3 (4 times): no rule matched",
        &parts,
    );
    check(
        json!({ "type": "registered", "message": "first registration" }),
        "first registration",
        &[],
    );
    check(json!({ "type": "registration_refused", "message": "taken" }), "taken", &[]);
    check(
        json!({ "type": "check", "name": "nvml", "from": "Healthy", "to": "Unhealthy", "message": "gone" }),
        "check nvml HEALTHY -> UNHEALTHY: gone",
        &["from", "subject", "to"],
    );
    check(
        json!({ "type": "cleared", "finding": "k", "reason": "rebooted" }),
        "finding k ended: rebooted",
        &["finding"],
    );
    check(
        json!({ "type": "health", "from": "Healthy", "to": "Unhealthy", "reason": "fatal", "findings": ["k"] }),
        "health HEALTHY -> UNHEALTHY: fatal",
        &["findings", "from", "to"],
    );
    check(
        json!({ "type": "liveness", "from": "Fresh", "to": "Suspect", "reason": "silent for 26 s" }),
        "liveness Fresh -> Suspect: silent for 26 s",
        &["from", "to"],
    );
    check(
        json!({ "type": "status", "from": "ACTIVE", "to": "CORDONED", "reason": "ada" }),
        "ACTIVE -> CORDONED: ada",
        &["from", "to"],
    );
    check(
        json!({ "type": "decision", "action": "cordon", "held_by": "budget", "reason": "full", "budget": "2/2" }),
        "cordon is held by budget: full",
        &["action", "budget", "held_by"],
    );
    check(
        json!({ "type": "decision", "action": "cordon", "reason": "Xid 79", "budget": "1/2" }),
        "decided to cordon: Xid 79",
        &["action", "budget"],
    );
    check(
        json!({ "type": "command", "id": "0195a000-0000-7000-8000-000000000001", "kind": "CORDON",
                "state": "completed", "outcome": "Completed", "by": "ada", "message": "" }),
        "CORDON by ada completed",
        &["command"],
    );
    check(
        json!({ "type": "external", "system": "slurm", "what": "drain", "ok": false, "message": "timeout" }),
        "slurm could not be told to drain: timeout",
        &["action", "ok", "subject"],
    );
    check(
        json!({ "type": "flag", "flag": "Noisy", "raised": true, "message": "600 events" }),
        "flag Noisy was raised: 600 events",
        &["ok", "subject"],
    );
}

#[test]
fn an_event_that_was_shown_can_be_asked_about() {
    let event: Event = serde_json::from_value(json!({
        "node_time": "2026-01-01T00:00:00Z", "gpu_index": 3, "gpu_uuid": "GPU-a", "gpu_serial": "1650",
        "system": "DCGM_HEALTH_WATCH_MEM", "event_type": "ecc_dbe",
        "metrics": { "a": 1, "b": 1.5, "c": true, "d": "text" },
        "message": "m", "raw": "r", "recovery_action": 2, "count": 7,
    }))
    .unwrap();
    let Value::Object(shown) = serde_json::to_value(event_wire(&event)).unwrap() else { panic!() };
    assert_eq!(super::event(shown, "event"), Ok(event));
}

#[test]
fn the_reference_lists_the_words_there_are() {
    let types: Vec<&str> = EventType::ALL.iter().map(|kind| kind.as_str()).collect();
    let systems: Vec<&str> = System::ALL.iter().map(|system| system.as_str()).collect();
    assert_eq!((types.as_slice(), systems.as_slice()), (api::EVENT_TYPES, api::SYSTEMS));
}
