//! The engine for several processes: PostgreSQL, which alone decides.
//!
//! Revisions are given out under one advisory lock per batch, held until the transaction is visible
//! to others. That is what keeps the feed without holes: a number taken from a sequence can become
//! visible after a larger one, and whoever follows the feed would miss it.

mod fault;
mod link;
mod schema;
mod sql;
mod tls;

use argosy_store::engine::{
    Changes, Commit, Document, Engine, Entry, EntryQuery, Error, Key, Lease, Outcome, Retention,
    Revision,
};
use async_trait::async_trait;
use fault::Fault;
use jiff::{SignedDuration, Timestamp};
use link::{Connector, Link, Role, Session};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::{Mutex, Notify};
use tokio::task::JoinSet;
use tokio::time::timeout;

/// How long a call waits for a connection, or for its turn to commit.
///
/// Long enough for a restart of the server to pass unnoticed, short enough for a client to be told
/// to come back before it gives up by itself.
const WAIT_MAX: Duration = Duration::from_secs(2);

/// How long the server may work on one statement.
const STATEMENT_MAX: Duration = Duration::from_secs(5);

/// How long we wait for an answer: a little longer than the server may take, which is reached
/// only when nobody is there to say that it took too long.
const ANSWER_MAX: Duration = Duration::from_secs(6);

/// How often to look for commits of other processes when no notification arrives.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// A store in a PostgreSQL database, shared with other processes.
pub struct Postgres {
    writer: Link,
    // One transaction at a time on the writer's connection.
    turn: Mutex<()>,
    readers: [Link; 2],
    next_reader: AtomicUsize,
    // Nobody asks it anything; it says when to look.
    _listener: Link,
    foreign: Arc<Notify>,
    // Keeps the connections going; they end with the engine.
    _links: JoinSet<()>,
}

impl Postgres {
    /// Connects to `postgres://user:password@host/database`, and brings the tables up to date.
    ///
    /// Afterwards connections that break are made again in the background. With `sslmode=require`
    /// the server's certificate is checked against those the system trusts.
    ///
    /// # Errors
    /// `Unavailable` if the server cannot be reached, `Refused` if it does not let us in, or if the
    /// tables are from a newer build.
    pub async fn connect(url: &str) -> Result<Self, Error> {
        let foreign = Arc::new(Notify::new());
        let mut connector = Connector::new(url, foreign.clone())?;
        connector.process = connector.once(schema::migrate).await?;
        let connector = Arc::new(connector);
        let mut links = JoinSet::new();
        let mut link = |role| Link::start(role, connector.clone(), &mut links);
        let (writer, readers) = (link(Role::Write), [link(Role::Read), link(Role::Read)]);
        let _listener = link(Role::Listen);
        let (turn, next_reader) = (Mutex::new(()), AtomicUsize::new(0));
        Ok(Self { writer, turn, readers, next_reader, _listener, foreign, _links: links })
    }

    /// One statement that needs no transaction around it.
    async fn ask<T>(
        &self,
        question: impl AsyncFnOnce(&Session) -> Result<T, Fault>,
    ) -> Result<T, Error> {
        let turn = self.next_reader.fetch_add(1, Ordering::Relaxed);
        let [first, second] = &self.readers;
        let reader = if turn.is_multiple_of(2) { first } else { second };
        let session = reader.session().await?;
        match timeout(ANSWER_MAX, question(&session)).await {
            Ok(answer) => answer.map_err(fault::meaning),
            Err(_) => {
                session.close();
                Err(fault::silent())
            }
        }
    }
}

impl std::fmt::Debug for Postgres {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Postgres").finish_non_exhaustive()
    }
}

#[async_trait]
impl Engine for Postgres {
    async fn head(&self) -> Result<Revision, Error> {
        self.ask(sql::head).await
    }

    async fn scan(&self, after: Option<&Key>, limit: usize) -> Result<Vec<Document>, Error> {
        self.ask(async |session| sql::scan(session, after, limit).await).await
    }

    async fn commit(&self, batch: Vec<Commit>) -> Result<Vec<Outcome>, Error> {
        let busy = |_| Error::Unavailable("commits before this one still wait".to_string());
        let _turn = timeout(WAIT_MAX, self.turn.lock()).await.map_err(busy)?;
        let session = self.writer.session().await?;
        // Whatever ends this early, a cancelled caller included, may leave a transaction open.
        let unfinished = CloseOnDrop(Some(&session));
        let outcomes = timeout(ANSWER_MAX, sql::commit(&session, batch))
            .await
            .map_err(|_| fault::silent())?
            .map_err(fault::meaning)?;
        unfinished.disarm();
        Ok(outcomes)
    }

    async fn changes(&self, after: Revision, limit: usize) -> Result<Changes, Error> {
        self.ask(async |session| sql::changes(session, after, limit).await).await
    }

    async fn entries(&self, query: &EntryQuery) -> Result<Vec<Entry>, Error> {
        self.ask(async |session| sql::entries(session, query).await).await
    }

    async fn stream_head(&self, stream: &str) -> Result<Option<(u64, String)>, Error> {
        self.ask(async |session| sql::stream_head(session, stream).await).await
    }

    async fn lease(
        &self,
        name: &str,
        holder: &str,
        ttl: SignedDuration,
    ) -> Result<Option<Lease>, Error> {
        self.ask(async |session| sql::lease(session, name, holder, ttl).await).await
    }

    async fn time(&self) -> Result<Option<Timestamp>, Error> {
        self.ask(async |session| sql::now(session).await).await.map(Some)
    }

    async fn trim(&self, retention: &Retention) -> Result<(), Error> {
        self.ask(async |session| sql::trim(session, retention).await).await
    }

    async fn foreign_commit(&self) {
        // A notification is only a hint: one that was lost is made up for by looking.
        let _ = timeout(LOOK_EVERY, self.foreign.notified()).await;
    }
}

struct CloseOnDrop<'a>(Option<&'a Session>);

impl CloseOnDrop<'_> {
    fn disarm(mut self) {
        self.0 = None;
    }
}

impl Drop for CloseOnDrop<'_> {
    fn drop(&mut self) {
        if let Some(session) = self.0 {
            session.close();
        }
    }
}

/// Makes an empty database, for tests.
#[cfg(any(test, feature = "testing"))]
pub(crate) async fn create_database(url: &str, name: &str) -> Result<(), Error> {
    let connector = Connector::new(url, Arc::default())?;
    let create = async |client: &tokio_postgres::Client| {
        // One of the same name is from a process that is gone.
        for sql in ["DROP DATABASE IF EXISTS", "CREATE DATABASE"] {
            client.batch_execute(&format!("{sql} {name}")).await.map_err(fault::meaning)?;
        }
        Ok(())
    };
    connector.once(create).await
}

#[cfg(test)]
mod tests;
