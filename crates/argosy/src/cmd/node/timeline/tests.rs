use super::*;
use crate::cmd::node::fixture::{HOSTILE, harmless, screen, times};

fn entries(of: Value) -> Vec<LedgerEntry> {
    serde_json::from_value(of).unwrap()
}

#[test]
fn events_are_a_timeline_with_verdicts() {
    let entries = entries(json!([
        {
            "sequence": 4, "revision": 90, "at": "2026-01-01T11:55:00Z", "node_id": "a",
            "type": "event", "message": "thermal on GPU 0",
            "event": {
                "event_type": "thermal", "gpu_index": 0, "metrics": { "temperature": 91 },
                "message": "GPU 0 is at 91 C", "count": 3,
            },
            "verdict": {
                "policy": "default", "policy_version": 3, "rule": "hot", "severity": "degraded",
            },
        },
        {
            "sequence": 5, "revision": 91, "at": "2026-01-01T11:56:00Z", "node_id": "a",
            "type": "event", "message": "xid 79",
            "event": {
                "event_type": "xid", "gpu_index": 3, "metrics": { "xid_code": 79 },
                "message": "GPU has fallen off the bus", "raw": "NVRM: Xid (PCI:0000:3b:00): 79",
                "count": 1,
            },
            "verdict": {
                "policy": "default", "policy_version": 3, "rule": "fatal-xid",
                "severity": "unhealthy", "message": "fallen off the bus",
            },
        },
        {
            "sequence": 6, "revision": 92, "at": "2026-01-01T11:57:00Z", "node_id": "a",
            "type": "event", "message": "power on the node",
            "event": { "event_type": "power", "gpu_index": -1, "count": 1 },
            "verdict": {
                "policy": "mine", "policy_version": 1, "rule": "p", "error": "no such key: watts",
            },
        },
    ]));
    assert_eq!(
        event_lines(&entries, times()).render(&screen(None), true),
        "\
AGE  REV  EVENT       GPU  VERDICT      RULE                    MESSAGE
5m   90   thermal x3  0    degraded     hot (default v3)        GPU 0 is at 91 C
4m   91   xid 79      3    unhealthy    fatal-xid (default v3)  GPU has fallen off the bus; NVRM: Xid (PCI:0000:3b:00): 79
3m   92   power       -    rule failed  p (mine v1)             no such key: watts
"
    );
}

#[test]
fn history_has_every_kind_of_line() {
    let entries = entries(json!([
        {
            "sequence": 1, "revision": 8, "at": "2026-01-01T10:00:00Z", "node_id": "a",
            "type": "registered", "message": "first registration",
        },
        {
            "sequence": 2, "revision": 9, "at": "2026-01-01T11:59:00Z", "node_id": "a",
            "type": "decision", "message": "cordon held by budget", "action": "cordon",
            "held_by": "budget",
        },
    ]));
    assert_eq!(
        history_lines(&entries, times()).render(&screen(None), true),
        "\
AGE  REV  SEQ  WHAT        MESSAGE
2h   8    1    registered  first registration
1m   9    2    decision    cordon held by budget
"
    );
}

#[test]
fn only_what_is_young_enough_is_shown() {
    let at = |at: &str| LedgerEntry { at: at.to_owned(), ..LedgerEntry::default() };
    let oldest = Some("2026-01-01T11:00:00Z".parse().unwrap());
    assert!(young(&at("2026-01-01T11:00:00Z"), oldest));
    assert!(!young(&at("2026-01-01T10:59:59Z"), oldest));
    assert!(young(&at("1999-01-01T10:59:59Z"), None));
}

#[test]
fn j14_an_event_of_hostile_texts_is_harmless() {
    let entries = entries(json!([{
        "sequence": 1, "revision": 1, "at": HOSTILE, "node_id": HOSTILE, "type": HOSTILE,
        "message": HOSTILE,
        "event": {
            "event_type": HOSTILE, "gpu_index": -1, "gpu_uuid": HOSTILE, "message": HOSTILE,
            "metrics": { "xid_code": HOSTILE }, "raw": HOSTILE, "count": 1,
        },
        "verdict": { "policy": HOSTILE, "policy_version": 1, "rule": HOSTILE, "error": HOSTILE },
    }]));
    for width in [None, Some(80)] {
        harmless(&event_lines(&entries, times()).render(&screen(width), true));
        harmless(&history_lines(&entries, times()).wrapping().render(&screen(width), true));
    }
}
