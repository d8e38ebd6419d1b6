//! Streams and their chains.

use super::{Place, accepted, append, second};
use crate::engine::{
    Append, Commit, Engine, Entry, EntryQuery, Retention, Revision, StreamRetention, chain,
};
use jiff::{SignedDuration, Timestamp};

pub(super) fn all(subject: Option<&str>) -> EntryQuery {
    EntryQuery {
        stream: "audit".to_string(),
        subject: subject.map(str::to_string),
        cursor: None,
        newest_first: false,
        limit: usize::MAX,
    }
}

async fn entries(engine: &dyn Engine) -> Vec<Entry> {
    engine.entries(&all(None)).await.expect("the engine is there")
}

async fn write(engine: &dyn Engine, at: i64, subjects: &[&str]) -> Revision {
    let appends = subjects.iter().map(|subject| append(subject, "{}")).collect();
    accepted(engine, Commit { at: second(at), appends, ..Commit::default() }).await
}

/// Whether the entries follow each other and end at the head that is remembered apart from them.
pub async fn chain_is_whole(engine: &dyn Engine) -> bool {
    let entries = entries(engine).await;
    let linked = |pair: &[Entry]| match pair {
        [before, after] => after.previous == before.hash && after.sequence == before.sequence + 1,
        _ => true,
    };
    let sound = |entry: &Entry| {
        let own = chain(&entry.previous, entry.sequence, &entry.subject, entry.at, &entry.body);
        own == entry.hash
    };
    let last = entries.last().map(|entry| (entry.sequence, entry.hash.clone()));
    let head = engine.stream_head("audit").await.expect("stream");
    entries.iter().all(sound) && entries.windows(2).all(linked) && (last.is_none() || last == head)
}

/// Without holes, also over several commits of a batch and several streams.
pub async fn entries_are_numbered_and_chained(place: &dyn Place) {
    let engine = place.open().await;
    assert_eq!(engine.stream_head("audit").await.expect("stream"), None);
    assert_eq!(entries(&*engine).await, []);
    write(&*engine, 1, &["a", "b"]).await;
    let other = Append { stream: "status".to_string(), ..append("a", "{}") };
    let batch = [vec![append("c", "1")], vec![other, append("a", "2")], vec![append("b", "3")]];
    let batch = batch.map(|appends| Commit { at: second(2), appends, ..Commit::default() });
    engine.commit(batch.to_vec()).await.expect("commit");
    let audit = entries(&*engine).await;
    let line = |entry: &Entry| format!("{}{}@{}", entry.sequence, entry.subject, entry.revision);
    let lines: Vec<String> = audit.iter().map(line).collect();
    assert_eq!(lines, ["1a@1", "2b@1", "3c@2", "4a@3", "5b@4"]);
    assert_eq!(audit.first().expect("five").previous, "0".repeat(64));
    assert!(chain_is_whole(&*engine).await);
    let (status, _) = engine.stream_head("status").await.expect("stream").expect("written to");
    assert_eq!(status, 1);
}

/// By subject, from either end, in pages.
pub async fn entries_are_filtered_and_paged_both_ways(place: &dyn Place) {
    let engine = place.open().await;
    write(&*engine, 1, &["a", "b", "a", "c", "a", "b"]).await;
    for (subject, cursor, newest_first, limit, expected) in [
        (None, None, false, 100, "1 2 3 4 5 6"),
        (None, None, true, 100, "6 5 4 3 2 1"),
        (None, Some(2), false, 3, "3 4 5"),
        (None, Some(5), true, 3, "4 3 2"),
        (None, Some(u64::MAX), false, 3, ""),
        (None, Some(u64::MAX), true, 2, "6 5"),
        (None, Some(0), true, 3, ""),
        (Some("a"), None, false, 2, "1 3"),
        (Some("a"), Some(3), false, 2, "5"),
        (Some("a"), Some(5), true, 1, "3"),
        (Some("z"), None, true, 9, ""),
        (None, None, false, 0, ""),
    ] {
        let query = EntryQuery { cursor, newest_first, limit, ..all(subject) };
        let found = engine.entries(&query).await.expect("entries");
        let found: Vec<String> = found.iter().map(|entry| entry.sequence.to_string()).collect();
        assert_eq!(found.join(" "), expected, "{query:?}");
    }
}

/// By age and by count, only ever from the beginning, and never the number of the next entry.
pub async fn trimming_keeps_the_chain_whole(place: &dyn Place) {
    let engine = place.open().await;
    // The fourth was written by a clock that is behind.
    for at in [10, 20, 30, 15, 40, 50] {
        write(&*engine, at, &["a"]).await;
    }
    for (before, entries_kept, expected) in [
        (5, 100, "1 2 3 4 5 6"),
        (20, 100, "2 3 4 5 6"),
        (25, 100, "3 4 5 6"),
        (25, 3, "4 5 6"),
        (45, 100, "6"),
        (45, 0, ""),
    ] {
        let stream = |stream: &str| StreamRetention {
            stream: stream.to_string(),
            before: second(before),
            entries_kept,
        };
        let streams = vec![stream("nobody wrote to"), stream("audit")];
        let retention = Retention { changes_kept: 100, streams };
        engine.trim(&retention).await.expect("trim");
        let kept = entries(&*engine).await;
        let kept: Vec<String> = kept.iter().map(|entry| entry.sequence.to_string()).collect();
        assert_eq!(kept.join(" "), expected, "before {before}, at most {entries_kept}");
        assert!(chain_is_whole(&*engine).await);
    }
    let (last, hash) = engine.stream_head("audit").await.expect("stream").expect("written to");
    assert_eq!(last, 6);
    write(&*engine, 60, &["a"]).await;
    let next = entries(&*engine).await.remove(0);
    assert_eq!((next.sequence, next.previous), (7, hash));
}

/// In the feed and in the streams, so that a hash computed before storing fits what is read.
pub async fn times_are_kept_to_the_microsecond(place: &dyn Place) {
    let engine = place.open().await;
    let micros = second(1_700_000_000) + SignedDuration::from_micros(123_456);
    let far = Timestamp::from_second(-5_000_000_000).expect("the year 1811 is in range");
    for (revision, at, kept) in [
        (1, micros + SignedDuration::from_nanos(999), micros),
        (2, far, far),
        (3, Timestamp::default(), Timestamp::default()),
    ] {
        let commit = Commit { at, appends: vec![append("a", "{}")], ..Commit::default() };
        assert_eq!(accepted(&*engine, commit).await, Revision(revision));
        let change = super::feed::page(&*engine, Revision(revision - 1), 1).await.remove(0);
        let entry = entries(&*engine).await.pop().expect("just written");
        assert_eq!((change.at, entry.at), (kept, kept));
    }
    assert!(chain_is_whole(&*engine).await);
}
