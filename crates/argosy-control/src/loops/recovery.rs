//! Begins a new incarnation when this process has seen commits that the store does not have.
//!
//! Every process looks for itself: it alone knows what it has seen. Two that find it out at once meet in the store,
//! and the second sees that it was done.

use crate::Error;
use crate::loops::{Beats, RENEW_EVERY};
use crate::office::Office;
use crate::recovery::after_loss;
use std::sync::Arc;
use tracing::warn;

const NAME: &str = "recovery";

/// Runs until the process ends.
pub(crate) async fn run(office: Arc<Office>, beats: Arc<Beats>) -> Result<(), Error> {
    let mut changes = office.store.subscribe();
    loop {
        beats.beat(NAME, office.clock.now());
        if office.store.read(|view| view.lost().is_some())
            && let Err(error) = after_loss(&office).await
        {
            warn!(%error, "could not write down that history was lost");
        }
        tokio::select! {
            biased;
            changed = changes.changed() => if changed.is_err() { return Ok(()) },
            () = tokio::time::sleep(RENEW_EVERY) => {}
        }
    }
}
