use super::*;
use futures_util::FutureExt;
use jiff::Timestamp;

fn made(revision: u64, at_ms: u64, len: usize) -> Made {
    let body = Bytes::from(vec![b'x'; len]);
    Made { revision: Revision(revision), at: Duration::from_millis(at_ms), body }
}

/// Whether a page is given to somebody who asks now, at a revision.
fn hit(gate: &Gate, key: &str, revision: u64, at_ms: u64) -> bool {
    let now = Duration::from_millis(at_ms);
    gate.page(key, now, Revision(revision), now).is_some()
}

#[tokio::test]
async fn o2_few_are_at_work_some_wait_and_the_rest_come_back_later() {
    for (cores, at_once) in [(1, 1), (2, 1), (3, 1), (8, 4)] {
        let gate = Gate::new(cores);
        let mut at_work = Vec::new();
        for _ in 0..at_once {
            at_work.push(gate.enter().now_or_never().unwrap().unwrap());
        }
        let mut waiting: Vec<_> = (0..WAITING_MAX).map(|_| Box::pin(gate.enter())).collect();
        for waiter in &mut waiting {
            assert!(waiter.now_or_never().is_none(), "it waits");
        }
        let fault = gate.enter().await.unwrap_err().problem("", "", Timestamp::UNIX_EPOCH);
        assert_eq!((fault.status, fault.code.as_str()), (429, "HYPERFLEET-LMT-004"));
        drop(at_work.pop());
        let first = waiting.remove(0);
        assert!(first.now_or_never().unwrap().is_ok(), "in turn");
        assert!(gate.enter().now_or_never().is_none(), "and there is room to wait");
    }
}

#[test]
fn a_page_is_given_again_while_it_is_true() {
    let gate = Gate::new(2);
    gate.keep("a".to_owned(), made(7, 1000, 10));
    assert!(hit(&gate, "a", 7, 1999));
    assert!(!hit(&gate, "a", 7, 2000), "what is in memory only has moved");
    assert!(!hit(&gate, "a", 8, 1001), "whoever wrote sees what it wrote");
    assert!(!hit(&gate, "b", 7, 1001));
    gate.keep("a".to_owned(), made(8, 1500, 10));
    assert!(hit(&gate, "a", 8, 1501));
}

#[test]
fn pages_do_not_fill_the_memory() {
    let gate = Gate::new(2);
    let half = KEPT_BYTES_MAX / 2;
    gate.keep("a".to_owned(), made(7, 0, half));
    gate.keep("b".to_owned(), made(7, 0, half));
    gate.keep("c".to_owned(), made(7, 0, 1));
    assert!(hit(&gate, "a", 7, 1) && hit(&gate, "b", 7, 1) && !hit(&gate, "c", 7, 1));
    // The same page again takes its own place.
    gate.keep("a".to_owned(), made(8, 1, half));
    assert!(hit(&gate, "a", 8, 2) && hit(&gate, "b", 7, 2));
    // What is old makes room.
    gate.keep("d".to_owned(), made(8, 1500, KEPT_BYTES_MAX));
    assert!(hit(&gate, "d", 8, 1501) && !hit(&gate, "a", 8, 1501));
}

#[test]
fn who_waited_is_given_what_was_read_meanwhile() {
    let gate = Gate::new(2);
    gate.keep("a".to_owned(), made(7, 1000, 10));
    let asked = |asked_ms: u64| {
        let asked_at = Duration::from_millis(asked_ms);
        gate.page("a", asked_at, Revision(9), Duration::from_millis(1200)).is_some()
    };
    assert!(asked(900) && asked(1000), "it was read after they asked");
    assert!(!asked(1001), "they may have written revision 9 themselves");
}

#[tokio::test]
async fn those_who_ask_for_the_same_wait_for_one_another() {
    let gate = Gate::new(2);
    let first = gate.turn("a").await;
    let mut second = Box::pin(gate.turn("a"));
    assert!((&mut second).now_or_never().is_none());
    assert!(gate.turn("b").now_or_never().is_some(), "others do not");
    drop(first);
    let second = second.now_or_never().unwrap();
    assert_eq!(gate.pages().asked.len(), 1);
    drop(second);
    assert!(gate.pages().asked.is_empty(), "nothing is remembered of who asked");
    // One that gave up while it waited is not waited for.
    let first = gate.turn("a").await;
    let mut gone = Box::pin(gate.turn("a"));
    assert!((&mut gone).now_or_never().is_none());
    drop(first);
    drop(gone);
    assert!(gate.pages().asked.is_empty());
    assert!(gate.turn("a").now_or_never().is_some());
}
