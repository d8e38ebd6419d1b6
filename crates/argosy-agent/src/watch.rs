//! From what was seen to what is said: sweeps, samples and lines become check outcomes and signals.
//!
//! Everything here is pure: what was seen and when goes in, with whatever was remembered of before.

pub mod flood;
pub mod gpu;
pub mod host;
pub mod log;
pub mod word;
