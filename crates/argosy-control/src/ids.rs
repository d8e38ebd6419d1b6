//! The only place that draws random ids.

use argosy_core::id::{CommandId, ResourceId};
use jiff::Timestamp;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use uuid::Uuid;

/// Where ids come from: chance, or a seed.
#[derive(Clone, Debug)]
pub enum Ids {
    /// Chance.
    Random,
    /// A seed and a count: the same ids in every run.
    Seeded(Arc<AtomicU64>),
}

impl Ids {
    /// Ids that are the same in every run.
    pub fn seeded(seed: u64) -> Self {
        Self::Seeded(Arc::new(AtomicU64::new(seed)))
    }

    /// An id for a new resource: version 7, so that ids sort by age.
    pub fn resource(&self, now: Timestamp) -> ResourceId {
        ResourceId::new(self.uuid(now))
    }

    /// An id for a new command: version 7, so that commands sort by age.
    pub fn command(&self, now: Timestamp) -> CommandId {
        CommandId::new(self.uuid(now))
    }

    /// A token that is never used twice.
    pub fn token(&self, now: Timestamp) -> Uuid {
        self.uuid(now)
    }

    /// An id for a request.
    pub fn request(&self, now: Timestamp) -> String {
        self.uuid(now).to_string()
    }

    fn uuid(&self, now: Timestamp) -> Uuid {
        let random = match self {
            Ids::Random => return Uuid::now_v7(),
            Ids::Seeded(state) => {
                let half = || split_mix(state.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed));
                (u128::from(half()) << 64 | u128::from(half())).to_be_bytes()
            }
        };
        let millis = u64::try_from(now.as_millisecond()).unwrap_or(0);
        let mut tail = [0; 10];
        tail.copy_from_slice(random.first_chunk::<10>().expect("sixteen bytes have ten"));
        uuid::Builder::from_unix_timestamp_millis(millis, &tail).into_uuid()
    }
}

/// SplitMix64: one step from a counter to a well-mixed number.
fn split_mix(state: u64) -> u64 {
    let mut z = state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
