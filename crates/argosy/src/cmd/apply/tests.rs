use super::*;
use serde_json::json;

fn compared(before: Value, after: Value) -> Vec<String> {
    let mut found = Vec::new();
    compare("spec", Some(&before).filter(|v| !v.is_null()), Some(&after), &mut found);
    found.iter().map(|d| d.line(&Screen::plain()).trim().to_owned()).collect()
}

#[test]
fn differences_are_told_member_by_member() {
    let rows = [
        (json!({"a": 1}), json!({"a": 1}), vec![]),
        (json!({"a": 1}), json!({"a": 2}), vec!["~ spec.a: 1 → 2"]),
        (json!({"a": 1}), json!({}), vec!["- spec.a: 1"]),
        (json!({}), json!({"a": "x"}), vec!["+ spec.a: \"x\""]),
        (Value::Null, json!({"a": {"b": true}}), vec!["+ spec.a.b: true"]),
        (Value::Null, json!({}), vec![]),
        (json!({"a": {"b": 1}}), json!({"a": 1}), vec!["~ spec.a: {\"b\":1} → 1"]),
        (json!({"a": {"b": 1, "c": 2}}), json!({"a": {"b": 1}}), vec!["- spec.a.c: 2"]),
        (json!({"a": [1]}), json!({"a": [1, 2]}), vec!["~ spec.a: [1] → [1,2]"]),
        (json!({}), json!({"a": {}}), vec!["+ spec.a: {}"]),
    ];
    for (before, after, expected) in rows {
        assert_eq!(compared(before, after), expected);
    }
}
