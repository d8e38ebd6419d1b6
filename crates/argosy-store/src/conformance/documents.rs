//! Documents, expectations and batches.

use super::{Place, accepted, append, commit, documents, key, put, puts, remove, second};
use crate::engine::{Commit, Expect, Key, Outcome, Put, Revision};

/// Revisions number commits; a document has that of its last writer.
pub async fn documents_are_created_updated_and_removed(place: &dyn Place) {
    let engine = place.open().await;
    assert_eq!(engine.head().await.expect("head"), Revision::ZERO);
    assert_eq!(documents(&*engine).await, "");
    accepted(&*engine, puts([put("a", Expect::Absent, "1"), put("b", Expect::Absent, "2")])).await;
    assert_eq!(documents(&*engine).await, "a=1@1 b=2@1");
    accepted(&*engine, puts([put("a", Expect::At(Revision(1)), "3")])).await;
    assert_eq!(documents(&*engine).await, "a=3@2 b=2@1");
    accepted(&*engine, puts([remove("b", Expect::At(Revision(1)))])).await;
    assert_eq!(documents(&*engine).await, "a=3@2");
    accepted(&*engine, puts([put("b", Expect::Absent, "4")])).await;
    assert_eq!(documents(&*engine).await, "a=3@2 b=4@4");
    assert_eq!(engine.head().await.expect("head"), Revision(4));
}

/// A row for each expectation, on a document that exists at 1 and one that does not.
pub async fn each_expectation_is_judged(place: &dyn Place) {
    let engine = place.open().await;
    accepted(&*engine, puts([put("there", Expect::Absent, "1")])).await;
    for (id, expect, fits) in [
        ("there", Expect::Any, true),
        ("there", Expect::Absent, false),
        ("there", Expect::At(Revision(1)), true),
        ("there", Expect::At(Revision(2)), false),
        ("there", Expect::At(Revision::ZERO), false),
        ("missing", Expect::Any, true),
        ("missing", Expect::Absent, true),
        ("missing", Expect::At(Revision(1)), false),
        ("missing", Expect::At(Revision::ZERO), false),
    ] {
        // Looked at only, so that the next row finds the same state.
        let check = Commit { checks: vec![(key(id), expect)], ..Commit::default() };
        let outcome = commit(&*engine, check).await;
        assert_eq!(matches!(outcome, Outcome::Committed(_)), fits, "{id} {expect:?}: {outcome:?}");
    }
    assert_eq!(
        commit(&*engine, puts([remove("missing", Expect::At(Revision(1)))])).await,
        Outcome::Conflict(key("missing"))
    );
    accepted(&*engine, puts([remove("missing", Expect::Any)])).await;
    accepted(&*engine, puts([put("there", Expect::Any, "2")])).await;
}

/// The accepted ones get consecutive revisions.
pub async fn a_conflict_rejects_one_commit_not_the_batch(place: &dyn Place) {
    let engine = place.open().await;
    accepted(&*engine, puts([put("a", Expect::Absent, "1")])).await;
    let batch = vec![
        puts([put("b", Expect::Absent, "2")]),
        puts([put("c", Expect::Any, "3"), put("a", Expect::Absent, "3")]),
        puts([put("d", Expect::Absent, "4")]),
    ];
    assert_eq!(
        engine.commit(batch).await.expect("commit"),
        [
            Outcome::Committed(Revision(2)),
            Outcome::Conflict(key("a")),
            Outcome::Committed(Revision(3))
        ]
    );
    assert_eq!(documents(&*engine).await, "a=1@1 b=2@2 d=4@3");
}

/// Also documents that an earlier commit of the batch made, changed or removed.
pub async fn commits_of_a_batch_see_those_before(place: &dyn Place) {
    let engine = place.open().await;
    let batch = vec![
        puts([put("a", Expect::Absent, "1")]),
        puts([put("a", Expect::Absent, "2")]),
        puts([put("a", Expect::At(Revision(1)), "3")]),
        puts([remove("a", Expect::At(Revision(2)))]),
        puts([put("a", Expect::Absent, "4"), put("b", Expect::Absent, "5")]),
        puts([remove("b", Expect::Any)]),
    ];
    assert_eq!(
        engine.commit(batch).await.expect("commit"),
        [
            Outcome::Committed(Revision(1)),
            Outcome::Conflict(key("a")),
            Outcome::Committed(Revision(2)),
            Outcome::Committed(Revision(3)),
            Outcome::Committed(Revision(4)),
            Outcome::Committed(Revision(5)),
        ]
    );
    assert_eq!(documents(&*engine).await, "a=4@4");
}

/// Neither a document, nor a change, nor an entry.
pub async fn a_refused_commit_leaves_nothing(place: &dyn Place) {
    let engine = place.open().await;
    let refused = Commit {
        at: second(1),
        puts: vec![put("a", Expect::Absent, "1")],
        checks: vec![(key("b"), Expect::At(Revision(7)))],
        appends: vec![append("a", "{}")],
        fence: None,
    };
    assert_eq!(commit(&*engine, refused).await, Outcome::Conflict(key("b")));
    assert_eq!(engine.head().await.expect("head"), Revision::ZERO);
    assert_eq!(documents(&*engine).await, "");
    assert_eq!(engine.stream_head("audit").await.expect("stream"), None);
    assert_eq!(accepted(&*engine, puts([put("a", Expect::Absent, "1")])).await, Revision(1));
}

/// And an empty batch gets nothing.
pub async fn an_empty_commit_gets_a_revision(place: &dyn Place) {
    let engine = place.open().await;
    assert_eq!(accepted(&*engine, Commit::default()).await, Revision(1));
    assert_eq!(engine.commit(vec![]).await.expect("commit"), []);
    assert_eq!(engine.head().await.expect("head"), Revision(1));
}

/// By bytes, first the kind and then the id, whatever the page's size.
pub async fn documents_are_paged_in_key_order(place: &dyn Place) {
    let engine = place.open().await;
    let mut keys: Vec<Key> = ["B", "a", "a b", "a-b", "ä", "Z", "z", "b/c", ""]
        .iter()
        .flat_map(|id| [Key::new("node", *id), Key::new("Node", *id), Key::new("nod", *id)])
        .collect();
    let all = keys.iter().map(|key| Put {
        key: key.clone(),
        expect: Expect::Absent,
        body: Some("{}".into()),
    });
    accepted(&*engine, puts(all.collect::<Vec<_>>())).await;
    keys.sort();
    for limit in [1, 2, 7, keys.len(), usize::MAX] {
        let mut seen: Vec<Key> = Vec::new();
        loop {
            let page = engine.scan(seen.last(), limit).await.expect("scan");
            assert!(page.len() <= limit);
            if page.is_empty() {
                break;
            }
            seen.extend(page.into_iter().map(|document| document.key));
        }
        assert_eq!(seen, keys, "in pages of {limit}");
    }
    assert_eq!(engine.scan(None, 0).await.expect("scan"), []);
}

/// Quotes, other alphabets, what SQL and JSON would like to interpret, and a mebibyte.
pub async fn odd_keys_and_large_bodies_come_back_unchanged(place: &dyn Place) {
    let engine = place.open().await;
    let large = format!("\"{}\"", "x".repeat(1 << 20));
    let odd = [
        ("'; DROP TABLE document; --", r#"{"a":"\u0000 \\ \" '"}"#),
        ("\"quoted\" \\ back\tslash\n", "[]"),
        ("船团 🚢 \u{10ffff}", r#""船团 🚢""#),
        ("%_{}$1?1:x{NULL,\"a\"}", "null"),
        ("large", &large),
    ];
    let commit = Commit {
        puts: odd.iter().map(|(id, body)| put(id, Expect::Absent, body)).collect(),
        appends: odd.iter().map(|(id, body)| append(id, body)).collect(),
        ..Commit::default()
    };
    accepted(&*engine, commit).await;
    for (id, body) in odd {
        accepted(
            &*engine,
            Commit { checks: vec![(key(id), Expect::At(Revision(1)))], ..Commit::default() },
        )
        .await;
        let query = super::streams::all(Some(id));
        let entries = engine.entries(&query).await.expect("entries");
        assert_eq!(entries.iter().map(|entry| &*entry.body).collect::<Vec<_>>(), [body]);
    }
    let mut stored: Vec<_> = engine.scan(None, 10).await.expect("scan");
    let mut changed = super::feed::page(&*engine, Revision::ZERO, 1).await.remove(0).documents;
    stored.sort_by_key(|document| odd.iter().position(|(id, _)| *id == document.key.id));
    changed.sort_by_key(|changed| odd.iter().position(|(id, _)| *id == changed.key.id));
    for ((id, body), (document, changed)) in odd.iter().zip(stored.iter().zip(&changed)) {
        assert_eq!((&*document.key.id, &*document.body), (*id, *body));
        assert_eq!((&*changed.key.id, changed.body.as_deref()), (*id, Some(*body)));
    }
    assert_eq!((stored.len(), changed.len()), (odd.len(), odd.len()));
}

/// Documents, feed, streams; and the epochs of leases still grow.
pub async fn everything_is_there_after_reopening(place: &dyn Place) {
    let first = place.open().await;
    let lease = first.lease("loop", "me", super::HOUR).await.expect("lease").expect("free");
    for number in 1..=3 {
        accepted(
            &*first,
            Commit {
                at: second(number),
                puts: vec![put(&format!("d{number}"), Expect::Absent, &number.to_string())],
                appends: vec![append("a", "1"), append("b", "2")],
                ..Commit::default()
            },
        )
        .await;
    }
    let query = super::streams::all(None);
    let before = (
        first.head().await.expect("head"),
        documents(&*first).await,
        super::feed::page(&*first, Revision::ZERO, 10).await,
        first.entries(&query).await.expect("entries"),
        first.stream_head("audit").await.expect("stream"),
    );
    drop(first);
    let again = place.open().await;
    let after = (
        again.head().await.expect("head"),
        documents(&*again).await,
        super::feed::page(&*again, Revision::ZERO, 10).await,
        again.entries(&query).await.expect("entries"),
        again.stream_head("audit").await.expect("stream"),
    );
    assert_eq!(before, after);
    assert_eq!(accepted(&*again, Commit::default()).await, Revision(4));
    let renewed = again.lease("loop", "me", super::HOUR).await.expect("lease").expect("mine");
    assert!(lease.epoch <= renewed.epoch);
}
