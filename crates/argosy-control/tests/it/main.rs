//! The services and loops on an engine in memory, in virtual time.

mod access;
mod audit;
mod deletion;
mod engine;
mod list;
mod reconcile;
mod reports;
mod retention;
mod takeover;
mod watch;
mod webhook;
mod world;
mod write;
