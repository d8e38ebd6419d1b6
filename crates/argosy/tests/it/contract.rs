//! What unmodified clients rely on, as far as no journey shows it.

use crate::harness::{Engine, Profile, Server, Setup, await_until, subset, text};
use argosy_api::client::Collection;
use argosy_api::resource::WatchKind;
use reqwest::Method;
use serde_json::{Value, json};

fn cluster(name: &str) -> Value {
    json!({
        "name": name,
        "spec": { "provider": "gcp", "region": "us-east1" },
        "labels": { "shard": "1" },
    })
}

async fn ready(server: &Server, name: &str) -> String {
    let created = server.create("clusters", &cluster(name)).await;
    let path = format!("clusters/{}", text(&created, "/id"));
    server.ready(&path).await;
    path
}

async fn ready_pool(server: &Server, cluster: &str, name: &str) -> String {
    let body = json!({ "name": name, "spec": { "nodeCount": 2, "machineType": "n1-standard-4" } });
    server.create(&format!("{cluster}/nodepools"), &body).await;
    let path = format!("{cluster}/nodepools/{name}");
    server.ready(&path).await;
    path
}

fn report(adapter: &str, generation: u32, available: &str) -> Value {
    let condition = |kind: &str, status: &str| json!({ "type": kind, "status": status, "reason": "AsItIs", "message": "Word for word" });
    json!({
        "adapter": adapter,
        "observed_generation": generation,
        "conditions": [
            condition("Available", available), condition("Applied", "True"),
            condition("Health", "True"),
        ],
        "data": { "anything": { "deep": [1, "two", null] } },
    })
}

#[tokio::test]
async fn a_sentinel_finds_its_way() {
    let server = Setup::new(Engine::Embedded, Profile::Upstream).start().await;
    // Its start-up probe: a label nobody has is no error.
    let probe = "clusters?search=labels.non_existing_label%3D'value'&size=1";
    subset(&server.get(probe).await.expect(200), &json!({ "items": [], "total": 0 }));

    for n in 0..7 {
        server.create("clusters", &cluster(&format!("c{n}"))).await;
    }
    // It asks for pages until it has as many as there are.
    let mut names: Vec<String> = Vec::new();
    for page in 1.. {
        let search = "labels.shard%3D'1'%20and%20name%20!%3D%20'c9'";
        let path = format!("clusters?page={page}&size=3&search={search}&order=name%20asc");
        let list = server.get(&path).await.expect(200);
        let items = list["items"].as_array().expect("items");
        names.extend(items.iter().map(|item| text(item, "/name").to_owned()));
        if items.is_empty() || list["total"].as_u64() == Some(names.len() as u64) {
            assert_eq!(page, 3);
            break;
        }
    }
    assert_eq!(names, ["c0", "c1", "c2", "c3", "c4", "c5", "c6"]);
    // A page behind the end is empty; a hundred at once are allowed.
    subset(
        &server.get("clusters?page=9&size=3").await.expect(200),
        &json!({ "items": [], "total": 7 }),
    );
    subset(&server.get("clusters?size=100").await.expect(200), &json!({ "size": 7 }));

    let path = ready(&server, "whole").await;
    ready_pool(&server, &path, "workers").await;
    let item = server.get(&path).await.expect(200);
    for member in ["id", "kind", "href", "name", "created_time", "updated_time"] {
        assert!(item[member].is_string(), "no {member} in {item:#}");
    }
    assert_eq!(item["href"], format!("/api/hyperfleet/v1/{path}"));
    for condition in item["status"]["conditions"].as_array().expect("conditions") {
        for member in ["type", "status", "last_transition_time", "last_updated_time"] {
            assert!(condition[member].is_string(), "no {member} in {condition:#}");
        }
        assert!(condition["observed_generation"].is_u64(), "{condition:#}");
    }
    let pools = server.get("nodepools").await.expect(200);
    let owner = json!({ "id": item["id"], "kind": "Cluster", "href": item["href"] });
    subset(&pools["items"][0]["owner_references"], &owner);
}

#[tokio::test]
async fn a_cluster_has_its_conditions_from_the_beginning() {
    let server = Setup::embedded().without_cloud().start().await;
    let created = server.create("clusters", &cluster("alpha")).await;
    let conditions = created["status"]["conditions"].as_array().expect("conditions");
    let reconciled = conditions.iter().find(|one| one["type"] == "Reconciled").expect("Reconciled");
    subset(reconciled, &json!({ "status": "False", "observed_generation": 1 }));
    // Absent is absent, never null.
    for member in ["deleted_time", "deleted_by", "owner_references", "cluster_id"] {
        assert_eq!(created.get(member), None, "{member}");
    }
}

#[tokio::test]
async fn an_adapter_that_succeeded_has_a_condition_of_its_own() {
    let server = Setup::embedded().start().await;
    let path = ready(&server, "alpha").await;
    let found = server.get(&path).await.expect(200);
    let conditions = found["status"]["conditions"].as_array().expect("conditions").clone();
    for kind in ["Reconciled", "ValidationSuccessful", "DnsSuccessful", "InfrastructureSuccessful"]
    {
        let condition = conditions.iter().find(|one| one["type"] == kind);
        assert!(condition.is_some_and(|one| one["status"] == "True"), "{kind} in {conditions:#?}");
    }
}

#[tokio::test]
async fn a_generation_counts_effective_changes() {
    let server = Setup::embedded().start().await;
    let path = ready(&server, "alpha").await;
    let rows = [
        // Only a label.
        (json!({ "labels": { "a": "b" } }), 2),
        // Nothing new.
        (json!({ "labels": { "a": "b" } }), 2),
        (json!({ "spec": { "region": "us-east1" } }), 2),
        (json!({ "spec": { "note": 1 } }), 3),
        // RFC 7396: null removes.
        (json!({ "spec": { "note": null }, "labels": { "a": null } }), 4),
    ];
    for (body, generation) in rows {
        let patched = server.patch(&path, &body).await.expect(200);
        assert_eq!(patched["generation"], generation, "{body}");
    }
    let now = server.get(&path).await.expect(200);
    assert_eq!(now["spec"], cluster("alpha")["spec"]);
    assert_eq!(now["labels"], cluster("alpha")["labels"]);
}

#[tokio::test]
async fn a_report_can_be_put_and_posted_and_is_kept_word_for_word() {
    let server = Setup::embedded().start().await;
    let path = ready(&server, "alpha").await;
    server.put(&format!("{path}/statuses"), &report("extra", 1, "True")).await.expect(201);
    server.post(&format!("{path}/statuses"), &report("other", 1, "False")).await.expect(201);
    for alias in ["statuses", "adapter-statuses"] {
        let list = server.get(&format!("{path}/{alias}")).await.expect(200);
        subset(&list, &json!({ "kind": "AdapterStatusList", "page": 1, "total": 5, "size": 5 }));
        let items = list["items"].as_array().expect("items");
        for expected in [report("extra", 1, "True"), report("other", 1, "False")] {
            let item = items.iter().find(|item| item["adapter"] == expected["adapter"]);
            subset(item.expect("it is shown"), &expected);
        }
    }
    // Neither is required: the cluster stays as it is.
    assert_eq!(server.get(&path).await.expect(200)["status"]["phase"], "Ready");
    let history = server.get(&format!("{path}/statuses/history")).await.expect(200);
    subset(&history, &json!({ "kind": "AdapterStatusHistory" }));
    assert_eq!(history["items"][0]["report"]["adapter"], "other", "newest first");
}

#[tokio::test]
async fn adapters_that_did_not_report_are_lines_but_not_items() {
    let server = Setup::embedded().start().await;
    server.delete_zone("example.com").await;
    let created = server.create("clusters", &cluster("alpha")).await;
    let path = format!("clusters/{}", text(&created, "/id"));
    server.conditions_with(&path, "dns", json!({ "Health": { "status": "False" } })).await;
    let list = server.get(&format!("{path}/statuses")).await.expect(200);
    let names = |list: &Value, member: &str| -> Vec<String> {
        let items = list.as_array().expect("a list");
        items.iter().map(|item| text(item, member).to_owned()).collect()
    };
    assert_eq!(names(&list["items"], "/adapter"), ["validation", "dns"]);
    assert_eq!(names(&list["adapterStatuses"], "/adapter"), ["validation", "dns"]);
    assert_eq!(names(&list["statuses"], "/adapter_name"), ["validation", "dns", "infrastructure"]);
    // One of the three shapes, if that is enough.
    for (view, there, absent) in [
        ("items", "items", ["statuses", "adapterStatuses"]),
        ("statuses", "statuses", ["items", "adapterStatuses"]),
        ("adapterStatuses", "adapterStatuses", ["items", "statuses"]),
    ] {
        let list = server.get(&format!("{path}/statuses?view={view}")).await.expect(200);
        assert!(list[there].is_array(), "{list:#}");
        assert!(absent.iter().all(|name| list.get(name).is_none()), "{list:#}");
    }
    server.get(&format!("{path}/statuses?view=all")).await.refused(400, &json!({}));
}

#[tokio::test]
async fn a_deletion_is_asked_for_once() {
    let server = Setup::embedded().start().await;
    let path = ready(&server, "alpha").await;
    ready_pool(&server, &path, "workers").await;
    server.set_latency("removal", 3_600_000).await;
    let first = server.delete(&path).await.expect(202);
    let again = server.delete(&path).await.expect(202);
    for member in ["deleted_time", "deleted_by", "generation"] {
        assert_eq!(again[member], first[member], "{member}");
    }
    // It is listed until it is gone, and so are its pools, which go first.
    subset(&server.get("clusters?phase=Terminating").await.expect(200), &json!({ "total": 1 }));
    let pools = server.get(&format!("{path}/nodepools")).await.expect(200);
    subset(&pools["items"][0], &json!({ "status": { "phase": "Terminating" } }));
    server
        .statuses_with(
            &path,
            json!({ "statuses": [
        { "adapter_name": "infrastructure", "message": "Waiting for node pools to be deleted" },
        { "adapter_name": "dns" }, { "adapter_name": "validation" },
    ] }),
        )
        .await;
    server.set_latency("removal", 0).await;
    server.gone(&path).await;

    // The name is free again, for another cluster.
    let next = server.create("clusters", &cluster("alpha")).await;
    assert_ne!(next["id"], first["id"]);
    assert_eq!(next["generation"], 1);
    server.ready("clusters/alpha").await;
    let message = format!("Cluster {} has been successfully deleted", text(&first, "/id"));
    server
        .get(&path)
        .await
        .refused(404, &json!({ "message": message, "code": "HYPERFLEET-NTF-001" }));
}

#[tokio::test]
async fn what_is_stuck_can_be_removed_by_force() {
    let server = Setup::embedded().start().await;
    let path = ready(&server, "alpha").await;
    let pool = ready_pool(&server, &path, "workers").await;
    server.set_latency("removal", 3_600_000).await;
    server.delete(&path).await.expect(202);
    let force = format!("{path}/force-delete");
    server.post(&force, &json!({ "reason": "the account is closed" })).await.expect_status(204);
    server.get(&path).await.refused(404, &json!({ "error": "ClusterNotFound" }));
    server.get(&pool).await.refused(404, &json!({}));
    assert_eq!(server.count("nodepools").await.0, 0);
    let audit = server.get("/api/argosy/v1/audit").await.expect(200);
    let forced = audit["items"].as_array().expect("items").iter();
    let forced = forced.filter(|entry| entry["action"] == "force-delete");
    assert_eq!(forced.filter(|entry| entry["reason"] == "the account is closed").count(), 2);
    assert_eq!(server.get("/api/argosy/v1/audit/verify").await.expect(200).get("broken"), None);
}

#[tokio::test]
async fn the_profile_of_a_request_changes_words_and_shapes() {
    let server = Setup::embedded().start().await;
    let path = ready(&server, "alpha").await;
    let pool = ready_pool(&server, &path, "workers").await;
    let ask = |method: Method, profile: &str, path: &str, body: Option<Value>| {
        let request = server.request(method, path).header("x-hyperfleet-profile", profile);
        server.send(match body {
            Some(body) => request.json(&body),
            None => request,
        })
    };
    let uid = server.get(&pool).await.expect(200)["uid"].clone();
    for (profile, id) in
        [("full", &json!("workers")), ("mvp", &json!("workers")), ("upstream", &uid)]
    {
        let reply = ask(Method::GET, profile, &pool, None).await;
        assert_eq!(reply.header("x-hyperfleet-profile"), profile);
        assert_eq!(&reply.expect(200)["id"], id, "{profile}");
        // Either token finds it, in every profile; flat routes, too.
        for path in [
            format!("{path}/nodepools/{}", text(&json!({ "u": uid }), "/u")),
            "nodepools/workers".into(),
        ] {
            assert_eq!(&ask(Method::GET, profile, &path, None).await.expect(200)["id"], id);
        }
    }
    ask(Method::GET, "other", &path, None).await.refused(400, &json!({}));
    // PATCH: merged, or replaced.
    let patch = json!({ "spec": { "provider": "gcp", "region": "us-west1" } });
    let note = json!({ "spec": { "note": 1 } });
    ask(Method::PATCH, "full", &path, Some(note.clone())).await.expect(200);
    let merged = ask(Method::PATCH, "mvp", &path, Some(patch.clone())).await.expect(200);
    assert_eq!(merged["spec"]["note"], 1);
    let replaced = ask(Method::PATCH, "upstream", &path, Some(patch.clone())).await.expect(200);
    assert_eq!(replaced["spec"], patch["spec"]);
    let strategy = format!("{path}?strategy=merge");
    let merged = ask(Method::PATCH, "upstream", &strategy, Some(note)).await.expect(200);
    subset(&merged["spec"], &json!({ "note": 1, "region": "us-west1" }));
    // Being deleted is Not Ready where there are two phases.
    server.set_latency("removal", 3_600_000).await;
    server.delete(&path).await.expect(202);
    for (profile, phase) in
        [("full", "Terminating"), ("mvp", "Not Ready"), ("upstream", "Terminating")]
    {
        let found = ask(Method::GET, profile, &path, None).await.expect(200);
        assert_eq!(found["status"]["phase"], phase, "{profile}");
    }
    let list = ask(Method::GET, "mvp", "clusters?phase=Not%20Ready", None).await.expect(200);
    assert_eq!(list["total"], 1);
    ask(Method::GET, "mvp", "clusters?phase=Terminating", None).await.refused(400, &json!({}));
}

#[tokio::test]
async fn old_names_of_parameters_mean_what_they_meant() {
    let server = Setup::embedded().start().await;
    for name in ["b", "a", "c"] {
        server.create("clusters", &cluster(name)).await;
    }
    let rows = [
        ("order=name", &["a", "b", "c"][..]),
        ("order=name%20desc", &["c", "b", "a"]),
        ("orderBy=name&order=desc", &["c", "b", "a"]),
        ("orderBy=name", &["a", "b", "c"]),
        ("order=asc", &["b", "a", "c"]),
        ("pageSize=2&orderBy=name", &["a", "b"]),
        ("size=2&page=2&orderBy=name", &["c"]),
        // Newest first, if nobody says anything.
        ("", &["c", "a", "b"]),
    ];
    for (query, expected) in rows {
        let list = server.get(&format!("clusters?{query}")).await.expect(200);
        let names: Vec<Value> = expected.iter().map(|name| json!({ "name": name })).collect();
        subset(&list, &json!({ "items": names }));
    }
}

#[tokio::test]
async fn a_client_gets_the_members_it_asks_for() {
    let server = Setup::embedded().start().await;
    let path = ready(&server, "alpha").await;
    let one = server.get(&format!("{path}?fields=name,spec.region,status.phase")).await.expect(200);
    subset(
        &one,
        &json!({
            "name": "alpha", "spec": { "region": "us-east1" }, "status": { "phase": "Ready" },
        }),
    );
    assert_eq!(one.get("labels"), None);
    assert_eq!(one["spec"].get("provider"), None);
    let list = server.get("clusters?fields=name").await.expect(200);
    subset(&list, &json!({ "kind": "ClusterList", "total": 1, "items": [{ "name": "alpha" }] }));
    assert_eq!(list["items"][0].get("spec"), None);
}

#[tokio::test]
async fn search_speaks_of_labels_spec_and_status() {
    let server = Setup::embedded().start().await;
    let mut odd = cluster("odd");
    odd["labels"] = json!({ "my-team": "ml", "example.com/cost-center": "a.b" });
    odd["spec"]["nodeCount"] = json!(7);
    server.create("clusters", &odd).await;
    server.ready("clusters/odd").await;
    ready(&server, "plain").await;
    let rows = [
        ("name = 'odd'", 1),
        ("name like 'o%'", 1),
        ("name in ('odd', 'plain')", 2),
        ("not name = 'odd'", 1),
        ("labels.my-team = 'ml'", 1),
        ("labels.shard = '1' or labels.my-team = 'ml'", 2),
        ("spec.nodeCount = 7", 1),
        ("spec.region = 'us-east1' and spec.provider = 'gcp'", 2),
        ("status.phase = 'Ready'", 2),
        ("status.conditions.Reconciled = 'True'", 2),
        ("generation = 1", 2),
        ("name = 'o''dd'", 0),
    ];
    for (search, total) in rows {
        let request = server.request(Method::GET, "clusters").query(&[("search", search)]);
        let reply = server.send(request).await;
        assert_eq!(reply.expect(200)["total"], total, "{search}");
    }
}

#[tokio::test]
async fn an_unchanged_resource_is_not_sent_again() {
    let server = Setup::embedded().start().await;
    let path = ready(&server, "alpha").await;
    let first = server.get(&path).await;
    let tag = first.header("etag").to_owned();
    assert_eq!(tag, format!("\"{}\"", first.json()["revision"]));
    let request = server.request(Method::GET, &path).header("if-none-match", &tag);
    let same = server.send(request).await;
    assert_eq!((same.status, same.text.as_str(), same.header("etag")), (304, "", tag.as_str()));
    let request = server.request(Method::PATCH, &path).header("if-match", &tag);
    let patched = server.send(request.json(&json!({ "labels": { "a": "b" } }))).await;
    patched.expect(200);
    assert_ne!(patched.header("etag"), tag);
    let request = server.request(Method::GET, &path).header("if-none-match", &tag);
    server.send(request).await.expect(200);
    // What was read is no longer there: the change is refused, and says what is.
    let request = server.request(Method::DELETE, &path).header("if-match", &tag);
    let lost = server.send(request).await.refused(409, &json!({ "code": "HYPERFLEET-CNF-002" }));
    assert!(lost["current_revision"].is_u64(), "{lost:#}");
}

#[tokio::test]
async fn paths_and_methods_are_what_http_says() {
    let server = Setup::embedded().start().await;
    let path = ready(&server, "alpha").await;
    // A trailing slash is the same path.
    assert_eq!(server.get("clusters/").await.expect(200)["total"], 1);
    assert_eq!(server.get(&format!("{path}/")).await.expect(200)["name"], "alpha");
    // HEAD is GET without the body.
    for path in ["clusters", &path, &format!("{path}/statuses"), "/healthz"] {
        let reply = server.send(server.request(Method::HEAD, path)).await;
        assert_eq!((reply.status, reply.text.as_str()), (200, ""), "{path}");
    }
    for (method, path, allow) in [
        (Method::PUT, "clusters", "GET"),
        (Method::POST, &*path, "PATCH"),
        (Method::DELETE, "clusters", "POST"),
    ] {
        let reply = server.send(server.request(method, path)).await;
        reply.refused(405, &json!({ "code": "HYPERFLEET-MTD-001" }));
        assert!(reply.header("allow").contains(allow), "{:?}", reply.headers);
    }
    // A client tells a resource that is gone from a path that never was.
    server.get("clusters/nope").await.refused(404, &json!({ "code": "HYPERFLEET-NTF-001" }));
    server.get("clusterz").await.refused(404, &json!({ "code": "HYPERFLEET-NTF-000" }));
    server.get("/nope").await.refused(404, &json!({ "code": "HYPERFLEET-NTF-000" }));
    // Every answer can be found in the log.
    let reply = server.get("clusters").await;
    let id = reply.header("x-request-id").to_owned();
    await_until("the log names it", async || server.log().contains(&id).then_some(())).await;
}

#[tokio::test]
async fn a_server_describes_itself() {
    let server = Setup::embedded().start().await;
    ready(&server, "alpha").await;
    let document = server.get("/api/hyperfleet/v1/openapi").await.expect(200);
    assert!(text(&document, "/openapi").starts_with("3.1"), "{document:#}");
    assert!(document["paths"]["/api/hyperfleet/v1/clusters"]["post"].is_object());
    for (path, word) in [
        ("/docs", "HYPERFLEET-NTF-001"),
        ("/metrics", "argosy_"),
        ("/healthz", ""),
        ("/readyz", ""),
    ] {
        let reply = server.get(path).await;
        reply.expect_status(200);
        assert!(reply.text.contains(word), "{path}: {}", reply.text);
    }
    let catalog = server.get("/api/argosy/v1/catalog").await.expect(200);
    assert!(catalog.to_string().contains("us-east1"), "{catalog}");
}

#[tokio::test]
async fn a_watch_goes_on_after_a_restart_without_a_gap() {
    for engine in [Engine::Embedded, Engine::Postgres] {
        let mut server = Setup::new(engine, Profile::Full).start().await;
        ready(&server, "before").await;
        let list = server.get("clusters").await.expect(200);
        let mut watch =
            server.client().watch(Collection::Clusters, None, &[], list["revision"].as_u64());
        server.create("clusters", &cluster("first")).await;
        let mut seen = next_named(&mut watch, "first").await;
        server.kill9();
        server.restart().await;
        server.create("clusters", &cluster("second")).await;
        server.delete("clusters/before").await.expect(202);
        // The client connects again by itself and misses nothing, neither twice nor out of order.
        for (name, kind) in [("second", WatchKind::Added), ("before", WatchKind::Deleted)] {
            loop {
                let event = watch.next().await.expect("an event");
                if event.kind == WatchKind::Bookmark {
                    continue;
                }
                assert!(seen < event.revision, "{seen} then {event:?}");
                seen = event.revision;
                let object = event.object.unwrap_or_default();
                if object["name"] == name && event.kind == kind {
                    break;
                }
            }
        }
    }
}

/// The revision of the first event about a resource.
async fn next_named(watch: &mut argosy_api::client::Watch, name: &str) -> u64 {
    loop {
        let event = watch.next().await.expect("an event");
        if event.object.is_some_and(|object| object["name"] == name) {
            return event.revision;
        }
    }
}

#[tokio::test]
async fn a_watch_is_server_sent_events_of_what_matches() {
    let server = Setup::embedded().start().await;
    let request = server.request(Method::GET, "clusters?watch=true&labels=shard:1");
    let mut stream = request.send().await.expect("an answer");
    assert_eq!(stream.headers()["content-type"], "text/event-stream");
    let mut other = cluster("other");
    other["labels"] = json!({ "shard": "2" });
    server.create("clusters", &other).await;
    server.create("clusters", &cluster("mine")).await;
    let mut text = String::new();
    while !text.contains("\"mine\"") {
        let chunk = stream.chunk().await.expect("a whole stream").expect("it goes on");
        text.push_str(&String::from_utf8_lossy(&chunk));
    }
    assert!(text.contains("event: ADDED") && text.contains("\nid: "), "{text}");
    assert!(!text.contains("\"other\""), "{text}");
    // A place that never was, or is no more, is said before anything is streamed.
    let gone = server.get("clusters?watch=true&resource_version=999999999").await;
    assert!(matches!(gone.status, 400 | 410), "{} {}", gone.status, gone.text);
}
