use super::*;

#[test]
fn one_line_is_one_line() {
    for (text, max, expected) in [
        ("", 10, ""),
        ("xid 79", 10, "xid 79"),
        ("  two\nlines\r\n\tand\u{7}more ", 100, "two lines and more"),
        ("ünïcödé is counted in characters", 7, "ünïcödé"),
        ("a\u{1b}[31mb", 100, "a [31mb"),
        (&"x".repeat(1_000_000), 3, "xxx"),
        (&format!("a{}b", " ".repeat(1_000_000)), 3, "a"),
    ] {
        assert_eq!(one_line(text, max), expected);
    }
}
