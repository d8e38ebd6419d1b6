//! From the wire to core and back, one file a noun.

pub(crate) mod resource;

pub(crate) mod adapter;

pub(crate) mod node;

pub(crate) mod ledger;

pub(crate) mod fleet;

pub(crate) mod command;

pub(crate) mod instance;

pub(crate) mod policy;

pub(crate) mod recovery;
pub(crate) mod safety;

pub(crate) mod audit;

pub(crate) mod member;
