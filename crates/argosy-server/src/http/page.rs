//! The service itself: what it is, its OpenAPI document, and a page to start from.

use super::{Answer, Ask, docs, empty, json};
use crate::dashboard;
use argosy_api::audit::ServiceInfo;
use argosy_api::openapi;
use axum::body::Body;
use axum::http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE, LOCATION};
use axum::http::{HeaderValue, Response, StatusCode};
use std::sync::LazyLock;

static OPENAPI: LazyLock<String> = LazyLock::new(openapi::text);

static LANDING: LazyLock<String> = LazyLock::new(|| docs::frame("Argosy", WELCOME));

const WELCOME: &str = "<body><main><h1>Argosy</h1>\n<p>One control plane for GPU fleets.</p>\n<ul>\n\
    <li><a href=\"/ui/\">Dashboard</a></li>\n\
    <li><a href=\"/docs\">API reference</a>, and the same as an \
    <a href=\"/api/hyperfleet/v1/openapi\">OpenAPI document</a></li>\n\
    <li><a href=\"/api/hyperfleet\">What this service is</a></li>\n\
    <li><a href=\"/readyz\">Whether it is ready</a>, and its <a href=\"/metrics\">metrics</a></li>\n\
    </ul>\n<p>On the command line:</p>\n<pre>argosy cluster list\n\
    argosy cluster create demo --provider gcp --region us-east1 --wait</pre></main></body>";

/// People are led to the dashboard, if there is one; programs, and people with `curl`, are told what there is.
pub(super) fn landing(ask: &Ask) -> Answer {
    if !ask.server.dashboard.is_empty() && dashboard::reads_html(&ask.parts.headers) {
        let mut response = empty(StatusCode::SEE_OTHER);
        response.headers_mut().insert(LOCATION, HeaderValue::from_static("/ui/"));
        return Ok(response);
    }
    html(&LANDING, &docs::POLICY)
}

pub(super) fn info(ask: &Ask) -> Answer {
    json(
        StatusCode::OK,
        &ServiceInfo {
            id: "hyperfleet".to_owned(),
            kind: "API".to_owned(),
            href: "/api/hyperfleet".to_owned(),
            version: ask.server.version.clone(),
            build_time: ask.server.build_time.clone(),
        },
    )
}

pub(super) fn openapi() -> Answer {
    let mut response = Response::new(Body::from(OPENAPI.as_str()));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(response)
}

pub(super) fn openapi_page() -> Answer {
    let mut response = empty(StatusCode::PERMANENT_REDIRECT);
    response.headers_mut().insert(LOCATION, HeaderValue::from_static("/docs"));
    Ok(response)
}

/// A page, with what it may load.
pub(super) fn html(page: &'static str, policy: &str) -> Answer {
    let mut response = Response::new(Body::from(page));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    let policy = format!("{policy}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'");
    headers.extend(HeaderValue::from_str(&policy).ok().map(|p| (CONTENT_SECURITY_POLICY, p)));
    Ok(response)
}
