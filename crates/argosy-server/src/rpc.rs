//! The nodes' side of the door: `navarch.ControlPlaneService` and `argosy.v1.NodeService`, by Connect,
//! gRPC and gRPC-Web.
//!
//! A fleet beats thousands of times a second where people ask now and then, so RPC has a way of its own:
//! no route table, no log line a call. It shares with REST who is who and what the services decide.
//!
//! What a newcomer gets wrong: an error of a call is not an HTTP status for gRPC, so nothing here may
//! answer by itself once the library has the request.

mod attach;

pub use attach::attach;

mod beat;

mod convert;

mod navarch;

mod node;

use crate::Server;
use crate::auth::AuthError;
use crate::problem::rpc::{internal, invalid};
use argosy_api::rpc::navarch::ControlPlaneServiceServer;
use argosy_api::rpc::node::NodeServiceServer;
use argosy_core::access::{Caller, Decision, Verb, may};
use argosy_core::field::FieldError;
use argosy_core::node::NodeId;
use axum::body::Body;
use axum::http::header::{ALLOW, CONTENT_TYPE, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, Method, Request, Response, StatusCode};
use connectrpc::{
    Chain, ConnectError, ConnectRpcBody, ConnectRpcService, DeadlinePolicy, Dispatcher, Limits,
    RequestContext,
};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use navarch::Navarch;
use node::Nodes;
use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tower::Service;

/// How large one message may be, and the body that carries it, before and after it is unpacked.
///
/// A report with every event it may carry is under 3 MiB; whatever is larger is not from a node.
const MESSAGE_MAX: usize = 4 * 1024 * 1024;

/// How much memory the elements of one message may take once they are read.
///
/// Two bytes on the wire can be an element of a hundred. The largest message within the limits of its
/// fields needs a quarter of this.
const ELEMENTS_MAX: usize = 16 * 1024 * 1024;

/// How long a call may take from its head to its answer, if the client does not say; for a stream, until
/// it is open.
///
/// It covers the body, so that one that trickles in does not hold a connection for ever.
const CALL_MAX: Duration = Duration::from_secs(30);

/// The longest a client may say.
const CALL_ASKED_MAX: Duration = Duration::from_secs(120);

/// What is served here; everything else is REST.
const PREFIXES: [&str; 2] = ["/navarch.ControlPlaneService/", "/argosy.v1.NodeService/"];

type Services = Chain<ControlPlaneServiceServer<Navarch>, NodeServiceServer<Nodes>>;

/// Both services.
#[derive(Clone)]
pub(crate) struct Rpc {
    server: Arc<Server>,
    service: ConnectRpcService<Services>,
}

impl Rpc {
    pub(crate) fn new(server: Arc<Server>) -> Self {
        let services = Chain(
            ControlPlaneServiceServer::new(Navarch::new(server.clone())),
            NodeServiceServer::new(Nodes::new(server.clone())),
        );
        let limits = Limits::default()
            .with_max_request_body_size(MESSAGE_MAX)
            .with_max_message_size(MESSAGE_MAX)
            .with_element_memory_limit(ELEMENTS_MAX);
        let deadlines =
            DeadlinePolicy::new().with_default_timeout(CALL_MAX).with_max(CALL_ASKED_MAX);
        let service =
            ConnectRpcService::new(services).with_limits(limits).with_deadline_policy(deadlines);
        Self { server, service }
    }

    /// Answers a call; and no panic passes.
    async fn answer(mut self, request: Request<Body>) -> Response<Body> {
        let started = self.server.control.clock.monotonic();
        let path = request.uri().path();
        let method = self.service.dispatcher().lookup(path.trim_start_matches('/'));
        let method = method.and_then(|method| method.spec).map(|spec| spec.procedure);
        let answer = AssertUnwindSafe(self.serve(request, method)).catch_unwind().await;
        let response = answer.unwrap_or_else(|_panic| {
            tracing::error!(method, "a call panicked");
            refuse(StatusCode::INTERNAL_SERVER_ERROR, &internal())
        });
        let took = self.server.control.clock.monotonic().saturating_sub(started);
        self.server.metrics.call(method.unwrap_or("other"), status(&response), took);
        response
    }

    async fn serve(
        &mut self,
        mut request: Request<Body>,
        method: Option<&'static str>,
    ) -> Response<Body> {
        // Before a byte of the body is read. The id of the request is made by those who write one down.
        let caller = self.server.authenticator.authenticate(request.headers(), String::new()).await;
        match caller {
            Ok(caller) => _ = request.extensions_mut().insert(caller),
            Err(error) => return unauthorized(&error),
        }
        // The library answers GET as if some methods could have it.
        if request.method() != Method::POST && method.is_some() {
            let mut response = Response::new(Body::empty());
            *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
            response.headers_mut().insert(ALLOW, HeaderValue::from_static("POST"));
            return response;
        }
        let request = match beat::take(&self.server, method, request).await {
            Ok(response) => return response,
            Err(request) => request,
        };
        match self.service.call(request).await {
            Ok(response) => response.map(|body| {
                // Its length is known, and saying it saves the client a chunk.
                if let ConnectRpcBody::Full(whole) = body {
                    Body::new(whole)
                } else {
                    Body::new(body)
                }
            }),
            Err(never) => match never {},
        }
    }
}

fn unauthorized(error: &AuthError) -> Response<Body> {
    let error = ConnectError::unauthenticated(error.to_string());
    let mut response = refuse(StatusCode::UNAUTHORIZED, &error);
    let challenge = HeaderValue::from_static("Bearer realm=\"navarch\"");
    response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
    response
}

/// An answer before a protocol was agreed on: clients of each read the status, and those of Connect the
/// body.
fn refuse(status: StatusCode, error: &ConnectError) -> Response<Body> {
    let mut response = Response::new(Body::from(error.to_json()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// The HTTP status of an answer, or what it would be if gRPC said it that way.
fn status(response: &Response<Body>) -> u16 {
    let code = response.headers().get("grpc-status").and_then(|code| code.to_str().ok());
    let code =
        code.and_then(|code| code.parse().ok()).and_then(connectrpc::ErrorCode::from_grpc_code);
    code.map_or(response.status(), |code| code.http_status()).as_u16()
}

/// Who calls, if they may at all.
fn caller(context: &RequestContext, verb: Verb) -> Result<&Caller, ConnectError> {
    let caller = context.extensions().get::<Caller>().ok_or_else(internal)?;
    match may(caller, verb) {
        Decision::Allow => Ok(caller),
        Decision::Forbid | Decision::Hide => {
            let what = match verb {
                Verb::Attend => "speak for a node",
                Verb::Write => "command nodes",
                Verb::Read | Verb::Report | Verb::Force | Verb::Administer => "look at nodes",
            };
            let sentence = format!("{} does not have permission to {what}", caller.subject);
            Err(ConnectError::permission_denied(sentence))
        }
    }
}

/// A text that can be a node's id: what cannot is said so, and not repeated.
fn check_id(node: &str) -> Result<(), ConnectError> {
    NodeId::parse(node).map(drop).map_err(one)
}

/// One field that is wrong.
fn one(error: FieldError) -> ConnectError {
    invalid(&[error])
}

impl Server {
    /// The caller of something that is written down.
    fn signed(&self, caller: &Caller) -> Caller {
        let request_id = self.control.ids.request(self.control.clock.now());
        Caller { request_id, ..caller.clone() }
    }
}

/// Sends calls one way and everything else the other.
#[derive(Clone)]
pub(crate) struct Door<R> {
    pub(crate) rpc: Rpc,
    pub(crate) rest: R,
}

impl<R> Service<Request<Body>> for Door<R>
where
    R: Service<Request<Body>, Response = Response<Body>, Error = Infallible>,
    R::Future: Send + 'static,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.rest.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        if PREFIXES.iter().any(|prefix| request.uri().path().starts_with(prefix)) {
            self.rpc.clone().answer(request).map(Ok).boxed()
        } else {
            self.rest.call(request).boxed()
        }
    }
}
