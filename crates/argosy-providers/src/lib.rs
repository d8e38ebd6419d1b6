//! Everything we call outside: clouds (buy, list and return machines), webhooks and workload systems.
//!
//! Each module fills a port that `argosy-control` defines; only the binary picks among them.

pub mod simulated;

pub mod boot;

pub mod process;

pub mod ssh;

mod shell;

mod outbound;

#[cfg(test)]
pub(crate) mod conformance;

pub mod webhook;

pub mod metrics;
pub mod scheduler;
