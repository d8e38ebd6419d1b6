//! Nodes from their registration to being forgotten.

mod fault;
mod journey;
pub(crate) mod world;
