//! The audit log, events that were given up, and the catalog over HTTP.

use super::{Answer, Ask, json};
use crate::convert;
use argosy_api::audit::{AuditList, DeadLetterList};
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

pub(super) async fn dead_letters(ask: &Ask) -> Answer {
    let query = ask.query()?;
    let limit = query.number("limit").unwrap_or(LIMIT_DEFAULT);
    let (adapters, before) = (&ask.server.control.adapters, query.number("before"));
    let letters = adapters.dead_letters(&ask.caller, before, limit).await?;
    let next = letters.last().filter(|_| letters.len() == limit).map(|(sequence, _)| *sequence);
    let items = letters.into_iter().map(convert::audit::dead_letter).collect();
    json(StatusCode::OK, &DeadLetterList { kind: "DeadLetterList".to_owned(), items, next })
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
