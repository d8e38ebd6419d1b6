//! The HTTP client that speaks the contract, for the command line and for tests.
//!
//! A watch reconnects by itself and goes on where it was; everything else is one request, and is not
//! repeated: whether a request may be repeated is for the caller to know.

mod instance;
mod node;

use crate::audit::{AuditList, AuditVerification, Catalog, ServiceInfo};
use crate::error::Problem;
use crate::resource::{
    ForceDelete, Resource, ResourceCreate, ResourceList, ResourcePatch, WatchEvent, WatchKind,
};
use crate::route::BASE;
use crate::status::{AdapterStatus, StatusHistory, StatusList, StatusReport};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderName, IF_MATCH};
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::time::Duration;

/// How long a request may take, a watch's first answer included.
const REQUEST_MAX: Duration = Duration::from_secs(30);

/// How long a watch may be silent. The server sends a comment every 15 seconds; after three missed
/// ones the connection is dead, even if nobody said so.
const SILENCE_MAX: Duration = Duration::from_secs(50);

/// The longest wait before a watch connects again. People watch a server restart; a longer wait would
/// look like a dead command, and a client a second is no load.
const RECONNECT_MAX: Duration = Duration::from_secs(2);

/// The longest event a watch reads: a resource can be as large as a request body, and JSON may
/// escape it.
const EVENT_LEN_MAX: usize = 8 * 1024 * 1024;

/// A server and who we are to it. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Client {
    http: reqwest::Client,
    base: String,
    token: Option<String>,
    profile: Option<String>,
}

/// Which resources: those under one path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Collection<'a> {
    /// All clusters.
    Clusters,
    /// The node pools of a cluster, by its id or name.
    NodePools(&'a str),
    /// All node pools.
    AllNodePools,
}

/// How a write is to be carried out.
#[derive(Clone, Debug, Default)]
pub struct WriteOptions {
    /// Check everything, write nothing.
    pub dry_run: bool,
    /// Only if the resource is still at this revision.
    pub if_match: Option<u64>,
    /// Makes a repeated create find the first one's result.
    pub idempotency_key: Option<String>,
    /// A PATCH replaces what it mentions instead of merging.
    pub replace: bool,
    /// Also what the label `argosy.dev/protected` keeps; for admins, with a reason.
    pub force: bool,
    /// A deletion terminates machines without draining their nodes; for admins, with a reason.
    pub now: bool,
    /// Why; it is kept in the audit log.
    pub reason: Option<String>,
}

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The server did not answer: check the address, then the server.
    #[error("no answer from {url}: {}", chain(.source))]
    Unreachable {
        /// Where the request went.
        url: String,
        /// What happened to it.
        #[source]
        source: reqwest::Error,
    },
    /// The server said why not.
    #[error("{0}")]
    Problem(Box<Problem>),
    /// Somebody answered, but not in our words: probably not an Argosy server.
    #[error("unexpected answer from {url}: {status}: {text}")]
    Unexpected {
        /// Where the request went.
        url: String,
        /// The HTTP status.
        status: u16,
        /// How the answer begins.
        text: String,
    },
}

impl ClientError {
    /// The HTTP status, if there was an answer.
    pub fn status(&self) -> Option<u16> {
        match self {
            ClientError::Unreachable { .. } => None,
            ClientError::Problem(problem) => Some(problem.status),
            ClientError::Unexpected { status, .. } => Some(*status),
        }
    }
}

impl Client {
    /// A client of the server at `base`, such as `http://127.0.0.1:8080`.
    ///
    /// # Errors
    /// The platform's certificates cannot be read.
    pub fn new(base: &str, token: Option<String>) -> Result<Self, ClientError> {
        let http = reqwest::Client::builder()
            .user_agent(concat!("argosy/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(Duration::from_secs(10))
            .build()
            .map_err(|source| ClientError::Unreachable { url: base.to_owned(), source })?;
        Ok(Self { http, base: base.trim_end_matches('/').to_owned(), token, profile: None })
    }

    /// The same client, speaking another profile: `full`, `mvp` or `upstream`.
    #[must_use]
    pub fn with_profile(mut self, profile: &str) -> Self {
        self.profile = Some(profile.to_owned());
        self
    }

    /// The service itself.
    pub async fn info(&self) -> Result<ServiceInfo, ClientError> {
        self.json(self.request(Method::GET, "/api/hyperfleet")).await
    }

    /// What can be asked for.
    pub async fn catalog(&self) -> Result<Catalog, ClientError> {
        self.json(self.request(Method::GET, "/api/argosy/v1/catalog")).await
    }

    /// Creates a cluster or a node pool.
    pub async fn create(
        &self,
        of: Collection<'_>,
        body: &ResourceCreate,
        options: &WriteOptions,
    ) -> Result<Resource, ClientError> {
        self.json(self.write(Method::POST, &of.path(), body, options)).await
    }

    /// One resource, by id or name.
    pub async fn get(&self, of: Collection<'_>, id: &str) -> Result<Resource, ClientError> {
        self.json(self.request(Method::GET, &of.item(id))).await
    }

    /// One page; `query` is what the reference lists: `page`, `size`, `phase`, `labels`, `search`, …
    pub async fn list(
        &self,
        of: Collection<'_>,
        query: &[(&str, &str)],
    ) -> Result<ResourceList, ClientError> {
        self.json(self.request(Method::GET, &of.path()).query(query)).await
    }

    /// Changes spec or labels.
    pub async fn patch(
        &self,
        of: Collection<'_>,
        id: &str,
        body: &ResourcePatch,
        options: &WriteOptions,
    ) -> Result<Resource, ClientError> {
        self.json(self.write(Method::PATCH, &of.item(id), body, options)).await
    }

    /// Asks for deletion; the answer shows what is being deleted.
    pub async fn delete(
        &self,
        of: Collection<'_>,
        id: &str,
        options: &WriteOptions,
    ) -> Result<Resource, ClientError> {
        let request = self.request(Method::DELETE, &of.item(id));
        self.json(with_options(request, options)).await
    }

    /// Removes the record of something that is being deleted, cleanup or not.
    pub async fn force_delete(
        &self,
        of: Collection<'_>,
        id: &str,
        reason: &str,
    ) -> Result<(), ClientError> {
        let path = format!("{}/force-delete", of.item(id));
        let body = ForceDelete { reason: reason.to_owned() };
        self.answer(self.request(Method::POST, &path).json(&body)).await.map(drop)
    }

    /// What the adapters say about a resource.
    pub async fn statuses(&self, of: Collection<'_>, id: &str) -> Result<StatusList, ClientError> {
        let path = format!("{}/statuses", of.item(id));
        self.json(self.request(Method::GET, &path)).await
    }

    /// Reports for an adapter; `None` means that the report was not news.
    pub async fn put_status(
        &self,
        of: Collection<'_>,
        id: &str,
        report: &StatusReport,
    ) -> Result<Option<AdapterStatus>, ClientError> {
        let path = format!("{}/statuses", of.item(id));
        let answer = self.answer(self.request(Method::PUT, &path).json(report)).await?;
        if answer.status() == StatusCode::NO_CONTENT {
            return Ok(None);
        }
        read(answer).await.map(Some)
    }

    /// Earlier reports about a resource, newest first.
    pub async fn status_history(
        &self,
        of: Collection<'_>,
        id: &str,
        query: &[(&str, &str)],
    ) -> Result<StatusHistory, ClientError> {
        let path = format!("{}/statuses/history", of.item(id));
        self.json(self.request(Method::GET, &path).query(query)).await
    }

    /// Audit records, newest first; `query` may hold `before` and `limit`.
    pub async fn audit(&self, query: &[(&str, &str)]) -> Result<AuditList, ClientError> {
        self.json(self.request(Method::GET, "/api/argosy/v1/audit").query(query)).await
    }

    /// Checks the whole audit log.
    pub async fn verify_audit(&self) -> Result<AuditVerification, ClientError> {
        self.json(self.request(Method::GET, "/api/argosy/v1/audit/verify")).await
    }

    /// Follows a list, or with `id` one resource. Nothing is sent before the first `next`.
    ///
    /// With `after` it goes on after that revision, without it begins with what is there.
    pub fn watch(
        &self,
        of: Collection<'_>,
        id: Option<&str>,
        query: &[(&str, &str)],
        after: Option<u64>,
    ) -> Watch {
        self.follow(id.map_or_else(|| of.path(), |id| of.item(id)), query, after)
    }

    /// Any request, for what has no method here: `path` begins with a slash.
    pub async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value, ClientError> {
        let mut request = self.request(method, path);
        if let Some(body) = body {
            request = request.json(body);
        }
        let answer = self.answer(request).await?;
        if answer.status() == StatusCode::NO_CONTENT {
            return Ok(Value::Null);
        }
        read(answer).await
    }

    fn follow(&self, path: String, query: &[(&str, &str)], after: Option<u64>) -> Watch {
        let mut query: Vec<(String, String)> =
            query.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        query.push(("watch".to_owned(), "true".to_owned()));
        Watch { client: self.clone(), path, query, after, stream: None, failures: 0 }
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let mut request = self
            .http
            .request(method, format!("{}{path}", self.base))
            .header(ACCEPT, "application/json")
            .timeout(REQUEST_MAX);
        if let Some(token) = &self.token {
            request = request.bearer_auth(token);
        }
        if let Some(profile) = &self.profile {
            request = request.header("x-hyperfleet-profile", profile);
        }
        request
    }

    fn write(
        &self,
        method: Method,
        path: &str,
        body: &impl Serialize,
        options: &WriteOptions,
    ) -> RequestBuilder {
        with_options(self.request(method, path).json(body), options)
    }

    async fn json<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<T, ClientError> {
        read(self.answer(request).await?).await
    }

    async fn answer(&self, request: RequestBuilder) -> Result<Response, ClientError> {
        let answer = request
            .send()
            .await
            .map_err(|source| ClientError::Unreachable { url: self.base.clone(), source })?;
        if answer.status().is_success() {
            return Ok(answer);
        }
        let (url, status) = (answer.url().to_string(), answer.status().as_u16());
        let text = answer.text().await.unwrap_or_default();
        Err(match serde_json::from_str::<Problem>(&text) {
            Ok(problem) => ClientError::Problem(Box::new(problem)),
            Err(_) => unexpected(url, status, &text),
        })
    }
}

fn with_options(mut request: RequestBuilder, options: &WriteOptions) -> RequestBuilder {
    if options.dry_run {
        request = request.query(&[("dry_run", "true")]);
    }
    if options.replace {
        request = request.query(&[("strategy", "replace")]);
    }
    for (name, given) in [("force", options.force), ("now", options.now)] {
        if given {
            request = request.query(&[(name, "true")]);
        }
    }
    if let Some(reason) = &options.reason {
        request = request.query(&[("reason", reason)]);
    }
    if let Some(revision) = options.if_match {
        request = request.header(IF_MATCH, format!("\"{revision}\""));
    }
    if let Some(key) = &options.idempotency_key {
        request = request.header(HeaderName::from_static("idempotency-key"), key);
    }
    request
}

async fn read<T: DeserializeOwned>(answer: Response) -> Result<T, ClientError> {
    let (url, status) = (answer.url().to_string(), answer.status().as_u16());
    let text = answer
        .text()
        .await
        .map_err(|source| ClientError::Unreachable { url: url.clone(), source })?;
    serde_json::from_str(&text).map_err(|_| unexpected(url, status, &text))
}

fn unexpected(url: String, status: u16, text: &str) -> ClientError {
    let text = text.chars().filter(|c| !c.is_control()).take(300).collect();
    ClientError::Unexpected { url, status, text }
}

/// An error and its causes in one line: reqwest's own text stops at "error sending request".
fn chain(error: &reqwest::Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

impl Collection<'_> {
    fn path(self) -> String {
        match self {
            Collection::Clusters => format!("{BASE}/clusters"),
            Collection::NodePools(cluster) => {
                format!("{BASE}/clusters/{}/nodepools", segment(cluster))
            }
            Collection::AllNodePools => format!("{BASE}/nodepools"),
        }
    }

    fn item(self, id: &str) -> String {
        format!("{}/{}", self.path(), segment(id))
    }
}

/// A text as one segment of a path.
fn segment(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'~' => {
                char::from(byte).to_string()
            }
            _ => format!("%{byte:02X}"),
        })
        .collect()
}

/// A running watch. Dropping it ends it.
pub struct Watch {
    client: Client,
    path: String,
    query: Vec<(String, String)>,
    after: Option<u64>,
    stream: Option<Events>,
    failures: u32,
}

struct Events {
    answer: Response,
    buffer: Vec<u8>,
}

impl Watch {
    /// The next event; waits for it, and connects again as often as it must.
    ///
    /// # Errors
    /// The server refused: a bad filter, no permission, or 410 when the place to go on is gone (list
    /// again, then watch from that list's revision). A server that is merely away is not an error.
    pub async fn next(&mut self) -> Result<WatchEvent, ClientError> {
        loop {
            if self.stream.is_none() {
                self.connect().await?;
            }
            let Some(stream) = &mut self.stream else { continue };
            let Some((id, event)) = stream.next().await else {
                self.stream = None;
                continue;
            };
            self.failures = 0;
            if event.kind == WatchKind::Error {
                let problem = event.object.and_then(|object| serde_json::from_value(object).ok());
                return Err(ClientError::Problem(Box::new(problem.unwrap_or_default())));
            }
            self.after = id.or(self.after);
            return Ok(event);
        }
    }

    async fn connect(&mut self) -> Result<(), ClientError> {
        if 0 < self.failures {
            let wait = Duration::from_millis(100) * 2_u32.pow(self.failures.min(7));
            tokio::time::sleep(wait.min(RECONNECT_MAX)).await;
        }
        self.failures += 1;
        let mut request = self
            .client
            .request(Method::GET, &self.path)
            .query(&self.query)
            .header(ACCEPT, "text/event-stream")
            // A watch is meant to last; silence is judged event by event.
            .timeout(Duration::from_secs(u64::from(u32::MAX)));
        if let Some(after) = self.after {
            request = request.header("last-event-id", after.to_string());
        }
        let answer = tokio::time::timeout(REQUEST_MAX, self.client.answer(request)).await;
        match answer {
            Ok(Ok(answer)) => {
                let kind = answer.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
                if !kind.is_some_and(|kind| kind.starts_with("text/event-stream")) {
                    return Err(unexpected(self.path.clone(), answer.status().as_u16(), ""));
                }
                self.stream = Some(Events { answer, buffer: Vec::new() });
                Ok(())
            }
            Ok(Err(error)) if error.status().is_none_or(|status| 500 <= status) => Ok(()),
            Ok(Err(error)) => Err(error),
            Err(_late) => Ok(()),
        }
    }
}

impl Events {
    /// The next event, or `None` when the connection is over.
    async fn next(&mut self) -> Option<(Option<u64>, WatchEvent)> {
        loop {
            while let Some(block) = take_block(&mut self.buffer) {
                if let Some(event) = parse(&block) {
                    return Some(event);
                }
            }
            if EVENT_LEN_MAX < self.buffer.len() {
                return None;
            }
            let chunk = tokio::time::timeout(SILENCE_MAX, self.answer.chunk()).await;
            self.buffer.extend_from_slice(&chunk.ok()?.ok()??);
        }
    }
}

/// Cuts the first event off the buffer, if it is complete.
fn take_block(buffer: &mut Vec<u8>) -> Option<String> {
    let end = buffer.windows(2).position(|pair| pair == b"\n\n")?;
    let rest = buffer.split_off(end + 2);
    let block = std::mem::replace(buffer, rest);
    Some(String::from_utf8_lossy(&block).into_owned())
}

/// Reads one event and where to go on after it, if it says so; comments are no events.
fn parse(block: &str) -> Option<(Option<u64>, WatchEvent)> {
    let field = |name: &'static str| {
        block
            .lines()
            .filter_map(move |line| line.strip_prefix(name)?.strip_prefix(':'))
            .map(str::trim)
    };
    let data: Vec<&str> = field("data").collect();
    let id = field("id").next_back().and_then(|id| id.parse().ok());
    Some((id, serde_json::from_str(&data.join("\n")).ok()?))
}

#[cfg(test)]
mod tests;
