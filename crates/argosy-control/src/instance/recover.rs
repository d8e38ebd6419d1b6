//! What people see of a recovery, and how they let a pool go on.

use super::Instances;
use crate::office::allow_verb;
use crate::recovery::end;
use crate::safety::given;
use crate::{Error, Stored};
use argosy_core::access::{Caller, Verb};
use argosy_core::incarnation::{Incarnation, Recovery};
use argosy_core::resource::Kind;
use argosy_store::Txn;
use argosy_store::view::View;
use jiff::Timestamp;
use tracing::warn;

/// Which stretch of its history the store is in, and which pools are in recovery.
#[derive(Clone, Debug)]
pub struct Recoveries {
    /// The stretch of history.
    pub incarnation: Incarnation,
    /// The pools in recovery that the caller may see, by name.
    pub pools: Vec<Stored<Recovery>>,
}

impl Instances {
    /// The pools in recovery.
    ///
    /// # Errors
    /// `Forbidden`.
    pub fn recoveries(&self, caller: &Caller) -> Result<Recoveries, Error> {
        allow_verb(caller, Verb::Read)?;
        Ok(self.office.store.read(|view| {
            let known = view.installation().map(|known| known.value.incarnation.clone());
            let shown = view.recoveries().filter(|it| self.shows_recovery(view, caller, &it.value));
            let mut pools: Vec<Stored<Recovery>> = shown.cloned().collect();
            pools.sort_by(|a, b| a.value.pool_name.cmp(&b.value.pool_name));
            Recoveries { incarnation: known.unwrap_or_default(), pools }
        }))
    }

    /// Lets a pool do what it would do; true if it was in recovery. `pool` is its id, or its name as
    /// `recoveries` shows it.
    ///
    /// # Errors
    /// `NotFound`; `Forbidden`, for a pool that is gone also without being an admin; `Invalid` without a reason.
    pub async fn confirm_recovery(
        &self,
        caller: &Caller,
        pool: &str,
        reason: &str,
    ) -> Result<bool, Error> {
        allow_verb(caller, Verb::Write)?;
        let reason = given(reason)?;
        let decide = |view: &View, now: Timestamp| {
            let Some(recovery) = self.recovery(view, caller, pool) else {
                return self.known(view, caller, pool).map(|()| (None, None));
            };
            match view.resource(recovery.value.pool) {
                Some(_) => _ = self.pool(view, caller, Verb::Write, recovery.value.pool)?,
                None => allow_verb(caller, Verb::Administer)?,
            }
            let mut txn = Txn::at(now);
            end(&mut txn, view, recovery, ("confirm", reason), caller, now)?;
            Ok((Some(txn), Some(recovery.value.clone())))
        };
        let (_, confirmed) = self.office.decide(decide).await?;
        if let Some(recovery) = &confirmed {
            let forecast = recovery.forecast.as_ref().map(ToString::to_string);
            let (pool, by) = (&recovery.pool_name, &caller.subject);
            warn!(pool, by, reason, forecast, "a pool has left recovery");
        }
        Ok(confirmed.is_some())
    }

    /// The recovery of a pool, if the caller may know of it.
    fn recovery<'v>(
        &self,
        view: &'v View,
        caller: &Caller,
        pool: &str,
    ) -> Option<&'v Stored<Recovery>> {
        let mut all = view
            .recoveries()
            .filter(|it| it.value.pool_name == pool || it.value.pool.to_string() == pool);
        all.find(|it| self.shows_recovery(view, caller, &it.value))
    }

    /// Whether there is such a pool.
    fn known(&self, view: &View, caller: &Caller, pool: &str) -> Result<(), Error> {
        let kind = Kind::NodePool;
        let mut pools = view.resources(kind).filter(|it| it.value.tenant == caller.tenant);
        let named = pools.find(|it| {
            let cluster = it.value.owner.and_then(|owner| view.resource(owner));
            let name = cluster
                .map(|cluster| argosy_core::pool::pool_name(&cluster.value.name, &it.value.name));
            it.value.id.to_string() == pool || name.as_deref() == Some(pool)
        });
        let missing = || Error::NotFound { kind, reference: pool.to_owned(), cluster: None };
        let found = named.ok_or_else(missing)?;
        self.pool(view, caller, Verb::Write, found.value.id).map(drop)
    }

    fn shows_recovery(&self, view: &View, caller: &Caller, of: &Recovery) -> bool {
        let pool = view.resource(of.pool);
        caller.tenant == of.tenant
            && match pool {
                Some(pool) => self.office.shows(view, caller, (&*pool.value).into()),
                None => allow_verb(caller, Verb::Administer).is_ok(),
            }
    }
}
