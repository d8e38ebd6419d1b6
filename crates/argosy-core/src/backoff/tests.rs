use super::delay;
use jiff::SignedDuration;
use proptest::prelude::*;

#[test]
fn the_wait_doubles_up_to_the_longest() {
    for (attempt, full_s) in
        [(0, 1), (1, 1), (2, 2), (3, 4), (4, 8), (5, 10), (40, 10), (u32::MAX, 10)]
    {
        let wait = delay("a", attempt, SignedDuration::from_secs(1), SignedDuration::from_secs(10));
        let full = SignedDuration::from_secs(full_s);
        assert!(full * 4 / 5 <= wait && wait <= full, "attempt {attempt}: {wait:?}");
    }
}

#[test]
fn the_jitter_differs_by_who_and_attempt_and_not_by_run() {
    let wait = |who, attempt| {
        delay(who, attempt, SignedDuration::from_secs(10), SignedDuration::from_secs(10))
    };
    assert_eq!(wait("a", 1), wait("a", 1));
    assert_ne!(wait("a", 1), wait("b", 1));
    assert_ne!(wait("a", 1), wait("a", 2));
    let who: Vec<String> = (0..1000).map(|n| format!("cluster-{n}/dns")).collect();
    let early = who.iter().filter(|who| wait(who, 1) < SignedDuration::from_secs(9)).count();
    assert!((400..600).contains(&early), "half of a fleet comes in the first half: {early}");
}

proptest! {
    #[test]
    fn no_wait_is_negative_or_longer_than_the_longest(
        who in ".*", attempt: u32, first in 0_i64..i64::MAX, max in 0_i64..i64::MAX,
    ) {
        let max = SignedDuration::from_secs(max);
        let wait = delay(&who, attempt, SignedDuration::from_secs(first), max);
        prop_assert!(SignedDuration::ZERO <= wait && wait <= max);
    }
}
