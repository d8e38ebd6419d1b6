//! The disk that all processes of a control plane share: slow, away for a while, and silent after the deed.
//!
//! Behind it is the store's own in-memory engine. What a newcomer gets wrong: a failover loses nothing that
//! was acknowledged. Of what was on its way, each batch is there afterwards or is not, and nobody is told
//! which; nobody could have read it before either.

use super::process::Gate;
use super::tape::{Tape, lock};
use crate::dice::Dice;
use crate::scenario;
use argosy_control::clock::Clock;
use argosy_store::engine::{
    Changes, Commit, Document, Engine, Entry, EntryQuery, Error, Key, Lease, Outcome, Retention,
    Revision,
};
use argosy_store::memory::Memory;
use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// How long it takes to notice that the disk is away.
const AWAY_AFTER: Duration = Duration::from_millis(200);

/// What all processes write to.
pub(crate) struct Disk {
    memory: Memory,
    /// What all processes compare their clocks with; nothing where there is one process.
    shared: Option<Clock>,
    tape: Tape,
    state: Mutex<State>,
}

struct State {
    dice: Dice,
    trouble: scenario::Store,
    /// Grows when another copy takes over.
    copy: u64,
    away_until: Option<Instant>,
    written: Vec<(Revision, Commit)>,
    torn: Vec<usize>,
    bells: Vec<(usize, Arc<Notify>)>,
    backup: Option<Arc<Memory>>,
    /// Whether the next process that starts finds a backup that was put in place.
    restored: bool,
}

impl Disk {
    pub(crate) fn new(
        epoch: Timestamp,
        dice: Dice,
        trouble: scenario::Store,
        shared: Option<Clock>,
        tape: Tape,
    ) -> Arc<Self> {
        let origin = super::tape::timer();
        // Leases go by the timer: time that is skipped is not time in which somebody was silent.
        let clock = move || {
            let passed = SignedDuration::try_from(origin.elapsed()).unwrap_or(SignedDuration::MAX);
            epoch.saturating_add(passed).unwrap_or(Timestamp::MAX)
        };
        let state = State {
            dice,
            trouble,
            copy: 0,
            away_until: None,
            written: Vec::new(),
            torn: Vec::new(),
            bells: Vec::new(),
            backup: None,
            restored: false,
        };
        let memory = Memory::with_clock(Arc::new(clock));
        Arc::new(Self { memory, shared, tape, state: Mutex::new(state) })
    }

    /// What was committed since somebody last asked, in order.
    pub(crate) fn written(&self) -> Vec<(Revision, Commit)> {
        std::mem::take(&mut lock(&self.state).written)
    }

    /// Processes that ended in the middle of a batch.
    pub(crate) fn torn(&self) -> Vec<usize> {
        std::mem::take(&mut lock(&self.state).torn)
    }

    /// Another copy takes over, and takes so long for it.
    pub(crate) fn fail_over(&self, takes: Duration) {
        let mut state = lock(&self.state);
        state.copy += 1;
        state.away_until = Some(super::tape::timer() + takes);
    }

    /// Keeps what there is now.
    pub(crate) fn back_up(&self) {
        let copy = Arc::new(self.memory.copy());
        lock(&self.state).backup = Some(copy);
    }

    /// Has what was kept last, and nothing since: as a backup that is put in place, or as a database that fails over
    /// and loses commits. False if nothing was kept.
    pub(crate) fn go_back(&self, restored: bool) -> bool {
        let mut state = lock(&self.state);
        let Some(backup) = state.backup.clone() else { return false };
        self.memory.fail_over_to(&backup);
        state.copy += 1;
        state.restored = restored;
        state.written.clear();
        true
    }

    /// Whether a backup was put in place since somebody asked.
    pub(crate) fn take_restored(&self) -> bool {
        std::mem::take(&mut lock(&self.state).restored)
    }

    /// From now on this goes wrong.
    pub(crate) fn arm(&self, trouble: scenario::Store) {
        lock(&self.state).trouble = trouble;
    }

    /// From now on nothing goes wrong any more.
    pub(crate) fn heal(&self) {
        let mut state = lock(&self.state);
        let latency = state.trouble.latency;
        state.trouble = scenario::Store { latency, ..scenario::Store::default() };
    }

    /// What a process writes to it with.
    pub(crate) fn line(self: &Arc<Self>, process: usize, gate: Arc<Gate>) -> Arc<Line> {
        let bell = Arc::new(Notify::new());
        let mut state = lock(&self.state);
        state.bells.retain(|(other, _)| *other != process);
        state.bells.push((process, bell.clone()));
        Arc::new(Line { disk: self.clone(), process, gate, bell })
    }

    fn away(&self) -> bool {
        let mut state = lock(&self.state);
        state.away_until.take_if(|until| *until <= super::tape::timer());
        state.away_until.is_some()
    }
}

/// One process's way to the disk.
pub(crate) struct Line {
    disk: Arc<Disk>,
    process: usize,
    gate: Arc<Gate>,
    bell: Arc<Notify>,
}

fn gone() -> Error {
    Error::Unavailable("another copy is taking over".to_owned())
}

impl Line {
    /// Every call goes through here first.
    async fn reach(&self) -> Result<(), Error> {
        self.gate.pass().await;
        if self.disk.away() {
            tokio::time::sleep(AWAY_AFTER).await;
            return Err(gone());
        }
        Ok(())
    }

    /// Draws what becomes of a batch: how long it takes, whether it is torn, whether its answer is lost.
    fn fate(&self) -> (Duration, bool, bool, u64) {
        let mut state = lock(&self.disk.state);
        let State { dice, trouble, copy, .. } = &mut *state;
        let takes = super::between(dice, trouble.latency);
        let torn = 0.0 < trouble.torn && dice.happens(trouble.torn);
        let lost = 0.0 < trouble.lost_answers && dice.happens(trouble.lost_answers);
        (takes, torn, lost, *copy)
    }

    async fn write(&self, batch: Vec<Commit>) -> Result<Vec<Outcome>, Error> {
        let copied = batch.clone();
        let outcomes = self.disk.memory.commit(batch).await?;
        let mut stirring = false;
        let mut state = lock(&self.disk.state);
        for (commit, outcome) in copied.into_iter().zip(&outcomes) {
            let Outcome::Committed(revision) = outcome else { continue };
            stirring |= !commit.puts.iter().all(|put| put.key.kind == "heard");
            state.written.push((*revision, commit));
        }
        for (process, bell) in &state.bells {
            if *process != self.process {
                bell.notify_one();
            }
        }
        drop(state);
        if stirring {
            self.disk.tape.stir();
        }
        self.disk.tape.ring();
        Ok(outcomes)
    }
}

#[async_trait]
impl Engine for Line {
    async fn head(&self) -> Result<Revision, Error> {
        self.reach().await?;
        self.disk.memory.head().await
    }

    async fn scan(&self, after: Option<&Key>, limit: usize) -> Result<Vec<Document>, Error> {
        self.reach().await?;
        self.disk.memory.scan(after, limit).await
    }

    async fn commit(&self, batch: Vec<Commit>) -> Result<Vec<Outcome>, Error> {
        let _call = self.disk.tape.call();
        self.reach().await?;
        let (takes, torn, lost, copy) = self.fate();
        if torn {
            lock(&self.disk.state).torn.push(self.process);
            self.disk.tape.ring();
            return std::future::pending().await;
        }
        if !takes.is_zero() {
            tokio::time::sleep(takes).await;
        }
        self.gate.pass().await;
        let (moved, kept) = {
            let mut state = lock(&self.disk.state);
            let moved = state.copy != copy;
            (moved, !moved || state.dice.happens(0.5))
        };
        if !kept {
            return Err(gone());
        }
        let outcomes = self.write(batch).await?;
        self.gate.pass().await;
        if moved || lost {
            return Err(Error::Unavailable("the answer was lost".to_owned()));
        }
        Ok(outcomes)
    }

    async fn changes(&self, after: Revision, limit: usize) -> Result<Changes, Error> {
        self.reach().await?;
        self.disk.memory.changes(after, limit).await
    }

    async fn entries(&self, query: &EntryQuery) -> Result<Vec<Entry>, Error> {
        self.reach().await?;
        self.disk.memory.entries(query).await
    }

    async fn stream_head(&self, stream: &str) -> Result<Option<(u64, String)>, Error> {
        self.reach().await?;
        self.disk.memory.stream_head(stream).await
    }

    async fn lease(
        &self,
        name: &str,
        holder: &str,
        ttl: SignedDuration,
    ) -> Result<Option<Lease>, Error> {
        self.reach().await?;
        let lease = self.disk.memory.lease(name, holder, ttl).await;
        // A process that stands still learns late that it has a lease.
        self.gate.pass().await;
        lease
    }

    async fn time(&self) -> Result<Option<Timestamp>, Error> {
        self.reach().await?;
        let time = self.disk.shared.map(|clock| clock.now());
        self.gate.pass().await;
        Ok(time)
    }

    async fn trim(&self, retention: &Retention) -> Result<(), Error> {
        self.reach().await?;
        self.disk.memory.trim(retention).await
    }

    async fn foreign_commit(&self) {
        self.bell.notified().await;
    }
}
