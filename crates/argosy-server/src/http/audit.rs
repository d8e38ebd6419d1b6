//! The audit log and the catalog over HTTP.

use super::{Answer, Ask, json};
use crate::convert;
use argosy_api::audit::AuditList;
use axum::http::StatusCode;

/// How many records a page has that nobody chose.
const LIMIT_DEFAULT: usize = 100;

pub(super) async fn list(ask: &Ask) -> Answer {
    let query = ask.query()?;
    let limit = query.number("limit").unwrap_or(LIMIT_DEFAULT);
    let entries = ask.server.control.audit.list(&ask.caller, query.number("before"), limit).await?;
    let next = entries.last().filter(|_| entries.len() == limit).map(|entry| entry.sequence);
    let items = entries.into_iter().map(convert::audit::entry).collect();
    json(StatusCode::OK, &AuditList { kind: "AuditList".to_owned(), items, next })
}

pub(super) async fn verify(ask: &Ask) -> Answer {
    ask.query()?;
    let found = ask.server.control.audit.verify(&ask.caller).await?;
    json(StatusCode::OK, &convert::audit::verification(found))
}

pub(super) fn catalog(ask: &Ask) -> Answer {
    ask.query()?;
    json(StatusCode::OK, &convert::audit::catalog(&ask.server.control.settings.catalog))
}
