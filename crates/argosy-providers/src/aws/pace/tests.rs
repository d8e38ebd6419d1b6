use super::{Bucket, Rate};
use std::time::Duration;

#[test]
fn a_bucket_gives_its_burst_at_once_and_the_rest_in_turn() {
    let bucket = Bucket::new(Rate { burst: 2, per_s: 2.0 });
    let take = |at_ms: u64| bucket.take(Duration::from_millis(at_ms)).map(|wait| wait.as_millis());
    assert_eq!(take(0), Ok(0));
    assert_eq!(take(0), Ok(0));
    assert_eq!(take(0), Ok(500));
    assert_eq!(take(0), Ok(1000), "each waits for those before it");
    assert_eq!(take(2000), Ok(0), "time pays it back");
    assert_eq!(take(60_000), Ok(0));
    assert_eq!(take(60_000), Ok(0));
    assert_eq!(take(60_000), Ok(500), "and no more than the burst is saved up");
}

#[test]
fn who_would_wait_too_long_takes_no_turn() {
    let bucket = Bucket::new(Rate { burst: 1, per_s: 0.1 });
    let take = || bucket.take(Duration::ZERO);
    assert_eq!([take(), take(), take(), take()].map(|turn| turn.is_ok()), [true; 4]);
    assert_eq!(take(), Err(Duration::from_secs(40)));
    assert_eq!(take(), Err(Duration::from_secs(40)), "the one before is not in the queue");
}

#[test]
fn who_was_told_to_be_slower_has_nothing_saved_up_and_waits_as_told() {
    let check = |retry_after_s: u64, expected: Result<Duration, Duration>| {
        let bucket = Bucket::new(Rate { burst: 100, per_s: 10.0 });
        bucket.slow_down(Duration::ZERO, Duration::from_secs(retry_after_s));
        assert_eq!(bucket.take(Duration::ZERO), expected);
    };
    check(0, Ok(Duration::from_millis(100)));
    check(7, Ok(Duration::from_secs(7)));
    check(31, Err(Duration::from_secs(31)));
}

#[test]
fn a_clock_that_goes_back_gives_nothing_away() {
    let bucket = Bucket::new(Rate { burst: 1, per_s: 1.0 });
    assert_eq!(bucket.take(Duration::from_secs(100)), Ok(Duration::ZERO));
    assert_eq!(bucket.take(Duration::from_secs(50)), Ok(Duration::from_secs(1)));
    assert_eq!(bucket.take(Duration::from_secs(100)), Ok(Duration::from_secs(2)));
}
