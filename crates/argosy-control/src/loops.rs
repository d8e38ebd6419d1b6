//! The loops: woken by the feed, they look again.

pub(crate) mod command;
pub(crate) mod external;
pub(crate) mod liveness;
pub(crate) mod machines;
pub(crate) mod notes;
pub(crate) mod plane;
pub(crate) mod recovery;
pub(crate) mod remedy;
pub(crate) mod retention;
pub(crate) mod run;
pub(crate) mod sentinel;
pub(crate) mod time;

use crate::Error;
use crate::clock::Clock;
use crate::office::{Mutation, Office, system};
use argosy_core::id::ResourceId;
use argosy_core::resource::{Generation, Resource};
use argosy_store::Txn;
use argosy_store::engine::Fence;
use argosy_store::view::View;
use jiff::{SignedDuration, Timestamp};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tracing::warn;

/// How long a lease lasts without renewal. A dead process's work waits this long for another.
pub(crate) const LEASE: SignedDuration = SignedDuration::from_secs(10);

/// How often it is renewed: twice may fail before the lease is lost.
pub(crate) const RENEW_EVERY: Duration = Duration::from_secs(3);

/// When each loop last showed that it goes on.
#[derive(Debug, Default)]
pub(crate) struct Beats(Mutex<Vec<(&'static str, Timestamp)>>);

impl Beats {
    /// A loop may be silent for this long: several turns, each of which may wait for the store.
    const SILENCE_MAX: SignedDuration = SignedDuration::from_secs(60);

    pub(crate) fn beat(&self, name: &'static str, now: Timestamp) {
        let mut beats = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match beats.iter_mut().find(|(known, _)| *known == name) {
            Some((_, at)) => *at = now,
            None => beats.push((name, now)),
        }
    }

    /// Which loop is late; `None` if none is.
    pub(crate) fn late(&self, now: Timestamp) -> Option<&'static str> {
        let beats = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let late = |at: &Timestamp| Self::SILENCE_MAX < now.duration_since(*at);
        beats.iter().find(|(_, at)| late(at)).map(|(name, _)| *name)
    }
}

/// Waits until this process may run a loop.
pub(crate) async fn lead(
    office: &Office,
    name: &'static str,
    holder: &str,
    beats: &Beats,
) -> Fence {
    loop {
        beats.beat(name, office.clock.now());
        match office.lease(name, holder).await {
            Ok(Some(lease)) => return Fence { lease: name.to_owned(), epoch: lease.epoch },
            Ok(None) => {}
            Err(error) => warn!(%error, lease = name, "could not ask for the lease"),
        }
        tokio::time::sleep(RENEW_EVERY).await;
    }
}

/// Renews a lease until it is lost.
pub(crate) async fn keep_lease(office: &Office, name: &'static str, holder: &str, fence: &Fence) {
    let mut renewed = office.clock.monotonic();
    loop {
        tokio::time::sleep(RENEW_EVERY).await;
        let now = office.clock.monotonic();
        match office.lease(name, holder).await {
            Ok(Some(lease)) if lease.epoch == fence.epoch => renewed = now,
            Ok(_) => return,
            Err(error) if liveness::signed(now.saturating_sub(renewed)) < LEASE => {
                warn!(%error, lease = name, "could not renew the lease");
            }
            Err(error) => {
                warn!(%error, lease = name, "the lease ran out");
                return;
            }
        }
    }
}

/// When to look at what again; one time each.
pub(crate) struct Alarms<K> {
    by_time: BTreeSet<(Timestamp, K)>,
    of: BTreeMap<K, Timestamp>,
}

impl<K> Default for Alarms<K> {
    fn default() -> Self {
        Self { by_time: BTreeSet::new(), of: BTreeMap::new() }
    }
}

impl<K: Clone + Ord> Alarms<K> {
    /// Sets or clears the alarm of one.
    pub(crate) fn set(&mut self, key: &K, at: Option<Timestamp>) {
        if let Some(old) = self.of.remove(key) {
            self.by_time.remove(&(old, key.clone()));
        }
        if let Some(at) = at {
            self.of.insert(key.clone(), at);
            self.by_time.insert((at, key.clone()));
        }
    }

    /// Takes one whose time has come.
    pub(crate) fn due(&mut self, now: Timestamp) -> Option<K> {
        let (at, key) = self.by_time.first().filter(|(at, _)| *at <= now)?.clone();
        self.by_time.remove(&(at, key.clone()));
        self.of.remove(&key);
        Some(key)
    }

    /// Waits for the first of them; for ever, if there is none.
    pub(crate) async fn ring(&self, clock: Clock) {
        match self.by_time.first() {
            Some((at, _)) => clock.sleep_until(*at).await,
            None => std::future::pending().await,
        }
    }
}

/// What we change about a resource by ourselves.
pub(crate) struct Amendment {
    pub(crate) id: ResourceId,
    pub(crate) action: &'static str,
    /// Only while the resource is at this generation.
    pub(crate) generation: Option<Generation>,
}

/// Changes what we know about a resource, and its conditions with it.
pub(crate) async fn amend(
    office: &Office,
    fence: &Fence,
    amendment: Amendment,
    change: impl Fn(&mut Resource, &mut Txn, Timestamp),
) -> Result<(), Error> {
    let Amendment { id, action, generation } = amendment;
    let caller = system("sentinel");
    let decide = |view: &View, now: Timestamp| {
        let Some(before) = view.resource(id) else { return Ok((None, ())) };
        if generation.is_some_and(|generation| generation != before.value.generation) {
            return Ok((None, ()));
        }
        let mut txn = Txn::at(now);
        txn.fence(fence.clone());
        let mut changed = (*before.value).clone();
        change(&mut changed, &mut txn, now);
        let adapters = office.adapters(changed.kind);
        let children = view.has_children(id);
        let after = changed.refreshed(adapters, children, now).unwrap_or(changed);
        let after = office.settled(Some(&before.value), after, now);
        if after == *before.value {
            return Ok((None, ()));
        }
        let change = Mutation::update(action, before, Arc::new(after));
        Office::write(&mut txn, change, &caller, now)?;
        Ok((Some(txn), ()))
    };
    office.decide(decide).await.map(|_| ())
}
