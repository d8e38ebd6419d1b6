//! Single calls: each protocol, each error, and what strangers and vandals get.

use super::{Called, NAVARCH, OURS, Serving, field, framed, frames, serve};
use axum::body::Body;
use axum::http::{Method, Request, Version};
use connectrpc::GzipProvider;
use connectrpc::compression::CompressionProvider;
use serde_json::json;

const H1: Version = Version::HTTP_11;
const H2: Version = Version::HTTP_2;

const PROTO: &[(&str, &str)] = &[("content-type", "application/proto")];
const GRPC: &[(&str, &str)] = &[("content-type", "application/grpc"), ("te", "trailers")];
const GRPC_WEB: &[(&str, &str)] = &[("content-type", "application/grpc-web+proto")];

/// The status of an answer of gRPC, in trailers or, if there is nothing else, in headers.
fn grpc_status(called: &Called) -> (u32, String) {
    assert_eq!(called.status, 200, "{called:?}");
    let header = |name: &str| {
        let value = called.trailers.get(name).or_else(|| called.headers.get(name));
        value.map_or("", |value| value.to_str().unwrap()).to_owned()
    };
    (header("grpc-status").parse().unwrap(), header("grpc-message"))
}

/// The status of an answer of gRPC-Web, in its last frame.
fn grpc_web_status(called: &Called) -> u32 {
    assert_eq!(called.status, 200, "{called:?}");
    let (flags, trailers) = frames(&called.body).pop().unwrap();
    assert_eq!(flags, 0x80, "{called:?}");
    let trailers = String::from_utf8(trailers).unwrap();
    let status = trailers.lines().find_map(|line| line.strip_prefix("grpc-status:"));
    status.unwrap().trim().parse().unwrap()
}

#[tokio::test]
async fn a_daemons_heartbeat_is_acknowledged_by_every_protocol() {
    let serving = serve().await;
    serving.register("n1").await;
    let path = format!("{NAVARCH}/SendHeartbeat");
    let heartbeat = field(1, "n1");
    for version in [H1, H2] {
        let called = serving.call(version, "fleet", &path, PROTO, heartbeat.clone()).await;
        assert_eq!((called.status, &called.body[..]), (200, &[0x08, 1][..]), "{called:?}");
        assert_eq!(called.header("content-type"), "application/proto");
        let called = serving.call(version, "fleet", &path, GRPC_WEB, framed(0, &heartbeat)).await;
        assert_eq!(frames(&called.body)[0], (0, vec![0x08, 1]), "{called:?}");
        assert_eq!(grpc_web_status(&called), 0);
        let json = &[("content-type", "application/json; charset=utf-8")];
        let called = serving.call(version, "fleet", &path, json, r#"{"nodeId":"n1"}"#).await;
        assert_eq!(called.json(), json!({"acknowledged": true}), "{called:?}");
    }
    let called = serving.call(H2, "fleet", &path, GRPC, framed(0, &heartbeat)).await;
    assert_eq!(frames(&called.body), [(0, vec![0x08, 1])], "{called:?}");
    assert_eq!(grpc_status(&called).0, 0);
    let json = &[("content-type", "application/grpc+json"), ("te", "trailers")];
    let called = serving.call(H2, "fleet", &path, json, framed(0, br#"{"node_id":"n1"}"#)).await;
    assert_eq!(frames(&called.body)[0].1, br#"{"acknowledged":true}"#, "{called:?}");
}

#[tokio::test]
async fn the_length_of_an_answer_is_said_before_it() {
    let serving = serve().await;
    let called = serving.json("admin", &format!("{NAVARCH}/ListInstances"), "{}").await;
    assert_eq!((called.header("content-length"), &called.body[..]), ("2", &b"{}"[..]));
}

#[tokio::test]
async fn a_registered_node_is_configured_and_shown() {
    let serving = serve().await;
    let register = format!("{NAVARCH}/RegisterNode");
    let called = serving.json("fleet", &register, r#"{"nodeId":"n1","provider":"gcp"}"#).await;
    let config = json!({
        "heartbeatIntervalSeconds": 30,
        "healthCheckIntervalSeconds": 60,
        "enabledHealthChecks": ["boot", "nvml", "xid"],
    });
    let answer = json!({"success": true, "message": "registration successful", "config": config});
    assert_eq!(called.json(), answer);

    let get = format!("{NAVARCH}/GetNode");
    let called = serving.json("viewer", &get, r#"{"nodeId":"n1"}"#).await;
    let mut node = called.json()["node"].clone();
    // To register is a sign of life.
    assert!(node["lastHeartbeat"].take().is_string(), "{called:?}");
    let expected = json!({
        "nodeId": "n1", "provider": "gcp", "status": "NODE_STATUS_ACTIVE", "lastHeartbeat": null,
        "metadata": {"labels": {"team": "alpha"}},
    });
    // Nothing of what is not known.
    assert_eq!(node, expected);
}

#[tokio::test]
async fn lists_are_filtered_by_all_that_is_said() {
    let serving = serve().await;
    for node in ["n1", "n2", "n3"] {
        serving.register(node).await;
    }
    let cordon = r#"{"nodeId":"n2","commandType":"NODE_COMMAND_TYPE_CORDON"}"#;
    serving.json("operator", &format!("{NAVARCH}/IssueCommand"), cordon).await;
    for (asked, expected) in [
        ("{}", "n1 n2 n3"),
        (r#"{"provider":"gcp"}"#, "n1 n2 n3"),
        (r#"{"provider":"aws"}"#, ""),
        (r#"{"region":"us-east1","status":"NODE_STATUS_ACTIVE"}"#, "n1 n3"),
        (r#"{"region":"us-east1","status":2}"#, "n2"),
        (r#"{"region":"us-west1","status":2}"#, ""),
        (r#"{"status":77}"#, ""),
    ] {
        let called = serving.json("viewer", &format!("{NAVARCH}/ListNodes"), asked).await;
        let listed = called.json();
        let nodes = listed["nodes"].as_array().cloned().unwrap_or_default();
        let ids: Vec<_> = nodes.iter().map(|node| node["nodeId"].as_str().unwrap()).collect();
        assert_eq!(ids.join(" "), expected, "{asked}");
    }
}

#[tokio::test]
async fn what_is_wrong_with_a_call_is_said_as_recorded() {
    let serving = serve().await;
    serving.register("n1").await;
    let many_labels: String = (0..65).map(|at| format!(r#""label-{at}":"x","#)).collect();
    let many_labels = format!(
        r#"{{"nodeId":"n1","metadata":{{"labels":{{{}}}}}}}"#,
        many_labels.trim_end_matches(',')
    );
    let many_gpus = format!(r#"{{"nodeId":"n1","gpus":[{}{{}}]}}"#, "{},".repeat(64));
    let many_events = format!(r#"{{"nodeId":"n1","events":[{}{{}}]}}"#, "{},".repeat(1000));
    let many_results = format!(
        r#"{{"nodeId":"n1","results":[{}{{"checkName":"x"}}]}}"#,
        r#"{"checkName":"x"},"#.repeat(64)
    );
    let unknown = "node not found: n9; register it first, with RegisterNode";
    let odd = "node_id may hold letters, digits, dots, underscores, colons and hyphens, and must \
               start and end with a letter or digit";
    let rows: &[(&str, &str, u16, &str, &str)] = &[
        ("RegisterNode", "{}", 400, "invalid_argument", "node_id is required"),
        ("ReportHealth", "{}", 400, "invalid_argument", "node_id is required"),
        ("ReportHealth", r#"{"nodeId":"n9"}"#, 404, "not_found", unknown),
        ("SendHeartbeat", "{}", 400, "invalid_argument", "node_id is required"),
        ("SendHeartbeat", r#"{"nodeId":"n9"}"#, 404, "not_found", unknown),
        ("GetNodeCommands", "{}", 400, "invalid_argument", "node_id is required"),
        ("GetNode", "{}", 400, "invalid_argument", "node_id is required"),
        ("GetNode", r#"{"nodeId":"a b"}"#, 400, "invalid_argument", odd),
        ("SendHeartbeat", r#"{"nodeId":"-"}"#, 400, "invalid_argument", odd),
        ("GetNodeCommands", r#"{"nodeId":"\u001b[2J"}"#, 400, "invalid_argument", odd),
        ("GetNode", r#"{"nodeId":"n9"}"#, 404, "not_found", "node not found: n9"),
        ("IssueCommand", "{}", 400, "invalid_argument", "node_id is required"),
        ("IssueCommand", r#"{"nodeId":"n9"}"#, 400, "invalid_argument", "command_type is required"),
        (
            "IssueCommand",
            r#"{"nodeId":"n9","commandType":1}"#,
            404,
            "not_found",
            "node not found: n9",
        ),
        (
            "IssueCommand",
            r#"{"nodeId":"n1","commandType":77}"#,
            400,
            "invalid_argument",
            "command_type 77 is unknown; known are CORDON, DRAIN, RUN_DIAGNOSTIC, TERMINATE, UNCORDON",
        ),
        (
            "IssueCommand",
            r#"{"nodeId":"n1","commandType":"NODE_COMMAND_TYPE_UNCORDON"}"#,
            400,
            "failed_precondition",
            "node n1 is not cordoned (current status: NODE_STATUS_ACTIVE)",
        ),
        (
            "IssueCommand",
            r#"{"nodeId":"n1","commandType":2,"parameters":{"timeout":"soon"}}"#,
            400,
            "invalid_argument",
            "parameters.timeout is not a whole number of seconds, at least 1",
        ),
        ("GetInstance", "{}", 400, "invalid_argument", "instance_id is required"),
        ("GetInstance", r#"{"instanceId":"i9"}"#, 404, "not_found", "instance not found: i9"),
        (
            "SendHeartbeat",
            r#"{"nodeId":"n1","metrics":{"cpuUsagePercent":"NaN"}}"#,
            400,
            "invalid_argument",
            "metrics.cpu_usage_percent is not a finite number",
        ),
        (
            "SendHeartbeat",
            r#"{"nodeId":"n1","metrics":{"gpuMetrics":[{},{"utilizationPercent":"Infinity"}]}}"#,
            400,
            "invalid_argument",
            "metrics.gpu_metrics[1].utilization_percent is not a finite number",
        ),
        (
            "SendHeartbeat",
            r#"{"nodeId":"n1","metrics":{"gpuMetrics":[{"gpuIndex":-5}]}}"#,
            400,
            "invalid_argument",
            "metrics.gpu_metrics[0].gpu_index is -5, which is no place of a GPU",
        ),
        (
            "RegisterNode",
            &many_labels,
            400,
            "invalid_argument",
            "metadata.labels has 65 entries; at most 64 are allowed",
        ),
        (
            "RegisterNode",
            &many_gpus,
            400,
            "invalid_argument",
            "gpus has 65 entries; at most 64 are allowed",
        ),
        (
            "ReportHealth",
            &many_events,
            400,
            "invalid_argument",
            "events has 1001 entries; at most 1000 are allowed",
        ),
        (
            "ReportHealth",
            &many_results,
            400,
            "invalid_argument",
            "results has 65 entries; at most 64 are allowed",
        ),
        (
            "RegisterNode",
            r#"{"nodeId":"n1","metadata":{"hostname":"a\u001b[2Jb"}}"#,
            400,
            "invalid_argument",
            "metadata.hostname may not hold control characters",
        ),
    ];
    let get = async || {
        let get = format!("{NAVARCH}/GetNode");
        serving.json("admin", &get, r#"{"nodeId":"n1"}"#).await.json()
    };
    let before = get().await;
    for (method, body, status, code, message) in rows {
        let called = serving.json("admin", &format!("{NAVARCH}/{method}"), body).await;
        assert_eq!(called.status, *status, "{method} {body}: {called:?}");
        assert_eq!(called.header("content-type"), "application/json", "{method} {body}");
        assert_eq!(called.json(), json!({"code": code, "message": message}), "{method} {body}");
    }
    // What was refused left nothing behind but that the node was heard.
    let mut after = get().await;
    after["node"]["lastHeartbeat"] = before["node"]["lastHeartbeat"].clone();
    assert_eq!(after, before);
}

#[tokio::test]
async fn a_cordon_of_what_is_cordoned_succeeds() {
    let serving = serve().await;
    serving.register("n1").await;
    for kind in ["CORDON", "DRAIN"] {
        let path = format!("{NAVARCH}/IssueCommand");
        let body = format!(r#"{{"nodeId":"n1","commandType":"NODE_COMMAND_TYPE_{kind}"}}"#);
        let first = serving.json("operator", &path, &body).await;
        let again = serving.json("operator", &path, &body).await;
        assert_eq!((first.status, again.json()), (200, first.json()), "{kind}");
    }
}

#[tokio::test]
async fn a_node_nobody_knows_has_no_commands_on_navarchs_wire() {
    let serving = serve().await;
    let called =
        serving.json("fleet", &format!("{NAVARCH}/GetNodeCommands"), r#"{"nodeId":"n9"}"#).await;
    assert_eq!((called.status, called.json()), (200, json!({})));
    let called = serving.json("fleet", &format!("{OURS}/PollCommands"), r#"{"nodeId":"n9"}"#).await;
    assert_eq!((called.status, &called.json()["code"]), (404, &json!("not_found")));
}

#[tokio::test]
async fn errors_of_grpc_are_in_trailers() {
    let serving = serve().await;
    let path = format!("{NAVARCH}/GetNode");
    let called = serving.call(H2, "viewer", &path, GRPC, framed(0, &field(1, "n9"))).await;
    assert_eq!(grpc_status(&called), (5, "node not found: n9".to_owned()));
    let called = serving.call(H1, "viewer", &path, GRPC_WEB, framed(0, &field(1, "n9"))).await;
    assert_eq!(grpc_web_status(&called), 5);
}

#[tokio::test]
async fn a_clock_in_the_year_9999_is_alive() {
    let serving = serve().await;
    serving.register("n1").await;
    let path = format!("{NAVARCH}/SendHeartbeat");
    for (time, status) in [
        ("9999-12-31T23:59:59Z", 200),
        ("0001-01-01T00:00:00Z", 200),
        ("2026-11-15T12:00:00.123456789Z", 200),
    ] {
        let body = format!(r#"{{"nodeId":"n1","timestamp":"{time}"}}"#);
        assert_eq!(serving.json("fleet", &path, &body).await.status, status, "{time}");
    }
    // A number of seconds that is no year at all.
    let time = [&[0x08][..], &[0xff; 9], &[0x01]].concat();
    let body = [
        field(1, "n1"),
        field(2, [&[0x08, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x7f][..]].concat()),
    ]
    .concat();
    let called = serving.call(H1, "fleet", &path, PROTO, body).await;
    assert_eq!(called.json()["message"], "timestamp is not a time between the years 1 and 9999");
    // One second before 1970, which is a time.
    let body = [field(1, "n1"), field(2, time)].concat();
    assert_eq!(serving.call(H1, "fleet", &path, PROTO, body).await.status, 200);
}

#[tokio::test]
async fn only_what_was_recorded_is_answered_to_a_wrong_request() {
    let serving = serve().await;
    let send = async |method: Method, path: &str, kind: &str| {
        let mut request = Request::builder().method(method).uri(path).header("host", "x");
        if !kind.is_empty() {
            request = request.header("content-type", kind);
        }
        let token = "Bearer admin-token-with-enough-characters";
        let request = request.header("authorization", token).body(Body::empty()).unwrap();
        serving.send(H1, request).await
    };
    let heartbeat = format!("{NAVARCH}/SendHeartbeat");
    for method in [Method::GET, Method::PUT, Method::DELETE, Method::OPTIONS] {
        let called = send(method.clone(), &heartbeat, "application/json").await;
        assert_eq!((called.status, called.header("allow")), (405, "POST"), "{method}");
        let called = send(method.clone(), &format!("{NAVARCH}/Nonsense"), "").await;
        assert_eq!(called.status, 404, "{method}");
    }
    for kind in ["text/plain", "application/xml", ""] {
        let called = send(Method::POST, &heartbeat, kind).await;
        assert_eq!(called.status, 415, "{kind}: {called:?}");
        let accepted = called.header("accept-post");
        for known in ["application/proto", "application/json", "application/grpc"] {
            assert!(accepted.split(", ").any(|kind| kind == known), "{accepted}");
        }
    }
    for path in [format!("{NAVARCH}/Nonsense"), format!("{OURS}/"), format!("{OURS}/Attach/x")] {
        let called = send(Method::POST, &path, "application/proto").await;
        assert_eq!((called.status, &called.json()["code"]), (404, &json!("unimplemented")));
    }
    let called = send(Method::POST, "/navarch.Nonsense/SendHeartbeat", "application/proto").await;
    assert_eq!(called.status, 404);
}

#[tokio::test]
async fn r2_a11_navarchs_wire_works_as_recorded_and_what_exceeds_a_budget_is_counted() {
    let serving = serve().await;
    let nodes = ["n1", "n2", "n3"];
    for id in nodes {
        serving.register(id).await;
    }
    for id in nodes {
        let path = format!("{NAVARCH}/IssueCommand");
        let command = format!(r#"{{"nodeId":"{id}","commandType":"NODE_COMMAND_TYPE_TERMINATE"}}"#);
        let called = serving.json("operator", &path, &command).await;
        assert_eq!(called.status, 200, "{called:?}");
    }
    let stats = &serving.world.control.stats;
    assert_eq!((stats.over_budget_unasked.get(), stats.over_budget.get()), (2, 0));
}

#[tokio::test]
async fn k1_one_nodes_credential_is_no_good_for_another() {
    let serving = serve().await;
    serving.register("gpu-1").await;
    serving.register("gpu-2").await;
    let command = r#"{"nodeId":"gpu-2","commandType":"NODE_COMMAND_TYPE_RUN_DIAGNOSTIC"}"#;
    let issued = serving.json("operator", &format!("{NAVARCH}/IssueCommand"), command).await.json();
    let ack = format!(
        r#"{{"nodeId":"gpu-2","ack":{{"commandId":{},"state":"COMMAND_STATE_COMPLETED"}}}}"#,
        issued["commandId"]
    );
    let of = |node: &str| format!(r#"{{"nodeId":"{node}"}}"#);
    for (path, own, other) in [
        ("RegisterNode", of("gpu-1"), of("gpu-2")),
        ("SendHeartbeat", of("gpu-1"), of("gpu-2")),
        ("ReportHealth", of("gpu-1"), of("gpu-2")),
        ("GetNodeCommands", of("gpu-1"), of("gpu-2")),
    ] {
        let path = format!("{NAVARCH}/{path}");
        assert_eq!(serving.json("gpu-1", &path, &own).await.status, 200, "{path}");
        let refused = serving.json("gpu-1", &path, &other).await;
        let code = refused.json()["code"].clone();
        assert_eq!((refused.status, code), (403, json!("permission_denied")), "{path}");
    }
    let path = format!("{OURS}/AckCommand");
    assert_eq!(serving.json("gpu-1", &path, &ack).await.status, 403);
    assert_eq!(serving.json("fleet", &path, &ack).await.status, 200);
}

#[tokio::test]
async fn who_may_call_what() {
    let serving = serve().await;
    serving.register("gpu-1").await;
    let of = r#"{"nodeId":"gpu-1"}"#;
    let cordon = r#"{"nodeId":"gpu-1","commandType":1}"#;
    for (who, heartbeat, get, issue) in [
        ("", 401, 401, 401),
        ("nobody", 401, 401, 401),
        ("viewer", 403, 200, 403),
        ("operator", 403, 200, 200),
        ("admin", 200, 200, 200),
        ("fleet", 200, 403, 403),
        ("stranger", 404, 404, 404),
    ] {
        for (method, body, status) in [
            ("SendHeartbeat", of, heartbeat),
            ("GetNode", of, get),
            ("IssueCommand", cordon, issue),
        ] {
            let called = serving.json(who, &format!("{NAVARCH}/{method}"), body).await;
            assert_eq!(called.status, status, "{who} {method}: {called:?}");
            if status == 401 {
                let challenge = called.header("www-authenticate");
                assert_eq!(challenge, "Bearer realm=\"navarch\"", "{who} {method}");
                assert_eq!(called.json()["code"], "unauthenticated", "{who} {method}");
            }
        }
    }
}

#[tokio::test]
async fn gzip_goes_both_ways() {
    let serving = serve().await;
    for node in 0..20 {
        serving.register(&format!("n{node}")).await;
    }
    let gzip = GzipProvider::default();
    let zip = |bytes: &[u8]| gzip.compress(bytes).unwrap();
    let unzip = |bytes: &[u8]| gzip.decompress_with_limit(bytes, 1 << 20).unwrap();
    let list = format!("{NAVARCH}/ListNodes");
    let plain = serving.call(H1, "viewer", &list, PROTO, field(1, "gcp")).await;
    let zipped = [
        ("content-type", "application/proto"),
        ("content-encoding", "gzip"),
        ("accept-encoding", "gzip"),
    ];
    let called = serving.call(H1, "viewer", &list, &zipped, zip(&field(1, "gcp"))).await;
    assert_eq!(called.header("content-encoding"), "gzip", "{called:?}");
    assert!(called.body.len() < plain.body.len() / 2, "it is not smaller");
    assert_eq!(unzip(&called.body), plain.body);

    let zipped = [
        ("content-type", "application/grpc"),
        ("te", "trailers"),
        ("grpc-encoding", "gzip"),
        ("grpc-accept-encoding", "gzip"),
    ];
    let message = framed(1, &zip(&field(1, "gcp")));
    let called = serving.call(H2, "viewer", &list, &zipped, message).await;
    let (flags, contents) = frames(&called.body).remove(0);
    assert_eq!((flags, unzip(&contents)), (1, plain.body), "{called:?}");

    // What unpacks to more than may be sent was not worth packing.
    let bomb = zip(&field(1, vec![b'x'; 5 << 20]));
    assert!(bomb.len() < 100_000);
    let zipped = [("content-type", "application/proto"), ("content-encoding", "gzip")];
    let called = serving.call(H1, "viewer", &list, &zipped, bomb).await;
    assert_eq!((called.status, &called.json()["code"]), (429, &json!("resource_exhausted")));
    let called = serving.call(H1, "viewer", &list, &zipped, "not gzip".to_owned()).await;
    assert_eq!((called.status, &called.json()["code"]), (400, &json!("invalid_argument")));
}

/// Every single call of both services.
pub(super) fn methods() -> impl Iterator<Item = String> {
    let theirs = [
        "RegisterNode",
        "ReportHealth",
        "SendHeartbeat",
        "GetNodeCommands",
        "ListNodes",
        "GetNode",
        "IssueCommand",
        "ListInstances",
        "GetInstance",
    ];
    let ours = ["RegisterNode", "Heartbeat", "ReportHealth", "PollCommands", "AckCommand"];
    let theirs = theirs.into_iter().map(|method| format!("{NAVARCH}/{method}"));
    theirs.chain(ours.into_iter().map(|method| format!("{OURS}/{method}")))
}

#[tokio::test]
async fn j7_hostile_messages_are_refused() {
    let serving = serve().await;
    // An unknown field that holds itself, a hundred thousand deep, and one that is never closed.
    let deep = [vec![0x7b; 100_000], vec![0x7c; 100_000]].concat();
    let open = vec![0x7b; 100_000];
    let nested = format!("{}{}", r#"{"x":"#.repeat(100_000), "}".repeat(100_000));
    for path in methods() {
        for (what, body) in [
            ("a field that is cut off", vec![0x0a, 0x05, b'n']),
            ("a length of 4 GiB", vec![0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f]),
            ("a length of 16 EiB", [&[0x0a][..], &[0xff; 9], &[0x01]].concat()),
            ("a number without an end", vec![0xff; 100]),
            ("a field of number 0", vec![0x02, 0x00]),
            ("a text that is not UTF-8", vec![0x0a, 0x02, 0xc3, 0x28]),
            ("deep nesting", deep.clone()),
            ("open nesting", open.clone()),
        ] {
            // Only these have a text as their first field.
            let texts = !path.ends_with("/Heartbeat");
            if what.contains("UTF-8") && !texts {
                continue;
            }
            let called = serving.call(H1, "admin", &path, PROTO, body.clone()).await;
            let code = called.json()["code"].clone();
            assert_eq!((called.status, code), (400, json!("invalid_argument")), "{path}: {what}");
            let called = serving.call(H2, "admin", &path, GRPC, framed(0, &body)).await;
            assert_eq!(grpc_status(&called).0, 3, "{path} by gRPC: {what}");
        }
        for body in
            ["", "{", "[]", "null", "7", "\"x\"", r#"{"nodeId":7}"#, "{\"nodeId\":\"\u{0}\"}"]
        {
            let called = serving.json("admin", &path, body).await;
            assert!(called.status < 500, "{path} {body}: {called:?}");
        }
        let called = serving.json("admin", &path, &nested).await;
        assert!(called.status < 500, "{path}, nested JSON: {called:?}");
    }
}

#[tokio::test]
async fn j7_a_frame_of_four_gibibytes_is_refused_at_its_head() {
    let serving = serve().await;
    let frame = [&[0][..], &[0xff; 4], b"x"].concat();
    for path in methods() {
        let called = serving.call(H2, "admin", &path, GRPC, frame.clone()).await;
        assert_eq!(grpc_status(&called).0, 8, "{path}");
        let called = serving.call(H1, "admin", &path, GRPC_WEB, frame.clone()).await;
        assert_eq!(grpc_web_status(&called), 8, "{path}");
    }
    let large = field(1, vec![b'x'; 4 << 20]);
    let called = serving.call(H2, "admin", &format!("{NAVARCH}/GetNode"), PROTO, large).await;
    assert_eq!((called.status, &called.json()["code"]), (429, &json!("resource_exhausted")));
}

#[tokio::test]
async fn a_million_elements_cost_no_more_than_they_may() {
    let serving = serve().await;
    let node = field(1, "n1");
    for (method, number) in [("RegisterNode", 6), ("ReportHealth", 2), ("ReportHealth", 3)] {
        let body = [node.clone(), field(number, "").repeat(1_000_000)].concat();
        let called = serving.call(H2, "admin", &format!("{NAVARCH}/{method}"), PROTO, body).await;
        let code = called.json()["code"].clone();
        assert_eq!((called.status, code), (400, json!("invalid_argument")), "{method} {number}");
    }
}

#[tokio::test]
async fn a_replayed_report_is_stale_and_a_number_is_required() {
    let serving = serve().await;
    serving.register("n1").await;
    let path = format!("{OURS}/ReportHealth");
    let report = async |sequence: u64, status: &str| {
        let body = format!(
            r#"{{"nodeId":"n1","report":{{"sequence":"{sequence}",
                "results":[{{"check":"boot","status":"HEALTH_STATUS_{status}"}}]}}}}"#
        );
        serving.json("fleet", &path, &body).await
    };
    let refused = report(0, "HEALTHY").await;
    assert_eq!(
        refused.json()["message"],
        "report.sequence is required: the first report of a node has 1"
    );
    assert_eq!(report(5, "UNHEALTHY").await.json()["status"], "NODE_STATUS_UNHEALTHY");
    for old in [5, 4] {
        let replayed = report(old, "HEALTHY").await.json();
        let said = (&replayed["stale"], &replayed["health"], &replayed["sequence"]);
        let expected = (&json!(true), &json!("HEALTH_STATUS_UNHEALTHY"), &json!(old.to_string()));
        assert_eq!(said, expected, "{replayed}");
    }
}

#[tokio::test]
async fn a_call_that_takes_too_long_to_arrive_is_given_up() {
    let serving: Serving = serve().await;
    let never =
        Body::from_stream(futures_util::stream::pending::<Result<Vec<u8>, std::io::Error>>());
    let request = Request::post(format!("{NAVARCH}/SendHeartbeat"))
        .header("host", "x")
        .header("authorization", "Bearer admin-token-with-enough-characters")
        .header("content-type", "application/proto")
        .header("connect-timeout-ms", "20")
        .body(never)
        .unwrap();
    let called = serving.send(H1, request).await;
    assert_eq!((called.status, &called.json()["code"]), (504, &json!("deadline_exceeded")));
}
