//! What rules count.

use super::{check, event, holds_on, now, refused, said, xid};
use crate::health::sample::NODE;
use argosy_core::health::{Event, EventType, Sighting};
use argosy_core::node::{Gpu, Node};
use jiff::SignedDuration;

const GPU_A: &str = "GPU-a";
const GPU_B: &str = "GPU-b";

/// `TYPE/CODE GPU minutes minutes …`, the GPU `a` or `b`: what was seen so many minutes ago.
fn sightings(lines: &[&str]) -> Vec<Sighting> {
    let read = |line: &&str| {
        let mut words = line.split_whitespace();
        let (kind, code) = words.next().unwrap().split_once('/').unwrap();
        let gpu = words.next().unwrap();
        let time = |minutes: &str| now() - SignedDuration::from_mins(minutes.parse().unwrap());
        Sighting {
            event_type: *EventType::ALL.iter().find(|known| known.as_str() == kind).unwrap(),
            code: code.parse().unwrap(),
            gpu: format!("GPU-{gpu}"),
            hardware: format!("serial-{gpu}"),
            times: words.map(time).collect(),
            line: None,
        }
    };
    lines.iter().map(read).collect()
}

fn node(lines: &[&str]) -> Node {
    let gpu = |index, uuid: &str, serial: &str| Gpu {
        index,
        uuid: uuid.to_owned(),
        serial: serial.to_owned(),
        ..Gpu::default()
    };
    let gpus = vec![gpu(0, GPU_A, "serial-a"), gpu(1, GPU_B, "serial-b")];
    Node { gpus, sightings: sightings(lines), ..NODE.clone() }
}

fn on_a(event: Event) -> Event {
    Event { gpu_index: 0, gpu_uuid: GPU_A.to_owned(), ..event }
}

/// What a function counts, for an Xid 31 on GPU `a`.
#[track_caller]
fn counts(function: &str, lines: &[&str], expected: i64) {
    let holds = holds_on(&format!("{function} == {expected}"), &on_a(xid(31)), &node(lines), &[]);
    assert_eq!(holds, Ok(true), "{function} over {lines:?} is not {expected}");
}

#[test]
fn this_event_is_counted() {
    for function in ["seen", "seen_on_gpu", "seen_on_serial", "bursts", "bursts_on_gpu"] {
        counts(&format!("{function}('24h')"), &[], 1);
    }
    counts("seen('24h', 31)", &[], 1);
    counts("seen('24h', 79)", &[], 0);
    counts("bursts('24h', 79)", &[], 0);
    counts("seen('24h', 'fatal')", &[], 0);
}

#[test]
fn a_flood_counts_as_often_as_it_happened_and_is_one_burst() {
    let flood = Event { count: 7, ..on_a(xid(31)) };
    let count = |condition| holds_on(condition, &flood, &node(&["xid/31 a 30"]), &[]);
    assert_eq!(count("seen('1h') == 8"), Ok(true));
    assert_eq!(count("seen('1h', 13) == 0"), Ok(true));
    assert_eq!(count("bursts('1h') == 2"), Ok(true));
    let endless = Event { count: u32::MAX, ..flood };
    assert_eq!(holds_on("seen('1h') == 32", &endless, &node(&[]), &[]), Ok(true));
}

#[test]
fn the_same_kind_and_code_is_counted_within_the_window() {
    let lines = ["xid/31 a 1 59 61 1439 1441", "xid/13 a 5", "thermal/0 a 5", "xid/31 b 30"];
    counts("seen('1h')", &lines, 1 + 2 + 1);
    counts("seen('24h')", &lines, 1 + 4 + 1);
    counts("seen('2d')", &lines, 1 + 5 + 1);
    counts("seen_on_gpu('1h')", &lines, 1 + 2);
    counts("seen('1h', 13)", &lines, 1);
    counts("seen('60m')", &lines, 1 + 2 + 1);
    // To the edge, but not it.
    counts("seen_on_gpu('59m')", &lines, 1 + 1);
}

#[test]
fn an_event_without_a_uuid_is_on_the_gpu_at_its_place() {
    let lines = ["xid/31 a 5", "xid/31 b 5 6"];
    let by_place = Event { gpu_index: 1, gpu_uuid: String::new(), ..xid(31) };
    let count = |condition| holds_on(condition, &by_place, &node(&lines), &[]);
    assert_eq!(count("seen_on_gpu('1h') == 3"), Ok(true));
    assert_eq!(count("seen_on_serial('1h') == 3"), Ok(true));
}

#[test]
fn hardware_is_followed_to_other_nodes() {
    let elsewhere = sightings(&["xid/31 a 10 20", "xid/31 b 10", "xid/79 a 10"]);
    let count = |condition, event: &Event| {
        holds_on(condition, event, &node(&["xid/31 a 5", "xid/31 b 6"]), &elsewhere)
    };
    let event = on_a(xid(31));
    assert_eq!(count("seen_on_serial('1h') == 4", &event), Ok(true));
    assert_eq!(count("seen_on_gpu('1h') == 2", &event), Ok(true));
    assert_eq!(count("seen('1h') == 3", &event), Ok(true));
    // The event itself may say which hardware it was.
    let moved = Event { gpu_serial: "serial-b".to_owned(), ..event };
    assert_eq!(count("seen_on_serial('1h') == 3", &moved), Ok(true));
    // Without an identity nothing elsewhere is the same.
    let nowhere = Event { gpu_index: -1, gpu_uuid: String::new(), ..xid(31) };
    assert_eq!(count("seen_on_serial('1h') == 1", &nowhere), Ok(true));
}

#[test]
fn what_comes_in_one_burst_counts_once() {
    // Three minutes apart is another burst, less is not, even in a long chain.
    counts("bursts_on_gpu('24h')", &["xid/31 a 0 1 2"], 1);
    counts("bursts_on_gpu('24h')", &["xid/31 a 2 4 6 8 10"], 1);
    counts("bursts_on_gpu('24h')", &["xid/31 a 3"], 2);
    counts("bursts_on_gpu('24h')", &["xid/31 a 100 60 61 62 10"], 4);
    counts("bursts('24h')", &["xid/31 a 60", "xid/31 b 61 120"], 3);
    counts("bursts_on_serial('1h')", &["xid/31 a 59 61"], 2);
}

#[test]
fn faults_that_end_a_gpu_s_service_are_counted_together() {
    let lines = ["xid/79 a 10", "xid/48 a 20", "xid/13 a 30", "xid/74 a 40", "xid/79 b 50"];
    counts("seen_on_gpu('1h', 'fatal')", &lines, 2);
    counts("seen('1h', 'fatal')", &lines, 3);
    let sxid = event(EventType::Sxid, "sxid_code=20034");
    let lines = ["sxid/20034 3 10", "sxid/30006 3 10"];
    assert_eq!(holds_on("seen('1h', 'fatal') == 2", &sxid, &node(&lines), &[]), Ok(true));
}

#[test]
fn times_in_the_future_are_recent() {
    counts("seen('1h')", &["xid/31 a -5 -500"], 3);
}

#[test]
fn a_window_may_be_computed_but_must_be_one() {
    let mut event = on_a(xid(31));
    event.message = "1h".to_owned();
    let node = node(&["xid/31 a 30 90"]);
    let condition = "event.message == '1h' && seen(event.message) == 2";
    assert_eq!(holds_on(condition, &event, &node, &[]), Ok(true));
    check(
        "event.gpu_index == 3 && seen(event.message) > 1",
        &Event { message: "soon".to_owned(), ..xid(31) },
        Err(
            "Error executing function 'seen': `soon` is not a duration: write a whole number and a \
             unit (ms, s, m, h, d), like 500ms, 10s or 30m",
        ),
    );
    refused(
        "seen('soon') > 1",
        " at 1:5: `soon` is not a duration: write a whole number and a unit (ms, s, m, h, d), like 500ms, 10s or 30m",
    );
    refused("seen('0s') > 1", " at 1:5: the window `0s` is not between 1ms and 90d");
    refused("seen('91d') > 1", " at 1:5: the window `91d` is not between 1ms and 90d");
    refused("seen(24) > 1", " at 1:5: a window is text, like '24h'");
    refused("seen() > 1", " at 1:5: seen takes a window, and a code if you like: seen('24h', 31)");
    refused(
        "seen('1h', 1, 2) > 1",
        " at 1:5: seen takes a window, and a code if you like: seen('24h', 31)",
    );
    refused(
        "seen('1h', 'all') > 1",
        " at 1:5: the second argument must be a code, like 31, or 'fatal'",
    );
    refused(
        "seen('1h', 3.5) > 1",
        " at 1:5: the second argument must be a code, like 31, or 'fatal'",
    );
    refused("event.seen('1h') > 1", " at 1:11: seen belongs to no value; write seen('24h')");
}

#[test]
fn the_default_policy_looks_back() {
    for (code, lines, expected) in [
        (31, &["xid/31 a 60"][..], "degraded xid-program-again"),
        (13, &["xid/13 a 1439"], "degraded xid-program-again"),
        // One crash, many lines.
        (31, &["xid/31 a 0 1 2"], "healthy xid-harmless"),
        // Another GPU, another code, another day.
        (31, &["xid/31 b 60"], "healthy xid-harmless"),
        (31, &["xid/13 a 60"], "healthy xid-harmless"),
        (31, &["xid/31 a 1441"], "healthy xid-harmless"),
        // Other faults of programs are not counted.
        (43, &["xid/43 a 60 120 180 240"], "healthy xid-harmless"),
        (45, &["xid/45 a 60 120 180"], "healthy xid-harmless"),
        (45, &["xid/45 a 60 120 180 240"], "degraded xid-cleanup-again"),
        (79, &["xid/79 a 60 120 180"], "unhealthy xid-fatal"),
        (79, &["xid/79 a 60 120", "xid/48 a 180 240"], "unhealthy xid-fatal-again"),
        (79, &["xid/79 b 60 120", "xid/48 a 180 240"], "unhealthy xid-fatal"),
        (31, &["xid/79 a 60 120 180 240 300 360"], "healthy xid-harmless"),
    ] {
        assert_eq!(said(&on_a(xid(code)), &node(lines)), expected, "Xid {code} after {lines:?}");
    }
}
