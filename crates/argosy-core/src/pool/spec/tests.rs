use super::*;
use crate::field::FieldError;
use crate::fixture::object;
use serde_json::{Value, json};

fn read(spec: Value) -> Result<PoolSpec, Vec<FieldError>> {
    let cluster = object(json!({"provider": "gcp", "region": "us-east1"}));
    PoolSpec::read(&object(spec), &cluster, &Catalog::default())
}

/// The complaints as lines `field (constraint): message`.
#[track_caller]
fn refused(spec: Value, expected: &str) {
    let line = |e: &FieldError| format!("{} ({:?}): {}", e.field, e.constraint.unwrap(), e.message);
    let errors = read(spec.clone()).expect_err(&spec.to_string());
    assert_eq!(errors.iter().map(line).collect::<Vec<_>>().join("\n"), expected, "{spec}");
}

#[test]
fn an_empty_spec_is_one_node_where_the_cluster_is() {
    let spec = read(json!({})).unwrap();
    assert_eq!((spec.nodes, spec.min, spec.max), (1, 0, 100));
    let choice = &spec.providers[0];
    assert_eq!(
        (choice.name.as_str(), choice.regions.as_slice()),
        ("gcp", &["us-east1".to_owned()][..])
    );
    assert_eq!(PoolSpec { max: u32::MAX, providers: Vec::new(), ..spec }, PoolSpec::default());
}

#[test]
fn everything_that_can_be_asked_for_is_read() {
    let spec = read(json!({
        "nodeCount": 5, "minNodes": 2, "maxNodes": 9,
        "machineType": "h100-8x", "machineTypes": ["a100-8x", "a3-highgpu-8g", "h100-8x"],
        "zones": ["us-east1-b", "us-east1-c"], "capacity": "spot-preferred", "image": "family/gpu",
        "providers": [
            {"name": "gcp", "priority": 1, "weight": 3, "regions": ["us-east1", "us-west1"]},
            {"name": "lambda", "priority": 2, "machineType": "gpu_8x_a100"},
        ],
        "strategy": "cost", "maxHourlyCost": 120.5,
        "maintenance": {"windows": [{"cron": "0 2 * * *", "duration": "2h"}]},
        "remedy": "replace", "cures": ["replace", "diagnose"], "drainFor": "45m",
        "maxUnavailable": "25%", "minAvailable": 3, "nodeLabels": {"team": "alpha"},
        "counter": "1", "platform": {"type": "m4"}, "replicas": 1,
    }))
    .unwrap();
    assert_eq!((spec.nodes, spec.min, spec.max, spec.min_available), (5, 2, 9, 3));
    assert_eq!(spec.types, ["h100-8x", "a100-8x", "a3-highgpu-8g"]);
    assert_eq!(spec.zones, ["us-east1-b", "us-east1-c"]);
    assert_eq!((spec.capacity, spec.strategy), (Capacity::SpotPreferred, Strategy::Cost));
    let [gcp, lambda] = spec.providers.as_slice() else { panic!("{:?}", spec.providers) };
    assert_eq!((gcp.priority, gcp.weight, gcp.regions.len()), (1, 3, 2));
    assert_eq!((lambda.weight, lambda.machine_type.as_deref()), (1, Some("gpu_8x_a100")));
    assert_eq!(spec.max_hourly_cost, Some(120.5));
    assert_eq!(spec.maintenance.0.len(), 1);
    assert_eq!(spec.cures, [Cure::Diagnose, Cure::Replace]);
    assert_eq!(spec.drain_for, Some(SignedDuration::from_mins(45)));
    assert_eq!(spec.max_unavailable, Unavailable::Percent(25.0));
    assert_eq!(spec.labels["team"], "alpha");
    assert_eq!(spec.image, "family/gpu");
}

#[test]
fn bounds_that_contradict_each_other_name_both_fields() {
    refused(
        json!({"minNodes": 5, "maxNodes": 3}),
        "spec.minNodes (Max): spec.minNodes (5) is larger than spec.maxNodes (3)",
    );
    refused(
        json!({"nodeCount": 9, "maxNodes": 5}),
        "spec.nodeCount (Max): spec.nodeCount (9) is larger than spec.maxNodes (5)",
    );
    refused(
        json!({"nodeCount": 1, "minNodes": 2}),
        "spec.nodeCount (Min): spec.nodeCount (1) is smaller than spec.minNodes (2)",
    );
    refused(
        json!({"nodeCount": 2, "minAvailable": 3}),
        "spec.minAvailable (Max): spec.minAvailable (3) is larger than spec.nodeCount (2)",
    );
    // Without a count of its own it begins inside of the bounds.
    assert_eq!(read(json!({"minNodes": 4, "maxNodes": 6})).unwrap().nodes, 4);
    refused(
        json!({"maxNodes": 101}),
        "spec.maxNodes (Max): spec.maxNodes must be from 1 to 100, not 101",
    );
    refused(
        json!({"minNodes": -1}),
        "spec.minNodes (Min): spec.minNodes must be from 0 to 100, not -1",
    );
}

#[test]
fn a_slip_is_told_what_was_probably_meant() {
    for (sent, meant) in [
        ("nodeCounts", "nodeCount"),
        ("node_count", "nodeCount"),
        ("machine-type", "machineType"),
        ("MaxNodes", "maxNodes"),
        ("zone", "zones"),
        ("autoscale", "autoscaling"),
    ] {
        refused(
            json!({ sent: 1 }),
            &format!(
                "spec.{sent} (Enum): spec.{sent} is not a member of a node pool's spec. Did you mean {meant}?"
            ),
        );
    }
    for free in ["replicas", "counter", "version", "disk", "taints", "labels", "size"] {
        assert!(read(json!({ free: 1 })).is_ok(), "{free}");
    }
    refused(
        json!({"providers": [{"name": "gcp", "region": "us-east1"}]}),
        "spec.providers[0].region (Enum): spec.providers[0].region is not a member of a node pool's spec. \
         Did you mean regions?",
    );
}

#[test]
fn words_are_told_the_known_ones() {
    refused(
        json!({"capacity": "spott"}),
        "spec.capacity (Enum): spec.capacity must be one of on-demand, spot, spot-preferred, not 'spott'. \
         Did you mean spot?",
    );
    refused(
        json!({"strategy": "random"}),
        "spec.strategy (Enum): spec.strategy must be one of priority, cost, round-robin, availability, not \
         'random'.",
    );
    refused(
        json!({"remedy": "replaced"}),
        "spec.remedy (Enum): spec.remedy must be one of observe, cordon, drain, replace, not 'replaced'. Did \
         you mean replace?",
    );
    refused(
        json!({"cures": ["reboot", "pray"]}),
        "spec.cures[1] (Enum): spec.cures[1] must be one of diagnose, reboot, replace, not 'pray'.",
    );
    refused(
        json!({"remedy": 7}),
        "spec.remedy (Format): spec.remedy must be a string, not a number",
    );
}

#[test]
fn providers_are_of_the_catalog() {
    refused(
        json!({"providers": [{"name": "gpc"}]}),
        "spec.providers[0].name (Enum): Unsupported provider 'gpc'. Did you mean gcp? Supported providers: \
         aws, gcp, lambda",
    );
    refused(
        json!({"providers": [{"name": "gcp"}, {"name": "gcp"}, {"weight": 0}, 4]}),
        "spec.providers[1].name (Unique): spec.providers[1].name is there twice: gcp\n\
         spec.providers[2].name (Required): spec.providers[2].name is required\n\
         spec.providers[2].weight (Min): spec.providers[2].weight must be from 1 to 100, not 0\n\
         spec.providers[3] (Format): spec.providers[3] must be an object, not a number",
    );
    // A type need be known to one of them; what a provider has of its own, to that one.
    let two = json!([{"name": "gcp"}, {"name": "lambda"}]);
    assert!(read(json!({"machineType": "gpu_8x_a100", "providers": two})).is_ok());
    let errors = read(json!({"machineType": "gpu_8x_a100"})).unwrap_err();
    assert_eq!(errors[0].field, "spec.machineType");
    let errors =
        read(json!({"providers": [{"name": "gcp", "machineType": "gpu_8x_a100"}]})).unwrap_err();
    assert_eq!(errors[0].field, "spec.providers[0].machineType");
    // A pool of another provider than its cluster's does not inherit its region.
    let elsewhere = read(json!({"provider": "aws"})).unwrap();
    assert_eq!(
        (elsewhere.providers[0].name.as_str(), elsewhere.providers[0].regions.len()),
        ("aws", 0)
    );
}

#[test]
fn numbers_lists_and_durations_have_limits() {
    refused(
        json!({"maxHourlyCost": -1}),
        "spec.maxHourlyCost (Min): spec.maxHourlyCost must be a number of US dollars per hour that is not \
         negative, like 120.50, not -1",
    );
    refused(
        json!({"maxHourlyCost": "10"}),
        "spec.maxHourlyCost (Format): spec.maxHourlyCost must be a number of US dollars, not a string",
    );
    refused(
        json!({"drainFor": "1 hour"}),
        "spec.drainFor (Format): spec.drainFor: `1 hour` is not a duration: write a whole number and a unit \
         (ms, s, m, h, d), like 500ms, 10s or 30m",
    );
    refused(
        json!({"drainFor": "8d"}),
        "spec.drainFor (Max): spec.drainFor must be from 1s to 7d, not 8d",
    );
    refused(
        json!({"maxUnavailable": 0}),
        "spec.maxUnavailable (Min): spec.maxUnavailable must be at least 1; to leave sick nodes alone, set \
         spec.remedy to observe",
    );
    for bad in ["10", "0%", "101%", "x%", "NaN%", "inf%"] {
        refused(
            json!({ "maxUnavailable": bad }),
            "spec.maxUnavailable (Format): spec.maxUnavailable must be a whole number or a percentage, like \
             2 or \"10%\"",
        );
    }
    refused(
        json!({"zones": ["a", "a", "", "b c", 4]}),
        "spec.zones[1] (Unique): spec.zones[1] is there twice: a\n\
         spec.zones[2] (Pattern): spec.zones[2] must be a name of at most 63 letters, digits, `-`, `_` and \
         `.`, not ''\n\
         spec.zones[3] (Pattern): spec.zones[3] must be a name of at most 63 letters, digits, `-`, `_` and \
         `.`, not 'b c'\n\
         spec.zones[4] (Format): spec.zones[4] must be a string, not a number",
    );
    let many: Vec<String> = (0..9).map(|n| format!("z{n}")).collect();
    refused(
        json!({ "zones": many }),
        "spec.zones (Max): spec.zones has 9 entries; at most 8 are allowed",
    );
    refused(
        json!({"nodeLabels": {"team": 4}}),
        "spec.nodeLabels.team (Format): spec.nodeLabels.team must be a string, not a number",
    );
    let long = "x".repeat(300);
    let errors = read(json!({ "image": long })).unwrap_err();
    assert_eq!(errors[0].field, "spec.image");
}

#[test]
fn abstract_types_are_resolved_by_the_kind_of_provider() {
    for (machine_type, kind, expected) in [
        ("h100-8x", "aws", Some("p5.48xlarge")),
        ("h100-8x", "gcp", Some("a3-highgpu-8g")),
        ("h100-8x", "lambda", Some("gpu_8x_h100_sxm5")),
        ("a100-4x", "aws", None),
        ("l4-1x", "lambda", None),
        ("l4-1x", "gcp", Some("g2-standard-4")),
        ("h100-8x", "process", Some("h100-8x")),
        ("n1-standard-4", "gcp", Some("n1-standard-4")),
    ] {
        assert_eq!(resolve(machine_type, kind, &[]), expected, "{machine_type} at {kind}");
    }
    let offers = [crate::pool::fixture::offer("p5.48xlarge", "us-east-1", None)];
    assert_eq!(resolve("h100-8x", "simulated", &offers), Some("p5.48xlarge"));
}

#[test]
fn a_share_is_at_least_one_node() {
    for (unavailable, nodes, expected) in [
        (Unavailable::Percent(10.0), 1, 1),
        (Unavailable::Percent(10.0), 19, 1),
        (Unavailable::Percent(10.0), 20, 2),
        (Unavailable::Percent(100.0), 7, 7),
        (Unavailable::Percent(10.0), 0, 1),
        (Unavailable::Nodes(3), 1, 3),
    ] {
        assert_eq!(unavailable.of(nodes), expected, "{unavailable:?} of {nodes}");
    }
}

#[test]
fn an_autoscaler_moves_the_target_inside_of_the_bounds_only() {
    let mut spec = read(json!({"nodeCount": 4, "minNodes": 2, "maxNodes": 6})).unwrap();
    assert_eq!(spec.target(Some(5)), 4, "there is none");
    spec.autoscaling = read(json!({"autoscaling": {"type": "reactive"}})).unwrap().autoscaling;
    for (wanted, expected) in [(None, 4), (Some(5), 5), (Some(0), 2), (Some(1000), 6)] {
        assert_eq!(spec.target(wanted), expected, "{wanted:?}");
    }
}

#[test]
fn the_node_plane_goes_by_the_spec() {
    let defaults = PoolSettings::default();
    let spec = read(json!({"maxUnavailable": 3, "drainFor": "5m", "remedy": "observe"})).unwrap();
    let settings = spec.settings(&defaults);
    assert_eq!(settings.remedy, settings::Remedy::Observe);
    assert_eq!((settings.budget.percent, settings.budget.at_least), (0.0, 3));
    assert_eq!(settings.drain_for, SignedDuration::from_mins(5));
    let settings = read(json!({})).unwrap().settings(&defaults);
    assert_eq!(settings, defaults, "a pool that says nothing changes nothing");
}
