//! The brakes: pauses by people, breakers by ourselves, and how much of each budget is used.

use crate::office::Office;
use crate::{Error, Stored};
use argosy_core::access::Caller;
use argosy_core::breaker::{Breaker, Pause, Scope};
use std::sync::Arc;

/// The service.
#[derive(Clone)]
pub struct Safety {
    pub(crate) office: Arc<Office>,
}

/// Whether we act by ourselves, and if not, why not.
#[derive(Clone, Debug)]
pub struct Brakes {
    /// Pauses of the caller's tenant.
    pub pauses: Vec<Stored<Pause>>,
    /// Breakers that are not closed.
    pub breakers: Vec<Stored<Breaker>>,
    /// How much of each budget is used.
    pub budgets: Vec<BudgetUse>,
    /// Set while we think that we are cut off from the fleet, with the numbers.
    pub isolated: Option<String>,
    /// Set while nodes are still coming back after our own start.
    pub amnesty: Option<String>,
}

/// How much of one budget is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BudgetUse {
    /// Of what.
    pub scope: Scope,
    /// How many nodes are out of service by our own doing.
    pub used: usize,
    /// How many may be.
    pub allowed: usize,
    /// How many nodes there are.
    pub total: usize,
}

impl Safety {
    /// The state of all brakes.
    ///
    /// # Errors
    /// `Forbidden`.
    pub fn brakes(&self, caller: &Caller) -> Result<Brakes, Error> {
        let _ = (caller, &self.office);
        todo!()
    }

    /// Stops all automatic action, for the tenant or one pool. It survives restarts.
    ///
    /// # Errors
    /// `Forbidden`; `Invalid` without a reason.
    pub async fn pause(
        &self,
        caller: &Caller,
        pool: Option<&str>,
        reason: &str,
    ) -> Result<Stored<Pause>, Error> {
        let _ = (caller, pool, reason);
        todo!()
    }

    /// Takes a pause back; true if there was one.
    ///
    /// # Errors
    /// `Forbidden`.
    pub async fn resume(&self, caller: &Caller, pool: Option<&str>) -> Result<bool, Error> {
        let _ = (caller, pool);
        todo!()
    }

    /// Closes a breaker by hand; true if it was not closed. What waited is forgotten: the present is
    /// judged anew.
    ///
    /// # Errors
    /// `Forbidden`.
    pub async fn close(&self, caller: &Caller, scope: &Scope, reason: &str) -> Result<bool, Error> {
        let _ = (caller, scope, reason);
        todo!()
    }
}
