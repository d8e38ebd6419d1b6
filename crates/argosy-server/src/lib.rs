//! The front door: HTTP, streams, sign-in; turns wire types into core's and back.
//!
//! A request goes through `http::enter` (its id, its headers, no panic passes), then
//! `http::dispatch` (who asks, may they, what do they send), then the one handler of its route.

pub mod listen;

pub mod body;

pub mod auth;

pub mod metrics;

pub mod profile;

pub mod dashboard;

mod problem;

mod convert;

mod http;

mod stream;

mod rpc;

pub use rpc::attach;

use argosy_control::Control;
use axum::Router;
use std::sync::Arc;
use tokio::sync::watch;

/// What the front door needs.
pub struct Server {
    /// The services.
    pub control: Control,
    /// The profile of requests that name none.
    pub profile: profile::Profile,
    /// Who is who.
    pub authenticator: auth::Authenticator,
    /// What is counted.
    pub metrics: metrics::Metrics,
    /// Further routers, each under its own prefix, for administrators only.
    pub mounts: Vec<(String, Router)>,
    /// The dashboard's files; none where there is no dashboard.
    pub dashboard: &'static [dashboard::Asset],
    /// Whether all of this is a demonstration, which its pages say.
    pub demo: bool,
    /// Becomes true when the process is to end: watches say goodbye.
    pub shutdown: watch::Receiver<bool>,
    /// The version that is shown.
    pub version: String,
    /// When the server was built, if that is known.
    pub build_time: String,
}

impl Server {
    /// Everything that is served, as one router.
    pub fn router(self) -> Router {
        http::router(Arc::new(self))
    }
}
