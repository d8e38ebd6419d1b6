//! What the headers of a request ask for, and those of an answer that say what was done.

use super::query::Query;
use super::{Answer, Ask};
use crate::problem::Fault;
use argosy_control::Revision;
use argosy_core::field::{Constraint, FieldError};
use axum::body::Body;
use axum::http::header::{ETAG, IF_MATCH, IF_NONE_MATCH};
use axum::http::{HeaderName, HeaderValue, Response};

/// Nothing was written.
pub(super) const DRY_RUN: HeaderName = HeaderName::from_static("dry-run");

/// An earlier request with the same key did it.
pub(super) const REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

/// The answer with its revision as ETag.
pub(super) fn tagged(mut response: Response<Body>, revision: Revision) -> Answer {
    let tag = HeaderValue::from_str(&format!("\"{revision}\"")).ok();
    response.headers_mut().extend(tag.map(|tag| (ETAG, tag)));
    Ok(response)
}

impl Ask {
    /// Where a watch goes on: what a browser sends by itself, or what the URL says.
    pub(super) fn resume_after(&self, query: &Query) -> Result<Option<Revision>, Fault> {
        let Some(header) = self.header("last-event-id") else {
            return Ok(query.number("resource_version").map(Revision));
        };
        match header.to_str().ok().and_then(|text| text.parse().ok()) {
            Some(revision) => Ok(Some(Revision(revision))),
            None => Err(Fault::field(FieldError::new(
                "Last-Event-ID",
                Constraint::Format,
                "Last-Event-ID must be a revision, as in the id of an event",
            ))),
        }
    }

    /// The key under which a repeated request finds the first one's result.
    pub(super) fn idempotency_key(&self) -> Result<Option<String>, Fault> {
        let Some(key) = self.header("idempotency-key") else { return Ok(None) };
        let bytes = key.as_bytes();
        let good = (1..=255).contains(&bytes.len()) && bytes.iter().all(u8::is_ascii_graphic);
        match key.to_str().ok().filter(|_| good) {
            Some(key) => Ok(Some(key.to_owned())),
            None => Err(Fault::field(FieldError::new(
                "Idempotency-Key",
                Constraint::Pattern,
                "Idempotency-Key must be 1 to 255 visible ASCII characters",
            ))),
        }
    }

    /// The revision in `If-Match`; `*` asks for nothing but existence.
    pub(super) fn if_match(&self) -> Result<Option<Revision>, Fault> {
        let Some(tag) = self.header(IF_MATCH.as_str()) else { return Ok(None) };
        if tag == "*" {
            return Ok(None);
        }
        match tag.to_str().ok().and_then(revision) {
            Some(revision) => Ok(Some(revision)),
            None => Err(Fault::field(FieldError::new(
                "If-Match",
                Constraint::Format,
                "If-Match must be one ETag as it was sent, such as \"42\", or *",
            ))),
        }
    }

    /// The revision a write expects: the one in `If-Match`, or with `If-None-Match: *` that of what
    /// nobody has written yet.
    pub(super) fn if_match_or_new(&self) -> Result<Option<Revision>, Fault> {
        let Some(tag) = self.header(IF_NONE_MATCH.as_str()) else { return self.if_match() };
        let problem = match (tag == "*", self.header(IF_MATCH.as_str())) {
            (true, None) => return Ok(Some(Revision(0))),
            (false, _) => "If-None-Match of a write must be *",
            (true, Some(_)) => "If-None-Match and If-Match exclude each other: send one of them",
        };
        Err(Fault::field(FieldError::new("If-None-Match", Constraint::Format, problem)))
    }

    /// Whether `If-None-Match` says that the caller has this revision.
    pub(super) fn has_seen(&self, current: Revision) -> bool {
        self.header(IF_NONE_MATCH.as_str()).is_some_and(|tags| names(tags, current))
    }
}

fn revision(tag: &str) -> Option<Revision> {
    let digits = tag.strip_prefix('"')?.strip_suffix('"')?;
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok().map(Revision)
}

/// Whether `If-None-Match` names the revision; a weak tag is as good here.
fn names(tags: &HeaderValue, current: Revision) -> bool {
    tags.to_str().is_ok_and(|tags| {
        tags.split(',').map(str::trim).any(|tag| {
            tag == "*" || revision(tag.strip_prefix("W/").unwrap_or(tag)) == Some(current)
        })
    })
}

#[cfg(test)]
mod tests;
