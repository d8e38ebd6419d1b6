//! The brakes on what the server does by itself, over HTTP.

use super::{Answer, Ask, json};
use crate::convert;
use crate::convert::member::{self, Members};
use crate::problem::Fault;
use argosy_api::safety::Released;
use axum::http::StatusCode;

pub(super) fn brakes(ask: &Ask) -> Answer {
    ask.query()?;
    let brakes = ask.server.control.safety.brakes(&ask.caller)?;
    json(StatusCode::OK, &convert::safety::brakes(brakes))
}

pub(super) async fn pause(ask: &Ask) -> Answer {
    ask.query()?;
    let mut members = Members::new("", ask.object()?);
    let reason = members.take("reason", |value, field| {
        member::text(value.as_ref(), field).and_then(member::reason).map(str::to_owned)
    });
    let reason = members.finish(reason).map_err(Fault::fields)?;
    let safety = &ask.server.control.safety;
    let pause = safety.pause(&ask.caller, ask.name("pool"), &reason).await?;
    json(StatusCode::OK, &convert::safety::pause(&pause))
}

pub(super) async fn resume(ask: &Ask) -> Answer {
    ask.query()?;
    let released = ask.server.control.safety.resume(&ask.caller, ask.name("pool")).await?;
    json(StatusCode::OK, &Released { released })
}

pub(super) async fn close(ask: &Ask) -> Answer {
    let scope = convert::safety::scope(ask.name("scope").unwrap_or_default());
    let query = ask.query()?;
    let reason = query.text("reason").unwrap_or_default();
    let safety = &ask.server.control.safety;
    let released = safety.close(&ask.caller, &scope.map_err(Fault::field)?, reason).await?;
    json(StatusCode::OK, &Released { released })
}
