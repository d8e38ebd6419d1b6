//! Clusters and node pools: create, read, list, watch, patch, delete.

use crate::office::{Mutation, Office, allow_verb};
use crate::pool;
use crate::safety::forget_pool;
use crate::watch::{Scope, Watch, WatchList};
use crate::{Error, Revision, Stored};
use argosy_core::access::{Caller, Decision, Verb, may};
use argosy_core::adapter::{AdapterName, Report};
use argosy_core::autoscale::Autoscaling;
use argosy_core::catalog::Catalog;
use argosy_core::field::{Constraint, FieldError};
use argosy_core::id::ResourceId;
use argosy_core::label::Labels;
use argosy_core::name::Name;
use argosy_core::pool::keeping_size;
use argosy_core::protect::PROTECTED;
use argosy_core::resource::{Kind, NewResource, Patch, Resource, Spec, Stamp, Tombstone};
use argosy_core::search::{Filter, Order};
use argosy_core::status::{self, AdapterLine};
use argosy_store::Txn;
use argosy_store::entity::{IdempotencyKey, Made, NameClaim};
use argosy_store::view::View;
use jiff::Timestamp;
use std::sync::Arc;

/// The member of a node pool's spec that says who changes its size.
const AUTOSCALING: &str = "autoscaling";

/// Which resource a request is about: an id or a name, under a cluster if the path says so.
#[derive(Clone, Copy, Debug)]
pub struct Target<'a> {
    /// What it is.
    pub kind: Kind,
    /// The id or name of the cluster in the path, for a node pool's nested routes.
    pub cluster: Option<&'a str>,
    /// The id or name.
    pub reference: &'a str,
}

/// How a write is to be carried out.
#[derive(Clone, Debug, Default)]
pub struct Write {
    /// Check everything, answer as if, write nothing.
    pub dry_run: bool,
    /// Only if the resource is still at this revision.
    pub if_match: Option<Revision>,
    /// Makes a repeated create find the first one's result.
    pub idempotency: Option<Idempotency>,
    /// Also what the label `argosy.dev/protected` keeps; for admins, with a reason.
    pub force: bool,
    /// A deletion terminates machines without draining their nodes; for admins, with a reason.
    pub now: bool,
    /// Why; it is kept in the audit log.
    pub reason: Option<String>,
}

/// A key the client chose, and a digest of the request it stands for.
#[derive(Clone, Debug)]
pub struct Idempotency {
    /// At most 255 visible ASCII characters.
    pub key: String,
    /// SHA-256 of method, path and body, in hex.
    pub digest: String,
}

/// What is to be created.
#[derive(Clone, Debug)]
pub struct Creation<'a> {
    /// What.
    pub kind: Kind,
    /// The id or name of the cluster in the path, for a node pool.
    pub cluster: Option<&'a str>,
    /// Its name.
    pub name: Name,
    /// What is asked for.
    pub spec: Spec,
    /// Its labels.
    pub labels: Labels,
}

/// What a create came to.
#[derive(Clone, Debug)]
pub struct Created {
    /// The resource.
    pub resource: Stored<Resource>,
    /// Whether an earlier request with the same key had created it.
    pub replayed: bool,
}

/// Which resources a list shows.
#[derive(Clone, Debug)]
pub struct List<'a> {
    /// What.
    pub kind: Kind,
    /// Only those of this cluster.
    pub cluster: Option<&'a str>,
    /// Only those that match.
    pub filter: Filter,
    /// In this order.
    pub order: Order,
    /// Counted from 1.
    pub page: usize,
    /// How many a page.
    pub size: usize,
}

/// One page of a list.
#[derive(Clone, Debug)]
pub struct Page {
    /// The resources.
    pub items: Vec<Stored<Resource>>,
    /// How many match in all.
    pub total: usize,
    /// The revision the list was read at: a watch can start after it.
    pub revision: Revision,
}

/// What the adapters say about one resource.
#[derive(Clone, Debug)]
pub struct Statuses {
    /// The resource.
    pub resource: Stored<Resource>,
    /// One line an adapter: the configured ones in order (reversed while deleting), then the others.
    pub lines: Vec<StatusLine>,
}

/// One adapter's line.
#[derive(Clone, Debug)]
pub struct StatusLine {
    /// Who.
    pub adapter: AdapterName,
    /// What it is doing.
    pub line: AdapterLine,
    /// What it last reported.
    pub report: Option<Report>,
}

/// The service.
#[derive(Clone)]
pub struct Resources {
    pub(crate) office: Arc<Office>,
}

/// What to write, the resource, and its revision if an earlier request created it.
type Creating = (Option<Txn>, (Arc<Resource>, Option<Revision>));

/// A resource that was found, with its cluster if it has one.
pub(crate) struct Found<'v> {
    pub(crate) resource: &'v Stored<Resource>,
    pub(crate) cluster: Option<&'v Stored<Resource>>,
}

impl Resources {
    /// Creates a cluster or a node pool.
    ///
    /// # Errors
    /// The parent is missing, of another team, or being deleted; the spec is not possible; the name
    /// is taken; the idempotency key stands for another request.
    pub async fn create(
        &self,
        caller: &Caller,
        creation: Creation<'_>,
        write: Write,
    ) -> Result<Created, Error> {
        allow_verb(caller, Verb::Write)?;
        let id = self.office.ids.resource(self.office.clock.now());
        let outcome = self
            .office
            .decide(|view, now| self.decide_create(view, now, id, caller, &creation, &write))
            .await;
        let (revision, (value, replayed)) = outcome?;
        let revision = replayed.unwrap_or(revision);
        Ok(Created { resource: Stored { value, revision }, replayed: replayed.is_some() })
    }

    /// Whether a pool may be measured as its spec asks.
    fn check_metrics(&self, kind: Kind, spec: &Spec, tenant: &str) -> Result<(), Error> {
        let field = format!("spec.{AUTOSCALING}");
        let asked =
            spec.get(AUTOSCALING).filter(|asked| kind == Kind::NodePool && !asked.is_null());
        let Some(asked) = asked else { return Ok(()) };
        let autoscaling = Autoscaling::parse(asked, &field).map_err(Error::Invalid)?;
        let errors = self.office.settings.machines.metrics.check(&autoscaling, &field, tenant);
        if errors.is_empty() { Ok(()) } else { Err(Error::Invalid(errors)) }
    }

    fn decide_create(
        &self,
        view: &View,
        now: Timestamp,
        id: ResourceId,
        caller: &Caller,
        creation: &Creation<'_>,
        write: &Write,
    ) -> Result<Creating, Error> {
        let Creation { kind, cluster, name, spec, labels } = creation;
        let cluster = cluster.map(|reference| self.cluster(view, caller, reference)).transpose()?;
        if *kind == Kind::NodePool && cluster.is_none() {
            return Err(Error::NeedsCluster(*kind));
        }
        if let Some(first) = self.earlier(view, now, caller, write)? {
            return Ok((None, (first.value.clone(), Some(first.revision))));
        }
        if let Some(cluster) = cluster.filter(|cluster| cluster.value.deletion.is_some()) {
            let reference = cluster.value.name.to_string();
            return Err(Error::Deleting { kind: Kind::Cluster, reference });
        }
        let provider = cluster.and_then(|cluster| Catalog::provider_of(&cluster.value.spec));
        self.office.settings.catalog.check(*kind, spec, provider).map_err(Error::Invalid)?;
        self.check_metrics(*kind, spec, &caller.tenant)?;

        let new = NewResource {
            kind: *kind,
            name: name.clone(),
            owner: cluster.map(|cluster| cluster.value.id),
            spec: spec.clone(),
            labels: self.labels(labels),
        };
        let stamp = Office::stamp(caller, now);
        let adapters = self.office.adapters(*kind);
        let resource = Resource::create(new, id, caller.tenant.clone(), stamp, adapters);
        let resource = Arc::new(self.office.settled(None, resource, now));
        let owner = cluster.map(|cluster| &*cluster.value);
        if self.office.allow(caller, Verb::Write, &resource, owner) != Decision::Allow {
            return Err(forbidden_team(&resource));
        }
        let claim = claim_of(&resource);
        if let Some(holder) = view.holder(&claim) {
            let deleting = view.resource(holder).is_some_and(|h| h.value.deletion.is_some());
            return Err(Error::NameTaken { kind: *kind, name: name.to_string(), deleting });
        }
        if write.dry_run {
            return Ok((None, (resource, None)));
        }
        let mut txn = Txn::at(now);
        Office::write(&mut txn, Mutation::create(resource.clone()), caller, now)?;
        txn.create(Arc::new(claim));
        if let Some(cluster) = cluster {
            // A delete of the cluster must not go unseen. The other way round the sentinel helps: a
            // delete that was decided before this and is committed after it misses the pool.
            txn.check(&*cluster.value, cluster.revision);
        }
        if let Some(key) = &write.idempotency {
            let used = Arc::new(IdempotencyKey {
                id: key_id(caller, &key.key),
                digest: key.digest.clone(),
                made: Made::Resource(id),
                expires: now.saturating_add(self.office.settings.idempotency_kept).unwrap_or(now),
            });
            // Two requests with one key at the same moment must conflict, whatever they ask for.
            match view.idempotency_key(&used.id) {
                Some(expired) => txn.update(used, expired.revision),
                None => txn.create(used),
            }
        }
        Ok((Some(txn), (resource, None)))
    }

    /// The labels of something new: protected, where the deployment wants that and they do not say otherwise.
    fn labels(&self, labels: &Labels) -> Labels {
        match self.office.settings.protect_new && labels.get(PROTECTED).is_none() {
            true => labels.clone().with(PROTECTED, "true"),
            false => labels.clone(),
        }
    }

    /// What an earlier request with the same key created.
    fn earlier<'v>(
        &self,
        view: &'v View,
        now: Timestamp,
        caller: &Caller,
        write: &Write,
    ) -> Result<Option<&'v Stored<Resource>>, Error> {
        let Some(key) = &write.idempotency else { return Ok(None) };
        let known = view.idempotency_key(&key_id(caller, &key.key)).map(|known| &known.value);
        let Some(known) = known.filter(|known| now < known.expires) else { return Ok(None) };
        if known.digest != key.digest {
            return Err(Error::KeyReused);
        }
        // The digest covers the path, so the key of a command never gets here.
        let Made::Resource(made) = known.made else { return Err(Error::KeyReused) };
        if let Some(first) = view.resource(made) {
            return Ok(Some(first));
        }
        match view.tombstone(made) {
            Some(tombstone) => Err(Error::Deleted {
                reference: made.to_string(),
                tombstone: Box::new((*tombstone.value).clone()),
            }),
            None => Ok(None),
        }
    }

    /// One resource.
    ///
    /// # Errors
    /// It or its cluster does not exist (any more), or is another team's.
    pub fn get(&self, caller: &Caller, target: Target<'_>) -> Result<Stored<Resource>, Error> {
        self.office.store.read(|view| {
            self.find(view, caller, Verb::Read, target).map(|found| found.resource.clone())
        })
    }

    /// The cluster's existence is checked before anything else of a nested list is: the contract says
    /// that a missing parent beats a bad filter.
    ///
    /// # Errors
    /// It does not exist, or is another team's.
    pub fn check_cluster(&self, caller: &Caller, cluster: &str) -> Result<(), Error> {
        self.office.store.read(|view| self.cluster(view, caller, cluster).map(|_| ()))
    }

    /// A page of resources the caller may see.
    ///
    /// # Errors
    /// The cluster does not exist, or is another team's.
    pub fn list(&self, caller: &Caller, list: &List<'_>) -> Result<Page, Error> {
        allow_verb(caller, Verb::Read)?;
        self.office.store.read(|view| {
            let cluster = list.cluster.map(|c| self.cluster(view, caller, c)).transpose()?;
            let scope = Scope {
                kind: list.kind,
                cluster: cluster.map(|cluster| cluster.value.id),
                only: None,
                filter: list.filter.clone(),
                caller: caller.clone(),
                office: self.office.clone(),
            };
            let shown = scope.candidates(view).filter(|found| scope.shows(view, &found.value));
            let shown: Vec<_> = shown.collect();
            let total = shown.len();
            let items = page(shown, list).cloned().collect();
            Ok(Page { items, total, revision: view.revision() })
        })
    }

    /// Follows a list or one resource.
    ///
    /// # Errors
    /// What is to be watched does not exist, or is another team's.
    pub fn watch(&self, caller: &Caller, watch: WatchList<'_>) -> Result<Watch, Error> {
        allow_verb(caller, Verb::Read)?;
        let changes = self.office.store.subscribe();
        self.office.store.read(|view| {
            let cluster = watch.cluster.map(|c| self.cluster(view, caller, c)).transpose()?;
            let only = match watch.reference {
                Some(reference) => {
                    let target = Target { kind: watch.kind, cluster: watch.cluster, reference };
                    Some(self.find(view, caller, Verb::Read, target)?.resource.value.id)
                }
                None => None,
            };
            let scope = Scope {
                kind: watch.kind,
                cluster: cluster.map(|cluster| cluster.value.id),
                only,
                filter: watch.filter,
                caller: caller.clone(),
                office: self.office.clone(),
            };
            let store = self.office.store.clone();
            Ok(Watch::start(scope, store, view, watch.after, changes))
        })
    }

    /// Changes spec or labels.
    ///
    /// # Errors
    /// It is being deleted; it is not at the expected revision; what comes out is not possible.
    pub async fn patch(
        &self,
        caller: &Caller,
        target: Target<'_>,
        patch: &Patch,
        write: Write,
    ) -> Result<Stored<Resource>, Error> {
        allow_verb(caller, Verb::Write)?;
        allow_force(caller, &write)?;
        let decide = |view: &View, now: Timestamp| {
            let found = self.find(view, caller, Verb::Write, target)?;
            let before = found.resource;
            expect_revision(before, &write)?;
            let kind = target.kind;
            if before.value.deletion.is_some() {
                return Err(Error::Deleting { kind, reference: target.reference.to_owned() });
            }
            let adapters = self.office.adapters(kind);
            let stamp = Office::stamp(caller, now);
            let left = view.pool_book(before.value.id).and_then(|book| book.value.target);
            let kept = left.and_then(|left| keeping_size(&before.value.spec, patch, left));
            let patch = kept.as_ref().unwrap_or(patch);
            let patched = before.value.patched(patch, stamp, adapters).map_err(Error::Invalid)?;
            let Some(mut after) = patched else { return Ok((None, before.clone())) };
            keep_provider(&before.value, &after)?;
            if write.force {
                after.shrink_forced = true;
            } else {
                pool::allow_change(view, &self.office.settings.catalog, &before.value, &after)?;
            }
            let after = self.office.settled(Some(&before.value), after, now);
            let owner = found.cluster.map(|cluster| &*cluster.value);
            let provider = owner.and_then(|cluster| Catalog::provider_of(&cluster.spec));
            let checked = self.office.settings.catalog.check(kind, &after.spec, provider);
            checked.map_err(Error::Invalid)?;
            // What was stored before is not asked for again by who changes something else.
            if before.value.spec.get(AUTOSCALING) != after.spec.get(AUTOSCALING) {
                self.check_metrics(kind, &after.spec, &after.tenant)?;
            }
            if self.office.allow(caller, Verb::Write, &after, owner) != Decision::Allow {
                return Err(forbidden_team(&after));
            }
            let after = Arc::new(after);
            let answer = Stored { value: after.clone(), revision: before.revision };
            if write.dry_run {
                return Ok((None, answer));
            }
            let mut txn = Txn::at(now);
            let change = because(Mutation::update("patch", before, after), &write);
            Office::write(&mut txn, change, caller, now)?;
            Ok((Some(txn), answer))
        };
        self.written(decide).await
    }

    /// Marks it, and what it owns, for deletion. Again is the same as once, but that `Write::now` ends drains that
    /// have begun.
    ///
    /// # Errors
    /// It does not exist (any more), or is not at the expected revision; `Precondition` if it is protected and not
    /// forced; `Forbidden` and `Invalid` if it is forced, or without a drain, by somebody else than an admin or
    /// without a reason.
    pub async fn delete(
        &self,
        caller: &Caller,
        target: Target<'_>,
        write: Write,
    ) -> Result<Stored<Resource>, Error> {
        allow_verb(caller, Verb::Write)?;
        allow_force(caller, &write)?;
        let decide = |view: &View, now: Timestamp| {
            let before = self.find(view, caller, Verb::Write, target)?.resource;
            expect_revision(before, &write)?;
            if before.value.deletion.is_none() && !write.force {
                pool::allow_delete(view, &before.value)?;
            }
            let children = view.has_children(before.value.id);
            let stamp = Office::stamp(caller, now);
            let after = deleted(&self.office, &before.value, &stamp, children, write.now);
            let Some(after) = after.map(Arc::new) else { return Ok((None, before.clone())) };
            let answer = Stored { value: after.clone(), revision: before.revision };
            if write.dry_run {
                return Ok((None, answer));
            }
            let mut txn = Txn::at(now);
            delete_children(
                &mut txn,
                &self.office,
                view,
                (before.value.id, write.now),
                &stamp,
                caller,
            )?;
            let change = because(Mutation::update("delete", before, after), &write);
            Office::write(&mut txn, change, caller, now)?;
            Ok((Some(txn), answer))
        };
        self.written(decide).await
    }

    /// Removes the record of something that is being deleted, cleanup or not.
    ///
    /// # Errors
    /// It is not being deleted.
    pub async fn force_delete(
        &self,
        caller: &Caller,
        target: Target<'_>,
        reason: &str,
    ) -> Result<(), Error> {
        allow_verb(caller, Verb::Force)?;
        let decide = |view: &View, now: Timestamp| {
            let found = self.find(view, caller, Verb::Force, target)?.resource;
            if found.value.deletion.is_none() {
                let reference = target.reference.to_owned();
                return Err(Error::NotDeleting { kind: target.kind, reference });
            }
            let mut txn = Txn::at(now);
            let children = view.children(found.value.id);
            for gone in children.chain([found]) {
                bury(&mut txn, view, "force-delete", gone, Some(reason.to_owned()), caller, now)?;
            }
            Ok((Some(txn), ()))
        };
        self.office.decide(decide).await.map(|_| ())
    }

    /// What the adapters say.
    ///
    /// # Errors
    /// It or its cluster does not exist (any more), or is another team's.
    pub fn statuses(&self, caller: &Caller, target: Target<'_>) -> Result<Statuses, Error> {
        self.office.store.read(|view| {
            let resource = self.find(view, caller, Verb::Read, target)?.resource.clone();
            let of = &resource.value;
            let adapters = self.office.adapters(of.kind);
            let mut names: Vec<&AdapterName> = adapters.iter().map(|spec| &spec.name).collect();
            if of.deletion.is_some() {
                names.reverse();
            }
            let others = of.reports.keys().filter(|name| adapters.iter().all(|a| a.name != **name));
            names.extend(others);
            let children = view.has_children(of.id);
            let lines = names.into_iter().map(|name| StatusLine {
                adapter: name.clone(),
                line: status::adapter_line(of, name, adapters, children),
                report: of.reports.get(name).map(|report| Report::clone(report)),
            });
            Ok(Statuses { lines: lines.collect(), resource: resource.clone() })
        })
    }

    /// The cluster of a node pool, for its representation.
    pub fn owner_of(&self, resource: &Resource) -> Option<Stored<Resource>> {
        self.office.store.read(|view| view.resource(resource.owner?).cloned())
    }

    /// Carries out a decision whose answer is the resource it wrote.
    async fn written(
        &self,
        decide: impl FnMut(&View, Timestamp) -> Result<(Option<Txn>, Stored<Resource>), Error>,
    ) -> Result<Stored<Resource>, Error> {
        let mut decide = decide;
        let mut wrote = false;
        let decide = |view: &View, now: Timestamp| {
            let (txn, answer) = decide(view, now)?;
            wrote = txn.is_some();
            Ok((txn, answer))
        };
        let (revision, answer) = self.office.decide(decide).await?;
        let revision = if wrote { revision } else { answer.revision };
        Ok(Stored { value: answer.value, revision })
    }

    /// The cluster a path names.
    fn cluster<'v>(
        &self,
        view: &'v View,
        caller: &Caller,
        reference: &str,
    ) -> Result<&'v Stored<Resource>, Error> {
        let not_found = || Error::ClusterNotFound { reference: reference.to_owned() };
        let found = lookup(view, caller, Kind::Cluster, None, reference).ok_or_else(not_found)?;
        match self.office.allow(caller, Verb::Read, &found.value, None) {
            Decision::Allow => Ok(found),
            Decision::Forbid => Err(forbidden(Kind::Cluster)),
            Decision::Hide => Err(not_found()),
        }
    }

    /// The resource a path names, if the caller may do `verb` to it.
    pub(crate) fn find<'v>(
        &self,
        view: &'v View,
        caller: &Caller,
        verb: Verb,
        target: Target<'_>,
    ) -> Result<Found<'v>, Error> {
        allow_verb(caller, verb)?;
        let Target { kind, cluster, reference } = target;
        let parent = cluster.map(|cluster| self.cluster(view, caller, cluster)).transpose()?;
        let owner = parent.map(|parent| parent.value.id);
        let Some(resource) = lookup(view, caller, kind, owner, reference) else {
            return Err(self.missing(view, caller, target, owner));
        };
        let cluster = resource.value.owner.and_then(|owner| view.resource(owner));
        let cluster_value = cluster.map(|cluster| &*cluster.value);
        match self.office.allow(caller, verb, &resource.value, cluster_value) {
            Decision::Allow => Ok(Found { resource, cluster }),
            Decision::Forbid => Err(forbidden(kind)),
            Decision::Hide => Err(self.missing(view, caller, target, owner)),
        }
    }

    /// Why nothing was found: it never existed, or it does no longer.
    fn missing(
        &self,
        view: &View,
        caller: &Caller,
        target: Target<'_>,
        owner: Option<ResourceId>,
    ) -> Error {
        let Target { kind, cluster, reference } = target;
        let by_id = ResourceId::parse(reference).and_then(|id| view.tombstone(id));
        let by_name = || view.tombstone_named(&claim(caller, kind, owner, reference)?);
        let visible = |tombstone: &Tombstone| {
            tombstone.kind == kind
                && (owner.is_none() || tombstone.owner == owner)
                && self.office.shows(view, caller, tombstone.into())
        };
        match by_id.or_else(by_name).filter(|found| visible(&found.value)) {
            Some(tombstone) => Error::Deleted {
                reference: reference.to_owned(),
                tombstone: Box::new((*tombstone.value).clone()),
            },
            None => Error::NotFound {
                kind,
                reference: reference.to_owned(),
                cluster: cluster.map(str::to_owned),
            },
        }
    }
}

/// The page of what is shown that the list asks for. All of it is looked at, only the beginning is
/// put in order.
fn page<'v>(
    mut shown: Vec<&'v Stored<Resource>>,
    list: &List<'_>,
) -> impl Iterator<Item = &'v Stored<Resource>> {
    let compare =
        |a: &&Stored<Resource>, b: &&Stored<Resource>| list.order.compare(&a.value, &b.value);
    let skip = list.page.saturating_sub(1).saturating_mul(list.size);
    let end = skip.saturating_add(list.size);
    if end < shown.len() {
        shown.select_nth_unstable_by(end, compare);
        shown.truncate(end);
    }
    shown.sort_unstable_by(compare);
    shown.into_iter().skip(skip)
}

/// Finds by id or by name. A node pool without a cluster in the path is found by name only if just
/// one has it.
fn lookup<'v>(
    view: &'v View,
    caller: &Caller,
    kind: Kind,
    owner: Option<ResourceId>,
    reference: &str,
) -> Option<&'v Stored<Resource>> {
    let fits = |found: &&Stored<Resource>| {
        found.value.kind == kind
            && found.value.tenant == caller.tenant
            && (owner.is_none() || found.value.owner == owner)
    };
    // A name may look like an id; then the id goes first.
    let by_id = ResourceId::parse(reference).and_then(|id| view.resource(id)).filter(fits);
    if by_id.is_some() {
        return by_id;
    }
    if kind == Kind::NodePool && owner.is_none() {
        let mut named = view
            .resources(kind)
            .filter(|found| found.value.name.as_str() == reference && fits(found));
        let first = named.next();
        return first.filter(|_| named.next().is_none());
    }
    let holder = view.holder(&claim(caller, kind, owner, reference)?)?;
    view.resource(holder).filter(fits)
}

fn claim(caller: &Caller, kind: Kind, owner: Option<ResourceId>, name: &str) -> Option<NameClaim> {
    let name = Name::parse(name).ok()?;
    let holder = ResourceId::new(uuid::Uuid::nil());
    Some(NameClaim { tenant: caller.tenant.clone(), kind, owner, name, holder })
}

fn claim_of(resource: &Resource) -> NameClaim {
    NameClaim {
        tenant: resource.tenant.clone(),
        kind: resource.kind,
        owner: resource.owner,
        name: resource.name.clone(),
        holder: resource.id,
    }
}

/// A resource marked for deletion, and its machines for the end without a drain if that is wanted; `None` if all of
/// that is so already.
fn deleted(
    office: &Office,
    before: &Resource,
    stamp: &Stamp,
    children: bool,
    without_drain: bool,
) -> Option<Resource> {
    let marked = before.deleted(stamp.clone(), office.adapters(before.kind), children);
    let hurried = marked.as_ref().unwrap_or(before).deleted_now().filter(|_| without_drain);
    let after = hurried.or(marked)?;
    Some(office.settled(Some(before), after, stamp.at))
}

/// Marks for deletion what a resource owns, and for the end without a drain if that is wanted; says whether there was
/// anything to mark.
pub(crate) fn delete_children(
    txn: &mut Txn,
    office: &Office,
    view: &View,
    (owner, without_drain): (ResourceId, bool),
    stamp: &Stamp,
    caller: &Caller,
) -> Result<bool, Error> {
    let mut marked = false;
    for child in view.children(owner) {
        if let Some(gone) = deleted(office, &child.value, stamp, false, without_drain) {
            let change = Mutation::update("delete", child, Arc::new(gone));
            Office::write(txn, change, caller, stamp.at)?;
            marked = true;
        }
    }
    Ok(marked)
}

/// Removes a record for good: document and name go, with what was stopped there; a tombstone stays.
pub(crate) fn bury(
    txn: &mut Txn,
    view: &View,
    action: &'static str,
    gone: &Stored<Resource>,
    forced: Option<String>,
    caller: &Caller,
    now: Timestamp,
) -> Result<(), Error> {
    txn.discard(&claim_of(&gone.value));
    txn.overwrite(Arc::new(gone.value.tombstone(now, forced.clone())));
    forget_pool(txn, view, &gone.value, caller, now);
    Office::write(txn, Mutation::remove(action, gone, forced), caller, now)
}

/// Whether the caller may do what only administrators may, and says why.
fn allow_force(caller: &Caller, write: &Write) -> Result<(), Error> {
    let flag = match (write.now, write.force) {
        (true, _) => "now=true",
        (false, true) => "force=true",
        (false, false) => return Ok(()),
    };
    if may(caller, Verb::Force) != Decision::Allow {
        let without = match write.now {
            true => "without it, nodes are drained first, each until its deadline at the latest",
            false => "without it, take the label argosy.dev/protected off first",
        };
        return Err(Error::Forbidden(format!("{flag} needs the role admin; {without}")));
    }
    match write.reason.as_deref().map(str::trim) {
        None | Some("") => {
            let sentence =
                format!("{flag} needs a reason: add reason=TEXT; it is kept in the audit log");
            Err(Error::Invalid(vec![FieldError::new("reason", Constraint::Required, sentence)]))
        }
        Some(_) => Ok(()),
    }
}

/// A change with the reason that was given for it.
fn because<'a>(change: Mutation<'a>, write: &Write) -> Mutation<'a> {
    match write.reason.as_deref().map(str::trim).filter(|reason| !reason.is_empty()) {
        Some(reason) => change.because(reason),
        None => change,
    }
}

fn expect_revision(found: &Stored<Resource>, write: &Write) -> Result<(), Error> {
    match write.if_match {
        Some(expected) if expected != found.revision => {
            Err(Error::Changed { expected, current: found.revision })
        }
        Some(_) | None => Ok(()),
    }
}

/// What was made at one provider is cleaned up there: a resource cannot move to another.
fn keep_provider(before: &Resource, after: &Resource) -> Result<(), Error> {
    let (old, new) = (Catalog::provider_of(&before.spec), Catalog::provider_of(&after.spec));
    if old == new {
        return Ok(());
    }
    let old = old.unwrap_or("not set");
    let sentence =
        format!("spec.provider is {old} and cannot be changed; create a new cluster instead");
    let error = FieldError::new("spec.provider", Constraint::Enum, sentence);
    Err(Error::Invalid(vec![error]))
}

pub(crate) fn key_id(caller: &Caller, key: &str) -> String {
    // Any of the three may hold a slash; with the lengths no two callers share an id.
    let Caller { tenant, subject, .. } = caller;
    format!("{}/{}/{tenant}/{subject}/{key}", tenant.len(), subject.len())
}

pub(crate) fn forbidden(kind: Kind) -> Error {
    let what = kind.as_str().to_ascii_lowercase();
    Error::Forbidden(format!("User does not have permission to access this {what}"))
}

fn forbidden_team(resource: &Resource) -> Error {
    let team = resource.labels.get("team").unwrap_or_default();
    Error::Forbidden(format!(
        "User does not have permission to write a {} of team '{team}'; use the label of a team you \
         belong to",
        resource.kind.as_str().to_ascii_lowercase()
    ))
}
