//! An engine that forgets: for simulation, tests, and as the model the others are compared with.

use crate::engine::{
    Change, Changes, Commit, Document, Engine, Entry, EntryQuery, Error, Key, Lease, Outcome,
    Retention, Revision,
};
use crate::plan::{self, Known, Touched};
use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt;
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// What an engine asks the time, for leases.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// All in one map, gone with the process.
pub struct Memory {
    clock: Clock,
    state: Mutex<State>,
}

#[derive(Clone, Default)]
struct State {
    head: Revision,
    documents: BTreeMap<Key, (Revision, Arc<str>)>,
    /// Those after `floor`, without holes.
    changes: VecDeque<Change>,
    floor: Revision,
    heads: BTreeMap<String, (u64, String)>,
    entries: HashMap<String, VecDeque<Entry>>,
    leases: HashMap<String, Held>,
}

#[derive(Clone)]
struct Held {
    holder: String,
    epoch: u64,
    until: Timestamp,
}

impl Memory {
    /// An empty one; leases go by the system's clock.
    pub fn new() -> Self {
        Self::with_clock(system_clock())
    }

    /// An empty one; leases go by this clock.
    pub fn with_clock(clock: Clock) -> Self {
        Self { clock, state: Mutex::default() }
    }

    /// Another engine with what this one has now, like a replica that hears of nothing more.
    #[must_use]
    pub fn copy(&self) -> Self {
        Self { clock: self.clock.clone(), state: Mutex::new(self.state().clone()) }
    }

    /// Has what a replica has, and nothing of what that missed: a database that failed over and lost commits,
    /// below processes that go on.
    pub fn fail_over_to(&self, replica: &Memory) {
        let kept = replica.state().clone();
        *self.state() = kept;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Memory {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory").field("head", &self.state().head).finish_non_exhaustive()
    }
}

/// Goes on evenly from what the machine's clock shows now: whoever sets that takes nobody's lease away.
pub(crate) fn system_clock() -> Clock {
    #[expect(
        clippy::disallowed_methods,
        reason = "leases go by the engine's own clock, and this is where it comes from"
    )]
    let (began, origin) = (Timestamp::now(), Instant::now());
    Arc::new(move || began.saturating_add(origin.elapsed()).unwrap_or(Timestamp::MAX))
}

#[async_trait]
impl Engine for Memory {
    async fn head(&self) -> Result<Revision, Error> {
        Ok(self.state().head)
    }

    async fn scan(&self, after: Option<&Key>, limit: usize) -> Result<Vec<Document>, Error> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let state = self.state();
        let documents = state.documents.range((from, Bound::Unbounded)).take(limit);
        Ok(documents
            .map(|(key, (revision, body))| Document {
                key: key.clone(),
                revision: *revision,
                body: body.clone(),
            })
            .collect())
    }

    async fn commit(&self, batch: Vec<Commit>) -> Result<Vec<Outcome>, Error> {
        let now = (self.clock)();
        let mut state = self.state();
        let known = state.known(&Touched::by(&batch), now);
        let plan = plan::plan(batch, known);
        state.head = plan.head;
        for (key, written) in plan.documents {
            match written {
                Some(document) => state.documents.insert(key, document),
                None => state.documents.remove(&key),
            };
        }
        state.changes.extend(plan.changes);
        for (stream, entry) in plan.entries {
            state.entries.entry(stream).or_default().push_back(entry);
        }
        state.heads.extend(plan.streams);
        Ok(plan.outcomes)
    }

    async fn changes(&self, after: Revision, limit: usize) -> Result<Changes, Error> {
        let state = self.state();
        if after < state.floor || state.head < after {
            return Ok(Changes::Gone(state.floor));
        }
        let from = state.changes.partition_point(|change| change.revision <= after);
        Ok(Changes::Page(state.changes.iter().skip(from).take(limit).cloned().collect()))
    }

    async fn entries(&self, query: &EntryQuery) -> Result<Vec<Entry>, Error> {
        let state = self.state();
        let entries = state.entries.get(&query.stream).into_iter().flatten().filter(|entry| {
            let wanted = query.subject.as_ref().is_none_or(|subject| *subject == entry.subject);
            let past = query.cursor.is_none_or(|cursor| match query.newest_first {
                true => entry.sequence < cursor,
                false => cursor < entry.sequence,
            });
            wanted && past
        });
        Ok(match query.newest_first {
            true => entries.rev().take(query.limit).cloned().collect(),
            false => entries.take(query.limit).cloned().collect(),
        })
    }

    async fn stream_head(&self, stream: &str) -> Result<Option<(u64, String)>, Error> {
        Ok(self.state().heads.get(stream).cloned())
    }

    async fn lease(
        &self,
        name: &str,
        holder: &str,
        ttl: SignedDuration,
    ) -> Result<Option<Lease>, Error> {
        let now = (self.clock)();
        let mut state = self.state();
        let epoch = match state.leases.get(name) {
            None => 1,
            Some(held) if held.until <= now => held.epoch + 1,
            Some(held) if held.holder == holder => held.epoch,
            Some(_) => return Ok(None),
        };
        let until = now.checked_add(ttl).unwrap_or(Timestamp::MAX);
        state.leases.insert(name.to_string(), Held { holder: holder.to_string(), epoch, until });
        Ok(Some(Lease { epoch }))
    }

    async fn trim(&self, retention: &Retention) -> Result<(), Error> {
        let mut state = self.state();
        let floor = Revision(state.head.0.saturating_sub(retention.changes_kept));
        if state.floor < floor {
            state.floor = floor;
            let dropped = state.changes.partition_point(|change| change.revision <= floor);
            state.changes.drain(..dropped);
        }
        for rule in &retention.streams {
            let Some(entries) = state.entries.get_mut(&rule.stream) else { continue };
            let many = entries
                .len()
                .saturating_sub(usize::try_from(rule.entries_kept).unwrap_or(usize::MAX));
            let old = entries.iter().take_while(|entry| entry.at < rule.before).count();
            entries.drain(..many.max(old));
        }
        Ok(())
    }

    async fn foreign_commit(&self) {
        std::future::pending().await
    }
}

impl State {
    fn known(&self, touched: &Touched<'_>, now: Timestamp) -> Known {
        let revision = |key: &&Key| Some(((*key).clone(), self.documents.get(*key)?.0));
        let epoch = |name: &&str| {
            let held = self.leases.get(*name).filter(|held| now < held.until)?;
            Some(((*name).to_string(), held.epoch))
        };
        let stream = |name: &&str| Some(((*name).to_string(), self.heads.get(*name)?.clone()));
        Known {
            head: self.head,
            revisions: touched.keys.iter().filter_map(revision).collect(),
            epochs: touched.leases.iter().filter_map(epoch).collect(),
            streams: touched.streams.iter().filter_map(stream).collect(),
        }
    }
}
