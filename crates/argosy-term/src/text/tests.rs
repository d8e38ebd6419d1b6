use super::*;

#[test]
fn nothing_in_a_name_can_move_the_cursor_or_turn_the_text() {
    let rows = [
        ("plain ü 漢", "plain ü 漢"),
        ("\u{1b}[31mred\u{1b}[0m", "[31mred[0m"),
        ("two\nlines\r\t", "two lines  "),
        ("\u{202e}gnp.exe\u{2066}\u{200b}", "gnp.exe"),
        ("\u{9b}2Jclear", "2Jclear"),
    ];
    for (text, expected) in rows {
        assert_eq!(clean(text), expected);
    }
}

#[test]
fn lines_break_between_words() {
    let rows: [(&str, usize, &[&str]); 4] = [
        ("one two three", 7, &["one two", "three"]),
        ("one two three", 100, &["one two three"]),
        ("  ", 10, &[]),
        ("GPU-0123456789 fell", 8, &["GPU-0123456789", "fell"]),
    ];
    for (text, columns, expected) in rows {
        assert_eq!(wrap(text, columns), expected);
    }
    assert_eq!(indent("a\nb\n", 2), "  a\n  b\n");
}

#[test]
fn json_has_the_same_text_and_no_terminal_acts_on_it() {
    let text = escape("[\"\u{1b}[2J\u{202e}ü\u{e0001}\"]", false);
    assert_eq!(text, "[\"\\u001b[2J\\u202eü\\udb40\\udc01\"]\n");
    let text = escape("[\"\u{202e}\u{e0001}\"]", true);
    assert_eq!(text, "[\"\\U0000202e\\U000e0001\"]\n");
}
