use super::*;
use serde_json::json;

/// `ok`, or the complaints as lines `field (constraint): message`.
#[track_caller]
fn check(kind: Kind, spec: Value, provider: Option<&str>, expected: &str) {
    let outcome = match Catalog::default().check(kind, spec.as_object().unwrap(), provider) {
        Ok(()) => "ok".to_owned(),
        Err(errors) => {
            let line = |e: &FieldError| {
                format!("{} ({:?}): {}", e.field, e.constraint.unwrap(), e.message)
            };
            errors.iter().map(line).collect::<Vec<_>>().join("\n")
        }
    };
    assert_eq!(outcome, expected, "{spec}");
}

#[track_caller]
fn cluster(spec: Value, expected: &str) {
    check(Kind::Cluster, spec, None, expected);
}

#[track_caller]
fn pool(spec: Value, expected: &str) {
    check(Kind::NodePool, spec, Some("gcp"), expected);
}

#[test]
fn a_region_is_judged_under_a_known_provider() {
    cluster(json!({"provider": "gcp", "region": "us-east1", "nodeCount": 3}), "ok");
    cluster(json!({"provider": "gcp", "region": "us-west1", "nodeCount": 5}), "ok");
    cluster(json!({"provider": "aws", "region": "us-west-2"}), "ok");
    cluster(json!({"provider": "lambda", "region": "us-east-1"}), "ok");
    cluster(json!({"provider": "gcp"}), "ok");
    cluster(
        json!({"provider": "gcp", "region": "invalid-region"}),
        "spec.region (Enum): Invalid region 'invalid-region' for provider GCP. Supported regions: \
         us-east1, us-west1, us-central1, europe-west1, europe-west4, asia-east1",
    );
    cluster(
        json!({"provider": "aws", "region": "us-east1"}),
        "spec.region (Enum): Invalid region 'us-east1' for provider AWS. Supported regions: \
         us-east-1, us-east-2, us-west-2, eu-west-1, eu-central-1, ap-northeast-1",
    );
}

#[test]
fn a_spec_without_our_provider_passes() {
    cluster(json!({}), "ok");
    cluster(json!({"counter": "1", "region": "us-east-1", "version": "4.15.0"}), "ok");
    let platform = json!({"type": "gcp", "gcp": {"region": "anywhere", "projectID": "p"}});
    cluster(json!({ "platform": platform }), "ok");
    pool(json!({"counter": "1", "platform": {"type": "m4"}, "replicas": 1}), "ok");
}

#[test]
fn an_unknown_provider_is_told_the_known_ones() {
    cluster(
        json!({"provider": "azure", "region": "westeurope"}),
        "spec.provider (Enum): Unsupported provider 'azure'. Supported providers: aws, gcp, lambda",
    );
    cluster(
        json!({"provider": ""}),
        "spec.provider (Enum): Unsupported provider ''. Supported providers: aws, gcp, lambda",
    );
}

#[test]
fn places_are_strings() {
    let expected = "spec.provider (Format): spec.provider must be a string, not null";
    cluster(json!({"provider": null}), expected);
    let expected = "spec.region (Format): spec.region must be a string, not a number";
    cluster(json!({"region": 7}), expected);
    cluster(json!({"provider": "gcp", "region": 7}), expected);
}

#[test]
fn a_pool_has_one_to_a_hundred_nodes() {
    pool(json!({}), "ok");
    pool(json!({"nodeCount": 1}), "ok");
    pool(json!({"nodeCount": 100}), "ok");
    let low = |count: i64| {
        format!("spec.nodeCount (Min): Invalid node count: {count}. Must be between 1 and 100")
    };
    pool(json!({"nodeCount": 0}), &low(0));
    pool(json!({"nodeCount": -5}), &low(-5));
    pool(json!({"nodeCount": i64::MIN}), &low(i64::MIN));
    let high = |count: u64| {
        format!(
            "spec.nodeCount (Max): Node count {count} exceeds maximum limit of 100 per nodepool"
        )
    };
    pool(json!({"nodeCount": 101}), &high(101));
    pool(json!({"nodeCount": 150}), &high(150));
    pool(json!({"nodeCount": u64::MAX}), &high(u64::MAX));
}

#[test]
fn a_node_count_is_a_whole_number() {
    let fraction = "spec.nodeCount (Format): spec.nodeCount must be a whole number without fraction \
                    or exponent, like 3";
    pool(json!({"nodeCount": 3.5}), fraction);
    pool(json!({"nodeCount": 3.0}), fraction);
    pool(serde_json::from_str(r#"{"nodeCount": 1e3}"#).unwrap(), fraction);
    for (value, sent) in [
        (json!("3"), "a string"),
        (json!(null), "null"),
        (json!(true), "a boolean"),
        (json!([3]), "a list"),
        (json!({}), "an object"),
    ] {
        let expected =
            format!("spec.nodeCount (Format): spec.nodeCount must be a whole number, not {sent}");
        pool(json!({ "nodeCount": value }), &expected);
        cluster(json!({ "nodeCount": value }), &expected);
    }
}

#[test]
fn the_node_count_of_a_cluster_is_data() {
    cluster(json!({"nodeCount": 0}), "ok");
    cluster(json!({"nodeCount": 5000}), "ok");
    let expected = "spec.nodeCount (Min): Invalid node count: -1. Must not be negative";
    cluster(json!({"nodeCount": -1}), expected);
}

#[test]
fn a_machine_type_is_looked_up_where_there_is_a_list() {
    for machine_type in ["n1-standard-4", "n1-highmem-8", "n1-standard-8", "a3-highgpu-8g"] {
        pool(json!({"nodeCount": 5, "machineType": machine_type}), "ok");
    }
    pool(
        json!({"machineType": "n1-standrad-4"}),
        "spec.machineType (Enum): Unknown machine type 'n1-standrad-4' for provider GCP. Did you \
         mean n1-standard-4? Supported machine types: a2-highgpu-1g, a2-highgpu-8g, a3-highgpu-8g, \
         n1-highmem-8, n1-standard-4, n1-standard-8",
    );
    let anything = json!({"machineType": "quantum"});
    check(Kind::NodePool, anything.clone(), None, "ok");
    check(Kind::NodePool, anything.clone(), Some("elsewhere"), "ok");
    let mut catalog = Catalog::default();
    catalog.providers.get_mut("gcp").unwrap().machine_types.clear();
    assert_eq!(catalog.check(Kind::NodePool, anything.as_object().unwrap(), Some("gcp")), Ok(()));
    let expected = "spec.machineType (Format): spec.machineType must be a string, not a number";
    check(Kind::NodePool, json!({"machineType": 4}), None, expected);
}

#[test]
fn every_bad_field_is_reported() {
    pool(
        json!({"nodeCount": 0, "machineType": 4}),
        "spec.nodeCount (Min): Invalid node count: 0. Must be between 1 and 100\n\
         spec.machineType (Format): spec.machineType must be a string, not a number",
    );
}

#[test]
fn what_was_sent_is_repeated_only_if_short_and_printable() {
    let spec = json!({"provider": "x".repeat(100_000)});
    let errors =
        Catalog::default().check(Kind::Cluster, spec.as_object().unwrap(), None).unwrap_err();
    assert!(serde_json::to_string(&errors).unwrap().len() < 400);
    cluster(
        json!({"provider": "\u{1b}[31m\u{202e}"}),
        "spec.provider (Enum): Unsupported provider '\\u{1b}[31m\\u{202e}'. Supported providers: \
         aws, gcp, lambda",
    );
}

#[test]
fn provider_and_region_are_found_in_both_places() {
    for (spec, expected) in [
        (json!({"provider": "gcp", "region": "r"}), (Some("gcp"), Some("r"))),
        (json!({"platform": {"type": "gcp", "gcp": {"region": "r"}}}), (Some("gcp"), Some("r"))),
        (json!({"provider": "a", "platform": {"type": "gcp"}}), (Some("a"), None)),
        (json!({"platform": {"type": 1, "gcp": {"region": "r"}}}), (None, None)),
        (json!({"platform": "gcp"}), (None, None)),
        (json!({"provider": 1, "region": 2}), (None, None)),
        (json!({}), (None, None)),
    ] {
        let spec = spec.as_object().unwrap();
        assert_eq!((Catalog::provider_of(spec), Catalog::region_of(spec)), expected);
    }
}

#[test]
fn the_smallest_machine_has_the_fewest_gpus_and_then_cpus() {
    let catalog = Catalog::default();
    for (provider, expected) in [("gcp", "n1-standard-4"), ("aws", "m5.xlarge")] {
        assert_eq!(catalog.providers[provider].smallest(), Some(expected), "{provider}");
    }
}
