//! Nodes, commands and policies over REST: what is answered, row by row.

use crate::world::{Answer, NODES, World, admin};
use argosy_control::node::Heartbeat;
use argosy_control::pulse::{GpuSample, Sample, Via};
use argosy_core::health::HealthState;
use serde_json::{Value, json};

const OWN: &str = "/api/argosy/v1";

async fn beat(world: &World, id: &str, sample: Option<Sample>) {
    let beat = Heartbeat { sample, ..Heartbeat::default() };
    world.control.nodes.heartbeat(&admin(), id, Via::Call, beat).unwrap();
}

async fn tell(world: &World, id: &str, kind: &str) -> Answer {
    let body = json!({ "type": kind, "reason": "a test" });
    world.json(&format!("POST {NODES}/{id}/commands"), body).await
}

/// The ids of a list, and how many match in all: `a b of 3`.
async fn ids(world: &World, list: &str, member: &str) -> String {
    let answer = world.get(&format!("{OWN}/{list}")).await;
    assert_eq!(answer.status, 200, "{list}: {}", answer.text);
    let items = answer.body["items"].as_array().unwrap();
    assert_eq!(answer.body["size"], items.len());
    let ids: Vec<&str> = items.iter().map(|item| item[member].as_str().unwrap()).collect();
    format!("{} of {}", ids.join(" "), answer.body["total"])
}

/// Four nodes: one well, one sick, one cordoned, one of another pool.
async fn fleet() -> World {
    let world = World::new().await;
    for id in ["a-well", "b-sick", "c-held"] {
        world.node(id).await;
    }
    world
        .node_with("d-other", |other| {
            other.pool = Some("a100".to_owned());
            other.place.zone = "us-east1-c".into();
            other.labels.insert("rack".to_owned(), "r8".to_owned());
        })
        .await;
    world.report("a-well", HealthState::Healthy, &[]).await;
    world.report("b-sick", HealthState::Unhealthy, &[79]).await;
    assert_eq!(tell(&world, "c-held", "CORDON").await.status, 201);
    world
}

#[tokio::test]
async fn a_node_is_shown_with_what_is_known_of_it() {
    let world = World::new().await;
    world.node("gpu-1").await;
    let path = format!("{NODES}/gpu-1");
    let first = world.get(&path).await;
    assert_eq!(first.status, 200, "{}", first.text);
    let node = &first.body;
    assert_eq!((&node["kind"], &node["href"]), (&json!("Node"), &json!(path)));
    assert_eq!((&node["status"], &node["pool"]), (&json!("ACTIVE"), &json!("h100")));
    assert_eq!(node["gpus"].as_array().unwrap().len(), 2);
    let tag = first.header("etag").to_owned();
    assert_eq!(tag, format!("\"{}\"", node["revision"]));

    let gpu =
        GpuSample { index: 0, temperature: Some(61), power: Some(300), ..GpuSample::default() };
    let sample = Sample { cpu_percent: Some(12.5), gpus: vec![gpu], ..Sample::default() };
    beat(&world, "gpu-1", Some(sample)).await;
    let beaten = world.get(&path).await;
    assert_eq!(beaten.body["gpus"][0]["temperature"], 61, "{}", beaten.text);
    assert_eq!(beaten.body["metrics"]["cpu_percent"], 12.5);
    assert!(beaten.body["last_heartbeat"].is_string());
    assert_eq!(beaten.header("etag"), tag, "a heartbeat writes nothing");
    let same = world.send("admin", &format!("GET {path}"), &[("if-none-match", &tag)], "").await;
    assert_eq!((same.status.as_u16(), same.text.as_str()), (304, ""));

    let part = world.get(&format!("{path}?fields=status,gpus.temperature")).await.body;
    assert_eq!(
        part,
        json!({ "id": "gpu-1", "status": "ACTIVE", "gpus": [{ "temperature": 61 }, {}] })
    );
    let points = world.get(&format!("{path}/metrics")).await.body;
    assert_eq!((&points["kind"], &points["node_id"]), (&json!("MetricsHistory"), &json!("gpu-1")));
    assert_eq!(points["items"][0]["temperature"], 61, "{points}");
}

#[tokio::test]
async fn lists_filter_search_sort_page_and_project() {
    let world = fleet().await;
    let rows = [
        ("nodes", "a-well b-sick c-held d-other of 4"),
        ("nodes?size=2", "a-well b-sick of 4"),
        ("nodes?size=2&page=2", "c-held d-other of 4"),
        ("nodes?size=2&page=9", " of 4"),
        ("nodes?order=id%20desc&size=1", "d-other of 4"),
        ("nodes?order=pool,id%20desc", "d-other c-held b-sick a-well of 4"),
        ("nodes?status=UNHEALTHY", "b-sick of 1"),
        ("nodes?status=CORDONED", "c-held of 1"),
        ("nodes?health=HEALTHY", "a-well of 1"),
        ("nodes?liveness=Fresh&pool=h100", "a-well b-sick c-held of 3"),
        ("nodes?zone=us-east1-c", "d-other of 1"),
        ("nodes?provider=aws", " of 0"),
        ("nodes?region=us-east1&labels=rack:r8", "d-other of 1"),
        ("nodes?search=status%3D'unhealthy'%20or%20duty%3D'cordoned'", "b-sick c-held of 2"),
        ("nodes?search=xid%20in%20(79,48)%20and%20finding%20like%20'xid/%25'", "b-sick of 1"),
        (
            "nodes?search=labels.rack%20like%20'r_'%20and%20gpu_count%3D2%20and%20not%20pool%3D'h100'",
            "d-other of 1",
        ),
        ("nodes?search=%20&pool=a100", "d-other of 1"),
        ("nodes?fields=status&size=1", "a-well of 4"),
    ];
    for (list, expected) in rows {
        assert_eq!(ids(&world, list, "id").await, expected, "{list}");
    }
    let rows = [
        ("findings", "b-sick b-sick of 2"),
        ("findings?severity=unhealthy&node=b-sick&pool=h100", "b-sick b-sick of 2"),
        ("findings?search=key%20like%20'xid/79/%25'", "b-sick of 1"),
        ("findings?search=rule%3D'nvml'", "b-sick of 1"),
        ("findings?node=a-well", " of 0"),
        ("findings?size=1&page=2", "b-sick of 2"),
    ];
    for (list, expected) in rows {
        assert_eq!(ids(&world, list, "node_id").await, expected, "{list}");
    }
}

/// Sends each request and compares status, code and the beginning of the sentence.
async fn refuse(world: &World, rows: &[(&str, &str, u16, &str, &str)]) {
    for (line, body, status, code, start) in rows {
        let answer = world.send("admin", line, &[], (*body).to_owned()).await;
        let place = format!("{line} {:.80}: {}", body, answer.text);
        assert_eq!(
            (answer.status.as_u16(), &answer.body["code"]),
            (*status, &json!(code)),
            "{place}"
        );
        assert!(answer.body["detail"].as_str().unwrap().starts_with(start), "{place}");
        assert!(!answer.body["hint"].as_str().unwrap().is_empty(), "{place}");
        assert!(answer.text.len() < 10_000, "an answer does not repeat what was sent");
    }
}

#[tokio::test]
async fn a_node_that_is_not_there_says_how_to_become_one() {
    let world = World::new().await;
    let rest = ["", "/events", "/commands", "/history", "/why", "/metrics", "?watch=true"];
    for path in rest.map(|rest| format!("{NODES}/nobody{rest}")) {
        let answer = world.get(&path).await;
        assert_eq!(
            (answer.status.as_u16(), &answer.body["code"]),
            (404, &json!("HYPERFLEET-NTF-002"))
        );
        assert_eq!(
            (&answer.body["error"], &answer.body["node_id"]),
            (&json!("Node not found"), &json!("nobody"))
        );
        assert!(answer.body["hint"].as_str().unwrap().contains("RegisterNode"), "{path}");
    }
    let node = format!("{NODES}/nobody");
    let (post, delete) = (format!("POST {node}/commands"), format!("DELETE {node}"));
    let missing = "Node 'nobody' not found";
    refuse(
        &world,
        &[
            (&post, r#"{"type":"CORDON"}"#, 404, "HYPERFLEET-NTF-002", missing),
            // A missing node beats a bad body and a bad query.
            (&post, "nonsense", 404, "HYPERFLEET-NTF-002", missing),
            (&delete, "", 404, "HYPERFLEET-NTF-002", missing),
        ],
    )
    .await;
    let commands = format!("GET {OWN}/commands");
    let of_nobody = format!("{commands}?node=nobody");
    let no_id = format!("{commands}/not-an-id");
    let unknown = format!("{commands}/0195a000-0000-7000-8000-000000000001");
    let policy = format!("GET {OWN}/policies/none");
    refuse(
        &world,
        &[
            (&of_nobody, "", 404, "HYPERFLEET-NTF-002", missing),
            (&no_id, "", 404, "HYPERFLEET-NTF-001", "Command 'not-an-id' not found"),
            (&unknown, "", 404, "HYPERFLEET-NTF-001", "Command '0195a000-"),
            (&policy, "", 404, "HYPERFLEET-NTF-001", "Policy 'none' not found"),
        ],
    )
    .await;
}

#[tokio::test]
async fn bad_input_names_the_field_and_writes_nothing() {
    let world = World::new().await;
    world.node("gpu-1").await;
    let written = async || {
        let audit = world.get(&format!("{OWN}/audit")).await.body["items"].clone();
        (audit, world.get(&format!("{NODES}/gpu-1")).await.body["revision"].clone())
    };
    let before = written().await;
    let list = |query: &str| format!("GET {NODES}?{query}");
    let post = format!("POST {NODES}/gpu-1/commands");
    let parameters = |names: &mut dyn Iterator<Item = String>| {
        let pairs: Vec<String> = names.map(|name| format!("\"{name}\":\"x\"")).collect();
        format!(r#"{{"type":"CORDON","parameters":{{{}}}}}"#, pairs.join(","))
    };
    let seventeen = parameters(&mut (0..17).map(|n| format!("p{n}")));
    let twice = parameters(&mut (0..2).map(|_| "p".to_owned()));
    let million = parameters(&mut (0..1_000_000).map(|n| n.to_string()));
    let long = format!(r#"{{"type":"CORDON","reason":"{}"}}"#, "x".repeat(2000));
    let huge = format!(r#"{{"type":"CORDON","reason":"{}"}}"#, "x".repeat(100_000));
    let labels = list(&format!("labels={}", vec!["a:b"; 1000].join(",")));
    let (value, search) = ("HYPERFLEET-VAL-000", "HYPERFLEET-VAL-007");
    let malformed = "HYPERFLEET-VAL-006";
    refuse(
        &world,
        &[
            (&list("search=pol%3D'x'"), "", 400, search, "unknown field `pol`; did you mean `pool`? (at character 1)"),
            (&list("search=pool%3D'h100'%20and%20xid%3D'x'"), "", 400, search, "expected a number, because xid is one, found the text 'x' (at character 21)"),
            (&list("search=status%3D'BROKEN'"), "", 400, search, "Invalid status value 'BROKEN'. Supported values: UNKNOWN, ACTIVE"),
            (&list("search=spec.region%3D'x'"), "", 400, search, "unknown field `spec.region`"),
            (&format!("GET {OWN}/findings?search=severty%3D'x'"), "", 400, search, "unknown field `severty`; did you mean `severity`?"),
            (&list("order=pol"), "", 400, value, "Cannot sort by `pol`. Did you mean `pool`?"),
            (&list("fields=gpus.heat"), "", 400, value, "Unknown field 'gpus.heat'"),
            (&list("fields=statu"), "", 400, value, "Unknown field 'statu'. Did you mean 'status'?"),
            (&list("status=active"), "", 400, value, "Invalid status value 'active'. Supported values: UNKNOWN, ACTIVE"),
            (&list("phase=Ready"), "", 400, value, "Unknown query parameter 'phase'"),
            (&list("size=1001"), "", 400, value, "Invalid size '1001'. Must be an integer between 1 and 1000"),
            (&labels, "", 400, value, "more labels than the 64 one may have"),
            (&format!("GET {OWN}/commands?state=running"), "", 400, value, "Invalid state value 'running'. Supported values: pending, "),
            (&post, "", 400, malformed, ""),
            (&post, "[]", 400, malformed, "the request body must be a JSON object"),
            (&post, r#"{"type":"CORDON","x":NaN}"#, 400, malformed, ""),
            (&post, r#"{"type":"CORDON","x":1e999}"#, 400, malformed, ""),
            (&post, &twice, 400, malformed, ""),
            (&post, "{}", 400, value, "Missing required field 'type'"),
            (&post, r#"{"type":"REBOOT"}"#, 400, value, "Invalid type value 'REBOOT'. Supported values: CORDON, DRAIN, RUN_DIAGNOSTIC, TERMINATE, UNCORDON"),
            (&post, r#"{"type":"cordon"}"#, 400, value, "Invalid type value 'cordon'"),
            (&post, r#"{"type":"CORDON","drain_for_seconds":5}"#, 400, value, "drain_for_seconds is for the type DRAIN only"),
            (&post, r#"{"type":"DRAIN","drain_for_seconds":-1}"#, 400, value, "drain_for_seconds must be a whole number"),
            (&post, &long, 400, value, "reason is 2000 characters long"),
            (&post, &seventeen, 400, value, ""),
            (&post, &million, 413, "HYPERFLEET-LMT-002", ""),
            (&post, &huge, 413, "HYPERFLEET-LMT-002", ""),
            (&format!("DELETE {NODES}/gpu-1?force=maybe"), "", 400, value, "Invalid force 'maybe'"),
            (&format!("DELETE {OWN}/safety/breakers/fleet"), "", 400, value, "Missing required query parameter 'reason'"),
            (&format!("DELETE {OWN}/safety/breakers/planet?reason=x"), "", 400, value, "scope must read `fleet`"),
            (&format!("PUT {OWN}/safety/pause"), "{}", 400, value, "Missing required field 'reason'"),
            (&format!("PUT {OWN}/safety/pause"), r#"{"reason":""}"#, 400, value, "reason must not be empty"),
            (&format!("PUT {OWN}/safety/pause"), r#"{"reason":"x","pool":"y"}"#, 400, value, "Unknown field 'pool'"),
        ],
    )
    .await;
    assert_eq!(written().await, before, "nothing was written");
}

#[tokio::test]
async fn j14_odd_ids_are_not_found_and_not_repeated_raw() {
    let world = World::new().await;
    for id in ["%1B%5B31mred", "a%0Ab", "%E2%80%AEgpj", "..", "a%2Fb", "%00", "gpu-1%20"] {
        let answer = world.get(&format!("{NODES}/{id}")).await;
        assert!([404, 400].contains(&answer.status.as_u16()), "{id}: {}", answer.text);
        let detail = answer.body["detail"].as_str().unwrap();
        assert!(!detail.contains(|c: char| c.is_control() || c == '\u{202e}'), "{detail:?}");
    }
}

#[tokio::test]
async fn a_command_is_issued_once_and_followed_to_its_end() {
    let world = World::new().await;
    world.node("gpu-1").await;
    let post = format!("POST {NODES}/gpu-1/commands");
    let drain = json!({ "type": "DRAIN", "reason": "a fan", "drain_for_seconds": 600 }).to_string();
    let keyed = [("idempotency-key", "k1")];

    let tried = world.send("admin", &format!("{post}?dry_run=true"), &[], drain.clone()).await;
    assert_eq!((tried.status.as_u16(), tried.header("dry-run")), (201, "true"), "{}", tried.text);
    assert_eq!(world.get(&format!("{OWN}/commands")).await.body["total"], 0, "nothing was written");

    let first = world.send("admin", &post, &keyed, drain.clone()).await;
    assert_eq!(
        (first.status.as_u16(), first.header("idempotency-replayed")),
        (201, ""),
        "{}",
        first.text
    );
    let command = &first.body;
    assert_eq!((&command["type"], &command["state"]), (&json!("DRAIN"), &json!("pending")));
    assert_eq!((&command["by"], &command["automatic"]), (&json!("admin"), &json!(false)));
    assert_eq!(first.header("location"), command["href"]);
    assert!(command["deadline"].is_string());
    let again = world.send("admin", &post, &keyed, drain).await;
    assert_eq!((again.status.as_u16(), again.header("idempotency-replayed")), (201, "true"));
    assert_eq!(again.body, *command);
    let other = world.send("admin", &post, &keyed, r#"{"type":"CORDON"}"#).await;
    assert_eq!((other.status.as_u16(), &other.body["code"]), (422, &json!("HYPERFLEET-VAL-009")));

    let node = world.get(&format!("{NODES}/gpu-1")).await.body;
    assert_eq!(
        (&node["status"], &node["duty"]["command_id"]),
        (&json!("DRAINING"), &command["id"])
    );
    assert_eq!(node["duty"]["reason"], "a fan");
    let got = world.get(command["href"].as_str().unwrap()).await;
    assert_eq!((&got.body, got.header("etag")), (command, first.header("etag")));

    // The node may have changed since somebody looked at it.
    let stale = [("if-match", "\"1\"")];
    let lost = world.send("admin", &post, &stale, r#"{"type":"UNCORDON"}"#).await;
    assert_eq!(
        (lost.status.as_u16(), &lost.body["code"]),
        (409, &json!("HYPERFLEET-CNF-002")),
        "{}",
        lost.text
    );
    assert_eq!(lost.body["current_revision"], node["revision"]);

    assert_eq!(tell(&world, "gpu-1", "UNCORDON").await.status, 201);
    let wrong = tell(&world, "gpu-1", "UNCORDON").await;
    assert_eq!(
        (wrong.status.as_u16(), &wrong.body["code"]),
        (409, &json!("HYPERFLEET-CNF-003")),
        "{}",
        wrong.text
    );
    let rows = [
        ("commands", "UNCORDON DRAIN of 2"),
        ("commands?state=open", "UNCORDON of 1"),
        ("commands?state=cancelled", "DRAIN of 1"),
        ("commands?state=completed", " of 0"),
        ("commands?node=gpu-1&size=1&page=2", "DRAIN of 2"),
        ("nodes/gpu-1/commands?state=pending", "UNCORDON of 1"),
    ];
    for (list, expected) in rows {
        assert_eq!(ids(&world, list, "type").await, expected, "{list}");
    }
    let cancelled = world.get(command["href"].as_str().unwrap()).await.body;
    assert_eq!(
        (&cancelled["outcome"], &cancelled["ended_at"].is_string()),
        (&json!("Cancelled"), &true)
    );
}

#[tokio::test]
async fn a_node_is_forgotten_when_it_is_gone_or_by_force() {
    let world = World::new().await;
    world.node("gpu-1").await;
    world.node("gpu-2").await;
    let delete = async |who: &str, rest: &str| {
        world.send(who, &format!("DELETE {NODES}/{rest}"), &[], "").await
    };
    let alive = delete("operator", "gpu-1").await;
    assert_eq!((alive.status.as_u16(), &alive.body["code"]), (409, &json!("HYPERFLEET-CNF-003")));
    assert_eq!(delete("operator", "gpu-1?force=true").await.status, 403);
    assert_eq!(delete("admin", "gpu-1?force=true&reason=scrapped").await.status, 204);
    assert_eq!(tell(&world, "gpu-2", "TERMINATE").await.status, 201);
    assert_eq!(delete("operator", "gpu-2").await.status, 204);
    assert_eq!(world.get(NODES).await.body["total"], 0);
    let audit = world.get("/api/argosy/v1/audit").await.body;
    let forgotten = audit["items"].as_array().unwrap().iter().filter(|r| r["action"] == "forget");
    let reasons: Vec<_> = forgotten.map(|record| record["reason"].as_str()).collect();
    assert_eq!(reasons, [None, Some("scrapped")], "newest first");
}

#[tokio::test]
async fn what_happened_can_be_read_back_and_explained() {
    let world = World::new().await;
    world.node("gpu-1").await;
    world.report("gpu-1", HealthState::Healthy, &[31]).await;
    world.report("gpu-1", HealthState::Healthy, &[79]).await;
    let events = world.get(&format!("{NODES}/gpu-1/events")).await.body;
    assert_eq!(events["kind"], "NodeEventList");
    let lines = events["items"].as_array().unwrap();
    let codes: Vec<&Value> =
        lines.iter().map(|line| &line["event"]["metrics"]["xid_code"]).collect();
    assert_eq!(codes, [&json!(79), &json!(31)], "newest first");
    assert_eq!(lines[0]["verdict"]["severity"], "unhealthy", "{}", lines[0]);
    assert!(lines[0]["event"]["raw"].as_str().unwrap().starts_with("NVRM: Xid"));
    assert!(
        lines[0]["message"].as_str().unwrap().starts_with("xid 79 on GPU 0: unhealthy by rule ")
    );

    let all = world.get(&format!("{NODES}/gpu-1/history")).await.body;
    let kinds: Vec<&str> = all["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|line| line["type"].as_str().unwrap())
        .collect();
    assert_eq!(kinds.last(), Some(&"registered"), "{kinds:?}");
    assert!(kinds.contains(&"health") && kinds.contains(&"status"), "{kinds:?}");
    // Page by page it is the same.
    let (mut seen, mut before) = (Vec::new(), String::new());
    loop {
        let page = world.get(&format!("{NODES}/gpu-1/history?limit=2{before}")).await.body;
        seen.extend(page["items"].as_array().unwrap().iter().cloned());
        let Some(next) = page.get("next") else { break };
        before = format!("&before={next}");
    }
    assert_eq!(json!(seen), all["items"]);

    let why = world.get(&format!("{NODES}/gpu-1/why")).await;
    assert_eq!(
        (&why.body["kind"], &why.body["status"]),
        (&json!("Why"), &json!("UNHEALTHY")),
        "{}",
        why.text
    );
    assert!(why.body["summary"].as_str().unwrap().contains("gpu-1"));
    assert!(why.text.contains("NVRM: Xid"), "with the kernel line: {}", why.text);
}

#[tokio::test]
async fn policies_are_put_tried_and_removed() {
    let world = World::new().await;
    world.node("gpu-1").await;
    let all = world.get(&format!("{OWN}/policies")).await.body;
    assert_eq!(
        (&all["items"][0]["name"], &all["items"][0]["revision"]),
        (&json!("default"), &json!(0))
    );

    let path = format!("{OWN}/policies/h100");
    let body = |condition: &str| {
        let rule = json!({ "name": "strict", "condition": condition, "result": "unhealthy", "lasts": "30m" });
        json!({ "description": "ours", "pools": ["h100"], "rules": [rule] })
    };
    let good = body("event.event_type == 'xid'");
    let tried = world.json(&format!("PUT {path}?dry_run=true"), good.clone()).await;
    assert_eq!((tried.status.as_u16(), tried.header("dry-run")), (200, "true"), "{}", tried.text);
    assert_eq!(world.get(&path).await.status, 404);
    let made = world.json(&format!("PUT {path}"), good.clone()).await;
    assert_eq!((made.status.as_u16(), &made.body["version"]), (200, &json!(1)), "{}", made.text);

    // One that does not compile is refused with the place, and the old one stays.
    let broken = world.json(&format!("PUT {path}"), body("event.event_type ==")).await;
    assert_eq!((broken.status.as_u16(), &broken.body["code"]), (400, &json!("HYPERFLEET-VAL-000")));
    assert_eq!(broken.body["errors"][0]["field"], "rules[0].condition", "{}", broken.text);
    assert_eq!(world.get(&path).await.body, made.body);

    let tag = made.header("etag").to_owned();
    let put = async |tag: &str, body: Value| {
        world.send("admin", &format!("PUT {path}"), &[("if-match", tag)], body.to_string()).await
    };
    let mut read = made.body.clone();
    read["description"] = json!("ours, again");
    let changed = put(&tag, read).await;
    assert_eq!(
        (changed.status.as_u16(), &changed.body["version"]),
        (200, &json!(2)),
        "{}",
        changed.text
    );
    let lost = put(&tag, good).await;
    assert_eq!((lost.status.as_u16(), &lost.body["code"]), (409, &json!("HYPERFLEET-CNF-002")));

    // Who means to make one does not replace one; the same goes for the default that somebody wrote.
    let new = async |name: &str, headers: &[(&str, &str)]| {
        let rule = json!({ "name": "none", "condition": "false", "result": "healthy" });
        let pools = if name == "default" { json!([]) } else { json!([name]) };
        let body = json!({ "pools": pools, "rules": [rule] }).to_string();
        world.send("admin", &format!("PUT {OWN}/policies/{name}"), headers, body).await
    };
    let only_new = ("if-none-match", "*");
    let rows: [(_, &[_], _); 7] = [
        ("h100", &[only_new], 409),
        ("fresh", &[("if-none-match", "\"7\"")], 400),
        ("fresh", &[only_new, ("if-match", "*")], 400),
        ("fresh", &[only_new], 200),
        ("fresh", &[only_new], 409),
        ("default", &[only_new], 200),
        ("default", &[only_new], 409),
    ];
    for (name, headers, expected) in rows {
        let answer = new(name, headers).await;
        assert_eq!(answer.status, expected, "{name} {headers:?}: {}", answer.text);
    }
    assert_eq!(world.get(&path).await.body, changed.body);
    for made in ["fresh", "default"] {
        let path = format!("DELETE {OWN}/policies/{made}");
        assert_eq!(world.send("admin", &path, &[], "").await.status, 204);
    }

    let event = json!({ "event_type": "xid", "gpu_index": 0, "metrics": { "xid_code": 31 } });
    let ask = async |body: Value| world.json(&format!("POST {OWN}/policies/explain"), body).await;
    let said = ask(json!({ "event": event, "node_id": "gpu-1" })).await;
    assert_eq!(
        (&said.body["policy"], &said.body["rule"]),
        (&json!("h100"), &json!("strict")),
        "{}",
        said.text
    );
    assert_eq!(
        (&said.body["severity"], &said.body["lasts_seconds"]),
        (&json!("unhealthy"), &json!(1800))
    );
    let default = ask(json!({ "event": event })).await;
    assert_eq!((default.status.as_u16(), &default.body["policy"]), (200, &json!("default")));
    let missing = ask(json!({ "event": event, "node_id": "nobody" })).await;
    assert_eq!(
        (missing.status.as_u16(), &missing.body["code"]),
        (404, &json!("HYPERFLEET-NTF-002"))
    );
    let bad = ask(json!({ "event": event, "policy": { "rules": [{ "name": "x", "condition": "1 +", "result": "healthy" }] } })).await;
    assert_eq!(bad.status, 400, "{}", bad.text);

    world.report("gpu-1", HealthState::Healthy, &[31]).await;
    let rule = json!({ "name": "none", "condition": "false", "result": "healthy" });
    let harmless = json!({ "pools": ["h100"], "rules": [rule] });
    let back =
        world.json(&format!("POST {OWN}/policies/backtest"), json!({ "policy": harmless })).await;
    assert_eq!((back.status.as_u16(), &back.body["events"]), (200, &json!(1)), "{}", back.text);
    assert_eq!(back.body["only_current"][0]["node_id"], "gpu-1", "it would not have hit it");

    assert_eq!(world.send("admin", &format!("DELETE {path}"), &[], "").await.status, 204);
    assert_eq!(world.get(&path).await.status, 404);
    // Its name is that of a question, so it cannot be a policy's.
    let taken = world.json(&format!("PUT {OWN}/policies/explain"), json!({ "rules": [] })).await;
    assert_eq!(taken.status, 405);
}

#[tokio::test]
async fn automatic_action_is_stopped_and_let_go_on() {
    let world = World::new().await;
    world.node("gpu-1").await;
    let safety = format!("{OWN}/safety");
    let brakes = world.get(&safety).await;
    assert_eq!((brakes.status.as_u16(), &brakes.body["pauses"]), (200, &json!([])));
    let scopes: Vec<&str> = brakes.body["budgets"]
        .as_array()
        .unwrap()
        .iter()
        .map(|budget| budget["scope"].as_str().unwrap())
        .collect();
    assert!(scopes.contains(&"fleet") && scopes.contains(&"pool/one/h100"), "{scopes:?}");

    let why = json!({ "reason": "the switch is being replaced" });
    let all = world.json(&format!("PUT {safety}/pause"), why.clone()).await;
    assert_eq!((all.status.as_u16(), &all.body["by"]), (200, &json!("admin")), "{}", all.text);
    assert!(all.body.get("pool").is_none());
    let pool = world.json(&format!("PUT {safety}/pause/h100"), why).await;
    assert_eq!((&pool.body["pool"], &pool.body["reason"]), (&json!("h100"), &all.body["reason"]));
    assert_eq!(world.get(&safety).await.body["pauses"], json!([all.body, pool.body]));
    let missing = world.json(&format!("PUT {safety}/pause/h10"), json!({ "reason": "x" })).await;
    assert_eq!(missing.status, 400);
    assert_eq!(missing.body["error"], "there is no pool 'h10'; did you mean 'h100'?");

    let text = world.get("/metrics").await.text;
    assert!(text.contains("argosy_pauses{scope=\"fleet\"} 1\n"), "{text}");
    assert!(text.contains("navarch_gpus_total{provider=\"gcp\"} 2\n"), "{text}");

    for (path, rows) in [("pause", [true, false]), ("pause/h100", [true, false])] {
        for released in rows {
            let answer = world.send("operator", &format!("DELETE {safety}/{path}"), &[], "").await;
            assert_eq!(answer.body, json!({ "released": released }), "{path}: {}", answer.text);
        }
    }
    for scope in
        ["fleet", "zone%2Fgcp%2Fus-east1%2Fus-east1-b", "pool%2Fone%2Fh100", "pool%2Fone%2F"]
    {
        let line = format!("DELETE {safety}/breakers/{scope}?reason=checked");
        let answer = world.send("admin", &line, &[], "").await;
        assert_eq!(
            (answer.status.as_u16(), &answer.body),
            (200, &json!({ "released": false })),
            "{scope}"
        );
    }
}
