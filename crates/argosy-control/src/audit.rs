//! The audit log: read it, and prove that nobody changed it.

use crate::Error;
use crate::office::{AUDIT, Office, PAGE, allow_verb};
use argosy_core::access::{Caller, Verb};
use argosy_core::audit::AuditRecord;
use argosy_store::engine::{Entry, EntryQuery, chain};
use serde::Serialize;
use std::sync::Arc;

/// The service.
#[derive(Clone)]
pub struct Audit {
    pub(crate) office: Arc<Office>,
}

/// One record and its place in the chain.
#[derive(Clone, Debug, Serialize)]
pub struct AuditEntry {
    /// 1, 2, 3, … without holes.
    pub sequence: u64,
    /// The commit that wrote it.
    pub revision: u64,
    /// What it says.
    #[serde(flatten)]
    pub record: AuditRecord,
    /// The hash of the entry before.
    pub previous: String,
    /// The hash of this one.
    pub hash: String,
}

/// What a check of the chain found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Verification {
    /// How many entries were checked.
    pub entries: u64,
    /// The first and the last sequence number, if there are any.
    pub first: Option<u64>,
    /// See `first`.
    pub last: Option<u64>,
    /// The first entry that does not fit, and why.
    pub broken: Option<Break>,
}

/// Where the chain breaks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Break {
    /// The entry.
    pub sequence: u64,
    /// What is wrong with it.
    pub problem: String,
}

impl Audit {
    /// Records of the caller's tenant, newest first; `before` is the sequence to go on before.
    ///
    /// # Errors
    /// The caller is not an admin, or the store is out of reach.
    pub async fn list(
        &self,
        caller: &Caller,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<AuditEntry>, Error> {
        allow_verb(caller, Verb::Administer)?;
        let keep = |record: &AuditRecord| record.tenant == caller.tenant;
        let found = self.office.newest(AUDIT, None, before, limit, keep).await?;
        let entry = |(entry, record): (Entry, AuditRecord)| AuditEntry {
            sequence: entry.sequence,
            revision: entry.revision.0,
            record,
            previous: entry.previous,
            hash: entry.hash,
        };
        Ok(found.into_iter().map(entry).collect())
    }

    /// Checks the whole chain, from the oldest entry that is kept to the one the store remembers as
    /// the last.
    ///
    /// # Errors
    /// The caller is not an admin, or the store is out of reach. A broken chain is an answer.
    pub async fn verify(&self, caller: &Caller) -> Result<Verification, Error> {
        allow_verb(caller, Verb::Administer)?;
        let head = self.office.store.stream_head(AUDIT).await?;
        let mut found = Verification { entries: 0, first: None, last: None, broken: None };
        let mut previous: Option<Entry> = None;
        let end = head.as_ref().map_or(0, |(sequence, _)| *sequence);
        'chain: loop {
            let page = self.page_after(previous.as_ref()).await?;
            let Some(_) = page.first() else { break };
            for entry in page {
                // What was written after we asked for the head is for the next check.
                if end < entry.sequence {
                    break 'chain;
                }
                found.entries += 1;
                found.first.get_or_insert(entry.sequence);
                found.last = Some(entry.sequence);
                if let Some(problem) = misfit(previous.as_ref(), &entry) {
                    found.broken = Some(Break { sequence: entry.sequence, problem });
                    return Ok(found);
                }
                previous = Some(entry);
            }
        }
        if let Some((sequence, hash)) = head
            && previous.as_ref().map(|entry| (entry.sequence, &entry.hash))
                != Some((sequence, &hash))
        {
            let problem = "the last entries are missing".to_owned();
            found.broken = Some(Break { sequence, problem });
        }
        Ok(found)
    }

    async fn page_after(&self, entry: Option<&Entry>) -> Result<Vec<Entry>, Error> {
        let (stream, cursor) = (AUDIT.to_owned(), entry.map(|entry| entry.sequence));
        let query = EntryQuery { stream, subject: None, cursor, newest_first: false, limit: PAGE };
        Ok(self.office.store.entries(&query).await?)
    }
}

/// Why an entry does not follow the one before it.
fn misfit(previous: Option<&Entry>, entry: &Entry) -> Option<String> {
    let Entry { sequence, subject, at, body, .. } = entry;
    if let Some(before) = previous {
        if before.sequence + 1 != *sequence {
            return Some(format!("the entries after {} are missing", before.sequence));
        }
        if before.hash != entry.previous {
            return Some("it does not follow the entry before it".to_owned());
        }
    }
    let hash = chain(&entry.previous, *sequence, subject, *at, body);
    (hash != entry.hash).then(|| "it was changed after it was written".to_owned())
}
