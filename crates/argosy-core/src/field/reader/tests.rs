use super::Reader;
use crate::field::FieldError;
use jiff::SignedDuration;
use serde_json::{Value, json};

fn read(value: &Value) -> Result<(), Vec<FieldError>> {
    let mut reader = Reader::open(value, "spec.x")?;
    reader.number("percent", (1.0, 100.0));
    reader.count("nodes", (1, 9));
    reader.span("every", (SignedDuration::from_secs(1), SignedDuration::from_hours(1)));
    reader.choice("mode", &[("fast", 1), ("slow", 2)]);
    reader.list("words", 2, |item, field| {
        let wrong = || vec![FieldError::wrong_type(field, "a string", item)];
        item.as_str().ok_or_else(wrong)
    });
    reader.close()
}

#[test]
fn each_wrong_member_has_its_own_sentence() {
    for (sent, expected) in [
        (json!({}), vec![]),
        (json!({"percent": 1, "nodes": 9, "every": "1h", "mode": "slow", "words": ["a"]}), vec![]),
        (json!(3), vec!["spec.x must be an object, not a number"]),
        (json!({"percent": 0.5}), vec!["spec.x.percent must be between 1 and 100"]),
        (json!({"percent": "5"}), vec!["spec.x.percent must be a number, not a string"]),
        (json!({"nodes": 10}), vec!["spec.x.nodes must be a whole number from 1 to 9"]),
        (json!({"nodes": 2.5}), vec!["spec.x.nodes must be a whole number from 1 to 9"]),
        (json!({"nodes": -1}), vec!["spec.x.nodes must be a whole number from 1 to 9"]),
        (json!({"nodes": u64::MAX}), vec!["spec.x.nodes must be a whole number from 1 to 9"]),
        (json!({"nodes": null}), vec!["spec.x.nodes must be a whole number, not null"]),
        (json!({"every": "2h"}), vec!["spec.x.every must be between 1s and 1h"]),
        (
            json!({"mode": "sloww"}),
            vec!["spec.x.mode must be one of fast, slow, not `sloww`; did you mean slow?"],
        ),
        (json!({"words": []}), vec!["spec.x.words must have 1 to 2 items, not 0"]),
        (json!({"words": ["a", 1]}), vec!["spec.x.words[1] must be a string, not a number"]),
        (
            json!({"No_Des": 1, "percent": true}),
            vec![
                "spec.x.percent must be a number, not a boolean",
                "spec.x.No_Des is not one of percent, nodes, every, mode, words; \
                 did you mean nodes?",
            ],
        ),
    ] {
        let complaints = read(&sent).err().unwrap_or_default();
        let messages: Vec<&str> = complaints.iter().map(|c| c.message.as_str()).collect();
        assert_eq!(messages, expected, "{sent}");
    }
}

#[test]
fn the_value_is_repeated_if_it_is_short() {
    let long = "x".repeat(64);
    for (mode, value) in [("sloww", Some(json!("sloww"))), (long.as_str(), None)] {
        assert_eq!(read(&json!({ "mode": mode })).unwrap_err()[0].value, value);
    }
}

#[test]
fn complaints_have_an_end() {
    let members = (0..1000).map(|i| (format!("member{i}"), json!(i))).collect();
    assert_eq!(read(&Value::Object(members)).unwrap_err().len(), 64);
}
