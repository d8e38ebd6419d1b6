use super::*;
use futures_util::FutureExt;
use std::sync::{Arc, Mutex, mpsc};
use tokio::task::JoinSet;

#[tokio::test(start_paused = true)]
async fn r2_i3_a_disk_that_hangs_takes_a_few_threads_and_no_more() {
    static DISK: Limit = Limit::new();
    let (let_go, held) = mpsc::channel::<()>();
    let held = Arc::new(Mutex::new(held));
    let mut waiting = JoinSet::new();
    for _ in 0..AT_ONCE_MAX {
        let held = held.clone();
        // Nobody ever says anything: it ends when the sender goes.
        waiting.spawn(DISK.run(move || {
            _ = held.lock().unwrap().recv();
            Ok(())
        }));
    }
    while 0 < DISK.free.available_permits() {
        tokio::task::yield_now().await;
    }
    let mut late = std::pin::pin!(DISK.run(|| Ok(())));
    assert!(late.as_mut().now_or_never().is_none());
    // A paused clock stands while threads work.
    tokio::time::advance(PATIENCE).await;
    assert_eq!(late.await.unwrap_err().kind(), io::ErrorKind::TimedOut);
    drop(let_go);
    while waiting.join_next().await.is_some() {}
    DISK.run(|| Ok(())).await.unwrap();
}
