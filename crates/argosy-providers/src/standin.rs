//! What our stand-ins for clouds have in common: a server on a port of its own, and the lies it can tell.
//!
//! For tests of this workspace, behind the feature `testing`. Their time is made of requests and of what
//! they are told has passed: nothing waits for a clock.

use axum::Router;
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use serde_json::Value;
use std::io;
use std::time::Duration;
use tokio::task::JoinSet;

/// A server that ends with its owner.
#[derive(Debug)]
pub(crate) struct Server {
    /// Where it is: `http://127.0.0.1:41003`.
    pub(crate) url: String,
    _tasks: JoinSet<()>,
}

impl Server {
    /// Serves on a free port of this machine.
    pub(crate) async fn start(make: impl FnOnce(&str) -> Router) -> io::Result<Self> {
        let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await?;
        let url = format!("http://{}", listener.local_addr()?);
        let router = make(&url);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            // It serves until it is dropped; its clients notice if it does not.
            let _ended = axum::serve(listener, router).await;
        });
        Ok(Self { url, _tasks: tasks })
    }
}

/// What a cloud does that it should not. Until `Lies::calm`, if it does not say how often.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lies {
    /// The next create is never answered; whether it is done.
    pub lose_create: Option<bool>,
    /// The next create is done and answered with a 500.
    pub fail_create: bool,
    /// Listings are so much behind.
    pub lag: Duration,
    /// So many calls are refused: too many.
    pub throttle: u32,
    /// The allowance is used up.
    pub quota: bool,
    /// There are no machines left.
    pub capacity: bool,
    /// The credentials are no longer good.
    pub revoked: bool,
    /// The sign-in is out of order.
    pub sign_in_down: bool,
    /// The credentials do not allow to buy.
    pub deny_create: bool,
    /// Deletions are answered with success and not done.
    pub delete_lies: bool,
    /// The next deletion is done and answered with a 500.
    pub fail_delete: bool,
    /// Listings are empty.
    pub empty_list: bool,
    /// Listings show every second machine.
    pub half_list: bool,
    /// Listings break off with a 500 after the first page.
    pub broken_list: bool,
    /// Listings say that a zone could not be asked.
    pub unreachable_zone: bool,
    /// Operations never end.
    pub stuck: bool,
    /// Every answer has this body, and status 200.
    pub body: Option<Vec<u8>>,
}

impl Lies {
    /// Ends all lies.
    pub fn calm(&mut self) {
        *self = Self::default();
    }
}

/// What a stand-in answers.
#[derive(Debug)]
pub(crate) enum Reply {
    Json(StatusCode, Value),
    /// Too many calls; come back in a second.
    Throttled(StatusCode, Value),
    /// Nothing, ever.
    Never,
    Raw(Vec<u8>),
}

impl Reply {
    pub(crate) async fn send(self) -> Response {
        let json = |status: StatusCode, body: Value| {
            let mut answer = (status, body.to_string()).into_response();
            let kind = HeaderValue::from_static("application/json; charset=UTF-8");
            answer.headers_mut().insert(header::CONTENT_TYPE, kind);
            answer
        };
        match self {
            Reply::Json(status, body) => json(status, body),
            Reply::Throttled(status, body) => {
                let mut answer = json(status, body);
                answer.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
                answer
            }
            Reply::Never => std::future::pending().await,
            Reply::Raw(body) => Response::new(Body::from(body)),
        }
    }
}
