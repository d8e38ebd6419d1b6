//! From the wire to core and back, one file a noun.

pub(crate) mod resource;

pub(crate) mod adapter;

pub(crate) mod audit;

pub(crate) mod member;
