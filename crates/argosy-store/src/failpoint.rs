//! Places where a test can kill the process, to see that nothing acknowledged is lost.
//!
//! `ARGOSY_FAILPOINT=commit.after_sql` aborts at the first hit, `commit.after_sql:3` at the third.
//! Only in debug builds; a release build contains none of this.

/// Every place in an engine, for tests that try them all.
pub const ALL: &[&str] = &[
    "commit.before_sql",
    "commit.after_sql",
    "commit.after_commit",
    "migrate.before_commit",
    "trim.before_commit",
];

/// Every place above the engines: between the engine's commit and the client's answer.
pub const ABOVE: &[&str] = &["commit.before_view", "commit.before_reply", "server.before_reply"];

/// Aborts the process here if the environment asks for it.
#[cfg(not(debug_assertions))]
#[inline(always)]
pub fn hit(_name: &str) {}

/// Aborts the process here if the environment asks for it.
#[cfg(debug_assertions)]
pub fn hit(name: &str) {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    static WANTED: OnceLock<Option<(String, AtomicU64)>> = OnceLock::new();
    let wanted = WANTED.get_or_init(|| {
        let text = std::env::var("ARGOSY_FAILPOINT").ok()?;
        let (name, hits) = text.split_once(':').unwrap_or((&text, "1"));
        let hits = hits.parse().expect("ARGOSY_FAILPOINT is NAME or NAME:HITS");
        Some((name.to_string(), AtomicU64::new(hits)))
    });
    if let Some((wanted, hits_left)) = wanted
        && wanted == name
        && hits_left.fetch_sub(1, Ordering::SeqCst) == 1
    {
        std::process::abort();
    }
}
