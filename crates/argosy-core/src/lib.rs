//! The rules of the fleet as values and functions: what a thing is, what may happen to it, and
//! what should be done next.
//!
//! Nothing here reads a clock, draws a random number, waits, or touches a file or a socket: a
//! decision is a function of its arguments. The modules are in reading order.

pub mod field;

pub mod plant;
pub mod protect;

pub mod nearest;

pub mod span;

pub mod id;

pub mod name;

pub mod label;

pub mod resource;

pub mod catalog;

pub mod adapter;

pub mod status;

pub mod sentinel;

pub mod backoff;

pub mod node;

pub mod health;

pub mod pci;

pub mod recovery;

pub mod kernel;

pub mod xid;

pub mod policy;

pub mod command;

pub mod external;

pub mod liveness;

pub mod breaker;

pub mod remedy;

pub mod window;

pub mod machine;

pub mod instance;

pub mod inventory;

pub mod incarnation;

pub mod gate;

pub mod pool;

pub mod autoscale;

pub mod ledger;

pub mod why;

pub mod search;

pub mod merge;

pub mod access;

pub mod audit;

pub mod upgrade;

pub mod invariant;

#[cfg(test)]
mod fixture;
