//! The engine for one process: SQLite in one directory, nothing to install.
//!
//! One thread owns the connection that writes, another one that reads, so that reading does not
//! wait for the disk. A commit is answered when it is on the disk (WAL, `synchronous=FULL`).

mod backup;
mod fault;
mod rows;
mod schema;
mod wal;
mod worker;

pub use backup::{backup, restore};

use crate::engine::{
    Changes, Commit, Document, Engine, Entry, EntryQuery, Error, Key, Lease, Outcome, Retention,
    Revision,
};
use crate::memory::{Clock, system_clock};
use async_trait::async_trait;
use jiff::SignedDuration;
use std::fs::{DirBuilder, File, TryLockError};
use std::io::{Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use worker::Worker;

/// The database's name inside the data directory.
pub const DATABASE_FILE: &str = "argosy.db";

/// The store in one directory, which belongs to this process until the value is dropped.
pub struct Embedded {
    writer: Worker,
    reader: Worker,
    clock: Clock,
    database: PathBuf,
    // Last, so that it is released after both threads have closed the database.
    _lock: File,
}

impl Embedded {
    /// Opens the store in `dir`, or makes a new one. Blocks: it reads and checks all documents.
    ///
    /// `Refused` if another process has it open, if it is damaged, or if it was written by a newer
    /// build; the text says what to do.
    pub fn open(dir: &Path) -> Result<Self, Error> {
        create_dir(dir)?;
        let lock = lock(dir)?;
        let database = dir.join(DATABASE_FILE);
        let writer = schema::open(&database).map_err(|fault| fault.into_error(&database))?;
        let reader = schema::reader(&database).map_err(|fault| fault.into_error(&database))?;
        sync_dir(dir)?;
        Ok(Self {
            writer: Worker::start("store-writer", writer, &database)?,
            reader: Worker::start("store-reader", reader, &database)?,
            clock: system_clock(),
            database,
            _lock: lock,
        })
    }
}

impl std::fmt::Debug for Embedded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Embedded").field("database", &self.database).finish_non_exhaustive()
    }
}

#[async_trait]
impl Engine for Embedded {
    async fn head(&self) -> Result<Revision, Error> {
        self.reader.call(|db| Ok(rows::feed(db)?.head)).await
    }

    async fn scan(&self, after: Option<&Key>, limit: usize) -> Result<Vec<Document>, Error> {
        let after = after.cloned();
        self.reader.call(move |db| rows::scan(db, after.as_ref(), limit)).await
    }

    async fn commit(&self, batch: Vec<Commit>) -> Result<Vec<Outcome>, Error> {
        let clock = self.clock.clone();
        self.writer.call(move |db| rows::commit(db, batch, clock())).await
    }

    async fn changes(&self, after: Revision, limit: usize) -> Result<Changes, Error> {
        self.reader.call(move |db| rows::changes(db, after, limit)).await
    }

    async fn entries(&self, query: &EntryQuery) -> Result<Vec<Entry>, Error> {
        let query = query.clone();
        self.reader.call(move |db| rows::entries(db, &query)).await
    }

    async fn stream_head(&self, stream: &str) -> Result<Option<(u64, String)>, Error> {
        let stream = stream.to_string();
        self.reader.call(move |db| rows::stream_head(db, &stream)).await
    }

    async fn lease(
        &self,
        name: &str,
        holder: &str,
        ttl: SignedDuration,
    ) -> Result<Option<Lease>, Error> {
        let (name, holder, clock) = (name.to_string(), holder.to_string(), self.clock.clone());
        self.writer.call(move |db| rows::lease(db, &name, &holder, ttl, clock())).await
    }

    async fn trim(&self, retention: &Retention) -> Result<(), Error> {
        let retention = retention.clone();
        self.writer.call(move |db| rows::trim(db, &retention)).await
    }

    async fn foreign_commit(&self) {
        std::future::pending().await
    }

    async fn finished(&self) {
        tokio::select! {
            () = self.writer.finished() => {}
            () = self.reader.finished() => {}
        }
    }
}

/// Keeps other processes out for as long as the file is open; the system lets go of it even when
/// this process is killed.
fn lock(dir: &Path) -> Result<File, Error> {
    let path = dir.join("LOCK");
    let mut file = File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(&path)
        .map_err(|error| unusable(&path, &error))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut holder = String::new();
            // Only decorates the refusal: without a number it still says what to do.
            let _ = file.read_to_string(&mut holder);
            let (dir, holder) = (dir.display(), holder.trim());
            return Err(Error::Refused(format!(
                "{dir} is in use by another argosy (process {holder}); stop it, or choose another --data-dir"
            )));
        }
        Err(TryLockError::Error(error)) => return Err(unusable(&path, &error)),
    }
    let written = file.set_len(0).and_then(|()| write!(file, "{}", std::process::id()));
    written.map_err(|error| unusable(&path, &error))?;
    Ok(file)
}

/// Makes a directory that only its owner can look into: labels and specs are nobody else's business.
fn create_dir(dir: &Path) -> Result<(), Error> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(dir);
    made.map_err(|error| unusable(dir, &error))
}

/// Whether some process has the directory's store open.
fn is_locked(dir: &Path) -> bool {
    let held = File::open(dir.join("LOCK")).map(|file| file.try_lock());
    matches!(held, Ok(Err(TryLockError::WouldBlock)))
}

/// Makes created and renamed names in a directory durable.
fn sync_dir(dir: &Path) -> Result<(), Error> {
    File::open(dir).and_then(|dir| dir.sync_all()).map_err(|error| unusable(dir, &error))
}

/// The file that belongs to `path` and has its name with this at the end.
fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_os_string();
    name.push(suffix);
    PathBuf::from(name)
}

fn unusable(path: &Path, error: &std::io::Error) -> Error {
    let path = path.display();
    if error.kind() == std::io::ErrorKind::StorageFull {
        return Error::Full(format!("{path}: {error}"));
    }
    Error::Refused(format!("cannot use {path}: {error}"))
}

#[cfg(test)]
mod tests;
