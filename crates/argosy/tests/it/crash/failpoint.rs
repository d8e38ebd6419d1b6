//! A1, A2, A4: killed exactly there.

use super::load::{Counts, Load};
use crate::harness::{Engine, Profile, Setup};
use argosy_store::failpoint;

/// Where the store dies, and at which hit: the first, and in the middle of things.
fn rows() -> impl Iterator<Item = (&'static str, u64)> {
    let names = failpoint::ALL.iter().chain(failpoint::ABOVE).copied();
    names.flat_map(|name| match name {
        // Once in the life of a store: a test of its own.
        "migrate.before_commit" => vec![],
        // Once a minute, the first time when the process starts.
        "trim.before_commit" => vec![(name, 1)],
        _ => vec![(name, 1), (name, 25)],
    })
}

async fn survives(engine: Engine) {
    let mut server = Setup::new(engine, Profile::Full).start().await;
    let load = Load::start(&server, 4, 1);
    for (name, hit) in rows() {
        load.progress(5).await;
        server.kill9();
        let failpoint = format!("{name}:{hit}");
        server.fail_at(Some(&failpoint));
        // It may die before it listens.
        if server.launch().await.is_ok() {
            let (code, log) = server.ended().await;
            assert_eq!(code, None, "{failpoint}: it was to be killed by its own abort\n{log}");
        }
        server.fail_at(None);
        server.restart().await;
    }
    let Counts { acknowledged, unknown, unanswered } = load.verify(&server).await;
    println!(
        "{engine:?}: {acknowledged} writes acknowledged, {unknown} unknown, {unanswered} of them done"
    );
    assert!(100 <= acknowledged, "void: only {acknowledged} acknowledged writes");
    assert!(6 <= unknown, "void: only {unknown} requests were interrupted");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a1_killed_at_every_failpoint_embedded() {
    survives(Engine::Embedded).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a1_killed_at_every_failpoint_postgres() {
    survives(Engine::Postgres).await;
}

async fn migrates_after_all(engine: Engine) {
    let mut server = Setup::new(engine, Profile::Full).prepare().await;
    server.fail_at(Some("migrate.before_commit"));
    for _ in 0..2 {
        let log = server.launch().await.expect_err("it dies in the migration");
        assert!(!log.contains("listening"), "{log}");
    }
    server.fail_at(None);
    server.launch().await.expect("the migration is begun anew");
    let load = Load::start(&server, 1, 4);
    load.progress(3).await;
    load.verify(&server).await;
}

#[tokio::test]
async fn a4_killed_in_the_middle_of_a_migration_embedded() {
    migrates_after_all(Engine::Embedded).await;
}

#[tokio::test]
async fn a4_killed_in_the_middle_of_a_migration_postgres() {
    migrates_after_all(Engine::Postgres).await;
}
