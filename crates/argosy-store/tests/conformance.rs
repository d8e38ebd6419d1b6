//! The suite that every engine passes, for the two that need no server.

use argosy_store::Engine;
use argosy_store::conformance::{self, Place};
use argosy_store::embedded::Embedded;
use argosy_store::memory::Memory;
use async_trait::async_trait;
use proptest::prelude::*;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

struct InMemory(Arc<Memory>);

#[async_trait]
impl Place for InMemory {
    async fn open(&self) -> Arc<dyn Engine> {
        self.0.clone()
    }
}

struct InDirectory(PathBuf);

impl InDirectory {
    fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("argosy-conformance-{}-{number}", std::process::id());
        Self(std::env::temp_dir().join(name))
    }
}

impl Drop for InDirectory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[async_trait]
impl Place for InDirectory {
    async fn open(&self) -> Arc<dyn Engine> {
        Arc::new(Embedded::open(&self.0).expect("the directory is ours"))
    }
}

mod memory {
    argosy_store::conformance!(super::InMemory(super::Arc::default()));
}

mod embedded {
    argosy_store::conformance!(super::InDirectory::new());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn memory_and_embedded_agree(script in proptest::collection::vec(any::<u8>(), 0..400)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let place = InDirectory::new();
            conformance::agree(&Memory::new(), &*place.open().await, &script).await;
        });
    }
}
