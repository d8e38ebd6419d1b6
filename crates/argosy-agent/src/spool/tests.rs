use super::*;
use crate::record::tests::Memory;
use crate::signal::SignalKind;

fn signal(code: u32) -> Signal {
    Signal::once(SignalKind::Xid, Timestamp::UNIX_EPOCH, "a fault").with("xid_code", code)
}

fn made(sequence: u64, codes: &[u32]) -> Report {
    Report {
        sequence,
        checked_at: Timestamp::UNIX_EPOCH,
        conditions: Vec::new(),
        outcomes: Vec::new(),
        signals: codes.iter().copied().map(signal).collect(),
    }
}

fn report(sequence: u64, codes: &[u32]) -> Keep {
    Keep::Report(Box::new(made(sequence, codes)))
}

fn signals(codes: &[u32]) -> Keep {
    Keep::Signals(codes.iter().copied().map(signal).collect())
}

fn all(flying: Option<(u64, &[u32])>, codes: &[u32]) -> Keep {
    let report = flying.map(|(sequence, codes)| made(sequence, codes));
    let signals = codes.iter().copied().map(signal).collect();
    Keep::All(Box::new(Spooled { report, signals }))
}

/// What the next process finds: the number of the report and its codes, and the codes beside it.
fn found(memory: &Memory) -> String {
    let (_, spooled, cut) = Spool::open(memory.boxed(), SPOOL_LEN_MAX).unwrap();
    let codes = |signals: &[Signal]| {
        signals
            .iter()
            .map(|signal| signal.metrics["xid_code"].as_str())
            .collect::<Vec<_>>()
            .join(",")
    };
    let report = spooled.report.map(|r| format!("{}:{} ", r.sequence, codes(&r.signals)));
    let cut = if cut == 0 { String::new() } else { " cut".to_owned() };
    format!("{}[{}]{cut}", report.unwrap_or_default(), codes(&spooled.signals))
}

#[test]
fn what_was_kept_is_found_by_the_next_process() {
    let rows: &[(&[Keep], &str)] = &[
        (&[], "[]"),
        (&[signals(&[1, 2]), signals(&[3])], "[1,2,3]"),
        (&[signals(&[1, 2]), report(5, &[1])], "5:1 [2]"),
        (&[signals(&[1]), report(5, &[1]), signals(&[2])], "5:1 [2]"),
        (&[signals(&[1]), report(5, &[1]), Keep::Taken(5), signals(&[2])], "[2]"),
        (&[signals(&[1]), report(5, &[1]), Keep::Taken(4)], "5:1 []"),
        (&[Keep::Taken(9)], "[]"),
        (&[signals(&[1, 2, 3]), all(None, &[7])], "[7]"),
        (&[signals(&[1]), report(5, &[1]), all(Some((6, &[2])), &[3])], "6:2 [3]"),
        (&[all(Some((6, &[2])), &[3]), report(6, &[2]), Keep::Taken(6)], "[3]"),
        (&[signals(&[1]), all(None, &[])], "[]"),
    ];
    for (keeps, expected) in rows {
        let memory = Memory::default();
        let (mut spool, _, _) = Spool::open(memory.boxed(), SPOOL_LEN_MAX).unwrap();
        for keep in *keeps {
            spool.keep(keep).unwrap();
        }
        assert_eq!(found(&memory), *expected, "{keeps:?}");
    }
}

#[test]
fn nothing_is_left_on_disk_when_everything_was_taken() {
    let memory = Memory::default();
    let (mut spool, _, _) = Spool::open(memory.boxed(), SPOOL_LEN_MAX).unwrap();
    for sequence in 1..=100 {
        spool.keep(&signals(&[1, 2, 3])).unwrap();
        spool.keep(&report(sequence, &[1, 2, 3])).unwrap();
        spool.keep(&Keep::Taken(sequence)).unwrap();
        assert_eq!(memory.len(), 0);
    }
}

#[test]
fn a7_a_torn_tail_is_cut_at_the_last_good_record() {
    let memory = Memory::default();
    let (mut spool, _, _) = Spool::open(memory.boxed(), SPOOL_LEN_MAX).unwrap();
    spool.keep(&signals(&[1])).unwrap();
    spool.keep(&signals(&[2])).unwrap();
    drop(spool);
    let len = memory.len();
    memory.bytes.lock().unwrap().truncate(len - 3);
    assert_eq!(found(&memory), "[1] cut");
    assert_eq!(found(&memory), "[1]");
    memory.bytes.lock().unwrap()[10] ^= 0x40;
    assert_eq!(found(&memory), "[] cut");
}

#[test]
fn a6_a_full_disk_costs_nothing_while_the_process_lives_and_heals() {
    let memory = Memory::default();
    let (mut spool, _, _) = Spool::open(memory.boxed(), SPOOL_LEN_MAX).unwrap();
    spool.keep(&signals(&[1])).unwrap();
    memory.set_room(Some(memory.len() + 10));
    assert!(spool.keep(&signals(&[2])).is_err());
    assert!(spool.is_behind());
    assert_eq!(found(&memory), "[1]");
    memory.set_room(None);
    spool.keep(&signals(&[3])).unwrap();
    // What was missed is not there yet, so a crash now would lose it; only who remembers it can say.
    assert!(spool.is_behind());
    assert_eq!(found(&memory), "[1,3]");
    spool.keep(&all(None, &[1, 2, 3])).unwrap();
    assert!(!spool.is_behind());
    assert_eq!(found(&memory), "[1,2,3]");
    memory.set_room(Some(memory.len()));
    assert!(spool.keep(&all(None, &[4])).is_err());
    assert!(spool.is_behind());
    assert_eq!(found(&memory), "[1,2,3]");
}

#[test]
fn what_was_missed_is_not_forgotten_because_something_else_was_taken() {
    let memory = Memory::default();
    let (mut spool, _, _) = Spool::open(memory.boxed(), SPOOL_LEN_MAX).unwrap();
    spool.keep(&signals(&[1])).unwrap();
    spool.keep(&report(1, &[1])).unwrap();
    memory.set_room(Some(memory.len()));
    assert!(spool.keep(&signals(&[2])).is_err());
    memory.set_room(None);
    spool.keep(&Keep::Taken(1)).unwrap();
    assert!(spool.is_behind());
    spool.keep(&all(None, &[2])).unwrap();
    assert_eq!((spool.is_behind(), found(&memory).as_str()), (false, "[2]"));
}

#[test]
fn a_report_that_is_too_long_for_one_record_is_kept_in_parts() {
    let memory = Memory::default();
    let (mut spool, _, _) = Spool::open(memory.boxed(), SPOOL_LEN_MAX).unwrap();
    let long = |code| Signal { raw: "x".repeat(4096), ..signal(code) };
    let signals: Vec<Signal> = (0..500).map(long).collect();
    spool.keep(&Keep::Signals(signals.clone())).unwrap();
    let report = Report {
        sequence: 5,
        checked_at: Timestamp::UNIX_EPOCH,
        conditions: Vec::new(),
        outcomes: vec![CheckOutcome::healthy("nvml", "well")],
        signals,
    };
    spool.keep(&Keep::Report(Box::new(report.clone()))).unwrap();
    let whole = memory.len();
    let (_, spooled, _) = Spool::open(memory.boxed(), SPOOL_LEN_MAX).unwrap();
    assert_eq!(spooled, Spooled { report: Some(report), signals: Vec::new() });
    // Torn, it is none, and its signals are by themselves.
    let memory = Memory::default();
    let (mut spool, _, _) = Spool::open(memory.boxed(), SPOOL_LEN_MAX).unwrap();
    let spooled = Spooled { signals: spooled.report.unwrap().signals, report: None };
    spool.keep(&Keep::Signals(spooled.signals.clone())).unwrap();
    let again = Report {
        sequence: 5,
        checked_at: Timestamp::UNIX_EPOCH,
        conditions: Vec::new(),
        outcomes: Vec::new(),
        signals: spooled.signals.clone(),
    };
    spool.keep(&Keep::Report(Box::new(again))).unwrap();
    assert!(memory.len() <= whole);
    let torn = memory.len() - 1;
    memory.bytes.lock().unwrap().truncate(torn);
    let (_, found, _) = Spool::open(memory.boxed(), SPOOL_LEN_MAX).unwrap();
    assert_eq!(found, spooled);
}

#[test]
fn it_never_grows_past_its_limit() {
    let memory = Memory::default();
    let (mut spool, _, _) = Spool::open(memory.boxed(), 4096).unwrap();
    let refused = (0..1000).filter(|code| spool.keep(&signals(&[*code])).is_err()).count();
    assert!(900 < refused, "{refused}");
    assert!(memory.len() <= 4096);
    // What was taken makes room again.
    let codes: Vec<u32> = (0..1000).collect();
    assert!(spool.keep(&report(1, &codes[..1])).is_err() || memory.len() <= 4096);
}

#[test]
fn what_a_newer_agent_wrote_is_passed_over() {
    let memory = Memory::default();
    let (mut records, _) = Records::open(memory.boxed()).unwrap();
    let odd = |kind, json: &str| Record { kind, json: json.as_bytes().to_vec() };
    records.append(&[odd(99, "{}"), odd(SIGNAL, "{\"kind\":\"quantum\"}")], true).unwrap();
    records.append(&[record(SIGNAL, &signal(7)).unwrap()], true).unwrap();
    assert_eq!(found(&memory), "[7]");
}
