//! The brakes, to the wire; and what they are named by, from it.

use argosy_api::safety as api;
use argosy_control::Stored;
use argosy_control::safety::{Brakes, BudgetUse};
use argosy_core::breaker::{Breaker, Pause, Scope};
use argosy_core::field::{Constraint, FieldError};

/// The state of all brakes, as it stands on the wire.
pub(crate) fn brakes(brakes: Brakes) -> api::Brakes {
    let budget = |budget: BudgetUse| api::BudgetUse {
        scope: budget.scope.to_string(),
        used: budget.used,
        allowed: budget.allowed,
        total: budget.total,
    };
    api::Brakes {
        kind: "Brakes".to_owned(),
        pauses: brakes.pauses.iter().map(pause).collect(),
        breakers: brakes.breakers.iter().map(breaker).collect(),
        budgets: brakes.budgets.into_iter().map(budget).collect(),
        isolated: brakes.isolated,
        amnesty: brakes.amnesty,
    }
}

pub(crate) fn pause(stored: &Stored<Pause>) -> api::Pause {
    let pause = &*stored.value;
    api::Pause {
        pool: pause.pool.clone(),
        pool_id: pause.pool_id.map(|id| id.to_string()),
        by: pause.by.clone(),
        reason: pause.reason.clone(),
        at: pause.at.to_string(),
        revision: stored.revision.0,
    }
}

fn breaker(stored: &Stored<Breaker>) -> api::Breaker {
    let breaker = &*stored.value;
    api::Breaker {
        scope: breaker.scope.to_string(),
        opened_at: breaker.opened_at.to_string(),
        reason: breaker.reason.clone(),
        last_bad_at: breaker.last_bad_at.to_string(),
        half_open: breaker.half_open.map(|step| api::HalfOpen {
            since: step.since.to_string(),
            allowed: step.allowed,
            taken: step.taken,
        }),
        revision: stored.revision.0,
    }
}

/// Reads a scope as it is printed.
///
/// # Errors
/// Says what scopes look like.
pub(crate) fn scope(text: &str) -> Result<Scope, FieldError> {
    let parsed = match text.split_once('/') {
        None if text == "fleet" => Some(Scope::Fleet),
        Some(("zone", zone)) if !zone.is_empty() => Some(Scope::Zone { zone: zone.to_owned() }),
        Some(("pool", rest)) => rest
            .split_once('/')
            .map(|(tenant, pool)| Scope::Pool { tenant: tenant.to_owned(), pool: pool.to_owned() }),
        Some(_) | None => None,
    };
    parsed.ok_or_else(|| {
        let message = "scope must read `fleet`, `zone/ZONE` or `pool/TENANT/POOL`, as the list of \
                       breakers shows it";
        FieldError::new("scope", Constraint::Format, message)
    })
}

#[cfg(test)]
mod tests;
