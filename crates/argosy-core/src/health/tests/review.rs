//! What a reviewer made a node say, and what we make of it now.

use super::*;
use crate::health::{Condition, Ends, GPUS_MISSING, RECOVERY, aged, thinned};
use crate::node::fixture::{acme, registration};
use crate::node::{Registration, register};

/// A report of an agent that goes by the names it was told.
fn of_told(text: &str) -> HealthReport {
    let told = ["boot", "nvml", "xid"].map(str::to_owned).to_vec();
    HealthReport { told: Some(told), ..report(text).0 }
}

/// The node after a report of now.
fn after(node: &Node, report: &HealthReport, verdicts: &[Verdict], now: i64) -> Node {
    take_in(node, report, verdicts, at(now)).node.unwrap_or_else(|| node.clone())
}

fn registers(node: &Node, change: impl Fn(&mut Registration), now: i64) -> Node {
    let mut said = registration("a");
    change(&mut said);
    register(Some(node), &said, acme(false), at(now)).unwrap().node
}

fn boots(node: &Node, now: i64) -> Node {
    registers(node, |said| said.machine.boot_id = "boot-2".to_owned(), now)
}

#[test]
fn r2_n13_health_is_unknown_until_a_complete_report_of_this_boot() {
    let new = node("a");
    assert_eq!((line(&new), new.status().as_str()), ("UNKNOWN/NoReport []".to_owned(), "ACTIVE"));
    let node = after(&new, &of_told("boot=H nvml=H xid=H"), &[], 10);
    assert_eq!((line(&node), node.is_well()), ("HEALTHY/NoFindings []".to_owned(), true));
    let booted = boots(&node, 20);
    assert_eq!((line(&booted), booted.is_well()), ("UNKNOWN/NoReport []".to_owned(), false));
    assert!(booted.checks.is_empty(), "they were of another boot");
    for (text, expected) in [
        ("", "UNKNOWN/NoReport []"),
        ("boot=H nvml=H", "UNKNOWN/NoReport []"),
        ("boot=H nvml=H xid=?", "UNKNOWN/NoReport []"),
        ("boot=H nvml=U", "UNHEALTHY/nvml [check/nvml]"),
        ("boot=H nvml=D", "UNKNOWN/NoReport [check/nvml]"),
        ("boot=H nvml=H xid=H more=?", "HEALTHY/NoFindings []"),
        ("boot=H nvml=D xid=H", "DEGRADED/nvml [check/nvml]"),
    ] {
        assert_eq!(line(&after(&booted, &of_told(text), &[], 30)), expected, "{text}");
    }
    // An agent with names of its own says all it has each time.
    assert_eq!(line(&after(&booted, &report("gpu=H").0, &[], 30)), "HEALTHY/NoFindings []");
    // The same boot again, with nothing new, changes nothing.
    let again = register(Some(&node), &registration("a"), acme(false), at(20)).unwrap();
    assert!(!again.changed);
    // Without a boot id each registration may be a boot.
    let unnamed = registers(&node, |said| said.machine.boot_id.clear(), 20);
    assert_eq!(unnamed.machine.boot_id, "boot-1", "it stays the boot that it was");
}

#[test]
fn r2_n13_a_fatal_finding_ends_with_the_boot_and_the_node_is_not_well_by_that() {
    let sick = told(proven(), &["!79@3=U", "gpu=D"]);
    let booted = boots(&sick, 60);
    assert_eq!(line(&booted), "UNKNOWN/NoReport [check/gpu]");
    assert_eq!(booted.flaps.recovered_at, None);
    let shown = after(&booted, &of_told("gpu=H boot=H nvml=H xid=H"), &[], 90);
    assert_eq!(
        (line(&shown), shown.flaps.recovered_at),
        ("HEALTHY/NoFindings []".to_owned(), Some(at(90)))
    );
}

#[test]
fn r2_n13_the_server_knows_how_many_gpus_a_node_must_have() {
    let node = proven();
    assert_eq!(node.expected_gpus.len(), 8);
    let fewer = registers(&node, |said| _ = said.gpus.remove(3), 20);
    assert_eq!(line(&fewer), format!("UNHEALTHY/{GPUS_MISSING} [gpus/missing/node]"));
    assert_eq!(fewer.health.message, "7 of 8 GPUs registered; missing: a-3");
    // Whatever its checks say, and after a boot, too.
    let report = of_told("boot=H nvml=H xid=H");
    let fewer = after(&fewer, &report, &[], 30);
    assert_eq!(fewer.health.state, HealthState::Unhealthy);
    let booted = registers(
        &fewer,
        |said| {
            said.gpus.remove(3);
            said.machine.boot_id = "boot-2".to_owned();
        },
        40,
    );
    assert_eq!(booted.health.state, HealthState::Unhealthy);
    // All are back, or one in its place is.
    for serial in ["a-3", "spare"] {
        let back = registers(&booted, |said| said.gpus[3].serial = serial.to_owned(), 50);
        assert_eq!(line(&after(&back, &report, &[], 60)), "HEALTHY/NoFindings []", "{serial}");
    }
    // An operator says that it is to have no more.
    let accepted = absolve(&booted, &Absolution::Operator("ann".into()), at(50)).node.unwrap();
    assert_eq!(line(&after(&accepted, &report, &[], 60)), "HEALTHY/NoFindings []");
    // An agent that waits for its driver has none at first; if its report is complete, it has none.
    let none = registers(&node, |said| said.gpus.clear(), 20);
    assert_eq!(line(&none), "UNKNOWN/NoReport []");
    assert_eq!(after(&none, &report, &[], 30).health.reason, GPUS_MISSING);
}

#[test]
fn r2_n14_a_flood_is_thinned_by_badness_and_never_below_one_of_each_kind() {
    // The judged part of a report, as `code@gpu=letter` by line.
    let flood = |words: &str| {
        let (mut report, mut verdicts) = report(words);
        report = report.summarised();
        assert_eq!(report.events.len(), verdicts.len(), "each word is of another kind");
        let gone = thinned(&mut report, &mut verdicts, 3);
        let kept =
            report.events.iter().map(|event| format!("{}@{}", event.code(), event.gpu_index));
        (kept.collect::<Vec<_>>().join(" "), gone)
    };
    let mild = "!63@0=D !63@1=D !63@2=D !63@3=D";
    assert_eq!(flood(mild), ("63@0 63@1 63@2".to_owned(), 1));
    assert_eq!(flood(&format!("!13@0=H !31@0=H {mild} !79@7=U")).0, "13@0 31@0 63@0 79@7");
    assert_eq!(
        flood(&format!("{mild} !79@5=U !79@6=U !79@7=U !48@1=E")).0,
        "63@0 79@5 79@6 79@7 48@1"
    );
    assert_eq!(flood("!63@0=D !63@1=D"), ("63@0 63@1".to_owned(), 0));
    // What the reviewer sent: 544 harmless ones of 4 kinds on 8 GPUs, then one that is not.
    let mut sent = HealthReport::default();
    for turn in 0..544 {
        sent.events.push(xid(60 + turn % 4, i32::try_from(turn % 8).unwrap()));
    }
    sent.events.push(xid(79, 7));
    let mut kept = sent.summarised();
    assert!(kept.events.iter().any(|event| event.code() == 79));
    assert_eq!(kept.events.iter().map(|event| event.count).sum::<u32>(), 545, "none is uncounted");
    let judge = |event: &Event| verdict("x", if event.code() == 79 { "U" } else { "D" });
    let mut verdicts: Vec<Verdict> = kept.events.iter().map(judge).collect();
    thinned(&mut kept, &mut verdicts, 5);
    assert_eq!((kept.events.len(), kept.events.last().unwrap().code()), (5, 79));
}

/// A GPU that gets hot, as an agent tells it that knows conditions.
fn hot() -> (Event, Verdict) {
    let event = Event {
        event_type: EventType::Thermal,
        metrics: BTreeMap::from([("temperature".to_owned(), Metric::Int(96))]),
        condition: "temperature".to_owned(),
        raw: String::new(),
        ..xid(0, 3)
    };
    (event, verdict("hot", "T"))
}

fn stands(name: &str, holds: bool) -> HealthReport {
    let condition = Condition { gpu: "GPU-a-3".to_owned(), name: name.to_owned(), holds };
    HealthReport { conditions: vec![condition], ..HealthReport::default() }
}

#[test]
fn r2_n17_a_condition_lasts_until_it_is_over_and_no_timer_ends_it() {
    let (event, verdict) = hot();
    let report = HealthReport { events: vec![event], ..HealthReport::default() };
    let sick = after(&proven(), &report, &[verdict], 10);
    assert_eq!(line(&sick), "UNHEALTHY/rule-hot [thermal/temperature/GPU-a-3]");
    assert_eq!(sick.findings[0].ends, Ends::WhenOver);
    assert_eq!(expire(&sick, at(1_000_000)), None, "at 96 degrees it is not well");
    for (report, left) in [
        (stands("temperature", true), "UNHEALTHY"),
        (stands("nvlinks_down", false), "UNHEALTHY"),
        (stands("temperature", false), "HEALTHY"),
    ] {
        assert_eq!(after(&sick, &report, &[], 20).health.state.as_str(), left);
    }
    // It is told anew after a boot, if it still holds.
    assert!(boots(&sick, 30).findings.is_empty());
    // Of an agent that does not know conditions it is a time, as ever.
    let (event, verdict) = hot();
    let old = Event { condition: String::new(), ..event };
    let report = HealthReport { events: vec![old], ..HealthReport::default() };
    let sick = after(&proven(), &report, &[verdict], 10);
    assert_eq!(sick.findings[0].ends, Ends::At(at(70)));
}

#[test]
fn r2_n18_a_rule_that_fails_makes_nothing_milder() {
    let sick = told(proven(), &["!79@3=F"]);
    assert_eq!(line(&sick), "UNHEALTHY/rule-79 [xid/79/GPU-a-3]");
    let message = &sick.health.message;
    assert!(
        message.contains("failed: no such key") && message.contains("driver: reset"),
        "{message}"
    );
    assert_eq!(sick.findings[0].ends, Ends::AtReboot);
}

#[test]
fn r2_n19_reports_that_stop_coming_age_into_unknown() {
    let well = told(node("a"), &["gpu=H"]);
    let old = aged(&well, at(300)).unwrap().node.unwrap();
    assert_eq!(
        (line(&old), old.status().as_str()),
        ("UNKNOWN/ReportsMissing []".to_owned(), "ACTIVE")
    );
    assert!(!old.is_well() && old.evidence.is_missing());
    assert_eq!(aged(&old, at(310)), None, "that is known");
    assert_eq!(line(&after(&old, &report("gpu=?").0, &[], 310)), "UNKNOWN/ReportsMissing []");
    assert_eq!(line(&after(&old, &report("gpu=H").0, &[], 310)), "HEALTHY/NoFindings []");
    // What was found is not forgotten for it.
    let sick = told(node("a"), &["gpu=U"]);
    assert_eq!(line(&aged(&sick, at(300)).unwrap().node.unwrap()), "UNHEALTHY/gpu [check/gpu]");
    // What never came cannot stop.
    assert_eq!(aged(&node("a"), at(300)), None);
}

#[test]
fn r2_n26_a_warning_does_not_end_with_the_worse_that_came_after_it() {
    let worse = told(proven(), &["!92@3=D", "!92@3=T"]);
    assert_eq!(line(&worse), "UNHEALTHY/rule-92 [xid/92/GPU-a-3]");
    let warned = expire(&worse, at(90)).unwrap().node.unwrap();
    assert_eq!(line(&warned), "DEGRADED/rule-92 [xid/92/GPU-a-3]");
    assert_eq!((warned.findings[0].count, warned.findings[0].ends), (2, Ends::At(at(10 + 3600))));
    assert_eq!(line(&expire(&warned, at(3610)).unwrap().node.unwrap()), "HEALTHY/NoFindings []");
    // The last of its kind counts, below the worse, too; and a boot ends only what ends at one.
    let both = told(proven(), &["!92@3=D", "!92@3=U", "!92@3=D"]);
    let booted = boots(&both, 100);
    assert_eq!(booted.findings[0].ends, Ends::At(at(30 + 3600)));
    // An operator ends all of it.
    let absolved = absolve(&both, &Absolution::Operator("ann".into()), at(100)).node.unwrap();
    assert!(absolved.findings.is_empty());
}

#[test]
fn r2_n30_what_is_of_an_earlier_boot_is_history() {
    let of = |boot: &str, letter: &str, node: &Node| {
        let event = Event { boot_id: boot.to_owned(), ..xid(79, 2) };
        let report = HealthReport { events: vec![event], ..HealthReport::default() };
        let taken = take_in(node, &report, &[verdict("79", letter)], at(50));
        assert_eq!(taken.entries[0].what.kind(), "event", "it is written down");
        taken.node.unwrap()
    };
    let booted = boots(&told(node("a"), &["gpu=H"]), 40);
    let booted = after(&booted, &report("gpu=H").0, &[], 45);
    let earlier = of("boot-1", "U", &booted);
    assert_eq!(line(&earlier), "HEALTHY/NoFindings []");
    assert_eq!(earlier.sightings[0].times.len(), 1, "it counts");
    assert_eq!(of("boot-2", "U", &booted).health.state, HealthState::Unhealthy);
    assert_eq!(of("", "U", &booted).health.state, HealthState::Unhealthy, "as older agents say it");
    // What does not end with a boot outlasts it.
    assert_eq!(of("boot-1", "T", &booted).health.state, HealthState::Unhealthy);
}

#[test]
fn r2_n31_advice_ends_when_the_driver_takes_it_back() {
    let change = |to: &str| Event {
        message: format!("GPU recovery action changed from 0x0 (None) to {to}"),
        raw: String::new(),
        ..xid(154, 3)
    };
    let report = |event| HealthReport { events: vec![event], ..HealthReport::default() };
    let sick =
        after(&proven(), &report(change("0x1 (GPU Reset Required)")), &[verdict("154", "A")], 10);
    assert_eq!(
        (sick.findings[0].ends, sick.findings[0].condition.as_str()),
        (Ends::WhenOver, RECOVERY)
    );
    assert!(sick.findings[0].ends_when().starts_with("the driver no longer asks"));
    let healed = after(&sick, &report(change("0x0 (None)")), &[verdict("154", "H")], 20);
    assert_eq!(line(&healed), "HEALTHY/NoFindings []");
    // Or as NVML says it, in the round of checks.
    assert_eq!(line(&after(&sick, &stands(RECOVERY, false), &[], 20)), "HEALTHY/NoFindings []");
    // A fatal fault is not the driver's advice alone.
    let fatal = told(proven(), &["!79@3=U"]);
    assert_eq!(after(&fatal, &stands(RECOVERY, false), &[], 20).findings.len(), 1);
}

#[test]
fn r2_n38_what_only_a_new_gpu_cures_outlasts_boots_and_diagnostics() {
    let sick = told(proven(), &["!79@3=U", "!79@3=R"]);
    assert_eq!(sick.findings[0].ends, Ends::WhenReplaced);
    let booted = boots(&sick, 60);
    assert_eq!(booted.health.state, HealthState::Unhealthy);
    let command = CommandId::new(Uuid::nil());
    let tested = Tested { command, test: "all".to_owned(), gpus: None };
    assert_eq!(absolve(&booted, &Absolution::Diagnostic(tested), at(70)).node, None);
    let replaced = registers(
        &booted,
        |said| {
            said.gpus[3].uuid = "GPU-new".to_owned();
            said.gpus[3].serial = "new".to_owned();
        },
        80,
    );
    assert!(replaced.findings.is_empty(), "{:?}", replaced.findings);
    // One that only fell off the bus was not replaced.
    let lost = registers(&booted, |said| _ = said.gpus.remove(3), 80);
    assert_eq!(lost.findings.len(), 2);
}

#[test]
fn r2_n39_faults_of_one_kind_are_told_apart() {
    let of = |event_type, metrics: &[(&str, Metric)]| {
        let metrics = metrics.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
        Event { event_type, metrics: metrics.collect(), ..xid(0, 3) }.key_of(&node("a"))
    };
    let word = |word: &str| Metric::Text(word.to_owned());
    let int = Metric::Int;
    for (event_type, metrics, key) in [
        (
            EventType::DriverError,
            &[("reason", word("GpuLost"))][..],
            "driver_error/GpuLost/GPU-a-3",
        ),
        (
            EventType::DriverError,
            &[("reason", word("RecoveryAction"))],
            "driver_error/RecoveryAction/GPU-a-3",
        ),
        (EventType::DriverError, &[], "driver_error/0/GPU-a-3"),
        (
            EventType::Memory,
            &[("row_remap_pending", int(1)), ("row_remap_failure", int(0))],
            "memory/row_remap_pending/GPU-a-3",
        ),
        (EventType::Memory, &[("row_remap_failure", int(1))], "memory/row_remap_failure/GPU-a-3"),
        (EventType::Thermal, &[("temperature", int(96))], "thermal/temperature/GPU-a-3"),
        (
            EventType::Thermal,
            &[("temperature", int(80)), ("throttle", word("HwThermalSlowdown"))],
            "thermal/throttle/GPU-a-3",
        ),
        (EventType::EccDbe, &[("ecc_dbe_count", int(1))], "ecc_dbe/0/GPU-a-3"),
    ] {
        assert_eq!(of(event_type, metrics), key);
    }
}

#[test]
fn r1_g1_only_a_test_that_makes_the_part_work_ends_what_was_found() {
    let sick = told(proven(), &["!79@3=U", "!48@2=U"]);
    let tested = |test: &str, gpus: Option<&[&str]>| {
        let gpus = gpus.map(|gpus| gpus.iter().map(|gpu| (*gpu).to_owned()).collect());
        let command = CommandId::new(Uuid::nil());
        let why = Absolution::Diagnostic(Tested { command, test: test.to_owned(), gpus });
        let after = absolve(&sick, &why, at(99)).node.unwrap_or_else(|| sick.clone());
        after.findings.iter().map(|finding| finding.key.clone()).collect::<Vec<_>>().join(" ")
    };
    let both = "xid/79/GPU-a-3 xid/48/GPU-a-2";
    assert_eq!(tested("quick", None), both);
    assert_eq!(tested("bandwidth", None), both);
    assert_eq!(tested("compute", None), "xid/48/GPU-a-2");
    assert_eq!(tested("compute", Some(&["GPU-a-3"])), "xid/48/GPU-a-2");
    assert_eq!(tested("compute", Some(&["GPU-a-5"])), both, "it was another GPU");
    assert_eq!(tested("memory", None), "xid/79/GPU-a-3");
    assert_eq!(tested("all", None), "");
}

#[test]
fn r1_g2_a_line_that_is_told_again_raises_nothing_again() {
    let line_of = |node_time: i64| Event { node_time: Some(at(node_time)), ..xid(79, 3) };
    let report = |event| HealthReport { events: vec![event], ..HealthReport::default() };
    let verdicts = [verdict("79", "U")];
    let sick = after(&proven(), &report(line_of(1000)), &verdicts, 10);
    let again = after(&sick, &report(line_of(1000)), &verdicts, 20);
    assert_eq!(again.findings[0].count, 2, "while it is open it is only counted");
    let well = absolve(&again, &Absolution::Operator("ann".into()), at(30)).node.unwrap();
    assert_eq!(take_in(&well, &report(line_of(1000)), &verdicts, at(60)).node, None);
    // The same text at another time is another fault, and so is a burst.
    assert!(!after(&well, &report(line_of(1030)), &verdicts, 60).findings.is_empty());
    assert!(!after(&well, &report(line_of(1000)), &verdicts, 25).findings.is_empty());
}
