//! One run of one adapter for one resource: a built-in one does its work here, an outside one is told.

use crate::adapter::{Adapters, DeadLetter, Reporting};
use crate::loops::{Amendment, amend};
use crate::notify::{CloudEvent, EventData, Notifier, OwnerData, SendError};
use crate::office::{DEAD_LETTERS, Office};
use crate::provider::{Ask, Cause, Done, Part, Provider, Refusal};
use crate::{Error, Stored};
use argosy_core::adapter::{AdapterName, DraftCondition, ReportDraft, Tri};
use argosy_core::catalog::Catalog;
use argosy_core::id::ResourceId;
use argosy_core::resource::{Dispatch, Generation, Kind, Resource};
use argosy_store::Txn;
use argosy_store::engine::Fence;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tracing::{info, warn};
use uuid::Uuid;

/// After so many failed deliveries an event is given up: what refuses it five times, seconds apart,
/// wants a person, and the resync of the next generation starts afresh.
pub(crate) const DELIVERIES_MAX: u32 = 5;

/// How long a delivery may take. Adapters acknowledge and then work, so a minute is long; a receiver
/// that never answers must not hold its place for ever.
const SEND_MAX: Duration = Duration::from_secs(60);

/// Where API paths begin.
const BASE: &str = "/api/hyperfleet/v1";

/// What runs need.
#[derive(Clone)]
pub(crate) struct Hands {
    pub(crate) adapters: Adapters,
    /// By the name in `spec.provider`.
    pub(crate) clouds: Arc<BTreeMap<String, Arc<dyn Provider>>>,
    pub(crate) notifier: Arc<dyn Notifier>,
    pub(crate) fence: Fence,
}

/// Which run.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    pub(crate) id: ResourceId,
    pub(crate) adapter: AdapterName,
    pub(crate) generation: Generation,
    /// How long it may take. A run that hangs would hold its place for ever.
    pub(crate) deadline: SignedDuration,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    Well,
    Failed,
    /// The resource is gone or has moved on; nothing was done.
    Moot,
    /// Another process leads.
    Fenced,
}

impl Hands {
    fn office(&self) -> &Office {
        &self.adapters.resources.office
    }

    /// The resource and its cluster, if the run still makes sense.
    fn ask(&self, job: &Job) -> Option<(Stored<Resource>, Ask)> {
        self.office().store.read(|view| {
            let resource = view.resource(job.id)?.clone();
            let current = resource.value.generation == job.generation;
            let cluster = match resource.value.owner {
                Some(owner) => view.resource(owner)?.value.clone(),
                None => resource.value.clone(),
            };
            let ask = Ask { resource: resource.value.clone(), cluster };
            current.then_some((resource, ask))
        })
    }

    /// Runs a built-in adapter: says that it works, works, says what came of it.
    pub(crate) async fn built_in(&self, job: &Job) -> Ended {
        let Some((_, ask)) = self.ask(job) else { return Ended::Moot };
        let stats = &self.office().stats;
        stats.adapter_runs.add_one();
        let work = Work::of(&ask, &job.adapter);
        let began = self.office().clock.now();
        if !work.reported_before() {
            let progress = work.progress();
            match self.report(job, &work, progress, began).await {
                Ok(()) => {}
                Err(ended) => return ended,
            }
        }
        let limit = Duration::try_from(job.deadline).unwrap_or(Duration::ZERO);
        let outcome = tokio::time::timeout(limit, self.work(&work)).await;
        let outcome = outcome.unwrap_or_else(|_| Err(too_slow(job.deadline)));
        let failed = match &outcome {
            Ok(_) => false,
            Err(refusal) => {
                stats.adapter_failures.add_one();
                let Cause { reason, message } = &refusal.cause;
                warn!(resource = %job.id, adapter = %job.adapter, reason, message, "adapter failed");
                true
            }
        };
        match self.report(job, &work, work.outcome(outcome), began).await {
            Ok(()) if failed => Ended::Failed,
            Ok(()) => Ended::Well,
            Err(ended) => ended,
        }
    }

    async fn work(&self, work: &Work<'_>) -> Result<Done, Refusal> {
        let provider = Catalog::provider_of(&work.ask.cluster.spec);
        let cloud = match provider {
            Some(name) => self.clouds.get(name),
            // A spec without a provider is for the only, or the first, one there is.
            None => self.clouds.values().next(),
        };
        let Some(cloud) = cloud else {
            let applied = work.applied_before();
            if work.deleting() && !applied {
                return Ok(done("NothingToRemove", "Nothing was provisioned".to_owned()));
            }
            // What a cloud that is not configured (any more) still holds cannot be confirmed gone.
            return Err(no_cloud(provider, applied));
        };
        match (work.part, work.deleting()) {
            (None, true) => {
                Ok(done("NothingToRemove", "Validation left nothing to clean up".into()))
            }
            (None, false) => cloud.preflight(work.ask).await,
            (Some(part), true) => cloud.remove(part, work.ask).await,
            (Some(part), false) => cloud.ensure(part, work.ask).await,
        }
    }

    async fn report(
        &self,
        job: &Job,
        work: &Work<'_>,
        said: Said,
        began: Timestamp,
    ) -> Result<(), Ended> {
        let draft = work.draft(said, self.office().clock.now().duration_since(began));
        match self.adapters.report_own(job.id, &draft, &self.fence).await {
            Ok(Some(Reporting::Stored { .. })) => Ok(()),
            Ok(Some(Reporting::Discarded(_)) | None) => Err(Ended::Moot),
            Err(Error::Store(argosy_store::Error::Fenced)) => Err(Ended::Fenced),
            Err(error) => {
                warn!(%error, resource = %job.id, adapter = %job.adapter, "could not save a report");
                Err(Ended::Failed)
            }
        }
    }

    /// Says that a run ended in a panic, so that people see it.
    pub(crate) async fn report_panic(&self, job: &Job, panics: u32, set_aside: bool) {
        let Some((_, ask)) = self.ask(job) else { return };
        let work = Work::of(&ask, &job.adapter);
        let next = if set_aside {
            "it is set aside until the resource changes; see the server's log"
        } else {
            "it will be tried again; see the server's log"
        };
        let message = format!("The adapter crashed {panics} time(s) on this resource; {next}");
        let cause = Cause { reason: "AdapterPanicked".to_owned(), message };
        let said =
            work.outcome(Err(Refusal { cause, applied: false, healthy: false, data: Map::new() }));
        // Already logged as a panic; whether it is also stored changes nothing.
        let _ = self.report(job, &work, said, self.office().clock.now()).await;
    }

    /// Tells an outside adapter to look.
    pub(crate) async fn webhook(&self, job: &Job, url: &str, failures: u32) -> Ended {
        let Some((resource, ask)) = self.ask(job) else { return Ended::Moot };
        let stats = &self.office().stats;
        let delivered = delivered(&resource.value, &job.adapter);
        let event = self.event(&ask, job, delivered);
        let sent = self.notifier.send(job.adapter.as_str(), url, &event);
        let sent = tokio::time::timeout(SEND_MAX, sent).await;
        match sent.unwrap_or_else(|_| Err(SendError::Later("no answer in time".to_owned()))) {
            Ok(()) => {
                stats.events_sent.add_one();
                info!(resource = %job.id, adapter = %job.adapter, event = event.id, "event sent");
                let dispatch = |dispatch: &mut Dispatch| dispatch.delivered = delivered + 1;
                self.note(job, "dispatch", dispatch, None).await
            }
            Err(error) => {
                stats.events_failed.add_one();
                warn!(resource = %job.id, adapter = %job.adapter, %error, "event not delivered");
                let for_good = matches!(error, SendError::Refused(_));
                if !for_good && failures + 1 < DELIVERIES_MAX {
                    return Ended::Failed;
                }
                stats.events_rejected.add_one();
                let cause = error.to_string();
                let dispatch = |dispatch: &mut Dispatch| dispatch.rejected = Some(cause.clone());
                self.note(job, "reject-event", dispatch, Some((&event, &cause))).await
            }
        }
    }

    fn event(&self, ask: &Ask, job: &Job, delivered: u32) -> CloudEvent {
        let Resource { id, kind, generation, .. } = *ask.resource;
        let cluster = format!("{BASE}/clusters/{}", ask.cluster.id);
        let owner = OwnerData {
            id: ask.cluster.id.to_string(),
            kind: Kind::Cluster.as_str().to_owned(),
            href: cluster.clone(),
        };
        let (href, owner_references) = match kind {
            Kind::Cluster => (cluster, None),
            Kind::NodePool => (format!("{cluster}/nodepools/{id}"), Some(owner)),
        };
        let name = format!("{}/{generation}/{delivered}", job.adapter);
        CloudEvent {
            specversion: "1.0".to_owned(),
            id: Uuid::new_v5(&id.uuid(), name.as_bytes()).to_string(),
            source: "argosy".to_owned(),
            kind: format!("com.redhat.hyperfleet.{}.reconcile", kind.as_str().to_lowercase()),
            subject: href.clone(),
            time: self.office().clock.now(),
            datacontenttype: "application/json".to_owned(),
            data: EventData {
                id: id.to_string(),
                kind: kind.as_str().to_owned(),
                href,
                generation,
                owner_references,
            },
        }
    }

    /// Writes down how a delivery went.
    async fn note(
        &self,
        job: &Job,
        action: &'static str,
        change: impl Fn(&mut Dispatch),
        dead: Option<(&CloudEvent, &str)>,
    ) -> Ended {
        let amendment = Amendment { id: job.id, action, generation: Some(job.generation) };
        let note = |after: &mut Resource, txn: &mut Txn, _: Timestamp| {
            let dispatch = after.dispatches.entry(job.adapter.clone()).or_default();
            if dispatch.generation != job.generation {
                *dispatch = Dispatch { generation: job.generation, ..Dispatch::default() };
            }
            change(dispatch);
            if let Some((event, cause)) = dead {
                let letter = DeadLetter {
                    adapter: job.adapter.clone(),
                    tenant: after.tenant.clone(),
                    cause: cause.to_owned(),
                    event: event.clone(),
                };
                txn.append(DEAD_LETTERS, &job.id.to_string(), &letter);
            }
        };
        match amend(self.office(), &self.fence, amendment, note).await {
            Ok(()) => Ended::Well,
            Err(Error::Store(argosy_store::Error::Fenced)) => Ended::Fenced,
            Err(error) => {
                warn!(%error, resource = %job.id, "could not save how a delivery went");
                Ended::Failed
            }
        }
    }
}

fn delivered(of: &Resource, adapter: &AdapterName) -> u32 {
    let dispatch = of.dispatches.get(adapter).filter(|past| past.generation == of.generation);
    dispatch.map_or(0, |past| past.delivered)
}

fn done(reason: &str, message: String) -> Done {
    Done { reason: reason.to_owned(), message, data: Map::new(), unhealthy: None }
}

fn too_slow(deadline: SignedDuration) -> Refusal {
    let message = format!(
        "The provider did not finish within {deadline:#}. The work was cut off and will be tried \
         again."
    );
    let cause = Cause { reason: "DeadlineExceeded".to_owned(), message };
    Refusal { cause, applied: true, healthy: false, data: Map::new() }
}

fn no_cloud(provider: Option<&str>, applied: bool) -> Refusal {
    let which = provider.map_or("any provider".to_owned(), |name| format!("provider '{name}'"));
    let message = format!(
        "No cloud is configured for {which}. Start the server with --simulated-cloud, or make this \
         adapter an external one in the configuration."
    );
    let cause = Cause { reason: "ProviderNotConfigured".to_owned(), message };
    Refusal { cause, applied, healthy: true, data: Map::new() }
}

/// What a built-in adapter does, and how it speaks of it.
struct Work<'a> {
    ask: &'a Ask,
    adapter: &'a AdapterName,
    /// `None` for validation, which makes nothing.
    part: Option<Part>,
}

/// What a report will say.
pub(crate) struct Said {
    pub(crate) available: (Tri, Cause),
    pub(crate) applied: (Tri, Cause),
    pub(crate) health: (Tri, Cause),
    pub(crate) finalized: Option<Cause>,
    pub(crate) data: Map<String, Value>,
}

impl Said {
    /// As a report of a built-in adapter.
    pub(crate) fn draft(self, adapter: AdapterName, of: &Resource) -> ReportDraft {
        let condition = |kind: &str, (status, cause): (Tri, Cause)| DraftCondition {
            kind: kind.to_owned(),
            status,
            reason: cause.reason,
            message: cause.message,
        };
        let mut conditions = vec![
            condition("Available", self.available),
            condition("Applied", self.applied),
            condition("Health", self.health),
        ];
        conditions.extend(self.finalized.map(|cause| condition("Finalized", (Tri::True, cause))));
        let Resource { name, generation, .. } = of;
        let job = json!(format!("{adapter}-{name}-gen{generation}"));
        ReportDraft {
            adapter,
            observed_generation: *generation,
            observed_time: None,
            conditions,
            data: self.data,
            metadata: Map::from_iter([("jobName".to_owned(), job)]),
        }
    }
}

impl<'a> Work<'a> {
    fn of(ask: &'a Ask, adapter: &'a AdapterName) -> Self {
        let part = match adapter.as_str() {
            "dns" => Some(Part::Dns),
            "infrastructure" => Some(Part::Infrastructure),
            _ => None,
        };
        Self { ask, adapter, part }
    }

    fn deleting(&self) -> bool {
        self.ask.resource.deletion.is_some()
    }

    fn region(&self) -> Option<&str> {
        Catalog::region_of(&self.ask.cluster.spec)
    }

    /// Whether something was said about this generation before. Then the run says nothing until it
    /// has an outcome: a retry must not hide the error that people are looking at, nor a look for
    /// drift take back that the work is done.
    fn reported_before(&self) -> bool {
        let Resource { reports, generation, .. } = &*self.ask.resource;
        reports.get(self.adapter).is_some_and(|past| past.observed_generation == *generation)
    }

    /// Whether this adapter may have made anything.
    fn applied_before(&self) -> bool {
        let past = self.ask.resource.reports.get(self.adapter);
        self.part.is_some() && past.is_some_and(|past| past.conditions.applied.status == Tri::True)
    }

    fn moved_region(&self) -> Option<&str> {
        let past = self.ask.resource.reports.get(self.adapter)?.metadata.get("region")?.as_str()?;
        self.region().filter(|region| *region != past)
    }

    fn progress(&self) -> Said {
        let region = self.region().map(|region| format!(" for {region}")).unwrap_or_default();
        let (reason, message) = match (self.part, self.deleting()) {
            (None, false) => ("ValidationInProgress", "Validation in progress".to_owned()),
            (None, true) => ("CleanupInProgress", "Cleaning up after validation".to_owned()),
            (Some(Part::Dns), false) => (
                "DNSConfigurationInProgress",
                match self.moved_region() {
                    Some(region) => {
                        format!("DNS configuration in progress for new region {region}")
                    }
                    None => "DNS configuration in progress".to_owned(),
                },
            ),
            (Some(Part::Dns), true) => {
                ("CleanupInProgress", format!("Removing DNS records{region}"))
            }
            (Some(Part::Infrastructure), false) => {
                ("ProvisioningInProgress", format!("Provisioning infrastructure{region}"))
            }
            (Some(Part::Infrastructure), true) => {
                ("CleanupInProgress", format!("Removing infrastructure{region}"))
            }
        };
        let cause = Cause { reason: reason.to_owned(), message };
        let started = Cause { reason: "Started".to_owned(), message: "Work has begun".to_owned() };
        Said {
            available: (Tri::False, cause),
            applied: (Tri::True, started),
            health: (Tri::True, no_errors()),
            finalized: None,
            data: Map::new(),
        }
    }

    fn outcome(&self, outcome: Result<Done, Refusal>) -> Said {
        match outcome {
            Ok(done) if self.deleting() => {
                let cause = Cause { reason: done.reason, message: done.message };
                Said {
                    available: (Tri::False, cause.clone()),
                    applied: (Tri::False, cause.clone()),
                    health: (Tri::True, no_errors()),
                    finalized: Some(cause),
                    data: done.data,
                }
            }
            Ok(done) => {
                let message = if self.part.is_none() && 1 < self.ask.resource.generation {
                    "Validation completed successfully for updated spec".to_owned()
                } else {
                    done.message
                };
                let cause = Cause { reason: done.reason, message };
                let health = match done.unhealthy {
                    Some(cause) => (Tri::False, cause),
                    None => (Tri::True, no_errors()),
                };
                let available = (Tri::True, cause.clone());
                let applied = (Tri::True, cause);
                Said { available, applied, health, finalized: None, data: done.data }
            }
            Err(Refusal { cause, applied, healthy, data }) => {
                let applied = if applied { Tri::True } else { Tri::False };
                let health = match healthy {
                    true => (Tri::True, no_errors()),
                    false => (Tri::False, cause.clone()),
                };
                Said {
                    available: (Tri::False, cause.clone()),
                    applied: (applied, cause),
                    health,
                    finalized: None,
                    data,
                }
            }
        }
    }

    fn draft(&self, said: Said, took: SignedDuration) -> ReportDraft {
        let mut draft = said.draft(self.adapter.clone(), &self.ask.resource);
        let took = json!(format!("{:.1}s", took.as_secs_f64()));
        draft.metadata.insert("executionTime".into(), took);
        if let Some(region) = self.region() {
            draft.metadata.insert("region".into(), json!(region));
        }
        draft
    }
}

pub(crate) fn no_errors() -> Cause {
    Cause { reason: "NoErrors".to_owned(), message: "No unexpected errors".to_owned() }
}
