//! The routes of the fleet as a whole: who asks, every GPU, every event.

use super::node::{node_filters, route, text, words};
use super::{
    Access, EVENTS, JSON, Operation, Parameter, Route, before, header, limit, ok, query, revision,
};
use serde_json::json;

const TAG: &str = "Fleet";

/// How seldom the stream of all GPUs may tell, in milliseconds.
const EVERY_MAX_MS: u64 = 60_000;

/// How often, at most: people see no more.
const EVERY_MIN_MS: u64 = 250;

/// How often, unless somebody chose: as often as measurements are kept.
pub const EVERY_DEFAULT_MS: u64 = 1_000;

const GPUS: &[(&str, Option<&str>)] =
    &[(JSON, Some("FleetGpuList")), (EVENTS, Some("FleetServerSentEvent"))];
const LINES: &[(&str, Option<&str>)] = &[(JSON, Some("Ledger")), (EVENTS, Some("ServerSentEvent"))];

pub(super) fn routes() -> Vec<Route> {
    let read = |path: &str, operation, id: &str, summary: &str| {
        route(TAG, ("GET", path), operation, id, Access::Read, summary)
    };
    vec![
        read("/me", Operation::Me, "getMe", "Who asks, what they may do, and of whom.")
            .answers(ok("The caller.", &[(JSON, Some("Me"))], &[])),
        read(
            "/fleet/gpus",
            Operation::FleetGpus,
            "getFleetGpus",
            "Every GPU with what it last measured, or a stream of it.",
        )
        .with(node_filters())
        .with(vec![
            watch(
                "Answer with server-sent events: all there is, then what changed, at every tick.",
            ),
            query(
                "every_ms",
                "With `watch`: how far apart the ticks are, in milliseconds.",
                json!({
                    "type": "integer",
                    "minimum": EVERY_MIN_MS,
                    "maximum": EVERY_MAX_MS,
                    "default": EVERY_DEFAULT_MS,
                }),
            ),
        ])
        .answers(ok("Every node with its GPUs, or with `watch` a stream.", GPUS, &[])),
        read(
            "/events",
            Operation::ListEvents,
            "listEvents",
            "What happened and was decided in the whole fleet, newest first, or as it happens.",
        )
        .with(vec![
            before(),
            limit(),
            query("node", "Only what is about this node.", text()),
            query("pool", "Only what is about nodes of this pool.", text()),
            query(
                "type",
                "Only lines of this type.",
                words(crate::node::LINE_TYPES.iter().copied()),
            ),
            watch("Answer with server-sent events: what is written down from now on."),
            query("after", "With `watch`: go on after this sequence number.", revision()),
            header(
                "Last-Event-ID",
                "The same, as browsers send it when they connect again.",
                revision(),
            ),
        ])
        .answers(ok("The lines, or with `watch` a stream of them.", LINES, &[])),
    ]
}

fn watch(description: &'static str) -> Parameter {
    query("watch", description, json!({ "type": "boolean", "default": false }))
}
