use super::{
    Absolution, CheckResult, Event, EventType, Evidence, HealthReport, HealthState, Lasts, Metric,
    POLICY_ERROR, Severity, System, Tested, Verdict, absolve, expire, sight, take_in,
};
use crate::fixture::at;
use crate::id::CommandId;
use crate::ledger::{Entry, What};
use crate::node::fixture::node;
use crate::node::{CHECKS_MAX, Duty, FINDINGS_MAX, Hold, Node, SIGHTINGS_MAX};
use jiff::SignedDuration;
use proptest::prelude::*;
use std::collections::BTreeMap;
use uuid::Uuid;

mod review;

/// A report. `gpu=U` is the result of a check: H, D, U or `?`. `!79@3=U` is Xid 79 on GPU 3 (`-1` is
/// the whole node) and what the policy says: H, D (for an hour), U (until a reboot), T (unhealthy for
/// a minute), R (until the GPU is replaced), A (because the driver asks for it), E (its rule failed) or F (it
/// failed, and the catalogue says unhealthy).
fn report(text: &str) -> (HealthReport, Vec<Verdict>) {
    let mut report = HealthReport::default();
    let mut verdicts = Vec::new();
    for word in text.split_whitespace() {
        let (what, letter) = word.split_once('=').unwrap();
        match what.strip_prefix('!') {
            Some(what) => {
                let (code, gpu) = what.split_once('@').unwrap();
                report.events.push(xid(code.parse().unwrap(), gpu.parse().unwrap()));
                verdicts.push(verdict(code, letter));
            }
            None => report.results.push(CheckResult {
                name: what.to_owned(),
                state: match letter {
                    "H" => HealthState::Healthy,
                    "D" => HealthState::Degraded,
                    "U" => HealthState::Unhealthy,
                    _ => HealthState::Unknown,
                },
                message: String::new(),
                details: BTreeMap::new(),
            }),
        }
    }
    (report, verdicts)
}

fn xid(code: i64, gpu_index: i32) -> Event {
    Event {
        node_time: None,
        gpu_index,
        gpu_uuid: String::new(),
        gpu_serial: String::new(),
        system: System::Driver,
        event_type: EventType::Xid,
        metrics: BTreeMap::from([("xid_code".to_owned(), Metric::Int(code))]),
        message: String::new(),
        raw: format!("NVRM: Xid (PCI:0000:04:00): {code}"),
        recovery_action: None,
        count: 1,
        boot_id: String::new(),
        condition: String::new(),
    }
}

fn verdict(code: &str, letter: &str) -> Verdict {
    let failed = || Err("no such key: temperature".to_owned());
    let (severity, lasts) = match letter {
        "H" => (Ok(Severity::Healthy), Lasts::UntilReboot),
        "D" => (Ok(Severity::Degraded), Lasts::For(SignedDuration::from_hours(1))),
        "U" => (Ok(Severity::Unhealthy), Lasts::UntilReboot),
        "T" => (Ok(Severity::Unhealthy), Lasts::For(SignedDuration::from_mins(1))),
        "R" => (Ok(Severity::Unhealthy), Lasts::UntilReplaced),
        "A" => (Ok(Severity::Unhealthy), Lasts::UntilReboot),
        _ => (failed(), Lasts::UntilReboot),
    };
    Verdict {
        severity,
        rule: format!("rule-{code}"),
        policy: "default".to_owned(),
        policy_version: 3,
        message: format!("Xid {code} happened"),
        lasts,
        at_least: if letter == "F" { Severity::Unhealthy } else { Severity::Healthy },
        advised: letter == "A",
        inputs: vec!["driver: reset".to_owned()],
    }
}

/// A node that has given a complete report.
fn proven() -> Node {
    let mut node = node("a");
    node.evidence = Evidence { complete_at: Some(at(0)), missing_since: None, given: true };
    node
}

/// The node after reports, one each 10 seconds.
fn told(mut node: Node, reports: &[&str]) -> Node {
    for (turn, text) in (1..).zip(reports) {
        let (report, verdicts) = report(text);
        if let Some(after) = take_in(&node, &report, &verdicts, at(turn * 10)).node {
            node = after;
        }
    }
    node
}

/// `UNHEALTHY/rule-79 [xid/79/GPU-a-3]`.
fn line(node: &Node) -> String {
    let keys: Vec<_> = node.findings.iter().map(|finding| finding.key.as_str()).collect();
    format!("{}/{} [{}]", node.health.state.as_str(), node.health.reason, keys.join(" "))
}

#[track_caller]
fn check(reports: &[&str], expected: &str) {
    assert_eq!(line(&told(proven(), reports)), expected);
}

/// `check health status`.
fn kinds(entries: &[Entry]) -> String {
    entries.iter().map(|entry| entry.what.kind()).collect::<Vec<_>>().join(" ")
}

#[test]
fn cuj_3_a_healthy_node() {
    check(&["boot=H nvml=H xid=H"], "HEALTHY/NoFindings []");
}

#[test]
fn cuj_3_an_unhealthy_node_and_its_recovery() {
    check(&["boot=H xid=U"], "UNHEALTHY/xid [check/xid]");
    check(&["xid=U", "xid=H"], "HEALTHY/NoFindings []");
    check(&["xid=U boot=U", "xid=H"], "UNHEALTHY/boot [check/boot]");
    // Silence about a check, or doubt, does not take back what it said.
    check(&["xid=U", "boot=H"], "UNHEALTHY/xid [check/xid]");
    check(&["xid=U", ""], "UNHEALTHY/xid [check/xid]");
    check(&["xid=U", "xid=?"], "UNHEALTHY/xid [check/xid]");
    check(&["xid=U", "xid=?", "xid=H"], "HEALTHY/NoFindings []");
    let sick = told(node("a"), &["xid=U"]);
    assert_eq!(sick.status().as_str(), "UNHEALTHY");
    assert_eq!(told(sick, &["xid=H"]).status().as_str(), "ACTIVE");
}

#[test]
fn cuj_3_a_degraded_node() {
    check(&["gpu=D xid=H"], "DEGRADED/gpu [check/gpu]");
    check(&["gpu=D", "gpu=U"], "UNHEALTHY/gpu [check/gpu]");
    check(&["gpu=U", "gpu=D"], "DEGRADED/gpu [check/gpu]");
    assert_eq!(told(node("a"), &["gpu=D"]).status().as_str(), "ACTIVE");
}

#[test]
fn events_are_what_the_policy_says_and_a_clean_report_does_not_wash_them_away() {
    check(&["!13@0=H"], "HEALTHY/NoFindings []");
    check(&["!79@3=U"], "UNHEALTHY/rule-79 [xid/79/GPU-a-3]");
    check(&["!79@3=U", "boot=H xid=H"], "UNHEALTHY/rule-79 [xid/79/GPU-a-3]");
    check(&["!63@3=D"], "DEGRADED/rule-63 [xid/63/GPU-a-3]");
    check(&["!79@-1=U"], "UNHEALTHY/rule-79 [xid/79/node]");
    check(&["!79@31=U"], "UNHEALTHY/rule-79 [xid/79/gpu31]");
    // The worst decides, and of equals the oldest.
    check(
        &["!63@1=D", "!79@3=U", "!48@2=U"],
        "UNHEALTHY/rule-79 [xid/63/GPU-a-1 xid/79/GPU-a-3 xid/48/GPU-a-2]",
    );
    // The same again is the same finding; milder is not milder.
    let twice = told(proven(), &["!79@3=U", "!79@3=D", "!79@3=H"]);
    let [finding] = &twice.findings[..] else { panic!("{:?}", twice.findings) };
    assert_eq!((finding.severity, finding.count), (Some(Severity::Unhealthy), 2));
    assert_eq!((finding.first, finding.last), (at(10), at(20)));
    assert!(finding.evidence.starts_with("NVRM: Xid"), "{finding:?}");
    assert_eq!((finding.policy.as_str(), finding.policy_version), ("default", 3));
    check(&["!63@3=D", "!63@3=U"], "UNHEALTHY/rule-63 [xid/63/GPU-a-3]");
}

#[test]
fn j13_a_rule_that_fails_leaves_the_node_unknown_and_never_healthy() {
    let error = "[policy-error/xid/79/GPU-a-3]";
    check(&["boot=H", "!79@3=E"], &format!("UNKNOWN/PolicyError {error}"));
    check(&["!79@3=E", "boot=H xid=H"], &format!("UNKNOWN/PolicyError {error}"));
    // What is known for sure to be bad stays bad; a warning says less than a doubt.
    check(&["xid=U", "!79@3=E"], "UNHEALTHY/xid [check/xid policy-error/xid/79/GPU-a-3]");
    check(&["gpu=D", "!79@3=E"], "UNKNOWN/PolicyError [check/gpu policy-error/xid/79/GPU-a-3]");
    check(
        &["!79@3=U", "!79@3=E"],
        "UNHEALTHY/rule-79 [xid/79/GPU-a-3 policy-error/xid/79/GPU-a-3]",
    );
    // The next verdict of the same kind ends it, one of another kind does not.
    check(&["!79@3=E", "!79@3=H"], "HEALTHY/NoFindings []");
    check(&["!79@3=E", "!79@3=U"], "UNHEALTHY/rule-79 [xid/79/GPU-a-3]");
    check(&["!79@3=E", "!79@4=H"], &format!("UNKNOWN/PolicyError {error}"));
    let doubtful = told(proven(), &["!79@3=E"]);
    assert_eq!(doubtful.status().as_str(), "ACTIVE");
    assert_eq!(
        doubtful.health.message,
        "rule rule-79 of policy default version 3 failed: no such key: temperature"
    );
}

#[test]
fn findings_end_by_time() {
    let ends = |reports: &[&str], seconds: i64| {
        let node = told(proven(), reports);
        expire(&node, at(seconds)).map(|taken| line(&taken.node.unwrap()))
    };
    assert_eq!(ends(&["!63@3=D"], 10 + 3599), None);
    assert_eq!(ends(&["!63@3=D"], 10 + 3600).unwrap(), "HEALTHY/NoFindings []");
    assert_eq!(ends(&["!63@3=D", "!63@3=D"], 10 + 3600), None, "a repeat begins anew");
    assert_eq!(ends(&["!79@3=E"], 10 + 3600).unwrap(), "HEALTHY/NoFindings []");
    assert_eq!(ends(&["!79@3=T"], 70).unwrap(), "HEALTHY/NoFindings []");
    // Until a reboot outlasts a time, whichever was first.
    assert_eq!(ends(&["!79@3=U", "!79@3=T"], 1_000_000), None);
    assert_eq!(ends(&["!79@3=T", "!79@3=U"], 1_000_000), None);
    assert_eq!(ends(&["xid=U"], 1_000_000), None);
    let rest = ends(&["xid=U", "!79@3=T", "!63@1=D"], 200).unwrap();
    assert_eq!(rest, "UNHEALTHY/xid [check/xid xid/63/GPU-a-1]");
}

#[test]
fn findings_end_by_absolution() {
    let sick = told(proven(), &["gpu=D !79@3=U !63@1=D !48@2=E"]);
    let tested = |test: &str| {
        let command = CommandId::new(Uuid::nil());
        Absolution::Diagnostic(Tested { command, test: test.to_owned(), gpus: None })
    };
    let diagnostic = tested("compute");
    for (why, left) in [
        (
            Absolution::Reboot,
            "UNKNOWN/PolicyError [check/gpu xid/63/GPU-a-1 policy-error/xid/48/GPU-a-2]",
        ),
        (diagnostic, "UNKNOWN/PolicyError [check/gpu xid/63/GPU-a-1 policy-error/xid/48/GPU-a-2]"),
        (Absolution::Operator("ann".into()), "DEGRADED/gpu [check/gpu]"),
    ] {
        let taken = absolve(&sick, &why, at(99));
        assert_eq!(line(&taken.node.unwrap()), left, "{why:?}");
        assert!(taken.entries.iter().any(|entry| matches!(entry.what, What::Status { .. })));
    }
    let well = told(proven(), &["gpu=H"]);
    let nothing = absolve(&well, &Absolution::Reboot, at(99));
    assert_eq!((nothing.node, nothing.entries.len()), (None, 0));
    // Nobody becomes healthy by not having said anything.
    let new = absolve(&node("a"), &Absolution::Operator("ann".into()), at(99));
    assert_eq!(new.node, None);
}

#[test]
fn what_changes_is_written_down_and_what_does_not_is_not() {
    let mut node = node("a");
    for (text, entries) in [
        ("boot=H xid=H", "check check health"),
        ("boot=H xid=H", ""),
        ("", ""),
        ("xid=U", "check health status"),
        ("xid=U boot=H", ""),
        ("xid=U gpu=U", "check"),
        ("xid=H", "check cleared"),
        ("gpu=H", "check cleared health status"),
        ("!13@0=H", "event"),
        ("!79@3=U", "event health status"),
        ("!79@3=U", "event"),
        ("!48@1=E", "event"),
    ] {
        let (report, verdicts) = report(text);
        let taken = take_in(&node, &report, &verdicts, at(60));
        assert_eq!(kinds(&taken.entries), entries, "{text}");
        assert_eq!(taken.node.is_none(), entries.is_empty(), "{text}");
        node = taken.node.unwrap_or(node);
    }
}

#[test]
fn the_sentence_of_a_failing_check_is_news_and_of_a_passing_one_it_is_not() {
    let says = |state, message: &str| HealthReport {
        results: vec![CheckResult {
            name: "gpu".to_owned(),
            state,
            message: message.to_owned(),
            details: BTreeMap::from([("temperature".to_owned(), message.to_owned())]),
        }],
        ..HealthReport::default()
    };
    let well = take_in(&node("a"), &says(HealthState::Healthy, "54 C"), &[], at(1)).node.unwrap();
    assert!(well.checks["gpu"].details.is_empty());
    let warmer = take_in(&well, &says(HealthState::Healthy, "55 C"), &[], at(2));
    assert_eq!(warmer.node, None);
    let hot = take_in(&well, &says(HealthState::Degraded, "86 C"), &[], at(3)).node.unwrap();
    assert_eq!(hot.health.message, "86 C");
    let hotter = take_in(&hot, &says(HealthState::Degraded, "87 C"), &[], at(4)).node.unwrap();
    assert_eq!(hotter.health.message, "87 C");
    assert_eq!((hotter.health.since, hotter.checks["gpu"].since), (at(3), at(3)));
    assert_eq!(hotter.findings[0].evidence, "temperature=87 C");
}

#[test]
fn a_check_that_gives_a_word_is_named_by_it() {
    let rows = [
        ("ProbeHung", "ProbeHung"),
        ("probe hung", "nvml"),
        ("hung", "nvml"),
        ("", "nvml"),
        ("X123456789X123456789X123456789X123456789X", "nvml"),
    ];
    for (reason, named) in rows {
        let details = BTreeMap::from([("reason".to_owned(), reason.to_owned())]);
        let (name, message) = ("nvml".to_owned(), "the driver does not answer".to_owned());
        let result = CheckResult { name, state: HealthState::Unhealthy, message, details };
        let report = HealthReport { results: vec![result], ..HealthReport::default() };
        let sick = take_in(&node("a"), &report, &[], at(1)).node.unwrap();
        assert_eq!((line(&sick), reason), (format!("UNHEALTHY/{named} [check/nvml]"), reason));
    }
}

#[test]
fn what_happens_to_the_machine_is_told_apart_by_its_word() {
    let event = |signal: Metric| Event {
        event_type: EventType::Host,
        metrics: BTreeMap::from([("signal".to_owned(), signal)]),
        ..xid(0, -1)
    };
    let key = |signal| event(signal).key_of(&node("a"));
    assert_eq!(key(Metric::Text("disk-failed".to_owned())), "host/disk-failed/node");
    assert_eq!(key(Metric::Text("oom-kill".to_owned())), "host/oom-kill/node");
    assert_eq!(key(Metric::Int(7)), "host/0/node");
}

#[test]
fn an_old_report_and_a_terminated_node_change_nothing() {
    let (mut sick, verdicts) = report("xid=U !79@3=U");
    sick.sequence = Some(7);
    let after = take_in(&node("a"), &sick, &verdicts, at(1)).node.unwrap();
    assert_eq!(after.report_sequence, 7);
    let (mut well, _) = report("xid=H");
    for (sequence, news) in [(Some(6), false), (Some(7), false), (Some(8), true), (None, true)] {
        well.sequence = sequence;
        assert_eq!(take_in(&after, &well, &[], at(2)).node.is_some(), news, "{sequence:?}");
    }
    let hold = Hold { by: "ann".into(), automatic: false, reason: String::new(), at: at(2) };
    let gone = Node { duty: Duty::Terminated(hold), ..after };
    well.sequence = Some(9);
    assert_eq!(take_in(&gone, &well, &[], at(3)).node, None);
}

#[test]
fn sightings_count_and_follow_the_hardware() {
    let mut node = told(node("a"), &["!48@3=U", "!48@3=U", "!48@4=U"]);
    let seen: Vec<_> =
        node.sightings.iter().map(|s| (s.code, s.hardware.as_str(), s.times.len())).collect();
    assert_eq!(seen, [(48, "a-3", 2), (48, "a-4", 1)]);
    let flood = Event { count: 13_000, ..xid(48, 3) };
    sight(&mut node, &flood, at(99));
    let latest = node.sightings.last().unwrap();
    assert_eq!((latest.gpu.as_str(), latest.times.len()), ("GPU-a-3", 32));
    assert_eq!(latest.times.first(), Some(&at(99)));
    for code in 0..200 {
        sight(&mut node, &xid(code, 0), at(100 + code));
    }
    assert_eq!(node.sightings.len(), SIGHTINGS_MAX);
    assert_eq!(node.sightings[0].code, 136, "the one not seen for longest goes first");
    let known_by_serial = Event { gpu_serial: "moved".to_owned(), ..xid(48, 3) };
    sight(&mut node, &known_by_serial, at(400));
    assert_eq!(node.sightings.last().unwrap().hardware, "moved");
}

#[test]
fn a_report_is_cut_to_its_limits_or_refused() {
    let long = "é".repeat(5000);
    let mut event = xid(79, -9);
    event.message.clone_from(&long);
    event.raw.clone_from(&long);
    event.count = 0;
    let numbers = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 1e308];
    for (place, number) in numbers.into_iter().enumerate() {
        event.metrics.insert(format!("m{place}"), Metric::Float(number));
    }
    event.metrics.insert("text".to_owned(), Metric::Text(long.clone()));
    event.metrics.insert("n".repeat(129), Metric::Int(1));
    event.metrics.insert("max".to_owned(), Metric::Int(i64::MAX));
    let details = (0..100).map(|n| (format!("{n:03}"), "v".repeat(100))).collect();
    let result = CheckResult {
        name: "gpu".to_owned(),
        state: HealthState::Unhealthy,
        message: long.clone(),
        details,
    };
    let said =
        HealthReport { results: vec![result], events: vec![event], ..HealthReport::default() };
    let kept = said.bounded().unwrap();
    let event = &kept.events[0];
    assert_eq!((event.message.len(), event.raw.len(), event.count), (1024, 1024, 1));
    assert_eq!(event.gpu_index, -1);
    let names: Vec<_> = event.metrics.keys().map(String::as_str).collect();
    assert_eq!(names, ["m3", "m4", "max", "text", "xid_code"]);
    assert_eq!((kept.results[0].message.len(), kept.results[0].details.len()), (1024, 39));
    let read: Event = serde_json::from_str(&serde_json::to_string(event).unwrap()).unwrap();
    assert_eq!(&read, event, "what is kept can be read again");

    let refused = |change: fn(&mut HealthReport)| {
        let mut said = HealthReport {
            sequence: None,
            results: report("gpu=H").0.results,
            events: vec![xid(79, 3)],
            ..HealthReport::default()
        };
        change(&mut said);
        said.bounded().unwrap_err().into_iter().map(|error| error.field).collect::<Vec<_>>()
    };
    assert_eq!(refused(|said| said.results[0].name.clear()), ["results[0].check_name"]);
    assert_eq!(refused(|said| said.results[0].name = "x".repeat(129)), ["results[0].check_name"]);
    assert_eq!(refused(|said| said.results[0].name = "\u{1b}".into()), ["results[0].check_name"]);
    assert_eq!(refused(|said| said.events[0].gpu_uuid = "x".repeat(129)), ["events[0].gpu_uuid"]);
    assert_eq!(refused(|said| said.results = vec![said.results[0].clone(); 65]), ["results"]);
    assert_eq!(refused(|said| said.events = vec![xid(1, 1); 1001]), ["events"]);
}

#[test]
fn o7_a_flood_is_summarised_without_losing_what_matters() {
    let mut events = vec![xid(13, 0); 600];
    events.extend([xid(79, 3), xid(13, 1), xid(79, 3)]);
    events.extend((1000..1100).map(|code| xid(code, 0)));
    let kept = HealthReport { events, ..HealthReport::default() }.summarised().events;
    let kinds: Vec<_> = kept.iter().map(|e| (e.code(), e.gpu_index, e.count)).collect();
    assert_eq!(kinds[..3], [(13, 0, 600), (79, 3, 2), (13, 1, 1)]);
    assert_eq!(kinds.len(), 103, "none is left out before it was judged");
}

#[test]
fn i11_lists_stay_bounded_and_the_worst_is_kept() {
    let mut sick = told(node("a"), &["!79@3=U", "!48@2=E"]);
    for turn in 0..40_i64 {
        let mut text = String::new();
        for n in 0..60 {
            text += &format!("c{}={} ", turn * 60 + n, ["H", "D"][usize::from(n % 2 == 0)]);
        }
        for n in 0..60 {
            text += &format!("!{}@1=D ", 1000 + turn * 60 + n);
        }
        let (report, verdicts) = report(&text);
        let taken = take_in(&sick, &report, &verdicts, at(100 + turn));
        sick = taken.node.unwrap();
        assert!(sick.checks.len() <= CHECKS_MAX, "{}", sick.checks.len());
        assert!(sick.findings.len() <= FINDINGS_MAX, "{}", sick.findings.len());
        assert!(sick.sightings.len() <= SIGHTINGS_MAX);
    }
    let has = |key: &str| sick.findings.iter().any(|finding| finding.key == key);
    assert!(has("xid/79/GPU-a-3") && has("policy-error/xid/48/GPU-a-2"), "{}", line(&sick));
    assert_eq!(sick.health.reason, "rule-79");
}

/// One word of a report.
fn any_word() -> impl Strategy<Value = String> {
    let check = ("[a-d]", prop::sample::select(vec!["H", "D", "U", "?"]));
    let event = (0..4_u8, 0..2_u8, prop::sample::select(vec!["H", "D", "U", "T", "E"]));
    prop_oneof![
        check.prop_map(|(name, letter)| format!("{name}={letter}")),
        event.prop_map(|(code, gpu, letter)| format!("!{code}@{gpu}={letter}")),
    ]
}

/// Reports with the seconds that pass before each.
fn any_history() -> impl Strategy<Value = Vec<(i64, Vec<String>)>> {
    let words = prop::collection::vec(any_word(), 0..6);
    prop::collection::vec((0..3000_i64, words), 1..20)
}

proptest! {
    #[test]
    fn j13_no_history_makes_a_node_healthy_while_a_rule_failed(history in any_history()) {
        let mut node = proven();
        let mut now = 0;
        let mut state = HealthState::Unknown;
        let mut status = "ACTIVE".to_owned();
        for (sequence, (passed, words)) in (1..).zip(history) {
            now += passed;
            let (mut said, verdicts) = report(&words.join(" "));
            said.sequence = Some(sequence);
            let expired = expire(&node, at(now));
            let entries = expired.map_or_else(Vec::new, |taken| {
                node = taken.node.unwrap();
                taken.entries
            });
            let taken = take_in(&node, &said, &verdicts, at(now));
            node = taken.node.unwrap_or(node);
            for entry in entries.into_iter().chain(taken.entries) {
                // The ledger tells a story without gaps.
                if let What::Health { from, to, .. } = entry.what {
                    prop_assert_eq!(from, state);
                    state = to;
                } else if let What::Status { from, to, .. } = entry.what {
                    prop_assert_eq!(from.0, status);
                    status = to.0;
                }
            }
            prop_assert_eq!(state, node.health.state);
            prop_assert_eq!(status.as_str(), node.status().as_str());
            let has = |severity| node.findings.iter().any(|f| f.severity == severity);
            let expected = if has(Some(Severity::Unhealthy)) {
                HealthState::Unhealthy
            } else if has(None) {
                prop_assert_eq!(node.health.reason.as_str(), POLICY_ERROR);
                HealthState::Unknown
            } else if has(Some(Severity::Degraded)) {
                HealthState::Degraded
            } else {
                HealthState::Healthy
            };
            prop_assert_eq!(node.health.state, expected);
            // The same report again is old.
            let again = take_in(&node, &said, &verdicts, at(now + 1));
            let wrote = node.report_sequence == sequence;
            prop_assert!(!wrote || again.node.is_none() && again.entries.is_empty());
        }
    }

    #[test]
    fn the_order_of_results_in_a_report_does_not_matter(
        before in prop::collection::vec(any_word(), 0..8),
        (results, shuffled) in prop::collection::vec(("[a-d]", "[HDU?]", "[xy]"), 0..10)
            .prop_flat_map(|results| (Just(results.clone()), Just(results).prop_shuffle())),
    ) {
        let node = told(node("a"), &[&before.join(" ")]);
        let take = |results: &[(String, String, String)]| {
            let mut said = HealthReport::default();
            for (name, letter, message) in results {
                let (one, _) = report(&format!("{name}={letter}"));
                said.results.extend(one.results.into_iter().map(|result| {
                    CheckResult { message: message.clone(), ..result }
                }));
            }
            take_in(&node, &said, &[], at(60))
        };
        prop_assert_eq!(take(&results), take(&shuffled));
    }
}
