//! Audit records, dead letters and the catalog, to the wire.

use argosy_api::audit as api;
use argosy_control::adapter::DeadLetter;
use argosy_control::audit::{AuditEntry, Verification};
use argosy_core::catalog::Catalog;

pub(crate) fn entry(entry: AuditEntry) -> api::AuditEntry {
    let record = entry.record;
    api::AuditEntry {
        sequence: entry.sequence,
        revision: entry.revision,
        at: record.at.to_string(),
        actor: record.actor,
        via: record.via,
        tenant: record.tenant,
        action: record.action,
        kind: record.kind,
        id: record.id,
        name: record.name,
        before: record.before,
        after: record.after,
        reason: record.reason,
        request_id: record.request_id,
        previous: entry.previous,
        hash: entry.hash,
    }
}

pub(crate) fn dead_letter((sequence, letter): (u64, DeadLetter)) -> api::DeadLetter {
    let event = serde_json::to_value(letter.event).unwrap_or_default();
    let adapter = letter.adapter.to_string();
    api::DeadLetter { sequence, adapter, cause: letter.cause, event }
}

pub(crate) fn verification(found: Verification) -> api::AuditVerification {
    api::AuditVerification {
        entries: found.entries,
        first: found.first,
        last: found.last,
        broken: found
            .broken
            .map(|broken| api::AuditBreak { sequence: broken.sequence, problem: broken.problem }),
    }
}

pub(crate) fn catalog(catalog: &Catalog) -> api::Catalog {
    let providers = catalog.providers.iter().map(|(name, provider)| {
        let machines = provider.machine_types.iter().map(|(name, machine)| {
            (name.clone(), api::CatalogMachine { cpus: machine.cpus, gpus: machine.gpus })
        });
        let provider = api::CatalogProvider {
            display: provider.display.clone(),
            regions: provider.regions.clone(),
            machine_types: machines.collect(),
        };
        (name.clone(), provider)
    });
    api::Catalog { providers: providers.collect(), nodes_max: catalog.nodes_max }
}
