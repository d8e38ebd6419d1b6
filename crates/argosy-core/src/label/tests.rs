use super::*;
use serde_json::json;

/// The complaints as lines `field: constraint`, or the labels as they were kept.
fn outcome(labels: &Value) -> String {
    match Labels::parse(labels.as_object().unwrap()) {
        Ok(labels) => {
            let kept: Vec<String> = labels.iter().map(|(k, v)| format!("{k}={v}")).collect();
            kept.join(" ")
        }
        Err(errors) => {
            let lines: Vec<String> = errors
                .iter()
                .map(|e| format!("{}: {:?}", e.field, e.constraint.unwrap()))
                .collect();
            lines.join("; ")
        }
    }
}

#[track_caller]
fn check(key: &str, value: &str, expected: &str) {
    assert_eq!(outcome(&json!({ key: value })), expected);
}

#[test]
fn the_form_of_kubernetes_is_kept() {
    check("team", "platform", "team=platform");
    check("a", "", "a=");
    check("A_b.c-9", "V_1.2-x", "A_b.c-9=V_1.2-x");
    check("app.kubernetes.io/name", "db", "app.kubernetes.io/name=db");
    check("example.com/Team", "x", "example.com/Team=x");
    let longest = "k".repeat(63);
    check(&longest, &longest, &format!("{longest}={longest}"));
    assert_eq!(outcome(&json!({})), "");
}

#[test]
fn a_bad_key_is_named_with_its_rule() {
    check("", "x", "labels.: Required");
    check("example.com/", "x", "labels.example.com/: Required");
    check("-a", "x", "labels.-a: Pattern");
    check("a-", "x", "labels.a-: Pattern");
    check("a b", "x", "labels.a b: Pattern");
    check("größe", "x", "labels.größe: Pattern");
    check("a/b/c", "x", "labels.a/b/c: Pattern");
    check("/a", "x", "labels./a: Pattern");
    check("Example.com/a", "x", "labels.Example.com/a: Pattern");
    check("a..b/c", "x", "labels.a..b/c: Pattern");
    check("-a.b/c", "x", "labels.-a.b/c: Pattern");
    check(&format!("{}/c", "p".repeat(64)), "x", &format!("labels.{}/c: Pattern", "p".repeat(64)));
    check(&"k".repeat(64), "x", &format!("labels.{}: MaxLength", "k".repeat(64)));
    let prefix = format!("{}a", "a.".repeat(126));
    check(&format!("{prefix}/c"), "x", &format!("{prefix}/c=x"));
    check(&format!("{prefix}a/c"), "x", "labels: MaxLength");
}

#[test]
fn a_bad_value_is_named_with_its_rule() {
    check("a", "-x", "labels.a: Pattern");
    check("a", "x y", "labels.a: Pattern");
    check("a", "x/y", "labels.a: Pattern");
    check("a", "\u{1b}[31mred", "labels.a: Pattern");
    check("a", &"v".repeat(64), "labels.a: MaxLength");
}

#[test]
fn a_value_that_is_no_string_is_told_what_it_is() {
    let sentence = |value: Value| {
        let errors = Labels::parse(json!({ "a": value }).as_object().unwrap()).unwrap_err();
        (errors[0].constraint, errors[0].message.clone())
    };
    for (value, sent) in [
        (json!(null), "null"),
        (json!(true), "a boolean"),
        (json!(3), "a number"),
        (json!(["x"]), "a list"),
        (json!({"x": "y"}), "an object"),
    ] {
        let expected = format!("labels.a must be a string, not {sent}");
        assert_eq!(sentence(value), (Some(Constraint::Format), expected));
    }
}

#[test]
fn every_bad_label_is_reported_and_both_halves_of_it() {
    let labels = json!({ "-a": "-x", "b": 1, "c": "fine", "d": "?" });
    let expected = "labels.-a: Pattern; labels.-a: Pattern; labels.b: Format; labels.d: Pattern";
    assert_eq!(outcome(&labels), expected);
}

#[test]
fn long_and_unprintable_text_is_not_repeated() {
    let long = "x".repeat(100_000);
    let errors = Labels::parse(json!({ &long: &long }).as_object().unwrap()).unwrap_err();
    for error in &errors {
        assert!(serde_json::to_string(error).unwrap().len() < 300);
    }
    assert_eq!(errors.len(), 2);
    check("a\u{202e}\n", "x", "labels.a\\u{202e}\\n: Pattern");
}

#[test]
fn sixty_four_labels_are_enough() {
    let labels = |n: usize| Value::from_iter((0..n).map(|i| (format!("k{i}"), json!("v"))));
    assert_eq!(Labels::parse(labels(64).as_object().unwrap()).unwrap().iter().count(), 64);
    assert_eq!(outcome(&labels(65)), "labels: Max");
}
