//! A node with all its GPUs, as small as it can be.

use super::node::{health, liveness, status};
use argosy_api::fleet as api;
use argosy_control::Stored;
use argosy_control::pulse::{GpuSample, Live};
use argosy_core::health::Severity;
use argosy_core::node::Node;

/// The label that names a rack.
const RACK: &str = "rack";

/// The row of a node.
pub(crate) fn node(stored: &Stored<Node>, live: &Live) -> api::NodeGpus {
    let node = &*stored.value;
    let first = node.gpus.first();
    let cluster = node.pool.as_deref().and_then(|pool| pool.split_once('.'));
    api::NodeGpus {
        id: node.id.to_string(),
        pool: node.pool.clone(),
        cluster: cluster.map(|(cluster, _)| cluster.to_owned()),
        provider: node.place.provider.to_string(),
        region: node.place.region.to_string(),
        zone: node.place.zone.to_string(),
        rack: node.labels.get(RACK).map(str::to_owned),
        machine_type: node.place.instance_type.to_string(),
        model: first.map(|gpu| gpu.name.to_string()).unwrap_or_default(),
        labels: node.labels.iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect(),
        status: status(node.status()),
        health: health(node.health.state),
        liveness: liveness(node.liveness),
        revision: stored.revision.0,
        gpus: node.gpus.len(),
        bad: places(node, Severity::Unhealthy),
        warn: places(node, Severity::Degraded),
        memory_total: first.map_or(0, |gpu| gpu.memory_total),
        measured: measures(node, live),
    }
}

/// What a node measured; `None` if it did not.
pub(crate) fn samples(stored: &Stored<Node>, live: &Live) -> Option<api::NodeSamples> {
    let measured = measures(&stored.value, live)?;
    Some(api::NodeSamples { id: stored.value.id.to_string(), measured })
}

/// The GPUs whose worst finding is this bad.
fn places(node: &Node, severity: Severity) -> Vec<i32> {
    let worst = |uuid: &str| {
        let theirs = node.findings.iter().filter(|finding| finding.gpu == uuid);
        theirs.filter_map(|finding| finding.severity).max()
    };
    let named = node.gpus.iter().filter(|gpu| !gpu.uuid.is_empty());
    named.filter(|gpu| worst(&gpu.uuid) == Some(severity)).map(|gpu| gpu.index).collect()
}

fn measures(node: &Node, live: &Live) -> Option<api::GpuMeasures> {
    let (sample, at) = (live.sample.as_ref()?, live.measured_at?);
    let by_place: Vec<Option<&GpuSample>> = node
        .gpus
        .iter()
        .map(|gpu| sample.gpus.iter().find(|sample| i32::from(sample.index) == gpu.index))
        .collect();
    fn each<T>(
        of: &[Option<&GpuSample>],
        take: impl Fn(&GpuSample) -> Option<T>,
    ) -> Vec<Option<T>> {
        of.iter().map(|sample| sample.and_then(&take)).collect()
    }
    let memory = node.gpus.iter().zip(&by_place).map(|(gpu, sample)| {
        sample.and_then(|sample| memory_percent(sample.memory_used?, gpu.memory_total))
    });
    Some(api::GpuMeasures {
        at: at.as_millisecond(),
        t: each(&by_place, |sample| sample.temperature),
        w: each(&by_place, |sample| sample.power),
        u: each(&by_place, |sample| sample.utilization.map(whole_percent)),
        m: memory.collect(),
        ce: each(&by_place, |sample| sample.ecc_corrected),
        ue: each(&by_place, |sample| sample.ecc_uncorrected),
    })
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to what fits")]
fn whole_percent(value: f32) -> u8 {
    value.clamp(0.0, 100.0).round() as u8
}

/// How much of a GPU's memory is in use; `None` if nobody knows how much it has.
pub(super) fn memory_percent(used: u64, total: i64) -> Option<u8> {
    let total = u64::try_from(total).ok().filter(|total| 0 < *total)?;
    let percent = u128::from(used) * 100 / u128::from(total);
    Some(u8::try_from(percent.min(100)).unwrap_or(100))
}

#[cfg(test)]
mod tests;
