//! The agent: the program on each GPU machine. It sees, says and does; what to make of it is decided elsewhere.
//!
//! The modules in reading order: what is seen, what is decided, what is done. `agent` is pure: events go
//! in with the time, effects come out; `driver` is the part that waits, reads and writes.

pub mod check;
pub mod signal;

pub mod gpu;
pub mod host;
pub mod identity;
pub mod log;
pub mod watch;

pub mod agent;
pub mod journal;
pub mod record;
pub mod spool;

pub mod clock;
pub mod command;
pub mod config;
pub mod diagnose;
pub mod driver;
pub mod inject;
pub mod link;
pub mod metrics;
pub mod sight;
pub mod swarm;

mod builder;
mod child_process;
pub mod cmd;

pub use builder::{BuildError, Builder};

#[cfg(test)]
mod testing;
