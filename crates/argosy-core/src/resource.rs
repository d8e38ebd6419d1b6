//! Clusters and node pools: one document each, with what was asked for and what was reported.
//!
//! What a newcomer gets wrong: the phase that people see is not here. It is derived from the
//! conditions by `status::phase`, every time.

use crate::adapter::{AdapterName, AdapterSpec, Report};
use crate::field::FieldError;
use crate::id::ResourceId;
use crate::label::Labels;
use crate::merge::merge;
use crate::name::Name;
use crate::protect::PROTECTED;
use crate::status::{Condition, aggregate, phase};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// What people declare: any JSON object, checked against the catalog where it names a provider.
pub type Spec = Map<String, Value>;

/// The kinds of resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Kind {
    /// A cluster.
    Cluster,
    /// A node pool, owned by a cluster.
    NodePool,
}

impl Kind {
    /// Every kind, owners before what they own.
    pub const ALL: [Kind; 2] = [Kind::Cluster, Kind::NodePool];

    /// The name as it stands in bodies: `Cluster`, `NodePool`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Kind::Cluster => "Cluster",
            Kind::NodePool => "NodePool",
        }
    }

    /// The name as it stands in paths: `clusters`, `nodepools`.
    pub const fn plural(self) -> &'static str {
        match self {
            Kind::Cluster => "clusters",
            Kind::NodePool => "nodepools",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How often the wish was changed: 1 at creation, one more at each effective change and at deletion.
pub type Generation = u32;

/// Who did something, and when, by our clock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    /// When.
    pub at: Timestamp,
    /// The caller's subject.
    pub by: String,
}

/// A cluster or a node pool as it is stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Resource {
    /// The id that is never reused.
    pub id: ResourceId,
    /// What it is.
    pub kind: Kind,
    /// Unique among living resources of its kind, tenant and owner.
    pub name: Name,
    /// Whose it is; a caller of another tenant cannot tell that it exists.
    pub tenant: String,
    /// The cluster, for a node pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<ResourceId>,
    /// What was asked for.
    pub spec: Spec,
    /// What people filter by; `team` also decides who may touch it.
    #[serde(default)]
    pub labels: Labels,
    /// Which version of the wish this is.
    pub generation: Generation,
    /// Who created it.
    pub created: Stamp,
    /// Who last changed the wish. Reports do not move it.
    pub updated: Stamp,
    /// Set once by DELETE; the resource stays until its adapters have cleaned up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletion: Option<Stamp>,
    /// Whether its machines are terminated without a drain: an administrator asked for that.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub without_drain: bool,
    /// Whether an administrator lets it shrink to its `nodeCount` although it, or what it belongs to, is protected.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shrink_forced: bool,
    /// When the first report of a required adapter was accepted: until then the phase is Pending.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<Timestamp>,
    /// When the derived phase last changed.
    pub phase_since: Timestamp,
    /// What `status::aggregate` made of the reports, in emission order.
    #[serde(default)]
    pub conditions: Vec<Condition>,
    /// The latest accepted report of each adapter, required or not. Shared by the versions of a
    /// resource, of which thousands are in memory: most of a version is its reports, and all but
    /// one of them are those of the version before.
    #[serde(default)]
    pub reports: BTreeMap<AdapterName, Arc<Report>>,
    /// What the sentinel knows about each adapter's turn, kept so that a restart goes on.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub dispatches: BTreeMap<AdapterName, Dispatch>,
    /// Adapters that let their deadline pass at the current generation, and since when.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub stalled: BTreeMap<AdapterName, Timestamp>,
}

/// A resource somebody asks for; its parts were parsed at the door.
#[derive(Clone, Debug, PartialEq)]
pub struct NewResource {
    /// What it is to be.
    pub kind: Kind,
    /// What it is to be called.
    pub name: Name,
    /// Its cluster, for a node pool.
    pub owner: Option<ResourceId>,
    /// What is asked for.
    pub spec: Spec,
    /// Its labels.
    pub labels: Labels,
}

/// How a PATCH treats what it does not mention.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// RFC 7396: members that are not mentioned stay, `null` removes.
    Merge,
    /// A member that is mentioned replaces the whole section.
    Replace,
}

/// What a PATCH asks for; at least one part is present.
#[derive(Clone, Debug, PartialEq)]
pub struct Patch {
    /// Changes of the spec.
    pub spec: Option<Spec>,
    /// Changes of the labels; `null` removes one.
    pub labels: Option<Map<String, Value>>,
    /// Merge or replace.
    pub strategy: Strategy,
}

impl Resource {
    /// A new resource at generation 1, its conditions included.
    pub fn create(
        new: NewResource,
        id: ResourceId,
        tenant: String,
        created: Stamp,
        adapters: &[AdapterSpec],
    ) -> Resource {
        let resource = Resource {
            id,
            kind: new.kind,
            name: new.name,
            tenant,
            owner: new.owner,
            spec: new.spec,
            labels: new.labels,
            generation: 1,
            phase_since: created.at,
            updated: created.clone(),
            created,
            deletion: None,
            without_drain: false,
            shrink_forced: false,
            started: None,
            conditions: Vec::new(),
            reports: BTreeMap::new(),
            dispatches: BTreeMap::new(),
            stalled: BTreeMap::new(),
        };
        let conditions = aggregate(&resource, adapters, false);
        Resource { conditions, ..resource }
    }

    /// The resource with the patch applied, or `None` if it changes nothing.
    ///
    /// The generation grows by one on any effective change of spec or labels.
    ///
    /// # Errors
    /// Names each label the patch would make invalid. The spec is checked by `catalog`, not here.
    pub fn patched(
        &self,
        patch: &Patch,
        updated: Stamp,
        adapters: &[AdapterSpec],
    ) -> Result<Option<Resource>, Vec<FieldError>> {
        let mut spec = self.spec.clone();
        match (&patch.spec, patch.strategy) {
            (Some(wanted), Strategy::Merge) => merge(&mut spec, wanted),
            (Some(wanted), Strategy::Replace) => spec = wanted.clone(),
            (None, Strategy::Merge | Strategy::Replace) => {}
        }
        let labels = match &patch.labels {
            Some(wanted) => {
                let mut labels = match patch.strategy {
                    Strategy::Merge => self
                        .labels
                        .iter()
                        .map(|(key, value)| (key.to_owned(), value.into()))
                        .collect(),
                    // It goes when somebody says so, and not for being left out of a file.
                    Strategy::Replace => {
                        let kept = self.labels.iter().filter(|(key, _)| *key == PROTECTED);
                        kept.map(|(key, value)| (key.to_owned(), value.into())).collect()
                    }
                };
                merge(&mut labels, wanted);
                Labels::parse(&labels)?
            }
            None => self.labels.clone(),
        };
        if spec == self.spec && labels == self.labels {
            return Ok(None);
        }
        let now = updated.at;
        // What was forced was one size, and not the next one.
        let shrink_forced =
            self.shrink_forced && spec.get("nodeCount") == self.spec.get("nodeCount");
        let patched = Resource { spec, labels, updated, shrink_forced, ..self.next_generation() };
        Ok(Some(self.settled(patched, adapters, false, now)))
    }

    /// The resource marked for deletion, or `None` if it is already.
    pub fn deleted(
        &self,
        deletion: Stamp,
        adapters: &[AdapterSpec],
        children: bool,
    ) -> Option<Resource> {
        if self.deletion.is_some() {
            return None;
        }
        let now = deletion.at;
        let updated = Stamp { at: now, by: self.updated.by.clone() };
        let deleted = Resource { deletion: Some(deletion), updated, ..self.next_generation() };
        Some(self.settled(deleted, adapters, children, now))
    }

    /// The resource that is being deleted, its machines terminated without a drain; `None` if that is so, or it is
    /// not being deleted.
    pub fn deleted_now(&self) -> Option<Resource> {
        let news = self.deletion.is_some() && !self.without_drain;
        news.then(|| Resource { without_drain: true, ..self.clone() })
    }

    /// The resource with an accepted report, its conditions made anew.
    pub fn reported(
        &self,
        adapter: &AdapterName,
        report: Report,
        adapters: &[AdapterSpec],
        children: bool,
        now: Timestamp,
    ) -> Resource {
        let mut resource = self.clone();
        if report.observed_generation == self.generation {
            resource.stalled.remove(adapter);
        }
        if adapters.iter().any(|spec| spec.required && spec.name == *adapter) {
            resource.started.get_or_insert(now);
        }
        resource.reports.insert(adapter.clone(), Arc::new(report));
        self.settled(resource, adapters, children, now)
    }

    /// The resource with its conditions made anew from what it holds, or `None` if they are as they
    /// should be: for when a child went, a deadline passed, or the configured adapters changed.
    pub fn refreshed(
        &self,
        adapters: &[AdapterSpec],
        children: bool,
        now: Timestamp,
    ) -> Option<Resource> {
        let refreshed = self.settled(self.clone(), adapters, children, now);
        (refreshed != *self).then_some(refreshed)
    }

    /// What is left when the record goes. The deletion time is `now` if nobody asked for one.
    pub fn tombstone(&self, now: Timestamp, forced: Option<String>) -> Tombstone {
        let nobody = || Stamp { at: now, by: "system".to_owned() };
        Tombstone {
            id: self.id,
            kind: self.kind,
            name: self.name.clone(),
            tenant: self.tenant.clone(),
            owner: self.owner,
            team: self.labels.get("team").map(str::to_owned),
            deletion: self.deletion.clone().unwrap_or_else(nobody),
            removed_at: now,
            forced,
        }
    }

    /// A wish that nobody has worked on yet.
    fn next_generation(&self) -> Resource {
        Resource {
            generation: self.generation.saturating_add(1),
            dispatches: BTreeMap::new(),
            stalled: BTreeMap::new(),
            ..self.clone()
        }
    }

    /// What was made of this resource, with its conditions and the time of its phase as they must be.
    fn settled(
        &self,
        changed: Resource,
        adapters: &[AdapterSpec],
        children: bool,
        now: Timestamp,
    ) -> Resource {
        let conditions = aggregate(&changed, adapters, children);
        let settled = Resource { conditions, ..changed };
        let phase_since = if phase(&settled) == phase(self) { self.phase_since } else { now };
        Resource { phase_since, ..settled }
    }
}

/// How the events for one adapter fared at one generation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dispatch {
    /// The generation this is about; a newer one starts afresh.
    pub generation: Generation,
    /// How many events were delivered; part of the next event's id, so a redelivery after a crash
    /// carries the same id.
    pub delivered: u32,
    /// Set when the adapter refused the event for good: the cause, shown as `EventRejected`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rejected: Option<String>,
}

/// What remains of a resource after its last adapter has cleaned up, so that a late GET can say so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tombstone {
    /// The resource's id.
    pub id: ResourceId,
    /// What it was.
    pub kind: Kind,
    /// What it was called.
    pub name: Name,
    /// Whose it was.
    pub tenant: String,
    /// Its cluster, for a node pool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<ResourceId>,
    /// Its `team` label: a tombstone is as private as the resource was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub team: Option<String>,
    /// Who asked for the deletion, and when.
    pub deletion: Stamp,
    /// When the record was removed.
    pub removed_at: Timestamp,
    /// The operator's reason, if cleanup was skipped by force-delete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forced: Option<String>,
}

#[cfg(test)]
mod tests;
