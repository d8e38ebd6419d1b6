//! Watches as server-sent events.
//!
//! The stream is pulled: hyper asks for the next event when the connection can take it, so a slow
//! watcher holds no queue here. One that falls too far behind is cut by the watch itself and told
//! where it was.
//!
//! What a newcomer gets wrong: an event's `id:` is where to go on without missing anything, so it is
//! sent only when everything up to that revision has been told: not before the list that a watch
//! begins with is complete, and not between two changes of one commit.

use crate::Server;
use crate::convert;
use crate::http::fields::Shown;
use crate::metrics::Held;
use crate::problem::Fault;
use argosy_api::resource::WatchKind;
use argosy_control::clock::Clock;
use argosy_control::node::Lines;
use argosy_control::watch::{Watch, WatchEvent, Watched};
use argosy_control::{Error, Revision, Stored};
use axum::body::Body;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, Response};
use bytes::Bytes;
use futures_util::{FutureExt, StreamExt, stream};
use serde::Serialize;
use serde_json::json;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;
use tokio::sync::watch;

/// How long a watch is silent at most: proxies close what is silent for a minute, and a client can
/// tell a quiet fleet from a dead connection.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// How an item is shown to this watcher.
pub(crate) type Show<T, W> = Box<dyn Fn(&Stored<T>) -> Shown<W> + Send>;

/// The request a watch came with, for the problem that may end it.
pub(crate) struct Origin {
    pub(crate) path: String,
    pub(crate) request_id: String,
}

struct Events<T: Watched, W> {
    watch: Watch<T>,
    show: Show<T, W>,
    origin: Origin,
    clock: Clock,
    shutdown: watch::Receiver<bool>,
    /// Where the watcher can go on.
    resume: Option<Revision>,
    /// What comes next, if it was looked at already.
    ahead: Option<Result<WatchEvent<T>, Error>>,
    state: State,
    _held: Held,
}

#[derive(PartialEq, Eq)]
enum State {
    Opening,
    Open,
    Closed,
}

/// The answer that carries the events of a watch.
pub(crate) fn events<T, W>(
    server: &Server,
    watch: Watch<T>,
    after: Option<Revision>,
    show: Show<T, W>,
    origin: Origin,
) -> Response<Body>
where
    T: Watched + Send + Sync,
    T::Scope: Send + Sync,
    T::Cursor: Send + Sync,
    T::Id: Send + Sync,
    W: Serialize + 'static,
{
    let events = Events {
        watch,
        show,
        origin,
        clock: server.control.clock,
        shutdown: server.shutdown.clone(),
        resume: after,
        ahead: None,
        state: State::Opening,
        _held: server.metrics.watcher(),
    };
    let chunks = stream::unfold(events, |mut events| async {
        let chunk = events.next().await?;
        Some((Ok::<_, Infallible>(Bytes::from(chunk)), events))
    });
    answer(Body::from_stream(chunks))
}

/// Whoever has something to tell, a piece of text at a time.
pub(crate) trait Beat: Send + 'static {
    /// The next piece; `None` ends the stream.
    fn next(&mut self) -> impl Future<Output = Option<String>> + Send;
}

/// The answer that carries what somebody tells.
pub(crate) fn beats(of: impl Beat) -> Response<Body> {
    // At once, so that the client knows it is connected; and how soon to come back.
    let opening = stream::iter([Ok::<_, Infallible>(Bytes::from_static(b"retry: 1000\n\n"))]);
    let chunks = stream::unfold(of, |mut of| async {
        let chunk = of.next().await?;
        Some((Ok(Bytes::from(chunk)), of))
    });
    answer(Body::from_stream(opening.chain(chunks)))
}

/// Lines of ledgers as they are written; an event's `id:` is the line's sequence number.
pub(crate) struct Ledgers {
    lines: Lines,
    shutdown: watch::Receiver<bool>,
    ready: VecDeque<String>,
    _held: Held,
}

impl Ledgers {
    pub(crate) fn new(lines: Lines, shutdown: watch::Receiver<bool>, held: Held) -> Self {
        Self { lines, shutdown, ready: VecDeque::new(), _held: held }
    }
}

impl Beat for Ledgers {
    async fn next(&mut self) -> Option<String> {
        if let Some(ready) = self.ready.pop_front() {
            return Some(ready);
        }
        let next = tokio::select! {
            biased;
            () = stopped(&mut self.shutdown) => return None,
            next = tokio::time::timeout(KEEP_ALIVE, self.lines.next()) => next,
        };
        match next {
            Err(_quiet) => Some(": still here\n\n".to_owned()),
            // The client comes back, and is told why it cannot be served if it still cannot.
            Ok(Err(error)) => {
                tracing::warn!(%error, "a stream of events ends");
                None
            }
            Ok(Ok(lines)) => {
                self.ready = lines
                    .into_iter()
                    .map(|line| {
                        let (id, revision) = (Revision(line.sequence), Revision(line.revision));
                        let line = convert::ledger::entry(line);
                        event(WatchKind::Added, revision, Some(id), Some(line))
                    })
                    .collect();
                self.ready.pop_front()
            }
        }
    }
}

/// The answer to HEAD.
pub(crate) fn head() -> Response<Body> {
    answer(Body::empty())
}

fn answer(body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    // Asks proxies not to collect events before they pass them on.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

impl<T: Watched, W: Serialize> Events<T, W> {
    async fn next(&mut self) -> Option<String> {
        match self.state {
            State::Closed => return None,
            State::Opening => {
                self.state = State::Open;
                // At once, so that the client knows it is connected; and how soon to come back.
                return Some("retry: 1000\n\n".to_owned());
            }
            State::Open => {}
        }
        if let Some(next) = self.ahead.take() {
            return Some(self.tell(next));
        }
        let next = tokio::select! {
            biased;
            () = stopped(&mut self.shutdown) => None,
            next = tokio::time::timeout(KEEP_ALIVE, self.watch.next()) => Some(next),
        };
        match next {
            None => {
                self.state = State::Closed;
                self.resume
                    .map(|resume| event::<W>(WatchKind::Bookmark, resume, Some(resume), None))
            }
            Some(Err(_quiet)) => Some(": still here\n\n".to_owned()),
            Some(Ok(next)) => Some(self.tell(next)),
        }
    }

    fn tell(&mut self, next: Result<WatchEvent<T>, Error>) -> String {
        let next = match next {
            Ok(next) => next,
            Err(error) => return self.end(error),
        };
        let at = next.revision();
        let (kind, object) = match next {
            WatchEvent::Added(item) => (WatchKind::Added, Some((self.show)(&item))),
            WatchEvent::Modified(item) => (WatchKind::Modified, Some((self.show)(&item))),
            WatchEvent::Deleted { id, last, .. } => {
                let object = last.map_or_else(
                    || Shown::Part(json!({ "id": id.to_string(), "uid": id.to_string() })),
                    |last| (self.show)(&last),
                );
                (WatchKind::Deleted, Some(object))
            }
            WatchEvent::Bookmark(_) => (WatchKind::Bookmark, None),
        };
        // What belongs to the same commit is ready at once.
        self.ahead = self.watch.next().now_or_never();
        let more = matches!(&self.ahead, Some(Ok(ahead)) if ahead.revision() == at);
        let listing = self.resume.is_none() && kind != WatchKind::Bookmark;
        let id = (!more && !listing).then_some(at);
        self.resume = id.or(self.resume);
        event(kind, at, id, object)
    }

    fn end(&mut self, error: Error) -> String {
        self.state = State::Closed;
        let Origin { path, request_id } = &self.origin;
        let problem = Fault::from(error).problem(path, request_id, self.clock.now());
        let resume = self.resume.unwrap_or(Revision::ZERO);
        event(WatchKind::Error, resume, self.resume, Some(problem))
    }
}

/// Waits until the process is to end, or nobody is left to say so: the listener stops then, too.
pub(crate) async fn stopped(shutdown: &mut watch::Receiver<bool>) {
    let _ = shutdown.wait_for(|stop| *stop).await;
}

fn event<O: Serialize>(
    kind: WatchKind,
    revision: Revision,
    id: Option<Revision>,
    object: Option<O>,
) -> String {
    /// As `argosy_api::resource::WatchEvent`.
    #[derive(Serialize)]
    struct Data<O> {
        #[serde(rename = "type")]
        kind: WatchKind,
        revision: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        object: Option<O>,
    }
    let data = Data { kind, revision: revision.0, object };
    let data = serde_json::to_string(&data).unwrap_or_default();
    let id = id.map_or_else(String::new, |id| format!("id: {id}\n"));
    format!("event: {}\n{id}data: {data}\n\n", kind.as_str())
}
