//! The change feed.

use super::{Place, accepted, key, put, puts, remove, second};
use crate::engine::{
    Change, Changed, Changes, Commit, Engine, Expect, Key, Outcome, Put, Retention, Revision,
};
use std::collections::BTreeMap;
use std::sync::Arc;

pub(super) async fn page(engine: &dyn Engine, after: Revision, limit: usize) -> Vec<Change> {
    match engine.changes(after, limit).await.expect("the engine is there") {
        Changes::Page(page) => page,
        Changes::Gone(floor) => panic!("{after} is gone, the feed begins after {floor}"),
    }
}

fn keep(changes_kept: u64) -> Retention {
    Retention { changes_kept, streams: vec![] }
}

/// With what each wrote and removed, in the order of the commit, and when.
pub async fn the_feed_tells_all_commits_in_order(place: &dyn Place) {
    let engine = place.open().await;
    assert_eq!(page(&*engine, Revision::ZERO, 10).await, []);
    let first = [put("b", Expect::Absent, "1"), put("a", Expect::Absent, "2")];
    accepted(&*engine, Commit { at: second(5), ..puts(first) }).await;
    accepted(&*engine, Commit { at: second(4), ..Commit::default() }).await;
    let last = [remove("a", Expect::Any), remove("never", Expect::Any)];
    accepted(&*engine, Commit { at: second(6), ..puts(last) }).await;
    let changed = |id, body: Option<&str>| Changed { key: key(id), body: body.map(Arc::from) };
    let change = |revision, at, documents| Change {
        revision: Revision(revision),
        at: second(at),
        documents,
    };
    assert_eq!(
        page(&*engine, Revision::ZERO, 10).await,
        [
            change(1, 5, vec![changed("b", Some("1")), changed("a", Some("2"))]),
            change(2, 4, vec![]),
            change(3, 6, vec![changed("a", None), changed("never", None)]),
        ]
    );
}

/// From every revision, in pages of every size.
pub async fn the_feed_is_paged_and_resumes_anywhere(place: &dyn Place) {
    let engine = place.open().await;
    for _ in 0..6 {
        accepted(&*engine, Commit::default()).await;
    }
    for after in 0..=6_u64 {
        for limit in [0, 1, 4, usize::MAX] {
            let revisions: Vec<u64> =
                page(&*engine, Revision(after), limit).await.iter().map(|c| c.revision.0).collect();
            let expected: Vec<u64> = (after + 1..=6).take(limit).collect();
            assert_eq!(revisions, expected, "after {after}, at most {limit}");
        }
    }
}

/// Trimming keeps as many changes as asked for, and the documents are not touched.
pub async fn a_trimmed_feed_says_where_to_resume(place: &dyn Place) {
    let engine = place.open().await;
    for number in 1..=10 {
        let id = format!("d{number}");
        accepted(&*engine, puts([put(&id, Expect::Absent, "1")])).await;
    }
    engine.trim(&keep(100)).await.expect("trim");
    assert_eq!(page(&*engine, Revision::ZERO, 100).await.len(), 10);
    engine.trim(&keep(4)).await.expect("trim");
    engine.trim(&keep(7)).await.expect("what is gone stays gone");
    for after in 0..6 {
        let changes = engine.changes(Revision(after), 100).await.expect("changes");
        assert_eq!(changes, Changes::Gone(Revision(6)), "after {after}");
    }
    assert_eq!(page(&*engine, Revision(6), 100).await.len(), 4);
    engine.trim(&keep(0)).await.expect("trim");
    assert_eq!(engine.changes(Revision(9), 1).await.expect("changes"), Changes::Gone(Revision(10)));
    assert_eq!(page(&*engine, Revision(10), 100).await, []);
    assert_eq!(accepted(&*engine, Commit::default()).await, Revision(11));
    assert_eq!(page(&*engine, Revision(10), 100).await.len(), 1);
    assert_eq!(engine.scan(None, 100).await.expect("scan").len(), 10);
    drop(engine);
    let again = place.open().await;
    assert_eq!(again.changes(Revision(9), 1).await.expect("changes"), Changes::Gone(Revision(10)));
}

/// Somebody saw a commit that a restored backup does not have.
pub async fn a_revision_from_the_future_is_gone(place: &dyn Place) {
    let engine = place.open().await;
    accepted(&*engine, Commit::default()).await;
    for after in [2, u64::MAX] {
        let changes = engine.changes(Revision(after), 10).await.expect("changes");
        assert_eq!(changes, Changes::Gone(Revision::ZERO));
    }
}

/// Eight writers and a reader that follows from the start: each revision exactly once, in order,
/// and what the feed tells is what is stored.
pub async fn writers_at_once_leave_no_hole_in_the_feed(place: &dyn Place) {
    let engine = place.open().await;
    tail_while_writing(&[engine]).await;
}

/// The same with writers spread over several engines on the same data, each followed by a reader.
pub async fn tail_while_writing(engines: &[Arc<dyn Engine>]) {
    const WRITERS: u64 = 8;
    const BATCHES: u64 = 12;
    // Each batch of a writer holds three commits: one conflicts.
    const COMMITS: u64 = WRITERS * BATCHES * 2;
    let mut writers = tokio::task::JoinSet::new();
    for (writer, engine) in (0..WRITERS).zip(engines.iter().cycle()) {
        let engine = engine.clone();
        writers.spawn(async move {
            let mut given = Vec::new();
            for batch in 0..BATCHES {
                given.extend(write_batch(&*engine, writer, batch).await);
            }
            given
        });
    }
    let mut readers = tokio::task::JoinSet::new();
    for engine in engines {
        let engine = engine.clone();
        readers.spawn(async move { follow(&*engine, COMMITS).await });
    }
    let mut given: Vec<Revision> = writers.join_all().await.concat();
    given.sort();
    assert_eq!(given, (1..=COMMITS).map(Revision).collect::<Vec<_>>(), "given to the writers");
    for replayed in readers.join_all().await {
        let stored = engines.first().expect("an engine").scan(None, usize::MAX).await;
        let stored: BTreeMap<Key, (Revision, Arc<str>)> = stored
            .expect("scan")
            .into_iter()
            .map(|document| (document.key, (document.revision, document.body)))
            .collect();
        assert_eq!(replayed, stored, "a replay of the feed is what is stored");
    }
}

async fn write_batch(engine: &dyn Engine, writer: u64, batch: u64) -> Vec<Revision> {
    let shared = Put { expect: Expect::Any, ..put("shared", Expect::Any, &format!("{writer}")) };
    let own = format!("w{writer}");
    let third = match batch % 3 {
        2 => remove(&own, Expect::Any),
        _ => put(&own, Expect::Any, &batch.to_string()),
    };
    let batch = vec![
        puts([shared]),
        puts([put("never", Expect::At(Revision(u64::MAX)), "1")]),
        puts([third]),
    ];
    let outcomes = engine.commit(batch).await.expect("commit");
    let revision = |outcome: &Outcome| match outcome {
        Outcome::Committed(revision) => Some(*revision),
        Outcome::Conflict(_) | Outcome::Fenced => None,
    };
    let given: Vec<Revision> = outcomes.iter().filter_map(revision).collect();
    assert_eq!(given.len(), 2, "{outcomes:?}");
    given
}

async fn follow(engine: &dyn Engine, until: u64) -> BTreeMap<Key, (Revision, Arc<str>)> {
    let mut documents = BTreeMap::new();
    let mut seen = Revision::ZERO;
    while seen.0 < until {
        for change in page(engine, seen, 5).await {
            assert_eq!(change.revision, seen.next(), "the feed has a hole");
            seen = change.revision;
            for changed in change.documents {
                match changed.body {
                    Some(body) => documents.insert(changed.key, (seen, body)),
                    None => documents.remove(&changed.key),
                };
            }
        }
        tokio::task::yield_now().await;
    }
    documents
}
