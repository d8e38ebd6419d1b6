//! Nodes from their registration to being forgotten.

mod event;
mod fault;
mod journey;
mod review;
pub(crate) mod world;
