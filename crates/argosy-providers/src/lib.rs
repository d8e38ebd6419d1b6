//! Everything we call outside: clouds (buy, list and return machines) and webhooks.
//!
//! Each module fills a port that `argosy-control` defines; only the binary picks among them.

pub mod simulated;

mod outbound;

pub mod webhook;
