//! How many events a core judges by the default policy.

use crate::figures::Figures;
use anyhow::{Context, Result, anyhow};
use argosy_core::health::{Event, EventType};
use argosy_core::node::Node;
use argosy_policy::{HealthPolicy, Judged};
use jiff::Timestamp;
use serde_json::json;
use std::hint::black_box;
use std::time::Duration;

/// How long is measured. Shorter, and what else the machine does shows in the figure.
const MEASURED: Duration = Duration::from_secs(1);
/// How many events are judged between two looks at the stopwatch.
const BATCH: usize = 1000;

/// Judges events on one thread: faults of hardware and of programs, a temperature, and one that no rule
/// but the last is about, in turn.
pub(crate) fn bench_policy(figures: &mut Figures) -> Result<()> {
    let spec = HealthPolicy::default_spec();
    let policy = HealthPolicy::compile("default", 0, &spec)
        .map_err(|errors| anyhow!("the default policy does not compile: {errors:?}"))?;
    let (node, events) = (node()?, events()?);
    let mut judged = 0_usize;
    let (began, ran) = (crate::now(), on_core());
    while began.elapsed() < MEASURED {
        for event in events.iter().cycle().take(BATCH) {
            let asked = Judged { event, node: &node, elsewhere: &[], now: Timestamp::UNIX_EPOCH };
            black_box(policy.judge(black_box(&asked)));
        }
        judged += BATCH;
    }
    // What this thread ran, where the kernel says so: others may have had the core meanwhile.
    let time = on_core().zip(ran).map_or_else(|| began.elapsed(), |(now, then)| now - then);
    figures.set("policy.rate", judged as f64 / time.as_secs_f64());
    Ok(())
}

/// How long this thread has run so far.
fn on_core() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split(' ').next()?.parse().ok().map(Duration::from_nanos)
}

fn events() -> Result<Vec<Event>> {
    [
        (EventType::Xid, json!({ "xid_code": 79 })),
        (EventType::Xid, json!({ "xid_code": 31 })),
        (EventType::Thermal, json!({ "temperature": 88 })),
        (EventType::Thermal, json!({ "temperature": 61 })),
    ]
    .into_iter()
    .map(|(event_type, metrics)| {
        let event = json!({
            "gpu_index": 3,
            "gpu_uuid": "GPU-5a3f0c1e-0000-0000-0000-000000000000",
            "system": "DCGM_HEALTH_WATCH_DRIVER",
            "event_type": event_type,
            "metrics": metrics,
            "message": "what the agent says about it",
        });
        serde_json::from_value(event).context("an event to measure with")
    })
    .collect()
}

/// A node with eight GPUs.
fn node() -> Result<Node> {
    let at = Timestamp::UNIX_EPOCH;
    let gpu =
        |index: i32| json!({ "index": index, "uuid": format!("GPU-{index}"), "name": "H100" });
    let node = json!({
        "id": "gpu-1", "tenant": "default", "pool": "h100",
        "place": { "provider": "gcp", "region": "us-east1", "zone": "us-east1-b", "instance_type": "a3" },
        "machine": {},
        "gpus": (0..8).map(gpu).collect::<Vec<_>>(),
        "labels": { "team": "ml", "rack": "r12" },
        "registered_at": at, "joined_at": at,
        "liveness": "Fresh", "liveness_since": at,
        "health": { "state": "Healthy", "since": at, "reason": "", "message": "" },
        "duty": "Active",
    });
    serde_json::from_value(node).context("a node to measure with")
}
