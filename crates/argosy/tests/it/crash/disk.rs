//! A4, A6, A7, A8: the disk is full, broken, damaged, or somebody else's.

use super::load::Load;
use crate::harness::{Engine, Profile, Server, Setup, argosy, await_until, command};
use serde_json::{Value, json};
use std::io::Write;
use std::path::PathBuf;

fn cluster(name: &str) -> Value {
    json!({ "name": name, "spec": { "provider": "gcp", "region": "us-east1", "nodeCount": 1 } })
}

/// The reason a server gives for not starting.
async fn refusal(server: &mut Server) -> String {
    server.launch().await.expect_err("it refuses to start")
}

#[tokio::test]
async fn a_second_process_on_the_same_data_is_refused() {
    let server = Setup::embedded().start().await;
    let second = argosy(server.dir(), &["server", "--data-dir", "data", "--listen", "127.0.0.1:0"]);
    let second = command::run(second).await;
    assert_eq!(second.code, Some(1), "{second:?}");
    assert!(second.err.contains("is in use by another argosy (process "), "{}", second.err);
    assert!(second.err.contains("stop it, or choose another --data-dir"), "{}", second.err);
    server.create("clusters", &cluster("undisturbed")).await;
}

#[tokio::test]
async fn a4_data_of_a_newer_argosy_is_refused() {
    let mut server = Setup::embedded().start().await;
    assert_eq!(server.stop().await, Some(0));
    let database = server.dir().join("data/argosy.db");
    // The schema's number is the four bytes at 60, the most significant first.
    let mut bytes = std::fs::read(&database).expect("a database");
    bytes[60..64].copy_from_slice(&999_u32.to_be_bytes());
    std::fs::write(&database, &bytes).expect("a writable file");
    let start = argosy(server.dir(), &["server", "--data-dir", "data", "--listen", "127.0.0.1:0"]);
    let refused = command::run(start).await;
    assert_eq!(refused.code, Some(1), "{refused:?}");
    let sentence = "was written by a newer argosy (schema 999, this build knows";
    assert!(refused.err.contains(sentence), "{}", refused.err);
    assert!(refused.err.contains("start the newer version, or restore a backup"));
    assert_eq!(std::fs::read(&database).expect("a database"), bytes, "it was not touched");
}

/// Whether this machine lets us run a program.
fn can(words: &[&str]) -> bool {
    let ran = std::process::Command::new(words[0]).args(&words[1..]).output();
    ran.is_ok_and(|ran| ran.status.success())
}

/// A file that takes all the room there is on the server's small disk.
struct Ballast(PathBuf);

impl Ballast {
    fn fill(path: PathBuf) -> Self {
        let mut file = std::fs::File::create(&path).expect("a name in the directory");
        for size in [64 * 1024, 1024, 1] {
            while file.write_all(&vec![0; size]).is_ok() {}
        }
        Self(path)
    }
}

impl Drop for Ballast {
    fn drop(&mut self) {
        std::fs::remove_file(&self.0).expect("it was made");
    }
}

#[tokio::test]
async fn a6_a_full_disk_stops_writes_and_nothing_else_and_heals() {
    // A disk of its own, which ends with the process.
    let disk = r#"mkdir -p data && mount -t tmpfs -o size=16m argosy data && exec "$@""#;
    let wrapper = ["unshare", "--mount", "sh", "-c", disk, "sh"];
    if !can(&["unshare", "--mount", "true"]) {
        println!("not run: mounting a small disk needs root");
        return;
    }
    let server = Setup::embedded().without_cloud().wrapped_in(&wrapper).start().await;
    let kept = server.create("clusters", &cluster("kept")).await;
    let data = format!("/proc/{}/root{}/data", server.process_id(), server.dir().display());
    let ballast = Ballast::fill(PathBuf::from(data).join("ballast"));
    // What room is left in the log's last page may still take a few.
    let full = await_until("the disk is full", async || {
        let number = server.count("clusters").await.0;
        let reply = server.post("clusters", &cluster(&format!("small-{number}"))).await;
        (reply.status != 201).then_some(reply)
    });
    let full = full.await.refused(507, &json!({ "title": "Insufficient Storage" }));
    assert!(full["hint"].is_string(), "{full:#}");
    let path = format!("clusters/{}", kept["id"].as_str().expect("an id"));
    assert_eq!(server.get(&path).await.expect(200)["spec"], kept["spec"]);
    let (count, _) = server.count("clusters").await;
    server.get("/healthz").await.expect(200);
    server.get("/readyz").await.expect(200);
    drop(ballast);
    await_until("writes are taken again", async || {
        let reply = server.post("clusters", &cluster("after-all")).await;
        (reply.status == 201).then_some(())
    })
    .await;
    assert_eq!(server.count("clusters").await.0, count + 1, "what was refused is not there");
}

#[tokio::test]
async fn a7_a_flipped_bit_is_found_and_a_backup_brings_the_store_back() {
    let mut server = Setup::embedded().start().await;
    let load = Load::start(&server, 2, 7);
    load.progress(40).await;
    load.verify(&server).await;
    let before = server.get("clusters?size=1000").await.expect(200);
    assert_eq!(server.stop().await, Some(0));
    let backup = ["backup", "--data-dir", "data", "--to", "backup.db"];
    command::run(argosy(server.dir(), &backup)).await.expect(0);

    let database = server.dir().join("data/argosy.db");
    let mut bytes = std::fs::read(&database).expect("a database");
    // In every page but the first: a start reads all documents, and only them.
    let page = 4096;
    for at in (page + page / 16..bytes.len()).step_by(page / 8) {
        bytes[at] ^= 1;
    }
    std::fs::write(&database, &bytes).expect("a writable file");

    let log = refusal(&mut server).await;
    assert!(log.contains("argosy.db is damaged: "), "{log}");
    assert!(log.contains("argosy restore --force --from BACKUP --data-dir "), "{log}");
    assert_eq!(std::fs::read(&database).expect("a database"), bytes, "it was not touched");

    let restore = ["restore", "--from", "backup.db", "--data-dir", "data", "--force", "--yes"];
    command::run(argosy(server.dir(), &restore)).await.expect(0);
    server.launch().await.expect("the backup is sound");
    // The list itself has a later revision: nodes say that they are there.
    let after = server.get("clusters?size=1000").await.expect(200);
    assert_eq!(after["items"], before["items"]);
    server.cli(&["audit", "verify"]).await.expect(0);
}

#[tokio::test]
async fn a8_after_a_failed_fsync_the_process_ends_and_nothing_acknowledged_is_lost() {
    let (calls, fault) = ("trace=fdatasync,fsync", "inject=fdatasync,fsync:error=EIO:when=40+");
    let wrapper = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", calls, "-e", fault];
    if !can(&["strace", "-qq", "-o", "/dev/null", "true"]) {
        println!("not run: strace is not installed, or may not trace");
        return;
    }
    let mut server = Setup::new(Engine::Embedded, Profile::Full).wrapped_in(&wrapper).start().await;
    let load = Load::start(&server, 2, 8);
    let (code, log) = server.ended().await;
    assert_eq!(code, Some(1), "{log}");
    assert!(log.contains("nothing more can be written after a failure"), "{log}");
    server.unwrap();
    server.restart().await;
    load.progress(10).await;
    load.verify(&server).await;
}
