//! Disruption budgets hold for people and programs: what is answered to requests that take nodes out of service.

use crate::world::{Answer, NODES, World};
use futures_util::future::join_all;
use serde_json::{Value, json};

const OWN: &str = "/api/argosy/v1";

/// A pool of so many new nodes, of which one may be out of service: they warm up, and are in no percentage yet.
async fn pool_of(count: usize) -> (World, Vec<String>) {
    let world = World::new().await;
    let ids: Vec<String> = (1..=count).map(|place| format!("gpu-{place:02}")).collect();
    for id in &ids {
        world.node(id).await;
    }
    (world, ids)
}

async fn tell(world: &World, id: &str, kind: &str) -> Answer {
    tell_with(world, id, json!({ "type": kind, "reason": "a test" })).await
}

async fn tell_with(world: &World, id: &str, body: Value) -> Answer {
    world.json(&format!("POST {NODES}/{id}/commands"), body).await
}

async fn batch(world: &World, who: &str, query: &str, body: Value) -> Answer {
    let line = format!("POST {OWN}/commands{query}");
    world.send(who, &line, &[("content-type", "application/json")], body.to_string()).await
}

fn statuses(answers: &[Answer]) -> Vec<u16> {
    answers.iter().map(|answer| answer.status.as_u16()).collect()
}

async fn status(world: &World, id: &str) -> String {
    let node = world.get(&format!("{NODES}/{id}")).await.body;
    node["status"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn r2_a11_twelve_terminations_of_a_pool_of_twelve_end_one() {
    let (world, ids) = pool_of(12).await;
    let mut answers = Vec::new();
    for id in &ids {
        answers.push(tell(&world, id, "TERMINATE").await);
    }
    assert_eq!(statuses(&answers), [&[201][..], &[409; 11]].concat());
    let refused = &answers[1].body;
    assert_eq!(refused["code"], "HYPERFLEET-CNF-005");
    let budgets = refused["budgets"].as_array().unwrap();
    let pool = budgets.iter().find(|budget| budget["scope"] == "pool/one/h100").unwrap();
    let numbers = ["allowed", "used", "asked"].map(|name| pool[name].as_u64().unwrap());
    assert_eq!(numbers, [1, 1, 1], "{pool}");
    assert_eq!((&pool["exceeded"], &pool["out"][0]["node_id"]), (&json!(true), &json!("gpu-01")));
    assert_eq!(
        (&pool["out"][0]["how"], &pool["out"][0]["by"]),
        (&json!("terminated"), &json!("admin"))
    );
    assert!(pool["frees"].as_str().unwrap().contains("argosy node delete gpu-01"), "{pool}");
    // Its place is given up, so there is room again.
    assert_eq!(world.send("admin", &format!("DELETE {NODES}/gpu-01"), &[], "").await.status, 204);
    assert_eq!(tell(&world, "gpu-02", "TERMINATE").await.status, 201);
    // Another node takes the place of one that ended.
    world.node("gpu-13").await;
    assert_eq!(tell(&world, "gpu-03", "DRAIN").await.status, 201);
    assert_eq!(tell(&world, "gpu-04", "DRAIN").await.status, 409);
    // One that is out already is taken out once.
    assert_eq!(tell(&world, "gpu-03", "TERMINATE").await.status, 201);
}

#[tokio::test]
async fn r2_a11_twelve_at_once_end_one() {
    let (world, ids) = pool_of(12).await;
    let answers = join_all(ids.iter().map(|id| tell(&world, id, "TERMINATE"))).await;
    let mut statuses = statuses(&answers);
    statuses.sort_unstable();
    assert_eq!(statuses, [&[201][..], &[409; 11]].concat());
}

#[tokio::test]
async fn r2_a11_a_batch_fits_or_nobody_is_told() {
    let (world, ids) = pool_of(12).await;
    let body = |nodes: &[String]| json!({ "nodes": nodes, "type": "TERMINATE", "reason": "sold" });
    for query in ["?dry_run=true", ""] {
        let refused = batch(&world, "admin", query, body(&ids)).await;
        assert_eq!(refused.status, 409, "{}", refused.text);
        assert_eq!(refused.body["budgets"][0]["asked"], 12, "{}", refused.text);
    }
    for id in &ids {
        assert_ne!(status(&world, id).await, "TERMINATED");
    }
    let one = batch(&world, "operator", "", body(&ids[..1])).await;
    assert_eq!((one.status.as_u16(), &one.body["commands"][0]["node_id"]), (201, &json!("gpu-01")));
    // Only an administrator, and only with a reason.
    let over = |reason: &str| json!({ "nodes": ids[1..], "type": "TERMINATE", "reason": reason, "over_budget": true });
    assert_eq!(batch(&world, "operator", "", over("sold")).await.status, 403);
    assert_eq!(batch(&world, "admin", "", over("")).await.status, 400);
    let dry = batch(&world, "admin", "?dry_run=true", over("sold")).await;
    assert_eq!((dry.status.as_u16(), dry.header("dry-run")), (201, "true"));
    assert_eq!(status(&world, "gpu-02").await, "ACTIVE");
    let done = batch(&world, "admin", "", over("sold")).await;
    assert_eq!(done.body["commands"].as_array().unwrap().len(), 11, "{}", done.text);
    assert_eq!(dry.body["budgets"], done.body["budgets"]);
    assert!(done.body["warnings"][0].as_str().unwrap().starts_with("exceeds"), "{}", done.text);
    let audit = world.get(&format!("{OWN}/audit?limit=100")).await.body;
    let excess = audit["items"].as_array().unwrap().iter();
    let excess: Vec<&Value> = excess.filter(|item| item["action"] == "over-budget").collect();
    assert_eq!(excess.len(), 1, "{audit}");
    assert!(
        excess[0]["reason"].as_str().unwrap().starts_with("sold: fleet: 1 node may"),
        "{}",
        excess[0]
    );
    let metrics = world.get("/metrics").await.text;
    assert!(metrics.contains("argosy_commands_over_budget_total 1\n"), "{metrics}");
}

#[tokio::test]
async fn r2_a11_a_batch_tells_whom_it_can_and_is_carried_out_once() {
    let (world, _) = pool_of(3).await;
    assert_eq!(tell(&world, "gpu-01", "TERMINATE").await.status, 201);
    let body = json!({ "nodes": ["gpu-01", "gpu-02", "nobody"], "type": "CORDON", "reason": "x" });
    let headers = [("content-type", "application/json"), ("idempotency-key", "rack-7")];
    let line = format!("POST {OWN}/commands");
    let first = world.send("operator", &line, &headers, body.to_string()).await;
    assert_eq!(first.status, 201, "{}", first.text);
    let refused: Vec<(&Value, &Value)> = first.body["refused"]
        .as_array()
        .unwrap()
        .iter()
        .map(|refusal| (&refusal["node_id"], &refusal["problem"]["status"]))
        .collect();
    assert_eq!(refused, [(&json!("gpu-01"), &json!(409)), (&json!("nobody"), &json!(404))]);
    let again = world.send("operator", &line, &headers, body.to_string()).await;
    assert_eq!(again.body["commands"][0]["id"], first.body["commands"][0]["id"], "{}", again.text);
    for (nodes, status) in [(json!([]), 400), (json!(["gpu-02", "gpu-02"]), 400)] {
        let body = json!({ "nodes": nodes, "type": "CORDON" });
        assert_eq!(batch(&world, "admin", "", body).await.status, status, "{nodes}");
    }
}

#[tokio::test]
async fn r2_a11_a_cordon_is_counted_and_warned_about() {
    let (world, _) = pool_of(12).await;
    let first = tell(&world, "gpu-01", "CORDON").await;
    assert_eq!((first.status.as_u16(), first.body.get("warnings")), (201, None), "{}", first.text);
    let second = tell(&world, "gpu-02", "CORDON").await;
    assert_eq!(second.status, 201);
    let warning = second.body["warnings"][0].as_str().unwrap();
    assert!(warning.contains("gpu-01 cordoned by admin"), "{warning}");
    // Counted: what would disrupt more has to wait.
    assert_eq!(tell(&world, "gpu-03", "DRAIN").await.status, 409);
    assert_eq!(tell(&world, "gpu-01", "UNCORDON").await.status, 201);
    assert_eq!(tell(&world, "gpu-02", "DRAIN").await.status, 201, "it is the one that is out");
}

#[tokio::test]
async fn r2_a11_a_test_that_occupies_the_gpus_counts_until_it_ends() {
    let (world, _) = pool_of(12).await;
    let test = |test: &str| json!({ "type": "RUN_DIAGNOSTIC", "parameters": { "test": test } });
    assert_eq!(tell_with(&world, "gpu-01", test("stress")).await.status, 201);
    assert_eq!(tell_with(&world, "gpu-02", test("quick")).await.status, 201);
    let refused = tell_with(&world, "gpu-03", test("memory")).await;
    assert_eq!(refused.status, 409, "{}", refused.text);
    assert_eq!(refused.body["budgets"][0]["out"][0]["how"], "tested", "{}", refused.text);
    let brakes = world.get(&format!("{OWN}/safety")).await.body;
    assert_eq!(
        (&brakes["budgets"][0]["used"], &brakes["budgets"][0]["out"]),
        (&json!(0), &json!(1))
    );
}
