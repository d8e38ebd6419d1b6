//! Judges a batch of commits against what is stored. Every engine asks here, so none can differ.
//!
//! An engine looks up what the batch touches (`Touched`), asks `plan`, and writes what the plan
//! says, all in one transaction. Nothing is written before all of a commit was judged, so a
//! conflict needs no undoing.

use crate::engine::{
    Change, Changed, Commit, Entry, Expect, Key, Outcome, Revision, chain, stored_time,
};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// What a batch looks at: an engine must know the state of all of it.
#[derive(Debug, Default)]
pub struct Touched<'a> {
    /// Documents written or checked.
    pub keys: BTreeSet<&'a Key>,
    /// Leases that commits are made under.
    pub leases: BTreeSet<&'a str>,
    /// Streams appended to.
    pub streams: BTreeSet<&'a str>,
}

impl<'a> Touched<'a> {
    /// By these commits.
    pub fn by(batch: &'a [Commit]) -> Self {
        let mut touched = Self::default();
        for commit in batch {
            touched.keys.extend(commit.puts.iter().map(|put| &put.key));
            touched.keys.extend(commit.checks.iter().map(|(key, _)| key));
            touched.leases.extend(commit.fence.iter().map(|fence| fence.lease.as_str()));
            touched.streams.extend(commit.appends.iter().map(|append| append.stream.as_str()));
        }
        touched
    }
}

/// The state of what a batch touches.
#[derive(Debug, Default)]
pub struct Known {
    /// The last commit.
    pub head: Revision,
    /// The revisions of the documents that exist.
    pub revisions: HashMap<Key, Revision>,
    /// The epochs of the leases that have not run out.
    pub epochs: HashMap<String, u64>,
    /// Sequence number and hash of the last entry of the streams that exist.
    pub streams: BTreeMap<String, (u64, String)>,
}

/// What is to be written.
#[derive(Debug)]
pub struct Plan {
    /// One for each commit of the batch.
    pub outcomes: Vec<Outcome>,
    /// The last commit, afterwards.
    pub head: Revision,
    /// The documents as the whole batch leaves them; `None` is removed.
    pub documents: BTreeMap<Key, Option<(Revision, Arc<str>)>>,
    /// One for each accepted commit, in order.
    pub changes: Vec<Change>,
    /// New entries, each with the name of its stream, in order.
    pub entries: Vec<(String, Entry)>,
    /// The heads of the streams that are known, afterwards.
    pub streams: BTreeMap<String, (u64, String)>,
}

/// Judges each commit in order, seeing those before it.
pub fn plan(batch: Vec<Commit>, mut known: Known) -> Plan {
    let mut plan = Plan {
        outcomes: Vec::with_capacity(batch.len()),
        head: known.head,
        documents: BTreeMap::new(),
        changes: Vec::new(),
        entries: Vec::new(),
        streams: std::mem::take(&mut known.streams),
    };
    for commit in batch {
        let outcome = match refusal(&commit, &known) {
            Some(refusal) => refusal,
            None => Outcome::Committed(plan.accept(commit, &mut known)),
        };
        plan.outcomes.push(outcome);
    }
    plan
}

fn refusal(commit: &Commit, known: &Known) -> Option<Outcome> {
    if let Some(fence) = &commit.fence
        && known.epochs.get(&fence.lease) != Some(&fence.epoch)
    {
        return Some(Outcome::Fenced);
    }
    let puts = commit.puts.iter().map(|put| (&put.key, put.expect));
    let checks = commit.checks.iter().map(|(key, expect)| (key, *expect));
    puts.chain(checks)
        .find(|(key, expect)| match expect {
            Expect::Any => false,
            Expect::Absent => known.revisions.contains_key(key),
            Expect::At(revision) => known.revisions.get(key) != Some(revision),
        })
        .map(|(key, _)| Outcome::Conflict(key.clone()))
}

impl Plan {
    fn accept(&mut self, commit: Commit, known: &mut Known) -> Revision {
        let revision = self.head.next();
        let at = stored_time(commit.at);
        self.head = revision;
        for put in &commit.puts {
            match &put.body {
                Some(_) => known.revisions.insert(put.key.clone(), revision),
                None => known.revisions.remove(&put.key),
            };
            let written = put.body.clone().map(|body| (revision, body));
            self.documents.insert(put.key.clone(), written);
        }
        for append in commit.appends {
            let (sequence, previous) =
                self.streams.remove(&append.stream).unwrap_or_else(|| (0, "0".repeat(64)));
            let sequence = sequence + 1;
            let hash = chain(&previous, sequence, &append.subject, at, &append.body);
            self.streams.insert(append.stream.clone(), (sequence, hash.clone()));
            let (subject, body) = (append.subject, append.body);
            let entry = Entry { sequence, subject, at, revision, body, previous, hash };
            self.entries.push((append.stream, entry));
        }
        let documents =
            commit.puts.into_iter().map(|put| Changed { key: put.key, body: put.body }).collect();
        self.changes.push(Change { revision, at, documents });
        revision
    }
}
