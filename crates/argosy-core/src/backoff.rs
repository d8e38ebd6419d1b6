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
    // 2^62 of anything is past every `max`, so a longer row of failures need not be counted.
    let doublings = attempt.saturating_sub(1).min(62);
    let full =
        (0..doublings).try_fold(first, |wait, _| wait.checked_mul(2)).unwrap_or(max).min(max);
    let fifth = full / 5;
    full - fifth + fifth.mul_f64(fraction(who, attempt))
}

/// A number from 0 up to 1 that is spread over the fleet and the same in every run.
fn fraction(who: &str, attempt: u32) -> f64 {
    let seed = who.bytes().chain(attempt.to_le_bytes());
    // FNV-1a: `DefaultHasher` may change between Rust releases, and replays must not.
    let hash = seed.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    (hash >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests;
