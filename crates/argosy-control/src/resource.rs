//! Clusters and node pools: create, read, list, watch, patch, delete.

use crate::{Error, Revision, Stored};
use argosy_core::access::Caller;
use argosy_core::adapter::{AdapterName, Report};
use argosy_core::label::Labels;
use argosy_core::name::Name;
use argosy_core::resource::{Kind, Patch, Resource, Spec};
use argosy_core::search::{Filter, Order};
use argosy_core::status::AdapterLine;

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

/// What to watch.
#[derive(Clone, Debug)]
pub struct WatchList<'a> {
    /// What.
    pub kind: Kind,
    /// Only those of this cluster.
    pub cluster: Option<&'a str>,
    /// Only this one.
    pub reference: Option<&'a str>,
    /// Only those that match.
    pub filter: Filter,
    /// Go on after this revision; without it, begin with what is there.
    pub after: Option<Revision>,
}

/// One line of a watch.
#[derive(Clone, Debug)]
pub enum WatchEvent {
    /// It is new to this watch.
    Added(Stored<Resource>),
    /// It changed.
    Modified(Stored<Resource>),
    /// It is gone, or no longer matches; as it last was, if that is known.
    Deleted {
        /// Which.
        id: argosy_core::id::ResourceId,
        /// As it last was.
        last: Option<Stored<Resource>>,
        /// When.
        revision: Revision,
    },
    /// Nothing to show, but the watch has seen everything up to here.
    Bookmark(Revision),
}

/// The service.
#[derive(Clone)]
pub struct Resources {
    _later: (),
}

/// A running watch.
pub struct Watch {
    _later: (),
}

impl Watch {
    /// The next event; waits for it.
    ///
    /// # Errors
    /// `Gone`, if the watcher was too slow or asked for too old a revision.
    pub async fn next(&mut self) -> Result<WatchEvent, Error> {
        todo!()
    }
}

impl Resources {
    /// Creates a cluster or a node pool.
    pub async fn create(
        &self,
        caller: &Caller,
        creation: Creation<'_>,
        write: Write,
    ) -> Result<Created, Error> {
        let _ = (caller, creation, write);
        todo!()
    }

    /// One resource.
    pub fn get(&self, caller: &Caller, target: Target<'_>) -> Result<Stored<Resource>, Error> {
        let _ = (caller, target);
        todo!()
    }

    /// The cluster's existence is checked before anything else of a nested list is: the contract says
    /// that a missing parent beats a bad filter.
    pub fn check_cluster(&self, caller: &Caller, cluster: &str) -> Result<(), Error> {
        let _ = (caller, cluster);
        todo!()
    }

    /// A page of resources the caller may see.
    pub fn list(&self, caller: &Caller, list: &List<'_>) -> Result<Page, Error> {
        let _ = (caller, list);
        todo!()
    }

    /// Follows a list or one resource.
    pub fn watch(&self, caller: &Caller, watch: WatchList<'_>) -> Result<Watch, Error> {
        let _ = (caller, watch);
        todo!()
    }

    /// Changes spec or labels.
    pub async fn patch(
        &self,
        caller: &Caller,
        target: Target<'_>,
        patch: &Patch,
        write: Write,
    ) -> Result<Stored<Resource>, Error> {
        let _ = (caller, target, patch, write);
        todo!()
    }

    /// Marks it, and what it owns, for deletion. Again is the same as once.
    pub async fn delete(
        &self,
        caller: &Caller,
        target: Target<'_>,
        write: Write,
    ) -> Result<Stored<Resource>, Error> {
        let _ = (caller, target, write);
        todo!()
    }

    /// Removes the record of something that is being deleted, cleanup or not.
    pub async fn force_delete(
        &self,
        caller: &Caller,
        target: Target<'_>,
        reason: &str,
    ) -> Result<(), Error> {
        let _ = (caller, target, reason);
        todo!()
    }

    /// What the adapters say.
    pub fn statuses(&self, caller: &Caller, target: Target<'_>) -> Result<Statuses, Error> {
        let _ = (caller, target);
        todo!()
    }

    /// The cluster of a node pool, for its representation.
    pub fn owner_of(&self, resource: &Resource) -> Option<Stored<Resource>> {
        let _ = resource;
        todo!()
    }
}
