use super::*;
use crate::command::Kind;
use crate::record::tests::Memory;
use std::collections::BTreeMap;

fn entry(id: &str, ended: bool, answered: bool) -> Entry {
    let order = Order {
        id: id.to_owned(),
        kind: Kind::Drain,
        parameters: BTreeMap::new(),
        reason: String::new(),
        expires_at: None,
        deadline: Some(Timestamp::UNIX_EPOCH),
        quiet_seconds: 0,
    };
    let end = ended.then(|| End::completed(Timestamp::UNIX_EPOCH, "done"));
    let begun_at = Timestamp::UNIX_EPOCH;
    Entry { order, boot_id: "boot".to_owned(), begun_at, end, answered }
}

/// What the next process finds: `id` begun, `id.` ended, `id!` heard.
fn found(memory: &Memory) -> String {
    let (_, entries, _) = Journal::open(memory.boxed()).unwrap();
    let word = |entry: &Entry| {
        let how = match (&entry.end, entry.answered) {
            (None, _) => "",
            (Some(_), false) => ".",
            (Some(_), true) => "!",
        };
        format!("{}{how}", entry.order.id)
    };
    entries.iter().map(word).collect::<Vec<_>>().join(" ")
}

#[test]
fn the_last_entry_of_a_command_counts() {
    let memory = Memory::default();
    let (mut journal, _, _) = Journal::open(memory.boxed()).unwrap();
    journal.note(entry("a", false, false)).unwrap();
    assert_eq!(found(&memory), "a");
    journal.note(entry("b", false, false)).unwrap();
    journal.note(entry("a", true, false)).unwrap();
    assert_eq!(found(&memory), "a. b");
    journal.note(entry("a", true, true)).unwrap();
    assert_eq!(found(&memory), "a! b");
}

#[test]
fn it_is_bounded_and_keeps_what_was_not_heard() {
    let memory = Memory::default();
    let (mut journal, _, _) = Journal::open(memory.boxed()).unwrap();
    journal.note(entry("open", false, false)).unwrap();
    journal.note(entry("unheard", true, false)).unwrap();
    for number in 0..2000 {
        journal.note(entry(&format!("c{number}"), true, true)).unwrap();
    }
    let (_, entries, _) = Journal::open(memory.boxed()).unwrap();
    assert_eq!(entries.len(), ENDED_MAX);
    let ids: Vec<&str> = entries.iter().map(|entry| entry.order.id.as_str()).collect();
    assert_eq!((ids[0], ids[1], ids[ENDED_MAX - 1]), ("open", "unheard", "c1999"));
    assert!(memory.len() < 1024 * 1024);
}

#[test]
fn a6_what_could_not_be_written_is_written_with_the_next() {
    let memory = Memory::default();
    let (mut journal, _, _) = Journal::open(memory.boxed()).unwrap();
    journal.note(entry("a", false, false)).unwrap();
    memory.set_room(Some(memory.len() + 3));
    assert!(journal.note(entry("a", true, false)).is_err());
    assert_eq!(found(&memory), "a");
    memory.set_room(None);
    journal.note(entry("b", false, false)).unwrap();
    assert_eq!(found(&memory), "a. b");
}

#[test]
fn a7_a_torn_entry_is_as_if_it_was_never_written() {
    let memory = Memory::default();
    let (mut journal, _, _) = Journal::open(memory.boxed()).unwrap();
    journal.note(entry("a", false, false)).unwrap();
    journal.note(entry("a", true, false)).unwrap();
    let len = memory.len();
    memory.bytes.lock().unwrap().truncate(len - 1);
    assert_eq!(found(&memory), "a");
}
