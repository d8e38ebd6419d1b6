//! Everything we call outside: clouds (buy, list and return machines), webhooks and workload systems.
//!
//! Each module fills a port that `argosy-control` defines; only the binary picks among them.

pub mod aws;
pub mod simulated;

pub mod boot;

pub mod process;

pub mod ssh;

mod aside;

mod shell;

pub mod gcp;

pub mod lambda;

mod rest;

pub use rest::{Credential, SettingsError};

pub mod user_data;

mod words;

#[cfg(any(test, feature = "testing"))]
pub mod standin;

mod outbound;

#[cfg(test)]
pub(crate) mod conformance;

pub mod webhook;

pub mod metrics;
pub mod scheduler;
