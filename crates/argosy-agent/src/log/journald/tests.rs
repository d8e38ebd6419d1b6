use super::{ENTRY_LEN_MAX, Entries, Entry};
use proptest::prelude::*;

fn message(json: &str) -> Option<String> {
    serde_json::from_str::<Entry>(json).ok().map(Entry::text)
}

#[test]
fn a_message_is_text_bytes_or_nothing() {
    let check = |json: &str, expected: Option<&str>| {
        assert_eq!(message(json).as_deref(), expected, "{json}");
    };
    check(r#"{"__CURSOR":"s=1","MESSAGE":"NVRM: x"}"#, Some("NVRM: x"));
    check(r#"{"SYSLOG_IDENTIFIER":"kernel","MESSAGE":"NVRM: x"}"#, Some("NVRM: x"));
    check(r#"{"SYSLOG_IDENTIFIER":"NVRM","MESSAGE":"x"}"#, Some("NVRM: x"));
    check(r#"{"SYSLOG_IDENTIFIER":[1,2],"MESSAGE":"x"}"#, Some("x"));
    check(r#"{"MESSAGE":[78,86,255]}"#, Some("NV\u{fffd}"));
    check(r#"{"MESSAGE":null}"#, Some(""));
    check("{}", Some(""));
    check(r#"{"MESSAGE":["a","b"]}"#, Some(""));
    check(r#"{"MESSAGE":{"a":1}}"#, Some(""));
    check("not json", None);
    check("[]", None);
}

#[test]
fn entries_come_whole_whatever_the_pieces() {
    let mut entries = Entries::default();
    let mut found = Vec::new();
    for byte in b"one\ntwo\n\nthree" {
        entries.extend(&[*byte]);
        found.extend(std::iter::from_fn(|| entries.next()));
    }
    assert_eq!(found, [b"one".to_vec(), b"two".to_vec(), b"".to_vec()]);
}

#[test]
fn an_entry_of_ten_megabytes_is_thrown_away_as_it_comes() {
    let mut entries = Entries::default();
    for _ in 0..10_000 {
        entries.extend(&[b'x'; 1024]);
        assert_eq!(entries.next(), None);
        assert!(entries.bytes.len() <= ENTRY_LEN_MAX);
    }
    entries.extend(b"end of it\nthe next\n");
    assert_eq!(entries.next().unwrap(), b"the next");
}

proptest! {
    #[test]
    fn no_entry_is_too_strange(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        let mut entries = Entries::default();
        entries.extend(&bytes);
        while let Some(json) = entries.next() {
            let _ = serde_json::from_slice::<Entry>(&json);
        }
    }
}

#[test]
fn r2_n30_an_entry_says_of_which_boot_it_is() {
    let boot = "0123456789abcdef0123456789abcdef";
    assert_eq!(super::hyphenated(boot), "01234567-89ab-cdef-0123-456789abcdef");
    for none in ["", "0123", "g123456789abcdef0123456789abcdef", "é123456789abcdef0123456789abcde"]
    {
        assert_eq!(super::hyphenated(none), "", "{none}");
    }
    let entry: Entry = serde_json::from_str(&format!(r#"{{"_BOOT_ID":"{boot}"}}"#)).unwrap();
    assert_eq!(entry.boot_id.as_deref(), Some(boot));
}
