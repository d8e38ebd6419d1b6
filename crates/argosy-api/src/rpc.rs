//! The messages and services of the node plane, made from `proto/` when the crate is built.

pub use generated::argosy::v1 as node;
pub use generated::navarch;

#[expect(missing_docs, unreachable_pub, reason = "what is generated is documented in `proto/`")]
mod generated {
    connectrpc::include_generated!("rpc.rs");
}
