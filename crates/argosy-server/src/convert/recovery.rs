//! Recovery, to the wire.

use argosy_api::recovery as api;
use argosy_control::Stored;
use argosy_control::instance::Recoveries;
use argosy_core::incarnation::{Forecast, Recovery, Would};

/// The pools in recovery, as they stand on the wire.
pub(crate) fn list(of: &Recoveries) -> api::RecoveryList {
    let incarnation = &of.incarnation;
    api::RecoveryList {
        kind: "RecoveryList".to_owned(),
        incarnation: api::Incarnation {
            number: incarnation.number,
            since: incarnation.since.map(|since| since.to_string()),
            cause: incarnation.cause.as_ref().map(ToString::to_string),
        },
        items: of.pools.iter().map(recovery).collect(),
    }
}

fn recovery(stored: &Stored<Recovery>) -> api::Recovery {
    let recovery = &*stored.value;
    let unseen = Forecast {
        waits_for: Some("the first look at the pool".to_owned()),
        ..Forecast::default()
    };
    let forecast = recovery.forecast.as_ref().unwrap_or(&unseen);
    api::Recovery {
        pool: recovery.pool_name.clone(),
        pool_id: recovery.pool.to_string(),
        since: recovery.since.to_string(),
        cause: recovery.cause.to_string(),
        waits_for: forecast.waits_for.clone(),
        terminate: forecast.terminate,
        drain: forecast.drain,
        buy: forecast.buy,
        steps: forecast.steps.iter().map(step).collect(),
        revision: stored.revision.0,
    }
}

fn step(would: &Would) -> api::RecoveryStep {
    match would {
        Would::Terminate { instance, drain, reason } => api::RecoveryStep {
            action: if *drain { "drain and terminate" } else { "terminate" }.to_owned(),
            target: instance.to_string(),
            reason: reason.clone(),
        },
        Would::Buy { machine_type, provider, reason } => api::RecoveryStep {
            action: "buy".to_owned(),
            target: format!("{machine_type} at {provider}"),
            reason: reason.clone(),
        },
    }
}
