//! Watches of clusters and node pools.

use super::{WasShown, Watched};
use crate::office::Office;
use crate::{Revision, Stored};
use argosy_core::access::Caller;
use argosy_core::id::ResourceId;
use argosy_core::resource::{Kind, Resource};
use argosy_core::search::Filter;
use argosy_store::view::{Event, ResourceChange, View};
use std::sync::Arc;

/// Which resources to watch.
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

/// Which resources a list or a watch shows.
pub struct Scope {
    pub(crate) kind: Kind,
    pub(crate) cluster: Option<ResourceId>,
    pub(crate) only: Option<ResourceId>,
    pub(crate) filter: Filter,
    pub(crate) caller: Caller,
    pub(crate) office: Arc<Office>,
}

impl Watched for Resource {
    type Id = ResourceId;
    type Scope = Scope;
    type Cursor = ();
    type Change = ResourceChange;

    fn changes(event: &Event) -> &[ResourceChange] {
        &event.resources
    }

    fn id(change: &ResourceChange) -> ResourceId {
        change.id
    }

    fn sides(change: &ResourceChange) -> (Option<&Stored<Resource>>, Option<&Stored<Resource>>) {
        (change.before.as_ref(), change.after.as_ref())
    }

    /// All at once: there are thousands at most, and an index may give them in no order.
    fn listed(scope: &Scope, view: &View, _: Option<&()>) -> (Vec<Stored<Resource>>, Option<()>) {
        let shown = scope.candidates(view).filter(|found| found.value.shows(scope, view));
        (shown.cloned().collect(), None)
    }

    fn shows(&self, scope: &Scope, view: &View) -> bool {
        scope.shows(view, self)
    }

    fn is_new(&self) -> bool {
        let Resource { generation, reports, dispatches, stalled, .. } = self;
        *generation == 1 && reports.is_empty() && dispatches.is_empty() && stalled.is_empty()
    }

    fn was_shown(scope: &Scope, view: &View, change: &ResourceChange) -> WasShown {
        if scope.could_show(view, change) {
            WasShown::Maybe
        } else if change.after.as_ref().is_some_and(|after| scope.may_have_left(&after.value)) {
            WasShown::Unknown
        } else {
            WasShown::No
        }
    }
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

    /// Whether this change may have moved a resource from a team of the caller to another. Saying
    /// "deleted" would tell of other teams' resources, silence would leave the caller with one that
    /// is not its own any more.
    fn may_have_left(&self, after: &Resource) -> bool {
        self.covers(after.kind, after.id, after.owner)
            && after.tenant == self.caller.tenant
            && 1 < after.generation
            && after.deletion.is_none()
            && after
                .labels
                .get("team")
                .is_some_and(|team| !self.caller.teams.iter().any(|mine| mine == team))
            && after.reports.values().all(|report| report.observed_generation < after.generation)
    }

    /// Whether a resource that is out of sight now may have been in sight before: of those that were
    /// asked for, and neither another tenant's nor another team's.
    fn could_show(&self, view: &View, change: &ResourceChange) -> bool {
        match (&change.after, &change.tombstone) {
            (Some(after), _) => {
                let after = &*after.value;
                self.covers(after.kind, after.id, after.owner)
                    && !after.is_new()
                    && self.office.shows(view, &self.caller, after.into())
            }
            (None, Some(gone)) => {
                self.covers(gone.kind, gone.id, gone.owner)
                    && self.office.shows(view, &self.caller, (&**gone).into())
            }
            (None, None) => false,
        }
    }
}
