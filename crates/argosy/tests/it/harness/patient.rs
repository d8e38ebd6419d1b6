//! Waiting for a condition, and for how long.

use std::time::Duration;

/// Asks again until there is an answer; `what` is named when the patience is over.
pub(crate) async fn await_until<T>(
    patience: Duration,
    what: &str,
    mut condition: impl AsyncFnMut() -> Option<T>,
) -> T {
    let asking = async {
        loop {
            if let Some(found) = condition().await {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(15)).await;
        }
    };
    match tokio::time::timeout(patience, asking).await {
        Ok(found) => found,
        Err(_) => panic!("it did not happen in {} s: {what}", patience.as_secs()),
    }
}
