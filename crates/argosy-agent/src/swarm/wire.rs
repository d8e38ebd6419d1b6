//! The line of a swarm over the real wire: a stream for each agent, many on one connection.
//!
//! Streams and not calls, because a command is then pushed instead of waiting for the next heartbeat; what
//! a stream costs is in `docs/benchmarks.md`.

use super::{AgentNumber, Line};
use crate::agent::{Event, Loss};
use crate::link::{
    CONNECT_MAX, MESSAGE_LEN_MAX, PING_EVERY, PING_MAX, Parted, converse, loss, sentence, tls,
};
use argosy_api::rpc::attach::{Said, Told};
use argosy_api::rpc::node::{Hello, NodeServiceClient};
use connectrpc::Protocol;
use connectrpc::client::{ClientConfig, Http2Connection, SharedHttp2Connection};
use futures_util::StreamExt;
use futures_util::future::{AbortHandle, Abortable, BoxFuture};
use futures_util::stream::FuturesUnordered;
use http::Uri;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore, mpsc};

/// How many streams go over one connection: a few less than the server lets one have.
const STREAMS_PER_CONNECTION: usize = 60;
/// How much may wait to be said on a stream. A control plane that lets so much pile up does not read.
const SAYING_MAX: usize = 16;
/// How much of what was told waits to be heard, for all agents together. Whoever tells more waits.
const TOLD_MAX: usize = 1_024;

/// The line of all agents to one control plane.
pub struct Wire {
    connections: Arc<Connections>,
    talks: HashMap<AgentNumber, Talk>,
    talking: FuturesUnordered<Abortable<BoxFuture<'static, (AgentNumber, u64, Loss)>>>,
    /// Losses that are known without asking anybody.
    lost: Vec<(AgentNumber, Loss)>,
    heard: mpsc::Receiver<Heard>,
    telling: mpsc::Sender<Heard>,
    begun: u64,
}

/// Something that was told on a stream.
type Heard = (AgentNumber, u64, Told);

/// The stream of one agent.
struct Talk {
    /// Which: what is heard of an earlier one is not heard.
    number: u64,
    saying: mpsc::Sender<Said>,
    abort: AbortHandle,
}

/// Why there can be no line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// The address is none.
    #[error("`{0}` is no address of a server; it looks like http://host:port")]
    Address(String),
    /// There is nothing to check the server's certificate with.
    #[error("cannot read certificates: {0}")]
    Certificates(String),
}

impl Wire {
    /// A line to the control plane at an address; its certificate is checked with the system's. Nothing is
    /// connected yet.
    ///
    /// # Errors
    /// See `WireError`.
    pub fn new(server: &str, token: Option<String>) -> Result<Self, WireError> {
        let uri = server.parse::<Uri>().ok();
        let uri = uri.filter(|uri| {
            matches!(uri.scheme_str(), Some("http" | "https")) && uri.authority().is_some()
        });
        let uri = uri.ok_or_else(|| WireError::Address(server.to_owned()))?;
        let tls = match uri.scheme_str() {
            Some("https") => Some(tls(None).map_err(WireError::Certificates)?),
            Some(_) | None => None,
        };
        let (telling, heard) = mpsc::channel(TOLD_MAX);
        let connections = Connections { uri, token, tls, open: Mutex::default() };
        Ok(Self {
            connections: Arc::new(connections),
            talks: HashMap::new(),
            talking: FuturesUnordered::new(),
            lost: Vec::new(),
            heard,
            telling,
            begun: 0,
        })
    }
}

impl Line for Wire {
    fn attach(&mut self, agent: AgentNumber, hello: Hello) {
        self.detach(agent);
        self.begun += 1;
        let number = self.begun;
        let (saying, to_say) = mpsc::channel(SAYING_MAX);
        let (connections, telling) = (self.connections.clone(), self.telling.clone());
        let talk = async move {
            let loss = connections.talk(hello, to_say, (agent, number), telling).await;
            (agent, number, loss)
        };
        let (abort, registration) = AbortHandle::new_pair();
        let talk: BoxFuture<'static, _> = Box::pin(talk);
        self.talking.push(Abortable::new(talk, registration));
        self.talks.insert(agent, Talk { number, saying, abort });
    }

    fn say(&mut self, agent: AgentNumber, said: Said) {
        let why = match self.talks.get(&agent) {
            Some(talk) if talk.saying.try_send(said).is_ok() => return,
            Some(_) => "the control plane does not read what is said on the stream",
            // Every control plane that a swarm talks to has streams: another is tried soon.
            None => "there is no stream",
        };
        self.detach(agent);
        self.lost.push((agent, Loss::Unreachable(why.to_owned())));
    }

    fn poll(&mut self, agent: AgentNumber) {
        // Commands are pushed; whoever polls has lost its stream.
        self.lost.push((agent, Loss::Unreachable("there is no stream".to_owned())));
    }

    fn detach(&mut self, agent: AgentNumber) {
        if let Some(talk) = self.talks.remove(&agent) {
            talk.abort.abort();
        }
    }

    async fn next(&mut self) -> (AgentNumber, Event) {
        loop {
            if let Some((agent, loss)) = self.lost.pop() {
                return (agent, Event::Lost(loss));
            }
            tokio::select! {
                Some((agent, number, told)) = self.heard.recv() => {
                    if self.talks.get(&agent).is_some_and(|talk| talk.number == number) {
                        return (agent, Event::Told(told));
                    }
                }
                Some(ended) = self.talking.next(), if !self.talking.is_empty() => {
                    let Ok((agent, number, loss)) = ended else { continue };
                    let current = self.talks.get(&agent).is_some_and(|talk| talk.number == number);
                    if current {
                        self.talks.remove(&agent);
                        return (agent, Event::Lost(loss));
                    }
                }
            }
        }
    }
}

/// Connections that are shared by many streams.
struct Connections {
    uri: Uri,
    token: Option<String>,
    /// How the server is checked, if it is.
    tls: Option<Arc<rustls::ClientConfig>>,
    open: Mutex<Vec<Connection>>,
}

#[derive(Clone)]
struct Connection {
    client: NodeServiceClient<SharedHttp2Connection>,
    room: Arc<Semaphore>,
    /// A stream on it ended by an error: no new one is begun there.
    broken: Arc<AtomicBool>,
}

impl Connections {
    /// Opens a stream and talks on it until it ends.
    async fn talk(
        &self,
        hello: Hello,
        saying: mpsc::Receiver<Said>,
        (agent, number): (AgentNumber, u64),
        telling: mpsc::Sender<Heard>,
    ) -> Loss {
        let (connection, _seat) = match self.seat().await {
            Ok(seat) => seat,
            Err(loss) => return loss,
        };
        let envelope = |told| (agent, number, told);
        let talking = converse(&connection.client, hello, saying, &telling, envelope, || {});
        match talking.await {
            Parted::Closed(loss) => loss,
            Parted::Broken { error, heard } => {
                connection.broken.store(true, Ordering::Relaxed);
                loss(&error, heard, sentence(&error))
            }
        }
    }

    /// A place on a connection that has room, or on a new one.
    async fn seat(&self) -> Result<(Connection, OwnedSemaphorePermit), Loss> {
        // Held while connecting: of a thousand who come at once, sixty share each connection.
        let mut open = self.open.lock().await;
        open.retain(|connection| !connection.broken.load(Ordering::Relaxed));
        for connection in open.iter() {
            if let Ok(seat) = connection.room.clone().try_acquire_owned() {
                return Ok((connection.clone(), seat));
            }
        }
        let builder = Http2Connection::builder()
            .establishment_timeout(CONNECT_MAX)
            .keep_alive_interval(PING_EVERY)
            .keep_alive_timeout(PING_MAX);
        let connected = match &self.tls {
            Some(tls) => builder.connect_tls(self.uri.clone(), tls.clone()).await,
            None => builder.connect_plaintext(self.uri.clone()).await,
        };
        let http = match connected {
            Ok(http) => http,
            Err(error) => return Err(Loss::Unreachable(sentence(&error))),
        };
        let config = ClientConfig::new(self.uri.clone())
            .with_default_max_message_size(MESSAGE_LEN_MAX)
            .with_protocol(Protocol::Grpc);
        let config = match &self.token {
            Some(token) => config.with_default_header("authorization", format!("Bearer {token}")),
            None => config,
        };
        let connection = Connection {
            client: NodeServiceClient::new(http.shared(STREAMS_PER_CONNECTION), config),
            room: Arc::new(Semaphore::new(STREAMS_PER_CONNECTION)),
            broken: Arc::default(),
        };
        let seat = connection.room.clone().try_acquire_owned();
        open.push(connection.clone());
        let full = |_| Loss::Unreachable("a connection without room".to_owned());
        Ok((connection, seat.map_err(full)?))
    }
}
