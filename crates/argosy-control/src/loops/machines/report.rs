//! What the adapter `machines` says about a pool: made from what the plan found, stored when it is news.

use super::Bench;
use crate::Error;
use crate::adapter::Reporting;
use crate::loops::run::{Said, no_errors};
use crate::provider::Cause;
use argosy_core::adapter::{AdapterName, AdapterSpec, Tri};
use argosy_core::pool::Outcome;
use argosy_core::resource::Resource;
use tracing::warn;

/// Whether what was last reported at this generation says something else.
pub(super) fn is_news(resource: &Resource, outcome: &Outcome) -> bool {
    let Some(name) = name() else { return false };
    let Some(said) = said(outcome) else { return false };
    let Some(past) = resource.reports.get(&name) else { return true };
    let same = |(status, cause): &(Tri, Cause), past: &argosy_core::adapter::Reported| {
        *status == past.status && cause.reason == past.reason && cause.message == past.message
    };
    past.observed_generation != resource.generation
        || !same(&said.available, &past.conditions.available)
        || !same(&said.applied, &past.conditions.applied)
        || !same(&said.health, &past.conditions.health)
        || past.data != said.data
}

/// Stores a report.
pub(super) async fn report(
    bench: &Bench,
    resource: &Resource,
    outcome: &Outcome,
) -> Result<(), Error> {
    let Some(name) = name() else { return Ok(()) };
    let Some(said) = said(outcome) else { return Ok(()) };
    let draft = said.draft(name, resource);
    match bench.adapters.report_own(resource.id, &draft, &bench.fence).await? {
        Some(Reporting::Stored { .. }) | None => {}
        // It was about a generation that is past.
        Some(Reporting::Discarded(old)) => warn!(resource = %resource.id, ?old, "report discarded"),
    }
    Ok(())
}

fn name() -> Option<AdapterName> {
    AdapterName::parse(AdapterSpec::MACHINES).ok()
}

/// What is to be said; nothing while it is not our turn.
fn said(outcome: &Outcome) -> Option<Said> {
    let cause = |reason: &String, message: &String| Cause {
        reason: reason.clone(),
        message: message.clone(),
    };
    let began = || Cause { reason: "Started".to_owned(), message: "Work has begun".to_owned() };
    let well = || (Tri::True, no_errors());
    let tri = |is: bool| if is { Tri::True } else { Tri::False };
    let (available, applied, health, finalized, data) = match outcome {
        Outcome::Waiting => return None,
        Outcome::Ready { reason, message, data } => {
            let cause = cause(reason, message);
            ((Tri::True, cause.clone()), (Tri::True, cause), well(), None, data)
        }
        Outcome::Progress { reason, message, data }
        | Outcome::Removing { reason, message, data } => {
            ((Tri::False, cause(reason, message)), (Tri::True, began()), well(), None, data)
        }
        Outcome::Failed { reason, message, applied, healthy, data } => {
            let cause = cause(reason, message);
            let health = if *healthy { well() } else { (Tri::False, cause.clone()) };
            ((Tri::False, cause.clone()), (tri(*applied), cause), health, None, data)
        }
        Outcome::Removed { reason, message, data } => {
            let cause = cause(reason, message);
            ((Tri::False, cause.clone()), (Tri::False, cause.clone()), well(), Some(cause), data)
        }
    };
    Some(Said { available, applied, health, finalized, data: data.clone() })
}
