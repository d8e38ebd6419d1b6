use super::*;

const LONG: Duration = Duration::from_secs(15);

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

#[test]
fn a_burst_goes_at_once_and_the_rest_in_step() {
    let bucket = Bucket::new(2.0, 3);
    let waits: Vec<_> = (0..6).map(|_| bucket.take(ms(1000), LONG)).collect();
    let expected = [0, 0, 0, 500, 1000, 1500].map(|wait| Ok(ms(wait)));
    assert_eq!(waits, expected);
    // What was not used does not pile up.
    assert_eq!(bucket.take(ms(1_000_000), LONG), Ok(ms(0)));
    assert_eq!(bucket.take(ms(1_000_000), LONG), Ok(ms(0)));
    assert_eq!(bucket.take(ms(1_000_000), LONG), Ok(ms(0)));
    assert_eq!(bucket.take(ms(1_000_000), LONG), Ok(ms(500)));
}

#[test]
fn who_would_wait_too_long_is_sent_away_and_takes_no_turn() {
    let bucket = Bucket::new(1.0 / 12.0, 1);
    assert_eq!(bucket.take(ms(0), LONG), Ok(ms(0)));
    assert_eq!(bucket.take(ms(0), LONG), Ok(ms(12_000)));
    for _ in 0..100 {
        let far = bucket.take(ms(0), LONG).expect_err("the third would wait for 24 s");
        assert!((23_999..=24_001).contains(&far.as_millis()), "{far:?}");
    }
}

#[test]
fn g5_a_provider_that_asks_us_to_wait_is_left_alone() {
    let bucket = Bucket::new(10.0, 10);
    bucket.hold(ms(1000), ms(5000));
    bucket.hold(ms(1000), ms(2000));
    assert_eq!(bucket.take(ms(2000), ms(4099)), Err(ms(4100)));
    assert_eq!(bucket.take(ms(2000), LONG), Ok(ms(4100)), "what was saved up is gone");
    assert_eq!(bucket.take(ms(2000), LONG), Ok(ms(4200)));
    assert_eq!(bucket.take(ms(9000), LONG), Ok(ms(0)), "time pays it back");
}

#[test]
fn a_clock_that_stands_still_or_goes_back_breaks_nothing() {
    let bucket = Bucket::new(1.0, 1);
    assert_eq!(bucket.take(ms(5000), LONG), Ok(ms(0)));
    assert_eq!(bucket.take(ms(1000), LONG), Ok(ms(1000)));
    assert_eq!(bucket.take(ms(7000), LONG), Ok(ms(0)));
}
