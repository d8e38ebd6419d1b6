use super::*;

#[test]
fn durations_are_read_and_written_as_people_write_them() {
    for (text, shown) in [
        ("10s", "10s"),
        ("30m", "30m"),
        ("1h30m", "1h30m"),
        ("90s", "1m30s"),
        ("7d", "7d"),
        ("250ms", "250ms"),
        ("0s", "0s"),
        ("36600d", "36600d"),
    ] {
        assert_eq!(Written(parse(text).unwrap()).to_string(), shown);
    }
}

#[test]
fn anything_else_is_refused() {
    for text in [
        "",
        "10",
        "s",
        "-1s",
        "1.5h",
        "10 s",
        "10S",
        "1w",
        "99999999999999999999s",
        "36601d",
        "9223372036854775807d",
        "1h\u{202e}",
    ] {
        let complaint = parse(text).unwrap_err();
        assert!(complaint.contains("30m"), "{text}: {complaint}");
        assert!(!complaint.contains('\u{202e}'), "{complaint}");
    }
}
