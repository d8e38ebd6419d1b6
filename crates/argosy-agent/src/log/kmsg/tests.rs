use super::{Kmsg, Record, records};
use crate::log::{LINE_LEN_MAX, Options};
use proptest::prelude::*;

fn check(bytes: &[u8], expected: &[(u64, u64, &str)]) {
    let expected: Vec<Record> = expected
        .iter()
        .map(|(sequence, microseconds, text)| Record {
            sequence: *sequence,
            microseconds: *microseconds,
            text: (*text).to_owned(),
        })
        .collect();
    assert_eq!(records(bytes).collect::<Vec<_>>(), expected);
}

#[test]
fn records_are_read_with_number_time_and_text() {
    check(b"6,1234,5678901,-;NVRM: loaded\n", &[(1234, 5_678_901, "NVRM: loaded")]);
    check(
        b"3,7,8,-,caller=T1;a; b\n SUBSYSTEM=pci\n DEVICE=+pci:0000:18:00.0\n",
        &[(7, 8, "a; b")],
    );
    check(b"3,7,8,-;one\n3,8,9,-;two\n", &[(7, 8, "one"), (8, 9, "two")]);
    check(b"3,7,8,-;\n", &[(7, 8, "")]);
}

#[test]
fn escaped_bytes_are_what_they_were() {
    check(b"3,7,8,-;a\\x0ab \\x5cx41 \\xc3\\xa4\n", &[(7, 8, "a\nb \\x41 ä")]);
    check(b"3,7,8,-;\\xff\\xZZ\\x4\n", &[(7, 8, "\u{fffd}\\xZZ\\x4")]);
    check(b"3,7,8,-;\\x+4\n", &[(7, 8, "\\x+4")]);
}

#[test]
fn what_is_not_a_record_is_passed_over() {
    for garbage in
        ["", "\n", ";", "a,b,c,d;x", "3,7,8;x", "3,-1,8,-;x", "3,7,99999999999999999999,-;x"]
    {
        check(garbage.as_bytes(), &[]);
    }
    let long = [b"3,7,8,-;".as_slice(), &b"x".repeat(100_000)].concat();
    assert_eq!(records(&long).next().unwrap().text.len(), LINE_LEN_MAX);
}

#[tokio::test]
async fn an_overrun_is_not_an_end_and_an_error_is() {
    let options = Options { kmsg: "/dev/null".into(), ..Options::default() };
    // Nothing to wait for there; a terminal's master side can be waited for.
    assert!(Kmsg::open(&options).is_err());
    let options = Options { kmsg: "/dev/ptmx".into(), ..Options::default() };
    let Ok(mut kmsg) = Kmsg::open(&options) else {
        println!("skipped: there are no terminals here");
        return;
    };
    for (errno, goes_on) in [
        (rustix::io::Errno::PIPE, true),
        (rustix::io::Errno::INVAL, true),
        (rustix::io::Errno::INTR, true),
        (rustix::io::Errno::AGAIN, true),
        (rustix::io::Errno::IO, false),
    ] {
        kmsg.refused(&errno.into());
        assert_eq!((kmsg.file.is_some(), kmsg.problem().is_none()), (goes_on, goes_on), "{errno}");
    }
}

proptest! {
    #[test]
    fn no_bytes_are_too_strange(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        for record in records(&bytes) {
            prop_assert!(record.text.len() <= LINE_LEN_MAX);
        }
    }
}
