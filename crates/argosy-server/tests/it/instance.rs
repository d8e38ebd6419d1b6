//! Machines over REST and Navarch's RPC: what is shown, to whom, and what is written down when somebody acts.

use crate::world::{CLUSTERS, World};
use argosy_core::instance::Instance;
use argosy_core::inventory::{Frozen, Installation, Orphan, ProviderBook};
use argosy_core::pool::PoolBook;
use argosy_store::Txn;
use jiff::Timestamp;
use serde_json::{Value, json};
use std::sync::Arc;

const OWN: &str = "/api/argosy/v1";
const AT: &str = "2026-03-01T12:00:00Z";
const US: &str = "01890a5d-ac96-774b-bcce-b302099a8057";

fn read<T: serde::de::DeserializeOwned>(value: Value) -> Arc<T> {
    Arc::new(serde_json::from_value(value).unwrap())
}

fn record(id: &str, pool: &str, tenant: &str, number: u32, state: Value) -> Arc<Instance> {
    read(json!({
        "id": id, "tenant": tenant, "pool": pool, "pool_name": "prod.workers", "number": number,
        "token": US, "ordered_at": AT, "why": "the pool wants 3 nodes", "state": state,
        "order": { "provider": "aws", "region": "us-east-1", "machine_type": "p5.48xlarge",
                   "price_per_hour": 98.0 },
    }))
}

/// A pool with three machines: one runs, one is ordered, one never registered; an orphan; a frozen provider.
async fn fleet() -> (World, String) {
    let world = World::new().await;
    let cluster = json!({ "name": "prod", "spec": { "provider": "aws", "region": "us-east-1" } });
    assert_eq!(world.json(&format!("POST {CLUSTERS}"), cluster).await.status, 201);
    let pool = json!({ "name": "workers", "labels": { "team": "alpha" },
                       "spec": { "nodeCount": 3, "machineType": "p4d.24xlarge" } });
    let pool = world.json(&format!("POST {CLUSTERS}/prod/nodepools"), pool).await;
    assert_eq!(pool.status, 201, "{}", pool.text);
    let pool = pool.body["uid"].as_str().unwrap().to_owned();
    let mut txn = Txn::at(Timestamp::UNIX_EPOCH);
    let running = json!({ "state": "running", "machine": "i-1", "node": "w-1", "since": AT });
    txn.create(record("w-1", &pool, "one", 1, running));
    txn.create(record("w-2", &pool, "one", 2, json!({ "state": "provisioning", "calls": 1 })));
    txn.create(record(
        "w-3",
        &pool,
        "one",
        3,
        json!({ "state": "failed", "at": AT, "console": "panic",
        "failure": { "reason": "RegistrationTimeout", "message": "its node did not register" } }),
    ));
    let elsewhere = json!({ "state": "awaiting_node", "machine": "i-9", "since": AT });
    txn.create(record("x-1", US, "two", 1, elsewhere));
    txn.overwrite(Arc::new(Installation {
        id: US.parse().unwrap(),
        since: Timestamp::UNIX_EPOCH,
        incarnation: argosy_core::incarnation::Incarnation::default(),
    }));
    txn.create(read::<Orphan>(json!({
        "provider": "aws", "machine": "i/7", "name": "w-7", "region": "us-east-1", "zone": "",
        "machine_type": "p5.48xlarge", "price_per_hour": 98.0, "first_seen": AT,
        "tags": { "installation": US, "pool": pool, "instance": "w-7" },
    })));
    let frozen =
        Frozen { since: Timestamp::UNIX_EPOCH, expected: 3, found: 0, message: "empty".into() };
    let book = ProviderBook { name: "aws".into(), frozen: Some(frozen), ..ProviderBook::default() };
    txn.create(Arc::new(book));
    txn.create(read::<PoolBook>(json!({
        "pool": pool, "stale_in_a_row": 3, "target": 4,
        "paused": { "since": AT, "generation": 1, "reason": "RegistrationUnhealthy", "message": "look" },
        "decisions": [{ "at": AT, "from": 3, "to": 4, "reason": "jobs wait" }],
    })));
    world.store.commit(txn).await.unwrap();
    (world, pool)
}

async fn ids(world: &World, list: &str) -> String {
    let answer = world.get(&format!("{OWN}/{list}")).await;
    assert_eq!(answer.status, 200, "{list}: {}", answer.text);
    let items = answer.body["items"].as_array().unwrap();
    items.iter().map(|item| item["id"].as_str().unwrap()).collect::<Vec<_>>().join(" ")
}

#[tokio::test]
async fn instances_are_listed_found_and_belong_to_their_pools_team() {
    let (world, pool) = fleet().await;
    for (list, expected) in [
        ("instances", "w-1 w-2 w-3"),
        ("instances?state=Running", "w-1"),
        ("instances?pool=prod.workers&provider=aws", "w-1 w-2 w-3"),
        ("instances?search=open%20%3D%20true&order=number%20desc", "w-2 w-1"),
        ("instances?search=cost_per_hour%20%3E%2090", "w-1 w-2"),
        ("instances?node_id=w-1", "w-1"),
    ] {
        assert_eq!(ids(&world, list).await, expected, "{list}");
    }
    let one = world.get(&format!("{OWN}/instances/i-1")).await;
    assert_eq!((one.status.as_u16(), &one.body["id"]), (200, &json!("w-1")), "by its machine");
    assert_eq!(one.body["state"], "Running");
    assert_eq!((&one.body["pool_id"], &one.body["node_id"]), (&json!(pool), &json!("w-1")));
    assert_eq!(one.body["cost_per_hour"], 98.0);
    let failed = world.get(&format!("{OWN}/instances/w-3")).await.body;
    assert_eq!(
        (&failed["reason"], &failed["console"]),
        (&json!("RegistrationTimeout"), &json!("panic"))
    );
    assert_eq!(failed.get("cost_per_hour"), None, "what is over costs nothing");
    for (who, status) in [("rival", 403), ("stranger", 404), ("viewer", 200), ("fleet", 403)] {
        let answer = world.send(who, &format!("GET {OWN}/instances/w-1"), &[], "").await;
        assert_eq!(answer.status, status, "{who}: {}", answer.text);
    }
    assert_eq!(world.get(&format!("{OWN}/instances/x-1")).await.status, 404, "another tenant's");
    assert_eq!(world.get(&format!("{OWN}/instances?search=stat%3D1")).await.status, 400);
}

#[tokio::test]
async fn f16_a_termination_is_written_down_with_its_reason_and_once() {
    let (world, _) = fleet().await;
    let line = format!("POST {OWN}/instances/w-1/terminate");
    assert_eq!(world.json(&line, json!({})).await.status, 400, "nobody says why");
    assert_eq!(world.json(&line, json!({ "reason": " " })).await.status, 400);
    let viewer = world.send("viewer", &line, &[], r#"{"reason":"x"}"#).await;
    assert_eq!(viewer.status, 403, "{}", viewer.text);
    let ended = world.json(&line, json!({ "reason": "wrong zone" })).await;
    assert_eq!(ended.status, 202, "{}", ended.text);
    assert_eq!(
        (&ended.body["state"], &ended.body["reason"]),
        (&json!("Terminating"), &json!("Operator"))
    );
    let again = world.json(&line, json!({ "reason": "again" })).await;
    assert_eq!((again.status.as_u16(), &again.body["revision"]), (202, &ended.body["revision"]));
    let over =
        world.json(&format!("POST {OWN}/instances/w-3/terminate"), json!({ "reason": "x" })).await;
    assert_eq!(over.status, 409, "{}", over.text);
    let audit = world.get(&format!("{OWN}/audit?limit=1")).await.body;
    assert_eq!(audit["items"][0]["action"], "terminate", "{audit}");
    assert_eq!(audit["items"][0]["reason"], "wrong zone");
}

#[tokio::test]
async fn an_orphan_is_shown_with_its_cost_and_reaped_or_adopted_on_request_only() {
    let (world, pool) = fleet().await;
    let orphans = world.get(&format!("{OWN}/orphans")).await.body;
    assert_eq!(
        (&orphans["cost_per_hour"], &orphans["items"][0]["machine_id"]),
        (&json!(98.0), &json!("i/7"))
    );
    let rival = world.send("rival", &format!("GET {OWN}/orphans"), &[], "").await.body;
    assert_eq!(rival["items"], json!([]));
    let reap = format!("POST {OWN}/orphans/aws/i%2F7/reap");
    let operator = world.send("operator", &reap, &[], r#"{"reason":"x"}"#).await;
    assert_eq!(operator.status, 403, "only an admin may: {}", operator.text);
    let adopt = json!({ "provider": "aws", "machine_id": "i/7", "nodepool": "workers",
                        "cluster": "prod", "reason": "lost" });
    let adopted = world.json(&format!("POST {OWN}/instances/adopt"), adopt.clone()).await;
    assert_eq!(adopted.status, 201, "{}", adopted.text);
    assert_eq!((&adopted.body["id"], &adopted.body["number"]), (&json!("w-7"), &json!(3)));
    assert_eq!(
        (&adopted.body["pool_id"], &adopted.body["state"]),
        (&json!(pool), &json!("AwaitingNode"))
    );
    assert_eq!(
        world.json(&format!("POST {OWN}/instances/adopt"), adopt).await.status,
        404,
        "it has a record"
    );
    assert_eq!(world.json(&reap, json!({ "reason": "x" })).await.status, 404);
}

#[tokio::test]
async fn g11_a_frozen_provider_is_shown_and_thawed_by_an_admin() {
    let (world, _) = fleet().await;
    let shown = world.get(&format!("{OWN}/providers")).await.body;
    let aws = &shown["items"][0];
    assert_eq!((&aws["name"], &aws["configured"]), (&json!("aws"), &json!(false)));
    assert_eq!((&aws["frozen"]["expected"], &aws["orphans"]), (&json!(3), &json!(1)));
    assert_eq!(aws["instances"], json!({ "Running": 1, "Provisioning": 1 }));
    let line = format!("POST {OWN}/providers/aws/thaw");
    assert_eq!(world.send("operator", &line, &[], r#"{"reason":"x"}"#).await.status, 403);
    for released in [true, false] {
        let thawed = world.json(&line, json!({ "reason": "they are gone" })).await;
        assert_eq!(thawed.body, json!({ "released": released }), "{}", thawed.text);
    }
    let unknown =
        world.json(&format!("POST {OWN}/providers/asw/thaw"), json!({ "reason": "x" })).await;
    assert_eq!(unknown.status, 404, "{}", unknown.text);
}

#[tokio::test]
async fn a_pool_is_explained_simulated_and_resumed() {
    let (world, pool) = fleet().await;
    let path = format!("{OWN}/nodepools/{pool}");
    let why = world.get(&format!("{path}/explain")).await;
    assert_eq!(why.status, 200, "{}", why.text);
    assert_eq!((&why.body["asked"], &why.body["target"]), (&json!(3), &json!(4)));
    assert_eq!(why.body["members"].as_array().unwrap().len(), 3);
    assert_eq!(why.body["decisions"][0]["reason"], "jobs wait");
    assert_eq!(why.body["paused"]["reason"], "RegistrationUnhealthy");
    for released in [true, false] {
        let resumed =
            world.json(&format!("POST {path}/resume"), json!({ "reason": "mended" })).await;
        assert_eq!(resumed.body, json!({ "released": released }), "{}", resumed.text);
    }
    assert_eq!(world.get(&format!("{path}/history")).await.body["items"], json!([]));
    let simulate = format!("POST {path}/simulate");
    assert_eq!(world.json(&simulate, json!({})).await.status, 400, "it has no autoscaling");
    let autoscaling = json!({ "type": "reactive", "scaleUpAt": 80, "scaleDownAt": 20 });
    let nothing = world.json(&simulate, json!({ "autoscaling": autoscaling })).await;
    assert_eq!(nothing.status, 409, "nothing was measured: {}", nothing.text);
    let sample = |minute: u32, utilization: f64| {
        let at = format!("2026-03-01T12:{minute:02}:00Z");
        json!({ "at": at, "nodes": 2, "utilization": utilization })
    };
    let history: Vec<Value> = (0..30).map(|minute| sample(minute, 95.0)).collect();
    let asked = json!({ "autoscaling": autoscaling, "history": history, "min": 1, "max": 6 });
    let ran = world.json(&simulate, asked.clone()).await;
    assert_eq!(ran.status, 200, "{}", ran.text);
    assert!(ran.body["summary"]["changes"].as_u64().unwrap() > 0, "{}", ran.text);
    let mut wrong = asked;
    wrong["history"][3]["utilization"] = json!(95_000.0);
    wrong["max"] = json!(0);
    let wrong = world.json(&simulate, wrong).await;
    assert_eq!(wrong.status, 400, "min is more than max: {}", wrong.text);
    let bad = json!({ "autoscaling": { "type": "magic" }, "history": [] });
    assert_eq!(world.json(&simulate, bad).await.status, 400);
}
