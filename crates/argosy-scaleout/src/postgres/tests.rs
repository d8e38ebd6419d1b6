use super::*;
use crate::testing::{self, TestPostgres};
use argosy_store::conformance::{self, Place};
use argosy_store::engine::{Append, Expect, Fence, Put};
use argosy_store::memory::Memory;
use proptest::prelude::*;
use tokio_postgres::NoTls;

struct InDatabase(String);

#[async_trait]
impl Place for InDatabase {
    async fn open(&self) -> Arc<dyn Engine> {
        Arc::new(Postgres::connect(&self.0).await.expect("the server is there"))
    }
}

mod conforms {
    use super::{InDatabase, testing};
    argosy_store::conformance!(InDatabase(testing::database().await));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn memory_and_postgres_agree(script in proptest::collection::vec(any::<u8>(), 0..400)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let place = InDatabase(testing::database().await);
            conformance::agree(&Memory::new(), &*place.open().await, &script).await;
        });
    }
}

fn commit(id: &str, body: &str) -> Commit {
    let key = Key::new("cluster", id);
    let put = Put { key, expect: Expect::Any, body: Some(body.into()) };
    let append = Append { stream: "audit".to_string(), subject: id.to_string(), body: body.into() };
    Commit { puts: vec![put], appends: vec![append], ..Commit::default() }
}

/// Runs SQL beside the engine.
async fn sql(url: &str, sql: &str) {
    let (client, driver) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::select! {
        done = client.batch_execute(sql) => done.unwrap(),
        broken = driver => panic!("the connection ended: {broken:?}"),
    }
}

/// Tries until the engine serves again; every failure on the way must be `Unavailable`.
async fn until_served(engine: &Postgres, commit: &Commit) -> Revision {
    loop {
        match engine.commit(vec![commit.clone()]).await {
            Ok(outcomes) => match outcomes.as_slice() {
                [Outcome::Committed(revision)] => return *revision,
                other => panic!("{other:?}"),
            },
            Err(error) => assert!(matches!(error, Error::Unavailable(_)), "{error:?}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_processes_write_at_once_and_each_follows_the_feed() {
    let place = InDatabase(testing::database().await);
    conformance::tail_while_writing(&[place.open().await, place.open().await]).await;
}

/// Whether a wake-up waits to be taken.
async fn woken(engine: &Postgres) -> bool {
    tokio::select! {
        biased;
        () = engine.foreign.notified() => true,
        () = std::future::ready(()) => false,
    }
}

#[tokio::test]
async fn a_commit_elsewhere_wakes_and_our_own_does_not() {
    let url = testing::database().await;
    let (one, other) =
        (Postgres::connect(&url).await.unwrap(), Postgres::connect(&url).await.unwrap());
    let listener = one._listener.session().await.unwrap();
    assert!(woken(&one).await, "something may have been missed before");
    assert!(!woken(&one).await);
    other.commit(vec![commit("a", "1")]).await.unwrap();
    timeout(Duration::from_secs(60), one.foreign.notified()).await.expect("woken");
    one.commit(vec![commit("a", "2")]).await.unwrap();
    // What was sent before this answer has arrived when the answer has.
    listener.client.simple_query("SELECT 1").await.unwrap();
    assert!(!woken(&one).await, "woken by our own commit");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn processes_that_start_together_migrate_once() {
    let url = testing::database().await;
    let mut starting = JoinSet::new();
    for _ in 0..4 {
        let url = url.clone();
        starting.spawn(async move { Postgres::connect(&url).await.map(|_| ()) });
    }
    assert_eq!(starting.join_all().await, [Ok(()), Ok(()), Ok(()), Ok(())]);
}

#[tokio::test]
async fn a_newer_schema_is_refused() {
    let url = testing::database().await;
    drop(Postgres::connect(&url).await.unwrap());
    sql(&url, "UPDATE argosy.version SET version = 7").await;
    let error = Postgres::connect(&url).await.unwrap_err();
    let Error::Refused(text) = error else { panic!("{error:?}") };
    assert!(text.contains("newer argosy (schema 7, this build knows 1)"), "{text}");
}

#[tokio::test]
async fn what_another_try_does_not_cure_is_refused() {
    let url = testing::database().await;
    let missing = url.replace("argosy_test", "no_such_database");
    for (url, word) in [
        (missing.as_str(), "does not exist"),
        ("postgres://localhost/x?no_such_option=1", "--store"),
        ("not a url", "--store"),
    ] {
        let error = Postgres::connect(url).await.unwrap_err();
        assert!(matches!(&error, Error::Refused(text) if text.contains(word)), "{error:?}");
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_is_unavailable() {
    let error = Postgres::connect("postgres:///x?user=x&host=/nonexistent").await.unwrap_err();
    assert!(matches!(error, Error::Unavailable(_)), "{error:?}");
}

#[tokio::test]
async fn a_read_only_database_says_so_and_is_read() {
    let url = testing::database().await;
    let engine = Postgres::connect(&url).await.unwrap();
    engine.commit(vec![commit("a", "1")]).await.unwrap();
    drop(engine);
    let read_only = "DO $$ BEGIN EXECUTE format(
        'ALTER DATABASE %I SET default_transaction_read_only = on', current_database()); END $$";
    sql(&url, read_only).await;
    let engine = Postgres::connect(&url).await.unwrap();
    let error = engine.commit(vec![commit("b", "1")]).await.unwrap_err();
    assert!(matches!(&error, Error::Unavailable(text) if text.contains("read-only")), "{error:?}");
    assert_eq!(engine.scan(None, 10).await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_killed_backend_is_survived() {
    let url = testing::database().await;
    let engine = Postgres::connect(&url).await.unwrap();
    for number in 1..=3_u64 {
        let one = commit("a", &number.to_string());
        assert!(Revision(number) <= until_served(&engine, &one).await);
        let kill = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                    WHERE datname = current_database() AND pid <> pg_backend_pid()";
        sql(&url, kill).await;
    }
    until_served(&engine, &commit("a", "4")).await;
}

#[tokio::test]
async fn a_commit_that_is_cancelled_leaves_no_transaction_behind() {
    let url = testing::database().await;
    let engine = Postgres::connect(&url).await.unwrap();
    engine.commit(vec![commit("a", "0")]).await.unwrap();
    for _ in 0..20 {
        let cancelled = engine.commit(vec![commit("a", "1")]);
        tokio::select! {
            biased;
            _ = cancelled => {}
            () = tokio::task::yield_now() => {}
        }
    }
    let before = engine.head().await.unwrap();
    assert!(before < until_served(&engine, &commit("a", "2")).await);
}

#[tokio::test]
async fn a_commit_that_waits_too_long_is_given_up_and_the_next_one_works() {
    let url = testing::database().await;
    let impatient = format!("{url}&options=-c%20statement_timeout%3D50");
    let engine = Postgres::connect(&impatient).await.unwrap();
    let (other, driver) = tokio_postgres::connect(&url, NoTls).await.unwrap();
    let held = async {
        other.batch_execute("SELECT pg_advisory_lock(x'6172676f73790002'::bigint)").await.unwrap();
        let error = engine.commit(vec![commit("a", "1")]).await.unwrap_err();
        assert!(matches!(&error, Error::Unavailable(text) if text.contains("answer")), "{error:?}");
        assert_eq!(engine.head().await, Ok(Revision::ZERO), "reads go on");
    };
    tokio::select! {
        () = held => {}
        broken = driver => panic!("the connection ended: {broken:?}"),
    }
    drop(other);
    assert_eq!(until_served(&engine, &commit("a", "2")).await, Revision(1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_restart_under_load_loses_nothing_acknowledged() {
    let server = TestPostgres::start();
    let url = server.database().await;
    let engine = Arc::new(Postgres::connect(&url).await.unwrap());
    let mut writers = JoinSet::new();
    let done = Arc::new(Notify::new());
    for writer in 0..4 {
        let (engine, done) = (engine.clone(), done.clone());
        writers.spawn(async move {
            let mut acknowledged = 0;
            let mut stop = std::pin::pin!(done.notified());
            loop {
                let one = commit(&format!("w{writer}"), &(acknowledged + 1).to_string());
                tokio::select! {
                    biased;
                    () = &mut stop => return acknowledged,
                    _ = until_served(&engine, &one) => acknowledged += 1,
                }
            }
        });
    }
    for round in 0..3 {
        let before = until_served(&engine, &commit("round", &round.to_string())).await;
        if round % 2 == 0 {
            server.stop()
        } else {
            server.kill()
        }
        server.start_again();
        // Served again, by itself, and nothing that was acknowledged is gone.
        assert!(before < until_served(&engine, &commit("round", &round.to_string())).await);
    }
    done.notify_waiters();
    let acknowledged = writers.join_all().await;
    let stored = engine.scan(None, 10).await.unwrap();
    let mut counted: Vec<u64> = stored
        .iter()
        .filter(|document| document.key.id.starts_with('w'))
        .map(|document| document.body.parse().unwrap())
        .collect();
    counted.sort_unstable();
    let mut expected: Vec<u64> = acknowledged.clone();
    expected.sort_unstable();
    // The last one of each may have been stored without its answer having been heard.
    for (counted, expected) in counted.iter().zip(&expected) {
        assert!(expected <= counted && *counted <= expected + 1, "{acknowledged:?} {stored:?}");
    }
    assert_eq!(counted.len(), 4);
    let Changes::Page(page) = engine.changes(Revision::ZERO, usize::MAX).await.unwrap() else {
        panic!("nothing was trimmed");
    };
    let head = engine.head().await.unwrap().0;
    let revisions: Vec<u64> = page.iter().map(|change| change.revision.0).collect();
    assert_eq!(revisions, (1..=head).collect::<Vec<_>>(), "no holes");
}

#[tokio::test]
async fn a_process_that_lost_its_lease_is_fenced() {
    let url = testing::database().await;
    let (one, other) =
        (Postgres::connect(&url).await.unwrap(), Postgres::connect(&url).await.unwrap());
    let hour = SignedDuration::from_hours(1);
    let lease = one.lease("loop", "one", hour).await.unwrap().unwrap();
    let fence = Some(Fence { lease: "loop".to_string(), epoch: lease.epoch });
    let fenced = Commit { fence, ..commit("a", "1") };
    assert!(matches!(one.commit(vec![fenced.clone()]).await.unwrap()[..], [Outcome::Committed(_)]));
    one.lease("loop", "one", SignedDuration::ZERO).await.unwrap().unwrap();
    other.lease("loop", "other", hour).await.unwrap().unwrap();
    assert_eq!(one.commit(vec![fenced]).await.unwrap(), [Outcome::Fenced]);
}
