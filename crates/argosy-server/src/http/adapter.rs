//! What adapters say, over HTTP.

use super::{Answer, Ask, empty, json};
use crate::convert;
use crate::problem::Fault;
use argosy_api::route::Scope;
use argosy_api::status::StatusHistory;
use argosy_control::adapter::Reporting;
use axum::http::StatusCode;

/// How many reports a page of history has that nobody chose.
const LIMIT_DEFAULT: usize = 100;

pub(super) fn statuses(ask: &Ask, scope: Scope) -> Answer {
    let statuses = ask.server.control.resources.statuses(&ask.caller, ask.target(scope))?;
    let query = ask.query()?;
    let page = query.number("page").unwrap_or(1);
    let size = query.number("size").unwrap_or(LIMIT_DEFAULT);
    let mut list = convert::adapter::statuses(&statuses, ask.profile, page, size);
    match query.text("view") {
        Some("items") => (list.statuses, list.adapter_statuses) = (None, None),
        Some("statuses") => (list.items, list.adapter_statuses) = (None, None),
        Some("adapterStatuses") => (list.items, list.statuses) = (None, None),
        _ => {}
    }
    json(StatusCode::OK, &list)
}

pub(super) async fn report(ask: &Ask, scope: Scope) -> Answer {
    let target = ask.target(scope);
    ask.server.control.resources.get(&ask.caller, target)?;
    ask.query()?;
    let draft = convert::adapter::draft(&ask.object()?).map_err(Fault::fields)?;
    let adapter = draft.adapter.clone();
    match ask.server.control.adapters.report(&ask.caller, target, draft).await? {
        Reporting::Stored { report, .. } => {
            json(StatusCode::CREATED, &convert::adapter::item(&adapter, &report))
        }
        Reporting::Discarded(_) => Ok(empty(StatusCode::NO_CONTENT)),
    }
}

pub(super) async fn history(ask: &Ask, scope: Scope) -> Answer {
    let target = ask.target(scope);
    ask.server.control.resources.get(&ask.caller, target)?;
    let query = ask.query()?;
    let limit = query.number("limit").unwrap_or(LIMIT_DEFAULT);
    let entries = ask
        .server
        .control
        .adapters
        .history(&ask.caller, target, query.number("before"), limit)
        .await?;
    let next = entries.last().filter(|_| entries.len() == limit).map(|entry| entry.sequence);
    let items = entries.iter().map(convert::adapter::history).collect();
    json(StatusCode::OK, &StatusHistory { kind: "AdapterStatusHistory".to_owned(), items, next })
}
