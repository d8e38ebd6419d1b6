//! Following a list or one resource: every later change, or a clear "list again".

use crate::office::Office;
use crate::{Error, Revision, Stored};
use argosy_core::access::Caller;
use argosy_core::id::ResourceId;
use argosy_core::resource::{Kind, Resource};
use argosy_core::search::Filter;
use argosy_store::view::{Event, ResourceChange, View};
use std::collections::VecDeque;
use std::sync::Arc;

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
        id: ResourceId,
        /// As it last was.
        last: Option<Stored<Resource>>,
        /// When.
        revision: Revision,
    },
    /// Nothing to show, but the watch has seen everything up to here.
    Bookmark(Revision),
}

/// How many commits may pass unseen before a watch says how far it is, so that a client that comes
/// back does not ask for what is no longer retained.
const BOOKMARK_EVERY: u64 = 1000;

/// A running watch.
pub struct Watch {
    scope: Scope,
    seen: Revision,
    told: Revision,
    queue: VecDeque<WatchEvent>,
    changes: tokio::sync::watch::Receiver<Revision>,
}

impl Watch {
    pub(crate) fn start(
        scope: Scope,
        view: &View,
        after: Option<Revision>,
        changes: tokio::sync::watch::Receiver<Revision>,
    ) -> Self {
        let mut queue = VecDeque::new();
        let seen = after.unwrap_or_else(|| {
            let shown = scope.candidates(view).filter(|found| scope.shows(view, &found.value));
            queue.extend(shown.cloned().map(WatchEvent::Added));
            queue.push_back(WatchEvent::Bookmark(view.revision()));
            view.revision()
        });
        Self { scope, seen, told: seen, queue, changes }
    }

    /// The next event; waits for it. May be dropped and called again.
    ///
    /// # Errors
    /// `Gone`, if the watcher was too slow or asked for too old a revision.
    pub async fn next(&mut self) -> Result<WatchEvent, Error> {
        loop {
            if let Some(event) = self.queue.pop_front() {
                return Ok(event);
            }
            let caught_up = self.catch_up().await?;
            if BOOKMARK_EVERY <= self.seen.0 - self.told.0 && self.queue.is_empty() {
                self.told = self.seen;
                return Ok(WatchEvent::Bookmark(self.seen));
            }
            if caught_up {
                let seen = self.seen;
                let moved = self.changes.wait_for(|revision| seen < *revision).await;
                if moved.is_err() {
                    let stopped = "the store has stopped".to_owned();
                    return Err(argosy_store::Error::Unavailable(stopped).into());
                }
            }
        }
    }

    /// Finds out whether the watch can go on where it was asked to; waits for no change.
    ///
    /// # Errors
    /// `Gone`, if it cannot.
    pub async fn check(&mut self) -> Result<(), Error> {
        self.catch_up().await.map(drop)
    }

    /// Takes in what has happened since; true if that was nothing.
    async fn catch_up(&mut self) -> Result<bool, Error> {
        let store = self.scope.office.store.clone();
        let events = match store.events(self.seen).await? {
            Ok(events) => events,
            Err(oldest) => return Err(Error::Gone { asked: self.seen, oldest }),
        };
        for event in &events {
            let asked = self.seen;
            if !store.read(|view| self.take_in(view, event)) {
                return Err(Error::Gone { asked, oldest: event.revision });
            }
        }
        Ok(events.is_empty())
    }

    /// Queues what an event means to this watcher; false if that cannot be told.
    fn take_in(&mut self, view: &View, event: &Event) -> bool {
        self.seen = event.revision;
        for change in &event.resources {
            let shown = |side: &Option<Stored<Resource>>| {
                side.as_ref().is_some_and(|side| self.scope.shows(view, &side.value))
            };
            let was_shown = shown(&change.before);
            let next = match &change.after {
                Some(after) if shown(&change.after) => {
                    if was_shown || (change.before.is_none() && !is_new(&after.value)) {
                        WatchEvent::Modified(after.clone())
                    } else {
                        WatchEvent::Added(after.clone())
                    }
                }
                // What it was is not known for events read back from the engine: then the watcher
                // is told of the end of something it may never have seen.
                _ if was_shown || (change.before.is_none() && self.could_show(view, change)) => {
                    WatchEvent::Deleted {
                        id: change.id,
                        last: change.before.clone(),
                        revision: event.revision,
                    }
                }
                Some(after) if change.before.is_none() && self.may_have_left(&after.value) => {
                    return false;
                }
                _ => continue,
            };
            self.told = event.revision;
            self.queue.push_back(next);
        }
        true
    }

    /// Whether this change may have moved a resource from a team of the caller to another. Saying
    /// "deleted" would tell of other teams' resources, silence would leave the caller with one that
    /// is not its own any more.
    fn may_have_left(&self, after: &Resource) -> bool {
        self.scope.covers(after.kind, after.id, after.owner)
            && after.tenant == self.scope.caller.tenant
            && 1 < after.generation
            && after.deletion.is_none()
            && after
                .labels
                .get("team")
                .is_some_and(|team| !self.scope.caller.teams.iter().any(|mine| mine == team))
            && after.reports.values().all(|report| report.observed_generation < after.generation)
    }

    /// Whether a resource that is out of sight now may have been in sight before: of those that were
    /// asked for, and neither another tenant's nor another team's.
    fn could_show(&self, view: &View, change: &ResourceChange) -> bool {
        let Scope { caller, office, .. } = &self.scope;
        match (&change.after, &change.tombstone) {
            (Some(after), _) => {
                let after = &*after.value;
                self.scope.covers(after.kind, after.id, after.owner)
                    && !is_new(after)
                    && office.shows(view, caller, after.into())
            }
            (None, Some(gone)) => {
                self.scope.covers(gone.kind, gone.id, gone.owner)
                    && office.shows(view, caller, (&**gone).into())
            }
            (None, None) => false,
        }
    }
}

/// As it was created: nothing has happened to it since.
fn is_new(resource: &Resource) -> bool {
    let Resource { generation, reports, dispatches, stalled, .. } = resource;
    *generation == 1 && reports.is_empty() && dispatches.is_empty() && stalled.is_empty()
}

/// Which resources a list or a watch shows.
pub(crate) struct Scope {
    pub(crate) kind: Kind,
    pub(crate) cluster: Option<ResourceId>,
    pub(crate) only: Option<ResourceId>,
    pub(crate) filter: Filter,
    pub(crate) caller: Caller,
    pub(crate) office: Arc<Office>,
}

impl Scope {
    /// At least everything the scope shows, by the narrowest index there is.
    pub(crate) fn candidates<'v>(
        &self,
        view: &'v View,
    ) -> Box<dyn Iterator<Item = &'v Stored<Resource>> + 'v> {
        let labels = self.filter.required_labels();
        let rarest = labels.min_by_key(|(key, value)| view.count_labelled(key, value));
        match (self.only, self.cluster, rarest) {
            (Some(only), _, _) => Box::new(view.resource(only).into_iter()),
            (None, Some(cluster), _) => Box::new(view.children(cluster)),
            (None, None, Some((key, value))) => Box::new(view.labelled(key, value)),
            (None, None, None) => Box::new(view.resources(self.kind)),
        }
    }

    pub(crate) fn shows(&self, view: &View, resource: &Resource) -> bool {
        self.covers(resource.kind, resource.id, resource.owner)
            && self.office.shows(view, &self.caller, resource.into())
            && self.filter.matches(resource)
    }

    /// Whether it is one of those that were asked for, if they match and the caller may see them.
    fn covers(&self, kind: Kind, id: ResourceId, owner: Option<ResourceId>) -> bool {
        kind == self.kind
            && self.only.is_none_or(|only| id == only)
            && (self.cluster.is_none() || owner == self.cluster)
    }
}
