//! Health policies: stored, compiled once, asked for every event.

mod backtest;

mod book;

use crate::node::elsewhere;
use crate::office::{Office, allow_verb};
use crate::{Error, Revision, Stored};
use argosy_core::access::{Caller, Verb, teams_matter};
use argosy_core::field::{Constraint, FieldError};
use argosy_core::health::{Event, Evidence, Health, Verdict};
use argosy_core::label::Labels;
use argosy_core::name::Name;
use argosy_core::node::{Duty, External, Flaps, Liveness, Machine, Node, NodeId, Place};
use argosy_core::policy::{DEFAULT_POLICY, Policy, PolicySpec};
use argosy_core::resource::Stamp;
use argosy_policy::{HealthPolicy, Judged, RuleError};
use argosy_store::Txn;
use argosy_store::view::View;
use jiff::Timestamp;
use std::collections::BTreeMap;
use std::sync::Arc;

pub use backtest::{Backtest, Hit};
pub(crate) use book::PolicyBook;

/// The service.
#[derive(Clone)]
pub struct Policies {
    pub(crate) office: Arc<Office>,
    pub(crate) book: Arc<PolicyBook>,
}

/// How many policies a tenant may have. A node asks for its own by its pool, so there is no use for more
/// than there are pools.
pub const POLICIES_MAX: usize = 256;

impl Policies {
    /// Policies of the caller's tenant by name, the built-in default among them.
    ///
    /// # Errors
    /// `Forbidden`.
    pub fn list(&self, caller: &Caller) -> Result<Vec<Stored<Policy>>, Error> {
        allow_verb(caller, Verb::Read)?;
        let mut found: Vec<_> = self.office.store.read(|view| of_tenant(view, &caller.tenant));
        if !found.iter().any(|policy| policy.value.name.as_str() == DEFAULT_POLICY) {
            found.push(self.unwritten(&caller.tenant)?);
            found.sort_by(|a, b| a.value.name.cmp(&b.value.name));
        }
        Ok(found)
    }

    /// One policy.
    ///
    /// # Errors
    /// `PolicyNotFound`.
    pub fn get(&self, caller: &Caller, name: &str) -> Result<Stored<Policy>, Error> {
        allow_verb(caller, Verb::Read)?;
        let found = self.office.store.read(|view| view.policy(&caller.tenant, name).cloned());
        match found {
            Some(found) => Ok(found),
            None if name == DEFAULT_POLICY => self.unwritten(&caller.tenant),
            None => Err(Error::PolicyNotFound(name.to_owned())),
        }
    }

    /// Stored policies that this build cannot compile, and why: until somebody writes them anew, the
    /// nodes they are for are judged by what was there before, or else by the default.
    ///
    /// # Errors
    /// `Forbidden`.
    pub fn broken(&self, caller: &Caller) -> Result<Vec<(Name, Vec<FieldError>)>, Error> {
        allow_verb(caller, Verb::Read)?;
        let stored = self.office.store.read(|view| of_tenant(view, &caller.tenant));
        let complaints = stored.into_iter().filter_map(|policy| {
            let errors = self.book.errors(&policy)?;
            Some((policy.value.name.clone(), errors.iter().map(field_error).collect()))
        });
        Ok(complaints.collect())
    }

    /// Makes or replaces a policy. One that does not compile is refused, and the old one stays.
    ///
    /// A revision of 0 means that nobody wrote it yet.
    ///
    /// # Errors
    /// `Invalid`: `rules[3].condition`, with line and column; `Changed`; `Forbidden`; `TooMany`.
    pub async fn put(
        &self,
        caller: &Caller,
        name: &str,
        spec: PolicySpec,
        if_revision: Option<Revision>,
        dry_run: bool,
    ) -> Result<Stored<Policy>, Error> {
        self.allow_write(caller)?;
        let name = checked(name, &spec)?;
        let decide = |view: &View, now: Timestamp| {
            let Written { policy, txn, revision } =
                written(view, caller, &name, &spec, if_revision, now)?;
            Ok((txn.filter(|_| !dry_run), (policy, revision)))
        };
        let (committed, (policy, known)) = self.office.decide(decide).await?;
        Ok(Stored { value: policy, revision: known.unwrap_or(committed) })
    }

    /// What is not wrong with a policy, but probably not meant: rules that fail on an event they are about, and
    /// rules that nothing can reach.
    pub fn warnings(spec: &PolicySpec) -> Vec<FieldError> {
        let policy = HealthPolicy::compile(TRIED, 0, spec);
        policy.map_or_else(
            |_| Vec::new(),
            |policy| policy.warnings().iter().map(field_error).collect(),
        )
    }

    /// Makes a policy the one that is there when nobody wrote one, for every tenant, in place of the
    /// built-in one. It is not stored: what the configuration says holds for as long as it says so.
    ///
    /// # Errors
    /// `Invalid`, as for `put` under the name `default`.
    pub fn seed(&self, spec: PolicySpec) -> Result<(), Error> {
        checked(DEFAULT_POLICY, &spec)?;
        let compiled = compiled(DEFAULT_POLICY, &spec)?;
        self.book.begin_with(spec, compiled);
        Ok(())
    }

    /// Removes a policy; of the default, what the operator made of it.
    ///
    /// # Errors
    /// `PolicyNotFound`; `Precondition` for the default that nobody changed.
    pub async fn delete(&self, caller: &Caller, name: &str) -> Result<(), Error> {
        self.allow_write(caller)?;
        let decide = |view: &View, now: Timestamp| {
            let Some(stored) = view.policy(&caller.tenant, name) else {
                return Err(match name {
                    DEFAULT_POLICY => Error::Precondition(
                        "nobody wrote the default policy: there is nothing to remove".to_owned(),
                    ),
                    other => Error::PolicyNotFound(other.to_owned()),
                });
            };
            let mut txn = Txn::at(now);
            let before = (Some(&*stored.value), None);
            Office::record(&mut txn, caller, "delete", before, None, now);
            txn.remove(&*stored.value, stored.revision);
            Ok((Some(txn), ()))
        };
        self.office.decide(decide).await.map(drop)
    }

    /// What the policy in force for a node, or a given one, says of an event.
    ///
    /// # Errors
    /// `NodeNotFound`; `Invalid` if the given policy does not compile.
    pub fn explain(
        &self,
        caller: &Caller,
        node: Option<&str>,
        spec: Option<&PolicySpec>,
        event: &Event,
    ) -> Result<Verdict, Error> {
        allow_verb(caller, Verb::Read)?;
        let given = spec.map(|spec| compiled(TRIED, spec)).transpose()?;
        let (node, elsewhere, in_force) = self.office.store.read(|view| {
            let node = match node {
                None => Arc::new(nobody(&caller.tenant)),
                Some(id) => {
                    let found = view.node(id).filter(|node| node.value.tenant == caller.tenant);
                    found.ok_or_else(|| Error::NodeNotFound(id.to_owned()))?.value.clone()
                }
            };
            let seen = elsewhere(view, &node, event);
            let policy = self.book.of(view, &node);
            Ok::<_, Error>((node, seen, policy))
        })?;
        let policy = given.as_ref().unwrap_or(&in_force);
        let now = self.office.clock.now();
        Ok(policy.judge(&Judged { event, node: &node, elsewhere: &elsewhere, now }))
    }

    /// Runs a policy over recorded history: what it would have said of each event, and what the policy
    /// now in force would have.
    ///
    /// # Errors
    /// `Invalid` if it does not compile; `TooMany` while another one runs.
    pub async fn backtest(
        &self,
        caller: &Caller,
        spec: &PolicySpec,
        since: Option<Timestamp>,
    ) -> Result<Backtest, Error> {
        allow_verb(caller, Verb::Read)?;
        let policy = compiled(TRIED, spec)?;
        backtest::run(&self.office, &self.book, caller, (&policy, spec), since).await
    }

    /// The default that nobody wrote.
    fn unwritten(&self, tenant: &str) -> Result<Stored<Policy>, Error> {
        let stamp = Stamp { at: Timestamp::UNIX_EPOCH, by: "argosy".to_owned() };
        let value = Policy {
            name: Name::parse(DEFAULT_POLICY).map_err(|error| Error::Invalid(vec![error]))?,
            tenant: tenant.to_owned(),
            version: 0,
            spec: self.book.beginning(),
            created: stamp.clone(),
            updated: stamp,
        };
        Ok(Stored { value: Arc::new(value), revision: Revision(0) })
    }

    /// Policies are the whole tenant's, so where teams have walls between them one team may not change
    /// what the others' nodes are judged by.
    fn allow_write(&self, caller: &Caller) -> Result<(), Error> {
        allow_verb(caller, Verb::Write)?;
        if teams_matter(caller, self.office.settings.authorization) {
            let message = "policies judge the nodes of every team; ask an admin to change them";
            return Err(Error::Forbidden(message.to_owned()));
        }
        Ok(())
    }
}

/// What a policy is called that is only tried.
const TRIED: &str = "tried";

/// A policy as it will be.
struct Written {
    policy: Arc<Policy>,
    /// What writes it; nothing if it is so already.
    txn: Option<Txn>,
    /// The revision of what stays.
    revision: Option<Revision>,
}

fn written(
    view: &View,
    caller: &Caller,
    name: &Name,
    spec: &PolicySpec,
    if_revision: Option<Revision>,
    now: Timestamp,
) -> Result<Written, Error> {
    let stored = view.policy(&caller.tenant, name.as_str());
    let current = stored.map_or(Revision(0), |stored| stored.revision);
    if let Some(expected) = if_revision.filter(|expected| *expected != current) {
        return Err(Error::Changed { expected, current });
    }
    let others = of_tenant(view, &caller.tenant);
    let others = || others.iter().filter(|other| other.value.name != *name);
    if stored.is_none() && POLICIES_MAX <= others().count() {
        return Err(Error::TooMany(format!("there are {POLICIES_MAX} policies already")));
    }
    for other in others() {
        if let Some(pool) = spec.pools.iter().find(|pool| other.value.spec.pools.contains(pool)) {
            let message = format!("the pool `{pool}` has the policy `{}`", other.value.name);
            return Err(Error::Invalid(vec![FieldError::new(
                "pools",
                Constraint::Unique,
                message,
            )]));
        }
    }
    let stamp = Office::stamp(caller, now);
    let mut txn = Txn::at(now);
    let policy = match stored {
        Some(stored) if stored.value.spec == *spec => {
            let (policy, revision) = (stored.value.clone(), Some(stored.revision));
            return Ok(Written { policy, txn: None, revision });
        }
        Some(stored) => {
            let after = Arc::new(Policy {
                version: stored.value.version.saturating_add(1),
                spec: spec.clone(),
                updated: stamp,
                ..Policy::clone(&stored.value)
            });
            let change = (Some(&*stored.value), Some(&*after));
            Office::record(&mut txn, caller, "replace", change, None, now);
            txn.update(after.clone(), stored.revision);
            after
        }
        None => {
            let after = Arc::new(Policy {
                name: name.clone(),
                tenant: caller.tenant.clone(),
                version: 1,
                spec: spec.clone(),
                created: stamp.clone(),
                updated: stamp,
            });
            Office::record(&mut txn, caller, "create", (None, Some(&*after)), None, now);
            txn.create(after.clone());
            after
        }
    };
    Ok(Written { policy, txn: Some(txn), revision: None })
}

/// The name, if it is one, and if a policy can say that under it.
fn checked(name: &str, spec: &PolicySpec) -> Result<Name, Error> {
    let name = Name::parse(name).map_err(|error| Error::Invalid(vec![error]))?;
    let mut errors = spec.check(&name);
    match HealthPolicy::compile(name.as_str(), 0, spec) {
        Ok(policy) => errors.extend(policy.refusals().iter().map(field_error)),
        Err(of_rules) => errors.extend(of_rules.iter().map(field_error)),
    }
    if errors.is_empty() { Ok(name) } else { Err(Error::Invalid(errors)) }
}

fn compiled(name: &str, spec: &PolicySpec) -> Result<Arc<HealthPolicy>, Error> {
    HealthPolicy::compile(name, 0, spec)
        .map(Arc::new)
        .map_err(|errors| Error::Invalid(errors.iter().map(field_error).collect()))
}

fn field_error(error: &RuleError) -> FieldError {
    let message = match (error.line, error.column) {
        (Some(line), Some(column)) => {
            format!("line {line}, column {column}: {}", error.message)
        }
        _ => error.message.clone(),
    };
    FieldError::new(&error.field, Constraint::Pattern, message)
}

fn of_tenant(view: &View, tenant: &str) -> Vec<Stored<Policy>> {
    view.policies().filter(|policy| policy.value.tenant == tenant).cloned().collect()
}

/// A node nothing is known of.
fn nobody(tenant: &str) -> Node {
    let at = Timestamp::UNIX_EPOCH;
    Node {
        id: NodeId::parse("unknown").expect("a good id"),
        tenant: tenant.to_owned(),
        pool: None,
        place: Place::default(),
        machine: Machine::default(),
        gpus: Vec::new(),
        labels: Labels::default(),
        registered_at: at,
        joined_at: at,
        liveness: Liveness::Fresh,
        liveness_since: at,
        health: Health::unreported(at),
        evidence: Evidence::default(),
        expected_gpus: Vec::new(),
        duty: Duty::Active,
        checks: BTreeMap::new(),
        findings: Vec::new(),
        sightings: Vec::new(),
        report_sequence: 0,
        flaps: Flaps::default(),
        flags: BTreeMap::new(),
        held: None,
        external: External::default(),
    }
}
