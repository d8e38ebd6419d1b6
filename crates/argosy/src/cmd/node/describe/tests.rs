use super::*;
use crate::cmd::node::fixture::{HOSTILE, command, harmless, node, screen, times};
use serde_json::json;

#[test]
fn a_page_tells_the_three_facts_and_who_did_what() {
    let node = node(
        "gpu-17",
        json!({
            "status": "DRAINING", "hostname": "gpu-17.dc", "internal_ip": "10.0.0.17",
            "labels": { "rack": "r7" }, "last_report": "2026-01-01T11:59:30Z",
            "metrics": { "cpu_percent": 12.4, "memory_percent": 40.0 },
            "health": {
                "status": "UNHEALTHY", "since": "2026-01-01T11:56:00Z", "reason": "fatal-xid",
                "message": "Xid 79 on GPU 1",
            },
            "duty": {
                "state": "Draining", "by": "alice", "reason": "new fans", "automatic": false,
                "since": "2026-01-01T11:58:00Z", "deadline": "2026-01-01T12:58:00Z",
            },
            "held": {
                "action": "cordon", "guard": "breaker", "reason": "9 of 20 turned bad",
                "since": "2026-01-01T11:57:00Z",
            },
            "flags": [{
                "type": "ClockSkewed", "since": "2026-01-01T11:00:00Z", "message": "4m behind",
            }],
            "flaps": { "count": 2, "hold_until": "2026-01-01T12:10:00Z" },
            "external": {
                "told": "Drain", "failures": 1, "retry_at": "2026-01-01T12:00:30Z",
            },
            "checks": [{
                "name": "nvml", "status": "UNHEALTHY", "message": "a GPU does not answer",
                "since": "2026-01-01T11:56:00Z",
            }],
            "findings": [{
                "node_id": "gpu-17", "key": "xid/79/GPU-1", "severity": "unhealthy",
                "rule": "fatal-xid", "policy": "default", "policy_version": 3,
                "message": "GPU has fallen off the bus", "evidence": "NVRM: Xid (PCI:3b): 79",
                "gpu": "GPU-1", "first_seen": "2026-01-01T11:56:00Z",
                "last_seen": "2026-01-01T11:56:00Z", "count": 1, "ends": "AtReboot",
            }],
        }),
    );
    let commands = [command("c-1", "gpu-17", json!({ "state": "acknowledged" }))];
    let text = page(&screen(None), &node, &commands, times());
    assert_eq!(
        text,
        "\
Node        gpu-17  DRAINING
Pool        h100
Place       gcp  us-east1  us-east1-b  a3-highgpu-8g
Host        gpu-17.dc  10.0.0.17
Agent       navarch
Labels      rack=r7
Registered  5d ago  in service since 2h
Heard       heartbeat 4s ago  report 30s ago
Load        CPU 12%, memory 40%, GPUs 85%, hottest 71C

FACT      IS         SINCE  WHY
Liveness  Fresh      2h     -
Health    UNHEALTHY  4m     fatal-xid: Xid 79 on GPU 1
Duty      Draining   2m     by alice: new fans; deadline in 58m

Held        cordon is due, held by breaker:  9 of 20 turned bad  (3m ago)
Flag        ClockSkewed:  4m behind  (1h ago)
Flapping    recovered and fell ill again 2 times  held down, in 10m
Workloads   told to drain  failed once since, again in 30s

FINDINGS
  FINDING       SEVERITY   GPU    SEEN  TIMES  RULE                    ENDS    MESSAGE
  xid/79/GPU-1  unhealthy  GPU-1  4m    1      fatal-xid (default v3)  reboot  GPU has fallen off the bus [NVRM: Xid (PCI:3b): 79]

CHECKS
  CHECK  IS         SINCE  MESSAGE
  nvml   UNHEALTHY  4m     a GPU does not answer

GPUS
  GPU  MODEL  UTIL  MEMORY     TEMP  POWER  DRIVER  UUID
  0    H100   80%   40/80 GiB  61C   500W   550.54  GPU-0
  1    H100   90%   40/80 GiB  71C   500W   550.54  GPU-1

COMMANDS
  COMMAND  IS            AGE  BY     REASON    ID
  DRAIN    acknowledged  2m   alice  new fans  c-1
"
    );
}

#[test]
fn a_well_node_has_a_short_page() {
    let text = page(&screen(None), &node("gpu-1", json!({ "gpus": [] })), &[], times());
    for absent in ["FINDINGS", "CHECKS", "GPUS", "COMMANDS", "Held", "Flag", "Workloads", "Load"] {
        assert!(!text.contains(absent), "{text}");
    }
    assert!(text.contains("Duty      Active"), "{text}");
}

#[test]
fn a_page_fits_the_terminal_and_loses_nothing() {
    let message = "the fan of GPU 3 turns too slowly and somebody should look at it soon";
    let checks = json!([{
        "name": "fans", "status": "DEGRADED", "message": message, "since": "2026-01-01T11:00:00Z",
    }]);
    let text = page(&screen(Some(60)), &node("a", json!({ "checks": checks })), &[], times());
    let part = text.split("CHECKS").nth(1).unwrap().split("GPUS").next().unwrap();
    let words: Vec<&str> = part.split_whitespace().collect();
    for word in message.split_whitespace() {
        assert!(words.contains(&word), "{text}");
    }
    for line in part.lines() {
        assert!(line.chars().count() <= 60, "{line}");
    }
}

#[test]
fn j14_a_page_of_hostile_texts_is_harmless() {
    let hostile = json!({
        "pool": HOSTILE, "hostname": HOSTILE, "kernel_version": HOSTILE, "boot_id": HOSTILE,
        "labels": { HOSTILE: HOSTILE }, "status": "CORDONED",
        "health": { "status": "UNHEALTHY", "since": HOSTILE, "reason": HOSTILE, "message": HOSTILE },
        "duty": { "state": "Cordoned", "by": HOSTILE, "reason": HOSTILE, "since": HOSTILE },
        "held": { "action": HOSTILE, "guard": HOSTILE, "reason": HOSTILE, "since": HOSTILE },
        "flags": [{ "type": HOSTILE, "since": HOSTILE, "message": HOSTILE }],
        "checks": [{ "name": HOSTILE, "status": "UNKNOWN", "message": HOSTILE, "since": HOSTILE }],
        "findings": [{
            "node_id": HOSTILE, "key": HOSTILE, "severity": null, "rule": HOSTILE, "policy": HOSTILE,
            "message": HOSTILE, "evidence": HOSTILE, "gpu": HOSTILE, "first_seen": HOSTILE,
            "last_seen": HOSTILE, "count": 1, "ends": "AtTime", "ends_at": HOSTILE,
        }],
        "gpus": [{ "index": 0, "name": HOSTILE, "uuid": HOSTILE, "serial": HOSTILE }],
        "external": { "told": HOSTILE, "failures": 1, "retry_at": HOSTILE },
    });
    let told =
        json!({ "reason": HOSTILE, "message": HOSTILE, "by": HOSTILE, "issued_at": HOSTILE });
    let commands = [command(HOSTILE, HOSTILE, told)];
    for width in [None, Some(80)] {
        harmless(&page(&screen(width), &node(HOSTILE, hostile.clone()), &commands, times()));
    }
}

#[test]
fn bytes_are_read_as_gib() {
    let rows = [(0, "0"), (1 << 30, "1"), (85_899_345_920, "80"), (1_610_612_736, "1.5")];
    for (bytes, expected) in rows {
        assert_eq!(gib(bytes), expected);
    }
    assert_eq!(gib(u64::MAX), "17179869184");
}
