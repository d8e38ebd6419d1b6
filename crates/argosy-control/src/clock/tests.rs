use super::*;

fn epoch() -> Timestamp {
    "2026-01-01T00:00:00Z".parse().unwrap()
}

#[tokio::test(start_paused = true)]
async fn coasting_wakes_who_waits_for_a_time_of_day_and_nobody_else() {
    let clock = Clock::simulated(epoch());
    let later = epoch() + SignedDuration::from_hours(3);
    let sleeper = async {
        clock.sleep_until(later).await;
        (clock.now(), clock.monotonic())
    };
    let world = async {
        tokio::task::yield_now().await;
        assert_eq!(clock.next_sleeper(), Some(later));
        clock.coast(SignedDuration::from_hours(2));
        tokio::task::yield_now().await;
        assert_eq!(clock.next_sleeper(), Some(later), "it is not yet time");
        clock.coast(SignedDuration::from_hours(1));
    };
    let ((now, monotonic), ()) = tokio::join!(sleeper, world);
    assert_eq!(now, later);
    assert_eq!(monotonic, Duration::ZERO, "no time has passed for those who measure it");
    assert_eq!(clock.next_sleeper(), None);
}

#[tokio::test(start_paused = true)]
async fn a_sleeper_who_gives_up_is_not_waited_for() {
    let clock = Clock::simulated(epoch());
    let later = epoch() + SignedDuration::from_hours(3);
    let waited = tokio::time::timeout(Duration::from_secs(1), clock.sleep_until(later)).await;
    assert!(waited.is_err());
    assert_eq!(clock.next_sleeper(), None);
}

#[tokio::test(start_paused = true)]
async fn nobody_who_waits_notices_that_the_clock_was_set() {
    let clock = Clock::simulated(epoch());
    let before = clock.monotonic();
    let later = epoch() + SignedDuration::from_secs(60);
    let sleeper = clock.sleep_until(later);
    let set = async {
        tokio::task::yield_now().await;
        clock.set_by(SignedDuration::from_hours(-1));
    };
    tokio::join!(sleeper, set);
    assert_eq!(clock.monotonic() - before, Duration::from_secs(60));
}

#[tokio::test(start_paused = true)]
async fn r2_m17_the_time_follows_a_clock_that_was_set_and_never_goes_back() {
    for (set_s, after_an_hour_s) in [(600, 180), (-600, -180), (60, 60), (-60, -60)] {
        let clock = Clock::simulated(epoch());
        clock.set_by(SignedDuration::from_secs(set_s));
        assert_eq!(clock.wall().duration_since(epoch()).as_secs(), set_s);
        assert_eq!(clock.now(), epoch(), "it is not set");
        let mut last = clock.now();
        for _ in 0..3600 {
            tokio::time::advance(Duration::from_secs(1)).await;
            assert!(last < clock.now());
            last = clock.now();
        }
        let gained = last.duration_since(epoch()).as_secs() - 3600;
        assert!((gained - after_an_hour_s).abs() <= 1, "{set_s}: {gained}");
        clock.settle();
        assert_eq!(clock.now(), clock.wall());
    }
}
