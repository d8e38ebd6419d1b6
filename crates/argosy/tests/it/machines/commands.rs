//! Instances, providers and pools on the command line and over Navarch's wire, with a fleet that lives.

use super::*;
use crate::harness::{Setup, argosy, run};

#[tokio::test]
async fn a_living_fleet_is_listed_explained_and_returned_by_hand() {
    let server = Setup::embedded().config("machines: { sweep_every: 1s }").start().await;
    let spec =
        json!({ "nodeCount": 3, "machineType": "a3-highgpu-8g", "minNodes": 1, "maxNodes": 6 });
    let cluster = json!({ "provider": "gcp", "region": "us-east1" });
    let path = make(&server, &cluster, "workers", &spec).await;
    let three = settled(&server, &path, 3).await;
    let first = three.first().expect("three").clone();

    // Tables as a person sees them, and what a program reads.
    let table = server.cli(&["instance", "list"]).await;
    has(
        table.expect(0),
        &["INSTANCE", "STATE", "Running", &first, "a3-highgpu-8g", "gcp us-east1"],
    );
    has(&table.err, &["3 instances, 3 running, $264.75 an hour"]);
    let names =
        server.cli(&["instance", "list", "--open", "--pool", "workers", "-o", "name"]).await;
    let expected: BTreeSet<String> = three.iter().map(|id| format!("instance/{id}")).collect();
    assert_eq!(names.expect(0).lines().map(str::to_owned).collect::<BTreeSet<_>>(), expected);
    let none = server.cli(&["instance", "list", "--state", "failed"]).await;
    assert_eq!((none.expect(0), none.err.as_str()), ("", "no instances\n"));
    let page = server.cli(&["instance", "get", &first]).await;
    has(page.expect(0), &[&first, "Running", "workers", "a3-highgpu-8g", "of 3"]);
    let one = server.cli(&["instance", "get", &first, "-o", "json"]).await.json();
    assert_eq!((&one["node_id"], &one["state"]), (&json!(first), &json!("Running")));
    let missing = server.cli(&["instance", "get", "workers-00000000"]).await;
    missing.expect(3);

    let providers = server.cli(&["provider", "list"]).await;
    has(providers.expect(0), &["gcp", "aws", "ok", "264.75"]);
    let providers = server.cli(&["provider", "list", "-o", "json"]).await.json();
    let gcp = providers["items"].as_array().expect("a list").iter().find(|it| it["name"] == "gcp");
    let gcp = gcp.expect("gcp");
    assert_eq!(gcp["instances"]["Running"], 3, "{gcp:#}");
    assert!(gcp["listed_at"].is_string(), "when it was listed last: {gcp:#}");

    let explained = server.cli(&["nodepool", "explain", "default/workers"]).await;
    has(explained.expect(0), &["It is to have 3 nodes", "3 nodes, as the spec says", &first]);
    let explained =
        server.cli(&["nodepool", "explain", "workers", "-c", "default", "-o", "json"]).await;
    assert_eq!(explained.json()["members"].as_array().map(Vec::len), Some(3));

    // Replayed through an autoscaler that it does not have yet.
    let samples: Vec<Value> = (0..12)
        .map(|step| {
            let at = jiff::Timestamp::UNIX_EPOCH + jiff::SignedDuration::from_mins(5 * step);
            json!({ "at": at.to_string(), "nodes": 3, "utilization": if step < 6 { 95 } else { 5 } })
        })
        .collect();
    let file = |name: &str, text: &Value| {
        std::fs::write(server.dir().join(name), text.to_string()).expect("a writable directory");
    };
    file("samples.json", &json!(samples));
    file("reactive.json", &json!({ "type": "reactive", "scaleUpAt": 80, "scaleDownAt": 30 }));
    let args = ["nodepool", "simulate", "default/workers", "--from", "samples.json"];
    let simulated = server.cli(&[&args[..], &["--autoscaling", "reactive.json"]].concat()).await;
    has(simulated.expect(0), &["AT", "SIZE", "BECAUSE", "95"]);
    has(&simulated.err, &["12 samples"]);
    assert_eq!(settled(&server, &path, 3).await, three, "nothing was changed by it");

    // Returned by hand; the pool buys another.
    let args = ["instance", "terminate", &first, "--reason", "wrong rack"];
    server.cli(&args).await.expect(6);
    server.cli(&[&args[..], &["--yes"]].concat()).await.expect(0);
    let record = terminated(&server, &first).await;
    assert_eq!(record["reason"], "Operator", "{record:#}");
    let now = settled(&server, &path, 3).await;
    assert!(!now.contains(&first));

    // Over Navarch's wire, as JSON.
    let list =
        server.post("/navarch.ControlPlaneService/ListInstances", &json!({})).await.expect(200);
    let listed = list["instances"].as_array().expect("a list");
    assert_eq!(listed.len(), 4, "{list:#}");
    let wanted = json!({ "poolName": "workers", "state": "INSTANCE_STATE_RUNNING" });
    let list = server.post("/navarch.ControlPlaneService/ListInstances", &wanted).await.expect(200);
    assert_eq!(list["instances"].as_array().map(Vec::len), Some(3), "{list:#}");
    let wanted = json!({ "instanceId": first });
    let got = server.post("/navarch.ControlPlaneService/GetInstance", &wanted).await.expect(200);
    let got = &got["instance"];
    assert_eq!(got["state"], "INSTANCE_STATE_TERMINATED", "{got:#}");
    assert_eq!(
        (&got["poolName"], &got["instanceType"]),
        (&json!("workers"), &json!("a3-highgpu-8g"))
    );
    let nobody = json!({ "instanceId": "nobody" });
    let reply = server.post("/navarch.ControlPlaneService/GetInstance", &nobody).await;
    assert_eq!((reply.status, &reply.json()["code"]), (404, &json!("not_found")));
}

/// B2: what a store that was restored does not know is told of with its cost, and taken in by hand.
#[tokio::test]
async fn a_machine_that_no_record_knows_is_adopted_by_hand() {
    let mut server = Setup::embedded().config("machines: { sweep_every: 1s }").start().await;
    let spec = json!({ "nodeCount": 1, "machineType": "a3-highgpu-8g" });
    let gcp = json!({ "provider": "gcp", "region": "us-east1" });
    let path = make(&server, &gcp, "workers", &spec).await;
    let kept = settled(&server, &path, 1).await;
    let dir = server.dir().to_owned();
    let in_dir = |args: &[&str]| run(argosy(&dir, args));
    in_dir(&["backup", "--data-dir", "data", "--to", "backup.db"]).await.expect(0);

    // What comes after the backup the cloud knows, and the store will not.
    let (cluster, _) = path.split_once("/nodepools").expect("a pool's path");
    let extra = add_pool(&server, cluster, "extra", &spec).await;
    let both = settled(&server, &extra, 2).await;
    let lost = newcomer(&kept, &both);
    server.stop().await;
    let restore = ["restore", "--from", "backup.db", "--data-dir", "data", "--force", "--yes"];
    in_dir(&restore).await.expect(0);
    server.restart().await;
    let orphan = await_until("it is told of", async || {
        let said = server.cli(&["instance", "list", "--orphans", "-o", "name"]).await;
        said.expect(0).lines().next().map(str::to_owned)
    })
    .await;
    assert!(orphan.starts_with("orphan/gcp/"), "{orphan}");
    // What it costs is known once the price list was read, and the next listing.
    let table = await_until("its cost is told", async || {
        let table = server.cli(&["instance", "list", "--orphans"]).await;
        table.expect(0).contains("88.25").then_some(table)
    })
    .await;
    has(table.expect(0), &["gcp", "a3-highgpu-8g"]);
    has(&table.err, &["1 without a record", "$88.25", "`argosy instance adopt` keeps one"]);

    // The pool is to have one more, and the cloud has none left: the one that is there will do.
    let fault = server.inject(json!({ "kind": "StockOut", "match": "gcp" })).await;
    resize(&server, &path, &json!({ "nodeCount": 2 })).await;
    let adopt = async |orphan: &str, pool: &str, reason: &str| {
        server.cli(&["instance", "adopt", orphan, "--pool", pool, "--reason", reason]).await
    };
    let why = "lost with the old database";
    adopt(&orphan, "default/workers", " ").await.expect(64);
    adopt("gcp", "default/workers", why).await.expect(64);
    let unknown = adopt("gcp/nobody", "default/workers", why).await;
    unknown.expect(3);
    has(&unknown.err, &["argosy instance list --orphans"]);
    adopt(&orphan, "default/nowhere", why).await.expect(3);
    let said = adopt(&orphan, "default/workers", why).await;
    said.expect(0);
    has(&said.err, &[&orphan, &format!("is instance {lost} of pool workers now")]);
    adopt(&orphan, "default/workers", why).await.expect(3);

    let now = settled(&server, &path, 2).await;
    assert_eq!(now, both, "the same two machines as before, and no third");
    let none = server.cli(&["instance", "list", "--orphans"]).await;
    assert_eq!(
        (none.expect(0), none.err.as_str()),
        ("", "no orphans: every machine with our tags has a record\n")
    );
    server.clear(fault).await;
    // It is the pool's like any other, and goes with it, once nothing of the restore is waited for.
    let confirm = ["recovery", "confirm", "workers", "--reason", "all is known", "--yes"];
    server.cli(&confirm).await.expect(0);
    delete(&server, &path).await;
    assert_eq!(server.cloud_machines().await, Vec::<Value>::new());
}
