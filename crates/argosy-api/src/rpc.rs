//! The messages and services of the node plane, generated from `proto/`.
//!
//! What is generated is committed: nobody who builds the program needs the generator, and what a new version of it
//! changes is seen. `make docs` generates it again; a test compares.

pub use buffa_types::google::protobuf::{Timestamp, TimestampView};
pub use generated::argosy::v1 as node;
pub use generated::navarch;

/// What is said on an `Attach` stream: the cases of its two messages.
pub mod attach {
    pub use super::node::__buffa::oneof::attach_request::Message as Said;
    pub use super::node::__buffa::oneof::attach_response::Message as Told;
    pub use super::node::__buffa::view::oneof::attach_request::Message as SaidView;
}

/// What a heartbeat says of values that could not be measured: the bits of `unmeasured` in `NodeMetrics` and
/// `GpuMetrics`, each `1 <<` the number of its field. A message without them is one in which 0 means 0.
pub mod unmeasured {
    /// `NodeMetrics.cpu_usage_percent`.
    pub const CPU: u32 = 1 << 1;
    /// `NodeMetrics.memory_usage_percent`.
    pub const MEMORY: u32 = 1 << 2;
    /// `GpuMetrics.temperature_celsius`.
    pub const GPU_TEMPERATURE: u32 = 1 << 2;
    /// `GpuMetrics.power_watts`.
    pub const GPU_POWER: u32 = 1 << 3;
    /// `GpuMetrics.utilization_percent`.
    pub const GPU_UTILIZATION: u32 = 1 << 4;
    /// `GpuMetrics.memory_used_bytes`.
    pub const GPU_MEMORY: u32 = 1 << 5;
    /// `GpuMetrics.ecc_corrected_total`.
    pub const GPU_ECC_CORRECTED: u32 = 1 << 6;
    /// `GpuMetrics.ecc_uncorrected_total`.
    pub const GPU_ECC_UNCORRECTED: u32 = 1 << 7;

    /// What a field says, unless its bit is set.
    pub fn value<T: Into<U>, U>(set: u32, bit: u32, value: T) -> Option<U> {
        (set & bit == 0).then(|| value.into())
    }

    /// Writes a value, or 0 and its bit.
    pub fn write<T: Default>(set: &mut u32, bit: u32, value: Option<T>) -> T {
        value.unwrap_or_else(|| {
            *set |= bit;
            T::default()
        })
    }
}

#[rustfmt::skip]
#[expect(missing_docs, unreachable_pub, reason = "what is generated is documented in `proto/`")]
#[path = "rpc/generated/rpc.rs"]
mod generated;

#[cfg(test)]
mod tests;
