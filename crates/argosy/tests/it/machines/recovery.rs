//! Review 1, V1, on the real program: a restore of an old backup ends nothing that runs.

use super::*;
use crate::harness::{Setup, argosy, run};

/// What `argosy recovery show` says of the pool, once it is known; `None` if it is not in recovery.
async fn forecast(server: &crate::harness::Server) -> Option<Value> {
    let shown = server.cli(&["recovery", "show", "-o", "json"]).await.json();
    shown["items"].as_array().expect("a list").first().cloned()
}

#[tokio::test]
async fn r1_v1_a_restore_terminates_nothing_before_it_is_confirmed() {
    let settings =
        "machines: { sweep_every: 1s }\nnodes: { drain_for: 1s, fleet: { amnesty: 5s } }";
    let mut server = Setup::embedded().config(settings).start().await;
    let spec = json!({ "nodeCount": 4, "machineType": "n1-standard-4" });
    let gcp = json!({ "provider": "gcp", "region": "us-east1" });
    let path = make(&server, &gcp, "workers", &spec).await;
    settled(&server, &path, 4).await;
    let dir = server.dir().to_owned();
    let in_dir = |args: &[&str]| run(argosy(&dir, args));
    in_dir(&["backup", "--data-dir", "data", "--to", "backup.db"]).await.expect(0);
    resize(&server, &path, &json!({ "nodeCount": 40 })).await;
    let all = settled(&server, &path, 40).await;
    let none = server.cli(&["recovery", "show"]).await;
    assert_eq!((none.expect(0), none.err.as_str()), ("", "no node pool is in recovery\n"));

    server.stop().await;
    let restore = ["restore", "--from", "backup.db", "--data-dir", "data", "--force", "--yes"];
    let restored = in_dir(&restore).await;
    restored.expect(0);
    has(&restored.err, &["its node pools are in recovery", "argosy recovery show"]);
    server.restart().await;

    let known = await_until("it is known what would be done", async || {
        forecast(&server).await.filter(|it| it["waits_for"].is_null() && it["terminate"] != 0)
    })
    .await;
    assert_eq!((&known["terminate"], &known["buy"]), (&json!(36), &json!(0)), "{known:#}");
    assert_eq!(known["steps"].as_array().map(Vec::len), Some(36));
    assert_eq!(known["steps"][0]["reason"], "the pool needs fewer nodes");
    let running = ids(&open(&server).await);
    assert_eq!(running, all, "every machine has its record, under its own id");
    assert_eq!(server.cloud_machines().await.len(), 40, "and none was ended");
    let table = server.cli(&["recovery", "show"]).await;
    has(table.expect(0), &["In recovery: the store was restored", "workers", "36", "confirmation"]);
    let one = all.first().expect("one").clone();
    let refused = server.cli(&["instance", "terminate", &one, "--reason", "x", "--yes"]).await;
    has(&refused.err, &["argosy recovery confirm workers"]);
    let metrics = server.get("/metrics").await.text;
    has(&metrics, &["argosy_recovery_pools 1"]);

    server.cli(&["recovery", "confirm", "nobody", "--reason", "x"]).await.expect(3);
    let confirm = ["recovery", "confirm", "workers", "--reason", "four are enough", "--yes"];
    let confirmed = server.cli(&confirm).await;
    confirmed.expect(0);
    has(
        &confirmed.err,
        &["36 machines are terminated, 36 of them drained first", "has left recovery"],
    );
    let four = settled(&server, &path, 4).await;
    assert!(four.is_subset(&all));
    let gone = all.difference(&four).next().expect("one that is gone");
    let walked = walk(&server, gone).await;
    assert!(walked.ends_with(&["DRAINING".to_owned(), "TERMINATED".to_owned()]), "{walked:?}");
    assert_eq!(forecast(&server).await, None);
}
