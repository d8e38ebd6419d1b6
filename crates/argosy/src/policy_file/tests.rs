use super::*;
use argosy_core::health::{Event, EventType, Metric, System};
use argosy_policy::Judged;

const NAVARCH: &str = include_str!("tests/navarch-default.yaml");

fn parse(text: &str) -> Result<PolicyFile, Failure> {
    PolicyFile::parse("p.yaml", text.to_owned())
}

/// The complaints about a file, as a file or as a policy.
#[track_caller]
fn complaints(text: &str, expected: &[&str]) {
    let outcome = parse(text).and_then(|file| file.compile(file.named(None)).map(|_| ()));
    let failure = outcome.expect_err(text);
    assert_eq!(failure.exit, crate::failure::Exit::Usage);
    assert_eq!(failure.why, expected, "{}\n{text}", failure.what);
}

fn judge(policy: &HealthPolicy, text: &str) -> String {
    let event = event(text).unwrap();
    let case = parse(&format!(
        "rules: [{{name: a, condition: 'true', result: healthy}}]\ntests: [{{event: {text}, expect: healthy}}]"
    ))
    .unwrap();
    let node = case.cases[0].node();
    let now = jiff::Timestamp::UNIX_EPOCH;
    let verdict = policy.judge(&Judged { event: &event, node, elsewhere: &[], now });
    format!("{:?} {}", verdict.severity.unwrap(), verdict.rule)
}

#[test]
fn navarch_s_file_is_read_as_it_is() {
    let file = parse(NAVARCH).unwrap();
    assert!(file.warnings.is_empty(), "{:?}", file.warnings);
    assert_eq!((file.spec.rules.len(), file.named(None)), (10, "default"));
    assert_eq!(file.spec.description, "What Navarch does when nobody says otherwise.");
    let policy = file.compile("default").unwrap();
    assert!(policy.warnings().is_empty(), "{:?}", policy.warnings());
    let fatal = [13, 31, 32, 43, 45, 48, 61, 62, 63, 64, 68, 69, 74, 79, 92, 94, 95, 100, 119, 120];
    for code in 1..200 {
        let expected =
            if fatal.contains(&code) { "Unhealthy fatal-xid" } else { "Degraded recoverable-xid" };
        let said = judge(&policy, &format!("{{event_type: xid, metrics: {{xid_code: {code}}}}}"));
        assert_eq!(said, expected, "Xid {code}");
    }
    for (event, expected) in [
        ("{event_type: ecc_dbe}", "Unhealthy ecc-dbe"),
        (
            "{event_type: memory, system: DCGM_HEALTH_WATCH_MEM, metrics: {ecc_dbe_count: 1}}",
            "Unhealthy ecc-dbe",
        ),
        ("{event_type: memory, system: DCGM_HEALTH_WATCH_MEM}", "Healthy default"),
        ("{event_type: ecc_sbe, metrics: {ecc_sbe_count: 101}}", "Degraded ecc-sbe-high"),
        ("{event_type: ecc_sbe, metrics: {ecc_sbe_count: 100}}", "Healthy default"),
        ("{event_type: thermal, metrics: {temperature: 95}}", "Unhealthy thermal-critical"),
        ("{event_type: thermal, metrics: {temperature: 85.0}}", "Degraded thermal-warning"),
        ("{event_type: thermal}", "Healthy default"),
        ("{event_type: nvlink}", "Degraded nvlink-error"),
        ("{event_type: pcie}", "Degraded pcie-error"),
        ("{event_type: unknown, system: DCGM_HEALTH_WATCH_POWER}", "Degraded power-warning"),
        ("{event_type: driver_error}", "Healthy default"),
    ] {
        assert_eq!(judge(&policy, event), expected, "{event}");
    }
}

#[test]
fn our_format_says_more() {
    let file = parse(
        "kind: Policy\nname: h100\ndescription: d\npools: [h100, h200]\nrules:\n  - name: a\n    \
         description: why\n    priority: -3\n    condition: true\n    result: degraded\n    lasts: 30m\n",
    )
    .unwrap();
    assert_eq!((file.named(None), file.named(Some("other"))), ("h100", "other"));
    let PolicySpec { description, pools, rules } = &file.spec;
    assert_eq!((description.as_str(), pools.join(" ").as_str()), ("d", "h100 h200"));
    let expected = Rule {
        name: "a".to_owned(),
        description: "why".to_owned(),
        priority: -3,
        condition: "true".to_owned(),
        result: Severity::Degraded,
        lasts: Some("30m".to_owned()),
    };
    assert_eq!(*rules, [expected]);
    // JSON is YAML.
    let json = r#"{"rules": [{"name": "a", "condition": "true", "result": "healthy"}]}"#;
    assert_eq!(parse(json).unwrap().named(None), "default");
}

#[test]
fn what_the_server_prints_can_be_applied_again() {
    let rules = "rules: [{name: a, condition: 'true', result: healthy, priority: 0}]";
    let printed = format!(
        "name: default\nkind: Policy\nhref: /x\nversion: 3\ncreated_at: t\ncreated_by: a\n\
         updated_at: t\nupdated_by: b\nrevision: 7\n{rules}\n"
    );
    let file = parse(&printed).unwrap();
    assert!(file.warnings.is_empty());
    assert_eq!(file.named(None), "default");
}

#[test]
fn everything_wrong_with_a_file_is_said_with_its_place() {
    complaints("- a\n", &["p.yaml:1:1: a policy is a map with rules"]);
    complaints("", &["p.yaml:1:1: a policy is a map with rules"]);
    complaints("name: x\n", &["p.yaml:1:1: rules are missing"]);
    complaints(
        "nmae: x\nrules:\n  - name: a\n    codition: 'true'\n    result: fine\n  - 3\n  - name: [b]\n    \
         condition:\n    result: degrade\n    priority: high\n    colour: red\n",
        &[
            "p.yaml:1:1: unknown key `nmae`; did you mean `name`?",
            "p.yaml:4:5: unknown key `codition`; did you mean `condition`?",
            "p.yaml:5:13: rules[0].result: unknown result `fine`; it is healthy, degraded or unhealthy",
            "p.yaml:3:5: rules[0].condition is missing",
            "p.yaml:6:5: rules[1] must be a map, not a number",
            "p.yaml:7:11: rules[2].name must be text, not a list",
            "p.yaml:8:14: rules[2].condition must be text, not nothing",
            "p.yaml:9:13: rules[2].result: unknown result `degrade`; did you mean `degraded`?",
            "p.yaml:10:15: rules[2].priority must be a whole number",
            "p.yaml:11:5: unknown key `colour`; known here are name, description, priority, \
             condition, result, lasts",
        ],
    );
    complaints(
        "kind: Cluster\npools: h100\nrules: {}\n",
        &[
            "p.yaml:1:7: kind must be Policy",
            "p.yaml:2:8: pools must be a list, not text",
            "p.yaml:3:8: rules must be a list, not a map",
        ],
    );
    let failure = parse("a: [1\n").unwrap_err();
    assert!(failure.what.starts_with("p.yaml:1:4: this is neither YAML nor JSON"), "{failure}");
    let failure = parse("rules: []\nrules: []\n").unwrap_err();
    assert!(failure.what.starts_with("p.yaml:2:1: "), "{failure}");
}

#[test]
fn what_is_wrong_with_a_condition_has_its_place_in_the_file() {
    let rule = |condition: &str| {
        format!("rules:\n  - name: a\n    condition: {condition}\n    result: healthy\n")
    };
    for (condition, expected) in [
        // Plain, quoted, in a block, in a block that begins with an empty line.
        ("evnt.count == 1", "p.yaml:3:16"),
        ("event.count == 1 && evnt.count == 1", "p.yaml:3:36"),
        ("\"event.count == 1 && evnt.count == 1\"", "p.yaml:3:37"),
        ("'event.count == 1 && evnt.count == 1'", "p.yaml:3:37"),
        ("|\n      event.count == 1 &&\n        evnt.count == 1", "p.yaml:5:9"),
        ("|\n\n      event.count == 1 &&\n      evnt.count == 1", "p.yaml:6:7"),
        // Folded or escaped, the beginning is all we can name.
        (">\n      event.count == 1 &&\n      evnt.count == 1", "p.yaml:4:7"),
        ("\"event.message == \\\"x\\\" && evnt.count == 1\"", "p.yaml:3:16"),
    ] {
        let line = format!(
            "{expected}: rules[0].condition: unknown variable `evnt`; did you mean `event`?"
        );
        complaints(&rule(condition), &[&line]);
    }
    complaints(
        "name: h100\nrules:\n  - {name: two words, condition: '1', result: healthy, lasts: soon}\n",
        &[
            "p.yaml: pools: say which pools the policy `h100` is for; only the policy `default` is \
             for all that are left",
            "p.yaml:3:12: rules[0].name: a name is one word of at most 63 letters, digits, dots, \
             slashes, hyphens and underscores",
            "p.yaml:3:63: rules[0].lasts: `soon` is not a duration: write a whole number and a unit \
             (ms, s, m, h, d), like 500ms, 10s or 30m; or `reboot`, or `replaced`",
        ],
    );
}

#[test]
fn in_a_file_of_navarch_s_unknown_keys_are_warnings() {
    let file = parse(
        "version: v1\nmetadata: {name: X Y, lables: {}}\nextends: base\nrules:\n  - name: a\n    \
         condition: 'true'\n    result: healthy\n    severity: high\n    resutl: x\n",
    )
    .unwrap();
    assert_eq!(
        file.warnings,
        [
            "p.yaml:2:23: the key `lables` is ignored; known here are name, description",
            "p.yaml:3:1: the key `extends` is ignored; known here are version, metadata, rules, \
             pools, tests",
            "p.yaml:8:5: the key `severity` is ignored; known here are name, description, priority, \
             condition, result, lasts",
            "p.yaml:9:5: the key `resutl` is ignored; did you mean `result`?",
        ]
    );
    // Whatever it is called there, here it is the default.
    assert_eq!(file.named(None), "default");
    file.compile("default").unwrap();
    complaints(
        "version: v1\nrules:\n  - name: a\n    result: bad\n",
        &[
            "p.yaml:4:13: rules[0].result: unknown result `bad`; it is healthy, degraded or unhealthy",
            "p.yaml:3:5: rules[0].condition is missing",
        ],
    );
}

#[test]
fn events_are_read_as_rules_will_see_them() {
    let full = event(
        "{event_type: xid, system: DCGM_HEALTH_WATCH_DRIVER, gpu_index: 3, gpu_uuid: GPU-1, \
         gpu_serial: '165', message: m, raw: r, count: 4, recovery_action: gpu-reset, \
         timestamp: 2026-03-01T12:00:00Z, metrics: {xid_code: 79, a: 1.5, b: true, c: text}}",
    )
    .unwrap();
    let Event { event_type, system, gpu_index, metrics, recovery_action, count, .. } = &full;
    assert_eq!((*event_type, *system, *gpu_index), (EventType::Xid, System::Driver, 3));
    assert_eq!((*recovery_action, *count), (Some(1), 4));
    assert_eq!(metrics["xid_code"], Metric::Int(79));
    assert_eq!(metrics["a"], Metric::Float(1.5));
    assert_eq!(metrics["b"], Metric::Bool(true));
    assert_eq!(metrics["c"], Metric::Text("text".to_owned()));
    assert_eq!(event("{metrics: {xid_code: 79}}").unwrap().event_type, EventType::Xid);
    assert_eq!(xid(31).code(), 31);
    for (text, expected) in [
        ("3", "--event:1:1: event must be a map, not a number"),
        ("{}", "--event:1:1: event.event_type is missing"),
        (
            "{event_type: termal}",
            "--event:1:14: event.event_type: unknown word `termal`; did you mean `thermal`?",
        ),
        (
            "{event_type: xid, temperature: 9}",
            "--event:1:19: unknown key `temperature`; known here are event_type, system, gpu_index, gpu_uuid, gpu_serial, metrics, message, raw, recovery_action, count, timestamp, node_time",
        ),
        (
            "{event_type: xid, metrics: {a: [1]}}",
            "--event:1:32: event.metrics.a must be a number, a boolean or text",
        ),
        (
            "{event_type: xid, timestamp: soon}",
            "--event:1:30: event.timestamp must be a time like 2026-03-01T12:00:00Z",
        ),
    ] {
        assert_eq!(event(text).unwrap_err().why, [expected], "{text}");
    }
}

#[test]
fn cases_say_what_is_expected_and_what_came_instead() {
    let file = parse(
        "rules:\n\
         - {name: hot, condition: has(event.metrics.temperature) && event.metrics.temperature > 90, result: unhealthy}\n\
         - {name: again, condition: \"seen_on_gpu('3h') >= 3\", result: degraded}\n\
         - {name: rack, condition: \"node.pool == 'h100' && node.labels.rack == 'r1'\", result: degraded}\n\
         tests:\n\
         - {name: cool, event: {event_type: thermal, metrics: {temperature: 20}}, expect: healthy}\n\
         - {name: hot, event: {event_type: thermal, metrics: {temperature: 91}}, expect: {result: unhealthy, rule: hot}}\n\
         - {name: third, xid: 31, before: [{ago: 1h, xid: 31}, {ago: 2h, xid: 31}], expect: {result: degraded, rule: again}}\n\
         - {name: second, xid: 31, before: [{ago: 4h, xid: 31}, {ago: 2h, xid: 31}], expect: healthy}\n\
         - {name: rack, xid: 1, node: {pool: h100, labels: {rack: r1}}, expect: degraded}\n\
         - {name: no rack, xid: 1, node: {pool: h100}, expect: error}\n\
         - {xid: 1, expect: unhealthy}\n\
         - {name: other rule, xid: 1, node: {pool: h100, labels: {rack: r1}}, expect: {result: degraded, rule: again}}\n\
         - {name: fails, xid: 1, node: {pool: h100}, expect: healthy}\n",
    )
    .unwrap();
    let policy = file.compile("default").unwrap();
    let results: Vec<String> = file
        .cases
        .iter()
        .map(|case| {
            format!("{}: {}", case.name, case.run(&policy).err().unwrap_or("ok".to_owned()))
        })
        .collect();
    assert_eq!(
        results,
        [
            "cool: ok",
            "hot: ok",
            "third: ok",
            "second: ok",
            "rack: ok",
            "no rack: ok",
            "test 7: expected unhealthy, and is healthy",
            "other rule: expected degraded by again, and is degraded by rack",
            "fails: expected healthy, and is error by rack (No such key: rack)",
        ]
    );
}

#[test]
fn a_case_that_cannot_be_read_is_not_left_out() {
    let rules = "rules: [{name: a, condition: 'true', result: healthy}]";
    complaints(
        &format!(
            "{rules}\ntests:\n- {{xid: -1, expect: healthy}}\n- {{expect: fine}}\n- {{xid: 1}}\n- {{xid: 1, \
             expcet: healthy, before: [{{ago: soon, xid: 1}}], node: {{labels: {{'-': x}}}}, expect: {{rule: a}}}}\n"
        ),
        &[
            "p.yaml:3:9: tests[0].xid must not be negative",
            "p.yaml:4:12: tests[1].expect must be healthy, degraded, unhealthy or error",
            "p.yaml:4:3: tests[1].event is missing",
            "p.yaml:5:3: tests[2].expect is missing",
            "p.yaml:6:12: unknown key `expcet`; did you mean `expect`?",
            "p.yaml:6:44: tests[3].before[0].ago: `soon` is not a duration: write a whole number and \
             a unit (ms, s, m, h, d), like 500ms, 10s or 30m",
            "p.yaml:6:38: tests[3].before[0] needs ago, and event or xid",
            "p.yaml:6:94: tests[3].expect.result is missing",
            "p.yaml:6:3: tests[3].node: a label key may hold letters, digits, `-`, `_` and `.`, must \
             start and end with a letter or digit, and may have one prefix before a `/`",
        ],
    );
}

#[test]
fn the_built_in_policy_written_down_is_the_built_in_policy() {
    let spec = HealthPolicy::default_spec();
    let yaml = serde_saphyr::to_string(&spec).unwrap();
    assert_eq!(parse(&yaml).unwrap().spec, spec);
}
