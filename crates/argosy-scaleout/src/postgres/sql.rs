//! The SQL of the PostgreSQL engine.
//!
//! Few round trips: what does not depend on an answer is sent at once. The server works through it
//! in the order in which it was sent, and each statement sees what those before it did.

use super::fault::Fault;
use super::link::{CHANNEL, Session};
use argosy_store::engine::{
    Change, Changes, Commit, Document, Entry, EntryQuery, Key, Lease, Outcome, Retention, Revision,
};
use argosy_store::plan::{self, Known, Plan, Touched};
use argosy_store::{failpoint, feed};
use jiff::{SignedDuration, Timestamp};
use std::sync::Arc;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row, Statement};

macro_rules! statements {
    ($($name:ident: $sql:expr;)*) => {
        /// Parsed once per connection.
        pub(super) struct Statements { $($name: Statement),* }

        impl Statements {
            pub(super) async fn prepare(client: &Client) -> Result<Self, tokio_postgres::Error> {
                Ok(Self { $($name: client.prepare($sql).await?),* })
            }
        }
    };
}

/// The time by the server's clock at this moment, in microseconds. Not `now()`, which is when the
/// transaction began: that may have been long before it got the lock.
macro_rules! now {
    () => {
        "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
    };
}

macro_rules! entries {
    ($condition:literal, $order:literal) => {
        concat!(
            "SELECT sequence, subject, at, revision, body, previous, hash FROM argosy.entry
             WHERE stream = $1 AND ",
            $condition,
            " ORDER BY sequence ",
            $order,
            " LIMIT $3"
        )
    };
}

statements! {
    // Commits take turns, whatever process they come from; "argosy", and which of our locks.
    lock: "SELECT pg_advisory_xact_lock(x'6172676f73790002'::bigint)";
    head: "SELECT head FROM argosy.feed";
    revisions: "SELECT d.kind, d.id, d.revision FROM unnest($1::text[], $2::text[]) AS k (kind, id)
                JOIN argosy.document d ON d.kind = k.kind AND d.id = k.id";
    // Locked, or the lease could change hands before this transaction ends.
    epochs: concat!("SELECT name, epoch FROM argosy.lease
                     WHERE name = ANY ($1::text[]) AND ", now!(), " < until FOR SHARE");
    stream_heads: "SELECT name, sequence, hash FROM argosy.stream WHERE name = ANY ($1::text[])";
    put: "INSERT INTO argosy.document
          SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[], $4::text[])
          ON CONFLICT (kind, id) DO UPDATE SET revision = excluded.revision, body = excluded.body";
    remove: "DELETE FROM argosy.document d USING unnest($1::text[], $2::text[]) AS k (kind, id)
             WHERE d.kind = k.kind AND d.id = k.id";
    change: "INSERT INTO argosy.change
             SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::text[])";
    append: "INSERT INTO argosy.entry SELECT * FROM unnest($1::text[], $2::bigint[], $3::text[],
             $4::bigint[], $5::bigint[], $6::text[], $7::text[], $8::text[])";
    advance_stream: "INSERT INTO argosy.stream
                     SELECT * FROM unnest($1::text[], $2::bigint[], $3::text[])
                     ON CONFLICT (name) DO UPDATE
                     SET sequence = excluded.sequence, hash = excluded.hash";
    advance: "UPDATE argosy.feed SET head = $1";
    notify: "SELECT pg_notify($1, $2)";
    scan: "SELECT kind, id, revision, body FROM argosy.document ORDER BY kind, id LIMIT $1";
    scan_after: "SELECT kind, id, revision, body FROM argosy.document
                 WHERE ($2, $3) < (kind, id) ORDER BY kind, id LIMIT $1";
    // One statement, one snapshot: a trim in between would show as a hole.
    changes: "SELECT f.head, f.floor, c.revision, c.at, c.documents FROM argosy.feed f
              LEFT JOIN LATERAL (SELECT * FROM argosy.change WHERE $1 < revision
                                 ORDER BY revision LIMIT $2) c ON true
              ORDER BY c.revision";
    entries: entries!("$2 < sequence", "ASC");
    entries_newest: entries!("sequence < $2", "DESC");
    entries_of: entries!("$2 < sequence AND subject = $4", "ASC");
    entries_of_newest: entries!("sequence < $2 AND subject = $4", "DESC");
    lease: concat!("INSERT INTO argosy.lease AS l VALUES ($1, $2, 1, ", now!(), " + $3)
                    ON CONFLICT (name) DO UPDATE SET holder = $2, until = ", now!(), " + $3,
                    epoch = CASE WHEN ", now!(), " < l.until THEN l.epoch ELSE l.epoch + 1 END
                    WHERE l.holder = $2 OR l.until <= ", now!(), " RETURNING epoch");
    now: concat!("SELECT ", now!());
    trim_feed: "WITH cut AS (UPDATE argosy.feed SET floor = greatest(floor, head - $1::bigint)
                RETURNING floor)
                DELETE FROM argosy.change WHERE revision <= (SELECT floor FROM cut)";
    trim_stream: "DELETE FROM argosy.entry WHERE stream = $1 AND sequence <= (
                  SELECT greatest(s.sequence - $3::bigint, coalesce(
                      (SELECT e.sequence - 1 FROM argosy.entry e WHERE e.stream = $1 AND $2 <= e.at
                       ORDER BY e.sequence LIMIT 1), s.sequence))
                  FROM argosy.stream s WHERE s.name = $1)";
}

type Value<'a> = &'a (dyn ToSql + Sync);

pub(super) async fn head(session: &Session) -> Result<Revision, Fault> {
    let row = session.client.query_one(&session.statements.head, &[]).await?;
    revision(&row, 0)
}

pub(super) async fn scan(
    session: &Session,
    after: Option<&Key>,
    limit: usize,
) -> Result<Vec<Document>, Fault> {
    let Session { client, statements, .. } = session;
    let limit = at_most(limit);
    let rows = match after {
        None => client.query(&statements.scan, &[&limit]).await?,
        Some(key) => client.query(&statements.scan_after, &[&limit, &key.kind, &key.id]).await?,
    };
    let document = |row: &Row| {
        let key = Key { kind: row.try_get(0)?, id: row.try_get(1)? };
        Ok(Document { key, revision: revision(row, 2)?, body: text(row, 3)? })
    };
    rows.iter().map(document).collect()
}

pub(super) async fn changes(
    session: &Session,
    after: Revision,
    limit: usize,
) -> Result<Changes, Fault> {
    let values: [Value<'_>; 2] = [&number(after.0), &at_most(limit)];
    let rows = session.client.query(&session.statements.changes, &values).await?;
    let mut page = Vec::with_capacity(rows.len());
    for row in &rows {
        let (head, floor) = (revision(row, 0)?, revision(row, 1)?);
        if after < floor || head < after {
            return Ok(Changes::Gone(floor));
        }
        // The only row of an empty page is the feed's own.
        if row.try_get::<_, Option<i64>>(2)?.is_some() {
            let revision = revision(row, 2)?;
            let documents = feed::decode(row.try_get(4)?)
                .ok_or_else(|| Fault::Damaged(format!("change {revision} cannot be read")))?;
            page.push(Change { revision, at: time(row, 3)?, documents });
        }
    }
    Ok(Changes::Page(page))
}

pub(super) async fn entries(session: &Session, query: &EntryQuery) -> Result<Vec<Entry>, Fault> {
    let Session { client, statements, .. } = session;
    let start = if query.newest_first { i64::MAX } else { 0 };
    let cursor = query.cursor.map_or(start, number);
    let limit = at_most(query.limit);
    let mut values: Vec<Value<'_>> = vec![&query.stream, &cursor, &limit];
    values.extend(query.subject.as_ref().map(|subject| subject as Value<'_>));
    let statement = match (&query.subject, query.newest_first) {
        (None, false) => &statements.entries,
        (None, true) => &statements.entries_newest,
        (Some(_), false) => &statements.entries_of,
        (Some(_), true) => &statements.entries_of_newest,
    };
    let rows = client.query(statement, &values).await?;
    let entry = |row: &Row| {
        Ok(Entry {
            sequence: row.try_get::<_, i64>(0)?.cast_unsigned(),
            subject: row.try_get(1)?,
            at: time(row, 2)?,
            revision: revision(row, 3)?,
            body: text(row, 4)?,
            previous: row.try_get(5)?,
            hash: row.try_get(6)?,
        })
    };
    rows.iter().map(entry).collect()
}

pub(super) async fn stream_head(
    session: &Session,
    stream: &str,
) -> Result<Option<(u64, String)>, Fault> {
    let names: [&str; 1] = [stream];
    let row = session.client.query_opt(&session.statements.stream_heads, &[&&names[..]]).await?;
    row.map(|row| Ok((row.try_get::<_, i64>(1)?.cast_unsigned(), row.try_get(2)?))).transpose()
}

pub(super) async fn lease(
    session: &Session,
    name: &str,
    holder: &str,
    ttl: SignedDuration,
) -> Result<Option<Lease>, Fault> {
    // A century is for ever, and fits.
    let ttl = ttl.min(SignedDuration::from_hours(24 * 365 * 100));
    let ttl = i64::try_from(ttl.as_micros()).unwrap_or_default();
    let values: [Value<'_>; 3] = [&name, &holder, &ttl];
    let row = session.client.query_opt(&session.statements.lease, &values).await?;
    row.map(|row| Ok(Lease { epoch: row.try_get::<_, i64>(0)?.cast_unsigned() })).transpose()
}

/// By the server's clock.
pub(super) async fn now(session: &Session) -> Result<Timestamp, Fault> {
    let row = session.client.query_one(&session.statements.now, &[]).await?;
    time(&row, 0)
}

pub(super) async fn trim(session: &Session, retention: &Retention) -> Result<(), Fault> {
    let Session { client, statements, .. } = session;
    failpoint::hit("trim.before_commit");
    client.execute(&statements.trim_feed, &[&number(retention.changes_kept)]).await?;
    for rule in &retention.streams {
        let (before, kept) = (rule.before.as_microsecond(), number(rule.entries_kept));
        let values: [Value<'_>; 3] = [&rule.stream, &before, &kept];
        client.execute(&statements.trim_stream, &values).await?;
    }
    Ok(())
}

/// Two round trips: look, and write. An error leaves the transaction open.
pub(super) async fn commit(session: &Session, batch: Vec<Commit>) -> Result<Vec<Outcome>, Fault> {
    failpoint::hit("commit.before_sql");
    let known = begin(session, &Touched::by(&batch)).await?;
    let plan = plan::plan(batch, known);
    failpoint::hit("commit.after_sql");
    if plan.changes.is_empty() {
        session.client.batch_execute("ROLLBACK").await?;
    } else {
        write(session, &plan).await?;
    }
    failpoint::hit("commit.after_commit");
    Ok(plan.outcomes)
}

/// The lock is a statement of its own: the ones after it see all that was committed under it.
async fn begin(session: &Session, touched: &Touched<'_>) -> Result<Known, Fault> {
    let Session { client, statements, .. } = session;
    let kinds: Vec<&str> = touched.keys.iter().map(|key| key.kind.as_str()).collect();
    let ids: Vec<&str> = touched.keys.iter().map(|key| key.id.as_str()).collect();
    let leases: Vec<&str> = touched.leases.iter().copied().collect();
    let streams: Vec<&str> = touched.streams.iter().copied().collect();
    let (keys, leases, streams): ([Value<'_>; 2], [Value<'_>; 1], [Value<'_>; 1]) =
        ([&kinds, &ids], [&leases], [&streams]);
    let (begun, locked, head, revisions, epochs, streams) = tokio::join!(
        biased;
        client.batch_execute("BEGIN ISOLATION LEVEL READ COMMITTED"),
        client.execute(&statements.lock, &[]),
        head(session),
        client.query(&statements.revisions, &keys),
        some(!touched.leases.is_empty(), client.query(&statements.epochs, &leases)),
        client.query(&statements.stream_heads, &streams),
    );
    begun?;
    locked?;
    let mut known = Known { head: head?, ..Known::default() };
    for row in revisions? {
        let key = Key { kind: row.try_get(0)?, id: row.try_get(1)? };
        known.revisions.insert(key, revision(&row, 2)?);
    }
    for row in epochs? {
        known.epochs.insert(row.try_get(0)?, row.try_get::<_, i64>(1)?.cast_unsigned());
    }
    for row in streams? {
        let sequence = row.try_get::<_, i64>(1)?.cast_unsigned();
        known.streams.insert(row.try_get(0)?, (sequence, row.try_get(2)?));
    }
    Ok(known)
}

/// Sends all with the COMMIT behind it: if one fails, the server makes a ROLLBACK of that.
async fn write(session: &Session, plan: &Plan) -> Result<(), Fault> {
    let Session { client, statements, process, .. } = session;
    let (mut put, mut removed) = ((vec![], vec![], vec![], vec![]), (vec![], vec![]));
    for (key, written) in &plan.documents {
        let (kind, id) = (key.kind.as_str(), key.id.as_str());
        match written {
            Some((revision, body)) => {
                put.0.push(kind);
                put.1.push(id);
                put.2.push(number(revision.0));
                put.3.push(&**body);
            }
            None => {
                removed.0.push(kind);
                removed.1.push(id);
            }
        }
    }
    let changes = plan.changes.iter();
    let revisions: Vec<i64> = changes.clone().map(|change| number(change.revision.0)).collect();
    let times: Vec<i64> = changes.clone().map(|change| change.at.as_microsecond()).collect();
    let texts: Vec<String> = changes.map(|change| feed::encode(&change.documents)).collect();
    let streams: Vec<&str> = plan.streams.keys().map(String::as_str).collect();
    let sequences: Vec<i64> = plan.streams.values().map(|(last, _)| number(*last)).collect();
    let hashes: Vec<&str> = plan.streams.values().map(|(_, hash)| hash.as_str()).collect();

    let put: [Value<'_>; 4] = [&put.0, &put.1, &put.2, &put.3];
    let removed: [Value<'_>; 2] = [&removed.0, &removed.1];
    let changed: [Value<'_>; 3] = [&revisions, &times, &texts];
    let streams: [Value<'_>; 3] = [&streams, &sequences, &hashes];
    let head = number(plan.head.0);
    let head: [Value<'_>; 1] = [&head];
    let told: [Value<'_>; 2] = [&CHANNEL, process];
    let (put, removed, changed, appended, streams, head, committed, _told) = tokio::join!(
        biased;
        client.execute(&statements.put, &put),
        some(plan.documents.values().any(Option::is_none), client.execute(&statements.remove, &removed)),
        client.execute(&statements.change, &changed),
        some(!plan.entries.is_empty(), append(session, &plan.entries)),
        some(!plan.entries.is_empty(), client.execute(&statements.advance_stream, &streams)),
        client.execute(&statements.advance, &head),
        client.batch_execute("COMMIT"),
        // After the commit: a notification takes a lock of the whole server while it commits.
        client.execute(&statements.notify, &told),
    );
    for written in [put, removed, changed, appended, streams, head] {
        written?;
    }
    Ok(committed?)
}

/// Does it only if there is something to do: the server would take its time over nothing, too.
async fn some<T: Default>(
    any: bool,
    work: impl Future<Output = Result<T, tokio_postgres::Error>>,
) -> Result<T, tokio_postgres::Error> {
    if any { work.await } else { Ok(T::default()) }
}

async fn append(
    session: &Session,
    entries: &[(String, Entry)],
) -> Result<u64, tokio_postgres::Error> {
    let all = entries.iter().map(|(_, entry)| entry);
    let streams: Vec<&str> = entries.iter().map(|(stream, _)| stream.as_str()).collect();
    let sequences: Vec<i64> = all.clone().map(|entry| number(entry.sequence)).collect();
    let subjects: Vec<&str> = all.clone().map(|entry| entry.subject.as_str()).collect();
    let times: Vec<i64> = all.clone().map(|entry| entry.at.as_microsecond()).collect();
    let revisions: Vec<i64> = all.clone().map(|entry| number(entry.revision.0)).collect();
    let bodies: Vec<&str> = all.clone().map(|entry| &*entry.body).collect();
    let previous: Vec<&str> = all.clone().map(|entry| entry.previous.as_str()).collect();
    let hashes: Vec<&str> = all.map(|entry| entry.hash.as_str()).collect();
    let values: [Value<'_>; 8] =
        [&streams, &sequences, &subjects, &times, &revisions, &bodies, &previous, &hashes];
    session.client.execute(&session.statements.append, &values).await
}

/// PostgreSQL counts to `i64::MAX`.
fn number(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn at_most(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

fn revision(row: &Row, column: usize) -> Result<Revision, Fault> {
    Ok(Revision(row.try_get::<_, i64>(column)?.cast_unsigned()))
}

fn time(row: &Row, column: usize) -> Result<Timestamp, Fault> {
    let microsecond = row.try_get(column)?;
    Timestamp::from_microsecond(microsecond).map_err(|error| Fault::Damaged(error.to_string()))
}

fn text(row: &Row, column: usize) -> Result<Arc<str>, Fault> {
    Ok(row.try_get::<_, &str>(column)?.into())
}
