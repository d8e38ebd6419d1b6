//! What people do about machines: take them in, send them away, and let go on what was stopped.

use super::{Instances, Shown};
use crate::command::sheet::abandon;
use crate::loops::machines::permit;
use crate::office::{Mutation, Office, allow_verb};
use crate::pool::protects;
use crate::safety::{Beyond, Judged, given};
use crate::{Error, Stored};
use argosy_core::access::{Caller, Verb};
use argosy_core::audit::OwnedBook;
use argosy_core::command::CommandKind;
use argosy_core::id::ResourceId;
use argosy_core::instance::{Instance, InstanceId, Purpose, Reason, Sight, State};
use argosy_core::invariant::Cause;
use argosy_core::inventory::{Orphan, Reap};
use argosy_core::machine::Order;
use argosy_core::nearest::nearest;
use argosy_core::node::{Duty, Node, NodeId};
use argosy_core::pool::{PoolBook, pool_name, resumed};
use argosy_core::remedy::{Effect, effect};
use argosy_core::resource::{Resource, Spec};
use argosy_store::Txn;
use argosy_store::view::View;
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tracing::warn;

impl Instances {
    /// Has a machine returned. Its node is not drained first: whoever wants that drains it and then comes
    /// here. Asked again, it answers with what was begun.
    ///
    /// # Errors
    /// `InstanceNotFound`; `Forbidden`; `Invalid` without a reason; `Precondition` if it is over, or is
    /// protected and not forced (F11); `OverBudget`.
    pub async fn terminate(
        &self,
        caller: &Caller,
        id: &str,
        reason: &str,
        force: bool,
        beyond: Beyond,
    ) -> Result<Shown, Error> {
        allow_verb(caller, if force { Verb::Force } else { Verb::Write })?;
        let reason = given(reason)?;
        let decide = |view: &View, now: Timestamp| {
            let found = self.find(view, caller, id)?;
            let instance = &found.value;
            if instance.state.is_over() {
                let state = instance.state.as_str();
                return Err(Error::Precondition(format!("{} is {state} already", instance.id)));
            }
            if let Some(by) = protects(view, instance).filter(|_| !force) {
                return Err(Error::Precondition(format!(
                    "{} is not terminated: {by}. Take the label off, or, with the role admin, add force: true",
                    instance.id
                )));
            }
            let (by, why) = (caller.subject.clone(), reason.to_owned());
            let permit = permit(view, instance, Reason::Operator { by, reason: why });
            let permit = permit.map_err(|held| Error::Precondition(held.to_string()))?;
            let Some(after) = instance.leaving(permit, now) else {
                return Ok((None, (instance.clone(), Some(found.revision), Judged::default())));
            };
            let after = Arc::new(after);
            // What has no node, or one that is out already, disrupts nobody.
            let node = view.node(instance.id.as_str());
            let node = node.filter(|node| node.value.tenant == instance.tenant);
            let effect = |node: &Node| effect(CommandKind::Terminate, &BTreeMap::new(), node);
            let asked = node.map(|node| (&node.value.id, effect(&node.value)));
            let asked: Vec<(&NodeId, Effect)> = asked.into_iter().collect();
            let judged = Judged::of(&self.office, view, caller, &asked, (beyond, reason), now)?;
            let mut txn = Txn::at(now);
            let change = Mutation::update("terminate", found, after.clone()).because(reason);
            Office::write_instance(&mut txn, change, caller, now)?;
            judged.write(&mut txn, view, caller, reason, now);
            Ok((Some(txn), (after, None, judged)))
        };
        let (revision, (value, known, judged)) = self.office.decide(decide).await?;
        judged.tell(&self.office, caller, beyond);
        if known.is_none() {
            warn!(instance = %value.id, by = caller.subject, reason, "is to be returned");
        }
        Ok(Stored { value, revision: known.unwrap_or(revision) }.into())
    }

    /// Makes a machine that nobody has a record of one of a pool's. It counts as the pool's from now on, and
    /// its node is expected to register; if the pool then has too many, it lets one go as it always does.
    ///
    /// # Errors
    /// `OrphanNotFound`; `NotFound` for the pool; `Precondition` if the machine is to be reaped, is another
    /// control plane's, or the pool is being deleted; `Invalid` without a reason.
    pub async fn adopt(
        &self,
        caller: &Caller,
        provider: &str,
        machine: &str,
        pool: ResourceId,
        reason: &str,
    ) -> Result<Shown, Error> {
        allow_verb(caller, Verb::Write)?;
        let reason = given(reason)?;
        let decide = |view: &View, now: Timestamp| {
            let orphan = self.orphan(view, caller, provider, machine)?;
            let resource = self.pool(view, caller, Verb::Write, pool)?;
            let record = self.adopted(view, &orphan.value, &resource.value, caller, reason, now)?;
            let mut txn = Txn::at(now);
            // A pool that is deleted meanwhile must not get a machine.
            txn.check(&*resource.value, resource.revision);
            let removed = Mutation::remove("adopt", orphan, Some(reason.to_owned()));
            Office::put(&mut txn, removed, caller, now);
            let before = view.instance(record.id.as_str());
            let written = match before {
                Some(before) => Mutation::update("adopt", before, record.clone()),
                None => Mutation { action: "adopt", ..Mutation::create(record.clone()) },
            };
            Office::write_instance(&mut txn, written.because(reason), caller, now)?;
            // Its agent speaks under a node that was marked as terminated: it registers anew.
            let node = view.node(record.id.as_str());
            let ended = |node: &&Stored<Node>| matches!(node.value.duty, Duty::Terminated(_));
            if let Some(node) = node.filter(|_| before.is_some()).filter(ended) {
                abandon(&mut txn, view, &node.value.id, caller, now)?;
                let removed = Mutation::remove("adopt", node, Some(reason.to_owned()));
                Office::write_node(&mut txn, removed, Cause::Other, &[], caller, now)?;
            }
            Ok((Some(txn), record))
        };
        let (revision, value) = self.office.decide(decide).await?;
        warn!(instance = %value.id, provider, machine, by = caller.subject, reason, "adopted");
        Ok(Stored { value, revision }.into())
    }

    /// The record of an orphan that becomes one of a pool's.
    fn adopted(
        &self,
        view: &View,
        orphan: &Orphan,
        pool: &Resource,
        caller: &Caller,
        reason: &str,
        now: Timestamp,
    ) -> Result<Arc<Instance>, Error> {
        let Orphan { provider, machine, .. } = orphan;
        let refuse = |why: String| Err(Error::Precondition(why));
        let ours = view.installation().map(|installation| installation.value.id);
        if ours.is_none() || orphan.tags.installation != ours {
            return refuse(format!("{machine} was not bought by this control plane"));
        }
        if orphan.reap.is_some() {
            return refuse(format!(
                "{machine} is about to be reaped; it cannot be adopted any more"
            ));
        }
        if pool.deletion.is_some() {
            return refuse(format!("the node pool {} is being deleted", pool.name));
        }
        let cluster = pool.owner.and_then(|owner| view.resource(owner));
        let Some(cluster) = cluster else {
            return refuse(format!("the cluster of the node pool {} is gone", pool.name));
        };
        let pool_name = pool_name(&cluster.value.name, &pool.name);
        // A record that is over was wrong about it, and goes on.
        let free = |id: &InstanceId| {
            view.instance(id.as_str()).is_none_or(|record| {
                record.value.state.is_over() && record.value.tenant == pool.tenant
            })
        };
        // Its agent registers under the id that it was started with, so that is the best one.
        let written = orphan.tags.instance.clone();
        let id = written.or_else(|| InstanceId::parse(&orphan.name).ok()).filter(free);
        let token = orphan.tags.token.unwrap_or_else(|| self.office.ids.token(now));
        let id = id.unwrap_or_else(|| InstanceId::mint(&pool_name, self.office.ids.token(now)));
        Ok(Arc::new(Instance {
            id,
            tenant: pool.tenant.clone(),
            pool: pool.id,
            pool_name,
            number: free_number(view, pool.id),
            token,
            order: Order {
                provider: provider.clone(),
                region: orphan.region.clone(),
                zone: orphan.zone.clone(),
                machine_type: orphan.machine_type.clone(),
                // Nobody knows any more; see `adopted`.
                spot: false,
                image: String::new(),
                price_per_hour: orphan.price_per_hour,
            },
            ordered_at: now,
            why: format!("adopted by {}: {reason}", caller.subject),
            replaces: None,
            purpose: Purpose::Seat,
            adopted: true,
            departure: None,
            blocked: None,
            tried: Vec::new(),
            notice: None,
            sight: Sight::default(),
            state: State::AwaitingNode { machine: machine.clone(), since: now },
        }))
    }

    /// Asks for a machine to be returned that nobody has a record of.
    ///
    /// # Errors
    /// `OrphanNotFound`; `Forbidden` without being an admin; `Precondition` if it is another control
    /// plane's; `Invalid` without a reason.
    pub async fn reap(
        &self,
        caller: &Caller,
        provider: &str,
        machine: &str,
        reason: &str,
    ) -> Result<Stored<Orphan>, Error> {
        allow_verb(caller, Verb::Administer)?;
        let reason = given(reason)?;
        let decide = |view: &View, now: Timestamp| {
            let orphan = self.orphan(view, caller, provider, machine)?;
            let ours = view.installation().map(|installation| installation.value.id);
            if ours.is_none() || orphan.value.tags.installation != ours {
                return Err(Error::Precondition(format!(
                    "{machine} does not carry the tag of this control plane; return it where it was bought"
                )));
            }
            if orphan.value.reap.is_some() {
                return Ok((None, (orphan.value.clone(), Some(orphan.revision))));
            }
            let (by, reason) = (caller.subject.clone(), reason.to_owned());
            let reap = Some(Reap { by, reason: reason.clone(), at: now });
            let after = Arc::new(Orphan { reap, ..(*orphan.value).clone() });
            let mut txn = Txn::at(now);
            let change = Mutation::update("reap", orphan, after.clone()).because(reason);
            Office::put(&mut txn, change, caller, now);
            Ok((Some(txn), (after, None)))
        };
        let (revision, (value, known)) = self.office.decide(decide).await?;
        if known.is_none() {
            warn!(provider, machine, by = caller.subject, reason, "is to be reaped");
        }
        Ok(Stored { value, revision: known.unwrap_or(revision) })
    }

    /// Has a provider's listings believed again that were not, because they missed too many machines; true
    /// if they were not believed.
    ///
    /// # Errors
    /// `ProviderNotFound`; `Forbidden` without being an admin; `Invalid` without a reason.
    pub async fn thaw(&self, caller: &Caller, provider: &str, reason: &str) -> Result<bool, Error> {
        allow_verb(caller, Verb::Administer)?;
        let reason = given(reason)?;
        let decide = |view: &View, now: Timestamp| {
            let Some(book) = view.provider_book(provider) else {
                return match self.providers.contains_key(provider) {
                    true => Ok((None, false)),
                    false => Err(self.no_provider(provider)),
                };
            };
            let Some(after) = book.value.thawed(now) else { return Ok((None, false)) };
            let mut txn = Txn::at(now);
            let change = Mutation::update("thaw", book, Arc::new(after)).because(reason);
            Office::put(&mut txn, change, caller, now);
            Ok((Some(txn), true))
        };
        let (_, thawed) = self.office.decide(decide).await?;
        if thawed {
            warn!(provider, by = caller.subject, reason, "its listings are believed again");
        }
        Ok(thawed)
    }

    /// The last spec with which every node of a pool was in service: what an update that failed goes back to.
    ///
    /// # Errors
    /// `NotFound`, `Forbidden`; `Precondition` if there is none, or it is the pool's.
    pub fn good_spec(&self, caller: &Caller, pool: ResourceId) -> Result<Spec, Error> {
        allow_verb(caller, Verb::Write)?;
        self.office.store.read(|view| {
            let resource = &self.pool(view, caller, Verb::Write, pool)?.value;
            let good = view.pool_book(pool).and_then(|book| book.value.good.as_ref());
            match good {
                Some(good) if good.spec != resource.spec => Ok(good.spec.clone()),
                Some(_) => Err(Error::Precondition(format!(
                    "the spec of {} is the last one with which all its nodes were in service",
                    resource.name
                ))),
                None => Err(Error::Precondition(format!(
                    "all nodes of {} have never been in service at once, so there is no spec to go back to; \
                     write the one that you want",
                    resource.name
                ))),
            }
        })
    }

    /// Lets buying and updating go on for a pool that stopped because of what became of its machines; true if it
    /// had stopped.
    ///
    /// # Errors
    /// `NotFound`, `Forbidden`; `Invalid` without a reason.
    pub async fn resume(
        &self,
        caller: &Caller,
        pool: ResourceId,
        reason: &str,
    ) -> Result<bool, Error> {
        allow_verb(caller, Verb::Write)?;
        let reason = given(reason)?;
        let decide = |view: &View, now: Timestamp| {
            let resource = self.pool(view, caller, Verb::Write, pool)?;
            let stands = |book: &PoolBook| book.paused.is_some() || book.update_failed.is_some();
            let book = view.pool_book(pool).filter(|book| stands(&book.value));
            let Some(book) = book else { return Ok((None, false)) };
            let after = resumed(&book.value, now);
            let mut txn = Txn::at(now);
            let tenant = &resource.value.tenant;
            let of = |book| OwnedBook { tenant, book };
            let (old, new) = (of(&book.value), of(&after));
            let why = Some(reason.to_owned());
            Office::record(&mut txn, caller, "resume", (Some(&old), Some(&new)), why, now);
            txn.update(Arc::new(after), book.revision);
            Ok((Some(txn), true))
        };
        let (_, resumed) = self.office.decide(decide).await?;
        if resumed {
            warn!(%pool, by = caller.subject, reason, "machines are bought and replaced again");
        }
        Ok(resumed)
    }

    fn orphan<'v>(
        &self,
        view: &'v View,
        caller: &Caller,
        provider: &str,
        machine: &str,
    ) -> Result<&'v Stored<Orphan>, Error> {
        let found = view.orphan(provider, machine);
        found.filter(|found| self.shows_orphan(view, caller, &found.value)).ok_or_else(|| {
            let (provider, machine) = (provider.to_owned(), machine.to_owned());
            Error::OrphanNotFound { provider, machine }
        })
    }

    fn no_provider(&self, name: &str) -> Error {
        let meant = nearest(name, self.providers.keys().map(String::as_str));
        let meant = meant.map(|meant| format!("; did you mean '{meant}'?")).unwrap_or_default();
        Error::ProviderNotFound(format!("{name}{meant}"))
    }
}

/// The lowest number that no living instance of the pool has, from 1.
fn free_number(view: &View, pool: ResourceId) -> u32 {
    let living = view.instances_of(pool).filter(|instance| !instance.value.state.is_over());
    let taken: BTreeSet<u32> = living.map(|instance| instance.value.number).collect();
    (1..).find(|number| !taken.contains(number)).unwrap_or(u32::MAX)
}
