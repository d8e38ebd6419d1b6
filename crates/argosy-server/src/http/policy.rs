//! Health policies over HTTP.

use super::header::{DRY_RUN, tagged};
use super::{Answer, Ask, empty, json};
use crate::convert;
use crate::problem::Fault;
use argosy_api::policy::{Explanation, PolicyList};
use argosy_control::policy::Policies;
use axum::http::{HeaderValue, StatusCode};

pub(super) fn list(ask: &Ask) -> Answer {
    ask.query()?;
    let policies = ask.server.control.policies.list(&ask.caller)?;
    let items = policies.iter().map(convert::policy::wire).collect();
    json(StatusCode::OK, &PolicyList { kind: "PolicyList".to_owned(), items })
}

pub(super) fn get(ask: &Ask) -> Answer {
    let policy = ask.server.control.policies.get(&ask.caller, name(ask))?;
    ask.query()?;
    if ask.has_seen(policy.revision) {
        return tagged(empty(StatusCode::NOT_MODIFIED), policy.revision);
    }
    tagged(json(StatusCode::OK, &convert::policy::wire(&policy))?, policy.revision)
}

pub(super) async fn put(ask: &Ask) -> Answer {
    let query = ask.query()?;
    let spec = convert::policy::spec(ask.object()?, "", Some(name(ask))).map_err(Fault::fields)?;
    let (policies, dry_run) = (&ask.server.control.policies, query.flag("dry_run"));
    let expected = ask.if_match_or_new()?;
    let policy = policies.put(&ask.caller, name(ask), spec, expected, dry_run).await?;
    let warnings = Policies::warnings(&policy.value.spec).into_iter();
    let warnings =
        warnings.map(|warning| format!("{}: {}", warning.field, warning.message)).collect();
    let written = argosy_api::policy::Policy { warnings, ..convert::policy::wire(&policy) };
    let shown = json(StatusCode::OK, &written)?;
    let mut response = tagged(shown, policy.revision)?;
    if dry_run {
        response.headers_mut().insert(DRY_RUN, HeaderValue::from_static("true"));
    }
    Ok(response)
}

pub(super) async fn delete(ask: &Ask) -> Answer {
    ask.query()?;
    ask.server.control.policies.delete(&ask.caller, name(ask)).await?;
    Ok(empty(StatusCode::NO_CONTENT))
}

pub(super) fn explain(ask: &Ask) -> Answer {
    ask.query()?;
    let asked = convert::policy::question(ask.object()?).map_err(Fault::fields)?;
    let policies = &ask.server.control.policies;
    let (node, spec) = (asked.node.as_deref(), asked.spec.as_ref());
    let verdict = policies.explain(&ask.caller, node, spec, &asked.event)?;
    let (kind, verdict) = ("Explanation".to_owned(), convert::ledger::verdict(verdict));
    json(StatusCode::OK, &Explanation { kind, verdict })
}

pub(super) async fn backtest(ask: &Ask) -> Answer {
    ask.query()?;
    let (spec, since) = convert::policy::trial(ask.object()?).map_err(Fault::fields)?;
    let _at_work = ask.gate.enter().await?;
    let found = ask.server.control.policies.backtest(&ask.caller, &spec, since).await?;
    json(StatusCode::OK, &convert::policy::report(found))
}

fn name(ask: &Ask) -> &str {
    ask.name("policy").unwrap_or_default()
}
