//! How large a pool is to be: what it is measured by, what its autoscaler makes of it, and why.

use super::picture::Scene;
use super::{Desk, Key, Topic};
use argosy_core::id::ResourceId;
use jiff::Timestamp;

/// What a pool's size is judged by, now.
#[derive(Debug)]
pub(super) struct Measured {}

/// What is remembered of a pool's past.
#[derive(Debug, Default)]
pub(super) struct Scale {}

impl Desk {
    pub(super) fn watch_size(&mut self, scene: &Scene, now: Timestamp) {
        let _ = (scene, now);
    }

    pub(super) fn measure(&mut self, pool: ResourceId, now: Timestamp) {
        let _ = (Key::Measure(pool), Topic::Scale(pool), now);
    }

    pub(super) async fn scale(&mut self, pool: ResourceId, measured: Measured) {
        let _ = (pool, measured);
    }
}
