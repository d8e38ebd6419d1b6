use super::*;
use crate::run::Product;

#[test]
fn r2_m5_more_commits_than_the_fleet_can_be_the_reason_of_are_a_violation() {
    let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    // So many in each of three minutes are in order; one more in one of them is not.
    for (each_minute, well) in [(COMMITS_LEAST, true), (COMMITS_LEAST + 1, false)] {
        let mut oracle = Oracle::new(&Product::plain().settings);
        let mut revision = Revision::ZERO;
        let mut broken = None;
        for minute in 0..3 {
            let now = start + SignedDuration::from_mins(minute);
            for _ in 0..each_minute {
                revision = revision.next();
                let commit = Commit {
                    at: now,
                    puts: Vec::new(),
                    checks: Vec::new(),
                    appends: Vec::new(),
                    fence: None,
                };
                broken = broken.or(oracle.commit(revision, &commit, now, &|_| true).err());
            }
        }
        assert_eq!(broken.as_ref().map(|(name, _)| *name), (!well).then_some("I15"), "{broken:?}");
    }
}
