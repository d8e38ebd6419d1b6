//! Streams, reconnects, half-open connections and slow links.

use crate::sea::{Sea, Traced, Weather, digest, node_name};
use argosy_core::node::Liveness;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use turmoil::net::TcpStream;

/// Time for everybody to be there at the start.
const START_MAX: Duration = Duration::from_secs(30);
/// In which both sides must notice that the other is gone: pings every 20 s, answered within 20 s.
const NOTICE_MAX: Duration = Duration::from_secs(45);
/// In which a node is back at the latest once it can be: the longest wait between two tries, and one try.
const RETURN_MAX: Duration = Duration::from_secs(75);

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A sea on which all nodes have streams to the one control plane.
fn calm(weather: &Weather, nodes: usize) -> Sea {
    await_calm(Sea::new(weather, &["plane"], nodes), nodes)
}

fn await_calm(mut sea: Sea, nodes: usize) -> Sea {
    sea.until("all streams", START_MAX, |sea| sea.attached("plane") == nodes);
    sea.until("all are registered", START_MAX, |sea| {
        (0..nodes).all(|number| sea.node("plane", number).is_some())
    });
    sea
}

fn is_fresh(sea: &Sea, number: usize) -> bool {
    let node = sea.node("plane", number);
    node.is_some_and(|node| node.liveness == Liveness::Fresh)
}

#[test]
fn d11_a_half_open_connection_is_noticed_by_both_sides_in_time() {
    let mut sea = calm(&Weather::default(), 2);
    sea.pass(seconds(25));
    let cut_at = sea.sim.elapsed();
    sea.sim.partition("plane", node_name(0));
    let forgot = sea.until("the plane forgets", NOTICE_MAX, |sea| sea.attached("plane") == 1);
    let left = NOTICE_MAX.saturating_sub(forgot);
    sea.until("the node notices", left, |sea| !sea.since(cut_at, "lost").is_empty());
    let lost = sea.since(cut_at, "lost");
    assert!(lost.iter().all(|lost| lost.node == "gpu-0"), "the other is well: {lost:?}");
    // It was not a quick guess either: one lost packet is no lost node.
    assert!(seconds(15) < lost[0].at - cut_at, "{lost:?}");
    sea.sim.repair("plane", node_name(0));
    sea.until("both are back", RETURN_MAX, |sea| sea.attached("plane") == 2);
    assert!(is_fresh(&sea, 1));
}

#[test]
fn d11_a_connection_that_was_given_up_leaves_nothing_at_the_plane() {
    let mut sea = calm(&Weather::default(), 3);
    let before = sea.metric("plane", "argosy_connections");
    for round in 0..4 {
        sea.sim.partition("plane", node_name(round % 3));
        sea.until("one is gone", NOTICE_MAX, |sea| sea.attached("plane") == 2);
        sea.sim.repair("plane", node_name(round % 3));
        sea.until("all are back", RETURN_MAX, |sea| sea.attached("plane") == 3);
    }
    sea.until("as many connections as before", NOTICE_MAX, |sea| {
        sea.metric("plane", "argosy_connections") <= before
    });
}

#[test]
fn d5_a_node_that_can_send_but_not_hear_gives_up_its_stream_and_comes_back() {
    let mut sea = calm(&Weather::default(), 2);
    let cut_at = sea.sim.elapsed();
    sea.sim.partition_oneway("plane", node_name(0));
    sea.until("the node notices", NOTICE_MAX, |sea| !sea.since(cut_at, "lost").is_empty());
    sea.pass(seconds(60));
    assert!(is_fresh(&sea, 1));
    let healed_at = sea.sim.elapsed();
    sea.sim.repair_oneway("plane", node_name(0));
    let word = |sea: &Sea, word: &str| {
        sea.since(healed_at, word).iter().any(|traced| traced.node == "gpu-0")
    };
    // By a stream, or by a call: whichever it had fallen back to.
    let heard =
        |sea: &Sea| ["welcome", "registered", "told", "report"].iter().any(|w| word(sea, w));
    sea.until("it is heard", RETURN_MAX, heard);
    sea.until("it has a stream again", seconds(400), |sea| sea.attached("plane") == 2);
    assert!(is_fresh(&sea, 0));
}

#[test]
fn d10_latency_from_20_to_500_ms_loses_nobody() {
    let weather = Weather { seed: 7, latency_ms: (20, 500) };
    let mut sea = calm(&weather, 8);
    let began = sea.sim.elapsed();
    sea.pass(seconds(600));
    assert_eq!(sea.since(began, "lost"), []);
    assert_eq!(sea.attached("plane"), 8);
    assert!((0..8).all(|number| is_fresh(&sea, number)));
    let reports = sea.since(began, "report taken").len();
    assert!(8 * 8 <= reports, "{reports} in ten minutes");
}

#[test]
fn d10_a_link_that_stops_for_fifteen_seconds_loses_nobody() {
    let mut sea = calm(&Weather::default(), 2);
    let began = sea.sim.elapsed();
    for _ in 0..5 {
        sea.sim.hold("plane", node_name(0));
        sea.pass(seconds(15));
        sea.sim.release("plane", node_name(0));
        sea.pass(seconds(30));
    }
    assert_eq!(sea.since(began, "lost"), []);
    assert!(is_fresh(&sea, 0));
}

#[test]
fn d8_after_a_restart_of_the_plane_all_come_back_spread_and_nobody_is_lost() {
    const NODES: usize = 20;
    let mut sea = calm(&Weather::default(), NODES);
    sea.pass(seconds(20));
    let restarted_at = sea.sim.elapsed();
    sea.sim.bounce("plane");
    sea.until("all are back", seconds(15), |sea| sea.attached("plane") == NODES);
    let tries = sea.since(restarted_at, "attach");
    let mut tenths: Vec<u128> = tries.iter().map(|tried| tried.at.as_millis() / 100).collect();
    tenths.sort_unstable();
    let most = tenths.chunk_by(|a, b| a == b).map(<[u128]>::len).max().unwrap_or(0);
    assert!(most <= NODES / 4, "{most} of {NODES} in a tenth of a second");
    // The plane knew them from its disk, and every stream says so.
    assert_eq!(sea.since(restarted_at, "error not_found"), []);
    sea.pass(seconds(120));
    assert!((0..NODES).all(|number| is_fresh(&sea, number)));
}

#[test]
fn d8_n6_a_fault_during_an_outage_of_ten_minutes_is_heard_after_it() {
    const NODES: usize = 6;
    let mut sea = calm(&Weather::default(), NODES);
    sea.pass(seconds(70));
    sea.sim.crash("plane");
    sea.pass(seconds(60));
    sea.fail(3, "xid:79 gpu:5");
    sea.pass(seconds(540));
    let back_at = sea.sim.elapsed();
    sea.sim.bounce("plane");
    sea.until("all are back", RETURN_MAX, |sea| sea.attached("plane") == NODES);
    sea.until("the fault is known", seconds(10), |sea| {
        sea.node("plane", 3).is_some_and(|node| !node.findings.is_empty())
    });
    let taken = sea.since(back_at, "report taken");
    assert!(taken.iter().any(|taken| taken.node == "gpu-3"), "{taken:?}");
    sea.pass(seconds(120));
    for number in (0..NODES).filter(|number| *number != 3) {
        let node = sea.node("plane", number).unwrap();
        assert!(node.findings.is_empty() && is_fresh(&sea, number), "{number}: {node:?}");
    }
}

#[test]
fn d9_nodes_that_are_cut_off_one_by_one_and_healed_in_another_order_all_come_back() {
    const NODES: usize = 8;
    for seed in [3, 11] {
        let mut sea = calm(&Weather { seed, latency_ms: (1, 80) }, NODES);
        // A hash, so that the order is the seed's: multiplied by an odd number, a permutation.
        let place = |step: usize, by: u64| (step as u64 * (by | 1) + seed) as usize % NODES;
        for step in 0..NODES {
            sea.sim.partition("plane", node_name(place(step, seed)));
            sea.pass(seconds(7));
        }
        sea.until("all are gone", NOTICE_MAX, |sea| sea.attached("plane") == 0);
        for step in 0..NODES {
            sea.sim.repair("plane", node_name(place(step, seed + 6)));
            sea.pass(seconds(5));
        }
        sea.until("all are back", RETURN_MAX, |sea| sea.attached("plane") == NODES);
        sea.pass(seconds(90));
        assert!((0..NODES).all(|number| is_fresh(&sea, number)), "seed {seed}");
    }
}

#[test]
fn d12_when_one_address_is_dead_the_next_is_tried() {
    let mut sea = Sea::new(&Weather::default(), &["first", "second"], 3);
    sea.until("all streams", START_MAX, |sea| sea.attached("first") == 3);
    sea.sim.crash("first");
    sea.until("all moved", RETURN_MAX, |sea| sea.attached("second") == 3);
}

#[test]
fn n9_a_machine_that_is_cut_off_and_rebooted_says_so_and_keeps_its_name() {
    let mut sea = calm(&Weather::default(), 2);
    let before = sea.node("plane", 0).unwrap();
    sea.sim.crash(node_name(0));
    sea.until("its stream is gone", NOTICE_MAX, |sea| sea.attached("plane") == 1);
    sea.sim.bounce(node_name(0));
    sea.until("it is back", START_MAX, |sea| sea.attached("plane") == 2);
    sea.until("the reboot is known", START_MAX, |sea| {
        sea.node("plane", 0).is_some_and(|node| node.machine.boot_id != before.machine.boot_id)
    });
    let after = sea.node("plane", 0).unwrap();
    assert_eq!((&after.id, after.duty.clone()), (&before.id, before.duty.clone()));
}

#[test]
fn j2_a_reader_that_takes_nothing_is_cut_and_nobody_waits_for_it() {
    let mut sea = Sea::new(&Weather::default(), &["plane"], 2);
    sea.until("all streams", START_MAX, |sea| sea.attached("plane") == 2);
    let before = sea.metric("plane", "argosy_connections");
    sea.sim.client("sloth", async {
        let mut stream = TcpStream::connect(("plane", 8080)).await?;
        let request = "GET /metrics HTTP/1.1\r\nhost: plane\r\n\r\n".repeat(300);
        stream.write_all(request.as_bytes()).await?;
        // It keeps the connection, and reads nothing of it.
        std::future::pending::<()>().await;
        drop(stream);
        Ok(())
    });
    let began = sea.sim.elapsed();
    sea.until("it is let in", seconds(5), |sea| before < sea.metric("plane", "argosy_connections"));
    sea.until("it is cut", seconds(60), |sea| sea.metric("plane", "argosy_connections") <= before);
    assert!(seconds(20) < sea.sim.elapsed() - began, "a slow one has its time");
    assert_eq!(sea.since(began, "lost"), []);
    assert_eq!(sea.attached("plane"), 2);
}

/// Some of everything, by a seed.
///
/// Each link has a latency of its own that never changes: where a latency is drawn for each packet, the order
/// of packets within a tick decides who gets which, and in which order the tasks of a host that is killed
/// are dropped is tokio's business, by numbers that go on from run to run.
fn storm(seed: u64) -> Vec<Traced> {
    let sea = Sea::new(&Weather::default(), &["plane"], 5);
    for number in 0..5 {
        let spread = (seed * 5 + number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        let latency = Duration::from_millis(2 + spread % 250);
        sea.sim.set_link_latency("plane", node_name(number), latency);
    }
    let mut sea = await_calm(sea, 5);
    sea.sim.partition("plane", node_name(1));
    sea.pass(seconds(50));
    sea.fail(2, "xid:48 gpu:1");
    sea.sim.bounce("plane");
    sea.pass(seconds(40));
    sea.sim.repair("plane", node_name(1));
    sea.sim.bounce(node_name(4));
    sea.until("all are back", RETURN_MAX, |sea| sea.attached("plane") == 5);
    sea.pass(seconds(70));
    let mut trace = sea.trace();
    trace.sort_by(|a, b| (a.at, &a.node).cmp(&(b.at, &b.node)));
    trace
}

#[test]
fn the_same_seed_gives_the_same_trace_and_another_another() {
    let first = storm(5);
    assert!(50 < first.len(), "{}", first.len());
    let again = storm(5);
    let differs = first.iter().zip(&again).find(|(one, other)| one != other);
    assert_eq!((differs, again.len()), (None, first.len()));
    assert_eq!(digest(&again), digest(&first));
    assert_ne!(digest(&storm(6)), digest(&first));
}
