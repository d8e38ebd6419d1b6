//! What every service and loop holds: the store, the clock, the settings.

use crate::clock::Clock;
use crate::control::Settings;
use crate::error::Error;
use crate::ids::Ids;
use crate::loops::notes::{IMPERSONATION, Note, Notes, Refusal};
use crate::node::LEDGER;
use crate::pulse::Moment;
use crate::stats::Stats;
use argosy_core::access::{Caller, Decision, Role, Verb, may, may_see, may_touch, teams_matter};
use argosy_core::adapter::AdapterSpec;
use argosy_core::audit::{AuditRecord, Audited};
use argosy_core::command::Command;
use argosy_core::id::ResourceId;
use argosy_core::instance::Instance;
use argosy_core::invariant::{self, Cause, Change};
use argosy_core::ledger;
use argosy_core::node::settings::NodeSettings;
use argosy_core::node::{Node, NodeId};
use argosy_core::resource::{Kind, Resource, Stamp, Tombstone};
use argosy_core::status::Condition;
use argosy_policy::MappedCondition;
use argosy_store::engine::{Entry, EntryQuery};
use argosy_store::view::{Stored, View};
use argosy_store::{Revision, Store, Stores, Txn};
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use tracing::error;

/// The stream of audit records.
pub(crate) const AUDIT: &str = "audit";

/// The stream of reports, news or not.
pub(crate) const HISTORY: &str = "history";

/// The stream of events that were given up.
pub(crate) const DEAD_LETTERS: &str = "dead-letters";

/// The stream of what pools' sizes were judged by.
pub(crate) const POOL_HISTORY: &str = "pool-history";

/// How many entries of a stream are read at a time.
pub(crate) const PAGE: usize = 1000;

/// How often a write is decided anew when somebody else was first. Each time somebody else *did*
/// get further, so giving up means that one resource takes dozens of writes at once.
const TRIES_MAX: u32 = 64;

/// How long a process waits for another's commit to reach its view before it decides again.
const CATCH_UP: Duration = Duration::from_secs(1);

/// The common ground of the services.
pub(crate) struct Office {
    pub(crate) store: Store,
    pub(crate) clock: Clock,
    pub(crate) ids: Ids,
    pub(crate) settings: Arc<Settings>,
    pub(crate) stats: Arc<Stats>,
    /// The keys of the workload systems that are configured: by name and address.
    pub(crate) systems: Vec<String>,
    pub(crate) notes: Notes,
    /// What the node plane goes by now; kept current by `loops::plane`.
    pub(crate) plane: RwLock<Arc<NodeSettings>>,
}

impl Office {
    /// What the node plane goes by now: the deployment's settings, with what the specs of pools say.
    pub(crate) fn nodes(&self) -> Arc<NodeSettings> {
        self.plane.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn set_nodes(&self, nodes: NodeSettings) {
        *self.plane.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(nodes);
    }

    /// The adapters of a kind.
    pub(crate) fn adapters(&self, kind: Kind) -> &[AdapterSpec] {
        self.settings.adapters.of(kind)
    }

    /// Decides on what the view shows and commits it; decides again if somebody else was first.
    ///
    /// `decide` returns what to write and what to answer; without anything to write it only answers.
    pub(crate) async fn decide<T>(
        &self,
        mut decide: impl FnMut(&View, Timestamp) -> Result<(Option<Txn>, T), Error>,
    ) -> Result<(Revision, T), Error> {
        let mut tries = 0;
        loop {
            let now = self.clock.now();
            let mut changes = self.store.subscribe();
            let (seen, decided) = self.store.read(|view| (view.revision(), decide(view, now)));
            if let Err(Error::Invariant(broken)) = &decided {
                self.stats.refused(broken);
            }
            let (txn, answer) = decided?;
            let Some(txn) = txn else { return Ok((seen, answer)) };
            match self.store.commit(txn).await {
                Ok(revision) => {
                    self.stats.commits.add_one();
                    return Ok((revision, answer));
                }
                Err(argosy_store::Error::Conflict(_)) if tries < TRIES_MAX => {
                    self.stats.conflicts.add_one();
                    tries += 1;
                    let moved = changes.wait_for(|revision| seen < *revision);
                    // Not moving is an answer, too: then the next try fails like this one.
                    let _ = tokio::time::timeout(CATCH_UP, moved).await;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// The resource with the conditions that configured rules derive from it.
    ///
    /// Every decision ends here: core makes its own conditions anew each time and knows no rules.
    pub(crate) fn settled(
        &self,
        before: Option<&Resource>,
        mut after: Resource,
        now: Timestamp,
    ) -> Resource {
        let Some(rules) = self.settings.conditions.get(&after.kind) else { return after };
        for MappedCondition { kind, status, reason, message } in rules.evaluate(&after) {
            let past = before.into_iter().flat_map(|before| &before.conditions);
            let past = past.into_iter().find(|past| past.kind == kind);
            let same = past.filter(|past| past.status == status);
            let said = same.filter(|past| past.reason == reason && past.message == message);
            after.conditions.push(Condition {
                kind,
                status,
                reason,
                message,
                observed_generation: after.generation,
                created_time: past.map_or(now, |past| past.created_time),
                last_updated_time: said.map_or(now, |past| past.last_updated_time),
                last_transition_time: same.map_or(now, |past| past.last_transition_time),
            });
        }
        after
    }

    /// A stamp of what the caller does now.
    pub(crate) fn stamp(caller: &Caller, now: Timestamp) -> Stamp {
        Stamp { at: now, by: caller.subject.clone() }
    }

    /// Adds one mutation of one resource to a transaction, with its audit record.
    pub(crate) fn write(
        txn: &mut Txn,
        change: Mutation<'_>,
        caller: &Caller,
        now: Timestamp,
    ) -> Result<(), Error> {
        if let Some(after) = &change.after {
            let before = change.old();
            keep_rules(change.action, Change::Resource { before, after })?;
        }
        Self::put(txn, change, caller, now);
        Ok(())
    }

    /// Adds one mutation of one node to a transaction, with its audit record and the lines of the
    /// node's ledger that it makes.
    pub(crate) fn write_node(
        txn: &mut Txn,
        change: Mutation<'_, Node>,
        cause: Cause,
        entries: &[ledger::Entry],
        caller: &Caller,
        now: Timestamp,
    ) -> Result<(), Error> {
        if let Some(after) = &change.after {
            let before = change.old();
            keep_rules(change.action, Change::Node { before, after, cause })?;
        }
        Self::put(txn, change, caller, now);
        Self::note(txn, entries);
        Ok(())
    }

    /// Adds one mutation of one command to a transaction, with its audit record. Its line in the
    /// node's ledger is the caller's to add.
    pub(crate) fn write_command(
        txn: &mut Txn,
        change: Mutation<'_, Command>,
        caller: &Caller,
        now: Timestamp,
    ) -> Result<(), Error> {
        if let Some(after) = &change.after {
            let before = change.old();
            keep_rules(change.action, Change::Command { before, after })?;
        }
        Self::put(txn, change, caller, now);
        Ok(())
    }

    /// Adds one mutation of the record of a machine to a transaction, with its audit record.
    pub(crate) fn write_instance(
        txn: &mut Txn,
        change: Mutation<'_, Instance>,
        caller: &Caller,
        now: Timestamp,
    ) -> Result<(), Error> {
        if let Some(after) = &change.after {
            let before = change.old();
            keep_rules(change.action, Change::Instance { before, after })?;
        }
        Self::put(txn, change, caller, now);
        Ok(())
    }

    /// Adds one mutation of a document that has no rules of its own to a transaction, with its audit
    /// record.
    pub(crate) fn put<T: Audited + Stores>(
        txn: &mut Txn,
        change: Mutation<'_, T>,
        caller: &Caller,
        now: Timestamp,
    ) {
        let steps = (change.old(), change.after.as_deref());
        Self::record(txn, caller, change.action, steps, change.reason, now);
        match (change.before, change.after) {
            (None, Some(after)) => txn.create(after),
            (Some(before), Some(after)) => txn.update(after, before.revision),
            (Some(before), None) => txn.remove(&*before.value, before.revision),
            (None, None) => {}
        }
    }

    /// Adds lines to nodes' ledgers.
    pub(crate) fn note(txn: &mut Txn, entries: &[ledger::Entry]) {
        for entry in entries {
            txn.append(LEDGER, entry.node.as_str(), entry);
        }
    }

    /// Adds the audit record of one mutation of one document to a transaction.
    pub(crate) fn record<T: Audited>(
        txn: &mut Txn,
        caller: &Caller,
        action: &str,
        (before, after): (Option<&T>, Option<&T>),
        reason: Option<String>,
        now: Timestamp,
    ) {
        let record = AuditRecord::new(caller, action, before, after, reason, now);
        txn.append(AUDIT, &record.id, &record);
    }

    /// The newest entries of a stream, or of one subject in it, that `keep` keeps, before a sequence
    /// number.
    pub(crate) async fn newest<T: DeserializeOwned>(
        &self,
        stream: &str,
        subject: Option<&str>,
        before: Option<u64>,
        limit: usize,
        keep: impl Fn(&T) -> bool,
    ) -> Result<Vec<(Entry, T)>, Error> {
        let mut found = Vec::new();
        let mut cursor = before;
        while found.len() < limit {
            let (stream, subject) = (stream.to_owned(), subject.map(str::to_owned));
            let query = EntryQuery { stream, subject, cursor, newest_first: true, limit: PAGE };
            let page = self.store.entries(&query).await?;
            let Some(last) = page.last() else { break };
            cursor = Some(last.sequence);
            for entry in page {
                let value: T = read_entry(&entry)?;
                if keep(&value) && found.len() < limit {
                    found.push((entry, value));
                }
            }
        }
        Ok(found)
    }

    /// Now, on both clocks.
    pub(crate) fn moment(&self) -> Moment {
        Moment { wall: self.clock.now(), monotonic: self.clock.monotonic() }
    }

    /// May the caller speak for this node? A credential that is another node's may not, whether the node
    /// exists or not, and somebody will want to know (K1).
    pub(crate) fn speaks_for(&self, caller: &Caller, node: &str) -> Result<(), Error> {
        allow_verb(caller, Verb::Attend)?;
        let Some(own) = caller.node.as_deref().filter(|own| *own != node) else { return Ok(()) };
        let node = NodeId::parse(node).map_err(|error| Error::Invalid(vec![error]))?;
        self.stats.impersonations.add_one();
        let reason = format!("the credential is that of node {own}");
        let (action, caller) = (IMPERSONATION, caller.clone());
        let refusal = Refusal { action, node: node.clone(), caller, reason };
        self.note_later(Note::Refused(refusal));
        Err(Error::Forbidden(format!("this credential speaks for node {own}, not for {node}")))
    }

    /// Leaves something to be written down soon, without waiting; false if there was no room.
    pub(crate) fn note_later(&self, note: Note) -> bool {
        let left = self.notes.leave(note);
        if !left {
            self.stats.notes_lost.add_one();
        }
        left
    }

    /// May the caller do this to the resource?
    pub(crate) fn allow(
        &self,
        caller: &Caller,
        verb: Verb,
        resource: &Resource,
        cluster: Option<&Resource>,
    ) -> Decision {
        may_touch(caller, verb, resource, cluster, self.settings.authorization)
    }

    /// May the caller know about something that may be gone, as may its cluster?
    pub(crate) fn shows(&self, view: &View, caller: &Caller, of: Belongs<'_>) -> bool {
        let authorization = self.settings.authorization;
        let owner_team = match of.owner {
            None => None,
            Some(owner) => match (view.resource(owner), view.tombstone(owner)) {
                (Some(owner), _) => owner.value.labels.get("team"),
                (None, Some(gone)) => gone.value.team.as_deref(),
                // Nobody knows any more whose it was.
                (None, None) if teams_matter(caller, authorization) => return false,
                (None, None) => None,
            },
        };
        let teams = [of.team, owner_team].into_iter().flatten();
        may_see(caller, of.tenant, teams, authorization) == Decision::Allow
    }

    /// May the caller know about a command? It is as private as its node, which may be forgotten.
    pub(crate) fn shows_command(&self, view: &View, caller: &Caller, of: &Command) -> bool {
        let node = view.node(of.node.as_str()).filter(|node| node.value.tenant == of.tenant);
        match node {
            Some(node) => self.shows(view, caller, (&*node.value).into()),
            None => {
                let known = !teams_matter(caller, self.settings.authorization);
                known && caller.tenant == of.tenant
            }
        }
    }
}

impl Office {
    /// May the caller know about an instance? It is as private as its node pool, which may be gone.
    pub(crate) fn shows_instance(&self, view: &View, caller: &Caller, of: &Instance) -> bool {
        let pool = view.resource(of.pool).map(|pool| &*pool.value);
        let belongs = match (pool, view.tombstone(of.pool)) {
            (Some(pool), _) => pool.into(),
            (None, Some(gone)) => (&*gone.value).into(),
            // A pool nobody remembers: its team is not known, and the office knows what follows.
            (None, None) => Belongs { tenant: &of.tenant, team: None, owner: Some(of.pool) },
        };
        caller.tenant == of.tenant && self.shows(view, caller, belongs)
    }
}

/// What decides who may see something: whose it is, and its cluster, whose team counts as well.
pub(crate) struct Belongs<'a> {
    pub(crate) tenant: &'a str,
    pub(crate) team: Option<&'a str>,
    pub(crate) owner: Option<ResourceId>,
}

impl<'a> From<&'a Resource> for Belongs<'a> {
    fn from(of: &'a Resource) -> Self {
        Self { tenant: &of.tenant, team: of.labels.get("team"), owner: of.owner }
    }
}

impl<'a> From<&'a Node> for Belongs<'a> {
    fn from(of: &'a Node) -> Self {
        Self { tenant: &of.tenant, team: of.labels.get("team"), owner: None }
    }
}

impl<'a> From<&'a Tombstone> for Belongs<'a> {
    fn from(of: &'a Tombstone) -> Self {
        Self { tenant: &of.tenant, team: of.team.as_deref(), owner: of.owner }
    }
}

/// Decodes an entry of one of our streams.
pub(crate) fn read_entry<T: DeserializeOwned>(entry: &Entry) -> Result<T, Error> {
    serde_json::from_str(&entry.body).map_err(|error| {
        let place = format!("the entry {} cannot be read: {error}", entry.sequence);
        argosy_store::Error::Refused(place).into()
    })
}

/// May the caller do this at all?
pub(crate) fn allow_verb(caller: &Caller, verb: Verb) -> Result<(), Error> {
    match may(caller, verb) {
        Decision::Allow => Ok(()),
        Decision::Forbid | Decision::Hide => Err(Error::Forbidden(format!(
            "the role {} may not do this",
            serde_json::to_value(caller.role).ok().as_ref().and_then(|r| r.as_str()).unwrap_or("?")
        ))),
    }
}

/// Ourselves, when nobody asked.
pub(crate) fn system(subject: &str) -> Caller {
    Caller {
        subject: subject.to_owned(),
        via: "system",
        // Records of what we do carry the resource's own tenant.
        tenant: String::new(),
        teams: Vec::new(),
        role: Role::Admin,
        adapter: None,
        node: None,
        request_id: String::new(),
    }
}

/// Stops a change that would break a rule that always holds.
fn keep_rules(action: &str, change: Change<'_>) -> Result<(), Error> {
    invariant::check(change).map_err(|broken| {
        error!(action, broken, "refused to break an invariant");
        Error::Invariant(broken)
    })
}

/// One mutation of one document.
pub(crate) struct Mutation<'a, T = Resource> {
    pub(crate) action: &'static str,
    pub(crate) before: Option<&'a Stored<T>>,
    pub(crate) after: Option<Arc<T>>,
    pub(crate) reason: Option<String>,
}

impl<'a, T> Mutation<'a, T> {
    pub(crate) fn create(after: Arc<T>) -> Self {
        Self { action: "create", before: None, after: Some(after), reason: None }
    }

    pub(crate) fn update(action: &'static str, before: &'a Stored<T>, after: Arc<T>) -> Self {
        Self { action, before: Some(before), after: Some(after), reason: None }
    }

    pub(crate) fn remove(
        action: &'static str,
        before: &'a Stored<T>,
        reason: Option<String>,
    ) -> Self {
        Self { action, before: Some(before), after: None, reason }
    }

    /// The same mutation, and why.
    pub(crate) fn because(self, reason: impl Into<String>) -> Self {
        Self { reason: Some(reason.into()), ..self }
    }

    fn old(&self) -> Option<&'a T> {
        self.before.map(|before| &*before.value)
    }
}

#[cfg(test)]
mod tests;
