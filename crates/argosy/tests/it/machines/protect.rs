//! Review 2 through the real program: what a deletion, a label and a pause keep. Each row by its ID.

use super::process::Yard;
use super::*;
use crate::harness::{Server, Setup, TestDir};
use argosy_control::clock::Clock;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

const LABEL: &str = "argosy.dev/protected";

/// Machines are agents on this host whose hook keeps a drain waiting until there is a file `done`.
async fn busy(dir: &TestDir) -> Yard {
    let hook = dir.join("hook");
    let done = dir.join("done");
    // It ends by itself, should nobody be left to end it.
    let text = format!(
        "#!/bin/sh\n[ \"$1\" = drain ] || exit 0\nfor i in $(seq 600); do [ -e {} ] && exit 0; sleep 0.2; done\n",
        done.display()
    );
    std::fs::write(&hook, text).expect("a writable directory");
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&hook, mode).expect("our file");
    let (agent, hook) = (agent(), hook.display());
    let setup = Setup::embedded().without_cloud().config(&format!(
        "providers: {{ local: {{ type: process }} }}\n\
         machines: {{ agent: {{ path: {} }}, agent_args: [--hook, {hook}] }}\n\
         nodes: {{ heartbeat: 1s, stream_heartbeat: 1s }}",
        agent.display()
    ));
    Yard::of(setup.start().await, "local")
}

/// For so long, the machines are those.
async fn stay(yard: &Yard, machines: &BTreeSet<String>, time: Duration) {
    let began = Clock::System.monotonic();
    await_until("the time is over", async || {
        assert_eq!(&yard.alive().into_keys().collect::<BTreeSet<_>>(), machines, "{}", yard.log());
        (time <= Clock::System.monotonic().saturating_sub(began)).then_some(())
    })
    .await;
}

async fn deleted(api: &Api, path: &str, query: &str) -> u16 {
    api.delete(&format!("{path}?{query}")).await.status
}

#[tokio::test]
async fn r2_m4_busy_nodes_have_their_drain_and_nothing_has_to_wait_for_none() {
    let dir = TestDir::new();
    let yard = busy(&dir).await;
    let cluster = json!({ "provider": "local", "region": "local" });
    let spec = json!({ "nodeCount": 3, "machineType": "gpu-8x", "drainFor": "10m" });
    let path = make(&yard, &cluster, "workers", &spec).await;
    let three = settled(&yard, &path, 3).await;

    let began = Clock::System.monotonic();
    let reply = yard.delete(&path).await.expect(202);
    assert_eq!(reply["status"]["phase"], "Terminating", "{reply:#}");
    stay(&yard, &three, Duration::from_secs(5)).await;
    for id in &three {
        let record = instance(&yard, id).await;
        assert_eq!(record["departure"]["reason"], "PoolDeleted", "{record:#}");
    }
    std::fs::write(dir.join("done"), "").expect("a writable directory");
    yard.gone(&path).await;
    assert!(yard.alive().is_empty());
    println!(
        "DELETE of 3 busy nodes to gone: {:?}",
        Clock::System.monotonic().saturating_sub(began)
    );

    let cluster = path.split("/nodepools").next().expect("a cluster").to_owned();
    // What runs there has ended already, or nothing has begun.
    let idle = add_pool(&yard, &cluster, "idle", &spec).await;
    settled(&yard, &idle, 3).await;
    let began = Clock::System.monotonic();
    yard.delete(&idle).await.expect(202);
    yard.gone(&idle).await;
    println!(
        "DELETE of 3 idle nodes to gone: {:?}",
        Clock::System.monotonic().saturating_sub(began)
    );
    let early = add_pool(&yard, &cluster, "early", &spec).await;
    let began = Clock::System.monotonic();
    yard.delete(&early).await.expect(202);
    yard.gone(&early).await;
    println!(
        "DELETE of a pool that was made a moment ago to gone: {:?}",
        Clock::System.monotonic().saturating_sub(began)
    );
    assert!(yard.alive().is_empty());
    let began = Clock::System.monotonic();
    yard.delete(&cluster).await.expect(202);
    yard.gone(&cluster).await;
    println!(
        "DELETE of a cluster where nothing runs to gone: {:?}",
        Clock::System.monotonic().saturating_sub(began)
    );
}

#[tokio::test]
async fn r2_m4_an_admin_ends_a_drain_that_has_begun() {
    let dir = TestDir::new();
    let yard = busy(&dir).await;
    let cluster = json!({ "provider": "local", "region": "local" });
    let spec = json!({ "nodeCount": 2, "machineType": "gpu-8x", "drainFor": "10m" });
    let path = make(&yard, &cluster, "workers", &spec).await;
    let two = settled(&yard, &path, 2).await;
    yard.delete(&path).await.expect(202);
    stay(&yard, &two, Duration::from_secs(3)).await;
    let refused = yard.delete(&format!("{path}?now=true")).await;
    assert_eq!(refused.status, 400, "{}", refused.text);
    has(&refused.text, &["reason=TEXT"]);
    let args = ["nodepool", "delete", "default/workers", "--now", "--yes"];
    yard.cli(&args).await.expect(64);
    let args = [&args[..], &["--reason", "the power is off"]].concat();
    let began = Clock::System.monotonic();
    yard.cli(&args).await.expect(0);
    yard.gone(&path).await;
    println!("DELETE with now=true to gone: {:?}", Clock::System.monotonic().saturating_sub(began));
    assert!(yard.alive().is_empty());
    let audit = yard.cli(&["audit", "list", "-o", "json"]).await;
    has(audit.expect(0), &["the power is off"]);
}

/// A server with an operator and an admin.
async fn with_roles(more: &str) -> Server {
    let tokens = json!([
        { "token": "admin-secret", "name": "root", "role": "admin" },
        { "token": "ann-secret", "name": "ann", "role": "operator" },
    ]);
    let setup = Setup::embedded().tokens(tokens).config(more);
    setup.token("ann-secret").start().await
}

#[tokio::test]
async fn r2_m19_what_is_protected_is_ended_by_force_of_an_admin_alone() {
    let server = with_roles("deletion: { protect: true }").await;
    let (ann, root) = (&server, server.with_token("admin-secret"));
    let cluster = json!({ "provider": "gcp", "region": "us-east1" });
    let spec = json!({ "nodeCount": 3, "machineType": "n1-standard-4" });
    let path = make(ann, &cluster, "workers", &spec).await;
    let three = settled(ann, &path, 3).await;
    let whole = path.split("/nodepools").next().expect("a cluster").to_owned();
    for one in [&path, &whole] {
        let shown = ann.get(one).await.expect(200);
        assert_eq!(shown["labels"][LABEL], "true", "{shown:#}");
        let refused = ann.delete(one).await;
        assert_eq!(refused.status, 409, "{}", refused.text);
        has(&refused.text, &[LABEL, "Take the label off", "force=true"]);
        assert_eq!(deleted(ann, one, "force=true&reason=x").await, 403);
        assert_eq!(deleted(ann, one, "now=true&reason=x").await, 403);
        assert_eq!(deleted(&root, one, "now=true&reason=x").await, 409);
        assert_eq!(deleted(&root, one, "force=true").await, 400);
    }
    let fewer = json!({ "spec": { "nodeCount": 1 } });
    assert_eq!(ann.patch(&path, &fewer).await.status, 409);
    let first = three.first().expect("three");
    let body = json!({ "reason": "wrong rack" });
    let terminate = format!("{OWN}/instances/{first}/terminate");
    assert_eq!(ann.post(&terminate, &body).await.status, 409);
    let command = json!({ "type": "TERMINATE", "reason": "wrong rack" });
    assert_eq!(ann.post(&format!("{OWN}/nodes/{first}/commands"), &command).await.status, 409);
    assert_eq!(settled(ann, &path, 3).await, three, "nothing went");

    // A person takes the label off; that of a node is as good.
    let off = json!({ "labels": { LABEL: null } });
    ann.patch(&path, &off).await.expect(200);
    ann.patch(&whole, &off).await.expect(200);
    let protection = format!("{OWN}/nodes/{first}/protection");
    ann.put(&protection, &json!({ "reason": "runs the acceptance test" })).await.expect(200);
    assert_eq!(ann.delete(&path).await.status, 409);
    ann.patch(&path, &fewer).await.expect(200);
    let left = settled(ann, &path, 1).await;
    assert_eq!(left, BTreeSet::from([first.clone()]), "the others went");
    ann.delete(&format!("{protection}?reason=it+is+over")).await.expect(200);
    delete(ann, &path).await;
}

#[tokio::test]
async fn r2_m20_a_pause_is_of_one_pool_and_ends_with_it() {
    let server = Setup::embedded().start().await;
    let cluster = json!({ "provider": "gcp", "region": "us-east1" });
    let made = server.create("clusters", &json!({ "name": "prod", "spec": cluster })).await;
    let cluster = format!("clusters/{}", text(&made, "/id"));
    server.ready(&cluster).await;
    let spec = json!({ "nodeCount": 2, "machineType": "n1-standard-4" });
    let path = add_pool(&server, &cluster, "gold", &spec).await;
    settled(&server, &path, 2).await;
    let paused = server.cli(&["pause", "--pool", "gold", "--reason", "incident 1"]).await;
    paused.expect(0);
    has(&paused.err, &["paused for pool prod.gold", "argosy resume --pool prod.gold"]);
    server.cli(&["pause", "--pool", "silver", "--reason", "incident 1"]).await.expect(1);
    let kept = open(&server).await.pop().map(|it| text(&it, "/id").to_owned()).expect("two");
    let reason = ["--reason", "runs the acceptance test"];
    server.cli(&[&["node", "protect", &kept][..], &reason].concat()).await.expect(0);
    let refused = server.cli(&["nodepool", "delete", "prod/gold", "--yes"]).await;
    has(&refused.err, &["its node", &kept, "argosy node unprotect"]);
    refused.expect(5);
    server.cli(&[&["node", "unprotect", &kept][..], &reason].concat()).await.expect(0);
    delete(&server, &path).await;
    let safety = server.get(&format!("{OWN}/safety")).await.expect(200);
    assert_eq!(safety["pauses"], json!([]), "{safety:#}");
    let path = add_pool(&server, &cluster, "gold", &spec).await;
    settled(&server, &path, 2).await;
    resize(&server, &path, &json!({ "nodeCount": 1 })).await;
    settled(&server, &path, 1).await;
}
