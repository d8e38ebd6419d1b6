//! Whoever waits is woken, in turn, and nothing falls between two looks.

use super::*;
use std::sync::Mutex;

#[tokio::test]
async fn who_waited_first_is_woken_first() {
    for _ in 0..20 {
        let latest = Latest::new(Revision(7));
        let order = Arc::new(Mutex::new(Vec::new()));
        let mut tasks = tokio::task::JoinSet::new();
        for number in 0..12 {
            let (mut follower, order) = (latest.follow(), order.clone());
            tasks.spawn(async move {
                follower.changed().await.unwrap();
                order.lock().unwrap().push(number);
            });
        }
        tokio::task::yield_now().await;
        latest.set(Revision(8));
        tasks.join_all().await;
        assert_eq!(*order.lock().unwrap(), (0..12).collect::<Vec<_>>());
    }
}

#[tokio::test]
async fn news_is_told_once_and_the_end_is_told() {
    let latest = Latest::new(Revision(1));
    let mut follower = latest.follow();
    latest.set(Revision(2));
    assert_eq!(follower.changed().await, Ok(()));
    latest.set(Revision(3));
    follower.mark_unchanged();
    latest.set(Revision(5));
    assert_eq!(follower.wait_for(|revision| Revision(4) < *revision).await, Ok(Revision(5)));
    drop(latest);
    assert_eq!(follower.changed().await, Err(Stopped));
}
