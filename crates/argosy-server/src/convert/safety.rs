//! The brakes, to the wire; and what they are named by, from it.

use argosy_api::safety as api;
use argosy_control::Stored;
use argosy_control::safety::{Brakes, BudgetUse, Impact};
use argosy_core::breaker::{Breaker, Pause, Scope};
use argosy_core::field::{Constraint, FieldError};

/// The state of all brakes, as it stands on the wire.
pub(crate) fn brakes(brakes: Brakes) -> api::Brakes {
    let budget = |budget: BudgetUse| api::BudgetUse {
        scope: budget.scope.to_string(),
        used: budget.used,
        out: budget.out,
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

/// How many nodes an impact names. More does not help whoever decides what to do next.
const OUT_MAX: usize = 20;

/// What a request does to one budget, as it stands on the wire.
pub(crate) fn impact(impact: &Impact) -> api::BudgetImpact {
    let exceeded = impact.is_exceeded();
    let out = impact.out.iter().take(OUT_MAX).map(|out| api::OutOfService {
        node_id: out.node.to_string(),
        how: out.how.to_owned(),
        by: out.by.clone(),
        since: out.since.to_string(),
    });
    api::BudgetImpact {
        scope: impact.scope.to_string(),
        name: impact.name.clone(),
        allowed: impact.allowed,
        total: impact.total,
        used: impact.used,
        asked: impact.asked,
        exceeded,
        out: out.collect(),
        frees: exceeded.then(|| impact.frees()),
        message: impact.to_string(),
    }
}

/// What to warn of where something was done, or would be, although it exceeds a budget.
pub(crate) fn warnings(impacts: &[Impact]) -> Vec<String> {
    let exceeded = impacts.iter().filter(|impact| impact.is_exceeded());
    exceeded.map(|impact| format!("exceeds the disruption budget: {impact}")).collect()
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
