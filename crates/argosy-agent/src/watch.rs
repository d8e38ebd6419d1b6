//! From what was seen to what is said: sweeps, samples and lines become check outcomes and signals.

pub mod flood;
pub mod host;
pub mod log;
pub mod word;
