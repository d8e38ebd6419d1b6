//! The program as a whole: the real `argosy` binary over HTTP and through its own command line.
//!
//! The journeys of the HyperFleet documents run four times, on each store and in each profile; what
//! does not depend on them runs once.

#[cfg(test)]
mod harness;

#[cfg(test)]
mod journey;

#[cfg(test)]
mod bad_input;

#[cfg(test)]
mod contract;

#[cfg(test)]
mod cli;

#[cfg(test)]
mod policy;

#[cfg(test)]
mod auth;

#[cfg(test)]
mod adapters;

#[cfg(test)]
mod crash;

#[cfg(test)]
mod machines;

mod dashboard;
#[cfg(test)]
mod sim;

#[cfg(test)]
mod up;
