//! What is measured, and the three paths operators ask: `/healthz`, `/readyz`, `/metrics`.

use argosy_control::Control;
use axum::http::Method;
use jiff::Timestamp;
use prometheus_client::metrics::gauge::Gauge;
use tokio::sync::watch;

/// The content type of `render`'s text.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The numbers of this process. Clones count together.
#[derive(Clone)]
pub struct Metrics {
    watchers: Gauge,
    connections: Gauge,
}

/// One more of something, until it is dropped.
pub struct Held(Gauge);

impl Held {
    fn new(gauge: &Gauge) -> Self {
        gauge.inc();
        Self(gauge.clone())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.dec();
    }
}

impl Metrics {
    /// Numbers that begin now.
    pub fn new(version: &str, started: Timestamp) -> Self {
        let _ = (version, started);
        Self { watchers: Gauge::default(), connections: Gauge::default() }
    }

    /// Counts one request. `route` is the pattern, never the path.
    pub fn observe(&self, method: &Method, route: &str, status: u16, seconds: f64) {
        let _ = (method, route, status, seconds);
    }

    /// Counts one watch for as long as the answer is kept.
    pub fn watcher(&self) -> Held {
        Held::new(&self.watchers)
    }

    /// Counts one connection for as long as the answer is kept.
    pub fn connection(&self) -> Held {
        Held::new(&self.connections)
    }

    /// Everything, as OpenMetrics text.
    pub fn render(&self, control: &Control) -> String {
        let _ = control;
        todo!()
    }
}

/// `/healthz`, `/readyz` and `/metrics`: never behind authentication.
pub fn operations_router(
    control: Control,
    metrics: Metrics,
    shutdown: watch::Receiver<bool>,
) -> axum::Router {
    let _ = (control, metrics, shutdown);
    todo!()
}
