//! The full document's journeys 1 to 10.

use super::journeys;
use crate::harness::{Server, Setup, subset, text};
use serde_json::{Value, json};

journeys! {
    full_journey_1_create_a_new_cluster,
}

fn my_test_cluster() -> Value {
    json!({
        "name": "my-test-cluster",
        "spec": { "provider": "gcp", "region": "us-east1", "nodeCount": 3 },
        "labels": { "environment": "production", "team": "platform" },
    })
}

/// A body, and the phase that goes with it.
fn with_phase(mut body: Value, phase: &str) -> Value {
    body["status"] = json!({ "phase": phase });
    body
}

async fn full_journey_1_create_a_new_cluster(setup: Setup) {
    let server = setup.start().await;
    server.set_latency("dns", 3_600_000).await;
    let body = my_test_cluster();
    let created = server.create("clusters", &body).await;
    subset(&created, &with_phase(body.clone(), server.profile().first_phase()));
}
