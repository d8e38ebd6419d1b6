//! The program as a whole: the real `argosy` binary over HTTP and through its own command line.
//!
//! The journeys of the HyperFleet documents run four times, on each store and in each profile; what
//! does not depend on them runs once.

mod adapters;
mod auth;
mod bad_input;
mod cli;
mod contract;
mod harness;
mod journey;
