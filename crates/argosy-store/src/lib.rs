//! Keeps documents with revisions, and hands them out. It does not read them.
//!
//! `Store` is what the rest of the program uses: reads come from memory (`view`), writes go through
//! one committer that gathers them into one engine transaction. `Engine` is what a backend provides;
//! `conformance` is what every backend must pass.

pub mod engine;

pub mod plan;

pub mod feed;

pub mod failpoint;

pub mod memory;

pub mod embedded;

pub mod conformance;

pub mod entity;

pub mod view;

mod latest;

mod store;

pub use engine::{Engine, Error, Revision};
pub use latest::{Follower, Stopped};
pub use store::{Driver, Store, Stores, Txn};
