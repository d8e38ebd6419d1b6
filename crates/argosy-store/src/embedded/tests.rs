use super::*;
use crate::conformance::chain_is_whole;
use crate::engine::{Append, Expect, Put};
use rusqlite::{Connection, ffi};
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// A directory of its own, removed at the end.
struct Dir(PathBuf);

impl Dir {
    fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("argosy-embedded-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn open(&self) -> Embedded {
        Embedded::open(&self.0).unwrap()
    }

    fn database(&self) -> PathBuf {
        self.0.join(DATABASE_FILE)
    }

    fn sql(&self, sql: &str) {
        Connection::open(self.database()).unwrap().execute_batch(sql).unwrap();
    }

    fn refusal(&self) -> String {
        refused(Embedded::open(&self.0))
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Nothing is changed in the copy.
fn as_it_is(_: std::sync::Arc<dyn Engine>) -> Result<(), Error> {
    Ok(())
}

#[track_caller]
fn refused<T>(result: Result<T, Error>) -> String {
    match result {
        Err(Error::Refused(text)) => text,
        Err(other) => panic!("expected a refusal: {other:?}"),
        Ok(_) => panic!("expected a refusal"),
    }
}

fn commit(id: &str, body: &str) -> Commit {
    Commit {
        puts: vec![Put {
            key: Key::new("cluster", id),
            expect: Expect::Any,
            body: Some(body.into()),
        }],
        appends: vec![Append {
            stream: "audit".to_string(),
            subject: id.to_string(),
            body: body.into(),
        }],
        ..Commit::default()
    }
}

async fn fill(engine: &Embedded, documents: usize) {
    let commits = (0..documents).map(|number| {
        let body = format!("\"{number:05} {}\"", "x".repeat(500));
        commit(&format!("c{number:05}"), &body)
    });
    engine.commit(commits.collect()).await.unwrap();
}

fn audit() -> EntryQuery {
    let stream = "audit".to_string();
    EntryQuery { stream, subject: None, cursor: None, newest_first: false, limit: usize::MAX }
}

#[tokio::test]
async fn a_second_process_is_refused_by_name_and_number() {
    let dir = Dir::new();
    let first = dir.open();
    let text = dir.refusal();
    assert!(text.contains(&dir.0.display().to_string()), "{text}");
    assert!(text.contains(&format!("process {}", std::process::id())), "{text}");
    drop(first);
    dir.open();
}

#[tokio::test]
async fn a_newer_schema_is_refused() {
    let dir = Dir::new();
    drop(dir.open());
    dir.sql("PRAGMA user_version = 7");
    let text = dir.refusal();
    assert!(text.contains("newer argosy (schema 7, this build knows 1)"), "{text}");
}

#[tokio::test]
async fn a_database_of_another_program_is_refused() {
    let dir = Dir::new();
    dir.sql("CREATE TABLE holiday (photo BLOB)");
    assert!(dir.refusal().contains("another program"));
}

#[tokio::test]
async fn a_file_that_is_no_database_is_refused_with_restore_steps() {
    let dir = Dir::new();
    std::fs::write(dir.database(), "these are not the bytes of a database").unwrap();
    let text = dir.refusal();
    assert!(text.contains("argosy restore --force --from BACKUP --data-dir"), "{text}");
}

#[tokio::test]
async fn a_migration_that_did_not_finish_is_finished_by_the_next_start() {
    let dir = Dir::new();
    let mut db = Connection::open(dir.database()).unwrap();
    schema::migrate(&mut db, &["CREATE TABLE one (x)"]).unwrap();
    let steps = ["CREATE TABLE one (x)", "CREATE TABLE two (x)", "CREATE TABLE broken ("];
    schema::migrate(&mut db, &steps).unwrap_err();
    let steps = ["CREATE TABLE one (x)", "CREATE TABLE two (x)", "CREATE TABLE three (x)"];
    schema::migrate(&mut db, &steps).unwrap();
    let version: i64 = db.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
    assert_eq!(version, 3);
}

#[tokio::test]
async fn every_flipped_bit_in_a_document_is_found() {
    let dir = Dir::new();
    let engine = dir.open();
    fill(&engine, 40).await;
    drop(engine);
    let sound = std::fs::read(dir.database()).unwrap();
    let mut found = 0;
    for position in
        (0..40).flat_map(|number| positions(&sound, format!("{number:05} x").as_bytes()))
    {
        let mut damaged = sound.clone();
        damaged[position + 6] ^= 1;
        std::fs::write(dir.database(), &damaged).unwrap();
        let error = match Embedded::open(&dir.0) {
            Ok(engine) => read_everything(&engine).await.err(),
            Err(error) => Some(error),
        };
        // What a page split left in unused space may change as it likes.
        let Some(error) = error else { continue };
        let text = refused::<()>(Err(error));
        assert!(text.contains("is damaged") && text.contains("argosy restore"), "{text}");
        found += 1;
    }
    assert_eq!(found, 40 * 3, "each body is in its document, in the feed and in the stream");
}

fn positions(haystack: &[u8], needle: &[u8]) -> Vec<usize> {
    let windows = haystack.windows(needle.len()).enumerate();
    windows.filter(|(_, window)| *window == needle).map(|(position, _)| position).collect()
}

async fn read_everything(engine: &Embedded) -> Result<(), Error> {
    engine.scan(None, usize::MAX).await?;
    engine.changes(Revision::ZERO, usize::MAX).await?;
    engine.entries(&audit()).await?;
    Ok(())
}

/// One byte in every stretch of the file: it is refused, or it is read as it was written.
#[tokio::test]
async fn no_flipped_bit_changes_what_is_read() {
    let dir = Dir::new();
    let engine = dir.open();
    fill(&engine, 40).await;
    let documents = engine.scan(None, usize::MAX).await.unwrap();
    let changes = engine.changes(Revision::ZERO, usize::MAX).await.unwrap();
    let entries = engine.entries(&audit()).await.unwrap();
    drop(engine);
    let sound = std::fs::read(dir.database()).unwrap();
    for position in (0..sound.len()).step_by(997) {
        let mut damaged = sound.clone();
        damaged[position] ^= 0x10;
        std::fs::write(dir.database(), &damaged).unwrap();
        let Ok(engine) = Embedded::open(&dir.0) else { continue };
        if read_everything(&engine).await.is_ok() {
            assert_eq!(engine.scan(None, usize::MAX).await.unwrap(), documents, "{position}");
            assert_eq!(engine.changes(Revision::ZERO, usize::MAX).await.unwrap(), changes);
            assert_eq!(engine.entries(&audit()).await.unwrap(), entries, "{position}");
        }
    }
}

#[tokio::test]
async fn a_file_cut_short_is_refused() {
    let dir = Dir::new();
    let engine = dir.open();
    fill(&engine, 40).await;
    drop(engine);
    let sound = std::fs::read(dir.database()).unwrap();
    std::fs::write(dir.database(), &sound[..sound.len() / 2]).unwrap();
    assert!(dir.refusal().contains("is damaged"));
}

/// The files as a process that is killed leaves them.
fn leave_as_if_killed(from: &Dir) -> Dir {
    let to = Dir::new();
    for name in ["argosy.db", "argosy.db-wal", "argosy.db-shm"] {
        std::fs::copy(from.0.join(name), to.0.join(name)).unwrap();
    }
    to
}

#[tokio::test]
async fn a_flipped_bit_in_the_log_of_a_killed_process_is_found() {
    let dir = Dir::new();
    let engine = dir.open();
    for number in 0..5 {
        engine.commit(vec![commit("a", &number.to_string())]).await.unwrap();
    }
    let killed = leave_as_if_killed(&dir);
    assert_eq!(killed.open().head().await.unwrap(), Revision(5), "a sound log is replayed");
    let length = std::fs::metadata(dir.0.join("argosy.db-wal")).unwrap().len();
    for position in [3, 17, 25, 40, 60, 5000, length / 2, length - 1] {
        let killed = leave_as_if_killed(&dir);
        let path = killed.0.join("argosy.db-wal");
        let mut log = std::fs::read(&path).unwrap();
        log[usize::try_from(position).unwrap()] ^= 1;
        std::fs::write(&path, log).unwrap();
        let text = killed.refusal();
        assert!(text.contains("argosy.db-wal") && text.contains("restore"), "{position}: {text}");
    }
    for length in [0, 31, length / 2, length - 1] {
        let killed = leave_as_if_killed(&dir);
        let log = File::options().write(true).open(killed.0.join("argosy.db-wal")).unwrap();
        log.set_len(length).unwrap();
        assert!(killed.refusal().contains("argosy.db-wal"), "cut to {length}");
    }
}

#[tokio::test]
async fn a_torn_write_at_the_end_of_the_log_is_no_damage() {
    let dir = Dir::new();
    let engine = dir.open();
    engine.commit(vec![commit("a", "1")]).await.unwrap();
    let before = leave_as_if_killed(&dir);
    engine.commit(vec![commit("a", "2")]).await.unwrap();
    let log = std::fs::read(dir.0.join("argosy.db-wal")).unwrap();
    // The process died while the second commit was being written: not in the index, and half there.
    std::fs::write(before.0.join("argosy.db-wal"), &log[..log.len() - 100]).unwrap();
    assert_eq!(before.open().head().await.unwrap(), Revision(1));
    // A machine that lost power has no index worth reading.
    std::fs::write(before.0.join("argosy.db-shm"), [0; 32768]).unwrap();
    assert_eq!(before.open().head().await.unwrap(), Revision(1));
}

#[tokio::test]
async fn an_edited_entry_and_a_missing_tail_are_found() {
    let dir = Dir::new();
    let engine = dir.open();
    fill(&engine, 3).await;
    drop(engine);
    dir.sql("UPDATE entry SET body = '\"innocent\"' WHERE sequence = 2");
    let text = refused(dir.open().entries(&audit()).await);
    assert!(text.contains("entry 2 of stream audit"), "{text}");
    dir.sql("DELETE FROM entry WHERE sequence >= 2");
    let engine = dir.open();
    assert!(!chain_is_whole(&engine).await, "the head is remembered apart from the entries");
}

#[tokio::test]
async fn a_full_disk_is_told_apart_and_passes() {
    let dir = Dir::new();
    let engine = dir.open();
    fill(&engine, 10).await;
    let limit = |pages: i64| {
        engine.writer.call(move |db| Ok(db.pragma_update(None, "max_page_count", pages)?))
    };
    limit(1).await.unwrap();
    let error = engine.commit(vec![commit("big", &"x".repeat(1 << 20))]).await.unwrap_err();
    assert!(matches!(error, Error::Full(_)), "{error:?}");
    assert_eq!(engine.scan(None, usize::MAX).await.unwrap().len(), 10, "reads go on");
    assert_eq!(engine.head().await.unwrap(), Revision(10), "nothing was written");
    limit(1 << 30).await.unwrap();
    let outcomes = engine.commit(vec![commit("big", &"x".repeat(1 << 20))]).await.unwrap();
    assert_eq!(outcomes, [Outcome::Committed(Revision(11))]);
}

#[tokio::test]
async fn after_a_failed_fsync_nothing_more_is_written() {
    let dir = Dir::new();
    let engine = Arc::new(dir.open());
    let (_store, driver) = crate::Store::open(engine.clone()).await.unwrap();
    fill(&engine, 1).await;
    let error = || rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_IOERR_FSYNC), None);
    let first = engine.writer.call::<()>(move |_| Err(error().into())).await.unwrap_err();
    let later = engine.commit(vec![commit("a", "1")]).await.unwrap_err();
    for error in [first, later] {
        assert!(matches!(&error, Error::Unavailable(text) if text.contains("restarted")));
    }
    assert_eq!(engine.scan(None, usize::MAX).await.unwrap().len(), 1, "reads go on");
    let end = driver.run().await.unwrap_err();
    assert_eq!(
        end.to_string(),
        "the store is out of reach: nothing more can be written after a failure",
        "the process ends"
    );
}

#[tokio::test]
async fn a_panic_in_the_writer_is_unavailable_not_a_hang() {
    let dir = Dir::new();
    let engine = dir.open();
    let during = engine.writer.call::<()>(|_| panic!("on purpose")).await.unwrap_err();
    let later = engine.commit(vec![]).await.unwrap_err();
    for error in [during, later] {
        assert!(matches!(error, Error::Unavailable(_)), "{error:?}");
    }
}

#[tokio::test]
async fn leases_of_the_process_before_do_not_delay_this_one() {
    let dir = Dir::new();
    let hour = SignedDuration::from_hours(1);
    let before = dir.open().lease("loop", "killed", hour).await.unwrap().unwrap();
    let now = dir.open().lease("loop", "started", hour).await.unwrap().unwrap();
    assert!(before.epoch < now.epoch);
}

#[tokio::test]
async fn a_backup_taken_while_writing_is_one_moment_of_the_store() {
    let dir = Dir::new();
    let engine = Arc::new(dir.open());
    fill(&engine, 100).await;
    let writer = engine.clone();
    let mut writing = tokio::task::JoinSet::new();
    writing.spawn(async move {
        for number in 0.. {
            writer.commit(vec![commit("moving", &number.to_string())]).await.unwrap();
        }
    });
    let copy = dir.0.join("copy.db");
    let (from, to) = (dir.0.clone(), copy.clone());
    tokio::task::spawn_blocking(move || backup(&from, &to)).await.unwrap().unwrap();
    writing.shutdown().await;
    assert!(refused(backup(&dir.0, &copy)).contains("exists"));

    let target = Dir::new();
    restore(&copy, &target.0, false, as_it_is).unwrap();
    let restored = target.open();
    let head = restored.head().await.unwrap();
    assert!(Revision(100) <= head && head <= engine.head().await.unwrap());
    assert!(chain_is_whole(&restored).await);
    assert_eq!(restored.stream_head("audit").await.unwrap().unwrap().0, head.0);
    read_everything(&restored).await.unwrap();
}

#[tokio::test]
async fn restoring_replaces_a_store_only_when_forced_and_only_with_a_sound_one() {
    let (old, new) = (Dir::new(), Dir::new());
    let engine = new.open();
    fill(&engine, 20).await;
    let copy = new.0.join("copy.db");
    backup(&new.0, &copy).unwrap();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let made = new.0.join("made");
    drop(Embedded::open(&made).unwrap());
    assert_eq!((mode(&copy), mode(&made)), (0o600, 0o700), "nobody else may read it");
    let running = old.open();
    fill(&running, 3).await;
    assert!(refused(restore(&copy, &old.0, true, as_it_is)).contains("in use"));
    drop(running);
    assert!(refused(restore(&copy, &old.0, false, as_it_is)).contains("--force"));

    let sound = std::fs::read(&copy).unwrap();
    let bad = old.0.join("bad.db");
    let mut flipped = sound.clone();
    flipped[positions(&sound, b"00007 xxx")[0] + 6] ^= 1;
    for damaged in [&flipped[..], &sound[..sound.len() / 2], b"", b"short"] {
        std::fs::write(&bad, damaged).unwrap();
        let text = refused(restore(&bad, &old.0, true, as_it_is));
        assert!(text.contains("nothing was replaced"), "{text}");
    }
    assert_eq!(old.open().head().await.unwrap(), Revision(3));

    restore(&copy, &old.0, true, as_it_is).unwrap();
    assert_eq!(old.open().head().await.unwrap(), Revision(20));
}
