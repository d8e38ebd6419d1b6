//! The audit log: read it, and prove that nobody changed it.

use crate::Error;
use argosy_core::access::Caller;
use argosy_core::audit::AuditRecord;
use serde::Serialize;

/// The service.
#[derive(Clone)]
pub struct Audit {
    _later: (),
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
    /// Records, newest first; `before` is the sequence to go on before.
    pub async fn list(
        &self,
        caller: &Caller,
        before: Option<u64>,
        limit: usize,
    ) -> Result<Vec<AuditEntry>, Error> {
        let _ = (caller, before, limit);
        todo!()
    }

    /// Checks the whole chain.
    pub async fn verify(&self, caller: &Caller) -> Result<Verification, Error> {
        let _ = caller;
        todo!()
    }
}
