use super::*;
use crate::limits::{COMPREHENSIONS_MAX, NODE_DEPTH_MAX};
use proptest::prelude::*;
use serde_json::{Value as Json, json};

fn resource(spec: Json) -> Resource {
    let at = "2026-03-01T12:00:00Z";
    let said = |status: &str| json!({ "status": status, "reason": "R", "message": "m", "last_transition_time": at });
    let report = |health: &str, data: Json| {
        json!({
            "observed_generation": 2,
            "conditions": { "available": said("True"), "applied": said("True"), "health": said(health) },
            "data": data, "created_time": at, "generation_since": at, "last_report_time": at,
        })
    };
    serde_json::from_value(json!({
        "id": "0195a000-0000-7000-8000-000000000001",
        "kind": "Cluster",
        "name": "prod",
        "tenant": "acme",
        "spec": spec,
        "labels": { "team": "platform" },
        "generation": 2,
        "created": { "at": at, "by": "ada" },
        "updated": { "at": at, "by": "bob" },
        "phase_since": at,
        "reports": {
            "dns": report("True", json!({ "zone": "example.com", "token": "hush" })),
            "quiet": report("Unknown", json!({})),
        },
    }))
    .unwrap()
}

fn rule(when: &str, status: &str, reason: &str, message: &str) -> ConditionRuleText {
    let [when, status, reason, message] = [when, status, reason, message].map(str::to_owned);
    ConditionRuleText { kind: "Backed".to_owned(), when, status, reason, message }
}

/// What a rule says about a resource: `status reason: message`, or `-` if nothing.
fn say(rule: ConditionRuleText, of: &Resource) -> String {
    let rules = ConditionRules::compile(&[rule]).unwrap();
    match rules.evaluate(of).as_slice() {
        [] => "-".to_owned(),
        [made] => format!("{:?} {}: {}", made.status, made.reason, made.message),
        more => panic!("{more:?}"),
    }
}

/// Checks a status expression over an ordinary cluster.
#[track_caller]
fn check(status: &str, expected: &str) {
    let of = resource(json!({ "nodeCount": 3, "zones": ["a", "b"], "ratio": 0.5 }));
    assert_eq!(say(rule("true", status, "'R'", "'m'"), &of), expected, "{status}");
}

#[test]
fn rules_see_the_resource_and_its_definite_reports() {
    check("resource.name == 'prod' && resource.kind == 'Cluster'", "True R: m");
    check("resource.spec.nodeCount + 1 == 4", "True R: m");
    check("resource.spec.ratio < 0.7", "True R: m");
    check("resource.labels.team == 'other'", "False R: m");
    check("has(resource.deleted_time)", "False R: m");
    check("resource.?deleted_time.hasValue()", "False R: m");
    check("timestamp(resource.created_time) < timestamp('2026-04-01T00:00:00Z')", "True R: m");
    check("size(statuses) == 1 && statuses[0].adapter == 'dns'", "True R: m");
    check("statuses.exists(s, s.data.zone.endsWith('.com'))", "True R: m");
    check(
        "statuses.all(s, s.conditions.exists(c, c.type == 'Health' && c.status == 'True'))",
        "True R: m",
    );
    check("dig(resource, 'spec.zones.1') == 'b'", "True R: m");
    check("dig(resource, 'spec.nothing.there') == null", "True R: m");
    check("type(resource.name) == string", "True R: m");
    check("'TRUE'", "True R: m");
    check("'false'", "False R: m");
}

#[test]
fn maps_are_walked_in_the_order_of_their_keys() {
    let members: Json = (0..20).map(|i| (format!("k{i:02}"), json!(i))).collect();
    let of = resource(members);
    let rules = [rule("true", "true", "'R'", "resource.spec.map(k, k)[0]")];
    let rules = ConditionRules::compile(&rules).unwrap();
    for _ in 0..20 {
        assert_eq!(rules.evaluate(&of)[0].message, "k00");
    }
}

#[test]
fn a_rule_that_does_not_apply_says_nothing() {
    let of = resource(json!({}));
    assert_eq!(say(rule("false", "true", "'R'", "'m'"), &of), "-");
    assert_eq!(say(rule("resource.generation > 1", "true", "'R'", "'m'"), &of), "True R: m");
    assert_eq!(ConditionRules::default().evaluate(&of), []);
}

#[test]
fn a_rule_that_fails_is_unknown_and_hurts_nobody_j13() {
    check("resource.spec.missing == 1", "Unknown PolicyError: status: No such key: missing");
    check("1 / 0 == 1", "Unknown PolicyError: status: division by zero");
    check("9223372036854775807 + 1 > 0", "Unknown PolicyError: status: the result does not fit");
    check("statuses[7] == 1", "Unknown PolicyError: status: the index is outside the list");
    check(
        "resource > statuses",
        "Unknown PolicyError: status: found no matching overload for '_>_' applied to '(map, list)'",
    );
    check(
        "{resource: 1}.size() == 1",
        "Unknown PolicyError: status: the types of these values do not go together",
    );
    check("'perhaps'", "Unknown PolicyError: status: must be True or False, and is of type string");
    check("null", "Unknown PolicyError: status: must be True or False, and is of type null");
    let of = resource(json!({}));
    let failed = say(rule("'yes'", "true", "'R'", "'m'"), &of);
    assert_eq!(failed, "Unknown PolicyError: when: must be a boolean, and is of type string");
    let failed = say(rule("true", "true", "3", "'m'"), &of);
    assert_eq!(failed, "Unknown PolicyError: reason: must be text, and is of type int");

    let mut fine = rule("true", "true", "'R'", "'m'");
    fine.kind = "Zoned".to_owned();
    let rules = [fine, rule("true", "resource.nope", "'R'", "'m'")];
    let made = ConditionRules::compile(&rules).unwrap().evaluate(&of);
    let made: Vec<_> = made.iter().map(|made| (made.kind.as_str(), made.status)).collect();
    assert_eq!(made, [("Backed", Tri::Unknown), ("Zoned", Tri::True)]);
}

#[test]
fn secrets_do_not_reach_a_message() {
    let of = resource(json!({ "db": { "password": "hunter2" } }));
    let message = "resource.spec.db.password + ' ' + statuses[0].data.token";
    let expected = "True R: ***REDACTED*** ***REDACTED***";
    assert_eq!(say(rule("true", "true", "'R'", message), &of), expected);
}

#[test]
fn a_long_reason_is_an_error_and_a_long_message_is_cut() {
    let of = |text: String| resource(json!({ "text": text }));
    let reason = rule("true", "true", "resource.spec.text", "'m'");
    let longest = "x".repeat(256);
    assert_eq!(say(reason.clone(), &of(longest.clone())), format!("True {longest}: m"));
    let expected =
        "Unknown PolicyError: reason: is 257 bytes long; at most 256 are allowed".to_owned();
    assert_eq!(say(reason, &of("x".repeat(257))), expected);

    let message = rule("true", "true", "'R'", "resource.spec.text");
    let said = say(message.clone(), &of("ä".repeat(2000)));
    assert_eq!(said, format!("True R: {}", "ä".repeat(1024)));
    let said = say(message, &of(format!("x{}", "ä".repeat(2000))));
    assert_eq!(said, format!("True R: x{}", "ä".repeat(1023)));
}

#[test]
fn an_evaluation_bomb_is_billed_before_it_runs_j12() {
    let of = resource(json!({ "list": vec![1; 100_000] }));
    for bomb in [
        "resource.spec.list.all(x, resource.spec.list.all(y, x == y))",
        "resource.spec.list.map(x, resource.spec.list).size() > 0",
        "resource.spec.list.map(x, resource.spec.list.map(y, y)) == []",
        "(resource.spec.list + resource.spec.list).exists(x, x == 2)",
    ] {
        let said = say(rule("true", bomb, "'R'", "'m'"), &of);
        assert!(
            said.starts_with("Unknown PolicyError: status: would take up to "),
            "{bomb}: {said}"
        );
    }
    let sum = vec!["resource.spec.text"; 15].join(" + ");
    let doubled = vec![format!("({sum})"); 4].join(" + ");
    let of = resource(json!({ "text": "x".repeat(1_000_000) }));
    let said = say(rule("true", "true", "'R'", &doubled), &of);
    assert!(said.starts_with("Unknown PolicyError: message: would take up to "), "{said}");
}

#[test]
fn an_honest_rule_over_an_honest_document_is_affordable() {
    let labels: Json = (0..64).map(|i| (format!("key-{i}"), json!("value"))).collect();
    let of = resource(json!({ "labels": labels, "note": "x".repeat(10_000) }));
    let status = "resource.spec.labels.all(k, resource.spec.labels[k] == 'value') && \
                  statuses.all(s, s.conditions.all(c, c.status != 'Unknown'))";
    assert_eq!(
        say(rule("true", status, "'R'", "'a' + resource.name + 'b'"), &of),
        "True R: aprodb"
    );
}

/// The error of a `when` text.
#[track_caller]
fn refuse(when: &str, expected: &str) {
    let errors = ConditionRules::compile(&[rule(when, "true", "'R'", "'m'")]).unwrap_err();
    let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(lines.join("\n"), format!("condition rule `Backed`, when{expected}"));
}

#[test]
fn unknown_names_are_refused_with_the_nearest() {
    refuse("resorce.name == 'x'", " at 1:1: unknown variable `resorce`; did you mean `resource`?");
    refuse(
        "true &&\n  nodes == 3",
        " at 2:3: unknown variable `nodes`; known are resource, statuses",
    );
    refuse(
        "x == 1 || statuses.all(x, x == 1)",
        " at 1:1: unknown variable `x`; known are resource, statuses",
    );
    refuse(
        "statuses.all(x, true) && x",
        " at 1:26: unknown variable `x`; known are resource, statuses",
    );
    refuse(
        "resource.name.startWith('x')",
        " at 1:24: unknown function `startWith`; did you mean `startsWith`?",
    );
    let errors = ConditionRules::compile(&[rule("resource.name.matches('x')", "t", "u", "v")]);
    assert_eq!(errors.unwrap_err().len(), 4);
}

#[test]
fn bombs_and_nonsense_are_refused_at_compile_time_j11() {
    refuse(&"[".repeat(1000), " at 1:25: nested deeper than 24 levels");
    refuse(&"!!(".repeat(1000), " at 1:25: nested deeper than 24 levels");
    refuse(
        &"x".repeat(4097),
        " at 1:1: the expression is 4097 bytes long; at most 4096 are allowed",
    );
    let deep = |text: String| {
        let errors = ConditionRules::compile(&[rule(&text, "true", "'R'", "'m'")]).unwrap_err();
        let expected = format!("more than {NODE_DEPTH_MAX} operations hang on each other");
        assert_eq!(errors[0].message, expected);
    };
    deep(format!("1{}", "+1".repeat(2000)));
    deep(format!("resource{}", ".a".repeat(2000)));
    deep(format!("resource{}", "[0]".repeat(1300)));
    deep(format!("resource{}", ".size()".repeat(500)));
    let nested = "statuses.all(a, statuses.all(b, statuses.all(c, true)))";
    let errors = ConditionRules::compile(&[rule(nested, "true", "'R'", "'m'")]).unwrap_err();
    assert_eq!(errors[0].message, format!("comprehensions nest deeper than {COMPREHENSIONS_MAX}"));
}

#[test]
fn the_deepest_tree_runs_on_half_a_worker_s_stack() {
    let sum = |n: usize| format!("1{} > 0", "+1".repeat(n));
    let lists = |n: usize| format!("size({}{}) == 1", "[".repeat(n), "]".repeat(n));
    let nested = |n: usize| format!("statuses.all(x, statuses.all(y, {}))", sum(n));
    let chosen = |n: usize| format!("{}true", "resource.name == 'x' ? false : ".repeat(n));
    let compile = |text: &str| ConditionRules::compile(&[rule("true", text, "'R'", "'m'")]);
    let mut deepest: Vec<ConditionRules> =
        [&sum as &dyn Fn(usize) -> String, &lists, &nested, &chosen]
            .iter()
            .map(|form| (1..).map_while(|n| compile(&form(n)).ok()).last().unwrap())
            .collect();
    deepest.push(compile("resource.spec == resource.spec").unwrap());

    let deep_document = (0..62).fold(json!({}), |inner, _| json!({ "a": inner }));
    let of = resource(deep_document);
    for rules in deepest {
        let evaluate = || rules.evaluate(&of)[0].status;
        let status = std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().stack_size(1 << 20);
            thread.spawn_scoped(scope, evaluate).unwrap().join().unwrap()
        });
        assert_eq!(status, Tri::True, "{rules:?}");
    }
}

#[test]
fn long_flat_texts_are_welcome() {
    let of = resource(json!({}));
    let any = vec!["resource.name == 'x'"; 150].join(" || ");
    assert_eq!(say(rule(&format!("!({any})"), "true", "'R'", "'m'"), &of), "True R: m");
}

#[test]
fn a_syntax_error_has_its_place() {
    let errors =
        ConditionRules::compile(&[rule("true &&\n  (", "true", "'R'", "'m'")]).unwrap_err();
    assert_eq!((errors.len(), errors[0].part, errors[0].line), (1, Part::When, Some(2)));
    let errors = ConditionRules::compile(&[rule("", "", "", "")]).unwrap_err();
    let parts: Vec<Part> = errors.iter().map(|error| error.part).collect();
    assert_eq!(parts, [Part::When, Part::Status, Part::Reason, Part::Message]);
}

#[test]
fn types_are_words_of_their_own() {
    #[track_caller]
    fn row(kinds: &[&str], expected: Option<&str>) {
        let rules: Vec<_> = kinds
            .iter()
            .map(|kind| {
                let kind = (*kind).to_owned();
                ConditionRuleText { kind, ..rule("true", "true", "'R'", "'m'") }
            })
            .collect();
        let error = ConditionRules::compile(&rules).err().map(|errors| errors[0].message.clone());
        assert!(
            match (&error, expected) {
                (Some(error), Some(expected)) => error.starts_with(expected),
                (error, expected) => error.is_none() && expected.is_none(),
            },
            "{kinds:?}: {error:?}"
        );
    }
    row(&["Backed", "Zoned2"], None);
    row(&[&"X".repeat(100)], None);
    for kind in ["", "backed", "2Backed", "Back-ed", "Bäcked", &"X".repeat(101)] {
        row(&[kind], Some("a type starts with a capital"));
    }
    for kind in ["Reconciled", "LastKnownReconciled", "Healthy", "Stalled", "DnsSuccessful"] {
        row(&[kind], Some("this type is taken"));
    }
    row(&["Backed", "Zoned", "Backed"], Some("another rule makes this condition"));
}

#[test]
fn a_configuration_with_an_unknown_member_is_refused() {
    let text =
        json!({"type": "A", "when": "true", "status": "true", "reason": "'r'", "message": "''"});
    assert!(serde_json::from_value::<ConditionRuleText>(text.clone()).is_ok());
    let mut more = text;
    more["severity"] = json!("high");
    assert!(serde_json::from_value::<ConditionRuleText>(more).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_text_makes_a_rule_panic(
        noise in any::<String>(),
        mixed in "(resource|statuses|\\.|\\[|\\]|\\(|\\)|all|map|has|'|\\+|\\?|:|1|x|,| |!|-|&&){0,30}",
    ) {
        let of = resource(json!({ "nodeCount": 3 }));
        for text in [noise, mixed] {
            if let Ok(rules) = ConditionRules::compile(&[rule(&text, "true", "'R'", "'m'")]) {
                let _ = rules.evaluate(&of);
            }
        }
    }
}
