//! What every engine must do, as one suite that each of them runs.
//!
//! An engine's tests implement `Place` and name it in `conformance!`, which makes one test of each
//! behaviour. `agree` compares two engines step by step on a script of random bytes.

mod agree;
mod documents;
mod feed;
mod leases;
mod streams;

pub use agree::agree;
pub use documents::*;
pub use feed::*;
pub use leases::*;
pub use streams::*;

use crate::engine::{Append, Commit, Engine, Expect, Key, Outcome, Put, Revision};
use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use std::sync::Arc;

/// Where an engine under test keeps its data: empty at first.
#[async_trait]
pub trait Place: Send + Sync {
    /// Opens the engine; again, to see what it kept. The one before has been dropped.
    async fn open(&self) -> Arc<dyn Engine>;
}

/// Makes one test of each behaviour, for the engine in a new place, which the expression makes.
#[macro_export]
macro_rules! conformance {
    ($place:expr) => {
        $crate::conformance!(@ $place,
            documents_are_created_updated_and_removed,
            each_expectation_is_judged,
            a_conflict_rejects_one_commit_not_the_batch,
            commits_of_a_batch_see_those_before,
            a_refused_commit_leaves_nothing,
            an_empty_commit_gets_a_revision,
            documents_are_paged_in_key_order,
            odd_keys_and_large_bodies_come_back_unchanged,
            everything_is_there_after_reopening,
            the_feed_tells_all_commits_in_order,
            the_feed_is_paged_and_resumes_anywhere,
            a_trimmed_feed_says_where_to_resume,
            a_revision_from_the_future_is_gone,
            writers_at_once_leave_no_hole_in_the_feed,
            entries_are_numbered_and_chained,
            entries_are_filtered_and_paged_both_ways,
            trimming_keeps_the_chain_whole,
            times_are_kept_to_the_microsecond,
            a_lease_is_granted_renewed_and_refused,
            a_lease_that_ran_out_is_taken_with_a_larger_epoch,
            a_commit_without_its_lease_is_fenced,
        );
    };
    (@ $place:expr, $($behaviour:ident),* $(,)?) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
            async fn $behaviour() {
                $crate::conformance::$behaviour(&$place).await;
            }
        )*
    };
}

const HOUR: SignedDuration = SignedDuration::from_hours(1);

fn second(second: i64) -> Timestamp {
    Timestamp::from_second(second).expect("a second of this era is in range")
}

fn key(id: &str) -> Key {
    Key::new("cluster", id)
}

fn put(id: &str, expect: Expect, body: &str) -> Put {
    Put { key: key(id), expect, body: Some(body.into()) }
}

fn remove(id: &str, expect: Expect) -> Put {
    Put { key: key(id), expect, body: None }
}

fn append(subject: &str, body: &str) -> Append {
    Append { stream: "audit".to_string(), subject: subject.to_string(), body: body.into() }
}

fn puts(puts: impl Into<Vec<Put>>) -> Commit {
    Commit { puts: puts.into(), ..Commit::default() }
}

async fn commit(engine: &dyn Engine, commit: Commit) -> Outcome {
    let mut outcomes = engine.commit(vec![commit]).await.expect("the engine is there");
    assert_eq!(outcomes.len(), 1, "one outcome for one commit");
    outcomes.remove(0)
}

async fn accepted(engine: &dyn Engine, one: Commit) -> Revision {
    match commit(engine, one).await {
        Outcome::Committed(revision) => revision,
        refused @ (Outcome::Conflict(_) | Outcome::Fenced) => panic!("not accepted: {refused:?}"),
    }
}

/// The documents as one line: `a=1@2 b=2@3`.
async fn documents(engine: &dyn Engine) -> String {
    let documents = engine.scan(None, usize::MAX).await.expect("the engine is there");
    let line = |document: &crate::engine::Document| {
        format!("{}={}@{}", document.key.id, document.body, document.revision)
    };
    documents.iter().map(line).collect::<Vec<_>>().join(" ")
}
