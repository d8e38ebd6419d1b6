//! Keeps what the node plane goes by current: the deployment's settings, and what the specs of pools say.
//!
//! Every process does it for itself. It is made from the view alone, so that all of them come to the same.

use crate::Error;
use crate::loops::{Beats, RENEW_EVERY};
use crate::office::Office;
use argosy_core::node::settings::NodeSettings;
use argosy_core::pool::{PoolSpec, pool_name};
use argosy_core::resource::{Kind, Resource};
use argosy_store::Revision;
use argosy_store::view::{ResourceChange, View};
use std::sync::Arc;
use std::time::Duration;
use tracing::warn;

const NAME: &str = "plane";

/// When to read the feed again after it could not be read.
const FEED_RETRY: Duration = Duration::from_secs(1);

/// Runs until the process ends.
pub(crate) async fn run(office: Arc<Office>, beats: Arc<Beats>) -> Result<(), Error> {
    let mut changes = office.store.subscribe();
    let mut seen = refresh(&office);
    loop {
        beats.beat(NAME, office.clock.now());
        tokio::select! {
            biased;
            changed = changes.changed() => if changed.is_err() { return Ok(()) },
            () = tokio::time::sleep(RENEW_EVERY) => continue,
        }
        match office.store.events(seen).await {
            Ok(Ok(events)) => {
                let Some(last) = events.last() else { continue };
                seen = last.revision;
                let mut changes = events.iter().flat_map(|event| &event.resources);
                if changes.any(is_wish) {
                    seen = refresh(&office);
                }
            }
            Ok(Err(_)) => seen = refresh(&office),
            Err(error) => {
                warn!(%error, "could not read the feed");
                tokio::time::sleep(FEED_RETRY).await;
            }
        }
    }
}

/// Whether what people want of a pool changed, and not only what was reported about it.
fn is_wish(change: &ResourceChange) -> bool {
    let generation = |resource: &Resource| (resource.kind, resource.generation);
    let before = change.before.as_ref().map(|before| generation(&before.value));
    let after = change.after.as_ref().map(|after| generation(&after.value));
    let pool = [before, after].iter().flatten().any(|(kind, _)| *kind == Kind::NodePool);
    pool && before != after
}

fn refresh(office: &Office) -> Revision {
    let (revision, nodes) = office.store.read(|view| (view.revision(), of_pools(office, view)));
    office.set_nodes(nodes);
    revision
}

/// The deployment's settings, with what the specs of pools say.
fn of_pools(office: &Office, view: &View) -> NodeSettings {
    let mut nodes = office.settings.nodes.clone();
    for pool in view.resources(Kind::NodePool) {
        let pool = &pool.value;
        let Some(cluster) = pool.owner.and_then(|owner| view.resource(owner)) else { continue };
        let says = |member: &str| pool.spec.contains_key(member);
        if !["remedy", "maxUnavailable", "drainFor"].into_iter().any(says) {
            continue;
        }
        let catalog = &office.settings.catalog;
        let Ok(spec) = PoolSpec::read(&pool.spec, &cluster.value.spec, catalog) else { continue };
        let name = pool_name(&cluster.value.name, &pool.name);
        let base = office.settings.nodes.of(Some(&name));
        let mut wanted = spec.settings(base);
        // What the spec does not say stays as the deployment has it.
        if !says("remedy") {
            wanted.remedy = base.remedy;
        }
        if !says("maxUnavailable") {
            wanted.budget = base.budget;
        }
        nodes.specs.entry(pool.tenant.clone()).or_default().insert(name, wanted);
    }
    nodes
}
