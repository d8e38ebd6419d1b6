//! The command line against a real server, as people and scripts use it.

mod node;

mod workload;

use crate::harness::{Engine, PATIENCE, Profile, Server, Setup, TestDir, argosy, run, text};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::process::Stdio;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::ChildStdout;
use tokio::task::JoinSet;

const ALPHA: [&str; 7] =
    ["cluster", "create", "alpha", "--provider", "gcp", "--region", "us-east1"];

async fn with_alpha() -> Server {
    let server = Setup::embedded().start().await;
    let mut args = ALPHA.to_vec();
    args.extend(["-l", "team=ml", "--wait"]);
    server.cli(&args).await.expect(0);
    server
}

#[tokio::test]
async fn create_waits_and_shows_each_adapters_lane() {
    let server = Setup::embedded().start().await;
    let mut args = ALPHA.to_vec();
    args.push("--wait");
    let made = server.cli(&args).await;
    made.expect(0);
    for word in ["validation", "dns", "infrastructure", "is Ready after"] {
        assert!(made.err.contains(word), "{}", made.err);
    }
    assert!(!made.err.contains('\u{1b}') && !made.out.contains('\u{1b}'), "no colour in a pipe");
    let pool = [
        "nodepool",
        "create",
        "workers",
        "-c",
        "alpha",
        "--machine-type",
        "n1-standard-4",
        "--nodes",
        "3",
        "--wait",
    ];
    let made = server.cli(&pool).await;
    made.expect(0);
    assert!(made.err.contains("machines"), "{}", made.err);
    assert_eq!(server.get("nodepools").await.expect(200)["items"][0]["status"]["phase"], "Ready");
}

#[tokio::test]
async fn resources_are_printed_in_every_form() {
    let server = with_alpha().await;
    for args in [["cluster", "list"].as_slice(), &["cluster", "get", "alpha"]] {
        let with = async |format: &str| {
            let mut args = args.to_vec();
            args.extend(["-o", format]);
            server.cli(&args).await.expect(0).to_owned()
        };
        let table = with("table").await;
        assert!(
            table.starts_with("NAME") && table.contains("alpha") && table.contains("Ready"),
            "{table}"
        );
        let wide = with("wide").await;
        let columns =
            |table: &str| table.lines().next().map_or(0, |line| line.split_whitespace().count());
        assert!(columns(&table) < columns(&wide), "{wide}");
        assert_eq!(with("name").await, "cluster/alpha\n");
        let printed: Value = serde_json::from_str(&with("json").await).expect("JSON");
        let item = if printed["items"].is_array() { &printed["items"][0] } else { &printed };
        assert_eq!((text(item, "/name"), text(item, "/labels/team")), ("alpha", "ml"));
        let yaml = with("yaml").await;
        assert!(yaml.contains("name: alpha") && yaml.contains("region: us-east1"), "{yaml}");
        let plain = server.cli(args).await;
        assert_eq!(plain.expect(0).lines().next(), table.lines().next(), "a table by default");
    }
    let none = server.cli(&["cluster", "list", "-l", "team=other", "-o", "name"]).await;
    assert_eq!(none.expect(0), "");
    for query in [["--phase", "Ready"], ["-l", "team=ml"], ["--filter", "spec.region = 'us-east1'"]]
    {
        let mut args = vec!["cluster", "list", "-o", "name"];
        args.extend(query);
        assert_eq!(server.cli(&args).await.expect(0), "cluster/alpha\n");
    }
    let statuses = server.cli(&["cluster", "statuses", "alpha"]).await;
    for word in ["validation", "dns", "infrastructure", "Complete"] {
        assert!(statuses.expect(0).contains(word), "{}", statuses.out);
    }
}

#[tokio::test]
async fn exit_codes_say_what_happened() {
    let server = with_alpha().await;
    let revision = server.get("clusters/alpha").await.expect(200)["revision"].clone();
    server.cli(&["cluster", "patch", "alpha", "-l", "a=b"]).await.expect(0);
    server.deny("gcp", "compute.networks.create").await;
    let stuck = ["cluster", "create", "stuck", "--provider", "gcp", "--region", "us-east1"];
    server.cli(&stuck).await.expect(0);
    let stale = revision.to_string();
    let rows: [(i32, &[&str], &str); 12] = [
        (3, &["cluster", "get", "alhpa"], "alpha"),
        (3, &["nodepool", "get", "alpha/nope"], "not found"),
        (3, &["wait", "cluster/nope"], "not found"),
        (5, &ALPHA, "exists already"),
        (5, &["cluster", "patch", "alpha", "-l", "a=c", "--if-match", &stale], "changed"),
        (6, &["cluster", "delete", "alpha"], "--yes"),
        (7, &["cluster", "list", "--server", "http://127.0.0.1:1"], "cannot reach"),
        (
            8,
            &["wait", "cluster/stuck", "--for", "Ready", "--timeout", "300ms"],
            "is not Ready after",
        ),
        (1, &["wait", "cluster/stuck", "--for", "Ready", "--fail-fast"], "compute.networks.create"),
        (64, &["cluster", "list", "--colour"], "--colour"),
        (64, &["cluster", "create", "beta", "--set", "nonsense"], "KEY=VALUE"),
        (1, &["cluster", "create", "Beta", "--provider", "gcp"], "name"),
    ];
    for (code, args, word) in rows {
        let ran = server.cli(args).await;
        assert_eq!(ran.code, Some(code), "{args:?}: {ran:?}");
        assert!(ran.err.contains(word), "{args:?}: {}", ran.err);
        assert_eq!(ran.out, "", "errors go to standard error");
    }
    server.cli(&["wait", "cluster/alpha", "--for", "condition=DnsSuccessful"]).await.expect(0);
    server.cli(&["wait", "cluster/gone", "--for", "deleted"]).await.expect(0);
}

#[tokio::test]
async fn exit_code_4_means_not_signed_in_or_not_allowed() {
    let server = Setup::embedded()
        .tokens(json!([{ "token": "vic-secret", "name": "vic", "role": "viewer" }]))
        .token("vic-secret")
        .start()
        .await;
    let unknown = server.cli(&["cluster", "list"]).await;
    unknown.expect(4);
    assert!(unknown.err.contains("ARGOSY_TOKEN"), "{}", unknown.err);
    let with_token = |args: &[&str]| {
        let mut command = argosy(server.dir(), args);
        command.env("ARGOSY_SERVER", server.url()).env("ARGOSY_TOKEN", "vic-secret");
        run(command)
    };
    with_token(&["cluster", "list"]).await.expect(0);
    let denied = with_token(&ALPHA).await;
    denied.expect(4);
    assert!(!denied.err.contains("vic-secret"), "{}", denied.err);
}

const FLEET: &str = "\
kind: Cluster
name: alpha
labels: { team: ml }
spec: { provider: gcp, region: us-east1 }
---
kind: NodePool
cluster: alpha
name: workers
spec: { machineType: n1-standard-4, nodeCount: 3 }
---
kind: Cluster
name: beta
spec: { provider: aws, region: us-east-1 }
";

#[tokio::test]
async fn apply_makes_what_files_say_and_shows_the_difference_first() {
    let server = Setup::embedded().start().await;
    let file = server.dir().join("fleet.yaml");
    std::fs::write(&file, FLEET).expect("a writable directory");
    let file = file.to_str().expect("a path");
    let dry = server.cli(&["apply", "-f", file, "--dry-run"]).await;
    assert!(dry.expect(2).contains("3 to create, 0 to change"), "{}", dry.out);
    assert_eq!(server.count("clusters").await.0, 0, "nothing was made");
    server.cli(&["diff", "-f", file]).await.expect(2);
    // Nobody at a terminal to be asked.
    server.cli(&["apply", "-f", file]).await.expect(6);
    server.cli(&["apply", "-f", file, "--yes"]).await.expect(0);
    assert_eq!(server.count("clusters").await.0, 2);
    assert_eq!(server.count("nodepools").await.0, 1);
    server.cli(&["diff", "-f", file]).await.expect(0);
    server.cli(&["apply", "-f", file, "--dry-run"]).await.expect(0);

    std::fs::write(file, FLEET.replace("nodeCount: 3", "nodeCount: 5")).expect("a writable file");
    let diff = server.cli(&["diff", "-f", file]).await;
    assert!(diff.expect(2).contains("spec.nodeCount: 3 → 5"), "{}", diff.out);
    server.cli(&["apply", "-f", file, "--yes"]).await.expect(0);
    server.cli(&["wait", "nodepool/alpha/workers"]).await.expect(0);
    // A mistake in the last document, and nothing of the first is made.
    let wrong = FLEET.replace("name: alpha", "name: gamma").replace("us-east-1", "mars");
    std::fs::write(file, wrong).expect("a writable file");
    let refused = server.cli(&["apply", "-f", file, "--yes"]).await;
    assert_ne!(refused.code, Some(0), "{refused:?}");
    assert!(refused.err.contains("mars"), "{}", refused.err);
    assert_eq!(server.count("clusters").await.0, 2);
}

#[tokio::test]
async fn delete_takes_a_cluster_with_its_pools() {
    let server = with_alpha().await;
    let pool = ["nodepool", "create", "workers", "-c", "alpha", "--nodes", "1", "--wait"];
    server.cli(&pool).await.expect(0);
    server.cli(&["nodepool", "delete", "alpha/workers", "--yes", "--wait"]).await.expect(0);
    assert_eq!(server.count("nodepools").await.0, 0);
    server.cli(&["cluster", "delete", "alpha", "--yes", "--wait"]).await.expect(0);
    server.cli(&["cluster", "get", "alpha"]).await.expect(3);
}

/// Reads events until one fits.
async fn until(lines: &mut Lines<BufReader<ChildStdout>>, fits: impl Fn(&Value) -> bool) -> Value {
    let reading = async {
        loop {
            let line = lines.next_line().await.expect("text").expect("the watch goes on");
            let event: Value = serde_json::from_str(&line).expect("a line of JSON");
            if fits(&event) {
                return event;
            }
        }
    };
    tokio::time::timeout(PATIENCE, reading).await.expect("the event comes")
}

#[tokio::test]
async fn watch_prints_lines_of_json_and_survives_a_restart() {
    let mut server = with_alpha().await;
    let mut command = argosy(server.dir(), &["cluster", "watch"]);
    command.env("ARGOSY_SERVER", server.url()).stdout(Stdio::piped());
    let mut watch = command.spawn().expect("the program can be run");
    let mut lines = BufReader::new(watch.stdout.take().expect("piped")).lines();
    let named = |name: &'static str, kind: &'static str| {
        move |event: &Value| event["object"]["name"] == name && event["type"] == kind
    };
    until(&mut lines, named("alpha", "ADDED")).await;
    server.restart().await;
    server.cli(&["cluster", "create", "beta"]).await.expect(0);
    let added = until(&mut lines, named("beta", "ADDED")).await;
    assert!(added["revision"].is_u64(), "{added}");
    server.cli(&["cluster", "delete", "alpha", "--yes"]).await.expect(0);
    until(&mut lines, named("alpha", "DELETED")).await;
    watch.kill().await.expect("our own child");
}

#[tokio::test]
async fn audit_lists_who_did_what() {
    let server = with_alpha().await;
    server.cli(&["cluster", "patch", "alpha", "-l", "a=b"]).await.expect(0);
    let list = server.cli(&["audit", "list", "-o", "json"]).await.json();
    let actions: Vec<&str> = list["items"]
        .as_array()
        .expect("items")
        .iter()
        .map(|entry| text(entry, "/action"))
        .collect();
    assert!(actions.contains(&"create") && actions.contains(&"patch"), "{actions:?}");
    let table = server.cli(&["audit", "list"]).await;
    assert!(table.expect(0).starts_with("SEQ"), "{}", table.out);
    let verified = server.cli(&["audit", "verify"]).await;
    verified.expect(0);
    assert!(verified.err.contains("nobody changed them"), "{}", verified.err);
}

/// The checksum of an entry's row, which only guards against accidents: whoever edits a row on
/// purpose can make it right again.
fn checksum(texts: &[&str], numbers: &[i64]) -> i64 {
    let mut hash = Sha256::new();
    for text in texts {
        hash.update((text.len() as u64).to_be_bytes());
        hash.update(text);
    }
    for number in numbers {
        hash.update(number.to_be_bytes());
    }
    i64::from_be_bytes(*hash.finalize().first_chunk().expect("32 bytes"))
}

#[tokio::test]
async fn k11_an_audit_row_that_was_edited_is_found() {
    let mut server = with_alpha().await;
    server.stop().await;
    let file = server.dir().join("data/argosy.db");
    {
        let db = rusqlite::Connection::open(&file).expect("a database");
        let edited = db.execute_batch("").and_then(|()| {
            db.query_row(
                "SELECT sequence, subject, at, revision, body, previous, hash FROM entry
                 WHERE stream = 'audit' AND body LIKE '%\"create\"%' ORDER BY sequence LIMIT 1",
                [],
                |row| {
                    let (sequence, at, revision): (i64, i64, i64) =
                        (row.get(0)?, row.get(2)?, row.get(3)?);
                    let (subject, body): (String, String) = (row.get(1)?, row.get(4)?);
                    let (previous, hash): (String, String) = (row.get(5)?, row.get(6)?);
                    let body = body.replace("\"create\"", "\"nothing\"");
                    let texts = ["audit", &subject, &body, &previous, &hash];
                    Ok((sequence, body.clone(), checksum(&texts, &[sequence, revision, at])))
                },
            )
        });
        let (sequence, body, checksum) = edited.expect("the entry of the creation");
        let update =
            "UPDATE entry SET body = ?2, checksum = ?3 WHERE stream = 'audit' AND sequence = ?1";
        let changed = db.execute(update, rusqlite::params![sequence, body, checksum]);
        assert_eq!(changed.expect("a writable database"), 1);
    }
    server.restart().await;
    let found = server.cli(&["audit", "verify"]).await;
    found.expect(1);
    assert!(found.err.contains("the audit log was changed: record"), "{}", found.err);
    let said = server.cli(&["audit", "verify", "-o", "json"]).await;
    let said: Value = serde_json::from_str(&said.out).expect("JSON");
    assert_eq!(text(&said, "/broken/problem"), "it was changed after it was written");
}

#[tokio::test]
async fn k11_audit_rows_in_postgresql_are_guarded_as_well() {
    for (statement, problem) in [
        (
            "UPDATE argosy.entry SET body = replace(body, '\"create\"', '\"nothing\"') WHERE stream = 'audit'",
            "it was changed after it was written",
        ),
        (
            "DELETE FROM argosy.entry WHERE stream = 'audit' AND sequence = 2",
            "the entries after 1 are missing",
        ),
    ] {
        let server = Setup::new(Engine::Postgres, Profile::Full).start().await;
        server.cli(&[&ALPHA[..], &["--wait"]].concat()).await.expect(0);
        server.cli(&["audit", "verify"]).await.expect(0);
        let (client, connection) = tokio_postgres::connect(server.store(), tokio_postgres::NoTls)
            .await
            .expect("a database");
        let mut tasks = JoinSet::new();
        tasks.spawn(connection);
        assert!(0 < client.execute(statement, &[]).await.expect("an owner's rights"));
        let found = server.cli(&["audit", "verify"]).await;
        found.expect(1);
        assert!(found.err.contains(problem), "{}", found.err);
    }
}

#[tokio::test]
async fn a_backup_brings_back_what_was_there() {
    let mut server = with_alpha().await;
    let dir = server.dir().to_owned();
    let in_dir = |args: &[&str]| run(argosy(&dir, args));
    // While the server runs: one moment of its store.
    in_dir(&["backup", "--data-dir", "data", "--to", "backup.db"]).await.expect(0);
    let again = in_dir(&["backup", "--data-dir", "data", "--to", "backup.db"]).await;
    assert_ne!(again.code, Some(0), "an earlier backup is kept: {again:?}");
    server.cli(&["cluster", "create", "beta"]).await.expect(0);
    let restore = ["restore", "--from", "backup.db", "--data-dir", "data", "--force", "--yes"];
    let busy = in_dir(&restore).await;
    assert_ne!(busy.code, Some(0), "under a running server nothing is replaced: {busy:?}");
    assert_eq!(server.count("clusters").await.0, 2);
    server.stop().await;
    // What is there is not overwritten by accident.
    let refused = in_dir(&["restore", "--from", "backup.db", "--data-dir", "data"]).await;
    assert_ne!(refused.code, Some(0), "{refused:?}");
    in_dir(&restore).await.expect(0);
    server.restart().await;
    assert_eq!(server.cli(&["cluster", "list", "-o", "name"]).await.expect(0), "cluster/alpha\n");
    server.cli(&["audit", "verify"]).await.expect(0);
    server.cli(&["cluster", "create", "gamma"]).await.expect(0);
}

#[tokio::test]
async fn a_server_ends_cleanly_when_it_is_asked_to() {
    let mut server = with_alpha().await;
    // A watch that is open does not hold it up.
    let watch = server.request(reqwest::Method::GET, "clusters?watch=true").send().await;
    let watch = watch.expect("an answer");
    assert_eq!(server.stop().await, Some(0));
    drop(watch);
    server.restart().await;
    assert_eq!(server.cli(&["cluster", "list", "-o", "name"]).await.expect(0), "cluster/alpha\n");
}

#[tokio::test]
async fn a_second_server_does_not_open_the_same_store() {
    let server = with_alpha().await;
    let args = ["server", "--data-dir", "data", "--listen", "127.0.0.1:0"];
    let refused = run(argosy(server.dir(), &args)).await;
    refused.expect(1);
    assert!(refused.err.contains("the store cannot be used"), "{}", refused.err);
    server.cli(&["cluster", "get", "alpha"]).await.expect(0);
}

#[tokio::test]
async fn a_wrong_configuration_is_refused_with_the_nearest_key() {
    let dir = TestDir::new();
    let file = dir.join("argosy.yaml");
    std::fs::write(&file, "lisen: 127.0.0.1:0\n").expect("a writable directory");
    for args in [&["server", "--config", "argosy.yaml"][..], &["config", "check", "argosy.yaml"]] {
        let refused = run(argosy(dir.path(), args)).await;
        refused.expect(64);
        assert!(refused.err.contains("lisen") && refused.err.contains("listen"), "{}", refused.err);
    }
}
