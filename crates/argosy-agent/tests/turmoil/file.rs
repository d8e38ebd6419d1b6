//! The agent's files after a power cut: cut at every byte, or torn within a sector.
//!
//! Not by turmoil's own file system: the agent writes with `std::fs` on a thread of its own, and a file
//! that is cut is cut. What a disk can leave of a write is what is tried here, on real files.

use argosy_agent::command::{End, Kind, Order};
use argosy_agent::journal::{Entry, Journal};
use argosy_agent::record::Disk;
use argosy_agent::signal::{Signal, SignalKind};
use argosy_agent::spool::{Keep, Report, SPOOL_LEN_MAX, Spool, Spooled};
use jiff::Timestamp;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// The unit in which a disk writes, or does not.
const SECTOR: usize = 512;

/// A directory of one test, gone when it is dropped.
struct Dir(PathBuf);

impl Dir {
    fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("argosy-turmoil-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        _ = std::fs::remove_dir_all(&self.0);
    }
}

fn signal(code: u32) -> Signal {
    Signal::once(SignalKind::Xid, Timestamp::UNIX_EPOCH, "a fault").with("xid_code", code)
}

fn report(sequence: u64, codes: &[u32]) -> Keep {
    Keep::Report(Box::new(Report {
        sequence,
        checked_at: Timestamp::UNIX_EPOCH,
        outcomes: Vec::new(),
        signals: codes.iter().copied().map(signal).collect(),
    }))
}

fn entry(id: u32, ended: bool, answered: bool) -> Entry {
    Entry {
        order: Order {
            id: format!("command-{id}"),
            kind: Kind::Drain,
            parameters: BTreeMap::new(),
            reason: "a test".to_owned(),
            expires_at: None,
            deadline: Some(Timestamp::UNIX_EPOCH),
            quiet_seconds: 0,
        },
        boot_id: "boot".to_owned(),
        begun_at: Timestamp::UNIX_EPOCH,
        end: ended.then(|| End::completed(Timestamp::UNIX_EPOCH, "done")),
        answered,
    }
}

fn open_spool(path: &Path) -> (Spool, Spooled) {
    let disk = Box::new(Disk::open(path).unwrap());
    let (spool, spooled, _) = Spool::open(disk, SPOOL_LEN_MAX).unwrap();
    (spool, spooled)
}

fn open_journal(path: &Path) -> (Journal, Vec<Entry>) {
    let (journal, entries, _) = Journal::open(Box::new(Disk::open(path).unwrap())).unwrap();
    (journal, entries)
}

/// What a disk may leave of a file of which only the first bytes are sure: nothing more; the rest of the
/// sector as zeros, or as what some other file left there; one bit of it wrong.
fn torn(whole: &[u8], sure: usize) -> Vec<Vec<u8>> {
    let kept = whole[..sure].to_vec();
    let end = sure.next_multiple_of(SECTOR).min(whole.len());
    let with = |tail: Vec<u8>| [kept.clone(), tail].concat();
    let mut flipped = whole[sure..end].to_vec();
    if let Some(first) = flipped.first_mut() {
        *first ^= 0x10;
    }
    vec![kept.clone(), with(vec![0; end - sure]), with(strange(end - sure)), with(flipped)]
}

/// Bytes of another file. Not of this one: file systems give a file no blocks back with what it held
/// before, and records that are whole and in their place would be believed.
fn strange(len: usize) -> Vec<u8> {
    let word = |n: usize| (n as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()[0];
    (0..len).map(word).collect()
}

/// The file after each step, and what was in it then; steps only append.
struct History<T> {
    bytes: Vec<u8>,
    steps: Vec<(usize, T)>,
}

impl<T: Clone> History<T> {
    /// What was known when so many bytes had been written.
    fn known(&self, bytes: usize) -> T {
        let step = self.steps.iter().rev().find(|(len, _)| *len <= bytes);
        step.expect("an empty file knows something, too").1.clone()
    }
}

fn spool_history(path: &Path) -> History<Spooled> {
    let (mut spool, empty) = open_spool(path);
    let mut steps = vec![(0, empty)];
    let keeps = [
        Keep::Signals(vec![signal(13), signal(31)]),
        Keep::Signals(vec![signal(63)]),
        report(7, &[13, 31]),
        Keep::Signals(vec![signal(94), signal(48)]),
        Keep::Taken(7),
        report(8, &[63, 94]),
        Keep::Signals(vec![signal(79)]),
    ];
    for keep in keeps {
        // A record at a time, so that every whole record is a step.
        let parts = match keep {
            Keep::Signals(signals) => {
                signals.into_iter().map(|one| Keep::Signals(vec![one])).collect()
            }
            whole @ (Keep::Report(_) | Keep::Taken(_) | Keep::All(_)) => vec![whole],
        };
        for part in parts {
            spool.keep(&part).unwrap();
            let bytes = std::fs::read(path).unwrap();
            let copy = path.with_extension("copy");
            std::fs::write(&copy, &bytes).unwrap();
            steps.push((bytes.len(), open_spool(&copy).1));
        }
    }
    let bytes = std::fs::read(path).unwrap();
    assert!(steps.is_sorted_by_key(|(len, _)| *len), "it was compacted: shorten the history");
    History { bytes, steps }
}

fn journal_history(path: &Path) -> History<Vec<Entry>> {
    let (mut journal, empty) = open_journal(path);
    let mut steps = vec![(0, empty)];
    let mut known: Vec<Entry> = Vec::new();
    for entry in [
        entry(1, false, false),
        entry(1, true, false),
        entry(2, false, false),
        entry(1, true, true),
        entry(2, true, false),
        entry(3, false, false),
    ] {
        journal.note(entry.clone()).unwrap();
        match known.iter_mut().find(|known| known.order.id == entry.order.id) {
            Some(known) => *known = entry,
            None => known.push(entry),
        }
        let len = std::fs::metadata(path).unwrap().len();
        steps.push((usize::try_from(len).unwrap(), known.clone()));
    }
    History { bytes: std::fs::read(path).unwrap(), steps }
}

#[test]
fn a7_a_spool_torn_at_any_byte_is_what_it_was_before_the_torn_record() {
    let dir = Dir::new();
    let history = spool_history(&dir.file("spool"));
    let path = dir.file("torn");
    for sure in 0..=history.bytes.len() {
        for bytes in torn(&history.bytes, sure) {
            std::fs::write(&path, &bytes).unwrap();
            let (mut spool, found) = open_spool(&path);
            // A tail that happens to be right is no tail that was torn.
            let same = bytes.iter().zip(&history.bytes).take_while(|(a, b)| a == b).count();
            assert_eq!(found, history.known(same.max(sure)), "at {sure}");
            // And it goes on.
            spool.keep(&Keep::Signals(vec![signal(999)])).unwrap();
            drop(spool);
            let (_, again) = open_spool(&path);
            assert_eq!(again.signals.last(), Some(&signal(999)), "at {sure}");
            assert_eq!(again.signals.len(), found.signals.len() + 1, "at {sure}");
        }
    }
}

#[test]
fn a7_f2_a_journal_torn_at_any_byte_forgets_no_entry_that_was_noted_before() {
    let dir = Dir::new();
    let history = journal_history(&dir.file("journal"));
    let path = dir.file("torn");
    for sure in 0..=history.bytes.len() {
        for bytes in torn(&history.bytes, sure) {
            std::fs::write(&path, &bytes).unwrap();
            let (mut journal, found) = open_journal(&path);
            let same = bytes.iter().zip(&history.bytes).take_while(|(a, b)| a == b).count();
            assert_eq!(found, history.known(same.max(sure)), "at {sure}");
            journal.note(entry(9, false, false)).unwrap();
            drop(journal);
            let (_, again) = open_journal(&path);
            assert_eq!(again.len(), found.len() + 1, "at {sure}");
        }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Signal(u32),
    Report(u64, Vec<u32>),
    Taken(u64),
    /// The power fails, and so many bytes of the last write are not there.
    Cut(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0_u32..200).prop_map(Step::Signal),
        2 => (1_u64..20, prop::collection::vec(0_u32..200, 0..4)).prop_map(|(n, c)| Step::Report(n, c)),
        1 => (1_u64..20).prop_map(Step::Taken),
        2 => (0_usize..400).prop_map(Step::Cut),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever was kept and however often the power failed in between, the next process finds what the
    /// file held up to the cut, and never fails to begin.
    #[test]
    fn a7_a_spool_survives_any_number_of_power_cuts(steps in prop::collection::vec(step(), 1..40)) {
        let dir = Dir::new();
        let path = dir.file("spool");
        let (mut spool, _) = open_spool(&path);
        let mut last_len = 0;
        for step in steps {
            let before = std::fs::metadata(&path).unwrap().len();
            match step {
                Step::Signal(code) => spool.keep(&Keep::Signals(vec![signal(code)])).unwrap(),
                Step::Report(sequence, codes) => spool.keep(&report(sequence, &codes)).unwrap(),
                Step::Taken(sequence) => spool.keep(&Keep::Taken(sequence)).unwrap(),
                Step::Cut(missing) => {
                    drop(spool);
                    let bytes = std::fs::read(&path).unwrap();
                    // Only of the last write: what was written before has had time to reach the disk.
                    let least = usize::try_from(last_len).unwrap().min(bytes.len());
                    let sure = bytes.len().saturating_sub(missing).max(least);
                    let copy = dir.file("whole");
                    std::fs::write(&copy, &bytes[..least]).unwrap();
                    let (_, surely) = open_spool(&copy);
                    std::fs::write(&path, &bytes[..sure]).unwrap();
                    let (opened, found) = open_spool(&path);
                    let kept = |signals: &[Signal]| signals.iter().all(|signal| {
                        let inside = found.report.as_ref().is_some_and(|r| r.signals.contains(signal));
                        found.signals.contains(signal) || inside
                    });
                    // The last write may be a report's acknowledgement, which takes the report away.
                    let taken = surely.report.is_some() && found.report.is_none();
                    prop_assert!(taken || kept(&surely.signals), "{surely:?} {found:?}");
                    spool = opened;
                    last_len = std::fs::metadata(&path).unwrap().len();
                    continue;
                }
            }
            last_len = before;
        }
    }
}
