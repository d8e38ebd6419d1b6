//! Leases and the fences made of them.
//!
//! A lease taken for no time at all has run out at once, so no test waits.

use super::{HOUR, Place, accepted, commit, documents, put, puts};
use crate::engine::{Commit, Engine, Expect, Fence, Outcome};
use jiff::SignedDuration;

async fn take(engine: &dyn Engine, holder: &str, ttl: SignedDuration) -> Option<u64> {
    engine.lease("loop", holder, ttl).await.expect("the engine is there").map(|lease| lease.epoch)
}

fn under(epoch: u64, id: &str) -> Commit {
    let fence = Some(Fence { lease: "loop".to_string(), epoch });
    Commit { fence, ..puts([put(id, Expect::Any, "1")]) }
}

/// Renewing keeps the epoch; other leases are not concerned.
pub async fn a_lease_is_granted_renewed_and_refused(place: &dyn Place) {
    let engine = place.open().await;
    let epoch = take(&*engine, "a", HOUR).await.expect("free");
    assert_eq!(take(&*engine, "a", HOUR).await, Some(epoch));
    assert_eq!(take(&*engine, "b", HOUR).await, None);
    assert_eq!(take(&*engine, "a", HOUR).await, Some(epoch));
    let other = engine.lease("other", "b", HOUR).await.expect("lease");
    assert!(other.is_some());
}

/// Whoever takes it, the one before included: its commits of the time before must not count.
pub async fn a_lease_that_ran_out_is_taken_with_a_larger_epoch(place: &dyn Place) {
    let engine = place.open().await;
    let first = take(&*engine, "a", SignedDuration::ZERO).await.expect("free");
    let second = take(&*engine, "b", HOUR).await.expect("ran out");
    assert!(first < second);
    assert_eq!(take(&*engine, "a", HOUR).await, None);
    assert_eq!(take(&*engine, "b", SignedDuration::ZERO).await, Some(second), "cut short");
    let third = take(&*engine, "b", HOUR).await.expect("ran out");
    assert!(second < third);
}

/// Never taken, ran out, taken by another; and one fenced commit does not reject the batch.
pub async fn a_commit_without_its_lease_is_fenced(place: &dyn Place) {
    let engine = place.open().await;
    assert_eq!(commit(&*engine, under(1, "x")).await, Outcome::Fenced, "never taken");
    let first = take(&*engine, "a", HOUR).await.expect("free");
    accepted(&*engine, under(first, "a")).await;
    assert_eq!(commit(&*engine, under(first + 1, "x")).await, Outcome::Fenced, "never given");
    assert_eq!(take(&*engine, "a", SignedDuration::ZERO).await, Some(first));
    assert_eq!(commit(&*engine, under(first, "x")).await, Outcome::Fenced, "ran out");
    let second = take(&*engine, "b", HOUR).await.expect("ran out");
    let batch = vec![under(first, "x"), under(second, "b"), puts([put("c", Expect::Any, "1")])];
    let outcomes = engine.commit(batch).await.expect("commit");
    assert_eq!(outcomes.first(), Some(&Outcome::Fenced), "taken by another");
    assert_eq!(documents(&*engine).await, "a=1@1 b=1@2 c=1@3");
}
