//! Recovery after the store lost history, over HTTP.

use super::instance::why;
use super::{Answer, Ask, json};
use crate::convert;
use argosy_api::safety::Released;
use axum::http::StatusCode;

pub(super) fn list(ask: &Ask) -> Answer {
    ask.query()?;
    let recoveries = ask.server.control.instances.recoveries(&ask.caller)?;
    json(StatusCode::OK, &convert::recovery::list(&recoveries))
}

pub(super) async fn confirm(ask: &Ask) -> Answer {
    let why = why(ask)?;
    let pool = ask.name("pool").unwrap_or_default();
    let instances = &ask.server.control.instances;
    let released = instances.confirm_recovery(&ask.caller, pool, &why).await?;
    json(StatusCode::OK, &Released { released })
}
