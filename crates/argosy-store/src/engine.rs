//! What a backend provides: documents, a change feed, streams and leases.
//!
//! Engines know documents, not nodes: keys and JSON text. What a newcomer gets wrong: a *revision*
//! numbers commits, not documents. Each accepted commit gets the next number, so the feed has no
//! holes, and a document's revision is that of the commit that last wrote it.

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fmt;
use std::sync::Arc;

/// The number of a commit. The first is 1; 0 is "before everything".
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Revision(pub u64);

impl Revision {
    /// Before everything.
    pub const ZERO: Revision = Revision(0);

    /// The next commit's number.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// The name of a document: a kind, and an id within it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// What kind of document.
    pub kind: String,
    /// Which one.
    pub id: String,
}

impl Key {
    /// A key.
    pub fn new(kind: impl Into<String>, id: impl Into<String>) -> Self {
        Self { kind: kind.into(), id: id.into() }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.kind, self.id)
    }
}

/// A document as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// Its name.
    pub key: Key,
    /// The commit that last wrote it.
    pub revision: Revision,
    /// JSON text.
    pub body: Arc<str>,
}

/// What must be true of a document for a commit to be accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// Anything.
    Any,
    /// It does not exist.
    Absent,
    /// It exists, last written by this commit.
    At(Revision),
}

/// One document to write, or to remove.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Put {
    /// Which.
    pub key: Key,
    /// What must be true of it before.
    pub expect: Expect,
    /// The new text; `None` removes the document. Removing an absent document is accepted.
    pub body: Option<Arc<str>>,
}

/// One entry to add to the end of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Append {
    /// Which stream: `audit`, `status`, …
    pub stream: String,
    /// What the entry is about; readers may ask for one subject.
    pub subject: String,
    /// JSON text.
    pub body: Arc<str>,
}

/// A proof that the writer still holds a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fence {
    /// The lease.
    pub lease: String,
    /// The epoch at which it was taken.
    pub epoch: u64,
}

/// What is to happen, all or nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Commit {
    /// When, by the caller's clock; written to the feed and the streams.
    pub at: Timestamp,
    /// Documents to write; no key twice.
    pub puts: Vec<Put>,
    /// Documents that are only looked at.
    pub checks: Vec<(Key, Expect)>,
    /// Entries for streams.
    pub appends: Vec<Append>,
    /// The lease this commit is made under.
    pub fence: Option<Fence>,
}

/// What became of one commit of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Durable, with this number.
    Committed(Revision),
    /// A document was not as expected; nothing of this commit was written.
    Conflict(Key),
    /// The lease has a newer epoch, or has run out; nothing of this commit was written.
    Fenced,
}

/// One document's part in a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changed {
    /// Which document.
    pub key: Key,
    /// Its text after the change; `None` if it was removed.
    pub body: Option<Arc<str>>,
}

/// One accepted commit, as the feed shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Its number.
    pub revision: Revision,
    /// When, by the writer's clock.
    pub at: Timestamp,
    /// The documents it wrote, in the order of the commit. May be empty.
    pub documents: Vec<Changed>,
}

/// A piece of the feed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Changes {
    /// The changes after the one asked for, without holes; empty at the end.
    Page(Vec<Change>),
    /// The one asked for is no longer retained, or was never given (a backup was restored): list
    /// again. The oldest revision one can resume after is given.
    Gone(Revision),
}

/// One entry of a stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Its place in the stream: 1, 2, 3, … without holes.
    pub sequence: u64,
    /// What it is about.
    pub subject: String,
    /// When it was written.
    pub at: Timestamp,
    /// The commit that wrote it.
    pub revision: Revision,
    /// JSON text.
    pub body: Arc<str>,
    /// The hash of the entry before, in hex; 64 zeros for the first.
    pub previous: String,
    /// `chain(previous, …)` over this entry, in hex.
    pub hash: String,
}

/// Which entries to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryQuery {
    /// The stream.
    pub stream: String,
    /// Only this subject.
    pub subject: Option<String>,
    /// Only entries after (or, newest first, before) this sequence number.
    pub cursor: Option<u64>,
    /// The latest first.
    pub newest_first: bool,
    /// How many at most.
    pub limit: usize,
}

/// A lease that was granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    /// Grows each time the lease changes hands.
    pub epoch: u64,
}

/// What may be forgotten.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Keep at least the last so many changes of the feed.
    pub changes_kept: u64,
    /// Per stream: drop entries written before this time, and all but the newest so many. Only
    /// the beginning of a stream is ever dropped, so that its chain stays whole.
    pub streams: Vec<StreamRetention>,
}

/// What may be forgotten of one stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamRetention {
    /// The stream.
    pub stream: String,
    /// Entries written before this are dropped.
    pub before: Timestamp,
    /// All but the newest so many are dropped.
    pub entries_kept: u64,
}

/// What a caller can do about a failure of the store.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Read again and decide again.
    #[error("{0} was changed by somebody else")]
    Conflict(Key),
    /// Stop acting: another process holds the lease.
    #[error("the lease was lost")]
    Fenced,
    /// Try again later. If it was a commit, it may or may not have happened.
    #[error("the store is out of reach: {0}")]
    Unavailable(String),
    /// Make room. Nothing was written.
    #[error("the disk is full: {0}")]
    Full(String),
    /// Somebody must look: the data is damaged, from a newer build, or in use by another process.
    /// The text says what to do.
    #[error("{0}")]
    Refused(String),
}

/// A backend. Object safe; all methods may be called at the same time.
#[async_trait]
pub trait Engine: Send + Sync + 'static {
    /// The number of the last commit.
    async fn head(&self) -> Result<Revision, Error>;

    /// Documents in key order, after `after`, at most `limit`.
    async fn scan(&self, after: Option<&Key>, limit: usize) -> Result<Vec<Document>, Error>;

    /// Writes a batch in one durable transaction. Each commit is judged on its own, in order, seeing
    /// those before it; accepted ones get consecutive revisions. An `Err` means that nothing is
    /// known about any of them.
    async fn commit(&self, batch: Vec<Commit>) -> Result<Vec<Outcome>, Error>;

    /// The feed after a revision, at most `limit` changes.
    async fn changes(&self, after: Revision, limit: usize) -> Result<Changes, Error>;

    /// Entries of a stream.
    async fn entries(&self, query: &EntryQuery) -> Result<Vec<Entry>, Error>;

    /// The last entry's sequence number and hash, as the engine remembers them apart from the
    /// entries, so that a cut-off tail shows; `None` for a stream nobody wrote to.
    async fn stream_head(&self, stream: &str) -> Result<Option<(u64, String)>, Error>;

    /// Takes or renews a lease for `holder`, by the engine's clock. `None` if somebody else has it.
    /// A lease that ran out is taken anew, with a larger epoch, also by the one who had it.
    async fn lease(
        &self,
        name: &str,
        holder: &str,
        ttl: SignedDuration,
    ) -> Result<Option<Lease>, Error>;

    /// What time it is by the clock that all processes share: the engine's own. `None` where no other process can
    /// use the store, so that there is nothing to compare with.
    async fn time(&self) -> Result<Option<Timestamp>, Error> {
        Ok(None)
    }

    /// Forgets what the retention allows.
    async fn trim(&self, retention: &Retention) -> Result<(), Error>;

    /// Returns when another process may have committed; never, if there is no other. For one
    /// caller at a time. A wake-up can be lost: look now and then without it.
    async fn foreign_commit(&self);

    /// Returns when nothing more can be written until the process is started again; never, if the
    /// engine recovers by itself.
    async fn finished(&self) {
        std::future::pending().await
    }
}

/// The hash of an entry: SHA-256, in hex, over the previous hash and the entry's own parts.
///
/// The time counts to the microsecond, which is what every engine keeps of it.
pub fn chain(previous: &str, sequence: u64, subject: &str, at: Timestamp, body: &str) -> String {
    let mut hash = Sha256::new();
    // Each text is led by its length: otherwise a letter could move from the subject to the body.
    for text in [previous, subject, body] {
        hash.update((text.len() as u64).to_be_bytes());
        hash.update(text);
    }
    hash.update(sequence.to_be_bytes());
    hash.update(at.as_microsecond().to_be_bytes());
    hash.finalize().iter().fold(String::with_capacity(64), |mut hex, byte| {
        for digit in [byte >> 4, byte & 15] {
            hex.extend(char::from_digit(u32::from(digit), 16));
        }
        hex
    })
}

/// The time as every engine keeps it: to the microsecond.
pub fn stored_time(at: Timestamp) -> Timestamp {
    // Fewer microseconds than nanoseconds: a time that was in range stays in range.
    Timestamp::from_microsecond(at.as_microsecond()).unwrap_or(at)
}

#[cfg(test)]
mod tests;
