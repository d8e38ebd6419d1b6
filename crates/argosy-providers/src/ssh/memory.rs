//! What is remembered of hosts, for when they do not answer.
//!
//! A claim lies on the host and goes only when we remove it, so that what a host last said of it holds while
//! the host is silent. What it never said nobody knows.
//!
//! What a newcomer gets wrong: a host that was asked at ten and answers a minute later says what was so at ten. What
//! was learned of it meanwhile is newer, and stays.

use super::survey::{Claim, Tenancy};
use crate::boot::Sha256;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use uuid::Uuid;

/// A directory with a file for each host. Clones are the same memory.
#[derive(Clone, Debug)]
pub(super) struct Memory {
    dir: PathBuf,
    /// How often each host's file was changed by this process. Held while one is read and written: two who write at
    /// once would share the file beside it.
    changes: Arc<Mutex<HashMap<String, u64>>>,
}

/// What is remembered of one host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Remembered {
    /// Its name: the file is named for a hash of it.
    host: String,
    /// What it last said.
    pub(super) said: Option<Tenancy>,
    /// What was asked of it since, and neither answered nor called off.
    pub(super) asked: Option<Claim>,
    /// How often it was changed by this process, when it was read.
    #[serde(skip)]
    change: u64,
}

impl Remembered {
    /// Whether the host may have the claim of a token, as far as it ever said.
    pub(super) fn may_hold(&self, token: Uuid) -> bool {
        match &self.said {
            Some(Tenancy::Claimed(claim)) => claim.token == token,
            Some(Tenancy::Free | Tenancy::Foreign) => false,
            Some(Tenancy::Unreadable) | None => true,
        }
    }
}

impl Memory {
    pub(super) fn open(dir: &Path) -> io::Result<Self> {
        fs::create_dir_all(dir)?;
        Ok(Self { dir: dir.to_owned(), changes: Arc::default() })
    }

    /// What is remembered of a host; nothing if it was never reached. Blocks.
    pub(super) fn of(&self, host: &str) -> io::Result<Remembered> {
        self.read(host, &self.changes())
    }

    fn changes(&self) -> MutexGuard<'_, HashMap<String, u64>> {
        // A number more than was written does no harm.
        self.changes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read(&self, host: &str, changes: &HashMap<String, u64>) -> io::Result<Remembered> {
        let change = changes.get(host).copied().unwrap_or(0);
        let text = match fs::read(self.file(host)) {
            Ok(text) => text,
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => {
                return Ok(Remembered { host: host.to_owned(), said: None, asked: None, change });
            }
            Err(cause) => return Err(cause),
        };
        Ok(Remembered { change, ..serde_json::from_slice(&text)? })
    }

    /// Remembers what a host said to a question that was put when `asked_at` was remembered; nothing if more was
    /// learned since. What was asked of it may still be on its way, unless this is it.
    pub(super) fn said(&self, asked_at: &Remembered, tenancy: &Tenancy) -> io::Result<()> {
        let mut changes = self.changes();
        let before = self.read(&asked_at.host, &changes)?;
        if before.change != asked_at.change {
            return Ok(());
        }
        let asked = before.asked.clone().filter(
            |asked| !matches!(tenancy, Tenancy::Claimed(claim) if claim.token == asked.token),
        );
        // What cannot be read is no news of whose it is.
        let said = match (&before.said, tenancy) {
            (Some(Tenancy::Claimed(_)), Tenancy::Unreadable) => before.said.clone(),
            _ => Some(tenancy.clone()),
        };
        self.change(&mut changes, before, said, asked)
    }

    /// Remembers what will be asked of a host.
    pub(super) fn asks(&self, host: &str, claim: &Claim) -> io::Result<()> {
        let mut changes = self.changes();
        let before = self.read(host, &changes)?;
        let said = before.said.clone();
        self.change(&mut changes, before, said, Some(claim.clone()))
    }

    /// Remembers that the host has answered, and what it is now, if that is known.
    pub(super) fn answered(&self, host: &str, tenancy: Option<Tenancy>) -> io::Result<()> {
        let mut changes = self.changes();
        let before = self.read(host, &changes)?;
        let said = tenancy.or_else(|| before.said.clone());
        self.change(&mut changes, before, said, None)
    }

    fn change(
        &self,
        changes: &mut HashMap<String, u64>,
        before: Remembered,
        said: Option<Tenancy>,
        asked: Option<Claim>,
    ) -> io::Result<()> {
        // Also if nothing is other than before: it is newer.
        *changes.entry(before.host.clone()).or_default() += 1;
        let now = Remembered { said, asked, host: before.host.clone(), change: before.change };
        if now == before { Ok(()) } else { self.write(&now) }
    }

    fn write(&self, remembered: &Remembered) -> io::Result<()> {
        let path = self.file(&remembered.host);
        let new = path.with_extension("new");
        let mut file = fs::File::create(&new)?;
        file.write_all(&serde_json::to_vec_pretty(remembered)?)?;
        file.sync_all()?;
        fs::rename(&new, &path)?;
        fs::File::open(&self.dir)?.sync_all()
    }

    fn file(&self, host: &str) -> PathBuf {
        // Names of hosts may hold what names of files cannot.
        let digits = Sha256::of(host.as_bytes());
        self.dir.join(format!("{}.json", digits.as_str().get(..32).unwrap_or_default()))
    }
}

#[cfg(test)]
mod tests;
