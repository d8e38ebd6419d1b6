//! The dashboard's files, which the binary carries, under `/ui/`.
//!
//! They are a program and hold no data, so nobody has to sign in for them: the dashboard asks the same API
//! as everybody else, and that asks who it is. What a newcomer gets wrong: every path below `/ui/` that is
//! not a file is a place inside the dashboard and gets its first page, also `/ui/nodes/gpu-17.rack.example`.

use axum::body::Body;
use axum::http::header::{
    ACCEPT, ACCEPT_ENCODING, ALLOW, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY,
    CONTENT_TYPE, ETAG, IF_NONE_MATCH, REFERRER_POLICY,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode};
use bytes::Bytes;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::fmt::Write as _;

/// Where the dashboard is, without the slash at its end.
pub(crate) const PREFIX: &str = "/ui";

/// The file that every place inside the dashboard begins with.
const INDEX: &str = "index.html";

/// The folder of files whose names contain a hash of what is in them.
const HASHED: &str = "assets/";

/// What the pages may load and do: only what this server gives them, and nobody may frame them.
///
/// Inline styles and scripts are refused with the rest, so that text from a node's log that finds a way
/// into a page stays text.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
    connect-src 'self'; font-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'";

/// The file's name changes with its content: whoever has it never needs to ask again.
const FOREVER: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");

/// It may be kept, and is asked about each time: a new release shows at once.
const ASK: HeaderValue = HeaderValue::from_static("no-cache");

const NO_PAGE: &str = "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
    <meta name=\"viewport\" content=\"width=device-width\">\
    <meta name=\"color-scheme\" content=\"light dark\"><title>No such file · Argosy</title></head>\
    <body><main><h1>There is no such file</h1>\n<p>The dashboard has no file of this name. If you came by a \
    page that was open while the server was updated, reload that page.</p>\n<ul>\
    <li><a href=\"/ui/\">Dashboard</a></li>\n<li><a href=\"/docs\">API reference</a></li>\
    </ul></main></body></html>\n";

/// One file of the dashboard.
#[derive(Clone, Copy, Debug)]
pub struct Asset {
    /// Its path below `/ui/`, as `assets/index-Bx1.js`. Exactly one is `index.html`.
    pub path: &'static str,
    /// Its content type.
    pub media: &'static str,
    /// What is in it.
    pub body: &'static [u8],
    /// The same, compressed with gzip; `None` where that saves nothing.
    pub gzip: Option<&'static [u8]>,
}

/// The files by path.
pub(crate) struct Dashboard {
    files: HashMap<&'static str, File>,
}

struct File {
    asset: Asset,
    /// One for each form in which it is sent, as RFC 9110 asks.
    tag: HeaderValue,
    gzip_tag: HeaderValue,
}

impl Dashboard {
    pub(crate) fn new(assets: &[Asset]) -> Self {
        let file = |asset: &Asset| {
            let mut hash = String::new();
            for byte in Sha256::digest(asset.body).iter().take(12) {
                let _ = write!(hash, "{byte:02x}");
            }
            let tag = |text: String| HeaderValue::try_from(text).unwrap_or(ASK);
            let (tag, gzip_tag) = (tag(format!("\"{hash}\"")), tag(format!("\"{hash}-gzip\"")));
            (asset.path, File { asset: *asset, tag, gzip_tag })
        };
        Self { files: assets.iter().map(file).collect() }
    }

    /// Answers a request for a path below the prefix; `None` for one that is the API's to refuse.
    pub(crate) fn answer(
        &self,
        method: &Method,
        path: &str,
        headers: &HeaderMap,
    ) -> Option<Response<Body>> {
        if ![Method::GET, Method::HEAD].contains(method) {
            let mut response = plain(StatusCode::METHOD_NOT_ALLOWED, Body::empty());
            response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            return Some(response);
        }
        let path = path.strip_prefix(PREFIX).unwrap_or(path).trim_matches('/');
        if let Some(file) = self.files.get(path) {
            return Some(file.answer(headers));
        }
        // A name with a dot at the top is a file that we do not have: favicon.ico, robots.txt.
        let file = path.starts_with(HASHED) || (path.contains('.') && !path.contains('/'));
        match (file, self.files.get(INDEX)) {
            (false, Some(index)) => Some(index.answer(headers)),
            (_, None) | (true, Some(_)) => reads_html(headers).then(|| {
                let mut response = plain(StatusCode::NOT_FOUND, Body::from(NO_PAGE));
                let html = HeaderValue::from_static("text/html; charset=utf-8");
                response.headers_mut().insert(CONTENT_TYPE, html);
                response
            }),
        }
    }
}

impl File {
    fn answer(&self, headers: &HeaderMap) -> Response<Body> {
        let gzip = self.asset.gzip.filter(|_| accepts_gzip(headers));
        let tag = if gzip.is_some() { &self.gzip_tag } else { &self.tag };
        let body = gzip.unwrap_or(self.asset.body);
        let mut response = match [&self.tag, &self.gzip_tag].iter().any(|tag| has(headers, tag)) {
            true => plain(StatusCode::NOT_MODIFIED, Body::empty()),
            false => plain(StatusCode::OK, Body::from(Bytes::from_static(body))),
        };
        let sent = response.status() == StatusCode::OK;
        let out = response.headers_mut();
        out.insert(ETAG, tag.clone());
        out.insert(CACHE_CONTROL, if self.asset.path.starts_with(HASHED) { FOREVER } else { ASK });
        if sent {
            out.insert(CONTENT_TYPE, HeaderValue::from_static(self.asset.media));
            out.extend(gzip.map(|_| (CONTENT_ENCODING, HeaderValue::from_static("gzip"))));
        }
        response
    }
}

/// An answer with what is true of every file.
fn plain(status: StatusCode, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(
        HeaderName::from_static("cross-origin-opener-policy"),
        HeaderValue::from_static("same-origin"),
    );
    response
}

/// Whether somebody sits in front of a browser: programs ask for JSON or for anything.
pub(crate) fn reads_html(headers: &HeaderMap) -> bool {
    words(headers, &ACCEPT).any(|word| word.eq_ignore_ascii_case("text/html"))
}

fn accepts_gzip(headers: &HeaderMap) -> bool {
    let listed = |value: &HeaderValue| {
        let text = value.to_str().unwrap_or_default().to_ascii_lowercase();
        text.split(',').any(|part| {
            let mut parts = part.split(';').map(str::trim);
            let named = parts.next() == Some("gzip");
            let weight = parts.find_map(|part| part.strip_prefix("q=")).unwrap_or("1");
            named && weight.parse::<f32>().is_ok_and(|weight| 0.0 < weight)
        })
    };
    headers.get_all(ACCEPT_ENCODING).iter().any(listed)
}

/// Whether the caller has what this tag names. `W/` is what a proxy makes of it that changed the encoding.
fn has(headers: &HeaderMap, tag: &HeaderValue) -> bool {
    let tag = tag.to_str().unwrap_or_default();
    words(headers, &IF_NONE_MATCH)
        .any(|word| word == "*" || word == tag || word.strip_prefix("W/") == Some(tag))
}

/// The words of a list in a header, without their parameters.
fn words<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a str> {
    let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    values
        .flat_map(|value| value.split(','))
        .filter_map(|word| word.split(';').next())
        .map(str::trim)
}

#[cfg(test)]
mod tests;
