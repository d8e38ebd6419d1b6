//! Reports of adapters: judged, stored with their history, and shown.

use crate::notify::CloudEvent;
use crate::office::{DEAD_LETTERS, HISTORY, Mutation, Office, allow_verb, read_entry, system};
use crate::resource::{Resources, Target};
use crate::{Error, Stored};
use argosy_core::access::{Caller, Role, Verb};
use argosy_core::adapter::{AdapterName, Old, Report, ReportDraft, Verdict, accept};
use argosy_core::id::ResourceId;
use argosy_core::resource::{Generation, Resource};
use argosy_store::Txn;
use argosy_store::engine::{EntryQuery, Fence};
use argosy_store::view::View;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The service.
#[derive(Clone)]
pub struct Adapters {
    pub(crate) resources: Resources,
}

/// What became of a report.
#[derive(Clone, Debug)]
pub enum Reporting {
    /// It was news.
    Stored {
        /// The resource with it.
        resource: Stored<Resource>,
        /// What is stored of it.
        report: Box<Report>,
    },
    /// It was not; it is kept as history only.
    Discarded(Old),
}

/// One report as history keeps it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HistoryEntry {
    /// Its place among all reports; a page goes on after the last.
    #[serde(default)]
    pub sequence: u64,
    /// When we got it.
    pub at: Timestamp,
    /// Who reported.
    pub adapter: AdapterName,
    /// The resource's generation at that time.
    pub generation: Generation,
    /// Whether it was news; if not, why.
    pub discarded: Option<Old>,
    /// The report.
    pub report: Report,
}

impl Adapters {
    /// Takes a report.
    ///
    /// # Errors
    /// The resource does not exist, the report is not well formed, or the caller may not report for
    /// this adapter.
    pub async fn report(
        &self,
        caller: &Caller,
        target: Target<'_>,
        draft: ReportDraft,
    ) -> Result<Reporting, Error> {
        if caller.role == Role::Adapter && caller.adapter.as_deref() != Some(draft.adapter.as_str())
        {
            let own = caller.adapter.as_deref().unwrap_or("none");
            return Err(Error::Forbidden(format!(
                "this credential may report for the adapter '{own}', not for '{}'",
                draft.adapter
            )));
        }
        let find = |view: &View| {
            let found = self.resources.find(view, caller, Verb::Report, target)?;
            Ok(Some(found.resource.clone()))
        };
        let taken = self.take(caller, find, &draft, None).await?;
        taken.ok_or_else(|| Error::NotFound {
            kind: target.kind,
            reference: target.reference.to_owned(),
            cluster: target.cluster.map(str::to_owned),
        })
    }

    /// Takes a report of a built-in adapter; `None` if the resource is gone.
    pub(crate) async fn report_own(
        &self,
        id: ResourceId,
        draft: &ReportDraft,
        fence: &Fence,
    ) -> Result<Option<Reporting>, Error> {
        let caller = system(&format!("adapter:{}", draft.adapter));
        let find = |view: &View| Ok(view.resource(id).cloned());
        self.take(&caller, find, draft, Some(fence)).await
    }

    async fn take(
        &self,
        caller: &Caller,
        find: impl Fn(&View) -> Result<Option<Stored<Resource>>, Error>,
        draft: &ReportDraft,
        fence: Option<&Fence>,
    ) -> Result<Option<Reporting>, Error> {
        let office = &self.resources.office;
        let decide = |view: &View, now: Timestamp| {
            let Some(before) = find(view)? else { return Ok((None, None)) };
            let of = &before.value;
            let verdict = accept(of, draft, now, office.settings.window).map_err(Error::Invalid)?;
            let mut txn = Txn::at(now);
            if let Some(fence) = fence {
                txn.fence(fence.clone());
            }
            let entry = |discarded: Option<Old>, report: Report| HistoryEntry {
                sequence: 0,
                at: now,
                adapter: draft.adapter.clone(),
                generation: of.generation,
                discarded,
                report,
            };
            let subject = of.id.to_string();
            match verdict {
                Verdict::Old(old) => {
                    if let Some(report) = draft.as_report(now) {
                        txn.append(HISTORY, &subject, &entry(Some(old), report));
                    }
                    Ok((Some(txn), Some(Reporting::Discarded(old))))
                }
                Verdict::News(report) => {
                    let adapters = office.adapters(of.kind);
                    let children = view.has_children(of.id);
                    let after =
                        of.reported(&draft.adapter, report.clone(), adapters, children, now);
                    let after = Arc::new(office.settled(Some(of), after, now));
                    if of.reports.get(&draft.adapter).is_none_or(|past| differs(past, &report)) {
                        // What was said, even if only a part of it is news.
                        let said = draft.as_report(now).unwrap_or_else(|| report.clone());
                        txn.append(HISTORY, &subject, &entry(None, said));
                    }
                    let resource = Stored { value: after.clone(), revision: before.revision };
                    let change = Mutation::update("report", &before, after);
                    Office::write(&mut txn, change, caller, now)?;
                    Ok((Some(txn), Some(Reporting::Stored { resource, report: Box::new(report) })))
                }
            }
        };
        let (revision, mut reporting) = office.decide(decide).await?;
        match &mut reporting {
            Some(Reporting::Stored { resource, .. }) => {
                resource.revision = revision;
                office.stats.reports_stored.add_one();
            }
            Some(Reporting::Discarded(_)) => office.stats.reports_discarded.add_one(),
            None => {}
        }
        Ok(reporting)
    }

    /// Earlier reports about a resource, newest first; `before` is the sequence to go on before.
    ///
    /// # Errors
    /// The resource does not exist (any more), or is another team's.
    pub async fn history(
        &self,
        caller: &Caller,
        target: Target<'_>,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<HistoryEntry>, Error> {
        let resource = self.resources.get(caller, target)?;
        let query = EntryQuery {
            stream: HISTORY.to_owned(),
            subject: Some(resource.value.id.to_string()),
            cursor: before,
            newest_first: true,
            limit,
        };
        let entries = self.resources.office.store.entries(&query).await?;
        entries
            .into_iter()
            .map(|entry| {
                let mut known: HistoryEntry = read_entry(&entry)?;
                known.sequence = entry.sequence;
                Ok(known)
            })
            .collect()
    }

    /// Events of the caller's tenant that were given up, newest first, each with its sequence
    /// number; `before` is the one to go on before.
    ///
    /// # Errors
    /// The caller is not an admin, or the store is out of reach.
    pub async fn dead_letters(
        &self,
        caller: &Caller,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<(u64, DeadLetter)>, Error> {
        allow_verb(caller, Verb::Administer)?;
        let keep = |letter: &DeadLetter| letter.tenant == caller.tenant;
        let found = self.resources.office.newest(DEAD_LETTERS, None, before, limit, keep).await?;
        Ok(found.into_iter().map(|(entry, letter)| (entry.sequence, letter)).collect())
    }
}

/// An event that was given up: the adapter refused it, or could not be reached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeadLetter {
    /// Whom it was for.
    pub adapter: AdapterName,
    /// Whose resource it is about.
    pub tenant: String,
    /// Why it was given up.
    pub cause: String,
    /// The event.
    pub event: CloudEvent,
}

/// Whether a report says anything that the one before it did not. One that only says "still so" is
/// not worth a line of history.
fn differs(past: &Report, report: &Report) -> bool {
    past.observed_generation != report.observed_generation
        || past.conditions != report.conditions
        || past.data != report.data
}
