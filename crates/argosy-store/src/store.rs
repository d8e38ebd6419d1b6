//! The one corridor: every change of anything goes through `Store::commit`.

use crate::engine::{
    Append, Change, Changes, Commit, Engine, Entry, EntryQuery, Error, Expect, Fence, Key, Lease,
    Outcome, Put, Retention, Revision,
};
use crate::entity::{Decoded, Entity, Keep, decode, write};
use crate::failpoint;
use crate::latest::{Follower, Latest};
use crate::view::{DocumentChange, Event, ResourceChange, Stored, View};
use argosy_core::command::Command;
use argosy_core::id::ResourceId;
use argosy_core::instance::Instance;
use argosy_core::inventory::{Orphan, ProviderBook};
use argosy_core::node::Node;
use argosy_core::policy::Policy;
use argosy_core::pool::PoolBook;
use argosy_core::resource::Resource;
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tracing::{error, warn};

/// How many commits may wait for the committer. Each waiter is a request in flight, so a longer queue
/// would only hide that the disk is slower than the clients.
const QUEUE_MAX: usize = 1024;

/// How many commits are written together. Larger batches win nothing once the fsync is shared by
/// hundreds, and make the first of them wait.
const BATCH_MAX: usize = 512;

/// How many events are kept in memory for watchers that are a little behind; older ones are read
/// back from the engine. Each holds up to two versions of a resource.
const RECENT_MAX: usize = 1024;

/// How many documents or changes are read from the engine at a time.
const PAGE: usize = 1000;

/// How often the driver looks for foreign commits without being woken. A lost wake-up makes this
/// process this much behind; looking costs the engine one small query.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The store. Cheap to clone.
#[derive(Clone)]
pub struct Store {
    shared: Arc<Shared>,
    queue: mpsc::Sender<Waiting>,
}

struct Shared {
    engine: Arc<dyn Engine>,
    memory: RwLock<Memory>,
    revision: Latest,
    trouble: Mutex<Option<String>>,
    /// When the last commit was made that there was at the opening.
    opened_at: Option<Timestamp>,
}

#[derive(Default)]
struct Memory {
    view: View,
    recent: VecDeque<Arc<Event>>,
}

struct Waiting {
    txn: Txn,
    reply: oneshot::Sender<Result<Revision, Error>>,
}

/// What is to be committed, all or nothing.
#[derive(Debug, Default)]
pub struct Txn {
    commit: Commit,
    decoded: Vec<Decoded>,
}

impl Txn {
    /// An empty transaction, made at a time.
    pub fn at(at: Timestamp) -> Self {
        Self { commit: Commit { at, ..Commit::default() }, decoded: Vec::new() }
    }

    /// Whether it would change nothing.
    pub fn is_empty(&self) -> bool {
        self.decoded.is_empty() && self.commit.appends.is_empty()
    }

    /// Writes a document that must not exist yet.
    pub fn create<E: Stores>(&mut self, entity: Arc<E>) {
        self.put(entity, Expect::Absent);
    }

    /// Writes a document that must still be at a revision.
    pub fn update<E: Stores>(&mut self, entity: Arc<E>, from: Revision) {
        self.put(entity, Expect::At(from));
    }

    /// Writes a document whatever is there.
    pub fn overwrite<E: Stores>(&mut self, entity: Arc<E>) {
        self.put(entity, Expect::Any);
    }

    /// Removes a document that must still be at a revision.
    pub fn remove<E: Entity>(&mut self, entity: &E, from: Revision) {
        self.take_away(entity, Expect::At(from));
    }

    /// Removes a document if it is there.
    pub fn discard<E: Entity>(&mut self, entity: &E) {
        self.take_away(entity, Expect::Any);
    }

    /// Makes the transaction depend on a document it does not write.
    pub fn check<E: Entity>(&mut self, entity: &E, at: Revision) {
        self.commit.checks.push((key_of(entity), Expect::At(at)));
    }

    /// Makes the transaction depend on a document not being there; only its key matters.
    pub fn absent<E: Entity>(&mut self, entity: &E) {
        self.commit.checks.push((key_of(entity), Expect::Absent));
    }

    /// Adds an entry to a stream.
    pub fn append(&mut self, stream: &str, subject: &str, entry: &impl Serialize) {
        let body = serde_json::to_string(entry)
            .expect("our entries have string keys and finite numbers")
            .into();
        self.commit.appends.push(Append { stream: stream.into(), subject: subject.into(), body });
    }

    /// Makes the transaction valid only while a lease is held.
    pub fn fence(&mut self, fence: Fence) {
        self.commit.fence = Some(fence);
    }

    fn put<E: Stores>(&mut self, entity: Arc<E>, expect: Expect) {
        let key = key_of(&*entity);
        self.commit.puts.push(Put { key, expect, body: Some(write(&*entity)) });
        self.decoded.push(entity.decoded());
    }

    fn take_away<E: Entity>(&mut self, entity: &E, expect: Expect) {
        self.commit.puts.push(Put { key: key_of(entity), expect, body: None });
        self.decoded.push(Decoded::Gone);
    }
}

/// What a transaction can write: the entities the view knows.
#[expect(private_bounds, reason = "the set of entities is closed")]
pub trait Stores: Keep {}

impl<E: Keep> Stores for E {}

fn key_of<E: Entity>(entity: &E) -> Key {
    Key::new(E::KIND, entity.key_id())
}

impl Store {
    /// Loads everything into memory. The driver must run for commits to happen; the store works for
    /// as long as it does.
    ///
    /// # Errors
    /// What the engine says, or that a document is damaged or from a newer build.
    pub async fn open(engine: Arc<dyn Engine>) -> Result<(Store, Driver), Error> {
        let view = load(&*engine).await?;
        let revision = Latest::new(view.revision());
        let memory = RwLock::new(Memory { view, recent: VecDeque::new() });
        let opened_at = last_commit(&*engine, revision.get()).await?;
        let trouble = Mutex::default();
        let shared = Arc::new(Shared { engine, memory, revision, trouble, opened_at });
        let (queue, waiting) = mpsc::channel(QUEUE_MAX);
        Ok((Store { shared: shared.clone(), queue }, Driver { shared, waiting }))
    }

    /// Commits. When it returns, the change is durable and every read sees it.
    ///
    /// # Errors
    /// `Conflict` and `Fenced` mean that nothing was written; so does `Full`. After `Unavailable` it
    /// is not known.
    pub async fn commit(&self, txn: Txn) -> Result<Revision, Error> {
        let (reply, answer) = oneshot::channel();
        let stopped = || Error::Unavailable("the store has stopped".to_owned());
        self.queue.send(Waiting { txn, reply }).await.map_err(|_| stopped())?;
        answer.await.map_err(|_| stopped())?
    }

    /// Reads. Hold it briefly: commits wait for readers.
    pub fn read<R>(&self, look: impl FnOnce(&View) -> R) -> R {
        let memory = self.shared.memory.read().unwrap_or_else(PoisonError::into_inner);
        look(&memory.view)
    }

    /// Why the engine could not be reached when the driver last looked; `None` if it could. Costs
    /// nothing: the driver looks by itself.
    pub fn trouble(&self) -> Option<String> {
        self.shared.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// When the last commit was made that the store had as it was opened, by its writer's clock; `None` if the
    /// feed does not have it any more.
    pub fn opened_at(&self) -> Option<Timestamp> {
        self.shared.opened_at
    }

    /// Tells when there is something new to see.
    pub fn subscribe(&self) -> Follower {
        self.shared.revision.follow()
    }

    /// The events after a revision, at most a page; empty if there are none yet.
    ///
    /// # Errors
    /// `Ok(Err(oldest))`: the revision is no longer retained, or was never given.
    pub async fn events(
        &self,
        after: Revision,
    ) -> Result<Result<Vec<Arc<Event>>, Revision>, Error> {
        if let Some(events) = self.recent_events(after) {
            return Ok(Ok(events));
        }
        match self.shared.engine.changes(after, PAGE).await? {
            Changes::Gone(oldest) => Ok(Err(oldest)),
            Changes::Page(changes) => {
                changes.iter().map(replayed).collect::<Result<Vec<_>, _>>().map(Ok)
            }
        }
    }

    fn recent_events(&self, after: Revision) -> Option<Vec<Arc<Event>>> {
        let memory = self.shared.memory.read().unwrap_or_else(PoisonError::into_inner);
        if memory.view.revision() == after {
            return Some(Vec::new());
        }
        // Only the engine can tell a revision that we have not seen yet from one that never was.
        if memory.view.revision() < after {
            return None;
        }
        let oldest = memory.recent.front()?.revision;
        // Revisions have no holes, so the distance is the place.
        let skip = usize::try_from(after.next().0.checked_sub(oldest.0)?).ok()?;
        Some(memory.recent.iter().skip(skip).take(PAGE).cloned().collect())
    }

    /// Entries of a stream.
    pub async fn entries(&self, query: &EntryQuery) -> Result<Vec<Entry>, Error> {
        self.shared.engine.entries(query).await
    }

    /// The end of a stream, as the engine remembers it apart from the entries.
    pub async fn stream_head(&self, stream: &str) -> Result<Option<(u64, String)>, Error> {
        self.shared.engine.stream_head(stream).await
    }

    /// Takes or renews a lease.
    pub async fn lease(
        &self,
        name: &str,
        holder: &str,
        ttl: SignedDuration,
    ) -> Result<Option<Lease>, Error> {
        self.shared.engine.lease(name, holder, ttl).await
    }

    /// What time it is by the clock that all processes share; `None` where there is no other process.
    pub async fn time(&self) -> Result<Option<Timestamp>, Error> {
        self.shared.engine.time().await
    }

    /// Forgets what the retention allows.
    pub async fn trim(&self, retention: &Retention) -> Result<(), Error> {
        self.shared.engine.trim(retention).await
    }
}

/// The committer, and the reader of what other processes commit.
pub struct Driver {
    shared: Arc<Shared>,
    waiting: mpsc::Receiver<Waiting>,
}

impl Driver {
    /// Runs until the last `Store` is gone.
    ///
    /// # Errors
    /// When what the engine hands out cannot be understood: the view could no longer be trusted. And
    /// when the engine is finished: the process must be started again.
    pub async fn run(mut self) -> Result<(), Error> {
        let engine = self.shared.engine.clone();
        loop {
            // In this order, so that a stream of wake-ups cannot keep commits waiting.
            tokio::select! {
                biased;
                first = self.waiting.recv() => match first {
                    Some(first) => self.commit_batch(first).await?,
                    None => return Ok(()),
                },
                () = engine.finished() => {
                    let cause = "nothing more can be written after a failure";
                    return Err(Error::Unavailable(cause.to_owned()));
                }
                () = engine.foreign_commit() => self.catch_up().await?,
                () = tokio::time::sleep(LOOK_EVERY) => self.catch_up().await?,
            }
        }
    }

    async fn commit_batch(&mut self, first: Waiting) -> Result<(), Error> {
        let mut batch = vec![first];
        while batch.len() < BATCH_MAX
            && let Ok(next) = self.waiting.try_recv()
        {
            batch.push(next);
        }
        let commits = batch.iter().map(|waiting| waiting.txn.commit.clone()).collect();
        match self.shared.engine.commit(commits).await {
            Ok(outcomes) => {
                failpoint::hit("commit.before_view");
                let mine: Vec<_> = batch
                    .iter()
                    .zip(&outcomes)
                    .filter_map(|(waiting, outcome)| match outcome {
                        Outcome::Committed(revision) => Some((*revision, &waiting.txn)),
                        Outcome::Conflict(_) | Outcome::Fenced => None,
                    })
                    .collect();
                // A conflict may be with something that the view has not seen yet.
                let conflict = outcomes.iter().any(|it| matches!(it, Outcome::Conflict(_)));
                if !self.shared.apply_own(&mine) || conflict {
                    self.catch_up().await?;
                }
                failpoint::hit("commit.before_reply");
                for (waiting, outcome) in batch.into_iter().zip(outcomes) {
                    // A client that went away does not want its answer.
                    let _ = waiting.reply.send(match outcome {
                        Outcome::Committed(revision) => Ok(revision),
                        Outcome::Conflict(key) => Err(Error::Conflict(key)),
                        Outcome::Fenced => Err(Error::Fenced),
                    });
                }
            }
            Err(error) => {
                warn!(%error, commits = batch.len(), "could not commit");
                for waiting in batch {
                    let _ = waiting.reply.send(Err(error.clone()));
                }
                // The outcome may be unknown: if it was written after all, the feed has it.
                self.catch_up().await?;
            }
        }
        Ok(())
    }

    async fn catch_up(&self) -> Result<(), Error> {
        let trouble = match self.read_feed().await {
            Ok(()) => None,
            // Out of reach: the next commit or look tries again.
            Err(Error::Unavailable(cause)) => Some(cause),
            Err(error) => return Err(error),
        };
        *self.shared.trouble.lock().unwrap_or_else(PoisonError::into_inner) = trouble;
        Ok(())
    }

    async fn read_feed(&self) -> Result<(), Error> {
        loop {
            let seen = self.shared.revision.get();
            match self.shared.engine.changes(seen, PAGE).await? {
                Changes::Page(changes) if changes.is_empty() => return Ok(()),
                Changes::Page(changes) => self.shared.apply_foreign(&changes)?,
                Changes::Gone(oldest) => {
                    warn!(%seen, %oldest, "fell behind the feed; loading everything again");
                    let view = load(&*self.shared.engine).await?;
                    let head = view.revision();
                    if head < seen {
                        error!(%seen, %head, "the store does not have commits that this process has seen");
                    }
                    self.shared.replace(view);
                }
            }
        }
    }
}

impl Shared {
    /// Takes in our own commits without reading them back; false if others came between.
    fn apply_own(&self, commits: &[(Revision, &Txn)]) -> bool {
        let Some((first, _)) = commits.first() else { return true };
        let mut memory = self.memory.write().unwrap_or_else(PoisonError::into_inner);
        if memory.view.revision().next() != *first {
            return false;
        }
        for (revision, txn) in commits {
            let keys = txn.commit.puts.iter().map(|put| &put.key);
            memory.take_in(*revision, keys.zip(txn.decoded.iter().cloned()));
        }
        self.revision.set(memory.view.revision());
        true
    }

    fn apply_foreign(&self, changes: &[Change]) -> Result<(), Error> {
        let decoded = changes.iter().map(decode_change).collect::<Result<Vec<_>, _>>()?;
        let mut memory = self.memory.write().unwrap_or_else(PoisonError::into_inner);
        for (change, documents) in changes.iter().zip(decoded) {
            // Our own commits may have been taken in meanwhile.
            if change.revision == memory.view.revision().next() {
                let keys = change.documents.iter().map(|document| &document.key);
                memory.take_in(change.revision, keys.zip(documents));
            }
        }
        self.revision.set(memory.view.revision());
        Ok(())
    }

    fn replace(&self, mut view: View) {
        let mut memory = self.memory.write().unwrap_or_else(PoisonError::into_inner);
        view.replaces(&memory.view);
        *memory = Memory { view, recent: VecDeque::new() };
        self.revision.set(memory.view.revision());
    }
}

impl Memory {
    fn take_in<'a>(
        &mut self,
        revision: Revision,
        documents: impl Iterator<Item = (&'a Key, Decoded)>,
    ) {
        let event = self.view.apply(revision, documents);
        if self.recent.len() == RECENT_MAX {
            self.recent.pop_front();
        }
        self.recent.push_back(Arc::new(event));
    }
}

async fn load(engine: &dyn Engine) -> Result<View, Error> {
    // The head first: documents written while we scan are then seen again in the feed.
    let head = engine.head().await?;
    let mut view = View::default();
    let mut after: Option<Key> = None;
    loop {
        let page = engine.scan(after.as_ref(), PAGE).await?;
        for document in &page {
            let decoded = decode(&document.key, &document.body)?;
            view.load(&document.key, document.revision, decoded);
        }
        match page.into_iter().next_back() {
            Some(last) => after = Some(last.key),
            None => break,
        }
    }
    view.loaded(head);
    Ok(view)
}

/// When the commit of a revision was made.
async fn last_commit(engine: &dyn Engine, head: Revision) -> Result<Option<Timestamp>, Error> {
    let Some(before) = head.0.checked_sub(1) else { return Ok(None) };
    match engine.changes(Revision(before), 1).await? {
        Changes::Page(changes) => Ok(changes.first().map(|change| change.at)),
        Changes::Gone(_) => Ok(None),
    }
}

fn decode_change(change: &Change) -> Result<Vec<Decoded>, Error> {
    let documents = change.documents.iter();
    documents
        .map(|document| match &document.body {
            Some(body) => decode(&document.key, body),
            None => Ok(Decoded::Gone),
        })
        .collect()
}

/// A change read back from the engine: what was before is not known.
fn replayed(change: &Change) -> Result<Arc<Event>, Error> {
    let revision = change.revision;
    let mut event = Event::new(revision);
    let mut tombstones = HashMap::new();
    for (document, decoded) in change.documents.iter().zip(decode_change(change)?) {
        let Key { kind, id } = &document.key;
        match decoded {
            Decoded::Tombstone(tombstone) => _ = tombstones.insert(tombstone.id, tombstone),
            Decoded::NameClaim(_)
            | Decoded::IdempotencyKey(_)
            | Decoded::Breaker(_)
            | Decoded::Pause(_)
            | Decoded::Outlook(_)
            | Decoded::Attendance(_)
            | Decoded::Heard(_)
            | Decoded::Condemned(_)
            | Decoded::Installation(_)
            | Decoded::LastDisruption(_)
            | Decoded::Recovery(_) => {}
            Decoded::Resource(value) => event.resources.push(ResourceChange {
                id: value.id,
                before: None,
                after: Some(Stored { value, revision }),
                tombstone: None,
            }),
            Decoded::Node(value) => event.nodes.push(known(id, value, revision)),
            Decoded::Command(value) => event.commands.push(known(id, value, revision)),
            Decoded::Policy(value) => event.policies.push(known(id, value, revision)),
            Decoded::Instance(value) => event.instances.push(known(id, value, revision)),
            Decoded::PoolBook(value) => event.pool_books.push(value.pool),
            Decoded::ProviderBook(value) => event.providers.push(value.name.clone()),
            Decoded::Orphan(value) => event.providers.push(value.provider.clone()),
            Decoded::Gone => {
                match kind.as_str() {
                    Resource::KIND => event.resources.extend(ResourceId::parse(id).map(|id| {
                        ResourceChange { id, before: None, after: None, tombstone: None }
                    })),
                    Node::KIND => event.nodes.push(gone(id)),
                    Command::KIND => event.commands.push(gone(id)),
                    Policy::KIND => event.policies.push(gone(id)),
                    Instance::KIND => event.instances.push(gone(id)),
                    PoolBook::KIND => event.pool_books.extend(ResourceId::parse(id)),
                    ProviderBook::KIND => event.providers.push(id.clone()),
                    Orphan::KIND => {
                        event.providers.extend(id.split_once('/').map(|(name, _)| name.to_owned()));
                    }
                    _ => {}
                }
            }
        }
    }
    event.bury(tombstones);
    Ok(Arc::new(event))
}

fn known<T>(id: &str, value: Arc<T>, revision: Revision) -> DocumentChange<T> {
    let after = Some(Stored { value, revision });
    DocumentChange { id: id.to_owned(), before: None, after }
}

fn gone<T>(id: &str) -> DocumentChange<T> {
    DocumentChange { id: id.to_owned(), before: None, after: None }
}
