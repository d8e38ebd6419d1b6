//! One connection that comes back by itself.

use super::sql::Statements;
use super::{STATEMENT_MAX, WAIT_MAX, fault, tls};
use argosy_core::backoff;
use argosy_store::engine::Error;
use jiff::SignedDuration;
use std::future::poll_fn;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::{AsyncMessage, Client, Config, Connection, Socket};
use tokio_postgres_rustls::MakeRustlsConnect;
use tracing::{info, warn};

/// The first wait after a failure, which doubles up to `RETRY_MAX`.
const RETRY_FIRST: SignedDuration = SignedDuration::from_millis(50);

/// Serving again soon after the server is back matters more than sparing one that is away.
const RETRY_MAX: SignedDuration = SignedDuration::from_secs(2);

/// Every statement of ours goes by key. The server keeps the plans of a connection, and one made
/// while a table was empty would read all of it, every time, once it is large.
const BY_KEY: &str = "-c enable_seqscan=off -c enable_bitmapscan=off -c enable_hashjoin=off \
                      -c enable_mergejoin=off -c jit=off";

/// The channel on which processes tell each other that they committed.
pub(super) const CHANNEL: &str = "argosy_commit";

type Driver = Connection<Socket, <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream>;

/// Knows how to connect, and what to do with what arrives unasked.
pub(super) struct Connector {
    config: Config,
    tls: MakeRustlsConnect,
    /// Told when another process may have committed.
    foreign: Arc<Notify>,
    /// Which notifications are our own.
    pub(super) process: String,
}

impl Connector {
    pub(super) fn new(url: &str, foreign: Arc<Notify>) -> Result<Self, Error> {
        let mut config = Config::from_str(url).map_err(|error| {
            Error::Refused(format!("--store is not a PostgreSQL URL that can be used: {error}"))
        })?;
        let limit = STATEMENT_MAX.as_millis();
        let own = config.get_options().unwrap_or_default().to_string();
        config
            .application_name("argosy")
            .connect_timeout(WAIT_MAX)
            .keepalives_idle(Duration::from_secs(10))
            .tcp_user_timeout(Duration::from_secs(10))
            .options(format!(
                "-c statement_timeout={limit} -c idle_in_transaction_session_timeout={limit} \
                 -c synchronous_commit=on {BY_KEY} {own}"
            ));
        let tls = tls::connector(config.get_ssl_mode())?;
        Ok(Self { config, tls, foreign, process: String::new() })
    }

    async fn connect(&self) -> Result<(Client, Driver), Error> {
        match timeout(WAIT_MAX, self.config.connect(self.tls.clone())).await {
            Ok(connected) => connected.map_err(|error| fault::not_connected(&error)),
            Err(_) => Err(fault::silent()),
        }
    }

    /// Uses a connection for one purpose.
    pub(super) async fn once<T>(
        &self,
        work: impl AsyncFnOnce(&Client) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let (client, driver) = self.connect().await?;
        tokio::select! {
            done = work(&client) => done,
            broken = driver => match broken {
                Ok(()) => Err(Error::Unavailable("the connection was closed".to_string())),
                Err(error) => Err(fault::meaning(error)),
            }
        }
    }
}

/// A connection that is up, with its statements prepared.
pub(super) struct Session {
    pub(super) client: Client,
    pub(super) statements: Statements,
    pub(super) process: String,
    closing: AtomicBool,
    closed: Notify,
}

impl Session {
    /// Gives up the connection, whatever it is doing; a new one is made.
    pub(super) fn close(&self) {
        self.closing.store(true, Ordering::Release);
        self.closed.notify_one();
    }
}

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Write,
    Read,
    Listen,
}

#[derive(Clone)]
enum State {
    Up(Arc<Session>),
    Down(Error),
}

/// A place for one session.
pub(super) struct Link(watch::Receiver<State>);

impl Link {
    pub(super) fn start(role: Role, by: Arc<Connector>, tasks: &mut JoinSet<()>) -> Self {
        let first = Error::Unavailable("not connected yet".to_string());
        let (state, watched) = watch::channel(State::Down(first));
        tasks.spawn(keep(role, by, state));
        Self(watched)
    }

    /// The session; waits a moment for it to come back.
    pub(super) async fn session(&self) -> Result<Arc<Session>, Error> {
        let mut state = self.0.clone();
        // Fails only if it takes too long: then the state says why.
        let _ = timeout(WAIT_MAX, state.wait_for(State::is_usable)).await;
        match self.0.borrow().clone() {
            State::Up(session) => Ok(session),
            // We were let in before, so it may pass: no reason to stop the process.
            State::Down(Error::Refused(text)) => Err(Error::Unavailable(text)),
            State::Down(error) => Err(error),
        }
    }
}

impl State {
    fn is_usable(&self) -> bool {
        match self {
            Self::Up(session) => !session.closing.load(Ordering::Acquire),
            Self::Down(_) => false,
        }
    }
}

/// Connects, again and again.
async fn keep(role: Role, by: Arc<Connector>, state: watch::Sender<State>) {
    // Not all processes at once when the server comes back.
    let who = format!("{role:?} {}", by.process);
    let mut failures = 0;
    loop {
        let error = match by.connect().await {
            Ok((client, driver)) => {
                if 0 < failures {
                    info!(connection = ?role, failures, "connected to the database again");
                }
                failures = 0;
                serve(role, &by, client, driver, &state).await
            }
            Err(error) => error,
        };
        failures += 1;
        if failures == 1 {
            warn!(connection = ?role, %error, "lost the database; connecting again");
        }
        state.send_replace(State::Down(error));
        let wait = backoff::delay(&who, failures, RETRY_FIRST, RETRY_MAX);
        tokio::time::sleep(wait.unsigned_abs()).await;
    }
}

/// Hands the session out until its connection ends; answers with the reason.
async fn serve(
    role: Role,
    by: &Connector,
    client: Client,
    mut driver: Driver,
    state: &watch::Sender<State>,
) -> Error {
    let prepare = async {
        if role == Role::Listen {
            client.batch_execute(&format!("LISTEN {CHANNEL}")).await?;
        }
        Statements::prepare(&client).await
    };
    let statements = tokio::select! {
        prepared = timeout(STATEMENT_MAX, prepare) => match prepared {
            Ok(Ok(statements)) => statements,
            Ok(Err(error)) => return fault::meaning(error),
            Err(_) => return fault::silent(),
        },
        error = drive(by, &mut driver) => return error,
    };
    let session = Arc::new(Session {
        client,
        statements,
        process: by.process.clone(),
        closing: AtomicBool::new(false),
        closed: Notify::new(),
    });
    if role == Role::Listen {
        // Commits may have gone unnoticed while nobody listened.
        by.foreign.notify_one();
    }
    state.send_replace(State::Up(session.clone()));
    tokio::select! {
        () = session.closed.notified() => {
            Error::Unavailable("the connection was given up after a failure".to_string())
        }
        error = drive(by, &mut driver) => error,
    }
}

async fn drive(by: &Connector, driver: &mut Driver) -> Error {
    loop {
        match poll_fn(|context| driver.poll_message(context)).await {
            Some(Ok(AsyncMessage::Notification(sent))) if sent.payload() != by.process => {
                by.foreign.notify_one();
            }
            Some(Ok(_)) => {}
            Some(Err(error)) => return fault::meaning(error),
            None => return Error::Unavailable("the connection was closed".to_string()),
        }
    }
}
