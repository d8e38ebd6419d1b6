use super::{ENTRY_LEN_MAX, Entries, Entry, Journald, WELL_AFTER};
use crate::log::Options;
use crate::testing::Dir;
use proptest::prelude::*;
use std::future::poll_fn;
use std::os::unix::fs::PermissionsExt;
use std::task::Poll;

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

/// A quiet machine: `journalctl` ends once, and is silent from then on.
#[tokio::test]
async fn r2_i20_a_journal_that_is_silent_again_is_read_again() {
    let dir = Dir::new();
    let journal = dir.path().join("journal/machine");
    std::fs::create_dir_all(&journal).unwrap();
    std::fs::write(journal.join("system.journal"), "").unwrap();
    let (program, ran) = (dir.path().join("journalctl"), dir.path().join("ran"));
    let text = format!(
        "#!/bin/sh\n[ -e {0} ] && {{ touch {0}.again; exec sleep 1000; }}\ntouch {0}\n",
        ran.display()
    );
    std::fs::write(&program, text).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let options = Options {
        journalctl: program,
        journals: vec![dir.path().join("journal")],
        ..Options::default()
    };
    let mut journald = Journald::open(&options).unwrap();
    let mut turn = async || {
        poll_fn(|cx| {
            assert!(journald.poll_next(cx).is_pending(), "nothing is written");
            Poll::Ready(journald.problem().is_some())
        })
        .await
    };
    while !turn().await {
        tokio::task::yield_now().await;
    }
    let again = dir.path().join("ran.again");
    loop {
        assert!(turn().await, "it has not been read yet");
        if again.exists() {
            break;
        }
        tokio::task::yield_now().await;
    }
    tokio::time::pause();
    tokio::time::sleep(WELL_AFTER).await;
    turn().await;
    assert!(!turn().await, "it runs, and has nothing to say");
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
