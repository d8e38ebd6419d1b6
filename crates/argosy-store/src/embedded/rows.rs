//! The SQL of the embedded engine. Each row of documents, changes and entries carries a checksum
//! that is verified when it is read: SQLite's own checks see the shape of a page, not its text.

use super::fault::Fault;
use crate::engine::{
    Change, Changes, Commit, Document, Entry, EntryQuery, Key, Lease, Outcome, Retention, Revision,
    StreamRetention,
};
use crate::plan::{self, Known, Plan, Touched};
use crate::{failpoint, feed};
use jiff::{SignedDuration, Timestamp};
use rusqlite::{Connection, OptionalExtension, Row, Transaction, TransactionBehavior, params};
use sha2::{Digest, Sha256};
use std::sync::Arc;

/// What the feed holds: the changes after `floor`, up to `head`.
pub(super) struct Feed {
    pub(super) head: Revision,
    pub(super) floor: Revision,
}

pub(super) fn feed(db: &Connection) -> Result<Feed, Fault> {
    let mut select = db.prepare_cached("SELECT head, floor FROM feed")?;
    Ok(select.query_row([], |row| {
        Ok(Feed { head: Revision(row.get(0)?), floor: Revision(row.get(1)?) })
    })?)
}

pub(super) fn scan(
    db: &Connection,
    after: Option<&Key>,
    limit: usize,
) -> Result<Vec<Document>, Fault> {
    let columns = "SELECT kind, id, revision, body, checksum FROM document";
    let order = "ORDER BY kind, id LIMIT ?1";
    let limit = at_most(limit);
    match after {
        None => read_all(db, &format!("{columns} {order}"), params![limit], document),
        Some(key) => {
            let sql = format!("{columns} WHERE (?2, ?3) < (kind, id) {order}");
            read_all(db, &sql, params![limit, key.kind, key.id], document)
        }
    }
}

fn document(row: &Row<'_>) -> Result<Document, Fault> {
    let key = Key { kind: row.get(0)?, id: row.get(1)? };
    let (revision, body) = (row.get(2)?, row.get::<_, Arc<str>>(3)?);
    verify(row.get(4)?, document_checksum(&key, Revision(revision), &body), || {
        format!("document {key}")
    })?;
    Ok(Document { key, revision: Revision(revision), body })
}

pub(super) fn changes(
    db: &mut Connection,
    after: Revision,
    limit: usize,
) -> Result<Changes, Fault> {
    // One snapshot for both questions, or a trim in between would show as a hole.
    let tx = db.transaction()?;
    let feed = feed(&tx)?;
    if after < feed.floor || feed.head < after {
        return Ok(Changes::Gone(feed.floor));
    }
    let sql = "SELECT revision, at, documents, checksum FROM change
               WHERE ?1 < revision ORDER BY revision LIMIT ?2";
    Ok(Changes::Page(read_all(&tx, sql, params![after.0, at_most(limit)], change)?))
}

fn change(row: &Row<'_>) -> Result<Change, Fault> {
    let (revision, at, text) = (row.get(0)?, row.get(1)?, row.get::<_, String>(2)?);
    let what = || format!("change {revision}");
    verify(row.get(3)?, change_checksum(Revision(revision), at, &text), what)?;
    let documents = feed::decode(&text).ok_or_else(|| Fault::Damaged(what()))?;
    Ok(Change { revision: Revision(revision), at: time(at)?, documents })
}

pub(super) fn entries(db: &Connection, query: &EntryQuery) -> Result<Vec<Entry>, Fault> {
    let (from, order) = match query.newest_first {
        true => ("sequence < ?2", "DESC"),
        false => ("?2 < sequence", "ASC"),
    };
    let start = if query.newest_first { i64::MAX } else { 0 };
    let cursor = query.cursor.map_or(start, |cursor| i64::try_from(cursor).unwrap_or(i64::MAX));
    let limit = at_most(query.limit);
    let select = |subject: &str| {
        format!(
            "SELECT stream, sequence, subject, at, revision, body, previous, hash, checksum
             FROM entry WHERE stream = ?1 AND {from} {subject} ORDER BY sequence {order} LIMIT ?3"
        )
    };
    match &query.subject {
        None => read_all(db, &select(""), params![query.stream, cursor, limit], entry),
        Some(subject) => {
            let values = params![query.stream, cursor, limit, subject];
            read_all(db, &select("AND subject = ?4"), values, entry)
        }
    }
}

fn entry(row: &Row<'_>) -> Result<Entry, Fault> {
    let stream: String = row.get(0)?;
    let entry = Entry {
        sequence: row.get(1)?,
        subject: row.get(2)?,
        at: time(row.get(3)?)?,
        revision: Revision(row.get(4)?),
        body: row.get(5)?,
        previous: row.get(6)?,
        hash: row.get(7)?,
    };
    verify(row.get(8)?, entry_checksum(&stream, &entry), || {
        format!("entry {} of stream {stream}", entry.sequence)
    })?;
    Ok(entry)
}

pub(super) fn stream_head(db: &Connection, stream: &str) -> Result<Option<(u64, String)>, Fault> {
    let mut select = db.prepare_cached("SELECT sequence, hash FROM stream WHERE name = ?1")?;
    Ok(select.query_row([stream], |row| Ok((row.get(0)?, row.get(1)?))).optional()?)
}

pub(super) fn commit(
    db: &mut Connection,
    batch: Vec<Commit>,
    now: Timestamp,
) -> Result<Vec<Outcome>, Fault> {
    failpoint::hit("commit.before_sql");
    let tx = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let known = known(&tx, &Touched::by(&batch), now)?;
    let plan = plan::plan(batch, known);
    if !plan.changes.is_empty() {
        write(&tx, &plan)?;
        failpoint::hit("commit.after_sql");
        tx.commit()?;
    }
    failpoint::hit("commit.after_commit");
    Ok(plan.outcomes)
}

fn known(tx: &Transaction<'_>, touched: &Touched<'_>, now: Timestamp) -> Result<Known, Fault> {
    let mut known = Known { head: feed(tx)?.head, ..Known::default() };
    let mut revision =
        tx.prepare_cached("SELECT revision FROM document WHERE kind = ?1 AND id = ?2")?;
    for key in &touched.keys {
        let found = revision.query_row([&key.kind, &key.id], |row| row.get(0)).optional()?;
        known.revisions.extend(found.map(|found| ((*key).clone(), Revision(found))));
    }
    let mut epoch = tx.prepare_cached("SELECT epoch FROM lease WHERE name = ?1 AND ?2 < until")?;
    for name in &touched.leases {
        let found = epoch.query_row(params![name, now.as_microsecond()], |row| row.get(0));
        known.epochs.extend(found.optional()?.map(|found| ((*name).to_string(), found)));
    }
    for name in &touched.streams {
        let found = stream_head(tx, name)?;
        known.streams.extend(found.map(|found| ((*name).to_string(), found)));
    }
    Ok(known)
}

fn write(tx: &Transaction<'_>, plan: &Plan) -> Result<(), Fault> {
    let mut put = tx.prepare_cached(
        "INSERT INTO document VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (kind, id) DO UPDATE
         SET revision = excluded.revision, body = excluded.body, checksum = excluded.checksum",
    )?;
    let mut remove = tx.prepare_cached("DELETE FROM document WHERE kind = ?1 AND id = ?2")?;
    for (key, written) in &plan.documents {
        match written {
            Some((revision, body)) => {
                let checksum = document_checksum(key, *revision, body);
                put.execute(params![key.kind, key.id, revision.0, body, checksum])?
            }
            None => remove.execute([&key.kind, &key.id])?,
        };
    }
    let mut insert = tx.prepare_cached("INSERT INTO change VALUES (?1, ?2, ?3, ?4)")?;
    for change in &plan.changes {
        let (at, documents) = (change.at.as_microsecond(), feed::encode(&change.documents));
        let checksum = change_checksum(change.revision, at, &documents);
        insert.execute(params![change.revision.0, at, documents, checksum])?;
    }
    let mut append =
        tx.prepare_cached("INSERT INTO entry VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)")?;
    for (stream, entry) in &plan.entries {
        append.execute(params![
            stream,
            entry.sequence,
            entry.subject,
            entry.at.as_microsecond(),
            entry.revision.0,
            entry.body,
            entry.previous,
            entry.hash,
            entry_checksum(stream, entry),
        ])?;
    }
    let mut advance = tx.prepare_cached("INSERT OR REPLACE INTO stream VALUES (?1, ?2, ?3)")?;
    for (name, (sequence, hash)) in &plan.streams {
        advance.execute(params![name, sequence, hash])?;
    }
    tx.prepare_cached("UPDATE feed SET head = ?1")?.execute([plan.head.0])?;
    Ok(())
}

pub(super) fn lease(
    db: &mut Connection,
    name: &str,
    holder: &str,
    ttl: SignedDuration,
    now: Timestamp,
) -> Result<Option<Lease>, Fault> {
    let until = now.checked_add(ttl).unwrap_or(Timestamp::MAX);
    let mut take = db.prepare_cached(
        "INSERT INTO lease VALUES (?1, ?2, 1, ?4) ON CONFLICT (name) DO UPDATE
         SET holder = ?2, until = ?4, epoch = CASE WHEN ?3 < until THEN epoch ELSE epoch + 1 END
         WHERE holder = ?2 OR until <= ?3 RETURNING epoch",
    )?;
    let values = params![name, holder, now.as_microsecond(), until.as_microsecond()];
    Ok(take.query_row(values, |row| Ok(Lease { epoch: row.get(0)? })).optional()?)
}

pub(super) fn trim(db: &mut Connection, retention: &Retention) -> Result<(), Fault> {
    let tx = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let feed = feed(&tx)?;
    let floor = feed.head.0.saturating_sub(retention.changes_kept);
    if feed.floor.0 < floor {
        tx.execute("DELETE FROM change WHERE revision <= ?1", [floor])?;
        tx.execute("UPDATE feed SET floor = ?1", [floor])?;
    }
    for rule in &retention.streams {
        trim_stream(&tx, rule)?;
    }
    failpoint::hit("trim.before_commit");
    Ok(tx.commit()?)
}

fn trim_stream(tx: &Transaction<'_>, rule: &StreamRetention) -> Result<(), Fault> {
    let Some((last, _)) = stream_head(tx, &rule.stream)? else { return Ok(()) };
    let recent: Option<u64> = tx
        .query_row(
            "SELECT sequence FROM entry WHERE stream = ?1 AND ?2 <= at ORDER BY sequence LIMIT 1",
            params![rule.stream, rule.before.as_microsecond()],
            |row| row.get(0),
        )
        .optional()?;
    let old = recent.map_or(last, |recent| recent - 1);
    let many = last.saturating_sub(rule.entries_kept);
    tx.execute(
        "DELETE FROM entry WHERE stream = ?1 AND sequence <= ?2",
        params![rule.stream, old.max(many)],
    )?;
    Ok(())
}

/// Reads every row, to find damage anywhere.
pub(super) fn verify_all(db: &Connection) -> Result<(), Fault> {
    fn each<T>(
        db: &Connection,
        sql: &str,
        read: fn(&Row<'_>) -> Result<T, Fault>,
    ) -> Result<(), Fault> {
        let mut select = db.prepare(sql)?;
        let mut rows = select.query([])?;
        while let Some(row) = rows.next()? {
            read(row)?;
        }
        Ok(())
    }
    each(db, "SELECT kind, id, revision, body, checksum FROM document", document)?;
    each(db, "SELECT revision, at, documents, checksum FROM change", change)?;
    each(
        db,
        "SELECT stream, sequence, subject, at, revision, body, previous, hash, checksum FROM entry",
        entry,
    )
}

fn read_all<T>(
    db: &Connection,
    sql: &str,
    values: impl rusqlite::Params,
    read: fn(&Row<'_>) -> Result<T, Fault>,
) -> Result<Vec<T>, Fault> {
    let mut select = db.prepare_cached(sql)?;
    let mut rows = select.query(values)?;
    let mut all = Vec::new();
    while let Some(row) = rows.next()? {
        all.push(read(row)?);
    }
    Ok(all)
}

/// SQLite counts to `i64::MAX`.
fn at_most(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

fn time(microsecond: i64) -> Result<Timestamp, Fault> {
    Timestamp::from_microsecond(microsecond).map_err(|error| Fault::Damaged(error.to_string()))
}

fn verify(stored: i64, computed: i64, what: impl FnOnce() -> String) -> Result<(), Fault> {
    if stored == computed {
        return Ok(());
    }
    Err(Fault::Damaged(format!("{} does not match its checksum", what())))
}

fn document_checksum(key: &Key, revision: Revision, body: &str) -> i64 {
    checksum(&[&key.kind, &key.id, body], &[revision.0.cast_signed()])
}

fn change_checksum(revision: Revision, at: i64, documents: &str) -> i64 {
    checksum(&[documents], &[revision.0.cast_signed(), at])
}

fn entry_checksum(stream: &str, entry: &Entry) -> i64 {
    let texts = [stream, &entry.subject, &entry.body, &entry.previous, &entry.hash];
    let numbers = [entry.sequence, entry.revision.0].map(u64::cast_signed);
    checksum(&texts, &[numbers[0], numbers[1], entry.at.as_microsecond()])
}

/// The first eight bytes of a SHA-256: far more than chance needs, and nothing new to depend on.
fn checksum(texts: &[&str], numbers: &[i64]) -> i64 {
    let mut hash = Sha256::new();
    for text in texts {
        hash.update((text.len() as u64).to_be_bytes());
        hash.update(text);
    }
    for number in numbers {
        hash.update(number.to_be_bytes());
    }
    let first = hash.finalize().first_chunk().copied().unwrap_or_default();
    i64::from_be_bytes(first)
}
