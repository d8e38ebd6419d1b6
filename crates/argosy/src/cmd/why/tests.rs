use super::*;
use crate::cmd::node::fixture::{HOSTILE, harmless, screen, times};

fn story(of: serde_json::Value) -> Story {
    serde_json::from_value(of).unwrap()
}

fn fallen_off() -> Story {
    story(json!({
        "kind": "Why", "node_id": "gpu-17", "status": "CORDONED",
        "summary": "gpu-17 is CORDONED because rule fatal-xid found Xid 79 on GPU 3",
        "steps": [
            {
                "at": "2026-01-01T11:56:00Z", "revision": 1042, "type": "event",
                "message": "Xid 79 on GPU 3",
                "evidence": ["NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus."],
            },
            {
                "at": "2026-01-01T11:56:00Z", "revision": 1042, "type": "verdict",
                "message": "rule fatal-xid says unhealthy", "evidence": ["policy default version 3"],
            },
            {
                "at": "2026-01-01T11:56:00Z", "revision": 1042, "type": "health",
                "message": "HEALTHY to UNHEALTHY",
            },
            {
                "at": "2026-01-01T11:56:01Z", "revision": 1043, "type": "decision",
                "message": "cordon", "evidence": ["pool h100: 1 of 6 in use"],
            },
            {
                "at": "2026-01-01T11:56:01Z", "revision": 1043, "type": "command",
                "message": "CORDON issued by argosy",
            },
            {
                "at": "2026-01-01T11:56:04Z", "revision": 1051, "type": "result",
                "message": "CORDON acknowledged",
            },
        ],
        "next": ["reboot the node, or run `argosy node diagnose gpu-17`"],
    }))
}

#[test]
fn the_chain_is_a_story_that_stands_in() {
    assert_eq!(
        tell(&screen(None), &fallen_off(), times()),
        "\
gpu-17 is CORDONED because rule fatal-xid found Xid 79 on GPU 3

   4m  r1042  event: Xid 79 on GPU 3
                | NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.
   4m  r1042    verdict: rule fatal-xid says unhealthy
                  | policy default version 3
   4m  r1042      health: HEALTHY to UNHEALTHY
3m59s  r1043        decision: cordon
                      | pool h100: 1 of 6 in use
3m59s  r1043          command: CORDON issued by argosy
3m56s  r1051            result: CORDON acknowledged

What you can do:
  - reboot the node, or run `argosy node diagnose gpu-17`
"
    );
}

#[test]
fn a_story_fits_the_terminal_and_loses_no_word() {
    let (wide, narrow) = (tell(&screen(None), &fallen_off(), times()), 50);
    let text = tell(&screen(Some(narrow)), &fallen_off(), times());
    for line in text.lines() {
        assert!(line.chars().count() <= usize::from(narrow), "{line}");
    }
    for word in wide.split_whitespace() {
        assert!(text.contains(word), "{word} is lost\n{text}");
    }
}

#[test]
fn a_node_with_nothing_to_tell_has_a_sentence() {
    let quiet = story(json!({
        "kind": "Why", "node_id": "a", "status": "ACTIVE", "summary": "a is ACTIVE", "steps": [],
    }));
    assert_eq!(tell(&screen(None), &quiet, times()), "a is ACTIVE\n");
}

#[test]
fn j14_a_story_of_hostile_texts_is_harmless() {
    let hostile = story(json!({
        "kind": "Why", "node_id": HOSTILE, "status": "UNHEALTHY", "summary": HOSTILE,
        "steps": [{
            "at": HOSTILE, "revision": 1, "type": HOSTILE, "message": HOSTILE,
            "evidence": [HOSTILE, HOSTILE],
        }],
        "next": [HOSTILE],
    }));
    for width in [None, Some(60)] {
        harmless(&tell(&screen(width), &hostile, times()));
    }
}

#[test]
fn a_cluster_names_the_adapter_that_holds_it_up() {
    let condition = |kind: &str, status: &str, message: &str| {
        json!({
            "type": kind, "status": status, "reason": "QuotaExceeded", "message": message,
            "observed_generation": 1, "created_time": "", "last_updated_time": "",
            "last_transition_time": "2026-01-01T11:58:00Z",
        })
    };
    let item: Resource = serde_json::from_value(json!({
        "id": "u", "uid": "u", "kind": "Cluster", "name": "alpha", "href": "/a", "spec": {},
        "generation": 1, "revision": 7,
        "status": {
            "phase": "Not Ready", "lastTransitionTime": "",
            "conditions": [
                condition("Reconciled", "False", "machines failed"),
                condition("Healthy", "True", ""),
            ],
        },
        "created_at": "", "updated_at": "", "created_time": "", "updated_time": "",
        "created_by": "me", "updated_by": "me",
    }))
    .unwrap();
    let line = |adapter: &str, phase: &str, message: &str| {
        json!({
            "id": "", "cluster_id": "u", "adapter_name": adapter, "phase": phase, "message": message,
            "last_transition_time": "2026-01-01T11:58:00Z", "created_at": "",
        })
    };
    let mut list = serde_json::to_value(StatusList::default()).unwrap();
    list["statuses"] = json!([
        line("dns", "Complete", "fine"),
        line("machines", "Failed", "16 GPUs wanted, 8 left"),
    ]);
    let list: StatusList = serde_json::from_value(list).unwrap();
    assert_eq!(
        of_resource(&screen(None), &Noun::CLUSTERS, "alpha", &item, &list, times()),
        "\
cluster alpha is Not Ready: machines failed

  adapter machines is Failed, 2m ago: 16 GPUs wanted, 8 left
  Reconciled=False, 2m ago: QuotaExceeded: machines failed

What you can do:
  - argosy cluster statuses alpha shows every adapter
"
    );
}
