//! The accept loop: HTTP/1.1 and HTTP/2 on one port, with or without TLS.
//!
//! What a newcomer gets wrong: hyper's own timeouts do nothing without a timer, do not cover the bytes
//! by which the protocol is told, and cut idle connections like slow ones. So the time a client may
//! take is kept in `listen/guard.rs`, around the socket.

mod guard;

use crate::metrics::Metrics;
use axum::body::Body;
use axum::http::Request;
use guard::{Activity, Guarded};
use hyper::body::Incoming;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tower::Service;
use tracing::{debug, error, warn};

/// Who is at the other end of the connection; in every request's extensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer(pub SocketAddr);

/// What one listener puts up with.
#[derive(Clone, Debug)]
pub struct Limits {
    /// How many connections may be open; above it, new ones wait in the kernel's queue.
    ///
    /// Each costs a descriptor and some 50 KB. 20,000 is twice the agents of a large fleet.
    pub connections_max: usize,
    /// How long the head of a request may take: the first from the accept, later ones from their first byte.
    ///
    /// 10 s is a thousand times what an honest client needs, also through a bad link.
    pub head_max: Duration,
    /// How many bytes the head of a request may have; at least 8 KiB.
    ///
    /// Room for a JWT with many groups; larger ones only cost memory.
    pub head_bytes_max: usize,
    /// How many header lines a request may have.
    pub head_lines_max: usize,
    /// How long a connection may stay open without a request.
    ///
    /// Longer than the 60 s after which proxies give up a connection, so that they do it first.
    pub idle_max: Duration,
    /// How long a client may take to accept a single byte of an answer.
    pub write_stall_max: Duration,
    /// How long a TLS handshake may take.
    pub handshake_max: Duration,
    /// How many requests one HTTP/2 connection may have open.
    pub streams_max: u32,
    /// How long requests in flight may go on once the listener is told to stop.
    ///
    /// Supervisors kill after 30 s or more.
    pub drain_max: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections_max: 20_000,
            head_max: Duration::from_secs(10),
            head_bytes_max: 16 * 1024,
            head_lines_max: 100,
            idle_max: Duration::from_secs(75),
            write_stall_max: Duration::from_secs(30),
            handshake_max: Duration::from_secs(10),
            streams_max: 64,
            drain_max: Duration::from_secs(30),
        }
    }
}

/// Where connections come from: a TCP socket, or in tests the socket of a simulated host.
pub trait Listener: Send + 'static {
    /// One connection.
    type Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static;

    /// Waits for the next connection. May be dropped and asked again without losing one.
    fn accept(&self) -> impl Future<Output = io::Result<(Self::Stream, SocketAddr)>> + Send;

    /// Where it listens.
    ///
    /// # Errors
    /// If it has no address.
    fn local_addr(&self) -> io::Result<SocketAddr>;
}

impl Listener for TcpListener {
    type Stream = TcpStream;

    async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        let (stream, peer) = TcpListener::accept(self).await?;
        // Answers are written whole: waiting for more to send only delays them.
        if let Err(cause) = stream.set_nodelay(true) {
            debug!(%cause, "could not set TCP_NODELAY");
        }
        Ok((stream, peer))
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        TcpListener::local_addr(self)
    }
}

/// How long accepting rests after it failed for want of descriptors or memory.
///
/// Shorter, and the loop burns a core on errors; longer, and clients notice that one was freed.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// How much of an answer is kept for a client that has not taken it, per HTTP/2 request.
const SEND_BUFFER_MAX: usize = 64 * 1024;

/// How often a quiet HTTP/2 connection is asked whether it is still there, and how long it may take to say so.
///
/// A node that vanished without a word holds its stream for twice this; and middle boxes forget what is
/// quiet for longer.
const PING_EVERY: Duration = Duration::from_secs(20);

/// How many HTTP/2 requests may be taken back before they were begun, or be reset by us, before the
/// connection is closed (rapid reset).
const RESETS_MAX: usize = 20;

/// Reads a certificate chain and its private key, both PEM.
///
/// # Errors
/// Names the file that is missing or wrong.
pub fn tls(certificates: &Path, key: &Path) -> io::Result<TlsAcceptor> {
    let wrong = |path: &Path, cause: &dyn std::fmt::Display| {
        io::Error::new(io::ErrorKind::InvalidInput, format!("{}: {cause}", path.display()))
    };
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(certificates)
        .and_then(Iterator::collect)
        .map_err(|cause| wrong(certificates, &cause))?;
    let key_der = PrivateKeyDer::from_pem_file(key).map_err(|cause| wrong(key, &cause))?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_no_client_auth()
        .with_single_cert(chain, key_der)
        .map_err(|cause| wrong(certificates, &cause))?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// Serves `app` until `shutdown` says `true` (or its sender is gone), then finishes what was begun.
///
/// Flow: accept, while there is room → one task a connection → on shutdown: stop accepting, let each
/// connection finish its requests, close what is left after `drain_max`.
///
/// Guarantees: no failed accept and no connection ends the loop. Answers that never end (watches) must
/// listen to the same `shutdown`, or they are cut at `drain_max`.
///
/// # Errors
/// Only if the listener has no address.
pub async fn serve(
    listener: impl Listener,
    tls: Option<TlsAcceptor>,
    app: axum::Router,
    limits: Limits,
    metrics: Metrics,
    shutdown: watch::Receiver<bool>,
) -> io::Result<()> {
    let address = listener.local_addr()?;
    let limits = Arc::new(limits);
    let room = Arc::new(Semaphore::new(limits.connections_max.min(Semaphore::MAX_PERMITS)));
    let mut connections = JoinSet::new();
    let mut stop = pin!(stopped(shutdown.clone()));
    loop {
        let accept = async {
            let permit = Arc::clone(&room).acquire_owned().await.expect("it is never closed");
            (permit, listener.accept().await)
        };
        let (permit, accepted) = tokio::select! {
            // In this order, so that no flood of connections hides the others, and a simulation repeats.
            biased;
            () = &mut stop => break,
            Some(ended) = connections.join_next() => {
                note(ended);
                continue;
            }
            accepted = accept => accepted,
        };
        match accepted {
            Ok((stream, peer)) => {
                let (tls, app, limits) = (tls.clone(), app.clone(), Arc::clone(&limits));
                let (held, shutdown) = (metrics.connection(), shutdown.clone());
                connections.spawn(async move {
                    let _counted = (permit, held);
                    accepted_one(stream, Peer(peer), tls, app, &limits, shutdown).await;
                });
            }
            Err(cause) if is_the_clients(&cause) => {
                debug!(%cause, "a connection broke in the queue")
            }
            Err(cause) => {
                warn!(%cause, "could not accept a connection; pausing");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    drop(listener);
    let finish = async {
        while let Some(ended) = connections.join_next().await {
            note(ended);
        }
    };
    if tokio::time::timeout(limits.drain_max, finish).await.is_err() {
        warn!(%address, left = connections.len(), "closing connections that did not finish in time");
        connections.shutdown().await;
    }
    Ok(())
}

/// Comes back when the process is to stop.
async fn stopped(mut shutdown: watch::Receiver<bool>) {
    // An error means that nobody is left to ask us to stop: that is a reason to.
    let _ = shutdown.wait_for(|stop| *stop).await;
}

fn note(ended: Result<(), tokio::task::JoinError>) {
    if let Err(cause) = ended
        && cause.is_panic()
    {
        error!(%cause, "a connection panicked");
    }
}

/// Errors of one connection that was gone before we came to it; any other is about us.
fn is_the_clients(cause: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(cause.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

async fn accepted_one<S>(
    stream: S,
    peer: Peer,
    tls: Option<TlsAcceptor>,
    app: axum::Router,
    limits: &Limits,
    shutdown: watch::Receiver<bool>,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let Some(tls) = tls else {
        return connection(stream, peer, app, limits, shutdown).await;
    };
    let handshake = tokio::time::timeout(limits.handshake_max, tls.accept(stream));
    let stopping = stopped(shutdown.clone());
    tokio::select! {
        shaken = handshake => match shaken {
            Ok(Ok(stream)) => connection(stream, peer, app, limits, shutdown).await,
            Ok(Err(cause)) => debug!(peer = %peer.0, %cause, "TLS handshake failed"),
            Err(_) => debug!(peer = %peer.0, "TLS handshake took too long"),
        },
        () = stopping => {}
    }
}

/// Serves one connection to its end. Any stream will do: a socket, TLS, a pipe in a test.
async fn connection<S>(
    stream: S,
    peer: Peer,
    app: axum::Router,
    limits: &Limits,
    shutdown: watch::Receiver<bool>,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let activity = Arc::new(Activity::default());
    let io = TokioIo::new(Guarded::new(stream, Arc::clone(&activity), limits));
    let service = hyper::service::service_fn(move |mut request: Request<Incoming>| {
        let busy = Activity::begin(&activity);
        request.extensions_mut().insert(peer);
        let mut app = app.clone();
        async move {
            let response = app.call(request.map(Body::new)).await?;
            Ok::<_, Infallible>(response.map(|body| busy.until_sent(body)))
        }
    });
    let protocol = protocol(limits);
    let mut serving = pin!(protocol.serve_connection(io, service));
    let ended = tokio::select! {
        biased;
        ended = serving.as_mut() => ended,
        () = stopped(shutdown) => {
            serving.as_mut().graceful_shutdown();
            serving.await
        }
    };
    if let Err(cause) = ended {
        debug!(peer = %peer.0, %cause, "connection ended");
    }
}

fn protocol(limits: &Limits) -> auto::Builder<Streams> {
    let mut protocol = auto::Builder::new(Streams::default());
    protocol
        .http1()
        .timer(TokioTimer::new())
        // The second wall, behind `Guarded`: it cannot tell idle from slow, so it allows for both.
        .header_read_timeout(limits.idle_max + limits.head_max)
        .max_buf_size(limits.head_bytes_max)
        .max_headers(limits.head_lines_max);
    protocol
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(limits.streams_max)
        .max_header_list_size(u32::try_from(limits.head_bytes_max).unwrap_or(u32::MAX))
        .max_pending_accept_reset_streams(RESETS_MAX)
        .max_local_error_reset_streams(RESETS_MAX)
        .max_send_buf_size(SEND_BUFFER_MAX)
        .keep_alive_interval(PING_EVERY)
        .keep_alive_timeout(PING_EVERY);
    protocol
}

/// Runs the requests of one HTTP/2 connection, and stops them when the connection ends.
#[derive(Clone, Default)]
struct Streams(Arc<Mutex<JoinSet<()>>>);

impl<F: Future<Output = ()> + Send + 'static> hyper::rt::Executor<F> for Streams {
    fn execute(&self, stream: F) {
        let mut streams = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(ended) = streams.try_join_next() {
            note(ended);
        }
        streams.spawn(stream);
    }
}

#[cfg(test)]
mod tests;
