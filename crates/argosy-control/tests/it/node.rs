//! Nodes from their registration to being forgotten.

mod event;
mod fault;
mod journey;
pub(crate) mod world;
