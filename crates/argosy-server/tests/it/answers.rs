//! What is answered, row by row.

use crate::world::{CLUSTERS, World};
use argosy_server::profile::Profile;
use serde_json::{Value, json};

/// Sends each request and compares status and the members named.
async fn check(world: &World, rows: &[(&str, &str, u16, Value)]) {
    for (line, body, status, members) in rows {
        let answer = world.send("admin", line, &[], (*body).to_owned()).await;
        assert_eq!(answer.status, *status, "{line} {body}: {}", answer.text);
        for (name, value) in members.as_object().unwrap() {
            assert_eq!(&answer.body[name], value, "{name} of {line} {body}: {}", answer.text);
        }
        if 400 <= *status {
            assert_eq!(answer.header("content-type"), "application/problem+json");
            assert_eq!(answer.body["trace_id"], answer.header("x-request-id"));
            assert!(!answer.body["hint"].as_str().unwrap().is_empty());
        }
    }
}

#[tokio::test]
async fn what_is_not_there_is_said_in_the_seeds_words() {
    let world = World::new().await;
    let cluster = world.cluster("here").await;
    let rows = [
        (
            format!("GET {CLUSTERS}/non-existent-id"),
            json!({ "error": "Cluster not found", "id": "non-existent-id",
                    "code": "HYPERFLEET-NTF-001" }),
        ),
        (
            format!("GET {CLUSTERS}/non-existent-cluster/nodepools"),
            json!({ "error": "Cluster not found", "cluster_id": "non-existent-cluster" }),
        ),
        (
            format!("GET {CLUSTERS}/non-existent-cluster/nodepools?phase=Nonsense&x=y"),
            json!({ "error": "Cluster not found", "cluster_id": "non-existent-cluster" }),
        ),
        (
            format!("GET {CLUSTERS}/{cluster}/nodepools/non-existent-nodepool-id"),
            json!({ "error": "NodePool not found", "nodepool_id": "non-existent-nodepool-id",
                    "cluster_id": cluster }),
        ),
        ("GET /api/hyperfleet/v2".to_owned(), json!({ "code": "HYPERFLEET-NTF-000" })),
        (
            "POST /nowhere".to_owned(),
            json!({ "code": "HYPERFLEET-NTF-000", "instance": "/nowhere" }),
        ),
    ];
    let rows: Vec<_> = rows.iter().map(|(line, m)| (line.as_str(), "", 404, m.clone())).collect();
    check(&world, &rows).await;
}

#[tokio::test]
async fn bad_input_names_the_field() {
    let world = World::new().await;
    let cluster = world.cluster("here").await;
    let pools = format!("POST {CLUSTERS}/{cluster}/nodepools");
    let create = format!("POST {CLUSTERS}");
    let patch = format!("PATCH {CLUSTERS}/{cluster}");
    let list = |query: &str| format!("GET {CLUSTERS}?{query}");
    let long = format!(r#"{{"name":"{}","spec":{{}}}}"#, "x".repeat(64));
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let says = |sentence: &str| json!({ "error": sentence, "detail": sentence });
    let rows = [
        (&*create, "", 400, json!({ "code": "HYPERFLEET-VAL-006" })),
        (&create, "[]", 400, json!({ "code": "HYPERFLEET-VAL-006" })),
        (&create, "{", 400, json!({ "code": "HYPERFLEET-VAL-006" })),
        (&create, &deep, 400, json!({ "code": "HYPERFLEET-VAL-006" })),
        (
            &create,
            r#"{"name":"a","name":"b","spec":{}}"#,
            400,
            json!({ "code": "HYPERFLEET-VAL-006" }),
        ),
        (&create, r#"{"name":"a","spec":{"x":NaN}}"#, 400, json!({ "code": "HYPERFLEET-VAL-006" })),
        (&create, r#"{"spec":{}}"#, 400, says("Missing required field 'name'")),
        (&create, &long, 400, says("name is 64 characters long; at most 63 are allowed")),
        (&create, r#"{"name":"here","spec":{}}"#, 409, json!({ "code": "HYPERFLEET-CNF-001" })),
        (
            &pools,
            r#"{"name":"p","spec":{"nodeCount":0}}"#,
            400,
            says("Invalid node count: 0. Must be between 1 and 100"),
        ),
        (
            &pools,
            r#"{"name":"p","spec":{"nodeCount":150}}"#,
            400,
            says("Node count 150 exceeds maximum limit of 100 per nodepool"),
        ),
        (
            "POST /api/hyperfleet/v1/nodepools",
            r#"{"name":"p","spec":{}}"#,
            422,
            json!({ "code": "HYPERFLEET-VAL-008" }),
        ),
        (&patch, "{}", 400, json!({ "code": "HYPERFLEET-VAL-005" })),
        (&patch, r#"{"name":"x"}"#, 400, json!({ "code": "HYPERFLEET-VAL-006" })),
        (&patch, r#"{"labels":{"a b":"c"}}"#, 400, json!({ "code": "HYPERFLEET-VAL-000" })),
        (
            &list("phase=InvalidPhase"),
            "",
            400,
            says(
                "Invalid phase value 'InvalidPhase'. Supported values: Not Ready, Ready, Pending, \
                  Terminating",
            ),
        ),
        (
            &list("provider=unsupported-provider"),
            "",
            400,
            says(
                "Invalid provider value 'unsupported-provider'. Supported values: aws, gcp, lambda",
            ),
        ),
        (
            &list("labels=workload"),
            "",
            400,
            says("Invalid label filter format. Expected format: key:value"),
        ),
        (&list("search=nonsense"), "", 400, json!({ "code": "HYPERFLEET-VAL-007" })),
        (&list("order=nonsense"), "", 400, json!({ "code": "HYPERFLEET-VAL-000" })),
        (&list("fields=nonsense"), "", 400, json!({ "code": "HYPERFLEET-VAL-000" })),
        (&list("size=0"), "", 400, json!({ "code": "HYPERFLEET-VAL-000" })),
        (&list("kind=NodePool"), "", 400, says("Invalid kind value. Supported values: Cluster")),
        (
            &list("watch=true&resource_version=x"),
            "",
            400,
            says(
                "Invalid resource_version 'x'. Must be an integer between 0 and \
                 18446744073709551615",
            ),
        ),
    ];
    check(&world, &rows).await;
}

#[tokio::test]
async fn mvp_says_less_about_phases() {
    let world = World::with_profile(Profile::Mvp).await;
    let cluster = world.cluster("here").await;
    check(
        &world,
        &[
            (
                &format!("GET {CLUSTERS}?phase=InvalidPhase"),
                "",
                400,
                json!({ "error": "Invalid phase value 'InvalidPhase'. Supported values: Not Ready, \
                                  Ready" }),
            ),
            (
                &format!("GET {CLUSTERS}/{cluster}/nodepools?phase=Provisioning"),
                "",
                400,
                json!({ "error": "Invalid phase value 'Provisioning'. Supported values for MVP: \
                                  Not Ready, Ready" }),
            ),
            (&format!("GET {CLUSTERS}?phase=Not%20Ready"), "", 200, json!({ "total": 1 })),
            (
                &format!("GET {CLUSTERS}?phase=Ready"),
                "",
                200,
                json!({ "kind": "ClusterList", "page": 1, "size": 0, "total": 0, "items": [] }),
            ),
        ],
    )
    .await;
}

#[tokio::test]
async fn a_profile_is_chosen_by_request_and_echoed() {
    let world = World::new().await;
    let cluster = world.cluster("here").await;
    let uid = world.pool(&cluster, "workers").await;
    let line = format!("GET {CLUSTERS}/{cluster}/nodepools/workers");
    let rows = [
        ("full", "workers", "Pending"),
        ("mvp", "workers", "Not Ready"),
        ("upstream", &*uid, "Pending"),
    ];
    for (profile, id, phase) in rows {
        let answer = world.send("admin", &line, &[("x-hyperfleet-profile", profile)], "").await;
        assert_eq!(answer.header("x-hyperfleet-profile"), profile);
        assert_eq!(
            (&answer.body["id"], &answer.body["status"]["phase"]),
            (&json!(id), &json!(phase))
        );
    }
    let answer = world.send("admin", &line, &[("x-hyperfleet-profile", "best")], "").await;
    assert_eq!(answer.status, 400);
    assert_eq!(
        answer.body["error"],
        "Invalid profile 'best'. Supported values: full, mvp, upstream"
    );
}

#[tokio::test]
async fn lists_filter_sort_page_and_project() {
    let world = World::new().await;
    for name in ["a-one", "b-two", "c-three"] {
        world.cluster(name).await;
    }
    let names = async |query: &str| {
        let answer = world.get(&format!("{CLUSTERS}?{query}")).await;
        assert_eq!(answer.status, 200, "{query}: {}", answer.text);
        let items = answer.body["items"].as_array().unwrap().clone();
        let names: Vec<String> =
            items.iter().map(|item| item["name"].as_str().unwrap_or("-").to_owned()).collect();
        format!("{} of {}", names.join(" "), answer.body["total"])
    };
    let rows = [
        ("", "c-three b-two a-one of 3"),
        ("order=name", "a-one b-two c-three of 3"),
        ("orderBy=name&order=desc", "c-three b-two a-one of 3"),
        ("orderBy=name", "a-one b-two c-three of 3"),
        ("order=asc", "a-one b-two c-three of 3"),
        ("order=name&size=2&page=2", "c-three of 3"),
        ("order=name&pageSize=1", "a-one of 3"),
        ("name=-t&order=name", "b-two c-three of 2"),
        ("name=%22b-two%22", "b-two of 1"),
        ("name=%22b%22", " of 0"),
        ("status.phase=%22Pending%22", "c-three b-two a-one of 3"),
        ("phase=NotReady", " of 0"),
        ("labels=team:alpha&provider=gcp&region=us-east1&name=one", "a-one of 1"),
        ("search=name%3D'b-two'", "b-two of 1"),
        ("search=labels.non_existing_label='value'&size=1", " of 0"),
        ("fields=generation", "- - - of 3"),
    ];
    for (query, expected) in rows {
        assert_eq!(names(query).await, expected, "{query}");
    }
    let answer = world.get(&format!("{CLUSTERS}?fields=status.phase&size=1")).await;
    let item = answer.body["items"][0].as_object().unwrap();
    assert_eq!(item.keys().collect::<Vec<_>>(), ["id", "status"]);
    assert_eq!(item["status"], json!({ "phase": "Pending" }));
}

#[tokio::test]
async fn lost_updates_are_refused() {
    let world = World::new().await;
    let cluster = world.cluster("here").await;
    let path = format!("{CLUSTERS}/{cluster}");
    let first = world.get(&path).await;
    let tag = first.header("etag").to_owned();
    assert_eq!(tag, format!("\"{}\"", first.body["revision"]));

    let same = world.send("admin", &format!("GET {path}"), &[("if-none-match", &tag)], "").await;
    assert_eq!((same.status.as_u16(), same.text.as_str(), same.header("etag")), (304, "", &*tag));

    let patch = async |tag: &str, count: u32| {
        let body = json!({ "spec": { "nodeCount": count } }).to_string();
        world.send("admin", &format!("PATCH {path}"), &[("if-match", tag)], body).await
    };
    let changed = patch(&tag, 4).await;
    assert_eq!((changed.status.as_u16(), &changed.body["generation"]), (200, &json!(2)));
    assert_eq!(changed.body["spec"]["region"], "us-east1", "a PATCH merges");
    let lost = patch(&tag, 5).await;
    assert_eq!((lost.status.as_u16(), &lost.body["code"]), (409, &json!("HYPERFLEET-CNF-002")));
    assert_eq!(lost.body["current_revision"], changed.body["revision"]);
    assert_eq!(patch("\"x\"", 5).await.status, 400);
    assert_eq!(patch("*", 5).await.status, 200);
    let again = world.send("admin", &format!("GET {path}"), &[("if-none-match", &tag)], "").await;
    assert_eq!(again.status, 200);
}

#[tokio::test]
async fn upstream_replaces_what_a_patch_mentions() {
    let world = World::new().await;
    let cluster = world.cluster("here").await;
    let rows = [
        (format!("{CLUSTERS}/{cluster}?strategy=replace"), "full"),
        (format!("{CLUSTERS}/{cluster}"), "upstream"),
    ];
    for (count, (path, profile)) in rows.iter().enumerate() {
        let body = json!({ "spec": { "provider": "gcp", "count": count } });
        let headers = [("x-hyperfleet-profile", *profile)];
        let answer =
            world.send("admin", &format!("PATCH {path}"), &headers, body.to_string()).await;
        assert_eq!(answer.body["spec"], body["spec"], "{}", answer.text);
    }
}

#[tokio::test]
async fn a_repeated_create_is_carried_out_once() {
    let world = World::new().await;
    let create = async |key: &str, name: &str| {
        let body = json!({ "name": name, "spec": {} }).to_string();
        world.send("admin", &format!("POST {CLUSTERS}"), &[("idempotency-key", key)], body).await
    };
    let first = create("k1", "here").await;
    assert_eq!((first.status.as_u16(), first.header("idempotency-replayed")), (201, ""));
    assert_eq!(first.header("location"), first.body["href"]);
    let second = create("k1", "here").await;
    assert_eq!((second.status.as_u16(), second.header("idempotency-replayed")), (201, "true"));
    assert_eq!(second.body["id"], first.body["id"]);
    assert_eq!(create("k1", "there").await.status, 422);
    assert_eq!(create("k 1", "there").await.status, 400);
    assert_eq!(create(&"k".repeat(256), "there").await.status, 400);
}

#[tokio::test]
async fn a_dry_run_checks_everything_and_writes_nothing() {
    let world = World::new().await;
    let cluster = world.cluster("here").await;
    let create = format!("POST {CLUSTERS}?dry_run=true");
    let answer = world.json(&create, json!({ "name": "there", "spec": {} })).await;
    assert_eq!((answer.status.as_u16(), answer.header("dry-run")), (201, "true"));
    let answer = world.json(&create, json!({ "name": "here", "spec": {} })).await;
    assert_eq!(answer.status, 409);
    let path = format!("{CLUSTERS}/{cluster}?dry_run=true");
    let answer = world.json(&format!("PATCH {path}"), json!({ "spec": { "x": 1 } })).await;
    assert_eq!((&answer.body["generation"], answer.header("dry-run")), (&json!(2), "true"));
    let answer = world.send("admin", &format!("DELETE {path}"), &[], "").await;
    assert_eq!((answer.status.as_u16(), answer.header("dry-run")), (202, "true"));
    let answer = world.get(CLUSTERS).await;
    assert_eq!(
        (&answer.body["total"], &answer.body["items"][0]["generation"]),
        (&json!(1), &json!(1))
    );
}

#[tokio::test]
async fn methods_paths_and_media_are_checked() {
    let world = World::new().await;
    let answer = world.send("", &format!("PUT {CLUSTERS}"), &[], "").await;
    assert_eq!((answer.status.as_u16(), answer.header("allow")), (405, "GET, POST, HEAD"));
    assert_eq!(answer.body["code"], "HYPERFLEET-MTD-001");

    let answer = world.get(&format!("{CLUSTERS}//?size=1")).await;
    assert_eq!(answer.status, 200, "trailing slashes do not matter");

    let answer = world.send("admin", &format!("HEAD {CLUSTERS}"), &[], "").await;
    assert_eq!(answer.status, 200);

    let body = json!({ "name": "a", "spec": {} }).to_string();
    let rows = [
        ("text/plain", 415),
        ("application/x-yaml", 415),
        ("application/merge-patch+json", 415),
        ("Application/JSON; charset=utf-8", 201),
    ];
    for (media, status) in rows {
        let headers = [("content-type", media)];
        let answer = world.send("admin", &format!("POST {CLUSTERS}"), &headers, body.clone()).await;
        assert_eq!(answer.status, status, "{media}: {}", answer.text);
    }
    let gzip = [("content-encoding", "gzip")];
    let answer = world.send("admin", &format!("POST {CLUSTERS}"), &gzip, body.clone()).await;
    assert_eq!(answer.status, 415);

    let large = json!({ "name": "b", "spec": { "x": "x".repeat(1024 * 1024) } }).to_string();
    let answer = world.send("admin", &format!("POST {CLUSTERS}"), &[], large).await;
    assert_eq!((answer.status.as_u16(), &answer.body["code"]), (413, &json!("HYPERFLEET-LMT-002")));
    let asks_first = [("content-length", "99999999"), ("expect", "100-continue")];
    let answer = world.send("admin", &format!("POST {CLUSTERS}"), &asks_first, "{}").await;
    assert_eq!(answer.status, 413);
}

#[tokio::test]
async fn a_panic_is_one_answer_with_the_id_of_the_request() {
    let world = World::new().await;
    assert_eq!(world.send("", "GET /mounted/boom", &[], "").await.status, 401);
    assert_eq!(world.send("operator", "GET /mounted/boom", &[], "").await.status, 403);
    let answer = world.get("/mounted/boom").await;
    assert_eq!((answer.status.as_u16(), &answer.body["code"]), (500, &json!("HYPERFLEET-INT-001")));
    assert_eq!(answer.body["trace_id"], answer.header("x-request-id"));
    assert!(!answer.text.contains("hush"), "{}", answer.text);
    assert_eq!(world.get(CLUSTERS).await.status, 200, "and the server goes on");
}

#[tokio::test]
async fn answers_are_not_cached_and_are_compressed_when_asked() {
    let world = World::new().await;
    for count in 0..5 {
        world.cluster(&format!("c-{count}")).await;
    }
    let gzip = [("accept-encoding", "gzip")];
    let answer = world.send("admin", &format!("GET {CLUSTERS}"), &gzip, "").await;
    assert_eq!(answer.header("content-encoding"), "gzip");
    assert_eq!(answer.header("cache-control"), "no-store");
    let vary: Vec<_> = answer.headers.get_all("vary").iter().map(|v| v.to_str().unwrap()).collect();
    for name in ["authorization", "x-hyperfleet-profile", "accept-encoding"] {
        assert!(vary.join(",").to_lowercase().contains(name), "{vary:?}");
    }
}

#[tokio::test]
async fn statuses_tell_the_same_in_three_shapes() {
    let world = World::new().await;
    let cluster = world.cluster("here").await;
    let path = format!("{CLUSTERS}/{cluster}/statuses");
    let condition = |kind: &str| json!({ "type": kind, "status": "True", "reason": "JobSucceeded", "message": "done" });
    let report = json!({
        "adapter": "validation",
        "observed_generation": 1,
        "conditions": (["Available", "Applied", "Health"].map(condition)),
        "data": { "quotaSufficient": true },
        "metadata": { "jobName": "j", "executionTime": "115s" },
    });
    let answer = world.json(&format!("PUT {path}"), report.clone()).await;
    assert_eq!(answer.status, 201, "{}", answer.text);
    assert_eq!(answer.body["metadata"], json!({ "job_name": "j", "execution_time": "115s" }));
    let mut future = report.clone();
    future["observed_generation"] = json!(7);
    let answer = world.json(&format!("POST {path}"), future).await;
    assert_eq!((answer.status.as_u16(), answer.text.as_str()), (204, ""));

    let all = world.get(&path).await.body;
    assert_eq!((&all["kind"], &all["total"]), (&json!("AdapterStatusList"), &json!(1)));
    assert_eq!((&all["type"], &all["clusterId"]), (&json!("clusterStatus"), &json!(cluster)));
    assert_eq!(all["items"][0]["conditions"][0]["type"], "Available");
    assert_eq!(all["adapterStatuses"][0]["metadata"]["jobName"], "j");
    assert!(all["adapterStatuses"][0]["conditions"][0]["lastTransitionTime"].is_string());
    let lines: Vec<_> = all["statuses"]
        .as_array()
        .unwrap()
        .iter()
        .map(|line| format!("{} {}", line["adapter_name"], line["phase"]))
        .collect();
    assert_eq!(lines, ["\"validation\" \"Complete\"", "\"dns\" \"Pending\""]);
    assert_eq!(all["statuses"][0]["cluster_id"], json!(cluster));

    let alias = world.get(&format!("{CLUSTERS}/{cluster}/adapter-statuses")).await.body;
    assert_eq!(alias, all);
    let trimmed = world.get(&format!("{path}?view=statuses")).await.body;
    assert!(trimmed.get("items").is_none() && trimmed.get("adapterStatuses").is_none());
    assert_eq!(trimmed["statuses"], all["statuses"]);

    let history = world.get(&format!("{path}/history?limit=1")).await.body;
    assert_eq!(history["items"][0]["discarded"], "FutureGeneration", "{history}");
    let next = format!("{path}/history?before={}", history["next"]);
    let rest = world.get(&next).await.body;
    assert_eq!(rest["items"][0]["report"]["adapter"], "validation", "{rest}");
    assert!(rest["items"][0].get("discarded").is_none());
}

#[tokio::test]
async fn what_was_deleted_says_so() {
    let world = World::new().await;
    let cluster = world.cluster("here").await;
    let path = format!("{CLUSTERS}/{cluster}");
    let early = world.json(&format!("POST {path}/force-delete"), json!({ "reason": "x" })).await;
    assert_eq!((early.status.as_u16(), &early.body["code"]), (409, &json!("HYPERFLEET-CNF-003")));
    let deleted = world.send("admin", &format!("DELETE {path}"), &[], "").await;
    assert_eq!(deleted.status, 202);
    assert_eq!(deleted.body["status"]["phase"], "Terminating");
    assert!(deleted.body["deleted_time"].is_string());
    let patch = world.json(&format!("PATCH {path}"), json!({ "spec": { "x": 1 } })).await;
    assert_eq!((patch.status.as_u16(), &patch.body["code"]), (409, &json!("HYPERFLEET-CNF-003")));
    let forced = world.json(&format!("POST {path}/force-delete"), json!({ "reason": "x" })).await;
    assert_eq!((forced.status.as_u16(), forced.text.as_str()), (204, ""));
    let gone = world.get(&path).await;
    assert_eq!(gone.status, 404);
    assert_eq!(gone.body["error"], "ClusterNotFound");
    assert_eq!(gone.body["message"], format!("Cluster {cluster} has been successfully deleted"));
}

#[tokio::test]
async fn the_service_describes_itself() {
    let world = World::new().await;
    let info = world.send("", "GET /api/hyperfleet", &[], "").await.body;
    assert_eq!((&info["id"], &info["version"]), (&json!("hyperfleet"), &json!("1.2.3")));
    let document = world.send("", "GET /api/hyperfleet/v1/openapi", &[], "").await.body;
    assert_eq!(document["openapi"], "3.1.0");
    let page = world.send("", "GET /api/hyperfleet/v1/openapi.html", &[], "").await;
    assert_eq!((page.status.as_u16(), page.header("location")), (308, "/docs"));
    let docs = world.send("", "GET /docs/", &[], "").await;
    assert!(docs.text.contains("<title>Argosy API</title>"));
    assert!(docs.header("content-security-policy").starts_with("default-src 'none'; style-src"));
    assert!(world.send("", "GET /", &[], "").await.text.contains("href=\"/docs\""));
    assert_eq!(world.send("", "GET /healthz", &[], "").await.status, 200);
    let catalog = world.send("viewer", "GET /api/argosy/v1/catalog", &[], "").await.body;
    assert_eq!(catalog["nodes_max"], 100);
}

#[tokio::test]
async fn every_mutation_is_in_the_audit_log() {
    let world = World::new().await;
    world.cluster("one").await;
    world.cluster("two").await;
    let page = world.get("/api/argosy/v1/audit?limit=1").await.body;
    assert_eq!(
        (&page["items"][0]["name"], &page["items"][0]["action"]),
        (&json!("two"), &json!("create"))
    );
    assert_eq!(page["items"][0]["actor"], "admin");
    let rest = world.get(&format!("/api/argosy/v1/audit?before={}", page["next"])).await.body;
    assert_eq!(rest["items"][0]["name"], "one");
    let found = world.get("/api/argosy/v1/audit/verify").await.body;
    assert_eq!((&found["entries"], found.get("broken")), (&json!(2), None));
}
