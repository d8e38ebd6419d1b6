//! The messages and services of the node plane, generated from `proto/`.
//!
//! What is generated is committed: nobody who builds the program needs the generator, and what a new version of it
//! changes is seen. `make docs` generates it again; a test compares.

pub use buffa_types::google::protobuf::{Timestamp, TimestampView};
pub use generated::argosy::v1 as node;
pub use generated::navarch;

/// What is said on an `Attach` stream: the cases of its two messages.
pub mod attach {
    pub use super::node::__buffa::oneof::attach_request::Message as Said;
    pub use super::node::__buffa::oneof::attach_response::Message as Told;
    pub use super::node::__buffa::view::oneof::attach_request::Message as SaidView;
}

#[rustfmt::skip]
#[expect(missing_docs, unreachable_pub, reason = "what is generated is documented in `proto/`")]
#[path = "rpc/generated/rpc.rs"]
mod generated;

#[cfg(test)]
mod tests;
