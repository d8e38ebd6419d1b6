//! What the tests of this crate share.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A directory of one test, gone when it is dropped.
pub(crate) struct Dir(PathBuf);

impl Dir {
    pub(crate) fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("argosy-agent-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).expect("a directory for a test");
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Looks again and again until it is so: for what other processes do, which no clock of ours moves.
pub(crate) async fn poll<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    for _ in 0..6_000 {
        if let Some(seen) = look() {
            return seen;
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    panic!("never: {what}");
}
