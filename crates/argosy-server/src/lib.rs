//! The front door: HTTP, streams, sign-in; turns wire types into core's and back.

pub mod listen;

pub mod body;

pub mod auth;

pub mod metrics;
