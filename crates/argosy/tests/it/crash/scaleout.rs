//! A4, B1, B7: the database goes away, and several processes share it.

use super::load::Load;
use crate::harness::{Engine, Profile, Server, Setup, await_until, text};
use argosy_scaleout::testing::{TestPostgres, database};
use reqwest::Method;
use serde_json::{Value, json};
use std::collections::BTreeSet;

fn on(url: &str) -> Setup {
    Setup::new(Engine::Postgres, Profile::Full).on_store(url)
}

fn cluster(name: &str) -> Value {
    json!({ "name": name, "spec": { "provider": "gcp", "region": "us-east1", "nodeCount": 1 } })
}

#[tokio::test]
async fn a4_two_servers_that_start_together_migrate_once() {
    let url = database().await;
    let (first, second) = tokio::join!(on(&url).start(), on(&url).start());
    let created = first.create("clusters", &cluster("shared")).await;
    let path = format!("clusters/{}", text(&created, "/id"));
    await_until("the other server has seen it", async || {
        (second.get(&path).await.status == 200).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b1_a_restart_of_the_database_under_load_loses_nothing() {
    let postgres = TestPostgres::start();
    let server = on(&postgres.database().await).start().await;
    let load = Load::start(&server, 4, 11);
    for stop in [TestPostgres::stop, TestPostgres::kill] {
        load.progress(20).await;
        stop(&postgres);
        let refused = await_until("writes are refused", async || {
            let request = server.request(Method::POST, "clusters").json(&cluster("refused"));
            let reply = server.send(request).await;
            (reply.status == 503).then_some(reply)
        });
        assert_eq!(refused.await.header("retry-after"), "1");
        await_until("it is not ready", async || {
            (server.get("/readyz").await.status == 503).then_some(())
        })
        .await;
        server.get("/healthz").await.expect(200);
        server.get("clusters").await.expect(200);
        postgres.start_again();
        await_until("it is ready", async || {
            (server.get("/readyz").await.status == 200).then_some(())
        })
        .await;
    }
    load.progress(20).await;
    println!("{:?}", load.verify(&server).await);
}

/// The epochs in which a server reconciled, as far as it has said so. Which of two leads is for the store's clock
/// to say: on a machine that is busy enough, one that nobody killed may lose its lease, too.
fn epochs(server: &Server) -> BTreeSet<u64> {
    let log = server.log();
    let said = log.lines().filter_map(|line| line.split_once("reconciling epoch="));
    said.map(|(_, epoch)| epoch.trim().parse().expect("a number")).collect()
}

/// How often a server noticed that it reconciles no more.
fn noticed(server: &Server) -> usize {
    server.log().matches("another process reconciles now").count()
}

/// Waits until a server reconciles, later than anybody in `before`; since which epoch.
async fn leads_after(server: &Server, before: &BTreeSet<u64>) -> u64 {
    let last = before.last().copied().unwrap_or(0);
    await_until("it leads", async || epochs(server).into_iter().find(|epoch| last < *epoch)).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b7_when_the_leader_is_killed_another_process_takes_over() {
    let url = database().await;
    let mut leader = on(&url).start().await;
    leads_after(&leader, &BTreeSet::new()).await;
    let follower = on(&url).start().await;
    let mut load = Load::of_clusters(&follower, 4, 12);
    load.progress(20).await;
    let before = epochs(&leader);
    assert!(before.is_disjoint(&epochs(&follower)), "two lead");
    leader.kill9();
    load.stop().await;
    leads_after(&follower, &before).await;
    load.verify(&follower).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b7_a_leader_that_was_paused_is_fenced_off_when_it_wakes() {
    let url = database().await;
    let leader = on(&url).start().await;
    leads_after(&leader, &BTreeSet::new()).await;
    let follower = on(&url).start().await;
    let mut load = Load::of_clusters(&follower, 4, 13);
    load.progress(20).await;
    leader.signal("STOP");
    load.stop().await;
    let before = epochs(&leader);
    let since = leads_after(&follower, &before).await;
    leader.signal("CONT");
    await_until("the first has noticed", async || {
        let over = epochs(&leader).into_iter().filter(|epoch| *epoch < since).count();
        (over <= noticed(&leader)).then_some(())
    })
    .await;
    load.verify(&follower).await;
    assert!(epochs(&leader).is_disjoint(&epochs(&follower)), "two led at once");
}
