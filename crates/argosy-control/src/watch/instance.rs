//! Watches of instances: each purchase, each state, each failure, as it happens.

use super::{LISTED_MAX, WasShown, Watch, Watched};
use crate::instance::Instances;
use crate::office::{Office, allow_verb};
use crate::{Error, Revision, Stored};
use argosy_core::access::{Caller, Verb};
use argosy_core::instance::{Instance, InstanceId, State};
use argosy_core::search::Filter;
use argosy_store::view::{DocumentChange, Event, View};
use std::sync::Arc;

/// Which instances to watch.
#[derive(Clone, Debug)]
pub struct WatchInstances<'a> {
    /// Only this one, by its id or by what its provider calls the machine.
    pub instance: Option<&'a str>,
    /// Only those that match.
    pub filter: Filter<Instance>,
    /// Go on after this revision; without it, begin with what is there.
    pub after: Option<Revision>,
}

/// Which instances a watch shows.
pub struct InstanceScope {
    only: Option<InstanceId>,
    filter: Filter<Instance>,
    caller: Caller,
    office: Arc<Office>,
}

impl Instances {
    /// Follows instances, or one of them.
    ///
    /// # Errors
    /// `InstanceNotFound`; `Forbidden`.
    pub fn watch(
        &self,
        caller: &Caller,
        watch: WatchInstances<'_>,
    ) -> Result<Watch<Instance>, Error> {
        allow_verb(caller, Verb::Read)?;
        let (office, store) = (self.office.clone(), self.office.store.clone());
        let changes = store.subscribe();
        store.read(|view| {
            let only = watch.instance.map(|id| self.find(view, caller, id)).transpose()?;
            let only = only.map(|found| found.value.id.clone());
            let (filter, caller) = (watch.filter, caller.clone());
            let scope = InstanceScope { only, filter, caller, office: office.clone() };
            Ok(Watch::start(scope, store.clone(), view, watch.after, changes))
        })
    }
}

impl Watched for Instance {
    type Id = String;
    type Scope = InstanceScope;
    type Cursor = InstanceId;
    type Change = DocumentChange<Instance>;

    fn changes(event: &Event) -> &[DocumentChange<Instance>] {
        &event.instances
    }

    fn id(change: &DocumentChange<Instance>) -> String {
        change.id.clone()
    }

    fn sides(
        change: &DocumentChange<Instance>,
    ) -> (Option<&Stored<Instance>>, Option<&Stored<Instance>>) {
        (change.before.as_ref(), change.after.as_ref())
    }

    fn listed(
        scope: &InstanceScope,
        view: &View,
        after: Option<&InstanceId>,
    ) -> (Vec<Stored<Instance>>, Option<InstanceId>) {
        let shown = |found: &&Stored<Instance>| found.value.shows(scope, view);
        if let Some(only) = &scope.only {
            let found = view.instance(only.as_str()).filter(shown);
            return (found.cloned().into_iter().collect(), None);
        }
        let after = after.map(InstanceId::as_str);
        let some: Vec<_> = view.instances_after(after).take(LISTED_MAX).collect();
        let next = some.last().filter(|_| some.len() == LISTED_MAX);
        let next = next.map(|last| last.value.id.clone());
        (some.into_iter().filter(shown).cloned().collect(), next)
    }

    fn shows(&self, scope: &InstanceScope, view: &View) -> bool {
        scope.only.as_ref().is_none_or(|only| *only == self.id)
            && scope.office.shows_instance(view, &scope.caller, self)
            && scope.filter.matches(self)
    }

    fn is_new(&self) -> bool {
        match &self.state {
            State::Provisioning(buying) => {
                buying.calls <= 1 && buying.trouble.is_none() && buying.absent_since.is_none()
            }
            State::AwaitingNode { .. }
            | State::Running { .. }
            | State::Terminating(_)
            | State::Terminated { .. }
            | State::Failed { .. } => false,
        }
    }

    fn was_shown(
        scope: &InstanceScope,
        view: &View,
        change: &DocumentChange<Instance>,
    ) -> WasShown {
        let InstanceScope { only, caller, office, .. } = scope;
        if only.as_ref().is_some_and(|only| only.as_str() != change.id) {
            return WasShown::No;
        }
        match &change.after {
            Some(after) if after.value.is_new() => WasShown::No,
            Some(after) if office.shows_instance(view, caller, &after.value) => WasShown::Maybe,
            Some(_) => WasShown::No,
            // It is the caller's own: it was found when the watch began.
            None if only.is_some() => WasShown::Maybe,
            None => WasShown::Unknown,
        }
    }
}
