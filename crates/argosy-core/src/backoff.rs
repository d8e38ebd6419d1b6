//! How long to wait before the next try: exponential, with a jitter that is a hash, not a draw.

use jiff::SignedDuration;

/// The wait before try number `attempt + 1`, after `attempt` failures in a row (at least 1):
/// `first` doubled each time up to `max`, of which the last fifth is jitter made from `who`.
pub fn delay(
    who: &str,
    attempt: u32,
    first: SignedDuration,
    max: SignedDuration,
) -> SignedDuration {
    let _ = (who, attempt, first, max);
    todo!()
}
