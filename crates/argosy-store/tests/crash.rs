//! A process that is killed at every failpoint leaves a store in which nothing acknowledged is
//! missing and nothing is half done.

use argosy_store::embedded::Embedded;
use argosy_store::engine::{
    Append, Changes, Commit, Engine, Expect, Key, Outcome, Put, Retention, Revision,
};
use argosy_store::failpoint;
use std::path::Path;
use std::process::Command;

/// Names the directory to the process that is to be killed: this test, run again by itself.
const DIR: &str = "ARGOSY_CRASH_DIR";
const NAME: &str = "killed_anywhere_nothing_acknowledged_is_lost";

/// Two documents and an entry that all say `number`.
fn commit(number: u64) -> Commit {
    let put = |id: &str| Put {
        key: Key::new("cluster", id),
        expect: Expect::Any,
        body: Some(number.to_string().into()),
    };
    Commit {
        puts: vec![put("left"), put("right")],
        appends: vec![Append {
            stream: "audit".to_string(),
            subject: "cluster".to_string(),
            body: number.to_string().into(),
        }],
        ..Commit::default()
    }
}

async fn write_until_killed(dir: &Path) {
    let engine = Embedded::open(dir).expect("the directory is ours");
    let acknowledge =
        |number: u64| std::fs::write(dir.join("acknowledged"), number.to_string()).expect("room");
    let head = engine.head().await.expect("the store is readable").0;
    // What was read once may not be lost either.
    acknowledge(head);
    // Far more than any failpoint waits for: one that is never hit fails, and does not hang.
    for number in head + 1..=head + 100 {
        let outcomes = engine.commit(vec![commit(number)]).await.expect("the store is there");
        assert_eq!(outcomes, [Outcome::Committed(Revision(number))]);
        acknowledge(number);
        let retention = Retention { changes_kept: 5, streams: vec![] };
        engine.trim(&retention).await.expect("the store is there");
    }
}

fn run_until_killed(dir: &Path, failpoint: &str) {
    let child = Command::new(std::env::current_exe().expect("this test"))
        .args(["--exact", NAME])
        .env(DIR, dir)
        .env("ARGOSY_FAILPOINT", failpoint)
        .output()
        .expect("this test runs again");
    let signal = std::os::unix::process::ExitStatusExt::signal(&child.status);
    assert_eq!(signal, Some(6), "{failpoint}: {}", String::from_utf8_lossy(&child.stdout));
}

async fn check(dir: &Path, failpoint: &str) {
    let acknowledged = std::fs::read_to_string(dir.join("acknowledged")).unwrap_or_default();
    let acknowledged: u64 = acknowledged.parse().unwrap_or(0);
    let engine = Embedded::open(dir).expect("the store is readable");
    let head = engine.head().await.expect("the store is readable").0;
    assert!(acknowledged <= head && head <= acknowledged + 1, "{failpoint}: {acknowledged} {head}");
    let documents = engine.scan(None, 10).await.expect("the store is readable");
    let bodies: Vec<&str> = documents.iter().map(|document| &*document.body).collect();
    let last = head.to_string();
    let expected = if head == 0 { vec![] } else { vec![&*last, &*last] };
    assert_eq!(bodies, expected, "{failpoint}: both or none");
    let sequence = engine
        .stream_head("audit")
        .await
        .expect("the store is readable")
        .map_or(0, |(sequence, _)| sequence);
    assert_eq!(sequence, head, "{failpoint}");
    let floor = match engine.changes(Revision::ZERO, 100).await.expect("the store is readable") {
        Changes::Page(_) => Revision::ZERO,
        Changes::Gone(floor) => floor,
    };
    let Changes::Page(page) = engine.changes(floor, 100).await.expect("the store is readable")
    else {
        panic!("gone")
    };
    let revisions: Vec<u64> = page.iter().map(|change| change.revision.0).collect();
    assert_eq!(revisions, (floor.0 + 1..=head).collect::<Vec<_>>(), "{failpoint}: no holes");
}

#[tokio::test]
async fn killed_anywhere_nothing_acknowledged_is_lost() {
    if let Some(dir) = std::env::var_os(DIR) {
        return write_until_killed(Path::new(&dir)).await;
    }
    let name = format!("argosy-crash-{}", std::process::id());
    let dir = std::env::temp_dir().join(name);
    for name in failpoint::ALL {
        let _ = std::fs::remove_dir_all(&dir);
        // There is one migration in the life of a store; the rest also in the middle of its life.
        let hits: &[u64] = if *name == "migrate.before_commit" { &[1] } else { &[1, 9, 1] };
        for hit in hits {
            let failpoint = format!("{name}:{hit}");
            run_until_killed(&dir, &failpoint);
            check(&dir, &failpoint).await;
        }
    }
    let _ = std::fs::remove_dir_all(&dir);
}
