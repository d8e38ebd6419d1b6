use super::{Conflict, RegisterError, Registrar, register};
use crate::fixture::at;
use crate::health::{
    CheckResult, Event, EventType, Finding, HealthReport, HealthState, Lasts, Metric, Severity,
    System, Verdict, take_in,
};
use crate::id::CommandId;
use crate::ledger::What;
use crate::node::fixture::{acme, node, registration};
use crate::node::{Duty, Flag, Gpu, Held, Hold, Liveness, Node, NodeStatus, Registration};
use proptest::prelude::*;
use std::collections::BTreeMap;
use uuid::Uuid;

/// What a registration says, changed a little.
fn changed(change: impl FnOnce(&mut Registration)) -> Registration {
    let mut said = registration("a");
    change(&mut said);
    said
}

/// The fields somebody is told to correct.
fn complaints(said: &Registration) -> Vec<String> {
    match register(None, said, acme(false), at(0)) {
        Err(RegisterError::Invalid(errors)) => {
            errors.into_iter().map(|error| error.field).collect()
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn cuj_1_a_new_node_is_active_and_nobody_has_judged_it() {
    let new = register(None, &registration("a"), acme(false), at(7)).unwrap();
    let node = &new.node;
    assert!(new.changed);
    assert_eq!((node.id.as_str(), node.tenant.as_str()), ("a", "acme"));
    assert_eq!(node.pool.as_deref(), Some("h100"));
    assert_eq!(node.status(), NodeStatus::Active);
    assert_eq!(
        (node.health.state, node.health.reason.as_str()),
        (HealthState::Unknown, "NoReport")
    );
    assert_eq!((node.registered_at, node.joined_at, node.liveness_since), (at(7), at(7), at(7)));
    assert!(matches!(&new.entries[0].what, What::Registered { message }
        if message == "first registration"));
    assert!(matches!(&new.entries[1].what, What::Status { from, to, .. }
        if from.0 == "UNKNOWN" && to.0 == "ACTIVE"));
}

#[test]
fn what_is_wrong_is_said_by_field_and_all_at_once() {
    type Change = fn(&mut Registration);
    let long = || "x".repeat(257);
    assert_eq!(complaints(&changed(|said| said.node_id.clear())), ["node_id"]);
    assert_eq!(complaints(&changed(|said| said.place.zone = long().into())), ["zone"]);
    assert_eq!(complaints(&changed(|said| said.machine.boot_id = long())), ["boot_id"]);
    let rows: [(Change, &str); 13] = [
        (|said| said.machine.hostname = "a\u{1b}[2J".into(), "hostname"),
        (|said| said.gpus[3].uuid = "a\nb".into(), "gpus[3].uuid"),
        (|said| said.gpus[3].memory_total = -1, "gpus[3].memory_total"),
        (|said| said.gpus[3].index = -1, "gpus[3].index"),
        (|said| said.gpus[3].index = i32::MAX, "gpus[3].index"),
        (|said| said.gpus = vec![Gpu::default(); 65], "gpus"),
        (|said| said.pool = Some("a b".into()), "pool"),
        (|said| said.pool = Some("p".repeat(64)), "pool"),
        (|said| _ = said.labels.insert("pool".into(), "other".into()), "pool"),
        (|said| _ = said.labels.insert("a b".into(), "x".into()), "labels.a b"),
        (|said| _ = said.labels.insert("a".into(), "x y".into()), "labels.a"),
        (|said| said.labels = (0..65).map(|n| (format!("k{n}"), "v".into())).collect(), "labels"),
        (
            |said| said.labels = (0..1_000_000).map(|n| (n.to_string(), String::new())).collect(),
            "labels",
        ),
    ];
    for (change, field) in rows {
        assert_eq!(complaints(&changed(change)), [field]);
    }
    let both = changed(|said| {
        said.node_id = "a b".into();
        said.gpus[0].serial = "x".repeat(300);
    });
    assert_eq!(complaints(&both), ["node_id", "gpus[0].serial"]);
}

#[test]
fn a_device_that_did_not_answer_may_be_all_empty() {
    let said = changed(|said| said.gpus[2] = Gpu::default());
    assert!(register(None, &said, acme(false), at(0)).is_ok());
}

#[test]
fn k3_a_node_does_not_choose_what_the_server_gives() {
    for key in ["tenant", "role", "team", "argosy.dev/trusted", "argosy.x"] {
        let said = changed(|said| _ = said.labels.insert(key.into(), "x".into()));
        assert_eq!(complaints(&said), [format!("labels.{key}")]);
    }
    // Somebody else's key that looks like it is not ours.
    for key in ["argosy-like", "example.com/role", "teams"] {
        let said = changed(|said| _ = said.labels.insert(key.into(), "x".into()));
        assert!(register(None, &said, acme(false), at(0)).is_ok(), "{key}");
    }
    let alpha = Registrar { team: Some("alpha"), ..acme(false) };
    let known = register(None, &registration("a"), alpha, at(0)).unwrap().node;
    assert_eq!(known.labels.get("team"), Some("alpha"));
    // A credential without a team does not take it away.
    let again = register(Some(&known), &registration("a"), acme(true), at(1)).unwrap();
    assert!(!again.changed);
}

#[test]
fn k3_the_pool_is_chosen_once() {
    let by_label = changed(|said| {
        said.pool = None;
        said.labels.insert("pool".into(), "h100".into());
    });
    let known = register(None, &by_label, acme(false), at(0)).unwrap().node;
    assert_eq!(known.pool.as_deref(), Some("h100"));
    let silent = changed(|said| said.pool = None);
    let kept = register(Some(&known), &silent, acme(true), at(1)).unwrap().node;
    assert_eq!(kept.pool.as_deref(), Some("h100"));
    let moved = changed(|said| said.pool = Some("a100".into()));
    let refused = register(Some(&known), &moved, acme(true), at(1)).unwrap_err();
    let text = refused.to_string();
    assert!(matches!(refused, RegisterError::Precondition(_)));
    assert!(
        text.contains("belongs to pool h100") && text.contains("argosy node forget a"),
        "{text}"
    );
    // Who has none may still choose.
    let without = register(None, &silent, acme(false), at(0)).unwrap().node;
    let joined = register(Some(&without), &moved, acme(true), at(1)).unwrap();
    assert_eq!(joined.node.pool.as_deref(), Some("a100"));
    assert!(matches!(&joined.entries[0].what, What::Registered { message }
        if message == "joined pool a100"));
}

#[test]
fn k4_a_terminated_node_does_not_come_back() {
    let mut known = node("a");
    known.duty = Duty::Terminated(hold(false));
    let refused = register(Some(&known), &registration("a"), acme(false), at(9)).unwrap_err();
    assert!(matches!(&refused, RegisterError::Precondition(_)));
    assert!(refused.to_string().contains("was terminated"), "{refused}");
}

#[test]
fn another_tenants_id_is_not_to_be_had_and_nothing_is_said_about_it() {
    let stranger = Registrar { tenant: "other", ..acme(false) };
    let refused = register(Some(&node("a")), &registration("a"), stranger, at(9)).unwrap_err();
    assert_eq!(refused.to_string(), "node id a cannot be used here; choose another one");
}

#[test]
fn the_same_again_changes_nothing_and_what_is_new_is_told() {
    let known = node("a");
    let again = register(Some(&known), &registration("a"), acme(true), at(5)).unwrap();
    assert_eq!((again.changed, again.entries.len()), (false, 0));
    assert_eq!(again.node, known);

    type Change = fn(&mut Registration);
    let rows: [(Change, &str); 9] = [
        (|said| said.machine.kernel_version = "6.2.0".into(), "kernel 6.1.0 -> 6.2.0"),
        (|said| said.machine.agent.clear(), "agent argosy-agent/0.2.0 -> none"),
        (|said| said.gpus.truncate(7), "8 -> 7 GPUs"),
        (|said| said.gpus[0].serial = "new".into(), "other GPUs"),
        (|said| said.gpus[0].memory_total = 1, "other details of its GPUs"),
        (|said| _ = said.labels.insert("rack".into(), "7".into()), "other labels"),
        (|said| said.place.zone = "us-east1-c".into(), "zone us-east1-b -> us-east1-c"),
        (
            |said| said.gpus.iter_mut().for_each(|gpu| gpu.driver_version = "560.2".into()),
            "driver 550.1 -> 560.2",
        ),
        (
            |said| {
                said.machine.boot_id = "boot-2".into();
                said.machine.internal_ip = "10.0.0.9".into();
            },
            "rebooted; address 10.0.0.7 -> 10.0.0.9",
        ),
    ];
    for (change, news) in rows {
        let again = register(Some(&known), &changed(change), acme(true), at(5)).unwrap();
        assert!(again.changed);
        let [entry, ..] = &again.entries[..] else { panic!("{:?}", again.entries) };
        assert!(
            matches!(&entry.what, What::Registered { message } if message == news),
            "{entry:?}"
        );
        let fewer = again.node.gpus.len() < 8;
        let status = if fewer { NodeStatus::Unhealthy } else { NodeStatus::Active };
        assert_eq!((again.node.registered_at, again.node.status()), (at(0), status));
    }
}

#[test]
fn a_machine_that_no_longer_says_who_it_is_stays_who_it_was() {
    let known = node("a");
    let bare = changed(|said| {
        said.machine.machine_id.clear();
        said.machine.boot_id.clear();
    });
    let kept = register(Some(&known), &bare, acme(true), at(5)).unwrap().node;
    assert_eq!(kept.machine.machine_id, "machine-a");
    assert_eq!((kept.machine.boot_id.as_str(), kept.joined_at), ("boot-1", at(0)));
}

/// `machine/gpus`: `m1/ab` has GPUs a and b; `-` is nothing said.
fn machine(text: &str) -> Registration {
    let (machine, gpus) = text.split_once('/').unwrap();
    let said = |text: &str| if text == "-" { String::new() } else { text.to_owned() };
    let gpu = |serial: char| Gpu { serial: serial.to_string(), ..Gpu::default() };
    changed(|new| {
        new.machine.machine_id = said(machine);
        new.gpus = said(gpus).chars().map(gpu).collect();
    })
}

#[test]
fn d6_d13_who_may_have_an_id_that_is_taken() {
    for (old, new, heard, lets) in [
        // The same machine, whatever became of its GPUs.
        ("m1/ab", "m1/ab", true, "in"),
        ("m1/ab", "m1/cd", true, "in"),
        ("m1/ab", "m1/-", false, "in"),
        // D13: two machines at once.
        ("m1/ab", "m2/ab", true, "conflict"),
        ("m1/ab", "m2/cd", true, "conflict"),
        ("m1/ab", "m2/-", true, "conflict"),
        // D6: another machine with a dead one's id; the GPUs moved along, or did not.
        ("m1/ab", "m2/b", false, "in"),
        ("m1/ab", "m2/cd", false, "conflict"),
        ("m1/ab", "m2/-", false, "conflict"),
        // Daemons that do not say which machine they are.
        ("-/ab", "-/ab", true, "in"),
        ("-/ab", "-/b", true, "in"),
        ("-/ab", "-/-", true, "in"),
        ("-/ab", "-/cd", true, "conflict"),
        ("-/ab", "-/cd", false, "in"),
        ("-/ab", "m2/ab", true, "in"),
        ("m1/ab", "-/cd", true, "conflict"),
        ("m1/ab", "-/cd", false, "in"),
    ] {
        let known = register(None, &machine(old), acme(false), at(0)).unwrap().node;
        let outcome = register(Some(&known), &machine(new), acme(heard), at(5));
        let word = match &outcome {
            Ok(_) => "in",
            Err(RegisterError::Conflict(_)) => "conflict",
            Err(other) => panic!("{other}"),
        };
        assert_eq!(word, lets, "{old} then {new}, heard: {heard}");
    }
}

#[test]
fn d13_a_conflict_flags_the_node_once_and_names_both_machines() {
    let known = register(None, &machine("m1/ab"), acme(false), at(0)).unwrap().node;
    let conflict = |known: &Node| -> Conflict {
        match register(Some(known), &machine("m2/cd"), acme(true), at(5)) {
            Err(RegisterError::Conflict(conflict)) => *conflict,
            other => panic!("{other:?}"),
        }
    };
    let first = conflict(&known);
    for part in ["node a is m1", "machine m2", "argosy node forget a"] {
        assert!(first.message.contains(part), "{}", first.message);
    }
    let flagged = first.flagged.unwrap();
    let note = &flagged.flags[&Flag::IdentityConflict];
    assert_eq!((note.since, &note.message), (at(5), &first.message));
    assert_eq!(first.entries.len(), 2);
    let unflagged = Node { flags: BTreeMap::new(), ..flagged.clone() };
    assert_eq!(unflagged, known, "nothing else about it changed");
    let second = conflict(&flagged);
    assert_eq!((second.flagged, second.entries.len()), (None, 0));
}

fn hold(automatic: bool) -> Hold {
    Hold { by: "ann".into(), automatic, reason: "maintenance".into(), at: at(2) }
}

fn fatal() -> (HealthReport, Vec<Verdict>) {
    let event = Event {
        node_time: None,
        gpu_index: 3,
        gpu_uuid: String::new(),
        gpu_serial: String::new(),
        system: System::Driver,
        event_type: EventType::Xid,
        metrics: BTreeMap::from([("xid_code".to_owned(), Metric::Int(79))]),
        message: String::new(),
        raw: "NVRM: Xid (PCI:0000:04:00): 79, GPU has fallen off the bus.".to_owned(),
        recovery_action: None,
        count: 1,
        boot_id: String::new(),
        condition: String::new(),
    };
    let verdict = Verdict {
        severity: Ok(Severity::Unhealthy),
        rule: "fatal-xid".to_owned(),
        policy: "default".to_owned(),
        policy_version: 3,
        message: "GPU has fallen off the bus".to_owned(),
        at_least: Severity::Healthy,
        advised: false,
        lasts: Lasts::UntilReboot,
        inputs: Vec::new(),
    };
    let check = CheckResult {
        name: "gpu".to_owned(),
        state: HealthState::Degraded,
        message: "86 C".to_owned(),
        details: BTreeMap::new(),
    };
    let report = HealthReport {
        sequence: Some(4),
        results: vec![check],
        events: vec![event],
        ..HealthReport::default()
    };
    (report, vec![verdict])
}

#[test]
fn f6_i7_a_reboot_ends_what_ends_at_a_reboot_and_nothing_else() {
    let (report, verdicts) = fatal();
    let mut sick = take_in(&node("a"), &report, &verdicts, at(1)).node.unwrap();
    sick.duty = Duty::Cordoned(hold(false));
    let same_boot = register(Some(&sick), &registration("a"), acme(true), at(50)).unwrap();
    assert!(!same_boot.changed);
    let reboot = changed(|said| said.machine.boot_id = "boot-2".into());
    let after = register(Some(&sick), &reboot, acme(true), at(50)).unwrap();
    let node = after.node;
    assert_eq!(node.joined_at, at(50));
    assert_eq!(node.duty, sick.duty);
    let keys: Vec<_> = node.findings.iter().map(|finding| finding.key.as_str()).collect();
    assert_eq!(keys, ["check/gpu"]);
    assert_eq!(node.health.state, HealthState::Unknown, "it has shown nothing of this boot yet");
    assert!(node.checks.is_empty());
    assert_eq!(node.sightings, sick.sightings);
    assert!(after.entries.iter().any(|entry| matches!(&entry.what,
        What::Cleared { finding, reason }
            if finding == "xid/79/GPU-a-3" && reason == "the node booted again")));
}

fn any_duty() -> impl Strategy<Value = Duty> {
    let draining = |automatic, done| Duty::Draining {
        hold: hold(automatic),
        command: CommandId::new(Uuid::nil()),
        deadline: at(3600),
        done,
    };
    prop_oneof![
        Just(Duty::Active),
        any::<bool>().prop_map(|automatic| Duty::Cordoned(hold(automatic))),
        any::<(bool, bool)>().prop_map(move |(automatic, done)| draining(automatic, done)),
    ]
}

fn any_registration() -> impl Strategy<Value = Registration> {
    let text = || prop_oneof![Just(String::new()), "[a-z0-9.-]{1,12}"];
    let gpus = prop::collection::vec((-1_i32..9, text()), 0..10);
    (text(), text(), text(), gpus, prop::option::of("[a-z]{1,3}"), any::<bool>()).prop_map(
        |(machine_id, boot_id, text, gpus, pool, same)| {
            changed(|said| {
                if !same {
                    said.machine.machine_id = machine_id;
                    said.gpus = gpus
                        .into_iter()
                        .map(|(index, serial)| Gpu { index, serial, ..Gpu::default() })
                        .collect();
                    said.pool = pool;
                }
                said.machine.boot_id = boot_id;
                said.machine.hostname.clone_from(&text);
                said.place.zone = text.into();
            })
        },
    )
}

proptest! {
    #[test]
    fn f6_i7_no_registration_clears_what_was_decided(
        duty in any_duty(),
        sick in any::<bool>(),
        held in any::<bool>(),
        said in prop::collection::vec((any_registration(), any::<bool>()), 1..6),
    ) {
        let mut known = node("a");
        if sick {
            let (report, verdicts) = fatal();
            known = take_in(&known, &report, &verdicts, at(1)).node.unwrap();
        }
        known.duty = duty;
        known.liveness = Liveness::Suspect;
        known.held = held.then(|| Held {
            action: "cordon".into(),
            guard: "breaker".into(),
            reason: "20 of 50".into(),
            since: at(1),
        });
        for (time, (said, heard)) in (10..).zip(said) {
            let Ok(after) = register(Some(&known), &said, acme(heard), at(time)) else { continue };
            let node = after.node;
            prop_assert_eq!(&node.duty, &known.duty);
            prop_assert_eq!(&node.held, &known.held);
            prop_assert!(known.pool.is_none() || node.pool == known.pool);
            prop_assert!(node.checks == known.checks || node.checks.is_empty());
            prop_assert_eq!(&node.sightings, &known.sightings);
            prop_assert_eq!(node.liveness, known.liveness);
            prop_assert_eq!(node.registered_at, known.registered_at);
            prop_assert_eq!(node.report_sequence, known.report_sequence);
            prop_assert_eq!(after.changed, node != known);
            let rebooted = node.machine.boot_id != known.machine.boot_id
                && !known.machine.boot_id.is_empty();
            if !rebooted {
                // What is bad stays as bad; that GPUs are missing may be found or be over.
                let decided = |of: &Node| {
                    let ours = |finding: &&Finding| finding.key != "gpus/missing/node";
                    of.findings.iter().filter(ours).cloned().collect::<Vec<_>>()
                };
                prop_assert_eq!(decided(&node), decided(&known));
                prop_assert_eq!(node.joined_at, known.joined_at);
            }
            // The check's word is not absolved by anything.
            let of_checks = |of: &Node| {
                of.findings.iter().filter(|f| f.key.starts_with("check/")).cloned().collect::<Vec<_>>()
            };
            prop_assert_eq!(of_checks(&node), of_checks(&known));
            known = node;
        }
    }
}
