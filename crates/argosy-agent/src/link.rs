//! The line to the control plane: one stream, or single calls where a stream cannot be had.
//!
//! Every call has a deadline, and a connection that goes silent is noticed by pings. Of several addresses
//! the last good one is tried first; which one that was survives a restart.

use crate::agent::Loss;
use crate::record::{Aside, replace_file};
use argosy_api::rpc::attach::{Said, Told};
use argosy_api::rpc::node::{
    AckCommandRequest, AttachRequest, AttachResponse, Error, HeartbeatAck, HeartbeatRequest, Hello,
    NodeServiceClient, PollCommandsRequest, ReportHealthRequest,
};
use connectrpc::client::{
    ClientConfig, ClientTransport, Http2Connection, HttpClient, SharedHttp2Connection,
};
use connectrpc::{ConnectError, ErrorCode, Protocol};
use futures_util::future::BoxFuture;
use http::Uri;
use hyper::body::Body;
use hyper_util::rt::TokioIo;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// How long a connection may take to be made, name look-up and handshake included.
pub(crate) const CONNECT_MAX: Duration = Duration::from_secs(10);
/// How long a single call may take.
const CALL_MAX: Duration = Duration::from_secs(10);
/// How often a stream is pinged, and how long the answer may take: half an hour of silence on a stream
/// whose other side is gone would be half an hour without a node.
pub(crate) const PING_EVERY: Duration = Duration::from_secs(20);
/// See `PING_EVERY`.
pub(crate) const PING_MAX: Duration = Duration::from_secs(20);
/// The longest message that is read. Commands have at most sixteen parameters of one kilobyte.
pub(crate) const MESSAGE_LEN_MAX: usize = 1024 * 1024;
/// After so many calls in a row that did not get through, nobody is there.
const FAILURES_MAX: u32 = 3;
/// The file in the data directory that says which address was good.
const GOOD_FILE: &str = "server";

/// Where the credential comes from. It is read for each connection, so that a new one is used.
#[derive(Clone, Debug, Default)]
pub enum Token {
    /// There is none.
    #[default]
    None,
    /// As it is.
    Value(String),
    /// In a file.
    File(PathBuf),
}

impl Token {
    async fn read(&self, aside: &Aside) -> Result<Option<String>, String> {
        let path = match self {
            Token::None => return Ok(None),
            Token::Value(token) => return usable(token, "ARGOSY_TOKEN").map(Some),
            Token::File(path) => path.clone(),
        };
        let read = path.clone();
        match aside.run(move || std::fs::read_to_string(read)).await {
            Ok(text) => usable(&text, &format!("the token file {}", path.display())).map(Some),
            Err(error) => Err(format!("cannot read the token file {}: {error}", path.display())),
        }
    }
}

/// A token as it can be sent. One that cannot would be left out, and the server would say that there is none.
fn usable(token: &str, place: &str) -> Result<String, String> {
    let token = token.trim();
    if token.is_empty() {
        return Err(format!("{place} is empty"));
    }
    if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(format!(
            "{place} does not hold a token: it must be one line without spaces or control characters"
        ));
    }
    Ok(token.to_owned())
}

/// Why a line cannot be set up at all.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// Not an address of a server.
    #[error("`{0}` is not the address of a server: it must be like https://argosy.example:8443")]
    Address(String),
    /// No server was named.
    #[error("no server is named; name one with --server URL")]
    NoServer,
    /// The certificates that servers are checked with cannot be read.
    #[error("cannot read certificates: {0}")]
    Certificates(String),
}

/// A connection, whatever it is made of.
pub trait Connection: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Connection for T {}

/// Makes a plain connection to an address, instead of TCP.
pub type Dial =
    Arc<dyn Fn(Uri) -> BoxFuture<'static, std::io::Result<Box<dyn Connection>>> + Send + Sync>;

/// The line. Cheap to clone.
#[derive(Clone)]
pub struct Link {
    /// Instead of TCP.
    dial: Option<Dial>,
    shared: Arc<Shared>,
}

struct Shared {
    servers: Vec<Uri>,
    token: Token,
    ca_file: Option<PathBuf>,
    tls: OnceLock<Result<Arc<rustls::ClientConfig>, String>>,
    data_dir: PathBuf,
    aside: Aside,
    /// The address that was kept last, by this process.
    kept: Mutex<String>,
    node_id: String,
    /// Which address is tried first.
    first: AtomicUsize,
    config_revision: AtomicU64,
    failures: AtomicU32,
    /// The client of single calls, with the server and token it was made for: a connection for each heartbeat of a
    /// whole fleet is what a server that loses its streams needs least.
    caller: Mutex<Option<Caller>>,
}

struct Caller {
    uri: Uri,
    token: Option<String>,
    client: NodeServiceClient<HttpClient>,
}

/// What came of a call.
#[derive(Debug)]
pub enum Called {
    /// It was answered; whether commands wait, too.
    Told(Vec<Told>, bool),
    /// It was not.
    Lost(Loss),
}

impl Link {
    /// A line to one of some servers. Nothing is connected yet.
    ///
    /// # Errors
    /// See `LinkError`.
    pub fn new(
        servers: &[String],
        node_id: &str,
        token: Token,
        ca_file: Option<PathBuf>,
        data_dir: &Path,
    ) -> Result<Self, LinkError> {
        let parse = |text: &String| {
            let uri = text.parse::<Uri>().ok().filter(|uri| {
                matches!(uri.scheme_str(), Some("http" | "https")) && uri.authority().is_some()
            });
            uri.ok_or_else(|| LinkError::Address(text.clone()))
        };
        let servers: Vec<Uri> = servers.iter().map(parse).collect::<Result<_, _>>()?;
        if servers.is_empty() {
            return Err(LinkError::NoServer);
        }
        let good = std::fs::read_to_string(data_dir.join(GOOD_FILE)).unwrap_or_default();
        let first = servers.iter().position(|uri| *uri == *good.trim()).unwrap_or(0);
        let shared = Shared {
            servers,
            token,
            ca_file,
            tls: OnceLock::new(),
            data_dir: data_dir.to_owned(),
            aside: Aside::default(),
            kept: Mutex::new(good.trim().to_owned()),
            node_id: node_id.to_owned(),
            first: AtomicUsize::new(first),
            config_revision: AtomicU64::new(0),
            failures: AtomicU32::new(0),
            caller: Mutex::new(None),
        };
        let link = Self { shared: Arc::new(shared), dial: None };
        if link.shared.servers.iter().any(|uri| uri.scheme_str() == Some("https")) {
            link.tls().map_err(LinkError::Certificates)?;
        }
        Ok(link)
    }

    /// The same line over connections that somebody else makes: to a simulated host, or through a tunnel. They
    /// are HTTP/2 without TLS, single calls too.
    #[must_use]
    pub fn over(self, dial: Dial) -> Self {
        Self { dial: Some(dial), ..self }
    }

    /// Opens a stream, says hello and then whatever comes, until the stream ends. Gives why it did.
    ///
    /// Dropping it ends the stream.
    pub async fn attach(
        &self,
        hello: Hello,
        saying: mpsc::Receiver<Said>,
        telling: &mpsc::Sender<Result<Told, Loss>>,
    ) -> Loss {
        let client = match self.connect().await {
            Ok(client) => client,
            Err(loss) => return loss,
        };
        let first_word = || self.remember_good();
        match converse(&client, hello, saying, telling, Ok, first_word).await {
            Parted::Closed(loss) => loss,
            Parted::Broken { error, heard } => self.ended(&error, heard),
        }
    }

    /// Says one thing by a call of its own.
    pub async fn call(&self, said: Said) -> Called {
        let about = match &said {
            Said::Health(report) => (report.sequence, String::new()),
            Said::Ack(ack) => (0, ack.command_id.clone()),
            Said::Hello(_) | Said::Heartbeat(_) | Said::Heartbeats(_) | Said::Register(_) => {
                (0, String::new())
            }
        };
        let answer = if self.dial.is_some() {
            match self.connect().await {
                Ok(client) => tokio::time::timeout(CALL_MAX, self.call_by(&client, said)).await,
                Err(loss) => return Called::Lost(loss),
            }
        } else {
            match self.caller().await {
                Ok(client) => tokio::time::timeout(CALL_MAX, self.call_by(&client, said)).await,
                Err(loss) => return Called::Lost(loss),
            }
        };
        self.settle(answer, about)
    }

    /// Asks for commands by a call of its own.
    pub async fn poll(&self) -> Called {
        let answer = if self.dial.is_some() {
            match self.connect().await {
                Ok(client) => tokio::time::timeout(CALL_MAX, self.poll_by(&client)).await,
                Err(loss) => return Called::Lost(loss),
            }
        } else {
            match self.caller().await {
                Ok(client) => tokio::time::timeout(CALL_MAX, self.poll_by(&client)).await,
                Err(loss) => return Called::Lost(loss),
            }
        };
        self.settle(answer, (0, String::new()))
    }

    async fn poll_by<T>(
        &self,
        client: &NodeServiceClient<T>,
    ) -> Result<(Vec<Told>, bool), ConnectError>
    where
        T: ClientTransport<ResponseBody: Body<Error: std::fmt::Display>>,
    {
        let request = PollCommandsRequest { node_id: self.shared.node_id.clone() };
        let polled = client.poll_commands(request).await?.into_owned();
        Ok((polled.commands.into_iter().map(Told::from).collect(), false))
    }

    async fn call_by<T>(
        &self,
        client: &NodeServiceClient<T>,
        said: Said,
    ) -> Result<(Vec<Told>, bool), ConnectError>
    where
        T: ClientTransport<ResponseBody: Body<Error: std::fmt::Display>>,
    {
        let node_id = self.shared.node_id.clone();
        match said {
            Said::Register(request) => {
                let registered = client.register_node(*request).await?.into_owned();
                let revision = registered.config.revision;
                self.shared.config_revision.store(revision, Ordering::Relaxed);
                Ok((vec![Told::from(registered)], false))
            }
            Said::Heartbeat(heartbeat) => {
                let request = HeartbeatRequest {
                    heartbeat: Some(*heartbeat).into(),
                    config_revision: self.shared.config_revision.load(Ordering::Relaxed),
                };
                let answer = client.heartbeat(request).await?.into_owned();
                let mut told = Vec::new();
                if let Some(config) = answer.config.into_option() {
                    self.shared.config_revision.store(config.revision, Ordering::Relaxed);
                    told.push(Told::from(config));
                }
                told.push(Told::from(HeartbeatAck {
                    next_interval_seconds: answer.next_interval_seconds,
                    ..Default::default()
                }));
                Ok((told, answer.commands_waiting))
            }
            Said::Health(report) => {
                let request = ReportHealthRequest { node_id, report: Some(*report).into() };
                Ok((vec![Told::from(client.report_health(request).await?.into_owned())], false))
            }
            Said::Ack(ack) => {
                let request = AckCommandRequest { node_id, ack: Some(*ack).into() };
                Ok((vec![Told::from(client.ack_command(request).await?.into_owned())], false))
            }
            Said::Hello(_) | Said::Heartbeats(_) => Ok((Vec::new(), false)),
        }
    }

    /// What came of a call, with errors that are an answer as an answer.
    fn settle(
        &self,
        answer: Result<Result<(Vec<Told>, bool), ConnectError>, tokio::time::error::Elapsed>,
        about: (u64, String),
    ) -> Called {
        let error = match answer {
            Ok(Ok((told, waiting))) => {
                self.shared.failures.store(0, Ordering::Relaxed);
                self.remember_good();
                return Called::Told(told, waiting);
            }
            Ok(Err(error)) => error,
            Err(_) => ConnectError::deadline_exceeded("no answer in time"),
        };
        let on_the_way = [ErrorCode::Unavailable, ErrorCode::DeadlineExceeded, ErrorCode::Canceled];
        if on_the_way.contains(&error.code) {
            self.next_server();
            // A connection on which nothing comes back is not used again.
            *self.shared.caller.lock().unwrap_or_else(PoisonError::into_inner) = None;
            let failures = self.shared.failures.fetch_add(1, Ordering::Relaxed) + 1;
            let why = sentence(&error);
            if failures < FAILURES_MAX {
                return Called::Lost(Loss::Ended(why));
            }
            self.shared.failures.store(0, Ordering::Relaxed);
            return Called::Lost(Loss::Unreachable(why));
        }
        if error.code == ErrorCode::Unauthenticated {
            return Called::Lost(Loss::Refused(sentence(&error)));
        }
        let (health_sequence, command_id) = about;
        let told = Error {
            code: error.code.as_str().to_owned(),
            message: error.message.unwrap_or_default(),
            health_sequence,
            command_id,
            ..Error::default()
        };
        Called::Told(vec![Told::from(told)], false)
    }

    /// A connection to the first server that can be reached.
    async fn connect(&self) -> Result<NodeServiceClient<SharedHttp2Connection>, Loss> {
        let mut last = String::new();
        for _ in 0..self.shared.servers.len() {
            let uri = self.server();
            let token = self.token().await?;
            let config = config(&uri, token.as_deref()).with_protocol(Protocol::Grpc);
            let builder = Http2Connection::builder()
                .establishment_timeout(CONNECT_MAX)
                .keep_alive_interval(PING_EVERY)
                .keep_alive_timeout(PING_MAX);
            let connected = if let Some(dial) = self.dial.clone() {
                let dial = tower::service_fn(move |uri| {
                    let dialled = dial(uri);
                    async move { dialled.await.map(TokioIo::new) }
                });
                builder.connect_with_connector(dial, uri.clone()).await
            } else if uri.scheme_str() == Some("https") {
                let tls = self.tls().map_err(Loss::Refused)?;
                builder.connect_tls(uri.clone(), tls).await
            } else {
                builder.connect_plaintext(uri.clone()).await
            };
            match connected {
                Ok(connection) => return Ok(NodeServiceClient::new(connection.shared(8), config)),
                Err(error) => last = format!("{uri}: {}", sentence(&error)),
            }
            self.next_server();
        }
        Err(Loss::Unreachable(last))
    }

    async fn caller(&self) -> Result<NodeServiceClient<HttpClient>, Loss> {
        let (uri, token) = (self.server(), self.token().await?);
        let kept = || self.shared.caller.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(caller) = &*kept()
            && caller.uri == uri
            && caller.token == token
        {
            return Ok(caller.client.clone());
        }
        let builder = HttpClient::builder().establishment_timeout(CONNECT_MAX);
        let client = if uri.scheme_str() == Some("https") {
            builder.with_tls(self.tls().map_err(Loss::Refused)?)
        } else {
            builder.plaintext()
        };
        let config = config(&uri, token.as_deref()).with_default_timeout(CALL_MAX);
        let client = NodeServiceClient::new(client, config);
        *kept() = Some(Caller { uri, token, client: client.clone() });
        Ok(client)
    }

    async fn token(&self) -> Result<Option<String>, Loss> {
        self.shared.token.read(&self.shared.aside).await.map_err(Loss::Refused)
    }

    fn server(&self) -> Uri {
        let servers = &self.shared.servers;
        let first = self.shared.first.load(Ordering::Relaxed) % servers.len().max(1);
        servers.get(first).cloned().unwrap_or_default()
    }

    fn next_server(&self) {
        self.shared.first.fetch_add(1, Ordering::Relaxed);
    }

    /// Keeps the address that works for the next start, if it is news. Nobody waits for it.
    fn remember_good(&self) {
        if self.shared.servers.len() < 2 {
            return;
        }
        let good = self.server().to_string();
        let known = &mut *self.shared.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if *known == good {
            return;
        }
        known.clone_from(&good);
        let path = self.shared.data_dir.join(GOOD_FILE);
        let aside = self.shared.aside.clone();
        let mut set = JoinSet::new();
        set.spawn(async move {
            if let Err(error) = aside.run(move || replace_file(&path, good.as_bytes())).await {
                tracing::warn!(%error, "cannot keep the address of the server");
            }
        });
        set.detach_all();
    }

    /// Why a stream ended, or was not had.
    fn ended(&self, error: &ConnectError, heard: bool) -> Loss {
        let why = format!("{}: {}", self.server(), sentence(error));
        if !heard {
            self.next_server();
        }
        loss(error, heard, why)
    }

    fn tls(&self) -> Result<Arc<rustls::ClientConfig>, String> {
        let made = self.shared.tls.get_or_init(|| tls(self.shared.ca_file.as_deref()));
        made.clone()
    }
}

fn config(uri: &Uri, token: Option<&str>) -> ClientConfig {
    let config = ClientConfig::new(uri.clone()).with_default_max_message_size(MESSAGE_LEN_MAX);
    match token {
        Some(token) => config.with_default_header("authorization", format!("Bearer {token}")),
        None => config,
    }
}

/// How a stream ended.
pub(crate) enum Parted {
    /// In order, or because nobody listens here any more.
    Closed(Loss),
    /// By an error; whether anything had been told before.
    Broken {
        /// Which.
        error: ConnectError,
        /// Whether.
        heard: bool,
    },
}

/// Says hello on a stream and then whatever comes, and tells what is told, until it ends.
///
/// Dropping it ends the stream. What is told goes into `envelope` first; `first_word` is called when
/// something is told at all.
pub(crate) async fn converse<T>(
    client: &NodeServiceClient<SharedHttp2Connection>,
    hello: Hello,
    mut saying: mpsc::Receiver<Said>,
    telling: &mpsc::Sender<T>,
    envelope: impl Fn(Told) -> T,
    first_word: impl Fn(),
) -> Parted {
    let stream = match tokio::time::timeout(CONNECT_MAX, client.attach()).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return Parted::Broken { error, heard: false },
        Err(_) => {
            let why = "the stream could not be opened in time".to_owned();
            return Parted::Closed(Loss::Streamless(why));
        }
    };
    let (mut send, mut receive) = stream.into_split();
    let hello = AttachRequest { message: Some(Said::from(hello)) };
    if let Err(error) = send.send(hello).await {
        return Parted::Broken { error, heard: false };
    }
    let sending = async {
        while let Some(said) = saying.recv().await {
            let said = AttachRequest { message: Some(said) };
            if send.send(said).await.is_err() {
                break;
            }
        }
        // Why it cannot be said is heard on the other half.
        std::future::pending::<Parted>().await
    };
    let receiving = async {
        let mut heard = false;
        loop {
            match receive.message::<AttachResponse>().await {
                Ok(Some(told)) => {
                    if !heard {
                        heard = true;
                        first_word();
                    }
                    // A word that this version does not know is no word.
                    let Some(told) = told.to_owned_message().message else { continue };
                    if telling.send(envelope(told)).await.is_err() {
                        return Parted::Closed(Loss::Ended("given up".to_owned()));
                    }
                }
                Ok(None) => {
                    return Parted::Closed(Loss::Ended("the stream was closed".to_owned()));
                }
                Err(error) => return Parted::Broken { error, heard },
            }
        }
    };
    tokio::select! {
        // The order does not matter, but chance would: a simulation could not be repeated.
        biased;
        parted = sending => parted,
        parted = receiving => parted,
    }
}

/// What an error of a stream means for whoever had it.
pub(crate) fn loss(error: &ConnectError, heard: bool, why: String) -> Loss {
    let code = error.code;
    if [ErrorCode::Unauthenticated, ErrorCode::PermissionDenied].contains(&code) {
        Loss::Refused(why)
    } else if !heard && [ErrorCode::Unimplemented, ErrorCode::NotFound].contains(&code) {
        Loss::Streamless(why)
    } else {
        Loss::Ended(why)
    }
}

/// How servers are checked: with the certificates of a file, or with the system's.
///
/// # Errors
/// Why there is nothing to check them with.
pub fn tls(ca_file: Option<&Path>) -> Result<Arc<rustls::ClientConfig>, String> {
    let mut roots = rustls::RootCertStore::empty();
    match ca_file {
        Some(path) => {
            let broken = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
            let certificates =
                CertificateDer::pem_file_iter(path).map_err(|error| broken(&error))?;
            for certificate in certificates {
                let certificate = certificate.map_err(|error| broken(&error))?;
                roots.add(certificate).map_err(|error| broken(&error))?;
            }
        }
        None => {
            let found = rustls_native_certs::load_native_certs();
            roots.add_parsable_certificates(found.certs);
        }
    }
    if roots.is_empty() {
        return Err("there are no root certificates here; name some with ca_file".to_owned());
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}

pub(crate) fn sentence(error: &ConnectError) -> String {
    let message = error.message.as_deref().unwrap_or_default();
    format!("{}: {message}", error.code.as_str())
}

#[cfg(test)]
mod tests;
