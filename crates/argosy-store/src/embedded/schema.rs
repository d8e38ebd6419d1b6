//! Opens the database, checks it, and brings its tables up to date.

use super::fault::Fault;
use super::wal;
use crate::engine::{Error, Revision};
use crate::failpoint;
use rusqlite::{Connection, OpenFlags, TransactionBehavior};
use std::io::Read;
use std::path::Path;
use std::time::Duration;

/// "argo": marks the file as ours, also for `file(1)`.
const APPLICATION_ID: i32 = 0x6172_676f;

/// How to come from each schema to the next; the schema's number is how many have run.
const MIGRATIONS: &[&str] = &["
    CREATE TABLE document (
        kind TEXT NOT NULL, id TEXT NOT NULL, revision INTEGER NOT NULL, body TEXT NOT NULL,
        checksum INTEGER NOT NULL, PRIMARY KEY (kind, id)
    ) STRICT;
    CREATE TABLE change (
        revision INTEGER PRIMARY KEY, at INTEGER NOT NULL, documents TEXT NOT NULL,
        checksum INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE feed (head INTEGER NOT NULL, floor INTEGER NOT NULL) STRICT;
    INSERT INTO feed VALUES (0, 0);
    CREATE TABLE entry (
        stream TEXT NOT NULL, sequence INTEGER NOT NULL, subject TEXT NOT NULL,
        at INTEGER NOT NULL, revision INTEGER NOT NULL, body TEXT NOT NULL,
        previous TEXT NOT NULL, hash TEXT NOT NULL, checksum INTEGER NOT NULL,
        PRIMARY KEY (stream, sequence)
    ) STRICT;
    CREATE INDEX entry_subject ON entry (stream, subject, sequence);
    CREATE TABLE stream (
        name TEXT PRIMARY KEY, sequence INTEGER NOT NULL, hash TEXT NOT NULL
    ) STRICT;
    CREATE TABLE lease (
        name TEXT PRIMARY KEY, holder TEXT NOT NULL, epoch INTEGER NOT NULL,
        until INTEGER NOT NULL
    ) STRICT;
"];

/// The connection that writes.
pub(super) fn open(database: &Path) -> Result<Connection, Fault> {
    check_header(database)?;
    wal::check(database)?;
    let mut db = Connection::open(database)?;
    db.busy_timeout(Duration::from_secs(5))?;
    db.set_prepared_statement_cache_capacity(64);
    check_version(&db, database)?;
    db.pragma_update(None, "journal_mode", "WAL")?;
    db.pragma_update(None, "synchronous", "FULL")?;
    migrate(&mut db, MIGRATIONS)?;
    // What is read now and served from memory for as long as we run. The feed and the streams are a
    // hundred times as large; their rows carry checksums that are verified whenever they are read.
    check_pages(&db, "quick_check('document')")?;
    check_feed(&db)?;
    // The directory's lock says that whoever held these is gone: nobody should wait for them. If
    // the disk is full they run out by themselves.
    let _ = db.execute("UPDATE lease SET until = 0 WHERE 0 < until", []);
    Ok(db)
}

/// A connection that only reads, beside the one that writes.
pub(super) fn reader(database: &Path) -> Result<Connection, Fault> {
    let db = Connection::open_with_flags(
        database,
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )?;
    db.busy_timeout(Duration::from_secs(5))?;
    db.pragma_update(None, "query_only", true)?;
    Ok(db)
}

/// SQLite takes a file that was cut to nothing, or overwritten, for a new one in some cases.
fn check_header(database: &Path) -> Result<(), Fault> {
    let mut header = [0; 16];
    let read = std::fs::File::open(database).and_then(|mut file| file.read(&mut header));
    match read {
        Ok(16) if &header == b"SQLite format 3\0" => Ok(()),
        // Made by a process that was killed before it wrote anything.
        Ok(0) => Ok(()),
        Ok(_) => Err(Fault::Damaged("it does not begin like a database".to_string())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(super::unusable(database, &error).into()),
    }
}

/// Refuses what is not ours, or newer than this build. Answers with the schema's number.
pub(super) fn check_version(db: &Connection, database: &Path) -> Result<usize, Fault> {
    let file = database.display();
    let version: i64 = db.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let application: i32 = db.pragma_query_value(None, "application_id", |row| row.get(0))?;
    let tables: i64 = db.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if application != APPLICATION_ID && 0 < tables {
        return Err(Error::Refused(format!(
            "{file} is a database of another program; choose another --data-dir"
        ))
        .into());
    }
    let known = MIGRATIONS.len();
    match usize::try_from(version) {
        Ok(version) if version <= known => Ok(version),
        _ => Err(Error::Refused(format!(
            "{file} was written by a newer argosy (schema {version}, this build knows {known}); \
             start the newer version, or restore a backup"
        ))
        .into()),
    }
}

/// All steps in one transaction: a process killed midway leaves the schema as it was.
pub(super) fn migrate(db: &mut Connection, migrations: &[&str]) -> Result<(), Fault> {
    let tx = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let version: usize = tx.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if version == migrations.len() {
        return Ok(());
    }
    for step in migrations.iter().skip(version) {
        tx.execute_batch(step)?;
    }
    tx.pragma_update(None, "application_id", APPLICATION_ID)?;
    tx.pragma_update(None, "user_version", migrations.len())?;
    failpoint::hit("migrate.before_commit");
    Ok(tx.commit()?)
}

/// Runs `quick_check` or `integrity_check` over all pages, or those of one table.
pub(super) fn check_pages(db: &Connection, check: &str) -> Result<(), Fault> {
    let found: String = db.query_row(&format!("PRAGMA {check}"), [], |row| row.get(0))?;
    if found == "ok" { Ok(()) } else { Err(Fault::Damaged(found)) }
}

/// What the feed remembers of itself must fit what is there.
pub(super) fn check_feed(db: &Connection) -> Result<(), Fault> {
    let feed = super::rows::feed(db)?;
    let (first, last): (Option<u64>, Option<u64>) =
        db.query_row("SELECT min(revision), max(revision) FROM change", [], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })?;
    let first = first.map_or(feed.head.next(), Revision);
    let last = last.map_or(feed.floor, Revision);
    if first == feed.floor.next() && last == feed.head {
        return Ok(());
    }
    let (floor, head) = (feed.floor, feed.head);
    Err(Fault::Damaged(format!(
        "the feed should hold the changes after {floor} to {head}, and holds {first} to {last}"
    )))
}
