//! An engine that can be told to misbehave, around one that does not.

use argosy_control::clock::Clock;
use argosy_store::engine::{
    Changes, Commit, Document, Engine, Entry, EntryQuery, Error, Key, Lease, Outcome, Retention,
    Revision,
};
use argosy_store::memory::Memory;
use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tokio::sync::watch;

type Tamper = Box<dyn Fn(&mut Vec<Entry>) + Send + Sync>;

pub(crate) struct Rig {
    memory: Arc<Memory>,
    /// Commits that the engine accepted.
    pub(crate) accepted: AtomicU64,
    /// The next batch is written, and its answer lost.
    pub(crate) lose_answer: AtomicBool,
    /// Nothing is written.
    refusing: AtomicBool,
    /// The process is stopped right after the next batch is written.
    pub(crate) freeze_next: AtomicBool,
    /// The feed cannot be read.
    pub(crate) deaf: AtomicBool,
    /// What became of commits since somebody asked.
    pub(crate) outcomes: Mutex<Vec<Outcome>>,
    tamper: Mutex<Option<Tamper>>,
    frozen: watch::Sender<bool>,
    /// The clock that all processes share, if there is more than one.
    pub(crate) shared: Mutex<Option<Clock>>,
    /// Whoever writes waits; everything else goes on.
    pub(crate) stalled: watch::Sender<bool>,
}

impl Rig {
    pub(crate) fn new(memory: Arc<Memory>) -> Self {
        Self {
            memory,
            accepted: AtomicU64::new(0),
            lose_answer: AtomicBool::new(false),
            refusing: AtomicBool::new(false),
            freeze_next: AtomicBool::new(false),
            deaf: AtomicBool::new(false),
            outcomes: Mutex::default(),
            tamper: Mutex::default(),
            frozen: watch::channel(false).0,
            shared: Mutex::default(),
            stalled: watch::channel(false).0,
        }
    }

    /// Whoever calls now waits until it is thawed: the process is stopped.
    pub(crate) fn freeze(&self, frozen: bool) {
        self.frozen.send_replace(frozen);
    }

    /// Commits fail, or do no longer.
    pub(crate) fn refuse(&self, refuse: bool) {
        self.refusing.store(refuse, Ordering::SeqCst);
    }

    pub(crate) fn tamper(&self, change: impl Fn(&mut Vec<Entry>) + Send + Sync + 'static) {
        *self.tamper.lock().unwrap() = Some(Box::new(change));
    }

    async fn thawed(&self) {
        self.frozen.subscribe().wait_for(|frozen| !frozen).await.unwrap();
    }
}

#[async_trait]
impl Engine for Rig {
    async fn head(&self) -> Result<Revision, Error> {
        self.memory.head().await
    }

    async fn scan(&self, after: Option<&Key>, limit: usize) -> Result<Vec<Document>, Error> {
        self.memory.scan(after, limit).await
    }

    async fn commit(&self, batch: Vec<Commit>) -> Result<Vec<Outcome>, Error> {
        self.thawed().await;
        self.stalled.subscribe().wait_for(|stalled| !stalled).await.unwrap();
        if self.refusing.load(Ordering::SeqCst) {
            return Err(Error::Unavailable("the connection is broken".to_owned()));
        }
        let outcomes = self.memory.commit(batch).await?;
        let accepted = outcomes.iter().filter(|o| matches!(o, Outcome::Committed(_))).count();
        self.accepted.fetch_add(accepted as u64, Ordering::SeqCst);
        self.outcomes.lock().unwrap().extend(outcomes.iter().cloned());
        if self.freeze_next.swap(false, Ordering::SeqCst) {
            self.freeze(true);
        }
        if self.lose_answer.swap(false, Ordering::SeqCst) {
            return Err(Error::Unavailable("the connection broke".to_owned()));
        }
        Ok(outcomes)
    }

    async fn changes(&self, after: Revision, limit: usize) -> Result<Changes, Error> {
        self.thawed().await;
        if self.deaf.load(Ordering::SeqCst) {
            return Err(Error::Unavailable("the connection is broken".to_owned()));
        }
        self.memory.changes(after, limit).await
    }

    async fn entries(&self, query: &EntryQuery) -> Result<Vec<Entry>, Error> {
        let mut entries = self.memory.entries(query).await?;
        if let Some(tamper) = &*self.tamper.lock().unwrap() {
            tamper(&mut entries);
        }
        Ok(entries)
    }

    async fn stream_head(&self, stream: &str) -> Result<Option<(u64, String)>, Error> {
        self.memory.stream_head(stream).await
    }

    async fn lease(
        &self,
        name: &str,
        holder: &str,
        ttl: SignedDuration,
    ) -> Result<Option<Lease>, Error> {
        self.thawed().await;
        self.memory.lease(name, holder, ttl).await
    }

    async fn time(&self) -> Result<Option<Timestamp>, Error> {
        Ok(self.shared.lock().unwrap().map(|clock| clock.now()))
    }

    async fn trim(&self, retention: &Retention) -> Result<(), Error> {
        self.memory.trim(retention).await
    }

    async fn foreign_commit(&self) {
        self.memory.foreign_commit().await;
    }
}
