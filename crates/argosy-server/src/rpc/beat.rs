//! The one call that is made thousands of times a second, by a shorter way: a heartbeat in plain protobuf.
//!
//! Only what is well is answered here. Anything else goes on to the library, as it came: there is one
//! place where errors are put into words.

use super::convert;
use crate::Server;
use crate::body::read_limited;
use argosy_api::rpc::navarch::{HeartbeatRequestView, HeartbeatResponse};
use argosy_control::pulse::Via;
use argosy_core::access::{Caller, Decision, Verb, may};
use axum::body::{Body, HttpBody as _};
use axum::http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use axum::http::{HeaderValue, Request, Response};
use buffa::{Message as _, MessageView as _};
use bytes::Bytes;
use std::sync::LazyLock;

const PROCEDURE: &str = "/navarch.ControlPlaneService/SendHeartbeat";
const PROTO: HeaderValue = HeaderValue::from_static("application/proto");

/// A heartbeat with 64 GPUs is half of this. A larger body takes the long way, where what is made of it
/// has a limit, too.
const BODY_LEN_MAX: usize = 8 * 1024;

static TAKEN: LazyLock<Bytes> =
    LazyLock::new(|| HeartbeatResponse { acknowledged: true }.encode_to_vec().into());

/// Takes in a heartbeat and answers it; a request that is anything else comes back.
pub(super) async fn take(
    server: &Server,
    method: Option<&'static str>,
    request: Request<Body>,
) -> Result<Response<Body>, Request<Body>> {
    if method != Some(PROCEDURE) || !is_plain(&request) {
        return Err(request);
    }
    let (head, body) = request.into_parts();
    // What broke off or trickled has nobody who waits for its answer.
    let whole = read_limited(body, BODY_LEN_MAX).await.unwrap_or_default();
    match head.extensions.get::<Caller>().and_then(|caller| heard(server, caller, &whole)) {
        Some(()) => {
            let mut response = Response::new(Body::from(TAKEN.clone()));
            response.headers_mut().insert(CONTENT_TYPE, PROTO);
            Ok(response)
        }
        None => Err(Request::from_parts(head, Body::from(whole))),
    }
}

/// Whether it is plain protobuf by Connect, and short.
fn is_plain(request: &Request<Body>) -> bool {
    let headers = request.headers();
    headers.get(CONTENT_TYPE) == Some(&PROTO)
        && !headers.contains_key(CONTENT_ENCODING)
        && request.body().size_hint().upper().is_some_and(|len| len <= BODY_LEN_MAX as u64)
}

/// Takes in a heartbeat; `None` if something is wrong with it, and nothing was done.
fn heard(server: &Server, caller: &Caller, body: &[u8]) -> Option<()> {
    if may(caller, Verb::Attend) != Decision::Allow {
        return None;
    }
    let request = HeartbeatRequestView::decode_view(body).ok()?;
    let beat = convert::navarch::heartbeat(&request).ok()?;
    server.control.nodes.heartbeat(caller, request.node_id, Via::Call, beat).ok().map(drop)
}
