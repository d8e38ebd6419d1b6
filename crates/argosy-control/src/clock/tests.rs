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
