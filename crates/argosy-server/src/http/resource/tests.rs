use super::*;

#[test]
fn one_pair_of_quotes_comes_off() {
    let rows = [
        ("\"Not Ready\"", Some("Not Ready")),
        ("'x'", Some("x")),
        ("\"\"x\"\"", Some("\"x\"")),
        ("x", None),
        ("\"x", None),
        ("\"", None),
    ];
    for (text, expected) in rows {
        assert_eq!(unquoted(text), expected, "{text}");
    }
}
