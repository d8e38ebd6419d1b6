//! Reports of adapters: judged, stored with their history, and shown.

use crate::resource::Target;
use crate::{Error, Stored};
use argosy_core::access::Caller;
use argosy_core::adapter::{AdapterName, Old, Report, ReportDraft};
use argosy_core::resource::{Generation, Resource};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The service.
#[derive(Clone)]
pub struct Adapters {
    _later: (),
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
    pub async fn report(
        &self,
        caller: &Caller,
        target: Target<'_>,
        draft: ReportDraft,
    ) -> Result<Reporting, Error> {
        let _ = (caller, target, draft);
        todo!()
    }

    /// Earlier reports about a resource, newest first; `before` is the sequence to go on before.
    pub async fn history(
        &self,
        caller: &Caller,
        target: Target<'_>,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<HistoryEntry>, Error> {
        let _ = (caller, target, before, limit);
        todo!()
    }
}
