use super::*;
use argosy_core::autoscale::{CredentialScope, MetricsFrom};
use argosy_core::id::ResourceId;
use axum::Router;
use axum::extract::{Query, Request};
use axum::http::{StatusCode, header};
use axum::routing::get;
use std::collections::HashMap;
use std::net::SocketAddr;

fn said(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn one_number_is_read_out_of_an_instant_query() {
    let rows = [
        (r#"{"status":"success","data":{"resultType":"vector","result":[]}}"#, "Ok(None)"),
        (
            r#"{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1,"42.5"]}]}}"#,
            "Ok(Some(42.5))",
        ),
        (
            r#"{"status":"success","data":{"resultType":"scalar","result":[1,"7"]}}"#,
            "Ok(Some(7.0))",
        ),
        (
            r#"{"status":"success","data":{"resultType":"vector","result":[{"value":[1,"NaN"]}]}}"#,
            "Ok(Some(NaN))",
        ),
        (
            r#"{"status":"success","data":{"resultType":"vector","result":[{},{}]}}"#,
            r#"Err("the query has 2 results; aggregate them to one, as by sum()")"#,
        ),
        (
            r#"{"status":"success","data":{"resultType":"matrix","result":[]}}"#,
            r#"Err("the query gives a matrix; ask for one number")"#,
        ),
        (r#"{"status":"error","error":"parse error"}"#, r#"Err("the query failed: parse error")"#),
        ("[]", r#"Err("the query failed: no success")"#),
        (r#"{"status":"success"}"#, r#"Err("the answer has no result")"#),
    ];
    for (answer, wanted) in rows {
        assert_eq!(format!("{:?}", vector(&said(answer))), wanted, "{answer}");
    }
}

async fn served(router: Router) -> SocketAddr {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    #[expect(clippy::disallowed_methods, reason = "it ends with the test")]
    tokio::spawn(async move { axum::serve(listener, router).await });
    address
}

fn measuring(from: MetricsFrom) -> Measuring {
    let pool = ResourceId::parse("01890000-0000-7000-8000-000000000000").unwrap();
    Measuring { pool, name: "h100".to_owned(), tenant: "acme".to_owned(), from }
}

/// With a token for what is below one address, and for the tenant `acme`.
fn source_for(url: &str) -> WebMetrics {
    let tokens = BTreeMap::from([("prom".to_owned(), Token::new("s3cret"))]);
    let scope = CredentialScope { url: url.to_owned(), tenant: "acme".to_owned() };
    let credentials = BTreeMap::from([("prom".to_owned(), scope)]);
    let access = MetricsAccess { credentials, knows_jobs: false };
    WebMetrics::new(vec!["127.0.0.0/8".parse().unwrap()], tokens, access, Clock::System).unwrap()
}

fn source() -> WebMetrics {
    source_for("https://prom.example/")
}

#[tokio::test]
async fn prometheus_and_plain_json_are_asked_with_their_credentials() {
    let query = async |Query(query): Query<HashMap<String, String>>, request: Request| {
        let bearer = request.headers().get(header::AUTHORIZATION);
        if bearer.is_none_or(|bearer| bearer != "Bearer s3cret") {
            return (StatusCode::UNAUTHORIZED, String::new());
        }
        assert_eq!(query["query"], "avg(gpu)");
        let body =
            r#"{"status":"success","data":{"resultType":"vector","result":[{"value":[1,"91"]}]}}"#;
        (StatusCode::OK, body.to_owned())
    };
    let router = Router::new()
        .route("/prom/api/v1/query", get(query))
        .route("/queue", get(async || r#"{"jobs":{"pending":12}}"#));
    let address = served(router).await;
    let from = MetricsFrom {
        utilization: Source::Prometheus {
            url: format!("http://{address}/prom/"),
            query: "avg(gpu)".to_owned(),
            credentials: Some("prom".to_owned()),
        },
        pending_jobs: Source::Http {
            url: format!("http://{address}/queue"),
            pointer: "/jobs/pending".to_owned(),
            credentials: None,
        },
        ..MetricsFrom::default()
    };
    let beats = RawMetrics { queue_depth: Some(3.0), ..RawMetrics::default() };
    let source = source_for(&format!("http://{address}/prom"));
    let found = source.measure(&measuring(from), &beats).await.unwrap();
    assert_eq!(found.utilization, Some(91.0));
    assert_eq!(found.pending_jobs, Some(12.0));
    assert_eq!(found.queue_depth, Some(3.0), "heartbeats say it");
}

#[tokio::test]
async fn what_cannot_be_had_is_an_error_and_never_a_number() {
    let router = Router::new()
        .route("/html", get(async || "<html>"))
        .route("/long", get(async || "1".repeat(ANSWER_LEN_MAX + 1)))
        .route("/moved", get(async || axum::response::Redirect::permanent("/html")))
        .route("/object", get(async || "{}"));
    let address = served(router).await;
    let rows = [
        ("html", "the answer is not JSON"),
        ("long", "longer than"),
        ("moved", "redirects are not followed"),
        ("missing", "404"),
        ("object", "something else than a number"),
    ];
    for (path, wanted) in rows {
        let url = format!("http://{address}/{path}");
        let pending_jobs = Source::Http { url, pointer: String::new(), credentials: None };
        let from = MetricsFrom { pending_jobs, ..MetricsFrom::default() };
        let error = source().measure(&measuring(from), &RawMetrics::default()).await.unwrap_err();
        assert!(error.contains(wanted), "{path}: {error}");
    }
}

#[tokio::test]
async fn unknown_credentials_and_private_addresses_are_refused() {
    let url = "http://10.1.2.3/".to_owned();
    let inside = Source::Http { url, pointer: String::new(), credentials: None };
    let url = "http://127.0.0.1:1/".to_owned();
    let nameless =
        Source::Http { url, pointer: String::new(), credentials: Some("nobody".to_owned()) };
    for (pending_jobs, wanted) in [(inside, "not a public address"), (nameless, "`nobody`")] {
        let from = MetricsFrom { pending_jobs, ..MetricsFrom::default() };
        let error = source().measure(&measuring(from), &RawMetrics::default()).await.unwrap_err();
        assert!(error.contains(wanted), "{error}");
    }
    assert!(!format!("{:?}", source()).contains("s3cret"), "I12");
}

#[tokio::test]
async fn r1_s2_a_token_is_sent_to_its_address_and_for_its_tenant_alone() {
    let echo = async |request: Request| match request.headers().get(header::AUTHORIZATION) {
        Some(_) => "1",
        None => "0",
    };
    let router = Router::new().route("/own", get(echo)).route("/other", get(echo));
    let address = served(router).await;
    let source = source_for(&format!("http://{address}/own"));
    for (path, tenant, wanted) in [
        ("own", "acme", "Some(1.0)"),
        ("other", "acme", "for addresses below"),
        ("own/../other", "acme", "for addresses below"),
        ("own", "globex", "no credentials called `prom`"),
    ] {
        let url = format!("http://{address}/{path}");
        let credentials = Some("prom".to_owned());
        let pending_jobs = Source::Http { url, pointer: String::new(), credentials };
        let from = MetricsFrom { pending_jobs, ..MetricsFrom::default() };
        let measuring = Measuring { tenant: tenant.to_owned(), ..measuring(from) };
        let found = source.measure(&measuring, &RawMetrics::default()).await;
        let said = found.map_or_else(|error| error, |found| format!("{:?}", found.pending_jobs));
        assert!(said.contains(wanted), "{path} {tenant}: {said}");
    }
}
