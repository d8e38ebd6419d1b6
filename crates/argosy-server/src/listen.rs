//! The accept loop.

use crate::metrics::Metrics;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

/// Who is at the other end of the connection; in every request's extensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer(pub SocketAddr);

/// What one listener puts up with.
#[derive(Clone, Debug)]
pub struct Limits {
    /// How many connections may be open.
    pub connections_max: usize,
    /// How long the head of a request may take.
    pub head_max: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { connections_max: 20_000, head_max: Duration::from_secs(10) }
    }
}

/// Reads a certificate chain and its private key, both PEM.
///
/// # Errors
/// Names the file that is missing or wrong.
pub fn tls(certificates: &Path, key: &Path) -> std::io::Result<TlsAcceptor> {
    let _ = (certificates, key);
    todo!()
}

/// Serves `app` until `shutdown` says `true`; then finishes what was begun.
///
/// # Errors
/// Only if the listener cannot be used at all.
pub async fn serve(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    app: axum::Router,
    limits: Limits,
    metrics: Metrics,
    shutdown: watch::Receiver<bool>,
) -> std::io::Result<()> {
    let _ = (listener, tls, app, limits, metrics, shutdown);
    todo!()
}
