//! Whatever is sent: the right status, a body that names the field and the way out, nothing written.

use crate::harness::{Reply, Server, Setup, subset, text};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A refusal that helps: it says where (`field` in `errors`, or in the sentence) and what to do.
#[track_caller]
fn helpful(reply: &Reply, status: u16, field: &str) {
    let body = reply.refused(status, &json!({}));
    assert!(body["hint"].is_string(), "no way out in {body:#}");
    let fields: Vec<&str> = match body["errors"].as_array() {
        Some(errors) => errors.iter().map(|error| text(error, "/field")).collect(),
        None => Vec::new(),
    };
    let named =
        fields.iter().any(|known| known.contains(field)) || text(&body, "/detail").contains(field);
    assert!(named, "{field} is not named in {body:#}");
}

fn cluster(name: &str) -> Value {
    json!({ "name": name, "spec": { "provider": "gcp", "region": "us-east1" } })
}

async fn ready_cluster(server: &Server) -> String {
    let created = server.create("clusters", &cluster("alpha")).await;
    let path = format!("clusters/{}", text(&created, "/id"));
    server.ready(&path).await;
    path
}

#[tokio::test]
async fn a_cluster_with_a_wrong_field_is_refused_by_the_name_of_the_field() {
    let server = Setup::embedded().start().await;
    let before = server.count("clusters").await;
    let named = |name: &str| json!({ "name": name, "spec": {} }).to_string();
    let spec = |member: &str| format!(r#"{{"name":"a","spec":{{{member}}}}}"#);
    let labels = |labels: Value| json!({ "name": "a", "spec": {}, "labels": labels }).to_string();
    let many: serde_json::Map<_, _> = (0..65).map(|n| (format!("k{n}"), json!("v"))).collect();
    let rows: Vec<(String, &str)> = vec![
        (named(&"a".repeat(64)), "name"),
        (named(&"a".repeat(100_000)), "name"),
        (named(""), "name"),
        (named("Alpha"), "name"),
        (named("al pha"), "name"),
        (named("-alpha"), "name"),
        (named("alpha-"), "name"),
        (named("a/b"), "name"),
        (named("../etc"), "name"),
        (named("a\u{0}b"), "name"),
        (named("\u{202e}alpha"), "name"),
        (named("مجموعة"), "name"),
        (named("🚀"), "name"),
        (named("a\nb"), "name"),
        (named("a'; DROP TABLE documents; --"), "name"),
        (r#"{"spec":{}}"#.into(), "name"),
        (r#"{"name":"a"}"#.into(), "spec"),
        (r#"{"name":null,"spec":{}}"#.into(), "name"),
        (r#"{"name":7,"spec":{}}"#.into(), "name"),
        (r#"{"name":["a"],"spec":{}}"#.into(), "name"),
        (r#"{"name":"a","spec":[]}"#.into(), "spec"),
        (r#"{"name":"a","spec":"x"}"#.into(), "spec"),
        (r#"{"name":"a","spec":null}"#.into(), "spec"),
        (r#"{"name":"a","spec":{},"labels":[]}"#.into(), "labels"),
        (r#"{"name":"a","spec":{},"kind":"NodePool"}"#.into(), "kind"),
        (spec(r#""provider":"azure""#), "spec.provider"),
        (spec(r#""provider":7"#), "spec.provider"),
        (spec(r#""provider":"gcp","region":"mars""#), "spec.region"),
        (spec(r#""provider":"gcp","region":{}"#), "spec.region"),
        (spec(r#""nodeCount":-1"#), "spec.nodeCount"),
        (spec(r#""nodeCount":"3""#), "spec.nodeCount"),
        (labels(json!({ "team": 7 })), "labels.team"),
        (labels(json!({ "team": "-a" })), "labels.team"),
        (labels(json!({ "team": "a".repeat(64) })), "labels.team"),
        (labels(json!({ "te am": "a" })), "labels.te am"),
        (labels(json!({ "": "a" })), "labels."),
        (labels(json!({ "a'b": "a" })), "labels.a"),
        (labels(Value::Object(many)), "labels"),
    ];
    for (body, field) in rows {
        let reply = server.post_bytes("clusters", body.clone()).await;
        assert_eq!(reply.status, 400, "{}: {}", &body[..body.len().min(200)], reply.text);
        helpful(&reply, 400, field);
        assert!(reply.text.len() < 10_000, "an answer does not repeat what was sent");
    }
    assert_eq!(server.count("clusters").await, before, "nothing was written");
}

#[tokio::test]
async fn a_node_count_is_a_whole_number_from_1_to_100() {
    let server = Setup::embedded().start().await;
    let path = ready_cluster(&server).await;
    let pools = format!("{path}/nodepools");
    server.create(&pools, &json!({ "name": "there", "spec": { "nodeCount": 1 } })).await;
    server.ready(&format!("{pools}/there")).await;
    let before = server.get(&format!("{pools}/there")).await.expect(200);
    let rows = [
        ("0", "Invalid node count: 0. Must be between 1 and 100"),
        ("-1", "Invalid node count: -1. Must be between 1 and 100"),
        ("150", "Node count 150 exceeds maximum limit of 100 per nodepool"),
        ("101", "Node count 101 exceeds maximum limit of 100 per nodepool"),
        ("99999999999999999999999999", "spec.nodeCount must be a whole number"),
        ("\"5\"", "spec.nodeCount must be a whole number"),
        ("2.5", "spec.nodeCount must be a whole number"),
        ("1e2", "spec.nodeCount must be a whole number"),
        ("null", "spec.nodeCount must be a whole number"),
        ("[3]", "spec.nodeCount must be a whole number"),
        ("1e400", "not acceptable JSON"),
        ("NaN", "not acceptable JSON"),
        ("Infinity", "not acceptable JSON"),
    ];
    for (number, sentence) in rows {
        let body = format!(r#"{{"name":"workers","spec":{{"nodeCount":{number}}}}}"#);
        let reply = server.post_bytes(&pools, body).await;
        helpful(&reply, 400, "nodeCount");
        let detail = text(&reply.json(), "/detail").to_owned();
        assert!(detail.contains(sentence), "{number}: {detail}");
        // A PATCH is judged like a POST; there `null` removes the member.
        if number != "null" {
            let patch = format!(r#"{{"spec":{{"nodeCount":{number}}}}}"#);
            let request = server.request(Method::PATCH, &format!("{pools}/there"));
            let request = request.header("content-type", "application/json").body(patch);
            helpful(&server.send(request).await, 400, "nodeCount");
        }
    }
    assert_eq!(server.count(&pools).await.0, 1, "nothing was written");
    assert_eq!(server.get(&format!("{pools}/there")).await.expect(200), before);
}

#[tokio::test]
async fn a_body_that_is_no_acceptable_json_is_refused() {
    let server = Setup::embedded().start().await;
    let path = ready_cluster(&server).await;
    let before = server.count("clusters").await;
    let deep = |open: &str, close: &str, levels: usize| {
        let value = format!("{}1{}", open.repeat(levels), close.repeat(levels));
        format!(r#"{{"name":"a","spec":{{"x":{value}}}}}"#).into_bytes()
    };
    let keys: Vec<String> = (0..100_000).map(|n| format!("\"{n}\":1")).collect();
    let rows: Vec<(Vec<u8>, &str)> = vec![
        (b"".to_vec(), "it is empty"),
        (b"{".to_vec(), "line 1"),
        (b"{}{}".to_vec(), "line 1"),
        (b"[]".to_vec(), "must be a JSON object"),
        (b"null".to_vec(), "must be a JSON object"),
        (br#"{"name":"a","name":"b","spec":{}}"#.to_vec(), "a key is given twice"),
        (br#"{"name":"a","spec":{"x":{"y":1,"y":2}}}"#.to_vec(), "spec.x.y"),
        (deep("[", "]", 100_000), "nested deeper than 64 levels"),
        (deep("{\"a\":", "}", 100_000), "nested deeper than 64 levels"),
        (
            format!(r#"{{"name":"a","spec":{{{}}}}}"#, keys.join(",")).into_bytes(),
            "more than 10000",
        ),
        (b"{\"name\":\"a\xff\",\"spec\":{}}".to_vec(), "not UTF-8 at byte 10"),
        (b"{\"name\":\"\xed\xa0\x80\",\"spec\":{}}".to_vec(), "not UTF-8"),
        (br#"{"name":"\ud800","spec":{}}"#.to_vec(), "line 1"),
        (b"\xef\xbb\xbf{\"name\":\"a\",\"spec\":{}}".to_vec(), "line 1"),
    ];
    for (body, sentence) in rows {
        let start = String::from_utf8_lossy(&body).chars().take(60).collect::<String>();
        let reply = server.post_bytes("clusters", body).await;
        assert_eq!(reply.status, 400, "{start}: {}", reply.text);
        helpful(&reply, 400, sentence);
    }

    // Too much: a megabyte for a resource, a quarter of one for a status.
    let filler = |bytes: usize| format!(r#"{{"name":"a","spec":{{"x":"{}"}}}}"#, "x".repeat(bytes));
    helpful(&server.post_bytes("clusters", filler(2 << 20)).await, 413, "1048576 bytes");
    let statuses = format!("{path}/statuses");
    let request = server.request(Method::PUT, &statuses).header("content-type", "application/json");
    helpful(&server.send(request.body(filler(300 << 10))).await, 413, "262144 bytes");
    // Without a length it is cut off when it is too long.
    let chunks = futures_util::stream::iter((0..64).map(|_| {
        let chunk = bytes::Bytes::from(vec![b' '; 65_536]);
        Ok::<_, std::io::Error>(hyper::body::Frame::data(chunk))
    }));
    let body = reqwest::Body::wrap(http_body_util::StreamBody::new(chunks));
    helpful(&server.post_bytes("clusters", body).await, 413, "1048576 bytes");

    // Another form.
    let good = cluster("b").to_string();
    for kind in ["text/plain", "application/x-www-form-urlencoded", "application/xml", "nonsense"] {
        let request = server.request(Method::POST, "clusters").header("content-type", kind);
        helpful(&server.send(request.body(good.clone())).await, 415, "application/json");
    }
    let request =
        server.request(Method::POST, "clusters").header("content-type", "application/json");
    let request = request.header("content-encoding", "gzip").body(vec![0x1f, 0x8b, 8, 0]);
    helpful(&server.send(request).await, 415, "compressed");
    assert_eq!(server.count("clusters").await, before, "nothing was written");
}

#[tokio::test]
async fn a_list_says_what_is_wrong_with_its_parameters() {
    let server = Setup::embedded().start().await;
    let path = ready_cluster(&server).await;
    let rows = [
        ("phase=ready", "phase"),
        ("phase=", "phase"),
        ("status.phase=%22Nope%22", "status.phase"),
        ("provider=azure", "provider"),
        ("labels=team", "labels"),
        ("labels=team:", ""),
        ("labels=:ml", "labels"),
        ("labels=a:b,,c:d", "labels"),
        ("labels=te%20am:ml", "labels"),
        ("labels=team:ml%27%20or%201%3D1", "labels"),
        ("colour=red", "colour"),
        ("regoin=us-east1", "Did you mean 'region'?"),
        ("order=colour", "order"),
        ("order=spec", "order"),
        ("order=name;drop", "order"),
        ("order=name%20sideways", "order"),
        ("orderBy=colour", "order"),
        ("page=0", "page"),
        ("page=-1", "page"),
        ("page=one", "page"),
        ("page=99999999999999999999999", "page"),
        ("size=0", "size"),
        ("size=1000000000", "size"),
        ("size=1e9", "size"),
        ("page=1&page=2", "page"),
        ("fields=colour", "fields"),
        ("search=", ""),
        ("search=name", "search"),
        ("search=name%20%3D", "search"),
        ("search=colour%20%3D%20%27red%27", "colour"),
        ("search=name%20%3D%20%27a", "search"),
        ("search=((((name%20%3D%20%27a%27)", "search"),
        ("search=name%20%3D%20%27a%27%3B%20drop%20table%20documents", "search"),
        ("search=name%20%3D%20%27a%27%20--%20", "search"),
        ("search=%ff", "search"),
        ("name=%c3%28", "name"),
        ("%ff=1", "UTF-8"),
        ("dry_run=maybe", "dry_run"),
        ("watch=maybe", "watch"),
        ("watch=true&resource_version=x", "resource_version"),
    ];
    for list in ["clusters", &format!("{path}/nodepools"), "nodepools"] {
        for (query, field) in rows {
            let reply = server.get(&format!("{list}?{query}")).await;
            if field.is_empty() {
                assert_eq!(reply.status, 200, "{query}: {}", reply.text);
                continue;
            }
            assert_eq!(reply.status, 400, "{list}?{query}: {}", reply.text);
            let body = reply.refused(400, &json!({}));
            assert!(reply.text.contains(field) || body["code"] == "HYPERFLEET-VAL-007", "{body:#}");
        }
    }
    // Deep searches are cut off, not run out of stack.
    let deep = format!("{}name = 'a'{}", "(".repeat(10_000), ")".repeat(10_000));
    let request = server.request(Method::GET, "clusters").query(&[("search", &deep)]);
    let reply = server.send(request).await;
    assert!(matches!(reply.status, 400 | 414 | 431), "{}", reply.status);
}

#[tokio::test]
async fn nothing_that_is_sent_is_run() {
    let server = Setup::embedded().start().await;
    ready_cluster(&server).await;
    let evil = [
        "' or '1'='1",
        "'; drop table documents; --",
        "\" or \"\"=\"",
        "%",
        "_",
        "*",
        "${7*7}",
        "{{7*7}}",
        "../../etc/passwd",
        "alpha' /*",
        "a\u{0}b",
        "\u{202e}",
        "🚀",
        "' union select 1 --",
    ];
    for text in evil {
        // As a name it is just a name that nobody has.
        let request = server.request(Method::GET, "clusters").query(&[("name", text)]);
        let list = server.send(request).await;
        assert_eq!(list.expect(200)["total"], 0, "{text}");
        // As text inside a search, too: a quote ends the text, and what follows must be a search.
        let quoted = format!("name = '{}'", text.replace('\'', "''"));
        let request = server.request(Method::GET, "clusters").query(&[("search", &quoted)]);
        let list = server.send(request).await;
        assert!(list.status == 400 || list.expect(200)["total"] == 0, "{text}: {}", list.text);
        let bare = format!("name = '{text}'");
        let request = server.request(Method::GET, "clusters").query(&[("search", &bare)]);
        let reply = server.send(request).await;
        assert!(reply.status == 200 || reply.status == 400, "{text}: {}", reply.text);
        // And as an id.
        let id: String = text.bytes().map(|byte| format!("%{byte:02x}")).collect();
        let reply = server.get(&format!("clusters/{id}")).await;
        assert!(matches!(reply.status, 400 | 404), "{text}: {} {}", reply.status, reply.text);
    }
    // In a spec it is data, given back as it came.
    let spec = json!({ "note": evil.join(" ") });
    let created = server.create("clusters", &json!({ "name": "beta", "spec": spec })).await;
    assert_eq!(created["spec"], spec);
    assert_eq!(server.count("clusters").await.0, 2);
}

#[tokio::test]
async fn broken_text_in_a_path_is_refused() {
    let server = Setup::embedded().start().await;
    let rows = [
        ("clusters/%ff", 400),
        ("clusters/%c3%28/nodepools", 400),
        ("clusters/%00", 404),
        ("clusters/..%2f..%2fetc", 404),
        ("clusters/a%2Fb", 404),
        ("nope", 404),
        ("clusters/a/b/c/d", 404),
    ];
    for (path, status) in rows {
        let reply = server.get(path).await;
        assert_eq!(reply.status, status, "{path}: {}", reply.text);
        reply.refused(status, &json!({}));
    }
}

/// Sends bytes as they are; all that comes back before the server hangs up.
async fn raw(server: &Server, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(server.address()).await.expect("a listener");
    stream.write_all(bytes).await.expect("it listens");
    let mut answer = Vec::new();
    // A server may cut off the connection of somebody who goes on sending.
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test]
async fn requests_that_are_not_http_are_answered_or_cut_off() {
    let config = "limits: { head_time: 1s, idle_time: 1s }";
    let server = Setup::embedded().config(config).start().await;
    let long = "x".repeat(100_000);
    let lines: String = (0..500).map(|n| format!("h{n}: v\r\n")).collect();
    let rows = [
        "nonsense\r\n\r\n".to_owned(),
        "GET / HTTP/9.9\r\n\r\n".to_owned(),
        "\u{0}\u{1}\u{2}\r\n\r\n".to_owned(),
        format!("GET /{long} HTTP/1.1\r\nhost: a\r\n\r\n"),
        format!("GET / HTTP/1.1\r\nhost: a\r\nx: {long}\r\n\r\n"),
        format!("GET / HTTP/1.1\r\nhost: a\r\n{lines}\r\n"),
        "POST /api/hyperfleet/v1/clusters HTTP/1.1\r\nhost: a\r\ncontent-length: -1\r\n\r\n".to_owned(),
        "POST /api/hyperfleet/v1/clusters HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n"
            .to_owned(),
    ];
    for request in rows {
        let answer = raw(&server, request.as_bytes()).await;
        let status = answer.strip_prefix("HTTP/1.1 ").map(|rest| &rest[..3]);
        assert!(status.is_none_or(|status| status.starts_with('4')), "{answer}");
    }
    server.get("/healthz").await.expect_status(200);
}

#[tokio::test]
async fn a_client_that_takes_too_long_is_cut_off_and_holds_nobody_up() {
    // J1 and J2: a head that never ends, and a connection that never asks.
    let config = "limits: { head_time: 1s, idle_time: 1s }";
    let server = Setup::embedded().config(config).start().await;
    let slow = async {
        let head = b"GET /api/hyperfleet/v1/clusters HTTP/1.1\r\nhost: a\r\nx-slow: ";
        raw(&server, head).await
    };
    let idle = async { raw(&server, b"").await };
    let honest = async { server.create("clusters", &cluster("honest")).await };
    let (slow, idle, created) = tokio::join!(slow, idle, honest);
    assert!(slow.is_empty() || slow.starts_with("HTTP/1.1 408"), "{slow}");
    assert_eq!(idle, "");
    assert_eq!(created["name"], "honest");
}

#[tokio::test]
async fn a_body_that_ends_early_writes_nothing() {
    let server = Setup::embedded().start().await;
    let before = server.count("clusters").await;
    let body = cluster("half").to_string();
    let head = format!(
        "POST /api/hyperfleet/v1/clusters HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len() + 10
    );
    let mut stream = TcpStream::connect(server.address()).await.expect("a listener");
    stream.write_all(head.as_bytes()).await.expect("it listens");
    stream.shutdown().await.expect("half of it");
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer).await;
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 400"), "{answer}");
    assert_eq!(server.count("clusters").await, before);
}

#[tokio::test]
async fn what_is_being_deleted_takes_no_changes() {
    let server = Setup::embedded().start().await;
    let path = ready_cluster(&server).await;
    let pool = json!({ "name": "workers", "spec": { "nodeCount": 1 } });
    server.create(&format!("{path}/nodepools"), &pool).await;
    server.ready(&format!("{path}/nodepools/workers")).await;
    server.set_latency("removal", 3_600_000).await;
    server.delete(&path).await.expect(202);
    let before = server.get(&path).await.expect(200);
    let patch = json!({ "spec": { "region": "us-west1" } });
    helpful(&server.patch(&path, &patch).await, 409, "is being deleted");
    let pool_path = format!("{path}/nodepools/workers");
    helpful(
        &server.patch(&pool_path, &json!({ "spec": { "nodeCount": 2 } })).await,
        409,
        "deleted",
    );
    let another = json!({ "name": "more", "spec": { "nodeCount": 1 } });
    helpful(&server.post(&format!("{path}/nodepools"), &another).await, 409, "is being deleted");
    helpful(&server.post("clusters", &cluster("alpha")).await, 409, "still being deleted");
    subset(&server.get(&path).await.expect(200), &json!({ "generation": before["generation"] }));
    assert_eq!(server.count(&format!("{path}/nodepools")).await.0, 1);
}

#[tokio::test]
async fn of_two_patches_at_one_revision_one_wins() {
    let server = Setup::embedded().start().await;
    let path = ready_cluster(&server).await;
    let tag = server.get(&path).await.header("etag").to_owned();
    let patch = |label: &'static str| {
        let body = json!({ "labels": { "who": label } });
        let request = server.request(Method::PATCH, &path).header("if-match", &tag);
        server.send(request.json(&body))
    };
    let (a, b, c) = tokio::join!(patch("a"), patch("b"), patch("c"));
    let mut replies = [a, b, c];
    replies.sort_by_key(|reply| reply.status);
    let [won, lost, also_lost] = &replies;
    let won = won.expect(200);
    for lost in [lost, also_lost] {
        helpful(lost, 409, "changed by somebody else");
        assert_eq!(lost.json()["code"], "HYPERFLEET-CNF-002");
        assert!(lost.json()["current_revision"].is_u64());
    }
    let now = server.get(&path).await.expect(200);
    assert_eq!((&now["labels"], &now["generation"]), (&won["labels"], &json!(2)));
    // A tag that is none is the client's mistake, not a lost race.
    for tag in ["42", "\"x\"", "W/\"1\"", "\"1\", \"2\"", ""] {
        let request = server.request(Method::PATCH, &path).header("if-match", tag);
        helpful(&server.send(request.json(&json!({ "labels": {} }))).await, 400, "If-Match");
    }
}

#[tokio::test]
async fn patches_at_the_same_time_are_all_counted() {
    let server = Setup::embedded().start().await;
    let path = ready_cluster(&server).await;
    let patches = (0..8).map(|n| {
        let body = json!({ "labels": { (format!("k{n}")): "v" } });
        let request = server.request(Method::PATCH, &path).json(&body);
        server.send(request)
    });
    for reply in futures_util::future::join_all(patches).await {
        reply.expect(200);
    }
    let now = server.get(&path).await.expect(200);
    assert_eq!(now["generation"], 9);
    assert_eq!(now["labels"].as_object().map(serde_json::Map::len), Some(8));
}

#[tokio::test]
async fn a_patch_must_change_something_it_may() {
    let server = Setup::embedded().start().await;
    let path = ready_cluster(&server).await;
    let before = server.get(&path).await.expect(200);
    let rows = [
        (json!({}), "An empty PATCH changes nothing"),
        (json!({ "name": "beta" }), "name"),
        (json!({ "status": {} }), "status"),
        (json!({ "spec": [] }), "spec"),
        (json!({ "spec": null }), "spec"),
        (json!({ "labels": "x" }), "labels"),
        (json!({ "labels": { "a b": "c" } }), "labels.a b"),
        (json!({ "spec": { "region": "mars" } }), "spec.region"),
        (json!({ "spec": { "provider": "azure" } }), "spec.provider"),
    ];
    for (body, field) in rows {
        let reply = server.patch(&path, &body).await;
        reply.refused(400, &json!({}));
        assert!(reply.text.contains(field), "{body}: {}", reply.text);
    }
    assert_eq!(server.get(&path).await.expect(200), before);
}

fn report(generation: Value, conditions: &[(&str, &str)]) -> Value {
    let condition = |(kind, status): &(&str, &str)| json!({ "type": kind, "status": status, "reason": "Test", "message": "" });
    let conditions: Vec<Value> = conditions.iter().map(condition).collect();
    json!({ "adapter": "extra", "observed_generation": generation, "conditions": conditions })
}

const GOOD: [(&str, &str); 3] = [("Available", "True"), ("Applied", "True"), ("Health", "True")];

#[tokio::test]
async fn reports_of_other_generations_and_times_change_nothing() {
    let server = Setup::embedded().start().await;
    let path = ready_cluster(&server).await;
    let statuses = format!("{path}/statuses");
    let before = server.get(&statuses).await.expect(200);
    // A generation that does not exist yet: heard, not believed.
    let reply = server.put(&statuses, &report(json!(7), &GOOD)).await;
    assert_eq!((reply.status, reply.text.as_str()), (204, ""));
    // An hour ago, and an hour ahead.
    let created: jiff::Timestamp =
        text(&server.get(&path).await.expect(200), "/created_at").parse().expect("a time");
    for hours in [-1, 1] {
        let mut far = report(json!(1), &GOOD);
        let time = created + jiff::SignedDuration::from_hours(hours);
        far["observed_time"] = json!(time.to_string());
        helpful(&server.put(&statuses, &far).await, 400, "observed_time");
    }
    let rows = [
        (report(json!(0), &GOOD), "observed_generation"),
        (report(json!(-1), &GOOD), "observed_generation"),
        (report(json!(1.5), &GOOD), "observed_generation"),
        (report(json!("1"), &GOOD), "observed_generation"),
        (report(json!(99_999_999_999_u64), &GOOD), "observed_generation"),
        (report(json!(1), &GOOD[..2]), "Health"),
        (report(json!(1), &[]), "Available"),
        (report(json!(1), &[GOOD[0], GOOD[1], GOOD[2], GOOD[0]]), "conditions[3].type"),
        (report(json!(1), &[("Available", "yes"), GOOD[1], GOOD[2]]), "conditions[0].status"),
        (report(json!(1), &[("", "True"), GOOD[1], GOOD[2]]), "conditions[0].type"),
        (json!({ "observed_generation": 1, "conditions": [] }), "adapter"),
        (json!({ "adapter": "Bad Name", "observed_generation": 1, "conditions": [] }), "adapter"),
        (json!({ "adapter": "extra", "observed_generation": 1, "conditions": {} }), "conditions"),
    ];
    for (body, field) in rows {
        let reply = server.put(&statuses, &body).await;
        assert_eq!(reply.status, 400, "{body}: {}", reply.text);
        helpful(&reply, 400, field);
    }
    assert_eq!(server.get(&statuses).await.expect(200), before);
    // The generation that exists is stored; an older one later is not.
    server.put(&statuses, &report(json!(1), &GOOD)).await.expect(201);
    server.patch(&path, &json!({ "labels": { "a": "b" } })).await.expect(200);
    server.put(&statuses, &report(json!(2), &GOOD)).await.expect(201);
    assert_eq!(server.put(&statuses, &report(json!(1), &GOOD)).await.status, 204);
}

#[tokio::test]
async fn an_idempotency_key_stands_for_one_request() {
    let server = Setup::embedded().start().await;
    let post = |key: &str, name: &str| {
        let request = server.request(Method::POST, "clusters").header("idempotency-key", key);
        server.send(request.json(&cluster(name)))
    };
    let first = post("k1", "alpha").await.expect(201);
    let again = post("k1", "alpha").await;
    assert_eq!(again.header("idempotency-replayed"), "true");
    assert_eq!(again.expect(201)["id"], first["id"]);
    helpful(&post("k1", "beta").await, 422, "idempotency key");
    // At the same time, too.
    let (a, b, c) = tokio::join!(post("k2", "gamma"), post("k2", "gamma"), post("k2", "gamma"));
    let ids = [a, b, c].map(|reply| reply.expect(201)["id"].clone());
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    assert_eq!(server.count("clusters").await.0, 2);
    for key in ["", "with space", &"k".repeat(256)] {
        helpful(&post(key, "delta").await, 400, "Idempotency-Key");
    }
    // Without a key the name decides.
    helpful(&server.post("clusters", &cluster("alpha")).await, 409, "exists already");
    assert_eq!(server.count("clusters").await.0, 2);
}

#[tokio::test]
async fn a_dry_run_answers_as_if_and_changes_nothing() {
    let server = Setup::embedded().start().await;
    let path = ready_cluster(&server).await;
    let before = (server.count("clusters").await, server.get(&path).await.expect(200));
    let dry = server.post("clusters?dry_run=true", &cluster("beta")).await;
    assert_eq!(dry.header("dry-run"), "true");
    subset(&dry.expect(201), &cluster("beta"));
    let patch = json!({ "spec": { "region": "us-west1" } });
    let dry = server.patch(&format!("{path}?dry_run=true"), &patch).await.expect(200);
    subset(&dry, &json!({ "generation": 2, "spec": { "region": "us-west1" } }));
    let dry = server.delete(&format!("{path}?dry_run=true")).await.expect(202);
    subset(&dry, &json!({ "status": { "phase": "Terminating" } }));
    // What would be refused is refused.
    server.post("clusters?dry_run=true", &cluster("alpha")).await.refused(409, &json!({}));
    server.post("clusters?dry_run=true", &cluster("Alpha")).await.refused(400, &json!({}));
    let after = (server.count("clusters").await, server.get(&path).await.expect(200));
    assert_eq!(after, before);
    server.get("clusters/beta").await.refused(404, &json!({ "error": "Cluster not found" }));
}

#[tokio::test]
async fn force_delete_needs_a_reason_and_a_deletion() {
    let server = Setup::embedded().start().await;
    let path = ready_cluster(&server).await;
    let force = format!("{path}/force-delete");
    helpful(&server.post(&force, &json!({ "reason": "gone" })).await, 409, "not being deleted");
    for (body, field) in [
        (json!({}), "reason"),
        (json!({ "reason": "" }), "reason"),
        (json!({ "reason": 7 }), "reason"),
        (json!({ "reason": "x".repeat(1025) }), "reason"),
    ] {
        helpful(&server.post(&force, &body).await, 400, field);
    }
    let flat = json!({ "name": "workers", "spec": {} });
    helpful(&server.post("nodepools", &flat).await, 422, "must be created under its cluster");
    server.get(&path).await.expect(200);
}
