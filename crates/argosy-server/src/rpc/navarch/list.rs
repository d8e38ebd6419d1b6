//! The list of a whole fleet, written from the documents as they are, a few nodes at a time.
//!
//! Navarch's wire has no pages: 20,000 nodes with their GPUs are 20 MB in one message. So nothing is
//! copied before it is written, and whoever else is waiting gets a turn between two chunks.

use super::super::convert::navarch as convert;
use crate::problem::rpc::internal;
use argosy_api::rpc::navarch::{ListNodesResponse, ListNodesResponseView, NodeInfoView};
use argosy_core::node::Node;
use buffa::{RepeatedView, ViewEncode};
use bytes::Bytes;
use connectrpc::{CodecFormat, ConnectError, Encodable, Response};
use jiff::Timestamp;
use std::sync::Arc;

/// How many nodes are written before others get their turn: about a tenth of a millisecond.
const CHUNK: usize = 128;

/// Above this, a list is not compressed, even if the client would take it.
///
/// Compression cannot be interrupted: of a fleet of 20,000 it would hold a core for a tenth of a second,
/// while heartbeats wait. Whoever lists a fleet is near it.
const COMPRESS_MAX: usize = 1024 * 1024;

/// A node of a list, and when it was last heard.
pub(super) type Listed = (Arc<Node>, Option<Timestamp>);

/// A list in the form that was asked for.
pub(crate) struct Listing {
    codec: CodecFormat,
    bytes: Bytes,
}

impl Encodable<ListNodesResponse> for Listing {
    fn encode(&self, codec: CodecFormat) -> Result<Bytes, ConnectError> {
        if codec == self.codec { Ok(self.bytes.clone()) } else { Err(internal()) }
    }
}

/// Writes a list.
pub(super) async fn write(
    nodes: &[Listed],
    codec: CodecFormat,
) -> Result<Response<Listing>, ConnectError> {
    let mut bytes = Vec::new();
    for (at, chunk) in nodes.chunks(CHUNK).enumerate() {
        if at == 1 {
            // One allocation for the rest, by the size of the first.
            bytes.reserve(bytes.len() * nodes.len().div_ceil(CHUNK));
        }
        let chunk = chunk.iter().map(|(node, heard_at)| convert::node(node, *heard_at)).collect();
        if codec == CodecFormat::Json {
            write_json(&mut bytes, chunk).map_err(|error| {
                tracing::error!(%error, "a list could not be written as JSON");
                internal()
            })?;
        } else {
            // One message after another is one message with the elements of all.
            let chunk = ListNodesResponseView { nodes: RepeatedView::new(chunk) };
            ViewEncode::encode(&chunk, &mut bytes);
        }
        tokio::task::yield_now().await;
    }
    if codec == CodecFormat::Json {
        bytes.extend_from_slice(if nodes.is_empty() { b"{}" } else { b"]}" });
    }
    let compress = (COMPRESS_MAX < bytes.len()).then_some(false);
    Ok(Response::new(Listing { codec, bytes: bytes.into() }).compress(compress))
}

fn write_json(bytes: &mut Vec<u8>, chunk: Vec<NodeInfoView<'_>>) -> serde_json::Result<()> {
    for node in chunk {
        let before: &[u8] = if bytes.is_empty() { br#"{"nodes":["# } else { b"," };
        bytes.extend_from_slice(before);
        serde_json::to_writer(&mut *bytes, &node)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
