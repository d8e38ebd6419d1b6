//! The services and loops on an engine in memory, in virtual time.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests are tests")]

mod access;
mod audit;
mod command;
mod conditions;
mod deletion;
mod engine;
mod external;
mod fleet;
mod list;
mod liveness;
mod machines;
mod node;
mod node_watch;
mod policy;
mod reconcile;
mod remedy;
mod reports;
mod retention;
mod takeover;
mod watch;
mod webhook;
mod workload;
mod world;
mod write;
mod yard;
