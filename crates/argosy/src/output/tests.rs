use super::*;
use serde_json::json;

#[test]
fn documents_stay_the_same_but_cannot_act_on_a_terminal() {
    let value = json!({"name": "a\u{9b}b\u{202e}c\u{e0001}\u{1b}", "list": [1, true, null]});
    for yaml in [false, true] {
        let text = document(&value, yaml);
        assert!(
            text.chars().all(|c| c == '\n' || clean(&c.to_string()) == c.to_string()),
            "{text:?}"
        );
        assert_eq!(serde_saphyr::from_str::<Value>(&text).unwrap(), value, "{text:?}");
    }
}

#[test]
fn yaml_reads_back_as_what_it_was() {
    let value = json!({"name": "yes", "spec": {"nodeCount": 3, "a": ["x", "1.0", ""]}, "n": null});
    let text = document(&value, true);
    assert_eq!(serde_saphyr::from_str::<Value>(&text).unwrap(), value, "{text}");
}

#[test]
fn ages_are_short() {
    let rows = [
        (0, "0s"),
        (59, "59s"),
        (60, "1m"),
        (61, "1m1s"),
        (750, "12m"),
        (3600, "1h"),
        (12_000, "3h20m"),
        (90_000, "25h"),
        (432_000, "5d"),
    ];
    for (seconds, expected) in rows {
        assert_eq!(span(SignedDuration::from_secs(seconds)), expected);
    }
    let now = Timestamp::UNIX_EPOCH;
    let later = now + SignedDuration::from_secs(5);
    assert_eq!(age(later, now), "0s");
}
