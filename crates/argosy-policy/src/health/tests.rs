mod history;

use super::sample::{EVENTS, NODE};
use super::*;
use crate::limits::{COMPREHENSIONS_MAX, NODE_DEPTH_MAX};
use argosy_core::health::{EventType, Lasts, Metric, System};
use argosy_core::xid::Catalogue;
use proptest::prelude::*;
use std::collections::BTreeMap;

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn now() -> Timestamp {
    at("2026-03-01T12:00:00Z")
}

/// An event of a kind, with `name=value` measurements, as text is read from Navarch's wire.
fn event(event_type: EventType, metrics: &str) -> Event {
    let metric = |pair: &str| {
        let (name, value) = pair.split_once('=').unwrap();
        let metric = if let Ok(int) = value.parse() {
            Metric::Int(int)
        } else if let Ok(float) = value.parse() {
            Metric::Float(float)
        } else if let Ok(bool) = value.parse() {
            Metric::Bool(bool)
        } else {
            Metric::Text(value.to_owned())
        };
        (name.to_owned(), metric)
    };
    Event {
        node_time: Some(now()),
        gpu_index: 3,
        gpu_uuid: NODE.gpus[0].uuid.clone(),
        gpu_serial: String::new(),
        system: System::Unknown,
        event_type,
        metrics: metrics.split_whitespace().map(metric).collect::<BTreeMap<_, _>>(),
        message: String::new(),
        raw: String::new(),
        recovery_action: None,
        count: 1,
        boot_id: String::new(),
        condition: String::new(),
    }
}

fn xid(code: u32) -> Event {
    event(EventType::Xid, &format!("xid_code={code}"))
}

fn rule(name: &str, condition: &str, result: Severity) -> Rule {
    Rule {
        name: name.to_owned(),
        description: String::new(),
        priority: 0,
        condition: condition.to_owned(),
        result,
        lasts: None,
    }
}

fn policy(rules: Vec<Rule>) -> Result<HealthPolicy, Vec<RuleError>> {
    HealthPolicy::compile("p", 7, &PolicySpec { rules, ..PolicySpec::default() })
}

fn judged<'a>(event: &'a Event, node: &'a Node) -> Judged<'a> {
    Judged { event, node, elsewhere: &[], now: now() }
}

/// Whether a condition holds for an event on the sample node; the error if it fails.
fn holds(condition: &str, event: &Event) -> Result<bool, String> {
    holds_on(condition, event, &NODE, &[])
}

/// The same anywhere. Rules that were refused for failing on every sample are asked, too.
fn holds_on(
    condition: &str,
    event: &Event,
    node: &Node,
    elsewhere: &[Sighting],
) -> Result<bool, String> {
    let mut constants = Constants::default();
    let rule = rule("r", condition, Severity::Healthy);
    let rule = Compiled::new(0, &rule, &mut constants).map_err(|errors| errors[0].to_string())?;
    ask(&rule, &Facts::new(Judged { event, node, elsewhere, now: now() }), &constants)
}

fn ask(rule: &Compiled, facts: &Facts<'_>, constants: &Constants) -> Result<bool, String> {
    let variables = Variables::new(facts, constants);
    let mut context = Context::with_env(Arc::clone(&ENV));
    context.set_variable_resolver(&variables);
    rule.condition.holds(&context)
}

#[track_caller]
fn check(condition: &str, event: &Event, expected: Result<bool, &str>) {
    assert_eq!(
        holds(condition, event).as_ref().copied().map_err(String::as_str),
        expected,
        "{condition}"
    );
}

static BUILTIN: LazyLock<HealthPolicy> =
    LazyLock::new(|| HealthPolicy::compile("default", 0, &HealthPolicy::default_spec()).unwrap());

/// What the default policy says: `severity rule`.
fn said(event: &Event, node: &Node) -> String {
    let verdict = BUILTIN.judge(&judged(event, node));
    format!("{} {}", word(verdict.severity.unwrap()), verdict.rule)
}

#[test]
fn the_default_policy_compiles_without_a_warning() {
    assert_eq!(BUILTIN.warnings(), []);
}

#[test]
fn every_xid_is_judged_by_its_class() {
    let catalogue = Catalogue::builtin();
    let mut count = 0;
    for row in catalogue.xids() {
        let expected = match row.class.as_str() {
            "gpu-reset" | "vm" | "node" | "support" => "unhealthy xid-fatal",
            "link" | "facility" | "reduced" | "config" | "unknown" => "degraded xid-warning",
            // The driver's own word, which cannot be read.
            _ if row.code == 154 => {
                assert_eq!(said(&xid(154), &NODE), "degraded driver-asks-for-attention");
                count += 1;
                continue;
            }
            "app" | "info" | "follow" => "healthy xid-harmless",
            other => panic!("{other} is a class that the default policy does not know"),
        };
        assert_eq!(said(&xid(row.code), &NODE), expected, "Xid {}", row.code);
        assert!(expected.starts_with(word(row.class.severity())), "as docs/xid.md says");
        count += 1;
    }
    assert_eq!(count, 173);
    for unheard in [174, 999, u32::MAX] {
        assert_eq!(said(&xid(unheard), &NODE), "degraded xid-warning", "Xid {unheard}");
    }
    assert_eq!(said(&event(EventType::Xid, ""), &NODE), "degraded xid-without-code");
    assert_eq!(said(&xid(0), &NODE), "degraded xid-without-code");
    assert_eq!(said(&event(EventType::Xid, "xid_code=none"), &NODE), "degraded xid-without-code");
}

#[test]
fn faults_of_programs_never_condemn_hardware() {
    for code in [8, 13, 31, 32, 43, 45, 63, 68, 69, 92, 94, 100] {
        let verdict = BUILTIN.judge(&judged(&xid(code), &NODE));
        assert_eq!(verdict.severity, Ok(Severity::Healthy), "Xid {code}: {}", verdict.rule);
    }
}

#[test]
fn every_sxid_is_judged_by_its_class() {
    for row in Catalogue::builtin().sxids() {
        let expected = match row.class.as_str() {
            "gpu-reset" | "support" => "unhealthy sxid-fatal",
            "link" | "facility" | "config" => "degraded sxid-warning",
            "info" => "healthy default",
            other => panic!("{other} is a class that SXids did not have"),
        };
        let event = event(EventType::Sxid, &format!("sxid_code={}", row.code));
        assert_eq!(said(&event, &NODE), expected, "SXid {}", row.code);
    }
    let unheard = event(EventType::Sxid, "sxid_code=99999");
    assert_eq!(said(&unheard, &NODE), "degraded sxid-warning");
    assert_eq!(said(&event(EventType::Sxid, ""), &NODE), "degraded sxid-warning");
}

#[test]
fn what_is_measured_has_thresholds() {
    use EventType::{DriverError, EccDbe, EccSbe, Memory, Nvlink, Pcie, Power, Thermal, Unknown};
    for (event_type, metrics, expected) in [
        (Thermal, "temperature=84", "healthy default"),
        (Thermal, "temperature=84.9", "healthy default"),
        (Thermal, "temperature=85", "degraded hot"),
        (Thermal, "temperature=94.99", "degraded hot"),
        (Thermal, "temperature=95", "unhealthy too-hot"),
        (Thermal, "temperature=95.0", "unhealthy too-hot"),
        (Thermal, "", "healthy default"),
        (EccSbe, "ecc_sbe_count=100", "healthy default"),
        (EccSbe, "ecc_sbe_count=101", "degraded ecc-corrected-often"),
        (EccSbe, "", "healthy default"),
        (EccDbe, "ecc_dbe_count=1", "unhealthy ecc-uncorrectable"),
        (EccDbe, "", "unhealthy ecc-uncorrectable"),
        (Memory, "row_remap_failure=1", "unhealthy row-remap-failed"),
        (Memory, "row_remap_failure=true row_remap_pending=true", "unhealthy row-remap-failed"),
        (Memory, "row_remap_failure=0 row_remap_pending=1", "degraded row-remap-pending"),
        (Memory, "row_remap_failure=false row_remap_pending=false", "healthy default"),
        (Memory, "", "healthy default"),
        (Nvlink, "link_id=4", "degraded nvlink"),
        (Pcie, "", "degraded pcie"),
        (Power, "power_watts=710.5", "degraded power"),
        (DriverError, "", "degraded driver-error"),
        (Unknown, "", "healthy default"),
    ] {
        assert_eq!(said(&event(event_type, metrics), &NODE), expected, "{event_type:?} {metrics}");
    }
    for (system, metrics, expected) in [
        (System::Mem, "ecc_dbe_count=1", "unhealthy ecc-uncorrectable"),
        (System::Mem, "ecc_dbe_count=0", "healthy default"),
        (System::Mem, "", "healthy default"),
        (System::Nvlink, "", "degraded nvlink"),
        (System::Pcie, "", "degraded pcie"),
        (System::Power, "", "degraded power"),
        (System::Inforom, "", "healthy default"),
    ] {
        let event = Event { system, ..event(Unknown, metrics) };
        assert_eq!(said(&event, &NODE), expected, "{system:?} {metrics}");
    }
}

#[test]
fn what_cannot_be_compared_is_not_taken_for_healthy() {
    let event = event(EventType::Thermal, "temperature=hot");
    let verdict = BUILTIN.judge(&judged(&event, &NODE));
    assert_eq!(verdict.rule, "too-hot");
    assert!(verdict.severity.unwrap_err().contains("_>=_"));
}

#[test]
fn the_driver_is_asked_first() {
    for (action, code, expected) in [
        (0, 31, "healthy xid-harmless"),
        (1, 31, "unhealthy driver-asks-for-recovery"),
        (2, 45, "unhealthy driver-asks-for-recovery"),
        (3, 13, "unhealthy driver-asks-for-recovery"),
        (4, 13, "unhealthy driver-asks-for-recovery"),
        (5, 13, "degraded driver-asks-for-attention"),
        (6, 13, "unhealthy driver-asks-for-recovery"),
        (7, 13, "unhealthy driver-asks-for-recovery"),
        (8, 13, "degraded driver-asks-for-attention"),
        (0, 48, "degraded xid-driver-disagrees"),
        (0, 151, "degraded xid-driver-disagrees"),
        // Who does not answer on the bus cannot have said that all is well.
        (0, 79, "unhealthy xid-fatal"),
        (0, 142, "unhealthy xid-fatal"),
    ] {
        let event = Event { recovery_action: Some(action), ..xid(code) };
        assert_eq!(said(&event, &NODE), expected, "action {action}, Xid {code}");
    }
    let cool = Event { recovery_action: Some(1), ..event(EventType::Thermal, "temperature=50") };
    assert_eq!(said(&cool, &NODE), "unhealthy driver-asks-for-recovery");
}

#[test]
fn the_kernel_line_says_what_a_code_alone_does_not() {
    for (code, line, expected) in [
        (
            154,
            "154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)",
            "unhealthy driver-asks-for-recovery",
        ),
        (
            154,
            "154, GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)",
            "healthy xid-harmless",
        ),
        (
            154,
            "154, GPU recovery action changed from 0x0 (None) to 0x9 (Sing)",
            "degraded driver-asks-for-attention",
        ),
        // Something is wanted, and nobody can say what.
        (154, "154, nonsense", "degraded driver-asks-for-attention"),
        (
            150,
            "150, MSE_WATCHDOG Fatal XC0 i0 Link 08 (0x00000000 0x00000000)",
            "unhealthy xid-fatal",
        ),
        (
            145,
            "145, RLW_CTRL Nonfatal XC0 i0 Link 13 (0x00000000 0x80000000)",
            "healthy xid-harmless",
        ),
        (145, "145, nonsense", "degraded xid-warning"),
        // The line is about something else.
        (145, "79, GPU has fallen off the bus.", "degraded xid-warning"),
    ] {
        let line = format!("NVRM: Xid (PCI:0000:41:00): {line}");
        let event = Event { raw: line.clone(), ..xid(code) };
        assert_eq!(said(&event, &NODE), expected, "{line}");
        let event = Event { message: line.clone(), ..xid(code) };
        assert_eq!(said(&event, &NODE), expected, "{line} as the message");
    }
}

#[test]
fn every_opinion_is_written_down_and_so_is_disagreement() {
    #[track_caller]
    fn inputs(event: &Event, expected: &[&str]) {
        let verdict = BUILTIN.judge(&judged(event, &NODE));
        assert_eq!(verdict.inputs.len(), expected.len(), "{:?}", verdict.inputs);
        for (input, expected) in verdict.inputs.iter().zip(expected) {
            assert!(input.contains(expected), "{input} has no {expected}");
        }
    }
    inputs(&event(EventType::Thermal, "temperature=99"), &[]);
    inputs(&xid(79), &["Xid 79 GPU_HAS_FALLEN_OFF_THE_BUS: class node, action reboot-node"]);
    inputs(&xid(999), &["Xid 999 is not in it"]);
    inputs(
        &Event { recovery_action: Some(1), ..xid(31) },
        &[
            "driver: gpu-reset: End all work on the GPU and reset it.",
            "Xid 31",
            "they disagree: the driver says unhealthy, the catalogue says healthy",
        ],
    );
    inputs(
        &Event { recovery_action: Some(0), ..xid(48) },
        &[
            "driver: none: The GPU can be used.",
            "Xid 48",
            "they disagree: the driver says healthy, the catalogue says unhealthy",
            "the rule says degraded where the driver says healthy",
        ],
    );
    let sxid = event(EventType::Sxid, "sxid_code=20034");
    inputs(&sxid, &["SXid 20034"]);
}

#[test]
fn a_verdict_says_who_decided_what_and_for_how_long() {
    let verdict = BUILTIN.judge(&judged(&xid(79), &NODE));
    assert_eq!((verdict.policy.as_str(), verdict.policy_version), ("default", 0));
    assert_eq!(verdict.message, "Xid 79: The catalogue asks for a reset, a reboot or the vendor.");
    assert_eq!(verdict.lasts, Lasts::UntilReboot, "until the node boots again");
    let warm = BUILTIN.judge(&judged(&event(EventType::Thermal, "temperature=96"), &NODE));
    assert_eq!(warm.lasts, Lasts::For(SignedDuration::from_mins(30)));
    let nvlink = BUILTIN.judge(&judged(&event(EventType::Nvlink, ""), &NODE));
    assert_eq!(nvlink.lasts, Lasts::For(SignedDuration::from_hours(1)));

    // Without a word of the author's, the catalogue's; without a rule, nobody's.
    let named = policy(vec![rule("fatal", "has(xid.code)", Severity::Unhealthy)]).unwrap();
    let verdict = named.judge(&judged(&xid(79), &NODE));
    assert!(verdict.message.starts_with("Xid 79: "), "{}", verdict.message);
    assert_eq!((verdict.policy.as_str(), verdict.policy_version), ("p", 7));
    let verdict = named.judge(&judged(&event(EventType::Pcie, ""), &NODE));
    assert_eq!((verdict.severity, verdict.rule.as_str()), (Ok(Severity::Healthy), ""));
}

#[test]
fn rules_see_the_event_as_navarch_shows_it() {
    let mut hot = event(EventType::Thermal, "temperature=88 fan=0.5 throttled=true zone=a");
    hot.system = System::Thermal;
    hot.message = "too hot".to_owned();
    for condition in [
        "event.event_type == 'thermal' && event.system == 'DCGM_HEALTH_WATCH_THERMAL'",
        "event.gpu_index == 3 && event.gpu_uuid.startsWith('GPU-')",
        "event.timestamp == '2026-03-01T12:00:00Z'",
        "timestamp(event.timestamp) < timestamp('2027-01-01T00:00:00Z')",
        "event.message.contains('hot') && size(event.metrics) == 4",
        "event.metrics.temperature > 87 && event.metrics['temperature'] < 88.5",
        "event.metrics.fan == 0.5 && event.metrics.throttled && event.metrics.zone == 'a'",
        "has(event.metrics.temperature) && !has(event.metrics.xid_code)",
        "'fan' in event.metrics && !('xid_code' in event.metrics)",
        "event.metrics.exists(name, name == 'fan')",
        "event.?metrics.?xid_code.orValue(0) == 0",
        "event['event_type'] == 'thermal'",
        "type(event) == map && type(event.metrics) == map && type(event.gpu_index) == int",
        "!has(event.recovery_action) && event.count == 1 && event.raw == ''",
        "event.all(name, name != 'recovery_action') && size(event) == 10",
        "'message' in event && !('nothing' in event) && !(3 in event)",
        "event.metrics.temperature in [87, 88] && event.event_type in ['thermal', 'power']",
        "{'a': event.metrics}.a.temperature == 88",
        "[event].exists(e, e.event_type == 'thermal')",
        "[1, 2].exists(event, event == 2)",
    ] {
        check(condition, &hot, Ok(true));
    }
}

#[test]
fn rules_see_where_it_happened_and_what_its_code_means() {
    let mut event = xid(79);
    event.recovery_action = Some(2);
    for condition in [
        "node.id == 'gpu-1' && node.pool == 'h100' && node.labels.rack == 'r12'",
        "node.provider == 'gcp' && node.region == 'us-east1' && node.zone == 'us-east1-b'",
        "node.instance_type == 'a3-highgpu-8g' && node.agent.startsWith('argosy-agent/')",
        "gpu.name.contains('H100') && gpu.index == 3 && gpu.driver_version >= '560'",
        "gpu.uuid == event.gpu_uuid && gpu.serial == '1652823055642'",
        "xid.code == 79 && xid.class == 'node' && xid.action == 'reboot-node' && xid.condemns",
        "xid.name.contains('FALLEN') && xid.meaning != ''",
        "size(sxid) == 0 && !has(sxid.code)",
        "recovery.action == 'node-reboot' && event.recovery_action == 'node-reboot'",
        "size(xid) == 6 && xid.exists(name, name == 'class')",
    ] {
        check(condition, &event, Ok(true));
    }
    let elsewhere = Event { gpu_index: -1, gpu_uuid: String::new(), ..event };
    check("size(gpu) == 0 && event.gpu_index == -1", &elsewhere, Ok(true));
    let unheard = xid(999);
    check("xid.class == 'unknown' && !xid.condemns && xid.name == ''", &unheard, Ok(true));
    check("size(recovery) == 0", &unheard, Ok(true));
}

#[test]
fn what_is_not_there_is_an_error_unless_the_answer_is_known_without_it() {
    let pcie = event(EventType::Pcie, "");
    check("event.metrics.temperature > 90", &pcie, Err("No such key: temperature"));
    check("xid.class == 'app'", &pcie, Err("No such key: class"));
    check("event['nothing'] == 1", &xid(31), Err("No such key: nothing"));
    check("node.labels.nothing == 'x' || true", &pcie, Ok(true));
    check("event.metrics.temperature > 90 && event.event_type == 'thermal'", &pcie, Ok(false));
    check("event.event_type == 'thermal' && event.metrics.temperature > 90", &pcie, Ok(false));
    check("event.event_type == 'pcie' || event.metrics.temperature > 90", &pcie, Ok(true));
    check("event.metrics.temperature > 90 || event.event_type == 'pcie'", &pcie, Ok(true));
    check(
        "event.metrics.temperature > 90 || event.event_type == 'thermal'",
        &pcie,
        Err("No such key: temperature"),
    );
    check("event.message.code == 1 || event.gpu_index == 3", &pcie, Ok(true));
}

/// J13
#[test]
fn j13_a_rule_that_fails_ends_the_search() {
    let failing = "has(event.message) && event.metrics.temperature > 90";
    let rules = vec![
        rule("first", "event.event_type == 'xid'", Severity::Degraded),
        rule("fails", failing, Severity::Unhealthy),
        rule("default", "true", Severity::Healthy),
    ];
    let policy = policy(rules).unwrap();
    let judge = |event: &Event| policy.judge(&judged(event, &NODE));
    let verdict = judge(&event(EventType::Pcie, ""));
    assert_eq!(verdict.severity, Err("No such key: temperature".to_owned()));
    assert_eq!(verdict.rule, "fails");
    assert_eq!(verdict.message, "the rule `fails` failed: No such key: temperature");
    assert_eq!(verdict.lasts, Lasts::For(SignedDuration::from_hours(1)));
    // Who was asked before it has decided.
    assert_eq!(judge(&xid(1)).severity, Ok(Severity::Degraded));
    assert_eq!(judge(&event(EventType::Pcie, "temperature=91")).severity, Ok(Severity::Unhealthy));
    assert_eq!(judge(&event(EventType::Pcie, "temperature=90")).rule, "default");
    // A rule may fail on a real event although it did not on any sample.
    let never = event(EventType::Pcie, "temperature=x");
    assert!(judge(&never).severity.is_err());
}

#[test]
fn the_first_match_by_priority_decides_and_then_by_the_order_of_the_file() {
    let with = |priority, rule: Rule| Rule { priority, ..rule };
    let rules = vec![
        with(0, rule("default", "true", Severity::Healthy)),
        with(10, rule("b", "event.gpu_index == 3", Severity::Degraded)),
        with(10, rule("c", "event.gpu_index >= 0", Severity::Unhealthy)),
        with(-5, rule("never", "true", Severity::Unhealthy)),
        with(20, rule("a", "event.gpu_index == 7", Severity::Unhealthy)),
    ];
    let policy = policy(rules).unwrap();
    for (gpu_index, expected) in [(3, "b"), (4, "c"), (7, "a"), (-1, "default")] {
        let event = Event { gpu_index, ..event(EventType::Unknown, "") };
        assert_eq!(policy.judge(&judged(&event, &NODE)).rule, expected, "{gpu_index}");
    }
}

/// The errors of a policy, a line each.
#[track_caller]
fn refuse(rules: Vec<Rule>, expected: &[&str]) {
    let errors = policy(rules).unwrap_err();
    let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(lines, expected);
}

#[test]
fn everything_that_is_wrong_is_said_with_its_place() {
    refuse(vec![], &["rules: a policy needs at least one rule"]);
    let many = (0..65).map(|i| rule(&format!("r{i}"), "true", Severity::Healthy)).collect();
    refuse(many, &["rules: 65 rules; at most 64 are allowed"]);
    let bad_word = Rule {
        lasts: Some("soon".to_owned()),
        description: "x".repeat(2000),
        ..rule("two words", "true &&\n  evnt.message == ''", Severity::Degraded)
    };
    refuse(
        vec![
            rule("a", "event.message.startWith('x')", Severity::Healthy),
            bad_word,
            rule("a", "true", Severity::Healthy),
            rule("", "true &&", Severity::Healthy),
        ],
        &[
            "rules[0].condition at 1:24: unknown function `startWith`; did you mean `startsWith`?",
            "rules[1].name: a name is one word of at most 63 letters, digits, dots, slashes, hyphens \
             and underscores",
            "rules[1].description: is 2000 bytes long; at most 1024 are allowed",
            "rules[1].lasts: `soon` is not a duration: write a whole number and a unit (ms, s, m, h, \
             d), like 500ms, 10s or 30m; or `reboot`, or `replaced`",
            "rules[1].condition at 2:3: unknown variable `evnt`; did you mean `event`?",
            "rules[2].name: another rule is called `a`",
            "rules[3].name: a rule needs a name",
            "rules[3].condition at 1:8: Syntax error: mismatched input '<EOF>' expecting {'[', '{', \
             '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, \
             BYTES, IDENTIFIER}",
        ],
    );
}

/// The one error of a condition.
#[track_caller]
fn refused(condition: &str, expected: &str) {
    let errors = policy(vec![rule("r", condition, Severity::Unhealthy)]).unwrap_err();
    let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(lines.join("\n"), format!("rules[0].condition{expected}"), "{condition}");
}

#[test]
fn a_rule_that_can_give_no_answer_is_refused() {
    let never = ": gives no answer for any kind of event: ";
    refused("event.message", &format!("{never}must be true or false, and is of type string"));
    refused("1 + 1", &format!("{never}must be true or false, and is of type int"));
    refused("event.metrics.nope == 1", &format!("{never}No such key: nope"));
    refused("event", &format!("{never}must be true or false, and is of type map"));
    refused("node.labels", &format!("{never}must be true or false, and is of type map"));
    refused("1 / 0 == 1", &format!("{never}division by zero"));
    refused(
        "seen(event.message) > 1",
        &format!(
            "{never}Error executing function 'seen': `GPU has fallen off the bus` is not a duration: \
         write a whole number and a unit (ms, s, m, h, d), like 500ms, 10s or 30m"
        ),
    );
}

#[test]
fn a_member_that_a_variable_never_has_is_a_typing_mistake() {
    refused(
        "event.event_type == 'thermal' &&\n event.metric.temperature > 3",
        " at 2:7: `event` has no `metric`; did you mean `metrics`?",
    );
    refused("node.label.rack == 'x'", " at 1:5: `node` has no `label`; did you mean `labels`?");
    refused(
        "xid.severity == 1",
        " at 1:4: `xid` has no `severity`; it has action, class, code, condemns, meaning, name",
    );
    // A guard may ask for what a later build knows, and a comprehension may call things as it likes.
    check("has(event.later)", &xid(31), Ok(false));
    check("[{'x': 1}].exists(event, event.x == 1)", &xid(31), Ok(true));
}

#[test]
fn names_of_other_rules_are_not_known() {
    refused(
        "resource.name == 'x'",
        " at 1:1: unknown variable `resource`; known are event, node, gpu, xid, sxid, recovery",
    );
    refused("sen('1h') > 1", " at 1:4: unknown function `sen`; did you mean `seen`?");
    let errors = policy(vec![rule("r", "dig(event, 'a') == 1", Severity::Healthy)]).unwrap_err();
    assert!(errors[0].message.starts_with("unknown function `dig`; known are "), "{}", errors[0]);
}

#[test]
fn what_is_probably_not_meant_is_a_warning() {
    let warnings = |condition: &str| {
        let policy = policy(vec![rule("r", condition, Severity::Unhealthy)]).unwrap();
        policy.warnings().iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    assert_eq!(warnings("event.event_type == 'xid' && event.metrics.xid_code == 79"), "");
    assert_eq!(
        warnings("event.event_type == 'xid' && event.metrics.xid_cod == 79"),
        "rules[0].condition: fails on a xid event that has not all it asks for: No such key: \
         xid_cod; ask has(…) first"
    );
    assert!(warnings("event.event_type == 'nvlnk'").contains("can never hold; event types are "));
    assert!(warnings("event.event_type in ['a', 'b'] && event.count > 1").contains("never hold"));
}

#[test]
fn patterns_are_matched_as_go_does() {
    let event = Event {
        message: "NVRM: Xid (PCI:0000:41:00): 79, GPU has fallen off the bus. größer".to_owned(),
        ..xid(79)
    };
    for condition in [
        "event.message.matches('fallen off the bus')",
        "matches(event.message, '^NVRM: Xid')",
        "!event.message.matches('^Xid')",
        "event.message.matches(r'Xid \\(PCI:[0-9a-f:.]+\\): 79\\b')",
        "event.message.matches('(?i)GPU HAS FALLEN')",
        "event.message.matches('gr.{2}')",
        "event.message.matches('größer$') && event.message.matches(r'\\d{2}, ')",
        "!event.message.matches(r'gr\\w')",
        "[1].exists(x, event.message.matches('bus')) && event.message.matches('')",
    ] {
        check(condition, &event, Ok(true));
    }
    let long = Event { message: "x".repeat(1025), ..xid(79) };
    check(
        "event.message.matches('x')",
        &long,
        Err("Error executing function 'matches': the text is longer than 1024 bytes"),
    );
    check(
        "event.metrics.xid_code.matches('7')",
        &Event { metrics: BTreeMap::from([("xid_code".to_owned(), Metric::Int(7))]), ..xid(7) },
        Err("Error executing function 'matches': needs text"),
    );
}

#[test]
fn a_pattern_is_written_out_and_small() {
    refused(
        "event.message.matches(event.raw)",
        " at 1:22: the pattern of matches must be written out, in quotes",
    );
    refused("event.message.matches()", " at 1:22: matches takes a text and a pattern");
    refused("event.message.matches('(')", " at 1:22: not a pattern: unclosed group");
    refused(
        "event.message.matches('a{500}{500}')",
        " at 1:22: the pattern becomes too large; repeat less in it",
    );
    refused(
        &format!("event.message.matches('{}')", "a".repeat(257)),
        " at 1:22: the pattern is 257 bytes long; at most 256 are allowed",
    );
    refused(
        &format!("event.message.matches('{}')", "(".repeat(20) + &")".repeat(20)),
        " at 1:22: not a pattern: exceed the maximum number of nested parentheses/brackets (16)",
    );
}

/// J11
#[test]
fn j11_parse_bombs_are_refused() {
    refused(&"[".repeat(1000), " at 1:25: nested deeper than 24 levels");
    refused(&"!!(".repeat(1000), " at 1:25: nested deeper than 24 levels");
    refused(
        &"x".repeat(4097),
        " at 1:1: the expression is 4097 bytes long; at most 4096 are allowed",
    );
    let deep = |text: String| {
        let errors = policy(vec![rule("r", &text, Severity::Healthy)]).unwrap_err();
        let expected = format!("more than {NODE_DEPTH_MAX} operations hang on each other");
        assert_eq!(errors[0].message, expected);
    };
    deep(format!("1{}", "+1".repeat(2000)));
    deep(format!("event{}", ".a".repeat(2000)));
    deep(format!("event{}", "[0]".repeat(1300)));
    let nested = "event.all(a, event.all(b, event.all(c, true)))";
    let errors = policy(vec![rule("r", nested, Severity::Healthy)]).unwrap_err();
    assert_eq!(errors[0].message, format!("comprehensions nest deeper than {COMPREHENSIONS_MAX}"));
}

fn list(len: usize) -> String {
    format!("[{}]", vec!["7"; len].join(","))
}

/// J12
#[test]
fn j12_evaluation_bombs_are_refused_before_they_run() {
    for bomb in [
        format!("{0}.all(a, {0}.all(b, a == b))", list(900)),
        format!("size({0}.map(a, {0}.map(b, a + b))) == 0", list(900)),
        // Functions of ours have their price, too.
        format!("{}.exists(a, bursts('24h') > a)", list(1900)),
        format!("{}.exists(a, seen_on_serial('24h', a) > 1)", list(1900)),
        format!("{}.exists(a, event.message.matches('(a*)*b'))", list(30)),
        vec!["event.message.matches('(a*)*b')"; 30].join(" || "),
    ] {
        let errors = policy(vec![rule("r", &bomb, Severity::Healthy)]).unwrap_err();
        assert_eq!(errors.len(), 1);
        assert!(errors[0].message.starts_with("would take up to "), "{}", errors[0]);
        assert_eq!(errors[0].field, "rules[0].condition");
    }
    let dear = vec!["event.message.matches('(a*)*b')"; 20].join(" || ");
    let rules = vec![rule("a", &dear, Severity::Healthy), rule("b", &dear, Severity::Healthy)];
    let errors = policy(rules).unwrap_err();
    assert!(errors[0].message.starts_with("all rules together: would take"), "{}", errors[0]);
}

/// J12
#[test]
fn j12_a_bomb_in_an_event_is_an_error_and_not_a_verdict() {
    let condition = "event.metrics.exists(a, event.metrics.exists(b, a + b == 'x'))";
    let rules = vec![
        rule("pairs", condition, Severity::Unhealthy),
        rule("default", "true", Severity::Healthy),
    ];
    let policy = policy(rules).unwrap();
    let judge = |event: &Event| policy.judge(&judged(event, &NODE)).severity;
    let mut bomb = event(EventType::Unknown, "a=1 b=2");
    assert_eq!(judge(&bomb), Ok(Severity::Healthy));
    let long = |i: usize| (format!("metric-{i}"), Metric::Text("x".repeat(1024)));
    bomb.metrics = (0..500).map(long).collect();
    let error = judge(&bomb).unwrap_err();
    assert!(error.starts_with("would take up to "), "{error}");
    assert!(error.ends_with("; a judgement may take 1000000"), "{error}");
}

#[test]
fn the_largest_event_there_can_be_is_affordable_by_the_default_policy() {
    let mut largest = xid(31);
    let long = |i: usize| (format!("metric-{i}"), Metric::Text("x".repeat(1024)));
    largest.metrics.extend((0..63).map(long));
    (largest.message, largest.raw) = ("m".repeat(1024), "r".repeat(1024));
    assert_eq!(said(&largest, &NODE), "healthy xid-harmless");
}

#[test]
fn the_deepest_condition_runs_on_half_a_worker_s_stack() {
    let sum = |n: usize| format!("1{} > 0", "+1".repeat(n));
    let nested = |n: usize| format!("event.all(x, event.all(y, {}))", sum(n));
    let chosen = |n: usize| format!("{}true", "event.message == 'x' ? false : ".repeat(n));
    let compile = |text: &str| policy(vec![rule("r", text, Severity::Unhealthy)]);
    for form in [&sum as &dyn Fn(usize) -> String, &nested, &chosen] {
        let deepest = (1..).map_while(|n| compile(&form(n)).ok()).last().unwrap();
        let event = xid(31);
        let judge = || deepest.judge(&judged(&event, &NODE)).severity;
        let severity = std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().stack_size(1 << 20);
            thread.spawn_scoped(scope, judge).unwrap().join().unwrap()
        });
        assert_eq!(severity, Ok(Severity::Unhealthy), "{deepest:?}");
    }
}

#[test]
fn there_is_a_sample_of_every_kind() {
    for kind in EventType::ALL {
        assert!(EVENTS.iter().any(|event| event.event_type == *kind), "{kind:?}");
    }
}

/// Conditions as people write them, and as they do not.
fn conditions() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("event.event_type == 'xid'".to_owned()),
        Just("'thermal' == event.event_type".to_owned()),
        Just("event.event_type in ['xid', 'sxid', 'nothing']".to_owned()),
        Just("event.system == 'DCGM_HEALTH_WATCH_MEM'".to_owned()),
        Just("event.event_type == 3".to_owned()),
        Just("has(xid.class)".to_owned()),
        Just("has(sxid.nothing)".to_owned()),
        Just("has(recovery.action)".to_owned()),
        Just("has(event.metrics.temperature)".to_owned()),
        Just("xid.class == 'node'".to_owned()),
        Just("event.metrics.temperature > 80".to_owned()),
        Just("seen('1h') >= 1".to_owned()),
        Just("event.message.matches('o')".to_owned()),
        Just("event.message".to_owned()),
        Just("1".to_owned()),
        Just("true".to_owned()),
        Just("false".to_owned()),
        Just("1 / 0 == 1".to_owned()),
        Just("event.exists(event, event == 'count')".to_owned()),
    ];
    leaf.prop_recursive(4, 16, 2, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a} && {b})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a} || {b})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a} ? {b} : {a})")),
            inner.prop_map(|a| format!("!({a})")),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn outside_its_reach_a_condition_is_false(condition in conditions()) {
        let mut constants = Constants::default();
        let rule = rule("r", &condition, Severity::Healthy);
        let Ok(rule) = Compiled::new(0, &rule, &mut constants) else { return Ok(()) };
        for event in EVENTS.iter() {
            let facts = Facts::new(judged(event, &NODE));
            if !facts.traits().meet(rule.reach) {
                let answer = ask(&rule, &facts, &constants);
                prop_assert_eq!(answer, Ok(false), "{} of {:?}", condition, event);
            }
        }
    }

    #[test]
    fn no_text_makes_a_policy_panic(
        noise in any::<String>(),
        mixed in "(event|node|gpu|xid|seen|bursts_on_gpu|matches|\\.|\\[|\\]|\\(|\\)|all|map|has|'|24h|\\+|\\?|:|1|x|,| |!|-|&&|in){0,30}",
        conditions in proptest::collection::vec(conditions(), 1..4),
    ) {
        let texts = [noise, mixed].into_iter().chain(conditions);
        let rules: Vec<Rule> =
            texts.enumerate().map(|(i, text)| rule(&format!("r{i}"), &text, Severity::Degraded)).collect();
        for rules in [rules.clone(), rules.get(2..).unwrap_or_default().to_vec()] {
            if let Ok(policy) = policy(rules) {
                for event in EVENTS.iter() {
                    let _ = policy.judge(&judged(event, &NODE));
                }
            }
        }
    }

    #[test]
    fn no_pattern_makes_a_policy_panic(pattern in "[a-z.*+?(){}\\[\\]|^$\\\\0-9,é-]{0,40}", text in any::<String>()) {
        let condition = format!("event.message.matches({})", serde_json::Value::from(pattern));
        if let Ok(policy) = policy(vec![rule("r", &condition, Severity::Degraded)]) {
            let _ = policy.judge(&judged(&Event { message: text, ..xid(79) }, &NODE));
        }
    }
}
