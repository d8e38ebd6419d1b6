//! How long the simulated cloud takes.

use super::inventory::ItemKind;
use jiff::SignedDuration;
use serde::{Deserialize, Serialize};

/// How long each operation takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Latencies {
    /// Checking that a resource can be made.
    pub validation: Latency,
    /// Creating a DNS record.
    pub dns: Latency,
    /// Creating a network or a control plane.
    pub infrastructure: Latency,
    /// Booting a machine, the first time or again.
    pub machine: Latency,
    /// Removing anything.
    pub removal: Latency,
}

/// From `min_ms` to `max_ms`, spread evenly over what it is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Latency {
    /// The shortest, in milliseconds.
    pub min_ms: u32,
    /// The longest, in milliseconds.
    pub max_ms: u32,
}

impl Latencies {
    /// Everything at once: for tests and measurements.
    pub const INSTANT: Self = Self {
        validation: Latency::ZERO,
        dns: Latency::ZERO,
        infrastructure: Latency::ZERO,
        machine: Latency::ZERO,
        removal: Latency::ZERO,
    };

    /// How long making an item takes.
    pub(super) fn creation(&self, kind: ItemKind) -> Latency {
        match kind {
            ItemKind::DnsRecord => self.dns,
            ItemKind::Network | ItemKind::ControlPlane => self.infrastructure,
        }
    }
}

impl Default for Latencies {
    /// A few seconds, so that people see progress and nobody waits.
    fn default() -> Self {
        let latency = |min_ms, max_ms| Latency { min_ms, max_ms };
        Self {
            validation: latency(800, 1_200),
            dns: latency(1_500, 2_500),
            infrastructure: latency(3_000, 5_000),
            machine: latency(700, 1_300),
            removal: latency(500, 1_500),
        }
    }
}

impl Latency {
    const ZERO: Self = Self { min_ms: 0, max_ms: 0 };

    /// The longest latency that may be set: an operation that takes longer than this looks stuck, and
    /// there is a fault for that.
    pub const MAX_MS: u32 = 3_600_000;

    /// How long it takes for `who`, the `count`th time: the same in every run.
    pub(super) fn of(self, who: &str, count: u64) -> SignedDuration {
        let seed = who.bytes().chain(count.to_le_bytes());
        // FNV-1a: `DefaultHasher` may change between Rust releases, and replays must not.
        let hash = seed.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        let spread = u64::from(self.max_ms.saturating_sub(self.min_ms)) + 1;
        // The high half: FNV's low bits follow its last byte too closely.
        let millis = u64::from(self.min_ms) + (hash >> 32) % spread;
        SignedDuration::from_millis(i64::try_from(millis).unwrap_or(i64::MAX))
    }
}
