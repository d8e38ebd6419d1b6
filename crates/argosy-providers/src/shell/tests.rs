use super::*;
use proptest::prelude::*;
use std::process::Command;

/// The words that a shell makes of a command line.
fn words_of(line: &str) -> Vec<String> {
    let shown = Command::new("/bin/sh").arg("-c").arg(format!("printf '%s\\0' {line}")).output();
    let shown = String::from_utf8(shown.unwrap().stdout).unwrap();
    shown.split_terminator('\0').map(str::to_owned).collect()
}

#[test]
fn what_shells_care_about_stays_a_text() {
    let words =
        ["", "a b", "'", "''", "$(id)", "`id`", "a\nb", "\\", "-n", "~", "*", "é", "!x", "#"];
    assert_eq!(words_of(&line(words)), words);
    assert_eq!(quote("a\0b"), "'ab'");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..Default::default() })]

    #[test]
    fn any_words_come_out_of_a_shell_as_they_went_in(
        words in prop::collection::vec("[^\0]{0,12}|['\"$`\\\\ \n;&|<>*?~!#-]{0,8}", 1..5),
    ) {
        let line = line(words.iter().map(String::as_str));
        prop_assert_eq!(words_of(&line), words);
    }
}

#[test]
fn what_systemd_cares_about_stays_a_text() {
    let check = |text: &str, word: &str| assert_eq!(unit_word(text), word);
    check("a b", r#""a b""#);
    check("100%n $HOME", r#""100%%n $$HOME""#);
    check("\"\\", r#""\"\\""#);
    check("a\nExecStart=/bin/x", r#""a\x0aExecStart=/bin/x""#);
}
