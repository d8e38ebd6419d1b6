//! The messages and services of the node plane, made from `proto/` when the crate is built.

pub use buffa_types::google::protobuf::{Timestamp, TimestampView};
pub use generated::argosy::v1 as node;
pub use generated::navarch;

/// What is said on an `Attach` stream: the cases of its two messages.
pub mod attach {
    pub use super::node::__buffa::oneof::attach_request::Message as Said;
    pub use super::node::__buffa::oneof::attach_response::Message as Told;
    pub use super::node::__buffa::view::oneof::attach_request::Message as SaidView;
}

#[expect(missing_docs, unreachable_pub, reason = "what is generated is documented in `proto/`")]
mod generated {
    connectrpc::include_generated!("rpc.rs");
}

#[cfg(test)]
mod tests;
