//! A list of a whole fleet, written from the documents as they are, a few at a time.
//!
//! Navarch's wire has no pages: 20,000 nodes with their GPUs are 20 MB in one message. So nothing is
//! copied before it is written, and whoever else is waiting gets a turn between two chunks.

use super::super::convert::navarch as convert;
use crate::problem::rpc::internal;
use argosy_api::rpc::navarch::{
    InstanceInfoView, ListInstancesResponse, ListInstancesResponseView, ListNodesResponse,
    ListNodesResponseView, NodeInfoView,
};
use argosy_core::instance::Instance;
use argosy_core::label::Labels;
use argosy_core::node::Node;
use buffa::{RepeatedView, ViewEncode};
use bytes::Bytes;
use connectrpc::{CodecFormat, ConnectError, Encodable, Response};
use jiff::Timestamp;
use serde::Serialize;
use std::marker::PhantomData;
use std::sync::Arc;

/// How many items are written before others get their turn: about a tenth of a millisecond.
const CHUNK: usize = 128;

/// Above this, a list is not compressed, even if the client would take it.
///
/// Compression cannot be interrupted: of a fleet of 20,000 it would hold a core for a tenth of a second,
/// while heartbeats wait. Whoever lists a fleet is near it.
const COMPRESS_MAX: usize = 1024 * 1024;

/// Something there is a list of.
pub(super) trait Item {
    /// The list.
    type List;

    /// One of them on the wire, without a copy of anything.
    type View<'a>: Serialize
    where
        Self: 'a;

    /// What the list is called in JSON.
    const NAME: &'static str;

    fn view(&self) -> Self::View<'_>;

    /// Writes a list of these.
    fn encode(views: Vec<Self::View<'_>>, bytes: &mut Vec<u8>);
}

/// A node of a list, and when it was last heard.
pub(super) type Listed = (Arc<Node>, Option<Timestamp>);

impl Item for Listed {
    type List = ListNodesResponse;
    type View<'a> = NodeInfoView<'a>;

    const NAME: &'static str = "nodes";

    fn view(&self) -> NodeInfoView<'_> {
        convert::node(&self.0, self.1)
    }

    fn encode(views: Vec<NodeInfoView<'_>>, bytes: &mut Vec<u8>) {
        ViewEncode::encode(&ListNodesResponseView { nodes: RepeatedView::new(views) }, bytes);
    }
}

/// An instance of a list, with what is not in its document.
pub(super) struct ListedInstance {
    pub(super) instance: Arc<Instance>,
    /// A sentence about its state.
    pub(super) message: String,
    /// The labels of its pool.
    pub(super) labels: Arc<Labels>,
}

impl Item for ListedInstance {
    type List = ListInstancesResponse;
    type View<'a> = InstanceInfoView<'a>;

    const NAME: &'static str = "instances";

    fn view(&self) -> InstanceInfoView<'_> {
        convert::instance(&self.instance, &self.message, &self.labels)
    }

    fn encode(views: Vec<InstanceInfoView<'_>>, bytes: &mut Vec<u8>) {
        let list = ListInstancesResponseView { instances: RepeatedView::new(views) };
        ViewEncode::encode(&list, bytes);
    }
}

/// A list in the form that was asked for.
pub(crate) struct Listing<L> {
    codec: CodecFormat,
    bytes: Bytes,
    of: PhantomData<fn() -> L>,
}

impl<L> Encodable<L> for Listing<L> {
    fn encode(&self, codec: CodecFormat) -> Result<Bytes, ConnectError> {
        if codec == self.codec { Ok(self.bytes.clone()) } else { Err(internal()) }
    }
}

/// Writes a list.
pub(super) async fn write<I: Item>(
    items: &[I],
    codec: CodecFormat,
) -> Result<Response<Listing<I::List>>, ConnectError> {
    let mut bytes = Vec::new();
    for (at, chunk) in items.chunks(CHUNK).enumerate() {
        if at == 1 {
            // One allocation for the rest, by the size of the first.
            bytes.reserve(bytes.len() * items.len().div_ceil(CHUNK));
        }
        let chunk = chunk.iter().map(I::view).collect();
        if codec == CodecFormat::Json {
            write_json::<I>(&mut bytes, chunk).map_err(|error| {
                tracing::error!(%error, "a list could not be written as JSON");
                internal()
            })?;
        } else {
            // One message after another is one message with the elements of all.
            I::encode(chunk, &mut bytes);
        }
        tokio::task::yield_now().await;
    }
    if codec == CodecFormat::Json {
        bytes.extend_from_slice(if items.is_empty() { b"{}" } else { b"]}" });
    }
    let compress = (COMPRESS_MAX < bytes.len()).then_some(false);
    let listing = Listing { codec, bytes: bytes.into(), of: PhantomData };
    Ok(Response::new(listing).compress(compress))
}

fn write_json<I: Item>(bytes: &mut Vec<u8>, chunk: Vec<I::View<'_>>) -> serde_json::Result<()> {
    for item in chunk {
        if bytes.is_empty() {
            bytes.extend_from_slice(format!("{{\"{}\":[", I::NAME).as_bytes());
        } else {
            bytes.push(b',');
        }
        serde_json::to_writer(&mut *bytes, &item)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
