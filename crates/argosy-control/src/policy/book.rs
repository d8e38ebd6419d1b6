//! The compiled policies: looked up for every report, compiled when a document changed.

use crate::Stored;
use argosy_core::node::Node;
use argosy_core::policy::{DEFAULT_POLICY, Policy, PolicySpec};
use argosy_policy::{HealthPolicy, RuleError};
use argosy_store::Revision;
use argosy_store::view::View;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, LazyLock, PoisonError, RwLock, RwLockReadGuard};
use tokio::sync::Semaphore;
use tracing::error;

/// The compiled policies, by tenant and name; compiled anew when a document changes.
///
/// Documents say what is in force and this only saves time: it may be lost, and one in another process
/// may be behind for as long as that process's view is.
pub(crate) struct PolicyBook {
    /// What is in force where nobody wrote anything.
    beginning: RwLock<(PolicySpec, Arc<HealthPolicy>)>,
    compiled: RwLock<HashMap<String, Page>>,
    /// One after the other: a run over all history keeps a core busy.
    pub(super) backtests: Semaphore,
}

/// One policy.
struct Page {
    /// The commit that wrote what was compiled, or could not be.
    revision: Revision,
    /// What is in force: of a document that does not compile, what was before it.
    policy: Option<Arc<HealthPolicy>>,
    /// Why it does not compile.
    errors: Vec<RuleError>,
}

static BUILTIN: LazyLock<Arc<HealthPolicy>> = LazyLock::new(|| {
    let policy = HealthPolicy::compile(DEFAULT_POLICY, 0, &HealthPolicy::default_spec());
    Arc::new(policy.expect("the built-in policy compiles: a test does"))
});

impl Default for PolicyBook {
    fn default() -> Self {
        let beginning = RwLock::new((HealthPolicy::default_spec(), BUILTIN.clone()));
        Self { beginning, compiled: RwLock::default(), backtests: Semaphore::new(1) }
    }
}

impl PolicyBook {
    /// The policy in force for a node: that of its pool, or else the tenant's default, or else the
    /// built-in one.
    ///
    /// Compiles a document that it sees for the first time, which takes some milliseconds.
    pub(crate) fn of(&self, view: &View, node: &Node) -> Arc<HealthPolicy> {
        let of_pool = node.pool.as_ref().and_then(|pool| {
            let own = view.policies().filter(|policy| policy.value.tenant == node.tenant);
            // By name: two documents can claim a pool only if they were written at the same moment.
            own.into_iter().find(|policy| policy.value.spec.pools.contains(pool))
        });
        let default = || view.policy(&node.tenant, DEFAULT_POLICY);
        of_pool
            .and_then(|policy| self.compiled(view, policy))
            .or_else(|| default().and_then(|policy| self.compiled(view, policy)))
            .unwrap_or_else(|| self.read_beginning().1.clone())
    }

    /// Puts a policy in the place of the built-in one.
    pub(super) fn begin_with(&self, spec: PolicySpec, policy: Arc<HealthPolicy>) {
        let mut beginning = self.beginning.write().unwrap_or_else(PoisonError::into_inner);
        *beginning = (spec, policy);
    }

    /// What is in force where nobody wrote anything.
    pub(super) fn beginning(&self) -> PolicySpec {
        self.read_beginning().0.clone()
    }

    fn read_beginning(&self) -> RwLockReadGuard<'_, (PolicySpec, Arc<HealthPolicy>)> {
        self.beginning.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Why a document does not compile; `None` if it does, or if nobody asked for it yet.
    pub(super) fn errors(&self, policy: &Stored<Policy>) -> Option<Vec<RuleError>> {
        let pages = self.compiled.read().unwrap_or_else(PoisonError::into_inner);
        let page = pages.get(&key_of(&policy.value))?;
        let current = page.revision == policy.revision && !page.errors.is_empty();
        current.then(|| page.errors.clone())
    }

    fn compiled(&self, view: &View, policy: &Stored<Policy>) -> Option<Arc<HealthPolicy>> {
        let key = key_of(&policy.value);
        let before = {
            let pages = self.compiled.read().unwrap_or_else(PoisonError::into_inner);
            match pages.get(&key) {
                Some(page) if page.revision == policy.revision => return page.policy.clone(),
                Some(page) => page.policy.clone(),
                None => None,
            }
        };
        let Policy { name, tenant, version, spec, .. } = &*policy.value;
        let (compiled, errors) = match HealthPolicy::compile(name.as_str(), *version, spec) {
            Ok(compiled) => (Some(Arc::new(compiled)), Vec::new()),
            Err(errors) => {
                let first = errors.first().map(ToString::to_string).unwrap_or_default();
                let instead = if before.is_some() { "the one before it" } else { "the default" };
                error!(
                    policy = %name, %tenant, version, errors = errors.len(), first, instead,
                    "a stored policy does not compile in this build; write it anew"
                );
                (before, errors)
            }
        };
        let stored: HashSet<String> = view.policies().map(|policy| key_of(&policy.value)).collect();
        let mut pages = self.compiled.write().unwrap_or_else(PoisonError::into_inner);
        pages.retain(|key, _| stored.contains(key));
        let revision = policy.revision;
        pages.insert(key, Page { revision, policy: compiled.clone(), errors });
        compiled
    }
}

fn key_of(policy: &Policy) -> String {
    format!("{}/{}", policy.tenant, policy.name)
}
