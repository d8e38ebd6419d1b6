//! The way of a request: `enter`, `dispatch`, one handler.
//!
//! The order of checks is the contract's: who asks (401), may they at all (403), can the body be
//! taken (413, 415), then the handler, where a missing cluster (404) comes before a bad filter (400).

mod query;

mod header;

pub(crate) mod fields;

mod gate;

mod list;

mod resource;

mod adapter;

mod node;

mod command;

mod policy;

mod recovery;
mod safety;

mod instance;

mod audit;

mod fleet;

mod page;

mod docs;

use crate::Server;
use crate::auth::Authenticator;
use crate::body;
use crate::convert::member;
use crate::dashboard::{self, Dashboard};
use crate::metrics::operations_router;
use crate::problem::{Fault, internal};
use crate::profile::Profile;
use crate::rpc::{Door, Rpc};
use argosy_api::error;
use argosy_api::route::{Access, Operation, ROUTES, Route, Scope};
use argosy_control::failpoint;
use argosy_control::resource::Target;
use argosy_core::access::{Caller, Decision, Verb, may};
use argosy_core::field::{Constraint, FieldError};
use argosy_core::resource::Kind;
use axum::body::Body;
use axum::extract::{FromRequestParts, MatchedPath, RawPathParams, Request, State};
use axum::http::header::{
    ACCEPT_ENCODING, ALLOW, AUTHORIZATION, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH,
    CONTENT_TYPE, EXPECT, VARY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, Uri};
use axum::middleware::{Next, from_fn_with_state};
use axum::routing::any;
use axum::{Router, http::request::Parts};
use bytes::Bytes;
use futures_util::FutureExt;
use gate::Gate;
use query::Query;
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use tower::ServiceExt;
use tower_http::compression::CompressionLayer;

const PROFILE: HeaderName = HeaderName::from_static("x-hyperfleet-profile");
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// What every handler gives back.
pub(crate) type Answer = Result<Response<Body>, Fault>;

/// Everything that is served.
pub(crate) fn router(server: Arc<Server>) -> Router {
    let mut by_path: BTreeMap<&str, Vec<&'static Route>> = BTreeMap::new();
    for route in ROUTES.iter() {
        by_path.entry(&route.path).or_default().push(route);
    }
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let gate = Arc::new(Gate::new(cores));
    let mut router = Router::new();
    for (path, routes) in by_path {
        let (server, gate, routes) = (server.clone(), gate.clone(), Arc::<[_]>::from(routes));
        let handler =
            move |request: Request| dispatch(server.clone(), gate.clone(), routes.clone(), request);
        router = router.route(path, any(handler));
    }
    for (prefix, mount) in &server.mounts {
        let guarded = mount.clone().layer(from_fn_with_state(server.clone(), guard));
        router = router.nest(prefix, guarded);
    }
    if !server.dashboard.is_empty() {
        let files = Arc::new(Dashboard::new(server.dashboard));
        for path in [dashboard::PREFIX.to_owned(), format!("{}/{{*path}}", dashboard::PREFIX)] {
            let (server, files) = (server.clone(), files.clone());
            let handler = move |request: Request| file(server.clone(), files.clone(), request);
            router = router.route(&path, any(handler));
        }
    }
    let inner = router
        .merge(operations_router(
            server.control.clone(),
            server.metrics.clone(),
            server.shutdown.clone(),
        ))
        .fallback(any(no_endpoint).with_state(server.clone()))
        .layer(from_fn_with_state(server.clone(), enter))
        .layer(CompressionLayer::new());
    // Around the router, because a path is changed before it is matched.
    let rest = inner.map_request(without_trailing_slash as fn(Request) -> Request);
    Router::new().fallback_service(Door { rpc: Rpc::new(server), rest })
}

/// `/clusters/` means `/clusters`.
fn without_trailing_slash(mut request: Request) -> Request {
    let path = request.uri().path();
    let trimmed = path.trim_end_matches('/');
    if trimmed.len() < path.len() && !trimmed.is_empty() {
        let query = request.uri().query().map_or(String::new(), |query| format!("?{query}"));
        if let Ok(uri) = format!("{trimmed}{query}").parse::<Uri>() {
            *request.uri_mut() = uri;
        }
    }
    request
}

/// The id of a request.
#[derive(Clone, Debug)]
struct RequestId(String);

/// What is true of every answer; and no panic passes.
async fn enter(
    State(server): State<Arc<Server>>,
    mut request: Request,
    next: Next,
) -> Response<Body> {
    let started = server.control.clock.now();
    let id = RequestId(server.control.ids.request(started));
    request.extensions_mut().insert(id.clone());
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let pattern = request.extensions().get::<MatchedPath>().cloned();
    let result = AssertUnwindSafe(next.run(request)).catch_unwind().await;
    let now = server.control.clock.now();
    let mut response = result.unwrap_or_else(|_panic| {
        tracing::error!(request_id = %id.0, %method, path, "a handler panicked");
        internal().respond(&path, &id.0, now)
    });
    let headers = response.headers_mut();
    if let Ok(id) = HeaderValue::from_str(&id.0) {
        headers.insert(REQUEST_ID, id);
    }
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    for name in [AUTHORIZATION, PROFILE, ACCEPT_ENCODING] {
        headers.append(VARY, HeaderValue::from_name(name));
    }
    let route = pattern.as_ref().map_or("unmatched", MatchedPath::as_str);
    let seconds = now.duration_since(started).as_secs_f64();
    let status = response.status().as_u16();
    server.metrics.observe(&method, route, status, seconds);
    tracing::info!(request_id = %id.0, %method, path, status, seconds, "request");
    response
}

/// Answers a path that nobody serves.
async fn no_endpoint(State(server): State<Arc<Server>>, request: Request) -> Response<Body> {
    let fault =
        Fault::new(&error::NO_ENDPOINT, format!("no route has the path {}", request.uri().path()));
    respond(&server, &request_id(request.extensions()), request.uri().path(), fault)
}

/// Answers with a file of the dashboard.
async fn file(server: Arc<Server>, files: Arc<Dashboard>, request: Request) -> Response<Body> {
    match files.answer(request.method(), request.uri().path(), request.headers()) {
        Some(response) => response,
        None => no_endpoint(State(server), request).await,
    }
}

/// Lets only administrators through to a mounted router.
async fn guard(State(server): State<Arc<Server>>, request: Request, next: Next) -> Response<Body> {
    let id = request_id(request.extensions());
    match authorize(&server.authenticator, request.headers(), &id, Verb::Administer).await {
        Ok(_) => next.run(request).await,
        Err(fault) => respond(&server, &id, request.uri().path(), fault),
    }
}

fn respond(server: &Server, id: &str, path: &str, fault: Fault) -> Response<Body> {
    fault.respond(path, id, server.control.clock.now())
}

fn request_id(extensions: &axum::http::Extensions) -> String {
    extensions.get::<RequestId>().map_or_else(String::new, |id| id.0.clone())
}

/// One request whose sender may ask it, with what was sent.
pub(crate) struct Ask {
    server: Arc<Server>,
    route: &'static Route,
    caller: Caller,
    profile: Profile,
    parts: Parts,
    /// What stands in the path, by its name in the route.
    names: Vec<(String, String)>,
    body: Bytes,
    gate: Arc<Gate>,
}

/// Finds the route of the method, checks what comes before any handler, and calls it.
async fn dispatch(
    server: Arc<Server>,
    gate: Arc<Gate>,
    routes: Arc<[&'static Route]>,
    request: Request,
) -> Response<Body> {
    let path = request.uri().path().to_owned();
    let id = request_id(request.extensions());
    // HEAD is GET without the body, which hyper leaves out.
    let method =
        if request.method() == Method::HEAD { Method::GET } else { request.method().clone() };
    let Some(route) = routes.iter().find(|route| route.method == method.as_str()).copied() else {
        let fault = Fault::new(&error::BAD_METHOD, format!("{path} does not take {method}"));
        let mut response = respond(&server, &id, &path, fault);
        response.headers_mut().extend(allow(&routes));
        return response;
    };
    let mut profile = server.profile;
    let answer = match admit(&server, gate, route, request, &id).await {
        Ok(ask) => {
            profile = ask.profile;
            handle(ask).await
        }
        Err(fault) => Err(fault),
    };
    if method != Method::GET {
        failpoint::hit("server.before_reply");
    }
    let mut response = answer.unwrap_or_else(|fault| respond(&server, &id, &path, fault));
    response.headers_mut().insert(PROFILE, HeaderValue::from_static(profile.as_str()));
    response
}

fn allow(routes: &[&Route]) -> Option<(HeaderName, HeaderValue)> {
    let mut methods: Vec<&str> = routes.iter().map(|route| route.method).collect();
    if methods.contains(&"GET") {
        methods.push("HEAD");
    }
    Some((ALLOW, HeaderValue::from_str(&methods.join(", ")).ok()?))
}

async fn admit(
    server: &Arc<Server>,
    gate: Arc<Gate>,
    route: &'static Route,
    request: Request,
    id: &str,
) -> Result<Ask, Fault> {
    let (mut parts, body) = request.into_parts();
    let caller = match verb(route.access) {
        Some(verb) => authorize(&server.authenticator, &parts.headers, id, verb).await?,
        None => nobody(id),
    };
    let profile = profile(&parts.headers, server.profile)?;
    let names = RawPathParams::from_request_parts(&mut parts, &()).await.map_err(|_| {
        Fault::new(&error::VALIDATION, "the path is not UTF-8 after its percent signs are decoded")
    })?;
    let names = names.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let body = match route.body {
        Some(expected) => {
            check_media(&parts.headers, expected.media)?;
            check_length(&parts.headers, expected.len_max)?;
            body::read_limited(body, expected.len_max).await?
        }
        None => Bytes::new(),
    };
    Ok(Ask { server: server.clone(), route, caller, profile, parts, names, body, gate })
}

/// Says too much to a client that asks before it sends.
fn check_length(headers: &HeaderMap, max: usize) -> Result<(), Fault> {
    if !headers.contains_key(EXPECT) {
        return Ok(());
    }
    let length = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok());
    match length.map(str::parse::<usize>) {
        Some(Ok(length)) if max < length => Err(body::BodyError::TooLarge { max }.into()),
        _ => Ok(()),
    }
}

/// A body without a content type is taken for JSON; compressed ones are not taken at all.
fn check_media(headers: &HeaderMap, media: &[&str]) -> Result<(), Fault> {
    if headers.get(CONTENT_ENCODING).is_some_and(|encoding| encoding != "identity") {
        return Err(Fault::new(&error::BAD_MEDIA, "compressed request bodies are not accepted"));
    }
    let Some(kind) = headers.get(CONTENT_TYPE) else { return Ok(()) };
    let sent = kind.to_str().unwrap_or_default();
    let essence = sent.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if media.contains(&essence.as_str()) {
        return Ok(());
    }
    let known = media.join(" or ");
    let detail = format!("the content type '{sent}' is not accepted; send {known}");
    Err(Fault::new(&error::BAD_MEDIA, detail))
}

fn profile(headers: &HeaderMap, default: Profile) -> Result<Profile, Fault> {
    let Some(value) = headers.get(PROFILE) else { return Ok(default) };
    value.to_str().ok().and_then(Profile::parse).ok_or_else(|| {
        let sent = String::from_utf8_lossy(value.as_bytes());
        let words = Profile::ALL.map(Profile::as_str).join(", ");
        Fault::field(FieldError::new(
            "X-HyperFleet-Profile",
            Constraint::Enum,
            format!("Invalid profile '{sent}'. Supported values: {words}"),
        ))
    })
}

const fn verb(access: Access) -> Option<Verb> {
    match access {
        Access::Public => None,
        Access::Read => Some(Verb::Read),
        Access::Write => Some(Verb::Write),
        Access::Report => Some(Verb::Report),
        Access::Force => Some(Verb::Force),
        Access::Administer => Some(Verb::Administer),
    }
}

async fn authorize(
    authenticator: &Authenticator,
    headers: &HeaderMap,
    id: &str,
    verb: Verb,
) -> Result<Caller, Fault> {
    let caller = authenticator.authenticate(headers, id.to_owned()).await?;
    match may(&caller, verb) {
        Decision::Allow => Ok(caller),
        Decision::Forbid | Decision::Hide => {
            let what = match verb {
                Verb::Read => "read this",
                Verb::Write => "change this",
                Verb::Report => "report statuses",
                Verb::Attend => "speak for a node",
                Verb::Force => "force a deletion",
                Verb::Administer => "administer this server",
            };
            Err(Fault::forbidden(format!("User does not have permission to {what}")))
        }
    }
}

/// Who asks on a public route: nobody in particular, who owns nothing.
fn nobody(id: &str) -> Caller {
    Caller {
        subject: String::new(),
        via: "none",
        tenant: String::new(),
        teams: Vec::new(),
        role: argosy_core::access::Role::Viewer,
        adapter: None,
        node: None,
        request_id: id.to_owned(),
    }
}

async fn handle(ask: Ask) -> Answer {
    match ask.route.operation {
        Operation::Landing => page::landing(&ask),
        Operation::Docs => docs::page(),
        Operation::Info => page::info(&ask),
        Operation::OpenApi => page::openapi(),
        Operation::OpenApiPage => page::openapi_page(),
        Operation::List(scope) => resource::list(&ask, scope).await,
        Operation::Create(scope) => resource::create(&ask, scope).await,
        Operation::Get(scope) => resource::get(&ask, scope).await,
        Operation::Patch(scope) => resource::patch(&ask, scope).await,
        Operation::Delete(scope) => resource::delete(&ask, scope).await,
        Operation::ForceDelete(scope) => resource::force_delete(&ask, scope).await,
        Operation::Statuses(scope) => adapter::statuses(&ask, scope),
        Operation::Report(scope) => adapter::report(&ask, scope).await,
        Operation::History(scope) => adapter::history(&ask, scope).await,
        Operation::ListDeadLetters => audit::dead_letters(&ask).await,
        Operation::ListAudit => audit::list(&ask).await,
        Operation::VerifyAudit => audit::verify(&ask).await,
        Operation::Catalog => audit::catalog(&ask),
        Operation::ListNodes => node::list(&ask).await,
        Operation::GetNode => node::get(&ask).await,
        Operation::DeleteNode => node::delete(&ask).await,
        Operation::ProtectNode => node::protect(&ask).await,
        Operation::UnprotectNode => node::unprotect(&ask).await,
        Operation::NodeEvents => node::events(&ask).await,
        Operation::NodeHistory => node::history(&ask).await,
        Operation::NodeWhy => node::why(&ask).await,
        Operation::NodeMetrics => node::metrics(&ask),
        Operation::ListFindings => node::findings(&ask).await,
        Operation::CreateCommand => command::create(&ask).await,
        Operation::CreateCommands => command::create_all(&ask).await,
        Operation::NodeCommands | Operation::ListCommands => command::list(&ask).await,
        Operation::GetCommand => command::get(&ask).await,
        Operation::ListPolicies => policy::list(&ask),
        Operation::GetPolicy => policy::get(&ask),
        Operation::PutPolicy => policy::put(&ask).await,
        Operation::DeletePolicy => policy::delete(&ask).await,
        Operation::ExplainPolicy => policy::explain(&ask),
        Operation::BacktestPolicy => policy::backtest(&ask).await,
        Operation::Safety => safety::brakes(&ask),
        Operation::Pause => safety::pause(&ask).await,
        Operation::Resume => safety::resume(&ask).await,
        Operation::CloseBreaker => safety::close(&ask).await,
        Operation::ListInstances => instance::list(&ask).await,
        Operation::GetInstance => instance::get(&ask).await,
        Operation::TerminateInstance => instance::terminate(&ask).await,
        Operation::AdoptInstance => instance::adopt(&ask).await,
        Operation::ListOrphans => instance::orphans(&ask),
        Operation::ReapOrphan => instance::reap(&ask).await,
        Operation::ListProviders => instance::providers(&ask),
        Operation::ThawProvider => instance::thaw(&ask).await,
        Operation::ListRecovery => recovery::list(&ask),
        Operation::ConfirmRecovery => recovery::confirm(&ask).await,
        Operation::ExplainPool => instance::explain(&ask),
        Operation::PoolHistory => instance::history(&ask).await,
        Operation::SimulatePool => instance::simulate(&ask).await,
        Operation::ResumePool => instance::resume(&ask).await,
        Operation::Me => fleet::me(&ask),
        Operation::FleetGpus => fleet::gpus(&ask).await,
        Operation::ListEvents => fleet::events(&ask).await,
    }
}

impl Ask {
    /// What stands in the path under this name.
    fn name(&self, name: &str) -> Option<&str> {
        self.names.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    fn cluster(&self) -> Option<&str> {
        self.name("cluster_id")
    }

    /// The node in the path.
    fn node(&self) -> &str {
        self.name("node_id").unwrap_or_default()
    }

    /// What makes two requests for a page the same: all that the answer depends on.
    fn page_key(&self) -> String {
        let Caller { tenant, teams, role, .. } = &self.caller;
        let uri = &self.parts.uri;
        format!("{tenant:?} {teams:?} {role:?} {} {uri}", self.profile.as_str())
    }

    /// What the path names.
    fn target(&self, scope: Scope) -> Target<'_> {
        match scope {
            Scope::Clusters => Target {
                kind: Kind::Cluster,
                cluster: None,
                reference: self.cluster().unwrap_or_default(),
            },
            Scope::ClusterNodePools | Scope::NodePools => Target {
                kind: Kind::NodePool,
                cluster: self.cluster(),
                reference: self.name("nodepool_id").unwrap_or_default(),
            },
        }
    }

    /// The cluster in a nested path exists: checked before anything the caller sent beside it.
    fn check_cluster(&self, scope: Scope) -> Result<(), Fault> {
        match (scope, self.cluster()) {
            (Scope::ClusterNodePools, Some(cluster)) => {
                Ok(self.server.control.resources.check_cluster(&self.caller, cluster)?)
            }
            (Scope::Clusters | Scope::ClusterNodePools | Scope::NodePools, _) => Ok(()),
        }
    }

    fn query(&self) -> Result<Query, Fault> {
        Query::parse(self.parts.uri.query().unwrap_or_default(), self.route)
    }

    fn header(&self, name: &str) -> Option<&HeaderValue> {
        self.parts.headers.get(name)
    }

    /// The body as a JSON object.
    fn object(&self) -> Result<Map<String, Value>, Fault> {
        let mut body = body::read_json(&self.body)?;
        let kind = member::type_name(&body);
        body.as_object_mut().map(std::mem::take).ok_or_else(|| {
            let detail = format!("the request body must be a JSON object, not {kind}");
            Fault::new(&error::MALFORMED, detail)
        })
    }
}

/// An answer with a JSON body.
fn json(status: StatusCode, body: &impl Serialize) -> Answer {
    let body = serde_json::to_vec(body).map_err(|error| {
        tracing::error!(%error, "an answer could not be written as JSON");
        internal()
    })?;
    let mut response = json_bytes(Bytes::from(body));
    *response.status_mut() = status;
    Ok(response)
}

/// An answer that is JSON already.
fn json_bytes(body: Bytes) -> Response<Body> {
    let mut response = Response::new(Body::from(body));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// An answer without a body.
fn empty(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}
