//! Forgets what is old, so that nothing grows without bound.

use crate::Error;
use crate::loops::{Beats, RENEW_EVERY, lead};
use crate::node::LEDGER;
use crate::office::{AUDIT, DEAD_LETTERS, HISTORY, Office, POOL_HISTORY};
use argosy_store::Txn;
use argosy_store::engine::{EntryQuery, Fence, Retention, StreamRetention};
use jiff::{SignedDuration, Timestamp};
use std::sync::Arc;
use std::time::Duration;
use tracing::warn;

const NAME: &str = "retention";

/// How often the loop looks. Nothing it removes is wanted, so late is early enough.
const EVERY: Duration = Duration::from_secs(60);

/// How many changes a watcher can be behind. At a thousand commits a second it is minutes; fewer
/// would make clients list again after a restart, more would only cost disk.
const CHANGES_KEPT: u64 = 100_000;

/// The same, where processes tell each other through the feed whom they heard: with ten thousand nodes
/// that is 100 KB every few seconds, and a hundred thousand such changes would fill the disk.
const CHANGES_KEPT_TOLD: u64 = 10_000;

/// How many entries a stream keeps, whatever their age.
const ENTRIES_KEPT: u64 = 1_000_000;

/// How many documents one commit removes: other commits wait behind it.
const REMOVALS_MAX: usize = 500;

/// Runs until the process ends.
pub(crate) async fn run(
    office: Arc<Office>,
    beats: Arc<Beats>,
    holder: String,
) -> Result<(), Error> {
    loop {
        let fence = lead(&office, NAME, &holder, &beats).await;
        if let Err(error) = forget(&office, &fence).await {
            warn!(%error, "could not forget what is old");
        }
        let rounds = EVERY.as_secs() / RENEW_EVERY.as_secs();
        for _ in 0..rounds {
            beats.beat(NAME, office.clock.now());
            tokio::time::sleep(RENEW_EVERY).await;
        }
    }
}

async fn forget(office: &Office, fence: &Fence) -> Result<(), argosy_store::Error> {
    let now = office.clock.now();
    while let Some(mut txn) = forgettable(office, now) {
        txn.fence(fence.clone());
        office.store.commit(txn).await?;
    }
    let mut streams = Vec::new();
    for (stream, kept) in [
        (AUDIT, office.settings.audit_kept),
        (HISTORY, office.settings.history_kept),
        (DEAD_LETTERS, office.settings.history_kept),
        (LEDGER, office.settings.history_kept),
        (POOL_HISTORY, office.settings.history_kept),
    ] {
        streams.push(old_entries(office, stream, before(now, kept)).await?);
    }
    let told = office.store.read(|view| 0 < view.heard().len());
    let changes_kept = if told { CHANGES_KEPT_TOLD } else { CHANGES_KEPT };
    office.store.trim(&Retention { changes_kept, streams }).await
}

/// Documents that have outlived their purpose. They carry no audit record: nothing that a person
/// asked for changes.
fn forgettable(office: &Office, now: Timestamp) -> Option<Txn> {
    let removed_before = before(now, office.settings.tombstones_kept);
    let (tombstones, keys) = office
        .store
        .read(|view| (view.tombstones_before(removed_before), view.idempotency_keys_expired(now)));
    if tombstones.is_empty() && keys.is_empty() {
        return None;
    }
    let mut txn = Txn::at(now);
    for tombstone in tombstones.iter().take(REMOVALS_MAX) {
        txn.remove(&*tombstone.value, tombstone.revision);
    }
    for key in keys.iter().take(REMOVALS_MAX) {
        txn.remove(&*key.value, key.revision);
    }
    Some(txn)
}

/// What may go of a stream. Its last entry stays, whatever its age: without it, a log that was cut
/// off could not be told from one that is old.
async fn old_entries(
    office: &Office,
    stream: &str,
    before: Timestamp,
) -> Result<StreamRetention, argosy_store::Error> {
    let stream = stream.to_owned();
    let last = EntryQuery {
        stream: stream.clone(),
        subject: None,
        cursor: None,
        newest_first: true,
        limit: 1,
    };
    let last = office.store.entries(&last).await?;
    let before = last.iter().map(|entry| entry.at).fold(before, Timestamp::min);
    Ok(StreamRetention { stream, before, entries_kept: ENTRIES_KEPT })
}

fn before(now: Timestamp, kept: SignedDuration) -> Timestamp {
    now.checked_sub(kept).unwrap_or(Timestamp::MIN)
}
