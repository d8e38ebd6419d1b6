//! The service itself: what it is, its OpenAPI document, and a page to start from.

use super::{Answer, Ask, empty, json};
use argosy_api::audit::ServiceInfo;
use argosy_api::openapi;
use axum::body::Body;
use axum::http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE, LOCATION};
use axum::http::{HeaderValue, Response, StatusCode};
use std::sync::LazyLock;

static OPENAPI: LazyLock<String> = LazyLock::new(openapi::text);

const LANDING: &str = "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
    <meta name=\"viewport\" content=\"width=device-width\"><title>Argosy</title></head><body>\n\
    <h1>Argosy</h1>\n<p>One control plane for GPU fleets.</p>\n<ul>\n\
    <li><a href=\"/docs\">API reference</a></li>\n\
    <li><a href=\"/api/hyperfleet/v1/openapi\">OpenAPI document</a></li>\n\
    <li><a href=\"/api/hyperfleet\">This service</a></li>\n\
    <li><a href=\"/readyz\">Readiness</a>, <a href=\"/metrics\">metrics</a></li>\n\
    </ul>\n</body></html>\n";

pub(super) fn landing() -> Answer {
    html(LANDING, "default-src 'none'")
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
